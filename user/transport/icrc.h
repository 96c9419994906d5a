/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The invariant CRC of RoCEv2: CRC-32 (Ethernet's, reflected) over 8 bytes of ones, then the packet from the IP header on, with the
 * fields that routers change taken as ones (protocol sheet, "RoCEv2 encapsulation"). Computed with ISA-L.
 */
#ifndef TRANSPORT_ICRC_H
#define TRANSPORT_ICRC_H

#include "types.h"

/* A running ICRC: a value, copied freely. */
typedef u32 icrc_t;

/* The CRC of the masked headers: ip points at the IP header; covers icrc_start_bytes(), through the end of the BTH. */
icrc_t icrc_start(const u8 *ip, bool is_ipv6);
/* The same and on to len bytes from ip, len >= icrc_start_bytes(): faster than two steps for a short packet. */
icrc_t icrc_packet(const u8 *ip, bool is_ipv6, size_t len);
/* Go on over len bytes that are not masked: extension headers, payload, pad. */
icrc_t icrc_update(icrc_t crc, const void *data, size_t len);
/* The value as it is stored in the packet: 4 bytes, little-endian. */
void icrc_store(icrc_t crc, u8 out[4]);
bool icrc_equal(icrc_t crc, const u8 stored[4]);
/* Bytes that icrc_start() covers: IP + UDP + BTH. */
static inline u32 icrc_start_bytes(bool is_ipv6)
{
	return (is_ipv6 ? 40 : 20) + 8 + 12;
}

#endif
