/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * A slow program: a prepared MRA is sent when the peer resends, not before, and the late answer
 * reaches a peer that waits longer for it.
 */
#include "bench.h"

#define PEER 0x7700u

static void cm_prepare_delay__for_a_req_again(void **state)
{
	struct bench b;
	struct cm_conn *c;
	struct cm_mad req, mra;

	bench_make(&b, 4, 0);
	bench_listen(&b, 0);
	req = bench_req(&b, PEER);
	assert_int_equal(bench_input(&b, &req), CM_DROP_none);
	c = bench_event(&b, CM_EVENT_REQUEST).conn;
	assert_int_equal(cm_prepare_delay(b.cm, c, 24), 0);
	bench_sent_nothing(&b);
	assert_int_equal(cm_deadline_ns(b.cm), NSEC_NEVER);
	for (u32 i = 0; i < 3; i++) {
		assert_int_equal(bench_input(&b, &req), CM_DROP_duplicate);
		mra = bench_sent(&b, CM_MRA);
		assert_int_equal(mra.mra.about, CM_ABOUT_REQ);
		assert_int_equal(mra.mra.service_timeout, 24);
		assert_int_equal(mra.tid, req.tid);
		assert_int_equal(mra.local_id, cm_conn_id(c));
		assert_int_equal(mra.remote_id, PEER);
		bench_sent_nothing(&b);
	}
	/* the answer takes its place */
	assert_int_equal(cm_accept(b.cm, c, &(struct cm_rep){ .qpn = 1 }, NULL, 0, b.now_ns), 0);
	bench_sent(&b, CM_REP);
	assert_int_equal(bench_input(&b, &req), CM_DROP_duplicate);
	bench_sent(&b, CM_REP);
	bench_no_event(&b);
	bench_unmake(&b);
}

static void cm_prepare_delay__for_a_rep_again(void **state)
{
	struct bench b;
	struct cm_conn *c;
	struct cm_mad rep, mra;
	u64 tid;

	bench_make(&b, 4, 0);
	c = bench_replied(&b, PEER, &tid);
	assert_int_equal(cm_prepare_delay(b.cm, c, 24), 0);
	bench_sent_nothing(&b);
	rep = bench_mad(CM_REP, tid, PEER, cm_conn_id(c));
	assert_int_equal(bench_input(&b, &rep), CM_DROP_duplicate);
	mra = bench_sent(&b, CM_MRA);
	assert_int_equal(mra.mra.about, CM_ABOUT_REP);
	assert_int_equal(mra.tid, tid);
	assert_int_equal(mra.remote_id, PEER);
	assert_int_equal(cm_ready(b.cm, c, NULL, 0, b.now_ns), 0);
	bench_sent(&b, CM_RTU);
	assert_int_equal(bench_input(&b, &rep), CM_DROP_duplicate);
	bench_sent(&b, CM_RTU);
	bench_no_event(&b);
	bench_unmake(&b);
}

/* The peer repeats itself a service time-out later: the REJ that was lost is sent again then. */
static void cm_prepare_delay__a_late_refusal_again(void **state)
{
	const struct cm_rej no = { .reason = CM_REJ_CONSUMER_DEFINED };
	struct bench b;
	struct cm_conn *c;
	struct cm_mad req;
	u64 began_ns;

	bench_make(&b, 4, 0);
	bench_listen(&b, 0);
	began_ns = b.now_ns;
	req = bench_req(&b, PEER);
	assert_int_equal(bench_input(&b, &req), CM_DROP_none);
	c = bench_event(&b, CM_EVENT_REQUEST).conn;
	assert_int_equal(cm_prepare_delay(b.cm, c, 24), 0);
	assert_int_equal(bench_input(&b, &req), CM_DROP_duplicate);
	bench_sent(&b, CM_MRA);
	assert_int_equal(cm_prepare_delay(b.cm, c, 31), 0); /* two hours */
	assert_int_equal(cm_reject(b.cm, c, &no, NULL, 0, b.now_ns), 0);
	bench_sent(&b, CM_REJ);
	b.now_ns += cm_time_ns(24) + bench_interval_ns();
	cm_expire(b.cm, b.now_ns);
	assert_int_equal(bench_input(&b, &req), CM_DROP_duplicate);
	assert_int_equal(bench_sent(&b, CM_REJ).rej.reason, CM_REJ_CONSUMER_DEFINED);
	bench_no_event(&b);
	/* not for ever, whatever the time-out */
	assert_in_range(cm_deadline_ns(b.cm), b.now_ns, began_ns + 120 * NSEC_PER_SEC);
	cm_close(b.cm, c, b.now_ns);
	bench_unmake(&b);
}

static void cm_prepare_delay__in_the_wrong_state(void **state)
{
	struct bench b;
	struct cm_conn *c;

	bench_make(&b, 8, 0);
	bench_listen(&b, 0);
	c = bench_connect(&b, NULL);
	assert_int_equal(cm_prepare_delay(b.cm, c, 24), -EINVAL);
	c = bench_accepted(&b, PEER);
	assert_int_equal(cm_prepare_delay(b.cm, c, 24), -EINVAL);
	c = bench_established(&b, PEER + 1);
	assert_int_equal(cm_prepare_delay(b.cm, c, 24), -EINVAL);
	bench_sent_nothing(&b);
	bench_unmake(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cm_prepare_delay__for_a_req_again),
		cmocka_unit_test(cm_prepare_delay__for_a_rep_again),
		cmocka_unit_test(cm_prepare_delay__a_late_refusal_again),
		cmocka_unit_test(cm_prepare_delay__in_the_wrong_state),
	};

	return cmocka_run_group_tests_name("delay", tests, NULL, NULL);
}
