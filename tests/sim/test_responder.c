/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The RC responder under packets made by hand: sequence, order, duplicates, limits. Each case fails when its one check is taken out of
 * the responder.
 */
#include "raw.h"

#include <setjmp.h>
#include <cmocka.h>

#define PMTU 256

static struct raw make(const char *name)
{
	struct pair_options o = pair_defaults();

	o.pmtu = PMTU;
	o.max_dest_rd_atomic = 2;
	return raw_create(&o, name);
}

static struct packet request(u8 opcode, u32 psn)
{
	return (struct packet){ .opcode = opcode, .psn = psn, .ackreq = true };
}

static struct packet write_request(struct raw *r, u8 opcode, u32 psn, u32 offset, u32 len)
{
	struct packet p = request(opcode, psn);

	p.va = buffer_va(r->mem) + offset;
	p.rkey = r->mem->mr->key;
	p.dma_len = len;
	return p;
}

static struct packet atomic_request(struct raw *r, u8 opcode, u32 psn, u32 offset)
{
	struct packet p = request(opcode, psn);

	p.va = buffer_va(r->mem) + offset;
	p.rkey = r->mem->mr->key;
	return p;
}

static u64 load(struct raw *r, u32 offset)
{
	u64 value;

	memcpy(&value, r->mem->bytes + offset, 8);
	return value;
}

static void store(struct raw *r, u32 offset, u64 value)
{
	memcpy(r->mem->bytes + offset, &value, 8);
}

/* What a fatal NAK leaves behind: the QP in error, told to the application, and no word more. */
static void check_failed(struct raw *r, enum engine_event_type event)
{
	check_eq(r->w, qp_state(r->s.qp), QPS_ERR);
	check_eq(r->w, world_events(r->s.node, event, r->s.qp), 1);
	check_eq(r->w, world_events(r->s.node, EVENT_QP_STATE, r->s.qp), 1);
	check(r->w, raw_send(r, request(RC(SEND_ONLY), RAW_PSN), NULL, 4) == 1 + XROCE_DROP_qp_state);
	expect_silence(r);
}

/* ---- PSN ---- */

static void psn__expected_is_acked_with_msn(void **state)
{
	struct raw r = make("psn__expected_is_acked_with_msn");

	for (u32 i = 0; i < 3; i++) {
		post_recv_buffer(&r.s, i, r.mem, 0, 64);
		check_eq(r.w, raw_send(&r, request(RC(SEND_ONLY), RAW_PSN + i), NULL, 10), 0);
		expect_ack(&r, SYNDROME_ACK, RAW_PSN + i, i + 1);
		expect(r.w, r.s.recv, i, .wr_id = i, .opcode = CQE_RECV, .byte_len = 10, .qpn = r.s.qp->qpn);
	}
	expect_silence(&r);
	raw_destroy(&r);
}

static void psn__no_ack_unless_asked(void **state)
{
	struct raw r = make("psn__no_ack_unless_asked");
	struct packet p = write_request(&r, RC(WRITE_ONLY), RAW_PSN, 0, 8);

	p.ackreq = false;
	check_eq(r.w, raw_send(&r, p, NULL, 8), 0);
	expect_silence(&r);
	/* One ACK covers all earlier ones. */
	check_eq(r.w, raw_send(&r, write_request(&r, RC(WRITE_ONLY), RAW_PSN + 1, 0, 8), NULL, 8), 0);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN + 1, 2);
	expect_silence(&r);
	raw_destroy(&r);
}

static void psn__ahead_is_nakked_once(void **state)
{
	struct raw r = make("psn__ahead_is_nakked_once");

	memset(r.mem->bytes, 0, 64);
	for (u32 i = 1; i < 4; i++) {
		check(r.w, raw_send(&r, write_request(&r, RC(WRITE_ONLY), RAW_PSN + i, 0, 8), NULL, 8) == 1 + XROCE_DROP_psn_ahead);
		if (i == 1)
			expect_ack(&r, AETH_NAK | NAK_PSN_SEQUENCE, RAW_PSN, 0);
		expect_silence(&r);
	}
	check_eq(r.w, load(&r, 0), 0);
	check_eq(r.w, r.s.node->stats.tx_sequence_naks, 1);
	/* The expected one ends the silence; the next gap is NAKed anew. */
	check_eq(r.w, raw_send(&r, write_request(&r, RC(WRITE_ONLY), RAW_PSN, 0, 8), NULL, 8), 0);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN, 1);
	check(r.w, raw_send(&r, write_request(&r, RC(WRITE_ONLY), RAW_PSN + 2, 0, 8), NULL, 8) != 0);
	expect_ack(&r, AETH_NAK | NAK_PSN_SEQUENCE, RAW_PSN + 1, 1);
	check_eq(r.w, qp_state(r.s.qp), QPS_RTS);
	raw_destroy(&r);
}

static void psn__half_the_circle_decides(void **state)
{
	struct raw r = make("psn__half_the_circle_decides");

	/* The farthest that is still ahead, and the first that is behind. */
	raw_send(&r, request(RC(SEND_ONLY), psn_add(RAW_PSN, (1 << 23) - 1)), NULL, 4);
	expect_ack(&r, AETH_NAK | NAK_PSN_SEQUENCE, RAW_PSN, 0);
	raw_send(&r, request(RC(SEND_ONLY), psn_add(RAW_PSN, 1 << 23)), NULL, 4);
	expect_ack(&r, SYNDROME_ACK, psn_add(RAW_PSN, ROCE_PSN_MASK), 0);
	raw_destroy(&r);
}

/* ---- duplicates ---- */

static void duplicate_write__reacked_not_executed(void **state)
{
	struct raw r = make("duplicate_write__reacked_not_executed");

	for (u32 i = 0; i < 3; i++) {
		check_eq(r.w, raw_send(&r, write_request(&r, RC(WRITE_ONLY), RAW_PSN + i, 0, 8), NULL, 8), 0);
		expect_ack(&r, SYNDROME_ACK, RAW_PSN + i, i + 1);
	}
	memset(r.mem->bytes, 0, 8);
	raw_send(&r, write_request(&r, RC(WRITE_ONLY), RAW_PSN, 0, 8), NULL, 8);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN + 2, 3); /* the last one completed, not the duplicate's */
	expect_silence(&r);
	check_eq(r.w, load(&r, 0), 0);
	check_eq(r.w, r.s.node->stats.duplicate_requests, 1);
	raw_destroy(&r);
}

static void duplicate_send__takes_no_receive(void **state)
{
	struct raw r = make("duplicate_send__takes_no_receive");

	post_recv_buffer(&r.s, 1, r.mem, 0, 64);
	post_recv_buffer(&r.s, 2, r.mem, 64, 64);
	raw_send(&r, request(RC(SEND_ONLY), RAW_PSN), NULL, 10);
	raw_send(&r, request(RC(SEND_ONLY), RAW_PSN), NULL, 10);
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
	struct raw r = make("duplicate__answered_after_nak");

	raw_send(&r, write_request(&r, RC(WRITE_ONLY), RAW_PSN, 0, 8), NULL, 8);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN, 1);
	raw_send(&r, write_request(&r, RC(WRITE_ONLY), RAW_PSN + 2, 0, 8), NULL, 8);
	expect_ack(&r, AETH_NAK | NAK_PSN_SEQUENCE, RAW_PSN + 1, 1);
	raw_send(&r, write_request(&r, RC(WRITE_ONLY), RAW_PSN, 0, 8), NULL, 8);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN, 1);
	expect_silence(&r);
	raw_destroy(&r);
}

/* Duplicates of a message's packets in the middle of the next message leave that alone. */
static void duplicate__does_not_disturb_a_message(void **state)
{
	struct raw r = make("duplicate__does_not_disturb_a_message");

	raw_send(&r, write_request(&r, RC(WRITE_ONLY), RAW_PSN, 8192, 8), NULL, 8);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN, 1);
	memset(r.mem->bytes, 0, 2 * PMTU + 4);
	raw_send(&r, write_request(&r, RC(WRITE_FIRST), RAW_PSN + 1, 0, 2 * PMTU), NULL, PMTU);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN + 1, 1);
	raw_send(&r, write_request(&r, RC(WRITE_ONLY), RAW_PSN, 8192, 8), NULL, 8);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN + 1, 1);
	check_eq(r.w, raw_send(&r, request(RC(WRITE_LAST), RAW_PSN + 2), NULL, PMTU), 0);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN + 2, 2);
	check(r.w, bytes_are(r.mem->bytes, PMTU, RAW_PSN + 1));
	check(r.w, bytes_are(r.mem->bytes + PMTU, PMTU, RAW_PSN + 2));
	raw_destroy(&r);
}

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
	struct raw r = make("read__responses_and_msn");

	check_eq(r.w, raw_send(&r, write_request(&r, RC(READ_REQUEST), RAW_PSN, 3, 2 * PMTU + 7), NULL, 0), 0);
	expect_read_response(&r, RC(READ_RESPONSE_FIRST), RAW_PSN, 3, PMTU);
	check_eq(r.w, r.w->sent[0].packet.syndrome, SYNDROME_ACK);
	check_eq(r.w, r.w->sent[0].packet.msn, 1);
	expect_read_response(&r, RC(READ_RESPONSE_MIDDLE), RAW_PSN + 1, 3 + PMTU, PMTU);
	expect_read_response(&r, RC(READ_RESPONSE_LAST), RAW_PSN + 2, 3 + 2 * PMTU, 7);
	expect_silence(&r);
	/* The request took three PSNs. */
	check_eq(r.w, raw_send(&r, write_request(&r, RC(READ_REQUEST), RAW_PSN + 3, 0, 0), NULL, 0), 0);
	expect_read_response(&r, RC(READ_RESPONSE_ONLY), RAW_PSN + 3, 0, 0);
	expect_silence(&r);
	raw_destroy(&r);
}

static void duplicate_read__executed_again(void **state)
{
	struct raw r = make("duplicate_read__executed_again");

	raw_send(&r, write_request(&r, RC(READ_REQUEST), RAW_PSN, 0, 3 * PMTU), NULL, 0);
	r.answers = r.w->num_sent;
	memset(r.mem->bytes, 0x77, 4 * PMTU); /* again means: as the memory is now */
	raw_send(&r, write_request(&r, RC(READ_REQUEST), RAW_PSN, 0, 3 * PMTU), NULL, 0);
	expect_read_response(&r, RC(READ_RESPONSE_FIRST), RAW_PSN, 0, PMTU);
	expect_read_response(&r, RC(READ_RESPONSE_MIDDLE), RAW_PSN + 1, PMTU, PMTU);
	expect_read_response(&r, RC(READ_RESPONSE_LAST), RAW_PSN + 2, 2 * PMTU, PMTU);
	expect_silence(&r);
	/* From the middle, as a requester does that lost some: PSN and address have both moved on. */
	raw_send(&r, write_request(&r, RC(READ_REQUEST), RAW_PSN + 1, PMTU, 2 * PMTU), NULL, 0);
	for (u32 i = 1; i < 3; i++) {
		const struct packet *p = raw_answer(&r);

		check(r.w, p && p->psn == RAW_PSN + i && p->flags & OP_READ && p->payload_len == PMTU);
		check_eq(r.w, p->flags & OP_END, i == 2 ? OP_END : 0);
	}
	expect_silence(&r);
	check_eq(r.w, r.s.qp->resp.seq.msn, 1);
	raw_destroy(&r);
}

/* It must lie inside a stored request, or it is dropped: never a way to read what no READ asked for. */
static void duplicate_read__outside_is_dropped(void **state)
{
	struct raw r = make("duplicate_read__outside_is_dropped");
	const struct {
		u32 psn, offset, len;
	} bad[] = {
		{ RAW_PSN, 0, 3 * PMTU },		/* longer */
		{ RAW_PSN, 4096, 2 * PMTU },		/* elsewhere */
		{ RAW_PSN + 1, 0, PMTU },		/* PSN moved on, address not */
		{ RAW_PSN + 1, PMTU, PMTU + 1 },	/* past its end */
		{ RAW_PSN - 1, 0, PMTU },		/* before it */
	};

	raw_send(&r, write_request(&r, RC(READ_REQUEST), RAW_PSN, 0, 2 * PMTU), NULL, 0);
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		r.answers = r.w->num_sent;
		check(r.w, raw_send(&r, write_request(&r, RC(READ_REQUEST), bad[i].psn, bad[i].offset, bad[i].len), NULL, 0) != 0);
		expect_silence(&r);
	}
	/* Another key for the same place is another request. */
	{
		struct packet p = write_request(&r, RC(READ_REQUEST), RAW_PSN, 0, 2 * PMTU);

		p.rkey ^= 1;
		raw_send(&r, p, NULL, 0);
		expect_silence(&r);
	}
	check_eq(r.w, qp_state(r.s.qp), QPS_RTS);
	raw_destroy(&r);
}

static void duplicate_atomic__replayed_not_executed(void **state)
{
	struct raw r = make("duplicate_atomic__replayed_not_executed");
	struct packet add = atomic_request(&r, RC(FETCH_ADD), RAW_PSN, 64), swap = atomic_request(&r, RC(CMP_SWAP), RAW_PSN + 1, 64);

	store(&r, 64, 100);
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
		check_eq(r.w, load(&r, 64), 7);
	}
	raw_destroy(&r);
}

/* max_dest_rd_atomic is 2: the third back is forgotten, and not guessed. */
static void duplicate_atomic__forgotten_is_dropped(void **state)
{
	struct raw r = make("duplicate_atomic__forgotten_is_dropped");

	store(&r, 64, 0);
	for (u32 i = 0; i < 3; i++) {
		struct packet add = atomic_request(&r, RC(FETCH_ADD), RAW_PSN + i, 64);

		add.swap_add = 1;
		raw_send(&r, add, NULL, 0);
	}
	r.answers = r.w->num_sent;
	check(r.w, raw_send(&r, atomic_request(&r, RC(FETCH_ADD), RAW_PSN, 64), NULL, 0) == 1 + XROCE_DROP_psn_duplicate);
	expect_silence(&r);
	check_eq(r.w, load(&r, 64), 3);
	raw_destroy(&r);
}

/* A duplicate is of the same kind as what it repeats, or it is none. */
static void duplicate__of_another_kind_is_dropped(void **state)
{
	struct raw r = make("duplicate__of_another_kind_is_dropped");

	store(&r, 64, 5);
	raw_send(&r, write_request(&r, RC(READ_REQUEST), RAW_PSN, 64, 8), NULL, 0);
	raw_send(&r, atomic_request(&r, RC(FETCH_ADD), RAW_PSN + 1, 64), NULL, 0);
	r.answers = r.w->num_sent;
	check(r.w, raw_send(&r, atomic_request(&r, RC(FETCH_ADD), RAW_PSN, 64), NULL, 0) == 1 + XROCE_DROP_psn_duplicate);
	check(r.w, raw_send(&r, write_request(&r, RC(READ_REQUEST), RAW_PSN + 1, 64, 0), NULL, 0) == 1 + XROCE_DROP_psn_duplicate);
	expect_silence(&r);
	check_eq(r.w, load(&r, 64), 5);
	raw_destroy(&r);
}

/* What a shorter duplicate asks for, or nothing: never more bytes than its RETH says. */
static void duplicate_read__never_more_than_asked(void **state)
{
	const u32 lens[] = { 0, 10, PMTU, PMTU + 10 };

	for (u32 i = 0; i < ARRAY_SIZE(lens); i++) {
		struct raw r = make("duplicate_read__never_more_than_asked");
		const struct packet *p;
		u32 bytes = 0;

		raw_send(&r, write_request(&r, RC(READ_REQUEST), RAW_PSN, 0, 3 * PMTU), NULL, 0);
		r.answers = r.w->num_sent;
		raw_send(&r, write_request(&r, RC(READ_REQUEST), RAW_PSN, 0, lens[i]), NULL, 0);
		while ((p = raw_answer(&r)))
			bytes += p->payload_len;
		check(r.w, bytes <= lens[i]);
		check_eq(r.w, qp_state(r.s.qp), QPS_RTS);
		raw_destroy(&r);
	}
}

/*
 * A READ that the network delivered twice is not one more that is outstanding: the request behind it, which its requester was free to send, must not be
 * refused for it.
 */
static void duplicate_read__does_not_use_up_rd_atomic(void **state)
{
	struct raw r = make("duplicate_read__does_not_use_up_rd_atomic");
	const struct packet *p, *last = NULL;

	for (u32 i = 0; i < 2; i++) {
		raw_send(&r, write_request(&r, RC(READ_REQUEST), RAW_PSN + i, 8 * i, 8), NULL, 0);
		expect_read_response(&r, RC(READ_RESPONSE_ONLY), RAW_PSN + i, 8 * i, 8);
	}
	for (u32 i = 0; i < 3; i++) {
		raw_build(&r, write_request(&r, RC(READ_REQUEST), RAW_PSN + i, 8 * i, 8), NULL, 0);
		world_deliver(r.w, 1, r.frame, r.frame_len);
	}
	world_settle(r.w);
	check_eq(r.w, qp_state(r.s.qp), QPS_RTS);
	while ((p = raw_answer(&r)))
		last = p;
	check(r.w, last && last->opcode == RC(READ_RESPONSE_ONLY) && last->psn == RAW_PSN + 2);
	raw_destroy(&r);
}

/* A request that ends the connection does not take back the answers of those before it: they leave, then the NAK. */
static void fatal_nak__after_the_answers_before_it(void **state)
{
	struct raw r = make("fatal_nak__after_the_answers_before_it");
	struct packet bad = write_request(&r, RC(WRITE_ONLY), RAW_PSN + 2, 0, 8);

	bad.rkey ^= 0x55;
	raw_build(&r, write_request(&r, RC(READ_REQUEST), RAW_PSN, 0, 2 * PMTU), NULL, 0);
	world_deliver(r.w, 1, r.frame, r.frame_len);
	raw_build(&r, bad, NULL, 8);
	world_deliver(r.w, 1, r.frame, r.frame_len);
	world_settle(r.w);
	expect_read_response(&r, RC(READ_RESPONSE_FIRST), RAW_PSN, 0, PMTU);
	expect_read_response(&r, RC(READ_RESPONSE_LAST), RAW_PSN + 1, PMTU, PMTU);
	expect_ack(&r, AETH_NAK | NAK_REMOTE_ACCESS, RAW_PSN + 2, 1);
	check_failed(&r, EVENT_QP_ACCESS_ERR);
	raw_destroy(&r);
}

/* ---- order within a message ---- */

static void sequence__bad_orders_are_invalid(void **state)
{
	static const struct {
		u32 n;
		u8 opcode[2];
	} bad[] = {
		{ 1, { RC(SEND_MIDDLE) } },
		{ 1, { RC(SEND_LAST) } },
		{ 1, { RC(SEND_LAST_IMM) } },
		{ 1, { RC(WRITE_MIDDLE) } },
		{ 1, { RC(WRITE_LAST) } },
		{ 2, { RC(SEND_FIRST), RC(SEND_FIRST) } },
		{ 2, { RC(SEND_FIRST), RC(SEND_ONLY) } },
		{ 2, { RC(SEND_FIRST), RC(WRITE_MIDDLE) } },
		{ 2, { RC(SEND_FIRST), RC(WRITE_LAST) } },
		{ 2, { RC(SEND_FIRST), RC(WRITE_ONLY) } },
		{ 2, { RC(SEND_FIRST), RC(READ_REQUEST) } },
		{ 2, { RC(SEND_FIRST), RC(FETCH_ADD) } },
		{ 2, { RC(WRITE_FIRST), RC(SEND_MIDDLE) } },
		{ 2, { RC(WRITE_FIRST), RC(SEND_LAST) } },
		{ 2, { RC(WRITE_FIRST), RC(WRITE_FIRST) } },
		{ 2, { RC(WRITE_FIRST), RC(WRITE_ONLY_IMM) } },
		{ 2, { RC(WRITE_FIRST), RC(CMP_SWAP) } },
	};

	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		struct raw r = make("sequence__bad_orders_are_invalid");
		u32 n = bad[i].n;

		world_label(r.w, "test_responder sequence__bad_orders_are_invalid row %u", i);
		post_recv_buffer(&r.s, 1, r.mem, 0, 4096);
		post_recv_buffer(&r.s, 2, r.mem, 0, 4096);
		for (u32 k = 0; k < n; k++) {
			u32 flags = opcode_flags(bad[i].opcode[k]);
			u32 len = !(flags & OP_PAYLOAD) ? 0 : flags & OP_END ? 8 : PMTU;

			raw_send(&r, write_request(&r, bad[i].opcode[k], RAW_PSN + k, 4096, k ? len : 2 * PMTU), NULL, len);
			if (k + 1 < n)
				expect_ack(&r, SYNDROME_ACK, RAW_PSN, 0);
		}
		expect_ack(&r, AETH_NAK | NAK_INVALID_REQUEST, RAW_PSN + n - 1, 0);
		check_failed(&r, EVENT_QP_REQ_ERR);
		check_eq(r.w, r.s.recv->n, 2);
		expect(r.w, r.s.recv, 1, .wr_id = 2, .status = CQE_WR_FLUSH_ERR, .qpn = r.s.qp->qpn);
		raw_destroy(&r);
	}
}

static void length__must_fit_pmtu_and_opcode(void **state)
{
	static const struct {
		u8 opcode, second;
		bool two;
		u32 len, second_len, dma_len;
	} bad[] = {
		{ .opcode = RC(SEND_FIRST), .len = PMTU - 1 },
		{ .opcode = RC(SEND_FIRST), .len = PMTU + 4 },
		{ .opcode = RC(SEND_FIRST), .len = 0 },
		{ .opcode = RC(SEND_ONLY), .len = PMTU + 1 },
		{ .opcode = RC(SEND_FIRST), .len = PMTU, .two = true, .second = RC(SEND_MIDDLE), .second_len = PMTU - 4 },
		{ .opcode = RC(SEND_FIRST), .len = PMTU, .two = true, .second = RC(SEND_LAST), .second_len = 0 },
		{ .opcode = RC(SEND_FIRST), .len = PMTU, .two = true, .second = RC(SEND_LAST), .second_len = PMTU + 1 },
		{ .opcode = RC(WRITE_ONLY), .len = 8, .dma_len = 9 },
		{ .opcode = RC(WRITE_ONLY), .len = 8, .dma_len = 7 },
		{ .opcode = RC(WRITE_ONLY), .len = PMTU + 4, .dma_len = PMTU + 4 },
		{ .opcode = RC(WRITE_FIRST), .len = PMTU - 4, .dma_len = 2 * PMTU },
		{ .opcode = RC(WRITE_FIRST), .len = PMTU, .dma_len = PMTU },	 /* nothing left for a LAST */
		{ .opcode = RC(WRITE_FIRST), .len = PMTU, .dma_len = PMTU + 9, .two = true, .second = RC(WRITE_LAST), .second_len = 8 },
		{ .opcode = RC(WRITE_FIRST), .len = PMTU, .dma_len = PMTU + 9, .two = true, .second = RC(WRITE_LAST), .second_len = 10 },
		{ .opcode = RC(WRITE_FIRST), .len = PMTU, .dma_len = PMTU + 9, .two = true, .second = RC(WRITE_MIDDLE), .second_len = PMTU },
		{ .opcode = RC(READ_REQUEST), .dma_len = ROCE_MESSAGE_MAX + 1 },
		{ .opcode = RC(WRITE_FIRST), .len = PMTU, .dma_len = ROCE_MESSAGE_MAX + 1 },
	};

	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		struct raw r = make("length__must_fit_pmtu_and_opcode");
		const struct packet *last = NULL, *p;

		world_label(r.w, "test_responder length__must_fit_pmtu_and_opcode row %u", i);
		post_recv_buffer(&r.s, 1, r.mem, 0, 4096);
		raw_send(&r, write_request(&r, bad[i].opcode, RAW_PSN, 4096, bad[i].dma_len), NULL, bad[i].len);
		if (bad[i].two) {
			check_eq(r.w, qp_state(r.s.qp), QPS_RTS);
			raw_send(&r, write_request(&r, bad[i].second, RAW_PSN + 1, 4096, 0), NULL, bad[i].second_len);
		}
		while ((p = raw_answer(&r)))
			last = p;
		check(r.w, last && last->opcode == RC(ACKNOWLEDGE) && last->psn == (bad[i].two ? RAW_PSN + 1u : RAW_PSN));
		check_eq(r.w, last->syndrome, AETH_NAK | NAK_INVALID_REQUEST);
		check_failed(&r, EVENT_QP_REQ_ERR);
		raw_destroy(&r);
	}
}

/* A message of another QP's transport never reaches the responder. */
static void opcode__of_another_transport(void **state)
{
	struct raw r = make("opcode__of_another_transport");

	check(r.w, raw_send(&r, request(UC(SEND_ONLY), RAW_PSN), NULL, 4) == 1 + XROCE_DROP_qp_transport);
	check(r.w, raw_send(&r, (struct packet){ .opcode = UD(SEND_ONLY), .psn = RAW_PSN, .qkey = PAIR_QKEY }, NULL, 4) ==
			   1 + XROCE_DROP_qp_transport);
	check(r.w, raw_send(&r, request(OPCODE(XROCE_XRC, OP5_SEND_ONLY), RAW_PSN), NULL, 4) == 1 + XROCE_DROP_qp_transport);
	expect_silence(&r);
	check_eq(r.w, qp_state(r.s.qp), QPS_RTS);
	raw_destroy(&r);
}

/* What FLUSH and ATOMIC WRITE are answered with: an empty READ response; replayed, never executed again. */
static void atomic_write__placed_once(void **state)
{
	struct raw r = make("atomic_write__placed_once");
	const struct packet *p;
	u64 value = 0x1122334455667788, got;

	check_eq(r.w, raw_send(&r, write_request(&r, RC(ATOMIC_WRITE), RAW_PSN, 16, 8), &value, 8), 0);
	p = raw_answer(&r);
	check(r.w, p && p->opcode == RC(READ_RESPONSE_ONLY) && p->psn == RAW_PSN && p->payload_len == 0 && p->msn == 1);
	memcpy(&got, r.mem->bytes + 16, 8);
	check_eq(r.w, got, value);
	store(&r, 16, 5);
	check_eq(r.w, raw_send(&r, write_request(&r, RC(ATOMIC_WRITE), RAW_PSN, 16, 8), &value, 8), 0);
	p = raw_answer(&r);
	check(r.w, p && p->opcode == RC(READ_RESPONSE_ONLY) && p->psn == RAW_PSN);
	memcpy(&got, r.mem->bytes + 16, 8);
	check_eq(r.w, got, 5);
	raw_send(&r, write_request(&r, RC(ATOMIC_WRITE), RAW_PSN + 1, 17, 8), &value, 8);
	expect_ack(&r, AETH_NAK | NAK_INVALID_REQUEST, RAW_PSN + 1, 1);
	check_failed(&r, EVENT_QP_REQ_ERR);
	raw_destroy(&r);
}

static void atomic__must_be_aligned(void **state)
{
	struct raw r = make("atomic__must_be_aligned");

	store(&r, 64, 1);
	raw_send(&r, atomic_request(&r, RC(FETCH_ADD), RAW_PSN, 65), NULL, 0);
	expect_ack(&r, AETH_NAK | NAK_INVALID_REQUEST, RAW_PSN, 0);
	check_failed(&r, EVENT_QP_REQ_ERR);
	raw_destroy(&r);
}

/* In a region whose addresses on the wire are not those in memory the word must be aligned in both. */
static void atomic__must_be_aligned_by_both_addresses(void **state)
{
	for (u32 i = 0; i < 3; i++) {
		struct raw r = make("atomic__must_be_aligned_by_both_addresses");
		struct mr_table *t = engine_mr_table(r.w->node[1].engine);
		struct packet p = request(RC(FETCH_ADD), RAW_PSN);
		/* a region from 0x1000 on the wire: the first word is aligned both ways, in memory only, on the wire only */
		const u64 iova = i == 1 ? 0x1001 : 0x1000;
		struct mr *mr;

		assert_int_equal(mr_add(t, PAIR_PD, r.mem->bytes + (i == 2), 64, iova, PAIR_ACCESS_ALL, &mr), 0);
		p.va = iova;
		p.rkey = mr->key;
		p.swap_add = 1;
		memset(r.mem->bytes, 0, 64);
		raw_send(&r, p, NULL, 0);
		check_eq(r.w, r.mem->bytes[i == 2], i == 0);
		if (i) {
			expect_ack(&r, AETH_NAK | NAK_INVALID_REQUEST, RAW_PSN, 0);
			check_failed(&r, EVENT_QP_REQ_ERR);
		}
		mr_remove(t, mr);
		raw_destroy(&r);
	}
}

/* More READs and atomics at once than max_dest_rd_atomic (2): the answers to the first two are held back by not asking for output. */
static void rd_atomic__excess_is_invalid(void **state)
{
	struct raw r = make("rd_atomic__excess_is_invalid");
	const struct packet *p, *last = NULL;
	u32 reads = 0;

	for (u32 i = 0; i < 3; i++) {
		raw_build(&r, write_request(&r, RC(READ_REQUEST), RAW_PSN + i, 0, 8), NULL, 0);
		world_deliver(r.w, 1, r.frame, r.frame_len);
	}
	world_settle(r.w);
	while ((p = raw_answer(&r))) {
		reads += p->flags & OP_READ ? 1 : 0;
		last = p;
	}
	check(r.w, reads <= 2);
	check(r.w, last && last->opcode == RC(ACKNOWLEDGE));
	check_eq(r.w, last->syndrome, AETH_NAK | NAK_INVALID_REQUEST);
	check_eq(r.w, last->psn, RAW_PSN + 2);
	check_failed(&r, EVENT_QP_REQ_ERR);
	raw_destroy(&r);
}

static void rd_atomic__zero_refuses_all(void **state)
{
	struct pair_options o = pair_defaults();
	struct raw r;

	o.max_dest_rd_atomic = 0;
	r = raw_create(&o, "rd_atomic__zero_refuses_all");
	raw_send(&r, write_request(&r, RC(READ_REQUEST), RAW_PSN, 0, 8), NULL, 0);
	expect_ack(&r, AETH_NAK | NAK_INVALID_REQUEST, RAW_PSN, 0);
	check_failed(&r, EVENT_QP_REQ_ERR);
	raw_destroy(&r);
}

/* ACKs wait for the READ responses that come before them: PSNs leave in order. */
static void answers_leave_in_psn_order(u32 cnps)
{
	struct raw r = make("answers_leave_in_psn_order");
	u32 psn = RAW_PSN, last = RAW_PSN;

	for (u32 i = 0; i < cnps; i++)
		check_eq(r.w, raw_send(&r, (struct packet){ .opcode = OPCODE_CNP, .becn = true }, NULL, 0), 0);
	raw_build(&r, write_request(&r, RC(READ_REQUEST), psn, 0, 4 * PMTU), NULL, 0);
	world_deliver(r.w, 1, r.frame, r.frame_len);
	raw_build(&r, write_request(&r, RC(WRITE_ONLY), psn + 4, 8192, 8), NULL, 8);
	world_deliver(r.w, 1, r.frame, r.frame_len);
	raw_build(&r, write_request(&r, RC(READ_REQUEST), psn + 5, 0, 2 * PMTU), NULL, 0);
	world_deliver(r.w, 1, r.frame, r.frame_len);
	raw_build(&r, write_request(&r, RC(WRITE_ONLY), psn + 7, 8192, 8), NULL, 8);
	world_deliver(r.w, 1, r.frame, r.frame_len);
	world_settle(r.w);
	if (cnps) /* some wait for their time */
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
	answers_leave_in_psn_order(0);
}

static void answers__leave_in_psn_order_at_a_low_rate(void **state)
{
	answers_leave_in_psn_order(40);
}

/* ---- the receive queue ---- */

static void rnr__psn_does_not_move(void **state)
{
	struct raw r = make("rnr__psn_does_not_move");
	struct packet imm = write_request(&r, RC(WRITE_ONLY_IMM), RAW_PSN, 0, 8);

	raw_send(&r, request(RC(SEND_ONLY), RAW_PSN), NULL, 8);
	expect_ack(&r, AETH_RNR_NAK | 12, RAW_PSN, 0);
	raw_send(&r, imm, NULL, 8);
	expect_ack(&r, AETH_RNR_NAK | 12, RAW_PSN, 0);
	check_eq(r.w, r.s.node->stats.tx_rnr_naks, 2);
	post_recv_buffer(&r.s, 5, r.mem, 0, 64);
	check_eq(r.w, raw_send(&r, imm, NULL, 8), 0);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN, 1);
	expect(r.w, r.s.recv, 0, .wr_id = 5, .opcode = CQE_RECV_WITH_IMM, .byte_len = 8, .flags = CQE_WITH_IMM, .qpn = r.s.qp->qpn);
	raw_destroy(&r);
}

/* What follows a packet that met no receive is not lost: it is resent, and needs no NAK to say so. */
static void rnr__followers_are_silent(void **state)
{
	struct raw r = make("rnr__followers_are_silent");

	raw_send(&r, request(RC(SEND_ONLY), RAW_PSN), NULL, 8);
	expect_ack(&r, AETH_RNR_NAK | 12, RAW_PSN, 0);
	check(r.w, raw_send(&r, request(RC(SEND_ONLY), RAW_PSN + 1), NULL, 8) == 1 + XROCE_DROP_psn_ahead);
	expect_silence(&r);
	raw_destroy(&r);
}

/* COMM_EST: the first packet in RTR, once; in RTS nobody needs it. */
static void comm_est__once_in_rtr(void **state)
{
	struct world *w = world_create_with(2, 5, &(struct world_options){ .disable = { 0, ENGINE_NO_CREDITS } });
	struct pair_options o = pair_defaults();
	struct raw r = { .w = w, .path = world_path(w, 0, 1, false) };
	u8 frame[PACKET_FRAME_MAX];

	world_label(w, "test_responder comm_est__once_in_rtr");
	w->node[1].to[0].dead = true;
	r.frame = frame;
	r.s = side_create(&w->node[1], &o, NULL);
	side_init(&r.s, &o);
	side_rtr(&r.s, &o, 0, RAW_PEER_QPN, RAW_PSN);
	r.mem = world_buffer(&w->node[1], 4096, PAIR_ACCESS_ALL);
	check_eq(w, raw_send(&r, write_request(&r, RC(WRITE_ONLY), RAW_PSN, 0, 8), NULL, 8), 0);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN, 1);
	check_eq(w, world_events(r.s.node, EVENT_COMM_EST, r.s.qp), 1);
	raw_send(&r, write_request(&r, RC(WRITE_ONLY), RAW_PSN + 1, 0, 8), NULL, 8);
	check_eq(w, world_events(r.s.node, EVENT_COMM_EST, r.s.qp), 1);
	side_destroy(&r.s);
	world_destroy(w);
}

/* A READ that is asked for again from its middle: its responses start with FIRST or ONLY and an AETH, as for any other request. */
static void read__resumed_answer_is_a_whole_one(void **state)
{
	struct pair_options o = pair_defaults();
	struct raw r = raw_create(&o, "test_responder resumed read");
	struct packet p = { .opcode = RC(READ_REQUEST), .psn = RAW_PSN, .va = buffer_va(r.mem), .rkey = r.mem->mr->key, .dma_len = 4 * 1024 };
	static const u8 whole[] = { RC(READ_RESPONSE_FIRST), RC(READ_RESPONSE_MIDDLE), RC(READ_RESPONSE_MIDDLE), RC(READ_RESPONSE_LAST) };
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

		check(r.w, answer && answer->opcode == part[i] && answer->psn == p.psn + i && answer->payload_len == 1024);
	}
	p.psn += 2;
	p.va += 2 * 1024;
	p.dma_len = 1024;
	raw_send(&r, p, NULL, 0);
	check_eq(r.w, raw_answer(&r)->opcode, RC(READ_RESPONSE_ONLY));
	expect_silence(&r);
	raw_destroy(&r);
}

/* NAK codes that do not exist end nothing. */
static void nak__unknown_codes_are_dropped(void **state)
{
	struct pair_options o = pair_defaults();
	struct raw r = raw_create(&o, "test_responder unknown nak");

	post_send(&r.s, &(struct send){ .wr_id = 1, .opcode = WR_WRITE, .flags = WR_SIGNALED, .num_sge = 1, .sge = { buffer_sge(r.mem, 0, 8) } });
	world_settle(r.w);
	for (u32 code = 4; code < 32; code++)
		check_eq(r.w, raw_send(&r, (struct packet){ .opcode = RC(ACKNOWLEDGE), .psn = RAW_SQ_PSN, .syndrome = (u8)(AETH_NAK | code) }, NULL, 0),
			 1 + XROCE_DROP_unexpected_response);
	check_eq(r.w, qp_state(r.s.qp), QPS_RTS);
	check_eq(r.w, r.s.send->n, 0);
	raw_destroy(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read__resumed_answer_is_a_whole_one),
		cmocka_unit_test(nak__unknown_codes_are_dropped),
		cmocka_unit_test(psn__expected_is_acked_with_msn),
		cmocka_unit_test(psn__no_ack_unless_asked),
		cmocka_unit_test(psn__ahead_is_nakked_once),
		cmocka_unit_test(psn__half_the_circle_decides),
		cmocka_unit_test(duplicate_write__reacked_not_executed),
		cmocka_unit_test(duplicate_send__takes_no_receive),
		cmocka_unit_test(duplicate__answered_after_nak),
		cmocka_unit_test(duplicate__does_not_disturb_a_message),
		cmocka_unit_test(read__responses_and_msn),
		cmocka_unit_test(duplicate_read__executed_again),
		cmocka_unit_test(duplicate_read__outside_is_dropped),
		cmocka_unit_test(duplicate_atomic__replayed_not_executed),
		cmocka_unit_test(duplicate_atomic__forgotten_is_dropped),
		cmocka_unit_test(duplicate__of_another_kind_is_dropped),
		cmocka_unit_test(duplicate_read__never_more_than_asked),
		cmocka_unit_test(duplicate_read__does_not_use_up_rd_atomic),
		cmocka_unit_test(fatal_nak__after_the_answers_before_it),
		cmocka_unit_test(sequence__bad_orders_are_invalid),
		cmocka_unit_test(length__must_fit_pmtu_and_opcode),
		cmocka_unit_test(opcode__of_another_transport),
		cmocka_unit_test(atomic_write__placed_once),
		cmocka_unit_test(atomic__must_be_aligned),
		cmocka_unit_test(atomic__must_be_aligned_by_both_addresses),
		cmocka_unit_test(rd_atomic__excess_is_invalid),
		cmocka_unit_test(rd_atomic__zero_refuses_all),
		cmocka_unit_test(answers__leave_in_psn_order),
		cmocka_unit_test(answers__leave_in_psn_order_at_a_low_rate),
		cmocka_unit_test(rnr__psn_does_not_move),
		cmocka_unit_test(rnr__followers_are_silent),
		cmocka_unit_test(comm_est__once_in_rtr),
	};

	return cmocka_run_group_tests_name("responder", tests, NULL, NULL);
}
