/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rpoll() and rselect(), for rsockets and other descriptors together.
 *
 * First checks every rsocket. If there are no events, the thread enters the waiters of each, arms
 * its queue, and checks once more. Then it sleeps in poll() on its wake-up descriptor, the
 * rsockets' completion channels, and the other descriptors.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/resource.h>

#include "rsocket_object.h"

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
				   false, set_cancelled, set);
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
	s64 start = rsocket_now(), spin, deadline;
	struct poll_set set;
	int err = poll_check(fds, nfds);

	if (err) {
		errno = -err;
		return -1;
	}
	cancel_hold();
	err = set_make(&set, fds, nfds);
	deadline = timeout < 0 ? FOREVER : start + timeout * (s64)NSEC_PER_MSEC;
	spin = start + rsocket_config()->polling_us * (s64)NSEC_PER_USEC;
	if (!err && set.rsockets == 0)
		err = waiter_sleep(fds, nfds, deadline, false, set_freed, &set);
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
