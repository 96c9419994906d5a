/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * ibv_modify_qp_rate_limit(3), with its limits in ibv_query_device_ex(3) and IBV_QP_RATE_LIMIT of
 * ibv_modify_qp(3). tests/sim/test_rate.c checks the packets' rate; here only that traffic with a
 * limit ends.
 */
#include "man.h"

static struct ibv_packet_pacing_caps caps;
static struct ibv_pd *pd;
static struct ibv_cq *cq;

static bool world_open(void)
{
	struct ibv_device_attr_ex attr;

	MUST_EQ(ibv_query_device_ex(ctx, NULL, &attr), 0);
	caps = attr.packet_pacing_caps;
	MUST((pd = ibv_alloc_pd(ctx)) && (cq = ibv_create_cq(ctx, QUEUE, NULL, NULL, 0)));
	return true;
}

static bool world_close(void)
{
	MUST_EQ(ibv_destroy_cq(cq), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

/* A case that is its body between these two. */
#define IN_WORLD(name, body)                                                                       \
	static bool name(void)                                                                     \
	{                                                                                          \
		bool good = world_open() && (body)();                                              \
                                                                                                   \
		return world_close() && good;                                                      \
	}

/* Through the inline function of the header, which takes the call from the context. */
static int limit(struct ibv_qp *qp, uint32_t kbps, uint32_t burst, uint16_t typical)
{
	struct ibv_qp_rate_limit_attr a = { .rate_limit = kbps,
					    .max_burst_sz = burst,
					    .typical_pkt_sz = typical };

	return ibv_modify_qp_rate_limit(qp, &a);
}

static bool rate_is(struct ibv_qp *qp, uint32_t kbps)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	MUST_EQ(ibv_query_qp(qp, &a, IBV_QP_RATE_LIMIT, &init), 0);
	MUST_EQ(a.rate_limit, kbps);
	return true;
}

/*
 * "qp_rate_limit_min: Minimum rate limit in kbps", "qp_rate_limit_max", "supported_qpts: Bitmap
 * showing which QP types are supported."
 */
static bool caps_are_kept(void)
{
	struct ibv_qp *qp = qp_to_itself(pd, cq, cq, NULL);

	MUST(qp && caps.qp_rate_limit_min && caps.qp_rate_limit_min < caps.qp_rate_limit_max);
	MUST_EQ(caps.supported_qpts,
		1 << IBV_QPT_RC | 1 << IBV_QPT_UC | 1 << IBV_QPT_UD | 1 << IBV_QPT_XRC_SEND);
	MUST_EQ(limit(qp, caps.qp_rate_limit_min, 0, 0), 0);
	MUST(rate_is(qp, caps.qp_rate_limit_min));
	MUST_EQ(limit(qp, caps.qp_rate_limit_max, 0, 0), 0);
	MUST_EQ(limit(qp, caps.qp_rate_limit_max + 1, 0, 0), EINVAL);
	MUST(rate_is(qp, caps.qp_rate_limit_max));
	MUST_EQ(ibv_destroy_qp(qp), 0);
	return true;
}

/* "EINVAL: Invalid arguments." */
static bool arguments_are_checked(void)
{
	struct ibv_qp *qp = qp_to_itself(pd, cq, cq, NULL);
	struct ibv_qp_rate_limit_attr a = { .rate_limit = 100000, .comp_mask = 1 };

	MUST(qp);
	MUST_EQ(limit(qp, 100000, 65536, 1500), 0);
	MUST_EQ(limit(qp, 200000, 100, 0), EINVAL); /* less than a packet */
	MUST_EQ(limit(qp, 200000, 1499, 1500), EINVAL);
	MUST_EQ(limit(qp, 0, 65536, 0), EINVAL); /* a burst of no limit */
	MUST_EQ(limit(qp, 0, 0, 1500), EINVAL);
	a.rate_limit = 200000;
	MUST_EQ(ibv_modify_qp_rate_limit(qp, &a), EINVAL);
	MUST(rate_is(qp, 100000));
	MUST_EQ(limit(qp, 0, 0, 0), 0);
	MUST(rate_is(qp, 0));
	MUST_EQ(ibv_destroy_qp(qp), 0);
	return true;
}

/* In RTS alone, as the kernel's table of transitions has it: a QP that does not send has no rate.
 */
static bool other_states_refuse(void)
{
	struct ibv_qp_init_attr init = { .send_cq = cq,
					 .recv_cq = cq,
					 .qp_type = IBV_QPT_RC,
					 .cap = { QUEUE, QUEUE, 1, 1, 0 } };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	MUST(qp);
	MUST_EQ(limit(qp, 100000, 0, 0), EINVAL);
	MUST_EQ(qp_to_init(qp), 0);
	MUST_EQ(limit(qp, 100000, 0, 0), EINVAL);
	MUST_EQ(qp_to_rts(qp, qp->qp_num, 7), 0);
	MUST_EQ(limit(qp, 100000, 0, 0), 0);
	MUST_EQ(qp_to_state(qp, IBV_QPS_SQD), 0);
	MUST_EQ(limit(qp, 200000, 0, 0), EINVAL);
	MUST(rate_is(qp, 100000));
	MUST_EQ(qp_to_state(qp, IBV_QPS_ERR), 0);
	MUST_EQ(limit(qp, 200000, 0, 0), EINVAL);
	MUST_EQ(qp_to_state(qp, IBV_QPS_RESET), 0);
	MUST(rate_is(qp, 0));
	MUST_EQ(ibv_destroy_qp(qp), 0);
	return true;
}

/* IBV_QP_RATE_LIMIT: "Set rate_limit". "If any ... are invalid, none ... will be modified". */
static bool modify_qp_sets_it(void)
{
	struct ibv_qp *qp = qp_to_itself(pd, cq, cq, NULL);
	struct ibv_qp_attr a = { .rate_limit = 50000, .min_rnr_timer = 9 };
	struct ibv_qp_init_attr init;

	MUST(qp);
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_RATE_LIMIT | IBV_QP_MIN_RNR_TIMER), 0);
	MUST(rate_is(qp, 50000));
	a.rate_limit = caps.qp_rate_limit_max + 1;
	a.min_rnr_timer = 10;
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_RATE_LIMIT | IBV_QP_MIN_RNR_TIMER), EINVAL);
	MUST_EQ(ibv_query_qp(qp, &a, IBV_QP_MIN_RNR_TIMER, &init), 0);
	MUST(a.rate_limit == 50000 && a.min_rnr_timer == 9);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	return true;
}

/* "the MAX send rate this QP will send": its messages arrive, for a thread that polls or sleeps.
 */
static bool traffic_ends(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct ibv_cq *event_cq = ibv_create_cq(ctx, QUEUE, NULL, ch, 0);
	struct ibv_qp *qp = qp_to_itself(pd, cq, event_cq, NULL);
	struct ibv_wc wc;

	MUST(ch && event_cq && qp);
	MUST_EQ(limit(qp, 1000, 0, 0), 0);
	for (int i = 0; i < 50; i++) {
		MUST(ping(qp, i, IBV_SEND_SIGNALED));
		MUST(wait_wc(cq, &wc) && wc.status == IBV_WC_SUCCESS);
		MUST(wait_wc(event_cq, &wc) && wc.wr_id == (uint64_t)i);
	}
	for (int i = 0; i < 10; i++) {
		MUST_EQ(ibv_req_notify_cq(event_cq, 0), 0);
		MUST(ping(qp, i, 0) && take_cq_event(ch, event_cq));
		MUST(wait_wc(event_cq, &wc) && wc.wr_id == (uint64_t)i);
	}
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_destroy_cq(event_cq), 0);
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	return true;
}

IN_WORLD(the_range_is_the_one_that_is_claimed, caps_are_kept)
IN_WORLD(invalid_arguments, arguments_are_checked)
IN_WORLD(a_qp_that_does_not_send_has_no_rate, other_states_refuse)
IN_WORLD(ibv_modify_qp_sets_it_as_well, modify_qp_sets_it)
IN_WORLD(traffic_arrives, traffic_ends)

const struct test_case man_cases[] = {
	CASE(the_range_is_the_one_that_is_claimed),
	CASE(invalid_arguments),
	CASE(a_qp_that_does_not_send_has_no_rate),
	CASE(ibv_modify_qp_sets_it_as_well),
	CASE(traffic_arrives),
	{ 0 },
};
