/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long tsan */
/*
 * rdma-core's tag_matching.md of the rendezvous, and threads that change the list meanwhile.
 */
#include "tm.h"

/* ---- rendezvous ---- */

/* The RVH after the TMH at offset 0. */
static void put_rvh(struct tags *t, uint32_t data, uint32_t len)
{
	struct ibv_rvh v = { .va = htobe64((uintptr_t)t->buf + data),
			     .rkey = htonl(t->mr->rkey),
			     .len = htonl(len) };

	memcpy(t->buf + 16, &v, sizeof(v));
}

/*
 * The device fetches the announced data, and notifies the sender by "a copy of the original TMH and
 * RVH of the rendezvous request, apart the opcode".
 */
static bool rendezvous_body(struct tags *t)
{
	struct ibv_sge sge = { (uintptr_t)t->buf + 60000, 64, t->mr->lkey };
	struct ibv_recv_wr rr = { .wr_id = 40, .sg_list = &sge, .num_sge = 1 }, *bad_rr;
	struct ibv_device_attr_ex dev;
	struct ibv_wc wc;
	struct seen s;

	MUST_EQ(ibv_query_device_ex(ctx, NULL, &dev), 0);
	MUST_EQ(ibv_post_recv(t->from, &rr, &bad_rr), 0);
	MUST(tm_add(t, 30, 5, 0, 20000));
	put_rvh(t, 1024, 20000);
	/* with the maximum data after it */
	MUST(tm_send_message(t, IBV_TMH_RNDV, 5, 99, dev.tm_caps.max_rndv_hdr_size - 16));
	EXPECT(t, 30, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
	MUST_EQ(s.info.tag, 5);
	MUST_EQ(s.info.priv, 99);
	EXPECT(t, 30, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
	MUST_EQ(s.byte_len, 20000);
	MUST(memcmp(tm_receiver(t), t->buf + 1024, 20000) == 0);
	MUST(wait_wc(t->send_cq, &wc));
	MUST_EQ(wc.opcode, IBV_WC_RECV);
	MUST_EQ(wc.wr_id, 40);
	MUST_EQ(wc.byte_len, 32);
	MUST_EQ(t->buf[60000], IBV_TMH_FIN);
	MUST(memcmp(t->buf + 60001, t->buf + 1, 31) == 0);
	MUST(cq_is_empty(t->qp_cq)); /* the device's own work requests have no completion */
	return tm_nothing_more(t);
}

static bool rendezvous_is_fetched_and_answered(void)
{
	WITH_TM(rendezvous_body);
}

/*
 * "insufficient to hold the data of a rendezvous request [...] IBV_WC_TM_RNDV_INCOMPLETE [...] the
 * TMH and RVH headers are scattered into the tagged buffer"
 */
static bool incomplete_body(struct tags *t)
{
	struct seen s;

	MUST(tm_add(t, 30, 5, 0, 1000));
	put_rvh(t, 1024, 1001);
	MUST(tm_send_message(t, IBV_TMH_RNDV, 5, 99, 16));
	MUST(tm_next(t, &s));
	MUST_EQ(s.status, IBV_WC_TM_RNDV_INCOMPLETE);
	MUST_EQ(s.wr_id, 30);
	MUST_EQ(s.opcode, IBV_WC_TM_RECV);
	MUST_EQ(s.info.tag, 5);
	MUST_EQ(s.info.priv, 99);
	MUST_EQ(s.vendor_err, 16);
	MUST(memcmp(tm_receiver(t), t->buf, 32) == 0);
	MUST_EQ(qp_state_now(t->to), IBV_QPS_RTS);
	/* the application goes on itself */
	MUST(tm_nothing_more(t));
	return true;
}

static bool rendezvous_that_does_not_fit_is_left(void)
{
	WITH_TM(incomplete_body);
}

/* An unmatched one comes whole, with its headers, for the application to do the same. */
static bool unexpected_rendezvous_body(struct tags *t)
{
	struct seen s;

	MUST(tm_post_receive(t, 3));
	put_rvh(t, 1024, 2000);
	MUST(tm_send_message(t, IBV_TMH_RNDV, 5, 99, 20));
	EXPECT(t, 3, IBV_WC_TM_RECV, 0);
	MUST_EQ(s.byte_len, 36);
	MUST(memcmp(tm_receiver(t) + RECEIVES + 3 * RECEIVE, t->buf, 36) == 0);
	return tm_nothing_more(t);
}

static bool unexpected_rendezvous_comes_whole(void)
{
	WITH_TM(unexpected_rendezvous_body);
}

/*
 * The data's key was wrong: the buffer comes back with the READ's status, and the connection is
 * broken.
 */
static bool bad_rendezvous_body(struct tags *t)
{
	struct ibv_async_event event;
	struct seen s;
	bool last = false;

	MUST(tm_add(t, 30, 5, 0, 1000));
	put_rvh(t, 1024, 500);
	t->buf[24] ^= 1;
	MUST(tm_send_message(t, IBV_TMH_RNDV, 5, 99, 16));
	EXPECT(t, 30, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
	MUST(tm_next(t, &s));
	MUST_EQ(s.status, IBV_WC_REM_ACCESS_ERR);
	MUST_EQ(s.wr_id, 30);
	MUST_EQ(qp_state_now(t->to), IBV_QPS_ERR);
	while (!last) {
		MUST(next_async(&event));
		MUST(event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED ||
		     event.event_type == IBV_EVENT_QP_ACCESS_ERR);
		last = event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED;
		MUST(event.element.qp == (last ? t->to : t->from));
		ibv_ack_async_event(&event);
	}
	return true;
}

static bool rendezvous_that_fails(void)
{
	WITH_TM(bad_rendezvous_body);
}

/*
 * A list changed by two threads while messages come: every tag is matched once, and no data go
 * astray.
 */
#define ROUNDS 300
struct adder {
	struct tags *t;
	int first, failed;
	_Atomic int added, wanted; /* how many there are, and how many there may be */
};

static void *add_tags(void *arg)
{
	struct adder *a = arg;
	struct ibv_sge sge;

	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_ops_wr wr =
			tm_an_add(a->t, (uint64_t)(a->first + i), (uint64_t)(a->first + i), &sge,
			       (uint32_t)(a->first + i) * 64, 64);
		struct ibv_ops_wr *bad;

		while (atomic_load(&a->wanted) <= i)
			sched_yield();
		a->failed |= ibv_post_srq_ops(a->t->srq, &wr, &bad);
		atomic_store(&a->added, i + 1);
	}
	return NULL;
}

static bool threads_body(struct tags *t)
{
	struct adder a[2] = { { .t = t, .first = 0, .wanted = MAX_TAGS / 2 },
			      { .t = t, .first = ROUNDS, .wanted = MAX_TAGS / 2 } };
	pthread_t thread[2];
	struct seen s;
	bool good = true;

	for (int i = 0; i < 2; i++)
		MUST_EQ(pthread_create(&thread[i], NULL, add_tags, &a[i]), 0);
	for (int i = 0; good && i < 2 * ROUNDS; i++) {
		struct adder *of = &a[i % 2];
		long long end = clock_ns(CLOCK_MONOTONIC) + WAIT_MS * 1000000ll;

		while (atomic_load(&of->added) <= i / 2 && clock_ns(CLOCK_MONOTONIC) < end)
			sched_yield();
		good = tm_send_eager(t, (uint64_t)(of->first + i / 2), 48) && tm_next(t, &s) &&
		       s.opcode == IBV_WC_TM_RECV && s.flags == BOTH &&
		       s.wr_id == (uint64_t)(of->first + i / 2) &&
		       memcmp(tm_receiver(t) + s.wr_id * 64, t->buf + 16, 48) == 0;
		atomic_fetch_add(&of->wanted, 1);
	}
	for (int i = 0; i < 2; i++) {
		atomic_store(&a[i].wanted, ROUNDS);
		pthread_join(thread[i], NULL);
	}
	MUST(good && !a[0].failed && !a[1].failed);
	return tm_nothing_more(t);
}

static bool threads_add_while_messages_come(void)
{
	WITH_TM(threads_body);
}

/* Two threads that change the list without a pause: it is intact in the end. */
static void *add_and_delete(void *arg)
{
	struct adder *a = arg;
	struct ibv_sge sge;

	for (int i = 0; i < 400000 && !a->failed; i++) {
		struct ibv_ops_wr wr = tm_an_add(a->t, (uint64_t)i, 1, &sge, 0, 64);

		a->failed = tm_post(a->t, &wr);
		wr.opcode = IBV_WR_TAG_DEL;
		a->failed |= tm_post(a->t, &wr);
	}
	return NULL;
}

static bool pauseless_body(struct tags *t)
{
	struct adder a[2] = { { .t = t }, { .t = t } };
	pthread_t thread[2];
	struct seen s;

	for (int i = 0; i < 2; i++)
		MUST_EQ(pthread_create(&thread[i], NULL, add_and_delete, &a[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	MUST(!a[0].failed && !a[1].failed);
	for (uint64_t i = 0; i < MAX_TAGS; i++)
		MUST(tm_add(t, i, i, 0, 64));
	for (uint64_t i = MAX_TAGS; i--;) {
		MUST(tm_send_eager(t, i, 1));
		EXPECT(t, i, IBV_WC_TM_RECV, BOTH);
	}
	return tm_nothing_more(t);
}

static bool threads_change_the_list_without_a_pause(void)
{
	WITH_TM(pauseless_body);
}

const struct test_case man_cases[] = {
	CASE(rendezvous_is_fetched_and_answered),
	CASE(rendezvous_that_does_not_fit_is_left),
	CASE(unexpected_rendezvous_comes_whole),
	CASE(rendezvous_that_fails),
	CASE(threads_add_while_messages_come),
	CASE(threads_change_the_list_without_a_pause),
	{ 0 },
};
