/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * Rings in memory that the caller provides: they stay in it, use no more than the given bytes, and
 * never free it; a resize returns the old piece. The pieces are the C library's, so a second free()
 * of one ends the program, and the last bytes of each are checked.
 */
#include "bare_engine.h"

#define EDGE 64

static u8 *lend(size_t bytes)
{
	u8 *p = aligned_alloc(CACHE_LINE, bytes + EDGE);

	assert_non_null(p);
	assert_int_equal(bytes % CACHE_LINE, 0);
	memset(p, 0xa5, bytes + EDGE);
	return p;
}

/* Checks that nothing was written past the given bytes, and that the ring wrote some of them. */
static void take_back(u8 *p, size_t bytes)
{
	bool used = false;

	for (size_t i = 0; i < bytes; i++)
		used |= p[i] != 0xa5;
	for (size_t i = 0; i < EDGE; i++)
		assert_int_equal(p[bytes + i], 0xa5);
	assert_true(used);
	free(p);
}

static void rq_fill(struct rq *rq, u32 n, u32 num_sge)
{
	for (u32 i = rq_posted(rq); i < n; i++) {
		struct recv_wqe *w = rq_slot(rq, 0);

		assert_non_null(w);
		w->wr_id = i;
		w->num_sge = num_sge;
		memset(w->sge, 1, num_sge * sizeof(w->sge[0]));
		rq_publish(rq, 1);
	}
	assert_null(rq_slot(rq, 0));
}

static void rq_init_in__of_any_size(void **state)
{
	static const u32 wr[] = { 1, 2, 3, 8, 33, 32768 }, sge[] = { 0, 1, 3, RQ_MAX_SGE };

	for (size_t i = 0; i < ARRAY_SIZE(wr); i++)
		for (size_t k = 0; k < ARRAY_SIZE(sge); k++) {
			const size_t bytes = rq_bytes(wr[i], sge[k]);
			u8 *memory = lend(bytes);
			struct recv_work work;
			struct rq rq;

			assert_int_equal(rq_init_in(&rq, wr[i], sge[k], memory), 0);
			assert_ptr_equal(rq.ring, memory);
			/* the second time from within the ring, so that each slot is used */
			rq_fill(&rq, wr[i], sge[k]);
			for (u32 n = 0; n < wr[i]; n++)
				assert_true(rq_take(&rq, &work));
			rq_fill(&rq, wr[i], sge[k]);
			rq_free(&rq);
			take_back(memory, bytes);
		}
}

/* Own, provided, provided, own; a size that does not fit changes nothing. */
static void rq_resize__says_what_comes_back(void **state)
{
	u8 *a = lend(rq_bytes(4, 1)), *b = lend(rq_bytes(5, 1));
	struct recv_work work;
	void *lent = a;
	struct rq rq;

	assert_int_equal(rq_init(&rq, 3, 1), 0);
	rq_fill(&rq, 3, 1);
	assert_int_equal(rq_resize(&rq, 4, &lent), 0);
	assert_null(lent);
	lent = b;
	assert_int_equal(rq_resize(&rq, 2, &lent), -EINVAL);
	assert_ptr_equal(lent, b);
	assert_ptr_equal(rq.ring, a);
	assert_int_equal(rq_resize(&rq, 5, &lent), 0);
	assert_ptr_equal(lent, a);
	assert_ptr_equal(rq.ring, b);
	take_back(a, rq_bytes(4, 1));
	lent = NULL;
	assert_int_equal(rq_resize(&rq, 3, &lent), 0);
	assert_ptr_equal(lent, b);
	take_back(b, rq_bytes(5, 1));
	for (u32 i = 0; i < 3; i++) {
		assert_true(rq_take(&rq, &work));
		assert_int_equal(work.wr_id, i);
	}
	lent = NULL;
	assert_int_equal(rq_resize(&rq, 8, &lent), 0);
	assert_null(lent);
	rq_free(&rq);
}

static void cq_fill(struct cq *c, u32 from, u32 to)
{
	for (u32 i = from; i < to; i++)
		assert_true(cq_push(c, &(struct cqe){ .wr_id = i, .qpn = 7 }));
}

static void cq_init_in__of_any_size(void **state)
{
	static const u32 entries[] = { 1, 2, 3, 100, 4096 };

	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		const size_t bytes = cq_bytes(entries[i]);
		u8 *memory = lend(bytes);
		struct cq c;

		assert_int_equal(cq_init_in(&c, entries[i], memory), 0);
		assert_ptr_equal(c.ring, memory);
		cq_fill(&c, 0, entries[i]);
		for (u32 n = 0; n < entries[i]; n++) {
			assert_int_equal(cq_peek(&c)->wr_id, n);
			cq_pop(&c);
		}
		cq_fill(&c, 0, entries[i]);
		cq_free(&c);
		take_back(memory, bytes);
	}
}

static void cq_resize__says_what_comes_back(void **state)
{
	u8 *a = lend(cq_bytes(4)), *b = lend(cq_bytes(5));
	void *lent = a;
	struct cq c;

	assert_int_equal(cq_init(&c, 3), 0);
	cq_fill(&c, 0, 3);
	assert_int_equal(cq_resize(&c, 4, &lent), 0);
	assert_null(lent);
	lent = b;
	assert_int_equal(cq_resize(&c, 2, &lent), -EINVAL);
	assert_ptr_equal(lent, b);
	assert_ptr_equal(c.ring, a);
	assert_int_equal(cq_resize(&c, 5, &lent), 0);
	assert_ptr_equal(lent, a);
	assert_ptr_equal(c.ring, b);
	take_back(a, cq_bytes(4));
	lent = NULL;
	assert_int_equal(cq_resize(&c, 3, &lent), 0);
	assert_ptr_equal(lent, b);
	take_back(b, cq_bytes(5));
	for (u32 i = 0; i < 3; i++) {
		assert_int_equal(cq_peek(&c)->wr_id, i);
		cq_pop(&c);
	}
	lent = NULL;
	assert_int_equal(cq_resize(&c, 8, &lent), 0);
	assert_null(lent);
	cq_free(&c);
}

/* A QP's two queues; a used QP number makes the creation fail after it has both. */
static void qp_create__in_lent_memory(void **state)
{
	const struct {
		u32 wr, sge, max_inline;
	} of[] = { { 1, 0, 0 }, { 4, 2, 100 }, { 5, 32, 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
		struct qp_init init = plain_init(XROCE_RC);
		size_t sends, recvs;
		u8 *sq, *rq;
		struct qp *qp, *other;

		init.max_send_wr = init.max_recv_wr = of[i].wr;
		init.max_send_sge = init.max_recv_sge = of[i].sge;
		init.max_inline = of[i].max_inline;
		sends = sq_bytes(of[i].wr, of[i].sge, of[i].max_inline);
		recvs = rq_bytes(of[i].wr, of[i].sge);
		init.sq_lent = sq = lend(sends);
		init.rq_lent = rq = lend(recvs);
		assert_int_equal(qp_create(engine, &init, &qp), 0);
		for (u32 n = 0; n < of[i].wr; n++) {
			struct send_wqe *w = sq_slot(qp_posting(qp), n);

			memset(w, 0, sizeof(*w));
			memset(w->data, 1, of[i].max_inline);
			memset(w->sge, 1, of[i].sge * sizeof(w->sge[0]));
		}
		assert_null(sq_slot(qp_posting(qp), of[i].wr));
		assert_int_equal((qp->sq.mask + 1u) * qp->sq.stride, sends);
		rq_fill(&qp->rq, of[i].wr, of[i].sge);
		init.qpn = qp->qpn;
		assert_int_equal(qp_create(engine, &init, &other), -EEXIST);
		qp_destroy(engine, qp);
		take_back(sq, sends);
		take_back(rq, recvs);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rq_init_in__of_any_size),
		cmocka_unit_test(rq_resize__says_what_comes_back),
		cmocka_unit_test(cq_init_in__of_any_size),
		cmocka_unit_test(cq_resize__says_what_comes_back),
		WITH_ENGINE(qp_create__in_lent_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
