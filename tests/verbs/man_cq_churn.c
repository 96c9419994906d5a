/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * ibv_resize_cq(3) and ibv_destroy_qp(3) under traffic: one thread resizes a CQ, another makes QPs
 * on it, flushes their receives and destroys or resets them, while messages complete there and the
 * program sleeps on its events. No completion of the others is lost, doubled or out of order.
 */
#include "man.h"

#define MESSAGES 6000u
#define WINDOW	 QUEUE
#define FLUSHED	 UINT64_MAX /* wr_id */

struct churn {
	struct pair *p;
	atomic_uint resizes, qps;
	atomic_bool failed;
};

#define ENOUGH 10u /* resizes, and QPs that came and went, before the traffic may end */

static atomic_bool stop;

static void *resizer(void *arg)
{
	struct churn *c = arg;
	unsigned int x = 1;

	while (!atomic_load(&stop)) {
		int err;

		x = x * 1103515245 + 12345;
		err = ibv_resize_cq(c->p->cq[1], 40 + (int)(x >> 16) % 400);
		c->failed |= err && err != EINVAL; /* as full as it is just then */
		c->resizes += !err;
	}
	return NULL;
}

static bool qp_flush(struct pair *p, bool reset)
{
	struct ibv_qp_init_attr init = { .send_cq = p->cq[1], .recv_cq = p->cq[1],
					 .qp_type = IBV_QPT_RC, .cap = { 1, QUEUE, 1, 1, 0 } };
	struct ibv_recv_wr wr = { .wr_id = FLUSHED }, *bad;
	struct ibv_qp *qp = ibv_create_qp(p->pd, &init);

	MUST(qp && !qp_to_init(qp));
	for (int i = 0; i < QUEUE; i++)
		MUST_EQ(ibv_post_recv(qp, &wr, &bad), 0);
	MUST_EQ(qp_to_state(qp, IBV_QPS_ERR), 0);
	if (reset)
		MUST_EQ(qp_to_state(qp, IBV_QPS_RESET), 0);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	return true;
}

static void *churner(void *arg)
{
	struct churn *c = arg;

	while (!atomic_load(&stop) && !c->failed) {
		c->failed |= !qp_flush(c->p, c->qps & 1);
		c->qps++;
	}
	return NULL;
}

/* Polls all present completions. Returns false if one is wrong. */
static bool cq_take(struct pair *p, uint64_t *got, uint64_t *posted)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(p->cq[1], 1, &wc)) == 1) {
		if (wc.wr_id == FLUSHED) {
			MUST_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
			MUST(wc.qp_num != p->qp[1]->qp_num);
			continue;
		}
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST_EQ(wc.wr_id, *got);
		MUST_EQ(wc.byte_len, *got % 90);
		MUST_EQ(wc.qp_num, p->qp[1]->qp_num);
		++*got;
		MUST_EQ(post_recv(p, (*posted)++, 0, 100), 0);
	}
	MUST_EQ(n, 0);
	return true;
}

static bool churned(struct churn *a, struct churn *b)
{
	return (a->resizes > ENOUGH && b->qps > ENOUGH) || a->failed || b->failed;
}

static bool traffic(struct pair *p, struct churn *a, struct churn *b)
{
	uint64_t sent = 0, acked = 0, got = 0, posted = 0;
	long long late_ns = clock_ns(CLOCK_MONOTONIC) + WAIT_MS * 1000000ll;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	while (posted < WINDOW)
		MUST_EQ(post_recv(p, posted++, 0, 100), 0);
	MUST_EQ(ibv_req_notify_cq(p->cq[1], 0), 0);
	while (got < MESSAGES || !churned(a, b) || got < sent) {
		const uint64_t before = got;

		while ((sent < MESSAGES || !churned(a, b)) && sent - acked < WINDOW &&
		       sent - got < WINDOW) {
			MUST_EQ(post_send(p, sent, 0, (uint32_t)(sent % 90), IBV_SEND_SIGNALED),
				0);
			sent++;
		}
		MUST(readable(p->channel->fd, WAIT_MS));
		MUST_EQ(ibv_get_cq_event(p->channel, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
		MUST_EQ(ibv_req_notify_cq(cq, 0), 0);
		MUST(cq_take(p, &got, &posted));
		/* The QPs that come and go make events as well: they are no progress. */
		if (got != before)
			late_ns = clock_ns(CLOCK_MONOTONIC) + WAIT_MS * 1000000ll;
		MUST(clock_ns(CLOCK_MONOTONIC) < late_ns);
		while (ibv_poll_cq(p->cq[0], 1, &wc) == 1) {
			MUST_EQ(wc.status, IBV_WC_SUCCESS);
			MUST_EQ(wc.wr_id, acked);
			acked++;
		}
	}
	return true;
}

static bool churn_body(struct pair *p)
{
	struct churn a = { .p = p }, b = { .p = p };
	pthread_t thread[2];
	bool good;

	atomic_store(&stop, false);
	MUST_EQ(pthread_create(&thread[0], NULL, resizer, &a), 0);
	MUST_EQ(pthread_create(&thread[1], NULL, churner, &b), 0);
	good = traffic(p, &a, &b);
	atomic_store(&stop, true);
	MUST_EQ(pthread_join(thread[0], NULL) | pthread_join(thread[1], NULL), 0);
	MUST(good && !a.failed && !b.failed);
	return true;
}

ON_PAIR(completions_of_others_stay, churn_body, .channel = true)

const struct test_case man_cases[] = {
	CASE(completions_of_others_stay),
	{ 0 },
};
