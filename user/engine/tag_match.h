/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tag matching and rendezvous, as the responder uses them. Private to user/engine. */
#ifndef ENGINE_TAG_MATCH_H
#define ENGINE_TAG_MATCH_H

#include "internal.h"

struct tag_header {
	struct tmh tmh;
	struct rvh rvh; /* of a rendezvous only */
};
/*
 * What a tag-matching SRQ made of the SEND under way; 0 where there is none. From TAG_MATCHED on it
 * has a tag's buffer, before that a receive WQE.
 */
enum tag_kind { TAG_NONE = 1, TAG_UNEXPECTED, TAG_MATCHED, TAG_FETCHED, TAG_LEFT };
/*
 * engine_take_receive() for the first packet of a SEND to a tag-matching SRQ: the buffer of the tag
 * that matches, or a receive WQE. False: RNR.
 */
bool tag_receive(struct engine *e, struct qp *qp, const struct packet *p);
/*
 * A rendezvous that is left to the application: TMH and RVH into the tag's buffer, as far as they
 * fit. False if a key fails.
 */
bool tag_scatter_headers(struct engine *e, struct qp *qp, const struct packet *p);
/*
 * The message matched and goes on, or has ended: its completion. cqe has what every receive's says.
 */
void tag_complete(struct engine *e, struct qp *qp, const struct packet *p,
		  const struct xroce_rx_cqe *hint, struct cqe *cqe, u64 now_ns);
/* The message under way will not end. Returns the opcode of its completion in error. */
u16 tag_abandon(struct qp *qp);
/* The QP's completions are about to be taken away: the unexpected messages among them were none. */
void tag_forget_qp(struct qp *qp);

/*
 * The send queue of a QP on a tag-matching SRQ, and what the application posts to. Returns 0 or
 * -ENOMEM; the rings are to be freed then as well.
 */
int shared_sends_init(struct qp *qp, const struct qp_init *init);
void shared_sends_free(struct qp *qp);
/* What was posted goes to the send queue; one of it has completed; all of it is forgotten. */
void shared_sends_move(struct qp *qp);
void shared_sends_completed(struct qp *qp);
void shared_sends_reset(struct qp *qp);
/* Can the engine fetch what h announces into a buffer of room bytes? */
bool rendezvous_fits(const struct qp *qp, const struct tag_header *h, u64 room);
/* Can it do so now? */
bool rendezvous_has_room(const struct qp *qp);
/* Fetch it into the receive that qp->resp.recv names. */
void rendezvous_start(struct engine *e, struct qp *qp, const struct tag_header *h, bool solicited);
/* A WQE of a rendezvous has completed. */
void rendezvous_sent(struct engine *e, struct qp *qp, const struct send_wqe *wqe,
		     enum cqe_status status, enum vendor_err verr, u64 now_ns);

#endif
