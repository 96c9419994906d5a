/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * Completion queues under traffic: when an armed one raises its event, and what an overrun does to
 * its QPs.
 */
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

static struct scene scene_make(const struct pair_options *o, const char *name)
{
	struct world *w = world_create(2, 23);

	world_label(w, "test_cq %s", name);
	return scene_in(w, o, 4096);
}

static void send_message(struct scene *s, u64 wr_id, u8 flags)
{
	post_recv_buffer(s->b, wr_id, s->remote, 0, 64);
	post_send(s->a, &(struct send){ .wr_id = wr_id,
					.opcode = WR_SEND,
					.flags = WR_SIGNALED | flags,
					.num_sge = 1,
					.sge = { buffer_sge(s->local, 0, 64) } });
	world_run(s->w);
}

static u32 cq_events(const struct node *n, const struct watched_cq *c)
{
	u32 count = 0;

	for (u32 i = 0; i < n->num_events; i++)
		count += n->events[i].type == EVENT_COMPLETION && n->events[i].cq == &c->cq;
	return count;
}

static void arm(struct watched_cq *c, u32 how)
{
	atomic_store(&c->cq.armed, how);
}

static void armed_any__one_event_an_arm(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make(&o, "any");

	send_message(&s, 0, 0);
	/* no CQ was armed */
	check_eq(s.w, cq_events(s.a->node, s.a->send) + cq_events(s.b->node, s.b->recv), 0);
	arm(s.a->send, CQ_ARMED_ANY);
	arm(s.b->recv, CQ_ARMED_ANY);
	for (u32 i = 1; i < 4; i++) {
		send_message(&s, i, 0);
		check_eq(s.w, cq_events(s.a->node, s.a->send), 1);
		check_eq(s.w, cq_events(s.b->node, s.b->recv), 1);
	}
	arm(s.b->recv, CQ_ARMED_ANY);
	send_message(&s, 4, 0);
	check_eq(s.w, cq_events(s.b->node, s.b->recv), 2);
	check_eq(s.w, cq_events(s.a->node, s.a->send), 1);
	check_eq(s.w, s.b->recv->n, 5);
	scene_end(&s);
}

static void armed_solicited__only_solicited_or_error(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make(&o, "solicited");

	arm(s.a->send, CQ_ARMED_SOLICITED);
	arm(s.b->recv, CQ_ARMED_SOLICITED);
	send_message(&s, 0, 0);
	check_eq(s.w, cq_events(s.b->node, s.b->recv), 0);
	send_message(&s, 1, WR_SOLICITED);
	check(s.w, world_sent(s.w, 0, OP5_SEND_ONLY, 1)->packet.solicited &&
			   !world_sent(s.w, 0, OP5_SEND_ONLY, 0)->packet.solicited);
	check_eq(s.w, cq_events(s.b->node, s.b->recv), 1);
	send_message(&s, 2, WR_SOLICITED); /* not armed any more */
	check_eq(s.w, cq_events(s.b->node, s.b->recv), 1);
	/* The bit is for the receiver: a send completion is none. */
	check_eq(s.w, cq_events(s.a->node, s.a->send), 0);
	/* An error always is. */
	arm(s.b->recv, CQ_ARMED_SOLICITED);
	post_recv_buffer(s.b, 3, s.remote, 0, 64);
	check_eq(s.w, side_state(s.b, QPS_ERR), 0);
	world_settle(s.w);
	check_eq(s.w, cq_events(s.b->node, s.b->recv), 2);
	scene_end(&s);
}

/*
 * SE is on the last packet of a message; a WRITE without immediate data completes nothing and has
 * none.
 */
static void solicited__long_messages_and_writes(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s;
	struct send write;

	o.pmtu = 256;
	s = scene_make(&o, "solicited writes");
	arm(s.b->recv, CQ_ARMED_SOLICITED);
	write = scene_request(&s, 1, WR_WRITE, 600);
	write.flags |= WR_SOLICITED;
	post_send(s.a, &write);
	world_run(s.w);
	check_eq(s.w, cq_events(s.b->node, s.b->recv), 0);
	check(s.w, !world_sent(s.w, 0, OP5_WRITE_LAST, 0)->packet.solicited);
	post_recv(s.b, 1, NULL, 0);
	write.wr_id = 2;
	write.opcode = WR_WRITE_WITH_IMM;
	post_send(s.a, &write);
	world_run(s.w);
	check_eq(s.w, cq_events(s.b->node, s.b->recv), 1);
	check(s.w, world_sent(s.w, 0, OP5_WRITE_LAST_IMM, 0)->packet.solicited);
	check(s.w, !world_sent(s.w, 0, OP5_WRITE_FIRST, 1)->packet.solicited &&
			   !world_sent(s.w, 0, OP5_WRITE_MIDDLE, 1)->packet.solicited);
	scene_end(&s);
}

static void overrun__fails_the_cq_and_its_qps(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s;
	struct pair other;
	u32 room;

	o.cq_capacity = 4;
	s = scene_make(&o, "overrun");
	o.cq_capacity = 512;
	other = pair_connect(s.w, &o); /* not to be drawn in */
	s.b->recv->polled = false;
	room = s.b->recv->cq.mask + 1;
	check(s.w, room >= 4);
	for (u32 i = 0; i < room; i++)
		send_message(&s, i, 0);
	check_eq(s.w, s.b->recv->cq.overrun, 0);
	check_eq(s.w, world_events(s.b->node, EVENT_CQ_ERR, NULL), 0);
	send_message(&s, room, 0);
	check_eq(s.w, s.b->recv->cq.overrun, 1);
	check_eq(s.w, world_events(s.b->node, EVENT_CQ_ERR, NULL), 1);
	check_eq(s.w, world_events(s.b->node, EVENT_QP_FATAL, s.b->qp), 1);
	check_eq(s.w, qp_state(s.b->qp), QPS_ERR);
	check_eq(s.w, s.b->node->stats.cq_overruns, 1);
	check_eq(s.w, qp_state(other.side[1].qp), QPS_RTS);
	/* Earlier completions are not lost. */
	world_poll(s.b->recv);
	check_eq(s.w, s.b->recv->n, room);
	for (u32 i = 0; i < room; i++)
		expect(s.w, s.b->recv, i, .wr_id = i, .opcode = CQE_RECV, .byte_len = 64,
		       .qpn = s.b->qp->qpn);
	pair_destroy(&other);
	scene_end(&s);
}

/* The receive CQ has four entries, and is not polled. */
static struct scene small_cq_scene(bool ignore_overrun)
{
	struct pair_options o = pair_defaults();
	struct scene s;

	o.cq_capacity = 4;
	s = scene_make(&o, "small CQ");
	s.b->recv->polled = false;
	s.b->recv->cq.ignore_overrun = ignore_overrun;
	return s;
}

static void overrun__ignored_if_asked(void **state)
{
	struct scene s = small_cq_scene(true);

	for (u32 i = 0; i < 20; i++)
		send_message(&s, i, 0);
	check_eq(s.w, world_events(s.b->node, EVENT_CQ_ERR, NULL), 0);
	check_eq(s.w, qp_state(s.b->qp), QPS_RTS);
	check_eq(s.w, s.a->send->n, 20);
	/* "a CQE is always written to the next entry": the newest are there */
	world_poll(s.b->recv);
	check_eq(s.w, s.b->recv->n, 4);
	for (u32 i = 0; i < 4; i++)
		expect(s.w, s.b->recv, i, .wr_id = 16 + i, .opcode = CQE_RECV, .byte_len = 64,
		       .qpn = s.b->qp->qpn);
	scene_end(&s);
}

/*
 * A thread that sleeps on a CQ that overruns is woken, to see that it has; with IGNORE_OVERRUN that
 * is a completion as any other.
 */
static void overrun__of_an_armed_one(void **state)
{
	for (u32 ignored = 0; ignored < 2; ignored++) {
		struct scene s = small_cq_scene(ignored);

		for (u32 i = 0; i < 4; i++)
			send_message(&s, i, 0);
		arm(s.b->recv, ignored ? CQ_ARMED_ANY : CQ_ARMED_SOLICITED);
		check_eq(s.w, cq_events(s.b->node, s.b->recv), 0);
		send_message(&s, 4, 0);
		check_eq(s.w, cq_events(s.b->node, s.b->recv), 1);
		check_eq(s.w, world_events(s.b->node, EVENT_CQ_ERR, NULL), !ignored);
		scene_end(&s);
	}
}

/*
 * One CQ for sends and receives of several QPs: the qpn identifies the QP, entries are in the order
 * of events.
 */
static void shared__between_qps(void **state)
{
	struct world *w = world_create(2, 29);
	struct pair_options o = pair_defaults();
	struct pair p[2];
	struct buffer *local = world_buffer(&w->node[0], 4096, PAIR_ACCESS_ALL),
		      *remote = world_buffer(&w->node[1], 4096, PAIR_ACCESS_ALL);
	struct watched_cq *cq;

	world_label(w, "test_cq shared");
	o.one_cq = true;
	p[0] = pair_connect(w, &o);
	p[1] = pair_connect(w, &o);
	/* The second pair's receiving QP completes into the first one's CQ. */
	cq = p[0].side[1].send;
	p[1].side[1].qp->send_cq = p[1].side[1].qp->recv_cq = &cq->cq;
	for (u32 i = 0; i < 6; i++) {
		post_recv_buffer(&p[i % 2].side[1], i, remote, 0, 64);
		post_send(&p[i % 2].side[0], &(struct send){ .wr_id = i,
							     .opcode = WR_SEND,
							     .num_sge = 1,
							     .sge = { buffer_sge(local, 0, 64) } });
		world_run(w);
	}
	check_eq(w, cq->n, 6);
	for (u32 i = 0; i < 6; i++)
		expect(w, cq, i, .wr_id = i, .opcode = CQE_RECV, .byte_len = 64,
		       .qpn = p[i % 2].side[1].qp->qpn, .src_qpn = p[i % 2].side[0].qp->qpn);
	qp_destroy(p[1].side[1].node->engine, p[1].side[1].qp);
	world_cq_destroy(&w->node[1], p[1].side[1].send);
	side_destroy(&p[1].side[0]);
	pair_destroy(&p[0]);
	world_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(armed_any__one_event_an_arm),
		cmocka_unit_test(armed_solicited__only_solicited_or_error),
		cmocka_unit_test(solicited__long_messages_and_writes),
		cmocka_unit_test(overrun__fails_the_cq_and_its_qps),
		cmocka_unit_test(overrun__ignored_if_asked),
		cmocka_unit_test(overrun__of_an_armed_one),
		cmocka_unit_test(shared__between_qps),
	};

	return cmocka_run_group_tests_name("cq", tests, NULL, NULL);
}
