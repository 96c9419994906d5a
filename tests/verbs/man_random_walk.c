/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san XROCE_CYCLES=1000 XROCE_WALK_STEPS=5000 */
/*
 * A random walk over the verbs and a model of them: objects come and go in any order, QPs change
 * their states, and requests name any key, live or stale, in bounds or not. Each call's result,
 * each completion, each QP's state and every byte of memory must be the model's.
 *
 * One request is under way at a time. A failure prints the seed and the step: XROCE_WALK_SEED=n
 * walks it again, XROCE_WALK_STEPS limits the steps.
 */
#include "walk.h"

static bool step(void)
{
	static bool (*const objects[])(void) = { walk_pd, walk_cq, walk_srq, walk_ah, walk_mr,
						 walk_mr, walk_mw, walk_qp,  walk_qp,
						 walk_connect };
	static bool (*const work[])(void) = { walk_rdma,    walk_rdma,	  walk_send,
					      walk_receive, walk_receive, walk_bind };

	if (!walk_draw(3) && walk_sender() == NONE)
		return walk_connect();
	return walk_draw(12) ? work[walk_draw(sizeof(work) / sizeof(*work))]() :
			       objects[walk_draw(sizeof(objects) / sizeof(*objects))]();
}

static bool walk_end(void)
{
	for (int i = 0; i < QPS; i++)
		MUST(!model.qp[i].o || walk_destroy_qp(i));
	for (int i = 0; i < MWS; i++)
		MUST(!model.mw[i].o || walk_drop_mw(i));
	for (int i = 0; i < MRS; i++)
		MUST(!model.mr[i].o || !ibv_dereg_mr(model.mr[i].o));
	for (int i = 0; i < AHS; i++)
		MUST(!model.ah[i].o || !ibv_destroy_ah(model.ah[i].o));
	for (int i = 0; i < SRQS; i++)
		MUST(!model.srq[i].o || !ibv_destroy_srq(model.srq[i].o));
	for (int i = 0; i < CQS; i++)
		MUST(!model.cq[i].o || !ibv_destroy_cq(model.cq[i].o));
	for (int i = 0; i < PDS; i++)
		MUST(!model.pd[i].o || !ibv_dealloc_pd(model.pd[i].o));
	free(model.mem);
	free(model.want);
	return true;
}

static bool walk(uint64_t seed, unsigned long steps)
{
	walk_begin(seed);
	MUST((model.mem = aligned_alloc(4096, MEM)) && (model.want = malloc(MEM)));
	for (int i = 0; i < MEM; i++)
		model.mem[i] = model.want[i] = (uint8_t)(i * 7);
	MUST(set_nonblocking(ctx->async_fd, true));
	for (unsigned long i = 0; i < steps; i++) {
		if (step() && walk_nothing_else())
			continue;
		printf("# XROCE_WALK_SEED=%llu, step %lu\n", (unsigned long long)seed, i);
		return false;
	}
	MUST(set_nonblocking(ctx->async_fd, false));
	printf("# done: %lu WRITE, %lu READ, %lu and %lu atomics, %lu SEND, %lu windows; %lu "
	       "failed\n",
	       model.done[0], model.done[1], model.done[2], model.done[3], model.done[4],
	       model.done[5], model.failed);
	/* or it has shown nothing */
	for (int i = 0; i < 6 && steps >= 10000; i++)
		MUST(model.done[i] > steps / 1000);
	return walk_end();
}

static bool the_model_is_right(void)
{
	const char *seed = getenv("XROCE_WALK_SEED"), *steps = getenv("XROCE_WALK_STEPS");

	if (seed)
		return walk(strtoull(seed, NULL, 0), steps ? strtoul(steps, NULL, 0) : 20000);
	for (uint64_t s = 1; s <= 5; s++)
		MUST(walk(s, steps ? strtoul(steps, NULL, 0) : 20000));
	return true;
}

const struct test_case man_cases[] = {
	CASE(the_model_is_right),
	{ 0 },
};
