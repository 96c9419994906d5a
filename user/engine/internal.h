/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * struct engine, and functions that several of the engine's files call. Only files of user/engine
 * may include this header, directly or through another. requester.h declares the functions of
 * completer.c too, and responder.h the functions of reply.c. This header declares the functions of
 * files without a header:
 *
 *   engine.c       making an engine, its ready list, deadlines, receive WQEs
 *   input.c        demultiplexing and checks of received packets, in batches
 *   owner.c        several engines of a device
 *   qp.c           making QPs, their send queue, flushing
 *   qp_state.c     ibv_modify_qp()'s table of states
 *   requester.c    WQEs to request packets; responses that XDP wakes for
 *   completer.c    responses to completions
 *   recovery.c     retransmission and time-outs; packets that arrived before an earlier one
 *   congestion.c   window, adaptive time-out, DCQCN
 *   credit.c       end-to-end credits; probed credits of UC and UD
 *   responder.c    request packets to memory and receives
 *   reply.c        ACKs, NAKs, responses, duplicate requests
 *   datagram.c     UD, multicast groups
 *   raw.c          raw packet QPs: by flow, and to work queues by hash
 *   tag.c          tag matching and rendezvous
 *   cq.c           the completion ring; completions, events, moderation
 *   template.c     headers kept to copy and to compare
 *   faults.c       faults on request: failed WQEs, late completions
 *   stat.c         counters and records of a QP that other processes can read
 *
 * For the engine's caller: gso.c joins packets into GSO super-packets and splits received ones.
 */
#ifndef ENGINE_INTERNAL_H
#define ENGINE_INTERNAL_H

#include "engine.h"
#include "guard.h"
#include "raw.h"
#include "timer_heap.h"

/* Early packets kept: per QP and direction, and in total (4.3 KiB each, touched only when used). */
#define REORDER_MAX_QP 128
#define REORDER_POOL   512

/* When a QP is to be looked at, by its slot in the table; see engine.c. */
struct timers {
	struct timer *line;	/* a ring, in order of time */
	u32 line_head, line_tail;
	/* deadlines that would not be in order there; place[] with IN_LINE: position in the line */
	struct timer_heap heap;
	u64 *due_ns;		/* of a slot: its deadline, at_ns or later */
};

/* A multicast group with members: see engine.h. */
#define GROUP_BUCKETS 256u
struct group {
	struct group *next;
	struct gid address;
	u32 num;
	struct qp *member[GROUP_MEMBERS_MAX];
};

/*
 * Tables shared by a device's engines. They change with all engines held, so each engine may read
 * them. Exceptions: windows (see mr.h) and the ledger, which has a lock.
 */
struct engine_tables {
	struct engine *engine[ENGINE_MAX];
	struct mr_table mrs;
	struct credit_ledger credits;
	u32 num_qps; /* without QP 1 */
	u32 num_srqs;
	/* generation of the last number in each slot; see owner_draw_number() */
	u16 qp_generation[XROCE_MAX_QP];
	u16 srq_generation[ENGINE_MAX_SRQ];
	u32 num_groups;
	struct group *group[GROUP_BUCKETS];
	u32 num_raw;   /* raw packet QPs */
	u32 num_flows; /* number of entries in flows: see raw.h */
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
	 * QPs that may have something to send, served in turn: a ring in an array, so that
	 * neighbours are not touched
	 */
	u32 ready_head, ready_tail;
	u32 burst;

	/* doorbells, pushed by any thread, taken as a whole */
	_Atomic(struct qp *) doorbells cache_aligned;
	/* a CQ overran since the last check: its QPs go to error. Siblings set it too */
	_Atomic bool overrun;
	/* a fault on request failed a send WQE since the last check: its QP goes to error */
	_Atomic bool failing;

	struct timers timers cache_aligned;
	_Atomic u64 earliest_ns; /* the first timer or moderated event, for other threads */

	struct cq *pushed;	/* CQs that got completions in this call */
	/* objects with events to report */
	struct cq *cq_events;
	/* moderated CQs that may withhold an event; cq_due_ns is the earliest due time */
	struct cq *cq_due;
	u64 cq_due_ns;
	u64 late_due_ns; /* of the first late completion; NSEC_NEVER: none */
	u64 now_ns;		/* time of the current call */
	/*
	 * A row: consecutive frames for one QP, all requests or all responses. Its counters are
	 * updated when the row ends, at the latest at the end of the call.
	 */
	struct {
		struct qp *qp;
		const struct header_in *kept; /* of the QP and kind; NULL: no row has begun */
		u64 before;		      /* the engine's packet count when the row began */
		u64 bytes;		      /* beyond frame_len of each frame, modulo 2^64 */
		u32 frame_len;		      /* frame_len of kept */
	} row;
	struct late_list *late;	     /* NULL without faults on request */
	struct fault_request fault;  /* the last one, of verdict FAULT */
	struct engine_notes *notes; /* NULL: no trace is being taken */
	struct qp *qp_events;
	struct srq *srq_events;

	struct icrc_table icrc;
	/*
	 * difference of a correct ICRC that needs no further check: 0, or with config.unknown_ids
	 * none, so that identification 0 is noticed
	 */
	u64 icrc_plain;
	struct engine_unknown *unknown; /* NULL unless config.unknown_ids */
	struct credit_answers answers;
	struct qp *ready[XROCE_MAX_QP];
};

/* ---- input.c: the ICRC of packets whose identification is unknown (config.unknown_ids) ---- */

struct engine_unknown;
/* Returns 0 or -ENOMEM. */
int engine_unknown_make(struct engine *e);
/*
 * Returns whether any of them explains the difference of an IPv4 packet of this length with its
 * header.
 */
bool engine_explains(struct engine *e, u32 bytes, u32 difference);

/*
 * Returns whether the ICRC of a packet, with packet_icrc_difference(), is correct. For a packet of
 * no connected QP's peer: of such a peer see struct icrc_peer.
 */
static inline bool engine_icrc_ok(struct engine *e, const struct packet *p, u32 difference)
{
	return likely(!difference) ||
	       (!p->is_ipv6 && engine_explains(e, packet_bytes(p), difference));
}

/* Requests with their own response: each takes a PSN of it and counts towards max_rd_atomic. */
#define OP_ANSWERED (OP_READ | OP_ATOMIC | OP_FLUSH | OP_ATOMIC_WRITE)

static inline bool is_reliable(const struct qp *qp)
{
	return qp->transport == XROCE_RC || qp->transport == XROCE_XRC;
}

/* Returns why a copy to or from a list of elements failed. */
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
 * Result of delivering copies of one packet. The packet is dropped only if no QP took a copy, for
 * the last refusal's reason; each other refusal is counted too.
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

/* Ends the delivery: returns the packet's drop reason. */
static inline enum xroce_drop copies_end(struct engine *e, const struct copies *c)
{
	if (!c->taken)
		return c->refused;
	if (c->refused != XROCE_DROP_none)
		engine_drop(e, c->refused);
	return XROCE_DROP_none;
}

/* engine.c */
/*
 * Kinds of packets that a QP may have to send. Sending the last of a kind may clear its bit: later
 * work sets it again.
 */
enum { READY_REQUESTS = 1 << 0, READY_REPLIES = 1 << 1 };
void engine_ready(struct engine *e, struct qp *qp, u8 what);
/*
 * [all] Removes the QP from ready list, timers and events, and frees early packets;
 * engine_forget_qp() also silences its doorbell. e is the QP's owner.
 */
void engine_forget_qp(struct engine *e, struct qp *qp);
void engine_detach_qp(struct engine *e, struct qp *qp);
/* Returns the XRC SRQ with that number, or NULL. */
struct srq *engine_find_srq(const struct engine *e, u32 number);
/*
 * Takes a receive WQE from the QP's queue or SRQ into qp->resp.recv, if none is held. Returns false
 * when there is none.
 */
bool engine_take_receive(struct engine *e, struct qp *qp);

/* Deadlines of QPs. */
int timers_init(struct timers *t);
void timers_free(struct timers *t);
/* Sets the deadline, also to a later time than before. */
void timer_put_off(struct engine *e, struct qp *qp, u64 deadline_ns);
/* Sets the deadline if it is earlier than the current one. */
static inline void timer_set(struct engine *e, struct qp *qp, u64 deadline_ns)
{
	if (deadline_ns < e->timers.due_ns[qp->qpn % XROCE_MAX_QP])
		timer_put_off(e, qp, deadline_ns);
}
/* Stops the timer; its entry may stay, like a postponed one's. */
static inline void timer_stop(struct engine *e, struct qp *qp)
{
	e->timers.due_ns[qp->qpn % XROCE_MAX_QP] = NSEC_NEVER;
}
void timer_cancel(struct engine *e, struct qp *qp);
/* Returns a due QP or NULL; call until NULL. */
struct qp *timer_pop(struct engine *e, u64 now_ns);
/* Publishes the earliest deadline to other threads. */
void timer_publish(struct engine *e);

/* input.c */
/* Checks whether the QP may have a packet that is not addressed to its number. */
enum xroce_drop engine_check_copy(const struct qp *qp, const struct packet *p);

/* cq.c */
/*
 * Push a completion, in two steps: the caller fills engine_complete_begin()'s entry and touches no
 * CQ before engine_complete_end(). engine_take_arms() takes the event if the CQ is armed.
 */
struct cqe *engine_complete_begin(struct cq *cq);
void engine_complete_end(struct engine *e, struct cq *cq, struct cqe *cqe, bool solicited);
/* Both steps in one. Inlined, so that a local completion is written directly into the ring. */
static per_packet void engine_complete(struct engine *e, struct cq *cq, const struct cqe *cqe,
				       bool solicited)
{
	struct cqe *to = engine_complete_begin(cq);

	*to = *cqe;
	engine_complete_end(e, cq, to, solicited);
}
/*
 * Takes the arm words of the CQs that were pushed to, and their events, at the end of each call
 * from outside. Usually there is none, which costs one check.
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
/* Reports SRQ_ERR, once, for an SRQ whose own CQ has overrun: it delivers nothing any more. */
void engine_check_srq(struct engine *e, struct srq *srq);

/* Ends engine_complete_begin() without asking for faults. */
rare void engine_complete_push(struct engine *e, struct cq *cq, struct cqe *cqe, bool solicited);

/* faults.c: of an engine with config.faults */
/* faults_init() returns 0 or -ENOMEM; faults_free() frees its memory. Also without faults. */
int faults_init(struct engine *e);
void faults_free(struct engine *e);
/*
 * Returns the status of a send WQE that has succeeded: of a rule, or flushed after such a WQE of
 * its QP. The QP follows at the end of the call: see qp_stop_sending().
 */
rare enum cqe_status faults_send(struct engine *e, struct qp *qp, u32 opcode);
/* engine_complete_end(), or keeps the completion to be pushed later. */
rare void faults_complete_end(struct engine *e, struct cq *cq, struct cqe *cqe, bool solicited);
/* Pushes the late completions that are due. */
rare void faults_expire(struct engine *e, u64 now_ns);
/* [all] Drops the late completions of a CQ, or with NULL of a QP number. */
rare void faults_forget(struct engine_tables *t, const struct cq *cq, u32 qpn);

/* Returns whether the event of a pushed completion is withheld for now. */
bool moderation_withholds(struct engine *e, struct cq *cq, bool failed, bool solicited);
void moderation_expire(struct engine *e, u64 now_ns);
/* [all] Handles a change of the engines with QPs on this CQ. */
void moderation_settle(struct engine_tables *t, struct cq *cq);

/* datagram.c */
enum xroce_drop datagram_input(struct engine *e, struct qp *qp, const struct packet *p,
			       const struct xroce_rx_cqe *hint, u64 now_ns);
/*
 * Stores a packet in the QP's next receive: the GRH, unless it is NULL, then the payload. The
 * receive completes with cqe, or in error.
 */
enum xroce_drop datagram_receive(struct engine *e, struct qp *qp, const struct packet *p,
				 const struct xroce_rx_cqe *hint, const u8 *grh, struct cqe *cqe,
				 u64 now_ns);
u32 datagram_output(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns);

/*
 * Delivers a packet whose QPN no QP of the device has to the members of its group. Returns
 * XROCE_DROP_none if any member took it; other members' refusals are counted.
 * XROCE_DROP_not_handed: engine number 0 must handle it.
 */
enum xroce_drop group_input(struct engine *e, const struct packet *p,
			    const struct rx_frame *frame, const struct xroce_rx_cqe *hint,
			    u64 now_ns);

/* owner.c */
/*
 * [all] owner_join() adds an engine to its device or creates the device's tables: 0, -ENOMEM or
 * -EINVAL. owner_leave() removes it; the last engine frees the tables.
 */
int owner_join(struct engine *e);
void owner_leave(struct engine *e);
/*
 * [all] Draws a 24-bit number for a QP or SRQ. Its slot, the number modulo slots, must be free in
 * table and is never `kept`. A free slot must exist. generation has the last generation of each
 * slot.
 */
u32 owner_draw_number(const struct engine *e, void *const *table, u16 *generation, u32 slots,
		      u32 kept);
/* [all] Takes a number that was drawn elsewhere. Returns false if it is not available here now. */
bool owner_take_number(void *const *table, u16 *generation, u32 slots, u32 kept, u32 number);
/* [all] Makes e the QP's owner, or ends that, and updates the users of its CQs and SRQs. */
void owner_take_qp(struct engine *e, struct qp *qp);
void owner_release_qp(struct engine *e, struct qp *qp);
/* [all] Adds or removes a CQ of an XRC SRQ, which engine number 0 fills; cq may be NULL. */
void owner_take_cq(struct engine *e, struct cq *cq);
void owner_release_cq(struct engine *e, struct cq *cq);
/* Checks the queues of e's QPs whose doorbell rang, and passes other owners' doorbells on. */
void owner_take_doorbells(struct engine *e);
static inline void owner_look_at_doorbells(struct engine *e)
{
	if (atomic_load_explicit(&e->doorbells, memory_order_relaxed))
		owner_take_doorbells(e);
}
/* [all] Takes the QP's doorbell off the stacks. Returns true if it rang. */
bool owner_silence_doorbell(struct engine *e, struct qp *qp);
/* Reports a CQ overrun: every engine with QPs on the CQ is to move them to error. */
void owner_report_overrun(struct engine *e, const struct cq *cq);

/* qp.c: the send queue, outstanding READs and atomics, flushing */
static inline struct send_wqe *sq_at(const struct sq *sq, u32 index)
{
	/* relaxed: `first` changes only while the queue is empty, ordered by prod and cons */
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
/* Initialises the queue, in the caller's memory of sq_bytes() or its own. Returns 0 or -ENOMEM. */
int sq_init(struct sq *sq, u32 max_wr, u32 max_sge, u32 max_inline, void *lent);
void sq_free(struct sq *sq);
/* Completes the oldest WQE of the send queue and frees its slot. */
void sq_complete(struct engine *e, struct qp *qp, enum cqe_status status, enum vendor_err verr,
		 u64 now_ns);
void qp_flush(struct engine *e, struct qp *qp);
/*
 * Purges the QP's completions from its CQs, whose consumer sides are held, and an XRC target's from
 * the CQs of its domain's SRQs.
 */
void qp_purge_completions(struct engine *e, struct qp *qp);
/*
 * Fails the oldest send WQE: completes it, moves the QP to ERR (SQE on UC and UD), and flushes the
 * rest.
 */
void qp_send_error(struct engine *e, struct qp *qp, enum cqe_status status, enum vendor_err verr,
		   u64 now_ns);
/* Moves a QP to ERR (SQE on UC and UD) after a failed send WQE, and flushes the rest. */
void qp_stop_sending(struct engine *e, struct qp *qp);
/* Clears requester and responder as for qp_create(); allocates no ring. */
void qp_clear(struct qp *qp);

/* Selects the rings in struct qp, for a zeroed requester and responder. */
void rd_atomic_init(struct qp *qp);
/*
 * Makes room for this many outstanding READs and atomics. Returns 0, or -ENOMEM with nothing
 * changed.
 */
int rd_atomic_reserve(struct qp *qp, u32 initiated, u32 answered);
/* Frees allocated rings; rd_atomic_init() or the end of the QP follows. */
void rd_atomic_free(struct qp *qp);

/*
 * Starts a packet from qp. Extension header fields are left alone: the caller sets the fields that
 * its opcode carries, and no others are read. (Clearing the whole struct takes longer than building
 * most packets.)
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

/* Returns the PSNs of a message of length bytes: at least one. pmtu is a power of two. */
static inline u32 psn_count(u32 length, u32 pmtu)
{
	return length ? (length - 1) / pmtu + 1 : 1;
}

#endif
