/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared parts of the netdev files: a netlink exchange, checked attribute reads, the kernel's
 * notifications, and the parts of struct netdev that are not from rtnetlink.
 */
#ifndef OS_NETDEV_NL_H
#define OS_NETDEV_NL_H

#include <libmnl/libmnl.h>

#include "../engine/types.h"
#include "netdev.h"

/* Size of a request; the largest is a route query with three addresses. */
#define NL_REQUEST_BYTES 256
/* Restarts of a dump whose content changed. */
#define NL_DUMP_RETRIES 16

/*
 * Sends req on a temporary socket and passes every answer to cb (may be NULL), up to the
 * acknowledgement or the dump's end. Sets NLM_F_REQUEST, NLM_F_ACK (no dump) and the sequence
 * number. Returns 0 or the kernel's -errno; -EINTR: the dump is inconsistent, restart it.
 */
int nl_request(int protocol, struct nlmsghdr *req, mnl_cb_t cb, void *arg);

/* The same on an open and bound socket. */
int nl_exchange(struct mnl_socket *nl, struct nlmsghdr *req, mnl_cb_t cb, void *arg);

/* The same to rtnetlink, on the session's socket; NULL: on a temporary one. */
int nl_route_request(struct netdev_session *s, struct nlmsghdr *req, mnl_cb_t cb, void *arg);

/* Get (0 if unknown or too old) and store an interface's hop limit. */
u8 netdev_session_hop_limit(struct netdev_session *s, u8 family, u32 ifindex);
void netdev_session_keep_hop_limit(struct netdev_session *s, u8 family, u32 ifindex, u8 limit);

/*
 * Fills the table of attributes by type, NULL if absent; ignores types above max. The lengths of
 * its entries are not checked: nl_get_*() do that.
 */
void nl_parse(const struct nlmsghdr *nlh, size_t header_len, const struct nlattr **table, u16 max);

/*
 * Copy an attribute of exactly len bytes (a string: at most, including NUL) to dst. Return false if
 * attr is NULL or has another length.
 */
bool nl_get(const struct nlattr *attr, void *dst, size_t len);
bool nl_get_string(const struct nlattr *attr, char *dst, size_t len);

/*
 * Begins an rtnetlink request of that type about an interface (0: none) in buf, NL_REQUEST_BYTES of
 * zeros. Its payload is a struct ifinfomsg.
 */
struct nlmsghdr *nl_link_request(void *buf, u16 type, u32 ifindex);

/* Sets the flags of an interface that `change` names. Returns 0 or -errno. */
int nl_link_set_flags(u32 ifindex, u32 flags, u32 change);

/*
 * Keeps IPv6 from making a link-local address, so that the interface sends nothing by itself.
 * Returns 0, also on a kernel without IPv6, or -errno.
 */
int nl_link_forbid_addresses(u32 ifindex);

/* Returns the ID of a generic netlink family, or -errno (-ENOENT: this kernel does not have it). */
int nl_family(const char *name);

/* Gets an interface's kind from IFLA_LINKINFO; returns false if there is none. */
bool netdev_link_kind(const struct nlattr *linkinfo, char *kind, size_t n);

/* Gets an interface's state from a link message; returns false if it cannot be read. */
bool netdev_link_message(const struct nlmsghdr *nlh, bool *is_enabled, bool *is_up);

/*
 * The request of netdev_xdp_features(), and the callback for its answer. arg is a u64, unchanged if
 * the answer has no features.
 */
#define NETDEV_FAMILY "netdev"
void netdev_features_request(struct nlmsghdr *nlh, int family, u32 ifindex);
int netdev_features_cb(const struct nlmsghdr *nlh, void *arg);

/*
 * Calls fn for each interface of this network namespace that can be a device and is up, regardless
 * of XROCE_DEV, without speed and queues. Excludes lo. Returns 0 or -errno.
 */
typedef void netdev_fn(void *arg, const struct netdev *dev);
int netdev_each(netdev_fn *fn, void *arg);

/*
 * Gets the MAC of another interface of this network namespace that is up and has this address.
 * Returns 0, -ENOENT (no such interface) or -errno.
 */
int netdev_holder_of(const struct gid *gid, u32 but_ifindex, u8 mac[6]);

/* Runs an ethtool command; cmd is a struct that starts with its number. Returns 0 or -errno. */
int netdev_ethtool(const char *name, void *cmd);

/* Returns the receive queues in use, at least 1; num_rx_queues is their number at creation. */
u32 netdev_rx_queues(const char *name, u32 ifindex, u32 num_rx_queues);
/* Returns the link speed in Mb/s, 0 if the driver does not report it. */
u32 netdev_speed_mbps(const char *name);

/*
 * The kernel's notifications about interfaces, in the network namespace in which the socket was
 * opened: they identify the interface that changed, and rarely the change.
 */

struct link_events {
	int fd; /* readable when there are notifications */
	/* the kernel's longest message */
	char messages[32768] __attribute__((aligned(NLMSG_ALIGNTO)));
};

enum link_events_kind {
	LINK_EVENTS_LINK, /* the interface's state may have changed: nlh has it */
	LINK_EVENTS_ADDRESS,
	LINK_EVENTS_GONE, /* also if the ifindex has been given to another interface since */
	LINK_EVENTS_LOST, /* notifications of any interface were lost; no ifindex and nlh */
};

typedef void link_events_fn(void *arg, enum link_events_kind kind, u32 ifindex,
			    const struct nlmsghdr *nlh);

/* Returns 0, or -errno with n->fd -1. */
int link_events_open(struct link_events *n);
void link_events_close(struct link_events *n);
/* Passes all pending notifications to fn. Does not wait. */
void link_events_take(struct link_events *n, link_events_fn *fn, void *arg);

#endif
