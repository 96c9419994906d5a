/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Waiting calls that a signal may end, as read(2) has it. */
#ifndef OS_SIGNALS_H
#define OS_SIGNALS_H

#include <stdbool.h>

/* A handler has ended a wait in poll(2): would read(2) go on waiting? */
bool signals_restart(void);

/*
 * Signals for events: O_ASYNC, F_SETOWN and F_SETSIG of fcntl(2) on a descriptor of the program's.
 *
 * The kernel sends them for sockets, and for eventfds and epoll sets it does not: there it takes
 * O_ASYNC without an error and forgets it, and keeps the owner. So a descriptor is what suits
 * programs that ask for no signal until an owner is found at an event, and from then on one end of
 * a pair of sockets, under the same number: the kernel does all the rest.
 */

struct sigio;

/* Has the program named an owner of this descriptor's signals? Costs a system call. */
bool sigio_is_asked(int fd);
/*
 * Puts a socket in the place of fd, with its owner, signal, O_NONBLOCK and FD_CLOEXEC, and with
 * O_ASYNC. kept is another descriptor of the file that fd was, and stays the caller's, as fd does.
 * Starts a thread. fd is readable; sigio_raise() follows. NULL: no memory, no descriptor or no
 * thread; fd is what it was.
 */
struct sigio *sigio_start(int fd, int kept);
/*
 * fd is readable from a moment after sigio_raise() until sigio_clear(), and each raise sends a
 * signal: for those that are cleared before, fd is readable for a moment, which sigio_settle()
 * waits for. The thread sends, so that no handler runs in a thread that holds locks here. Any
 * thread; not a cancellation point.
 */
void sigio_raise(struct sigio *s);
void sigio_clear(struct sigio *s);
/*
 * The caller holds no lock that a handler of the signal may need; s may be NULL. Not a cancellation
 * point.
 */
void sigio_settle(struct sigio *s);
/* Ends the thread. Not a cancellation point. */
void sigio_stop(struct sigio *s);
/* The same in a forked child, which has no such thread: the parent's stays as it is. */
void sigio_abandon(struct sigio *s);

#endif
