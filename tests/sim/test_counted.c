/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/* What a peer has had done here is counted, once however often its packets came. */
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

static void check_counted(struct scene *s, u64 writes, u64 reads, u64 atomics)
{
	const struct xroce_engine_stats *b = &s->w->node[1].stats;
	const struct xroce_engine_stats *a = &s->w->node[0].stats;

	check_eq(s->w, b->rx_writes, writes);
	check_eq(s->w, b->rx_reads, reads);
	check_eq(s->w, b->rx_atomics, atomics);
	check_eq(s->w, a->rx_writes + a->rx_reads + a->rx_atomics, 0);
}

/* Two of each, of three packets where there can be; the loss schedule is of all they send. */
static void counted_under(u64 drop, u64 drop_back)
{
	static const struct {
		enum wr_opcode opcode;
		u32 packets;
	} ops[] = { { WR_WRITE, 3 },
		    { WR_WRITE_WITH_IMM, 3 },
		    { WR_READ, 1 }, /* more may come as several requests */
		    { WR_FETCH_ADD, 0 },
		    { WR_CMP_SWAP, 0 },
		    { WR_SEND, 3 } };
	struct world *w = world_create(2, 11);
	struct pair_options o = pair_defaults();
	struct scene s = scene_in(w, &o, 3 * o.pmtu);
	u64 expected[3] = { 0 };

	world_label(w, "test_counted, drop %llx, back %llx", (unsigned long long)drop,
		    (unsigned long long)drop_back);
	w->node[0].to[1].drop = drop;
	w->node[1].to[0].drop = drop_back;
	for (u32 i = 0; i < 2 * ARRAY_SIZE(ops); i++) {
		enum wr_opcode opcode = ops[i / 2].opcode;

		if (opcode == WR_WRITE_WITH_IMM || opcode == WR_SEND)
			post_recv_buffer(s.b, i, s.remote, 0, 3 * o.pmtu);
		scene_post(&s, i, opcode, ops[i / 2].packets ? ops[i / 2].packets * o.pmtu : 8);
		world_run(w);
		check_eq(w, s.a->send->n, i + 1);
		expected[0] += opcode == WR_WRITE || opcode == WR_WRITE_WITH_IMM;
		expected[1] += opcode == WR_READ;
		expected[2] += opcode == WR_FETCH_ADD || opcode == WR_CMP_SWAP;
		check_counted(&s, expected[0], expected[1], expected[2]);
	}
	scene_end(&s);
}

static void counted__each_request_once(void **state)
{
	counted_under(0, 0);
}

static void counted__once_though_repeated(void **state)
{
	for (u32 i = 0; i < 24; i++) {
		counted_under(1ull << i, 0);
		counted_under(0, 1ull << i);
	}
	counted_under(0x55555, 0xaaaaa);
}

/* Refused, it has not been done. */
static void counted__not_when_refused(void **state)
{
	static const enum wr_opcode ops[] = { WR_WRITE, WR_READ, WR_FETCH_ADD };

	for (u32 i = 0; i < ARRAY_SIZE(ops); i++) {
		struct world *w = world_create(2, 12);
		struct pair_options o = pair_defaults();
		struct scene s = scene_in(w, &o, 4096);
		struct send send = scene_request(&s, 1, ops[i], 8);

		world_label(w, "test_counted refused %u", i);
		send.rkey ^= 1;
		post_send(s.a, &send);
		world_run(w);
		expect(w, s.a->send, 0, .wr_id = 1, .status = CQE_REM_ACCESS_ERR,
		       .vendor_err = VERR_NAK_REMOTE_ACCESS, .qpn = s.a->qp->qpn);
		check_counted(&s, 0, 0, 0);
		scene_end(&s);
	}
}

/* UC, which asks for nothing again: a WRITE whose first packet came. */
static void counted__uc(void **state)
{
	struct world *w = world_create(2, 13);
	struct pair_options o = pair_defaults();
	struct scene s;

	o.transport = XROCE_UC;
	s = scene_in(w, &o, 3 * o.pmtu);
	world_label(w, "test_counted uc");
	scene_post(&s, 1, WR_WRITE, 3 * o.pmtu);
	world_run(w);
	check_counted(&s, 1, 0, 0);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counted__each_request_once),
		cmocka_unit_test(counted__once_though_repeated),
		cmocka_unit_test(counted__not_when_refused),
		cmocka_unit_test(counted__uc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
