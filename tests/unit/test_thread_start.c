/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * The policy and CPUs of the library's threads, for makers with any policy and mask: the functions
 * of glibc that ask and set them are replaced, so the machine's CPUs do not matter.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../user/os/thread.h"

static struct {
	cpu_set_t makers, set; /* set: as given to the thread */
	int policy;
	bool has_set, has_policy;
} kernel;

int pthread_getaffinity_np(pthread_t thread, size_t n, cpu_set_t *set)
{
	*set = kernel.makers;
	return 0;
}

int pthread_setaffinity_np(pthread_t thread, size_t n, const cpu_set_t *set)
{
	kernel.set = *set;
	kernel.has_set = true;
	return 0;
}

int sched_getscheduler(pid_t pid)
{
	return kernel.policy;
}

int pthread_setschedparam(pthread_t thread, int policy, const struct sched_param *param)
{
	assert_int_equal(policy, SCHED_OTHER);
	assert_int_equal(param->sched_priority, 0);
	kernel.has_policy = true;
	return 0;
}

static void *run(void *arg)
{
	*(bool *)arg = true;
	return NULL;
}

static void start__of_makers(void **state)
{
	static const struct {
		const char *name;
		int policy;
		unsigned int cpus; /* the maker's, bit n for CPU n */
		bool others, resets;
	} rows[] = {
		{ "one CPU", SCHED_OTHER, 1, true, false },
		{ "one CPU in real time", SCHED_FIFO, 4, true, true },
		{ "two CPUs", SCHED_OTHER, 3, false, false },
		{ "two CPUs in real time", SCHED_FIFO, 3, true, true },
		{ "round robin", SCHED_RR, 3, true, true },
		{ "its children are not", SCHED_RR | SCHED_RESET_ON_FORK, 3, true, true },
		{ "idle", SCHED_IDLE, 3, false, false },
		{ "batch", SCHED_BATCH, 1, true, false },
	};
	pthread_t thread;
	bool ran;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memset(&kernel, 0, sizeof(kernel));
		kernel.policy = rows[i].policy;
		for (int cpu = 0; cpu < 8; cpu++)
			if (rows[i].cpus >> cpu & 1)
				CPU_SET(cpu, &kernel.makers);
		ran = false;
		assert_int_equal(thread_start(&thread, run, &ran), 0);
		pthread_join(thread, NULL);
		if (!ran || kernel.has_set != rows[i].others || kernel.has_policy != rows[i].resets)
			fail_msg("%s", rows[i].name);
		for (int cpu = 0; kernel.has_set && cpu < CPU_SETSIZE; cpu++)
			if (CPU_ISSET(cpu, &kernel.set) == !!CPU_ISSET(cpu, &kernel.makers))
				fail_msg("%s: CPU %d", rows[i].name, cpu);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(start__of_makers),
	};

	return cmocka_run_group_tests_name("thread_start", tests, NULL, NULL);
}
