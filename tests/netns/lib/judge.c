/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See judge.h. The rules are from ibv_poll_cq(3): the valid fields of each opcode, and their
 * values.
 */
#include "judge.h"

#include <string.h>

#include "ctl.h"

static uint8_t *take_grh(uint8_t grh[PLAN_GRH], const uint8_t *slot, const struct message *m)
{
	uint32_t got = 0, i;
	unsigned int k;

	for (k = 0; k < m->num_recv; k++)
		for (i = 0; i < m->recv[k].len && got < PLAN_GRH; i++)
			grh[got++] = slot[m->recv[k].offset + i];
	return grh;
}

static void judge_send(struct side *s, const struct ibv_cq *cq, const struct ibv_wc *wc)
{
	static const enum ibv_wc_opcode opcodes[PLAN_OPS] = { IBV_WC_SEND, IBV_WC_SEND,
							      IBV_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE,
							      IBV_WC_RDMA_READ };
	const struct message *m;

	/* Requests complete in order; unsignaled ones leave no trace. */
	while (s->next_send < s->num_mine && !s->mine[s->next_send].is_signaled)
		s->next_send++;
	must(s->next_send < s->num_mine, "round %u: a send completion too many, wr_id %#llx",
	     s->round, (unsigned long long)wc->wr_id);
	m = &s->mine[s->next_send];
	must(cq == s->send_cq, "round %u: a send completion on the receive CQ", s->round);
	must(wc->status == IBV_WC_SUCCESS, "round %u, %s %u of %u bytes: %s, vendor_err %#x",
	     s->round, op_names[m->op], s->next_send, m->len, ibv_wc_status_str(wc->status),
	     wc->vendor_err);
	must(wc->wr_id == send_id(s->round, s->next_send),
	     "round %u: send wr_id %#llx where %#llx was due", s->round,
	     (unsigned long long)wc->wr_id, (unsigned long long)send_id(s->round, s->next_send));
	must(wc->opcode == opcodes[m->op], "round %u, %s: opcode %d", s->round, op_names[m->op],
	     wc->opcode);
	if (m->op == PLAN_READ)
		must(wc->byte_len == m->len, "round %u, READ of %u bytes: byte_len %u", s->round,
		     m->len, wc->byte_len);
	s->next_send++;
}

/* A UD receive carries the sender's address: an address handle made of it must lead to the
 * sender. */
static void judge_reply(struct side *s, const struct ibv_wc *wc, unsigned int i)
{
	uint8_t grh[PLAN_GRH];
	struct ibv_ah_attr attr;

	take_grh(grh, s->rx + (size_t)i * SLOT_BYTES, &s->theirs[i]);
	memset(&attr, 0, sizeof(attr));
	must(ibv_init_ah_from_wc(s->ctx, 1, (struct ibv_wc *)wc, (struct ibv_grh *)grh, &attr) == 0,
	     "ibv_init_ah_from_wc fails");
	must(attr.is_global && memcmp(&attr.grh.dgid, &s->peer.gid, sizeof(s->peer.gid)) == 0,
	     "ibv_init_ah_from_wc: not the sender's GID");
	must(attr.grh.sgid_index == s->gid_index,
	     "ibv_init_ah_from_wc: GID index %d where %d is ours", attr.grh.sgid_index,
	     s->gid_index);
}

static void judge_recv(struct side *s, const struct ibv_cq *cq, const struct ibv_wc *wc)
{
	const struct message *m;
	unsigned int i;
	bool is_ud = s->plan->transport == PLAN_UD;
	bool is_write;

	while (s->next_recv < s->num_theirs && !op_takes_receive(s->theirs[s->next_recv].op))
		s->next_recv++;
	i = s->next_recv;
	must(i < s->num_theirs, "round %u: a receive completion too many, wr_id %#llx", s->round,
	     (unsigned long long)wc->wr_id);
	m = &s->theirs[i];
	is_write = m->op == PLAN_WRITE_IMM;
	must(cq == s->recv_cq, "round %u: a receive completion on the send CQ", s->round);
	must(wc->status == IBV_WC_SUCCESS,
	     "round %u, receive %u of %s of %u bytes: %s, vendor_err %#x", s->round, i,
	     op_names[m->op], m->len, ibv_wc_status_str(wc->status), wc->vendor_err);
	must(wc->wr_id == recv_id(s->round, i), "round %u: receive wr_id %#llx where %#llx was due",
	     s->round, (unsigned long long)wc->wr_id, (unsigned long long)recv_id(s->round, i));
	must(wc->opcode == (is_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV),
	     "round %u, receive of %s: opcode %d", s->round, op_names[m->op], wc->opcode);
	must(wc->byte_len == m->len + (is_ud ? PLAN_GRH : 0),
	     "round %u, receive of %s of %u bytes: byte_len %u", s->round, op_names[m->op], m->len,
	     wc->byte_len);
	must(!!(wc->wc_flags & IBV_WC_WITH_IMM) == op_has_imm(m->op),
	     "round %u, receive of %s: wc_flags %#x", s->round, op_names[m->op], wc->wc_flags);
	must(!(wc->wc_flags & IBV_WC_WITH_INV), "round %u, receive of %s: wc_flags %#x", s->round,
	     op_names[m->op], wc->wc_flags);
	if (op_has_imm(m->op))
		must(wc->imm_data == m->imm,
		     "round %u, receive of %s: immediate %#x where %#x was sent", s->round,
		     op_names[m->op], wc->imm_data, m->imm);
	if (is_ud) {
		must(wc->src_qp == s->peer.qpn, "round %u: src_qp %#x where %#x sent", s->round,
		     wc->src_qp, s->peer.qpn);
		must(wc->wc_flags & IBV_WC_GRH, "round %u: a UD receive without IBV_WC_GRH",
		     s->round);
		judge_reply(s, wc, i);
	}
	s->next_recv++;
}

void judge(struct side *s, const struct ibv_cq *cq, const struct ibv_wc *wc)
{
	must(wc->qp_num == s->qp->qp_num, "round %u: qp_num %#x on QP %#x", s->round, wc->qp_num,
	     s->qp->qp_num);
	/*
	 * The opcode is valid only for successful completions: an error is identified by its wr_id.
	 */
	if (wc->wr_id >> 48 == recv_id(0, 0) >> 48)
		judge_recv(s, cq, wc);
	else
		judge_send(s, cq, wc);
}

/*
 * IPv4: the IP header is in bytes 20..39. IPv6: it is the 40 bytes. Fields that the network may
 * change are not looked at.
 */
void judge_grh(const struct side *s, const uint8_t *slot, const struct message *m)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	uint8_t grh[PLAN_GRH];

	take_grh(grh, slot, m);
	if (memcmp(s->own.gid.raw, mapped, sizeof(mapped)) == 0) {
		must(grh[20] == 0x45 && grh[29] == 17,
		     "GRH of IPv4: version and length %#x, protocol %u", grh[20], grh[29]);
		must(memcmp(grh + 32, s->peer.gid.raw + 12, 4) == 0,
		     "GRH of IPv4: not the sender's address");
		must(memcmp(grh + 36, s->own.gid.raw + 12, 4) == 0,
		     "GRH of IPv4: not the receiver's address");
	} else {
		must(grh[0] >> 4 == 6, "GRH of IPv6: version %u", grh[0] >> 4);
		must(memcmp(grh + 8, s->peer.gid.raw, 16) == 0,
		     "GRH of IPv6: not the sender's address");
		must(memcmp(grh + 24, s->own.gid.raw, 16) == 0,
		     "GRH of IPv6: not the receiver's address");
	}
}
