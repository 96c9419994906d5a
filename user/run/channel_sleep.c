/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sleeping on a completion channel: on its descriptor, for events that others raise, and on the
 * sockets of the shards whose engines complete to its CQs. So nothing depends on an XDP record.
 * Other shards hand over what arrives by their queues (migration.h), which results in an event.
 */
#include <pthread.h>

#include "../os/kernel.h"
#include "shard.h"
#include "port_channel.h"

/* From a record to its packet's descriptor: one NAPI poll, at most 64 packets. */
#define PUBLISH_MAX_NS (200 * NSEC_PER_USEC)

/* A call's objects: a channel, the shards of its port or NULL, and a bitmap of some of them. */
struct view {
	struct port_channel *ch;
	struct shards *all;
	u32 shards;
};

/*
 * Returns the shards of the port of the channel's CQs, with a reference (shards_put()); NULL if
 * there is no port or it is dead. *shards is a bitmap of the shards that complete to its CQs, or of
 * the first shard if there is none.
 */
static struct shards *channel_shards(struct port_channel *ch, u32 *shards)
{
	struct shards *all = NULL;

	*shards = 0;
	pthread_mutex_lock(&ch->lock);
	if (ch->cq_notify)
		all = container_of(ch->cq_notify, struct shards, cq_notify);
	if (all && all->dead)
		all = NULL;
	if (all) {
		shards_hold(all);
		for (u32 i = 0; all->num > 1 && i < ch->num_cqs; i++)
			*shards |= cq_engines(ch->cq[i]);
		*shards = *shards ? *shards : 1;
	}
	pthread_mutex_unlock(&ch->lock);
	return all;
}

/* ---- running ---- */

static void channel_sleep_run_shards(const struct view *v)
{
	for (u32 left = v->shards; left; left &= left - 1)
		shard_run(&v->all->shard[__builtin_ctz(left)]);
}

/* Adds the sockets by which packets arrive; none if the interface is gone. */
static u32 channel_sleep_add_sockets(const struct view *v, struct pollfd *fds)
{
	u32 n = 0;

	if (atomic_load_explicit(&v->all->gone, memory_order_relaxed))
		return 0;
	for (u32 left = v->shards; left; left &= left - 1)
		n += xsk_polls(&v->all->shard[__builtin_ctz(left)].io->xsks, fds + n);
	return n;
}

/* Waits for a packet, then runs the shards. No cancellation point: the caller may hold an event. */
static void channel_sleep_await_packet(const struct view *v, u64 until_ns)
{
	struct pollfd fds[XSK_POLLS];

	kernel_await(fds, channel_sleep_add_sockets(v, fds), until_ns);
	channel_sleep_run_shards(v);
}

/*
 * Takes the records and runs the engines, waiting for the locks: a lock holder may have looked
 * before the packet came. Returns true if there were records.
 *
 * A record whose CQ is still armed may precede its packet, which the kernel publishes at the end of
 * its NAPI poll, or a packet before that one in another queue. The descriptor was readable because
 * of the record, so the packet is awaited, but not for long, as it may have been refused. It may be
 * in a queue of another shard. If the caller holds an event, the first packet is enough.
 */
static bool channel_sleep_run(const struct view *v, bool in_hand)
{
	const struct view everywhere = { v->ch, v->all, (1u << v->all->num) - 1 };
	u64 until_ns;
	u32 record[RECORDS_MAX];
	u32 n = channel_consume(v->ch, record);

	if (!n && in_hand)
		return false;
	channel_sleep_run_shards(v);
	if (!n || !cq_notify_rearm(&v->all->cq_notify, record, n))
		return n > 0;
	channel_sleep_run_shards(&everywhere);
	until_ns = clock_now_ns() + PUBLISH_MAX_NS;
	while (cq_notify_rearm(&v->all->cq_notify, record, n) && clock_now_ns() < until_ns) {
		channel_sleep_await_packet(&everywhere, until_ns);
		if (in_hand)
			break;
	}
	return true;
}

/* ---- packets that woke no ring, as a thread slept on their queue's socket ---- */

/*
 * Returns how many unannounced packets of a queue are yet to arrive. Negative: one arrived after
 * channel_sleep_give_up(). The load pairs with the count in wake_count_unannounced() (bpf/wake.h),
 * after the fence in worker_sleeper_leave().
 */
static s64 channel_sleep_missing(const struct shards *all, const struct xsk_set *set, u32 i)
{
	return (s64)(atomic_load_explicit(
			     shared_word(&all->maps->vector[xsk_queue(set, i)].unannounced),
			     memory_order_seq_cst) -
		     atomic_load_explicit(&set->xsk[i].unannounced, memory_order_relaxed));
}

static bool channel_sleep_any_missing(const struct shards *all, const struct shard *s)
{
	for (u32 i = 0; i < s->io->xsks.count; i++)
		if (channel_sleep_missing(all, &s->io->xsks, i))
			return true;
	return false;
}

/*
 * Stops waiting for missing packets. They are late, on a CPU that the hypervisor has taken away, or
 * the kernel dropped them at a full ring. The worker restarts its state with a short tick.
 */
static void channel_sleep_give_up(struct shard *s)
{
	struct xsk_set *set = &s->io->xsks;

	shard_lock(s);
	for (u32 i = 0; i < set->count; i++) {
		s64 n = channel_sleep_missing(s->all, set, i);

		if (n)
			atomic_fetch_add_explicit(&set->xsk[i].unannounced, (u64)n,
						  memory_order_relaxed);
	}
	shard_unlock(s);
	worker_kick(s);
}

/*
 * Waits for packets that XDP saw before the last sleeper left; the kernel publishes them at the end
 * of its NAPI poll. If another thread now sleeps on the sockets, that thread takes them: the read
 * of sleepers pairs with the addition in worker_sleeper_enter().
 */
static void channel_sleep_await_unannounced(const struct view *v, struct shard *s)
{
	const struct view one = { v->ch, v->all, 1u << s->number };
	u64 until_ns = 0, now_ns;

	while (unlikely(channel_sleep_any_missing(v->all, s)) &&
	       !atomic_load_explicit(&s->worker.sleepers, memory_order_seq_cst) &&
	       !atomic_load_explicit(&v->all->gone, memory_order_relaxed)) {
		now_ns = clock_now_ns();
		until_ns = until_ns ? until_ns : now_ns + PUBLISH_MAX_NS;
		if (now_ns >= until_ns) {
			channel_sleep_give_up(s);
			return;
		}
		channel_sleep_await_packet(&one, until_ns);
	}
}

/* ---- sleeping ---- */

static void channel_sleep_leave(const struct view *v)
{
	for (u32 left = v->shards; left; left &= left - 1)
		worker_sleeper_leave(&v->all->shard[__builtin_ctz(left)]);
}

/* Runs when a sleeping thread is cancelled: the workers take over the packets. */
static void channel_sleep_cancelled(void *arg)
{
	const struct view *v = arg;

	channel_sleep_leave(v);
	for (u32 left = v->shards; left; left &= left - 1)
		worker_kick(&v->all->shard[__builtin_ctz(left)]);
	if (v->all)
		shards_put(v->all);
}

static u64 channel_sleep_deadline_ns(const struct view *v)
{
	u64 deadline_ns = NSEC_NEVER;

	for (u32 left = v->shards; left; left &= left - 1)
		deadline_ns = min_u64(deadline_ns,
				      shard_deadline_ns(&v->all->shard[__builtin_ctz(left)]));
	return deadline_ns;
}

/* Sleeps. This is the only place where a thread may be cancelled. Returns 0 or -errno. */
static int channel_sleep_poll_cancellable(const struct view *v, u64 until_ns)
{
	/* relaxed: old and new number both serve (port_channel_object.h) */
	const int fd = atomic_load_explicit(&v->ch->fd, memory_order_relaxed);
	struct pollfd fds[1 + XSK_POLLS] = { { .fd = fd, .events = POLLIN } };
	const u32 n = 1 + (v->all ? channel_sleep_add_sockets(v, fds + 1) : 0);
	int ret;

	pthread_cleanup_push(channel_sleep_cancelled, (void *)v);
	ret = kernel_sleep(fds, n, until_ns);
	pthread_cleanup_pop(0);
	return ret < 0 ? ret : 0;
}

static int channel_sleep_on(const struct view *v)
{
	for (u32 left = v->shards; left; left &= left - 1)
		worker_sleeper_enter(&v->all->shard[__builtin_ctz(left)]);
	return channel_sleep_poll_cancellable(v, channel_sleep_deadline_ns(v));
}

/* Returns 0, 1 if there were records, or -errno. */
static int channel_sleep_wait(const struct view *v)
{
	bool records;
	int err;

	/* Also before the first sleep: packets wait in a program that only makes this call. */
	if (v->all && channel_sleep_run(v, false))
		return 1;
	err = channel_sleep_on(v);
	channel_sleep_leave(v);
	/* also after a signal: since the sleeper left, no thread has read the sockets */
	records = v->all && channel_sleep_run(v, false);
	for (u32 left = v->shards; left; left &= left - 1)
		channel_sleep_await_unannounced(v, &v->all->shard[__builtin_ctz(left)]);
	return err ? err : records;
}

int port_channel_wait(struct port_channel *ch, bool block)
{
	struct view v = { .ch = ch };
	int err = 0;

	v.all = channel_shards(ch, &v.shards);
	if (block) {
		err = channel_sleep_wait(&v);
	} else if (v.all) {
		/* the caller found no event, so the descriptor must not stay readable */
		channel_await_record(ch);
		err = channel_sleep_run(&v, false);
	}
	if (v.all)
		shards_put(v.all);
	return err;
}

void port_channel_await_reports(struct port_channel *ch)
{
	struct view v = { .ch = ch };

	v.all = channel_shards(ch, &v.shards);
	if (!v.all)
		return;
	for (u32 i = 0; i < v.all->num; i++) {
		shard_lock(&v.all->shard[i]);
		shard_unlock(&v.all->shard[i]);
	}
	shards_put(v.all);
}

void port_channel_extra(struct port_channel *ch)
{
	struct view v = { .ch = ch };
	struct cq *cq;
	u32 index;
	bool any;

	v.all = channel_shards(ch, &v.shards);
	if (!v.all)
		return;
	any = channel_extra(ch, &index);
	shard_lock(&v.all->shard[0]);
	cq = any ? cq_notify_on_channel(&v.all->cq_notify, ch, index) : NULL;
	if (cq)
		shard_raise(cq);
	shard_unlock(&v.all->shard[0]);
	shards_put(v.all);
}

void port_channel_settle(struct port_channel *ch)
{
	struct view v = { .ch = ch };

	v.all = channel_shards(ch, &v.shards);
	if (!v.all)
		return;
	channel_sleep_run(&v, true);
	shards_put(v.all);
}
