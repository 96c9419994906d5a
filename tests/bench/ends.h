/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two ends of a baseline in one process: a thread each, in a network namespace and on a CPU of its own. Shared by raw_xsk.c and udp.c, which own
 * what the ends do. Functions here end the program when the machine refuses.
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

struct end {
	const char *netns;	/* path of its network namespace */
	const char *ifname;
	int cpu;
	pthread_t thread;
};

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

/* Half round trips in microseconds, as the verbs tests give them, sorted: a line each of how many of 1000 took no longer, and how long. */
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

/* Half round trips: median, 99th of 100, in microseconds; the distribution goes to the file that BENCH_QUANTILES names. */
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

#endif
