/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory windows: creation, and the request that binds one. The engine binds and invalidates in the
 * order of the send queue; this file checks in advance.
 *
 * In the R_Key of a bound type 2 window, the application chooses the low 8 bits; the window fixes
 * the others, whatever the request contains. The resulting key is written to the window, as in
 * irdma, for applications that passed other upper bits.
 */
#include "objects.h"

/* ibv_bind_mw(3) */
#define MW_ACCESS_KNOWN                                                                            \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |             \
	 IBV_ACCESS_ZERO_BASED)

struct ibv_mw *alloc_mw_op(struct ibv_pd *ibpd, enum ibv_mw_type type)
{
	struct vpd *pd = to_vpd(ibpd);
	struct vmw *vmw;
	struct port *port;
	int err;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return verb_fail(EINVAL);
	err = object_is_known(pd) ? device_take(ibpd->context, LIMIT_MW) : ENOENT;
	if (err)
		return verb_fail(err);
	vmw = calloc(1, sizeof(*vmw));
	err = vmw ? context_port(to_vcontext(ibpd->context), &port) : ENOMEM;
	if (!err) {
		port_lock(port);
		err = -mw_add(engine_mr_table(port_engine(port)), pd->number,
			      type == IBV_MW_TYPE_1 ? MR_WINDOW_1 : MR_WINDOW_2, &vmw->mw);
		port_unlock(port);
	}
	if (err) {
		device_give(ibpd->context, LIMIT_MW);
		free(vmw);
		return verb_fail(err);
	}
	vmw->ibv = (struct ibv_mw){ .context = ibpd->context,
				    .pd = ibpd,
				    .rkey = mr_key(vmw->mw),
				    .handle = new_handle(),
				    .type = type };
	object_know(vmw);
	pd_use(pd);
	context_get(to_vcontext(ibpd->context));
	return &vmw->ibv;
}

int dealloc_mw_op(struct ibv_mw *mw)
{
	struct vmw *vmw = container_of(mw, struct vmw, ibv);
	struct vcontext *ctx = to_vcontext(mw->context);

	if (!object_is_known(vmw))
		return verb_report(ENOENT);
	device_give(mw->context, LIMIT_MW);
	port_lock(ctx->port);
	mr_remove(engine_mr_table(port_engine(ctx->port)), vmw->mw);
	port_unlock(ctx->port);
	pd_unuse(to_vpd(mw->pd));
	free(vmw);
	context_put(ctx);
	return 0;
}

/* The window's own bits do not change, so the engine may use it concurrently. */
static u32 mw_next_key(const struct vmw *vmw, u32 rkey)
{
	u32 key = mr_key(vmw->mw);

	return (key & ~MW_KEY_OWN) | (rkey & MW_KEY_OWN);
}

int wqe_set_bind(struct send_wqe *wqe, const struct ibv_mw *mw, u32 rkey,
		 const struct ibv_mw_bind_info *info)
{
	u32 key = mw_next_key(container_of(mw, const struct vmw, ibv), rkey);
	/* A window has remote rights only. Programs pass the region's, including local write. */
	u32 access = info->mw_access_flags & ~(u32)IBV_ACCESS_LOCAL_WRITE;

	if (access & ~(u32)MW_ACCESS_KNOWN || (!info->mr && (info->addr || info->length)))
		return EINVAL;
	wqe->bind.mw_key = wqe->bind.new_key = key;
	wqe->bind.lkey = info->mr ? info->mr->lkey : 0;
	wqe->bind.access = access;
	wqe->bind.addr = info->addr;
	wqe->bind.length = info->length;
	return 0;
}

/* Type 1 only: the header's inline function has checked the type and the region's PD. */
int bind_mw_op(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = { .mw = mw,
			     .rkey = ibv_inc_rkey(mw->rkey),
			     .bind_info = bind->bind_info },
	};
	struct ibv_send_wr *bad_wr;

	return post_send_list(to_vqp(qp), &wr, &bad_wr, IBV_MW_TYPE_1);
}
