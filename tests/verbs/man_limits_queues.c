/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * The maxima of CQs and SRQs (see limits): max_cqe, max_srq_wr, max_srq_sge, tm_caps.
 *
 * With XROCE_LIMITS_LONG=1 also a CQ that is filled to its last entry.
 */
#include "limits.h"

/* ---- max_cqe ---- */

static bool max_cqe_and_one(void)
{
	const int max = limits_device().max_cqe;
	struct ibv_cq_init_attr_ex ex = { .cqe = (uint32_t)max + 1,
					  .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_recv_wr rr = { 0 }, *bad_rr;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_cq_ex *cq_ex;
	struct ibv_cq *cq;
	struct loop l;

	MUST_FAIL(ibv_create_cq(ctx, max + 1, NULL, NULL, 0), EINVAL);
	MUST_FAIL(ibv_create_cq(ctx, INT32_MAX, NULL, NULL, 0), EINVAL);
	MUST_FAIL(ibv_create_cq_ex(ctx, &ex), EINVAL);
	ex.cqe = UINT32_MAX;
	MUST_FAIL(ibv_create_cq_ex(ctx, &ex), EINVAL);
	ex.cqe = (uint32_t)max;
	MUST(cq_ex = ibv_create_cq_ex(ctx, &ex));
	MUST(ibv_cq_ex_to_cq(cq_ex)->cqe >= max);
	MUST_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq_ex)), 0);
	/* grown from the smallest, and no further */
	MUST(cq = ibv_create_cq(ctx, 1, NULL, NULL, 0));
	MUST_EQ(ibv_resize_cq(cq, max), 0);
	MUST(cq->cqe >= max);
	MUST_EQ(ibv_resize_cq(cq, max + 1), EINVAL);
	MUST(cq->cqe >= max);
	MUST_EQ(ibv_destroy_cq(cq), 0);

	MUST(loop_open(&l, IBV_QPT_RC, max, (struct ibv_qp_cap){ 1024, 1024, 1, 1, 0 }));
	MUST(l.rcq->cqe >= max);
	/* Receive completions alone fill it: sends are polled. */
	for (int n = 0, all = limits_long() ? l.rcq->cqe : 1; n < all; n++) {
		rr.wr_id = wr.wr_id = (uint64_t)n;
		MUST_EQ(ibv_post_recv(l.qp, &rr, &bad_rr), 0);
		MUST_EQ(ibv_post_send(l.qp, &wr, &bad), 0);
		MUST(loop_done(l.scq, (uint64_t)n, UINT32_MAX));
	}
	for (int n = 0, all = limits_long() ? l.rcq->cqe : 1; n < all; n++)
		MUST(loop_done(l.rcq, (uint64_t)n, 0));
	MUST(no_async_event());
	return loop_close(&l);
}

/* ---- max_srq_wr, max_srq_sge ---- */

static bool max_srq_wr_is_reached(void)
{
	const struct ibv_device_attr dev = limits_device();
	const uint32_t wr = (uint32_t)dev.max_srq_wr, sge = (uint32_t)dev.max_srq_sge;
	struct ibv_srq_init_attr a = { .attr = { wr, sge, 0 } };
	struct ibv_srq_attr change = { .max_wr = wr + 1 };
	struct ibv_sge *to = calloc(sge + 1, sizeof(*to)), from;
	struct ibv_recv_wr rr = { .sg_list = to, .num_sge = (int)sge }, *bad_rr;
	struct ibv_send_wr s, *bad;
	struct loop l;
	uint32_t n;

	MUST(to && loop_begin(&l, (int)wr));
	MUST(l.srq = ibv_create_srq(l.pd, &a));
	MUST(a.attr.max_wr >= wr && a.attr.max_sge >= sge);
	MUST_EQ(ibv_modify_srq(l.srq, &change, IBV_SRQ_MAX_WR), EINVAL);
	change.max_wr = wr;
	MUST_EQ(ibv_modify_srq(l.srq, &change, IBV_SRQ_MAX_WR), 0);
	/* its limit may be all of them, but not one more */
	change.srq_limit = a.attr.max_wr + 1;
	MUST_EQ(ibv_modify_srq(l.srq, &change, IBV_SRQ_LIMIT), EINVAL);
	change.srq_limit = 0;
	MUST(l.qp = loop_qp(&l, IBV_QPT_RC, (struct ibv_qp_cap){ 16, 0, 1, 0, 0 }));
	MUST_EQ(qp_to_init(l.qp), 0);
	MUST_EQ(qp_to_rts(l.qp, l.qp->qp_num, 7), 0);
	loop_elements(&l, to, (int)sge, BUF_BYTES);
	for (n = 0; n < a.attr.max_wr; n++) {
		rr.wr_id = n;
		MUST_EQ(ibv_post_srq_recv(l.srq, &rr, &bad_rr), 0);
	}
	MUST_EQ(ibv_post_srq_recv(l.srq, &rr, &bad_rr), ENOMEM);
	MUST(bad_rr == &rr);
	rr.num_sge = (int)a.attr.max_sge + 1;
	for (uint32_t i = 0; i < sge; i++)
		l.buf[i] = (uint8_t)(200 - i);
	from = (struct ibv_sge){ (uintptr_t)l.buf, sge, l.mr->lkey };
	s = loop_send(&l, IBV_WR_SEND, &from, 1);
	for (n = 0; n < a.attr.max_wr; n++) {
		memset(l.buf + BUF_BYTES, 0, 2 * sge);
		s.wr_id = n;
		MUST_EQ(ibv_post_send(l.qp, &s, &bad), 0);
		MUST(loop_done(l.scq, n, UINT32_MAX) && loop_done(l.rcq, n, sge));
		for (uint32_t i = 0; i < sge; i++)
			MUST_EQ(l.buf[to[i].addr - (uintptr_t)l.buf], 200 - i);
	}
	to = realloc(to, (a.attr.max_sge + 1) * sizeof(*to));
	MUST(to);
	rr.sg_list = to;
	to[a.attr.max_sge] = to[0];
	MUST_EQ(ibv_post_srq_recv(l.srq, &rr, &bad_rr), EINVAL);
	MUST(bad_rr == &rr);
	free(to);
	return loop_close(&l);
}

/* One more than max_srq_wr or max_srq_sge: EINVAL, whichever verb makes it and of whatever type. */
static bool max_srq_wr_and_one(void)
{
	const struct ibv_device_attr dev = limits_device();
	const struct ibv_srq_attr sizes[] = {
		{ .max_wr = (uint32_t)dev.max_srq_wr + 1, .max_sge = 1 },
		{ .max_wr = UINT32_MAX, .max_sge = 1 },
		{ .max_wr = 1, .max_sge = (uint32_t)dev.max_srq_sge + 1 },
		{ .max_wr = 1, .max_sge = UINT32_MAX },
	};
	struct ibv_xrcd_init_attr none = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							IBV_XRCD_INIT_ATTR_OFLAGS,
					   .fd = -1,
					   .oflags = O_CREAT };
	struct ibv_xrcd *xrcd;
	struct loop l;

	MUST(loop_begin(&l, QUEUE));
	MUST(xrcd = ibv_open_xrcd(ctx, &none));
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct ibv_srq_init_attr basic = { .attr = sizes[i] };
		struct ibv_srq_init_attr_ex a = { .attr = sizes[i],
						  .comp_mask = IBV_SRQ_INIT_ATTR_TYPE |
							       IBV_SRQ_INIT_ATTR_PD |
							       IBV_SRQ_INIT_ATTR_CQ,
						  .srq_type = IBV_SRQT_TM,
						  .pd = l.pd,
						  .cq = l.rcq,
						  .xrcd = xrcd,
						  .tm_cap = { 4, 4 } };

		MUST_FAIL(ibv_create_srq(l.pd, &basic), EINVAL);
		a.comp_mask |= IBV_SRQ_INIT_ATTR_TM;
		MUST_FAIL(ibv_create_srq_ex(ctx, &a), EINVAL);
		a.srq_type = IBV_SRQT_XRC;
		a.comp_mask ^= IBV_SRQ_INIT_ATTR_TM | IBV_SRQ_INIT_ATTR_XRCD;
		MUST_FAIL(ibv_create_srq_ex(ctx, &a), EINVAL);
		a.attr = (struct ibv_srq_attr){ (uint32_t)dev.max_srq_wr, (uint32_t)dev.max_srq_sge,
						0 };
		MUST(l.srq = ibv_create_srq_ex(ctx, &a));
		MUST_EQ(ibv_destroy_srq(l.srq), 0);
		l.srq = NULL;
	}
	MUST_EQ(ibv_close_xrcd(xrcd), 0);
	return loop_close(&l);
}

/* ---- tm_caps ---- */

static bool tag_lists_of_the_devices_size(void)
{
	struct ibv_srq_init_attr_ex a = { .attr = { .max_wr = QUEUE, .max_sge = 1 },
					  .comp_mask = IBV_SRQ_INIT_ATTR_TYPE |
						       IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
						       IBV_SRQ_INIT_ATTR_TM,
					  .srq_type = IBV_SRQT_TM };
	struct ibv_ops_wr op = { .opcode = IBV_WR_TAG_ADD, .flags = IBV_OPS_SIGNALED }, *bad;
	struct ibv_device_attr_ex dev;
	struct ibv_sge *sge;
	struct ibv_wc wc;
	struct loop l;
	uint32_t n;

	MUST_EQ(ibv_query_device_ex(ctx, NULL, &dev), 0);
	MUST(loop_begin(&l, 2 * (int)dev.tm_caps.max_num_tags));
	MUST(sge = calloc(dev.tm_caps.max_sge + 1, sizeof(*sge)));
	loop_elements(&l, sge, (int)dev.tm_caps.max_sge + 1, 0);
	a.pd = l.pd;
	a.cq = l.rcq;
	a.tm_cap = (struct ibv_tm_cap){ dev.tm_caps.max_num_tags + 1, dev.tm_caps.max_ops };
	MUST_FAIL(ibv_create_srq_ex(ctx, &a), EINVAL);
	a.tm_cap = (struct ibv_tm_cap){ dev.tm_caps.max_num_tags, dev.tm_caps.max_ops + 1 };
	MUST_FAIL(ibv_create_srq_ex(ctx, &a), EINVAL);
	a.tm_cap.max_ops--;
	a.attr.max_sge = (uint32_t)limits_device().max_srq_sge;
	MUST(l.srq = ibv_create_srq_ex(ctx, &a));
	op.tm.add.sg_list = sge;
	op.tm.add.num_sge = (int)dev.tm_caps.max_sge + 1;
	op.tm.add.mask = ~0ull;
	MUST_EQ(ibv_post_srq_ops(l.srq, &op, &bad), EINVAL);
	op.tm.add.num_sge--;
	for (n = 0; n < dev.tm_caps.max_num_tags; n++) {
		op.wr_id = op.tm.add.tag = op.tm.add.recv_wr_id = n;
		MUST_EQ(ibv_post_srq_ops(l.srq, &op, &bad), 0);
		MUST(wait_wc(l.rcq, &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST_EQ(wc.opcode, IBV_WC_TM_ADD);
		MUST_EQ(wc.wr_id, n);
	}
	MUST_EQ(ibv_post_srq_ops(l.srq, &op, &bad), ENOMEM);
	MUST(bad == &op);
	free(sge);
	return loop_close(&l);
}

const struct test_case man_cases[] = {
	CASE(max_cqe_and_one),
	CASE(max_srq_wr_is_reached),
	CASE(max_srq_wr_and_one),
	CASE(tag_lists_of_the_devices_size),
	{ 0 },
};
