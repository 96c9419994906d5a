/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * XRC: domains and their references, shared receive queues with numbers, one QP for several of
 * them, and QPs that are opened again.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "contract.h"

static struct ibv_xrcd *open_xrcd(struct ibv_context *c, int fd, int oflags)
{
	struct ibv_xrcd_init_attr a = { .comp_mask =
						IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
					.fd = fd,
					.oflags = oflags };

	return ibv_open_xrcd(c, &a);
}

static struct ibv_qp *target_qp(struct ibv_context *c, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex a = { .qp_type = IBV_QPT_XRC_RECV,
					 .comp_mask = IBV_QP_INIT_ATTR_XRCD,
					 .xrcd = xrcd };

	return ibv_create_qp_ex(c, &a);
}

static struct ibv_qp *open_target(struct ibv_context *c, struct ibv_xrcd *xrcd, uint32_t qpn)
{
	struct ibv_qp_open_attr a = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
						   IBV_QP_OPEN_ATTR_TYPE | IBV_QP_OPEN_ATTR_CONTEXT,
				      .qp_num = qpn,
				      .xrcd = xrcd,
				      .qp_type = IBV_QPT_XRC_RECV,
				      .qp_context = xrcd };

	return ibv_open_qp(c, &a);
}

static struct ibv_srq *xrc_srq(struct ibv_pd *pd, struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex a = { .attr = { .max_wr = QUEUE, .max_sge = 2 },
					  .srq_type = IBV_SRQT_XRC,
					  .pd = pd,
					  .xrcd = xrcd,
					  .cq = cq,
					  .comp_mask =
						  IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
						  IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ };

	return ibv_create_srq_ex(ctx, &a);
}

static bool open_xrcd__by_inode(void)
{
	struct ibv_xrcd_init_attr no_fd = { .comp_mask = IBV_XRCD_INIT_ATTR_OFLAGS,
					    .fd = -1,
					    .oflags = O_CREAT };
	int fd = memfd_create("contract", MFD_CLOEXEC), again, closed = dup(fd),
	    other = memfd_create("contract", MFD_CLOEXEC);
	struct ibv_xrcd *a, *b, *p;
	struct ibv_qp *qp, *twin;

	MUST(fd >= 0 && other >= 0 && closed >= 0 && !close(closed));
	MUST_FAIL(ibv_open_xrcd(ctx, &no_fd), EINVAL);
	MUST_FAIL(open_xrcd(ctx, closed, O_CREAT), EBADF);
	MUST_FAIL(open_xrcd(ctx, fd, 0), EAGAIN); /* there is none */
	MUST(a = open_xrcd(ctx, fd, O_CREAT | O_EXCL));
	MUST(a->context == ctx);
	MUST_FAIL(open_xrcd(ctx, fd, O_CREAT | O_EXCL), EINVAL);
	/* The inode counts, not the descriptor. */
	again = dup(fd);
	MUST(b = open_xrcd(ctx, again, 0));
	MUST_FAIL(open_xrcd(ctx, other, 0), EAGAIN);
	close(other);
	close(again);
	close(fd);
	MUST(p = open_xrcd(ctx, -1, O_CREAT));

	MUST(qp = target_qp(ctx, a));
	MUST_FAIL(open_target(ctx, p, qp->qp_num), EINVAL);
	MUST(twin = open_target(ctx, b, qp->qp_num));
	MUST_EQ(ibv_close_xrcd(a), EBUSY);
	MUST_EQ(ibv_close_xrcd(b), EBUSY);
	MUST_EQ(ibv_close_xrcd(p), 0);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_close_xrcd(a), 0);
	MUST(qp = open_target(ctx, b, twin->qp_num)); /* it lives on */
	MUST_EQ(ibv_destroy_qp(twin), 0);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_close_xrcd(b), 0);
	return true;
}

static bool create__refuses(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 10, NULL, NULL, 0);
	struct ibv_xrcd *xrcd = open_xrcd(ctx, -1, O_CREAT);
	const struct ibv_srq_init_attr_ex good = { .attr = { .max_wr = 1, .max_sge = 1 },
						   .srq_type = IBV_SRQT_XRC,
						   .pd = pd,
						   .xrcd = xrcd,
						   .cq = cq,
						   .comp_mask = IBV_SRQ_INIT_ATTR_TYPE |
								IBV_SRQ_INIT_ATTR_PD |
								IBV_SRQ_INIT_ATTR_XRCD |
								IBV_SRQ_INIT_ATTR_CQ };
	struct ibv_srq_init_attr_ex a;
	struct ibv_srq_init_attr plain = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_qp_init_attr_ex q = { .qp_type = IBV_QPT_XRC_RECV,
					 .comp_mask = IBV_QP_INIT_ATTR_PD,
					 .pd = pd,
					 .send_cq = cq,
					 .recv_cq = cq };
	struct ibv_qp_open_attr o = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD,
				      .xrcd = xrcd };
	struct ibv_srq *srq, *basic;
	uint32_t number;

	MUST(pd && cq && xrcd);
#define WITHOUT(bit) (a = good, a.comp_mask &= ~(uint32_t)(bit), ibv_create_srq_ex(ctx, &a))
	MUST_FAIL(WITHOUT(IBV_SRQ_INIT_ATTR_PD), EINVAL);
	MUST_FAIL(WITHOUT(IBV_SRQ_INIT_ATTR_XRCD), EINVAL);
	MUST_FAIL(WITHOUT(IBV_SRQ_INIT_ATTR_CQ), EINVAL);
#undef WITHOUT
	MUST_FAIL(xrc_srq(pd, NULL, cq), EINVAL);
	MUST_FAIL(xrc_srq(pd, xrcd, NULL), EINVAL);
	MUST(srq = xrc_srq(pd, xrcd, cq));
	MUST_EQ(ibv_get_srq_num(srq, &number), 0);
	MUST(number < 1 << 24);
	MUST(basic = ibv_create_srq(pd, &plain));
	MUST_EQ(ibv_get_srq_num(basic, &number), EINVAL);
	MUST_EQ(ibv_destroy_srq(basic), 0);
	MUST_EQ(ibv_close_xrcd(xrcd), EBUSY);
	MUST_EQ(ibv_destroy_cq(cq), EBUSY);
	MUST_EQ(ibv_dealloc_pd(pd), EBUSY);

	MUST_FAIL(ibv_create_qp_ex(ctx, &q), EINVAL); /* no domain */
	MUST_FAIL(target_qp(ctx, NULL), EINVAL);
	q.comp_mask = IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	q.xrcd = xrcd;
	q.send_ops_flags = IBV_QP_EX_WITH_SEND;
	MUST_FAIL(ibv_create_qp_ex(ctx, &q), EOPNOTSUPP); /* it sends nothing */
	q = (struct ibv_qp_init_attr_ex){ .qp_type = IBV_QPT_XRC_SEND,
					  .comp_mask = IBV_QP_INIT_ATTR_PD,
					  .pd = pd };
	MUST_FAIL(ibv_create_qp_ex(ctx, &q), EINVAL); /* no CQ */
	/* An XRC SRQ belongs to no QP. */
	q = (struct ibv_qp_init_attr_ex){ .qp_type = IBV_QPT_RC,
					  .comp_mask = IBV_QP_INIT_ATTR_PD,
					  .pd = pd,
					  .send_cq = cq,
					  .recv_cq = cq,
					  .srq = srq };
	MUST_FAIL(ibv_create_qp_ex(ctx, &q), EINVAL);
	MUST_FAIL(ibv_open_qp(ctx, &o), EINVAL); /* no type */
	MUST_FAIL(open_target(ctx, xrcd, 1), EINVAL);

	MUST_EQ(ibv_destroy_srq(srq), 0);
	MUST_EQ(ibv_close_xrcd(xrcd), 0);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

/*
 * One initiator, one target, two SRQs of its domain with a CQ and a PD each, and one of another
 * domain.
 */
struct world {
	struct ibv_pd *pd[2];
	struct ibv_xrcd *xrcd, *other_xrcd;
	struct ibv_cq *send_cq, *cq[2];
	struct ibv_srq *srq[2], *other_srq;
	uint32_t number[2], other_number;
	struct ibv_qp *send, *target, *twin;
	struct ibv_mr *send_mr, *mr[2];
	char *from, *to[2];
};

static bool world_open(struct world *w, uint64_t ops)
{
	struct ibv_qp_init_attr_ex a = {
		.qp_type = IBV_QPT_XRC_SEND,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.cap = { .max_send_wr = QUEUE, .max_send_sge = 2, .max_inline_data = 64 }
	};

	memset(w, 0, sizeof(*w));
	MUST(w->xrcd = open_xrcd(ctx, -1, O_CREAT));
	MUST(w->other_xrcd = open_xrcd(ctx, -1, O_CREAT));
	MUST(w->send_cq = ibv_create_cq(ctx, 4 * QUEUE, NULL, NULL, 0));
	for (int i = 0; i < 2; i++) {
		MUST(w->pd[i] = ibv_alloc_pd(ctx));
		MUST(w->to[i] = calloc(1, BUF_BYTES));
		MUST(w->mr[i] = ibv_reg_mr(w->pd[i], w->to[i], BUF_BYTES,
					   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
		MUST(w->cq[i] = ibv_create_cq(ctx, 4 * QUEUE, NULL, NULL, 0));
		MUST(w->srq[i] = xrc_srq(w->pd[i], w->xrcd, w->cq[i]));
		MUST_EQ(ibv_get_srq_num(w->srq[i], &w->number[i]), 0);
	}
	MUST(w->other_srq = xrc_srq(w->pd[0], w->other_xrcd, w->cq[0]));
	MUST_EQ(ibv_get_srq_num(w->other_srq, &w->other_number), 0);
	MUST(w->from = calloc(1, BUF_BYTES));
	MUST(w->send_mr = ibv_reg_mr(w->pd[0], w->from, BUF_BYTES, IBV_ACCESS_LOCAL_WRITE));
	a.pd = w->pd[0];
	a.send_cq = w->send_cq;
	if (ops) {
		a.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		a.send_ops_flags = ops;
	}
	MUST(w->send = ibv_create_qp_ex(ctx, &a));
	MUST_EQ(a.cap.max_recv_wr, 0);
	MUST(w->target = target_qp(ctx, w->xrcd));
	MUST(w->twin = open_target(ctx, w->xrcd, w->target->qp_num));
	MUST_EQ(qp_to_init(w->send), 0);
	MUST_EQ(qp_to_init(w->target), 0);
	MUST_EQ(qp_to_rtr(w->twin, w->send->qp_num), 0); /* either handle will do */
	MUST_EQ(qp_to_rts(w->send, w->target->qp_num, 7), 0);
	return true;
}

static bool world_close(struct world *w)
{
	bool good = !w->send || !ibv_destroy_qp(w->send);

	good &= !w->target || !ibv_destroy_qp(w->target);
	good &= !w->twin || !ibv_destroy_qp(w->twin);
	good &= !w->other_srq || !ibv_destroy_srq(w->other_srq);
	good &= !w->send_mr || !ibv_dereg_mr(w->send_mr);
	for (int i = 0; i < 2; i++) {
		good &= !w->srq[i] || !ibv_destroy_srq(w->srq[i]);
		good &= !w->cq[i] || !ibv_destroy_cq(w->cq[i]);
		good &= !w->mr[i] || !ibv_dereg_mr(w->mr[i]);
		good &= !w->pd[i] || !ibv_dealloc_pd(w->pd[i]);
		free(w->to[i]);
	}
	good &= !w->send_cq || !ibv_destroy_cq(w->send_cq);
	good &= !w->xrcd || !ibv_close_xrcd(w->xrcd);
	good &= !w->other_xrcd || !ibv_close_xrcd(w->other_xrcd);
	free(w->from);
	if (!good)
		printf("# something refused to be destroyed\n");
	return good;
}

#define IN_WORLD(ops, body)                          \
	do {                                         \
		struct world w_;                     \
		bool good_ = world_open(&w_, ops);   \
		if (good_)                           \
			good_ = body(&w_);           \
		return world_close(&w_) && good_;    \
	} while (0)

static int srq_recv(struct world *w, int i, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)w->to[i], BUF_BYTES, w->mr[i]->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_srq_recv(w->srq[i], &wr, &bad);
}

static int send_to(struct world *w, uint32_t srqn, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)w->from, length, w->send_mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 40,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND_WITH_IMM,
				  .imm_data = htonl(length),
				  .send_flags = IBV_SEND_SIGNALED,
				  .qp_type.xrc.remote_srqn = srqn },
			   *bad;

	return ibv_post_send(w->send, &wr, &bad);
}

/* A receive of SRQ i has completed by a SEND of that length. */
static bool arrived(struct world *w, int i, uint64_t wr_id, uint32_t length)
{
	struct ibv_wc wc;

	MUST(wait_wc(w->cq[i], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.opcode, IBV_WC_RECV);
	MUST_EQ(wc.wr_id, (long long)wr_id);
	MUST_EQ(wc.byte_len, length);
	MUST_EQ(wc.qp_num, w->target->qp_num);
	MUST_EQ(wc.src_qp, w->send->qp_num);
	MUST_EQ(wc.wc_flags & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
	MUST_EQ(wc.imm_data, htonl(length));
	MUST_EQ(memcmp(w->to[i], w->from, length), 0);
	MUST(wait_wc(w->send_cq, &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.opcode, IBV_WC_SEND);
	MUST_EQ(wc.wr_id, 40);
	MUST_EQ(wc.qp_num, w->send->qp_num);
	return true;
}

static bool comm_est(const struct ibv_qp *a, const struct ibv_qp *b)
{
	struct ibv_async_event event;
	int seen_a = 0, seen_b = 0;

	for (int i = 0; i < 2; i++) {
		MUST_EQ(ibv_get_async_event(ctx, &event), 0);
		MUST_EQ(event.event_type, IBV_EVENT_COMM_EST);
		seen_a += event.element.qp == a;
		seen_b += event.element.qp == b;
		ibv_ack_async_event(&event);
	}
	MUST(seen_a == 1 && seen_b == 1);
	return true;
}

static bool traffic_body(struct world *w)
{
	struct ibv_send_wr wr = { .wr_id = 41,
				  .opcode = IBV_WR_SEND,
				  .qp_type.xrc.remote_srqn = 1 << 24 },
			   *bad;
	struct ibv_recv_wr rr = { .wr_id = 1 }, *bad_rr;
	struct ibv_sge sge = { (uintptr_t)w->from, 50, w->send_mr->lkey };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;

	MUST_EQ(ibv_post_recv(w->target, &rr, &bad_rr), EINVAL);
	MUST_EQ(ibv_post_recv(w->send, &rr, &bad_rr), EINVAL);
	MUST_EQ(ibv_post_send(w->target, &wr, &bad), EINVAL);
	MUST_EQ(ibv_post_send(w->send, &wr, &bad), EINVAL); /* no such number */
	for (int i = 0; i < BUF_BYTES; i++)
		w->from[i] = (char)(i * 7 + i / 253);

	/* Which of them receives, and into whose memory, is in each request. */
	MUST_EQ(srq_recv(w, 0, 100), 0);
	MUST_EQ(srq_recv(w, 1, 101), 0);
	MUST_EQ(send_to(w, w->number[1], 3333), 0);
	MUST(arrived(w, 1, 101, 3333));
	MUST_EQ(w->to[0][0] | w->to[0][1], 0);
	/* the target is in RTR still, and all its handles get the event */
	MUST(comm_est(w->target, w->twin));
	MUST_EQ(send_to(w, w->number[0], 17), 0);
	MUST(arrived(w, 0, 100, 17));

	/* A WRITE with immediate data, under the PD of the SRQ that it names. */
	MUST_EQ(srq_recv(w, 1, 102), 0);
	wr = (struct ibv_send_wr){ .wr_id = 42,
				   .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				   .sg_list = &sge,
				   .num_sge = 1,
				   .imm_data = htonl(6),
				   .send_flags = IBV_SEND_SIGNALED,
				   .wr.rdma = { (uintptr_t)w->to[1] + 8000, w->mr[1]->rkey },
				   .qp_type.xrc.remote_srqn = w->number[1] };
	MUST_EQ(ibv_post_send(w->send, &wr, &bad), 0);
	MUST(wait_wc(w->cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	MUST_EQ(wc.wr_id, 102);
	MUST_EQ(wc.byte_len, 50);
	MUST_EQ(memcmp(w->to[1] + 8000, w->from, 50), 0);
	MUST(wait_wc(w->send_cq, &wc));

	/* Its other half's attributes of RC are passed over. */
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				     .timeout = 14,
				     .retry_cnt = 7,
				     .rnr_retry = 7,
				     .max_rd_atomic = 1 };
	MUST_EQ(ibv_modify_qp(w->target, &attr,
			      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
		0);

	/* The handle that made the QP goes, the QP stays. */
	MUST_EQ(ibv_query_qp(w->twin, &attr, IBV_QP_STATE, &init), 0);
	MUST_EQ(attr.qp_state, IBV_QPS_RTS);
	MUST_EQ(attr.timeout, 14);
	MUST_EQ(attr.retry_cnt, 0);
	MUST_EQ(attr.dest_qp_num, w->send->qp_num);
	MUST(w->twin->qp_context == w->xrcd);
	MUST_EQ(ibv_destroy_qp(w->target), 0);
	w->target = w->twin;
	w->twin = NULL;
	MUST_EQ(srq_recv(w, 0, 103), 0);
	MUST_EQ(send_to(w, w->number[0], 9), 0);
	MUST(arrived(w, 0, 103, 9));
	MUST(cq_is_empty(w->cq[0]) && cq_is_empty(w->cq[1]) && cq_is_empty(w->send_cq));
	return true;
}

static bool post_send__each_request_names_its_srq(void)
{
	IN_WORLD(0, traffic_body);
}

static bool foreign_body(struct world *w)
{
	struct ibv_wc wc;

	MUST_EQ(send_to(w, w->other_number, 1), 0);
	MUST(wait_wc(w->send_cq, &wc));
	MUST_EQ(wc.status, IBV_WC_REM_INV_REQ_ERR);
	MUST_EQ(wc.wr_id, 40);
	return true;
}

/*
 * All handles of a failing target get its events: they are not read here, and must not hold the QP
 * up.
 */
static bool post_send__an_srq_of_another_domain(void)
{
	IN_WORLD(0, foreign_body);
}

static bool wr_api_body(struct world *w)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(w->send);

	MUST(ex && ex->wr_set_xrc_srqn && !ex->wr_set_ud_addr);
	ex->wr_id = 40;
	ex->wr_flags = IBV_SEND_SIGNALED;
	MUST_EQ(srq_recv(w, 1, 5), 0);
	ibv_wr_start(ex);
	ibv_wr_send_imm(ex, htonl(12));
	ibv_wr_set_sge(ex, w->send_mr->lkey, (uintptr_t)w->from, 12);
	MUST_EQ(ibv_wr_complete(ex), EINVAL); /* on which handle? */
	ibv_wr_start(ex);
	ibv_wr_send_imm(ex, htonl(12));
	ibv_wr_set_xrc_srqn(ex, w->number[1]);
	ibv_wr_set_sge(ex, w->send_mr->lkey, (uintptr_t)w->from, 12);
	MUST_EQ(ibv_wr_complete(ex), 0);
	MUST(arrived(w, 1, 5, 12));
	MUST(comm_est(w->target, w->twin));
	return true;
}

static bool wr_post__needs_the_srq(void)
{
	IN_WORLD(IBV_QP_EX_WITH_SEND_WITH_IMM, wr_api_body);
}

const struct test_case xrc_cases[] = {
#define CASE(f) { #f, f }
	CASE(open_xrcd__by_inode),
	CASE(create__refuses),
	CASE(post_send__each_request_names_its_srq),
	CASE(post_send__an_srq_of_another_domain),
	CASE(wr_post__needs_the_srq),
	{ 0 },
};
