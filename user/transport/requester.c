/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The requester: send WQEs to request packets, for RC and UC.
 *
 * No packet is kept: a retransmission is built from its WQE again, so going back is moving a cursor (tx, tx_packet, next_psn). A WQE gets its
 * PSNs when the cursor first reaches it. Completing is completer.c's work, but for UC, where sending is all there is.
 */
#include "internal.h"

void requester_start(struct qp *qp, u32 sq_psn)
{
	struct requester *req = &qp->req;

	req->next_psn = req->unacked_psn = req->sent_psn = sq_psn;
	req->tx = req->assigned = sq_cons(&qp->sq);
	req->tx_packet = 0;
	req->ack_deadline_ns = NSEC_NEVER;
}

void requester_seek(struct qp *qp, u32 psn)
{
	struct requester *req = &qp->req;
	u32 index = sq_cons(&qp->sq);

	req->tx_packet = 0;
	for (; index != req->assigned; index++) {
		const struct send_wqe *wqe = sq_at(&qp->sq, index);
		s32 offset = psn_diff(psn, wqe->first_psn);

		if (offset < (s32)wqe->num_psn) {
			req->tx_packet = (u32)offset;
			break;
		}
	}
	req->tx = index;
	req->next_psn = psn;
	/* requests from psn on will be made again */
	while (req->rd_atomic_out) {
		u32 last = (req->rd_atomic_head + req->rd_atomic_out - 1) % QP_MAX_RD_ATOMIC;

		if (psn_diff(req->rd_atomic_last[last], psn) < 0)
			break;
		req->rd_atomic_out--;
	}
}

/*
 * A WQE cannot be executed for a local reason. Completions are in order, so it fails when those before it are done; until then the queue
 * waits (each acknowledgement makes the QP ready again).
 */
static void fail_in_order(struct engine *e, struct qp *qp, enum cqe_status status, enum vendor_err verr, u64 now_ns)
{
	if (qp->req.tx == sq_cons(&qp->sq))
		qp_send_error(e, qp, status, verr, now_ns);
}

/* Give the WQE under the cursor its PSNs. False if it cannot start now, or ever. */
static bool start_wqe(struct engine *e, struct qp *qp, struct send_wqe *wqe, u64 now_ns)
{
	struct requester *req = &qp->req;

	if (wqe->flags & WR_FENCE && req->rd_atomic_out)
		return false;
	if (wr_is_read_or_atomic(wqe->opcode)) {
		if (!req->max_rd_atomic) {
			fail_in_order(e, qp, CQE_LOC_QP_OP_ERR, VERR_NONE, now_ns);
			return false;
		}
		if (!sge_check(&e->mrs, qp->pd, wqe->sge, wqe->num_sge, MR_LOCAL_WRITE)) {
			fail_in_order(e, qp, CQE_LOC_PROT_ERR, VERR_LKEY, now_ns);
			return false;
		}
	}
	wqe->first_psn = req->next_psn;
	wqe->num_psn = wqe->opcode == WR_CMP_SWAP || wqe->opcode == WR_FETCH_ADD ? 1 :
										   psn_count(wqe->length, qp->path_mtu);
	req->assigned++;
	return true;
}

static u32 in_flight(const struct requester *req)
{
	return (u32)psn_diff(req->next_psn, req->unacked_psn);
}

/* Move the cursor over n PSNs that were just used. */
static void advance(struct engine *e, struct qp *qp, const struct send_wqe *wqe, u32 n, u64 now_ns)
{
	struct requester *req = &qp->req;

	if (psn_diff(req->next_psn, req->sent_psn) < 0)
		e->stats->tx_retransmitted++;
	req->next_psn = psn_add(req->next_psn, n);
	if (psn_diff(req->next_psn, req->sent_psn) > 0)
		req->sent_psn = req->next_psn;
	req->tx_packet += n;
	if (req->tx_packet == wqe->num_psn) {
		req->tx++;
		req->tx_packet = 0;
	}
	if (qp->transport == XROCE_RC && req->timeout && req->ack_deadline_ns == NSEC_NEVER) {
		req->ack_deadline_ns = now_ns + (4096ull << req->timeout);
		timer_set(e, qp, req->ack_deadline_ns);
	}
}

static u32 finish_header_only(struct engine *e, struct qp *qp, u8 *frame, const struct packet *p)
{
	u8 *payload = packet_put_headers(frame, &qp->path, p);

	return packet_seal(frame, payload, 0);
}

/*
 * A READ WQE goes out in requests of a fixed number of packets, so that the responses in flight are bounded like everything else. The bounds
 * are multiples from the WQE's start: a request that is repeated from its middle stays inside the first one.
 */
static u32 read_output(struct engine *e, struct qp *qp, const struct send_wqe *wqe, struct packet *p, u8 *frame, u64 now_ns)
{
	struct requester *req = &qp->req;
	u32 chunk = e->window >= 2 ? e->window / 2 : 1;
	u32 stop = min_u32(wqe->num_psn, (req->tx_packet / chunk + 1) * chunk);
	u32 n = stop - req->tx_packet;
	u64 offset = (u64)req->tx_packet * qp->path_mtu;

	if (req->rd_atomic_out >= req->max_rd_atomic || (in_flight(req) && in_flight(req) + n > e->window))
		return 0;
	p->opcode = OPCODE(XROCE_RC, OP5_READ_REQUEST);
	p->ackreq = true;
	p->va = wqe->remote_addr + offset;
	p->rkey = wqe->rkey;
	p->dma_len = (u32)min_u64(wqe->length - offset, (u64)n * qp->path_mtu);
	req->rd_atomic_last[(req->rd_atomic_head + req->rd_atomic_out++) % QP_MAX_RD_ATOMIC] =
		psn_add(req->next_psn, n - 1);
	advance(e, qp, wqe, n, now_ns);
	return finish_header_only(e, qp, frame, p);
}

static u32 atomic_output(struct engine *e, struct qp *qp, const struct send_wqe *wqe, struct packet *p, u8 *frame, u64 now_ns)
{
	struct requester *req = &qp->req;
	bool swap = wqe->opcode == WR_CMP_SWAP;

	if (req->rd_atomic_out >= req->max_rd_atomic || in_flight(req) >= e->window)
		return 0;
	p->opcode = OPCODE(XROCE_RC, swap ? OP5_CMP_SWAP : OP5_FETCH_ADD);
	p->ackreq = true;
	p->va = wqe->remote_addr;
	p->rkey = wqe->rkey;
	p->swap_add = swap ? wqe->swap : wqe->compare_add;
	p->compare = swap ? wqe->compare_add : 0;
	req->rd_atomic_last[(req->rd_atomic_head + req->rd_atomic_out++) % QP_MAX_RD_ATOMIC] = req->next_psn;
	advance(e, qp, wqe, 1, now_ns);
	return finish_header_only(e, qp, frame, p);
}

/* The low five bits of the opcode of a SEND's or WRITE's packet. */
static u8 data_opcode(u8 wr_opcode, bool first, bool last)
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

static u32 data_output(struct engine *e, struct qp *qp, const struct send_wqe *wqe, struct packet *p, u8 *frame, u64 now_ns)
{
	struct requester *req = &qp->req;
	bool reliable = qp->transport == XROCE_RC;
	bool first = req->tx_packet == 0;
	bool last = req->tx_packet + 1 == wqe->num_psn;
	u64 offset = (u64)req->tx_packet * qp->path_mtu;
	bool ok = true;
	u8 *payload;

	if (reliable && in_flight(req) >= e->window)
		return 0;
	p->opcode = OPCODE(qp->transport, data_opcode(wqe->opcode, first, last));
	p->payload_len = (u32)min_u64(wqe->length - offset, qp->path_mtu);
	p->solicited = last && wqe->flags & WR_SOLICITED;
	p->va = wqe->remote_addr;
	p->rkey = wqe->rkey;
	p->dma_len = wqe->length;
	p->imm = wqe->imm;
	p->inv_rkey = wqe->inv_rkey;
	/* at each message's end, now and then within long ones, and before the window closes */
	p->ackreq = reliable &&
		    (last || ++req->since_ackreq >= e->window / 4 || in_flight(req) + 1 >= e->window);
	if (p->ackreq)
		req->since_ackreq = 0;
	payload = packet_put_headers(frame, &qp->path, p);
	if (wqe->flags & WR_INLINE)
		memcpy(payload, wqe->data + offset, p->payload_len);
	else
		ok = sge_gather(&e->mrs, qp->pd, wqe->sge, wqe->num_sge, offset, payload, p->payload_len);
	if (!ok) {
		fail_in_order(e, qp, CQE_LOC_PROT_ERR, VERR_LKEY, now_ns);
		return 0;
	}
	advance(e, qp, wqe, 1, now_ns);
	if (!reliable) {
		req->unacked_psn = req->next_psn;
		if (last)
			sq_complete(e, qp, CQE_SUCCESS, VERR_NONE, now_ns);
	}
	return packet_seal(frame, payload, p->payload_len);
}

u32 requester_output(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns)
{
	struct requester *req = &qp->req;
	enum qp_state state = qp_state(qp);
	struct packet p = {
		.psn = req->next_psn,
		.dest_qpn = qp->dest_qpn,
		.pkey = qp->pkey,
		.migreq = true,
	};
	struct send_wqe *wqe;

	if ((state != QPS_RTS && state != QPS_SQD) || req->rnr_wait)
		return 0;
	/* in SQD what was begun is finished and nothing else is begun */
	if (req->tx == (state == QPS_SQD ? req->assigned : sq_prod(&qp->sq)))
		return 0;
	wqe = sq_at(&qp->sq, req->tx);
	if (req->tx == req->assigned && !start_wqe(e, qp, wqe, now_ns))
		return 0;
	if (wqe->opcode == WR_READ)
		return read_output(e, qp, wqe, &p, frame, now_ns);
	if (wr_is_read_or_atomic(wqe->opcode))
		return atomic_output(e, qp, wqe, &p, frame, now_ns);
	return data_output(e, qp, wqe, &p, frame, now_ns);
}
