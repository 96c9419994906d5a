/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * The maxima of ibv_query_device(3): queue pairs, each with a CQ and an SRQ, and members of
 * multicast groups.
 */
#include "man.h"

/* "There may be a CQ and an SRQ for each QP" (docs/verbs.md): all are, and each is used. */
static bool a_cq_for_each_queue_pair(void)
{
	struct ibv_recv_wr rr = { .wr_id = 4 }, *bad_rr;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_device_attr d;
	struct ibv_srq **srq;
	struct ibv_qp **qp;
	struct ibv_cq **cq;
	struct ibv_wc wc;
	int max;

	MUST_EQ(ibv_query_device(ctx, &d), 0);
	max = d.max_qp;
	qp = calloc((size_t)max, sizeof(*qp));
	cq = calloc((size_t)max, sizeof(*cq));
	srq = calloc((size_t)max, sizeof(*srq));
	MUST(qp && cq && srq && pd);
	for (int i = 0; i < max; i++) {
		struct ibv_srq_init_attr s = { .attr = { .max_wr = 1, .max_sge = 1 } };
		struct ibv_qp_init_attr a = { .qp_type = IBV_QPT_RC, .cap = { 1, 0, 1, 0, 0 } };

		MUST(cq[i] = ibv_create_cq(ctx, 1, NULL, NULL, 0));
		MUST(srq[i] = ibv_create_srq(pd, &s));
		a.send_cq = a.recv_cq = cq[i];
		a.srq = srq[i];
		MUST(qp[i] = ibv_create_qp(pd, &a));
		MUST_EQ(qp_to_init(qp[i]), 0);
		MUST_EQ(qp_to_rts(qp[i], qp[i]->qp_num, 7), 0);
	}
	for (int i = 0; i < max; i++) {
		MUST_EQ(ibv_post_srq_recv(srq[i], &rr, &bad_rr), 0);
		MUST_EQ(ibv_post_send(qp[i], &wr, &bad), 0);
	}
	for (int i = 0; i < max; i++) {
		MUST(wait_wc(cq[i], &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST_EQ(wc.wr_id, 4);
		MUST_EQ(wc.qp_num, qp[i]->qp_num);
		MUST_EQ(ibv_destroy_qp(qp[i]), 0);
		MUST_EQ(ibv_destroy_srq(srq[i]), 0);
		MUST_EQ(ibv_destroy_cq(cq[i]), 0);
	}
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	free(qp);
	free(cq);
	free(srq);
	return true;
}

/* max_total_mcast_qp_attach: every group with every member that it may have. */
static bool all_groups_with_all_members(void)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff, 239, 77 } };
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	struct ibv_qp_init_attr a = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD, .cap = { 1, 1, 1, 1, 0 }
	};
	struct ibv_device_attr d;
	struct ibv_qp **qp;
	int attached = 0;

	MUST_EQ(ibv_query_device(ctx, &d), 0);
	qp = calloc((size_t)d.max_mcast_qp_attach + 1, sizeof(*qp));
	MUST(pd && cq && qp);
	for (int i = 0; i <= d.max_mcast_qp_attach; i++)
		MUST(qp[i] = ibv_create_qp(pd, &a));
	for (int g = 0; g < d.max_mcast_grp; g++) {
		gid.raw[14] = (uint8_t)(g >> 8);
		gid.raw[15] = (uint8_t)g;
		for (int i = 0; i < d.max_mcast_qp_attach; i++, attached++)
			MUST_EQ(ibv_attach_mcast(qp[i], &gid, 0), 0);
	}
	MUST_EQ(attached, d.max_total_mcast_qp_attach);
	MUST_EQ(ibv_attach_mcast(qp[d.max_mcast_qp_attach], &gid, 0), ENOMEM);
	for (int g = 0; g < d.max_mcast_grp; g++) {
		gid.raw[14] = (uint8_t)(g >> 8);
		gid.raw[15] = (uint8_t)g;
		for (int i = 0; i < d.max_mcast_qp_attach; i++)
			MUST_EQ(ibv_detach_mcast(qp[i], &gid, 0), 0);
	}
	for (int i = 0; i <= d.max_mcast_qp_attach; i++)
		MUST_EQ(ibv_destroy_qp(qp[i]), 0);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	free(qp);
	return true;
}

const struct test_case man_cases[] = {
	CASE(a_cq_for_each_queue_pair),
	CASE(all_groups_with_all_members),
	{ 0 },
};
