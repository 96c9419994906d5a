/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * Partitions: a connection's two ends send with the P_Key that the QP's index selects. Packets of
 * another partition, or between two limited members, are dropped and counted.
 */
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

#define BYTES	 10000
#define FULL	 1 /* indices of partition 1 in both nodes' tables */
#define LIMITED	 2
#define OTHER	 3 /* and of another, as a full member */
#define NO_INDEX 4

static const struct pkey_table table = { 4, { 0xffff, 0x8001, 0x0001, 0x8002 } };
/* The same partitions at other places. */
static const struct pkey_table turned = { 4, { 0xffff, 0x8002, 0x8001, 0x0001 } };

static struct scene scene_make(const char *name, enum xroce_transport transport,
			       const struct pkey_table *of_b, u16 a, u16 b)
{
	const struct world_options wo = { .pkeys = { &table, of_b } };
	struct world *w = world_create_with(3, 23, &wo);
	struct pair_options o = pair_defaults();

	world_label(w, "test_pkey %s, transport %u, index %u to %u", name, transport, a, b);
	o.transport = transport;
	o.pkey_index[0] = a;
	o.pkey_index[1] = b;
	return scene_in(w, &o, BYTES);
}

/* Each packet has its sender's, requests and answers. */
static void all_sent_with(const struct scene *s, u16 of_a, u16 of_b)
{
	u32 from[2] = { 0 };

	for (u32 i = 0; i < s->w->num_sent; i++) {
		const struct sent_frame *f = &s->w->sent[i];

		check(s->w, f->from < 2);
		check_eq(s->w, f->packet.pkey, f->from ? of_b : of_a);
		from[f->from]++;
	}
	check(s->w, from[0] && from[1]);
}

static void rc__each_sends_with_its_own(void **state)
{
	struct scene s = scene_make("rc", XROCE_RC, &turned, LIMITED, 2 /* 0x8001 */);

	post_recv_buffer(s.b, 5, s.remote, 0, BYTES);
	scene_post(&s, 1, WR_SEND, BYTES);
	scene_post(&s, 2, WR_WRITE, BYTES);
	scene_post(&s, 3, WR_READ, BYTES);
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 3);
	for (u32 i = 0; i < 3; i++)
		check_eq(s.w, s.a->send->log[i].status, CQE_SUCCESS);
	check_eq(s.w, s.b->recv->n, 1);
	all_sent_with(&s, 0x0001, 0x8001);
	check_eq(s.w, s.a->node->drops.pkey + s.b->node->drops.pkey, 0);
	scene_end(&s);
}

/* Datagrams between all kinds of members: nothing is answered, so each is one packet. */
static void ud__membership(void **state)
{
	static const struct {
		u16 a, b, pkey;
		bool taken;
	} rows[] = {
		{ 0, 0, 0xffff, true },		{ FULL, FULL, 0x8001, true },
		{ FULL, LIMITED, 0x8001, true }, { LIMITED, FULL, 0x0001, true },
		{ LIMITED, LIMITED, 0x0001, false }, { FULL, OTHER, 0x8001, false },
		{ OTHER, LIMITED, 0x8002, false }, { FULL, 0, 0x8001, false },
		{ 0, FULL, 0xffff, false },	{ 0, LIMITED, 0xffff, false },
	};

	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		struct scene s = scene_make("membership", XROCE_UD, &table, rows[i].a, rows[i].b);
		const struct send send = { .wr_id = 1,
					   .opcode = WR_SEND,
					   .flags = WR_SIGNALED,
					   .num_sge = 1,
					   .sge = { buffer_sge(s.local, 0, 100) },
					   .path = &s.path,
					   .remote_qpn = s.b->qp->qpn,
					   .remote_qkey = PAIR_QKEY };

		post_recv_buffer(s.b, 5, s.remote, 0, 200);
		post_send(s.a, &send);
		world_run(s.w);
		check_eq(s.w, s.w->num_sent, 1);
		check_eq(s.w, s.w->sent[0].packet.pkey, rows[i].pkey);
		check_eq(s.w, s.b->recv->n, rows[i].taken);
		check_eq(s.w, s.b->node->drops.pkey, !rows[i].taken);
		check_eq(s.w, s.b->node->drops.qkey, 0);
		scene_end(&s);
	}
}

/* A connection across partitions reaches no peer: silence, each packet counted. */
static void rc__another_partition(void **state)
{
	static const u16 of_b[] = { 0, OTHER, LIMITED };

	for (u32 i = 0; i < ARRAY_SIZE(of_b); i++) {
		struct scene s = scene_make("apart", XROCE_RC, &table, LIMITED, of_b[i]);

		post_recv_buffer(s.b, 5, s.remote, 0, BYTES);
		scene_post(&s, 1, WR_SEND, 100);
		world_run(s.w);
		check_eq(s.w, s.a->send->n, 1);
		check_eq(s.w, s.a->send->log[0].status, CQE_RETRY_EXC_ERR);
		check_eq(s.w, s.b->recv->n, 0);
		check_eq(s.w, s.b->node->stats.tx_packets, 0);
		check(s.w, s.w->num_sent > 1);
		check_eq(s.w, s.b->node->drops.pkey, s.w->num_sent);
		scene_end(&s);
	}
}

/* A P_Key decoded once is not assumed for the next packet. */
static void rc__moves_to_another_partition(void **state)
{
	struct scene s = scene_make("moves", XROCE_RC, &table, FULL, FULL);
	const struct qp_attr other = { .pkey_index = OTHER };
	struct qp_attr attr;

	scene_post(&s, 1, WR_WRITE, 100);
	world_run(s.w);
	check_eq(s.w, s.a->send->log[0].status, CQE_SUCCESS);
	for (u32 i = 0; i < 2; i++) {
		struct side *side = i ? s.b : s.a;

		check_eq(s.w, side_state(side, QPS_SQD), 0);
		check_eq(s.w, qp_modify(side->node->engine, side->qp, &other, QP_ATTR_PKEY_INDEX,
					s.w->now_ns),
			 0);
		qp_query(side->qp, &attr);
		check_eq(s.w, attr.pkey_index, OTHER);
		check_eq(s.w, side_state(side, QPS_RTS), 0);
		if (i)
			break;
		/* one end alone: the other drops its packets */
		scene_post(&s, 2, WR_WRITE, 100);
		world_run_for(s.w, s.w->latency_ns * 2);
		check(s.w, s.b->node->drops.pkey > 0);
		check_eq(s.w, s.a->send->n, 1);
	}
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 2);
	check_eq(s.w, s.a->send->log[1].status, CQE_SUCCESS);
	check_eq(s.w, s.w->sent[s.w->num_sent - 1].packet.pkey, 0x8002);
	scene_end(&s);
}

static void modify__index_is_of_the_table(void **state)
{
	static const u16 wrong[] = { NO_INDEX, XROCE_MAX_PKEY, XROCE_MAX_PKEY + 1, 0xffff };
	const struct world_options wo = { .pkeys = { &table } };
	struct world *w = world_create_with(2, 3, &wo);
	struct pair_options o = pair_defaults();

	for (u32 node = 0; node < 2; node++) {
		const u16 num = node ? 1 : NO_INDEX;
		struct side side = side_create(&w->node[node], &o, NULL);
		struct qp_attr attr;
		u32 mask = side_attr(&o, QPS_INIT, &attr);

		for (u32 i = 0; i < ARRAY_SIZE(wrong); i++) {
			attr.pkey_index = wrong[i];
			check_eq(w, qp_modify(w->node[node].engine, side.qp, &attr, mask,
					      w->now_ns),
				 -EINVAL);
		}
		attr.pkey_index = num;
		check_eq(w, qp_modify(w->node[node].engine, side.qp, &attr, mask, w->now_ns),
			 -EINVAL);
		check_eq(w, qp_state(side.qp), QPS_RESET);
		attr.pkey_index = (u16)(num - 1);
		check_eq(w, qp_modify(w->node[node].engine, side.qp, &attr, mask, w->now_ns), 0);
		check_eq(w, side.qp->pkey, node ? 0xffff : 0x8002);
		side_destroy(&side);
	}
	world_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rc__each_sends_with_its_own),
		cmocka_unit_test(ud__membership),
		cmocka_unit_test(rc__another_partition),
		cmocka_unit_test(rc__moves_to_another_partition),
		cmocka_unit_test(modify__index_is_of_the_table),
	};

	return cmocka_run_group_tests_name("pkey", tests, NULL, NULL);
}
