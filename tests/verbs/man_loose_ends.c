/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san XROCE_CYCLES=1000 */
/*
 * Loose ends: entries of an extended CQ that overran, receives that reach beyond their region or
 * whose region is gone, address handles destroyed before their requests end, receives of one SRQ
 * that several QPs take for immediates. By ibv_create_cq_ex(3), ibv_post_recv(3), ibv_create_ah(3),
 * ibv_post_srq_recv(3).
 */
#include "man.h"

/* ---- an extended CQ that overruns ---- */

/* Entries that fit have all their fields, by start and next; then the CQ reports the error. */
static bool overrun_body(struct pair *p)
{
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_cq_ex *ex = (struct ibv_cq_ex *)p->cq[1];
	const int fits = p->cq[1]->cqe;
	struct ibv_wc wc;

	MUST(fits < QUEUE);
	for (int i = 0; i <= fits; i++)
		MUST_EQ(post_recv(p, (uint64_t)i, 0, 100), 0);
	for (int i = 0; i <= fits; i++)
		MUST_EQ(post_send(p, 1, 0, (uint32_t)(10 + i), IBV_SEND_SIGNALED), 0);
	/* the overrunning request may be answered or not; earlier ones are */
	for (int i = 0; i < fits; i++) {
		MUST(wait_wc(p->cq[0], &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
	}
	MUST(take_async(IBV_EVENT_CQ_ERR, p->cq[1]) && take_async(IBV_EVENT_QP_FATAL, p->qp[1]));
	MUST_EQ(ibv_start_poll(ex, &attr), 0);
	for (int i = 0; i < fits; i++) {
		MUST_EQ(ex->status, IBV_WC_SUCCESS);
		MUST_EQ(ex->wr_id, i);
		MUST_EQ(ibv_wc_read_byte_len(ex), 10 + i);
		MUST_EQ(ibv_wc_read_qp_num(ex), p->qp[1]->qp_num);
		MUST_EQ(ibv_next_poll(ex), i < fits - 1 ? 0 : ENOENT);
	}
	ibv_end_poll(ex);
	MUST_EQ(ibv_start_poll(ex, &attr), EIO);
	MUST_EQ(qp_state_now(p->qp[1]), IBV_QPS_ERR);
	return true;
}

static bool an_extended_cq_overruns(void)
{
	struct ibv_cq_init_attr_ex ex = { .cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct pair p;

	IN_PAIR(&p, OPTIONS(.ex = &ex), overrun_body);
}

/* ---- receives and their regions ---- */

#define UD_GRH 40u

static int post_receive(struct pair *p, struct ibv_sge *sges, int n)
{
	struct ibv_recv_wr rr = { .wr_id = 9, .sg_list = sges, .num_sge = n }, *bad;

	return p->srq ? ibv_post_srq_recv(p->srq, &rr, &bad) : ibv_post_recv(p->qp[1], &rr, &bad);
}

/* Sends a message of `bytes` bytes; wc[i] is end i's completion. */
static bool exchange(struct pair *p, uint32_t bytes, struct ibv_wc wc[2])
{
	struct ibv_sge sge = sge_of(p, 0, 0, bytes);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_ah_attr own = own_address();
	struct ibv_ah *ah = NULL;

	if (p->qp[0]->qp_type == IBV_QPT_UD) {
		MUST(ah = ibv_create_ah(p->pd, &own));
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = p->qp[1]->qp_num;
		wr.wr.ud.remote_qkey = UD_QKEY;
	}
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[0], &wc[0]) && wait_wc(p->cq[1], &wc[1]));
	MUST_EQ(wc[1].wr_id, 9);
	return !ah || !ibv_destroy_ah(ah);
}

/* The receive fails, and an RC sender learns of it. */
static bool receive_fails(struct pair *p, const struct ibv_wc wc[2])
{
	const bool is_rc = p->qp[0]->qp_type == IBV_QPT_RC;

	MUST_EQ(wc[1].status, IBV_WC_LOC_PROT_ERR);
	MUST_EQ(wc[0].status, is_rc ? IBV_WC_REM_OP_ERR : IBV_WC_SUCCESS);
	MUST_EQ(qp_state_now(p->qp[1]), IBV_QPS_ERR);
	return !p->srq || take_async(IBV_EVENT_QP_LAST_WQE_REACHED, p->qp[1]);
}

/*
 * An element that is longer than its region, and one whose key is none: messages that do not get so
 * far are received, the first that does is not.
 */
static bool beyond_body(struct pair *p)
{
	const uint32_t head = p->qp[0]->qp_type == IBV_QPT_UD ? UD_GRH : 0;
	struct ibv_sge list[2] = { sge_of(p, 1, BUF_BYTES - 100 - head, 200 + head),
				   { (uintptr_t)p->buf[1], 100, ~p->mr[1]->lkey } };
	struct ibv_wc wc[2];

	memset(p->buf[0], 'x', 300);
	MUST_EQ(post_receive(p, list, 1), 0);
	MUST(exchange(p, 100, wc));
	MUST(wc[0].status == IBV_WC_SUCCESS && wc[1].status == IBV_WC_SUCCESS);
	MUST_EQ(wc[1].byte_len, 100 + head);
	list[0].length = 100 + head;
	MUST_EQ(post_receive(p, list, 2), 0);
	MUST(exchange(p, 100, wc));
	MUST(wc[0].status == IBV_WC_SUCCESS && wc[1].status == IBV_WC_SUCCESS);
	MUST_EQ(post_receive(p, list, 2), 0);
	MUST(exchange(p, 101, wc));
	MUST(receive_fails(p, wc));
	MUST_EQ(p->buf[1][0], 0);
	return true;
}

/* ibv_dereg_mr(3) while receives wait for messages: they end like receives with a bad key. */
static bool gone_body(struct pair *p)
{
	char *const mem = calloc(1, 4096);
	struct ibv_mr *mr = ibv_reg_mr(p->pd, mem, 4096, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = { (uintptr_t)mem, 4096, mr->lkey };
	struct ibv_wc wc[2];

	memset(p->buf[0], 'x', 300);
	MUST_EQ(post_receive(p, &sge, 1), 0);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	MUST(exchange(p, 300, wc));
	MUST(receive_fails(p, wc));
	for (int i = 0; i < 4096; i++)
		MUST_EQ(mem[i], 0);
	free(mem);
	return true;
}

static bool each_receiver(bool (*body)(struct pair *p))
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };

	for (int i = 0; i < 6; i++) {
		struct pair p;
		bool good = pair_open(&p, OPTIONS(.type = types[i % 3], .srq = i >= 3)) && body(&p);

		if (!good)
			printf("# QP type %d, SRQ %d\n", types[i % 3], i >= 3);
		MUST(pair_close(&p) && good);
	}
	return true;
}

static bool receives_beyond_their_region(void)
{
	return each_receiver(beyond_body);
}

static bool receives_whose_region_has_gone(void)
{
	return each_receiver(gone_body);
}

/* ---- address handles ---- */

/* A request has what the handle said when it was posted: datagrams with a traffic class each. */
static bool handles_body(struct pair *p)
{
	enum { TIMES = 20 };
	struct ibv_sge sge = sge_of(p, 0, 0, 64);
	struct ibv_ah_attr to = own_address();
	struct ibv_wc wc;

	for (int round = 0; round < TIMES; round++) {
		for (int i = 0; i < QUEUE; i++)
			MUST_EQ(post_recv(p, (uint64_t)i, (uint32_t)i * 256, 256), 0);
		for (int i = 0; i < QUEUE; i++) {
			struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1,
						  .opcode = IBV_WR_SEND,
						  .send_flags = IBV_SEND_SIGNALED },
					   *bad;

			to.grh.traffic_class = (uint8_t)(4 * (round * QUEUE + i));
			MUST(wr.wr.ud.ah = ibv_create_ah(p->pd, &to));
			wr.wr.ud.remote_qpn = p->qp[1]->qp_num;
			wr.wr.ud.remote_qkey = UD_QKEY;
			MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
			MUST_EQ(ibv_destroy_ah(wr.wr.ud.ah), 0);
		}
		for (int i = 0; i < QUEUE; i++) {
			MUST(wait_wc(p->cq[1], &wc));
			MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id == (uint64_t)i);
			/* RoCEv2's IPv4 header is in the GRH's last 20 bytes */
			MUST_EQ((uint8_t)p->buf[1][i * 256 + 20 + 1],
				(uint8_t)(4 * (round * QUEUE + i)));
			MUST(wait_wc(p->cq[0], &wc));
			MUST_EQ(wc.status, IBV_WC_SUCCESS);
		}
	}
	return true;
}

ON_PAIR(handles_go_behind_their_requests, handles_body, .type = IBV_QPT_UD)

/* ---- immediates of several QPs to one SRQ ---- */

/*
 * A WRITE with immediate takes one receive of the SRQ and none of its memory, of whichever QP; the
 * limit event comes when QPS receives are left.
 */
static bool immediates_of_several(void)
{
	enum { QPS = 4, EACH = 3 };
	struct ibv_srq_init_attr init = { .attr = { .max_wr = QPS * EACH, .max_sge = 1 } };
	struct ibv_srq_attr limit = { .srq_limit = QPS };
	unsigned int taken[QPS] = { 0 };
	uint64_t seen = 0;
	struct ibv_qp *qp[QPS];
	struct ibv_cq *send, *recv;
	struct ibv_srq *srq;
	struct ibv_wc wc;
	struct pair p;

	MUST(pair_open(&p, OPTIONS(0)));
	MUST(send = ibv_create_cq(ctx, QPS * EACH, NULL, NULL, 0));
	MUST(recv = ibv_create_cq(ctx, QPS * EACH, NULL, NULL, 0));
	MUST(srq = ibv_create_srq(p.pd, &init));
	for (int i = 0; i < QPS; i++)
		MUST(qp[i] = qp_to_itself(p.pd, send, recv, srq));
	for (int i = 0; i < QPS * EACH; i++) {
		struct ibv_sge sge = sge_of(&p, 0, 0, 64); /* is not written */
		struct ibv_recv_wr rr = { .wr_id = (uint64_t)i, .sg_list = &sge, .num_sge = 1 },
				   *bad;

		MUST_EQ(ibv_post_srq_recv(srq, &rr, &bad), 0);
	}
	MUST_EQ(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
	memset(p.buf[0] + 64, 'w', QPS * EACH * 64);
	for (uint32_t i = 0; i < QPS * EACH; i++) {
		struct ibv_sge sge = sge_of(&p, 0, 64 + 64 * i, 1 + i);
		struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .imm_data = i,
					  .opcode = IBV_WR_RDMA_WRITE_WITH_IMM },
				   *bad;

		wr.wr.rdma.remote_addr = (uintptr_t)p.buf[1] + 64 * i;
		wr.wr.rdma.rkey = p.mr[1]->rkey;
		MUST_EQ(ibv_post_send(qp[i % QPS], &wr, &bad), 0);
	}
	for (int i = 0; i < QPS * EACH; i++) {
		MUST(wait_wc(recv, &wc));
		MUST(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM);
		MUST(wc.imm_data < QPS * EACH && wc.wr_id < QPS * EACH);
		MUST_EQ(wc.byte_len, 1 + wc.imm_data);
		MUST_EQ(wc.qp_num, qp[wc.imm_data % QPS]->qp_num);
		MUST_EQ(wc.imm_data / QPS, taken[wc.imm_data % QPS]++); /* in order */
		MUST(!(seen & 1ull << wc.wr_id));
		seen |= 1ull << wc.wr_id;
		for (uint32_t b = 0; b < 64; b++)
			MUST_EQ(p.buf[1][64 * wc.imm_data + b], b < wc.byte_len ? 'w' : 0);
	}
	MUST(take_async(IBV_EVENT_SRQ_LIMIT_REACHED, srq));
	for (int i = 0; i < 64; i++)
		MUST_EQ(p.buf[0][i], 0);
	MUST(cq_is_empty(recv) && cq_is_empty(send)); /* the WRITEs were unsignaled */
	for (int i = 0; i < QPS; i++)
		MUST_EQ(ibv_destroy_qp(qp[i]), 0);
	MUST_EQ(ibv_destroy_srq(srq) | ibv_destroy_cq(send) | ibv_destroy_cq(recv), 0);
	return pair_close(&p);
}

const struct test_case man_cases[] = {
	CASE(an_extended_cq_overruns),
	CASE(receives_beyond_their_region),
	CASE(receives_whose_region_has_gone),
	CASE(handles_go_behind_their_requests),
	CASE(immediates_of_several),
	{ 0 },
};
