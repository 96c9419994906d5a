/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An interface in InfiniBand terms, for the verbs (ibv_query_device(3), ibv_query_port(3)) and for
 * the files that `xroce run` shows (user/tools/run/sysfs.c). Computed from a struct netdev alone.
 */
#ifndef OS_IDENTITY_H
#define OS_IDENTITY_H

#include "netdev.h"

/* Prefix of device names: xroce_IFACE. */
#define NETDEV_DEVICE_PREFIX "xroce_"

/* Physical states of a port (IBTA, PortPhysicalState). */
enum port_phys_state { PHYS_POLLING = 2, PHYS_DISABLED = 3, PHYS_LINK_UP = 5 };

/* The MAC as an EUI-64: ff:fe in its middle, the universal/local bit inverted (RFC 4291, A). */
void netdev_guid(const struct netdev *dev, u8 guid[8]);

enum port_phys_state netdev_phys_state(const struct netdev *dev);

/* Width and speed as IBTA codes (PortInfo), and the resulting rate. */
struct port_speed {
	u8 width; /* 1 = 1X, 2 = 4X */
	u8 speed; /* 1 = 2.5, 4 = 10, 32 = 25, 64 = 50, 128 = 100 Gbit/s a lane */
	u32 mbps;
};

/* Returns the interface's speed, rounded up to the next code. */
struct port_speed netdev_port_speed(const struct netdev *dev);

#endif
