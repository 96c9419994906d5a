/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Posts and acknowledgements that wait for the application's next call.
 *
 * A system call sends one frame or many at much the same cost. So of posts in quick succession the
 * first leaves at once, and the others leave together when a batch is full or the application
 * polls. Soon after a long burst, the first post waits as well. ACKs of a poll that finds
 * completions wait for the application's next posts. Nothing waits while a CQ of the QP is armed
 * for a sleeping thread (cq_is_awaited()), or a thread sleeps on the shard's sockets. If the
 * application stays away, the worker's next tick sends everything, and then nothing waits
 * for 10 ms. (docs/shard.md has the gain of each part.)
 *
 * The lock holder changes acks_deferred, burst_until_ns and rest_until_ns; posting threads raise
 * posts_deferred, and the lock holder clears it. All are hints to threads without the lock.
 */
#ifndef RUN_DEFER_H
#define RUN_DEFER_H

#include <stdatomic.h>

#include "../engine/types.h"

#define DEFER_POSTS_MAX	     127u /* a batch, without the post that ends it */
#define DEFER_LOOK_POSTS     8u	  /* posts between two reads of the clock */
/* longest gap between two posts of a burst */
#define DEFER_POST_NS	     500u
/* the same for datagrams, which the application often builds first */
#define DEFER_DATAGRAM_NS    1500u
/* extra gap after sending, shorter than the time to an answer */
#define DEFER_BURST_NS	     500u
/* after a burst of this many posts, another one is expected */
#define DEFER_LONG_POSTS     32u
/* within this time: its first post waits as well */
#define DEFER_LONG_NS	     (50 * NSEC_PER_USEC)
/* pause after the application stayed away: ten times the longest wait (worker.c, TICK_MAX_NS) */
#define DEFER_REST_NS	     (10 * NSEC_PER_MSEC)

struct defer {
	_Atomic u32 posts_deferred;  /* since the last run that sent */
	_Atomic bool acks_deferred;  /* the last run received and did not send */
	_Atomic u64 burst_until_ns;  /* a post before then belongs to a burst */
	_Atomic u64 rest_until_ns;   /* nothing waits before then */
};

static inline u32 defer_posts(const struct defer *d)
{
	return atomic_load_explicit(&((struct defer *)d)->posts_deferred, memory_order_relaxed);
}

static inline bool defer_has_acks(const struct defer *d)
{
	return atomic_load_explicit(&((struct defer *)d)->acks_deferred, memory_order_relaxed);
}

/* Leaves the ACKs of this run to the next one. Lock held. */
static inline void defer_acks(struct defer *d)
{
	atomic_store_explicit(&d->acks_deferred, true, memory_order_relaxed);
}

/* Returns whether anything waits. */
static inline bool defer_waits(const struct defer *d)
{
	return defer_has_acks(d) || defer_posts(d);
}

static inline bool defer_rests(const struct defer *d, u64 now_ns)
{
	return now_ns < atomic_load_explicit(&((struct defer *)d)->rest_until_ns,
					     memory_order_relaxed);
}

/* Returns whether the next post needs the clock: the first waiting post, and some later posts. */
static inline bool defer_needs_time(const struct defer *d)
{
	return defer_posts(d) % DEFER_LOOK_POSTS == 0;
}

/*
 * Returns whether the next post may wait, as far as its QP allows. A post outside a burst may not:
 * it comes more than gap_ns for each post after the last sending. now_ns: 0 if no time is needed.
 */
static inline bool defer_in_burst(struct defer *d, u64 now_ns, u64 gap_ns)
{
	const u32 posts = defer_posts(d);

	if (posts >= DEFER_POSTS_MAX)
		return false;
	return !now_ns ||
	       (!defer_rests(d, now_ns) &&
		now_ns < atomic_load_explicit(&d->burst_until_ns, memory_order_relaxed) +
				 (posts + 1) * gap_ns);
}

/* Counts a post that waits. */
static inline void defer_post(struct defer *d)
{
	atomic_store_explicit(&d->posts_deferred, defer_posts(d) + 1, memory_order_relaxed);
}

/* Takes everything that waits, to be sent now. Returns the number of posts. Lock held. */
static inline u32 defer_take(struct defer *d)
{
	const u32 posts = defer_posts(d);

	atomic_store_explicit(&d->acks_deferred, false, memory_order_relaxed);
	atomic_store_explicit(&d->posts_deferred, 0, memory_order_relaxed);
	return posts;
}

/* Records that the frames of `posts` posts have left. Lock held. */
static inline void defer_sent(struct defer *d, u32 posts, u64 now_ns)
{
	const u64 burst_ns = posts >= DEFER_LONG_POSTS ? DEFER_LONG_NS : DEFER_BURST_NS;

	atomic_store_explicit(&d->burst_until_ns, now_ns + burst_ns, memory_order_relaxed);
}

/* Suspends deferral, as the application stayed away from waiting work. Lock held. */
static inline void defer_rest(struct defer *d, u64 now_ns)
{
	atomic_store_explicit(&d->rest_until_ns, now_ns + DEFER_REST_NS, memory_order_relaxed);
}

#endif
