/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san */
/*
 * ibv_close_device(3) with objects left, of the last context of its file: as the kernel does, the
 * device ends all of them. The program can still destroy the handles, in the usual order.
 */
#include <arpa/inet.h>

#include "held.h"
#include "man.h"

#define FRAME	 64
#define GRH	 40
#define MANY_PDS 65536 /* max_pd */

/* A context of its own, its PD and CQ. */
struct world {
	struct ibv_context *c;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	char buf[4096];
};

static bool world_open(struct world *w)
{
	memset(w, 0, sizeof(*w));
	MUST(w->c = ibv_open_device(ctx->device));
	MUST(w->pd = ibv_alloc_pd(w->c));
	MUST(w->cq = ibv_create_cq(w->c, 64, NULL, NULL, 0));
	MUST(w->mr = ibv_reg_mr(w->pd, w->buf, sizeof(w->buf), IBV_ACCESS_LOCAL_WRITE));
	return true;
}

static bool world_leave(struct world *w)
{
	MUST_EQ(ibv_close_device(w->c), 0);
	w->c = NULL;
	return true;
}

static bool world_end(struct world *w)
{
	MUST_EQ(ibv_dereg_mr(w->mr), 0);
	MUST_EQ(ibv_destroy_cq(w->cq), 0);
	MUST_EQ(ibv_dealloc_pd(w->pd), 0);
	if (w->c)
		MUST_EQ(ibv_close_device(w->c), 0);
	return true;
}

static struct ibv_qp *new_qp(struct world *w, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = { .qp_type = type,
					 .send_cq = w->cq,
					 .recv_cq = w->cq,
					 .sq_sig_all = 1,
					 .cap = { QUEUE, QUEUE, 1, 1, 0 } };

	return ibv_create_qp(w->pd, &init);
}

static struct ibv_qp *raw_qp(struct world *w)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp = new_qp(w, IBV_QPT_RAW_PACKET);

	if (!qp || ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PORT))
		return NULL;
	a.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(qp, &a, IBV_QP_STATE))
		return NULL;
	a.qp_state = IBV_QPS_RTS;
	return ibv_modify_qp(qp, &a, IBV_QP_STATE) ? NULL : qp;
}

static struct ibv_sge part_of(struct world *w, uint32_t offset, uint32_t length)
{
	return (struct ibv_sge){ (uintptr_t)w->buf + offset, length, w->mr->lkey };
}

static int receive(struct world *w, struct ibv_qp *qp, uint64_t wr_id, uint32_t offset)
{
	struct ibv_sge sge = part_of(w, offset, 1024);
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(qp, &wr, &bad);
}

/* ---- flows, their counters, work queues ---- */

/* Of all frames of one ethertype; the least order is compared first. */
static struct ibv_flow *new_flow(struct ibv_qp *qp, uint16_t order, struct ibv_counters *counters)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
		struct ibv_flow_spec_counter_action count;
	} __attribute__((packed, aligned(4))) f = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL,
			  .priority = order,
			  .num_of_specs = counters ? 2 : 1,
			  .port = 1,
			  .size = sizeof(f) },
		.eth = { .type = IBV_FLOW_SPEC_ETH,
			 .size = sizeof(f.eth),
			 .val.ether_type = htons(0x88b5),
			 .mask.ether_type = 0xffff },
		.count = { IBV_FLOW_SPEC_ACTION_COUNT, sizeof(f.count), counters },
	};

	return ibv_create_flow(qp, &f.attr);
}

/* A frame of this ethertype to the interface's own MAC. */
static bool send_frame(struct world *w, struct ibv_qp *qp)
{
	struct ibv_sge sge = part_of(w, 1024, FRAME);
	struct ibv_send_wr wr = { .wr_id = 9, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND }, *bad;
	struct ibv_ah_attr attr = own_address();
	uint16_t vid;

	memset(w->buf + 1024, 0x5a, FRAME);
	MUST_EQ(ibv_resolve_eth_l2_from_gid(ctx, &attr, (uint8_t *)w->buf + 1024, &vid), 0);
	memcpy(w->buf + 1024 + 12, (uint8_t[]){ 0x88, 0xb5 }, 2);
	MUST_EQ(ibv_post_send(qp, &wr, &bad), 0);
	return true;
}

/* Both completions of a frame that came to the QP of the same CQ. */
static bool frame_returns(struct world *w)
{
	struct ibv_wc wc;
	uint64_t seen = 0;

	for (int i = 0; i < 2; i++) {
		MUST(wait_wc(w->cq, &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		seen |= wc.wr_id;
	}
	MUST_EQ(seen, 9 | 16);
	return true;
}

/* The left QP has the frames while its context is open; then the next flow gets them. */
static bool flows_end(void)
{
	static struct world here, left;
	struct ibv_counters_init_attr plain = { 0 };
	struct ibv_counter_attach_attr packets = { IBV_COUNTER_PACKETS, 0, 0 };
	struct ibv_flow *flow, *next, *sniffer, *rest;
	struct ibv_flow_attr all = { .type = IBV_FLOW_ATTR_SNIFFER, .size = sizeof(all),
				     .port = 1 };
	struct ibv_flow_attr others = { .type = IBV_FLOW_ATTR_ALL_DEFAULT,
					.size = sizeof(others), .port = 1 };
	struct ibv_counters *counters;
	struct ibv_qp *qp, *other, *ears;
	struct held before, after;
	uint64_t count = 0;
	struct ibv_wc wc;

	MUST(world_open(&here) && world_open(&left));
	MUST((qp = raw_qp(&here)) && (other = raw_qp(&left)) && (ears = raw_qp(&left)));
	MUST(next = new_flow(qp, 2, NULL));
	MUST(held_now(&before));
	MUST(counters = ibv_create_counters(left.c, &plain));
	MUST_EQ(ibv_attach_counters_point_flow(counters, &packets, NULL), 0);
	MUST(flow = new_flow(other, 1, counters));
	MUST(sniffer = ibv_create_flow(ears, &all));
	/* the interface becomes promiscuous */
	MUST(rest = ibv_create_flow(ears, &others));
	MUST(held_now(&after));
	MUST(after.promiscuity > before.promiscuity);
	MUST(!receive(&left, other, 1, 0) && !receive(&here, qp, 16, 0));
	MUST(send_frame(&here, qp));
	MUST(wait_wc(left.cq, &wc) && wc.wr_id == 1 && wc.status == IBV_WC_SUCCESS);
	MUST(wait_wc(here.cq, &wc) && wc.wr_id == 9);
	MUST_EQ(ibv_read_counters(counters, &count, 1, 0), 0);
	MUST_EQ(count, 1);
	MUST(!receive(&left, other, 1, 0));
	memset(left.buf, 0, FRAME);
	MUST(world_leave(&left));
	MUST(held_now(&after));
	MUST_EQ(after.promiscuity, before.promiscuity);
	MUST(send_frame(&here, qp));
	MUST(frame_returns(&here));
	MUST_EQ(left.buf[13], 0);
	/* the handles, as if they were of an open context */
	MUST_EQ(ibv_destroy_flow(flow), 0);
	MUST(!ibv_destroy_flow(sniffer) && !ibv_destroy_flow(rest));
	MUST_EQ(ibv_destroy_counters(counters), 0);
	MUST(!ibv_destroy_qp(other) && !ibv_destroy_qp(ears));
	MUST_EQ(ibv_destroy_flow(next), 0);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	return world_end(&left) && world_end(&here);
}

/* A QP with a table loses its flow, and the work queue its receives. */
static bool work_queues_end(void)
{
	static struct world here, left;
	struct ibv_wq_attr ready = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	static uint8_t key[40];
	struct ibv_wq_init_attr init;
	struct ibv_rwq_ind_table_init_attr one = { 0 };
	struct ibv_qp_init_attr_ex hash = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.rx_hash_conf = { IBV_RX_HASH_FUNC_TOEPLITZ, sizeof(key), key, 0 },
	};
	struct ibv_sge sge;
	struct ibv_recv_wr rr = { .wr_id = 3, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_rwq_ind_table *table;
	struct ibv_flow *flow, *next;
	struct ibv_qp *qp, *spread;
	struct ibv_wq *wq;
	struct ibv_wc wc;

	MUST(world_open(&here) && world_open(&left));
	init = (struct ibv_wq_init_attr){ .wq_type = IBV_WQT_RQ, .max_wr = QUEUE, .max_sge = 1,
					  .pd = left.pd, .cq = left.cq };
	MUST(wq = ibv_create_wq(left.c, &init));
	MUST_EQ(ibv_modify_wq(wq, &ready), 0);
	one.ind_tbl = &wq;
	MUST(table = ibv_create_rwq_ind_table(left.c, &one));
	hash.pd = left.pd;
	hash.rwq_ind_tbl = table;
	MUST(spread = ibv_create_qp_ex(left.c, &hash));
	MUST((qp = raw_qp(&here)) && (next = new_flow(qp, 2, NULL)));
	MUST(flow = new_flow(spread, 1, NULL));
	sge = part_of(&left, 0, 1024);
	MUST(!ibv_post_wq_recv(wq, &rr, &bad) && !ibv_post_wq_recv(wq, &rr, &bad));
	MUST(!receive(&here, qp, 16, 0));
	MUST(send_frame(&here, qp));
	MUST(wait_wc(left.cq, &wc) && wc.wr_id == 3 && wc.status == IBV_WC_SUCCESS);
	MUST(wait_wc(here.cq, &wc) && wc.wr_id == 9);
	memset(left.buf, 0, FRAME);
	MUST(world_leave(&left));
	MUST(send_frame(&here, qp));
	MUST(frame_returns(&here));
	MUST_EQ(left.buf[13], 0);
	MUST_EQ(ibv_modify_wq(wq, &ready), EIO);
	MUST_EQ(ibv_post_wq_recv(wq, &rr, &bad), EINVAL); /* RESET */
	MUST(ibv_poll_cq(left.cq, 1, &wc) <= 0);
	MUST_EQ(ibv_destroy_flow(flow), 0);
	MUST_EQ(ibv_destroy_qp(spread), 0);
	MUST_EQ(ibv_destroy_rwq_ind_table(table), 0);
	MUST_EQ(ibv_destroy_wq(wq), 0);
	MUST_EQ(ibv_destroy_flow(next), 0);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	return world_end(&left) && world_end(&here);
}

/* ---- multicast groups ---- */

static union ibv_gid group_of(uint8_t last)
{
	return (union ibv_gid){ .raw = { [10] = 0xff, [11] = 0xff, 239, 3, 4, last } };
}

/* The interface leaves the groups of the left QP alone; it stays in those of other QPs. */
static bool memberships_end(void)
{
	static struct world here, left;
	const union ibv_gid both = group_of(1), own = group_of(2);
	struct held before, after;
	struct ibv_qp *qp, *other;

	MUST(world_open(&here) && world_open(&left));
	MUST((qp = new_qp(&here, IBV_QPT_UD)) && (other = new_qp(&left, IBV_QPT_UD)));
	MUST_EQ(ibv_attach_mcast(qp, &both, 0), 0);
	MUST(held_now(&before));
	MUST_EQ(ibv_attach_mcast(other, &both, 0), 0);
	MUST_EQ(ibv_attach_mcast(other, &own, 0), 0);
	MUST(held_now(&after));
	MUST_EQ(after.groups, before.groups + 1);
	MUST(world_leave(&left));
	MUST(held_now(&after));
	MUST_EQ(after.groups, before.groups);
	MUST_EQ(ibv_detach_mcast(other, &own, 0), EINVAL);
	MUST_EQ(ibv_destroy_qp(other), 0);
	MUST_EQ(ibv_detach_mcast(qp, &both, 0), 0);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	return world_end(&left) && world_end(&here);
}

/* ---- XRC ---- */

static struct ibv_xrcd *domain_of(struct ibv_context *c, int fd, int flags)
{
	struct ibv_xrcd_init_attr a = { .comp_mask =
						IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
					.fd = fd,
					.oflags = flags };

	return ibv_open_xrcd(c, &a);
}

static struct ibv_srq *domain_srq(struct world *w, struct ibv_xrcd *xrcd)
{
	struct ibv_srq_init_attr_ex a = { .attr = { .max_wr = QUEUE, .max_sge = 1 },
					  .srq_type = IBV_SRQT_XRC,
					  .pd = w->pd,
					  .xrcd = xrcd,
					  .cq = w->cq,
					  .comp_mask =
						  IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
						  IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ };

	return ibv_create_srq_ex(w->c, &a);
}

static struct ibv_qp *open_target(struct world *w, struct ibv_xrcd *xrcd, uint32_t qpn)
{
	struct ibv_qp_open_attr a = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
						   IBV_QP_OPEN_ATTR_TYPE,
				      .qp_num = qpn,
				      .xrcd = xrcd,
				      .qp_type = IBV_QPT_XRC_RECV };

	return ibv_open_qp(w->c, &a);
}

/* An XRC_SEND QP that gives up after few and short retries. */
static struct ibv_qp *initiator_of(struct world *w, struct ibv_qp *target)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS, .sq_psn = 7, .timeout = 10,
				 .retry_cnt = 2, .max_rd_atomic = 1 };
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_XRC_SEND,
					    .comp_mask = IBV_QP_INIT_ATTR_PD,
					    .pd = w->pd,
					    .send_cq = w->cq,
					    .sq_sig_all = 1,
					    .cap = { .max_send_wr = QUEUE, .max_send_sge = 1 } };
	struct ibv_qp *qp = ibv_create_qp_ex(w->c, &init);
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };

	if (!qp || ibv_modify_qp(target, &reset, IBV_QP_STATE) || qp_to_init(qp) ||
	    qp_to_init(target) || qp_to_rtr(target, qp->qp_num) || qp_to_rtr(qp, target->qp_num))
		return NULL;
	return ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
					     IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					     IBV_QP_MAX_QP_RD_ATOMIC) ? NULL : qp;
}

/* A SEND of a byte to the SRQ: its status, or -1. */
static int send_to(struct world *w, struct ibv_qp *qp, uint32_t srqn)
{
	struct ibv_sge sge = part_of(w, 1024, 1);
	struct ibv_send_wr wr = { .wr_id = 9, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND, .qp_type.xrc.remote_srqn = srqn }, *bad;
	struct ibv_wc wc;

	if (ibv_post_send(qp, &wr, &bad))
		return -1;
	do
		if (!wait_wc(w->cq, &wc))
			return -1;
	while (wc.wr_id != 9);
	return (int)wc.status;
}

static int srq_receive(struct world *w, struct ibv_srq *srq)
{
	struct ibv_sge sge = part_of(w, 0, 1024);
	struct ibv_recv_wr wr = { .wr_id = 5, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

/*
 * A target QP of two contexts is the open one's alone, then nobody's. The closed context's SRQ is
 * not found, nor is its domain by the file.
 */
static bool xrc_ends(void)
{
	static struct world here, left;
	int fd = fileno(tmpfile());
	struct ibv_xrcd *mine, *theirs, *fresh;
	struct ibv_qp *target, *twin, *from;
	struct ibv_srq *srq, *other;
	uint32_t number, other_number;

	MUST(fd >= 0 && world_open(&here) && world_open(&left));
	MUST(theirs = domain_of(left.c, fd, O_CREAT | O_EXCL));
	MUST(mine = domain_of(here.c, fd, 0));
	MUST((srq = domain_srq(&here, mine)) && (other = domain_srq(&left, theirs)));
	MUST(!ibv_get_srq_num(srq, &number) && !ibv_get_srq_num(other, &other_number));
	for (int i = 0; i < QUEUE; i++)
		MUST(!srq_receive(&here, srq) && !srq_receive(&left, other));
	MUST(target = ibv_create_qp_ex(
		     left.c, &(struct ibv_qp_init_attr_ex){ .qp_type = IBV_QPT_XRC_RECV,
							    .comp_mask = IBV_QP_INIT_ATTR_XRCD,
							    .xrcd = theirs }));
	MUST(twin = open_target(&here, mine, target->qp_num));
	MUST(from = initiator_of(&here, target));
	MUST_EQ(send_to(&here, from, number), IBV_WC_SUCCESS);
	MUST_EQ(send_to(&here, from, other_number), IBV_WC_SUCCESS);
	MUST(world_leave(&left));
	MUST_EQ(send_to(&here, from, number), IBV_WC_SUCCESS);
	left.buf[0] = 0;
	here.buf[1024] = 1;
	MUST_EQ(send_to(&here, from, other_number), IBV_WC_REM_INV_REQ_ERR);
	MUST_EQ(left.buf[0], 0);
	MUST_EQ(ibv_destroy_qp(from), 0);
	MUST(from = initiator_of(&here, twin));
	MUST_EQ(send_to(&here, from, number), IBV_WC_SUCCESS);
	/* the last handle of an open context */
	MUST_EQ(ibv_destroy_qp(twin), 0);
	MUST_EQ(send_to(&here, from, number), IBV_WC_RETRY_EXC_ERR);
	MUST_FAIL(open_target(&here, mine, target->qp_num), EINVAL);
	MUST_EQ(ibv_destroy_qp(from), 0);
	MUST_EQ(ibv_destroy_srq(srq), 0);
	MUST_EQ(ibv_close_xrcd(mine), 0);
	MUST(fresh = domain_of(here.c, fd, O_CREAT | O_EXCL));
	MUST_EQ(ibv_destroy_qp(target), 0);
	MUST_EQ(ibv_destroy_srq(other), 0);
	MUST_EQ(ibv_close_xrcd(theirs), 0);
	MUST_FAIL(domain_of(here.c, fd, O_CREAT | O_EXCL), EINVAL);
	MUST_EQ(ibv_close_xrcd(fresh), 0);
	close(fd);
	return world_end(&left) && world_end(&here);
}

/* Both handles of a target QP in contexts that are closed: it ends with the second one. */
static bool target_of_closed_contexts_ends(void)
{
	static struct world here, left, last;
	struct ibv_xrcd *first, *second, *mine;
	int fd = fileno(tmpfile());
	struct ibv_qp *target, *twin, *from;
	struct ibv_srq *srq;
	uint32_t number;

	MUST(fd >= 0 && world_open(&here) && world_open(&left) && world_open(&last));
	MUST(first = domain_of(left.c, fd, O_CREAT));
	MUST((second = domain_of(last.c, fd, 0)) && (mine = domain_of(here.c, fd, 0)));
	MUST(srq = domain_srq(&here, mine));
	MUST(!ibv_get_srq_num(srq, &number) && !srq_receive(&here, srq));
	MUST(target = ibv_create_qp_ex(
		     left.c, &(struct ibv_qp_init_attr_ex){ .qp_type = IBV_QPT_XRC_RECV,
							    .comp_mask = IBV_QP_INIT_ATTR_XRCD,
							    .xrcd = first }));
	MUST(twin = open_target(&last, second, target->qp_num));
	MUST(from = initiator_of(&here, target));
	MUST(world_leave(&left));
	MUST_EQ(send_to(&here, from, number), IBV_WC_SUCCESS);
	MUST(world_leave(&last));
	MUST_EQ(send_to(&here, from, number), IBV_WC_RETRY_EXC_ERR);
	MUST(!ibv_destroy_qp(from) && !ibv_destroy_qp(target) && !ibv_destroy_qp(twin));
	MUST(!ibv_destroy_srq(srq));
	MUST(!ibv_close_xrcd(first) && !ibv_close_xrcd(second) && !ibv_close_xrcd(mine));
	close(fd);
	return world_end(&last) && world_end(&left) && world_end(&here);
}

/* ---- descriptors and limits ---- */

/* What a context holds in the kernel ends with it: a PD is left of each. */
static bool descriptors_end(void)
{
	struct held before, after;
	struct ibv_pd *pd[20];

	for (int i = 0; i < 20; i++) {
		struct ibv_context *c = ibv_open_device(ctx->device);

		MUST(c && (pd[i] = ibv_alloc_pd(c)));
		MUST_EQ(ibv_close_device(c), 0);
		if (i == 2)
			MUST(held_now(&before));
	}
	MUST(held_now(&after));
	MUST_EQ(after.descriptors, before.descriptors);
	MUST_EQ(after.threads, before.threads);
	for (int i = 0; i < 20; i++)
		MUST_EQ(ibv_dealloc_pd(pd[i]), 0);
	return true;
}

/* Left objects do not count for the device; destroyed later, they are not given back twice. */
static bool limits_do_not_count_them(void)
{
	struct ibv_context *c = ibv_open_device(ctx->device);
	struct ibv_pd **pd = calloc(MANY_PDS, sizeof(*pd)), *first;
	struct ibv_alloc_dm_attr whole = { 0 };
	struct ibv_device_attr_ex attr;
	struct ibv_dm *dm, *again;
	int n = 0, left;

	MUST(c && pd);
	MUST_EQ(ibv_query_device_ex(c, NULL, &attr), 0);
	MUST_EQ(attr.orig_attr.max_pd, MANY_PDS);
	whole.length = attr.max_dm_size;
	MUST(dm = ibv_alloc_dm(c, &whole));
	while (n < MANY_PDS && (pd[n] = ibv_alloc_pd(c)))
		n++;
	MUST_FAIL(ibv_alloc_pd(ctx), ENOMEM);
	MUST_EQ(ibv_close_device(c), 0);
	MUST(first = ibv_alloc_pd(ctx));
	MUST(again = ibv_alloc_dm(ctx, &whole));
	left = n;
	while (n)
		MUST_EQ(ibv_dealloc_pd(pd[--n]), 0);
	MUST_EQ(ibv_free_dm(dm), 0);
	MUST_FAIL(ibv_alloc_dm(ctx, &whole), ENOMEM);
	MUST_EQ(ibv_free_dm(again), 0);
	while (n < MANY_PDS && (pd[n] = ibv_alloc_pd(ctx)))
		n++;
	MUST_EQ(n, left - 1);
	while (n)
		MUST_EQ(ibv_dealloc_pd(pd[--n]), 0);
	MUST_EQ(ibv_dealloc_pd(first), 0);
	free(pd);
	return true;
}

const struct test_case man_cases[] = {
	CASE(flows_end),
	CASE(work_queues_end),
	CASE(memberships_end),
	CASE(xrc_ends),
	CASE(target_of_closed_contexts_ends),
	CASE(descriptors_end),
	CASE(limits_do_not_count_them),
	{ 0 },
};
