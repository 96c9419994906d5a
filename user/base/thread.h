/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads of our own in the application's process. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/*
 * Starts a thread that runs fn(arg). The application's signals are for its own threads and are
 * blocked in this one, except SIGSEGV and SIGBUS, by which a fault of its own is known (see
 * shard/fault.h).
 *
 * The policy and the CPUs of the thread that calls are not inherited: an application thread that
 * spins at a real-time priority would keep this one from running. The policy becomes SCHED_OTHER
 * instead of a real-time one. The CPUs become all that the process may use, except the caller's if
 * the caller is bound to a single one.
 *
 * Returns 0 or -errno. The caller joins or detaches the thread.
 */
int thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg);

#endif
