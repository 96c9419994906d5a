/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san XROCE_CYCLES=1000 */
/*
 * The capability flags of ibv_query_device(3) and ibv_query_device_ex(3): the feature of each set
 * flag works, and the feature of each clear flag is refused.
 *
 * Sizes and numbers are in the pages of limits; the claims about FLUSH and ATOMIC WRITE in
 * wr_flush, about flows in ibv_create_flow, rates in ibv_modify_qp_rate_limit, path migration in
 * answers, wrong keys (IBV_DEVICE_BAD_PKEY_CNTR, BAD_QKEY_CNTR) in ibv_query_pkey. An event of the
 * port (IBV_DEVICE_PORT_ACTIVE_EVENT) needs another end: tests/netns/port_events.sh has it.
 */
#include "rights.h"

#define BIT(type) (1u << IBV_QPT_##type)

static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND,
					  IBV_QPT_RAW_PACKET };
#define EACH_TYPE(t) (unsigned int t = 0; t < sizeof(types) / sizeof(*types); t++)

static struct ibv_device_attr_ex dev;
static struct ibv_pd *pd;
static struct ibv_cq *cq;

static bool begin(void)
{
	MUST_EQ(ibv_query_device_ex(ctx, NULL, &dev), 0);
	MUST(pd = ibv_alloc_pd(ctx));
	MUST(cq = ibv_create_cq(ctx, 64, NULL, NULL, 0));
	return true;
}

static bool end(void)
{
	MUST_EQ(ibv_destroy_cq(cq), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

static struct ibv_qp_init_attr_ex plain(enum ibv_qp_type type)
{
	const bool receives = type != IBV_QPT_XRC_SEND;

	return (struct ibv_qp_init_attr_ex){ .qp_type = type,
					     .send_cq = cq,
					     .recv_cq = cq,
					     .cap = { QUEUE, receives * QUEUE, 1, receives, 0 },
					     .comp_mask = IBV_QP_INIT_ATTR_PD,
					     .pd = pd };
}

static struct ibv_qp *make_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex a = plain(type);

	return ibv_create_qp_ex(ctx, &a);
}

static bool refused(struct ibv_qp_init_attr_ex *a)
{
	MUST_FAIL(ibv_create_qp_ex(ctx, a), EOPNOTSUPP);
	return true;
}

/* ---- ibv_create_wq(3), ibv_modify_wq(3) and ibv_create_qp_ex(3) against raw_packet_caps ---- */

/* A feature that a flag of a work queue offers, and the same feature of a QP. */
static const struct {
	uint32_t wq, qp, raw_cap;
	uint64_t device_cap;
} offloads[] = {
	{ IBV_WQ_FLAGS_CVLAN_STRIPPING, IBV_QP_CREATE_CVLAN_STRIPPING,
	  IBV_RAW_PACKET_CAP_CVLAN_STRIPPING, 0 },
	{ IBV_WQ_FLAGS_SCATTER_FCS, IBV_QP_CREATE_SCATTER_FCS, IBV_RAW_PACKET_CAP_SCATTER_FCS,
	  IBV_DEVICE_RAW_SCATTER_FCS },
	{ IBV_WQ_FLAGS_DELAY_DROP, 0, IBV_RAW_PACKET_CAP_DELAY_DROP, 0 },
	{ IBV_WQ_FLAGS_PCI_WRITE_END_PADDING, IBV_QP_CREATE_PCI_WRITE_END_PADDING, 0,
	  IBV_DEVICE_PCI_WRITE_END_PADDING },
};
#define OFFLOADS (sizeof(offloads) / sizeof(*offloads))

static bool wq_modify_refused(struct ibv_wq *wq, uint32_t mask, uint32_t flags)
{
	struct ibv_wq_attr m = { .attr_mask = IBV_WQ_ATTR_FLAGS | IBV_WQ_ATTR_STATE,
				 .wq_state = IBV_WQS_RDY,
				 .flags_mask = mask,
				 .flags = flags };

	MUST_EQ(ibv_modify_wq(wq, &m), EOPNOTSUPP);
	MUST_EQ(wq->state, IBV_WQS_RESET);
	return true;
}

static bool work_queues_offload_nothing(void)
{
	struct ibv_wq_init_attr a = { .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1 };
	struct ibv_wq *wq;

	MUST(begin());
	a.pd = pd;
	a.cq = cq;
	MUST(wq = ibv_create_wq(ctx, &a));
	a.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
	for (unsigned int i = 0; i < OFFLOADS; i++) {
		MUST(!(dev.raw_packet_caps & offloads[i].raw_cap));
		MUST(!(dev.device_cap_flags_ex & offloads[i].device_cap));
		a.create_flags = offloads[i].wq;
		MUST_FAIL(ibv_create_wq(ctx, &a), EOPNOTSUPP);
		MUST(wq_modify_refused(wq, offloads[i].wq, offloads[i].wq));
		MUST(wq_modify_refused(wq, offloads[i].wq, 0));
	}
	/* IP_CSUM is not a flag of queues */
	MUST_EQ(dev.raw_packet_caps, 0);
	MUST_EQ(ibv_destroy_wq(wq), 0);
	return end();
}

/* QPs of every type, with each existing or future bit. Flags outside all masks are ignored. */
static bool queue_pairs_have_no_flags(void)
{
	struct ibv_qp *qp;

	MUST(begin());
	for EACH_TYPE(t) {
		struct ibv_qp_init_attr_ex a = plain(types[t]);

		a.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
		for (uint32_t flag = 1; flag; flag <<= 1) {
			a.create_flags = flag;
			MUST(refused(&a));
		}
		a.comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_CREATE_FLAGS;
		a.create_flags = IBV_QP_CREATE_CVLAN_STRIPPING;
		MUST(qp = ibv_create_qp_ex(ctx, &a));
		MUST_EQ(ibv_destroy_qp(qp), 0);
		a.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
		a.max_tso_header = 64;
		MUST(refused(&a));
	}
	return end();
}

/* ---- checksums and segmentation: ibv_post_send(3), tso_caps ---- */

/*
 * IBV_SEND_IP_CSUM is "valid only when device_cap_flags [...] indicates current QP is supported by
 * checksum offload"; IBV_WR_TSO where tso_caps has the type; other flags have no meaning.
 */
static bool post_refused(struct ibv_qp *qp, enum ibv_wr_opcode opcode, unsigned int flags)
{
	struct ibv_send_wr wr = { .opcode = opcode, .send_flags = flags }, *bad = NULL;
	struct ibv_ah_attr self = own_address();
	struct ibv_wc wc;

	if (qp->qp_type == IBV_QPT_UD)
		MUST(wr.wr.ud.ah = ibv_create_ah(pd, &self));
	MUST_EQ(ibv_post_send(qp, &wr, &bad), EINVAL);
	MUST(bad == &wr);
	MUST_EQ(ibv_poll_cq(cq, 1, &wc), 0);
	if (qp->qp_type == IBV_QPT_UD)
		MUST_EQ(ibv_destroy_ah(wr.wr.ud.ah), 0);
	return true;
}

static bool to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	if (qp->qp_type != IBV_QPT_RAW_PACKET) {
		MUST_EQ(qp_to_init(qp), 0);
		MUST_EQ(qp_to_rts(qp, qp->qp_num, 7), 0);
		return true;
	}
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PORT), 0);
	MUST_EQ(qp_to_state(qp, IBV_QPS_RTR), 0);
	MUST_EQ(qp_to_state(qp, IBV_QPS_RTS), 0);
	return true;
}

static bool nothing_is_offloaded_in_sending(void)
{
	const unsigned int sums = IBV_DEVICE_UD_IP_CSUM | IBV_DEVICE_RC_IP_CSUM |
				  IBV_DEVICE_RAW_IP_CSUM;

	MUST(begin());
	MUST(!(dev.orig_attr.device_cap_flags & sums));
	MUST_EQ(dev.tso_caps.max_tso, 0);
	MUST_EQ(dev.tso_caps.supported_qpts, 0);
	for EACH_TYPE(t) {
		struct ibv_qp_init_attr_ex a = plain(types[t]);
		struct ibv_qp *qp = make_qp(types[t]);

		MUST(qp && to_rts(qp));
		for (unsigned int flag = IBV_SEND_IP_CSUM; flag; flag <<= 1)
			MUST(post_refused(qp, IBV_WR_SEND, flag | IBV_SEND_SIGNALED));
		MUST(post_refused(qp, IBV_WR_TSO, IBV_SEND_SIGNALED));
		MUST(post_refused(qp, IBV_WR_DRIVER1, IBV_SEND_SIGNALED));
		MUST_EQ(ibv_destroy_qp(qp), 0);
		a.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		a.send_ops_flags = IBV_QP_EX_WITH_TSO;
		MUST(refused(&a));
	}
	return end();
}

/* ---- rss_caps ---- */

static bool hashed_by(struct ibv_rwq_ind_table *table, enum ibv_qp_type type, uint8_t function,
		      uint32_t fields, bool can)
{
	static uint8_t key[40] = { 0x6d, 0x5a };
	struct ibv_qp_init_attr_ex a = {
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH |
			     IBV_QP_INIT_ATTR_IND_TABLE,
		.pd = pd,
		.rx_hash_conf = { function, sizeof(key), key, fields },
		.rwq_ind_tbl = table,
	};
	struct ibv_qp *qp;

	if (!can)
		return refused(&a);
	MUST(qp = ibv_create_qp_ex(ctx, &a));
	MUST_EQ(ibv_destroy_qp(qp), 0);
	return true;
}

/* Each field of verbs.h alone, each function, each type: accepted as in rss_caps. */
static bool what_is_hashed(void)
{
	static const uint32_t inner[] = { 0, IBV_RX_HASH_INNER };
	struct ibv_wq_init_attr w = { .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1 };
	struct ibv_rwq_ind_table_init_attr of = { 0 };
	struct ibv_rwq_ind_table *table;
	struct ibv_wq *wq;
	uint32_t fields;

	MUST(begin());
	w.pd = pd;
	w.cq = cq;
	MUST(wq = ibv_create_wq(ctx, &w));
	of.ind_tbl = &wq;
	MUST(table = ibv_create_rwq_ind_table(ctx, &of));
	for (unsigned int bit = 0; bit <= 8; bit++)
		for (unsigned int i = 0; i < 2; i++) {
			fields = 1u << bit | inner[i];
			MUST(hashed_by(table, IBV_QPT_RAW_PACKET, IBV_RX_HASH_FUNC_TOEPLITZ, fields,
				       (dev.rss_caps.rx_hash_fields_mask & fields) == fields));
		}
	for (unsigned int bit = 0; bit < 8; bit++)
		MUST(hashed_by(table, IBV_QPT_RAW_PACKET, (uint8_t)(1u << bit),
			       IBV_RX_HASH_SRC_IPV4,
			       dev.rss_caps.rx_hash_function & 1u << bit));
	for EACH_TYPE(t)
		MUST(hashed_by(table, types[t], IBV_RX_HASH_FUNC_TOEPLITZ, IBV_RX_HASH_SRC_IPV4,
			       dev.rss_caps.supported_qpts & 1u << types[t]));
	MUST_EQ(dev.rss_caps.supported_qpts, BIT(RAW_PACKET));
	MUST_EQ(ibv_destroy_rwq_ind_table(table), 0);
	MUST_EQ(ibv_destroy_wq(wq), 0);
	return end();
}

/* ---- packet_pacing_caps ---- */

static bool which_types_are_paced(void)
{
	MUST(begin());
	for EACH_TYPE(t) {
		const struct ibv_packet_pacing_caps *caps = &dev.packet_pacing_caps;
		struct ibv_qp_rate_limit_attr a = { .rate_limit = caps->qp_rate_limit_max };
		struct ibv_qp_attr m = { .rate_limit = caps->qp_rate_limit_max };
		const bool can = caps->supported_qpts & 1u << types[t];
		struct ibv_qp *qp = make_qp(types[t]);

		MUST(qp && to_rts(qp));
		MUST_EQ(can, types[t] != IBV_QPT_RAW_PACKET);
		MUST_EQ(ibv_modify_qp_rate_limit(qp, &a), can ? 0 : EINVAL);
		MUST_EQ(ibv_modify_qp(qp, &m, IBV_QP_RATE_LIMIT), can ? 0 : EOPNOTSUPP);
		MUST_EQ(ibv_destroy_qp(qp), 0);
	}
	return end();
}

/* ---- odp_caps ---- */

/* Returns the operations of a bit of enum ibv_odp_transport_cap_bits, for the service. */
static uint32_t odp_of(enum ibv_qp_type type)
{
	uint32_t caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_SRQ_RECV;

	if (type != IBV_QPT_XRC_SEND)
		caps |= IBV_ODP_SUPPORT_RECV;
	if (wr_ops[OP_WRITE].services & 1u << type)
		caps |= IBV_ODP_SUPPORT_WRITE;
	if (wr_ops[OP_READ].services & 1u << type)
		caps |= IBV_ODP_SUPPORT_READ;
	if (wr_ops[OP_CMP_SWP].services & 1u << type)
		caps |= IBV_ODP_SUPPORT_ATOMIC;
	/* IBV_ODP_SUPPORT_FLUSH, IBV_ODP_SUPPORT_ATOMIC_WRITE of rdma-core 65 */
	if (wr_ops[OP_FLUSH].services & 1u << type)
		caps |= 1 << 6;
	if (wr_ops[OP_ATOMIC_WRITE].services & 1u << type)
		caps |= 1 << 7;
	return caps;
}

/* Both ends' memory on demand: each operation of the service, and a SEND. */
static bool on_demand(struct wr_ends *e)
{
	for (int i = 0; i < 2; i++) {
		MUST_EQ(ibv_dereg_mr(e->mr[i]), 0);
		MUST(e->mr[i] = ibv_reg_mr(e->pd, e->buf[i], BUF_BYTES,
					   e->access | IBV_ACCESS_ON_DEMAND));
	}
	for EACH_REMOTE_OP(e, op)
		if (wr_ops[*op].services & 1u << e->type)
			MUST(try(e, *op, e->mr[1]->rkey, (uintptr_t)e->buf[1] + REMOTE_AT,
				 REMOTE_AT, IBV_WC_SUCCESS));
	return wr_nothing_was_posted(e);
}

static bool pages_on_demand(void)
{
	MUST(begin());
	MUST_EQ(dev.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	MUST_EQ(dev.odp_caps.per_transport_caps.rc_odp_caps, odp_of(IBV_QPT_RC));
	MUST_EQ(dev.odp_caps.per_transport_caps.uc_odp_caps, odp_of(IBV_QPT_UC));
	MUST_EQ(dev.odp_caps.per_transport_caps.ud_odp_caps, odp_of(IBV_QPT_UD));
	MUST_EQ(dev.xrc_odp_caps, odp_of(IBV_QPT_XRC_SEND));
	MUST(on_service(IBV_QPT_RC, on_demand) && on_service(IBV_QPT_UC, on_demand));
	MUST(on_service(IBV_QPT_UD, on_demand) && on_service(IBV_QPT_XRC_SEND, on_demand));
	return end();
}

/* ---- atomic_cap, and pci_atomic_caps ---- */

/* 8 bytes, and no other size; no PCI atomics. */
static bool atomics_of_one_size(void)
{
	static const uint32_t sizes[] = { 0, 1, 4, 7, 9, 16 };
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_ATOMIC_CMP_AND_SWP,
						      IBV_WR_ATOMIC_FETCH_AND_ADD };
	static uint64_t memory[4];
	const int access = L_WRITE | R_ATOMIC;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	MUST(begin());
	MUST_EQ(dev.orig_attr.atomic_cap, IBV_ATOMIC_HCA);
	MUST_EQ(dev.pci_atomic_caps.fetch_add, 0);
	MUST_EQ(dev.pci_atomic_caps.swap, 0);
	MUST_EQ(dev.pci_atomic_caps.compare_swap, 0);
	MUST(mr = ibv_reg_mr(pd, memory, sizeof(memory), access));
	for (unsigned int i = 0; i < 12; i++) {
		struct ibv_qp *qp = qp_to_itself(pd, cq, cq, NULL);
		struct ibv_sge sge = { (uintptr_t)memory, sizes[i / 2], mr->lkey };
		struct ibv_send_wr wr = { .opcode = opcodes[i % 2], .sg_list = &sge, .num_sge = 1,
					  .send_flags = IBV_SEND_SIGNALED }, *bad;

		wr.wr.atomic.remote_addr = (uintptr_t)&memory[2];
		wr.wr.atomic.rkey = mr->rkey;
		wr.wr.atomic.compare_add = memory[2];
		wr.wr.atomic.swap = 5;
		MUST(qp);
		MUST_EQ(ibv_post_send(qp, &wr, &bad), 0);
		MUST(wait_wc(cq, &wc));
		MUST_EQ(wc.status, IBV_WC_LOC_LEN_ERR);
		MUST(memory[0] == 0 && memory[2] == 0);
		MUST_EQ(ibv_destroy_qp(qp), 0);
	}
	MUST_EQ(ibv_dereg_mr(mr), 0);
	return end();
}

/* ---- device_cap_flags ---- */

/* The claimed flags, all tested below. */
static bool no_other_flag_is_set(void)
{
	const unsigned int claimed =
		IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR |
		IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SYS_IMAGE_GUID |
		IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SRQ_RESIZE |
		IBV_DEVICE_XRC | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
		(unsigned int)IBV_DEVICE_MANAGED_FLOW_STEERING;

	MUST(begin());
	MUST_EQ(dev.orig_attr.device_cap_flags, claimed);
	/* and FLUSH and ATOMIC WRITE */
	MUST((dev.device_cap_flags_ex & ~(1ull << 38 | 1ull << 40)) == claimed);
	MUST(dev.orig_attr.sys_image_guid);
	return end();
}

/* CURR_QP_STATE_MOD: "Assume this is the current QP state"; another one is refused. */
static bool current_state_is_looked_at(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_RTS,
				 .min_rnr_timer = 3 }, now;
	const int mask = IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_MIN_RNR_TIMER;
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp;

	MUST(begin());
	MUST(qp = qp_to_itself(pd, cq, cq, NULL));
	MUST_EQ(ibv_modify_qp(qp, &a, mask), 0);
	a.min_rnr_timer = 9;
	a.cur_qp_state = IBV_QPS_SQD;
	MUST_EQ(ibv_modify_qp(qp, &a, mask), EINVAL);
	MUST_EQ(ibv_query_qp(qp, &now, IBV_QP_MIN_RNR_TIMER, &init), 0);
	MUST_EQ(now.min_rnr_timer, 3);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	return end();
}

/* RC_RNR_NAK_GEN: without a receive the request ends by a NAK, not by a time-out. */
static bool rnr_naks_are_made(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_qp *qp;
	struct ibv_wc wc;

	MUST(begin());
	MUST(qp = make_qp(IBV_QPT_RC));
	MUST_EQ(qp_to_init(qp), 0);
	MUST_EQ(qp_to_rts(qp, qp->qp_num, 1), 0);
	MUST_EQ(ibv_post_send(qp, &wr, &bad), 0);
	MUST(wait_wc(cq, &wc));
	MUST_EQ(wc.status, IBV_WC_RNR_RETRY_EXC_ERR);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	return end();
}

/* SRQ_RESIZE, XRC, MEM_WINDOW, MEM_WINDOW_TYPE_2B, MANAGED_FLOW_STEERING: makes one of each. */
static bool what_is_claimed_is_made(void)
{
	struct ibv_srq_init_attr s = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq_attr more = { .max_wr = 100 };
	struct ibv_xrcd_init_attr x = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
						     IBV_XRCD_INIT_ATTR_OFLAGS,
					.fd = -1, .oflags = O_CREAT };
	struct ibv_flow_attr all = { .type = IBV_FLOW_ATTR_ALL_DEFAULT, .size = sizeof(all),
				     .port = 1 };
	struct ibv_recv_wr r = { 0 }, *bad;
	struct ibv_xrcd *xrcd;
	struct ibv_flow *flow;
	struct ibv_srq *srq;
	struct ibv_qp *qp;

	MUST(begin());
	MUST(srq = ibv_create_srq(pd, &s));
	MUST_EQ(ibv_modify_srq(srq, &more, IBV_SRQ_MAX_WR), 0);
	for (int i = 0; i < 100; i++)
		MUST_EQ(ibv_post_srq_recv(srq, &r, &bad), 0);
	MUST_EQ(ibv_destroy_srq(srq), 0);
	MUST(xrcd = ibv_open_xrcd(ctx, &x));
	MUST_EQ(ibv_close_xrcd(xrcd), 0);
	for (int type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		struct ibv_mw *mw = ibv_alloc_mw(pd, (enum ibv_mw_type)type);

		MUST(mw);
		MUST_EQ(ibv_dealloc_mw(mw), 0);
	}
	MUST(qp = make_qp(IBV_QPT_RAW_PACKET));
	MUST(flow = ibv_create_flow(qp, &all));
	MUST_EQ(ibv_destroy_flow(flow), 0);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	return end();
}

/*
 * RESIZE_MAX_WR: "Modify the maximum number of outstanding WRs"; CHANGE_PHY_PORT: another port of
 * an alternate path or of a draining QP. The flags are clear, so these are refused.
 */
static bool what_is_not_claimed_is_refused(void)
{
	struct ibv_qp_attr a = { .cap = { 2 * QUEUE, 2 * QUEUE, 1, 1, 0 }, .port_num = 2,
				 .qp_state = IBV_QPS_SQD };
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp;

	MUST(begin());
	MUST(qp = qp_to_itself(pd, cq, cq, NULL));
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_CAP), EOPNOTSUPP);
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_CAP), EOPNOTSUPP);
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PORT), EINVAL);
	MUST_EQ(ibv_query_qp(qp, &a, IBV_QP_CAP | IBV_QP_PORT, &init), 0);
	MUST_EQ(a.port_num, 1);
	MUST(init.cap.max_send_wr < 2 * QUEUE);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	return end();
}

const struct test_case man_cases[] = {
	CASE(work_queues_offload_nothing),
	CASE(queue_pairs_have_no_flags),
	CASE(nothing_is_offloaded_in_sending),
	CASE(what_is_hashed),
	CASE(which_types_are_paced),
	CASE(pages_on_demand),
	CASE(atomics_of_one_size),
	CASE(no_other_flag_is_set),
	CASE(current_state_is_looked_at),
	CASE(rnr_naks_are_made),
	CASE(what_is_claimed_is_made),
	CASE(what_is_not_claimed_is_refused),
	{ 0 },
};
