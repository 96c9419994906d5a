/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the kernel says of an interface that frames are redirected to: whether its driver takes them now, how long they may be, how many it has
 * dropped. Over netlink sockets of its own, in the network namespace in which it was opened; it only reads. Under the port's lock.
 */
#ifndef PORT_TX_WATCH_H
#define PORT_TX_WATCH_H

#include "../transport/types.h"

struct mnl_socket;

struct tx_watch {
	struct mnl_socket *route, *generic;
	u32 ifindex;
	int family;	/* "netdev" of generic netlink */
};

struct tx_sight {
	bool takes_redirected;	/* NETDEV_XDP_ACT_NDO_XMIT */
	u32 frame_max;		/* bytes, by the link MTU */
	u64 dropped;		/* transmit drops and errors of the interface, whoever's */
};

/* Returns 0, -ENOENT (the kernel does not tell; before 6.3) or -errno. */
int tx_watch_open(struct tx_watch *w, u32 ifindex);
void tx_watch_close(struct tx_watch *w);
/* A few system calls. False if the interface is gone or the kernel did not answer. */
bool tx_watch_look(struct tx_watch *w, struct tx_sight *sight);

#endif
