/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Deadlines of QPs: a binary heap of those that have one.
 *
 * A QP's place is moved only when its deadline comes nearer. One that has been put off stays where it is, fires early and is put back by
 * its owner, so that the usual case (each ACK puts the time-out off) touches nothing here.
 */
#include "internal.h"

static void heap_put(struct engine *e, u32 at, struct qp *qp)
{
	e->heap[at] = qp;
	qp->timer_slot = at + 1;
}

static void heap_up(struct engine *e, u32 at, struct qp *qp)
{
	while (at && e->heap[(at - 1) / 2]->deadline_ns > qp->deadline_ns) {
		heap_put(e, at, e->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	heap_put(e, at, qp);
}

static void heap_down(struct engine *e, u32 at, struct qp *qp)
{
	for (;;) {
		u32 child = 2 * at + 1;

		if (child + 1 < e->heap_len && e->heap[child + 1]->deadline_ns < e->heap[child]->deadline_ns)
			child++;
		if (child >= e->heap_len || e->heap[child]->deadline_ns >= qp->deadline_ns)
			break;
		heap_put(e, at, e->heap[child]);
		at = child;
	}
	heap_put(e, at, qp);
}

void timer_publish(struct engine *e)
{
	u64 earliest = e->heap_len ? e->heap[0]->deadline_ns : NSEC_NEVER;

	/* other threads read it as a hint only */
	atomic_store_explicit(&e->earliest_ns, min_u64(earliest, e->cq_due_ns), memory_order_relaxed);
}

void timer_set(struct engine *e, struct qp *qp, u64 deadline_ns)
{
	if (qp->timer_slot) {
		if (deadline_ns >= qp->deadline_ns)
			return;
		qp->deadline_ns = deadline_ns;
		heap_up(e, qp->timer_slot - 1, qp);
	} else {
		if (deadline_ns == NSEC_NEVER)
			return;
		qp->deadline_ns = deadline_ns;
		heap_up(e, e->heap_len++, qp);
	}
	timer_publish(e);
}

void timer_cancel(struct engine *e, struct qp *qp)
{
	u32 at = qp->timer_slot - 1;
	struct qp *last;

	if (!qp->timer_slot)
		return;
	qp->timer_slot = 0;
	last = e->heap[--e->heap_len];
	if (last != qp) {
		heap_up(e, at, last);
		heap_down(e, last->timer_slot - 1, last);
	}
	timer_publish(e);
}

struct qp *timer_pop(struct engine *e, u64 now_ns)
{
	struct qp *qp = e->heap_len ? e->heap[0] : NULL;

	if (!qp || qp->deadline_ns > now_ns)
		return NULL;
	timer_cancel(e, qp);
	return qp;
}
