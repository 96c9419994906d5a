/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The receive ring, a QP's own or shared. See rq.h for the two sides and their ordering. */
#include <stdlib.h>

#include "types.h"
#include "rq.h"

#define RQ_MAX_WR 32768
_Static_assert(RQ_MAX_WR <= UINT16_MAX && RQ_MAX_SGE <= UINT8_MAX &&
		       sizeof(struct recv_wqe) + RQ_MAX_SGE * sizeof(struct sge) <= UINT16_MAX,
	       "fields of struct rq");

static u32 rq_stride(u32 max_sge)
{
	return (u32)sizeof(struct recv_wqe) + max_sge * (u32)sizeof(struct sge);
}

size_t rq_bytes(u32 max_wr, u32 max_sge)
{
	const size_t bytes = (size_t)roundup_pow2(max_wr) * rq_stride(max_sge);

	return (bytes + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
}

int rq_init(struct rq *rq, u32 max_wr, u32 max_sge)
{
	return rq_init_in(rq, max_wr, max_sge, NULL);
}

int rq_init_in(struct rq *rq, u32 max_wr, u32 max_sge, void *lent)
{
	memset(rq, 0, sizeof(*rq));
	if (max_wr > RQ_MAX_WR || max_sge > RQ_MAX_SGE)
		return -EINVAL;
	rq->max_wr = (u16)max_wr;
	rq->max_sge = (u8)max_sge;
	rq->mask = (u16)(roundup_pow2(max_wr) - 1);
	rq->stride = (u16)rq_stride(max_sge);
	rq->lent = lent != NULL;
	rq->ring = aligned_or_lent(lent, rq_bytes(max_wr, max_sge));
	return rq->ring ? 0 : -ENOMEM;
}

void rq_free(struct rq *rq)
{
	if (!rq->lent)
		free(rq->ring);
	rq->ring = NULL;
}

struct recv_wqe *rq_slot(struct rq *rq, u32 n)
{
	u32 prod = atomic_load_explicit(&rq->prod, memory_order_relaxed) + n;
	/* acquire: pairs with the release in rq_take(): the slot has been copied out */
	u32 cons = atomic_load_explicit(&rq->cons, memory_order_acquire);

	if (prod - cons >= rq->max_wr)
		return NULL;
	return (struct recv_wqe *)(rq->ring + (size_t)(prod & rq->mask) * rq->stride);
}

void rq_publish(struct rq *rq, u32 n)
{
	u32 prod = atomic_load_explicit(&rq->prod, memory_order_relaxed);

	/*
	 * Sequentially consistent: as a release it pairs with the acquire in rq_take(). It also
	 * orders this store before the producer's read of the QP's state and pairs with the fence
	 * in qp_flush(): one of the two flushes a receive that is posted while the QP moves to ERR.
	 */
	atomic_store_explicit(&rq->prod, prod + n, memory_order_seq_cst);
}

bool rq_take(struct rq *rq, struct recv_work *out)
{
	u32 cons = atomic_load_explicit(&rq->cons, memory_order_relaxed);
	/* acquire: pairs with the store in rq_publish() */
	u32 prod = atomic_load_explicit(&rq->prod, memory_order_acquire);
	const struct recv_wqe *wqe =
		(const struct recv_wqe *)(rq->ring + (size_t)(cons & rq->mask) * rq->stride);

	if (cons == prod)
		return false;
	out->wr_id = wqe->wr_id;
	out->num_sge = min_u32(wqe->num_sge, rq->max_sge);
	if (likely(out->num_sge == 1)) {
		out->sge[0] = wqe->sge[0];
		out->length = out->sge[0].length;
	} else {
		memcpy(out->sge, wqe->sge, out->num_sge * sizeof(out->sge[0]));
		out->length = sge_length(out->sge, out->num_sge);
	}
	/* release: pairs with the acquire in rq_slot() */
	atomic_store_explicit(&rq->cons, cons + 1, memory_order_release);
	return true;
}

u32 rq_posted(const struct rq *rq)
{
	u32 cons = atomic_load_explicit(&((struct rq *)rq)->cons, memory_order_acquire);

	return atomic_load_explicit(&((struct rq *)rq)->prod, memory_order_acquire) - cons;
}

void rq_reset(struct rq *rq)
{
	/* release: pairs with the acquire in rq_slot() */
	atomic_store_explicit(&rq->cons, atomic_load_explicit(&rq->prod, memory_order_relaxed),
			      memory_order_release);
}

int rq_resize(struct rq *rq, u32 max_wr, void **lent)
{
	u32 prod = atomic_load_explicit(&rq->prod, memory_order_relaxed);
	u32 cons = atomic_load_explicit(&rq->cons, memory_order_relaxed);
	struct rq to;
	int err;

	if (prod - cons > max_wr)
		return -EINVAL;
	err = rq_init_in(&to, max_wr, rq->max_sge, lent ? *lent : NULL);
	if (err)
		return err;
	for (u32 i = cons; i != prod; i++)
		memcpy(to.ring + (size_t)(i & to.mask) * to.stride,
		       rq->ring + (size_t)(i & rq->mask) * rq->stride, rq->stride);
	if (lent)
		*lent = rq->lent ? rq->ring : NULL;
	rq_free(rq);
	rq->ring = to.ring;
	rq->lent = to.lent;
	rq->mask = to.mask;
	rq->max_wr = (u16)max_wr;
	return 0;
}
