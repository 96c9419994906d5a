/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Posting and completions: every field of a completion, and what becomes of a list with a bad
 * request in it.
 */
#include <arpa/inet.h>

#include "contract.h"

static bool send_body(struct pair *p)
{
	struct ibv_sge sge[2] = { sge_of(p, 0, 100, 3000), sge_of(p, 0, 9000, 2001) };
	struct ibv_send_wr wr = { .wr_id = 0xabcdef0123456789,
				  .sg_list = sge,
				  .num_sge = 2,
				  .opcode = IBV_WR_SEND_WITH_IMM,
				  .send_flags = IBV_SEND_SIGNALED,
				  .imm_data = htonl(0x11223344) },
			   *bad;
	struct ibv_wc wc;

	for (int i = 0; i < BUF_BYTES; i++)
		p->buf[0][i] = (char)(i * 31 + i / 251);
	MUST_EQ(post_recv(p, 77, 500, 20000), 0);
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.wr_id, 77);
	MUST_EQ(wc.opcode, IBV_WC_RECV);
	MUST_EQ(wc.byte_len, 5001);
	MUST_EQ(wc.qp_num, p->qp[1]->qp_num);
	MUST_EQ(wc.wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV), IBV_WC_WITH_IMM);
	MUST_EQ(wc.imm_data, htonl(0x11223344));
	MUST_EQ(wc.vendor_err, 0);
	MUST_EQ(memcmp(p->buf[1] + 500, p->buf[0] + 100, 3000), 0);
	MUST_EQ(memcmp(p->buf[1] + 3500, p->buf[0] + 9000, 2001), 0);
	MUST_EQ(p->buf[1][499], 0);
	MUST_EQ(p->buf[1][5501], 0);
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.wr_id, (long long)0xabcdef0123456789);
	MUST_EQ(wc.opcode, IBV_WC_SEND);
	MUST_EQ(wc.qp_num, p->qp[0]->qp_num);
	MUST(cq_is_empty(p->cq[0]) && cq_is_empty(p->cq[1]));
	return true;
}

ON_PAIR(post_send__rc_completion, send_body)

ON_PAIR(post_send__rc_completion_on_srq, send_body, .srq = true)

static bool ud_body(struct pair *p)
{
	const struct ibv_ah_attr own = own_address();
	struct ibv_ah_attr attr = own;
	struct ibv_ah *ah = ibv_create_ah(p->pd, &attr), *back;
	struct ibv_sge sge = sge_of(p, 0, 0, 333);
	struct ibv_send_wr wr = { .wr_id = 5,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc;

	MUST(ah);
	memset(p->buf[0], 0x5a, 333);
	MUST_EQ(post_recv(p, 6, 0, 1000), 0);
	MUST_EQ(post_recv(p, 7, 2000, 1000), 0);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = p->qp[1]->qp_num;
	/* A wrong Q_Key is dropped; one with its top bit set is the QP's own. */
	wr.wr.ud.remote_qkey = UD_QKEY + 1;
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[0], &wc));
	wr.wr.ud.remote_qkey = 0x80000000;
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.wr_id, 6);
	MUST_EQ(wc.byte_len, 333 + 40);
	MUST_EQ(wc.src_qp, p->qp[0]->qp_num);
	MUST_EQ(wc.wc_flags & IBV_WC_GRH, IBV_WC_GRH);
	MUST_EQ(memcmp(p->buf[1] + 40, p->buf[0], 333), 0);
	MUST_EQ(p->buf[1][40 + 333], 0);

	/* The address of the sender is in the 40 bytes. */
	MUST_EQ(ibv_init_ah_from_wc(ctx, 1, &wc, (struct ibv_grh *)p->buf[1], &attr), 0);
	MUST_EQ(memcmp(&attr.grh.dgid, &own.grh.dgid, 16), 0);
	MUST_EQ(attr.grh.sgid_index, 0);
	MUST_EQ(attr.is_global, 1);
	MUST(back = ibv_create_ah_from_wc(p->pd, &wc, (struct ibv_grh *)p->buf[1], 1));
	wr.wr.ud.ah = back;
	wr.wr.ud.remote_qkey = UD_QKEY;
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.wr_id, 7);
	wr.wr.ud.ah = NULL;
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), EINVAL);
	wr.wr.ud.ah = ah;
	/* UD has no such request: it completes in error, and the send queue stops */
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.wr_id = 8;
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	do
		MUST(wait_wc(p->cq[0], &wc));
	while (wc.status == IBV_WC_SUCCESS);
	MUST_EQ(wc.status, IBV_WC_LOC_QP_OP_ERR);
	MUST_EQ(wc.wr_id, 8);
	MUST_EQ(ibv_destroy_ah(back), 0);
	MUST_EQ(ibv_destroy_ah(ah), 0);
	return true;
}

ON_PAIR(post_send__ud_completion, ud_body, .type = IBV_QPT_UD)

static bool remote_body(struct pair *p)
{
	struct ibv_sge sge = sge_of(p, 0, 0, 4000);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	uint64_t *word = (uint64_t *)p->buf[1];
	struct ibv_wc wc;

	memset(p->buf[0], 0x33, 4000);
	wr.wr.rdma.remote_addr = (uintptr_t)p->buf[1] + 64;
	wr.wr.rdma.rkey = p->mr[1]->rkey;
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.opcode, IBV_WC_RDMA_WRITE);
	MUST_EQ(memcmp(p->buf[1] + 64, p->buf[0], 4000), 0);
	MUST(p->buf[1][63] == 0 && p->buf[1][4064] == 0);

	memset(p->buf[1], 0x44, 8000);
	wr.opcode = IBV_WR_RDMA_READ;
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.opcode, IBV_WC_RDMA_READ);
	MUST_EQ(memcmp(p->buf[1] + 64, p->buf[0], 4000), 0);
	MUST_EQ(p->buf[0][4000], 0);

	*word = 1000;
	sge.length = 8;
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = (uintptr_t)word;
	wr.wr.atomic.rkey = p->mr[1]->rkey;
	wr.wr.atomic.compare_add = 5;
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.opcode, IBV_WC_FETCH_ADD);
	MUST_EQ(*(uint64_t *)p->buf[0], 1000);
	MUST_EQ(*word, 1005);
	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.wr.atomic.compare_add = 1005;
	wr.wr.atomic.swap = 9;
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.opcode, IBV_WC_COMP_SWAP);
	MUST_EQ(*(uint64_t *)p->buf[0], 1005);
	MUST_EQ(*word, 9);

	/* An address that is not a multiple of 8: the peer refuses it. */
	wr.wr.atomic.remote_addr += 4;
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_REM_INV_REQ_ERR);
	MUST_EQ(*word, 9);
	return true;
}

/* A length that is not 8 is refused here, in its turn. */
static bool atomic_length_body(struct pair *p)
{
	struct ibv_sge sge = sge_of(p, 0, 0, 4);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD },
			   *bad;
	struct ibv_wc wc;

	wr.wr.atomic.remote_addr = (uintptr_t)p->buf[1];
	wr.wr.atomic.rkey = p->mr[1]->rkey;
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_LOC_LEN_ERR);
	return true;
}

ON_PAIR(post_send__atomic_of_another_length, atomic_length_body)

ON_PAIR(post_send__write_read_atomics, remote_body)

static bool bad_list_body(struct pair *p)
{
	struct ibv_sge sge[3] = { sge_of(p, 0, 0, 10), sge_of(p, 0, 0, 10), sge_of(p, 0, 0, 10) };
	struct ibv_send_wr wr[3], *bad = NULL;
	struct ibv_recv_wr rr[3], *bad_rr = NULL;
	struct ibv_wc wc;

	for (int i = 0; i < 3; i++) {
		rr[i] = (struct ibv_recv_wr){ .wr_id = 10 + i,
					      .next = i < 2 ? &rr[i + 1] : NULL,
					      .sg_list = sge,
					      .num_sge = i == 1 ? 3 : 0 };
		wr[i] = (struct ibv_send_wr){ .wr_id = 20 + i,
					      .next = i < 2 ? &wr[i + 1] : NULL,
					      .sg_list = sge,
					      .num_sge = 0,
					      .opcode = IBV_WR_SEND,
					      .send_flags = IBV_SEND_SIGNALED };
	}
	MUST_EQ(ibv_post_recv(p->qp[1], rr, &bad_rr), EINVAL);
	MUST(bad_rr == &rr[1]);
	rr[1].num_sge = -1;
	MUST_EQ(ibv_post_recv(p->qp[1], &rr[1], &bad_rr), EINVAL);
	MUST(bad_rr == &rr[1]);

#define SECOND_IS_BAD(field, value, want)                             \
	do {                                                          \
		struct ibv_send_wr kept = wr[1];                      \
		wr[1].field = (value);                                \
		MUST_EQ(ibv_post_send(p->qp[0], &wr[1], &bad), want); \
		MUST(bad == &wr[1]);                                  \
		wr[1] = kept;                                         \
	} while (0)
	SECOND_IS_BAD(num_sge, 3, EINVAL);
	SECOND_IS_BAD(num_sge, -1, EINVAL);
	SECOND_IS_BAD(opcode, 12, EINVAL);
	SECOND_IS_BAD(opcode, 99, EINVAL);
	SECOND_IS_BAD(send_flags, 1 << 7, EINVAL);
	SECOND_IS_BAD(send_flags, 1 << 20, EINVAL);
	SECOND_IS_BAD(opcode, IBV_WR_BIND_MW, EINVAL); /* no window */
	SECOND_IS_BAD(opcode, 14, EINVAL);	       /* FLUSH is not in this header */
#undef SECOND_IS_BAD
	sge[0].length = 65;
	wr[1].num_sge = 1;
	wr[1].send_flags |= IBV_SEND_INLINE;
	MUST_EQ(ibv_post_send(p->qp[0], wr, &bad), ENOMEM); /* longer than max_inline_data */
	MUST(bad == &wr[1]);

	/* Of each list exactly the first was posted. */
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.wr_id, 20);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.wr_id, 10);
	MUST(cq_is_empty(p->cq[0]) && cq_is_empty(p->cq[1]));
	return true;
}

ON_PAIR(post__bad_request_in_a_list, bad_list_body)

static bool full_body(struct pair *p)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;
	struct ibv_wc wc;

	ibv_query_qp(p->qp[0], &a, IBV_QP_CAP, &init);
	/* Nothing is posted over there: the sends stay (RNR). */
	for (uint32_t i = 0; i < a.cap.max_send_wr; i++)
		MUST_EQ(post_send(p, i, 0, 10, IBV_SEND_SIGNALED), 0);
	MUST_EQ(post_send(p, 99, 0, 10, IBV_SEND_SIGNALED), ENOMEM);
	for (uint32_t i = 0; i < a.cap.max_send_wr; i++) {
		MUST_EQ(post_recv(p, i, 100 * i, 100), 0);
		MUST(wait_wc(p->cq[1], &wc));
		MUST_EQ(wc.wr_id, i);
		MUST(wait_wc(p->cq[0], &wc));
		MUST_EQ(wc.wr_id, i);
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
	}
	ibv_query_qp(p->qp[1], &a, IBV_QP_CAP, &init);
	for (uint32_t i = 0; i < a.cap.max_recv_wr; i++)
		MUST_EQ(post_recv(p, i, 0, 10), 0);
	MUST_EQ(post_recv(p, 99, 0, 10), ENOMEM);
	return true;
}

ON_PAIR(post__full_queues, full_body)

static bool states_body(struct pair *p)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	struct ibv_recv_wr rr = { .wr_id = 1 }, *bad_rr;
	struct ibv_qp_init_attr init;
	struct ibv_wc wc;

	/* In ERR both kinds are taken and flushed, in order. */
	MUST_EQ(post_recv(p, 31, 0, 10), 0);
	MUST_EQ(ibv_modify_qp(p->qp[1], &a, IBV_QP_STATE), 0);
	MUST_EQ(p->qp[1]->state, IBV_QPS_ERR);
	MUST_EQ(post_recv(p, 32, 0, 10), 0);
	for (int i = 31; i <= 32; i++) {
		MUST(wait_wc(p->cq[1], &wc));
		MUST_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
		MUST_EQ(wc.wr_id, i);
		MUST_EQ(wc.qp_num, p->qp[1]->qp_num);
	}
	MUST_EQ(ibv_modify_qp(p->qp[0], &a, IBV_QP_STATE), 0);
	MUST_EQ(post_send(p, 33, 0, 10, 0), 0); /* not signaled, but it failed */
	MUST_EQ(post_send(p, 34, 0, 10, 0), 0);
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.wr_id, 33);
	MUST_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
	/* RESET takes the other one away. */
	a.qp_state = IBV_QPS_RESET;
	MUST_EQ(ibv_modify_qp(p->qp[0], &a, IBV_QP_STATE), 0);
	MUST(cq_is_empty(p->cq[0]));
	MUST_EQ(post_send(p, 35, 0, 10, 0), EINVAL);
	MUST_EQ(ibv_post_recv(p->qp[0], &rr, &bad_rr), EINVAL);
	MUST(bad_rr == &rr);
	MUST_EQ(qp_to_init(p->qp[0]), 0);
	MUST_EQ(post_send(p, 36, 0, 10, 0), EINVAL);
	MUST_EQ(ibv_post_recv(p->qp[0], &rr, &bad_rr), 0);
	MUST_EQ(ibv_query_qp(p->qp[0], &a, IBV_QP_STATE, &init), 0);
	MUST_EQ(a.qp_state, IBV_QPS_INIT);
	MUST_EQ(qp_to_rtr(p->qp[0], p->qp[1]->qp_num), 0);
	MUST_EQ(post_send(p, 37, 0, 10, 0), EINVAL);
	return true;
}

ON_PAIR(post__states, states_body)

static bool srq_body(struct pair *p)
{
	struct ibv_recv_wr rr = { 0 }, *bad;

	MUST_EQ(ibv_post_recv(p->qp[1], &rr, &bad), EINVAL);
	for (int i = 0; i < QUEUE; i++)
		MUST_EQ(post_recv(p, (uint64_t)i, 0, 10), 0);
	MUST_EQ(post_recv(p, 99, 0, 10), ENOMEM);
	MUST_EQ(ibv_destroy_srq(p->srq), EBUSY);
	return true;
}

ON_PAIR(post__srq, srq_body, .srq = true)

static bool keys_body(struct pair *p)
{
	struct ibv_sge sge = sge_of(p, 0, 0, 100);
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE },
			   *bad;
	struct ibv_async_event event;
	struct ibv_wc wc;

	/* One byte past the region's end. */
	wr.wr.rdma.remote_addr = (uintptr_t)p->buf[1] + BUF_BYTES - 99;
	wr.wr.rdma.rkey = p->mr[1]->rkey;
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
	MUST_EQ(wc.wr_id, 1);
	MUST(wc.vendor_err != 0);
	for (int i = BUF_BYTES - 99; i < BUF_BYTES; i++)
		MUST_EQ(p->buf[1][i], 0);
	MUST_EQ(ibv_get_async_event(ctx, &event), 0);
	MUST_EQ(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
	MUST(event.element.qp == p->qp[1]);
	ibv_ack_async_event(&event);
	return true;
}

ON_PAIR(post_send__remote_key_bounds, keys_body)

static bool lkey_body(struct pair *p)
{
	struct ibv_wc wc;

	p->mr[0]->lkey ^= 1;
	MUST_EQ(post_send(p, 8, 0, 10, 0), 0);
	p->mr[0]->lkey ^= 1;
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_LOC_PROT_ERR);
	MUST_EQ(wc.wr_id, 8);
	return true;
}

ON_PAIR(post_send__local_key, lkey_body)

static bool inline_body(struct pair *p)
{
	/* keys are not looked at */
	struct ibv_sge sge[2] = { { (uintptr_t)p->buf[0], 20, 0 },
				  { (uintptr_t)p->buf[0] + 40, 44, 0 } };
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = sge,
				  .num_sge = 2,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_INLINE },
			   *bad;
	struct ibv_wc wc;

	memset(p->buf[0], 'i', 100);
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0); /* no receive is posted yet */
	memset(p->buf[0], 'x', 100);
	MUST_EQ(post_recv(p, 1, 0, 100), 0);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.byte_len, 64);
	for (int i = 0; i < 64; i++)
		MUST_EQ(p->buf[1][i], 'i');
	MUST_EQ(p->buf[1][64], 0);
	wr.opcode = IBV_WR_RDMA_READ;
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), EINVAL);
	/* Not signaled: no completion; the next signaled one comes alone. */
	MUST_EQ(post_recv(p, 2, 0, 100), 0);
	MUST_EQ(post_send(p, 2, 0, 10, IBV_SEND_SIGNALED), 0);
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.wr_id, 2);
	MUST(cq_is_empty(p->cq[0]));
	return true;
}

ON_PAIR(post_send__inline_is_copied, inline_body)

static bool rereg_body(struct pair *p)
{
	struct ibv_wc wc;
	char *fresh = calloc(1, BUF_BYTES);
	uint32_t lkey = p->mr[1]->lkey;

	MUST(fresh);
	MUST_EQ(ibv_rereg_mr(p->mr[1], IBV_REREG_MR_CHANGE_TRANSLATION, NULL, fresh, BUF_BYTES, 0),
		0);
	free(p->buf[1]);
	p->buf[1] = fresh;
	MUST(p->mr[1]->addr == fresh);
	MUST_EQ(p->mr[1]->lkey, lkey);
	memset(p->buf[0], 'r', 10);
	MUST_EQ(post_recv(p, 1, 0, 10), 0);
	MUST_EQ(post_send(p, 1, 0, 10, 0), 0);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(memcmp(fresh, "rrrrrrrrrr", 10), 0);
	return true;
}

ON_PAIR(rereg_mr__moves_the_region, rereg_body)

static bool wr_api_body(struct pair *p)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p->qp[0]);
	struct ibv_data_buf data[2] = { { p->buf[0], 5 }, { p->buf[0] + 10, 6 } };
	struct ibv_wc wc;

	MUST(ex);
	MUST(!ex->wr_bind_mw && !ex->wr_rdma_read);
	memset(p->buf[0], 'w', 100);
	MUST_EQ(post_recv(p, 1, 0, 100), 0);
	MUST_EQ(post_recv(p, 2, 200, 100), 0);
	/* A bad one among them: nothing is posted at all. */
	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, p->mr[0]->lkey, (uintptr_t)p->buf[0], 10);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, p->buf[0], 1000);
	MUST_EQ(ibv_wr_complete(ex), ENOMEM);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_abort(ex);
	MUST(cq_is_empty(p->cq[1]));

	ibv_wr_start(ex);
	ex->wr_id = 3;
	ibv_wr_send_imm(ex, htonl(9));
	ibv_wr_set_inline_data_list(ex, 2, data);
	ex->wr_id = 4;
	ibv_wr_rdma_write_imm(ex, p->mr[1]->rkey, (uintptr_t)p->buf[1] + 1000, htonl(10));
	ibv_wr_set_sge(ex, p->mr[0]->lkey, (uintptr_t)p->buf[0], 50);
	MUST_EQ(ibv_wr_complete(ex), 0);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.byte_len, 11);
	MUST_EQ(wc.imm_data, htonl(9));
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	MUST_EQ(wc.byte_len, 50);
	MUST_EQ(wc.wr_id, 2);
	MUST_EQ(p->buf[1][1049], 'w');
	MUST_EQ(p->buf[1][1050], 0);
	for (int i = 3; i <= 4; i++) {
		MUST(wait_wc(p->cq[0], &wc));
		MUST_EQ(wc.wr_id, i);
	}
	return true;
}

ON_PAIR(wr_post__builds_or_posts_nothing, wr_api_body,
	.ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
	       IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)

static bool cq_ex__reads_fields(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 10, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP
	};
	struct ibv_poll_cq_attr poll = { 0 };
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &attr);
	struct ibv_qp_init_attr init = { .send_cq = (struct ibv_cq *)cq,
					 .recv_cq = (struct ibv_cq *)cq,
					 .qp_type = IBV_QPT_RC,
					 .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_send_wr wr = { .wr_id = 50,
				  .opcode = IBV_WR_SEND_WITH_IMM,
				  .imm_data = htonl(4),
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_recv_wr rr = { .wr_id = 51 }, *bad_rr;
	bool seen[2] = { false, false };
	struct ibv_qp *qp;
	int err, n = 0;

	MUST(pd && cq && (qp = ibv_create_qp(pd, &init)));
	MUST(!cq->read_cvlan && !cq->read_tm_info);
	MUST_EQ(ibv_start_poll(cq, &poll), ENOENT);
	poll.comp_mask = 1;
	MUST_EQ(ibv_start_poll(cq, &poll), EINVAL);
	poll.comp_mask = 0;
	MUST_EQ(qp_to_init(qp), 0);
	MUST_EQ(qp_to_rts(qp, qp->qp_num, 7), 0); /* to itself */
	MUST_EQ(ibv_post_recv(qp, &rr, &bad_rr), 0);
	MUST_EQ(ibv_post_send(qp, &wr, &bad), 0);
	while (n < 2) {
		while ((err = ibv_start_poll(cq, &poll)) == ENOENT)
			;
		MUST_EQ(err, 0);
		do {
			bool recv = cq->wr_id == 51;

			n++;
			seen[recv] = true;
			MUST_EQ(cq->status, IBV_WC_SUCCESS);
			MUST_EQ(ibv_wc_read_opcode(cq), recv ? IBV_WC_RECV : IBV_WC_SEND);
			MUST_EQ(ibv_wc_read_qp_num(cq), qp->qp_num);
			MUST(ibv_wc_read_completion_ts(cq) != 0);
			if (recv) {
				MUST_EQ(ibv_wc_read_byte_len(cq), 0);
				MUST_EQ(ibv_wc_read_imm_data(cq), htonl(4));
				MUST_EQ(ibv_wc_read_wc_flags(cq) & IBV_WC_WITH_IMM,
					IBV_WC_WITH_IMM);
			}
		} while (!ibv_next_poll(cq));
		ibv_end_poll(cq);
	}
	MUST(n == 2 && seen[0] && seen[1]);
	MUST_EQ(ibv_start_poll(cq, &poll), ENOENT);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_destroy_cq((struct ibv_cq *)cq), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

const struct test_case traffic_cases[] = {
	CASE(post_send__rc_completion),
	CASE(post_send__rc_completion_on_srq),
	CASE(post_send__ud_completion),
	CASE(post_send__write_read_atomics),
	CASE(post_send__atomic_of_another_length),
	CASE(post_send__remote_key_bounds),
	CASE(post_send__local_key),
	CASE(post_send__inline_is_copied),
	CASE(post__bad_request_in_a_list),
	CASE(post__full_queues),
	CASE(post__states),
	CASE(post__srq),
	CASE(rereg_mr__moves_the_region),
	CASE(wr_post__builds_or_posts_nothing),
	CASE(cq_ex__reads_fields),
	{ 0 },
};
