/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Devices: one context of libibverbs per device and process. It is opened at first use and kept
 * while the device exists, as programs expect of a context that an id shows. A device with
 * connections has QP 1 and a struct cm.
 */
#ifndef RDMACM_CM_DEVICE_H
#define RDMACM_CM_DEVICE_H

#include "../cm/cm.h"
#include "../os/netdev.h"
#include "cm_thread.h"
#include "rdmacm.h"

#define RDMACM_PORT 1 /* the only port of a device */

struct qp1;

struct rdmacm_device {
	struct rdmacm_device *next; /* both locks to change it, either to read it */
	struct ibv_device *ibv;
	u64 guid;
	u32 ifindex;
	u32 refs;  /* held by ids and lists of rdma_get_devices(); rdmacm_lock */
	bool gone; /* rdmacm_lock */
	struct ibv_context *verbs;
	struct ibv_pd *pd;	/* for ids without another PD */
	struct ibv_xrcd *xrcd;	/* created at first use; devices_lock */
	u8 max_initiator_depth, max_responder_resources, ack_delay;
	/* ---- from cm_device_start() on; under rdmacm_lock ---- */
	/* The library's own context: the program reads the asynchronous events of `verbs`. */
	struct ibv_context *own;
	struct cm *cm;
	struct qp1 *qp1;
	struct {
		struct gid gid;
		int index;
		u64 until_ns;
	} recent; /* cm_device_recent_gid_index() */
	struct cm_timer timer;
	struct source async;
};

/*
 * Called without rdmacm_lock; may take long. Each returns 0 or -errno.
 *
 * Opens the device of an interface and takes a reference, for cm_device_put(). -ENODEV: no such
 * device.
 */
int cm_device_get(u32 ifindex, struct rdmacm_device **out);
/*
 * Opens all devices that can be opened, with one reference each: *out is an array for free().
 * Returns their number, or the first device's -errno if there is none.
 */
int cm_device_get_all(struct rdmacm_device ***out);
/* Starts QP 1, struct cm and the CM thread: the device can connect from then on. */
int cm_device_start(struct rdmacm_device *dev);
/* Returns the XRC domain for ids without one. */
int cm_device_xrcd(struct rdmacm_device *dev, struct ibv_xrcd **out);
/* Returns the index of a GID, or -EADDRNOTAVAIL. With or without locks. */
int cm_device_gid_index(const struct rdmacm_device *dev, const struct gid *gid);

/* The same, or a result at most 20 ms old. Under rdmacm_lock. */
int cm_device_recent_gid_index(struct rdmacm_device *dev, const struct gid *gid);

/* Take and release a reference. Under rdmacm_lock. */
void cm_device_hold(struct rdmacm_device *dev);
void cm_device_put(struct rdmacm_device *dev);

/*
 * Processes the results of a call into dev->cm: events to ids, MADs to QP 1, the deadline to the CM
 * thread. Under rdmacm_lock.
 */
void cm_device_turn(struct rdmacm_device *dev);
/* conn_event.c: handles the core's event of a connection or request. Under rdmacm_lock. */
void conn_event(struct rdmacm_device *dev, const struct cm_event *event);

/* Returns the first device; follow next. Under rdmacm_lock. */
struct rdmacm_device *devices_first(void);
void devices_after_fork(void);

/* ---- interfaces ---- */

/*
 * The kernel's state of interfaces, cached until the kernel reports a change; and notification of
 * changes, for ids that listen on all interfaces (listen.c).
 */

/* With or without locks. Returns 0, -ENODEV or -errno. */
int interfaces_get(u32 ifindex, struct netdev *out);
/* The same, for the path MTU that the interface's device currently reports. */
int interfaces_mtu(u32 ifindex, struct ibv_context *verbs, enum ibv_mtu *mtu);
/* The session for routes and neighbours, valid for the process's life. Returns 0 or -errno. */
int interfaces_session(struct netdev_session **out);
/* Returns the index of a GID, same as in verbs, or -EADDRNOTAVAIL. */
int interfaces_gid_index(const struct netdev *dev, const struct gid *gid);

/*
 * Starts reporting changes: the CM thread calls interfaces_changed() with rdmacm_lock. Returns 0 or
 * -errno. Without rdmacm_lock.
 */
int interfaces_follow(void);
void interfaces_changed(void); /* listen.c */

/* Called around fork(), inside of rdmacm_lock. */
void interfaces_before_fork(void);
void interfaces_after_fork(void);
void interfaces_after_fork_child(void);

#endif
