/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The client of xroce bench: connects, runs every test of every round, and collects the results. */
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "../../os/clock.h"
#include "bench.h"

struct bench_run {
	const struct bench_options *options;
	struct bench_result *result;
	struct bench_end end;
	struct device dev;
	u32 done, total;
	u64 begun_ns;
};

/* ---- a test ---- */

/* Sends a SETUP. Returns 0 with the server's READY, or -errno. */
static int bench_ask(struct bench_run *run, const struct bench_message *setup,
		     struct bench_message *ready)
{
	int err = bench_tell(run->end.control, setup);

	return err ? err : bench_hear(run->end.control, BENCH_READY, BENCH_PATIENCE_NS, ready);
}

static int bench_run_rdma(struct bench_run *run, struct bench_message *setup,
			  struct bench_outcome *out)
{
	struct bench_message ready;
	struct bench_rdma *r;
	int err = bench_rdma_make(&run->end, &setup->test, &r, setup);

	if (!err)
		err = bench_ask(run, setup, &ready);
	if (!err)
		err = bench_rdma_connect(r, setup, &ready);
	if (!err)
		err = bench_rdma_client(r, out);
	bench_rdma_free(r);
	return err;
}

static int bench_run_sockets(struct bench_run *run, struct bench_message *setup,
			     struct bench_outcome *out)
{
	struct bench_message ready;
	int err = bench_ask(run, setup, &ready);

	return err ? err : bench_socket_client(&run->end, &setup->test, ready.port, out);
}

/*
 * Adds the results of a test. If the client cannot tell when its data arrived, the server's count
 * is used. Returns false without a result.
 */
static bool bench_keep(struct bench_result *result, const struct bench_test *t,
		       const struct bench_message *done, struct bench_outcome *out, u32 size_index)
{
	struct bench_point *p = &result->point[t->measure][t->way][size_index];
	const bool acknowledged = t->way == BENCH_SEND || t->way == BENCH_WRITE ||
				  t->way == BENCH_READ;
	double number;

	if (t->measure == BENCH_LATENCY) {
		number = (double)histogram_percentile(&out->rtt, 50);
	} else {
		if (!acknowledged) {
			if (t->way != BENCH_TCP && out->messages > done->messages)
				out->lost += out->messages - done->messages;
			out->bytes = done->bytes;
			out->elapsed_ns = done->elapsed_ns;
		}
		number = out->elapsed_ns ? (double)out->bytes * 8e3 / (double)out->elapsed_ns : 0;
	}
	if (number <= 0 || p->rounds >= BENCH_MOST_ROUNDS)
		return false;
	p->is_there = true;
	p->round[p->rounds++] = number;
	p->all.messages += out->messages;
	p->all.bytes += out->bytes;
	p->all.elapsed_ns += out->elapsed_ns;
	p->all.lost += out->lost;
	histogram_merge(&p->all.rtt, &out->rtt);
	return true;
}

static int bench_run_test(struct bench_run *run, enum bench_measure measure, enum bench_way way,
			  u32 size_index)
{
	const struct bench_options *o = run->options;
	struct bench_outcome *out = calloc(1, sizeof(*out));
	struct bench_message done, setup = {
		.type = BENCH_SETUP,
		.test = { .way = way, .measure = measure, .events = o->events,
			  .size = o->sizes[size_index],
			  .depth = bench_depth(o->sizes[size_index]),
			  .path_mtu = run->result->path_mtu, .duration_ns = o->duration_ns },
	};
	const struct bench_message stop = { .type = BENCH_STOP };
	int err = out ? 0 : -ENOMEM;

	if (!err && getrandom(&setup.token, sizeof(setup.token), 0) != sizeof(setup.token))
		err = -EIO;
	run->end.token = setup.token;
	if (!err)
		err = bench_way_is_rdma(way) ? bench_run_rdma(run, &setup, out) :
					       bench_run_sockets(run, &setup, out);
	if (!err)
		err = bench_tell(run->end.control, &stop);
	if (!err)
		err = bench_hear(run->end.control, BENCH_DONE, BENCH_PATIENCE_NS, &done);
	if (!err && !stop_requested())
		bench_keep(run->result, &setup.test, &done, out, size_index);
	free(out);
	return err;
}

/* ---- rounds ---- */

static void bench_progress(struct bench_run *run, enum bench_way way, u32 size)
{
	const u64 gone_s = (clock_now_ns() - run->begun_ns) / NSEC_PER_SEC;

	if (!run->options->quiet && isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K%u of %u tests, %llu s of about %llu: %s, %u bytes",
			run->done, run->total, (unsigned long long)gone_s,
			(unsigned long long)(run->total * run->options->duration_ns / NSEC_PER_SEC),
			bench_way_text[way], size);
}

static bool bench_is_wanted(const struct bench_run *run, enum bench_measure m, enum bench_way way,
			    u32 size_index)
{
	return run->options->ways[way] && run->options->measures[m] &&
	       run->options->sizes[size_index] <= bench_way_most(way, run->result->path_mtu);
}

/* Calls fn for each way of each size of each measure; stops at the first error. */
static int bench_each(struct bench_run *run,
		      int (*fn)(struct bench_run *, enum bench_measure, enum bench_way, u32))
{
	int err = 0;

	for (u32 m = 0; m < BENCH_MEASURE_END; m++)
		for (u32 size = 0; size < run->options->num_sizes; size++)
			for (u32 way = 0; way < BENCH_WAY_END && !err; way++)
				if (bench_is_wanted(run, m, way, size) && !stop_requested())
					err = fn(run, m, way, size);
	return err;
}

static int bench_count(struct bench_run *run, enum bench_measure m, enum bench_way way, u32 size)
{
	run->total += run->options->rounds;
	return 0;
}

static int bench_one(struct bench_run *run, enum bench_measure m, enum bench_way way, u32 size)
{
	int err;

	bench_progress(run, way, run->options->sizes[size]);
	err = bench_run_test(run, m, way, size);
	run->done++;
	if (err && !stop_requested())
		fprintf(stderr, "%sxroce bench: %s, %s, %u bytes: %s\n",
			isatty(STDERR_FILENO) ? "\r\033[K" : "", bench_way_text[way],
			m == BENCH_LATENCY ? "latency" : "bandwidth", run->options->sizes[size],
			strerror(-err));
	return err;
}

static int bench_rounds(struct bench_run *run)
{
	int err = 0;

	bench_each(run, bench_count);
	run->begun_ns = clock_now_ns();
	for (u32 i = 0; i < run->options->rounds && !err && !stop_requested(); i++)
		err = bench_each(run, bench_one);
	if (!run->options->quiet && isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K");
	return err;
}

/* ---- connecting ---- */

static int bench_connect(const struct bench_options *o, const struct peer *peer)
{
	struct sockaddr_storage to = peer->address;
	int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct timeval patience = { .tv_sec = BENCH_PATIENCE_NS / NSEC_PER_SEC };

	if (to.ss_family == AF_INET)
		((struct sockaddr_in *)&to)->sin_port = htons(o->port);
	else
		((struct sockaddr_in6 *)&to)->sin6_port = htons(o->port);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (fd >= 0 && !connect(fd, (const struct sockaddr *)&to, peer->address_len))
		return fd;
	fprintf(stderr, "xroce bench: cannot connect to %s, TCP port %u: %s%s\n", peer->text,
		o->port, strerror(errno),
		errno == ECONNREFUSED ? "; run 'xroce bench --server' there" : "");
	if (fd >= 0)
		close(fd);
	return -1;
}

static int bench_hello(struct bench_run *run)
{
	struct bench_message m = { .type = BENCH_HELLO, .gid = run->dev.gid };
	struct bench_result *result = run->result;
	const u32 want = run->options->path_mtu;
	int err = bench_tell(run->end.control, &m);

	if (!err)
		err = bench_hear(run->end.control, BENCH_HELLO, BENCH_PATIENCE_NS, &m);
	if (!err && !gid_equal(&m.gid, &run->end.peer))
		err = -EPROTO;
	if (err) {
		fprintf(stderr, "xroce bench: %s: %s\n", result->peer.text, strerror(-err));
		return EXIT_FAILED;
	}
	result->path_mtu = min_u32(run->dev.mtu, m.path_mtu);
	if (want > result->path_mtu || result->path_mtu < 256) {
		fprintf(stderr, "xroce bench: the path MTUs of the devices are %u and %u, not %u "
				"as requested\n", m.path_mtu, run->dev.mtu, want);
		return EXIT_FAILED;
	}
	if (want)
		result->path_mtu = want;
	return EXIT_OK;
}

static int bench_open(struct bench_run *run)
{
	const struct bench_options *o = run->options;
	struct peer *peer = &run->result->peer;
	int ret = peer_find(&command_bench, o->peer, o->family, o->iface, peer);

	if (ret)
		return ret;
	if (o->svg && !bench_svg_possible())
		return EXIT_FAILED;
	if (setenv(NETDEV_ENV, peer->dev.name, 1) || verbs_load(&command_bench) ||
	    device_open(&command_bench, peer->dev.name, &peer->local, &run->dev))
		return EXIT_FAILED;
	run->end.dev = &run->dev;
	run->end.peer = peer->gid;
	run->end.is_client = true;
	run->end.control = bench_connect(o, peer);
	return run->end.control < 0 ? EXIT_FAILED : bench_hello(run);
}

int bench_client(const struct bench_options *options)
{
	struct bench_run run = { .options = options, .end = { .control = -1 } };
	int ret = EXIT_FAILED;

	stop_catch_signals();
	run.result = calloc(1, sizeof(*run.result));
	if (!run.result) {
		fprintf(stderr, "xroce bench: %s\n", strerror(ENOMEM));
		return ret;
	}
	run.result->options = options;
	ret = bench_open(&run);
	if (!ret) {
		ret = bench_rounds(&run) ? EXIT_FAILED : EXIT_OK;
		if (options->json)
			bench_print_json(run.result);
		else
			bench_print(run.result);
		if (options->svg && bench_svg(run.result, options->svg))
			ret = EXIT_FAILED;
	}
	if (run.end.control >= 0)
		close(run.end.control);
	device_close(&run.dev);
	free(run.result);
	return ret;
}
