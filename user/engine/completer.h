/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Responses to completions. Private to user/engine. */
#ifndef ENGINE_COMPLETER_H
#define ENGINE_COMPLETER_H

#include "internal.h"

/* An ACK or NAK, of its packet what counts. */
enum xroce_drop completer_ack(struct engine *e, struct qp *qp, u32 psn, u8 syndrome, u32 msn,
			      u64 now_ns);
enum xroce_drop completer_input(struct engine *e, struct qp *qp, const struct packet *p,
				u64 now_ns);
/* No retry is left. verr: of what for, if the peer has not said why it is silent. */
void completer_give_up(struct engine *e, struct qp *qp, enum vendor_err verr, u64 now_ns);
/* Complete local work requests at the queue's head that are done. */
void completer_local(struct engine *e, struct qp *qp, u64 now_ns);
/* Report SQ_DRAINED if the queue is drained and the application asked. */
void completer_check_drained(struct engine *e, struct qp *qp);

#endif
