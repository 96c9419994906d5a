/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Deadlines of QPs, in separate arrays, so that a QP that is not due is not touched.
 *
 * Most deadlines are a constant time from now, so later than all before: they are appended to a
 * line, which stays sorted by itself. The others go to a binary heap. An entry is moved only when
 * its deadline becomes earlier. A postponed one stays where it is, and is moved when its time
 * comes; so the usual case (each ACK postpones the time-out) is one store.
 */
#include <stdlib.h>

#include "timer.h"

static u32 slot_of(const struct qp *qp)
{
	return qp->qpn % XROCE_MAX_QP;
}

/* ---- the line ---- */

#define IN_LINE	  (1u << 31)
#define LINE_SIZE (2 * XROCE_MAX_QP) /* some entries become empty before their time */
#define NOBODY	  UINT32_MAX

static struct timer *line_at(const struct timers *t, u32 index)
{
	return &t->line[index % LINE_SIZE];
}

/*
 * Skips empty entries, whose timers were moved to the heap or cancelled. At the tail, an empty
 * entry would send later timers to the heap.
 */
static void line_skip_empty(struct timers *t)
{
	while (t->line_head != t->line_tail && line_at(t, t->line_head)->slot == NOBODY)
		t->line_head++;
	while (t->line_head != t->line_tail && line_at(t, t->line_tail - 1)->slot == NOBODY)
		t->line_tail--;
}

static void timer_leave(struct timers *t, u32 place)
{
	if (place & IN_LINE) {
		u32 at = place & ~IN_LINE;

		t->heap.place[t->line[at].slot] = 0;
		t->line[at].slot = NOBODY;
		line_skip_empty(t);
	} else {
		timer_heap_remove(&t->heap, place - 1);
	}
}

static void timer_enter(struct timers *t, struct timer timer)
{
	u32 waiting = t->line_tail - t->line_head;

	if (waiting == LINE_SIZE ||
	    (waiting && line_at(t, t->line_tail - 1)->at_ns > timer.at_ns)) {
		timer_heap_add(&t->heap, timer);
		return;
	}
	t->heap.place[timer.slot] = IN_LINE | t->line_tail % LINE_SIZE;
	*line_at(t, t->line_tail++) = timer;
}

/* Returns the earliest timer, or NULL. */
static const struct timer *timer_first(const struct timers *t)
{
	const struct timer *line = t->line_head != t->line_tail ? line_at(t, t->line_head) : NULL;

	if (line && (!t->heap.len || line->at_ns <= t->heap.at[0].at_ns))
		return line;
	return t->heap.len ? &t->heap.at[0] : NULL;
}

int timers_init(struct timers *t)
{
	t->heap.at = calloc(XROCE_MAX_QP, sizeof(*t->heap.at));
	t->line = calloc(LINE_SIZE, sizeof(*t->line));
	t->heap.place = calloc(XROCE_MAX_QP, sizeof(*t->heap.place));
	t->due_ns = malloc(XROCE_MAX_QP * sizeof(*t->due_ns));
	if (!t->heap.at || !t->line || !t->heap.place || !t->due_ns)
		return -ENOMEM;
	for (u32 i = 0; i < XROCE_MAX_QP; i++)
		t->due_ns[i] = NSEC_NEVER;
	return 0;
}

void timers_free(struct timers *t)
{
	free(t->heap.at);
	free(t->line);
	free(t->heap.place);
	free(t->due_ns);
}

void timer_publish(struct engine *e)
{
	const struct timer *timer = timer_first(&e->timers);
	u64 earliest = timer ? timer->at_ns : NSEC_NEVER;

	/* other threads read it as a hint only */
	atomic_store_explicit(&e->earliest_ns, min_u64(earliest, e->cq_due_ns),
			      memory_order_relaxed);
}

static u64 place_ns(const struct timers *t, u32 place)
{
	return place & IN_LINE ? t->line[place & ~IN_LINE].at_ns : t->heap.at[place - 1].at_ns;
}

void timer_put_off(struct engine *e, struct qp *qp, u64 deadline_ns)
{
	struct timers *t = &e->timers;
	u32 slot = slot_of(qp), place = t->heap.place[slot];

	t->due_ns[slot] = deadline_ns;
	if (place ? deadline_ns >= place_ns(t, place) : deadline_ns == NSEC_NEVER)
		return;
	if (place)
		timer_leave(t, place);
	timer_enter(t, (struct timer){ .at_ns = deadline_ns, .slot = slot });
	/* the removed entry was later than this */
	if (deadline_ns < atomic_load_explicit(&e->earliest_ns, memory_order_relaxed))
		atomic_store_explicit(&e->earliest_ns, deadline_ns, memory_order_relaxed);
}

void timer_cancel(struct engine *e, struct qp *qp)
{
	struct timers *t = &e->timers;
	u32 slot = slot_of(qp);

	t->due_ns[slot] = NSEC_NEVER;
	if (!t->heap.place[slot])
		return;
	timer_leave(t, t->heap.place[slot]);
	timer_publish(e);
}

/* Removes stopped timers that are due from the line's head, where most are stopped. */
static void line_skip_stopped(struct timers *t, u64 now_ns)
{
	for (; t->line_head != t->line_tail; t->line_head++) {
		const struct timer *timer = line_at(t, t->line_head);

		if (timer->slot == NOBODY)
			continue;
		if (timer->at_ns > now_ns || t->due_ns[timer->slot] != NSEC_NEVER)
			return;
		t->heap.place[timer->slot] = 0;
	}
}

struct qp *timer_pop(struct engine *e, u64 now_ns)
{
	struct timers *t = &e->timers;
	const struct timer *timer;
	struct qp *due = NULL;

	line_skip_stopped(t, now_ns);
	while (!due && (timer = timer_first(t)) && timer->at_ns <= now_ns) {
		u32 slot = timer->slot;
		u64 due_ns = t->due_ns[slot];

		if (t->heap.place[slot] & IN_LINE) {
			t->heap.place[slot] = 0;
			t->line_head++;
			line_skip_empty(t);
		} else {
			timer_heap_remove(&t->heap, 0);
		}
		if (due_ns <= now_ns) {
			due = e->qp[slot];
			t->due_ns[slot] = NSEC_NEVER;
		} else if (due_ns != NSEC_NEVER) { /* it was postponed */
			timer_enter(t, (struct timer){ .at_ns = due_ns, .slot = slot });
		}
	}
	if (!due)
		timer_publish(e);
	return due;
}
