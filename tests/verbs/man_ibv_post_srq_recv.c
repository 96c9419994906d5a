/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long tsan */
/* ibv_post_srq_recv(3) */
#include "man.h"

#define GRH_BYTES 40

/*
 * Posts three WRs of which the second is wrong. Returns its error, and whether *bad_wr is that WR.
 */
static int with_bad_second(struct pair *p, int num_sge, bool *points_at_it)
{
	struct ibv_sge sge = sge_of(p, 1, 0, 100);
	struct ibv_recv_wr wr[3], *bad = NULL;
	int err;

	for (int i = 0; i < 3; i++)
		wr[i] = (struct ibv_recv_wr){ .wr_id = 10 + (uint64_t)i,
					      .next = i < 2 ? &wr[i + 1] : NULL,
					      .sg_list = &sge,
					      .num_sge = 1 };
	wr[1].num_sge = num_sge;
	err = ibv_post_srq_recv(p->srq, wr, &bad);
	*points_at_it = bad == &wr[1];
	return err;
}

static bool list_body(struct pair *p)
{
	struct ibv_wc wc;
	bool points;

	/*
	 * "stops processing WRs from this list at the first failure [...] and returns this failing
	 * WR through bad_wr"
	 */
	MUST_EQ(with_bad_second(p, 1000, &points), EINVAL);
	MUST(points);
	MUST_EQ(with_bad_second(p, -1, &points), EINVAL);
	MUST(points);
	/* Requests before it were posted, requests after it were not. */
	for (int i = 0; i < 2; i++) {
		MUST_EQ(post_send(p, 1, 0, 5, 0), 0);
		MUST(wait_wc(p->cq[1], &wc));
		MUST_EQ(wc.wr_id, 10);
	}
	/* A full queue fails at the WR that has no room. */
	for (int i = 0; i < QUEUE - 1; i++)
		MUST_EQ(post_recv(p, (uint64_t)i, 0, 100), 0);
	MUST_EQ(with_bad_second(p, 1, &points), ENOMEM);
	MUST(points);
	for (int i = 0; i < QUEUE; i++) {
		MUST_EQ(post_send(p, 1, 0, 5, 0), 0);
		MUST(wait_wc(p->cq[1], &wc));
		MUST_EQ(wc.wr_id, i < QUEUE - 1 ? i : 10);
	}
	return true;
}

ON_PAIR(stops_at_the_first_failure, list_body, .srq = true)

static bool scatter_body(struct pair *p)
{
	struct ibv_sge sge[2] = { sge_of(p, 1, 100, 3), sge_of(p, 1, 200, 50) };
	struct ibv_recv_wr wr = { .wr_id = 0xfedcba9876543210, .sg_list = sge, .num_sge = 2 }, *bad;
	struct ibv_wc wc;

	memcpy(p->buf[0], "0123456789", 10);
	MUST_EQ(ibv_post_srq_recv(p->srq, &wr, &bad), 0);
	memset(sge, 0xff, sizeof(sge)); /* the list is the caller's again */
	memset(&wr, 0xff, sizeof(wr));
	MUST_EQ(post_send(p, 1, 0, 10, 0), 0);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.wr_id, (long long)0xfedcba9876543210);
	MUST_EQ(wc.byte_len, 10);
	MUST_EQ(wc.qp_num, p->qp[1]->qp_num);
	MUST_EQ(memcmp(p->buf[1] + 100, "012", 4), 0);
	MUST_EQ(memcmp(p->buf[1] + 200, "3456789", 8), 0);
	return true;
}

ON_PAIR(fills_the_scatter_list, scatter_body, .srq = true)

static bool shared_body(struct pair *p)
{
	struct ibv_qp *other = qp_to_itself(p->pd, p->cq[0], p->cq[1], p->srq);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_recv_wr rr = { 0 }, *bad_rr;
	struct ibv_wc wc;

	MUST(other);
	for (uint64_t i = 0; i < 6; i++)
		MUST_EQ(post_recv(p, i, 0, 100), 0);
	/* Any receiving QP takes the oldest: wr_ids count on, the QP alternates. */
	for (uint64_t i = 0; i < 6; i++) {
		MUST_EQ(i % 2 ? ibv_post_send(other, &wr, &bad) : post_send(p, 0, 0, 7, 0), 0);
		MUST(wait_wc(p->cq[1], &wc));
		MUST_EQ(wc.wr_id, i);
		MUST_EQ(wc.qp_num, i % 2 ? other->qp_num : p->qp[1]->qp_num);
		MUST_EQ(wc.byte_len, i % 2 ? 0 : 7);
	}
	/* ibv_post_recv(3): a QP on an SRQ has no own receive queue */
	MUST_EQ(ibv_post_recv(other, &rr, &bad_rr), EINVAL);
	MUST(bad_rr == &rr);
	MUST_EQ(ibv_destroy_qp(other), 0);
	return true;
}

ON_PAIR(shared_by_queue_pairs, shared_body, .srq = true)

static bool ud_body(struct pair *p)
{
	struct ibv_ah_attr to = own_address();
	struct ibv_ah *ah = ibv_create_ah(p->pd, &to);
	struct ibv_sge sge = sge_of(p, 0, 0, 20),
		       split[2] = { sge_of(p, 1, 1000, 30), sge_of(p, 1, 2000, 100) };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .wr.ud = { .ah = ah,
					     .remote_qpn = p->qp[1]->qp_num,
					     .remote_qkey = UD_QKEY } },
			   *bad;
	struct ibv_recv_wr rr = { .wr_id = 2, .sg_list = split, .num_sge = 2 }, *bad_rr;
	struct ibv_wc wc;

	MUST(ah);
	memcpy(p->buf[0], "twenty bytes of data", 20);
	memset(p->buf[1], 0x5a, BUF_BYTES);
	MUST_EQ(post_recv(p, 1, 0, 100), 0);
	MUST_EQ(ibv_post_srq_recv(p->srq, &rr, &bad_rr), 0);
	/*
	 * "the actual data of the incoming message will start at an offset of 40 bytes into the
	 * buffer(s)"
	 */
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.wr_id, 1);
	MUST_EQ(wc.byte_len, GRH_BYTES + 20);
	MUST_EQ(wc.src_qp, p->qp[0]->qp_num);
	MUST_EQ(wc.wc_flags & IBV_WC_GRH, IBV_WC_GRH);
	MUST_EQ(memcmp(p->buf[1] + GRH_BYTES, "twenty bytes of data", 20), 0);
	MUST_EQ(p->buf[1][GRH_BYTES + 20], 0x5a);
	/*
	 * "will be placed in the first 40 bytes of the buffer(s) in the scatter list": over their
	 * seam
	 */
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.wr_id, 2);
	MUST_EQ(memcmp(p->buf[1] + 2000 + GRH_BYTES - 30, "twenty bytes of data", 20), 0);
	MUST_EQ(ibv_destroy_ah(ah), 0);
	return true;
}

ON_PAIR(ud_keeps_room_for_the_grh, ud_body, .srq = true, .type = IBV_QPT_UD)

#define THREADS	   4
#define PER_THREAD 8000

static struct pair *shared_pair;
static pthread_barrier_t all_there;

static void *post_many(void *arg)
{
	uint64_t thread = (uint64_t)(uintptr_t)arg;

	pthread_barrier_wait(&all_there);
	for (uint64_t n = 0; n < PER_THREAD; n++)
		if (post_recv(shared_pair, thread << 32 | n, 0, 100))
			return shared_pair;
	return NULL;
}

static bool threads_body(struct pair *p)
{
	struct ibv_srq_attr a = { .max_wr = THREADS * PER_THREAD };
	uint64_t next[THREADS] = { 0 };
	pthread_t thread[THREADS];
	struct ibv_wc wc;

	/* Room for all, so that nothing but the other threads holds one up. */
	MUST_EQ(ibv_modify_srq(p->srq, &a, IBV_SRQ_MAX_WR), 0);
	shared_pair = p;
	MUST_EQ(pthread_barrier_init(&all_there, NULL, THREADS), 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		MUST_EQ(pthread_create(&thread[i], NULL, post_many, (void *)i), 0);
	for (int i = 0; i < THREADS; i++) {
		void *failed;

		MUST_EQ(pthread_join(thread[i], &failed), 0);
		MUST(!failed);
	}
	/* Each WR once, and one thread's WRs in its order. */
	for (int i = 0; i < THREADS * PER_THREAD; i++) {
		MUST_EQ(post_send(p, 1, 0, 4, 0), 0);
		MUST(wait_wc(p->cq[1], &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST(wc.wr_id >> 32 < THREADS);
		MUST_EQ((uint32_t)wc.wr_id, next[wc.wr_id >> 32]++);
	}
	return true;
}

ON_PAIR(from_several_threads, threads_body, .srq = true)

static bool last_wqe_body(struct pair *p)
{
	struct ibv_wc wc;

	/* The SRQ's receives are not flushed with one of its QPs: they are the others'. */
	MUST_EQ(post_recv(p, 1, 0, 100), 0);
	MUST_EQ(qp_to_state(p->qp[1], IBV_QPS_ERR), 0);
	MUST(take_async(IBV_EVENT_QP_LAST_WQE_REACHED, p->qp[1]));
	MUST(no_async_event());
	MUST_EQ(ibv_poll_cq(p->cq[1], 1, &wc), 0);
	return true;
}

ON_PAIR(last_wqe_reached_once, last_wqe_body, .srq = true)

const struct test_case man_cases[] = {
	CASE(stops_at_the_first_failure),
	CASE(fills_the_scatter_list),
	CASE(shared_by_queue_pairs),
	CASE(ud_keeps_room_for_the_grh),
	CASE(from_several_threads),
	CASE(last_wqe_reached_once),
	{ 0 },
};
