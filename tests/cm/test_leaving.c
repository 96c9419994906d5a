/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* The events of both ends when one leaves, by the state that it leaves. */
#include "bench.h"

#define PEER 0x7700u

static void cm_close__says_what_the_state_asks_for(void **state)
{
	struct bench b;
	struct cm_conn *c;
	struct cm_mad m;

	bench_make(&b, 16, 0);
	bench_listen(&b, 0);
	bench_close(&b, bench_connect(&b, NULL));
	assert_int_equal(bench_sent(&b, CM_REJ).rej.reason, CM_REJ_TIMEOUT);
	bench_close(&b, bench_replied(&b, PEER, NULL));
	m = bench_sent(&b, CM_REJ);
	assert_int_equal(m.rej.reason, CM_REJ_CONSUMER_DEFINED);
	assert_int_equal(m.rej.about, CM_ABOUT_REP);
	bench_close(&b, bench_requested(&b, PEER + 1));
	m = bench_sent(&b, CM_REJ);
	assert_int_equal(m.rej.reason, CM_REJ_CONSUMER_DEFINED);
	assert_int_equal(m.rej.about, CM_ABOUT_REQ);
	c = bench_accepted(&b, PEER + 2);
	bench_close(&b, c);
	assert_int_equal(bench_sent(&b, CM_REJ).rej.reason, CM_REJ_CONSUMER_DEFINED);
	/* the RTU that crossed it: the peer believes in the connection */
	m = bench_mad(CM_RTU, b.tid - 1, PEER + 2, cm_conn_id(c));
	assert_int_equal(bench_input(&b, &m), CM_DROP_duplicate);
	assert_int_equal(bench_sent(&b, CM_REJ).rej.about, CM_ABOUT_OTHER);
	/* or its REQ, as it has not heard of the REP */
	m = bench_req(&b, PEER + 2);
	m.tid = b.tid - 2;
	assert_int_equal(bench_input(&b, &m), CM_DROP_duplicate);
	m = bench_sent(&b, CM_REJ);
	assert_int_equal(m.rej.about, CM_ABOUT_REQ);
	assert_int_equal(m.rej.reason, CM_REJ_CONSUMER_DEFINED);
	bench_close(&b, bench_established(&b, PEER + 3));
	bench_sent(&b, CM_DREQ);
	c = bench_established(&b, PEER + 4);
	m = bench_mad(CM_DREQ, 5, PEER + 4, cm_conn_id(c));
	bench_input(&b, &m);
	bench_event(&b, CM_EVENT_DISCONNECT);
	bench_close(&b, c);
	assert_int_equal(bench_sent(&b, CM_DREP).tid, 5);
	bench_sent_nothing(&b);
	/* time ends all of that, without an event */
	while (cm_deadline_ns(b.cm) != NSEC_NEVER)
		cm_expire(b.cm, cm_deadline_ns(b.cm));
	bench_no_event(&b);
	assert_int_equal(cm_stats(b.cm)->in_use, 0);
	assert_int_equal(cm_stats(b.cm)->half_open, 0);
	bench_unmake(&b);
}

/* An unread event is dropped with its connection, the others stay. */
static void cm_close__takes_its_events(void **state)
{
	struct bench b;
	struct cm_conn *c;
	struct cm_mad m;

	bench_make(&b, 8, 0);
	bench_listen(&b, 0);
	c = bench_established(&b, PEER);
	m = bench_mad(CM_DREQ, 5, PEER, cm_conn_id(c));
	bench_input(&b, &m);
	m = bench_req(&b, PEER + 1);
	bench_input(&b, &m);
	cm_close(b.cm, c, b.now_ns);
	bench_event(&b, CM_EVENT_REQUEST);
	bench_no_event(&b);
	bench_unmake(&b);
}

static void cm_input__waits_for_room_for_events(void **state)
{
	struct bench b;
	struct cm_mad req;
	u32 taken = 0;

	bench_make(&b, 1024, 0);
	bench_listen(&b, 0);
	do {
		req = bench_req(&b, PEER + taken);
	} while (bench_input(&b, &req) == CM_DROP_none && ++taken < 1000);
	assert_int_equal(taken, 64);
	bench_dropped(&b, CM_DROP_busy, 1);
	bench_event(&b, CM_EVENT_REQUEST);
	assert_int_equal(bench_input(&b, &req), CM_DROP_none);
	bench_unmake(&b);
}

/* Both ends of a connection in one CM: its MADs go round until there are no more. */
static void go_round(struct bench *b)
{
	struct cm_send send;

	while (cm_output(b->cm, &send))
		assert_int_equal(cm_input(b->cm, &send.path, send.mad, sizeof(send.mad), b->now_ns),
				 CM_DROP_none);
}

static void cm_connect__to_itself(void **state)
{
	struct bench b;
	struct cm_conn *active, *passive;
	struct cm_req req = { .service_id = BENCH_SERVICE, .qpn = 1, .mtu = 5, .pkey = 0xffff };

	bench_make(&b, 4, 0);
	b.path.remote = b.path.local;
	bench_listen(&b, 0);
	for (u32 i = 0; i < 2; i++) {
		assert_int_equal(cm_connect(b.cm, &b.path, &req, NULL, 0, NULL, b.now_ns, &active),
				 0);
		go_round(&b);
		passive = bench_event(&b, CM_EVENT_REQUEST).conn;
		assert_int_equal(cm_accept(b.cm, passive, &(struct cm_rep){ .qpn = 2 }, NULL, 0,
					   b.now_ns), 0);
		go_round(&b);
		assert_ptr_equal(bench_event(&b, CM_EVENT_REPLY).conn, active);
		assert_int_equal(cm_ready(b.cm, active, NULL, 0, b.now_ns), 0);
		go_round(&b);
		assert_ptr_equal(bench_event(&b, CM_EVENT_ESTABLISHED).conn, passive);
		assert_int_equal(cm_disconnect(b.cm, i ? active : passive, NULL, 0, b.now_ns), 0);
		go_round(&b);
		assert_ptr_equal(bench_event(&b, CM_EVENT_DISCONNECT).conn, i ? passive : active);
		assert_int_equal(cm_disconnect(b.cm, i ? passive : active, NULL, 0, b.now_ns), 0);
		go_round(&b);
		assert_ptr_equal(bench_event(&b, CM_EVENT_DISCONNECTED).conn, i ? active : passive);
		b.now_ns = cm_deadline_ns(b.cm);
		cm_expire(b.cm, b.now_ns);
		bench_event(&b, CM_EVENT_TIMEWAIT_EXIT);
		bench_event(&b, CM_EVENT_TIMEWAIT_EXIT);
		cm_close(b.cm, active, b.now_ns);
		cm_close(b.cm, passive, b.now_ns);
		assert_int_equal(cm_stats(b.cm)->in_use, 0);
	}
	bench_unmake(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cm_close__says_what_the_state_asks_for),
		cmocka_unit_test(cm_close__takes_its_events),
		cmocka_unit_test(cm_input__waits_for_room_for_events),
		cmocka_unit_test(cm_connect__to_itself),
	};

	return cmocka_run_group_tests_name("leaving", tests, NULL, NULL);
}
