/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* ibv_create_srq(3), ibv_destroy_srq(3) */
#include "man.h"

static bool attributes_are_written_back(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_device_attr dev;

	MUST(pd);
	MUST_EQ(ibv_query_device(ctx, &dev), 0);
	/*
	 * "the values of max_wr and max_sge will be greater than or equal to the values requested"
	 */
	for (uint32_t wr = 1; wr <= (uint32_t)dev.max_srq_wr; wr = wr * 3 + 1) {
		struct ibv_srq_init_attr a = { .attr = { .max_wr = wr,
							 .max_sge =
								 wr % (uint32_t)dev.max_srq_sge + 1,
							 .srq_limit = 77777 } };
		struct ibv_srq_attr q;
		struct ibv_srq *srq = ibv_create_srq(pd, &a);

		MUST(srq);
		MUST(a.attr.max_wr >= wr && a.attr.max_sge >= wr % (uint32_t)dev.max_srq_sge + 1);
		/* "irrelevant for ibv_create_srq" */
		MUST_EQ(ibv_query_srq(srq, &q), 0);
		MUST_EQ(q.srq_limit, 0);
		MUST_EQ(q.max_wr, a.attr.max_wr);
		MUST_EQ(q.max_sge, a.attr.max_sge);
		MUST_EQ(ibv_destroy_srq(srq), 0);
	}
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

static bool associated_with_the_pd(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_srq_init_attr a = { .srq_context = &a, .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &a);

	MUST(srq && srq->pd == pd && srq->context == ctx && srq->srq_context == &a);
	MUST_EQ(ibv_dealloc_pd(pd), EBUSY);
	MUST_EQ(ibv_destroy_srq(srq), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

static bool null_if_the_request_fails(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_device_attr dev;
	struct ibv_srq_init_attr a;

	MUST_EQ(ibv_query_device(ctx, &dev), 0);
#define WITH(wr, sge)                                                                              \
	(a = (struct ibv_srq_init_attr){ .attr = { .max_wr = (wr), .max_sge = (sge) } },           \
	 ibv_create_srq(pd, &a))
	MUST_FAIL(WITH(0, 1), EINVAL);
	MUST_FAIL(WITH((uint32_t)dev.max_srq_wr + 1, 1), EINVAL);
	MUST_FAIL(WITH(UINT32_MAX, 1), EINVAL);
	MUST_FAIL(WITH(1, (uint32_t)dev.max_srq_sge + 1), EINVAL);
	MUST_FAIL(WITH(1, UINT32_MAX), EINVAL);
#undef WITH
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

/* "ibv_destroy_srq() fails if any queue pair is still associated with this SRQ." */
static bool destroy_fails_while_a_qp_uses_it(void)
{
	struct ibv_srq_init_attr a = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_cq *cq = ibv_create_cq(ctx, 10, NULL, NULL, 0);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_srq *srq = ibv_create_srq(pd, &a);
	struct ibv_qp *one, *two;
	struct ibv_wc wc;

	MUST((one = qp_to_itself(pd, cq, cq, srq)) && (two = qp_to_itself(pd, cq, cq, srq)));
	MUST_EQ(ibv_destroy_srq(srq), EBUSY);
	MUST_EQ(ibv_destroy_qp(one), 0);
	MUST_EQ(ibv_destroy_srq(srq), EBUSY);
	/* and it works still */
	MUST(ping(two, 9, 0) && wait_wc(cq, &wc));
	MUST_EQ(wc.wr_id, 9);
	MUST_EQ(wc.opcode, IBV_WC_RECV);
	MUST_EQ(ibv_destroy_qp(two), 0);
	MUST_EQ(ibv_destroy_srq(srq), 0);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

/* Receives that were never taken go with it. */
static bool destroyed_with_receives_posted(void)
{
	struct ibv_srq_init_attr a = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_srq *srq = ibv_create_srq(pd, &a);
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;

	MUST(srq);
	MUST_EQ(ibv_post_srq_recv(srq, &wr, &bad), 0);
	MUST_EQ(ibv_destroy_srq(srq), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

const struct test_case man_cases[] = {
	CASE(attributes_are_written_back),
	CASE(associated_with_the_pd),
	CASE(null_if_the_request_fails),
	CASE(destroy_fails_while_a_qp_uses_it),
	CASE(destroyed_with_receives_posted),
	{ 0 },
};
