/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Multicast groups of a shared interface: the clients with members, their turns with a received
 * packet, and frames that clients send to groups.
 */
#ifndef BPF_MUX_GROUP_H
#define BPF_MUX_GROUP_H

#include "egress.h"
#include "maps_broker.h"
#include "turn.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, XROCE_MAX_MEMBERS);
	__type(key, struct xroce_gid_key);
	__type(value, struct xroce_members);
} xroce_members SEC(".maps");

/*
 * Looks up a packet with a correct IP header that is to none of the interface's addresses. Returns
 * true if clients have members of its group; turn_pass() must follow.
 */
static __always_inline bool mux_group_find(struct xdp_md *ctx, const struct packet *p)
{
	const struct bth *bth = (void *)(p->udp + 1);
	const struct xroce_members *members;
	struct xroce_turn *turn = turn_note();

	if ((void *)(bth + 1) > (void *)(long)ctx->data_end ||
	    (load_be32(&bth->ecn_qpn) & ROCE_QPN_MASK) != ROCE_MULTICAST_QPN)
		return false;
	members = bpf_map_lookup_elem(&xroce_members, &p->dst);
	if (!members || !turn)
		return false;
	turn->to = *members;
	turn->next = 0;
	return true;
}

/*
 * Returns whether a client may send a frame with a multicast or broadcast address: only a datagram
 * to all members of a group, and no super-packet, as several engines would have to take it.
 */
static __always_inline bool mux_group_may_send(struct __sk_buff *skb, const struct packet *p)
{
	struct bth bth;

	if (!(p->rx_flags & XROCE_RX_IPV6) && (p->dst.gid[12] & 0xf0) != IPV4_MULTICAST)
		return false;
	return p->segments == 1 && !skb->gso_size &&
	       !bpf_skb_load_bytes(skb, p->l4 + sizeof(struct udphdr), &bth, sizeof(bth)) &&
	       OPCODE_TRANSPORT(bth.opcode) == XROCE_UD &&
	       (load_be32(&bth.ecn_qpn) & ROCE_QPN_MASK) == ROCE_MULTICAST_QPN;
}

/*
 * Sends a frame to a group: through the hairpin to members here, the sender's included, and to the
 * wire unless the interface is lo. On the wire the kernel writes the group's MAC, but only for
 * frames whose current address is not a group's. Returns the verdict.
 */
static __always_inline int mux_group_send(struct __sk_buff *skb, const struct packet *p,
					  const struct xroce_wire *wire, struct xroce_tap *tap)
{
	struct bpf_redir_neigh hop = { .nh_family = FAMILY_IPV4 };
	__u8 mac[ETH_ALEN];

	__builtin_memcpy(mac, wire->mac, sizeof(mac));
	if (bpf_skb_store_bytes(skb, 0, mac, sizeof(mac), 0))
		return TC_ACT_SHOT;
	__sync_fetch_and_add(&tap->bytes, skb->len);
	__sync_fetch_and_add(&tap->frames, 1);
	if (bpf_map_lookup_elem(&xroce_members, &p->dst)) {
		__sync_fetch_and_add(&tap->hairpin, 1);
		bpf_clone_redirect(skb, wire->hairpin, BPF_F_INGRESS);
	}
	if (wire->is_loopback)
		return TC_ACT_SHOT;
	if (p->rx_flags & XROCE_RX_IPV6) {
		hop.nh_family = FAMILY_IPV6;
		__builtin_memcpy(hop.ipv6_nh, p->dst.gid, sizeof(hop.ipv6_nh));
	} else {
		hop.ipv4_nh = p->dst.word[3];
	}
	return bpf_redirect_neigh(wire->ifindex, &hop, sizeof(hop), 0);
}

#endif
