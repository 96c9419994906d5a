/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The requester: send WQEs to request packets, for RC and UC.
 *
 * No packet is kept: a retransmission is built from its WQE again. Going back moves a cursor (tx,
 * tx_packet, next_psn); resending one packet (recovery.c) leaves the cursor alone. A WQE gets its
 * PSNs when the cursor first reaches it. completer.c completes WQEs, except UC's, which complete
 * when sent.
 */
#include "congestion.h"
#include "credit.h"
#include "internal.h"
#include "recovery.h"
#include "requester.h"
#include "stat.h"

void requester_start(struct qp *qp, u32 sq_psn)
{
	struct requester *req = &qp->req;

	req->next_psn = req->unacked_psn = req->sent_psn = sq_psn;
	req->tx = req->assigned = sq_cons(&qp->sq);
	req->tx_packet = 0;
	stat_psns(qp);
	req->first_index = req->tx;
	expect_none(qp);
	req->ack_deadline_ns = NSEC_NEVER;
}

/*
 * Returns how many PSNs psn, which is not before the oldest WQE's, lies after the start of this or
 * an earlier WQE. Not by psn_diff(): a WRITE of 2^31 bytes may take half of the circle.
 */
static u32 requester_offset(const struct send_wqe *wqe, u32 psn)
{
	return psn_add(psn, 0u - wqe->first_psn);
}

struct send_wqe *requester_wqe(const struct qp *qp, u32 psn)
{
	for (u32 i = sq_cons(&qp->sq); i != qp->req.assigned; i++) {
		struct send_wqe *wqe = sq_at(&qp->sq, i);

		if (requester_offset(wqe, psn) < wqe->num_psn)
			return wqe;
	}
	return NULL;
}

void requester_seek(struct engine *e, struct qp *qp, u32 psn)
{
	struct requester *req = &qp->req;
	u32 index = sq_cons(&qp->sq);

	req->tx_packet = 0;
	for (; index != req->assigned; index++) {
		const struct send_wqe *wqe = sq_at(&qp->sq, index);
		const u32 offset = requester_offset(wqe, psn);

		if (offset < wqe->num_psn) {
			req->tx_packet = offset;
			break;
		}
	}
	req->tx = index;
	req->next_psn = psn;
	stat_psns(qp);
	/* requests from psn on will be sent again */
	while (req->rd_atomic_out) {
		u32 last = (req->rd_atomic_head + req->rd_atomic_out - 1) & req->rd_atomic_mask;

		if (psn_diff(req->rd_atomic_last[last], psn) < 0)
			break;
		req->rd_atomic_out--;
	}
	engine_ready(e, qp, READY_REQUESTS);
}

/*
 * Fails a WQE that cannot be executed for a local reason. Completions are in order, so it fails
 * once all earlier WQEs are complete; until then the queue waits (each ACK makes it ready again).
 */
static void requester_fail_in_order(struct engine *e, struct qp *qp, enum cqe_status status,
				    enum vendor_err verr, u64 now_ns)
{
	if (qp->req.tx == sq_cons(&qp->sq))
		qp_send_error(e, qp, status, verr, now_ns);
	else if (qp->tells_xdp)
		expect_failure(qp);
}

/* Gives the WQE under the cursor its PSNs. False if it cannot start now, or fails. */
static bool requester_start_wqe(struct engine *e, struct qp *qp, struct send_wqe *wqe, u64 now_ns)
{
	struct requester *req = &qp->req;

	if (wqe->flags & WR_FENCE && req->rd_atomic_out)
		return false;
	/* its L_Keys are checked when the response arrives, as adapters do */
	if (wr_is_answered(wqe->opcode) && !req->max_rd_atomic) {
		requester_fail_in_order(e, qp, CQE_LOC_QP_OP_ERR, VERR_NONE, now_ns);
		return false;
	}
	/* not earlier: a fence waits for what a READ or an atomic writes to these bytes */
	if (wqe->opcode == WR_ATOMIC_WRITE && wqe->num_sge) {
		if (!sge_gather(e->mrs, qp->pd, wqe->sge, wqe->num_sge, 0, &wqe->swap,
				sizeof(wqe->swap))) {
			requester_fail_in_order(e, qp, CQE_LOC_PROT_ERR,
						list_error(e, qp->pd, wqe->sge, wqe->num_sge, 0),
						now_ns);
			return false;
		}
		wqe->num_sge = 0;
	}
	wqe->first_psn = req->next_psn;
	wqe->executed = false;
	wqe->num_psn = wqe->opcode != WR_READ && wr_is_answered(wqe->opcode) ?
			       1 :
			       psn_count(wqe->length, qp->path_mtu);
	/* each request of a READ is a message of the peer's MSN */
	if (wqe->opcode == WR_READ)
		req->first_index -= (wqe->num_psn - 1) / requester_read_chunk(e);
	req->assigned++;
	if (unlikely(qp->tells_xdp))
		expect_assigned(qp);
	return true;
}

/*
 * Executes LOCAL_INV and BIND_MW in queue order, without a PSN. They complete with the WQEs before
 * them. False if the WQE failed or must wait.
 */
static bool requester_execute_local(struct engine *e, struct qp *qp, struct send_wqe *wqe,
				    u64 now_ns)
{
	struct requester *req = &qp->req;
	struct mr *mw;
	int err;

	if (wqe->flags & WR_FENCE && req->rd_atomic_out)
		return false;
	if (wqe->opcode == WR_REFUSED) {
		requester_fail_in_order(e, qp, (enum cqe_status)wqe->refused_as, VERR_REQUEST,
					now_ns);
		return false;
	}
	if (wqe->opcode == WR_LOCAL_INV) {
		err = mw_invalidate(e->mrs, qp->pd, wqe->inv_rkey, qp->qpn);
	} else {
		mw = mw_find(e->mrs, wqe->bind.mw_key);
		err = mw && mw->pd == qp->pd ?
			      mw_bind(e->mrs, mw, wqe->bind.new_key, wqe->bind.lkey, wqe->bind.addr,
				      wqe->bind.length, wqe->bind.access, qp->qpn) :
			      -EINVAL;
	}
	if (err) {
		requester_fail_in_order(
			e, qp, wqe->opcode == WR_BIND_MW ? CQE_MW_BIND_ERR : CQE_LOC_QP_OP_ERR,
			VERR_INVALIDATE, now_ns);
		return false;
	}
	wqe->first_psn = req->next_psn;
	wqe->num_psn = 0;
	wqe->executed = true;
	req->first_index++; /* no message */
	req->assigned++;
	req->tx++;
	if (qp->tells_xdp)
		expect_assigned(qp);
	completer_local(e, qp, now_ns);
	if (qp->tells_xdp)
		expect_completed(qp);
	return true;
}

/* Returns the WQE whose next packet is to be sent, or NULL if there is none now. */
static struct send_wqe *requester_current_wqe(struct engine *e, struct qp *qp, u64 now_ns)
{
	struct requester *req = &qp->req;

	for (;;) {
		enum qp_state state = qp_state(qp);
		struct send_wqe *wqe;

		/* SQD finishes started requests and starts no others */
		if (!requests_go_on(state) ||
		    req->tx == (state == QPS_SQD ? req->assigned : sq_prod(&qp->sq)))
			return NULL;
		wqe = sq_at(&qp->sq, req->tx);
		if (req->tx != req->assigned) {
			if (!wqe->executed)
				return wqe;
			req->tx++; /* a local one, passed again after going back */
		} else if (wr_is_local(wqe->opcode)) {
			if (!requester_execute_local(e, qp, wqe, now_ns))
				return NULL;
		} else {
			return credit_allows(e, qp, wqe, req->tx) &&
					       requester_start_wqe(e, qp, wqe, now_ns) ?
				       wqe :
				       NULL;
		}
	}
}

static u32 requester_in_flight(const struct requester *req)
{
	return (u32)psn_diff(req->next_psn, req->unacked_psn);
}

/* Counts a sent packet and starts the time-outs if they are stopped. */
static void requester_count_sent(struct engine *e, struct qp *qp, const struct packet *p,
				 bool again, u32 len, u64 now_ns)
{
	struct requester *req = &qp->req;

	if (again) {
		engine_count(e, qp, tx_retransmitted);
		e->stats->tx_retransmitted_bytes += len;
		qp->stat->tx_retransmitted_bytes += len;
		if (p->psn == req->unacked_psn)
			stat_resent(qp, len);
	}
	rate_sent(e, qp, len, now_ns);
	if (!is_reliable(qp) || !req->timeout)
		return;
	if (!again)
		congestion_sent(e, qp, p->psn, p->ackreq, now_ns);
	if (req->ack_deadline_ns == NSEC_NEVER) {
		req->ack_deadline_ns = now_ns + timeout_ns(req);
		/* the earlier deadline first: setting the later one is then a no-op */
		congestion_rearm(e, qp, now_ns);
		timer_set(e, qp, req->ack_deadline_ns);
	}
}

/* Moves the cursor over n PSNs of wqe that were just used. */
static void requester_advance(struct qp *qp, const struct send_wqe *wqe, u32 n)
{
	struct requester *req = &qp->req;

	req->next_psn = psn_add(req->next_psn, n);
	if (psn_diff(req->next_psn, req->sent_psn) > 0)
		req->sent_psn = req->next_psn;
	req->tx_packet += n;
	if (req->tx_packet == wqe->num_psn) {
		req->tx++;
		req->tx_packet = 0;
	}
}

/* ---- building one packet of a WQE ---- */

/* Returns the low five bits of the opcode of a SEND or WRITE packet. */
static u8 requester_data_opcode(u8 wr_opcode, bool first, bool last)
{
	static const u8 ends[][2] = {
		[WR_WRITE] = { OP5_WRITE_LAST, OP5_WRITE_ONLY },
		[WR_WRITE_WITH_IMM] = { OP5_WRITE_LAST_IMM, OP5_WRITE_ONLY_IMM },
		[WR_SEND] = { OP5_SEND_LAST, OP5_SEND_ONLY },
		[WR_SEND_WITH_IMM] = { OP5_SEND_LAST_IMM, OP5_SEND_ONLY_IMM },
		[WR_SEND_WITH_INV] = { OP5_SEND_LAST_INV, OP5_SEND_ONLY_INV },
	};

	if (last)
		return ends[wr_opcode][first];
	if (wr_opcode == WR_WRITE || wr_opcode == WR_WRITE_WITH_IMM)
		return first ? OP5_WRITE_FIRST : OP5_WRITE_MIDDLE;
	return first ? OP5_SEND_FIRST : OP5_SEND_MIDDLE;
}

/* Builds packet k of a SEND or WRITE. Returns 0 if a key fails. */
static u32 requester_build_data(struct engine *e, struct qp *qp, const struct send_wqe *wqe, u32 k,
				struct packet *p, u8 *frame)
{
	bool last = k + 1 == wqe->num_psn;
	u64 offset = (u64)k * qp->path_mtu;
	struct unsealed u;

	p->opcode = OPCODE(qp->transport, requester_data_opcode(wqe->opcode, k == 0, last));
	p->xrc_srqn = wqe->xrc_srqn;
	p->payload_len = (u32)min_u64(wqe->length - offset, qp->path_mtu);
	/* A plain WRITE completes no receive, so there is nothing to solicit (ibv_post_send(3)). */
	p->solicited = last && wqe->flags & WR_SOLICITED && wqe->opcode != WR_WRITE;
	p->va = wqe->remote_addr;
	p->rkey = wqe->rkey;
	p->dma_len = wqe->length;
	p->imm = wqe->imm;
	p->inv_rkey = wqe->inv_rkey;
	header_out(&qp->req.header, &e->icrc, &qp->path, p, frame, &u);
	if (wqe->flags & WR_INLINE)
		memcpy(u.payload, wqe->data + offset, p->payload_len);
	else if (!sge_gather(e->mrs, qp->pd, wqe->sge, wqe->num_sge, offset, u.payload,
			     p->payload_len))
		return 0;
	return header_out_seal(&u, &e->icrc, p->payload_len);
}

static u32 requester_finish_header_only(const struct engine *e, struct qp *qp,
					const struct packet *p, u8 *frame)
{
	struct unsealed u;

	header_out(&qp->req.header, &e->icrc, &qp->path, p, frame, &u);
	return header_out_seal(&u, &e->icrc, 0);
}

/* Builds a request for response packets k to k + n - 1 of a READ. */
static u32 requester_build_read(const struct engine *e, struct qp *qp, const struct send_wqe *wqe,
				u32 k, u32 n, struct packet *p, u8 *frame)
{
	u64 offset = (u64)k * qp->path_mtu;

	p->opcode = OPCODE(qp->transport, OP5_READ_REQUEST);
	p->xrc_srqn = wqe->xrc_srqn;
	p->va = wqe->remote_addr + offset;
	p->rkey = wqe->rkey;
	p->dma_len = (u32)min_u64(wqe->length - offset, (u64)n * qp->path_mtu);
	return requester_finish_header_only(e, qp, p, frame);
}

static u32 requester_build_atomic(const struct engine *e, struct qp *qp, const struct send_wqe *wqe,
				  struct packet *p, u8 *frame)
{
	bool swap = wqe->opcode == WR_CMP_SWAP;

	p->opcode = OPCODE(qp->transport, swap ? OP5_CMP_SWAP : OP5_FETCH_ADD);
	p->xrc_srqn = wqe->xrc_srqn;
	p->va = wqe->remote_addr;
	p->rkey = wqe->rkey;
	p->swap_add = swap ? wqe->swap : wqe->compare_add;
	p->compare = swap ? wqe->compare_add : 0;
	return requester_finish_header_only(e, qp, p, frame);
}

static u32 requester_build_placement(const struct engine *e, struct qp *qp,
				     const struct send_wqe *wqe, struct packet *p, u8 *frame)
{
	struct unsealed u;

	p->xrc_srqn = wqe->xrc_srqn;
	p->va = wqe->remote_addr;
	p->rkey = wqe->rkey;
	p->dma_len = wqe->length;
	if (wqe->opcode == WR_FLUSH) {
		p->opcode = OPCODE(qp->transport, OP5_FLUSH);
		p->flush = (u32)wqe->compare_add;
		return requester_finish_header_only(e, qp, p, frame);
	}
	p->opcode = OPCODE(qp->transport, OP5_ATOMIC_WRITE);
	p->payload_len = sizeof(wqe->swap);
	header_out(&qp->req.header, &e->icrc, &qp->path, p, frame, &u);
	memcpy(u.payload, &wqe->swap, sizeof(wqe->swap));
	return header_out_seal(&u, &e->icrc, sizeof(wqe->swap));
}

/* Builds the only request packet of a WQE with a response, for a READ from packet k on. */
static per_packet u32 requester_build_answered(const struct engine *e, struct qp *qp,
				    const struct send_wqe *wqe, u32 k, u32 n, struct packet *p,
				    u8 *frame)
{
	if (wqe->opcode == WR_READ)
		return requester_build_read(e, qp, wqe, k, n, p, frame);
	if (wqe->opcode == WR_CMP_SWAP || wqe->opcode == WR_FETCH_ADD)
		return requester_build_atomic(e, qp, wqe, p, frame);
	return requester_build_placement(e, qp, wqe, p, frame);
}

/*
 * A READ WQE is sent as requests of a fixed number of packets, which bounds the responses in
 * flight. The bounds are multiples from the WQE's start: a request repeated from its middle stays
 * inside the first one.
 */
static u32 requester_read_packets(const struct engine *e, const struct send_wqe *wqe, u32 k)
{
	u32 chunk = requester_read_chunk(e);

	return min_u32(wqe->num_psn, (k / chunk + 1) * chunk) - k;
}

u32 requester_rebuild(struct engine *e, struct qp *qp, u32 psn, u32 end, u8 *frame, u32 *next,
		      u64 now_ns)
{
	const struct send_wqe *wqe = requester_wqe(qp, psn);
	u32 n = 1, k, len;
	struct packet p;

	if (!wqe)
		return 0;
	packet_from(&p, qp, psn);
	p.ackreq = true;
	k = (u32)psn_diff(psn, wqe->first_psn);
	if (wqe->opcode == WR_READ)
		n = min_u32(requester_read_packets(e, wqe, k), (u32)psn_diff(end, psn));
	/*
	 * tells a responder that holds early packets: later ones were sent before this; see
	 * recovery.c
	 */
	p.migreq = psn_diff(psn_add(psn, n), qp->req.sent_psn) >= 0;
	len = wr_is_answered(wqe->opcode) ? requester_build_answered(e, qp, wqe, k, n, &p, frame) :
					    requester_build_data(e, qp, wqe, k, &p, frame);
	*next = psn_add(psn, n);
	if (len)
		requester_count_sent(e, qp, &p, true, len, now_ns);
	return len;
}

/* ---- the cursor's next packet ---- */

/*
 * The message under the cursor ends. Returns whether another directly follows that can request the
 * ACK of both. A message that might wait does not count: the ACK would wait too.
 */
static bool requester_another_follows(const struct qp *qp)
{
	u32 index = qp->req.tx + 1;
	const struct send_wqe *wqe = sq_at(&qp->sq, index);

	return index != sq_prod(&qp->sq) && qp_state(qp) == QPS_RTS && !qp->rate_limited &&
	       !(wqe->flags & WR_FENCE) && !wr_is_local(wqe->opcode) &&
	       !wr_is_answered(wqe->opcode) && credit_covers(qp, wqe, index);
}

/* Returns whether the packet under the cursor begins a message that takes a receive WQE. */
static bool requester_takes_receive(const struct qp *qp, const struct send_wqe *wqe)
{
	return qp->req.tx_packet == 0 && wqe->opcode != WR_WRITE;
}

/* UC: credit_output() for the packet under the cursor. */
static bool requester_unreliable_allowed(struct engine *e, struct qp *qp,
					 const struct send_wqe *wqe, u8 *frame, u32 *len,
					 u64 now_ns)
{
	const struct credit_to to = { .path = &qp->path,
				      .dest_qpn = qp->dest_qpn,
				      .takes_receive = requester_takes_receive(qp, wqe) };

	return credit_output(e, qp, &to, frame, len, now_ns);
}

/* Writes the next packet, if one may be sent now. Returns its length, or 0. */
static u32 requester_next(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns)
{
	struct requester *req = &qp->req;
	bool reliable = is_reliable(qp);
	struct packet p;
	struct send_wqe *wqe;
	u32 window, n = 1, len;
	bool again, last, pauses;

	if (!requests_go_on(qp_state(qp)) || req->rnr_wait || !rate_allows(e, qp, now_ns))
		return 0;
	if (req->recovery.hole) {
		len = recovery_output(e, qp, frame, now_ns);
		if (len)
			return len;
	}
	if (req->recovery.waiting)
		return 0;
	wqe = requester_current_wqe(e, qp, now_ns);
	if (!wqe)
		return 0;

	packet_from(&p, qp, req->next_psn);
	window = congestion_window(e, req);
	if (wqe->opcode == WR_READ)
		n = requester_read_packets(e, wqe, req->tx_packet);
	if (unlikely(req->loss & LOSS_PROBED))
		window = n = 1;
	if (reliable && requester_in_flight(req) && requester_in_flight(req) + n > window)
		return 0;
	if (wr_is_answered(wqe->opcode)) {
		if (req->rd_atomic_out >= req->max_rd_atomic)
			return 0;
		req->rd_atomic_last[(req->rd_atomic_head + req->rd_atomic_out++) &
				    req->rd_atomic_mask] = psn_add(req->next_psn, n - 1);
		p.ackreq = true;
		req->since_ackreq = 0;
		len = requester_build_answered(e, qp, wqe, req->tx_packet, n, &p, frame);
	} else {
		if (!reliable && !requester_unreliable_allowed(e, qp, wqe, frame, &len, now_ns))
			return len;
		/*
		 * AckReq at the end of a message that no other directly follows, periodically
		 * within long ones, before the window closes, and before a wait for the QP's rate
		 */
		pauses = unlikely(qp->rate_limited) && rate_pauses(qp, now_ns);
		last = req->tx_packet + 1 == wqe->num_psn && !requester_another_follows(qp);
		p.ackreq = reliable && (last || req->since_ackreq + 1 >= e->window / 4 ||
					requester_in_flight(req) + 1 >= window || pauses);
		len = requester_build_data(e, qp, wqe, req->tx_packet, &p, frame);
		if (!len) {
			requester_fail_in_order(e, qp, CQE_LOC_PROT_ERR,
						list_error(e, qp->pd, wqe->sge, wqe->num_sge, 0),
						now_ns);
			return 0;
		}
		req->since_ackreq = p.ackreq ? 0 : req->since_ackreq + 1;
	}
	again = psn_diff(req->next_psn, req->sent_psn) < 0;
	if (!reliable)
		credit_sent(qp->credit, requester_takes_receive(qp, wqe));
	requester_advance(qp, wqe, n);
	requester_count_sent(e, qp, &p, again, len, now_ns);
	if (req->tx == sq_prod(&qp->sq))
		qp->ready &= (u8)~READY_REQUESTS;
	if (!reliable) {
		req->unacked_psn = req->next_psn;
		if (req->tx_packet == 0) {
			sq_complete(e, qp, CQE_SUCCESS, VERR_NONE, now_ns);
			completer_check_drained(e, qp);
		}
	}
	return len;
}

/*
 * Returns whether packets left without AckReq, as a later one was to request their ACK, and nothing
 * else will. An outstanding READ or atomic makes the queue ready again by its response: the debt
 * stays until only SENDs and WRITEs are outstanding, as only an ACK of these covers later ones.
 */
static bool requester_owes_ackreq(const struct qp *qp)
{
	const struct requester *req = &qp->req;

	return req->since_ackreq && !req->rd_atomic_out && is_reliable(qp) &&
	       requester_in_flight(req) && requests_go_on(qp_state(qp)) && !req->rnr_wait &&
	       !req->recovery.waiting;
}

u32 requester_output(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns)
{
	const u32 len = requester_next(e, qp, frame, now_ns);

	/* the later packet cannot be sent now, or fails; a wait for the rate ends by itself */
	if (len || likely(!requester_owes_ackreq(qp)) || !rate_allows(e, qp, now_ns))
		return len;
	qp->req.since_ackreq = 0;
	recovery_probe(e, qp);
	return requester_next(e, qp, frame, now_ns);
}

/*
 * The PSN from which on a response completes a visible WQE in the send CQ. XDP wakes the CQ's
 * reader only for such a response. The engine publishes the PSN in xroce_expect, for QPs whose send
 * CQ has a completion channel.
 *
 *   engine                                       XDP
 *   store the PSN of the first WQE that a response arrives, the send CQ is armed: load the PSN;
 *   completes visibly, then send it not before it: take the arm word, wake
 *
 * A PSN that is too old, because the engine has not seen an ACK yet, causes at most a useless wake.
 * Errors after a repeated NAK are not predicted: the thread that runs the engine reports them.
 */

static bool is_visible(const struct qp *qp, const struct send_wqe *wqe)
{
	return (wqe->flags & WR_SIGNALED || qp->sq_sig_all) && !(wqe->flags & WR_RENDEZVOUS);
}

/* Publishes that the WQE with this index completes visibly when psn is acknowledged. */
static void expect_publish(struct qp *qp, u32 index, u32 psn)
{
	qp->expect_set = true;
	qp->expect_index = index;
	/*
	 * release: pairs with the load in wake_visible_ends() (bpf/wake.h). The response was sent
	 * after the request, so XDP sees this or a later PSN
	 */
	atomic_store_explicit(shared_word(&qp->expect->psn), psn | XROCE_EXPECTED,
			      memory_order_release);
}

static bool expect_publish_if_visible(struct qp *qp, u32 index)
{
	const struct send_wqe *wqe = sq_at(&qp->sq, index);

	if (!is_visible(qp, wqe))
		return false;
	/* local WQEs take no PSN: they complete with the WQE before them */
	expect_publish(qp, index, psn_add(wqe->first_psn, wqe->num_psn - 1));
	return true;
}

void expect_none(struct qp *qp)
{
	qp->expect_set = false;
	if (qp->expect)
		/* release: as in expect_publish() */
		atomic_store_explicit(shared_word(&qp->expect->psn), 0, memory_order_release);
}

void expect_assigned(struct qp *qp)
{
	if (!qp->expect_set)
		expect_publish_if_visible(qp, qp->req.assigned - 1);
}

/*
 * Each WQE is checked once: no search while one is published; if none is, the next one assigned
 * will be published.
 */
void expect_completed(struct qp *qp)
{
	if (!qp->expect_set || (s32)(qp->expect_index - sq_cons(&qp->sq)) >= 0)
		return;
	for (u32 index = sq_cons(&qp->sq); index != qp->req.assigned; index++)
		if (expect_publish_if_visible(qp, index))
			return;
	expect_none(qp);
}

void expect_failure(struct qp *qp)
{
	if (!qp->expect_set)
		expect_publish(qp, qp->req.tx - 1, psn_add(qp->req.next_psn, ROCE_PSN_MASK));
}
