/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "limits.h"

bool limits_long(void)
{
	return getenv("XROCE_LIMITS_LONG");
}

bool loop_begin(struct loop *l, int cqe)
{
	*l = (struct loop){ .pd = ibv_alloc_pd(ctx) };
	MUST(l->pd);
	MUST(l->scq = ibv_create_cq(ctx, cqe, NULL, NULL, 0));
	MUST(l->rcq = ibv_create_cq(ctx, cqe, NULL, NULL, 0));
	MUST(l->buf = calloc(2, BUF_BYTES));
	MUST(l->mr = ibv_reg_mr(l->pd, l->buf, 2 * BUF_BYTES, ALL_ACCESS));
	return true;
}

struct ibv_qp *loop_qp(struct loop *l, enum ibv_qp_type type, struct ibv_qp_cap cap)
{
	struct ibv_qp_init_attr a = { .send_cq = l->scq,
				      .recv_cq = l->rcq,
				      .srq = l->srq,
				      .cap = cap,
				      .qp_type = type,
				      .sq_sig_all = 1 };
	struct ibv_qp *qp = ibv_create_qp(l->pd, &a);

	l->cap = a.cap;
	return qp;
}

bool loop_open(struct loop *l, enum ibv_qp_type type, int cqe, struct ibv_qp_cap cap)
{
	MUST(loop_begin(l, cqe));
	MUST(l->qp = loop_qp(l, type, cap));
	MUST_EQ(qp_to_init(l->qp), 0);
	MUST_EQ(qp_to_rts(l->qp, l->qp->qp_num, 7), 0);
	return true;
}

bool loop_close(struct loop *l)
{
	MUST(!l->qp || !ibv_destroy_qp(l->qp));
	MUST(!l->srq || !ibv_destroy_srq(l->srq));
	MUST(!l->scq || !ibv_destroy_cq(l->scq));
	MUST(!l->rcq || !ibv_destroy_cq(l->rcq));
	MUST(!l->mr || !ibv_dereg_mr(l->mr));
	free(l->buf);
	MUST(!l->pd || !ibv_dealloc_pd(l->pd));
	return true;
}

bool loop_done(struct ibv_cq *cq, uint64_t wr_id, uint32_t byte_len)
{
	struct ibv_wc wc;

	MUST(wait_wc(cq, &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.wr_id, wr_id);
	if (byte_len != UINT32_MAX)
		MUST_EQ(wc.byte_len, byte_len);
	return true;
}

struct ibv_send_wr loop_send(const struct loop *l, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
			     int num_sge)
{
	struct ibv_send_wr wr = { .opcode = opcode, .sg_list = sge, .num_sge = num_sge };

	wr.wr.rdma.remote_addr = (uintptr_t)l->buf + BUF_BYTES;
	wr.wr.rdma.rkey = l->mr->rkey;
	return wr;
}

struct ibv_device_attr limits_device(void)
{
	struct ibv_device_attr a = { 0 };

	ibv_query_device(ctx, &a);
	return a;
}

struct ibv_port_attr limits_port(void)
{
	struct ibv_port_attr a = { 0 };

	ibv_query_port(ctx, 1, &a);
	return a;
}

void loop_elements(const struct loop *l, struct ibv_sge *sge, int n, uint32_t offset)
{
	for (int i = 0; i < n; i++)
		sge[i] = (struct ibv_sge){ .addr = (uintptr_t)l->buf + offset +
						   2u * (uint32_t)(n - 1 - i),
					   .length = 1,
					   .lkey = l->mr->lkey };
}

bool qp_to_rtr_with(struct ibv_qp *qp, int dest_rd_atomic, int mtu, int pkey_index, int sgid,
		    int want)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR,
				 .path_mtu = mtu,
				 .dest_qp_num = qp->qp_num,
				 .rq_psn = 7,
				 .max_dest_rd_atomic = (uint8_t)dest_rd_atomic,
				 .min_rnr_timer = 1,
				 .pkey_index = (uint16_t)pkey_index,
				 .ah_attr = own_address() };

	a.ah_attr.grh.sgid_index = (uint8_t)sgid;
	MUST_EQ(ibv_modify_qp(qp, &a,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				      IBV_QP_MIN_RNR_TIMER | IBV_QP_PKEY_INDEX),
		want);
	MUST_EQ(qp_state_now(qp), want ? IBV_QPS_INIT : IBV_QPS_RTR);
	return true;
}

bool qp_to_rts_with(struct ibv_qp *qp, int rd_atomic, int want)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS,
				 .sq_psn = 7,
				 .max_rd_atomic = (uint8_t)rd_atomic,
				 .timeout = 14,
				 .retry_cnt = 7,
				 .rnr_retry = 7 };

	MUST_EQ(ibv_modify_qp(qp, &a,
			      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
		want);
	MUST_EQ(qp_state_now(qp), want ? IBV_QPS_RTR : IBV_QPS_RTS);
	return true;
}
