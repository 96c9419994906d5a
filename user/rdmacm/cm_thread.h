/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The CM thread: one per process, started at first use. It sleeps until a descriptor is readable or
 * a timer expires, and calls back with rdmacm_lock held. Callbacks must not sleep: work that may (a
 * route, a neighbour) runs through cm_work_add() on another thread.
 */
#ifndef RDMACM_CM_THREAD_H
#define RDMACM_CM_THREAD_H

#include "../os/loop.h"
#include "rdmacm.h"

/* All calls need rdmacm_lock, except cm_thread_start(). */

/* Starts the thread, before any other call; may be called repeatedly. Returns 0 or -errno. */
int cm_thread_start(void);

/*
 * The descriptors of the CM thread. A source is called with the lock held, and not after
 * loop_remove(). Its owner closes the descriptor.
 */
extern struct loop cm_loop;

struct cm_timer {
	struct cm_timer *next, *prev;
	u64 at_ns;
	void (*fn)(struct cm_timer *timer); /* called once at expiry, with the lock held */
	bool set;
};
/* The owner sets fn before. Sets or resets the timer; NSEC_NEVER clears it. */
void cm_timer_set(struct cm_timer *timer, u64 at_ns);
void cm_timer_clear(struct cm_timer *timer);

/*
 * Work that may sleep: a pool thread runs do_work without the lock, then done with the lock; the CM
 * thread does so if no thread can be created. The caller keeps the memory until done was called;
 * work cannot be cancelled.
 */
struct cm_work {
	void (*do_work)(struct cm_work *work);
	void (*done)(struct cm_work *work);
	struct cm_work *next;
};
void cm_work_add(struct cm_work *work);
/* Does one piece of work that no thread has taken; false: none. Caller holds the lock. */
bool cm_work_here(void);

/* For a forked child, which has neither thread nor timers. */
void cm_thread_after_fork(void);
void cm_work_after_fork(void);

#endif
