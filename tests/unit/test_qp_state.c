/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * ibv_modify_qp(3): every pair of states on every transport service against a table that is typed
 * in here from the man page and the protocol sheet, every attribute of every transition given and
 * left out, and the ranges of the values.
 */
#include "bare_engine.h"

enum {
	STATE = QP_ATTR_STATE,
	CUR = QP_ATTR_CUR_STATE,
	SQD_NOTIFY = QP_ATTR_EN_SQD_ASYNC_NOTIFY,
	ACCESS_FLAGS = QP_ATTR_ACCESS_FLAGS,
	PKEY_INDEX = QP_ATTR_PKEY_INDEX,
	PORT = QP_ATTR_PORT,
	QKEY = QP_ATTR_QKEY,
	AV = QP_ATTR_AV,
	PATH_MTU = QP_ATTR_PATH_MTU,
	TIMEOUT = QP_ATTR_TIMEOUT,
	RETRY_CNT = QP_ATTR_RETRY_CNT,
	RNR_RETRY = QP_ATTR_RNR_RETRY,
	RQ_PSN = QP_ATTR_RQ_PSN,
	MAX_QP_RD_ATOMIC = QP_ATTR_MAX_QP_RD_ATOMIC,
	MIN_RNR_TIMER = QP_ATTR_MIN_RNR_TIMER,
	SQ_PSN = QP_ATTR_SQ_PSN,
	MAX_DEST_RD_ATOMIC = QP_ATTR_MAX_DEST_RD_ATOMIC,
	DEST_QPN = QP_ATTR_DEST_QPN,
	RATE = QP_ATTR_RATE_LIMIT,
};

#define RESET QPS_RESET
#define INIT  QPS_INIT
#define RTR   QPS_RTR
#define RTS   QPS_RTS
#define SQD   QPS_SQD
#define SQE   QPS_SQE
#define ERR   QPS_ERR

/*
 * All transitions except to RESET and ERR, which exist from every state and take no attributes.
 * Required: the tables of ibv_modify_qp(3). Optional: the transition table of the kernel's RDMA
 * core, without alternate paths, which are not supported, and with the rate, which it has for raw
 * packets alone.
 */
static const struct row {
	enum xroce_transport transport;
	enum qp_state from, to;
	u32 required, optional;
} rows[] = {
	{ XROCE_UD, RESET, INIT, PKEY_INDEX | PORT | QKEY, 0 },
	{ XROCE_UD, INIT, INIT, 0, PKEY_INDEX | PORT | QKEY },
	{ XROCE_UD, INIT, RTR, 0, PKEY_INDEX | QKEY },
	{ XROCE_UD, RTR, RTS, SQ_PSN, CUR | QKEY | RATE },
	{ XROCE_UD, RTS, RTS, 0, CUR | QKEY | RATE },
	{ XROCE_UD, RTS, SQD, 0, SQD_NOTIFY },
	{ XROCE_UD, SQD, RTS, 0, CUR | QKEY },
	{ XROCE_UD, SQD, SQD, 0, PKEY_INDEX | QKEY },
	{ XROCE_UD, SQE, RTS, 0, CUR | QKEY },

	{ XROCE_UC, RESET, INIT, PKEY_INDEX | PORT | ACCESS_FLAGS, 0 },
	{ XROCE_UC, INIT, INIT, 0, PKEY_INDEX | PORT | ACCESS_FLAGS },
	{ XROCE_UC, INIT, RTR, AV | PATH_MTU | DEST_QPN | RQ_PSN, ACCESS_FLAGS | PKEY_INDEX },
	{ XROCE_UC, RTR, RTS, SQ_PSN, CUR | ACCESS_FLAGS | RATE },
	{ XROCE_UC, RTS, RTS, 0, CUR | ACCESS_FLAGS | RATE },
	{ XROCE_UC, RTS, SQD, 0, SQD_NOTIFY },
	{ XROCE_UC, SQD, RTS, 0, CUR | ACCESS_FLAGS },
	{ XROCE_UC, SQD, SQD, 0, AV | ACCESS_FLAGS | PKEY_INDEX },
	{ XROCE_UC, SQE, RTS, 0, CUR | ACCESS_FLAGS },

	{ XROCE_RC, RESET, INIT, PKEY_INDEX | PORT | ACCESS_FLAGS, 0 },
	{ XROCE_RC, INIT, INIT, 0, PKEY_INDEX | PORT | ACCESS_FLAGS },
	{ XROCE_RC, INIT, RTR,
	  AV | PATH_MTU | DEST_QPN | RQ_PSN | MAX_DEST_RD_ATOMIC | MIN_RNR_TIMER,
	  ACCESS_FLAGS | PKEY_INDEX },
	{ XROCE_RC, RTR, RTS, SQ_PSN | TIMEOUT | RETRY_CNT | RNR_RETRY | MAX_QP_RD_ATOMIC,
	  CUR | ACCESS_FLAGS | MIN_RNR_TIMER | RATE },
	{ XROCE_RC, RTS, RTS, 0, CUR | ACCESS_FLAGS | MIN_RNR_TIMER | RATE },
	{ XROCE_RC, RTS, SQD, 0, SQD_NOTIFY },
	{ XROCE_RC, SQD, RTS, 0, CUR | ACCESS_FLAGS | MIN_RNR_TIMER },
	{ XROCE_RC, SQD, SQD, 0,
	  PORT | AV | TIMEOUT | RETRY_CNT | RNR_RETRY | MAX_QP_RD_ATOMIC | MAX_DEST_RD_ATOMIC |
		  ACCESS_FLAGS | PKEY_INDEX | MIN_RNR_TIMER },
};

static const enum xroce_transport transports[] = { XROCE_RC, XROCE_UC, XROCE_UD };

static const struct row *find_row(enum xroce_transport t, enum qp_state from, enum qp_state to)
{
	static struct row to_reset_or_err;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].transport == t && rows[i].from == from && rows[i].to == to)
			return &rows[i];
	if (to != RESET && to != ERR)
		return NULL;
	to_reset_or_err = (struct row){ t, from, to, 0, 0 };
	return &to_reset_or_err;
}

static void qp_transition__every_pair(void **state)
{
	for (size_t t = 0; t < ARRAY_SIZE(transports); t++)
		for (int from = RESET; from <= ERR; from++)
			for (int to = RESET; to <= ERR; to++) {
				const struct row *r = find_row(transports[t], from, to);
				u32 required = 0, optional = 0;
				bool exists = qp_transition(transports[t], false, from, to,
							    &required, &optional);

				if (exists != !!r)
					fail_msg("transport %d: %d to %d", transports[t], from, to);
				if (r && (required != r->required || optional != r->optional))
					fail_msg("transport %d: %d to %d: required %#x, not %#x; "
						 "optional %#x, not %#x",
						 transports[t], from, to, required, r->required,
						 optional, r->optional);
			}
}

static void qp_transition__states_that_are_none(void **state)
{
	u32 required, optional;

	assert_false(qp_transition(XROCE_RC, false, ERR + 1, RESET, &required, &optional));
	assert_false(qp_transition(XROCE_RC, false, RESET, ERR + 1, &required, &optional));
	assert_false(
		qp_transition(XROCE_RC, false, (enum qp_state) - 1, RESET, &required, &optional));
	assert_false(
		qp_transition(XROCE_RC, false, RESET, (enum qp_state) - 1, &required, &optional));
}

/* ---- qp_modify() on QPs of an engine ---- */

/* Values that are all in range and differ from what a new QP has. */
static struct qp_attr good_attr(enum qp_state from, enum qp_state to)
{
	return (struct qp_attr){
		.state = to,
		.cur_state = from,
		.access = MR_REMOTE_WRITE | MR_REMOTE_READ,
		.pkey_index = 0,
		.port = 1,
		.qkey = 0x11112222,
		.path = { .hop_limit = 61, .udp_sport = 0xc00d },
		.path_mtu = 2048,
		.timeout = 14,
		.retry_cnt = 6,
		.rnr_retry = 5,
		.rq_psn = 0xabcdef,
		.sq_psn = 0x123456,
		.max_rd_atomic = 3,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.dest_qpn = 0x654321,
		.sqd_async_notify = true,
		.rate_limit = { .kbps = 1000 },
	};
}

static int modify(struct qp *qp, enum qp_state to, u32 mask)
{
	struct qp_attr attr = good_attr(qp_state(qp), to);

	return qp_modify(engine, qp, &attr, mask, 1000);
}

/* A QP in that state, moved there with the required attributes and no others. */
static struct qp *make_qp_in(enum xroce_transport t, enum qp_state in)
{
	static const enum qp_state way[] = { INIT, RTR, RTS, SQD };
	struct qp *qp = make_qp(t);

	if (in == ERR) {
		assert_int_equal(modify(qp, ERR, STATE), 0);
		return qp;
	}
	for (size_t i = 0;
	     i < ARRAY_SIZE(way) && qp_state(qp) != in && (in != SQE || qp_state(qp) != RTS); i++) {
		const struct row *r = find_row(t, qp_state(qp), way[i]);

		assert_int_equal(modify(qp, way[i], STATE | r->required), 0);
	}
	/* no application can request SQE: the engine enters it when a send fails */
	if (in == SQE)
		atomic_store(&qp->state, SQE);
	assert_int_equal(qp_state(qp), in);
	return qp;
}

static void assert_same_attr(const struct qp_attr *a, const struct qp_attr *b)
{
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->access, b->access);
	assert_int_equal(a->pkey_index, b->pkey_index);
	assert_int_equal(a->port, b->port);
	assert_int_equal(a->qkey, b->qkey);
	assert_memory_equal(&a->path, &b->path, sizeof(a->path));
	assert_int_equal(a->path_mtu, b->path_mtu);
	assert_int_equal(a->timeout, b->timeout);
	assert_int_equal(a->retry_cnt, b->retry_cnt);
	assert_int_equal(a->rnr_retry, b->rnr_retry);
	assert_int_equal(a->rq_psn, b->rq_psn);
	assert_int_equal(a->sq_psn, b->sq_psn);
	assert_int_equal(a->max_rd_atomic, b->max_rd_atomic);
	assert_int_equal(a->max_dest_rd_atomic, b->max_dest_rd_atomic);
	assert_int_equal(a->min_rnr_timer, b->min_rnr_timer);
	assert_int_equal(a->dest_qpn, b->dest_qpn);
	assert_int_equal(a->sqd_async_notify, b->sqd_async_notify);
	assert_int_equal(a->rate_limit.kbps, b->rate_limit.kbps);
}

/*
 * For every pair of states: the mask of required attributes, less one, plus one, decides; a refusal
 * changes nothing.
 */
static void qp_modify__every_pair_and_attribute(void **state)
{
	for (size_t t = 0; t < ARRAY_SIZE(transports); t++)
		for (int from = RESET; from <= ERR; from++)
			for (int to = RESET; to <= ERR; to++) {
				const struct row *r = find_row(transports[t], from, to);
				u32 required = r ? r->required : 0;

				/* -1: the required ones as they are; else that bit inverted */
				for (int bit = -1; bit < 26; bit++) {
					struct qp *qp;
					u32 mask = STATE | required,
					    changed = bit < 0 ? 0 : 1u << bit;
					struct qp_attr before, after;
					bool want = r && (!changed || (changed & r->optional));
					int err;

					if (changed == STATE ||
					    (from == SQE && transports[t] == XROCE_RC))
						continue;
					qp = make_qp_in(transports[t], from);
					qp_query(qp, &before);
					err = modify(qp, to, mask ^ changed);
					qp_query(qp, &after);
					if (err != (want ? 0 : -EINVAL))
						fail_msg("transport %d: %d to %d, mask %#x: %d",
							 transports[t], from, to, mask ^ changed,
							 err);
					assert_int_equal(qp_state(qp), want ? to : from);
					if (!want)
						assert_same_attr(&before, &after);
					qp_destroy(engine, qp);
				}
			}
}

/* Without IBV_QP_STATE the state stays, and the attributes for an unchanged state are allowed. */
static void qp_modify__attributes_only(void **state)
{
	struct qp *qp = make_qp_in(XROCE_RC, RTS);
	struct qp_attr attr = { .state = RESET, .min_rnr_timer = 31, .access = MR_REMOTE_READ },
		       now;

	assert_int_equal(qp_modify(engine, qp, &attr, MIN_RNR_TIMER | ACCESS_FLAGS, 0), 0);
	qp_query(qp, &now);
	assert_int_equal(now.state, RTS);
	assert_int_equal(now.min_rnr_timer, 31);
	assert_int_equal(now.access, MR_REMOTE_READ);
	assert_int_equal(qp_modify(engine, qp, &attr, TIMEOUT, 0), -EINVAL);
	qp_destroy(engine, qp);

	qp = make_qp_in(XROCE_RC, RTR);
	assert_int_equal(qp_modify(engine, qp, &attr, MIN_RNR_TIMER, 0), -EINVAL);
	qp_destroy(engine, qp);
}

static void qp_modify__current_state_must_be_right(void **state)
{
	struct qp *qp = make_qp_in(XROCE_UC, RTR);
	struct qp_attr attr = good_attr(RTS, RTS);

	assert_int_equal(qp_modify(engine, qp, &attr, STATE | SQ_PSN | CUR, 0), -EINVAL);
	assert_int_equal(qp_state(qp), RTR);
	attr.cur_state = RTR;
	assert_int_equal(qp_modify(engine, qp, &attr, STATE | SQ_PSN | CUR, 0), 0);
	assert_int_equal(qp_state(qp), RTS);
	qp_destroy(engine, qp);
}

static void qp_modify__attributes_arrive(void **state)
{
	struct qp *qp = make_qp_in(XROCE_RC, RTS);
	struct qp_attr want = good_attr(RTR, RTS), now;

	qp_query(qp, &now);
	want.sqd_async_notify = false; /* never set on the way */
	want.qkey = 0;
	want.rate_limit.kbps = 0;
	assert_same_attr(&now, &want);
	assert_int_equal(qp->dest_qpn, want.dest_qpn);
	assert_int_equal(qp->path_mtu, 2048);
	assert_int_equal(qp->access, want.access);
	assert_int_equal(qp->pkey, ROCE_DEFAULT_PKEY);
	assert_int_equal(qp->path.udp_sport, 0xc00d);
	qp_destroy(engine, qp);

	qp = make_qp_in(XROCE_UD, RTS);
	qp_query(qp, &now);
	assert_int_equal(now.qkey, 0x11112222);
	assert_int_equal(now.sq_psn, 0x123456);
	assert_int_equal(now.port, 1);
	qp_destroy(engine, qp);
}

/* The ends of every range, and one beyond. */
static void qp_modify__ranges(void **state)
{
	enum { STEP_INIT, STEP_RTR, STEP_RTS };
#define FIELD(f) offsetof(struct qp_attr, f), sizeof(((struct qp_attr *)0)->f)
	static const struct {
		int step;
		size_t at, bytes;
		u32 value;
		bool allowed;
	} values[] = {
		{ STEP_INIT, FIELD(port), 0, false },
		{ STEP_INIT, FIELD(port), 1, true },
		{ STEP_INIT, FIELD(port), 2, false },
		{ STEP_INIT, FIELD(port), 255, false },
		{ STEP_INIT, FIELD(pkey_index), 0, true },
		{ STEP_INIT, FIELD(pkey_index), 1, false },
		{ STEP_INIT, FIELD(pkey_index), 65535, false },
		{ STEP_RTR, FIELD(path_mtu), 0, false },
		{ STEP_RTR, FIELD(path_mtu), 128, false },
		{ STEP_RTR, FIELD(path_mtu), 256, true },
		{ STEP_RTR, FIELD(path_mtu), 512, true },
		{ STEP_RTR, FIELD(path_mtu), 1000, false },
		{ STEP_RTR, FIELD(path_mtu), 1024, true },
		{ STEP_RTR, FIELD(path_mtu), 2048, true },
		{ STEP_RTR, FIELD(path_mtu), 4096, true },
		{ STEP_RTR, FIELD(path_mtu), 8192, false },
		{ STEP_RTR, FIELD(path_mtu), 0x80000000, false },
		{ STEP_RTR, FIELD(dest_qpn), 0xffffff, true },
		{ STEP_RTR, FIELD(dest_qpn), 0x1000000, false },
		{ STEP_RTR, FIELD(max_dest_rd_atomic), 0, true },
		{ STEP_RTR, FIELD(max_dest_rd_atomic), QP_MAX_RD_ATOMIC, true },
		{ STEP_RTR, FIELD(max_dest_rd_atomic), QP_MAX_RD_ATOMIC + 1, false },
		{ STEP_RTR, FIELD(max_dest_rd_atomic), 255, false },
		{ STEP_RTR, FIELD(min_rnr_timer), 0, true },
		{ STEP_RTR, FIELD(min_rnr_timer), 31, true },
		{ STEP_RTR, FIELD(min_rnr_timer), 32, false },
		{ STEP_RTS, FIELD(timeout), 0, true },
		{ STEP_RTS, FIELD(timeout), 31, true },
		{ STEP_RTS, FIELD(timeout), 32, false },
		{ STEP_RTS, FIELD(retry_cnt), 7, true },
		{ STEP_RTS, FIELD(retry_cnt), 8, false },
		{ STEP_RTS, FIELD(rnr_retry), 7, true },
		{ STEP_RTS, FIELD(rnr_retry), 8, false },
		{ STEP_RTS, FIELD(max_rd_atomic), 0, true },
		{ STEP_RTS, FIELD(max_rd_atomic), QP_MAX_RD_ATOMIC, true },
		{ STEP_RTS, FIELD(max_rd_atomic), QP_MAX_RD_ATOMIC + 1, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		enum qp_state from = values[i].step == STEP_INIT ? RESET :
				     values[i].step == STEP_RTR	 ? INIT :
								   RTR;
		struct qp *qp = make_qp_in(XROCE_RC, from);
		struct qp_attr attr = good_attr(from, from + 1), before, after;
		int err;

		/* little-endian or not: written through the field's own width */
		if (values[i].bytes == 1)
			*((u8 *)&attr + values[i].at) = (u8)values[i].value;
		else if (values[i].bytes == 2)
			*(u16 *)((u8 *)&attr + values[i].at) = (u16)values[i].value;
		else
			*(u32 *)((u8 *)&attr + values[i].at) = values[i].value;
		qp_query(qp, &before);
		err = qp_modify(engine, qp, &attr,
				STATE | find_row(XROCE_RC, from, from + 1)->required, 0);
		if (err != (values[i].allowed ? 0 : -EINVAL))
			fail_msg("row %zu: %d", i, err);
		if (err) {
			qp_query(qp, &after);
			assert_same_attr(&before, &after);
		}
		qp_destroy(engine, qp);
	}
}

/* PSNs have 24 bits; what a program passes above them is not looked at. */
static void qp_modify__psns_are_cut_to_24_bits(void **state)
{
	struct qp *qp = make_qp_in(XROCE_UC, INIT);
	struct qp_attr attr = good_attr(INIT, RTR), now;

	attr.rq_psn = 0xff123456;
	assert_int_equal(qp_modify(engine, qp, &attr, STATE | AV | PATH_MTU | DEST_QPN | RQ_PSN, 0),
			 0);
	attr = good_attr(RTR, RTS);
	attr.sq_psn = 0x1fffffff;
	assert_int_equal(qp_modify(engine, qp, &attr, STATE | SQ_PSN, 0), 0);
	qp_query(qp, &now);
	assert_int_equal(now.rq_psn, 0x123456);
	assert_int_equal(now.sq_psn, 0xffffff);
	qp_destroy(engine, qp);
}

static void post_receive(struct qp *qp, u64 wr_id)
{
	struct recv_wqe *w = rq_slot(&qp->rq, 0);

	assert_non_null(w);
	w->wr_id = wr_id;
	w->num_sge = 0;
	rq_publish(&qp->rq, 1);
}

static void post_send(struct qp *qp, u64 wr_id)
{
	struct send_wqe *w = sq_slot(&qp->sq, 0);

	assert_non_null(w);
	memset(w, 0, sizeof(*w));
	w->wr_id = wr_id;
	w->opcode = WR_SEND;
	sq_publish(&qp->sq, 1);
}

static void expect_flushed(u64 wr_id, const struct qp *qp)
{
	const struct cqe *e = cq_peek(&cq);

	assert_non_null(e);
	assert_int_equal(e->wr_id, wr_id);
	assert_int_equal(e->status, CQE_WR_FLUSH_ERR);
	assert_int_equal(e->qpn, qp->qpn);
	cq_pop(&cq);
}

/* To ERR: everything posted completes as flushed, in order on each queue, unsignaled sends too. */
static void qp_modify__to_error_flushes(void **state)
{
	for (size_t t = 0; t < ARRAY_SIZE(transports); t++) {
		struct qp *qp = make_qp_in(transports[t], RTS);
		u64 next_send = 100, next_receive = 200;
		const struct cqe *e;

		for (u64 i = 0; i < 4; i++) {
			post_send(qp, 100 + i);
			post_receive(qp, 200 + i);
		}
		assert_null(cq_peek(&cq));
		assert_int_equal(modify(qp, ERR, STATE), 0);
		while ((e = cq_peek(&cq))) {
			u64 *next = e->wr_id < 200 ? &next_send : &next_receive;

			assert_int_equal(e->wr_id, *next);
			expect_flushed((*next)++, qp);
		}
		assert_int_equal(next_send, 104);
		assert_int_equal(next_receive, 204);
		assert_non_null(sq_slot(&qp->sq, 3));
		assert_non_null(rq_slot(&qp->rq, 3));
		qp_destroy(engine, qp);
	}
}

/*
 * To RESET: nothing completes, earlier completions are removed, the queues are empty, and the QP
 * can start again.
 */
static void qp_modify__to_reset_forgets(void **state)
{
	for (size_t t = 0; t < ARRAY_SIZE(transports); t++) {
		struct qp *qp = make_qp_in(transports[t], RTS),
			  *other = make_qp_in(transports[t], RTS);

		post_receive(other, 1);
		assert_int_equal(modify(other, ERR, STATE), 0);
		post_receive(qp, 2);
		assert_int_equal(modify(qp, ERR, STATE), 0);
		assert_int_equal(modify(qp, RESET, STATE), 0);
		assert_int_equal(qp_state(qp), RESET);
		expect_flushed(1, other);
		assert_null(cq_peek(&cq));

		for (int s = INIT; s <= RTS; s++)
			assert_int_equal(
				modify(qp, s, STATE | find_row(transports[t], s - 1, s)->required),
				0);
		for (u64 i = 0; i < 4; i++) {
			post_send(qp, i);
			post_receive(qp, i);
		}
		assert_int_equal(modify(qp, RESET, STATE), 0);
		assert_null(cq_peek(&cq));
		assert_non_null(sq_slot(&qp->sq, 3));
		assert_non_null(rq_slot(&qp->rq, 3));
		assert_int_equal(rq_posted(&qp->rq), 0);
		qp_destroy(engine, qp);
		qp_destroy(engine, other);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qp_transition__every_pair),
		cmocka_unit_test(qp_transition__states_that_are_none),
		WITH_ENGINE(qp_modify__every_pair_and_attribute),
		WITH_ENGINE(qp_modify__attributes_only),
		WITH_ENGINE(qp_modify__current_state_must_be_right),
		WITH_ENGINE(qp_modify__attributes_arrive),
		WITH_ENGINE(qp_modify__ranges),
		WITH_ENGINE(qp_modify__psns_are_cut_to_24_bits),
		WITH_ENGINE(qp_modify__to_error_flushes),
		WITH_ENGINE(qp_modify__to_reset_forgets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
