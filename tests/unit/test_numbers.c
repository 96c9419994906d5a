/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers of QPs and SRQs: none tells of another, none is given twice or too soon, and all slots
 * can be had.
 */
#include <stdlib.h>

#include "bare_engine.h"

#define BITS 24
#define DRAWN 4096

/*
 * Each bit is set in half of n values: off by at most six standard deviations of half the root of
 * n.
 */
static void expect_even(const u32 *values, u32 n)
{
	for (u32 bit = 0; bit < BITS; bit++) {
		s64 set = 0;

		for (u32 i = 0; i < n; i++)
			set += values[i] >> bit & 1;
		/* (set - n / 2)^2 <= (6 / 2)^2 n */
		assert_true((2 * set - n) * (2 * set - n) <= 4 * 9 * (s64)n);
	}
}

/* No bit can be guessed, alone or from the number before. */
static void expect_unpredictable(u32 *numbers, u32 n)
{
	expect_even(numbers, n);
	for (u32 i = n - 1; i; i--)
		numbers[i] ^= numbers[i - 1];
	expect_even(numbers + 1, n - 1);
}

static void qpn__all_bits_are_drawn(void **state)
{
	static struct qp *qps[DRAWN];
	static u32 numbers[DRAWN];

	for (u32 i = 0; i < DRAWN; i++) {
		qps[i] = make_qp(XROCE_RC);
		numbers[i] = qps[i]->qpn;
		assert_ptr_equal(engine_find_qp(engine, numbers[i]), qps[i]);
	}
	expect_unpredictable(numbers, DRAWN);
	for (u32 i = 0; i < DRAWN; i++)
		qp_destroy(engine, qps[i]);
	assert_int_equal(engine->tables->num_qps, 0);
}

static void srqn__all_bits_are_drawn(void **state)
{
	static struct srq srqs[DRAWN];
	static u32 numbers[DRAWN];

	for (u32 i = 0; i < DRAWN; i++) {
		assert_int_equal(engine_srq_add(engine, &srqs[i]), 0);
		numbers[i] = srqs[i].number;
	}
	expect_unpredictable(numbers, DRAWN);
	for (u32 i = 0; i < DRAWN; i++)
		engine_srq_remove(engine, &srqs[i]);
	assert_int_equal(engine->tables->num_srqs, 0);
}

static void qpn__unique_over_engines(void **state)
{
	struct engine_config config = { .random = engine_random,
					.random_arg = &engine_seed,
					.stats = &stats,
					.drops = &drops,
					.number = 1,
					.sibling = engine };
	static struct qp *qps[DRAWN];
	struct qp_init init = plain_init(XROCE_RC);
	struct engine *second;

	assert_int_equal(engine_create(&config, &second), 0);
	for (u32 i = 0; i < DRAWN; i++) {
		assert_int_equal(qp_create(i % 2 ? second : engine, &init, &qps[i]), 0);
		for (u32 k = 0; k < i; k++)
			assert_int_not_equal(qps[k]->qpn % XROCE_MAX_QP,
					     qps[i]->qpn % XROCE_MAX_QP);
	}
	for (u32 i = 0; i < DRAWN; i++)
		qp_destroy(engine, qps[i]);
	engine_destroy(second);
}

/* The one free slot of a table is found, and its last number is not given again at once. */
static void draw__last_slot(void **state)
{
	static void *table[XROCE_MAX_QP];
	static u16 generation[XROCE_MAX_QP];
	u32 before = 0;

	for (u32 i = 0; i < XROCE_MAX_QP; i++)
		table[i] = table;
	for (u32 i = 0; i < 20000; i++) {
		u32 number;

		table[77] = NULL;
		number = owner_draw_number(engine, table, generation, XROCE_MAX_QP);
		assert_int_equal(number % XROCE_MAX_QP, 77);
		assert_int_not_equal(number, before);
		before = number;
	}
}

static u64 counting(void *arg)
{
	static const u32 first[] = { 0, 1, 0xffffff, 0x1000000, 0x1000001, 0x5000002 };
	u32 *n = arg;

	assert_true(*n < ARRAY_SIZE(first));
	return first[(*n)++];
}

static void draw__reserved(void **state)
{
	static void *table[XROCE_MAX_QP];
	static u16 generation[XROCE_MAX_QP];
	struct engine plain = { 0 };
	u32 n = 0;

	plain.config.random = counting;
	plain.config.random_arg = &n;
	assert_int_equal(owner_draw_number(&plain, table, generation, XROCE_MAX_QP), 2);
	assert_int_equal(n, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_ENGINE(qpn__all_bits_are_drawn),
		WITH_ENGINE(srqn__all_bits_are_drawn),
		WITH_ENGINE(qpn__unique_over_engines),
		WITH_ENGINE(draw__last_slot),
		WITH_ENGINE(draw__reserved),
	};

	return cmocka_run_group_tests_name("numbers", tests, NULL, NULL);
}
