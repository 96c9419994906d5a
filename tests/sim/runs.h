/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The runs of a test of many: every loss mask or seed, or the one in the environment, from
 * the line of a failed run. Makes no run itself.
 */
#ifndef SIM_RUNS_H
#define SIM_RUNS_H

#include "../../user/engine/types.h"

/* Loss masks of both directions, from the first one up to the end. */
struct masks {
	u32 forward, forward_end;
	u32 backward, backward_end;
	bool one;		/* only one pair was requested */
};

/*
 * Every mask of the given numbers of packets (at most 31 each way), or the one of
 * XROCE_SIM_MASK=forward:backward (hexadecimal); one out of range ends the test. With
 * XROCE_SIM_PACKETS=n only the masks of the first n packets of each way.
 */
struct masks masks_of(u32 forward_packets, u32 backward_packets);

/*
 * Each retry needs a loss: with no more losses than pair_defaults() has retries, a failed request
 * is a bug.
 */
bool masks_within_retries(u32 forward, u32 backward);

/*
 * Calls run() with seeds 1 .. n; XROCE_SIM_SEEDS sets another n, XROCE_SIM_SEED=seed runs that one
 * alone. False if it ran fewer than n: what only many runs show cannot be asked for then.
 */
bool run_seeds(u64 n, void (*run)(u64 seed));

#endif
