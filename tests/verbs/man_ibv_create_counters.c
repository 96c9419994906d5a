/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san XROCE_CYCLES=1000 */
/* tier: long tsan */
/*
 * ibv_create_counters(3), which is ibv_destroy_counters(3) as well; ibv_read_counters(3),
 * ibv_attach_counters_point_flow(3); the action of ibv_create_flow(3). The interface itself sends
 * the frames: tests/netns/flows.sh has frames of others.
 */
#include <arpa/inet.h>

#include "man.h"

#define FRAME 64

/* Specs are contiguous, as in ibv_create_flow(3)'s example. */
struct rule {
	struct ibv_flow_attr attr;
	struct ibv_flow_spec_counter_action count;
	struct ibv_flow_spec_counter_action another;
} __attribute__((packed, aligned(4)));

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static struct ibv_counters_init_attr plain;
static unsigned char frame[FRAME];

static bool begin(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RAW_PACKET,
					 .cap = { QUEUE, QUEUE, 1, 1, 0 } };

	MUST(pd = ibv_alloc_pd(ctx));
	MUST(cq = ibv_create_cq(ctx, 4 * QUEUE, NULL, NULL, 0));
	MUST(mr = ibv_reg_mr(pd, frame, sizeof(frame), 0));
	init.send_cq = init.recv_cq = cq;
	MUST(qp = ibv_create_qp(pd, &init));
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PORT), 0);
	a.qp_state = IBV_QPS_RTR;
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
	a.qp_state = IBV_QPS_RTS;
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
	return true;
}

static bool end(void)
{
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

static int attach(struct ibv_counters *c, enum ibv_counter_description what, uint32_t index)
{
	struct ibv_counter_attach_attr attr = { .counter_desc = what, .index = index };

	return ibv_attach_counters_point_flow(c, &attr, NULL);
}

/* Matches all multicast frames, also the ones that the interface sends to a group. */
static struct rule rule(struct ibv_counters *c)
{
	return (struct rule){
		.attr = { .type = IBV_FLOW_ATTR_MC_DEFAULT,
			  .size = offsetof(struct rule, another),
			  .num_of_specs = 1,
			  .port = 1 },
		.count = { IBV_FLOW_SPEC_ACTION_COUNT, sizeof(rule(NULL).count), c },
		.another = { IBV_FLOW_SPEC_ACTION_COUNT, sizeof(rule(NULL).count), c },
	};
}

static struct ibv_flow *flow_with(struct ibv_counters *c)
{
	struct rule r = rule(c);

	return ibv_create_flow(qp, &r.attr);
}

/* Sends a frame; without a receive, as the counters do not depend on its delivery. */
static bool send_one(void)
{
	struct ibv_sge sge = { (uintptr_t)frame, FRAME, mr->lkey };
	struct ibv_send_wr send = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_wc wc;
	int n = 0;

	memcpy(frame, (unsigned char[]){ 1, 0, 0x5e, 7, 7, 7, 2, 0, 0, 0x77, 0, 9 }, 12);
	memcpy(frame + 12, (unsigned char[]){ 0x88, 0xb5 }, 2);
	MUST_EQ(ibv_post_send(qp, &send, &bad), 0);
	while (n < WAIT_MS * 1000 && !ibv_poll_cq(cq, 1, &wc)) {
		usleep(1);
		n++;
	}
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	return true;
}

/* The kernels' multicast frames may count too: at least `packets` packets, with their bytes. */
static bool reads(struct ibv_counters *c, uint64_t packets)
{
	uint64_t got[2] = { 0 };

	for (int n = 0; n < WAIT_MS && got[0] < packets; n++, usleep(1000))
		MUST_EQ(ibv_read_counters(c, got, 2, IBV_READ_COUNTERS_ATTR_PREFER_CACHED), 0);
	MUST(got[0] >= packets);
	MUST(got[1] >= got[0] * 14);
	return true;
}

static bool create_and_destroy(void)
{
	struct ibv_counters_init_attr unknown = { .comp_mask = 1 };
	struct ibv_counters *c;

	MUST_FAIL(ibv_create_counters(ctx, &unknown), EOPNOTSUPP);
	MUST(c = ibv_create_counters(ctx, &plain));
	MUST(c->context == ctx);
	MUST_EQ(ibv_destroy_counters(c), 0);
	return true;
}

/* "EINVAL invalid argument(s) passed"; "ENOTSUP counter_desc is not supported" */
static bool attach_errors(void)
{
	struct ibv_counter_attach_attr attr = { .comp_mask = 1 };
	struct ibv_counters *c;
	struct ibv_flow *flow;

	MUST(begin());
	MUST(c = ibv_create_counters(ctx, &plain));
	MUST_EQ(ibv_attach_counters_point_flow(c, &attr, NULL), EINVAL);
	MUST_EQ(attach(c, (enum ibv_counter_description)2, 0), ENOTSUP);
	MUST_EQ(attach(c, (enum ibv_counter_description)-1, 0), ENOTSUP);
	MUST_EQ(attach(c, IBV_COUNTER_PACKETS, 0), 0);
	MUST(flow = flow_with(c));
	/* "EBUSY the counter object is already bound to a flow (valid for static attach only)" */
	MUST_EQ(attach(c, IBV_COUNTER_BYTES, 1), EBUSY);
	/* to an existing flow: this device does not support that */
	attr.comp_mask = 0;
	MUST_EQ(ibv_attach_counters_point_flow(c, &attr, flow), ENOTSUP);
	MUST_EQ(ibv_destroy_flow(flow), 0);
	MUST_EQ(attach(c, IBV_COUNTER_BYTES, ~0u), 0);
	MUST_EQ(ibv_destroy_counters(c), 0);
	return end();
}

/* "user should detach the counters object before destroying it": until then it is in use. */
static bool busy_while_a_flow_has_it(void)
{
	struct ibv_counters *c;
	struct ibv_flow *one, *two;

	MUST(begin());
	MUST(c = ibv_create_counters(ctx, &plain));
	MUST_EQ(attach(c, IBV_COUNTER_PACKETS, 0), 0);
	MUST(one = flow_with(c));
	MUST(two = flow_with(c));
	MUST_EQ(ibv_destroy_counters(c), EBUSY);
	MUST_EQ(ibv_destroy_flow(one), 0);
	MUST_EQ(ibv_destroy_counters(c), EBUSY);
	MUST_EQ(ibv_destroy_flow(two), 0);
	MUST_EQ(ibv_destroy_counters(c), 0);
	return end();
}

/* ibv_create_flow(3): "EINVAL flow specification [...] invalid" */
static bool flow_errors(void)
{
	struct ibv_counters *c, *others;
	struct ibv_context *other;
	struct rule r;

	MUST(begin());
	MUST(c = ibv_create_counters(ctx, &plain));
	MUST_FAIL(flow_with(NULL), EINVAL);
	/* no counter would count */
	MUST_FAIL(flow_with(c), EINVAL);
	MUST_EQ(attach(c, IBV_COUNTER_PACKETS, 0), 0);
	r = rule(c);
	r.attr.num_of_specs = 2;
	MUST_FAIL(ibv_create_flow(qp, &r.attr), EINVAL);
	r = rule(c);
	r.count.size = 8;
	MUST_FAIL(ibv_create_flow(qp, &r.attr), EINVAL);
	MUST(other = ibv_open_device(ctx->device));
	MUST(others = ibv_create_counters(other, &plain));
	MUST_EQ(attach(others, IBV_COUNTER_PACKETS, 0), 0);
	MUST_FAIL(flow_with(others), EINVAL);
	MUST_EQ(ibv_destroy_counters(others), 0);
	MUST_EQ(ibv_close_device(other), 0);
	/* none of the failed calls uses it */
	MUST_EQ(ibv_destroy_counters(c), 0);
	return end();
}

/*
 * "values are filled according to the configuration"; "Counters are cleared upon creation and
 * values will be monotonically increasing": after the flow's end they keep their values.
 */
static bool reads_what_was_counted(void)
{
	uint64_t before[2], after[2], none = 5;
	struct ibv_counters *c;
	struct ibv_flow *flow;

	MUST(begin());
	MUST(c = ibv_create_counters(ctx, &plain));
	MUST_EQ(attach(c, IBV_COUNTER_PACKETS, 0), 0);
	MUST_EQ(attach(c, IBV_COUNTER_BYTES, 1), 0);
	MUST_EQ(ibv_read_counters(c, before, 2, 2), EINVAL);
	MUST_EQ(ibv_read_counters(c, &none, 0, 0), 0);
	MUST_EQ((int)none, 5);
	MUST_EQ(ibv_read_counters(c, before, 2, 0), 0);
	MUST(!before[0] && !before[1]);
	MUST(flow = flow_with(c));
	MUST(send_one());
	MUST(send_one());
	MUST(reads(c, 2));
	MUST_EQ(ibv_destroy_flow(flow), 0);
	MUST_EQ(ibv_read_counters(c, before, 2, 0), 0);
	MUST(before[0] >= 2 && before[1] >= 2 * FRAME);
	MUST(send_one());
	MUST_EQ(ibv_read_counters(c, after, 2, 0), 0);
	MUST(after[0] == before[0] && after[1] == before[1]);
	/* "accumulate": the next flow continues */
	MUST(flow = flow_with(c));
	MUST(send_one());
	MUST(reads(c, before[0] + 1));
	MUST_EQ(ibv_destroy_flow(flow), 0);
	MUST_EQ(ibv_destroy_counters(c), 0);
	/* it is cleared for the next owner */
	MUST(c = ibv_create_counters(ctx, &plain));
	MUST_EQ(attach(c, IBV_COUNTER_PACKETS, 0), 0);
	MUST_EQ(attach(c, IBV_COUNTER_BYTES, 1), 0);
	MUST(flow = flow_with(c));
	MUST_EQ(ibv_destroy_flow(flow), 0);
	MUST_EQ(ibv_read_counters(c, after, 2, 0), 0);
	MUST(after[0] < before[0] && after[1] < before[1]);
	MUST_EQ(ibv_destroy_counters(c), 0);
	return end();
}

/*
 * "setting the index more than once [...] will aggregate the values"; an index without a point is
 * 0. A point that is attached later counts from then on.
 */
static bool indexes(void)
{
	uint64_t v[5] = { 9, 9, 9, 9, 9 }, later[5];
	struct ibv_counters *c;
	struct ibv_flow *flow;

	MUST(begin());
	MUST(c = ibv_create_counters(ctx, &plain));
	MUST_EQ(attach(c, IBV_COUNTER_PACKETS, 3), 0);
	MUST_EQ(attach(c, IBV_COUNTER_PACKETS, 1), 0);
	MUST_EQ(attach(c, IBV_COUNTER_PACKETS, 1), 0);
	MUST_EQ(attach(c, IBV_COUNTER_PACKETS, 4), 0);
	MUST_EQ(attach(c, IBV_COUNTER_PACKETS, 0x40000000), 0);
	MUST(flow = flow_with(c));
	MUST(send_one());
	MUST_EQ(ibv_destroy_flow(flow), 0);
	MUST_EQ(ibv_read_counters(c, v, 4, 0), 0);
	MUST(v[3] >= 1 && v[1] == 2 * v[3] && !v[0] && !v[2] && v[4] == 9);
	MUST_EQ(attach(c, IBV_COUNTER_PACKETS, 0), 0);
	MUST_EQ(ibv_read_counters(c, later, 5, 0), 0);
	MUST(!later[0] && later[1] == v[1] && later[4] == v[3]);
	MUST(flow = flow_with(c));
	MUST(send_one());
	MUST_EQ(ibv_destroy_flow(flow), 0);
	MUST_EQ(ibv_read_counters(c, later, 5, 0), 0);
	MUST(later[0] >= 1 && later[0] == later[3] - v[3]);
	MUST_EQ(ibv_destroy_counters(c), 0);
	return end();
}

/* "ENOMEM": the maximum number of counters with flows, repeatedly. */
static bool as_many_as_there_may_be(void)
{
	static struct ibv_counters *c[1024];
	struct ibv_flow *flow;
	int n = 0;

	MUST(begin());
	for (; n < 1024; n++) {
		MUST(c[n] = ibv_create_counters(ctx, &plain));
		MUST_EQ(attach(c[n], IBV_COUNTER_PACKETS, 0), 0);
		flow = flow_with(c[n]);
		if (!flow)
			break;
		MUST_EQ(ibv_destroy_flow(flow), 0);
	}
	MUST(n >= 64 && n < 1024);
	MUST_EQ(errno, ENOMEM);
	MUST_EQ(ibv_destroy_counters(c[0]), 0);
	MUST(flow = flow_with(c[n]));
	MUST_EQ(ibv_destroy_flow(flow), 0);
	for (; n; n--)
		MUST_EQ(ibv_destroy_counters(c[n]), 0);
	return end();
}

const struct test_case man_cases[] = {
	CASE(create_and_destroy),
	CASE(attach_errors),
	CASE(busy_while_a_flow_has_it),
	CASE(flow_errors),
	CASE(reads_what_was_counted),
	CASE(indexes),
	CASE(as_many_as_there_may_be),
	{ 0 },
};
