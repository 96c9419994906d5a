/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The workers of a port's shards. Called without locks. */
#ifndef RUN_WORKER_H
#define RUN_WORKER_H

#include "../engine/types.h"

struct shards;

/* Starts the threads of all shards. Returns 0 or -errno; call worker_stop() in both cases. */
int worker_start(struct shards *all);
void worker_stop(struct shards *all);
/* Closes the threads' descriptors in a forked child, which has no workers. */
void worker_abandon(struct shards *all);

/*
 * Returns how long a worker spins after work, at most: the environment's value, or 0 on a
 * single processor, where spinning would keep the awaited thread from running.
 */
u64 worker_spin_max_ns(void);

#endif
