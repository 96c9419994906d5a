/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long tsan */
/*
 * ibv_modify_cq(3): cq_count is the "number of completions per event", cq_period is "in micro
 * seconds". A count below 2 or a period of 0 is no moderation; errors are not withheld.
 */
#include <time.h>

#include "man.h"

#define LONG_US	 60000
#define SHORT_US 2000

static int moderate(struct ibv_cq *cq, int count, int period)
{
	struct ibv_modify_cq_attr a = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					.moderate = { (uint16_t)count, (uint16_t)period } };

	return ibv_modify_cq(cq, &a);
}

static bool refuses(void)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 10, NULL, NULL, 0);
	struct ibv_modify_cq_attr a = { .attr_mask = 0 };

	MUST(cq);
	/* "based on the given cq_attr->attr_mask" */
	MUST_EQ(ibv_modify_cq(cq, &a), EINVAL);
	a.attr_mask = IBV_CQ_ATTR_MODERATE | 1u << 5;
	MUST_EQ(ibv_modify_cq(cq, &a), EOPNOTSUPP);
	MUST_EQ(moderate(cq, UINT16_MAX, UINT16_MAX), 0);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	return true;
}

static bool device_says_what_it_can(void)
{
	struct ibv_device_attr_ex a;

	MUST_EQ(ibv_query_device_ex(ctx, NULL, &a), 0);
	MUST_EQ(a.cq_mod_caps.max_cq_count, UINT16_MAX);
	MUST_EQ(a.cq_mod_caps.max_cq_period, UINT16_MAX);
	return true;
}

/*
 * Four completions, and their event. True in *in_time if it came before the period could have
 * brought it.
 */
static bool four(struct pair *p, bool *in_time)
{
	long long start = clock_ns(CLOCK_MONOTONIC);

	MUST_EQ(ibv_req_notify_cq(p->cq[1], 0), 0);
	for (int i = 0; i < 3; i++)
		MUST(message(p, 0));
	if (readable(p->channel->fd, 0))
		MUST(clock_ns(CLOCK_MONOTONIC) - start >= UINT16_MAX * 1000ll);
	MUST(message(p, 0));
	MUST(take_cq_event(p->channel, p->cq[1]));
	*in_time = clock_ns(CLOCK_MONOTONIC) - start < UINT16_MAX * 1000ll;
	/* One event, unless the period brought the first of two in the middle. */
	return !*in_time || no_cq_event(p->channel);
}

static bool count_body(struct pair *p)
{
	bool in_time = false;

	MUST_EQ(moderate(p->cq[1], 4, UINT16_MAX), 0);
	/* This machine may be slow once, but not always. */
	for (int i = 0; i < 20 && !in_time; i++)
		MUST(four(p, &in_time));
	MUST(in_time);
	return true;
}

ON_PAIR(event_for_so_many_completions, count_body, .channel = true)

static bool period_body(struct pair *p)
{
	long long start, took;

	MUST_EQ(moderate(p->cq[1], 1000, LONG_US), 0);
	/*
	 * Asleep in poll(2), and in ibv_get_cq_event(3): never before its time, and it does come.
	 */
	for (int blocking = 0; blocking < 2; blocking++) {
		MUST_EQ(ibv_req_notify_cq(p->cq[1], 0), 0);
		start = clock_ns(CLOCK_MONOTONIC);
		MUST(message(p, 0));
		if (blocking) {
			struct ibv_cq *cq;
			void *context;

			MUST_EQ(ibv_get_cq_event(p->channel, &cq, &context), 0);
			ibv_ack_cq_events(cq, 1);
		} else {
			MUST(take_cq_event(p->channel, p->cq[1]));
		}
		took = clock_ns(CLOCK_MONOTONIC) - start;
		MUST(took >= LONG_US * 1000ll);
		MUST(no_cq_event(p->channel));
	}
	return true;
}

ON_PAIR(event_after_the_period, period_body, .channel = true)

static bool off_body(struct pair *p)
{
	/* Withheld events are not lost when moderation ends. */
	MUST_EQ(moderate(p->cq[1], 1000, UINT16_MAX), 0);
	MUST_EQ(ibv_req_notify_cq(p->cq[1], 0), 0);
	MUST(message(p, 0));
	MUST_EQ(moderate(p->cq[1], 0, 0), 0);
	MUST(take_cq_event(p->channel, p->cq[1]));
	/* A count or period of 0, or a count of 1, is no moderation. */
	for (int i = 0; i < 3; i++) {
		MUST_EQ(moderate(p->cq[1],
				 i == 0 ? 1 :
				 i == 1 ? 100 :
					  0,
				 i == 1 ? 0 : UINT16_MAX),
			0);
		MUST_EQ(ibv_req_notify_cq(p->cq[1], 0), 0);
		MUST(message(p, 0));
		MUST(readable(p->channel->fd, WAIT_MS));
		MUST(take_cq_event(p->channel, p->cq[1]));
		MUST(no_cq_event(p->channel));
	}
	return true;
}

ON_PAIR(switched_off, off_body, .channel = true)

static bool error_body(struct pair *p)
{
	MUST_EQ(moderate(p->cq[1], 1000, UINT16_MAX), 0);
	MUST_EQ(ibv_req_notify_cq(p->cq[1], 1), 0);
	MUST_EQ(post_recv(p, 1, 0, 100), 0);
	MUST_EQ(qp_to_state(p->qp[1], IBV_QPS_ERR), 0);
	MUST(take_cq_event(p->channel, p->cq[1]));
	return true;
}

ON_PAIR(errors_are_told_at_once, error_body, .channel = true)

static bool solicited_body(struct pair *p)
{
	MUST_EQ(moderate(p->cq[1], 2, SHORT_US), 0);
	MUST_EQ(ibv_req_notify_cq(p->cq[1], 1), 0);
	for (int i = 0; i < 5; i++)
		MUST(message(p, 0));
	usleep(2 * SHORT_US); /* can only miss the bug, never make one */
	MUST(no_cq_event(p->channel));
	MUST(message(p, IBV_SEND_SOLICITED));
	MUST(take_cq_event(p->channel, p->cq[1]));
	return true;
}

ON_PAIR(unsolicited_ones_do_not_count, solicited_body, .channel = true)

static bool gone_body(struct pair *p)
{
	/* A CQ that is destroyed with an event withheld: nothing of it is left. */
	MUST_EQ(moderate(p->cq[1], 1000, SHORT_US), 0);
	MUST_EQ(ibv_req_notify_cq(p->cq[1], 0), 0);
	MUST(message(p, 0));
	MUST_EQ(ibv_destroy_qp(p->qp[1]), 0);
	p->qp[1] = NULL;
	MUST_EQ(ibv_destroy_cq(p->cq[1]), 0);
	p->cq[1] = NULL;
	MUST(!readable(p->channel->fd, 2 * SHORT_US / 1000));
	return true;
}

ON_PAIR(destroyed_while_withheld, gone_body, .channel = true)

const struct test_case man_cases[] = {
	CASE(refuses),
	CASE(device_says_what_it_can),
	CASE(event_for_so_many_completions),
	CASE(event_after_the_period),
	CASE(switched_off),
	CASE(errors_are_told_at_once),
	CASE(unsolicited_ones_do_not_count),
	CASE(destroyed_while_withheld),
	{ 0 },
};
