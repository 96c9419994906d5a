/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What every file of librdmacm has: the one lock, and the border with programs.
 *
 * Locks, in the order in which they are taken:
 *   devices_lock  (cm_device.c) opening a device, which may take a second. Nothing else waits for
 *		   it.
 *   rdmacm_lock   all that several threads see: the state of ids, the queues of events, timers,
 *		   and every call into a struct cm. Held for microseconds: never while a program's
 *		   code runs, while the kernel is asked for something that may take time, or while a
 *		   verb runs that may wait (whatever makes, modifies or destroys an object).
 *		   ibv_post_send(), ibv_post_recv() and ibv_poll_cq() of QP 1 are called under it.
 *
 * The public fields of a struct rdma_cm_id belong to the program: only calls of the program and
 * rdma_get_cm_event() write them (an event's deliver function, event.h), never the CM thread.
 *
 * No thread is cancelled while it has a lock (cancel.h).
 *
 * Inside, errors are negative errnos. A program gets -1 and errno.
 *
 * In a forked child everything that was inherited is dead: calls on it answer EIO, what it holds is
 * given back without a word to anybody, and what the child makes anew works.
 */
#ifndef RDMACM_H
#define RDMACM_H

#include <pthread.h>
#include <rdma/rdma_cma.h>

#include "../engine/types.h"
#include "cancel.h"

#define EXPORT __attribute__((visibility("default")))

#define RDMACM_PKEY 0xffff
/* Of a packet, 4.096 us x 2^16: what the kernel's CM takes for RoCE. */
#define RDMACM_PACKET_LIFE 16

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

/* How often this process's ancestors have forked since they loaded the library (exit.c). */
extern u32 rdmacm_generation;

/* What a program is told: 0, or -1 and errno. err: 0 or negative. */
static inline int rdmacm_report(int err)
{
	if (!err)
		return 0;
	errno = -err;
	return -1;
}

#endif
