/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * Queue pairs as objects: limits, numbers, the send queue's slots, and which work requests a QP may
 * carry.
 */
#include "../../user/engine/internal.h"
#include "bare_engine.h"

static void qp_create__limits(void **state)
{
	static const struct {
		size_t at;
		u32 most;
	} limit[] = {
		{ offsetof(struct qp_init, max_send_wr), QP_MAX_WR },
		{ offsetof(struct qp_init, max_recv_wr), QP_MAX_WR },
		{ offsetof(struct qp_init, max_send_sge), QP_MAX_SEND_SGE },
		{ offsetof(struct qp_init, max_recv_sge), RQ_MAX_SGE },
		{ offsetof(struct qp_init, max_inline), QP_MAX_INLINE },
	};
	struct qp *qp;

	for (size_t i = 0; i < ARRAY_SIZE(limit); i++) {
		struct qp_init init = plain_init(XROCE_RC);
		u32 *field = (u32 *)((u8 *)&init + limit[i].at);

		*field = limit[i].most + 1;
		assert_int_equal(qp_create(engine, &init, &qp), -EINVAL);
		*field = ~0u;
		assert_int_equal(qp_create(engine, &init, &qp), -EINVAL);
		*field = limit[i].most;
		assert_int_equal(qp_create(engine, &init, &qp), 0);
		qp_destroy(engine, qp);
		*field = 0;
		assert_int_equal(qp_create(engine, &init, &qp), 0);
		qp_destroy(engine, qp);
	}
}

static void qp_create__transports(void **state)
{
	for (int t = 0; t < 8; t++) {
		struct qp_init init = plain_init((enum xroce_transport)t);
		bool supported = t == XROCE_RC || t == XROCE_UC || t == XROCE_UD || t == XROCE_XRC;
		struct qp *qp;

		assert_int_equal(qp_create(engine, &init, &qp), supported ? 0 : -EINVAL);
		if (supported)
			qp_destroy(engine, qp);
	}
}

/* Numbers are unique, 24 bits, none of the reserved ones; a destroyed QP's number finds nothing. */
static void qp_create__numbers(void **state)
{
	enum { N = 600 };
	static struct qp *qp[N];

	for (int i = 0; i < N; i++) {
		qp[i] = make_qp(XROCE_UD);
		assert_true(qp[i]->qpn > 1 && qp[i]->qpn < ROCE_MULTICAST_QPN);
		for (int k = 0; k < i; k++)
			assert_int_not_equal(qp[k]->qpn, qp[i]->qpn);
	}
	for (int i = 0; i < N; i++)
		assert_ptr_equal(engine_find_qp(engine, qp[i]->qpn), qp[i]);
	for (int i = 0; i < N; i++) {
		u32 qpn = qp[i]->qpn;

		qp_destroy(engine, qp[i]);
		assert_null(engine_find_qp(engine, qpn));
	}
	assert_null(engine_find_qp(engine, 0));
	assert_null(engine_find_qp(engine, ROCE_MULTICAST_QPN));
	assert_null(engine_find_qp(engine, ~0u));
}

/* A number that differs from a QP's in any bit is not that QP's. */
static void engine_find_qp__every_bit_counts(void **state)
{
	struct qp *qp = make_qp(XROCE_UD);

	assert_ptr_equal(engine_find_qp(engine, qp->qpn), qp);
	for (int bit = 0; bit < 24; bit++)
		assert_null(engine_find_qp(engine, qp->qpn ^ 1u << bit));
	qp_destroy(engine, qp);
}

/* Destroying takes away the QP's completions and no others. */
static void qp_destroy__purges_completions(void **state)
{
	struct qp *qp = make_qp(XROCE_UD), *other = make_qp(XROCE_UD);
	struct cqe e = { .wr_id = 1, .qpn = qp->qpn };

	assert_true(cq_push(&cq, &e));
	e = (struct cqe){ .wr_id = 2, .qpn = other->qpn };
	assert_true(cq_push(&cq, &e));
	e = (struct cqe){ .wr_id = 3, .qpn = qp->qpn };
	assert_true(cq_push(&cq, &e));
	qp_destroy(engine, qp);
	assert_int_equal(cq_peek(&cq)->wr_id, 2);
	cq_pop(&cq);
	assert_null(cq_peek(&cq));
	qp_destroy(engine, other);
}

/*
 * A list starts where the ring does if nothing is outstanding, else after the outstanding WQEs, and
 * the engine finds each WQE where the application put it.
 */
static void sq_begin__empty_or_not(void **state)
{
	struct qp_init init = plain_init(XROCE_RC);
	struct send_wqe *first, *w[3];
	struct qp *qp;

	init.max_send_wr = 8;
	assert_int_equal(qp_create(engine, &init, &qp), 0);
	first = sq_slot(&qp->sq, 0);
	/* with 1 to 8 before it, all round the ring; the index never starts over */
	for (u32 round = 0, index = 0; round < 100; round++) {
		u32 n = 1 + round % 8;

		sq_begin(&qp->sq);
		for (u32 i = 0; i < n; i++) {
			struct send_wqe *slot = sq_slot(&qp->sq, i);

			assert_ptr_equal(slot, (u8 *)first + i * qp->sq.stride);
			slot->wr_id = index + i;
		}
		sq_publish(&qp->sq, n);
		for (u32 i = 0; i < n; i++, index++) {
			assert_ptr_equal(sq_at(&qp->sq, index), (u8 *)first + i * qp->sq.stride);
			assert_int_equal(sq_at(&qp->sq, index)->wr_id, index);
			atomic_store(&qp->sq.cons, index + 1);
		}
	}
	/* one outstanding: after it, then round, never onto it */
	sq_begin(&qp->sq);
	sq_publish(&qp->sq, 6);
	atomic_store(&qp->sq.cons, atomic_load(&qp->sq.prod) - 1);
	sq_begin(&qp->sq);
	for (u32 i = 0; i < 3; i++) {
		w[i] = sq_slot(&qp->sq, i);
		assert_ptr_equal(w[i], (u8 *)first + (6 + i) % 8 * qp->sq.stride);
	}
	/* it is completed while the list is being made: the list stays where it is */
	atomic_store(&qp->sq.cons, atomic_load(&qp->sq.prod));
	for (u32 i = 0; i < 3; i++)
		assert_ptr_equal(sq_slot(&qp->sq, i), w[i]);
	sq_publish(&qp->sq, 3);
	assert_ptr_equal(sq_at(&qp->sq, sq_cons(&qp->sq)), w[0]);
	qp_destroy(engine, qp);
}

/*
 * Exactly max_send_wr slots, each with room for its SGEs or inline data and apart from the others.
 */
static void sq_slot__room(void **state)
{
	static const u32 sizes[] = { 1, 2, 3, 5, 8, 33 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct qp_init init = plain_init(XROCE_RC);
		struct qp *qp;

		init.max_send_wr = sizes[i];
		assert_int_equal(qp_create(engine, &init, &qp), 0);
		for (u32 n = 0; n < sizes[i]; n++) {
			struct send_wqe *w = sq_slot(&qp->sq, n);

			assert_non_null(w);
			memset(w, (int)n, sizeof(*w));
			memset(w->data, (int)n, init.max_inline);
		}
		for (u32 n = 0; n < sizes[i]; n++) {
			struct send_wqe *w = sq_slot(&qp->sq, n);

			assert_int_equal(w->opcode, (u8)n);
			assert_int_equal(w->data[0], (u8)n);
			assert_int_equal(w->data[init.max_inline - 1], (u8)n);
		}
		assert_null(sq_slot(&qp->sq, sizes[i]));
		sq_publish(&qp->sq, sizes[i] - 1);
		assert_non_null(sq_slot(&qp->sq, 0));
		assert_null(sq_slot(&qp->sq, 1));
		sq_publish(&qp->sq, 1);
		assert_null(sq_slot(&qp->sq, 0));
		qp_destroy(engine, qp);
	}
}

static void sq_slot__of_nothing(void **state)
{
	struct qp_init init = plain_init(XROCE_RC);
	struct qp *qp;

	init.max_send_wr = 0;
	assert_int_equal(qp_create(engine, &init, &qp), 0);
	assert_null(sq_slot(&qp->sq, 0));
	qp_destroy(engine, qp);
}

/* ---- send_wqe_check() ---- */

/*
 * ibv_post_send(3), the table of opcodes by transport service. Local ones carry no data, an ATOMIC
 * WRITE its own 8 bytes.
 */
static void send_wqe_check__opcodes(void **state)
{
	static const struct {
		enum xroce_transport transport;
		u32 allowed;
	} rows[] = {
		{ XROCE_UD, 1 << WR_SEND | 1 << WR_SEND_WITH_IMM },
		{ XROCE_UC, 1 << WR_SEND | 1 << WR_SEND_WITH_IMM | 1 << WR_WRITE |
				    1 << WR_WRITE_WITH_IMM | 1 << WR_LOCAL_INV | 1 << WR_BIND_MW },
		{ XROCE_RC, 1 << WR_SEND | 1 << WR_SEND_WITH_IMM | 1 << WR_WRITE |
				    1 << WR_WRITE_WITH_IMM | 1 << WR_READ | 1 << WR_CMP_SWAP |
				    1 << WR_FETCH_ADD | 1 << WR_SEND_WITH_INV | 1 << WR_LOCAL_INV |
				    1 << WR_BIND_MW | 1 << WR_FLUSH | 1 << WR_ATOMIC_WRITE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct qp *qp = make_qp(rows[i].transport);

		for (int opcode = 0; opcode < 256; opcode++) {
			struct send_wqe w = { .opcode = (u8)opcode, .length = 8, .num_sge = 1 };
			bool allowed = opcode < 32 && (rows[i].allowed >> opcode & 1);
			/* an opcode of another service is posted and refused in its turn */
			bool known = opcode < 32 && (rows[2].allowed >> opcode & 1);
			int err;

			if (opcode == WR_LOCAL_INV || opcode == WR_BIND_MW)
				w.num_sge = w.length = 0;
			if (opcode == WR_ATOMIC_WRITE)
				w.num_sge = 0;
			err = send_wqe_check(qp, &w);
			if (err != (known ? 0 : -EINVAL) ||
			    w.opcode != (allowed || !known ? opcode : WR_REFUSED) ||
			    (known && !allowed && w.refused_as != CQE_LOC_QP_OP_ERR))
				fail_msg("transport %d opcode %d: %d", rows[i].transport, opcode,
					 err);
		}
		qp_destroy(engine, qp);
	}
}

static void send_wqe_check__sges_and_lengths(void **state)
{
	enum { NO, YES, REFUSED };
	static const struct {
		struct send_wqe w;
		int allowed;
	} rows[] = {
		{ { .opcode = WR_SEND, .num_sge = 0, .length = 0 }, YES },
		{ { .opcode = WR_SEND, .num_sge = 2, .length = 100 }, YES },
		{ { .opcode = WR_SEND, .num_sge = 3, .length = 100 }, NO },
		{ { .opcode = WR_SEND, .num_sge = 255, .length = 100 }, NO },
		{ { .opcode = WR_WRITE, .num_sge = 1, .length = 1u << 31 }, YES },
		{ { .opcode = WR_WRITE, .num_sge = 1, .length = (1u << 31) + 1 }, REFUSED },
		{ { .opcode = WR_READ, .num_sge = 1, .length = ~0u }, REFUSED },
		{ { .opcode = WR_READ, .num_sge = 2, .length = 1u << 31 }, YES },
		{ { .opcode = WR_SEND, .flags = WR_INLINE, .length = 100 }, YES },
		{ { .opcode = WR_SEND, .flags = WR_INLINE, .length = 101 }, NO },
		{ { .opcode = WR_WRITE_WITH_IMM, .flags = WR_INLINE, .length = 0 }, YES },
		{ { .opcode = WR_READ, .flags = WR_INLINE, .length = 8 }, NO },
		{ { .opcode = WR_CMP_SWAP, .flags = WR_INLINE, .length = 8 }, NO },
		{ { .opcode = WR_SEND,
		    .flags = WR_FENCE | WR_SIGNALED | WR_SOLICITED,
		    .length = 8,
		    .num_sge = 1 },
		  YES },
		{ { .opcode = WR_SEND, .flags = 0x80, .length = 8, .num_sge = 1 }, NO },
		/* atomics: 8 bytes; whether they are aligned is for the peer to say */
		{ { .opcode = WR_CMP_SWAP, .num_sge = 1, .length = 8, .remote_addr = 0x1000 },
		  YES },
		{ { .opcode = WR_CMP_SWAP, .num_sge = 1, .length = 4, .remote_addr = 0x1000 },
		  REFUSED },
		{ { .opcode = WR_FETCH_ADD, .num_sge = 1, .length = 16, .remote_addr = 0x1000 },
		  REFUSED },
		{ { .opcode = WR_FETCH_ADD, .num_sge = 1, .length = 8, .remote_addr = 0x1004 },
		  YES },
		{ { .opcode = WR_FETCH_ADD, .num_sge = 2, .length = 8, .remote_addr = 0x1008 },
		  YES },
	};
	struct qp *qp = make_qp(XROCE_RC);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct send_wqe w = rows[i].w;
		int err = send_wqe_check(qp, &w);

		if (rows[i].allowed ? err != 0 : err >= 0)
			fail_msg("row %zu: %d", i, err);
		if ((w.opcode == WR_REFUSED && w.refused_as == CQE_LOC_LEN_ERR) !=
		    (rows[i].allowed == REFUSED))
			fail_msg("row %zu is opcode %u", i, w.opcode);
	}
	qp_destroy(engine, qp);
}

/*
 * What the application gave for flags is not looked at any more: it must not become the engine's
 * own.
 */
static void send_wqe_refuse__keeps_the_signal_alone(void **state)
{
	struct send_wqe w = { .opcode = WR_ATOMIC_WRITE, .flags = 0xff, .num_sge = 3, .length = 8 };

	send_wqe_refuse(&w, CQE_LOC_PROT_ERR);
	assert_int_equal(w.flags, WR_SIGNALED);
	assert_int_equal(w.num_sge | w.length, 0);
	assert_int_equal(w.refused_as, CQE_LOC_PROT_ERR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_ENGINE(qp_create__limits),
		WITH_ENGINE(qp_create__transports),
		WITH_ENGINE(qp_create__numbers),
		WITH_ENGINE(engine_find_qp__every_bit_counts),
		WITH_ENGINE(qp_destroy__purges_completions),
		WITH_ENGINE(sq_begin__empty_or_not),
		WITH_ENGINE(sq_slot__room),
		WITH_ENGINE(sq_slot__of_nothing),
		WITH_ENGINE(send_wqe_check__opcodes),
		WITH_ENGINE(send_wqe_check__sges_and_lengths),
		cmocka_unit_test(send_wqe_refuse__keeps_the_signal_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
