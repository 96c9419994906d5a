/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Waiting calls that a signal may end, as for read(2). */
#ifndef OS_SIGNALS_H
#define OS_SIGNALS_H

#include <stdbool.h>

/* Returns whether read(2) would continue after the handler that has just ended a poll(2). */
bool signals_restart(void);

/*
 * Signals for events: O_ASYNC, F_SETOWN and F_SETSIG of fcntl(2) on a program's descriptor.
 *
 * The kernel sends them for sockets, but not for eventfds and epoll sets: there it accepts O_ASYNC
 * without effect, and stores the owner. So the descriptor is an eventfd or epoll set until an event
 * finds an owner set. Then it is replaced, under the same number, by one end of a socket pair, and
 * the kernel does the rest.
 */

struct sigio;

/* Returns whether the program has set an owner for this descriptor's signals. One system call. */
bool sigio_is_asked(int fd);
/*
 * Replaces fd by a socket with its owner, signal, O_NONBLOCK and FD_CLOEXEC, and with O_ASYNC. kept
 * is another descriptor of fd's old file; the caller keeps both. Starts a thread. fd is then
 * readable; sigio_raise() follows. Returns NULL without memory, descriptor or thread; fd is then
 * unchanged.
 */
struct sigio *sigio_start(int fd, int kept);
/*
 * fd is readable from shortly after sigio_raise() until sigio_clear(), and each raise sends a
 * signal. For a raise that is cleared first, fd is briefly readable; sigio_settle() waits until
 * that is over. The thread sends, so no handler runs in a thread that holds locks here. Any thread;
 * not a cancellation point.
 */
void sigio_raise(struct sigio *s);
void sigio_clear(struct sigio *s);
/* The caller holds no lock that a signal handler may need; s may be NULL. No cancellation point. */
void sigio_settle(struct sigio *s);
/* Ends the thread. Not a cancellation point. */
void sigio_stop(struct sigio *s);
/* Frees s in a forked child, which has no such thread; the parent's is not affected. */
void sigio_abandon(struct sigio *s);

#endif
