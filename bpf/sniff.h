/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Copies a frame that continues on its way: for sniffers, and for flows that do not trap. A copy is
 * a record in a separate ring buffer (xroce_copies), which wakes the library's threads. Copies are
 * not synchronized with anything else; without room they are counted as lost.
 */
#ifndef BPF_SNIFF_H
#define BPF_SNIFF_H

#include <linux/if_ether.h>

#include "copy.h"
#include "count.h"
#include "maps.h"

/* Whether such flows exist; user space sets it after the flows. Reading it needs no map lookup. */
__u32 xroce_copying;

/*
 * Returns whether the frame is not longer than the interface's MTU allows. Packets in a
 * super-packet are no longer than others, and the engine cuts it.
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

/* Returns a record with the frame, or NULL if there is no ring or no room. */
static __always_inline struct xroce_rx_record *sniff_record(struct xdp_md *ctx, __u32 len)
{
	const __u32 zero = 0;
	void *ring = bpf_map_lookup_elem(&xroce_copies, &zero);
	struct xroce_rx_record *r;

	/* the verifier of Linux 6.1 cannot exclude a length of 0 by len alone */
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
 * Copies the frame. kind is XROCE_COPY_*; flags and l3 are a RoCEv2 packet's. Wakes the reader if
 * it has read all earlier records. A global function, like count_drop(), which the verifier checks
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
