/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long tsan */
/* ibv_req_notify_cq(3) */
#include "man.h"

static bool any_body(struct pair *p)
{
	/* "a completion event is generated for any new CQE": receive, unsolicited */
	MUST_EQ(ibv_req_notify_cq(p->cq[1], 0), 0);
	MUST(message(p, 0));
	MUST(take_cq_event(p->channel, p->cq[1]));
	/* and a solicited one */
	MUST_EQ(ibv_req_notify_cq(p->cq[1], 0), 0);
	MUST(message(p, IBV_SEND_SOLICITED));
	MUST(take_cq_event(p->channel, p->cq[1]));
	return true;
}

ON_PAIR(any_new_entry_makes_an_event, any_body, .channel = true)

static bool new_body(struct pair *p)
{
	struct ibv_wc wc;

	/* "Upon the addition of a new CQ entry": an entry older than the request does not count */
	MUST_EQ(post_recv(p, 1, 0, 100), 0);
	MUST_EQ(post_send(p, 1, 0, 10, IBV_SEND_SIGNALED), 0);
	MUST(wait_wc(p->cq[0], &wc)); /* acknowledged, so it has been received */
	MUST_EQ(ibv_req_notify_cq(p->cq[1], 0), 0);
	MUST(no_cq_event(p->channel));
	MUST(message(p, 0)); /* polls the old one */
	MUST(take_cq_event(p->channel, p->cq[1]));
	return true;
}

ON_PAIR(an_old_entry_makes_none, new_body, .channel = true)

static bool one_shot_body(struct pair *p)
{
	/* "Only one completion event will be generated for each call" */
	MUST_EQ(ibv_req_notify_cq(p->cq[1], 0), 0);
	for (int i = 0; i < 5; i++)
		MUST(message(p, IBV_SEND_SOLICITED));
	MUST(take_cq_event(p->channel, p->cq[1]));
	MUST(no_cq_event(p->channel));
	MUST(!readable(p->channel->fd, 0));
	/* Two requests before the event are one shot still. */
	MUST_EQ(ibv_req_notify_cq(p->cq[1], 0), 0);
	MUST_EQ(ibv_req_notify_cq(p->cq[1], 0), 0);
	MUST(message(p, 0));
	MUST(take_cq_event(p->channel, p->cq[1]));
	MUST(message(p, 0));
	MUST(no_cq_event(p->channel));
	return true;
}

ON_PAIR(the_request_is_one_shot, one_shot_body, .channel = true)

static bool solicited_body(struct pair *p)
{
	/* "All other successful receive completions [...] unsolicited" */
	MUST_EQ(ibv_req_notify_cq(p->cq[1], 1), 0);
	for (int i = 0; i < 3; i++)
		MUST(message(p, 0));
	MUST(no_cq_event(p->channel));
	/*
	 * "a receive completion for a message with the Solicited Event header bit set"; it is armed
	 * still
	 */
	MUST(message(p, IBV_SEND_SOLICITED));
	MUST(take_cq_event(p->channel, p->cq[1]));
	MUST(no_cq_event(p->channel));
	/* "If the argument solicited_only is non-zero" */
	MUST_EQ(ibv_req_notify_cq(p->cq[1], -5), 0);
	MUST(message(p, 0));
	MUST(no_cq_event(p->channel));
	/*
	 * A request for any, made while one for solicited ones stands, is for any; and it is not
	 * narrowed by a later one.
	 */
	MUST_EQ(ibv_req_notify_cq(p->cq[1], 0), 0);
	MUST_EQ(ibv_req_notify_cq(p->cq[1], 1), 0);
	MUST(message(p, 0));
	MUST(take_cq_event(p->channel, p->cq[1]));
	return true;
}

ON_PAIR(solicited_only_is_for_solicited_receives, solicited_body, .channel = true)

/* A QP to itself whose sends complete on a CQ with a channel. */
static bool sends_on_channel(bool (*body)(struct ibv_comp_channel *, struct ibv_cq *,
					  struct ibv_cq *, struct ibv_qp *))
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct ibv_cq *send = ibv_create_cq(ctx, 10, NULL, ch, 0),
		      *recv = ibv_create_cq(ctx, 10, NULL, NULL, 0);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_qp *qp;
	bool good;

	MUST(ch && send && recv && pd && (qp = qp_to_itself(pd, send, recv, NULL)));
	good = body(ch, send, recv, qp);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_destroy_cq(send), 0);
	MUST_EQ(ibv_destroy_cq(recv), 0);
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return good;
}

static bool send_body(struct ibv_comp_channel *ch, struct ibv_cq *send, struct ibv_cq *recv,
		      struct ibv_qp *qp)
{
	struct ibv_wc wc;

	/* "any successful send completion is unsolicited", whatever the message's header says */
	MUST_EQ(ibv_req_notify_cq(send, 1), 0);
	MUST(ping(qp, 1, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED));
	MUST(wait_wc(send, &wc) && wait_wc(recv, &wc));
	MUST(no_cq_event(ch));
	/* "or if the status is not successful" */
	MUST_EQ(qp_to_state(qp, IBV_QPS_ERR), 0);
	MUST(ping(qp, 2, IBV_SEND_SIGNALED));
	MUST(take_cq_event(ch, send));
	MUST(wait_wc(send, &wc));
	MUST_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
	return true;
}

static bool solicited_only_and_sends(void)
{
	return sends_on_channel(send_body);
}

static bool send_any_body(struct ibv_comp_channel *ch, struct ibv_cq *send, struct ibv_cq *recv,
			  struct ibv_qp *qp)
{
	struct ibv_wc wc;

	MUST_EQ(ibv_req_notify_cq(send, 0), 0);
	MUST(ping(qp, 1, IBV_SEND_SIGNALED));
	MUST(take_cq_event(ch, send));
	MUST(wait_wc(send, &wc) && wait_wc(recv, &wc));
	/* An unsignalled send makes no CQE, so no event. */
	MUST_EQ(ibv_req_notify_cq(send, 0), 0);
	MUST(ping(qp, 2, 0) && wait_wc(recv, &wc));
	/* the second goes out when the first is acknowledged, or after */
	MUST(ping(qp, 3, 0) && wait_wc(recv, &wc));
	MUST(no_cq_event(ch));
	return true;
}

static bool a_send_makes_an_event(void)
{
	return sends_on_channel(send_any_body);
}

static bool no_channel_body(struct pair *p)
{
	/*
	 * "the completion channel associated with the CQ": without one there is nothing to add to
	 */
	MUST_EQ(ibv_req_notify_cq(p->cq[0], 0), 0);
	MUST_EQ(ibv_req_notify_cq(p->cq[1], 1), 0);
	MUST(message(p, IBV_SEND_SOLICITED));
	return true;
}

ON_PAIR(without_a_channel, no_channel_body)

const struct test_case man_cases[] = {
	CASE(any_new_entry_makes_an_event),
	CASE(an_old_entry_makes_none),
	CASE(the_request_is_one_shot),
	CASE(solicited_only_is_for_solicited_receives),
	CASE(solicited_only_and_sends),
	CASE(a_send_makes_an_event),
	CASE(without_a_channel),
	{ 0 },
};
