/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Devices: one context of libibverbs a device and process, opened when something needs it and kept
 * while the device exists, as programs expect of a context that an id shows them. A device that
 * connects has QP 1 and a struct cm.
 */
#ifndef RDMACM_CM_DEVICE_H
#define RDMACM_CM_DEVICE_H

#include "../cm/cm.h"
#include "loop.h"
#include "rdmacm.h"

#define RDMACM_PORT 1 /* a device has one */

struct qp1;

struct rdmacm_device {
	struct rdmacm_device *next;
	struct ibv_device *ibv;
	u64 guid;
	u32 ifindex;
	u32 refs; /* ids, lists of rdma_get_devices() */
	bool gone;
	struct ibv_context *verbs;
	struct ibv_pd *pd;	/* what ids have that are given no other */
	struct ibv_xrcd *xrcd;	/* made by the first that needs it */
	u8 max_initiator_depth, max_responder_resources, ack_delay;
	/* ---- from cm_device_start() on; under rdmacm_lock ---- */
	/* A context of our own: a program reads the asynchronous events of the other. */
	struct ibv_context *own;
	struct cm *cm;
	struct qp1 *qp1;
	struct {
		struct gid gid;
		int index;
		u64 until_ns;
	} recent; /* cm_device_recent_gid_index() */
	struct loop_timer timer;
	struct loop_input async;
};

/*
 * Without rdmacm_lock; they may take long. Each returns 0 or -errno.
 *
 * The device of an interface, opened: a reference, which cm_device_put() gives back. -ENODEV: there
 * is none.
 */
int cm_device_get(u32 ifindex, struct rdmacm_device **out);
/*
 * All devices that there are and that can be opened, one reference each: *out is an array for
 * free(). Returns how many, or the first one's -errno if there is none.
 */
int cm_device_get_all(struct rdmacm_device ***out);
/* QP 1, struct cm and the CM thread: the device can connect from here on. */
int cm_device_start(struct rdmacm_device *dev);
/* The XRC domain of ids that are given none. */
int cm_device_xrcd(struct rdmacm_device *dev, struct ibv_xrcd **out);
/* Which of its GIDs that is, or -EADDRNOTAVAIL. Any lock. */
int cm_device_gid_index(const struct rdmacm_device *dev, const struct gid *gid);

/* The same, or what it was just now. Under rdmacm_lock. */
int cm_device_recent_gid_index(struct rdmacm_device *dev, const struct gid *gid);

/* One reference more, one less. Under rdmacm_lock. */
void cm_device_hold(struct rdmacm_device *dev);
void cm_device_put(struct rdmacm_device *dev);

/*
 * Under rdmacm_lock, after each call into dev->cm: its events go to ids, its MADs to QP 1, its
 * deadline to the CM thread.
 */
void cm_device_turn(struct rdmacm_device *dev);
/* conn_event.c: what the core says of a connection or of a request. Under rdmacm_lock. */
void conn_event(struct rdmacm_device *dev, const struct cm_event *event);

/* All devices, by next. Under rdmacm_lock. */
struct rdmacm_device *devices_first(void);
void devices_after_fork(void);

#endif
