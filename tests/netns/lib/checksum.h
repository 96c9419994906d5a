/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Header fields and the Internet checksum, for programs that judge packets. */
#ifndef NETNS_CHECKSUM_H
#define NETNS_CHECKSUM_H

#include "../../../user/engine/types.h"

static inline u32 get16(const u8 *at)
{
	return (u32)at[0] << 8 | at[1];
}

/* RFC 1071, not complemented; continues from sum. Any number of bytes. */
static inline u32 sum16(const u8 *at, size_t bytes, u32 sum)
{
	for (size_t i = 0; i < bytes; i++)
		sum += (u32)at[i] << (i % 2 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

#endif
