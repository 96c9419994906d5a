/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * RC requests that must fail: the status on both sides, the states, the events, and not one byte
 * where it has no right to be.
 */
#include "raw.h"
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

#define BIG 4096

static struct scene scene_make(const struct pair_options *o, const char *name)
{
	struct world *w = world_create(2, 9);

	world_label(w, "test_errors %s", name);
	return scene_in(w, o, BIG);
}

/* ---- what the responder refuses ---- */

struct refusal {
	const char *name;
	enum wr_opcode opcode;
	u32 len;
	u32 mr_access;	/* of the region named; 0 = all */
	u32 qp_access;	/* of the responder's QP; 0 = all */
	u32 pd;		/* of the region; 0 = the QP's */
	u32 key_xor;
	s64 offset;
	bool no_local_write;
};

#define NOT(right) (PAIR_ACCESS_ALL & ~(right))

static const struct refusal refusals[] = {
	{ .name = "no such key, write", .opcode = WR_WRITE, .len = 8, .key_xor = 1 },
	{ .name = "no such key, read", .opcode = WR_READ, .len = 8, .key_xor = 1 },
	{ .name = "no such key, atomic", .opcode = WR_FETCH_ADD, .len = 8, .key_xor = 1 },
	{ .name = "no such key, long write",
	  .opcode = WR_WRITE,
	  .len = 3000,
	  .key_xor = 0x80000000 },
	{ .name = "no such key, write_imm", .opcode = WR_WRITE_WITH_IMM, .len = 8, .key_xor = 1 },
	{ .name = "one byte past the end, write", .opcode = WR_WRITE, .len = 8, .offset = BIG - 7 },
	{ .name = "one byte past the end, read", .opcode = WR_READ, .len = 8, .offset = BIG - 7 },
	{ .name = "past the end, atomic", .opcode = WR_CMP_SWAP, .len = 8, .offset = BIG },
	{ .name = "before the start", .opcode = WR_WRITE, .len = 8, .offset = -1 },
	{ .name = "long write past the end", .opcode = WR_WRITE, .len = 3000, .offset = 2000 },
	{ .name = "long read past the end", .opcode = WR_READ, .len = 3000, .offset = 2000 },
	{ .name = "no right to write",
	  .opcode = WR_WRITE,
	  .len = 8,
	  .mr_access = NOT(MR_REMOTE_WRITE) },
	{ .name = "no right to read",
	  .opcode = WR_READ,
	  .len = 8,
	  .mr_access = NOT(MR_REMOTE_READ) },
	{ .name = "no right to atomics",
	  .opcode = WR_CMP_SWAP,
	  .len = 8,
	  .mr_access = NOT(MR_REMOTE_ATOMIC) },
	{ .name = "QP grants no write",
	  .opcode = WR_WRITE,
	  .len = 8,
	  .qp_access = NOT(MR_REMOTE_WRITE) },
	{ .name = "QP grants no read",
	  .opcode = WR_READ,
	  .len = 8,
	  .qp_access = NOT(MR_REMOTE_READ) },
	{ .name = "QP grants no atomics",
	  .opcode = WR_FETCH_ADD,
	  .len = 8,
	  .qp_access = NOT(MR_REMOTE_ATOMIC) },
	{ .name = "another PD, write", .opcode = WR_WRITE, .len = 8, .pd = 2 },
	{ .name = "another PD, read", .opcode = WR_READ, .len = 8, .pd = 2 },
	{ .name = "another PD, atomic", .opcode = WR_FETCH_ADD, .len = 8, .pd = 2 },
};

/* A QP that does not grant it makes an invalid request of it, whatever the key would allow. */
static void rem_access_err__both_sides(void **state)
{
	for (u32 i = 0; i < ARRAY_SIZE(refusals); i++) {
		const struct refusal *f = &refusals[i];
		struct pair_options o = pair_defaults();
		struct buffer *target;
		struct scene s;
		struct send send;

		o.access = f->qp_access ? f->qp_access : PAIR_ACCESS_ALL;
		s = scene_make(&o, f->name);
		target = world_buffer_pd(s.b->node, BIG,
					 f->mr_access ? f->mr_access : PAIR_ACCESS_ALL,
					 f->pd ? f->pd : PAIR_PD);
		post_recv_buffer(s.b, 50, s.remote, 0, 64);
		post_recv_buffer(s.b, 51, s.remote, 0, 64);
		/* Earlier requests succeed, later ones are flushed. */
		if (!f->qp_access)
			scene_post(&s, 1, WR_READ, 8);
		send = scene_request(&s, 2, f->opcode, f->len);
		send.flags = 0; /* a failure completes all the same */
		send.rkey = target->mr->key ^ f->key_xor;
		send.remote_addr = buffer_va(target) + (u64)f->offset;
		post_send(s.a, &send);
		scene_post(&s, 3, WR_WRITE, 8);
		world_run(s.w);

		if (!f->qp_access)
			expect(s.w, s.a->send, 0, .wr_id = 1, .opcode = CQE_READ, .byte_len = 8,
			       .qpn = s.a->qp->qpn);
		check_eq(s.w, s.a->send->n, f->qp_access ? 2 : 3);
		expect(s.w, s.a->send, s.a->send->n - 2, .wr_id = 2,
		       .status = f->qp_access ? CQE_REM_INV_REQ_ERR : CQE_REM_ACCESS_ERR,
		       .vendor_err =
			       f->qp_access ? VERR_NAK_INVALID_REQUEST : VERR_NAK_REMOTE_ACCESS,
		       .qpn = s.a->qp->qpn);
		expect(s.w, s.a->send, s.a->send->n - 1, .wr_id = 3, .status = CQE_WR_FLUSH_ERR,
		       .qpn = s.a->qp->qpn);
		check_eq(s.w, qp_state(s.a->qp), QPS_ERR);
		check_eq(s.w, qp_state(s.b->qp), QPS_ERR);
		check_eq(s.w, world_events(s.b->node, EVENT_QP_ACCESS_ERR, s.b->qp), !f->qp_access);
		check_eq(s.w, world_events(s.b->node, EVENT_QP_REQ_ERR, s.b->qp), !!f->qp_access);
		check_eq(s.w, world_events(s.b->node, EVENT_QP_STATE, s.b->qp), 1);
		check_eq(s.w, world_events(s.a->node, EVENT_QP_ACCESS_ERR, NULL), 0);
		check_eq(s.w, s.b->node->stats.remote_errors, 1);
		check_eq(s.w, s.b->recv->n, 2);
		for (u32 k = 0; k < 2; k++)
			check(s.w, s.b->recv->log[k].wr_id == 50 + k &&
					   s.b->recv->log[k].status != CQE_SUCCESS);
		check(s.w, bytes_are(target->bytes, BIG, 1));
		scene_end(&s);
	}
}

/*
 * Nothing is read or written by zero bytes: their key is not looked at (protocol sheet,
 * "Sequencing").
 */
static void zero_length__needs_no_key(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s;
	struct send send;

	o.access = MR_REMOTE_WRITE | MR_REMOTE_READ; /* that these requests may be made at all */
	s = scene_make(&o, "zero length");
	send = scene_request(&s, 1, WR_WRITE, 0);
	send.rkey = 12345;
	send.remote_addr = 1;
	post_send(s.a, &send);
	send.opcode = WR_READ;
	send.wr_id = 2;
	post_send(s.a, &send);
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 2);
	expect(s.w, s.a->send, 0, .wr_id = 1, .opcode = CQE_WRITE, .qpn = s.a->qp->qpn);
	expect(s.w, s.a->send, 1, .wr_id = 2, .opcode = CQE_READ, .qpn = s.a->qp->qpn);
	scene_end(&s);
}

static void receive_short__both_sides(void **state)
{
	const u32 lens[] = { 65, 3000 };

	for (u32 i = 0; i < ARRAY_SIZE(lens); i++) {
		struct pair_options o = pair_defaults();
		struct scene s = scene_make(&o, "receive too short");
		u32 room = lens[i] - 1;

		memset(s.remote->bytes, 0xee, BIG);
		post_recv_buffer(s.b, 7, s.remote, 0, room);
		post_recv_buffer(s.b, 8, s.remote, 0, room);
		scene_post(&s, 1, WR_SEND, lens[i]);
		world_run(s.w);
		check_eq(s.w, s.a->send->n, 1);
		expect(s.w, s.a->send, 0, .wr_id = 1, .status = CQE_REM_INV_REQ_ERR,
		       .vendor_err = VERR_NAK_INVALID_REQUEST, .qpn = s.a->qp->qpn);
		check_eq(s.w, s.b->recv->n, 2);
		expect(s.w, s.b->recv, 0, .wr_id = 7, .status = CQE_LOC_LEN_ERR,
		       .vendor_err = VERR_RECV_TOO_SHORT, .qpn = s.b->qp->qpn);
		expect(s.w, s.b->recv, 1, .wr_id = 8, .status = CQE_WR_FLUSH_ERR,
		       .qpn = s.b->qp->qpn);
		check_eq(s.w, qp_state(s.a->qp), QPS_ERR);
		check_eq(s.w, qp_state(s.b->qp), QPS_ERR);
		check_eq(s.w, s.remote->bytes[room], 0xee);
		scene_end(&s);
	}
}

static void receive_bad_lkey__both_sides(void **state)
{
	struct pair_options o = pair_defaults();

	for (u32 i = 0; i < 3; i++) {
		struct scene s = scene_make(&o, "receive with a bad L_Key");
		struct buffer *read_only = world_buffer(s.b->node, BIG, MR_REMOTE_READ);
		struct sge sge = buffer_sge(i == 1 ? read_only : s.remote, 0, 64);

		if (i == 0)
			sge.lkey ^= 1;
		if (i == 2)
			sge.addr += BIG - 63;
		post_recv(s.b, 7, &sge, 1);
		scene_post(&s, 1, WR_SEND, 64);
		world_run(s.w);
		expect(s.w, s.a->send, 0, .wr_id = 1, .status = CQE_REM_OP_ERR,
		       .vendor_err = VERR_NAK_REMOTE_OPERATION, .qpn = s.a->qp->qpn);
		expect(s.w, s.b->recv, 0, .wr_id = 7, .status = CQE_LOC_PROT_ERR,
		       .vendor_err = VERR_LKEY, .qpn = s.b->qp->qpn);
		check_eq(s.w, qp_state(s.a->qp), QPS_ERR);
		check_eq(s.w, qp_state(s.b->qp), QPS_ERR);
		check(s.w, bytes_are(read_only->bytes, BIG, 1));
		scene_end(&s);
	}
}

/* ---- what the requester refuses itself ---- */

static void loc_prot_err__after_what_came_before(void **state)
{
	const enum wr_opcode opcodes[] = { WR_SEND, WR_WRITE, WR_READ, WR_FETCH_ADD };

	for (u32 i = 0; i < ARRAY_SIZE(opcodes); i++)
		for (u32 kind = 0; kind < 3; kind++) {
			struct pair_options o = pair_defaults();
			struct scene s = scene_make(&o, "L_Key of a send");
			struct buffer *other_pd =
				world_buffer_pd(s.a->node, BIG, PAIR_ACCESS_ALL, 2);
			struct send send;

			scene_post(&s, 1, WR_WRITE, 3000);
			send = scene_request(&s, 2, opcodes[i], 8);
			if (kind == 0)
				send.sge[0].lkey ^= 1;
			else if (kind == 1)
				send.sge[0].addr += BIG - 7;
			else
				send.sge[0] = buffer_sge(other_pd, 0, 8);
			post_send(s.a, &send);
			scene_post(&s, 3, WR_WRITE, 8);
			world_run(s.w);
			check_eq(s.w, s.a->send->n, 3);
			expect(s.w, s.a->send, 0, .wr_id = 1, .opcode = CQE_WRITE, .byte_len = 3000,
			       .qpn = s.a->qp->qpn);
			expect(s.w, s.a->send, 1, .wr_id = 2, .status = CQE_LOC_PROT_ERR,
			       .vendor_err = VERR_LKEY, .qpn = s.a->qp->qpn);
			expect(s.w, s.a->send, 2, .wr_id = 3, .status = CQE_WR_FLUSH_ERR,
			       .qpn = s.a->qp->qpn);
			check_eq(s.w, qp_state(s.a->qp), QPS_ERR);
			check_eq(s.w, qp_state(s.b->qp), QPS_RTS);
			check(s.w, bytes_are(other_pd->bytes, BIG, 0));
			scene_end(&s);
		}
}

/* A READ into a region without local write is answered, and what came is thrown away. */
static void read__needs_local_write(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make(&o, "read into a read-only region");
	struct buffer *read_only = world_buffer(s.a->node, BIG, MR_REMOTE_READ);
	struct send send = scene_request(&s, 1, WR_READ, 64);

	send.sge[0] = buffer_sge(read_only, 0, 64);
	post_send(s.a, &send);
	world_run(s.w);
	expect(s.w, s.a->send, 0, .wr_id = 1, .status = CQE_LOC_PROT_ERR, .qpn = s.a->qp->qpn);
	check(s.w, bytes_are(read_only->bytes, BIG, 0));
	/* Sending from it is fine, but the QP is in error now. */
	scene_end(&s);
}

/*
 * The region is deregistered while a long message is under way: refused, and no byte of it touched
 * after that.
 */
static void region__gone_under_a_message(void **state)
{
	const enum wr_opcode opcodes[] = { WR_WRITE, WR_READ };

	for (u32 i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct pair_options o = pair_defaults();
		struct scene s;
		struct mr *mr;
		struct send send;

		o.pmtu = 256;
		s = scene_make(&o, "region gone");
		assert_int_equal(mr_add(engine_mr_table(s.b->node->engine), PAIR_PD,
					s.remote->bytes, 2048, 0, PAIR_ACCESS_ALL, &mr),
				 0);
		send = scene_request(&s, 1, opcodes[i], 2048);
		send.remote_addr = 0;
		send.rkey = mr->key;
		/*
		 * The second half of the requests or the responses is lost, so that they come when
		 * the region is gone.
		 */
		s.w->node[opcodes[i] == WR_READ].to[opcodes[i] != WR_READ].drop = 0xf0;
		post_send(s.a, &send);
		world_run_for(s.w, 3 * WORLD_LATENCY_NS);
		mr_remove(engine_mr_table(s.b->node->engine), mr);
		memset(s.remote->bytes, 0x11, BIG);
		world_run(s.w);
		check_eq(s.w, s.a->send->n, 1);
		expect(s.w, s.a->send, 0, .wr_id = 1, .status = CQE_REM_ACCESS_ERR,
		       .qpn = s.a->qp->qpn);
		check_eq(s.w, qp_state(s.b->qp), QPS_ERR);
		check_eq(s.w, world_events(s.b->node, EVENT_QP_ACCESS_ERR, s.b->qp), 1);
		for (u32 k = 0; k < BIG; k++)
			check(s.w, s.remote->bytes[k] == 0x11);
		scene_end(&s);
	}
}

/* ---- packets for no QP: dropped silently, and counted by reason ---- */

static void steering__silent_and_counted(void **state)
{
	struct pair_options o = pair_defaults();
	struct raw r = raw_create(&o, "test_errors steering__silent_and_counted");
	struct packet p = { .opcode = RC(SEND_ONLY), .psn = RAW_PSN, .ackreq = true };
	struct path good = r.path;
	const u64 *drops = (const u64 *)&r.s.node->drops;
	u32 sum = 0;

	post_recv_buffer(&r.s, 1, r.mem, 0, 64);
	p.pkey = 0x1234;
	check_eq(r.w, raw_send(&r, p, NULL, 8), XROCE_DROP_pkey);
	p.pkey = 0x7fff; /* a limited member may talk to us, a full member */
	check_eq(r.w, raw_send(&r, p, NULL, 8), 0);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN, 1);
	p.pkey = 0;
	p.psn++;

	r.path.local = world_gid(2, false);
	check_eq(r.w, raw_send(&r, p, NULL, 8), XROCE_DROP_peer);
	r.path = world_path(r.w, 0, 1, true);
	check_eq(r.w, raw_send(&r, p, NULL, 8), XROCE_DROP_peer);
	r.path = good;
	r.path.peer = world_gid(2, false);
	check_eq(r.w, raw_send(&r, p, NULL, 8), XROCE_DROP_peer);
	r.path = good;
	p.dest_qpn = r.s.qp->qpn ^ 0x800000; /* the same slot, another generation */
	check_eq(r.w, raw_send(&r, p, NULL, 8), XROCE_DROP_qp_unknown);
	p.dest_qpn = 0;
	for (u32 bit = 0; bit < 8; bit++) { /* any bit after the BTH */
		raw_build(&r, p, NULL, 8);
		r.frame[14 + 20 + 8 + 12 + bit] ^= (u8)(1 << bit);
		check_eq(r.w, raw_send_frame(&r), XROCE_DROP_icrc);
	}
	raw_build(&r, p, NULL, 8);
	r.frame[14 + 20 + 8 + 1] |= 1; /* TVer */
	check_eq(r.w, raw_send_frame(&r), XROCE_DROP_bth_version);
	expect_silence(&r);
	check_eq(r.w, qp_state(r.s.qp), QPS_RTS);
	check_eq(r.w, r.s.node->num_events, 0);
	check_eq(r.w, r.s.node->drops.pkey, 1);
	check_eq(r.w, r.s.node->drops.peer, 3);
	check_eq(r.w, r.s.node->drops.qp_unknown, 1);
	check_eq(r.w, r.s.node->drops.icrc, 8);
	check_eq(r.w, r.s.node->drops.bth_version, 1);
	for (u32 i = 0; i < XROCE_DROP_COUNT; i++)
		sum += (u32)drops[i];
	check_eq(r.w, sum, 14);
	raw_destroy(&r);
}

/* ---- responses that no request asked for, or that contradict theirs ---- */

static void response__unasked_is_dropped(void **state)
{
	static const u8 opcodes[] = { RC(ACKNOWLEDGE), RC(READ_RESPONSE_ONLY),
				      RC(READ_RESPONSE_FIRST), RC(ATOMIC_ACKNOWLEDGE) };
	static const u8 syndromes[] = { SYNDROME_ACK, AETH_RNR_NAK | 1, AETH_NAK | NAK_PSN_SEQUENCE,
					AETH_NAK | NAK_REMOTE_ACCESS, 0x7f };
	struct pair_options o = pair_defaults();
	struct raw r = raw_create(&o, "test_errors response__unasked_is_dropped");

	for (u32 i = 0; i < ARRAY_SIZE(opcodes); i++)
		for (u32 k = 0; k < ARRAY_SIZE(syndromes); k++)
			for (s32 d = -1; d <= 1; d++) {
				struct packet p = { .opcode = opcodes[i],
						    .psn = (u32)(RAW_SQ_PSN + d),
						    .syndrome = syndromes[k] };

				check(r.w,
				      raw_send(&r, p, NULL,
					       opcode_flags(opcodes[i]) & OP_PAYLOAD ? 8 : 0) != 0);
			}
	check_eq(r.w, qp_state(r.s.qp), QPS_RTS);
	check_eq(r.w, r.s.send->n, 0);
	check_eq(r.w, r.s.node->num_events, 0);
	expect_silence(&r);
	raw_destroy(&r);
}

static void response__of_the_wrong_kind_or_length(void **state)
{
	static const struct {
		enum wr_opcode wr;
		u8 opcode;
		u32 len;
	} rows[] = {
		{ WR_WRITE, RC(READ_RESPONSE_ONLY), 64 },
		{ WR_WRITE, RC(ATOMIC_ACKNOWLEDGE), 0 },
		{ WR_READ, RC(ATOMIC_ACKNOWLEDGE), 0 },
		{ WR_READ, RC(READ_RESPONSE_ONLY), 63 },
		{ WR_READ, RC(READ_RESPONSE_ONLY), 65 },
		{ WR_READ, RC(READ_RESPONSE_ONLY), 0 },
		{ WR_FETCH_ADD, RC(READ_RESPONSE_ONLY), 8 },
	};

	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		struct pair_options o = pair_defaults();
		struct raw r = raw_create(&o, "test_errors response__of_the_wrong_kind_or_length");
		struct packet p = { .opcode = rows[i].opcode,
				    .psn = RAW_SQ_PSN,
				    .syndrome = SYNDROME_ACK };

		post_send(&r.s,
			  &(struct send){ .wr_id = 4,
					  .opcode = rows[i].wr,
					  .flags = WR_SIGNALED,
					  .num_sge = 1,
					  .sge = { buffer_sge(
						  r.mem, 0, rows[i].wr == WR_FETCH_ADD ? 8 : 64) },
					  .remote_addr = 64 });
		world_settle(r.w);
		raw_send(&r, p, NULL, rows[i].len);
		check_eq(r.w, r.s.send->n, 1);
		expect(r.w, r.s.send, 0, .wr_id = 4, .status = CQE_BAD_RESP_ERR,
		       .vendor_err = VERR_BAD_RESPONSE, .qpn = r.s.qp->qpn);
		check_eq(r.w, qp_state(r.s.qp), QPS_ERR);
		raw_destroy(&r);
	}
}

/*
 * Who set max_rd_atomic to 0 asked for no READs and atomics: they fail, in order, and do not wait
 * for ever.
 */
static void max_rd_atomic__zero(void **state)
{
	static const enum wr_opcode opcodes[] = { WR_READ, WR_FETCH_ADD, WR_CMP_SWAP };

	for (u32 i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct pair_options o = pair_defaults();
		struct send list[2];
		struct scene s;

		o.max_rd_atomic = 0;
		s = scene_make(&o, "max_rd_atomic 0");
		world_label(s.w, "test_errors max_rd_atomic 0 opcode %u", opcodes[i]);
		list[0] = scene_request(&s, 1, WR_WRITE, 8);
		list[1] = scene_request(&s, 2, opcodes[i], 8);
		post_sends(s.a, list, 2);
		world_run(s.w);
		check_eq(s.w, s.a->send->n, 2);
		expect(s.w, s.a->send, 0, .wr_id = 1, .opcode = CQE_WRITE, .byte_len = 8,
		       .qpn = s.a->qp->qpn);
		expect(s.w, s.a->send, 1, .wr_id = 2, .status = CQE_LOC_QP_OP_ERR,
		       .qpn = s.a->qp->qpn);
		scene_end(&s);
	}
}

/*
 * The device was removed: posted work is flushed in all QPs except in RESET, no time-out and no
 * event is left, nothing is sent.
 */
static void engine_fail__flushes_all(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make(&o, "engine_fail__flushes_all");
	struct side idle = side_create(s.a->node, &o, NULL);
	u8 frame[PACKET_FRAME_MAX];

	scene_post(&s, 1, WR_WRITE, 8);
	/* and lost */
	check(s.w, engine_output(s.a->node->engine, frame, sizeof(frame), s.w->now_ns) > 0);
	post_recv_buffer(s.a, 2, s.local, 0, 8);
	engine_fail(s.a->node->engine);
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 1);
	expect(s.w, s.a->send, 0, .wr_id = 1, .status = CQE_WR_FLUSH_ERR,
	       .vendor_err = VERR_FLUSHED, .qpn = s.a->qp->qpn);
	check_eq(s.w, s.a->recv->n, 1);
	expect(s.w, s.a->recv, 0, .wr_id = 2, .status = CQE_WR_FLUSH_ERR,
	       .vendor_err = VERR_FLUSHED, .qpn = s.a->qp->qpn);
	check_eq(s.w, qp_state(s.a->qp), QPS_ERR);
	check_eq(s.w, qp_state(idle.qp), QPS_RESET);
	check_eq(s.w, world_deadline_ns(s.a->node), NSEC_NEVER);
	check_eq(s.w, s.b->node->stats.rx_packets, 0);
	side_destroy(&idle);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(max_rd_atomic__zero),
		cmocka_unit_test(rem_access_err__both_sides),
		cmocka_unit_test(zero_length__needs_no_key),
		cmocka_unit_test(receive_short__both_sides),
		cmocka_unit_test(receive_bad_lkey__both_sides),
		cmocka_unit_test(loc_prot_err__after_what_came_before),
		cmocka_unit_test(read__needs_local_write),
		cmocka_unit_test(region__gone_under_a_message),
		cmocka_unit_test(steering__silent_and_counted),
		cmocka_unit_test(response__unasked_is_dropped),
		cmocka_unit_test(response__of_the_wrong_kind_or_length),
		cmocka_unit_test(engine_fail__flushes_all),
	};

	return cmocka_run_group_tests_name("errors", tests, NULL, NULL);
}
