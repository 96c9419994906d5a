/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ibv_modify_qp(3): the conversion of its attributes. The transport has the table of transitions
 * and checks every attribute. This file handles the rest: resolution of addresses, the interface's
 * MTU, and features of verbs.h without support here.
 */
#include <stdio.h>

#include "../os/complain.h"
#include "objects.h"

_Static_assert((int)IBV_QP_STATE == QP_ATTR_STATE && (int)IBV_QP_AV == QP_ATTR_AV &&
		       (int)IBV_QP_DEST_QPN == QP_ATTR_DEST_QPN &&
		       (int)IBV_QP_RATE_LIMIT == QP_ATTR_RATE_LIMIT,
	       "qp.h takes the mask's values from verbs.h");

/*
 * Programs pass a region's rights here: rights without meaning for a QP are ignored, as in
 * adapters.
 */
#define ACCESS_FLAGS_ALL ((1 << 10) - 1) /* up to IBV_ACCESS_FLUSH_PERSISTENT */

/* Returns the smallest link MTU that carries packets of a path MTU, 0 if none does. */
static u32 link_mtu_for(u32 path_mtu, bool multibuffer)
{
	for (u32 mtu = path_mtu; mtu < path_mtu + 256; mtu++)
		if (netdev_path_mtu(mtu, multibuffer) >= path_mtu)
			return mtu;
	return 0;
}

static int path_mtu_check(struct vcontext *ctx, struct port *port, enum ibv_mtu mtu, u32 *bytes)
{
	struct netdev nd;
	u32 largest, link_mtu;
	int err;

	if ((int)mtu < IBV_MTU_256 || mtu > IBV_MTU_4096)
		return EINVAL;
	*bytes = 128u << mtu;
	err = context_netdev(&ctx->v.context, &nd);
	if (err)
		return err;
	largest = device_path_mtu(ctx, &nd);
	if (*bytes <= largest)
		return 0;
	link_mtu = link_mtu_for(*bytes, port_info(port)->multibuffer);
	if (link_mtu)
		complain("path MTU %u is too large for %s, whose MTU is %u; run `ip link "
			 "set %s mtu %u`, or use a path MTU of %u",
			 *bytes, nd.name, nd.mtu, nd.name, link_mtu, largest);
	else
		complain("path MTU %u needs AF_XDP multi-buffer (Linux 6.6); use a path "
			 "MTU of %u on %s",
			 *bytes, largest, nd.name);
	return EINVAL;
}

/*
 * An XRC QP is one half of a connection. Programs give both halves the attributes of an RC QP. The
 * kernel, as part of its interface, ignores the attributes of the other half.
 */
static int mask_reduce(enum ibv_qp_type type, int mask)
{
	switch (type) {
	case IBV_QPT_XRC_SEND:
		return mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	case IBV_QPT_XRC_RECV:
		return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
	default:
		return mask;
	}
}

/* Rejects attributes that are invalid in any state. Returns 0 or a positive errno. */
static int attr_check(const struct ibv_qp_attr *attr, int mask)
{
	const int known = (IBV_QP_DEST_QPN << 1) - 1;

	if (mask & ~(known | IBV_QP_RATE_LIMIT))
		return EINVAL;
	/* Path migration and resizing, which ibv_query_device() does not announce. */
	if (mask & (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_CAP))
		return EOPNOTSUPP;
	if (mask & IBV_QP_STATE &&
	    ((int)attr->qp_state < IBV_QPS_RESET || attr->qp_state > IBV_QPS_ERR))
		return EINVAL;
	if (mask & IBV_QP_CUR_STATE &&
	    ((int)attr->cur_qp_state < IBV_QPS_RESET || attr->cur_qp_state > IBV_QPS_ERR))
		return EINVAL;
	if (mask & IBV_QP_PORT && attr->port_num != VERBS_PORT)
		return EINVAL;
	if (mask & IBV_QP_ACCESS_FLAGS &&
	    attr->qp_access_flags & ~(unsigned int)(ACCESS_FLAGS_ALL | IBV_ACCESS_OPTIONAL_RANGE))
		return EINVAL;
	return 0;
}

/* Checks the transition before an address is resolved, which may take seconds. */
static int transition_check(const struct qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	enum qp_state from = qp_state(qp);
	enum qp_state to = mask & IBV_QP_STATE ? (enum qp_state)attr->qp_state : from;
	u32 required, optional;

	if (!qp_transition(qp->transport, qp->xrc_target, from, to, &required, &optional) ||
	    ((u32)mask & required) != required)
		return EINVAL;
	return 0;
}

static void attr_convert(const struct ibv_qp_attr *in, struct qp_attr *out)
{
	*out = (struct qp_attr){
		.state = (enum qp_state)in->qp_state,
		.cur_state = (enum qp_state)in->cur_qp_state,
		.access = in->qp_access_flags,
		.pkey_index = in->pkey_index,
		.port = in->port_num,
		.qkey = in->qkey,
		.timeout = in->timeout,
		.retry_cnt = in->retry_cnt,
		.rnr_retry = in->rnr_retry,
		.rq_psn = in->rq_psn,
		.sq_psn = in->sq_psn,
		.max_rd_atomic = in->max_rd_atomic,
		.max_dest_rd_atomic = in->max_dest_rd_atomic,
		.min_rnr_timer = in->min_rnr_timer,
		.dest_qpn = in->dest_qp_num,
		.sqd_async_notify = in->en_sqd_async_notify,
		.rate_limit = { .kbps = in->rate_limit },
	};
}

/* Sets the attributes for ibv_query_qp() by any handle of the QP. Caller holds the port's lock. */
static void set_ah_attr(struct vqp *vqp, const struct ibv_ah_attr *attr)
{
	struct vqp *handle = vqp;

	do {
		handle->ah_attr = *attr;
		handle = handle->sibling;
	} while (handle != vqp);
}

/*
 * Returns 0 or a positive errno: ENOENT, the handle was changed or destroyed; EIO, the device is
 * gone or its context closed; EINVAL, a mask, transition or value that ibv_modify_qp(3) excludes;
 * EOPNOTSUPP, attributes that ibv_query_device() does not announce; EHOSTUNREACH, ENETUNREACH and
 * others of ah_resolve(); ENOMEM, no memory for outstanding READs. XROCE_FAULT can add more.
 */
static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct vqp *vqp = to_vqp(qp);
	struct vcontext *ctx = to_vcontext(qp->context);
	struct vcq *send_cq = to_vcq_or_null(qp->send_cq), *recv_cq = vqp_recv_cq(vqp);
	struct qp_attr a;
	bool leaves, reset;
	int err = !object_is_known(vqp)	      ? ENOENT
		  : context_gone(qp->context) ? EIO
					      : attr_check(attr, mask);

	mask = mask_reduce(qp->qp_type, mask);
	/* an attribute of this type, and more than the device can do */
	if (!err && qp->qp_type == IBV_QPT_RAW_PACKET && mask & IBV_QP_RATE_LIMIT)
		err = EOPNOTSUPP;
	if (!err)
		err = transition_check(vqp->qp, attr, mask);
	if (err)
		return err;
	/* without flags the attributes may be missing, as with rdma-core */
	attr_convert(mask ? attr : &(struct ibv_qp_attr){ 0 }, &a);
	if (mask & IBV_QP_PATH_MTU) {
		err = path_mtu_check(ctx, vqp->port, attr->path_mtu, &a.path_mtu);
		if (err)
			return err;
	}
	if (mask & IBV_QP_AV) {
		u32 dest_qpn = mask & IBV_QP_DEST_QPN ? attr->dest_qp_num : vqp->qp->dest_qpn;

		err = ah_resolve(ctx, &attr->ah_attr, RESOLVE_TIMEOUT_MS, &a.path);
		if (err)
			return err;
		a.path.udp_sport = path_udp_sport(a.path.flow_label, qp->qp_num, dest_qpn);
	}

	reset = mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET;
	leaves = reset || (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_ERR);
	if (leaves)
		port_wait_arrived(vqp->port, vqp->qp);
	/* RESET removes completions: both consumers' sides must be held. */
	if (reset)
		cq_lock_two(send_cq, recv_cq);
	port_lock(vqp->port);
	if (leaves)
		shards_catch_up(port_shards(vqp->port));
	err = -qp_modify(port_engine(vqp->port), vqp->qp, &a, (u32)mask, clock_now_ns());
	if (!err) {
		if (mask & IBV_QP_AV)
			set_ah_attr(vqp, &attr->ah_attr);
		if (mask & IBV_QP_QKEY)
			atomic_store_explicit(&vqp->qkey, attr->qkey, memory_order_relaxed);
		qp->state = (enum ibv_qp_state)qp_state(vqp->qp);
		shards_steer(port_shards(vqp->port), vqp->qp);
		shards_run_locked(port_shards(vqp->port));
	}
	port_unlock(vqp->port);
	if (reset)
		cq_unlock_two(send_cq, recv_cq);
	return err;
}

void qp_reset_locked(struct vqp *vqp)
{
	const struct qp_attr reset = { .state = QPS_RESET };

	if (qp_modify(port_engine(vqp->port), vqp->qp, &reset, QP_ATTR_STATE, clock_now_ns()))
		return;
	vqp->ibv.state = IBV_QPS_RESET;
	shards_steer(port_shards(vqp->port), vqp->qp);
	shards_run_locked(port_shards(vqp->port));
}

void qp_reset(struct vqp *vqp)
{
	struct vcq *send_cq = to_vcq_or_null(vqp->ibv.send_cq), *recv_cq = vqp_recv_cq(vqp);

	port_wait_arrived(vqp->port, vqp->qp);
	cq_lock_two(send_cq, recv_cq);
	port_lock(vqp->port);
	shards_catch_up(port_shards(vqp->port));
	qp_reset_locked(vqp);
	port_unlock(vqp->port);
	cq_unlock_two(send_cq, recv_cq);
}

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	if (verb_fails(qp->context, CALL_ibv_modify_qp))
		return verb_report(errno);
	return verb_report(modify_qp(qp, attr, mask));
}

/* Like ibv_modify_qp() in RTS, which can set the rate alone. */
static int modify_qp_rate_limit(struct ibv_qp *qp, const struct ibv_qp_rate_limit_attr *attr)
{
	struct vqp *vqp = to_vqp(qp);
	const struct qp_attr a = { .rate_limit = { .kbps = attr->rate_limit,
						   .burst_bytes = attr->max_burst_sz,
						   .typical_bytes = attr->typical_pkt_sz } };
	int err;

	if (!object_is_known(vqp))
		return ENOENT;
	if (context_gone(qp->context))
		return EIO;
	port_lock(vqp->port);
	err = -qp_modify(port_engine(vqp->port), vqp->qp, &a, QP_ATTR_RATE_LIMIT, clock_now_ns());
	if (!err)
		shards_run_locked(port_shards(vqp->port));
	port_unlock(vqp->port);
	return err;
}

int modify_qp_rate_limit_op(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr)
{
	if (verb_fails(qp->context, CALL_ibv_modify_qp_rate_limit))
		return verb_report(errno);
	return verb_report(attr->comp_mask ? EINVAL : modify_qp_rate_limit(qp, attr));
}

/* Enhanced connection establishment works between adapters of one vendor: nothing to negotiate. */
EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return verb_report(EOPNOTSUPP);
}

EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (ece)
		memset(ece, 0, sizeof(*ece));
	return verb_report(EOPNOTSUPP);
}
