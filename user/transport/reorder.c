/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets that came before their turn, kept until it: requests ahead of the responder's expected PSN, READ and atomic responses ahead of
 * the requester's oldest. They are copied, checked packets; when their turn comes they go through the same code as if they had just come.
 * The pool belongs to the engine, so an idle QP pays nothing, and no peer can make it grow.
 */
#include <stdlib.h>

#include "internal.h"

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

/* The link behind which psn belongs; *link is then the first one that is not before it. Most packets belong at the end. */
static struct held **find_place(struct reorder *r, u32 psn)
{
	struct held **link = &r->head;

	if (r->tail && psn_diff(psn, r->tail->packet.psn) > 0)
		return &r->tail->next;
	while (*link && psn_diff((*link)->packet.psn, psn) < 0)
		link = &(*link)->next;
	return link;
}

bool reorder_hold(struct engine *e, struct reorder *r, u32 psn, const struct packet *p, const struct xroce_rx_cqe *hint)
{
	struct held *h = e->held_free;
	struct held **link;

	if (!h || r->count >= REORDER_MAX_QP || psn_diff(p->psn, psn) <= 0 || psn_diff(p->psn, psn) > (s32)(2 * e->window))
		return false;
	link = find_place(r, p->psn);
	if (*link && (*link)->packet.psn == p->psn)
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
	h->next = *link;
	*link = h;
	if (!h->next)
		r->tail = h;
	r->count++;
	e->stats->rx_held++;
	return true;
}

struct held *reorder_take(struct engine *e, struct reorder *r, u32 psn)
{
	struct held *h;

	while ((h = r->head) && psn_diff(h->packet.psn, psn) <= 0) {
		r->head = h->next;
		r->count--;
		if (!r->head)
			r->tail = NULL;
		if (h->packet.psn == psn)
			return h;
		reorder_free(e, h);
	}
	return NULL;
}
