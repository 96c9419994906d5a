/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For tests of raw packet QPs in the engine: an engine with such QPs and their receives, frames,
 * and flows, fresh for each case.
 */
#ifndef UNIT_RAW_BENCH_H
#define UNIT_RAW_BENCH_H

#include "bare_engine.h"

#define MTU  1500u
#define SLOT 2048u

static u8 memory[3][SLOT];
static struct mr *mr;
static const struct xroce_rx_cqe hint = { .qpn = 1 };
static const struct xroce_flow_key none;

static inline struct qp *make_raw(void)
{
	struct qp_init init = plain_init(XROCE_RAW);
	struct qp_attr attr = { .state = QPS_INIT, .port = 1 };
	struct qp *qp;

	init.ud_mtu = MTU;
	assert_int_equal(qp_create(engine, &init, &qp), 0);
	assert_int_equal(qp_modify(engine, qp, &attr, QP_ATTR_STATE, 0), -EINVAL);
	assert_int_equal(qp_modify(engine, qp, &attr, QP_ATTR_STATE | QP_ATTR_PORT, 0), 0);
	attr.state = QPS_RTR;
	assert_int_equal(qp_modify(engine, qp, &attr, QP_ATTR_STATE, 0), 0);
	attr.state = QPS_RTS;
	assert_int_equal(qp_modify(engine, qp, &attr, QP_ATTR_STATE, 0), 0);
	return qp;
}

static inline int setup(void **state)
{
	int err = make_engine(state);

	memset(memory, 0, sizeof(memory));
	memset(&drops, 0, sizeof(drops));
	return err ? err :
		     mr_add(engine_mr_table(engine), 1, memory, sizeof(memory),
			    (u64)(uintptr_t)memory, MR_LOCAL_WRITE, &mr);
}

static inline int teardown(void **state)
{
	while (raw_flows(engine))
		raw_detach(engine, (struct raw_flow *)raw_flows(engine));
	for (u32 i = 0; i < XROCE_MAX_QP; i++)
		if (engine->qp[i])
			qp_destroy(engine, engine->qp[i]);
	mr_remove(engine_mr_table(engine), mr);
	return drop_engine(state);
}

/* Takes the oldest completion away, if there is one. */
static inline bool poll_cq(struct cqe *to)
{
	const struct cqe *e = cq_peek(&cq);

	if (!e)
		return false;
	*to = *e;
	cq_pop(&cq);
	return true;
}

static inline void post_receive(struct qp *qp, u32 slot, u32 length)
{
	struct recv_wqe *wqe = rq_slot(&qp->rq, 0);

	assert_non_null(wqe);
	wqe->wr_id = slot;
	wqe->num_sge = 1;
	wqe->sge[0] = (struct sge){ (u64)(uintptr_t)memory[slot], length, mr_key(mr) };
	rq_publish(&qp->rq, 1);
}

static inline struct raw_flow *attach(struct qp *qp, const struct xroce_flow_key *value,
			       const struct xroce_flow_key *mask, u32 order)
{
	const struct raw_rule rule = { .value = *value, .mask = *mask, .order = order };
	struct raw_flow *flow = NULL; /* as gcc 14 requires */

	assert_int_equal(raw_attach(engine, qp, &rule, &flow), 0);
	return flow;
}

/* A datagram to port 5000, with tags of these types in front of the IP header. */
static inline u32 make_frame(u8 *frame, u32 tags)
{
	u8 *at = frame + 12;

	memset(frame, 0, 100);
	memset(frame, 2, 6);
	memset(frame + 6, 4, 6);
	for (u32 i = 0; i < tags; i++, at += 4) {
		at[0] = i + 1 < tags ? 0x88 : 0x81;
		at[1] = i + 1 < tags ? 0xa8 : 0;
		at[3] = (u8)(7 + i);
	}
	at[0] = 8;
	at += 2;
	at[0] = 0x45;
	at[3] = 60;
	at[8] = 64;
	at[9] = 17;
	at[12] = 10, at[15] = 1;
	at[16] = 10, at[19] = 2;
	at[20] = 0x0f, at[21] = 0xa0; /* 4000 */
	at[22] = 0x13, at[23] = 0x88; /* 5000 */
	return (u32)(at + 60 - frame);
}

static inline enum xroce_drop input_as(const u8 *frame, u32 len, const struct xroce_rx_cqe *as)
{
	u8 *copy = exact_copy(frame, len);
	const struct rx_frame f = { .data = copy, .len = len };
	enum xroce_drop drop = engine_input(engine, as, &f, 0);

	free(copy);
	return drop;
}

static inline enum xroce_drop input(const u8 *frame, u32 len)
{
	return input_as(frame, len, &hint);
}

static inline struct raw_flow *attach_rule(struct qp *qp, const struct raw_rule *rule)
{
	struct raw_flow *flow = NULL; /* as gcc 14 requires */

	assert_int_equal(raw_attach(engine, qp, rule, &flow), 0);
	return flow;
}

static inline void expect_cqe(const struct qp *qp, u32 slot, u32 len)
{
	struct cqe cqe = { 0 }; /* as gcc 14 requires */

	assert_true(poll_cq(&cqe));
	assert_int_equal(cqe.status, CQE_SUCCESS);
	assert_int_equal(cqe.opcode, CQE_RECV);
	assert_int_equal(cqe.qpn, qp->qpn);
	assert_int_equal(cqe.wr_id, slot);
	assert_int_equal(cqe.byte_len, len);
	assert_int_equal(cqe.flags, 0);
	assert_int_equal(cqe.src_qpn, 0);
}

static inline void expect_no_cqe(void)
{
	struct cqe cqe;

	assert_false(poll_cq(&cqe));
}

#endif
