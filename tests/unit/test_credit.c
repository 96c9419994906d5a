/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * Credit codes of the AETH, recomputed from their definition: 0, 1, 2, 3, and from then on each
 * twice the one before the last.
 */
#include "../../user/engine/credit.h"
#include "../../user/engine/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define MAX_CREDITS 32768

static struct xroce_engine_stats stats;
static struct xroce_drops drops;

static u64 counting(void *arg)
{
	return ++*(u64 *)arg * 0x9e3779b97f4a7c15;
}

static u64 seed;

static struct engine *engine(u32 disable)
{
	struct engine_config config = { .random = counting,
					.random_arg = &seed,
					.stats = &stats,
					.drops = &drops,
					.disable = disable };
	struct engine *e;

	assert_int_equal(engine_create(&config, &e), 0);
	return e;
}

static struct qp *make_qp(struct engine *e, struct cq *cq, struct srq *srq)
{
	struct qp_init init = { .transport = XROCE_RC,
				.max_send_wr = 1,
				.max_recv_wr = MAX_CREDITS,
				.send_cq = cq,
				.recv_cq = cq,
				.srq = srq };
	struct qp *qp;

	assert_int_equal(qp_create(e, &init, &qp), 0);
	return qp;
}

/* Credits that code c of 0 .. 30 stands for. */
static u32 credits(u32 c)
{
	return c < 4 ? c : 2 * credits(c - 2);
}

static void syndrome__promises_the_most_that_is_there(void **state)
{
	struct engine *e = engine(0);
	struct cq cq;
	struct qp *qp;
	u32 code = 0;

	assert_int_equal(cq_init(&cq, 1), 0);
	qp = make_qp(e, &cq, NULL);
	assert_int_equal(credits(30), MAX_CREDITS);
	for (u32 posted = 0; posted <= MAX_CREDITS; posted++) {
		while (code < 30 && credits(code + 1) <= posted)
			code++;
		assert_int_equal(credit_syndrome(e, qp), AETH_ACK | code);
		if (posted < MAX_CREDITS) {
			rq_slot(&qp->rq, 0)->num_sge = 0;
			rq_publish(&qp->rq, 1);
		}
	}
	qp_destroy(e, qp);
	cq_free(&cq);
	engine_destroy(e);
}

/* Receives that are shared, or unwanted credits, are not promised: code 31. */
static void syndrome__none(void **state)
{
	struct engine *plain = engine(ENGINE_NO_CREDITS), *e = engine(0);
	struct srq srq = { .pd = 0 };
	struct cq cq;
	struct qp *qp;

	assert_int_equal(cq_init(&cq, 1), 0);
	qp = make_qp(plain, &cq, NULL);
	assert_int_equal(credit_syndrome(plain, qp), AETH_ACK | 31);
	qp_destroy(plain, qp);
	qp = make_qp(e, &cq, &srq);
	assert_int_equal(credit_syndrome(e, qp), AETH_ACK | 31);
	qp_destroy(e, qp);
	cq_free(&cq);
	engine_destroy(plain);
	engine_destroy(e);
}

static void update__counts_from_the_msn(void **state)
{
	static const u32 msns[] = { 0, 1, 77, 0xfffffe, 0xffffff };
	struct engine *e = engine(0);
	struct cq cq;
	struct qp *qp;

	assert_int_equal(cq_init(&cq, 1), 0);
	qp = make_qp(e, &cq, NULL);
	for (u32 code = 0; code < 31; code++)
		for (u32 i = 0; i < ARRAY_SIZE(msns); i++) {
			credit_update(e, qp, (u8)(AETH_ACK | code), msns[i]);
			/* a NAK's low bits are no credits */
			credit_update(e, qp, AETH_NAK | 1, 5);
			assert_true(qp->req.credits_used);
			assert_int_equal(qp->req.credit_limit,
					 (msns[i] + credits(code)) & 0xffffff);
		}
	credit_update(e, qp, AETH_ACK | 31, 0);
	assert_false(qp->req.credits_used);
	qp_destroy(e, qp);
	cq_free(&cq);
	engine_destroy(e);
}

/*
 * Message n may start if n <= limit, on the circle; without credits left one may be tried when
 * nothing is under way.
 */
static void allows__up_to_the_limit(void **state)
{
	static const struct {
		u32 first, limit, index;
		u8 opcode;
		bool in_flight, allowed;
	} cases[] = {
		{ 0, 1, 0, WR_SEND, true, true },
		{ 0, 0, 0, WR_SEND, true, false },
		{ 0, 0, 0, WR_SEND, false, true },
		{ 0, 0, 0, WR_WRITE, true, true },
		{ 0, 0, 0, WR_READ, true, true },
		{ 0, 0, 0, WR_WRITE_WITH_IMM, true, false },
		{ 0, 0, 0, WR_SEND_WITH_INV, true, false },
		{ 0, 0, 0, WR_SEND_WITH_IMM, true, false },
		{ 5, 3, 7, WR_SEND, true, true },
		{ 5, 3, 8, WR_SEND, true, false },
		{ 0, 2, 0x1000000, WR_SEND, true, true },
		{ 0, 2, 0xffffff, WR_SEND, true, true },
		{ 0, 0xffffff, 0xffffff, WR_SEND, true, false },
	};
	struct engine *e = engine(0);
	struct cq cq;
	struct qp *qp;

	assert_int_equal(cq_init(&cq, 1), 0);
	qp = make_qp(e, &cq, NULL);
	for (u32 i = 0; i < ARRAY_SIZE(cases); i++) {
		struct send_wqe wqe = { .opcode = cases[i].opcode };

		qp->req.credits_used = true;
		qp->req.first_index = cases[i].first;
		qp->req.credit_limit = cases[i].limit;
		qp->req.unacked_psn = 10;
		qp->req.next_psn = cases[i].in_flight ? 11 : 10;
		assert_int_equal(credit_allows(e, qp, &wqe, cases[i].index), cases[i].allowed);
		qp->req.credits_used = false;
		assert_true(credit_allows(e, qp, &wqe, cases[i].index));
	}
	qp_destroy(e, qp);
	cq_free(&cq);
	engine_destroy(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(syndrome__promises_the_most_that_is_there),
		cmocka_unit_test(syndrome__none),
		cmocka_unit_test(update__counts_from_the_msn),
		cmocka_unit_test(allows__up_to_the_limit),
	};

	return cmocka_run_group_tests_name("credit", tests, NULL, NULL);
}
