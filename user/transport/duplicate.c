/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests that were executed before. SENDs and WRITEs are acknowledged again, never executed
 * again; a READ is executed again if it lies inside a stored one; an atomic's stored result is sent
 * again.
 */
#include "internal.h"

/* The stored READ or atomic that has this PSN, or NULL. They were taken in the order of PSNs. */
static struct resp_resource *duplicate_resource(const struct responder *resp, u32 psn)
{
	for (u32 i = 1; i <= resp->max_resources; i++) {
		struct resp_resource *r = resource_stored(resp, i);
		s32 behind = psn_diff(psn, r->first_psn);

		if (!r->used)
			break;
		if (behind >= 0)
			return behind < (s32)r->num_psn ? r : NULL;
	}
	return NULL;
}

/*
 * What a plain ACK of a duplicate may cover: all that was executed, but for the READs and atomics
 * behind the duplicate and what came after them. A requester that sends again from psn on may still
 * lack their responses, and rxe takes a plain ACK at an atomic's PSN for its response.
 *
 * rxe also loses count by one if an ACK overtakes it inside a message that it sends again. Its
 * packets never have MigReq. Such a peer is told of the messages that are complete; the one under
 * way is acknowledged at its own end, and a part of it that asks by itself.
 */
static u32 duplicate_ack_limit(const struct qp *qp, u32 psn)
{
	const struct responder *resp = &qp->resp;
	const struct resp_sequence *seq = &resp->seq;
	u32 end = seq->expected_psn;

	if (seq->in_message && !seq->migreq) {
		/* all of its packets so far were full */
		end = psn_add(end, 0u - seq->offset / qp->path_mtu);
		if (psn_diff(end, psn) <= 0)
			return psn;
	}

	for (u32 i = 1; i <= resp->max_resources; i++) {
		const struct resp_resource *r = resource_stored(resp, i);

		if (!r->used || psn_diff(r->first_psn, psn) <= 0)
			break;
		if (psn_diff(r->first_psn, end) < 0)
			end = r->first_psn;
	}
	return psn_add(end, ROCE_PSN_MASK);
}

/*
 * A SEND or WRITE again. It is answered if it asks for that or ends a message, and if no earlier
 * one of the same run, which goes on while PSNs rise, was answered for it as well: a peer that goes
 * back sends many, and each ACK that tells it nothing new costs it time.
 */
static void duplicate_acknowledge(struct engine *e, struct qp *qp, const struct packet *p)
{
	struct responder *resp = &qp->resp;
	bool goes_on = resp->run && psn_diff(p->psn, resp->run_psn) > 0;

	resp->run = true;
	resp->run_psn = p->psn;
	if (!goes_on)
		resp->run_acked = psn_add(p->psn, ROCE_PSN_MASK);
	if ((!p->ackreq && !(p->flags & OP_END)) || psn_diff(p->psn, resp->run_acked) <= 0)
		return;
	resp->run_acked = duplicate_ack_limit(qp, p->psn);
	if (!resp->ack_due || psn_diff(resp->ack_psn, resp->run_acked) < 0)
		reply_ack(e, qp, AETH_ACK | AETH_CREDIT_NONE, resp->run_acked);
}

enum xroce_drop duplicate_answer(struct engine *e, struct qp *qp, const struct packet *p)
{
	const bool is_atomic = p->flags & OP_ATOMIC,
		   is_placed = p->flags & (OP_FLUSH | OP_ATOMIC_WRITE);
	struct responder *resp = &qp->resp;
	struct resp_resource *r;
	u64 offset;
	u32 skip;

	engine_count(e, qp, duplicate_requests);
	if (!(p->flags & OP_ANSWERED)) {
		duplicate_acknowledge(e, qp, p);
		return XROCE_DROP_none;
	}
	r = duplicate_resource(resp, p->psn);
	if (!r || r->atomic != is_atomic || r->placed != is_placed)
		return XROCE_DROP_psn_duplicate;
	if (is_atomic || is_placed) {
		r->replay |= !resource_pending(resp, r);
		reply_resource(e, qp, r, 0, 1);
		return XROCE_DROP_none;
	}
	skip = (u32)psn_diff(p->psn, r->first_psn);
	offset = (u64)skip * qp->path_mtu;
	if (p->rkey != r->rkey || p->va != r->va + offset || offset + p->dma_len > r->length)
		return XROCE_DROP_psn_duplicate;
	if (resource_pending(resp, r) && !r->replay) {
		/* the rest of the first answer is not given up: it still comes, once */
		if (skip < r->cursor)
			reply_resource(e, qp, r, skip, r->stop);
		return XROCE_DROP_none;
	}
	r->replay = true;
	r->end = (u32)offset + p->dma_len;
	reply_resource(e, qp, r, skip, skip + psn_count(p->dma_len, qp->path_mtu));
	return XROCE_DROP_none;
}
