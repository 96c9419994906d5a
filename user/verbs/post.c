/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Posting work requests. WQEs are written into their slots and checked there. The requests of a
 * list are published together, up to the first bad one, as ibv_post_send(3) specifies. Then the
 * engine runs in this thread.
 */
#include "../engine/guard.h"
#include "objects.h"

_Static_assert(sizeof(struct ibv_sge) == sizeof(struct sge) &&
		       offsetof(struct ibv_sge, length) == offsetof(struct sge, length) &&
		       offsetof(struct ibv_sge, lkey) == offsetof(struct sge, lkey),
	       "mr.h: one element as in verbs.h");
_Static_assert((int)IBV_WR_SEND_WITH_INV == WR_SEND_WITH_INV && (int)IBV_WR_RDMA_READ == WR_READ &&
		       (int)IBV_WR_BIND_MW == WR_BIND_MW &&
		       (int)IBV_SEND_INLINE == WR_INLINE && (int)IBV_SEND_FENCE == WR_FENCE,
	       "qp.h takes its values from verbs.h");

/* An empty list may be NULL. */
static void sge_copy(struct sge *to, const struct ibv_sge *from, u32 num_sge)
{
	if (num_sge)
		memcpy(to, from, num_sge * sizeof(*to));
}

void wqe_set_ud(struct vqp *vqp, struct send_wqe *wqe, const struct vah *ah, u32 remote_qpn,
		u32 remote_qkey)
{
	wqe->ud.path = ah->path;
	/* 24 bits of it are a QPN, as in adapters */
	remote_qpn &= ROCE_QPN_MASK;
	wqe->ud.path.udp_sport = path_udp_sport(ah->flow_label, vqp->qp->qpn, remote_qpn);
	wqe->ud.remote_qpn = remote_qpn;
	/* a Q_Key with its top bit set selects the QP's own (IBTA 10.2.5) */
	wqe->ud.remote_qkey = remote_qkey & 1u << 31 ?
				      atomic_load_explicit(&vqp->qkey, memory_order_relaxed) :
				      remote_qkey;
}

/* Copies inline data. Aligned words are loaded as a whole; a bad address faults in the program. */
static void copy_inline(u8 *to, const struct sge *sge, int num_sge)
{
	for (int i = 0; i < num_sge; i++) {
		if (!sge[i].length)
			continue;
		guard_read_units(to, (const u8 *)(uintptr_t)sge[i].addr, sge[i].length);
		to += sge[i].length;
	}
}

/* Stores the elements or, inline, their bytes. Returns 0 or a positive errno. */
static int wqe_set_data(struct vqp *vqp, struct send_wqe *wqe, const struct ibv_send_wr *wr)
{
	const struct qp *qp = vqp->qp;
	const struct sge *sge = (const struct sge *)wr->sg_list;
	u64 length;

	if (wr->num_sge < 0 || (u32)wr->num_sge > qp_posting(qp)->max_sge)
		return EINVAL;
	length = sge_length(sge, (u32)wr->num_sge);
	/* send_wqe_check() rejects lengths beyond any message */
	wqe->length = (u32)min_u64(length, UINT32_MAX);
	if (!(wr->send_flags & IBV_SEND_INLINE)) {
		wqe->num_sge = (u8)wr->num_sge;
		sge_copy(wqe->sge, wr->sg_list, (u32)wr->num_sge);
		return 0;
	}
	wqe->num_sge = 0;
	if (wqe->opcode == WR_ATOMIC_WRITE) {
		/* send_wqe_check() sees to other lengths */
		if (length == sizeof(wqe->swap))
			copy_inline((u8 *)&wqe->swap, sge, wr->num_sge);
		wqe->flags &= (u8)~WR_INLINE;
		return 0;
	}
	if (length > qp_posting(qp)->max_inline)
		return ENOMEM;
	copy_inline(wqe->data, sge, wr->num_sge);
	return 0;
}

/* Sets the destination, by service and operation. Returns 0 or EINVAL. */
static int wqe_set_target(struct vqp *vqp, struct send_wqe *wqe, const struct ibv_send_wr *wr,
			  enum ibv_mw_type bindable)
{
	switch (vqp->qp->transport) {
	case XROCE_UD:
		/* other opcodes have no address to check, and fail in their turn */
		if (wqe->opcode != WR_SEND && wqe->opcode != WR_SEND_WITH_IMM)
			return 0;
		if (!wr->wr.ud.ah)
			return EINVAL;
		wqe_set_ud(vqp, wqe, to_vah(wr->wr.ud.ah), wr->wr.ud.remote_qpn,
			   wr->wr.ud.remote_qkey);
		return 0;
	case XROCE_XRC:
		if (wqe->opcode != WR_LOCAL_INV && wqe->opcode != WR_BIND_MW &&
		    wr->qp_type.xrc.remote_srqn > ROCE_QPN_MASK)
			return EINVAL;
		wqe->xrc_srqn = wr->qp_type.xrc.remote_srqn;
		break;
	default:
		break;
	}
	switch (wqe->opcode) {
	case WR_BIND_MW:
		if (!wr->bind_mw.mw || wr->bind_mw.mw->type != bindable)
			return EINVAL;
		return wqe_set_bind(wqe, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
	case WR_CMP_SWAP:
	case WR_FETCH_ADD:
		wqe->remote_addr = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->compare_add = wr->wr.atomic.compare_add;
		wqe->swap = wr->wr.atomic.swap;
		return 0;
	default:
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
		return 0;
	}
}

/* Writes wr into its slot. Returns 0 or a positive errno. */
static int wqe_fill(struct vqp *vqp, struct send_wqe *wqe, const struct ibv_send_wr *wr,
		    enum ibv_mw_type bindable)
{
	int err;

	if ((u32)wr->opcode >= WR_REFUSED || wr->send_flags > UINT8_MAX)
		return EINVAL;
	/* <infiniband/verbs.h> cannot express a FLUSH's placement type. */
	if (wr->opcode == (enum ibv_wr_opcode)WR_FLUSH)
		return EINVAL;
	wqe->wr_id = wr->wr_id;
	wqe->opcode = (u8)wr->opcode;
	wqe->flags = (u8)wr->send_flags;
	wqe->imm = 0;
	wqe->inv_rkey = 0;
	switch (wqe->opcode) {
	case WR_SEND_WITH_IMM:
	case WR_WRITE_WITH_IMM:
		wqe->imm = wr->imm_data;
		break;
	case WR_SEND_WITH_INV:
	case WR_LOCAL_INV:
		wqe->inv_rkey = wr->invalidate_rkey;
		break;
	}
	err = wqe_set_target(vqp, wqe, wr, bindable);
	if (!err)
		err = wqe_set_data(vqp, wqe, wr);
	if (!err && wqe->opcode != WR_REFUSED)
		err = -send_wqe_check(vqp->qp, wqe);
	if (!err && wqe->opcode == WR_BIND_MW)
		wr->bind_mw.mw->rkey = wqe->bind.new_key;
	return err;
}

/*
 * Sends are accepted from RTS on; in SQE and ERR they are flushed (IBTA 10.3.1, protocol sheet). An
 * XRC_RECV QP sends nothing, nor does a QP with a table.
 */
int qp_refuses_sends(struct vqp *vqp)
{
	if (context_gone(vqp->ibv.context))
		return EIO;
	return qp_state(vqp->qp) < QPS_RTS || vqp->qp->xrc_target || vqp->table ? EINVAL : 0;
}

int post_send_list(struct vqp *vqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr,
		   enum ibv_mw_type bindable)
{
	struct qp *qp = vqp->qp;
	int err = 0;
	u32 n = 0;

	vlock_take(&vqp->sq_lock);
	if (unlikely(qp_state(qp) != QPS_RTS || qp->xrc_target))
		err = qp_refuses_sends(vqp);
	sq_begin(qp_posting(qp));
	for (; !err && wr; wr = wr->next) {
		struct send_wqe *wqe = sq_slot(qp_posting(qp), n);

		err = wqe ? wqe_fill(vqp, wqe, wr, bindable) : ENOMEM;
		if (err)
			break;
		n++;
	}
	if (n)
		sq_publish(qp_posting(qp), n);
	vlock_drop(&vqp->sq_lock);
	if (err)
		*bad_wr = wr;
	if (n)
		shards_post(port_shards(vqp->port), qp);
	return verb_report(err);
}

int post_send_op(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	return post_send_list(to_vqp(qp), wr, bad_wr, IBV_MW_TYPE_2);
}

/*
 * Posts a list of receives. Returns 0 or a positive errno, with *bad_wr and the number of receives
 * posted before it.
 */
static int rq_post(struct rq *rq, struct vlock *lock, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad_wr, u32 *posted)
{
	int err = 0;
	u32 n = 0;

	vlock_take(lock);
	for (; wr; wr = wr->next) {
		struct recv_wqe *wqe = rq_slot(rq, n);

		if (!wqe || wr->num_sge < 0 || (u32)wr->num_sge > rq->max_sge) {
			err = wqe ? EINVAL : ENOMEM;
			*bad_wr = wr;
			break;
		}
		wqe->wr_id = wr->wr_id;
		wqe->num_sge = (u32)wr->num_sge;
		sge_copy(wqe->sge, wr->sg_list, wqe->num_sge);
		n++;
	}
	if (n)
		rq_publish(rq, n);
	vlock_drop(lock);
	*posted = n;
	return err;
}

int post_recv_op(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct vqp *vqp = to_vqp(ibqp);
	struct qp *qp = vqp->qp;
	u32 posted;
	int err;

	/* the device's end moved all QPs to ERR */
	if (qp_state(qp) == QPS_ERR && context_gone(ibqp->context)) {
		*bad_wr = wr;
		return verb_report(EIO);
	}
	/*
	 * From INIT on. QPs on an SRQ have no receive queue (ibv_post_recv(3)), nor do XRC QPs and
	 * QPs with a table.
	 */
	if (qp_state(qp) == QPS_RESET || ibqp->srq || qp->transport == XROCE_XRC || vqp->table) {
		*bad_wr = wr;
		return verb_report(EINVAL);
	}
	err = rq_post(&qp->rq, &vqp->rq_lock, wr, bad_wr, &posted);
	/*
	 * In ERR the engine flushes receives when notified. The state is checked after
	 * rq_publish(): see there.
	 */
	if (posted && qp_state(qp) == QPS_ERR) {
		engine_doorbell(qp);
		shards_poll(port_shards(vqp->port));
	}
	return verb_report(err);
}

/* Like post_recv_op(). */
int post_wq_recv_op(struct ibv_wq *wq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct vwq *vwq = to_vwq(wq);
	struct qp *qp = vwq->qp;
	u32 posted;
	int err;

	if (verb_fails(wq->context, CALL_ibv_post_wq_recv)) {
		*bad_wr = wr;
		return verb_report(errno);
	}
	if (qp_state(qp) == QPS_RESET || (qp_state(qp) == QPS_ERR && context_gone(wq->context))) {
		*bad_wr = wr;
		return verb_report(qp_state(qp) == QPS_RESET ? EINVAL : EIO);
	}
	err = rq_post(&qp->rq, &vwq->lock, wr, bad_wr, &posted);
	if (posted && qp_state(qp) == QPS_ERR) {
		engine_doorbell(qp);
		shards_poll(port_shards(vwq->port));
	}
	return verb_report(err);
}

int post_srq_recv_op(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct vsrq *vsrq = to_vsrq(srq);
	u32 posted;

	if (context_gone(srq->context)) {
		*bad_wr = wr;
		return verb_report(EIO);
	}
	return verb_report(rq_post(&vsrq->srq.rq, &vsrq->lock, wr, bad_wr, &posted));
}
