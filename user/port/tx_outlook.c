/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <unistd.h>

#include "port_state.h"
#include "tx_outlook.h"

/* The path MTU from which on a frame is too long to be redirected. */
#define REDIRECT_PATH_MTU 2048u

enum tx_outlook tx_outlook(u32 ifindex)
{
	enum tx_choice choice = options_tx();
	u64 features;

	if (choice == TX_XSK)
		return TX_OUTLOOK_FORCED;
	if (netdev_xdp_features(ifindex, &features))
		return TX_OUTLOOK_UNTOLD;
	if (features & NETDEV_XDP_XSK_ZEROCOPY && choice == TX_AUTO)
		return TX_OUTLOOK_ZERO_COPY;
	if (!(features & (NETDEV_XDP_BASIC | NETDEV_XDP_NDO_XMIT)))
		return TX_OUTLOOK_NO_NATIVE;
	if (access(TX_TUN_DEVICE, R_OK | W_OK))
		return TX_OUTLOOK_NO_TUN;
	return features & NETDEV_XDP_NDO_XMIT ? TX_OUTLOOK_REDIRECT : TX_OUTLOOK_NOT_NOW;
}

u32 tx_preferred_path_mtu(u32 ifindex, u32 path_mtu)
{
	enum tx_outlook outlook;

	if (path_mtu <= REDIRECT_PATH_MTU)
		return path_mtu;
	outlook = tx_outlook(ifindex);
	return outlook == TX_OUTLOOK_REDIRECT || outlook == TX_OUTLOOK_NOT_NOW ? REDIRECT_PATH_MTU : path_mtu;
}
