/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* ibv_create_cq(3), ibv_destroy_cq(3) */
#include "man.h"

/*
 * "with at least cqe entries": cqe completions fit; "Check the cqe attribute in the returned CQ for
 * the actual size."
 */
static bool has_at_least_the_entries_asked_for(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *sends = ibv_create_cq(ctx, QUEUE, NULL, NULL, 0);
	struct ibv_device_attr dev;
	struct ibv_cq *cq;
	struct ibv_wc wc;

	MUST(pd && sends);
	for (int n = 1; n <= QUEUE; n++) {
		struct ibv_qp *qp;

		MUST(cq = ibv_create_cq(ctx, n, NULL, NULL, 0));
		MUST(cq->cqe >= n);
		MUST(qp = qp_to_itself(pd, sends, cq, NULL));
		for (int i = 0; i < n; i++) {
			MUST(ping(qp, 100 + (uint64_t)i, IBV_SEND_SIGNALED));
			MUST(wait_wc(sends, &wc));
		}
		MUST(no_async_event());
		for (int i = 0; i < n; i++) {
			MUST(wait_wc(cq, &wc));
			MUST_EQ(wc.wr_id, 100 + i);
			MUST_EQ(wc.status, IBV_WC_SUCCESS);
		}
		MUST_EQ(ibv_destroy_qp(qp), 0);
		MUST_EQ(ibv_destroy_cq(cq), 0);
	}
	/* as large as the device says */
	MUST_EQ(ibv_query_device(ctx, &dev), 0);
	MUST(cq = ibv_create_cq(ctx, dev.max_cqe, NULL, NULL, 0));
	MUST(cq->cqe >= dev.max_cqe);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	MUST_EQ(ibv_destroy_cq(sends), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

/*
 * "cq_context will be used to set user context pointer of the CQ structure. The argument channel is
 * optional"
 */
static bool keeps_its_context_and_channel(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct ibv_cq *cq;

	MUST(ch);
	for (int with = 0; with < 2; with++) {
		MUST(cq = ibv_create_cq(ctx, 3, &with, with ? ch : NULL, 0));
		MUST(cq->context == ctx && cq->cq_context == &with &&
		     cq->channel == (with ? ch : NULL));
		MUST_EQ(ibv_destroy_comp_channel(ch), with ? EBUSY : 0);
		if (!with)
			MUST(ch = ibv_create_comp_channel(ctx));
		MUST_EQ(ibv_destroy_cq(cq), 0);
	}
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	return true;
}

static bool null_if_the_request_fails(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct ibv_device_attr dev;
	struct ibv_context *other;

	MUST(ch);
	MUST_EQ(ibv_query_device(ctx, &dev), 0);
	MUST_FAIL(ibv_create_cq(ctx, 0, NULL, ch, 0), EINVAL);
	MUST_FAIL(ibv_create_cq(ctx, -1, NULL, ch, 0), EINVAL);
	MUST_FAIL(ibv_create_cq(ctx, dev.max_cqe + 1, NULL, ch, 0), EINVAL);
	MUST_FAIL(ibv_create_cq(ctx, INT32_MAX, NULL, ch, 0), EINVAL);
	MUST(other = ibv_open_device(ctx->device));
	MUST_FAIL(ibv_create_cq(other, 1, NULL, ch, 0), EINVAL); /* another context's channel */
	MUST_EQ(ibv_close_device(other), 0);
	/* what failed holds nothing */
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	return true;
}

/*
 * "it must be at least zero and less than context->num_comp_vectors"; any of them signals events
 * through any channel
 */
static bool completion_vectors(void)
{
	struct ibv_comp_channel *ch[2];
	const int n = ctx->num_comp_vectors;

	MUST(n >= 1);
	MUST((ch[0] = ibv_create_comp_channel(ctx)) && (ch[1] = ibv_create_comp_channel(ctx)));
	for (int v = 0; v < n; v++)
		for (int c = 0; c < 2; c++) {
			struct loops l;

			MUST(loops_open(&l) && loops_add(&l, &v, ch[c], v));
			MUST(loops_event(&l, 0));
			MUST(take_cq_event(ch[c], l.cq[0]));
			MUST(no_cq_event(ch[!c]));
			MUST(loops_close(&l));
		}
	MUST_FAIL(ibv_create_cq(ctx, 2, NULL, ch[0], -1), EINVAL);
	MUST_FAIL(ibv_create_cq(ctx, 2, NULL, ch[0], n), EINVAL);
	MUST_FAIL(ibv_create_cq(ctx, 2, NULL, NULL, INT32_MAX), EINVAL);
	MUST_EQ(ibv_destroy_comp_channel(ch[0]), 0);
	MUST_EQ(ibv_destroy_comp_channel(ch[1]), 0);
	return true;
}

/* "ibv_destroy_cq() fails if any queue pair is still associated with this CQ." */
static bool destroy_fails_while_a_qp_uses_it(void)
{
	struct ibv_cq *send = ibv_create_cq(ctx, 10, NULL, NULL, 0),
		      *recv = ibv_create_cq(ctx, 10, NULL, NULL, 0);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_qp *qp = qp_to_itself(pd, send, recv, NULL);
	struct ibv_wc wc;

	MUST(qp);
	MUST_EQ(ibv_destroy_cq(send), EBUSY);
	MUST_EQ(ibv_destroy_cq(recv), EBUSY);
	/* and they work still */
	MUST(ping(qp, 9, IBV_SEND_SIGNALED) && wait_wc(recv, &wc) && wait_wc(send, &wc));
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_destroy_cq(send), 0);
	MUST_EQ(ibv_destroy_cq(recv), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

const struct test_case man_cases[] = {
	CASE(has_at_least_the_entries_asked_for),
	CASE(keeps_its_context_and_channel),
	CASE(null_if_the_request_fails),
	CASE(completion_vectors),
	CASE(destroy_fails_while_a_qp_uses_it),
	{ 0 },
};
