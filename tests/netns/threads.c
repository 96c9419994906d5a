/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Several threads an end, each with its own queue pairs, that share completion queues, shared
 * receive queues and completion channels, or share none. Checks that each message arrives once and
 * unchanged, and measures the rate.
 *
 *	threads -d DEVICE [-g GID-INDEX] [OPTION...] [HOST]
 *
 * The end with HOST sends; with -b both do. The options are the same at both ends:
 *
 *	-o OP		send, write, read, add (fetch and add, of all QPs on one counter), uc or ud
 *			(sends)
 *	-T THREADS, -q QPS (a thread), -s BYTES, -n MESSAGES (a QP), -w DEPTH (messages under way a
 *			QP)
 *	-C		one CQ for all QPs; each thread polls it
 *	-R		one SRQ for all QPs
 *	-e		threads sleep in ibv_get_cq_event(3), with a channel each; -E: with one for
 *			all
 *	-c		check every byte
 *	-p CPU,...	thread i runs on CPU i of the list
 *	-m MESSAGES	and switches to the list's next one after MESSAGES
 *	-F COUNT	the process forks COUNT times in that time
 *
 * What a QP of a reliable service sent is received once, in its order where one thread takes it.
 * WRITEs are looked at in the end, what READs fetch at once. The values that fetch-and-add returns
 * are all different, and grow on each QP. UC and UD may lose, but nothing comes twice. Prints for
 * an end that sends
 *
 *	threads: thread 0: 1200000 messages/s
 *	threads: send of 64 bytes, 2 threads, 2 QPs: 2400000 messages/s, 1.229 Gbit/s
 *
 * and for a receiver: threads: received 800000 of 800000 messages
 *
 * This file has the options, the threads and the end; objects, messages and their content are in
 * threads/.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "threads/threads.h"

#define MEGABYTE    (1u << 20)
#define EMPTY_POLLS 500 /* of a thread, before it lets others run */

const struct operation ops[OPS] = {
	[OP_SEND] = { "send", "send", IBV_QPT_RC, IBV_WR_SEND, true, false },
	[OP_WRITE] = { "write", "write", IBV_QPT_RC, IBV_WR_RDMA_WRITE, false, false },
	[OP_READ] = { "read", "read", IBV_QPT_RC, IBV_WR_RDMA_READ, false, false },
	[OP_ADD] = { "add", "fetch and add", IBV_QPT_RC, IBV_WR_ATOMIC_FETCH_AND_ADD, false,
		     false },
	[OP_UC] = { "uc", "UC send", IBV_QPT_UC, IBV_WR_SEND, true, true },
	[OP_UD] = { "ud", "UD send", IBV_QPT_UD, IBV_WR_SEND, true, true },
};

struct config config = { .threads = 2, .qps = 1, .bytes = 64, .messages = 10000 };
bool one_cq, one_srq, sleeps, one_channel;
unsigned int num_qps, receives;
int gid_index;
bool is_client, sends, is_target;

static unsigned int cpus[64], num_cpus, forks;
static uint64_t change_every;
static _Atomic bool stop;
static uint64_t begin_ns;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- a thread ---- */

static void go_to(struct worker *w, unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpus[cpu % num_cpus], &set);
	w->cpu = cpu;
	errno = pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	must(!errno, "CPU %u: %s", cpus[cpu % num_cpus], strerror(errno));
}

static void change_cpu(struct worker *w)
{
	const struct queue *u = &queue[w->index * config.qps];
	const uint64_t moved = u->posted + atomic_load_explicit(&u->received, memory_order_relaxed);

	if (!change_every || moved - w->moved_at < change_every)
		return;
	w->moved_at = moved;
	go_to(w, w->cpu + 1);
}

static bool are_done(unsigned int first, unsigned int n, bool (*is_done)(unsigned int q))
{
	for (unsigned int q = first; q < first + n; q++)
		if (!is_done(q))
			return false;
	return true;
}

/* Its own QPs, or all if threads take each other's completions. */
static bool is_over(const struct worker *w)
{
	const bool shared = one_cq || one_channel;
	const unsigned int first = shared ? 0 : w->index * config.qps,
			   n = shared ? num_qps : config.qps;

	return !other_end_knows() && are_done(first, n, has_sent) &&
	       are_done(first, n, has_received);
}

/*
 * Until there is an event, or for a moment if others may have taken it. Then its CQ has been armed
 * again and emptied.
 */
static void sleep_for_event(struct worker *w)
{
	struct pollfd fd = { .fd = w->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (looks_up() && !poll(&fd, 1, 20))
		return;
	if (ibv_get_cq_event(w->channel, &cq, &context)) {
		must(errno == EAGAIN && looks_up(), "ibv_get_cq_event: %s", strerror(errno));
		return;
	}
	ibv_ack_cq_events(cq, 1);
	must(!(errno = ibv_req_notify_cq(cq, 0)), "ibv_req_notify_cq: %s", strerror(errno));
	while (poll_cq(cq))
		;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	const unsigned int first = w->index * config.qps;
	unsigned int empty = 0;

	if (num_cpus)
		go_to(w, w->index);
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		for (unsigned int q = first; sends && q < first + config.qps; q++)
			post_sends(q);
		if (!w->end_ns && are_done(first, config.qps, has_sent))
			w->end_ns = now_ns();
		if (is_over(w) && w->end_ns)
			break;
		if (sleeps)
			sleep_for_event(w);
		else if (poll_cq(w->cq))
			empty = 0;
		else if (config.check && !(++empty % EMPTY_POLLS))
			sched_yield(); /* the peer may wait for this processor */
		change_cpu(w);
	}
	if (!w->end_ns)
		w->end_ns = now_ns(); /* another thread has taken its last completion */
	return NULL;
}

/* ---- the whole ---- */

/*
 * The child, which has a copy of all state, exits at once; its exit must not affect the parent.
 */
static void fork_once(void)
{
	int status;
	pid_t child = fork();

	must(child >= 0, "fork: %s", strerror(errno));
	if (!child)
		_exit(0);
	must(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status),
	     "the child ended with %#x", status);
}

/* Until this end and the other have said that they are done. */
static void watch(int ctl)
{
	uint64_t last = 0, last_ms = now_ms();
	bool said = false, heard = false;

	while (!said || !heard) {
		struct pollfd fd = { .fd = ctl, .events = POLLIN };
		uint64_t moved = atomic_load(&progress);
		uint8_t byte = 0;

		if (forks && moved != last) {
			fork_once();
			forks--;
		}
		if (moved != last || said)
			last_ms = now_ms();
		last = moved;
		must(now_ms() < last_ms + WAIT_MS, "nothing moves");
		if (!said && are_done(0, num_qps, has_sent) && are_done(0, num_qps, has_received)) {
			must(send(ctl, &byte, 1, MSG_NOSIGNAL) == 1, "control connection: %s",
			     strerror(errno));
			said = true;
		}
		if (poll(&fd, heard ? 0 : 1, 5) == 1) {
			must(recv(ctl, &byte, 1, 0) == 1, "the other side has gone");
			heard = true;
		}
	}
	/* a message that may be lost is on its way, or lost */
	if (is_target && ops[config.op].may_lose) {
		uint64_t before;

		do {
			before = atomic_load(&progress);
			poll(NULL, 0, 100);
		} while (before != atomic_load(&progress));
	}
}

static void report(void)
{
	uint64_t end_ns = 0, received = 0;
	double seconds, rate;

	for (unsigned int t = 0; sends && t < config.threads; t++) {
		end_ns = worker[t].end_ns > end_ns ? worker[t].end_ns : end_ns;
		printf("threads: thread %u: %.0f messages/s\n", t,
		       (double)(config.qps * config.messages) /
			       (double)(worker[t].end_ns - begin_ns) * 1e9);
	}
	if (sends) {
		seconds = (double)(end_ns - begin_ns) / 1e9;
		rate = (double)(num_qps * config.messages) / seconds;
		printf("threads: %s of %u bytes, %u threads, %u QPs: %.0f messages/s, %.3f "
		       "Gbit/s\n",
		       ops[config.op].text, config.bytes, config.threads, num_qps, rate,
		       rate * config.bytes * 8 / 1e9);
	}
	for (unsigned int q = 0; q < num_qps; q++)
		received += atomic_load(&queue[q].received);
	if (is_target && ops[config.op].receives)
		printf("threads: received %llu of %llu messages\n", (unsigned long long)received,
		       (unsigned long long)(num_qps * config.messages));
	if (is_target && !ops[config.op].receives)
		printf("threads: was the target of %llu messages\n",
		       (unsigned long long)(num_qps * config.messages));
}

static void usage(void)
{
	die("threads -d DEVICE [-g GID-INDEX] [-o send|write|read|add|uc|ud] [-T THREADS] [-q QPS] "
	    "[-s BYTES] [-n MESSAGES] [-w DEPTH] [-C] [-R] [-e | -E] [-c] [-b] "
	    "[-p CPU,...] [-m MESSAGES] [-F COUNT] [HOST]");
}

static void read_cpus(char *list)
{
	for (char *one = strtok(list, ","); one && num_cpus < 64; one = strtok(NULL, ","))
		cpus[num_cpus++] = (unsigned int)atoi(one);
}

static const char *read_options(int argc, char **argv)
{
	const char *device = NULL;
	int c;

	while ((c = getopt(argc, argv, "d:g:o:T:q:s:n:w:CReEcbp:m:F:")) != -1) {
		switch (c) {
		case 'd': device = optarg; break;
		case 'g': gid_index = atoi(optarg); break;
		case 'o':
			for (config.op = 0; config.op < OPS && strcmp(optarg, ops[config.op].name);
			     config.op++)
				;
			break;
		case 'T': config.threads = (uint32_t)atoi(optarg); break;
		case 'q': config.qps = (uint32_t)atoi(optarg); break;
		case 's': config.bytes = (uint32_t)atoi(optarg); break;
		case 'n': config.messages = strtoull(optarg, NULL, 0); break;
		case 'w': config.depth = (uint32_t)atoi(optarg); break;
		case 'C': one_cq = true; break;
		case 'R': one_srq = true; break;
		case 'e': sleeps = true; break;
		case 'E': sleeps = one_channel = true; break;
		case 'c': config.check = 1; break;
		case 'b': config.both = 1; break;
		case 'p': read_cpus(optarg); break;
		case 'm': change_every = strtoull(optarg, NULL, 0); break;
		case 'F': forks = (unsigned int)atoi(optarg); break;
		default: usage();
		}
	}
	num_qps = config.threads * config.qps;
	if (!device || config.op == OPS || !num_qps || config.threads > THREADS_MAX ||
	    num_qps > QPS_MAX || !config.bytes || config.bytes > MEGABYTE || !config.messages ||
	    config.messages > 1ull << 30 || (config.check && config.bytes < 8) ||
	    (change_every && !num_cpus))
		usage();
	if (config.op == OP_ADD)
		config.bytes = 8;
	if (!config.depth)
		config.depth = MEGABYTE / config.bytes < 2   ? 2 :
			       MEGABYTE / config.bytes > 128 ? 128 :
							       MEGABYTE / config.bytes;
	must(config.depth <= 1024, "-w: at most 1024");
	receives = 2 * config.depth;
	return device;
}

int main(int argc, char **argv)
{
	const char *device = read_options(argc, argv);
	int ctl;

	is_client = argv[optind];
	sends = is_client || config.both;
	is_target = !is_client || config.both;
	make(device);
	ctl = ctl_open(argv[optind], "18640");
	ctl_swap(ctl, &own, &peer, sizeof(own));
	must(!memcmp(&own.config, &peer.config, sizeof(own.config)),
	     "the ends have different options");
	connect_all();
	for (unsigned int t = 0; sleeps && t < config.threads; t++)
		must(!ibv_req_notify_cq(worker[t].cq, 0), "ibv_req_notify_cq");
	ctl_barrier(ctl, 1);
	begin_ns = now_ns();
	for (unsigned int t = 0; t < config.threads; t++)
		must(!pthread_create(&worker[t].thread, NULL, work, &worker[t]), "pthread_create");
	watch(ctl);
	atomic_store(&stop, true);
	for (unsigned int t = 0; t < config.threads; t++)
		must(!pthread_join(worker[t].thread, NULL), "pthread_join");
	if (is_target)
		check_memory();
	report();
	ctl_barrier(ctl, 2);
	unmake();
	return 0;
}
