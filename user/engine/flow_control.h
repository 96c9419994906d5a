/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Flow control of UC and UD. Private to user/engine. */
#ifndef ENGINE_FLOW_CONTROL_H
#define ENGINE_FLOW_CONTROL_H

#include "internal.h"

/* With the QP: 0 or -ENOMEM; and its end. */
int flow_peers_init(struct qp *qp);
void flow_free(struct qp *qp);
void flow_start(struct engine *e, struct qp *qp);
/* It sends nothing more, or leaves the engine: what it has sent does not count any more. */
void flow_end(struct engine *e, struct qp *qp);
/* The packet of UC or UD whose turn it is. */
struct flow_to {
	const struct path *path;
	u32 dest_qpn, qkey;
	bool takes_receive;	/* it begins a message that takes a receive WQE over there */
};
/*
 * May it leave? If not, len is that of a probe that was written in its place; 0: nothing may, and
 * the QP's timer is set.
 */
bool flow_output(struct engine *e, struct qp *qp, const struct flow_to *to, u8 *frame, u32 *len,
		 u64 now_ns);
/* It did. */
static inline void flow_sent(struct qp *qp, bool takes_receive)
{
	qp->flow->sent++;
	qp->flow->receives += takes_receive;
}
void flow_expire(struct engine *e, struct qp *qp);
/* A probe or an answer; eth is where its frame starts. */
enum xroce_drop flow_input(struct engine *e, struct qp *qp, const struct packet *p, const u8 *eth,
			   u64 now_ns);
/* The next of e->answers, of which there are some. Returns the frame's length. */
u32 flow_answer_output(struct engine *e, u8 *frame);

#endif
