/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * End-to-end credits of the AETH: a responder reports with each ACK how many receive WQEs it has,
 * and a requester starts no message that would need more. They avoid RNR NAKs and never stop a
 * queue: with nothing in flight one message may always be tried (IBTA 9.7.7.2). A QP on an SRQ
 * gives none, as other QPs may take the SRQ's WQEs.
 */
#include "credit.h"
#include "stat.h"

/*
 * protocol.md, "AETH syndrome": codes 0 to 30. From code 2 on, two codes per doubling:
 * credit_syndrome() inverts the table.
 */
static const u16 credits_of_code[31] = {
	0,   1,	  2,   3,   4,	 6,   8,   12,	 16,   24,   32,   48,	 64,   96,   128,   192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
};

u8 credit_syndrome(const struct engine *e, const struct qp *qp)
{
	u32 posted, code, doublings;

	if (e->config.disable & ENGINE_NO_CREDITS || qp->srq || qp->xrc_target)
		return AETH_ACK | AETH_CREDIT_NONE;
	/* the WQE held for the current message does not count */
	posted = rq_posted(&qp->rq);
	if (posted < 2) {
		code = posted;
	} else { /* the largest code that promises no more than is posted */
		doublings = 31 - (u32)__builtin_clz(posted);
		code = min_u32(2 * doublings + (posted >> (doublings - 1) & 1),
			       ARRAY_SIZE(credits_of_code) - 1);
	}
	return (u8)(AETH_ACK | code);
}

void credit_update(struct engine *e, struct qp *qp, u8 syndrome, u32 msn)
{
	struct requester *req = &qp->req;
	u8 code = syndrome & AETH_VALUE_MASK;

	if ((syndrome & AETH_CLASS_MASK) != AETH_ACK || e->config.disable & ENGINE_NO_CREDITS)
		return;
	req->credits_used = code != AETH_CREDIT_NONE;
	if (req->credits_used)
		req->credit_limit = psn_add(msn, credits_of_code[code]);
}

bool credit_covers(const struct qp *qp, const struct send_wqe *wqe, u32 index)
{
	const struct requester *req = &qp->req;
	u32 message = (index - req->first_index + 1) & ROCE_PSN_MASK;
	bool consumes = wqe->opcode == WR_SEND || wqe->opcode == WR_SEND_WITH_IMM ||
			wqe->opcode == WR_SEND_WITH_INV || wqe->opcode == WR_WRITE_WITH_IMM;

	return !req->credits_used || !consumes || psn_diff(message, req->credit_limit) <= 0;
}

bool credit_allows(struct engine *e, struct qp *qp, const struct send_wqe *wqe, u32 index)
{
	if (credit_covers(qp, wqe, index) || qp->req.next_psn == qp->req.unacked_psn)
		return true;
	engine_count(e, qp, credit_waits);
	return false;
}
