/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * Several engines of a device: state that QPs of different engines share, and state that moves with
 * a QP. Other tests under XROCE_SIM_ENGINES, and test_random, show that all else is as with one
 * engine.
 */
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

/*
 * Two connections; at node 1 the engine of its number owns each QP. All complete in one CQ
 * there.
 */
#define PAIRS 2

struct scene2 {
	struct world *w;
	struct pair p[PAIRS];
	struct watched_cq *cq;
	struct buffer *local, *remote;
};

static struct side *b_of(struct scene2 *s, u32 i)
{
	return &s->p[i].side[1];
}

static struct scene2 scene_open(const struct pair_options *options, u32 cq_capacity,
				const char *name)
{
	struct scene2 s = { .w = world_create_with(2, 41,
						   &(struct world_options){ .num_engines = 3 }) };
	struct pair_options o = *options;

	world_label(s.w, "test_engines %s", name);
	s.cq = o.cq[1] = world_cq(&s.w->node[1], cq_capacity);
	for (u32 i = 0; i < PAIRS; i++) {
		s.p[i] = pair_connect(s.w, &o);
		check_eq(s.w, engine_number(qp_engine(b_of(&s, i)->qp)), i);
	}
	s.local = world_buffer(&s.w->node[0], 64 * 1024, PAIR_ACCESS_ALL);
	s.remote = world_buffer(&s.w->node[1], 64 * 1024, PAIR_ACCESS_ALL | MR_MW_BIND);
	return s;
}

static void scene_close(struct scene2 *s)
{
	for (u32 i = 0; i < PAIRS; i++)
		pair_destroy(&s->p[i]);
	check_eq(s->w, cq_engines(&s->cq->cq), 0);
	world_destroy(s->w);
}

static void post_message(struct scene2 *s, u32 qp, u64 wr_id, u8 flags)
{
	post_send(&s->p[qp].side[0], &(struct send){ .wr_id = wr_id,
						     .opcode = WR_SEND,
						     .flags = WR_SIGNALED | flags,
						     .num_sge = 1,
						     .sge = { buffer_sge(s->local, 0, 64) } });
}

static void send_message(struct scene2 *s, u32 qp, u64 wr_id)
{
	post_recv_buffer(b_of(s, qp), wr_id, s->remote, (u32)wr_id * 64, 64);
	post_message(s, qp, wr_id, 0);
	world_run(s->w);
}

static u32 cq_events(const struct scene2 *s, enum engine_event_type type)
{
	const struct node *n = &s->w->node[1];
	u32 count = 0;

	for (u32 i = 0; i < n->num_events; i++)
		count += n->events[i].type == type && n->events[i].cq == &s->cq->cq;
	return count;
}

/* ---- frames ---- */

static void frame__of_another_owner_is_not_touched(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene2 s = scene_open(&o, 64, "frame");
	struct node *n = &s.w->node[1];
	const struct sent_frame *sent;
	struct rx_frame rx;
	u32 handed = 0;

	s.w->node[0].to[1].drop = 1;
	post_recv_buffer(b_of(&s, 1), 7, s.remote, 0, 64);
	post_message(&s, 1, 7, 0);
	world_settle(s.w);
	sent = world_sent(s.w, 0, OP5_SEND_ONLY, 0);
	rx = (struct rx_frame){ .data = sent->data, .len = sent->len };
	check(s.w, engine_frame_qp(n->engine, &rx) == b_of(&s, 1)->qp);
	for (u32 i = 0; i < n->num_engines; i++) {
		const struct engine_frame f = { .frame = rx };
		u64 away = 0;

		if (i == 1)
			continue;
		check_eq(s.w, engine_input(n->engines[i], NULL, &rx, s.w->now_ns),
			 XROCE_DROP_not_handed);
		check_eq(s.w, engine_input_batch(n->engines[i], &f, 1, s.w->now_ns, &away), 0);
		check_eq(s.w, away, 1);
		check_eq(s.w, n->drops.not_handed, 2 * handed++ + 1);
		check_eq(s.w, engine_input_batch(n->engines[i], &f, 1, s.w->now_ns, NULL), 1);
	}
	check_eq(s.w, n->drops.not_handed, 4);
	check_eq(s.w, n->drops.qp_unknown, 0);
	check_eq(s.w, rq_posted(&b_of(&s, 1)->qp->rq), 1);
	check_eq(s.w, engine_input(n->engines[1], NULL, &rx, s.w->now_ns), 0);
	world_run(s.w);
	expect(s.w, s.cq, 0, .wr_id = 7, .opcode = CQE_RECV, .byte_len = 64,
	       .qpn = b_of(&s, 1)->qp->qpn);
	scene_close(&s);
}

/* ---- a CQ of several ---- */

static void shared_cq__one_event_an_arm(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene2 s = scene_open(&o, 64, "arm");

	check_eq(s.w, cq_engines(&s.cq->cq), 3);
	for (u32 i = 0; i < 8; i++) {
		atomic_store(&s.cq->cq.armed, CQ_ARMED_ANY);
		send_message(&s, i % 2, i);
		check_eq(s.w, cq_events(&s, EVENT_COMPLETION), i + 1);
		check(s.w, !cq_is_armed(&s.cq->cq));
		send_message(&s, !(i % 2), 8 + i);
		check_eq(s.w, cq_events(&s, EVENT_COMPLETION), i + 1);
	}
	check_eq(s.w, s.cq->n, 16);
	scene_close(&s);
}

/*
 * ibv_create_cq(3): the QPs of a CQ that has overrun go with it, wherever they are, and the event
 * comes once.
 */
static void shared_cq__overrun_takes_all(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene2 s = scene_open(&o, 4, "overrun");
	struct pair other;
	u32 room = 0;

	o.cq_capacity = 64;
	other = pair_connect(s.w, &o);
	check_eq(s.w, engine_number(qp_engine(other.side[1].qp)), 2);
	s.cq->polled = false;
	while (cq_events(&s, EVENT_CQ_ERR) == 0) {
		check(s.w, room < 6);
		send_message(&s, 1, room++);
	}
	check_eq(s.w, room, 5);
	check_eq(s.w, s.w->node[1].stats.cq_overruns, 1);
	check_eq(s.w, cq_events(&s, EVENT_CQ_ERR), 1);
	for (u32 i = 0; i < PAIRS; i++) {
		check_eq(s.w, qp_state(b_of(&s, i)->qp), QPS_ERR);
		check_eq(s.w, world_events(b_of(&s, i)->node, EVENT_QP_FATAL, b_of(&s, i)->qp), 1);
	}
	check_eq(s.w, qp_state(other.side[1].qp), QPS_RTS);
	pair_destroy(&other);
	scene_close(&s);
}

/* An XRC SRQ completes in number 0; that its CQ overruns may be another engine's doing. */
static void shared_cq__overrun_takes_an_xrc_srq(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene2 s = scene_open(&o, 4, "overrun xrc");
	struct srq *srq = world_xrc_srq(&s.w->node[1], 4, 1, PAIR_PD, s.cq);
	struct node *n = &s.w->node[1];
	u32 srq_errors = 0;

	world_move(n, b_of(&s, 0)->qp, 1);
	check_eq(s.w, cq_engines(&s.cq->cq), 3);
	s.cq->polled = false;
	for (u32 i = 0; i < 5; i++)
		send_message(&s, 1, i);
	for (u32 i = 0; i < n->num_events; i++)
		srq_errors += n->events[i].type == EVENT_SRQ_ERR && n->events[i].srq == srq;
	check_eq(s.w, srq_errors, 1);
	check_eq(s.w, qp_state(b_of(&s, 0)->qp), QPS_ERR);
	world_xrc_srq_destroy(n, srq);
	scene_close(&s);
}

static void shared_cq__is_counted_together_when_moderated(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene2 s = scene_open(&o, 64, "moderated");
	u64 began;

	engine_cq_moderate(s.w->node[1].engine, &s.cq->cq, 4, NSEC_PER_SEC);
	for (u32 round = 0; round < 3; round++) {
		atomic_store(&s.cq->cq.armed, CQ_ARMED_ANY);
		for (u32 i = 0; i < 4; i++) {
			check_eq(s.w, cq_events(&s, EVENT_COMPLETION), round);
			post_recv_buffer(b_of(&s, (i + round) % 2), i, s.remote, 0, 64);
			post_message(&s, (i + round) % 2, i, 0);
			world_run_for(s.w, 20 * WORLD_LATENCY_NS);
		}
		check_eq(s.w, cq_events(&s, EVENT_COMPLETION), round + 1);
	}
	/*
	 * the first of a row sets the event's time, whichever engine adds to it or has left
	 */
	world_run(s.w);
	atomic_store(&s.cq->cq.armed, CQ_ARMED_ANY);
	began = s.w->now_ns;
	for (u32 i = 0; i < 2; i++) {
		post_recv_buffer(b_of(&s, i), i, s.remote, 0, 64);
		post_message(&s, i, i, 0);
		world_run_for(s.w, 20 * WORLD_LATENCY_NS);
	}
	check_eq(s.w, world_deadline_ns(&s.w->node[1]), began + WORLD_LATENCY_NS + NSEC_PER_SEC);
	world_move(&s.w->node[1], b_of(&s, 0)->qp, 2);
	world_run_for(s.w, NSEC_PER_SEC - 100 * WORLD_LATENCY_NS);
	check_eq(s.w, cq_events(&s, EVENT_COMPLETION), 3);
	world_run_for(s.w, 100 * WORLD_LATENCY_NS);
	check_eq(s.w, cq_events(&s, EVENT_COMPLETION), 4);
	scene_close(&s);
}

/*
 * The engine that times a CQ's event is among the engines that fill it, also when a QP moves or is
 * destroyed; for a CQ's only engine works without a lock.
 */
static void shared_cq__is_watched_by_who_fills_it(void **state)
{
	struct pair_options o = pair_defaults();

	for (u32 how = 0; how < 3; how++) {
		struct scene2 s = scene_open(&o, 64, "watched");
		struct node *n = &s.w->node[1];
		u64 due_ns = s.w->now_ns + WORLD_LATENCY_NS + NSEC_PER_SEC;

		engine_cq_moderate(n->engine, &s.cq->cq, 4, NSEC_PER_SEC);
		atomic_store(&s.cq->cq.armed, CQ_ARMED_ANY);
		post_recv_buffer(b_of(&s, 0), 0, s.remote, 0, 64);
		post_message(&s, 0, 0, 0);
		world_run_for(s.w, 20 * WORLD_LATENCY_NS);
		check_eq(s.w, engine_deadline_ns(n->engines[0]), due_ns);
		if (how == 0) { /* 1 alone fills it now */
			world_move(n, b_of(&s, 0)->qp, 1);
		} else {
			/* no engine for a while, or 0 until all QPs live in 1 */
			world_move(n, b_of(&s, 1)->qp, how == 1 ? 2 : 0);
			world_move(n, b_of(&s, 0)->qp, 1);
			world_move(n, b_of(&s, 1)->qp, 1);
		}
		check(s.w, !s.cq->cq.shared);
		engine_expire(n->engines[0], due_ns - 1);
		check_eq(s.w, engine_deadline_ns(n->engines[1]), due_ns);
		engine_expire(n->engines[0], due_ns);
		check_eq(s.w, s.cq->cq.withheld, 1);
		world_run(s.w);
		check_eq(s.w, s.w->now_ns, due_ns);
		check_eq(s.w, cq_events(&s, EVENT_COMPLETION), 1);
		scene_close(&s);
	}
}

/* A CQ whose moderation is reduced is not delayed by the engine that has it on its list. */
static void shared_cq__moderated_anew(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene2 s = scene_open(&o, 64, "moderated anew");

	engine_cq_moderate(s.w->node[1].engine, &s.cq->cq, 4, NSEC_PER_SEC);
	atomic_store(&s.cq->cq.armed, CQ_ARMED_ANY);
	post_recv_buffer(b_of(&s, 1), 0, s.remote, 0, 64);
	post_message(&s, 1, 0, 0);
	world_run_for(s.w, 20 * WORLD_LATENCY_NS);
	check_eq(s.w, cq_events(&s, EVENT_COMPLETION), 0);
	engine_cq_moderate(s.w->node[1].engine, &s.cq->cq, 4, NSEC_PER_MSEC);
	world_settle(s.w);
	check_eq(s.w, cq_events(&s, EVENT_COMPLETION), 1); /* the withheld event */
	atomic_store(&s.cq->cq.armed, CQ_ARMED_ANY);
	post_recv_buffer(b_of(&s, 0), 0, s.remote, 0, 64);
	post_message(&s, 0, 0, 0);
	world_run_for(s.w, 2 * NSEC_PER_MSEC);
	check_eq(s.w, cq_events(&s, EVENT_COMPLETION), 2);
	scene_close(&s);
}

/* ---- an SRQ of several ---- */

static void shared_srq__limit_is_reported_once(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene2 s;
	struct world *w = world_create(2, 1);
	struct srq *srq = world_srq(&w->node[1], 32);
	u32 reached = 0;

	world_destroy(w);
	o.srq[1] = srq;
	s = scene_open(&o, 64, "srq");
	check(s.w, srq->shared);
	for (u32 i = 0; i < 8; i++) {
		struct sge sge = buffer_sge(s.remote, i * 64, 64);

		post_srq_recv(srq, i, &sge, 1);
	}
	engine_srq_set_limit(s.w->node[1].engine, srq, 4);
	for (u32 i = 0; i < 8; i++) {
		post_message(&s, i % 2, i, 0);
		world_run(s.w);
		expect(s.w, s.cq, i, .wr_id = i, .opcode = CQE_RECV, .byte_len = 64,
		       .qpn = b_of(&s, i % 2)->qp->qpn);
		reached = world_events(&s.w->node[1], EVENT_SRQ_LIMIT, NULL);
		check_eq(s.w, reached, i >= 4);
	}
	world_move(&s.w->node[1], b_of(&s, 1)->qp, 0);
	check(s.w, !srq->shared);
	scene_close(&s);
	check_eq(s.w, srq->users.engines, 0);
	world_srq_destroy(srq);
}

/* ---- windows ---- */

static struct send bind_of(const struct mr *mw, const struct buffer *region, u32 length)
{
	struct send send = { .wr_id = 900, .opcode = WR_BIND_MW, .flags = WR_SIGNALED };

	send.bind.mw_key = send.bind.new_key = mw->key;
	send.bind.lkey = region->mr->key;
	send.bind.access = MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC;
	send.bind.addr = buffer_va(region);
	send.bind.length = length;
	return send;
}

/*
 * Bound through one QP's queue, used through another's, unbound again; and each twice, for a lock
 * that is left taken would end it.
 */
static void window__of_type_1_serves_all_owners(void **state)
{
	static const enum wr_opcode opcodes[] = { WR_WRITE, WR_READ, WR_FETCH_ADD, WR_ATOMIC_WRITE,
						  WR_FLUSH };
	struct pair_options o = pair_defaults();
	struct scene2 s = scene_open(&o, 64, "type 1");
	struct mr *mw;

	assert_int_equal(mw_add(engine_mr_table(s.w->node[1].engine), PAIR_PD, MR_WINDOW_1, &mw),
			 0);
	for (u32 i = 0; i < 2 * ARRAY_SIZE(opcodes); i++) {
		enum wr_opcode op = opcodes[i / 2];
		struct send bind = bind_of(mw, s.remote, 4096);
		struct send use = request_between(s.local, s.remote, i, op,
						  op == WR_WRITE || op == WR_READ ? 3000 : 8);

		if (op == WR_FLUSH)
			bind.bind.access |= MR_FLUSH_GLOBAL;
		if (op == WR_FLUSH || op == WR_ATOMIC_WRITE)
			use.num_sge = 0, use.length = 8, use.compare_add = 1;
		post_send(b_of(&s, i % 2), &bind);
		world_run(s.w);
		check(s.w, mw->region == s.remote->mr);
		check_eq(s.w, s.remote->mr->windows, 1);
		use.rkey = mw->key;
		for (u32 k = 0; k < 2; k++)
			post_send(&s.p[k].side[0], &use);
		world_run(s.w);
		bind.bind.length = 0;
		post_send(b_of(&s, i % 2), &bind);
		world_run(s.w);
		for (u32 k = 0; k < 2; k++)
			check_eq(s.w, s.p[k].side[0].send->log[i].status, CQE_SUCCESS);
		check(s.w, !mw->region);
		check_eq(s.w, s.remote->mr->windows, 0);
	}
	/* closed, it belongs to no engine */
	for (u32 k = 0; k < 2; k++) {
		struct send use = request_between(s.local, s.remote, 1, WR_WRITE, 8);

		use.rkey = mw->key;
		post_send(&s.p[k].side[0], &use);
		world_run(s.w);
		check_eq(s.w, s.p[k].side[0].send->log[s.p[k].side[0].send->n - 1].status,
			 CQE_REM_ACCESS_ERR);
	}
	mr_remove(engine_mr_table(s.w->node[1].engine), mw);
	scene_close(&s);
}

static void window__of_type_2_is_for_its_own_qp(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene2 s = scene_open(&o, 64, "type 2");
	struct send bind, use = request_between(s.local, s.remote, 1, WR_WRITE, 1000);
	struct mr *mw;

	assert_int_equal(mw_add(engine_mr_table(s.w->node[1].engine), PAIR_PD, MR_WINDOW_2, &mw),
			 0);
	bind = bind_of(mw, s.remote, 4096);
	post_send(b_of(&s, 0), &bind);
	world_run(s.w);
	use.rkey = mw->key;
	/* wherever its QP lives */
	for (u32 i = 0; i < 3; i++) {
		post_send(&s.p[0].side[0], &use);
		world_run(s.w);
		check_eq(s.w, s.p[0].side[0].send->log[i].status, CQE_SUCCESS);
		world_move(&s.w->node[1], b_of(&s, 0)->qp, (i + 1) % 3);
	}
	post_send(&s.p[1].side[0], &use);
	world_run(s.w);
	check_eq(s.w, s.p[1].side[0].send->log[0].status, CQE_REM_ACCESS_ERR);
	check_eq(s.w,
		 mw_invalidate(engine_mr_table(s.w->node[1].engine), PAIR_PD, mw->key,
			       b_of(&s, 1)->qp->qpn),
		 (u64)-EINVAL);
	check_eq(s.w,
		 mw_invalidate(engine_mr_table(s.w->node[1].engine), PAIR_PD, mw->key,
			       b_of(&s, 0)->qp->qpn),
		 0);
	mr_remove(engine_mr_table(s.w->node[1].engine), mw);
	scene_close(&s);
}

/* ---- moving ---- */

static void move__what_was_posted_goes_with_it(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene2 s = scene_open(&o, 64, "posted");
	struct side *a = &s.p[0].side[0];

	for (u32 i = 0; i < 6; i++) {
		u32 from = engine_number(qp_engine(a->qp));

		post_recv_buffer(b_of(&s, 0), i, s.remote, 0, 64);
		post_message(&s, 0, i, 0);
		/* as a bell, and on the way out */
		if (i % 2)
			engine_posted(qp_engine(a->qp), a->qp);
		world_move(&s.w->node[0], a->qp, (from + 1) % 3);
		check(s.w, !engine_has_doorbells(s.w->node[0].engines[from]));
		/* and no other engine need be run for it */
		s.w->node[0].to_run = 0;
		world_ring(&s.w->node[0], a->qp);
		world_run(s.w);
		expect(s.w, a->send, i, .wr_id = i, .opcode = CQE_SEND, .byte_len = 64,
		       .qpn = a->qp->qpn);
	}
	scene_close(&s);
}

/* A lost request is sent again by the engine that owns the QP at that time. */
static void move__deadlines_go_with_it(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene2 s = scene_open(&o, 64, "deadline");
	struct side *a = &s.p[0].side[0];
	u64 due_ns;

	s.w->node[0].to[1].drop = 3;
	post_recv_buffer(b_of(&s, 0), 1, s.remote, 0, 64);
	post_message(&s, 0, 1, 0);
	world_settle(s.w);
	due_ns = engine_deadline_ns(qp_engine(a->qp));
	check(s.w, due_ns != NSEC_NEVER);
	world_move(&s.w->node[0], a->qp, 2);
	check_eq(s.w, engine_deadline_ns(s.w->node[0].engines[2]), due_ns);
	check_eq(s.w, engine_deadline_ns(s.w->node[0].engines[0]), NSEC_NEVER);
	world_run(s.w);
	expect(s.w, a->send, 0, .wr_id = 1, .opcode = CQE_SEND, .byte_len = 64, .qpn = a->qp->qpn);
	scene_close(&s);
}

/* An RNR wait is one, too. */
static void move__in_an_rnr_wait(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene2 s = scene_open(&o, 64, "rnr");
	struct side *a = &s.p[0].side[0];

	post_message(&s, 0, 1, 0);
	world_run_for(s.w, 10 * WORLD_LATENCY_NS);
	check_eq(s.w, s.w->node[1].stats.tx_rnr_naks, 1);
	world_move(&s.w->node[0], a->qp, 2);
	world_move(&s.w->node[1], b_of(&s, 0)->qp, 2);
	post_recv_buffer(b_of(&s, 0), 1, s.remote, 0, 64);
	world_run(s.w);
	check_eq(s.w, s.w->node[1].stats.tx_rnr_naks, 1);
	expect(s.w, a->send, 0, .wr_id = 1, .opcode = CQE_SEND, .byte_len = 64, .qpn = a->qp->qpn);
	scene_close(&s);
}

/* Due answers are sent from the QP's new engine, and no peer has to ask twice. */
static void move__answers_that_are_due_go_with_it(void **state)
{
	static const enum wr_opcode opcodes[] = { WR_READ, WR_WRITE, WR_FETCH_ADD };
	struct pair_options o = pair_defaults();
	struct scene2 s = scene_open(&o, 64, "answers");
	struct node *n = &s.w->node[1];

	for (u32 i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct send request = request_between(s.local, s.remote, i, opcodes[i], 8);
		const struct sent_frame *sent;
		struct rx_frame rx;

		s.w->node[0].to[1].drop = 1ull << s.w->node[0].to[1].count;
		post_send(&s.p[0].side[0], &request);
		world_settle(s.w);
		sent = &s.w->sent[s.w->num_sent - 1];
		check_eq(s.w, sent->fate, FATE_DROPPED);
		rx = (struct rx_frame){ .data = sent->data, .len = sent->len };
		check_eq(s.w, engine_input(qp_engine(b_of(&s, 0)->qp), NULL, &rx, s.w->now_ns), 0);
		world_move(n, b_of(&s, 0)->qp, (i + 1) % 3);
		world_run(s.w);
		expect(s.w, s.p[0].side[0].send, i, .wr_id = i,
		       .opcode = (u16[]){ CQE_READ, CQE_WRITE, CQE_FETCH_ADD }[i], .byte_len = 8,
		       .qpn = s.p[0].side[0].qp->qpn);
		check_eq(s.w, n->stats.duplicate_requests, 0);
	}
	scene_close(&s);
}

static void move__events_go_with_it(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene2 s = scene_open(&o, 64, "events");
	struct node *n = &s.w->node[1];

	check_eq(s.w, side_state(b_of(&s, 0), QPS_ERR), 0);
	check_eq(s.w, side_state(b_of(&s, 1), QPS_ERR), 0);
	world_move(n, b_of(&s, 0)->qp, 1); /* where another one waits */
	world_move(n, b_of(&s, 1)->qp, 2);
	world_settle(s.w);
	for (u32 i = 0; i < PAIRS; i++)
		check_eq(s.w, world_events(n, EVENT_QP_STATE, b_of(&s, i)->qp), 1);
	scene_close(&s);
}

/*
 * The CQ has overrun, and before its QPs are found one of them moves to an engine that does not
 * know of the overrun.
 */
static void move__between_overrun_and_its_consequences(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene2 s = scene_open(&o, 1, "overrun and move");
	struct node *n = &s.w->node[1];
	const struct sent_frame *sent;
	struct rx_frame rx;

	s.cq->polled = false;
	send_message(&s, 0, 0);
	s.w->node[0].to[1].drop = 1ull << s.w->node[0].to[1].count;
	post_recv_buffer(b_of(&s, 0), 1, s.remote, 0, 64);
	post_message(&s, 0, 1, 0);
	world_settle(s.w);
	sent = world_sent(s.w, 0, OP5_SEND_ONLY, 1);
	rx = (struct rx_frame){ .data = sent->data, .len = sent->len };
	check_eq(s.w, engine_input(n->engines[0], NULL, &rx, s.w->now_ns), 0);
	world_move(n, b_of(&s, 0)->qp, 2);
	world_move(n, b_of(&s, 1)->qp, 0);
	world_settle(s.w);
	for (u32 i = 0; i < PAIRS; i++) {
		check_eq(s.w, qp_state(b_of(&s, i)->qp), QPS_ERR);
		check_eq(s.w, world_events(n, EVENT_QP_FATAL, b_of(&s, i)->qp), 1);
	}
	scene_close(&s);
}

/*
 * Early packets stay in the old engine and are requested again; the new owner answers a READ under
 * way.
 */
static void move__in_the_middle_of_messages(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene2 s;
	struct send request;

	o.pmtu = 256;
	for (u32 lost = 0; lost < 12; lost++)
		for (u32 at = 0; at < 24; at++) {
			s = scene_open(&o, 64, "middle");
			s.w->node[0].to[1].drop = 1ull << lost;
			s.w->node[1].to[0].drop = 1ull << lost;
			request = request_between(s.local, s.remote, 1, WR_WRITE, 12 * 256);
			post_send(&s.p[0].side[0], &request);
			request = request_between(s.local, s.remote, 2, WR_READ, 12 * 256);
			request.sge[0].addr += 32 * 1024;
			request.remote_addr += 32 * 1024;
			post_send(&s.p[0].side[0], &request);
			world_settle(s.w);
			world_run_for(s.w, at * WORLD_LATENCY_NS / 2);
			for (u32 i = 0; i < 2; i++)
				world_move(&s.w->node[i], s.p[0].side[i].qp, 2);
			world_run(s.w);
			check_eq(s.w, s.p[0].side[0].send->n, 2);
			check_eq(s.w,
				 s.p[0].side[0].send->log[0].status |
					 s.p[0].side[0].send->log[1].status,
				 0);
			check(s.w, !memcmp(s.local->bytes, s.remote->bytes, 12 * 256));
			check(s.w, !memcmp(s.local->bytes + 32 * 1024, s.remote->bytes + 32 * 1024,
					   12 * 256));
			scene_close(&s);
		}
}

static void move__not_xrc_nor_tag_matching(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene2 s = scene_open(&o, 64, "pinned");
	struct node *n = &s.w->node[1];
	struct watched_cq *c = world_cq(n, 64);
	struct srq *tags = world_tag_srq(n, 4, 4, 4, c);
	struct qp_init init = {
		.transport = XROCE_XRC, .send_cq = &c->cq, .pd = PAIR_PD, .max_send_wr = 1
	};
	struct qp *qp;

	check(s.w, engine_may_move(b_of(&s, 0)->qp));
	for (u32 i = 0; i < 3; i++) {
		if (i == 1)
			init = (struct qp_init){
				.transport = XROCE_XRC, .xrc_target = true, .xrcd = 1, .pd = PAIR_PD
			};
		if (i == 2)
			init = (struct qp_init){ .transport = XROCE_RC,
						 .send_cq = &c->cq,
						 .recv_cq = &c->cq,
						 .pd = PAIR_PD,
						 .srq = tags };
		check_eq(s.w, qp_create(n->engines[1], &init, &qp), (u64)-EINVAL);
		check_eq(s.w, qp_create(n->engines[0], &init, &qp), 0);
		check(s.w, !engine_may_move(qp));
		qp_destroy(n->engines[2], qp);
	}
	world_tag_srq_destroy(tags);
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame__of_another_owner_is_not_touched),
		cmocka_unit_test(shared_cq__one_event_an_arm),
		cmocka_unit_test(shared_cq__overrun_takes_all),
		cmocka_unit_test(shared_cq__overrun_takes_an_xrc_srq),
		cmocka_unit_test(shared_cq__is_counted_together_when_moderated),
		cmocka_unit_test(shared_cq__is_watched_by_who_fills_it),
		cmocka_unit_test(shared_cq__moderated_anew),
		cmocka_unit_test(shared_srq__limit_is_reported_once),
		cmocka_unit_test(window__of_type_1_serves_all_owners),
		cmocka_unit_test(window__of_type_2_is_for_its_own_qp),
		cmocka_unit_test(move__what_was_posted_goes_with_it),
		cmocka_unit_test(move__deadlines_go_with_it),
		cmocka_unit_test(move__in_an_rnr_wait),
		cmocka_unit_test(move__answers_that_are_due_go_with_it),
		cmocka_unit_test(move__events_go_with_it),
		cmocka_unit_test(move__between_overrun_and_its_consequences),
		cmocka_unit_test(move__in_the_middle_of_messages),
		cmocka_unit_test(move__not_xrc_nor_tag_matching),
	};

	return cmocka_run_group_tests_name("engines", tests, NULL, NULL);
}
