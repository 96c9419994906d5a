/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A port, as the files of this room know it. */
#ifndef PORT_OBJECT_H
#define PORT_OBJECT_H

#include "../attach/attach.h"
#include "../os/link_watch.h"
#include "../run/shard.h"
#include "port.h"

/* Services that the process has bound (services.c). Guarded by port->numbers. */
struct services {
	struct bound {
		struct ask_service service;
		u32 users; /* how many times it is bound */
	} *at;
	u32 num, room;
};

/*
 * The ring of copied frames (port_copies.c). Made with port->numbers held; afterwards guarded by
 * the first shard's lock, as its other sets are.
 */
struct port_copies {
	struct xsk_set set;
	struct xroce_sock counted; /* required by the set, never read: XDP counts copies */
	int fd;
};

/*
 * Locks: `list_lock` is port.c's; "all shards" means every shard's lock, taken by port_lock();
 * `numbers` is taken before them. Fields without a lock do not change once the port is made.
 */
struct port {
	struct shards shards;
	struct port *next;	/* list of ports; list_lock */
	u32 ifindex;
	u64 netns;		/* inode of the network namespace */
	/* QPs made, by transport, without QP 1; all shards */
	u32 qps_made[XROCE_RAW + 1];
	/* elements of the stat maps that are in use (port_stat.c), a bit each; all shards */
	struct {
		u64 qp[XROCE_QP_STATS / 64], cq[XROCE_CQ_STATS / 64], srq[XROCE_SRQ_STATS / 64];
	} stats;
	struct attachment made;
	struct link_watch *watch; /* the interface's (follow.c) */
	struct netdev dev;	/* interface as last published: GIDs, MAC; all shards */
	int follow_err;		/* 0 or -errno of the last publication; all shards */
	_Atomic bool told_limit; /* a line has reported the broker's limit of QPs */
	/* held while a QP is made, its number released, or a group or service changes */
	pthread_mutex_t numbers;
	struct services services; /* numbers */
	struct port_group *groups; /* multicast groups (port_group.c); numbers */
	pthread_mutex_t listeners; /* guards listener[] and listeners in made.maps.engine */
	struct port_flow *flows; /* port_flow.c; all shards */
	int macs_fd;		/* socket that has the interface accept MACs, or -1; all shards */
	struct port_copies copies;
	/* keys of xroce_flow_cnt in use (port_flow_counter.c); all shards */
	bool counters[XROCE_MAX_COUNTER];
	/* share.c; the watch thread alone */
	struct link_watch_input share_input;
	u64 share_ns;		/* when a broker was last started */
	bool share_failed;	/* and whether that failed */
	_Atomic u32 share_turn; /* enum share_turn */
	bool share_told;
};

/* ---- port_counters.c ---- */
/* Says what the port has done, on standard error, if XROCE_COUNTERS asks for it. Any thread's. */
void port_say_counters(const struct port *port);

/* ---- port_stat.c: elements of the maps that show what a process has ---- */
/*
 * One for a QP that is about to be made, until it is given back; NULL: there is none left, and
 * nobody sees the QP there. With the port's lock.
 */
struct xroce_qp_stat *port_take_qp_stat(struct port *port);
/* After qp_destroy(). NULL: nothing. */
void port_give_qp_stat(struct port *port, struct xroce_qp_stat *stat);
/* A CQ that has its index is seen from here on, if there is room; not any more. */
void port_show_cq(struct port *port, struct cq *cq, u32 vector, bool has_channel);
void port_hide_cq(struct port *port, struct cq *cq);

/* ---- port_group.c ---- */
/* The port ends, or is a forked child's. */
void port_close_groups(struct port *port);
/*
 * A broker has come: it is told of those that there are. With the lock of the numbers; 0 or -errno.
 */
int port_tell_groups(struct port *port);

/* ---- port_copies.c ---- */
/* XDP can copy frames from here on. Returns 0 or -errno. No lock held. */
int port_open_copies(struct port *port);
/* Nobody uses the sets of the first shard any more, or this is a forked child. */
void port_close_copies(struct port *port);

/* ---- port_flow.c ---- */
/* The port ends, or is a forked child's, for whose sake the interface takes nothing. */
void port_close_macs(struct port *port);

/* ---- follow.c ---- */
/*
 * Publish the interface's addresses, now and whenever they change. Returns 0 or -errno;
 * follow_stop() in both cases. No lock held.
 */
int follow_start(struct port *port, const struct netdev *dev);
void follow_stop(struct port *port);

/* ---- services.c ---- */
/* The broker is told of all that are bound. Under the lock of the numbers. Returns 0 or -errno. */
int services_tell(struct port *port);

/* ---- share.c ---- */
/*
 * Other processes are let in from here on, if this one listens for them; until follow_stop().
 * Returns 0 or -errno.
 */
int share_start(struct port *port);
/*
 * For a process that exits. False: a broker is just being joined, and what the port has is that
 * thread's; the broker goes on without the process.
 */
bool share_settle(struct port *port);

#endif
