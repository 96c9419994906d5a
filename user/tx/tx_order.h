/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which frames must not be overtaken by later ones of their QP on an interface with several queues.
 * A message of UC is lost by it. So are the data that a flow-control probe follows, if the probe is
 * first. RC and XRC keep what comes early, and datagrams have no order.
 */
#ifndef PORT_TX_ORDER_H
#define PORT_TX_ORDER_H

#include "../transport/types.h"

/* Of a frame as the engine makes it. */
bool tx_order_matters(const u8 *frame);

#endif
