/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Event channels: a queue of events and a descriptor that is readable while the queue is not empty,
 * and only then. Several queues may share a descriptor. The program may set O_NONBLOCK on it.
 */
#ifndef RDMACM_CHANNEL_H
#define RDMACM_CHANNEL_H

#include <pthread.h>

#include "../cm/cm.h"
#include "rdmacm.h"

struct rdmacm_event;
struct rdmacm_id;

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
/*
 * rdma_get_cm_event() for a caller with a hold (cancel_hold()): with a single hold the thread may
 * be cancelled until there is an event. Returns 0 or -errno.
 */
int channel_get(struct rdma_event_channel *channel, struct rdma_cm_event **event);
/* Removes and returns the events of an id, in order. Caller holds the lock. */
struct rdmacm_event *channel_remove(struct rdmacm_channel *ch, const struct rdmacm_id *id);

/* For a forked child. */
void channel_after_fork(void);

/* ---- events ---- */

/*
 * Events for a program: created by event_new(), queued on the id's channel by event_post(),
 * returned by rdma_get_cm_event() and freed by rdma_ack_cm_event(). An id is not destroyed before
 * its delivered events are acknowledged.
 */

struct rdmacm_multicast;

struct rdmacm_event {
	struct rdma_cm_event pub; /* first */
	struct rdmacm_event *next;
	/* The owner. For a CONNECT_REQUEST the listener, while pub.id is the new id. */
	struct rdmacm_id *id;
	struct rdmacm_multicast *mc; /* membership that also counts the event; else NULL */
	/*
	 * Called in the program's thread, without the lock, before the program sees the event.
	 * Updates public fields or a QP's state; may change pub.event and pub.status. Returns 0;
	 * another value drops the event. May be NULL.
	 */
	int (*deliver)(struct rdmacm_event *ev);
	/* Frees resources of an event that is never delivered. Under the lock. May be NULL. */
	void (*discard)(struct rdmacm_event *ev);
	u8 private_data[CM_DATA_MAX];
};

/* status: as for programs. Returns NULL without memory. With or without the lock. */
struct rdmacm_event *event_new(struct rdmacm_id *id, enum rdma_cm_event_type type, int status);
/* Set private_data and its length in the parameters of a connection or a datagram. */
void event_set_conn_data(struct rdmacm_event *ev, const void *data, u32 len);
void event_set_ud_data(struct rdmacm_event *ev, const void *data, u32 len);

/* Queues an event, or discards it if the id is being destroyed. Caller holds the lock. */
void event_post(struct rdmacm_event *ev);
/* event_new() and event_post() for an event without parameters. */
void event_tell(struct rdmacm_id *id, enum rdma_cm_event_type type, int status);

#endif
