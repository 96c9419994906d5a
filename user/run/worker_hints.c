/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What threads that drive a shard signal to its service thread, and how they rely on it. worker.c
 * has the thread, and draws who writes which field.
 */
#include "../os/kernel.h"
#include "shard.h"

/* sleepers run the shard first at a deadline that they know */
#define SLEEPERS_SLACK_NS NSEC_PER_MSEC

void worker_app_came(struct shard *sh)
{
	struct worker *s = &sh->service;
	const u64 progress = atomic_load_explicit(&s->app_progress, memory_order_relaxed);

	/* Two threads may store the same value: it has changed all the same. */
	atomic_store_explicit(&s->app_progress, progress + 1, memory_order_relaxed);
}

void worker_kick(struct shard *sh)
{
	kernel_event_raise(sh->service.control_fd);
}

bool worker_may_wait(struct shard *sh)
{
	struct worker *s = &sh->service;

	if (atomic_load_explicit(&s->sleepers, memory_order_relaxed))
		return false;
	/*
	 * pairs with the fence in worker_sleep(): either the thread sees resume_ns, which our
	 * caller stored, or this load sees its sleep. In STANDBY without sleepers it is 0, and the
	 * next tick looks
	 */
	if (atomic_load_explicit(&s->sleep_until_ns, memory_order_seq_cst) &&
	    atomic_exchange_explicit(&s->sleep_until_ns, 0, memory_order_seq_cst))
		worker_kick(sh);
	return true;
}

u64 worker_due_ns(const struct shard *sh)
{
	u64 deadline_ns = shard_deadline_ns(sh);
	bool slack = worker_has_sleepers(sh) && deadline_ns < NSEC_NEVER - SLEEPERS_SLACK_NS;

	return deadline_ns + (slack ? SLEEPERS_SLACK_NS : 0);
}

void worker_nudge(struct shard *sh)
{
	struct worker *s = &sh->service;
	/*
	 * Between the deadline and this load is the fence in shard_left_undone() or the store of
	 * resume_ns. Pairs with the fence in worker_sleep(): the thread sees the deadline, or this
	 * load sees its sleep
	 */
	u64 until_ns = atomic_load_explicit(&s->sleep_until_ns, memory_order_seq_cst);

	/* The exchange makes only one of several threads pay for the system call. */
	if (until_ns && worker_due_ns(sh) < until_ns &&
	    atomic_compare_exchange_strong_explicit(&s->sleep_until_ns, &until_ns, 0,
						    memory_order_seq_cst, memory_order_seq_cst))
		worker_kick(sh);
}

/* For all queues of the shard, here and below. The callers have the fences. */
void worker_set_asleep(struct shard *sh, u32 asleep)
{
	const struct xsk_set *set = &sh->io->xsks;

	for (u32 i = 0; i < set->count; i++)
		atomic_store_explicit(shared_word(&sh->all->maps->vector[xsk_queue(set, i)].asleep),
				      asleep, memory_order_relaxed);
}

/* Adds `more` threads that sleep on the shard's sockets. */
static void worker_watch(struct shard *sh, u32 more)
{
	const struct xsk_set *set = &sh->io->xsks;

	for (u32 i = 0; i < set->count; i++)
		atomic_fetch_add_explicit(
			shared_word(&sh->all->maps->vector[xsk_queue(set, i)].watched), more,
			memory_order_seq_cst);
}

bool worker_is_asleep(const struct shard *sh)
{
	const struct xsk_set *set = &sh->io->xsks;
	u32 asleep = 0;

	for (u32 i = 0; i < set->count; i++)
		asleep |= atomic_load_explicit(
			shared_word(&sh->all->maps->vector[xsk_queue(set, i)].asleep),
			memory_order_relaxed);
	return asleep;
}

void worker_sleeper_enter(struct shard *sh)
{
	/* pairs with the reads in worker_has_sleepers() and channel_sleep_await_unannounced() */
	atomic_fetch_add_explicit(&sh->service.sleepers, 1, memory_order_seq_cst);
	worker_watch(sh, 1);
	/*
	 * pairs with the count in deliver() (bpf/deliver.h): ppoll() sees the packet in a ring
	 * buffer, or XDP sees the thread
	 */
	atomic_thread_fence(memory_order_seq_cst);
}

void worker_sleeper_leave(struct shard *sh)
{
	worker_app_came(sh);
	/* pairs with the fence in worker_sleep(): it sees this, or worker_nudge() its sleep */
	atomic_fetch_sub_explicit(&sh->service.sleepers, 1, memory_order_seq_cst);
	worker_watch(sh, -1u);
	/*
	 * pairs with the count in wake_count_unannounced() (bpf/wake.h): either
	 * channel_sleep_missing(), which follows, sees the count, or XDP sees this
	 */
	atomic_thread_fence(memory_order_seq_cst);
}
