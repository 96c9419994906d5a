/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/* UC: a lost packet loses its message, the next message is fine, and neither end reports it. */
#include "raw.h"
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

#define PMTU 256

static struct scene scene_make(const char *name)
{
	struct world *w = world_create(2, 13);
	struct pair_options o = pair_defaults();

	world_label(w, "test_uc %s", name);
	o.transport = XROCE_UC;
	o.pmtu = PMTU;
	return scene_in(w, &o, 8192);
}

/* No answer to data, ever. */
static void end_in_silence(struct scene *s)
{
	check_eq(s->w, s->b->node->stats.tx_packets, s->b->node->stats.flow_answers);
	check_eq(s->w, qp_state(s->b->qp), QPS_RTS);
	scene_end(s);
}

static void send_message(struct scene *s, u64 wr_id, enum wr_opcode opcode, u32 len)
{
	post_send(s->a, &(struct send){ .wr_id = wr_id,
					.opcode = opcode,
					.flags = WR_SIGNALED,
					.num_sge = 1,
					.imm = htobe32((u32)wr_id),
					.sge = { buffer_sge(s->local, (u32)wr_id * 16, len) },
					.remote_addr = buffer_va(s->remote) + 4096,
					.rkey = s->remote->mr->key });
	world_run(s->w);
}

static void every_operation__every_size(void **state)
{
	const u32 sizes[] = { 0, 1, 3, PMTU - 1, PMTU, PMTU + 1, 3 * PMTU + 5, 4000 };
	const enum wr_opcode opcodes[] = { WR_SEND, WR_SEND_WITH_IMM, WR_WRITE, WR_WRITE_WITH_IMM };
	struct scene s = scene_make("every operation");
	u32 sent = 0, received = 0;

	for (u32 i = 0; i < ARRAY_SIZE(sizes); i++)
		for (u32 k = 0; k < ARRAY_SIZE(opcodes); k++) {
			bool write = opcodes[k] == WR_WRITE || opcodes[k] == WR_WRITE_WITH_IMM;
			bool imm =
				opcodes[k] == WR_SEND_WITH_IMM || opcodes[k] == WR_WRITE_WITH_IMM;

			memset(s.remote->bytes, 0, 8192);
			if (!write || imm)
				post_recv_buffer(s.b, received, s.remote, 0, 4000);
			send_message(&s, sent, opcodes[k], sizes[i]);
			expect(s.w, s.a->send, sent, .wr_id = sent,
			       .opcode = write ? CQE_WRITE : CQE_SEND, .byte_len = sizes[i],
			       .qpn = s.a->qp->qpn);
			check(s.w, memcmp(s.remote->bytes + (write ? 4096 : 0),
					  s.local->bytes + sent * 16, sizes[i]) == 0);
			sent++;
			if (!write || imm) {
				expect(s.w, s.b->recv, received, .wr_id = received,
				       .opcode = write ? CQE_RECV_WITH_IMM : CQE_RECV,
				       .byte_len = sizes[i], .qpn = s.b->qp->qpn,
				       .src_qpn = s.a->qp->qpn, .flags = imm ? CQE_WITH_IMM : 0,
				       .imm = htobe32(sent - 1));
				received++;
			}
			check_eq(s.w, s.a->send->n, sent);
			check_eq(s.w, s.b->recv->n, received);
		}
	end_in_silence(&s);
}

/*
 * Three messages of three packets, every mask of losses over the nine: exactly the whole ones
 * arrive, each in its own receive, and the sender does not notice.
 */
static void send__every_loss_mask(void **state)
{
	for (u32 mask = 0; mask < 512; mask++) {
		struct scene s = scene_make("every loss mask");
		u32 arrived = 0;

		world_label(s.w, "test_uc send__every_loss_mask %x", mask);
		s.a->node->to[1].drop = mask;
		for (u32 i = 0; i < 3; i++)
			post_recv_buffer(s.b, 10 + i, s.remote, i * 1024, 1024);
		memset(s.remote->bytes, 0, 8192);
		for (u32 i = 0; i < 3; i++) {
			send_message(&s, i, WR_SEND_WITH_IMM, 2 * PMTU + 9);
			if (mask >> 3 * i & 7)
				continue;
			expect(s.w, s.b->recv, arrived, .wr_id = 10 + arrived, .opcode = CQE_RECV,
			       .byte_len = 2 * PMTU + 9, .qpn = s.b->qp->qpn, .flags = CQE_WITH_IMM,
			       .imm = htobe32(i));
			check(s.w, memcmp(s.remote->bytes + arrived * 1024, s.local->bytes + i * 16,
					  2 * PMTU + 9) == 0);
			arrived++;
		}
		check_eq(s.w, s.a->send->n, 3);
		for (u32 i = 0; i < 3; i++)
			expect(s.w, s.a->send, i, .wr_id = i, .opcode = CQE_SEND,
			       .byte_len = 2 * PMTU + 9, .qpn = s.a->qp->qpn);
		check_eq(s.w, s.b->recv->n, arrived);
		check_eq(s.w, s.b->node->num_events, 0);
		end_in_silence(&s);
	}
}

/* A WRITE with immediate data that lost a packet gives no completion; the next one does. */
static void write_imm__every_loss_mask(void **state)
{
	for (u32 mask = 0; mask < 64; mask++) {
		struct scene s = scene_make("write_imm loss");
		u32 arrived = 0;

		world_label(s.w, "test_uc write_imm__every_loss_mask %x", mask);
		s.a->node->to[1].drop = mask;
		post_recv(s.b, 10, NULL, 0);
		post_recv(s.b, 11, NULL, 0);
		for (u32 i = 0; i < 2; i++) {
			send_message(&s, i, WR_WRITE_WITH_IMM, 2 * PMTU + 9);
			if (mask >> 3 * i & 7)
				continue;
			expect(s.w, s.b->recv, arrived, .wr_id = 10 + arrived,
			       .opcode = CQE_RECV_WITH_IMM, .byte_len = 2 * PMTU + 9,
			       .qpn = s.b->qp->qpn, .flags = CQE_WITH_IMM, .imm = htobe32(i));
			arrived++;
		}
		check_eq(s.w, s.b->recv->n, arrived);
		end_in_silence(&s);
	}
}

static void receive__missing_or_short_is_counted(void **state)
{
	struct scene s = scene_make("no receive");

	send_message(&s, 1, WR_SEND, 600);
	check_eq(s.w, s.b->node->drops.no_receive, 1);
	check_eq(s.w, s.a->send->n, 1);
	expect(s.w, s.a->send, 0, .wr_id = 1, .opcode = CQE_SEND, .byte_len = 600,
	       .qpn = s.a->qp->qpn);
	memset(s.remote->bytes, 0xee, 8192);
	post_recv_buffer(s.b, 5, s.remote, 0, 599);
	send_message(&s, 2, WR_SEND, 600);
	check_eq(s.w, s.b->node->drops.receive_short, 1);
	check_eq(s.w, s.remote->bytes[599], 0xee);
	send_message(&s, 3, WR_SEND, 599);
	check_eq(s.w, s.b->recv->n, 1);
	expect(s.w, s.b->recv, 0, .wr_id = 5, .opcode = CQE_RECV, .byte_len = 599,
	       .qpn = s.b->qp->qpn);
	end_in_silence(&s);
}

/* A right that the QP lacks, for a WRITE of no bytes, too. */
static void write__not_enabled_is_dropped_and_counted(void **state)
{
	struct scene s = scene_make("not enabled");

	s.b->qp->access = 0;
	for (u32 len = 0; len <= 600; len += 600)
		post_send(s.a, &(struct send){ .wr_id = 1,
					       .opcode = WR_WRITE,
					       .flags = WR_SIGNALED,
					       .num_sge = 1,
					       .sge = { buffer_sge(s.local, 0, len) },
					       .remote_addr = buffer_va(s.remote),
					       .rkey = s.remote->mr->key });
	world_run(s.w);
	check_eq(s.w, s.b->node->drops.access, 2);
	check_eq(s.w, s.b->node->drops.length, 0);
	check(s.w, bytes_are(s.remote->bytes, 8192, 1));
	end_in_silence(&s);
}

static void write__bad_key_is_dropped_and_counted(void **state)
{
	struct scene s = scene_make("bad key");

	post_send(s.a, &(struct send){ .wr_id = 1,
				       .opcode = WR_WRITE,
				       .flags = WR_SIGNALED,
				       .num_sge = 1,
				       .sge = { buffer_sge(s.local, 0, 600) },
				       .remote_addr = buffer_va(s.remote),
				       .rkey = s.remote->mr->key ^ 1 });
	world_run(s.w);
	check_eq(s.w, s.b->node->drops.access, 1);
	check(s.w, bytes_are(s.remote->bytes, 8192, 1));
	expect(s.w, s.a->send, 0, .wr_id = 1, .opcode = CQE_WRITE, .byte_len = 600,
	       .qpn = s.a->qp->qpn);
	send_message(&s, 2, WR_WRITE, 600);
	check(s.w, memcmp(s.remote->bytes + 4096, s.local->bytes + 32, 600) == 0);
	end_in_silence(&s);
}

/* No AckReq on UC; a timeout or retry means nothing there. */
static void packets__ask_for_no_ack(void **state)
{
	struct scene s = scene_make("no ack");

	post_recv_buffer(s.b, 1, s.remote, 0, 4000);
	send_message(&s, 1, WR_SEND, 3000);
	for (u32 i = 0; i < s.w->num_sent; i++)
		check(s.w, !s.w->sent[i].packet.ackreq &&
				   OPCODE_TRANSPORT(s.w->sent[i].packet.opcode) == XROCE_UC);
	check_eq(s.w, world_deadline_ns(s.a->node), NSEC_NEVER);
	end_in_silence(&s);
}

/* A local fault stops the sender only: SQE, and RTS again by modify. */
static void local_error__goes_to_sqe(void **state)
{
	struct scene s = scene_make("sqe");
	struct send bad = {
		.wr_id = 1, .opcode = WR_SEND, .num_sge = 1, .sge = { buffer_sge(s.local, 0, 64) }
	};

	bad.sge[0].lkey ^= 1;
	post_recv_buffer(s.a, 70, s.local, 0, 64);
	post_send(s.a, &bad);
	bad.wr_id = 2;
	post_send(s.a, &bad);
	world_run(s.w);
	check_eq(s.w, qp_state(s.a->qp), QPS_SQE);
	check_eq(s.w, s.a->send->n, 2);
	expect(s.w, s.a->send, 0, .wr_id = 1, .status = CQE_LOC_PROT_ERR, .vendor_err = VERR_LKEY,
	       .qpn = s.a->qp->qpn);
	expect(s.w, s.a->send, 1, .wr_id = 2, .status = CQE_WR_FLUSH_ERR, .qpn = s.a->qp->qpn);
	check_eq(s.w, s.a->recv->n, 0); /* it still receives */
	check_eq(s.w, side_state(s.a, QPS_RTS), 0);
	post_recv_buffer(s.b, 1, s.remote, 0, 4000);
	send_message(&s, 3, WR_SEND, 600);
	expect(s.w, s.a->send, 2, .wr_id = 3, .opcode = CQE_SEND, .byte_len = 600,
	       .qpn = s.a->qp->qpn);
	expect(s.w, s.b->recv, 0, .wr_id = 1, .opcode = CQE_RECV, .byte_len = 600,
	       .qpn = s.b->qp->qpn);
	end_in_silence(&s);
}

/* Any order of opcodes does no more than lose messages. */
static void sequence__bad_orders_lose_messages_only(void **state)
{
	static const u8 opcodes[] = { UC(SEND_FIRST),  UC(SEND_MIDDLE),	 UC(SEND_LAST),
				      UC(WRITE_FIRST), UC(WRITE_MIDDLE), UC(WRITE_LAST) };
	struct pair_options o = pair_defaults();

	o.transport = XROCE_UC;
	o.pmtu = PMTU;
	for (u32 row = 0; row < 6 * 6 * 6; row++) {
		struct raw r = raw_create(&o, "uc orders");
		const u8 order[] = { opcodes[row % 6], opcodes[row / 6 % 6], opcodes[row / 36] };
		u32 psn = RAW_PSN, want;

		world_label(r.w, "test_uc sequence__bad_orders row %u", row);
		post_recv_buffer(&r.s, 1, r.mem, 0, 4096);
		post_recv_buffer(&r.s, 2, r.mem, 0, 4096);
		for (u32 i = 0; i < 3; i++) {
			struct packet p = { .opcode = order[i],
					    .psn = psn++,
					    .va = buffer_va(r.mem) + 8192,
					    .rkey = r.mem->mr->key,
					    .dma_len = 2 * PMTU };

			raw_send(&r, p, NULL, PMTU);
		}
		/* A SEND that arrived whole, alone or after another packet. */
		want = (order[0] == UC(SEND_FIRST) && order[1] == UC(SEND_LAST)) ||
		       (order[1] == UC(SEND_FIRST) && order[2] == UC(SEND_LAST)) ||
		       (order[0] == UC(SEND_FIRST) && order[1] == UC(SEND_MIDDLE) &&
			order[2] == UC(SEND_LAST));
		check_eq(r.w, r.s.recv->n, want);
		raw_send(&r, (struct packet){ .opcode = UC(SEND_ONLY), .psn = psn }, NULL, 20);
		check_eq(r.w, r.s.recv->n, want + 1);
		expect(r.w, r.s.recv, want, .wr_id = 1 + want, .opcode = CQE_RECV, .byte_len = 20,
		       .qpn = r.s.qp->qpn);
		check_eq(r.w, qp_state(r.s.qp), QPS_RTS);
		expect_silence(&r);
		raw_destroy(&r);
	}
}

/*
 * In place of a message's middle a reserved opcode, or one that UC lacks, is dropped, and so is the
 * rest of the message; the next one arrives.
 */
static void reserved__opcode_loses_its_message_only(void **state)
{
	struct pair_options o = pair_defaults();

	o.transport = XROCE_UC;
	o.pmtu = PMTU;
	for (u32 low = OP5_READ_REQUEST; low < 32; low++) {
		struct raw r = raw_create(&o, "uc reserved");

		world_label(r.w, "test_uc reserved %02x", low);
		post_recv_buffer(&r.s, 1, r.mem, 0, 4096);
		raw_send(&r, raw_request(UC(SEND_FIRST), RAW_PSN), NULL, PMTU);
		check_eq(r.w,
			 raw_send(&r, raw_request(OPCODE(XROCE_UC, low), RAW_PSN + 1), NULL, PMTU),
			 XROCE_DROP_opcode);
		check_eq(r.w, raw_send(&r, raw_request(UC(SEND_LAST), RAW_PSN + 2), NULL, 8),
			 XROCE_DROP_sequence);
		check_eq(r.w, r.s.recv->n, 0);
		raw_send(&r, raw_request(UC(SEND_ONLY), RAW_PSN + 3), NULL, 20);
		check_eq(r.w, r.s.recv->n, 1);
		expect(r.w, r.s.recv, 0, .wr_id = 1, .opcode = CQE_RECV, .byte_len = 20,
		       .qpn = r.s.qp->qpn);
		check_eq(r.w, qp_state(r.s.qp), QPS_RTS);
		expect_silence(&r);
		raw_destroy(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_operation__every_size),
		cmocka_unit_test(send__every_loss_mask),
		cmocka_unit_test(write_imm__every_loss_mask),
		cmocka_unit_test(receive__missing_or_short_is_counted),
		cmocka_unit_test(write__not_enabled_is_dropped_and_counted),
		cmocka_unit_test(write__bad_key_is_dropped_and_counted),
		cmocka_unit_test(packets__ask_for_no_ack),
		cmocka_unit_test(local_error__goes_to_sqe),
		cmocka_unit_test(sequence__bad_orders_lose_messages_only),
		cmocka_unit_test(reserved__opcode_loses_its_message_only),
	};

	return cmocka_run_group_tests_name("uc", tests, NULL, NULL);
}
