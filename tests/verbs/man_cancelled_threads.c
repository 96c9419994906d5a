/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * pthread_cancel(3) of a thread in a call of the library: the thread holds no lock, loses no event,
 * and other threads continue with the same objects. A thread that cancels itself before the call
 * ends at the call's first cancellation point, so each of them is tried.
 */

#include "../common/open_fds.h"
#include "cancelled.h"
#include "man.h"

static int get_async(void *arg)
{
	struct ibv_async_event event;

	(void)arg;
	return ibv_get_async_event(ctx, &event);
}

/* So many that the library draws new random numbers for the keys, under a lock. */
static int register_many(void *pd)
{
	static char memory[64];

	for (int i = 0; i < 1000; i++) {
		struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof(memory), 0);

		if (!mr || ibv_dereg_mr(mr))
			return 1;
	}
	return 0;
}

static bool regions_body(struct pair *p)
{
	struct cancelled c;

	MUST(cancelled_calls(&c, register_many, p->pd));
	MUST(c.returned);
	MUST_EQ(c.rc, 0);
	MUST_EQ(register_many(p->pd), 0);
	return true;
}

ON_PAIR(regions_are_registered, regions_body)

static int get_cq(void *channel)
{
	struct ibv_cq *cq;
	void *context;

	return ibv_get_cq_event(channel, &cq, &context);
}

/* An event of the SRQ, raised within the call. */
static int raise_limit(void *srq)
{
	struct ibv_srq_attr a = { .srq_limit = 1 };

	return ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT);
}

static bool async_waiting_body(struct pair *p)
{
	struct cancelled c;

	MUST_EQ(raise_limit(p->srq), 0);
	MUST(cancelled_calls(&c, get_async, NULL));
	MUST(!c.returned);
	return take_async(IBV_EVENT_SRQ_LIMIT_REACHED, p->srq) && no_async_event();
}

ON_PAIR(an_asynchronous_event_waits, async_waiting_body, .srq = true)

static bool async_raised_body(struct pair *p)
{
	struct cancelled c;

	MUST(cancelled_calls(&c, raise_limit, p->srq));
	MUST(c.returned);
	MUST_EQ(c.rc, 0);
	return take_async(IBV_EVENT_SRQ_LIMIT_REACHED, p->srq) && no_async_event();
}

ON_PAIR(an_asynchronous_event_is_raised, async_raised_body, .srq = true)

static bool async_sleeps_body(struct pair *p)
{
	MUST(cancelled_sleeps(get_async, NULL));
	MUST_EQ(raise_limit(p->srq), 0);
	return take_async(IBV_EVENT_SRQ_LIMIT_REACHED, p->srq) && no_async_event();
}

ON_PAIR(no_asynchronous_event_comes, async_sleeps_body, .srq = true)

static bool cq_waiting_body(struct pair *p)
{
	struct cancelled c;

	MUST_EQ(ibv_req_notify_cq(p->cq[1], 0), 0);
	MUST(message(p, IBV_SEND_SIGNALED));
	MUST(readable(p->channel->fd, WAIT_MS));
	MUST(cancelled_calls(&c, get_cq, p->channel));
	MUST(!c.returned);
	return take_cq_event(p->channel, p->cq[1]) && no_cq_event(p->channel);
}

ON_PAIR(a_completion_event_waits, cq_waiting_body, .channel = true)

static bool cq_sleeps_body(struct pair *p)
{
	MUST_EQ(ibv_req_notify_cq(p->cq[1], 0), 0);
	MUST(cancelled_sleeps(get_cq, p->channel));
	MUST(message(p, IBV_SEND_SIGNALED));
	return take_cq_event(p->channel, p->cq[1]) && no_cq_event(p->channel);
}

ON_PAIR(no_completion_event_comes, cq_sleeps_body, .channel = true)

static int send_message(void *pair)
{
	return !message(pair, IBV_SEND_SIGNALED);
}

/* Posting and polling are no cancellation points. */
static bool message_body(struct pair *p)
{
	struct cancelled c;

	for (int i = 0; i < 10; i++) {
		MUST(cancelled_calls(&c, send_message, p));
		MUST(c.returned);
		MUST_EQ(c.rc, 0);
	}
	return message(p, IBV_SEND_SIGNALED);
}

ON_PAIR(messages_are_sent, message_body)

/* ---- a destroy that waits for acknowledgements ---- */

static int destroy_srq_cancelled(void *srq)
{
	pthread_cancel(pthread_self());
	return ibv_destroy_srq(srq);
}

/* A thread that ended half-way would leave an object that no thread can use or destroy. */
static bool destroy_srq_waits(void)
{
	struct ibv_srq_init_attr init = { .attr = { QUEUE, 1, 0 } };
	struct ibv_async_event event;
	struct destruction d;
	struct ibv_srq *srq;
	struct ibv_pd *pd;

	MUST(pd = ibv_alloc_pd(ctx));
	MUST(srq = ibv_create_srq(pd, &init));
	MUST_EQ(raise_limit(srq), 0);
	MUST(next_async(&event));
	MUST(destroy_begins(&d, destroy_srq_cancelled, srq));
	ibv_ack_async_event(&event);
	MUST(destroy_ends(&d));
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return no_async_event();
}

static int destroy_cq_cancelled(void *cq)
{
	pthread_cancel(pthread_self());
	return ibv_destroy_cq(cq);
}

static bool destroy_cq_waits(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct destruction d;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	void *context;

	MUST(pd && channel);
	MUST(cq = ibv_create_cq(ctx, QUEUE, NULL, channel, 0));
	MUST(qp = qp_to_itself(pd, cq, cq, NULL));
	MUST_EQ(ibv_req_notify_cq(cq, 0), 0);
	MUST(ping(qp, 1, IBV_SEND_SIGNALED));
	MUST_EQ(ibv_get_cq_event(channel, &cq, &context), 0);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST(destroy_begins(&d, destroy_cq_cancelled, cq));
	ibv_ack_cq_events(cq, 1);
	MUST(destroy_ends(&d));
	MUST_EQ(ibv_destroy_comp_channel(channel), 0);
	return ibv_dealloc_pd(pd) == 0;
}

/* ---- everything else of a QP's life ---- */

static int make_and_destroy(void *arg)
{
	struct pair *p = arg;
	struct ibv_qp *qp = qp_to_itself(p->pd, p->cq[0], p->cq[0], NULL);

	return !qp || ibv_destroy_qp(qp);
}

static bool others_body(struct pair *p)
{
	struct cancelled c;

	MUST(cancelled_calls(&c, make_and_destroy, p));
	MUST(c.returned);
	MUST_EQ(c.rc, 0);
	MUST_EQ(make_and_destroy(p), 0);
	return message(p, IBV_SEND_SIGNALED);
}

ON_PAIR(a_queue_pair_is_made, others_body)

/* ---- calls that open descriptors: to read the kernel's tables, or a file ---- */

static int list_devices(void *arg)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	(void)arg;
	if (list)
		ibv_free_device_list(list);
	return !list;
}

static int query_port(void *arg)
{
	struct ibv_port_attr attr;

	(void)arg;
	return ibv_query_port(ctx, 1, &attr);
}

/* The library looks for the mapping of memory that it cannot fault in. */
static int register_constant(void *pd)
{
	static const char text[] = "constant";

	return ibv_reg_mr(pd, (void *)(uintptr_t)text, sizeof(text), IBV_ACCESS_LOCAL_WRITE) ||
	       errno != EFAULT;
}

static int reach_nobody(void *pd)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	struct ibv_ah *ah;

	if (ibv_query_gid(ctx, 1, 0, &attr.grh.dgid))
		return 1;
	attr.grh.dgid.raw[15] ^= 0x6a;
	ah = ibv_create_ah(pd, &attr);
	return ah && ibv_destroy_ah(ah);
}

static bool descriptors_body(struct pair *p)
{
	int (*const calls[])(void *) = { list_devices, query_port, register_constant,
					 reach_nobody };
	struct cancelled c;

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const unsigned before = open_fds();

		MUST(cancelled_calls(&c, calls[i], p->pd));
		MUST(c.returned);
		MUST_EQ(c.rc, 0);
		MUST_EQ(open_fds(), before);
	}
	return true;
}

ON_PAIR(descriptors_are_closed, descriptors_body)

const struct test_case man_cases[] = {
	CASE(descriptors_are_closed),
	CASE(regions_are_registered),
	CASE(an_asynchronous_event_waits),
	CASE(an_asynchronous_event_is_raised),
	CASE(no_asynchronous_event_comes),
	CASE(a_completion_event_waits),
	CASE(no_completion_event_comes),
	CASE(messages_are_sent),
	CASE(destroy_srq_waits),
	CASE(destroy_cq_waits),
	CASE(a_queue_pair_is_made),
	{ 0 },
};
