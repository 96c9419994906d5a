/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The engine's frame: which QP a packet is for, which QP sends next, which objects have events to
 * report. The protocol itself is in requester.c, completer.c, responder.c, reply.c and datagram.c;
 * what several engines of a device share in owner.c.
 */
#include <stdlib.h>

#include "aligned.h"
#include "internal.h"

/*
 * Packets that one QP may send in a row before the next has its turn: long enough to use its cache
 * lines well.
 */
#define BURST_PACKETS 16

/* Frames that engine_input_batch() fetches ahead for. */
enum { AHEAD_QP = 6, AHEAD_WQE = 3, AHEAD_MAX = 8 };

int engine_create(const struct engine_config *config, struct engine **out)
{
	struct engine *e = aligned_zero(sizeof(*e));
	int err;

	if (!e)
		return -ENOMEM;
	e->config = *config;
	e->number = config->number;
	icrc_table_init(&e->icrc);
	e->stats = config->stats;
	e->drops = config->drops;
	e->pkeys = config->pkeys ? *config->pkeys : PKEY_TABLE_DEFAULT;
	e->window = config->window_packets ? config->window_packets : REQUESTER_WINDOW_DEFAULT;
	e->cq_due_ns = NSEC_NEVER;
	atomic_store_explicit(&e->earliest_ns, NSEC_NEVER, memory_order_relaxed);
	err = timers_init(&e->timers) || reorder_init(e) ? -ENOMEM : owner_join(e);
	if (err) {
		reorder_destroy(e);
		timers_free(&e->timers);
		free(e);
		return err;
	}
	*out = e;
	return 0;
}

void engine_destroy(struct engine *e)
{
	owner_leave(e);
	reorder_destroy(e);
	timers_free(&e->timers);
	free(e);
}

struct mr_table *engine_mr_table(struct engine *e)
{
	return e->mrs;
}

struct qp *engine_find_qp(const struct engine *e, u32 qpn)
{
	struct qp *qp = e->qp[qpn % XROCE_MAX_QP];

	return qp && qp->qpn == qpn ? qp : NULL;
}

/* ---- the QP that sends next ---- */

static struct qp **engine_ready_at(struct engine *e, u32 index)
{
	return &e->ready[index % XROCE_MAX_QP];
}

void engine_ready(struct engine *e, struct qp *qp, u8 what)
{
	if (!qp->ready)
		*engine_ready_at(e, e->ready_tail++) = qp;
	qp->ready |= what;
}

static void engine_unready(struct engine *e, struct qp *qp)
{
	u32 at = e->ready_head;

	if (!qp->ready)
		return;
	while (*engine_ready_at(e, at) != qp)
		at++;
	/* the first takes its place */
	*engine_ready_at(e, at) = *engine_ready_at(e, e->ready_head);
	e->ready_head++;
	e->burst = 0;
	qp->ready = 0;
}

/* The first has had its turn: it goes to the end if it has more to send, else it goes. */
static void engine_next_turn(struct engine *e, struct qp *qp)
{
	if (qp->ready & READY_REQUESTS)
		stat_psns(qp);
	e->ready_head++;
	e->burst = 0;
	if (qp->ready)
		*engine_ready_at(e, e->ready_tail++) = qp;
}

bool engine_has_doorbells(const struct engine *e)
{
	/* pairs with owner_push_doorbell() and owner_report_overrun(): seen here, or by a trylock
	 */
	return atomic_load_explicit(&((struct engine *)e)->doorbells, memory_order_seq_cst) ||
	       atomic_load_explicit(&((struct engine *)e)->overrun, memory_order_seq_cst);
}

void engine_posted(struct engine *e, struct qp *qp)
{
	if (unlikely(qp->tag_matching))
		shared_sends_move(qp);
	if (unlikely(qp_state(qp) == QPS_ERR || qp_state(qp) == QPS_SQE))
		qp_flush(e, qp);
	else
		engine_ready(e, qp, READY_REQUESTS);
	/* what was posted is warm, what sends it may not be */
	__builtin_prefetch(&qp->req.rtt, 1);
	__builtin_prefetch(&qp->req.header);
}

void engine_detach_qp(struct engine *e, struct qp *qp)
{
	struct qp **p;

	engine_unready(e, qp);
	timer_cancel(e, qp);
	flow_end(e, qp);
	reorder_purge(e, &qp->req.early);
	reorder_purge(e, &qp->resp.early);
	for (p = &e->qp_events; *p; p = &(*p)->event_next)
		if (*p == qp) {
			*p = qp->event_next;
			break;
		}
	qp->event_queued = false;
	qp->events = 0;
}

void engine_forget_qp(struct engine *e, struct qp *qp)
{
	owner_silence_doorbell(e, qp);
	engine_detach_qp(e, qp);
}

static u32 engine_count_output(struct engine *e, u32 len)
{
	e->stats->tx_packets++;
	e->stats->tx_bytes += len;
	return len;
}

static u32 engine_count_output_of(struct engine *e, struct qp *qp, u32 len)
{
	struct xroce_qp_stat *stat = qp->stat;

	/* in this order, or GCC makes vectors of neighbours: five instructions more for a pair */
	if (STAT_SHOWN)
		stat->tx_packets++;
	e->stats->tx_packets++;
	if (STAT_SHOWN)
		stat->tx_bytes += len;
	e->stats->tx_bytes += len;
	if (unlikely(e->notes))
		note_output(e, qp);
	return len;
}

static u32 engine_output_single(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns)
{
	u32 len;

	if (likely(qp->transport == XROCE_UD))
		return datagram_output(e, qp, frame, now_ns);
	len = raw_output(e, qp, frame, now_ns);
	if (!len)
		return 0;
	/* it is counted as so many bytes: here, so that others need not look for it */
	e->stats->tx_bytes -= ENGINE_RAW;
	if (STAT_SHOWN)
		qp->stat->tx_bytes -= ENGINE_RAW;
	return len | ENGINE_RAW;
}

static u32 engine_output_frame(struct engine *e, u8 *frame, u64 now_ns)
{
	if (unlikely(e->answers.count))
		return engine_count_output(e, flow_answer_output(e, frame));
	while (e->ready_head != e->ready_tail) {
		struct qp *qp = *engine_ready_at(e, e->ready_head);
		u32 len = 0;

		/* nothing for now: an input, a timer or a doorbell makes it ready again */
		if (qp->ready & READY_REPLIES) {
			len = reply_output(e, qp, frame, now_ns);
			if (!len)
				qp->ready &= (u8)~READY_REPLIES;
		}
		if (!len && qp->ready & READY_REQUESTS) {
			len = qp->sends_single ? engine_output_single(e, qp, frame, now_ns) :
						 requester_output(e, qp, frame, now_ns);
			if (!len) {
				qp->ready &= (u8)~READY_REQUESTS;
				stat_psns(qp);
			}
		}
		if (len)
			e->burst++;
		if (!qp->ready || e->burst >= BURST_PACKETS)
			engine_next_turn(e, qp);
		if (!len)
			continue;
		return engine_count_output_of(e, qp, len);
	}
	return 0;
}

u32 engine_output(struct engine *e, u8 *frame, u32 room, u64 now_ns)
{
	u32 len;

	if (room < PACKET_FRAME_MAX)
		return 0;
	e->now_ns = now_ns;
	owner_look_at_doorbells(e);
	len = engine_output_frame(e, frame, now_ns);
	engine_take_arms(e);
	return len;
}

/* ---- packets in ---- */

static bool engine_state_accepts(const struct qp *qp)
{
	enum qp_state state = qp_state(qp);

	return state >= QPS_RTR && state != QPS_ERR;
}

/* CNPs and flow control are of no transport service of their own. */
static bool engine_transport_fits(const struct qp *qp, const struct packet *p)
{
	if (p->flags & OP_FLOW)
		return qp->transport == XROCE_UC || qp->transport == XROCE_UD;
	if (p->flags & OP_CNP)
		return qp->transport != XROCE_RAW;
	return OPCODE_TRANSPORT(p->opcode) == (u32)qp->transport;
}

/* What the steering in XDP checks as well; here it is decided. */
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

/* Where the headers of packets of this opcode are kept. */
static struct header_in *engine_kept_header(struct qp *qp, u8 opcode)
{
	return opcode_flags(opcode) & OP_RESPONSE ? &qp->req.response : &qp->resp.request;
}

/* What a frame looks like before anything is checked. */
struct peek {
	struct qp *qp;		/* the table's at that place, of this number or another; or NULL */
	struct header_in *kept;	/* of it, for such an opcode */
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

/*
 * A frame that is unlike the last of its kind: which QP is it for, may it have it, and is it
 * intact? The decoded packet, or the reason against it. XROCE_DROP_not_handed: the QP has another
 * owner engine, which may be at work on it at this moment. XROCE_DROP_not_roce: nothing is decoded.
 */
static __attribute__((noinline)) enum xroce_drop
check_frame(struct engine *e, const struct rx_frame *frame, const struct xroce_rx_cqe *hint,
	    struct packet *p, struct qp **to)
{
	enum xroce_drop drop = raw_is_hinted(hint) ? XROCE_DROP_not_roce : packet_parse(p, frame);
	struct qp *qp;

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
	if (!packet_icrc_ok(p))
		return XROCE_DROP_icrc;
	if (qp->transport != XROCE_UD && !(p->flags & (OP_CNP | OP_FLOW)))
		header_in_learn(engine_kept_header(qp, p->opcode), frame, p);
	return XROCE_DROP_none;
}

/* A packet that is decoded and checked goes where it belongs. */
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

/*
 * A frame like the last one of its kind, with bth: its addresses and P_Key were checked with that.
 * An ACK has no more to be decoded for and goes where it belongs at once: *done. All others are
 * decoded unless they are dropped.
 */
static per_packet enum xroce_drop engine_check_alike(struct engine *e, const struct rx_frame *frame,
						     const struct peek *look, const struct bth *bth,
						     struct packet *p, bool *done, u64 now_ns)
{
	u32 aeth;

	if (unlikely(!engine_state_accepts(look->qp)))
		return XROCE_DROP_qp_state;
	if (opcode_flags(bth->opcode) & OP_ACK) {
		if (unlikely(!header_in_ack_ok(look->kept, &e->icrc, bth, &aeth)))
			return XROCE_DROP_icrc;
		*done = true;
		return completer_ack(e, look->qp, be32toh(bth->ack_psn) & ROCE_PSN_MASK,
				     (u8)(aeth >> 24), aeth & MSN_MASK, now_ns);
	}
	header_in_decode(look->kept, frame, bth, p);
	return likely(header_in_icrc_ok(look->kept, &e->icrc, p)) ? XROCE_DROP_none :
								    XROCE_DROP_icrc;
}

/* Count what became of a packet; returns it. */
static inline enum xroce_drop engine_count_input(struct engine *e, enum xroce_drop drop)
{
	e->stats->rx_packets++;
	if (unlikely(drop != XROCE_DROP_none))
		engine_drop(e, drop);
	return drop;
}

/*
 * A packet that no QP may have by its number; one that is decoded may be to a multicast group. And
 * what is none, flows may take: XDP has said so, or it comes from a QP of this device.
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

/* It was for a QP of this engine, by its number. */
static rare void engine_refuse_for(struct engine *e, const struct peek *look,
				   const struct rx_frame *frame, enum xroce_drop drop)
{
	struct qp *qp = look->qp;

	if (!qp || qp->qpn != look->qpn || qp_engine(qp) != e)
		return;
	stat_input(qp, frame->len + frame->frag_len);
	stat_drop_of(qp, drop);
}

/* XROCE_DROP_not_handed is not counted yet: the caller may hand the frame to the QP's owner. */
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
		drop = unlikely(p.flags & OP_FLOW) ? flow_input(e, qp, &p, frame->data, now_ns) :
						     engine_dispatch(e, qp, &p, hint, now_ns);
	e->stats->rx_packets++;
	if (unlikely(drop != XROCE_DROP_none))
		stat_drop(e, qp, drop);
	return drop;
}

/* Of frames in a row for one QP the first fetches for all. */
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
 * What a frame will touch is fetched into the cache while others before it are worked on: its QP's
 * lines first, then where the next WQE lies, which is in one of those. A few frames ahead are as
 * long as memory takes; more at once than it can be asked for would wait in turn.
 *
 * *last: why the last of those that were dropped was. One function for one frame and for many:
 * what each frame passes is inlined into it, once.
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

/* ---- time ---- */

u64 engine_deadline_ns(const struct engine *e)
{
	return atomic_load_explicit(&((struct engine *)e)->earliest_ns, memory_order_relaxed);
}

void engine_expire(struct engine *e, u64 now_ns)
{
	struct qp *qp;

	e->now_ns = now_ns;
	while ((qp = timer_pop(e, now_ns)))
		timeout_expire(e, qp, now_ns);
	engine_take_arms(e);
	moderation_expire(e, now_ns);
}

/* ---- receive WQEs ---- */

int engine_srq_add(struct engine *e, struct srq *srq)
{
	struct engine_tables *t = e->tables;

	if (t->num_srqs == ENGINE_MAX_SRQ)
		return -ENOMEM;
	t->num_srqs++;
	srq->number =
		owner_draw_number(e, (void *const *)t->srq, t->srq_generation, ENGINE_MAX_SRQ,
				  ENGINE_MAX_SRQ /* none */);
	t->srq[srq->number % ENGINE_MAX_SRQ] = srq;
	owner_take_cq(e, srq->cq);
	return 0;
}

void engine_srq_remove(struct engine *e, struct srq *srq)
{
	e->srq[srq->number % ENGINE_MAX_SRQ] = NULL;
	e->tables->num_srqs--;
	owner_release_cq(e, srq->cq);
	/* XRC targets may hold a WQE of it for a message under way: it goes with its queue */
	for (u32 i = 0; srq->xrcd && i < XROCE_MAX_QP; i++)
		if (e->qp[i] && e->qp[i]->resp.recv_srq == srq) {
			e->qp[i]->resp.recv_srq = NULL;
			e->qp[i]->resp.seq.have_recv = false;
		}
}

struct srq *engine_find_srq(const struct engine *e, u32 number)
{
	struct srq *srq = e->srq[number % ENGINE_MAX_SRQ];

	return srq && srq->number == number && srq->xrcd ? srq : NULL;
}

/* SRQ_LIMIT_REACHED, once armed, if fewer than that many are left. */
static void engine_check_limit(struct engine *e, struct srq *srq)
{
	if (!srq->limit || rq_posted(&srq->rq) >= srq->limit)
		return;
	srq->limit = 0;
	if (srq->stat)
		srq->stat->limit_events++;
	engine_srq_event(e, srq, EVENT_SRQ_LIMIT);
}

bool engine_take_receive(struct engine *e, struct qp *qp)
{
	struct srq *srq = qp->xrc_target ? qp->resp.recv_srq : qp->srq;
	bool taken;

	if (qp->resp.seq.have_recv)
		return true;
	if (srq)
		spin_lock_if(srq->shared, &srq->lock);
	taken = qp->resp.seq.have_recv = rq_take(srq ? &srq->rq : &qp->rq, &qp->resp.recv);
	qp->resp.recv.pd = srq ? srq->pd : qp->pd;
	if (srq) {
		if (taken) {
			stat_srq(srq);
			engine_check_limit(e, srq);
		}
		spin_unlock_if(srq->shared, &srq->lock);
	}
	return taken;
}

void engine_srq_set_limit(struct engine *e, struct srq *srq, u32 limit)
{
	srq->limit = limit;
	engine_check_limit(e, srq);
}

/* ---- completions and events ---- */

void engine_cq_event(struct engine *e, struct cq *cq, u32 events)
{
	struct cq_part *part = &cq->part[e->number];

	part->events |= events;
	if (cq->stat && events & EVENT_COMPLETION)
		cq->stat->events++;
	if (part->event_queued)
		return;
	part->event_queued = true;
	part->event_next = e->cq_events;
	e->cq_events = cq;
}

/*
 * A completion found no room: is it the one by which the CQ overran? A thread that sleeps on the CQ
 * is woken, to see that it has.
 */
static void engine_lose_completion(struct engine *e, struct cq *cq)
{
	if (!cq_has_overrun(cq) || cq->failed)
		return;
	cq->failed = true;
	e->stats->cq_overruns++;
	if (cq->stat)
		cq->stat->overruns++;
	owner_report_overrun(e, cq);
	engine_cq_event(e, cq, EVENT_CQ_ERR | (cq_take_event(cq, true) ? EVENT_COMPLETION : 0));
}

struct cqe *engine_complete_begin(struct cq *cq)
{
	spin_lock_if(cq->shared, &cq->lock);
	return cq_push_begin(cq);
}

void engine_complete_end(struct engine *e, struct cq *cq, struct cqe *cqe, bool solicited)
{
	struct cq_part *part = &cq->part[e->number];
	const bool failed = cqe->status != CQE_SUCCESS;
	bool wakes = false;

	if (likely(cq_push_end(cq, cqe)))
		wakes = !moderation_withholds(e, cq, failed, solicited);
	else
		engine_lose_completion(e, cq);
	spin_unlock_if(cq->shared, &cq->lock);
	if (!wakes) {
		stat_cq(cq);
		return;
	}
	part->pushed_solicited |= solicited || failed;
	if (part->pushed)
		return;
	part->pushed = true;
	part->pushed_next = e->pushed;
	e->pushed = cq;
}

void engine_take_arms(struct engine *e)
{
	struct cq *cq;

	if (!e->pushed)
		return;
	cq_pushed_all();
	while ((cq = e->pushed)) {
		struct cq_part *part = &cq->part[e->number];

		e->pushed = part->pushed_next;
		spin_lock_if(cq->shared, &cq->lock);
		stat_cq(cq);
		if (cq_take_event(cq, part->pushed_solicited)) {
			cq->withheld = 0;
			engine_cq_event(e, cq, EVENT_COMPLETION);
		}
		spin_unlock_if(cq->shared, &cq->lock);
		part->pushed = part->pushed_solicited = false;
	}
}

void engine_qp_event(struct engine *e, struct qp *qp, u32 events)
{
	qp->events |= events;
	if (qp->event_queued)
		return;
	qp->event_queued = true;
	qp->event_next = e->qp_events;
	e->qp_events = qp;
}

void engine_srq_event(struct engine *e, struct srq *srq, u32 events)
{
	struct srq_part *part = &srq->part[e->number];

	part->events |= events;
	if (part->event_queued)
		return;
	part->event_queued = true;
	part->event_next = e->srq_events;
	e->srq_events = srq;
}

void engine_check_srq(struct engine *e, struct srq *srq)
{
	if (!srq->cq || !cq_has_overrun(srq->cq) || srq->failed)
		return;
	srq->failed = true;
	engine_srq_event(e, srq, EVENT_SRQ_ERR);
}

/*
 * A CQ that overran takes its QPs with it: ibv_create_cq(3), IBV_EVENT_CQ_ERR. Of an XRC SRQ's CQ
 * these are the targets that had something to say there: the others of the domain may never. Rare,
 * so both tables are looked through. An engine does it for its own QPs, and number 0 for the SRQs
 * that have a CQ.
 */
static void engine_fail_overrun_qps(struct engine *e)
{
	/*
	 * pairs with the store in owner_report_overrun(): what another engine made so is seen, or
	 * the flag is up again
	 */
	while (atomic_exchange_explicit(&e->overrun, false, memory_order_seq_cst)) {
		for (u32 i = 0; !e->number && i < ENGINE_MAX_SRQ; i++)
			if (e->srq[i])
				engine_check_srq(e, e->srq[i]);
		for (u32 i = 0; i < XROCE_MAX_QP; i++) {
			struct qp *qp = e->qp[i];

			if (!qp || qp_engine(qp) != e)
				continue;
			if (qp->srq)
				engine_check_srq(e, qp->srq);
			if ((qp->send_cq && cq_has_overrun(qp->send_cq)) ||
			    (qp->recv_cq && cq_has_overrun(qp->recv_cq)) || qp->resp.overran) {
				stat_error(e, qp, CQE_SUCCESS, XROCE_REASON_CQ_OVERRUN);
				engine_qp_error(e, qp, EVENT_QP_FATAL);
			}
		}
	}
}

void engine_fail(struct engine *e)
{
	for (u32 i = 0; i < XROCE_MAX_QP; i++)
		if (e->qp[i] && qp_engine(e->qp[i]) == e) {
			stat_error(e, e->qp[i], CQE_SUCCESS, XROCE_REASON_PORT_LOST);
			engine_qp_error(e, e->qp[i], 0);
		}
}

static bool take_bit(u32 *events, enum engine_event_type *type)
{
	u32 bit = *events & -*events;

	*events &= ~bit;
	*type = (enum engine_event_type)bit;
	return *events == 0;
}

bool engine_next_event(struct engine *e, struct engine_event *event)
{
	*event = (struct engine_event){ 0 };
	engine_take_arms(e);
	if (unlikely(atomic_load_explicit(&e->overrun, memory_order_relaxed)))
		engine_fail_overrun_qps(e);
	if (e->cq_events) {
		struct cq_part *part = &(event->cq = e->cq_events)->part[e->number];

		if (take_bit(&part->events, &event->type)) {
			e->cq_events = part->event_next;
			part->event_queued = false;
		}
		return true;
	}
	if (e->qp_events) {
		struct qp *qp = event->qp = e->qp_events;

		if (take_bit(&qp->events, &event->type)) {
			e->qp_events = qp->event_next;
			qp->event_queued = false;
		}
		return true;
	}
	if (e->srq_events) {
		struct srq_part *part = &(event->srq = e->srq_events)->part[e->number];

		if (take_bit(&part->events, &event->type)) {
			e->srq_events = part->event_next;
			part->event_queued = false;
		}
		return true;
	}
	return false;
}
