/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core XROCE_CYCLES=3000 */
/* tier: long long */
/* tier: long san XROCE_CYCLES=1000 */
/*
 * Each object of libibverbs is made and destroyed 10,000 times, every 100th used, or destroyed with
 * work under way, and leaves nothing (held.h). Device memory is in dm, the objects of raw packet
 * QPs in ten_thousand_raw.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "held.h"
#include "man.h"

#define ALL_ACCESS                                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

/* What all cycles need: made once. */
static struct world {
	struct ibv_pd *pd;
	struct ibv_cq *cq, *rcq;
	struct ibv_comp_channel *ch;
	struct ibv_mr *mr;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *xsrq;
	struct ibv_qp *self; /* an RC QP to itself */
	struct ibv_ah_attr address;
	uint8_t *buf;
} w;

static struct ibv_xrcd *open_xrcd(void)
{
	struct ibv_xrcd_init_attr a = { .comp_mask =
						IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
					.fd = -1,
					.oflags = O_CREAT };

	return ibv_open_xrcd(ctx, &a);
}

static bool world_open(void)
{
	w.address = own_address();
	MUST(w.buf = aligned_alloc(4096, BUF_BYTES));
	MUST(w.pd = ibv_alloc_pd(ctx));
	MUST(w.ch = ibv_create_comp_channel(ctx));
	MUST(w.cq = ibv_create_cq(ctx, 64, NULL, NULL, 0));
	MUST(w.rcq = ibv_create_cq(ctx, 64, NULL, NULL, 0));
	MUST(w.mr = ibv_reg_mr(w.pd, w.buf, BUF_BYTES, ALL_ACCESS));
	MUST(w.xrcd = open_xrcd());
	MUST(w.xsrq = xrc_srq(w.pd, w.xrcd, w.rcq));
	MUST(w.self = qp_to_itself(w.pd, w.cq, w.rcq, NULL));
	return true;
}

static bool world_close(void)
{
	MUST_EQ(ibv_destroy_qp(w.self), 0);
	MUST_EQ(ibv_destroy_srq(w.xsrq), 0);
	MUST_EQ(ibv_close_xrcd(w.xrcd), 0);
	MUST_EQ(ibv_dereg_mr(w.mr), 0);
	MUST_EQ(ibv_destroy_cq(w.rcq), 0);
	MUST_EQ(ibv_destroy_cq(w.cq), 0);
	MUST_EQ(ibv_destroy_comp_channel(w.ch), 0);
	MUST_EQ(ibv_dealloc_pd(w.pd), 0);
	free(w.buf);
	return true;
}

static bool cycles_of(bool (*cycle)(int i), int n)
{
	MUST(world_open());
	MUST(leaves_nothing(cycle, n));
	return world_close();
}

/* A case of cycles_wanted() / part cycles, for cycles that take long. */
#define TEN_THOUSAND(name, part)                                                                   \
	static bool name(void)                                                                     \
	{                                                                                          \
		return cycles_of(name##_cycle, cycles_wanted() / (part));                          \
	}

static bool succeeded(struct ibv_cq *cq, uint64_t wr_id)
{
	struct ibv_wc wc;

	MUST(wait_wc(cq, &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.wr_id, wr_id);
	return true;
}

/* ---- domains, regions, windows, handles ---- */

static bool protection_domains_cycle(int i)
{
	struct ibv_parent_domain_init_attr a = { 0 };
	struct ibv_td_init_attr none = { 0 };
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *parent;

	MUST(pd);
	if (i % 2) {
		MUST(a.td = ibv_alloc_td(ctx, &none));
		a.pd = pd;
		MUST(parent = ibv_alloc_parent_domain(ctx, &a));
		MUST_EQ(ibv_dealloc_pd(parent), 0);
		MUST_EQ(ibv_dealloc_td(a.td), 0);
	}
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}
TEN_THOUSAND(protection_domains, 1)

static bool memory_regions_cycle(int i)
{
	struct ibv_mr *mr = ibv_reg_mr(w.pd, w.buf, 4096, ALL_ACCESS);

	MUST(mr);
	if (i % 100 == 0) {
		struct ibv_sge sge = { (uintptr_t)w.buf, 8, mr->lkey };
		struct ibv_send_wr wr = { .wr_id = 7,
					  .opcode = IBV_WR_RDMA_READ,
					  .send_flags = IBV_SEND_SIGNALED,
					  .sg_list = &sge,
					  .num_sge = 1,
					  .wr.rdma = { (uintptr_t)w.buf + 64, mr->rkey } },
				   *bad;

		MUST_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, w.pd, w.buf, 8192, 0), 0);
		sge.lkey = mr->lkey;
		wr.wr.rdma.rkey = mr->rkey;
		MUST_EQ(ibv_post_send(w.self, &wr, &bad), 0);
		MUST(succeeded(w.cq, 7));
	}
	MUST_EQ(ibv_dereg_mr(mr), 0);
	MUST(!ibv_reg_mr(w.pd, w.buf, 4096, IBV_ACCESS_REMOTE_WRITE)); /* nor does a refused one */
	return true;
}
TEN_THOUSAND(memory_regions, 1)

static bool regions_on_demand_cycle(int i)
{
	const int access = ALL_ACCESS | IBV_ACCESS_ON_DEMAND;
	struct ibv_mr *mr = i % 2 ? ibv_reg_mr(w.pd, w.buf, BUF_BYTES, access) :
				    ibv_reg_mr(w.pd, NULL, SIZE_MAX, access);
	struct ibv_sge sge;

	MUST(mr);
	if (i % 10 == 0) {
		sge = (struct ibv_sge){ (uintptr_t)w.buf, 8192, mr->lkey };
		MUST_EQ(ibv_advise_mr(w.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				      IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1),
			0);
	}
	MUST_EQ(ibv_dereg_mr(mr), 0);
	return true;
}
TEN_THOUSAND(regions_on_demand, 1)

static bool null_regions_cycle(int i)
{
	struct ibv_mr *mr = ibv_alloc_null_mr(w.pd);

	MUST(mr);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	return true;
}
TEN_THOUSAND(null_regions, 1)

static bool windows_cycle(int i)
{
	struct ibv_mw_bind bind = { .wr_id = 5,
				    .send_flags = IBV_SEND_SIGNALED,
				    .bind_info = { .mr = w.mr,
						   .addr = (uintptr_t)w.buf,
						   .length = 100,
						   .mw_access_flags = IBV_ACCESS_REMOTE_WRITE } };
	struct ibv_mw *one = ibv_alloc_mw(w.pd, IBV_MW_TYPE_1),
		      *two = ibv_alloc_mw(w.pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = { .wr_id = 6,
				  .opcode = IBV_WR_BIND_MW,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	MUST(one && two);
	if (i % 100 == 0) {
		/* they go while they are bound */
		MUST_EQ(ibv_bind_mw(w.self, one, &bind), 0);
		MUST(succeeded(w.cq, 5));
		wr.bind_mw.mw = two;
		wr.bind_mw.rkey = ibv_inc_rkey(two->rkey);
		wr.bind_mw.bind_info = bind.bind_info;
		MUST_EQ(ibv_post_send(w.self, &wr, &bad), 0);
		MUST(succeeded(w.cq, 6));
	}
	MUST_EQ(ibv_dealloc_mw(one), 0);
	MUST_EQ(ibv_dealloc_mw(two), 0);
	return true;
}
TEN_THOUSAND(windows, 1)

static bool address_handles_cycle(int i)
{
	struct ibv_ah *ah = ibv_create_ah(w.pd, &w.address);

	MUST(ah);
	MUST_EQ(ibv_destroy_ah(ah), 0);
	return true;
}
TEN_THOUSAND(address_handles, 1)

static bool imports_cycle(int i)
{
	struct ibv_context *other = ibv_import_device(dup(ctx->cmd_fd));
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	MUST(other);
	MUST(pd = ibv_import_pd(other, w.pd->handle));
	MUST(mr = ibv_import_mr(pd, w.mr->handle));
	ibv_unimport_mr(mr);
	ibv_unimport_pd(pd);
	MUST_EQ(ibv_close_device(other), 0);
	return true;
}
TEN_THOUSAND(imports, 1)

/* ---- completion queues and channels ---- */

static bool completion_queues_cycle(int i)
{
	struct ibv_cq_init_attr_ex a = { .cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	if (i % 2)
		MUST(cq = ibv_create_cq(ctx, 16, NULL, i % 4 == 1 ? w.ch : NULL, 0));
	else
		MUST(cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(ctx, &a)));
	if (i % 7 == 0)
		MUST_EQ(ibv_resize_cq(cq, 100), 0);
	if (i % 100 == 1) {
		/* an event, which is taken, and completions, which are not */
		MUST_EQ(ibv_req_notify_cq(cq, 0), 0);
		MUST(qp = qp_to_itself(w.pd, w.cq, cq, NULL));
		MUST(ping(qp, 3, IBV_SEND_SIGNALED) && ping(qp, 4, IBV_SEND_SIGNALED));
		MUST(succeeded(w.cq, 3) && succeeded(w.cq, 4));
		MUST(take_cq_event(w.ch, cq));
		MUST_EQ(ibv_destroy_qp(qp), 0);
	}
	MUST_EQ(ibv_destroy_cq(cq), 0);
	return true;
}
TEN_THOUSAND(completion_queues, 1)

static bool channels_cycle(int i)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	MUST(ch);
	if (i % 100 == 0) {
		/* an unread event */
		MUST(cq = ibv_create_cq(ctx, 16, NULL, ch, 0));
		MUST_EQ(ibv_req_notify_cq(cq, 0), 0);
		MUST(qp = qp_to_itself(w.pd, w.cq, cq, NULL));
		MUST(ping(qp, 3, IBV_SEND_SIGNALED) && succeeded(w.cq, 3));
		MUST_EQ(ibv_destroy_qp(qp), 0);
		MUST_EQ(ibv_destroy_cq(cq), 0);
	}
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	return true;
}
TEN_THOUSAND(channels, 1)

/* ---- shared receive queues, XRC domains ---- */

static bool shared_receive_queues_cycle(int i)
{
	struct ibv_srq_init_attr basic = { .attr = { .max_wr = QUEUE, .max_sge = 2 } };
	struct ibv_sge sge = { (uintptr_t)w.buf, 8, w.mr->lkey };
	struct ibv_recv_wr rr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad_rr;
	struct ibv_ops_wr op = { .opcode = IBV_WR_TAG_ADD }, *bad_op;
	struct ibv_srq_attr more = { .max_wr = 100 };
	struct ibv_srq *srq;

	MUST(srq = i % 3 == 0 ? ibv_create_srq(w.pd, &basic) :
		   i % 3 == 1 ? xrc_srq(w.pd, w.xrcd, w.rcq) :
				tag_srq(w.pd, w.rcq));
	if (i % 100 < 3) {
		MUST_EQ(ibv_post_srq_recv(srq, &rr, &bad_rr), 0);
		if (i % 3 == 2) {
			op.tm.add.sg_list = &sge;
			op.tm.add.num_sge = 1;
			MUST_EQ(ibv_post_srq_ops(srq, &op, &bad_op), 0);
		} else {
			MUST_EQ(ibv_modify_srq(srq, &more, IBV_SRQ_MAX_WR), 0);
		}
	}
	MUST_EQ(ibv_destroy_srq(srq), 0);
	return true;
}
TEN_THOUSAND(shared_receive_queues, 1)

static bool xrc_domains_cycle(int i)
{
	struct ibv_xrcd *xrcd = open_xrcd();

	MUST(xrcd);
	MUST_EQ(ibv_close_xrcd(xrcd), 0);
	return true;
}
TEN_THOUSAND(xrc_domains, 1)

/* ---- queue pairs ---- */

static struct ibv_qp *new_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex a = { .send_cq = w.cq,
					 .recv_cq = w.rcq,
					 .qp_type = type,
					 .cap = { QUEUE, QUEUE, 2, 2, 64 },
					 .comp_mask = IBV_QP_INIT_ATTR_PD,
					 .pd = w.pd };

	if (type == IBV_QPT_XRC_RECV) {
		a.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		a.xrcd = w.xrcd;
	}
	return ibv_create_qp_ex(ctx, &a);
}

/* Two messages; of the last ones, neither the receive nor the send is waited for. */
static bool carries(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_sge to = { (uintptr_t)w.buf + 4096, 1024, w.mr->lkey },
		       from = { (uintptr_t)w.buf, 512, w.mr->lkey };
	struct ibv_recv_wr rr = { .wr_id = 2, .sg_list = &to, .num_sge = 1 }, *bad_rr;
	struct ibv_srq *srq = qp->qp_type == IBV_QPT_XRC_SEND ? w.xsrq : NULL;
	struct ibv_send_wr *bad;

	wr->wr_id = 1;
	wr->opcode = IBV_WR_SEND;
	wr->send_flags = IBV_SEND_SIGNALED;
	wr->sg_list = &from;
	wr->num_sge = 1;
	MUST_EQ(srq ? ibv_post_srq_recv(srq, &rr, &bad_rr) : ibv_post_recv(qp, &rr, &bad_rr), 0);
	MUST_EQ(ibv_post_send(qp, wr, &bad), 0);
	MUST(succeeded(w.cq, 1) && succeeded(w.rcq, 2));
	if (!srq) {
		/* work that is under way when its QP goes */
		MUST_EQ(ibv_post_recv(qp, &rr, &bad_rr), 0);
		MUST_EQ(ibv_post_send(qp, wr, &bad), 0);
		MUST_EQ(ibv_post_send(qp, wr, &bad), 0);
	}
	return true;
}

static bool connected_cycle(enum ibv_qp_type type, int i)
{
	struct ibv_qp *qp = new_qp(type);
	struct ibv_send_wr wr = { 0 };

	MUST(qp);
	if (i % 100 == 0) {
		MUST_EQ(qp_to_init(qp), 0);
		MUST_EQ(qp_to_rts(qp, qp->qp_num, 7), 0);
		MUST(carries(qp, &wr));
	} else if (i % 10 == 0) {
		MUST_EQ(qp_to_init(qp), 0);
		MUST_EQ(qp_to_rts(qp, qp->qp_num, 7), 0);
		MUST_EQ(qp_to_state(qp, IBV_QPS_RESET), 0);
	}
	MUST_EQ(ibv_destroy_qp(qp), 0);
	return true;
}

static bool rc_cycle(int i)
{
	return connected_cycle(IBV_QPT_RC, i);
}
TEN_THOUSAND(rc, 1)

static bool uc_cycle(int i)
{
	return connected_cycle(IBV_QPT_UC, i);
}
TEN_THOUSAND(uc, 1)

static bool ud_cycle(int i)
{
	struct ibv_qp *qp = new_qp(IBV_QPT_UD);
	struct ibv_send_wr wr = { 0 };
	struct ibv_ah *ah;

	MUST(qp);
	if (i % 100 == 0) {
		MUST(ah = ibv_create_ah(w.pd, &w.address));
		MUST_EQ(qp_to_init(qp), 0);
		MUST_EQ(qp_to_rts(qp, 0, 7), 0);
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = qp->qp_num;
		wr.wr.ud.remote_qkey = UD_QKEY;
		MUST(carries(qp, &wr));
		MUST_EQ(ibv_destroy_qp(qp), 0);
		MUST_EQ(ibv_destroy_ah(ah), 0);
		return true;
	}
	MUST_EQ(ibv_destroy_qp(qp), 0);
	return true;
}
TEN_THOUSAND(ud, 1)

static bool xrc_cycle(int i)
{
	struct ibv_qp *to = new_qp(IBV_QPT_XRC_RECV), *from = new_qp(IBV_QPT_XRC_SEND), *again;
	struct ibv_qp_open_attr open = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
						      IBV_QP_OPEN_ATTR_TYPE,
					 .xrcd = w.xrcd,
					 .qp_type = IBV_QPT_XRC_RECV };
	struct ibv_send_wr wr = { 0 };

	MUST(from && to);
	if (i % 100 == 0) {
		MUST_EQ(qp_to_init(to), 0);
		MUST_EQ(qp_to_rts(to, from->qp_num, 7), 0);
		MUST_EQ(qp_to_init(from), 0);
		MUST_EQ(qp_to_rts(from, to->qp_num, 7), 0);
		MUST_EQ(ibv_get_srq_num(w.xsrq, &wr.qp_type.xrc.remote_srqn), 0);
		MUST(carries(from, &wr));
	} else if (i % 10 == 0) {
		open.qp_num = to->qp_num;
		MUST(again = ibv_open_qp(ctx, &open));
		MUST_EQ(ibv_destroy_qp(again), 0);
	}
	MUST_EQ(ibv_destroy_qp(from), 0);
	MUST_EQ(ibv_destroy_qp(to), 0);
	return true;
}
TEN_THOUSAND(xrc, 1)

/* A QP in error with an unread event. */
static bool asynchronous_events_cycle(int i)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { 0, w.mr->rkey ^ 1 } },
			   *bad;
	struct ibv_sge sge = { (uintptr_t)w.buf, 8, w.mr->lkey };
	struct ibv_qp *qp = qp_to_itself(w.pd, w.cq, w.rcq, NULL);
	struct ibv_wc wc;

	MUST(qp);
	wr.sg_list = &sge;
	wr.num_sge = 1;
	MUST_EQ(ibv_post_send(qp, &wr, &bad), 0);
	MUST(wait_wc(w.cq, &wc) && wc.status != IBV_WC_SUCCESS);
	if (i % 2)
		MUST(take_async(IBV_EVENT_QP_ACCESS_ERR, qp));
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST(no_async_event());
	return true;
}
TEN_THOUSAND(asynchronous_events, 10)

static bool multicast_cycle(int i)
{
	static struct ibv_qp *qp;
	union ibv_gid v4 = { .raw = { [10] = 0xff, [11] = 0xff, 239, 5, 0, (uint8_t)(i % 3) } };
	union ibv_gid v6 = { .raw = { 0xff, 0x12, [13] = 7, [15] = (uint8_t)(i % 5) } };

	if (i % 50 == 0)
		MUST(qp = new_qp(IBV_QPT_UD));
	MUST_EQ(ibv_attach_mcast(qp, i % 2 ? &v4 : &v6, 0), 0);
	MUST_EQ(ibv_detach_mcast(qp, i % 2 ? &v4 : &v6, 0), 0);
	if (i % 50 == 49)
		MUST_EQ(ibv_destroy_qp(qp), 0);
	return true;
}
TEN_THOUSAND(multicast, 2)

/* ---- devices ---- */

static bool devices_cycle(int i)
{
	struct ibv_context *c = open_device(ibv_get_device_name(ctx->device));
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	MUST(c);
	if (i % 100 == 0) {
		MUST(pd = ibv_alloc_pd(c));
		MUST(mr = ibv_reg_mr(pd, w.buf, 8, 0));
		MUST_EQ(ibv_dereg_mr(mr), 0);
		MUST_EQ(ibv_dealloc_pd(pd), 0);
	}
	MUST_EQ(ibv_close_device(c), 0);
	return true;
}
TEN_THOUSAND(devices, 10)

/* A port comes and goes with the only region. Attaching to the interface takes long: some only. */
static bool ports_cycle(int i)
{
	struct ibv_context *c;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint64_t word;

	MUST(c = open_device(ibv_get_device_name(ctx->device)));
	MUST(pd = ibv_alloc_pd(c));
	MUST(mr = ibv_reg_mr(pd, &word, 8, 0));
	MUST_EQ(ibv_dereg_mr(mr), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	MUST_EQ(ibv_close_device(c), 0);
	return true;
}

static bool ports(void)
{
	struct held before, after;

	for (int i = 0; i < 3; i++)
		MUST(ports_cycle(i));
	MUST(held_now(&before));
	for (int i = 0; i < 10; i++)
		MUST(ports_cycle(i));
	MUST(held_now(&after));
	/* malloc(3)'s caches fill in the first 40: some 120 KiB, and 25 more in 350 others */
	return held_same(&before, &after, 10 * 5000);
}

const struct test_case man_cases[] = {
	/* first, while the process has no port */
	CASE(ports),
	CASE(protection_domains),
	CASE(memory_regions),
	CASE(regions_on_demand),
	CASE(null_regions),
	CASE(windows),
	CASE(address_handles),
	CASE(imports),
	CASE(completion_queues),
	CASE(channels),
	CASE(shared_receive_queues),
	CASE(xrc_domains),
	CASE(rc),
	CASE(uc),
	CASE(ud),
	CASE(xrc),
	CASE(asynchronous_events),
	CASE(multicast),
	CASE(devices),
	{ 0 },
};
