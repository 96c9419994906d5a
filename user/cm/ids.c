/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "ids.h"

void ids_make(struct ids *ids, u32 first, u32 count, u64 (*random)(void *arg), void *arg)
{
	*ids = (struct ids){ .first = first, .count = count, .half_bits = 1 };
	while (ids->half_bits < 16 && count > 1u << 2 * ids->half_bits)
		ids->half_bits++;
	for (u32 i = 0; i < IDS_ROUNDS; i++)
		ids->key[i] = random(arg);
}

/* The upper bits depend on every bit of key and half. */
static u32 round_of(u64 key, u32 half)
{
	u64 h = (key ^ half) * 0x9e3779b97f4a7c15ull;

	h = (h ^ h >> 32 ^ key >> 16) * 0xd6e8feb86659fd93ull;
	return (u32)(h >> 32);
}

/* A permutation of the domain: each round is invertible, for any round_of(). */
static u32 encipher(const struct ids *ids, u32 n)
{
	const u32 mask = (1u << ids->half_bits) - 1;
	u32 left = n >> ids->half_bits, right = n & mask;

	for (u32 i = 0; i < IDS_ROUNDS; i++) {
		const u32 next = left ^ (round_of(ids->key[i], right) & mask);

		left = right;
		right = next;
	}
	return left << ids->half_bits | right;
}

/*
 * Encrypts again while the number is outside the range, which gives a permutation of the range. The
 * domain is at most four times the range, except for the smallest.
 */
u32 ids_next(struct ids *ids)
{
	u32 n = ids->drawn;

	do {
		n = encipher(ids, n);
	} while (n >= ids->count);
	ids->drawn = ids->drawn + 1 < ids->count ? ids->drawn + 1 : 0;
	return ids->first + n;
}
