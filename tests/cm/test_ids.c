/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* Communication ids: each of the range once in a turn, in an order that only the keys tell. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../user/cm/internal.h"
#include "../sim/rng.h"

#define PLACE_IDS (1u << 21) /* what a process has */

static u64 draw(void *arg)
{
	return rng_next(arg);
}

static void ids_next__each_once(void **state)
{
	static const u32 counts[] = { 1, 2, 3, 4, 5, 8, 15, 1000, 65537, PLACE_IDS - 1, PLACE_IDS };
	struct rng rng = { 1 };

	for (u32 i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		const u32 count = counts[i], first = UINT32_MAX - count + 1;
		u8 *seen = calloc(count, 1);
		struct ids ids;

		assert_non_null(seen);
		ids_make(&ids, first, count, draw, &rng);
		for (u32 turn = 1; turn <= 2; turn++)
			for (u32 k = 0; k < count; k++) {
				const u32 id = ids_next(&ids);

				assert_in_range(id, first, UINT32_MAX);
				assert_int_equal(seen[id - first], turn - 1);
				seen[id - first] = (u8)turn;
			}
		free(seen);
	}
}

static u64 one_key(void *arg)
{
	const u64 *keys = arg;

	return *keys;
}

/* Keys that differ in one bit give orders that have nothing in common. */
static void ids_next__the_keys_tell(void **state)
{
	for (u32 bit = 0; bit < 64; bit++) {
		u64 key = 0x0123456789abcdefull, other = key ^ 1ull << bit;
		u32 equal = 0, same_step = 0, last = 0;
		struct ids a, b;

		ids_make(&a, 1, PLACE_IDS, one_key, &key);
		ids_make(&b, 1, PLACE_IDS, one_key, &other);
		for (u32 i = 0; i < 10000; i++) {
			const u32 x = ids_next(&a), y = ids_next(&b);

			equal += x == y;
			same_step += x - y == last;
			last = x - y;
		}
		assert_in_range(equal, 0, 3);
		assert_in_range(same_step, 0, 3);
	}
}

/* Bits of ids that follow each other are as often alike as not. */
static void ids_next__no_step_tells_the_next(void **state)
{
	struct rng rng = { 7 };
	u32 alike[21] = { 0 };
	struct ids ids;
	u32 last;

	ids_make(&ids, 0x80000000, PLACE_IDS, draw, &rng);
	last = ids_next(&ids);
	for (u32 i = 0; i < 40000; i++) {
		const u32 id = ids_next(&ids);

		for (u32 bit = 0; bit < 21; bit++)
			alike[bit] += !((id ^ last) >> bit & 1);
		last = id;
	}
	for (u32 bit = 0; bit < 21; bit++)
		assert_in_range(alike[bit], 19400, 20600); /* six standard deviations */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_next__each_once),
		cmocka_unit_test(ids_next__the_keys_tell),
		cmocka_unit_test(ids_next__no_step_tells_the_next),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
