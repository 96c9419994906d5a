/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tag matching: the list of tagged buffers of a tag-matching SRQ, and the operations on it
 * (ibv_post_srq_ops(3)). Only the engine uses the list, under its owner's lock; an operation is
 * complete when tag_post() returns.
 */
#ifndef ENGINE_TAG_H
#define ENGINE_TAG_H

#include "cq.h"
#include "mr.h"
#include "types.h"

#define TAG_MAX_TAGS 1024 /* per list */
#define TAG_MAX_OPS		 1024 /* signaled operations whose completions are not polled yet */
#define TAG_MAX_SGE  8
#define TAG_MAX_RENDEZVOUS_BYTES 256 /* of a rendezvous request: one packet at any path MTU */

/* With the values of enum ibv_ops_wr_opcode and enum ibv_ops_flags. */
enum tag_opcode { TAG_ADD = 0, TAG_DEL = 1, TAG_SYNC = 2 };
enum { TAG_OP_SIGNALED = 1 << 0, TAG_OP_SYNC = 1 << 1 };

struct tag_op {
	u64 wr_id;
	u32 opcode;		/* enum tag_opcode; others are refused */
	u32 flags;		/* TAG_OP_* */
	/*
	 * unexpected messages that the application has handled; valid with TAG_SYNC or TAG_OP_SYNC
	 */
	u32 unexpected_cnt;
	u32 handle;		/* TAG_DEL: the entry's; TAG_ADD: returned */
	/* TAG_ADD: a message with tag t matches if (t & mask) == tag */
	u64 recv_wr_id, tag, mask;
	const struct sge *sge;
	u32 num_sge;
};

struct engine;
struct srq;
struct tag_list;

/* max_tags 1 .. TAG_MAX_TAGS, max_ops 1 .. TAG_MAX_OPS. Returns 0 or -EINVAL, -ENOMEM. */
int tag_list_create(u32 max_tags, u32 max_ops, struct tag_list **out);
void tag_list_free(struct tag_list *list);

/*
 * Executes one operation. Returns 0, or with nothing changed: -EINVAL for a bad opcode, flag,
 * handle or number of SGEs; -ENOMEM when the list is full, or max_ops signaled operations are not
 * polled yet. A signaled one completes on the SRQ's CQ; TAG_DEL of an entry that is no longer
 * listed completes with CQE_TM_ERR.
 */
int tag_post(struct engine *e, struct srq *srq, struct tag_op *op, u64 now_ns);

/* ---- private to user/engine: tag matching and rendezvous, as the responder uses them ---- */

struct packet;
struct qp;
struct qp_init;
struct send_wqe;
struct xroce_rx_cqe;

struct tag_header {
	struct tmh tmh;
	struct rvh rvh; /* for a rendezvous only */
};
/*
 * How a tag-matching SRQ handled the current SEND; 0 if there is none. From TAG_MATCHED on it has a
 * tag's buffer, before that a receive WQE.
 */
enum tag_kind { TAG_NONE = 1, TAG_UNEXPECTED, TAG_MATCHED, TAG_FETCHED, TAG_LEFT };
/*
 * engine_take_receive() for the first packet of a SEND to a tag-matching SRQ: takes the matching
 * tag's buffer, or a receive WQE. Returns false for RNR.
 */
bool tag_receive(struct engine *e, struct qp *qp, const struct packet *p);
/*
 * Stores TMH and RVH of a rendezvous left to the application in the tag's buffer, as far as they
 * fit. Returns false if a key fails.
 */
bool tag_scatter_headers(struct engine *e, struct qp *qp, const struct packet *p);
/*
 * Completes a matched message, at its match or its end. cqe has the fields common to all receives.
 */
void tag_complete(struct engine *e, struct qp *qp, const struct packet *p,
		  const struct xroce_rx_cqe *hint, struct cqe *cqe, u64 now_ns);
/* Ends the current message without success. Returns the opcode of its completion in error. */
u16 tag_abandon(struct qp *qp);
/* Forgets the QP's unexpected messages before its completions are purged. */
void tag_forget_qp(struct qp *qp);

/*
 * Allocates the send queue of a QP on a tag-matching SRQ, and the queue for the application.
 * Returns 0 or -ENOMEM; the rings must be freed then, too.
 */
int shared_sends_init(struct qp *qp, const struct qp_init *init);
void shared_sends_free(struct qp *qp);
/* Move posted WQEs to the send queue; count a completed one; drop all. */
void shared_sends_move(struct qp *qp);
void shared_sends_completed(struct qp *qp);
void shared_sends_reset(struct qp *qp);
/* Returns whether the engine can fetch the data that h announces into a buffer of room bytes. */
bool rendezvous_fits(const struct qp *qp, const struct tag_header *h, u64 room);
/* Returns whether the engine can fetch it now. */
bool rendezvous_has_room(const struct qp *qp);
/* Fetches the data into the receive in qp->resp.recv. */
void rendezvous_start(struct engine *e, struct qp *qp, const struct tag_header *h, bool solicited);
/* Handles the completion of a rendezvous WQE. */
void rendezvous_sent(struct engine *e, struct qp *qp, const struct send_wqe *wqe,
		     enum cqe_status status, enum vendor_err verr, u64 now_ns);

#endif
