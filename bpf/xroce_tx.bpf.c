/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The adapter's transmit side without skbs: redirects frames to the interface from XDP. It runs in
 * two ways:
 *
 *   on a TAP device    each write() to it is a frame, or several frames in a row
 *   by BPF_PROG_RUN    on "live frames": kernel pages that the program fills, one for each entry of
 *                      the batch in xroce_tx_ring
 *
 * One program does both, because it has to be attached somewhere: the kernel makes each run of an
 * unattached program wait for RCU.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <xroce/abi.h>

/* ingress interface of BPF_PROG_RUN, in every network namespace; never a TAP's */
#define LOOPBACK_IFINDEX 1u

/*
 * Holds the interface once for each frame in a write to the TAP: a broadcast makes as many
 * clones, and xroce_tx_cut cuts a frame out of each.
 */
#define DEVMAP(name, entries)                                                                      \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_DEVMAP);                                                 \
		__uint(max_entries, entries);                                                      \
		__type(key, __u32);                                                                \
		__type(value, struct bpf_devmap_val);                                              \
	} name SEC(".maps")

DEVMAP(xroce_tx_dev, 1);
DEVMAP(xroce_tx_dev2, 2);
DEVMAP(xroce_tx_dev3, 3);
DEVMAP(xroce_tx_dev4, 4);
DEVMAP(xroce_tx_dev8, 8);
DEVMAP(xroce_tx_dev16, 16);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xroce_tx_ring);
} xroce_tx_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, XROCE_TX_FRAMES);
	__type(key, __u32);
	__type(value, struct xroce_tx_frame);
} xroce_tx_frame SEC(".maps");

/*
 * Copies an entry's frame into the live frame. The page is as long as the longest frame of the
 * batch, so it is only ever shortened.
 */
static __always_inline bool tx_fill(struct xdp_md *ctx, const struct xroce_tx_entry *entry)
{
	__u32 key = entry->frame, len = entry->len;
	struct xroce_tx_frame *frame = bpf_map_lookup_elem(&xroce_tx_frame, &key);
	__u32 size = ctx->data_end - ctx->data;

	if (!frame || len == 0 || len > XROCE_TX_LIVE_BYTES || len > size)
		return false;
	if (len < size && bpf_xdp_adjust_tail(ctx, (int)len - (int)size))
		return false;
	return bpf_xdp_store_bytes(ctx, 0, frame->bytes, len) == 0;
}

static __always_inline int tx_from_tap(struct xroce_tx_ring *ring)
{
	switch (ring->pieces) {
	case 1:
		return bpf_redirect_map(&xroce_tx_dev, 0, XDP_DROP);
	case 2:
		return bpf_redirect_map(&xroce_tx_dev2, 0, BPF_F_BROADCAST);
	case 3:
		return bpf_redirect_map(&xroce_tx_dev3, 0, BPF_F_BROADCAST);
	case 4:
		return bpf_redirect_map(&xroce_tx_dev4, 0, BPF_F_BROADCAST);
	case 8:
		return bpf_redirect_map(&xroce_tx_dev8, 0, BPF_F_BROADCAST);
	case 16:
		return bpf_redirect_map(&xroce_tx_dev16, 0, BPF_F_BROADCAST);
	}
	return XDP_DROP;
}

static __always_inline struct xroce_tx_ring *tx_ring(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&xroce_tx_ring, &zero);
}

/* Returns the next entry of the batch. */
static __always_inline struct xroce_tx_entry *tx_take_entry(struct xroce_tx_ring *ring)
{
	__u32 next = ring->next;

	if (next >= XROCE_TX_FRAMES)
		return NULL;
	ring->next = next + 1;
	return &ring->batch[next];
}

/*
 * Returns whether the batch has ended. Frames that must keep their order leave by one CPU, as the
 * interface may have a queue for each. A frame on another CPU ends the batch: later frames on the
 * right one would overtake it.
 */
static __always_inline bool tx_is_misplaced(struct xroce_tx_ring *ring)
{
	const __u32 cpu = ring->cpu;

	if (cpu && cpu != bpf_get_smp_processor_id() + 1)
		ring->strayed = 1;
	return ring->strayed;
}

SEC("xdp")
int xroce_transmit(struct xdp_md *ctx)
{
	struct xroce_tx_ring *ring = tx_ring();
	struct xroce_tx_entry *entry;

	if (!ring || tx_is_misplaced(ring))
		return XDP_DROP;
	if (ctx->ingress_ifindex != LOOPBACK_IFINDEX)
		return tx_from_tap(ring);
	entry = tx_take_entry(ring);
	if (!entry || !tx_fill(ctx, entry)) {
		ring->refused++;
		return XDP_DROP;
	}
	return bpf_redirect_map(&xroce_tx_dev, 0, XDP_DROP);
}

/* Runs on each clone of a write, and keeps the next frame of it. */
SEC("xdp/devmap")
int xroce_tx_cut(struct xdp_md *ctx)
{
	struct xroce_tx_ring *ring = tx_ring();
	struct xroce_tx_entry *entry = ring ? tx_take_entry(ring) : NULL;
	__u32 begin, len, size = ctx->data_end - ctx->data;

	if (!ring)
		return XDP_DROP;
	/* read once: user space may write at any time */
	begin = ring->cut;
	len = entry ? entry->len : 0;
	ring->cut = begin + len;
	/* begin must not exceed size: the frame would begin in the headroom and leak its content */
	if (!entry || begin > size || len > size - begin || bpf_xdp_adjust_head(ctx, (int)begin) ||
	    bpf_xdp_adjust_tail(ctx, (int)(begin + len) - (int)size)) {
		ring->refused++;
		return XDP_DROP;
	}
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
