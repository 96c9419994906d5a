/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * Numbers of QPs and SRQs: none reveals another, none is assigned twice or too soon, and all slots
 * can be used.
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

/*
 * The one free slot of a table is found, and no number of it comes again soon: the peers of the QP
 * that had it may still remember that one.
 */
static void draw__last_slot(void **state)
{
	static void *table[XROCE_MAX_QP];
	static u16 generation[XROCE_MAX_QP];
	u32 last[15] = { 0 }, before = 0;
	u64 steps = 0;

	for (u32 i = 0; i < XROCE_MAX_QP; i++)
		table[i] = i == XROCE_CM_QPN ? NULL : table;
	for (u32 i = 0; i < 20000; i++) {
		u32 number;

		table[77] = NULL;
		number = owner_draw_number(engine, table, generation, XROCE_MAX_QP, XROCE_CM_QPN);
		assert_int_equal(number % XROCE_MAX_QP, 77);
		for (u32 k = 0; k < ARRAY_SIZE(last); k++)
			assert_int_not_equal(number, last[k]);
		last[i % ARRAY_SIZE(last)] = number;
		if (i)
			steps |= 1ull << (((number - before) & 0xffffff) / XROCE_MAX_QP - 1);
		before = number;
	}
	/* nor does one tell the next */
	assert_int_equal(steps, ~0ull);
}

/* As a server does it that makes a QP for each of its connections. */
static void draw__not_again_soon(void **state)
{
	static void *table[XROCE_MAX_QP];
	static u16 generation[XROCE_MAX_QP];
	static u32 given[1u << 24]; /* when, counted from 1 */

	memset(given, 0, sizeof(given));
	for (u32 i = 1; i <= 1000000; i++) {
		u32 number = owner_draw_number(engine, table, generation, XROCE_MAX_QP,
					       XROCE_CM_QPN);

		assert_true(!given[number] || i - given[number] > 50000);
		given[number] = i;
	}
}

static u64 counting(void *arg)
{
	static const u32 first[] = { 0, 1, 0xffffff, 0x1000000, 0x1000001,
				     1 + XROCE_MAX_QP, 0x5000002 };
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
	assert_int_equal(owner_draw_number(&plain, table, generation, XROCE_MAX_QP, XROCE_CM_QPN),
			 2);
	assert_int_equal(n, 7);
}

static struct qp *numbered(struct engine *e, u32 number, int want)
{
	struct qp_init init = plain_init(XROCE_UD);
	struct qp *qp = NULL;

	init.qpn = number;
	assert_int_equal(qp_create(e, &init, &qp), want);
	return qp;
}

/* Where a QP is, or just was with the same number, none comes; and it takes nothing. */
static void qpn__is_the_callers(void **state)
{
	struct qp *qp = numbered(engine, 0xabcdef, 0), *next;

	assert_int_equal(qp->qpn, 0xabcdef);
	assert_ptr_equal(engine_find_qp(engine, 0xabcdef), qp);
	numbered(engine, 0xabcdef, -EEXIST);
	numbered(engine, 0xabcdef ^ XROCE_MAX_QP, -EEXIST);
	assert_int_equal(engine->tables->num_qps, 1);
	qp_destroy(engine, qp);
	numbered(engine, 0xabcdef, -EEXIST);
	next = numbered(engine, 0xabcdef ^ XROCE_MAX_QP, 0);
	assert_int_equal(next->qpn, 0xabcdef ^ XROCE_MAX_QP);
	qp_destroy(engine, next);
	qp_destroy(engine, numbered(engine, 0xabcdef, 0));
	qp_destroy(engine, numbered(engine, 2, 0));
	qp_destroy(engine, numbered(engine, 0xfffffe, 0));
}

static void qpn__is_no_qps(void **state)
{
	static const u32 none[] = { 1 + XROCE_MAX_QP, 0xffffff, 0x1000002, ~0u };

	for (u32 i = 0; i < ARRAY_SIZE(none); i++)
		numbered(engine, none[i], -EEXIST);
	assert_int_equal(engine->tables->num_qps, 0);
}

/* In addition to all others, once, and again as soon as it is freed. */
static void qpn__of_the_cm(void **state)
{
	struct qp_init connected = plain_init(XROCE_RC);
	struct qp *qp = numbered(engine, XROCE_CM_QPN, 0), *other;

	assert_int_equal(qp->qpn, 1);
	assert_ptr_equal(engine_find_qp(engine, 1), qp);
	assert_int_equal(engine->tables->num_qps, 0);
	numbered(engine, XROCE_CM_QPN, -EEXIST);
	qp_destroy(engine, qp);
	assert_null(engine_find_qp(engine, 1));
	connected.qpn = XROCE_CM_QPN;
	assert_int_equal(qp_create(engine, &connected, &other), -EINVAL);
	qp_destroy(engine, numbered(engine, XROCE_CM_QPN, 0));
	assert_int_equal(engine->tables->num_qps, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_ENGINE(qpn__all_bits_are_drawn),
		WITH_ENGINE(srqn__all_bits_are_drawn),
		WITH_ENGINE(qpn__unique_over_engines),
		WITH_ENGINE(qpn__is_the_callers),
		WITH_ENGINE(qpn__of_the_cm),
		WITH_ENGINE(qpn__is_no_qps),
		WITH_ENGINE(draw__last_slot),
		WITH_ENGINE(draw__not_again_soon),
		WITH_ENGINE(draw__reserved),
	};

	return cmocka_run_group_tests_name("numbers", tests, NULL, NULL);
}
