/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The CM thread: one a process, started by the first that needs it. It sleeps until a descriptor is
 * readable or a timer has run out, and calls back with rdmacm_lock held. What it calls must not
 * sleep: work that may (a route, a neighbour) is loop_work's, on a thread of its own.
 */
#ifndef RDMACM_LOOP_H
#define RDMACM_LOOP_H

#include "rdmacm.h"

/* All of these under rdmacm_lock, but loop_start(). */

/* 0 or -errno. Before anything else; any number of times. */
int loop_start(void);

struct loop_input {
	struct loop_input *next;
	void (*fn)(struct loop_input *input); /* readable, or hung up; the lock is held */
	int fd;
};
/* 0 or -errno */
int loop_add(struct loop_input *input);
/* fn is not called after this. The caller closes the descriptor. */
void loop_remove(struct loop_input *input);

struct loop_timer {
	struct loop_timer *next, *prev;
	u64 at_ns;
	void (*fn)(struct loop_timer *timer); /* once, when its time has come; the lock is held */
	bool set;
};
/* fn is set by the owner before. A timer that is set already is set anew; NSEC_NEVER clears it. */
void loop_set_timer(struct loop_timer *timer, u64 at_ns);
void loop_clear_timer(struct loop_timer *timer);

/*
 * Work that may sleep: do_work runs on a thread of its own pool without the lock, then done on the
 * same thread with it; on the CM thread if no thread can be made. The memory is the caller's until
 * done was called; it cannot be cancelled, so whoever ends before leaves a note in it.
 */
struct loop_work {
	void (*do_work)(struct loop_work *work);
	void (*done)(struct loop_work *work);
	struct loop_work *next;
};
void loop_work(struct loop_work *work);
/* Does one piece of work that no thread has taken yet. False: there was none. The lock is held. */
bool loop_work_here(void);

/* In a forked child: there is neither thread nor timer. */
void loop_after_fork(void);
void work_after_fork(void);

#endif
