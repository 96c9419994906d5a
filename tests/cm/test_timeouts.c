/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* Time-outs to the nanosecond: the resent MADs, their number, and the end. */
#include "bench.h"

#define PEER 0x7700u

static void cm_connect__repeats_and_gives_up(void **state)
{
	struct bench b;
	struct cm_conn *c;
	struct cm_mad m;
	u64 tid;

	bench_make(&b, 4, 0);
	c = bench_connect(&b, &tid);
	for (u32 i = 0; i < BENCH_RETRIES; i++) {
		bench_wait(&b, bench_interval_ns());
		m = bench_sent(&b, CM_REQ);
		assert_int_equal(m.tid, tid);
		assert_int_equal(m.local_id, cm_conn_id(c));
		bench_no_event(&b);
	}
	bench_wait(&b, bench_interval_ns());
	assert_int_equal(bench_event(&b, CM_EVENT_UNREACHABLE).mad.kind, CM_REQ);
	/* a peer whose REPs were all lost is notified */
	m = bench_sent(&b, CM_REJ);
	assert_int_equal(m.rej.reason, CM_REJ_TIMEOUT);
	assert_int_equal(m.rej.info_len, 8); /* by which the kernel finds its connection */
	assert_memory_equal(m.rej.info, "\0\0\0\0\0\0\xab\xcd", 8);
	assert_int_equal(m.local_id, cm_conn_id(c));
	assert_int_equal(m.remote_id, 0);
	assert_int_equal(cm_conn_state(c), CM_IDLE);
	assert_int_equal(cm_deadline_ns(b.cm), NSEC_NEVER);
	assert_int_equal(cm_stats(b.cm)->repeated, BENCH_RETRIES);
	assert_int_equal(cm_stats(b.cm)->gave_up, 1);
	cm_close(b.cm, c, b.now_ns);
	bench_sent_nothing(&b);
	assert_int_equal(cm_stats(b.cm)->in_use, 0);
	bench_unmake(&b);
}

static void cm_accept__repeats_and_gives_up(void **state)
{
	struct bench b;
	struct cm_conn *c;
	struct cm_mad req, rej, rtu;

	bench_make(&b, 4, 0);
	bench_listen(&b, 0);
	req = bench_req(&b, PEER);
	assert_int_equal(bench_input(&b, &req), CM_DROP_none);
	c = bench_event(&b, CM_EVENT_REQUEST).conn;
	assert_int_equal(cm_accept(b.cm, c, &(struct cm_rep){ .qpn = 1 }, NULL, 0, b.now_ns), 0);
	bench_sent(&b, CM_REP);
	for (u32 i = 0; i < BENCH_RETRIES; i++) {
		bench_wait(&b, bench_interval_ns());
		bench_sent(&b, CM_REP);
	}
	bench_wait(&b, bench_interval_ns());
	assert_int_equal(bench_event(&b, CM_EVENT_UNREACHABLE).mad.kind, CM_REP);
	rej = bench_sent(&b, CM_REJ);
	assert_int_equal(rej.rej.reason, CM_REJ_TIMEOUT);
	assert_int_equal(rej.rej.about, CM_ABOUT_OTHER);
	assert_int_equal(rej.rej.info_len, 8);
	/* the RTU, or the REQ again: an answer that its sender can make use of, no second event */
	rtu = bench_mad(CM_RTU, req.tid, PEER, cm_conn_id(c));
	assert_int_equal(bench_input(&b, &rtu), CM_DROP_duplicate);
	assert_int_equal(bench_sent(&b, CM_REJ).rej.about, CM_ABOUT_OTHER);
	assert_int_equal(bench_input(&b, &req), CM_DROP_duplicate);
	rej = bench_sent(&b, CM_REJ);
	assert_int_equal(rej.rej.about, CM_ABOUT_REQ);
	assert_int_equal(rej.rej.reason, CM_REJ_STALE_CONN);
	assert_int_equal(rej.remote_id, PEER);
	bench_no_event(&b);
	cm_close(b.cm, c, b.now_ns);
	bench_wait(&b, (BENCH_RETRIES + 1) * bench_interval_ns());
	assert_int_equal(cm_stats(b.cm)->in_use, 0);
	bench_unmake(&b);
}

/* A time-out that a peer names is no reason to send without pause, or to wait for hours. */
static void cm_accept__absurd_time_outs(void **state)
{
	struct bench b;
	struct cm_conn *c;
	struct cm_mad req;

	bench_make(&b, 4, 0);
	b.path.life = 0;
	bench_listen(&b, 0);
	for (u32 i = 0; i < 2; i++) {
		req = bench_req(&b, PEER + i);
		req.req.local_response_timeout = i ? 31 : 0;
		req.req.primary.ack_timeout = i ? 31 : 0;
		assert_int_equal(bench_input(&b, &req), CM_DROP_none);
		c = bench_event(&b, CM_EVENT_REQUEST).conn;
		assert_int_equal(cm_conn_timewait_ns(c), i ? 30 * NSEC_PER_SEC : 4096);
		cm_accept(b.cm, c, &(struct cm_rep){ .qpn = 1 }, NULL, 0, b.now_ns);
		bench_sent(&b, CM_REP);
		assert_int_equal(cm_deadline_ns(b.cm) - b.now_ns,
				 i ? 30 * NSEC_PER_SEC : cm_time_ns(10));
		req = bench_mad(CM_RTU, b.tid - 1, PEER + i, cm_conn_id(c));
		assert_int_equal(bench_input(&b, &req), CM_DROP_none);
		bench_event(&b, CM_EVENT_ESTABLISHED);
	}
	bench_unmake(&b);
}

static void cm_disconnect__repeats_and_gives_up(void **state)
{
	struct bench b;
	struct cm_conn *c;

	bench_make(&b, 4, 0);
	bench_listen(&b, 0);
	c = bench_established(&b, PEER);
	assert_int_equal(cm_disconnect(b.cm, c, NULL, 0, b.now_ns), 0);
	assert_int_equal(bench_sent(&b, CM_DREQ).dreq.qpn, PEER);
	for (u32 i = 0; i < BENCH_RETRIES; i++) {
		bench_wait(&b, bench_interval_ns());
		bench_sent(&b, CM_DREQ);
	}
	bench_wait(&b, bench_interval_ns());
	assert_int_equal(bench_event(&b, CM_EVENT_DISCONNECTED).mad.kind, 0);
	assert_int_equal(cm_conn_state(c), CM_TIMEWAIT);
	bench_wait(&b, cm_time_ns(BENCH_ACK));
	bench_event(&b, CM_EVENT_TIMEWAIT_EXIT);
	assert_int_equal(cm_conn_state(c), CM_IDLE);
	bench_close(&b, c);
	bench_unmake(&b);
}

static void input_mra__gives_time(void **state)
{
	struct bench b;
	struct cm_conn *c;
	struct cm_mad mra;
	u64 tid;

	bench_make(&b, 4, 0);
	c = bench_connect(&b, &tid);
	mra = bench_mad(CM_MRA, tid, PEER, cm_conn_id(c));
	mra.mra.service_timeout = 20;
	b.now_ns += 1000;
	assert_int_equal(bench_input(&b, &mra), CM_DROP_none);
	bench_event(&b, CM_EVENT_DELAYED);
	bench_wait(&b, cm_time_ns(20) + bench_interval_ns());
	bench_sent(&b, CM_REQ); /* counts as a repetition */
	mra.mra.service_timeout = 31; /* two hours: it gets half a minute */
	assert_int_equal(bench_input(&b, &mra), CM_DROP_none);
	bench_event(&b, CM_EVENT_DELAYED);
	bench_wait(&b, 30 * NSEC_PER_SEC + bench_interval_ns());
	bench_sent(&b, CM_REQ);
	mra.mra.about = CM_ABOUT_REP;
	assert_int_equal(bench_input(&b, &mra), CM_DROP_state);
	mra.mra.about = CM_ABOUT_REQ;
	mra.tid++;
	assert_int_equal(bench_input(&b, &mra), CM_DROP_tid);
	bench_no_event(&b);
	bench_unmake(&b);
}

static void cm_delay__for_each_repetition(void **state)
{
	struct bench b;
	struct cm_conn *c;
	struct cm_mad req, mra;

	bench_make(&b, 4, 0);
	bench_listen(&b, 0);
	req = bench_req(&b, PEER);
	assert_int_equal(bench_input(&b, &req), CM_DROP_none);
	c = bench_event(&b, CM_EVENT_REQUEST).conn;
	assert_int_equal(bench_input(&b, &req), CM_DROP_duplicate);
	bench_sent_nothing(&b); /* there is no answer yet */
	assert_int_equal(cm_delay(b.cm, c, 19, NULL, 0, b.now_ns), 0);
	bench_sent(&b, CM_MRA);
	assert_int_equal(bench_input(&b, &req), CM_DROP_duplicate);
	mra = bench_sent(&b, CM_MRA);
	assert_int_equal(mra.mra.service_timeout, 19);
	assert_int_equal(mra.mra.about, CM_ABOUT_REQ);
	assert_int_equal(mra.remote_id, PEER);
	assert_int_equal(mra.tid, req.tid);
	bench_no_event(&b);
	bench_unmake(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cm_connect__repeats_and_gives_up),
		cmocka_unit_test(cm_accept__repeats_and_gives_up),
		cmocka_unit_test(cm_accept__absurd_time_outs),
		cmocka_unit_test(cm_disconnect__repeats_and_gives_up),
		cmocka_unit_test(input_mra__gives_time),
		cmocka_unit_test(cm_delay__for_each_repetition),
	};

	return cmocka_run_group_tests_name("timeouts", tests, NULL, NULL);
}
