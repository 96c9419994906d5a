/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Chooses the XDP mode of an interface's receiving program, without attaching anything. */
#ifndef OS_XDP_MODE_H
#define OS_XDP_MODE_H

#include "netdev.h"

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
