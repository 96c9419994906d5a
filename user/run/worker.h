/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The service threads of a port's shards. No lock held. */
#ifndef RUN_WORKER_H
#define RUN_WORKER_H

#include "../engine/types.h"

struct shards;

/* Start the threads of all shards. Returns 0 or -errno; worker_stop() in both cases. */
int worker_start(struct shards *all);
void worker_stop(struct shards *all);
/* In a forked child, where the threads are not: close their descriptors. */
void worker_abandon(struct shards *all);

/*
 * How long a thread spins after work, at most: what the environment says; else nothing where there
 * is one processor, on which a thread that spins keeps the one from running that it waits for.
 */
u64 worker_spin_max_ns(void);

#endif
