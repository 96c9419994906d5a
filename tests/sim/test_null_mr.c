/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * The null region (ibv_alloc_null_mr(3)): a scatter/gather element of it reads as zeros and drops
 * written bytes, whatever its address. READs and WRITEs of a peer do the same. No other use of
 * its key is accepted.
 */
#include "landing.h"
#include "scene.h"
#include "spoil.h"

#include <setjmp.h>
#include <cmocka.h>

#define HOLE 5000u /* of the null region, between two elements of real memory */
#define EDGE 100u
#define LEN  (2 * EDGE + HOLE)
#define FLUSH_GLOBALLY 1u

struct stage {
	struct scene s;
	struct mr *null[2]; /* of each node */
};

static struct stage stage_make(const char *name, enum xroce_transport transport, u32 pd)
{
	struct world *w = world_create(2, 92);
	struct pair_options o = pair_defaults();
	struct stage g;

	world_label(w, "test_null_mr %s", name);
	o.transport = transport;
	o.pmtu = 1024;
	g.s = scene_in(w, &o, 2 * LEN);
	for (u32 i = 0; i < 2; i++)
		assert_int_equal(mr_add_null(engine_mr_table(w->node[i].engine), pd, &g.null[i]),
				 0);
	landing_install();
	return g;
}

static void stage_end(struct stage *g)
{
	for (u32 i = 0; i < 2; i++)
		mr_remove(engine_mr_table(g->s.w->node[i].engine), g->null[i]);
	assert_int_equal(landing_count(), 0);
	scene_end(&g->s);
}

static struct sge null_sge(const struct mr *null, u64 addr, u32 len)
{
	return (struct sge){ .addr = addr, .length = len, .lkey = null->key };
}

/* EDGE bytes of b, a hole of HOLE bytes, and the next EDGE bytes of b. */
static void with_hole(struct sge *sge, const struct buffer *b, const struct mr *null, u64 addr)
{
	sge[0] = buffer_sge(b, 0, EDGE);
	sge[1] = null_sge(null, addr, HOLE);
	sge[2] = buffer_sge(b, EDGE + HOLE, EDGE);
}

static bool are_all(const u8 *bytes, u32 len, u8 value)
{
	for (u32 i = 0; i < len; i++)
		if (bytes[i] != value)
			return false;
	return true;
}

/* Addresses of null elements: none of them is looked at. */
static const u64 addresses[] = { 0, 4096, ~0ull - HOLE, ~0ull };

static void null__gathered_as_zeros(void **state)
{
	static const struct { enum xroce_transport transport; enum wr_opcode opcode; } kinds[] = {
		{ XROCE_RC, WR_SEND }, { XROCE_RC, WR_WRITE },
		{ XROCE_UC, WR_SEND }, { XROCE_UC, WR_WRITE },
	};

	for (u32 i = 0; i < ARRAY_SIZE(kinds) * ARRAY_SIZE(addresses); i++) {
		struct stage g = stage_make("gathered", kinds[i / ARRAY_SIZE(addresses)].transport,
					    PAIR_PD);
		struct send send = scene_request(
			&g.s, 1, kinds[i / ARRAY_SIZE(addresses)].opcode, LEN);
		u8 *to = g.s.remote->bytes;

		buffer_fill(g.s.local->bytes, LEN, 3);
		memset(to, 0xee, 2 * LEN);
		with_hole(send.sge, g.s.local, g.null[0], addresses[i % ARRAY_SIZE(addresses)]);
		send.num_sge = 3;
		post_recv_buffer(g.s.b, 50, g.s.remote, 0, LEN);
		post_send(g.s.a, &send);
		world_run(g.s.w);
		check_eq(g.s.w, g.s.a->send->log[0].status, CQE_SUCCESS);
		check(g.s.w, !memcmp(to, g.s.local->bytes, EDGE));
		check(g.s.w, are_all(to + EDGE, HOLE, 0));
		check(g.s.w, !memcmp(to + EDGE + HOLE, g.s.local->bytes + EDGE + HOLE, EDGE));
		check(g.s.w, are_all(to + LEN, LEN, 0xee));
		stage_end(&g);
	}
}

/* What arrives for b's list, which has a hole: the ends are there, the hole is as it was. */
static void check_scattered(struct stage *g, const struct buffer *from, const struct buffer *to)
{
	check_eq(g->s.w, g->s.a->send->log[0].status, CQE_SUCCESS);
	check(g->s.w, !memcmp(to->bytes, from->bytes, EDGE));
	check(g->s.w, are_all(to->bytes + EDGE, HOLE, 0xee));
	check(g->s.w, !memcmp(to->bytes + EDGE + HOLE, from->bytes + EDGE + HOLE, EDGE));
	check(g->s.w, are_all(to->bytes + LEN, LEN, 0xee));
}

static void null__drops_what_is_received(void **state)
{
	for (u32 i = 0; i < 2 * ARRAY_SIZE(addresses); i++) {
		struct stage g = stage_make("received", i % 2 ? XROCE_RC : XROCE_UC, PAIR_PD);
		struct sge sge[3];

		buffer_fill(g.s.local->bytes, LEN, 3);
		memset(g.s.remote->bytes, 0xee, 2 * LEN);
		with_hole(sge, g.s.remote, g.null[1], addresses[i / 2]);
		post_recv(g.s.b, 50, sge, 3);
		scene_post(&g.s, 1, WR_SEND, LEN);
		world_run(g.s.w);
		check_eq(g.s.w, g.s.b->recv->log[0].status, CQE_SUCCESS);
		check_eq(g.s.w, g.s.b->recv->log[0].byte_len, LEN);
		check_scattered(&g, g.s.local, g.s.remote);
		stage_end(&g);
	}
}

static void null__drops_what_is_read(void **state)
{
	struct stage g = stage_make("read", XROCE_RC, PAIR_PD);
	struct send send = scene_request(&g.s, 1, WR_READ, LEN);

	buffer_fill(g.s.remote->bytes, LEN, 4);
	memset(g.s.local->bytes, 0xee, 2 * LEN);
	with_hole(send.sge, g.s.local, g.null[0], 12345);
	send.num_sge = 3;
	post_send(g.s.a, &send);
	world_run(g.s.w);
	check_scattered(&g, g.s.remote, g.s.local);
	stage_end(&g);
}

static void null__drops_what_an_atomic_returns(void **state)
{
	struct stage g = stage_make("atomic", XROCE_RC, PAIR_PD);
	struct send send = scene_request(&g.s, 1, WR_FETCH_ADD, 8);
	u64 word = 41;

	memcpy(g.s.remote->bytes, &word, sizeof(word));
	send.sge[0] = null_sge(g.null[0], 0, 8);
	send.compare_add = 1;
	post_send(g.s.a, &send);
	world_run(g.s.w);
	check_eq(g.s.w, g.s.a->send->log[0].status, CQE_SUCCESS);
	memcpy(&word, g.s.remote->bytes, sizeof(word));
	check_eq(g.s.w, word, 42);
	stage_end(&g);
}

/* The GRH of a datagram is what a receiver has no use for. */
static void null__takes_the_grh(void **state)
{
	struct stage g = stage_make("UD", XROCE_UD, PAIR_PD);
	struct send send = scene_request(&g.s, 1, WR_SEND, 200);
	struct sge sge[2] = { null_sge(g.null[1], 0, ROCE_GRH_BYTES),
			      buffer_sge(g.s.remote, 0, 200) };

	buffer_fill(g.s.local->bytes, 200, 3);
	memset(g.s.remote->bytes, 0xee, 2 * LEN);
	send.path = &g.s.path;
	send.remote_qpn = g.s.b->qp->qpn;
	send.remote_qkey = PAIR_QKEY;
	send.sge[0] = buffer_sge(g.s.local, 0, 50);
	send.sge[1] = null_sge(g.null[0], 7, 100);
	send.sge[2] = buffer_sge(g.s.local, 150, 50);
	send.num_sge = 3;
	post_recv(g.s.b, 50, sge, 2);
	post_send(g.s.a, &send);
	world_run(g.s.w);
	check_eq(g.s.w, g.s.b->recv->log[0].byte_len, 200 + ROCE_GRH_BYTES);
	check(g.s.w, !memcmp(g.s.remote->bytes, g.s.local->bytes, 50));
	check(g.s.w, are_all(g.s.remote->bytes + 50, 100, 0));
	check(g.s.w, !memcmp(g.s.remote->bytes + 150, g.s.local->bytes + 150, 50));
	stage_end(&g);
}

/* A peer reads zeros from it and writes nothing, in one packet and in several. */
static void null__opens_to_a_peer(void **state)
{
	static const enum wr_opcode opcodes[] = { WR_WRITE, WR_WRITE_WITH_IMM, WR_READ };

	for (u32 i = 0; i < 2 * ARRAY_SIZE(opcodes); i++) {
		const u32 len = i % 2 ? LEN : 8;
		struct stage g = stage_make("remote", XROCE_RC, PAIR_PD);
		struct send send = scene_request(&g.s, 1, opcodes[i / 2], len);

		send.rkey = g.null[1]->key;
		send.remote_addr = 4096;
		memset(g.s.remote->bytes, 0xee, LEN);
		memset(g.s.local->bytes, 0xee, LEN);
		post_recv_buffer(g.s.b, 50, g.s.remote, 0, LEN);
		post_send(g.s.a, &send);
		world_run(g.s.w);
		check_eq(g.s.w, g.s.a->send->log[0].status, CQE_SUCCESS);
		check(g.s.w, are_all(g.s.local->bytes, len, opcodes[i / 2] == WR_READ ? 0 : 0xee));
		check(g.s.w, are_all(g.s.local->bytes + len, LEN - len, 0xee));
		check(g.s.w, are_all(g.s.remote->bytes, LEN, 0xee));
		stage_end(&g);
	}
}

/* For a peer, its key is invalid in requests that need real memory. */
static void null__has_no_word_for_a_peer(void **state)
{
	static const enum wr_opcode opcodes[] = { WR_FETCH_ADD, WR_CMP_SWAP, WR_ATOMIC_WRITE,
						  WR_FLUSH };

	for (u32 i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct stage g = stage_make("remote", XROCE_RC, PAIR_PD);
		struct send send = scene_request(&g.s, 1, opcodes[i], 8);

		send.rkey = g.null[1]->key;
		send.remote_addr = 4096;
		if (opcodes[i] == WR_ATOMIC_WRITE || opcodes[i] == WR_FLUSH) {
			send.num_sge = 0;
			send.length = 8;
			send.compare_add = FLUSH_GLOBALLY;
		}
		post_recv_buffer(g.s.b, 50, g.s.remote, 0, LEN);
		post_send(g.s.a, &send);
		world_run(g.s.w);
		check_eq(g.s.w, g.s.a->send->log[0].status, CQE_REM_ACCESS_ERR);
		stage_end(&g);
	}
}

/* Nor to another protection domain, nor under another key with the same index. */
static void null__is_its_own_domains(void **state)
{
	for (u32 i = 0; i < 2; i++) {
		struct stage g = stage_make("domain", XROCE_RC, i ? PAIR_PD : PAIR_PD + 1);
		struct send send = scene_request(&g.s, 1, WR_SEND, 100);

		send.sge[0] = null_sge(g.null[0], 0, 100);
		send.sge[0].lkey ^= i;
		post_recv_buffer(g.s.b, 50, g.s.remote, 0, LEN);
		post_send(g.s.a, &send);
		world_run(g.s.w);
		check_eq(g.s.w, g.s.a->send->log[0].status, CQE_LOC_PROT_ERR);
		check_eq(g.s.w, g.s.a->send->log[0].vendor_err, VERR_LKEY);
		stage_end(&g);
	}
}

/* An error of other memory is reported as usual: the key is good, the memory at that address is
 * not. */
static void null__is_not_what_failed(void **state)
{
	struct stage g = stage_make("beside bad memory", XROCE_RC, PAIR_PD);
	struct send send = scene_request(&g.s, 1, WR_SEND, 100);
	struct spoiled memory;
	struct mr *mr;

	spoil_map(&memory, 1, SPOIL_PROTECT);
	spoil_from(&memory, 0);
	assert_int_equal(mr_add(engine_mr_table(g.s.a->node->engine), PAIR_PD, memory.bytes,
				memory.len, 0, 0, &mr),
			 0);
	send.sge[0] = null_sge(g.null[0], 0, 50);
	send.sge[1] = (struct sge){ .addr = 0, .length = 50, .lkey = mr->key };
	send.num_sge = 2;
	post_send(g.s.a, &send);
	world_run(g.s.w);
	check_eq(g.s.w, g.s.a->send->log[0].status, CQE_LOC_PROT_ERR);
	check_eq(g.s.w, g.s.a->send->log[0].vendor_err, VERR_MEMORY);
	assert_int_equal(landing_count(), 1);
	mr_remove(engine_mr_table(g.s.a->node->engine), mr);
	spoil_free(&memory);
	landing_install();
	stage_end(&g);
}

/* "The use of ... ibv_bind_mw() with this MR is invalid"; and it is no window. */
static void null__binds_nothing(void **state)
{
	struct stage g = stage_make("window", XROCE_RC, PAIR_PD);
	struct mr_table *t = engine_mr_table(g.s.a->node->engine);
	struct mr *mw;

	assert_int_equal(mw_add(t, PAIR_PD, MR_WINDOW_1, &mw), 0);
	assert_int_equal(mw_bind(t, mw, mw->key, g.null[0]->key, 0, 64, MR_REMOTE_READ, 0),
			 -EINVAL);
	assert_int_equal(mw_bind(t, g.null[0], g.null[0]->key, g.s.local->mr->key, 0, 0, 0, 0),
			 -EINVAL);
	assert_null(mw_find(t, g.null[0]->key));
	assert_int_equal(mw_invalidate(t, PAIR_PD, g.null[0]->key, g.s.a->qp->qpn), -EINVAL);
	mr_remove(t, mw);
	stage_end(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(null__gathered_as_zeros),
		cmocka_unit_test(null__drops_what_is_received),
		cmocka_unit_test(null__drops_what_is_read),
		cmocka_unit_test(null__drops_what_an_atomic_returns),
		cmocka_unit_test(null__takes_the_grh),
		cmocka_unit_test(null__opens_to_a_peer),
		cmocka_unit_test(null__has_no_word_for_a_peer),
		cmocka_unit_test(null__is_its_own_domains),
		cmocka_unit_test(null__is_not_what_failed),
		cmocka_unit_test(null__binds_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
