/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counters and records of QPs, CQs and SRQs for other processes. Private to user/engine. */
#ifndef ENGINE_STAT_H
#define ENGINE_STAT_H

#include "internal.h"

/* Records an event in the trace. */
rare void note_add(struct engine *e, const struct qp *qp, enum xroce_event event, u32 value,
		   u32 more);
/* Notes which QP has written a packet. */
rare void note_output(struct engine *e, const struct qp *qp);
static inline void note_event(struct engine *e, const struct qp *qp, enum xroce_event event)
{
	if (unlikely(e->notes))
		note_add(e, qp, event, qp->req.unacked_psn, qp->resp.seq.expected_psn);
}

/*
 * Increments a counter of the engine and the QP's of the same name: plain words, which only the
 * owner engine writes.
 */
#define engine_count(e, qp, field)                                \
	do {                                                      \
		(e)->stats->field++;                              \
		(qp)->stat->field++;                              \
		note_event(e, qp, XROCE_EVENT_##field);           \
	} while (0)

/*
 * Statistics of QPs, CQs and SRQs per packet. `make bench-tools` builds the engine once more
 * without them, to measure their cost.
 */
#ifdef XROCE_NO_QP_STAT
#define STAT_SHOWN false
#else
#define STAT_SHOWN true
#endif

/* A QP's record in xroce_qp_stat other than its counters. */
/* stat_init() allocates it unless init has one. Returns 0 or -ENOMEM. stat_free() ends its use. */
int stat_init(struct qp *qp, const struct qp_init *init);
void stat_free(struct qp *qp);
/* Updates owner and attributes after the QP was made, modified or moved. */
void stat_describe(struct qp *qp);
/* stat_state() records a state change by the engine; stat_error(), called before it, the reason. */
void stat_state(struct qp *qp);
void stat_error(struct engine *e, struct qp *qp, enum cqe_status status, enum xroce_reason why);
/* Count a send request or a receive that completed in error without being flushed. */
void stat_send_error(struct engine *e, enum cqe_status status);
void stat_receive_error(struct engine *e, enum cqe_status status);
/* Records changed limits of congestion.c. */
void stat_limits(const struct engine *e, struct qp *qp);
/* Updates a CQ's record after one or more pushes. Under the CQ's lock if it is shared. */
void stat_cq(struct cq *cq);
/* Counts a receive taken from an SRQ. */
static inline void stat_srq(struct srq *srq)
{
	if (!STAT_SHOWN || !srq->stat)
		return;
	srq->stat->taken++;
	srq->stat->waiting = rq_posted(&srq->rq);
}
/* Counts a dropped packet for the QP; stat_drop() also for the engine. */
rare void stat_drop(struct engine *e, struct qp *qp, enum xroce_drop drop);
rare void stat_drop_of(struct qp *qp, enum xroce_drop drop);
/* Counts a resend of the oldest request packet, in a frame of that length. */
rare void stat_resent(struct qp *qp, u32 len);
/* End the current row of received packets; stat_row_begin() starts another. */
rare void stat_row_begin(struct engine *e, struct qp *qp, const struct header_in *kept);
void stat_row_end(struct engine *e);
/* Adds a frame of the row's kind and length: only the number is counted. */
static inline void stat_row(struct engine *e, struct qp *qp, const struct header_in *kept)
{
	if (STAT_SHOWN && unlikely(e->row.kept != kept))
		stat_row_begin(e, qp, kept);
}
/* Adds a frame that differs; the next ones are compared with it if it was learned. */
static inline void stat_row_unlike(struct engine *e, struct qp *qp, const struct header_in *kept,
				   const struct rx_frame *frame)
{
	if (!STAT_SHOWN)
		return;
	if (e->row.kept != kept || e->row.frame_len != kept->frame_len)
		stat_row_begin(e, qp, kept);
	e->row.bytes += (u64)frame->len + frame->frag_len - e->row.frame_len;
}
/* Counts a packet that is in no row. */
static inline void stat_input(struct qp *qp, u32 len)
{
	struct xroce_qp_stat *stat = qp->stat;

	if (!STAT_SHOWN)
		return;
	stat->rx_packets++;
	stat->rx_bytes += len;
}
/* Publishes a changed unacked_psn or next_psn. */
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
/* Publishes a changed expected_psn or msn. */
static inline void stat_responder(const struct qp *qp)
{
	if (!STAT_SHOWN)
		return;
	qp->stat->rq_psn = qp->resp.seq.expected_psn;
	qp->stat->msn = qp->resp.seq.msn;
}

#endif
