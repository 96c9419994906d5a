/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion channels and asynchronous events: when and how often they come, which threads wait,
 * and how the descriptors behave.
 */
#include <poll.h>
#include <pthread.h>

#include "contract.h"

static bool one_shot_body(struct pair *p)
{
	struct ibv_cq *cq;
	void *context;

	MUST(no_cq_event(p->channel));
	MUST(message(p, 0));
	MUST(no_cq_event(p->channel)); /* not armed */
	MUST_EQ(ibv_req_notify_cq(p->cq[1], 0), 0);
	MUST(message(p, 0) && message(p, 0));
	MUST(readable(p->channel->fd, WAIT_MS));
	MUST_EQ(ibv_get_cq_event(p->channel, &cq, &context), 0);
	MUST(cq == p->cq[1] && context == p);
	ibv_ack_cq_events(cq, 1);
	MUST(no_cq_event(p->channel)); /* one for two completions */
	MUST(!readable(p->channel->fd, 0));
	return true;
}

ON_PAIR(get_cq_event__one_shot, one_shot_body, .channel = true)

static bool solicited_body(struct pair *p)
{
	struct ibv_cq *cq;
	void *context;

	MUST_EQ(ibv_req_notify_cq(p->cq[1], 1), 0);
	MUST(message(p, 0));
	MUST(no_cq_event(p->channel));
	MUST(message(p, IBV_SEND_SOLICITED));
	MUST(readable(p->channel->fd, WAIT_MS));
	MUST_EQ(ibv_get_cq_event(p->channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	MUST(no_cq_event(p->channel));
	return true;
}

ON_PAIR(req_notify_cq__solicited_only, solicited_body, .channel = true)

static bool solicited_error_body(struct pair *p)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	struct ibv_cq *cq;
	void *context;

	MUST_EQ(post_recv(p, 1, 0, 100), 0);
	MUST_EQ(ibv_req_notify_cq(p->cq[1], 1), 0);
	MUST_EQ(ibv_modify_qp(p->qp[1], &a, IBV_QP_STATE), 0);
	MUST(readable(p->channel->fd, WAIT_MS));
	MUST_EQ(ibv_get_cq_event(p->channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	return true;
}

ON_PAIR(req_notify_cq__solicited_only_fires_on_errors, solicited_error_body, .channel = true)

/* A thread sleeps in ibv_get_cq_event() until this one sends. */
static void *sleeper(void *arg)
{
	struct pair *p = arg;
	struct ibv_cq *cq = NULL;
	void *context;

	if (ibv_get_cq_event(p->channel, &cq, &context))
		return NULL;
	ibv_ack_cq_events(cq, 1);
	return cq;
}

static bool wakes_body(struct pair *p)
{
	pthread_t thread;
	void *got;

	MUST_EQ(post_recv(p, 1, 0, 100), 0);
	MUST_EQ(ibv_req_notify_cq(p->cq[1], 0), 0);
	MUST_EQ(pthread_create(&thread, NULL, sleeper, p), 0);
	MUST_EQ(post_send(p, 1, 0, 10, 0), 0);
	/* No thread polls here: the sleeper and the library must do it. */
	MUST_EQ(pthread_join(thread, &got), 0);
	MUST(got == p->cq[1]);
	return true;
}

ON_PAIR(get_cq_event__wakes_a_sleeper, wakes_body, .channel = true)

static bool waits_body(struct pair *p)
{
	struct destruction d;
	struct ibv_cq *cq;
	void *context;

	MUST_EQ(ibv_req_notify_cq(p->cq[1], 0), 0);
	MUST(message(p, 0));
	MUST_EQ(ibv_get_cq_event(p->channel, &cq, &context), 0);
	/* Armed and fired again, not taken: it goes with the CQ. */
	MUST_EQ(ibv_req_notify_cq(p->cq[1], 0), 0);
	MUST(message(p, 0));
	MUST_EQ(ibv_destroy_comp_channel(p->channel), EBUSY);
	MUST_EQ(ibv_destroy_qp(p->qp[1]), 0);
	p->qp[1] = NULL;
	MUST(destroy_begins(&d, destroy_cq, p->cq[1]));
	ibv_ack_cq_events(cq, 1);
	MUST(destroy_ends(&d));
	p->cq[1] = NULL;
	MUST(!readable(p->channel->fd, 0));
	return true;
}

ON_PAIR(destroy_cq__waits_for_acknowledgement, waits_body, .channel = true)

static bool srq_limit_body(struct pair *p)
{
	struct ibv_srq_attr a = { .srq_limit = 3 };
	struct ibv_async_event event;
	struct ibv_wc wc;

	for (int i = 0; i < 5; i++)
		MUST_EQ(post_recv(p, (uint64_t)i, 0, 100), 0);
	MUST_EQ(ibv_modify_srq(p->srq, &a, IBV_SRQ_LIMIT), 0);
	MUST_EQ(ibv_query_srq(p->srq, &a), 0);
	MUST_EQ(a.srq_limit, 3);
	for (int i = 0; i < 4; i++) {
		MUST_EQ(post_send(p, 1, 0, 10, 0), 0);
		MUST(wait_wc(p->cq[1], &wc));
		if (i < 2)
			MUST(no_async_event()); /* three are left: not fewer than the limit */
	}
	MUST(readable(ctx->async_fd, WAIT_MS));
	MUST_EQ(ibv_get_async_event(ctx, &event), 0);
	MUST_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	MUST(event.element.srq == p->srq);
	ibv_ack_async_event(&event);
	MUST(no_async_event());
	MUST(!readable(ctx->async_fd, 0));
	MUST_EQ(ibv_query_srq(p->srq, &a), 0);
	MUST_EQ(a.srq_limit, 0);
	return true;
}

ON_PAIR(modify_srq__limit_fires_once, srq_limit_body, .srq = true)

static bool drained_body(struct pair *p)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ibv_async_event event;

	MUST(message(p, 0));
	MUST_EQ(ibv_modify_qp(p->qp[0], &a, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	MUST(readable(ctx->async_fd, WAIT_MS));
	MUST_EQ(ibv_get_async_event(ctx, &event), 0);
	MUST_EQ(event.event_type, IBV_EVENT_SQ_DRAINED);
	MUST(event.element.qp == p->qp[0]);
	ibv_ack_async_event(&event);
	a.qp_state = IBV_QPS_RTS;
	MUST_EQ(ibv_modify_qp(p->qp[0], &a, IBV_QP_STATE), 0);
	MUST(message(p, 0));
	return true;
}

ON_PAIR(modify_qp__drained_event, drained_body)

static bool last_wqe_body(struct pair *p)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	struct ibv_async_event event;

	MUST_EQ(ibv_modify_qp(p->qp[1], &a, IBV_QP_STATE), 0);
	MUST(readable(ctx->async_fd, WAIT_MS));
	MUST_EQ(ibv_get_async_event(ctx, &event), 0);
	MUST_EQ(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	ibv_ack_async_event(&event);
	return true;
}

ON_PAIR(modify_qp__last_wqe_event_on_an_srq, last_wqe_body, .srq = true)

static bool overrun_body(struct pair *p)
{
	struct ibv_async_event event;
	struct ibv_wc wc[4];
	bool cq_err = false;

	/* Room for two completions, three sends. The CQ's error takes its QP along. */
	for (int i = 0; i < 3; i++)
		MUST_EQ(post_recv(p, (uint64_t)i, 0, 100), 0);
	for (int i = 0; i < 3; i++)
		MUST_EQ(post_send(p, (uint64_t)i, 0, 10, IBV_SEND_SIGNALED), 0);
	while (!cq_err) {
		MUST(readable(ctx->async_fd, WAIT_MS));
		MUST_EQ(ibv_get_async_event(ctx, &event), 0);
		if (event.event_type == IBV_EVENT_CQ_ERR) {
			MUST(event.element.cq == p->cq[0] || event.element.cq == p->cq[1]);
			cq_err = true;
		}
		ibv_ack_async_event(&event);
	}
	MUST(ibv_poll_cq(p->cq[0], 4, wc) <= 2);
	/* What else is queued goes with the objects. */
	return true;
}

ON_PAIR(poll_cq__overrun, overrun_body, .cqe = 2)

/* After all others: the pairs above must not have left anything allocated. */
static bool async__queue_is_empty_in_the_end(void)
{
	return no_async_event();
}

const struct test_case event_cases[] = {
	CASE(get_cq_event__one_shot),
	CASE(req_notify_cq__solicited_only),
	CASE(req_notify_cq__solicited_only_fires_on_errors),
	CASE(get_cq_event__wakes_a_sleeper),
	CASE(destroy_cq__waits_for_acknowledgement),
	CASE(modify_srq__limit_fires_once),
	CASE(modify_qp__drained_event),
	CASE(modify_qp__last_wqe_event_on_an_srq),
	CASE(poll_cq__overrun),
	CASE(async__queue_is_empty_in_the_end),
	{ 0 },
};
