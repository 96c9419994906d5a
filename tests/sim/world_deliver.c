/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A packet's arrival at a node with several engines, and XDP's part in it: which response wakes the
 * reader of the send CQ, as bpf/wake.h has it.
 */
#include "world_internal.h"

#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>

/*
 * Returns the frame's engine. A frame may reach any of the node's engines, which ignores another's
 * frame; an invalid packet is dropped by any.
 */
static struct engine *owner_of(struct world *w, struct node *n, const struct rx_frame *rx)
{
	struct qp *qp = engine_frame_qp(n->engine, rx);
	struct engine *owner = qp ? qp_engine(qp) : n->engine,
		      *here = n->engines[rng_below(&w->where, n->num_engines)];
	const struct engine_frame f = { .frame = *rx };
	struct packet p;
	u64 away = 0;

	if (here != owner && (qp || group_takes_frame(n->engine, rx)) &&
	    packet_parse(&p, rx) == 0) {
		check_eq(w, engine_input_batch(here, &f, 1, w->now_ns, &away), 0);
		check_eq(w, away, 1);
	}
	return owner;
}

struct woken {
	struct qp *qp;	/* NULL: it is not asked */
	bool wakes;
	u32 before;	/* what the send CQ had got */
};

static bool xdp_wakes(const struct node *n, const struct packet *p)
{
	const u32 first = n->expect[XROCE_QP_SLOT(p->dest_qpn)].psn;
	const u8 class = p->flags & OP_AETH ? p->syndrome & AETH_CLASS_MASK : AETH_ACK;
	u32 last = p->psn;

	if (class == AETH_NAK && p->syndrome & AETH_VALUE_MASK)
		return true;
	if (class != AETH_ACK || !(p->flags & OP_END))
		last = psn_add(last, ROCE_PSN_MASK);
	return first & XROCE_EXPECTED && psn_diff(last, first & ROCE_PSN_MASK) >= 0;
}

/*
 * Early responses are complete with a packet that does not end a message: the thread that runs the
 * engine finds them.
 */
static struct woken xdp_sees(const struct node *n, const struct rx_frame *rx)
{
	struct woken x = { 0 };
	struct packet p;

	if (packet_parse(&p, rx) || !(p.flags & OP_RESPONSE))
		return x;
	x.qp = engine_find_qp(n->engine, p.dest_qpn);
	if (!x.qp || !x.qp->tells_xdp || x.qp->req.early.head) {
		x.qp = NULL;
		return x;
	}
	x.wakes = xdp_wakes(n, &p);
	x.before = cq_next_index(x.qp->send_cq);
	return x;
}

/* A send has completed by that packet: XDP knew. */
static void check_woken(struct world *w, const struct woken *x)
{
	const struct cq *cq = x->qp ? x->qp->send_cq : NULL;

	for (u32 i = x->before; cq && !x->wakes && i != cq_next_index(cq); i++) {
		const struct cqe *e = &cq->ring[i & cq->mask];

		check(w, e->qpn != x->qp->qpn || e->opcode >= CQE_RECV || e->status != CQE_SUCCESS);
	}
}

enum xroce_drop world_deliver(struct world *w, u32 to, const u8 *frame, u32 len)
{
	struct node *n = &w->node[to];
	struct engine *owner = n->engine;
	u32 head = len > w->split_bytes ? w->split_bytes : len;
	struct rx_frame rx = { .len = head, .frag_len = len - head };
	struct woken woken;
	u8 *linear = malloc(head), *frag = len > head ? malloc(len - head) : NULL;
	enum xroce_drop result;

	/* Copies of exactly their size: a read past the end is a sanitizer's report. */
	assert_non_null(linear);
	memcpy(linear, frame, head);
	rx.data = linear;
	if (frag) {
		memcpy(frag, frame + head, len - head);
		rx.frag = frag;
	}
	if (n->num_engines > 1)
		owner = owner_of(w, n, &rx);
	n->to_run |= 1u << engine_number(owner);
	woken = xdp_sees(n, &rx);
	result = engine_input(owner, NULL, &rx, w->now_ns);
	check_woken(w, &woken);
	free(linear);
	free(frag);
	return result;
}
