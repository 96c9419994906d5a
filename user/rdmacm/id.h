/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What stands behind a struct rdma_cm_id. All but pub is under rdmacm_lock, or is written by the
 * calls of one program's thread at a time (as rdma_cm(7) has it: calls on one id do not race).
 *
 * Who writes what: id.c makes and ends ids; addr*.c writes the addresses, the device, the path and
 * the options; listen.c, connect.c and the other files of connections write the connection.
 */
#ifndef RDMACM_ID_H
#define RDMACM_ID_H

#include "channel.h"
#include "cm_device.h"
#include "rdmacm.h"

/* As the kernel's CM has them: a call out of its state is EINVAL. */
enum id_state {
	ID_IDLE,
	ID_ADDR_BOUND,
	ID_ADDR_QUERY,
	ID_ADDR_RESOLVED,
	ID_ROUTE_QUERY,
	ID_ROUTE_RESOLVED,
	ID_CONNECT,	   /* from rdma_connect(), or a request, to a disconnection */
	ID_DISCONNECT,
	ID_LISTEN,
	ID_DEVICE_REMOVAL, /* its device has gone; only its end is left */
	ID_DESTROYING,
};

/* What this side and the peer said in REQ and REP: what a QP is moved by. */
struct id_connection {
	u32 qpn, remote_qpn; /* qpn: of a QP of the program's own */
	u32 send_psn, receive_psn;
	u8 responder_resources, initiator_depth;
	u8 retry_count, rnr_retry_count;
	u8 ack_timeout, target_ack_delay;
	u8 flow_control, srq;
	enum ibv_mtu mtu;
};

struct id_listener;  /* listen.c */
struct addr_resolve; /* addr: a resolution under way */
struct addr_binding; /* addr: the port that it has */

struct rdmacm_id {
	struct rdma_cm_id pub; /* first */
	u32 generation;
	enum id_state state;
	bool sync; /* the channel is its own */
	bool unaccepted;     /* a request's: it is told nothing before rdma_accept() */
	bool connect_failed; /* told: nothing that comes of the same connection is told any more */

	/* ---- events ---- */
	u32 queued;	       /* on the channel */
	u32 delivered, acked;
	pthread_cond_t all_acked;

	/* ---- where it is (addr) ---- */
	struct rdmacm_device *device; /* a reference; NULL: bound to none */
	/* The addresses as they are; a program sees them in pub.route.addr when it is told. */
	struct sockaddr_storage src, dst;
	struct cm_path path;   /* of an id that is bound: local; of one that is resolved: all */
	enum ibv_mtu path_mtu; /* from resolve_route on */
	struct addr_resolve *resolve;
	struct addr_binding *binding;
	struct rdmacm_multicast *memberships;
	u8 mac[6];	/* of the device's interface */
	u8 peer_mac[6]; /* of the next hop to the peer, as it was last resolved; 0: not known */
	u32 pins;  /* threads of ours that look at it without the lock */

	/* ---- options ---- */
	u8 tos;
	bool tos_set, reuseaddr, afonly, afonly_set, ack_timeout_set;
	u8 ack_timeout;

	/* ---- connection ---- */
	struct cm_conn *conn;
	struct id_connection param;
	u32 qkey; /* of UD; 0: none yet */
	struct id_listener *listeners; /* one a device */
	u32 backlog;
	struct ibv_ece local_ece, remote_ece;
	/* of rdma_create_ep() */
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

/* Not of the parent before a fork: 0 or -EIO. Every call on an id asks first. */
static inline int id_check(const struct rdmacm_id *id)
{
	return id->generation == rdmacm_generation ? 0 : -EIO;
}

/* In state from, it goes to state to; false: it is in another. Under the lock. */
static inline bool id_move(struct rdmacm_id *id, enum id_state from, enum id_state to)
{
	if (id->state != from)
		return false;
	id->state = to;
	return true;
}

/* All ids of this process, the newest first. Under the lock. */
extern struct rdmacm_id *id_all;

/* A new id in ID_IDLE, in no list of a channel. channel NULL: it gets its own. 0 or -errno. */
int id_new(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
	   enum ibv_qp_type type, struct rdmacm_id **out);
/* rdma_create_id() for any type of QP. Without the lock; 0 or -errno. */
int id_make(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
	    enum rdma_port_space ps, enum ibv_qp_type type);
/* Under the lock: into id_all. */
void id_list(struct rdmacm_id *id);
/* Under the lock: no event comes for it any more, and those that nobody has taken are gone. */
void id_silence(struct rdmacm_id *id);
/* Under the lock, which it lets go of meanwhile: the end of an id without events in hand. */
void id_end(struct rdmacm_id *id);
/*
 * In the program's thread, without the lock: an id without a channel of its own is done; one with
 * waits for its event, which is in pub.event then. Returns 0 or -errno, of the event.
 */
int id_complete(struct rdmacm_id *id);
/*
 * The device of an id, in the program's thread: pub.verbs, pub.pd and pub.port_num as id->device
 * has them. 0 or -errno.
 */
int id_show_device(struct rdmacm_id *id);

/*
 * listen.c: a device that an id is to listen at and that came later. Nothing if it is not in
 * ID_LISTEN, or does already. Under the lock.
 */
void listen_at(struct rdmacm_id *id, struct rdmacm_device *dev);

/* ---- what addr writes and id.c, listen.c and connect.c call ---- */

/*
 * Gives back what addr has of an id that ends: port, resolution, memberships. Under the lock, which
 * it may let go of.
 */
void addr_forget(struct rdmacm_id *id);
/*
 * rdma_listen() begins: an id that is idle is bound to any address; nobody else listens at its
 * port. Without the lock. 0 or -errno; then nothing has changed.
 */
int addr_listen(struct rdmacm_id *id);
/* An event of a membership was acknowledged, under the lock: rdma_leave_multicast() may wait. */
void multicast_acked(struct rdmacm_multicast *mc);
/* Does this device have the address of a listener, or is that any one's? Under the lock. */
bool addr_is_of_device(const struct rdmacm_id *id, const struct rdmacm_device *dev);

#endif
