/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets to multicast groups: to QP number 0xffffff and an address that QPs are attached to. Other
 * packets to multicast addresses are not for this device.
 */
#ifndef BPF_GROUP_H
#define BPF_GROUP_H

#include "count.h"
#include "maps.h"
#include "parse.h"

/* All members share one CQE, with all optional fields. */
static const struct xroce_qp group_as_qp = { .with_time = 1, .with_flow_tag = 1 };

/* Returns whether the packet is to a group with members here. all: no other packet gets here. */
static __attribute__((noinline)) bool group_is_ours(const struct packet *p, bool all)
{
	return p->has_bth && p->qpn == ROCE_MULTICAST_QPN &&
	       (all || bpf_map_lookup_elem(&xroce_group, &p->dst));
}

/* Counts a packet delivered to a group. */
static __attribute__((noinline)) void group_count(const struct packet *p)
{
	struct xroce_group *group = bpf_map_lookup_elem(&xroce_group, &p->dst);

	if (group)
		__sync_fetch_and_add(&group->rx_packets, p->segments);
	count_received_by_all(p);
}

/*
 * Returns XROCE_DROP_none, or the reason why a packet must not go to the members. The engine checks
 * P_Key and Q_Key for each member.
 */
static __always_inline enum xroce_drop group_check(const struct packet *p)
{
	return OPCODE_TRANSPORT(p->opcode) == XROCE_UD ? XROCE_DROP_none : XROCE_DROP_qp_transport;
}

#endif
