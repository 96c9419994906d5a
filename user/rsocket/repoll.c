/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * repoll_create(), repoll_ctl() and repoll_wait(): sets of rsockets and other descriptors, with the
 * arguments and results of epoll(7). A wait is an rpoll() of the set's descriptors. So events are
 * level-triggered, EPOLLET included, and a set's descriptor only names the set: poll(2) never finds
 * it ready. EPOLLONESHOT works.
 *
 * Locks, in the order in which they are taken:
 *   sets_lock	    the list of sets
 *   repoll.lock    one set; never held during rpoll()
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/epoll.h>

#include "../os/kernel.h"
#include "rsocket_object.h"

/* Declared in <rdma/rsocket.h> since rdma-core 65. */
RSOCKET_EXPORT int repoll_create(int flags);
RSOCKET_EXPORT int repoll_ctl(int set, int op, int fd, struct epoll_event *event);
RSOCKET_EXPORT int repoll_wait(int set, struct epoll_event *events, int max, int timeout);

struct repoll_entry {
	int fd;
	bool disarmed; /* EPOLLONESHOT, after its event */
	struct epoll_event event;
};

/* A thread in repoll_wait() that sleeps, on its stack. */
struct repoll_sleeper {
	struct repoll_sleeper *next, **place;
	int fd; /* an eventfd: raised when the set changes */
};

struct repoll {
	struct repoll *next; /* under sets_lock, as are the next two */
	int fd;
	u32 references;	     /* one of the list, and one of each running call */
	pthread_mutex_t lock;
	bool closed;
	struct repoll_entry *entry;
	u32 num, room;
	u32 first; /* the entry to look at first: each gets its turn */
	struct repoll_sleeper *sleepers;
};

static pthread_mutex_t sets_lock = PTHREAD_MUTEX_INITIALIZER;
static struct repoll *sets;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- sets ---- */

/* The parent's sets are unusable in a child, as its rsockets are. */
static void sets_fork(void)
{
	pthread_mutex_init(&sets_lock, NULL);
	sets = NULL;
}

static void sets_once(void)
{
	pthread_atfork(NULL, NULL, sets_fork);
}

/* Returns the set with a reference, or NULL. */
static struct repoll *set_get(int fd)
{
	struct repoll *set;

	pthread_mutex_lock(&sets_lock);
	for (set = sets; set && set->fd != fd; set = set->next)
		;
	if (set)
		set->references++;
	pthread_mutex_unlock(&sets_lock);
	return set;
}

static void set_put(struct repoll *set)
{
	bool last;

	pthread_mutex_lock(&sets_lock);
	last = !--set->references;
	pthread_mutex_unlock(&sets_lock);
	if (!last)
		return;
	pthread_mutex_destroy(&set->lock);
	free(set->entry);
	free(set);
}

/* Wakes the sleepers after a change. Caller holds set->lock. */
static void set_changed(struct repoll *set)
{
	for (struct repoll_sleeper *s = set->sleepers; s; s = s->next)
		kernel_event_raise(s->fd);
}

static int repoll_report(int err)
{
	if (err >= 0)
		return err;
	errno = -err;
	return -1;
}

int repoll_create(int flags)
{
	struct repoll *set;
	int fd;

	/* Descriptors are close-on-exec in any case, and a set's is never read. */
	if (flags & ~(EPOLL_CLOEXEC | O_NONBLOCK))
		return repoll_report(-EINVAL);
	pthread_once(&once, sets_once);
	set = calloc(1, sizeof(*set));
	if (!set)
		return repoll_report(-ENOMEM);
	cancel_hold();
	fd = kernel_event_make(true);
	if (fd < 0) {
		free(set);
	} else {
		set->fd = fd;
		set->references = 1;
		pthread_mutex_init(&set->lock, NULL);
		pthread_mutex_lock(&sets_lock);
		set->next = sets;
		sets = set;
		pthread_mutex_unlock(&sets_lock);
	}
	cancel_release();
	return repoll_report(fd);
}

int repoll_close(int fd)
{
	struct repoll **at = &sets, *set;

	cancel_hold();
	pthread_mutex_lock(&sets_lock);
	while (*at && (*at)->fd != fd)
		at = &(*at)->next;
	set = *at;
	if (set)
		*at = set->next;
	pthread_mutex_unlock(&sets_lock);
	if (set) {
		pthread_mutex_lock(&set->lock);
		set->closed = true;
		set_changed(set);
		pthread_mutex_unlock(&set->lock);
		kernel_close(fd);
		set_put(set);
	}
	cancel_release();
	return repoll_report(set ? 0 : -EBADF);
}

/* ---- entries: caller holds set->lock ---- */

static struct repoll_entry *entry_find(struct repoll *set, int fd)
{
	for (u32 i = 0; i < set->num; i++)
		if (set->entry[i].fd == fd)
			return &set->entry[i];
	return NULL;
}

/* Returns 0 or -ENOMEM. */
static int entry_add(struct repoll *set, int fd, const struct epoll_event *event)
{
	const u32 room = set->room ? 2 * set->room : 16;
	struct repoll_entry *more;

	if (set->num == set->room) {
		more = realloc(set->entry, room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		set->entry = more;
		set->room = room;
	}
	set->entry[set->num++] = (struct repoll_entry){ .fd = fd, .event = *event };
	return 0;
}

static void entry_remove(struct repoll *set, struct repoll_entry *entry)
{
	*entry = set->entry[--set->num];
}

void repoll_forget(int fd)
{
	cancel_hold();
	pthread_mutex_lock(&sets_lock);
	for (struct repoll *set = sets; set; set = set->next) {
		struct repoll_entry *entry;

		pthread_mutex_lock(&set->lock);
		entry = entry_find(set, fd);
		if (entry) {
			entry_remove(set, entry);
			set_changed(set);
		}
		pthread_mutex_unlock(&set->lock);
	}
	pthread_mutex_unlock(&sets_lock);
	cancel_release();
}

/* Returns 0, or -errno as of epoll_ctl(2). Sets do not contain sets. */
static int set_check(int fd, int op, const struct epoll_event *event)
{
	struct pollfd p = { .fd = fd };
	struct repoll *inner;

	if (op != EPOLL_CTL_ADD && op != EPOLL_CTL_MOD && op != EPOLL_CTL_DEL)
		return -EINVAL;
	if (fd < 0 || rpoll(&p, 1, 0) < 0 || p.revents & POLLNVAL)
		return -EBADF;
	if (op != EPOLL_CTL_DEL && !event)
		return -EFAULT;
	inner = set_get(fd);
	if (inner)
		set_put(inner);
	return inner ? -EINVAL : 0;
}

static int set_change(struct repoll *set, int op, int fd, const struct epoll_event *event)
{
	struct repoll_entry *entry = entry_find(set, fd);
	int err = 0;

	if (op == EPOLL_CTL_ADD && entry)
		return -EEXIST;
	if (op != EPOLL_CTL_ADD && !entry)
		return -ENOENT;
	if (op == EPOLL_CTL_ADD)
		err = entry_add(set, fd, event);
	else if (op == EPOLL_CTL_MOD)
		*entry = (struct repoll_entry){ .fd = fd, .event = *event };
	else
		entry_remove(set, entry);
	if (!err)
		set_changed(set);
	return err;
}

int repoll_ctl(int set_fd, int op, int fd, struct epoll_event *event)
{
	struct repoll *set;
	int err;

	cancel_hold();
	set = set_get(set_fd);
	err = set ? set_check(fd, op, event) : -EBADF;
	if (!err) {
		pthread_mutex_lock(&set->lock);
		err = set_change(set, op, fd, event);
		pthread_mutex_unlock(&set->lock);
	}
	if (set)
		set_put(set);
	cancel_release();
	return repoll_report(err);
}

/* ---- waiting ---- */

_Static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT && EPOLLPRI == POLLPRI &&
		       EPOLLERR == POLLERR && EPOLLHUP == POLLHUP && EPOLLRDHUP == POLLRDHUP,
	       "events of epoll(7) and poll(2)");

/* A running repoll_wait(), on its stack. */
struct repoll_call {
	struct repoll *set;
	struct pollfd *fds; /* the entries, then the sleeper */
	u32 num;
	bool sleeps;
	struct repoll_sleeper sleeper;
};

static void call_ends(void *arg)
{
	struct repoll_call *c = arg;

	cancel_hold();
	if (c->sleeps) {
		pthread_mutex_lock(&c->set->lock);
		*c->sleeper.place = c->sleeper.next;
		if (c->sleeper.next)
			c->sleeper.next->place = c->sleeper.place;
		pthread_mutex_unlock(&c->set->lock);
		kernel_close(c->sleeper.fd);
	}
	free(c->fds);
	set_put(c->set);
	cancel_release();
}

/* Joins the sleepers of the set. Returns 0 or -errno. Caller holds set->lock. */
static int call_joins(struct repoll_call *c)
{
	struct repoll_sleeper *s = &c->sleeper;

	s->fd = kernel_event_make(false);
	if (s->fd < 0)
		return s->fd;
	s->next = c->set->sleepers;
	s->place = &c->set->sleepers;
	if (s->next)
		s->next->place = &s->next;
	c->set->sleepers = s;
	c->sleeps = true;
	return 0;
}

/* Copies the entries for rpoll(). Returns 0 or -errno. Caller holds set->lock. */
static int call_copies(struct repoll_call *c)
{
	struct repoll *set = c->set;
	struct pollfd *fds = realloc(c->fds, (set->num + 1) * sizeof(*fds));

	if (set->closed)
		return -EBADF;
	if (!fds)
		return -ENOMEM;
	c->fds = fds;
	c->num = set->num;
	for (u32 i = 0; i < c->num; i++) {
		const struct repoll_entry *e = &set->entry[i];

		fds[i] = (struct pollfd){ .fd = e->disarmed ? -1 : e->fd,
					  .events = (short)(e->event.events &
							    (POLLIN | POLLOUT | POLLPRI |
							     POLLRDHUP)) };
	}
	fds[c->num] = (struct pollfd){ .fd = c->sleeps ? c->sleeper.fd : -1, .events = POLLIN };
	if (c->sleeps)
		kernel_event_clear(c->sleeper.fd);
	return 0;
}

/*
 * Stores the events of rpoll() for entries that are still in the set. A descriptor that was closed
 * leaves it. Returns the number of events. Caller holds set->lock.
 */
static int call_collects(struct repoll_call *c, struct epoll_event *events, int max)
{
	struct repoll *set = c->set;
	int found = 0;
	u32 i, at;

	for (i = 0; i < c->num && found < max; i++) {
		const struct pollfd *p = &c->fds[at = (set->first + i) % c->num];
		struct repoll_entry *e = p->revents ? entry_find(set, p->fd) : NULL;

		if (!e)
			continue;
		if (p->revents & POLLNVAL) {
			entry_remove(set, e);
			continue;
		}
		events[found].events = (u32)(unsigned short)p->revents;
		events[found++].data = e->event.data;
		e->disarmed = e->event.events & EPOLLONESHOT;
		if (found == max)
			set->first = at + 1;
	}
	return found;
}

/* One look, or sleep. Returns the number of events, 0 or -errno. */
static int call_polls(struct repoll_call *c, struct epoll_event *events, int max, int ms)
{
	struct repoll *set = c->set;
	int err;

	cancel_hold();
	pthread_mutex_lock(&set->lock);
	err = ms && !c->sleeps ? call_joins(c) : 0;
	if (!err)
		err = call_copies(c);
	pthread_mutex_unlock(&set->lock);
	cancel_release();
	if (!err)
		err = rpoll(c->fds, c->num + 1, ms) < 0 ? -errno : 0;
	if (err)
		return err;
	pthread_mutex_lock(&set->lock);
	err = set->closed ? -EBADF : call_collects(c, events, max);
	pthread_mutex_unlock(&set->lock);
	return err;
}

/* Time left until the deadline in ms, rounded up; -1 without one. */
static int ms_until(s64 deadline)
{
	const s64 left = deadline == FOREVER ? 0 : deadline - rsocket_now();

	if (deadline == FOREVER)
		return -1;
	return left <= 0 ? 0 : (int)((left + (s64)NSEC_PER_MSEC - 1) / (s64)NSEC_PER_MSEC);
}

static int set_wait(struct repoll_call *c, struct epoll_event *events, int max, int timeout)
{
	const s64 deadline =
		timeout < 0 ? FOREVER : rsocket_now() + timeout * (s64)NSEC_PER_MSEC;
	int ms, n = call_polls(c, events, max, 0);

	while (!n && (ms = timeout ? ms_until(deadline) : 0))
		n = call_polls(c, events, max, ms);
	return n;
}

int repoll_wait(int set_fd, struct epoll_event *events, int max, int timeout)
{
	struct repoll_call call = { 0 };
	int n;

	if (max <= 0 || max > INT32_MAX / (int)sizeof(*events))
		return repoll_report(-EINVAL);
	if (!events)
		return repoll_report(-EFAULT);
	call.set = set_get(set_fd);
	if (!call.set)
		return repoll_report(-EBADF);
	pthread_cleanup_push(call_ends, &call);
	n = set_wait(&call, events, max, timeout);
	pthread_cleanup_pop(1);
	return repoll_report(n);
}
