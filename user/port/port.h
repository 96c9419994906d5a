/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A port is one interface in use by this process: an XDP program with its maps, UMEM, AF_XDP
 * sockets, and shards. A shard is an engine, its lock and a worker; there is one for each
 * receive queue, up to XROCE_MAX_SHARD. All contexts of a process that open the same interface
 * share one port.
 *
 * Making a port takes privileges, once, and is done in client/. All other code only uses the
 * descriptors and mappings that client/ has made.
 */
#ifndef PORT_H
#define PORT_H

#include "../client/port_info.h"
#include "../os/ask.h"
#include "../os/clock.h"
#include "../engine/engine.h"
#include "../engine/raw.h"
#include "../io/tx_policy.h"
#include "../os/netdev.h"
#include "../run/port_channel.h"
#include "../run/shards.h"

struct link_watch;
struct port;

/*
 * Returns a reference to the interface's port, to be dropped by port_put(). The first call makes
 * the port through the interface's broker, and starts one if there is none. It starts the service
 * threads; the last port_put() destroys the port.
 *
 * Returns 0, -ENOMEM, or after one line on standard error with the remedy: -EPERM (privileges),
 * -EBUSY (another process, which the line names, owns the interface; another program is on the XDP
 * hook; another AF_XDP socket has a queue), -ENODEV, -EOPNOTSUPP, -ENOBUFS (limit of locked
 * memory), from a broker -EACCES, -ENOSPC (its limits), -ETIMEDOUT, -EPROTO, or another -errno.
 */
int port_get(const struct netdev *dev, struct port **out);

/* Returns the port's shards, for run/shards.h: struct port begins with them (port_object.h). */
static inline struct shards *port_shards(struct port *port)
{
	return (struct shards *)port;
}

/* Drops a reference. No lock held. */
static inline void port_put(struct port *port)
{
	shards_put(port_shards(port));
}

/* Sets the faults on request of ports that are made from now on; NULL: none. */
void port_set_faults(const struct engine_faults *faults);

const struct port_info *port_info(const struct port *port);
/*
 * Gets the kind of a port of the interface if it were made now: that of this process's port; else
 * its broker's; else the table of XROCE_PKEY, and the kind that XROCE_PORT, XROCE_SHARE and the
 * process's privileges decide. kind->sole: the port would have sockets. May wait for the broker, as
 * ask_kind_of() does: no lock held.
 */
void port_ask_kind(const struct netdev *dev, struct ask_kind *kind);

/*
 * Packets to this port's QPs that XDP and the engines have dropped for a wrong P_Key or Q_Key,
 * since the port was made. [any thread]
 */
struct port_violations {
	u64 pkey, qkey;
};
void port_violations(const struct port *port, struct port_violations *v);
/* Counts a MAD that the process does not answer, in its first engine. Takes the port's lock. */
void port_count_drop(struct port *port, enum xroce_drop reason);
/*
 * Returns the port's first engine, for state that its engines share. It owns all QPs of XRC, tag
 * matching and raw packets.
 */
struct engine *port_engine(struct port *port);
/* Returns the first owner of a QP that completes on a vector; the QP may move to another engine. */
struct engine *port_engine_for(struct port *port, u32 vector);

/* ---- the lock of all the port's engines: held to create, modify or destroy an object ---- */
/* Does shards_lock(), after a check of the program's fault handlers (run/fault.h). */
void port_lock(struct port *port);
static inline void port_unlock(struct port *port)
{
	shards_unlock(port_shards(port));
}

/*
 * Waits until packets that have arrived by UDP sockets, and which the broker has not passed on yet,
 * are in this process's ring. Precedes shards_catch_up() for a QP. Does nothing on other ports, and
 * for a QP that neither sends nor receives. No lock held.
 */
void port_wait_arrived(struct port *port, const struct qp *qp);

/* ---- QPs and their numbers, which are unique among all processes of an interface ---- */

/*
 * Creates a QP of engine e by qp_create(), and sets init->qpn, unless that is XROCE_CM_QPN (the
 * process's QP 1). Returns 0, -EINVAL, -ENOMEM; -EBUSY: the process has a QP 1; -EOPNOTSUPP: a raw
 * packet QP on a shared interface; -ENOSPC after a line: a limit of the broker; -EIO: the broker
 * has ended; another -errno. May wait for the broker: no lock held.
 */
int port_create_qp(struct port *port, struct engine *e, struct qp_init *init, struct qp **out);
/* Unsteers a QP and calls qp_destroy(). Held: the port's lock and its CQs' consumer sides. */
void port_destroy_qp(struct port *port, struct qp *qp);
/* Returns a QP number to the interface, after port_destroy_qp(). No lock held. */
void port_release(struct port *port, u32 qpn);

/* Show an SRQ in the stat map, and hide it. Both do nothing if already done. Lock held. */
void port_show_srq(struct port *port, struct srq *srq);
void port_hide_srq(struct port *port, struct srq *srq);

/* ---- services and communication ids of the connection manager: services.c ---- */

/* Returns this process's range of communication ids: *num_ids, from *first_id on. */
void port_cm_place(const struct port *port, u32 *first_id, u32 *num_ids);
/*
 * Directs requests for a well-formed service to this process's QP 1; each call needs one
 * port_unbind(). Returns 0; -EADDRINUSE: the service overlaps another process's; -EACCES: a port
 * that the broker reserves for root; -EDQUOT, -ENOSPC: a limit of the broker; -EIO: the broker has
 * ended; -ENOMEM. May wait for the broker: no lock held.
 */
int port_bind(struct port *port, const struct ask_service *service);
/* Returns 0, or -ENOENT if the service is not bound. */
int port_unbind(struct port *port, const struct ask_service *service);
/*
 * Record the start and end of listening to a service, only for `xroce list`. Both return 0 and do
 * not wait for the broker.
 */
int port_show_listener(struct port *port, const struct ask_service *service);
int port_hide_listener(struct port *port, const struct ask_service *service);

/*
 * Has a watch of the interface report its end also when the port is lost although the interface
 * exists, as at the end of the broker. Returns 0 or -errno.
 */
int port_watch_end(const struct port *port, struct link_watch *watch);
/* Returns whether the process, which is exiting, has given the port back. [any thread] */
bool port_has_left(const struct port *port);

/* ---- multicast groups ---- */

/*
 * Attaches a QP to a multicast group by group_attach(), and joins the group on the interface.
 * Returns 0; -EINVAL, -ENOMEM: from group_attach(); -EIO: forked child, or the broker has ended;
 * -ENOSPC, -EDQUOT: a limit of the broker; or another -errno. No lock held.
 */
int port_attach(struct port *port, struct qp *qp, const struct gid *address);
/* Detaches the QP. Returns 0, or -EINVAL if it is not attached. */
int port_detach(struct port *port, struct qp *qp, const struct gid *address);
/* Detaches the QP from all groups. */
void port_detach_all(struct port *port, struct qp *qp);

/* ---- flows of raw packet QPs ---- */

struct port_flow;

struct flow_rule {
	struct raw_rule raw;
	/* NETDEV_ONE_MAC: dst_mac of raw.value, if raw.mask selects all of it */
	__typeof__(((struct netdev_macs *)0)->which) macs;
};

/*
 * Directs matching frames to the QP by raw_attach(), and publishes the flow to XDP and its MACs to
 * the interface. Returns 0; -EINVAL, -ENOMEM: from raw_attach(); -EIO: forked child; -EPERM: no
 * CAP_NET_RAW; or another -errno. No lock held.
 */
int port_create_flow(struct port *port, struct qp *qp, const struct flow_rule *rule,
		     struct port_flow **out);
/* Removes and frees the flow. */
void port_destroy_flow(struct port *port, struct port_flow *flow);

/*
 * Creates a counter for flows. Returns 0; -ENOMEM: no memory, or the maximum of counters exists;
 * -EIO: forked child; or another -errno. No lock held.
 */
int port_create_counter(struct port *port, struct raw_counter **out);
/* No flow may use the counter any more. */
void port_destroy_counter(struct port *port, struct raw_counter *counter);
/*
 * Reads the frames and bytes that flows with this counter have taken, in XDP and in the engine.
 * Returns 0, -EIO in a forked child, or another -errno.
 */
int port_read_counter(struct port *port, const struct raw_counter *counter,
		      struct xroce_flow_count *out);

/* ---- CQs and completion channels as XDP sees them ---- */

/*
 * Adds a CQ to the arm-word map and sets cq->index. channel: from port_channel_create(), or NULL.
 * cq->owner must be set, for the event handler. Returns 0; -ENOSPC: XROCE_MAX_CQ are in use;
 * -EINVAL: the channel has CQs of another port; or -ENOMEM.
 */
int port_cq_add(struct port *port, struct cq *cq, struct port_channel *channel, u32 vector);
void port_cq_remove(struct port *port, struct cq *cq);

/* Arms cq->armed, then the arm word that XDP takes. [any thread] */
void port_cq_arm(struct port *port, struct cq *cq, bool solicited_only);
/* Moderates the events of an added CQ by engine_cq_moderate(). Takes the port's lock. */
void port_cq_moderate(struct port *port, struct cq *cq, u32 count, u64 period_ns);

#endif
