/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Addresses of the other interfaces of this network namespace. Frames from clients to an interface
 * with a broker go to that interface's hairpin, and never leave the machine. A broker finds the
 * hairpins of others by their names.
 *
 * Frames to an interface without a broker take the wire, for example to the other end of a veth
 * pair or to a second macvlan. The kernel routes them, but cannot resolve an IPv4 neighbour on the
 * same machine: it rejects an ARP request from one of its own addresses as forged (accept_local in
 * Documentation/networking/ip-sysctl.rst). Neighbour discovery has no such rule. So the next hop is
 * that interface's IPv6 link-local address, if both interfaces have one.
 */
#ifndef BROKER_NEIGHBOURS_H
#define BROKER_NEIGHBOURS_H

#include <libmnl/libmnl.h>
#include <xroce/abi.h>

#include "../engine/types.h"

struct neighbours {
	u32 ifindex; /* of the broker's interface */
	u32 num;
	struct neighbours_address {
		struct gid gid;
		struct xroce_neighbour way;
	} address[XROCE_MAX_NEIGHBOUR];
};

/*
 * Returns whether a notification (NULL: some were lost) may concern these addresses. One about a
 * client's TAP device does not.
 */
bool neighbours_concerns(const struct nlmsghdr *nlh);

/*
 * Updates the map (xroce_neighbour) to the present addresses. n: the map's last content; at first 0
 * except for ifindex. Returns 0, or -errno of the first failure.
 */
int neighbours_follow(struct neighbours *n, int map_fd);

#endif
