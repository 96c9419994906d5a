/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the requester does when nothing comes: the user's time-out, which uses a retry; the adaptive
 * one, which only probes (congestion.c says when); the end of an RNR wait. What is sent is
 * recovery.c's.
 *
 * A deadline may be noticed late: threads wait for a processor, or the process was stopped. The
 * silence until then was not the peer's alone, for answers may be on their way to the engine that
 * its caller could not yet take in. So such a deadline is put off by a short grace in which the
 * process has run: an adaptive one by its own time, once; the user's by a quarter of it, at most
 * three times in a row, so that a peer that is dead is found out even by a process that is always
 * late. Nothing is sent and no retry is used.
 */
#include "internal.h"

#define BACKOFF_MAX 24 /* 1 ms, doubled that often, exceeds the longest attribute */

static u64 timeout_grace_ns(const struct requester *req)
{
	return max_u64(timeout_ns(req) / 4, TIMEOUT_LATE_NS);
}

/* The deadline has passed: true if it is put off, as it was noticed late. */
static bool timeout_put_off(struct engine *e, struct qp *qp, bool adaptive, u64 now_ns)
{
	struct requester *req = &qp->req;

	const u64 deadline_ns = adaptive ? req->rtt.deadline_ns : req->ack_deadline_ns;
	const u8 limit = adaptive ? LOSS_LATE : LOSS_GRACES;

	if (!timeout_is_late(deadline_ns, now_ns) || (req->loss & limit) == limit)
		return false;
	engine_count(e, qp, late_deadlines);
	if (adaptive) {
		req->loss |= LOSS_LATE;
	} else {
		req->loss += LOSS_GRACE;
		req->ack_deadline_ns = now_ns + timeout_grace_ns(req);
	}
	congestion_untime(qp);
	return true;
}

static void timeout_of_ack(struct engine *e, struct qp *qp, bool adaptive, u64 now_ns)
{
	struct requester *req = &qp->req;

	if (!timeout_put_off(e, qp, adaptive, now_ns)) {
		/* the repair may be lost as well: a NAK may ask for it again */
		req->loss &= (u8)~(LOSS_NAKED | LOSS_LATE);
		if (adaptive) {
			engine_count(e, qp, rto_probes);
			req->rtt.backoff = (u8)min_u32(req->rtt.backoff + 1u, BACKOFF_MAX);
			recovery_probe(e, qp);
		} else {
			engine_count(e, qp, timeouts);
			recovery_start(e, qp, req->unacked_psn, VERR_TIMEOUT, now_ns);
		}
	}
	if (requests_go_on(qp_state(qp))) /* not after the last retry */
		congestion_rearm(e, qp, now_ns);
}

void timeout_expire(struct engine *e, struct qp *qp, u64 now_ns)
{
	struct requester *req = &qp->req;

	if (qp->rate_limited) /* it may have waited for its rate */
		engine_ready(e, qp, READY_REQUESTS | READY_REPLIES);
	flow_expire(e, qp);
	if (!requests_go_on(qp_state(qp)))
		return;
	if (req->rnr_wait) {
		if (req->rnr_until_ns <= now_ns) {
			req->rnr_wait = false;
			engine_ready(e, qp, READY_REQUESTS);
		}
	} else if (req->ack_deadline_ns <= now_ns) {
		timeout_of_ack(e, qp, false, now_ns);
	} else if (req->rtt.deadline_ns <= now_ns) {
		timeout_of_ack(e, qp, true, now_ns);
	}
	/* those that were put off since they were set */
	timer_set(e, qp, timeout_due_ns(req));
}
