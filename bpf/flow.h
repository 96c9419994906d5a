/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames that flows of raw packet QPs take (ibv_create_flow(3)). Asked last, for what is no RoCEv2
 * packet to one of the interface's addresses, and so never before such a packet. What no flow takes
 * passes untouched and uncounted.
 */
#ifndef BPF_FLOW_H
#define BPF_FLOW_H

#include <stddef.h>

#include "count.h"
#include "cqe.h"
#include "maps.h"
#include "wake.h"

#define FLOW_FRAME  struct xdp_md *
#define FLOW_INLINE static __always_inline

FLOW_INLINE bool flow_load(FLOW_FRAME frame, __u32 at, void *to, __u32 bytes)
{
	return !bpf_xdp_load_bytes(frame, at, to, bytes);
}

#include <xroce/flow.h>

/* A frame on its way through the flows. */
struct flow_walk {
	struct xroce_flow_key key;
	struct xroce_flow_tunnel tunnel;
	__u32 len;
	__u32 first;	/* key in xroce_flow: the flow that is looked at first */
	/* of the one that takes it: */
	__u32 place;	/* behind first */
	__u32 qpn;
	__u32 order;
	__u32 actions;
	__u32 counter;
	bool taken;
};

static __always_inline bool flow_takes(const struct xroce_flow *flow, const struct flow_walk *walk)
{
	return flow_matches(&walk->key, &flow->value, &flow->mask) &&
	       (!(flow->mask.kinds & XROCE_FLOW_TUNNEL) ||
		flow_tunnel_matches(&walk->tunnel, &flow->tunnel_value, &flow->tunnel_mask));
}

static long flow_look_at(__u64 i, struct flow_walk *walk)
{
	const __u32 at = walk->first + (__u32)i;
	const struct xroce_flow *flow = bpf_map_lookup_elem(&xroce_flow, &at);

	if (!flow || !flow_takes(flow, walk))
		return 0;
	walk->place = (__u32)i;
	walk->qpn = flow->qpn;
	walk->order = flow->order;
	walk->actions = flow->actions;
	walk->counter = flow->counter;
	walk->taken = true;
	return 1;
}

/* The first flow that takes the frame names the QP in walk. False: none does. */
static __attribute__((noinline)) bool flow_find(struct xdp_md *ctx, struct flow_walk *walk)
{
	const __u32 zero = 0;
	const struct xroce_flows *flows = bpf_map_lookup_elem(&xroce_flows, &zero);
	__u32 generation, half, first, second, num;

	walk->taken = false;
	walk->len = bpf_xdp_get_buff_len(ctx);
	if (!flows)
		return false;
	/* its half is whole: user space moves it last, in shards_steer_flows() */
	generation = READ_ONCE(flows->generation);
	half = XROCE_FLOW_HALF(generation);
	/* both are read: without CAP_PERFMON there are no pointers that depend on a branch */
	first = READ_ONCE(flows->num[0]);
	second = READ_ONCE(flows->num[1]);
	num = half ? second : first;
	if (!num || !flow_parse(ctx, &walk->key, &walk->tunnel))
		return false;
	walk->first = half * XROCE_MAX_FLOW;
	bpf_loop(num < XROCE_MAX_FLOW ? num : XROCE_MAX_FLOW, flow_look_at, walk, 0);
	/* what is longer cannot be received; to be dropped it can be of any length */
	if (!walk->taken || (!(walk->actions & XROCE_FLOW_DROP) &&
			     walk->len > READ_ONCE(flows->longest)))
		return false;
	/* it has moved twice: what was compared may have been written meanwhile */
	return READ_ONCE(flows->generation) - generation < 2;
}

static __always_inline void flow_count_in(__u32 counter, __u32 len)
{
	struct xroce_flow_count *count = bpf_map_lookup_elem(&xroce_flow_cnt, &counter);

	if (!count)
		return;
	count->packets++;
	count->bytes += len;
}

/* A flow behind the one that takes the frame. Ends with those of its order. */
static long flow_count_at(__u64 i, struct flow_walk *walk)
{
	const __u32 at = walk->first + walk->place + 1 + (__u32)i;
	const struct xroce_flow *flow = bpf_map_lookup_elem(&xroce_flow, &at);

	if (!flow || flow->order != walk->order)
		return 1;
	if (flow->counter && flow_takes(flow, walk))
		flow_count_in(flow->counter, walk->len);
	/* further on there are none that count */
	return !(flow->actions & XROCE_FLOW_MORE_COUNT);
}

/* For each flow that takes the frame. */
static __attribute__((noinline)) void flow_count(struct flow_walk *walk)
{
	if (walk->counter)
		flow_count_in(walk->counter, walk->len);
	if (walk->actions & XROCE_FLOW_MORE_COUNT)
		bpf_loop(XROCE_MAX_FLOW, flow_count_at, walk, 0);
}

/* The CQE's fields of a frame, as those of a packet. */
static __always_inline void flow_describe(const struct flow_walk *walk, struct packet *p)
{
	__builtin_memset(p, 0, sizeof(*p));
	p->qpn = walk->qpn;
	p->frame_len = p->byte_len = walk->len;
	p->segments = 1;
	p->vlan_tci = bpf_ntohs(walk->key.vlan_tci);
	p->tos = walk->key.tos;
	if (walk->key.kinds & XROCE_FLOW_VLAN)
		p->rx_flags |= XROCE_RX_VLAN;
	if (walk->key.kinds & XROCE_FLOW_IPV6)
		p->rx_flags |= XROCE_RX_IPV6;
}

/* To the sockets, and whoever sleeps is woken. Returns the verdict. */
static __attribute__((noinline)) int flow_redirect(struct xdp_md *ctx, const struct flow_walk *walk)
{
	const __u32 queue = ctx->rx_queue_index, qpn = walk->qpn;
	struct xroce_qp *qp = bpf_map_lookup_elem(&xroce_qp, &qpn);
	struct packet p;

	/* a frame of a flow that has just gone is nobody's */
	if (!qp || qp->transport != XROCE_RAW)
		return XDP_PASS;
	if (!qp->receiving)
		return count_qp_drop(qp, XROCE_DROP_qp_state);
	flow_describe(walk, &p);
	if (wake_is_watched(queue))
		p.rx_flags |= XROCE_RX_UNANNOUNCED;
	if (!cqe_write(ctx, &p, qp))
		return count_qp_drop(qp, XROCE_DROP_metadata);
	if (queue >= XROCE_MAX_QUEUE ||
	    bpf_redirect_map(&xroce_xsk, qp->xsk_base + queue, XDP_DROP) != XDP_REDIRECT)
		return count_qp_drop(qp, XROCE_DROP_no_socket);
	count_received(qp, &p);
	if (!(p.rx_flags & XROCE_RX_UNANNOUNCED) || !wake_count_unannounced(queue)) {
		wake_cq(qp, qp->recv_cq, qpn, false);
		wake_engine(bpf_map_lookup_elem(&xroce_vector, &queue), qpn);
	}
	return XDP_REDIRECT;
}

/* A frame that is nobody's else. Returns the verdict: XDP_PASS if no flow takes it. */
static __attribute__((noinline)) int flow_input(struct xdp_md *ctx)
{
	struct flow_walk walk;

	if (!flow_find(ctx, &walk))
		return XDP_PASS;
	flow_count(&walk);
	return walk.actions & XROCE_FLOW_DROP ? count_drop(XROCE_DROP_flow_drop) :
						flow_redirect(ctx, &walk);
}

#endif
