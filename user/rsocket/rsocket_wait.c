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
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../os/thread.h"
#include "rsocket_object.h"
#include "xroce_rsocket.h"

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

/* Returns this thread's waiter; NULL with errno: no descriptor or memory. */
static struct waiter *waiter_self(void)
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

static int waiter_fd(const struct waiter *waiter)
{
	return waiter->fd;
}

/* Caller holds the rsocket's lock, here and below. */
static void waiter_join(struct rsocket *rs, struct wait_link *link, struct waiter *waiter)
{
	link->waiter = waiter;
	link->next = rs->waiters;
	link->place = &rs->waiters;
	if (link->next)
		link->next->place = &link->next;
	rs->waiters = link;
}

static void waiter_leave(struct wait_link *link)
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

/* Clears the waiter, after the last waiter_leave(). */
static void waiter_reset(struct waiter *waiter)
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

static int waiter_poll(struct pollfd *fds, nfds_t n, s64 deadline, const sigset_t *mask,
		       bool restart)
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
		err = ppoll(fds, n, until, mask);
		if (err >= 0)
			return err;
		if (errno != EINTR)
			return -errno;
		if (!restart || signals_interrupt())
			return -EINTR;
	}
}

/*
 * Sleeps until one of the descriptors is readable, as poll() does. Returns the number of
 * descriptors with events; 0: deadline; -EINTR after any signal handler (with restart: only if some
 * handler is installed without SA_RESTART). mask: the signals that are blocked in the sleep; NULL:
 * as in the thread. With a single hold the thread may be cancelled: then cancelled(arg) runs, with
 * at most the lock of rsocket_take_turn() held.
 */
static int waiter_sleep(struct pollfd *fds, nfds_t n, s64 deadline, const sigset_t *mask,
			bool restart, void (*cancelled)(void *arg), void *arg)
{
	int err;

	pthread_cleanup_push(cancelled, arg);
	cancel_open();
	err = waiter_poll(fds, n, deadline, mask, restart);
	cancel_shut();
	pthread_cleanup_pop(0);
	return err;
}

/* ---- a waiting call ---- */

static __thread pthread_mutex_t *turn_of_call; /* NULL: the call has none */

static int turn_lock(pthread_mutex_t *turn, s64 deadline)
{
	if (deadline == FOREVER)
		return pthread_mutex_lock(turn);
	return deadline ? thread_lock_until(turn, deadline) : pthread_mutex_trylock(turn);
}

int rsocket_take_turn(pthread_mutex_t *turn, s64 deadline)
{
	if (turn_lock(turn, deadline))
		return -EAGAIN;
	turn_of_call = turn;
	return 0;
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
		err = waiter_sleep(fds, 2, deadline, NULL, deadline == FOREVER, wait_cancelled,
				   &call);
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

int rsocket_wait_on(struct rsocket *rs, bool (*ready)(struct rsocket *rs), s64 deadline)
{
	const struct timespec nap = { .tv_nsec = (long)NSEC_PER_MSEC };
	int err;

	for (;;) {
		err = rsocket_wait(rs, ready, deadline);
		if (!err || err == -EAGAIN || err == -EBADF)
			return err;
		if (err == -EINTR)
			continue;
		if (rsocket_now() >= deadline)
			return -EAGAIN;
		/* without a descriptor to sleep on */
		rsocket_unlock(rs);
		nanosleep(&nap, NULL);
		pthread_mutex_lock(&rs->lock);
	}
}

/* ---- rpoll() and rselect() ---- */

/*
 * For rsockets and other descriptors together.
 *
 * First checks every rsocket. If there are no events, the thread enters the waiters of each, arms
 * its queue, and checks once more. Then it sleeps in poll() on its wake-up descriptor, the
 * rsockets' completion channels, and the other descriptors.
 */

struct polled {
	struct rsocket *rs; /* NULL: another descriptor */
	struct wait_link link;
};

struct poll_set {
	struct pollfd *fds; /* the caller's */
	nfds_t n;
	struct polled *polled;
	struct pollfd *sleep; /* n entries, and the thread's wake-up descriptor */
	struct waiter *waiter;
	const sigset_t *mask; /* of the sleep; NULL: the thread's */
	u32 rsockets;
};

static void set_free(struct poll_set *set)
{
	nfds_t i;

	for (i = 0; set->polled && i < set->n; i++)
		if (set->polled[i].rs)
			rsocket_put(set->polled[i].rs);
	free(set->polled);
	free(set->sleep);
}

static int set_make(struct poll_set *set, struct pollfd *fds, nfds_t n)
{
	nfds_t i;

	*set = (struct poll_set){ .fds = fds, .n = n };
	set->polled = calloc(n + 1, sizeof(*set->polled));
	set->sleep = calloc(n + 1, sizeof(*set->sleep));
	if (!set->polled || !set->sleep)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		set->polled[i].rs = rsocket_get(fds[i].fd);
		set->rsockets += set->polled[i].rs != NULL;
		set->sleep[i].fd = set->polled[i].rs ? -1 : fds[i].fd;
		set->sleep[i].events = fds[i].events;
	}
	return 0;
}

static short set_events(struct poll_set *set, nfds_t i)
{
	struct rsocket *rs = set->polled[i].rs;
	short events;

	pthread_mutex_lock(&rs->lock);
	rsocket_progress(rs);
	events = rs->closed ? POLLNVAL : rsocket_events(rs, set->fds[i].events);
	rsocket_unlock(rs);
	return events;
}

/* Checks rsockets, and other descriptors by poll() without a wait. Returns how many have events. */
static int set_look(struct poll_set *set)
{
	int found = 0, err = 0;
	nfds_t i;

	if (set->rsockets < set->n)
		err = poll(set->sleep, set->n, 0);
	if (err < 0)
		return -errno;
	for (i = 0; i < set->n; i++) {
		set->fds[i].revents = set->polled[i].rs ? set_events(set, i) :
							  set->sleep[i].revents;
		found += set->fds[i].revents != 0;
	}
	return found;
}

/* Enters all waiters and arms all queues. */
static void set_join(struct poll_set *set)
{
	nfds_t i;

	for (i = 0; i < set->n; i++) {
		struct rsocket *rs = set->polled[i].rs;

		if (!rs)
			continue;
		pthread_mutex_lock(&rs->lock);
		waiter_join(rs, &set->polled[i].link, set->waiter);
		set->sleep[i].fd = rs->closed ? -1 : rsocket_arm(rs);
		set->sleep[i].events = POLLIN;
		rsocket_unlock(rs);
	}
	set->sleep[set->n] = (struct pollfd){ .fd = waiter_fd(set->waiter), .events = POLLIN };
}

static void set_leave(struct poll_set *set, bool slept)
{
	nfds_t i;

	for (i = 0; i < set->n; i++) {
		struct rsocket *rs = set->polled[i].rs;

		if (!rs)
			continue;
		pthread_mutex_lock(&rs->lock);
		waiter_leave(&set->polled[i].link);
		if (slept && set->sleep[i].fd >= 0 && set->sleep[i].revents)
			rsocket_disarm(rs);
		rsocket_unlock(rs);
		set->sleep[i].fd = -1;
	}
	waiter_reset(set->waiter);
}

/* Checks the rsockets only. */
static int set_look_again(struct poll_set *set)
{
	int found = 0;
	nfds_t i;

	for (i = 0; i < set->n; i++) {
		if (!set->polled[i].rs)
			continue;
		set->fds[i].revents = set_events(set, i);
		found += set->fds[i].revents != 0;
	}
	return found;
}

static void set_freed(void *arg)
{
	set_free(arg);
}

static void set_cancelled(void *arg)
{
	set_leave(arg, false);
	set_free(arg);
}

static int set_sleep(struct poll_set *set, s64 deadline)
{
	s64 until = rsocket_now() + rsocket_config()->wake_up_ms * (s64)NSEC_PER_MSEC;
	int found, err = 0;
	bool slept = false;

	set_join(set);
	found = set_look_again(set);
	if (!found) {
		err = waiter_sleep(set->sleep, set->n + 1, until < deadline ? until : deadline,
				   set->mask, false, set_cancelled, set);
		slept = true;
	}
	set_leave(set, slept);
	return err < 0 ? err : found;
}

/* Checks the arguments as poll(2) does. Returns 0 or -errno. */
static int poll_check(const struct pollfd *fds, nfds_t n)
{
	struct rlimit most;

	if (n > FD_SETSIZE && !getrlimit(RLIMIT_NOFILE, &most) && n > most.rlim_cur)
		return -EINVAL;
	return n && !fds ? -EFAULT : 0;
}

RSOCKET_EXPORT int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	return xroce_rsocket_ppoll(fds, nfds, timeout, NULL);
}

RSOCKET_EXPORT int xroce_rsocket_ppoll(struct pollfd *fds, nfds_t nfds, int timeout,
				       const sigset_t *mask)
{
	s64 start = rsocket_now(), spin, deadline;
	struct poll_set set;
	int err = poll_check(fds, nfds);

	if (err) {
		errno = -err;
		return -1;
	}
	cancel_hold();
	err = set_make(&set, fds, nfds);
	set.mask = mask;
	deadline = timeout < 0 ? FOREVER : start + timeout * (s64)NSEC_PER_MSEC;
	spin = start + rsocket_config()->polling_us * (s64)NSEC_PER_USEC;
	if (!err && set.rsockets == 0)
		err = waiter_sleep(fds, nfds, deadline, mask, false, set_freed, &set);
	if (!err && set.rsockets) {
		do
			err = set_look(&set);
		while (!err && timeout && rsocket_now() < spin);
		set.waiter = err || !timeout ? NULL : waiter_self();
		if (!err && timeout && !set.waiter)
			err = -errno;
		while (!err && timeout) {
			err = set_sleep(&set, deadline);
			if (!err)
				err = set_look(&set);
			if (!err && rsocket_now() >= deadline)
				break;
		}
	}
	set_free(&set);
	cancel_release();
	if (err >= 0)
		return err;
	errno = -err;
	return -1;
}

/* ---- select() ---- */

enum { SELECT_READ = POLLIN | POLLHUP | POLLERR, SELECT_WRITE = POLLOUT | POLLERR };

static short select_wants(int fd, fd_set *reads, fd_set *writes, fd_set *excepts, bool *any)
{
	short wants = 0;

	if (reads && FD_ISSET(fd, reads))
		wants |= POLLIN;
	if (writes && FD_ISSET(fd, writes))
		wants |= POLLOUT;
	if (excepts && FD_ISSET(fd, excepts)) {
		wants |= POLLPRI;
		*any = true;
	}
	*any = *any || wants;
	return wants;
}

static int select_tell(const struct pollfd *p, fd_set *reads, fd_set *writes, fd_set *excepts)
{
	int n = 0;

	if (reads && (p->events & POLLIN) && (p->revents & SELECT_READ)) {
		FD_SET(p->fd, reads);
		n++;
	}
	if (writes && (p->events & POLLOUT) && (p->revents & SELECT_WRITE)) {
		FD_SET(p->fd, writes);
		n++;
	}
	if (excepts && (p->events & POLLPRI) && (p->revents & POLLPRI)) {
		FD_SET(p->fd, excepts);
		n++;
	}
	return n;
}

/* rpoll(); frees fds if the thread is cancelled there. */
static int select_poll(struct pollfd *fds, nfds_t n, int ms)
{
	int found;

	pthread_cleanup_push(free, fds);
	found = rpoll(fds, n, ms);
	pthread_cleanup_pop(0);
	return found;
}

RSOCKET_EXPORT int rselect(int nfds, fd_set *reads, fd_set *writes, fd_set *excepts,
			   struct timeval *timeout)
{
	const time_t most = INT32_MAX / 2000;
	struct pollfd *fds;
	int ms = -1, fd, n = 0, i, err, bits = 0;

	if (nfds < 0 || nfds > FD_SETSIZE ||
	    (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0))) {
		errno = EINVAL;
		return -1;
	}
	if (timeout)
		ms = timeout->tv_sec > most || timeout->tv_usec / 1000000 > most ?
			     INT32_MAX :
			     (int)(timeout->tv_sec * 1000 + (timeout->tv_usec + 999) / 1000);
	fds = calloc((size_t)nfds + 1, sizeof(*fds));
	if (!fds)
		return -1;
	for (fd = 0; fd < nfds; fd++) {
		bool any = false;
		short wants = select_wants(fd, reads, writes, excepts, &any);

		if (any)
			fds[n++] = (struct pollfd){ .fd = fd, .events = wants };
	}
	err = select_poll(fds, (nfds_t)n, ms);
	for (i = 0; err > 0 && i < n; i++) {
		if (fds[i].revents & POLLNVAL) {
			errno = EBADF;
			err = -1;
		}
	}
	if (err >= 0) {
		fd_set *sets[] = { reads, writes, excepts };

		for (i = 0; i < 3; i++)
			if (sets[i])
				FD_ZERO(sets[i]);
		for (i = 0; i < n; i++)
			bits += select_tell(&fds[i], reads, writes, excepts);
	}
	free(fds);
	return err < 0 ? err : bits;
}
