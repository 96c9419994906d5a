/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The engine: packets and time in, packets, completions and events out. No system call, no clock,
 * no memory allocation once the objects are made, no lock: its owner serialises all calls but those
 * marked [any thread].
 *
 * A device may have several engines, each with an owner's lock of its own, at work at the same
 * time: each owns QPs, and they share the numbers of QPs and SRQs, the memory regions and, where
 * QPs of several use one, CQs and plain SRQs. Calls marked [all] want every engine of the device
 * held, and take any of them; so does what makes, changes and ends objects in qp.h, cq.h, rq.h,
 * mr.h and tag.h. Events of any engine may be due after one of those. A device with one engine has
 * nothing of all this to care for.
 *
 * Its two callers are the pump in user/shard and the world in tests/sim.
 */
#ifndef ENGINE_H
#define ENGINE_H

#include <xroce/abi.h>
#include <xroce/trace.h>

#include "cq.h"
#include "mr.h"
#include "packet.h"
#include "pkey.h"
#include "qp.h"
#include "raw.h"
#include "rq.h"
#include "tag.h"
#include "types.h"

/* What the engine has to report; bits in qp->events and srq->events. */
enum engine_event_type {
	EVENT_NONE = 0,
	EVENT_COMPLETION = 1 << 0,	/* cq: an armed CQ got a completion */
	EVENT_CQ_ERR = 1 << 1,		/* cq: overrun */
	EVENT_QP_FATAL = 1 << 2,	/* of a work queue also that a receive of it failed */
	EVENT_QP_REQ_ERR = 1 << 3,
	EVENT_QP_ACCESS_ERR = 1 << 4,
	EVENT_COMM_EST = 1 << 5,
	EVENT_SQ_DRAINED = 1 << 6,
	EVENT_QP_LAST_WQE = 1 << 7,
	/* the engine moved the QP to ERR or SQE: steering must follow */
	EVENT_QP_STATE = 1 << 8,
	EVENT_SRQ_ERR = 1 << 9,
	EVENT_SRQ_LIMIT = 1 << 10,
};

struct engine_event {
	enum engine_event_type type;
	struct cq *cq;
	struct qp *qp;
	struct srq *srq;
};

struct engine_config {
	/* for keys, QPNs and cookies, while this engine is held; cryptographic outside tests */
	u64 (*random)(void *arg);
	void *random_arg;
	struct xroce_engine_stats *stats; /* counters, the caller's memory: may be a shared map */
	struct xroce_drops *drops;
	u32 window_packets;		/* request packets in flight a QP; 0 = default */
	u32 disable;			/* ENGINE_NO_*: parts that are on otherwise */
	bool ecn;			/* send data packets as ECN-capable */
	u64 line_rate;			/* bytes/s of the link, for the rate limit; 0 = 10 Gbit/s */
	struct xroce_expect *expect;	/* XROCE_MAX_QP of them, the device's; NULL: unused */
	u32 receive_frames;		/* in the ring that a packet arrives in; 0 = 1024 */
	/* an engine of the same device, or NULL: the first, number 0 */
	struct engine *sibling;
	u32 number;			/* 0 .. ENGINE_MAX - 1, among the device's */
	/* the device's, copied; NULL: the default P_Key alone */
	const struct pkey_table *pkeys;
};

/*
 * What goes beyond the plainest requester and responder and can be turned off; all of it is
 * invisible on the wire to a peer without it.
 */
enum {
	ENGINE_NO_REORDER = 1 << 0,	 /* early packets are dropped, not kept until their turn */
	/* a loss is repaired by going back to it and sending all again */
	ENGINE_NO_SELECTIVE = 1 << 1,
	ENGINE_NO_ADAPTIVE_RTO = 1 << 2, /* only the user's time-out */
	ENGINE_NO_CWND = 1 << 3,	 /* the window does not shrink after a loss */
	ENGINE_NO_CREDITS = 1 << 4,	 /* AETH credits are neither sent nor heeded */
	/* UC and UD neither ask nor answer what the receiver can take: see flow.c */
	ENGINE_NO_FLOW = 1 << 5,
};

struct engine;

/*
 * [all] Returns 0, -ENOMEM, or -EINVAL for a number that is taken or cannot be. stats and drops
 * must daemonize the engine.
 */
int engine_create(const struct engine_config *config, struct engine **out);
/* [all] All QPs and SRQs must be gone. What engines share goes with the last one. */
void engine_destroy(struct engine *e);

u32 engine_number(const struct engine *e);

struct mr_table *engine_mr_table(struct engine *e);

/* The device's QP of that number, or NULL. */
struct qp *engine_find_qp(const struct engine *e, u32 qpn);

/* ---- several engines of a device ---- */

/* Which of the device's QPs is a frame for? NULL if for none, or that cannot be read. */
struct qp *engine_frame_qp(const struct engine *e, const struct rx_frame *frame);

/* May an engine other than number 0 own this QP? */
bool engine_may_move(const struct qp *qp);
/*
 * [all] Not 0: the peer may not have taken from its ring all that this QP of UC has sent. What it
 * sends next from elsewhere could overtake that. The same value later: it has sent nothing since.
 */
u64 engine_untaken(const struct qp *qp);
/*
 * [all] Make to the owner of a QP that may move. Packets that came early are lost by it; all else
 * goes with it. If it has something to send, engine_has_doorbells() of to says so.
 */
void engine_move_qp(struct engine *to, struct qp *qp, u64 now_ns);

/*
 * Which engines, a bit each by number, have got something to do from e since this was last asked:
 * the doorbell of a QP of theirs that was rung here, or a CQ that overran with QPs of both.
 * engine_has_doorbells() is true of them until they have run. The caller asks after each round of e
 * and has them run.
 */
u32 engine_passed_doorbells(struct engine *e);

/* ---- the contract ---- */

/*
 * A frame has come in for a QP that e owns; all others are dropped. hint is what XDP wrote or NULL
 * (loopback, simulator); it gives time, flow tag and nothing that is trusted. Returns
 * XROCE_DROP_none if the packet was used, or the reason for its drop, which is counted. The frame
 * is free again on return.
 */
enum xroce_drop engine_input(struct engine *e, const struct xroce_rx_cqe *hint,
			     const struct rx_frame *frame, u64 now_ns);

/*
 * The same for n frames in their order, with what each will touch fetched into the cache while
 * others are worked on. Returns how many were dropped. With away n is at most 64, and frames for a
 * QP of the device with another owner are left alone: of each its bit is set there.
 */
struct engine_frame {
	struct rx_frame frame;
	const struct xroce_rx_cqe *hint;
};
u32 engine_input_batch(struct engine *e, const struct engine_frame *frames, u32 n, u64 now_ns,
		       u64 *away);

/*
 * Write the next frame to be sent into frame, which has room bytes (at least PACKET_FRAME_MAX).
 * Returns its length, 0 when there is nothing to send now; with ENGINE_RAW if it is a raw packet
 * QP's, which is to leave as it is. The frame's data is final: the engine does not look at it
 * again.
 */
#define ENGINE_RAW (1u << 31)
u32 engine_output(struct engine *e, u8 *frame, u32 room, u64 now_ns);

/*
 * When engine_expire() must be called at the latest; NSEC_NEVER if no timer runs. [any thread] as a
 * hint.
 */
u64 engine_deadline_ns(const struct engine *e);
/* Let all timers with a deadline <= now_ns fire. */
void engine_expire(struct engine *e, u64 now_ns);

/*
 * Take the next event, false when there is none. Call until empty after each round of the above,
 * before the engine is let go.
 */
bool engine_next_event(struct engine *e, struct engine_event *event);

/*
 * [any thread] WQEs were published on qp (or receives on a QP in ERR). The next engine_output() of
 * its owner, which is returned, finds them. A caller that cannot run that engine now leaves it to
 * the lock's holder: see engine_has_doorbells(). Should the QP move meanwhile, the doorbell is
 * passed on: see engine_passed_doorbells().
 */
struct engine *engine_doorbell(struct qp *qp);
/*
 * The same for the holder of the engine, which is the QP's owner: no atomic operation, and no wait
 * until what was posted has left the store buffer.
 */
void engine_posted(struct engine *e, struct qp *qp);
/*
 * [any thread] True if a doorbell rang that no engine_output() has seen, or a sibling has left
 * something for engine_next_event(): the lock's holder looks after unlocking.
 */
bool engine_has_doorbells(const struct engine *e);

/* Move a QP of e's to the error state and flush it; reports the events given (EVENT_*). */
void engine_qp_error(struct engine *e, struct qp *qp, u32 events);

/*
 * All of e's, without an event of their own: nothing can be sent or received any more.
 */
void engine_fail(struct engine *e);

/*
 * [all] Give an SRQ its number (24 bits) and let XRC requests find it. Returns 0 or -ENOMEM when
 * ENGINE_MAX_SRQ are in use. Before it goes, take it out again.
 */
#define ENGINE_MAX_SRQ 16384
#define ENGINE_MAX_QP  (XROCE_MAX_QP - 1) /* and QP 1 */
int engine_srq_add(struct engine *e, struct srq *srq);
void engine_srq_remove(struct engine *e, struct srq *srq);

/*
 * [all] ibv_modify_cq(3): cq_moderate(), and what is withheld now is reported. engine_cq_forget()
 * before a CQ goes.
 */
void engine_cq_moderate(struct engine *e, struct cq *cq, u32 count, u64 period_ns);
void engine_cq_forget(struct engine *e, struct cq *cq);

/*
 * [all] Arm SRQ_LIMIT_REACHED: fires once when fewer than limit WQEs are left (at once if that is
 * so already). 0 disarms.
 */
void engine_srq_set_limit(struct engine *e, struct srq *srq, u32 limit);

/*
 * What an engine notes of its QPs while somebody looks (xroce/trace.h), in memory that its caller
 * hands it; without, it notes nothing.
 */

struct engine;

#define ENGINE_NOTES 256u

struct engine_note {
	u32 qpn, peer_qpn;
	enum xroce_event event;
	u32 value, more; /* as in struct xroce_told */
};

struct engine_notes {
	/* of the QP whose packet engine_output() gave last */
	u32 output_qpn, output_peer_qpn;
	u32 num;	/* the caller sets it to 0 when it has taken them */
	u32 lost;	/* there was no room: taken more seldom than they come */
	struct engine_note note[ENGINE_NOTES];
};

/* From here on; NULL: no longer. The memory stays the caller's, which it may free after that. */
void engine_set_notes(struct engine *e, struct engine_notes *notes);

#endif
