/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The completion ring. See cq.h for the two sides and their ordering. */
#include <stdlib.h>

#include "types.h"
#include "cq.h"

#define CQ_CAPACITY_MAX (1u << 22)
#define NO_QPN		UINT32_MAX /* not a QPN: these have 24 bits */

size_t cq_bytes(u32 capacity)
{
	return (size_t)roundup_pow2(capacity) * sizeof(struct cqe);
}

int cq_init(struct cq *cq, u32 capacity)
{
	return cq_init_in(cq, capacity, NULL);
}

int cq_init_in(struct cq *cq, u32 capacity, void *lent)
{
	if (capacity < 1 || capacity > CQ_CAPACITY_MAX)
		return -EINVAL;
	memset(cq, 0, sizeof(*cq));
	cq->ring = aligned_or_lent(lent, cq_bytes(capacity));
	if (!cq->ring)
		return -ENOMEM;
	cq->lent = lent != NULL;
	cq->mask = roundup_pow2(capacity) - 1;
	cq->capacity = capacity;
	return 0;
}

void cq_free(struct cq *cq)
{
	if (!cq->lent)
		free(cq->ring);
	cq->ring = NULL;
}

/*
 * A CQE as words, for entries that reader and writer may use at the same time: neither waits, and
 * the reader detects it.
 */
#define CQE_WORDS (sizeof(struct cqe) / sizeof(u64))
union cqe_words {
	struct cqe cqe;
	u64 word[CQE_WORDS];
};

static void cq_store_entry(struct cqe *slot, const struct cqe *from)
{
	for (u32 i = 0; i < CQE_WORDS; i++)
		/* relaxed: ordered by the fences in cq_make_room() and cq_claim() */
		atomic_store_explicit(shared_word((u64 *)slot + i),
				      ((const union cqe_words *)from)->word[i],
				      memory_order_relaxed);
}

static void cq_load_entry(const struct cqe *slot, union cqe_words *to)
{
	for (u32 i = 0; i < CQE_WORDS; i++)
		to->word[i] =
			atomic_load_explicit(shared_word((u64 *)slot + i), memory_order_relaxed);
}

/*
 * With ignore_overrun both sides remove the oldest entry, at *cons. Returns false if the other side
 * removed it; *cons is then updated. Pairs with itself on the other side.
 */
static bool cq_take_away(struct cq *cq, u32 *cons)
{
	return atomic_compare_exchange_strong_explicit(
		&cq->cons, cons, *cons + 1, memory_order_seq_cst, memory_order_seq_cst);
}

/* The ring is full: overruns the CQ, or removes the oldest entry. */
static rare void cq_make_room(struct cq *cq, u32 cons)
{
	if (!cq->ignore_overrun) {
		atomic_store_explicit(&cq->overrun, true, memory_order_relaxed);
		return;
	}
	/* if this fails, the consumer has just taken that entry */
	cq_take_away(cq, &cons);
	/* release: pairs with the fence in cq_claim(): the entry is written after it was removed */
	atomic_thread_fence(memory_order_release);
}

/*
 * Returns the ring's entry, or `aside` for an overrun CQ and for one whose reader may be reading
 * the same entry.
 */
struct cqe *cq_push_begin(struct cq *cq)
{
	u32 prod = atomic_load_explicit(&cq->prod, memory_order_relaxed);
	/* acquire: pairs with the release in cq_pop(): the entry to be written has been read */
	u32 cons = atomic_load_explicit(&cq->cons, memory_order_acquire);

	if (unlikely(prod - cons >= cq->capacity))
		cq_make_room(cq, cons);
	return unlikely(cq_has_overrun(cq) | cq->ignore_overrun) ? &cq->aside
								 : &cq->ring[prod & cq->mask];
}

/* Finishes an entry of a CQ with_time, or one written aside. Returns false if it is lost. */
static rare bool cq_finish_entry(struct cq *cq, struct cqe *e)
{
	u32 prod = atomic_load_explicit(&cq->prod, memory_order_relaxed);

	if (cq_has_overrun(cq))
		return false;
	if (cq->with_time) {
		/* A packet's arrival may precede a send's completion that was pushed before it. */
		cq->newest_ns = max_u64(cq->newest_ns, e->time_ns);
		e->time_ns = cq->newest_ns;
	}
	if (e == &cq->aside)
		cq_store_entry(&cq->ring[prod & cq->mask], e);
	return true;
}

bool cq_push_end(struct cq *cq, struct cqe *e)
{
	u32 prod = atomic_load_explicit(&cq->prod, memory_order_relaxed);

	e->valid = 1;
	if (unlikely(cq->with_time | (e == &cq->aside)) && !cq_finish_entry(cq, e))
		return false;
	/* release: pairs with the acquire in cq_peek() */
	atomic_store_explicit(&cq->prod, prod + 1, memory_order_release);
	return true;
}

bool cq_push(struct cq *cq, const struct cqe *e)
{
	struct cqe *to = cq_push_begin(cq);

	*to = *e;
	return cq_push_end(cq, to);
}

static bool asks_for(u32 armed, bool solicited_or_error)
{
	return armed == CQ_ARMED_ANY || (armed == CQ_ARMED_SOLICITED && solicited_or_error);
}

bool cq_would_take_event(struct cq *cq, bool solicited_or_error)
{
	/* pairs with the store in cq_notify_arm(): see cq_pushed_all() */
	return asks_for(atomic_load_explicit(&cq->armed, memory_order_seq_cst), solicited_or_error);
}

bool cq_take_event(struct cq *cq, bool solicited_or_error)
{
	/* pairs with the store in cq_notify_arm(): see cq_pushed_all() */
	u32 armed = atomic_load_explicit(&cq->armed, memory_order_seq_cst);

	while (asks_for(armed, solicited_or_error))
		if (atomic_compare_exchange_weak_explicit(&cq->armed, &armed, CQ_DISARMED,
							  memory_order_seq_cst,
							  memory_order_seq_cst))
			return true;
	return false;
}

void cq_moderate(struct cq *cq, u32 count, u64 period_ns)
{
	cq->moderate_ns = period_ns;
	/* pairs with the load in cq_notify_arm_shared(): cq_notify_taken() follows, one sees it */
	atomic_store_explicit(&cq->moderate_count, count < 2 || !period_ns ? 0 : count,
			      memory_order_seq_cst);
}

/*
 * With ignore_overrun the engine may remove the oldest entry while it is read here. So it is
 * copied, and the copy is valid only if the entry is still the oldest after that.
 */
static rare const struct cqe *cq_claim(struct cq *cq)
{
	/* acquire, here and below: pairs with the engine's cq_take_away(); prod is as new */
	u32 cons = atomic_load_explicit(&cq->cons, memory_order_acquire);
	union cqe_words w;

	if (cq->holds)
		return &cq->held;
	/* acquire: pairs with the store in cq_push_end() */
	while (cons != atomic_load_explicit(&cq->prod, memory_order_acquire)) {
		cq_load_entry(&cq->ring[cons & cq->mask], &w);
		/*
		 * pairs with the fence in cq_make_room(): a new entry is visible only after the new
		 * cons
		 */
		atomic_thread_fence(memory_order_acquire);
		if (!cq_take_away(cq, &cons))
			continue;
		if (w.cqe.valid) {
			cq->held = w.cqe;
			cq->holds = true;
			return &cq->held;
		}
		cons++;
	}
	return NULL;
}

const struct cqe *cq_peek(struct cq *cq)
{
	u32 cons = atomic_load_explicit(&cq->cons, memory_order_relaxed);
	/* acquire: pairs with the store in cq_push_end() */
	u32 prod = atomic_load_explicit(&cq->prod, memory_order_acquire);

	if (unlikely(cq->ignore_overrun))
		return cq_claim(cq);
	for (; cons != prod; cons++) {
		const struct cqe *e = &cq->ring[cons & cq->mask];

		if (atomic_load_explicit(shared_word(&((struct cqe *)e)->valid),
					 memory_order_relaxed))
			return e;
		/* release: pairs with the acquire in cq_push_begin() */
		atomic_store_explicit(&cq->cons, cons + 1, memory_order_release);
	}
	return NULL;
}

void cq_pop(struct cq *cq)
{
	u32 cons = atomic_load_explicit(&cq->cons, memory_order_relaxed);

	if (unlikely(cq->holds))
		cq->holds = false;
	else
		/* release: pairs with the acquire in cq_push_begin() */
		atomic_store_explicit(&cq->cons, cons + 1, memory_order_release);
}

const struct cqe *cq_hold(struct cq *cq)
{
	if (!cq->holds) {
		cq->held =
			cq->ring[atomic_load_explicit(&cq->cons, memory_order_relaxed) & cq->mask];
		cq_pop(cq);
		cq->holds = true;
	}
	return &cq->held;
}

u32 cq_count(const struct cq *cq, u32 qpn, enum cqe_opcode opcode, u32 without_flags)
{
	u32 prod = cq_next_index(cq), n = 0;

	for (u32 i = atomic_load_explicit(&((struct cq *)cq)->cons, memory_order_relaxed);
	     i != prod; i++) {
		const struct cqe *e = &cq->ring[i & cq->mask];

		n += e->valid && e->qpn == qpn && e->opcode == opcode && e->status == CQE_SUCCESS &&
		     !(e->flags & without_flags);
	}
	return n;
}

void cq_mark_purged(struct cq *cq, u32 qpn)
{
	u32 prod = atomic_load_explicit(&cq->prod, memory_order_relaxed);

	for (u32 i = atomic_load_explicit(&cq->cons, memory_order_relaxed); i != prod; i++)
		if (cq->ring[i & cq->mask].qpn == qpn)
			/* relaxed: a running consumer takes the entry, or skips it */
			atomic_store_explicit(shared_word(&cq->ring[i & cq->mask].valid), 0,
					      memory_order_relaxed);
}

/* The remaining entries move towards prod, which cq_next_index() gives to others. */
void cq_purge(struct cq *cq, u32 qpn)
{
	u32 cons = atomic_load_explicit(&cq->cons, memory_order_relaxed);
	u32 to = atomic_load_explicit(&cq->prod, memory_order_relaxed);

	for (u32 from = to; from != cons;) {
		const struct cqe *e = &cq->ring[--from & cq->mask];

		if (e->valid && e->qpn != qpn && --to != from)
			cq->ring[to & cq->mask] = *e;
	}
	/* release: pairs with the acquire in cq_push_begin() */
	atomic_store_explicit(&cq->cons, to, memory_order_release);
}

void cq_abandon(struct cq *cq)
{
	atomic_store_explicit(&cq->cons, cq_next_index(cq), memory_order_relaxed);
	cq->holds = false;
}

int cq_resize(struct cq *cq, u32 capacity, void **lent)
{
	void *memory = lent ? *lent : NULL;
	u32 prod = atomic_load_explicit(&cq->prod, memory_order_relaxed);
	struct cqe *ring;
	u32 cons, mask;

	cq_purge(cq, NO_QPN); /* marked entries take no room */
	cons = atomic_load_explicit(&cq->cons, memory_order_relaxed);
	if (capacity < 1 || capacity > CQ_CAPACITY_MAX || prod - cons > capacity)
		return -EINVAL;
	ring = aligned_or_lent(memory, cq_bytes(capacity));
	if (!ring)
		return -ENOMEM;
	mask = roundup_pow2(capacity) - 1;
	for (u32 i = cons; i != prod; i++)
		ring[i & mask] = cq->ring[i & cq->mask];
	if (lent)
		*lent = cq->lent ? cq->ring : NULL;
	cq_free(cq);
	cq->ring = ring;
	cq->lent = memory != NULL;
	cq->mask = mask;
	cq->capacity = capacity;
	if (cq->stat)
		cq->stat->entries = capacity;
	return 0;
}
