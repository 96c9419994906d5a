/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets held until their turn: requests ahead of the responder's expected PSN, READ and atomic
 * responses ahead of the requester's oldest. They are copies of checked packets. When their turn
 * comes, the same code handles them as if they had just arrived. The engine owns the pool, so an
 * idle QP costs nothing, and no peer can make it grow.
 *
 * An early packet may be forged: its sender need not have known the PSN. So held packets are sorted
 * both by PSN and by arrival. Most paths do not reorder packets. A genuine packet that arrives
 * after a forged one ahead of it contradicts that one; both are dropped, and requested again. A
 * held packet is executed only after a packet that proves it: docs/injection.md.
 */
#include <stdlib.h>

#include "reorder.h"

int reorder_init(struct engine *e)
{
	if (e->config.disable & ENGINE_NO_REORDER)
		return 0;
	e->held_pool = malloc(REORDER_POOL * sizeof(*e->held_pool));
	if (!e->held_pool)
		return -ENOMEM;
	e->num_held = REORDER_POOL;
	for (u32 i = REORDER_POOL; i--;)
		reorder_free(e, &e->held_pool[i]);
	return 0;
}

void reorder_destroy(struct engine *e)
{
	free(e->held_pool);
}

void reorder_free(struct engine *e, struct held *h)
{
	h->next = e->held_free;
	e->held_free = h;
	e->num_held--;
}

void reorder_purge(struct engine *e, struct reorder *r)
{
	struct held *h;

	while ((h = r->head)) {
		r->head = h->next;
		reorder_free(e, h);
	}
	r->tail = NULL;
	r->count = 0;
}

/* Returns whether two packets of one PSN are the same. AckReq and MigReq may differ in a resend. */
static bool reorder_is_same(const struct packet *a, const struct packet *b)
{
	u32 flags = a->flags, linear = (u32)min_u64(a->payload_len, (u64)(a->end - a->payload));

	if (a->opcode != b->opcode || a->payload_len != b->payload_len ||
	    a->solicited != b->solicited)
		return false;
	if (flags & (OP_RETH | OP_ATOMIC_ETH) && (a->va != b->va || a->rkey != b->rkey))
		return false;
	if (flags & OP_RETH && a->dma_len != b->dma_len)
		return false;
	if (flags & OP_ATOMIC_ETH && (a->swap_add != b->swap_add || a->compare != b->compare))
		return false;
	if ((flags & OP_IMM && a->imm != b->imm) ||
	    (flags & OP_IETH && a->inv_rkey != b->inv_rkey) ||
	    (flags & OP_XRC_ETH && a->xrc_srqn != b->xrc_srqn) ||
	    (flags & OP_FETH && a->flush != b->flush) ||
	    (flags & OP_ATOMIC_ACK_ETH && a->original != b->original))
		return false;
	return !memcmp(a->payload, b->payload, linear) &&
	       (linear == a->payload_len ||
		!memcmp(a->frag, b->payload + linear, a->payload_len - linear));
}

/*
 * p is not ahead of all held packets. If it repeats one of them, nothing changes. If not, it
 * contradicts the held packets that are not before it: these are dropped.
 */
static void reorder_drop_contradicted(struct engine *e, struct reorder *r, const struct packet *p)
{
	struct held **link = &r->head, *before = NULL, *h;

	while (*link && psn_diff((*link)->packet.psn, p->psn) < 0) {
		before = *link;
		link = &before->next;
	}
	if (!*link || ((*link)->packet.psn == p->psn && reorder_is_same(p, &(*link)->packet)))
		return;
	while ((h = *link)) {
		*link = h->next;
		r->count--;
		reorder_free(e, h);
	}
	r->tail = before;
}

bool reorder_hold(struct engine *e, struct reorder *r, u32 psn, const struct packet *p,
		  const struct xroce_rx_cqe *hint)
{
	struct held *h = e->held_free;

	if (psn_diff(p->psn, psn) <= 0 || psn_diff(p->psn, psn) > (s32)e->window)
		return false;
	if (r->tail && psn_diff(p->psn, r->tail->packet.psn) <= 0) {
		reorder_drop_contradicted(e, r, p);
		return false;
	}
	if (!h || r->count >= REORDER_MAX_QP)
		return false;
	e->held_free = h->next;
	e->num_held++;
	h->packet = *p;
	h->packet.payload = h->payload;
	h->packet.end = h->payload + p->payload_len;
	h->packet.frag = NULL;
	h->packet.frag_len = 0;
	packet_copy_payload(p, 0, h->payload, p->payload_len);
	h->has_hint = hint;
	if (hint)
		h->hint = *hint;
	h->next = NULL;
	if (r->tail) {
		h->missing = (u32)psn_diff(p->psn, r->tail->packet.psn) - 1;
		r->tail->next = h;
	} else {
		h->missing = (u32)psn_diff(p->psn, psn);
		r->head = h;
		r->gap_psn = psn;
	}
	r->tail = h;
	r->count++;
	e->stats->rx_held++;
	return true;
}

void reorder_pass(struct engine *e, struct reorder *r, u32 psn)
{
	struct held *h;

	while ((h = r->head) && psn_diff(h->packet.psn, psn) < 0) {
		r->head = h->next;
		r->count--;
		if (!r->head)
			r->tail = NULL;
		reorder_free(e, h);
	}
}

/*
 * Returns whether as many packets follow a gap as are missing in it. An attacker who guesses PSNs
 * then gains nothing by a long gap: the more PSNs fit, the more packets it takes.
 */
static bool reorder_is_long_enough(const struct held *h)
{
	u32 n = 1;

	for (const struct held *at = h; n < h->missing && at->next && !at->next->missing;
	     at = at->next)
		n++;
	return n >= h->missing;
}

struct held *reorder_take(struct engine *e, struct reorder *r, u32 psn)
{
	struct held *h;

	reorder_pass(e, r, psn);
	h = r->head;
	if (!h || h->packet.psn != psn)
		return NULL;
	if (unlikely(!reorder_is_long_enough(h))) {
		reorder_purge(e, r);
		return NULL;
	}
	r->head = h->next;
	r->count--;
	if (!r->head)
		r->tail = NULL;
	return h;
}

void reorder_overtaken(struct engine *e, struct reorder *r, u32 psn)
{
	if (psn != psn_add(r->gap_psn, 1) || r->head->packet.psn != psn)
		reorder_purge(e, r);
}
