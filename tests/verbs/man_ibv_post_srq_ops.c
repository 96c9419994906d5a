/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ibv_post_srq_ops(3), and what rdma-core's tag_matching.md says of the messages. A plain RC QP
 * sends to one on a tag-matching SRQ, which completes in an extended CQ.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <infiniband/tm_types.h>

#include "man.h"

#define MAX_TAGS	4
#define MAX_OPS	3
#define RECEIVE 1024 /* bytes of a receive, from RECEIVES on */
#define RECEIVES 32768

struct tags {
	struct ibv_pd *pd;
	/* of the sender, and the one that the receiver's QP was given */
	struct ibv_cq *send_cq, *qp_cq;
	struct ibv_cq_ex *cq;		/* of the SRQ */
	struct ibv_srq *srq;
	struct ibv_qp *from, *to;
	struct ibv_mr *mr;
	char *buf;			/* the sender's half, then the receiver's */
};

/* What the CQ's readers say. */
struct seen {
	uint64_t wr_id;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	unsigned int flags;
	uint32_t byte_len, vendor_err;
	struct ibv_wc_tm_info info;
};

static bool tm_open(struct tags *t)
{
	struct ibv_cq_init_attr_ex ex = {
		.cqe = 64, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_TM_INFO
	};
	struct ibv_srq_init_attr_ex a = {
		.attr = { .max_wr = 8, .max_sge = 1 },
		.srq_type = IBV_SRQT_TM,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_TM,
		.tm_cap = { .max_num_tags = MAX_TAGS, .max_ops = MAX_OPS }
	};
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 8, 8, 1, 1, 0 } };

	memset(t, 0, sizeof(*t));
	MUST(t->pd = a.pd = ibv_alloc_pd(ctx));
	MUST(t->send_cq = ibv_create_cq(ctx, 64, NULL, NULL, 0));
	MUST(t->qp_cq = ibv_create_cq(ctx, 64, NULL, NULL, 0));
	MUST(t->cq = ibv_create_cq_ex(ctx, &ex));
	a.cq = ibv_cq_ex_to_cq(t->cq);
	MUST(t->srq = ibv_create_srq_ex(ctx, &a));
	init.send_cq = init.recv_cq = t->send_cq;
	MUST(t->from = ibv_create_qp(t->pd, &init));
	init.send_cq = init.recv_cq = t->qp_cq;
	init.srq = t->srq;
	MUST(t->to = ibv_create_qp(t->pd, &init));
	MUST_EQ(qp_to_init(t->from), 0);
	MUST_EQ(qp_to_init(t->to), 0);
	MUST_EQ(qp_to_rts(t->from, t->to->qp_num, 7), 0);
	MUST_EQ(qp_to_rts(t->to, t->from->qp_num, 7), 0);
	MUST(t->buf = calloc(2, BUF_BYTES));
	MUST(t->mr = ibv_reg_mr(t->pd, t->buf, 2 * BUF_BYTES,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
	for (int i = 0; i < BUF_BYTES; i++)
		t->buf[i] = (char)(i * 7 + i / 256);
	return true;
}

static bool tm_close(struct tags *t)
{
	bool good = (!t->from || !ibv_destroy_qp(t->from)) && (!t->to || !ibv_destroy_qp(t->to));

	good &= !t->srq || !ibv_destroy_srq(t->srq);
	good &= !t->cq || !ibv_destroy_cq(ibv_cq_ex_to_cq(t->cq));
	good &= (!t->send_cq || !ibv_destroy_cq(t->send_cq)) &&
		(!t->qp_cq || !ibv_destroy_cq(t->qp_cq));
	good &= !t->mr || !ibv_dereg_mr(t->mr);
	good &= !t->pd || !ibv_dealloc_pd(t->pd);
	free(t->buf);
	MUST(good);
	return true;
}

#define WITH_TM(body)                      \
	do {                               \
		struct tags t_;              \
		bool good_ = tm_open(&t_); \
		if (good_)                 \
			good_ = body(&t_); \
		return tm_close(&t_) && good_; \
	} while (0)

static char *receiver(struct tags *t)
{
	return t->buf + BUF_BYTES;
}

/* The next completion of the SRQ's CQ, within bounded time. */
static bool next(struct tags *t, struct seen *s)
{
	struct ibv_poll_cq_attr start = { 0 };
	long long end = clock_ns(CLOCK_MONOTONIC) + WAIT_MS * 1000000ll;
	int err;

	while ((err = ibv_start_poll(t->cq, &start)) == ENOENT && clock_ns(CLOCK_MONOTONIC) < end)
		;
	MUST_EQ(err, 0);
	*s = (struct seen){ .wr_id = t->cq->wr_id,
			    .status = t->cq->status,
			    .opcode = ibv_wc_read_opcode(t->cq),
			    .flags = ibv_wc_read_wc_flags(t->cq),
			    .byte_len = ibv_wc_read_byte_len(t->cq),
			    .vendor_err = ibv_wc_read_vendor_err(t->cq) };
	ibv_wc_read_tm_info(t->cq, &s->info);
	ibv_end_poll(t->cq);
	return true;
}

static bool nothing_more(struct tags *t)
{
	struct ibv_poll_cq_attr start = { 0 };

	MUST_EQ(ibv_start_poll(t->cq, &start), ENOENT);
	return true;
}

#define EXPECT(t, id, code, wc_flags_)                  \
	do {                                            \
		MUST(next(t, &s));                      \
		MUST_EQ(s.status, IBV_WC_SUCCESS);      \
		MUST_EQ(s.wr_id, id);                   \
		MUST_EQ(s.opcode, code);                \
		MUST_EQ(s.flags, wc_flags_);            \
	} while (0)

static int post(struct tags *t, struct ibv_ops_wr *wr)
{
	struct ibv_ops_wr *bad = NULL;
	int err = ibv_post_srq_ops(t->srq, wr, &bad);

	return err && bad != wr ? -1 : err;
}

/* An ADD of len bytes at the receiver's offset. */
static struct ibv_ops_wr an_add(struct tags *t, uint64_t recv_wr_id, uint64_t tag,
				struct ibv_sge *sge, uint32_t offset, uint32_t len)
{
	*sge = (struct ibv_sge){ (uintptr_t)receiver(t) + offset, len, t->mr->lkey };
	return (struct ibv_ops_wr){ .wr_id = 1000 + recv_wr_id,
				    .opcode = IBV_WR_TAG_ADD,
				    .tm = { .handle = UINT32_MAX,
					    .add = { .recv_wr_id = recv_wr_id,
						     .sg_list = sge,
						     .num_sge = 1,
						     .tag = tag,
						     .mask = UINT64_MAX } } };
}

static bool add(struct tags *t, uint64_t recv_wr_id, uint64_t tag, uint32_t offset, uint32_t len)
{
	struct ibv_sge sge;
	struct ibv_ops_wr wr = an_add(t, recv_wr_id, tag, &sge, offset, len);

	MUST_EQ(post(t, &wr), 0);
	MUST(wr.tm.handle != UINT32_MAX);
	return true;
}

static bool sync_to(struct tags *t, uint32_t count)
{
	struct ibv_ops_wr wr = { .opcode = IBV_WR_TAG_SYNC,
				 .flags = IBV_OPS_TM_SYNC,
				 .tm.unexpected_cnt = count };

	MUST_EQ(post(t, &wr), 0);
	return true;
}

/* A receive for what is not matched: number n. */
static bool post_receive(struct tags *t, uint64_t n)
{
	struct ibv_sge sge = { (uintptr_t)receiver(t) + RECEIVES + n * RECEIVE, RECEIVE,
			       t->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = n, .sg_list = &sge, .num_sge = 1 }, *bad;

	MUST_EQ(ibv_post_srq_recv(t->srq, &wr, &bad), 0);
	return true;
}

/* A message: TMH and what follows it at the sender's offset 0. Waits until it is sent. */
static bool send_message(struct tags *t, uint8_t opcode, uint64_t tag, uint32_t app_ctx,
			 uint32_t len)
{
	struct ibv_tmh h = { .opcode = opcode, .app_ctx = htonl(app_ctx), .tag = htobe64(tag) };
	struct ibv_sge sge = { (uintptr_t)t->buf, (uint32_t)sizeof(h) + len, t->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc;

	memcpy(t->buf, &h, sizeof(h));
	MUST_EQ(ibv_post_send(t->from, &wr, &bad), 0);
	MUST(wait_wc(t->send_cq, &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.opcode, IBV_WC_SEND);
	return true;
}

static bool send_eager(struct tags *t, uint64_t tag, uint32_t len)
{
	return send_message(t, IBV_TMH_EAGER, tag, (uint32_t)tag + 1, len);
}

#define BOTH (IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID)

/* ---- ADD ---- */

/*
 * "Opcode IBV_WR_TAG_ADD used to add tag entry": a message that matches goes to its buffer without
 * its header, and completes with recv_wr_id.
 */
static bool add_body(struct tags *t)
{
	const uint64_t tag = 0xfedcba9876543210;
	struct ibv_sge sge;
	struct ibv_ops_wr wr = an_add(t, 0x8000000000000007, tag, &sge, 100, 200);
	struct seen s;

	/*
	 * "To request WC for tag list operations IBV_OPS_SIGNALED flags should be passed [...]
	 * wr_id will identify WC"
	 */
	wr.wr_id = 0x9000000000000001;
	wr.flags = IBV_OPS_SIGNALED;
	MUST_EQ(post(t, &wr), 0);
	EXPECT(t, 0x9000000000000001, IBV_WC_TM_ADD, 0);
	memset(receiver(t), 0x55, 400);
	MUST(send_message(t, IBV_TMH_EAGER, tag, 0x12345678, 150));
	EXPECT(t, 0x8000000000000007, IBV_WC_TM_RECV, BOTH);
	MUST_EQ(s.byte_len, 150);
	MUST_EQ(s.info.tag, (long long)tag);
	MUST_EQ(s.info.priv, 0x12345678);
	MUST(memcmp(receiver(t) + 100, t->buf + 16, 150) == 0);
	MUST(receiver(t)[99] == 0x55 && receiver(t)[250] == 0x55);
	return nothing_more(t);
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

	MUST(add(t, 3, 9, 0, 5000));
	MUST(send_eager(t, 9, 5000)); /* five packets */
	EXPECT(t, 3, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
	MUST_EQ(s.info.tag, 9);
	MUST_EQ(s.info.priv, 10);
	EXPECT(t, 3, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
	MUST_EQ(s.byte_len, 5000);
	MUST(memcmp(receiver(t), t->buf + 16, 5000) == 0);
	return nothing_more(t);
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
		struct ibv_ops_wr wr = an_add(t, 10 + i, entries[i].tag, &sge, 0, 100);

		wr.tm.add.mask = entries[i].mask;
		MUST_EQ(post(t, &wr), 0);
	}
	MUST(post_receive(t, 0));
	for (int i = 0; i < 4; i++)
		MUST(send_eager(t, 0x123, 20 + i));
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
	struct ibv_ops_wr wr = an_add(t, 1, 2, sge, 0, 0);
	struct seen s;
	int n;

	MUST_EQ(ibv_query_device_ex(ctx, NULL, &dev), 0);
	n = (int)dev.tm_caps.max_sge;
	MUST(n <= 64);
	for (int i = 0; i <= n; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)receiver(t) + 200 * i, 100, t->mr->lkey };
	wr.tm.add.num_sge = n + 1;
	MUST_EQ(post(t, &wr), EINVAL);
	wr.tm.add.num_sge = -1;
	MUST_EQ(post(t, &wr), EINVAL);
	wr.tm.add.num_sge = n;
	MUST_EQ(post(t, &wr), 0);
	MUST(send_eager(t, 2, 100 * n));
	EXPECT(t, 1, IBV_WC_TM_RECV, BOTH);
	for (int i = 0; i < n; i++)
		MUST(memcmp(receiver(t) + 200 * i, t->buf + 16 + 100 * i, 100) == 0);
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
	struct ibv_ops_wr wr = an_add(t, 9, 9, &sge, 0, 100);
	struct seen s;

	for (int i = 0; i < MAX_TAGS; i++)
		MUST(add(t, i, i, 0, 100));
	MUST_EQ(post(t, &wr), ENOMEM);
	MUST(send_eager(t, 1, 0));
	EXPECT(t, 1, IBV_WC_TM_RECV, BOTH);
	MUST_EQ(post(t, &wr), 0);
	MUST_EQ(post(t, &wr), ENOMEM);
	wr.opcode = IBV_WR_TAG_DEL;
	MUST_EQ(post(t, &wr), 0);
	wr.opcode = IBV_WR_TAG_ADD;
	MUST_EQ(post(t, &wr), 0);
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
	struct ibv_ops_wr first = an_add(t, 1, 5, &sge, 0, 100),
			  second = an_add(t, 2, 5, &sge, 200, 100);
	struct ibv_ops_wr del = { .wr_id = 77,
				  .opcode = IBV_WR_TAG_DEL,
				  .flags = IBV_OPS_SIGNALED };
	struct seen s;

	MUST_EQ(post(t, &first), 0);
	MUST_EQ(post(t, &second), 0);
	MUST(first.tm.handle != second.tm.handle);
	del.tm.handle = first.tm.handle;
	MUST_EQ(post(t, &del), 0);
	EXPECT(t, 77, IBV_WC_TM_DEL, 0);
	MUST(send_eager(t, 5, 10));
	EXPECT(t, 2, IBV_WC_TM_RECV, BOTH);
	del.tm.handle = second.tm.handle;
	MUST_EQ(post(t, &del), 0);
	MUST(next(t, &s));
	MUST_EQ(s.wr_id, 77);
	MUST_EQ(s.status, IBV_WC_TM_ERR);
	MUST_EQ(s.opcode, IBV_WC_TM_DEL);
	MUST_EQ(s.vendor_err, 15);
	/* the same slot in use again: still not what the handle names */
	MUST(add(t, 3, 5, 0, 100));
	MUST_EQ(post(t, &del), 0);
	MUST(next(t, &s));
	MUST_EQ(s.status, IBV_WC_TM_ERR);
	MUST(send_eager(t, 5, 10));
	EXPECT(t, 3, IBV_WC_TM_RECV, BOTH);
	del.tm.handle = MAX_TAGS; /* no handle of this list */
	MUST_EQ(post(t, &del), EINVAL);
	return nothing_more(t);
}

static bool del_removes_or_says_that_it_is_too_late(void)
{
	WITH_TM(del_body);
}

/* ---- completions of operations ---- */

static bool unsignaled_body(struct tags *t)
{
	struct ibv_sge sge;
	struct ibv_ops_wr wr = an_add(t, 1, 5, &sge, 0, 100);

	MUST_EQ(post(t, &wr), 0);
	MUST(sync_to(t, 0));
	wr.opcode = IBV_WR_TAG_DEL;
	MUST_EQ(post(t, &wr), 0);
	MUST_EQ(post(t, &wr), 0); /* too late, but nobody asked */
	return nothing_more(t);
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
			MUST_EQ(post(t, &wr), 0);
		MUST_EQ(post(t, &wr), ENOMEM);
		for (int i = 0; i < MAX_OPS; i++)
			EXPECT(t, 5, IBV_WC_TM_SYNC, 0);
	}
	return nothing_more(t);
}

static bool max_ops_are_outstanding(void)
{
	WITH_TM(outstanding_body);
}

/* A list is done up to its first bad element, which *bad_wr names. */
static bool list_body(struct tags *t)
{
	struct ibv_sge sge[2];
	struct ibv_ops_wr wr[4] = { an_add(t, 1, 1, &sge[0], 0, 100),
				    an_add(t, 2, 2, &sge[1], 100, 100),
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
	MUST(nothing_more(t));
	wr[2].opcode = IBV_WR_TAG_SYNC;
	wr[2].flags = 1 << 5;
	MUST_EQ(ibv_post_srq_ops(t->srq, &wr[2], &bad), EINVAL);
	MUST(bad == &wr[2]);
	wr[2].flags = IBV_OPS_SIGNALED;
	MUST_EQ(ibv_post_srq_ops(t->srq, &wr[2], &bad), 0);
	EXPECT(t, 52, IBV_WC_TM_SYNC, 0);
	EXPECT(t, 53, IBV_WC_TM_SYNC, 0);
	MUST(send_eager(t, 2, 10));
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

/* ---- what is not matched ---- */

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

	MUST(add(t, 70, 6, 0, 100));
	for (unsigned int i = 0; i < 3; i++) {
		MUST(post_receive(t, i));
		MUST(send_message(t, kinds[i].opcode, kinds[i].opcode == IBV_TMH_EAGER ? 5 : 6, 1,
				  60 + i));
		EXPECT(t, i, kinds[i].seen_as, 0);
		MUST_EQ(s.byte_len, 16 + 60 + i);
		MUST_EQ(s.info.tag, 0);
		MUST(memcmp(receiver(t) + RECEIVES + i * RECEIVE, t->buf, 16 + 60 + i) == 0);
	}
	return true;
}

static bool unmatched_messages_come_whole(void)
{
	WITH_TM(whole_body);
}

/*
 * "This process considered coherent only if all unexpected messages received by HW is completely
 * processed in SW": new entries match nothing until unexpected_cnt says so, with IBV_OPS_TM_SYNC or
 * IBV_WR_TAG_SYNC; "IBV_WC_TM_SYNC_REQ flag returned in list operation WC shows that counter
 * synchronization required".
 */
static bool sync_body(struct tags *t)
{
	struct ibv_ops_wr sync = { .wr_id = 8,
				   .opcode = IBV_WR_TAG_SYNC,
				   .flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC };
	struct ibv_sge sge;
	struct ibv_ops_wr wr = an_add(t, 1, 5, &sge, 0, 100);
	struct seen s;

	for (uint64_t i = 0; i < 4; i++)
		MUST(post_receive(t, i));
	MUST(send_eager(t, 4, 10));
	EXPECT(t, 0, IBV_WC_TM_RECV, 0);
	/* the first unexpected message was not dealt with when this is added */
	wr.flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC;
	MUST_EQ(post(t, &wr), 0);
	EXPECT(t, 1001, IBV_WC_TM_ADD, IBV_WC_TM_SYNC_REQ);
	MUST(send_eager(t, 5, 11));
	EXPECT(t, 1, IBV_WC_TM_RECV, 0); /* the receive of wr_id 1 */
	MUST_EQ(s.byte_len, 27);
	sync.tm.unexpected_cnt = 1;
	MUST_EQ(post(t, &sync), 0);
	EXPECT(t, 8, IBV_WC_TM_SYNC, IBV_WC_TM_SYNC_REQ);
	sync.tm.unexpected_cnt = 2;
	MUST_EQ(post(t, &sync), 0);
	EXPECT(t, 8, IBV_WC_TM_SYNC, 0);
	MUST(send_eager(t, 5, 12));
	EXPECT(t, 1, IBV_WC_TM_RECV, BOTH);
	MUST_EQ(s.byte_len, 12);
	/* an ADD can say it as well */
	MUST(send_eager(t, 5, 13));
	EXPECT(t, 2, IBV_WC_TM_RECV, 0);
	wr.tm.unexpected_cnt = 3;
	MUST_EQ(post(t, &wr), 0);
	EXPECT(t, 1001, IBV_WC_TM_ADD, 0);
	MUST(send_eager(t, 5, 14));
	EXPECT(t, 1, IBV_WC_TM_RECV, BOTH);
	return true;
}

static bool new_entries_wait_for_synchronization(void)
{
	WITH_TM(sync_body);
}

/* ---- rendezvous ---- */

/* The RVH behind the TMH at offset 0. */
static void put_rvh(struct tags *t, uint32_t data, uint32_t len)
{
	struct ibv_rvh v = { .va = htobe64((uintptr_t)t->buf + data),
			     .rkey = htonl(t->mr->rkey),
			     .len = htonl(len) };

	memcpy(t->buf + 16, &v, sizeof(v));
}

/*
 * The device fetches what was announced, and tells the sender by "a copy of the original TMH and
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
	MUST(add(t, 30, 5, 0, 20000));
	put_rvh(t, 1024, 20000);
	/* with as much behind it as may be */
	MUST(send_message(t, IBV_TMH_RNDV, 5, 99, dev.tm_caps.max_rndv_hdr_size - 16));
	EXPECT(t, 30, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
	MUST_EQ(s.info.tag, 5);
	MUST_EQ(s.info.priv, 99);
	EXPECT(t, 30, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
	MUST_EQ(s.byte_len, 20000);
	MUST(memcmp(receiver(t), t->buf + 1024, 20000) == 0);
	MUST(wait_wc(t->send_cq, &wc));
	MUST_EQ(wc.opcode, IBV_WC_RECV);
	MUST_EQ(wc.wr_id, 40);
	MUST_EQ(wc.byte_len, 32);
	MUST_EQ(t->buf[60000], IBV_TMH_FIN);
	MUST(memcmp(t->buf + 60001, t->buf + 1, 31) == 0);
	MUST(cq_is_empty(t->qp_cq)); /* the device's own work requests are nobody's */
	return nothing_more(t);
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

	MUST(add(t, 30, 5, 0, 1000));
	put_rvh(t, 1024, 1001);
	MUST(send_message(t, IBV_TMH_RNDV, 5, 99, 16));
	MUST(next(t, &s));
	MUST_EQ(s.status, IBV_WC_TM_RNDV_INCOMPLETE);
	MUST_EQ(s.wr_id, 30);
	MUST_EQ(s.opcode, IBV_WC_TM_RECV);
	MUST_EQ(s.info.tag, 5);
	MUST_EQ(s.info.priv, 99);
	MUST_EQ(s.vendor_err, 16);
	MUST(memcmp(receiver(t), t->buf, 32) == 0);
	MUST_EQ(qp_state_now(t->to), IBV_QPS_RTS);
	/* the application goes on itself */
	MUST(nothing_more(t));
	return true;
}

static bool rendezvous_that_does_not_fit_is_left(void)
{
	WITH_TM(incomplete_body);
}

/* One that nobody waits for comes whole, with its headers, for the application to do the same. */
static bool unexpected_rendezvous_body(struct tags *t)
{
	struct seen s;

	MUST(post_receive(t, 3));
	put_rvh(t, 1024, 2000);
	MUST(send_message(t, IBV_TMH_RNDV, 5, 99, 20));
	EXPECT(t, 3, IBV_WC_TM_RECV, 0);
	MUST_EQ(s.byte_len, 36);
	MUST(memcmp(receiver(t) + RECEIVES + 3 * RECEIVE, t->buf, 36) == 0);
	return nothing_more(t);
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

	MUST(add(t, 30, 5, 0, 1000));
	put_rvh(t, 1024, 500);
	t->buf[24] ^= 1;
	MUST(send_message(t, IBV_TMH_RNDV, 5, 99, 16));
	EXPECT(t, 30, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
	MUST(next(t, &s));
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
			an_add(a->t, (uint64_t)(a->first + i), (uint64_t)(a->first + i), &sge,
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
		good = send_eager(t, (uint64_t)(of->first + i / 2), 48) && next(t, &s) &&
		       s.opcode == IBV_WC_TM_RECV && s.flags == BOTH &&
		       s.wr_id == (uint64_t)(of->first + i / 2) &&
		       memcmp(receiver(t) + s.wr_id * 64, t->buf + 16, 48) == 0;
		atomic_fetch_add(&of->wanted, 1);
	}
	for (int i = 0; i < 2; i++) {
		atomic_store(&a[i].wanted, ROUNDS);
		pthread_join(thread[i], NULL);
	}
	MUST(good && !a[0].failed && !a[1].failed);
	return nothing_more(t);
}

static bool threads_add_while_messages_come(void)
{
	WITH_TM(threads_body);
}

/* Two threads that change the list without a pause: afterwards it is whole. */
static void *add_and_delete(void *arg)
{
	struct adder *a = arg;
	struct ibv_sge sge;

	for (int i = 0; i < 400000 && !a->failed; i++) {
		struct ibv_ops_wr wr = an_add(a->t, (uint64_t)i, 1, &sge, 0, 64);

		a->failed = post(a->t, &wr);
		wr.opcode = IBV_WR_TAG_DEL;
		a->failed |= post(a->t, &wr);
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
		MUST(add(t, i, i, 0, 64));
	for (uint64_t i = MAX_TAGS; i--;) {
		MUST(send_eager(t, i, 1));
		EXPECT(t, i, IBV_WC_TM_RECV, BOTH);
	}
	return nothing_more(t);
}

static bool threads_change_the_list_without_a_pause(void)
{
	WITH_TM(pauseless_body);
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
	CASE(rendezvous_is_fetched_and_answered),
	CASE(rendezvous_that_does_not_fit_is_left),
	CASE(unexpected_rendezvous_comes_whole),
	CASE(rendezvous_that_fails),
	CASE(threads_add_while_messages_come),
	CASE(threads_change_the_list_without_a_pause),
	{ 0 },
};
