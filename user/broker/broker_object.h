/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The private struct of a broker; broker.h is the interface for others. One thread uses all of it,
 * so there are no locks.
 */
#ifndef BROKER_OBJECT_H
#define BROKER_OBJECT_H

#include "../os/netdev_nl.h"
#include "broker.h"
#include "../client/broker_socket.h"
#include "pin.h"
#include "bindings.h"
#include "file_ids.h"
#include "groups.h"
#include "../os/loop.h"
#include "map_ids.h"
#include "mux.h"
#include "mad_refuser.h"
#include "numbers.h"
#include "proof.h"
#include "quota.h"
#include "mad_sender.h"
#include "client_pool.h"
#include "sole.h"
#include "visitors.h"

struct dead_peers; /* dead_peers.c */

/* held.c: numbers of maps */
struct held_ids {
	u32 num, room;
	u32 *id;
};

/* held.c: memory of an ended connection or observation, whose maps may exist. */
struct held {
	struct held *next;
	struct quota_user *user;
	struct held_ids maps;
	u32 kib, pieces; /* of QUOTA_MEMORY and QUOTA_TRACES */
};

struct client {
	struct source source; /* the connection */
	struct broker *broker;
	struct client *next, *before;
	struct quota_user *user;
	u32 pid, uid;
	char command[16];
	struct rights rights;
	struct ask_challenge challenge; /* nonce 0: none is open */
	bool waiting;	/* for client_serve() to answer */
	struct ask asked;
	u64 asked_ns;	/* when it began to wait */
	u64 noted_ns;	/* when it was told last that it waits; first asked_ns */
	u64 unread_ns;	/* deadline to read its answer with descriptors; NSEC_NEVER: none */
	u32 memory_kib; /* kernel memory counted for its port and rings, */
	struct held_ids maps; /* which it has descriptors of */
	u32 number;	/* with a port: key in xroce_client; else CLIENT_NONE */
	u32 tap[INSTANCE_TAPS]; /* ifindexes of its devices */
	struct readonly_maps readonly_maps; /* for observers */
	int single_link_fd; /* of the XDP program on the second device; -1: none */
	u32 prog_id;
	u32 rings;	/* given */
	struct instance_rings rings_left;
	struct host_client *host; /* its memory at a broker with UDP sockets; else NULL */
	/* client_report.c */
	struct source reports; /* the socket for reports; fd -1: none */
	int report_program_fd; /* xroce_trace_tx */
	u32 lost_packets, lost_events; /* of struct xroce_engine, as told to observers */
	u32 qps;
	u32 qpns;	/* its list in numbers */
	/* client_cm.c */
	bool has_cm;	/* it has a QP 1 */
	u64 cm_serial;	/* of its QP 1 */
	u32 services;
	u32 bound;	/* its list in bindings */
	u32 groups;	/* client_group.c: number of multicast groups */
	struct pin pin;	/* pinned.c */
	struct client_trace *traces; /* client_trace.c: of clients that it observes */
};

/* unread.c: an ended connection with unread answers. */
struct unread_parked {
	struct source source; /* the broker's end */
	struct unread_parked *next;
	struct broker *broker;
	struct quota_user *user;
	bool has_fds; /* one of the answers has descriptors */
};

struct broker {
	struct broker *next;
	struct loop *loop;
	struct broker_options options;
	struct netdev dev;
	enum proof_way proof_way;
	int holder_fd;	/* of the interface's name (netdev_hold()) */
	int alone_fd;	/* of the name for a broker that does not listen; -1: it listens */
	struct visitors of_holder, of_alone; /* connections to these names */
	int reserve_fd; /* closed to accept and refuse a connection when no descriptor is free */
	struct mux mux;
	struct broker_socket broker_socket;
	struct source socket_source;
	struct link_events link_events;
	struct source events_source;
	struct source packets_source; /* of mux.receive */
	bool link_changed;	      /* of this interface */
	u64 follow_ns;	/* when to read its state again, after a failure; NSEC_NEVER: not due */
	bool neighbours_changed;
	struct pins pins;
	struct client_pool client_pool;
	struct sole sole;
	struct numbers numbers;
	struct bindings bindings;
	struct groups groups;
	u64 cm_serial;		/* of the last QP 1 */
	struct dead_peers *dead_peers; /* of clients that have ended */
	struct mad_sender mad_sender;
	struct client *refuser; /* its CM refuses MADs without an owner; NULL: no client does, */
	struct mad_refuser mad_refuser; /* and the broker refuses them */
	u64 random[32]; /* fetched together; the first random_left are unused */
	u32 random_left;
	struct quota quota;
	struct client *clients;	/* all connections, the newest first */
	struct client *of[XROCE_MAX_CLIENT]; /* by number */
	u32 last_number;
	u64 served;	/* calls of client_serve() */
	u32 unread;	/* clients without CAP_NET_ADMIN whose answer with descriptors is unread */
	struct unread_parked *parked;
	u32 num_parked;	/* with descriptors, of users without CAP_NET_ADMIN */
	/* held.c */
	struct held *held;
	struct map_ids map_ids;
	struct file_ids file_ids;
	u64 held_ns, held_wait_ns; /* when to look again, and after which time from then */
	u64 slow_ns;	/* when slow work may be done although there are questions */
	u64 unused_ns;	/* when it ends as unused; NSEC_NEVER: it is used, or does not end */
	/* client_trace.c */
	u32 traces;	/* active ones: the observed client has not ended */
	struct client_trace *dead_traces; /* of observers that have ended */
	u64 trace_ns;	/* when to renew the leases */
	u32 trace_serial;
	int stopper_fd;	/* a copy of the connection that sent ASK_STOP, closed last; -1: none */
	bool lacks_xdp; /* an XDP program cannot be made or attached */
	u64 rival_ns;	/* when to look for a broker that took the interface; NSEC_NEVER: never */
	bool ended;
};

#endif
