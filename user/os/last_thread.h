/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The end of a process whose main thread has called pthread_exit(3). The C library ends it with its
 * last thread, but threads of this library never end by themselves.
 */
#ifndef OS_LAST_THREAD_H
#define OS_LAST_THREAD_H

/*
 * For a constructor. If the main thread exits later, the process ends by exit(0), as by the C
 * library, within LAST_THREAD_LOOK_MS after the last thread that is not one of ours. Without /proc
 * it does not end. Does nothing in a process that loads the library in another thread.
 */
void last_thread_register(void);
#define LAST_THREAD_LOOK_MS 100

#endif
