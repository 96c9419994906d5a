/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The CM thread: one per process, started at first use. It sleeps until a descriptor is readable or
 * a timer expires, and calls back with rdmacm_lock held. Callbacks must not sleep: work that may (a
 * route, a neighbour) runs through loop_work() on another thread.
 */
#ifndef RDMACM_LOOP_H
#define RDMACM_LOOP_H

#include "../os/loop.h"
#include "rdmacm.h"

/* All calls need rdmacm_lock, except loop_start(). */

/* Starts the thread, before any other call; may be called repeatedly. Returns 0 or -errno. */
int loop_start(void);

/*
 * The descriptors of the CM thread. A source is called with the lock held, and not after
 * loop_remove(). Its owner closes the descriptor.
 */
extern struct loop cm_loop;

struct loop_timer {
	struct loop_timer *next, *prev;
	u64 at_ns;
	void (*fn)(struct loop_timer *timer); /* called once at expiry, with the lock held */
	bool set;
};
/* The owner sets fn before. Sets or resets the timer; NSEC_NEVER clears it. */
void loop_set_timer(struct loop_timer *timer, u64 at_ns);
void loop_clear_timer(struct loop_timer *timer);

/*
 * Work that may sleep: a pool thread runs do_work without the lock, then done with the lock; the CM
 * thread does so if no thread can be created. The caller keeps the memory until done was called;
 * work cannot be cancelled.
 */
struct loop_work {
	void (*do_work)(struct loop_work *work);
	void (*done)(struct loop_work *work);
	struct loop_work *next;
};
void loop_work(struct loop_work *work);
/* Does one piece of work that no thread has taken; false: none. Caller holds the lock. */
bool loop_work_here(void);

/* For a forked child, which has neither thread nor timers. */
void loop_after_fork(void);
void work_after_fork(void);

#endif
