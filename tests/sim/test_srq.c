/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/* Shared receive queues: one queue, several QPs, the limit, and the last WQE. */
#include "pair.h"

#include <setjmp.h>
#include <cmocka.h>

#define QPS 3

struct scene {
	struct world *w;
	struct srq *srq;		/* of node 1 */
	struct pair p[QPS];
	struct buffer *local, *remote;
};

static void scene_make(struct scene *s, const char *name, enum xroce_transport transport)
{
	struct pair_options o = pair_defaults();

	*s = (struct scene){ .w = world_create(2, 19) };
	world_label(s->w, "test_srq %s", name);
	s->srq = world_srq(&s->w->node[1], 32);
	o.transport = transport;
	o.pmtu = 256;
	o.srq[1] = s->srq;
	for (u32 i = 0; i < QPS; i++)
		s->p[i] = pair_connect(s->w, &o);
	s->local = world_buffer(&s->w->node[0], 8192, PAIR_ACCESS_ALL);
	s->remote = world_buffer(&s->w->node[1], 32 * 1024, PAIR_ACCESS_ALL);
}

static void scene_end(struct scene *s)
{
	for (u32 i = 0; i < QPS; i++)
		pair_destroy(&s->p[i]);
	check_eq(s->w, s->srq->users.engines, 0);
	world_destroy(s->w);
	world_srq_destroy(s->srq);
}

static void post_srq(struct scene *s, u64 wr_id)
{
	struct sge sge = buffer_sge(s->remote, (u32)wr_id * 1024, 1024);

	post_srq_recv(s->srq, wr_id, &sge, 1);
}

static void send_message(struct scene *s, u32 qp, u64 wr_id, u32 len)
{
	post_send(&s->p[qp].side[0],
		  &(struct send){ .wr_id = wr_id,
				  .opcode = WR_SEND_WITH_IMM,
				  .flags = WR_SIGNALED,
				  .num_sge = 1,
				  .imm = htobe32((u32)wr_id),
				  .sge = { buffer_sge(s->local, (u32)wr_id, len) } });
}

static void shared__messages_of_several_qps(void **state)
{
	struct scene s;
	u32 total = 0;
	bool used[QPS * 4] = { false };

	scene_make(&s, "shared", XROCE_RC);
	for (u32 i = 0; i < QPS * 4; i++)
		post_srq(&s, i);
	for (u32 i = 0; i < QPS * 4; i++)
		send_message(&s, i % QPS, i,
			     600 + i); /* three packets each, interleaved on the wire */
	world_run(s.w);
	for (u32 q = 0; q < QPS; q++) {
		struct watched_cq *recv = s.p[q].side[1].recv;

		check_eq(s.w, recv->n, 4);
		check_eq(s.w, s.p[q].side[0].send->n, 4);
		for (u32 i = 0; i < 4; i++) {
			const struct cqe *e = &recv->log[i];
			u32 message = i * QPS + q;

			check(s.w, e->wr_id < QPS * 4 && !used[e->wr_id]);
			used[e->wr_id] = true;
			expect(s.w, recv, i, .wr_id = e->wr_id, .opcode = CQE_RECV,
			       .byte_len = 600 + message, .flags = CQE_WITH_IMM,
			       .imm = htobe32(message), .qpn = s.p[q].side[1].qp->qpn,
			       .src_qpn = s.p[q].side[0].qp->qpn);
			check(s.w, memcmp(s.remote->bytes + e->wr_id * 1024,
					  s.local->bytes + message, 600 + message) == 0);
			total++;
		}
	}
	check_eq(s.w, total, QPS * 4);
	check_eq(s.w, rq_posted(&s.srq->rq), 0);
	scene_end(&s);
}

static void empty__is_rnr_until_posted(void **state)
{
	struct scene s;

	scene_make(&s, "empty", XROCE_RC);
	send_message(&s, 0, 1, 100);
	send_message(&s, 1, 2, 100);
	world_run_for(s.w, 10 * NSEC_PER_MSEC);
	check(s.w, s.w->node[1].stats.tx_rnr_naks >= 2);
	post_srq(&s, 5);
	post_srq(&s, 6);
	world_run(s.w);
	check_eq(s.w, s.p[0].side[1].recv->n, 1);
	check_eq(s.w, s.p[1].side[1].recv->n, 1);
	scene_end(&s);
}

static void limit__fires_once(void **state)
{
	struct scene s;
	struct node *n;

	scene_make(&s, "limit", XROCE_RC);
	n = &s.w->node[1];
	for (u32 i = 0; i < 8; i++)
		post_srq(&s, i);
	engine_srq_set_limit(n->engine, s.srq, 5);
	for (u32 i = 0; i < 8; i++) {
		send_message(&s, i % QPS, i, 50);
		world_run(s.w);
		/*
		 * After message i there are 7 - i left: fewer than 5 from i = 3 on, and then once
		 * only.
		 */
		check_eq(s.w, world_events(n, EVENT_SRQ_LIMIT, NULL), i >= 3);
	}
	check_eq(s.w, s.srq->limit, 0);
	/* Armed with too few left: at once. Armed with 0: never. */
	engine_srq_set_limit(n->engine, s.srq, 1);
	world_settle(s.w);
	check_eq(s.w, world_events(n, EVENT_SRQ_LIMIT, NULL), 2);
	check_eq(s.w, n->events[n->num_events - 1].srq == s.srq, 1);
	engine_srq_set_limit(n->engine, s.srq, 0);
	post_srq(&s, 9);
	send_message(&s, 0, 9, 50);
	world_run(s.w);
	check_eq(s.w, world_events(n, EVENT_SRQ_LIMIT, NULL), 2);
	scene_end(&s);
}

static void last_wqe__when_a_qp_fails(void **state)
{
	struct scene s;
	struct side *b;

	scene_make(&s, "last wqe", XROCE_RC);
	b = &s.p[1].side[1];
	for (u32 i = 0; i < 4; i++)
		post_srq(&s, i);
	check_eq(s.w, side_state(b, QPS_ERR), 0);
	world_settle(s.w);
	check_eq(s.w, world_events(b->node, EVENT_QP_LAST_WQE, b->qp), 1);
	/* The queue is the others' too: nothing of it is flushed. */
	check_eq(s.w, b->recv->n, 0);
	check_eq(s.w, rq_posted(&s.srq->rq), 4);
	check_eq(s.w, world_events(b->node, EVENT_QP_LAST_WQE, NULL), 1);
	send_message(&s, 0, 1, 50);
	world_run(s.w);
	check_eq(s.w, s.p[0].side[1].recv->n, 1);
	scene_end(&s);
}

/* In the middle of a message a QP holds a WQE of the queue: that one it flushes. */
static void last_wqe__the_held_one_is_flushed(void **state)
{
	struct scene s;
	struct side *b;

	scene_make(&s, "held", XROCE_RC);
	b = &s.p[0].side[1];
	post_srq(&s, 3);
	post_srq(&s, 4);
	s.w->node[0].to[1].drop = 4; /* the last of three packets */
	send_message(&s, 0, 1, 600);
	world_run_for(s.w, 10 * WORLD_LATENCY_NS);
	check_eq(s.w, rq_posted(&s.srq->rq), 1);
	check_eq(s.w, side_state(b, QPS_ERR), 0);
	world_settle(s.w);
	check_eq(s.w, b->recv->n, 1);
	expect(s.w, b->recv, 0, .wr_id = 3, .status = CQE_WR_FLUSH_ERR, .qpn = b->qp->qpn);
	check_eq(s.w, world_events(b->node, EVENT_QP_LAST_WQE, b->qp), 1);
	check_eq(s.w, rq_posted(&s.srq->rq), 1);
	scene_end(&s);
}

static void ud_and_uc__share_as_well(void **state)
{
	struct scene s;

	scene_make(&s, "uc", XROCE_UC);
	for (u32 i = 0; i < QPS; i++)
		post_srq(&s, i);
	for (u32 i = 0; i < QPS; i++)
		send_message(&s, i, i, 600);
	world_run(s.w);
	for (u32 i = 0; i < QPS; i++)
		check_eq(s.w, s.p[i].side[1].recv->n, 1);
	scene_end(&s);

	scene_make(&s, "ud", XROCE_UD);
	for (u32 i = 0; i < QPS; i++)
		post_srq(&s, i);
	for (u32 i = 0; i < QPS; i++) {
		struct path path = world_path(s.w, 0, 1, true);

		post_send(&s.p[i].side[0], &(struct send){ .wr_id = i,
							   .opcode = WR_SEND,
							   .num_sge = 1,
							   .sge = { buffer_sge(s.local, 0, 50) },
							   .path = &path,
							   .remote_qpn = s.p[i].side[1].qp->qpn,
							   .remote_qkey = PAIR_QKEY });
		world_settle(s.w);
	}
	world_run(s.w);
	for (u32 i = 0; i < QPS; i++)
		expect(s.w, s.p[i].side[1].recv, 0, .wr_id = i, .opcode = CQE_RECV, .byte_len = 90,
		       .flags = CQE_GRH, .qpn = s.p[i].side[1].qp->qpn,
		       .src_qpn = s.p[i].side[0].qp->qpn);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shared__messages_of_several_qps),
		cmocka_unit_test(empty__is_rnr_until_posted),
		cmocka_unit_test(limit__fires_once),
		cmocka_unit_test(last_wqe__when_a_qp_fails),
		cmocka_unit_test(last_wqe__the_held_one_is_flushed),
		cmocka_unit_test(ud_and_uc__share_as_well),
	};

	return cmocka_run_group_tests_name("srq", tests, NULL, NULL);
}
