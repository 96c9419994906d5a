/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads of our own in the application's process. */
#ifndef OS_THREAD_H
#define OS_THREAD_H

#include <pthread.h>

/*
 * Starts a thread that runs fn(arg). The application's signals are for its own threads and are
 * blocked in this one, except SIGSEGV and SIGBUS, by which a fault of its own is known (see
 * run/fault.h).
 *
 * A real-time policy and a single CPU of the thread that calls are not inherited: an application
 * thread that spins at a real-time priority would keep this one from running. The policy becomes
 * SCHED_OTHER. If the caller is bound to a single CPU, the CPUs become all others that the process
 * may use; a wider mask is inherited.
 *
 * Returns 0 or -errno. The caller joins or detaches the thread.
 */
int thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg);

#endif
