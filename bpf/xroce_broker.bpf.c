/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The broker's programs on an interface that several processes share. Each client of the broker has
 * its own receiving program (xroce.bpf.c) and maps, and TAP devices to send by. These programs are
 * between the clients and the interface:
 *
 *   xroce_mux     on the interface and the hairpin: runs the program of a packet's owner
 *   xroce_tap_in  on a client's TAP device: runs xroce_egress while the broker lives
 *   xroce_egress  checks a client's frames; sends a frame to a local QP to the hairpin, all others
 *                 to the interface
 *   xroce_single  on a client's TAP device for single frames, before xroce_tap_in: redirects
 *                 permitted frames without an skb
 *   xroce_shut    drops frames that the kernel sends to these devices
 *
 * No decision depends on memory that a client can write: the maps are the broker's alone.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#include "maps_device.h"
#include "maps_broker.h"
#include "count.h"
#include "parse.h"
#include "steer.h"
#include "egress.h"
#include "single.h"
#include "mux_group.h"
#include "mux_mad.h"
#include "pair.h"
#include "trace.h"

/* ---- receiving ---- */

/* Returns the owner of the packet's QP; NULL: none, or the BTH is not in the linear part. */
static __always_inline const struct xroce_owner *mux_owner(struct xdp_md *ctx,
							   const struct packet *p)
{
	const struct bth *bth = (void *)(p->udp + 1);
	__u32 qpn;

	if ((void *)(bth + 1) > (void *)(long)ctx->data_end)
		return NULL;
	qpn = load_be32(&bth->ecn_qpn) & ROCE_QPN_MASK;
	return bpf_map_lookup_elem(&xroce_owner, &qpn);
}

/* As steer_drop() (xroce.bpf.c). */
static __always_inline int mux_drop(struct xdp_md *ctx, const struct packet *p,
				    enum xroce_drop drop)
{
	trace_dropped(ctx, p, drop);
	return count_drop(drop);
}

/* Packets to a client's QP are checked and counted by its program, all others here. */
SEC("xdp.frags")
int xroce_mux(struct xdp_md *ctx)
{
	enum xroce_drop drop = XROCE_DROP_none;
	const struct xroce_owner *owner;
	struct packet p;
	__u32 client;

	if (!parse_ip(ctx, &p, &drop))
		return XDP_PASS;
	if (!steer_is_ours(&p, NULL)) {
		if (drop != XROCE_DROP_none || !mux_group_find(ctx, &p))
			return count_pass();
		turn_pass(ctx, &xroce_client);
		/* all of these clients have just ended */
		return count_drop(XROCE_DROP_qp_unknown);
	}
	if (drop == XROCE_DROP_none) {
		owner = mux_owner(ctx, &p);
		if (owner) {
			bpf_tail_call(ctx, &xroce_client, owner->client);
			/* Its owner has just ended. Some kernels regard p as invalid now. */
			return count_drop(XROCE_DROP_qp_unknown);
		}
		drop = parse_roce(ctx, &p);
		if (drop == XROCE_DROP_none && p.qpn == XROCE_CM_QPN) {
			drop = mux_mad_find(ctx, &p, &client);
			if (drop == XROCE_DROP_none && client == MUX_MAD_OF_BROKER) {
				drop = mux_mad_show(ctx, &p);
				if (drop == XROCE_DROP_none)
					return XDP_DROP;
			} else if (drop == XROCE_DROP_none) {
				bpf_tail_call(ctx, &xroce_client, client);
			}
		}
	}
	return mux_drop(ctx, &p, drop == XROCE_DROP_none ? XROCE_DROP_qp_unknown : drop);
}

/* ---- sending ---- */

static __always_inline int egress_refuse(struct xroce_tap *tap, enum xroce_egress_reason reason)
{
	__u32 zero = 0, at = (__u32)reason - 1;
	__u64 *refused = bpf_map_lookup_elem(&xroce_refused, &zero);

	if (refused && at < XROCE_EGRESS_COUNT)
		refused[at]++;
	if (tap)
		__sync_fetch_and_add(&tap->refused, 1);
	return TC_ACT_SHOT;
}

/* Returns the hairpin that a packet takes, or 0 if it takes the wire. */
static __always_inline __u32 egress_hairpin(const struct packet *p, const struct xroce_wire *wire,
					    const struct xroce_neighbour *neighbour)
{
	if (bpf_map_lookup_elem(&xroce_gid, &p->dst))
		return wire->hairpin;
	return neighbour ? neighbour->hairpin : 0;
}

/*
 * Sends by the wire. The kernel finds the next hop, unless the broker has, and writes the Ethernet
 * header. bpf_redirect() would mark the frame, and generic XDP on the other end of a veth pair
 * skips marked frames.
 */
static __always_inline int egress_leave(const struct xroce_wire *wire,
					const struct xroce_neighbour *neighbour)
{
	struct bpf_redir_neigh hop = { .nh_family = FAMILY_IPV6 };

	if (!neighbour)
		return bpf_redirect_neigh(wire->ifindex, NULL, 0, 0);
	__builtin_memcpy(hop.ipv6_nh, neighbour->next_hop, sizeof(hop.ipv6_nh));
	return bpf_redirect_neigh(wire->ifindex, &hop, sizeof(hop), 0);
}

/*
 * Returns whether the frame, or a packet that is cut from a super-packet, exceeds the interface's
 * MTU. The kernel does not check again.
 */
static __always_inline bool egress_is_too_long(struct __sk_buff *skb, __u32 ifindex)
{
	__u32 mtu = 0;

	return bpf_check_mtu(skb, ifindex, &mtu, 0, skb->gso_size ? BPF_MTU_CHK_SEGS : 0) != 0;
}

SEC("tc")
int xroce_egress(struct __sk_buff *skb)
{
	__u32 zero = 0, ifindex = skb->ifindex, hairpin;
	struct xroce_tap *tap = bpf_map_lookup_elem(&xroce_tap, &ifindex);
	const struct xroce_wire *wire = bpf_map_lookup_elem(&xroce_wire, &zero);
	const struct xroce_neighbour *neighbour;
	enum xroce_egress_reason reason;
	struct packet p;
	int verdict;

	if (!tap || !wire)
		return egress_refuse(tap, XROCE_EGRESS_unknown_tap);
	reason = egress_check(skb, &p, tap);
	if (reason == XROCE_EGRESS_none && egress_is_multicast(&p) && !mux_group_may_send(skb, &p))
		reason = XROCE_EGRESS_multicast;
	if (reason != XROCE_EGRESS_none)
		return egress_refuse(tap, reason);
	if (egress_is_multicast(&p))
		return egress_is_too_long(skb, wire->ifindex) ?
			       egress_refuse(tap, XROCE_EGRESS_mtu) :
			       mux_group_send(skb, &p, wire, tap);
	neighbour = bpf_map_lookup_elem(&xroce_neighbour, &p.dst);
	hairpin = egress_hairpin(&p, wire, neighbour);
	if (!hairpin && wire->is_loopback)
		return egress_refuse(tap, XROCE_EGRESS_no_wire);
	if (!hairpin && egress_is_too_long(skb, wire->ifindex))
		return egress_refuse(tap, XROCE_EGRESS_mtu);
	__sync_fetch_and_add(&tap->bytes, skb->len);
	if (hairpin) {
		__sync_fetch_and_add(&tap->hairpin, 1);
		return bpf_redirect(hairpin, BPF_F_INGRESS);
	}
	__sync_fetch_and_add(&tap->frames, 1);
	verdict = neighbour ? TC_ACT_UNSPEC : pair_cross(skb, wire);
	return verdict == TC_ACT_UNSPEC ? egress_leave(wire, neighbour) : verdict;
}

/*
 * Redirects single frames. If the interface takes no redirected frames, they are lost: the client
 * asks the kernel, and sends by xroce_egress when in doubt.
 */
SEC("xdp")
int xroce_single(struct xdp_md *ctx)
{
	__u32 zero = 0, ifindex = ctx->ingress_ifindex;
	struct xroce_tap *tap = bpf_map_lookup_elem(&xroce_tap, &ifindex);
	const struct xroce_wire *wire = bpf_map_lookup_elem(&xroce_wire, &zero);
	struct packet p;

	if (!tap || !wire || !single_is_addressed(ctx, wire) || !single_parse(ctx, &p) ||
	    !single_leaves(&p) || !single_is_allowed(&p, tap))
		return XDP_PASS;
	__sync_fetch_and_add(&tap->bytes, p.frame_len);
	__sync_fetch_and_add(&tap->frames, 1);
	return bpf_redirect_map(&xroce_out, 0, XDP_PASS);
}

/* This filter stays on the device after the broker is killed; then xroce_alive is empty. */
SEC("tc")
int xroce_tap_in(struct __sk_buff *skb)
{
	bpf_tail_call(skb, &xroce_alive, 0);
	return TC_ACT_SHOT;
}

SEC("tc")
int xroce_shut(struct __sk_buff *skb)
{
	return TC_ACT_SHOT;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
