/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Packets that arrived before an earlier one. Private to user/engine. */
#ifndef ENGINE_REORDER_H
#define ENGINE_REORDER_H

#include "internal.h"

struct held {
	struct held *next;
	u32 missing; /* packets between the one before it and this one, when it came */
	bool has_hint;
	struct xroce_rx_cqe hint;
	struct packet packet; /* its pointers point into payload */
	u8 payload[ROCE_PMTU_MAX];
};
int reorder_init(struct engine *e);
void reorder_destroy(struct engine *e);
/* Is there any? While no QP has one, none is touched to find that out. */
static inline bool reorder_holds(const struct engine *e, const struct reorder *r)
{
	return unlikely(e->num_held) && r->head;
}
/*
 * Keep a copy of a packet that is ahead of psn and of all that are kept; false if it is not, if it
 * is too far ahead, or if there is no room. A packet that contradicts some that are kept makes them
 * go.
 */
bool reorder_hold(struct engine *e, struct reorder *r, u32 psn, const struct packet *p,
		  const struct xroce_rx_cqe *hint);
/*
 * Take the packet with this PSN, which is proven, dropping all before it; NULL if it is not there
 * or if it is not to be trusted. Give it back with reorder_free().
 */
struct held *reorder_take(struct engine *e, struct reorder *r, u32 psn);
/* Give up all that are before psn. */
void reorder_pass(struct engine *e, struct reorder *r, u32 psn);
/*
 * The packet before psn came in its turn, and not as a repair. The packets that are held came
 * before it: either it was late, and all that was missing, or they are contradicted and go.
 */
void reorder_overtaken(struct engine *e, struct reorder *r, u32 psn);
void reorder_free(struct engine *e, struct held *h);
void reorder_purge(struct engine *e, struct reorder *r);

#endif
