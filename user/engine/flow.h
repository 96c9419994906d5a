/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Flow control of UC and UD, which have no acknowledgements: the law is in flow.c, this is what a
 * QP and an engine keep for it.
 *
 *   sender                                        receiver
 *   data, data, data ...
 *   PROBE (cookie) -----------------------------> takes it from the ring behind that data
 *   at most `window` packets behind the probe     ANSWER (cookie, window, receives posted)
 *   limit = packets before the probe + window <--
 */
#ifndef ENGINE_FLOW_H
#define ENGINE_FLOW_H

#include "packet.h"
#include "spin.h"
#include "types.h"

#define FLOW_START	128u /* packets before the first answer, as many as RC has in flight */
/*
 * Receive frames that the QPs of a device may fill together before their first answers, of the
 * 1024 of the default ring. The QPs that find them used up begin with FLOW_START_MIN packets each.
 */
#define FLOW_START_FRAMES 256u
#define FLOW_START_MIN	  8u
/* What a receiver promises of its ring, together. */
#define FLOW_SHARE(frames) ((frames) / 2)
#define FLOW_WINDOW_MIN 16u
#define FLOW_WINDOW_MAX 4096u
/* of an engine, that have not left yet: each is one frame in for one frame out */
#define FLOW_ANSWERS	64u

/*
 * A probe without an answer goes again, each time after a quarter more of the time before. If it
 * were twice the time before, most of a wait would be that for the last of several tries; and where
 * every other packet is lost, three of four tries fail.
 */
#define FLOW_RETRY_NS	    (1 * NSEC_PER_MSEC)
#define FLOW_RETRY_SLOWER   4
#define FLOW_RETRY_MAX_NS   (128 * NSEC_PER_MSEC) /* up to this, */
/* or this, if the peer has never answered and is not waited for so long */
#define FLOW_RETRY_STRANGER_NS (16 * NSEC_PER_MSEC)
/* a receiver without posted receives is asked again, and later each time up to a millisecond, */
#define FLOW_LOOK_NS	    (20 * NSEC_PER_USEC)
#define FLOW_LOOK_MAX_NS    (1 * NSEC_PER_MSEC)
/* and after this part of the time that has been waited, if that is more */
#define FLOW_LOOK_PART	    16
/* the longest wait for a peer that has never answered */
#define FLOW_STRANGER_NS    (250 * NSEC_PER_MSEC)
/* and for one that has: its threads may wait that long for a processor */
#define FLOW_PATIENCE_NS    (2 * NSEC_PER_SEC)
/* then nothing is held back, and one probe is sent in this time */
#define FLOW_FREE_NS	    (1 * NSEC_PER_SEC)
/*
 * What is left of an answer's window this long after its probe has left is not used any more, as
 * the receiver has forgotten it after FLOW_PERIOD_NS at the earliest, and may have promised it to
 * others.
 */
#define FLOW_STALE_NS	    (80 * NSEC_PER_MSEC)
#define FLOW_PERIOD_NS	    (100 * NSEC_PER_MSEC)

/*
 * and for one of several that a UD QP sends to: it is given up sooner, as the others wait with it
 */
#define FLOW_SEVERAL_NS	    (500 * NSEC_PER_MSEC)

/*
 * The sender's side, towards one receiver. Counters wrap: they are compared by their difference.
 */
struct flow_control {
	u32 sent;	    /* packets */
	u32 limit;	    /* how many may have been sent */
	u32 receives;	    /* messages that take a receive WQE over there */
	u32 receive_limit;  /* how many may have been begun; counts with `known` */
	u32 window;	    /* of the last answer, or what it began with; 0: it has not begun */
	u32 began;	    /* frames that count as FLOW_START_FRAMES, until the first answer */
	u32 mark, receives_at_mark; /* what was sent when the last probe left, */
	u64 mark_ns;	    /* first, if it went again */
	u64 granted_ns;	    /* mark_ns of the probe whose answer is the limit */
	u32 cookie;	    /* of that probe */
	bool probing;	    /* its answer has not come */
	bool known;	    /* the peer has answered */
	bool free;	    /* it has not for too long: nothing is held back until then */
	bool waiting;	    /* the QP's timer is set for it */
	u64 probe_ns;	    /* when the probe may go again */
	u64 retry_ns;	    /* how long it waits for its answer */
	u64 look_ns;	    /* and how long another waits after an answer that did not help */
	u64 blocked_ns;	    /* since when nothing may be sent; 0: something may */
	u32 dest_qpn;	    /* UD: the receiver that all this is about, with peer */
	struct gid peer;
	u32 turn;	    /* UD: the QP's, when it last sent there; 0: it has not */
};

/*
 * The receivers that a UD QP has sent to of late, in sets by a hash of theirs; the one that has not
 * been sent to for longest is forgotten when its set is full.
 */
#define FLOW_SETS 16u
#define FLOW_WAYS 4u

struct flow_peers {
	struct flow_control peer[FLOW_SETS][FLOW_WAYS];
	u32 turn;    /* counts changes of receiver */
	u32 known;   /* receivers in it */
};

#define FLOW_SENDERS 64u /* that a receiver knows at a time */

/* The receiver's: answers that have been given and not sent. */
struct flow_answers {
	struct flow_answer {
		struct path path;
		u32 dest_qpn, src_qpn, qkey;
		u32 cookie, allowance;
		u16 pkey;
	} answer[FLOW_ANSWERS];
	u32 head, count;
};

/*
 * What the engines of a device have promised to senders, and begun themselves: together, as packets
 * for the QPs of all engines may come by one and the same receive queue.
 */
struct flow_ledger {
	struct spin lock; /* taken where there are several engines */
	/* as a sender: receive frames of the QPs that wait for their first answer */
	u32 beginning;
	/* as a receiver: the senders that it knows, by a hash of QPN and address; a bit for each */
	u32 id[FLOW_SENDERS];
	u64 senders, senders_before; /* that asked in this period and the one before */
	u64 period;
	/* frames that the last answer to each of those allowed, and all of them together */
	u16 promised[FLOW_SENDERS];
	u32 promised_total;
};

#endif
