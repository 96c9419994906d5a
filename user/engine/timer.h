/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Deadlines of QPs. Private to user/engine. */
#ifndef ENGINE_TIMER_H
#define ENGINE_TIMER_H

#include "internal.h"

int timers_init(struct timers *t);
void timers_free(struct timers *t);
/* Sets the deadline, also to a later time than before. */
void timer_put_off(struct engine *e, struct qp *qp, u64 deadline_ns);
/* Sets the deadline if it is earlier than the current one. */
static inline void timer_set(struct engine *e, struct qp *qp, u64 deadline_ns)
{
	if (deadline_ns < e->timers.due_ns[qp->qpn % XROCE_MAX_QP])
		timer_put_off(e, qp, deadline_ns);
}
/* Stops the timer; its entry may stay, like a postponed one's. */
static inline void timer_stop(struct engine *e, struct qp *qp)
{
	e->timers.due_ns[qp->qpn % XROCE_MAX_QP] = NSEC_NEVER;
}
void timer_cancel(struct engine *e, struct qp *qp);
/* Returns a due QP or NULL; call until NULL. */
struct qp *timer_pop(struct engine *e, u64 now_ns);
/* Publishes the earliest deadline to other threads. */
void timer_publish(struct engine *e);

#endif
