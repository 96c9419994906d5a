/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maxima of ibv_query_device(3), ibv_query_device_ex(3) and ibv_query_port(3) that say how
 * large one object may be: each is reached, and carries traffic, and one more is refused. How many
 * objects there may be is in limits_objects; contract (limit__of_each_kind), ibv_attach_mcast, dm,
 * ibv_modify_cq (moderation) and ibv_create_cq_ex (vectors) have others.
 *
 * With XROCE_LIMITS_LONG=1 also what takes gigabytes or minutes: a CQ that is filled to its last
 * entry, and messages of max_msg_sz by every operation that has a length.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "man.h"

#define ALL_ACCESS                                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC)

static bool is_long(void)
{
	return getenv("XROCE_LIMITS_LONG");
}

/* ---- a QP connected to itself, of any size ---- */

struct loop {
	struct ibv_pd *pd;
	struct ibv_cq *scq, *rcq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_qp_cap cap; /* as it was made */
	struct ibv_mr *mr;
	uint8_t *buf;
};

static bool loop_begin(struct loop *l, int cqe)
{
	*l = (struct loop){ .pd = ibv_alloc_pd(ctx) };
	MUST(l->pd);
	MUST(l->scq = ibv_create_cq(ctx, cqe, NULL, NULL, 0));
	MUST(l->rcq = ibv_create_cq(ctx, cqe, NULL, NULL, 0));
	MUST(l->buf = calloc(2, BUF_BYTES));
	MUST(l->mr = ibv_reg_mr(l->pd, l->buf, 2 * BUF_BYTES, ALL_ACCESS));
	return true;
}

static struct ibv_qp *loop_qp(struct loop *l, enum ibv_qp_type type, struct ibv_qp_cap cap)
{
	struct ibv_qp_init_attr a = { .send_cq = l->scq,
				      .recv_cq = l->rcq,
				      .srq = l->srq,
				      .cap = cap,
				      .qp_type = type,
				      .sq_sig_all = 1 };
	struct ibv_qp *qp = ibv_create_qp(l->pd, &a);

	l->cap = a.cap;
	return qp;
}

static bool loop_open(struct loop *l, enum ibv_qp_type type, int cqe, struct ibv_qp_cap cap)
{
	MUST(loop_begin(l, cqe));
	MUST(l->qp = loop_qp(l, type, cap));
	MUST_EQ(qp_to_init(l->qp), 0);
	MUST_EQ(qp_to_rts(l->qp, l->qp->qp_num, 7), 0);
	return true;
}

static bool loop_close(struct loop *l)
{
	MUST(!l->qp || !ibv_destroy_qp(l->qp));
	MUST(!l->srq || !ibv_destroy_srq(l->srq));
	MUST(!l->scq || !ibv_destroy_cq(l->scq));
	MUST(!l->rcq || !ibv_destroy_cq(l->rcq));
	MUST(!l->mr || !ibv_dereg_mr(l->mr));
	free(l->buf);
	MUST(!l->pd || !ibv_dealloc_pd(l->pd));
	return true;
}

/* A successful completion of this request. */
static bool done(struct ibv_cq *cq, uint64_t wr_id, uint32_t byte_len)
{
	struct ibv_wc wc;

	MUST(wait_wc(cq, &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.wr_id, wr_id);
	if (byte_len != UINT32_MAX)
		MUST_EQ(wc.byte_len, byte_len);
	return true;
}

static struct ibv_send_wr send_of(const struct loop *l, enum ibv_wr_opcode opcode,
				  struct ibv_sge *sge, int num_sge)
{
	struct ibv_send_wr wr = { .opcode = opcode, .sg_list = sge, .num_sge = num_sge };

	wr.wr.rdma.remote_addr = (uintptr_t)l->buf + BUF_BYTES;
	wr.wr.rdma.rkey = l->mr->rkey;
	return wr;
}

static struct ibv_device_attr device(void)
{
	struct ibv_device_attr a = { 0 };

	ibv_query_device(ctx, &a);
	return a;
}

static struct ibv_port_attr port(void)
{
	struct ibv_port_attr a = { 0 };

	ibv_query_port(ctx, 1, &a);
	return a;
}

/* ---- max_qp_wr ---- */

/*
 * All places of both queues are taken and none more is; then everything arrives, once and in order.
 * A send takes its place until it has completed: those of RC wait here for their receives, those of
 * the others end at once.
 */
static bool queues_filled(enum ibv_qp_type type)
{
	const int max = device().max_qp_wr;
	struct ibv_ah_attr to = own_address();
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_recv_wr rr = { 0 }, *bad_rr;
	struct ibv_ah *ah = NULL;
	struct ibv_sge grh;
	struct loop l;
	uint32_t n;

	MUST(loop_open(&l, type, 2 * max,
		       (struct ibv_qp_cap){ (uint32_t)max, (uint32_t)max, 1, 1, 0 }));
	MUST(l.cap.max_send_wr >= (uint32_t)max && l.cap.max_recv_wr >= (uint32_t)max);
	if (type == IBV_QPT_UD) {
		MUST(ah = ibv_create_ah(l.pd, &to));
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = l.qp->qp_num;
		wr.wr.ud.remote_qkey = UD_QKEY;
		grh = (struct ibv_sge){ (uintptr_t)l.buf, 40, l.mr->lkey };
		rr.sg_list = &grh;
		rr.num_sge = 1;
	}
	if (type == IBV_QPT_RC) {
		for (n = 0; n < l.cap.max_send_wr; n++) {
			wr.wr_id = n;
			MUST_EQ(ibv_post_send(l.qp, &wr, &bad), 0);
		}
		MUST_EQ(ibv_post_send(l.qp, &wr, &bad), ENOMEM);
		MUST(bad == &wr);
		for (n = 0; n < l.cap.max_send_wr; n++) {
			rr.wr_id = n;
			MUST_EQ(ibv_post_recv(l.qp, &rr, &bad_rr), 0);
			MUST(done(l.scq, n, UINT32_MAX) && done(l.rcq, n, 0));
		}
	}
	for (n = 0; n < l.cap.max_recv_wr; n++) {
		rr.wr_id = n;
		MUST_EQ(ibv_post_recv(l.qp, &rr, &bad_rr), 0);
	}
	MUST_EQ(ibv_post_recv(l.qp, &rr, &bad_rr), ENOMEM);
	MUST(bad_rr == &rr);
	for (n = 0; n < l.cap.max_recv_wr; n++) {
		wr.wr_id = n;
		MUST_EQ(ibv_post_send(l.qp, &wr, &bad), 0);
		MUST(done(l.scq, n, UINT32_MAX) && done(l.rcq, n, type == IBV_QPT_UD ? 40 : 0));
	}
	if (ah)
		MUST_EQ(ibv_destroy_ah(ah), 0);
	return loop_close(&l);
}

static bool max_qp_wr_is_reached(void)
{
	return queues_filled(IBV_QPT_RC) && queues_filled(IBV_QPT_UC) && queues_filled(IBV_QPT_UD);
}

static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND };

/* A QP of this size is refused, for which reason is not left open: EINVAL of the kernel's verbs. */
static bool qp_refused(struct loop *l, enum ibv_qp_type type, struct ibv_qp_cap cap)
{
	MUST_FAIL(loop_qp(l, type, cap), EINVAL);
	return true;
}

static bool max_qp_wr_and_one(void)
{
	const uint32_t max = (uint32_t)device().max_qp_wr;
	struct loop l;

	MUST(loop_begin(&l, 1));
	for (unsigned int i = 0; i < sizeof(types) / sizeof(*types); i++) {
		const bool receives = types[i] != IBV_QPT_XRC_SEND;
		struct ibv_qp *qp;

		MUST(qp_refused(&l, types[i],
				(struct ibv_qp_cap){ max + 1, receives, 1, receives, 0 }));
		MUST(qp_refused(&l, types[i],
				(struct ibv_qp_cap){ UINT32_MAX, receives, 1, receives, 0 }));
		if (receives) {
			MUST(qp_refused(&l, types[i], (struct ibv_qp_cap){ 1, max + 1, 1, 1, 0 }));
			MUST(qp_refused(&l, types[i],
					(struct ibv_qp_cap){ 1, UINT32_MAX, 1, 1, 0 }));
		}
		MUST(qp = loop_qp(&l, types[i],
				  (struct ibv_qp_cap){ max, receives ? max : 0, 1, receives, 0 }));
		MUST_EQ(ibv_destroy_qp(qp), 0);
	}
	/* "The attributes max_recv_wr and max_recv_sge are ignored ... associated with an SRQ" */
	MUST(l.srq = ibv_create_srq(l.pd, &(struct ibv_srq_init_attr){ .attr = { 1, 1, 0 } }));
	MUST(l.qp = loop_qp(&l, IBV_QPT_RC, (struct ibv_qp_cap){ 1, max + 1, 1, 1000, 0 }));
	return loop_close(&l);
}

/* ---- max_sge, max_sge_rd ---- */

/* n elements of one byte, backwards, two bytes apart, from this offset on. */
static void elements(const struct loop *l, struct ibv_sge *sge, int n, uint32_t offset)
{
	for (int i = 0; i < n; i++)
		sge[i] = (struct ibv_sge){ .addr = (uintptr_t)l->buf + offset +
						   2u * (uint32_t)(n - 1 - i),
					   .length = 1,
					   .lkey = l->mr->lkey };
}

static bool max_sge_is_reached(void)
{
	const int max = device().max_sge, max_rd = device().max_sge_rd;
	const uint32_t n = (uint32_t)max;
	struct ibv_sge *from = calloc(n + 1, sizeof(*from)), *to = calloc(n + 1, sizeof(*to));
	struct ibv_recv_wr rr = { .wr_id = 1, .sg_list = to }, *bad_rr;
	struct ibv_send_wr wr, *bad;
	struct loop l;

	MUST(from && to && max_rd > 0);
	MUST(loop_open(&l, IBV_QPT_RC, QUEUE, (struct ibv_qp_cap){ 4, 4, n, n, 0 }));
	MUST(l.cap.max_send_sge >= n && l.cap.max_recv_sge >= n);
	for (uint32_t i = 0; i < n; i++)
		l.buf[2 * i] = (uint8_t)(i + 1);
	elements(&l, from, max, 0);
	elements(&l, to, max, 10000);

	/* scattered as it was gathered: what is last here is last there */
	rr.num_sge = max;
	MUST_EQ(ibv_post_recv(l.qp, &rr, &bad_rr), 0);
	wr = send_of(&l, IBV_WR_SEND, from, max);
	wr.wr_id = 2;
	MUST_EQ(ibv_post_send(l.qp, &wr, &bad), 0);
	MUST(done(l.scq, 2, UINT32_MAX) && done(l.rcq, 1, n));
	for (uint32_t i = 0; i < n; i++)
		MUST(l.buf[10000 + 2 * i] == i + 1 && l.buf[10001 + 2 * i] == 0);

	/* gathered in the list's order, at the other end one after the other */
	wr = send_of(&l, IBV_WR_RDMA_WRITE, from, max);
	MUST_EQ(ibv_post_send(l.qp, &wr, &bad), 0);
	MUST(done(l.scq, 0, UINT32_MAX));
	for (uint32_t i = 0; i < n; i++)
		MUST_EQ(l.buf[BUF_BYTES + i], n - i);

	memset(l.buf + 10000, 0, 2 * n);
	wr = send_of(&l, IBV_WR_RDMA_READ, to, max_rd);
	MUST_EQ(ibv_post_send(l.qp, &wr, &bad), 0);
	MUST(done(l.scq, 0, (uint32_t)max_rd));
	for (int i = 0; i < max_rd; i++)
		MUST_EQ(l.buf[to[i].addr - (uintptr_t)l.buf], max - i);

	/* one more than the QP has */
	l.cap.max_send_sge = l.cap.max_recv_sge = n + 1;
	from[n] = to[n] = from[0];
	wr = send_of(&l, IBV_WR_SEND, from, max + 1);
	MUST_EQ(ibv_post_send(l.qp, &wr, &bad), EINVAL);
	MUST(bad == &wr);
	rr.num_sge = max + 1;
	MUST_EQ(ibv_post_recv(l.qp, &rr, &bad_rr), EINVAL);
	MUST(bad_rr == &rr);
	free(from);
	free(to);
	return loop_close(&l);
}

static bool max_sge_and_one(void)
{
	const uint32_t max = (uint32_t)device().max_sge;
	struct loop l;

	MUST(loop_begin(&l, 1));
	for (unsigned int i = 0; i < sizeof(types) / sizeof(*types); i++) {
		const bool receives = types[i] != IBV_QPT_XRC_SEND;

		MUST(qp_refused(&l, types[i],
				(struct ibv_qp_cap){ 1, receives, max + 1, receives, 0 }));
		MUST(qp_refused(&l, types[i],
				(struct ibv_qp_cap){ 1, receives, UINT32_MAX, receives, 0 }));
		if (receives) {
			MUST(qp_refused(&l, types[i], (struct ibv_qp_cap){ 1, 1, 1, max + 1, 0 }));
			MUST(qp_refused(&l, types[i],
					(struct ibv_qp_cap){ 1, 1, 1, UINT32_MAX, 0 }));
		}
	}
	return loop_close(&l);
}

/* All that a QP may ask for, at once. */
static bool all_of_a_queue_pair_at_once(void)
{
	const struct ibv_device_attr dev = device();
	const uint32_t wr = (uint32_t)dev.max_qp_wr, sge = (uint32_t)dev.max_sge;
	struct ibv_recv_wr rr = { .wr_id = 5 }, *bad_rr;
	struct ibv_send_wr s = { .wr_id = 6, .opcode = IBV_WR_SEND }, *bad;
	struct loop l;

	MUST(loop_open(&l, IBV_QPT_RC, QUEUE, (struct ibv_qp_cap){ wr, wr, sge, sge, 64 }));
	MUST_EQ(ibv_post_recv(l.qp, &rr, &bad_rr), 0);
	MUST_EQ(ibv_post_send(l.qp, &s, &bad), 0);
	MUST(done(l.scq, 6, UINT32_MAX) && done(l.rcq, 5, 0));
	return loop_close(&l);
}

/* ---- what a QP gives beyond: inline data ---- */

/* The most that ibv_create_qp() gives: no attribute has it. */
static uint32_t most_inline(struct loop *l, enum ibv_qp_type type)
{
	uint32_t good = 0, bad = 1u << 30;

	while (good + 1 < bad) {
		uint32_t n = good + (bad - good) / 2;
		struct ibv_qp *qp = loop_qp(l, type,
					    (struct ibv_qp_cap){ 1, type != IBV_QPT_XRC_SEND, 1,
								 type != IBV_QPT_XRC_SEND, n });

		if (!qp) {
			bad = n;
			continue;
		}
		if (l->cap.max_inline_data < n || ibv_destroy_qp(qp))
			return 0;
		good = n;
	}
	return good;
}

static bool inline_of(enum ibv_qp_type type)
{
	struct ibv_sge to = { .length = BUF_BYTES }, from;
	struct ibv_recv_wr rr = { .sg_list = &to, .num_sge = 1 }, *bad_rr;
	struct ibv_ah_attr self = own_address();
	struct ibv_send_wr wr, *bad;
	struct ibv_ah *ah = NULL;
	struct loop l;
	uint32_t max, grh = type == IBV_QPT_UD ? 40 : 0;

	MUST(loop_begin(&l, QUEUE));
	max = most_inline(&l, type);
	MUST(max >= 64 && max < BUF_BYTES);
	MUST_FAIL(loop_qp(&l, type, (struct ibv_qp_cap){ 1, 1, 1, 1, max + 1 }), EINVAL);
	MUST(loop_close(&l));

	MUST(loop_open(&l, type, QUEUE, (struct ibv_qp_cap){ 2, 2, 1, 1, max }));
	MUST_EQ(l.cap.max_inline_data, max);
	for (uint32_t i = 0; i < max; i++)
		l.buf[i] = (uint8_t)(i * 7 + 1);
	to.addr = (uintptr_t)l.buf + BUF_BYTES;
	to.lkey = l.mr->lkey;
	MUST_EQ(ibv_post_recv(l.qp, &rr, &bad_rr), 0);
	from = (struct ibv_sge){ .addr = (uintptr_t)l.buf, .length = max }; /* needs no key */
	wr = send_of(&l, IBV_WR_SEND, &from, 1);
	if (type == IBV_QPT_UD) {
		MUST(ah = ibv_create_ah(l.pd, &self));
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = l.qp->qp_num;
		wr.wr.ud.remote_qkey = UD_QKEY;
	}
	wr.send_flags = IBV_SEND_INLINE;
	from.length = max + 1;
	MUST_EQ(ibv_post_send(l.qp, &wr, &bad), ENOMEM);
	MUST(bad == &wr);
	from.length = max;
	MUST_EQ(ibv_post_send(l.qp, &wr, &bad), 0);
	MUST(done(l.scq, 0, UINT32_MAX) && done(l.rcq, 0, max + grh));
	MUST_EQ(memcmp(l.buf, l.buf + BUF_BYTES + grh, max), 0);
	if (ah)
		MUST_EQ(ibv_destroy_ah(ah), 0);
	return loop_close(&l);
}

static bool inline_data_to_the_last_byte(void)
{
	return inline_of(IBV_QPT_RC) && inline_of(IBV_QPT_UC) && inline_of(IBV_QPT_UD);
}

/* ---- max_qp_rd_atom, max_qp_init_rd_atom, max_res_rd_atom ---- */

static bool to_rtr_with(struct ibv_qp *qp, int dest_rd_atomic, int mtu, int pkey_index, int sgid,
			int want)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR,
				 .path_mtu = mtu,
				 .dest_qp_num = qp->qp_num,
				 .rq_psn = 7,
				 .max_dest_rd_atomic = (uint8_t)dest_rd_atomic,
				 .min_rnr_timer = 1,
				 .pkey_index = (uint16_t)pkey_index,
				 .ah_attr = own_address() };

	a.ah_attr.grh.sgid_index = (uint8_t)sgid;
	MUST_EQ(ibv_modify_qp(qp, &a,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				      IBV_QP_MIN_RNR_TIMER | IBV_QP_PKEY_INDEX),
		want);
	MUST_EQ(qp_state_now(qp), want ? IBV_QPS_INIT : IBV_QPS_RTR);
	return true;
}

static bool to_rts_with(struct ibv_qp *qp, int rd_atomic, int want)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS,
				 .sq_psn = 7,
				 .max_rd_atomic = (uint8_t)rd_atomic,
				 .timeout = 14,
				 .retry_cnt = 7,
				 .rnr_retry = 7 };

	MUST_EQ(ibv_modify_qp(qp, &a,
			      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
		want);
	MUST_EQ(qp_state_now(qp), want ? IBV_QPS_RTR : IBV_QPS_RTS);
	return true;
}

static bool reads_and_atomics_outstanding(void)
{
	const struct ibv_device_attr dev = device();
	const uint32_t n = 2 * (uint32_t)dev.max_qp_init_rd_atom + 2;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	struct loop l;

	MUST(dev.max_qp_rd_atom > 0 && dev.max_qp_rd_atom < 255);
	MUST(dev.max_qp_init_rd_atom > 0 && dev.max_qp_init_rd_atom < 255);
	/* "Maximum number of resources used for RDMA Read & Atomic operations by this HCA as the
	 * Target": all QPs may have theirs at once, or QPs would be refused that are within the
	 * others */
	MUST_EQ(dev.max_res_rd_atom, (long long)dev.max_qp * dev.max_qp_rd_atom);
	MUST(loop_begin(&l, (int)n));
	MUST(l.qp = loop_qp(&l, IBV_QPT_RC, (struct ibv_qp_cap){ n, 1, 1, 1, 0 }));
	MUST_EQ(qp_to_init(l.qp), 0);
	MUST(to_rtr_with(l.qp, dev.max_qp_rd_atom + 1, IBV_MTU_1024, 0, 0, EINVAL));
	MUST(to_rtr_with(l.qp, dev.max_qp_rd_atom, IBV_MTU_1024, 0, 0, 0));
	MUST(to_rts_with(l.qp, dev.max_qp_init_rd_atom + 1, EINVAL));
	MUST(to_rts_with(l.qp, dev.max_qp_init_rd_atom, 0));
	MUST_EQ(ibv_query_qp(l.qp, &a, IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC, &init),
		0);
	MUST_EQ(a.max_dest_rd_atomic, dev.max_qp_rd_atom);
	MUST_EQ(a.max_rd_atomic, dev.max_qp_init_rd_atom);
	/*
	 * More than may be under way. An atomic is executed in its turn and once; a READ sees those
	 * before it, and may see later ones, as none of them waits for it without a fence.
	 */
	for (uint32_t i = 0; i < n; i++) {
		sge = (struct ibv_sge){ (uintptr_t)l.buf + 8 * i, 8, l.mr->lkey };
		wr = send_of(&l, i % 2 ? IBV_WR_RDMA_READ : IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 1);
		if (!(i % 2)) {
			wr.wr.atomic.remote_addr = (uintptr_t)l.buf + BUF_BYTES;
			wr.wr.atomic.compare_add = 1;
			wr.wr.atomic.rkey = l.mr->rkey;
		}
		wr.wr_id = i;
		MUST_EQ(ibv_post_send(l.qp, &wr, &bad), 0);
	}
	for (uint32_t i = 0; i < n; i++)
		MUST(done(l.scq, i, 8));
	for (uint64_t i = 0; i < n; i++) {
		uint64_t got = ((uint64_t *)l.buf)[i];

		MUST(i % 2 ? got >= (i + 1) / 2 && got <= n / 2 : got == i / 2);
	}
	return loop_close(&l);
}

/* ---- active_mtu, pkey_tbl_len, gid_tbl_len ---- */

static bool tables_of_the_port(void)
{
	const struct ibv_port_attr p = port();
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
				 .pkey_index = p.pkey_tbl_len };
	struct ibv_ah_attr ah = own_address();
	union ibv_gid gid, none = { .raw = { 0 } };
	struct loop l;
	__be16 pkey;

	MUST_EQ(p.pkey_tbl_len, device().max_pkeys);
	for (int i = 0; i < p.pkey_tbl_len; i++)
		MUST_EQ(ibv_query_pkey(ctx, 1, i, &pkey), 0);
	MUST_EQ(ibv_query_pkey(ctx, 1, p.pkey_tbl_len, &pkey), -1);
	MUST_EQ(ibv_query_pkey(ctx, 1, -1, &pkey), -1);
	/* an entry that holds no GID reads as zeros, one behind the table does not read */
	for (int i = 0; i < p.gid_tbl_len; i++)
		MUST_EQ(ibv_query_gid(ctx, 1, i, &gid), 0);
	MUST_EQ(memcmp(&gid, &none, sizeof(gid)), 0);
	MUST_EQ(ibv_query_gid(ctx, 1, p.gid_tbl_len, &gid), -1);

	MUST(loop_begin(&l, QUEUE));
	ah.grh.sgid_index = (uint8_t)p.gid_tbl_len;
	MUST_FAIL(ibv_create_ah(l.pd, &ah), EINVAL);
	MUST(l.qp = loop_qp(&l, IBV_QPT_RC, (struct ibv_qp_cap){ 1, 1, 1, 1, 0 }));
	MUST_EQ(ibv_modify_qp(l.qp, &a,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		EINVAL);
	a.pkey_index--;
	MUST_EQ(ibv_modify_qp(l.qp, &a,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
	MUST(to_rtr_with(l.qp, 1, IBV_MTU_1024, p.pkey_tbl_len, 0, EINVAL));
	MUST(to_rtr_with(l.qp, 1, IBV_MTU_1024, 0, p.gid_tbl_len, EINVAL));
	MUST(to_rtr_with(l.qp, 1, IBV_MTU_1024, p.pkey_tbl_len - 1, 0, 0));
	return loop_close(&l);
}

/* SENDs of n whole packets of this MTU, of one byte less and of one more. */
static bool packets_of(enum ibv_mtu mtu)
{
	const uint32_t bytes = 128u << mtu;
	struct ibv_sge from, to;
	struct ibv_recv_wr rr = { .wr_id = 1, .sg_list = &to, .num_sge = 1 }, *bad_rr;
	struct ibv_send_wr wr, *bad;
	struct loop l;

	MUST(loop_begin(&l, QUEUE));
	MUST(l.qp = loop_qp(&l, IBV_QPT_RC, (struct ibv_qp_cap){ 1, 1, 1, 1, 0 }));
	MUST_EQ(qp_to_init(l.qp), 0);
	MUST(to_rtr_with(l.qp, 1, (int)mtu, 0, 0, 0));
	MUST(to_rts_with(l.qp, 1, 0));
	for (uint32_t i = 0; i < BUF_BYTES; i++)
		l.buf[i] = (uint8_t)(i * 11 + i / 256);
	from = (struct ibv_sge){ (uintptr_t)l.buf, 0, l.mr->lkey };
	to = (struct ibv_sge){ (uintptr_t)l.buf + BUF_BYTES, BUF_BYTES, l.mr->lkey };
	for (uint32_t n = 1; n <= 3; n++) {
		for (uint32_t len = n * bytes - 1; len <= n * bytes + 1; len++) {
			memset(l.buf + BUF_BYTES, 0, BUF_BYTES);
			MUST_EQ(ibv_post_recv(l.qp, &rr, &bad_rr), 0);
			from.length = len;
			wr = send_of(&l, IBV_WR_SEND, &from, 1);
			MUST_EQ(ibv_post_send(l.qp, &wr, &bad), 0);
			MUST(done(l.scq, 0, UINT32_MAX) && done(l.rcq, 1, len));
			MUST_EQ(memcmp(l.buf, l.buf + BUF_BYTES, len), 0);
		}
	}
	return loop_close(&l);
}

/* A datagram is one packet: of this many bytes, and not of one more. */
static bool datagrams_of(uint32_t mtu)
{
	struct ibv_ah_attr self = own_address();
	struct ibv_sge from, to;
	struct ibv_recv_wr rr = { .sg_list = &to, .num_sge = 1 }, *bad_rr;
	struct ibv_send_wr wr, *bad;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct loop l;

	MUST(loop_open(&l, IBV_QPT_UD, QUEUE, (struct ibv_qp_cap){ 2, 2, 1, 1, 0 }));
	MUST(ah = ibv_create_ah(l.pd, &self));
	for (uint32_t i = 0; i < mtu; i++)
		l.buf[i] = (uint8_t)(i * 5 + i / 256);
	to = (struct ibv_sge){ (uintptr_t)l.buf + BUF_BYTES, mtu + 40, l.mr->lkey };
	MUST_EQ(ibv_post_recv(l.qp, &rr, &bad_rr), 0);
	from = (struct ibv_sge){ (uintptr_t)l.buf, mtu, l.mr->lkey };
	wr = send_of(&l, IBV_WR_SEND, &from, 1);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = l.qp->qp_num;
	wr.wr.ud.remote_qkey = UD_QKEY;
	MUST_EQ(ibv_post_send(l.qp, &wr, &bad), 0);
	MUST(done(l.scq, 0, UINT32_MAX) && done(l.rcq, 0, mtu + 40));
	MUST_EQ(memcmp(l.buf, l.buf + BUF_BYTES + 40, mtu), 0);
	MUST_EQ(ibv_post_recv(l.qp, &rr, &bad_rr), 0);
	from.length = mtu + 1;
	MUST_EQ(ibv_post_send(l.qp, &wr, &bad), 0);
	MUST(wait_wc(l.scq, &wc));
	MUST_EQ(wc.status, IBV_WC_LOC_LEN_ERR);
	MUST(cq_is_empty(l.rcq));
	MUST_EQ(ibv_destroy_ah(ah), 0);
	return loop_close(&l);
}

/* A path MTU that its link does not carry. */
static bool mtu_refused(int mtu)
{
	struct loop l;

	MUST(loop_begin(&l, QUEUE));
	MUST(l.qp = loop_qp(&l, IBV_QPT_RC, (struct ibv_qp_cap){ 1, 1, 1, 1, 0 }));
	MUST_EQ(qp_to_init(l.qp), 0);
	MUST(to_rtr_with(l.qp, 1, mtu, 0, 0, EINVAL));
	return loop_close(&l);
}

static bool set_link_mtu(int mtu)
{
	char command[100];

	snprintf(command, sizeof(command), "ip link set dev %s mtu %d",
		 ibv_get_device_name(ctx->device) + strlen("xroce_"), mtu);
	return system(command) == 0;
}

/* active_mtu is what is best; up to max_mtu, all that the link carries works (docs/tx.md). */
static bool mtus_of_the_link(void)
{
	const struct ibv_port_attr p = port();

	MUST(p.active_mtu <= p.max_mtu && p.active_mtu >= IBV_MTU_256);
	MUST_EQ(p.max_mtu, IBV_MTU_4096);
	for (int mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++)
		MUST(packets_of((enum ibv_mtu)mtu));
	MUST(datagrams_of(128u << p.active_mtu < 4096 ? 4096 : 128u << p.active_mtu));
	MUST(mtu_refused(0) && mtu_refused(p.max_mtu + 1));
	return true;
}

static bool mtus_of_a_smaller_link(void)
{
	bool good;

	MUST(set_link_mtu(1500));
	good = port().active_mtu == IBV_MTU_1024 && packets_of(IBV_MTU_1024) &&
	       mtu_refused(IBV_MTU_2048) && mtu_refused(IBV_MTU_4096) && datagrams_of(1024);
	MUST(set_link_mtu(4500) && good);
	return true;
}

/* ---- max_msg_sz ---- */

#define PIECE (64u << 20)

/* This many bytes of address space, all of it the same PIECE of memory. */
static void *tiled(uint64_t bytes, int fd)
{
	uint8_t *at =
		mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	for (uint64_t done = 0; done < bytes; done += PIECE)
		if (mmap(at + done, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
		    MAP_FAILED)
			return NULL;
	return at;
}

struct huge {
	struct loop l;
	uint32_t *mem[2];
	struct ibv_mr *mr[2];
};

static bool huge_open(struct huge *h, enum ibv_qp_type type)
{
	const uint64_t room = (uint64_t)port().max_msg_sz + PIECE;

	MUST(loop_open(&h->l, type, QUEUE, (struct ibv_qp_cap){ 2, 2, 2, 2, 0 }));
	for (int i = 0; i < 2; i++) {
		int fd = memfd_create("limits", MFD_CLOEXEC);

		MUST(fd >= 0 && !ftruncate(fd, PIECE));
		MUST(h->mem[i] = tiled(room, fd));
		close(fd);
		MUST(h->mr[i] = ibv_reg_mr(h->l.pd, h->mem[i], room, ALL_ACCESS));
	}
	for (uint32_t i = 0; i < PIECE / 4; i++)
		h->mem[0][i] = i * 2654435761u + 1;
	return true;
}

static bool huge_close(struct huge *h)
{
	for (int i = 0; i < 2; i++) {
		MUST_EQ(ibv_dereg_mr(h->mr[i]), 0);
		MUST_EQ(munmap(h->mem[i], (uint64_t)port().max_msg_sz + PIECE), 0);
	}
	return loop_close(&h->l);
}

/* Gigabytes take longer than wait_wc() waits; the program's own time is bounded by man.sh. */
static bool done_in_time(struct ibv_cq *cq, uint64_t wr_id)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		;
	MUST_EQ(n, 1);
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.wr_id, wr_id);
	return true;
}

static bool huge_message(struct huge *h, enum ibv_wr_opcode opcode)
{
	const uint64_t max = port().max_msg_sz;
	const bool read = opcode == IBV_WR_RDMA_READ;
	struct ibv_sge sge = { (uintptr_t)h->mem[read], (uint32_t)max, h->mr[read]->lkey },
		       to = { (uintptr_t)h->mem[1], (uint32_t)max, h->mr[1]->lkey };
	struct ibv_recv_wr rr = { .wr_id = 9, .sg_list = &to, .num_sge = 1 }, *bad_rr;
	struct ibv_send_wr wr = send_of(&h->l, opcode, &sge, 1), *bad;

	wr.wr_id = 8;
	wr.wr.rdma.remote_addr = (uintptr_t)h->mem[!read];
	wr.wr.rdma.rkey = h->mr[!read]->rkey;
	memset(h->mem[1], 0, PIECE);
	if (opcode == IBV_WR_SEND)
		MUST_EQ(ibv_post_recv(h->l.qp, &rr, &bad_rr), 0);
	MUST_EQ(ibv_post_send(h->l.qp, &wr, &bad), 0);
	MUST(done_in_time(h->l.scq, 8));
	if (opcode == IBV_WR_SEND)
		MUST(done_in_time(h->l.rcq, 9));
	MUST_EQ(memcmp(h->mem[0], h->mem[1], PIECE), 0);
	return true;
}

/* One more than the port has: posted, and refused in its turn (docs/verbs.md). */
static bool too_huge(struct huge *h, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge[2] = { { (uintptr_t)h->mem[0], port().max_msg_sz, h->mr[0]->lkey },
				  { (uintptr_t)h->mem[0], 1, h->mr[0]->lkey } };
	struct ibv_send_wr wr = send_of(&h->l, opcode, sge, 2), *bad;
	struct ibv_wc wc;

	memset(h->mem[1], 0, PIECE);
	wr.wr.rdma.remote_addr = (uintptr_t)h->mem[1];
	wr.wr.rdma.rkey = h->mr[1]->rkey;
	MUST_EQ(ibv_post_send(h->l.qp, &wr, &bad), 0);
	MUST(wait_wc(h->l.scq, &wc));
	MUST_EQ(wc.status, IBV_WC_LOC_LEN_ERR);
	MUST(cq_is_empty(h->l.rcq));
	MUST_EQ(h->mem[1][0], 0);
	return true;
}

static bool huge_of(enum ibv_qp_type type, enum ibv_wr_opcode opcode)
{
	struct huge h;

	MUST(huge_open(&h, type));
	MUST(huge_message(&h, opcode));
	MUST(too_huge(&h, opcode));
	return huge_close(&h);
}

static bool max_msg_sz_and_one(void)
{
	MUST_EQ(port().max_msg_sz, 1u << 31);
	MUST(huge_of(IBV_QPT_RC, IBV_WR_RDMA_WRITE));
	if (!is_long())
		return true;
	return huge_of(IBV_QPT_RC, IBV_WR_SEND) && huge_of(IBV_QPT_RC, IBV_WR_RDMA_READ) &&
	       huge_of(IBV_QPT_UC, IBV_WR_SEND) && huge_of(IBV_QPT_UC, IBV_WR_RDMA_WRITE);
}

/* ---- max_mr_size ---- */

/*
 * It is the whole address space, so nothing can be larger: it is reached by a region that pages on
 * demand, and of memory that must be there, there is never so much.
 */
static bool max_mr_size_is_reached(void)
{
	const uint64_t max = device().max_mr_size, room = 64ull << 30;
	struct ibv_device_attr_ex ex;
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct loop l;
	uint8_t *mem;

	MUST_EQ(max, SIZE_MAX);
	MUST_EQ(ibv_query_device_ex(ctx, NULL, &ex), 0);
	MUST(ex.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT);
	MUST(loop_open(&l, IBV_QPT_RC, QUEUE, (struct ibv_qp_cap){ 2, 2, 1, 1, 0 }));
	MUST(mr = ibv_reg_mr(l.pd, NULL, max, ALL_ACCESS | IBV_ACCESS_ON_DEMAND));
	MUST(mr->addr == NULL && mr->length == max);
	sge = (struct ibv_sge){ (uintptr_t)l.buf, 4, mr->lkey };
	memcpy(l.buf, "ping", 4);
	wr = send_of(&l, IBV_WR_RDMA_WRITE, &sge, 1);
	wr.wr.rdma.rkey = mr->rkey;
	MUST_EQ(ibv_post_send(l.qp, &wr, &bad), 0);
	MUST(done(l.scq, 0, UINT32_MAX));
	MUST_EQ(memcmp(l.buf + BUF_BYTES, "ping", 4), 0);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	/* elsewhere that many bytes end behind the last address */
	MUST_FAIL(ibv_reg_mr(l.pd, l.buf, max, ALL_ACCESS), EINVAL);
	MUST_FAIL(ibv_reg_mr(l.pd, l.buf, SIZE_MAX - (uintptr_t)l.buf + 1, ALL_ACCESS), EINVAL);
	MUST_FAIL(ibv_reg_mr(l.pd, NULL, max, ALL_ACCESS), EINVAL);
	MUST_FAIL(ibv_reg_mr(l.pd, NULL, 1ull << 46, ALL_ACCESS), EFAULT);

	/* a region of more than 32 bits count, used at its end */
	mem = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		   -1, 0);
	MUST(mem != MAP_FAILED);
	MUST(mr = ibv_reg_mr(l.pd, mem, room, ALL_ACCESS | IBV_ACCESS_ON_DEMAND));
	wr.wr.rdma.rkey = mr->rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)mem + room - 4;
	sge.lkey = l.mr->lkey;
	MUST_EQ(ibv_post_send(l.qp, &wr, &bad), 0);
	MUST(done(l.scq, 0, UINT32_MAX));
	MUST_EQ(memcmp(mem + room - 4, "ping", 4), 0);
	wr.wr.rdma.remote_addr++;
	MUST_EQ(ibv_post_send(l.qp, &wr, &bad), 0);
	MUST(take_async(IBV_EVENT_QP_ACCESS_ERR, l.qp));
	MUST_EQ(ibv_dereg_mr(mr), 0);
	MUST_EQ(munmap(mem, room), 0);
	return loop_close(&l);
}

/* ---- max_cqe ---- */

static bool max_cqe_and_one(void)
{
	const int max = device().max_cqe;
	struct ibv_cq_init_attr_ex ex = { .cqe = (uint32_t)max + 1,
					  .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_recv_wr rr = { 0 }, *bad_rr;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_cq_ex *cq_ex;
	struct ibv_cq *cq;
	struct loop l;

	MUST_FAIL(ibv_create_cq(ctx, max + 1, NULL, NULL, 0), EINVAL);
	MUST_FAIL(ibv_create_cq(ctx, INT32_MAX, NULL, NULL, 0), EINVAL);
	MUST_FAIL(ibv_create_cq_ex(ctx, &ex), EINVAL);
	ex.cqe = UINT32_MAX;
	MUST_FAIL(ibv_create_cq_ex(ctx, &ex), EINVAL);
	ex.cqe = (uint32_t)max;
	MUST(cq_ex = ibv_create_cq_ex(ctx, &ex));
	MUST(ibv_cq_ex_to_cq(cq_ex)->cqe >= max);
	MUST_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq_ex)), 0);
	/* grown from the smallest, and no further */
	MUST(cq = ibv_create_cq(ctx, 1, NULL, NULL, 0));
	MUST_EQ(ibv_resize_cq(cq, max), 0);
	MUST(cq->cqe >= max);
	MUST_EQ(ibv_resize_cq(cq, max + 1), EINVAL);
	MUST(cq->cqe >= max);
	MUST_EQ(ibv_destroy_cq(cq), 0);

	MUST(loop_open(&l, IBV_QPT_RC, max, (struct ibv_qp_cap){ 1024, 1024, 1, 1, 0 }));
	MUST(l.rcq->cqe >= max);
	/* Receive completions alone fill it: sends are polled. */
	for (int n = 0, all = is_long() ? l.rcq->cqe : 1; n < all; n++) {
		rr.wr_id = wr.wr_id = (uint64_t)n;
		MUST_EQ(ibv_post_recv(l.qp, &rr, &bad_rr), 0);
		MUST_EQ(ibv_post_send(l.qp, &wr, &bad), 0);
		MUST(done(l.scq, (uint64_t)n, UINT32_MAX));
	}
	for (int n = 0, all = is_long() ? l.rcq->cqe : 1; n < all; n++)
		MUST(done(l.rcq, (uint64_t)n, 0));
	MUST(no_async_event());
	return loop_close(&l);
}

/* ---- max_srq_wr, max_srq_sge ---- */

static bool max_srq_wr_is_reached(void)
{
	const struct ibv_device_attr dev = device();
	const uint32_t wr = (uint32_t)dev.max_srq_wr, sge = (uint32_t)dev.max_srq_sge;
	struct ibv_srq_init_attr a = { .attr = { wr, sge, 0 } };
	struct ibv_srq_attr change = { .max_wr = wr + 1 };
	struct ibv_sge *to = calloc(sge + 1, sizeof(*to)), from;
	struct ibv_recv_wr rr = { .sg_list = to, .num_sge = (int)sge }, *bad_rr;
	struct ibv_send_wr s, *bad;
	struct loop l;
	uint32_t n;

	MUST(to && loop_begin(&l, (int)wr));
	MUST(l.srq = ibv_create_srq(l.pd, &a));
	MUST(a.attr.max_wr >= wr && a.attr.max_sge >= sge);
	MUST_EQ(ibv_modify_srq(l.srq, &change, IBV_SRQ_MAX_WR), EINVAL);
	change.max_wr = wr;
	MUST_EQ(ibv_modify_srq(l.srq, &change, IBV_SRQ_MAX_WR), 0);
	/* its limit may be all of them, but not one more */
	change.srq_limit = a.attr.max_wr + 1;
	MUST_EQ(ibv_modify_srq(l.srq, &change, IBV_SRQ_LIMIT), EINVAL);
	change.srq_limit = 0;
	MUST(l.qp = loop_qp(&l, IBV_QPT_RC, (struct ibv_qp_cap){ 16, 0, 1, 0, 0 }));
	MUST_EQ(qp_to_init(l.qp), 0);
	MUST_EQ(qp_to_rts(l.qp, l.qp->qp_num, 7), 0);
	elements(&l, to, (int)sge, BUF_BYTES);
	for (n = 0; n < a.attr.max_wr; n++) {
		rr.wr_id = n;
		MUST_EQ(ibv_post_srq_recv(l.srq, &rr, &bad_rr), 0);
	}
	MUST_EQ(ibv_post_srq_recv(l.srq, &rr, &bad_rr), ENOMEM);
	MUST(bad_rr == &rr);
	rr.num_sge = (int)a.attr.max_sge + 1;
	for (uint32_t i = 0; i < sge; i++)
		l.buf[i] = (uint8_t)(200 - i);
	from = (struct ibv_sge){ (uintptr_t)l.buf, sge, l.mr->lkey };
	s = send_of(&l, IBV_WR_SEND, &from, 1);
	for (n = 0; n < a.attr.max_wr; n++) {
		memset(l.buf + BUF_BYTES, 0, 2 * sge);
		s.wr_id = n;
		MUST_EQ(ibv_post_send(l.qp, &s, &bad), 0);
		MUST(done(l.scq, n, UINT32_MAX) && done(l.rcq, n, sge));
		for (uint32_t i = 0; i < sge; i++)
			MUST_EQ(l.buf[to[i].addr - (uintptr_t)l.buf], 200 - i);
	}
	to = realloc(to, (a.attr.max_sge + 1) * sizeof(*to));
	MUST(to);
	rr.sg_list = to;
	to[a.attr.max_sge] = to[0];
	MUST_EQ(ibv_post_srq_recv(l.srq, &rr, &bad_rr), EINVAL);
	MUST(bad_rr == &rr);
	free(to);
	return loop_close(&l);
}

/* One more than max_srq_wr or max_srq_sge: EINVAL, whichever verb makes it and of whatever type. */
static bool max_srq_wr_and_one(void)
{
	const struct ibv_device_attr dev = device();
	const struct ibv_srq_attr sizes[] = {
		{ .max_wr = (uint32_t)dev.max_srq_wr + 1, .max_sge = 1 },
		{ .max_wr = UINT32_MAX, .max_sge = 1 },
		{ .max_wr = 1, .max_sge = (uint32_t)dev.max_srq_sge + 1 },
		{ .max_wr = 1, .max_sge = UINT32_MAX },
	};
	struct ibv_xrcd_init_attr none = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							IBV_XRCD_INIT_ATTR_OFLAGS,
					   .fd = -1,
					   .oflags = O_CREAT };
	struct ibv_xrcd *xrcd;
	struct loop l;

	MUST(loop_begin(&l, QUEUE));
	MUST(xrcd = ibv_open_xrcd(ctx, &none));
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct ibv_srq_init_attr basic = { .attr = sizes[i] };
		struct ibv_srq_init_attr_ex a = { .attr = sizes[i],
						  .comp_mask = IBV_SRQ_INIT_ATTR_TYPE |
							       IBV_SRQ_INIT_ATTR_PD |
							       IBV_SRQ_INIT_ATTR_CQ,
						  .srq_type = IBV_SRQT_TM,
						  .pd = l.pd,
						  .cq = l.rcq,
						  .xrcd = xrcd,
						  .tm_cap = { 4, 4 } };

		MUST_FAIL(ibv_create_srq(l.pd, &basic), EINVAL);
		a.comp_mask |= IBV_SRQ_INIT_ATTR_TM;
		MUST_FAIL(ibv_create_srq_ex(ctx, &a), EINVAL);
		a.srq_type = IBV_SRQT_XRC;
		a.comp_mask ^= IBV_SRQ_INIT_ATTR_TM | IBV_SRQ_INIT_ATTR_XRCD;
		MUST_FAIL(ibv_create_srq_ex(ctx, &a), EINVAL);
		a.attr = (struct ibv_srq_attr){ (uint32_t)dev.max_srq_wr, (uint32_t)dev.max_srq_sge,
						0 };
		MUST(l.srq = ibv_create_srq_ex(ctx, &a));
		MUST_EQ(ibv_destroy_srq(l.srq), 0);
		l.srq = NULL;
	}
	MUST_EQ(ibv_close_xrcd(xrcd), 0);
	return loop_close(&l);
}

/* ---- tm_caps ---- */

static bool tag_lists_of_the_devices_size(void)
{
	struct ibv_srq_init_attr_ex a = { .attr = { .max_wr = QUEUE, .max_sge = 1 },
					  .comp_mask = IBV_SRQ_INIT_ATTR_TYPE |
						       IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
						       IBV_SRQ_INIT_ATTR_TM,
					  .srq_type = IBV_SRQT_TM };
	struct ibv_ops_wr op = { .opcode = IBV_WR_TAG_ADD, .flags = IBV_OPS_SIGNALED }, *bad;
	struct ibv_device_attr_ex dev;
	struct ibv_sge *sge;
	struct ibv_wc wc;
	struct loop l;
	uint32_t n;

	MUST_EQ(ibv_query_device_ex(ctx, NULL, &dev), 0);
	MUST(loop_begin(&l, 2 * (int)dev.tm_caps.max_num_tags));
	MUST(sge = calloc(dev.tm_caps.max_sge + 1, sizeof(*sge)));
	elements(&l, sge, (int)dev.tm_caps.max_sge + 1, 0);
	a.pd = l.pd;
	a.cq = l.rcq;
	a.tm_cap = (struct ibv_tm_cap){ dev.tm_caps.max_num_tags + 1, dev.tm_caps.max_ops };
	MUST_FAIL(ibv_create_srq_ex(ctx, &a), EINVAL);
	a.tm_cap = (struct ibv_tm_cap){ dev.tm_caps.max_num_tags, dev.tm_caps.max_ops + 1 };
	MUST_FAIL(ibv_create_srq_ex(ctx, &a), EINVAL);
	a.tm_cap.max_ops--;
	a.attr.max_sge = (uint32_t)device().max_srq_sge;
	MUST(l.srq = ibv_create_srq_ex(ctx, &a));
	op.tm.add.sg_list = sge;
	op.tm.add.num_sge = (int)dev.tm_caps.max_sge + 1;
	op.tm.add.mask = ~0ull;
	MUST_EQ(ibv_post_srq_ops(l.srq, &op, &bad), EINVAL);
	op.tm.add.num_sge--;
	for (n = 0; n < dev.tm_caps.max_num_tags; n++) {
		op.wr_id = op.tm.add.tag = op.tm.add.recv_wr_id = n;
		MUST_EQ(ibv_post_srq_ops(l.srq, &op, &bad), 0);
		MUST(wait_wc(l.rcq, &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST_EQ(wc.opcode, IBV_WC_TM_ADD);
		MUST_EQ(wc.wr_id, n);
	}
	MUST_EQ(ibv_post_srq_ops(l.srq, &op, &bad), ENOMEM);
	MUST(bad == &op);
	free(sge);
	return loop_close(&l);
}

const struct test_case man_cases[] = {
	CASE(max_qp_wr_is_reached),
	CASE(max_qp_wr_and_one),
	CASE(max_sge_is_reached),
	CASE(max_sge_and_one),
	CASE(all_of_a_queue_pair_at_once),
	CASE(inline_data_to_the_last_byte),
	CASE(reads_and_atomics_outstanding),
	CASE(tables_of_the_port),
	CASE(mtus_of_the_link),
	CASE(mtus_of_a_smaller_link),
	CASE(max_msg_sz_and_one),
	CASE(max_mr_size_is_reached),
	CASE(max_cqe_and_one),
	CASE(max_srq_wr_is_reached),
	CASE(max_srq_wr_and_one),
	CASE(tag_lists_of_the_devices_size),
	{ 0 },
};
