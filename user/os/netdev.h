/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The network interfaces that can be devices, from the kernel over netlink (libmnl): names,
 * addresses (GIDs), MTU, link, routes and neighbours. Changes nothing on an interface except its
 * multicast memberships and the MAC addresses that it takes (netdev_take_macs()); looking up a
 * neighbour makes the kernel resolve it.
 */
#ifndef OS_NETDEV_H
#define OS_NETDEV_H

#include <net/if.h>
#include <stdio.h>
#include <sys/types.h>

#include "../engine/packet.h"
#include "../engine/types.h"

/* An entry of the GID table: index 0 is routable if the interface has a routable address. */
struct netdev_gid {
	struct gid gid;
	u8 prefix_len;
};

/* The environment variable with the only interface that may be a device. */
#define NETDEV_ENV "XROCE_DEV"

/* Name prefix of a broker's TAP devices (user/broker), which are not devices. */
#define NETDEV_TAP_PREFIX "xrt"

struct netdev {
	u32 ifindex;
	char name[IF_NAMESIZE];
	u8 mac[6];
	u32 mtu;
	bool is_enabled;   /* IFF_UP */
	bool is_up;	   /* is_enabled, with a carrier */
	bool is_loopback;
	/* backed by a device on a bus (as the kernel reports from 5.14 on) */
	bool is_hardware;
	/* VLAN, bond, macvlan, bridge ...: kinds other than veth and TAP use another interface */
	bool is_stacked;
	bool is_veth;
	bool is_pair;	   /* veth with its other end in another network namespace */
	u32 rx_queues;	   /* in use now, at least 1 */
	u32 speed_mbps;	   /* 0 = unknown */
	u32 xdp_program;   /* ID of the program on the hook; 0: none, or several */
	u32 num_gids;
	/* IPv4, then global IPv6, then link-local; each in the kernel's order */
	struct netdev_gid gid[XROCE_MAX_GID];
};

/* Returns whether it is an address of the interface. */
static inline bool netdev_has_gid(const struct netdev *dev, const struct gid *gid)
{
	for (u32 i = 0; i < dev->num_gids; i++)
		if (gid_equal(&dev->gid[i].gid, gid))
			return true;
	return false;
}

/*
 * Lists all interfaces of this network namespace that can be devices: Ethernet, with those first
 * that are up and have addresses; lo only if XROCE_DEV names it. XROCE_DEV limits the list to that
 * interface. The caller frees *out with free(). Returns the count or -errno. If XROCE_DEV names no
 * such interface, the count is 0, and a line on standard error reports it once a process.
 */
int netdev_list(struct netdev **out);

/*
 * Finds an interface by name. Returns 0, -ENODEV (no interface of that name), -EOPNOTSUPP (neither
 * Ethernet nor lo) or -errno.
 */
int netdev_find(const char *name, struct netdev *out);

/*
 * Returns a unique number of the calling thread's network namespace: its inode, or without /proc
 * its cookie with the top bit set; 0 if neither is known (no /proc, and before 5.14).
 */
u64 netdev_netns(void);
/* Returns the cookie of a socket's network namespace; 0 before Linux 5.14. */
u64 netdev_netns_of(int socket);

/*
 * Makes the GIDs of `now` the only ones in a map of the layout of xroce_gid, which has the GIDs of
 * `before`, the same interface earlier. Returns 0, or -errno of the first GID that failed.
 */
int netdev_publish_gids(int map_fd, const struct netdev *before, const struct netdev *now);

/* Reads an interface again. Returns 0, -ENODEV or -errno. */
int netdev_refresh(struct netdev *dev);

/*
 * A socket for repeated requests to the kernel, in the network namespace in which it was opened.
 * Any thread may use it. Functions that take a session accept NULL: then they use a temporary
 * socket in the caller's network namespace.
 */
struct netdev_session;
int netdev_session_open(struct netdev_session **out); /* 0 or -errno */
void netdev_session_close(struct netdev_session *s);  /* NULL: nothing. Also in a child. */

/* As netdev_refresh(), but keeps the driver's values in *dev: rx_queues and speed_mbps. */
int netdev_refresh_addresses(struct netdev_session *s, struct netdev *dev);

/*
 * Returns the largest path MTU in bytes (256 .. 4096) whose frames fit a link MTU, or 0 if not even
 * 256 fits. multibuffer: the kernel has AF_XDP multi-buffer.
 */
u32 netdev_path_mtu(u32 link_mtu, bool multibuffer);

/* Returns the smallest link MTU whose frames carry a path MTU. */
u32 netdev_link_mtu_for(u32 path_mtu);

/* Returns whether AF_XDP can receive frames in several buffers (by kernel release: >= 6.6). */
bool netdev_kernel_multibuffer(void);
/* Returns whether BPF_PROG_TYPE_SYSCALL programs can pass their context as memory (>= 6.1). */
bool netdev_kernel_syscall_context(void);
/* Returns whether generic XDP gets long packets as they are (by the kernel's release: >= 6.9). */
bool netdev_kernel_generic_frags(void);

struct netdev_route {
	u32 ifindex;
	bool is_local; /* the peer is an address of this host */
	u8 hop_limit;
	struct gid local;
};

/*
 * Finds the interface and source address by which the kernel sends to peer. local may be NULL (the
 * kernel chooses) and ifindex 0 (any interface; for an address of this host its interface).
 * Does not look up neighbours. Returns 0, -ENETUNREACH (no route), -ENODEV (an address of this host
 * on no interface that can be a device), -EADDRNOTAVAIL (no source address), -EINVAL (families
 * differ; a broadcast or unspecified address; a link-local one without an interface), the route's
 * error: -EHOSTUNREACH, -EACCES, -EINVAL; or another -errno. A session caches the default hop
 * limit, a setting, for 0.1 s.
 */
int netdev_route(struct netdev_session *s, const struct gid *peer, const struct gid *local,
		 u32 ifindex, struct netdev_route *out);

/*
 * Resolves the path of packets from local (a GID of dev) to peer: fills dmac, smac, local, peer,
 * is_ipv6, has_vlan = false. A peer that is a GID of dev gets dev's MAC: the port loops such frames
 * back. A multicast peer gets the multicast MAC. Asks the kernel for the neighbour and waits up to
 * timeout_ms: 0 asks without waiting, NETDEV_LOOK neither asks nor waits. heard: NULL, or the MAC
 * to use, without waiting, if the kernel does not know the neighbour now. Returns 0, -EHOSTUNREACH
 * (no answer, or a neighbour without a MAC), -ENETUNREACH (no route over dev), -EINVAL (local is
 * not a GID of dev; families differ; peer is unspecified or a broadcast address), or another
 * -errno.
 */
#define NETDEV_LOOK (-1)
int netdev_resolve(struct netdev_session *s, const struct netdev *dev, const struct gid *local,
		   const struct gid *peer, int timeout_ms, const u8 *heard, struct path *out);

/*
 * Opens a descriptor that is readable when any neighbour changes, or returns -errno. For callers
 * that ask with a time-out of 0, and again when a neighbour has answered.
 */
int netdev_neighbour_news(void);
enum netdev_news {
	NETDEV_NO_NEWS,
	NETDEV_CHANGED,	 /* neighbours have changed, but none is usable */
	NETDEV_ANSWERED, /* the MAC of some neighbour may have become usable */
};
/* Reads all messages from the descriptor. */
enum netdev_news netdev_neighbour_news_take(int fd);

/*
 * Makes the interface a member of a multicast group. Returns a descriptor, whose last copy keeps
 * the membership, or -errno.
 */
int netdev_join(u32 ifindex, const struct gid *group);

/* Destination MACs that an interface shall take in addition to its own and the kernel's. */
struct netdev_macs {
	enum { NETDEV_OWN_MAC, NETDEV_ONE_MAC, NETDEV_ALL_MULTICAST, NETDEV_ALL_MACS } which;
	u8 mac[6]; /* NETDEV_ONE_MAC */
};

/* Opens a descriptor for requests, or returns -errno. The requests end with its last copy. */
int netdev_open_macs(void);
/* Adds a request, which is counted if it exists; not NETDEV_OWN_MAC. Returns 0 or -errno. */
int netdev_take_macs(int fd, u32 ifindex, const struct netdev_macs *macs);
/* Removes a request once; does nothing if the interface is gone. */
void netdev_leave_macs(int fd, u32 ifindex, const struct netdev_macs *macs);
/* Returns 0 if this process has CAP_NET_RAW in its network namespace, or -errno. */
int netdev_may_send_raw(void);

/*
 * The process that holds an interface, if it is one of ours. netdev_hold() makes this process the
 * holder. It returns a descriptor that only has to stay open, -EBUSY (another process is the
 * holder), -EPERM (a process that proves nothing claims to be, see netdev_holder()) or -errno.
 * netdev_holder() returns 0 with the holder's pid (0: not in this pid namespace) and name; -EPERM
 * with both (pid 0 if it cannot be asked) if the holder is neither root nor the caller's user, and
 * so proves nothing; -ENOENT (no holder) or -errno.
 */
int netdev_hold(u32 ifindex);
int netdev_holder(u32 ifindex, pid_t *pid, char *comm, size_t n);
/* Returns whether a process, of any user, is the holder. True if unknown. */
bool netdev_is_held(u32 ifindex);
/* Returns whether the holder admits other processes. False if unknown. */
bool netdev_lets_in(u32 ifindex);
/*
 * Returns a connection to the holder, which hangs up when the holder exits, for any reason;
 * -ENOENT: no holder; -EPERM: it proves nothing; or -errno.
 */
int netdev_meet_holder(u32 ifindex);
/*
 * netdev_say_alone() declares that the holder admits no other process while the returned descriptor
 * is open, or returns -errno. netdev_is_alone() returns whether it has done so. met_fd: from
 * netdev_meet_holder(), or -1; the process met there is believed even if it has changed its user
 * since.
 */
int netdev_say_alone(u32 ifindex);
bool netdev_is_alone(u32 ifindex, int met_fd);

/*
 * Returns the CPU that handles the interrupts of a receive queue, if it is known and only one, else
 * -ENOENT: kernels before 6.8, and interfaces without interrupts.
 */
int netdev_queue_cpu(u32 ifindex, u32 queue);

/* Gets the driver's name as ethtool shows it. Returns 0 or -errno; lo has none. */
int netdev_driver(const char *name, char *driver, size_t n);

/*
 * Gets the driver's XDP features, as in <linux/netdev.h>. Returns 0, -ENOENT (the kernel does not
 * report them; before 6.3) or -errno.
 */
#define NETDEV_XDP_BASIC	(1u << 0)
#define NETDEV_XDP_REDIRECT	(1u << 1)
/* takes frames redirected to it, at the moment */
#define NETDEV_XDP_NDO_XMIT	(1u << 2)
#define NETDEV_XDP_XSK_ZEROCOPY (1u << 3)
#define NETDEV_XDP_RX_SG	(1u << 5)
int netdev_xdp_features(u32 ifindex, u64 *features);

/*
 * An interface in InfiniBand terms, for the verbs (ibv_query_device(3), ibv_query_port(3)) and for
 * the files that `xroce run` shows (user/tools/run/sysfs.c). Computed from a struct netdev alone.
 */

/* Prefix of device names: xroce_IFACE. */
#define NETDEV_DEVICE_PREFIX "xroce_"

/* Physical states of a port (IBTA, PortPhysicalState). */
enum port_phys_state { PHYS_POLLING = 2, PHYS_DISABLED = 3, PHYS_LINK_UP = 5 };

/* The MAC as an EUI-64: ff:fe in its middle, the universal/local bit inverted (RFC 4291, A). */
void netdev_guid(const struct netdev *dev, u8 guid[8]);

enum port_phys_state netdev_phys_state(const struct netdev *dev);

/* Width and speed as IBTA codes (PortInfo), and the resulting rate. */
struct port_speed {
	u8 width; /* 1 = 1X, 2 = 4X */
	u8 speed; /* 1 = 2.5, 4 = 10, 32 = 25, 64 = 50, 128 = 100 Gbit/s a lane */
	u32 mbps;
};

/* Returns the interface's speed, rounded up to the next code. */
struct port_speed netdev_port_speed(const struct netdev *dev);

/* Chooses the XDP mode of an interface's receiving program, without attaching anything. */

enum xdp_mode {
	XDP_MODE_ANY,	  /* native, or generic if the driver has no native mode */
	XDP_MODE_NATIVE,  /* native only */
	XDP_MODE_GENERIC,
};

/*
 * Returns the mode of XROCE_XDP, if set; otherwise any, but generic on veth and stacked interfaces.
 * On veth, native XDP makes the other end cut everything before it sends it, our super-packets and
 * TCP's. But veth is native with several receive queues, as generic mode sees only the first; if
 * XROCE_TX asks for redirection, which a generic end refuses; and before 6.9, where generic mode
 * gets a copy of long packets in one piece. Stacked interfaces are generic: a bond has native XDP,
 * but its packets arrive at the card.
 */
enum xdp_mode xdp_mode(const struct netdev *dev);

#endif
