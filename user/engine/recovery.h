/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Retransmission and time-outs of the requester, and packets that arrived before an earlier one.
 * Private to user/engine.
 */
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

/* ---- packets that arrived early ---- */

struct held {
	struct held *next;
	u32 missing; /* packets missing between the previous one and this, on its arrival */
	bool has_hint;
	struct xroce_rx_cqe hint;
	struct packet packet; /* its pointers point into payload */
	u8 payload[ROCE_PMTU_MAX];
};
int reorder_init(struct engine *e);
void reorder_destroy(struct engine *e);
/* Returns whether r holds a packet. While no QP has one, r is not read. */
static inline bool reorder_holds(const struct engine *e, const struct reorder *r)
{
	return unlikely(e->num_held) && r->head;
}
/*
 * Holds a copy of a packet ahead of psn and of all held ones. Returns false if it is not ahead, too
 * far ahead, or there is no room. A packet that contradicts held ones makes them be dropped.
 */
bool reorder_hold(struct engine *e, struct reorder *r, u32 psn, const struct packet *p,
		  const struct xroce_rx_cqe *hint);
/*
 * Takes the packet with this PSN, which is proven, and drops all before it. Returns NULL if it is
 * not held or not to be trusted. Release it with reorder_free().
 */
struct held *reorder_take(struct engine *e, struct reorder *r, u32 psn);
/* Drops all packets before psn. */
void reorder_pass(struct engine *e, struct reorder *r, u32 psn);
/*
 * The packet before psn arrived in turn, and not as a repair, after the held packets. Either it was
 * late and the only one missing, or it contradicts the held packets, which are then dropped.
 */
void reorder_overtaken(struct engine *e, struct reorder *r, u32 psn);
void reorder_free(struct engine *e, struct held *h);
void reorder_purge(struct engine *e, struct reorder *r);

#endif
