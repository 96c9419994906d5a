/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads of our own in the application's process. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/*
 * Start a thread that runs fn(arg). The application's signals are for its own threads and are
 * blocked in this one, but for SIGSEGV and SIGBUS, by which a fault of its own is known (see
 * shard/fault.h). Returns 0 or -errno. The caller joins it.
 */
int thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg);

#endif
