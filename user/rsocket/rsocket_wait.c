/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads that sleep for an rsocket. Each thread has a descriptor that others make readable. Before
 * its last check the thread enters the rsocket's list of waiters, under the lock. Changes of the
 * rsocket happen under the lock and wake the whole list, so no change between check and sleep is
 * missed.
 *
 * The event of the completion channel goes to one thread, which may be waiting for another
 * completion. It wakes the others, and each arms the queue again if it must sleep on.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "rsocket_object.h"

struct waiter {
	int fd;
	u32 generation; /* fork generation in which it was created */
	atomic_bool woken;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool have_key;
static _Atomic u32 generation;

static void waiter_free(void *of)
{
	struct waiter *waiter = of;

	close(waiter->fd);
	free(waiter);
}

static void waiters_fork(void)
{
	atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}

static void waiters_init(void)
{
	have_key = pthread_key_create(&key, waiter_free) == 0;
	pthread_atfork(NULL, NULL, waiters_fork);
}

struct waiter *waiter_self(void)
{
	u32 now = atomic_load_explicit(&generation, memory_order_relaxed);
	struct waiter *waiter;

	pthread_once(&once, waiters_init);
	if (!have_key) {
		errno = ENOMEM;
		return NULL;
	}
	waiter = pthread_getspecific(key);
	if (waiter && waiter->generation == now)
		return waiter;
	if (waiter) {
		/* The parent sleeps on it. */
		pthread_setspecific(key, NULL);
		waiter_free(waiter);
	}
	waiter = calloc(1, sizeof(*waiter));
	if (!waiter)
		return NULL;
	waiter->generation = now;
	waiter->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (waiter->fd < 0 || pthread_setspecific(key, waiter)) {
		if (waiter->fd >= 0)
			close(waiter->fd);
		free(waiter);
		return NULL;
	}
	return waiter;
}

int waiter_fd(const struct waiter *waiter)
{
	return waiter->fd;
}

void waiter_join(struct rsocket *rs, struct wait_link *link, struct waiter *waiter)
{
	link->waiter = waiter;
	link->next = rs->waiters;
	link->place = &rs->waiters;
	if (link->next)
		link->next->place = &link->next;
	rs->waiters = link;
}

void waiter_leave(struct wait_link *link)
{
	if (!link->place)
		return;
	*link->place = link->next;
	if (link->next)
		link->next->place = link->place;
	link->place = NULL;
}

void waiters_wake(struct rsocket *rs)
{
	struct wait_link *link;
	u64 one = 1;

	for (link = rs->waiters; link; link = link->next) {
		/* relaxed: the rsocket's lock orders it */
		if (atomic_exchange_explicit(&link->waiter->woken, true, memory_order_relaxed))
			continue;
		if (write(link->waiter->fd, &one, sizeof(one)) < 0)
			continue; /* readable already */
	}
}

void waiter_reset(struct waiter *waiter)
{
	u64 n;

	if (atomic_exchange_explicit(&waiter->woken, false, memory_order_relaxed) &&
	    read(waiter->fd, &n, sizeof(n)) < 0)
		return; /* not reached: a waker sets woken and writes under the same lock */
}

s64 rsocket_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * (s64)NSEC_PER_SEC + now.tv_nsec;
}

s64 rsocket_deadline(const struct timeval *timeout)
{
	s64 most = INT64_MAX / 2 / (s64)NSEC_PER_SEC;

	if (!timeout->tv_sec && !timeout->tv_usec)
		return FOREVER;
	if (timeout->tv_sec < 0)
		return 0;
	if (timeout->tv_sec > most)
		return FOREVER;
	return rsocket_now() + timeout->tv_sec * (s64)NSEC_PER_SEC +
	       timeout->tv_usec * (s64)NSEC_PER_USEC;
}

bool rsocket_nonblocking(const struct rsocket *rs, int flags)
{
	return (rs->file_flags & O_NONBLOCK) || (flags & MSG_DONTWAIT);
}

/*
 * After a signal whose handler has SA_RESTART, a blocking socket call continues; poll() never does.
 * The signal is unknown here, so the call ends if any handler lacks SA_RESTART.
 */
static bool signals_interrupt(void)
{
	struct sigaction action;
	int n;

	for (n = 1; n < NSIG; n++) {
		if (sigaction(n, NULL, &action) || (action.sa_flags & SA_RESTART))
			continue;
		if ((action.sa_flags & SA_SIGINFO) ||
		    (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN))
			return true;
	}
	return false;
}

static int waiter_poll(struct pollfd *fds, nfds_t n, s64 deadline, bool restart)
{
	int err;

	for (;;) {
		struct timespec left, *until = NULL;

		if (deadline != FOREVER) {
			s64 ns = deadline - rsocket_now();

			ns = ns < 0 ? 0 : ns;
			left.tv_sec = ns / (s64)NSEC_PER_SEC;
			left.tv_nsec = ns % (s64)NSEC_PER_SEC;
			until = &left;
		}
		err = ppoll(fds, n, until, NULL);
		if (err >= 0)
			return err;
		if (errno != EINTR)
			return -errno;
		if (!restart || signals_interrupt())
			return -EINTR;
	}
}

int waiter_sleep(struct pollfd *fds, nfds_t n, s64 deadline, bool restart,
		 void (*cancelled)(void *arg), void *arg)
{
	int err;

	pthread_cleanup_push(cancelled, arg);
	cancel_open();
	err = waiter_poll(fds, n, deadline, restart);
	cancel_shut();
	pthread_cleanup_pop(0);
	return err;
}

/* ---- a waiting call ---- */

static __thread pthread_mutex_t *turn_of_call; /* NULL: the call has none */

void rsocket_take_turn(pthread_mutex_t *turn)
{
	pthread_mutex_lock(turn);
	turn_of_call = turn;
}

void rsocket_end_turn(pthread_mutex_t *turn)
{
	turn_of_call = NULL;
	pthread_mutex_unlock(turn);
}

struct call {
	struct rsocket *rs;
	struct waiter *waiter;
	struct wait_link link;
};

static void wait_cancelled(void *arg)
{
	struct call *call = arg;

	pthread_mutex_lock(&call->rs->lock);
	waiter_leave(&call->link);
	waiter_reset(call->waiter);
	rsocket_unlock(call->rs);
	if (turn_of_call)
		rsocket_end_turn(turn_of_call);
	rsocket_put(call->rs);
}

/*
 * Polls briefly, as sleeping costs more: completions of a busy peer arrive within microseconds.
 * Releases the lock in between.
 */
static bool wait_poll(struct rsocket *rs, bool (*ready)(struct rsocket *rs))
{
	s64 end = rsocket_now() + rsocket_config()->polling_us * (s64)NSEC_PER_USEC;

	do {
		rsocket_progress(rs);
		if (rs->closed || ready(rs))
			return true;
		pthread_mutex_unlock(&rs->lock);
		pthread_mutex_lock(&rs->lock);
	} while (rsocket_now() < end);
	return false;
}

int rsocket_wait(struct rsocket *rs, bool (*ready)(struct rsocket *rs), s64 deadline)
{
	struct call call = { .rs = rs };
	struct pollfd fds[2];
	int err = 0;

	rsocket_progress(rs);
	if (rs->closed)
		return -EBADF;
	if (ready(rs))
		return 0;
	if (!deadline)
		return -EAGAIN;
	if (wait_poll(rs, ready))
		return rs->closed ? -EBADF : 0;
	call.waiter = waiter_self();
	if (!call.waiter)
		return -errno;
	do {
		fds[0] = (struct pollfd){ .fd = rsocket_arm(rs), .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = call.waiter->fd, .events = POLLIN };
		/* Completions before the arming cause no event. */
		rsocket_progress(rs);
		if (rs->closed || ready(rs))
			break;
		waiter_join(rs, &call.link, call.waiter);
		rsocket_unlock(rs);
		/* no signal restarts a call with a time-out of the socket (signal(7)) */
		err = waiter_sleep(fds, 2, deadline, deadline == FOREVER, wait_cancelled, &call);
		pthread_mutex_lock(&rs->lock);
		waiter_leave(&call.link);
		waiter_reset(call.waiter);
		if (err > 0 && fds[0].revents)
			rsocket_disarm(rs);
		rsocket_progress(rs);
		if (rs->closed || ready(rs))
			break;
	} while (err > 0);
	if (rs->closed)
		return -EBADF;
	if (ready(rs))
		return 0;
	return err < 0 ? err : -EAGAIN;
}
