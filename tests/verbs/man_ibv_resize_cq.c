/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long tsan */
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

ON_PAIR(keeps_unpolled_entries, unpolled_body)

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
		bool good = !post_recv(p, n, 0, 100) && !post_send(p, n, 0, (uint32_t)n % 90, 0) &&
			    wait_wc(p->cq[1], &wc);

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

ON_PAIR(under_traffic, traffic_body)

/* Memory of a ring's size that was freed is used by others. */
static void use_freed_memory(void)
{
	enum { AREAS = 16, BYTES = 16 * 64 };
	void *area[AREAS];

	for (int i = 0; i < AREAS; i++)
		if ((area[i] = aligned_alloc(64, BYTES)))
			memset(area[i], 0xee, BYTES);
	for (int i = 0; i < AREAS; i++)
		free(area[i]);
}

static bool is_message(struct ibv_cq_ex *cq, uint64_t n)
{
	MUST_EQ(cq->wr_id, n);
	MUST_EQ(cq->status, IBV_WC_SUCCESS);
	MUST_EQ(ibv_wc_read_byte_len(cq), n * 5);
	MUST_EQ(ibv_wc_read_opcode(cq), IBV_WC_RECV);
	return true;
}

static bool iteration_body(struct pair *p)
{
	struct ibv_cq_ex *cq = (struct ibv_cq_ex *)p->cq[1];
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_wc wc;

	for (uint64_t i = 0; i < 4; i++) {
		MUST_EQ(post_recv(p, i, 0, 100), 0);
		MUST_EQ(post_send(p, i, 0, (uint32_t)i * 5, IBV_SEND_SIGNALED), 0);
		MUST(wait_wc(p->cq[0], &wc));
	}
	MUST_EQ(ibv_start_poll(cq, &attr), 0);
	MUST(is_message(cq, 0));
	MUST_EQ(ibv_resize_cq(p->cq[1], 2), EINVAL); /* three are to come, after the current one */
	MUST_EQ(ibv_resize_cq(p->cq[1], 100), 0);
	use_freed_memory();
	MUST(is_message(cq, 0));
	MUST_EQ(ibv_next_poll(cq), 0);
	MUST(is_message(cq, 1));
	MUST_EQ(ibv_resize_cq(p->cq[1], 2), 0);
	use_freed_memory();
	MUST(is_message(cq, 1));
	ibv_end_poll(cq);
	MUST_EQ(ibv_start_poll(cq, &attr), 0);
	MUST(is_message(cq, 2));
	MUST_EQ(ibv_next_poll(cq), 0);
	MUST(is_message(cq, 3));
	MUST_EQ(ibv_next_poll(cq), ENOENT);
	MUST_EQ(ibv_resize_cq(p->cq[1], 20), 0);
	ibv_end_poll(cq);
	return true;
}

/*
 * Where no lock forbids it: in the middle of an iteration, the entry that is looked at stays what
 * it is.
 */
static bool between_start_and_end_poll(void)
{
	struct pair p;
	struct ibv_cq_init_attr_ex ex = { .cqe = 16,
					  .wc_flags = IBV_WC_STANDARD_FLAGS,
					  .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					  .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED };

	IN_PAIR(&p, OPTIONS(.ex = &ex), iteration_body);
}

const struct test_case man_cases[] = {
	CASE(refuses),
	CASE(keeps_unpolled_entries),
	CASE(under_traffic),
	CASE(between_start_and_end_poll),
	{ 0 },
};
