/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ibv_modify_qp(3): the transitions, the attributes that each needs and allows, their ranges, and
 * the effect of a transition. All is checked before anything is changed.
 */
#include "congestion.h"
#include "credit.h"
#include "internal.h"
#include "requester.h"
#include "responder.h"
#include "stat.h"
#include "tag.h"

/* Short names of the attributes, so that the table can be compared with the manual page. */
enum {
	CUR = QP_ATTR_CUR_STATE,
	NOTIFY = QP_ATTR_EN_SQD_ASYNC_NOTIFY,
	ACCESS = QP_ATTR_ACCESS_FLAGS,
	PKEY = QP_ATTR_PKEY_INDEX,
	PORT = QP_ATTR_PORT,
	QKEY = QP_ATTR_QKEY,
	AV = QP_ATTR_AV,
	MTU = QP_ATTR_PATH_MTU,
	TIMEOUT = QP_ATTR_TIMEOUT,
	RETRY = QP_ATTR_RETRY_CNT,
	RNR_RETRY = QP_ATTR_RNR_RETRY,
	RQ_PSN = QP_ATTR_RQ_PSN,
	RD = QP_ATTR_MAX_QP_RD_ATOMIC,
	RNR = QP_ATTR_MIN_RNR_TIMER,
	SQ_PSN = QP_ATTR_SQ_PSN,
	DEST_RD = QP_ATTR_MAX_DEST_RD_ATOMIC,
	DEST = QP_ATTR_DEST_QPN,
	RATE = QP_ATTR_RATE_LIMIT,
};

enum service { RC, UC, UD, XRC_SEND, XRC_RECV, RAW, NUM_SERVICES };

struct transition {
	bool valid;
	struct {
		u32 required, optional;
	} mask[NUM_SERVICES];
};

#define SAME(req, opt)                                                                             \
	{                                                                                          \
		[RC] = { req, opt }, [UC] = { req, opt }, [UD] = { req, opt },                     \
		[XRC_SEND] = { req, opt }, [XRC_RECV] = { req, opt }, [RAW] = {                    \
			req,                                                                       \
			opt                                                                        \
		}                                                                                  \
	}
#define TO_RESET_AND_ERR  [QPS_RESET] = { true, SAME(0, 0) }, [QPS_ERR] = { true, SAME(0, 0) }
#define RTS_OPTIONAL \
	{ [RC] = { 0, CUR | ACCESS | RNR }, [UC] = { 0, CUR | ACCESS }, [UD] = { 0, CUR | QKEY }, \
	  [XRC_SEND] = { 0, CUR | ACCESS }, [XRC_RECV] = { 0, CUR | ACCESS | RNR }, \
	  [RAW] = { 0, CUR } }
/* As in the kernel, for the QPs whose rate it can limit. */
#define RTS_AGAIN_OPTIONAL \
	{ [RC] = { 0, CUR | ACCESS | RNR | RATE }, [UC] = { 0, CUR | ACCESS | RATE }, \
	  [UD] = { 0, CUR | QKEY | RATE }, [XRC_SEND] = { 0, CUR | ACCESS | RATE }, \
	  [XRC_RECV] = { 0, CUR | ACCESS | RNR }, [RAW] = { 0, CUR } }

/*
 * Source: ibv_modify_qp(3) and IBTA 10.3.1. Alternate paths (APM) are not supported: no mask has
 * their attributes. Unlisted entries are { 0, 0 }: raw packets need few attributes.
 */
static const struct transition table[QPS_ERR + 1][QPS_ERR + 1] = {
	[QPS_RESET] = {
		TO_RESET_AND_ERR,
		[QPS_INIT] = { true, {
			[RC] = { PKEY | PORT | ACCESS, 0 },
			[UC] = { PKEY | PORT | ACCESS, 0 },
			[UD] = { PKEY | PORT | QKEY, 0 },
			[XRC_SEND] = { PKEY | PORT | ACCESS, 0 },
			[XRC_RECV] = { PKEY | PORT | ACCESS, 0 },
			[RAW] = { PORT, 0 },
		} },
	},
	[QPS_INIT] = {
		TO_RESET_AND_ERR,
		[QPS_INIT] = { true, {
			[RC] = { 0, PKEY | PORT | ACCESS },
			[UC] = { 0, PKEY | PORT | ACCESS },
			[UD] = { 0, PKEY | PORT | QKEY },
			[XRC_SEND] = { 0, PKEY | PORT | ACCESS },
			[XRC_RECV] = { 0, PKEY | PORT | ACCESS },
			[RAW] = { 0, PORT },
		} },
		[QPS_RTR] = { true, {
			[RC] = { AV | MTU | DEST | RQ_PSN | DEST_RD | RNR, ACCESS | PKEY },
			[UC] = { AV | MTU | DEST | RQ_PSN, ACCESS | PKEY },
			[UD] = { 0, PKEY | QKEY },
			[XRC_SEND] = { AV | MTU | DEST | RQ_PSN, ACCESS | PKEY },
			[XRC_RECV] = { AV | MTU | DEST | RQ_PSN | DEST_RD | RNR, ACCESS | PKEY },
		} },
	},
	[QPS_RTR] = {
		TO_RESET_AND_ERR,
		[QPS_RTS] = { true, {
			[RC] = { SQ_PSN | TIMEOUT | RETRY | RNR_RETRY | RD,
				 CUR | ACCESS | RNR | RATE },
			[UC] = { SQ_PSN, CUR | ACCESS | RATE },
			[UD] = { SQ_PSN, CUR | QKEY | RATE },
			[XRC_SEND] = { SQ_PSN | TIMEOUT | RETRY | RNR_RETRY | RD,
				       CUR | ACCESS | RATE },
			[XRC_RECV] = { SQ_PSN | TIMEOUT, CUR | ACCESS | RNR },
			[RAW] = { 0, CUR },
		} },
	},
	[QPS_RTS] = {
		TO_RESET_AND_ERR,
		[QPS_RTS] = { true, RTS_AGAIN_OPTIONAL },
		[QPS_SQD] = { true, SAME(0, NOTIFY) },
	},
	[QPS_SQD] = {
		TO_RESET_AND_ERR,
		[QPS_RTS] = { true, RTS_OPTIONAL },
		[QPS_SQD] = { true, {
			[RC] = { 0, PORT | AV | TIMEOUT | RETRY | RNR_RETRY | RD | DEST_RD |
					    ACCESS | PKEY | RNR },
			[UC] = { 0, AV | ACCESS | PKEY },
			[UD] = { 0, PKEY | QKEY },
			[XRC_SEND] = { 0, PORT | AV | TIMEOUT | RETRY | RNR_RETRY | RD | ACCESS |
						  PKEY },
			[XRC_RECV] = { 0, PORT | AV | TIMEOUT | DEST_RD | ACCESS | PKEY | RNR },
		} },
	},
	[QPS_SQE] = {
		TO_RESET_AND_ERR,
		[QPS_RTS] = { true, { [UC] = { 0, CUR | ACCESS }, [UD] = { 0, CUR | QKEY },
					  [RAW] = { 0, CUR } } },
	},
	[QPS_ERR] = { TO_RESET_AND_ERR },
};

bool qp_transition(enum xroce_transport t, bool xrc_target, enum qp_state from, enum qp_state to,
		   u32 *required, u32 *optional)
{
	enum service s = t == XROCE_RC ? RC :
			 t == XROCE_UC ? UC :
			 t == XROCE_UD ? UD :
			 t == XROCE_RAW ? RAW :
			 xrc_target    ? XRC_RECV :
					 XRC_SEND;

	if ((u32)from > QPS_ERR || (u32)to > QPS_ERR || !table[from][to].valid)
		return false;
	if (from == QPS_SQE && to == QPS_RTS && s != UC && s != UD && s != RAW)
		return false;
	*required = table[from][to].mask[s].required;
	*optional = table[from][to].mask[s].optional;
	return true;
}

static bool pmtu_valid(u32 pmtu)
{
	return pmtu >= 256 && pmtu <= ROCE_PMTU_MAX && !(pmtu & (pmtu - 1));
}

static bool rate_limit_valid(const struct rate_limit *l, u32 path_mtu)
{
	if (!l->kbps)
		return !l->burst_bytes && !l->typical_bytes;
	return l->kbps >= QP_RATE_MIN && l->kbps <= QP_RATE_MAX &&
	       (!l->burst_bytes || l->burst_bytes >= rate_typical_bytes(l, path_mtu));
}

static bool ranges_valid(const struct engine *e, const struct qp *qp, const struct qp_attr *a,
			 u32 mask)
{
	return !((mask & PKEY && a->pkey_index >= e->pkeys.num) || (mask & PORT && a->port != 1) ||
		 (mask & MTU && !pmtu_valid(a->path_mtu)) || (mask & TIMEOUT && a->timeout > 31) ||
		 (mask & RETRY && a->retry_cnt > 7) || (mask & RNR_RETRY && a->rnr_retry > 7) ||
		 (mask & RNR && a->min_rnr_timer > 31) ||
		 (mask & DEST && a->dest_qpn > ROCE_QPN_MASK) ||
		 (mask & RATE && !rate_limit_valid(&a->rate_limit, qp->path_mtu)) ||
		 (mask & RD && a->max_rd_atomic > QP_MAX_RD_ATOMIC) ||
		 (mask & DEST_RD && a->max_dest_rd_atomic > QP_MAX_RD_ATOMIC));
}

/* Copies the attributes in the mask to where the engine uses them. */
static void qp_apply_attributes(const struct engine *e, struct qp *qp, const struct qp_attr *a,
				u32 mask)
{
	struct qp_attr *cur = &qp->attr;

	if (mask & PKEY)
		cur->pkey_index = a->pkey_index, qp->pkey = e->pkeys.key[a->pkey_index];
	if (mask & PORT)
		cur->port = a->port;
	if (mask & ACCESS)
		cur->access = a->access & MR_REMOTE_ANY, qp->access = qp_granted(cur->access);
	if (mask & QKEY)
		cur->qkey = qp->qkey = a->qkey;
	if (mask & AV) {
		cur->path = qp->path = a->path;
		if (e->config.ecn) /* ECT(0) */
			qp->path.tos = (u8)((qp->path.tos & ~3) | 2);
	}
	if (mask & MTU)
		cur->path_mtu = qp->path_mtu = a->path_mtu;
	if (mask & DEST)
		cur->dest_qpn = qp->dest_qpn = a->dest_qpn;
	if (mask & RQ_PSN)
		cur->rq_psn = a->rq_psn & ROCE_PSN_MASK;
	if (mask & SQ_PSN)
		cur->sq_psn = a->sq_psn & ROCE_PSN_MASK;
	if (mask & TIMEOUT)
		cur->timeout = qp->req.timeout = a->timeout;
	if (mask & RETRY)
		cur->retry_cnt = qp->req.retry_cnt = qp->req.retries_left = a->retry_cnt;
	if (mask & RNR_RETRY)
		cur->rnr_retry = qp->req.rnr_retry = qp->req.rnr_retries_left = a->rnr_retry;
	if (mask & RD)
		cur->max_rd_atomic = a->max_rd_atomic, qp->req.max_rd_atomic = a->max_rd_atomic;
	if (mask & DEST_RD)
		cur->max_dest_rd_atomic = a->max_dest_rd_atomic,
		qp->resp.max_resources = a->max_dest_rd_atomic;
	if (mask & RNR)
		cur->min_rnr_timer = qp->resp.min_rnr_timer = a->min_rnr_timer;
	if (mask & NOTIFY)
		cur->sqd_async_notify = a->sqd_async_notify;
	if (mask & RATE)
		cur->rate_limit = a->rate_limit;
}

/* Resets to the state that qp_create() made, except QPN and queue sizes. */
static void qp_reset(struct engine *e, struct qp *qp)
{
	u32 prod = sq_prod(&qp->sq);

	engine_forget_qp(e, qp);
	qp_purge_completions(e, qp);
	rd_atomic_free(qp);
	qp_clear(qp);
	/* release: pairs with the acquire in sq_slot() */
	atomic_store_explicit(&qp->sq.cons, prod, memory_order_release);
	qp->req.tx = qp->req.assigned = prod;
	if (qp->shared)
		shared_sends_reset(qp);
	if (!qp->srq)
		rq_reset(&qp->rq);
	qp->attr = (struct qp_attr){ 0 };
}

/* Invalidates kept headers after their fields changed. */
static void qp_forget_headers(struct qp *qp)
{
	qp->req.header.key = qp->resp.header.key = 0;
	qp->req.response.frame_len = qp->resp.request.frame_len = 0;
}

/* mask: the attributes that were given */
static void qp_enter_state(struct engine *e, struct qp *qp, enum qp_state from, enum qp_state to,
			   u32 mask)
{
	if (to == QPS_ERR) {
		engine_qp_error(e, qp, 0);
		/* RESET has nothing to flush, but the state must change. Pairs with qp_state() */
		atomic_store_explicit(&qp->state, QPS_ERR, memory_order_seq_cst);
		qp->attr.state = QPS_ERR;
		return;
	}
	if (to == QPS_RESET)
		qp_reset(e, qp);
	if (from == QPS_INIT && to == QPS_RTR) {
		congestion_start(e, qp);
		credit_start(e, qp);
		responder_start(qp, qp->attr.rq_psn);
		memset(qp->icrc_peer, 0, sizeof(qp->icrc_peer));
	}
	if (from == QPS_RTR && to == QPS_RTS)
		requester_start(qp, qp->attr.sq_psn);
	/* pairs with the load in qp_state(): the state's fields are visible with it */
	atomic_store_explicit(&qp->state, to, memory_order_seq_cst);
	qp->attr.state = to;
	if (to == QPS_RTS)
		qp->resp.established = true;
	if (from == QPS_RTS && to == QPS_SQD)
		qp->req.drained_notify = mask & NOTIFY && qp->attr.sqd_async_notify;
	completer_check_drained(e, qp);
	engine_ready(e, qp, READY_REQUESTS | READY_REPLIES);
}

int qp_modify(struct engine *e, struct qp *qp, const struct qp_attr *attr, u32 mask, u64 now_ns)
{
	enum qp_state from = qp_state(qp);
	enum qp_state to = mask & QP_ATTR_STATE ? attr->state : from;
	u32 required, optional;
	int err;

	if (!qp_transition(qp->transport, qp->xrc_target, from, to, &required, &optional))
		return -EINVAL;
	if ((mask & required) != required || mask & ~(required | optional | QP_ATTR_STATE))
		return -EINVAL;
	/* it has no send queue */
	if (qp->rss && to == QPS_RTS)
		return -EINVAL;
	if (mask & CUR && attr->cur_state != from)
		return -EINVAL;
	if (!ranges_valid(e, qp, attr, mask))
		return -EINVAL;
	err = rd_atomic_reserve(qp, mask & RD ? attr->max_rd_atomic : 0,
				mask & DEST_RD ? attr->max_dest_rd_atomic : 0);
	if (err)
		return err;
	e = qp_engine(qp);
	qp_apply_attributes(e, qp, attr, mask);
	if (mask & RATE)
		rate_set_limit(e, qp, now_ns);
	qp_forget_headers(qp);
	if (mask & QP_ATTR_STATE)
		qp_enter_state(e, qp, from, to, mask);
	stat_describe(qp);
	stat_limits(e, qp);
	return 0;
}

void qp_query(const struct qp *qp, struct qp_attr *attr)
{
	*attr = qp->attr;
	attr->state = attr->cur_state = qp_state(qp);
	if (qp->transport != XROCE_UD)
		attr->rq_psn = qp->resp.seq.expected_psn;
	attr->sq_psn = qp->req.next_psn;
	attr->path_mtu = qp->path_mtu;
}
