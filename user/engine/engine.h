/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The engine: packets and time in; packets, completions and events out. It makes no system call,
 * reads no clock, allocates no memory once the objects are made, and takes no lock: its owner
 * serialises all calls not marked [any thread].
 *
 * A device may have several engines, each with its own owner's lock, running at the same time. Each
 * owns QPs. They share the numbers of QPs and SRQs, the memory regions and, where QPs of several
 * engines use one, CQs and plain SRQs. Calls marked [all] require every engine of the device held,
 * and take any of them. So do the calls in qp.h, cq.h, rq.h, mr.h and tag.h that make, change and
 * destroy objects; events of any engine may be due after them. None of this concerns a device with
 * one engine.
 *
 * Its two callers are the pump in user/run and the world in tests/sim.
 */
#ifndef ENGINE_H
#define ENGINE_H

#include <xroce/abi.h>
#include <xroce/trace.h>

#include "cq.h"
#include "faults.h"
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
	EVENT_QP_FATAL = 1 << 2,	/* also for a work queue when a receive of it failed */
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

/*
 * Default window: request packets in flight per requester. Fits the rings of a veth or NIC (256)
 * with room for a second QP.
 */
#define ENGINE_WINDOW 128u

struct engine_config {
	/* for keys, QPNs and cookies, while this engine is held; cryptographic outside tests */
	u64 (*random)(void *arg);
	void *random_arg;
	struct xroce_engine_stats *stats; /* counters, the caller's memory: may be a shared map */
	struct xroce_drops *drops;
	u32 window_packets;		/* request packets in flight a QP; 0 = ENGINE_WINDOW */
	u32 disable;			/* ENGINE_NO_*: parts that are otherwise on */
	bool ecn;			/* send data packets as ECN-capable */
	u64 line_rate;			/* bytes/s of the link, for the rate limit; 0 = 10 Gbit/s */
	struct xroce_expect *expect;	/* XROCE_MAX_QP of them, the device's; NULL: unused */
	u32 receive_frames;		/* in the ring that a packet arrives in; 0 = 1024 */
	/* an engine of the same device, or NULL: the first, number 0 */
	struct engine *sibling;
	u32 number;			/* 0 .. ENGINE_MAX - 1, among the device's */
	/* the device's, copied; NULL: only the default P_Key */
	const struct pkey_table *pkeys;
	/*
	 * frames come from UDP sockets, which show neither identification nor flags of IPv4: they
	 * have 0 and "don't fragment" (icrc.h)
	 */
	bool unknown_ids;
	/* faults on request, the caller's until the engine's end; NULL: none */
	const struct engine_faults *faults;
};

/* Optional parts of the engine. A peer without them sees no difference on the wire. */
enum {
	ENGINE_NO_REORDER = 1 << 0,	 /* early packets are dropped, not kept until their turn */
	/* a loss is repaired by going back to it and resending everything from there */
	ENGINE_NO_SELECTIVE = 1 << 1,
	ENGINE_NO_ADAPTIVE_RTO = 1 << 2, /* only the user's time-out runs */
	ENGINE_NO_CWND = 1 << 3,	 /* the window does not shrink after a loss */
	ENGINE_NO_CREDITS = 1 << 4,	 /* AETH credits are neither sent nor honoured */
	/* UC and UD neither ask for nor report the receiver's capacity: see credit.c */
	ENGINE_NO_PROBED_CREDITS = 1 << 5,
};

struct engine;

/*
 * [all] Returns 0, -ENOMEM, or -EINVAL for a number that is in use or out of range. stats and drops
 * must outlive the engine.
 */
int engine_create(const struct engine_config *config, struct engine **out);
/* [all] All QPs and SRQs must be destroyed. The device's last engine frees the shared tables. */
void engine_destroy(struct engine *e);

u32 engine_number(const struct engine *e);
/* Returns config.unknown_ids: UDP sockets, which join packets of different senders. */
bool engine_joins_senders(const struct engine *e);

struct mr_table *engine_mr_table(struct engine *e);

/* Returns the device's QP with that number, or NULL. */
struct qp *engine_find_qp(const struct engine *e, u32 qpn);

/* ---- several engines of a device ---- */

/* Returns the device's QP that a frame is for; NULL if none is, or the frame cannot be parsed. */
struct qp *engine_frame_qp(const struct engine *e, const struct rx_frame *frame);

/* Returns whether an engine other than number 0 may own this QP. */
bool engine_may_move(const struct qp *qp);
/*
 * [all] Returns non-zero if this UC QP's peer may not have taken all its packets from its ring yet:
 * packets from another engine could overtake them. The same value later: nothing was sent since.
 */
u64 engine_untaken(const struct qp *qp);
/*
 * [all] Makes `to` the owner of a QP that may move. Packets that arrived early are lost; the rest
 * moves. engine_has_doorbells(to) is then true if the QP has something to send.
 */
void engine_move_qp(struct engine *to, struct qp *qp, u64 now_ns);

/*
 * Returns the engines, one bit per number, that e has given work since the last call: a doorbell of
 * one of their QPs rang here, or a CQ with QPs of both overran. engine_has_doorbells() stays true
 * for them until they have run. The caller asks after each round of e and runs them.
 */
u32 engine_passed_doorbells(struct engine *e);

/* ---- the contract ---- */

/*
 * Handles a received frame for a QP of e; frames for other QPs are dropped. hint is what XDP wrote,
 * or NULL (loopback, simulator); only its time and flow tag are used, as untrusted values. Returns
 * XROCE_DROP_none if the packet was used, else the drop reason, which is counted. The frame is free
 * again on return.
 */
enum xroce_drop engine_input(struct engine *e, const struct xroce_rx_cqe *hint,
			     const struct rx_frame *frame, u64 now_ns);

/*
 * The same for n frames in order, prefetching the memory that each will touch. Returns the number
 * of dropped frames. With `away`, n is at most 64, and a frame for a device QP with another owner
 * is not handled: its bit is set in *away.
 */
struct engine_frame {
	struct rx_frame frame;
	const struct xroce_rx_cqe *hint;
};
u32 engine_input_batch(struct engine *e, const struct engine_frame *frames, u32 n, u64 now_ns,
		       u64 *away);

/*
 * Writes the next frame to be sent into frame, which has room bytes (at least PACKET_FRAME_MAX).
 * Returns its length, or 0 when there is nothing to send now. ENGINE_RAW is set for a raw packet
 * QP's frame, which must leave unchanged. The frame's data is final: the engine does not read it
 * again.
 */
#define ENGINE_RAW (1u << 31)
u32 engine_output(struct engine *e, u8 *frame, u32 room, u64 now_ns);

/*
 * Returns the latest time for engine_expire(); NSEC_NEVER if no timer runs. [any thread] as a hint.
 */
u64 engine_deadline_ns(const struct engine *e);
/* Fires all timers with a deadline <= now_ns. */
void engine_expire(struct engine *e, u64 now_ns);

/*
 * Takes the next event; false when there is none. Call until empty after each round of the above,
 * before the engine is released.
 */
bool engine_next_event(struct engine *e, struct engine_event *event);

/*
 * [any thread] Reports WQEs published on qp (or receives on a QP in ERR). The next engine_output()
 * of its owner, which is returned, finds them. A caller that cannot run the owner now leaves it to
 * the lock's holder: see engine_has_doorbells(). If the QP moves first, the doorbell is passed on:
 * see engine_passed_doorbells().
 */
struct engine *engine_doorbell(struct qp *qp);
/*
 * The same for a caller that holds the QP's owner e: no atomic operation, and no wait for the store
 * buffer to drain.
 */
void engine_posted(struct engine *e, struct qp *qp);
/*
 * [any thread] Returns true if a doorbell rang that no engine_output() has handled, or a sibling
 * has left an event for engine_next_event(): the lock's holder checks after unlocking.
 */
bool engine_has_doorbells(const struct engine *e);

/* Moves a QP of e to the error state and flushes it; reports the given events (EVENT_*). */
void engine_qp_error(struct engine *e, struct qp *qp, u32 events);

/* The same for all QPs of e, without events: nothing can be sent or received any more. */
void engine_fail(struct engine *e);

/*
 * [all] Gives an SRQ its number (24 bits) and lets XRC requests find it. Returns 0 or -ENOMEM when
 * ENGINE_MAX_SRQ are in use. Remove it before it is freed.
 */
#define ENGINE_MAX_SRQ 16384
#define ENGINE_MAX_QP  (XROCE_MAX_QP - 1) /* and QP 1 */
int engine_srq_add(struct engine *e, struct srq *srq);
void engine_srq_remove(struct engine *e, struct srq *srq);

/*
 * [all] ibv_modify_cq(3): cq_moderate(), and reports the event that is withheld now.
 * engine_cq_forget() must precede freeing a CQ.
 */
void engine_cq_moderate(struct engine *e, struct cq *cq, u32 count, u64 period_ns);
void engine_cq_forget(struct engine *e, struct cq *cq);

/*
 * [all] Arms SRQ_LIMIT_REACHED: fires once when fewer than limit WQEs are left, at once if they are
 * already. 0 disarms.
 */
void engine_srq_set_limit(struct engine *e, struct srq *srq, u32 limit);

/* ---- multicast groups ---- */

/*
 * Multicast groups of a device: the UD QPs attached to each address. A packet to such an address
 * and to QP number 0xffffff is for each attached QP: IBTA 10.5, ibv_attach_mcast(3).
 *
 * Engine number 0 owns all members of all groups, as a packet arrives once for all of them.
 */

#define GROUP_MAX	  XROCE_MAX_GROUP
#define GROUP_MEMBERS_MAX 64 /* per group */

/* A multicast address: one of IPv6, or of IPv4 as ::ffff:a.b.c.d. */
static inline bool group_is_address(const struct gid *gid)
{
	return gid->raw[0] == 0xff || (gid_is_ipv4(gid) && (gid->raw[12] & 0xf0) == 0xe0);
}

/*
 * [all] Returns 0, also if the QP is already attached; -EINVAL: not a UD QP, or not a multicast
 * address; -ENOMEM: no memory, or the limit is reached. Engine number 0 then owns the QP.
 */
int group_attach(struct engine *e, struct qp *qp, const struct gid *address, u64 now_ns);
/* [all] Returns 0, or -EINVAL if the QP is not attached there. */
int group_detach(struct engine *e, struct qp *qp, const struct gid *address);
/* [all] Detaches the QP from all groups. */
void group_detach_all(struct engine *e, struct qp *qp);

/* Returns the QPs attached to an address. This and the next two: under any engine's lock. */
u32 group_members(const struct engine *e, const struct gid *address);
/* Returns whether any QP is attached to any address. */
bool group_any(const struct engine *e);
/* Returns whether a frame is a packet for attached QPs. */
bool group_takes_frame(const struct engine *e, const struct rx_frame *frame);

/* ---- trace ---- */

/*
 * Trace of an engine's QPs (xroce/trace.h), in memory that the caller provides; without it, nothing
 * is recorded.
 */

#define ENGINE_NOTES 256u

struct engine_note {
	u32 qpn, peer_qpn;
	enum xroce_event event;
	u32 value, more; /* as in struct xroce_trace_entry */
};

struct engine_notes {
	/* the QP of engine_output()'s last packet */
	u32 output_qpn, output_peer_qpn;
	u32 num;	/* the caller sets it to 0 after reading the notes */
	u32 lost;	/* notes lost for lack of room: the caller reads too seldom */
	struct engine_note note[ENGINE_NOTES];
};

/* Starts recording into notes; NULL stops. The caller may then free the memory. */
void engine_set_notes(struct engine *e, struct engine_notes *notes);

#endif
