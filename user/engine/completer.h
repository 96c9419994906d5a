/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Responses to completions. Private to user/engine. */
#ifndef ENGINE_COMPLETER_H
#define ENGINE_COMPLETER_H

#include "internal.h"

/* Handles an ACK or NAK, given as its relevant fields. */
enum xroce_drop completer_ack(struct engine *e, struct qp *qp, u32 psn, u8 syndrome, u32 msn,
			      u64 now_ns);
enum xroce_drop completer_input(struct engine *e, struct qp *qp, const struct packet *p,
				u64 now_ns);
/* Fails the oldest WQE when no retry is left. verr: the cause, if no refusal arrived. */
void completer_give_up(struct engine *e, struct qp *qp, enum vendor_err verr, u64 now_ns);
/* Completes executed local work requests at the queue's head. */
void completer_local(struct engine *e, struct qp *qp, u64 now_ns);
/* Reports SQ_DRAINED if the queue is drained and the application asked for it. */
void completer_check_drained(struct engine *e, struct qp *qp);

#endif
