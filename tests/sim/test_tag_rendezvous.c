/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * Rendezvous: the engine fetches the matched message by its own READs, and answers with a FIN,
 * while the application uses the same QP.
 */
#include "tag_scene.h"

#include <setjmp.h>
#include <cmocka.h>

static void rendezvous__is_fetched_and_answered(void **state)
{
	static const u32 lengths[] = { 0, 1, PMTU, 40 * PMTU + 3 };
	struct tag_scene s;

	for (u32 i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct send send;

		tag_open(&s, "rendezvous");
		tag_add(&s, 70, 5, UINT64_MAX, 100, 41 * PMTU, 0);
		send = tag_rendezvous(&s, 0, 5, 1024, lengths[i], i * 70);
		post_send(s.a, &send);
		world_run(s.w);
		check_eq(s.w, s.cq->n, 2);
		expect_match(&s, 0, 70, 5, CQE_TM_MATCH, lengths[i]);
		expect_match(&s, 1, 70, 5, CQE_TM_DATA_VALID, lengths[i]);
		check(s.w, bytes_are(s.remote->bytes + 100, lengths[i], 5));
		check_eq(s.w, s.a->recv->n, 1);
		expect_fin(&s, 0, 5, 1024, lengths[i]);
		check_eq(s.w, s.b->send->n, 0); /* what the engine sends is not the application's */
		tag_close(&s);
	}
}

/*
 * Several at once, with requests of the application's between: each completes, all in order, and
 * the application's queue is as long as it asked for.
 */
static void rendezvous__beside_the_applications_requests(void **state)
{
	struct pair_options o = tag_options();
	struct send list[4];
	struct tag_scene s;

	o.max_send_wr = 4;
	o.max_rd_atomic = o.max_dest_rd_atomic = 2;
	o.max_inline = 48;
	tag_open_with(&s, "beside", &o);
	for (u32 i = 0; i < 4; i++) {
		tag_add(&s, 70 + i, i, UINT64_MAX, i * 4096, 4096, 0);
		list[i] = tag_rendezvous(&s, i * 64, i, 1024 + i * 4096, 3000 + i, 0);
	}
	post_sends(s.a, list, 4);
	for (u32 i = 0; i < 4; i++)
		post_send(s.b, &(struct send){
				       .wr_id = i,
				       .opcode = i % 2 ? WR_READ : WR_WRITE,
				       .flags = WR_SIGNALED,
				       .num_sge = 1,
				       .sge = { buffer_sge(s.remote, RECEIVES + i * 1024, 1000) },
				       .remote_addr = buffer_va(s.local) + 20000,
				       .rkey = s.local->mr->key });
	check_eq(s.w, try_post_send(s.b, &(struct send){ .opcode = WR_WRITE }), (u64)-1);
	check_eq(s.w,
		 try_post_send(s.b, &(struct send){ .opcode = WR_WRITE, .flags = WR_RENDEZVOUS }),
		 (u64)-1);
	world_run(s.w);
	check_eq(s.w, s.b->send->n, 4);
	for (u32 i = 0; i < 4; i++) {
		expect(s.w, s.b->send, i, .wr_id = i, .opcode = i % 2 ? CQE_READ : CQE_WRITE,
		       .byte_len = 1000, .qpn = s.b->qp->qpn);
		check(s.w, bytes_are(s.remote->bytes + i * 4096, 3000 + i, i));
		expect_fin(&s, i, i, 1024 + i * 4096, 3000 + i);
	}
	check_eq(s.w, s.cq->n, 8);
	check_eq(s.w,
		 try_post_send(s.b, &(struct send){ .opcode = WR_WRITE, .flags = WR_RENDEZVOUS }),
		 (u64)-EINVAL);
	tag_close(&s);
}

/* ibv_create_qp(3) with no send WRs at all: the send queue is the engine's alone. */
static void rendezvous__without_sends_of_its_own(void **state)
{
	struct pair_options o = tag_options();
	struct tag_scene s;
	struct send send;

	o.max_send_wr = 8;
	tag_open_with(&s, "without", &o);
	pair_destroy(&s.p);
	o.max_send_wr = 0;
	s.p.side[1] = side_create(&s.w->node[1], &o, s.srq);
	o.max_send_wr = 8;
	s.p.side[0] = side_create(&s.w->node[0], &o, NULL);
	for (u32 i = 0; i < 2; i++) {
		side_init(&s.p.side[i], &o);
		side_rtr(&s.p.side[i], &o, !i, s.p.side[!i].qp->qpn, o.psn[!i]);
		side_rts(&s.p.side[i], &o, o.psn[i]);
	}
	post_recv_buffer(s.a, 900, s.local, s.local->len - 64, 64);
	check_eq(s.w, try_post_send(s.b, &(struct send){ .opcode = WR_WRITE }), (u64)-1);
	tag_add(&s, 70, 5, UINT64_MAX, 100, 1000, 0);
	send = tag_rendezvous(&s, 0, 5, 1024, 1000, 0);
	post_send(s.a, &send);
	world_run(s.w);
	expect_match(&s, 1, 70, 5, CQE_TM_DATA_VALID, 1000);
	expect_fin(&s, 0, 5, 1024, 1000);
	tag_close(&s);
}

/* More than the engine has slots for: the others are deferred, and lose nothing. */
static void rendezvous__many(void **state)
{
	struct pair_options o = tag_options();
	struct tag_scene s;
	u32 done = 0;

	o.max_send_wr = 128;
	o.max_recv_wr = 256;
	o.min_rnr_timer = 1;
	tag_open_with(&s, "many", &o);
	s.w->node[1].to[0].dead = true; /* no READ gets through for a while */
	for (u32 i = 0; i < 128; i++) /* the application's own queue is full */
		post_send(s.b, &(struct send){ .opcode = WR_WRITE });
	tag_list_free(s.srq->tags);
	assert_int_equal(tag_list_create(100, 1, &s.srq->tags), 0);
	for (u32 i = 0; i < 100; i++) {
		struct send send = tag_rendezvous(&s, i * 32, i, 4096, 100, 0);

		tag_add(&s, i, i, UINT64_MAX, i * 128, 128, 0);
		post_send(s.a, &send);
		post_recv_buffer(s.a, i, s.local, 60000, 64);
	}
	world_run_for(s.w, 200 * NSEC_PER_USEC);
	check_eq(s.w, s.cq->n, 64);
	check(s.w, s.w->node[1].stats.tx_rnr_naks >= 1);
	s.w->node[1].to[0].dead = false;
	world_run(s.w);
	for (u32 i = 0; i < s.cq->n; i++)
		done += s.cq->log[i].flags == CQE_TM_DATA_VALID;
	check_eq(s.w, done, 100);
	check_eq(s.w, s.a->recv->n, 100);
	tag_close(&s);
}

/*
 * What the engine cannot fetch is left to the application, with the headers in the tag's buffer.
 * The QP goes on.
 */
static void rendezvous__left_to_the_application(void **state)
{
	static const struct {
		u32 room, len;
		u8 max_rd_atomic;
	} table[] = { { 999, 1000, 4 },
		      { 0, 1, 4 },
		      { 20, 100, 4 },
		      { 1000, 1000, 0 },
		      { 512, UINT32_MAX, 4 } };

	for (u32 i = 0; i < ARRAY_SIZE(table); i++) {
		u32 got = min_u32(32, table[i].room);
		struct pair_options o = tag_options();
		struct tag_scene s;
		struct send send;
		struct rvh v;

		o.max_rd_atomic = table[i].max_rd_atomic;
		tag_open_with(&s, "left", &o);
		memset(s.remote->bytes, 0xee, 2048);
		tag_add(&s, 70, 5, UINT64_MAX, 0, table[i].room, 0);
		send = tag_rendezvous(&s, 0, 5, 1024, min_u32(table[i].len, 1000), 40);
		v = (struct rvh){ .va = htobe64(1),
				  .rkey = htobe32(2),
				  .len = htobe32(table[i].len) };
		memcpy(s.local->bytes + 16, &v, sizeof(v));
		post_send(s.a, &send);
		world_run(s.w);
		check_eq(s.w, s.cq->n, 1);
		expect(s.w, s.cq, 0, .wr_id = 70, .status = CQE_TM_RNDV_INCOMPLETE,
		       .vendor_err = VERR_RENDEZVOUS, .qpn = s.b->qp->qpn);
		check_eq(s.w, s.cq->log[0].opcode, CQE_TM_RECV);
		check_eq(s.w, s.cq->log[0].flags, BOTH);
		check_eq(s.w, s.cq->log[0].byte_len, got);
		check_eq(s.w, s.cq->log[0].tm_tag, 5);
		check(s.w, memcmp(s.remote->bytes, s.local->bytes, got) == 0);
		check_eq(s.w, s.remote->bytes[got], 0xee);
		check_eq(s.w, qp_state(s.b->qp), QPS_RTS);
		check_eq(s.w, s.a->recv->n, 0);
		tag_add(&s, 71, 6, UINT64_MAX, 0, 64, 0);
		send_eager(&s, 6, 9);
		expect_match(&s, 1, 71, 6, BOTH, 9);
		tag_close(&s);
	}
}

static void rendezvous__before_rts_waits(void **state)
{
	struct pair_options o = tag_options();
	struct tag_scene s;
	struct send send;

	tag_open_with(&s, "before rts", &o);
	pair_destroy(&s.p);
	for (u32 i = 0; i < 2; i++) {
		s.p.side[i] = side_create(&s.w->node[i], &o, i ? s.srq : NULL);
		side_init(&s.p.side[i], &o);
	}
	for (u32 i = 0; i < 2; i++)
		side_rtr(&s.p.side[i], &o, !i, s.p.side[!i].qp->qpn, o.psn[!i]);
	side_rts(s.a, &o, o.psn[0]);
	post_recv_buffer(s.a, 900, s.local, s.local->len - 64, 64);
	tag_add(&s, 70, 5, UINT64_MAX, 100, 1000, 0);
	send = tag_rendezvous(&s, 0, 5, 1024, 1000, 0);
	post_send(s.a, &send);
	world_run_for(s.w, 3 * NSEC_PER_MSEC);
	check_eq(s.w, s.cq->n, 0);
	side_rts(s.b, &o, o.psn[1]);
	world_run(s.w);
	check_eq(s.w, s.cq->n, 2);
	expect_fin(&s, 0, 5, 1024, 1000);
	tag_close(&s);
}

/* The rendezvous fails: its buffer comes back with the status of the READ. */
static void error__rendezvous(void **state)
{
	for (u32 i = 0; i < 3; i++) {
		struct tag_scene s;
		struct send send;
		struct sge sge;
		struct tag_op o = {
			.opcode = TAG_ADD, .recv_wr_id = 70, .sge = &sge, .num_sge = 1
		};
		struct rvh *v;

		tag_open(&s, "rendezvous error");
		sge = buffer_sge(s.remote, 0, 2000);
		sge.lkey += i == 1;
		check_eq(s.w, tag_op_post(&s, &o), 0);
		send = tag_rendezvous(&s, 0, 5, 1024, 1000, 0);
		v = (struct rvh *)(s.local->bytes + 16);
		if (i == 0)
			v->rkey++;
		if (i == 2) /* the receiver goes to ERR while it fetches */
			s.w->node[1].to[0].dead = true;
		post_send(s.a, &send);
		if (i == 2) {
			world_run_for(s.w, 10 * WORLD_LATENCY_NS);
			check_eq(s.w, side_state(s.b, QPS_ERR), 0);
		}
		world_run(s.w);
		check_eq(s.w, s.cq->n, 2);
		expect_match(&s, 0, 70, 5, CQE_TM_MATCH, 1000);
		expect(s.w, s.cq, 1, .wr_id = 70, .qpn = s.b->qp->qpn,
		       .status = i == 0 ? CQE_REM_ACCESS_ERR :
				 i == 1 ? CQE_LOC_PROT_ERR :
					  CQE_WR_FLUSH_ERR);
		check_eq(s.w, s.cq->log[1].opcode, CQE_TM_RECV);
		check_eq(s.w, qp_state(s.b->qp), QPS_ERR);
		check_eq(s.w, s.b->send->n, 0);
		tag_close(&s);
	}
}

/* The FIN cannot be delivered: no work request tells the application, so an event does. */
static void error__fin(void **state)
{
	struct pair_options o = tag_options();
	struct tag_scene s;
	struct send send;

	o.rnr_retry = 1;
	tag_open_with(&s, "fin", &o);
	pair_destroy(&s.p);
	s.p = pair_connect(s.w, &o); /* and no receive for it */
	tag_add(&s, 70, 5, UINT64_MAX, 0, 2000, 0);
	send = tag_rendezvous(&s, 0, 5, 1024, 1000, 0);
	post_send(s.a, &send);
	world_run(s.w);
	expect_match(&s, 1, 70, 5, CQE_TM_DATA_VALID, 1000);
	check_eq(s.w, qp_state(s.b->qp), QPS_ERR);
	check_eq(s.w, world_events(&s.w->node[1], EVENT_QP_FATAL, s.b->qp), 1);
	check_eq(s.w, s.cq->n, 2);
	tag_close(&s);
}

/* In ERR what the application posts is flushed, in order, through its own queue. */
static void error__posts_are_flushed(void **state)
{
	struct pair_options o = tag_options();
	struct tag_scene s;

	o.max_send_wr = 3;
	tag_open_with(&s, "flushed", &o);
	check_eq(s.w, side_state(s.b, QPS_ERR), 0);
	for (u32 i = 0; i < 10; i++) {
		post_send(s.b, &(struct send){ .wr_id = i, .opcode = WR_WRITE });
		world_settle(s.w);
		check_eq(s.w, s.b->send->n, i + 1);
		expect(s.w, s.b->send, i, .wr_id = i, .status = CQE_WR_FLUSH_ERR,
		       .qpn = s.b->qp->qpn);
	}
	check_eq(s.w, world_events(&s.w->node[1], EVENT_QP_LAST_WQE, s.b->qp), 1);
	tag_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rendezvous__is_fetched_and_answered),
		cmocka_unit_test(rendezvous__beside_the_applications_requests),
		cmocka_unit_test(rendezvous__without_sends_of_its_own),
		cmocka_unit_test(rendezvous__many),
		cmocka_unit_test(rendezvous__left_to_the_application),
		cmocka_unit_test(rendezvous__before_rts_waits),
		cmocka_unit_test(error__rendezvous),
		cmocka_unit_test(error__fin),
		cmocka_unit_test(error__posts_are_flushed),
	};

	return cmocka_run_group_tests_name("tag rendezvous", tests, NULL, NULL);
}
