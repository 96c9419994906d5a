/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Flow control of UC and UD, which have no acknowledgements: the state that a QP and an engine
 * keep. flow.c has the algorithm.
 *
 *   sender                                        receiver
 *   data, data, data ...
 *   PROBE (cookie) -----------------------------> takes it from the ring after that data
 *   at most `window` packets after the probe      ANSWER (cookie, window, receives posted)
 *   limit = packets before the probe + window <--
 */
#ifndef ENGINE_FLOW_H
#define ENGINE_FLOW_H

#include "packet.h"
#include "spin.h"
#include "types.h"

#define FLOW_START	128u /* packets before the first answer, as many as RC has in flight */
/*
 * Receive frames that a device's QPs may fill together before their first answers, out of the 1024
 * of the default ring. Once they are used up, each further QP starts with FLOW_START_MIN packets.
 */
#define FLOW_START_FRAMES 256u
#define FLOW_START_MIN	  8u
/* Frames of its ring that a receiver promises in total. */
#define FLOW_SHARE(frames) ((frames) / 2)
#define FLOW_WINDOW_MIN 16u
#define FLOW_WINDOW_MAX 4096u
/* answers queued per engine: each is one frame in for one frame out */
#define FLOW_ANSWERS	64u

/*
 * An unanswered probe is sent again, each time after a wait a quarter longer than the one before.
 * If the wait doubled, most of the time would be spent waiting for the last of several tries; and
 * where every other packet is lost, three of four tries fail.
 */
#define FLOW_RETRY_NS	    (1 * NSEC_PER_MSEC)
#define FLOW_RETRY_SLOWER   4
#define FLOW_RETRY_MAX_NS   (128 * NSEC_PER_MSEC) /* the longest wait */
/* the same for a peer that has never answered and whose total wait is shorter */
#define FLOW_RETRY_STRANGER_NS (16 * NSEC_PER_MSEC)
/* without posted receives: the next probe after this, later up to a millisecond, */
#define FLOW_LOOK_NS	    (20 * NSEC_PER_USEC)
#define FLOW_LOOK_MAX_NS    (1 * NSEC_PER_MSEC)
/* or after this part of the time waited so far, if that is more */
#define FLOW_LOOK_PART	    16
/* the longest wait for a peer that has never answered */
#define FLOW_STRANGER_NS    (250 * NSEC_PER_MSEC)
/* the same for a peer that has answered: its threads may wait this long for a CPU */
#define FLOW_PATIENCE_NS    (2 * NSEC_PER_SEC)
/* after that nothing is held back, and one probe is sent per this time */
#define FLOW_FREE_NS	    (1 * NSEC_PER_SEC)
/*
 * An answer's window expires this long after its probe was sent: the receiver forgets it after
 * FLOW_PERIOD_NS at the earliest, and may then have promised it to others.
 */
#define FLOW_STALE_NS	    (80 * NSEC_PER_MSEC)
#define FLOW_PERIOD_NS	    (100 * NSEC_PER_MSEC)

/* the longest wait for one of several receivers of a UD QP: shorter, as the others wait with it */
#define FLOW_SEVERAL_NS	    (500 * NSEC_PER_MSEC)

/* The sender's state for one receiver. Counters wrap: compare them by difference. */
struct flow_control {
	u32 sent;	    /* packets */
	u32 limit;	    /* the value that sent may reach */
	u32 receives;	    /* messages sent that take a receive WQE at the peer */
	u32 receive_limit;  /* the value that receives may reach; valid with `known` */
	u32 window;	    /* of the last answer, or the initial one; 0: not started */
	u32 began;	    /* frames charged to FLOW_START_FRAMES until the first answer */
	u32 mark, receives_at_mark; /* counts when the last probe was sent, */
	u64 mark_ns;	    /* for the first time */
	u64 granted_ns;	    /* mark_ns of the probe whose answer set limit */
	u32 cookie;	    /* of the last probe */
	bool probing;	    /* the probe is unanswered */
	bool known;	    /* the peer has answered */
	bool free;	    /* the peer is silent: nothing is held back until it answers */
	bool waiting;	    /* the QP's timer is set for flow control */
	u64 probe_ns;	    /* when the probe may be sent again */
	u64 retry_ns;	    /* how long the probe waits for its answer */
	u64 look_ns;	    /* delay of the next probe after an answer that did not help */
	u64 blocked_ns;	    /* since when nothing may be sent; 0: sending is allowed */
	u32 dest_qpn;	    /* UD: the receiver, with peer */
	struct gid peer;
	u32 turn;	    /* UD: the QP's turn when it last sent there; 0: never */
};

/*
 * The receivers that a UD QP has recently sent to, in sets by a hash of the receiver. A full set
 * evicts the least recently used one.
 */
#define FLOW_SETS 16u
#define FLOW_WAYS 4u

struct flow_peers {
	struct flow_control peer[FLOW_SETS][FLOW_WAYS];
	u32 turn;    /* counts changes of receiver */
	u32 known;   /* receivers in the table */
};

#define FLOW_SENDERS 64u /* senders that a receiver remembers at a time */

/* The receiver's queue of answers to be sent. */
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
 * What a device's engines have promised to senders and have started as senders. Shared, as packets
 * for the QPs of all engines may use the same receive queue.
 */
struct flow_ledger {
	struct spin lock; /* taken if there are several engines */
	/* as a sender: receive frames charged to QPs that wait for their first answer */
	u32 beginning;
	/* as a receiver: known senders, by a hash of QPN and address; one bit each */
	u32 id[FLOW_SENDERS];
	u64 senders, senders_before; /* asked in this period and in the one before */
	u64 period;
	/* frames that each sender's last answer allowed, and their sum */
	u16 promised[FLOW_SENDERS];
	u32 promised_total;
};

#endif
