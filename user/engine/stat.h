/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counters and records that a QP, CQ or SRQ shows of itself. Private to user/engine. */
#ifndef ENGINE_STAT_H
#define ENGINE_STAT_H

#include "internal.h"

/* For whoever looks. */
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

/* What a QP's element of xroce_qp_stat says beside what is counted. */
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

#endif
