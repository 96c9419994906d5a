/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ACKs, NAKs and responses. Private to user/engine. */
#ifndef ENGINE_REPLY_H
#define ENGINE_REPLY_H

#include "internal.h"

u32 reply_output(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns);
/* A request that was executed before: it is answered again. Returns why not. */
enum xroce_drop duplicate_answer(struct engine *e, struct qp *qp, const struct packet *p);
/* One response after all pending READ and atomic responses; a NAK is never replaced by an ACK. */
void reply_ack(struct engine *e, struct qp *qp, u8 syndrome, u32 psn);
/* Answer resource r (again) from response packet cursor up to stop. */
void reply_resource(struct engine *e, struct qp *qp, struct resp_resource *r, u32 cursor, u32 stop);
/* Resource r, which is pending, is not any more. */
void reply_withdraw(struct responder *resp, const struct resp_resource *r);
/* No READ or atomic response that is still to be sent goes out any more. */
void reply_forget(struct qp *qp);
/* The word of pending that has its bit, the bit, and whether it is set. */
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

/* The READ or atomic that was taken n before the next one, n in 1 .. max_dest_rd_atomic. */
static inline struct resp_resource *resource_stored(const struct responder *resp, u32 n)
{
	return &resp->resource[(resp->resource_head - n) & resp->resource_mask];
}

#endif
