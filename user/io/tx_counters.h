/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the kernel says of an interface that frames are redirected to: whether its driver takes them
 * now, how long they may be, how many it has dropped. The kernel answers under its RTNL lock, which
 * others may hold for seconds, so the watch thread asks it and nobody waits for the answer. Over
 * netlink sockets of its own, in the network namespace in which it was opened; it only reads.
 */
#ifndef PORT_TX_COUNTERS_H
#define PORT_TX_COUNTERS_H

#include "../os/link_watch.h"

struct mnl_socket;

struct tx_reading {
	bool is_known;		/* false: the interface is gone, or the kernel did not answer */
	bool takes_redirected;	/* NETDEV_XDP_ACT_NDO_XMIT */
	u32 frame_max;		/* bytes, by the link MTU */
	u64 dropped;		/* transmit drops and errors of the interface, all senders' */
};

struct tx_counters {
	struct mnl_socket *route, *generic;
	u32 ifindex;
	int family;	/* "netdev" of generic netlink */
	struct link_watch_job job;
	/* the watch thread's from tx_counters_ask() on until it is answered */
	struct tx_reading reading;
	_Atomic bool answered;
};

/* Returns 0, -ENOENT (the kernel does not tell; before 6.3) or -errno. */
int tx_counters_open(struct tx_counters *w, u32 ifindex);
/* One that could not be opened is ignored. */
void tx_counters_close(struct tx_counters *w);

/* Ask for a new reading. Not again before tx_counters_answer() has given this one. Never waits. */
void tx_counters_ask(struct tx_counters *w);
/* True, once for each tx_counters_ask(): *reading is what the kernel said. */
bool tx_counters_answer(struct tx_counters *w, struct tx_reading *reading);

#endif
