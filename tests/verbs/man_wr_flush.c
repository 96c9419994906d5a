/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * FLUSH and ATOMIC WRITE by the verbs of rdma-core 45 and later: ibv_wr_flush(), which Debian 12's
 * header lacks (wr.h has the declarations), and ibv_wr_atomic_write(). The rules come from the
 * IBTA's annex A19, and of the kernel's ABI for the capabilities.
 */
#include "wr.h"

/* ibv_device_attr_ex.device_cap_flags_ex, in the numbers of the kernel's ABI */
#define CAP_FLUSH_GLOBAL     (1ull << 38)
#define CAP_FLUSH_PERSISTENT (1ull << 39)
#define CAP_ATOMIC_WRITE     (1ull << 40)
#define WR_FLUSH	     14
#define PART		     64u /* bytes of the region that is to be flushed */

/* The answer to a single request; after an error both ends are made again. */
static bool ends_with(struct wr_ends *e, enum wr_code op, const struct wr_args *a, int status)
{
	struct ibv_async_event event;
	struct ibv_wc wc;

	ibv_wr_start(e->ex);
	e->ex->wr_id = 77;
	e->ex->wr_flags = IBV_SEND_SIGNALED;
	wr_build(e, op, a);
	wr_address(e);
	MUST_EQ(ibv_wr_complete(e->ex), 0);
	MUST(wait_wc(e->cq[0], &wc));
	MUST_EQ(wc.status, status);
	MUST_EQ(wc.wr_id, 77);
	if (!status) {
		MUST_EQ(wc.opcode, wr_ops[op].completion);
		return true;
	}
	MUST(next_async(&event));
	MUST_EQ(event.event_type, status == IBV_WC_REM_ACCESS_ERR ? IBV_EVENT_QP_ACCESS_ERR :
								    IBV_EVENT_QP_REQ_ERR);
	MUST(event.element.qp == e->qp[1]);
	ibv_ack_async_event(&event);
	return wr_again(e);
}

static bool capabilities(void)
{
	struct ibv_device_attr_ex attr;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *mr;
	char memory[4096];

	MUST(pd);
	MUST_EQ(ibv_query_device_ex(ctx, NULL, &attr), 0);
	MUST(attr.device_cap_flags_ex & CAP_ATOMIC_WRITE);
	MUST(attr.device_cap_flags_ex & CAP_FLUSH_GLOBAL);
	MUST(mr = ibv_reg_mr(pd, memory, sizeof(memory), ACCESS_FLUSH_GLOBAL));
	MUST_EQ(ibv_dereg_mr(mr), 0);
	/* Memory that a power failure clears is not persistent, and is not reported as such. */
	MUST(!(attr.device_cap_flags_ex & CAP_FLUSH_PERSISTENT));
	MUST_FAIL(ibv_reg_mr(pd, memory, sizeof(memory), ACCESS_FLUSH_PERSISTENT), EOPNOTSUPP);
	MUST_FAIL(ibv_reg_mr(pd, memory, sizeof(memory),
			     ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT),
		  EOPNOTSUPP);
	return !ibv_dealloc_pd(pd);
}

/* Earlier WRITEs of a list are there when it completes, as the peer's CPU sees. */
static bool written(struct wr_ends *e)
{
	const uint32_t length = 20000;
	struct wr_args w = wr_args_of(e, OP_WRITE), f = wr_args_of(e, OP_FLUSH);
	struct ibv_wc wc;

	f.length = length;
	for (int round = 0; round < 20; round++) {
		memset(e->buf[0], 'A' + round, length);
		f.level = round % 2;
		ibv_wr_start(e->ex);
		e->ex->wr_flags = 0;
		wr_build(e, OP_WRITE, &w);
		wr_address(e);
		ibv_wr_set_sge(e->ex, e->mr[0]->lkey, (uintptr_t)e->buf[0], length);
		e->ex->wr_id = (uint64_t)round;
		e->ex->wr_flags = IBV_SEND_SIGNALED;
		wr_build(e, OP_FLUSH, &f);
		wr_address(e);
		MUST_EQ(ibv_wr_complete(e->ex), 0);
		MUST(wr_completed(e->cq[0], (uint64_t)round, WC_FLUSH, &wc));
		MUST_EQ(memcmp(e->buf[1] + REMOTE_AT, e->buf[0], length), 0);
		MUST(cq_is_empty(e->cq[0]) && cq_is_empty(e->cq[1]));
	}
	return true;
}

ON_RELIABLE(a_flush_comes_after_what_was_written, written)

/* Several outstanding, among READs and atomics: in their order, each once. */
static bool among_others(struct wr_ends *e)
{
	static const enum wr_code ops[SEND_WRS] = {
		OP_FLUSH, OP_READ,	OP_FLUSH, OP_ATOMIC_WRITE,
		OP_FLUSH, OP_FETCH_ADD, OP_FLUSH, OP_WRITE,
	};
	struct ibv_wc wc;

	for (int round = 0; round < 20; round++) {
		ibv_wr_start(e->ex);
		for (unsigned int i = 0; i < SEND_WRS; i++) {
			struct wr_args a = wr_args_of(e, ops[i]);

			e->ex->wr_id = i;
			e->ex->wr_flags = IBV_SEND_SIGNALED | (i % 3 ? 0 : IBV_SEND_FENCE);
			wr_build(e, ops[i], &a);
			wr_address(e);
			if (wr_ops[ops[i]].data != DATA_NONE)
				ibv_wr_set_sge(e->ex, e->mr[0]->lkey, (uintptr_t)e->buf[0], 8);
		}
		MUST_EQ(ibv_wr_complete(e->ex), 0);
		for (unsigned int i = 0; i < SEND_WRS; i++)
			MUST(wr_completed(e->cq[0], i, wr_ops[ops[i]].completion, &wc));
	}
	return true;
}

ON_RELIABLE(flushes_keep_their_place_among_others, among_others)

/* The range is the region's bytes; with IBV_FLUSH_MR the region is meant, and no range. */
static bool bounds(struct wr_ends *e)
{
	struct ibv_mr *mr = ibv_reg_mr(e->pd, e->buf[1] + REMOTE_AT, PART, ACCESS_FLUSH_GLOBAL);
	const uint64_t base = (uintptr_t)e->buf[1] + REMOTE_AT;
	const struct {
		uint64_t at;
		size_t length;
		int level, status;
	} t[] = {
		{ base, PART, FLUSH_LEVEL_RANGE, IBV_WC_SUCCESS },
		{ base + PART - 1, 1, FLUSH_LEVEL_RANGE, IBV_WC_SUCCESS },
		{ base, PART + 1, FLUSH_LEVEL_RANGE, IBV_WC_REM_ACCESS_ERR },
		{ base - 1, 2, FLUSH_LEVEL_RANGE, IBV_WC_REM_ACCESS_ERR },
		{ base + PART, 1, FLUSH_LEVEL_RANGE, IBV_WC_REM_ACCESS_ERR },
		{ (uint64_t)-8, 16, FLUSH_LEVEL_RANGE, IBV_WC_REM_ACCESS_ERR },
		{ base, PART, FLUSH_LEVEL_MR, IBV_WC_SUCCESS },
		{ 0, 0, FLUSH_LEVEL_MR, IBV_WC_SUCCESS },
		{ (uint64_t)-8, PART + 1, FLUSH_LEVEL_MR, IBV_WC_SUCCESS },
	};

	MUST(mr);
	for (unsigned int i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct wr_args a = wr_args_of(e, OP_FLUSH);

		a.rkey = mr->rkey;
		a.remote = t[i].at;
		a.length = t[i].length;
		a.level = (uint8_t)t[i].level;
		if (!ends_with(e, OP_FLUSH, &a, t[i].status)) {
			printf("# row %u\n", i);
			return false;
		}
	}
	return !ibv_dereg_mr(mr);
}

static bool a_range_is_within_its_region(void)
{
	return on_service(IBV_QPT_RC, bounds);
}

/* A peer that asks for persistence where there is none is refused; a key of nothing always is. */
static bool types(struct wr_ends *e)
{
	struct wr_args a = wr_args_of(e, OP_FLUSH);
	struct ibv_mr *plain = ibv_reg_mr(e->pd, e->buf[1], BUF_BYTES, IBV_ACCESS_LOCAL_WRITE);

	MUST(plain);
	a.rkey = plain->rkey;
	MUST(ends_with(e, OP_FLUSH, &a, IBV_WC_REM_ACCESS_ERR));
	a.level = FLUSH_LEVEL_MR;
	MUST(ends_with(e, OP_FLUSH, &a, IBV_WC_REM_ACCESS_ERR));
	a.rkey ^= 1;
	MUST(ends_with(e, OP_FLUSH, &a, IBV_WC_REM_ACCESS_ERR));
	a = wr_args_of(e, OP_FLUSH);
	for (int type = FLUSH_TYPE_PERSISTENT; type <= 3; type++) {
		struct ibv_wc wc;

		a.type = (uint8_t)type;
		ibv_wr_start(e->ex);
		e->ex->wr_flags = IBV_SEND_SIGNALED;
		wr_build(e, OP_FLUSH, &a);
		wr_address(e);
		MUST_EQ(ibv_wr_complete(e->ex), 0);
		MUST(wait_wc(e->cq[0], &wc));
		MUST(wc.status == IBV_WC_REM_ACCESS_ERR || wc.status == IBV_WC_REM_INV_REQ_ERR);
		MUST(readable(ctx->async_fd, WAIT_MS));
		{
			struct ibv_async_event event;

			MUST_EQ(ibv_get_async_event(ctx, &event), 0);
			ibv_ack_async_event(&event);
		}
		MUST(wr_again(e));
	}
	return !ibv_dereg_mr(plain);
}

static bool a_flush_needs_a_region_that_allows_it(void)
{
	return on_service(IBV_QPT_RC, types);
}

/* Arguments that nothing could mean, and ibv_post_send(), whose struct has no place for them. */
static bool mistakes(struct wr_ends *e)
{
	const struct {
		size_t length;
		uint8_t type, level;
	} t[] = {
		{ 8, 0, FLUSH_LEVEL_RANGE }, /* of no kind */
		{ 8, 4, FLUSH_LEVEL_RANGE },
		{ 8, 255, FLUSH_LEVEL_RANGE },
		{ 8, FLUSH_TYPE_GLOBAL, 2 },
		{ 8, FLUSH_TYPE_GLOBAL, 255 },
		{ (size_t)1 << 32, FLUSH_TYPE_GLOBAL, FLUSH_LEVEL_RANGE }, /* RETH has 32 bits */
	};
	struct ibv_send_wr wr = { .opcode = (enum ibv_wr_opcode)WR_FLUSH,
				  .send_flags = IBV_SEND_SIGNALED,
				  .qp_type.xrc.remote_srqn = e->srqn }, *bad = NULL;

	for (unsigned int i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct wr_args a = wr_args_of(e, OP_FLUSH);

		a.length = t[i].length;
		a.type = t[i].type;
		a.level = t[i].level;
		ibv_wr_start(e->ex);
		e->ex->wr_flags = IBV_SEND_SIGNALED;
		wr_build(e, OP_FLUSH, &a);
		wr_address(e);
		MUST_EQ(ibv_wr_complete(e->ex), EINVAL);
		MUST(wr_nothing_was_posted(e));
	}
	MUST_EQ(ibv_post_send(e->qp[0], &wr, &bad), EINVAL);
	MUST(bad == &wr);
	return wr_nothing_was_posted(e);
}

ON_RELIABLE(what_no_flush_can_be_is_not_posted, mistakes)

/* 8 bytes at once, taken when the builder returns, in their place of the list. */
static bool words(struct wr_ends *e)
{
	struct wr_args w = wr_args_of(e, OP_WRITE), a = wr_args_of(e, OP_ATOMIC_WRITE);
	char word[9] = "the word";
	struct ibv_wc wc;

	memset(e->buf[0], 'w', 100);
	w.remote -= 8;
	a.word = word;
	ibv_wr_start(e->ex);
	e->ex->wr_flags = 0;
	wr_build(e, OP_WRITE, &w);
	wr_address(e);
	ibv_wr_set_sge(e->ex, e->mr[0]->lkey, (uintptr_t)e->buf[0], 24);
	e->ex->wr_id = 3;
	e->ex->wr_flags = IBV_SEND_SIGNALED;
	wr_build(e, OP_ATOMIC_WRITE, &a);
	memset(word, 'x', 8);
	wr_address(e);
	MUST_EQ(ibv_wr_complete(e->ex), 0);
	MUST(wr_completed(e->cq[0], 3, WC_ATOMIC_WRITE, &wc));
	MUST_EQ(memcmp(e->buf[1] + REMOTE_AT - 9, "\0wwwwwwwwthe wordwwwwwwww\0", 26), 0);
	for (unsigned int off = 1; off < 8; off++) {
		struct wr_args bad = a;

		bad.remote += off;
		ibv_wr_start(e->ex);
		wr_build(e, OP_ATOMIC_WRITE, &bad);
		wr_address(e);
		MUST_EQ(ibv_wr_complete(e->ex), EINVAL);
	}
	return wr_nothing_was_posted(e);
}

ON_RELIABLE(an_atomic_write_is_one_aligned_word, words)

const struct test_case man_cases[] = {
	CASE(capabilities),
	CASE(a_flush_comes_after_what_was_written),
	CASE(flushes_keep_their_place_among_others),
	CASE(a_range_is_within_its_region),
	CASE(a_flush_needs_a_region_that_allows_it),
	CASE(what_no_flush_can_be_is_not_posted),
	CASE(an_atomic_write_is_one_aligned_word),
	{ 0 },
};
