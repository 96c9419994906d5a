/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the netdev files share among themselves: one netlink exchange, checked attribute reads, and
 * the parts of struct netdev that do not come from rtnetlink.
 */
#ifndef OS_NETDEV_NL_H
#define OS_NETDEV_NL_H

#include <libmnl/libmnl.h>

#include "netdev.h"

/* Room for one request of ours; the largest is a route query with three addresses. */
#define NL_REQUEST_BYTES 256
/* Times a dump is begun anew when what it lists changes meanwhile. */
#define NL_DUMP_RETRIES 16

/*
 * Send req on a socket of its own and hand every answer to cb (may be NULL), up to the
 * acknowledgement or the dump's end: sets NLM_F_REQUEST, NLM_F_ACK (no dump) and the sequence
 * number itself. Returns 0 or the kernel's -errno; -EINTR: the dump is inconsistent, begin anew.
 */
int nl_request(int protocol, struct nlmsghdr *req, mnl_cb_t cb, void *arg);

/* The same on a socket that is open and bound. */
int nl_exchange(struct mnl_socket *nl, struct nlmsghdr *req, mnl_cb_t cb, void *arg);

/* The same to rtnetlink: on the session's socket; NULL: on one of its own. */
int nl_route_request(struct netdev_session *s, struct nlmsghdr *req, mnl_cb_t cb, void *arg);

/* The hop limit that was read for that interface lately, or 0; and it is kept from now on. */
u8 netdev_session_hop_limit(struct netdev_session *s, u8 family, u32 ifindex);
void netdev_session_keep_hop_limit(struct netdev_session *s, u8 family, u32 ifindex, u8 limit);

/*
 * Attribute table by type, NULL where absent; types above max are ignored. Lengths of the table's
 * entries are not checked yet: nl_get_*() do.
 */
void nl_parse(const struct nlmsghdr *nlh, size_t header_len, const struct nlattr **table, u16 max);

/*
 * True if attr is present with exactly (a string: at most, NUL included) len bytes, which are then
 * copied to dst.
 */
bool nl_get(const struct nlattr *attr, void *dst, size_t len);
bool nl_get_string(const struct nlattr *attr, char *dst, size_t len);

/* The ID of a generic netlink family, or -errno (-ENOENT: this kernel does not have it). */
int nl_family(const char *name);

/* The kind of interface that IFLA_LINKINFO tells; false: none. */
bool netdev_link_kind(const struct nlattr *linkinfo, char *kind, size_t n);

/* What a link message says of the interface's state; false if it is none that can be read. */
bool netdev_link_message(const struct nlmsghdr *nlh, bool *is_enabled, bool *is_up);

/*
 * What netdev_xdp_features() asks, and the callback that takes the answer: arg is a u64, left alone
 * if there is none.
 */
#define NETDEV_FAMILY "netdev"
void netdev_features_request(struct nlmsghdr *nlh, int family, u32 ifindex);
int netdev_features_cb(const struct nlmsghdr *nlh, void *arg);

/* An address as rtnetlink has it. */
struct hop {
	u8 family;
	u8 len;
	u8 addr[16];
};

struct hop hop_of_gid(const struct gid *gid);
bool hop_is_multicast(const struct hop *h);
/* 0.0.0.0/8, 255.255.255.255 and ::, to which nothing can be sent. */
bool hop_is_nowhere(const struct hop *h);
/*
 * The neighbour on the interface that packets to dst go to. Returns 0, -ENETUNREACH, -EINVAL (dst
 * is a broadcast address) or -errno.
 */
int hop_next(struct netdev_session *s, u32 ifindex, const struct hop *src, const struct hop *dst,
	     struct hop *next);

/* Is it an address of the interface's? */
bool netdev_has_gid(const struct netdev *dev, const struct gid *gid);

/*
 * Calls fn for each interface of this network namespace that can be a device and is up, whatever
 * XROCE_DEV says; without speed and queues. Not for lo. Returns 0 or -errno.
 */
typedef void netdev_fn(void *arg, const struct netdev *dev);
int netdev_each(netdev_fn *fn, void *arg);

/*
 * The MAC of another interface of this network namespace that is up and has this address. Returns
 * 0, -ENOENT (none has) or -errno.
 */
int netdev_holder_of(const struct gid *gid, u32 but_ifindex, u8 mac[6]);

/*
 * Receive queues that exist now (of the num_rx_queues that the interface was made with), at least
 * 1.
 */
u32 netdev_rx_queues(const char *name, u32 ifindex, u32 num_rx_queues);
/* Link speed in Mb/s, 0 if the driver does not say. */
u32 netdev_speed_mbps(const char *name);

#endif
