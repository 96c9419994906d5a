/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared receive queues: the transport's receive ring inside a verbs object. A basic SRQ attaches
 * nothing to the interface; from the first QP on, the engine watches its limit. An XRC SRQ has a
 * number, by which requests find it; a tag-matching SRQ has a list that the engine processes. Both
 * have their own CQ and create the port.
 */
#include <infiniband/tm_types.h>

#include "objects.h"

/* Undoes srq_new(): no engine has the SRQ. */
static void srq_free(struct vsrq *vsrq)
{
	struct rq *rq = &vsrq->srq.rq;

	tag_list_free(vsrq->srq.tags);
	memory_give_back(to_vpd(vsrq->ibv.pd), MEMORY_SRQ, rq->lent ? rq->ring : NULL);
	rq_free(rq);
	device_give(vsrq->ibv.context, LIMIT_SRQ);
	free(vsrq);
}

static struct vsrq *srq_new(struct ibv_pd *ibpd, void *srq_context, const struct ibv_srq_attr *attr)
{
	struct vpd *pd = to_vpd(ibpd);
	struct vsrq *vsrq;
	void *ring;
	int err;

	if (!attr->max_wr || attr->max_wr > VERBS_MAX_SRQ_WR || attr->max_sge > RQ_MAX_SGE)
		return verb_fail(EINVAL);
	if (context_gone(ibpd->context))
		return verb_fail(EIO);
	err = object_is_known(pd) ? device_take(ibpd->context, LIMIT_SRQ) : ENOENT;
	if (err)
		return verb_fail(err);
	vsrq = new_object(sizeof(*vsrq));
	if (!vsrq) {
		device_give(ibpd->context, LIMIT_SRQ);
		return verb_fail(ENOMEM);
	}
	vsrq->ibv.context = ibpd->context;
	vsrq->ibv.pd = ibpd;
	err = memory_take(pd, MEMORY_SRQ, rq_bytes(attr->max_wr, attr->max_sge), &ring);
	if (!err)
		err = -rq_init_in(&vsrq->srq.rq, attr->max_wr, attr->max_sge, ring);
	if (err) {
		srq_free(vsrq);
		return verb_fail(err);
	}
	vsrq->srq.pd = pd->number;
	vsrq->srq.owner = vsrq;
	vsrq->ibv.srq_context = srq_context;
	vsrq->ibv.handle = new_handle();
	object_know(vsrq);
	vsrq->lock.off = pd->td != NULL;
	return vsrq;
}

static void srq_init_public(struct ibv_srq *srq)
{
	pthread_mutex_init(&srq->mutex, NULL);
	pthread_cond_init(&srq->cond, NULL);
}

static void srq_in_child(struct fork_entry *entry)
{
	struct vsrq *vsrq = container_of(entry, struct vsrq, forks);

	srq_init_public(&vsrq->ibv);
	spin_unlock(&vsrq->lock.spin);
}

/* Hides the SRQ from XRC requests, unless that was done. */
static void srq_leave(struct vsrq *vsrq)
{
	if (!vsrq->xrcd)
		return;
	port_lock(vsrq->port);
	if (vsrq->is_found) {
		engine_srq_remove(port_engine(vsrq->port), &vsrq->srq);
		port_hide_srq(vsrq->port, &vsrq->srq);
	}
	vsrq->is_found = false;
	port_unlock(vsrq->port);
}

static void srq_at_close(struct fork_entry *entry)
{
	srq_leave(container_of(entry, struct vsrq, forks));
}

static struct ibv_srq *srq_ready(struct vsrq *vsrq, struct ibv_srq_attr *attr)
{
	srq_init_public(&vsrq->ibv);
	fork_add_to(to_vcontext(vsrq->ibv.context), &vsrq->forks, srq_in_child, srq_at_close);
	attr->max_wr = vsrq->srq.rq.max_wr;
	attr->max_sge = vsrq->srq.rq.max_sge;
	attr->srq_limit = 0; /* "irrelevant for ibv_create_srq": it is not armed */
	pd_use(to_vpd(vsrq->ibv.pd));
	if (vsrq->xrcd)
		users_count(&vsrq->xrcd->users, 1);
	if (vsrq->cq)
		users_count(&vsrq->cq->users, 1);
	context_get(to_vcontext(vsrq->ibv.context));
	return &vsrq->ibv;
}

EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct vsrq *vsrq;

	if (verb_fails(pd->context, CALL_ibv_create_srq))
		return verb_fail(errno);
	vsrq = srq_new(pd, attr->srq_context, &attr->attr);
	return vsrq ? srq_ready(vsrq, &attr->attr) : NULL;
}

/* Sets the CQ for the SRQ's receives. Returns 0 or a positive errno. */
static int srq_set_cq(struct vsrq *vsrq, struct vcq *cq)
{
	int err = context_port(to_vcontext(vsrq->ibv.context), &vsrq->port);

	if (!err)
		err = cq_join(cq, vsrq->port);
	if (err)
		return err;
	vsrq->cq = cq;
	vsrq->srq.cq = &cq->cq;
	return 0;
}

/* Makes the SRQ visible to XRC requests. Returns 0 or a positive errno. */
static int srq_enter(struct vsrq *vsrq, struct vxrcd *xrcd, struct vcq *cq)
{
	int err = srq_set_cq(vsrq, cq);

	if (err)
		return err;
	vsrq->xrcd = xrcd;
	vsrq->srq.xrcd = xrcd_number(xrcd);
	port_lock(vsrq->port);
	err = -engine_srq_add(port_engine(vsrq->port), &vsrq->srq);
	if (!err)
		port_show_srq(vsrq->port, &vsrq->srq);
	vsrq->is_found = !err;
	port_unlock(vsrq->port);
	return err;
}

static struct ibv_srq *create_xrc_srq(struct ibv_context *context,
				      struct ibv_srq_init_attr_ex *attr)
{
	const u32 required = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	struct vsrq *vsrq;
	int err;

	if ((attr->comp_mask & required) != required || !attr->xrcd || !attr->cq ||
	    attr->xrcd->context != context || attr->cq->context != context)
		return verb_fail(EINVAL);
	vsrq = srq_new(attr->pd, attr->srq_context, &attr->attr);
	if (!vsrq)
		return NULL;
	err = srq_enter(vsrq, to_vxrcd(attr->xrcd), to_vcq(attr->cq));
	if (err) {
		srq_free(vsrq);
		return verb_fail(err);
	}
	return srq_ready(vsrq, &attr->attr);
}

static struct ibv_srq *create_tag_srq(struct ibv_context *context,
				      struct ibv_srq_init_attr_ex *attr)
{
	const u32 required = IBV_SRQ_INIT_ATTR_TM | IBV_SRQ_INIT_ATTR_CQ;
	struct vsrq *vsrq;
	int err;

	if ((attr->comp_mask & required) != required || !attr->cq || attr->cq->context != context)
		return verb_fail(EINVAL);
	vsrq = srq_new(attr->pd, attr->srq_context, &attr->attr);
	if (!vsrq)
		return NULL;
	err = -tag_list_create(attr->tm_cap.max_num_tags, attr->tm_cap.max_ops, &vsrq->srq.tags);
	if (!err)
		err = srq_set_cq(vsrq, to_vcq(attr->cq));
	if (err) {
		srq_free(vsrq);
		return verb_fail(err);
	}
	return srq_ready(vsrq, &attr->attr);
}

struct ibv_srq *create_srq_ex_op(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	enum ibv_srq_type type =
		attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? attr->srq_type : IBV_SRQT_BASIC;
	struct vsrq *vsrq;

	if (verb_fails(context, CALL_ibv_create_srq_ex))
		return verb_fail(errno);
	if (attr->comp_mask >= IBV_SRQ_INIT_ATTR_RESERVED || (int)type < IBV_SRQT_BASIC ||
	    type > IBV_SRQT_TM)
		return verb_fail(EINVAL);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd || attr->pd->context != context)
		return verb_fail(EINVAL);
	if (type == IBV_SRQT_XRC)
		return create_xrc_srq(context, attr);
	if (type == IBV_SRQT_TM)
		return create_tag_srq(context, attr);
	vsrq = srq_new(attr->pd, attr->srq_context, &attr->attr);
	return vsrq ? srq_ready(vsrq, &attr->attr) : NULL;
}

/* Only XRC SRQs have a number. */
int get_srq_num_op(struct ibv_srq *srq, uint32_t *srq_num)
{
	struct vsrq *vsrq = to_vsrq(srq);

	if (verb_fails(srq->context, CALL_ibv_get_srq_num))
		return verb_report(errno);
	if (!vsrq->xrcd)
		return verb_report(EINVAL);
	*srq_num = vsrq->srq.number;
	return 0;
}

/* Without an engine, nothing takes WQEs: the limit is reached now, or armed for later. */
static void srq_limit_without_engine(struct vsrq *vsrq, u32 limit)
{
	if (limit && rq_posted(&vsrq->srq.rq) < limit) {
		vsrq->srq.limit = 0;
		async_queue(to_vcontext(vsrq->ibv.context), IBV_EVENT_SRQ_LIMIT_REACHED,
			    &vsrq->ibv);
	} else {
		vsrq->srq.limit = limit;
	}
}

/*
 * Caller holds both sides: vsrq->lock, and the port's lock if there is a port. Checks everything
 * before any change. ring: as in rq_resize().
 */
static int srq_modify(struct vsrq *vsrq, const struct ibv_srq_attr *attr, int mask,
		      struct engine *e, void **ring)
{
	struct srq *srq = &vsrq->srq;
	u32 max_wr = mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->rq.max_wr;
	u32 limit = mask & IBV_SRQ_LIMIT ? attr->srq_limit : srq->limit;
	int err;

	if (limit > max_wr)
		return EINVAL;
	if (mask & IBV_SRQ_MAX_WR) {
		err = -rq_resize(&srq->rq, max_wr, ring);
		if (err)
			return err;
	}
	if (mask & IBV_SRQ_LIMIT && e)
		engine_srq_set_limit(e, srq, limit);
	else if (mask & IBV_SRQ_LIMIT)
		srq_limit_without_engine(vsrq, limit);
	return 0;
}

EXPORT int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct vsrq *vsrq = to_vsrq(srq);
	struct vcontext *ctx = to_vcontext(srq->context);
	size_t bytes = 0;
	void *ring;
	int err;

	if (verb_fails(srq->context, CALL_ibv_modify_srq))
		return verb_report(errno);
	if (!object_is_known(vsrq))
		return verb_report(ENOENT);
	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return verb_report(EINVAL);
	if (context_gone(srq->context))
		return verb_report(EIO);
	if (mask & IBV_SRQ_MAX_WR) {
		if (!attr->max_wr || attr->max_wr > VERBS_MAX_SRQ_WR)
			return verb_report(EINVAL);
		bytes = rq_bytes(attr->max_wr, vsrq->srq.rq.max_sge);
	}
	err = memory_take(to_vpd(srq->pd), MEMORY_SRQ, bytes, &ring);
	if (err)
		return verb_report(err);
	pthread_mutex_lock(&ctx->lock);
	vlock_take(&vsrq->lock);
	if (ctx->port)
		port_lock(ctx->port);
	err = srq_modify(vsrq, attr, mask, ctx->port ? port_engine(ctx->port) : NULL, &ring);
	if (ctx->port)
		port_unlock(ctx->port);
	vlock_drop(&vsrq->lock);
	pthread_mutex_unlock(&ctx->lock);
	memory_give_back(to_vpd(srq->pd), MEMORY_SRQ, ring);
	return verb_report(err);
}

EXPORT int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct vsrq *vsrq = to_vsrq(srq);
	struct vcontext *ctx = to_vcontext(srq->context);

	if (verb_fails(srq->context, CALL_ibv_query_srq))
		return verb_report(errno);
	if (!object_is_known(vsrq))
		return verb_report(ENOENT);
	pthread_mutex_lock(&ctx->lock);
	if (ctx->port)
		port_lock(ctx->port);
	*attr = (struct ibv_srq_attr){ .max_wr = vsrq->srq.rq.max_wr,
				       .max_sge = vsrq->srq.rq.max_sge,
				       .srq_limit = vsrq->srq.limit };
	if (ctx->port)
		port_unlock(ctx->port);
	pthread_mutex_unlock(&ctx->lock);
	return 0;
}

EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
	struct vsrq *vsrq = to_vsrq(srq);
	struct vcontext *ctx = to_vcontext(srq->context);
	struct vpd *pd = to_vpd(srq->pd);

	if (verb_fails(srq->context, CALL_ibv_destroy_srq))
		return verb_report(errno);
	if (!object_is_known(vsrq))
		return verb_report(ENOENT);
	if (users_left(&vsrq->users))
		return verb_report(EBUSY);
	fork_remove(&vsrq->forks);
	srq_leave(vsrq);
	if (vsrq->xrcd)
		users_count(&vsrq->xrcd->users, -1);
	if (vsrq->cq)
		users_count(&vsrq->cq->users, -1);
	async_forget(ctx, srq, &vsrq->async_delivered, &srq->mutex, &srq->cond,
		     &srq->events_completed);
	pthread_cond_destroy(&srq->cond);
	pthread_mutex_destroy(&srq->mutex);
	srq_free(vsrq);
	pd_unuse(pd);
	context_put(ctx);
	return 0;
}

/*
 * ibv_post_srq_ops(3): the list of a tag-matching SRQ. The engine executes each operation at once,
 * under the port's lock: a posted operation is done, and the list has the order of the calls.
 */

_Static_assert((int)IBV_WR_TAG_ADD == TAG_ADD && (int)IBV_WR_TAG_DEL == TAG_DEL &&
		       (int)IBV_WR_TAG_SYNC == TAG_SYNC &&
		       (int)IBV_OPS_SIGNALED == TAG_OP_SIGNALED &&
		       (int)IBV_OPS_TM_SYNC == TAG_OP_SYNC,
	       "tag.h takes its values from verbs.h");
_Static_assert(sizeof(struct ibv_tmh) == sizeof(struct tmh) &&
		       sizeof(struct ibv_rvh) == sizeof(struct rvh) &&
		       (int)IBV_TMH_EAGER == TMH_EAGER,
	       "wire.h has the headers of tm_types.h");

/* Returns 0 or a positive errno. Only an ADD uses more than the common fields. */
static int post_one(struct vsrq *vsrq, struct ibv_ops_wr *wr)
{
	const bool is_add = wr->opcode == IBV_WR_TAG_ADD;
	struct tag_op op = {
		.wr_id = wr->wr_id,
		.opcode = (u32)wr->opcode,
		.flags = (u32)wr->flags,
		.unexpected_cnt = wr->tm.unexpected_cnt,
		.handle = wr->tm.handle,
		.recv_wr_id = is_add ? wr->tm.add.recv_wr_id : 0,
		.tag = is_add ? wr->tm.add.tag : 0,
		.mask = is_add ? wr->tm.add.mask : 0,
		.sge = is_add ? (const struct sge *)wr->tm.add.sg_list : NULL,
		.num_sge = is_add ? (u32)wr->tm.add.num_sge : 0,
	};
	int err = -tag_post(port_engine(vsrq->port), &vsrq->srq, &op, clock_now_ns());

	if (!err && is_add)
		wr->tm.handle = op.handle;
	return err;
}

int post_srq_ops_op(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad_wr)
{
	struct vsrq *vsrq = to_vsrq(srq);
	int err = 0;

	if (verb_fails(srq->context, CALL_ibv_post_srq_ops))
		return verb_report(errno);
	if (!vsrq->srq.tags || context_gone(srq->context)) {
		*bad_wr = wr;
		return verb_report(vsrq->srq.tags ? EIO : EINVAL);
	}
	port_lock(vsrq->port);
	for (; wr; wr = wr->next) {
		err = post_one(vsrq, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	port_unlock(vsrq->port);
	return verb_report(err);
}
