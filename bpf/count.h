/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counters of the XDP program. Device counters are per CPU and need no atomics (XDP runs with
 * bottom halves off); QP counters are shared by all CPUs and use atomics.
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
 * Counts a violation where user space reads it without a system call. Rare, so atomic. The caller
 * compares first: the verifier refuses an early return here without CAP_PERFMON.
 */
static __always_inline void count_violation(__u32 reason)
{
	__u32 zero = 0;
	struct xroce_engine *engine = bpf_map_lookup_elem(&xroce_engine, &zero);

	if (engine && reason == XROCE_DROP_pkey)
		__sync_fetch_and_add(&engine->bad_pkeys, 1);
	if (engine && reason == XROCE_DROP_qkey)
		__sync_fetch_and_add(&engine->bad_qkeys, 1);
}

/*
 * Counts a drop for the device, by reason. A global function, which the verifier checks once for
 * every value of reason. Inlined, the index would be a different constant on each path, which the
 * verifier refuses without CAP_PERFMON.
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
	if (reason == XROCE_DROP_pkey || reason == XROCE_DROP_qkey)
		count_violation(reason);
	return XDP_DROP;
}

/* Counts a drop for the device, and for the QP if it is known. Returns the verdict. */
static __always_inline int count_qp_drop(struct xroce_qp *qp, enum xroce_drop reason)
{
	if (qp)
		__sync_fetch_and_add(&qp->rx_dropped, 1);
	return count_drop(reason);
}

/* Counts a RoCEv2 packet that is not for this device. Returns the verdict. */
static __always_inline int count_pass(void)
{
	struct xroce_rx_stats *rx = count_rx_stats();

	if (rx)
		rx->passed++;
	return XDP_PASS;
}

/* Counts bytes and super-packets of a delivered packet, which the caller counts. */
static __always_inline void count_bytes(struct xroce_rx_stats *rx, const struct packet *p)
{
	rx->redirected_bytes += p->frame_len;
	if (p->segments > 1) {
		rx->super_packets++;
		rx->super_segments += p->segments;
	}
}

/* Counts a packet for its QP. A full barrier, as the result of the atomic operation is used. */
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

/* As count_received(), for a packet to several QPs: counts for the device only. */
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
