/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tm.h"

bool tm_open(struct tags *t)
{
	struct ibv_cq_init_attr_ex ex = {
		.cqe = 64, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_TM_INFO
	};
	struct ibv_srq_init_attr_ex a = {
		.attr = { .max_wr = 8, .max_sge = 1 },
		.srq_type = IBV_SRQT_TM,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_TM,
		.tm_cap = { .max_num_tags = MAX_TAGS, .max_ops = MAX_OPS }
	};
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 8, 8, 1, 1, 0 } };

	memset(t, 0, sizeof(*t));
	MUST(t->pd = a.pd = ibv_alloc_pd(ctx));
	MUST(t->send_cq = ibv_create_cq(ctx, 64, NULL, NULL, 0));
	MUST(t->qp_cq = ibv_create_cq(ctx, 64, NULL, NULL, 0));
	MUST(t->cq = ibv_create_cq_ex(ctx, &ex));
	a.cq = ibv_cq_ex_to_cq(t->cq);
	MUST(t->srq = ibv_create_srq_ex(ctx, &a));
	init.send_cq = init.recv_cq = t->send_cq;
	MUST(t->from = ibv_create_qp(t->pd, &init));
	init.send_cq = init.recv_cq = t->qp_cq;
	init.srq = t->srq;
	MUST(t->to = ibv_create_qp(t->pd, &init));
	MUST_EQ(qp_to_init(t->from), 0);
	MUST_EQ(qp_to_init(t->to), 0);
	MUST_EQ(qp_to_rts(t->from, t->to->qp_num, 7), 0);
	MUST_EQ(qp_to_rts(t->to, t->from->qp_num, 7), 0);
	MUST(t->buf = calloc(2, BUF_BYTES));
	MUST(t->mr = ibv_reg_mr(t->pd, t->buf, 2 * BUF_BYTES,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
	for (int i = 0; i < BUF_BYTES; i++)
		t->buf[i] = (char)(i * 7 + i / 256);
	return true;
}

bool tm_close(struct tags *t)
{
	bool good = (!t->from || !ibv_destroy_qp(t->from)) && (!t->to || !ibv_destroy_qp(t->to));

	good &= !t->srq || !ibv_destroy_srq(t->srq);
	good &= !t->cq || !ibv_destroy_cq(ibv_cq_ex_to_cq(t->cq));
	good &= (!t->send_cq || !ibv_destroy_cq(t->send_cq)) &&
		(!t->qp_cq || !ibv_destroy_cq(t->qp_cq));
	good &= !t->mr || !ibv_dereg_mr(t->mr);
	good &= !t->pd || !ibv_dealloc_pd(t->pd);
	free(t->buf);
	MUST(good);
	return true;
}

char *tm_receiver(struct tags *t)
{
	return t->buf + BUF_BYTES;
}

bool tm_next(struct tags *t, struct seen *s)
{
	struct ibv_poll_cq_attr start = { 0 };
	long long end = clock_ns(CLOCK_MONOTONIC) + WAIT_MS * 1000000ll;
	int err;

	while ((err = ibv_start_poll(t->cq, &start)) == ENOENT && clock_ns(CLOCK_MONOTONIC) < end)
		;
	MUST_EQ(err, 0);
	*s = (struct seen){ .wr_id = t->cq->wr_id,
			    .status = t->cq->status,
			    .opcode = ibv_wc_read_opcode(t->cq),
			    .flags = ibv_wc_read_wc_flags(t->cq),
			    .byte_len = ibv_wc_read_byte_len(t->cq),
			    .vendor_err = ibv_wc_read_vendor_err(t->cq) };
	ibv_wc_read_tm_info(t->cq, &s->info);
	ibv_end_poll(t->cq);
	return true;
}

bool tm_nothing_more(struct tags *t)
{
	struct ibv_poll_cq_attr start = { 0 };

	MUST_EQ(ibv_start_poll(t->cq, &start), ENOENT);
	return true;
}

int tm_post(struct tags *t, struct ibv_ops_wr *wr)
{
	struct ibv_ops_wr *bad = NULL;
	int err = ibv_post_srq_ops(t->srq, wr, &bad);

	return err && bad != wr ? -1 : err;
}

struct ibv_ops_wr tm_an_add(struct tags *t, uint64_t recv_wr_id, uint64_t tag,
			    struct ibv_sge *sge, uint32_t offset, uint32_t len)
{
	*sge = (struct ibv_sge){ (uintptr_t)tm_receiver(t) + offset, len, t->mr->lkey };
	return (struct ibv_ops_wr){ .wr_id = 1000 + recv_wr_id,
				    .opcode = IBV_WR_TAG_ADD,
				    .tm = { .handle = UINT32_MAX,
					    .add = { .recv_wr_id = recv_wr_id,
						     .sg_list = sge,
						     .num_sge = 1,
						     .tag = tag,
						     .mask = UINT64_MAX } } };
}

bool tm_add(struct tags *t, uint64_t recv_wr_id, uint64_t tag, uint32_t offset, uint32_t len)
{
	struct ibv_sge sge;
	struct ibv_ops_wr wr = tm_an_add(t, recv_wr_id, tag, &sge, offset, len);

	MUST_EQ(tm_post(t, &wr), 0);
	MUST(wr.tm.handle != UINT32_MAX);
	return true;
}

bool tm_sync_to(struct tags *t, uint32_t count)
{
	struct ibv_ops_wr wr = { .opcode = IBV_WR_TAG_SYNC,
				 .flags = IBV_OPS_TM_SYNC,
				 .tm.unexpected_cnt = count };

	MUST_EQ(tm_post(t, &wr), 0);
	return true;
}

bool tm_post_receive(struct tags *t, uint64_t n)
{
	struct ibv_sge sge = { (uintptr_t)tm_receiver(t) + RECEIVES + n * RECEIVE, RECEIVE,
			       t->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = n, .sg_list = &sge, .num_sge = 1 }, *bad;

	MUST_EQ(ibv_post_srq_recv(t->srq, &wr, &bad), 0);
	return true;
}

bool tm_send_message(struct tags *t, uint8_t opcode, uint64_t tag, uint32_t app_ctx, uint32_t len)
{
	struct ibv_tmh h = { .opcode = opcode, .app_ctx = htonl(app_ctx), .tag = htobe64(tag) };
	struct ibv_sge sge = { (uintptr_t)t->buf, (uint32_t)sizeof(h) + len, t->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc;

	memcpy(t->buf, &h, sizeof(h));
	MUST_EQ(ibv_post_send(t->from, &wr, &bad), 0);
	MUST(wait_wc(t->send_cq, &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.opcode, IBV_WC_SEND);
	return true;
}

bool tm_send_eager(struct tags *t, uint64_t tag, uint32_t len)
{
	return tm_send_message(t, IBV_TMH_EAGER, tag, (uint32_t)tag + 1, len);
}
