/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Retransmission and time-outs of the requester. Private to user/engine. */
#ifndef ENGINE_RECOVERY_H
#define ENGINE_RECOVERY_H

#include "internal.h"

/* The peer misses psn and keeps what came behind it, perhaps: send it again, or all from it on. */
void recovery_start(struct engine *e, struct qp *qp, u32 psn, enum vendor_err verr, u64 now_ns);
/*
 * The adaptive time-out: ask with the oldest packet whether anything was lost, and go on meanwhile.
 */
void recovery_probe(struct engine *e, struct qp *qp);
/* unacked_psn moved by an ACK (nak false) or a NAK: is the loss repaired? */
void recovery_answered(struct engine *e, struct qp *qp, bool nak);
static inline void recovery_answer(struct engine *e, struct qp *qp, bool nak)
{
	const struct recovery *r = &qp->req.recovery;

	if (unlikely(r->waiting || r->probing))
		recovery_answered(e, qp, nak);
}
/*
 * The same by a READ or atomic response; is_only: its opcode is that of a response of one packet.
 */
void recovery_responded(struct engine *e, struct qp *qp, bool is_only);
static inline void recovery_response(struct engine *e, struct qp *qp, bool is_only)
{
	const struct recovery *r = &qp->req.recovery;

	if (unlikely(r->waiting || r->probing))
		recovery_responded(e, qp, is_only);
}
u32 recovery_output(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns);
void recovery_reset(struct requester *req);

/* The time that the attribute stands for; IBTA 9.7.6 calls it T_tr. */
static inline u64 timeout_attribute_ns(const struct requester *req)
{
	return 4096ull << req->timeout;
}
#define TIMEOUT_SHORT_NS (4096ull << 16) /* shorter attributes are made longer, 268 ms */
/*
 * The user's time-out: the wait for an answer before a retry is used. IBTA 9.7.6 permits one to
 * four times the attribute. A short attribute is made longer, since a process on a busy host waits
 * hundreds of milliseconds for a processor. Meanwhile the adaptive time-out probes.
 */
static inline u64 timeout_ns(const struct requester *req)
{
	const u64 least_ns = timeout_attribute_ns(req);

	return min_u64(4 * least_ns, max_u64(least_ns, TIMEOUT_SHORT_NS));
}
/* When the requester is to be looked at again. */
static inline u64 timeout_due_ns(const struct requester *req)
{
	return req->rnr_wait ? req->rnr_until_ns :
			       min_u64(req->ack_deadline_ns, req->rtt.deadline_ns);
}
/* A deadline that is noticed so late says that this process did not run. */
#define TIMEOUT_LATE_NS (4 * NSEC_PER_MSEC)
static inline bool timeout_is_late(u64 deadline_ns, u64 now_ns)
{
	return now_ns > deadline_ns && now_ns - deadline_ns >= TIMEOUT_LATE_NS;
}
/* The QP's timer has fired. */
void timeout_expire(struct engine *e, struct qp *qp, u64 now_ns);

#endif
