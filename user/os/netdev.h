/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the kernel says of the network interfaces that can be devices: names, addresses (GIDs), MTU,
 * link, routes and neighbours, over netlink (libmnl). It changes nothing on any interface but its
 * membership in multicast groups; asking for a neighbour makes the kernel resolve it.
 */
#ifndef OS_NETDEV_H
#define OS_NETDEV_H

#include <net/if.h>
#include <stdio.h>
#include <sys/types.h>

#include "../engine/packet.h"
#include "../engine/types.h"

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
	bool is_veth;
	bool is_pair;	   /* that, and its other end is in another network namespace */
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

/*
 * The calling thread's network namespace, as a number that no other has: its inode, or without
 * /proc its cookie and the top bit; 0 if neither can be told (no /proc, and a kernel before 5.14).
 */
u64 netdev_netns(void);

/* Read one interface anew. Returns 0, -ENODEV or -errno. */
int netdev_refresh(struct netdev *dev);

/*
 * A socket on which the kernel is asked again and again, in the network namespace in which it was
 * opened. Any thread may ask. Where a session is an argument, NULL means a socket for that call, in
 * the caller's network namespace.
 */
struct netdev_session;
int netdev_session_open(struct netdev_session **out); /* 0 or -errno */
void netdev_session_close(struct netdev_session *s);  /* NULL: nothing. Also in a child. */

/*
 * As netdev_refresh(), but for what the driver says, rx_queues and speed_mbps, which stay what they
 * are in *dev.
 */
int netdev_refresh_addresses(struct netdev_session *s, struct netdev *dev);

/*
 * Largest path MTU in bytes (256 .. 4096) whose frames fit a link MTU, 0 if not even 256 does;
 * multibuffer: the kernel has AF_XDP multi-buffer.
 */
u32 netdev_path_mtu(u32 link_mtu, bool multibuffer);

/* The smallest link MTU whose frames carry that path MTU. */
u32 netdev_link_mtu_for(u32 path_mtu);

/* True if this kernel can receive frames of several buffers on AF_XDP (by its release: >= 6.6). */
bool netdev_kernel_multibuffer(void);
/* True if a program of BPF_PROG_TYPE_SYSCALL can hand its context on as memory (>= 6.1). */
bool netdev_kernel_syscall_context(void);
/* True if it hands long packets to generic XDP as they are (by its release: >= 6.9). */
bool netdev_kernel_generic_frags(void);

struct netdev_route {
	u32 ifindex;
	bool is_local; /* the peer is an address of this host */
	u8 hop_limit;
	struct gid local;
};

/*
 * By which interface and from which of its addresses the kernel sends to peer. local may be NULL
 * (the kernel chooses) and ifindex 0 (any interface; of an address of this host the one that has
 * it). Neighbours are not asked. Returns 0, -ENETUNREACH (no route), -ENODEV (an address of this
 * host that no interface which can be a device has), -EADDRNOTAVAIL (no address to send from),
 * -EINVAL (families differ; a broadcast or unspecified address; a link-local one without an
 * interface) or what the route says: -EHOSTUNREACH, -EACCES, -EINVAL; or another -errno. A session
 * keeps the hop limit of routes that name none, which is a setting, for a tenth of a second.
 */
int netdev_route(struct netdev_session *s, const struct gid *peer, const struct gid *local,
		 u32 ifindex, struct netdev_route *out);

/*
 * Resolve where packets from local (a GID of dev) to peer go: fills dmac, smac, local, peer,
 * is_ipv6, has_vlan = false. A peer that is one of dev's own GIDs gets the own MAC: the port loops
 * such frames back. Asks the kernel for the neighbour and waits up to timeout_ms: 0 asks without
 * waiting, NETDEV_LOOK neither asks nor waits. heard: NULL, or the MAC to use, without waiting, if
 * the kernel does not know the neighbour at the moment. Returns 0,
 * -EHOSTUNREACH (no answer, or a neighbour without a MAC), -ENETUNREACH (no route over dev),
 * -EINVAL (local is not a GID of dev; families differ; peer is unspecified or a broadcast address),
 * another -errno. A multicast peer gets the multicast MAC.
 */
#define NETDEV_LOOK (-1)
int netdev_resolve(struct netdev_session *s, const struct netdev *dev, const struct gid *local,
		   const struct gid *peer, int timeout_ms, const u8 *heard, struct path *out);

/*
 * For a caller that asks with a time-out of 0, and again when a neighbour has answered: a
 * descriptor that is readable when any neighbour changes, or -errno.
 */
int netdev_neighbour_news(void);
enum netdev_news {
	NETDEV_NO_NEWS,
	NETDEV_CHANGED,	 /* neighbours have changed, and none of them has answered */
	NETDEV_ANSWERED, /* the MAC of some neighbour may be used now */
};
/* Takes all messages from the descriptor. */
enum netdev_news netdev_neighbour_news_take(int fd);

/*
 * The interface becomes a member of a multicast group. Returns a descriptor, with whose last copy
 * that ends, or -errno.
 */
int netdev_join(u32 ifindex, const struct gid *group);

/* Frames to which MACs an interface is to take, beside its own and those that the kernel wants. */
struct netdev_macs {
	enum { NETDEV_OWN_MAC, NETDEV_ONE_MAC, NETDEV_ALL_MULTICAST, NETDEV_ALL_MACS } which;
	u8 mac[6]; /* NETDEV_ONE_MAC */
};

/* A descriptor to ask by, or -errno. What was asked by it ends with its last copy. */
int netdev_open_macs(void);
/* Of those that are the same, each is left once. which is not NETDEV_OWN_MAC. 0 or -errno. */
int netdev_take_macs(int fd, u32 ifindex, const struct netdev_macs *macs);
/* An interface that has gone has forgotten it. */
void netdev_leave_macs(int fd, u32 ifindex, const struct netdev_macs *macs);
/* May this process send what it likes (CAP_NET_RAW in its network namespace)? 0 or -errno. */
int netdev_may_send_raw(void);

/*
 * The process that holds an interface, if it is one of ours. netdev_hold(): become the holder;
 * returns a descriptor (hold it open; it needs no service), -EBUSY (another process is), -EPERM (a
 * process that did not prove that it may says so: see netdev_holder()) or -errno. netdev_holder():
 * 0 and the holder's pid (0: not of this pid namespace) and name; -EPERM and both (pid 0 if it
 * cannot be asked) if the holder is neither root nor the caller's user, and so proves nothing;
 * -ENOENT (none) or -errno.
 */
int netdev_hold(u32 ifindex);
/* The holder is this process now, of a descriptor that another was given by netdev_hold(). */
int netdev_take_over(int holder_fd);
int netdev_holder(u32 ifindex, pid_t *pid, char *comm, size_t n);
/* Tells whether a process, of any user, is the holder. True if it cannot be found out. */
bool netdev_is_held(u32 ifindex);
/* Tells whether the holder lets others in. False if it cannot be found out. */
bool netdev_lets_in(u32 ifindex);
/*
 * A connection to the holder, which hangs up when it ends, however it does; -ENOENT: there is none;
 * -EPERM: it proves nothing; or -errno.
 */
int netdev_meet_holder(u32 ifindex);
/*
 * The holder lets nobody in, as long as the descriptor that is returned is open, or -errno; does it
 * say so? met_fd: of netdev_meet_holder(), or -1; the process that was met there is believed also
 * if it has become another user's since.
 */
int netdev_say_alone(u32 ifindex);
bool netdev_is_alone(u32 ifindex, int met_fd);

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
