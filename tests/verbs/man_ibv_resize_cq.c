/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ibv_resize_cq(3) */
#include "man.h"

static bool refuses(void)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 10, NULL, NULL, 0);
	struct ibv_device_attr dev;

	MUST(cq);
	MUST_EQ(ibv_query_device(ctx, &dev), 0);
	MUST_EQ(ibv_resize_cq(cq, 0), EINVAL);
	MUST_EQ(ibv_resize_cq(cq, -1), EINVAL);
	MUST_EQ(ibv_resize_cq(cq, dev.max_cqe + 1), EINVAL);
	MUST(cq->cqe >= 10);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	return true;
}

static bool unpolled_body(struct pair *p)
{
	struct ibv_wc wc;

	for (int i = 0; i < 6; i++)
		MUST_EQ(post_recv(p, (uint64_t)i, 0, 100), 0);
	for (int i = 0; i < 6; i++)
		MUST_EQ(post_send(p, 1, 0, (uint32_t)i, IBV_SEND_SIGNALED), 0);
	for (int i = 0; i < 6; i++)
		MUST(wait_wc(p->cq[0], &wc));
	/* "cqe must be at least the number of unpolled entries in the CQ cq" */
	MUST_EQ(ibv_resize_cq(p->cq[1], 5), EINVAL);
	MUST_EQ(ibv_resize_cq(p->cq[1], 6), 0);
	/* "The cqe member of cq will be updated to the actual size." */
	MUST(p->cq[1]->cqe >= 6);
	MUST_EQ(ibv_resize_cq(p->cq[1], 1000), 0);
	MUST(p->cq[1]->cqe >= 1000);
	for (int i = 0; i < 6; i++) {
		MUST_EQ(ibv_poll_cq(p->cq[1], 1, &wc), 1);
		MUST_EQ(wc.wr_id, i);
		MUST_EQ(wc.byte_len, i);
	}
	MUST_EQ(ibv_poll_cq(p->cq[1], 1, &wc), 0);
	return true;
}

static bool keeps_unpolled_entries(void)
{
	struct pair p;

	IN_PAIR(&p, OPTIONS(0), unpolled_body);
}

static atomic_bool stop;

static void *resizer(void *arg)
{
	struct pair *p = arg;
	int err = 0;

	for (int n = 0; !atomic_load(&stop) && (!err || err == EINVAL); n++)
		err = ibv_resize_cq(p->cq[1], 16 << n % 5);
	return err && err != EINVAL ? p : NULL;
}

static bool traffic_body(struct pair *p)
{
	pthread_t thread;
	struct ibv_wc wc;
	void *failed;

	atomic_store(&stop, false);
	MUST_EQ(pthread_create(&thread, NULL, resizer, p), 0);
	for (uint64_t n = 0; n < 5000; n++) {
		bool good = !post_recv(p, n, 0, 100) && !post_send(p, n, 0, (uint32_t)n % 90, 0) && wait_wc(p->cq[1], &wc);

		if (!good || wc.wr_id != n || wc.byte_len != n % 90) {
			atomic_store(&stop, true);
			pthread_join(thread, NULL);
			printf("# message %llu is wrong or lost\n", (unsigned long long)n);
			return false;
		}
	}
	atomic_store(&stop, true);
	MUST_EQ(pthread_join(thread, &failed), 0);
	MUST(!failed);
	return no_async_event();
}

static bool under_traffic(void)
{
	struct pair p;

	IN_PAIR(&p, OPTIONS(0), traffic_body);
}

const struct test_case man_cases[] = {
	CASE(refuses),
	CASE(keeps_unpolled_entries),
	CASE(under_traffic),
	{ 0 },
};
