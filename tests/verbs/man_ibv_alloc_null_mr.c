/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san XROCE_CYCLES=1000 */
/* ibv_alloc_null_mr(3). */
#include "man.h"

#define LEN 3000u

/* "allocates a null memory region (MR) that is associated with the protection domain pd" */
static bool associated_with_its_pd(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *mr = ibv_alloc_null_mr(pd);

	MUST(mr && mr->pd == pd && mr->context == ctx);
	/*
	 * "It has the maximum length and only the lkey is valid, the MR is not exposed as an rkey."
	 */
	MUST(mr->length == SIZE_MAX && mr->lkey && !mr->rkey);
	MUST_EQ(ibv_dealloc_pd(pd), EBUSY);
	/* "ibv_dereg_mr() deregisters the MR." */
	MUST_EQ(ibv_dereg_mr(mr), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

/* "A null MR discards all data written to it, and always returns 0 on read." */
static bool zeros_body(struct pair *p)
{
	struct ibv_mr *mr = ibv_alloc_null_mr(p->pd);
	struct ibv_sge out[2] = { { 12345, LEN, mr->lkey }, sge_of(p, 0, 0, 10) };
	struct ibv_sge in[2] = { sge_of(p, 1, 0, LEN), { 0, 10, mr->lkey } };
	struct ibv_send_wr wr = { .sg_list = out, .num_sge = 2, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_recv_wr rr = { .sg_list = in, .num_sge = 2 }, *bad_rr;
	struct ibv_wc wc;

	memset(p->buf[1], 0xee, LEN + 100);
	MUST_EQ(ibv_post_recv(p->qp[1], &rr, &bad_rr), 0);
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.byte_len, LEN + 10);
	for (uint32_t i = 0; i < LEN; i++)
		MUST_EQ(p->buf[1][i], 0);
	MUST_EQ((unsigned char)p->buf[1][LEN], 0xee);
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	return true;
}
ON_PAIR(zeros_out_and_nothing_in, zeros_body)

static int request(struct pair *p, enum ibv_wr_opcode opcode, uint64_t addr, uint32_t rkey,
		   uint32_t length)
{
	struct ibv_sge sge = sge_of(p, 0, 0, length);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_wc wc;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	return !ibv_post_send(p->qp[0], &wr, &bad) && wait_wc(p->cq[0], &wc) ? (int)wc.status : -1;
}

/*
 * "only the lkey is valid". perftest (--use-null-mr) gives that to its peer as an R_Key, and mlx5
 * has it do the same there as in a list (docs/memory.md).
 */
static bool peer_body(struct pair *p)
{
	static const uint64_t at[] = { 0, 12345, UINT64_MAX - LEN };
	struct ibv_mr *mr = ibv_alloc_null_mr(p->pd);
	struct ibv_wc wc;

	for (int i = 0; i < 3; i++) {
		memset(p->buf[0], 0xee, LEN + 1);
		MUST_EQ(request(p, IBV_WR_RDMA_WRITE, at[i], mr->lkey, LEN), IBV_WC_SUCCESS);
		MUST_EQ(request(p, IBV_WR_RDMA_READ, at[i], mr->lkey, LEN), IBV_WC_SUCCESS);
		for (uint32_t k = 0; k < LEN; k++)
			MUST_EQ(p->buf[0][k], 0);
		MUST_EQ((unsigned char)p->buf[0][LEN], 0xee);
	}
	MUST_EQ(post_recv(p, 7, 0, 0), 0);
	MUST_EQ(request(p, IBV_WR_RDMA_WRITE_WITH_IMM, 4096, mr->lkey, LEN), IBV_WC_SUCCESS);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.byte_len, LEN);
	MUST_EQ(request(p, IBV_WR_RDMA_READ, 0, mr->lkey, 0), IBV_WC_SUCCESS);
	MUST(no_async_event());
	MUST_EQ(ibv_dereg_mr(mr), 0);
	return true;
}
ON_PAIR(peers_read_zeros_and_write_nothing, peer_body)

/* The same on UC, whose requester gets no answer. */
static bool uc_body(struct pair *p)
{
	struct ibv_mr *mr = ibv_alloc_null_mr(p->pd);
	struct ibv_wc wc;

	MUST_EQ(post_recv(p, 7, 0, 0), 0);
	MUST_EQ(request(p, IBV_WR_RDMA_WRITE_WITH_IMM, 4096, mr->lkey, LEN), IBV_WC_SUCCESS);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.byte_len, LEN);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	return true;
}
ON_PAIR(peers_of_uc_write_nothing, uc_body, .type = IBV_QPT_UC)

static bool refused(struct pair *p, enum ibv_wr_opcode opcode, uint64_t addr, uint32_t rkey)
{
	MUST_EQ(request(p, opcode, addr, rkey, 8), IBV_WC_REM_ACCESS_ERR);
	MUST(take_async(IBV_EVENT_QP_ACCESS_ERR, p->qp[1]));
	return true;
}

static bool atomic_body(struct pair *p)
{
	struct ibv_mr *mr = ibv_alloc_null_mr(p->pd);

	MUST(refused(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 4096, mr->lkey));
	MUST_EQ(ibv_dereg_mr(mr), 0);
	return true;
}
ON_PAIR(no_atomics, atomic_body)

static bool other_pd_body(struct pair *p)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *mr = ibv_alloc_null_mr(pd);

	MUST(refused(p, IBV_WR_RDMA_WRITE, 4096, mr->lkey));
	MUST_EQ(ibv_dereg_mr(mr), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}
ON_PAIR(not_of_another_pd, other_pd_body)

static bool gone_body(struct pair *p)
{
	struct ibv_mr *mr = ibv_alloc_null_mr(p->pd);
	const uint32_t lkey = mr->lkey;

	MUST_EQ(ibv_dereg_mr(mr), 0);
	return refused(p, IBV_WR_RDMA_READ, 4096, lkey);
}
ON_PAIR(not_once_it_has_gone, gone_body)

/* "The use of ibv_rereg_mr() or ibv_bind_mw() with this MR is invalid." */
static bool invalid_body(struct pair *p)
{
	struct ibv_mr *mr = ibv_alloc_null_mr(p->pd);
	struct ibv_mw *mw = ibv_alloc_mw(p->pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED,
				    .bind_info = { .mr = mr,
						   .addr = 4096,
						   .length = 64,
						   .mw_access_flags = IBV_ACCESS_REMOTE_READ } };
	struct ibv_wc wc;

	MUST(mr && mw);
	MUST_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND),
		IBV_REREG_MR_ERR_INPUT);
	MUST_EQ(errno, EINVAL);
	MUST_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p->buf[0], 100, 0),
		IBV_REREG_MR_ERR_INPUT);
	MUST_EQ(errno, EINVAL);
	MUST_EQ(ibv_bind_mw(p->qp[1], mw, &bind), 0);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_MW_BIND_ERR);
	MUST_EQ(ibv_dealloc_mw(mw), 0);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	return true;
}
ON_PAIR(neither_reregistered_nor_bound, invalid_body)

const struct test_case man_cases[] = {
	CASE(associated_with_its_pd),
	CASE(zeros_out_and_nothing_in),
	CASE(peers_read_zeros_and_write_nothing),
	CASE(peers_of_uc_write_nothing),
	CASE(no_atomics),
	CASE(not_of_another_pd),
	CASE(not_once_it_has_gone),
	CASE(neither_reregistered_nor_bound),
	{ 0 },
};
