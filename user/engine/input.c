/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Received packets: finds the QP of a frame, checks that it may have the frame and that the frame
 * is intact, and passes it to the protocol; in batches, with prefetching.
 */
#include "congestion.h"
#include "credit.h"
#include "internal.h"
#include "requester.h"
#include "responder.h"
#include "stat.h"

/* Frames ahead for which engine_input_batch() prefetches. */
enum { AHEAD_QP = 6, AHEAD_WQE = 3, AHEAD_MAX = 8 };

static bool engine_state_accepts(const struct qp *qp)
{
	enum qp_state state = qp_state(qp);

	return state >= QPS_RTR && state != QPS_ERR;
}

/* CNPs, probes and answers belong to no transport service. */
static bool engine_transport_fits(const struct qp *qp, const struct packet *p)
{
	if (p->flags & OP_CREDIT)
		return qp->transport == XROCE_UC || qp->transport == XROCE_UD;
	if (p->flags & OP_CNP)
		return qp->transport != XROCE_RAW;
	return OPCODE_TRANSPORT(p->opcode) == (u32)qp->transport;
}

/* Checks that XDP's steering does as well; this one is authoritative. */
static enum xroce_drop engine_check_steering(const struct qp *qp, const struct packet *p)
{
	if (!engine_transport_fits(qp, p))
		return XROCE_DROP_qp_transport;
	if (!engine_state_accepts(qp))
		return XROCE_DROP_qp_state;
	if (!roce_pkey_matches(p->pkey, qp->pkey))
		return XROCE_DROP_pkey;
	if (qp->transport == XROCE_UD)
		return p->qkey == qp->qkey ? XROCE_DROP_none : XROCE_DROP_qkey;
	if (!gid_equal(&p->src, &qp->path.peer) || !gid_equal(&p->dst, &qp->path.local))
		return XROCE_DROP_peer;
	return XROCE_DROP_none;
}

enum xroce_drop engine_check_copy(const struct qp *qp, const struct packet *p)
{
	return engine_check_steering(qp, p);
}

/* Returns the kept headers of packets of this opcode. */
static struct header_in *engine_kept_header(struct qp *qp, u8 opcode)
{
	return opcode_flags(opcode) & OP_RESPONSE ? &qp->req.response : &qp->resp.request;
}

/* A first look at a frame, before any check. */
struct peek {
	struct qp *qp;		/* the entry in the QPN's slot, with any number; or NULL */
	struct header_in *kept;	/* of that QP, for this kind of opcode */
	u32 qpn;
};

static inline struct qp *engine_peek(const struct engine *e, const struct rx_frame *frame,
				     struct peek *look)
{
	struct qp *qp = NULL;
	u32 qpn;
	u8 opcode;

	if (likely(header_in_peek(frame, &qpn, &opcode)) && (qp = e->qp[qpn % XROCE_MAX_QP])) {
		look->kept = engine_kept_header(qp, opcode);
		look->qpn = qpn;
	}
	return look->qp = qp;
}

#define ETH_BYTES 14u /* of a frame like the last one, which has no tag */

struct engine_unknown {
	struct icrc_unknown of[(ICRC_BEFORE_TAIL + PACKET_FRAME_MAX) / 4 + 1]; /* by length */
};

int engine_unknown_make(struct engine *e)
{
	if (!e->config.unknown_ids)
		return 0;
	e->icrc_plain = 1ull << 32;
	e->unknown = calloc(1, sizeof(*e->unknown));
	return e->unknown ? 0 : -ENOMEM;
}

bool engine_joins_senders(const struct engine *e)
{
	return e->config.unknown_ids;
}

static struct icrc_unknown *engine_unknown_of(struct engine *e, u32 bytes)
{
	struct icrc_unknown *u;

	if (!e->unknown || bytes / 4 >= ARRAY_SIZE(e->unknown->of))
		return NULL;
	u = &e->unknown->of[bytes / 4];
	if (unlikely(!u->tail))
		icrc_unknown_init(u, bytes - ICRC_BEFORE_TAIL - ROCE_ICRC_BYTES);
	return u;
}

bool engine_explains(struct engine *e, u32 bytes, u32 difference)
{
	const struct icrc_unknown *u = engine_unknown_of(e, bytes);

	return u && icrc_unknown_explains(u, difference);
}

/* Returns whether a packet of a connected QP's peer, of this length and kind, is intact. */
static bool engine_peer_icrc_ok(struct engine *e, struct qp *qp, const struct header_in *kept,
				bool is_ipv6, u32 bytes, u32 difference)
{
	const bool is_response = kept == &qp->req.response;
	const struct icrc_unknown *u = is_ipv6 ? NULL : engine_unknown_of(e, bytes);

	if (!u)
		return !difference;
	return icrc_peer_accepts(&qp->icrc_peer[is_response], u,
				 is_response ? qp->req.unacked_psn : qp->resp.seq.expected_psn,
				 difference);
}

/*
 * Checks a frame that differs from the last of its kind: its QP, whether it may have the frame, and
 * the ICRC. Returns the decoded packet, or the drop reason. XROCE_DROP_not_handed: another engine
 * owns the QP and may be using it now. XROCE_DROP_not_roce: nothing was decoded.
 */
static __attribute__((noinline)) enum xroce_drop
check_frame(struct engine *e, const struct rx_frame *frame, const struct xroce_rx_cqe *hint,
	    struct packet *p, struct qp **to)
{
	enum xroce_drop drop = raw_is_hinted(hint) ? XROCE_DROP_not_roce : packet_parse(p, frame);
	struct header_in *kept;
	struct qp *qp;
	u32 difference;

	if (drop != XROCE_DROP_none)
		return drop;
	qp = *to = engine_find_qp(e, p->dest_qpn);
	if (!qp)
		return XROCE_DROP_qp_unknown;
	if (unlikely(qp_engine(qp) != e))
		return XROCE_DROP_not_handed;
	drop = engine_check_steering(qp, p);
	if (drop != XROCE_DROP_none)
		return drop;
	difference = packet_icrc_difference(p);
	if (qp->transport == XROCE_UD || p->flags & (OP_CNP | OP_CREDIT))
		return engine_icrc_ok(e, p, difference) ? XROCE_DROP_none : XROCE_DROP_icrc;
	kept = engine_kept_header(qp, p->opcode);
	if (!engine_peer_icrc_ok(e, qp, kept, p->is_ipv6, packet_bytes(p), difference))
		return XROCE_DROP_icrc;
	header_in_learn(kept, frame, p);
	return XROCE_DROP_none;
}

/* Passes a decoded and checked packet to its part of the protocol. */
static per_packet enum xroce_drop engine_dispatch(struct engine *e, struct qp *qp,
						  const struct packet *p,
						  const struct xroce_rx_cqe *hint, u64 now_ns)
{
	if (unlikely(p->flags & OP_CNP))
		return qp->transport == XROCE_UD ? XROCE_DROP_none : rate_cut(e, qp, now_ns);
	if (unlikely((p->tos & 3) == 3) && p->flags & OP_PAYLOAD)
		rate_marked(e, qp, now_ns);
	if (qp->transport == XROCE_UD)
		return datagram_input(e, qp, p, hint, now_ns);
	if (p->flags & OP_RESPONSE)
		return completer_input(e, qp, p, now_ns);
	return responder_input(e, qp, p, hint, now_ns);
}

/* Returns whether a matching frame with this difference, not e->icrc_plain, is intact. */
static rare bool engine_alike_explains(struct engine *e, const struct peek *look, u32 difference)
{
	return engine_peer_icrc_ok(e, look->qp, look->kept, look->kept->is_ipv6,
				   look->kept->frame_len - ETH_BYTES, difference);
}

/* Returns whether a matching frame with this difference is intact. */
static inline bool engine_alike_icrc_ok(struct engine *e, const struct peek *look, u32 difference)
{
	return likely(difference == e->icrc_plain) || engine_alike_explains(e, look, difference);
}

/*
 * Checks a frame, with bth, that matches the last one of its kind, whose addresses and P_Key were
 * checked. An ACK needs no further decoding and is handled at once: *done. Others are decoded
 * unless they are dropped.
 */
static per_packet enum xroce_drop engine_check_alike(struct engine *e, const struct rx_frame *frame,
						     const struct peek *look, const struct bth *bth,
						     struct packet *p, bool *done, u64 now_ns)
{
	u32 aeth, difference;

	if (unlikely(!engine_state_accepts(look->qp)))
		return XROCE_DROP_qp_state;
	if (opcode_flags(bth->opcode) & OP_ACK) {
		difference = header_in_ack_difference(look->kept, &e->icrc, bth, &aeth);
		if (unlikely(!engine_alike_icrc_ok(e, look, difference)))
			return XROCE_DROP_icrc;
		*done = true;
		return completer_ack(e, look->qp, be32toh(bth->ack_psn) & ROCE_PSN_MASK,
				     (u8)(aeth >> 24), aeth & MSN_MASK, now_ns);
	}
	header_in_decode(look->kept, frame, bth, p);
	difference = header_in_difference(look->kept, &e->icrc, p);
	return likely(engine_alike_icrc_ok(e, look, difference)) ? XROCE_DROP_none :
								   XROCE_DROP_icrc;
}

/* Counts a packet and its drop reason; returns the reason. */
static inline enum xroce_drop engine_count_input(struct engine *e, enum xroce_drop drop)
{
	e->stats->rx_packets++;
	if (unlikely(drop != XROCE_DROP_none))
		engine_drop(e, drop);
	return drop;
}

/*
 * Handles a packet that no QP has by its number. A decoded one may be for a multicast group. A
 * frame that is not RoCEv2 may match flows: XDP said so, or it comes from a QP of this device.
 */
static rare enum xroce_drop engine_refuse(struct engine *e, const struct packet *p,
					  const struct rx_frame *frame,
					  const struct xroce_rx_cqe *hint, enum xroce_drop drop,
					  u64 now_ns)
{
	if (drop == XROCE_DROP_qp_unknown)
		drop = group_input(e, p, frame, hint, now_ns);
	else if (drop == XROCE_DROP_not_roce && raw_num_flows(e) &&
		 (!hint || raw_is_hinted(hint)))
		drop = raw_input(e, hint, frame, now_ns);
	return drop == XROCE_DROP_not_handed ? drop : engine_count_input(e, drop);
}

/* Counts the drop for a QP of this engine with the frame's number. */
static rare void engine_refuse_for(struct engine *e, const struct peek *look,
				   const struct rx_frame *frame, enum xroce_drop drop)
{
	struct qp *qp = look->qp;

	if (!qp || qp->qpn != look->qpn || qp_engine(qp) != e)
		return;
	stat_input(qp, frame->len + frame->frag_len);
	stat_drop_of(qp, drop);
}

/* XROCE_DROP_not_handed is not counted here: the caller may hand the frame to the QP's owner. */
static per_packet enum xroce_drop engine_input_frame(struct engine *e,
						     const struct xroce_rx_cqe *hint,
						     const struct rx_frame *frame,
						     const struct peek *look, u64 now_ns)
{
	const struct bth *bth = NULL;
	struct qp *qp = look->qp;
	enum xroce_drop drop;
	bool done = false;
	struct packet p;

	e->now_ns = now_ns;
	if (qp && qp->qpn == look->qpn && likely(qp_engine(qp) == e))
		bth = header_in_match(look->kept, frame);
	if (likely(bth)) {
		stat_row(e, qp, look->kept);
		drop = engine_check_alike(e, frame, look, bth, &p, &done, now_ns);
	} else {
		drop = check_frame(e, frame, hint, &p, &qp);
		if (unlikely(drop != XROCE_DROP_none)) {
			stat_row_end(e);
			engine_refuse_for(e, look, frame, drop);
			return engine_refuse(e, &p, frame, hint, drop, now_ns);
		}
		stat_row_unlike(e, qp, engine_kept_header(qp, p.opcode), frame);
	}
	if (likely(drop == XROCE_DROP_none) && !done)
		drop = unlikely(p.flags & OP_CREDIT) ?
			       credit_input(e, qp, &p, frame->data, now_ns) :
			       engine_dispatch(e, qp, &p, hint, now_ns);
	e->stats->rx_packets++;
	if (unlikely(drop != XROCE_DROP_none))
		stat_drop(e, qp, drop);
	return drop;
}

/* Only the first of consecutive frames for a QP prefetches. */
static inline bool is_first_of_row(const struct peek *look, u32 i)
{
	return !i || look[i % AHEAD_MAX].qp != look[(i - 1) % AHEAD_MAX].qp;
}

static inline void engine_fetch_qp(const struct engine *e, const struct engine_frame *frames,
				   struct peek *look, u32 i)
{
	struct peek *l = &look[i % AHEAD_MAX];
	struct qp *qp = engine_peek(e, &frames[i].frame, l);

	if (!qp || !is_first_of_row(look, i))
		return;
	__builtin_prefetch(qp);
	__builtin_prefetch(l->kept);
	if (l->kept == &qp->req.response) {
		__builtin_prefetch(&qp->sq, 1);
		__builtin_prefetch(&qp->req.rtt, 1);
	} else {
		__builtin_prefetch(&qp->resp.seq, 1);
		__builtin_prefetch(&qp->rq, 1);
	}
}

static inline void engine_fetch_wqe(const struct peek *look, u32 i)
{
	const struct peek *l = &look[i % AHEAD_MAX];
	const struct qp *qp = l->qp;

	if (!qp || !is_first_of_row(look, i))
		return;
	if (l->kept == &qp->req.response)
		__builtin_prefetch(&sq_at(&qp->sq, sq_cons(&qp->sq))->wr_id);
	else if (!qp->srq)
		__builtin_prefetch(rq_next(&qp->rq));
}

/*
 * Memory for a frame is prefetched while earlier frames are handled: first its QP's lines, then the
 * next WQE, whose address is in one of these lines. The distance of a few frames matches memory
 * latency; more requests than the CPU can have outstanding would queue.
 *
 * *last: drop reason of the last dropped frame. The same function serves one frame and many, so the
 * per-packet path is inlined once.
 */
static __attribute__((noinline)) u32
engine_input_frames(struct engine *e, const struct engine_frame *frames, u32 n, u64 now_ns,
		    u64 *away, enum xroce_drop *last)
{
	struct peek look[AHEAD_MAX];
	enum xroce_drop drop;
	u32 dropped = 0;

	*last = XROCE_DROP_none;

	for (u32 i = 0; i < n && i < AHEAD_QP; i++)
		engine_fetch_qp(e, frames, look, i);
	for (u32 i = 0; i < n && i < AHEAD_WQE; i++)
		engine_fetch_wqe(look, i);
	for (u32 i = 0; i < n; i++) {
		if (i + AHEAD_QP < n)
			engine_fetch_qp(e, frames, look, i + AHEAD_QP);
		if (i + AHEAD_WQE < n)
			engine_fetch_wqe(look, i + AHEAD_WQE);
		drop = engine_input_frame(e, frames[i].hint, &frames[i].frame, &look[i % AHEAD_MAX],
					  now_ns);
		if (likely(drop == XROCE_DROP_none))
			continue;
		*last = drop;
		if (drop != XROCE_DROP_not_handed)
			dropped++;
		else if (away)
			*away |= 1ull << i;
		else
			dropped += engine_count_input(e, drop) != XROCE_DROP_none;
	}
	stat_row_end(e);
	engine_take_arms(e);
	return dropped;
}

u32 engine_input_batch(struct engine *e, const struct engine_frame *frames, u32 n, u64 now_ns,
		       u64 *away)
{
	enum xroce_drop last;

	return engine_input_frames(e, frames, n, now_ns, away, &last);
}

enum xroce_drop engine_input(struct engine *e, const struct xroce_rx_cqe *hint,
			     const struct rx_frame *frame, u64 now_ns)
{
	const struct engine_frame one = { .frame = *frame, .hint = hint };
	enum xroce_drop drop;

	engine_input_frames(e, &one, 1, now_ns, NULL, &drop);
	return drop;
}
