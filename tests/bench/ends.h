/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two ends of a baseline in one process: a thread each, in its own network namespace and on its own
 * CPU; their command line and output. Shared by raw_xsk.c and udp.c, which own the ends' work.
 * Functions here end the program on errors of the machine.
 */
#ifndef BENCH_ENDS_H
#define BENCH_ENDS_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SAMPLES_MAX (1 << 20)

#define WARM_NS	    100000000ull /* at the start, not measured */
#define WAIT_NS	    100000000ull /* for a packet that may have been lost */

struct end {
	const char *netns;	/* path of its network namespace */
	const char *ifname;
	int cpu;
	pthread_t thread;
};

/* The sender or requester, and the receiver or responder. */
static struct end client, server;
static uint32_t size;
static double seconds;
static bool sleeps;		/* the waiting end; or it spins */
static pthread_barrier_t ready;	/* both are set up */
static _Atomic bool stop;	/* the measuring end is done */

static inline void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline void end_enter(const struct end *e)
{
	cpu_set_t set;
	int fd = open(e->netns, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die(e->netns);
	close(fd);
	CPU_ZERO(&set);
	CPU_SET(e->cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

/* NETNS:INTERFACE:CPU; the text is cut up. */
static inline struct end end_parse(char *text)
{
	struct end e = { .netns = strtok(text, ":") };
	const char *cpu;

	e.ifname = strtok(NULL, ":");
	cpu = strtok(NULL, ":");
	if (!e.ifname || !cpu) {
		fprintf(stderr, "an end is NETNS:INTERFACE:CPU\n");
		exit(2);
	}
	e.cpu = atoi(cpu);
	return e;
}

static inline int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/*
 * Half round trips in microseconds, as the verbs tests give them, sorted: a line each of how many
 * of 1000 took no longer, and how long.
 */
static inline void write_quantiles(const char *path, const uint32_t *rtt_ns, uint32_t n)
{
	FILE *f = fopen(path, "w");

	if (!f)
		die(path);
	for (uint32_t q = 1; q < 1000; q++)
		fprintf(f, "%u\t%.3f\n", q, rtt_ns[(uint64_t)n * q / 1000] / 2000.0);
	if (fclose(f))
		die(path);
}

/*
 * Half round trips: median, 99th of 100, in microseconds; the distribution goes to the file that
 * BENCH_QUANTILES names.
 */
static inline void print_half_rtt(uint32_t *rtt_ns, uint32_t n)
{
	if (!n) {
		fprintf(stderr, "no round trip came back\n");
		exit(1);
	}
	qsort(rtt_ns, n, sizeof(*rtt_ns), compare_u32);
	if (getenv("BENCH_QUANTILES"))
		write_quantiles(getenv("BENCH_QUANTILES"), rtt_ns, n);
	printf("%.3f\t%.3f\n", rtt_ns[n / 2] / 2000.0, rtt_ns[(uint64_t)n * 99 / 100] / 2000.0);
}

static inline bool stopped(void)
{
	return atomic_load_explicit(&stop, memory_order_relaxed);
}

/* The end of a rate: units a second, and Gbit/s. */
static inline void print_rate(uint64_t units, uint64_t ns)
{
	atomic_store(&stop, true);
	printf("%.0f\t%.3f\n", (double)units * 1e9 / (double)ns,
	       (double)units * size * 8 / (double)ns);
}

/*
 * Round trips, one at a time, for as long as asked: send() one, await() its echo or give it up.
 * Then their figures.
 */
static inline void measure_rtt(void (*send)(void *arg), bool (*await)(void *arg), void *arg)
{
	static uint32_t rtt_ns[SAMPLES_MAX];
	uint64_t begin = now_ns(), t0;
	uint32_t samples = 0;

	while ((t0 = now_ns()) - begin < (uint64_t)(seconds * 1e9) && samples < SAMPLES_MAX) {
		send(arg);
		if (await(arg) && t0 - begin > WARM_NS)
			rtt_ns[samples++] = (uint32_t)(now_ns() - t0);
	}
	atomic_store(&stop, true);
	print_half_rtt(rtt_ns, samples);
}

/* What a program's ends do: threads, which are given their struct end. */
struct roles {
	const char *program;
	uint32_t size_min, size_max;
	void *(*rate_sender)(void *end), *(*rate_receiver)(void *end);
	void *(*rtt_client)(void *end), *(*rtt_echo)(void *end);
};

/* The whole program, but for what its roles do. Returns its exit status. */
static inline int run_ends(const struct roles *roles, int argc, char **argv)
{
	bool rtt = argc == 7 && !strcmp(argv[1], "rtt");

	if (!rtt && (argc != 6 || strcmp(argv[1], "rate"))) {
		fprintf(stderr,
			"%s rate SIZE SECONDS END END | %s rtt spin|poll SIZE SECONDS END END\n",
			roles->program, roles->program);
		return 2;
	}
	sleeps = !rtt || !strcmp(argv[2], "poll");
	argv += rtt;
	size = (uint32_t)atoi(argv[2]);
	seconds = atof(argv[3]);
	if (size < roles->size_min || size > roles->size_max || seconds <= 0)
		return 2;
	client = end_parse(argv[4]);
	server = end_parse(argv[5]);
	pthread_barrier_init(&ready, NULL, 2);
	pthread_create(&server.thread, NULL, rtt ? roles->rtt_echo : roles->rate_receiver, &server);
	pthread_create(&client.thread, NULL, rtt ? roles->rtt_client : roles->rate_sender, &client);
	pthread_join(client.thread, NULL);
	pthread_join(server.thread, NULL);
	return 0;
}

#endif
