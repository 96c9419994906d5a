/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <unistd.h>

#include "../os/options.h"
#include "../os/netdev.h"
#include "tx_probe.h"

/* The largest path MTU whose frames can be redirected. */
#define REDIRECT_PATH_MTU 2048u

enum tx_probe tx_probe(u32 ifindex)
{
	enum tx_choice choice = options_tx();
	u64 features;

	if (choice == TX_XSK || choice == TX_GSO)
		return choice == TX_XSK ? TX_PROBE_FORCED_XSK : TX_PROBE_FORCED_GSO;
	if (netdev_xdp_features(ifindex, &features))
		return TX_PROBE_UNTOLD;
	if (features & NETDEV_XDP_XSK_ZEROCOPY && choice == TX_AUTO)
		return TX_PROBE_ZERO_COPY;
	if (!(features & (NETDEV_XDP_BASIC | NETDEV_XDP_NDO_XMIT)))
		return TX_PROBE_NO_NATIVE;
	if (access(TX_TUN_DEVICE, R_OK | W_OK))
		return TX_PROBE_NO_TUN;
	return features & NETDEV_XDP_NDO_XMIT ? TX_PROBE_REDIRECT : TX_PROBE_NOT_NOW;
}

bool tx_may_gso(const struct netdev *dev)
{
	enum tx_choice choice = options_tx();

	return choice == TX_GSO || (choice == TX_AUTO && !dev->is_hardware && !dev->is_stacked &&
				    netdev_kernel_generic_frags());
}

u32 tx_preferred_path_mtu(const struct netdev *dev, u32 path_mtu)
{
	enum tx_probe probe;

	if (path_mtu <= REDIRECT_PATH_MTU)
		return path_mtu;
	probe = tx_probe(dev->ifindex);
	/* a generic-mode interface that takes no redirected frames now is assumed to stay so */
	if (probe == TX_PROBE_NOT_NOW && tx_may_gso(dev) && xdp_mode(dev) == XDP_MODE_GENERIC)
		return path_mtu;
	return probe == TX_PROBE_REDIRECT || probe == TX_PROBE_NOT_NOW ? REDIRECT_PATH_MTU :
										 path_mtu;
}
