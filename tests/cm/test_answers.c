/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* What answers a REQ or REP must bring; anything else is dropped. */
#include "bench.h"

#define PEER 0x7700u

static void input_rep__hostile(void **state)
{
	struct bench b;
	struct cm_conn *c;
	struct cm_path other;
	struct cm_mad rep;
	u64 tid;

	bench_make(&b, 4, 0);
	c = bench_connect(&b, &tid);
	rep = bench_mad(CM_REP, tid + 1, PEER, cm_conn_id(c));
	assert_int_equal(bench_input(&b, &rep), CM_DROP_tid);
	rep.tid--;
	other = b.path;
	other.remote.raw[15] = 77;
	assert_int_equal(bench_input_over(&b, &other, &rep), CM_DROP_path);
	other = b.path;
	other.local.raw[15] = 77;
	assert_int_equal(bench_input_over(&b, &other, &rep), CM_DROP_path);
	other = b.path;
	other.interface++;
	assert_int_equal(bench_input_over(&b, &other, &rep), CM_DROP_path);
	rep.remote_id++;
	assert_int_equal(bench_input(&b, &rep), CM_DROP_refused);
	bench_sent(&b, CM_REJ);
	rep.remote_id--;
	bench_no_event(&b);
	assert_int_equal(cm_conn_state(c), CM_REQ_SENT);
	assert_int_equal(bench_input(&b, &rep), CM_DROP_none);
	bench_event(&b, CM_EVENT_REPLY);
	bench_unmake(&b);
}

static void input_rtu__hostile(void **state)
{
	struct bench b;
	struct cm_conn *c;
	struct cm_mad rtu;

	bench_make(&b, 4, 0);
	bench_listen(&b, 0);
	c = bench_accepted(&b, PEER);
	rtu = bench_mad(CM_RTU, b.tid, PEER, cm_conn_id(c));
	assert_int_equal(bench_input(&b, &rtu), CM_DROP_tid);
	rtu.tid--;
	rtu.local_id++;
	assert_int_equal(bench_input(&b, &rtu), CM_DROP_state); /* unowned */
	rtu.local_id--;
	assert_int_equal(cm_conn_state(c), CM_REP_SENT);
	c = bench_replied(&b, PEER + 1, &rtu.tid);
	rtu = bench_mad(CM_RTU, rtu.tid, PEER + 1, cm_conn_id(c));
	assert_int_equal(bench_input(&b, &rtu), CM_DROP_state); /* ours to send */
	bench_no_event(&b);
	bench_unmake(&b);
}

static void input_rej__states(void **state)
{
	struct bench b;
	struct cm_conn *c;
	struct cm_mad rej;
	u64 tid;

	bench_make(&b, 16, 0);
	bench_listen(&b, 0);
	/* a REQ is rejected by its tid, from a peer without an id */
	c = bench_connect(&b, &tid);
	rej = bench_mad(CM_REJ, tid + 1, 0, cm_conn_id(c));
	rej.rej.reason = CM_REJ_INVALID_SERVICE_ID;
	assert_int_equal(bench_input(&b, &rej), CM_DROP_tid);
	rej.tid--;
	assert_int_equal(bench_input(&b, &rej), CM_DROP_none);
	assert_int_equal(bench_event(&b, CM_EVENT_REJECTED).mad.rej.reason, 8);
	assert_int_equal(cm_conn_state(c), CM_IDLE);
	assert_int_equal(bench_input(&b, &rej), CM_DROP_state);
	/* a stale one: the QP rests */
	c = bench_connect(&b, &tid);
	rej = bench_mad(CM_REJ, tid, 0, cm_conn_id(c));
	rej.rej.reason = CM_REJ_STALE_CONN;
	assert_int_equal(bench_input(&b, &rej), CM_DROP_none);
	bench_event(&b, CM_EVENT_REJECTED);
	assert_int_equal(cm_conn_state(c), CM_TIMEWAIT);
	bench_wait(&b, cm_time_ns(BENCH_ACK));
	bench_event(&b, CM_EVENT_TIMEWAIT_EXIT);
	/* before it was accepted, by a peer that never learnt of our id */
	c = bench_requested(&b, PEER);
	rej = bench_mad(CM_REJ, 1, PEER, 0);
	rej.rej.reason = CM_REJ_TIMEOUT;
	assert_int_equal(bench_input(&b, &rej), CM_DROP_none);
	assert_ptr_equal(bench_event(&b, CM_EVENT_REJECTED).conn, c);
	assert_int_equal(cm_accept(b.cm, c, &(struct cm_rep){ .qpn = 1 }, NULL, 0, b.now_ns),
			 -EINVAL);
	/* established on one side only */
	c = bench_established(&b, PEER + 1);
	rej = bench_mad(CM_REJ, 1, PEER + 1, cm_conn_id(c));
	assert_int_equal(bench_input(&b, &rej), CM_DROP_none);
	bench_event(&b, CM_EVENT_REJECTED);
	assert_int_equal(cm_conn_state(c), CM_TIMEWAIT);
	assert_int_equal(bench_input(&b, &rej), CM_DROP_state);
	/* instead of a DREP */
	c = bench_established(&b, PEER + 2);
	cm_disconnect(b.cm, c, NULL, 0, b.now_ns);
	bench_sent(&b, CM_DREQ);
	rej = bench_mad(CM_REJ, 1, PEER + 2, cm_conn_id(c));
	assert_int_equal(bench_input(&b, &rej), CM_DROP_none);
	bench_event(&b, CM_EVENT_DISCONNECTED);
	assert_int_equal(cm_conn_state(c), CM_TIMEWAIT);
	bench_sent_nothing(&b);
	bench_unmake(&b);
}

/* A REQ that comes after its peer has given up begins nothing. */
static void input_rej__then_its_req(void **state)
{
	struct bench b;
	struct cm_conn *c;
	struct cm_mad req, rej;

	bench_make(&b, 4, 0);
	bench_listen(&b, 0);
	for (u32 accepted = 0; accepted < 2; accepted++) {
		req = bench_req(&b, PEER + accepted);
		bench_input(&b, &req);
		c = bench_event(&b, CM_EVENT_REQUEST).conn;
		if (accepted)
			cm_accept(b.cm, c, &(struct cm_rep){ .qpn = 1 }, NULL, 0, b.now_ns);
		rej = bench_mad(CM_REJ, 1, PEER + accepted, 0);
		bench_input(&b, &rej);
		bench_event(&b, CM_EVENT_REJECTED);
		cm_close(b.cm, c, b.now_ns);
		assert_int_equal(bench_input(&b, &req), CM_DROP_duplicate);
		bench_no_event(&b);
		bench_sent_nothing(&b); /* not the REP that was to be sent, either */
	}
	bench_unmake(&b);
}

/* A closed connection does not move the others in the list of senders. */
static void cm_output__in_order(void **state)
{
	const struct cm_sidr_req req = { .service_id = BENCH_SERVICE };
	const struct cm_times times = { BENCH_RESPONSE, BENCH_RETRIES };
	struct bench b;
	struct cm_conn *c[5];
	u32 id[5];

	for (u32 gone = 0; gone < 3; gone++) {
		bench_make(&b, 8, 0);
		for (u32 i = 0; i < 5; i++) {
			assert_int_equal(cm_sidr_request(b.cm, &b.path, &req, &times, NULL, 0, NULL,
							 b.now_ns, &c[i]), 0);
			id[i] = cm_conn_id(c[i]);
			if (i == 2)
				cm_close(b.cm, c[gone], b.now_ns);
		}
		for (u32 i = 0; i < 5; i++)
			if (i != gone)
				assert_int_equal(bench_sent(&b, CM_SIDR_REQ).local_id, id[i]);
		bench_sent_nothing(&b);
		bench_unmake(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(input_rep__hostile),
		cmocka_unit_test(input_rtu__hostile),
		cmocka_unit_test(input_rej__states),
		cmocka_unit_test(input_rej__then_its_req),
		cmocka_unit_test(cm_output__in_order),
	};

	return cmocka_run_group_tests_name("answers", tests, NULL, NULL);
}
