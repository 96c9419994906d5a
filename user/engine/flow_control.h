/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Flow control of UC and UD. Private to user/engine. */
#ifndef ENGINE_FLOW_CONTROL_H
#define ENGINE_FLOW_CONTROL_H

#include "internal.h"

/* flow_peers_init() allocates the QP's state: 0 or -ENOMEM. flow_free() frees it. */
int flow_peers_init(struct qp *qp);
void flow_free(struct qp *qp);
void flow_start(struct engine *e, struct qp *qp);
/* Ends the QP's charges: it sends nothing more, or leaves the engine. */
void flow_end(struct engine *e, struct qp *qp);
/* The UC or UD packet to be sent next. */
struct flow_to {
	const struct path *path;
	u32 dest_qpn, qkey;
	bool takes_receive;	/* it begins a message that takes a receive WQE at the peer */
};
/*
 * Returns whether the packet may be sent. If not, *len is the length of a probe written in its
 * place; 0: nothing may be sent, and the QP's timer is set.
 */
bool flow_output(struct engine *e, struct qp *qp, const struct flow_to *to, u8 *frame, u32 *len,
		 u64 now_ns);
/* Counts the sent packet. */
static inline void flow_sent(struct qp *qp, bool takes_receive)
{
	qp->flow->sent++;
	qp->flow->receives += takes_receive;
}
void flow_expire(struct engine *e, struct qp *qp);
/* Handles a probe or an answer; eth is the start of its frame. */
enum xroce_drop flow_input(struct engine *e, struct qp *qp, const struct packet *p, const u8 *eth,
			   u64 now_ns);
/* Writes the next of e->answers, which is not empty. Returns the frame's length. */
u32 flow_answer_output(struct engine *e, u8 *frame);

#endif
