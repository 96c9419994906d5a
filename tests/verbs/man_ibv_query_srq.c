/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* ibv_query_srq(3) */
#include "man.h"

static const struct ibv_srq_attr untouched = { UINT32_MAX, UINT32_MAX, UINT32_MAX };

static bool is_of(struct ibv_srq *srq, uint32_t max_wr, uint32_t max_sge, uint32_t limit)
{
	struct ibv_srq_attr a = untouched;

	MUST_EQ(ibv_query_srq(srq, &a), 0);
	MUST_EQ(a.max_wr, max_wr);
	MUST_EQ(a.max_sge, max_sge);
	MUST_EQ(a.srq_limit, limit);
	return true;
}

static int set_limit(struct ibv_srq *srq, uint32_t limit)
{
	struct ibv_srq_attr a = { .srq_limit = limit };

	return ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT);
}

/*
 * "maximum number of outstanding work requests (WRs) in the SRQ": exactly max_wr can be posted
 */
static bool max_wr_can_be_posted(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 7, .max_sge = 1 } };
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_srq *srq = ibv_create_srq(pd, &init);
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct ibv_srq_attr a = untouched;

	MUST(srq);
	MUST_EQ(ibv_query_srq(srq, &a), 0);
	MUST(a.max_wr >= 7);
	for (uint32_t i = 0; i < a.max_wr; i++)
		MUST_EQ(ibv_post_srq_recv(srq, &wr, &bad), 0);
	MUST_EQ(ibv_post_srq_recv(srq, &wr, &bad), ENOMEM);
	/* posted ones do not count against it */
	MUST(is_of(srq, a.max_wr, a.max_sge, 0));
	MUST_EQ(ibv_destroy_srq(srq), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

/* "maximum number of scatter elements per WR" */
static bool max_sge_can_be_posted(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_sge sge[64] = { 0 };
	struct ibv_device_attr dev;

	MUST_EQ(ibv_query_device(ctx, &dev), 0);
	MUST(dev.max_srq_sge >= 1 && dev.max_srq_sge < 64);
	for (uint32_t asked = 1; asked <= (uint32_t)dev.max_srq_sge; asked++) {
		struct ibv_srq_init_attr init = { .attr = { .max_wr = 2, .max_sge = asked } };
		struct ibv_recv_wr wr = { .sg_list = sge }, *bad;
		struct ibv_srq *srq = ibv_create_srq(pd, &init);
		struct ibv_srq_attr a = untouched;

		MUST(srq);
		MUST_EQ(ibv_query_srq(srq, &a), 0);
		MUST(a.max_sge >= asked && a.max_sge <= (uint32_t)dev.max_srq_sge);
		wr.num_sge = (int)a.max_sge;
		MUST_EQ(ibv_post_srq_recv(srq, &wr, &bad), 0);
		wr.num_sge = (int)a.max_sge + 1;
		MUST_EQ(ibv_post_srq_recv(srq, &wr, &bad), EINVAL);
		MUST_EQ(ibv_destroy_srq(srq), 0);
	}
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

static bool limit_body(struct pair *p)
{
	struct ibv_srq_attr a = untouched;
	struct ibv_wc wc;

	MUST_EQ(ibv_query_srq(p->srq, &a), 0);
	/*
	 * "If the value returned for srq_limit is 0, then the SRQ limit reached [...] event is not
	 * [...] armed"
	 */
	MUST_EQ(a.srq_limit, 0);
	for (uint64_t i = 0; i < 3; i++)
		MUST_EQ(post_recv(p, i, 0, 100), 0);
	MUST_EQ(set_limit(p->srq, 2), 0);
	/* "the limit value of the SRQ" */
	MUST(is_of(p->srq, a.max_wr, a.max_sge, 2));
	for (uint64_t i = 0; i < 2; i++) {
		MUST(no_async_event());
		MUST(is_of(p->srq, a.max_wr, a.max_sge, 2));
		MUST_EQ(post_send(p, 0, 0, 1, 0), 0);
		MUST(wait_wc(p->cq[1], &wc));
	}
	/* "(or no longer) armed" */
	MUST(take_async(IBV_EVENT_SRQ_LIMIT_REACHED, p->srq));
	MUST(is_of(p->srq, a.max_wr, a.max_sge, 0));
	/* "and no asynchronous events will be generated until the event is rearmed" */
	MUST_EQ(post_send(p, 0, 0, 1, 0), 0);
	MUST(wait_wc(p->cq[1], &wc));
	MUST(no_async_event());
	MUST_EQ(post_recv(p, 4, 0, 100), 0);
	MUST_EQ(set_limit(p->srq, 1), 0);
	MUST(is_of(p->srq, a.max_wr, a.max_sge, 1));
	/* as if it had been armed never */
	MUST_EQ(set_limit(p->srq, 0), 0);
	MUST(is_of(p->srq, a.max_wr, a.max_sge, 0));
	return no_async_event();
}

ON_PAIR(limit_is_0_while_not_armed, limit_body, .srq = true)

/* Every type has them, before there is a QP. */
static bool of_every_type(void)
{
	struct ibv_xrcd_init_attr init = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							IBV_XRCD_INIT_ATTR_OFLAGS,
					   .fd = -1,
					   .oflags = O_CREAT };
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 10, NULL, NULL, 0);
	struct ibv_xrcd *xrcd = ibv_open_xrcd(ctx, &init);
	struct ibv_srq *srq[2];

	MUST(pd && cq && xrcd);
	MUST((srq[0] = xrc_srq(pd, xrcd, cq)) && (srq[1] = tag_srq(pd, cq)));
	for (int i = 0; i < 2; i++) {
		struct ibv_srq_attr a = { .max_wr = 5 };

		MUST(is_of(srq[i], QUEUE, 2, 0));
		MUST_EQ(ibv_modify_srq(srq[i], &a, IBV_SRQ_MAX_WR), 0);
		MUST(is_of(srq[i], 5, 2, 0));
		MUST_EQ(ibv_destroy_srq(srq[i]), 0);
	}
	MUST_EQ(ibv_close_xrcd(xrcd), 0);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

const struct test_case man_cases[] = {
	CASE(max_wr_can_be_posted),
	CASE(max_sge_can_be_posted),
	CASE(limit_is_0_while_not_armed),
	CASE(of_every_type),
	{ 0 },
};
