/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tx_order.h"

#include <linux/if_ether.h>
#include <xroce/wire.h>

#define TAG_BYTES  4u
#define IPV4_BYTES 20u /* the engine's has no options */
#define IPV6_BYTES 40u
#define UDP_BYTES  8u

static u32 ethertype_at(const u8 *frame, u32 at)
{
	return (u32)frame[at] << 8 | frame[at + 1];
}

bool tx_order_matters(const u8 *frame)
{
	u32 at = ETH_HLEN - 2, type = ethertype_at(frame, at);
	u8 opcode;

	if (type == ETH_P_8021Q) {
		at += TAG_BYTES;
		type = ethertype_at(frame, at);
	}
	at += 2 + (type == ETH_P_IPV6 ? IPV6_BYTES : IPV4_BYTES) + UDP_BYTES;
	opcode = frame[at];
	return OPCODE_TRANSPORT(opcode) == XROCE_UC ||
	       OPCODE_TRANSPORT(opcode) == XROCE_UD || opcode == OPCODE_FLOW_PROBE;
}
