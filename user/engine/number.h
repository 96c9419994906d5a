/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers of QPs and SRQs, 24 bits: the low part is a slot of a table, the rest the slot's
 * generation. Numbers must not be predictable, nor reused while a peer may remember the last QP
 * with the number: its connection manager refuses such a QP until its time-wait ends. So the slot
 * and its first generation are random; each later generation is a random step after the last. A
 * number is reused at the earliest after 16 others of its slot: about 260,000 numbers in a table of
 * 16384 slots.
 */
#ifndef ENGINE_NUMBER_H
#define ENGINE_NUMBER_H

#include "types.h"

#define NUMBER_STEPS 64u

/*
 * Returns the next number of a slot. last: 0, if there was none, or the last one's generation + 1;
 * random: at least 24 bits, whose low part may be the slot.
 */
static inline u32 number_of_slot(u32 last, u32 slots, u32 slot, u32 random)
{
	const u32 generations = (ROCE_QPN_MASK + 1) / slots, drawn = random / slots;
	const u32 generation = last ? last + drawn % NUMBER_STEPS : drawn;

	return generation % generations * slots + slot;
}

#endif
