/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * ibv_create_comp_channel(3): "a user can create as many completion channels as it wants".
 * Descriptors and memory bound them, and this call reports their exhaustion, not a later use of the
 * channel.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "man.h"

#define CHANNELS 4096
#define FEW	 100 /* more than XDP wakes directly with their limit of descriptors */
#define FDS_EACH 1 /* of a channel with a CQ, but for the first 64, which take 3 */

static bool set_descriptors(rlim_t soft, struct rlimit *before)
{
	struct rlimit lim;

	MUST_EQ(getrlimit(RLIMIT_NOFILE, before), 0);
	lim = *before;
	lim.rlim_cur = soft;
	lim.rlim_max = soft > lim.rlim_max ? soft : lim.rlim_max;
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &lim), 0);
	return true;
}

/*
 * Each on its own channel, and all in use: an event of the first, of one in the middle and of the
 * last.
 */
static bool as_many_as_it_wants(void)
{
	static const int tried[] = { 0, CHANNELS / 2, CHANNELS - 1 };
	static struct ibv_comp_channel *ch[CHANNELS];
	static struct ibv_qp *qp[CHANNELS / 2];
	static struct ibv_cq *cq[CHANNELS];
	struct rlimit before;
	struct ibv_pd *pd;

	MUST(set_descriptors(CHANNELS * FDS_EACH + 300, &before));
	MUST(pd = ibv_alloc_pd(ctx));
	for (int i = 0; i < CHANNELS; i++)
		MUST((ch[i] = ibv_create_comp_channel(ctx)) &&
		     (cq[i] = ibv_create_cq(ctx, QUEUE, NULL, ch[i], 0)));
	for (int i = 0; i < CHANNELS / 2; i++)
		MUST(qp[i] = qp_to_itself(pd, cq[i], cq[CHANNELS - 1 - i], NULL));
	for (int k = 0; k < 3; k++) {
		const int i = tried[k];
		struct ibv_qp *user = qp[i < CHANNELS / 2 ? i : CHANNELS - 1 - i];
		struct ibv_wc wc;

		MUST_EQ(ibv_req_notify_cq(cq[i], 0), 0);
		MUST(ping(user, 1, IBV_SEND_SIGNALED));
		MUST(take_cq_event(ch[i], cq[i]));
		MUST(wait_wc(cq[i], &wc));
	}
	for (int i = 0; i < CHANNELS / 2; i++)
		MUST_EQ(ibv_destroy_qp(qp[i]), 0);
	for (int i = 0; i < CHANNELS; i++) {
		MUST_EQ(ibv_destroy_cq(cq[i]), 0);
		MUST_EQ(ibv_destroy_comp_channel(ch[i]), 0);
	}
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
	return true;
}

/*
 * ibv_get_cq_event(3): it blocks unless the program sets O_NONBLOCK. Here there are so many
 * channels that the later ones have one descriptor each.
 */
static void *wait_for_event(void *arg)
{
	struct ibv_cq *cq = arg, *got;
	void *context;

	return !ibv_get_cq_event(cq->channel, &got, &context) && got == cq ? cq : NULL;
}

static bool each_blocks(void)
{
	static struct ibv_comp_channel *ch[FEW];
	struct rlimit before;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	pthread_t thread;
	void *got;

	MUST(set_descriptors(FEW + 300, &before));
	for (int i = 0; i < FEW; i++) {
		MUST(ch[i] = ibv_create_comp_channel(ctx));
		MUST_EQ(fcntl(ch[i]->fd, F_GETFL) & O_NONBLOCK, 0);
	}
	MUST(pd = ibv_alloc_pd(ctx));
	MUST(cq = ibv_create_cq(ctx, QUEUE, NULL, ch[FEW - 1], 0));
	MUST(qp = qp_to_itself(pd, cq, cq, NULL));
	MUST_EQ(ibv_req_notify_cq(cq, 0), 0);
	MUST_EQ(pthread_create(&thread, NULL, wait_for_event, cq), 0);
	usleep(50 * 1000);
	MUST(ping(qp, 1, IBV_SEND_SIGNALED));
	MUST_EQ(pthread_join(thread, &got), 0);
	MUST(got == cq);
	ibv_ack_cq_events(cq, 1);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	for (int i = 0; i < FEW; i++)
		MUST_EQ(ibv_destroy_comp_channel(ch[i]), 0);
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
	return true;
}

/* A channel is refused if no descriptor is left; a CQ on an existing one takes none. */
static bool refused_where_it_is_asked_for(void)
{
	struct ibv_comp_channel *ch[2] = { ibv_create_comp_channel(ctx),
					   ibv_create_comp_channel(ctx) };
	int open_fds[1024], n = 0;
	struct rlimit before;
	struct ibv_cq *cq[2];
	struct ibv_pd *pd;
	struct ibv_qp *qp;

	MUST(ch[0] && ch[1] && (pd = ibv_alloc_pd(ctx)));
	MUST(cq[0] = ibv_create_cq(ctx, QUEUE, NULL, ch[0], 0));
	/* the interface is open: its descriptors do not count */
	MUST(qp = qp_to_itself(pd, cq[0], cq[0], NULL));
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST(set_descriptors((rlim_t)ch[1]->fd + 128, &before));
	while (n < 1024 && (open_fds[n] = dup(0)) >= 0)
		n++;
	MUST(n > 0 && n < 1024);
	MUST_FAIL(ibv_create_comp_channel(ctx), EMFILE);
	MUST(cq[1] = ibv_create_cq(ctx, QUEUE, NULL, ch[1], 0));
	close(open_fds[--n]); /* for ibv_create_qp(), which needs one to query the kernel */
	MUST(qp = qp_to_itself(pd, cq[1], cq[1], NULL));
	MUST_EQ(ibv_req_notify_cq(cq[1], 0), 0);
	MUST(ping(qp, 1, IBV_SEND_SIGNALED));
	MUST(take_cq_event(ch[1], cq[1]));
	while (n)
		close(open_fds[--n]);
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	for (int i = 0; i < 2; i++) {
		MUST_EQ(ibv_destroy_cq(cq[i]), 0);
		MUST_EQ(ibv_destroy_comp_channel(ch[i]), 0);
	}
	return true;
}

const struct test_case man_cases[] = {
	CASE(as_many_as_it_wants),
	CASE(each_blocks),
	CASE(refused_where_it_is_asked_for),
	{ 0 },
};
