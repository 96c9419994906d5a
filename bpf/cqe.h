/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writes the CQE of a packet directly before it. Writes only packet metadata. */
#ifndef BPF_CQE_H
#define BPF_CQE_H

#include "maps.h"
#include "parse.h"

/* Returns a tag that is equal for packets of one sender (address and UDP source port). */
static __always_inline __u32 cqe_flow_tag(const struct packet *p)
{
	/* 2^32 divided by the golden ratio: spreads neighbouring inputs */
	const __u32 odd = 0x9e3779b1;
	__u32 h = p->src.word[0];

	h = h * odd ^ p->src.word[1];
	h = h * odd ^ p->src.word[2];
	h = h * odd ^ p->src.word[3];
	h = (h ^ p->sport) * odd;
	return h ^ h >> 15;
}

static __always_inline void cqe_fill(struct xroce_rx_cqe *cqe, const struct packet *p,
				     const struct xroce_qp *qp)
{
	cqe->qpn = p->qpn;
	cqe->src_qpn = p->src_qpn;
	cqe->imm = p->imm;
	cqe->byte_len = p->byte_len;
	cqe->vlan_tci = p->vlan_tci;
	cqe->rx_time_ns = qp->with_time ? bpf_ktime_get_ns() : 0;
	cqe->opcode = p->opcode;
	cqe->flags = p->rx_flags;
	cqe->tos = p->tos;
	cqe->l3_offset = p->l3;
	cqe->flow_tag = qp->with_flow_tag ? cqe_flow_tag(p) : 0;
}

/*
 * Writes the CQE as metadata. Returns false if it cannot be directly before the packet, where its
 * reader expects it: the driver leaves no room for metadata, or an earlier program put its own
 * there. Invalidates all packet pointers of the caller.
 */
static __always_inline bool cqe_write(struct xdp_md *ctx, const struct packet *p,
				      const struct xroce_qp *qp)
{
	struct xroce_rx_cqe *cqe;
	void *data;

	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*cqe)))
		return false;
	/* adjust_meta moved data_meta, and possibly the packet: older pointers are invalid. */
	cqe = (void *)(long)ctx->data_meta;
	data = (void *)(long)ctx->data;
	if ((void *)(cqe + 1) > data)
		return false;
	/*
	 * Two comparisons, which the verifier understands; the barrier keeps clang from merging
	 * them into an equality, which the verifier does not.
	 */
	barrier_var(data);
	if ((void *)(cqe + 1) < data)
		return false;
	cqe_fill(cqe, p, qp);
	return true;
}

#endif
