/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* needs: processors */
/*
 * The maxima of raw packet QPs at the same time, none at another's expense: max_wq_type_rq,
 * max_rwq_indirection_tables, max_rwq_indirection_table_size, flows, counters of flows. Each
 * alone is in ibv_create_wq, ibv_create_rwq_ind_table and ibv_create_flow.
 */
#include "man.h"

#define ROOM 4096 /* more flows than there may be */

static struct ibv_device_attr_ex dev;
static struct ibv_pd *pd;
static struct ibv_cq *cq;

static struct ibv_wq *make_wq(void)
{
	struct ibv_wq_init_attr a = { .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1,
				      .pd = pd, .cq = cq };

	return ibv_create_wq(ctx, &a);
}

static struct ibv_counters *make_counters(void)
{
	struct ibv_counters_init_attr init = { 0 };
	struct ibv_counter_attach_attr packets = { IBV_COUNTER_PACKETS, 0, 0 };
	struct ibv_counters *c = ibv_create_counters(ctx, &init);

	return c && !ibv_attach_counters_point_flow(c, &packets, NULL) ? c : NULL;
}

/* Of frames from one MAC. */
static struct ibv_flow *make_flow(struct ibv_qp *qp, int i, struct ibv_counters *counters)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
		struct ibv_flow_spec_counter_action count;
	} __attribute__((packed, aligned(4))) rule = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .num_of_specs = 2,
			  .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth),
			 .val.src_mac = { 2, 0, 0, 0x99, (uint8_t)(i >> 8), (uint8_t)i },
			 .mask.src_mac = { 255, 255, 255, 255, 255, 255 } },
		.count = { IBV_FLOW_SPEC_ACTION_COUNT, sizeof(rule.count), counters },
	};

	return ibv_create_flow(qp, &rule.attr);
}

static struct ibv_qp *make_qp(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RAW_PACKET,
					 .cap = { 1, 1, 1, 1, 0 },
					 .send_cq = cq,
					 .recv_cq = cq };

	return ibv_create_qp(pd, &init);
}

static struct ibv_qp *qp;
static struct ibv_wq **wq;
static struct ibv_rwq_ind_table **table;
static struct ibv_flow *flow[ROOM];
static struct ibv_counters *counters[ROOM];

static bool begin(void)
{
	MUST_EQ(ibv_query_device_ex(ctx, NULL, &dev), 0);
	MUST(pd = ibv_alloc_pd(ctx));
	MUST(cq = ibv_create_cq(ctx, 16, NULL, NULL, 0));
	MUST(qp = make_qp());
	MUST(wq = calloc(dev.max_wq_type_rq, sizeof(struct ibv_wq *)));
	MUST(table = calloc(dev.rss_caps.max_rwq_indirection_tables,
			    sizeof(struct ibv_rwq_ind_table *)));
	return true;
}

/* One QP exists: the work queues are one fewer than QPs. Returns the number made. */
static bool fill(int *wqs, int *tables, int *flows)
{
	struct ibv_rwq_ind_table_init_attr a = { .ind_tbl = wq };
	const uint32_t size = dev.rss_caps.max_rwq_indirection_table_size;
	const int max_tables = (int)dev.rss_caps.max_rwq_indirection_tables;

	for (*wqs = 0; *wqs < (int)dev.max_wq_type_rq - 1; ++*wqs)
		MUST(wq[*wqs] = make_wq());
	MUST_FAIL(make_wq(), ENOMEM);
	MUST(*wqs >= (int)size);
	/* each of separate work queues; the last have the maximum length */
	for (*tables = 0; *tables < max_tables; ++*tables) {
		a.log_ind_tbl_size =
			*tables < max_tables - 16 ? 0 : (uint32_t)__builtin_ctz(size);
		MUST(table[*tables] = ibv_create_rwq_ind_table(ctx, &a));
	}
	MUST_FAIL(ibv_create_rwq_ind_table(ctx, &a), ENOMEM);
	for (*flows = 0; *flows < ROOM; ++*flows) {
		MUST(counters[*flows] = make_counters());
		if (!(flow[*flows] = make_flow(qp, *flows, counters[*flows])))
			break;
	}
	MUST_EQ(errno, ENOMEM);
	MUST(*flows >= 64 && *flows < ROOM);
	return true;
}

/* A released place is free, for exactly one. */
static bool place_is_free(int flows)
{
	MUST_EQ(ibv_destroy_flow(flow[flows / 2]), 0);
	MUST(flow[flows / 2] = make_flow(qp, flows / 2, counters[flows / 2]));
	MUST_FAIL(make_flow(qp, flows, counters[flows]), ENOMEM);
	MUST_EQ(ibv_destroy_counters(counters[0]), EBUSY);
	return true;
}

static bool all_at_once(void)
{
	int wqs, tables, flows;

	MUST(begin());
	/* and again: all of them were released */
	for (int i = 0; i < 2; i++) {
		MUST(fill(&wqs, &tables, &flows));
		MUST(place_is_free(flows));
		for (int n = 0; n < flows; n++)
			MUST_EQ(ibv_destroy_flow(flow[n]), 0);
		for (int n = 0; n <= flows; n++)
			MUST_EQ(ibv_destroy_counters(counters[n]), 0);
		MUST_EQ(ibv_destroy_wq(wq[0]), EBUSY);
		while (tables)
			MUST_EQ(ibv_destroy_rwq_ind_table(table[--tables]), 0);
		while (wqs)
			MUST_EQ(ibv_destroy_wq(wq[--wqs]), 0);
	}
	free(wq);
	free(table);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

const struct test_case man_cases[] = {
	CASE(all_at_once),
	{ 0 },
};
