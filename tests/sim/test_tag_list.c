/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * The list of tags: its operations, and how list and application stay in step about unexpected
 * messages.
 */
#include "tag_scene.h"

#include <setjmp.h>
#include <cmocka.h>

static void sync_to(struct tag_scene *s, u32 count)
{
	check_eq(s->w,
		 tag_op_post(s, &(struct tag_op){ .opcode = TAG_SYNC, .unexpected_cnt = count }),
		 0);
}

/* ---- being in step ---- */

static void step__new_tags_wait_after_an_unexpected_message(void **state)
{
	struct tag_scene s;

	tag_open(&s, "step");
	post_receives(&s, 0, 8);
	tag_add(&s, 70, 1, UINT64_MAX, 0, 64, 0);
	send_eager(&s, 2, 10); /* unexpected: 1 */
	check_eq(s.w, s.cq->n, 1);
	tag_add(&s, 71, 3, UINT64_MAX, 64, 64, 0); /* as of 0: it waits */
	send_eager(&s, 3, 11); /* unexpected: 2 */
	expect(s.w, s.cq, 1, .wr_id = 1, .opcode = CQE_TM_RECV, .byte_len = 27,
	       .qpn = s.b->qp->qpn);
	send_eager(&s, 1, 12); /* an entry of before is matched all the same */
	expect_match(&s, 2, 70, 1, BOTH, 12);
	sync_to(&s, 1);
	send_eager(&s, 3, 13); /* still out of step: unexpected: 3 */
	expect(s.w, s.cq, 3, .wr_id = 2, .opcode = CQE_TM_RECV, .byte_len = 29,
	       .qpn = s.b->qp->qpn);
	sync_to(&s, 3);
	send_eager(&s, 3, 14);
	expect_match(&s, 4, 71, 3, BOTH, 14);
	/* an ADD may carry the count itself, also for earlier ones */
	send_eager(&s, 9, 15); /* unexpected: 4 */
	tag_add(&s, 72, 4, UINT64_MAX, 128, 64, 3);
	tag_add(&s, 73, 5, UINT64_MAX, 192, 64, 4);
	send_eager(&s, 4, 16);
	send_eager(&s, 5, 17);
	expect_match(&s, 6, 72, 4, BOTH, 16);
	expect_match(&s, 7, 73, 5, BOTH, 17);
	tag_close(&s);
}

static void step__is_asked_for(void **state)
{
	struct tag_op sync = {
		.wr_id = 4, .opcode = TAG_SYNC, .flags = TAG_OP_SIGNALED, .unexpected_cnt = 1
	};
	struct tag_op one = {
		.wr_id = 5, .opcode = TAG_ADD, .flags = TAG_OP_SIGNALED, .recv_wr_id = 70
	};
	struct tag_scene s;

	tag_open(&s, "asked for");
	post_receives(&s, 0, 8);
	check_eq(s.w, tag_op_post(&s, &one), 0);
	expect(s.w, s.cq, 0, .wr_id = 5, .opcode = CQE_TM_ADD);
	one.tag = one.mask = UINT64_MAX;
	send_eager(&s, 1, 0); /* matches the first: mask 0 */
	send_eager(&s, 2, 10);
	expect(s.w, s.cq, 2, .wr_id = 0, .opcode = CQE_TM_RECV, .byte_len = 26,
	       .qpn = s.b->qp->qpn);
	/* without TAG_OP_SYNC an ADD's count is no news */
	one.unexpected_cnt = 1;
	check_eq(s.w, tag_op_post(&s, &one), 0);
	expect(s.w, s.cq, 3, .wr_id = 5, .opcode = CQE_TM_ADD, .flags = CQE_TM_SYNC_REQ);
	check_eq(s.w, tag_op_post(&s, &sync), 0);
	expect(s.w, s.cq, 4, .wr_id = 4, .opcode = CQE_TM_SYNC);
	sync.unexpected_cnt = 0x10001; /* 16 bits count */
	check_eq(s.w, tag_op_post(&s, &sync), 0);
	expect(s.w, s.cq, 5, .wr_id = 4, .opcode = CQE_TM_SYNC);
	sync.unexpected_cnt = 2;
	check_eq(s.w, tag_op_post(&s, &sync), 0);
	expect(s.w, s.cq, 6, .wr_id = 4, .opcode = CQE_TM_SYNC, .flags = CQE_TM_SYNC_REQ);
	tag_close(&s);
}

/* Far out of step, an unexpected message's completion requests a sync as well. */
static void step__is_asked_for_by_messages(void **state)
{
	struct tag_scene s;
	u32 asked = 0;

	tag_open(&s, "far behind");
	s.w->keep_frames = false;
	for (u32 i = 0; i < 0x2002; i++) {
		post_receives(&s, 1, 2);
		send_eager(&s, 2, 0);
		check_eq(s.w, s.cq->n, 1);
		check(s.w, !asked || s.cq->log[0].flags);
		asked += s.cq->log[0].flags == CQE_TM_SYNC_REQ;
		s.cq->n = s.a->send->n = 0;
	}
	check_eq(s.w, asked, 2);
	sync_to(&s, 0x2002);
	tag_add(&s, 70, 7, UINT64_MAX, 0, 64, 0x2002);
	send_eager(&s, 7, 3);
	expect_match(&s, 0, 70, 7, BOTH, 3);
	tag_close(&s);
}

/*
 * Unexpected messages that the application will never see do not count: one cut off by an error,
 * and completions that went with their QP.
 */
static void step__lost_messages_do_not_count(void **state)
{
	struct pair_options o = tag_options();
	struct tag_scene s;
	struct send send;

	tag_open(&s, "lost");
	post_receives(&s, 0, 8);
	send_eager(&s, 1, 10); /* unexpected: 1 */
	s.w->node[0].to[1].count = 0;
	s.w->node[0].to[1].drop = 4;
	send = tag_message(&s, 0, TMH_EAGER, 2, 600); /* and the rest does not come */
	post_send(s.a, &send);
	world_run_for(s.w, 10 * WORLD_LATENCY_NS);
	tag_add(&s, 70, 3, UINT64_MAX, 0, 64, 1);
	check_eq(s.w, side_state(s.b, QPS_ERR), 0);
	world_run(s.w);
	check_eq(s.w, s.cq->n, 2);
	expect(s.w, s.cq, 1, .wr_id = 1, .status = CQE_WR_FLUSH_ERR, .vendor_err = VERR_FLUSHED,
	       .qpn = s.b->qp->qpn);
	pair_destroy(&s.p);

	s.cq->n = 0;
	tag_connect(&s, &o);
	send_eager(&s, 3, 11); /* in step by then */
	expect_match(&s, 0, 70, 3, BOTH, 11);
	s.cq->polled = false;
	send_eager(&s, 4, 12);
	send_eager(&s, 5, 13);
	pair_destroy(&s.p);
	world_poll(s.cq);
	check_eq(s.w, s.cq->n, 1);
	s.cq->polled = true;
	s.cq->n = 0;
	tag_connect(&s, &o);
	tag_add(&s, 71, 6, UINT64_MAX, 0, 64, 1);
	send_eager(&s, 6, 14);
	expect_match(&s, 0, 71, 6, BOTH, 14);

	/* the same by RESET, in the middle of a message */
	s.w->node[0].to[1].count = 0;
	s.w->node[0].to[1].drop = 4;
	send = tag_message(&s, 0, TMH_EAGER, 2, 600);
	post_send(s.a, &send);
	world_run_for(s.w, 10 * WORLD_LATENCY_NS);
	check_eq(s.w, side_state(s.b, QPS_RESET), 0);
	pair_destroy(&s.p);
	world_drop_flights(s.w);
	s.cq->n = 0;
	tag_connect(&s, &o);
	tag_add(&s, 72, 8, UINT64_MAX, 0, 64, 1);
	send_eager(&s, 8, 15);
	expect_match(&s, 0, 72, 8, BOTH, 15);
	tag_close(&s);
}

/* ---- operations ---- */

static void ops__refused(void **state)
{
	struct sge sge[TAG_MAX_SGE + 1] = { { 0 } };
	struct tag_scene s;

	tag_open(&s, "refused");
	check_eq(s.w, tag_op_post(&s, &(struct tag_op){ .opcode = 3 }), (u64)-EINVAL);
	check_eq(s.w, tag_op_post(&s, &(struct tag_op){ .opcode = UINT32_MAX }), (u64)-EINVAL);
	check_eq(s.w, tag_op_post(&s, &(struct tag_op){ .opcode = TAG_SYNC, .flags = 4 }),
		 (u64)-EINVAL);
	check_eq(s.w,
		 tag_op_post(&s, &(struct tag_op){ .opcode = TAG_ADD,
						   .sge = sge,
						   .num_sge = TAG_MAX_SGE + 1 }),
		 (u64)-EINVAL);
	check_eq(s.w, tag_op_post(&s, &(struct tag_op){ .opcode = TAG_DEL, .handle = MAX_TAGS }),
		 (u64)-EINVAL);
	for (u32 i = 0; i < MAX_TAGS; i++)
		tag_add(&s, i, i, UINT64_MAX, 0, 64, 0);
	check_eq(s.w,
		 tag_op_post(&s, &(struct tag_op){ .opcode = TAG_ADD, .flags = TAG_OP_SIGNALED }),
		 (u64)-ENOMEM);
	check_eq(s.w, s.cq->n, 0);
	for (u32 i = 0; i < MAX_TAGS; i++)
		send_eager(&s, i, i);
	for (u32 i = 0; i < MAX_TAGS; i++)
		expect_match(&s, i, i, i, BOTH, i);
	for (u32 i = 0; i < MAX_TAGS; i++)
		tag_add(&s, i, i, UINT64_MAX, 0, 64, 0);
	tag_close(&s);
	assert_int_equal(tag_list_create(0, 1, &s.srq->tags), -EINVAL);
	assert_int_equal(tag_list_create(1, 0, &s.srq->tags), -EINVAL);
	assert_int_equal(tag_list_create(TAG_MAX_TAGS + 1, 1, &s.srq->tags), -EINVAL);
	assert_int_equal(tag_list_create(1, TAG_MAX_OPS + 1, &s.srq->tags), -EINVAL);
}

static void ops__delete(void **state)
{
	struct tag_op del = { .wr_id = 6, .opcode = TAG_DEL, .flags = TAG_OP_SIGNALED };
	u32 handle[4];
	struct tag_scene s;

	tag_open(&s, "delete");
	post_receives(&s, 0, 8);
	for (u32 i = 0; i < 4; i++)
		handle[i] = tag_add(&s, 70 + i, 5, UINT64_MAX, 64 * i, 64, 0);
	send_eager(&s, 5, 1);
	expect_match(&s, 0, 70, 5, BOTH, 1);
	del.handle = handle[0]; /* "may fail due to concurrent tag consumption" */
	check_eq(s.w, tag_op_post(&s, &del), 0);
	expect(s.w, s.cq, 1, .wr_id = 6, .status = CQE_TM_ERR, .vendor_err = VERR_TAG_CONSUMED);
	check_eq(s.w, s.cq->log[1].opcode, CQE_TM_DEL);
	/* in the same slot: the old handle must not name it */
	tag_add(&s, 80, 5, UINT64_MAX, 512, 64, 0);
	check_eq(s.w, tag_op_post(&s, &del), 0);
	check_eq(s.w, s.cq->log[2].status, CQE_TM_ERR);
	del.handle = handle[2]; /* from the middle */
	check_eq(s.w, tag_op_post(&s, &del), 0);
	expect(s.w, s.cq, 3, .wr_id = 6, .opcode = CQE_TM_DEL);
	check_eq(s.w, tag_op_post(&s, &del), 0);
	check_eq(s.w, s.cq->log[4].status, CQE_TM_ERR);
	del.flags = 0; /* without a completion */
	check_eq(s.w, tag_op_post(&s, &del), 0);
	del.handle = handle[1]; /* the head */
	check_eq(s.w, tag_op_post(&s, &del), 0);
	check_eq(s.w, s.cq->n, 5);
	send_eager(&s, 5, 2);
	send_eager(&s, 5, 3);
	send_eager(&s, 5, 4);
	expect_match(&s, 5, 73, 5, BOTH, 2);
	expect_match(&s, 6, 80, 5, BOTH, 3);
	expect(s.w, s.cq, 7, .wr_id = 0, .opcode = CQE_TM_RECV, .byte_len = 20,
	       .qpn = s.b->qp->qpn);
	tag_close(&s);
}

/* A signaled operation is outstanding until it is polled. */
static void ops__outstanding(void **state)
{
	struct tag_op sync = { .opcode = TAG_SYNC, .flags = TAG_OP_SIGNALED };
	struct tag_scene s;

	tag_open(&s, "outstanding");
	s.cq->polled = false;
	for (u32 round = 0; round < 3; round++) {
		for (u32 i = 0; i < MAX_OPS; i++)
			check_eq(s.w, tag_op_post(&s, &sync), 0);
		check_eq(s.w, tag_op_post(&s, &sync), (u64)-ENOMEM);
		sync.flags = 0;
		check_eq(s.w, tag_op_post(&s, &sync), 0);
		sync.flags = TAG_OP_SIGNALED;
		cq_peek(&s.cq->cq);
		cq_pop(&s.cq->cq);
		check_eq(s.w, tag_op_post(&s, &sync), 0);
		check_eq(s.w, tag_op_post(&s, &sync), (u64)-ENOMEM);
		world_poll(s.cq);
	}
	check_eq(s.w, s.cq->n, 3 * MAX_OPS);
	tag_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(step__new_tags_wait_after_an_unexpected_message),
		cmocka_unit_test(step__is_asked_for),
		cmocka_unit_test(step__is_asked_for_by_messages),
		cmocka_unit_test(step__lost_messages_do_not_count),
		cmocka_unit_test(ops__refused),
		cmocka_unit_test(ops__delete),
		cmocka_unit_test(ops__outstanding),
	};

	return cmocka_run_group_tests_name("tag list", tests, NULL, NULL);
}
