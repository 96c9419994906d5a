/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which way frames would leave an interface if this process opened it, told without opening
 * anything: what tx_policy.c will find. Privileges are not looked at; probe.h tries them out.
 */
#ifndef IO_TX_PROBE_H
#define IO_TX_PROBE_H

#include "../os/netdev.h"

#define TX_TUN_DEVICE "/dev/net/tun"

enum tx_probe {
	TX_PROBE_REDIRECT,  /* by XDP redirection, but for frames that are too long for it */
	/* so too, while the interface takes redirected frames; at the moment it does not */
	TX_PROBE_NOT_NOW,
	TX_PROBE_FORCED_GSO, /* through a packet socket alone, as XROCE_TX says so */
	TX_PROBE_FORCED_XSK, /* through AF_XDP alone, as XROCE_TX says so */
	TX_PROBE_ZERO_COPY, /* so too, as the driver has zero-copy */
	/* the others: through these two sockets, or AF_XDP alone where tx_may_gso() says so */
	TX_PROBE_NO_NATIVE, /* as the driver has no native XDP */
	/* as the kernel does not tell what the interface takes (before 6.3) */
	TX_PROBE_UNTOLD,
	/* as there is no TX_TUN_DEVICE, or not for this process; errno says which */
	TX_PROBE_NO_TUN,
};

enum tx_probe tx_probe(u32 ifindex);
/*
 * What cannot be redirected may leave as UDP super-packets, by XROCE_TX. If that leaves the choice:
 * not where a kernel as old as this one would want each in one piece for a receiver's generic XDP,
 * and may lose it, nor where a NIC would cut them, whose way to number the packets was never seen,
 * nor on interfaces that hand packets to others (a VLAN's refused all of them): those were not
 * tried.
 */
bool tx_may_gso(const struct netdev *dev);

/* Of the path MTUs up to path_mtu, the largest whose frames the fastest way takes. */
u32 tx_preferred_path_mtu(const struct netdev *dev, u32 path_mtu);

#endif
