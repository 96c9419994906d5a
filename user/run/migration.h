/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One shard owns a QP. Which, decides where its packets arrive: receive-side scaling, or
 * on veth the peer's CPU, chooses the queue, and we follow. When most packets of a QP arrive at
 * another shard, that one asks for it, and it moves: exclusively, so with nothing of it under way
 * in between. Once moved, it stays for a while, which doubles each time: who is served from many
 * queues (UD) has no better place.
 */
#ifndef RUN_MIGRATION_H
#define RUN_MIGRATION_H

#include <xroce/abi.h>

#include "../engine/engine.h"
#include "../engine/group.h"

#define MIGRATION_WANTED_MAX 16u

struct shards;
struct shard;

/* A shard's: packets that arrived here for QPs that others own. Under its lock. */
struct migration {
	struct misdirected {
		u32 qpn;	/* whose they are */
		u32 seen;	/* since it was last asked for */
		u64 packets;	/* that had come for it by all queues, when the first was seen */
	} *misdirected; /* by a QPN's slot */
	u32 wanted[MIGRATION_WANTED_MAX];
	u32 num_wanted;
};

/* The port's: exclusive. */
struct moves {
	struct {
		u32 qpn;		/* whose these are */
		_Atomic u64 not_before_ns; /* relaxed reads by any shard */
		u64 stay_ns;
		u64 untaken;		/* as engine_untaken() was when it had to stay */
	} *of; /* by a QPN's slot */
};

/* With more than one shard. Returns 0 or -ENOMEM; migration_free() in both cases. */
int migration_init(struct shards *all);
void migration_free(struct shards *all);

/* A frame for qp was handed over by s. Lock held. */
void migration_count(struct shard *s, const struct qp *qp, u64 now_ns);
/*
 * Lock held: is there a QP to be moved here? Then migration_move(), no lock held, by the
 * thread that unlocks.
 */
static inline bool migration_wants(const struct migration *h)
{
	return h->num_wanted != 0;
}
void migration_move(struct shard *s);
/* group_attach() of the transport, whose QP moves to the first shard. Exclusive. */
int migration_attach(struct shards *all, struct qp *qp, const struct gid *group, u64 now_ns);

#endif
