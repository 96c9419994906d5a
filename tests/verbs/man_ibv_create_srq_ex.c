/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * ibv_create_srq_ex(3): the three types, and refused arguments. XRC QPs and their traffic are in
 * contract_xrc.c.
 */
#include "man.h"

static bool basic_with_and_without_its_type(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);

	MUST(pd);
	for (int typed = 0; typed < 2; typed++) {
		struct ibv_srq_init_attr_ex a = {
			.srq_context = pd,
			.attr = { .max_wr = 5, .max_sge = 2 },
			.pd = pd,
			.comp_mask = IBV_SRQ_INIT_ATTR_PD | (typed ? IBV_SRQ_INIT_ATTR_TYPE : 0)
		};
		struct ibv_srq *srq;

		a.srq_type = IBV_SRQT_BASIC;
		MUST(srq = ibv_create_srq_ex(ctx, &a));
		MUST(srq->srq_context == pd && srq->pd == pd && srq->context == ctx);
		/*
		 * "the values of max_wr and max_sge will be greater than or equal to the values
		 * requested"
		 */
		MUST(a.attr.max_wr >= 5 && a.attr.max_sge >= 2);
		MUST_EQ(ibv_destroy_srq(srq), 0);
	}
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

static bool refuses(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	const struct ibv_srq_init_attr_ex good = { .attr = { .max_wr = 5, .max_sge = 2 },
						   .pd = pd,
						   .srq_type = IBV_SRQT_BASIC,
						   .comp_mask = IBV_SRQ_INIT_ATTR_PD |
								IBV_SRQ_INIT_ATTR_TYPE };
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

/*
 * "supporting both basic and xrc modes": "XRC domain to associate with the SRQ", "CQ to associate
 * with the SRQ for XRC mode"
 */
static bool xrc_holds_its_domain_and_cq(void)
{
	struct ibv_xrcd_init_attr init = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							IBV_XRCD_INIT_ATTR_OFLAGS,
					   .fd = -1,
					   .oflags = O_CREAT };
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 10, NULL, NULL, 0);
	struct ibv_xrcd *xrcd = ibv_open_xrcd(ctx, &init);
	const struct ibv_srq_init_attr_ex good = { .srq_context = &init,
						   .attr = { .max_wr = 5, .max_sge = 2 },
						   .srq_type = IBV_SRQT_XRC,
						   .pd = pd,
						   .xrcd = xrcd,
						   .cq = cq,
						   .comp_mask = IBV_SRQ_INIT_ATTR_TYPE |
								IBV_SRQ_INIT_ATTR_PD |
								IBV_SRQ_INIT_ATTR_XRCD |
								IBV_SRQ_INIT_ATTR_CQ };
	struct ibv_srq_init_attr_ex a = good;
	struct ibv_srq *srq;

	MUST(pd && cq && xrcd);
	MUST(srq = ibv_create_srq_ex(ctx, &a));
	MUST(srq->srq_context == &init && srq->pd == pd && srq->context == ctx);
	MUST(a.attr.max_wr >= 5 && a.attr.max_sge >= 2);
	MUST_EQ(ibv_destroy_cq(cq), EBUSY);
	MUST_EQ(ibv_close_xrcd(xrcd), EBUSY);
	MUST_EQ(ibv_dealloc_pd(pd), EBUSY);
	MUST_EQ(ibv_destroy_srq(srq), 0);
	/* "Identifies valid fields": without one of these it is no XRC SRQ */
	for (uint32_t bit = 1; bit < IBV_SRQ_INIT_ATTR_RESERVED; bit <<= 1) {
		if (!(good.comp_mask & bit) || bit == IBV_SRQ_INIT_ATTR_TYPE)
			continue;
		a = good;
		a.comp_mask &= ~bit;
		MUST_FAIL(ibv_create_srq_ex(ctx, &a), EINVAL);
	}
	a = good;
	a.attr.max_wr = 0;
	MUST_FAIL(ibv_create_srq_ex(ctx, &a), EINVAL);
	/* what failed holds nothing */
	MUST_EQ(ibv_close_xrcd(xrcd), 0);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

/* What a tag-matching SRQ is made of; the fields of attr. */
struct tm_parts {
	struct ibv_pd *pd;
	struct ibv_cq *cq, *other_cq;
};

static bool tm_open(struct tm_parts *t)
{
	MUST(t->pd = ibv_alloc_pd(ctx));
	MUST(t->cq = ibv_create_cq(ctx, 10, NULL, NULL, 0));
	MUST(t->other_cq = ibv_create_cq(ctx, 10, NULL, NULL, 0));
	return true;
}

static bool tm_close(struct tm_parts *t)
{
	MUST_EQ(ibv_destroy_cq(t->cq), 0);
	MUST_EQ(ibv_destroy_cq(t->other_cq), 0);
	MUST_EQ(ibv_dealloc_pd(t->pd), 0);
	return true;
}

static struct ibv_srq_init_attr_ex tm_attr(const struct tm_parts *t)
{
	return (struct ibv_srq_init_attr_ex){ .srq_context = (void *)t,
					      .attr = { .max_wr = 5, .max_sge = 1 },
					      .pd = t->pd,
					      .cq = t->cq,
					      .srq_type = IBV_SRQT_TM,
					      .comp_mask = IBV_SRQ_INIT_ATTR_PD |
							   IBV_SRQ_INIT_ATTR_TYPE |
							   IBV_SRQ_INIT_ATTR_CQ |
							   IBV_SRQ_INIT_ATTR_TM,
					      .tm_cap = { .max_num_tags = 4, .max_ops = 3 } };
}

/* "tag matching attributes": what ibv_query_device_ex(3) claims can be had, and nothing beyond. */
static bool tag_matching_as_claimed(void)
{
	struct ibv_device_attr_ex dev;
	struct ibv_srq_init_attr_ex a;
	struct ibv_srq *srq;
	struct tm_parts t;
	uint32_t number;

	MUST(tm_open(&t));
	MUST_EQ(ibv_query_device_ex(ctx, NULL, &dev), 0);
	MUST_EQ(dev.tm_caps.flags, IBV_TM_CAP_RC);
	MUST(dev.tm_caps.max_num_tags > 0 && dev.tm_caps.max_ops > 0 && dev.tm_caps.max_sge > 0 &&
	     dev.tm_caps.max_rndv_hdr_size >= 32);
	a = tm_attr(&t);
	a.tm_cap = (struct ibv_tm_cap){ dev.tm_caps.max_num_tags, dev.tm_caps.max_ops };
	MUST(srq = ibv_create_srq_ex(ctx, &a));
	/*
	 * "will update the srq_init_attr_ex struct with the original values of the SRQ that was
	 * created"
	 */
	MUST_EQ(a.tm_cap.max_num_tags, dev.tm_caps.max_num_tags);
	MUST_EQ(a.tm_cap.max_ops, dev.tm_caps.max_ops);
	MUST(a.attr.max_wr >= 5 && a.attr.max_sge >= 1);
	MUST(srq->srq_context == &t && srq->pd == t.pd && srq->context == ctx);
	MUST_EQ(ibv_get_srq_num(srq, &number), EINVAL); /* XRC only */
	MUST_EQ(ibv_destroy_cq(t.cq), EBUSY);
	MUST_EQ(ibv_dealloc_pd(t.pd), EBUSY);
	MUST_EQ(ibv_destroy_srq(srq), 0);
	return tm_close(&t);
}

static bool tag_matching_refuses(void)
{
	struct ibv_srq_init_attr_ex a, good;
	struct ibv_device_attr_ex dev;
	struct tm_parts t;

	MUST(tm_open(&t));
	MUST_EQ(ibv_query_device_ex(ctx, NULL, &dev), 0);
	good = tm_attr(&t);
#define WITH(field, value) (a = good, a.field = (value), ibv_create_srq_ex(ctx, &a))
	MUST_FAIL(WITH(comp_mask, good.comp_mask & ~(uint32_t)IBV_SRQ_INIT_ATTR_PD), EINVAL);
	MUST_FAIL(WITH(comp_mask, good.comp_mask & ~(uint32_t)IBV_SRQ_INIT_ATTR_CQ), EINVAL);
	MUST_FAIL(WITH(pd, NULL), EINVAL);
	MUST_FAIL(WITH(cq, NULL), EINVAL);
	MUST_FAIL(WITH(comp_mask, good.comp_mask & ~(uint32_t)IBV_SRQ_INIT_ATTR_TM), EINVAL);
	MUST_FAIL(WITH(tm_cap.max_num_tags, 0), EINVAL);
	MUST_FAIL(WITH(tm_cap.max_num_tags, dev.tm_caps.max_num_tags + 1), EINVAL);
	MUST_FAIL(WITH(tm_cap.max_num_tags, UINT32_MAX), EINVAL);
	MUST_FAIL(WITH(tm_cap.max_ops, 0), EINVAL);
	MUST_FAIL(WITH(tm_cap.max_ops, dev.tm_caps.max_ops + 1), EINVAL);
	MUST_FAIL(WITH(attr.max_wr, 0), EINVAL);
	MUST_FAIL(WITH(attr.max_sge, 1000), EINVAL);
#undef WITH
	return tm_close(&t);
}

/*
 * "ibv_destroy_srq() fails if any queue pair is still associated with this SRQ"; only RC QPs can be
 * (IBV_TM_CAP_RC).
 */
static bool tag_matching_and_its_queue_pairs(void)
{
	struct ibv_srq_init_attr_ex a;
	struct ibv_qp_init_attr init;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_recv_wr rr = { .wr_id = 5 }, *bad_rr;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_wc wc;
	struct tm_parts t;

	MUST(tm_open(&t));
	a = tm_attr(&t);
	MUST(srq = ibv_create_srq_ex(ctx, &a));
	init = (struct ibv_qp_init_attr){ .send_cq = t.other_cq,
					  .recv_cq = t.other_cq,
					  .srq = srq,
					  .qp_type = IBV_QPT_UD,
					  .cap = { 3, 0, 2, 0, 7 } };
	MUST_FAIL(ibv_create_qp(t.pd, &init), EINVAL);
	init.qp_type = IBV_QPT_UC;
	MUST_FAIL(ibv_create_qp(t.pd, &init), EINVAL);
	init.qp_type = IBV_QPT_RC;
	MUST(qp = ibv_create_qp(t.pd, &init));
	/* its send queue has the requested length, though the SRQ uses it as well */
	MUST_EQ(init.cap.max_send_wr, 3);
	MUST_EQ(init.cap.max_send_sge, 2);
	MUST(init.cap.max_inline_data >= 7);
	MUST_EQ(ibv_destroy_srq(srq), EBUSY);
	MUST_EQ(qp_to_init(qp), 0);
	MUST_EQ(qp_to_rts(qp, qp->qp_num, 7), 0);
	/* receives complete in the SRQ's CQ, sends in the QP's */
	MUST_EQ(ibv_post_srq_recv(srq, &rr, &bad_rr), 0);
	MUST_EQ(ibv_post_send(qp, &wr, &bad), 0);
	MUST(wait_wc(t.cq, &wc));
	MUST_EQ(wc.wr_id, 5);
	MUST_EQ(wc.opcode, IBV_WC_TM_NO_TAG);
	MUST_EQ(wc.byte_len, 0);
	MUST(cq_is_empty(t.other_cq));
	/* RESET takes the QP's completions away, there as well */
	MUST_EQ(ibv_post_srq_recv(srq, &rr, &bad_rr), 0);
	wr.send_flags = IBV_SEND_SIGNALED;
	MUST_EQ(ibv_post_send(qp, &wr, &bad), 0);
	MUST(wait_wc(t.other_cq, &wc));
	MUST_EQ(wc.opcode, IBV_WC_SEND);
	MUST_EQ(qp_to_state(qp, IBV_QPS_RESET), 0);
	MUST(cq_is_empty(t.cq));
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_destroy_srq(srq), 0);
	return tm_close(&t);
}

const struct test_case man_cases[] = {
	CASE(basic_with_and_without_its_type),
	CASE(refuses),
	CASE(xrc_holds_its_domain_and_cq),
	CASE(tag_matching_as_claimed),
	CASE(tag_matching_refuses),
	CASE(tag_matching_and_its_queue_pairs),
	{ 0 },
};
