/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * Packets that came before their turn: which are kept, in what order they come out, and that
 * neither a QP nor all of them take more than their share.
 */
#include "../../user/engine/recovery.h"
#include "bare_engine.h"

#define EXPECTED 0xfffff0u /* so that PSNs ahead of it wrap */

/* The packet that is n ahead, with its number in each byte; every other one came in two buffers. */
static bool hold(struct reorder *r, s32 n)
{
	u8 payload[256];
	const u32 linear = n % 2 ? 100 : sizeof(payload);
	struct packet p = { .psn = psn_add(EXPECTED, (u32)n),
			    .payload = payload,
			    .payload_len = sizeof(payload),
			    .end = payload + linear };

	memset(payload, n, sizeof(payload));
	if (n % 2) {
		p.frag = payload + linear;
		p.frag_len = sizeof(payload) - linear;
	}
	return reorder_hold(engine, r, EXPECTED, &p, NULL);
}

static struct held *take(struct reorder *r, u32 n)
{
	return reorder_take(engine, r, psn_add(EXPECTED, n));
}

static void reorder_hold__what_is_ahead_and_not_too_far(void **state)
{
	struct reorder r = { 0 };
	const s32 farthest = (s32)engine->window;

	assert_false(hold(&r, 0));
	assert_false(hold(&r, -1));
	assert_false(hold(&r, farthest + 1));
	assert_false(hold(&r, 0x7fffff));
	assert_true(hold(&r, 1));
	assert_true(hold(&r, farthest));
	assert_int_equal(r.count, 2);
	assert_int_equal(stats.rx_held, 2);
	reorder_purge(engine, &r);
}

/* A repetition is not held; another packet that is late evicts the ones ahead of it. */
static void reorder_hold__in_order_of_arrival(void **state)
{
	struct reorder r = { 0 };

	for (u32 i = 0; i < 3; i++) {
		assert_int_equal(hold(&r, 3), i == 0);
		assert_int_equal(hold(&r, 5), i == 0);
		assert_int_equal(hold(&r, 6), i == 0);
	}
	assert_int_equal(r.count, 3);
	assert_false(hold(&r, 4));
	assert_int_equal(r.count, 1);
	assert_int_equal(r.tail->packet.psn, psn_add(EXPECTED, 3));
	assert_false(hold(&r, 1));
	assert_int_equal(r.count, 0);
	assert_null(r.head);
	assert_null(r.tail);
	assert_int_equal(engine->num_held, 0);
	assert_true(hold(&r, 2));
	reorder_purge(engine, &r);
	assert_int_equal(r.count, 0);
	assert_null(r.head);
}

/*
 * Copied, whatever happens to the frame, and each in its turn; packets whose turn has passed are
 * dropped.
 */
static void reorder_take__in_turn(void **state)
{
	static const u32 order[] = { 1, 2, 3, 7, 8, 9, 10 };
	struct reorder r = { 0 };
	struct held *h;

	for (u32 i = 0; i < ARRAY_SIZE(order); i++)
		assert_true(hold(&r, (s32)order[i]));
	assert_null(take(&r, 0));
	for (u32 n = 1; n <= 3; n++) {
		h = take(&r, n);
		assert_non_null(h);
		assert_int_equal(h->packet.psn, psn_add(EXPECTED, n));
		assert_ptr_equal(h->packet.payload, h->payload);
		assert_int_equal(h->packet.payload_len, 256);
		assert_ptr_equal(h->packet.end, h->payload + 256);
		assert_null(h->packet.frag);
		assert_int_equal(h->packet.frag_len, 0);
		assert_int_equal(h->payload[0], n);
		assert_int_equal(h->payload[255], n);
		reorder_free(engine, h);
	}
	assert_int_equal(r.count, 4);
	assert_null(take(&r, 6));
	h = take(&r, 8); /* 7 is passed over */
	assert_non_null(h);
	assert_int_equal(h->payload[0], 8);
	reorder_free(engine, h);
	assert_int_equal(r.count, 2);
	assert_null(take(&r, 11));
	assert_int_equal(r.count, 0);
	/* and it can be used again */
	assert_true(hold(&r, 1));
	reorder_purge(engine, &r);
}

/* After a gap of n packets a run of n is needed: 4 are missing before EXPECTED + 4. */
static void reorder_take__as_many_as_are_missing(void **state)
{
	for (s32 run = 1; run <= 6; run++) {
		struct reorder r = { 0 };
		struct held *h;

		for (s32 n = 0; n < run; n++)
			assert_true(hold(&r, 4 + n));
		/* after another gap: they do not count */
		assert_true(hold(&r, 20));
		assert_true(hold(&r, 21));
		h = take(&r, 4);
		assert_int_equal(h != NULL, run >= 4);
		if (h)
			reorder_free(engine, h);
		else
			assert_int_equal(r.count, 0);
		reorder_purge(engine, &r);
	}
}

/* One QP gets at most its limit, and all of them the total. */
static void reorder_hold__shares(void **state)
{
	enum { QPS = REORDER_POOL / REORDER_MAX_QP };
	struct reorder r[QPS + 1] = { 0 };

	engine->window = 2 * REORDER_MAX_QP; /* so that it is not what bounds them */
	for (u32 q = 0; q < QPS; q++) {
		for (s32 n = 1; n <= REORDER_MAX_QP; n++)
			assert_true(hold(&r[q], n));
		assert_false(hold(&r[q], REORDER_MAX_QP + 1));
		assert_int_equal(r[q].count, REORDER_MAX_QP);
	}
	assert_false(hold(&r[QPS], 1));
	/* what one gives back another gets */
	reorder_free(engine, take(&r[0], 1));
	assert_true(hold(&r[QPS], 1));
	assert_false(hold(&r[QPS], 2));
	for (u32 q = 0; q <= QPS; q++)
		reorder_purge(engine, &r[q]);
	for (s32 n = 1; n <= REORDER_MAX_QP; n++)
		assert_true(hold(&r[QPS], n));
	reorder_purge(engine, &r[QPS]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_ENGINE(reorder_hold__what_is_ahead_and_not_too_far),
		WITH_ENGINE(reorder_hold__in_order_of_arrival),
		WITH_ENGINE(reorder_take__in_turn),
		WITH_ENGINE(reorder_take__as_many_as_are_missing),
		WITH_ENGINE(reorder_hold__shares),
	};

	return cmocka_run_group_tests_name("reorder", tests, NULL, NULL);
}
