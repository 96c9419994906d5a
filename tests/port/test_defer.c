/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* When posts may wait (user/shard/defer.h). */
#include "../../user/shard/defer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define NOW_NS (1000 * NSEC_PER_MSEC)

static void defer_in_burst__while_posts_follow_each_other(void **state)
{
	struct defer d = { 0 };

	assert_false(defer_in_burst(&d, NOW_NS));
	defer_sent(&d, 1, NOW_NS);
	assert_true(defer_in_burst(&d, NOW_NS + DEFER_BURST_NS - 1));
	assert_false(defer_in_burst(&d, NOW_NS + DEFER_BURST_NS));
	defer_post(&d);
	assert_true(defer_in_burst(&d, NOW_NS + DEFER_BURST_NS));
	assert_false(defer_in_burst(&d, NOW_NS + DEFER_BURST_NS + DEFER_POST_NS));
	for (u32 i = 1; i < DEFER_POSTS_MAX; i++) {
		assert_true(defer_in_burst(&d, 0));
		defer_post(&d);
	}
	assert_false(defer_in_burst(&d, 0));
	assert_int_equal(defer_take(&d), DEFER_POSTS_MAX);
}

static void defer_sent__a_long_burst_lasts(void **state)
{
	struct defer d = { 0 };

	defer_sent(&d, DEFER_LONG_POSTS - 1, NOW_NS);
	assert_false(defer_in_burst(&d, NOW_NS + DEFER_BURST_NS));
	defer_sent(&d, DEFER_LONG_POSTS, NOW_NS);
	assert_true(defer_in_burst(&d, NOW_NS + DEFER_LONG_NS - 1));
	assert_false(defer_in_burst(&d, NOW_NS + DEFER_LONG_NS));
}

static void defer_rest__nothing_waits_for_a_while(void **state)
{
	const u64 end_ns = NOW_NS + DEFER_REST_NS;
	struct defer d = { 0 };

	defer_rest(&d, NOW_NS);
	defer_sent(&d, 1, end_ns - 1);
	assert_true(defer_rests(&d, end_ns - 1));
	assert_false(defer_in_burst(&d, end_ns - 1));
	assert_false(defer_rests(&d, end_ns));
	assert_true(defer_in_burst(&d, end_ns));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defer_in_burst__while_posts_follow_each_other),
		cmocka_unit_test(defer_sent__a_long_burst_lasts),
		cmocka_unit_test(defer_rest__nothing_waits_for_a_while),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
