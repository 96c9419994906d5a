/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include "thread.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../engine/types.h"

struct start {
	void *(*fn)(void *arg);
	void *arg;
	pthread_mutex_t setting; /* held by the creator until the thread may run fn */
};

static void *thread_main(void *arg)
{
	const struct start start = *(struct start *)arg;

	pthread_mutex_lock(&((struct start *)arg)->setting);
	pthread_mutex_unlock(&((struct start *)arg)->setting);
	pthread_mutex_destroy(&((struct start *)arg)->setting);
	free(arg);
	return start.fn(start.arg);
}

/* Asks the kernel: pthread_getschedparam() does not see changes of the policy by chrt(1). */
static bool thread_is_real_time(void)
{
	const int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;

	return policy == SCHED_FIFO || policy == SCHED_RR;
}

/* Replaces only real-time policies, as leaving SCHED_IDLE may need a privilege. */
static void thread_set_policy(pthread_t thread, bool is_real_time)
{
	const struct sched_param none = { .sched_priority = 0 };

	if (is_real_time)
		pthread_setschedparam(thread, SCHED_OTHER, &none);
}

/*
 * If the creator has a single CPU, or is a real-time thread and might fill its CPUs, sets all CPUs
 * but the creator's. The kernel removes the CPUs that the control group forbids. If none is left,
 * the kernel refuses and the thread stays on the creator's CPUs.
 */
static void thread_set_cpus(pthread_t thread, bool is_real_time)
{
	cpu_set_t makers, cpus;

	if (pthread_getaffinity_np(pthread_self(), sizeof(makers), &makers) ||
	    (!is_real_time && CPU_COUNT(&makers) != 1))
		return;
	memset(&cpus, 0xff, sizeof(cpus));
	CPU_XOR(&cpus, &cpus, &makers);
	pthread_setaffinity_np(thread, sizeof(cpus), &cpus);
}

int thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg)
{
	struct start *start = malloc(sizeof(*start));
	const bool is_real_time = thread_is_real_time();
	sigset_t all, before;
	int err;

	if (!start)
		return -ENOMEM;
	*start = (struct start){ .fn = fn, .arg = arg };
	pthread_mutex_init(&start->setting, NULL);
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_mutex_lock(&start->setting);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	err = -pthread_create(thread, NULL, thread_main, start);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err) {
		thread_set_policy(*thread, is_real_time);
		thread_set_cpus(*thread, is_real_time);
	}
	pthread_mutex_unlock(&start->setting);
	if (err) {
		pthread_mutex_destroy(&start->setting);
		free(start);
	}
	return err;
}

int thread_lock_until(pthread_mutex_t *lock, s64 until_ns)
{
#ifdef __SANITIZE_THREAD__
	/* for TSan of gcc 12 pthread_mutex_clocklock() is no lock */
	struct timespec now;

	while (pthread_mutex_trylock(lock)) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec * (s64)NSEC_PER_SEC + now.tv_nsec >= until_ns)
			return ETIMEDOUT;
		nanosleep(&(struct timespec){ .tv_nsec = NSEC_PER_MSEC }, NULL);
	}
	return 0;
#else
	const struct timespec until = { .tv_sec = until_ns / (s64)NSEC_PER_SEC,
					.tv_nsec = until_ns % (s64)NSEC_PER_SEC };

	return pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, &until);
#endif
}
