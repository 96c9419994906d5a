/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Moves QPs between shards. One shard owns a QP, but receive-side scaling, or on veth the peer's
 * CPU, chooses the queue where its packets arrive. When most packets of a QP arrive at another
 * shard, that shard requests it. The move is exclusive, with none of its packets in flight between
 * shards. Then the QP stays for a time, which is twice as long after each move: a QP with traffic
 * from many queues (UD) has no better place.
 */
#ifndef RUN_MIGRATION_H
#define RUN_MIGRATION_H

#include <xroce/abi.h>

#include "../engine/engine.h"

#define MIGRATION_WANTED_MAX 16u

struct shards;
struct shard;

/* A shard's packets for QPs that other shards own. Under the shard's lock. */
struct migration {
	struct misdirected {
		u32 qpn;	/* the QP */
		u32 seen;	/* packets since the shard last requested it */
		u64 packets;	/* packets that XDP had counted for the QP at the first of these */
	} *misdirected; /* indexed by QPN modulo XROCE_MAX_QP */
	u32 wanted[MIGRATION_WANTED_MAX];
	u32 num_wanted;
};

/* State of a port; exclusive, under all locks. */
struct moves {
	struct {
		u32 qpn;		/* the QP */
		_Atomic u64 not_before_ns; /* relaxed reads by any shard */
		u64 stay_ns;
		u64 untaken;		/* engine_untaken() when it last had to stay */
	} *of; /* indexed by QPN modulo XROCE_MAX_QP */
};

/* For several shards. Returns 0 or -ENOMEM; call migration_free() in both cases. */
int migration_init(struct shards *all);
void migration_free(struct shards *all);

/* Counts a frame for qp that s handed over. Lock held. */
void migration_count(struct shard *s, const struct qp *qp, u64 now_ns);
/*
 * Returns whether QPs should move to this shard. Lock held. The thread that unlocks then calls
 * migration_move(), without a lock.
 */
static inline bool migration_wants(const struct migration *h)
{
	return h->num_wanted != 0;
}
void migration_move(struct shard *s);
/* Calls group_attach() of the transport, which moves the QP to the first shard. Exclusive. */
int migration_attach(struct shards *all, struct qp *qp, const struct gid *group, u64 now_ns);

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
