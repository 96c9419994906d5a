/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Posts and acknowledgements that wait for the application's next call.
 *
 * A system call sends one frame or many at much the same cost. So of posts in quick succession the
 * first leaves at once and the others together, when a batch of them is there or the application
 * polls; soon after a long burst, the first waits as well. And the ACKs of a poll that finds
 * completions wait for what the application posts next. Nothing waits while a CQ of it is armed for
 * a thread that sleeps (cq_is_awaited()), or a thread sleeps on the shard's sockets. If the
 * application stays away, the service thread's next tick sends what waits, and then nothing waits
 * for 10 ms. (docs/shard.md has what each part gains.)
 *
 * The lock holder changes acks_deferred, burst_until_ns and rest_until_ns, posting threads
 * posts_deferred. All are hints to threads that hold no lock.
 */
#ifndef RUN_DEFER_H
#define RUN_DEFER_H

#include <stdatomic.h>

#include "../engine/types.h"

#define DEFER_POSTS_MAX	     127u /* with the one that ends it: a batch */
#define DEFER_LOOK_POSTS     8u	  /* posts between two looks at the clock */
/* in a burst, a post follows the one before it within that: */
#define DEFER_POST_NS	     500u
#define DEFER_DATAGRAM_NS    1500u /* a datagram, which the application has often made for it */
/* from sending to a post of a burst, besides that: less than an answer takes */
#define DEFER_BURST_NS	     500u
/* an application that has posted as many in quick succession will do so again, */
#define DEFER_LONG_POSTS     32u
/* soon: the first of them waits for the others, too */
#define DEFER_LONG_NS	     (50 * NSEC_PER_USEC)
/* after the application has stayed away: ten times what waited at most (worker.c, TICK_MAX_NS) */
#define DEFER_REST_NS	     (10 * NSEC_PER_MSEC)

struct defer {
	_Atomic u32 posts_deferred;  /* since the last run that sent */
	_Atomic bool acks_deferred;  /* the last run received and did not send */
	_Atomic u64 burst_until_ns;  /* a post before then is one of a burst */
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

/* What a run received is acknowledged by the next one. Lock held. */
static inline void defer_acks(struct defer *d)
{
	atomic_store_explicit(&d->acks_deferred, true, memory_order_relaxed);
}

/* Is there anything that waits? */
static inline bool defer_waits(const struct defer *d)
{
	return defer_has_acks(d) || defer_posts(d);
}

static inline bool defer_rests(const struct defer *d, u64 now_ns)
{
	return now_ns < atomic_load_explicit(&((struct defer *)d)->rest_until_ns,
					     memory_order_relaxed);
}

/* Must the clock be read for the next post? For the first that waits, and now and then after it. */
static inline bool defer_needs_time(const struct defer *d)
{
	return defer_posts(d) % DEFER_LOOK_POSTS == 0;
}

/*
 * May the next post wait, for all that its QP says? One that comes at leisure does not: more than
 * gap_ns for each post after the last sending. now_ns: 0 where no time is needed.
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

/* A post waits. */
static inline void defer_post(struct defer *d)
{
	atomic_store_explicit(&d->posts_deferred, defer_posts(d) + 1, memory_order_relaxed);
}

/* Everything that waits is sent now. Returns how many posts there were. Lock held. */
static inline u32 defer_take(struct defer *d)
{
	const u32 posts = defer_posts(d);

	atomic_store_explicit(&d->acks_deferred, false, memory_order_relaxed);
	atomic_store_explicit(&d->posts_deferred, 0, memory_order_relaxed);
	return posts;
}

/* Frames have left by now, of so many posts. Lock held. */
static inline void defer_sent(struct defer *d, u32 posts, u64 now_ns)
{
	const u64 burst_ns = posts >= DEFER_LONG_POSTS ? DEFER_LONG_NS : DEFER_BURST_NS;

	atomic_store_explicit(&d->burst_until_ns, now_ns + burst_ns, memory_order_relaxed);
}

/* The application stayed away from what waited for it. Lock held. */
static inline void defer_rest(struct defer *d, u64 now_ns)
{
	atomic_store_explicit(&d->rest_until_ns, now_ns + DEFER_REST_NS, memory_order_relaxed);
}

#endif
