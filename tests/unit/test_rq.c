/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * Receive queues: room, order and content across wraps, hostile slots, reset; and the two sides on
 * two threads.
 */
#include <pthread.h>

#include "unit.h"

#include "../../user/engine/rq.h"

static struct rq rq;

static int free_rq(void **state)
{
	rq_free(&rq);
	return 0;
}

static void make(u32 max_wr, u32 max_sge)
{
	assert_int_equal(rq_init(&rq, max_wr, max_sge), 0);
}

static void fill(struct recv_wqe *w, u64 id, u32 num_sge)
{
	assert_non_null(w);
	w->wr_id = id;
	w->num_sge = num_sge;
	for (u32 i = 0; i < num_sge; i++)
		w->sge[i] = (struct sge){ id * 100 + i, (u32)id + i, (u32)id * 7 + i };
}

static bool post(u64 id, u32 num_sge)
{
	struct recv_wqe *w = rq_slot(&rq, 0);

	if (!w)
		return false;
	fill(w, id, num_sge);
	rq_publish(&rq, 1);
	return true;
}

static void expect(u64 id, u32 num_sge)
{
	struct recv_work work;
	u64 length = 0;

	memset(&work, 0xa5, sizeof(work));
	assert_true(rq_take(&rq, &work));
	assert_int_equal(work.wr_id, id);
	assert_int_equal(work.num_sge, num_sge);
	for (u32 i = 0; i < num_sge; i++) {
		assert_int_equal(work.sge[i].addr, id * 100 + i);
		assert_int_equal(work.sge[i].length, (u32)id + i);
		assert_int_equal(work.sge[i].lkey, (u32)id * 7 + i);
		length += (u32)id + i;
	}
	assert_int_equal(work.length, length);
}

static void rq_init__limits(void **state)
{
	assert_int_equal(rq_init(&rq, 32769, 1), -EINVAL);
	assert_int_equal(rq_init(&rq, 1, RQ_MAX_SGE + 1), -EINVAL);
	assert_int_equal(rq_init(&rq, ~0u, ~0u), -EINVAL);
	make(32768, RQ_MAX_SGE);
	for (u32 i = 0; i < 32768; i++)
		assert_true(post(i, RQ_MAX_SGE));
	assert_false(post(0, 0));
	expect(0, RQ_MAX_SGE);
}

static void rq_init__of_nothing(void **state)
{
	struct recv_work work;

	make(0, 0);
	assert_null(rq_slot(&rq, 0));
	assert_false(rq_take(&rq, &work));
	assert_int_equal(rq_posted(&rq), 0);
	rq_free(&rq);
	make(2, 0);
	assert_true(post(7, 0));
	expect(7, 0);
}

static void rq_slot__exactly_max_wr(void **state)
{
	static const u32 sizes[] = { 1, 2, 3, 5, 8, 100 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		make(sizes[i], 1);
		assert_non_null(rq_slot(&rq, sizes[i] - 1));
		assert_null(rq_slot(&rq, sizes[i]));
		for (u32 k = 0; k < sizes[i]; k++) {
			assert_int_equal(rq_posted(&rq), k);
			assert_null(rq_slot(&rq, sizes[i] - k));
			assert_true(post(k, 1));
		}
		assert_null(rq_slot(&rq, 0));
		expect(0, 1);
		assert_non_null(rq_slot(&rq, 0));
		assert_null(rq_slot(&rq, 1));
		rq_free(&rq);
	}
	make(1, 1);
}

/* A list of WRs is filled slot by slot and published as one; nothing is seen before that. */
static void rq_publish__several_at_once(void **state)
{
	struct recv_work work;

	make(8, 2);
	for (u32 round = 0; round < 50; round++) {
		u32 n = round % 8 + 1;

		for (u32 i = 0; i < n; i++)
			fill(rq_slot(&rq, i), round * 10 + i, i % 3);
		assert_false(rq_take(&rq, &work));
		assert_int_equal(rq_posted(&rq), 0);
		rq_publish(&rq, n);
		assert_int_equal(rq_posted(&rq), n);
		for (u32 i = 0; i < n; i++)
			expect(round * 10 + i, i % 3);
		assert_false(rq_take(&rq, &work));
	}
}

static void rq_take__index_overflow(void **state)
{
	make(4, 1);
	atomic_store(&rq.prod, ~0u - 1);
	atomic_store(&rq.cons, ~0u - 1);
	for (u64 id = 0; id < 12; id += 4) {
		for (u64 i = 0; i < 4; i++)
			assert_true(post(id + i, 1));
		assert_false(post(99, 1));
		assert_int_equal(rq_posted(&rq), 4);
		for (u64 i = 0; i < 4; i++)
			expect(id + i, 1);
	}
}

/* The slot is memory that the application can write at any time: a count beyond max_sge is cut. */
static void rq_take__hostile_count(void **state)
{
	struct recv_work work;
	struct recv_wqe *w;

	make(2, 3);
	for (int i = 0; i < 2; i++) {
		w = rq_slot(&rq, 0);
		fill(w, 5, 3);
		w->num_sge = i ? ~0u : 4;
		rq_publish(&rq, 1);
		assert_true(rq_take(&rq, &work));
		assert_int_equal(work.num_sge, 3);
		assert_int_equal(work.length, 5 + 6 + 7);
	}
}

static void rq_take__length_beyond_32_bits(void **state)
{
	struct recv_work work;
	struct recv_wqe *w;

	make(1, 2);
	w = rq_slot(&rq, 0);
	*w = (struct recv_wqe){ .wr_id = 1, .num_sge = 2 };
	w->sge[0] = w->sge[1] = (struct sge){ .length = 0xffffffff };
	rq_publish(&rq, 1);
	assert_true(rq_take(&rq, &work));
	assert_int_equal(work.length, 2 * 0xffffffffull);
}

static void rq_reset__forgets_all(void **state)
{
	struct recv_work work;

	make(4, 1);
	for (u64 i = 0; i < 3; i++)
		assert_true(post(i, 1));
	rq_reset(&rq);
	assert_int_equal(rq_posted(&rq), 0);
	assert_false(rq_take(&rq, &work));
	for (u64 i = 10; i < 14; i++)
		assert_true(post(i, 1));
	assert_false(post(14, 1));
	for (u64 i = 10; i < 14; i++)
		expect(i, 1);
}

enum { MANY = 200000 };

static void *poster(void *arg)
{
	for (u64 i = 0; i < MANY;) {
		struct recv_wqe *w = rq_slot(&rq, 0);

		if (!w)
			continue;
		w->wr_id = i;
		w->num_sge = 2;
		w->sge[0] = w->sge[1] = (struct sge){ i, (u32)i & 0xffff, ~(u32)i };
		rq_publish(&rq, 1);
		i++;
	}
	return NULL;
}

static void rq_take__two_threads(void **state)
{
	struct recv_work work;
	pthread_t thread;

	make(13, 2);
	assert_int_equal(pthread_create(&thread, NULL, poster, NULL), 0);
	for (u64 i = 0; i < MANY;) {
		if (!rq_take(&rq, &work))
			continue;
		if (work.wr_id != i || work.sge[1].addr != i || work.sge[1].lkey != ~(u32)i ||
		    work.length != 2 * (i & 0xffff))
			fail_msg("WQE %lu torn or out of order: %lu", (unsigned long)i,
				 (unsigned long)work.wr_id);
		i++;
	}
	pthread_join(thread, NULL);
	assert_int_equal(rq_posted(&rq), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(rq_init__limits, free_rq),
		cmocka_unit_test_teardown(rq_init__of_nothing, free_rq),
		cmocka_unit_test_teardown(rq_slot__exactly_max_wr, free_rq),
		cmocka_unit_test_teardown(rq_publish__several_at_once, free_rq),
		cmocka_unit_test_teardown(rq_take__index_overflow, free_rq),
		cmocka_unit_test_teardown(rq_take__hostile_count, free_rq),
		cmocka_unit_test_teardown(rq_take__length_beyond_32_bits, free_rq),
		cmocka_unit_test_teardown(rq_take__two_threads, free_rq),
		cmocka_unit_test_teardown(rq_reset__forgets_all, free_rq),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
