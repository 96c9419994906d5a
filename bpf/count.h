/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counters of the XDP program. Per-device ones are per CPU and need no atomics (XDP runs with
 * bottom halves off); per-QP ones are shared by all CPUs and are added to atomically.
 */
#ifndef BPF_COUNT_H
#define BPF_COUNT_H

#include "maps_device.h"
#include "parse.h"

static __always_inline struct xroce_rx_stats *count_rx_stats(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&xroce_rx, &zero);
}

/*
 * Counts a drop for the device, by reason. A global function, which the verifier checks once for
 * every value of reason: inlined, it would meet an index that is a different constant on each path,
 * and without CAP_PERFMON refuse that.
 */
__attribute__((noinline)) int count_drop(__u32 reason)
{
	struct xroce_rx_stats *rx = count_rx_stats();
	__u32 zero = 0, at = XROCE_DROP_INDEX(reason);
	__u64 *drops = bpf_map_lookup_elem(&xroce_drop, &zero);

	if (drops && at < XROCE_DROP_COUNT)
		drops[at]++;
	if (rx)
		rx->dropped++;
	return XDP_DROP;
}

/* Counts a drop for the device and for the QP where it is known. Returns the verdict. */
static __always_inline int count_qp_drop(struct xroce_qp *qp, enum xroce_drop reason)
{
	if (qp)
		__sync_fetch_and_add(&qp->rx_dropped, 1);
	return count_drop(reason);
}

/* Counts a RoCEv2 packet that is for someone else. Returns the verdict. */
static __always_inline int count_pass(void)
{
	struct xroce_rx_stats *rx = count_rx_stats();

	if (rx)
		rx->passed++;
	return XDP_PASS;
}

/* Bytes and super-packets of what is handed to somebody, which has been counted itself. */
static __always_inline void count_bytes(struct xroce_rx_stats *rx, const struct packet *p)
{
	rx->redirected_bytes += p->frame_len;
	if (p->segments > 1) {
		rx->super_packets++;
		rx->super_segments += p->segments;
	}
}

/*
 * Counts what the QP is handed. A full barrier, as the value of an operation is asked for, which
 * BPF's are only then.
 */
static __always_inline void count_received(struct xroce_qp *qp, const struct packet *p)
{
	struct xroce_rx_stats *rx = count_rx_stats();
	__u64 before = __sync_fetch_and_add(&qp->rx_packets, p->segments);

	barrier_var(before);
	__sync_fetch_and_add(&qp->rx_bytes, p->byte_len);
	if (!rx)
		return;
	rx->redirected++;
	count_bytes(rx, p);
}

/* The same of what several QPs are handed: for the device alone. */
static __always_inline void count_received_by_all(const struct packet *p)
{
	struct xroce_rx_stats *rx = count_rx_stats();
	__u64 before;

	if (!rx)
		return;
	before = __sync_fetch_and_add(&rx->redirected, 1);
	barrier_var(before);
	count_bytes(rx, p);
}

#endif
