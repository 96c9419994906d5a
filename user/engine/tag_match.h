/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tag matching and rendezvous, as the responder uses them. Private to user/engine. */
#ifndef ENGINE_TAG_MATCH_H
#define ENGINE_TAG_MATCH_H

#include "internal.h"

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
