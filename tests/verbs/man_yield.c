/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * xroce(7), XROCE_YIELD: "after how many calls in a row that found no completion a thread that
 * polls lets its processor go to others (sched_yield(2)) [...] 0, which is never". The library's
 * calls of sched_yield come here, as this program has a function of that name.
 */
#include <sched.h>

#include "man.h"

static __thread unsigned int yields;

int sched_yield(void)
{
	yields++;
	return 0;
}

/* A CQ that is made while the variable is that; NULL: while it is not set. */
static struct ibv_cq *cq_with(const char *value)
{
	struct ibv_cq *cq;

	if (value)
		setenv("XROCE_YIELD", value, 1);
	cq = ibv_create_cq(ctx, QUEUE, NULL, NULL, 0);
	unsetenv("XROCE_YIELD");
	return cq;
}

static bool poll_in_vain(struct ibv_cq *cq, int n)
{
	struct ibv_wc wc;

	for (int i = 0; i < n; i++)
		MUST_EQ(ibv_poll_cq(cq, 1, &wc), 0);
	return true;
}

static bool never_does_so(const char *value)
{
	struct ibv_cq *cq;

	MUST(cq = cq_with(value));
	yields = 0;
	MUST(poll_in_vain(cq, 100000));
	MUST_EQ(yields, 0);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	return true;
}

static bool never_unasked(void) { return never_does_so(NULL) && never_does_so("0"); }

/* "Text that is not valid counts as unset". */
static bool never_by_what_it_cannot_be(void)
{
	return never_does_so("-1") && never_does_so("1000001") && never_does_so("often");
}

static bool after_so_many(void)
{
	struct ibv_cq *cq;

	MUST(cq = cq_with("100"));
	yields = 0;
	MUST(poll_in_vain(cq, 100));
	MUST_EQ(yields, 0);
	MUST(poll_in_vain(cq, 901));
	MUST_EQ(yields, 10);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	return true;
}

/* The extended CQ's way to poll is one. */
static bool by_start_poll(void)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = QUEUE };
	struct ibv_poll_cq_attr none = { 0 };
	struct ibv_cq_ex *cq;

	setenv("XROCE_YIELD", "10", 1);
	cq = ibv_create_cq_ex(ctx, &attr);
	unsetenv("XROCE_YIELD");
	MUST(cq);
	yields = 0;
	for (int i = 0; i < 101; i++)
		MUST_EQ(ibv_start_poll(cq, &none), ENOENT);
	MUST(yields >= 10 && yields <= 11); /* polls of the case before count */
	MUST_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	return true;
}

/* A completion, of this CQ or another that the thread polls, restarts the count. */
static bool what_is_found_counts_anew(void)
{
	struct ibv_cq *cq, *other;
	struct ibv_pd *pd;
	struct ibv_qp *qp;
	struct ibv_wc wc;

	MUST(pd = ibv_alloc_pd(ctx));
	MUST((cq = cq_with("1000000")) && (other = cq_with("1000000")));
	MUST(qp = qp_to_itself(pd, cq, cq, NULL));
	MUST(ping(qp, 1, IBV_SEND_SIGNALED));
	MUST(wait_wc(cq, &wc) && wait_wc(cq, &wc)); /* the SEND's and the receive's */
	yields = 0;
	for (int i = 0; i < 12; i++) {
		MUST(poll_in_vain(other, 100000));
		MUST(ping(qp, 1, IBV_SEND_SIGNALED));
		MUST(wait_wc(cq, &wc) && wait_wc(cq, &wc));
	}
	MUST_EQ(yields, 0);
	MUST(poll_in_vain(other, 1000001));
	MUST_EQ(yields, 1);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	MUST_EQ(ibv_destroy_cq(other), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

const struct test_case man_cases[] = {
	CASE(never_unasked),
	CASE(never_by_what_it_cannot_be),
	CASE(after_so_many),
	CASE(by_start_poll),
	CASE(what_is_found_counts_anew),
	{ 0 },
};
