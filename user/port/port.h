/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A port is one interface in use by this process: its XDP program and maps, UMEM and AF_XDP
 * sockets, and its shards: for each receive queue, up to XROCE_MAX_SHARD, an engine, the lock
 * around it and a service thread. All contexts of a process that open the same interface share one
 * port.
 *
 * Making a port (privileged, once) is apart from using one: attach/ attaches and creates,
 * everything else only uses descriptors and mappings.
 */
#ifndef PORT_H
#define PORT_H

#include "../attach/port_info.h"
#include "../os/ask.h"
#include "../os/clock.h"
#include "../engine/engine.h"
#include "../engine/group.h"
#include "../engine/raw.h"
#include "../os/netdev.h"
#include "../run/channel_sleep.h"
#include "../run/port_channel.h"

struct port;

/*
 * The port of an interface, made at the first call: by the interface's broker if it has one
 * (XROCE_SHARE), else it attaches XDP and creates sockets alone; starts the service thread.
 * Reference counted by port_put(); the last one takes all of it away. Returns 0 or, after one clear
 * line on standard error that names the remedy: -EPERM (privileges), -EBUSY (interface taken by
 * another process, which the line names, or the XDP hook is, or another AF_XDP socket has a queue),
 * -ENODEV, -EOPNOTSUPP, -ENOBUFS (limit of locked memory), of a broker -EACCES, -ENOSPC (its
 * limits), -ETIMEDOUT, -EPROTO, or another -errno of a step that failed; without a line -ENOMEM.
 */
int port_get(const struct netdev *dev, struct port **out);
void port_put(struct port *port);

/*
 * Of the path MTUs up to path_mtu, the largest whose frames leave the fastest way: what to offer as
 * active_mtu (ibv_query_port(3)). Larger ones work.
 */
u32 port_preferred_mtu(const struct netdev *dev, u32 path_mtu);
const struct port_info *port_info(const struct port *port);
/*
 * The P_Key table that a port of the interface would have now: what its broker says, else the
 * default P_Key alone. May wait for the broker, as ask_pkeys_of(): no lock held.
 */
void port_ask_pkeys(const struct netdev *dev, struct pkey_table *pkeys);

/*
 * Frames to this port's QPs that were dropped for their P_Key, and for their Q_Key: by XDP, and
 * packets by the engines. Since the port was made. Any thread's.
 */
struct port_violations {
	u64 pkey, qkey;
};
void port_violations(const struct port *port, struct port_violations *v);
/* Counts a MAD that the process does not answer with its first engine. Without the port's lock. */
void port_count_drop(struct port *port, enum xroce_drop reason);
/*
 * An engine of the port, by which all that its engines share is reached; it owns all QPs of XRC and
 * tag matching.
 */
struct engine *port_engine(struct port *port);
/*
 * The owner of a new QP that completes on a vector; packets that arrive elsewhere will move it.
 */
struct engine *port_engine_for(struct port *port, u32 vector);

/* ---- the lock: of all the port's engines, for who makes, changes or ends an object ---- */
/* What port_post() and port_poll_cq() put off has left on return. */
void port_lock(struct port *port);
/*
 * Unlocks; first reports the engines' events, then runs what was left by those who found a lock
 * taken.
 */
void port_unlock(struct port *port);

/* ---- progress ---- */

/*
 * Receive, run the engine, send: once round, without blocking. If another thread is at it, returns
 * at once: that thread does the work, including any doorbell that rang before this call. Counts as
 * the application driving the port.
 */
void port_poll(struct port *port);
/*
 * The same for who polls cq and found it empty: when receiving has filled it, sending what that
 * calls for (ACKs) may wait for the caller's next call, so that it leaves together with what the
 * caller is about to post.
 */
void port_poll_cq(struct port *port, struct cq *cq);
/*
 * Work was published on qp: ring its doorbell and run the port, as port_poll() does, unless the
 * caller is in the middle of a burst and polls its CQs; then the work leaves with the next call or,
 * if none comes, with the service thread's next tick. [any thread]
 */
void port_post(struct port *port, struct qp *qp);
/* The same with the lock held by the caller (between port_lock() and port_unlock()). */
void port_run_locked(struct port *port);
/*
 * Also with the lock held: all that has come by now is taken and answered, as far as there is room
 * to send. For a QP that is about to fail, be reset or go: an adapter has taken an ACK or a message
 * when it came, however long ago the program polled.
 */
void port_catch_up(struct port *port);

/* ---- the numbers of QPs, which all processes of an interface share ---- */

/*
 * qp_create() for an engine of the port, with a number that no other process of the interface has.
 * init->qpn is filled in, unless it is XROCE_CM_QPN, of which each process has its own (-EBUSY: it
 * has one). Returns 0, -EINVAL, -ENOMEM; -EOPNOTSUPP: a QP of raw packets where other processes
 * share the interface; -ENOSPC after a line: a limit of the broker's; -EIO: the broker has ended;
 * another -errno. May wait for the broker: no lock held.
 */
int port_create_qp(struct port *port, struct engine *e, struct qp_init *init, struct qp **out);
/*
 * Out of the steering map, and qp_destroy(): as that, with the port's lock and its CQs' consumer
 * sides held.
 */
void port_destroy_qp(struct port *port, struct qp *qp);
/* The number is any process's again: after port_destroy_qp(). No lock held. */
void port_release(struct port *port, u32 qpn);

/* An XRC SRQ, which the engine knows: it is seen from here on; not any more. Lock held. */
void port_show_srq(struct port *port, struct srq *srq);
void port_hide_srq(struct port *port, struct srq *srq);

/* ---- the connection manager's: services.c ---- */

/* *num_ids communication ids, from *first_id on, that no other process of the interface has. */
void port_cm_place(const struct port *port, u32 *first_id, u32 *num_ids);
/*
 * Requests for the service come to this process's QP 1, until it is unbound as often as it was
 * bound. The service is well-formed. Returns 0; -EADDRINUSE: one of another process overlaps it;
 * -EACCES: a port that the broker gives to root alone; -EDQUOT, -ENOSPC: a limit of the broker's;
 * -EIO: it has ended; -ENOMEM. May wait for the broker: no lock held.
 */
int port_bind(struct port *port, const struct ask_service *service);
/* Returns 0 or -ENOENT: it is not bound. */
int port_unbind(struct port *port, const struct ask_service *service);
/*
 * This process listens to the service, or does not any more: what `xroce list` shows. Nothing but
 * that depends on it. Both return 0 and wait for nobody.
 */
int port_show_listener(struct port *port, const struct ask_service *service);
int port_hide_listener(struct port *port, const struct ask_service *service);

/*
 * Hangs up when the port is lost though the interface is not, for link_watch_until_hangup(); -1:
 * that cannot be.
 */
int port_lifeline(const struct port *port);

/* ---- steering ---- */

/*
 * Publish what XDP must know of qp (lock held): after create, each modify and EVENT_QP_STATE.
 * Returns 0 or -errno.
 */
int port_steer(struct port *port, const struct qp *qp);

/* ---- multicast groups ---- */

/*
 * qp has a copy of each packet to that address: group_attach() of the transport, and the interface
 * takes them. Returns 0, -EINVAL, -ENOMEM as that does, -EIO in a forked child or where the broker
 * has ended, -ENOSPC or -EDQUOT: a limit of the broker's, or another -errno. No lock held.
 */
int port_attach(struct port *port, struct qp *qp, const struct gid *address);
/* No more. Returns 0 or -EINVAL: it had none. */
int port_detach(struct port *port, struct qp *qp, const struct gid *address);

/* ---- flows of raw packet QPs ---- */

struct port_flow;

struct flow_rule {
	struct raw_rule raw;
	/* NETDEV_ONE_MAC: the one that value and mask name, if they do */
	__typeof__(((struct netdev_macs *)0)->which) macs;
};

/*
 * Frames that match come to the QP: raw_attach(), and XDP and the interface know. Returns 0,
 * -EINVAL, -ENOMEM as that does, -EIO in a forked child, -EPERM without CAP_NET_RAW, or another
 * -errno. No lock held.
 */
int port_create_flow(struct port *port, struct qp *qp, const struct flow_rule *rule,
		     struct port_flow **out);
/* No more; the flow is freed. */
void port_destroy_flow(struct port *port, struct port_flow *flow);

/*
 * What flows of the port count with. Returns 0, -ENOMEM: no memory, or there are as many as there
 * may be; -EIO in a forked child, or another -errno. No lock held.
 */
int port_create_counter(struct port *port, struct raw_counter **out);
/* No flow has it. */
void port_destroy_counter(struct port *port, struct raw_counter *counter);
/*
 * What flows with it have taken, in XDP and in the engine. Returns 0, -EIO in a forked child, or
 * another -errno.
 */
int port_read_counter(struct port *port, const struct raw_counter *counter,
		      struct xroce_flow_count *out);

/* ---- CQs and completion channels as XDP sees them ---- */

/*
 * A CQ joins the arm-word map: cq->index is set. channel is what port_channel_create() made, or
 * NULL. Returns 0, -ENOSPC: XROCE_MAX_CQ are in use; -EINVAL: the channel has CQs of another port;
 * or -ENOMEM. cq->owner must be set: it is passed to the event callbacks.
 */
int port_cq_add(struct port *port, struct cq *cq, struct port_channel *channel, u32 vector);
void port_cq_remove(struct port *port, struct cq *cq);

/* Arm: first cq->armed, then the arm word that XDP takes. [any thread] */
void port_cq_arm(struct port *port, struct cq *cq, bool solicited_only);
/* Moderate the events of a CQ that has joined, as engine_cq_moderate() does; takes the lock. */
void port_cq_moderate(struct port *port, struct cq *cq, u32 count, u64 period_ns);

/*
 * Called with the lock of a shard held, for each event the engine reports but EVENT_QP_STATE (the
 * port keeps the steering itself). The verbs layer queues it on its channel or async list; it must
 * not call back into the port but for port_channel_raise().
 */
typedef void port_event_fn(const struct engine_event *event);
void port_set_event_handler(port_event_fn *fn);

#endif
