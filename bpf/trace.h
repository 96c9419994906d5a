/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Copies packets for observers (xroce/trace.h). Decides nothing about a packet, and does not change
 * it. A tracer's ring is never waited for, and never wakes a thread: the tracer polls it.
 */
#ifndef BPF_TRACE_H
#define BPF_TRACE_H

#include <xroce/trace.h>

#include "copy.h"
#include "parse.h"

#ifndef TRACE_PAGE
/* Not const: tracers write it through its map. */
struct xroce_trace xroce_trace SEC(XROCE_MAP_TRACE);
#define TRACE_PAGE (&xroce_trace)
#endif

/* The sizes of inserted rings may differ from the prototype's. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, XROCE_TRACERS);
	__type(key, __u32);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_RINGBUF);
		__uint(max_entries, XROCE_RING_BYTES);
	});
} xroce_tracer SEC(".maps");

static __always_inline bool trace_is_on(void)
{
	return __builtin_expect(TRACE_PAGE->listening, 0);
}

/* The part of a record that describes the packet, and what a tracer selects by. */
struct trace_note {
	struct xroce_rx_cqe cqe; /* without the time */
	union address peer;
	__u32 want;	/* its kinds, XROCE_TRACE_* */
	__u32 count;	/* packets in it */
	__u8 kind, drop; /* as in struct xroce_record */
	__u8 pad[6];
};

/* Returns whether the slot's lease is valid; frees the slot of a tracer that has exited. */
static __always_inline bool trace_is_leased(const struct xroce_tracer *t, __u32 slot)
{
	if (bpf_ktime_get_ns() < t->until_ns)
		return true;
	__sync_fetch_and_and(&TRACE_PAGE->listening, ~(1u << slot));
	return false;
}

static __always_inline bool trace_is_wanted(const struct xroce_tracer *t,
					    const struct trace_note *note)
{
	const union address *peer = (const void *)t->peer;

	if (!(t->what & note->want))
		return false;
	return (!t->qpn || t->qpn == note->cqe.qpn) &&
	       (!t->has_peer ||
		(peer->half[0] == note->peer.half[0] && peer->half[1] == note->peer.half[1]));
}

/*
 * Writes a record with as much of the frame as is wanted. Returns 0, or 1 if there is no room. Not
 * inlined: without CAP_PERFMON the verifier refuses a stack slot that holds a pointer first and a
 * number later, which clang makes when it runs out of registers.
 */
static __attribute__((noinline)) int trace_copy(struct xdp_md *ctx, void *ring,
						const struct trace_note *note, __u32 wanted)
{
	const __u32 all = bpf_xdp_get_buff_len(ctx), len = all < wanted ? all : wanted;
	struct xroce_record *r = len >= sizeof(struct ethhdr) ? copy_reserve(ring, len) : NULL;

	if (!r)
		return 1;
	if (copy_load(ctx, r->data, len)) {
		bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP);
		return 1;
	}
	r->len = all;
	r->cqe = note->cqe;
	r->cqe.rx_time_ns = bpf_ktime_get_ns();
	r->kind = note->kind;
	r->drop = note->drop;
	r->queue = (__u16)ctx->rx_queue_index;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

/*
 * Shows the packet to the tracer at a slot, if selected. A global function, which the verifier
 * checks once, and not for each drop reason and slot.
 */
__attribute__((noinline)) int trace_show(struct xdp_md *ctx, const struct trace_note *note,
					 __u32 slot)
{
	struct xroce_tracer *t;
	void *ring;

	if (!note || slot >= XROCE_TRACERS)
		return 0;
	t = &TRACE_PAGE->tracer[slot];
	if (!trace_is_leased(t, slot) || !trace_is_wanted(t, note))
		return 0;
	ring = bpf_map_lookup_elem(&xroce_tracer, &slot);
	if (!ring || trace_copy(ctx, ring, note, t->bytes))
		__sync_fetch_and_add(&t->lost, note->count);
	else
		__sync_fetch_and_add(&t->recorded, note->count);
	return 0;
}

static __always_inline void trace_show_all(struct xdp_md *ctx, const struct trace_note *note)
{
	const __u32 in_use = TRACE_PAGE->listening;

	for (__u32 slot = 0; slot < XROCE_TRACERS; slot++)
		if (in_use & 1u << slot)
			trace_show(ctx, note, slot);
}

static __attribute__((noinline)) int trace_note_received(struct xdp_md *ctx,
							 const struct packet *p)
{
	struct trace_note note = {
		.cqe = { .qpn = p->qpn, .src_qpn = p->src_qpn, .imm = p->imm,
			 .byte_len = p->byte_len, .vlan_tci = p->vlan_tci, .opcode = p->opcode,
			 .flags = p->rx_flags, .tos = p->tos, .l3_offset = p->l3 },
		.peer = p->src,
		.want = XROCE_TRACE_RECEIVED,
		.count = p->segments,
		.kind = XROCE_RECORD_RECEIVED,
	};

	trace_show_all(ctx, &note);
	return 0;
}

/* why: the drop reason, and the QPN in the bits from 8 up. */
static __attribute__((noinline)) int trace_note_dropped(struct xdp_md *ctx, const struct packet *p,
							__u32 why)
{
	struct trace_note note = {
		.cqe = { .qpn = why >> 8, .flags = p->rx_flags, .l3_offset = p->l3 },
		.peer = p->src,
		.want = XROCE_TRACE_DROPPED,
		/* a frame not known to be a super-packet counts as one */
		.count = p->rx_flags & XROCE_RX_GSO ? p->segments : 1,
		.kind = XROCE_RECORD_DROPPED,
		.drop = (__u8)why,
	};

	trace_show_all(ctx, &note);
	return 0;
}

/* Shows a packet that goes to its QP: it can no longer be refused. */
static __always_inline void trace_received(struct xdp_md *ctx, const struct packet *p)
{
	if (trace_is_on())
		trace_note_received(ctx, p);
}

static __always_inline void trace_dropped(struct xdp_md *ctx, const struct packet *p,
					  enum xroce_drop drop)
{
	if (trace_is_on())
		trace_note_dropped(ctx, p, (p->has_bth ? p->qpn << 8 : 0) | (__u32)drop);
}

/* ---- reports of the library ---- */

/* Returns how many of these packets and events the tracer wants. */
static __always_inline __u64 trace_count(const struct xroce_tracer *t, __u32 packets, __u32 events)
{
	return (t->what & XROCE_TRACE_SENT ? packets : 0) +
	       (t->what & XROCE_TRACE_EVENTS ? events : 0);
}

/*
 * Passes a report to one tracer, whose reader selects by QP and peer. Returns which XROCE_TRACE_*
 * it wants. A global function, so that the verifier assumes nothing about slot except the check
 * here. Without CAP_PERFMON each slot must be computed alike, which a loop's constants are not.
 */
__attribute__((noinline)) int trace_report_one(struct xroce_trace_report *report, __u32 bytes,
					       __u32 slot)
{
	const struct xroce_trace_record *record;
	struct xroce_tracer *t;
	__u64 lost, count;
	__u32 what;
	void *ring;

	if (!report || bytes > XROCE_TRACE_ENTRIES_BYTES || slot >= XROCE_TRACERS)
		return 0;
	t = &TRACE_PAGE->tracer[slot];
	record = &report->record;
	what = t->what & (XROCE_TRACE_SENT | XROCE_TRACE_EVENTS);
	if (!what || !trace_is_leased(t, slot))
		return 0;
	lost = trace_count(t, record->lost_packets, record->lost_events);
	count = trace_count(t, record->packets, record->events);
	ring = bpf_map_lookup_elem(&xroce_tracer, &slot);
	if (!ring ||
	    bpf_ringbuf_output(ring, report, sizeof(struct xroce_record) + sizeof(*record) + bytes,
			       BPF_RB_NO_WAKEUP))
		lost += count;
	else
		__sync_fetch_and_add(&t->recorded, count);
	if (lost)
		__sync_fetch_and_add(&t->lost, lost);
	return (int)what;
}

/*
 * Passes a report to all tracers, as one record. Returns which XROCE_TRACE_* they want. In a global
 * function report is memory, parts of which may have a length known only at run time; in a
 * program's context they may not (from Linux 6.1).
 */
__attribute__((noinline)) int trace_report(struct xroce_trace_report *report)
{
	__u32 in_use = TRACE_PAGE->listening, bytes, wanted = 0;
	const __u64 now_ns = bpf_ktime_get_ns();
	struct xroce_record *r;
	__u64 time_ns;

	if (!report)
		return 0;
	bytes = report->record.bytes;
	if (bytes > XROCE_TRACE_ENTRIES_BYTES)
		return 0;
	r = (void *)report->head;
	__builtin_memset(r, 0, sizeof(*r));
	time_ns = report->record.time_ns;
	r->cqe.rx_time_ns = time_ns && now_ns - time_ns < XROCE_TRACE_LEASE ? time_ns : now_ns;
	r->kind = XROCE_RECORD_TRACE;
	r->len = sizeof(report->record) + bytes;
	for (__u32 slot = 0; slot < XROCE_TRACERS; slot++)
		if (in_use & 1u << slot)
			wanted |= (__u32)trace_report_one(report, bytes, slot);
	return (int)wanted;
}

#endif
