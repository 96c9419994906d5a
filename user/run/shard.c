/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A shard's lock, and the threads that run its engine. A thread that unlocks reports events, and
 * does the work that arose while it held the lock: doorbells that rang, frames that other shards
 * handed over (migration.h).
 *
 *   ringer or giver (any thread)               holder of the lock
 *   push onto the engine's stack, or           run the engine (takes both)
 *   put into the ring
 *   full fence                                 unlock
 *   trylock: taken, so leave it                full fence
 *                                              doorbells, frames? then trylock and run again
 *
 * At least one of the two sees the other, so no work is lost.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "../os/clock.h"
#include "../os/kernel.h"
#include "fault.h"
#include "shard.h"

/* one of this many polls without work takes the lock anyway, for time-outs */
#define IDLE_POLLS     16
/* most runs of other shards by a thread that unlocks: two may keep giving each other work */
#define OTHERS_MAX     16
/* most yields to a thread that waits for the lock: longer than it takes to wake up */
#define YIELDS_MAX     1024

static _Atomic(shards_event_fn *) event_handler;

void shards_set_event_handler(shards_event_fn *fn)
{
	atomic_store_explicit(&event_handler, fn, memory_order_relaxed);
}

void shards_put(struct shards *all)
{
	u32 refs = atomic_load_explicit(&all->refs, memory_order_relaxed);

	/* release: pairs with the acq_rel in port_last_put() */
	while (refs > 1)
		if (atomic_compare_exchange_weak_explicit(&all->refs, &refs, refs - 1,
							  memory_order_release,
							  memory_order_relaxed))
			return;
	all->last_put(all);
}

/* ---- the lock ---- */

void shard_init_lock(struct shard *s)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
#ifdef __GLIBC__
	/* spins briefly before it sleeps */
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
	pthread_mutex_init(&s->lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

bool shard_turn(struct shard *s)
{
	return pump_run(s, clock_now_ns());
}

static void shard_report_events(struct shard *s)
{
	struct shards *all = s->all;
	/* events of the parent's engines are ignored in a forked child */
	shards_event_fn *handler =
		all->dead ? NULL : atomic_load_explicit(&event_handler, memory_order_relaxed);
	struct engine_event event;

	while (engine_next_event(s->engine, &event)) {
		if (event.type == EVENT_QP_STATE) {
			shards_steer(all, event.qp);
			continue;
		}
		if (event.type == EVENT_COMPLETION) {
			cq_notify_taken(&all->cq_notify, event.cq);
			all->maps->vector[s->number].events++;
		}
		if (handler)
			handler(&event);
	}
}

void shard_raise(struct cq *cq)
{
	shards_event_fn *handler = atomic_load_explicit(&event_handler, memory_order_relaxed);

	if (handler)
		handler(&(struct engine_event){ .type = EVENT_COMPLETION, .cq = cq });
}

void shard_lock(struct shard *s)
{
	pthread_mutex_lock(&s->lock);
	/* a QP may be about to be destroyed while its peer still waits for the last ACK */
	if (defer_waits(&s->defer))
		shard_turn(s);
}

/* Returns whether work is left after unlocking. Without room, doorbells wait until resume_ns. */
static bool shard_left_undone(struct shard *s, bool blocked)
{
	/*
	 * between unlocking and reading. Pairs with the fences before the trylock in
	 * shard_try_to_run(), shard_poll_cq() and shards_run_others(): either they get the lock, or
	 * this sees their doorbell or frame
	 */
	atomic_thread_fence(memory_order_seq_cst);
	return (!blocked && engine_has_doorbells(s->engine)) || handover_waits(&s->handover);
}

/*
 * Lets a thread that waits in shards_lock() have the lock, which is free. It must wake up first:
 * a thread that runs the shard again and again, as long as there is work, would always be faster.
 */
static void shard_give_way(struct shard *s)
{
	/* relaxed: a hint */
	for (u32 i = 0; i < YIELDS_MAX && atomic_load_explicit(&s->wanted, memory_order_relaxed);
	     i++)
		kernel_yield();
}

/* Work that the lock holder leaves to the thread that unlocks. */
struct deferred_work {
	u32 to_run;	/* bitmap of other shards */
	bool wants;	/* QPs should move here */
};

/* Unlocks, and runs the shard again while it has work and no other thread has its lock. */
static struct deferred_work shard_unlock_once(struct shard *s)
{
	struct deferred_work left = { 0 };
	bool blocked, dead;

	for (;;) {
		shard_report_events(s);
		dead = s->all->dead;
		blocked = dead || s->blocked_ns;
		left.to_run |= s->to_run | engine_passed_doorbells(s->engine);
		left.wants = !dead && migration_wants(&s->migration);
		s->to_run = 0;
		pthread_mutex_unlock(&s->lock);
		if (!dead)
			shard_give_way(s);
		if (dead || !shard_left_undone(s, blocked) || pthread_mutex_trylock(&s->lock))
			return left;
		shard_turn(s);
	}
}

/* Leaves shards that cannot be run now to their workers. */
static void shards_leave_to_threads(struct shards *all, u32 shards)
{
	for (; shards; shards &= shards - 1) {
		struct shard *s = &all->shard[__builtin_ctz(shards)];

		/* stored before worker_nudge() reads. Pairs with the fence in worker_sleep() */
		atomic_store_explicit(&s->resume_ns, 0, memory_order_seq_cst);
		worker_nudge(s);
	}
}

/* Runs shards that were given work, and shards that these give work to. */
static void shards_run_others(struct shards *all, u32 shards)
{
	for (u32 runs = 0; shards; runs++) {
		struct shard *s = &all->shard[__builtin_ctz(shards)];

		if (runs == OTHERS_MAX) {
			shards_leave_to_threads(all, shards);
			return;
		}
		shards &= shards - 1;
		/* pairs with the fence in shard_left_undone() */
		atomic_thread_fence(memory_order_seq_cst);
		/* locked: the holder looks after unlocking */
		if (pthread_mutex_trylock(&s->lock))
			continue;
		shard_turn(s);
		shards |= shard_unlock_once(s).to_run;
		worker_nudge(s);
	}
}

void shard_unlock(struct shard *s)
{
	struct deferred_work left = shard_unlock_once(s);

	worker_nudge(s);
	if (left.to_run)
		shards_run_others(s->all, left.to_run);
	if (left.wants)
		migration_move(s);
}

void shards_lock(struct shards *all)
{
	for (u32 i = 0; i < all->num; i++) {
		struct shard *s = &all->shard[i];

		/* relaxed: the lock orders what it protects */
		atomic_fetch_add_explicit(&s->wanted, 1, memory_order_relaxed);
		shard_lock(s);
		atomic_fetch_sub_explicit(&s->wanted, 1, memory_order_relaxed);
	}
}

void shards_unlock(struct shards *all)
{
	u32 to_run = 0;

	for (u32 i = all->num; i-- > 0;) {
		to_run |= shard_unlock_once(&all->shard[i]).to_run;
		worker_nudge(&all->shard[i]);
	}
	shards_run_others(all, to_run);
}

/* ---- running it ---- */

void shard_run(struct shard *s)
{
	shard_lock(s);
	worker_app_came(s);
	shard_turn(s);
	shard_unlock(s);
}

static void shard_try_to_run(struct shard *s)
{
	worker_app_came(s);
	/* pairs with the fence in shard_left_undone() */
	atomic_thread_fence(memory_order_seq_cst);
	if (pthread_mutex_trylock(&s->lock))
		return;
	shard_turn(s);
	shard_unlock(s);
}

void shards_poll(struct shards *all)
{
	for (u32 i = 0; i < all->num; i++)
		shard_try_to_run(&all->shard[i]);
}

void shards_run_locked(struct shards *all)
{
	for (u32 i = 0; i < all->num; i++) {
		worker_app_came(&all->shard[i]);
		shard_turn(&all->shard[i]);
	}
}

static bool shards_are_past_mark(const struct shards *all)
{
	for (u32 i = 0; i < all->num; i++)
		if (!xsk_is_past_mark(&all->shard[i].io->xsks))
			return false;
	return true;
}

/*
 * Takes the frames that were in the rings at the start, as ongoing traffic has no end. Then one
 * more turn of each shard takes the frames that the others handed over, and sends answers.
 */
void shards_catch_up(struct shards *all)
{
	bool is_last = false, moved = true;

	if (all->dead)
		return;
	for (u32 i = 0; i < all->num; i++)
		xsk_mark(&all->shard[i].io->xsks);
	for (u32 round = 0; !is_last && moved && round < SETTLE_ROUNDS; round++) {
		is_last = shards_are_past_mark(all);
		moved = false;
		for (u32 i = 0; i < all->num; i++) {
			worker_app_came(&all->shard[i]);
			moved |= shard_turn(&all->shard[i]);
		}
	}
}

/*
 * Returns whether a poll has work; a hint without the lock. Time-outs are not considered: for
 * these, one of IDLE_POLLS polls takes the lock.
 */
static bool shard_has_work(struct shard *s)
{
	u32 idle;

	if (xsk_has_input(&s->io->xsks) || defer_posts(&s->defer) ||
	    atomic_load_explicit(&s->resume_ns, memory_order_relaxed) != NSEC_NEVER ||
	    engine_has_doorbells(s->engine) || handover_waits(&s->handover))
		return true;
	idle = atomic_load_explicit(&s->idle_polls, memory_order_relaxed) + 1;
	atomic_store_explicit(&s->idle_polls, idle, memory_order_relaxed);
	return idle % IDLE_POLLS == 0;
}

static void shard_poll_cq(struct shard *s, const struct cq *cq)
{
	worker_app_came(s);
	if (!shard_has_work(s))
		return;
	/* pairs with the fence in shard_left_undone() */
	atomic_thread_fence(memory_order_seq_cst);
	if (pthread_mutex_trylock(&s->lock))
		return;
	pump_poll(s, cq, clock_now_ns());
	shard_unlock(s);
}

void shards_poll_cq(struct shards *all, struct cq *cq)
{
	cq_count_idle_poll(cq);
	for (u32 shards = shards_of_cq(all, cq); shards; shards &= shards - 1)
		shard_poll_cq(&all->shard[__builtin_ctz(shards)], cq);
}

/*
 * Returns whether a post may wait. A thread that has armed a CQ and no longer polls it is about to
 * sleep, so its posts do not wait.
 */
static bool shard_post_may_wait(struct shard *s, const struct qp *qp)
{
	if ((qp->send_cq && cq_is_awaited(qp->send_cq)) ||
	    (qp->recv_cq && cq_is_awaited(qp->recv_cq)))
		return false;
	return defer_in_burst(&s->defer, defer_needs_time(&s->defer) ? clock_now_ns() : 0,
			      qp->transport == XROCE_UD ? DEFER_DATAGRAM_NS : DEFER_POST_NS);
}

/* Runs a post without a doorbell. Returns false if the lock is taken or the QP has moved. */
static bool shard_post_and_run(struct shard *s, struct qp *qp)
{
	if (pthread_mutex_trylock(&s->lock))
		return false;
	if (unlikely(qp_engine(qp) != s->engine)) {
		shard_unlock(s);
		return false;
	}
	worker_app_came(s);
	engine_posted(s->engine, qp);
	shard_turn(s);
	shard_unlock(s);
	return true;
}

void shards_post(struct shards *all, struct qp *qp)
{
	struct shard *s = shard_owner(all, qp);
	const bool wait = shard_post_may_wait(s, qp);

	if (!wait && shard_post_and_run(s, qp))
		return;
	s = shard_of(all, engine_doorbell(qp));
	if (wait) {
		defer_post(&s->defer);
		/*
		 * Stored before worker_may_wait() reads sleep_until_ns. Pairs with the fence in
		 * worker_sleep(), which publishes its sleep before it reads this.
		 */
		atomic_store_explicit(&s->resume_ns, 0, memory_order_seq_cst);
		worker_app_came(s);
		if (worker_may_wait(s))
			return;
	}
	shard_try_to_run(s);
}

u64 shard_deadline_ns(const struct shard *s)
{
	u64 resume_ns = atomic_load_explicit(&((struct shard *)s)->resume_ns, memory_order_relaxed);

	const u64 account_ns =
		atomic_load_explicit(&((struct shard *)s)->account_ns, memory_order_relaxed);

	return min_u64(min_u64(resume_ns, account_ns), engine_deadline_ns(s->engine));
}
