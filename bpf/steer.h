/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whose packet is it, and may it go there: destination address, then the QP's own attributes. Reads xroce_qp and
 * xroce_gid, writes nothing.
 */
#ifndef BPF_STEER_H
#define BPF_STEER_H

#include "maps.h"
#include "parse.h"

/* gid points into a map value or to an address that parsing made: both are aligned to 8. */
static __always_inline bool address_is(const union address *a, const __u8 *gid)
{
	const __u64 *half = (const __u64 *)gid;

	return a->half[0] == half[0] && a->half[1] == half[1];
}

/*
 * True if the packet is for this device. The common case, a packet to the address that its connected QP uses, needs
 * no further lookup. All others, and faulty packets whose QP was not read (qp NULL), must be to one of the
 * interface's GIDs.
 */
static __always_inline bool steer_is_ours(const struct packet *p, const struct xroce_qp *qp)
{
	if (qp && address_is(&p->dst, qp->local))
		return true;
	return bpf_map_lookup_elem(&xroce_gid, &p->dst);
}

/*
 * May this well-formed packet go to qp (NULL: there is none)? Returns NO_FAULT or the drop reason. A CNP belongs to
 * no transport service of its own: any connected QP takes it. A connected QP takes packets only on its own path: from
 * the peer's address to the address that the QP was connected with.
 */
static __always_inline enum xroce_drop steer_check(const struct packet *p, const struct xroce_qp *qp)
{
	if (!qp)
		return XROCE_DROP_qp_unknown;
	if (p->flags & OP_CNP ? qp->transport == XROCE_UD : qp->transport != OPCODE_TRANSPORT(p->opcode))
		return XROCE_DROP_qp_transport;
	if (!qp->receiving)
		return XROCE_DROP_qp_state;
	if (!roce_pkey_matches(p->pkey, qp->pkey))
		return XROCE_DROP_pkey;
	if (qp->transport == XROCE_UD)
		return p->qkey == qp->qkey ? NO_FAULT : XROCE_DROP_qkey;
	if (!address_is(&p->src, qp->peer) || !address_is(&p->dst, qp->local))
		return XROCE_DROP_peer;
	return NO_FAULT;
}

#endif
