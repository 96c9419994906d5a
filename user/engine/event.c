/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reporting: completions into CQs, whose arm words are taken at the end of each call from outside;
 * events of CQs, QPs and SRQs; and the errors that follow a CQ overrun.
 */
#include "event.h"
#include "stat.h"

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

void engine_complete_end(struct engine *e, struct cq *cq, struct cqe *cqe, bool solicited)
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
	for (u32 i = 0; i < ENGINE_MAX; i++)
		if (e->tables->engine[i]) {
			engine_take_arms(e->tables->engine[i]);
			moderation_forget(e->tables->engine[i], cq);
		}
}
