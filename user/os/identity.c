/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <string.h>

#include "identity.h"

void netdev_guid(const struct netdev *dev, u8 guid[8])
{
	const u8 *mac = dev->mac;
	const u8 eui[8] = { mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5] };

	memcpy(guid, eui, sizeof(eui));
}

enum port_phys_state netdev_phys_state(const struct netdev *dev)
{
	return dev->is_up ? PHYS_LINK_UP : dev->is_enabled ? PHYS_POLLING : PHYS_DISABLED;
}

struct port_speed netdev_port_speed(const struct netdev *dev)
{
	static const struct port_speed table[] = {
		{ 1, 1, 2500 },	  { 1, 4, 10000 },   { 1, 32, 25000 },	{ 2, 4, 40000 },
		{ 1, 64, 50000 }, { 2, 32, 100000 }, { 2, 64, 200000 }, { 2, 128, 400000 },
	};
	u32 i = 0;

	while (i < ARRAY_SIZE(table) - 1 && dev->speed_mbps > table[i].mbps)
		i++;
	return table[i];
}
