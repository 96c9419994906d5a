/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Retransmission and time-outs of the requester. Private to user/engine. */
#ifndef ENGINE_RECOVERY_H
#define ENGINE_RECOVERY_H

#include "internal.h"

/* Handles a loss at psn: resends that packet if the peer holds later ones, else all from it on. */
void recovery_start(struct engine *e, struct qp *qp, u32 psn, enum vendor_err verr, u64 now_ns);
/*
 * The adaptive time-out: resends the oldest packet to find out whether any was lost, and goes on.
 */
void recovery_probe(struct engine *e, struct qp *qp);
/* Checks whether the loss is repaired after unacked_psn moved by an ACK (nak false) or a NAK. */
void recovery_answered(struct engine *e, struct qp *qp, bool nak);
static inline void recovery_answer(struct engine *e, struct qp *qp, bool nak)
{
	const struct recovery *r = &qp->req.recovery;

	if (unlikely(r->waiting || r->probing))
		recovery_answered(e, qp, nak);
}
/* The same after a READ or atomic response; is_only: the opcode of a single-packet response. */
void recovery_responded(struct engine *e, struct qp *qp, bool is_only);
static inline void recovery_response(struct engine *e, struct qp *qp, bool is_only)
{
	const struct recovery *r = &qp->req.recovery;

	if (unlikely(r->waiting || r->probing))
		recovery_responded(e, qp, is_only);
}
u32 recovery_output(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns);
void recovery_reset(struct requester *req);

/* Returns the time that the attribute stands for; IBTA 9.7.6 calls it T_tr. */
static inline u64 timeout_attribute_ns(const struct requester *req)
{
	return 4096ull << req->timeout;
}
#define TIMEOUT_SHORT_NS (4096ull << 16) /* shorter attributes are lengthened to this, 268 ms */
/*
 * Returns the user's time-out: the wait for an answer before a retry is used. IBTA 9.7.6 permits
 * one to four times the attribute. A short attribute is lengthened, since a process on a busy host
 * may wait hundreds of milliseconds for a CPU. The adaptive time-out probes before that.
 */
static inline u64 timeout_ns(const struct requester *req)
{
	const u64 least_ns = timeout_attribute_ns(req);

	return min_u64(4 * least_ns, max_u64(least_ns, TIMEOUT_SHORT_NS));
}
/* Returns when the requester is to be checked again. */
static inline u64 timeout_due_ns(const struct requester *req)
{
	return req->rnr_wait ? req->rnr_until_ns :
			       min_u64(req->ack_deadline_ns, req->rtt.deadline_ns);
}
/* A deadline noticed this late means that this process did not run. */
#define TIMEOUT_LATE_NS (4 * NSEC_PER_MSEC)
static inline bool timeout_is_late(u64 deadline_ns, u64 now_ns)
{
	return now_ns > deadline_ns && now_ns - deadline_ns >= TIMEOUT_LATE_NS;
}
/* Handles the expiry of the QP's timer. */
void timeout_expire(struct engine *e, struct qp *qp, u64 now_ns);

#endif
