/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long tsan */
/*
 * ibv_post_srq_ops(3), and the messages of rdma-core's tag_matching.md.
 */
#include "tm.h"

/* ---- ADD ---- */

/*
 * "Opcode IBV_WR_TAG_ADD used to add tag entry": a message that matches goes to its buffer without
 * its header, and completes with recv_wr_id.
 */
static bool add_body(struct tags *t)
{
	const uint64_t tag = 0xfedcba9876543210;
	struct ibv_sge sge;
	struct ibv_ops_wr wr = tm_an_add(t, 0x8000000000000007, tag, &sge, 100, 200);
	struct seen s;

	/*
	 * "To request WC for tag list operations IBV_OPS_SIGNALED flags should be passed [...]
	 * wr_id will identify WC"
	 */
	wr.wr_id = 0x9000000000000001;
	wr.flags = IBV_OPS_SIGNALED;
	MUST_EQ(tm_post(t, &wr), 0);
	EXPECT(t, 0x9000000000000001, IBV_WC_TM_ADD, 0);
	memset(tm_receiver(t), 0x55, 400);
	MUST(tm_send_message(t, IBV_TMH_EAGER, tag, 0x12345678, 150));
	EXPECT(t, 0x8000000000000007, IBV_WC_TM_RECV, BOTH);
	MUST_EQ(s.byte_len, 150);
	MUST_EQ(s.info.tag, (long long)tag);
	MUST_EQ(s.info.priv, 0x12345678);
	MUST(memcmp(tm_receiver(t) + 100, t->buf + 16, 150) == 0);
	MUST(tm_receiver(t)[99] == 0x55 && tm_receiver(t)[250] == 0x55);
	return tm_nothing_more(t);
}

static bool add_matches_a_message(void)
{
	WITH_TM(add_body);
}

/*
 * "matching and data transfer completion are distinct events that generate 2 completion events for
 * the same recv_wr_id" (tag_matching.md)
 */
static bool long_body(struct tags *t)
{
	struct seen s;

	MUST(tm_add(t, 3, 9, 0, 5000));
	MUST(tm_send_eager(t, 9, 5000)); /* five packets */
	EXPECT(t, 3, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
	MUST_EQ(s.info.tag, 9);
	MUST_EQ(s.info.priv, 10);
	EXPECT(t, 3, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
	MUST_EQ(s.byte_len, 5000);
	MUST(memcmp(tm_receiver(t), t->buf + 16, 5000) == 0);
	return tm_nothing_more(t);
}

static bool long_messages_match_and_then_end(void)
{
	WITH_TM(long_body);
}

/*
 * "Incoming message considered matching if TMH.tag & entry.mask == entry.tag", in the order of the
 * list.
 */
static bool order_body(struct tags *t)
{
	static const struct {
		uint64_t tag, mask;
	} entries[] = { { 0x100, 0xf00 }, { 0x123, UINT64_MAX }, { 0, 0 }, { 0x1, 0xf0 } };
	struct ibv_sge sge;
	struct seen s;

	for (int i = 0; i < 4; i++) {
		struct ibv_ops_wr wr = tm_an_add(t, 10 + i, entries[i].tag, &sge, 0, 100);

		wr.tm.add.mask = entries[i].mask;
		MUST_EQ(tm_post(t, &wr), 0);
	}
	MUST(tm_post_receive(t, 0));
	for (int i = 0; i < 4; i++)
		MUST(tm_send_eager(t, 0x123, 20 + i));
	for (int i = 0; i < 3; i++) {
		EXPECT(t, 10 + i, IBV_WC_TM_RECV, BOTH);
		MUST_EQ(s.byte_len, 20 + i);
	}
	/* no entry that fits: the last one's tag has a bit that its mask has not */
	EXPECT(t, 0, IBV_WC_TM_RECV, 0);
	MUST_EQ(s.byte_len, 16 + 23);
	return true;
}

static bool entries_match_in_order_and_by_mask(void)
{
	WITH_TM(order_body);
}

/* "SGE list size is limited by max_sge": all of them are filled, one more is refused. */
static bool sge_body(struct tags *t)
{
	struct ibv_device_attr_ex dev;
	struct ibv_sge sge[65];
	struct ibv_ops_wr wr = tm_an_add(t, 1, 2, sge, 0, 0);
	struct seen s;
	int n;

	MUST_EQ(ibv_query_device_ex(ctx, NULL, &dev), 0);
	n = (int)dev.tm_caps.max_sge;
	MUST(n <= 64);
	for (int i = 0; i <= n; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)tm_receiver(t) + 200 * i, 100, t->mr->lkey };
	wr.tm.add.num_sge = n + 1;
	MUST_EQ(tm_post(t, &wr), EINVAL);
	wr.tm.add.num_sge = -1;
	MUST_EQ(tm_post(t, &wr), EINVAL);
	wr.tm.add.num_sge = n;
	MUST_EQ(tm_post(t, &wr), 0);
	MUST(tm_send_eager(t, 2, 100 * n));
	EXPECT(t, 1, IBV_WC_TM_RECV, BOTH);
	for (int i = 0; i < n; i++)
		MUST(memcmp(tm_receiver(t) + 200 * i, t->buf + 16 + 100 * i, 100) == 0);
	return true;
}

static bool sge_list_is_limited_by_max_sge(void)
{
	WITH_TM(sge_body);
}

/*
 * "Size of tag matching list is limited by max_num_tags": an entry that was consumed or deleted
 * makes room.
 */
static bool full_body(struct tags *t)
{
	struct ibv_sge sge;
	struct ibv_ops_wr wr = tm_an_add(t, 9, 9, &sge, 0, 100);
	struct seen s;

	for (int i = 0; i < MAX_TAGS; i++)
		MUST(tm_add(t, i, i, 0, 100));
	MUST_EQ(tm_post(t, &wr), ENOMEM);
	MUST(tm_send_eager(t, 1, 0));
	EXPECT(t, 1, IBV_WC_TM_RECV, BOTH);
	MUST_EQ(tm_post(t, &wr), 0);
	MUST_EQ(tm_post(t, &wr), ENOMEM);
	wr.opcode = IBV_WR_TAG_DEL;
	MUST_EQ(tm_post(t, &wr), 0);
	wr.opcode = IBV_WR_TAG_ADD;
	MUST_EQ(tm_post(t, &wr), 0);
	return true;
}

static bool list_is_limited_by_max_num_tags(void)
{
	WITH_TM(full_body);
}

/* ---- DEL ---- */

/*
 * "removes previously added tag entry [...] handle should be set to value returned"; "may fail due
 * to concurrent tag consumption": IBV_WC_TM_ERR.
 */
static bool del_body(struct tags *t)
{
	struct ibv_sge sge;
	struct ibv_ops_wr first = tm_an_add(t, 1, 5, &sge, 0, 100),
			  second = tm_an_add(t, 2, 5, &sge, 200, 100);
	struct ibv_ops_wr del = { .wr_id = 77,
				  .opcode = IBV_WR_TAG_DEL,
				  .flags = IBV_OPS_SIGNALED };
	struct seen s;

	MUST_EQ(tm_post(t, &first), 0);
	MUST_EQ(tm_post(t, &second), 0);
	MUST(first.tm.handle != second.tm.handle);
	del.tm.handle = first.tm.handle;
	MUST_EQ(tm_post(t, &del), 0);
	EXPECT(t, 77, IBV_WC_TM_DEL, 0);
	MUST(tm_send_eager(t, 5, 10));
	EXPECT(t, 2, IBV_WC_TM_RECV, BOTH);
	del.tm.handle = second.tm.handle;
	MUST_EQ(tm_post(t, &del), 0);
	MUST(tm_next(t, &s));
	MUST_EQ(s.wr_id, 77);
	MUST_EQ(s.status, IBV_WC_TM_ERR);
	MUST_EQ(s.opcode, IBV_WC_TM_DEL);
	MUST_EQ(s.vendor_err, 15);
	/* the same slot in use again: still not what the handle names */
	MUST(tm_add(t, 3, 5, 0, 100));
	MUST_EQ(tm_post(t, &del), 0);
	MUST(tm_next(t, &s));
	MUST_EQ(s.status, IBV_WC_TM_ERR);
	MUST(tm_send_eager(t, 5, 10));
	EXPECT(t, 3, IBV_WC_TM_RECV, BOTH);
	del.tm.handle = MAX_TAGS; /* no handle of this list */
	MUST_EQ(tm_post(t, &del), EINVAL);
	return tm_nothing_more(t);
}

static bool del_removes_or_says_that_it_is_too_late(void)
{
	WITH_TM(del_body);
}

/* ---- completions of operations ---- */

static bool unsignaled_body(struct tags *t)
{
	struct ibv_sge sge;
	struct ibv_ops_wr wr = tm_an_add(t, 1, 5, &sge, 0, 100);

	MUST_EQ(tm_post(t, &wr), 0);
	MUST(tm_sync_to(t, 0));
	wr.opcode = IBV_WR_TAG_DEL;
	MUST_EQ(tm_post(t, &wr), 0);
	MUST_EQ(tm_post(t, &wr), 0); /* too late, but unsignaled */
	return tm_nothing_more(t);
}

static bool only_signaled_operations_complete(void)
{
	WITH_TM(unsignaled_body);
}

/*
 * "Number of outstanding tag list operations" (ibv_create_srq_ex(3)): until their completions are
 * polled.
 */
static bool outstanding_body(struct tags *t)
{
	struct ibv_ops_wr wr = { .wr_id = 5, .opcode = IBV_WR_TAG_SYNC, .flags = IBV_OPS_SIGNALED };
	struct seen s;

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < MAX_OPS; i++)
			MUST_EQ(tm_post(t, &wr), 0);
		MUST_EQ(tm_post(t, &wr), ENOMEM);
		for (int i = 0; i < MAX_OPS; i++)
			EXPECT(t, 5, IBV_WC_TM_SYNC, 0);
	}
	return tm_nothing_more(t);
}

static bool max_ops_are_outstanding(void)
{
	WITH_TM(outstanding_body);
}

/* A list is done up to its first bad element, which *bad_wr names. */
static bool list_body(struct tags *t)
{
	struct ibv_sge sge[2];
	struct ibv_ops_wr wr[4] = { tm_an_add(t, 1, 1, &sge[0], 0, 100),
				    tm_an_add(t, 2, 2, &sge[1], 100, 100),
				    { .opcode = 17 },
				    { .opcode = IBV_WR_TAG_SYNC } };
	struct ibv_ops_wr *bad = NULL;
	struct seen s;

	for (int i = 0; i < 3; i++)
		wr[i].next = &wr[i + 1];
	for (int i = 0; i < 4; i++) {
		wr[i].wr_id = 50 + i;
		wr[i].flags = IBV_OPS_SIGNALED;
	}
	MUST_EQ(ibv_post_srq_ops(t->srq, wr, &bad), EINVAL);
	MUST(bad == &wr[2]);
	EXPECT(t, 50, IBV_WC_TM_ADD, 0);
	EXPECT(t, 51, IBV_WC_TM_ADD, 0);
	MUST(tm_nothing_more(t));
	wr[2].opcode = IBV_WR_TAG_SYNC;
	wr[2].flags = 1 << 5;
	MUST_EQ(ibv_post_srq_ops(t->srq, &wr[2], &bad), EINVAL);
	MUST(bad == &wr[2]);
	wr[2].flags = IBV_OPS_SIGNALED;
	MUST_EQ(ibv_post_srq_ops(t->srq, &wr[2], &bad), 0);
	EXPECT(t, 52, IBV_WC_TM_SYNC, 0);
	EXPECT(t, 53, IBV_WC_TM_SYNC, 0);
	MUST(tm_send_eager(t, 2, 10));
	EXPECT(t, 2, IBV_WC_TM_RECV, BOTH);
	return true;
}

static bool lists_end_at_the_first_bad_operation(void)
{
	WITH_TM(list_body);
}

/* "special types of SRQ": no others. */
static bool only_on_tag_matching_srqs(void)
{
	struct ibv_srq_init_attr a = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_ops_wr wr = { .opcode = IBV_WR_TAG_SYNC }, *bad = NULL;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_srq *srq;

	MUST(pd && (srq = ibv_create_srq(pd, &a)));
	MUST_EQ(ibv_post_srq_ops(srq, &wr, &bad), EINVAL);
	MUST(bad == &wr);
	MUST_EQ(ibv_destroy_srq(srq), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

/* ---- unmatched messages ---- */

/*
 * "the entire message, including any TM headers, is scattered to the SRQ buffer"; NO_TAG "will
 * always be treated as unexpected" (tag_matching.md)
 */
static bool whole_body(struct tags *t)
{
	static const struct {
		uint8_t opcode;
		enum ibv_wc_opcode seen_as;
	} kinds[] = { { IBV_TMH_NO_TAG, IBV_WC_TM_NO_TAG },
		      { IBV_TMH_EAGER, IBV_WC_TM_RECV },
		      { IBV_TMH_FIN, IBV_WC_TM_NO_TAG } };
	struct seen s;

	MUST(tm_add(t, 70, 6, 0, 100));
	for (unsigned int i = 0; i < 3; i++) {
		MUST(tm_post_receive(t, i));
		MUST(tm_send_message(t, kinds[i].opcode, kinds[i].opcode == IBV_TMH_EAGER ? 5 : 6,
				     1, 60 + i));
		EXPECT(t, i, kinds[i].seen_as, 0);
		MUST_EQ(s.byte_len, 16 + 60 + i);
		MUST_EQ(s.info.tag, 0);
		MUST(memcmp(tm_receiver(t) + RECEIVES + i * RECEIVE, t->buf, 16 + 60 + i) == 0);
	}
	return true;
}

static bool unmatched_messages_come_whole(void)
{
	WITH_TM(whole_body);
}

/*
 * "This process considered coherent only if all unexpected messages received by HW is completely
 * processed in SW": new entries match nothing until unexpected_cnt is reported, with
 * IBV_OPS_TM_SYNC or IBV_WR_TAG_SYNC; "IBV_WC_TM_SYNC_REQ flag returned in list operation WC shows
 * that counter synchronization required".
 */
static bool sync_body(struct tags *t)
{
	struct ibv_ops_wr sync = { .wr_id = 8,
				   .opcode = IBV_WR_TAG_SYNC,
				   .flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC };
	struct ibv_sge sge;
	struct ibv_ops_wr wr = tm_an_add(t, 1, 5, &sge, 0, 100);
	struct seen s;

	for (uint64_t i = 0; i < 4; i++)
		MUST(tm_post_receive(t, i));
	MUST(tm_send_eager(t, 4, 10));
	EXPECT(t, 0, IBV_WC_TM_RECV, 0);
	/* the first unexpected message was not dealt with when this is added */
	wr.flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC;
	MUST_EQ(tm_post(t, &wr), 0);
	EXPECT(t, 1001, IBV_WC_TM_ADD, IBV_WC_TM_SYNC_REQ);
	MUST(tm_send_eager(t, 5, 11));
	EXPECT(t, 1, IBV_WC_TM_RECV, 0); /* the receive of wr_id 1 */
	MUST_EQ(s.byte_len, 27);
	sync.tm.unexpected_cnt = 1;
	MUST_EQ(tm_post(t, &sync), 0);
	EXPECT(t, 8, IBV_WC_TM_SYNC, IBV_WC_TM_SYNC_REQ);
	sync.tm.unexpected_cnt = 2;
	MUST_EQ(tm_post(t, &sync), 0);
	EXPECT(t, 8, IBV_WC_TM_SYNC, 0);
	MUST(tm_send_eager(t, 5, 12));
	EXPECT(t, 1, IBV_WC_TM_RECV, BOTH);
	MUST_EQ(s.byte_len, 12);
	/* an ADD can say it as well */
	MUST(tm_send_eager(t, 5, 13));
	EXPECT(t, 2, IBV_WC_TM_RECV, 0);
	wr.tm.unexpected_cnt = 3;
	MUST_EQ(tm_post(t, &wr), 0);
	EXPECT(t, 1001, IBV_WC_TM_ADD, 0);
	MUST(tm_send_eager(t, 5, 14));
	EXPECT(t, 1, IBV_WC_TM_RECV, BOTH);
	return true;
}

static bool new_entries_wait_for_synchronization(void)
{
	WITH_TM(sync_body);
}

const struct test_case man_cases[] = {
	CASE(add_matches_a_message),
	CASE(long_messages_match_and_then_end),
	CASE(entries_match_in_order_and_by_mask),
	CASE(sge_list_is_limited_by_max_sge),
	CASE(list_is_limited_by_max_num_tags),
	CASE(del_removes_or_says_that_it_is_too_late),
	CASE(only_signaled_operations_complete),
	CASE(max_ops_are_outstanding),
	CASE(lists_end_at_the_first_bad_operation),
	CASE(only_on_tag_matching_srqs),
	CASE(unmatched_messages_come_whole),
	CASE(new_entries_wait_for_synchronization),
	{ 0 },
};
