/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * ibv_modify_qp(3): every transition with too little, too much and wrong values; what RESET, ERR,
 * SQD and destroying do under traffic.
 */
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

static struct scene scene_make(const char *name)
{
	struct world *w = world_create(2, 31);
	struct pair_options o = pair_defaults();

	world_label(w, "test_qp_state %s", name);
	return scene_in(w, &o, 65536);
}

/* Bring a new QP to a state by the shortest way. */
static struct side at_state(struct world *w, const struct pair_options *o, enum qp_state state)
{
	struct side s = side_create(&w->node[0], o, NULL);

	if (state == QPS_RESET)
		return s;
	if (state == QPS_ERR) {
		assert_int_equal(side_state(&s, QPS_ERR), 0);
		return s;
	}
	side_init(&s, o);
	if (state >= QPS_RTR)
		side_rtr(&s, o, 1, 77, 0);
	if (state >= QPS_RTS)
		side_rts(&s, o, 0);
	if (state == QPS_SQD)
		assert_int_equal(side_state(&s, QPS_SQD), 0);
	return s;
}

static void attributes(const struct pair_options *o, enum qp_state to, struct world *w,
		       struct qp_attr *attr)
{
	side_attr(o, to, attr);
	attr->path = world_path(w, 0, 1, false);
	attr->dest_qpn = 77;
}

/*
 * The table of ibv_modify_qp(3) and the protocol sheet, written down once more: which transitions
 * there are.
 */
static const char *const allowed[] = {
	[QPS_RESET] = "RESET INIT ERR",	 [QPS_INIT] = "RESET INIT RTR ERR",
	[QPS_RTR] = "RESET RTS ERR",	 [QPS_RTS] = "RESET RTS SQD ERR",
	[QPS_SQD] = "RESET RTS SQD ERR", [QPS_ERR] = "RESET ERR",
};
static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

static bool is_allowed(enum qp_state from, enum qp_state to)
{
	const char *at = strstr(allowed[from], names[to]);

	return at != NULL;
}

static void modify__exactly_the_transitions_of_the_table(void **state)
{
	static const enum xroce_transport transports[] = { XROCE_RC, XROCE_UC, XROCE_UD };
	struct world *w = world_create(2, 1);

	for (u32 t = 0; t < ARRAY_SIZE(transports); t++)
		for (u32 from = QPS_RESET; from <= QPS_ERR; from++)
			for (u32 to = QPS_RESET; to <= QPS_ERR && from != QPS_SQE; to++) {
				struct pair_options o = pair_defaults();
				struct side s;
				struct qp_attr attr;
				u32 required, optional, mask;
				bool exists;

				o.transport = transports[t];
				world_label(w, "test_qp_state transport %u, %s to %s",
					    transports[t], names[from], names[to]);
				s = at_state(w, &o, (enum qp_state)from);
				attributes(&o, (enum qp_state)to, w, &attr);
				exists = qp_transition(o.transport, false, (enum qp_state)from,
						       (enum qp_state)to, &required, &optional);
				check_eq(w, exists,
					 is_allowed((enum qp_state)from, (enum qp_state)to));
				mask = QP_ATTR_STATE | (exists ? required : 0);
				/*
				 * Each of the required missing in turn: refused, and nothing is
				 * changed.
				 */
				for (u32 bit = 1; exists && bit; bit <<= 1)
					if (required & bit & ~QP_ATTR_STATE)
						check_eq(w,
							 qp_modify(w->node[0].engine, s.qp, &attr,
								   mask & ~bit, 0),
							 -EINVAL);
				/* Each that is neither required nor optional, added. */
				for (u32 bit = 1; exists && bit; bit <<= 1)
					if (!((required | optional | QP_ATTR_STATE) & bit))
						check_eq(w,
							 qp_modify(w->node[0].engine, s.qp, &attr,
								   mask | bit, 0),
							 -EINVAL);
				check_eq(w, qp_state(s.qp), from);
				check_eq(w, qp_modify(w->node[0].engine, s.qp, &attr, mask, 0),
					 exists ? 0 : -EINVAL);
				check_eq(w, qp_state(s.qp), exists ? to : from);
				side_destroy(&s);
			}
	world_destroy(w);
}

/* IBTA 10.3.1: the required masks of the three steps up. */
static void transition__required_masks(void **state)
{
	const u32 init = QP_ATTR_PKEY_INDEX | QP_ATTR_PORT;
	const u32 rtr = QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN;
	const struct {
		enum xroce_transport t;
		enum qp_state from, to;
		u32 want;
	} rows[] = {
		{ XROCE_RC, QPS_RESET, QPS_INIT, init | QP_ATTR_ACCESS_FLAGS },
		{ XROCE_UC, QPS_RESET, QPS_INIT, init | QP_ATTR_ACCESS_FLAGS },
		{ XROCE_UD, QPS_RESET, QPS_INIT, init | QP_ATTR_QKEY },
		{ XROCE_RC, QPS_INIT, QPS_RTR,
		  rtr | QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER },
		{ XROCE_UC, QPS_INIT, QPS_RTR, rtr },
		{ XROCE_UD, QPS_INIT, QPS_RTR, 0 },
		{ XROCE_RC, QPS_RTR, QPS_RTS,
		  QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
			  QP_ATTR_MAX_QP_RD_ATOMIC },
		{ XROCE_UC, QPS_RTR, QPS_RTS, QP_ATTR_SQ_PSN },
		{ XROCE_UD, QPS_RTR, QPS_RTS, QP_ATTR_SQ_PSN },
	};

	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		u32 required, optional;

		assert_true(qp_transition(rows[i].t, false, rows[i].from, rows[i].to, &required,
					  &optional));
		assert_int_equal(required & ~QP_ATTR_STATE, rows[i].want);
	}
}

static void modify__values_out_of_range(void **state)
{
	struct world *w = world_create(2, 1);
	struct pair_options o = pair_defaults();
	static const struct {
		enum qp_state from;
		const char *what;
	} rows[] = {
		{ QPS_RESET, "port 0" },
		{ QPS_RESET, "port 2" },
		{ QPS_RESET, "pkey_index 1" },
		{ QPS_INIT, "pmtu 0" },
		{ QPS_INIT, "pmtu 1000" },
		{ QPS_INIT, "pmtu 8192" },
		{ QPS_INIT, "pmtu 128" },
		{ QPS_INIT, "dest_qpn 2^24" },
		{ QPS_INIT, "max_dest_rd_atomic 129" },
		{ QPS_INIT, "min_rnr_timer 32" },
		{ QPS_RTR, "timeout 32" },
		{ QPS_RTR, "retry_cnt 8" },
		{ QPS_RTR, "rnr_retry 8" },
		{ QPS_RTR, "max_rd_atomic 129" },
	};

	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		enum qp_state from = rows[i].from, to = from + 1;
		struct side s = at_state(w, &o, from);
		struct qp_attr attr;
		u32 mask;

		world_label(w, "test_qp_state %s", rows[i].what);
		mask = side_attr(&o, to, &attr);
		attributes(&o, to, w, &attr);
		switch (i) {
		case 0: attr.port = 0; break;
		case 1: attr.port = 2; break;
		case 2: attr.pkey_index = 1; break;
		case 3: attr.path_mtu = 0; break;
		case 4: attr.path_mtu = 1000; break;
		case 5: attr.path_mtu = 8192; break;
		case 6: attr.path_mtu = 128; break;
		case 7: attr.dest_qpn = 1 << 24; break;
		case 8: attr.max_dest_rd_atomic = QP_MAX_RD_ATOMIC + 1; break;
		case 9: attr.min_rnr_timer = 32; break;
		case 10: attr.timeout = 32; break;
		case 11: attr.retry_cnt = 8; break;
		case 12: attr.rnr_retry = 8; break;
		case 13: attr.max_rd_atomic = QP_MAX_RD_ATOMIC + 1; break;
		}
		check_eq(w, qp_modify(w->node[0].engine, s.qp, &attr, mask, 0), -EINVAL);
		check_eq(w, qp_state(s.qp), from);
		attributes(&o, to, w, &attr);
		check_eq(w, qp_modify(w->node[0].engine, s.qp, &attr, mask, 0), 0);
		side_destroy(&s);
	}
	world_destroy(w);
}

static void query__says_what_was_set_and_where_it_is(void **state)
{
	struct scene s = scene_make("query");
	struct qp_attr attr;

	scene_post(&s, 1, WR_WRITE, 5000); /* 5 packets */
	world_run(s.w);
	qp_query(s.a->qp, &attr);
	check_eq(s.w, attr.state, QPS_RTS);
	check_eq(s.w, attr.cur_state, QPS_RTS);
	check_eq(s.w, attr.sq_psn, s.o.psn[0] + 5);
	check_eq(s.w, attr.rq_psn, s.o.psn[1]);
	check_eq(s.w, attr.path_mtu, s.o.pmtu);
	check_eq(s.w, attr.dest_qpn, s.b->qp->qpn);
	check_eq(s.w, attr.timeout, s.o.timeout);
	check_eq(s.w, attr.retry_cnt, s.o.retry_cnt);
	check_eq(s.w, attr.rnr_retry, s.o.rnr_retry);
	check_eq(s.w, attr.min_rnr_timer, s.o.min_rnr_timer);
	check_eq(s.w, attr.max_rd_atomic, s.o.max_rd_atomic);
	check_eq(s.w, attr.max_dest_rd_atomic, s.o.max_dest_rd_atomic);
	qp_query(s.b->qp, &attr);
	check_eq(s.w, attr.rq_psn, s.o.psn[0] + 5);
	scene_end(&s);
}

static void packets__before_rtr_and_in_err_are_dropped(void **state)
{
	static const enum qp_state states[] = { QPS_RESET, QPS_INIT, QPS_ERR };

	for (u32 i = 0; i < ARRAY_SIZE(states); i++) {
		struct scene s = scene_make("not receiving");

		check_eq(s.w, side_state(s.b, i == 2 ? QPS_ERR : QPS_RESET), 0);
		if (states[i] == QPS_INIT)
			side_init(s.b, &s.o);
		scene_post(&s, 1, WR_WRITE, 64);
		world_run_for(s.w, WORLD_LATENCY_NS * 5);
		check_eq(s.w, s.b->node->drops.qp_state, 1);
		check_eq(s.w, s.b->node->stats.tx_packets, 0);
		scene_end(&s);
	}
}

/* Receives are taken from INIT on, and used once the QP is there. */
static void receive__posted_in_init(void **state)
{
	struct world *w = world_create(2, 1);
	struct pair_options o = pair_defaults();
	struct side a = side_create(&w->node[0], &o, NULL), b = side_create(&w->node[1], &o, NULL);
	struct buffer *local = world_buffer(a.node, 64, PAIR_ACCESS_ALL),
		      *remote = world_buffer(b.node, 64, PAIR_ACCESS_ALL);

	world_label(w, "test_qp_state receive__posted_in_init");
	side_init(&a, &o);
	side_init(&b, &o);
	post_recv_buffer(&b, 3, remote, 0, 64);
	side_rtr(&a, &o, 1, b.qp->qpn, 5);
	side_rtr(&b, &o, 0, a.qp->qpn, 9);
	side_rts(&a, &o, 9);
	post_send(&a, &(struct send){ .wr_id = 1,
				      .opcode = WR_SEND,
				      .flags = WR_SIGNALED,
				      .num_sge = 1,
				      .sge = { buffer_sge(local, 0, 64) } });
	world_run(w);
	expect(w, b.recv, 0, .wr_id = 3, .opcode = CQE_RECV, .byte_len = 64, .qpn = b.qp->qpn,
	       .src_qpn = a.qp->qpn);
	expect(w, a.send, 0, .wr_id = 1, .opcode = CQE_SEND, .byte_len = 64, .qpn = a.qp->qpn);
	check_eq(w, world_events(b.node, EVENT_COMM_EST, b.qp), 1);
	side_destroy(&a);
	side_destroy(&b);
	world_destroy(w);
}

static void err__flushes_both_queues_in_order(void **state)
{
	struct scene s = scene_make("flush");

	s.a->node->to[1].dead = true;
	for (u32 i = 0; i < 5; i++)
		post_recv_buffer(s.a, 50 + i, s.local, 0, 64);
	for (u32 i = 0; i < 5; i++)
		scene_post(&s, i, WR_WRITE, 5000);
	world_run_for(s.w, WORLD_LATENCY_NS);
	check_eq(s.w, side_state(s.a, QPS_ERR), 0);
	world_settle(s.w);
	check_eq(s.w, s.a->send->n, 5);
	check_eq(s.w, s.a->recv->n, 5);
	for (u32 i = 0; i < 5; i++) {
		expect(s.w, s.a->send, i, .wr_id = i, .status = CQE_WR_FLUSH_ERR,
		       .vendor_err = VERR_FLUSHED, .qpn = s.a->qp->qpn);
		expect(s.w, s.a->recv, i, .wr_id = 50 + i, .status = CQE_WR_FLUSH_ERR,
		       .vendor_err = VERR_FLUSHED, .qpn = s.a->qp->qpn);
	}
	check_eq(s.w, world_events(s.a->node, EVENT_QP_STATE, s.a->qp), 1);
	/* Nothing more is sent, no timer runs on. */
	world_forget_sent(s.w);
	world_run(s.w);
	check_eq(s.w, s.w->num_sent, 0);
	/* Work posted in ERR is flushed too. */
	scene_post(&s, 9, WR_WRITE, 64);
	post_recv_buffer(s.a, 59, s.local, 0, 64);
	world_settle(s.w);
	expect(s.w, s.a->send, 5, .wr_id = 9, .status = CQE_WR_FLUSH_ERR, .qpn = s.a->qp->qpn);
	expect(s.w, s.a->recv, 5, .wr_id = 59, .status = CQE_WR_FLUSH_ERR, .qpn = s.a->qp->qpn);
	check_eq(s.w, s.a->send->n, 6);
	check_eq(s.w, s.a->recv->n, 6);
	scene_end(&s);
}

static void reset__purges_and_starts_afresh(void **state)
{
	struct scene s = scene_make("reset");
	u32 qpn = s.a->qp->qpn;

	post_recv_buffer(s.a, 50, s.local, 0, 64);
	s.a->send->polled = false;
	scene_post(&s, 1, WR_WRITE, 64);
	world_run(s.w); /* a completion lies in the CQ */
	s.a->node->to[1].dead = true;
	for (u32 i = 2; i < 12; i++)
		scene_post(&s, i, WR_WRITE, 5000);
	world_run_for(s.w, WORLD_LATENCY_NS);
	check_eq(s.w, side_state(s.a, QPS_RESET), 0);
	world_poll(s.a->send);
	check_eq(s.w, s.a->send->n, 0); /* purged, and nothing flushed */
	s.a->send->polled = true;
	world_drop_flights(s.w);
	world_run(s.w);
	check_eq(s.w, s.a->send->n + s.a->recv->n, 0);
	check_eq(s.w, s.a->qp->qpn, qpn);
	check_eq(s.w, rq_posted(&s.a->qp->rq), 0);
	/* Connected again with other PSNs it works like a new one. */
	s.a->node->to[1].dead = false;
	check_eq(s.w, side_state(s.b, QPS_RESET), 0);
	side_init(s.a, &s.o);
	side_init(s.b, &s.o);
	side_rtr(s.a, &s.o, 1, s.b->qp->qpn, 0x777);
	side_rtr(s.b, &s.o, 0, s.a->qp->qpn, 0xfffffe);
	side_rts(s.a, &s.o, 0xfffffe);
	side_rts(s.b, &s.o, 0x777);
	for (u32 i = 0; i < 64; i++) /* the whole queue is free again */
		scene_post(&s, 100 + i, WR_WRITE, 3000);
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 64);
	for (u32 i = 0; i < 64; i++)
		expect(s.w, s.a->send, i, .wr_id = 100 + i, .opcode = CQE_WRITE, .byte_len = 3000,
		       .qpn = qpn);
	scene_end(&s);
}

/* A QP goes away in the middle of everything, on either side; the other one finds out by itself. */
static void destroy__under_traffic(void **state)
{
	for (u32 who = 0; who < 2; who++)
		for (u32 when = 0; when < 30; when++) {
			struct scene s = scene_make("destroy");
			struct side *gone = who ? s.b : s.a;

			world_label(s.w, "test_qp_state destroy side %u after %u ns", who,
				    when * 500);
			s.a->node->to[1].drop_rate = s.b->node->to[0].drop_rate = 3000;
			for (u32 i = 0; i < 4; i++) {
				post_recv_buffer(s.b, i, s.remote, 0, 8192);
				scene_post(&s, i, WR_WRITE, 20000);
				scene_post(&s, 10 + i, WR_READ, 9000);
				scene_post(&s, 20 + i, WR_SEND, 5000);
			}
			world_run_for(s.w, when * 500);
			side_destroy(gone);
			world_run(s.w);
			if (who == 1) {
				u32 failed = 0;

				check_eq(s.w, s.a->send->n, 12);
				for (u32 i = 0; i < 12; i++)
					failed += s.a->send->log[i].status == CQE_RETRY_EXC_ERR;
				check(s.w, failed == 1 && qp_state(s.a->qp) == QPS_ERR);
			}
			side_destroy(who ? s.a : s.b);
			world_destroy(s.w);
		}
}

static void destroy__purges_completions(void **state)
{
	struct scene s = scene_make("purge");
	struct pair_options o = s.o;
	struct side other = side_create(s.a->node, &o, NULL);
	struct cqe theirs = { .wr_id = 5, .qpn = other.qp->qpn, .opcode = CQE_SEND };

	s.a->send->polled = false;
	scene_post(&s, 1, WR_WRITE, 64);
	scene_post(&s, 2, WR_WRITE, 64);
	world_run(s.w);
	check(s.w, cq_push(&s.a->send->cq, &theirs));
	qp_destroy(s.a->node->engine, s.a->qp);
	world_poll(s.a->send);
	check_eq(s.w, s.a->send->n, 1);
	check_eq(s.w, s.a->send->log[0].wr_id, 5);
	side_destroy(&other);
	side_destroy(s.b);
	world_destroy(s.w);
}

static void sqd__drains_and_resumes(void **state)
{
	struct scene s = scene_make("sqd");
	struct qp_attr attr = { .state = QPS_SQD, .sqd_async_notify = true };
	struct send read;
	u32 done;

	for (u32 i = 0; i < 20; i++)
		scene_post(&s, i, WR_WRITE, 20000);
	world_run_for(s.w, WORLD_LATENCY_NS / 2);
	check_eq(s.w,
		 qp_modify(s.a->node->engine, s.a->qp, &attr,
			   QP_ATTR_STATE | QP_ATTR_EN_SQD_ASYNC_NOTIFY, s.w->now_ns),
		 0);
	world_run(s.w);
	/* Started work is finished; the rest waits. */
	done = s.a->send->n;
	check(s.w, done > 0 && done < 20);
	check_eq(s.w, world_events(s.a->node, EVENT_SQ_DRAINED, s.a->qp), 1);
	check_eq(s.w, qp_state(s.a->qp), QPS_SQD);
	world_run(s.w);
	check_eq(s.w, s.a->send->n, done);
	/* It still answers. */
	read = request_between(s.remote, s.local, 1, WR_READ, 64);
	post_send(s.b, &read);
	world_run(s.w);
	check_eq(s.w, s.b->send->n, 1);
	check_eq(s.w, side_state(s.a, QPS_RTS), 0);
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 20);
	for (u32 i = 0; i < 20; i++)
		expect(s.w, s.a->send, i, .wr_id = i, .opcode = CQE_WRITE, .byte_len = 20000,
		       .qpn = s.a->qp->qpn);
	scene_end(&s);
}

static void to_sqd(struct scene *s, u32 mask)
{
	const struct qp_attr attr = { .state = QPS_SQD, .sqd_async_notify = true };

	check_eq(s->w,
		 qp_modify(s->a->node->engine, s->a->qp, &attr, QP_ATTR_STATE | mask, s->w->now_ns),
		 0);
}

/* UC has no ACKs: the queue is drained when the last packet of the current message has left. */
static void sqd__drains_inside_a_message_of_uc(void **state)
{
	struct pair_options o = pair_defaults();
	static u8 frame[PACKET_FRAME_MAX];
	struct scene s;

	o.transport = XROCE_UC;
	o.pmtu = 256;
	s = scene_in(world_create(2, 31), &o, 65536);
	world_label(s.w, "test_qp_state sqd uc");
	scene_post(&s, 1, WR_WRITE, 100 * 256);
	scene_post(&s, 2, WR_WRITE, 256);
	for (u32 i = 0; i < 5; i++) {
		const u32 len = engine_output(qp_engine(s.a->qp), frame, sizeof(frame),
					      s.w->now_ns);

		check(s.w, len > 0);
		check_eq(s.w, world_deliver(s.w, 1, frame, len), XROCE_DROP_none);
	}
	to_sqd(&s, QP_ATTR_EN_SQD_ASYNC_NOTIFY);
	check_eq(s.w, world_events(s.a->node, EVENT_SQ_DRAINED, s.a->qp), 0);
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 1);
	expect(s.w, s.a->send, 0, .wr_id = 1, .opcode = CQE_WRITE, .byte_len = 100 * 256,
	       .qpn = s.a->qp->qpn);
	check_eq(s.w, world_events(s.a->node, EVENT_SQ_DRAINED, s.a->qp), 1);
	assert_int_equal(side_state(s.a, QPS_RTS), 0);
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 2);
	check_eq(s.w, world_events(s.a->node, EVENT_SQ_DRAINED, s.a->qp), 1);
	scene_end(&s);
}

/* EN_SQD_ASYNC_NOTIFY is for one transition to SQD: a later one without it has no event. */
static void sqd__notifies_where_it_is_asked_for(void **state)
{
	struct scene s = scene_make("sqd notify");
	static const u32 masks[] = { QP_ATTR_EN_SQD_ASYNC_NOTIFY, 0, QP_ATTR_EN_SQD_ASYNC_NOTIFY };
	u32 events = 0;

	for (u32 i = 0; i < 2 * ARRAY_SIZE(masks); i++) {
		const u32 mask = masks[i % ARRAY_SIZE(masks)];

		if (i >= ARRAY_SIZE(masks)) { /* drained later, not at once */
			scene_post(&s, i, WR_WRITE, 20000);
			world_run_for(s.w, WORLD_LATENCY_NS / 2);
		}
		to_sqd(&s, mask);
		world_run(s.w);
		events += mask != 0;
		check_eq(s.w, world_events(s.a->node, EVENT_SQ_DRAINED, s.a->qp), events);
		assert_int_equal(side_state(s.a, QPS_RTS), 0);
		world_run(s.w);
	}
	scene_end(&s);
}

/* Headers that either end keeps of earlier packets are none of the new path. */
static void sqd__a_new_path_counts_at_once(void **state)
{
	struct scene s = scene_make("new path");
	struct qp_attr attr = { .path = world_path(s.w, 0, 1, false) };

	s.w->keep_frames = true;
	for (u64 i = 0; i < 4; i++) {
		scene_post(&s, i, WR_WRITE, 64);
		world_run(s.w);
		expect(s.w, s.a->send, i, .wr_id = i, .opcode = CQE_WRITE, .byte_len = 64,
		       .qpn = s.a->qp->qpn);
	}
	/* the sender's: its next packet goes that way */
	assert_int_equal(side_state(s.a, QPS_SQD), 0);
	attr.path.udp_sport ^= 1;
	assert_int_equal(qp_modify(s.a->node->engine, s.a->qp, &attr, QP_ATTR_AV, s.w->now_ns), 0);
	assert_int_equal(side_state(s.a, QPS_RTS), 0);
	world_forget_sent(s.w);
	scene_post(&s, 4, WR_WRITE, 64);
	world_run(s.w);
	expect(s.w, s.a->send, 4, .wr_id = 4, .opcode = CQE_WRITE, .byte_len = 64,
	       .qpn = s.a->qp->qpn);
	check_eq(s.w, world_sent(s.w, 0, OP5_WRITE_ONLY, 0)->packet.udp_sport, attr.path.udp_sport);

	/* the receiver's: packets from where they came till now are strangers */
	check_eq(s.w, s.b->node->drops.peer, 0);
	assert_int_equal(side_state(s.b, QPS_SQD), 0);
	attr.path = world_path(s.w, 1, 0, false);
	attr.path.peer.raw[15] ^= 0x40;
	assert_int_equal(qp_modify(s.b->node->engine, s.b->qp, &attr, QP_ATTR_AV, s.w->now_ns), 0);
	assert_int_equal(side_state(s.b, QPS_RTS), 0);
	scene_post(&s, 5, WR_WRITE, 64);
	world_run_for(s.w, 100 * NSEC_PER_USEC);
	check_eq(s.w, s.b->node->drops.peer, 1);
	check_eq(s.w, s.a->send->n, 5);
	scene_end(&s);
}

static void qpn__unique_and_not_reserved(void **state)
{
	struct world *w = world_create(1, 1);
	struct pair_options o = pair_defaults();
	struct side s[100];

	o.max_send_wr = o.max_recv_wr = 1;
	o.cq_capacity = 1;
	for (u32 i = 0; i < 100; i++) {
		s[i] = side_create(&w->node[0], &o, NULL);
		check(w, s[i].qp->qpn > 1 && s[i].qp->qpn < ROCE_MULTICAST_QPN);
		check(w, engine_find_qp(w->node[0].engine, s[i].qp->qpn) == s[i].qp);
		for (u32 k = 0; k < i; k++)
			check(w, s[k].qp->qpn != s[i].qp->qpn);
	}
	for (u32 i = 0; i < 100; i++)
		side_destroy(&s[i]);
	world_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modify__exactly_the_transitions_of_the_table),
		cmocka_unit_test(transition__required_masks),
		cmocka_unit_test(modify__values_out_of_range),
		cmocka_unit_test(query__says_what_was_set_and_where_it_is),
		cmocka_unit_test(packets__before_rtr_and_in_err_are_dropped),
		cmocka_unit_test(receive__posted_in_init),
		cmocka_unit_test(err__flushes_both_queues_in_order),
		cmocka_unit_test(reset__purges_and_starts_afresh),
		cmocka_unit_test(destroy__under_traffic),
		cmocka_unit_test(destroy__purges_completions),
		cmocka_unit_test(sqd__drains_and_resumes),
		cmocka_unit_test(sqd__drains_inside_a_message_of_uc),
		cmocka_unit_test(sqd__notifies_where_it_is_asked_for),
		cmocka_unit_test(sqd__a_new_path_counts_at_once),
		cmocka_unit_test(qpn__unique_and_not_reserved),
	};

	return cmocka_run_group_tests_name("qp_state", tests, NULL, NULL);
}
