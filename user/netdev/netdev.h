/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the kernel says of the network interfaces that can be devices: names, addresses (GIDs), MTU,
 * link, routes and neighbours, over netlink (libmnl). It changes nothing on any interface; asking
 * for a neighbour makes the kernel resolve it.
 */
#ifndef PORT_NETDEV_H
#define PORT_NETDEV_H

#include <net/if.h>
#include <stdio.h>
#include <sys/types.h>

#include "../transport/packet.h"
#include "../transport/types.h"

/* One GID of the table: index 0 is routable where the interface has a routable address. */
struct netdev_gid {
	struct gid gid;
	u8 prefix_len;
};

/* In the environment: the one interface that may be a device. */
#define NETDEV_ENV "XROCE_DEV"

/* A TAP device with such a name is a broker's (user/broker), and no device. */
#define NETDEV_TAP_PREFIX "xrt"

struct netdev {
	u32 ifindex;
	char name[IF_NAMESIZE];
	u8 mac[6];
	u32 mtu;
	bool is_enabled;   /* IFF_UP */
	bool is_up;	   /* that, and carrier */
	bool is_loopback;
	/* there is a device on a bus behind it (from 5.14 on the kernel says so) */
	bool is_hardware;
	/* VLAN, bond, macvlan, bridge ...: any kind but veth and TAP hands its packets to others */
	bool is_stacked;
	u32 rx_queues;	   /* in use now, at least 1 */
	u32 speed_mbps;	   /* 0 = unknown */
	u32 xdp_program;   /* the number of the one on the hook; 0: none, or several */
	u32 num_gids;
	/* IPv4, then global IPv6, then link-local; each in the kernel's order */
	struct netdev_gid gid[XROCE_MAX_GID];
};

/*
 * All interfaces of this network namespace that can be devices: Ethernet; those that are up and
 * have addresses first; lo only if XROCE_DEV names it. XROCE_DEV in the environment limits the list
 * to that interface. *out is malloc()ed, free it with free(). Returns the count or -errno. If
 * XROCE_DEV names no such interface the count is 0 and, once a process, a line on standard error
 * says so.
 */
int netdev_list(struct netdev **out);

/*
 * The one interface of that name. Returns 0, -ENODEV (none of that name), -EOPNOTSUPP (neither
 * Ethernet nor lo) or -errno.
 */
int netdev_find(const char *name, struct netdev *out);

/* The calling thread's network namespace, as a number that no other has; 0 if it cannot be told. */
u64 netdev_netns(void);

/* Read one interface anew. Returns 0, -ENODEV or -errno. */
int netdev_refresh(struct netdev *dev);

/*
 * Largest path MTU in bytes (256 .. 4096) whose frames fit a link MTU, 0 if not even 256 does;
 * multibuffer: the kernel has AF_XDP multi-buffer.
 */
u32 netdev_path_mtu(u32 link_mtu, bool multibuffer);

/* The smallest link MTU whose frames carry that path MTU. */
u32 netdev_link_mtu_for(u32 path_mtu);

/* True if this kernel can receive frames of several buffers on AF_XDP (by its release: >= 6.6). */
bool netdev_kernel_multibuffer(void);
/* True if it hands long packets to generic XDP as they are (by its release: >= 6.9). */
bool netdev_kernel_generic_frags(void);

/*
 * Resolve where packets from local (a GID of dev) to peer go: fills dmac, smac, local, peer,
 * is_ipv6, has_vlan = false. A peer that is one of dev's own GIDs gets the own MAC: the port loops
 * such frames back. Asks the kernel for the neighbour and waits up to timeout_ms. Returns 0,
 * -EHOSTUNREACH (no answer, or a neighbour without a MAC), -ENETUNREACH (no route over dev),
 * -EINVAL (local is not a GID of dev; families differ; peer is unspecified or a broadcast address),
 * another -errno. A multicast peer gets the multicast MAC.
 */
int netdev_resolve(const struct netdev *dev, const struct gid *local, const struct gid *peer,
		   int timeout_ms, struct path *out);

/*
 * The process that holds an interface, if it is one of ours. netdev_hold(): become the holder;
 * returns a descriptor (hold it open; it needs no service), -EBUSY (another process is), -EPERM (a
 * process that did not prove that it may says so: see netdev_holder()) or -errno. netdev_holder():
 * 0 and the holder's pid (0: not of this pid namespace) and name; -EPERM and both (pid 0 if it
 * cannot be asked) if the holder is neither root nor the caller's user, and so proves nothing;
 * -ENOENT (none) or -errno.
 */
int netdev_hold(u32 ifindex);
int netdev_holder(u32 ifindex, pid_t *pid, char *comm, size_t n);

/*
 * The CPU that takes the interrupts of a receive queue, where the kernel tells and it is one.
 * -ENOENT otherwise: kernels before 6.8, and interfaces without interrupts.
 */
int netdev_queue_cpu(u32 ifindex, u32 queue);

/* The driver's name as ethtool shows it. Returns 0 or -errno; lo has none. */
int netdev_driver(const char *name, char *driver, size_t n);

/*
 * XDP features of the driver, as in <linux/netdev.h>. Returns 0, -ENOENT (the kernel does not tell;
 * before 6.3) or -errno.
 */
#define NETDEV_XDP_BASIC	(1u << 0)
#define NETDEV_XDP_REDIRECT	(1u << 1)
/* takes frames that are redirected to it, at the moment */
#define NETDEV_XDP_NDO_XMIT	(1u << 2)
#define NETDEV_XDP_XSK_ZEROCOPY (1u << 3)
#define NETDEV_XDP_RX_SG	(1u << 5)
int netdev_xdp_features(u32 ifindex, u64 *features);

#endif
