/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * ibv_modify_qp(3): "modifies the attributes of QP qp with the attributes in attr according to the
 * mask attr_mask": every pair of states, every attribute of every transition left out or added,
 * the ranges of the values. "If any of the modify attributes or the modify mask are invalid, none
 * of the attributes will be modified (including the QP state)."
 */
#include <stddef.h>

#include "man.h"

#define PKEY	IBV_QP_PKEY_INDEX
#define PORT	IBV_QP_PORT
#define ACCESS	IBV_QP_ACCESS_FLAGS
#define QKEY	IBV_QP_QKEY
#define AV	IBV_QP_AV
#define MTU	IBV_QP_PATH_MTU
#define DEST	IBV_QP_DEST_QPN
#define RQ_PSN	IBV_QP_RQ_PSN
#define DEST_RD IBV_QP_MAX_DEST_RD_ATOMIC
#define RNR	IBV_QP_MIN_RNR_TIMER
#define SQ_PSN	IBV_QP_SQ_PSN
#define RD	IBV_QP_MAX_QP_RD_ATOMIC
#define RETRY	IBV_QP_RETRY_CNT
#define RNR_TRY IBV_QP_RNR_RETRY
#define TIMEOUT IBV_QP_TIMEOUT
#define CUR	IBV_QP_CUR_STATE
#define NOTIFY	IBV_QP_EN_SQD_ASYNC_NOTIFY
#define RATE	IBV_QP_RATE_LIMIT

#define TO_RTR_RC (AV | MTU | DEST | RQ_PSN | DEST_RD | RNR)
#define TO_RTS_RC (SQ_PSN | RD | RETRY | RNR_TRY | TIMEOUT)
#define SQD_RC	  (PORT | AV | TIMEOUT | RETRY | RNR_TRY | RD | DEST_RD | ACCESS | PKEY | RNR)
#define ALL_READ  ((IBV_QP_DEST_QPN << 1) - 1)
#define NUM_STATES (IBV_QPS_ERR + 1)

/*
 * Required: the page's tables. Optional: the InfiniBand specification's, without alternate paths,
 * which the device does not offer; and the rate, as the kernel has it for raw packets. RESET and
 * ERR are entered from every state and take nothing.
 */
static const struct transition {
	enum ibv_qp_type type;
	enum ibv_qp_state from, to;
	int required, optional;
} transitions[] = {
	{ IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | ACCESS, 0 },
	{ IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | ACCESS },
	{ IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, TO_RTR_RC, PKEY | ACCESS },
	{ IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, TO_RTS_RC, CUR | ACCESS | RNR | RATE },
	{ IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | ACCESS | RNR | RATE },
	{ IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_SQD, 0, NOTIFY },
	{ IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | ACCESS | RNR },
	{ IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_SQD, 0, SQD_RC },

	{ IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | ACCESS, 0 },
	{ IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | ACCESS },
	{ IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR, AV | MTU | DEST | RQ_PSN, PKEY | ACCESS },
	{ IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, SQ_PSN, CUR | ACCESS | RATE },
	{ IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | ACCESS | RATE },
	{ IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_SQD, 0, NOTIFY },
	{ IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | ACCESS },
	{ IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_SQD, 0, AV | ACCESS | PKEY },
	{ IBV_QPT_UC, IBV_QPS_SQE, IBV_QPS_RTS, 0, CUR | ACCESS },

	{ IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | QKEY, 0 },
	{ IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | QKEY },
	{ IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, PKEY | QKEY },
	{ IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, SQ_PSN, CUR | QKEY | RATE },
	{ IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | QKEY | RATE },
	{ IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_SQD, 0, NOTIFY },
	{ IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | QKEY },
	{ IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_SQD, 0, PKEY | QKEY },
	{ IBV_QPT_UD, IBV_QPS_SQE, IBV_QPS_RTS, 0, CUR | QKEY },
};
#define NUM_TRANSITIONS (sizeof(transitions) / sizeof(transitions[0]))

static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };
#define NUM_TYPES (sizeof(types) / sizeof(types[0]))

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_ah *ah;

static bool world_open(void)
{
	struct ibv_ah_attr own = own_address();

	MUST((pd = ibv_alloc_pd(ctx)) && (cq = ibv_create_cq(ctx, QUEUE, NULL, NULL, 0)));
	MUST(ah = ibv_create_ah(pd, &own));
	return true;
}

static bool world_close(void)
{
	MUST_EQ(ibv_destroy_ah(ah), 0);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

/* A case that is its body between these two. */
#define IN_WORLD(name, body)                          \
	static bool name(void)                        \
	{                                             \
		bool good = world_open() && (body)(); \
						      \
		return world_close() && good;         \
	}

static const struct transition *transition_find(enum ibv_qp_type type, int from, int to)
{
	for (size_t i = 0; i < NUM_TRANSITIONS; i++)
		if (transitions[i].type == type && (int)transitions[i].from == from &&
		    (int)transitions[i].to == to)
			return &transitions[i];
	return NULL;
}

/* Values that are all in range. */
static struct ibv_qp_attr good_attr(const struct ibv_qp *qp, int from, int to)
{
	return (struct ibv_qp_attr){
		.qp_state = (enum ibv_qp_state)to,
		.cur_qp_state = (enum ibv_qp_state)from,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp->qp_num,
		.rq_psn = 1,
		.sq_psn = 1,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 12,
		.port_num = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.qkey = UD_QKEY,
		.ah_attr = own_address(),
	};
}

static bool advance(struct ibv_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to)
{
	const struct transition *t = transition_find(qp->qp_type, from, to);
	struct ibv_qp_attr a = good_attr(qp, from, to);

	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | (t ? t->required : 0)), 0);
	return true;
}

/* A send that fails locally: the QP is in SQE when its completion is there. */
static bool fail_send(struct ibv_qp *qp)
{
	struct ibv_sge sge = { .addr = 4096, .length = 8, .lkey = 0 };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_wc wc;

	if (qp->qp_type == IBV_QPT_UD) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = qp->qp_num;
		wr.wr.ud.remote_qkey = UD_QKEY;
	}
	MUST_EQ(ibv_post_send(qp, &wr, &bad), 0);
	MUST(wait_wc(cq, &wc));
	MUST_EQ(wc.status, IBV_WC_LOC_PROT_ERR);
	return true;
}

static struct ibv_qp *qp_new(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = type,
					 .cap = { 4, 4, 1, 1, 0 } };

	return ibv_create_qp(pd, &init);
}

static bool qp_bring(struct ibv_qp *qp, int state)
{
	static const enum ibv_qp_state way[] = { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
						 IBV_QPS_RTS };

	if (state == IBV_QPS_ERR)
		MUST(advance(qp, IBV_QPS_RESET, IBV_QPS_ERR));
	for (int i = 1; state != IBV_QPS_ERR && i < 4 && (int)way[i] <= state; i++)
		MUST(advance(qp, way[i - 1], way[i]));
	if (state == IBV_QPS_SQD)
		MUST(advance(qp, IBV_QPS_RTS, IBV_QPS_SQD));
	if (state == IBV_QPS_SQE)
		MUST(fail_send(qp));
	MUST_EQ(qp_state_now(qp), state);
	return true;
}

static struct ibv_qp *qp_in(enum ibv_qp_type type, int state)
{
	struct ibv_qp *qp = qp_new(type);

	return qp && qp_bring(qp, state) ? qp : NULL;
}

/* Both ways to ask for the state agree, and it is this one. */
static bool qp_is_in(struct ibv_qp *qp, int state)
{
	MUST_EQ(qp_state_now(qp), state);
	MUST_EQ(qp->state, state);
	return true;
}

/* ---- each attribute of each transition ---- */

static bool attribute_body(const struct transition *t, int bit)
{
	struct ibv_qp *qp = qp_in(t->type, t->from);
	const int mask = IBV_QP_STATE | (t->required ^ bit);
	const bool must_hold = !bit || (t->optional & bit);
	struct ibv_qp_attr a;
	int err;

	MUST(qp);
	a = good_attr(qp, t->from, t->to);
	err = ibv_modify_qp(qp, &a, mask);
	if (must_hold ? err != 0 : err != EINVAL && err != EOPNOTSUPP) {
		printf("# type %d, %d to %d, attribute %#x %s: %d\n", t->type, t->from, t->to, bit,
		       t->required & bit ? "left out" : "added", err);
		return false;
	}
	MUST(qp_is_in(qp, err ? t->from : t->to));
	MUST_EQ(ibv_destroy_qp(qp), 0);
	return true;
}

static bool attributes_body(void)
{
	for (size_t i = 0; i < NUM_TRANSITIONS; i++) {
		MUST(attribute_body(&transitions[i], 0));
		for (int bit = IBV_QP_CUR_STATE; bit <= 1 << 30 && bit > 0; bit <<= 1)
			MUST(attribute_body(&transitions[i], bit));
	}
	return true;
}

IN_WORLD(each_attribute_left_out_or_added, attributes_body)

/* ---- each pair of states ---- */

static bool pair_body(enum ibv_qp_type type, int from, int to)
{
	const struct transition *t = transition_find(type, from, to);
	const bool exists = t || to == IBV_QPS_RESET || to == IBV_QPS_ERR;
	struct ibv_qp *qp = qp_in(type, from);
	struct ibv_qp_attr a;
	int err;

	MUST(qp);
	a = good_attr(qp, from, to);
	err = ibv_modify_qp(qp, &a, IBV_QP_STATE | (t ? t->required : 0));
	if (err != (exists ? 0 : EINVAL)) {
		printf("# type %d, %d to %d: %d\n", type, from, to, err);
		return false;
	}
	MUST(qp_is_in(qp, exists ? to : from));
	/* without its required attributes */
	if (t && t->required) {
		MUST_EQ(qp_to_state(qp, IBV_QPS_RESET), 0);
		MUST(qp_bring(qp, from));
		MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE), EINVAL);
		MUST(qp_is_in(qp, from));
	}
	MUST_EQ(qp_to_state(qp, (enum ibv_qp_state)NUM_STATES), EINVAL);
	MUST_EQ(qp_to_state(qp, (enum ibv_qp_state)-1), EINVAL);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	return true;
}

static bool pairs_body(void)
{
	for (size_t i = 0; i < NUM_TYPES; i++)
		for (int from = IBV_QPS_RESET; from < NUM_STATES; from++)
			for (int to = IBV_QPS_RESET; to < NUM_STATES; to++) {
				if (from == IBV_QPS_SQE && types[i] == IBV_QPT_RC)
					continue; /* RC does not get there */
				MUST(pair_body(types[i], from, to));
			}
	return true;
}

IN_WORLD(each_pair_of_states, pairs_body)

/* ---- values ---- */

enum { TO_INIT, TO_RTR, TO_RTS };

/* One attribute of a transition of RC, which is good but for it. */
#define TRY(step, extra, set, want)                                                             \
	do {                                                                                    \
		static const int masks_[] = { PKEY | PORT | ACCESS, TO_RTR_RC, TO_RTS_RC };     \
		const int from_ = IBV_QPS_RESET + (step);                                       \
		struct ibv_qp *qp_ = qp_in(IBV_QPT_RC, from_);                                  \
		struct ibv_qp_attr a;                                                           \
												\
		MUST(qp_);                                                                      \
		a = good_attr(qp_, from_, from_ + 1);                                           \
		set;                                                                            \
		errno = ibv_modify_qp(qp_, &a, IBV_QP_STATE | masks_[step] | (extra));          \
		if (errno != (want))                                                            \
			printf("# %s\n", #set);                                                 \
		MUST_EQ(errno, want);                                                           \
		MUST(qp_is_in(qp_, (want) ? from_ : from_ + 1));                                \
		MUST_EQ(ibv_destroy_qp(qp_), 0);                                                \
	} while (0)

static bool ranges_body(void)
{
	struct ibv_device_attr dev;

	MUST_EQ(ibv_query_device(ctx, &dev), 0);
	TRY(TO_INIT, 0, a.port_num = 0, EINVAL);
	TRY(TO_INIT, 0, a.port_num = 2, EINVAL);
	TRY(TO_INIT, 0, a.pkey_index = 1, EINVAL);
	TRY(TO_INIT, 0, a.pkey_index = 0xffff, EINVAL);
	TRY(TO_RTR, 0, a.path_mtu = 0, EINVAL);
	TRY(TO_RTR, 0, a.path_mtu = IBV_MTU_4096 + 1, EINVAL);
	TRY(TO_RTR, 0, a.path_mtu = IBV_MTU_256, 0);
	TRY(TO_RTR, 0, a.max_dest_rd_atomic = (uint8_t)(dev.max_qp_rd_atom + 1), EINVAL);
	TRY(TO_RTR, 0, a.max_dest_rd_atomic = (uint8_t)dev.max_qp_rd_atom, 0);
	TRY(TO_RTR, 0, a.max_dest_rd_atomic = 0, 0);
	TRY(TO_RTR, 0, a.ah_attr.is_global = 0, EINVAL);
	TRY(TO_RTR, 0, a.ah_attr.port_num = 2, EINVAL);
	TRY(TO_RTR, 0, a.ah_attr.grh.sgid_index = 200, EINVAL);
	TRY(TO_RTR, 0, a.min_rnr_timer = 32, EINVAL);
	TRY(TO_RTR, 0, a.min_rnr_timer = 31, 0);
	TRY(TO_RTR, 0, a.dest_qp_num = 1 << 24, EINVAL);
	TRY(TO_RTS, 0, a.max_rd_atomic = (uint8_t)(dev.max_qp_init_rd_atom + 1), EINVAL);
	TRY(TO_RTS, 0, a.max_rd_atomic = (uint8_t)dev.max_qp_init_rd_atom, 0);
	TRY(TO_RTS, 0, a.max_rd_atomic = 0, 0);
	TRY(TO_RTS, 0, a.retry_cnt = 8, EINVAL);
	TRY(TO_RTS, 0, a.retry_cnt = 0, 0);
	TRY(TO_RTS, 0, a.rnr_retry = 8, EINVAL);
	TRY(TO_RTS, 0, a.timeout = 32, EINVAL);
	TRY(TO_RTS, 0, a.timeout = 31, 0);
	TRY(TO_RTS, 0, a.timeout = 0, 0);
	/* "Assume this is the current QP state" */
	TRY(TO_RTS, CUR, a.cur_qp_state = IBV_QPS_RTR, 0);
	TRY(TO_RTS, CUR, a.cur_qp_state = IBV_QPS_RTS, EINVAL);
	TRY(TO_RTS, CUR, a.cur_qp_state = IBV_QPS_INIT, EINVAL);
	TRY(TO_RTS, CUR, a.cur_qp_state = (enum ibv_qp_state)-1, EINVAL);
	return true;
}

IN_WORLD(values_in_and_out_of_range, ranges_body)

/* ibv_query_qp(3) reads the values that were set. */
static bool query_body(void)
{
	struct ibv_qp *qp = qp_in(IBV_QPT_RC, IBV_QPS_INIT);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a, got;

	MUST(qp);
	a = good_attr(qp, IBV_QPS_INIT, IBV_QPS_RTR);
	a.dest_qp_num = 0xabcdef;
	a.rq_psn = 0xffffff;
	a.max_dest_rd_atomic = 3;
	a.ah_attr.grh.traffic_class = 0x20;
	a.ah_attr.grh.hop_limit = 33;
	a.ah_attr.grh.flow_label = 0x12345;
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | TO_RTR_RC), 0);
	a.qp_state = IBV_QPS_RTS;
	a.sq_psn = 0x800000;
	a.timeout = 9;
	a.retry_cnt = 3;
	a.rnr_retry = 5;
	a.max_rd_atomic = 2;
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | TO_RTS_RC), 0);
	MUST_EQ(ibv_query_qp(qp, &got, ALL_READ, &init), 0);
	MUST_EQ(got.qp_state, IBV_QPS_RTS);
	MUST_EQ(got.cur_qp_state, IBV_QPS_RTS);
	MUST_EQ(got.path_mtu, IBV_MTU_1024);
	MUST_EQ(got.dest_qp_num, 0xabcdef);
	MUST_EQ(got.rq_psn, 0xffffff);
	MUST_EQ(got.sq_psn, 0x800000);
	MUST_EQ(got.max_dest_rd_atomic, 3);
	MUST_EQ(got.max_rd_atomic, 2);
	MUST_EQ(got.min_rnr_timer, 12);
	MUST_EQ(got.timeout, 9);
	MUST_EQ(got.retry_cnt, 3);
	MUST_EQ(got.rnr_retry, 5);
	MUST_EQ(got.port_num, 1);
	MUST_EQ(got.ah_attr.is_global, 1);
	MUST_EQ(got.ah_attr.grh.traffic_class, 0x20);
	MUST_EQ(got.ah_attr.grh.hop_limit, 33);
	MUST_EQ(got.ah_attr.grh.flow_label, 0x12345);
	MUST(!memcmp(&got.ah_attr.grh.dgid, &a.ah_attr.grh.dgid, sizeof(union ibv_gid)));
	MUST(init.send_cq == cq && init.recv_cq == cq && !init.srq);
	MUST_EQ(init.qp_type, IBV_QPT_RC);
	MUST_EQ(init.sq_sig_all, 0);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	return true;
}

IN_WORLD(queried_as_set, query_body)

/* ---- "none of the attributes will be modified" ---- */

/* A modify of all that SQD to SQD takes, of which one is bad: before and after are the same. */
static bool refused_body(void)
{
	static const struct {
		int mask;
		size_t offset;
		uint8_t bad;
	} spoiled[] = {
		{ RNR, offsetof(struct ibv_qp_attr, min_rnr_timer), 32 },
		{ TIMEOUT, offsetof(struct ibv_qp_attr, timeout), 32 },
		{ RETRY, offsetof(struct ibv_qp_attr, retry_cnt), 8 },
		{ RNR_TRY, offsetof(struct ibv_qp_attr, rnr_retry), 8 },
		{ RD, offsetof(struct ibv_qp_attr, max_rd_atomic), 255 },
		{ DEST_RD, offsetof(struct ibv_qp_attr, max_dest_rd_atomic), 255 },
		{ PORT, offsetof(struct ibv_qp_attr, port_num), 2 },
		{ PKEY, offsetof(struct ibv_qp_attr, pkey_index), 1 },
		{ AV, offsetof(struct ibv_qp_attr, ah_attr.grh.sgid_index), 200 },
		{ MTU, offsetof(struct ibv_qp_attr, path_mtu), IBV_MTU_2048 }, /* not here */
	};
	struct ibv_qp *qp = qp_in(IBV_QPT_RC, IBV_QPS_SQD);
	struct ibv_qp_attr before, after, good, a;
	struct ibv_qp_init_attr init;

	MUST(qp);
	good = good_attr(qp, IBV_QPS_SQD, IBV_QPS_RTS);
	good.qp_access_flags = IBV_ACCESS_REMOTE_READ;
	good.min_rnr_timer = 3;
	good.timeout = 5;
	good.retry_cnt = 2;
	good.rnr_retry = 1;
	good.max_rd_atomic = 2;
	good.max_dest_rd_atomic = 3;
	good.ah_attr.grh.hop_limit = 9;
	memset(&before, 0, sizeof(before));
	memset(&after, 0, sizeof(after));
	MUST_EQ(ibv_query_qp(qp, &before, ALL_READ, &init), 0);
	for (size_t i = 0; i < sizeof(spoiled) / sizeof(spoiled[0]); i++) {
		a = good;
		memcpy((char *)&a + spoiled[i].offset, &spoiled[i].bad, 1);
		MUST_EQ(ibv_modify_qp(qp, &a, SQD_RC | spoiled[i].mask), EINVAL);
		MUST_EQ(ibv_query_qp(qp, &after, ALL_READ, &init), 0);
		MUST_EQ(memcmp(&before, &after, sizeof(before)), 0);
	}
	/* a mask that asks for another state, too */
	a = good;
	a.timeout = 32;
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | ACCESS | RNR | TIMEOUT), EINVAL);
	MUST(qp_is_in(qp, IBV_QPS_SQD));
	MUST_EQ(ibv_query_qp(qp, &after, ALL_READ, &init), 0);
	MUST_EQ(memcmp(&before, &after, sizeof(before)), 0);
	/* and with nothing bad in it, it all changes */
	MUST_EQ(ibv_modify_qp(qp, &good, SQD_RC), 0);
	MUST_EQ(ibv_query_qp(qp, &after, ALL_READ, &init), 0);
	MUST_EQ(after.qp_access_flags, IBV_ACCESS_REMOTE_READ);
	MUST(after.min_rnr_timer == 3 && after.timeout == 5 && after.retry_cnt == 2 &&
	     after.rnr_retry == 1 && after.max_rd_atomic == 2 && after.max_dest_rd_atomic == 3 &&
	     after.ah_attr.grh.hop_limit == 9);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	return true;
}

IN_WORLD(a_refused_modify_changes_nothing, refused_body)

const struct test_case man_cases[] = {
	CASE(each_attribute_left_out_or_added),
	CASE(each_pair_of_states),
	CASE(values_in_and_out_of_range),
	CASE(queried_as_set),
	CASE(a_refused_modify_changes_nothing),
	{ 0 },
};
