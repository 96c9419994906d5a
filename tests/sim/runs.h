/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which runs a test of many makes: every loss mask or seed, or the one that the line of a failed
 * run names in the environment. It makes no run itself and knows nothing of what one does.
 */
#ifndef SIM_RUNS_H
#define SIM_RUNS_H

#include "../../user/engine/types.h"

/* Loss masks of both directions, from the first one up to the end. */
struct masks {
	u32 forward, forward_end;
	u32 backward, backward_end;
	bool one;		/* one pair was asked for */
};

/*
 * Every mask of so many packets (at most 31) there and back, or the one of
 * XROCE_SIM_MASK=forward:backward (hexadecimal); one that is not among them ends the test. With
 * XROCE_SIM_PACKETS=n only the masks of the first n packets of each way.
 */
struct masks masks_of(u32 forward_packets, u32 backward_packets);

/*
 * Each retry needs a loss: with no more losses than pair_defaults() has retries, giving up is a
 * bug.
 */
bool masks_within_retries(u32 forward, u32 backward);

/*
 * Calls run() with seeds 1 .. n; XROCE_SIM_SEEDS sets another n, XROCE_SIM_SEED=seed runs that one
 * alone. False if it ran fewer than n: what only many runs show cannot be asked for then.
 */
bool run_seeds(u64 n, void (*run)(u64 seed));

#endif
