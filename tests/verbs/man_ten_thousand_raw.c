/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core XROCE_CYCLES=2000 */
/* tier: long long */
/* tier: long san XROCE_CYCLES=1000 */
/*
 * The objects of raw packet QPs are made and destroyed 10,000 times, and leave nothing (held.h):
 * the QPs, flows of each type, sniffers among them, counters, work queues, tables.
 */
#include "held.h"
#include "man.h"

/* What all cycles need: made once. */
static struct world {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
} w;

static bool cycles_of(bool (*cycle)(int i), int n)
{
	MUST(w.pd = ibv_alloc_pd(ctx));
	MUST(w.cq = ibv_create_cq(ctx, 64, NULL, NULL, 0));
	MUST(leaves_nothing(cycle, n));
	MUST_EQ(ibv_destroy_cq(w.cq), 0);
	MUST_EQ(ibv_dealloc_pd(w.pd), 0);
	return true;
}

/* A case of a fraction of the cycles, where each queries the kernel several times. */
#define TEN_THOUSAND(name, part)                                                                   \
	static bool name(void)                                                                     \
	{                                                                                          \
		return cycles_of(name##_cycle, cycles_wanted() / (part));                          \
	}

static struct ibv_counters *new_counters(void)
{
	struct ibv_counters_init_attr init = { 0 };
	struct ibv_counter_attach_attr packets = { IBV_COUNTER_PACKETS, 0, 0 };
	struct ibv_counters *c = ibv_create_counters(ctx, &init);

	return c && !ibv_attach_counters_point_flow(c, &packets, NULL) ? c : NULL;
}

static bool counters_cycle(int i)
{
	struct ibv_counters *c = new_counters();

	MUST(c);
	MUST_EQ(ibv_destroy_counters(c), 0);
	return true;
}
TEN_THOUSAND(counters, 1)

static struct ibv_qp *new_raw(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RAW_PACKET,
					 .cap = { QUEUE, QUEUE, 2, 2, 64 },
					 .send_cq = w.cq,
					 .recv_cq = w.cq };
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp = ibv_create_qp(w.pd, &init);

	if (!qp || ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PORT))
		return NULL;
	a.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(qp, &a, IBV_QP_STATE))
		return NULL;
	a.qp_state = IBV_QPS_RTS;
	return ibv_modify_qp(qp, &a, IBV_QP_STATE) ? NULL : qp;
}

static bool raw_cycle(int i)
{
	struct ibv_qp *qp = new_raw();

	MUST(qp);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	return true;
}
TEN_THOUSAND(raw, 1)

static void flow_append(struct ibv_flow_attr *attr, const void *spec, size_t size)
{
	memcpy((char *)attr + attr->size, spec, size);
	attr->size = (uint16_t)(attr->size + size);
	attr->num_of_specs++;
}

/* Counted; a normal one is for its own MAC. */
static struct ibv_flow *new_flow(struct ibv_qp *qp, enum ibv_flow_attr_type type, uint32_t flags,
				 struct ibv_counters *counters, int i)
{
	struct ibv_flow_spec_counter_action count = { IBV_FLOW_SPEC_ACTION_COUNT, sizeof(count),
						      counters };
	struct ibv_flow_spec_eth eth = {
		.type = IBV_FLOW_SPEC_ETH,
		.size = sizeof(eth),
		.val.dst_mac = { 2, 0, 0, 0x99, (uint8_t)(i >> 8), (uint8_t)i },
		.mask.dst_mac = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
	};
	_Alignas(8) char room[128];
	struct ibv_flow_attr *attr = (void *)room;

	*attr = (struct ibv_flow_attr){
		.type = type, .flags = flags, .size = sizeof(*attr), .port = 1
	};
	flow_append(attr, &count, sizeof(count));
	if (type == IBV_FLOW_ATTR_NORMAL)
		flow_append(attr, &eth, sizeof(eth));
	return ibv_create_flow(qp, attr);
}

/* Of each type, for MACs that the interface must accept, with copies and counted. */
static bool flows_cycle(int i)
{
	static const struct {
		enum ibv_flow_attr_type type;
		uint32_t flags;
	} kinds[] = {
		{ IBV_FLOW_ATTR_NORMAL, 0 },
		{ IBV_FLOW_ATTR_NORMAL, IBV_FLOW_ATTR_FLAGS_DONT_TRAP },
		{ IBV_FLOW_ATTR_ALL_DEFAULT, 0 },
		{ IBV_FLOW_ATTR_MC_DEFAULT, 0 },
		{ IBV_FLOW_ATTR_SNIFFER, 0 },
	};
	static struct ibv_counters *counters;
	static struct ibv_qp *qp;
	struct ibv_flow *flow;

	if (i % 50 == 0)
		MUST((qp = new_raw()) && (counters = new_counters()));
	MUST(flow = new_flow(qp, kinds[i % 5].type, kinds[i % 5].flags, counters, i));
	MUST(!new_flow(qp, kinds[i % 5].type, 1, counters, i)); /* nor does a refused one */
	MUST_EQ(ibv_destroy_flow(flow), 0);
	if (i % 50 == 49) {
		MUST_EQ(ibv_destroy_qp(qp), 0);
		MUST_EQ(ibv_destroy_counters(counters), 0);
	}
	return true;
}
TEN_THOUSAND(flows, 4)

/* Two work queues, a table of them, a QP with it, and on every tenth a sniffer that spreads. */
static bool tables_cycle(int i)
{
	struct ibv_wq_init_attr wq_init = { .wq_type = IBV_WQT_RQ,
					    .max_wr = 8,
					    .max_sge = 1,
					    .pd = w.pd,
					    .cq = w.cq };
	static uint8_t key[40] = { 0x6d, 0x5a };
	struct ibv_wq *wq[2] = { ibv_create_wq(ctx, &wq_init), ibv_create_wq(ctx, &wq_init) };
	struct ibv_rwq_ind_table_init_attr of = { .log_ind_tbl_size = 1, .ind_tbl = wq };
	struct ibv_rwq_ind_table *table = ibv_create_rwq_ind_table(ctx, &of);
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH |
			     IBV_QP_INIT_ATTR_IND_TABLE,
		.pd = w.pd,
		.rx_hash_conf = { IBV_RX_HASH_FUNC_TOEPLITZ, sizeof(key), key, 0xff },
		.rwq_ind_tbl = table,
	};
	struct ibv_flow *sniffer;
	struct ibv_qp *qp;

	MUST(wq[0] && wq[1] && table);
	MUST(qp = ibv_create_qp_ex(ctx, &init));
	if (i % 10 == 0) {
		struct ibv_flow_attr attr = { .type = IBV_FLOW_ATTR_SNIFFER,
					      .size = sizeof(attr),
					      .port = 1 };

		MUST(sniffer = ibv_create_flow(qp, &attr));
		MUST_EQ(ibv_destroy_flow(sniffer), 0);
	}
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_destroy_rwq_ind_table(table), 0);
	MUST_EQ(ibv_destroy_wq(wq[0]), 0);
	MUST_EQ(ibv_destroy_wq(wq[1]), 0);
	return true;
}
TEN_THOUSAND(tables, 4)

const struct test_case man_cases[] = {
	CASE(counters),
	CASE(raw),
	CASE(flows),
	CASE(tables),
	{ 0 },
};
