/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Delivers a packet to a process by its ring buffer (xroce_ring), and not by an AF_XDP socket:
 * copies the CQE and the frame. Makes no decision about the packet.
 */
#ifndef BPF_DELIVER_H
#define BPF_DELIVER_H

#include "copy.h"
#include "count.h"
#include "cqe.h"
#include "maps.h"
#include "parse.h"
#include "trace.h"
#include "wake.h"

/* Set by the broker before it loads a client's program (xroce/abi.h). */
#ifndef xroce_shared /* user/host/program.c */
const volatile bool xroce_shared = false;
#endif

/* Returns a record with the frame, or NULL with the reason in *drop. */
static __always_inline struct xroce_rx_record *
deliver_frame(struct xdp_md *ctx, const struct packet *p, enum xroce_drop *drop)
{
	const __u32 len = p->frame_len;
	/* the verifier of Linux 6.1 cannot exclude a length of 0 by len alone */
	struct xroce_rx_record *r =
		len >= sizeof(struct ethhdr) ? copy_reserve(&xroce_ring, len) : NULL;

	*drop = XROCE_DROP_ring_full;
	if (!r)
		return NULL;
	if (copy_load(ctx, r->frame, len)) {
		bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP);
		*drop = XROCE_DROP_multibuffer;
		return NULL;
	}
	r->len = len;
	r->pad = 0;
	return r;
}

/*
 * Publishes the record. Returns true if sleepers need wake-up records. Threads that sleep on the
 * queues' sockets need not sleep on the ring of a process that has both: its records are always
 * announced.
 */
static __always_inline bool deliver_record(struct xroce_rx_record *r, struct packet *p,
					   const struct xroce_qp *qp)
{
	const bool watched = xroce_shared && wake_is_watched(0);
	bool announce;

	if (watched)
		p->rx_flags |= XROCE_RX_UNANNOUNCED;
	/* before the packet is visible */
	announce = !watched || !wake_count_unannounced(0);
	cqe_fill(&r->cqe, p, qp);
	bpf_ringbuf_submit(r, watched || !xroce_shared ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
	return announce;
}

/*
 * Delivers a packet that has passed all checks. Returns the verdict.
 * Bytes after the frame in its record are old data of the same process. All packets count as
 * received on queue 0.
 *
 * Threads that watch the queue sleep on the ring itself. Every packet wakes them, like an AF_XDP
 * socket, since an awake thread may stop looking at any moment.
 *
 *   	XDP					a thread that goes to sleep on the ring
 *   	reserve the record in the ring		watched (full barrier)
 *   	count_received() (full barrier)		read whether any record is reserved
 *   	read watched				sleep
 */
static __attribute__((noinline)) int deliver(struct xdp_md *ctx, struct packet *p,
					     struct xroce_qp *qp)
{
	enum xroce_drop drop;
	struct xroce_rx_record *r = deliver_frame(ctx, p, &drop);

	if (!r) {
		trace_dropped(ctx, p, drop);
		return count_qp_drop(qp, drop);
	}
	trace_received(ctx, p);
	/* pairs with the addition in worker_watch() (user/run/worker.c) */
	count_received(qp, p);
	if (deliver_record(r, p, qp))
		wake_sleepers(ctx, qp, p, 0);
	return XDP_DROP;
}

/* As deliver(), for a packet to a multicast group; `as` stands for the QP in the CQE. */
static __attribute__((noinline)) int deliver_to_group(struct xdp_md *ctx, struct packet *p,
						      const struct xroce_qp *as)
{
	enum xroce_drop drop;
	struct xroce_rx_record *r = deliver_frame(ctx, p, &drop);

	if (!r) {
		trace_dropped(ctx, p, drop);
		return count_drop(drop);
	}
	trace_received(ctx, p);
	/* as in deliver() */
	count_received_by_all(p);
	if (deliver_record(r, p, as))
		wake_sleepers_of_group(p, 0);
	return XDP_DROP;
}

#endif
