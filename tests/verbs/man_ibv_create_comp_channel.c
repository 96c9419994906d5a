/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* ibv_create_comp_channel(3), ibv_destroy_comp_channel(3) */
#include <sys/epoll.h>

#include "man.h"

#define CHANNELS 3
#define CQS	 6 /* two a channel */

static bool busy_while_a_cq_is_on_it(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct ibv_cq *a, *b;

	MUST(ch && ch->fd >= 0 && ch->context == ctx && ch->refcnt == 0);
	/*
	 * "fails if any CQs are still associated with the completion event channel being destroyed"
	 */
	MUST((a = ibv_create_cq(ctx, 1, NULL, ch, 0)) && (b = ibv_create_cq(ctx, 1, NULL, ch, 0)));
	MUST_EQ(ibv_destroy_comp_channel(ch), EBUSY);
	MUST_EQ(ibv_destroy_cq(a), 0);
	MUST_EQ(ibv_destroy_comp_channel(ch), EBUSY);
	MUST_EQ(ibv_destroy_cq(b), 0);
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	return true;
}

/* "essentially file descriptor": close-on-exec or not, it can be polled, and O_NONBLOCK sticks */
static bool is_a_descriptor(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct ibv_cq *cq;
	void *context;
	int epoll_fd = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN }, got;

	MUST(ch && epoll_fd >= 0);
	MUST_EQ(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, ch->fd, &event), 0);
	MUST_EQ(epoll_wait(epoll_fd, &got, 1, 0), 0);
	MUST(set_nonblocking(ch->fd, true));
	MUST(fcntl(ch->fd, F_GETFL) & O_NONBLOCK);
	MUST_EQ(ibv_get_cq_event(ch, &cq, &context), -1);
	MUST_EQ(errno, EAGAIN);
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	close(epoll_fd);
	return true;
}

/* More than the device has vectors, more than there are CQs: channels are made at will. */
static bool made_at_will(void)
{
	struct ibv_comp_channel *ch[64];

	for (int i = 0; i < 64; i++) {
		MUST(ch[i] = ibv_create_comp_channel(ctx));
		for (int j = 0; j < i; j++)
			MUST(ch[j]->fd != ch[i]->fd);
	}
	for (int i = 0; i < 64; i++)
		MUST_EQ(ibv_destroy_comp_channel(ch[i]), 0);
	return true;
}

/*
 * "the event is delivered via the completion channel attached to that CQ", and any CQ joins any
 * vector with any channel
 */
static bool events_go_to_the_cqs_own_channel(void)
{
	struct ibv_comp_channel *ch[CHANNELS];
	struct loops l;
	struct ibv_wc wc;
	int epoll_fd = epoll_create1(0);

	MUST(loops_open(&l) && epoll_fd >= 0);
	for (int i = 0; i < CHANNELS; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.u32 = (uint32_t)i };

		MUST(ch[i] = ibv_create_comp_channel(ctx));
		MUST_EQ(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, ch[i]->fd, &event), 0);
	}
	for (int i = 0; i < CQS; i++)
		MUST(loops_add(&l, &l.cq[i], ch[i % CHANNELS], i % ctx->num_comp_vectors));
	for (int i = 0; i < CQS; i++) {
		struct epoll_event got;

		MUST_EQ(ibv_req_notify_cq(l.cq[i], 0), 0);
		MUST(ping(l.qp[i], (uint64_t)i, 0));
		MUST_EQ(epoll_wait(epoll_fd, &got, 1, WAIT_MS), 1);
		MUST_EQ(got.data.u32, i % CHANNELS);
		for (int k = 0; k < CHANNELS; k++)
			MUST(k == i % CHANNELS || no_cq_event(ch[k]));
		MUST(take_cq_event(ch[i % CHANNELS], l.cq[i]));
		MUST_EQ(epoll_wait(epoll_fd, &got, 1, 0), 0);
		MUST(wait_wc(l.cq[i], &wc));
		MUST_EQ(wc.wr_id, i);
	}
	MUST(loops_close(&l));
	for (int i = 0; i < CHANNELS; i++)
		MUST_EQ(ibv_destroy_comp_channel(ch[i]), 0);
	close(epoll_fd);
	return true;
}

const struct test_case man_cases[] = {
	CASE(busy_while_a_cq_is_on_it),
	CASE(is_a_descriptor),
	CASE(made_at_will),
	CASE(events_go_to_the_cqs_own_channel),
	{ 0 },
};
