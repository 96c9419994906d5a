/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long tsan */
/*
 * ibv_get_cq_event(3), ibv_ack_cq_events(3). The page's two examples run over a real path:
 * tests/netns/cq_example.c.
 */
#include <signal.h>

#include "man.h"

static bool fills_body(struct pair *p)
{
	struct ibv_cq *cq = NULL;
	void *context = NULL;

	MUST_EQ(ibv_req_notify_cq(p->cq[1], 0), 0);
	MUST(message(p, 0));
	/*
	 * "Fills the arguments cq with the CQ that got the event and cq_context with the CQ's
	 * context"
	 */
	MUST_EQ(ibv_get_cq_event(p->channel, &cq, &context), 0);
	MUST(cq == p->cq[1] && context == p);
	ibv_ack_cq_events(cq, 1);
	return true;
}

ON_PAIR(fills_its_arguments, fills_body, .channel = true)

/* "returns 0 on success, and -1 on error": without an event, when the channel does not block */
static bool nonblocking(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct ibv_cq *cq = (void *)1;
	void *context;

	MUST(ch && set_nonblocking(ch->fd, true));
	for (int i = 0; i < 3; i++) {
		errno = 0;
		MUST_EQ(ibv_get_cq_event(ch, &cq, &context), -1);
		MUST_EQ(errno, EAGAIN);
	}
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	return true;
}

static bool ack_body(struct pair *p)
{
	struct destruction d;
	struct ibv_cq *cq;
	void *context;

	for (int i = 0; i < 5; i++) {
		MUST_EQ(ibv_req_notify_cq(p->cq[1], 0), 0);
		MUST(message(p, 0));
		MUST_EQ(ibv_get_cq_event(p->channel, &cq, &context), 0);
	}
	MUST_EQ(ibv_destroy_qp(p->qp[1]), 0);
	p->qp[1] = NULL;
	/* "destroying a CQ will wait for all completion events to be acknowledged" */
	MUST(destroy_begins(&d, destroy_cq, p->cq[1]));
	/* "acking several completion events in one call": three of five are not all */
	ibv_ack_cq_events(cq, 3);
	MUST(destroy_waits(&d));
	ibv_ack_cq_events(cq, 1);
	MUST(destroy_waits(&d));
	ibv_ack_cq_events(cq, 1);
	MUST(destroy_ends(&d));
	p->cq[1] = NULL;
	return true;
}

ON_PAIR(destroy_waits_for_each_acknowledgement, ack_body, .channel = true)

/* ---- several threads on one channel, several CQs ---- */

#define THREADS 3
#define CQS	4
#define ROUNDS	500

static struct ibv_comp_channel *shared;
static atomic_int got[CQS];

static void *getter(void *arg)
{
	struct ibv_cq *cq;
	void *context;

	for (;;) {
		if (ibv_get_cq_event(shared, &cq, &context))
			return NULL;
		/* Before the acknowledgement: after it the CQ may be destroyed. */
		if (cq->cq_context != context)
			return NULL;
		if (context == &shared) {
			ibv_ack_cq_events(cq, 1);
			return &shared;
		}
		atomic_fetch_add((atomic_int *)context, 1);
		ibv_ack_cq_events(cq, 1);
	}
}

static bool several_threads(void)
{
	struct loops l;
	pthread_t thread[THREADS];
	struct ibv_wc wc;

	MUST(loops_open(&l) && (shared = ibv_create_comp_channel(ctx)));
	for (int i = 0; i < CQS; i++)
		MUST(loops_add(&l, &got[i], shared, 0));
	MUST(loops_add(&l, &shared, shared, 0)); /* CQS: the end */
	for (int i = 0; i < THREADS; i++)
		MUST_EQ(pthread_create(&thread[i], NULL, getter, NULL), 0);
	/* Each event is got once, by one of them. */
	for (int n = 1; n <= ROUNDS; n++) {
		for (int i = 0; i < CQS; i++) {
			MUST_EQ(ibv_req_notify_cq(l.cq[i], 0), 0);
			MUST(ping(l.qp[i], (uint64_t)n, 0));
		}
		for (int i = 0; i < CQS; i++) {
			MUST_EQ(counted_to(&got[i], n), n);
			MUST(wait_wc(l.cq[i], &wc));
		}
	}
	/* One event ends one thread. */
	for (int i = 0; i < THREADS; i++)
		MUST(loops_event(&l, CQS));
	for (int i = 0; i < THREADS; i++) {
		void *how;

		MUST_EQ(pthread_join(thread[i], &how), 0);
		MUST(how == &shared);
	}
	MUST(loops_close(&l));
	for (int i = 0; i < CQS; i++)
		MUST_EQ(atomic_load(&got[i]), ROUNDS);
	MUST_EQ(ibv_destroy_comp_channel(shared), 0);
	return true;
}

/*
 * "a one-to-one correspondence": each request made its event, though none was read in that time;
 * and a CQ with two does not keep the others waiting
 */
static bool events_queue_up(void)
{
	static const int order[] = { 0, 1, 0, 0 };
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct loops l;

	MUST(ch && loops_open(&l) && loops_add(&l, NULL, ch, 0) && loops_add(&l, NULL, ch, 0));
	for (int n = 0; n < 4; n++)
		MUST(loops_event(&l, n == 3)); /* the other's is the last */
	for (int n = 0; n < 4; n++)
		MUST(take_cq_event(ch, l.cq[order[n]]));
	MUST(no_cq_event(ch));
	MUST(loops_close(&l));
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	return true;
}

/* An unread event is dropped with its CQ, and the others' stay. */
static bool undelivered_events_go_with_the_cq(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct loops l;

	MUST(ch && loops_open(&l));
	for (int i = 0; i < 3; i++)
		MUST(loops_add(&l, NULL, ch, 0) && loops_event(&l, i));
	MUST(loops_drop(&l, 1));
	MUST(take_cq_event(ch, l.cq[0]) && take_cq_event(ch, l.cq[2]));
	MUST(no_cq_event(ch));
	MUST(loops_close(&l));
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	return true;
}

/* The note of the example: at most one extra event, with an empty CQ. */
static bool extra_body(struct pair *p)
{
	struct ibv_wc wc;

	MUST_EQ(ibv_req_notify_cq(p->cq[1], 0), 0);
	MUST(message(p, 0));
	MUST(take_cq_event(p->channel, p->cq[1]));
	MUST_EQ(ibv_req_notify_cq(p->cq[1], 0), 0); /* step 4 */
	MUST(message(p, 0));			     /* added and polled in step 5 */
	MUST(take_cq_event(p->channel, p->cq[1]));
	MUST_EQ(ibv_poll_cq(p->cq[1], 1, &wc), 0);
	MUST(no_cq_event(p->channel));
	return true;
}

ON_PAIR(one_extra_event, extra_body, .channel = true)

static void on_signal(int sig)
{
}

/* A signal whose handler does not restart calls ends the wait, as it ends read(2). */
static bool interrupted(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct sigaction act = { .sa_handler = on_signal }, before;
	struct ibv_cq *cq;
	void *context;

	MUST(ch);
	MUST_EQ(sigaction(SIGALRM, &act, &before), 0);
	ualarm(20000, 20000); /* until it has hit the wait */
	MUST_EQ(ibv_get_cq_event(ch, &cq, &context), -1);
	MUST_EQ(errno, EINTR);
	ualarm(0, 0);
	sigaction(SIGALRM, &before, NULL);
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	return true;
}

const struct test_case man_cases[] = {
	CASE(fills_its_arguments),
	CASE(nonblocking),
	CASE(destroy_waits_for_each_acknowledgement),
	CASE(several_threads),
	CASE(events_queue_up),
	CASE(undelivered_events_go_with_the_cq),
	CASE(one_extra_event),
	CASE(interrupted),
	{ 0 },
};
