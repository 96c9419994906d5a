/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Watches interfaces. One thread for each network namespace with watches (one, in almost any
 * process) sleeps on a netlink socket. A message identifies a changed interface, whose state is
 * then read from the kernel. Only the link state is also taken from the messages, so that a short
 * link loss is not missed. The same thread detects by a socket's hang-up that an interface's broker
 * has ended, and learns of other processes on an interface (port/others.c). And it runs jobs, which
 * may wait for the kernel, for callers that must not.
 *
 * The lock is held during a callback and a job, so that none of them is stopped or freed while it
 * runs.
 *
 * The thread uses no struct loop: poll() reports a descriptor that the application has closed,
 * while an epoll set forgets the descriptor without notice.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "close_fd.h"
#include "fd_id.h"
#include "kernel.h"
#include "thread.h"
#include "netdev_nl.h"
#include "link_watch.h"

struct link_watch {
	struct link_watch *next;
	struct interface *interface;
	link_watch_fn *fn;
	void *arg;
	int hangup_fd;	/* -1: none */
	struct link_watch_input *input; /* NULL: none */
	bool told;	/* the last call was made: the interface is gone */
};

struct interface {
	struct interface *next;
	struct watcher *watcher;
	struct link_watch *watches; /* the urgent ones first */
	struct netdev now;
	bool changed;
	bool gone;
};

struct watcher {
	struct watcher *next;
	struct interface *interfaces;
	struct link_watch_job *jobs;
	u64 netns;
	struct link_events events;
	int control_fd;		/* an eventfd: a job was requested, or the thread shall exit */
	int hangup_set;		/* readable when one of the watches' sockets has hung up */
	bool ending;
	struct fd_id events_id;	/* of events.fd */
	bool dead;		/* in a forked child, without a thread */
	pthread_t thread;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct watcher *watchers;

/* ---- sockets that are watched for a hang-up, under the lock ---- */

/* Returns whether a watch uses the socket; several may. */
static bool hangup_is_used(const struct interface *i, int fd)
{
	for (const struct link_watch *w = i->watches; w; w = w->next)
		if (w->hangup_fd == fd)
			return true;
	return false;
}

static int hangup_add(struct link_watch *w, int fd)
{
	/* others read the socket's data */
	struct epoll_event event = { .events = EPOLLRDHUP };

	if (!hangup_is_used(w->interface, fd) &&
	    epoll_ctl(w->interface->watcher->hangup_set, EPOLL_CTL_ADD, fd, &event))
		return -errno;
	w->hangup_fd = fd;
	return 0;
}

static void hangup_remove(struct link_watch *w)
{
	const int fd = w->hangup_fd;

	w->hangup_fd = -1;
	if (fd >= 0 && !hangup_is_used(w->interface, fd))
		epoll_ctl(w->interface->watcher->hangup_set, EPOLL_CTL_DEL, fd, NULL);
}

static bool hangup_has_come(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	return fd >= 0 && poll(&p, 1, 0) > 0;
}

/* ---- other descriptors, under the lock ---- */

/* Returns no events during a pause; poll() has the same values. */
static u32 input_events(const struct link_watch_input *in)
{
	return in->resume_ns ? 0 : in->until_hangup ? EPOLLRDHUP : EPOLLIN | EPOLLRDHUP;
}

static int input_control(struct link_watch *w, int what)
{
	struct epoll_event event = { .events = input_events(w->input) };

	return w->input->fd >= 0 && epoll_ctl(w->interface->watcher->hangup_set, what,
					      w->input->fd, &event) ?
		       -errno :
		       0;
}

static int input_enter(struct link_watch *w)
{
	int err = input_control(w, EPOLL_CTL_ADD);

	if (err)
		w->input->fd = -1;
	return err;
}

static void input_leave(struct link_watch *w)
{
	if (!w->input)
		return;
	input_control(w, EPOLL_CTL_DEL);
	w->input->fd = -1;
}

static void input_look(struct link_watch *w)
{
	struct link_watch_input *in = w->input;
	struct pollfd p = { .fd = in ? in->fd : -1 };

	if (p.fd < 0 || (in->resume_ns && clock_now_ns() < in->resume_ns))
		return;
	if (in->resume_ns) {
		in->resume_ns = 0;
		input_control(w, EPOLL_CTL_MOD);
	}
	p.events = (short)input_events(in);
	if (poll(&p, 1, 0) > 0 && !w->told)
		in->fn(in->arg);
}

/* ---- the thread, under the lock except while it sleeps ---- */

static void link_watch_tell_one(struct link_watch *w, const struct netdev *before,
				const struct netdev *now)
{
	if (w->told)
		return;
	w->told = !now;
	if (w->told)
		input_leave(w);
	w->fn(w->arg, before, now);
}

static void link_watch_tell(struct interface *i, const struct netdev *before,
			    const struct netdev *now)
{
	for (struct link_watch *w = i->watches; w; w = w->next)
		link_watch_tell_one(w, before, now);
}

/* Calls all watches with the socket, in their order, as its state is read only once. */
static void link_watch_tell_hangup(struct interface *i, int fd)
{
	for (struct link_watch *w = i->watches; w; w = w->next)
		if (w->hangup_fd == fd) {
			hangup_remove(w);
			link_watch_tell_one(w, &i->now, NULL);
		}
}

static void link_watch_look_for_hangups(struct interface *i)
{
	for (struct link_watch *w = i->watches; w; w = w->next)
		if (hangup_has_come(w->hangup_fd))
			link_watch_tell_hangup(i, w->hangup_fd);
}

/* Stores the new state, and calls the watches if it differs. */
static void link_watch_update(struct interface *i, const struct netdev *now)
{
	const struct netdev before = i->now;

	if (!memcmp(&before, now, sizeof(before)))
		return;
	i->now = *now;
	link_watch_tell(i, &before, &i->now);
}

static void link_watch_lose(struct interface *i)
{
	i->gone = true;
	link_watch_tell(i, &i->now, NULL);
}

static struct interface *link_watch_find(const struct watcher *r, u32 ifindex)
{
	for (struct interface *i = r->interfaces; i; i = i->next)
		if (i->now.ifindex == ifindex && !i->gone)
			return i;
	return NULL;
}

static void take_link(struct interface *i, const struct nlmsghdr *nlh)
{
	struct netdev now = i->now;

	if (netdev_link_message(nlh, &now.is_enabled, &now.is_up))
		link_watch_update(i, &now);
	i->changed = true;
}

static void link_watch_all_changed(struct watcher *r)
{
	for (struct interface *i = r->interfaces; i; i = i->next)
		i->changed = true;
}

static void link_watch_hear(void *arg, enum link_events_kind kind, u32 ifindex,
			    const struct nlmsghdr *nlh)
{
	struct watcher *r = arg;
	struct interface *i = kind == LINK_EVENTS_LOST ? NULL : link_watch_find(r, ifindex);

	if (kind == LINK_EVENTS_LOST)
		link_watch_all_changed(r);
	else if (!i)
		return;
	else if (kind == LINK_EVENTS_GONE)
		link_watch_lose(i);
	else if (kind == LINK_EVENTS_LINK)
		take_link(i, nlh);
	else
		i->changed = true;
}

static void link_watch_look(struct interface *i)
{
	struct netdev now = i->now;
	int err;

	if (!i->changed || i->gone)
		return;
	i->changed = false;
	err = netdev_refresh(&now);
	if (err == -ENODEV)
		link_watch_lose(i);
	else if (!err)
		link_watch_update(i, &now);
	else
		i->changed = true; /* no memory now: again with the next message */
}

static void do_jobs(struct watcher *r)
{
	/*
	 * Read before the requests: a later request makes it readable again. The exchange pairs
	 * with the one in link_watch_job_ask().
	 */
	kernel_event_clear(r->control_fd);
	for (struct link_watch_job *job = r->jobs; job; job = job->next)
		if (atomic_exchange_explicit(&job->asked, false, memory_order_acq_rel))
			job->fn(job->arg);
}

/* Returns the time until a paused input resumes, for poll(); -1: none is paused. */
static int link_watch_timeout_ms(const struct watcher *r)
{
	u64 next_ns = NSEC_NEVER, now_ns;

	for (const struct interface *i = r->interfaces; i; i = i->next)
		for (const struct link_watch *w = i->watches; w; w = w->next)
			if (w->input && w->input->fd >= 0 && w->input->resume_ns)
				next_ns = min_u64(next_ns, w->input->resume_ns);
	if (next_ns == NSEC_NEVER)
		return -1;
	now_ns = clock_now_ns();
	return next_ns <= now_ns ? 0 : (int)((next_ns - now_ns) / NSEC_PER_MSEC) + 1;
}

static void *watcher_main(void *arg)
{
	struct watcher *r = arg;
	struct pollfd fds[] = { { .fd = r->control_fd, .events = POLLIN },
				{ .fd = r->events.fd, .events = POLLIN },
				{ .fd = r->hangup_set, .events = POLLIN } };

	int timeout_ms = -1, n;

	pthread_setname_np(pthread_self(), "xroce/watch");
	for (;;) {
		/* POLLNVAL: the application closed a descriptor of ours */
		n = poll(fds, ARRAY_SIZE(fds), timeout_ms);
		/* refused by a seccomp filter: the thread looks every millisecond */
		if (n < 0 && errno != EINTR)
			kernel_await(NULL, 0, clock_now_ns() + NSEC_PER_MSEC);
		if (n > 0 &&
		    (fds[0].revents | fds[1].revents | fds[2].revents) & POLLNVAL)
			return NULL;
		pthread_mutex_lock(&lock);
		if (r->ending) {
			pthread_mutex_unlock(&lock);
			return NULL;
		}
		if (fds[0].revents)
			do_jobs(r);
		link_events_take(&r->events, link_watch_hear, r);
		for (struct interface *i = r->interfaces; i; i = i->next) {
			link_watch_look_for_hangups(i);
			link_watch_look(i);
			for (struct link_watch *w = i->watches; w; w = w->next)
				input_look(w);
		}
		timeout_ms = link_watch_timeout_ms(r);
		pthread_mutex_unlock(&lock);
	}
}

/* ---- start and stop ---- */

static void close_watcher(struct watcher *r)
{
	link_events_close(&r->events);
	close_fd(&r->control_fd);
	close_fd(&r->hangup_set);
}

static int watcher_get(struct watcher **out)
{
	const u64 netns = netdev_netns();
	struct watcher *r;
	int err;

	for (r = watchers; r; r = r->next)
		if (r->netns == netns) {
			*out = r;
			return 0;
		}
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->netns = netns;
	r->control_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->hangup_set = epoll_create1(EPOLL_CLOEXEC);
	r->events.fd = -1;
	err = r->control_fd < 0 || r->hangup_set < 0 ? -errno : link_events_open(&r->events);
	r->events_id = fd_id_of(r->events.fd);
	if (!err)
		err = thread_start(&r->thread, watcher_main, r);
	if (err) {
		close_watcher(r);
		free(r);
		return err;
	}
	r->next = watchers;
	watchers = r;
	*out = r;
	return 0;
}

/* Removes a watcher without watches and jobs from the list. The caller ends it, unlocked. */
static struct watcher *watcher_if_idle(struct watcher *r)
{
	if (r->interfaces || r->jobs)
		return NULL;
	r->ending = true;
	for (struct watcher **at = &watchers; *at; at = &(*at)->next)
		if (*at == r) {
			*at = r->next;
			break;
		}
	return r;
}

static void watcher_end(struct watcher *r)
{
	if (!r)
		return;
	/* the program has closed our descriptors: the thread cannot be woken, and keeps r */
	if (!r->dead && !fd_id_is(r->events.fd, r->events_id))
		return;
	if (!r->dead) {
		eventfd_write(r->control_fd, 1);
		pthread_join(r->thread, NULL);
	}
	close_watcher(r);
	free(r);
}

/* Locks, and disables cancellation, as callbacks may be cancellation points. Returns its state. */
static int link_watch_lock(void)
{
	const int cancel = thread_disable_cancel();

	pthread_mutex_lock(&lock);
	return cancel;
}

/* Unlocks, and ends the idle watcher, unless NULL. */
static void link_watch_unlock(struct watcher *idle, int cancel)
{
	pthread_mutex_unlock(&lock);
	watcher_end(idle);
	thread_restore_cancel(cancel);
}

/* The state is read after the subscription, so no later change is missed. */
static int interface_get(struct watcher *r, const struct netdev *dev, struct interface **out)
{
	struct interface *i = link_watch_find(r, dev->ifindex);
	int err;

	if (i) {
		*out = i;
		return 0;
	}
	i = calloc(1, sizeof(*i));
	if (!i)
		return -ENOMEM;
	i->now = *dev;
	err = netdev_refresh(&i->now);
	if (err) {
		free(i);
		return err;
	}
	i->watcher = r;
	i->next = r->interfaces;
	r->interfaces = i;
	*out = i;
	return 0;
}

static void interface_put(struct interface *i)
{
	if (i->watches)
		return;
	for (struct interface **at = &i->watcher->interfaces; *at; at = &(*at)->next)
		if (*at == i) {
			*at = i->next;
			break;
		}
	free(i);
}

static int link_watch_add(const struct netdev *dev, bool urgent, struct link_watch *w,
			  struct watcher **idle)
{
	struct watcher *r;
	struct link_watch **at;
	int err = watcher_get(&r);

	if (err)
		return err;
	err = interface_get(r, dev, &w->interface);
	if (err) {
		*idle = watcher_if_idle(r);
		return err;
	}
	for (at = &w->interface->watches; *at && !urgent; at = &(*at)->next)
		;
	w->next = *at;
	*at = w;
	w->fn(w->arg, NULL, &w->interface->now);
	return 0;
}

void link_watch_before_fork(void)
{
	pthread_mutex_lock(&lock);
}

void link_watch_after_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

void link_watch_after_fork_child(void)
{
	for (struct watcher *r = watchers; r; r = r->next) {
		r->dead = true;
		close_watcher(r);
	}
	watchers = NULL;
	pthread_mutex_init(&lock, NULL);
}

int link_watch_start(const struct netdev *dev, bool urgent, link_watch_fn *fn, void *arg,
		     struct link_watch **out)
{
	struct link_watch *w = calloc(1, sizeof(*w));
	struct watcher *idle = NULL;
	int err, cancel;

	if (!w)
		return -ENOMEM;
	w->fn = fn;
	w->arg = arg;
	w->hangup_fd = -1;
	cancel = link_watch_lock();
	err = link_watch_add(dev, urgent, w, &idle);
	link_watch_unlock(idle, cancel);
	if (err)
		free(w);
	else
		*out = w;
	return err;
}

int link_watch_until_hangup(struct link_watch *w, int fd)
{
	int err, cancel = link_watch_lock();

	err = hangup_add(w, fd);
	link_watch_unlock(NULL, cancel);
	return err;
}

int link_watch_also(struct link_watch *w, struct link_watch_input *input)
{
	const int cancel = link_watch_lock();
	int err;

	w->input = input;
	err = w->told ? 0 : input_enter(w);
	link_watch_unlock(NULL, cancel);
	return err;
}

int link_watch_input_change(struct link_watch *w, const struct link_watch_input *next)
{
	input_leave(w);
	*w->input = *next;
	return input_enter(w);
}

void link_watch_stop(struct link_watch *w)
{
	struct watcher *r, *idle;
	struct link_watch **at;
	int cancel;

	if (!w)
		return;
	cancel = link_watch_lock();
	r = w->interface->watcher;
	for (at = &w->interface->watches; *at != w; at = &(*at)->next)
		;
	*at = w->next;
	hangup_remove(w);
	input_leave(w);
	interface_put(w->interface);
	idle = watcher_if_idle(r);
	link_watch_unlock(idle, cancel);
	free(w);
}

int link_watch_job_start(struct link_watch_job *job, void (*fn)(void *arg), void *arg)
{
	struct watcher *r;
	int err, cancel;

	*job = (struct link_watch_job){ .fn = fn, .arg = arg };
	cancel = link_watch_lock();
	err = watcher_get(&r);
	if (!err) {
		job->watcher = r;
		job->next = r->jobs;
		r->jobs = job;
	}
	link_watch_unlock(NULL, cancel);
	return err;
}

void link_watch_job_ask(struct link_watch_job *job)
{
	int cancel;

	/* pairs with the exchange in do_jobs(), which makes the caller's data visible */
	if (atomic_exchange_explicit(&job->asked, true, memory_order_acq_rel))
		return;
	/* writing is a cancellation point, and the caller may hold a lock */
	cancel = thread_disable_cancel();
	eventfd_write(job->watcher->control_fd, 1);
	thread_restore_cancel(cancel);
}

void link_watch_job_stop(struct link_watch_job *job)
{
	struct watcher *r = job->watcher, *idle;
	struct link_watch_job **at;
	int cancel;

	if (!r)
		return;
	cancel = link_watch_lock();
	for (at = &r->jobs; *at != job; at = &(*at)->next)
		;
	*at = job->next;
	job->watcher = NULL;
	idle = watcher_if_idle(r);
	link_watch_unlock(idle, cancel);
}
