/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The library's threads in the application's process. */
#ifndef OS_THREAD_H
#define OS_THREAD_H

#include <pthread.h>

#include "../engine/types.h"

/*
 * Starts a thread that runs fn(arg). All signals are blocked in it, as the application's are for
 * its own threads, except SIGSEGV and SIGBUS, which report memory faults of this thread
 * (run/fault.h).
 *
 * A real-time policy and a single CPU of the caller are not inherited: an application thread that
 * spins at a real-time priority would keep this one from running. The policy becomes SCHED_OTHER.
 * If the caller is bound to a single CPU, or has a real-time policy, the CPUs become all others
 * that the process may use, if there are any; the wider mask of another caller is inherited.
 *
 * Returns 0 or -errno. The caller joins or detaches the thread.
 */
int thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg);

/*
 * Disables cancellation of the calling thread, for code with cancellation points that owns
 * descriptors or memory. Returns the former state, for thread_restore_cancel().
 */
static inline int thread_disable_cancel(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}
static inline void thread_restore_cancel(int before)
{
	pthread_setcancelstate(before, NULL);
}

/*
 * Locks, at the latest at until_ns of CLOCK_MONOTONIC. Returns 0, or an error of
 * pthread_mutex_timedlock(3).
 */
int thread_lock_until(pthread_mutex_t *lock, s64 until_ns);

#endif
