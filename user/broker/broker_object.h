/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A broker as its own files see it; others see broker.h. */
#ifndef BROKER_OBJECT_H
#define BROKER_OBJECT_H

#include "../os/link_events.h"
#include "broker.h"
#include "../attach/broker_socket.h"
#include "../attach/pin.h"
#include "bindings.h"
#include "groups.h"
#include "../os/loop.h"
#include "mux.h"
#include "nobody.h"
#include "numbers.h"
#include "proof.h"
#include "quota.h"
#include "mad_sender.h"
#include "client_pool.h"

struct dead_peers; /* dead_peers.c */

struct client {
	struct source source; /* the connection */
	struct broker *broker;
	struct client *next, *before;
	struct quota_user *user;
	u32 pid, uid;
	char command[16];
	struct rights rights;
	struct ask_challenge challenge; /* of nonce 0: none is to be answered */
	bool waiting;	/* for its port, or another answer of client_serve(): to */
	struct ask asked;
	u64 unread_ns;	/* until when its answer with descriptors may be unread; NSEC_NEVER: none */
	u32 memory_kib; /* of the kernel's, that is counted for its port and rings */
	u32 number;	/* with a port: key in xroce_client; else CLIENT_NONE */
	u32 tap[INSTANCE_TAPS]; /* its devices */
	struct readonly_maps shown; /* for those that look at it */
	int single_link_fd; /* of the XDP program on the second; -1: none */
	u32 prog_id;
	u32 rings;
	u32 qps;
	u32 qpns;	/* its list in numbers */
	/* client_cm.c's */
	bool has_cm;	/* a QP 1: */
	u64 cm_serial;	/* of that */
	u32 services;
	u32 bound;	/* its list in bindings */
	u32 groups;	/* multicast groups, client_group.c's */
	struct pin pin;	/* pinned.c's */
	struct client_trace *traces; /* clients that it looks at, client_trace.c's */
};

struct broker {
	struct broker *next;
	struct loop *loop;
	struct broker_options options;
	struct netdev dev;
	int holder_fd;	/* of the interface's name (netdev_hold()) */
	int reserve_fd; /* given up to refuse a connection when there are no more descriptors */
	struct mux mux;
	struct broker_socket door;
	struct source door_source;
	struct link_events news;
	struct source news_source;
	bool has_news;	/* of this interface */
	bool has_near_news;
	struct pins pins;
	struct client_pool stock;
	struct numbers numbers;
	struct bindings bindings;
	struct groups groups;
	u64 cm_serial;		/* QPs 1 that there have been */
	struct dead_peers *orphans; /* of clients that have gone */
	struct mad_sender speaker;
	struct client *refuser; /* of those that have one: answers for nobody; NULL: none has, */
	struct nobody nobody;	/* and the broker does */
	u32 random[64]; /* fetched at once: random_left of them are not used yet */
	u32 random_left;
	struct quota quota;
	struct client *clients;	/* all connections, the newest first */
	struct client *of[XROCE_MAX_CLIENT]; /* by number */
	u32 last_number;
	u64 served;	/* ports made, and other answers that took time */
	u64 slow_ns;	/* when slow work may be done again though somebody asks */
	u64 unused_ns;	/* when it ends for want of a client; NSEC_NEVER: not for that */
	/* client_trace.c's */
	u32 traces;	/* of clients that have not ended */
	struct client_trace *dead_traces; /* of askers that have */
	u64 trace_ns;	/* when to renew them */
	u32 trace_serial;
	int stopper_fd;	/* whoever asked for the end hears of it when all is gone */
	bool ended;
	/* first.c's: the process that had the interface alone, and the socket is its own as well */
	struct client *first;
	bool first_died; /* at whatever it was */
	bool is_open;	/* others have been let in */
	int first_prog_fd, visitor_fd;
};

#endif
