/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Credits of senders: end-to-end credits of reliable services, and probed credits of UC and UD,
 * which have no acknowledgements. credit.c has the algorithms. Probed credits:
 *
 *   sender                                        receiver
 *   data, data, data ...
 *   PROBE (cookie) -----------------------------> takes it from the ring after that data
 *   at most `window` packets after the probe      ANSWER (cookie, window, receives posted)
 *   limit = packets before the probe + window <--
 */
#ifndef ENGINE_CREDIT_H
#define ENGINE_CREDIT_H

#include "owner.h"
#include "packet.h"
#include "types.h"

#define CREDIT_START 128u /* packets before the first answer, as many as RC has in flight */
/*
 * Receive frames that a device's QPs may fill together before their first answers, out of the 1024
 * of the default ring. Once they are used up, each further QP starts with CREDIT_START_MIN packets.
 * A charge counts until its QP's answer, at most for the period it began in and the next one.
 */
#define CREDIT_START_FRAMES 256u
#define CREDIT_START_MIN 8u
/* Frames of its ring that a receiver promises in total. */
#define CREDIT_SHARE(frames) ((frames) / 2)
#define CREDIT_WINDOW_MIN 16u
#define CREDIT_WINDOW_MAX 4096u
/* answers queued per engine: each is one frame in for one frame out */
#define CREDIT_ANSWERS 64u

/*
 * An unanswered probe is sent again, each time after a wait a quarter longer than the one before.
 * If the wait doubled, most of the time would be spent waiting for the last of several tries; and
 * where every other packet is lost, three of four tries fail.
 */
#define CREDIT_RETRY_NS (1 * NSEC_PER_MSEC)
#define CREDIT_RETRY_SLOWER 4
#define CREDIT_RETRY_MAX_NS (128 * NSEC_PER_MSEC) /* the longest wait */
/* the same for a peer that has never answered and whose total wait is shorter */
#define CREDIT_RETRY_STRANGER_NS (16 * NSEC_PER_MSEC)
/* without posted receives: the next probe after this, later up to a millisecond, */
#define CREDIT_LOOK_NS (20 * NSEC_PER_USEC)
#define CREDIT_LOOK_MAX_NS (1 * NSEC_PER_MSEC)
/* or after this part of the time waited so far, if that is more */
#define CREDIT_LOOK_PART 16
/* the longest wait for a peer that has never answered */
#define CREDIT_STRANGER_NS (250 * NSEC_PER_MSEC)
/* the same for a peer that has answered: its threads may wait this long for a CPU */
#define CREDIT_PATIENCE_NS (2 * NSEC_PER_SEC)
/* after that nothing is held back, and one probe is sent per this time */
#define CREDIT_FREE_NS (1 * NSEC_PER_SEC)
/*
 * A window expires this long after its probe was sent, or after it began without one: the receiver
 * forgets it after CREDIT_PERIOD_NS at the earliest, and may then have promised it to others; a
 * charge to CREDIT_START_FRAMES also ends then.
 */
#define CREDIT_STALE_NS (80 * NSEC_PER_MSEC)
#define CREDIT_PERIOD_NS (100 * NSEC_PER_MSEC)

/* the longest wait for one of several receivers of a UD QP: shorter, as the others wait with it */
#define CREDIT_SEVERAL_NS (500 * NSEC_PER_MSEC)

/* The sender's state for one receiver. Counters wrap: compare them by difference. */
struct credit_peer {
	u32 sent;	    /* packets */
	u32 limit;	    /* the value that sent may reach */
	u32 receives;	    /* messages sent that take a receive WQE at the peer */
	u32 receive_limit;  /* the value that receives may reach; valid with `known` */
	u32 window;	    /* of the last answer, or the initial one; 0: not started */
	u32 began;	    /* frames charged to CREDIT_START_FRAMES until the first answer, */
	u64 began_period;   /* in this period of the ledger */
	u32 mark, receives_at_mark; /* counts when the last probe was sent, */
	u64 mark_ns;	    /* for the first time */
	/* mark_ns of the probe whose answer set limit, or when the initial window began */
	u64 granted_ns;
	u32 cookie;	    /* of the last probe */
	bool probing;	    /* the probe is unanswered */
	bool known;	    /* the peer has answered */
	bool free;	    /* the peer is silent: nothing is held back until it answers */
	bool waiting;	    /* the QP's timer is set for a probe */
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
#define CREDIT_SETS 16u
#define CREDIT_WAYS 4u

struct credit_peers {
	struct credit_peer peer[CREDIT_SETS][CREDIT_WAYS];
	u32 turn;    /* counts changes of receiver */
	u32 known;   /* receivers in the table */
};

#define CREDIT_SENDERS 64u /* senders that a receiver remembers at a time */

/* The receiver's queue of answers to be sent. */
struct credit_answers {
	struct credit_answer {
		struct path path;
		u32 dest_qpn, src_qpn, qkey;
		u32 cookie, allowance;
		u16 pkey;
	} answer[CREDIT_ANSWERS];
	u32 head, count;
};

/*
 * What a device's engines have promised to senders and have started as senders. Shared, as packets
 * for the QPs of all engines may use the same receive queue.
 */
struct credit_ledger {
	struct spin lock; /* taken if there are several engines */
	/*
	 * as a sender: receive frames charged to QPs that wait for their first answer and began in
	 * this period, or in the one before
	 */
	u32 beginning, beginning_before;
	u64 beginning_period; /* in CREDIT_PERIOD_NS */
	/* as a receiver: known senders, by a hash of QPN and address; one bit each */
	u32 id[CREDIT_SENDERS];
	u64 senders, senders_before; /* asked in this period and in the one before */
	u64 period;
	/* frames that each sender's last answer allowed, and their sum */
	u16 promised[CREDIT_SENDERS];
	u32 promised_total;
};

/* Returns the charged frames when the last QP began. Caller holds the ledger's lock. */
static inline u32 credit_charged(const struct credit_ledger *l)
{
	return l->beginning + l->beginning_before;
}

/* ---- end-to-end credits, private to user/engine ---- */

struct engine;
struct qp;
struct send_wqe;

/* Returns the syndrome of an ACK, with the receive WQEs that are posted. */
u8 credit_syndrome(const struct engine *e, const struct qp *qp);
/* Updates the credits from the peer's AETH. */
void credit_update(struct engine *e, struct qp *qp, u8 syndrome, u32 msn);
/*
 * psn was acknowledged with that MSN. If it is the last one sent and nothing is outstanding, the
 * MSN is the exact number of messages: a READ that is requested again in parts is more of them.
 */
void credit_recount(struct qp *qp, u32 psn, u32 msn);
/* Returns whether the peer reported a receive WQE for this message, or none is needed. */
bool credit_covers(const struct qp *qp, const struct send_wqe *wqe, u32 index);
/* Returns whether this message may start; counts a wait. */
bool credit_allows(struct engine *e, struct qp *qp, const struct send_wqe *wqe, u32 index);

/* ---- probed credits, private to user/engine ---- */

/* credit_peers_init() allocates the QP's state: 0 or -ENOMEM. credit_free() frees it. */
int credit_peers_init(struct qp *qp);
void credit_free(struct qp *qp);
void credit_start(struct engine *e, struct qp *qp);
/* Ends the QP's charges: it sends nothing more, or leaves the engine. */
void credit_end(struct engine *e, struct qp *qp);
/* The UC or UD packet to be sent next. */
struct credit_to {
	const struct path *path;
	u32 dest_qpn, qkey;
	bool takes_receive;	/* it begins a message that takes a receive WQE at the peer */
};
/*
 * Returns whether the packet may be sent. If not, *len is the length of a probe written in its
 * place; 0: nothing may be sent, and the QP's timer is set.
 */
bool credit_output(struct engine *e, struct qp *qp, const struct credit_to *to, u8 *frame, u32 *len,
		   u64 now_ns);
/* Counts the sent packet. */
static inline void credit_sent(struct credit_peer *c, bool takes_receive)
{
	c->sent++;
	c->receives += takes_receive;
}
void credit_expire(struct engine *e, struct qp *qp);
/* Handles a probe or an answer; eth is the start of its frame. */
enum xroce_drop credit_input(struct engine *e, struct qp *qp, const struct packet *p, const u8 *eth,
			     u64 now_ns);
/* Writes the next of e->answers, which is not empty. Returns the frame's length. */
u32 credit_answer_output(struct engine *e, u8 *frame);

#endif
