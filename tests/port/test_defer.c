/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* When posts may wait (user/run/defer.h). */
#include "../../user/run/defer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define NOW_NS (1000 * NSEC_PER_MSEC)
#define GAP_NS DEFER_POST_NS
/* a post that comes then after a sending is no more of a burst, if nothing waits */
#define END_NS (DEFER_BURST_NS + GAP_NS)

static void defer_in_burst__while_posts_follow_each_other(void **state)
{
	struct defer d = { 0 };

	assert_false(defer_in_burst(&d, NOW_NS, GAP_NS));
	defer_sent(&d, 1, NOW_NS);
	assert_true(defer_in_burst(&d, NOW_NS + END_NS - 1, GAP_NS));
	assert_false(defer_in_burst(&d, NOW_NS + END_NS, GAP_NS));
	defer_post(&d);
	assert_true(defer_in_burst(&d, NOW_NS + END_NS, GAP_NS));
	assert_false(defer_in_burst(&d, NOW_NS + END_NS + GAP_NS, GAP_NS));
	for (u32 i = 1; i < DEFER_POSTS_MAX; i++) {
		assert_true(defer_in_burst(&d, 0, GAP_NS));
		defer_post(&d);
	}
	assert_false(defer_in_burst(&d, 0, GAP_NS));
	assert_int_equal(defer_take(&d), DEFER_POSTS_MAX);
}

/* The application makes each datagram, which takes its time. */
static void defer_in_burst__datagrams_follow_more_slowly(void **state)
{
	const u64 gap_ns = DEFER_DATAGRAM_NS;
	struct defer d = { 0 };

	assert_true(gap_ns > DEFER_POST_NS);
	defer_sent(&d, 1, NOW_NS);
	for (u32 i = 0; i < DEFER_LOOK_POSTS; i++)
		defer_post(&d);
	const u64 end_ns = NOW_NS + DEFER_BURST_NS + (DEFER_LOOK_POSTS + 1) * gap_ns;

	assert_true(defer_in_burst(&d, end_ns - 1, gap_ns));
	assert_false(defer_in_burst(&d, end_ns, gap_ns));
	assert_false(defer_in_burst(&d, end_ns - 1, DEFER_POST_NS));
}

static void defer_sent__a_long_burst_lasts(void **state)
{
	struct defer d = { 0 };

	defer_sent(&d, DEFER_LONG_POSTS - 1, NOW_NS);
	assert_false(defer_in_burst(&d, NOW_NS + END_NS, GAP_NS));
	defer_sent(&d, DEFER_LONG_POSTS, NOW_NS);
	assert_true(defer_in_burst(&d, NOW_NS + DEFER_LONG_NS + GAP_NS - 1, GAP_NS));
	assert_false(defer_in_burst(&d, NOW_NS + DEFER_LONG_NS + GAP_NS, GAP_NS));
}

static void defer_rest__nothing_waits_for_a_while(void **state)
{
	const u64 end_ns = NOW_NS + DEFER_REST_NS;
	struct defer d = { 0 };

	defer_rest(&d, NOW_NS);
	defer_sent(&d, 1, end_ns - 1);
	assert_true(defer_rests(&d, end_ns - 1));
	assert_false(defer_in_burst(&d, end_ns - 1, GAP_NS));
	assert_false(defer_rests(&d, end_ns));
	assert_true(defer_in_burst(&d, end_ns, GAP_NS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defer_in_burst__while_posts_follow_each_other),
		cmocka_unit_test(defer_in_burst__datagrams_follow_more_slowly),
		cmocka_unit_test(defer_sent__a_long_burst_lasts),
		cmocka_unit_test(defer_rest__nothing_waits_for_a_while),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
