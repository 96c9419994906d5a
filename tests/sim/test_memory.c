/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * Memory that becomes inaccessible after its registration: unmapped, protected, read-only,
 * truncated. However the engine uses it, the request ends as with a bad key, at both ends, and
 * other queue pairs continue.
 */
#include "../../user/engine/internal.h"
#include "attack.h"
#include "landing.h"
#include "scene.h"
#include "spoil.h"

#include <setjmp.h>
#include <cmocka.h>

#define PAGES 3u
#define LONG  (2 * SPOIL_PAGE)	/* from the first page's middle into the third */
#define MID   (SPOIL_PAGE / 2)

/* The role of the memory that becomes inaccessible. */
enum where { LOCAL, REMOTE, RECEIVE };

struct request {
	const char *name;
	enum xroce_transport transport;
	enum wr_opcode opcode;
	u32 len;
	enum where bad;
	/* the engine does not write to it: read-only memory suffices */
	bool reads;
	bool srq;
	enum cqe_status status;	/* of the request */
	enum vendor_err verr;
	enum cqe_status receive; /* of the receive, if it completes */
	/* the requester's QP fails for a local reason: the responder's does not fail */
	bool is_mine;
	u32 pmtu;		/* 0: the default; at 4096 packets come in two buffers */
};

#define HERE   .status = CQE_LOC_PROT_ERR, .verr = VERR_MEMORY, .is_mine = true
#define ACCESS .status = CQE_REM_ACCESS_ERR, .verr = VERR_NAK_REMOTE_ACCESS
#define NAKED                                                                                      \
	.status = CQE_REM_OP_ERR, .verr = VERR_NAK_REMOTE_OPERATION, .receive = CQE_LOC_PROT_ERR
#define ALONE  .status = CQE_SUCCESS, .verr = VERR_NONE, .receive = CQE_LOC_PROT_ERR

static const struct request requests[] = {
	{ "send, gathered", XROCE_RC, WR_SEND, 64, LOCAL, .reads = true, HERE },
	{ "long send, gathered", XROCE_RC, WR_SEND, LONG, LOCAL, .reads = true, HERE },
	{ "write, gathered", XROCE_RC, WR_WRITE, LONG, LOCAL, .reads = true, HERE },
	{ "read, scattered", XROCE_RC, WR_READ, 64, LOCAL, HERE },
	{ "long read, scattered", XROCE_RC, WR_READ, LONG, LOCAL, HERE },
	{ "atomic, scattered", XROCE_RC, WR_FETCH_ADD, 8, LOCAL, HERE },
	{ "send, received", XROCE_RC, WR_SEND, 64, RECEIVE, NAKED },
	{ "long send, received", XROCE_RC, WR_SEND, LONG, RECEIVE, NAKED },
	{ "send, received from SRQ", XROCE_RC, WR_SEND, 64, RECEIVE, .srq = true, NAKED },
	{ "write", XROCE_RC, WR_WRITE, 64, REMOTE, ACCESS },
	{ "long write", XROCE_RC, WR_WRITE, LONG, REMOTE, ACCESS },
	{ "write with immediate", XROCE_RC, WR_WRITE_WITH_IMM, 64, REMOTE, ACCESS },
	{ "read", XROCE_RC, WR_READ, 64, REMOTE, .reads = true, ACCESS },
	{ "long read", XROCE_RC, WR_READ, LONG, REMOTE, .reads = true, ACCESS },
	{ "fetch and add", XROCE_RC, WR_FETCH_ADD, 8, REMOTE, ACCESS },
	{ "compare and swap", XROCE_RC, WR_CMP_SWAP, 8, REMOTE, ACCESS },
	{ "atomic write", XROCE_RC, WR_ATOMIC_WRITE, 8, REMOTE, ACCESS },
	{ "UC send, gathered", XROCE_UC, WR_SEND, LONG, LOCAL, .reads = true, HERE },
	{ "UC send, received", XROCE_UC, WR_SEND, LONG, RECEIVE, ALONE },
	{ "UD send, gathered", XROCE_UD, WR_SEND, 64, LOCAL, .reads = true, HERE },
	{ "UD send, received", XROCE_UD, WR_SEND, 64, RECEIVE, ALONE },
};

/* Memory of a node that will become inaccessible, registered with all rights. */
struct bad {
	struct spoiled memory;
	struct mr *mr;
	struct node *node;
};

static void bad_make(struct bad *b, struct node *n, enum spoil how)
{
	b->node = n;
	spoil_map(&b->memory, PAGES, how);
	assert_int_equal(mr_add(engine_mr_table(n->engine), PAIR_PD, b->memory.bytes, b->memory.len,
				(uintptr_t)b->memory.bytes, PAIR_ACCESS_ALL | MR_MW_BIND, &b->mr),
			 0);
}

static void bad_end(struct bad *b)
{
	mr_remove(engine_mr_table(b->node->engine), b->mr);
	spoil_free(&b->memory);
}

/*
 * Short requests lie at the second page's start, long ones begin in the first. Both work until the
 * second page becomes inaccessible.
 */
static u64 bad_va(const struct bad *b, u32 len)
{
	return (uintptr_t)b->memory.bytes + (len > MID ? MID : SPOIL_PAGE);
}

static struct sge bad_sge(const struct bad *b, u32 len)
{
	return (struct sge){ .addr = bad_va(b, len), .length = len, .lkey = b->mr->key };
}

static struct scene memory_scene(const struct request *r, enum spoil how, struct srq **srq)
{
	struct world *w = world_create(2, 77);
	struct pair_options o = pair_defaults();

	world_label(w, "test_memory %s, %s", r->name, spoil_names[how]);
	o.transport = r->transport;
	if (r->pmtu)
		o.pmtu = r->pmtu;
	if (r->srq)
		*srq = o.srq[1] = world_srq(&w->node[1], 8);
	return scene_in(w, &o, 4 * SPOIL_PAGE);
}

static struct send memory_request(const struct scene *s, const struct request *r,
				  const struct bad *bad)
{
	struct send send = scene_request(s, 2, r->opcode, r->len);

	if (r->bad == LOCAL)
		send.sge[0] = bad_sge(bad, r->len);
	if (r->bad == REMOTE) {
		send.remote_addr = bad_va(bad, r->len);
		send.rkey = bad->mr->key;
	}
	if (r->opcode == WR_ATOMIC_WRITE) {
		send.num_sge = 0;
		send.length = 8;
	}
	if (r->transport == XROCE_UD) {
		send.path = &s->path;
		send.remote_qpn = s->b->qp->qpn;
		send.remote_qkey = PAIR_QKEY;
	}
	return send;
}

static void memory_receive(const struct scene *s, const struct request *r, const struct bad *bad,
			   struct srq *srq)
{
	const u32 room = r->len + (r->transport == XROCE_UD ? ROCE_GRH_BYTES : 0);
	const struct sge sge = r->bad == RECEIVE ? bad_sge(bad, room)
						 : buffer_sge(s->remote, 0, room);

	if (srq)
		post_srq_recv(srq, 50, &sge, 1);
	else
		post_recv((struct side *)s->b, 50, &sge, 1);
}

/* Another pair than the failed one works as before, and no lock is held. */
static void others_go_on(struct scene *s)
{
	struct pair_options o = pair_defaults();
	struct pair p = pair_connect(s->w, &o);
	struct send send = request_between(s->local, s->remote, 9, WR_WRITE, 3000);

	buffer_fill(s->local->bytes, 3000, 5);
	post_send(&p.side[0], &send);
	world_run(s->w);
	expect(s->w, p.side[0].send, 0, .wr_id = 9, .opcode = CQE_WRITE, .byte_len = 3000,
	       .qpn = p.side[0].qp->qpn);
	check(s->w, bytes_are(s->remote->bytes, 3000, 5));
	pair_destroy(&p);
}

static void judge_requester(struct scene *s, const struct request *r)
{
	const bool is_datagram = r->transport != XROCE_RC;

	check_eq(s->w, s->a->send->n, r->status == CQE_SUCCESS ? 1 : 2);
	check_eq(s->w, s->a->send->log[0].status, r->status);
	check_eq(s->w, s->a->send->log[0].vendor_err, r->verr);
	check_eq(s->w, s->a->send->log[0].wr_id, 2);
	if (r->status == CQE_SUCCESS) {
		check_eq(s->w, qp_state(s->a->qp), QPS_RTS);
		return;
	}
	check_eq(s->w, s->a->send->log[1].status, CQE_WR_FLUSH_ERR);
	check_eq(s->w, qp_state(s->a->qp), is_datagram ? QPS_SQE : QPS_ERR);
}

static void judge_responder(struct scene *s, const struct request *r)
{
	const bool asks = r->opcode == WR_SEND || r->opcode == WR_WRITE_WITH_IMM;

	if (r->is_mine) {
		check_eq(s->w, qp_state(s->b->qp), QPS_RTS);
		check_eq(s->w, s->b->recv->n, 0);
		return;
	}
	check_eq(s->w, qp_state(s->b->qp), QPS_ERR);
	check_eq(s->w, world_events(s->b->node, EVENT_QP_ACCESS_ERR, s->b->qp), r->bad == REMOTE);
	check_eq(s->w, s->b->node->stats.remote_errors, r->transport == XROCE_RC);
	check_eq(s->w, s->b->recv->n, asks);
	if (r->receive) {
		check_eq(s->w, s->b->recv->log[0].status, r->receive);
		check_eq(s->w, s->b->recv->log[0].vendor_err, VERR_MEMORY);
		check_eq(s->w, s->b->recv->log[0].wr_id, 50);
	}
}

static void run_request(const struct request *r, enum spoil how)
{
	struct srq *srq = NULL;
	struct scene s = memory_scene(r, how, &srq);
	struct send send;
	struct bad bad;

	bad_make(&bad, r->bad == LOCAL ? s.a->node : s.b->node, how);
	if (r->opcode == WR_SEND || r->opcode == WR_WRITE_WITH_IMM)
		memory_receive(&s, r, &bad, srq);
	send = memory_request(&s, r, &bad);
	spoil_from(&bad.memory, 1);
	post_send(s.a, &send);
	if (r->status != CQE_SUCCESS) {
		send.wr_id = 3;
		post_send(s.a, &send);
	}
	world_run(s.w);
	judge_requester(&s, r);
	judge_responder(&s, r);
	others_go_on(&s);
	bad_end(&bad);
	side_destroy(s.a);
	side_destroy(s.b);
	if (srq)
		world_srq_destroy(srq);
	world_destroy(s.w);
}

static void memory__each_request_each_way(void **state)
{
	u32 runs = 0;

	landing_install();
	for (u32 i = 0; i < 2 * ARRAY_SIZE(requests); i++) {
		struct request r = requests[i / 2];

		r.pmtu = i % 2 ? 4096 : 0;
		for (u32 how = 0; how < SPOILS; how++) {
			if (r.reads && how == SPOIL_READ_ONLY)
				continue;
			run_request(&r, (enum spoil)how);
			runs++;
		}
	}
	assert_true(landing_count() >= runs);
}

/* Memory that is only read may be read-only. */
static void memory__read_only_is_read(void **state)
{
	landing_install();
	for (u32 i = 0; i < ARRAY_SIZE(requests); i++) {
		struct request r = requests[i];
		struct srq *srq = NULL;
		struct scene s;
		struct send send;
		struct bad bad;

		if (!r.reads)
			continue;
		s = memory_scene(&r, SPOIL_READ_ONLY, &srq);
		bad_make(&bad, r.bad == LOCAL ? s.a->node : s.b->node, SPOIL_READ_ONLY);
		if (r.opcode == WR_SEND)
			memory_receive(&s, &r, &bad, srq);
		send = memory_request(&s, &r, &bad);
		spoil_from(&bad.memory, 0);
		post_send(s.a, &send);
		world_run(s.w);
		check_eq(s.w, s.a->send->n, 1);
		check_eq(s.w, s.a->send->log[0].status, CQE_SUCCESS);
		check_eq(s.w, s.b->recv->n, r.opcode == WR_SEND);
		bad_end(&bad);
		scene_end(&s);
	}
	assert_int_equal(landing_count(), 0);
}

/* A packet is lost, and its source is unmapped before the resend: the request fails in its turn. */
static void memory__gone_before_it_is_sent_again(void **state)
{
	const struct request r = { .name = "sent again",
				   .opcode = WR_WRITE,
				   .len = LONG,
				   .bad = LOCAL,
				   .transport = XROCE_RC };

	landing_install();
	for (u32 lost = 0; lost < 4; lost++) {
		struct srq *srq = NULL;
		struct scene s = memory_scene(&r, SPOIL_UNMAP, &srq);
		struct send send;
		struct bad bad;

		bad_make(&bad, s.a->node, SPOIL_UNMAP);
		/* after the WRITE before it; packets 0 and 1 take the first page's rest */
		s.a->node->to[1].drop = 1ull << (2 + lost);
		scene_post(&s, 1, WR_WRITE, 64);
		send = memory_request(&s, &r, &bad);
		post_send(s.a, &send);
		world_settle(s.w);
		spoil_from(&bad.memory, 0);
		world_run(s.w);
		check_eq(s.w, s.a->send->n, 2);
		check_eq(s.w, s.a->send->log[0].status, CQE_SUCCESS);
		check_eq(s.w, s.a->send->log[1].status, CQE_LOC_PROT_ERR);
		check_eq(s.w, s.a->send->log[1].vendor_err, VERR_MEMORY);
		check_eq(s.w, qp_state(s.a->qp), QPS_ERR);
		others_go_on(&s);
		bad_end(&bad);
		scene_end(&s);
	}
}

/* For a packet in two buffers only the second buffer's destination is inaccessible. */
static void memory__gone_under_the_second_buffer(void **state)
{
	struct request r = { .name = "second buffer",
			     .opcode = WR_WRITE,
			     .len = 4096,
			     .bad = REMOTE,
			     .pmtu = 4096,
			     .transport = XROCE_RC };
	struct srq *srq = NULL;
	struct scene s = memory_scene(&r, SPOIL_PROTECT, &srq);
	struct send send;
	struct bad bad;

	landing_install();
	bad_make(&bad, s.b->node, SPOIL_PROTECT);
	send = memory_request(&s, &r, &bad);
	send.remote_addr = (uintptr_t)bad.memory.bytes + SPOIL_PAGE - 4000;
	spoil_from(&bad.memory, 1);
	post_send(s.a, &send);
	world_run(s.w);
	check_eq(s.w, s.a->send->log[0].status, CQE_REM_ACCESS_ERR);
	check_eq(s.w, qp_state(s.b->qp), QPS_ERR);
	assert_int_equal(landing_count(), 1);
	bad_end(&bad);
	scene_end(&s);
}

/*
 * A window's lock is held while its bytes are copied, where engines share it. A failed copy
 * releases the lock.
 */
static void memory__behind_a_window(void **state)
{
	static const enum wr_opcode opcodes[] = { WR_WRITE, WR_READ, WR_FETCH_ADD, WR_CMP_SWAP,
						  WR_ATOMIC_WRITE };

	landing_install();
	for (u32 i = 0; i < ARRAY_SIZE(opcodes); i++) {
		const struct request r = { .name = "window",
					   .opcode = opcodes[i],
					   .len = 8,
					   .bad = REMOTE,
					   .transport = XROCE_RC };
		const struct world_options wo = { .num_engines = 3 };
		struct world *w = world_create_with(2, 78, &wo);
		struct pair_options o = pair_defaults();
		struct scene s = scene_in(w, &o, 4 * SPOIL_PAGE);
		struct mr_table *t = engine_mr_table(w->node[1].engine);
		struct send send;
		struct bad bad;
		struct mr *mw;

		world_label(w, "test_memory window, opcode %u", opcodes[i]);
		bad_make(&bad, s.b->node, SPOIL_PROTECT);
		assert_int_equal(mw_add(t, PAIR_PD, MR_WINDOW_1, &mw), 0);
		assert_int_equal(mw_bind(t, mw, mw->key, bad.mr->key, bad_va(&bad, 8), 64,
					 MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC, 0),
				 0);
		send = memory_request(&s, &r, &bad);
		send.rkey = mw->key;
		spoil_from(&bad.memory, 1);
		post_send(s.a, &send);
		world_run(w);
		check_eq(w, s.a->send->n, 1);
		check_eq(w, s.a->send->log[0].status, CQE_REM_ACCESS_ERR);
		/* takes the window's lock: would deadlock */
		assert_int_equal(mw_bind(t, mw, mw->key, bad.mr->key, bad_va(&bad, 8), 0, 0, 0), 0);
		others_go_on(&s);
		mr_remove(t, mw);
		bad_end(&bad);
		scene_end(&s);
	}
}

/* A READ whose first two responses succeed. */
static const struct request half_good = { .name = "half good",
					  .opcode = WR_READ,
					  .len = LONG,
					  .bad = REMOTE,
					  .transport = XROCE_RC };

/*
 * A READ is refused half-way, and a response before the refusal is lost or late: the responder is
 * in error and reports it once. The READ ends as refused, not as unanswered.
 */
static void memory__refused_half_way(void **state)
{
	landing_install();
	for (u32 k = 0; k < 8; k++) {
		struct srq *srq = NULL;
		struct scene s = memory_scene(&half_good, SPOIL_UNMAP, &srq);
		struct faults *back = &s.b->node->to[0];
		const bool is_late = k & 1, is_second = k & 2;
		const u32 before = !!(k & 4); /* requests */
		struct send send;
		struct bad bad;

		bad_make(&bad, s.b->node, SPOIL_UNMAP);
		*(is_late ? &back->hold : &back->drop) = is_second ? 2 : 1;
		if (before) {
			scene_post(&s, 1, WR_WRITE, 64);
			back->drop <<= 1;
			back->hold <<= 1;
		}
		back->hold_packets = 4;
		send = memory_request(&s, &half_good, &bad);
		spoil_from(&bad.memory, 1);
		post_send(s.a, &send);
		world_run(s.w);
		check_eq(s.w, s.a->send->n, before + 1);
		check_eq(s.w, s.a->send->log[before].status, CQE_REM_ACCESS_ERR);
		check_eq(s.w, s.a->send->log[before].vendor_err, VERR_NAK_REMOTE_ACCESS);
		/* at once if no response is missing: earlier parts are requested again */
		if (is_late && is_second)
			check_eq(s.w, s.a->node->stats.timeouts, 0);
		check_eq(s.w, qp_state(s.a->qp), QPS_ERR);
		check_eq(s.w, qp_state(s.b->qp), QPS_ERR);
		others_go_on(&s);
		bad_end(&bad);
		scene_end(&s);
	}
}

/* The refusal waits for a lost response, and an older NAK of a sequence error arrives. */
static void memory__a_sequence_nak_hides_no_refusal(void **state)
{
	struct srq *srq = NULL;
	struct scene s = memory_scene(&half_good, SPOIL_UNMAP, &srq);
	struct packet nak = { .opcode = OPCODE(XROCE_RC, OP5_ACKNOWLEDGE),
			      .syndrome = AETH_NAK | NAK_PSN_SEQUENCE };
	struct send send;
	struct bad bad;

	landing_install();
	bad_make(&bad, s.b->node, SPOIL_UNMAP);
	s.b->node->to[0].drop = 1;
	send = memory_request(&s, &half_good, &bad);
	spoil_from(&bad.memory, 1);
	post_send(s.a, &send);
	world_run_for(s.w, 3 * WORLD_LATENCY_NS);
	check_eq(s.w, s.b->node->stats.remote_errors, 1);
	check_eq(s.w, s.a->send->n, 0);
	nak.psn = psn_add(s.a->qp->req.unacked_psn, 1);
	attack_deliver(s.w, s.a, 1, nak, NULL, 0);
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 1);
	check_eq(s.w, s.a->send->log[0].status, CQE_REM_ACCESS_ERR);
	others_go_on(&s);
	bad_end(&bad);
	scene_end(&s);
}

/* The reason of a refusal is kept as well; here responses are lost, and the memory is valid. */
static void memory__a_refusal_before_its_turn_says_which(void **state)
{
	static const struct {
		u8 code;
		enum cqe_status status;
	} said[] = { { NAK_INVALID_REQUEST, CQE_REM_INV_REQ_ERR },
		     { NAK_REMOTE_ACCESS, CQE_REM_ACCESS_ERR },
		     { NAK_REMOTE_OPERATION, CQE_REM_OP_ERR } };

	for (u32 i = 0; i < ARRAY_SIZE(said); i++) {
		struct pair_options o = pair_defaults();
		struct scene s = scene_in(world_create(2, 77), &o, SPOIL_PAGE);
		struct packet nak = { .opcode = OPCODE(XROCE_RC, OP5_ACKNOWLEDGE),
				      .syndrome = AETH_NAK | said[i].code };

		s.b->node->to[0].dead = true;
		scene_post(&s, 1, WR_READ, 2 * o.pmtu);
		world_run_for(s.w, WORLD_LATENCY_NS / 2);
		nak.psn = psn_add(s.a->qp->req.unacked_psn, 1);
		attack_deliver(s.w, s.a, 1, nak, NULL, 0);
		world_run(s.w);
		check_eq(s.w, s.a->send->n, 1);
		check_eq(s.w, s.a->send->log[0].status, said[i].status);
		scene_end(&s);
	}
}

/* The refused request follows a READ whose responses are lost: the fate of that READ is unknown. */
static void memory__refused_behind_what_is_lost(void **state)
{
	struct srq *srq = NULL;
	struct scene s = memory_scene(&half_good, SPOIL_UNMAP, &srq);
	struct send send;
	struct bad bad;

	landing_install();
	bad_make(&bad, s.b->node, SPOIL_UNMAP);
	s.b->node->to[0].drop = 1;
	scene_post(&s, 1, WR_READ, 64);
	send = memory_request(&s, &half_good, &bad);
	spoil_from(&bad.memory, 1);
	post_send(s.a, &send);
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 2);
	check_eq(s.w, s.a->send->log[0].status, CQE_RETRY_EXC_ERR);
	check_eq(s.w, s.a->send->log[1].status, CQE_WR_FLUSH_ERR);
	others_go_on(&s);
	bad_end(&bad);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory__each_request_each_way),
		cmocka_unit_test(memory__read_only_is_read),
		cmocka_unit_test(memory__gone_before_it_is_sent_again),
		cmocka_unit_test(memory__gone_under_the_second_buffer),
		cmocka_unit_test(memory__behind_a_window),
		cmocka_unit_test(memory__refused_half_way),
		cmocka_unit_test(memory__a_sequence_nak_hides_no_refusal),
		cmocka_unit_test(memory__a_refusal_before_its_turn_says_which),
		cmocka_unit_test(memory__refused_behind_what_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
