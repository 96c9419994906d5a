/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * Regions that page on demand: memory that is mapped after its region was made, by a region of its
 * own or by one of the whole address space, through each service; and what a peer may ask for that
 * no process has.
 */
#define _GNU_SOURCE
#include "landing.h"
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>
#include <sys/mman.h>

#define SPACE  (1ull << 56) /* of a region of the whole address space, as user/verbs makes it */
#define BYTES  (3 * 4096u)
#define XRCD   5
#define RIGHTS (PAIR_ACCESS_ALL | MR_ON_DEMAND | MR_MW_BIND)

struct request {
	const char *name;
	enum xroce_transport transport;
	enum wr_opcode opcode;
	u32 len;
	bool srq;
	bool receives;
};

static const struct request requests[] = {
	{ "RC send", XROCE_RC, WR_SEND, .len = 9000, .receives = true },
	{ "RC send to an SRQ", XROCE_RC, WR_SEND, .len = 9000, .srq = true, .receives = true },
	{ "RC write", XROCE_RC, WR_WRITE, .len = 9000 },
	{ "RC write with immediate", XROCE_RC, WR_WRITE_WITH_IMM, .len = 9000, .receives = true },
	{ "RC read", XROCE_RC, WR_READ, .len = 9000 },
	{ "RC fetch and add", XROCE_RC, WR_FETCH_ADD, .len = 8 },
	{ "RC compare and swap", XROCE_RC, WR_CMP_SWAP, .len = 8 },
	{ "UC send", XROCE_UC, WR_SEND, .len = 9000, .receives = true },
	{ "UC send to an SRQ", XROCE_UC, WR_SEND, .len = 9000, .srq = true, .receives = true },
	{ "UC write", XROCE_UC, WR_WRITE, .len = 9000 },
	{ "UD send", XROCE_UD, WR_SEND, .len = 1000, .receives = true },
	{ "UD send to an SRQ", XROCE_UD, WR_SEND, .len = 1000, .srq = true, .receives = true },
	{ "XRC send", XROCE_XRC, WR_SEND, .len = 9000, .receives = true },
	{ "XRC write", XROCE_XRC, WR_WRITE, .len = 9000 },
	{ "XRC read", XROCE_XRC, WR_READ, .len = 9000 },
	{ "XRC fetch and add", XROCE_XRC, WR_FETCH_ADD, .len = 8 },
};

/* Address space of a node without mappings yet, and the region over it. */
struct later {
	u8 *bytes;
	struct mr *mr;
	struct node *node;
};

static void later_reserve(struct later *l, struct node *n, bool implicit)
{
	l->node = n;
	l->bytes = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(l->bytes != MAP_FAILED);
	assert_int_equal(mr_add(engine_mr_table(n->engine), PAIR_PD, implicit ? NULL : l->bytes,
				implicit ? SPACE : BYTES, implicit ? 0 : (uintptr_t)l->bytes,
				RIGHTS, &l->mr),
			 0);
}

static void later_map(struct later *l, u32 seed)
{
	assert_true(mmap(l->bytes, BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == l->bytes);
	buffer_fill(l->bytes, BYTES, seed);
}

static void later_end(struct later *l)
{
	mr_remove(engine_mr_table(l->node->engine), l->mr);
	munmap(l->bytes, BYTES);
}

static struct sge later_sge(const struct later *l, u32 len)
{
	return (struct sge){ .addr = (uintptr_t)l->bytes, .length = len, .lkey = l->mr->key };
}

/* A pair, what receives, and the memory of both ends. */
struct stage {
	struct scene s;
	struct later local, remote;
	struct srq *srq;
	struct watched_cq *recv;
};

static struct stage stage_make(const struct request *r, bool implicit)
{
	struct world *w = world_create(2, 91);
	struct pair_options o = pair_defaults();
	struct stage g = { .srq = NULL };

	world_label(w, "test_odp %s, %s", r->name, implicit ? "implicit" : "explicit");
	o.transport = r->transport;
	if (r->srq)
		g.srq = o.srq[1] = world_srq(&w->node[1], 8);
	if (r->transport == XROCE_XRC) {
		o.xrcd = XRCD;
		g.recv = world_cq(&w->node[1], 16);
		g.srq = world_xrc_srq(&w->node[1], 8, XRCD, PAIR_PD, g.recv);
	}
	g.s = scene_in(w, &o, BYTES);
	if (!g.recv)
		g.recv = g.s.b->recv;
	later_reserve(&g.local, &w->node[0], implicit);
	later_reserve(&g.remote, &w->node[1], implicit);
	return g;
}

static void stage_end(struct stage *g, const struct request *r)
{
	later_end(&g->local);
	later_end(&g->remote);
	side_destroy(g->s.a);
	side_destroy(g->s.b);
	if (r->transport == XROCE_XRC)
		world_xrc_srq_destroy(&g->s.w->node[1], g->srq);
	else if (g->srq)
		world_srq_destroy(g->srq);
	world_destroy(g->s.w);
}

static struct send stage_request(const struct stage *g, const struct request *r, u64 wr_id)
{
	struct send send = scene_request(&g->s, wr_id, r->opcode, r->len);

	send.sge[0] = later_sge(&g->local, r->len);
	send.remote_addr = (uintptr_t)g->remote.bytes;
	send.rkey = g->remote.mr->key;
	send.compare_add = send.swap = 1;
	if (r->transport == XROCE_XRC)
		send.xrc_srqn = g->srq->number;
	if (r->transport == XROCE_UD) {
		send.path = &g->s.path;
		send.remote_qpn = g->s.b->qp->qpn;
		send.remote_qkey = PAIR_QKEY;
	}
	return send;
}

/* The request of memory that is there by now. */
static void stage_succeeds(struct stage *g, const struct request *r)
{
	const u32 grh = r->transport == XROCE_UD ? ROCE_GRH_BYTES : 0;
	struct sge sge = later_sge(&g->remote, r->len + grh);
	struct send send = stage_request(g, r, 1);
	u64 before;

	later_map(&g->local, 1);
	later_map(&g->remote, 2);
	memcpy(&before, g->remote.bytes, sizeof(before));
	if (r->opcode == WR_CMP_SWAP)
		send.compare_add = before;
	if (r->receives && g->srq)
		post_srq_recv(g->srq, 50, &sge, 1);
	else if (r->receives)
		post_recv(g->s.b, 50, &sge, 1);
	post_send(g->s.a, &send);
	world_run(g->s.w);
	check_eq(g->s.w, g->s.a->send->n, 1);
	check_eq(g->s.w, g->s.a->send->log[0].status, CQE_SUCCESS);
	if (r->receives) {
		check_eq(g->s.w, g->recv->n, 1);
		check_eq(g->s.w, g->recv->log[0].status, CQE_SUCCESS);
		check_eq(g->s.w, g->recv->log[0].byte_len, r->len + grh);
	}
	switch (r->opcode) {
	case WR_READ:
		check(g->s.w, bytes_are(g->local.bytes, r->len, 2));
		break;
	case WR_FETCH_ADD:
	case WR_CMP_SWAP:
		check(g->s.w, !memcmp(g->local.bytes, &before, sizeof(before)));
		before = r->opcode == WR_CMP_SWAP ? 1 : before + 1;
		check(g->s.w, !memcmp(g->remote.bytes, &before, sizeof(before)));
		break;
	default:
		check(g->s.w, bytes_are(g->remote.bytes + grh, r->len, 1));
	}
}

static void odp__mapped_after_its_region_was_made(void **state)
{
	landing_install();
	for (u32 i = 0; i < 2 * ARRAY_SIZE(requests); i++) {
		struct stage g = stage_make(&requests[i / 2], i % 2);

		stage_succeeds(&g, &requests[i / 2]);
		stage_end(&g, &requests[i / 2]);
	}
	assert_int_equal(landing_count(), 0);
}

/* Used before it is mapped: the end that owns the region reports the error. */
static void odp__used_before_it_is_mapped(void **state)
{
	static const struct request write = { "RC write", XROCE_RC, WR_WRITE, .len = 4000 };

	landing_install();
	for (u32 i = 0; i < 4; i++) {
		const bool is_local = i & 1;
		struct stage g = stage_make(&write, i & 2);
		struct send send = stage_request(&g, &write, 1);

		later_map(is_local ? &g.remote : &g.local, 1);
		post_send(g.s.a, &send);
		world_run(g.s.w);
		check_eq(g.s.w, g.s.a->send->n, 1);
		check_eq(g.s.w, g.s.a->send->log[0].status,
			 is_local ? CQE_LOC_PROT_ERR : CQE_REM_ACCESS_ERR);
		if (is_local)
			check_eq(g.s.w, g.s.a->send->log[0].vendor_err, VERR_MEMORY);
		stage_end(&g, &write);
	}
	assert_int_equal(landing_count(), 4);
}

/* Addresses that no process has anything at: none of them is more than a failed request. */
static void odp__wild_addresses(void **state)
{
	static const u64 wild[] = { 0,		   8,		 1ull << 52,	SPACE - 8,
				    SPACE - 4,	   SPACE,	 0x8000ull << 48, ~0ull - 4095,
				    ~0ull - 7 };
	static const enum wr_opcode opcodes[] = { WR_WRITE, WR_READ, WR_FETCH_ADD, WR_CMP_SWAP };

	landing_install();
	for (u32 i = 0; i < ARRAY_SIZE(wild) * ARRAY_SIZE(opcodes) * 2; i++) {
		const enum wr_opcode opcode = opcodes[i / 2 % ARRAY_SIZE(opcodes)];
		const struct request r = { "wild address", XROCE_RC, opcode, .len = 8 };
		const u64 va = wild[i / 2 / ARRAY_SIZE(opcodes)];
		const bool is_local = i & 1;
		struct stage g = stage_make(&r, true);
		struct send send = stage_request(&g, &r, 1);
		enum cqe_status want = is_local ? CQE_LOC_PROT_ERR : CQE_REM_ACCESS_ERR;

		later_map(&g.local, 1);
		later_map(&g.remote, 2);
		if (is_local)
			send.sge[0].addr = va;
		else
			send.remote_addr = va;
		if (!is_local && va % 8 && opcode != WR_WRITE && opcode != WR_READ)
			want = CQE_REM_INV_REQ_ERR;
		post_send(g.s.a, &send);
		world_run(g.s.w);
		check_eq(g.s.w, g.s.a->send->n, 1);
		check_eq(g.s.w, g.s.a->send->log[0].status, want);
		stage_end(&g, &r);
	}
}

/* A window onto a part of the whole address space opens that part alone. */
static void odp__window_onto_it(void **state)
{
	static const struct request write = { "window", XROCE_RC, WR_WRITE, .len = 100 };

	landing_install();
	for (u32 beyond = 0; beyond < 2; beyond++) {
		struct stage g = stage_make(&write, true);
		struct mr_table *t = engine_mr_table(g.s.b->node->engine);
		struct send send = stage_request(&g, &write, 1);
		struct mr *mw;

		later_map(&g.local, 1);
		later_map(&g.remote, 2);
		assert_int_equal(mw_add(t, PAIR_PD, MR_WINDOW_1, &mw), 0);
		assert_int_equal(mw_bind(t, mw, mw->key, g.remote.mr->key,
					 (uintptr_t)g.remote.bytes, 100, MR_REMOTE_WRITE, 0),
				 0);
		send.rkey = mw->key;
		send.remote_addr += beyond;
		post_send(g.s.a, &send);
		world_run(g.s.w);
		check_eq(g.s.w, g.s.a->send->log[0].status,
			 beyond ? CQE_REM_ACCESS_ERR : CQE_SUCCESS);
		check(g.s.w, bytes_are(g.remote.bytes, 100, beyond ? 2 : 1));
		mr_remove(t, mw);
		stage_end(&g, &write);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(odp__mapped_after_its_region_was_made),
		cmocka_unit_test(odp__used_before_it_is_mapped),
		cmocka_unit_test(odp__wild_addresses),
		cmocka_unit_test(odp__window_onto_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
