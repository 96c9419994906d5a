/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers of QPs and SRQs, of 24 bits: the lower ones are a slot of a table, the others the slot's
 * generation. One must not be guessed from others, and none is to come again while a peer may
 * remember the last QP that had it: the connection manager refuses such a QP for as long as its
 * time-wait lasts. So a slot is drawn, and its first generation; the next one lies a step behind
 * the last, and the step is drawn. A number comes again after 16 others of its slot at the
 * earliest, which in a table of 16384 slots are some 260,000 numbers.
 */
#ifndef ENGINE_NUMBER_H
#define ENGINE_NUMBER_H

#include "types.h"

#define NUMBER_STEPS 64u

/*
 * The next number of a slot. last: 0, there was none, or the last one's generation + 1; random: at
 * least 24 bits, of which the slot may be the lower ones.
 */
static inline u32 number_of_slot(u32 last, u32 slots, u32 slot, u32 random)
{
	const u32 generations = (ROCE_QPN_MASK + 1) / slots, drawn = random / slots;
	const u32 generation = last ? last + drawn % NUMBER_STEPS : drawn;

	return generation % generations * slots + slot;
}

#endif
