/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* A peer without a listener yet gets another request, as often as the user asks. */
#include "bench.h"

#define PEER 0x7700u
#define ASKS 3

static struct cm_mad refusal(u64 tid, enum cm_reason reason)
{
	struct cm_mad rej = bench_mad(CM_REJ, tid, 0, 0);

	rej.rej = (struct cm_rej){ .about = CM_ABOUT_REQ, .reason = reason };
	return rej;
}

static void cm_ask_again__each_time_later(void **state)
{
	const u64 after_ns[ASKS] = { 2 * NSEC_PER_MSEC, 4 * NSEC_PER_MSEC, 8 * NSEC_PER_MSEC };
	struct bench b;
	struct cm_conn *c;
	struct cm_mad rej;
	u64 tid;

	bench_make(&b, 4, 0);
	c = bench_connect(&b, &tid);
	cm_ask_again(c, ASKS);
	rej = refusal(tid, CM_REJ_INVALID_SERVICE_ID);
	rej.remote_id = cm_conn_id(c);
	for (u32 i = 0; i < ASKS; i++) {
		assert_int_equal(bench_input(&b, &rej), CM_DROP_none);
		bench_no_event(&b);
		bench_sent_nothing(&b);
		bench_wait(&b, after_ns[i]);
		assert_int_equal(bench_sent(&b, CM_REQ).tid, tid);
	}
	assert_int_equal(bench_input(&b, &rej), CM_DROP_none);
	assert_int_equal(bench_event(&b, CM_EVENT_REJECTED).mad.rej.reason,
			 CM_REJ_INVALID_SERVICE_ID);
	assert_int_equal(cm_conn_state(c), CM_IDLE);
	cm_close(b.cm, c, b.now_ns);
	assert_int_equal(cm_stats(b.cm)->in_use, 0);
	bench_unmake(&b);
}

/* The server begins to listen: it answers as if it had been asked once. */
static void cm_ask_again__finds_a_server(void **state)
{
	struct bench b;
	struct cm_conn *c;
	struct cm_mad rej, rep;
	u64 tid;

	bench_make(&b, 4, 0);
	c = bench_connect(&b, &tid);
	cm_ask_again(c, ASKS);
	rej = refusal(tid, CM_REJ_INVALID_SERVICE_ID);
	rej.remote_id = cm_conn_id(c);
	assert_int_equal(bench_input(&b, &rej), CM_DROP_none);
	bench_wait(&b, 2 * NSEC_PER_MSEC);
	bench_sent(&b, CM_REQ);
	rep = bench_mad(CM_REP, tid, PEER, cm_conn_id(c));
	rep.rep.qpn = BENCH_PEER_QPN;
	assert_int_equal(bench_input(&b, &rep), CM_DROP_none);
	bench_event(&b, CM_EVENT_REPLY);
	cm_close(b.cm, c, b.now_ns);
	bench_unmake(&b);
}

/* It gets another request, and is silent: exactly as often as a peer that never answered. */
static void cm_ask_again__then_silence(void **state)
{
	struct bench b;
	struct cm_conn *c;
	struct cm_mad rej;
	u64 tid;

	bench_make(&b, 4, 0);
	c = bench_connect(&b, &tid);
	cm_ask_again(c, ASKS);
	for (u32 i = 0; i < BENCH_RETRIES; i++) {
		bench_wait(&b, bench_interval_ns());
		bench_sent(&b, CM_REQ);
	}
	rej = refusal(tid, CM_REJ_INVALID_SERVICE_ID);
	rej.remote_id = cm_conn_id(c);
	assert_int_equal(bench_input(&b, &rej), CM_DROP_none);
	bench_wait(&b, 2 * NSEC_PER_MSEC);
	bench_sent(&b, CM_REQ);
	for (u32 i = 0; i < BENCH_RETRIES; i++) {
		bench_wait(&b, bench_interval_ns());
		bench_sent(&b, CM_REQ);
	}
	bench_wait(&b, bench_interval_ns());
	bench_event(&b, CM_EVENT_UNREACHABLE);
	cm_close(b.cm, c, b.now_ns);
	bench_unmake(&b);
}

/* A listener's own rejection is passed on. */
static void cm_ask_again__other_refusals(void **state)
{
	const enum cm_reason reasons[] = { CM_REJ_CONSUMER_DEFINED, CM_REJ_NO_RESOURCES,
					   CM_REJ_TIMEOUT };

	for (u32 i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		struct bench b;
		struct cm_conn *c;
		struct cm_mad rej;
		u64 tid;

		bench_make(&b, 4, 0);
		c = bench_connect(&b, &tid);
		cm_ask_again(c, ASKS);
		rej = refusal(tid, reasons[i]);
		rej.remote_id = cm_conn_id(c);
		assert_int_equal(bench_input(&b, &rej), CM_DROP_none);
		bench_event(&b, CM_EVENT_REJECTED);
		cm_close(b.cm, c, b.now_ns);
		bench_unmake(&b);
	}
}

static void cm_ask_again__of_sidr(void **state)
{
	const struct cm_sidr_req req = { .service_id = BENCH_SERVICE };
	const struct cm_times times = { .response_timeout = BENCH_RESPONSE, .max_retries = 1 };
	struct bench b;
	struct cm_conn *c;
	struct cm_mad rep;

	bench_make(&b, 4, 0);
	assert_int_equal(cm_sidr_request(b.cm, &b.path, &req, &times, NULL, 0, NULL, b.now_ns, &c),
			 0);
	cm_ask_again(c, 1);
	rep = bench_mad(CM_SIDR_REP, bench_sent(&b, CM_SIDR_REQ).tid, cm_conn_id(c), 0);
	rep.sidr_rep = (struct cm_sidr_rep){ .service_id = BENCH_SERVICE,
					     .status = CM_SIDR_UNSUPPORTED };
	assert_int_equal(bench_input(&b, &rep), CM_DROP_none);
	bench_no_event(&b);
	bench_wait(&b, 2 * NSEC_PER_MSEC);
	bench_sent(&b, CM_SIDR_REQ);
	assert_int_equal(bench_input(&b, &rep), CM_DROP_none);
	bench_event(&b, CM_EVENT_SIDR_REPLY);
	cm_close(b.cm, c, b.now_ns);
	bench_unmake(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cm_ask_again__each_time_later),
		cmocka_unit_test(cm_ask_again__finds_a_server),
		cmocka_unit_test(cm_ask_again__then_silence),
		cmocka_unit_test(cm_ask_again__other_refusals),
		cmocka_unit_test(cm_ask_again__of_sidr),
	};

	return cmocka_run_group_tests_name("again", tests, NULL, NULL);
}
