/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames that flows of raw packet QPs take (ibv_create_flow(3)). Asked last, for what is no RoCEv2
 * packet to one of the interface's addresses, and so never before such a packet. What no flow takes
 * passes untouched and uncounted. Flows that have copies (sniffers, and those that do not trap)
 * take nothing, and are asked for our own packets as well.
 */
#ifndef BPF_FLOW_H
#define BPF_FLOW_H

#include <stddef.h>

#include "count.h"
#include "cqe.h"
#include "deliver.h"
#include "maps.h"
#include "sniff.h"
#include "wake.h"

#define FLOW_FRAME  struct xdp_md *
#define FLOW_INLINE static __always_inline

FLOW_INLINE bool flow_load(FLOW_FRAME frame, __u32 at, void *to, __u32 bytes)
{
	return !bpf_xdp_load_bytes(frame, at, to, bytes);
}

#include <xroce/flow.h>

/* What a frame is compared by. */
struct flow_headers {
	struct xroce_flow_key key;
	struct xroce_flow_tunnel tunnel;
};

/*
 * As flow_parse(); headers is never NULL. A global function: the verifier goes through it once, and
 * not through all that follows for each of its ways.
 */
__attribute__((noinline)) int flow_read(struct xdp_md *ctx, struct flow_headers *headers)
{
	return headers && flow_parse(ctx, &headers->key, &headers->tunnel);
}

/* A frame on its way through the flows. */
struct flow_walk {
	struct flow_headers in;
	__u32 len;
	/* of a UDP super-packet that is cut: its packets, and the bytes of all their frames */
	__u32 packets;
	__u32 bytes;
	__u32 first;	/* key in xroce_flow: the flow that is looked at first */
	__u32 num;	/* flows from there on */
	/* a packet for this device, where its IP header is: no flow takes it. 0: not so */
	__u32 own;
	/* of all that have a copy: their actions, and a bit that any counter's key has */
	__u32 copied;
	__u32 copies_counter;
	/* of the one that takes it: */
	bool taken;
	__u32 place;	/* behind first; without one: num */
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

/* A super-packet's packets have the headers up to UDP each: they lie in it once. */
static __always_inline void flow_weigh(struct flow_walk *walk)
{
	const __u32 headers = walk->own + sizeof(struct iphdr) + sizeof(struct udphdr);

	walk->bytes = walk->len;
	if (walk->packets > 1)
		walk->bytes += (walk->packets - 1) * headers;
}

/*
 * The first flow that takes the frame names the QP in walk; and does any before it have a copy?
 * False: neither.
 */
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
	/* its half is whole: user space moves it last, in shards_steer_flows() */
	generation = READ_ONCE(flows->generation);
	half = XROCE_FLOW_HALF(generation);
	/* both are read: without CAP_PERFMON there are no pointers that depend on a branch */
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
	/* what is longer cannot be received; to be dropped it can be of any length */
	if (!(walk->actions & XROCE_FLOW_DROP) && walk->len > READ_ONCE(flows->longest))
		walk->taken = false;
	/* it has moved twice: what was compared may have been written meanwhile */
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

/* A flow before the one that takes the frame: those that match have copies. */
static long flow_count_copy_at(__u64 i, struct flow_walk *walk)
{
	const __u32 at = walk->first + (__u32)i;
	const struct xroce_flow *flow = bpf_map_lookup_elem(&xroce_flow, &at);

	if (flow && flow->counter && flow->actions & XROCE_FLOW_COPY && flow_takes(flow, walk))
		flow_count_in(flow->counter, walk);
	return 0;
}

/* A flow behind the one that takes the frame. Ends with those of its order. */
static long flow_count_at(__u64 i, struct flow_walk *walk)
{
	const __u32 at = walk->first + walk->place + 1 + (__u32)i;
	const struct xroce_flow *flow = bpf_map_lookup_elem(&xroce_flow, &at);

	if (!flow || flow->order != walk->order)
		return 1;
	if (flow->counter && flow_takes(flow, walk))
		flow_count_in(flow->counter, walk);
	/* further on there are none that count */
	return !(flow->actions & XROCE_FLOW_MORE_COUNT);
}

/* For each flow that takes the frame, or has a copy. */
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

/* The CQE's flags of a frame, as those of a packet. */
static __always_inline __u32 flow_rx_flags(__u32 kinds)
{
	return (kinds & XROCE_FLOW_VLAN ? XROCE_RX_VLAN : 0) |
	       (kinds & XROCE_FLOW_IPV6 ? XROCE_RX_IPV6 : 0);
}

/*
 * To the sockets, with what its CQE says, and whoever sleeps is woken. Returns the verdict. A
 * global function, which the verifier goes through once.
 */
__attribute__((noinline)) int flow_redirect(struct xdp_md *ctx, __u32 qpn, __u32 kinds, __u32 tci,
					    __u32 tos)
{
	const __u32 queue = ctx->rx_queue_index;
	struct xroce_qp *qp = bpf_map_lookup_elem(&xroce_qp, &qpn);
	struct xroce_vector *vector;
	struct packet p;

	/* a frame of a flow that has just gone is nobody's */
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

/* Where the frame goes that a flow takes. Returns the verdict. */
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
 * A frame that is nobody's else, l3 0. Returns the verdict: XDP_PASS if no flow takes it. Copies of
 * what is redirected are the engine's to make. Or, while some flow has copies, a RoCEv2 packet for
 * this device, whatever becomes of it, with flags, l3 and segments as in struct packet: then it is
 * copied at most.
 *
 * A global function, which the verifier goes through once, and not at all in a process without
 * flows.
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
