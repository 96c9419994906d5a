/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The private struct of a struct rdma_cm_id. All fields except pub are under rdmacm_lock, or are
 * written by calls from one program thread at a time (rdma_cm(7): calls on one id do not race).
 *
 * Writers: id.c creates and destroys ids; bind.c, resolve.c and route.c write addresses, device,
 * path and options; listen.c, connect.c and conn_event.c write the connection.
 */
#ifndef RDMACM_ID_H
#define RDMACM_ID_H

#include "../verbs/xroce_cm.h"
#include "channel.h"
#include "cm_device.h"
#include "rdmacm.h"

/* As in the kernel's CM: a call in the wrong state is EINVAL. */
enum id_state {
	ID_IDLE,
	ID_ADDR_BOUND,
	ID_ADDR_QUERY,
	ID_ADDR_RESOLVED,
	ID_ROUTE_QUERY,
	ID_ROUTE_RESOLVED,
	ID_CONNECT,	   /* from rdma_connect(), or a request, until disconnected */
	ID_DISCONNECT,
	ID_LISTEN,
	ID_DEVICE_REMOVAL, /* the device is gone; the id can only be destroyed */
	ID_DESTROYING,
};

/* Parameters of this side and the peer from REQ and REP, for moving a QP. */
struct id_connection {
	u32 qpn, remote_qpn; /* qpn: of a QP that the program created itself */
	u32 send_psn, receive_psn;
	u8 responder_resources, initiator_depth;
	u8 retry_count, rnr_retry_count;
	u8 ack_timeout, target_ack_delay;
	u8 flow_control, srq;
	enum ibv_mtu mtu;
};

struct id_listener;  /* listen.c */
struct addr_resolve; /* resolve.c: a resolution in progress */
struct addr_binding; /* bind.c: the port of the id */
struct info_question; /* resolve_info.c: a running rdma_resolve_addrinfo() */

struct rdmacm_id {
	struct rdma_cm_id pub; /* first */
	u32 generation;
	enum id_state state;
	bool sync; /* the channel belongs to the id */
	bool unaccepted;     /* of a request: no events before rdma_accept() */
	bool connect_failed; /* reported: later events of the same connection are dropped */

	/* ---- events ---- */
	u32 queued;	       /* on the channel */
	u32 delivered, acked;
	pthread_cond_t all_acked;

	/* ---- addresses (bind.c, resolve.c) ---- */
	struct rdmacm_device *device; /* a reference; NULL: not bound to a device */
	/* The current addresses; the program sees them in pub.route.addr after an event. */
	struct sockaddr_storage src, dst;
	struct cm_path path;   /* of a bound id: local; of a resolved id: all fields */
	enum ibv_mtu path_mtu; /* set by rdma_resolve_route() */
	struct addr_resolve *resolve;
	struct addr_binding *binding;
	struct rdmacm_multicast *memberships;
	struct info_question *info_question;
	struct rdma_addrinfo *info; /* its result until rdma_query_addrinfo() */
	u8 mac[6];	/* of the device's interface */
	u8 peer_mac[6]; /* of the next hop to the peer, from the last resolution; 0: not known */
	u32 pins;  /* library threads that use the id without the lock */

	/* ---- options ---- */
	u8 tos;
	bool tos_set, reuseaddr, afonly, afonly_set, ack_timeout_set;
	u8 ack_timeout;

	/* ---- connection ---- */
	struct cm_conn *conn;
	struct id_connection param;
	u32 qkey; /* of UD; 0: not set */
	struct id_listener *listeners; /* one per device */
	u32 backlog;
	struct ibv_ece local_ece, remote_ece;
	/* from rdma_create_ep() */
	struct ibv_qp_init_attr *qp_init_attr;
	void *connect;
	size_t connect_len;

	/* ---- all ids ---- */
	struct rdmacm_id *all_next, **all_prev;
};

static inline struct rdmacm_id *to_id(struct rdma_cm_id *id)
{
	return container_of(id, struct rdmacm_id, pub);
}

/*
 * Every call on an id checks this first. Returns 0, or -EIO for an id of the parent before a fork.
 */
static inline int id_check(const struct rdmacm_id *id)
{
	return id->generation == rdmacm_generation ? 0 : -EIO;
}

/* Moves from one state to another; false if the id is in a third. Caller holds the lock. */
static inline bool id_move(struct rdmacm_id *id, enum id_state from, enum id_state to)
{
	if (id->state != from)
		return false;
	id->state = to;
	return true;
}

/* All ids of this process, newest first. Under the lock. */
extern struct rdmacm_id *id_all;

/* Creates an id in ID_IDLE, not in id_all. channel NULL: a synchronous id. Returns 0 or -errno. */
int id_new(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
	   enum ibv_qp_type type, struct rdmacm_id **out);
/* Adds the id to id_all. Caller holds the lock. */
void id_list(struct rdmacm_id *id);
/* Destroys an id without unacknowledged events. Caller holds the lock; it is released meanwhile. */
void id_end(struct rdmacm_id *id);
/*
 * Completes a call in the program's thread, without the lock: a synchronous id waits for its event,
 * stored in pub.event. Returns 0 or the event's -errno.
 */
int id_complete(struct rdmacm_id *id);
/* In the program's thread: sets pub.verbs, pub.pd and pub.port_num by id->device. 0 or -errno. */
int id_show_device(struct rdmacm_id *id);

/*
 * listen.c: adds a new device to a listening id. Does nothing if the id is not in ID_LISTEN, or
 * already listens there. Caller holds the lock.
 */
void listen_at(struct rdmacm_id *id, struct rdmacm_device *dev);

/* ---- bind.c and multicast.c, for id.c, listen.c, channel.c and resolve.c ---- */

/*
 * Releases port, resolution and memberships of an id that ends. Caller holds the lock, which may be
 * released meanwhile.
 */
void addr_forget(struct rdmacm_id *id);
/*
 * Prepares rdma_listen(): binds an idle id to any address, and makes the port exclusive. Without
 * the lock. Returns 0 or -errno without changes.
 */
int addr_listen(struct rdmacm_id *id);
/* Counts an acknowledged event of a membership. Caller holds the lock. */
void multicast_acked(struct rdmacm_multicast *mc);
/* True if the listener's address or wildcard is served on this device. Caller holds the lock. */
bool addr_is_of_device(const struct rdmacm_id *id, const struct rdmacm_device *dev);

/* resolve_info.c: abandons the running question of an id that ends. Caller holds the lock. */
void info_forget(struct rdmacm_id *id);

/* ---- connections and listeners: under rdmacm_lock ---- */

/* As in the kernel's cma: response timeout 4.096 us x 2^n, and retries of a MAD. */
#define CONN_RESPONSE_TIMEOUT 20
#define CONN_MAX_RETRIES      15
#define CONN_BACKLOG_MAX      1024
/* REQs to a peer without a listener: over 254 ms, by cm_ask_again(). */
#define CONN_ASKS	      7
/* Time for the program's answer, reported in an MRA to a peer that repeats its message: 68 s. */
#define CONN_SERVICE_TIMEOUT  24

/* A device on which an id listens. */
struct id_listener {
	struct id_listener *next;
	struct rdmacm_device *device; /* a reference */
	struct cm_listener *cm;
	struct xroce_cm_service shown;
};

/* listen.c */
/* Stops listening at dev; NULL: at all devices. */
void listen_leave(struct rdmacm_id *id, const struct rdmacm_device *dev);
/* conn_event.c: releases the core's connection and notifies the peer as needed. */
void conn_close(struct rdmacm_id *id);
/* Returns the service that an id listens to, or connects to at its destination's port. */
u64 conn_service_id(const struct rdmacm_id *id, const struct sockaddr_storage *address);
/* Fetches the first random number. Returns 0, or -errno if the kernel refuses it. */
int conn_random_start(void);
u64 conn_random(void);
/* Returns a random 24-bit PSN. */
u32 conn_new_psn(void);

/*
 * connect.c: handles a REP: moves the QP and sends the RTU. In the program's thread, without the
 * lock. Returns 0 or -errno.
 */
int conn_complete(struct rdmacm_id *id);

/* qp.c, in the program's thread without the lock. Return 0 or -errno; without a QP, do nothing. */
int qp_ready(struct rdmacm_id *id, u8 responder_resources, u8 initiator_depth);
void qp_fail(struct rdmacm_id *id);
void qp_after_fork(void);

#endif
