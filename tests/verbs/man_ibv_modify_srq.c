/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long tsan */
/* ibv_modify_srq(3) */
#include "man.h"

static struct ibv_srq_attr query(struct ibv_srq *srq)
{
	struct ibv_srq_attr a = { 0xdead, 0xdead, 0xdead };

	ibv_query_srq(srq, &a);
	return a;
}

static int limit(struct ibv_srq *srq, uint32_t n)
{
	struct ibv_srq_attr a = { .srq_limit = n, .max_wr = UINT32_MAX, .max_sge = UINT32_MAX };

	return ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT);
}

static int resize(struct ibv_srq *srq, uint32_t n)
{
	struct ibv_srq_attr a = { .max_wr = n, .srq_limit = UINT32_MAX, .max_sge = UINT32_MAX };

	return ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR);
}

static bool invalid_body(struct pair *p)
{
	struct ibv_srq_attr before, a = { .max_wr = 2 * QUEUE, .srq_limit = 3 * QUEUE };
	struct ibv_device_attr dev;

	MUST_EQ(ibv_query_device(ctx, &dev), 0);
	MUST(dev.device_cap_flags & IBV_DEVICE_SRQ_RESIZE);
	MUST_EQ(limit(p->srq, 0), 0);
	before = query(p->srq);
	/* "If any of the modify attributes is invalid, none of the attributes will be modified." */
	MUST_EQ(ibv_modify_srq(p->srq, &a, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	MUST_EQ(query(p->srq).max_wr, before.max_wr);
	a = (struct ibv_srq_attr){ .max_wr = 0, .srq_limit = 1 };
	MUST_EQ(ibv_modify_srq(p->srq, &a, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	MUST_EQ(resize(p->srq, (uint32_t)dev.max_srq_wr + 1), EINVAL);
	MUST_EQ(limit(p->srq, before.max_wr + 1), EINVAL);
	MUST_EQ(ibv_modify_srq(p->srq, &a, 1 << 9), EINVAL);
	MUST_EQ(query(p->srq).srq_limit, 0);
	/* "either 0 or the bitwise OR" */
	MUST_EQ(ibv_modify_srq(p->srq, &a, 0), 0);
	MUST_EQ(query(p->srq).max_wr, before.max_wr);
	MUST_EQ(query(p->srq).max_sge, before.max_sge);
	return no_async_event();
}

ON_PAIR(invalid_attributes_change_nothing, invalid_body, .srq = true)

static bool receives(struct pair *p, uint64_t wr_id)
{
	struct ibv_wc wc;

	MUST_EQ(post_send(p, 1, 0, 10, 0), 0);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.wr_id, wr_id);
	MUST_EQ(wc.byte_len, 10);
	return true;
}

static bool resize_body(struct pair *p)
{
	uint64_t posted = 0, received = 0;

	/* Wraps its ring at several sizes; posted receives stay, in their order. */
	for (uint32_t size = QUEUE; size <= 8 * QUEUE; size *= 2) {
		while (!post_recv(p, posted, 0, 100))
			posted++;
		MUST_EQ(posted - received, query(p->srq).max_wr);
		MUST_EQ(resize(p->srq, query(p->srq).max_wr - 1), EINVAL); /* does not fit */
		MUST_EQ(resize(p->srq, 2 * size), 0);
		MUST_EQ(query(p->srq).max_wr, 2 * size);
		for (int i = 0; i < 5; i++)
			MUST(receives(p, received++));
	}
	while (received < posted)
		MUST(receives(p, received++));
	MUST_EQ(resize(p->srq, 2), 0);
	MUST_EQ(post_recv(p, posted, 0, 100), 0);
	MUST_EQ(post_recv(p, posted + 1, 0, 100), 0);
	MUST_EQ(post_recv(p, posted + 2, 0, 100), ENOMEM);
	MUST(receives(p, posted) && receives(p, posted + 1));
	return true;
}

ON_PAIR(resizes, resize_body, .srq = true)

static void *poster(void *arg)
{
	struct pair *p = arg;

	for (uint64_t n = 0; n < 4000;)
		if (!post_recv(p, n, 0, 100))
			n++;
		else
			sched_yield();
	return NULL;
}

static bool traffic_body(struct pair *p)
{
	pthread_t thread;

	MUST_EQ(pthread_create(&thread, NULL, poster, p), 0);
	for (uint64_t n = 0; n < 4000; n++) {
		MUST(receives(p, n));
		if (n % 16 == 0) {
			int err = resize(p->srq, QUEUE << n / 16 % 3);

			MUST(err == 0 || err == EINVAL); /* as full as it is just then */
		}
	}
	MUST_EQ(pthread_join(thread, NULL), 0);
	return true;
}

ON_PAIR(resizes_under_traffic, traffic_body, .srq = true)

static bool limit_body(struct pair *p)
{
	for (uint64_t i = 0; i < 6; i++)
		MUST_EQ(post_recv(p, i, 0, 100), 0);
	MUST_EQ(limit(p->srq, 4), 0);
	MUST_EQ(query(p->srq).srq_limit, 4);
	MUST(receives(p, 0) && receives(p, 1));
	/* "once the number of WRs in the SRQ drops below srq_limit": four are left */
	MUST(no_async_event());
	MUST(receives(p, 2));
	MUST(take_async(IBV_EVENT_SRQ_LIMIT_REACHED, p->srq));
	/*
	 * "If the value returned for srq_limit is 0, then the [...] event is not (or no longer)
	 * armed"
	 */
	MUST_EQ(query(p->srq).srq_limit, 0);
	MUST(receives(p, 3) && receives(p, 4));
	MUST(no_async_event());
	/* "until the event is rearmed": one is left, which is below already */
	MUST_EQ(limit(p->srq, 2), 0);
	MUST(take_async(IBV_EVENT_SRQ_LIMIT_REACHED, p->srq));
	MUST_EQ(query(p->srq).srq_limit, 0);
	MUST(receives(p, 5));
	MUST(no_async_event());
	/* Disarmed before it is reached. */
	for (uint64_t i = 0; i < 3; i++)
		MUST_EQ(post_recv(p, i, 0, 100), 0);
	MUST_EQ(limit(p->srq, 3), 0);
	MUST_EQ(limit(p->srq, 0), 0);
	MUST(receives(p, 0));
	MUST(no_async_event());
	/* Posting above the limit again does not fire it; dropping below does. */
	MUST_EQ(limit(p->srq, 2), 0);
	MUST_EQ(post_recv(p, 3, 0, 100), 0);
	MUST(receives(p, 1));
	MUST(no_async_event());
	MUST(receives(p, 2));
	MUST(take_async(IBV_EVENT_SRQ_LIMIT_REACHED, p->srq));
	MUST(receives(p, 3));
	return no_async_event();
}

ON_PAIR(limit_fires_once, limit_body, .srq = true)

const struct test_case man_cases[] = {
	CASE(invalid_attributes_change_nothing),
	CASE(resizes),
	CASE(resizes_under_traffic),
	CASE(limit_fires_once),
	{ 0 },
};
