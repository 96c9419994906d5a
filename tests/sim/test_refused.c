/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * Errors where adapters report them: a request that the service lacks, or of a length that it
 * cannot have, is posted and completes in error in its turn; an unaligned atomic and a bad R_Key
 * are the peer's to refuse, before a bad L_Key of what would be answered is looked at.
 */
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

#define BIG 4096

static struct scene refused_scene(enum xroce_transport transport, const char *name)
{
	struct world *w = world_create(2, 37);
	struct pair_options o = pair_defaults();

	world_label(w, "test_refused %s, transport %u", name, transport);
	o.transport = transport;
	return scene_in(w, &o, BIG);
}

static struct send refused_request(struct scene *s, u64 wr_id, enum wr_opcode opcode, u32 len)
{
	struct send send = scene_request(s, wr_id, opcode, len);

	send.path = &s->path;
	send.remote_qpn = s->b->qp->qpn;
	send.remote_qkey = PAIR_QKEY;
	return send;
}

/*
 * A good request, the bad one, one after it: a success, this status, a flush; nothing of the bad
 * one leaves.
 */
static void refused_in_turn(struct scene *s, struct send bad, enum cqe_status status)
{
	const bool is_reliable = s->o.transport == XROCE_RC;
	struct send list[3] = { refused_request(s, 1, WR_SEND, 300), bad,
				refused_request(s, 3, WR_SEND, 8) };

	bad.wr_id = list[1].wr_id = 2;
	list[1].flags = 0; /* a failed one completes all the same */
	post_recv_buffer(s->b, 70, s->remote, 0, 1024);
	for (u32 i = 0; i < 3; i++)
		check_eq(s->w, try_post_send(s->a, &list[i]), 0);
	world_run(s->w);
	check_eq(s->w, s->a->send->n, 3);
	check_eq(s->w, s->a->send->log[0].status, CQE_SUCCESS);
	expect(s->w, s->a->send, 1, .wr_id = 2, .status = status, .vendor_err = VERR_REQUEST,
	       .qpn = s->a->qp->qpn);
	expect(s->w, s->a->send, 2, .wr_id = 3, .status = CQE_WR_FLUSH_ERR, .qpn = s->a->qp->qpn);
	check_eq(s->w, qp_state(s->a->qp), is_reliable ? QPS_ERR : QPS_SQE);
	check_eq(s->w, s->b->recv->n, 1);
	check_eq(s->w, s->w->node[0].stats.tx_packets, 1);
	scene_end(s);
}

static void opcode__the_service_lacks(void **state)
{
	static const struct {
		enum xroce_transport transport;
		enum wr_opcode opcode;
	} rows[] = {
		{ XROCE_UD, WR_WRITE },
		{ XROCE_UD, WR_WRITE_WITH_IMM },
		{ XROCE_UD, WR_READ },
		{ XROCE_UD, WR_CMP_SWAP },
		{ XROCE_UD, WR_FETCH_ADD },
		{ XROCE_UD, WR_SEND_WITH_INV },
		{ XROCE_UD, WR_LOCAL_INV },
		{ XROCE_UD, WR_BIND_MW },
		{ XROCE_UC, WR_READ },
		{ XROCE_UC, WR_CMP_SWAP },
		{ XROCE_UC, WR_FETCH_ADD },
		{ XROCE_UC, WR_SEND_WITH_INV },
	};

	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		struct scene s = refused_scene(rows[i].transport, "opcode");

		refused_in_turn(&s, refused_request(&s, 2, rows[i].opcode, 8), CQE_LOC_QP_OP_ERR);
	}
}

static void length__no_message_has(void **state)
{
	static const struct {
		enum wr_opcode opcode;
		u32 len[2]; /* of one element, or of two */
	} rows[] = {
		{ WR_CMP_SWAP, { 9 } },
		{ WR_FETCH_ADD, { 7 } },
		{ WR_FETCH_ADD, { 0 } },
		{ WR_WRITE, { 1u << 31, 1 } },
		{ WR_READ, { 1u << 31, 1u << 30 } },
		{ WR_SEND, { UINT32_MAX } },
	};

	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		struct scene s = refused_scene(XROCE_RC, "length");
		struct send bad = refused_request(&s, 2, rows[i].opcode, 8);

		bad.sge[0].length = rows[i].len[0];
		if (rows[i].len[1]) {
			bad.sge[1] = bad.sge[0];
			bad.sge[1].length = rows[i].len[1];
			bad.num_sge = 2;
		}
		refused_in_turn(&s, bad, CQE_LOC_LEN_ERR);
	}
}

/*
 * The peer sees the address before it sees the key, and this end its own key when there is an
 * answer.
 */
static void unaligned_atomic__is_the_peers_to_refuse(void **state)
{
	for (u32 kind = 0; kind < 6; kind++) {
		struct scene s = refused_scene(XROCE_RC, "unaligned");
		struct send send = scene_request(&s, 2, kind & 1 ? WR_CMP_SWAP : WR_FETCH_ADD, 8);

		send.remote_addr += 1 + kind;
		send.rkey ^= kind / 2 == 1;
		send.sge[0].lkey ^= kind / 2 == 2;
		send.compare_add = 1;
		post_send(s.a, &send);
		world_run(s.w);
		check_eq(s.w, s.a->send->n, 1);
		expect(s.w, s.a->send, 0, .wr_id = 2, .status = CQE_REM_INV_REQ_ERR,
		       .qpn = s.a->qp->qpn);
		check_eq(s.w, qp_state(s.a->qp), QPS_ERR);
		check_eq(s.w, qp_state(s.b->qp), QPS_ERR);
		check(s.w, bytes_are(s.remote->bytes, BIG, 1));
		scene_end(&s);
	}
}

/* The peer executes the request before its answer finds no place here. */
static void l_key__is_looked_at_with_the_answer(void **state)
{
	static const enum wr_opcode opcodes[] = { WR_READ, WR_FETCH_ADD, WR_CMP_SWAP };

	for (u32 i = 0; i < 2 * ARRAY_SIZE(opcodes); i++) {
		const bool bad_rkey = i & 1;
		struct scene s = refused_scene(XROCE_RC, "L_Key");
		struct send send = scene_request(&s, 2, opcodes[i / 2], 8);
		u64 before, after;

		memcpy(&before, s.remote->bytes, 8);
		send.sge[0].lkey ^= 1;
		send.rkey ^= bad_rkey;
		send.compare_add = send.opcode == WR_CMP_SWAP ? before : 1;
		send.swap = before + 1;
		post_send(s.a, &send);
		world_run(s.w);
		memcpy(&after, s.remote->bytes, 8);
		check_eq(s.w, s.a->send->n, 1);
		expect(s.w, s.a->send, 0, .wr_id = 2,
		       .status = bad_rkey ? CQE_REM_ACCESS_ERR : CQE_LOC_PROT_ERR,
		       .vendor_err = bad_rkey ? VERR_NAK_REMOTE_ACCESS : VERR_LKEY,
		       .qpn = s.a->qp->qpn);
		check_eq(s.w, after, before + (!bad_rkey && send.opcode != WR_READ));
		check(s.w, bytes_are(s.local->bytes, BIG, 0));
		scene_end(&s);
	}
}

/*
 * ibv_poll_cq(3): LOC_ACCESS_ERR is of a WRITE with immediate data; others take no receive, which
 * is flushed.
 */
static void write_imm__that_is_refused_fails_its_receive(void **state)
{
	for (u32 imm = 0; imm < 2; imm++) {
		struct scene s = refused_scene(XROCE_RC, "immediate");
		struct send send = scene_request(&s, 2, imm ? WR_WRITE_WITH_IMM : WR_WRITE, 8);

		send.rkey ^= 1;
		post_recv_buffer(s.b, 70, s.remote, 0, 64);
		post_send(s.a, &send);
		world_run(s.w);
		check_eq(s.w, s.a->send->log[0].status, CQE_REM_ACCESS_ERR);
		check_eq(s.w, s.b->recv->n, 1);
		check_eq(s.w, s.b->recv->log[0].wr_id, 70);
		check_eq(s.w, s.b->recv->log[0].status,
			 imm ? CQE_LOC_ACCESS_ERR : CQE_WR_FLUSH_ERR);
		check(s.w, bytes_are(s.remote->bytes, BIG, 1));
		scene_end(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opcode__the_service_lacks),
		cmocka_unit_test(length__no_message_has),
		cmocka_unit_test(unaligned_atomic__is_the_peers_to_refuse),
		cmocka_unit_test(l_key__is_looked_at_with_the_answer),
		cmocka_unit_test(write_imm__that_is_refused_fails_its_receive),
	};

	return cmocka_run_group_tests_name("refused", tests, NULL, NULL);
}
