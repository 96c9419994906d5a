/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Both ends of xroce bench, and the control connection between them: whole messages, each with a
 * time limit. The client connects, runs every test of every round, and collects the results. The
 * server serves one client and one test at a time. All input of a client is checked (wire.c). A
 * silent or malformed client loses only its own connection, and others do not wait for its
 * greeting.
 */
#define _GNU_SOURCE /* accept4() */
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../os/clock.h"
#include "bench.h"

/* ---- the control connection ---- */

/* Waits until the socket is ready. Returns 0, -ETIMEDOUT, -EINTR (stop requested) or -errno. */
static int bench_ready(int fd, short events, u64 end_ns)
{
	struct pollfd p = { .fd = fd, .events = events };
	u64 now_ns;
	int n;

	while ((now_ns = clock_now_ns()) < end_ns) {
		n = poll(&p, 1, (int)((end_ns - now_ns) / NSEC_PER_MSEC) + 1);
		if (n > 0)
			return 0;
		if (stop_requested())
			return -EINTR;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
	return -ETIMEDOUT;
}

static int bench_move(int fd, u8 *data, size_t len, bool out, u64 timeout_ns)
{
	const u64 end_ns = clock_now_ns() + timeout_ns;
	ssize_t n;
	int err;

	while (len) {
		err = bench_ready(fd, out ? POLLOUT : POLLIN, end_ns);
		if (err)
			return err;
		n = out ? send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT) :
			  recv(fd, data, len, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			return n ? -errno : -ECONNRESET;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

int bench_tell(int fd, const struct bench_message *m)
{
	u8 wire[BENCH_WIRE_BYTES];

	bench_encode(wire, m);
	return bench_move(fd, wire, sizeof(wire), true, BENCH_PATIENCE_NS);
}

int bench_hear(int fd, enum bench_type type, u64 timeout_ns, struct bench_message *m)
{
	u8 wire[BENCH_WIRE_BYTES];
	const char *wrong;
	int err = bench_move(fd, wire, sizeof(wire), false, timeout_ns);

	if (err)
		return err;
	wrong = bench_decode(m, wire);
	if (!wrong && m->type == BENCH_FAILED)
		return -(int)m->status;
	if (!wrong && m->type == type)
		return 0;
	fprintf(stderr, "xroce bench: the other end sent %s\n",
		wrong ? wrong : "a message out of order");
	return -EPROTO;
}

/* ---- the client: a test ---- */

struct bench_run {
	const struct bench_options *options;
	struct bench_result *result;
	struct bench_end end;
	struct device dev;
	u32 done, total;
	u64 begun_ns;
};

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

/* ---- the client: rounds ---- */

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

/* ---- the client: connecting ---- */

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
		fprintf(stderr, "xroce bench: cannot exchange greetings with %s: %s\n",
			result->peer.text, strerror(-err));
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
		fprintf(stderr, "xroce bench: cannot begin: %s\n", strerror(ENOMEM));
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

/* ---- the server: a test ---- */

struct bench_session {
	struct bench_end end;
	struct device dev;
	char client[ADDRESS_TEXT];
	u32 tests;
};

static int bench_serve_rdma(struct bench_session *s, const struct bench_message *setup,
			    struct bench_outcome *out)
{
	struct bench_message ready = { .type = BENCH_READY };
	struct bench_rdma *r;
	int err = bench_rdma_make(&s->end, &setup->test, &r, &ready);

	if (!err)
		err = bench_rdma_connect(r, &ready, setup);
	if (!err)
		err = bench_tell(s->end.control, &ready);
	if (!err)
		err = bench_rdma_server(r, out);
	bench_rdma_free(r);
	return err;
}

static int bench_serve_sockets(struct bench_session *s, const struct bench_message *setup,
			       struct bench_outcome *out)
{
	struct bench_message ready = { .type = BENCH_READY };
	int err, fd = bench_socket_listen(&s->end, &setup->test, &ready);

	if (fd < 0)
		return fd;
	err = bench_tell(s->end.control, &ready);
	if (!err)
		return bench_socket_server(&s->end, &setup->test, fd, out);
	close(fd);
	return err;
}

/* Runs a test. Returns 0, or -errno at the end of the session. */
static int bench_serve_test(struct bench_session *s, const struct bench_message *setup)
{
	struct bench_outcome *out = calloc(1, sizeof(*out));
	struct bench_message m;
	int err;

	if (!out)
		return -ENOMEM;
	s->end.token = setup->token;
	err = bench_way_is_rdma(setup->test.way) ? bench_serve_rdma(s, setup, out) :
						   bench_serve_sockets(s, setup, out);
	if (!err)
		err = bench_hear(s->end.control, BENCH_STOP,
				 setup->test.duration_ns + BENCH_PATIENCE_NS, &m);
	m = (struct bench_message){ .type = err ? BENCH_FAILED : BENCH_DONE,
				    .status = (u32)-err,
				    .messages = out->messages,
				    .bytes = out->bytes,
				    .elapsed_ns = out->elapsed_ns };
	free(out);
	s->tests++;
	return bench_tell(s->end.control, &m) ? -EPIPE : err;
}

/* ---- the server: a client ---- */

/* Returns EXIT_OK and the interface with this address, or EXIT_FAILED after an error message. */
static int bench_find_interface(const struct gid *gid, char name[IF_NAMESIZE])
{
	struct netdev *all;
	int n = netdev_list(&all), ret = EXIT_FAILED;
	char text[ADDRESS_TEXT];

	for (int i = 0; i < n && ret; i++)
		for (u32 g = 0; g < all[i].num_gids && ret; g++)
			if (gid_equal(&all[i].gid[g].gid, gid)) {
				memcpy(name, all[i].name, IF_NAMESIZE);
				ret = EXIT_OK;
			}
	if (n >= 0)
		free(all);
	if (ret)
		fprintf(stderr, "xroce bench: no device has the address %s of this connection\n",
			gid_text(gid->raw, text));
	return ret;
}

/* Requires the client's GID to match its connection: no data is sent to a third host. */
static int bench_serve_hello(struct bench_session *s, const struct gid *own,
			     const struct gid *from)
{
	struct bench_message hello, answer = { .type = BENCH_HELLO, .gid = *own };
	char iface[IF_NAMESIZE];
	int err = bench_hear(s->end.control, BENCH_HELLO, BENCH_PATIENCE_NS, &hello);

	if (err)
		return err;
	if (!gid_equal(&hello.gid, from))
		return -EPROTO;
	s->end.peer = hello.gid;
	if (bench_find_interface(own, iface) || device_open(&command_bench, iface, own, &s->dev)) {
		answer = (struct bench_message){ .type = BENCH_FAILED, .status = ENODEV };
		bench_tell(s->end.control, &answer);
		return -ENODEV;
	}
	s->end.dev = &s->dev;
	answer.path_mtu = s->dev.mtu;
	return bench_tell(s->end.control, &answer);
}

static void bench_serve_client(int fd, const struct sockaddr_in6 *from)
{
	struct bench_session s = { .end = { .control = fd } };
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	struct bench_message m;
	struct gid client, gid;
	int err;

	memcpy(client.raw, &from->sin6_addr, sizeof(client.raw));
	gid_text(client.raw, s.client);
	err = getsockname(fd, (struct sockaddr *)&own, &len) ? -errno : 0;
	if (!err) {
		gid = gid_of_address(&own);
		err = bench_serve_hello(&s, &gid, &client);
	}
	while (!err) {
		err = bench_hear(fd, BENCH_SETUP, BENCH_PATIENCE_NS, &m);
		if (!err)
			err = bench_serve_test(&s, &m);
	}
	device_close(&s.dev);
	if (err == -ECONNRESET && s.tests)
		printf("xroce bench: %s: %u tests\n", s.client, s.tests);
	else
		printf("xroce bench: %s: %u tests, then: %s\n", s.client, s.tests, strerror(-err));
	fflush(stdout);
}

/* ---- the server: listening ---- */

static int bench_listen(u16 port)
{
	const struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	const int one = 1, zero = 0;
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) &&
	    !setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero)) &&
	    !bind(fd, (const struct sockaddr *)&any, sizeof(any)) && !listen(fd, 8))
		return fd;
	fprintf(stderr, "xroce bench: cannot listen on TCP port %u: %s\n", port, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

/*
 * A connection without a whole greeting yet: a client once that has come. It is closed after
 * BENCH_PATIENCE_NS, or for a new one if it is the oldest of GUESTS.
 */
struct bench_guest {
	int fd;
	struct sockaddr_in6 from;
	u64 until_ns;
};
enum { GUESTS = 16 };

struct bench_guests {
	struct bench_guest guest[GUESTS]; /* the oldest first */
	u32 count;
	bool served;
};

static void guest_remove(struct bench_guests *all, u32 i)
{
	close(all->guest[i].fd);
	all->count--;
	for (; i < all->count; i++)
		all->guest[i] = all->guest[i + 1];
}

/* Makes the socket readable with that number of bytes, and at its end. */
static void guest_readable_with(int fd, int bytes)
{
	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
}

static void guests_accept(struct bench_guests *all, int listen_fd)
{
	struct bench_guest g;
	socklen_t len = sizeof(g.from);

	g.fd = accept4(listen_fd, (struct sockaddr *)&g.from, &len, SOCK_CLOEXEC);
	if (g.fd < 0)
		return;
	if (all->count == GUESTS)
		guest_remove(all, 0);
	guest_readable_with(g.fd, BENCH_WIRE_BYTES);
	g.until_ns = clock_now_ns() + BENCH_PATIENCE_NS;
	all->guest[all->count++] = g;
}

/* Waits for a connection or for a whole greeting, and serves the client that has sent that. */
static void guests_wait(struct bench_guests *all, int listen_fd)
{
	struct pollfd p[GUESTS + 1];
	const u64 now_ns = clock_now_ns();
	int ms = -1;
	u32 i;

	while (all->count && all->guest[0].until_ns <= now_ns)
		guest_remove(all, 0);
	if (all->count)
		ms = (int)((all->guest[0].until_ns - now_ns) / NSEC_PER_MSEC) + 1;
	for (i = 0; i < all->count; i++)
		p[i] = (struct pollfd){ .fd = all->guest[i].fd, .events = POLLIN };
	p[i] = (struct pollfd){ .fd = listen_fd, .events = POLLIN };
	if (poll(p, all->count + 1, ms) <= 0)
		return;
	for (i = 0; i < all->count && !p[i].revents; i++)
		;
	if (i == all->count) {
		guests_accept(all, listen_fd);
		return;
	}
	guest_readable_with(all->guest[i].fd, 1);
	bench_serve_client(all->guest[i].fd, &all->guest[i].from);
	guest_remove(all, i);
	all->served = true;
}

int bench_server(const struct bench_options *options)
{
	struct bench_guests all = { .count = 0 };
	int fd;

	stop_catch_signals();
	if (options->iface && setenv(NETDEV_ENV, options->iface, 1))
		return EXIT_FAILED;
	if (verbs_load(&command_bench))
		return EXIT_FAILED;
	fd = bench_listen(options->port);
	if (fd < 0)
		return EXIT_FAILED;
	printf("xroce bench: listening on TCP port %u\n", options->port);
	fflush(stdout);
	while (!stop_requested() && !(options->once && all.served))
		guests_wait(&all, fd);
	while (all.count)
		guest_remove(&all, 0);
	close(fd);
	return EXIT_OK;
}
