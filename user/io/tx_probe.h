/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds out which way frames would leave an interface if this process opened it, without opening
 * anything: the choice that tx_policy.c will make. Privileges are not checked; probe.h tests them.
 */
#ifndef IO_TX_PROBE_H
#define IO_TX_PROBE_H

#include "../os/netdev.h"

#define TX_TUN_DEVICE "/dev/net/tun"

enum tx_probe {
	TX_PROBE_REDIRECT,  /* by XDP redirection, except frames that are too long for it */
	/* by XDP redirection when the interface takes redirected frames; it does not now */
	TX_PROBE_NOT_NOW,
	TX_PROBE_FORCED_GSO, /* through a packet socket alone: XROCE_TX asks for it */
	TX_PROBE_FORCED_XSK, /* through AF_XDP alone: XROCE_TX asks for it */
	TX_PROBE_ZERO_COPY, /* through AF_XDP alone: the driver has zero-copy */
	/* the others use these two sockets, or AF_XDP alone where tx_may_gso() is false */
	TX_PROBE_NO_NATIVE, /* the driver has no native XDP */
	/* the kernel does not report what the interface takes (before 6.3) */
	TX_PROBE_UNTOLD,
	/* TX_TUN_DEVICE is missing or not accessible; errno says which */
	TX_PROBE_NO_TUN,
};

enum tx_probe tx_probe(u32 ifindex);
/*
 * Returns whether frames that cannot be redirected may leave as UDP super-packets. XROCE_TX decides
 * first. By default they may not on kernels where generic XDP needs each in one piece and may drop
 * it. Nor may they on hardware, as the packet numbering of NICs is untested. Nor on stacked
 * interfaces: a VLAN refused all of them, others are untested.
 */
bool tx_may_gso(const struct netdev *dev);

/* Returns the largest path MTU up to path_mtu whose frames the fastest way takes. */
u32 tx_preferred_path_mtu(const struct netdev *dev, u32 path_mtu);

#endif
