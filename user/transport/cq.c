/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The completion ring. See cq.h for the two sides and their ordering. */
#include <stdlib.h>

#include "cq.h"

#define CQ_CAPACITY_MAX (1u << 22)

static struct cqe *cq_alloc_ring(u32 capacity, u32 *mask)
{
	u32 size = roundup_pow2(capacity);
	struct cqe *ring = aligned_alloc(CACHE_LINE, (size_t)size * sizeof(*ring));

	*mask = size - 1;
	return ring;
}

int cq_init(struct cq *cq, u32 capacity)
{
	if (capacity < 1 || capacity > CQ_CAPACITY_MAX)
		return -EINVAL;
	memset(cq, 0, sizeof(*cq));
	cq->ring = cq_alloc_ring(capacity, &cq->mask);
	if (!cq->ring)
		return -ENOMEM;
	cq->capacity = capacity;
	return 0;
}

void cq_free(struct cq *cq)
{
	free(cq->ring);
	cq->ring = NULL;
}

bool cq_push(struct cq *cq, const struct cqe *e)
{
	u32 prod = atomic_load_explicit(&cq->prod, memory_order_relaxed);
	/* acquire: pairs with the release in cq_pop(): the entry we are about to write has been read */
	u32 cons = atomic_load_explicit(&cq->cons, memory_order_acquire);
	struct cqe *slot = &cq->ring[prod & cq->mask];

	if (cq_has_overrun(cq))
		return false;
	if (prod - cons >= cq->capacity) {
		atomic_store_explicit(&cq->overrun, !cq->ignore_overrun, memory_order_relaxed);
		return false;
	}
	*slot = *e;
	slot->valid = 1;
	/* release: pairs with the acquire in cq_peek() */
	atomic_store_explicit(&cq->prod, prod + 1, memory_order_release);
	return true;
}

static bool asks_for(u32 armed, bool solicited_or_error)
{
	return armed == CQ_ARMED_ANY || (armed == CQ_ARMED_SOLICITED && solicited_or_error);
}

bool cq_would_take_event(struct cq *cq, bool solicited_or_error)
{
	return asks_for(atomic_load_explicit(&cq->armed, memory_order_seq_cst), solicited_or_error);
}

bool cq_take_event(struct cq *cq, bool solicited_or_error)
{
	u32 armed = atomic_load_explicit(&cq->armed, memory_order_seq_cst);

	while (asks_for(armed, solicited_or_error))
		if (atomic_compare_exchange_weak(&cq->armed, &armed, CQ_DISARMED))
			return true;
	return false;
}

void cq_moderate(struct cq *cq, u32 count, u64 period_ns)
{
	cq->moderate_ns = period_ns;
	atomic_store(&cq->moderate_count, count < 2 || !period_ns ? 0 : count);
}

const struct cqe *cq_peek(struct cq *cq)
{
	u32 cons = atomic_load_explicit(&cq->cons, memory_order_relaxed);
	/* acquire: pairs with the store in cq_push() */
	u32 prod = atomic_load_explicit(&cq->prod, memory_order_acquire);

	for (; cons != prod; cons++) {
		const struct cqe *e = &cq->ring[cons & cq->mask];

		if (__atomic_load_n(&e->valid, __ATOMIC_RELAXED))
			return e;
		atomic_store_explicit(&cq->cons, cons + 1, memory_order_release);
	}
	return NULL;
}

void cq_pop(struct cq *cq)
{
	u32 cons = atomic_load_explicit(&cq->cons, memory_order_relaxed);

	/* release: pairs with the acquire in cq_push() */
	atomic_store_explicit(&cq->cons, cons + 1, memory_order_release);
}

u32 cq_count(const struct cq *cq, u32 qpn, enum cqe_opcode opcode, u32 without_flags)
{
	u32 prod = cq_next_index(cq), n = 0;

	for (u32 i = atomic_load_explicit(&((struct cq *)cq)->cons, memory_order_relaxed); i != prod; i++) {
		const struct cqe *e = &cq->ring[i & cq->mask];

		n += e->valid && e->qpn == qpn && e->opcode == opcode && e->status == CQE_SUCCESS && !(e->flags & without_flags);
	}
	return n;
}

void cq_purge(struct cq *cq, u32 qpn)
{
	u32 prod = atomic_load_explicit(&cq->prod, memory_order_relaxed);

	for (u32 i = atomic_load_explicit(&cq->cons, memory_order_relaxed); i != prod; i++)
		if (cq->ring[i & cq->mask].qpn == qpn)
			/* relaxed: a consumer at work takes it, or passes it over */
			__atomic_store_n(&cq->ring[i & cq->mask].valid, 0, __ATOMIC_RELAXED);
}

int cq_resize(struct cq *cq, u32 capacity)
{
	u32 prod = atomic_load_explicit(&cq->prod, memory_order_relaxed);
	u32 cons = atomic_load_explicit(&cq->cons, memory_order_relaxed);
	struct cqe *ring;
	u32 mask;

	if (capacity < 1 || capacity > CQ_CAPACITY_MAX || prod - cons > capacity)
		return -EINVAL;
	ring = cq_alloc_ring(capacity, &mask);
	if (!ring)
		return -ENOMEM;
	for (u32 i = cons; i != prod; i++)
		ring[i & mask] = cq->ring[i & cq->mask];
	free(cq->ring);
	cq->ring = ring;
	cq->mask = mask;
	cq->capacity = capacity;
	return 0;
}
