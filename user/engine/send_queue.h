/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The send queue of a QP, its outstanding READs and atomics, and flushing. Private to
 * user/engine.
 */
#ifndef ENGINE_SEND_QUEUE_H
#define ENGINE_SEND_QUEUE_H

#include "internal.h"

static inline struct send_wqe *sq_at(const struct sq *sq, u32 index)
{
	/* relaxed: `first` changes only while the queue is empty, ordered by prod and cons */
	u32 first = atomic_load_explicit(&((struct sq *)sq)->first, memory_order_relaxed);

	return (struct send_wqe *)(sq->ring + (size_t)((index - first) & sq->mask) * sq->stride);
}
static inline u32 sq_prod(const struct sq *sq)
{
	/* acquire: pairs with the store in sq_publish() */
	return atomic_load_explicit(&((struct sq *)sq)->prod, memory_order_acquire);
}
static inline u32 sq_cons(const struct sq *sq)
{
	return atomic_load_explicit(&((struct sq *)sq)->cons, memory_order_relaxed);
}
/* Initialises the queue, in the caller's memory of sq_bytes() or its own. Returns 0 or -ENOMEM. */
int sq_init(struct sq *sq, u32 max_wr, u32 max_sge, u32 max_inline, void *lent);
void sq_free(struct sq *sq);
/* Completes the oldest WQE of the send queue and frees its slot. */
void sq_complete(struct engine *e, struct qp *qp, enum cqe_status status, enum vendor_err verr,
		 u64 now_ns);
void qp_flush(struct engine *e, struct qp *qp);
/*
 * Purges the QP's completions from its CQs, whose consumer sides are held, and an XRC target's from
 * the CQs of its domain's SRQs.
 */
void qp_purge_completions(struct engine *e, struct qp *qp);
/*
 * Fails the oldest send WQE: completes it, moves the QP to ERR (SQE on UC and UD), and flushes the
 * rest.
 */
void qp_send_error(struct engine *e, struct qp *qp, enum cqe_status status, enum vendor_err verr,
		   u64 now_ns);
/* Clears requester and responder as for qp_create(); allocates no ring. */
void qp_clear(struct qp *qp);

/* Selects the rings in struct qp, for a zeroed requester and responder. */
void rd_atomic_init(struct qp *qp);
/*
 * Makes room for this many outstanding READs and atomics. Returns 0, or -ENOMEM with nothing
 * changed.
 */
int rd_atomic_reserve(struct qp *qp, u32 initiated, u32 answered);
/* Frees allocated rings; rd_atomic_init() or the end of the QP follows. */
void rd_atomic_free(struct qp *qp);

#endif
