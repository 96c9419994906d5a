/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Event channels: a queue of events and a descriptor that is readable exactly while the queue is
 * not empty, or one of the queues that share the descriptor. O_NONBLOCK of the descriptor is the
 * program's to choose.
 */
#ifndef RDMACM_CHANNEL_H
#define RDMACM_CHANNEL_H

#include <pthread.h>

#include "event.h"
#include "rdmacm.h"

struct rdmacm_channel {
	struct rdma_event_channel pub; /* first */
	/* who acknowledged an event of it last, and when; under the lock */
	pthread_t acked_by;
	u64 acked_ns;
	/* behind what free() writes to: see channel_await_waiter() for those that come too late */
	struct rdmacm_event *head, **tail;
	u32 generation;
	_Atomic u32 waiting; /* threads that wait for an event */
	/* of a synchronous id, and the descriptor is its own; or is that of channel.h */
	bool sync, common;
};

static inline struct rdmacm_channel *to_channel(struct rdma_event_channel *channel)
{
	return container_of(channel, struct rdmacm_channel, pub);
}

/*
 * rdma_create_event_channel(), or the channel of a synchronous id. NULL with errno set. Without the
 * lock.
 */
struct rdma_event_channel *channel_new(bool sync);
/* Under the lock. */
void channel_append(struct rdmacm_channel *ch, struct rdmacm_event *ev);
/* Under the lock: the calling thread is done with an event of it. */
void channel_acked(struct rdmacm_channel *ch);
/*
 * rdma_get_cm_event(), in a hold of the caller's (cancel.h): with a single one the thread may be
 * cancelled until there is an event. Returns 0 or -errno.
 */
int channel_get(struct rdma_event_channel *channel, struct rdma_cm_event **event);
/* Under the lock: takes the events of an id away, in their order. */
struct rdmacm_event *channel_remove(struct rdmacm_channel *ch, const struct rdmacm_id *id);

/*
 * The descriptor that event channels of synchronous ids share once COMMON_FD_PART of the process's
 * descriptors are such channels' own: readable while any of the channels has an event. All under
 * rdmacm_lock, but common_fd_wait().
 */

struct rdmacm_channel;

#define COMMON_FD_PART 16 /* of RLIMIT_NOFILE */

/* The descriptor, for one channel more; or -errno. */
int common_fd_get(void);
/* One channel less. */
void common_fd_put(struct rdmacm_channel *ch);
/* An event of the channel: its waiters wake. */
void common_fd_raise(const struct rdmacm_channel *ch);
/* n events of a channel have been taken. */
void common_fd_lower(u32 n);
/*
 * Sleeps until the channel has an event. Returns 0 or -EINTR. Never returns once the channel has
 * been destroyed. The caller has a hold (cancel.h); with a single one its thread may be cancelled.
 */
int common_fd_wait(struct rdmacm_channel *ch);
void common_fd_after_fork(void);

#endif
