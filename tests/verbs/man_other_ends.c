/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san XROCE_CYCLES=1000 */
/*
 * The other end of a request: a QP in each of its states, one of another service, a missing one;
 * and the fields of address handles. Unanswered RC requests end in RETRY_EXC_ERR, datagrams are
 * lost silently (IBTA 9.7, 9.8).
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "man.h"

#define ALL_ACCESS                                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC)

static struct {
	struct ibv_pd *pd;
	struct ibv_cq *cq[2];
	struct ibv_mr *mr;
	uint8_t *buf;
} w;

static bool world_open(void)
{
	MUST(w.pd = ibv_alloc_pd(ctx));
	for (int i = 0; i < 2; i++)
		MUST(w.cq[i] = ibv_create_cq(ctx, 64, NULL, NULL, 0));
	MUST(w.buf = calloc(1, BUF_BYTES));
	MUST(w.mr = ibv_reg_mr(w.pd, w.buf, BUF_BYTES, ALL_ACCESS));
	return true;
}

static bool world_close(void)
{
	MUST_EQ(ibv_dereg_mr(w.mr), 0);
	MUST_EQ(ibv_destroy_cq(w.cq[0]), 0);
	MUST_EQ(ibv_destroy_cq(w.cq[1]), 0);
	MUST_EQ(ibv_dealloc_pd(w.pd), 0);
	free(w.buf);
	return true;
}

static struct ibv_qp *new_qp(int end, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr a = { .send_cq = w.cq[end],
				      .recv_cq = w.cq[end],
				      .qp_type = type,
				      .cap = { QUEUE, QUEUE, 1, 1, 0 },
				      .sq_sig_all = 1 };

	return ibv_create_qp(w.pd, &a);
}

/* Its retries end after about a millisecond. */
static bool impatient(struct ibv_qp *qp, uint32_t dest_qpn)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS,
				 .sq_psn = 7,
				 .max_rd_atomic = 4,
				 .timeout = 7,
				 .retry_cnt = 1,
				 .rnr_retry = 1 };

	MUST_EQ(qp_to_init(qp), 0);
	MUST_EQ(qp_to_rtr(qp, dest_qpn), 0);
	MUST_EQ(ibv_modify_qp(qp, &a,
			      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
		0);
	return true;
}

static int bring(struct ibv_qp *qp, enum ibv_qp_state state, uint32_t dest_qpn)
{
	if (state == IBV_QPS_RESET)
		return 0;
	if (qp_to_init(qp))
		return -1;
	if (state == IBV_QPS_INIT)
		return 0;
	if (state == IBV_QPS_RTR)
		return qp_to_rtr(qp, dest_qpn);
	if (qp_to_rts(qp, dest_qpn, 7))
		return -1;
	return state == IBV_QPS_RTS ? 0 : qp_to_state(qp, state);
}

static struct ibv_send_wr request(enum ibv_wr_opcode opcode, struct ibv_sge *sge)
{
	struct ibv_send_wr wr = { .wr_id = 5, .opcode = opcode, .sg_list = sge, .num_sge = 1 };

	*sge = (struct ibv_sge){ (uintptr_t)w.buf, 8, w.mr->lkey };
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = (uintptr_t)w.buf + 4096;
		wr.wr.atomic.rkey = w.mr->rkey;
		wr.wr.atomic.swap = 9;
		wr.wr.atomic.compare_add = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 9 : 0;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)w.buf + 4096;
		wr.wr.rdma.rkey = w.mr->rkey;
	}
	return wr;
}

static bool post_receive(struct ibv_qp *qp)
{
	struct ibv_sge sge = { (uintptr_t)w.buf + 8192, 2048, w.mr->lkey };
	struct ibv_recv_wr rr = { .wr_id = 6, .sg_list = &sge, .num_sge = 1 }, *bad;

	MUST_EQ(ibv_post_recv(qp, &rr, &bad), 0);
	return true;
}

static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
					      IBV_WR_ATOMIC_FETCH_AND_ADD,
					      IBV_WR_ATOMIC_CMP_AND_SWP };

static bool meets(enum ibv_wr_opcode opcode, enum ibv_qp_state state)
{
	struct ibv_qp *from = new_qp(0, IBV_QPT_RC), *to = new_qp(1, IBV_QPT_RC);
	/* a QP's send queue does not affect its requesters */
	const bool answers = state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD;
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	struct ibv_wc wc;

	MUST(from && to);
	MUST(impatient(from, to->qp_num));
	MUST_EQ(bring(to, state, from->qp_num), 0);
	if (state != IBV_QPS_RESET)
		MUST(post_receive(to));
	memset(w.buf, 0, 16384);
	w.buf[0] = opcode == IBV_WR_RDMA_READ ? 0 : 9;
	w.buf[4096] = opcode == IBV_WR_RDMA_READ ? 9 : 0;
	wr = request(opcode, &sge);
	MUST_EQ(ibv_post_send(from, &wr, &bad), 0);
	MUST(wait_wc(w.cq[0], &wc));
	MUST_EQ(wc.wr_id, 5);
	MUST_EQ(wc.status, answers ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR);
	MUST_EQ(qp_state_now(from), answers ? IBV_QPS_RTS : IBV_QPS_ERR);
	MUST_EQ(qp_state_now(to), state);
	if (answers && opcode == IBV_WR_SEND) {
		MUST(wait_wc(w.cq[1], &wc));
		MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id == 6 && w.buf[8192] == 9);
	} else if (opcode == IBV_WR_RDMA_READ) {
		MUST_EQ(w.buf[0], answers ? 9 : 0);
	} else if (opcode != IBV_WR_SEND) {
		MUST_EQ(w.buf[4096], answers ? 9 : 0);
	}
	MUST(answers || w.buf[8192] == 0);
	MUST_EQ(ibv_destroy_qp(from), 0);
	MUST_EQ(ibv_destroy_qp(to), 0);
	MUST(no_async_event());
	return true;
}

static bool each_state_of_the_other_end(void)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
						    IBV_QPS_RTS,   IBV_QPS_SQD,	 IBV_QPS_ERR };

	MUST(world_open());
	for (unsigned int s = 0; s < sizeof(states) / sizeof(*states); s++)
		for (unsigned int i = 0; i < sizeof(opcodes) / sizeof(*opcodes); i++)
			MUST(meets(opcodes[i], states[s]));
	return world_close();
}

/* ---- another service ---- */

static bool rc_to_another_service(void)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_UD, IBV_QPT_UC };
	struct ibv_send_wr wr, *bad;
	struct ibv_qp *from, *to;
	struct ibv_sge sge;
	struct ibv_wc wc;

	MUST(world_open());
	for (int t = 0; t < 2; t++) {
		for (unsigned int i = 0; i < sizeof(opcodes) / sizeof(*opcodes); i++) {
			MUST((from = new_qp(0, IBV_QPT_RC)) && (to = new_qp(1, types[t])));
			MUST(impatient(from, to->qp_num));
			MUST_EQ(bring(to, IBV_QPS_RTS, from->qp_num), 0);
			MUST(post_receive(to));
			wr = request(opcodes[i], &sge);
			MUST_EQ(ibv_post_send(from, &wr, &bad), 0);
			MUST(wait_wc(w.cq[0], &wc));
			MUST_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
			MUST(cq_is_empty(w.cq[1]));
			MUST_EQ(qp_state_now(to), IBV_QPS_RTS);
			MUST_EQ(ibv_destroy_qp(from), 0);
			MUST_EQ(ibv_destroy_qp(to), 0);
		}
	}
	return world_close();
}

/* ---- datagrams ---- */

struct datagrams {
	struct ibv_qp *from, *to;
	struct ibv_ah *ah;
};

static bool datagrams_open(struct datagrams *d)
{
	struct ibv_ah_attr self = own_address();

	MUST(world_open());
	MUST((d->from = new_qp(0, IBV_QPT_UD)) && (d->to = new_qp(1, IBV_QPT_UD)));
	MUST(!bring(d->from, IBV_QPS_RTS, 0) && !bring(d->to, IBV_QPS_RTS, 0));
	MUST(d->ah = ibv_create_ah(w.pd, &self));
	return true;
}

static bool datagrams_close(struct datagrams *d)
{
	MUST_EQ(ibv_destroy_ah(d->ah), 0);
	MUST_EQ(ibv_destroy_qp(d->from), 0);
	MUST_EQ(ibv_destroy_qp(d->to), 0);
	return world_close();
}

static bool datagram(struct ibv_qp *from, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	struct ibv_wc wc;

	wr = request(IBV_WR_SEND, &sge);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = qkey;
	MUST_EQ(ibv_post_send(from, &wr, &bad), 0);
	MUST(wait_wc(w.cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	return true;
}

/* An unreceived datagram is lost, without a report to its sender; the next one arrives. */
static bool datagrams_that_nobody_takes(void)
{
	struct ibv_qp *rc, *reset;
	struct datagrams d;
	struct ibv_wc wc;

	MUST(datagrams_open(&d));
	MUST((rc = new_qp(1, IBV_QPT_RC)) && (reset = new_qp(1, IBV_QPT_UD)));
	MUST_EQ(bring(rc, IBV_QPS_RTS, rc->qp_num), 0);
	MUST(post_receive(rc) && post_receive(d.to));
	MUST(datagram(d.from, d.ah, 0xdeadbe, UD_QKEY));
	MUST(datagram(d.from, d.ah, d.to->qp_num, UD_QKEY + 1));
	MUST(datagram(d.from, d.ah, rc->qp_num, UD_QKEY));
	MUST(datagram(d.from, d.ah, reset->qp_num, UD_QKEY));
	MUST(datagram(d.from, d.ah, d.to->qp_num, UD_QKEY));
	MUST(wait_wc(w.cq[1], &wc));
	MUST(wc.status == IBV_WC_SUCCESS && wc.qp_num == d.to->qp_num);
	MUST_EQ(wc.byte_len, 48);
	MUST(cq_is_empty(w.cq[1]));
	MUST_EQ(qp_state_now(rc), IBV_QPS_RTS);
	MUST_EQ(qp_state_now(d.from), IBV_QPS_RTS);
	MUST_EQ(ibv_destroy_qp(rc), 0);
	MUST_EQ(ibv_destroy_qp(reset), 0);
	return datagrams_close(&d);
}

/* An address handle of another domain than the QP's is good, as with mlx5 (docs/verbs.md). */
static bool handle_of_another_domain(void)
{
	struct ibv_ah_attr self = own_address();
	struct ibv_pd *other;
	struct datagrams d;
	struct ibv_ah *ah;
	struct ibv_wc wc;

	MUST(datagrams_open(&d));
	MUST(other = ibv_alloc_pd(ctx));
	MUST(ah = ibv_create_ah(other, &self));
	MUST(post_receive(d.to));
	MUST(datagram(d.from, ah, d.to->qp_num, UD_QKEY));
	MUST(wait_wc(w.cq[1], &wc));
	MUST(wc.status == IBV_WC_SUCCESS && wc.qp_num == d.to->qp_num);
	MUST_EQ(ibv_destroy_ah(ah), 0);
	MUST_EQ(ibv_dealloc_pd(other), 0);
	return datagrams_close(&d);
}

/* The receiver finds the handle's fields in front of the datagram. */
static bool headers_of_a_datagram(void)
{
	struct ibv_ah_attr self = own_address();
	const uint8_t *grh = NULL;
	union ibv_gid gid;
	struct datagrams d;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	bool v4;

	MUST(datagrams_open(&d));
	for (int i = 0; i < 2; i++) {
		MUST_EQ(ibv_query_gid(ctx, 1, i, &gid), 0);
		v4 = gid.raw[10] == 0xff && gid.raw[11] == 0xff && !gid.raw[0];
		self.grh.dgid = gid;
		self.grh.sgid_index = (uint8_t)i;
		self.grh.traffic_class = 0xb8;
		self.grh.flow_label = 0xabcde;
		self.grh.hop_limit = 33;
		MUST(ah = ibv_create_ah(w.pd, &self));
		MUST(post_receive(d.to));
		MUST(datagram(d.from, ah, d.to->qp_num, UD_QKEY));
		MUST(wait_wc(w.cq[1], &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST(wc.wc_flags & IBV_WC_GRH);
		grh = w.buf + 8192;
		if (v4) {
			MUST_EQ(grh[20], 0x45);
			MUST_EQ(grh[21] & 0xfc, 0xb8); /* the others are ECN's */
			MUST_EQ(grh[28], 33);
			MUST_EQ(memcmp(grh + 32, gid.raw + 12, 4), 0);
			MUST_EQ(memcmp(grh + 36, gid.raw + 12, 4), 0);
		} else {
			MUST_EQ(grh[0], 0x6b);
			MUST_EQ(grh[1] & 0xcf, 0x8a);
			MUST_EQ(grh[2], 0xbc);
			MUST_EQ(grh[3], 0xde);
			MUST_EQ(grh[7], 33);
			MUST_EQ(memcmp(grh + 8, gid.raw, 16), 0);
			MUST_EQ(memcmp(grh + 24, gid.raw, 16), 0);
		}
		MUST_EQ(ibv_destroy_ah(ah), 0);
	}
	return datagrams_close(&d);
}

/* ---- memory in huge pages ---- */

static bool huge_pages(void)
{
	const size_t bytes = 4u << 20;
	uint8_t *mem[2];
	struct ibv_mr *mr[2];
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	struct ibv_qp *qp;
	struct ibv_wc wc;

	MUST(world_open());
	MUST(qp = qp_to_itself(w.pd, w.cq[0], w.cq[1], NULL));
	for (int i = 0; i < 2; i++) {
		mem[i] = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
		if (mem[i] == MAP_FAILED) { /* none are set aside: transparent ones, if any */
			mem[i] = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			MUST(mem[i] != MAP_FAILED);
			madvise(mem[i], bytes, MADV_HUGEPAGE);
		}
		for (size_t k = 0; k < bytes; k++)
			mem[i][k] = i ? 0 : (uint8_t)(k * 13 + (k >> 12));
		MUST(mr[i] = ibv_reg_mr(w.pd, mem[i], bytes, ALL_ACCESS | IBV_ACCESS_HUGETLB));
	}
	wr = request(IBV_WR_RDMA_WRITE, &sge);
	wr.send_flags = IBV_SEND_SIGNALED;
	sge = (struct ibv_sge){ (uintptr_t)mem[0], (uint32_t)bytes, mr[0]->lkey };
	wr.wr.rdma.remote_addr = (uintptr_t)mem[1];
	wr.wr.rdma.rkey = mr[1]->rkey;
	MUST_EQ(ibv_post_send(qp, &wr, &bad), 0);
	MUST(wait_wc(w.cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(memcmp(mem[0], mem[1], bytes), 0);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	for (int i = 0; i < 2; i++) {
		MUST_EQ(ibv_dereg_mr(mr[i]), 0);
		MUST_EQ(munmap(mem[i], bytes), 0);
	}
	return world_close();
}

const struct test_case man_cases[] = {
	CASE(each_state_of_the_other_end),
	CASE(rc_to_another_service),
	CASE(datagrams_that_nobody_takes),
	CASE(handle_of_another_domain),
	CASE(headers_of_a_datagram),
	CASE(huge_pages),
	{ 0 },
};
