/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * CQs at their edges: what ibv_create_cq_ex(3), ibv_resize_cq(3), ibv_create_qp(3),
 * ibv_create_srq_ex(3) and ibv_req_notify_cq(3) say between them, and what adapters do.
 */
#include <pthread.h>
#include <sys/epoll.h>
#include <time.h>

#include "man.h"

#define ENTRIES 4

/* A CQ of ENTRIES and a PD. */
struct small {
	struct ibv_pd *pd;
	struct ibv_cq *sends, *cq;
	struct ibv_comp_channel *channel;
};

static bool small_open(struct small *s, uint32_t flags)
{
	struct ibv_cq_init_attr_ex a = { .cqe = ENTRIES,
					 .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					 .flags = flags };

	MUST(s->pd = ibv_alloc_pd(ctx));
	MUST(a.channel = s->channel = ibv_create_comp_channel(ctx));
	MUST(s->sends = ibv_create_cq(ctx, QUEUE, NULL, NULL, 0));
	MUST(s->cq = (struct ibv_cq *)ibv_create_cq_ex(ctx, &a));
	return true;
}

static bool small_close(struct small *s)
{
	MUST_EQ(ibv_destroy_cq(s->cq), 0);
	MUST_EQ(ibv_destroy_cq(s->sends), 0);
	MUST_EQ(ibv_destroy_comp_channel(s->channel), 0);
	MUST_EQ(ibv_dealloc_pd(s->pd), 0);
	return true;
}

/* n messages, each received before the next is sent; their completions stay where they are. */
static bool fill(struct small *s, struct ibv_qp *qp, uint64_t first, int n)
{
	struct ibv_wc wc;

	for (int i = 0; i < n; i++) {
		MUST(ping(qp, first + (uint64_t)i, IBV_SEND_SIGNALED) && wait_wc(s->sends, &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
	}
	return true;
}

static bool holds(struct ibv_cq *cq, uint64_t first, int n)
{
	struct ibv_wc wc;

	for (int i = 0; i < n; i++) {
		MUST_EQ(ibv_poll_cq(cq, 1, &wc), 1);
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST_EQ(wc.wr_id, first + (uint64_t)i);
	}
	return true;
}

/*
 * A QP's completions go with it, ibv_destroy_qp(3) and the RESET of ibv_modify_qp(3): then another
 * QP may leave as many.
 */
static bool purged(bool reset)
{
	struct ibv_qp *first, *second;
	struct small s;

	MUST(small_open(&s, 0));
	MUST((first = qp_to_itself(s.pd, s.sends, s.cq, NULL)) &&
	     (second = qp_to_itself(s.pd, s.sends, s.cq, NULL)));
	MUST(fill(&s, second, 50, 1) && fill(&s, first, 0, ENTRIES - 1));
	MUST_EQ(reset ? qp_to_state(first, IBV_QPS_RESET) : ibv_destroy_qp(first), 0);
	MUST(fill(&s, second, 51, ENTRIES - 1));
	MUST(no_async_event());
	MUST_EQ(qp_state_now(second), IBV_QPS_RTS);
	MUST(holds(s.cq, 50, ENTRIES));
	MUST_EQ(ibv_poll_cq(s.cq, 1, &(struct ibv_wc){ 0 }), 0);
	if (reset)
		MUST_EQ(ibv_destroy_qp(first), 0);
	MUST_EQ(ibv_destroy_qp(second), 0);
	return small_close(&s);
}

static bool destroyed_qps_leave_room(void)
{
	return purged(false);
}

static bool reset_qps_leave_room(void)
{
	return purged(true);
}

/*
 * "EINVAL: The CQ has outstanding completions that do not fit": what a QP has taken with it is
 * none.
 */
static bool resize_after_a_qp_has_gone(void)
{
	struct ibv_qp *qp;
	struct small s;

	MUST(small_open(&s, 0));
	MUST(qp = qp_to_itself(s.pd, s.sends, s.cq, NULL));
	MUST(fill(&s, qp, 0, ENTRIES));
	MUST_EQ(ibv_resize_cq(s.cq, 2), EINVAL);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_resize_cq(s.cq, 2), 0);
	MUST_EQ(ibv_resize_cq(s.cq, 2 * ENTRIES), 0);
	return small_close(&s);
}

/*
 * Between start_poll and end_poll of a CQ without a lock: the current entry is read to its end,
 * though its QP is destroyed.
 */
static bool entry_at_hand_stays(void)
{
	struct ibv_cq_init_attr_ex a = { .cqe = ENTRIES,
					 .wc_flags = IBV_WC_EX_WITH_QP_NUM,
					 .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					 .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED };
	struct ibv_poll_cq_attr start = { 0 };
	struct ibv_qp *first, *second;
	struct ibv_cq_ex *cq;
	struct small s;
	uint32_t qpn;

	MUST(small_open(&s, 0));
	MUST_EQ(ibv_destroy_cq(s.cq), 0);
	MUST(cq = ibv_create_cq_ex(ctx, &a));
	s.cq = ibv_cq_ex_to_cq(cq);
	MUST((first = qp_to_itself(s.pd, s.sends, s.cq, NULL)) &&
	     (second = qp_to_itself(s.pd, s.sends, s.cq, NULL)));
	MUST(fill(&s, first, 7, 1) && fill(&s, second, 50, 1) && fill(&s, first, 8, 1) &&
	     fill(&s, second, 51, 1));
	qpn = first->qp_num;
	MUST_EQ(ibv_start_poll(cq, &start), 0);
	MUST_EQ(cq->wr_id, 7);
	MUST_EQ(ibv_destroy_qp(first), 0);
	MUST_EQ(ibv_wc_read_qp_num(cq), qpn);
	MUST_EQ(ibv_next_poll(cq), 0);
	MUST_EQ(cq->wr_id, 50);
	MUST_EQ(ibv_next_poll(cq), 0);
	MUST_EQ(cq->wr_id, 51);
	MUST_EQ(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	MUST_EQ(ibv_destroy_qp(second), 0);
	return small_close(&s);
}

static void *resize(void *cq)
{
	return (void *)(intptr_t)ibv_resize_cq(cq, 2 * ENTRIES);
}

/*
 * Between start_poll and end_poll of a CQ with a lock another thread waits to resize it: this one
 * can call other verbs meanwhile.
 */
static bool resize_waits_for_the_reader(void)
{
	struct ibv_poll_cq_attr start = { 0 };
	struct ibv_cq_ex *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	pthread_t thread;
	struct small s;
	void *result;
	char byte;

	MUST(small_open(&s, 0));
	cq = (struct ibv_cq_ex *)s.cq;
	MUST(qp = qp_to_itself(s.pd, s.sends, s.cq, NULL));
	MUST(fill(&s, qp, 7, 2));
	MUST_EQ(ibv_start_poll(cq, &start), 0);
	MUST_EQ(pthread_create(&thread, NULL, resize, s.cq), 0);
	nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	MUST(mr = ibv_reg_mr(s.pd, &byte, 1, 0));
	MUST_EQ(cq->wr_id, 7);
	MUST_EQ(ibv_next_poll(cq), 0);
	MUST_EQ(cq->wr_id, 8);
	ibv_end_poll(cq);
	MUST_EQ(pthread_join(thread, &result), 0);
	MUST_EQ((intptr_t)result, 0);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	return small_close(&s);
}

/* IGNORE_OVERRUN: "a CQE is always written to the next entry". */
static bool ignored_overrun_keeps_the_newest(void)
{
	struct ibv_qp *qp;
	struct small s;

	MUST(small_open(&s, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN));
	MUST(qp = qp_to_itself(s.pd, s.sends, s.cq, NULL));
	MUST(fill(&s, qp, 0, QUEUE));
	MUST(fill(&s, qp, QUEUE, 3));
	MUST(holds(s.cq, QUEUE + 3 - ENTRIES, ENTRIES));
	MUST_EQ(ibv_poll_cq(s.cq, 1, &(struct ibv_wc){ 0 }), 0);
	MUST(no_async_event());
	MUST_EQ(ibv_destroy_qp(qp), 0);
	return small_close(&s);
}

/*
 * A thread that sleeps on a CQ that overruns learns of it, one event either way; and then the CQ is
 * of no use to a new QP.
 */
static bool overrun_of_an_armed_cq(void)
{
	for (int ignored = 0; ignored < 2; ignored++) {
		struct ibv_wc wc[ENTRIES + 1];
		struct ibv_qp *qp;
		struct small s;

		MUST(small_open(&s, ignored ? IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN : 0));
		MUST(qp = qp_to_itself(s.pd, s.sends, s.cq, NULL));
		MUST(fill(&s, qp, 0, ENTRIES));
		MUST_EQ(ibv_req_notify_cq(s.cq, 0), 0);
		MUST(no_cq_event(s.channel));
		MUST(ping(qp, ENTRIES, 0));
		MUST(take_cq_event(s.channel, s.cq));
		MUST(no_cq_event(s.channel));
		MUST_EQ(ibv_poll_cq(s.cq, ENTRIES + 1, wc), ENTRIES);
		MUST_EQ(ibv_poll_cq(s.cq, 1, wc), ignored ? 0 : -EIO);
		if (!ignored) {
			MUST(take_async(IBV_EVENT_CQ_ERR, s.cq) &&
			     take_async(IBV_EVENT_QP_FATAL, qp));
			MUST_FAIL(qp_to_itself(s.pd, s.sends, s.cq, NULL), EINVAL);
			MUST_FAIL(qp_to_itself(s.pd, s.cq, s.sends, NULL), EINVAL);
		}
		MUST_EQ(ibv_destroy_qp(qp), 0);
		MUST(small_close(&s));
	}
	return true;
}

/*
 * "Check the cqe attribute in the returned CQ for the actual size": that number fits, also for a
 * requested size of one.
 */
static bool the_smallest_cq(void)
{
	struct ibv_cq *cq;

	MUST(cq = ibv_create_cq(ctx, 1, NULL, NULL, 0));
	MUST_EQ(cq->cqe, 2);
	MUST_EQ(ibv_resize_cq(cq, 7), 0);
	MUST_EQ(cq->cqe, 7);
	MUST_EQ(ibv_resize_cq(cq, 1), 0);
	MUST_EQ(cq->cqe, 2);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	return true;
}

/*
 * "srq_limit: The limit value of the SRQ (irrelevant for ibv_create_srq_ex)": the returned values
 * are the created ones.
 */
static bool srq_limit_is_not_armed(void)
{
	struct ibv_srq_init_attr plain = { .attr = { .max_wr = 8, .max_sge = 1, .srq_limit = 5 } };
	struct ibv_srq_init_attr_ex ex = { .attr = { .max_wr = 8, .max_sge = 1, .srq_limit = 5 },
					   .comp_mask = IBV_SRQ_INIT_ATTR_PD };
	struct ibv_srq_attr now;
	struct ibv_srq *srq;

	MUST(ex.pd = ibv_alloc_pd(ctx));
	for (int i = 0; i < 2; i++) {
		MUST(srq = i ? ibv_create_srq_ex(ctx, &ex) : ibv_create_srq(ex.pd, &plain));
		MUST_EQ(ibv_query_srq(srq, &now), 0);
		MUST_EQ(now.srq_limit, 0);
		MUST_EQ(i ? ex.attr.srq_limit : plain.attr.srq_limit, 0);
		MUST_EQ(ibv_destroy_srq(srq), 0);
	}
	MUST(no_async_event());
	MUST_EQ(ibv_dealloc_pd(ex.pd), 0);
	return true;
}

/* A message of this process arrives later if another thread is moving packets as it is sent. */
static bool next_comes(struct ibv_cq_ex *cq)
{
	const long long end = clock_ns(CLOCK_MONOTONIC) + WAIT_MS * 1000000ll;
	int rc;

	while ((rc = ibv_next_poll(cq)) == ENOENT && clock_ns(CLOCK_MONOTONIC) < end)
		;
	MUST_EQ(rc, 0);
	return true;
}

/*
 * A completion that comes in the middle of an iteration is its next. Of posts in quick succession
 * all but the first wait for a poll: this one.
 */
static bool next_poll_looks(void)
{
	struct ibv_cq_init_attr_ex a = { .cqe = 2 * QUEUE };
	struct ibv_poll_cq_attr start = { 0 };
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct small s;
	struct ibv_wc wc;

	MUST(small_open(&s, 0));
	MUST(cq = ibv_create_cq_ex(ctx, &a));
	MUST(qp = qp_to_itself(s.pd, s.sends, ibv_cq_ex_to_cq(cq), NULL));
	for (int round = 0; round < 50; round++) {
		MUST(ping(qp, 0, IBV_SEND_SIGNALED) && wait_wc(s.sends, &wc));
		MUST_EQ(ibv_start_poll(cq, &start), 0);
		for (uint64_t i = 1; i < QUEUE; i++)
			if (!ping(qp, i, i == QUEUE - 1 ? IBV_SEND_SIGNALED : 0))
				return false;
		for (uint64_t i = 1; i < QUEUE; i++) {
			MUST(next_comes(cq));
			MUST_EQ(cq->wr_id, i);
		}
		MUST_EQ(ibv_next_poll(cq), ENOENT);
		ibv_end_poll(cq);
		MUST(wait_wc(s.sends, &wc));
	}
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	return small_close(&s);
}

/*
 * Sends and receives in one CQ: one clock, and each completion's time is not before the last one's,
 * by either clock.
 */
static bool times_of_one_cq(void)
{
	struct ibv_cq_init_attr_ex a = { .cqe = 4 * QUEUE,
					 .wc_flags =
						 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
						 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK };
	struct ibv_poll_cq_attr start = { 0 };
	uint64_t last = 0, last_wall = 0;
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct small s;

	MUST(small_open(&s, 0));
	MUST(cq = ibv_create_cq_ex(ctx, &a));
	MUST(qp = qp_to_itself(s.pd, ibv_cq_ex_to_cq(cq), ibv_cq_ex_to_cq(cq), NULL));
	for (int round = 0; round < 4000; round++) {
		MUST(ping(qp, 1, IBV_SEND_SIGNALED));
		for (int n = 0; n < 2; n++) {
			long long end = clock_ns(CLOCK_MONOTONIC) + WAIT_MS * 1000000ll;
			uint64_t now, wall;
			int err;

			while ((err = ibv_start_poll(cq, &start)) == ENOENT &&
			       clock_ns(CLOCK_MONOTONIC) < end)
				;
			MUST_EQ(err, 0);
			now = ibv_wc_read_completion_ts(cq);
			wall = ibv_wc_read_completion_wallclock_ns(cq);
			ibv_end_poll(cq);
			MUST(now >= last);
			MUST(wall >= last_wall);
			last = now;
			last_wall = wall;
		}
	}
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	return small_close(&s);
}

static int edges(int epoll)
{
	struct epoll_event got;

	return epoll_wait(epoll, &got, 1, 0);
}

/* Each event is an edge for an edge-triggered waiter, also while another is unread. */
static bool an_edge_for_each_event(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct epoll_event want = { .events = EPOLLIN | EPOLLET };
	int epoll = epoll_create1(0);
	struct loops l;

	MUST(ch && epoll >= 0 && loops_open(&l) && loops_add(&l, NULL, ch, 0) &&
	     loops_add(&l, NULL, ch, 0));
	MUST_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, ch->fd, &want), 0);
	MUST_EQ(edges(epoll), 0);
	for (int i = 0; i < 2; i++) {
		MUST(loops_event(&l, i));
		MUST_EQ(edges(epoll), 1);
		MUST_EQ(edges(epoll), 0);
	}
	MUST(take_cq_event(ch, l.cq[0]) && take_cq_event(ch, l.cq[1]));
	MUST(no_cq_event(ch));
	close(epoll);
	MUST(loops_close(&l));
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	return true;
}

/*
 * As on adapters, and by InfiniBand's rule of a receive that is too small: it ends in error, and so
 * does the QP.
 */
static bool short_body(struct pair *p)
{
	struct ibv_ah_attr to = own_address();
	struct ibv_ah *ah = ibv_create_ah(p->pd, &to);
	struct ibv_sge sge = sge_of(p, 0, 0, 20);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.ud = { .ah = ah,
					     .remote_qpn = p->qp[1]->qp_num,
					     .remote_qkey = UD_QKEY } },
			   *bad;
	struct ibv_wc wc;

	MUST(ah);
	MUST_EQ(post_recv(p, 1, 0, 59), 0); /* 40 + 20 do not fit */
	MUST_EQ(post_recv(p, 2, 0, 60), 0);
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.wr_id, 1);
	MUST_EQ(wc.status, IBV_WC_LOC_LEN_ERR);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.wr_id, 2);
	MUST_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
	MUST_EQ(qp_state_now(p->qp[1]), IBV_QPS_ERR);
	MUST_EQ(qp_state_now(p->qp[0]), IBV_QPS_RTS);
	MUST_EQ(ibv_destroy_ah(ah), 0);
	return true;
}

ON_PAIR(datagram_longer_than_its_receive, short_body, .type = IBV_QPT_UD)

const struct test_case man_cases[] = {
	CASE(destroyed_qps_leave_room),
	CASE(reset_qps_leave_room),
	CASE(resize_after_a_qp_has_gone),
	CASE(entry_at_hand_stays),
	CASE(resize_waits_for_the_reader),
	CASE(ignored_overrun_keeps_the_newest),
	CASE(overrun_of_an_armed_cq),
	CASE(the_smallest_cq),
	CASE(srq_limit_is_not_armed),
	CASE(next_poll_looks),
	CASE(times_of_one_cq),
	CASE(an_edge_for_each_event),
	CASE(datagram_longer_than_its_receive),
	{ 0 },
};
