/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* struct port, and the calls between the files of this folder. */
#ifndef PORT_OBJECT_H
#define PORT_OBJECT_H

#include "../client/attach.h"
#include "../os/link_watch.h"
#include "../run/shard.h"
#include "port.h"

/* Services that the process has bound (services.c). Under port->numbers. */
struct services {
	struct bound {
		struct ask_service service;
		u32 users; /* how many times it is bound */
	} *at;
	u32 num, room;
};

/*
 * The ring of copied frames (port_flow.c). Made under port->numbers; then guarded by the first
 * shard's lock, as are its other sets.
 */
struct port_copies {
	struct xsk_set set;
	struct xroce_sock counted; /* required by the set, never read: XDP counts copies */
	int fd;
};

/*
 * Locks: `list_lock` (port.c); "all shards" means every shard's lock, taken by port_lock() after
 * `numbers`. Fields without a lock are constant once the port is made.
 */
struct port {
	struct shards shards;	/* first: port_shards() */
	struct port *next;	/* list of ports; list_lock */
	u32 ifindex;
	u64 netns;		/* inode of the network namespace */
	/* QPs made, by transport, without QP 1; all shards */
	u32 qps_made[XROCE_RAW + 1];
	/* bitmaps of the stat maps' elements in use (port_stat.c); all shards */
	struct {
		u64 qp[XROCE_QP_STATS / 64], cq[XROCE_CQ_STATS / 64], srq[XROCE_SRQ_STATS / 64];
	} stats;
	struct attachment made;
	struct link_watch *watch; /* of the interface (follow.c) */
	struct netdev dev;	/* interface as last published: GIDs, MAC; all shards */
	_Atomic bool told_limit; /* a line on stderr has reported the broker's limit of QPs */
	/* held while a QP is made, its number released, or a group or service changes */
	pthread_mutex_t numbers;
	struct services services; /* numbers */
	struct port_group *groups; /* multicast groups (port_group.c); numbers */
	pthread_mutex_t listeners; /* guards listener[] and listeners in made.maps.engine */
	struct port_flow *flows; /* port_flow.c; all shards */
	int macs_fd;		/* socket of the requests to accept MACs, or -1; all shards */
	struct port_copies copies;
	/* keys of xroce_flow_cnt in use (port_flow.c); all shards */
	bool counters[XROCE_MAX_COUNTER];
	/* others.c; watch thread only */
	struct link_watch_input others_input;
	bool told_of_others; /* a line on stderr has reported a failure */
};

_Static_assert(offsetof(struct port, shards) == 0, "port_shards()");

/* ---- counters (port_flow.c) ---- */
/* Prints the port's counters to standard error, if XROCE_COUNTERS is set. [any thread] */
void port_say_counters(const struct port *port);

/* ---- port_stat.c: elements of the stat maps, which show a process's objects ---- */
/*
 * Takes an element for a new QP, or returns NULL if all are in use: then the map does not show the
 * QP. All shards locked.
 */
struct xroce_qp_stat *port_take_qp_stat(struct port *port);
/* Clears and frees the element, after qp_destroy(). NULL is allowed. */
void port_give_qp_stat(struct port *port, struct xroce_qp_stat *stat);
/* Show a CQ that has an index, if an element is free, and hide it. */
void port_show_cq(struct port *port, struct cq *cq, u32 vector, bool has_channel);
void port_hide_cq(struct port *port, struct cq *cq);

/* ---- port_group.c ---- */
/* Closes all memberships, at the end of the port or in a forked child. */
void port_close_groups(struct port *port);

/* ---- copies (port_flow.c) ---- */
/* Enables XDP to copy frames. Returns 0 or -errno. No lock held. */
int port_open_copies(struct port *port);
/* Call it when no thread uses the first shard's sets any more, or in a forked child. */
void port_close_copies(struct port *port);

/* ---- port_flow.c ---- */
/* Closes macs_fd, at the end of the port or in a forked child. */
void port_close_macs(struct port *port);

/* ---- follow.c ---- */
/*
 * Publishes the interface's addresses, now and after each change. Returns 0 or -errno;
 * follow_stop() must follow in both cases. No lock held.
 */
int follow_start(struct port *port, const struct netdev *dev);
void follow_stop(struct port *port);

/* ---- others.c ---- */
/* Follows other processes on the interface until follow_stop(). Returns 0 or -errno. */
int others_start(struct port *port);

#endif
