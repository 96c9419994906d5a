/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Request packets to memory and receives, and their responses. Private to user/engine. */
#ifndef ENGINE_RESPONDER_H
#define ENGINE_RESPONDER_H

#include "internal.h"

void responder_start(struct qp *qp, u32 rq_psn);
enum xroce_drop responder_input(struct engine *e, struct qp *qp, const struct packet *p,
				const struct xroce_rx_cqe *hint, u64 now_ns);
/* Pushes the completion of the receive WQE that qp->resp.recv holds. */
void responder_complete(struct engine *e, struct qp *qp, const struct packet *p,
			const struct xroce_rx_cqe *hint, struct cqe *cqe, u64 now_ns);
/* Copies payload of p from byte skip to the held receive at offset; false if a key fails. */
bool responder_scatter(struct engine *e, struct qp *qp, const struct packet *p, u32 skip,
		       u64 offset);

/* ---- reply.c: ACKs, NAKs and responses ---- */

u32 reply_output(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns);
/* Answers a request that was executed before. Returns the reason if it does not. */
enum xroce_drop duplicate_answer(struct engine *e, struct qp *qp, const struct packet *p);
/* Queues a response after all pending READ and atomic responses; an ACK never replaces a NAK. */
void reply_ack(struct engine *e, struct qp *qp, u8 syndrome, u32 psn);
/* Answers resource r (again) from response packet cursor up to stop. */
void reply_resource(struct engine *e, struct qp *qp, struct resp_resource *r, u32 cursor, u32 stop);
/* Makes a pending resource r not pending. */
void reply_withdraw(struct responder *resp, const struct resp_resource *r);
/* Drops all pending READ and atomic responses. */
void reply_forget(struct qp *qp);
/* The word of `pending` with the resource's bit, the bit, and whether it is set. */
static inline u64 *resource_word(struct responder *resp, const struct resp_resource *r)
{
	return &resp->pending[(r - resp->resource) / 64];
}
static inline u64 resource_bit(const struct responder *resp, const struct resp_resource *r)
{
	return 1ull << (r - resp->resource) % 64;
}
static inline bool resource_pending(const struct responder *resp, const struct resp_resource *r)
{
	return resp->pending[(r - resp->resource) / 64] & resource_bit(resp, r);
}
static inline bool reply_pending(const struct qp *qp)
{
	return qp->resp.num_pending || qp->resp.ack_due || qp->cnp_due;
}

/* Returns the READ or atomic stored n entries before the next, n in 1 .. max_dest_rd_atomic. */
static inline struct resp_resource *resource_stored(const struct responder *resp, u32 n)
{
	return &resp->resource[(resp->resource_head - n) & resp->resource_mask];
}

#endif
