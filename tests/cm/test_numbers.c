/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* Ids and tids of connections: in the range, newly drawn, and none leaked. */
#include "bench.h"

static void cm_create__options(void **state)
{
	struct rng rng = { 1 };
	struct cm_options o = { .random = bench_draw,
				.random_arg = &rng,
				.id_first = 1,
				.id_count = 16,
				.capacity = 8,
				.listeners = 1 };
	struct cm *cm;

	assert_int_equal(cm_create(&o, &cm), 0);
	cm_destroy(cm);
	o.id_count = 15; /* not twice the capacity */
	assert_int_equal(cm_create(&o, &cm), -EINVAL);
	o.id_count = 16;
	o.id_first = 0xfffffff0; /* to the last one */
	assert_int_equal(cm_create(&o, &cm), 0);
	cm_destroy(cm);
	o.id_first++;
	assert_int_equal(cm_create(&o, &cm), -EINVAL);
	o.id_first = 0;
	assert_int_equal(cm_create(&o, &cm), -EINVAL);
	o.id_first = 1;
	o.capacity = 0;
	assert_int_equal(cm_create(&o, &cm), -EINVAL);
}

/* Each of the range, each once, in no order; and tids that say nothing about each other. */
static void cm_connect__ids_of_the_range(void **state)
{
	struct cm_conn *c[64];
	u64 tid[64];
	u32 ascending = 0;
	struct bench b;

	bench_make(&b, 64, 0);
	for (u32 i = 0; i < 64; i++) {
		c[i] = bench_connect(&b, &tid[i]);
		assert_in_range(cm_conn_id(c[i]), BENCH_ID_FIRST,
				BENCH_ID_FIRST + BENCH_ID_COUNT - 1);
		for (u32 j = 0; j < i; j++) {
			assert_int_not_equal(cm_conn_id(c[i]), cm_conn_id(c[j]));
			assert_int_not_equal(tid[i], tid[j]);
		}
		ascending += i && cm_conn_id(c[i]) > cm_conn_id(c[i - 1]);
	}
	assert_in_range(ascending, 16, 48);
	assert_int_equal(cm_stats(b.cm)->in_use, 64);
	for (u32 i = 0; i < 64; i++)
		cm_close(b.cm, c[i], b.now_ns);
	assert_int_equal(cm_stats(b.cm)->in_use, 0);
	bench_unmake(&b);
}

/* An id whose turn comes again while it is in use is not given twice. */
static void cm_connect__ids_drawn_twice(void **state)
{
	struct rng rng = { 5 };
	const struct cm_options o = { .random = bench_draw,
				      .random_arg = &rng,
				      .id_first = 0xfffffff8,
				      .id_count = 8,
				      .capacity = 4,
				      .listeners = 1 };
	const struct cm_path path = { .life = 1 };
	struct cm_conn *c[4];
	struct cm *cm;

	assert_int_equal(cm_create(&o, &cm), 0);
	for (u32 round = 0; round < 100; round++) {
		for (u32 i = round ? 1 : 0; i < 4; i++) {
			assert_int_equal(cm_connect(cm, &path, &(struct cm_req){ 0 }, NULL, 0,
						    NULL, 0, &c[i]), 0);
			assert_in_range(cm_conn_id(c[i]), 0xfffffff8, 0xffffffff);
			for (u32 j = 0; j < i; j++)
				assert_int_not_equal(cm_conn_id(c[i]), cm_conn_id(c[j]));
		}
		for (u32 i = 1; i < 4; i++)
			cm_close(cm, c[i], 0);
	}
	cm_destroy(cm);
}

static void cm_connect__none_left(void **state)
{
	const struct cm_req req = { .service_id = 1 };
	struct cm_conn *c[2], *more;
	struct bench b;

	bench_make(&b, 2, 0);
	c[0] = bench_connect(&b, NULL);
	c[1] = bench_connect(&b, NULL);
	assert_int_equal(cm_connect(b.cm, &b.path, &req, NULL, 0, NULL, b.now_ns, &more), -ENOBUFS);
	cm_close(b.cm, c[0], b.now_ns);
	assert_int_equal(cm_connect(b.cm, &b.path, &req, NULL, 0, NULL, b.now_ns, &more), 0);
	bench_unmake(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cm_create__options),
		cmocka_unit_test(cm_connect__ids_of_the_range),
		cmocka_unit_test(cm_connect__ids_drawn_twice),
		cmocka_unit_test(cm_connect__none_left),
	};

	return cmocka_run_group_tests_name("numbers", tests, NULL, NULL);
}
