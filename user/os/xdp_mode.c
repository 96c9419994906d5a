/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <string.h>

#include "options.h"
#include "xdp_mode.h"

static bool is_veth(const struct netdev *dev)
{
	char driver[32];

	return !netdev_driver(dev->name, driver, sizeof(driver)) && !strcmp(driver, "veth");
}

static bool wants_redirection(void)
{
	const enum tx_choice choice = options_tx();

	return choice == TX_TAP || choice == TX_LIVE;
}

enum xdp_mode xdp_mode(const struct netdev *dev)
{
	switch (options_xdp()) {
	case XDP_CHOICE_NATIVE:
		return XDP_MODE_NATIVE;
	case XDP_CHOICE_GENERIC:
		return XDP_MODE_GENERIC;
	case XDP_CHOICE_AUTO:
		break;
	}
	/*
	 * A packet's queue is the underlying card's: an AF_XDP socket on a bond gets none of the
	 * packets that the card's driver passed to XDP.
	 */
	if (dev->is_stacked)
		return XDP_MODE_GENERIC;
	return is_veth(dev) && dev->rx_queues <= 1 && !wants_redirection() &&
			       netdev_kernel_generic_frags() ?
		       XDP_MODE_GENERIC :
		       XDP_MODE_ANY;
}
