/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Copies a frame into a BPF ring buffer: reserves a record and loads the bytes. Uses no map.
 *
 * The size of a record must be a constant, so there are these sizes of frame: for 64 bytes of
 * payload, for each path MTU with the longest headers, and for super-packets. A record with the
 * kernel's 8 bytes before it is a multiple of a cache line.
 */
#ifndef BPF_COPY_H
#define BPF_COPY_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <xroce/abi.h>

#define COPY_SIZES(X)                                                                              \
	X(80) X(144) X(400) X(656) X(1168) X(2192) X(4240) X(8144) X(12240) X(16336) X(24528)      \
	X(32720) X(49104) X(65616)
/* the size of a record, with the part before the frame */
#define COPY_RECORD(bytes) (sizeof(struct xroce_rx_record) + (bytes))
#define COPY_RING_HEADER   8 /* BPF_RINGBUF_HDR_SZ */
#define COPY_LOAD_MAX	   0xffffu
#define X(bytes)                                                                                   \
	_Static_assert((COPY_RING_HEADER + COPY_RECORD(bytes)) % 64 == 0, "whole cache lines");
COPY_SIZES(X)
#undef X

/*
 * Reserves a record with room for a frame of len bytes. Returns NULL if there is no room, or the
 * frame is longer than any size.
 */
static __always_inline void *copy_reserve(void *ring, __u32 len)
{
#define X(bytes)                                                                                   \
	if (len <= (bytes))                                                                        \
		return bpf_ringbuf_reserve(ring, COPY_RECORD(bytes), 0);
	COPY_SIZES(X)
#undef X
	return NULL;
}

/* Loads len bytes of the frame; one call copies at most 65535. Returns 0 or nonzero. */
static __always_inline long copy_load(struct xdp_md *ctx, __u8 *to, __u32 len)
{
	if (len <= COPY_LOAD_MAX)
		return bpf_xdp_load_bytes(ctx, 0, to, len);
	return bpf_xdp_load_bytes(ctx, 0, to, COPY_LOAD_MAX) ||
	       bpf_xdp_load_bytes(ctx, COPY_LOAD_MAX, to + COPY_LOAD_MAX, len - COPY_LOAD_MAX);
}

#endif
