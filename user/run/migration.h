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
#include "../engine/group.h"

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

#endif
