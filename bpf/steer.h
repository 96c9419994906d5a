/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Checks whether a packet is for this device and may go to its QP: destination address, then the
 * QP's attributes. Reads xroce_qp, xroce_gid and the engine's first GID, writes nothing.
 */
#ifndef BPF_STEER_H
#define BPF_STEER_H

#include "maps_device.h"
#include "parse.h"

/* gid points into a map value or to a parsed address: both are aligned to 8. */
static __always_inline bool steer_address_is(const union address *a, const __u8 *gid)
{
	const __u64 *half = (const __u64 *)gid;

	return a->half[0] == half[0] && a->half[1] == half[1];
}

/*
 * Returns whether the packet is to the GID that most packets are to. A GID of all zeroes never
 * matches: no packet of ours has that destination.
 */
static __always_inline bool steer_is_to_first_gid(const struct packet *p)
{
	__u32 zero = 0;
	const struct xroce_engine *engine = bpf_map_lookup_elem(&xroce_engine, &zero);

	return engine && p->dst.half[1] && steer_address_is(&p->dst, engine->gid);
}

/*
 * Returns whether the packet is for this device. The common cases need no search: a packet to its
 * connected QP's address, and a datagram to the interface's first GID. All others, and faulty
 * packets whose QP was not read (qp NULL), must be to one of the interface's GIDs.
 */
static __always_inline bool steer_is_ours(const struct packet *p, const struct xroce_qp *qp)
{
	if (qp && steer_address_is(&p->dst, qp->local))
		return true;
	return steer_is_to_first_gid(p) || bpf_map_lookup_elem(&xroce_gid, &p->dst);
}

/* CNPs and flow control have no transport service. */
static __always_inline bool steer_transport_fits(const struct packet *p, const struct xroce_qp *qp)
{
	if (p->flags & OP_CNP)
		return qp->transport != XROCE_UD && qp->transport != XROCE_RAW;
	if (p->flags & OP_CREDIT)
		return qp->transport == XROCE_UC || qp->transport == XROCE_UD;
	return qp->transport == OPCODE_TRANSPORT(p->opcode);
}

/*
 * Returns XROCE_DROP_none, or the reason why this well-formed packet may not go to qp (NULL: no
 * QP). A CNP may go to any connected QP, flow control to UC and UD. A connected QP takes packets
 * only on its own path: from the peer's address to the address it was connected with.
 *
 * All packets of a super-packet have one IP header. Our sender joins only packets with the same QP
 * number, transport, P_Key and Q_Key (user/engine/gso.c). So the answer for the first holds for
 * all. The engine checks each again.
 */
static __always_inline enum xroce_drop steer_check(const struct packet *p,
						   const struct xroce_qp *qp)
{
	if (!qp)
		return XROCE_DROP_qp_unknown;
	if (!steer_transport_fits(p, qp))
		return XROCE_DROP_qp_transport;
	if (!qp->receiving)
		return XROCE_DROP_qp_state;
	if (!roce_pkey_matches(p->pkey, qp->pkey))
		return XROCE_DROP_pkey;
	if (qp->transport == XROCE_UD)
		return p->qkey == qp->qkey ? XROCE_DROP_none : XROCE_DROP_qkey;
	if (!steer_address_is(&p->src, qp->peer) || !steer_address_is(&p->dst, qp->local))
		return XROCE_DROP_peer;
	return XROCE_DROP_none;
}

#endif
