/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs: creation, query, destruction. The first QP creates the port; each QP is published to
 * the steering map as soon as it exists. State transitions are in qp_modify.c.
 *
 * A struct vqp is a handle of a QP. Each QP has one handle, except XRC_RECV QPs, which
 * ibv_open_qp(3) opens again: their handles form a ring, and the last one destroyed takes the QP
 * with it.
 */
#include "../engine/requester.h"
#include "objects.h"

_Static_assert((int)IBV_QPS_ERR == QPS_ERR && (int)IBV_QPS_SQD == QPS_SQD,
	       "qp.h takes the states' values from verbs.h");

/* Returns 0 or a positive errno: EOPNOTSUPP for types of verbs.h that this library lacks. */
static int transport_of(enum ibv_qp_type type, enum xroce_transport *out)
{
	switch (type) {
	case IBV_QPT_RC:
		*out = XROCE_RC;
		return 0;
	case IBV_QPT_UC:
		*out = XROCE_UC;
		return 0;
	case IBV_QPT_UD:
		*out = XROCE_UD;
		return 0;
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		*out = XROCE_XRC;
		return 0;
	case IBV_QPT_RAW_PACKET:
		*out = XROCE_RAW;
		return 0;
	case IBV_QPT_DRIVER:
		return EOPNOTSUPP;
	}
	return EINVAL;
}

/*
 * Clears attributes that a QP of the type does not use. XRC_SEND receives nothing. XRC_RECV, or a
 * QP with a table of work queues, has no send or receive queue.
 */
static void init_reduce(struct ibv_qp_init_attr *attr, bool has_table)
{
	if (has_table) {
		attr->send_cq = attr->recv_cq = NULL;
		attr->cap = (struct ibv_qp_cap){ 0 };
	}
	if (attr->qp_type == IBV_QPT_XRC_SEND || attr->qp_type == IBV_QPT_XRC_RECV) {
		attr->recv_cq = NULL;
		attr->srq = NULL;
		attr->cap.max_recv_wr = attr->cap.max_recv_sge = 0;
	}
	if (attr->qp_type == IBV_QPT_XRC_RECV) {
		attr->send_cq = NULL;
		attr->cap.max_send_wr = attr->cap.max_send_sge = attr->cap.max_inline_data = 0;
	}
}

static bool cq_fits(const struct ibv_context *context, const struct ibv_cq *cq, bool needed)
{
	return cq ? cq->context == context && object_is_known(to_vcq((struct ibv_cq *)cq))
		  : !needed;
}

/*
 * Returns at least the capacity of a send queue slot: programs post a few bytes inline to QPs
 * without inline data, which the libraries of rxe and adapters permit (rdma_xclient).
 */
static u32 inline_granted(const struct ibv_qp_cap *cap)
{
	const u32 room = cap->max_send_sge * (u32)sizeof(struct sge);

	return cap->max_inline_data > room ? cap->max_inline_data : room;
}

/* Inputs of a QP's creation other than its attributes. */
struct qp_origin {
	struct ibv_pd *pd;    /* NULL for XRC_RECV */
	struct vxrcd *xrcd;   /* XRC_RECV, else NULL */
	struct vtable *table; /* work queues in place of a receive queue, or NULL */
	struct rss *rss;      /* with table; owned by the QP once created */
	u32 number;	      /* 0: any */
};

static int init_check(const struct ibv_context *context, const struct qp_origin *of,
		      const struct ibv_qp_init_attr *attr)
{
	const bool target = attr->qp_type == IBV_QPT_XRC_RECV;
	const struct ibv_qp_cap *cap = &attr->cap;

	if (!cq_fits(context, attr->send_cq, !target && !of->table) ||
	    !cq_fits(context, attr->recv_cq,
		     !target && !of->table && attr->qp_type != IBV_QPT_XRC_SEND) ||
	    (attr->srq && (attr->srq->context != context || !object_is_known(to_vsrq(attr->srq)) ||
			   to_vsrq(attr->srq)->xrcd)))
		return EINVAL;
	if (cap->max_send_wr > QP_MAX_WR || cap->max_send_sge > QP_MAX_SEND_SGE ||
	    cap->max_inline_data > QP_MAX_INLINE)
		return EINVAL;
	/* With an SRQ the QP has no receive queue: its sizes are ignored (ibv_create_qp(3)). */
	if (!attr->srq && (cap->max_recv_wr > QP_MAX_WR || cap->max_recv_sge > RQ_MAX_SGE))
		return EINVAL;
	return 0;
}

/* Under the port's lock: removes the handle from its QP's ring; false if it is the only one. */
static bool sibling_leave(struct vqp *vqp)
{
	struct vqp *before = vqp;

	if (vqp->sibling == vqp)
		return false;
	while (before->sibling != vqp)
		before = before->sibling;
	before->sibling = vqp->sibling;
	vqp->qp->owner = before;
	return true;
}

/*
 * Returns whether no handle of the QP has a file with an open context. Handles that end at the same
 * time may both see it, and one does.
 */
static bool handles_are_over(const struct vqp *vqp)
{
	const struct vqp *handle = vqp;

	do {
		if (!atomic_load_explicit(&handle->forks.is_over, memory_order_relaxed))
			return false;
		handle = handle->sibling;
	} while (handle != vqp);
	return true;
}

/*
 * Removes the QP from steering and engine, and its completions from the CQs; a QP with other
 * handles remains, in RESET if their contexts are closed.
 */
static void qp_take_away(struct vqp *vqp)
{
	struct vcq *send_cq = to_vcq_or_null(vqp->ibv.send_cq), *recv_cq = vqp_recv_cq(vqp);
	const u32 qpn = vqp->qp->qpn;
	bool last;

	port_wait_arrived(vqp->port, vqp->qp);
	cq_lock_two(send_cq, recv_cq);
	port_lock(vqp->port);
	last = !sibling_leave(vqp);
	if (last)
		port_destroy_qp(vqp->port, vqp->qp);
	else if (handles_are_over(vqp->qp->owner))
		qp_reset_locked(vqp->qp->owner);
	port_unlock(vqp->port);
	cq_unlock_two(send_cq, recv_cq);
	if (last)
		port_release(vqp->port, qpn);
}

static int join_cqs(struct vqp *vqp)
{
	int err = 0;

	if (vqp->ibv.send_cq)
		err = cq_join(to_vcq(vqp->ibv.send_cq), vqp->port);
	if (!err && vqp->ibv.recv_cq)
		err = cq_join(to_vcq(vqp->ibv.recv_cq), vqp->port);
	return err;
}

/*
 * Returns the engine of the vector on which receives complete, until packets show a better one:
 * that vector's thread raises the events. XRC, tag matching and raw packet QPs do not move.
 */
static struct engine *first_owner(const struct vqp *vqp)
{
	const struct vcq *cq =
		to_vcq_or_null(vqp->ibv.recv_cq ? vqp->ibv.recv_cq : vqp->ibv.send_cq);
	const bool pinned = vqp->ibv.qp_type == IBV_QPT_XRC_SEND ||
			    vqp->ibv.qp_type == IBV_QPT_XRC_RECV ||
			    vqp->ibv.qp_type == IBV_QPT_RAW_PACKET ||
			    (vqp->ibv.srq && to_vsrq(vqp->ibv.srq)->srq.tags);

	return pinned || !cq ? port_engine(vqp->port) : port_engine_for(vqp->port, cq->vector);
}

/* Creates the engine's QP and its steering entry. Returns 0 or a positive errno. */
static int qp_enter(struct vqp *vqp, const struct ibv_qp_init_attr *attr,
		    enum xroce_transport transport, const struct qp_origin *of)
{
	struct vcontext *ctx = to_vcontext(vqp->ibv.context);
	struct qp_init init = {
		.transport = transport,
		.xrc_target = attr->qp_type == IBV_QPT_XRC_RECV,
		.xrcd = vqp->xrcd ? xrcd_number(vqp->xrcd) : 0,
		.max_send_wr = attr->cap.max_send_wr,
		.max_send_sge = attr->cap.max_send_sge,
		.max_recv_wr = attr->srq ? 0 : attr->cap.max_recv_wr,
		.max_recv_sge = attr->srq ? 0 : attr->cap.max_recv_sge,
		.max_inline = inline_granted(&attr->cap),
		.sq_sig_all = attr->sq_sig_all,
		.send_cq = attr->send_cq ? &to_vcq(attr->send_cq)->cq : NULL,
		.recv_cq = attr->recv_cq ? &to_vcq(attr->recv_cq)->cq : NULL,
		.srq = attr->srq ? &to_vsrq(attr->srq)->srq : NULL,
		.pd = vqp->ibv.pd ? to_vpd(vqp->ibv.pd)->number : 0,
		.rss = of->rss,
		.qpn = of->number,
		.owner = vqp,
	};
	struct netdev nd;
	int err = transport == XROCE_RAW ? -netdev_may_send_raw() : 0;

	if (!err)
		err = context_port(ctx, &vqp->port);
	if (!err)
		err = context_netdev(&ctx->v.context, &nd);
	if (!err)
		err = join_cqs(vqp);
	if (err)
		return err;
	init.ud_mtu = transport == XROCE_RAW ? min_u32(nd.mtu, RAW_MTU_MAX) :
					       device_path_mtu(ctx, &nd);
	err = memory_take_queues(vqp, &init);
	if (err)
		return err;
	err = limit_errno(port_create_qp(vqp->port, first_owner(vqp), &init, &vqp->qp));
	if (err)
		memory_give_back_queues(vqp);
	return err;
}

/* Reports the granted sizes, which may exceed the requested ones. */
static void cap_report(const struct vqp *vqp, struct ibv_qp_cap *cap)
{
	cap->max_send_wr = qp_posting(vqp->qp)->max_wr;
	cap->max_send_sge = qp_posting(vqp->qp)->max_sge;
	cap->max_recv_wr = vqp->qp->rq.max_wr;
	cap->max_recv_sge = vqp->qp->rq.max_sge;
	cap->max_inline_data = qp_posting(vqp->qp)->max_inline;
}

static void qp_init_public(struct ibv_qp *qp)
{
	pthread_mutex_init(&qp->mutex, NULL);
	pthread_cond_init(&qp->cond, NULL);
}

/* Creates a handle without a QP: free() it. */
static struct vqp *handle_new(struct ibv_context *context, struct ibv_pd *pd, struct vxrcd *xrcd,
			      const struct ibv_qp_init_attr *attr)
{
	struct vqp *vqp = new_object(sizeof(*vqp));

	if (!vqp)
		return NULL;
	vqp->ibv.context = context;
	vqp->ibv.qp_context = attr->qp_context;
	vqp->ibv.pd = pd;
	vqp->ibv.send_cq = attr->send_cq;
	vqp->ibv.recv_cq = attr->recv_cq;
	vqp->ibv.srq = attr->srq;
	vqp->ibv.qp_type = attr->qp_type;
	vqp->ibv.state = IBV_QPS_RESET;
	vqp->ibv.handle = new_handle();
	object_know(vqp);
	vqp->xrcd = xrcd;
	vqp->sibling = vqp;
	vqp->init = *attr;
	qp_init_public(&vqp->ibv);
	return vqp;
}

/* Adds (by 1) or removes (by -1) the handle as a user of its objects. */
static void count_users(const struct vqp *vqp, int by)
{
	if (vqp->ibv.send_cq)
		users_count(&to_vcq(vqp->ibv.send_cq)->users, by);
	if (vqp->ibv.recv_cq)
		users_count(&to_vcq(vqp->ibv.recv_cq)->users, by);
	if (vqp->ibv.srq)
		users_count(&to_vsrq(vqp->ibv.srq)->users, by);
	if (vqp->xrcd)
		users_count(&vqp->xrcd->users, by);
	if (vqp->table)
		users_count(&vqp->table->users, by);
	if (vqp->ibv.pd)
		users_count(&to_vpd(vqp->ibv.pd)->users, by);
}

static void qp_in_child(struct fork_entry *entry)
{
	struct vqp *vqp = container_of(entry, struct vqp, forks);

	qp_init_public(&vqp->ibv);
	spin_unlock(&vqp->sq_lock.spin);
	spin_unlock(&vqp->rq_lock.spin);
	qp_abandon(vqp->qp);
}

/* The end of the handle's file ends the QP if it was the last such handle. */
static void qp_at_close(struct fork_entry *entry)
{
	struct vqp *vqp = container_of(entry, struct vqp, forks);
	bool last;

	if (context_gone(vqp->id.context))
		return;
	port_lock(vqp->port);
	last = handles_are_over(vqp);
	port_unlock(vqp->port);
	if (!last)
		return;
	port_detach_all(vqp->port, vqp->qp);
	qp_reset(vqp);
}

/* Completes a handle that has its QP. */
static void handle_ready(struct vqp *vqp)
{
	vqp->ibv.qp_num = vqp->qp->qpn;
	fork_add_to(to_vcontext(vqp->ibv.context), &vqp->forks, qp_in_child, qp_at_close);
	count_users(vqp, 1);
	context_get(to_vcontext(vqp->ibv.context));
	if (unlikely(faults_are_on))
		fault_know(vqp);
}

static struct vqp *qp_new(struct ibv_context *context, const struct qp_origin *of,
			  struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr init = *attr;
	enum xroce_transport transport;
	struct vqp *vqp;
	int err = transport_of(init.qp_type, &transport);

	init_reduce(&init, of->table);
	if (!err && of->pd && !object_is_known(to_vpd(of->pd)))
		err = ENOENT;
	if (!err)
		err = init_check(context, of, &init);
	if (err)
		return verb_fail(err);
	vqp = handle_new(context, of->pd, of->xrcd, &init);
	if (!vqp)
		return verb_fail(ENOMEM);
	vqp->table = of->table;
	err = qp_enter(vqp, &init, transport, of);
	if (err) {
		free(vqp);
		return verb_fail(err);
	}
	vqp->sq_lock.off = vqp->rq_lock.off = of->pd && to_vpd(of->pd)->td;
	handle_ready(vqp);
	cap_report(vqp, &vqp->init.cap);
	attr->cap = vqp->init.cap;
	return vqp;
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct vqp *vqp;

	if (verb_fails(pd->context, CALL_ibv_create_qp))
		return verb_fail(errno);
	/* XRC_RECV needs a domain, which only ibv_create_qp_ex() has */
	vqp = attr->qp_type == IBV_QPT_XRC_RECV ?
		      verb_fail(EINVAL) :
		      qp_new(pd->context, &(struct qp_origin){ .pd = pd }, attr);
	return vqp ? &vqp->ibv : NULL;
}

struct ibv_qp *create_qp1(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	const struct qp_origin of = { .pd = pd, .number = XROCE_CM_QPN };
	struct vqp *vqp = attr->qp_type == IBV_QPT_UD ? qp_new(pd->context, &of, attr) :
							verb_fail(EINVAL);

	return vqp ? &vqp->ibv : NULL;
}

struct ibv_qp *create_qp_ex_op(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	const bool target = attr->qp_type == IBV_QPT_XRC_RECV;
	const u32 needed = target ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD;
	const u32 supported = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
			      IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	const u32 table = IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
	struct qp_origin of = { 0 };
	enum xroce_transport transport;
	struct ibv_qp_init_attr base;
	struct vqp *vqp;
	int err = transport_of(attr->qp_type, &transport);

	if (verb_fails(context, CALL_ibv_create_qp_ex))
		return verb_fail(errno);
	if (err)
		return verb_fail(err);
	if (attr->comp_mask & ~(supported | table) ||
	    (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && attr->create_flags))
		return verb_fail(EOPNOTSUPP);
	if (!(attr->comp_mask & needed) || (target ? !attr->xrcd : !attr->pd) ||
	    (target ? attr->xrcd->context : attr->pd->context) != context)
		return verb_fail(EINVAL);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS &&
	    attr->send_ops_flags &
		    ~(target || attr->comp_mask & table ? 0 : wr_supported_ops(transport)))
		return verb_fail(EOPNOTSUPP);
	err = attr->comp_mask & table ? table_make_rss(context, attr, &of.rss) : 0;
	if (err)
		return verb_fail(err);
	of.pd = target ? NULL : attr->pd;
	of.xrcd = target ? to_vxrcd(attr->xrcd) : NULL;
	of.table = of.rss ? to_vtable(attr->rwq_ind_tbl) : NULL;
	/* The extended struct begins with the fields of the plain one. */
	_Static_assert(offsetof(struct ibv_qp_init_attr_ex, sq_sig_all) ==
			       offsetof(struct ibv_qp_init_attr, sq_sig_all),
		       "verbs.h");
	memcpy(&base, attr, sizeof(base));
	vqp = qp_new(context, &of, &base);
	if (!vqp) {
		rss_free(of.rss);
		return NULL;
	}
	attr->cap = base.cap;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		wr_set_ops(vqp, attr->send_ops_flags);
	return &vqp->ibv;
}

/* Adds the handle to the ring of the domain's target QP of this number. 0 or a positive errno. */
static int target_enter(struct vqp *vqp, u32 qpn)
{
	struct vqp *first = NULL;
	struct qp *qp;
	int err = context_port(to_vcontext(vqp->ibv.context), &vqp->port);

	if (err)
		return err;
	port_lock(vqp->port);
	qp = engine_find_qp(port_engine(vqp->port), qpn);
	if (qp && qp->xrc_target && qp->xrcd == xrcd_number(vqp->xrcd) &&
	    !handles_are_over(qp->owner)) {
		first = qp->owner;
		vqp->qp = qp;
		vqp->ibv.state = (enum ibv_qp_state)qp_state(qp);
		vqp->ah_attr = first->ah_attr;
		/* an event can be delivered to it at once */
		vqp->ibv.qp_num = qpn;
		vqp->sibling = first->sibling;
		first->sibling = vqp;
	}
	port_unlock(vqp->port);
	return first ? 0 : EINVAL;
}

/* Opens an XRC_RECV QP; no other type can be shared. */
struct ibv_qp *open_qp_op(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	const u32 needed = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_XRC_RECV };
	struct vqp *vqp;
	int err;

	if (verb_fails(context, CALL_ibv_open_qp))
		return verb_fail(errno);
	if (attr->comp_mask >= IBV_QP_OPEN_ATTR_RESERVED || (attr->comp_mask & needed) != needed ||
	    attr->qp_type != IBV_QPT_XRC_RECV || attr->xrcd->context != context)
		return verb_fail(EINVAL);
	if (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT)
		init.qp_context = attr->qp_context;
	vqp = handle_new(context, NULL, to_vxrcd(attr->xrcd), &init);
	if (!vqp)
		return verb_fail(ENOMEM);
	err = target_enter(vqp, attr->qp_num);
	if (err) {
		free(vqp);
		return verb_fail(err);
	}
	handle_ready(vqp);
	return &vqp->ibv;
}

EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct vqp *vqp = to_vqp(qp);

	return vqp->is_ex ? &vqp->ex : NULL;
}

EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
			struct ibv_qp_init_attr *init_attr)
{
	struct vqp *vqp = to_vqp(qp);
	struct qp_attr a;

	if (verb_fails(qp->context, CALL_ibv_query_qp))
		return verb_report(errno);
	if (!object_is_known(vqp))
		return verb_report(ENOENT);
	memset(attr, 0, sizeof(*attr));
	port_lock(vqp->port);
	qp_query(vqp->qp, &a);
	attr->sq_draining = completer_is_draining(vqp->qp);
	attr->ah_attr = vqp->ah_attr;
	port_unlock(vqp->port);
	attr->qp_state = (enum ibv_qp_state)a.state;
	attr->cur_qp_state = (enum ibv_qp_state)a.state;
	attr->path_mtu = mtu_to_enum(a.path_mtu);
	attr->path_mig_state = IBV_MIG_MIGRATED;
	attr->qkey = a.qkey;
	attr->rq_psn = a.rq_psn;
	attr->sq_psn = a.sq_psn;
	attr->dest_qp_num = a.dest_qpn;
	attr->qp_access_flags = a.access;
	attr->pkey_index = a.pkey_index;
	attr->en_sqd_async_notify = a.sqd_async_notify;
	attr->max_rd_atomic = a.max_rd_atomic;
	attr->max_dest_rd_atomic = a.max_dest_rd_atomic;
	attr->min_rnr_timer = a.min_rnr_timer;
	attr->port_num = a.port;
	attr->timeout = a.timeout;
	attr->retry_cnt = a.retry_cnt;
	attr->rnr_retry = a.rnr_retry;
	attr->rate_limit = a.rate_limit.kbps;
	cap_report(vqp, &attr->cap);
	*init_attr = vqp->init;
	/* The engine may have moved the QP to ERR or SQE: a query updates the public field. */
	qp->state = attr->qp_state;
	return 0;
}

/* In headers newer than rdma-core 44. */
#define IN_ORDER_RETURN_CAPS (1u << 0) /* IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS */
#define IN_ORDER_DEVICE_ONLY (1u << 1) /* IBV_QUERY_QP_DATA_IN_ORDER_DEVICE_ONLY */
#define IN_ORDER_WHOLE_MSG   1	       /* IBV_QUERY_QP_DATA_IN_ORDER_WHOLE_MSG */
#define IN_ORDER_ALIGNED_128 2	       /* IBV_QUERY_QP_DATA_IN_ORDER_ALIGNED_128_BYTES */

/* True if messages of the operation are written to memory on this side of such a QP. */
static bool qp_writes_here(enum ibv_qp_type type, enum ibv_wr_opcode op)
{
	switch (op) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
		return type != IBV_QPT_XRC_SEND;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return type == IBV_QPT_RC || type == IBV_QPT_UC || type == IBV_QPT_XRC_RECV;
	case IBV_WR_RDMA_READ:
		return type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND;
	default:
		return false;
	}
}

/*
 * A message's packets are written in PSN order: early ones wait, and duplicates are not written.
 * guard_write() writes the bytes of a packet in order. The device is the CPU, so asking about the
 * device alone changes nothing.
 */
EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	if (!GUARD_ORDERED || flags & ~(IN_ORDER_RETURN_CAPS | IN_ORDER_DEVICE_ONLY) ||
	    !qp_writes_here(qp->qp_type, op))
		return 0;
	return flags & IN_ORDER_RETURN_CAPS ? IN_ORDER_WHOLE_MSG | IN_ORDER_ALIGNED_128 : 1;
}

/* True if attached to a multicast group or with flows: ibv_destroy_qp(3) then fails. */
static bool qp_is_attached(const struct vqp *vqp)
{
	bool attached;

	port_lock(vqp->port);
	attached = vqp->qp->groups;
	attached |= vqp->qp->num_flows != 0;
	port_unlock(vqp->port);
	return attached;
}

EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct vqp *vqp = to_vqp(qp);
	struct vcontext *ctx = to_vcontext(qp->context);

	if (verb_fails(qp->context, CALL_ibv_destroy_qp))
		return verb_report(errno);
	if (!object_is_known(vqp))
		return verb_report(ENOENT);
	if (qp_is_attached(vqp))
		return verb_report(EBUSY);
	fork_remove(&vqp->forks);
	qp_take_away(vqp);
	comp_cntrs_leave(vqp);
	async_forget(ctx, qp, &vqp->async_delivered, &qp->mutex, &qp->cond, &qp->events_completed);
	memory_give_back_queues(vqp);
	count_users(vqp, -1);
	pthread_cond_destroy(&qp->cond);
	pthread_mutex_destroy(&qp->mutex);
	free(vqp);
	context_put(ctx);
	return 0;
}
