/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A network of hosts, on each of which processes have a CM each and share QP1: the simulator of
 * user/cm. A test or a seed decides which MADs are lost, repeated or late; time is virtual. A MAD
 * that arrives at a host is delivered to the process with its id or listener, or is refused, as by
 * a broker.
 */
#ifndef CM_NET_H
#define CM_NET_H

#include "../../user/cm/cm.h"
#include "../sim/rng.h"

#define NET_HOSTS     3
#define NET_PROCESSES 3
#define NET_FLIGHTS   4096
#define NET_LISTENERS 16
#define NET_TIMERS    256

struct net;
struct process {
	struct net *net;
	u32 host, number;
	struct cm *cm; /* NULL: dead */
	struct cm_options options;
};

struct flight {
	u64 at_ns;
	u32 host;
	struct cm_path path; /* at the receiver */
	u8 mad[CM_MAD_BYTES];
};

struct net_timer {
	u64 at_ns;
	void (*run)(struct net *net, void *arg);
	void *arg;
};

struct net_listener {
	struct process *process; /* NULL: unused */
	struct cm_service service;
	struct cm_listener *listener;
};

struct net {
	char label[128];
	struct rng rng;
	u64 now_ns;
	u32 capacity; /* of each CM */
	u32 half_open;

	/* bit n: the nth MAD that is sent is lost, comes twice, comes late_ns later */
	u64 drop, duplicate, late;
	u64 late_ns;
	/* of 65536, at random */
	u32 drop_rate, duplicate_rate;
	u64 jitter_ns;
	bool dead;  /* all is lost */
	bool trace; /* XROCE_SIM_TRACE */
	u32 sent;
	u32 sent_of[CM_KIND_END];

	struct process process[NET_HOSTS][NET_PROCESSES];
	struct net_listener listener[NET_LISTENERS];
	struct flight flight[NET_FLIGHTS];
	u32 flights;
	struct net_timer timer[NET_TIMERS];
	u32 timers;

	void (*event)(struct process *p, const struct cm_event *e, void *arg);
	void *event_arg;
	/* Each MAD as it is sent, before it is lost. */
	void (*tap)(struct net *net, const struct cm_mad *m);
};

struct net *net_create(u64 seed);
void net_destroy(struct net *net);
__attribute__((format(printf, 2, 3))) void net_label(struct net *net, const char *format, ...);

struct process *net_start(struct net *net, u32 host, u32 number);
/* The process dies without a message. */
void net_kill(struct process *p);

void net_listen(struct process *p, const struct cm_service *service);
void net_unlisten(struct process *p, u64 service_id);

/* The path between two hosts over IPv4 or IPv6. */
struct cm_path net_path(u32 from, u32 to, bool v6);
void net_at(struct net *net, u64 at_ns, void (*run)(struct net *net, void *arg), void *arg);

/* Takes the process's output and events: to be called after each call of a test. */
void net_pump(struct process *p);
/* Until nothing is under way and no deadline is left before then. */
void net_run(struct net *net, u64 until_ns);

#define net_check(net, expression)                                                       \
	do {                                                                             \
		if (!(expression))                                                       \
			net_fail(net, __FILE__, __LINE__, #expression);                  \
	} while (0)
__attribute__((noreturn)) void net_fail(const struct net *net, const char *file, int line,
					const char *what);

/* No connection, no timer and nothing half-open is left in any process. */
void net_check_empty(const struct net *net);

#endif
