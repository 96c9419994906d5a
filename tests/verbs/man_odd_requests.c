/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san XROCE_CYCLES=1000 */
/* tier: long tsan */
/*
 * What a program may ask, and seldom does: lists that never end, queues of no size, a state that
 * changes while another thread posts, answers in pieces, windows of no length. By ibv_post_send(3),
 * ibv_post_recv(3), ibv_create_qp(3), ibv_modify_qp(3), and IBTA where they say nothing.
 */
#include <sched.h>

#include "man.h"

/* "*bad_wr will be set to point to the request that failed"; earlier ones are posted. */
static bool lists_without_an_end(void)
{
	struct ibv_send_wr wr[2] = { { .wr_id = 1 }, { .wr_id = 2 } }, *bad;
	struct ibv_recv_wr rr[2] = { { .wr_id = 1 }, { .wr_id = 2 } }, *bad_rr;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;
	struct ibv_wc wc;
	struct pair p;
	int posted;

	for (int srq = 0; srq < 2; srq++) {
		MUST(pair_open(&p, (struct pair_options){ .srq = srq }));
		rr[0].next = &rr[1];
		rr[1].next = &rr[0];
		bad_rr = NULL;
		MUST_EQ(srq ? ibv_post_srq_recv(p.srq, rr, &bad_rr) :
			      ibv_post_recv(p.qp[1], rr, &bad_rr),
			ENOMEM);
		MUST(bad_rr == &rr[0] || bad_rr == &rr[1]);
		MUST_EQ(ibv_query_qp(p.qp[0], &a, IBV_QP_CAP, &init), 0);
		wr[0].opcode = wr[1].opcode = IBV_WR_RDMA_WRITE;
		wr[0].send_flags = wr[1].send_flags = IBV_SEND_SIGNALED;
		wr[0].next = &wr[1];
		wr[1].next = &wr[0];
		bad = NULL;
		MUST_EQ(ibv_post_send(p.qp[0], wr, &bad), ENOMEM);
		MUST(bad == &wr[0] || bad == &wr[1]);
		for (posted = 0; posted < (int)a.cap.max_send_wr; posted++) {
			MUST(wait_wc(p.cq[0], &wc));
			MUST_EQ(wc.status, IBV_WC_SUCCESS);
			MUST_EQ(wc.wr_id, 1 + posted % 2);
		}
		MUST(bad == &wr[posted % 2] && cq_is_empty(p.cq[0]));
		MUST(pair_close(&p));
	}
	return true;
}

/* A QP may have no send queue, or no receive queue: it takes nothing there, and works. */
static bool queues_of_no_size(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_recv_wr rr = { .wr_id = 3 }, *bad_rr;
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC };
	struct ibv_qp_attr a;
	struct ibv_qp *from, *to;
	struct ibv_wc wc;
	int seen = 0;

	MUST(pd && cq);
	init.cap = (struct ibv_qp_cap){ .max_send_wr = 1 };
	MUST(from = ibv_create_qp(pd, &init));
	init.cap = (struct ibv_qp_cap){ .max_recv_wr = 1 };
	MUST(to = ibv_create_qp(pd, &init));
	MUST(!qp_to_init(from) && !qp_to_init(to));
	MUST(!qp_to_rts(from, to->qp_num, 7) && !qp_to_rts(to, from->qp_num, 7));
	/* exactly as many as the queue's reported size */
	MUST_EQ(ibv_query_qp(to, &a, IBV_QP_CAP, &init), 0);
	for (uint32_t i = 0; i <= a.cap.max_send_wr; i++) {
		bad = NULL;
		MUST_EQ(ibv_post_send(to, &wr, &bad), i < a.cap.max_send_wr ? 0 : ENOMEM);
		MUST(i < a.cap.max_send_wr || bad == &wr);
	}
	MUST_EQ(a.cap.max_send_wr, 0);
	MUST_EQ(ibv_query_qp(from, &a, IBV_QP_CAP, &init), 0);
	MUST_EQ(a.cap.max_recv_wr, 0);
	bad_rr = NULL;
	MUST_EQ(ibv_post_recv(from, &rr, &bad_rr), ENOMEM);
	MUST(bad_rr == &rr);
	MUST_EQ(ibv_post_recv(to, &rr, &bad_rr), 0);
	MUST_EQ(ibv_post_send(from, &wr, &bad), 0);
	for (int i = 0; i < 2; i++) {
		MUST(wait_wc(cq, &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		seen |= wc.qp_num == to->qp_num ? 2 : 1;
	}
	MUST_EQ(seen, 3);
	MUST_EQ(ibv_destroy_qp(from), 0);
	MUST_EQ(ibv_destroy_qp(to), 0);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

/* ---- to ERR while another thread posts ---- */

#define BATCH 4u

struct poster {
	struct pair *p;
	atomic_bool stop;
	atomic_uint done;		/* completions */
	bool good;
};

/* Lists of READs: each request completes once, in order; after the first flush all are flushed. */
static bool post_until_told(struct poster *t)
{
	struct ibv_send_wr wr[BATCH], *bad;
	uint64_t posted = 0, done = 0;
	bool flushed = false, stop;
	struct ibv_sge sge;
	struct ibv_wc wc;

	do {
		stop = atomic_load(&t->stop);
		for (unsigned int i = 0; i < BATCH; i++) {
			sge = sge_of(t->p, 0, 0, 64);
			wr[i] = (struct ibv_send_wr){ .wr_id = posted + i,
						      .next = i + 1 < BATCH ? &wr[i + 1] : NULL,
						      .opcode = IBV_WR_RDMA_READ,
						      .sg_list = &sge,
						      .num_sge = 1,
						      .send_flags = IBV_SEND_SIGNALED };
			wr[i].wr.rdma.remote_addr = (uintptr_t)t->p->buf[1];
			wr[i].wr.rdma.rkey = t->p->mr[1]->rkey;
		}
		MUST_EQ(ibv_post_send(t->p->qp[0], wr, &bad), 0);
		posted += BATCH;
		while (done < posted) {
			MUST(wait_wc(t->p->cq[0], &wc));
			MUST_EQ(wc.wr_id, done);
			if (flushed || stop)
				MUST_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
			else
				MUST(wc.status == IBV_WC_SUCCESS ||
				     wc.status == IBV_WC_WR_FLUSH_ERR);
			flushed = wc.status != IBV_WC_SUCCESS;
			done++;
			atomic_fetch_add(&t->done, 1);
		}
	} while (!stop);
	MUST(cq_is_empty(t->p->cq[0]));
	return true;
}

static void *poster_main(void *arg)
{
	struct poster *t = arg;

	t->good = post_until_told(t);
	if (!t->good)
		atomic_store(&t->done, 1u << 30);
	return NULL;
}

static bool error_while_a_thread_posts(void)
{
	for (unsigned int round = 0; round < 50; round++) {
		struct poster t = { 0 };
		struct pair p;
		pthread_t id;

		MUST(pair_open(&p, (struct pair_options){ 0 }));
		t.p = &p;
		MUST_EQ(pthread_create(&id, NULL, poster_main, &t), 0);
		while (atomic_load(&t.done) < 1 + round * 3)
			sched_yield();
		MUST_EQ(qp_to_state(p.qp[0], IBV_QPS_ERR), 0);
		atomic_store(&t.stop, true);
		MUST_EQ(pthread_join(id, NULL), 0);
		MUST(t.good);
		MUST_EQ(qp_state_now(p.qp[0]), IBV_QPS_ERR);
		MUST_EQ(qp_state_now(p.qp[1]), IBV_QPS_RTS);
		MUST(pair_close(&p));
	}
	return true;
}

/* ---- the answer of an atomic operation in pieces ---- */

static bool atomics_answer_in_pieces(void)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_ATOMIC_FETCH_AND_ADD,
						      IBV_WR_ATOMIC_CMP_AND_SWP };
	const uint64_t before = 0x0123456789abcdefull;
	uint64_t now, got;
	struct ibv_wc wc;
	struct pair p;

	MUST(pair_open(&p, (struct pair_options){ 0 }));
	for (uint32_t first = 0; first <= 8; first++) {
		for (int op = 0; op < 2; op++) {
			/* the second piece in front of the first, a byte between them */
			struct ibv_sge sge[2] = { sge_of(&p, 0, 32, first),
						  sge_of(&p, 0, 31 - (8 - first), 8 - first) };
			struct ibv_send_wr wr = { .wr_id = 40 + first,
						  .opcode = opcodes[op],
						  .sg_list = sge,
						  .num_sge = 2,
						  .send_flags = IBV_SEND_SIGNALED }, *bad;

			memset(p.buf[0], 0x55, 64);
			memcpy(p.buf[1], &before, 8);
			wr.wr.atomic.remote_addr = (uintptr_t)p.buf[1];
			wr.wr.atomic.rkey = p.mr[1]->rkey;
			wr.wr.atomic.compare_add = op ? before : 7;
			wr.wr.atomic.swap = 9;
			MUST_EQ(ibv_post_send(p.qp[0], &wr, &bad), 0);
			MUST(wait_wc(p.cq[0], &wc));
			MUST_EQ(wc.status, IBV_WC_SUCCESS);
			MUST_EQ(wc.wr_id, 40 + first);
			memcpy(&now, p.buf[1], 8);
			MUST_EQ(now, op ? 9 : before + 7);
			memcpy(&got, p.buf[0] + 32, first);
			memcpy((char *)&got + first, p.buf[0] + 31 - (8 - first), 8 - first);
			MUST_EQ(got, before);
			MUST_EQ(p.buf[0][31], 0x55);
			MUST_EQ(p.buf[0][32 + first], 0x55);
		}
	}
	MUST(pair_close(&p));
	return true;
}

/* ---- what a service has no request for ---- */

/*
 * The table of ibv_post_send(3): EINVAL at posting for an operation that no service of the device
 * has (and for FLUSH, whose placement struct ibv_send_wr cannot express); for an operation of
 * another service, the error of an operation that the QP lacks (docs/verbs.md). Nothing is sent,
 * and an RC QP takes all operations that other services lack.
 */
static bool requests_of_other_services(void)
{
	enum { FLUSH = 14, ATOMIC_WRITE = 15, NO_OPCODE = 77 };
	static const int nowhere[] = { IBV_WR_TSO, IBV_WR_DRIVER1, FLUSH, NO_OPCODE, -1 };
	static const int not_uc[] = { IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
				      IBV_WR_ATOMIC_CMP_AND_SWP, ATOMIC_WRITE,
				      IBV_WR_SEND_WITH_INV, -1 };
	static const int not_ud[] = { IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
				      IBV_WR_ATOMIC_CMP_AND_SWP, ATOMIC_WRITE,
				      IBV_WR_SEND_WITH_INV, IBV_WR_RDMA_WRITE,
				      IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_LOCAL_INV, -1 };
	static const struct {
		enum ibv_qp_type type;
		const int *opcodes;
	} services[] = { { IBV_QPT_RC, nowhere },  { IBV_QPT_UC, nowhere }, { IBV_QPT_UD, nowhere },
			 { IBV_QPT_UC, not_uc },   { IBV_QPT_UD, not_ud } };
	struct ibv_ah_attr self = own_address();
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct pair p;

	for (unsigned int s = 0; s < sizeof(services) / sizeof(*services); s++) {
		const bool posted = services[s].opcodes != nowhere;

		for (const int *op = services[s].opcodes; *op >= 0; op++) {
			MUST(pair_open(&p, (struct pair_options){ .type = services[s].type }));
			MUST(ah = ibv_create_ah(p.pd, &self));
			MUST_EQ(post_recv(&p, 8, 0, 512), 0);
			sge = sge_of(&p, 0, 0, 8);
			memset(p.buf[0], 3, 8);
			wr = (struct ibv_send_wr){ .wr_id = 6,
						   .opcode = (enum ibv_wr_opcode)*op,
						   .sg_list = &sge,
						   .num_sge = 1 };
			if (services[s].type == IBV_QPT_UD) {
				wr.wr.ud.ah = ah;
				wr.wr.ud.remote_qpn = p.qp[1]->qp_num;
				wr.wr.ud.remote_qkey = UD_QKEY;
			} else {
				wr.wr.rdma.remote_addr = (uintptr_t)p.buf[1];
				wr.wr.rdma.rkey = p.mr[1]->rkey;
			}
			bad = NULL;
			MUST_EQ(ibv_post_send(p.qp[0], &wr, &bad), posted ? 0 : EINVAL);
			if (posted) {
				MUST(wait_wc(p.cq[0], &wc));
				MUST_EQ(wc.status, IBV_WC_LOC_QP_OP_ERR);
				MUST_EQ(wc.wr_id, 6);
			} else {
				MUST(bad == &wr);
			}
			MUST(cq_is_empty(p.cq[0]) && cq_is_empty(p.cq[1]));
			MUST(p.buf[0][0] == 3 && p.buf[1][0] == 0);
			MUST_EQ(qp_state_now(p.qp[1]), IBV_QPS_RTS);
			MUST_EQ(ibv_destroy_ah(ah), 0);
			MUST(pair_close(&p));
		}
	}
	return true;
}

/* "IBV_SEND_INLINE: [...] Valid only for Send and RDMA Write." */
static bool inline_where_nothing_is_sent(void)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
						      IBV_WR_ATOMIC_CMP_AND_SWP };
	struct ibv_send_wr *bad;
	struct pair p;

	MUST(pair_open(&p, (struct pair_options){ 0 }));
	for (int i = 0; i < 3; i++) {
		struct ibv_sge sge = sge_of(&p, 0, 0, 8);
		struct ibv_send_wr wr = { .opcode = opcodes[i],
					  .sg_list = &sge,
					  .num_sge = 1,
					  .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE };

		if (i) {
			wr.wr.atomic.remote_addr = (uintptr_t)p.buf[1];
			wr.wr.atomic.rkey = p.mr[1]->rkey;
		} else {
			wr.wr.rdma.remote_addr = (uintptr_t)p.buf[1];
			wr.wr.rdma.rkey = p.mr[1]->rkey;
		}
		MUST_EQ(ibv_post_send(p.qp[0], &wr, &bad), EINVAL);
		MUST(bad == &wr);
	}
	MUST(pair_close(&p));
	return true;
}

/* ---- windows ---- */

static int bind2(struct pair *p, int end, struct ibv_mw *mw, uint32_t rkey, uint64_t length,
		 unsigned int flags)
{
	struct ibv_send_wr wr = { .wr_id = 70, .opcode = IBV_WR_BIND_MW, .send_flags = flags };
	struct ibv_send_wr *bad;

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = rkey;
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){ .mr = p->mr[end],
							  .addr = (uintptr_t)p->buf[end],
							  .length = length,
							  .mw_access_flags =
								  IBV_ACCESS_REMOTE_READ };
	return ibv_post_send(p->qp[end], &wr, &bad);
}

static bool windows_open(struct pair *p)
{
	MUST(pair_open(p, (struct pair_options){ 0 }));
	for (int i = 0; i < 2; i++) {
		MUST_EQ(ibv_dereg_mr(p->mr[i]), 0);
		MUST(p->mr[i] = ibv_reg_mr(p->pd, p->buf[i], BUF_BYTES,
					   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
						   IBV_ACCESS_MW_BIND));
	}
	return true;
}

/* A failure completes although unsignaled, and the QP is in error. */
static bool unsignaled_binds_that_fail(void)
{
	struct ibv_mw_bind bind = { .wr_id = 71 };
	struct ibv_send_wr inv = { .wr_id = 72, .opcode = IBV_WR_LOCAL_INV }, *bad;
	struct ibv_wc wc;
	struct ibv_mw *mw;
	struct pair p;

	for (int kind = 0; kind < 3; kind++) {
		MUST(windows_open(&p));
		MUST(mw = ibv_alloc_mw(p.pd, kind ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1));
		bind.bind_info = (struct ibv_mw_bind_info){
			.mr = p.mr[0], .addr = (uintptr_t)p.buf[0] + BUF_BYTES - 7, .length = 8
		};
		inv.invalidate_rkey = ibv_inc_rkey(mw->rkey);
		MUST_EQ(kind == 0 ? ibv_bind_mw(p.qp[0], mw, &bind) :
			kind == 1 ? bind2(&p, 0, mw, ibv_inc_rkey(mw->rkey), BUF_BYTES + 1, 0) :
				    ibv_post_send(p.qp[0], &inv, &bad),
			0);
		MUST(wait_wc(p.cq[0], &wc));
		MUST(wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_WR_FLUSH_ERR);
		MUST_EQ(wc.wr_id, kind == 0 ? 71 : kind == 1 ? 70 : 72);
		MUST_EQ(qp_state_now(p.qp[0]), IBV_QPS_ERR);
		MUST_EQ(ibv_dealloc_mw(mw), 0);
		MUST(pair_close(&p));
	}
	return true;
}

/* "the consumer owns the low 8 bits": with the same requested key, windows have their own keys. */
static bool keys_of_many_windows(void)
{
	enum { WINDOWS = 300 };
	static struct ibv_mw *mw[WINDOWS];
	struct ibv_wc wc;
	struct pair p;

	MUST(windows_open(&p));
	for (int i = 0; i < WINDOWS; i++) {
		MUST(mw[i] = ibv_alloc_mw(p.pd, IBV_MW_TYPE_2));
		MUST_EQ(bind2(&p, 1, mw[i], (mw[i]->rkey & ~0xffu) | 0x5a, 64, IBV_SEND_SIGNALED),
			0);
		MUST(wait_wc(p.cq[1], &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST_EQ(mw[i]->rkey & 0xff, 0x5a);
		for (int k = 0; k < i; k++)
			MUST(mw[k]->rkey != mw[i]->rkey);
	}
	for (int i = 0; i < WINDOWS; i++)
		MUST_EQ(ibv_dealloc_mw(mw[i]), 0);
	MUST(pair_close(&p));
	return true;
}

static bool binds_of_a_queue_pair_in_error(void)
{
	struct ibv_mw_bind bind = { .wr_id = 71, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_mw *mw1, *mw2;
	struct ibv_wc wc;
	struct pair p;

	MUST(windows_open(&p));
	MUST(mw1 = ibv_alloc_mw(p.pd, IBV_MW_TYPE_1));
	MUST(mw2 = ibv_alloc_mw(p.pd, IBV_MW_TYPE_2));
	bind.bind_info = (struct ibv_mw_bind_info){ .mr = p.mr[0],
						    .addr = (uintptr_t)p.buf[0],
						    .length = 8 };
	MUST_EQ(qp_to_state(p.qp[0], IBV_QPS_ERR), 0);
	MUST_EQ(ibv_bind_mw(p.qp[0], mw1, &bind), 0);
	MUST_EQ(bind2(&p, 0, mw2, ibv_inc_rkey(mw2->rkey), 8, 0), 0);
	for (int i = 0; i < 2; i++) {
		MUST(wait_wc(p.cq[0], &wc));
		MUST_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
		MUST_EQ(wc.wr_id, i ? 70 : 71);
	}
	MUST_EQ(ibv_bind_mw(p.qp[0], mw2, &bind), EINVAL);	/* type 1's call, type 2's window */
	MUST_EQ(ibv_dealloc_mw(mw1), 0);
	MUST_EQ(ibv_dealloc_mw(mw2), 0);
	MUST(pair_close(&p));
	return true;
}

/* ---- an SRQ, and one of its QPs that fails ---- */

static bool receives_stay_when_a_queue_pair_fails(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_qp *other;
	struct ibv_wc wc;
	struct pair p;

	MUST(pair_open(&p, (struct pair_options){ .srq = true }));
	MUST(other = qp_to_itself(p.pd, p.cq[1], p.cq[1], p.srq));
	MUST_EQ(post_recv(&p, 5, 0, 64), 0);
	MUST_EQ(qp_to_state(other, IBV_QPS_ERR), 0);
	MUST(take_async(IBV_EVENT_QP_LAST_WQE_REACHED, other));
	MUST(cq_is_empty(p.cq[1]));
	MUST_EQ(ibv_post_send(p.qp[0], &wr, &bad), 0);
	MUST(wait_wc(p.cq[1], &wc));
	MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id == 5 && wc.qp_num == p.qp[1]->qp_num);
	MUST_EQ(ibv_destroy_qp(other), 0);
	MUST(pair_close(&p));
	return true;
}

/* ---- contexts of many threads ---- */

static void *open_and_close(void *arg)
{
	struct ibv_context *c = ibv_open_device(ctx->device);
	struct ibv_device_attr a;
	struct ibv_pd *pd;

	*(bool *)arg = c && c != ctx && c->device == ctx->device && !ibv_query_device(c, &a) &&
		       (pd = ibv_alloc_pd(c)) && pd->context == c && !ibv_dealloc_pd(pd) &&
		       !ibv_close_device(c);
	return NULL;
}

static bool contexts_of_many_threads(void)
{
	enum { THREADS = 64 };
	bool good[THREADS] = { 0 };
	pthread_t id[THREADS];

	for (int i = 0; i < THREADS; i++)
		MUST_EQ(pthread_create(&id[i], NULL, open_and_close, &good[i]), 0);
	for (int i = 0; i < THREADS; i++)
		MUST_EQ(pthread_join(id[i], NULL), 0);
	for (int i = 0; i < THREADS; i++)
		MUST(good[i]);
	return true;
}

/* ---- the CQ of several QPs is full ---- */

static bool overrun_of_a_shared_cq(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
	struct ibv_cq *own = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_async_event event;
	struct ibv_qp *qp[3];
	bool of_cq = false;
	int left = cq->cqe + 1, fatal = 0;

	MUST(pd && cq && own);
	for (int i = 0; i < 3; i++)
		MUST(qp[i] = qp_to_itself(pd, i < 2 ? cq : own, own, NULL));
	for (int i = 0; left--; i = !i)
		MUST_EQ(ibv_post_send(qp[i], &wr, &bad), 0);
	/* the CQ's event, and one of each of its QPs */
	while (!of_cq || fatal < 2) {
		MUST(next_async(&event));
		of_cq |= event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == cq;
		if (event.event_type == IBV_EVENT_QP_FATAL) {
			MUST(event.element.qp == qp[0] || event.element.qp == qp[1]);
			fatal++;
		}
		ibv_ack_async_event(&event);
	}
	MUST_EQ(ibv_post_send(qp[2], &wr, &bad), 0);
	MUST(wait_wc(own, &(struct ibv_wc){ 0 }));
	for (int i = 0; i < 2; i++)
		MUST_EQ(qp_state_now(qp[i]), IBV_QPS_ERR);
	MUST_EQ(qp_state_now(qp[2]), IBV_QPS_RTS);
	MUST(!readable(ctx->async_fd, 0));
	for (int i = 0; i < 3; i++)
		MUST_EQ(ibv_destroy_qp(qp[i]), 0);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	MUST_EQ(ibv_destroy_cq(own), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

const struct test_case man_cases[] = {
	CASE(lists_without_an_end),
	CASE(queues_of_no_size),
	CASE(error_while_a_thread_posts),
	CASE(atomics_answer_in_pieces),
	CASE(requests_of_other_services),
	CASE(inline_where_nothing_is_sent),
	CASE(unsignaled_binds_that_fail),
	CASE(keys_of_many_windows),
	CASE(binds_of_a_queue_pair_in_error),
	CASE(receives_stay_when_a_queue_pair_fails),
	CASE(contexts_of_many_threads),
	CASE(overrun_of_a_shared_cq),
	{ 0 },
};
