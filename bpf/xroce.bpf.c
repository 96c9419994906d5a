/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The adapter's receive side: find the RoCEv2 packets for this device, check them against their QP,
 * write a CQE in front of them, hand them to the owner's AF_XDP socket or, with both, to its ring
 * buffer (deliver.h), and wake the threads that sleep for them.
 *
 * What is not RoCEv2 for one of the interface's GIDs passes untouched, malformed or not. What is,
 * and fails a check, is dropped with exactly one counted reason. The payload is never read: the
 * ICRC and all protocol state are the engine's.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "maps.h"
#include "count.h"
#include "parse.h"
#include "steer.h"
#include "cqe.h"
#include "deliver.h"
#include "wake.h"

/* Hands the packet over. Returns false if the owner has no socket on this receive queue. */
static __always_inline bool steer_redirect(struct xdp_md *ctx, const struct xroce_qp *qp)
{
	/* A higher queue would reach into the next owner's sockets. */
	if (ctx->rx_queue_index >= XROCE_MAX_QUEUE)
		return false;
	return bpf_redirect_map(&xroce_xsk, qp->xsk_base + ctx->rx_queue_index, XDP_DROP) ==
	       XDP_REDIRECT;
}

/* Set before the program is loaded, in user/attach/hook.c. */
const volatile bool xroce_in_dispatcher = false;

/*
 * A dispatcher's programs may outlive their process; its sockets do not. All packets pass a program
 * whose process is gone. Queue 0 always has a socket.
 */
static __always_inline bool steer_is_left_behind(void)
{
	__u32 zero = 0;

	return xroce_in_dispatcher && !bpf_map_lookup_elem(&xroce_xsk, &zero);
}

SEC("xdp.frags")
int xroce_xdp(struct xdp_md *ctx)
{
	enum xroce_drop drop = XROCE_DROP_none;
	struct xroce_qp *qp = NULL;
	struct packet p;

	if (!parse_ip(ctx, &p, &drop) || steer_is_left_behind())
		return XDP_PASS;
	if (drop == XROCE_DROP_none)
		drop = parse_roce(ctx, &p);
	if (p.has_bth)
		qp = bpf_map_lookup_elem(&xroce_qp, &p.qpn);
	if (!steer_is_ours(&p, qp))
		return count_pass();
	if (drop == XROCE_DROP_none)
		drop = steer_check(&p, qp);
	if (drop != XROCE_DROP_none || !qp)
		return count_qp_drop(qp, drop);

	if (xroce_shared)
		return deliver(ctx, &p, qp);
	if (wake_is_watched(ctx->rx_queue_index))
		p.rx_flags |= XROCE_RX_UNANNOUNCED;
	if (!cqe_write(ctx, &p, qp))
		return count_qp_drop(qp, XROCE_DROP_metadata);
	if (!steer_redirect(ctx, qp))
		return count_qp_drop(qp, XROCE_DROP_no_socket);
	count_received(qp, &p);
	if (!(p.rx_flags & XROCE_RX_UNANNOUNCED) || !wake_count_unannounced(ctx->rx_queue_index))
		wake_sleepers(ctx, qp, &p, ctx->rx_queue_index);
	return XDP_REDIRECT;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
