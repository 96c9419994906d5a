/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An engine alone with a CQ, fresh for each case, for the tests of its parts: nothing is connected
 * and no packet is sent.
 */
#ifndef UNIT_BARE_ENGINE_H
#define UNIT_BARE_ENGINE_H

#include "unit.h"

#include "../../user/engine/internal.h"
#include "reference.h"

static struct engine *engine;
static struct xroce_engine_stats stats;
static struct xroce_drops drops;
static struct cq cq;
static u64 engine_seed;

static inline u64 engine_random(void *arg)
{
	return next_random(arg);
}

static inline int make_engine(void **state)
{
	struct engine_config config = { .random = engine_random,
					.random_arg = &engine_seed,
					.stats = &stats,
					.drops = &drops };

	engine_seed = 0x5150;
	memset(&stats, 0, sizeof(stats));
	return engine_create(&config, &engine) || cq_init(&cq, 256);
}

static inline int drop_engine(void **state)
{
	engine_destroy(engine);
	cq_free(&cq);
	return 0;
}

#define WITH_ENGINE(f) cmocka_unit_test_setup_teardown(f, make_engine, drop_engine)

/* The attributes of a small QP that completes in cq, and one of them. */
static inline struct qp_init plain_init(enum xroce_transport t)
{
	return (struct qp_init){
		.transport = t,
		.max_send_wr = 4,
		.max_recv_wr = 4,
		.max_send_sge = 2,
		.max_recv_sge = 2,
		.max_inline = 100,
		.send_cq = &cq,
		.recv_cq = &cq,
		.pd = 1,
	};
}

static inline struct qp *make_qp(enum xroce_transport t)
{
	struct qp_init init = plain_init(t);
	struct qp *qp;

	assert_int_equal(qp_create(engine, &init, &qp), 0);
	assert_int_equal(qp_state(qp), QPS_RESET);
	return qp;
}

#endif
