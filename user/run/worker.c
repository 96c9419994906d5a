/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The workers, one for each shard. A thread runs the shard while the application does not,
 * so that ACKs, READ responses and retransmissions leave while the application computes or sleeps.
 * It uses no CPU while nothing happens, and raises the events that it finds.
 *
 *   WATCH    no other thread drives the shard. The thread sleeps on the sockets, until the shard's
 *            next deadline; then it serves. With a ring buffer instead of sockets (xsk.h) `asleep`
 *            is set, as XDP wakes no thread that only polls the ring.
 *   STANDBY  the application drives. The thread sleeps without the sockets, so that no packet wakes
 *            it:
 *            - while threads poll or post, for one tick; after a tick without any: WATCH.
 *              The first tick is short, as a thread that posted once may have left; ticks double in
 *              this state.
 *            - while threads sleep in port_channel_wait(), for a long tick: they watch the sockets
 *              themselves.
 *
 * How the threads signal each other, so that no work is lost:
 *
 *   app_progress    changed by every call that drives the shard; read here once a wake-up.
 *   sleepers        counted by port_channel_wait(), and for XDP in `watched` (in xroce_vector, for
 *                   each queue): while there are any, XDP wakes no thread, as the sockets do. A
 *                   thread that leaves runs the shard once more, and the last one waits for the
 *                   unannounced packets (channel_sleep.c).
 *   asleep          in xroce_vector, for each queue: set here for long ticks, taken by XDP, which
 *                   then writes to this thread's ring. XDP reads it while `watched` is 0. XDP may
 *                   have read it before it was set, for a packet that reaches the socket later. So
 *                   the first tick is short, and by its end that packet has reached the sleepers or
 *                   the next state.
 *   records         of CQs whose channels have no ring (port_channel.c): XDP takes their arm words
 *                   and writes to this thread's ring. The thread then serves and, before it sleeps
 *                   on the sockets, sets the words again for CQs without an event.
 *   sleep_until_ns  stored here, full fence, then the deadline is read again. A thread that has run
 *                   the shard (and so moved the deadline) passes a full fence and reads it. If the
 *                   deadline is sooner, that thread wakes this one by control_fd. At least one of
 *                   the two sees the other.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "../os/kernel.h"
#include "../os/netdev.h"
#include "../os/options.h"
#include "../os/thread.h"
#include "shard.h"
#include "worker.h"

#define TICK_MIN_NS	    (50 * NSEC_PER_USEC)
#define TICK_MAX_NS	    (1 * NSEC_PER_MSEC)
#define LONG_TICK_NS	    (100 * NSEC_PER_MSEC)

/* ---- the thread ---- */

/* Runs the shard until it has been idle for spin_ns, or the application drives it. */
static void worker_serve(struct shard *sh, u64 progress)
{
	struct worker *s = &sh->worker;
	u64 idle_since_ns = 0;
	u64 now_ns;
	bool moved;

	while (!atomic_load_explicit(&s->stop, memory_order_relaxed)) {
		if (atomic_load_explicit(&s->app_progress, memory_order_relaxed) != progress)
			return;
		shard_lock(sh);
		now_ns = clock_now_ns();
		moved = pump_run(sh, now_ns);
		shard_unlock(sh);
		if (moved) {
			idle_since_ns = 0;
			continue;
		}
		if (!idle_since_ns)
			idle_since_ns = now_ns;
		if (now_ns - idle_since_ns >= s->spin_ns)
			return;
	}
}

/* Adapts the time to spin before the next sleep, after a sleep of slept_ns for packets. */
static void worker_adapt_spin(struct worker *s, u64 slept_ns)
{
	/*
	 * a shorter sleep than the longest spin should be a spin; before a longer one it is wasted
	 */
	s->spin_ns = slept_ns < s->spin_max_ns ?
			     min_u64(2 * s->spin_ns + slept_ns, s->spin_max_ns) :
			     s->spin_ns / 2;
}

/* Takes wake-ups other than the sockets': kicks and XDP's records. */
static void worker_take_wakeup(struct shard *sh, const struct pollfd fds[2])
{
	struct worker *s = &sh->worker;

	if (fds[0].revents & POLLNVAL)
		/* the application closed a descriptor of ours: exiting is better than spinning */
		atomic_store_explicit(&s->stop, true, memory_order_relaxed);
	else if (fds[0].revents)
		kernel_event_clear(s->control_fd);
	/* the socket before the ring: a later record sends a message again */
	if (fds[1].revents & POLLIN && sh->io->ring_event_fd >= 0)
		kernel_drain(sh->io->ring_event_fd);
	if (fds[1].revents & POLLIN)
		kernel_ring_consume(s->ring);
}

/*
 * Sets the words again for CQs whose channels have no ring. XDP took the words for packets that
 * this thread has looked for. A CQ that is still armed awaits a packet at the end of the kernel's
 * NAPI poll, for which the thread is about to sleep, or a packet that was refused.
 */
static void worker_rearm(struct shard *sh)
{
	struct worker *s = &sh->worker;

	if (!s->records)
		return;
	cq_notify_rearm(&sh->all->cq_notify, s->record, s->records);
	s->records = 0;
}

static u64 worker_tick_ns(const struct worker *s, bool sleepers, u64 tick_ns)
{
	return !sleepers ? tick_ns : s->settled ? LONG_TICK_NS : TICK_MAX_NS;
}

/* Sleeps from since_ns on, depending on the state (top of this file), then takes wake-ups. */
static void worker_sleep(struct shard *sh, bool standby, u64 tick_ns, u64 since_ns)
{
	struct worker *s = &sh->worker;
	const struct xsk_set *set = &sh->io->xsks;
	struct pollfd fds[2 + XSK_POLLS] = { { .fd = s->control_fd, .events = POLLIN },
					     { .fd = sh->io->ring_event_fd >= 0 ?
							     sh->io->ring_event_fd :
							     sh->io->ring_fd,
					       .events = POLLIN } };
	const bool sleepers = standby && worker_has_sleepers(sh);
	const u64 tick_end_ns = since_ns + worker_tick_ns(s, sleepers, tick_ns);
	const bool settled = s->settled;
	u64 until_ns = standby ? tick_end_ns : NSEC_NEVER;
	u32 n = 2;
	bool woken;

	s->settled = false;
	if (standby ? sleepers && !settled : xsk_is_ring(set))
		worker_set_asleep(sh, 1);
	else if (!sleepers && worker_is_asleep(sh))
		worker_set_asleep(sh, 0);
	if (!standby || sleepers) {
		until_ns = min_u64(until_ns, worker_due_ns(sh));
		atomic_store_explicit(&s->sleep_until_ns, until_ns, memory_order_relaxed);
		/*
		 * published: read its inputs again. Pairs with the fence in worker_nudge() and with
		 * shards_post() and worker_may_wait()
		 */
		atomic_thread_fence(memory_order_seq_cst);
		if (worker_due_ns(sh) < until_ns || (sleepers && !worker_has_sleepers(sh)))
			goto awake;
	}
	if (!standby && !atomic_load_explicit(&sh->all->gone, memory_order_relaxed))
		n += xsk_polls(set, fds + n);
	else if (sleepers)
		/* the sleepers may have started before the local sets joined */
		n += xsk_local_polls(set, fds + n);
	woken = kernel_await(fds, n, until_ns) != 0;
	if (!standby)
		worker_adapt_spin(s, clock_now_ns() - since_ns);
	if (woken)
		worker_take_wakeup(sh, fds);
	else
		s->settled = sleepers && (settled || until_ns == tick_end_ns);
awake:
	/* relaxed: a ringer that still sees the old value kicks once needlessly */
	atomic_store_explicit(&s->sleep_until_ns, 0, memory_order_relaxed);
}

/*
 * Returns whether no thread is driving the shard. If work waits for the application's next call,
 * worker_serve() does it, and nothing waits for such calls for a while.
 */
static bool worker_is_deserted(struct shard *sh)
{
	if (pthread_mutex_trylock(&sh->lock))
		return false;
	if (defer_waits(&sh->defer))
		defer_rest(&sh->defer, clock_now_ns());
	shard_unlock(sh);
	return true;
}

/* Names the thread, and writes its thread ID for all its vectors. */
static void worker_enter(struct shard *sh)
{
	struct shards *all = sh->all;
	char name[16];

	if (sh->number)
		snprintf(name, sizeof(name), "xroce/%.7s/%u", all->name, sh->number % 10);
	else
		snprintf(name, sizeof(name), "xroce/%.9s", all->name);
	pthread_setname_np(pthread_self(), name);
	for (u32 v = sh->number; v < all->queues; v += all->num)
		all->maps->vector[v].tid = kernel_thread_id();
}

/*
 * Returns whether the application drives the shard but has left due work. A polling thread checks
 * time-outs only in one of many polls, so a thread that polls rarely is late.
 */
static bool worker_is_late(const struct shard *sh, bool sleepers, u64 now_ns)
{
	return sleepers ? worker_due_ns(sh) <= now_ns :
			  engine_deadline_ns(sh->engine) <= now_ns - TICK_MAX_NS;
}

static void *worker_main(void *arg)
{
	struct shard *sh = arg;
	struct worker *s = &sh->worker;
	u64 last_progress = 0;

	worker_enter(sh);
	while (!atomic_load_explicit(&s->stop, memory_order_relaxed)) {
		u64 progress = atomic_load_explicit(&s->app_progress, memory_order_relaxed);
		bool sleepers = worker_has_sleepers(sh);
		/* records need serving: a driver may have looked before the packet came */
		bool standby = !s->records &&
			       (progress != last_progress || sleepers || !worker_is_deserted(sh));
		u64 now_ns;

		last_progress = progress;
		if (!standby) {
			s->tick_ns = TICK_MIN_NS;
			worker_serve(sh, progress);
			worker_rearm(sh);
		}
		now_ns = clock_now_ns();
		if (standby && (worker_is_late(sh, sleepers, now_ns) ||
				(sleepers && xsk_has_local_input(&sh->io->xsks)))) {
			/* not shard_lock(), which may run the shard, too */
			pthread_mutex_lock(&sh->lock);
			now_ns = clock_now_ns();
			pump_run(sh, now_ns);
			shard_unlock(sh);
		}
		worker_sleep(sh, standby, s->tick_ns, now_ns);
		if (standby)
			s->tick_ns = min_u64(2 * s->tick_ns, TICK_MAX_NS);
	}
	return NULL;
}

/* ---- start and stop ---- */

/*
 * Returns the CPU that the environment sets for the shard; else, on interfaces with several queues,
 * the CPU of its first queue's interrupts. -1: any.
 */
static int worker_cpu_of(const struct shard *sh)
{
	const int cpu = options_cpu(sh->number);

	if (cpu >= 0 || sh->all->queues <= 1)
		return cpu;
	return netdev_queue_cpu(sh->all->ifindex, sh->number);
}

/* Pins the thread if it may run on that CPU. */
static void worker_pin(const struct shard *sh)
{
	int cpu = worker_cpu_of(sh);
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_setaffinity_np(sh->worker.thread, sizeof(set), &set);
}

/* Notes the CQ of a record; a record without a CQ only wakes the thread. */
static int worker_on_record(void *arg, void *data, size_t len)
{
	struct worker *s = arg;
	struct xroce_wakeup w;

	if (len < sizeof(w))
		return 0;
	memcpy(&w, data, sizeof(w));
	if (w.cq < XROCE_MAX_CQ && s->records < RECORDS_MAX)
		s->record[s->records++] = w.cq;
	return 0;
}

static void worker_close(struct worker *s)
{
	if (s->ring)
		kernel_ring_close(s->ring);
	if (s->control_fd >= 0)
		kernel_close(s->control_fd);
	s->ring = NULL;
	s->control_fd = -1;
}

static int worker_start_one(struct shard *sh)
{
	struct worker *s = &sh->worker;
	int err = kernel_ring_open(sh->io->ring_fd, XROCE_RING_BYTES, worker_on_record, s,
				   &s->ring);

	if (!err)
		err = thread_start(&s->thread, worker_main, sh);
	if (err)
		return err;
	s->started = true;
	worker_pin(sh);
	return 0;
}

u64 worker_spin_max_ns(void)
{
	if (!options_is_set(OPTION_SPIN_US) && sysconf(_SC_NPROCESSORS_ONLN) == 1)
		return 0;
	return options_number(OPTION_SPIN_US) * NSEC_PER_USEC;
}

int worker_start(struct shards *all)
{
	const u64 spin_max_ns = worker_spin_max_ns();
	int err = 0;

	/* All threads can be kicked before the first one starts. */
	for (u32 i = 0; i < all->num && !err; i++) {
		struct worker *s = &all->shard[i].worker;

		s->spin_max_ns = s->spin_ns = spin_max_ns;
		s->tick_ns = TICK_MIN_NS;
		s->control_fd = kernel_event_make(false);
		err = s->control_fd < 0 ? s->control_fd : 0;
	}
	for (u32 i = 0; i < all->num && !err; i++)
		err = worker_start_one(&all->shard[i]);
	return err;
}

void worker_stop(struct shards *all)
{
	for (u32 i = 0; i < all->num; i++)
		/* relaxed: the eventfd of worker_kick() orders it before the thread's read */
		atomic_store_explicit(&all->shard[i].worker.stop, true, memory_order_relaxed);
	for (u32 i = 0; i < all->num; i++)
		if (all->shard[i].worker.started)
			worker_kick(&all->shard[i]);
	/* A thread that still runs may kick another one. */
	for (u32 i = 0; i < all->num; i++)
		if (all->shard[i].worker.started)
			pthread_join(all->shard[i].worker.thread, NULL);
	worker_abandon(all);
}

void worker_abandon(struct shards *all)
{
	for (u32 i = 0; i < all->num; i++) {
		all->shard[i].worker.started = false;
		worker_close(&all->shard[i].worker);
	}
}

/* ---- what threads that drive a shard signal to its worker ---- */

/* sleepers run the shard first at a deadline that they know */
#define SLEEPERS_SLACK_NS NSEC_PER_MSEC

void worker_app_came(struct shard *sh)
{
	struct worker *s = &sh->worker;
	const u64 progress = atomic_load_explicit(&s->app_progress, memory_order_relaxed);

	/* Two threads may store the same value: it has changed all the same. */
	atomic_store_explicit(&s->app_progress, progress + 1, memory_order_relaxed);
}

void worker_kick(struct shard *sh)
{
	kernel_event_raise(sh->worker.control_fd);
}

bool worker_may_wait(struct shard *sh)
{
	struct worker *s = &sh->worker;

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
	struct worker *s = &sh->worker;
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
	atomic_fetch_add_explicit(&sh->worker.sleepers, 1, memory_order_seq_cst);
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
	atomic_fetch_sub_explicit(&sh->worker.sleepers, 1, memory_order_seq_cst);
	worker_watch(sh, -1u);
	/*
	 * pairs with the count in wake_count_unannounced() (bpf/wake.h): either
	 * channel_sleep_missing(), which follows, sees the count, or XDP sees this
	 */
	atomic_thread_fence(memory_order_seq_cst);
}
