/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The responder's answers, in request order: READ and atomic responses from their stored resources,
 * then at most one ACK or NAK, which covers all requests accepted until it is sent. That coalesces
 * ACKs: one answer per batch of requests.
 */
#include "congestion.h"
#include "credit.h"
#include "responder.h"
#include "stat.h"

void reply_ack(struct engine *e, struct qp *qp, u8 syndrome, u32 psn)
{
	struct responder *resp = &qp->resp;

	if (resp->ack_due && (resp->ack_syndrome & AETH_CLASS_MASK) != AETH_ACK &&
	    (syndrome & AETH_CLASS_MASK) == AETH_ACK)
		return;
	resp->ack_due = true;
	resp->ack_syndrome = syndrome;
	resp->ack_psn = psn;
	__builtin_prefetch(&resp->header);
	engine_ready(e, qp, READY_REPLIES);
}

void reply_resource(struct engine *e, struct qp *qp, struct resp_resource *r, u32 cursor, u32 stop)
{
	struct responder *resp = &qp->resp;

	if (!resource_pending(resp, r)) {
		resp->num_pending++;
		*resource_word(resp, r) |= resource_bit(resp, r);
	}
	r->cursor = r->resume = cursor;
	r->stop = min_u32(stop, r->num_psn);
	/* its response acknowledges everything before it */
	if (resp->ack_due && resp->ack_syndrome == (AETH_ACK | AETH_CREDIT_NONE) &&
	    psn_diff(resp->ack_psn, r->first_psn) < 0)
		resp->ack_due = false;
	engine_ready(e, qp, READY_REPLIES);
}

void reply_withdraw(struct responder *resp, const struct resp_resource *r)
{
	resp->num_pending--;
	*resource_word(resp, r) &= ~resource_bit(resp, r);
}

void reply_forget(struct qp *qp)
{
	qp->resp.num_pending = 0;
	qp->resp.pending[0] = qp->resp.pending[1] = 0;
}

/* Returns the oldest pending resource, from the ring's head on. At least one is pending. */
static struct resp_resource *reply_next_pending(struct responder *resp)
{
	const u32 word = resp->resource_head / 64, shift = resp->resource_head % 64;
	const u64 older = resp->pending[word] >> shift;

	if (older)
		return &resp->resource[resp->resource_head + (u32)__builtin_ctzll(older)];
	if (resp->pending[!word])
		return &resp->resource[!word * 64 + (u32)__builtin_ctzll(resp->pending[!word])];
	return &resp->resource[word * 64 + (u32)__builtin_ctzll(resp->pending[word])];
}

/*
 * Returns whether a duplicate READ that cannot be executed is dropped: the requester may have the
 * answer, and have invalidated the key. A READ that no request has followed, and whose key was
 * invalid when the duplicate came, is refused: its requester most likely lacks the answer.
 */
static bool reply_drops_duplicate(const struct responder *resp, const struct resp_resource *r)
{
	const bool is_last = resp->seq.expected_psn == psn_add(r->first_psn, r->num_psn);

	return r->replay && !(r->keyless && is_last);
}

/*
 * Refuses a READ whose region was removed, or whose memory is no longer accessible; or drops its
 * duplicate. Returns 0.
 */
static u32 reply_refuse_resource(struct engine *e, struct qp *qp, const struct resp_resource *r,
				 u32 psn)
{
	if (reply_drops_duplicate(&qp->resp, r)) {
		reply_withdraw(&qp->resp, r);
		stat_drop(e, qp, XROCE_DROP_psn_duplicate);
		return 0;
	}
	engine_count(e, qp, remote_errors);
	reply_forget(qp);
	reply_ack(e, qp, AETH_NAK | NAK_REMOTE_ACCESS, psn);
	engine_qp_error(e, qp, EVENT_QP_ACCESS_ERR);
	return 0;
}

static u32 reply_output_resource(struct engine *e, struct qp *qp, struct resp_resource *r,
				 u8 *frame)
{
	u64 offset = (u64)r->cursor * qp->path_mtu;
	bool first = r->cursor == r->resume, last, there;
	struct mr_bytes src = { .at = NULL };
	struct unsealed u;
	struct packet p;

	packet_from(&p, qp, psn_add(r->first_psn, r->cursor));
	p.syndrome = credit_syndrome(e, qp);
	p.msn = r->msn;
	p.original = r->original;
	if (r->atomic) {
		p.opcode = OPCODE(qp->transport, OP5_ATOMIC_ACKNOWLEDGE);
	} else {
		last = r->cursor + 1 == r->stop;
		p.opcode =
			OPCODE(qp->transport,
			       first ? (last ? OP5_READ_RESPONSE_ONLY : OP5_READ_RESPONSE_FIRST) :
				       (last ? OP5_READ_RESPONSE_LAST : OP5_READ_RESPONSE_MIDDLE));
		p.payload_len = (u32)min_u64(r->end - offset, qp->path_mtu);
	}
	if (p.payload_len) {
		src = mr_open(e->mrs, r->pd, qp->qpn, r->rkey, r->va + offset, p.payload_len,
			      MR_REMOTE_READ);
		if (unlikely(!src.at && !mr_is_nothing(src)))
			return reply_refuse_resource(e, qp, r, p.psn);
	}
	header_out(&qp->resp.header, &e->icrc, &qp->path, &p, frame, &u);
	if (src.at) {
		there = guard_read(u.payload, src.at, p.payload_len);
		mr_close(src);
		if (unlikely(!there))
			return reply_refuse_resource(e, qp, r, p.psn);
	} else if (p.payload_len) {
		memset(u.payload, 0, p.payload_len);
	}
	if (++r->cursor == r->stop)
		reply_withdraw(&qp->resp, r);
	return header_out_seal(&u, &e->icrc, p.payload_len);
}

static u32 reply_output_ack(struct engine *e, struct qp *qp, u8 *frame)
{
	struct responder *resp = &qp->resp;
	u8 opcode = OPCODE(qp->transport, OP5_ACKNOWLEDGE), syndrome = resp->ack_syndrome;
	struct packet p;

	if (unlikely(resp->header.key != header_out_key(opcode, false, true, 0))) {
		packet_from(&p, qp, resp->ack_psn);
		p.opcode = opcode;
		header_out_remember(&resp->header, &qp->path, &p);
	}
	if ((syndrome & AETH_CLASS_MASK) == AETH_ACK)
		syndrome = credit_syndrome(e, qp);
	resp->ack_due = false;
	e->stats->tx_acks++;
	return header_out_ack(&resp->header, &e->icrc, resp->ack_psn,
			      packet_aeth(syndrome, resp->seq.msn), frame);
}

/* Builds a CNP: to the QP that sent the marked packet, outside of all sequences. */
static u32 reply_output_cnp(struct engine *e, struct qp *qp, u8 *frame)
{
	struct packet p = { .opcode = OPCODE_CNP,
			    .dest_qpn = qp->dest_qpn,
			    .pkey = qp->pkey,
			    .migreq = true,
			    .becn = true };

	qp->cnp_due = false;
	engine_count(e, qp, tx_cnps);
	return packet_seal(frame, packet_put_headers(frame, &qp->path, &p), 0);
}

/*
 * Writes the next READ or atomic response. Returns its length, or 0: duplicates were dropped and
 * none is left, or a READ was refused.
 */
static u32 reply_output_pending(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns)
{
	struct resp_resource *r;
	u32 len = 0;
	bool again;

	while (!len && qp->resp.num_pending) {
		r = reply_next_pending(&qp->resp);
		again = r->replay;
		len = reply_output_resource(e, qp, r, frame);
		if (again) {
			e->stats->tx_retransmitted_bytes += len;
			qp->stat->tx_retransmitted_bytes += len;
		}
	}
	rate_sent(e, qp, len, now_ns);
	return len;
}

u32 reply_output(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns)
{
	u32 len = 0;

	if (unlikely(qp->cnp_due)) {
		len = reply_output_cnp(e, qp, frame);
	} else if (qp->resp.num_pending) {
		if (!rate_allows(e, qp, now_ns))
			return 0;
		len = reply_output_pending(e, qp, frame, now_ns);
	}
	/* after all others; or the NAK that replaces them when a region was removed */
	if (!len && qp->resp.ack_due)
		len = reply_output_ack(e, qp, frame);
	if (!reply_pending(qp))
		qp->ready &= (u8)~READY_REPLIES;
	return len;
}

/*
 * Duplicate requests. SENDs and WRITEs are acknowledged again, never executed again; a READ is
 * executed again if it lies inside a stored one; an atomic's stored result is sent again.
 */

/* Returns the stored READ or atomic with this PSN, or NULL. They are stored in PSN order. */
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
 * Returns the last PSN that a plain ACK of a duplicate may cover: all executed requests up to the
 * first READ or atomic after the duplicate. A requester that resends from psn on may still lack its
 * response, and rxe takes a plain ACK at an atomic's PSN for the response.
 *
 * rxe also gets one PSN off if an ACK overtakes it inside a message that it resends. Its packets
 * never have MigReq. For such a peer, only complete messages are acknowledged. The current one is
 * acknowledged at its own end, or at a part of it that requests an ACK.
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
 * Handles a duplicate SEND or WRITE. It is answered if it asks for an ACK or ends a message, unless
 * an earlier ACK of the same run, a series of rising PSNs, covers it: a peer that goes back sends
 * many packets, and each ACK without news costs it time.
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

	if (unlikely(!(p->flags & OP_VALID)))
		return XROCE_DROP_psn_duplicate;
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
		/* the rest of the first answer is still sent, once */
		if (skip < r->cursor)
			reply_resource(e, qp, r, skip, r->stop);
		return XROCE_DROP_none;
	}
	r->replay = true;
	r->keyless = !mr_allows(e->mrs, r->pd, qp->qpn, r->rkey, p->va, p->dma_len, MR_REMOTE_READ);
	r->end = (u32)offset + p->dma_len;
	reply_resource(e, qp, r, skip, skip + psn_count(p->dma_len, qp->path_mtu));
	return XROCE_DROP_none;
}
