/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the shards of a port do for the verbs and for user/port: progress, the locks of all engines,
 * publishing a QP. struct shards is in shard.h; port_shards() of port.h returns a port's.
 */
#ifndef RUN_SHARDS_H
#define RUN_SHARDS_H

#include "../engine/engine.h"

struct shards;

/* ---- shard.c ---- */

/* Drops a reference to the port (shards_hold() in shard.h). The last one destroys it. Unlocked. */
void shards_put(struct shards *all);

/*
 * Lock all shards, in order: exclusive access for a thread of the application or of a shard.
 * Locking sends the packets that shards_post() and shards_poll_cq() have deferred.
 */
void shards_lock(struct shards *all);
/* Reports the engines' events, unlocks, and runs work that other threads left to the holder. */
void shards_unlock(struct shards *all);

/*
 * Receives, runs the engines and sends, once, without blocking. Leaves an engine that another
 * thread runs to that thread, which also serves doorbells rung before this call. Counts as the
 * application driving the port.
 */
void shards_poll(struct shards *all);
/*
 * Does the same for a thread that found cq empty, but only for engines that complete to cq. If cq
 * receives completions, the ACKs may wait for the caller's next call, to leave with its next post.
 */
void shards_poll_cq(struct shards *all, struct cq *cq);
/*
 * Rings the doorbell of qp, on which work was published, and runs its engine as shards_poll() does.
 * In a burst of a thread that polls its CQs, the work waits instead for the next call, or for the
 * worker's next tick. [any thread]
 */
void shards_post(struct shards *all, struct qp *qp);
/* Does the work of shards_poll(), between shards_lock() and shards_unlock(). */
void shards_run_locked(struct shards *all);
/*
 * Processes and answers all received packets, as far as there is room to send. Locks held. Precedes
 * the error, reset or destruction of a QP, as an adapter takes an ACK or a message on arrival,
 * however long ago the program polled.
 */
void shards_catch_up(struct shards *all);

/*
 * Handles an event of an engine, under the lock of a shard; EVENT_QP_STATE does not reach it.
 * The verbs layer queues the event on its channel or async list. The handler must not call the
 * port, except port_channel_raise().
 */
typedef void shards_event_fn(const struct engine_event *event);
/* Sets the handler for the shards of all ports of the process. */
void shards_set_event_handler(shards_event_fn *fn);

/* ---- steer.c ---- */

/* Publishes a QP to XDP after each change of its attributes or state. All shards locked. */
void shards_steer(struct shards *all, const struct qp *qp);

#endif
