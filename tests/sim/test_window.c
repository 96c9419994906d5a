/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * Memory windows, and the work requests that send nothing (BIND_MW, LOCAL_INV): the access that a
 * window grants and to which QPs, invalid binds, local and remote invalidation, and that a local
 * request is executed once and in its turn although the cursor goes back over it.
 * XROCE_SIM_MASK=forward:backward (hexadecimal) runs one loss mask.
 */
#include "pair.h"
#include "runs.h"

#include <setjmp.h>
#include <cmocka.h>

#define PMTU	256
#define FROM	1000u /* of the window in its region */
#define LENGTH	504u
#define OTHER_PD 9

struct scene {
	struct world *w;
	struct pair p;
	struct side *a, *b;	/* a asks, b has the window */
	struct buffer *local, *region;
	struct mr *mw;
};

static struct pair_options options(enum xroce_transport transport)
{
	struct pair_options o = pair_defaults();

	o.transport = transport;
	o.pmtu = PMTU;
	o.timeout = 10;
	return o;
}

static void scene_open(struct scene *s, enum mr_kind kind, enum xroce_transport transport)
{
	struct pair_options o = options(transport);

	*s = (struct scene){ .w = world_create(2, 29) };
	s->p = pair_connect(s->w, &o);
	s->a = &s->p.side[0];
	s->b = &s->p.side[1];
	s->local = world_buffer(&s->w->node[0], 4096, PAIR_ACCESS_ALL | MR_MW_BIND);
	s->region = world_buffer(&s->w->node[1], 4096, PAIR_ACCESS_ALL | MR_MW_BIND);
	assert_int_equal(mw_add(engine_mr_table(s->w->node[1].engine), PAIR_PD, kind, &s->mw), 0);
}

static void scene_close(struct scene *s)
{
	pair_destroy(&s->p);
	mr_remove(engine_mr_table(s->w->node[1].engine), s->mw);
	check_eq(s->w, s->region->mr->windows, 0);
	world_destroy(s->w);
}

/* The next key of a window: the low 8 bits are the application's to choose. */
static u32 next_key(u32 key)
{
	return (key & ~0xffu) | ((key + 1) & 0xff);
}

static struct send bind_request(const struct mr *mw, const struct buffer *region, u32 from,
				u32 length, u32 access)
{
	struct send send = { .wr_id = 900, .opcode = WR_BIND_MW, .flags = WR_SIGNALED };

	send.bind.mw_key = mw->key;
	send.bind.new_key = next_key(mw->key);
	send.bind.lkey = region->mr->key;
	send.bind.access = access;
	send.bind.addr = buffer_va(region) + from;
	send.bind.length = length;
	return send;
}

static struct send local_inv(u32 key)
{
	return (struct send){
		.wr_id = 901, .opcode = WR_LOCAL_INV, .flags = WR_SIGNALED, .inv_rkey = key
	};
}

/* Post on the window's side; the completion's status. */
static u32 run_local(struct scene *s, struct send send)
{
	u32 n = s->b->send->n;

	post_send(s->b, &send);
	world_run(s->w);
	check_eq(s->w, s->b->send->n, n + 1);
	check_eq(s->w, s->b->send->log[n].wr_id, send.wr_id);
	return s->b->send->log[n].status;
}

static void bind(struct scene *s, u32 access)
{
	u32 key = s->mw->key;

	check_eq(s->w, run_local(s, bind_request(s->mw, s->region, FROM, LENGTH, access)),
		 CQE_SUCCESS);
	expect(s->w, s->b->send, s->b->send->n - 1, .wr_id = 900, .opcode = CQE_BIND_MW,
	       .qpn = s->b->qp->qpn);
	check_eq(s->w, s->mw->key, next_key(key));
	check_eq(s->w, s->region->mr->windows, 1);
}

static struct send remote(struct scene *s, enum wr_opcode opcode, u32 key, u64 va, u32 len)
{
	return (struct send){ .wr_id = 7,
			      .opcode = opcode,
			      .flags = WR_SIGNALED,
			      .num_sge = 1,
			      .sge = { buffer_sge(s->local, 0, len) },
			      .remote_addr = va,
			      .rkey = key,
			      .compare_add = 1 };
}

/* The status of one remote access to offset of the region by key. */
static u32 access_as(struct scene *s, struct side *from, enum wr_opcode opcode, u32 key, u64 va,
		     u32 len)
{
	u32 n = from->send->n;
	struct send send = remote(s, opcode, key, va, len);

	post_send(from, &send);
	world_run(s->w);
	check_eq(s->w, from->send->n, n + 1);
	return from->send->log[n].status;
}

static u32 access(struct scene *s, enum wr_opcode opcode, u32 key, u32 offset, u32 len)
{
	return access_as(s, s->a, opcode, key, buffer_va(s->region) + offset, len);
}

/* Rights and bounds, for both types. Offsets are from the region's start. */
static void window__opens_what_was_bound_and_no_more(void **state)
{
	static const struct {
		u32 rights;
		enum wr_opcode opcode;
		u32 offset, len;
		bool allowed;
	} cases[] = {
		{ MR_REMOTE_WRITE, WR_WRITE, FROM, LENGTH, true },
		{ MR_REMOTE_WRITE, WR_WRITE, FROM + LENGTH - 1, 1, true },
		{ MR_REMOTE_WRITE, WR_WRITE, FROM - 1, 1, false },
		{ MR_REMOTE_WRITE, WR_WRITE, FROM, LENGTH + 1, false },
		{ MR_REMOTE_WRITE, WR_WRITE, FROM + LENGTH, 1, false },
		{ MR_REMOTE_WRITE, WR_READ, FROM, 8, false },
		{ MR_REMOTE_WRITE, WR_FETCH_ADD, FROM, 8, false },
		{ MR_REMOTE_READ, WR_READ, FROM, LENGTH, true },
		{ MR_REMOTE_READ, WR_READ, FROM + 1, LENGTH, false },
		{ MR_REMOTE_READ, WR_WRITE, FROM, 8, false },
		{ MR_REMOTE_ATOMIC, WR_FETCH_ADD, FROM, 8, true },
		{ MR_REMOTE_ATOMIC, WR_CMP_SWAP, FROM + LENGTH - 8, 8, true },
		{ MR_REMOTE_ATOMIC, WR_CMP_SWAP, FROM + LENGTH, 8, false },
		{ MR_REMOTE_ATOMIC, WR_WRITE, FROM, 8, false },
		{ 0, WR_READ, FROM, 8, false },
		{ 0, WR_WRITE, FROM - 900, 0, true }, /* no bytes need no key */
	};

	for (u32 i = 0; i < ARRAY_SIZE(cases); i++)
		for (enum mr_kind kind = MR_WINDOW_1; kind <= MR_WINDOW_2; kind++) {
			struct scene s;
			u32 status;

			scene_open(&s, kind, XROCE_RC);
			world_label(s.w, "test_window opens case %u type %d", i, kind);
			bind(&s, cases[i].rights);
			status = access(&s, cases[i].opcode, s.mw->key, cases[i].offset,
					cases[i].len);
			check_eq(s.w, status, cases[i].allowed ? CQE_SUCCESS : CQE_REM_ACCESS_ERR);
			check_eq(s.w, world_events(&s.w->node[1], EVENT_QP_ACCESS_ERR, s.b->qp),
				 !cases[i].allowed);
			if (cases[i].opcode == WR_WRITE && cases[i].allowed)
				check(s.w, memcmp(s.region->bytes + cases[i].offset, s.local->bytes,
						  cases[i].len) == 0);
			else if (cases[i].opcode != WR_FETCH_ADD)
				check(s.w, bytes_are(s.region->bytes, s.region->len, 1));
			scene_close(&s);
		}
}

static void zero_based__addresses_start_from_0(void **state)
{
	struct scene s;

	scene_open(&s, MR_WINDOW_2, XROCE_RC);
	world_label(s.w, "test_window zero based");
	bind(&s, MR_REMOTE_WRITE | MR_ZERO_BASED);
	check_eq(s.w, access_as(&s, s.a, WR_WRITE, s.mw->key, 4, LENGTH - 4), CQE_SUCCESS);
	check(s.w, memcmp(s.region->bytes + FROM + 4, s.local->bytes, LENGTH - 4) == 0);
	check_eq(s.w, access_as(&s, s.a, WR_WRITE, s.mw->key, buffer_va(s.region) + FROM, 4),
		 CQE_REM_ACCESS_ERR);
	scene_close(&s);
}

/* A window is no L_Key. */
static void window__is_for_remote_use_only(void **state)
{
	struct scene s;
	struct send send;

	scene_open(&s, MR_WINDOW_1, XROCE_RC);
	world_label(s.w, "test_window lkey");
	bind(&s, MR_REMOTE_WRITE | MR_REMOTE_READ);
	send = (struct send){
		.wr_id = 3,
		.opcode = WR_WRITE,
		.flags = WR_SIGNALED,
		.num_sge = 1,
		.sge = { { .addr = buffer_va(s.region) + FROM, .length = 8, .lkey = s.mw->key } },
		.remote_addr = buffer_va(s.local),
		.rkey = s.local->mr->key
	};
	check_eq(s.w, run_local(&s, send), CQE_LOC_PROT_ERR);
	scene_close(&s);
}

static void type_1__is_bound_anew_and_unbound(void **state)
{
	struct scene s;
	u32 old;

	scene_open(&s, MR_WINDOW_1, XROCE_RC);
	world_label(s.w, "test_window rebind");
	bind(&s, MR_REMOTE_WRITE);
	old = s.mw->key;
	check_eq(s.w, access(&s, WR_WRITE, old, FROM, 8), CQE_SUCCESS);
	check_eq(s.w, run_local(&s, bind_request(s.mw, s.region, 0, 16, MR_REMOTE_WRITE)),
		 CQE_SUCCESS);
	check_eq(s.w, s.region->mr->windows, 1);
	check_eq(s.w, access(&s, WR_WRITE, s.mw->key, 0, 16), CQE_SUCCESS);
	/* unbound by length 0: its new key opens nothing, and nothing holds the region */
	check_eq(s.w, run_local(&s, bind_request(s.mw, s.region, 0, 0, MR_REMOTE_WRITE)),
		 CQE_SUCCESS);
	check_eq(s.w, s.region->mr->windows, 0);
	check_eq(s.w, access(&s, WR_WRITE, s.mw->key, 0, 1), CQE_REM_ACCESS_ERR);
	scene_close(&s);

	scene_open(&s, MR_WINDOW_1, XROCE_RC);
	world_label(s.w, "test_window old key");
	bind(&s, MR_REMOTE_WRITE);
	old = s.mw->key;
	bind(&s, MR_REMOTE_WRITE);
	check_eq(s.w, access(&s, WR_WRITE, old, FROM, 8), CQE_REM_ACCESS_ERR);
	scene_close(&s);
}

/* QP, window and region are of one PD. */
static void bind__needs_one_pd(void **state)
{
	for (enum mr_kind kind = MR_WINDOW_1; kind <= MR_WINDOW_2; kind++)
		for (u32 others = 0; others < 4; others++) {
			struct buffer *region;
			struct mr *mw;
			struct scene s;

			scene_open(&s, kind, XROCE_RC);
			world_label(s.w, "test_window one pd, type %d, others %u", kind, others);
			region = world_buffer_pd(&s.w->node[1], 4096, PAIR_ACCESS_ALL | MR_MW_BIND,
						 others & 1 ? OTHER_PD : PAIR_PD);
			assert_int_equal(mw_add(engine_mr_table(s.w->node[1].engine),
						others & 2 ? OTHER_PD : PAIR_PD, kind, &mw),
					 0);
			check_eq(s.w,
				 run_local(&s,
					   bind_request(mw, region, FROM, LENGTH, MR_REMOTE_WRITE)),
				 others ? CQE_MW_BIND_ERR : CQE_SUCCESS);
			check_eq(s.w, region->mr->windows, others == 0);
			check_eq(s.w, qp_state(s.b->qp), others ? QPS_ERR : QPS_RTS);
			mr_remove(engine_mr_table(s.w->node[1].engine), mw);
			scene_close(&s);
		}
}

/* Type 2 belongs to the QP that bound it, type 1 to the PD. */
static void window__whom_it_opens_for(void **state)
{
	for (enum mr_kind kind = MR_WINDOW_1; kind <= MR_WINDOW_2; kind++)
		for (u32 pd = 0; pd < 2; pd++) {
			struct pair_options o = options(XROCE_RC);
			struct scene s;
			struct pair other;
			bool allowed = kind == MR_WINDOW_1 && !pd;

			scene_open(&s, kind, XROCE_RC);
			world_label(s.w, "test_window other qp type %d pd %u", kind, pd);
			other = pair_connect(s.w, &o);
			if (pd) {
				pair_destroy(&other);
				o.pd = OTHER_PD;
				other = pair_connect(s.w, &o);
			}
			bind(&s, MR_REMOTE_READ | MR_REMOTE_WRITE);
			if (pd) /* the requester's own memory is then of the other PD as well */
				s.local = world_buffer_pd(&s.w->node[0], 4096, PAIR_ACCESS_ALL,
							  OTHER_PD);
			check_eq(s.w,
				 access_as(&s, &other.side[0], WR_WRITE, s.mw->key,
					   buffer_va(s.region) + FROM, 8),
				 allowed ? CQE_SUCCESS : CQE_REM_ACCESS_ERR);
			pair_destroy(&other);
			scene_close(&s);
		}
}

static void local_inv__closes_a_type_2_window(void **state)
{
	struct scene s;
	u32 key;

	scene_open(&s, MR_WINDOW_2, XROCE_RC);
	world_label(s.w, "test_window local inv");
	bind(&s, MR_REMOTE_WRITE);
	key = s.mw->key;
	check_eq(s.w, access(&s, WR_WRITE, key, FROM, 8), CQE_SUCCESS);
	check_eq(s.w, run_local(&s, local_inv(key)), CQE_SUCCESS);
	expect(s.w, s.b->send, 1, .wr_id = 901, .opcode = CQE_LOCAL_INV, .qpn = s.b->qp->qpn);
	check_eq(s.w, s.region->mr->windows, 0);
	bind(&s, MR_REMOTE_WRITE); /* free again */
	check_eq(s.w, run_local(&s, local_inv(s.mw->key)), CQE_SUCCESS);
	check_eq(s.w, access(&s, WR_WRITE, s.mw->key, FROM, 8), CQE_REM_ACCESS_ERR);
	scene_close(&s);
}

/*
 * A local request of b that is refused fails in its turn, after a WRITE that needs a repair, and
 * although unsignaled; later requests are flushed.
 */
static void check_refused(struct scene *s, struct side *b, const struct send *local,
			  enum cqe_status status)
{
	struct send list[3] = { request_between(s->region, s->local, 1, WR_WRITE, 3 * PMTU),
				*local };

	list[1].flags = 0;
	list[2] = list[0];
	list[2].wr_id = 2;
	b->send->n = 0;
	s->w->node[1].to[0].count = 0;
	s->w->node[1].to[0].drop = 2;
	post_sends(b, list, 3);
	world_run(s->w);
	check_eq(s->w, b->send->n, 3);
	expect(s->w, b->send, 0, .wr_id = 1, .opcode = CQE_WRITE, .byte_len = 3 * PMTU,
	       .qpn = b->qp->qpn);
	expect(s->w, b->send, 1, .wr_id = local->wr_id, .status = status, .qpn = b->qp->qpn);
	expect(s->w, b->send, 2, .wr_id = 2, .status = CQE_WR_FLUSH_ERR, .qpn = b->qp->qpn);
}

/* What a LOCAL_INV may not name. */
static void local_inv__refused(void **state)
{
	enum { UNBOUND, REGION, UNKNOWN, OLD_KEY, TYPE_1, OTHER_QP, CASES };

	for (u32 i = 0; i < CASES; i++) {
		struct pair_options o = options(XROCE_RC);
		struct scene s;
		struct pair other;
		struct send inv;

		scene_open(&s, i == TYPE_1 ? MR_WINDOW_1 : MR_WINDOW_2, XROCE_RC);
		world_label(s.w, "test_window local inv refused %u", i);
		other = pair_connect(s.w, &o);
		if (i != UNBOUND)
			bind(&s, MR_REMOTE_WRITE);
		inv = local_inv(i == REGION  ? s.region->mr->key :
				i == UNKNOWN ? 0x77777777 :
				i == OLD_KEY ? s.mw->key - 1 :
					       s.mw->key);
		check_refused(&s, i == OTHER_QP ? &other.side[1] : s.b, &inv, CQE_LOC_QP_OP_ERR);
		check_eq(s.w, s.mw->region != NULL, i != UNBOUND);
		pair_destroy(&other);
		scene_close(&s);
	}
}

/* Each reason to refuse a bind; the window is as it was. */
static void bind__refused_in_order(void **state)
{
	enum {
		NO_WINDOW,
		A_REGION,
		NO_REGION,
		REGION_PD,
		WINDOW_PD,
		TOO_LONG,
		BEFORE,
		OVERFLOW,
		NO_BIND_RIGHT,
		NO_LOCAL_WRITE,
		BAD_RIGHT,
		EMPTY,
		BOUND,
		ONTO_A_WINDOW,
		CASES
	};

	for (u32 i = 0; i < CASES; i++) {
		struct scene s;
		struct send send;
		struct buffer *region;
		struct mr *mw = NULL;
		struct mr_table *t;

		scene_open(&s, MR_WINDOW_2, XROCE_RC);
		world_label(s.w, "test_window bind refused %u", i);
		t = engine_mr_table(s.w->node[1].engine);
		region = i == NO_BIND_RIGHT ?
				 world_buffer(&s.w->node[1], 4096, PAIR_ACCESS_ALL) :
			 i == NO_LOCAL_WRITE ?
				 world_buffer(&s.w->node[1], 4096, MR_REMOTE_READ | MR_MW_BIND) :
			 i == REGION_PD ? world_buffer_pd(&s.w->node[1], 4096,
							  PAIR_ACCESS_ALL | MR_MW_BIND, OTHER_PD) :
					  s.region;
		if (i == BOUND)
			bind(&s, MR_REMOTE_READ);
		if (i == WINDOW_PD || i == ONTO_A_WINDOW)
			assert_int_equal(
				mw_add(t, i == WINDOW_PD ? OTHER_PD : PAIR_PD, MR_WINDOW_1, &mw),
				0);
		if (i == ONTO_A_WINDOW)
			assert_int_equal(mw_bind(t, mw, mw->key, s.region->mr->key,
						 buffer_va(s.region), 4096, MR_REMOTE_WRITE, 0),
					 0);
		send = bind_request(i == WINDOW_PD ? mw : s.mw, region, FROM, LENGTH,
				    MR_REMOTE_WRITE);
		switch (i) {
		case NO_WINDOW:
			send.bind.mw_key = 0x77777777;
			break;
		case A_REGION:
			send.bind.mw_key = s.region->mr->key;
			send.bind.new_key = next_key(s.region->mr->key);
			break;
		case NO_REGION:
			send.bind.lkey = 0x77777777;
			break;
		case TOO_LONG:
			send.bind.length = 4096 - FROM + 1;
			break;
		case BEFORE:
			send.bind.addr = buffer_va(s.region) - 1;
			break;
		case OVERFLOW:
			send.bind.length = ~0ull;
			break;
		case BAD_RIGHT:
			send.bind.access |= MR_LOCAL_WRITE;
			break;
		case EMPTY:
			send.bind.length = 0;
			break;
		case ONTO_A_WINDOW:
			send.bind.lkey = mw->key;
			break;
		}
		check_refused(&s, s.b, &send, CQE_MW_BIND_ERR);
		check_eq(s.w, s.mw->region != NULL, i == BOUND);
		if (mw)
			mr_remove(t, mw);
		scene_close(&s);
	}
}

/*
 * The application chooses 8 bits of the new key; the window keeps the others, whatever the
 * application passes.
 */
static void bind__takes_the_low_bits_of_its_key(void **state)
{
	static const u32 asked[] = { 0, 1024, 0xff, 0xffffffff, 0x12345678 };

	for (u32 i = 0; i < ARRAY_SIZE(asked); i++) {
		struct scene s;
		struct send send;
		u32 upper, key;

		scene_open(&s, MR_WINDOW_2, XROCE_RC);
		world_label(s.w, "test_window low bits of %08x", asked[i]);
		upper = s.mw->key & ~0xffu;
		key = upper | (asked[i] & 0xff);
		send = bind_request(s.mw, s.region, FROM, LENGTH, MR_REMOTE_WRITE);
		send.bind.new_key = asked[i];
		check_eq(s.w, run_local(&s, send), CQE_SUCCESS);
		check_eq(s.w, s.mw->key, key);
		check_eq(s.w, access(&s, WR_WRITE, key, FROM, LENGTH), CQE_SUCCESS);
		check_eq(s.w, run_local(&s, local_inv(key ^ 1)), CQE_LOC_QP_OP_ERR);
		check(s.w, s.mw->region != NULL);
		scene_close(&s);
	}
}

/* ---- closed from afar ---- */

static void send_with_inv__closes_and_says_so(void **state)
{
	for (u32 packets = 1; packets <= 3; packets++) {
		u32 len = packets * PMTU - 1, key;
		struct scene s;
		struct send send;

		scene_open(&s, MR_WINDOW_2, XROCE_RC);
		world_label(s.w, "test_window send with inv %u packets", packets);
		bind(&s, MR_REMOTE_WRITE);
		key = s.mw->key;
		post_recv_buffer(s.b, 30, s.region, 2048, 1024);
		send = remote(&s, WR_SEND_WITH_INV, 0, 0, len);
		send.inv_rkey = key;
		post_send(s.a, &send);
		world_run(s.w);
		expect(s.w, s.a->send, 0, .wr_id = 7, .opcode = CQE_SEND, .byte_len = len,
		       .qpn = s.a->qp->qpn);
		expect(s.w, s.b->recv, 0, .wr_id = 30, .opcode = CQE_RECV, .byte_len = len,
		       .qpn = s.b->qp->qpn, .src_qpn = s.a->qp->qpn, .flags = CQE_WITH_INV,
		       .imm = key);
		check_eq(s.w, s.region->mr->windows, 0);
		check_eq(s.w, access(&s, WR_WRITE, key, FROM, 8), CQE_REM_ACCESS_ERR);
		scene_close(&s);
	}
}

static void send_with_inv__refused(void **state)
{
	enum { UNBOUND, REGION, UNKNOWN, TYPE_1, OTHER_QP, CASES };

	for (u32 i = 0; i < CASES; i++)
		for (u32 packets = 1; packets <= 2; packets++) {
			struct pair_options o = options(XROCE_RC);
			struct scene s;
			struct pair other;
			struct side *a, *b;
			struct send send;

			scene_open(&s, i == TYPE_1 ? MR_WINDOW_1 : MR_WINDOW_2, XROCE_RC);
			world_label(s.w, "test_window send with inv refused %u", i);
			other = pair_connect(s.w, &o);
			a = i == OTHER_QP ? &other.side[0] : s.a;
			b = i == OTHER_QP ? &other.side[1] : s.b;
			if (i != UNBOUND)
				bind(&s, MR_REMOTE_WRITE);
			post_recv_buffer(b, 30, s.region, 2048, 1024);
			send = remote(&s, WR_SEND_WITH_INV, 0, 0, packets * PMTU);
			send.inv_rkey = i == REGION  ? s.region->mr->key :
					i == UNKNOWN ? 0x77777777 :
						       s.mw->key;
			post_send(a, &send);
			world_run(s.w);
			expect(s.w, a->send, 0, .wr_id = 7, .status = CQE_REM_ACCESS_ERR,
			       .qpn = a->qp->qpn);
			/* the receive of a message of one packet was not begun */
			expect(s.w, b->recv, 0, .wr_id = 30,
			       .status = packets == 1 ? CQE_WR_FLUSH_ERR : CQE_LOC_ACCESS_ERR,
			       .qpn = b->qp->qpn);
			check_eq(s.w, b->recv->n, 1);
			check_eq(s.w, world_events(&s.w->node[1], EVENT_QP_ACCESS_ERR, b->qp), 1);
			check_eq(s.w, s.mw->region != NULL, i != UNBOUND);
			pair_destroy(&other);
			scene_close(&s);
		}
}

/* ---- order ---- */

static void fence__holds_a_local_request(void **state)
{
	for (u32 fence = 0; fence < 2; fence++) {
		struct scene s;
		struct send list[2];

		scene_open(&s, MR_WINDOW_2, XROCE_RC);
		world_label(s.w, "test_window fence %u", fence);
		bind(&s, MR_REMOTE_WRITE);
		s.b->send->n = 0;
		list[0] = request_between(s.region, s.local, 1, WR_READ, 100);
		list[1] = local_inv(s.mw->key);
		list[1].flags |= fence ? WR_FENCE : 0;
		s.w->node[0].to[1].count = 0;
		s.w->node[0].to[1].drop = 1; /* the READ's response */
		post_sends(s.b, list, 2);
		world_run_for(s.w, 5 * WORLD_LATENCY_NS);
		check_eq(s.w, s.mw->region != NULL, fence);
		check_eq(s.w, s.b->send->n, 0); /* in order, executed or not */
		world_run(s.w);
		check_eq(s.w, s.b->send->n, 2);
		expect(s.w, s.b->send, 1, .wr_id = 901, .opcode = CQE_LOCAL_INV,
		       .qpn = s.b->qp->qpn);
		check(s.w, !s.mw->region);
		scene_close(&s);
	}
}

/* A drained send queue begins nothing, a local request neither. */
static void sqd__holds_a_local_request(void **state)
{
	struct scene s;
	struct send send;

	scene_open(&s, MR_WINDOW_2, XROCE_RC);
	world_label(s.w, "test_window sqd");
	check_eq(s.w, side_state(s.b, QPS_SQD), 0);
	send = bind_request(s.mw, s.region, FROM, LENGTH, MR_REMOTE_WRITE);
	post_send(s.b, &send);
	world_run(s.w);
	check(s.w, !s.mw->region);
	check_eq(s.w, s.b->send->n, 0);
	check_eq(s.w, side_state(s.b, QPS_RTS), 0);
	world_run(s.w);
	check(s.w, s.mw->region);
	check_eq(s.w, s.b->send->n, 1);
	scene_close(&s);
}

static void uc__has_local_requests_too(void **state)
{
	struct scene s;
	struct send list[4];

	scene_open(&s, MR_WINDOW_2, XROCE_UC);
	world_label(s.w, "test_window uc");
	list[0] = request_between(s.region, s.local, 1, WR_WRITE, 3 * PMTU);
	list[1] = bind_request(s.mw, s.region, FROM, LENGTH, MR_REMOTE_WRITE);
	list[2] = list[0];
	list[2].wr_id = 2;
	list[3] = local_inv(list[1].bind.new_key);
	post_sends(s.b, list, 4);
	world_run(s.w);
	check_eq(s.w, s.b->send->n, 4);
	expect(s.w, s.b->send, 0, .wr_id = 1, .opcode = CQE_WRITE, .byte_len = 3 * PMTU,
	       .qpn = s.b->qp->qpn);
	expect(s.w, s.b->send, 1, .wr_id = 900, .opcode = CQE_BIND_MW, .qpn = s.b->qp->qpn);
	expect(s.w, s.b->send, 2, .wr_id = 2, .opcode = CQE_WRITE, .byte_len = 3 * PMTU,
	       .qpn = s.b->qp->qpn);
	expect(s.w, s.b->send, 3, .wr_id = 901, .opcode = CQE_LOCAL_INV, .qpn = s.b->qp->qpn);
	scene_close(&s);
}

/*
 * A window is opened, used, invalidated remotely and opened again, with data before, between and
 * after, under loss: a bind or an invalidation executed twice would fail.
 */
static void run_mask(struct scene *s, u32 forward, u32 backward)
{
	bool must = masks_within_retries(forward, backward);
	struct pair_options o = options(XROCE_RC);
	static const struct { u64 wr_id; enum cqe_opcode opcode; u32 len;
	} done[] = {
		{ 900, CQE_BIND_MW, 0 },   { 1, CQE_SEND, PMTU + 9 }, { 901, CQE_LOCAL_INV, 0 },
		{ 2, CQE_READ, 2 * PMTU }, { 900, CQE_BIND_MW, 0 },   { 3, CQE_SEND, 30 },
		{ 901, CQE_LOCAL_INV, 0 },
	};
	struct send list[7];
	u32 i = 0, key = s->mw->key;

	o.psn[1] = (0xfffffd + forward) & ROCE_PSN_MASK;
	s->p = pair_connect(s->w, &o);
	s->w->node[1].to[0] = (struct faults){ .drop = forward };
	s->w->node[0].to[1] = (struct faults){ .drop = backward };
	post_recv_buffer(s->a, 40, s->local, 0, 1024);
	post_recv_buffer(s->a, 41, s->local, 1024, 1024);
	list[0] = bind_request(s->mw, s->region, FROM, LENGTH, MR_REMOTE_WRITE);
	list[1] = (struct send){ .wr_id = 1, .opcode = WR_SEND, .flags = WR_SIGNALED, .num_sge = 1,
				 .sge = { buffer_sge(s->region, 0, PMTU + 9) } };
	list[2] = local_inv(next_key(key));
	list[3] = (struct send){ .wr_id = 2,
				 .opcode = WR_READ,
				 .flags = WR_SIGNALED,
				 .num_sge = 1,
				 .sge = { buffer_sge(s->region, 2048, 2 * PMTU) },
				 .remote_addr = buffer_va(s->local) + 2048,
				 .rkey = s->local->mr->key };
	list[4] = list[0];
	list[4].bind.mw_key = next_key(key);
	list[4].bind.new_key = next_key(next_key(key));
	list[5] = list[1];
	list[5].wr_id = 3;
	list[5].sge[0].length = 30;
	list[6] = local_inv(list[4].bind.new_key);
	post_sends(s->b, list, 7);
	world_run(s->w);
	check_eq(s->w, s->b->send->n, 7);
	for (; i < 7 && s->b->send->log[i].status == CQE_SUCCESS; i++)
		expect(s->w, s->b->send, i, .wr_id = done[i].wr_id, .opcode = done[i].opcode,
		       .byte_len = done[i].len, .qpn = s->b->qp->qpn);
	if (i < 7) {
		check(s->w, !must && s->b->send->log[i].status == CQE_RETRY_EXC_ERR);
		/* what the failure cut off */
		if (s->mw->region)
			check_eq(s->w,
				 mw_invalidate(engine_mr_table(s->w->node[1].engine), PAIR_PD,
					       s->mw->key, s->b->qp->qpn),
				 0);
	} else {
		check_eq(s->w, s->a->recv->n, 2);
		check_eq(s->w, s->mw->key, list[4].bind.new_key);
		check(s->w, !s->mw->region);
	}
	pair_destroy(&s->p);
}

static void loss__local_requests_are_executed_once(void **state)
{
	struct masks m = masks_of(8, 8);
	struct pair_options o = options(XROCE_RC);
	struct scene s;

	scene_open(&s, MR_WINDOW_2, XROCE_RC);
	s.w->keep_frames = false;
	pair_destroy(&s.p);
	for (u32 forward = m.forward; forward < m.forward_end; forward++)
		for (u32 backward = m.backward; backward < m.backward_end; backward++) {
			world_label(s.w, "XROCE_SIM_MASK=%x:%x test_window", forward, backward);
			run_mask(&s, forward, backward);
			s.w->node[0].num_events = s.w->node[1].num_events = 0;
		}
	s.p = pair_connect(s.w, &o);
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(window__opens_what_was_bound_and_no_more),
		cmocka_unit_test(zero_based__addresses_start_from_0),
		cmocka_unit_test(window__is_for_remote_use_only),
		cmocka_unit_test(type_1__is_bound_anew_and_unbound),
		cmocka_unit_test(bind__needs_one_pd),
		cmocka_unit_test(window__whom_it_opens_for),
		cmocka_unit_test(local_inv__closes_a_type_2_window),
		cmocka_unit_test(local_inv__refused),
		cmocka_unit_test(bind__refused_in_order),
		cmocka_unit_test(bind__takes_the_low_bits_of_its_key),
		cmocka_unit_test(send_with_inv__closes_and_says_so),
		cmocka_unit_test(send_with_inv__refused),
		cmocka_unit_test(fence__holds_a_local_request),
		cmocka_unit_test(sqd__holds_a_local_request),
		cmocka_unit_test(uc__has_local_requests_too),
		cmocka_unit_test(loss__local_requests_are_executed_once),
	};

	return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}
