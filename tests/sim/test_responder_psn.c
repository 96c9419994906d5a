/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * The RC responder and the PSN, under handmade packets: the expected PSN, PSNs ahead, duplicates,
 * and answers in order. Each case fails when its one check is taken out of the responder.
 */
#include "raw.h"

#include <setjmp.h>
#include <cmocka.h>

#define PMTU RAW_PMTU

/* ---- the expected one, and ahead of it ---- */

static void psn__expected_is_acked_with_msn(void **state)
{
	struct raw r = raw_create_small("psn__expected_is_acked_with_msn");

	for (u32 i = 0; i < 3; i++) {
		post_recv_buffer(&r.s, i, r.mem, 0, 64);
		check_eq(r.w, raw_send(&r, raw_request(RC(SEND_ONLY), RAW_PSN + i), NULL, 10), 0);
		expect_ack(&r, SYNDROME_ACK, RAW_PSN + i, i + 1);
		expect(r.w, r.s.recv, i, .wr_id = i, .opcode = CQE_RECV, .byte_len = 10,
		       .qpn = r.s.qp->qpn);
	}
	expect_silence(&r);
	raw_destroy(&r);
}

static void psn__no_ack_unless_asked(void **state)
{
	struct raw r = raw_create_small("psn__no_ack_unless_asked");
	struct packet p = raw_access(&r, RC(WRITE_ONLY), RAW_PSN, 0, 8);

	p.ackreq = false;
	check_eq(r.w, raw_send(&r, p, NULL, 8), 0);
	expect_silence(&r);
	/* One ACK covers all earlier ones. */
	check_eq(r.w, raw_send(&r, raw_access(&r, RC(WRITE_ONLY), RAW_PSN + 1, 0, 8), NULL, 8), 0);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN + 1, 2);
	expect_silence(&r);
	raw_destroy(&r);
}

static void psn__ahead_is_nakked_once(void **state)
{
	struct raw r = raw_create_small("psn__ahead_is_nakked_once");

	memset(r.mem->bytes, 0, 64);
	for (u32 i = 1; i < 4; i++) {
		check(r.w, raw_send(&r, raw_access(&r, RC(WRITE_ONLY), RAW_PSN + i, 0, 8), NULL,
				    8) == XROCE_DROP_psn_ahead);
		if (i == 1)
			expect_ack(&r, AETH_NAK | NAK_PSN_SEQUENCE, RAW_PSN, 0);
		expect_silence(&r);
	}
	check_eq(r.w, raw_load(&r, 0), 0);
	check_eq(r.w, r.s.node->stats.tx_sequence_naks, 1);
	/* The expected packet ends the silence; the next gap gets a new NAK. */
	check_eq(r.w, raw_send(&r, raw_access(&r, RC(WRITE_ONLY), RAW_PSN, 0, 8), NULL, 8), 0);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN, 1);
	check(r.w, raw_send(&r, raw_access(&r, RC(WRITE_ONLY), RAW_PSN + 2, 0, 8), NULL, 8) != 0);
	expect_ack(&r, AETH_NAK | NAK_PSN_SEQUENCE, RAW_PSN + 1, 1);
	check_eq(r.w, qp_state(r.s.qp), QPS_RTS);
	raw_destroy(&r);
}

static void psn__half_the_circle_decides(void **state)
{
	struct raw r = raw_create_small("psn__half_the_circle_decides");

	/* The farthest PSN still ahead, and the first duplicate. */
	raw_send(&r, raw_request(RC(SEND_ONLY), psn_add(RAW_PSN, (1 << 23) - 1)), NULL, 4);
	expect_ack(&r, AETH_NAK | NAK_PSN_SEQUENCE, RAW_PSN, 0);
	raw_send(&r, raw_request(RC(SEND_ONLY), psn_add(RAW_PSN, 1 << 23)), NULL, 4);
	expect_ack(&r, SYNDROME_ACK, psn_add(RAW_PSN, ROCE_PSN_MASK), 0);
	raw_destroy(&r);
}

/* ---- duplicates ---- */

static void duplicate_write__reacked_not_executed(void **state)
{
	struct raw r = raw_create_small("duplicate_write__reacked_not_executed");

	for (u32 i = 0; i < 3; i++) {
		check_eq(r.w,
			 raw_send(&r, raw_access(&r, RC(WRITE_ONLY), RAW_PSN + i, 0, 8), NULL, 8),
			 0);
		expect_ack(&r, SYNDROME_ACK, RAW_PSN + i, i + 1);
	}
	memset(r.mem->bytes, 0, 8);
	raw_send(&r, raw_access(&r, RC(WRITE_ONLY), RAW_PSN, 0, 8), NULL, 8);
	/* the last one completed, not the duplicate's */
	expect_ack(&r, SYNDROME_ACK, RAW_PSN + 2, 3);
	expect_silence(&r);
	check_eq(r.w, raw_load(&r, 0), 0);
	check_eq(r.w, r.s.node->stats.duplicate_requests, 1);
	raw_destroy(&r);
}

static void duplicate_send__takes_no_receive(void **state)
{
	struct raw r = raw_create_small("duplicate_send__takes_no_receive");

	post_recv_buffer(&r.s, 1, r.mem, 0, 64);
	post_recv_buffer(&r.s, 2, r.mem, 64, 64);
	raw_send(&r, raw_request(RC(SEND_ONLY), RAW_PSN), NULL, 10);
	raw_send(&r, raw_request(RC(SEND_ONLY), RAW_PSN), NULL, 10);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN, 1);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN, 1);
	expect_silence(&r);
	check_eq(r.w, r.s.recv->n, 1);
	check_eq(r.w, rq_posted(&r.s.qp->rq), 1);
	raw_destroy(&r);
}

/* A duplicate while the silence after a NAK lasts is answered all the same. */
static void duplicate__answered_after_nak(void **state)
{
	struct raw r = raw_create_small("duplicate__answered_after_nak");

	raw_send(&r, raw_access(&r, RC(WRITE_ONLY), RAW_PSN, 0, 8), NULL, 8);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN, 1);
	raw_send(&r, raw_access(&r, RC(WRITE_ONLY), RAW_PSN + 2, 0, 8), NULL, 8);
	expect_ack(&r, AETH_NAK | NAK_PSN_SEQUENCE, RAW_PSN + 1, 1);
	raw_send(&r, raw_access(&r, RC(WRITE_ONLY), RAW_PSN, 0, 8), NULL, 8);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN, 1);
	expect_silence(&r);
	raw_destroy(&r);
}

/* Duplicates of a message's packets in the middle of the next message leave that alone. */
static void duplicate__does_not_disturb_a_message(void **state)
{
	struct raw r = raw_create_small("duplicate__does_not_disturb_a_message");

	raw_send(&r, raw_access(&r, RC(WRITE_ONLY), RAW_PSN, 8192, 8), NULL, 8);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN, 1);
	memset(r.mem->bytes, 0, 2 * PMTU + 4);
	raw_send(&r, raw_access(&r, RC(WRITE_FIRST), RAW_PSN + 1, 0, 2 * PMTU), NULL, PMTU);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN + 1, 1);
	raw_send(&r, raw_access(&r, RC(WRITE_ONLY), RAW_PSN, 8192, 8), NULL, 8);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN + 1, 1);
	check_eq(r.w, raw_send(&r, raw_request(RC(WRITE_LAST), RAW_PSN + 2), NULL, PMTU), 0);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN + 2, 2);
	check(r.w, bytes_are(r.mem->bytes, PMTU, RAW_PSN + 1));
	check(r.w, bytes_are(r.mem->bytes + PMTU, PMTU, RAW_PSN + 2));
	raw_destroy(&r);
}

/* ---- READs and atomics: answered again, never made up ---- */

static void expect_read_response(struct raw *r, u8 opcode, u32 psn, u32 offset, u32 len)
{
	const struct packet *p = raw_answer(r);
	u8 bytes[PMTU];

	check(r->w, p != NULL);
	check_eq(r->w, p->opcode, opcode);
	check_eq(r->w, p->psn, psn);
	check_eq(r->w, p->payload_len, len);
	packet_copy_payload(p, 0, bytes, len);
	check(r->w, memcmp(bytes, r->mem->bytes + offset, len) == 0);
}

static void read__responses_and_msn(void **state)
{
	struct raw r = raw_create_small("read__responses_and_msn");

	check_eq(r.w,
		 raw_send(&r, raw_access(&r, RC(READ_REQUEST), RAW_PSN, 3, 2 * PMTU + 7), NULL, 0),
		 0);
	expect_read_response(&r, RC(READ_RESPONSE_FIRST), RAW_PSN, 3, PMTU);
	check_eq(r.w, r.w->sent[0].packet.syndrome, SYNDROME_ACK);
	check_eq(r.w, r.w->sent[0].packet.msn, 1);
	expect_read_response(&r, RC(READ_RESPONSE_MIDDLE), RAW_PSN + 1, 3 + PMTU, PMTU);
	expect_read_response(&r, RC(READ_RESPONSE_LAST), RAW_PSN + 2, 3 + 2 * PMTU, 7);
	expect_silence(&r);
	/* The request took three PSNs. */
	check_eq(r.w, raw_send(&r, raw_access(&r, RC(READ_REQUEST), RAW_PSN + 3, 0, 0), NULL, 0),
		 0);
	expect_read_response(&r, RC(READ_RESPONSE_ONLY), RAW_PSN + 3, 0, 0);
	expect_silence(&r);
	raw_destroy(&r);
}

/*
 * A READ that is resumed in its middle: its responses start with FIRST or ONLY and an AETH, as for
 * any other request.
 */
static void read__resumed_answer_is_a_whole_one(void **state)
{
	struct pair_options o = pair_defaults();
	struct raw r = raw_create(&o, "test_responder resumed read");
	struct packet p = raw_access(&r, RC(READ_REQUEST), RAW_PSN, 0, 4 * 1024);
	static const u8 whole[] = { RC(READ_RESPONSE_FIRST), RC(READ_RESPONSE_MIDDLE),
				    RC(READ_RESPONSE_MIDDLE), RC(READ_RESPONSE_LAST) };
	static const u8 part[] = { RC(READ_RESPONSE_FIRST), RC(READ_RESPONSE_LAST) };

	raw_send(&r, p, NULL, 0);
	for (u32 i = 0; i < ARRAY_SIZE(whole); i++)
		check_eq(r.w, raw_answer(&r)->opcode, whole[i]);
	p.psn += 1;
	p.va += 1024;
	p.dma_len = 2 * 1024;
	raw_send(&r, p, NULL, 0);
	for (u32 i = 0; i < ARRAY_SIZE(part); i++) {
		const struct packet *answer = raw_answer(&r);

		check(r.w, answer && answer->opcode == part[i] && answer->psn == p.psn + i &&
				   answer->payload_len == 1024);
	}
	p.psn += 2;
	p.va += 2 * 1024;
	p.dma_len = 1024;
	raw_send(&r, p, NULL, 0);
	check_eq(r.w, raw_answer(&r)->opcode, RC(READ_RESPONSE_ONLY));
	expect_silence(&r);
	raw_destroy(&r);
}

static void duplicate_read__executed_again(void **state)
{
	struct raw r = raw_create_small("duplicate_read__executed_again");

	raw_send(&r, raw_access(&r, RC(READ_REQUEST), RAW_PSN, 0, 3 * PMTU), NULL, 0);
	r.answers = r.w->num_sent;
	memset(r.mem->bytes, 0x77, 4 * PMTU); /* again means: as the memory is now */
	raw_send(&r, raw_access(&r, RC(READ_REQUEST), RAW_PSN, 0, 3 * PMTU), NULL, 0);
	expect_read_response(&r, RC(READ_RESPONSE_FIRST), RAW_PSN, 0, PMTU);
	expect_read_response(&r, RC(READ_RESPONSE_MIDDLE), RAW_PSN + 1, PMTU, PMTU);
	expect_read_response(&r, RC(READ_RESPONSE_LAST), RAW_PSN + 2, 2 * PMTU, PMTU);
	expect_silence(&r);
	/*
	 * From the middle, as a requester does that lost some: PSN and address have both moved on.
	 */
	raw_send(&r, raw_access(&r, RC(READ_REQUEST), RAW_PSN + 1, PMTU, 2 * PMTU), NULL, 0);
	for (u32 i = 1; i < 3; i++) {
		const struct packet *p = raw_answer(&r);

		check(r.w,
		      p && p->psn == RAW_PSN + i && p->flags & OP_READ && p->payload_len == PMTU);
		check_eq(r.w, p->flags & OP_END, i == 2 ? OP_END : 0);
	}
	expect_silence(&r);
	check_eq(r.w, r.s.qp->resp.seq.msn, 1);
	raw_destroy(&r);
}

/*
 * It must lie inside a stored request, or it is dropped: never a way to read what no READ asked
 * for.
 */
static void duplicate_read__outside_is_dropped(void **state)
{
	struct raw r = raw_create_small("duplicate_read__outside_is_dropped");
	const struct {
		u32 psn, offset, len;
	} bad[] = {
		{ RAW_PSN, 0, 3 * PMTU },		/* longer */
		{ RAW_PSN, 4096, 2 * PMTU },		/* elsewhere */
		{ RAW_PSN + 1, 0, PMTU },		/* PSN moved on, address not */
		{ RAW_PSN + 1, PMTU, PMTU + 1 },	/* past its end */
		{ RAW_PSN - 1, 0, PMTU },		/* before it */
	};

	raw_send(&r, raw_access(&r, RC(READ_REQUEST), RAW_PSN, 0, 2 * PMTU), NULL, 0);
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		r.answers = r.w->num_sent;
		check(r.w, raw_send(&r,
				    raw_access(&r, RC(READ_REQUEST), bad[i].psn, bad[i].offset,
					       bad[i].len),
				    NULL, 0) != 0);
		expect_silence(&r);
	}
	/* Another key for the same place is another request. */
	{
		struct packet p = raw_access(&r, RC(READ_REQUEST), RAW_PSN, 0, 2 * PMTU);

		p.rkey ^= 1;
		raw_send(&r, p, NULL, 0);
		expect_silence(&r);
	}
	check_eq(r.w, qp_state(r.s.qp), QPS_RTS);
	raw_destroy(&r);
}

static void duplicate_atomic__replayed_not_executed(void **state)
{
	struct raw r = raw_create_small("duplicate_atomic__replayed_not_executed");
	struct packet add = raw_access(&r, RC(FETCH_ADD), RAW_PSN, 64, 0),
		      swap = raw_access(&r, RC(CMP_SWAP), RAW_PSN + 1, 64, 0);

	raw_store(&r, 64, 100);
	add.swap_add = 5;
	swap.compare = 105;
	swap.swap_add = 7;
	for (u32 round = 0; round < 3; round++) {
		const struct packet *p;

		raw_send(&r, add, NULL, 0);
		p = raw_answer(&r);
		check(r.w, p && p->opcode == RC(ATOMIC_ACKNOWLEDGE) && p->psn == RAW_PSN);
		check_eq(r.w, p->original, 100);
		check_eq(r.w, p->syndrome, SYNDROME_ACK);
		check_eq(r.w, p->msn, 1);
		raw_send(&r, swap, NULL, 0);
		p = raw_answer(&r);
		check(r.w, p && p->opcode == RC(ATOMIC_ACKNOWLEDGE) && p->psn == RAW_PSN + 1);
		check_eq(r.w, p->original, 105);
		expect_silence(&r);
		check_eq(r.w, raw_load(&r, 64), 7);
	}
	raw_destroy(&r);
}

/* max_dest_rd_atomic is 2: the third back is forgotten, and not guessed. */
static void duplicate_atomic__forgotten_is_dropped(void **state)
{
	struct raw r = raw_create_small("duplicate_atomic__forgotten_is_dropped");

	raw_store(&r, 64, 0);
	for (u32 i = 0; i < 3; i++) {
		struct packet add = raw_access(&r, RC(FETCH_ADD), RAW_PSN + i, 64, 0);

		add.swap_add = 1;
		raw_send(&r, add, NULL, 0);
	}
	r.answers = r.w->num_sent;
	check(r.w, raw_send(&r, raw_access(&r, RC(FETCH_ADD), RAW_PSN, 64, 0), NULL, 0) ==
			   XROCE_DROP_psn_duplicate);
	expect_silence(&r);
	check_eq(r.w, raw_load(&r, 64), 3);
	raw_destroy(&r);
}

/* A duplicate has the same kind as the request that it repeats, or is dropped. */
static void duplicate__of_another_kind_is_dropped(void **state)
{
	struct raw r = raw_create_small("duplicate__of_another_kind_is_dropped");

	raw_store(&r, 64, 5);
	raw_send(&r, raw_access(&r, RC(READ_REQUEST), RAW_PSN, 64, 8), NULL, 0);
	raw_send(&r, raw_access(&r, RC(FETCH_ADD), RAW_PSN + 1, 64, 0), NULL, 0);
	r.answers = r.w->num_sent;
	check(r.w, raw_send(&r, raw_access(&r, RC(FETCH_ADD), RAW_PSN, 64, 0), NULL, 0) ==
			   XROCE_DROP_psn_duplicate);
	check(r.w, raw_send(&r, raw_access(&r, RC(READ_REQUEST), RAW_PSN + 1, 64, 0), NULL, 0) ==
			   XROCE_DROP_psn_duplicate);
	expect_silence(&r);
	check_eq(r.w, raw_load(&r, 64), 5);
	raw_destroy(&r);
}

/* What a shorter duplicate asks for, or nothing: never more bytes than its RETH says. */
static void duplicate_read__never_more_than_asked(void **state)
{
	const u32 lens[] = { 0, 10, PMTU, PMTU + 10 };

	for (u32 i = 0; i < ARRAY_SIZE(lens); i++) {
		struct raw r = raw_create_small("duplicate_read__never_more_than_asked");
		const struct packet *p;
		u32 bytes = 0;

		raw_send(&r, raw_access(&r, RC(READ_REQUEST), RAW_PSN, 0, 3 * PMTU), NULL, 0);
		r.answers = r.w->num_sent;
		raw_send(&r, raw_access(&r, RC(READ_REQUEST), RAW_PSN, 0, lens[i]), NULL, 0);
		while ((p = raw_answer(&r)))
			bytes += p->payload_len;
		check(r.w, bytes <= lens[i]);
		check_eq(r.w, qp_state(r.s.qp), QPS_RTS);
		raw_destroy(&r);
	}
}

/*
 * A READ that the network duplicates does not count as one more outstanding: the next request,
 * which its requester was free to send, must not be refused for it.
 */
static void duplicate_read__does_not_use_up_rd_atomic(void **state)
{
	struct raw r = raw_create_small("duplicate_read__does_not_use_up_rd_atomic");
	const struct packet *p, *last = NULL;

	for (u32 i = 0; i < 2; i++) {
		raw_send(&r, raw_access(&r, RC(READ_REQUEST), RAW_PSN + i, 8 * i, 8), NULL, 0);
		expect_read_response(&r, RC(READ_RESPONSE_ONLY), RAW_PSN + i, 8 * i, 8);
	}
	for (u32 i = 0; i < 3; i++) {
		raw_deliver(&r, raw_access(&r, RC(READ_REQUEST), RAW_PSN + i, 8 * i, 8), NULL, 0);
	}
	world_settle(r.w);
	check_eq(r.w, qp_state(r.s.qp), QPS_RTS);
	while ((p = raw_answer(&r)))
		last = p;
	check(r.w, last && last->opcode == RC(READ_RESPONSE_ONLY) && last->psn == RAW_PSN + 2);
	raw_destroy(&r);
}

/* A type 2 window of the whole memory, for READs by the QP. The caller removes it. */
static struct mr *read_window(struct raw *r)
{
	struct mr_table *t = engine_mr_table(r->s.node->engine);
	struct mr *mw;

	r->mem->mr->access |= MR_MW_BIND;
	assert_int_equal(mw_add(t, PAIR_PD, MR_WINDOW_2, &mw), 0);
	assert_int_equal(mw_bind(t, mw, mw->key + 1, r->mem->mr->key, buffer_va(r->mem),
				 r->mem->len, MR_REMOTE_READ, r->s.qp->qpn),
			 0);
	return mw;
}

/* READs of 8 bytes by the key, answered; then their late duplicates, not answered yet. */
static void read_twice(struct raw *r, u32 n, u32 rkey)
{
	for (u32 i = 0; i < 2 * n; i++) {
		struct packet read = raw_access(r, RC(READ_REQUEST), RAW_PSN + i % n, 8, 8);

		read.rkey = rkey;
		check_eq(r->w, raw_deliver(r, read, NULL, 0), 0);
		if (i >= n)
			continue;
		world_settle(r->w);
		expect_read_response(r, RC(READ_RESPONSE_ONLY), RAW_PSN + i, 8, 8);
	}
}

/*
 * A late duplicate is dropped if the READ's key has gone since: a requester that has the answer
 * may invalidate the key, and is not refused for it.
 */
static void duplicate_read__dropped_if_its_key_is_invalidated(void **state)
{
	for (u32 n = 1; n <= 2; n++) {
		struct raw r =
			raw_create_small("duplicate_read__dropped_if_its_key_is_invalidated");
		struct packet send = raw_request(RC(SEND_ONLY_INV), RAW_PSN + n);
		struct packet read = raw_access(&r, RC(READ_REQUEST), RAW_PSN, 8, 8);
		struct mr *mw = read_window(&r);

		send.inv_rkey = read.rkey = mw->key;
		post_recv_buffer(&r.s, 1, r.mem, 64, 64);
		read_twice(&r, n, mw->key);
		check_eq(r.w, raw_deliver(&r, send, NULL, 10), 0);
		world_settle(r.w);
		check_eq(r.w, qp_state(r.s.qp), QPS_RTS);
		expect_ack(&r, SYNDROME_ACK, RAW_PSN + n, n + 1);
		expect_silence(&r);
		expect(r.w, r.s.recv, 0, .wr_id = 1, .opcode = CQE_RECV, .byte_len = 10,
		       .flags = CQE_WITH_INV, .imm = send.inv_rkey, .qpn = r.s.qp->qpn);
		check_eq(r.w, r.s.node->drops.psn_duplicate, n);
		/* one that is still later */
		check_eq(r.w, raw_deliver(&r, read, NULL, 0), 0);
		world_settle(r.w);
		check_eq(r.w, qp_state(r.s.qp), QPS_RTS);
		expect_silence(&r);
		check_eq(r.w, r.s.node->drops.psn_duplicate, n + 1);
		mr_remove(engine_mr_table(r.s.node->engine), mw);
		raw_destroy(&r);
	}
}

/*
 * The same if its region is removed before the answer, also if no other request has come: the
 * requester repeats it if it lacks the answer, and is refused.
 */
static void duplicate_read__dropped_if_its_region_is_removed(void **state)
{
	struct raw r = raw_create_small("duplicate_read__dropped_if_its_region_is_removed");
	struct packet read = raw_access(&r, RC(READ_REQUEST), RAW_PSN, 8, 8);
	struct mr *mr;

	assert_int_equal(mr_add(engine_mr_table(r.s.node->engine), PAIR_PD, r.mem->bytes,
				r.mem->len, buffer_va(r.mem), PAIR_ACCESS_ALL, &mr),
			 0);
	read.rkey = mr->key;
	read_twice(&r, 1, mr->key);
	mr_remove(engine_mr_table(r.s.node->engine), mr);
	world_settle(r.w);
	expect_silence(&r);
	check_eq(r.w, qp_state(r.s.qp), QPS_RTS);
	check_eq(r.w, r.s.node->drops.psn_duplicate, 1);
	check_eq(r.w, raw_send(&r, read, NULL, 0), 0);
	expect_ack(&r, AETH_NAK | NAK_REMOTE_ACCESS, RAW_PSN, 1);
	expect_failed(&r, NAK_REMOTE_ACCESS);
	raw_destroy(&r);
}

/* The next pending answer, of a READ by another key, leaves in place of a dropped one. */
static void duplicate_read__dropped_before_another_answer(void **state)
{
	struct raw r = raw_create_small("duplicate_read__dropped_before_another_answer");
	struct mr *mr;

	assert_int_equal(mr_add(engine_mr_table(r.s.node->engine), PAIR_PD, r.mem->bytes,
				r.mem->len, buffer_va(r.mem), PAIR_ACCESS_ALL, &mr),
			 0);
	read_twice(&r, 1, mr->key);
	check_eq(r.w,
		 raw_deliver(&r, raw_access(&r, RC(READ_REQUEST), RAW_PSN + 1, 16, 8), NULL, 0),
		 0);
	mr_remove(engine_mr_table(r.s.node->engine), mr);
	world_settle(r.w);
	expect_read_response(&r, RC(READ_RESPONSE_ONLY), RAW_PSN + 1, 16, 8);
	expect_silence(&r);
	check_eq(r.w, qp_state(r.s.qp), QPS_RTS);
	check_eq(r.w, r.s.node->drops.psn_duplicate, 1);
	raw_destroy(&r);
}

/* ---- order ---- */

/*
 * A request that ends the connection does not cancel earlier answers: they leave, then the NAK.
 */
static void fatal_nak__after_the_answers_before_it(void **state)
{
	struct raw r = raw_create_small("fatal_nak__after_the_answers_before_it");
	struct packet bad = raw_access(&r, RC(WRITE_ONLY), RAW_PSN + 2, 0, 8);

	bad.rkey ^= 0x55;
	raw_deliver(&r, raw_access(&r, RC(READ_REQUEST), RAW_PSN, 0, 2 * PMTU), NULL, 0);
	raw_deliver(&r, bad, NULL, 8);
	world_settle(r.w);
	expect_read_response(&r, RC(READ_RESPONSE_FIRST), RAW_PSN, 0, PMTU);
	expect_read_response(&r, RC(READ_RESPONSE_LAST), RAW_PSN + 1, PMTU, PMTU);
	expect_ack(&r, AETH_NAK | NAK_REMOTE_ACCESS, RAW_PSN + 2, 1);
	expect_failed(&r, NAK_REMOTE_ACCESS);
	raw_destroy(&r);
}

/*
 * ACKs wait for the READ responses that come before them: PSNs leave in order, also where marks,
 * and notifications of them, have slowed the QP.
 */
static void answers_leave_in_psn_order(bool slow)
{
	const struct world_options wo = { .ecn = true, .line_rate = 1000000 };
	struct pair_options o = pair_defaults();
	u32 psn = RAW_PSN, last = RAW_PSN;
	struct raw r;

	o.pmtu = PMTU;
	o.max_dest_rd_atomic = 2;
	r = raw_create_with(&o, &wo, "answers_leave_in_psn_order");
	if (slow) {
		raw_send(&r, raw_access(&r, RC(READ_REQUEST), psn, 0, PMTU), NULL, 0);
		check_eq(r.w,
			 raw_send(&r, (struct packet){ .opcode = OPCODE_CNP, .becn = true }, NULL,
				  0),
			 0);
		world_forget_sent(r.w);
		psn = last = RAW_PSN + 1;
	}
	raw_deliver(&r, raw_access(&r, RC(READ_REQUEST), psn, 0, 4 * PMTU), NULL, 0);
	raw_deliver(&r, raw_access(&r, RC(WRITE_ONLY), psn + 4, 8192, 8), NULL, 8);
	raw_deliver(&r, raw_access(&r, RC(READ_REQUEST), psn + 5, 0, 2 * PMTU), NULL, 0);
	raw_deliver(&r, raw_access(&r, RC(WRITE_ONLY), psn + 7, 8192, 8), NULL, 8);
	world_settle(r.w);
	if (slow) /* some wait for their time */
		check(r.w, r.w->num_sent < 8);
	world_run(r.w);
	for (u32 i = 0; i < r.w->num_sent; i++) {
		check(r.w, psn_diff(r.w->sent[i].packet.psn, last) >= 0);
		last = r.w->sent[i].packet.psn;
	}
	check_eq(r.w, last, psn + 7);
	check_eq(r.w, world_count_sent(r.w, 1, OP5_READ_RESPONSE_MIDDLE), 2);
	raw_destroy(&r);
}

static void answers__leave_in_psn_order(void **state)
{
	answers_leave_in_psn_order(false);
}

static void answers__leave_in_psn_order_at_a_low_rate(void **state)
{
	answers_leave_in_psn_order(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(psn__expected_is_acked_with_msn),
		cmocka_unit_test(psn__no_ack_unless_asked),
		cmocka_unit_test(psn__ahead_is_nakked_once),
		cmocka_unit_test(psn__half_the_circle_decides),
		cmocka_unit_test(duplicate_write__reacked_not_executed),
		cmocka_unit_test(duplicate_send__takes_no_receive),
		cmocka_unit_test(duplicate__answered_after_nak),
		cmocka_unit_test(duplicate__does_not_disturb_a_message),
		cmocka_unit_test(read__responses_and_msn),
		cmocka_unit_test(read__resumed_answer_is_a_whole_one),
		cmocka_unit_test(duplicate_read__executed_again),
		cmocka_unit_test(duplicate_read__outside_is_dropped),
		cmocka_unit_test(duplicate_atomic__replayed_not_executed),
		cmocka_unit_test(duplicate_atomic__forgotten_is_dropped),
		cmocka_unit_test(duplicate__of_another_kind_is_dropped),
		cmocka_unit_test(duplicate_read__never_more_than_asked),
		cmocka_unit_test(duplicate_read__does_not_use_up_rd_atomic),
		cmocka_unit_test(duplicate_read__dropped_if_its_key_is_invalidated),
		cmocka_unit_test(duplicate_read__dropped_if_its_region_is_removed),
		cmocka_unit_test(duplicate_read__dropped_before_another_answer),
		cmocka_unit_test(fatal_nak__after_the_answers_before_it),
		cmocka_unit_test(answers__leave_in_psn_order),
		cmocka_unit_test(answers__leave_in_psn_order_at_a_low_rate),
	};

	return cmocka_run_group_tests_name("responder psn", tests, NULL, NULL);
}
