/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* WQEs to request packets. Private to user/engine. */
#ifndef ENGINE_REQUESTER_H
#define ENGINE_REQUESTER_H

#include "internal.h"

void requester_start(struct qp *qp, u32 sq_psn);
u32 requester_output(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns);
/*
 * The next packet to be sent is psn: back to one that is not acknowledged, or forward over those
 * that are.
 */
void requester_seek(struct engine *e, struct qp *qp, u32 psn);
/*
 * The WQE that psn belongs to, from the oldest outstanding one on; NULL if psn has not been given
 * to any.
 */
struct send_wqe *requester_wqe(const struct qp *qp, u32 psn);
/* Work requests that a response of their own answers; see OP_ANSWERED. */
static inline bool wr_is_answered(u8 opcode)
{
	return opcode < WR_OPCODES &&
	       1u << opcode & (1u << WR_READ | 1u << WR_CMP_SWAP | 1u << WR_FETCH_ADD |
			       1u << WR_FLUSH | 1u << WR_ATOMIC_WRITE);
}
/* Work requests that send nothing. */
static inline bool wr_is_local(u8 opcode)
{
	return opcode == WR_LOCAL_INV || opcode == WR_BIND_MW || opcode == WR_REFUSED;
}

/* The PD of a WQE's L_Keys: a rendezvous fetches into a buffer of the SRQ. */
static inline u32 wqe_pd(const struct qp *qp, const struct send_wqe *wqe)
{
	return unlikely(wqe->flags & WR_RENDEZVOUS) ? qp->srq->pd : qp->pd;
}

/* A READ request asks for as many response packets, and those of a WQE start at multiples of it. */
static inline u32 requester_read_chunk(const struct engine *e)
{
	return e->window >= 4 ? e->window / 4 : 1;
}
/*
 * Build the packet with the given PSN again, from its WQE; 0 if that cannot be. next is the PSN
 * that follows what it took.
 */
u32 requester_rebuild(struct engine *e, struct qp *qp, u32 psn, u32 end, u8 *frame, u32 *next,
		      u64 now_ns);

/* Of QPs that tell XDP */
/* None: the QP starts. */
void expect_none(struct qp *qp);
/*
 * The WQE before req.assigned has its PSNs; the oldest have completed; the one under the cursor
 * will fail when those before it are done.
 */
void expect_assigned(struct qp *qp);
void expect_completed(struct qp *qp);
void expect_failure(struct qp *qp);

#endif
