/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san XROCE_CYCLES=1000 */
/* tier: long tsan */
/*
 * libibverbs is thread safe (rdma-core's documentation of it): threads make and unmake objects of
 * every kind at once, of one PD and on one CQ, and flows for the same MACs, while QPs carry
 * messages, and while the other end of a QP changes its state or goes away.
 */
#include "man.h"

#define THREADS 4

static struct {
	struct ibv_pd *pd;
	struct ibv_cq *cq, *send_cq;
	struct ibv_mr *mr;
	uint64_t *buf;
	struct ibv_ah_attr address;
	pthread_barrier_t together;
	atomic_bool stop, failed;
	atomic_int count;
} w;

static bool world_open(void)
{
	w.address = own_address();
	MUST(w.pd = ibv_alloc_pd(ctx));
	MUST(w.cq = ibv_create_cq(ctx, 64, NULL, NULL, 0));
	MUST(w.send_cq = ibv_create_cq(ctx, 64, NULL, NULL, 0));
	MUST(w.buf = calloc(1, BUF_BYTES));
	MUST(w.mr = ibv_reg_mr(w.pd, w.buf, BUF_BYTES,
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				       IBV_ACCESS_REMOTE_READ));
	MUST_EQ(pthread_barrier_init(&w.together, NULL, THREADS), 0);
	atomic_store(&w.stop, false);
	atomic_store(&w.failed, false);
	atomic_store(&w.count, 0);
	return true;
}

static bool world_close(void)
{
	MUST_EQ(ibv_dereg_mr(w.mr), 0);
	MUST_EQ(ibv_destroy_cq(w.send_cq), 0);
	MUST_EQ(ibv_destroy_cq(w.cq), 0);
	MUST_EQ(ibv_dealloc_pd(w.pd), 0);
	pthread_barrier_destroy(&w.together);
	free(w.buf);
	return !atomic_load(&w.failed);
}

/* ---- kinds of objects ---- */

static void *make_pd(void)
{
	return ibv_alloc_pd(ctx);
}
static void *make_mr(void)
{
	return ibv_reg_mr(w.pd, w.buf, 100, IBV_ACCESS_LOCAL_WRITE);
}
static void *make_mw(void)
{
	return ibv_alloc_mw(w.pd, IBV_MW_TYPE_2);
}
static void *make_ah(void)
{
	return ibv_create_ah(w.pd, &w.address);
}
static void *make_cq(void)
{
	return ibv_create_cq(ctx, 8, NULL, NULL, 0);
}
static void *make_channel(void)
{
	return ibv_create_comp_channel(ctx);
}
static void *make_dm(void)
{
	return ibv_alloc_dm(ctx, &(struct ibv_alloc_dm_attr){ .length = 64 });
}
static void *make_cq_ex(void)
{
	struct ibv_cq_init_attr_ex a = { .cqe = 8, .wc_flags = IBV_WC_STANDARD_FLAGS };

	return ibv_cq_ex_to_cq(ibv_create_cq_ex(ctx, &a));
}
static void *make_srq(void)
{
	struct ibv_srq_init_attr a = { .attr = { .max_wr = 4, .max_sge = 1 } };

	return ibv_create_srq(w.pd, &a);
}
static void *make_qp(void)
{
	struct ibv_qp_init_attr a = { .send_cq = w.send_cq,
				      .recv_cq = w.cq,
				      .qp_type = IBV_QPT_UD,
				      .cap = { 1, 1, 1, 1, 0 } };

	return ibv_create_qp(w.pd, &a);
}
static int drop_pd(void *o)
{
	return ibv_dealloc_pd(o);
}
static int drop_mr(void *o)
{
	return ibv_dereg_mr(o);
}
static int drop_mw(void *o)
{
	return ibv_dealloc_mw(o);
}
static int drop_ah(void *o)
{
	return ibv_destroy_ah(o);
}
static int drop_dm(void *o)
{
	return ibv_free_dm(o);
}
static int drop_srq(void *o)
{
	return ibv_destroy_srq(o);
}
static int drop_qp(void *o)
{
	return ibv_destroy_qp(o);
}
static int drop_channel(void *o)
{
	return ibv_destroy_comp_channel(o);
}

static const struct {
	void *(*make)(void);
	int (*drop)(void *object);
} kinds[] = {
	{ make_pd, drop_pd },	{ make_mr, drop_mr },	 { make_mw, drop_mw },
	{ make_ah, drop_ah },	{ make_cq, destroy_cq }, { make_cq_ex, destroy_cq },
	{ make_srq, drop_srq }, { make_qp, drop_qp },	 { make_channel, drop_channel },
	{ make_dm, drop_dm },
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

/* ---- threads ---- */

static bool threads_run(bool (*body)(long i))
{
	pthread_t thread[THREADS];
	bool good = true;
	void *ok;

	for (long i = 0; i < THREADS; i++)
		MUST_EQ(pthread_create(&thread[i], NULL, (void *(*)(void *))(void *)body,
				       (void *)i),
			0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &ok);
		good &= (bool)(uintptr_t)ok;
	}
	return good;
}

/* All make the same kind at the same time, hold many, and unmake them. */
static bool makes_each_kind(long i)
{
	enum { HELD = 100 };
	void *held[HELD];
	bool good = true;

	for (unsigned int k = 0; k < KINDS; k++) {
		pthread_barrier_wait(&w.together);
		for (int n = 0; n < HELD; n++)
			good &= (held[n] = kinds[k].make()) != NULL;
		for (int n = 0; n < HELD; n++)
			good &= held[n] && !kinds[k].drop(held[n]);
	}
	return good;
}

static bool the_same_kind(void)
{
	MUST(world_open());
	MUST(threads_run(makes_each_kind));
	return world_close();
}

/* Each another kind, and the next one then: all pairs of kinds meet. */
static bool makes_kinds_in_turn(long i)
{
	bool good = true;

	for (unsigned int n = 0; n < 1000; n++) {
		unsigned int k = (n / (1 + (unsigned int)i) + (unsigned int)i) % KINDS;
		void *o = kinds[k].make();

		good &= o && !kinds[k].drop(o);
	}
	return good;
}

static bool different_kinds(void)
{
	MUST(world_open());
	MUST(threads_run(makes_kinds_in_turn));
	return world_close();
}

/* A QP with its own CQs, of the common PD: made, connected, used and destroyed. */
static bool lives_a_queue_pair(long i)
{
	struct ibv_cq *send, *recv;
	struct ibv_qp *qp;
	struct ibv_wc wc;

	MUST(send = ibv_create_cq(ctx, 8, NULL, NULL, 0));
	MUST(recv = ibv_create_cq(ctx, 8, NULL, NULL, 0));
	for (uint64_t n = 0; n < 100; n++) {
		MUST(qp = qp_to_itself(w.pd, send, recv, NULL));
		MUST(ping(qp, n, IBV_SEND_SIGNALED));
		MUST(wait_wc(recv, &wc));
		MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id == n && wc.qp_num == qp->qp_num);
		MUST(wait_wc(send, &wc));
		MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id == n && wc.qp_num == qp->qp_num);
		MUST_EQ(ibv_destroy_qp(qp), 0);
	}
	MUST_EQ(ibv_destroy_cq(send), 0);
	MUST_EQ(ibv_destroy_cq(recv), 0);
	return true;
}

static bool queue_pairs_come_and_go(void)
{
	MUST(world_open());
	MUST(threads_run(lives_a_queue_pair));
	return world_close();
}

/* ---- flows, for whose MACs the threads ask the interface ---- */

static struct ibv_qp *raw_qp;

static struct ibv_flow *make_flow(uint8_t number, bool is_group)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} rule = {
		.attr = { .size = sizeof(rule), .num_of_specs = 1, .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH,
			 .size = sizeof(rule.eth),
			 .val = { .dst_mac = { is_group, 0x11, 0x22, 0x33, 0x44, number } },
			 .mask = { .dst_mac = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff } } },
	};

	return ibv_create_flow(raw_qp, &rule.attr);
}

/* Two at a time: one for a MAC that all threads have flows for, one for its own. */
static bool makes_flows(long i)
{
	struct ibv_flow *own, *common;

	pthread_barrier_wait(&w.together);
	for (int n = 0; n < 100; n++) {
		MUST(common = make_flow(0, n % 2));
		MUST(own = make_flow((uint8_t)(1 + i), n % 2));
		MUST_EQ(ibv_destroy_flow(common), 0);
		MUST_EQ(ibv_destroy_flow(own), 0);
	}
	return true;
}

static bool flows_come_and_go(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RAW_PACKET, .cap = { 1, 1, 1, 1, 0 } };

	MUST(world_open());
	init.send_cq = init.recv_cq = w.cq;
	MUST(raw_qp = ibv_create_qp(w.pd, &init));
	MUST(threads_run(makes_flows));
	MUST_EQ(ibv_destroy_qp(raw_qp), 0);
	return world_close();
}

/* ---- the other end of a QP that is at work ---- */

/* QPs of one end and the other; a time-out of the first is short. */
static struct ibv_qp *end_qp(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr a = { .send_cq = cq,
				      .recv_cq = w.cq,
				      .qp_type = IBV_QPT_RC,
				      .cap = { QUEUE, QUEUE, 1, 1, 0 },
				      .sq_sig_all = 1 };
	struct ibv_qp *qp = ibv_create_qp(w.pd, &a);

	return qp && !qp_to_init(qp) ? qp : NULL;
}

static bool ends_open(struct ibv_qp *qp[2])
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS,
				 .sq_psn = 7,
				 .max_rd_atomic = 4,
				 .timeout = 12,
				 .retry_cnt = 3,
				 .rnr_retry = 7 };

	MUST((qp[0] = end_qp(w.send_cq)) && (qp[1] = end_qp(w.cq)));
	MUST_EQ(qp_to_rtr(qp[0], qp[1]->qp_num), 0);
	MUST_EQ(qp_to_rtr(qp[1], qp[0]->qp_num), 0);
	MUST_EQ(ibv_modify_qp(qp[0], &a,
			      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
		0);
	return true;
}

/* READs one after another until told to stop, or one fails; returns that one's status. */
static void *reads(void *arg)
{
	struct ibv_qp *qp = arg;
	struct ibv_sge sge = { (uintptr_t)w.buf, 2048, w.mr->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_READ,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .wr.rdma = { (uintptr_t)w.buf + 4096, w.mr->rkey } },
			   *bad;
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS };

	while (!atomic_load(&w.stop)) {
		if (ibv_post_send(qp, &wr, &bad) || !wait_wc(w.send_cq, &wc))
			return (void *)-1;
		if (wc.status != IBV_WC_SUCCESS)
			break;
		atomic_fetch_add(&w.count, 1);
	}
	return (void *)(intptr_t)wc.status;
}

static bool reads_while_the_target_enters_rts(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS,
				 .sq_psn = 7,
				 .max_rd_atomic = 4,
				 .timeout = 14,
				 .retry_cnt = 7,
				 .rnr_retry = 7 };
	struct ibv_qp *qp[2];
	pthread_t thread;
	void *status;
	int before;

	MUST(world_open() && ends_open(qp));
	MUST_EQ(pthread_create(&thread, NULL, reads, qp[0]), 0);
	MUST(counted_to(&w.count, 100) >= 100);
	MUST_EQ(ibv_modify_qp(qp[1], &a,
			      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
		0);
	before = atomic_load(&w.count);
	MUST(counted_to(&w.count, before + 100) >= before + 100);
	atomic_store(&w.stop, true);
	pthread_join(thread, &status);
	MUST_EQ((intptr_t)status, IBV_WC_SUCCESS);
	MUST_EQ(ibv_destroy_qp(qp[0]), 0);
	MUST_EQ(ibv_destroy_qp(qp[1]), 0);
	return world_close();
}

/* Its requests end like unanswered ones; it reports that, and nothing hangs. */
static bool the_target_is_destroyed(void)
{
	struct ibv_qp *qp[2];
	pthread_t thread;
	void *status;

	MUST(world_open());
	for (int i = 0; i < 5; i++) {
		atomic_store(&w.count, 0);
		MUST(ends_open(qp));
		MUST_EQ(pthread_create(&thread, NULL, reads, qp[0]), 0);
		MUST(counted_to(&w.count, 20) >= 20);
		MUST_EQ(ibv_destroy_qp(qp[1]), 0);
		pthread_join(thread, &status);
		MUST_EQ((intptr_t)status, IBV_WC_RETRY_EXC_ERR);
		MUST_EQ(qp_state_now(qp[0]), IBV_QPS_ERR);
		MUST_EQ(ibv_destroy_qp(qp[0]), 0);
	}
	return world_close();
}

const struct test_case man_cases[] = {
	CASE(the_same_kind),
	CASE(different_kinds),
	CASE(queue_pairs_come_and_go),
	CASE(flows_come_and_go),
	CASE(reads_while_the_target_enters_rts),
	CASE(the_target_is_destroyed),
	{ 0 },
};
