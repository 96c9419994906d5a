/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the engine's own files know of each other; no file outside user/transport includes this.
 *
 *   engine.c     making it, ready list, receive WQEs         timer.c      deadlines
 *   input.c      demux, checks, many packets at once         event.c      completions and events
 *   qp.c         making QPs, their send queue, flushing      qp_state.c   ibv_modify_qp's table
 *   requester.c  WQEs to request packets                     completer.c  responses to completions
 *   timeout.c    what the requester does when nothing comes
 *   responder.c  request packets to memory and receives      reply.c      ACKs and responses
 *   recovery.c   what is sent again after a loss             reorder.c    packets that came early
 *   congestion.c window, adaptive time-out, DCQCN            credit.c     end-to-end credits
 *   flow.c       flow control of UC and UD
 *   template.c   headers kept, to copy and to compare
 *   expect.c     which responses XDP wakes for          stat.c       what a QP shows of itself
 *   datagram.c   UD, both ways                             moderation.c events of moderated CQs
 *   owner.c       several engines of a device
 *   group.c      multicast groups: a packet for each member
 *   raw.c        raw packet QPs: frames by flows            rss.c        to work queues, by hash
 *   tag.c        tag matching: SENDs to buffers by tag     rendezvous.c what it fetches and
 *                                                                       answers on its own
 * Beside the engine, for its caller:
 *   gso.c        packets that may leave as one             segments.c   such a one cut again
 */
#ifndef TRANSPORT_INTERNAL_H
#define TRANSPORT_INTERNAL_H

#include "engine.h"
#include "group.h"
#include "guard.h"
#include "note.h"
#include "raw.h"
#include "rss.h"

/*
 * Request packets in flight that a requester allows itself: fits the rings of a veth or NIC (256)
 * with room for a second QP.
 */
#define REQUESTER_WINDOW_DEFAULT 128

/*
 * Packets that came early and are kept: of one QP and direction, and of all together (4.3 KiB each,
 * touched when used).
 */
#define REORDER_MAX_QP 128
#define REORDER_POOL   512

/* When a QP is to be looked at, by its slot in the table; see timer.c. */
struct timer {
	u64 at_ns;
	u32 slot;
};
struct timers {
	struct timer *line;	/* a ring, in order of time */
	u32 line_head, line_tail;
	/* heap[0] is the earliest of those that would not be in order there */
	struct timer *heap;
	u32 len;
	/* of a slot: position in the heap + 1 or in the line with IN_LINE, 0 = nowhere */
	u32 *place;
	u64 *due_ns;		/* of a slot: its deadline, at_ns or later */
};

/* A multicast group with members: see group.h. */
#define GROUP_BUCKETS 256u
struct group {
	struct group *next;
	struct gid address;
	u32 num;
	struct qp *member[GROUP_MEMBERS_MAX];
};

/*
 * What the engines of a device share. It changes with all of them held, but for what mr.h says of
 * windows and the ledger, which has a lock; so each may read it.
 */
struct engine_tables {
	struct engine *engine[ENGINE_MAX];
	struct mr_table mrs;
	struct flow_ledger flow;
	u32 num_qps; /* without QP 1 */
	u32 num_srqs;
	/* of the last number that each slot had; see owner_draw_number() */
	u16 qp_generation[XROCE_MAX_QP];
	u16 srq_generation[ENGINE_MAX_SRQ];
	u32 num_groups;
	struct group *group[GROUP_BUCKETS];
	u32 num_raw;   /* raw packet QPs */
	u32 num_flows; /* theirs: see raw.h */
	struct raw_flow *flows;
	u32 num_copies; /* flows that have copies */
	struct srq *srq[ENGINE_MAX_SRQ];
	struct qp *qp[XROCE_MAX_QP];
};

struct engine {
	struct engine_config config;
	struct xroce_engine_stats *stats;
	struct xroce_drops *drops;
	struct engine_tables *tables;
	struct qp **qp;		/* the tables' */
	struct srq **srq;
	struct mr_table *mrs;
	u32 number;
	u32 window;
	struct pkey_table pkeys;
	struct held *held_pool, *held_free;
	u32 num_held; /* of all its QPs */
	u32 passed;   /* engines that doorbells were passed on to: see owner.c */

	/*
	 * QPs that may have something to send, served in turn: a ring in an array, so that a
	 * neighbour in it is not touched
	 */
	u32 ready_head, ready_tail;
	u32 burst;

	/* doorbells, pushed by any thread, taken as a whole */
	_Atomic(struct qp *) doorbells cache_aligned;
	/* some CQ overran since the last look: its QPs go to error. Set by siblings as well */
	_Atomic bool overrun;

	struct timers timers cache_aligned;
	_Atomic u64 earliest_ns; /* the first timer or moderated event, for other threads */

	struct cq *pushed;	/* CQs that got completions in this call */
	/* objects with events to report */
	struct cq *cq_events;
	/* moderated CQs that may withhold an event; cq_due_ns is the earliest one's time */
	struct cq *cq_due;
	u64 cq_due_ns;
	u64 now_ns;		/* of the call that is running */
	/*
	 * Frames in a row for one QP, of requests or of responses: it shows what has come of them
	 * when the row ends, at the latest with the call.
	 */
	struct {
		struct qp *qp;
		const struct header_in *kept; /* of the QP and kind; NULL: no row has begun */
		u64 before;		      /* packets that the engine had counted then */
		u64 bytes;		      /* beyond frame_len of each, modulo 2^64 */
		u32 frame_len;		      /* that kept has */
	} row;
	struct engine_notes *notes; /* NULL: nobody looks */
	struct qp *qp_events;
	struct srq *srq_events;

	struct icrc_table icrc;
	struct flow_answers answers;
	struct qp *ready[XROCE_MAX_QP];
};

/* Requests that have an answer of their own, take a PSN of it and a place among max_rd_atomic. */
#define OP_ANSWERED (OP_READ | OP_ATOMIC | OP_FLUSH | OP_ATOMIC_WRITE)

static inline bool is_reliable(const struct qp *qp)
{
	return qp->transport == XROCE_RC || qp->transport == XROCE_XRC;
}

/* Why a copy to or from a list of elements has failed. */
static inline enum vendor_err list_error(const struct engine *e, u32 pd, const struct sge *sge,
					 u32 num_sge, u32 access)
{
	return sge_check(e->mrs, pd, sge, num_sge, access) ? VERR_MEMORY : VERR_LKEY;
}

static inline void engine_drop(struct engine *e, enum xroce_drop reason)
{
	((u64 *)e->drops)[XROCE_DROP_INDEX(reason)]++;
}

/*
 * What has become of the copies of one packet: it is dropped if no QP took any, for the last one's
 * reason; each other refusal counts by itself.
 */
struct copies {
	bool taken;
	enum xroce_drop refused;
};

static inline void copies_count(struct engine *e, struct copies *c, enum xroce_drop drop)
{
	if (drop == XROCE_DROP_none) {
		c->taken = true;
		return;
	}
	if (c->refused != XROCE_DROP_none)
		engine_drop(e, c->refused);
	c->refused = drop;
}

/* All have been given. */
static inline enum xroce_drop copies_end(struct engine *e, const struct copies *c)
{
	if (!c->taken)
		return c->refused;
	if (c->refused != XROCE_DROP_none)
		engine_drop(e, c->refused);
	return XROCE_DROP_none;
}

/* note.c: for whoever looks. */
rare void note_add(struct engine *e, const struct qp *qp, enum xroce_event event, u32 value,
		   u32 more);
/* That QP has written a packet. */
rare void note_output(struct engine *e, const struct qp *qp);
static inline void note_event(struct engine *e, const struct qp *qp, enum xroce_event event)
{
	if (unlikely(e->notes))
		note_add(e, qp, event, qp->req.unacked_psn, qp->resp.seq.expected_psn);
}

/*
 * One more of what both the engine and the QP count under that name: plain words, which the owner
 * engine alone writes.
 */
#define engine_count(e, qp, field)                                \
	do {                                                      \
		(e)->stats->field++;                              \
		(qp)->stat->field++;                              \
		note_event(e, qp, XROCE_EVENT_##field);           \
	} while (0)

/*
 * What QPs, CQs and SRQs show of themselves as packets pass. `make bench-tools` builds the engine
 * once more without it, to measure what it costs.
 */
#ifdef XROCE_NO_QP_STAT
#define STAT_SHOWN false
#else
#define STAT_SHOWN true
#endif

/* stat.c: what a QP's element of xroce_qp_stat says beside what is counted. */
/* Memory for it. Returns 0 or -ENOMEM; and its end, after which the element is free. */
int stat_init(struct qp *qp, const struct qp_init *init);
void stat_free(struct qp *qp);
/* It was made, modified or moved: whose it is and how it is set up. */
void stat_describe(struct qp *qp);
/* The engine has changed its state; why, before that. */
void stat_state(struct qp *qp);
void stat_error(struct engine *e, struct qp *qp, enum cqe_status status, enum xroce_reason why);
/* A send request, or a receive, ends in error, and was not flushed. */
void stat_send_error(struct engine *e, enum cqe_status status);
void stat_receive_error(struct engine *e, enum cqe_status status);
/* The limits of congestion.c have changed. */
void stat_limits(const struct engine *e, struct qp *qp);
/* Completions were pushed, as many as that may be. Under its lock. */
void stat_cq(struct cq *cq);
/* A receive was taken. */
static inline void stat_srq(struct srq *srq)
{
	if (!STAT_SHOWN || !srq->stat)
		return;
	srq->stat->taken++;
	srq->stat->waiting = rq_posted(&srq->rq);
}
/* A packet for the QP was dropped: it counts that, and with the first its engine. */
rare void stat_drop(struct engine *e, struct qp *qp, enum xroce_drop drop);
rare void stat_drop_of(struct qp *qp, enum xroce_drop drop);
/* The oldest request packet was sent again, in a frame of that length. */
rare void stat_resent(struct qp *qp, u32 len);
/* The row of packets in goes on or ends, and with the next one another begins. */
rare void stat_row_begin(struct engine *e, struct qp *qp, const struct header_in *kept);
void stat_row_end(struct engine *e);
/* A frame like the last one of its kind, and as long: only how many there are is counted. */
static inline void stat_row(struct engine *e, struct qp *qp, const struct header_in *kept)
{
	if (STAT_SHOWN && unlikely(e->row.kept != kept))
		stat_row_begin(e, qp, kept);
}
/* Another, which is what the next ones are compared with if it was learned. */
static inline void stat_row_unlike(struct engine *e, struct qp *qp, const struct header_in *kept,
				   const struct rx_frame *frame)
{
	if (!STAT_SHOWN)
		return;
	if (e->row.kept != kept || e->row.frame_len != kept->frame_len)
		stat_row_begin(e, qp, kept);
	e->row.bytes += (u64)frame->len + frame->frag_len - e->row.frame_len;
}
/* A packet that is in no row. */
static inline void stat_input(struct qp *qp, u32 len)
{
	struct xroce_qp_stat *stat = qp->stat;

	if (!STAT_SHOWN)
		return;
	stat->rx_packets++;
	stat->rx_bytes += len;
}
/* unacked_psn or next_psn has moved. */
static inline void stat_psns(const struct qp *qp)
{
	const u32 next = qp->req.next_psn, unacked = qp->req.unacked_psn;
	struct xroce_qp_stat *stat = qp->stat;

	if (!STAT_SHOWN)
		return;
	stat->sq_psn = next;
	stat->unacked_psn = unacked;
	stat->outstanding = (next - unacked) & ROCE_PSN_MASK;
}
/* expected_psn or msn has. */
static inline void stat_responder(const struct qp *qp)
{
	if (!STAT_SHOWN)
		return;
	qp->stat->rq_psn = qp->resp.seq.expected_psn;
	qp->stat->msn = qp->resp.seq.msn;
}

/* engine.c */
/*
 * What a QP may have to send. The sender of the last of it may clear its bit: whatever comes later
 * sets it again.
 */
enum { READY_REQUESTS = 1 << 0, READY_REPLIES = 1 << 1 };
void engine_ready(struct engine *e, struct qp *qp, u8 what);
/*
 * [all] Forget what is queued about qp: doorbell, ready list, timer, events; without the doorbell.
 * e is its owner.
 */
void engine_forget_qp(struct engine *e, struct qp *qp);
void engine_detach_qp(struct engine *e, struct qp *qp);
/* The XRC SRQ of that number, or NULL. */
struct srq *engine_find_srq(const struct engine *e, u32 number);
/*
 * Take a receive WQE from the QP's queue or SRQ into qp->resp.recv, if none is held; false when
 * there is none.
 */
bool engine_take_receive(struct engine *e, struct qp *qp);

/* input.c */
/* May the QP have this packet, which is not to its number? */
enum xroce_drop engine_check_copy(const struct qp *qp, const struct packet *p);

/* event.c */
/*
 * Push a completion, in two steps: all of it is written where the first says, and nothing else is
 * done to any CQ until the second. If the CQ is armed for it, engine_take_arms() takes the event.
 */
struct cqe *engine_complete_begin(struct cq *cq);
void engine_complete_end(struct engine *e, struct cq *cq, struct cqe *cqe, bool solicited);
/* Both. Inlined, so that a completion that only goes here is written into the ring at once. */
static per_packet void engine_complete(struct engine *e, struct cq *cq, const struct cqe *cqe,
				       bool solicited)
{
	struct cqe *to = engine_complete_begin(cq);

	*to = *cqe;
	engine_complete_end(e, cq, to, solicited);
}
/*
 * Take the arm words of the CQs that were pushed to, and their events: at the end of each call from
 * outside. That none was is the common case, and costs a look.
 */
void engine_take_arms_of_pushed(struct engine *e);
static inline void engine_take_arms(struct engine *e)
{
	if (e->pushed)
		engine_take_arms_of_pushed(e);
}
void engine_cq_event(struct engine *e, struct cq *cq, u32 events);
void engine_qp_event(struct engine *e, struct qp *qp, u32 events);
void engine_srq_event(struct engine *e, struct srq *srq, u32 events);
/* An SRQ whose own CQ has overrun delivers nothing any more: SRQ_ERR, once. */
void engine_check_srq(struct engine *e, struct srq *srq);

/* owner.c */
/*
 * [all] An engine comes to its device or founds it: 0, -ENOMEM or -EINVAL; it goes, and with the
 * last one what they shared.
 */
int owner_join(struct engine *e);
void owner_leave(struct engine *e);
/*
 * [all] Draw a number of 24 bits for a QP or an SRQ whose slot, the number modulo slots, is free in
 * table: one must be, beside the slot kept, which is given to none. generation has the last one of
 * each slot.
 */
u32 owner_draw_number(const struct engine *e, void *const *table, u16 *generation, u32 slots,
		      u32 kept);
/* [all] The same for a number that was drawn elsewhere. False: it cannot be had here now. */
bool owner_take_number(void *const *table, u16 *generation, u32 slots, u32 kept, u32 number);
/* [all] e owns the QP from now on, or no more: its CQs and SRQ know. */
void owner_take_qp(struct engine *e, struct qp *qp);
void owner_release_qp(struct engine *e, struct qp *qp);
/* [all] A CQ where an XRC SRQ completes, NULL if it has none: number 0 fills it. */
void owner_take_cq(struct engine *e, struct cq *cq);
void owner_release_cq(struct engine *e, struct cq *cq);
/* Look at the queues of e's QPs whose doorbell was rung, and pass those of others' QPs on. */
void owner_take_doorbells(struct engine *e);
static inline void owner_look_at_doorbells(struct engine *e)
{
	if (atomic_load_explicit(&e->doorbells, memory_order_relaxed))
		owner_take_doorbells(e);
}
/* [all] Take the QP's doorbell off the stacks, unless it is rung now. Returns true if it rang. */
bool owner_silence_doorbell(struct engine *e, struct qp *qp);
/* The CQ has just overrun: every engine that has QPs on it is to put them into error. */
void owner_report_overrun(struct engine *e, const struct cq *cq);

/* timer.c */
int timers_init(struct timers *t);
void timers_free(struct timers *t);
/* This, be it earlier or later. */
void timer_put_off(struct engine *e, struct qp *qp, u64 deadline_ns);
/* Not later than this. */
static inline void timer_set(struct engine *e, struct qp *qp, u64 deadline_ns)
{
	if (deadline_ns < e->timers.due_ns[qp->qpn % XROCE_MAX_QP])
		timer_put_off(e, qp, deadline_ns);
}
/* Never, for now: it may keep its place, as one that is put off. */
static inline void timer_stop(struct engine *e, struct qp *qp)
{
	e->timers.due_ns[qp->qpn % XROCE_MAX_QP] = NSEC_NEVER;
}
void timer_cancel(struct engine *e, struct qp *qp);
/* One that is due, or NULL: to be called until then. */
struct qp *timer_pop(struct engine *e, u64 now_ns);
/* The earliest deadline has changed: tell other threads. */
void timer_publish(struct engine *e);

/* moderation.c */
/* A completion was pushed: is its event withheld for now? */
bool moderation_withholds(struct engine *e, struct cq *cq, bool failed, bool solicited);
void moderation_expire(struct engine *e, u64 now_ns);
/* [all] The set of engines with QPs on this CQ has changed. */
void moderation_settle(struct engine_tables *t, struct cq *cq);

/* qp.c */
static inline struct send_wqe *sq_at(const struct sq *sq, u32 index)
{
	/* relaxed: it moves only while the queue is empty, ordered by prod and cons */
	u32 first = atomic_load_explicit(&((struct sq *)sq)->first, memory_order_relaxed);

	return (struct send_wqe *)(sq->ring + (size_t)((index - first) & sq->mask) * sq->stride);
}
static inline u32 sq_prod(const struct sq *sq)
{
	/* acquire: pairs with the store in sq_publish() */
	return atomic_load_explicit(&((struct sq *)sq)->prod, memory_order_acquire);
}
static inline u32 sq_cons(const struct sq *sq)
{
	return atomic_load_explicit(&((struct sq *)sq)->cons, memory_order_relaxed);
}
/* Its memory is what is lent, of sq_bytes(), or its own. Returns 0 or -ENOMEM. */
int sq_init(struct sq *sq, u32 max_wr, u32 max_sge, u32 max_inline, void *lent);
void sq_free(struct sq *sq);
/* Complete the oldest WQE of the send queue and free its slot. */
void sq_complete(struct engine *e, struct qp *qp, enum cqe_status status, enum vendor_err verr,
		 u64 now_ns);
void qp_flush(struct engine *e, struct qp *qp);
/*
 * Take away what the QP has in its CQs, whose consumer sides are held, and an XRC target in those
 * of its domain's SRQs.
 */
void qp_purge_completions(struct engine *e, struct qp *qp);
/*
 * The oldest send WQE failed: its completion, then ERR (or SQE on UC and UD) and all others
 * flushed.
 */
void qp_send_error(struct engine *e, struct qp *qp, enum cqe_status status, enum vendor_err verr,
		   u64 now_ns);
/* Requester and responder as qp_create() makes them; no ring is allocated. */
void qp_clear(struct qp *qp);

/* rd_atomic.c */
/* The rings in struct qp, of a requester and a responder that are all zeros. */
void rd_atomic_init(struct qp *qp);
/*
 * Room for so many outstanding READs and atomics each way. Returns 0, or -ENOMEM and nothing is
 * changed.
 */
int rd_atomic_reserve(struct qp *qp, u32 initiated, u32 answered);
/* What was allocated for them; rd_atomic_init() or the end of the QP follows. */
void rd_atomic_free(struct qp *qp);

/*
 * Start a packet from qp. The fields of extension headers are left alone: the caller chooses an
 * opcode and sets those that it carries, and no others are read. (To clear the whole struct takes
 * longer than to build most packets.)
 */
static inline void packet_from(struct packet *p, const struct qp *qp, u32 psn)
{
	p->pad = p->tver = 0;
	p->solicited = p->ackreq = p->fecn = p->becn = false;
	p->migreq = true;
	p->pkey = qp->pkey;
	p->dest_qpn = qp->dest_qpn;
	p->psn = psn;
	p->payload_len = 0;
	p->ip_id = 0;
}

/* requester.c */
void requester_start(struct qp *qp, u32 sq_psn);
u32 requester_output(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns);
/*
 * The next packet to be sent is psn: back to one that is not acknowledged, or forward over those
 * that are.
 */
void requester_seek(struct engine *e, struct qp *qp, u32 psn);
/*
 * The WQE that psn belongs to, from the oldest outstanding one on; NULL if psn has not been given
 * to any.
 */
struct send_wqe *requester_wqe(const struct qp *qp, u32 psn);
/* Work requests that a response of their own answers; see OP_ANSWERED. */
static inline bool wr_is_answered(u8 opcode)
{
	return opcode < WR_OPCODES &&
	       1u << opcode & (1u << WR_READ | 1u << WR_CMP_SWAP | 1u << WR_FETCH_ADD |
			       1u << WR_FLUSH | 1u << WR_ATOMIC_WRITE);
}
/* Work requests that send nothing. */
static inline bool wr_is_local(u8 opcode)
{
	return opcode == WR_LOCAL_INV || opcode == WR_BIND_MW || opcode == WR_REFUSED;
}
static inline enum vendor_err refusal_verr(const struct send_wqe *wqe)
{
	return wqe->refused_as == CQE_LOC_PROT_ERR ? VERR_LKEY : VERR_REQUEST;
}

/* The PD of a WQE's L_Keys: a rendezvous fetches into a buffer of the SRQ. */
static inline u32 wqe_pd(const struct qp *qp, const struct send_wqe *wqe)
{
	return unlikely(wqe->flags & WR_RENDEZVOUS) ? qp->srq->pd : qp->pd;
}

/* A READ request asks for as many response packets, and those of a WQE start at multiples of it. */
static inline u32 requester_read_chunk(const struct engine *e)
{
	return e->window >= 4 ? e->window / 4 : 1;
}
/*
 * Build the packet with the given PSN again, from its WQE; 0 if that cannot be. next is the PSN
 * that follows what it took.
 */
u32 requester_rebuild(struct engine *e, struct qp *qp, u32 psn, u32 end, u8 *frame, u32 *next,
		      u64 now_ns);

/* expect.c: of QPs that tell XDP */
/* None: the QP starts. */
void expect_none(struct qp *qp);
/*
 * The WQE before req.assigned has its PSNs; the oldest have completed; the one under the cursor
 * will fail when those before it are done.
 */
void expect_assigned(struct qp *qp);
void expect_completed(struct qp *qp);
void expect_failure(struct qp *qp);

/* recovery.c */
/* The peer misses psn and keeps what came behind it, perhaps: send it again, or all from it on. */
void recovery_start(struct engine *e, struct qp *qp, u32 psn, enum vendor_err verr, u64 now_ns);
/*
 * The adaptive time-out: ask with the oldest packet whether anything was lost, and go on meanwhile.
 */
void recovery_probe(struct engine *e, struct qp *qp);
/* unacked_psn moved by an ACK (nak false) or a NAK: is the loss repaired? */
void recovery_answered(struct engine *e, struct qp *qp, bool nak);
static inline void recovery_answer(struct engine *e, struct qp *qp, bool nak)
{
	const struct recovery *r = &qp->req.recovery;

	if (unlikely(r->waiting || r->probing))
		recovery_answered(e, qp, nak);
}
/*
 * The same by a READ or atomic response; is_only: its opcode is that of a response of one packet.
 */
void recovery_responded(struct engine *e, struct qp *qp, bool is_only);
static inline void recovery_response(struct engine *e, struct qp *qp, bool is_only)
{
	const struct recovery *r = &qp->req.recovery;

	if (unlikely(r->waiting || r->probing))
		recovery_responded(e, qp, is_only);
}
u32 recovery_output(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns);
void recovery_reset(struct requester *req);

/* reorder.c */
struct held {
	struct held *next;
	u32 missing; /* packets between the one before it and this one, when it came */
	bool has_hint;
	struct xroce_rx_cqe hint;
	struct packet packet; /* its pointers point into payload */
	u8 payload[ROCE_PMTU_MAX];
};
int reorder_init(struct engine *e);
void reorder_destroy(struct engine *e);
/* Is there any? While no QP has one, none is touched to find that out. */
static inline bool reorder_holds(const struct engine *e, const struct reorder *r)
{
	return unlikely(e->num_held) && r->head;
}
/*
 * Keep a copy of a packet that is ahead of psn and of all that are kept; false if it is not, if it
 * is too far ahead, or if there is no room. A packet that contradicts some that are kept makes them
 * go.
 */
bool reorder_hold(struct engine *e, struct reorder *r, u32 psn, const struct packet *p,
		  const struct xroce_rx_cqe *hint);
/*
 * Take the packet with this PSN, which is proven, dropping all before it; NULL if it is not there
 * or if it is not to be trusted. Give it back with reorder_free().
 */
struct held *reorder_take(struct engine *e, struct reorder *r, u32 psn);
/* Give up all that are before psn. */
void reorder_pass(struct engine *e, struct reorder *r, u32 psn);
/*
 * The packet before psn came in its turn, and not as a repair. The packets that are held came
 * before it: either it was late, and all that was missing, or they are contradicted and go.
 */
void reorder_overtaken(struct engine *e, struct reorder *r, u32 psn);
void reorder_free(struct engine *e, struct held *h);
void reorder_purge(struct engine *e, struct reorder *r);

/* congestion.c */
void congestion_start(struct engine *e, struct qp *qp);
u32 congestion_window(const struct engine *e, const struct requester *req);
void congestion_sent(struct engine *e, struct qp *qp, u32 psn, bool ackreq, u64 now_ns);
void congestion_progress(struct engine *e, struct qp *qp, u32 packets, u64 now_ns);
void congestion_loss(struct engine *e, struct qp *qp);
/* Something is sent twice: its round trip cannot be timed. */
static inline void congestion_untime(struct qp *qp)
{
	qp->req.rtt.sample_start_ns = 0;
}
/* The adaptive time-out is about to send the oldest packet again. */
void congestion_probe(struct qp *qp);
/*
 * An answer to psn has come, which had been answered before. If that shows that the last probe was
 * not needed, the probe is counted, and the time-out becomes longer.
 */
rare void congestion_answered_twice(struct engine *e, struct qp *qp, u32 psn, u64 now_ns);
/* The adaptive time-out starts again, or stops. */
void congestion_rearm(struct engine *e, struct qp *qp, u64 now_ns);
/*
 * DCQCN, and the application's limit. What is for QPs with a limit alone is out of the way of the
 * others': in their path it would cost them what is inlined there.
 */
void rate_marked(struct engine *e, struct qp *qp, u64 now_ns);
/* A notification has come; it is dropped where no packet of ours can have caused it. */
enum xroce_drop rate_cut(struct engine *e, struct qp *qp, u64 now_ns);
/* True if a data packet may leave now; else the QP's timer is set for when it may. */
rare bool rate_allows_now(struct engine *e, struct qp *qp, u64 now_ns);
static inline bool rate_allows(struct engine *e, struct qp *qp, u64 now_ns)
{
	return likely(!qp->rate_limited) || rate_allows_now(e, qp, now_ns);
}
void rate_sent(struct engine *e, struct qp *qp, u32 bytes, u64 now_ns);
/* With qp->rate_limited: after a packet of the longest, no other one may leave for now. */
rare bool rate_pauses(const struct qp *qp, u64 now_ns);
/* The same: responses that wait for their rate have lost the timer that they waited by. */
rare void rate_look_again(struct engine *e, struct qp *qp);
/* The length of a packet by which bursts are reckoned: the longest one's, if nothing is said. */
static inline u32 rate_typical_bytes(const struct rate_limit *l, u32 path_mtu)
{
	return l->typical_bytes ? l->typical_bytes
				: PACKET_FRAME_MAX - ROCE_PMTU_MAX + path_mtu;
}
/* attr.rate_limit was set. */
void rate_set_limit(struct engine *e, struct qp *qp, u64 now_ns);

/* credit.c */
u8 credit_syndrome(const struct engine *e, const struct qp *qp);
/* By the peer's AETH. */
void credit_update(struct engine *e, struct qp *qp, u8 syndrome, u32 msn);
/* The peer has said that it has a receive WQE for this message, or the message needs none. */
bool credit_covers(const struct qp *qp, const struct send_wqe *wqe, u32 index);
/* May this message start? A wait is counted. */
bool credit_allows(struct engine *e, struct qp *qp, const struct send_wqe *wqe, u32 index);

/* flow.c */
/* With the QP: 0 or -ENOMEM; and its end. */
int flow_peers_init(struct qp *qp);
void flow_free(struct qp *qp);
void flow_start(struct engine *e, struct qp *qp);
/* It sends nothing more, or leaves the engine: what it has sent does not count any more. */
void flow_end(struct engine *e, struct qp *qp);
/* The packet of UC or UD whose turn it is. */
struct flow_to {
	const struct path *path;
	u32 dest_qpn, qkey;
	bool takes_receive;	/* it begins a message that takes a receive WQE over there */
};
/*
 * May it leave? If not, len is that of a probe that was written in its place; 0: nothing may, and
 * the QP's timer is set.
 */
bool flow_output(struct engine *e, struct qp *qp, const struct flow_to *to, u8 *frame, u32 *len,
		 u64 now_ns);
/* It did. */
static inline void flow_sent(struct qp *qp, bool takes_receive)
{
	qp->flow->sent++;
	qp->flow->receives += takes_receive;
}
void flow_expire(struct engine *e, struct qp *qp);
/* A probe or an answer; eth is where its frame starts. */
enum xroce_drop flow_input(struct engine *e, struct qp *qp, const struct packet *p, const u8 *eth,
			   u64 now_ns);
/* The next of e->answers, of which there are some. Returns the frame's length. */
u32 flow_answer_output(struct engine *e, u8 *frame);

/* timeout.c */
/* The time that the attribute stands for; IBTA 9.7.6 calls it T_tr. */
static inline u64 timeout_attribute_ns(const struct requester *req)
{
	return 4096ull << req->timeout;
}
#define TIMEOUT_SHORT_NS (4096ull << 16) /* shorter attributes are made longer, 268 ms */
/*
 * The user's time-out: the wait for an answer before a retry is used. IBTA 9.7.6 permits one to
 * four times the attribute. A short attribute is made longer, since a process on a busy host waits
 * hundreds of milliseconds for a processor. Meanwhile the adaptive time-out probes.
 */
static inline u64 timeout_ns(const struct requester *req)
{
	const u64 least_ns = timeout_attribute_ns(req);

	return min_u64(4 * least_ns, max_u64(least_ns, TIMEOUT_SHORT_NS));
}
/* When the requester is to be looked at again. */
static inline u64 timeout_due_ns(const struct requester *req)
{
	return req->rnr_wait ? req->rnr_until_ns :
			       min_u64(req->ack_deadline_ns, req->rtt.deadline_ns);
}
/* A deadline that is noticed so late says that this process did not run. */
#define TIMEOUT_LATE_NS (4 * NSEC_PER_MSEC)
static inline bool timeout_is_late(u64 deadline_ns, u64 now_ns)
{
	return now_ns > deadline_ns && now_ns - deadline_ns >= TIMEOUT_LATE_NS;
}
/* The QP's timer has fired. */
void timeout_expire(struct engine *e, struct qp *qp, u64 now_ns);

/* completer.c */
/* An ACK or NAK, of its packet what counts. */
enum xroce_drop completer_ack(struct engine *e, struct qp *qp, u32 psn, u8 syndrome, u32 msn,
			      u64 now_ns);
enum xroce_drop completer_input(struct engine *e, struct qp *qp, const struct packet *p,
				u64 now_ns);
/* No retry is left. verr: of what for, if the peer has not said why it is silent. */
void completer_give_up(struct engine *e, struct qp *qp, enum vendor_err verr, u64 now_ns);
/* Complete local work requests at the queue's head that are done. */
void completer_local(struct engine *e, struct qp *qp, u64 now_ns);
/* Report SQ_DRAINED if the queue is drained and the application asked. */
void completer_check_drained(struct engine *e, struct qp *qp);

/* responder.c */
void responder_start(struct qp *qp, u32 rq_psn);
enum xroce_drop responder_input(struct engine *e, struct qp *qp, const struct packet *p,
				const struct xroce_rx_cqe *hint, u64 now_ns);
/* Push the completion of the receive WQE that qp->resp.recv holds. */
void responder_complete(struct engine *e, struct qp *qp, const struct packet *p,
			const struct xroce_rx_cqe *hint, struct cqe *cqe, u64 now_ns);
/* Payload of p from its byte skip on into the held receive WQE at offset; false if a key fails. */
bool responder_scatter(struct engine *e, struct qp *qp, const struct packet *p, u32 skip,
		       u64 offset);

/* duplicate.c */
/* A request that was executed before: it is answered again. Returns why not. */
enum xroce_drop duplicate_answer(struct engine *e, struct qp *qp, const struct packet *p);

/* The READ or atomic that was taken n before the next one, n in 1 .. max_dest_rd_atomic. */
static inline struct resp_resource *resource_stored(const struct responder *resp, u32 n)
{
	return &resp->resource[(resp->resource_head - n) & resp->resource_mask];
}

/* reply.c */
u32 reply_output(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns);
/* One response after all pending READ and atomic responses; a NAK is never replaced by an ACK. */
void reply_ack(struct engine *e, struct qp *qp, u8 syndrome, u32 psn);
/* Answer resource r (again) from response packet cursor up to stop. */
void reply_resource(struct engine *e, struct qp *qp, struct resp_resource *r, u32 cursor, u32 stop);
/* Resource r, which is pending, is not any more. */
void reply_withdraw(struct responder *resp, const struct resp_resource *r);
/* No READ or atomic response that is still to be sent goes out any more. */
void reply_forget(struct qp *qp);
/* The word of pending that has its bit, the bit, and whether it is set. */
static inline u64 *resource_word(struct responder *resp, const struct resp_resource *r)
{
	return &resp->pending[(r - resp->resource) / 64];
}
static inline u64 resource_bit(const struct responder *resp, const struct resp_resource *r)
{
	return 1ull << (r - resp->resource) % 64;
}
static inline bool resource_pending(const struct responder *resp, const struct resp_resource *r)
{
	return resp->pending[(r - resp->resource) / 64] & resource_bit(resp, r);
}
static inline bool reply_pending(const struct qp *qp)
{
	return qp->resp.num_pending || qp->resp.ack_due || qp->cnp_due;
}

/* group.c */
/*
 * A packet that is for no QP of the device by its number: to the members of its group. Returns
 * XROCE_DROP_none if any has taken it; what others had against their copies is counted.
 * XROCE_DROP_not_handed: it is engine number 0's.
 */
enum xroce_drop group_input(struct engine *e, const struct packet *p,
			    const struct rx_frame *frame, const struct xroce_rx_cqe *hint,
			    u64 now_ns);

/* raw.c */
/*
 * A frame that is no RoCEv2 packet for a QP: to those QPs whose flows take it. As group_input();
 * XROCE_DROP_flow: none does.
 */
enum xroce_drop raw_input(struct engine *e, const struct xroce_rx_cqe *hint,
			  const struct rx_frame *frame, u64 now_ns);
u32 raw_output(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns);

/* tag.c */
struct tag_header {
	struct tmh tmh;
	struct rvh rvh; /* of a rendezvous only */
};
/*
 * What a tag-matching SRQ made of the SEND under way; 0 where there is none. From TAG_MATCHED on it
 * has a tag's buffer, before that a receive WQE.
 */
enum tag_kind { TAG_NONE = 1, TAG_UNEXPECTED, TAG_MATCHED, TAG_FETCHED, TAG_LEFT };
/*
 * engine_take_receive() for the first packet of a SEND to a tag-matching SRQ: the buffer of the tag
 * that matches, or a receive WQE. False: RNR.
 */
bool tag_receive(struct engine *e, struct qp *qp, const struct packet *p);
/*
 * A rendezvous that is left to the application: TMH and RVH into the tag's buffer, as far as they
 * fit. False if a key fails.
 */
bool tag_scatter_headers(struct engine *e, struct qp *qp, const struct packet *p);
/*
 * The message matched and goes on, or has ended: its completion. cqe has what every receive's says.
 */
void tag_complete(struct engine *e, struct qp *qp, const struct packet *p,
		  const struct xroce_rx_cqe *hint, struct cqe *cqe, u64 now_ns);
/* The message under way will not end. Returns the opcode of its completion in error. */
u16 tag_abandon(struct qp *qp);
/* The QP's completions are about to be taken away: the unexpected messages among them were none. */
void tag_forget_qp(struct qp *qp);

/* rendezvous.c */
/*
 * The send queue of a QP on a tag-matching SRQ, and what the application posts to. Returns 0 or
 * -ENOMEM; the rings are to be freed then as well.
 */
int shared_sends_init(struct qp *qp, const struct qp_init *init);
void shared_sends_free(struct qp *qp);
/* What was posted goes to the send queue; one of it has completed; all of it is forgotten. */
void shared_sends_move(struct qp *qp);
void shared_sends_completed(struct qp *qp);
void shared_sends_reset(struct qp *qp);
/* Can the engine fetch what h announces into a buffer of room bytes? */
bool rendezvous_fits(const struct qp *qp, const struct tag_header *h, u64 room);
/* Can it do so now? */
bool rendezvous_has_room(const struct qp *qp);
/* Fetch it into the receive that qp->resp.recv names. */
void rendezvous_start(struct engine *e, struct qp *qp, const struct tag_header *h, bool solicited);
/* A WQE of a rendezvous has completed. */
void rendezvous_sent(struct engine *e, struct qp *qp, const struct send_wqe *wqe,
		     enum cqe_status status, enum vendor_err verr, u64 now_ns);

/* datagram.c */
enum xroce_drop datagram_input(struct engine *e, struct qp *qp, const struct packet *p,
			       const struct xroce_rx_cqe *hint, u64 now_ns);
/*
 * Into the QP's next receive: the GRH, which is NULL if there is none, and the payload behind it.
 * The receive completes as cqe says, or in error.
 */
enum xroce_drop datagram_receive(struct engine *e, struct qp *qp, const struct packet *p,
				 const struct xroce_rx_cqe *hint, const u8 *grh, struct cqe *cqe,
				 u64 now_ns);
u32 datagram_output(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns);

/* PSNs that a message of length bytes takes: at least one. pmtu is a power of two. */
static inline u32 psn_count(u32 length, u32 pmtu)
{
	return length ? (length - 1) / pmtu + 1 : 1;
}

#endif
