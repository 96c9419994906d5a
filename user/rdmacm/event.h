/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events on their way to a program: made by event_new(), queued on the channel of their id by
 * event_post(), handed out by rdma_get_cm_event() and freed by rdma_ack_cm_event(). The id that
 * owns an event does not end before its events that were handed out are acknowledged.
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
	/* Whose event it is. Of a CONNECT_REQUEST the listener, while pub.id is the new id. */
	struct rdmacm_id *id;
	struct rdmacm_multicast *mc; /* it counts for that membership as well; else NULL */
	/*
	 * What is to be done in the program's thread before it sees the event, without the lock:
	 * public fields, a QP's states. It may change pub.event and pub.status. Returns 0; another
	 * value: the event is dropped. NULL: nothing.
	 */
	int (*deliver)(struct rdmacm_event *ev);
	/* Frees what an event has that is never delivered, under the lock. NULL: nothing. */
	void (*discard)(struct rdmacm_event *ev);
	u8 private_data[CM_DATA_MAX];
};

/* status as programs see it. NULL: no memory. Any lock or none. */
struct rdmacm_event *event_new(struct rdmacm_id *id, enum rdma_cm_event_type type, int status);
/* Sets private_data and its length, in the connection's or in the datagram's parameters. */
void event_set_conn_data(struct rdmacm_event *ev, const void *data, u32 len);
void event_set_ud_data(struct rdmacm_event *ev, const void *data, u32 len);

/* Under the lock. An id that is being destroyed gets none: the event is discarded. */
void event_post(struct rdmacm_event *ev);
/* event_new() and event_post(), of an event without parameters. */
void event_tell(struct rdmacm_id *id, enum rdma_cm_event_type type, int status);

#endif
