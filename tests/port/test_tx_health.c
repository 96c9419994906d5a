/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* The conditions and the time for which super-packets are turned off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../user/io/tx_gso.h"

#define BEGIN_NS (5 * NSEC_PER_SEC)

/* Refusals ns apart until they are given up; returns how many it took, at most 100. */
static u32 refuse(struct tx_health *h, u64 now_ns, u64 apart_ns)
{
	for (u32 n = 1; n <= 100; n++)
		if (tx_health_refused(h, now_ns + (n - 1) * apart_ns) == TX_REFUSES)
			return n;
	return 0;
}

static void tx_health_refused__many_and_for_long(void **state)
{
	struct tx_health quick = { 0 }, slow = { 0 };

	/* a ring that is full for a moment: many, but not for long */
	for (u32 i = 0; i < 1000; i++)
		assert_int_equal(
			tx_health_refused(&quick, BEGIN_NS + i * (TX_HEALTH_REFUSED_NS / 1000)),
			TX_HEALTHY);
	assert_false(tx_health_is_away(&quick, BEGIN_NS + TX_HEALTH_REFUSED_NS));
	/* for long, and not before there are enough */
	assert_int_equal(refuse(&slow, BEGIN_NS, TX_HEALTH_REFUSED_NS), TX_HEALTH_REFUSALS);
	assert_true(tx_health_is_away(&slow, BEGIN_NS + TX_HEALTH_REFUSALS * TX_HEALTH_REFUSED_NS));
}

static void tx_health_refused__one_accepted_begins_anew(void **state)
{
	struct tx_health h = { 0 };
	u32 refused = 1;

	for (u32 i = 0; i < 1000; i++) {
		assert_int_equal(tx_health_refused(&h, BEGIN_NS + i * NSEC_PER_SEC), TX_HEALTHY);
		if (i % (TX_HEALTH_REFUSALS - 1) == TX_HEALTH_REFUSALS - 2)
			tx_health_sent(&h, 1);
		else
			tx_health_sent(&h, 0); /* frames alone say nothing */
	}
	h = (struct tx_health){ 0 };
	while (tx_health_refused(&h, BEGIN_NS + refused * NSEC_PER_SEC) == TX_HEALTHY &&
	       refused++ < 1000)
		tx_health_sent(&h, 0);
	assert_int_equal(refused, TX_HEALTH_REFUSALS);
}

static void tx_health_look__half_is_dropped_again_and_again(void **state)
{
	struct tx_health h = { 0 };
	u64 dropped = 1000000;

	/* earlier drops are not ours, nor are drops while nothing is sent */
	tx_health_sent(&h, 50);
	assert_int_equal(tx_health_look(&h, dropped, BEGIN_NS), TX_HEALTHY);
	for (u32 i = 0; i < 10; i++)
		assert_int_equal(tx_health_look(&h, dropped += 1000, BEGIN_NS), TX_HEALTHY);
	/* ... nor is it the first of several looks */
	tx_health_sent(&h, TX_HEALTH_SENDS);
	assert_int_equal(tx_health_look(&h, dropped += TX_HEALTH_SENDS, BEGIN_NS), TX_HEALTHY);
	tx_health_sent(&h, 50);
	assert_int_equal(tx_health_look(&h, dropped, BEGIN_NS), TX_HEALTHY);
	/* less than half, and half but not in a row */
	for (u32 i = 0; i < 10; i++) {
		tx_health_sent(&h, 50);
		assert_int_equal(
			tx_health_look(&h, dropped += i % TX_HEALTH_LOOKS ? 50 : 24, BEGIN_NS),
			TX_HEALTHY);
	}
	tx_health_sent(&h, 50);
	assert_int_equal(tx_health_look(&h, dropped, BEGIN_NS), TX_HEALTHY);
	/* too few to say anything, until they are enough */
	for (u32 i = 1; i < TX_HEALTH_SENDS; i++) {
		tx_health_sent(&h, 1);
		assert_int_equal(tx_health_look(&h, ++dropped, BEGIN_NS), TX_HEALTHY);
	}
	tx_health_sent(&h, 1);
	assert_int_equal(tx_health_look(&h, ++dropped, BEGIN_NS), TX_DROPS);
	assert_true(tx_health_is_away(&h, BEGIN_NS));
	/* many: three looks */
	h = (struct tx_health){ 0 };
	tx_health_look(&h, dropped, BEGIN_NS);
	for (u32 i = 1; i <= TX_HEALTH_LOOKS; i++) {
		tx_health_sent(&h, 50);
		assert_int_equal(tx_health_look(&h, dropped += 25, BEGIN_NS),
				 i < TX_HEALTH_LOOKS ? TX_HEALTHY : TX_DROPS);
	}
}

/* They are tried again after a time, twice as long after each try; then once is enough. */
static void tx_health_is_away__tried_again(void **state)
{
	struct tx_health h = { 0 };
	u64 now_ns = BEGIN_NS, away_ns = TX_HEALTH_AWAY_NS;

	assert_int_equal(refuse(&h, now_ns, TX_HEALTH_REFUSED_NS), TX_HEALTH_REFUSALS);
	now_ns += (TX_HEALTH_REFUSALS - 1) * TX_HEALTH_REFUSED_NS;
	for (u32 i = 0; i < 10; i++) {
		assert_true(tx_health_is_away(&h, now_ns + away_ns - 1));
		now_ns += away_ns;
		assert_false(tx_health_is_away(&h, now_ns));
		away_ns = min_u64(2 * away_ns, TX_HEALTH_AWAY_MAX_NS);
		if (i % 2) {
			assert_int_equal(refuse(&h, now_ns, 0), 1);
			continue;
		}
		/* the counter is read again: others have moved it */
		tx_health_sent(&h, 1);
		assert_int_equal(tx_health_look(&h, 5000 + i * 5000, now_ns), TX_HEALTHY);
		tx_health_sent(&h, 1);
		assert_int_equal(tx_health_look(&h, 5001 + i * 5000, now_ns), TX_DROPS);
	}
}

static void tx_health_again__ends_it_and_begins_with_the_first_time(void **state)
{
	struct tx_health h = { 0 };
	u64 now_ns = BEGIN_NS;

	refuse(&h, now_ns, TX_HEALTH_REFUSED_NS);
	for (u32 i = 0; i < 8; i++) {
		now_ns += TX_HEALTH_AWAY_MAX_NS;
		tx_health_is_away(&h, now_ns);
		assert_int_equal(tx_health_refused(&h, now_ns), TX_REFUSES);
	}
	tx_health_again(&h);
	assert_false(tx_health_is_away(&h, now_ns));
	/* one refusal is enough */
	assert_int_equal(tx_health_refused(&h, now_ns), TX_REFUSES);
	assert_true(tx_health_is_away(&h, now_ns + TX_HEALTH_AWAY_NS - 1));
	assert_false(tx_health_is_away(&h, now_ns + TX_HEALTH_AWAY_NS));
	/* while they are not given up it changes nothing */
	h = (struct tx_health){ 0 };
	tx_health_again(&h);
	assert_false(tx_health_is_away(&h, now_ns));
	assert_int_equal(tx_health_refused(&h, now_ns), TX_HEALTHY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tx_health_refused__many_and_for_long),
		cmocka_unit_test(tx_health_refused__one_accepted_begins_anew),
		cmocka_unit_test(tx_health_look__half_is_dropped_again_and_again),
		cmocka_unit_test(tx_health_is_away__tried_again),
		cmocka_unit_test(tx_health_again__ends_it_and_begins_with_the_first_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
