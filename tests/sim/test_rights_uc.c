/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * Access rights on UC, which has no NAK (IBTA 9.9.3): a WRITE without its right is dropped and
 * counted, once for its message; nothing of it is written, no receive is consumed, both QPs go on,
 * and neither application is notified. SENDs need no right of a key or of the QP.
 */
#include "raw.h"
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

#define PMTU   256
#define BYTES  4096
#define FAR_AT 2048u /* where WRITEs go; receives are before it */
#define RIGHTS (MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC)

enum key_of { REGION, TYPE_1, TYPE_2, KEYS };

static struct pair_options options(struct srq *srq)
{
	struct pair_options o = pair_defaults();

	o.transport = XROCE_UC;
	o.pmtu = PMTU;
	o.srq[1] = srq;
	return o;
}

/* The i-th subset of RIGHTS, whose bits follow each other. */
static u32 rights_of(u32 i)
{
	return i * MR_REMOTE_WRITE;
}

/* A key with these rights to all of the far buffer; *mw is removed by the caller. */
static u32 key_with(struct scene *s, enum key_of kind, u32 access, struct mr **mw)
{
	struct mr_table *t = engine_mr_table(s->w->node[1].engine);
	struct buffer *far = s->remote;

	*mw = NULL;
	far->mr->access = MR_LOCAL_WRITE | (kind == REGION ? access : MR_MW_BIND);
	if (kind == REGION)
		return far->mr->key;
	assert_int_equal(mw_add(t, PAIR_PD, kind == TYPE_1 ? MR_WINDOW_1 : MR_WINDOW_2, mw), 0);
	assert_int_equal(mw_bind(t, *mw, (*mw)->key + 1, far->mr->key, buffer_va(far), BYTES,
				 access, s->b->qp->qpn),
			 0);
	return (*mw)->key;
}

static void request(struct scene *s, u64 wr_id, enum wr_opcode opcode, u32 key, u32 len)
{
	const u32 n = s->a->send->n;
	struct send send = scene_request(s, wr_id, opcode, len);

	send.remote_addr = buffer_va(s->remote) + FAR_AT;
	send.rkey = key;
	send.imm = htobe32(5);
	post_send(s->a, &send);
	world_run(s->w);
	/* the requester hears nothing, whatever becomes of it */
	check_eq(s->w, s->a->send->n, n + 1);
	expect(s->w, s->a->send, n, .wr_id = wr_id,
	       .opcode = opcode == WR_SEND ? CQE_SEND : CQE_WRITE, .byte_len = len,
	       .qpn = s->a->qp->qpn);
}

/* A SEND takes this receive, the oldest one: none has been consumed before it. */
static void send_takes(struct scene *s, u64 recv_id)
{
	const u32 n = s->b->recv->n;

	request(s, 3, WR_SEND, 0, 20);
	check_eq(s->w, s->b->recv->n, n + 1);
	expect(s->w, s->b->recv, n, .wr_id = recv_id, .opcode = CQE_RECV, .byte_len = 20,
	       .qpn = s->b->qp->qpn, .src_qpn = s->a->qp->qpn);
}

static void one(struct scene *s, u32 key, bool imm, u32 len, bool may)
{
	const struct xroce_drops was = s->b->node->drops;
	const u32 n = s->b->recv->n, packets = len ? (len + PMTU - 1) / PMTU : 1;

	memset(s->remote->bytes, 0xee, BYTES);
	post_recv_buffer(s->b, 70, s->remote, 0, 64);
	request(s, 2, imm ? WR_WRITE_WITH_IMM : WR_WRITE, key, len);
	check_eq(s->w, s->b->recv->n, n + (imm && may));
	if (imm && may) {
		expect(s->w, s->b->recv, n, .wr_id = 70, .opcode = CQE_RECV_WITH_IMM,
		       .byte_len = len, .qpn = s->b->qp->qpn, .flags = CQE_WITH_IMM,
		       .imm = htobe32(5));
		post_recv_buffer(s->b, 71, s->remote, 0, 64);
	}
	if (may)
		check(s->w, memcmp(s->remote->bytes + FAR_AT, s->local->bytes, len) == 0);
	for (u32 i = FAR_AT; i < (may ? FAR_AT : FAR_AT + len); i++)
		check_eq(s->w, s->remote->bytes[i], 0xee);
	check_eq(s->w, s->remote->bytes[FAR_AT + len], 0xee);
	send_takes(s, imm && may ? 71 : 70);
	/* the message's first packet is counted for its right, the others for their opcode */
	check_eq(s->w, s->b->node->drops.access - was.access, !may);
	check_eq(s->w, s->b->node->drops.sequence - was.sequence, may ? 0 : packets - 1);
	check_eq(s->w, s->b->node->drops.length, was.length);
}

static void write__key_and_queue_pair(void **state)
{
	static const u32 sizes[] = { 0, 8, PMTU, 2 * PMTU + 9 };

	for (u32 row = 0; row < KEYS * 8 * 8; row++) {
		const enum key_of kind = row % KEYS;
		const u32 of_key = rights_of(row / KEYS % 8), of_qp = rights_of(row / KEYS / 8);
		struct world *w = world_create(2, 41);
		struct pair_options o = options(NULL);
		struct scene s;
		struct mr *mw;
		u32 key;

		world_label(w, "test_rights_uc key %d %x qp %x", kind, of_key, of_qp);
		o.access = of_qp;
		s = scene_in(w, &o, BYTES);
		key = key_with(&s, kind, of_key, &mw);
		for (u32 i = 0; i < 2 * ARRAY_SIZE(sizes); i++) {
			const u32 len = sizes[i / 2];

			/* no bytes need no key; the QP's right they do */
			one(&s, key, i & 1, len,
			    of_qp & MR_REMOTE_WRITE && (!len || of_key & MR_REMOTE_WRITE));
		}
		check_eq(w, qp_state(s.a->qp), QPS_RTS);
		check_eq(w, qp_state(s.b->qp), QPS_RTS);
		check_eq(w, world_events(s.b->node, EVENT_QP_ACCESS_ERR, NULL), 0);
		check_eq(w, world_events(s.b->node, EVENT_QP_REQ_ERR, NULL), 0);
		if (mw)
			mr_remove(engine_mr_table(w->node[1].engine), mw);
		scene_end(&s);
	}
}

/*
 * An SRQ's receives belong to its other QPs, too: a refused message consumes none, neither a whole
 * one nor one whose region is deregistered, or loses its right, before the immediate data comes.
 */
static void write_imm__refused_leaves_the_srq_its_receive(void **state)
{
	enum { NO_RIGHT_OF_QP, NO_RIGHT_OF_KEY, UNKNOWN_KEY, RIGHT_GOES, CASES };

	for (u32 i = 0; i < 2 * CASES; i++) {
		const u32 kind = i / 2, packets = kind == RIGHT_GOES ? 2 : 1 + i % 2;
		struct pair_options o = options(NULL);
		struct raw r = raw_create(&o, "refused on an srq");
		struct srq *srq = world_srq(r.s.node, 8);
		struct sge sge = buffer_sge(r.mem, 0, 64);
		struct packet p;

		world_label(r.w, "test_rights_uc srq, case %u", i);
		side_destroy(&r.s);
		r.s = side_create(r.s.node, &o, srq);
		o.access = kind == NO_RIGHT_OF_QP ? MR_REMOTE_READ : o.access;
		side_init(&r.s, &o);
		side_rtr(&r.s, &o, 0, RAW_PEER_QPN, RAW_PSN);
		side_rts(&r.s, &o, RAW_SQ_PSN);
		post_srq_recv(srq, 70, &sge, 1);
		memset(r.mem->bytes, 0xee, BYTES);
		if (kind == NO_RIGHT_OF_KEY)
			r.mem->mr->access = MR_LOCAL_WRITE | MR_REMOTE_READ;
		p = raw_access(&r, UC(WRITE_ONLY_IMM), RAW_PSN, FAR_AT, 8);
		p.rkey ^= kind == UNKNOWN_KEY;
		if (packets == 2) {
			p.opcode = UC(WRITE_FIRST);
			p.dma_len = PMTU + 8;
			check_eq(r.w, raw_send(&r, p, NULL, PMTU),
				 kind == RIGHT_GOES ? XROCE_DROP_none : XROCE_DROP_access);
			if (kind == RIGHT_GOES)
				r.mem->mr->access = i % 2 ? 0 : MR_LOCAL_WRITE | MR_REMOTE_READ;
			p = (struct packet){ .opcode = UC(WRITE_LAST_IMM), .psn = RAW_PSN + 1 };
		}
		check_eq(r.w, raw_send(&r, p, NULL, 8),
			 packets == 1 || kind == RIGHT_GOES ? XROCE_DROP_access :
							      XROCE_DROP_sequence);
		check_eq(r.w, rq_posted(&srq->rq), 1);
		check_eq(r.w, r.s.recv->n, 0);
		check_eq(r.w, r.mem->bytes[FAR_AT + (packets == 2 ? PMTU : 0)], 0xee);
		check_eq(r.w, qp_state(r.s.qp), QPS_RTS);
		expect_silence(&r);
		raw_destroy(&r);
		world_srq_destroy(srq);
	}
}

/* A type 2 window of one UC QP is no key of another; one of type 1 is every QP's of its PD. */
static void window__whom_it_opens_for(void **state)
{
	for (enum key_of kind = TYPE_1; kind <= TYPE_2; kind++) {
		struct world *w = world_create(2, 43);
		struct pair_options o = options(NULL);
		struct scene s = scene_in(w, &o, BYTES), other = s;
		struct pair p = pair_connect(w, &o);
		struct mr *mw;
		u32 key;

		world_label(w, "test_rights_uc window of type %d", kind);
		other.a[0] = p.side[0];
		other.b[0] = p.side[1];
		key = key_with(&s, kind, MR_REMOTE_WRITE, &mw);
		one(&s, key, true, 8, true);
		one(&other, key, true, 8, kind == TYPE_1);
		one(&s, key, false, 8, true);
		check_eq(w, qp_state(p.side[1].qp), QPS_RTS);
		check_eq(w, qp_state(s.b->qp), QPS_RTS);
		pair_destroy(&p);
		mr_remove(engine_mr_table(w->node[1].engine), mw);
		scene_end(&s);
	}
}

/*
 * READ, the atomics, ATOMIC WRITE and FLUSH are no requests of UC: its requester refuses them in
 * their turn and is in SQE; nothing leaves.
 */
static void others__fail_at_the_requester(void **state)
{
	static const enum wr_opcode opcodes[] = { WR_READ, WR_CMP_SWAP, WR_FETCH_ADD,
						  WR_ATOMIC_WRITE, WR_FLUSH };

	for (u32 i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct world *w = world_create(2, 47);
		struct pair_options o = options(NULL);
		struct scene s = scene_in(w, &o, BYTES);
		struct send send = scene_request(&s, 2, opcodes[i], 8);

		world_label(w, "test_rights_uc operation %u", opcodes[i]);
		if (opcodes[i] == WR_ATOMIC_WRITE || opcodes[i] == WR_FLUSH) {
			send.num_sge = 0;
			send.length = 8;
			send.compare_add = 1;
		}
		check_eq(w, try_post_send(s.a, &send), 0);
		world_run(w);
		check_eq(w, s.a->send->n, 1);
		expect(w, s.a->send, 0, .wr_id = 2, .status = CQE_LOC_QP_OP_ERR,
		       .vendor_err = VERR_REQUEST, .qpn = s.a->qp->qpn);
		check_eq(w, qp_state(s.a->qp), QPS_SQE);
		check_eq(w, w->node[0].stats.tx_packets, 0);
		check_eq(w, side_state(s.a, QPS_RTS), 0);
		one(&s, s.remote->mr->key, true, 8, true);
		scene_end(&s);
	}
}

/* A peer that sends them all the same, as packets that UC has not, or of another service. */
static void others__are_no_packets_of_uc(void **state)
{
	static const u8 low[] = { OP5_READ_REQUEST, OP5_CMP_SWAP, OP5_FETCH_ADD, OP5_ATOMIC_WRITE,
				  OP5_FLUSH };
	static const enum xroce_transport as[] = { XROCE_UC, XROCE_RC, XROCE_XRC };

	for (u32 i = 0; i < ARRAY_SIZE(low) * ARRAY_SIZE(as); i++) {
		const enum xroce_transport transport = as[i / ARRAY_SIZE(low)];
		const u8 op = low[i % ARRAY_SIZE(low)];
		struct pair_options o = options(NULL);
		struct raw r = raw_create(&o, "no packets of uc");
		struct packet p = raw_access(&r, OPCODE(transport, op), RAW_PSN, FAR_AT, 8);

		world_label(r.w, "test_rights_uc packet %u of transport %u", op, transport);
		p.compare = p.swap_add = 1;
		p.flush = 1;
		check_eq(r.w, raw_send(&r, p, NULL, op == OP5_ATOMIC_WRITE ? 8 : 0),
			 transport == XROCE_UC ? XROCE_DROP_opcode : XROCE_DROP_qp_transport);
		check(r.w, bytes_are(r.mem->bytes, BYTES, 1));
		check_eq(r.w, qp_state(r.s.qp), QPS_RTS);
		expect_silence(&r);
		raw_destroy(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write__key_and_queue_pair),
		cmocka_unit_test(write_imm__refused_leaves_the_srq_its_receive),
		cmocka_unit_test(window__whom_it_opens_for),
		cmocka_unit_test(others__fail_at_the_requester),
		cmocka_unit_test(others__are_no_packets_of_uc),
	};

	return cmocka_run_group_tests_name("rights_uc", tests, NULL, NULL);
}
