/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Event channels and their events. The descriptor is an eventfd: each event adds to it, so that an
 * edge-triggered epoll sees each event. Taking the last event clears it. Channels of synchronous
 * ids may share one.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

#include "../os/clock.h"
#include "../os/kernel.h"
#include "../os/signals.h"
#include "channel.h"
#include "id.h"
#include "newer.h"
#include "rdmacm.h"

/* ---- the descriptor of several channels ---- */

/*
 * Shared by event channels of synchronous ids, once 1/COMMON_FD_PART of the process's descriptors
 * are such channels' separate ones. Readable while any of the channels has an event. All calls need
 * rdmacm_lock, except common_fd_wait().
 */
#define COMMON_FD_PART 16 /* of RLIMIT_NOFILE */

/* A sleeping thread, on its stack. */
struct waiter {
	struct waiter *next;
	const struct rdmacm_channel *ch; /* NULL: the channel was destroyed */
	sem_t raised;
};

static struct {
	int fd;	     /* an eventfd; -1: no channel uses it */
	u32 channels;
	u64 events;  /* in the channels' queues */
	struct waiter *waiters;
} common = { .fd = -1 };

/* Adds a channel. Returns the descriptor or -errno. */
static int common_fd_get(void)
{
	if (common.fd < 0)
		common.fd = kernel_event_make(true);
	if (common.fd < 0)
		return common.fd;
	common.channels++;
	return common.fd;
}

/* Removes a channel. */
static void common_fd_put(struct rdmacm_channel *ch)
{
	for (struct waiter *w = common.waiters; w; w = w->next)
		if (w->ch == ch)
			w->ch = NULL;
	if (--common.channels)
		return;
	kernel_close(common.fd);
	common.fd = -1;
}

/* Wakes the channel's waiters for a new event. */
static void common_fd_raise(const struct rdmacm_channel *ch)
{
	common.events++;
	kernel_event_raise(common.fd);
	for (struct waiter *w = common.waiters; w; w = w->next)
		if (w->ch == ch)
			sem_post(&w->raised);
}

/* Removes n events of a channel that were taken. */
static void common_fd_lower(u32 n)
{
	common.events -= n;
	/* the program may have read it */
	if (n && !common.events)
		kernel_event_clear(common.fd);
}

static void waiter_leave(void *arg)
{
	struct waiter **at = &common.waiters, *w = arg;

	rdmacm_enter();
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	rdmacm_leave();
	sem_destroy(&w->raised);
}

/*
 * Sleeps until the channel has an event. Returns 0 or -EINTR. Never returns once the channel has
 * been destroyed. The caller has a hold (cancel_hold()); with a single hold its thread may be
 * cancelled.
 */
static int common_fd_wait(struct rdmacm_channel *ch)
{
	struct waiter w = { .ch = ch };
	int err;

	sem_init(&w.raised, 0, 0);
	rdmacm_enter();
	w.next = common.waiters;
	common.waiters = &w;
	if (ch->head)
		sem_post(&w.raised);
	rdmacm_leave();
	pthread_cleanup_push(waiter_leave, &w);
	cancel_open();
	do
		err = sem_wait(&w.raised) ? -errno : 0;
	while (err == -EINTR && signals_restart());
	cancel_shut();
	pthread_cleanup_pop(1);
	return err;
}

/* The parent's channels are unusable here, and the descriptor belongs to them. */
void channel_after_fork(void)
{
	common.fd = -1;
	common.channels = 0;
	common.events = 0;
	common.waiters = NULL;
}

/* ---- channels ---- */

/* Time from rdma_ack_cm_event() to rdma_get_cm_event() on a busy machine. */
#define RETURN_NS (50 * NSEC_PER_MSEC)

/* Channels of synchronous ids with their own descriptor; under the lock. */
static u32 sync_own;

static int channel_open_sync(struct rdmacm_channel *ch)
{
	int fd;

	rdmacm_enter();
	ch->common = sync_own >= kernel_descriptors_max() / COMMON_FD_PART;
	fd = ch->common ? common_fd_get() : kernel_event_make(true);
	ch->sync = fd >= 0 && !ch->common;
	sync_own += ch->sync;
	rdmacm_leave();
	return fd;
}

struct rdma_event_channel *channel_new(bool sync)
{
	struct rdmacm_channel *ch = calloc(1, sizeof(*ch));

	if (!ch)
		return NULL;
	ch->tail = &ch->head;
	ch->generation = rdmacm_generation;
	ch->pub.fd = sync ? channel_open_sync(ch) : kernel_event_make(true);
	if (ch->pub.fd < 0) {
		errno = -ch->pub.fd;
		free(ch);
		return NULL;
	}
	return &ch->pub;
}

EXPORT struct rdma_event_channel *rdma_create_event_channel(void)
{
	CANCEL_HELD;
	return channel_new(false);
}

/* Records that the calling thread acknowledged an event. Caller holds the lock. */
static void channel_acked(struct rdmacm_channel *ch)
{
	ch->acked_by = pthread_self();
	ch->acked_ns = clock_now_ns();
}

/*
 * Programs destroy a channel while one of their threads waits on it (rping): it sleeps until they
 * exit. A thread that has just acknowledged an event would find the descriptor closed on its way
 * back, and end the program with an error. So it gets time to arrive.
 */
static void channel_await_waiter(const struct rdmacm_channel *ch)
{
	const u64 until_ns = ch->acked_ns + RETURN_NS;

	if (!ch->acked_ns || pthread_equal(ch->acked_by, pthread_self()))
		return;
	while (!atomic_load_explicit(&ch->waiting, memory_order_relaxed) &&
	       clock_now_ns() < until_ns)
		kernel_await(NULL, 0, clock_now_ns() + NSEC_PER_MSEC);
}

EXPORT void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	CANCEL_HELD;
	struct rdmacm_channel *ch = to_channel(channel);

	channel_await_waiter(ch);
	rdmacm_enter();
	ch->head = NULL;
	sync_own -= ch->sync;
	if (!ch->common)
		kernel_close(channel->fd);
	else if (ch->generation == rdmacm_generation)
		common_fd_put(ch);
	rdmacm_leave();
	free(ch);
}

void channel_append(struct rdmacm_channel *ch, struct rdmacm_event *ev)
{
	const u64 one = 1;

	ev->next = NULL;
	*ch->tail = ev;
	ch->tail = &ev->next;
	ev->id->queued++;
	if (ch->common) {
		common_fd_raise(ch);
		return;
	}
	if (write(ch->pub.fd, &one, sizeof(one)) < 0)
		return; /* the program closed it */
}

/* Clears the descriptor after n events were taken, if the queue is empty. Caller holds the lock. */
static void channel_took(struct rdmacm_channel *ch, u32 n)
{
	struct pollfd p = { .fd = ch->pub.fd, .events = POLLIN };
	u64 count;

	if (ch->common)
		common_fd_lower(n);
	else if (!ch->head && poll(&p, 1, 0) == 1 && read(ch->pub.fd, &count, sizeof(count)) < 0)
		return;
}

struct rdmacm_event *channel_remove(struct rdmacm_channel *ch, const struct rdmacm_id *id)
{
	struct rdmacm_event **at = &ch->head, *first = NULL, **last = &first;
	const u32 queued = id->queued;

	if (!id->queued)
		return NULL;
	while (*at) {
		struct rdmacm_event *ev = *at;

		if (ev->id == id) {
			*at = ev->next;
			*last = ev;
			last = &ev->next;
			ev->id->queued--;
		} else {
			at = &ev->next;
		}
	}
	*last = NULL;
	ch->tail = at;
	channel_took(ch, queued);
	return first;
}

static struct rdmacm_event *channel_take(struct rdmacm_channel *ch)
{
	struct rdmacm_event *ev;

	rdmacm_enter();
	ev = ch->head;
	if (ev) {
		ch->head = ev->next;
		if (!ch->head)
			ch->tail = &ch->head;
		ev->id->queued--;
		ev->id->delivered++;
		channel_took(ch, 1);
	}
	rdmacm_leave();
	return ev;
}

/*
 * For a channel closed between fcntl() and poll(), just before the thread would have slept on it.
 */
static int channel_outlived(void)
{
	cancel_open();
	do
		pause();
	while (signals_restart());
	cancel_shut();
	return -EINTR;
}

/*
 * Waits for an event. Returns 0 or -errno. After that only the thread that gets an event accesses
 * the channel: programs destroy it while a thread waits here, and go on to exit(). A thread that is
 * cancelled here, or never returns, remains counted.
 */
static int channel_wait(struct rdmacm_channel *ch)
{
	struct pollfd p = { .fd = ch->pub.fd, .events = POLLIN };
	const int flags = fcntl(p.fd, F_GETFL);
	const bool blocks = !(flags & O_NONBLOCK);
	int n;

	if (flags < 0)
		return -errno;
	if (ch->common && !blocks)
		return -EAGAIN;
	if (blocks)
		atomic_fetch_add_explicit(&ch->waiting, 1, memory_order_relaxed);
	if (ch->common) {
		n = common_fd_wait(ch);
		if (!n)
			atomic_fetch_sub_explicit(&ch->waiting, 1, memory_order_relaxed);
		return n;
	}
	cancel_open();
	do
		n = poll(&p, 1, blocks ? -1 : 0);
	while (n < 0 && errno == EINTR && signals_restart());
	cancel_shut();
	if (blocks && n > 0 && (p.revents & POLLNVAL))
		return channel_outlived();
	/* without an event the channel may be gone; a count that is one too high does no harm */
	if (blocks && n > 0)
		atomic_fetch_sub_explicit(&ch->waiting, 1, memory_order_relaxed);
	return n < 0 ? -errno : !n ? -EAGAIN : p.revents & POLLNVAL ? -EBADF : 0;
}

int channel_get(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct rdmacm_channel *ch = to_channel(channel);
	struct rdmacm_event *ev;
	int err;

	if (ch->generation != rdmacm_generation)
		return -EIO;
	for (;;) {
		ev = channel_take(ch);
		if (!ev) { /* none, or another thread took it */
			err = channel_wait(ch);
			if (err)
				return err;
			continue;
		}
		if (!ev->deliver || !ev->deliver(ev)) {
			*event = &ev->pub;
			return 0;
		}
		rdma_ack_cm_event(&ev->pub);
	}
}

EXPORT int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	CANCEL_HELD;

	if (!channel || !event)
		return rdmacm_report(-EINVAL);
	cancel_point();
	return rdmacm_report(channel_get(channel, event));
}

/* ---- events ---- */

struct rdmacm_event *event_new(struct rdmacm_id *id, enum rdma_cm_event_type type, int status)
{
	struct rdmacm_event *ev = calloc(1, sizeof(*ev));

	if (!ev)
		return NULL;
	ev->id = id;
	ev->pub.id = &id->pub;
	ev->pub.event = type;
	ev->pub.status = status;
	return ev;
}

void event_set_conn_data(struct rdmacm_event *ev, const void *data, u32 len)
{
	memcpy(ev->private_data, data, len);
	ev->pub.param.conn.private_data = ev->private_data;
	ev->pub.param.conn.private_data_len = (u8)len;
}

void event_set_ud_data(struct rdmacm_event *ev, const void *data, u32 len)
{
	memcpy(ev->private_data, data, len);
	ev->pub.param.ud.private_data = ev->private_data;
	ev->pub.param.ud.private_data_len = (u8)len;
}

void event_post(struct rdmacm_event *ev)
{
	if (ev->id->state != ID_DESTROYING) {
		channel_append(to_channel(ev->id->pub.channel), ev);
		return;
	}
	if (ev->discard)
		ev->discard(ev);
	free(ev);
}

void event_tell(struct rdmacm_id *id, enum rdma_cm_event_type type, int status)
{
	struct rdmacm_event *ev = event_new(id, type, status);

	if (ev)
		event_post(ev);
}

EXPORT int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	CANCEL_HELD;
	struct rdmacm_event *ev;

	if (!event)
		return rdmacm_report(-EINVAL);
	ev = container_of(event, struct rdmacm_event, pub);
	rdmacm_enter();
	ev->id->acked++;
	channel_acked(to_channel(ev->id->pub.channel));
	if (ev->mc)
		multicast_acked(ev->mc);
	pthread_cond_broadcast(&ev->id->all_acked);
	rdmacm_leave();
	free(ev);
	return 0;
}

EXPORT const char *rdma_event_str(enum rdma_cm_event_type event)
{
#define NAME(event) [event] = #event
	static const char *const names[] = {
		NAME(RDMA_CM_EVENT_ADDR_RESOLVED),   NAME(RDMA_CM_EVENT_ADDR_ERROR),
		NAME(RDMA_CM_EVENT_ROUTE_RESOLVED),  NAME(RDMA_CM_EVENT_ROUTE_ERROR),
		NAME(RDMA_CM_EVENT_CONNECT_REQUEST), NAME(RDMA_CM_EVENT_CONNECT_RESPONSE),
		NAME(RDMA_CM_EVENT_CONNECT_ERROR),   NAME(RDMA_CM_EVENT_UNREACHABLE),
		NAME(RDMA_CM_EVENT_REJECTED),	     NAME(RDMA_CM_EVENT_ESTABLISHED),
		NAME(RDMA_CM_EVENT_DISCONNECTED),    NAME(RDMA_CM_EVENT_DEVICE_REMOVAL),
		NAME(RDMA_CM_EVENT_MULTICAST_JOIN),  NAME(RDMA_CM_EVENT_MULTICAST_ERROR),
		NAME(RDMA_CM_EVENT_ADDR_CHANGE),     NAME(RDMA_CM_EVENT_TIMEWAIT_EXIT),
		[EVENT_ADDRINFO_RESOLVED] = "RDMA_CM_EVENT_ADDRINFO_RESOLVED",
		[EVENT_ADDRINFO_ERROR] = "RDMA_CM_EVENT_ADDRINFO_ERROR",
		[EVENT_USER] = "RDMA_CM_EVENT_USER",
	};
#undef NAME

	return (unsigned int)event < ARRAY_SIZE(names) ? names[event] : "UNKNOWN EVENT";
}
