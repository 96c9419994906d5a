/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Events and completions: pushing CQEs, arming, moderation. Private to user/engine. */
#ifndef ENGINE_EVENT_H
#define ENGINE_EVENT_H

#include "internal.h"

/*
 * Push a completion, in two steps: the caller fills engine_complete_begin()'s entry and touches no
 * CQ before engine_complete_end(). engine_take_arms() takes the event if the CQ is armed.
 */
struct cqe *engine_complete_begin(struct cq *cq);
void engine_complete_end(struct engine *e, struct cq *cq, struct cqe *cqe, bool solicited);
/* Both steps in one. Inlined, so that a local completion is written directly into the ring. */
static per_packet void engine_complete(struct engine *e, struct cq *cq, const struct cqe *cqe,
				       bool solicited)
{
	struct cqe *to = engine_complete_begin(cq);

	*to = *cqe;
	engine_complete_end(e, cq, to, solicited);
}
/*
 * Takes the arm words of the CQs that were pushed to, and their events, at the end of each call
 * from outside. Usually there is none, which costs one check.
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
/* Reports SRQ_ERR, once, for an SRQ whose own CQ has overrun: it delivers nothing any more. */
void engine_check_srq(struct engine *e, struct srq *srq);

/* Returns whether the event of a pushed completion is withheld for now. */
bool moderation_withholds(struct engine *e, struct cq *cq, bool failed, bool solicited);
void moderation_expire(struct engine *e, u64 now_ns);
/* [all] Handles a change of the engines with QPs on this CQ. */
void moderation_settle(struct engine_tables *t, struct cq *cq);

#endif
