/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The random numbers of the simulator: splitmix64. Integers only, the same on every machine, so
 * that a seed is a replay.
 */
#ifndef SIM_RNG_H
#define SIM_RNG_H

#include "../../user/engine/types.h"

struct rng {
	u64 state;
};

static inline u64 rng_next(struct rng *r)
{
	u64 z = r->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* 0 .. n-1; n > 0. */
static inline u32 rng_below(struct rng *r, u32 n)
{
	return (u32)(rng_next(r) >> 32) % n;
}

/* True with a chance of rate in 65536. */
static inline bool rng_chance(struct rng *r, u32 rate)
{
	return (u16)(rng_next(r) >> 40) < rate;
}

#endif
