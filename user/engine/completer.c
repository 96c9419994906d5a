/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The requester's other half: responses to completions, NAKs and RNR waits. recovery.c handles
 * missing responses.
 *
 * unacked_psn is authoritative: everything before it is complete. An ACK moves it over SENDs and
 * WRITEs; only their own responses move it over READs and atomics.
 */
#include "congestion.h"
#include "credit.h"
#include "internal.h"
#include "recovery.h"
#include "requester.h"
#include "stat.h"

/* RNR timer codes in units of 10 us: IBTA 9.7.5.2.8. */
static const u32 rnr_timer_10us[32] = {
	65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	  32,
	48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024,  1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

static u64 rnr_timer_ns(u8 code)
{
	return rnr_timer_10us[code & AETH_VALUE_MASK] * 10 * NSEC_PER_USEC;
}

void completer_local(struct engine *e, struct qp *qp, u64 now_ns)
{
	while (sq_cons(&qp->sq) != qp->req.assigned && sq_at(&qp->sq, sq_cons(&qp->sq))->executed)
		sq_complete(e, qp, CQE_SUCCESS, VERR_NONE, now_ns);
}

bool completer_is_draining(const struct qp *qp)
{
	return qp_state(qp) == QPS_SQD && sq_cons(&qp->sq) != qp->req.assigned;
}

void completer_check_drained(struct engine *e, struct qp *qp)
{
	if (qp->req.drained_notify && qp_state(qp) == QPS_SQD && !completer_is_draining(qp)) {
		qp->req.drained_notify = false;
		engine_qp_event(e, qp, EVENT_SQ_DRAINED);
	}
}

/*
 * unacked_psn has moved from before: resets all counters, and restarts the time-outs if packets are
 * still outstanding.
 */
static per_packet void completer_progress(struct engine *e, struct qp *qp, u32 before, u64 now_ns)
{
	struct requester *req = &qp->req;

	congestion_progress(e, qp, (u32)psn_diff(req->unacked_psn, before), now_ns);

	req->retries_left = req->retry_cnt;
	req->rnr_retries_left = req->rnr_retry;
	req->loss = 0;
	while (req->rd_atomic_out &&
	       psn_diff(req->unacked_psn, req->rd_atomic_last[req->rd_atomic_head]) > 0) {
		req->rd_atomic_head = (req->rd_atomic_head + 1) & req->rd_atomic_mask;
		req->rd_atomic_out--;
	}
	/* an answer to something that was to be sent again */
	if (psn_diff(req->unacked_psn, req->next_psn) > 0)
		requester_seek(e, qp, req->unacked_psn);
	req->rtt.deadline_ns = req->ack_deadline_ns = NSEC_NEVER;
	/* a wait for the rate is set up again when the QP is served, now, also for responses */
	if (unlikely(qp->rate_limited))
		rate_look_again(e, qp);
	if (req->next_psn == req->unacked_psn && !req->rnr_wait) {
		timer_stop(e, qp);
	} else {
		if (req->next_psn != req->unacked_psn && req->timeout)
			req->ack_deadline_ns = now_ns + timeout_ns(req);
		congestion_rearm(e, qp, now_ns);
		timer_put_off(e, qp, timeout_due_ns(req));
	}
	if (unlikely(qp->tells_xdp))
		expect_completed(qp);
	completer_check_drained(e, qp);
	/* a later post rings the doorbell */
	if (req->tx != sq_prod(&qp->sq))
		engine_ready(e, qp, READY_REQUESTS);
}

/*
 * Acknowledges everything before end. Returns false if a READ or atomic before it still lacks its
 * response: an implied NAK.
 */
static inline bool completer_ack_before(struct engine *e, struct qp *qp, u32 end, u64 now_ns)
{
	struct requester *req = &qp->req;
	u32 before = req->unacked_psn;
	bool complete = true;

	while (psn_diff(end, req->unacked_psn) > 0) {
		const struct send_wqe *wqe = sq_at(&qp->sq, sq_cons(&qp->sq));
		u32 wqe_end = psn_add(wqe->first_psn, wqe->num_psn);

		if (wr_is_answered(wqe->opcode)) {
			complete = false;
			break;
		}
		if (psn_diff(end, wqe_end) < 0) {
			req->unacked_psn = end;
			break;
		}
		req->unacked_psn = wqe_end;
		sq_complete(e, qp, CQE_SUCCESS, VERR_NONE, now_ns);
		completer_local(e, qp, now_ns);
	}
	if (req->unacked_psn != before)
		completer_progress(e, qp, before, now_ns);
	return complete;
}

static void completer_imply_nak(struct engine *e, struct qp *qp, u64 now_ns)
{
	const struct requester *req = &qp->req;

	if (req->loss & LOSS_NAKED)
		return;
	engine_count(e, qp, implied_naks);
	recovery_start(e, qp, req->unacked_psn, VERR_SEQUENCE_RETRY, now_ns);
}

static enum xroce_drop completer_fail_response(struct engine *e, struct qp *qp, u64 now_ns)
{
	qp_send_error(e, qp, CQE_BAD_RESP_ERR, VERR_BAD_RESPONSE, now_ns);
	return XROCE_DROP_unexpected_response;
}

/* The response cannot be stored where the WQE says. */
static enum xroce_drop completer_fail_memory(struct engine *e, struct qp *qp,
					     const struct send_wqe *wqe, u64 now_ns)
{
	qp_send_error(e, qp, CQE_LOC_PROT_ERR,
		      list_error(e, wqe_pd(qp, wqe), wqe->sge, wqe->num_sge, MR_LOCAL_WRITE),
		      now_ns);
	return XROCE_DROP_none;
}

/* Holds a response that arrived early. */
static rare enum xroce_drop completer_hold(struct engine *e, struct qp *qp, const struct packet *p,
					   u64 now_ns)
{
	const bool held = reorder_hold(e, &qp->req.early, qp->req.unacked_psn, p, NULL);

	if (held)
		qp->stat->rx_held++;
	completer_imply_nak(e, qp, now_ns);
	return held ? XROCE_DROP_none : XROCE_DROP_psn_ahead;
}

/*
 * Handles the PSN of a response with data: completes the queue up to it and returns the WQE that it
 * answers. Returns NULL if an earlier response is missing, and in *drop whether the packet was
 * held.
 */
static struct send_wqe *completer_answered_wqe(struct engine *e, struct qp *qp,
					       const struct packet *p, u64 now_ns,
					       enum xroce_drop *drop)
{
	/* beyond the oldest PSN, for a request without such a response: no peer sends that */
	if (p->psn != qp->req.unacked_psn) {
		const struct send_wqe *wqe = requester_wqe(qp, p->psn);

		if (!wqe || !wr_is_answered(wqe->opcode)) {
			*drop = XROCE_DROP_unexpected_response;
			return NULL;
		}
	}
	if (!completer_ack_before(e, qp, p->psn, now_ns)) {
		*drop = completer_hold(e, qp, p, now_ns);
		return NULL;
	}
	return sq_at(&qp->sq, sq_cons(&qp->sq));
}

static void completer_finish_answered(struct engine *e, struct qp *qp, const struct send_wqe *wqe,
				      u32 psn, u64 now_ns)
{
	u32 before = qp->req.unacked_psn;

	qp->req.unacked_psn = psn_add(psn, 1);
	if (qp->req.unacked_psn == psn_add(wqe->first_psn, wqe->num_psn)) {
		sq_complete(e, qp, CQE_SUCCESS, VERR_NONE, now_ns);
		completer_local(e, qp, now_ns);
	}
	completer_progress(e, qp, before, now_ns);
}

/*
 * Returns whether this response proves the packets held after it. It must be a response to a resent
 * READ request: it begins or ends where the responses to the WQE's first requests did not. And the
 * responder must have received the first request, so that the held packets were sent before this
 * one: it has answered the request's beginning, or the gap is this packet alone.
 */
static bool completer_is_repair(const struct engine *e, const struct requester *req,
				const struct send_wqe *wqe, const struct packet *p)
{
	u32 k = (u32)psn_diff(p->psn, wqe->first_psn), chunk = requester_read_chunk(e);
	bool starts = k % chunk == 0, ends = (k + 1) % chunk == 0 || k + 1 == wqe->num_psn;
	s32 since = psn_diff(p->psn, req->early.gap_psn);

	if (wqe->opcode != WR_READ ||
	    (starts == !!(p->flags & OP_START) && ends == !!(p->flags & OP_END)))
		return false;
	return since == 0 || (since > 0 && (u32)since < k % chunk);
}

/* *repair is set if this response proves held packets after it. */
static enum xroce_drop completer_read_response(struct engine *e, struct qp *qp,
					       const struct packet *p, bool *repair, u64 now_ns)
{
	enum xroce_drop drop = XROCE_DROP_none; /* as gcc 16 requires */
	struct send_wqe *wqe = completer_answered_wqe(e, qp, p, now_ns, &drop);
	const struct guard_bytes payload = packet_payload(p);
	u64 offset;

	if (!wqe)
		return drop;
	offset = (u64)(u32)psn_diff(p->psn, wqe->first_psn) * qp->path_mtu;
	/* FLUSH and ATOMIC WRITE are answered by an empty READ response */
	if (wqe->opcode == WR_READ ?
		    p->payload_len != min_u64(wqe->length - offset, qp->path_mtu) :
		    (wqe->opcode != WR_FLUSH && wqe->opcode != WR_ATOMIC_WRITE) || p->payload_len)
		return completer_fail_response(e, qp, now_ns);
	if (!sge_scatter(e->mrs, wqe_pd(qp, wqe), wqe->sge, wqe->num_sge, offset, &payload,
			 p->payload_len))
		return completer_fail_memory(e, qp, wqe, now_ns);
	if (reorder_holds(e, &qp->req.early))
		*repair = completer_is_repair(e, &qp->req, wqe, p);
	completer_finish_answered(e, qp, wqe, p->psn, now_ns);
	return XROCE_DROP_none;
}

static enum xroce_drop completer_atomic_response(struct engine *e, struct qp *qp,
						 const struct packet *p, u64 now_ns)
{
	const struct guard_bytes original = { .at = (const u8 *)&p->original,
					      .len = sizeof(p->original) };
	enum xroce_drop drop = XROCE_DROP_none; /* as gcc 16 requires */
	struct send_wqe *wqe = completer_answered_wqe(e, qp, p, now_ns, &drop);

	if (!wqe)
		return drop;
	if (wqe->opcode != WR_CMP_SWAP && wqe->opcode != WR_FETCH_ADD)
		return completer_fail_response(e, qp, now_ns);
	if (!sge_scatter(e->mrs, qp->pd, wqe->sge, wqe->num_sge, 0, &original,
			 sizeof(p->original)))
		return completer_fail_memory(e, qp, wqe, now_ns);
	completer_finish_answered(e, qp, wqe, p->psn, now_ns);
	return XROCE_DROP_none;
}

static enum xroce_drop completer_rnr_nak(struct engine *e, struct qp *qp, u32 psn, u8 syndrome,
					 u64 now_ns)
{
	struct requester *req = &qp->req;

	engine_count(e, qp, rx_rnr_naks);
	/* a repeated RNR NAK, or one for a PSN that was taken back: no news */
	if (req->rnr_wait || psn_diff(psn, req->next_psn) >= 0)
		return XROCE_DROP_psn_duplicate;
	if (req->rnr_retry != 7) {
		if (!req->rnr_retries_left) {
			qp_send_error(e, qp, CQE_RNR_RETRY_EXC_ERR, VERR_RNR, now_ns);
			return XROCE_DROP_none;
		}
		req->rnr_retries_left--;
	}
	req->retries_left = req->retry_cnt; /* the peer is alive */
	req->loss = 0;
	recovery_reset(req);
	requester_seek(e, qp, psn);
	req->rnr_wait = true;
	req->rnr_until_ns = now_ns + rnr_timer_ns(syndrome);
	req->ack_deadline_ns = req->rtt.deadline_ns = NSEC_NEVER;
	timer_set(e, qp, req->rnr_until_ns);
	return XROCE_DROP_none;
}

/* The responder refused the oldest WQE. */
static void completer_refused(struct engine *e, struct qp *qp, u8 code, u64 now_ns)
{
	static const struct {
		enum cqe_status status;
		enum vendor_err verr;
	} fatal[NAK_REMOTE_OPERATION + 1] = {
		[NAK_INVALID_REQUEST] = { CQE_REM_INV_REQ_ERR, VERR_NAK_INVALID_REQUEST },
		[NAK_REMOTE_ACCESS] = { CQE_REM_ACCESS_ERR, VERR_NAK_REMOTE_ACCESS },
		[NAK_REMOTE_OPERATION] = { CQE_REM_OP_ERR, VERR_NAK_REMOTE_OPERATION },
	};

	qp_send_error(e, qp, fatal[code].status, fatal[code].verr, now_ns);
}

static enum xroce_drop completer_nak(struct engine *e, struct qp *qp, u32 psn, u8 syndrome,
				     u64 now_ns)
{
	u8 code = syndrome & AETH_VALUE_MASK;

	if (code == NAK_PSN_SEQUENCE) {
		engine_count(e, qp, rx_sequence_naks);
		if (qp->req.loss & LOSS_NAKED) /* being repaired already */
			return XROCE_DROP_psn_duplicate;
		recovery_start(e, qp, psn, VERR_SEQUENCE_RETRY, now_ns);
		return XROCE_DROP_none;
	}
	if (code > NAK_REMOTE_OPERATION)
		return XROCE_DROP_unexpected_response;
	completer_refused(e, qp, code, now_ns);
	return XROCE_DROP_none;
}

/*
 * Remembers a NAK that arrived before earlier responses. A refusal is sent once, by a responder
 * then in error, so it is kept until the responses arrive or are given up. A sequence NAK is not
 * kept: it is repeated, and may be older than a refusal.
 */
static void completer_remember_nak(struct requester *req, u32 psn, u8 syndrome)
{
	u8 code = syndrome & AETH_VALUE_MASK;

	if ((syndrome & AETH_CLASS_MASK) == AETH_NAK && code != NAK_PSN_SEQUENCE &&
	    code <= NAK_REMOTE_OPERATION) {
		req->refusal = code;
		req->refused_psn = psn;
	}
}

/* A response has arrived: the remembered NAK may now be due. */
static rare void completer_take_refusal(struct engine *e, struct qp *qp, u64 now_ns)
{
	struct requester *req = &qp->req;
	u8 code = req->refusal;

	if (!requests_go_on(qp_state(qp)))
		return;
	if (!completer_ack_before(e, qp, req->refused_psn, now_ns))
		return;
	req->refusal = 0;
	if (req->refused_psn == req->unacked_psn)
		completer_refused(e, qp, code, now_ns);
}

void completer_give_up(struct engine *e, struct qp *qp, enum vendor_err verr, u64 now_ns)
{
	const struct requester *req = &qp->req;

	if (req->refusal && psn_diff(req->refused_psn, req->unacked_psn) >= 0 &&
	    requester_wqe(qp, req->refused_psn) == sq_at(&qp->sq, sq_cons(&qp->sq)))
		completer_refused(e, qp, req->refusal, now_ns);
	else
		qp_send_error(e, qp, CQE_RETRY_EXC_ERR, verr, now_ns);
}

/* A response's PSN must lie between the oldest outstanding one and the last one sent. */
static inline enum xroce_drop completer_check_response(const struct qp *qp, u32 psn)
{
	const struct requester *req = &qp->req;

	if (!is_reliable(qp) || qp->xrc_target || !requests_go_on(qp_state(qp)) ||
	    psn_diff(psn, req->sent_psn) >= 0)
		return XROCE_DROP_unexpected_response;
	return psn_diff(psn, req->unacked_psn) < 0 ? XROCE_DROP_psn_duplicate : XROCE_DROP_none;
}

/* Returns the drop reason of an unused response, and times a second answer. */
static rare enum xroce_drop completer_refuse(struct engine *e, struct qp *qp, u32 psn,
					     enum xroce_drop drop, u64 now_ns)
{
	if (drop == XROCE_DROP_psn_duplicate)
		congestion_answered_twice(e, qp, psn, now_ns);
	return drop;
}

/* A response with data. */
static enum xroce_drop completer_response(struct engine *e, struct qp *qp, const struct packet *p,
					  bool *repair, u64 now_ns)
{
	enum xroce_drop drop;

	*repair = false;

	if (p->flags & OP_AETH) {
		if ((p->syndrome & AETH_CLASS_MASK) != AETH_ACK)
			return XROCE_DROP_unexpected_response;
		credit_update(e, qp, p->syndrome, p->msn);
	}
	drop = p->flags & OP_READ ? completer_read_response(e, qp, p, repair, now_ns) :
				    completer_atomic_response(e, qp, p, now_ns);
	if (p->flags & OP_AETH)
		credit_recount(qp, p->psn, p->msn);
	recovery_response(e, qp, (p->flags & OP_ONLY) == OP_ONLY);
	return drop;
}

/*
 * Handles held responses after progress. Held packets whose turn it is are executed if a repair
 * proves them. Without proof the genuine response may be on its way, or a held one may be the only
 * one: all are requested again.
 */
static void completer_take_early(struct engine *e, struct qp *qp, bool proven, u64 now_ns)
{
	struct requester *req = &qp->req;
	struct held *h;
	bool ignored;

	reorder_pass(e, &req->early, req->unacked_psn);
	if (proven) {
		while ((h = reorder_take(e, &req->early, req->unacked_psn))) {
			completer_response(e, qp, &h->packet, &ignored, now_ns);
			reorder_free(e, h);
		}
		req->early.gap_psn = req->unacked_psn;
		if (req->early.head)
			completer_imply_nak(e, qp, now_ns);
	} else if (req->early.head && req->early.head->packet.psn == req->unacked_psn) {
		reorder_purge(e, &req->early);
		recovery_reset(req);
		requester_seek(e, qp, req->unacked_psn);
	}
}

static enum xroce_drop completer_take_ack(struct engine *e, struct qp *qp, u32 psn, u8 syndrome,
					  u32 msn, u64 now_ns)
{
	u8 class = syndrome & AETH_CLASS_MASK;

	e->stats->rx_acks++;
	if (unlikely(class != AETH_ACK && class != AETH_RNR_NAK && class != AETH_NAK))
		return XROCE_DROP_unexpected_response;
	credit_update(e, qp, syndrome, msn);
	/* an ACK covers its own PSN, a NAK only earlier ones */
	if (unlikely(!completer_ack_before(e, qp, class == AETH_ACK ? psn_add(psn, 1) : psn,
					   now_ns))) {
		completer_remember_nak(&qp->req, psn, syndrome);
		completer_imply_nak(e, qp, now_ns);
		return XROCE_DROP_none;
	}
	recovery_answer(e, qp, class == AETH_NAK);
	if (likely(class == AETH_ACK)) {
		credit_recount(qp, psn, msn);
		return XROCE_DROP_none;
	}
	return class == AETH_NAK ? completer_nak(e, qp, psn, syndrome, now_ns) :
				   completer_rnr_nak(e, qp, psn, syndrome, now_ns);
}

/*
 * A NAK of the next PSN to be sent. It acknowledges everything before it, as any NAK does; at its
 * own PSN nothing can be refused or resent. A responder that a forged packet convinced of a gap
 * sends it in place of an ACK.
 */
static enum xroce_drop completer_nak_of_unsent(struct engine *e, struct qp *qp, u32 psn, u64 now_ns)
{
	e->stats->rx_acks++;
	if (completer_ack_before(e, qp, psn, now_ns))
		recovery_answer(e, qp, false);
	else
		completer_imply_nak(e, qp, now_ns);
	return XROCE_DROP_none;
}

/* Returns whether an unexpected response is a NAK whose PSN directly follows an expected one. */
static bool completer_refuses_unsent(const struct qp *qp, u32 psn, u8 syndrome)
{
	u8 class = syndrome & AETH_CLASS_MASK;

	return (class == AETH_NAK || class == AETH_RNR_NAK) &&
	       completer_check_response(qp, psn_add(psn, ROCE_PSN_MASK)) == XROCE_DROP_none;
}

enum xroce_drop completer_ack(struct engine *e, struct qp *qp, u32 psn, u8 syndrome, u32 msn,
			      u64 now_ns)
{
	enum xroce_drop drop = completer_check_response(qp, psn);

	if (likely(drop == XROCE_DROP_none))
		drop = completer_take_ack(e, qp, psn, syndrome, msn, now_ns);
	else if (completer_refuses_unsent(qp, psn, syndrome))
		drop = completer_nak_of_unsent(e, qp, psn, now_ns);
	else
		return completer_refuse(e, qp, psn, drop, now_ns);
	if (reorder_holds(e, &qp->req.early))
		completer_take_early(e, qp, false, now_ns);
	return drop;
}

enum xroce_drop completer_input(struct engine *e, struct qp *qp, const struct packet *p, u64 now_ns)
{
	bool repair;
	enum xroce_drop drop;

	if (p->flags & OP_ACK)
		return completer_ack(e, qp, p->psn, p->syndrome, p->msn, now_ns);
	drop = completer_check_response(qp, p->psn);
	if (drop != XROCE_DROP_none)
		return completer_refuse(e, qp, p->psn, drop, now_ns);
	drop = completer_response(e, qp, p, &repair, now_ns);
	if (reorder_holds(e, &qp->req.early))
		completer_take_early(e, qp, repair, now_ns);
	if (unlikely(qp->req.refusal))
		completer_take_refusal(e, qp, now_ns);
	return drop;
}
