/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lost packets: what the requester sends again and when, and the packets of both directions that
 * arrived before a lost or late one.
 *
 * Missing responses of a READ are always requested alone: any responder executes a part of a READ
 * again. Of SENDs and WRITEs only the missing packet is resent, and the queue waits for the answer,
 * which distinguishes two kinds of responder:
 *
 *   it held early packets           the answer reaches beyond the packet: repaired, or a NAK names
 *                                   the next hole
 *   it dropped early packets (rxe)  the answer covers only that packet: go back and resend all
 *                                   later ones
 *
 * For a peer known to be of the second kind the requester goes back at once, except for an
 * occasional try. On the wire it is a requester that repeats less. A single resent packet has
 * MigReq 0 to say that later ones were sent before it; no responder minds, and ours uses it
 * (responder.c).
 *
 * After a time-out one packet is sent in either case: a peer may be slow rather than dead, and
 * executes each repetition. Its answer determines the next packet. The same holds for a NAK that
 * repeats another.
 */
#include <stdlib.h>

#include "congestion.h"
#include "credit.h"
#include "recovery.h"
#include "requester.h"
#include "stat.h"

#define GO_BACK_EVIDENCE 2 /* answers after which a peer is taken to drop early packets */
#define RETRY_SELECTIVE	 32 /* losses between tries with such a peer */

void recovery_reset(struct requester *req)
{
	req->recovery.hole = req->recovery.waiting = req->recovery.probing = false;
}

static bool recovery_is_selective(const struct engine *e, struct qp *qp, const struct send_wqe *wqe)
{
	struct recovery *r = &qp->req.recovery;

	if (e->config.disable & ENGINE_NO_SELECTIVE || !wqe || qp->req.next_psn != qp->req.sent_psn)
		return false;
	if (wqe->opcode == WR_READ || r->go_back_evidence < GO_BACK_EVIDENCE)
		return true;
	return ++r->losses % RETRY_SELECTIVE == 0;
}

/* Returns the end of the hole that starts at psn: a READ's is the first response already held. */
static u32 recovery_hole_end(const struct qp *qp, const struct send_wqe *wqe, u32 psn)
{
	const struct held *early = qp->req.early.head;
	u32 end = psn_add(wqe->first_psn, wqe->num_psn);

	if (wqe->opcode != WR_READ)
		return psn_add(psn, 1);
	if (early && psn_diff(early->packet.psn, end) < 0)
		end = early->packet.psn;
	return psn_diff(end, qp->req.sent_psn) > 0 ? qp->req.sent_psn : end;
}

void recovery_start(struct engine *e, struct qp *qp, u32 psn, enum vendor_err verr, u64 now_ns)
{
	struct requester *req = &qp->req;
	struct recovery *r = &req->recovery;
	const struct send_wqe *wqe = requester_wqe(qp, psn);
	const bool is_timeout = verr == VERR_TIMEOUT, is_first = !(req->loss & LOSS_COUNTED);
	/* one packet: the resent packets of this loss may be lost as well, or only late */
	const bool is_probe = is_timeout || !is_first;

	/* each of the user's time-outs uses a retry, and the first NAK of a loss */
	if (is_timeout || is_first) {
		if (!req->retries_left) {
			completer_give_up(e, qp, verr, now_ns);
			return;
		}
		req->retries_left--;
		req->ack_deadline_ns = NSEC_NEVER; /* starts when a packet is sent again */
	}
	req->loss = is_timeout ? LOSS_COUNTED : LOSS_COUNTED | LOSS_NAKED; /* graces start again */
	r->probing = false;
	if (!r->waiting || psn_diff(psn, r->end_psn) >= 0) {
		congestion_loss(e, qp);
		r->end_psn = req->sent_psn;
	}
	if (r->waiting && psn_diff(psn, r->hole_end) > 0)
		r->go_back_evidence = 0;
	if (recovery_is_selective(e, qp, wqe)) {
		r->hole = true;
		r->hole_psn = psn;
		r->waiting = wqe->opcode != WR_READ;
		r->probing = is_probe && !r->waiting;
		r->hole_end = r->probing ? psn_add(psn, 1) : recovery_hole_end(qp, wqe, psn);
	} else {
		recovery_reset(req);
		requester_seek(e, qp, psn);
		if (is_probe)
			req->loss |= LOSS_PROBED;
	}
	engine_ready(e, qp, READY_REQUESTS);
}

/*
 * Takes nothing back and holds nothing up: most of these time-outs only mean that a thread of the
 * peer waited for a CPU. If a packet was lost, later ones draw a NAK; if none follows, the answer
 * to the probe shows it.
 */
void recovery_probe(struct engine *e, struct qp *qp)
{
	struct requester *req = &qp->req;
	struct recovery *r = &req->recovery;
	const struct send_wqe *wqe = requester_wqe(qp, req->unacked_psn);

	if (!wqe || r->hole) {
		congestion_untime(qp);
		return;
	}
	congestion_probe(qp);
	engine_ready(e, qp, READY_REQUESTS);
	/* went back, and the resent packets are lost too */
	if (req->next_psn != req->sent_psn) {
		requester_seek(e, qp, req->unacked_psn);
		req->loss |= LOSS_PROBED;
		return;
	}
	r->hole = true;
	r->probing = !r->waiting; /* else the repair was lost */
	r->hole_psn = req->unacked_psn;
	r->hole_end = psn_add(r->hole_psn, 1);
	if (r->probing)
		r->end_psn = req->sent_psn;
}

/*
 * The probe was answered, other packets follow it and none was sent since. If it was answered
 * alone, the others are lost. If some others were too, it had arrived before: the now oldest packet
 * is probed at once.
 */
static void recovery_probe_answered(struct engine *e, struct qp *qp)
{
	struct requester *req = &qp->req;
	struct recovery *r = &req->recovery;

	if (psn_diff(req->unacked_psn, r->hole_end) < 0)
		return;
	r->probing = false;
	if (psn_diff(req->unacked_psn, r->end_psn) >= 0 || r->end_psn != req->sent_psn)
		return;
	if (req->unacked_psn != r->hole_end) {
		recovery_probe(e, qp);
		return;
	}
	congestion_loss(e, qp);
	requester_seek(e, qp, req->unacked_psn);
}

/* Ends the wait if the awaited answer has arrived; returns whether it did. */
static bool recovery_wait_ended(struct engine *e, struct qp *qp)
{
	struct recovery *r = &qp->req.recovery;

	if (!r->waiting || psn_diff(qp->req.unacked_psn, r->hole_end) < 0)
		return false;
	r->waiting = r->hole = false;
	if (qp->req.unacked_psn != r->hole_end)
		r->go_back_evidence = 0;
	engine_ready(e, qp, READY_REQUESTS);
	return true;
}

void recovery_answered(struct engine *e, struct qp *qp, bool nak)
{
	struct requester *req = &qp->req;
	struct recovery *r = &req->recovery;

	if (r->probing && !nak)
		recovery_probe_answered(e, qp);
	if (nak || !recovery_wait_ended(e, qp))
		return;
	if (psn_diff(req->unacked_psn, r->end_psn) < 0) {
		if (req->unacked_psn == r->hole_end && r->go_back_evidence < GO_BACK_EVIDENCE)
			r->go_back_evidence++;
		requester_seek(e, qp, req->unacked_psn);
	}
}

/*
 * A probe requested one packet of a READ, and its response arrived. Responses to the original
 * request have other opcodes, so that one was lost with all that followed: requests the rest.
 */
static void recovery_read_rest(struct engine *e, struct qp *qp)
{
	struct requester *req = &qp->req;
	struct recovery *r = &req->recovery;
	const struct send_wqe *wqe = requester_wqe(qp, req->unacked_psn);

	if (!wqe || wqe->opcode != WR_READ || req->unacked_psn == wqe->first_psn ||
	    req->next_psn != req->sent_psn)
		return;
	r->hole = true;
	r->hole_psn = req->unacked_psn;
	r->hole_end = recovery_hole_end(qp, wqe, r->hole_psn);
	engine_ready(e, qp, READY_REQUESTS);
}

/*
 * A resent atomic has its own response, and a READ's response acknowledges the SEND or WRITE before
 * it.
 */
void recovery_responded(struct engine *e, struct qp *qp, bool is_only)
{
	struct requester *req = &qp->req;
	struct recovery *r = &req->recovery;

	if (r->probing && psn_diff(req->unacked_psn, r->hole_end) >= 0) {
		r->probing = false;
		if (is_only && req->unacked_psn == r->hole_end &&
		    psn_diff(req->unacked_psn, r->end_psn) < 0)
			recovery_read_rest(e, qp);
	}
	/* each has its own answer: no evidence about the other packets */
	if (recovery_wait_ended(e, qp) && req->unacked_psn == r->hole_end &&
	    psn_diff(req->unacked_psn, r->end_psn) < 0)
		requester_seek(e, qp, req->unacked_psn);
}

u32 recovery_output(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns)
{
	struct requester *req = &qp->req;
	struct recovery *r = &req->recovery;
	u32 next, len;

	/* packets answered since are no longer missing */
	if (psn_diff(req->unacked_psn, r->hole_psn) > 0)
		r->hole_psn = req->unacked_psn;
	if (psn_diff(r->hole_psn, r->hole_end) >= 0) {
		r->hole = false;
		return 0;
	}
	len = requester_rebuild(e, qp, r->hole_psn, r->hole_end, frame, &next, now_ns);
	if (!len) { /* its memory is not accessible: the normal path reports that in order */
		recovery_reset(req);
		requester_seek(e, qp, req->unacked_psn);
		return 0;
	}
	r->hole_psn = next;
	r->hole = psn_diff(next, r->hole_end) < 0;
	return len;
}

/*
 * Time-outs of the requester: the user's, which uses a retry; the adaptive one, which only probes
 * (congestion.c sets it); the end of an RNR wait. The retransmission is above.
 *
 * A deadline may be noticed late: threads wait for a CPU, or the process was stopped. Answers may
 * then have arrived that the engine's caller could not yet deliver. So a late deadline is postponed
 * by a short grace in which the process runs: an adaptive one by its own time, once; the user's by
 * a quarter of it, at most three times in a row, so that even a process that is always late detects
 * a dead peer. Nothing is sent and no retry is used.
 */

#define BACKOFF_MAX 24 /* doublings: 1 ms then exceeds the longest attribute */

static u64 timeout_grace_ns(const struct requester *req)
{
	return max_u64(timeout_ns(req) / 4, TIMEOUT_LATE_NS);
}

/* Returns true if an expired deadline is postponed because it was noticed late. */
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
	congestion_untime(qp); /* the sample would include this delay */
	return true;
}

static void timeout_of_ack(struct engine *e, struct qp *qp, bool adaptive, u64 now_ns)
{
	struct requester *req = &qp->req;

	if (!timeout_put_off(e, qp, adaptive, now_ns)) {
		/* the repair may be lost as well: allow a NAK to request it again */
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
	credit_expire(e, qp);
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
	/* deadlines that were postponed since they were set */
	timer_set(e, qp, timeout_due_ns(req));
}

/* ---- packets that arrived early ---- */

/*
 * Packets held until their turn: requests ahead of the responder's expected PSN, READ and atomic
 * responses ahead of the requester's oldest. They are copies of checked packets. When their turn
 * comes, the same code handles them as if they had just arrived. The engine owns the pool, so an
 * idle QP costs nothing, and no peer can make it grow.
 *
 * An early packet may be forged: its sender need not have known the PSN. So held packets are sorted
 * both by PSN and by arrival. Most paths do not reorder packets. A genuine packet that arrives
 * after a forged one ahead of it contradicts that one; both are dropped, and requested again. A
 * held packet is executed only after a packet that proves it: docs/injection.md.
 */

int reorder_init(struct engine *e)
{
	if (e->config.disable & ENGINE_NO_REORDER)
		return 0;
	e->held_pool = malloc(REORDER_POOL * sizeof(*e->held_pool));
	if (!e->held_pool)
		return -ENOMEM;
	e->num_held = REORDER_POOL;
	for (u32 i = REORDER_POOL; i--;)
		reorder_free(e, &e->held_pool[i]);
	return 0;
}

void reorder_destroy(struct engine *e)
{
	free(e->held_pool);
}

void reorder_free(struct engine *e, struct held *h)
{
	h->next = e->held_free;
	e->held_free = h;
	e->num_held--;
}

void reorder_purge(struct engine *e, struct reorder *r)
{
	struct held *h;

	while ((h = r->head)) {
		r->head = h->next;
		reorder_free(e, h);
	}
	r->tail = NULL;
	r->count = 0;
}

/* Returns whether two packets of one PSN are the same. AckReq and MigReq may differ in a resend. */
static bool reorder_is_same(const struct packet *a, const struct packet *b)
{
	u32 flags = a->flags, linear = (u32)min_u64(a->payload_len, (u64)(a->end - a->payload));

	if (a->opcode != b->opcode || a->payload_len != b->payload_len ||
	    a->solicited != b->solicited)
		return false;
	if (flags & (OP_RETH | OP_ATOMIC_ETH) && (a->va != b->va || a->rkey != b->rkey))
		return false;
	if (flags & OP_RETH && a->dma_len != b->dma_len)
		return false;
	if (flags & OP_ATOMIC_ETH && (a->swap_add != b->swap_add || a->compare != b->compare))
		return false;
	if ((flags & OP_IMM && a->imm != b->imm) ||
	    (flags & OP_IETH && a->inv_rkey != b->inv_rkey) ||
	    (flags & OP_XRC_ETH && a->xrc_srqn != b->xrc_srqn) ||
	    (flags & OP_FETH && a->flush != b->flush) ||
	    (flags & OP_ATOMIC_ACK_ETH && a->original != b->original))
		return false;
	return !memcmp(a->payload, b->payload, linear) &&
	       (linear == a->payload_len ||
		!memcmp(a->frag, b->payload + linear, a->payload_len - linear));
}

/*
 * p is not ahead of all held packets. If it repeats one of them, nothing changes. If not, it
 * contradicts the held packets that are not before it: these are dropped.
 */
static void reorder_drop_contradicted(struct engine *e, struct reorder *r, const struct packet *p)
{
	struct held **link = &r->head, *before = NULL, *h;

	while (*link && psn_diff((*link)->packet.psn, p->psn) < 0) {
		before = *link;
		link = &before->next;
	}
	if (!*link || ((*link)->packet.psn == p->psn && reorder_is_same(p, &(*link)->packet)))
		return;
	while ((h = *link)) {
		*link = h->next;
		r->count--;
		reorder_free(e, h);
	}
	r->tail = before;
}

bool reorder_hold(struct engine *e, struct reorder *r, u32 psn, const struct packet *p,
		  const struct xroce_rx_cqe *hint)
{
	struct held *h = e->held_free;

	if (psn_diff(p->psn, psn) <= 0 || psn_diff(p->psn, psn) > (s32)e->window)
		return false;
	if (r->tail && psn_diff(p->psn, r->tail->packet.psn) <= 0) {
		reorder_drop_contradicted(e, r, p);
		return false;
	}
	if (!h || r->count >= REORDER_MAX_QP)
		return false;
	e->held_free = h->next;
	e->num_held++;
	h->packet = *p;
	h->packet.payload = h->payload;
	h->packet.end = h->payload + p->payload_len;
	h->packet.frag = NULL;
	h->packet.frag_len = 0;
	packet_copy_payload(p, 0, h->payload, p->payload_len);
	h->has_hint = hint;
	if (hint)
		h->hint = *hint;
	h->next = NULL;
	if (r->tail) {
		h->missing = (u32)psn_diff(p->psn, r->tail->packet.psn) - 1;
		r->tail->next = h;
	} else {
		h->missing = (u32)psn_diff(p->psn, psn);
		r->head = h;
		r->gap_psn = psn;
	}
	r->tail = h;
	r->count++;
	e->stats->rx_held++;
	return true;
}

void reorder_pass(struct engine *e, struct reorder *r, u32 psn)
{
	struct held *h;

	while ((h = r->head) && psn_diff(h->packet.psn, psn) < 0) {
		r->head = h->next;
		r->count--;
		if (!r->head)
			r->tail = NULL;
		reorder_free(e, h);
	}
}

/*
 * Returns whether as many packets follow a gap as are missing in it. An attacker who guesses PSNs
 * then gains nothing by a long gap: the more PSNs fit, the more packets it takes.
 */
static bool reorder_is_long_enough(const struct held *h)
{
	u32 n = 1;

	for (const struct held *at = h; n < h->missing && at->next && !at->next->missing;
	     at = at->next)
		n++;
	return n >= h->missing;
}

struct held *reorder_take(struct engine *e, struct reorder *r, u32 psn)
{
	struct held *h;

	reorder_pass(e, r, psn);
	h = r->head;
	if (!h || h->packet.psn != psn)
		return NULL;
	if (unlikely(!reorder_is_long_enough(h))) {
		reorder_purge(e, r);
		return NULL;
	}
	r->head = h->next;
	r->count--;
	if (!r->head)
		r->tail = NULL;
	return h;
}

void reorder_overtaken(struct engine *e, struct reorder *r, u32 psn)
{
	if (psn != psn_add(r->gap_psn, 1) || r->head->packet.psn != psn)
		reorder_purge(e, r);
}
