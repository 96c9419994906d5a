/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Handing a packet to a process that has no AF_XDP sockets: the CQE and the frame are copied into
 * its ring buffer (xroce_ring). Decides nothing about the packet.
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

/* Set before the program is loaded, by the broker: it is a client's (xroce/abi.h). */
const volatile bool xroce_shared = false;

/* A record with the frame in it; NULL: *drop says why not. */
static __always_inline struct xroce_rx_record *
deliver_frame(struct xdp_md *ctx, const struct packet *p, enum xroce_drop *drop)
{
	const __u32 len = p->frame_len;
	/* a length of 0 is what the verifier of Linux 6.1 cannot exclude by len alone */
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
 * The record can be read from here on. Returns true if sleepers are to be woken for it by records
 * of their own.
 */
static __always_inline bool deliver_record(struct xroce_rx_record *r, struct packet *p,
					   const struct xroce_qp *qp)
{
	const bool watched = wake_is_watched(0);
	bool announce;

	if (watched)
		p->rx_flags |= XROCE_RX_UNANNOUNCED;
	/* before the packet can be seen */
	announce = !watched || !wake_count_unannounced(0);
	cqe_fill(&r->cqe, p, qp);
	bpf_ringbuf_submit(r, watched ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
	return announce;
}

/*
 * The end of the program in a process without sockets: all that the packet has to be, it is.
 * Returns the verdict. What is behind the frame in its record is what lay there before: the same
 * process's. To such a process all packets come by queue 0.
 *
 * Threads that watch the queue sleep on the ring itself. They are woken by each packet, as by an
 * AF_XDP socket, for the one that is awake may stop looking at any moment.
 *
 *	XDP					a thread goes to sleep on the ring
 *	take the record's room in the ring	watched (full barrier)
 *	count_received() (full barrier)		look whether any room is taken
 *	look at watched				sleep
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
	/* pairs with the addition in worker_watch() (user/run/worker_hints.c) */
	count_received(qp, p);
	if (deliver_record(r, p, qp))
		wake_sleepers(ctx, qp, p, 0);
	return XDP_DROP;
}

/* The same for a packet to a multicast group of the process's; as is what it is written as. */
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
