/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sends frames as datagrams of UDP sockets, without any privilege: the kernel writes the Ethernet,
 * IP and UDP headers. Consecutive frames to one QP leave in one call as segments of a super-packet
 * (UDP_SEGMENT). Under the shard's lock.
 *
 * The ICRC covers two fields that the kernel chooses, so it is changed for them:
 *
 *   source port      that of our socket
 *   identification   of a socket that is not connected and may not fragment, Linux sends 0, and
 *                    0, 1, 2, ... in the segments of a super-packet (ip_select_ident_segs(),
 *                    inet_gso_segment())
 *
 * A virtual interface may carry a super-packet to a receiver's XDP program uncut. There the first
 * packet has a code for the length of all (engine/gso.h), and only lengths with a code are joined.
 */
#ifndef IO_TX_UDP_H
#define IO_TX_UDP_H

#include "../os/netdev.h"
#include "tx.h"

/*
 * Opens a sender in the calling thread's network namespace for frames of the interface, whose index
 * selects the link of IPv6 link-local addresses. Returns 0 or -errno.
 */
int tx_udp_open(const struct netdev *dev, struct xroce_engine_stats *stats, struct tx **out);

#endif
