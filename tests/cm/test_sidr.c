/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* Requests for a datagram service, and their answers. */
#include "bench.h"

#define PEER 0x7700u

static void cm_sidr_request__whole(void **state)
{
	const struct cm_sidr_req req = { .service_id = BENCH_SERVICE, .pkey = 0xffff };
	const struct cm_times times = { BENCH_RESPONSE, BENCH_RETRIES };
	struct bench b;
	struct cm_conn *c;
	struct cm_mad m;

	bench_make(&b, 4, 0);
	cm_sidr_request(b.cm, &b.path, &req, &times, "q", 1, NULL, b.now_ns, &c);
	m = bench_sent(&b, CM_SIDR_REQ);
	assert_int_equal(m.local_id, cm_conn_id(c));
	m = (struct cm_mad){ .kind = CM_SIDR_REP, .tid = m.tid + 1, .local_id = m.local_id };
	m.sidr_rep.service_id = BENCH_SERVICE;
	assert_int_equal(bench_input(&b, &m), CM_DROP_tid);
	m.tid--;
	m.sidr_rep.service_id++;
	assert_int_equal(bench_input(&b, &m), CM_DROP_state);
	m.sidr_rep.service_id--;
	assert_int_equal(bench_input(&b, &m), CM_DROP_none);
	bench_event(&b, CM_EVENT_SIDR_REPLY);
	assert_int_equal(bench_input(&b, &m), CM_DROP_state);
	cm_close(b.cm, c, b.now_ns);
	cm_sidr_request(b.cm, &b.path, &req, &times, NULL, 0, NULL, b.now_ns, &c);
	bench_sent(&b, CM_SIDR_REQ);
	for (u32 i = 0; i < BENCH_RETRIES; i++) {
		bench_wait(&b, bench_interval_ns());
		bench_sent(&b, CM_SIDR_REQ);
	}
	bench_wait(&b, bench_interval_ns());
	assert_int_equal(bench_event(&b, CM_EVENT_UNREACHABLE).mad.kind, CM_SIDR_REQ);
	bench_sent_nothing(&b);
	cm_close(b.cm, c, b.now_ns);
	assert_int_equal(cm_stats(b.cm)->in_use, 0);
	bench_unmake(&b);
}

static void input_sidr_req__answered(void **state)
{
	struct cm_mad req = { .kind = CM_SIDR_REQ, .tid = 9, .local_id = PEER }, rep;
	struct bench b;
	struct cm_conn *c;

	bench_make(&b, 4, 0);
	req.sidr_req.service_id = BENCH_SERVICE;
	assert_int_equal(bench_input(&b, &req), CM_DROP_refused);
	rep = bench_sent(&b, CM_SIDR_REP);
	assert_int_equal(rep.sidr_rep.status, CM_SIDR_UNSUPPORTED);
	assert_int_equal(rep.sidr_rep.service_id, BENCH_SERVICE);
	assert_int_equal(rep.local_id, PEER);
	bench_listen(&b, 0);
	assert_int_equal(bench_input(&b, &req), CM_DROP_none);
	c = bench_event(&b, CM_EVENT_SIDR_REQUEST).conn;
	assert_int_equal(bench_input(&b, &req), CM_DROP_duplicate);
	bench_sent_nothing(&b);
	/* its ids are no connection's: a DREQ for it has no owner */
	rep = bench_mad(CM_DREQ, 9, PEER, cm_conn_id(c));
	assert_int_equal(bench_input(&b, &rep), CM_DROP_refused);
	bench_sent(&b, CM_DREP);
	assert_int_equal(cm_sidr_reply(b.cm, c, &(struct cm_sidr_rep){ .status = 6 }, NULL, 0,
				       b.now_ns), -EINVAL);
	assert_int_equal(cm_sidr_reply(b.cm, c, &(struct cm_sidr_rep){ .qpn = 5 }, "a", 1,
				       b.now_ns), 0);
	bench_sent(&b, CM_SIDR_REP);
	cm_close(b.cm, c, b.now_ns);
	assert_int_equal(bench_input(&b, &req), CM_DROP_duplicate);
	rep = bench_sent(&b, CM_SIDR_REP);
	assert_int_equal(rep.sidr_rep.qpn, 5);
	assert_int_equal(rep.data[0], 'a');
	/* the next one under that id */
	req.tid++;
	assert_int_equal(bench_input(&b, &req), CM_DROP_none);
	c = bench_event(&b, CM_EVENT_SIDR_REQUEST).conn;
	cm_close(b.cm, c, b.now_ns);
	assert_int_equal(bench_sent(&b, CM_SIDR_REP).sidr_rep.status, CM_SIDR_REJECTED);
	bench_unmake(&b);
}

/* An answer is kept until its peer has sent the last of 16 requests, as ours repeats them. */
static void input_sidr_req__is_kept_long_enough(void **state)
{
	const struct cm_sidr_req asked = { .service_id = BENCH_SERVICE, .pkey = 0xffff };
	const struct cm_times times = { 20, 15 };
	struct cm_mad req = { .kind = CM_SIDR_REQ, .tid = 9, .local_id = PEER };
	struct cm_conn *c, *active;
	struct bench b;
	u64 last_ns;

	bench_make(&b, 4, 0);
	b.path.life = 16;
	cm_sidr_request(b.cm, &b.path, &asked, &times, NULL, 0, NULL, b.now_ns, &active);
	last_ns = b.now_ns + 15 * (cm_deadline_ns(b.cm) - b.now_ns);
	cm_close(b.cm, active, b.now_ns);
	bench_listen(&b, 0);
	req.sidr_req.service_id = BENCH_SERVICE;
	assert_int_equal(bench_input(&b, &req), CM_DROP_none);
	c = bench_event(&b, CM_EVENT_SIDR_REQUEST).conn;
	cm_sidr_reply(b.cm, c, &(struct cm_sidr_rep){ .qpn = 5 }, NULL, 0, b.now_ns);
	cm_close(b.cm, c, b.now_ns);
	assert_true(cm_deadline_ns(b.cm) > last_ns);
	bench_unmake(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cm_sidr_request__whole),
		cmocka_unit_test(input_sidr_req__answered),
		cmocka_unit_test(input_sidr_req__is_kept_long_enough),
	};

	return cmocka_run_group_tests_name("sidr", tests, NULL, NULL);
}
