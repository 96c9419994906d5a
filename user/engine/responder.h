/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Request packets to memory and receives. Private to user/engine. */
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

#endif
