/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * struct engine, and functions that most of the engine's files call. No file outside user/engine
 * includes this header, or one that includes it. Each file declares its own functions in a header
 * of its name:
 *
 *   engine.c       making an engine, its ready list, receive WQEs
 *   input.c        demultiplexing and checks of received packets, many at once
 *   owner.c        several engines of a device
 *   qp.c           making QPs, their send queue, flushing     (send_queue.h)
 *   qp_state.c     ibv_modify_qp()'s table of states
 *   requester.c    WQEs to request packets; responses that XDP wakes for
 *   completer.c    responses to completions
 *   recovery.c     retransmission and time-outs
 *   congestion.c   window, adaptive time-out, DCQCN
 *   credit.c       end-to-end credits
 *   responder.c    request packets to memory and receives
 *   reply.c        ACKs, NAKs, responses, duplicate requests
 *   reorder.c      packets that arrived before an earlier one
 *   datagram.c     UD, multicast groups
 *   raw.c          raw packet QPs: by flow, and to work queues by hash
 *   flow.c         flow control of UC and UD                  (flow_control.h)
 *   tag.c          tag matching and rendezvous                (tag_match.h)
 *   event.c        completions, events, moderation
 *   timer.c        deadlines of QPs
 *   template.c     headers kept to copy and to compare
 *   stat.c         counters and records that a QP shows of itself
 *
 * For the engine's caller: gso.c, packets that may leave as one, and super-packets cut again.
 */
#ifndef ENGINE_INTERNAL_H
#define ENGINE_INTERNAL_H

#include "engine.h"
#include "group.h"
#include "guard.h"
#include "raw.h"
#include "rss.h"
#include "timer_heap.h"

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
struct timers {
	struct timer *line;	/* a ring, in order of time */
	u32 line_head, line_tail;
	/* deadlines that would not be in order there; place[] with IN_LINE: position in the line */
	struct timer_heap heap;
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

/* PSNs that a message of length bytes takes: at least one. pmtu is a power of two. */
static inline u32 psn_count(u32 length, u32 pmtu)
{
	return length ? (length - 1) / pmtu + 1 : 1;
}

#endif
