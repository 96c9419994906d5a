/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which runs are made; see runs.h. */
#include "runs.h"

#include "pair.h"

#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

/* On a slow machine fewer packets are lost: only among the first ones. */
static u32 masks_packets(u32 packets)
{
	const char *most = getenv("XROCE_SIM_PACKETS");
	const u32 n = most ? (u32)strtoul(most, NULL, 0) : packets;

	return n < packets ? n : packets;
}

struct masks masks_of(u32 forward_packets, u32 backward_packets)
{
	struct masks all = { .forward_end = 1u << masks_packets(forward_packets),
			     .backward_end = 1u << masks_packets(backward_packets) };
	const char *one = getenv("XROCE_SIM_MASK");
	u32 forward, backward;

	if (!one || sscanf(one, "%x:%x", &forward, &backward) != 2)
		return all;
	assert_true(forward < all.forward_end && backward < all.backward_end);
	return (struct masks){ forward, forward + 1, backward, backward + 1, .one = true };
}

bool masks_within_retries(u32 forward, u32 backward)
{
	return __builtin_popcount(forward) + __builtin_popcount(backward) <=
	       pair_defaults().retry_cnt;
}

bool run_seeds(u64 n, void (*run)(u64 seed))
{
	const char *one = getenv("XROCE_SIM_SEED"), *count = getenv("XROCE_SIM_SEEDS");
	u64 seeds = count ? strtoull(count, NULL, 0) : n;

	if (one) {
		run(strtoull(one, NULL, 0));
		return false;
	}
	for (u64 seed = 1; seed <= seeds; seed++)
		run(seed);
	return seeds >= n;
}
