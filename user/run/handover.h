/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames that arrived at one shard for a QP that another shard owns. They are not copied: the giver
 * passes them in order of arrival, and frees them after the taker has processed them.
 *
 *   giver, under its own lock                             taker, under its own
 *   handover_give: write the entry,
 *                  store put (release)      --------->    handover_take: load put (acquire),
 *                                                           pass the entries to its engine,
 *   handover_take_back: load used (acquire) <---------      store used (release)
 *                  free the frames
 *
 * A ring has room for every frame that its giver can have, so it is never full. The taker learns of
 * frames as of doorbells, drawn in shard.c: the giver sets its bit in the taker's givers and tries
 * the taker's lock; a lock holder looks at givers after unlocking.
 */
#ifndef RUN_HANDOVER_H
#define RUN_HANDOVER_H

#include <xroce/abi.h>

#include "../engine/engine.h"

struct shard;

/* The ring from one shard to another. */
struct handover_ring {
	_Atomic u32 put cache_aligned;	/* written by the giver */
	u32 taken_back;
	_Atomic u32 used cache_aligned; /* written by the taker */
	/* `size` entries, a power of two; written by the giver before put */
	struct engine_frame *frame cache_aligned;
	struct xroce_rx_cqe *hint;	/* copies */
	/* true: a transmit slot of the giver; false: frames of its UMEM */
	bool *looped;
	u32 size;
};

struct handover {
	struct handover_ring to[XROCE_MAX_SHARD]; /* giver's side: one for each taker */
	u32 lent;			/* frames given and not yet taken back */
	_Atomic u32 givers cache_aligned; /* taker's side: bitmap of shards that gave frames */
};

/*
 * Makes rings from s to each of the port's num_shards others. Returns 0 or -ENOMEM; call
 * handover_free() in both cases.
 */
int handover_init(struct shard *s, u32 num_shards);
void handover_free(struct shard *s);

/* Giver: passes a frame to another shard. hint may be NULL. looped: it is in a transmit slot. */
void handover_give(struct shard *from, struct shard *to, const struct rx_frame *frame,
		   const struct xroce_rx_cqe *hint, bool looped);
/* Giver: frees the frames that takers are done with. */
void handover_take_back(struct shard *from);
/* Giver: returns whether takers hold frames that it needs for receiving. */
bool handover_is_short(const struct shard *from);

/* Returns whether there are frames for this shard; a hint. [any thread] */
static inline bool handover_waits(const struct handover *h)
{
	return atomic_load_explicit(&((struct handover *)h)->givers, memory_order_relaxed) != 0;
}
/* Taker: passes all frames to fn, in batches. Returns their number. */
typedef void handover_fn(void *arg, const struct engine_frame *frames, u32 n);
u32 handover_take(struct shard *to, handover_fn *fn, void *arg);

#endif
