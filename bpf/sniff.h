/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A copy of a frame that goes its way: for sniffers, and for flows that do not trap. A record in a
 * ring buffer of its own (xroce_copies), by which the library's threads are woken: in step with
 * nothing else, and what finds no room is counted and not copied.
 */
#ifndef BPF_SNIFF_H
#define BPF_SNIFF_H

#include <linux/if_ether.h>

#include "copy.h"
#include "count.h"
#include "maps.h"

/* Are there such flows? User space says so, behind the flows themselves. No map is looked up. */
__u32 xroce_copying;

/*
 * What is longer than the interface's MTU allows cannot be received; packets in a super-packet are
 * no longer than others, and the engine cuts it.
 */
static __always_inline bool sniff_fits(__u32 len, __u32 flags)
{
	const __u32 zero = 0;
	const struct xroce_flows *flows = bpf_map_lookup_elem(&xroce_flows, &zero);

	return flags & XROCE_RX_GSO || (flows && len <= flows->longest);
}

static __always_inline void sniff_fill(struct xroce_rx_cqe *cqe, __u32 kind, __u32 flags, __u32 l3)
{
	__builtin_memset(cqe, 0, sizeof(*cqe));
	cqe->rx_time_ns = bpf_ktime_get_ns();
	cqe->opcode = kind;
	cqe->flags = flags;
	cqe->l3_offset = l3;
}

/* The record with the frame in it; NULL: there is no ring, or no room. */
static __always_inline struct xroce_rx_record *sniff_record(struct xdp_md *ctx, __u32 len)
{
	const __u32 zero = 0;
	void *ring = bpf_map_lookup_elem(&xroce_copies, &zero);
	struct xroce_rx_record *r;

	/* a length of 0 is what the verifier of Linux 6.1 cannot exclude by len alone */
	r = ring && len >= sizeof(struct ethhdr) ? copy_reserve(ring, len) : NULL;
	if (!r)
		return NULL;
	if (copy_load(ctx, r->frame, len)) {
		bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP);
		return NULL;
	}
	r->len = len;
	r->pad = 0;
	return r;
}

/*
 * kind is XROCE_COPY_*; flags and l3 are a RoCEv2 packet's. The reader is woken if it has read all
 * before this, and may sleep. A global function, as count_drop(), which the verifier goes through
 * once.
 */
__attribute__((noinline)) int sniff_copy(struct xdp_md *ctx, __u32 kind, __u32 flags, __u32 l3)
{
	const __u32 len = bpf_xdp_get_buff_len(ctx);
	struct xroce_rx_record *r = sniff_fits(len, flags) ? sniff_record(ctx, len) : NULL;
	struct xroce_rx_stats *rx;

	if (!r) {
		rx = count_rx_stats();
		if (rx)
			rx->copies_lost++;
		return 0;
	}
	sniff_fill(&r->cqe, kind, flags, l3);
	bpf_ringbuf_submit(r, 0);
	rx = count_rx_stats();
	if (rx)
		rx->copied++;
	return 0;
}

#endif
