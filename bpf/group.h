/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets to multicast groups: those to QP number 0xffffff and to an address that QPs are attached
 * to. All else that has a multicast address is somebody else's.
 */
#ifndef BPF_GROUP_H
#define BPF_GROUP_H

#include "count.h"
#include "maps.h"
#include "parse.h"

/* Members have one CQE for all of them, as one QP that asks for all that it can have. */
static const struct xroce_qp group_as_qp = { .with_time = 1, .with_flow_tag = 1 };

/*
 * Is it to a group with members here? If their packets alone are shown to this program, it is to
 * one.
 */
static __attribute__((noinline)) bool group_is_ours(const struct packet *p, bool all)
{
	return p->has_bth && p->qpn == ROCE_MULTICAST_QPN &&
	       (all || bpf_map_lookup_elem(&xroce_group, &p->dst));
}

/* Counts what members are handed. */
static __attribute__((noinline)) void group_count(const struct packet *p)
{
	struct xroce_group *group = bpf_map_lookup_elem(&xroce_group, &p->dst);

	if (group)
		__sync_fetch_and_add(&group->rx_packets, p->segments);
	count_received_by_all(p);
}

/*
 * May it go to the group's members? P_Key and Q_Key are each one's own, and the engine's to look
 * at. Returns XROCE_DROP_none or the drop reason.
 */
static __always_inline enum xroce_drop group_check(const struct packet *p)
{
	return OPCODE_TRANSPORT(p->opcode) == XROCE_UD ? XROCE_DROP_none : XROCE_DROP_qp_transport;
}

#endif
