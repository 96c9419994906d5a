/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ibv_create_srq_ex(3): the basic type, and what is refused. */
#include "man.h"

static bool basic_with_and_without_its_type(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);

	MUST(pd);
	for (int typed = 0; typed < 2; typed++) {
		struct ibv_srq_init_attr_ex a = { .srq_context = pd, .attr = { .max_wr = 5, .max_sge = 2 }, .pd = pd,
						  .comp_mask = IBV_SRQ_INIT_ATTR_PD | (typed ? IBV_SRQ_INIT_ATTR_TYPE : 0) };
		struct ibv_srq *srq;

		a.srq_type = IBV_SRQT_BASIC;
		MUST(srq = ibv_create_srq_ex(ctx, &a));
		MUST(srq->srq_context == pd && srq->pd == pd && srq->context == ctx);
		/* "the values of max_wr and max_sge will be greater than or equal to the values requested" */
		MUST(a.attr.max_wr >= 5 && a.attr.max_sge >= 2);
		MUST_EQ(ibv_destroy_srq(srq), 0);
	}
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

static bool refuses(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	const struct ibv_srq_init_attr_ex good = { .attr = { .max_wr = 5, .max_sge = 2 }, .pd = pd, .srq_type = IBV_SRQT_BASIC,
						   .comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE };
	struct ibv_srq_init_attr_ex a;

	MUST(pd);
#define WITH(field, value) (a = good, a.field = (value), ibv_create_srq_ex(ctx, &a))
	MUST_FAIL(WITH(srq_type, 99), EINVAL);
	MUST_FAIL(WITH(attr.max_wr, 0), EINVAL);
	MUST_FAIL(WITH(attr.max_sge, 1000), EINVAL);
	MUST_FAIL(WITH(comp_mask, IBV_SRQ_INIT_ATTR_TYPE), EINVAL); /* no PD */
	MUST_FAIL(WITH(comp_mask, good.comp_mask | 1u << 30), EINVAL);
#undef WITH
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

static bool tag_matching_is_claimed_or_refused(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 10, NULL, NULL, 0);
	struct ibv_srq_init_attr_ex a = { .attr = { .max_wr = 5, .max_sge = 1 }, .pd = pd, .cq = cq, .srq_type = IBV_SRQT_TM,
					  .comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
					  .tm_cap = { .max_num_tags = 4, .max_ops = 4 } };
	struct ibv_device_attr_ex dev;
	struct ibv_srq *srq;

	MUST(pd && cq);
	MUST_EQ(ibv_query_device_ex(ctx, NULL, &dev), 0);
	errno = 0;
	srq = ibv_create_srq_ex(ctx, &a);
	if (dev.tm_caps.max_num_tags) {
		MUST(srq);
		MUST_EQ(ibv_destroy_srq(srq), 0);
	} else {
		MUST(!srq);
		MUST_EQ(errno, EOPNOTSUPP);
	}
	MUST_EQ(ibv_destroy_cq(cq), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

const struct test_case man_cases[] = {
	CASE(basic_with_and_without_its_type),
	CASE(refuses),
	CASE(tag_matching_is_claimed_or_refused),
	{ 0 },
};
