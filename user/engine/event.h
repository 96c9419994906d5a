/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Events and completions: pushing CQEs, arming, moderation. Private to user/engine. */
#ifndef ENGINE_EVENT_H
#define ENGINE_EVENT_H

#include "internal.h"

/*
 * Push a completion, in two steps: all of it is written where the first says, and nothing else is
 * done to any CQ until the second. If the CQ is armed for it, engine_take_arms() takes the event.
 */
struct cqe *engine_complete_begin(struct cq *cq);
void engine_complete_end(struct engine *e, struct cq *cq, struct cqe *cqe, bool solicited);
/* Both. Inlined, so that a completion that only goes here is written into the ring at once. */
static per_packet void engine_complete(struct engine *e, struct cq *cq, const struct cqe *cqe,
				       bool solicited)
{
	struct cqe *to = engine_complete_begin(cq);

	*to = *cqe;
	engine_complete_end(e, cq, to, solicited);
}
/*
 * Take the arm words of the CQs that were pushed to, and their events: at the end of each call from
 * outside. That none was is the common case, and costs a look.
 */
void engine_take_arms_of_pushed(struct engine *e);
static inline void engine_take_arms(struct engine *e)
{
	if (e->pushed)
		engine_take_arms_of_pushed(e);
}
void engine_cq_event(struct engine *e, struct cq *cq, u32 events);
void engine_qp_event(struct engine *e, struct qp *qp, u32 events);
void engine_srq_event(struct engine *e, struct srq *srq, u32 events);
/* An SRQ whose own CQ has overrun delivers nothing any more: SRQ_ERR, once. */
void engine_check_srq(struct engine *e, struct srq *srq);

/* A completion was pushed: is its event withheld for now? */
bool moderation_withholds(struct engine *e, struct cq *cq, bool failed, bool solicited);
void moderation_expire(struct engine *e, u64 now_ns);
/* [all] The set of engines with QPs on this CQ has changed. */
void moderation_settle(struct engine_tables *t, struct cq *cq);

#endif
