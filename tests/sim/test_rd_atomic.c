/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * 128 READs and atomics outstanding, and the memory that they take: rings that ibv_modify_qp(3)
 * allocates for a QP that asks for more than QP_OWN_RD_ATOMIC.
 */
#include "raw.h"
#include "scene.h"

#include <errno.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

#define DEEP QP_MAX_RD_ATOMIC

/*
 * The allocator of rings. If allocations_left is not negative, that number of allocations succeed
 * and the next fail.
 */
static int allocations_left = -1;
static u32 allocations;

void *aligned_alloc(size_t alignment, size_t size)
{
	void *p;

	allocations++;
	if (!allocations_left)
		return NULL;
	if (allocations_left > 0)
		allocations_left--;
	return posix_memalign(&p, alignment, size) ? NULL : p;
}

static struct pair_options deep_options(u8 initiated, u8 answered)
{
	struct pair_options o = pair_defaults();

	o.pmtu = RAW_PMTU;
	o.max_rd_atomic = initiated;
	o.max_dest_rd_atomic = answered;
	o.max_send_wr = 4 * DEEP;
	o.cq_capacity = 8 * DEEP;
	return o;
}

/* ---- both ends ---- */

#define REQUESTS (3 * DEEP)

/* Posts in turn an atomic on one word and a READ of a separate place. */
static void post_mixed(struct scene *s, const struct buffer *word)
{
	for (u32 i = 0; i < REQUESTS; i++) {
		bool atomic = i % 2;
		u32 len = atomic ? 8 : 200;

		post_send(s->a,
			  &(struct send){ .wr_id = i,
					  .opcode = atomic ? WR_FETCH_ADD : WR_READ,
					  .flags = WR_SIGNALED,
					  .num_sge = 1,
					  .sge = { buffer_sge(s->local, i * 300, len) },
					  .remote_addr = atomic ? buffer_va(word)
								: buffer_va(s->remote) + i * 300,
					  .rkey = atomic ? word->mr->key : s->remote->mr->key,
					  .compare_add = 1 });
	}
}

/* Each is executed once and answered with its own value, under loss, duplicates and delay. */
static void deep__each_answered_right(void **state)
{
	for (u32 seed = 0; seed < 24; seed++) {
		const struct world_options wo = { .num_engines = seed % 3 ? 0 : 3 };
		struct pair_options o = deep_options(DEEP, DEEP);
		struct world *w = world_create_with(2, 1 + seed, &wo);
		u64 zero = 0, total, value;
		struct buffer *word;
		struct scene s;
		u32 most = 0;

		world_label(w, "test_rd_atomic deep seed %u", seed);
		s = scene_in(w, &o, REQUESTS * 300);
		word = world_buffer(&w->node[1], 8, PAIR_ACCESS_ALL);
		memcpy(word->bytes, &zero, 8);
		w->move_rate = seed % 3 ? 0 : 65536 / 8;
		for (u32 n = 0; n < 2 && seed; n++)
			w->node[n].to[!n] = (struct faults){ .drop_rate = 65536 / 40,
							     .duplicate_rate = 65536 / 20,
							     .hold_rate = 65536 / 40,
							     .hold_packets = 3 };
		memset(s.local->bytes, 0, REQUESTS * 300);
		post_mixed(&s, word);
		for (u32 i = 0; i < 200 && s.a->send->n < REQUESTS; i++) {
			world_run_for(w, 100);
			if (s.a->qp->req.rd_atomic_out > most)
				most = s.a->qp->req.rd_atomic_out;
		}
		world_run(w);
		check_eq(w, s.a->send->n, REQUESTS);
		check(w, seed ? most > 64 : most == DEEP);
		for (u32 i = 0; i < REQUESTS; i++) {
			bool atomic = i % 2;

			expect(w, s.a->send, i, .wr_id = i,
			       .opcode = atomic ? CQE_FETCH_ADD : CQE_READ,
			       .byte_len = atomic ? 8 : 200, .qpn = s.a->qp->qpn);
			memcpy(&value, s.local->bytes + i * 300, 8);
			if (atomic)
				check_eq(w, value, i / 2);
			else
				check(w, !memcmp(s.local->bytes + i * 300,
						 s.remote->bytes + i * 300, 200));
		}
		memcpy(&total, word->bytes, 8);
		check_eq(w, total, REQUESTS / 2);
		scene_end(&s);
	}
}

/* ---- the responder ---- */

static struct packet add_one(const struct raw *r, u32 psn)
{
	struct packet p = raw_access(r, RC(FETCH_ADD), psn, 64, 0);

	p.swap_add = 1;
	return p;
}

static void deliver_adds(struct raw *r, u32 n)
{
	for (u32 i = 0; i < n; i++)
		raw_deliver(r, add_one(r, RAW_PSN + i), NULL, 0);
}

/* The next answers are the results of adds first .. end - 1. */
static void expect_adds(struct raw *r, u32 first, u32 end)
{
	for (u32 i = first; i < end; i++) {
		const struct packet *p = raw_answer(r);

		check(r->w, p && p->opcode == RC(ATOMIC_ACKNOWLEDGE));
		check_eq(r->w, p->psn, RAW_PSN + i);
		check_eq(r->w, p->original, i);
	}
}

/* 64 is where the bits of pending go on in a second word. */
static void atomics__each_replayed(void **state)
{
	static const u32 room[] = { 1, 16, 17, 64, 65, 100, DEEP };

	for (u32 k = 0; k < ARRAY_SIZE(room); k++)
		for (u32 before = 0; before < 200; before += 37) {
			struct pair_options o = deep_options(1, (u8)room[k]);
			struct raw r = raw_create(&o, "atomics__each_replayed");
			u32 n = before + room[k];

			raw_store(&r, 64, 0);
			for (u32 i = 0; i < before; i++)
				raw_send(&r, add_one(&r, RAW_PSN + i), NULL, 0);
			expect_adds(&r, 0, before);
			for (u32 i = before; i < n; i++)
				raw_deliver(&r, add_one(&r, RAW_PSN + i), NULL, 0);
			world_settle(r.w);
			expect_adds(&r, before, n);
			/* alone, and all at once: the answers leave in the order of the requests */
			for (u32 i = n; i-- > before;) {
				raw_send(&r, add_one(&r, RAW_PSN + i), NULL, 0);
				expect_adds(&r, i, i + 1);
			}
			for (u32 i = n; i-- > before;)
				raw_deliver(&r, add_one(&r, RAW_PSN + i), NULL, 0);
			world_settle(r.w);
			expect_adds(&r, before, n);
			expect_silence(&r);
			if (before)
				check_eq(r.w,
					 raw_send(&r, add_one(&r, RAW_PSN + before - 1), NULL, 0),
					 XROCE_DROP_psn_duplicate);
			check_eq(r.w, raw_load(&r, 64), n);
			raw_destroy(&r);
		}
}

static void excess__is_invalid(void **state)
{
	struct pair_options o = deep_options(1, DEEP);
	struct raw r = raw_create(&o, "excess__is_invalid");

	raw_store(&r, 64, 0);
	deliver_adds(&r, DEEP + 1);
	world_settle(r.w);
	expect_adds(&r, 0, DEEP);
	expect_ack(&r, AETH_NAK | NAK_INVALID_REQUEST, RAW_PSN + DEEP, DEEP);
	expect_failed(&r, NAK_INVALID_REQUEST);
	check_eq(r.w, raw_load(&r, 64), DEEP);
	raw_destroy(&r);
}

/* ---- memory ---- */

static int modify_depth(struct side *s, u8 initiated, u8 answered)
{
	struct qp_attr a = { .state = QPS_SQD,
			     .max_rd_atomic = initiated,
			     .max_dest_rd_atomic = answered };

	return qp_modify(s->node->engine, s->qp, &a,
			 QP_ATTR_STATE | QP_ATTR_MAX_QP_RD_ATOMIC | QP_ATTR_MAX_DEST_RD_ATOMIC,
			 s->node->world->now_ns);
}

/* Stored results, and answers still to be sent, outlive the ring that they were in. */
static void sqd__responder_grows(void **state)
{
	for (u32 answered = 0; answered < 2; answered++) {
		struct pair_options o = deep_options(1, 16);
		struct raw r = raw_create(&o, "sqd__responder_grows");

		raw_store(&r, 64, 0);
		for (u32 i = 0; i < 5; i++)
			raw_send(&r, add_one(&r, RAW_PSN + i), NULL, 0);
		expect_adds(&r, 0, 5);
		for (u32 i = 5; i < 21; i++)
			raw_deliver(&r, add_one(&r, RAW_PSN + i), NULL, 0);
		if (answered) {
			world_settle(r.w);
			expect_adds(&r, 5, 21);
		}
		assert_int_equal(side_state(&r.s, QPS_SQD), 0);
		assert_int_equal(modify_depth(&r.s, 1, DEEP), 0);
		for (u32 i = 5; i < 21 && answered; i++)
			raw_deliver(&r, add_one(&r, RAW_PSN + i), NULL, 0);
		for (u32 i = 21; i < 5 + DEEP; i++)
			raw_deliver(&r, add_one(&r, RAW_PSN + i), NULL, 0);
		world_settle(r.w);
		expect_adds(&r, 5, 5 + DEEP);
		expect_silence(&r);
		check_eq(r.w, raw_load(&r, 64), 5 + DEEP);
		raw_destroy(&r);
	}
}

/* The fence waits for all that were outstanding before the ring grew. */
static void sqd__requester_grows(void **state)
{
	struct pair_options o = deep_options(16, DEEP);
	struct world *w = world_create(2, 3);
	struct buffer *word;
	struct scene s;
	u64 zero = 0;

	world_label(w, "sqd__requester_grows");
	o.psn[0] = 0xfffe00; /* what an entry that was never filled has is ahead of all */
	s = scene_in(w, &o, REQUESTS * 300);
	word = world_buffer(&w->node[1], 8, PAIR_ACCESS_ALL);
	memcpy(word->bytes, &zero, 8);
	for (u32 i = 0; i < 5; i++)
		scene_post(&s, 1000 + i, WR_READ, 8);
	world_run(w);
	w->node[1].to[0].dead = true;
	post_mixed(&s, word);
	world_run_for(w, 2 * WORLD_LATENCY_NS);
	check_eq(w, s.a->qp->req.rd_atomic_out, 16);
	assert_int_equal(side_state(s.a, QPS_SQD), 0);
	assert_int_equal(modify_depth(s.a, DEEP, 4), 0);
	check_eq(w, s.a->qp->req.rd_atomic_out, 16);
	w->node[1].to[0].dead = false;
	world_run(w);
	check_eq(w, s.a->qp->req.rd_atomic_out, 0);
	assert_int_equal(side_state(s.a, QPS_RTS), 0);
	world_run(w);
	check_eq(w, s.a->send->n, 5 + REQUESTS);
	for (u32 i = 0; i < REQUESTS; i++)
		check_eq(w, s.a->send->log[5 + i].status, CQE_SUCCESS);
	scene_end(&s);
}

static void enomem__changes_nothing(void **state)
{
	struct pair_options o = deep_options(1, DEEP);
	struct world *w = world_create(2, 3);
	struct qp_attr a, before, after;
	struct side s;
	u32 mask;

	world_label(w, "enomem__changes_nothing");
	s = side_create(&w->node[0], &o, NULL);
	side_init(&s, &o);
	mask = side_attr(&o, QPS_RTR, &a);
	a.path = world_path(w, 0, 1, false);
	allocations_left = 0;
	qp_query(s.qp, &before);
	assert_int_equal(qp_modify(s.node->engine, s.qp, &a, mask, 0), -ENOMEM);
	qp_query(s.qp, &after);
	assert_memory_equal(&before, &after, sizeof(before));
	a.max_dest_rd_atomic = QP_OWN_RD_ATOMIC;
	assert_int_equal(qp_modify(s.node->engine, s.qp, &a, mask, 0), 0);
	side_rts(&s, &o, 1);
	assert_int_equal(side_state(&s, QPS_SQD), 0);
	qp_query(s.qp, &before);
	for (allocations_left = 0; allocations_left < 2;) {
		int n = allocations_left;

		assert_int_equal(modify_depth(&s, DEEP, DEEP), -ENOMEM);
		qp_query(s.qp, &after);
		assert_memory_equal(&before, &after, sizeof(before));
		check(w, s.qp->req.rd_atomic_last == s.qp->req.few &&
				 s.qp->resp.resource == s.qp->resp.few);
		allocations_left = n + 1;
	}
	allocations_left = -1;
	assert_int_equal(modify_depth(&s, DEEP, DEEP), 0);
	side_destroy(&s);
	world_destroy(w);
}

/* Only the requested size, only beyond QP_OWN_RD_ATOMIC, and until RESET. */
static void memory__of_those_that_ask(void **state)
{
	static const struct {
		u8 initiated, answered;	 /* asked for */
		u32 rings, sent, stored; /* allocated, and the places of each */
	} rows[] = {
		{ 0, 0, 0, 16, 16 },
		{ 16, 16, 0, 16, 16 },
		{ 17, 16, 1, 32, 16 },
		{ 1, 17, 1, 16, 32 },
		{ 65, 64, 2, 128, 64 },
		{ DEEP, DEEP, 2, 128, 128 },
	};

	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		struct pair_options o = deep_options(rows[i].initiated, rows[i].answered);
		struct world *w = world_create(2, 3);
		struct side s = side_create(&w->node[0], &o, NULL);

		world_label(w, "memory__of_those_that_ask row %u", i);
		for (u32 round = 0; round < 2; round++) {
			allocations = 0;
			side_init(&s, &o);
			side_rtr(&s, &o, 1, 77, 1);
			side_rts(&s, &o, 1);
			check_eq(w, allocations, rows[i].rings);
			check_eq(w, s.qp->req.rd_atomic_mask + 1u, rows[i].sent);
			check_eq(w, s.qp->resp.resource_mask + 1u, rows[i].stored);
			assert_int_equal(side_state(&s, round ? QPS_ERR : QPS_RESET), 0);
			if (!round)
				check(w, s.qp->req.rd_atomic_last == s.qp->req.few &&
					 s.qp->resp.resource == s.qp->resp.few);
		}
		side_destroy(&s);
		world_destroy(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deep__each_answered_right),
		cmocka_unit_test(atomics__each_replayed),
		cmocka_unit_test(excess__is_invalid),
		cmocka_unit_test(sqd__responder_grows),
		cmocka_unit_test(sqd__requester_grows),
		cmocka_unit_test(enomem__changes_nothing),
		cmocka_unit_test(memory__of_those_that_ask),
	};

	return cmocka_run_group_tests_name("rd_atomic", tests, NULL, NULL);
}
