/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san XROCE_CYCLES=1000 */
/* tier: long tsan */
/* ibv_create_wq(3), which is ibv_destroy_wq(3) as well, and ibv_modify_wq(3) */
#include "held.h"
#include "man.h"

static struct ibv_pd *pd;
static struct ibv_cq *cq;

static bool begin(void)
{
	MUST(pd = ibv_alloc_pd(ctx));
	MUST(cq = ibv_create_cq(ctx, 64, NULL, NULL, 0));
	return true;
}

static bool end(void)
{
	MUST_EQ(ibv_destroy_cq(cq), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

static struct ibv_wq_init_attr plain(void)
{
	return (struct ibv_wq_init_attr){
		.wq_type = IBV_WQT_RQ, .max_wr = QUEUE, .max_sge = 2, .pd = pd, .cq = cq
	};
}

static struct ibv_wq *make(void)
{
	struct ibv_wq_init_attr a = plain();

	return ibv_create_wq(ctx, &a);
}

static int move(struct ibv_wq *wq, enum ibv_wq_state state)
{
	struct ibv_wq_attr a = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = state };

	return ibv_modify_wq(wq, &a);
}

/* "a pointer to the created WQ"; "greater than or equal to the values requested" */
static bool makes_and_destroys(void)
{
	struct ibv_wq_init_attr a;
	struct ibv_wq *wq, *other;

	MUST(begin());
	a = plain();
	a.max_wr = 5;
	a.wq_context = &a;
	MUST(wq = ibv_create_wq(ctx, &a));
	MUST(a.max_wr >= 5 && a.max_sge >= 2);
	MUST(wq->context == ctx && wq->pd == pd && wq->cq == cq && wq->wq_context == &a);
	MUST_EQ(wq->wq_type, IBV_WQT_RQ);
	MUST_EQ(wq->state, IBV_WQS_RESET);
	MUST(other = make());
	MUST(other->wq_num != wq->wq_num);
	MUST_EQ(ibv_dealloc_pd(pd), EBUSY);
	MUST_EQ(ibv_destroy_cq(cq), EBUSY);
	MUST_EQ(ibv_destroy_wq(wq), 0);
	MUST_EQ(ibv_destroy_cq(cq), EBUSY);
	MUST_EQ(ibv_destroy_wq(other), 0);
	return end();
}

static bool einval(void)
{
	struct ibv_device_attr device;
	struct ibv_wq_init_attr a;

	MUST(begin());
	MUST_EQ(ibv_query_device(ctx, &device), 0);
#define WITH(field, value) (a = plain(), a.field = (value), ibv_create_wq(ctx, &a))
	MUST_FAIL(WITH(comp_mask, IBV_WQ_INIT_ATTR_RESERVED), EINVAL);
	MUST_FAIL(WITH(wq_type, (enum ibv_wq_type)1), EINVAL);
	MUST_FAIL(WITH(max_wr, 0), EINVAL);
	MUST_FAIL(WITH(max_wr, (uint32_t)device.max_qp_wr + 1), EINVAL);
	MUST_FAIL(WITH(max_sge, (uint32_t)device.max_sge + 1), EINVAL);
	MUST_FAIL(WITH(pd, NULL), EINVAL);
	MUST_FAIL(WITH(cq, NULL), EINVAL);
#undef WITH
	a = plain();
	a.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
	a.create_flags = IBV_WQ_FLAGS_RESERVED;
	MUST_FAIL(ibv_create_wq(ctx, &a), EINVAL);
	return end();
}

/* Of flags there are none; where the mask does not name them they are not looked at. */
static bool eopnotsupp(void)
{
	struct ibv_device_attr_ex device;
	struct ibv_wq_init_attr a;
	struct ibv_wq *wq;

	MUST(begin());
	MUST_EQ(ibv_query_device_ex(ctx, NULL, &device), 0);
	MUST_EQ(device.raw_packet_caps, 0);
	a = plain();
	for (uint32_t flag = 1; flag < IBV_WQ_FLAGS_RESERVED; flag <<= 1) {
		a.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
		a.create_flags = flag;
		MUST_FAIL(ibv_create_wq(ctx, &a), EOPNOTSUPP);
	}
	a.comp_mask = 0;
	MUST(wq = ibv_create_wq(ctx, &a));
	MUST_EQ(ibv_destroy_wq(wq), 0);
	return end();
}

/* An object whose handle is another is not found. */
static bool enoent(void)
{
	struct ibv_wq_attr m = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	struct ibv_wq *wq;

	MUST(begin());
	MUST(wq = make());
	pd->handle ^= 1u << 31;
	MUST_FAIL(make(), ENOENT);
	pd->handle ^= 1u << 31;
	cq->handle ^= 1u << 31;
	MUST_FAIL(make(), ENOENT);
	cq->handle ^= 1u << 31;
	wq->handle ^= 1u << 31;
	MUST_EQ(ibv_modify_wq(wq, &m), ENOENT);
	MUST_EQ(ibv_destroy_wq(wq), ENOENT);
	wq->handle ^= 1u << 31;
	MUST_EQ(ibv_destroy_wq(wq), 0);
	return end();
}

/* "Move to this state": each from each. */
static bool states(void)
{
	static const bool allowed[3][3] = {
		[IBV_WQS_RESET] = { true, true, false },
		[IBV_WQS_RDY] = { true, true, true },
		[IBV_WQS_ERR] = { true, false, true },
	};
	struct ibv_wq *wq;

	MUST(begin());
	for (int from = 0; from < 3; from++) {
		for (int to = 0; to < 3; to++) {
			MUST(wq = make());
			if (from != IBV_WQS_RESET)
				MUST_EQ(move(wq, IBV_WQS_RDY), 0);
			if (from == IBV_WQS_ERR)
				MUST_EQ(move(wq, IBV_WQS_ERR), 0);
			MUST_EQ((int)wq->state, from);
			MUST_EQ(move(wq, (enum ibv_wq_state)to), allowed[from][to] ? 0 : EINVAL);
			MUST_EQ((int)wq->state, allowed[from][to] ? to : from);
			MUST_EQ(ibv_destroy_wq(wq), 0);
		}
	}
	MUST(wq = make());
	MUST_EQ(move(wq, IBV_WQS_UNKNOWN), EINVAL);
	MUST_EQ(ibv_destroy_wq(wq), 0);
	return end();
}

/* "based on the given attr_mask"; "Assume this is the current state"; flags that are not there */
static bool modify_masks(void)
{
	struct ibv_wq_attr a = { .wq_state = IBV_WQS_RDY };
	struct ibv_wq *wq;

	MUST(begin());
	MUST(wq = make());
	MUST_EQ(ibv_modify_wq(wq, &a), EINVAL);
	a.attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_RESERVED;
	MUST_EQ(ibv_modify_wq(wq, &a), EINVAL);
	a.attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE;
	a.curr_wq_state = IBV_WQS_RDY;
	MUST_EQ(ibv_modify_wq(wq, &a), EINVAL);
	a.attr_mask = IBV_WQ_ATTR_FLAGS | IBV_WQ_ATTR_STATE;
	a.flags_mask = IBV_WQ_FLAGS_CVLAN_STRIPPING;
	MUST_EQ(ibv_modify_wq(wq, &a), EOPNOTSUPP);
	a.flags_mask = IBV_WQ_FLAGS_RESERVED;
	MUST_EQ(ibv_modify_wq(wq, &a), EINVAL);
	MUST_EQ(wq->state, IBV_WQS_RESET);
	a.attr_mask = IBV_WQ_ATTR_CURR_STATE;
	a.curr_wq_state = IBV_WQS_RESET;
	MUST_EQ(ibv_modify_wq(wq, &a), 0);
	MUST_EQ(wq->state, IBV_WQS_RESET);
	a.attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE;
	MUST_EQ(ibv_modify_wq(wq, &a), 0);
	MUST_EQ(wq->state, IBV_WQS_RDY);
	MUST_EQ(ibv_destroy_wq(wq), 0);
	return end();
}

static int post(struct ibv_wq *wq, uint64_t wr_id, int num_sge, struct ibv_recv_wr **bad)
{
	struct ibv_sge sge[3] = { { 0 } };
	static struct ibv_recv_wr wr;

	wr = (struct ibv_recv_wr){ .wr_id = wr_id, .sg_list = sge, .num_sge = num_sge };
	*bad = NULL;
	return ibv_post_wq_recv(wq, &wr, bad);
}

/* As ibv_post_recv(3): the error, and the failing request. */
static bool posting(void)
{
	struct ibv_wq_init_attr a;
	struct ibv_recv_wr *bad;
	struct ibv_wq *wq;

	MUST(begin());
	a = plain();
	MUST(wq = ibv_create_wq(ctx, &a));
	MUST_EQ(post(wq, 0, 1, &bad), EINVAL);
	MUST(bad);
	MUST_EQ(move(wq, IBV_WQS_RDY), 0);
	MUST_EQ(post(wq, 0, (int)a.max_sge + 1, &bad), EINVAL);
	MUST(bad);
	MUST_EQ(post(wq, 0, -1, &bad), EINVAL);
	for (uint32_t i = 0; i < a.max_wr; i++)
		MUST_EQ(post(wq, i, 2, &bad), 0);
	MUST_EQ(post(wq, 0, 1, &bad), ENOMEM);
	MUST(bad);
	MUST_EQ(ibv_destroy_wq(wq), 0);
	return end();
}

static bool take_flushed(const struct ibv_wq *wq, uint64_t wr_id)
{
	struct ibv_wc wc;

	MUST(wait_wc(cq, &wc));
	MUST_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
	MUST_EQ(wc.wr_id, wr_id);
	MUST_EQ(wc.qp_num, wq->wq_num);
	return true;
}

/* In ERR all that is posted is flushed, before and after; RESET empties both. */
static bool flushes(void)
{
	struct ibv_recv_wr *bad;
	struct ibv_wq *wq;
	struct ibv_wc wc;

	MUST(begin());
	MUST(wq = make());
	MUST_EQ(move(wq, IBV_WQS_RDY), 0);
	MUST_EQ(post(wq, 11, 1, &bad), 0);
	MUST_EQ(post(wq, 12, 1, &bad), 0);
	MUST_EQ(move(wq, IBV_WQS_ERR), 0);
	MUST(take_flushed(wq, 11) && take_flushed(wq, 12));
	MUST_EQ(post(wq, 13, 1, &bad), 0);
	MUST(take_flushed(wq, 13));
	MUST_EQ(post(wq, 14, 1, &bad), 0);
	MUST_EQ(move(wq, IBV_WQS_RESET), 0);
	MUST_EQ(move(wq, IBV_WQS_RDY), 0);
	MUST_EQ(post(wq, 15, 1, &bad), 0);
	MUST_EQ(move(wq, IBV_WQS_RESET), 0);
	MUST_EQ(move(wq, IBV_WQS_RDY), 0);
	MUST_EQ(move(wq, IBV_WQS_ERR), 0);
	MUST_EQ(ibv_poll_cq(cq, 1, &wc), 0);
	MUST(no_async_event());
	MUST_EQ(ibv_destroy_wq(wq), 0);
	return end();
}

/* ibv_query_device_ex(3), "Max Work Queue from type RQ": exactly this number. */
static bool as_many_as_there_may_be(void)
{
	struct ibv_device_attr_ex device;
	struct ibv_wq **wq;
	uint32_t n = 0;

	MUST(begin());
	MUST_EQ(ibv_query_device_ex(ctx, NULL, &device), 0);
	MUST(device.max_wq_type_rq >= 1024);
	MUST(wq = calloc(device.max_wq_type_rq + 1, sizeof(struct ibv_wq *)));
	while (n <= device.max_wq_type_rq && (wq[n] = make()))
		n++;
	MUST_EQ(errno, ENOMEM);
	MUST_EQ(n, device.max_wq_type_rq);
	while (n)
		MUST_EQ(ibv_destroy_wq(wq[--n]), 0);
	free(wq);
	return end();
}

static bool cycle(int i)
{
	struct ibv_recv_wr *bad;
	struct ibv_wq *wq;

	MUST(wq = make());
	MUST_EQ(move(wq, IBV_WQS_RDY), 0);
	MUST_EQ(post(wq, (uint64_t)i, 1, &bad), 0);
	MUST_EQ(ibv_destroy_wq(wq), 0);
	return true;
}

static bool come_and_go(void)
{
	MUST(begin());
	MUST(leaves_nothing(cycle, cycles_wanted()));
	return end();
}

/* What a child of fork() answers of its copy: docs/verbs.md, "fork()". */
static bool in_the_child(void *arg)
{
	struct ibv_wq *wq = arg;
	struct ibv_rwq_ind_table_init_attr t = { .ind_tbl = &wq };
	struct ibv_recv_wr *bad;

	MUST_EQ(post(wq, 1, 1, &bad), EIO);
	MUST(bad);
	MUST_EQ(move(wq, IBV_WQS_RESET), EIO);
	MUST_FAIL(make(), EIO);
	MUST_FAIL(ibv_create_rwq_ind_table(ctx, &t), EIO);
	MUST_EQ(ibv_destroy_wq(wq), 0);
	return true;
}

/*
 * Between start_poll and end_poll of a CQ without a lock: a work queue is destroyed or reset, and
 * the other one's completions are still there, once.
 */
static bool gone_while_polled(bool destroys)
{
	struct ibv_cq_init_attr_ex ex = { .cqe = 64,
					  .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					  .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED };
	struct ibv_poll_cq_attr start = { 0 };
	struct ibv_cq *plain_cq;
	struct ibv_wq *wq[2];
	struct ibv_recv_wr *bad;
	struct ibv_cq_ex *polled;

	MUST(begin());
	plain_cq = cq;
	MUST(polled = ibv_create_cq_ex(ctx, &ex));
	cq = ibv_cq_ex_to_cq(polled);
	for (int i = 0; i < 2; i++) {
		MUST(wq[i] = make());
		MUST_EQ(move(wq[i], IBV_WQS_RDY), 0);
		MUST_EQ(post(wq[i], 31 + (uint64_t)i, 1, &bad), 0);
		MUST_EQ(move(wq[i], IBV_WQS_ERR), 0);
	}
	MUST_EQ(ibv_start_poll(polled, &start), 0);
	MUST_EQ(polled->wr_id, 31);
	MUST_EQ(destroys ? ibv_destroy_wq(wq[0]) : move(wq[0], IBV_WQS_RESET), 0);
	MUST_EQ(polled->wr_id, 31);
	MUST_EQ(ibv_next_poll(polled), 0);
	MUST_EQ(polled->wr_id, 32);
	MUST_EQ(ibv_next_poll(polled), ENOENT);
	ibv_end_poll(polled);
	MUST(destroys || !ibv_destroy_wq(wq[0]));
	MUST_EQ(ibv_destroy_wq(wq[1]), 0);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	cq = plain_cq;
	return end();
}

static bool destroyed_while_polled(void)
{
	return gone_while_polled(true);
}

static bool reset_while_polled(void)
{
	return gone_while_polled(false);
}

/* ... and the parent notices nothing. */
static bool forked(void)
{
	struct ibv_recv_wr *bad;
	struct ibv_wq *wq;

	MUST(begin());
	MUST(wq = make());
	MUST_EQ(move(wq, IBV_WQS_RDY), 0);
	MUST_EQ(post(wq, 21, 1, &bad), 0);
	MUST(in_a_child(in_the_child, wq));
	MUST_EQ(move(wq, IBV_WQS_ERR), 0);
	MUST(take_flushed(wq, 21));
	MUST_EQ(ibv_destroy_wq(wq), 0);
	return end();
}

const struct test_case man_cases[] = {
	CASE(makes_and_destroys),
	CASE(einval),
	CASE(eopnotsupp),
	CASE(enoent),
	CASE(states),
	CASE(modify_masks),
	CASE(posting),
	CASE(flushes),
	CASE(as_many_as_there_may_be),
	CASE(come_and_go),
	CASE(destroyed_while_polled),
	CASE(reset_while_polled),
	CASE(forked),
	{ 0 },
};
