/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * The circle of packet sequence numbers, against the definition: the difference modulo 2^24, taken
 * as a signed 24-bit number.
 */
#include "unit.h"

#include "../../user/engine/types.h"

#define CIRCLE (1 << 24)

static s32 difference(s64 a, s64 b)
{
	s64 d = ((a - b) % CIRCLE + CIRCLE) % CIRCLE;

	return (s32)(d < CIRCLE / 2 ? d : d - CIRCLE);
}

static void psn_add__wraps(void **state)
{
	assert_int_equal(psn_add(0, 0), 0);
	assert_int_equal(psn_add(0xffffff, 1), 0);
	assert_int_equal(psn_add(0xfffffe, 5), 3);
	assert_int_equal(psn_add(0, 0xffffff), 0xffffff);
	assert_int_equal(psn_add(1, 0xffffff), 0);
	assert_int_equal(psn_add(0x800000, 0x800000), 0);
	assert_int_equal(psn_add(5, CIRCLE), 5);
	/* one back is one less than once round */
	assert_int_equal(psn_add(0, (u32)-1), 0xffffff);
}

static void psn_diff__corners(void **state)
{
	static const u32 corner[] = { 0,	1,	  2,	    0x3fffff, 0x400000,
				      0x7ffffe, 0x7fffff, 0x800000, 0x800001, 0xbfffff,
				      0xc00000, 0xfffffd, 0xfffffe, 0xffffff };

	assert_int_equal(psn_diff(0, 0xffffff), 1);
	assert_int_equal(psn_diff(0xffffff, 0), -1);
	assert_int_equal(psn_diff(0x7fffff, 0), 0x7fffff);
	assert_int_equal(psn_diff(0x800000, 0), -0x800000);
	assert_int_equal(psn_diff(0, 0x800000), -0x800000);
	for (size_t i = 0; i < ARRAY_SIZE(corner); i++)
		for (size_t j = 0; j < ARRAY_SIZE(corner); j++)
			assert_int_equal(psn_diff(corner[i], corner[j]),
					 difference(corner[i], corner[j]));
}

static void psn_diff__whole_circle(void **state)
{
	static const u32 base[] = { 0, 1, 0x7fffff, 0x800000, 0xffffff };

	for (size_t i = 0; i < ARRAY_SIZE(base); i++)
		for (u32 d = 0; d < CIRCLE; d += 7) {
			u32 a = psn_add(base[i], d);

			if (psn_diff(a, base[i]) != difference(a, base[i]) ||
			    psn_diff(base[i], a) != difference(base[i], a) ||
			    psn_add(base[i], (u32)psn_diff(a, base[i])) != a)
				fail_msg("%#x and %#x", a, base[i]);
		}
}

/* Within the largest window, a PSN sent later compares as later. */
static void psn_diff__orders_a_window(void **state)
{
	static const u32 first[] = { 0, 0x7fffff, 0xfffff0 };

	for (size_t i = 0; i < ARRAY_SIZE(first); i++) {
		assert_true(psn_diff(psn_add(first[i], PSN_WINDOW_MAX - 1), first[i]) > 0);
		assert_true(psn_diff(first[i], psn_add(first[i], PSN_WINDOW_MAX - 1)) < 0);
		assert_true(psn_diff(psn_add(first[i], PSN_WINDOW_MAX), first[i]) < 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(psn_add__wraps),
		cmocka_unit_test(psn_diff__corners),
		cmocka_unit_test(psn_diff__whole_circle),
		cmocka_unit_test(psn_diff__orders_a_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
