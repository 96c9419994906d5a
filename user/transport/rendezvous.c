/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rendezvous of tag matching: the message that matched says where its data lie; the engine READs
 * them into the tag's buffer on the QP that the message came on, and then sends a FIN, by which the
 * initiator knows that its buffer is free. Both are WQEs like the application's own, so losses,
 * windows and max_rd_atomic are the requester's matter. That is why QPs on a tag-matching SRQ have
 * a send queue with two producers:
 *
 *   application            engine
 *   posted -------------> shared_sends_move() --> sq; a slot of posted is free when its WQE has
 *                                                 completed
 *                          rendezvous_start() ---> sq: the READ
 *                          rendezvous_sent() ----> sq: the FIN, in a slot set aside with its READ's
 */
#include <stdlib.h>

#include "aligned.h"
#include "internal.h"

/* WQEs of the engine's in one send queue: two a rendezvous, until its FIN is acknowledged. */
#define FETCHING_MAX 128

int shared_sends_init(struct qp *qp, const struct qp_init *init)
{
	struct shared_sends *s = aligned_zero(sizeof(*s));
	u32 max_sge = init->max_send_sge > TAG_MAX_SGE ? init->max_send_sge : TAG_MAX_SGE;
	u32 max_inline = init->max_inline > sizeof(struct tag_header) ?
				 init->max_inline :
				 (u32)sizeof(struct tag_header);

	if (!s)
		return -ENOMEM;
	qp->shared = s;
	qp->tag_matching = true;
	if (sq_init(&s->posted, init->max_send_wr, init->max_send_sge, init->max_inline,
		    init->sq_lent))
		return -ENOMEM;
	return sq_init(&qp->sq, init->max_send_wr + FETCHING_MAX, max_sge, max_inline, NULL);
}

void shared_sends_free(struct qp *qp)
{
	if (qp->shared)
		sq_free(&qp->shared->posted);
	free(qp->shared);
}

void shared_sends_move(struct qp *qp)
{
	struct shared_sends *s = qp->shared;
	const u32 prod = sq_prod(&s->posted);

	for (; s->moved != prod; s->moved++) {
		/* there is one: the queue has room for all of posted and all of the engine's own */
		struct send_wqe *wqe = sq_slot(&qp->sq, 0);

		memcpy(wqe, sq_at(&s->posted, s->moved), s->posted.stride);
		sq_publish(&qp->sq, 1);
	}
}

void shared_sends_completed(struct qp *qp)
{
	struct sq *posted = &qp->shared->posted;

	/* release: pairs with the acquire in sq_slot() */
	atomic_store_explicit(&posted->cons, sq_cons(posted) + 1, memory_order_release);
}

void shared_sends_reset(struct qp *qp)
{
	struct shared_sends *s = qp->shared;

	s->moved = sq_prod(&s->posted);
	s->fetching = 0;
	/* release: pairs with the acquire in sq_slot() */
	atomic_store_explicit(&s->posted.cons, s->moved, memory_order_release);
}

bool rendezvous_fits(const struct qp *qp, const struct tag_header *h, u64 room)
{
	const u32 len = be32toh(h->rvh.len);

	/* before RTS it is not known what the QP may READ */
	return len <= room && len <= ROCE_MESSAGE_MAX &&
	       (qp->req.max_rd_atomic || qp_state(qp) == QPS_RTR);
}

bool rendezvous_has_room(const struct qp *qp)
{
	return qp->shared->fetching + 2 <= FETCHING_MAX && qp_state(qp) != QPS_RTR;
}

void rendezvous_start(struct engine *e, struct qp *qp, const struct tag_header *h, bool solicited)
{
	const struct recv_work *recv = &qp->resp.recv;
	struct send_wqe *wqe = sq_slot(&qp->sq, 0);

	*wqe = (struct send_wqe){
		.wr_id = recv->wr_id,
		.opcode = WR_READ,
		.flags = WR_RENDEZVOUS | (solicited ? WR_SOLICITED : 0),
		.num_sge = (u8)recv->num_sge,
		.length = be32toh(h->rvh.len),
		.remote_addr = be64toh(h->rvh.va),
		.rkey = be32toh(h->rvh.rkey),
		/* for the FIN: a READ has no use for these */
		.imm = h->tmh.app_ctx,
		.swap = h->tmh.tag,
	};
	memcpy(wqe->sge, recv->sge, recv->num_sge * sizeof(wqe->sge[0]));
	qp->shared->fetching += 2;
	sq_publish(&qp->sq, 1);
	engine_ready(e, qp, READY_REQUESTS);
}

/* "A copy of the original TMH and RVH of the rendezvous request, apart the opcode" */
static void rendezvous_send_fin(struct engine *e, struct qp *qp, const struct send_wqe *read)
{
	const struct tag_header h = {
		.tmh = { .opcode = TMH_FIN, .app_ctx = read->imm, .tag = read->swap },
		.rvh = { .va = htobe64(read->remote_addr),
			 .rkey = htobe32(read->rkey),
			 .len = htobe32(read->length) },
	};
	struct send_wqe *wqe = sq_slot(&qp->sq, 0);

	*wqe = (struct send_wqe){ .wr_id = read->wr_id,
				  .opcode = WR_SEND,
				  .flags = WR_RENDEZVOUS | WR_INLINE,
				  .length = sizeof(h) };
	memcpy(wqe->data, &h, sizeof(h));
	sq_publish(&qp->sq, 1);
	engine_ready(e, qp, READY_REQUESTS);
}

void rendezvous_sent(struct engine *e, struct qp *qp, const struct send_wqe *wqe,
		     enum cqe_status status, enum vendor_err verr, u64 now_ns)
{
	const struct cqe cqe = {
		.wr_id = wqe->wr_id,
		.status = (u16)status,
		.opcode = CQE_TM_RECV,
		.vendor_err = verr,
		.byte_len = wqe->length,
		.qpn = qp->qpn,
		.src_qpn = qp->dest_qpn,
		.flags = CQE_TM_DATA_VALID,
		.time_ns = now_ns,
	};

	qp->shared->fetching--;
	if (wqe->opcode == WR_READ) {
		engine_complete(e, qp->recv_cq, &cqe, wqe->flags & WR_SOLICITED);
		if (status == CQE_SUCCESS)
			rendezvous_send_fin(e, qp, wqe);
		else
			qp->shared->fetching--;
	} else if (status != CQE_SUCCESS && status != CQE_WR_FLUSH_ERR) {
		/* no work request of the application's tells it */
		engine_qp_event(e, qp, EVENT_QP_FATAL);
	}
}
