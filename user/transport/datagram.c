/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * UD, both ways: one packet a message, nothing acknowledged. A receive buffer starts with 40 bytes
 * of GRH: an IPv6 header as it came, an IPv4 header in bytes 20 to 39 behind 20 zeroes.
 */
#include "internal.h"

static void datagram_write_grh(const struct packet *p, u8 grh[ROCE_GRH_BYTES])
{
	if (p->is_ipv6) {
		memcpy(grh, p->ip, ROCE_GRH_BYTES);
		return;
	}
	memset(grh, 0, 20);
	memcpy(grh + 20, p->ip, 20);
}

/*
 * The receive that is held cannot take the datagram. As on adapters it completes in error (Local
 * Length Error where it is too short), and a receive queue's completion in error takes the QP to
 * ERR, on every service.
 */
static void datagram_fail_receive(struct engine *e, struct qp *qp, const struct packet *p,
				  const struct xroce_rx_cqe *hint, enum cqe_status status,
				  enum vendor_err verr, u64 now_ns)
{
	struct cqe cqe = { .status = status, .opcode = CQE_RECV, .vendor_err = verr };

	stat_receive_error(e, status);
	stat_error(e, qp, status, (enum xroce_reason)verr);
	responder_complete(e, qp, p, hint, &cqe, now_ns);
	/* of a work queue ibv_get_async_event(3) has an event for that */
	engine_qp_error(e, qp, qp->is_wq ? EVENT_QP_FATAL : 0);
}

/*
 * The payload lies behind the GRH in the buffer, which responder_scatter() is told by the offset.
 */
enum xroce_drop datagram_receive(struct engine *e, struct qp *qp, const struct packet *p,
				 const struct xroce_rx_cqe *hint, const u8 *grh, struct cqe *cqe,
				 u64 now_ns)
{
	const u32 before = grh ? ROCE_GRH_BYTES : 0;
	const struct guard_bytes header = { .at = grh, .len = before };
	struct recv_work *recv = &qp->resp.recv;

	if (!engine_take_receive(e, qp))
		return XROCE_DROP_no_receive;
	if (cqe->byte_len > recv->length) {
		datagram_fail_receive(e, qp, p, hint, CQE_LOC_LEN_ERR, VERR_RECV_TOO_SHORT, now_ns);
		return XROCE_DROP_receive_short;
	}
	if ((grh && !sge_scatter(e->mrs, recv->pd, recv->sge, recv->num_sge, 0, &header, before)) ||
	    !responder_scatter(e, qp, p, 0, before)) {
		datagram_fail_receive(
			e, qp, p, hint, CQE_LOC_PROT_ERR,
			list_error(e, recv->pd, recv->sge, recv->num_sge, MR_LOCAL_WRITE), now_ns);
		return XROCE_DROP_none;
	}
	responder_complete(e, qp, p, hint, cqe, now_ns);
	return XROCE_DROP_none;
}

enum xroce_drop datagram_input(struct engine *e, struct qp *qp, const struct packet *p,
			       const struct xroce_rx_cqe *hint, u64 now_ns)
{
	u8 grh[ROCE_GRH_BYTES];
	struct cqe cqe = {
		.opcode = CQE_RECV,
		.byte_len = ROCE_GRH_BYTES + p->payload_len,
		.src_qpn = p->src_qpn,
		.imm = p->flags & OP_IMM ? p->imm : 0,
		.flags = CQE_GRH | (p->flags & OP_IMM ? CQE_WITH_IMM : 0),
		.sl = p->is_ipv6 ? CQE_SL_IPV6 : CQE_SL_IPV4,
	};

	if (p->payload_len > qp->path_mtu)
		return XROCE_DROP_length;
	datagram_write_grh(p, grh);
	return datagram_receive(e, qp, p, hint, grh, &cqe, now_ns);
}

u32 datagram_output(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns)
{
	struct requester *req = &qp->req;
	enum qp_state state = qp_state(qp);
	struct packet p;
	const struct send_wqe *wqe;
	struct flow_to to;
	u8 *payload;
	u32 len;

	if (state != QPS_RTS || req->tx == sq_prod(&qp->sq) || !rate_allows(e, qp, now_ns))
		return 0;
	wqe = sq_at(&qp->sq, req->tx);
	if (wqe->opcode == WR_REFUSED) {
		qp_send_error(e, qp, (enum cqe_status)wqe->refused_as, refusal_verr(wqe), now_ns);
		return 0;
	}
	if (wqe->length > qp->path_mtu) {
		qp_send_error(e, qp, CQE_LOC_LEN_ERR, VERR_TOO_LONG, now_ns);
		return 0;
	}
	/* a Q_Key with its top bit set means the QP's own */
	to = (struct flow_to){ .path = &wqe->ud.path,
			       .dest_qpn = wqe->ud.remote_qpn,
			       .takes_receive = true,
			       .qkey = wqe->ud.remote_qkey & 0x80000000u ? qp->qkey
									 : wqe->ud.remote_qkey };
	if (!flow_output(e, qp, &to, frame, &len, now_ns))
		return len;
	packet_from(&p, qp, req->next_psn);
	p.src_qpn = qp->qpn;
	p.opcode = OPCODE(XROCE_UD,
			  wqe->opcode == WR_SEND_WITH_IMM ? OP5_SEND_ONLY_IMM : OP5_SEND_ONLY);
	p.solicited = wqe->flags & WR_SOLICITED;
	p.dest_qpn = wqe->ud.remote_qpn;
	p.qkey = to.qkey;
	p.imm = wqe->imm;
	p.payload_len = wqe->length;
	payload = packet_put_headers(frame, &wqe->ud.path, &p);
	if (wqe->flags & WR_INLINE) {
		memcpy(payload, wqe->data, wqe->length);
	} else if (!sge_gather(e->mrs, qp->pd, wqe->sge, wqe->num_sge, 0, payload, wqe->length)) {
		qp_send_error(e, qp, CQE_LOC_PROT_ERR,
			      list_error(e, qp->pd, wqe->sge, wqe->num_sge, 0), now_ns);
		return 0;
	}
	req->next_psn = req->unacked_psn = req->sent_psn = psn_add(req->next_psn, 1);
	req->tx = ++req->assigned;
	flow_sent(qp, true);
	sq_complete(e, qp, CQE_SUCCESS, VERR_NONE, now_ns);
	len = packet_seal(frame, payload, p.payload_len);
	if (unlikely(qp->rate_limited))
		rate_sent(e, qp, len, now_ns);
	return len;
}
