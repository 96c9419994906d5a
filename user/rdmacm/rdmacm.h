/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Common to all files of librdmacm: the one lock, and the interface to programs.
 *
 * Locks, in the order in which they are taken:
 *   devices_lock  (cm_device.c) opening a device, which may take a second. Nothing else waits for
 *		   it.
 *   rdmacm_lock   state shared by threads: ids, event queues, timers, and every call into a
 *		   struct cm. Held for microseconds: never while a program's code runs, or during
 *		   a query of the kernel or a verb that may take time (creating, modifying or
 *		   destroying an object). ibv_post_send(), ibv_post_recv() and ibv_poll_cq() of
 *		   QP 1 are called under it.
 *
 * The public fields of a struct rdma_cm_id belong to the program: only calls of the program and
 * rdma_get_cm_event() write them (an event's deliver function, channel.h), never the CM thread.
 *
 * No thread is cancelled while it holds a lock (cancel_hold()).
 *
 * Inside, errors are negative errnos. A program gets -1 and errno.
 *
 * In a forked child all inherited objects are dead: calls on them fail with EIO, and destroying
 * them frees their memory without notifying any peer. New objects of the child work.
 */
#ifndef RDMACM_H
#define RDMACM_H

#include <pthread.h>
#include <rdma/rdma_cma.h>

#include "../engine/types.h"

#define EXPORT __attribute__((visibility("default")))

#define RDMACM_PKEY 0xffff
/* Packet life time, 4.096 us x 2^16, as in the kernel's CM for RoCE. */
#define RDMACM_PACKET_LIFE 16

/*
 * pthread_cancel(): a call of the library disables cancellation while it holds a lock, an event or
 * an incomplete object. It enables cancellation only while it sleeps. Holds nest.
 */

/* Disables the cancellation of this thread. */
void cancel_hold(void);
/* Ends a hold; the last one restores the program's cancellation state. */
void cancel_release(void);
/* Holds until the end of the block: the first line of each exported call, except simple queries. */
#define CANCEL_HELD                                                       \
	__attribute__((cleanup(cancel_block_ends), unused)) bool cancel_is_held = \
		(cancel_hold(), true)
/* Lets a pending cancellation take effect, but not inside a second hold. */
void cancel_point(void);
/* Restores the program's cancellation state for a sleep, but not inside a second hold. */
void cancel_open(void);
/* Ends cancel_open(). */
void cancel_shut(void);

static inline void cancel_block_ends(const bool *is_held)
{
	cancel_release();
}

extern pthread_mutex_t rdmacm_lock;

static inline void rdmacm_enter(void)
{
	cancel_hold();
	pthread_mutex_lock(&rdmacm_lock);
}

static inline void rdmacm_leave(void)
{
	pthread_mutex_unlock(&rdmacm_lock);
	cancel_release();
}

/* Forks since the library was loaded, in this process and its ancestors (id.c). */
extern u32 rdmacm_generation;

/* Reports a result to a program: 0, or -1 with errno. err: 0 or negative. */
static inline int rdmacm_report(int err)
{
	if (!err)
		return 0;
	errno = -err;
	return -1;
}

#endif
