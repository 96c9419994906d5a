/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Deadlines of QPs. Private to user/engine. */
#ifndef ENGINE_TIMER_H
#define ENGINE_TIMER_H

#include "internal.h"

int timers_init(struct timers *t);
void timers_free(struct timers *t);
/* This, be it earlier or later. */
void timer_put_off(struct engine *e, struct qp *qp, u64 deadline_ns);
/* Not later than this. */
static inline void timer_set(struct engine *e, struct qp *qp, u64 deadline_ns)
{
	if (deadline_ns < e->timers.due_ns[qp->qpn % XROCE_MAX_QP])
		timer_put_off(e, qp, deadline_ns);
}
/* Never, for now: it may keep its place, as one that is put off. */
static inline void timer_stop(struct engine *e, struct qp *qp)
{
	e->timers.due_ns[qp->qpn % XROCE_MAX_QP] = NSEC_NEVER;
}
void timer_cancel(struct engine *e, struct qp *qp);
/* One that is due, or NULL: to be called until then. */
struct qp *timer_pop(struct engine *e, u64 now_ns);
/* The earliest deadline has changed: tell other threads. */
void timer_publish(struct engine *e);

#endif
