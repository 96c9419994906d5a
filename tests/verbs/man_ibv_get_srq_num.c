/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* ibv_get_srq_num(3) */
#include "man.h"

#define SRQS 5

/* SRQs of one domain with a CQ each, and a pair of XRC QPs. */
struct domain {
	struct ibv_pd *pd;
	struct ibv_xrcd *xrcd;
	struct ibv_cq *send_cq, *cq[SRQS];
	struct ibv_srq *srq[SRQS];
	struct ibv_qp *from, *to;
};

static bool domain_open(struct domain *d)
{
	struct ibv_xrcd_init_attr init = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							IBV_XRCD_INIT_ATTR_OFLAGS,
					   .fd = -1,
					   .oflags = O_CREAT };
	struct ibv_qp_init_attr_ex from = { .qp_type = IBV_QPT_XRC_SEND,
					    .comp_mask = IBV_QP_INIT_ATTR_PD,
					    .cap = { .max_send_wr = QUEUE } };
	struct ibv_qp_init_attr_ex to = { .qp_type = IBV_QPT_XRC_RECV,
					  .comp_mask = IBV_QP_INIT_ATTR_XRCD };

	MUST(d->pd = from.pd = ibv_alloc_pd(ctx));
	MUST(d->xrcd = to.xrcd = ibv_open_xrcd(ctx, &init));
	MUST(d->send_cq = from.send_cq = ibv_create_cq(ctx, QUEUE, NULL, NULL, 0));
	for (int i = 0; i < SRQS; i++) {
		MUST(d->cq[i] = ibv_create_cq(ctx, QUEUE, NULL, NULL, 0));
		MUST(d->srq[i] = xrc_srq(d->pd, d->xrcd, d->cq[i]));
	}
	MUST((d->from = ibv_create_qp_ex(ctx, &from)) && (d->to = ibv_create_qp_ex(ctx, &to)));
	MUST_EQ(qp_to_init(d->from), 0);
	MUST_EQ(qp_to_init(d->to), 0);
	MUST_EQ(qp_to_rtr(d->to, d->from->qp_num), 0);
	MUST_EQ(qp_to_rts(d->from, d->to->qp_num, 7), 0);
	return true;
}

static bool domain_close(struct domain *d)
{
	MUST_EQ(ibv_destroy_qp(d->from), 0);
	MUST_EQ(ibv_destroy_qp(d->to), 0);
	for (int i = 0; i < SRQS; i++) {
		MUST_EQ(ibv_destroy_srq(d->srq[i]), 0);
		MUST_EQ(ibv_destroy_cq(d->cq[i]), 0);
	}
	MUST_EQ(ibv_destroy_cq(d->send_cq), 0);
	MUST_EQ(ibv_close_xrcd(d->xrcd), 0);
	MUST_EQ(ibv_dealloc_pd(d->pd), 0);
	return true;
}

/*
 * "return srq number associated with the given XRC shared receive queue": the number in a request
 */
static bool requests_name_it(void)
{
	struct domain d;

	MUST(domain_open(&d));
	for (int i = 0; i < SRQS; i++) {
		struct ibv_send_wr wr = { .wr_id = 3,
					  .opcode = IBV_WR_SEND,
					  .send_flags = IBV_SEND_SIGNALED },
				   *bad;
		struct ibv_recv_wr rr = { .wr_id = 40 + (uint64_t)i }, *bad_rr;
		uint32_t again = 0;
		struct ibv_wc wc;

		MUST_EQ(ibv_get_srq_num(d.srq[i], &wr.qp_type.xrc.remote_srqn), 0);
		MUST_EQ(ibv_get_srq_num(d.srq[i], &again), 0);
		MUST_EQ(wr.qp_type.xrc.remote_srqn, again);
		MUST(again < 1 << 24);
		MUST_EQ(ibv_post_srq_recv(d.srq[i], &rr, &bad_rr), 0);
		MUST_EQ(ibv_post_send(d.from, &wr, &bad), 0);
		MUST(wait_wc(d.send_cq, &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST(wait_wc(d.cq[i], &wc));
		MUST_EQ(wc.wr_id, 40 + i);
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
	}
	return domain_close(&d);
}

/* Each has its own number, also SRQs of another domain. */
static bool numbers_are_unique(void)
{
	uint32_t number[2 * SRQS];
	struct domain d[2];

	MUST(domain_open(&d[0]) && domain_open(&d[1]));
	for (int i = 0; i < 2 * SRQS; i++) {
		MUST_EQ(ibv_get_srq_num(d[i / SRQS].srq[i % SRQS], &number[i]), 0);
		for (int k = 0; k < i; k++)
			MUST(number[k] != number[i]);
	}
	return domain_close(&d[1]) && domain_close(&d[0]);
}

/* "or the value of errno on failure": only XRC SRQs have a number */
static bool others_have_none(void)
{
	struct ibv_srq_init_attr a = { .attr = { .max_wr = 2, .max_sge = 1 } };
	struct ibv_cq *cq = ibv_create_cq(ctx, 10, NULL, NULL, 0);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_srq *srq[2];
	uint32_t number = 0xabcdef01;

	MUST(pd && cq && (srq[0] = ibv_create_srq(pd, &a)) && (srq[1] = tag_srq(pd, cq)));
	for (int i = 0; i < 2; i++) {
		MUST_EQ(ibv_get_srq_num(srq[i], &number), EINVAL);
		MUST_EQ(number, 0xabcdef01);
		MUST_EQ(ibv_destroy_srq(srq[i]), 0);
	}
	MUST_EQ(ibv_destroy_cq(cq), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

const struct test_case man_cases[] = {
	CASE(requests_name_it),
	CASE(numbers_are_unique),
	CASE(others_have_none),
	{ 0 },
};
