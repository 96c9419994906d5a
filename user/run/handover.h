/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames that arrived at one shard and are for a QP that another owns. They stay where
 * they lie: the giver lends them, in the order in which they came, and takes them back when the
 * taker has been through.
 *
 *   giver, under its own lock                             taker, under its own
 *   handover_give: write the entry,
 *                  store put (release)      --------->    handover_take: load put (acquire),
 *                                                           hand the entries to its engine,
 *   handover_take_back: load used (acquire) <---------      store used (release)
 *                  free the frames
 *
 * A ring has room for every frame that its giver can have, so it is never full. That the taker
 * looks is the way of doorbells, drawn in shard.c: the giver sets its bit in the taker's givers,
 * and tries its lock; its holder looks at givers after unlocking.
 */
#ifndef RUN_HANDOVER_H
#define RUN_HANDOVER_H

#include <xroce/abi.h>

#include "../engine/engine.h"

struct shard;

/* From one shard to another. */
struct handover_ring {
	_Atomic u32 put cache_aligned;	/* by the giver */
	u32 taken_back;
	_Atomic u32 used cache_aligned; /* by the taker */
	/* by the giver, before put moves; size of them, a power of two */
	struct engine_frame *frame cache_aligned;
	struct xroce_rx_cqe *hint;	/* copies */
	/* a transmit slot of the giver's, else frames of its UMEM */
	bool *looped;
	u32 size;
};

struct handover {
	struct handover_ring to[XROCE_MAX_SHARD]; /* giver's: for each taker */
	u32 lent;			/* frames that have not been taken back */
	_Atomic u32 givers cache_aligned; /* taker's: shards that have put something, a bit each */
};

/*
 * Rings from s to each of the port's num_shards others. Returns 0 or -ENOMEM; handover_free() in
 * both cases.
 */
int handover_init(struct shard *s, u32 num_shards);
void handover_free(struct shard *s);

/* Giver: lend a frame to another shard. hint may be NULL. looped: it lies in a transmit slot. */
void handover_give(struct shard *from, struct shard *to, const struct rx_frame *frame,
		   const struct xroce_rx_cqe *hint, bool looped);
/* Giver: what others are done with is free again. */
void handover_take_back(struct shard *from);
/* Giver: frames are lent that it needs back to receive on. */
bool handover_is_short(const struct shard *from);

/* Is there something for this shard? [any thread] a hint */
static inline bool handover_waits(const struct handover *h)
{
	return atomic_load_explicit(&((struct handover *)h)->givers, memory_order_relaxed) != 0;
}
/* Taker: hand all that is there to fn, in batches. Returns how many frames. */
typedef void handover_fn(void *arg, const struct engine_frame *frames, u32 n);
u32 handover_take(struct shard *to, handover_fn *fn, void *arg);

#endif
