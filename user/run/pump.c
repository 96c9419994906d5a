/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The pump moves frames: from sockets to engine_input(), and from engine_output() to the wire or,
 * for frames to this process, back to engine_input(). It is one of the engine's two callers, and
 * keeps the engine's rule that no input happens inside an output. Frames to this process wait in a
 * short queue, in the transmit frames in which they were written.
 *
 * With several shards, frames for a QP of another shard are handed over to that shard
 * (migration.h).
 *
 * One call does a bounded amount of work. resume_ns tells when work is left, for the application or
 * the worker.
 */
#include "../os/clock.h"
#include "fault.h"
#include "shard.h"

#define TX_BATCH	 128u /* looped frames fit into struct shard's loop */
_Static_assert(TX_BATCH <= XSK_TX_SLOTS, "struct shard's loop");
/* output batches in one call: a ping-pong with oneself would never end */
#define ROUNDS_MAX	 8
#define BLOCKED_MIN_NS	 (20 * NSEC_PER_USEC)
#define LENT_NS		 NSEC_PER_MSEC /* until another look for frames that other shards hold */
#define BLOCKED_MAX_NS	 (5 * NSEC_PER_MSEC)
/* from a packet to a look at the sockets' losses */
#define ACCOUNT_NS	 (100 * NSEC_PER_MSEC)

struct input {
	struct shard *s;
	u64 now_ns;
	bool is_ring; /* the frames are in a ring buffer, in which none can be kept */
};

/* Takes frames from other shards, for QPs of this one. */
static void pump_input_handed(void *arg, const struct engine_frame *frames, u32 n)
{
	const struct input *in = arg;
	struct engine *e = in->s->engine;
	u32 given = 0;

	for (u32 i = 0; i < n; i++) {
		const enum raw_copy copy = raw_hinted_copy(frames[i].hint);

		if (likely(copy == RAW_COPY_NONE))
			continue;
		engine_input_batch(e, frames + given, i - given, in->now_ns, NULL);
		raw_copy(e, copy, 0, &frames[i].frame, in->now_ns);
		given = i + 1;
	}
	engine_input_batch(e, frames + given, n - given, in->now_ns, NULL);
}

/* Hands a frame to the shard of its QP; groups and flows belong to the first shard. */
static void pump_hand_over(const struct input *in, const struct rx_frame *frame,
			   const struct xroce_rx_cqe *hint, bool looped)
{
	const struct qp *qp =
		raw_is_hinted(hint) ? NULL : engine_frame_qp(in->s->engine, frame);
	struct shard *owner = in->s->all->shard;

	if (likely(qp)) {
		migration_count(in->s, qp, in->now_ns);
		owner = shard_owner(in->s->all, qp);
	}
	handover_give(in->s, owner, frame, hint, looped);
	in->s->io->stats->rx_handed++;
}

/* Counts packets that the engine does not get, as if the engine had refused them. */
static void pump_refuse(const struct input *in, enum xroce_drop reason, u32 n)
{
	in->s->io->stats->rx_packets += n;
	((__u64 *)in->s->io->drops)[XROCE_DROP_INDEX(reason)] += n;
}

/* Hands a copy in a transmit frame to the shard of its QP. Without such a frame it is lost. */
static rare void pump_hand_over_copy(const struct input *in, const struct engine_frame *f)
{
	struct rx_frame copy = { .data = tx_frame(in->s->io->tx), .len = f->frame.len };

	if (!copy.data) {
		pump_refuse(in, XROCE_DROP_not_handed, 1);
		return;
	}
	memcpy((u8 *)(uintptr_t)copy.data, f->frame.data, copy.len);
	pump_hand_over(in, &copy, f->hint, true);
}

/* Takes frames. Frames that were handed over leave the batch. */
static void pump_input(const struct input *in, struct engine_frame *frames, u32 n)
{
	u64 away = 0;

	engine_input_batch(in->s->engine, frames, n, in->now_ns, &away);
	for (; unlikely(away); away &= away - 1) {
		struct engine_frame *f = &frames[__builtin_ctzll(away)];

		if (in->is_ring) {
			pump_hand_over_copy(in, f);
			continue;
		}
		pump_hand_over(in, &f->frame, f->hint, false);
		f->frame.data = NULL;
	}
}

/*
 * Takes one segment of a super-packet. The next segment reuses its memory, so another shard gets a
 * copy. Returns false if its ICRC is wrong.
 */
static bool pump_input_segment(const struct input *in, struct engine_frame *frame)
{
	u64 away = 0;

	if (unlikely(in->is_ring && in->s->all->num > 1)) {
		engine_input_batch(in->s->engine, frame, 1, in->now_ns, &away);
		if (away)
			pump_hand_over_copy(in, frame);
		return true;
	}
	return engine_input(in->s->engine, frame->hint, &frame->frame, in->now_ns) !=
	       XROCE_DROP_icrc;
}

/*
 * Takes the segments of a super-packet one by one: the header of each overwrites the end of the
 * previous one. If the ICRC of the first is wrong, no RoCEv2 sender has made the super-packet, and
 * the other segments are refused unseen, for the same reason; but not from a UDP socket, which
 * joins the packets of any sender. Returns false if it cannot be cut.
 */
static bool pump_cut(const struct input *in, struct xroce_sock *stats, const struct xsk_batch *b,
		     u32 i)
{
	struct segments *super = &in->s->segments;
	struct engine_frame frame = { .hint = b->frame[i].hint };

	if (!frame.hint || !(frame.hint->flags & XROCE_RX_GSO) ||
	    b->odd_parts[i] > SEGMENTS_PARTS_MAX)
		return false;
	memcpy(super->part, &b->part[b->odd_first[i]], b->odd_parts[i] * sizeof(*super->part));
	super->parts = b->odd_parts[i];
	if (!segments_begin(super, frame.hint->l3_offset))
		return false;
	stats->rx_super_packets++;
	stats->rx_super_segments += segments_left(super);
	if (segments_next(super, &frame.frame) && unlikely(!pump_input_segment(in, &frame)) &&
	    !engine_joins_senders(in->s->engine)) {
		pump_refuse(in, XROCE_DROP_icrc, segments_left(super));
		return true;
	}
	while (segments_next(super, &frame.frame))
		pump_input_segment(in, &frame);
	return true;
}

/* Takes a packet that xsk.h calls odd. */
static void pump_input_odd(const struct input *in, struct xroce_sock *stats,
			   const struct xsk_batch *b, u32 i)
{
	if (!b->odd_parts[i])
		pump_refuse(in, XROCE_DROP_descriptor, 1);
	else if (!pump_cut(in, stats, b, i))
		pump_refuse(in, XROCE_DROP_multibuffer, 1);
}

static u32 pump_receive_from(const struct input *in, struct xsk_set *set, struct xsk *x)
{
	struct xsk_batch b;
	const u32 taken = xsk_peek(set, x, &b);
	u32 done = 0;

	if (!taken)
		return 0;
	for (; unlikely(b.odd); b.odd &= b.odd - 1) {
		const u32 i = (u32)__builtin_ctzll(b.odd);

		pump_input(in, b.frame + done, i - done);
		pump_input_odd(in, x->stats, &b, i);
		done = i + 1;
	}
	pump_input(in, b.frame + done, b.n - done);
	xsk_release(set, x, &b);
	return taken;
}

/* Takes the copy of a super-packet, segment by segment. */
static void pump_cut_copy(const struct input *in, const struct xsk_batch *b, u32 i)
{
	const struct xroce_rx_cqe *hint = b->frame[i].hint;
	struct segments *super = &in->s->segments;
	struct rx_frame frame;

	if (!b->odd_parts[i] || !hint)
		return;
	super->part[0] = b->part[b->odd_first[i]];
	super->parts = 1;
	if (!segments_begin(super, hint->l3_offset))
		return;
	while (segments_next(super, &frame))
		raw_copy(in->s->engine, (enum raw_copy)hint->opcode, hint->rx_time_ns, &frame,
			 in->now_ns);
}

/* Takes copies that XDP has made (bpf/sniff.h) of frames that went elsewhere. */
static u32 pump_receive_copies(const struct input *in, struct xsk_set *set)
{
	struct xsk_batch b;
	const u32 taken = xsk_peek(set, set->xsk, &b);

	if (!taken)
		return 0;
	for (u32 i = 0; i < b.n; i++) {
		const struct engine_frame *f = &b.frame[i];

		if (b.odd >> i & 1)
			pump_cut_copy(in, &b, i);
		else
			raw_copy(in->s->engine, (enum raw_copy)f->hint->opcode, f->hint->rx_time_ns,
				 &f->frame, in->now_ns);
	}
	xsk_release(set, set->xsk, &b);
	return taken;
}

static u32 pump_receive(struct shard *s, u64 now_ns)
{
	const struct input in = { .s = s, .now_ns = now_ns };
	struct xsk_set *set = &s->io->xsks, *local = xsk_local(set);
	u32 n = 0;

	for (u32 i = 0; i < set->count; i++)
		n += pump_receive_from(&in, set, &set->xsk[i]);
	for (; unlikely(local != NULL); local = xsk_local(local))
		n += local->copies ? pump_receive_copies(&in, local) :
				     pump_receive_from(&(struct input){ s, now_ns, true }, local,
						       local->xsk);
	return n;
}

bool pump_take_handed(struct shard *s, u64 now_ns)
{
	struct input in = { .s = s, .now_ns = now_ns };

	fault_watch(now_ns);
	return handover_take(s, pump_input_handed, &in) > 0;
}

/* Delivers a copy of a sent frame to the first shard, which owns the raw packet QPs. */
static void pump_give_copy(const struct input *in, const struct loop_frame *loop)
{
	const struct xroce_rx_cqe hint = { .opcode = (u8)loop->copy };
	const struct rx_frame frame = { .data = loop->frame, .len = loop->len };

	if (in->s->number) {
		handover_give(in->s, in->s->all->shard, &frame, &hint, true);
		return;
	}
	raw_copy(in->s->engine, loop->copy, 0, &frame, in->now_ns);
	tx_give_back(in->s->io->tx, loop->frame);
}

/* Takes frames to this process, and copies of sent frames, in the order in which they were sent. */
static void pump_receive_looped(struct shard *s, u64 now_ns)
{
	const struct input in = { .s = s, .now_ns = now_ns };

	for (u32 i = 0; i < s->loop_count; i++) {
		const struct engine_frame f = { .frame = { .data = s->loop[i].frame,
							   .len = s->loop[i].len } };
		u64 away = 0;

		if (unlikely(s->loop[i].copy != RAW_COPY_NONE)) {
			pump_give_copy(&in, &s->loop[i]);
			continue;
		}
		s->io->stats->loopback_packets++;
		engine_input_batch(s->engine, &f, 1, now_ns, &away);
		if (away)
			pump_hand_over(&in, &f.frame, NULL, true);
		else
			tx_give_back(s->io->tx, s->loop[i].frame);
	}
	s->loop_count = 0;
}

static bool pump_has_own_address(const struct shard *s, const u8 *frame)
{
	return memcmp(frame, s->all->mac, sizeof(s->all->mac)) == 0;
}

/*
 * Returns whether a QP of this process, other than QP 1, is the destination. Each process has a QP
 * 1, so that number does not identify the process.
 */
static bool pump_is_to_own_qp(const struct shard *s, const u8 *frame, u32 len)
{
	const struct rx_frame f = { .data = frame, .len = len };
	const struct qp *qp = engine_frame_qp(s->engine, &f);

	return qp && qp->qpn != XROCE_CM_QPN;
}

/* Returns whether frames to a multicast group return here only if the pump loops them. */
static bool pump_loops_groups(const struct shard *s)
{
	return unlikely(group_any(s->engine)) && !s->all->shared;
}

enum route {
	ROUTE_WIRE,  /* to the interface */
	ROUTE_LOOP,  /* to a QP of this process: back to the engine */
	ROUTE_BOTH,  /* to the interface, and a copy back to the engine */
	ROUTE_LOCAL, /* to QPs of other processes on the interface, by local_tx */
	ROUTE_NONE,  /* to a multicast group on lo that no QP is attached to */
};

/*
 * Returns the route of a frame from the engine. On lo every unicast address is the interface's own,
 * and every address for the frame of a raw packet QP (raw). If other processes share the interface,
 * a frame to its own address stays here only if the QP is ours. Then the broker's programs also
 * make all local copies of a frame to a multicast group. While there are raw packet QPs, no other
 * process shares the interface, and their multicast frames return here if a flow takes them.
 */
static per_packet enum route pump_route(const struct shard *s, const u8 *frame, u32 len, bool raw)
{
	const struct rx_frame rx = { .data = frame, .len = len };
	const bool is_own = pump_has_own_address(s, frame) || (raw && s->all->loopback);
	bool takes;

	if (is_own && (!s->all->shared || pump_is_to_own_qp(s, frame, len)))
		return ROUTE_LOOP;
	if (likely(!is_own && !(frame[0] & 1)))
		return ROUTE_WIRE;
	if (!raw && s->io->local_tx)
		return ROUTE_LOCAL;
	if (is_own)
		return ROUTE_WIRE;
	takes = raw ? raw_takes_frame(s->engine, &rx) :
		      pump_loops_groups(s) && group_takes_frame(s->engine, &rx);
	if (s->all->loopback && !s->all->shared)
		return takes ? ROUTE_LOOP : ROUTE_NONE;
	return takes ? ROUTE_BOTH : ROUTE_WIRE;
}

/* Sends a frame to QPs of other processes, by the way that only such frames take. */
static per_packet void pump_send_locally(struct shard *s, u8 *frame, u32 len)
{
	u8 *copy = tx_frame(s->io->local_tx);

	memcpy(copy, frame, len);
	tx_give_back(s->io->tx, frame);
	tx_commit(s->io->local_tx, copy, len);
}

static void pump_loop(struct shard *s, u8 *frame, u32 len)
{
	s->loop[s->loop_count++] = (struct loop_frame){ frame, len, RAW_COPY_NONE };
}

/*
 * Copies a frame for local delivery into another transmit frame. If there is none, the copy is lost
 * and counted. Returns how many frames were taken: 0 or 1.
 */
static u32 pump_copy(struct shard *s, const u8 *frame, u32 len, enum raw_copy kind)
{
	u8 *copy = tx_frame(s->io->tx);

	if (unlikely(!copy)) {
		s->io->stats->tx_copies_lost++;
		return 0;
	}
	memcpy(copy, frame, len);
	s->loop[s->loop_count++] = (struct loop_frame){ copy, len, kind };
	return 1;
}

/*
 * Sends a frame by its route; raw: unchanged, as a raw packet QP's. Returns how many further frames
 * were taken.
 */
static per_packet u32 pump_send(struct shard *s, u8 *frame, u32 len, enum route route, bool raw)
{
	u32 more = 0;

	switch (route) {
	case ROUTE_LOOP:
		pump_loop(s, frame, len);
		break;
	case ROUTE_LOCAL:
		pump_send_locally(s, frame, len);
		break;
	case ROUTE_NONE:
		tx_give_back(s->io->tx, frame);
		break;
	case ROUTE_BOTH:
		more = pump_copy(s, frame, len, RAW_COPY_NONE);
		/* fallthrough */
	case ROUTE_WIRE:
		if (raw)
			tx_commit_as_is(s->io->tx, frame, len);
		else
			tx_commit(s->io->tx, frame, len);
		break;
	}
	return more;
}

/*
 * Sends a frame of a raw packet QP. Flows with copies get one of a frame that does not return here.
 * Returns how many further frames were taken.
 */
static u32 pump_send_raw(struct shard *s, u8 *frame, u32 len)
{
	const enum route route = pump_route(s, frame, len, true);
	u32 more = 0;

	if (route == ROUTE_WIRE && raw_has_copies(s->engine))
		more = pump_copy(s, frame, len, RAW_COPY_SENT);
	return more + pump_send(s, frame, len, route, true);
}

static u32 pump_room(struct shard *s, u64 now_ns)
{
	const u32 room = min_u32(tx_room(s->io->tx, now_ns), TX_BATCH);

	/* room for the copies of the last frame, to a group and to flows */
	if (unlikely(raw_has_copies(s->engine)))
		return room > 2 ? room - 2 : 0;
	if (pump_loops_groups(s) || unlikely(raw_num_flows(s->engine)))
		return room ? room - 1 : 0;
	return likely(!s->io->local_tx) ? room :
					  min_u32(room, tx_room(s->io->local_tx, now_ns));
}

static bool pump_flush(struct shard *s)
{
	const bool local = likely(!s->io->local_tx) || tx_flush(s->io->local_tx);

	return tx_flush(s->io->tx) && local;
}

enum sent { SENT_ALL, SENT_BATCH, SENT_BLOCKED };

/*
 * Sends one batch. Returns SENT_ALL if the engine has no more, SENT_BATCH if it may have more,
 * SENT_BLOCKED if there is no room or the interface takes none now.
 */
static enum sent pump_send_batch(struct shard *s, u64 now_ns, u32 *moved)
{
	struct tx *tx = s->io->tx;
	const bool copies = raw_has_copies(s->engine);
	u32 room = pump_room(s, now_ns);
	enum sent result = room ? SENT_BATCH : SENT_BLOCKED;

	for (u32 n = 0; n < room; n++) {
		u8 *frame = tx_frame(tx);
		u32 len = engine_output(s->engine, frame, UMEM_TX_SLOT_BYTES, now_ns);
		enum route route;

		/* 0, or ENGINE_RAW */
		if (unlikely(len - 1 >= ENGINE_RAW - 1)) {
			if (len) {
				++*moved;
				n += pump_send_raw(s, frame, len & ~ENGINE_RAW);
				continue;
			}
			tx_give_back(tx, frame);
			result = SENT_ALL;
			break;
		}
		++*moved;
		route = pump_route(s, frame, len, false);
		if (unlikely(s->trace_tx))
			trace_tx_sent(s, frame, len, route == ROUTE_LOOP);
		if (unlikely(copies))
			n += pump_copy(s, frame, len,
				       s->all->loopback || pump_has_own_address(s, frame) ?
					       RAW_COPY_LOOPED :
					       RAW_COPY_SENT);
		n += pump_send(s, frame, len, route, false);
	}
	/* before the frames, whose answers may arrive at once */
	if (unlikely(s->trace_tx))
		trace_tx_all(s);
	return pump_flush(s) ? result : SENT_BLOCKED;
}

/*
 * Reads the sockets' statistics once, some time after packets came. A socket drops packets while
 * its rings are full, so packets follow the drops. A ring buffer has no such statistics.
 */
static void pump_account(struct shard *s, bool came, u64 now_ns)
{
	const u64 account_ns = atomic_load_explicit(&s->account_ns, memory_order_relaxed);

	if (likely(now_ns < account_ns)) {
		if (came && account_ns == NSEC_NEVER && !xsk_is_ring(&s->io->xsks))
			atomic_store_explicit(&s->account_ns, now_ns + ACCOUNT_NS,
					      memory_order_relaxed);
		return;
	}
	xsk_account(&s->io->xsks);
	atomic_store_explicit(&s->account_ns, NSEC_NEVER, memory_order_relaxed);
}

/*
 * Returns whether due time-outs may expire. They wait until the rings' content at the time of the
 * first look is taken, as the answer may be in it: a thread that was delayed is late itself. Later
 * packets are not waited for, as they may arrive as fast as they are taken.
 */
static bool pump_may_expire(struct shard *s, u64 now_ns)
{
	const bool due = now_ns >= engine_deadline_ns(s->engine);

	if (unlikely(due && !s->due_seen))
		xsk_mark(&s->io->xsks);
	s->due_seen = due && !xsk_is_past_mark(&s->io->xsks);
	return due && !s->due_seen;
}

/* Takes input and runs time-outs. Returns whether there was input. */
static bool pump_take_in(struct shard *s, u64 now_ns)
{
	u32 received, handed;

	trace_tx_begin(s);
	if (s->handover.lent)
		handover_take_back(s);
	received = pump_receive(s, now_ns);
	/* empties the rings between shards */
	handed = handover_take(s, pump_input_handed, &(struct input){ .s = s, .now_ns = now_ns });

	pump_account(s, received > 0, now_ns);
	if (pump_may_expire(s, now_ns))
		engine_expire(s->engine, now_ns);
	return received + handed > 0;
}

/* Sends the engine's output, within bounds. Returns whether anything was sent. */
static bool pump_transmit(struct shard *s, u64 now_ns)
{
	const u32 posts = defer_take(&s->defer);
	u64 resume_ns = NSEC_NEVER;
	enum sent sent = SENT_BATCH;
	u32 moved = 0;

	/* The loop queue is empty at the start of a round, and a round sends less than it holds. */
	for (u32 round = 0; round < ROUNDS_MAX && sent == SENT_BATCH; round++) {
		sent = pump_send_batch(s, now_ns, &moved);
		if (s->loop_count) {
			pump_receive_looped(s, now_ns);
			if (sent == SENT_ALL)
				sent = SENT_BATCH; /* there may be answers */
		}
	}

	if (sent == SENT_BATCH)
		resume_ns = now_ns;
	if (handover_is_short(s))
		resume_ns = min_u64(resume_ns, now_ns + LENT_NS);
	if (sent == SENT_BLOCKED) {
		s->io->stats->tx_no_room++;
		s->blocked_ns =
			s->blocked_ns ? min_u64(2 * s->blocked_ns, BLOCKED_MAX_NS) : BLOCKED_MIN_NS;
		resume_ns = min_u64(resume_ns, now_ns + s->blocked_ns);
	} else {
		s->blocked_ns = 0;
	}
	atomic_store_explicit(&s->resume_ns, resume_ns, memory_order_relaxed);
	if (moved)
		/* sending takes time: read the clock again */
		defer_sent(&s->defer, posts, clock_now_ns());
	return moved > 0;
}

/* Runs once the interface is gone: flushes posted work and discards output. */
static bool pump_run_gone(struct shard *s, u64 now_ns)
{
	u8 frame[PACKET_FRAME_MAX];

	pump_take_handed(s, now_ns);
	pump_account(s, false, now_ns);
	engine_expire(s->engine, now_ns);
	while (engine_output(s->engine, frame, sizeof(frame), now_ns))
		;
	defer_take(&s->defer);
	s->blocked_ns = 0;
	atomic_store_explicit(&s->resume_ns, NSEC_NEVER, memory_order_relaxed);
	return false;
}

bool pump_run(struct shard *s, u64 now_ns)
{
	bool came;

	if (s->all->dead)
		return false;
	fault_watch(now_ns);
	if (unlikely(atomic_load_explicit(&s->all->gone, memory_order_relaxed)))
		return pump_run_gone(s, now_ns);
	came = pump_take_in(s, now_ns);
	return pump_transmit(s, now_ns) || came;
}

void pump_settle(struct shard *s, u64 now_ns)
{
	for (u32 i = 0; i < SETTLE_ROUNDS && pump_run(s, now_ns); i++)
		;
	if (!s->all->dead)
		xsk_account(&s->io->xsks);
}

void pump_poll(struct shard *s, const struct cq *cq, u64 now_ns)
{
	if (s->all->dead)
		return;
	fault_watch(now_ns);
	if (unlikely(atomic_load_explicit(&s->all->gone, memory_order_relaxed))) {
		pump_run_gone(s, now_ns);
		return;
	}
	pump_take_in(s, now_ns);
	/* Every other run sends: a caller that always finds completions must send ACKs. */
	if (!defer_has_acks(&s->defer) && !cq_empty(cq) && !cq_is_armed(cq) &&
	    !defer_rests(&s->defer, now_ns) && worker_may_wait(s)) {
		defer_acks(&s->defer);
		atomic_store_explicit(&s->resume_ns, now_ns, memory_order_relaxed);
		return;
	}
	pump_transmit(s, now_ns);
}
