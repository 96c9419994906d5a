/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* Connections that one end still has, and refused requests. */
#include "bench.h"

#define PEER 0x7700u

/* ---- stale connections ---- */

static void input_req__stale(void **state)
{
	struct bench b;
	struct cm_conn *c;
	struct cm_mad req, m;

	bench_make(&b, 4, 0);
	bench_listen(&b, 0);
	c = bench_established(&b, PEER);
	/* the peer starts again, with the QP of the old connection */
	req = bench_req(&b, PEER + 5);
	req.req.qpn = PEER;
	assert_int_equal(bench_input(&b, &req), CM_DROP_refused);
	m = bench_sent(&b, CM_REJ);
	assert_int_equal(m.rej.reason, CM_REJ_STALE_CONN);
	assert_int_equal(m.rej.about, CM_ABOUT_REQ);
	assert_int_equal(m.remote_id, PEER + 5);
	assert_int_equal(m.tid, req.tid);
	m = bench_sent(&b, CM_DREQ);
	assert_int_equal(m.remote_id, PEER);
	bench_no_event(&b);
	m = bench_mad(CM_DREP, m.tid, PEER, cm_conn_id(c));
	assert_int_equal(bench_input(&b, &m), CM_DROP_none);
	bench_event(&b, CM_EVENT_DISCONNECTED);
	/* in time-wait as well, and with the id of the old connection */
	assert_int_equal(bench_input(&b, &req), CM_DROP_refused);
	assert_int_equal(bench_sent(&b, CM_REJ).rej.reason, CM_REJ_STALE_CONN);
	bench_sent_nothing(&b);
	req.local_id = PEER;
	assert_int_equal(bench_input(&b, &req), CM_DROP_duplicate);
	assert_int_equal(bench_sent(&b, CM_REJ).rej.reason, CM_REJ_STALE_CONN);
	bench_wait(&b, cm_time_ns(BENCH_ACK));
	bench_event(&b, CM_EVENT_TIMEWAIT_EXIT);
	assert_int_equal(bench_input(&b, &req), CM_DROP_none);
	bench_event(&b, CM_EVENT_REQUEST);
	/* another peer's QP of that number is another QP */
	b.path.remote.raw[15]++;
	req = bench_req(&b, PEER);
	assert_int_equal(bench_input(&b, &req), CM_DROP_none);
	bench_unmake(&b);
}

/* A connection of the peer's id, which this end began or did not, in time-wait. */
static struct cm_conn *bench_in_time_wait(struct bench *b, u32 peer, bool passive)
{
	struct cm_conn *c;
	struct cm_mad m;
	u64 tid;

	if (passive) {
		c = bench_established(b, peer);
	} else {
		c = bench_connect(b, &tid);
		m = bench_mad(CM_REP, tid, peer, cm_conn_id(c));
		m.rep.qpn = peer;
		bench_input(b, &m);
		bench_event(b, CM_EVENT_REPLY);
		assert_int_equal(cm_ready(b->cm, c, NULL, 0, b->now_ns), 0);
		bench_sent(b, CM_RTU);
	}
	cm_disconnect(b->cm, c, NULL, 0, b->now_ns);
	m = bench_mad(CM_DREP, bench_sent(b, CM_DREQ).tid, peer, cm_conn_id(c));
	bench_input(b, &m);
	bench_event(b, CM_EVENT_DISCONNECTED);
	assert_int_equal(cm_conn_state(c), CM_TIMEWAIT);
	return c;
}

/* What time-wait protects is the QP: a new one may come with the id of an old connection. */
static void cm_input__id_of_time_wait(void **state)
{
	struct cm_conn *old, *c;
	struct cm_mad m;
	struct bench b;
	u64 tid;

	bench_make(&b, 16, 0);
	bench_listen(&b, 0);
	for (u32 i = 0; i < 2; i++) {
		old = bench_in_time_wait(&b, PEER + i, i);
		m = bench_req(&b, PEER + i);
		m.req.qpn = 5000 + i;
		assert_int_equal(bench_input(&b, &m), CM_DROP_none);
		bench_event(&b, CM_EVENT_REQUEST);
		assert_int_equal(bench_input(&b, &m), CM_DROP_duplicate);
		assert_int_equal(cm_conn_state(old), CM_TIMEWAIT);
	}
	for (u32 i = 0; i < 2; i++) {
		old = bench_in_time_wait(&b, PEER + 2 + i, i);
		c = bench_connect(&b, &tid);
		m = bench_mad(CM_REP, tid, PEER + 2 + i, cm_conn_id(c));
		m.rep.qpn = 6000 + i;
		assert_int_equal(bench_input(&b, &m), CM_DROP_none);
		bench_event(&b, CM_EVENT_REPLY);
		assert_int_equal(cm_conn_state(old), CM_TIMEWAIT);
	}
	bench_unmake(&b);
}

/* A link-local address is another peer on another interface. */
static void input_req__other_interface(void **state)
{
	struct bench b;
	struct cm_mad req;

	bench_make(&b, 4, 1);
	bench_listen(&b, 0);
	bench_requested(&b, PEER);
	b.path.interface++;
	req = bench_req(&b, PEER);
	assert_int_equal(bench_input(&b, &req), CM_DROP_none);
	bench_event(&b, CM_EVENT_REQUEST);
	bench_unmake(&b);
}

static void input_rep__stale(void **state)
{
	struct bench b;
	struct cm_conn *c;
	struct cm_mad rep, rej;
	u64 tid;

	bench_make(&b, 8, 0);
	bench_listen(&b, 0);
	bench_established(&b, PEER);
	for (u32 i = 0; i < 2; i++) {
		c = bench_connect(&b, &tid);
		rep = bench_mad(CM_REP, tid, i ? PEER : PEER + 1, cm_conn_id(c));
		rep.rep.qpn = i ? 1 : PEER;
		assert_int_equal(bench_input(&b, &rep), CM_DROP_none);
		assert_int_equal(bench_event(&b, CM_EVENT_REJECTED).mad.rej.reason,
				 CM_REJ_STALE_CONN);
		rej = bench_sent(&b, CM_REJ);
		assert_int_equal(rej.rej.reason, CM_REJ_STALE_CONN);
		assert_int_equal(rej.rej.about, CM_ABOUT_REP);
		assert_int_equal(rej.local_id, cm_conn_id(c));
		assert_int_equal(cm_conn_state(c), CM_IDLE);
	}
	bench_unmake(&b);
}

/* ---- refused requests ---- */

static void input_req__fields(void **state)
{
	struct bench b;
	struct cm_mad req;

	bench_make(&b, 4, 0);
	bench_listen(&b, 0);
#define REFUSED(change, why)                                                             \
	do {                                                                             \
		req = bench_req(&b, PEER);                                               \
		change;                                                                  \
		assert_int_equal(bench_input(&b, &req), CM_DROP_refused);                \
		assert_int_equal(bench_sent(&b, CM_REJ).rej.reason, why);                \
	} while (0)
	REFUSED(req.req.primary.local.raw[15]++, CM_REJ_INVALID_GID);
	REFUSED(req.req.primary.remote.raw[15]++, CM_REJ_INVALID_GID);
	REFUSED(req.req.transport = CM_TRANSPORT_RD, CM_REJ_INVALID_TRANSPORT);
	REFUSED(req.req.transport = CM_TRANSPORT_EXTENDED, CM_REJ_INVALID_TRANSPORT);
	REFUSED(req.req.mtu = 0, CM_REJ_INVALID_MTU);
	REFUSED(req.req.mtu = 6, CM_REJ_INVALID_MTU);
	REFUSED(req.req.pkey = 0x8001, CM_REJ_UNSUPPORTED);
	REFUSED(req.req.service_id++, CM_REJ_INVALID_SERVICE_ID);
#undef REFUSED
	bench_no_event(&b);
	assert_int_equal(cm_stats(b.cm)->in_use, 0);
	req = bench_req(&b, PEER);
	req.req.transport = CM_TRANSPORT_EXTENDED;
	req.req.extended_transport = CM_EXTENDED_XRC;
	req.req.pkey = 0x7fff;
	assert_int_equal(bench_input(&b, &req), CM_DROP_none);
	bench_dropped(&b, CM_DROP_refused, 8);
	bench_unmake(&b);
}

/* The alternate path is not taken, and a LAP refused. */
static void input_lap__refused(void **state)
{
	struct bench b;
	struct cm_conn *c;
	struct cm_mad m, req;

	bench_make(&b, 4, 0);
	bench_listen(&b, 0);
	req = bench_req(&b, PEER);
	req.req.alternate.local.raw[0] = 0xfe;
	bench_input(&b, &req);
	c = bench_event(&b, CM_EVENT_REQUEST).conn;
	cm_accept(b.cm, c, &(struct cm_rep){ .qpn = 1 }, NULL, 0, b.now_ns);
	assert_int_equal(bench_sent(&b, CM_REP).rep.failover, 1);
	m = bench_mad(CM_RTU, req.tid, PEER, cm_conn_id(c));
	bench_input(&b, &m);
	bench_event(&b, CM_EVENT_ESTABLISHED);
	m = bench_mad(CM_LAP, 7, PEER, cm_conn_id(c));
	assert_int_equal(bench_input(&b, &m), CM_DROP_refused);
	m = bench_sent(&b, CM_APR);
	assert_int_equal(m.apr.status, CM_APR_UNSUPPORTED);
	assert_int_equal(m.tid, 7);
	assert_int_equal(m.local_id, cm_conn_id(c));
	assert_int_equal(m.remote_id, PEER);
	m = bench_mad(CM_LAP, 7, PEER, cm_conn_id(c) ^ 1);
	assert_int_equal(bench_input(&b, &m), CM_DROP_refused);
	assert_int_equal(bench_sent(&b, CM_APR).apr.status, CM_APR_INVALID_COMM_ID);
	m = bench_mad(CM_APR, 7, PEER, cm_conn_id(c));
	assert_int_equal(bench_input(&b, &m), CM_DROP_state);
	bench_sent_nothing(&b);
	bench_no_event(&b);
	bench_unmake(&b);
}

/* No answer to an answer: two CMs never talk for ever. */
static void cm_refuse__answers_no_answer(void **state)
{
	static const struct {
		enum cm_kind kind, reply;
	} rows[] = {
		{ CM_REQ, CM_REJ },   { CM_REP, CM_REJ },  { CM_DREQ, CM_DREP },
		{ CM_LAP, CM_APR },   { CM_SIDR_REQ, CM_SIDR_REP },
		{ CM_MRA, 0 },	      { CM_REJ, 0 },	   { CM_RTU, 0 },
		{ CM_DREP, 0 },	      { CM_SIDR_REP, 0 },  { CM_APR, 0 },
	};
	struct cm_mad m, reply, none;

	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		m = bench_mad(rows[i].kind, 3, 4, 5);
		assert_int_equal(cm_refuse(&m, &reply), rows[i].reply != 0);
		if (!rows[i].reply)
			continue;
		assert_int_equal(reply.kind, rows[i].reply);
		assert_int_equal(reply.tid, 3);
		assert_int_equal(reply.kind == CM_SIDR_REP ? reply.local_id : reply.remote_id, 4);
		assert_false(cm_refuse(&reply, &none));
	}
}

static void cm_mad_names__all(void **state)
{
	struct cm_mad m = bench_mad(CM_REQ, 3, 4, 5);
	u64 service;
	u32 id;

	m.req.service_id = 88;
	assert_int_equal(cm_mad_names(&m, &id, &service), CM_NAMES_SERVICE);
	assert_int_equal(service, 88);
	m = bench_mad(CM_SIDR_REQ, 3, 4, 0);
	m.sidr_req.service_id = 89;
	assert_int_equal(cm_mad_names(&m, &id, &service), CM_NAMES_SERVICE);
	assert_int_equal(service, 89);
	m = bench_mad(CM_SIDR_REP, 3, 4, 0);
	assert_int_equal(cm_mad_names(&m, &id, &service), CM_NAMES_ID);
	assert_int_equal(id, 4);
	m = bench_mad(CM_REJ, 3, 4, 0);
	assert_int_equal(cm_mad_names(&m, &id, &service), CM_NAMES_PEER);
	m.remote_id = 6;
	assert_int_equal(cm_mad_names(&m, &id, &service), CM_NAMES_ID);
	assert_int_equal(id, 6);
	m = bench_mad(CM_DREQ, 3, 4, 5);
	assert_int_equal(cm_mad_names(&m, &id, &service), CM_NAMES_ID);
	assert_int_equal(id, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(input_req__stale),
		cmocka_unit_test(input_req__other_interface),
		cmocka_unit_test(cm_input__id_of_time_wait),
		cmocka_unit_test(input_rep__stale),
		cmocka_unit_test(input_req__fields),
		cmocka_unit_test(input_lap__refused),
		cmocka_unit_test(cm_refuse__answers_no_answer),
		cmocka_unit_test(cm_mad_names__all),
	};

	return cmocka_run_group_tests_name("stale", tests, NULL, NULL);
}
