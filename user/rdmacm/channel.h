/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Event channels: a queue of events and a descriptor that is readable while the queue is not empty,
 * and only then. Several queues may share a descriptor. The program may set O_NONBLOCK on it.
 */
#ifndef RDMACM_CHANNEL_H
#define RDMACM_CHANNEL_H

#include <pthread.h>

#include "event.h"
#include "rdmacm.h"

struct rdmacm_channel {
	struct rdma_event_channel pub; /* first */
	/* the thread that last acknowledged an event of the channel, and when; under the lock */
	pthread_t acked_by;
	u64 acked_ns;
	/* beyond the bytes that free() overwrites: for late waiters, see channel_await_waiter() */
	struct rdmacm_event *head, **tail;
	u32 generation;
	_Atomic u32 waiting; /* threads waiting for an event */
	/* of a synchronous id: with its own descriptor, or with the shared one below */
	bool sync, common;
};

static inline struct rdmacm_channel *to_channel(struct rdma_event_channel *channel)
{
	return container_of(channel, struct rdmacm_channel, pub);
}

/*
 * Makes the channel for rdma_create_event_channel() or a synchronous id. Returns NULL with errno
 * set on failure. Without the lock.
 */
struct rdma_event_channel *channel_new(bool sync);
/* Queues an event. Caller holds the lock. */
void channel_append(struct rdmacm_channel *ch, struct rdmacm_event *ev);
/* Records that the calling thread acknowledged an event. Caller holds the lock. */
void channel_acked(struct rdmacm_channel *ch);
/*
 * rdma_get_cm_event() for a caller with a hold (cancel.h): with a single hold the thread may be
 * cancelled until there is an event. Returns 0 or -errno.
 */
int channel_get(struct rdma_event_channel *channel, struct rdma_cm_event **event);
/* Removes and returns the events of an id, in order. Caller holds the lock. */
struct rdmacm_event *channel_remove(struct rdmacm_channel *ch, const struct rdmacm_id *id);

/*
 * The descriptor shared by event channels of synchronous ids, used once 1/COMMON_FD_PART of the
 * process's descriptors are such channels' separate ones. Readable while any of the channels has an
 * event. All calls need rdmacm_lock, except common_fd_wait().
 */

struct rdmacm_channel;

#define COMMON_FD_PART 16 /* of RLIMIT_NOFILE */

/* Adds a channel. Returns the descriptor or -errno. */
int common_fd_get(void);
/* Removes a channel. */
void common_fd_put(struct rdmacm_channel *ch);
/* Wakes the channel's waiters for a new event. */
void common_fd_raise(const struct rdmacm_channel *ch);
/* Removes n events of a channel that were taken. */
void common_fd_lower(u32 n);
/*
 * Sleeps until the channel has an event. Returns 0 or -EINTR. Never returns once the channel has
 * been destroyed. The caller has a hold (cancel.h); with a single hold its thread may be cancelled.
 */
int common_fd_wait(struct rdmacm_channel *ch);
void common_fd_after_fork(void);

#endif
