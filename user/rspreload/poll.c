/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* poll(), select() and epoll(7) of rsockets and other descriptors. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>

#include "../rsocket/xroce_rsocket.h"
#include "preload.h"

bool is_time(const struct timespec *t)
{
	return !t || (t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < 1000000000);
}

/* Also returns false for arguments that poll(2) rejects. */
static bool poll_has_entry(struct pollfd *fds, nfds_t n)
{
	struct rlimit most;
	nfds_t i;

	if (!fds || (n > FD_SETSIZE && (getrlimit(RLIMIT_NOFILE, &most) || n > most.rlim_cur)))
		return false;
	for (i = 0; i < n; i++)
		if (entry_of(fds[i].fd))
			return true;
	return false;
}

/*
 * As in the kernel's ppoll(), a pending signal of the mask ends a call that finds no events. mask:
 * NULL is the thread's own.
 */
static int poll_rsockets(struct pollfd *fds, nfds_t n, int timeout, const sigset_t *mask)
{
	const struct timespec none = { 0 };
	int ret = xroce_rsocket_ppoll(fds, n, timeout, mask);

	return ret || !mask ? ret : real.ppoll(NULL, 0, &none, mask);
}

/* ppoll() of descriptors some of which have an entry. timeout: in ms; mask: may be NULL. */
static int poll_entries(struct pollfd *fds, nfds_t n, int timeout, const sigset_t *mask)
{
	struct pollfd *theirs = calloc(n, sizeof(*theirs));
	nfds_t i;
	int ret;

	if (!theirs) {
		errno = ENOMEM;
		return -1;
	}
	for (i = 0; i < n; i++) {
		struct entry *entry = entry_of(fds[i].fd);

		/* A server that waits for the first byte must be connected to get it. */
		if (entry && entry->kind == ENTRY_FORK_PASSIVE)
			fork_settle(entry);
		theirs[i].fd = entry ? entry->fd : fds[i].fd;
		theirs[i].events = fds[i].events;
	}
	ret = poll_rsockets(theirs, n, timeout, mask);
	for (i = 0; i < n && ret >= 0; i++)
		fds[i].revents = theirs[i].revents;
	free(theirs);
	return ret;
}

EXPORT int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	return poll_has_entry(fds, n) ? poll_entries(fds, n, timeout, NULL) :
					real.poll(fds, n, timeout);
}

/* Rounds up, as no call may end before its time. */
static int poll_ms(const struct timespec *t)
{
	if (!t)
		return -1;
	if (t->tv_sec >= INT_MAX / 1000)
		return INT_MAX;
	return (int)(t->tv_sec * 1000 + (t->tv_nsec + 999999) / 1000000);
}

EXPORT int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	if (!is_time(timeout) || !poll_has_entry(fds, n))
		return real.ppoll(fds, n, timeout, mask);
	return poll_entries(fds, n, poll_ms(timeout), mask);
}

/* Entry points of programs compiled with _FORTIFY_SOURCE. */
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
		size_t room);

EXPORT int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t room)
{
	if (room / sizeof(*fds) < n)
		abort();
	return poll(fds, n, timeout);
}

EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		       const sigset_t *mask, size_t room)
{
	if (room / sizeof(*fds) < n)
		abort();
	return ppoll(fds, n, timeout, mask);
}

/* ---- select() ---- */

static bool is_set(int fd, const fd_set *set)
{
	return set && FD_ISSET(fd, set);
}

static bool select_has_entry(int n, const fd_set *reads, const fd_set *writes,
			     const fd_set *excepts)
{
	int fd;

	for (fd = 0; fd < n; fd++)
		if ((is_set(fd, reads) || is_set(fd, writes) || is_set(fd, excepts)) &&
		    entry_of(fd))
			return true;
	return false;
}

/* Keeps a set bit whose event happened, clears it otherwise; returns the number kept. */
static int select_keep(fd_set *set, int fd, int happened)
{
	if (!is_set(fd, set))
		return 0;
	if (happened)
		return 1;
	FD_CLR(fd, set);
	return 0;
}

static int select_by_poll(int n, fd_set *reads, fd_set *writes, fd_set *excepts, int timeout,
			  const sigset_t *mask)
{
	struct pollfd *fds = calloc((size_t)n + 1, sizeof(*fds));
	int fd, i, used = 0, ret, bits = 0;

	if (!fds) {
		errno = ENOMEM;
		return -1;
	}
	for (fd = 0; fd < n; fd++) {
		short events = (is_set(fd, reads) ? POLLIN : 0) |
			       (is_set(fd, writes) ? POLLOUT : 0) |
			       (is_set(fd, excepts) ? POLLPRI : 0);

		if (events)
			fds[used++] = (struct pollfd){ .fd = fd, .events = events };
	}
	ret = poll_entries(fds, (nfds_t)used, timeout, mask);
	for (i = 0; i < used && ret >= 0; i++) {
		short events = fds[i].revents;

		if (events & POLLNVAL) {
			errno = EBADF;
			ret = -1;
			break;
		}
		bits += select_keep(reads, fds[i].fd, events & (POLLIN | POLLHUP | POLLERR));
		bits += select_keep(writes, fds[i].fd, events & (POLLOUT | POLLERR));
		bits += select_keep(excepts, fds[i].fd, events & POLLPRI);
	}
	free(fds);
	return ret < 0 ? -1 : bits;
}

EXPORT int pselect(int n, fd_set *reads, fd_set *writes, fd_set *excepts,
		   const struct timespec *timeout, const sigset_t *mask)
{
	if (n < 0 || n > FD_SETSIZE || !is_time(timeout) ||
	    !select_has_entry(n, reads, writes, excepts))
		return real.pselect(n, reads, writes, excepts, timeout, mask);
	return select_by_poll(n, reads, writes, excepts, poll_ms(timeout), mask);
}

/* Updates the timeout with the remaining time, as the kernel does. */
EXPORT int select(int n, fd_set *reads, fd_set *writes, fd_set *excepts, struct timeval *timeout)
{
	struct timespec start, now, t;
	long long left;
	int ret;

	if (n < 0 || n > FD_SETSIZE || !select_has_entry(n, reads, writes, excepts))
		return real.select(n, reads, writes, excepts, timeout);
	if (!timeout)
		return select_by_poll(n, reads, writes, excepts, -1, NULL);
	if (timeout->tv_sec < 0 || timeout->tv_usec < 0) {
		errno = EINVAL;
		return -1;
	}
	/* Values of a second or more in tv_usec are accepted. */
	t = (struct timespec){ timeout->tv_sec, timeout->tv_usec % 1000000 * 1000 };
	if (__builtin_add_overflow(t.tv_sec, timeout->tv_usec / 1000000, &t.tv_sec) ||
	    t.tv_sec > INT_MAX)
		t.tv_sec = INT_MAX;
	clock_gettime(CLOCK_MONOTONIC, &start);
	ret = select_by_poll(n, reads, writes, excepts, poll_ms(&t), NULL);
	clock_gettime(CLOCK_MONOTONIC, &now);
	left = (t.tv_sec - now.tv_sec + start.tv_sec) * 1000000ll +
	       (t.tv_nsec - now.tv_nsec + start.tv_nsec) / 1000;
	left = left < 0 ? 0 : left;
	*timeout = (struct timeval){ left / 1000000, left % 1000000 };
	return ret;
}

/* ---- epoll ---- */

/*
 * The kernel's epoll sets contain an rsocket's stand-in. Each entry records its sets.
 * Closing the entry removes it from them, though a child may have copies of its descriptors. When
 * the entry changes to another file, it is added again.
 */

struct watch {
	struct watch *next;
	int set, fd;
	struct epoll_event event;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Returns the place of the record, or the end of the list. Caller holds the lock. */
static struct watch **watch_place(struct entry *entry, int set, int fd)
{
	struct watch **place = &entry->watches;

	while (*place && ((*place)->set != set || (*place)->fd != fd))
		place = &(*place)->next;
	return place;
}

static void watch_note(struct entry *entry, int set, int op, int fd,
		       const struct epoll_event *event)
{
	struct watch **place, *watch;

	pthread_mutex_lock(&lock);
	place = watch_place(entry, set, fd);
	watch = *place;
	if (op == EPOLL_CTL_DEL && watch) {
		*place = watch->next;
		free(watch);
	} else if (op != EPOLL_CTL_DEL) {
		if (!watch)
			*place = watch = calloc(1, sizeof(*watch));
		/* Without memory, it is just not added again later. */
		if (watch)
			*watch = (struct watch){ watch->next, set, fd, *event };
	}
	pthread_mutex_unlock(&lock);
}

EXPORT int epoll_ctl(int set, int op, int fd, struct epoll_event *event)
{
	struct entry *entry = entry_of(fd);
	int ret;

	if (!entry)
		return real.epoll_ctl(set, op, fd, event);
	if (op != EPOLL_CTL_DEL) {
		/* A server that waits for the first byte must be connected to get it. */
		if (entry->kind == ENTRY_FORK_PASSIVE)
			fork_settle(entry);
		if (entry_watch(fd, entry))
			return -1;
	}
	ret = real.epoll_ctl(set, op, fd, event);
	if (!ret)
		watch_note(entry, set, op, fd, event);
	return ret;
}

void watches_end(struct entry *entry)
{
	struct watch *watch;

	pthread_mutex_lock(&lock);
	while ((watch = entry->watches)) {
		entry->watches = watch->next;
		/* ENOENT: another set or file has the number by now. */
		real.epoll_ctl(watch->set, EPOLL_CTL_DEL, watch->fd, NULL);
		free(watch);
	}
	pthread_mutex_unlock(&lock);
}

/* Removes records whose set number now belongs to another set, which lacks the descriptor. */
void watches_check(struct entry *entry)
{
	struct watch **place = &entry->watches, *watch;

	pthread_mutex_lock(&lock);
	while ((watch = *place)) {
		if (!real.epoll_ctl(watch->set, EPOLL_CTL_MOD, watch->fd, &watch->event)) {
			place = &watch->next;
			continue;
		}
		*place = watch->next;
		free(watch);
	}
	pthread_mutex_unlock(&lock);
}

void watches_restore(struct entry *entry)
{
	struct watch *watch;

	pthread_mutex_lock(&lock);
	if (entry->watches && entry->kind == ENTRY_RSOCKET)
		xroce_rsocket_watch(entry->fd);
	for (watch = entry->watches; watch; watch = watch->next)
		real.epoll_ctl(watch->set, EPOLL_CTL_ADD, watch->fd, &watch->event);
	pthread_mutex_unlock(&lock);
}

void watches_forked(void)
{
	pthread_mutex_init(&lock, NULL);
}
