/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Completion channels as objects: their descriptors and their CQs. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "../os/kernel.h"
#include "cq_notify.h"

/* XDP completes a record at once, unless the hypervisor takes its CPU away. */
#define RECORD_MAX_NS (100 * NSEC_PER_MSEC)

static int on_record(void *arg, void *data, size_t len)
{
	struct port_channel *ch = arg;
	struct xroce_wakeup w;

	if (len < sizeof(w))
		return 0;
	memcpy(&w, data, sizeof(w));
	if (w.cq < XROCE_MAX_CQ && ch->records < RECORDS_MAX)
		ch->record[ch->records++] = w.cq;
	return 0;
}

/*
 * Number of this process's channels that have an epoll set. Only these can have a ring; for the
 * others XDP wakes the worker, which raises their events. A channel with a ring takes three
 * descriptors, another one takes one; channels with rings may be 1 / SETS_PART of the descriptor
 * limit.
 */
static _Atomic u32 sets;

#define SETS_PART 32

static bool take_set(void)
{
	const u32 most = min_u32(kernel_descriptors_max() / SETS_PART, XROCE_MAX_RING);

	/* relaxed, here and below: a count without ordering */
	if (atomic_fetch_add_explicit(&sets, 1, memory_order_relaxed) < most)
		return true;
	atomic_fetch_sub_explicit(&sets, 1, memory_order_relaxed);
	return false;
}

int port_channel_fd(const struct port_channel *ch)
{
	/* relaxed, here and in set_fd(): nothing is published by it */
	return atomic_load_explicit(&((struct port_channel *)ch)->fd, memory_order_relaxed);
}

static void set_fd(struct port_channel *ch, int fd)
{
	atomic_store_explicit(&ch->fd, fd, memory_order_relaxed);
}

static bool has_set(const struct port_channel *ch)
{
	return port_channel_fd(ch) != ch->event_fd;
}

/* Makes the epoll set, with the eventfd in it, and stores it in ch->fd. Returns 0 or -errno. */
static int make_set(struct port_channel *ch)
{
	const int fd = kernel_set_make();
	int err = fd < 0 ? fd : kernel_set_add(fd, ch->event_fd);

	if (!err)
		set_fd(ch, fd);
	else if (fd >= 0)
		kernel_close(fd);
	return err;
}

int port_channel_create(struct port_channel **out)
{
	struct port_channel *ch = calloc(1, sizeof(*ch));
	int err = 0;

	if (!ch)
		return -ENOMEM;
	ch->ring_fd = -1;
	ch->event_fd = kernel_event_make(true);
	set_fd(ch, ch->event_fd);
	if (ch->event_fd < 0)
		err = ch->event_fd;
	else if (take_set())
		err = make_set(ch);
	if (err) {
		if (ch->event_fd >= 0) {
			kernel_close(ch->event_fd);
			atomic_fetch_sub_explicit(&sets, 1, memory_order_relaxed);
		}
		free(ch);
		return err;
	}
	pthread_mutex_init(&ch->lock, NULL);
	*out = ch;
	return 0;
}

static void close_ring(struct port_channel *ch)
{
	if (ch->ring)
		kernel_ring_close(ch->ring);
	ch->ring = NULL;
	if (ch->ring_fd >= 0)
		kernel_close(ch->ring_fd);
	ch->ring_fd = -1;
}

void port_channel_destroy(struct port_channel *ch)
{
	close_ring(ch);
	kernel_close(ch->event_fd);
	if (has_set(ch)) {
		kernel_close(port_channel_fd(ch));
		atomic_fetch_sub_explicit(&sets, 1, memory_order_relaxed);
	}
	pthread_mutex_destroy(&ch->lock);
	free(ch->cq);
	free(ch);
}

void port_channel_abandon(struct port_channel *ch, bool again)
{
	pthread_mutex_init(&ch->lock, NULL);
	/* the state that the parent's other threads left is ignored */
	close_ring(ch);
	ch->cq_notify = NULL;
	ch->num_cqs = 0;
	ch->records = 0;
	if (again)
		return;
	kernel_event_replace(ch->event_fd);
	if (has_set(ch))
		kernel_event_replace(port_channel_fd(ch));
}

void port_channel_raise(struct port_channel *ch)
{
	kernel_event_raise(ch->event_fd);
}

void port_channel_clear(struct port_channel *ch)
{
	kernel_event_clear(ch->event_fd);
}

/* ---- CQs ---- */

/* Starts reading a ring. Channel locked. Returns 0 or -errno. */
static int read_ring(struct port_channel *ch, const struct ring_slot *ring)
{
	int err = kernel_ring_open(ring->fd, XROCE_RING_BYTES, on_record, ch, &ch->ring);

	if (err)
		return err;
	err = kernel_set_add(port_channel_fd(ch), ring->fd);
	if (err) {
		kernel_ring_close(ch->ring);
		ch->ring = NULL;
		return err;
	}
	ch->ring_fd = ring->fd;
	ch->slot = ring->slot;
	return 0;
}

/*
 * Attaches the channel to a port as the first CQ joins. Takes a ring for XDP's records; without
 * one, for any reason, XDP wakes the worker for the channel's CQs. Channel locked.
 */
static void channel_enter(struct port_channel *ch, struct cq_notify *notify)
{
	const bool wants = has_set(ch) && !ch->has_left;
	struct ring_slot ring;

	ch->cq_notify = notify;
	ch->slot = XROCE_CHANNEL_WORKER;
	if (wants && !channel_rings_take(&notify->rings, &ring) && read_ring(ch, &ring))
		channel_rings_give(&notify->rings, &ring);
}

/* Stops reading the ring and releases it for the next channel. Channel locked. */
static void give_ring(struct port_channel *ch, struct cq_notify *notify, u32 slot)
{
	const struct ring_slot ring = { ch->ring_fd, slot };

	kernel_ring_close(ch->ring);
	kernel_set_remove(port_channel_fd(ch), ch->ring_fd);
	ch->ring = NULL;
	ch->ring_fd = -1;
	ch->records = 0;
	channel_rings_give(&notify->rings, &ring);
}

/* Detaches the channel from the port after the last CQ left. Channel locked. */
static void channel_exit(struct port_channel *ch)
{
	struct cq_notify *notify = ch->cq_notify;

	ch->cq_notify = NULL;
	if (!ch->ring)
		return;
	kernel_ring_consume(ch->ring);
	give_ring(ch, notify, ch->slot);
}

/*
 * Releases the ring, and sets the words again for the CQs of remaining records. XDP may be about to
 * write one more record: the next channel's reader finds it and sets that CQ's word. Channel
 * locked.
 */
static void leave_ring(struct port_channel *ch)
{
	const u32 slot = ch->slot;

	cq_notify_leave_slot(ch->cq_notify, ch);
	kernel_ring_consume(ch->ring);
	cq_notify_rearm(ch->cq_notify, ch->record, ch->records);
	give_ring(ch, ch->cq_notify, slot);
}

int port_channel_leave_fd(struct port_channel *ch)
{
	const int fd = kernel_duplicate(port_channel_fd(ch));

	if (fd < 0)
		return fd;
	pthread_mutex_lock(&ch->lock);
	if (!has_set(ch))
		ch->event_fd = fd;
	set_fd(ch, fd);
	ch->has_left = true;
	if (ch->ring)
		leave_ring(ch);
	pthread_mutex_unlock(&ch->lock);
	return fd;
}

/* Channel locked. */
static int make_room(struct port_channel *ch)
{
	const u32 max = ch->max_cqs ? 2 * ch->max_cqs : 4;
	struct cq **cq;

	if (ch->num_cqs < ch->max_cqs)
		return 0;
	cq = realloc(ch->cq, max * sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	ch->cq = cq;
	ch->max_cqs = max;
	return 0;
}

int channel_join(struct port_channel *ch, struct cq_notify *notify, struct cq *cq)
{
	int err;

	pthread_mutex_lock(&ch->lock);
	err = make_room(ch);
	/* A channel belongs to one device: ibv_create_comp_channel(3). */
	if (!err && ch->cq_notify && ch->cq_notify != notify)
		err = -EINVAL;
	if (!err && !ch->cq_notify)
		channel_enter(ch, notify);
	if (!err)
		ch->cq[ch->num_cqs++] = cq;
	pthread_mutex_unlock(&ch->lock);
	return err;
}

void channel_leave(struct port_channel *ch, struct cq *cq)
{
	u32 i = 0;

	pthread_mutex_lock(&ch->lock);
	while (ch->cq[i] != cq)
		i++;
	ch->cq[i] = ch->cq[--ch->num_cqs];
	if (!ch->num_cqs)
		channel_exit(ch);
	pthread_mutex_unlock(&ch->lock);
}

/* ---- for sleeping threads ---- */

/* The records are copied, so that the engine can run without the channel's lock. */
u32 channel_consume(struct port_channel *ch, u32 record[RECORDS_MAX])
{
	u32 n;

	pthread_mutex_lock(&ch->lock);
	if (ch->ring)
		kernel_ring_consume(ch->ring);
	n = ch->records;
	memcpy(record, ch->record, n * sizeof(*record));
	if (n)
		ch->last = record[n - 1];
	ch->records = 0;
	pthread_mutex_unlock(&ch->lock);
	return n;
}

/* Returns whether the ring has records that have not been consumed. Channel locked. */
static bool ring_is_readable(const struct port_channel *ch)
{
	struct pollfd ring = { .fd = ch->ring_fd, .events = POLLIN };

	return ch->ring && kernel_await(&ring, 1, 0) > 0;
}

static bool record_is_coming(struct port_channel *ch)
{
	bool coming;

	pthread_mutex_lock(&ch->lock);
	if (ch->ring)
		kernel_ring_consume(ch->ring);
	coming = !ch->records && ring_is_readable(ch);
	pthread_mutex_unlock(&ch->lock);
	return coming;
}

void channel_await_record(struct port_channel *ch)
{
	const u64 until_ns = clock_now_ns() + RECORD_MAX_NS;

	while (record_is_coming(ch) && clock_now_ns() < until_ns)
		kernel_yield();
}

bool channel_extra(struct port_channel *ch, u32 *index)
{
	bool any;

	pthread_mutex_lock(&ch->lock);
	any = ch->num_cqs;
	if (any)
		*index = ch->cq[0]->index;
	for (u32 i = 0; i < ch->num_cqs; i++)
		if (ch->cq[i]->index == ch->last)
			*index = ch->last;
	pthread_mutex_unlock(&ch->lock);
	return any;
}
