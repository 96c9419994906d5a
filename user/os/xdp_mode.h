/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * In which mode the receiving XDP program is attached to an interface, told without attaching
 * anything.
 */
#ifndef OS_XDP_MODE_H
#define OS_XDP_MODE_H

#include "netdev.h"

enum xdp_mode {
	XDP_MODE_ANY,	  /* native, or generic where the driver has no native mode */
	XDP_MODE_NATIVE,  /* or not at all */
	XDP_MODE_GENERIC,
};

/*
 * XROCE_XDP's word, if it has one. Else any, but generic on veth: native XDP there makes the other
 * end cut up all that it sends, super-packets and TCP's alike, before it sends it. Native all the
 * same where there are several receive queues, of which generic mode knows the first only; where
 * XROCE_TX wants frames redirected, which this end would not take; and on kernels that copy long
 * packets into one piece for generic mode (before 6.9). Generic, too, on what is stacked on another
 * interface: a bond has native XDP, but its packets are the card's.
 */
enum xdp_mode xdp_mode(const struct netdev *dev);

#endif
