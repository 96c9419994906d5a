/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which frames must not be overtaken by later ones of their QP on an interface with several queues.
 * A message of UC is lost by it. Datagrams have no order among themselves, but a flow-control probe
 * must not pass those that it follows: it would say that they were taken, and more would be sent
 * than the receiver has room for. RC and XRC keep what comes early.
 */
#ifndef TX_TX_ORDER_H
#define TX_TX_ORDER_H

#include "../engine/types.h"

/* Of a frame as the engine makes it. */
bool tx_order_matters(const u8 *frame);

#endif
