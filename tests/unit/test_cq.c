/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* tier: long tsan */
/*
 * The completion ring: order and content across many wraps, overrun, arming, purging and resizing;
 * and the two sides on two threads.
 */
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
	struct cqe e = { .wr_id = id,
			 .qpn = qpn,
			 .byte_len = (u32)id * 3,
			 .status = CQE_SUCCESS,
			 .opcode = CQE_RECV,
			 .imm = (u32)~id };

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

/*
 * Exactly the capacity fits, even where the ring is larger. Then the CQ is unusable:
 * ibv_create_cq(3), CQ_ERR.
 */
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

/*
 * "a CQE is always written to the next entry": the newest are there, as many as the CQ has entries,
 * though its ring has more.
 */
static void cq_push__ignore_overrun(void **state)
{
	make(5);
	cq.ignore_overrun = true;
	for (u64 n = 0; n < 40; n++) {
		assert_true(push(n, 1));
		assert_false(cq.overrun);
	}
	for (u64 n = 35; n < 38; n++)
		expect(n, 1);
	for (u64 n = 40; n < 43; n++)
		assert_true(push(n, 1));
	for (u64 n = 38; n < 43; n++)
		expect(n, 1);
	assert_null(cq_peek(&cq));
}

/*
 * A peeked entry stays unchanged until it is popped, also if its place in the ring is reused.
 */
static void cq_peek__ignore_overrun_in_hand(void **state)
{
	const struct cqe *e;

	make(2);
	cq.ignore_overrun = true;
	assert_true(push(0, 1));
	e = cq_peek(&cq);
	for (u64 n = 1; n < 8; n++)
		assert_true(push(n, 1));
	assert_ptr_equal(cq_peek(&cq), e);
	expect(0, 1);
	expect(6, 1);
	expect(7, 1);
	assert_null(cq_peek(&cq));
}

static u64 time_of_next(void)
{
	const struct cqe *e = cq_peek(&cq);
	u64 time_ns;

	assert_non_null(e);
	time_ns = e->time_ns;
	cq_pop(&cq);
	return time_ns;
}

/* A packet that came before the send completed whose completion was pushed first. */
static void cq_push__times_do_not_go_back(void **state)
{
	static const u64 pushed[] = { 100, 90, 105, 0, 106 }, read[] = { 100, 100, 105, 105, 106 };

	make(8);
	cq.with_time = true;
	for (size_t i = 0; i < ARRAY_SIZE(pushed); i++)
		assert_true(cq_push(&cq, &(struct cqe){ .time_ns = pushed[i] }));
	for (size_t i = 0; i < ARRAY_SIZE(pushed); i++)
		assert_int_equal(time_of_next(), read[i]);
}

/*
 * ibv_req_notify_cq(3): one-shot; solicited_only fires for a solicited completion or one in error.
 */
static void cq_take_event__one_shot(void **state)
{
	make(1);
	static const struct {
		u32 armed;
		bool solicited, fires;
	} rows[] = {
		{ CQ_DISARMED, false, false },	      { CQ_DISARMED, true, false },
		{ CQ_ARMED_ANY, false, true },	      { CQ_ARMED_ANY, true, true },
		{ CQ_ARMED_SOLICITED, false, false }, { CQ_ARMED_SOLICITED, true, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		atomic_store(&cq.armed, rows[i].armed);
		assert_int_equal(cq_take_event(&cq, rows[i].solicited), rows[i].fires);
		assert_int_equal(atomic_load(&cq.armed),
				 rows[i].fires ? CQ_DISARMED : rows[i].armed);
		assert_false(rows[i].fires && cq_take_event(&cq, true));
	}
}

/* Its application sleeps or is about to; not if it goes on polling. */
static void cq_is_awaited__until_it_is_polled_on(void **state)
{
	make(1);
	assert_false(cq_is_awaited(&cq));
	atomic_store(&cq.armed, CQ_ARMED_SOLICITED);
	for (u32 i = 0; i < CQ_IDLE_POLLS; i++) {
		assert_true(cq_is_awaited(&cq));
		cq_count_idle_poll(&cq);
	}
	assert_false(cq_is_awaited(&cq));
	assert_true(cq_is_armed(&cq));
	cq_forget_idle_polls(&cq);
	assert_true(cq_is_awaited(&cq));
}

static void cq_purge__only_that_qp(void **state)
{
	make(8);
	/* start in mid-ring, so that the purged entries wrap */
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
	/* a number may be used again: entries after the purge stay */
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
	/* the places are free again, before anybody has looked */
	for (u64 i = 0; i < 4; i++)
		assert_true(push(10 + i, 1));
	for (u64 i = 0; i < 4; i++)
		expect(10 + i, 1);
}

/* Entries that stay keep their order and room, wherever in the ring the others were. */
static void cq_purge__frees_the_room(void **state)
{
	make(4);
	for (u32 start = 0; start < 4; start++) {
		for (u32 gone = 0; gone < 16; gone++) {
			u32 left = 0;

			for (u64 i = 0; i < 4; i++)
				assert_true(push(i, gone >> i & 1 ? 77 : 78));
			cq_purge(&cq, 77);
			for (u64 i = 0; i < (u64)__builtin_popcount(gone); i++)
				assert_true(push(10 + i, 79));
			assert_false(cq.overrun);
			for (u64 i = 0; i < 4; i++)
				if (!(gone >> i & 1))
					expect(i, 78), left++;
			for (u64 i = 0; left < 4; i++, left++)
				expect(10 + i, 79);
			assert_null(cq_peek(&cq));
		}
		assert_true(push(0, 1));
		expect(0, 1);
	}
}

/* An entry that its reader holds is not in the ring: it can be read to its end. */
static void cq_hold__stays_through_purge_and_resize(void **state)
{
	make(4);
	assert_true(push(0, 77));
	assert_true(push(1, 78));
	assert_true(push(2, 77));
	assert_int_equal(cq_peek(&cq)->wr_id, 0);
	assert_int_equal(cq_hold(&cq)->wr_id, 0);
	cq_purge(&cq, 77);
	assert_int_equal(cq_resize(&cq, 1, NULL), 0);
	assert_int_equal(cq_hold(&cq)->wr_id, 0);
	cq_pop(&cq);
	expect(1, 78);
	assert_null(cq_peek(&cq));
}

/* Marked ones take room until the consumer is held. */
static void cq_resize__of_what_was_marked(void **state)
{
	make(4);
	for (u64 i = 0; i < 4; i++)
		assert_true(push(i, i == 2 ? 78 : 77));
	cq_mark_purged(&cq, 77);
	assert_int_equal(cq_resize(&cq, 1, NULL), 0);
	expect(2, 78);
	assert_null(cq_peek(&cq));
	assert_true(push(3, 77));
	expect(3, 77);
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
	assert_int_equal(cq_resize(&cq, 2, NULL), -EINVAL);
	assert_int_equal(cq_resize(&cq, 0, NULL), -EINVAL);
	assert_int_equal(cq_resize(&cq, (1u << 22) + 1, NULL), -EINVAL);
	assert_int_equal(cq.capacity, 4);
	assert_int_equal(cq_resize(&cq, 100, NULL), 0);
	assert_int_equal(cq.capacity, 100);
	for (u64 i = 4; i < 101; i++)
		assert_true(push(i, (u32)i));
	assert_false(cq.overrun);
	for (u64 i = 0; i < 101; i++)
		if (i != 2)
			expect(i, (u32)i);
	assert_null(cq_peek(&cq));
	/* and smaller again */
	assert_true(push(0, 5));
	assert_true(push(1, 5));
	assert_int_equal(cq_resize(&cq, 1, NULL), -EINVAL);
	assert_int_equal(cq_resize(&cq, 2, NULL), 0);
	expect(0, 5);
	assert_true(push(2, 5));
	expect(1, 5);
	expect(2, 5);
	assert_null(cq_peek(&cq));
}

/* ---- two threads ---- */

enum { MANY = 200000 };

/* For the producer, which must not let the CQ overrun. */
static bool has_room(void)
{
	return atomic_load(&cq.prod) - atomic_load(&cq.cons) < cq.capacity;
}

static void *producer(void *arg)
{
	for (u64 i = 0; i < MANY;) {
		struct cqe e = {
			.wr_id = i, .qpn = (u32)i, .byte_len = (u32)i * 3, .imm = (u32)~i
		};

		if (has_room() && cq_push(&cq, &e))
			i++;
	}
	return NULL;
}

/* Nothing is lost, torn or out of order. */
static void cq_push__two_threads(void **state)
{
	pthread_t thread;

	make(37);
	assert_int_equal(pthread_create(&thread, NULL, producer, NULL), 0);
	for (u64 i = 0; i < MANY;) {
		const struct cqe *e = cq_peek(&cq);

		if (!e)
			continue;
		if (e->wr_id != i || e->qpn != (u32)i || e->byte_len != (u32)i * 3 ||
		    e->imm != (u32)~i)
			fail_msg("entry %lu torn or out of order: %lu", (unsigned long)i,
				 (unsigned long)e->wr_id);
		cq_pop(&cq);
		i++;
	}
	pthread_join(thread, NULL);
	assert_null(cq_peek(&cq));
}

/* Two QPs in turns; one of them is destroyed repeatedly, with its entries in the ring. */
static void *purger(void *arg)
{
	for (u64 i = 0; i < MANY;) {
		if (has_room() && push(i, 1 + i % 2))
			i++;
		if (i % 8 == 0)
			cq_mark_purged(&cq, 2);
	}
	return NULL;
}

/*
 * The consumer is not held: it may have taken some, but the other QP's are all there, whole and in
 * order.
 */
static void cq_mark_purged__while_the_other_side_polls(void **state)
{
	pthread_t thread;
	u64 next = 0;

	make(16);
	assert_int_equal(pthread_create(&thread, NULL, purger, NULL), 0);
	while (next < MANY) {
		const struct cqe *e = cq_peek(&cq);

		if (!e)
			continue;
		if (e->qpn != 1 + e->wr_id % 2 || e->byte_len != (u32)e->wr_id * 3 ||
		    e->imm != (u32)~e->wr_id ||
		    (e->qpn == 1 ? e->wr_id != next : e->wr_id < next - 1))
			fail_msg("entry %lu of QP %u where %lu was to come",
				 (unsigned long)e->wr_id, e->qpn, (unsigned long)next);
		if (e->qpn == 1)
			next += 2;
		cq_pop(&cq);
	}
	pthread_join(thread, NULL);
	cq_mark_purged(&cq, 2);
	assert_null(cq_peek(&cq));
}

static void *overrunner(void *arg)
{
	for (u64 i = 0; i < MANY; i++)
		push(i, (u32)i);
	return NULL;
}

/*
 * The producer removes entries while they are read: each entry that is read is whole, and newer
 * than the one before. The last is among them.
 */
static void cq_push__ignore_overrun_two_threads(void **state)
{
	pthread_t thread;
	u64 next = 0;

	make(3);
	cq.ignore_overrun = true;
	assert_int_equal(pthread_create(&thread, NULL, overrunner, NULL), 0);
	while (next < MANY) {
		const struct cqe *e = cq_peek(&cq);

		if (!e)
			continue;
		if (e->wr_id < next || e->qpn != (u32)e->wr_id ||
		    e->byte_len != (u32)e->wr_id * 3 || e->imm != (u32)~e->wr_id)
			fail_msg("entry %lu torn or out of order after %lu",
				 (unsigned long)e->wr_id, (unsigned long)next);
		next = e->wr_id + 1;
		cq_pop(&cq);
	}
	pthread_join(thread, NULL);
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
		cmocka_unit_test_teardown(cq_peek__ignore_overrun_in_hand, free_cq),
		cmocka_unit_test_teardown(cq_push__times_do_not_go_back, free_cq),
		cmocka_unit_test_teardown(cq_push__two_threads, free_cq),
		cmocka_unit_test_teardown(cq_push__ignore_overrun_two_threads, free_cq),
		cmocka_unit_test_teardown(cq_take_event__against_arming, free_cq),
		cmocka_unit_test_teardown(cq_take_event__one_shot, free_cq),
		cmocka_unit_test_teardown(cq_is_awaited__until_it_is_polled_on, free_cq),
		cmocka_unit_test_teardown(cq_purge__only_that_qp, free_cq),
		cmocka_unit_test_teardown(cq_purge__everything, free_cq),
		cmocka_unit_test_teardown(cq_mark_purged__while_the_other_side_polls, free_cq),
		cmocka_unit_test_teardown(cq_purge__frees_the_room, free_cq),
		cmocka_unit_test_teardown(cq_hold__stays_through_purge_and_resize, free_cq),
		cmocka_unit_test_teardown(cq_resize__keeps_all, free_cq),
		cmocka_unit_test_teardown(cq_resize__of_what_was_marked, free_cq),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
