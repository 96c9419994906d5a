/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A binary heap of deadlines, for the engine's QPs (engine.c) and the connections of user/cm. The
 * owner has at most one deadline for each slot, and allocates both arrays.
 */
#ifndef ENGINE_TIMER_HEAP_H
#define ENGINE_TIMER_HEAP_H

#include "types.h"

struct timer {
	u64 at_ns;
	u32 slot;
};

struct timer_heap {
	struct timer *at; /* at[0] is the earliest */
	u32 len;
	u32 *place;	  /* of a slot: its position + 1; 0: not in the heap */
};

static inline void timer_heap_put(struct timer_heap *h, u32 at, struct timer timer)
{
	h->at[at] = timer;
	h->place[timer.slot] = at + 1;
}

static inline void timer_heap_up(struct timer_heap *h, u32 at, struct timer timer)
{
	while (at && h->at[(at - 1) / 2].at_ns > timer.at_ns) {
		timer_heap_put(h, at, h->at[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	timer_heap_put(h, at, timer);
}

static inline void timer_heap_down(struct timer_heap *h, u32 at, struct timer timer)
{
	for (;;) {
		u32 child = 2 * at + 1;

		if (child + 1 < h->len && h->at[child + 1].at_ns < h->at[child].at_ns)
			child++;
		if (child >= h->len || h->at[child].at_ns >= timer.at_ns)
			break;
		timer_heap_put(h, at, h->at[child]);
		at = child;
	}
	timer_heap_put(h, at, timer);
}

/* Adds a deadline of a slot that has none. */
static inline void timer_heap_add(struct timer_heap *h, struct timer timer)
{
	timer_heap_up(h, h->len++, timer);
}

/* Removes the deadline at position `at`. */
static inline void timer_heap_remove(struct timer_heap *h, u32 at)
{
	struct timer last = h->at[--h->len];

	h->place[h->at[at].slot] = 0;
	if (at == h->len)
		return;
	timer_heap_up(h, at, last);
	timer_heap_down(h, h->place[last.slot] - 1, last);
}

#endif
