/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * The maximum sizes of one object in ibv_query_device(3), ibv_query_device_ex(3) and
 * ibv_query_port(3): each is reached, and carries traffic, and one more is refused. This page has a
 * QP's; limits_port a port's, messages' and regions', limits_queues CQs' and SRQs'. The
 * numbers of objects are in limits_objects; contract (limit__of_each_kind), ibv_attach_mcast, dm,
 * ibv_modify_cq (moderation) and ibv_create_cq_ex (vectors) have others.
 */
#include "limits.h"

/* ---- max_qp_wr ---- */

/*
 * All places of both queues are taken, and no further one exists; then everything arrives, once and
 * in order. A send holds its place until it has completed: RC sends wait here for their receives,
 * other sends complete at once.
 */
static bool queues_filled(enum ibv_qp_type type)
{
	const int max = limits_device().max_qp_wr;
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
			MUST(loop_done(l.scq, n, UINT32_MAX) && loop_done(l.rcq, n, 0));
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
		MUST(loop_done(l.scq, n, UINT32_MAX) &&
		     loop_done(l.rcq, n, type == IBV_QPT_UD ? 40 : 0));
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
	const uint32_t max = (uint32_t)limits_device().max_qp_wr;
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

static bool max_sge_is_reached(void)
{
	const int max = limits_device().max_sge, max_rd = limits_device().max_sge_rd;
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
	loop_elements(&l, from, max, 0);
	loop_elements(&l, to, max, 10000);

	/* scattered as it was gathered: the last part is last here, too */
	rr.num_sge = max;
	MUST_EQ(ibv_post_recv(l.qp, &rr, &bad_rr), 0);
	wr = loop_send(&l, IBV_WR_SEND, from, max);
	wr.wr_id = 2;
	MUST_EQ(ibv_post_send(l.qp, &wr, &bad), 0);
	MUST(loop_done(l.scq, 2, UINT32_MAX) && loop_done(l.rcq, 1, n));
	for (uint32_t i = 0; i < n; i++)
		MUST(l.buf[10000 + 2 * i] == i + 1 && l.buf[10001 + 2 * i] == 0);

	/* gathered in the list's order, at the other end one after the other */
	wr = loop_send(&l, IBV_WR_RDMA_WRITE, from, max);
	MUST_EQ(ibv_post_send(l.qp, &wr, &bad), 0);
	MUST(loop_done(l.scq, 0, UINT32_MAX));
	for (uint32_t i = 0; i < n; i++)
		MUST_EQ(l.buf[BUF_BYTES + i], n - i);

	memset(l.buf + 10000, 0, 2 * n);
	wr = loop_send(&l, IBV_WR_RDMA_READ, to, max_rd);
	MUST_EQ(ibv_post_send(l.qp, &wr, &bad), 0);
	MUST(loop_done(l.scq, 0, (uint32_t)max_rd));
	for (int i = 0; i < max_rd; i++)
		MUST_EQ(l.buf[to[i].addr - (uintptr_t)l.buf], max - i);

	/* one more than the QP has */
	l.cap.max_send_sge = l.cap.max_recv_sge = n + 1;
	from[n] = to[n] = from[0];
	wr = loop_send(&l, IBV_WR_SEND, from, max + 1);
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
	const uint32_t max = (uint32_t)limits_device().max_sge;
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
	const struct ibv_device_attr dev = limits_device();
	const uint32_t wr = (uint32_t)dev.max_qp_wr, sge = (uint32_t)dev.max_sge;
	struct ibv_recv_wr rr = { .wr_id = 5 }, *bad_rr;
	struct ibv_send_wr s = { .wr_id = 6, .opcode = IBV_WR_SEND }, *bad;
	struct loop l;

	MUST(loop_open(&l, IBV_QPT_RC, QUEUE, (struct ibv_qp_cap){ wr, wr, sge, sge, 64 }));
	MUST_EQ(ibv_post_recv(l.qp, &rr, &bad_rr), 0);
	MUST_EQ(ibv_post_send(l.qp, &s, &bad), 0);
	MUST(loop_done(l.scq, 6, UINT32_MAX) && loop_done(l.rcq, 5, 0));
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
	wr = loop_send(&l, IBV_WR_SEND, &from, 1);
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
	MUST(loop_done(l.scq, 0, UINT32_MAX) && loop_done(l.rcq, 0, max + grh));
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

static bool reads_and_atomics_outstanding(void)
{
	const struct ibv_device_attr dev = limits_device();
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
	MUST(qp_to_rtr_with(l.qp, dev.max_qp_rd_atom + 1, IBV_MTU_1024, 0, 0, EINVAL));
	MUST(qp_to_rtr_with(l.qp, dev.max_qp_rd_atom, IBV_MTU_1024, 0, 0, 0));
	MUST(qp_to_rts_with(l.qp, dev.max_qp_init_rd_atom + 1, EINVAL));
	MUST(qp_to_rts_with(l.qp, dev.max_qp_init_rd_atom, 0));
	MUST_EQ(ibv_query_qp(l.qp, &a, IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC, &init),
		0);
	MUST_EQ(a.max_dest_rd_atomic, dev.max_qp_rd_atom);
	MUST_EQ(a.max_rd_atomic, dev.max_qp_init_rd_atom);
	/*
	 * More than may be under way. An atomic is executed in its turn and once; a READ sees
	 * earlier ones, and may see later ones, as none of them waits for it without a fence.
	 */
	for (uint32_t i = 0; i < n; i++) {
		sge = (struct ibv_sge){ (uintptr_t)l.buf + 8 * i, 8, l.mr->lkey };
		wr = loop_send(&l, i % 2 ? IBV_WR_RDMA_READ : IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 1);
		if (!(i % 2)) {
			wr.wr.atomic.remote_addr = (uintptr_t)l.buf + BUF_BYTES;
			wr.wr.atomic.compare_add = 1;
			wr.wr.atomic.rkey = l.mr->rkey;
		}
		wr.wr_id = i;
		MUST_EQ(ibv_post_send(l.qp, &wr, &bad), 0);
	}
	for (uint32_t i = 0; i < n; i++)
		MUST(loop_done(l.scq, i, 8));
	for (uint64_t i = 0; i < n; i++) {
		uint64_t got = ((uint64_t *)l.buf)[i];

		MUST(i % 2 ? got >= (i + 1) / 2 && got <= n / 2 : got == i / 2);
	}
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
	{ 0 },
};
