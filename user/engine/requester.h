/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The requester: WQEs to request packets, and responses to completions. Private to user/engine. */
#ifndef ENGINE_REQUESTER_H
#define ENGINE_REQUESTER_H

#include "internal.h"

void requester_start(struct qp *qp, u32 sq_psn);
u32 requester_output(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns);
/*
 * Makes psn the next packet to be sent: back to an unacknowledged one, or forward over acknowledged
 * ones.
 */
void requester_seek(struct engine *e, struct qp *qp, u32 psn);
/*
 * Returns the WQE of psn, which is not before the oldest outstanding one; NULL if no WQE has that
 * PSN yet.
 */
struct send_wqe *requester_wqe(const struct qp *qp, u32 psn);
/* Whether a work request has its own response; see OP_ANSWERED. */
static inline bool wr_is_answered(u8 opcode)
{
	return opcode < WR_OPCODES &&
	       1u << opcode & (1u << WR_READ | 1u << WR_CMP_SWAP | 1u << WR_FETCH_ADD |
			       1u << WR_FLUSH | 1u << WR_ATOMIC_WRITE);
}
/* Whether a work request sends nothing. */
static inline bool wr_is_local(u8 opcode)
{
	return opcode == WR_LOCAL_INV || opcode == WR_BIND_MW || opcode == WR_REFUSED;
}

/* Returns the PD of a WQE's L_Keys: a rendezvous fetches into a buffer of the SRQ. */
static inline u32 wqe_pd(const struct qp *qp, const struct send_wqe *wqe)
{
	return unlikely(wqe->flags & WR_RENDEZVOUS) ? qp->srq->pd : qp->pd;
}

/* Response packets that a READ request asks for; the requests of a WQE start at multiples of it. */
static inline u32 requester_read_chunk(const struct engine *e)
{
	return e->window >= 4 ? e->window / 4 : 1;
}
/*
 * Builds the packet with the given PSN again, from its WQE; returns 0 if that is not possible.
 * *next is the PSN after it.
 */
u32 requester_rebuild(struct engine *e, struct qp *qp, u32 psn, u32 end, u8 *frame, u32 *next,
		      u64 now_ns);

/* Of QPs whose responses XDP reports */
/* Clears the expectation when the QP starts. */
void expect_none(struct qp *qp);
/*
 * The WQE before req.assigned got its PSNs; the oldest WQEs completed; the WQE under the cursor
 * will fail once all earlier ones are complete.
 */
void expect_assigned(struct qp *qp);
void expect_completed(struct qp *qp);
void expect_failure(struct qp *qp);

/* ---- completer.c ---- */

/* Handles an ACK or NAK, given as its relevant fields. */
enum xroce_drop completer_ack(struct engine *e, struct qp *qp, u32 psn, u8 syndrome, u32 msn,
			      u64 now_ns);
enum xroce_drop completer_input(struct engine *e, struct qp *qp, const struct packet *p,
				u64 now_ns);
/* Fails the oldest WQE when no retry is left. verr: the cause, if no refusal arrived. */
void completer_give_up(struct engine *e, struct qp *qp, enum vendor_err verr, u64 now_ns);
/* Completes executed local work requests at the queue's head. */
void completer_local(struct engine *e, struct qp *qp, u64 now_ns);
/* Returns whether the queue is in SQD with requests that were started and are not complete. */
bool completer_is_draining(const struct qp *qp);
/* Reports SQ_DRAINED if the queue is drained and the application asked for it. */
void completer_check_drained(struct engine *e, struct qp *qp);

#endif
