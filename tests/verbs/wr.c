/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The two ends and the builders of wr.h. The table is ibv_wr_post(3)'s, of rdma-core 45 and later
 * for FLUSH; ATOMIC WRITE, which the page leaves out, goes where FLUSH goes (both are of one annex
 * of the IBTA). SEND with invalidate is not UC's: the IBTA has no such packet of UC.
 */
#include "wr.h"

#define RELIABLE  (SERVICE(RC) | SERVICE(XRC_SEND))
#define CONNECTED (RELIABLE | SERVICE(UC))
#define AT(m)	  offsetof(struct ibv_qp_ex, m)

const struct wr_op wr_ops[OPS] = {
	[OP_CMP_SWP] = { "atomic_cmp_swp", IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, AT(wr_atomic_cmp_swp),
			 RELIABLE, DATA_WORD, IBV_WC_COMP_SWAP, .addressed = true },
	[OP_FETCH_ADD] = { "atomic_fetch_add", IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
			   AT(wr_atomic_fetch_add), RELIABLE, DATA_WORD, IBV_WC_FETCH_ADD,
			   .addressed = true },
	[OP_BIND] = { "bind_mw", IBV_QP_EX_WITH_BIND_MW, AT(wr_bind_mw), CONNECTED, DATA_NONE,
		      IBV_WC_BIND_MW },
	[OP_LOCAL_INV] = { "local_inv", IBV_QP_EX_WITH_LOCAL_INV, AT(wr_local_inv), CONNECTED,
			   DATA_NONE, IBV_WC_LOCAL_INV },
	[OP_READ] = { "rdma_read", IBV_QP_EX_WITH_RDMA_READ, AT(wr_rdma_read), RELIABLE, DATA_IN,
		      IBV_WC_RDMA_READ, .addressed = true },
	[OP_WRITE] = { "rdma_write", IBV_QP_EX_WITH_RDMA_WRITE, AT(wr_rdma_write), CONNECTED,
		       DATA_OUT, IBV_WC_RDMA_WRITE, .addressed = true },
	[OP_WRITE_IMM] = { "rdma_write_imm", IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
			   AT(wr_rdma_write_imm), CONNECTED, DATA_OUT, IBV_WC_RDMA_WRITE,
			   .addressed = true, .receives = true, .immediate = true },
	[OP_SEND] = { "send", IBV_QP_EX_WITH_SEND, AT(wr_send),
		      CONNECTED | SERVICE(UD) | SERVICE(RAW_PACKET), DATA_OUT, IBV_WC_SEND,
		      .addressed = true, .receives = true },
	[OP_SEND_IMM] = { "send_imm", IBV_QP_EX_WITH_SEND_WITH_IMM, AT(wr_send_imm),
			  CONNECTED | SERVICE(UD), DATA_OUT, IBV_WC_SEND, .addressed = true,
			  .receives = true, .immediate = true },
	[OP_SEND_INV] = { "send_inv", IBV_QP_EX_WITH_SEND_WITH_INV, AT(wr_send_inv), RELIABLE,
			  DATA_OUT, IBV_WC_SEND, .addressed = true, .receives = true },
	[OP_TSO] = { "send_tso", IBV_QP_EX_WITH_TSO, AT(wr_send_tso), 0, DATA_OUT, IBV_WC_TSO,
		     .addressed = true, .receives = true },
	[OP_FLUSH] = { "flush", QP_EX_WITH_FLUSH, WR_FLUSH_AT, RELIABLE, DATA_NONE, WC_FLUSH,
		       .addressed = true },
	[OP_ATOMIC_WRITE] = { "atomic_write", IBV_QP_EX_WITH_ATOMIC_WRITE, AT(wr_atomic_write),
			      RELIABLE, DATA_NONE, WC_ATOMIC_WRITE, .addressed = true },
};

uint64_t wr_ops_of(enum ibv_qp_type type)
{
	uint64_t ops = 0;

	for (int i = 0; i < OPS; i++)
		if (wr_ops[i].services & (1u << type))
			ops |= wr_ops[i].flag;
	return ops;
}

void *wr_member(const struct ibv_qp_ex *ex, size_t offset)
{
	return *(void *const *)((const char *)ex + offset);
}

static struct ibv_qp *ends_qp(struct wr_ends *e, int end, uint64_t ops)
{
	struct ibv_qp_init_attr_ex a = { .send_cq = e->cq[end],
					 .recv_cq = e->cq[end],
					 .qp_type = e->type,
					 .cap = { SEND_WRS, RECV_WRS, SEND_SGES, 2, INLINE_SIZE },
					 .comp_mask = IBV_QP_INIT_ATTR_PD,
					 .pd = e->pd };
	struct ibv_qp *qp;

	if (e->xrcd && end) {
		a.qp_type = IBV_QPT_XRC_RECV;
		a.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		a.xrcd = e->xrcd;
	}
	if (e->xrcd)
		a.cap.max_recv_wr = a.cap.max_recv_sge = 0;
	if (!end && ops) {
		a.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		a.send_ops_flags = ops;
	}
	qp = ibv_create_qp_ex(ctx, &a);
	if (qp && !end) {
		e->max_send_wr = a.cap.max_send_wr;
		e->max_send_sge = a.cap.max_send_sge;
		e->max_inline_data = a.cap.max_inline_data;
	}
	return qp;
}

static int ends_to_init(const struct wr_ends *e, struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qp_access_flags = (unsigned int)e->access };

	return e->type == IBV_QPT_UD ? qp_to_init(qp) :
				       ibv_modify_qp(qp, &a,
						     IBV_QP_STATE | IBV_QP_PKEY_INDEX |
							     IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static bool ends_connect(struct wr_ends *e)
{
	for (int i = 0; i < 2; i++)
		MUST_EQ(ends_to_init(e, e->qp[i]), 0);
	for (int i = 0; i < 2; i++)
		MUST_EQ(qp_to_rts(e->qp[i], e->qp[!i]->qp_num, 7), 0);
	return true;
}

bool wr_open(struct wr_ends *e, enum ibv_qp_type type, uint64_t ops)
{
	return wr_open_in(e, NULL, type, ops);
}

bool wr_open_in(struct wr_ends *e, struct ibv_pd *pd, enum ibv_qp_type type, uint64_t ops)
{
	struct ibv_xrcd_init_attr x = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
						     IBV_XRCD_INIT_ATTR_OFLAGS,
					.fd = -1,
					.oflags = O_CREAT };
	struct ibv_ah_attr to = own_address();

	*e = (struct wr_ends){ .type = type,
			       .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };
	if (ops & QP_EX_WITH_FLUSH)
		e->access |= ACCESS_FLUSH_GLOBAL;
	e->pd_is_lent = pd;
	MUST(e->pd = pd ? pd : ibv_alloc_pd(ctx));
	MUST(e->channel = ibv_create_comp_channel(ctx));
	for (int i = 0; i < 2; i++) {
		MUST(e->buf[i] = calloc(1, BUF_BYTES));
		MUST(e->mr[i] = ibv_reg_mr(e->pd, e->buf[i], BUF_BYTES, e->access));
		MUST(e->cq[i] = ibv_create_cq(ctx, 64, NULL, i ? e->channel : NULL, 0));
	}
	if (type == IBV_QPT_XRC_SEND) {
		MUST(e->xrcd = ibv_open_xrcd(ctx, &x));
		MUST(e->srq = xrc_srq(e->pd, e->xrcd, e->cq[1]));
		MUST_EQ(ibv_get_srq_num(e->srq, &e->srqn), 0);
	}
	if (type == IBV_QPT_UD)
		MUST(e->ah = ibv_create_ah(e->pd, &to));
	MUST(e->lent = ibv_reg_mr(e->pd, e->buf[0], BUF_BYTES,
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND));
	MUST(e->mw = ibv_alloc_mw(e->pd, IBV_MW_TYPE_2));
	for (int i = 0; i < 2; i++)
		MUST(e->qp[i] = ends_qp(e, i, ops));
	MUST(!ops == !(e->ex = ibv_qp_to_qp_ex(e->qp[0])));
	return ends_connect(e);
}

bool wr_close(struct wr_ends *e)
{
	bool good = true;

	for (int i = 0; i < 2; i++)
		good &= !e->qp[i] || !ibv_destroy_qp(e->qp[i]);
	good &= !e->ah || !ibv_destroy_ah(e->ah);
	good &= !e->mw || !ibv_dealloc_mw(e->mw);
	good &= !e->lent || !ibv_dereg_mr(e->lent);
	good &= !e->srq || !ibv_destroy_srq(e->srq);
	good &= !e->xrcd || !ibv_close_xrcd(e->xrcd);
	for (int i = 0; i < 2; i++) {
		good &= !e->cq[i] || !ibv_destroy_cq(e->cq[i]);
		good &= !e->mr[i] || !ibv_dereg_mr(e->mr[i]);
		free(e->buf[i]);
	}
	good &= !e->channel || !ibv_destroy_comp_channel(e->channel);
	good &= !e->pd || e->pd_is_lent || !ibv_dealloc_pd(e->pd);
	if (!good)
		printf("# something refused to be destroyed\n");
	return good;
}

bool wr_again(struct wr_ends *e)
{
	struct ibv_wc wc;

	for (int i = 0; i < 2; i++)
		MUST_EQ(qp_to_state(e->qp[i], IBV_QPS_RESET), 0);
	for (int i = 0; i < 2; i++)
		while (ibv_poll_cq(e->cq[i], 1, &wc) > 0)
			;
	return ends_connect(e);
}

struct wr_args wr_args_of(struct wr_ends *e, enum wr_code op)
{
	static struct ibv_mw_bind_info bind;
	struct wr_args a = { .rkey = e->mr[1]->rkey,
			     .remote = (uintptr_t)e->buf[1] + REMOTE_AT,
			     .imm = htonl(0x1234),
			     .mw = e->mw,
			     .bind = &bind,
			     .word = "8 bytes!",
			     .length = 8,
			     .type = FLUSH_TYPE_GLOBAL };

	bind = (struct ibv_mw_bind_info){ .mr = e->lent,
					  .addr = (uintptr_t)e->buf[0] + WINDOW_AT,
					  .length = WINDOW_SIZE,
					  .mw_access_flags = IBV_ACCESS_REMOTE_WRITE };
	if (op == OP_BIND)
		a.rkey = ibv_inc_rkey(e->mw->rkey);
	else if (op == OP_LOCAL_INV)
		a.rkey = e->mw->rkey;
	return a;
}

void wr_build(struct wr_ends *e, enum wr_code op, const struct wr_args *a)
{
	struct ibv_qp_ex *ex = e->ex;
	wr_flush_fn *flush = (wr_flush_fn *)wr_member(ex, WR_FLUSH_AT);

	switch (op) {
	case OP_CMP_SWP:
		ibv_wr_atomic_cmp_swp(ex, a->rkey, a->remote, a->compare, a->swap_or_add);
		break;
	case OP_FETCH_ADD: ibv_wr_atomic_fetch_add(ex, a->rkey, a->remote, a->swap_or_add); break;
	case OP_BIND: ibv_wr_bind_mw(ex, a->mw, a->rkey, a->bind); break;
	case OP_LOCAL_INV: ibv_wr_local_inv(ex, a->rkey); break;
	case OP_READ: ibv_wr_rdma_read(ex, a->rkey, a->remote); break;
	case OP_WRITE: ibv_wr_rdma_write(ex, a->rkey, a->remote); break;
	case OP_WRITE_IMM: ibv_wr_rdma_write_imm(ex, a->rkey, a->remote, a->imm); break;
	case OP_SEND: ibv_wr_send(ex); break;
	case OP_SEND_IMM: ibv_wr_send_imm(ex, a->imm); break;
	case OP_SEND_INV: ibv_wr_send_inv(ex, a->rkey); break;
	case OP_FLUSH: flush(ex, a->rkey, a->remote, a->length, a->type, a->level); break;
	case OP_ATOMIC_WRITE: ibv_wr_atomic_write(ex, a->rkey, a->remote, a->word); break;
	case OP_TSO:
	case OPS: break;
	}
}

void wr_address(struct wr_ends *e)
{
	if (e->type == IBV_QPT_UD)
		ibv_wr_set_ud_addr(e->ex, e->ah, e->qp[1]->qp_num, UD_QKEY);
	else if (e->type == IBV_QPT_XRC_SEND)
		ibv_wr_set_xrc_srqn(e->ex, e->srqn);
}

int wr_recv(struct wr_ends *e, uint64_t wr_id, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)e->buf[1], length, e->mr[1]->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) : ibv_post_recv(e->qp[1], &wr, &bad);
}

void wr_add_send(struct wr_ends *e, uint64_t wr_id, uint32_t length)
{
	e->ex->wr_id = wr_id;
	e->ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(e->ex);
	wr_address(e);
	ibv_wr_set_sge(e->ex, e->mr[0]->lkey, (uintptr_t)e->buf[0], length);
}

bool wr_completed(struct ibv_cq *cq, uint64_t wr_id, int opcode, struct ibv_wc *wc)
{
	MUST(wait_wc(cq, wc));
	MUST_EQ(wc->status, IBV_WC_SUCCESS);
	MUST_EQ(wc->opcode, opcode);
	MUST_EQ(wc->wr_id, wr_id);
	return true;
}

bool wr_nothing_was_posted(struct wr_ends *e)
{
	struct ibv_wc wc;

	memcpy(e->buf[0], "probe", 5);
	MUST_EQ(wr_recv(e, 901, 1000), 0);
	ibv_wr_start(e->ex);
	wr_add_send(e, 900, 5);
	MUST_EQ(ibv_wr_complete(e->ex), 0);
	MUST(wr_completed(e->cq[1], 901, IBV_WC_RECV, &wc));
	MUST_EQ(wc.byte_len, 5 + wr_grh(e));
	MUST_EQ(memcmp(e->buf[1] + wr_grh(e), "probe", 5), 0);
	MUST(wr_completed(e->cq[0], 900, IBV_WC_SEND, &wc));
	MUST(cq_is_empty(e->cq[0]) && cq_is_empty(e->cq[1]));
	return true;
}

bool on_service(enum ibv_qp_type type, bool (*body)(struct wr_ends *e))
{
	struct wr_ends e;
	bool good = wr_open(&e, type, wr_ops_of(type)) && body(&e);

	return wr_close(&e) && good;
}
