/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * UD, both ways: one packet per message, without acknowledgement. A receive buffer starts with a
 * 40-byte GRH: an IPv6 header as received, or 20 zeros and the IPv4 header in bytes 20 to 39.
 */
#include <stdlib.h>

#include "congestion.h"
#include "credit.h"
#include "internal.h"
#include "requester.h"
#include "responder.h"
#include "stat.h"

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
 * Fails a held receive that cannot take the datagram. As on adapters it completes in error (Local
 * Length Error if it is too short), and an error in the receive queue moves the QP to ERR, on every
 * service.
 */
static void datagram_fail_receive(struct engine *e, struct qp *qp, const struct packet *p,
				  const struct xroce_rx_cqe *hint, enum cqe_status status,
				  enum vendor_err verr, u64 now_ns)
{
	struct cqe cqe = { .status = status, .opcode = CQE_RECV, .vendor_err = verr };

	stat_receive_error(e, status);
	stat_error(e, qp, status, (enum xroce_reason)verr);
	responder_complete(e, qp, p, hint, &cqe, now_ns);
	/* ibv_get_async_event(3) has an event for a work queue */
	engine_qp_error(e, qp, qp->is_wq ? EVENT_QP_FATAL : 0);
}

/* The offset places the payload after the GRH in the buffer. */
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
	struct credit_to to;
	u8 *payload;
	u32 len;

	if (state != QPS_RTS || req->tx == sq_prod(&qp->sq) || !rate_allows(e, qp, now_ns))
		return 0;
	wqe = sq_at(&qp->sq, req->tx);
	if (wqe->opcode == WR_REFUSED) {
		qp_send_error(e, qp, (enum cqe_status)wqe->refused_as, VERR_REQUEST, now_ns);
		return 0;
	}
	if (wqe->length > qp->path_mtu) {
		qp_send_error(e, qp, CQE_LOC_LEN_ERR, VERR_TOO_LONG, now_ns);
		return 0;
	}
	/* a Q_Key with its top bit set means the QP's own */
	to = (struct credit_to){ .path = &wqe->ud.path,
				 .dest_qpn = wqe->ud.remote_qpn,
				 .takes_receive = true,
				 .qkey = wqe->ud.remote_qkey & 0x80000000u ?
						 qp->qkey :
						 wqe->ud.remote_qkey };
	if (!credit_output(e, qp, &to, frame, &len, now_ns))
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
	credit_sent(qp->credit, true);
	sq_complete(e, qp, CQE_SUCCESS, VERR_NONE, now_ns);
	len = packet_seal(frame, payload, p.payload_len);
	if (unlikely(qp->rate_limited))
		rate_sent(e, qp, len, now_ns);
	return len;
}

/* ---- groups ---- */

/* ---- the table ---- */

/* Returns the link to a group, or where it would be. */
static struct group **group_place(struct engine_tables *t, const struct gid *address)
{
	struct group **p = &t->group[gid_hash_group(address) % GROUP_BUCKETS];

	while (*p && !gid_equal(&(*p)->address, address))
		p = &(*p)->next;
	return p;
}

static struct group *group_find(const struct engine *e, const struct gid *address)
{
	return *group_place(e->tables, address);
}

/* Returns the QP's index among the members, or their number if it is not one. */
static u32 group_index(const struct group *g, const struct qp *qp)
{
	u32 i = 0;

	while (i < g->num && g->member[i] != qp)
		i++;
	return i;
}

static struct group *group_found(struct engine_tables *t, struct group **place,
				 const struct gid *address)
{
	struct group *g = t->num_groups < GROUP_MAX ? calloc(1, sizeof(*g)) : NULL;

	if (!g)
		return NULL;
	g->address = *address;
	t->num_groups++;
	return *place = g;
}

/* Removes the member at index i. Returns true if it was the last and the group was freed. */
static bool group_drop(struct engine_tables *t, struct group **place, u32 i)
{
	struct group *g = *place;

	g->member[i]->groups--;
	g->member[i] = g->member[--g->num];
	if (g->num)
		return false;
	*place = g->next;
	t->num_groups--;
	free(g);
	return true;
}

int group_attach(struct engine *e, struct qp *qp, const struct gid *address, u64 now_ns)
{
	struct engine_tables *t = e->tables;
	struct group **place, *g;

	if (qp->transport != XROCE_UD || !group_is_address(address))
		return -EINVAL;
	place = group_place(t, address);
	g = *place ? *place : group_found(t, place, address);
	if (!g)
		return -ENOMEM;
	if (group_index(g, qp) < g->num)
		return 0;
	if (g->num == GROUP_MEMBERS_MAX)
		return -ENOMEM;
	g->member[g->num++] = qp;
	qp->groups++;
	engine_move_qp(t->engine[0], qp, now_ns);
	return 0;
}

int group_detach(struct engine *e, struct qp *qp, const struct gid *address)
{
	struct group **place = group_place(e->tables, address);
	const u32 i = *place ? group_index(*place, qp) : 0;

	if (!*place || i == (*place)->num)
		return -EINVAL;
	group_drop(e->tables, place, i);
	return 0;
}

void group_detach_all(struct engine *e, struct qp *qp)
{
	for (u32 b = 0; qp->groups && b < GROUP_BUCKETS; b++)
		for (struct group **p = &e->tables->group[b]; *p;) {
			const u32 i = group_index(*p, qp);

			if (i == (*p)->num || !group_drop(e->tables, p, i))
				p = &(*p)->next;
		}
}

u32 group_members(const struct engine *e, const struct gid *address)
{
	const struct group *g = group_find(e, address);

	return g ? g->num : 0;
}

bool group_any(const struct engine *e)
{
	return e->tables->num_groups;
}

bool group_takes_frame(const struct engine *e, const struct rx_frame *frame)
{
	struct packet p;

	return group_any(e) && packet_parse(&p, frame) == XROCE_DROP_none &&
	       p.dest_qpn == ROCE_MULTICAST_QPN && group_find(e, &p.dst);
}

/* ---- a packet ---- */

/* Delivers a copy to each member; a member may refuse it. */
static enum xroce_drop group_deliver(struct engine *e, const struct group *g,
				     const struct packet *p, const struct rx_frame *frame,
				     const struct xroce_rx_cqe *hint, u64 now_ns)
{
	struct copies copies = { .refused = XROCE_DROP_none };
	enum xroce_drop drop;

	for (u32 i = 0; i < g->num; i++) {
		struct qp *qp = g->member[i];

		drop = engine_check_copy(qp, p);
		stat_input(qp, frame->len + frame->frag_len);
		if (drop == XROCE_DROP_none)
			drop = datagram_input(e, qp, p, hint, now_ns);
		if (drop != XROCE_DROP_none)
			stat_drop_of(qp, drop);
		copies_count(e, &copies, drop);
	}
	return copies_end(e, &copies);
}

enum xroce_drop group_input(struct engine *e, const struct packet *p,
			    const struct rx_frame *frame, const struct xroce_rx_cqe *hint,
			    u64 now_ns)
{
	const struct group *g =
		p->dest_qpn == ROCE_MULTICAST_QPN ? group_find(e, &p->dst) : NULL;

	if (!g)
		return XROCE_DROP_qp_unknown;
	if (e->number)
		return XROCE_DROP_not_handed;
	if (OPCODE_TRANSPORT(p->opcode) != XROCE_UD)
		return XROCE_DROP_qp_transport;
	return engine_icrc_ok(e, p, packet_icrc_difference(p)) ?
		       group_deliver(e, g, p, frame, hint, now_ns) :
		       XROCE_DROP_icrc;
}
