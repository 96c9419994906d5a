/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Redirects single frames of a client without an skb and without the kernel's routing, if they are
 * plainly permitted and have the form that our own sender gives them. All others go on to
 * xroce_egress, which checks them on the same device, and counts refused ones. The client can no
 * longer write to the frame, which is in the kernel's memory.
 */
#ifndef BPF_SINGLE_H
#define BPF_SINGLE_H

#include "egress.h"

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} xroce_out SEC(".maps");

static __always_inline bool single_is_mac(const __u8 *a, const __u8 *b)
{
	const __u16 *x = (const void *)a, *y = (const void *)b;

	return x[0] == y[0] && x[1] == y[1] && x[2] == y[2];
}

/* Returns whether the frame is from the interface's MAC to a unicast MAC, without XROCE_ROUTED. */
static __always_inline bool single_is_addressed(struct xdp_md *ctx, const struct xroce_wire *wire)
{
	const struct ethhdr *eth = (void *)(long)ctx->data;

	return (void *)(eth + 1) <= (void *)(long)ctx->data_end && !(eth->h_dest[0] & 1) &&
	       single_is_mac(eth->h_source, wire->mac) &&
	       !(eth->h_source[0] & XROCE_ROUTED);
}

/* Returns whether the frame is a single plain packet, to any receiver: no fault, tag, padding. */
static __always_inline bool single_parse(struct xdp_md *ctx, struct packet *p)
{
	enum xroce_drop fault = XROCE_DROP_none;

	return parse_ip(ctx, p, &fault) && fault == XROCE_DROP_none &&
	       parse_roce(ctx, p) == XROCE_DROP_none && p->flags & OP_VALID &&
	       p->l3 == sizeof(struct ethhdr) && p->ip_end == p->frame_len && p->segments == 1;
}

/* Returns whether the packet is from the interface's address to a unicast one elsewhere. */
static __always_inline bool single_leaves(const struct packet *p)
{
	return bpf_map_lookup_elem(&xroce_gid, &p->src) && !egress_is_multicast(p) &&
	       !egress_is_of_no_wire(p) && !bpf_map_lookup_elem(&xroce_gid, &p->dst) &&
	       !bpf_map_lookup_elem(&xroce_neighbour, &p->dst);
}

/* As egress_check_packets(), but refuses everything from QP 1: xroce_egress judges MADs. */
static __always_inline bool single_is_allowed(const struct packet *p, const struct xroce_tap *tap)
{
	const struct xroce_owner *owner;

	if (p->qpn == XROCE_CM_QPN && !tap->privileged)
		return false;
	if (!egress_has_pkey(p->pkey))
		return false;
	if (!(p->flags & OP_DETH))
		return true;
	if (p->qkey & QKEY_PRIVILEGED && !tap->privileged)
		return false;
	owner = bpf_map_lookup_elem(&xroce_owner, &p->src_qpn);
	return owner && owner->client == tap->client;
}

#endif
