/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * The RC responder under handmade packets: the requirements for a request, alone and within its
 * message, and the treatment of invalid ones. Each case fails when its one check is taken out of
 * the responder.
 */
#include "raw.h"

#include <setjmp.h>
#include <cmocka.h>

#define PMTU RAW_PMTU

/* ---- what a request must be ---- */

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
		struct raw r = raw_create_small("sequence__bad_orders_are_invalid");
		u32 n = bad[i].n;

		world_label(r.w, "test_responder sequence__bad_orders_are_invalid row %u", i);
		post_recv_buffer(&r.s, 1, r.mem, 0, 4096);
		post_recv_buffer(&r.s, 2, r.mem, 0, 4096);
		for (u32 k = 0; k < n; k++) {
			u32 flags = opcode_flags(bad[i].opcode[k]);
			u32 len = !(flags & OP_PAYLOAD) ? 0 : flags & OP_END ? 8 : PMTU;

			raw_send(&r,
				 raw_access(&r, bad[i].opcode[k], RAW_PSN + k, 4096,
					    k ? len : 2 * PMTU),
				 NULL, len);
			if (k + 1 < n)
				expect_ack(&r, SYNDROME_ACK, RAW_PSN, 0);
		}
		expect_ack(&r, AETH_NAK | NAK_INVALID_REQUEST, RAW_PSN + n - 1, 0);
		expect_failed(&r, NAK_INVALID_REQUEST);
		check_eq(r.w, r.s.recv->n, 2);
		expect(r.w, r.s.recv, 1, .wr_id = 2, .status = CQE_WR_FLUSH_ERR,
		       .qpn = r.s.qp->qpn);
		raw_destroy(&r);
	}
}

static const u8 reserved[] = { 0x15, 0x18, 0x19, 0x1a, 0x1b, 0x1e, 0x1f };

/* With any payload, at the beginning of a message or inside one. */
static void reserved__opcodes_are_invalid(void **state)
{
	static const u32 lengths[] = { 0, 3, 28, PMTU, ROCE_PMTU_MAX };

	for (u32 i = 0; i < ARRAY_SIZE(reserved) * ARRAY_SIZE(lengths) * 2; i++) {
		const u32 len = lengths[i / 2 % ARRAY_SIZE(lengths)], before = i % 2;
		const u8 opcode = reserved[i / 2 / ARRAY_SIZE(lengths)];
		struct raw r = raw_create_small("reserved__opcodes_are_invalid");

		world_label(r.w, "test_responder reserved %02x, %u bytes, %u before", opcode, len,
			    before);
		post_recv_buffer(&r.s, 1, r.mem, 0, 4096);
		if (before) {
			raw_send(&r, raw_request(RC(SEND_FIRST), RAW_PSN), NULL, PMTU);
			expect_ack(&r, SYNDROME_ACK, RAW_PSN, 0);
		}
		check_eq(r.w, raw_send(&r, raw_request(opcode, RAW_PSN + before), NULL, len),
			 XROCE_DROP_none);
		expect_ack(&r, AETH_NAK | NAK_INVALID_REQUEST, RAW_PSN + before, 0);
		expect_failed(&r, NAK_INVALID_REQUEST);
		check_eq(r.w, r.s.recv->n, 1);
		expect(r.w, r.s.recv, 0, .wr_id = 1,
		       .status = before ? CQE_REM_INV_REQ_ERR : CQE_WR_FLUSH_ERR,
		       .qpn = r.s.qp->qpn);
		raw_destroy(&r);
	}
}

/* The PSN comes first: ahead of a gap it draws the gap's NAK, and repeated nothing. */
static void reserved__opcodes_out_of_turn(void **state)
{
	for (u32 i = 0; i < ARRAY_SIZE(reserved); i++) {
		struct raw r = raw_create_small("reserved__opcodes_out_of_turn");

		world_label(r.w, "test_responder reserved %02x out of turn", reserved[i]);
		check_eq(r.w, raw_send(&r, raw_request(reserved[i], RAW_PSN + 1), NULL, 8),
			 XROCE_DROP_psn_ahead);
		expect_ack(&r, AETH_NAK | NAK_PSN_SEQUENCE, RAW_PSN, 0);
		raw_send(&r, raw_access(&r, RC(WRITE_ONLY), RAW_PSN, 0, 8), NULL, 8);
		expect_ack(&r, SYNDROME_ACK, RAW_PSN, 1);
		check_eq(r.w, raw_send(&r, raw_request(reserved[i], RAW_PSN), NULL, 8),
			 XROCE_DROP_psn_duplicate);
		expect_silence(&r);
		check_eq(r.w, qp_state(r.s.qp), QPS_RTS);
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
		{ .opcode = RC(SEND_FIRST),
		  .len = PMTU,
		  .two = true,
		  .second = RC(SEND_MIDDLE),
		  .second_len = PMTU - 4 },
		{ .opcode = RC(SEND_FIRST),
		  .len = PMTU,
		  .two = true,
		  .second = RC(SEND_LAST),
		  .second_len = 0 },
		{ .opcode = RC(SEND_FIRST),
		  .len = PMTU,
		  .two = true,
		  .second = RC(SEND_LAST),
		  .second_len = PMTU + 1 },
		{ .opcode = RC(WRITE_ONLY), .len = 8, .dma_len = 9 },
		{ .opcode = RC(WRITE_ONLY), .len = 8, .dma_len = 7 },
		{ .opcode = RC(WRITE_ONLY), .len = PMTU + 4, .dma_len = PMTU + 4 },
		{ .opcode = RC(WRITE_FIRST), .len = PMTU - 4, .dma_len = 2 * PMTU },
		/* nothing left for a LAST */
		{ .opcode = RC(WRITE_FIRST), .len = PMTU, .dma_len = PMTU },
		{ .opcode = RC(WRITE_FIRST),
		  .len = PMTU,
		  .dma_len = PMTU + 9,
		  .two = true,
		  .second = RC(WRITE_LAST),
		  .second_len = 8 },
		{ .opcode = RC(WRITE_FIRST),
		  .len = PMTU,
		  .dma_len = PMTU + 9,
		  .two = true,
		  .second = RC(WRITE_LAST),
		  .second_len = 10 },
		{ .opcode = RC(WRITE_FIRST),
		  .len = PMTU,
		  .dma_len = PMTU + 9,
		  .two = true,
		  .second = RC(WRITE_MIDDLE),
		  .second_len = PMTU },
		{ .opcode = RC(READ_REQUEST), .dma_len = ROCE_MESSAGE_MAX + 1 },
		{ .opcode = RC(WRITE_FIRST), .len = PMTU, .dma_len = ROCE_MESSAGE_MAX + 1 },
	};

	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		struct raw r = raw_create_small("length__must_fit_pmtu_and_opcode");
		const struct packet *last = NULL, *p;

		world_label(r.w, "test_responder length__must_fit_pmtu_and_opcode row %u", i);
		post_recv_buffer(&r.s, 1, r.mem, 0, 4096);
		raw_send(&r, raw_access(&r, bad[i].opcode, RAW_PSN, 4096, bad[i].dma_len), NULL,
			 bad[i].len);
		if (bad[i].two) {
			check_eq(r.w, qp_state(r.s.qp), QPS_RTS);
			raw_send(&r, raw_access(&r, bad[i].second, RAW_PSN + 1, 4096, 0), NULL,
				 bad[i].second_len);
		}
		while ((p = raw_answer(&r)))
			last = p;
		check(r.w, last && last->opcode == RC(ACKNOWLEDGE) &&
				   last->psn == (bad[i].two ? RAW_PSN + 1u : RAW_PSN));
		check_eq(r.w, last->syndrome, AETH_NAK | NAK_INVALID_REQUEST);
		expect_failed(&r, NAK_INVALID_REQUEST);
		raw_destroy(&r);
	}
}

/* A message of another QP's transport never reaches the responder. */
static void opcode__of_another_transport(void **state)
{
	struct raw r = raw_create_small("opcode__of_another_transport");

	check(r.w, raw_send(&r, raw_request(UC(SEND_ONLY), RAW_PSN), NULL, 4) ==
			   XROCE_DROP_qp_transport);
	check(r.w, raw_send(&r,
			    (struct packet){
				    .opcode = UD(SEND_ONLY), .psn = RAW_PSN, .qkey = PAIR_QKEY },
			    NULL, 4) == XROCE_DROP_qp_transport);
	check(r.w, raw_send(&r, raw_request(OPCODE(XROCE_XRC, OP5_SEND_ONLY), RAW_PSN), NULL, 4) ==
			   XROCE_DROP_qp_transport);
	expect_silence(&r);
	check_eq(r.w, qp_state(r.s.qp), QPS_RTS);
	raw_destroy(&r);
}

/*
 * What FLUSH and ATOMIC WRITE are answered with: an empty READ response; replayed, never executed
 * again.
 */
static void atomic_write__placed_once(void **state)
{
	struct raw r = raw_create_small("atomic_write__placed_once");
	const struct packet *p;
	u64 value = 0x1122334455667788;

	check_eq(r.w, raw_send(&r, raw_access(&r, RC(ATOMIC_WRITE), RAW_PSN, 16, 8), &value, 8), 0);
	p = raw_answer(&r);
	check(r.w, p && p->opcode == RC(READ_RESPONSE_ONLY) && p->psn == RAW_PSN &&
			   p->payload_len == 0 && p->msn == 1);
	check_eq(r.w, raw_load(&r, 16), value);
	raw_store(&r, 16, 5);
	check_eq(r.w, raw_send(&r, raw_access(&r, RC(ATOMIC_WRITE), RAW_PSN, 16, 8), &value, 8), 0);
	p = raw_answer(&r);
	check(r.w, p && p->opcode == RC(READ_RESPONSE_ONLY) && p->psn == RAW_PSN);
	check_eq(r.w, raw_load(&r, 16), 5);
	raw_send(&r, raw_access(&r, RC(ATOMIC_WRITE), RAW_PSN + 1, 17, 8), &value, 8);
	expect_ack(&r, AETH_NAK | NAK_INVALID_REQUEST, RAW_PSN + 1, 1);
	expect_failed(&r, NAK_INVALID_REQUEST);
	raw_destroy(&r);
}

static void atomic__must_be_aligned(void **state)
{
	struct raw r = raw_create_small("atomic__must_be_aligned");

	raw_store(&r, 64, 1);
	raw_send(&r, raw_access(&r, RC(FETCH_ADD), RAW_PSN, 65, 0), NULL, 0);
	expect_ack(&r, AETH_NAK | NAK_INVALID_REQUEST, RAW_PSN, 0);
	expect_failed(&r, NAK_INVALID_REQUEST);
	raw_destroy(&r);
}

/* In a region whose wire addresses differ from memory's, the word must be aligned in both. */
static void atomic__must_be_aligned_by_both_addresses(void **state)
{
	for (u32 i = 0; i < 3; i++) {
		struct raw r = raw_create_small("atomic__must_be_aligned_by_both_addresses");
		struct mr_table *t = engine_mr_table(r.w->node[1].engine);
		struct packet p = raw_request(RC(FETCH_ADD), RAW_PSN);
		/*
		 * a region from 0x1000 on the wire: the first word is aligned both ways, in memory
		 * only, on the wire only
		 */
		const u64 iova = i == 1 ? 0x1001 : 0x1000;
		struct mr *mr;
		u64 word;

		assert_int_equal(
			mr_add(t, PAIR_PD, r.mem->bytes + (i == 2), 64, iova, PAIR_ACCESS_ALL, &mr),
			0);
		p.va = iova;
		p.rkey = mr->key;
		p.swap_add = 1;
		memset(r.mem->bytes, 0, 64);
		raw_send(&r, p, NULL, 0);
		memcpy(&word, r.mem->bytes + (i == 2), sizeof(word)); /* in host byte order */
		check_eq(r.w, word, i == 0);
		if (i) {
			expect_ack(&r, AETH_NAK | NAK_INVALID_REQUEST, RAW_PSN, 0);
			expect_failed(&r, NAK_INVALID_REQUEST);
		}
		mr_remove(t, mr);
		raw_destroy(&r);
	}
}

/*
 * More READs and atomics at once than max_dest_rd_atomic (2): the answers to the first two are held
 * back by not asking for output.
 */
static void rd_atomic__excess_is_invalid(void **state)
{
	struct raw r = raw_create_small("rd_atomic__excess_is_invalid");
	const struct packet *p, *last = NULL;
	u32 reads = 0;

	for (u32 i = 0; i < 3; i++) {
		raw_deliver(&r, raw_access(&r, RC(READ_REQUEST), RAW_PSN + i, 0, 8), NULL, 0);
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
	expect_failed(&r, NAK_INVALID_REQUEST);
	raw_destroy(&r);
}

static void rd_atomic__zero_refuses_all(void **state)
{
	struct pair_options o = pair_defaults();
	struct raw r;

	o.max_dest_rd_atomic = 0;
	r = raw_create(&o, "rd_atomic__zero_refuses_all");
	raw_send(&r, raw_access(&r, RC(READ_REQUEST), RAW_PSN, 0, 8), NULL, 0);
	expect_ack(&r, AETH_NAK | NAK_INVALID_REQUEST, RAW_PSN, 0);
	expect_failed(&r, NAK_INVALID_REQUEST);
	raw_destroy(&r);
}

/* ---- the receive queue ---- */

static void rnr__psn_does_not_move(void **state)
{
	struct raw r = raw_create_small("rnr__psn_does_not_move");
	struct packet imm = raw_access(&r, RC(WRITE_ONLY_IMM), RAW_PSN, 0, 8);

	raw_send(&r, raw_request(RC(SEND_ONLY), RAW_PSN), NULL, 8);
	expect_ack(&r, AETH_RNR_NAK | 12, RAW_PSN, 0);
	raw_send(&r, imm, NULL, 8);
	expect_ack(&r, AETH_RNR_NAK | 12, RAW_PSN, 0);
	check_eq(r.w, r.s.node->stats.tx_rnr_naks, 2);
	post_recv_buffer(&r.s, 5, r.mem, 0, 64);
	check_eq(r.w, raw_send(&r, imm, NULL, 8), 0);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN, 1);
	expect(r.w, r.s.recv, 0, .wr_id = 5, .opcode = CQE_RECV_WITH_IMM, .byte_len = 8,
	       .flags = CQE_WITH_IMM, .qpn = r.s.qp->qpn);
	raw_destroy(&r);
}

/*
 * What follows a packet that met no receive is not lost: it is resent, and needs no NAK to say so.
 */
static void rnr__followers_are_silent(void **state)
{
	struct raw r = raw_create_small("rnr__followers_are_silent");

	raw_send(&r, raw_request(RC(SEND_ONLY), RAW_PSN), NULL, 8);
	expect_ack(&r, AETH_RNR_NAK | 12, RAW_PSN, 0);
	check(r.w, raw_send(&r, raw_request(RC(SEND_ONLY), RAW_PSN + 1), NULL, 8) ==
			   XROCE_DROP_psn_ahead);
	expect_silence(&r);
	raw_destroy(&r);
}

/* COMM_EST: the first packet in RTR, once; not needed in RTS. */
static void comm_est__once_in_rtr(void **state)
{
	struct world *w = world_create_with(
		2, 5, &(struct world_options){ .disable = { 0, ENGINE_NO_CREDITS } });
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
	check_eq(w, raw_send(&r, raw_access(&r, RC(WRITE_ONLY), RAW_PSN, 0, 8), NULL, 8), 0);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN, 1);
	check_eq(w, world_events(r.s.node, EVENT_COMM_EST, r.s.qp), 1);
	raw_send(&r, raw_access(&r, RC(WRITE_ONLY), RAW_PSN + 1, 0, 8), NULL, 8);
	check_eq(w, world_events(r.s.node, EVENT_COMM_EST, r.s.qp), 1);
	side_destroy(&r.s);
	world_destroy(w);
}

/* NAK codes and a class of syndromes that do not exist end nothing. */
static void nak__unknown_codes_are_dropped(void **state)
{
	struct pair_options o = pair_defaults();
	struct raw r = raw_create(&o, "test_responder unknown nak");

	post_send(&r.s, &(struct send){ .wr_id = 1,
					.opcode = WR_WRITE,
					.flags = WR_SIGNALED,
					.num_sge = 1,
					.sge = { buffer_sge(r.mem, 0, 8) } });
	world_settle(r.w);
	for (u32 code = 4; code < 64; code++)
		check_eq(r.w,
			 raw_send(&r,
				  (struct packet){ .opcode = RC(ACKNOWLEDGE),
						   .psn = RAW_SQ_PSN,
						   .syndrome = (u8)((code < 32 ? AETH_NAK : 0x40) |
								    code % 32) },
				  NULL, 0),
			 XROCE_DROP_unexpected_response);
	check_eq(r.w, qp_state(r.s.qp), QPS_RTS);
	check_eq(r.w, r.s.send->n, 0);
	raw_destroy(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nak__unknown_codes_are_dropped),
		cmocka_unit_test(sequence__bad_orders_are_invalid),
		cmocka_unit_test(reserved__opcodes_are_invalid),
		cmocka_unit_test(reserved__opcodes_out_of_turn),
		cmocka_unit_test(length__must_fit_pmtu_and_opcode),
		cmocka_unit_test(opcode__of_another_transport),
		cmocka_unit_test(atomic_write__placed_once),
		cmocka_unit_test(atomic__must_be_aligned),
		cmocka_unit_test(atomic__must_be_aligned_by_both_addresses),
		cmocka_unit_test(rd_atomic__excess_is_invalid),
		cmocka_unit_test(rd_atomic__zero_refuses_all),
		cmocka_unit_test(rnr__psn_does_not_move),
		cmocka_unit_test(rnr__followers_are_silent),
		cmocka_unit_test(comm_est__once_in_rtr),
	};

	return cmocka_run_group_tests_name("responder", tests, NULL, NULL);
}
