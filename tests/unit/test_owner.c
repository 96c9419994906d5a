/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * Several engines of a device, and doorbells while objects are destroyed and QPs move. A ringing
 * thread may have found the locks taken by another thread, and left the bell to it. So until an
 * engine_output() of the QP's owner has read the queue, engine_has_doorbells() of it is true.
 */
#include "../../user/engine/internal.h"
#include "bare_engine.h"

static struct engine *second;

static int make_two(void **state)
{
	struct engine_config config = { .random = engine_random,
					.random_arg = &engine_seed,
					.stats = &stats,
					.drops = &drops,
					.number = 1 };

	if (make_engine(state))
		return -1;
	config.sibling = engine;
	return engine_create(&config, &second);
}

static int drop_two(void **state)
{
	engine_destroy(second);
	return drop_engine(state);
}

static struct qp *make_qp_in(struct engine *e)
{
	struct qp_init init = plain_init(XROCE_RC);
	struct qp *qp;

	assert_int_equal(qp_create(e, &init, &qp), 0);
	return qp;
}

/* One round: no QP is connected, so nothing is sent. */
static void run(struct engine *e)
{
	u8 frame[PACKET_FRAME_MAX];

	assert_int_equal(engine_output(e, frame, sizeof(frame), 1), 0);
	assert_false(engine_has_doorbells(e));
}

static void qp_destroy__leaves_the_bells_of_others(void **state)
{
	struct qp *here = make_qp_in(engine), *there = make_qp_in(second);

	for (u32 i = 0; i < 2; i++) {
		struct qp *gone = make_qp_in(i ? second : engine);

		assert_ptr_equal(engine_doorbell(here), engine);
		engine_doorbell(gone);
		assert_ptr_equal(engine_doorbell(there), second);
		qp_destroy(engine, gone);
		assert_true(engine_has_doorbells(engine));
		assert_true(engine_has_doorbells(second));
		run(engine);
		run(second);
	}
	qp_destroy(engine, here);
	qp_destroy(engine, there);
}

/* It lies with the engine that the ringer took for the owner. */
static void qp_destroy__finds_its_bell_on_any_stack(void **state)
{
	struct qp *qp = make_qp_in(engine);

	engine_doorbell(qp);
	engine_move_qp(second, qp, 1);
	qp_destroy(engine, qp);
	run(engine);
	run(second);
}

static void engine_move_qp__takes_the_bell_along(void **state)
{
	struct qp *qp = make_qp_in(engine), *other = make_qp_in(engine);

	engine_doorbell(qp);
	engine_doorbell(other);
	engine_move_qp(second, qp, 1);
	assert_ptr_equal(qp_engine(qp), second);
	assert_true(engine_has_doorbells(engine));
	assert_true(engine_has_doorbells(second));
	run(engine);
	run(second);
	/* and it can be rung again */
	assert_ptr_equal(engine_doorbell(qp), second);
	assert_true(engine_has_doorbells(second));
	assert_false(engine_has_doorbells(engine));
	qp_destroy(engine, qp);
	qp_destroy(engine, other);
}

/* Its started transmission continues, though no thread rings. */
static void engine_move_qp__rings_for_what_is_left_to_send(void **state)
{
	struct qp *qp = make_qp_in(engine);

	engine_posted(engine, qp);
	assert_false(engine_has_doorbells(second));
	engine_move_qp(second, qp, 1);
	assert_true(engine_has_doorbells(second));
	run(second);
	run(engine);
	qp_destroy(engine, qp);
}

/*
 * Rung at an engine that it had left by then: that engine passes it on, and reports the new one to
 * its caller.
 */
static void engine_doorbell__at_a_former_owner(void **state)
{
	struct qp *qp = make_qp_in(engine);

	atomic_store(&qp->engine, second);
	assert_ptr_equal(engine_doorbell(qp), second);
	atomic_store(&qp->engine, engine);
	assert_int_equal(engine_passed_doorbells(second), 0);
	run(second);
	assert_int_equal(engine_passed_doorbells(second), 1 << 0);
	assert_int_equal(engine_passed_doorbells(second), 0);
	assert_true(engine_has_doorbells(engine));
	run(engine);
	assert_int_equal(engine_passed_doorbells(engine), 0);
	qp_destroy(engine, qp);
}

/* A CQ overruns by one engine: each puts its own QPs into error, and touches no other's. */
static void owner_report_overrun__each_fails_its_own(void **state)
{
	struct qp *here = make_qp_in(engine), *there = make_qp_in(second);
	const struct cqe cqe = { .qpn = there->qpn };
	struct engine_event event;
	u32 overruns = 0;

	assert_int_equal(cq_engines(&cq), 3);
	for (struct qp *qp = here; qp; qp = qp == here ? there : NULL) {
		const struct qp_attr init = { .state = QPS_INIT, .port = 1 };

		assert_int_equal(qp_modify(engine, qp, &init,
					   QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT |
						   QP_ATTR_ACCESS_FLAGS,
					   1),
				 0);
	}
	for (u32 i = 0; i <= cq.capacity + 1; i++)
		engine_complete(second, &cq, &cqe, false);
	assert_int_equal(stats.cq_overruns, 1);
	assert_int_equal(engine_passed_doorbells(second), 1 << 0);
	assert_true(engine_has_doorbells(engine));
	while (engine_next_event(second, &event))
		overruns += event.type == EVENT_CQ_ERR;
	assert_int_equal(overruns, 1);
	assert_int_equal(qp_state(there), QPS_ERR);
	assert_int_equal(qp_state(here), QPS_INIT);
	while (engine_next_event(engine, &event))
		assert_int_not_equal(event.type, EVENT_CQ_ERR);
	assert_int_equal(qp_state(here), QPS_ERR);
	assert_false(engine_has_doorbells(engine));
	qp_destroy(engine, here);
	qp_destroy(engine, there);
}

static void engine_create__numbers(void **state)
{
	struct engine_config config = { .random = engine_random,
					.random_arg = &engine_seed,
					.stats = &stats,
					.drops = &drops };
	struct engine *others[ENGINE_MAX], *refused;

	assert_true(engine_mr_table(engine)->shared);
	assert_ptr_equal(engine_mr_table(engine), engine_mr_table(second));
	/* a first one of another number; a second one of that or a taken one; one too many */
	config.number = 1;
	assert_int_equal(engine_create(&config, &refused), -EINVAL);
	for (config.number = 0; config.number < 2; config.number++) {
		config.sibling = config.number ? engine : second;
		assert_int_equal(engine_create(&config, &refused), -EINVAL);
	}
	for (; config.number < ENGINE_MAX; config.number++) {
		assert_int_equal(engine_create(&config, &others[config.number]), 0);
		assert_int_equal(engine_number(others[config.number]), config.number);
	}
	assert_int_equal(engine_create(&config, &refused), -EINVAL);
	for (u32 i = 2; i < ENGINE_MAX; i++)
		engine_destroy(others[i]);
	assert_true(engine_mr_table(engine)->shared);
	engine_destroy(second);
	assert_false(engine_mr_table(engine)->shared);
	config.number = 1;
	assert_int_equal(engine_create(&config, &second), 0);
	assert_true(engine_mr_table(engine)->shared);
}

#define WITH_TWO(f) cmocka_unit_test_setup_teardown(f, make_two, drop_two)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_TWO(qp_destroy__leaves_the_bells_of_others),
		WITH_TWO(qp_destroy__finds_its_bell_on_any_stack),
		WITH_TWO(engine_move_qp__takes_the_bell_along),
		WITH_TWO(engine_move_qp__rings_for_what_is_left_to_send),
		WITH_TWO(engine_doorbell__at_a_former_owner),
		WITH_TWO(owner_report_overrun__each_fails_its_own),
		WITH_TWO(engine_create__numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
