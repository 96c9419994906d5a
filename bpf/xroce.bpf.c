/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The adapter's receive side: finds the RoCEv2 packets for this device, checks them against their
 * QP, and writes a CQE before them. Redirects them to the owner's AF_XDP socket or copies both to
 * its ring buffer (deliver.h), and wakes the threads that sleep for them.
 *
 * A packet that is not RoCEv2 to one of the interface's GIDs passes untouched, malformed or not,
 * unless a flow of a raw packet QP takes it. A packet for this device that fails a check is dropped
 * with exactly one counted reason. The payload is never read: the engine checks the ICRC and all
 * protocol state.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "maps.h"
#include "count.h"
#include "parse.h"
#include "qp.h"
#include "steer.h"
#include "trace.h"
#include "turn.h"
#include "cqe.h"
#include "deliver.h"
#include "flow.h"
#include "group.h"
#include "wake.h"

/*
 * The interface of the sockets, set before the program is loaded (user/broker/instance.c). 0:
 * packets arrive by no other interface.
 */
const volatile __u32 xroce_ifindex = 0;

/*
 * Returns whether the packet is from another process on the interface, by the broker's hairpin
 * (xroce_broker.bpf.c).
 */
static __always_inline bool steer_is_local(const struct xdp_md *ctx)
{
	return xroce_ifindex && ctx->ingress_ifindex != xroce_ifindex;
}

/*
 * Returns whether the packet goes to the ring buffer, and not to a socket: a socket gets only
 * packets of the interface that it is bound to.
 */
static __always_inline bool steer_takes_ring(const struct xdp_md *ctx)
{
	return xroce_shared || steer_is_local(ctx);
}

/* Redirects the packet. Returns false if the owner has no socket on this receive queue. */
static __always_inline bool steer_redirect(struct xdp_md *ctx, const struct xroce_qp *qp)
{
	/* A higher queue would select the next owner's sockets. */
	if (ctx->rx_queue_index >= XROCE_MAX_QUEUE)
		return false;
	return bpf_redirect_map(&xroce_xsk, qp->xsk_base + ctx->rx_queue_index, XDP_DROP) ==
	       XDP_REDIRECT;
}

/* Set before the program is loaded, in user/broker/hook.c. */
const volatile bool xroce_in_dispatcher = false;

/*
 * Returns whether the process is gone. A dispatcher's programs may outlive it, but its sockets do
 * not; queue 0 always has a socket. All packets pass such a program.
 */
static __always_inline bool steer_is_left_behind(void)
{
	__u32 zero = 0;

	return xroce_in_dispatcher && !bpf_map_lookup_elem(&xroce_xsk, &zero);
}

/* Counts a drop, and shows it to tracers. Returns the verdict. */
static __always_inline int steer_drop(struct xdp_md *ctx, const struct packet *p,
				      struct xroce_qp *qp, enum xroce_drop drop)
{
	trace_dropped(ctx, p, drop);
	return count_qp_drop(qp, drop);
}

/* Redirects a packet to a group of ours to the sockets. Returns the verdict. */
static __attribute__((noinline)) int steer_redirect_to_group(struct xdp_md *ctx, struct packet *p)
{
	if (wake_is_watched(ctx->rx_queue_index))
		p->rx_flags |= XROCE_RX_UNANNOUNCED;
	if (!cqe_write(ctx, p, &group_as_qp))
		return steer_drop(ctx, p, NULL, XROCE_DROP_metadata);
	if (!steer_redirect(ctx, &group_as_qp))
		return steer_drop(ctx, p, NULL, XROCE_DROP_no_socket);
	trace_received(ctx, p);
	group_count(p);
	if (!(p->rx_flags & XROCE_RX_UNANNOUNCED) || !wake_count_unannounced(ctx->rx_queue_index))
		wake_sleepers_of_group(p, ctx->rx_queue_index);
	return XDP_REDIRECT;
}

/* Handles RoCEv2 for others, which a flow may take. Returns the verdict. */
static __always_inline int steer_to_others(struct xdp_md *ctx)
{
	const int verdict = xroce_shared ? XDP_PASS : flow_steer(ctx, 0, 0, 1);

	return verdict == XDP_PASS ? count_pass() : verdict;
}

/*
 * Handles a packet that is to none of the interface's GIDs: to a group of ours, or for others. In a
 * broker's client it is always to a group of ours, as the broker passes no other. Returns the
 * verdict. Not inlined, for the reason of wake_sleepers().
 */
static __attribute__((noinline)) int steer_to_group(struct xdp_md *ctx, struct packet *p,
						    __u32 drop)
{
	if (!group_is_ours(p, xroce_shared))
		return steer_to_others(ctx);
	if (READ_ONCE(xroce_copying))
		flow_steer(ctx, p->rx_flags, p->l3, p->segments);
	if (drop == XROCE_DROP_none)
		drop = group_check(p);
	if (drop != XROCE_DROP_none)
		return steer_drop(ctx, p, NULL, drop);
	return steer_takes_ring(ctx) ? deliver_to_group(ctx, p, &group_as_qp) :
				       steer_redirect_to_group(ctx, p);
}

SEC("xdp.frags")
int xroce_xdp(struct xdp_md *ctx)
{
	enum xroce_drop drop = XROCE_DROP_none;
	struct xroce_qp *qp = NULL;
	struct packet p;

	if (!parse_ip(ctx, &p, &drop))
		return xroce_shared || steer_is_left_behind() ? XDP_PASS : flow_steer(ctx, 0, 0, 1);
	if (steer_is_left_behind())
		return XDP_PASS;
	if (drop == XROCE_DROP_none)
		drop = parse_roce(ctx, &p);
	if (p.has_bth)
		qp = qp_find(p.qpn);
	if (!steer_is_ours(&p, qp)) {
		const int verdict = steer_to_group(ctx, &p, drop);

		/* to a group unless it passes: then the next client with members has its turn */
		if (xroce_shared && verdict != XDP_PASS)
			turn_pass(ctx, &xroce_others);
		return verdict;
	}
	if (READ_ONCE(xroce_copying))
		flow_steer(ctx, p.rx_flags, p.l3, p.segments);
	if (drop == XROCE_DROP_none)
		drop = steer_check(&p, qp);
	if (drop != XROCE_DROP_none || !qp)
		return steer_drop(ctx, &p, qp, drop);

	if (steer_takes_ring(ctx))
		return deliver(ctx, &p, qp);
	if (wake_is_watched(ctx->rx_queue_index))
		p.rx_flags |= XROCE_RX_UNANNOUNCED;
	if (!cqe_write(ctx, &p, qp))
		return steer_drop(ctx, &p, qp, XROCE_DROP_metadata);
	if (!steer_redirect(ctx, qp))
		return steer_drop(ctx, &p, qp, XROCE_DROP_no_socket);
	trace_received(ctx, &p);
	count_received(qp, &p);
	if (!(p.rx_flags & XROCE_RX_UNANNOUNCED) || !wake_count_unannounced(ctx->rx_queue_index))
		wake_sleepers(ctx, qp, &p, ctx->rx_queue_index);
	return XDP_REDIRECT;
}

/*
 * The library runs this program (BPF_PROG_RUN) for packets that it has sent while a tracer runs
 * (user/run/trace_tx.c), so that they reach the tracers' rings like received packets. Clients of a
 * broker have its descriptor: a program of this type cannot be attached. For a client that may not
 * call bpf(2) the broker runs it (user/broker/client_report.c).
 */
SEC("syscall")
int xroce_trace_tx(struct xroce_trace_report *report)
{
	return trace_report(report);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
