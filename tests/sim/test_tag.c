/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * Tag matching: eager messages, unmatched messages, errors, and every small pattern of losses.
 * XROCE_SIM_MASK=forward:backward (hexadecimal) runs one mask.
 */
#include "runs.h"
#include "tag_scene.h"

#include <setjmp.h>
#include <cmocka.h>

/* Completion n is a whole message in receive WQE number receive. */
static void expect_whole(struct tag_scene *s, u32 n, u64 receive, u16 opcode,
			 const struct send *send)
{
	expect(s->w, s->cq, n, .wr_id = receive, .opcode = opcode, .byte_len = send->sge[0].length,
	       .qpn = s->b->qp->qpn, .src_qpn = s->a->qp->qpn);
	check_eq(s->w, s->cq->log[n].tm_tag, 0);
	check_eq(s->w, s->cq->log[n].tm_priv, 0);
	check(s->w, memcmp(s->remote->bytes + RECEIVES + receive * RECEIVE,
			   (void *)(uintptr_t)send->sge[0].addr, send->sge[0].length) == 0);
}

/* ---- eager ---- */

static void eager__one_packet(void **state)
{
	static const u32 lengths[] = { 0, 1, 100, PMTU - 16 };
	struct tag_scene s;

	for (u32 i = 0; i < ARRAY_SIZE(lengths); i++) {
		tag_open(&s, "one packet");
		s.w->split_bytes = i % 2 ? 64 : WORLD_SPLIT_BYTES; /* within the header */
		memset(s.remote->bytes, 0xee, 1024);
		tag_add(&s, 70, 0x1234567812345678, UINT64_MAX, 64, 512, 0);
		check_eq(s.w, s.cq->n, 0);
		send_eager(&s, 0x1234567812345678, lengths[i]);
		check_eq(s.w, s.cq->n, 1);
		expect_match(&s, 0, 70, 0x1234567812345678, BOTH, lengths[i]);
		check(s.w, bytes_are(s.remote->bytes + 64, lengths[i], 0x12345678));
		check_eq(s.w, s.remote->bytes[63], 0xee);
		check_eq(s.w, s.remote->bytes[64 + lengths[i]], 0xee);
		expect(s.w, s.a->send, 0, .wr_id = 0, .opcode = CQE_SEND,
		       .byte_len = 16 + lengths[i], .qpn = s.a->qp->qpn);
		check_eq(s.w, s.b->recv->n, 0);
		tag_close(&s);
	}
}

/* The match is reported at once, the data when it has arrived; the length is the length of the
 * buffer's part. */
static void eager__several_packets(void **state)
{
	struct tag_scene s;
	struct send send;

	tag_open(&s, "several packets");
	tag_add(&s, 70, 5, UINT64_MAX, 0, 700, 0);
	s.w->node[0].to[1].drop = 4; /* the last of three is late */
	send = tag_message(&s, 0, TMH_EAGER, 5, 700);
	post_send(s.a, &send);
	world_run_for(s.w, 10 * WORLD_LATENCY_NS);
	check_eq(s.w, s.cq->n, 1);
	expect_match(&s, 0, 70, 5, CQE_TM_MATCH, 0);
	world_run(s.w);
	check_eq(s.w, s.cq->n, 2);
	expect_match(&s, 1, 70, 5, CQE_TM_DATA_VALID, 700);
	check(s.w, bytes_are(s.remote->bytes, 700, 5));
	tag_close(&s);
}

static void eager__into_a_list_of_elements(void **state)
{
	struct tag_scene s;
	struct sge sge[TAG_MAX_SGE];
	u8 got[600];

	tag_open(&s, "elements");
	for (u32 i = 0; i < TAG_MAX_SGE; i++)
		sge[i] = buffer_sge(s.remote, i * 1000, 75);
	check_eq(s.w,
		 tag_op_post(&s, &(struct tag_op){ .opcode = TAG_ADD,
						   .recv_wr_id = 3,
						   .tag = 9,
						   .mask = 0xff,
						   .sge = sge,
						   .num_sge = TAG_MAX_SGE }),
		 0);
	send_eager(&s, 0x509, 600);
	expect_match(&s, 0, 3, 0x509, CQE_TM_MATCH, 0);
	expect_match(&s, 1, 3, 0x509, CQE_TM_DATA_VALID, 600);
	for (u32 i = 0; i < TAG_MAX_SGE; i++)
		memcpy(got + 75 * i, s.remote->bytes + i * 1000, 75);
	check(s.w, bytes_are(got, 600, 0x509));
	tag_close(&s);
}

/* With immediate data and the solicited bit, as any SEND. */
static void eager__carries_what_a_send_carries(void **state)
{
	struct tag_scene s;
	struct send send;

	tag_open(&s, "immediate");
	tag_add(&s, 70, 5, UINT64_MAX, 0, 700, 0);
	atomic_store(&s.cq->cq.armed, CQ_ARMED_SOLICITED);
	send = tag_message(&s, 0, TMH_EAGER, 5, 300);
	send.opcode = WR_SEND_WITH_IMM;
	send.imm = htobe32(0x1234);
	send.flags |= WR_SOLICITED;
	post_send(s.a, &send);
	world_run(s.w);
	expect_match(&s, 0, 70, 5, CQE_TM_MATCH, 0);
	expect(s.w, s.cq, 1, .wr_id = 70, .opcode = CQE_TM_RECV, .byte_len = 300,
	       .flags = CQE_TM_DATA_VALID | CQE_WITH_IMM, .imm = htobe32(0x1234),
	       .qpn = s.b->qp->qpn);
	check_eq(s.w, world_events(&s.w->node[1], EVENT_COMPLETION, NULL), 1);
	tag_close(&s);
}

/* (TMH.tag & mask) == tag, the oldest entry first, each once. */
static void match__order_and_mask(void **state)
{
	struct tag_scene s;

	tag_open(&s, "order");
	post_receives(&s, 0, 4);
	tag_add(&s, 1, 0x10, 0xf0, 0, 64, 0);
	tag_add(&s, 2, 0x11, 0xff, 64, 64, 0);
	tag_add(&s, 3, 0, 0, 128, 64, 0);
	tag_add(&s, 4, 0x11, 0xff, 192, 64, 0);
	tag_add(&s, 5, 0x1f, 0x0f, 256, 64, 0); /* bits outside of its mask: matches nothing */
	send_eager(&s, 0x11, 1);
	send_eager(&s, 0x11, 2);
	send_eager(&s, 0x11, 3);
	send_eager(&s, 0x11, 4);
	send_eager(&s, 0x1f, 5);
	expect_match(&s, 0, 1, 0x11, BOTH, 1);
	expect_match(&s, 1, 2, 0x11, BOTH, 2);
	expect_match(&s, 2, 3, 0x11, BOTH, 3);
	expect_match(&s, 3, 4, 0x11, BOTH, 4);
	expect(s.w, s.cq, 4, .wr_id = 0, .opcode = CQE_TM_RECV, .byte_len = 16 + 5,
	       .qpn = s.b->qp->qpn);
	check_eq(s.w, s.cq->n, 5);
	tag_close(&s);
}

/* ---- messages without a tag ---- */

static void whole__what_is_not_matched(void **state)
{
	static const struct {
		u8 opcode;
		u32 len; /* of the whole message */
		u16 seen_as;
	} table[] = {
		{ TMH_NO_TAG, 100, CQE_TM_NO_TAG },    { TMH_NO_TAG, 700, CQE_TM_NO_TAG },
		{ TMH_NO_TAG, 1, CQE_TM_NO_TAG },      { TMH_NO_TAG, 0, CQE_TM_NO_TAG },
		{ TMH_FIN, 16, CQE_TM_NO_TAG },	       { TMH_FIN, 32, CQE_TM_NO_TAG },
		{ TMH_EAGER, 15, CQE_TM_NO_TAG },      { 4, 100, CQE_TM_NO_TAG },
		{ 255, 100, CQE_TM_NO_TAG },	       { TMH_RNDV, 31, CQE_TM_NO_TAG },
		{ TMH_RNDV, PMTU + 1, CQE_TM_NO_TAG }, { TMH_EAGER, 100, CQE_TM_RECV },
		{ TMH_EAGER, 700, CQE_TM_RECV },       { TMH_RNDV, 32, CQE_TM_RECV },
		{ TMH_RNDV, PMTU, CQE_TM_RECV },
	};
	struct tag_scene s;

	for (u32 i = 0; i < ARRAY_SIZE(table); i++) {
		struct send send;

		tag_open(&s, "whole");
		post_receives(&s, 3, 5);
		/*
		 * a tag that the opcode's column of the table matches only where it is believed to
		 * have one
		 */
		tag_add(&s, 70, table[i].seen_as == CQE_TM_NO_TAG ? 5 : 6, UINT64_MAX, 0, 512, 0);
		send = tag_message(&s, 0, table[i].opcode, 5, 700);
		send.sge[0].length = table[i].len;
		post_send(s.a, &send);
		world_run(s.w);
		check_eq(s.w, s.cq->n, 1);
		expect_whole(&s, 0, 3, table[i].seen_as, &send);
		/* only tagged messages count as unexpected */
		check_eq(s.w,
			 tag_op_post(&s, &(struct tag_op){ .wr_id = 8,
							   .opcode = TAG_SYNC,
							   .flags = TAG_OP_SIGNALED,
							   .unexpected_cnt = 0 }),
			 0);
		expect(s.w, s.cq, 1, .wr_id = 8, .opcode = CQE_TM_SYNC,
		       .flags = table[i].seen_as == CQE_TM_NO_TAG ? 0 : CQE_TM_SYNC_REQ);
		tag_close(&s);
	}
}

/* Longer than a rendezvous request may be, though it fits a packet. */
static void whole__a_rendezvous_request_that_is_too_long(void **state)
{
	struct pair_options o = tag_options();
	struct tag_scene s;

	for (u32 extra = 0; extra < 2; extra++) {
		struct send send;

		o.pmtu = 1024;
		tag_open_with(&s, "too long", &o);
		post_receives(&s, 3, 5);
		tag_add(&s, 70, 5, UINT64_MAX, 0, 512, 0);
		send = tag_rendezvous(&s, 0, 5, 1024, 100, TAG_MAX_RENDEZVOUS_BYTES - 32 + extra);
		post_send(s.a, &send);
		world_run(s.w);
		if (extra)
			expect_whole(&s, 0, 3, CQE_TM_NO_TAG, &send);
		else
			expect_match(&s, 1, 70, 5, CQE_TM_DATA_VALID, 100);
		tag_close(&s);
	}
}

/* WRITE with immediate data takes a receive WQE as on any SRQ. */
static void write_imm__is_no_message_of_tags(void **state)
{
	struct tag_scene s;

	tag_open(&s, "write");
	post_receives(&s, 2, 3);
	tag_add(&s, 70, 0, 0, 0, 512, 0);
	post_send(s.a, &(struct send){ .wr_id = 1,
				       .opcode = WR_WRITE_WITH_IMM,
				       .imm = htobe32(9),
				       .num_sge = 1,
				       .sge = { buffer_sge(s.local, 0, 300) },
				       .remote_addr = buffer_va(s.remote),
				       .rkey = s.remote->mr->key });
	world_run(s.w);
	expect(s.w, s.cq, 0, .wr_id = 2, .opcode = CQE_RECV_WITH_IMM, .byte_len = 300,
	       .flags = CQE_WITH_IMM, .imm = htobe32(9), .qpn = s.b->qp->qpn);
	send_eager(&s, 77, 5);
	expect_match(&s, 1, 70, 77, BOTH, 5);
	tag_close(&s);
}

/* No receive WQE for an unexpected message: RNR, and at its retransmission it is matched again. */
static void unexpected__waits_for_a_receive(void **state)
{
	struct tag_scene s;
	struct send send;

	tag_open(&s, "rnr");
	send = tag_message(&s, 0, TMH_EAGER, 5, 400);
	post_send(s.a, &send);
	world_run_for(s.w, 3 * NSEC_PER_MSEC);
	check(s.w, s.w->node[1].stats.tx_rnr_naks >= 1);
	check_eq(s.w, s.cq->n, 0);
	/*
	 * nothing was taken in, so nothing was unexpected yet: a tag that is added now is good for
	 * it
	 */
	tag_add(&s, 70, 5, UINT64_MAX, 0, 512, 0);
	world_run(s.w);
	expect_match(&s, 0, 70, 5, CQE_TM_MATCH, 0);
	expect_match(&s, 1, 70, 5, CQE_TM_DATA_VALID, 400);

	send = tag_message(&s, 0, TMH_EAGER, 6, 400);
	post_send(s.a, &send);
	world_run_for(s.w, 3 * NSEC_PER_MSEC);
	post_receives(&s, 4, 5);
	world_run(s.w);
	expect_whole(&s, 2, 4, CQE_TM_RECV, &send);
	check_eq(s.w, s.cq->n, 3);
	tag_close(&s);
}

/* ---- errors ---- */

/* A tag's buffer that is too short, or whose key fails: as with any receive. */
static void error__buffer(void **state)
{
	for (u32 i = 0; i < 6; i++) {
		bool key = i % 2, matched = i < 4, first = i < 2;
		struct tag_scene s;
		struct sge sge;
		struct tag_op o = {
			.opcode = TAG_ADD, .recv_wr_id = 70, .sge = &sge, .num_sge = 1
		};

		tag_open(&s, "buffer");
		sge = buffer_sge(s.remote, 0, key ? 2000 : first ? 9 : 300);
		sge.lkey += key;
		if (matched)
			check_eq(s.w, tag_op_post(&s, &o), 0);
		else
			post_srq_recv(s.srq, 70, &sge, 1);
		send_eager(&s, 5, first ? 10 : 400);
		/* matched by a first packet that fits, and then too long */
		if (s.cq->n == 2)
			expect_match(&s, 0, 70, 5, CQE_TM_MATCH, 0);
		check_eq(s.w, s.cq->n, matched && !first && !key ? 2 : 1);
		expect(s.w, s.cq, s.cq->n - 1, .wr_id = 70,
		       .status = key ? CQE_LOC_PROT_ERR : CQE_LOC_LEN_ERR, .qpn = s.b->qp->qpn);
		check_eq(s.w, s.cq->log[s.cq->n - 1].opcode, matched ? CQE_TM_RECV : CQE_RECV);
		check_eq(s.w, qp_state(s.b->qp), QPS_ERR);
		check_eq(s.w, s.a->send->log[0].status, key ? CQE_REM_OP_ERR : CQE_REM_INV_REQ_ERR);
		/* the application saw no unexpected message */
		check_eq(s.w,
			 tag_op_post(&s, &(struct tag_op){ .opcode = TAG_SYNC,
							   .flags = TAG_OP_SIGNALED }),
			 0);
		check_eq(s.w, s.cq->log[s.cq->n - 1].flags, 0);
		tag_close(&s);
	}
}

/* The SRQ's CQ runs over, by operations or by messages: the SRQ has failed, and its QPs with it. */
static void error__cq_overrun(void **state)
{
	struct tag_op sync = { .opcode = TAG_SYNC, .flags = TAG_OP_SIGNALED };

	for (u32 by_messages = 0; by_messages < 2; by_messages++) {
		struct node *n;
		struct tag_scene s;

		tag_open(&s, "overrun");
		n = &s.w->node[1];
		s.cq->polled = false;
		s.cq->cq.capacity = 2;
		post_receives(&s, 0, 3);
		for (u32 i = 0; i < 3; i++) {
			check_eq(s.w, world_events(n, EVENT_SRQ_ERR, NULL), 0);
			if (by_messages)
				send_eager(&s, i, 10);
			else
				check_eq(s.w, tag_op_post(&s, &sync), 0);
		}
		check_eq(s.w, world_events(n, EVENT_SRQ_ERR, NULL), 1);
		check_eq(s.w, n->events[n->num_events - 1].srq == s.srq, 1);
		check_eq(s.w, world_events(n, EVENT_CQ_ERR, NULL), 1);
		check_eq(s.w, world_events(n, EVENT_QP_FATAL, s.b->qp), 1);
		check_eq(s.w, qp_state(s.b->qp), QPS_ERR);
		tag_close(&s);
	}
}

/* The same where no QP is on it: operations are all there is. */
static void error__cq_overrun_without_a_qp(void **state)
{
	struct tag_op sync = { .opcode = TAG_SYNC, .flags = TAG_OP_SIGNALED };
	struct world *w = world_create(1, 23);
	struct watched_cq *cq = world_cq(&w->node[0], 2);
	struct srq *srq = world_tag_srq(&w->node[0], 1, MAX_TAGS, MAX_OPS, cq);

	world_label(w, "test_tag overrun without a QP");
	cq->polled = false;
	for (u32 i = 0; i < 4; i++) {
		check_eq(w, tag_post(w->node[0].engine, srq, &sync, w->now_ns), 0);
		world_settle(w);
		check_eq(w, world_events(&w->node[0], EVENT_SRQ_ERR, NULL), i >= 2);
	}
	check_eq(w, w->node[0].num_events, 2);
	check_eq(w, world_events(&w->node[0], EVENT_CQ_ERR, NULL), 1);
	world_tag_srq_destroy(srq);
	world_destroy(w);
}

/* Only RC. */
static void transports__rc_only(void **state)
{
	static const enum xroce_transport others[] = { XROCE_UC, XROCE_UD };
	struct tag_scene s;

	tag_open(&s, "rc only");
	for (u32 i = 0; i < ARRAY_SIZE(others); i++) {
		struct qp_init init = { .transport = others[i],
					.send_cq = &s.cq->cq,
					.recv_cq = &s.cq->cq,
					.srq = s.srq,
					.pd = PAIR_PD };
		struct qp *qp;

		check_eq(s.w, (u64)qp_create(s.w->node[1].engine, &init, &qp), (u64)-EINVAL);
	}
	tag_close(&s);
}

/* ---- loss ---- */

/*
 * An eager message of two packets that matches, another that does not, and a rendezvous of two READ
 * responses.
 */
static void run_mask(struct tag_scene *s, u32 forward, u32 backward)
{
	struct pair_options o = tag_options();
	struct send list[3];
	u32 seen = 0;

	o.psn[0] = (0xfffffe + forward) & ROCE_PSN_MASK;
	o.timeout = 8;
	s->cq->n = 0;
	tag_connect(s, &o);
	memset(s->remote->bytes, 0, 2048);
	post_receives(s, 0, 1);
	list[0] = tag_message(s, 0, TMH_EAGER, 1, 300);
	list[1] = tag_message(s, 1024, TMH_EAGER, 2, 300);
	list[2] = tag_rendezvous(s, 2048, 3, 4096, PMTU + 7, 0);
	tag_add(s, 71, 1, UINT64_MAX, 0, 512, 0);
	tag_add(s, 73, 3, UINT64_MAX, 512, 512, 0);
	/* a second buffer for each: a message that is taken in twice would find it */
	tag_add(s, 81, 1, UINT64_MAX, 1024, 512, 0);
	tag_add(s, 83, 3, UINT64_MAX, 1536, 512, 0);
	s->w->node[0].to[1] = (struct faults){ .drop = forward };
	s->w->node[1].to[0] = (struct faults){ .drop = backward };
	post_sends(s->a, list, 3);
	world_run(s->w);
	check_eq(s->w, s->a->send->n, 3);
	check_eq(s->w, s->a->send->log[2].status, CQE_SUCCESS);
	check_eq(s->w, s->cq->n, 5);
	for (u32 i = 0; i < 5; i++) {
		const struct cqe *e = &s->cq->log[i];

		check_eq(s->w, e->status, CQE_SUCCESS);
		seen |= (e->wr_id == 71 ? 1u :
			 e->wr_id == 73 ? 4u :
			 e->wr_id == 0	? 16u :
					  0)
			<< (e->flags == CQE_TM_DATA_VALID);
	}
	check_eq(s->w, seen, 1 | 2 | 4 | 8 | 16);
	check(s->w, bytes_are(s->remote->bytes, 300, 1));
	check(s->w, bytes_are(s->remote->bytes + 512, PMTU + 7, 3));
	check(s->w, memcmp(s->remote->bytes + RECEIVES, s->local->bytes + 1024, 316) == 0);
	check_eq(s->w, s->a->recv->n, 1);
	expect_fin(s, 0, 3, 4096, PMTU + 7);
	pair_destroy(&s->p);
}

static void loss__every_mask(void **state)
{
	struct masks m = masks_of(7, 6);

	for (u32 forward = m.forward; forward < m.forward_end; forward++) {
		struct tag_scene s;

		tag_open(&s, "loss");
		s.w->keep_frames = false;
		pair_destroy(&s.p);
		for (u32 backward = m.backward; backward < m.backward_end; backward++) {
			if (!m.one && !masks_within_retries(forward, backward))
				continue;
			world_label(s.w, "XROCE_SIM_MASK=%x:%x test_tag", forward, backward);
			tag_list_free(s.srq->tags);
			assert_int_equal(tag_list_create(MAX_TAGS, MAX_OPS, &s.srq->tags), 0);
			run_mask(&s, forward, backward);
		}
		world_tag_srq_destroy(s.srq);
		world_destroy(s.w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(eager__one_packet),
		cmocka_unit_test(eager__several_packets),
		cmocka_unit_test(eager__into_a_list_of_elements),
		cmocka_unit_test(eager__carries_what_a_send_carries),
		cmocka_unit_test(match__order_and_mask),
		cmocka_unit_test(whole__what_is_not_matched),
		cmocka_unit_test(whole__a_rendezvous_request_that_is_too_long),
		cmocka_unit_test(write_imm__is_no_message_of_tags),
		cmocka_unit_test(unexpected__waits_for_a_receive),
		cmocka_unit_test(error__buffer),
		cmocka_unit_test(error__cq_overrun),
		cmocka_unit_test(error__cq_overrun_without_a_qp),
		cmocka_unit_test(transports__rc_only),
		cmocka_unit_test(loss__every_mask),
	};

	return cmocka_run_group_tests_name("tag", tests, NULL, NULL);
}
