/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Event moderation, ibv_modify_cq(3): of a moderated CQ that is armed, an event is reported for
 * count completions together, or when period_ns has passed since the first of them. An error is
 * reported at once. What is withheld is bounded in time by the engine's deadline.
 *
 * Of a CQ that several engines fill they count together, under its lock; the one that begins to
 * withhold puts it on its list, and watches the time for all. Where a single one fills it, without
 * a lock, it is on no other's list.
 */
#include "internal.h"

/* Put it on e's list. */
static void moderation_watch(struct engine *e, struct cq *cq)
{
	cq->due_queued = true;
	cq->due_next = e->cq_due;
	e->cq_due = cq;
}

/* Its event is due at that time: e is to look by then. */
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
 * What was withheld is reported, if it was asked for. An application that armed for solicited ones
 * had only those counted.
 */
static void moderation_release(struct engine *e, struct cq *cq)
{
	if (cq->withheld && cq_take_event(cq, true))
		engine_cq_event(e, cq, EVENT_COMPLETION);
	cq->withheld = 0;
}

/* CQs that stay in the list have an event due later; others leave it. */
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

/* Off the list of the engine that has it on one. */
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
	/* the next event may be due before the engine on whose list it is would look */
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
