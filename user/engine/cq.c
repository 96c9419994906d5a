/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion queues: the ring, whose two sides and their ordering cq.h describes, and what the
 * engine reports: completions into CQs, whose arm words are taken at the end of each call from
 * outside; events of CQs, QPs and SRQs; and the errors that follow a CQ overrun.
 */
#include <stdlib.h>

#include "cq.h"
#include "internal.h"
#include "stat.h"

/* ---- the ring ---- */

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

/* ---- completions and events ---- */

void engine_cq_event(struct engine *e, struct cq *cq, u32 events)
{
	struct cq_part *part = &cq->part[e->number];

	part->events |= events;
	if (cq->stat && events & EVENT_COMPLETION)
		cq->stat->events++;
	if (part->event_queued)
		return;
	part->event_queued = true;
	part->event_next = e->cq_events;
	e->cq_events = cq;
}

/*
 * A completion found no room. If this overran the CQ, wakes a thread that sleeps on the CQ, so that
 * it sees the overrun.
 */
static void engine_lose_completion(struct engine *e, struct cq *cq)
{
	if (!cq_has_overrun(cq) || cq->failed)
		return;
	cq->failed = true;
	e->stats->cq_overruns++;
	if (cq->stat)
		cq->stat->overruns++;
	owner_report_overrun(e, cq);
	engine_cq_event(e, cq, EVENT_CQ_ERR | (cq_take_event(cq, true) ? EVENT_COMPLETION : 0));
}

struct cqe *engine_complete_begin(struct cq *cq)
{
	spin_lock_if(cq->shared, &cq->lock);
	return cq_push_begin(cq);
}

static per_packet void complete_push(struct engine *e, struct cq *cq, struct cqe *cqe,
				     bool solicited)
{
	struct cq_part *part = &cq->part[e->number];
	const bool failed = cqe->status != CQE_SUCCESS;
	bool wakes = false;

	if (likely(cq_push_end(cq, cqe)))
		wakes = !moderation_withholds(e, cq, failed, solicited);
	else
		engine_lose_completion(e, cq);
	spin_unlock_if(cq->shared, &cq->lock);
	if (!wakes) {
		stat_cq(cq);
		return;
	}
	part->pushed_solicited |= solicited || failed;
	if (part->pushed)
		return;
	part->pushed = true;
	part->pushed_next = e->pushed;
	e->pushed = cq;
}

void engine_complete_push(struct engine *e, struct cq *cq, struct cqe *cqe, bool solicited)
{
	complete_push(e, cq, cqe, solicited);
}

void engine_complete_end(struct engine *e, struct cq *cq, struct cqe *cqe, bool solicited)
{
	if (unlikely(e->config.faults))
		faults_complete_end(e, cq, cqe, solicited);
	else
		complete_push(e, cq, cqe, solicited);
}

void engine_take_arms_of_pushed(struct engine *e)
{
	struct cq *cq;

	cq_pushed_all();
	while ((cq = e->pushed)) {
		struct cq_part *part = &cq->part[e->number];

		e->pushed = part->pushed_next;
		spin_lock_if(cq->shared, &cq->lock);
		stat_cq(cq);
		if (cq_take_event(cq, part->pushed_solicited)) {
			cq->withheld = 0;
			engine_cq_event(e, cq, EVENT_COMPLETION);
		}
		spin_unlock_if(cq->shared, &cq->lock);
		part->pushed = part->pushed_solicited = false;
	}
}

void engine_qp_event(struct engine *e, struct qp *qp, u32 events)
{
	qp->events |= events;
	if (qp->event_queued)
		return;
	qp->event_queued = true;
	qp->event_next = e->qp_events;
	e->qp_events = qp;
}

void engine_srq_event(struct engine *e, struct srq *srq, u32 events)
{
	struct srq_part *part = &srq->part[e->number];

	part->events |= events;
	if (part->event_queued)
		return;
	part->event_queued = true;
	part->event_next = e->srq_events;
	e->srq_events = srq;
}

void engine_check_srq(struct engine *e, struct srq *srq)
{
	if (!srq->cq || !cq_has_overrun(srq->cq) || srq->failed)
		return;
	srq->failed = true;
	engine_srq_event(e, srq, EVENT_SRQ_ERR);
}

/*
 * Moves the QPs of an overrun CQ to error: ibv_create_cq(3), IBV_EVENT_CQ_ERR. For an XRC SRQ's CQ,
 * these are the targets that tried to complete there: others of the domain may never do so. As this
 * is rare, both tables are searched. An engine handles its own QPs, and number 0 the SRQs with a
 * CQ.
 */
static void engine_fail_overrun_qps(struct engine *e)
{
	/*
	 * pairs with the store in owner_report_overrun(): another engine's overrun is seen here, or
	 * the flag is set again
	 */
	while (atomic_exchange_explicit(&e->overrun, false, memory_order_seq_cst)) {
		for (u32 i = 0; !e->number && i < ENGINE_MAX_SRQ; i++)
			if (e->srq[i])
				engine_check_srq(e, e->srq[i]);
		for (u32 i = 0; i < XROCE_MAX_QP; i++) {
			struct qp *qp = e->qp[i];

			if (!qp || qp_engine(qp) != e)
				continue;
			if (qp->srq)
				engine_check_srq(e, qp->srq);
			if ((qp->send_cq && cq_has_overrun(qp->send_cq)) ||
			    (qp->recv_cq && cq_has_overrun(qp->recv_cq)) || qp->resp.overran) {
				stat_error(e, qp, CQE_SUCCESS, XROCE_REASON_CQ_OVERRUN);
				engine_qp_error(e, qp, EVENT_QP_FATAL);
			}
		}
	}
}

/* Moves the QPs of which a fault on request failed a send WQE. */
static rare void engine_stop_failing_qps(struct engine *e)
{
	atomic_store_explicit(&e->failing, false, memory_order_relaxed);
	for (u32 i = 0; i < XROCE_MAX_QP; i++)
		if (e->qp[i] && qp_engine(e->qp[i]) == e && e->qp[i]->is_failing)
			qp_stop_sending(e, e->qp[i]);
}

void engine_fail(struct engine *e)
{
	for (u32 i = 0; i < XROCE_MAX_QP; i++)
		if (e->qp[i] && qp_engine(e->qp[i]) == e) {
			stat_error(e, e->qp[i], CQE_SUCCESS, XROCE_REASON_PORT_LOST);
			engine_qp_error(e, e->qp[i], 0);
		}
}

static bool take_bit(u32 *events, enum engine_event_type *type)
{
	u32 bit = *events & -*events;

	*events &= ~bit;
	*type = (enum engine_event_type)bit;
	return *events == 0;
}

bool engine_next_event(struct engine *e, struct engine_event *event)
{
	*event = (struct engine_event){ 0 };
	if (unlikely(atomic_load_explicit(&e->failing, memory_order_relaxed)))
		engine_stop_failing_qps(e);
	engine_take_arms(e);
	if (unlikely(atomic_load_explicit(&e->overrun, memory_order_relaxed)))
		engine_fail_overrun_qps(e);
	if (e->cq_events) {
		struct cq_part *part = &(event->cq = e->cq_events)->part[e->number];

		if (take_bit(&part->events, &event->type)) {
			e->cq_events = part->event_next;
			part->event_queued = false;
		}
		return true;
	}
	if (e->qp_events) {
		struct qp *qp = event->qp = e->qp_events;

		if (take_bit(&qp->events, &event->type)) {
			e->qp_events = qp->event_next;
			qp->event_queued = false;
		}
		return true;
	}
	if (e->srq_events) {
		struct srq_part *part = &(event->srq = e->srq_events)->part[e->number];

		if (take_bit(&part->events, &event->type)) {
			e->srq_events = part->event_next;
			part->event_queued = false;
		}
		return true;
	}
	return false;
}

/* ---- moderation ---- */

/*
 * Event moderation, ibv_modify_cq(3): a moderated CQ that is armed reports one event for count
 * completions, or when period_ns has passed since the first of them. An error is reported at once.
 * The engine's deadline bounds the time of withheld events.
 *
 * Several engines that fill a CQ count together, under its lock. The engine that starts withholding
 * puts the CQ on its list, and keeps the time for all. A CQ that a single engine fills, without the
 * lock, is on no other engine's list.
 */

/* Puts the CQ on e's list. */
static void moderation_watch(struct engine *e, struct cq *cq)
{
	cq->due_queued = true;
	cq->due_next = e->cq_due;
	e->cq_due = cq;
}

/* Makes e check the CQ by due_ns. */
static void moderation_look_by(struct engine *e, u64 due_ns)
{
	if (due_ns >= e->cq_due_ns)
		return;
	e->cq_due_ns = due_ns;
	timer_publish(e);
}

bool moderation_withholds(struct engine *e, struct cq *cq, bool failed, bool solicited)
{
	const u32 count = atomic_load_explicit(&cq->moderate_count, memory_order_relaxed);

	if (!count)
		return false;
	cq_pushed_all();
	if (failed || !cq_would_take_event(cq, solicited))
		return false;
	if (++cq->withheld >= count)
		return false;
	if (cq->withheld == 1)
		cq->event_due_ns = e->now_ns + cq->moderate_ns;
	if (!cq->due_queued)
		moderation_watch(e, cq);
	moderation_look_by(e, cq->event_due_ns);
	return true;
}

/*
 * Reports the withheld event, if the application armed for it. After arming for solicited
 * completions, no others were counted.
 */
static void moderation_release(struct engine *e, struct cq *cq)
{
	if (cq->withheld && cq_take_event(cq, true))
		engine_cq_event(e, cq, EVENT_COMPLETION);
	cq->withheld = 0;
}

/* CQs that stay in the list have an event due later; others are removed. */
void moderation_expire(struct engine *e, u64 now_ns)
{
	struct cq **at = &e->cq_due, *cq;
	u64 earliest_ns = NSEC_NEVER;

	if (now_ns < e->cq_due_ns)
		return;
	while ((cq = *at)) {
		spin_lock_if(cq->shared, &cq->lock);
		if (cq->withheld && cq->event_due_ns > now_ns) {
			earliest_ns = min_u64(earliest_ns, cq->event_due_ns);
			at = &cq->due_next;
		} else {
			*at = cq->due_next;
			cq->due_queued = false;
			moderation_release(e, cq);
		}
		spin_unlock_if(cq->shared, &cq->lock);
	}
	e->cq_due_ns = earliest_ns;
	timer_publish(e);
}

/* Removes the CQ from e's list, if it is there. */
static void moderation_forget(struct engine *e, struct cq *cq)
{
	for (struct cq **at = &e->cq_due; *at; at = &(*at)->due_next)
		if (*at == cq) {
			*at = cq->due_next;
			cq->due_queued = false;
			return;
		}
}

void moderation_settle(struct engine_tables *t, struct cq *cq)
{
	struct engine *only;

	if (!cq->due_queued || cq->shared || !cq_engines(cq))
		return;
	only = t->engine[__builtin_ctz(cq_engines(cq))];
	for (u32 i = 0; i < ENGINE_MAX; i++)
		if (t->engine[i])
			moderation_forget(t->engine[i], cq);
	moderation_watch(only, cq);
	moderation_look_by(only, cq->event_due_ns);
}

void engine_cq_moderate(struct engine *e, struct cq *cq, u32 count, u64 period_ns)
{
	/* the next event may be due before the engine with the CQ on its list would check */
	for (u32 i = 0; cq->due_queued; i++)
		if (e->tables->engine[i])
			moderation_forget(e->tables->engine[i], cq);
	cq_moderate(cq, count, period_ns);
	moderation_release(e, cq);
}

void engine_cq_forget(struct engine *e, struct cq *cq)
{
	if (unlikely(e->config.faults))
		faults_forget(e->tables, cq, 0);
	for (u32 i = 0; i < ENGINE_MAX; i++)
		if (e->tables->engine[i]) {
			engine_take_arms(e->tables->engine[i]);
			moderation_forget(e->tables->engine[i], cq);
		}
}
