/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ibv_wr_post(3): work requests built by calls between wr_start and wr_complete, under the send
 * queue's lock. Each builder takes the next slot. The first error is kept, and wr_complete() then
 * posts nothing.
 */
#include "../engine/guard.h"
#include "objects.h"

/*
 * ATOMIC WRITE and FLUSH for the verbs of rdma-core 44 and 45, which the compile-time header may
 * lack. Programs built with them find the members after the last one of older headers.
 */
#define QP_EX_WITH_FLUSH	((u64)1 << 11)
#define QP_EX_WITH_ATOMIC_WRITE ((u64)1 << 12)
#define LATER_BUILDERS_AT	(offsetof(struct ibv_qp_ex, wr_abort) + sizeof(void (*)(void)))
#define FLUSH_TYPES	 3u /* IBV_FLUSH_GLOBAL, IBV_FLUSH_PERSISTENT */
#define FLUSH_LEVEL_MAX	 1u /* IBV_FLUSH_RANGE, IBV_FLUSH_MR */

struct later_builders {
	void (*atomic_write)(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			     const void *atomic_wr);
	void (*flush)(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t len,
		      uint8_t type, uint8_t level);
};
_Static_assert(LATER_BUILDERS_AT + sizeof(struct later_builders) <=
		       sizeof(struct ibv_qp_ex) + VERBS_SLACK,
	       "behind the object");

/* Requests that carry no data, or get all data from their builder. */
#define WITHOUT_DATA                                                                               \
	(1u << WR_LOCAL_INV | 1u << WR_BIND_MW | 1u << WR_FLUSH | 1u << WR_ATOMIC_WRITE)

#define OPS_SEND  (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define OPS_WRITE (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
#define OPS_LOCAL (IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW)
#define OPS_RC                                                                                     \
	(OPS_SEND | OPS_WRITE | OPS_LOCAL | IBV_QP_EX_WITH_RDMA_READ |                             \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |                 \
	 IBV_QP_EX_WITH_SEND_WITH_INV | QP_EX_WITH_FLUSH | QP_EX_WITH_ATOMIC_WRITE)
#define NO_SRQN	  UINT32_MAX /* wr_set_xrc_srqn() was not called */

u64 wr_supported_ops(enum xroce_transport transport)
{
	switch (transport) {
	case XROCE_RC:
	case XROCE_XRC:
		return OPS_RC;
	case XROCE_UC:
		return OPS_SEND | OPS_WRITE | OPS_LOCAL;
	case XROCE_UD:
		return OPS_SEND;
	case XROCE_RAW:
		return IBV_QP_EX_WITH_SEND;
	default:
		return 0;
	}
}

static void wr_fail(struct vqp *vqp, int err)
{
	if (!vqp->wr_error)
		vqp->wr_error = err;
	vqp->wr_current = NULL;
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct vqp *vqp = to_vqp_ex(ex);

	vlock_take(&vqp->sq_lock);
	vqp->wr_count = 0;
	vqp->wr_current = NULL;
	vqp->wr_error = 0;
	vqp->wr_binds = false;
	sq_begin(qp_posting(vqp->qp));
}

/* Begins a request in the next slot. Returns NULL after an error or if the queue is full. */
static struct send_wqe *wr_begin(struct ibv_qp_ex *ex, enum wr_opcode opcode)
{
	struct vqp *vqp = to_vqp_ex(ex);
	struct send_wqe *wqe;

	if (vqp->wr_error)
		return NULL;
	wqe = sq_slot(qp_posting(vqp->qp), vqp->wr_count);
	if (!wqe || ex->wr_flags > UINT8_MAX) {
		wr_fail(vqp, wqe ? EINVAL : ENOMEM);
		return NULL;
	}
	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = ex->wr_id;
	wqe->opcode = (u8)opcode;
	/* wr_set_inline_data() selects inline data, not the flag. */
	wqe->flags = (u8)(ex->wr_flags & ~(unsigned int)IBV_SEND_INLINE);
	if (vqp->qp->transport == XROCE_XRC)
		wqe->xrc_srqn = NO_SRQN;
	vqp->wr_count++;
	vqp->wr_current = wqe;
	return wqe;
}

/* Begins a request that takes no setter; a setter call for it is an error. */
static struct send_wqe *wr_begin_local(struct ibv_qp_ex *ex, enum wr_opcode opcode)
{
	struct send_wqe *wqe = wr_begin(ex, opcode);

	to_vqp_ex(ex)->wr_current = NULL;
	return wqe;
}

/*
 * True if the service's required setter was called (ibv_wr_post(3)). Address handles have a hop
 * limit.
 */
static bool wr_is_addressed(const struct qp *qp, const struct send_wqe *wqe)
{
	switch (qp->transport) {
	case XROCE_UD:
		return wqe->ud.path.hop_limit != 0;
	case XROCE_XRC:
		return wqe->opcode == WR_LOCAL_INV || wqe->opcode == WR_BIND_MW ||
		       wqe->xrc_srqn <= ROCE_QPN_MASK;
	default:
		return true;
	}
}

/* The list is posted: a window that it binds gets its new key now. */
static void wr_name_window(const struct send_wqe *wqe)
{
	if (wqe->opcode == WR_BIND_MW)
		((struct ibv_mw *)wqe->bind.window)->rkey = wqe->bind.new_key;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct vqp *vqp = to_vqp_ex(ex);
	struct qp *qp = vqp->qp;
	/* the state counts when the list is posted, not when it is begun */
	int err = vqp->wr_error ? vqp->wr_error : qp_refuses_sends(vqp);
	u32 n = vqp->wr_count;

	for (u32 i = 0; !err && i < n; i++) {
		struct send_wqe *wqe = sq_slot(qp_posting(qp), i);

		err = wr_is_addressed(qp, wqe) ? -send_wqe_check(qp, wqe) : EINVAL;
	}
	if (!err && n) {
		for (u32 i = 0; vqp->wr_binds && i < n; i++)
			wr_name_window(sq_slot(qp_posting(qp), i));
		sq_publish(qp_posting(qp), n);
	}
	vqp->wr_current = NULL;
	vlock_drop(&vqp->sq_lock);
	if (!err && n)
		shards_post(port_shards(vqp->port), qp);
	return verb_report(err);
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	struct vqp *vqp = to_vqp_ex(ex);

	vqp->wr_current = NULL;
	vlock_drop(&vqp->sq_lock);
}

/* ---- operations ---- */

static void wr_send(struct ibv_qp_ex *ex)
{
	wr_begin(ex, WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	struct send_wqe *wqe = wr_begin(ex, WR_SEND_WITH_IMM);

	if (wqe)
		wqe->imm = imm;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct send_wqe *wqe = wr_begin(ex, WR_SEND_WITH_INV);

	if (wqe)
		wqe->inv_rkey = rkey;
}

static struct send_wqe *wr_begin_remote(struct ibv_qp_ex *ex, enum wr_opcode opcode, u32 rkey,
					u64 remote_addr)
{
	struct send_wqe *wqe = wr_begin(ex, opcode);

	if (wqe) {
		wqe->rkey = rkey;
		wqe->remote_addr = remote_addr;
	}
	return wqe;
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	wr_begin_remote(ex, WR_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, __be32 imm)
{
	struct send_wqe *wqe = wr_begin_remote(ex, WR_WRITE_WITH_IMM, rkey, remote_addr);

	if (wqe)
		wqe->imm = imm;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	wr_begin_remote(ex, WR_READ, rkey, remote_addr);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	struct send_wqe *wqe = wr_begin_remote(ex, WR_CMP_SWAP, rkey, remote_addr);

	if (wqe) {
		wqe->compare_add = compare;
		wqe->swap = swap;
	}
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
				uint64_t add)
{
	struct send_wqe *wqe = wr_begin_remote(ex, WR_FETCH_ADD, rkey, remote_addr);

	if (wqe)
		wqe->compare_add = add;
}

/* The word is read now; the request takes no data setter. */
static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			    const void *atomic_wr)
{
	struct send_wqe *wqe = wr_begin_remote(ex, WR_ATOMIC_WRITE, rkey, remote_addr);

	if (wqe) {
		memcpy(&wqe->swap, atomic_wr, sizeof(wqe->swap));
		wqe->length = sizeof(wqe->swap);
	}
}

/* Complete except, on XRC, for the SRQ. */
static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t len,
		     uint8_t type, uint8_t level)
{
	struct send_wqe *wqe = wr_begin_remote(ex, WR_FLUSH, rkey, remote_addr);

	if (!wqe)
		return;
	if (!type || type & ~FLUSH_TYPES || level > FLUSH_LEVEL_MAX || len > UINT32_MAX) {
		wr_fail(to_vqp_ex(ex), EINVAL);
		return;
	}
	wqe->compare_add = type | (u64)level << 4;
	wqe->length = (u32)len;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct send_wqe *wqe = wr_begin_local(ex, WR_LOCAL_INV);

	if (wqe)
		wqe->inv_rkey = rkey;
}

/* Type 2 only, like IBV_WR_BIND_MW. */
static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct send_wqe *wqe = wr_begin_local(ex, WR_BIND_MW);
	struct vqp *vqp = to_vqp_ex(ex);
	int err;

	if (!wqe)
		return;
	err = mw && mw->type == IBV_MW_TYPE_2 ? wqe_set_bind(wqe, mw, rkey, info) : EINVAL;
	if (err) {
		wr_fail(vqp, err);
		return;
	}
	wqe->bind.window = mw;
	vqp->wr_binds = true;
}

/* ---- setters ---- */

/* Returns the request for a setter. Without one, returns NULL and the list fails. */
static struct send_wqe *wr_to_set(struct vqp *vqp)
{
	if (!vqp->wr_current)
		wr_fail(vqp, EINVAL);
	return vqp->wr_current;
}

static struct send_wqe *wr_to_set_data(struct vqp *vqp)
{
	struct send_wqe *wqe = vqp->wr_current;

	if (wqe && !(WITHOUT_DATA >> wqe->opcode & 1))
		return wqe;
	wr_fail(vqp, EINVAL);
	return NULL;
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn,
			   uint32_t remote_qkey)
{
	struct vqp *vqp = to_vqp_ex(ex);
	struct send_wqe *wqe = wr_to_set(vqp);

	if (!wqe)
		return;
	if (!ah)
		wr_fail(vqp, EINVAL);
	else
		wqe_set_ud(vqp, wqe, to_vah(ah), remote_qpn, remote_qkey);
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	struct send_wqe *wqe = wr_to_set(to_vqp_ex(ex));

	if (wqe)
		wqe->xrc_srqn = remote_srqn;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *list)
{
	struct vqp *vqp = to_vqp_ex(ex);
	struct send_wqe *wqe = wr_to_set_data(vqp);
	u64 length;

	if (!wqe)
		return;
	if (num_sge > qp_posting(vqp->qp)->max_sge) {
		wr_fail(vqp, EINVAL);
		return;
	}
	length = sge_length((const struct sge *)list, (u32)num_sge);
	wqe->length = (u32)min_u64(length, UINT32_MAX);
	wqe->num_sge = (u8)num_sge;
	wqe->flags &= (u8)~WR_INLINE;
	if (num_sge)
		memcpy(wqe->sge, list, num_sge * sizeof(*list));
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	wr_set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
				    const struct ibv_data_buf *list)
{
	struct vqp *vqp = to_vqp_ex(ex);
	struct send_wqe *wqe = wr_to_set_data(vqp);
	u32 length = 0;

	if (!wqe)
		return;
	for (size_t i = 0; i < num_buf; i++) {
		if (list[i].length > qp_posting(vqp->qp)->max_inline - length) {
			wr_fail(vqp, ENOMEM);
			return;
		}
		if (list[i].length)
			guard_read_units(wqe->data + length, list[i].addr, list[i].length);
		length += (u32)list[i].length;
	}
	wqe->length = length;
	wqe->num_sge = 0;
	wqe->flags |= WR_INLINE;
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = { .addr = addr, .length = length };

	wr_set_inline_data_list(ex, 1, &buf);
}

/* A failed list is not posted: ibv_wr_post(3). */
static int failing_wr_complete(struct ibv_qp_ex *ex)
{
	struct vqp *vqp = to_vqp_ex(ex);

	if (!vqp->wr_error && verb_fails(vqp->ibv.context, CALL_ibv_wr_complete))
		vqp->wr_error = errno;
	return wr_complete(ex);
}

void wr_set_ops(struct vqp *vqp, u64 ops)
{
	const struct later_builders later = {
		.atomic_write = ops & QP_EX_WITH_ATOMIC_WRITE ? wr_atomic_write : NULL,
		.flush = ops & QP_EX_WITH_FLUSH ? wr_flush : NULL,
	};
	struct ibv_qp_ex *ex = &vqp->ex;

	vqp->is_ex = true;
	ex->wr_start = wr_start;
	ex->wr_complete = faults_are_on ? failing_wr_complete : wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_send = ops & IBV_QP_EX_WITH_SEND ? wr_send : NULL;
	ex->wr_send_imm = ops & IBV_QP_EX_WITH_SEND_WITH_IMM ? wr_send_imm : NULL;
	ex->wr_send_inv = ops & IBV_QP_EX_WITH_SEND_WITH_INV ? wr_send_inv : NULL;
	ex->wr_rdma_write = ops & IBV_QP_EX_WITH_RDMA_WRITE ? wr_rdma_write : NULL;
	ex->wr_rdma_write_imm = ops & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM ? wr_rdma_write_imm : NULL;
	ex->wr_rdma_read = ops & IBV_QP_EX_WITH_RDMA_READ ? wr_rdma_read : NULL;
	ex->wr_atomic_cmp_swp = ops & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP ? wr_atomic_cmp_swp : NULL;
	ex->wr_atomic_fetch_add =
		ops & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD ? wr_atomic_fetch_add : NULL;
	ex->wr_local_inv = ops & IBV_QP_EX_WITH_LOCAL_INV ? wr_local_inv : NULL;
	ex->wr_bind_mw = ops & IBV_QP_EX_WITH_BIND_MW ? wr_bind_mw : NULL;
	ex->wr_set_xrc_srqn = vqp->qp->transport == XROCE_XRC ? wr_set_xrc_srqn : NULL;
	ex->wr_set_ud_addr = vqp->qp->transport == XROCE_UD ? wr_set_ud_addr : NULL;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	memcpy((u8 *)vqp + offsetof(struct vqp, ex) + LATER_BUILDERS_AT, &later, sizeof(later));
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
}
