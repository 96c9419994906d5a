/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The completion ring: order and content across many wraps, overrun, arming, purging and resizing; and the two sides on two threads. */
#include "duel.h"

static struct cq cq;

static int free_cq(void **state)
{
	cq_free(&cq);
	return 0;
}

static void make(u32 capacity)
{
	assert_int_equal(cq_init(&cq, capacity), 0);
}

static bool push(u64 id, u32 qpn)
{
	struct cqe e = { .wr_id = id, .qpn = qpn, .byte_len = (u32)id * 3, .status = CQE_SUCCESS, .opcode = CQE_RECV, .imm = (u32)~id };

	return cq_push(&cq, &e);
}

/* The oldest completion is this one; takes it. */
static void expect(u64 id, u32 qpn)
{
	const struct cqe *e = cq_peek(&cq);

	assert_non_null(e);
	assert_int_equal(e->wr_id, id);
	assert_int_equal(e->qpn, qpn);
	assert_int_equal(e->byte_len, (u32)id * 3);
	assert_int_equal(e->imm, (u32)~id);
	assert_int_equal(e->opcode, CQE_RECV);
	assert_int_equal(e->status, CQE_SUCCESS);
	/* looking does not take */
	assert_ptr_equal(cq_peek(&cq), e);
	cq_pop(&cq);
}

static void cq_init__capacity(void **state)
{
	assert_int_equal(cq_init(&cq, 0), -EINVAL);
	assert_int_equal(cq_init(&cq, (1u << 22) + 1), -EINVAL);
	assert_int_equal(cq_init(&cq, ~0u), -EINVAL);
	make(1u << 22);
	assert_int_equal(cq.capacity, 1u << 22);
	cq_free(&cq);
	make(1);
	assert_null(cq_peek(&cq));
}

/* Every capacity around powers of two, through the ring many times over. */
static void cq_push__in_order_across_wraps(void **state)
{
	static const u32 capacities[] = { 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 100 };

	for (size_t i = 0; i < ARRAY_SIZE(capacities); i++) {
		u64 in = 0, out = 0;

		make(capacities[i]);
		for (u32 round = 0; round < 300; round++) {
			u32 n = round * 7 % capacities[i] + 1;

			while (n-- && in - out < capacities[i]) {
				assert_true(push(in, (u32)in + 1));
				in++;
			}
			for (n = round * 5 % capacities[i] + 1; n && out < in; n--) {
				expect(out, (u32)out + 1);
				out++;
			}
		}
		for (; out < in; out++)
			expect(out, (u32)out + 1);
		assert_null(cq_peek(&cq));
		assert_false(cq.overrun);
		assert_true(in > 5 * capacities[i]);
		cq_free(&cq);
	}
	make(1);
}

/* The indices are 32 bits wide and run over: nothing happens. */
static void cq_push__index_overflow(void **state)
{
	make(4);
	atomic_store(&cq.prod, ~0u - 5);
	atomic_store(&cq.cons, ~0u - 5);
	for (u32 i = 0; i < 20; i += 4) {
		for (u32 k = 0; k < 4; k++)
			assert_true(push(i + k, 9));
		for (u32 k = 0; k < 4; k++)
			expect(i + k, 9);
		assert_null(cq_peek(&cq));
	}
}

/* Exactly the capacity fits, even where the ring is larger. Then the CQ is unusable: ibv_create_cq(3), CQ_ERR. */
static void cq_push__overrun(void **state)
{
	make(5);
	for (u64 i = 0; i < 5; i++)
		assert_true(push(i, 1));
	assert_false(cq.overrun);
	assert_false(push(5, 1));
	assert_true(cq.overrun);
	expect(0, 1);
	assert_false(push(6, 1));
	for (u64 i = 1; i < 5; i++)
		expect(i, 1);
	assert_null(cq_peek(&cq));
	assert_false(push(7, 1));
}

static void cq_push__ignore_overrun(void **state)
{
	make(2);
	cq.ignore_overrun = true;
	assert_true(push(0, 1));
	assert_true(push(1, 1));
	assert_false(push(2, 1));
	assert_false(cq.overrun);
	expect(0, 1);
	assert_true(push(3, 1));
	expect(1, 1);
	expect(3, 1);
	assert_null(cq_peek(&cq));
}

/* ibv_req_notify_cq(3): one-shot; solicited_only fires for a solicited completion or one in error. */
static void cq_take_event__one_shot(void **state)
{
	make(1);
	static const struct {
		u32 armed;
		bool solicited, fires;
	} rows[] = {
		{ CQ_DISARMED, false, false },	    { CQ_DISARMED, true, false },	 { CQ_ARMED_ANY, false, true },
		{ CQ_ARMED_ANY, true, true },	    { CQ_ARMED_SOLICITED, false, false }, { CQ_ARMED_SOLICITED, true, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		atomic_store(&cq.armed, rows[i].armed);
		assert_int_equal(cq_take_event(&cq, rows[i].solicited), rows[i].fires);
		assert_int_equal(atomic_load(&cq.armed), rows[i].fires ? CQ_DISARMED : rows[i].armed);
		assert_false(rows[i].fires && cq_take_event(&cq, true));
	}
}

static void cq_purge__only_that_qp(void **state)
{
	make(8);
	/* start in mid-ring, so that what is purged wraps */
	for (u64 i = 0; i < 5; i++) {
		assert_true(push(i, 1));
		expect(i, 1);
	}
	for (u64 i = 0; i < 8; i++)
		assert_true(push(i, i % 3 == 0 ? 77 : 78));
	cq_purge(&cq, 77);
	cq_purge(&cq, 79);
	expect(1, 78);
	expect(2, 78);
	expect(4, 78);
	/* a number may be used again: what comes after the purge stays */
	assert_true(push(100, 77));
	expect(5, 78);
	expect(7, 78);
	expect(100, 77);
	assert_null(cq_peek(&cq));
}

static void cq_purge__everything(void **state)
{
	make(4);
	cq_purge(&cq, 1);
	for (u64 i = 0; i < 4; i++)
		assert_true(push(i, 1));
	cq_purge(&cq, 1);
	assert_null(cq_peek(&cq));
	/* the places are free again once the consumer has passed them */
	for (u64 i = 0; i < 4; i++)
		assert_true(push(10 + i, 1));
	for (u64 i = 0; i < 4; i++)
		expect(10 + i, 1);
}

static void cq_resize__keeps_all(void **state)
{
	make(4);
	for (u64 i = 0; i < 3; i++) {
		assert_true(push(i, 1));
		expect(i, 1);
	}
	for (u64 i = 0; i < 4; i++)
		assert_true(push(i, (u32)i));
	cq_purge(&cq, 2);
	assert_int_equal(cq_resize(&cq, 3), -EINVAL);
	assert_int_equal(cq_resize(&cq, 0), -EINVAL);
	assert_int_equal(cq_resize(&cq, (1u << 22) + 1), -EINVAL);
	assert_int_equal(cq.capacity, 4);
	assert_int_equal(cq_resize(&cq, 100), 0);
	assert_int_equal(cq.capacity, 100);
	for (u64 i = 4; i < 100; i++)
		assert_true(push(i, (u32)i));
	assert_false(cq.overrun);
	for (u64 i = 0; i < 100; i++)
		if (i != 2)
			expect(i, (u32)i);
	assert_null(cq_peek(&cq));
	/* and smaller again */
	assert_true(push(0, 5));
	assert_true(push(1, 5));
	assert_int_equal(cq_resize(&cq, 1), -EINVAL);
	assert_int_equal(cq_resize(&cq, 2), 0);
	expect(0, 5);
	assert_true(push(2, 5));
	expect(1, 5);
	expect(2, 5);
	assert_null(cq_peek(&cq));
}

/* ---- two threads ---- */

enum { MANY = 200000 };

static void *producer(void *arg)
{
	for (u64 i = 0; i < MANY;) {
		struct cqe e = { .wr_id = i, .qpn = (u32)i, .byte_len = (u32)i * 3, .imm = (u32)~i };

		if (cq_push(&cq, &e))
			i++;
	}
	return NULL;
}

/* The producer never waits: what does not fit is pushed again (ignore_overrun makes that possible). Nothing is lost, torn or out of order. */
static void cq_push__two_threads(void **state)
{
	pthread_t thread;

	make(37);
	cq.ignore_overrun = true;
	assert_int_equal(pthread_create(&thread, NULL, producer, NULL), 0);
	for (u64 i = 0; i < MANY;) {
		const struct cqe *e = cq_peek(&cq);

		if (!e)
			continue;
		if (e->wr_id != i || e->qpn != (u32)i || e->byte_len != (u32)i * 3 || e->imm != (u32)~i)
			fail_msg("entry %lu torn or out of order: %lu", (unsigned long)i, (unsigned long)e->wr_id);
		cq_pop(&cq);
		i++;
	}
	pthread_join(thread, NULL);
	assert_null(cq_peek(&cq));
}

/* Two QPs in turns; one of them goes again and again, with what it has in the ring. */
static void *purger(void *arg)
{
	for (u64 i = 0; i < MANY;) {
		if (push(i, 1 + i % 2))
			i++;
		if (i % 8 == 0)
			cq_purge(&cq, 2);
	}
	return NULL;
}

/* The consumer is not held: it may have taken some, but the other QP's are all there, whole and in order. */
static void cq_purge__while_the_other_side_polls(void **state)
{
	pthread_t thread;
	u64 next = 0;

	make(16);
	cq.ignore_overrun = true;
	assert_int_equal(pthread_create(&thread, NULL, purger, NULL), 0);
	while (next < MANY) {
		const struct cqe *e = cq_peek(&cq);

		if (!e)
			continue;
		if (e->qpn != 1 + e->wr_id % 2 || e->byte_len != (u32)e->wr_id * 3 || e->imm != (u32)~e->wr_id ||
		    (e->qpn == 1 ? e->wr_id != next : e->wr_id < next - 1))
			fail_msg("entry %lu of QP %u where %lu was to come", (unsigned long)e->wr_id, e->qpn, (unsigned long)next);
		if (e->qpn == 1)
			next += 2;
		cq_pop(&cq);
	}
	pthread_join(thread, NULL);
	cq_purge(&cq, 2);
	assert_null(cq_peek(&cq));
}

/* ---- arming against pushing: one of the two sees the other, or a wake-up is lost ---- */

/* true if the event is to be reported */
static bool push_and_take_event(u64 wr_id)
{
	push(wr_id, 1);
	cq_pushed_all();
	return cq_take_event(&cq, false);
}

static void cq_take_event__against_arming(void **state)
{
	make(4);
	duel(&cq, CQ_ARMED_ANY, push_and_take_event);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(cq_init__capacity, free_cq),
		cmocka_unit_test_teardown(cq_push__in_order_across_wraps, free_cq),
		cmocka_unit_test_teardown(cq_push__index_overflow, free_cq),
		cmocka_unit_test_teardown(cq_push__overrun, free_cq),
		cmocka_unit_test_teardown(cq_push__ignore_overrun, free_cq),
		cmocka_unit_test_teardown(cq_push__two_threads, free_cq),
		cmocka_unit_test_teardown(cq_take_event__against_arming, free_cq),
		cmocka_unit_test_teardown(cq_take_event__one_shot, free_cq),
		cmocka_unit_test_teardown(cq_purge__only_that_qp, free_cq),
		cmocka_unit_test_teardown(cq_purge__everything, free_cq),
		cmocka_unit_test_teardown(cq_purge__while_the_other_side_polls, free_cq),
		cmocka_unit_test_teardown(cq_resize__keeps_all, free_cq),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
