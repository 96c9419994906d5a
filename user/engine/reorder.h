/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Packets that arrived before an earlier one. Private to user/engine. */
#ifndef ENGINE_REORDER_H
#define ENGINE_REORDER_H

#include "internal.h"

struct held {
	struct held *next;
	u32 missing; /* packets missing between the previous one and this, on its arrival */
	bool has_hint;
	struct xroce_rx_cqe hint;
	struct packet packet; /* its pointers point into payload */
	u8 payload[ROCE_PMTU_MAX];
};
int reorder_init(struct engine *e);
void reorder_destroy(struct engine *e);
/* Returns whether r holds a packet. While no QP has one, r is not read. */
static inline bool reorder_holds(const struct engine *e, const struct reorder *r)
{
	return unlikely(e->num_held) && r->head;
}
/*
 * Holds a copy of a packet ahead of psn and of all held ones. Returns false if it is not ahead, too
 * far ahead, or there is no room. A packet that contradicts held ones makes them be dropped.
 */
bool reorder_hold(struct engine *e, struct reorder *r, u32 psn, const struct packet *p,
		  const struct xroce_rx_cqe *hint);
/*
 * Takes the packet with this PSN, which is proven, and drops all before it. Returns NULL if it is
 * not held or not to be trusted. Release it with reorder_free().
 */
struct held *reorder_take(struct engine *e, struct reorder *r, u32 psn);
/* Drops all packets before psn. */
void reorder_pass(struct engine *e, struct reorder *r, u32 psn);
/*
 * The packet before psn arrived in turn, and not as a repair, after the held packets. Either it was
 * late and the only one missing, or it contradicts the held packets, which are then dropped.
 */
void reorder_overtaken(struct engine *e, struct reorder *r, u32 psn);
void reorder_free(struct engine *e, struct held *h);
void reorder_purge(struct engine *e, struct reorder *r);

#endif
