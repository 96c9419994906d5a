/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packet sequence numbers live on a circle of 2^24; they are compared by signed 24-bit difference
 * (IBTA 9.7.2).
 */
#ifndef TRANSPORT_PSN_H
#define TRANSPORT_PSN_H

#include "types.h"

/*
 * Half the circle: no requester may have more PSNs than this outstanding, or old and new could not
 * be told apart.
 */
#define PSN_WINDOW_MAX (1u << 23)

static inline u32 psn_add(u32 psn, u32 n)
{
	return (psn + n) & ROCE_PSN_MASK;
}

/* a - b as a signed distance in -2^23 .. 2^23-1: negative when a is before b. */
static inline s32 psn_diff(u32 a, u32 b)
{
	return (s32)((a - b) << 8) >> 8;
}

#endif
