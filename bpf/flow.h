/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Steers frames to flows of raw packet QPs (ibv_create_flow(3)). Flows are matched last, after
 * RoCEv2 packets to the interface's addresses. A frame that no flow takes passes untouched and
 * uncounted. Flows with copies (sniffers and flows that do not trap) take nothing, and are also
 * matched against our own packets.
 */
#ifndef BPF_FLOW_H
#define BPF_FLOW_H

#include <stddef.h>

#include "count.h"
#include "cqe.h"
#include "deliver.h"
#include "maps.h"
#include "qp.h"
#include "sniff.h"
#include "wake.h"

#define FLOW_FRAME  struct xdp_md *
#define FLOW_INLINE static __always_inline

FLOW_INLINE bool flow_load(FLOW_FRAME frame, __u32 at, void *to, __u32 bytes)
{
	return !bpf_xdp_load_bytes(frame, at, to, bytes);
}

#include <xroce/flow.h>

/* The headers that flows are matched against. */
struct flow_headers {
	struct xroce_flow_key key;
	struct xroce_flow_tunnel tunnel;
};

/*
 * Calls flow_parse(); headers is never NULL. A global function: the verifier checks it once, and
 * not the code after it for each of its paths.
 */
__attribute__((noinline)) int flow_read(struct xdp_md *ctx, struct flow_headers *headers)
{
	return headers && flow_parse(ctx, &headers->key, &headers->tunnel);
}

/* State of matching a frame against the flows. */
struct flow_walk {
	struct flow_headers in;
	__u32 len;
	/* of an uncut UDP super-packet: number of its packets, and bytes of their frames */
	__u32 packets;
	__u32 bytes;
	__u32 first;	/* key in xroce_flow of the first flow */
	__u32 num;	/* number of flows */
	/* offset of the IP header of a packet for this device, which no flow takes; else 0 */
	__u32 own;
	/* for all matching flows with copies: their actions and counter keys, ORed */
	__u32 copied;
	__u32 copies_counter;
	/* the flow that takes the frame: */
	bool taken;
	__u32 place;	/* its index from `first`; if there is none, num */
	__u32 qpn;
	__u32 order;
	__u32 actions;
	__u32 counter;
};

static __always_inline bool flow_takes(const struct xroce_flow *flow, const struct flow_walk *walk)
{
	return flow_matches(&walk->in.key, &flow->value, &flow->mask) &&
	       (!(flow->mask.kinds & XROCE_FLOW_TUNNEL) ||
		flow_tunnel_matches(&walk->in.tunnel, &flow->tunnel_value, &flow->tunnel_mask));
}

static long flow_look_at(__u64 i, struct flow_walk *walk)
{
	const __u32 at = walk->first + (__u32)i;
	const struct xroce_flow *flow = bpf_map_lookup_elem(&xroce_flow, &at);

	if (!flow || !flow_takes(flow, walk))
		return 0;
	if (flow->actions & XROCE_FLOW_COPY) {
		walk->copied |= flow->actions;
		walk->copies_counter |= flow->counter;
		return 0;
	}
	if (walk->own)
		return 0;
	walk->place = (__u32)i;
	walk->qpn = flow->qpn;
	walk->order = flow->order;
	walk->actions = flow->actions;
	walk->counter = flow->counter;
	walk->taken = true;
	return 1;
}

/* Computes the bytes of all frames in a super-packet, which has their headers up to UDP once. */
static __always_inline void flow_weigh(struct flow_walk *walk)
{
	const __u32 headers = walk->own + sizeof(struct iphdr) + sizeof(struct udphdr);

	walk->bytes = walk->len;
	if (walk->packets > 1)
		walk->bytes += (walk->packets - 1) * headers;
}

/* Finds the flow that takes the frame, and copies before it. Returns false if there are neither. */
static __attribute__((noinline)) bool flow_find(struct xdp_md *ctx, struct flow_walk *walk)
{
	const __u32 zero = 0;
	const struct xroce_flows *flows = bpf_map_lookup_elem(&xroce_flows, &zero);
	__u32 generation, half, first, second, num;

	walk->taken = false;
	walk->copied = walk->copies_counter = 0;
	walk->qpn = walk->order = walk->actions = walk->counter = 0;
	walk->len = bpf_xdp_get_buff_len(ctx);
	flow_weigh(walk);
	if (!flows)
		return false;
	/* user space writes this half completely before generation: shards_steer_flows() */
	generation = READ_ONCE(flows->generation);
	half = XROCE_FLOW_HALF(generation);
	/* reads both: without CAP_PERFMON no pointer may depend on a branch */
	first = READ_ONCE(flows->num[0]);
	second = READ_ONCE(flows->num[1]);
	num = half ? second : first;
	if (!num)
		return false;
	__builtin_memset(&walk->in, 0, sizeof(walk->in));
	if (!flow_read(ctx, &walk->in))
		return false;
	walk->first = half * XROCE_MAX_FLOW;
	walk->place = walk->num = num < XROCE_MAX_FLOW ? num : XROCE_MAX_FLOW;
	bpf_loop(walk->num, flow_look_at, walk, 0);
	/* longer frames can be dropped, but not received */
	if (!(walk->actions & XROCE_FLOW_DROP) && walk->len > READ_ONCE(flows->longest))
		walk->taken = false;
	/* if generation moved twice, the flows may have changed while they were matched */
	return (walk->taken || walk->copied) && READ_ONCE(flows->generation) - generation < 2;
}

static __always_inline void flow_count_in(__u32 counter, const struct flow_walk *walk)
{
	struct xroce_flow_count *count = bpf_map_lookup_elem(&xroce_flow_cnt, &counter);

	if (!count)
		return;
	count->packets += walk->packets;
	count->bytes += walk->bytes;
}

/* Counts for a flow with copies, before the flow that takes the frame. */
static long flow_count_copy_at(__u64 i, struct flow_walk *walk)
{
	const __u32 at = walk->first + (__u32)i;
	const struct xroce_flow *flow = bpf_map_lookup_elem(&xroce_flow, &at);

	if (flow && flow->counter && flow->actions & XROCE_FLOW_COPY && flow_takes(flow, walk))
		flow_count_in(flow->counter, walk);
	return 0;
}

/* Counts for a later flow of the same order as the flow that takes the frame. */
static long flow_count_at(__u64 i, struct flow_walk *walk)
{
	const __u32 at = walk->first + walk->place + 1 + (__u32)i;
	const struct xroce_flow *flow = bpf_map_lookup_elem(&xroce_flow, &at);

	if (!flow || flow->order != walk->order)
		return 1;
	if (flow->counter && flow_takes(flow, walk))
		flow_count_in(flow->counter, walk);
	/* no later flow of this order has a counter */
	return !(flow->actions & XROCE_FLOW_MORE_COUNT);
}

/* Counts for each flow that takes the frame or gets a copy. */
static __attribute__((noinline)) void flow_count(struct flow_walk *walk)
{
	if (walk->copies_counter)
		bpf_loop(walk->place, flow_count_copy_at, walk, 0);
	if (!walk->taken)
		return;
	if (walk->counter)
		flow_count_in(walk->counter, walk);
	if (walk->actions & XROCE_FLOW_MORE_COUNT)
		bpf_loop(XROCE_MAX_FLOW, flow_count_at, walk, 0);
}

/* Returns the CQE flags of a frame. */
static __always_inline __u32 flow_rx_flags(__u32 kinds)
{
	return (kinds & XROCE_FLOW_VLAN ? XROCE_RX_VLAN : 0) |
	       (kinds & XROCE_FLOW_IPV6 ? XROCE_RX_IPV6 : 0);
}

/*
 * Redirects the frame to the QP's socket with a CQE, and wakes sleepers. Returns the verdict. A
 * global function, which the verifier checks once.
 */
__attribute__((noinline)) int flow_redirect(struct xdp_md *ctx, __u32 qpn, __u32 kinds, __u32 tci,
					    __u32 tos)
{
	const __u32 queue = ctx->rx_queue_index;
	struct xroce_qp *qp = qp_find(qpn);
	struct xroce_vector *vector;
	struct packet p;

	/* the frame's flow has just been destroyed */
	if (!qp || qp->transport != XROCE_RAW)
		return XDP_PASS;
	if (!qp->receiving)
		return count_qp_drop(qp, XROCE_DROP_qp_state);
	__builtin_memset(&p, 0, sizeof(p));
	p.qpn = qpn;
	p.frame_len = p.byte_len = bpf_xdp_get_buff_len(ctx);
	p.segments = 1;
	p.vlan_tci = tci;
	p.tos = tos;
	p.rx_flags = flow_rx_flags(kinds);
	if (wake_is_watched(queue))
		p.rx_flags |= XROCE_RX_UNANNOUNCED;
	if (!cqe_write(ctx, &p, qp))
		return count_qp_drop(qp, XROCE_DROP_metadata);
	if (queue >= XROCE_MAX_QUEUE ||
	    bpf_redirect_map(&xroce_xsk, qp->xsk_base + queue, XDP_DROP) != XDP_REDIRECT)
		return count_qp_drop(qp, XROCE_DROP_no_socket);
	count_received(qp, &p);
	if (!(p.rx_flags & XROCE_RX_UNANNOUNCED) || !wake_count_unannounced(queue)) {
		vector = bpf_map_lookup_elem(&xroce_vector, &queue);
		wake_cq(qp, qp->recv_cq, qpn, false, vector);
		wake_engine(vector, qpn);
	}
	return XDP_REDIRECT;
}

/* Applies the flow that takes the frame, if any. Returns the verdict. */
static __always_inline int flow_end(struct xdp_md *ctx, const struct flow_walk *walk)
{
	const struct xroce_flow_key *key = &walk->in.key;

	if (!walk->taken)
		return XDP_PASS;
	return walk->actions & XROCE_FLOW_DROP ?
		       count_drop(XROCE_DROP_flow_drop) :
		       flow_redirect(ctx, walk->qpn, key->kinds, bpf_ntohs(key->vlan_tci),
				     key->tos);
}

/*
 * Matches a frame against the flows. A frame without another owner (l3 0) may be taken; returns the
 * verdict, XDP_PASS if no flow takes it. The engine makes the copies of redirected frames. While
 * some flow has copies, a RoCEv2 packet for this device, with flags, l3 and segments as in struct
 * packet, is also matched, and copied at most.
 *
 * A global function, which the verifier checks once, and which does nothing in a client of a
 * broker.
 */
__attribute__((noinline)) int flow_steer(struct xdp_md *ctx, __u32 flags, __u32 l3, __u32 segments)
{
	struct flow_walk walk;
	int verdict;

	if (xroce_shared)
		return XDP_PASS;
	walk.own = l3;
	walk.packets = flags & XROCE_RX_GSO ? segments : 1;
	if (!flow_find(ctx, &walk))
		return XDP_PASS;
	flow_count(&walk);
	verdict = flow_end(ctx, &walk);
	if (walk.copied && verdict != XDP_REDIRECT)
		sniff_copy(ctx, l3 ? XROCE_COPY_OWN : XROCE_COPY_OTHER, flags & XROCE_RX_GSO, l3);
	return verdict;
}

#endif
