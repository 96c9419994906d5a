/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Header fields of 16 bits where they lie, and the Internet checksum's arithmetic (RFC 1071), to
 * change headers in place.
 */
#ifndef TRANSPORT_IP_BYTES_H
#define TRANSPORT_IP_BYTES_H

#include "types.h"

static inline u32 get16(const u8 *at)
{
	return (u32)at[0] << 8 | at[1];
}

static inline void put16(u8 *at, u32 value)
{
	at[0] = (u8)(value >> 8);
	at[1] = (u8)value;
}

/* Of an even number of bytes, up to 64 Ki of them. */
static inline u32 sum16(const u8 *at, u32 bytes)
{
	u32 sum = 0;

	for (u32 i = 0; i < bytes; i += 2)
		sum += get16(at + i);
	return sum;
}

/* 16 bits of a sum of up to 64 Ki words, not complemented. */
static inline u32 fold16(u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

#endif
