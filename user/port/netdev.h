/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the kernel says of the network interfaces that can be devices: names, addresses (GIDs), MTU, link, routes and neighbours, over
 * netlink (libmnl). It changes nothing on any interface; asking for a neighbour makes the kernel resolve it.
 */
#ifndef PORT_NETDEV_H
#define PORT_NETDEV_H

#include <net/if.h>
#include <stdio.h>

#include "../transport/packet.h"
#include "../transport/types.h"

/* One GID of the table: index 0 is routable where the interface has a routable address. */
struct netdev_gid {
	struct gid gid;
	u8 prefix_len;
};

struct netdev {
	u32 ifindex;
	char name[IF_NAMESIZE];
	u8 mac[6];
	u32 mtu;
	bool is_up;	   /* IFF_UP and carrier */
	bool is_loopback;
	u32 rx_queues;	   /* at least 1 */
	u32 speed_mbps;	   /* 0 = unknown */
	u32 num_gids;
	struct netdev_gid gid[XROCE_MAX_GID]; /* IPv4, then global IPv6, then link-local; each in the kernel's order */
};

/*
 * All interfaces of this network namespace that can be devices: Ethernet, and lo last; those that are up and have addresses first.
 * XROCE_DEV in the environment limits the list to that interface. *out is malloc()ed, free it with free(). Returns the count or -errno.
 */
int netdev_list(struct netdev **out);

/* Read one interface anew. Returns 0, -ENODEV or -errno. */
int netdev_refresh(struct netdev *dev);

/* Largest path MTU in bytes (256 .. 4096) whose frames fit a link MTU, 0 if not even 256 does; multibuffer: the kernel has AF_XDP multi-buffer. */
u32 netdev_path_mtu(u32 link_mtu, bool multibuffer);

/* True if this kernel can receive frames of several buffers on AF_XDP (by its release: >= 6.6). */
bool netdev_kernel_multibuffer(void);

/*
 * Resolve where packets from local (a GID of dev) to peer go: fills dmac, smac, local, peer, is_ipv6, has_vlan = false. A peer that is one
 * of dev's own GIDs gets the own MAC: the port loops such frames back. Asks the kernel for the neighbour and waits up to
 * timeout_ms. Returns 0, -EHOSTUNREACH (no answer), -ENETUNREACH (no route over dev), -EINVAL (local is not a GID of dev; families differ), -errno.
 */
int netdev_resolve(const struct netdev *dev, const struct gid *local, const struct gid *peer, int timeout_ms, struct path *out);

#endif
