/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The path MTU of an interface, which its ways to send limit (tx.h). */
#ifndef IO_TX_POLICY_H
#define IO_TX_POLICY_H

#include "../engine/types.h"

struct netdev;

/*
 * Returns the active_mtu to offer (ibv_query_port(3)): the largest path MTU up to path_mtu whose
 * frames leave by the fastest way. Larger ones work.
 */
u32 tx_preferred_path_mtu(const struct netdev *dev, u32 path_mtu);

#endif
