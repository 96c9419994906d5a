/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * One SRQ of several QPs, of RC and UC and of another protection domain: ibv_modify_srq(3), "once
 * the number of WRs in the SRQ drops below srq_limit, the SRQ will generate an [...] event", at the
 * exact receive whichever QP takes it; ibv_post_srq_recv(3): the L_Keys belong to the SRQ's
 * protection domain; ibv_post_recv(3): not on a QP with an SRQ.
 */
#include "man.h"

#define RECEIVES 16
#define SENDERS	 3
#define BYTES	 64

struct group {
	struct ibv_pd *pd[2]; /* of the SRQ, another one */
	struct ibv_mr *mr[2];
	struct ibv_srq *srq;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *from[SENDERS], *to[SENDERS];
	char buf[BYTES];
};

static struct ibv_qp *group_qp(struct group *g, struct ibv_pd *pd, int i, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = { .send_cq = g->send_cq, .recv_cq = g->recv_cq, .srq = srq,
					 .qp_type = i == 1 ? IBV_QPT_UC : IBV_QPT_RC,
					 .cap = { QUEUE, srq ? 0 : 1, 1, srq ? 0 : 1, 0 } };

	return ibv_create_qp(pd, &init);
}

static bool group_open(struct group *g)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = RECEIVES, .max_sge = 1 } };

	memset(g, 0, sizeof(*g));
	for (int i = 0; i < 2; i++) {
		MUST(g->pd[i] = ibv_alloc_pd(ctx));
		MUST(g->mr[i] = ibv_reg_mr(g->pd[i], g->buf, BYTES, IBV_ACCESS_LOCAL_WRITE));
	}
	MUST(g->srq = ibv_create_srq(g->pd[0], &init));
	MUST(g->send_cq = ibv_create_cq(ctx, QUEUE, NULL, NULL, 0));
	MUST(g->recv_cq = ibv_create_cq(ctx, 4 * RECEIVES, NULL, NULL, 0));
	for (int i = 0; i < SENDERS; i++) {
		MUST(g->from[i] = group_qp(g, g->pd[0], i, NULL));
		MUST(g->to[i] = group_qp(g, g->pd[i == SENDERS - 1], i, g->srq));
		MUST_EQ(qp_to_init(g->from[i]) | qp_to_init(g->to[i]), 0);
		MUST_EQ(qp_to_rts(g->from[i], g->to[i]->qp_num, 7), 0);
		MUST_EQ(qp_to_rts(g->to[i], g->from[i]->qp_num, 7), 0);
	}
	return true;
}

static bool group_close(struct group *g)
{
	for (int i = 0; i < SENDERS; i++)
		MUST_EQ(ibv_destroy_qp(g->from[i]) | ibv_destroy_qp(g->to[i]), 0);
	MUST_EQ(ibv_destroy_srq(g->srq), 0);
	MUST_EQ(ibv_destroy_cq(g->send_cq) | ibv_destroy_cq(g->recv_cq), 0);
	for (int i = 0; i < 2; i++)
		MUST_EQ(ibv_dereg_mr(g->mr[i]) | ibv_dealloc_pd(g->pd[i]), 0);
	return true;
}

#define ON_GROUP(name, body)                                   \
	static bool name(void)                                 \
	{                                                      \
		static struct group g;                         \
		bool good = group_open(&g) && body(&g);        \
							       \
		return group_close(&g) && good;                \
	}

static int receive_post(struct group *g, uint64_t wr_id, const struct ibv_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)g->buf, BYTES, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_srq_recv(g->srq, &wr, &bad);
}

/* From this QP: the status that its send ends with, and the receive's completion. */
static int send_from(struct group *g, int i, struct ibv_wc *receive)
{
	struct ibv_sge sge = { (uintptr_t)g->buf, 10, g->mr[0]->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_wc wc;

	if (ibv_post_send(g->from[i], &wr, &bad) || !wait_wc(g->send_cq, &wc) ||
	    !wait_wc(g->recv_cq, receive))
		return -1;
	return wc.status;
}

static bool limit_is(struct group *g, uint32_t want)
{
	struct ibv_srq_attr a;

	MUST_EQ(ibv_query_srq(g->srq, &a), 0);
	MUST_EQ(a.srq_limit, want);
	return true;
}

/* Armed with limit and used up: the event is there when limit - 1 are left, and only then. */
static bool limit_round(struct group *g, uint32_t limit)
{
	struct ibv_srq_attr a = { .srq_limit = limit };
	struct ibv_wc wc;

	for (uint64_t i = 0; i < RECEIVES; i++)
		MUST_EQ(receive_post(g, i, g->mr[0]), 0);
	MUST_EQ(receive_post(g, RECEIVES, g->mr[0]), ENOMEM);
	MUST_EQ(ibv_modify_srq(g->srq, &a, IBV_SRQ_LIMIT), 0);
	for (uint32_t i = 0, left = RECEIVES; left--; i++) {
		MUST(limit_is(g, left + 1 >= limit ? limit : 0));
		MUST_EQ(send_from(g, (int)i % SENDERS, &wc), IBV_WC_SUCCESS);
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST_EQ(wc.wr_id, i);
		MUST_EQ(wc.qp_num, g->to[i % SENDERS]->qp_num);
		if (left + 1 == limit)
			MUST(take_async(IBV_EVENT_SRQ_LIMIT_REACHED, g->srq));
		MUST(no_async_event());
	}
	return limit_is(g, 0);
}

static bool limit_body(struct group *g)
{
	for (uint32_t limit = 1; limit <= RECEIVES; limit++)
		MUST(limit_round(g, limit));
	return true;
}

ON_GROUP(limit_at_the_exact_receive, limit_body)

/* The receiving QP of another protection domain changes nothing about whose L_Keys they are. */
static bool lkey_body(struct group *g)
{
	struct ibv_wc wc;

	MUST_EQ(receive_post(g, 1, g->mr[0]), 0);
	MUST_EQ(send_from(g, SENDERS - 1, &wc), IBV_WC_SUCCESS);
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(receive_post(g, 70, g->mr[1]), 0);
	MUST_EQ(send_from(g, SENDERS - 1, &wc), IBV_WC_REM_OP_ERR);
	MUST_EQ(wc.status, IBV_WC_LOC_PROT_ERR);
	MUST_EQ(wc.wr_id, 70);
	MUST_EQ(qp_state_now(g->to[SENDERS - 1]), IBV_QPS_ERR);
	MUST(take_async(IBV_EVENT_QP_LAST_WQE_REACHED, g->to[SENDERS - 1]));
	/* The others go on. */
	MUST_EQ(receive_post(g, 2, g->mr[0]), 0);
	MUST_EQ(send_from(g, 0, &wc), IBV_WC_SUCCESS);
	MUST_EQ(wc.wr_id, 2);
	return true;
}

ON_GROUP(lkeys_are_of_its_protection_domain, lkey_body)

static bool post_body(struct group *g)
{
	struct ibv_sge sge = { (uintptr_t)g->buf, BYTES, g->mr[0]->lkey };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad = NULL;

	for (int i = 0; i < SENDERS; i++) {
		MUST(ibv_post_recv(g->to[i], &wr, &bad) > 0);
		MUST(bad == &wr);
	}
	MUST_EQ(ibv_destroy_srq(g->srq), EBUSY);
	return true;
}

ON_GROUP(its_qps_take_no_receives, post_body)

const struct test_case man_cases[] = {
	CASE(limit_at_the_exact_receive),
	CASE(lkeys_are_of_its_protection_domain),
	CASE(its_qps_take_no_receives),
	{ 0 },
};
