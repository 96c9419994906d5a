/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * The state machine, MAD by MAD: what each state takes, answers again, drops and for which reason;
 * what of two ends crosses.
 */
#include "bench.h"

#define PEER 0x7700u

/* ---- calls in states that have none ---- */

static void calls__in_the_wrong_state(void **state)
{
	static const u8 data[225];
	const struct cm_rep rep = { .qpn = 1 };
	const struct cm_rej rej = { .reason = 28 }, long_rej = { .reason = 28, .info_len = 73 };
	struct bench b;
	struct cm_conn *c;
	u64 now;

	bench_make(&b, 8, 0);
	bench_listen(&b, 0);
	now = b.now_ns;
	c = bench_connect(&b, NULL);
	assert_int_equal(cm_accept(b.cm, c, &rep, NULL, 0, now), -EINVAL);
	assert_int_equal(cm_ready(b.cm, c, NULL, 0, now), -EINVAL);
	assert_int_equal(cm_reject(b.cm, c, &rej, NULL, 0, now), -EINVAL);
	assert_int_equal(cm_delay(b.cm, c, 1, NULL, 0, now), -EINVAL);
	assert_int_equal(cm_disconnect(b.cm, c, NULL, 0, now), -EINVAL);
	assert_int_equal(cm_establish(b.cm, c, now), -EINVAL);
	assert_int_equal(cm_sidr_reply(b.cm, c, &(struct cm_sidr_rep){ 0 }, NULL, 0, now), -EINVAL);
	c = bench_requested(&b, PEER);
	assert_int_equal(cm_ready(b.cm, c, NULL, 0, now), -EINVAL);
	assert_int_equal(cm_disconnect(b.cm, c, NULL, 0, now), -EINVAL);
	assert_int_equal(cm_establish(b.cm, c, now), -EINVAL);
	assert_int_equal(cm_accept(b.cm, c, &rep, data, 197, now), -EINVAL);
	assert_int_equal(cm_reject(b.cm, c, &rej, data, 149, now), -EINVAL);
	assert_int_equal(cm_reject(b.cm, c, &long_rej, NULL, 0, now), -EINVAL);
	assert_int_equal(cm_delay(b.cm, c, 1, data, 223, now), -EINVAL);
	assert_int_equal(cm_accept(b.cm, c, &rep, data, 196, now), 0);
	bench_sent(&b, CM_REP);
	assert_int_equal(cm_accept(b.cm, c, &rep, NULL, 0, now), -EINVAL);
	assert_int_equal(cm_disconnect(b.cm, c, NULL, 0, now), -EINVAL);
	assert_int_equal(cm_establish(b.cm, c, now), 0);
	assert_int_equal(bench_event(&b, CM_EVENT_ESTABLISHED).mad.kind, 0);
	assert_int_equal(cm_establish(b.cm, c, now), -EINVAL);
	assert_int_equal(cm_disconnect(b.cm, c, data, 221, now), -EINVAL);
	c = bench_replied(&b, PEER + 1, NULL);
	assert_int_equal(cm_ready(b.cm, c, data, 225, now), -EINVAL);
	assert_int_equal(cm_ready(b.cm, c, data, 224, now), 0);
	bench_sent(&b, CM_RTU);
	assert_int_equal(cm_connect(b.cm, &b.path, &(struct cm_req){ 0 }, data, 93, NULL, now, &c),
			 -EINVAL);
	assert_int_equal(cm_sidr_request(b.cm, &b.path, &(struct cm_sidr_req){ 0 },
					 &(struct cm_times){ 0 }, data, 217, NULL, now, &c),
			 -EINVAL);
	bench_sent_nothing(&b);
	bench_unmake(&b);
}

/* ---- repetitions ---- */

static void input_rep__again(void **state)
{
	struct bench b;
	struct cm_conn *c;
	struct cm_mad rep;
	u64 tid;

	bench_make(&b, 4, 0);
	c = bench_replied(&b, PEER, &tid);
	rep = bench_mad(CM_REP, tid, PEER, cm_conn_id(c));
	assert_int_equal(bench_input(&b, &rep), CM_DROP_duplicate);
	bench_sent_nothing(&b);
	assert_int_equal(cm_deadline_ns(b.cm), NSEC_NEVER); /* the REQ is not repeated */
	assert_int_equal(cm_delay(b.cm, c, 3, NULL, 0, b.now_ns), 0);
	assert_int_equal(bench_sent(&b, CM_MRA).mra.about, CM_ABOUT_REP);
	assert_int_equal(bench_input(&b, &rep), CM_DROP_duplicate);
	bench_sent(&b, CM_MRA);
	assert_int_equal(cm_ready(b.cm, c, NULL, 0, b.now_ns), 0);
	assert_int_equal(bench_sent(&b, CM_RTU).remote_id, PEER);
	assert_int_equal(bench_input(&b, &rep), CM_DROP_duplicate);
	assert_int_equal(bench_sent(&b, CM_RTU).tid, tid);
	bench_no_event(&b);
	/* another answer to the same REQ has no owner */
	rep.local_id++;
	assert_int_equal(bench_input(&b, &rep), CM_DROP_refused);
	assert_int_equal(bench_sent(&b, CM_REJ).rej.reason, CM_REJ_INVALID_COMM_ID);
	bench_unmake(&b);
}

static void input_req__again(void **state)
{
	struct bench b;
	struct cm_conn *c;
	struct cm_mad req, m;

	bench_make(&b, 4, 0);
	bench_listen(&b, 0);
	req = bench_req(&b, PEER);
	bench_input(&b, &req);
	c = bench_event(&b, CM_EVENT_REQUEST).conn;
	assert_int_equal(cm_accept(b.cm, c, &(struct cm_rep){ .qpn = BENCH_QPN }, "hi", 2,
				   b.now_ns), 0);
	bench_sent(&b, CM_REP);
	assert_int_equal(bench_input(&b, &req), CM_DROP_duplicate);
	m = bench_sent(&b, CM_REP);
	assert_memory_equal(m.data, "hi", 3);
	assert_int_equal(m.rep.ca_guid, 0xabcd);
	/* with another tid it is another one, and the id is taken */
	req.tid++;
	assert_int_equal(bench_input(&b, &req), CM_DROP_tid);
	req.tid--;
	m = bench_mad(CM_RTU, req.tid, PEER, cm_conn_id(c));
	assert_int_equal(bench_input(&b, &m), CM_DROP_none);
	bench_event(&b, CM_EVENT_ESTABLISHED);
	assert_int_equal(bench_input(&b, &m), CM_DROP_duplicate);
	assert_int_equal(bench_input(&b, &req), CM_DROP_duplicate);
	bench_sent_nothing(&b);
	bench_no_event(&b);
	assert_int_equal(cm_deadline_ns(b.cm), NSEC_NEVER);
	bench_unmake(&b);
}

static void cm_reject__again_and_anew(void **state)
{
	const struct cm_rej rej = { .reason = 28, .info_len = 3, .info = "abc" };
	struct bench b;
	struct cm_conn *c;
	struct cm_mad req, m;

	bench_make(&b, 4, 0);
	bench_listen(&b, 0);
	req = bench_req(&b, PEER);
	bench_input(&b, &req);
	c = bench_event(&b, CM_EVENT_REQUEST).conn;
	assert_int_equal(cm_reject(b.cm, c, &rej, "no", 2, b.now_ns), 0);
	m = bench_sent(&b, CM_REJ);
	assert_int_equal(m.rej.about, CM_ABOUT_REQ);
	assert_int_equal(m.rej.info_len, 3);
	assert_int_equal(m.remote_id, PEER);
	bench_close(&b, c);
	assert_int_equal(bench_input(&b, &req), CM_DROP_duplicate);
	m = bench_sent(&b, CM_REJ);
	assert_memory_equal(m.data, "no", 3);
	assert_memory_equal(m.rej.info, "abc", 3);
	bench_no_event(&b);
	/* the peer reuses its id */
	req.tid++;
	assert_int_equal(bench_input(&b, &req), CM_DROP_none);
	c = bench_event(&b, CM_EVENT_REQUEST).conn;
	assert_int_equal(cm_stats(b.cm)->in_use, 1);
	/* and its QP, that no connection has, with another id */
	cm_close(b.cm, c, b.now_ns);
	bench_sent(&b, CM_REJ);
	req.local_id++;
	req.tid++;
	assert_int_equal(bench_input(&b, &req), CM_DROP_none);
	bench_event(&b, CM_EVENT_REQUEST);
	bench_unmake(&b);
}

static void input_dreq__again(void **state)
{
	struct bench b;
	struct cm_conn *c;
	struct cm_mad dreq, drep;

	bench_make(&b, 4, 0);
	bench_listen(&b, 0);
	c = bench_established(&b, PEER);
	dreq = bench_mad(CM_DREQ, 99, PEER, cm_conn_id(c));
	dreq.dreq.qpn++;
	assert_int_equal(bench_input(&b, &dreq), CM_DROP_qpn);
	dreq.dreq.qpn--;
	assert_int_equal(bench_input(&b, &dreq), CM_DROP_none);
	bench_event(&b, CM_EVENT_DISCONNECT);
	assert_int_equal(bench_input(&b, &dreq), CM_DROP_duplicate);
	bench_sent_nothing(&b);
	assert_int_equal(cm_disconnect(b.cm, c, "bye", 3, b.now_ns), 0);
	drep = bench_sent(&b, CM_DREP);
	assert_int_equal(drep.tid, 99);
	assert_int_equal(bench_input(&b, &dreq), CM_DROP_duplicate);
	drep = bench_sent(&b, CM_DREP);
	assert_memory_equal(drep.data, "bye", 4);
	dreq.tid++;
	assert_int_equal(bench_input(&b, &dreq), CM_DROP_duplicate);
	assert_int_equal(bench_sent(&b, CM_DREP).tid, 100);
	bench_wait(&b, cm_time_ns(BENCH_ACK));
	bench_event(&b, CM_EVENT_TIMEWAIT_EXIT);
	/* without an owner by now: answered all the same */
	assert_int_equal(bench_input(&b, &dreq), CM_DROP_refused);
	drep = bench_sent(&b, CM_DREP);
	assert_int_equal(drep.local_id, cm_conn_id(c));
	assert_int_equal(drep.remote_id, PEER);
	bench_no_event(&b);
	bench_close(&b, c);
	bench_unmake(&b);
}

/* ---- crossing ---- */

static void input_dreq__crosses_ours(void **state)
{
	struct bench b;
	struct cm_conn *c;
	struct cm_mad dreq, drep;
	u64 tid;

	bench_make(&b, 4, 0);
	bench_listen(&b, 0);
	c = bench_established(&b, PEER);
	cm_disconnect(b.cm, c, NULL, 0, b.now_ns);
	tid = bench_sent(&b, CM_DREQ).tid;
	dreq = bench_mad(CM_DREQ, 99, PEER, cm_conn_id(c));
	assert_int_equal(bench_input(&b, &dreq), CM_DROP_none);
	assert_int_equal(bench_event(&b, CM_EVENT_DISCONNECTED).mad.kind, CM_DREQ);
	assert_int_equal(bench_sent(&b, CM_DREP).tid, 99);
	drep = bench_mad(CM_DREP, tid, PEER, cm_conn_id(c));
	assert_int_equal(bench_input(&b, &drep), CM_DROP_duplicate);
	bench_no_event(&b);
	assert_int_equal(cm_conn_state(c), CM_TIMEWAIT);
	bench_unmake(&b);
}

static void input_dreq__before_the_rtu(void **state)
{
	struct bench b;
	struct cm_conn *c;
	struct cm_mad m;

	bench_make(&b, 4, 0);
	bench_listen(&b, 0);
	c = bench_accepted(&b, PEER);
	m = bench_mad(CM_DREQ, 99, PEER, cm_conn_id(c));
	assert_int_equal(bench_input(&b, &m), CM_DROP_none);
	bench_event(&b, CM_EVENT_DISCONNECT);
	assert_int_equal(cm_deadline_ns(b.cm), NSEC_NEVER); /* the REP is not repeated */
	m = bench_mad(CM_RTU, b.tid - 1, PEER, cm_conn_id(c));
	assert_int_equal(bench_input(&b, &m), CM_DROP_state);
	bench_no_event(&b);
	bench_unmake(&b);
}

static void input_drep__tid(void **state)
{
	struct bench b;
	struct cm_conn *c;
	struct cm_mad drep;

	bench_make(&b, 4, 0);
	bench_listen(&b, 0);
	c = bench_established(&b, PEER);
	drep = bench_mad(CM_DREP, 5, PEER, cm_conn_id(c));
	assert_int_equal(bench_input(&b, &drep), CM_DROP_state);
	cm_disconnect(b.cm, c, NULL, 0, b.now_ns);
	drep.tid = bench_sent(&b, CM_DREQ).tid + 1;
	assert_int_equal(bench_input(&b, &drep), CM_DROP_tid);
	drep.tid--;
	assert_int_equal(bench_input(&b, &drep), CM_DROP_none);
	bench_event(&b, CM_EVENT_DISCONNECTED);
	bench_unmake(&b);
}

static void cm_disconnect__tid_is_new(void **state)
{
	struct bench b;
	struct cm_conn *c;
	u64 tid;

	bench_make(&b, 4, 0);
	c = bench_replied(&b, PEER, &tid);
	cm_ready(b.cm, c, NULL, 0, b.now_ns);
	bench_sent(&b, CM_RTU);
	cm_disconnect(b.cm, c, NULL, 0, b.now_ns);
	assert_int_not_equal(bench_sent(&b, CM_DREQ).tid, tid);
	bench_unmake(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls__in_the_wrong_state),
		cmocka_unit_test(input_rep__again),
		cmocka_unit_test(input_req__again),
		cmocka_unit_test(cm_reject__again_and_anew),
		cmocka_unit_test(input_dreq__again),
		cmocka_unit_test(input_dreq__crosses_ours),
		cmocka_unit_test(input_dreq__before_the_rtu),
		cmocka_unit_test(input_drep__tid),
		cmocka_unit_test(cm_disconnect__tid_is_new),
	};

	return cmocka_run_group_tests_name("machine", tests, NULL, NULL);
}
