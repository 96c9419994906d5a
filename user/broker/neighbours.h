/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The addresses that are near: those of the other interfaces of this network namespace. What
 * clients send to an interface with a broker turns round at its hairpin and never leaves the
 * machine. A broker finds the hairpins of others by their names.
 *
 * To an interface without a broker it goes by the wire, as the end of a veth pair or the second of
 * two macvlans. The kernel routes it, but cannot resolve such an IPv4 neighbour: it takes an ARP
 * request from one of its own addresses for forged (accept_local in
 * Documentation/networking/ip-sysctl.rst). Neighbour discovery has no such rule, so the next hop is
 * that interface's IPv6 link-local address, where both have one.
 */
#ifndef BROKER_NEIGHBOURS_H
#define BROKER_NEIGHBOURS_H

#include <libmnl/libmnl.h>
#include <xroce/abi.h>

#include "../engine/types.h"

struct neighbours {
	u32 ifindex; /* of the interface whose neighbours they are */
	u32 num;
	struct neighbours_address {
		struct gid gid;
		struct xroce_near way;
	} address[XROCE_MAX_NEAR];
};

/* May the news be of such an address? Not that of a client's TAP device. */
bool neighbours_concerns(const struct nlmsghdr *nlh);

/*
 * Makes the map (xroce_near) hold what is near now; n is what it held before, at first nothing but
 * the interface's number. Returns 0 or -errno of the first that failed.
 */
int neighbours_follow(struct neighbours *n, int map_fd);

#endif
