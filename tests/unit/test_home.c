/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Doorbells where objects end and QPs move: who rang may have found the locks taken by whoever does that, and left it to them to see the bell. So until an
 * engine_output() of the QP's home has looked at the queue, engine_has_doorbells() of it is true.
 */
#include "bare_engine.h"

static struct engine *second;

static int make_two(void **state)
{
	struct engine_config config = { .random = engine_random, .random_arg = &engine_seed, .stats = &stats, .drops = &drops, .number = 1 };

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

/* It lies where the ringer took the home to be. */
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

/* What it had begun to send goes on, though nobody rings. */
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

#define WITH_TWO(f) cmocka_unit_test_setup_teardown(f, make_two, drop_two)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_TWO(qp_destroy__leaves_the_bells_of_others),
		WITH_TWO(qp_destroy__finds_its_bell_on_any_stack),
		WITH_TWO(engine_move_qp__takes_the_bell_along),
		WITH_TWO(engine_move_qp__rings_for_what_is_left_to_send),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
