/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events for a program: created by event_new(), queued on the id's channel by event_post(),
 * returned by rdma_get_cm_event() and freed by rdma_ack_cm_event(). An id is not destroyed before
 * its delivered events are acknowledged.
 */
#ifndef RDMACM_EVENT_H
#define RDMACM_EVENT_H

#include "../cm/cm.h"
#include "rdmacm.h"

struct rdmacm_id;
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
