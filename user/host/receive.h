/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Receives RoCEv2 by UDP sockets, one for each address of an interface, without any privilege. A
 * socket shows the payload of a datagram; the headers of a frame are written before it, for the
 * programs. The Ethernet addresses are 0, and the IPv4 identification and flags are not known:
 * engine/icrc.h.
 */
#ifndef HOST_RECEIVE_H
#define HOST_RECEIVE_H

#include "../os/netdev.h"
#include "program.h"

#define HOST_GROUPS_OF_USER (XROCE_MAX_GROUP / 4)
#define HOST_ADDRESSES (XROCE_MAX_GID + XROCE_MAX_GROUP) /* of the interface, and groups */

struct host_address {
	struct gid gid;
	bool is_group; /* a multicast group's */
	int fd;
};

struct host_receive {
	struct host *host;
	u32 ifindex;
	int set_fd; /* readable when a datagram is there; -1: not open */
	u32 num, groups; /* addresses in use, and how many of them are groups */
	struct host_address address[HOST_ADDRESSES];
	struct host_buffers *buffers;
};

/* Returns 0, or -errno if a seccomp filter refuses recvmmsg(2). */
int host_receive_check(void);
/* Returns 0 or -errno. */
int host_receive_open(struct host_receive *r, struct host *host, u32 ifindex);
void host_receive_close(struct host_receive *r);
/*
 * Opens sockets for new addresses, and closes the sockets of removed addresses. Returns
 * 0, or -errno of the first address without a socket, which *failed is then: -EADDRINUSE if another
 * program has its port.
 */
int host_receive_follow(struct host_receive *r, const struct netdev *dev, struct gid *failed);
/*
 * Receives packets to a multicast group, by the interface, until host_receive_leave(). Returns 0,
 * also if it does so already; -ENOSPC: too many groups; or -errno.
 */
int host_receive_join(struct host_receive *r, const struct gid *group);
void host_receive_leave(struct host_receive *r, const struct gid *group);
/* Returns how many frames with the largest payload a socket holds, at least. */
u32 host_receive_room(const struct host_receive *r);
/*
 * Takes datagrams, a bounded number, and wakes the readers of the rings. Returns false if none was
 * there.
 */
bool host_receive_take(struct host_receive *r);
/* Takes all datagrams that are there; if an address has more than `least`, at least that number. */
void host_receive_take_all(struct host_receive *r, u32 least);
/*
 * Passes a datagram's payload to the host's programs; segment: bytes of each packet in it but the
 * last. There are HOST_HEADROOM bytes before the payload, which change.
 */
struct host_datagram {
	u8 *payload;
	u32 len, segment;
	struct gid src, dst;
	u16 sport;  /* host order */
	u8 tos, ttl; /* or traffic class and hop limit */
};
#define HOST_HEADROOM 64u
void host_receive_datagram(struct host *h, const struct host_datagram *d);

#endif
