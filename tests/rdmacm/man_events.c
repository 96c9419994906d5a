/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san XROCE_CYCLES=1000 */
/* tier: long tsan */
/*
 * rdma_create_event_channel(3), rdma_get_cm_event(3), rdma_ack_cm_event(3), rdma_event_str(3),
 * rdma_migrate_id(3): behaviour common to all kinds of events.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "man.h"

/* "can be used and manipulated like any other fd" */
static bool descriptor(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_event *event;

	MUST(ch && ch->fd >= 0);
	MUST(fcntl(ch->fd, F_GETFD) & FD_CLOEXEC);
	MUST(!(fcntl(ch->fd, F_GETFL) & O_NONBLOCK));
	MUST(!readable(ch->fd, 0));
	MUST(no_event(ch));
	MUST_ERR(rdma_get_cm_event(ch, NULL), EINVAL);
	MUST(set_nonblocking(ch->fd, true));
	for (int i = 0; i < 3; i++)
		MUST_ERR(rdma_get_cm_event(ch, &event), EAGAIN);
	MUST_ERR(rdma_ack_cm_event(NULL), EINVAL);
	rdma_destroy_event_channel(ch);
	return true;
}

/* O_ASYNC is accepted, as for any descriptor, without effect: ucma.c has no fasync operation. */
static bool no_signals(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;
	sigset_t sigio, came;

	sigemptyset(&sigio);
	sigaddset(&sigio, SIGIO);
	MUST(ch && !pthread_sigmask(SIG_BLOCK, &sigio, NULL));
	MUST_EQ(fcntl(ch->fd, F_SETOWN, getpid()), 0);
	MUST_EQ(fcntl(ch->fd, F_SETFL, fcntl(ch->fd, F_GETFL) | O_ASYNC), 0);
	MUST(id = resolving(ch, AF_INET));
	MUST(readable(ch->fd, WAIT_MS));
	MUST_EQ(rdma_get_cm_event(ch, &e), 0);
	MUST_EQ(rdma_ack_cm_event(e), 0);
	MUST(!sigpending(&came) && !sigismember(&came, SIGIO));
	MUST_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
	return true;
}

/* Readable exactly while an event is queued. */
static bool level(int family)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id[3];
	struct rdma_cm_event *e;
	struct timeval now = { 0 };
	fd_set set;

	MUST(ch);
	for (int i = 0; i < 3; i++)
		MUST(id[i] = resolving(ch, family));
	for (int i = 0; i < 3; i++) {
		MUST(readable(ch->fd, WAIT_MS));
		MUST(readable(ch->fd, 0)); /* polling takes nothing away */
		FD_ZERO(&set);
		FD_SET(ch->fd, &set);
		now = (struct timeval){ 0 };
		MUST_EQ(select(ch->fd + 1, &set, NULL, NULL, &now), 1);
		MUST_EQ(rdma_get_cm_event(ch, &e), 0);
		MUST_EQ(e->event, RDMA_CM_EVENT_ADDR_RESOLVED);
		MUST(e->id->context == ch && !e->status && !e->listen_id);
		MUST_EQ(rdma_ack_cm_event(e), 0);
	}
	MUST(!readable(ch->fd, 0));
	MUST(no_event(ch));
	for (int i = 0; i < 3; i++)
		MUST_EQ(rdma_destroy_id(id[i]), 0);
	rdma_destroy_event_channel(ch);
	return true;
}
BOTH(level)

/* Edge-triggered: each new event is an edge, also while another is queued. */
static bool edge(int family)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	struct rdma_cm_id *id[2];
	int ep = epoll_create1(0);

	MUST(ch && ep >= 0);
	MUST_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, ch->fd, &ev), 0);
	MUST_EQ(epoll_wait(ep, &ev, 1, 0), 0);
	for (int i = 0; i < 2; i++) {
		MUST(id[i] = resolving(ch, family));
		MUST_EQ(epoll_wait(ep, &ev, 1, WAIT_MS), 1);
		MUST_EQ(ev.events, EPOLLIN);
	}
	MUST_EQ(epoll_wait(ep, &ev, 1, 0), 0);
	/* after the last one is taken, the next one is an edge again */
	for (int i = 0; i < 2; i++)
		MUST(take(ch, id[i], RDMA_CM_EVENT_ADDR_RESOLVED));
	MUST_EQ(epoll_wait(ep, &ev, 1, 0), 0);
	MUST_EQ(rdma_resolve_route(id[0], WAIT_MS), 0);
	MUST_EQ(epoll_wait(ep, &ev, 1, WAIT_MS), 1);
	MUST(take(ch, id[0], RDMA_CM_EVENT_ROUTE_RESOLVED));
	for (int i = 0; i < 2; i++)
		MUST_EQ(rdma_destroy_id(id[i]), 0);
	close(ep);
	rdma_destroy_event_channel(ch);
	return true;
}
BOTH(edge)

/* ---- a blocking get ---- */

struct getter {
	pthread_t thread;
	struct rdma_event_channel *ch;
	struct rdma_cm_event *event;
	int rc, err;
	atomic_bool done;
};

static void *getter_run(void *arg)
{
	struct getter *g = arg;

	g->rc = rdma_get_cm_event(g->ch, &g->event);
	g->err = errno;
	atomic_store(&g->done, true);
	return NULL;
}

static bool blocks(int family)
{
	struct getter g = { .ch = rdma_create_event_channel() };
	struct rdma_cm_id *id;

	MUST(g.ch);
	MUST_EQ(pthread_create(&g.thread, NULL, getter_run, &g), 0);
	usleep(20000); /* can only miss the bug, never make one */
	MUST(!atomic_load(&g.done));
	MUST(id = resolving(g.ch, family));
	MUST_EQ(pthread_join(g.thread, NULL), 0);
	MUST_EQ(g.rc, 0);
	MUST(g.event->id == id);
	MUST_EQ(g.event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	MUST_EQ(rdma_ack_cm_event(g.event), 0);
	MUST_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(g.ch);
	return true;
}
BOTH(blocks)

static void on_signal(int sig)
{
}

/* A signal whose handler does not restart calls ends the wait. */
static bool interrupted(void)
{
	struct sigaction act = { .sa_handler = on_signal }, before;
	struct getter g = { .ch = rdma_create_event_channel() };

	MUST(g.ch);
	MUST_EQ(sigaction(SIGUSR1, &act, &before), 0);
	MUST_EQ(pthread_create(&g.thread, NULL, getter_run, &g), 0);
	for (int i = 0; i < WAIT_MS && !atomic_load(&g.done); i++) {
		pthread_kill(g.thread, SIGUSR1);
		usleep(1000);
	}
	MUST(atomic_load(&g.done));
	MUST_EQ(pthread_join(g.thread, NULL), 0);
	MUST_EQ(g.rc, -1);
	MUST_EQ(g.err, EINTR);
	sigaction(SIGUSR1, &before, NULL);
	rdma_destroy_event_channel(g.ch);
	return true;
}

/* ---- several threads on one channel ---- */

#define THREADS 4
#define IDS	40

static struct rdma_event_channel *shared;
static struct rdma_cm_id *shared_id[IDS];
static atomic_int got[IDS], taken, wrong;

static void *taker(void *arg)
{
	struct rdma_cm_event *e;

	while (atomic_load(&taken) < IDS) {
		if (!readable(shared->fd, 100))
			continue;
		if (rdma_get_cm_event(shared, &e)) {
			if (errno != EAGAIN)
				atomic_fetch_add(&wrong, 1);
			continue;
		}
		atomic_fetch_add((atomic_int *)e->id->context, 1);
		if (e->event != RDMA_CM_EVENT_ADDR_RESOLVED || rdma_ack_cm_event(e))
			atomic_fetch_add(&wrong, 1);
		atomic_fetch_add(&taken, 1);
	}
	return NULL;
}

static bool several_threads(void)
{
	union address to = own(AF_INET, 7471);
	pthread_t thread[THREADS];

	MUST((shared = rdma_create_event_channel()) && set_nonblocking(shared->fd, true));
	for (int i = 0; i < IDS; i++)
		MUST_EQ(rdma_create_id(shared, &shared_id[i], &got[i], RDMA_PS_TCP), 0);
	for (int i = 0; i < THREADS; i++)
		MUST_EQ(pthread_create(&thread[i], NULL, taker, NULL), 0);
	for (int i = 0; i < IDS; i++)
		MUST_EQ(rdma_resolve_addr(shared_id[i], NULL, &to.sa, WAIT_MS), 0);
	for (int i = 0; i < THREADS; i++)
		MUST_EQ(pthread_join(thread[i], NULL), 0);
	MUST_EQ(atomic_load(&wrong), 0);
	for (int i = 0; i < IDS; i++) {
		MUST_EQ(atomic_load(&got[i]), 1);
		MUST_EQ(rdma_destroy_id(shared_id[i]), 0);
	}
	rdma_destroy_event_channel(shared);
	return true;
}

/* ---- rdma_migrate_id(3) ---- */

/* "moves any pending events associated with the rdma_cm_id to the new channel" */
static bool migrate(int family)
{
	struct rdma_event_channel *from = rdma_create_event_channel();
	struct rdma_event_channel *to = rdma_create_event_channel();
	struct rdma_cm_id *id, *stays;

	MUST(from && to && (id = resolving(from, family)) && readable(from->fd, WAIT_MS));
	MUST_EQ(rdma_migrate_id(id, to), 0);
	MUST(id->channel == to);
	MUST(readable(to->fd, 0) && !readable(from->fd, 0));
	MUST(take(to, id, RDMA_CM_EVENT_ADDR_RESOLVED));
	MUST(no_event(from) && no_event(to));
	/* and later events */
	MUST_EQ(rdma_resolve_route(id, WAIT_MS), 0);
	MUST(take(to, id, RDMA_CM_EVENT_ROUTE_RESOLVED));
	MUST(no_event(from));
	/* another id's events stay */
	MUST(stays = resolving(from, family));
	MUST(readable(from->fd, WAIT_MS));
	MUST_EQ(rdma_migrate_id(id, from), 0);
	MUST_EQ(rdma_migrate_id(id, to), 0);
	MUST(take(from, stays, RDMA_CM_EVENT_ADDR_RESOLVED) && no_event(to));
	MUST_EQ(rdma_destroy_id(stays), 0);
	rdma_destroy_event_channel(from); /* no id uses it any more */
	MUST_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(to);
	return true;
}
BOTH(migrate)

static struct rdma_event_channel *migrate_to;

static int migrate_call(void *id)
{
	return rdma_migrate_id(id, migrate_to);
}

/* "This call will block while there are any unacknowledged events on the current channel." */
static bool migrate_waits(void)
{
	struct rdma_event_channel *from = rdma_create_event_channel();
	struct destruction d;
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	MUST(from && (migrate_to = rdma_create_event_channel()));
	MUST((id = resolving(from, AF_INET)) && (e = next_event(from)));
	MUST(destroy_begins(&d, migrate_call, id));
	MUST_EQ(rdma_ack_cm_event(e), 0);
	MUST(destroy_ends(&d));
	MUST(id->channel == migrate_to);
	MUST_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(from);
	rdma_destroy_event_channel(migrate_to);
	return true;
}

/* "If the channel parameter is NULL, the id will be placed into synchronous operation mode." */
static bool migrate_to_synchronous(int family)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	union address to = own(family, 7471);
	struct rdma_cm_id *id;

	MUST(ch);
	MUST_EQ(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	MUST_EQ(rdma_migrate_id(id, NULL), 0);
	MUST(id->channel && id->channel != ch);
	MUST_EQ(rdma_resolve_addr(id, NULL, &to.sa, WAIT_MS), 0);
	MUST(id->event && id->event->event == RDMA_CM_EVENT_ADDR_RESOLVED);
	/* and back, which acknowledges that event */
	MUST_EQ(rdma_migrate_id(id, ch), 0);
	MUST(id->channel == ch);
	MUST_EQ(rdma_resolve_route(id, WAIT_MS), 0);
	MUST(take(ch, id, RDMA_CM_EVENT_ROUTE_RESOLVED));
	MUST_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
	return true;
}
BOTH(migrate_to_synchronous)

/* A listener moves, and later requests arrive there, with their new ids. */
static bool listener_moves(struct link *l)
{
	struct rdma_event_channel *to = rdma_create_event_channel();

	MUST(to);
	MUST_EQ(rdma_migrate_id(l->listen, to), 0);
	rdma_destroy_event_channel(l->ch[1]);
	l->ch[1] = to;
	return true;
}

static bool migrate_listener_body(struct link *l, int family)
{
	MUST(link_open(l, family, RDMA_PS_TCP) && listener_moves(l) && link_request(l, NULL));
	MUST(l->id[1]->channel == l->ch[1]);
	return link_accept(l, NULL) && link_established(l);
}
ON_LINK(migrate_listener, migrate_listener_body)

/* "any pending events": a request too. Linux 6.1 loses its id, so this follows the page alone. */
static bool migrate_request_body(struct link *l, int family)
{
	MUST(link_open(l, family, RDMA_PS_TCP));
	MUST_EQ(rdma_connect(l->id[0], NULL), 0);
	MUST(readable(l->ch[1]->fd, WAIT_MS) && listener_moves(l));
	MUST(l->request = next_event(l->ch[1]));
	MUST_EQ(l->request->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	l->id[1] = l->request->id;
	MUST(l->id[1]->channel == l->ch[1]);
	return link_accept(l, NULL) && link_established(l);
}
ON_LINK(migrate_request, migrate_request_body)

/* ---- rdma_event_str(3) ---- */

static bool names(void)
{
	static const char *const name[] = {
		"RDMA_CM_EVENT_ADDR_RESOLVED",	 "RDMA_CM_EVENT_ADDR_ERROR",
		"RDMA_CM_EVENT_ROUTE_RESOLVED",	 "RDMA_CM_EVENT_ROUTE_ERROR",
		"RDMA_CM_EVENT_CONNECT_REQUEST", "RDMA_CM_EVENT_CONNECT_RESPONSE",
		"RDMA_CM_EVENT_CONNECT_ERROR",	 "RDMA_CM_EVENT_UNREACHABLE",
		"RDMA_CM_EVENT_REJECTED",	 "RDMA_CM_EVENT_ESTABLISHED",
		"RDMA_CM_EVENT_DISCONNECTED",	 "RDMA_CM_EVENT_DEVICE_REMOVAL",
		"RDMA_CM_EVENT_MULTICAST_JOIN",	 "RDMA_CM_EVENT_MULTICAST_ERROR",
		"RDMA_CM_EVENT_ADDR_CHANGE",	 "RDMA_CM_EVENT_TIMEWAIT_EXIT",
	};

	for (int i = 0; i < 16; i++)
		MUST(!strcmp(rdma_event_str((enum rdma_cm_event_type)i), name[i]));
	MUST(!strcmp(rdma_event_str((enum rdma_cm_event_type)19), "UNKNOWN EVENT"));
	MUST(!strcmp(rdma_event_str((enum rdma_cm_event_type) - 1), "UNKNOWN EVENT"));
	return true;
}

/* ---- rdma_get_devices(3) ---- */

static bool devices(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	union address at = own(AF_INET, 0);
	struct ibv_context **list, **again;
	struct rdma_cm_id *id;
	bool there = false;
	int n = -1;

	MUST(ch && (list = rdma_get_devices(&n)) && n >= 1);
	MUST(!list[n]);
	MUST_EQ(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	MUST_EQ(rdma_bind_addr(id, &at.sa), 0);
	/* the same contexts as the ids' */
	for (int i = 0; i < n; i++)
		there |= list[i] == id->verbs;
	MUST(there);
	MUST(again = rdma_get_devices(NULL));
	for (int i = 0; i < n; i++)
		MUST(again[i] == list[i]);
	rdma_free_devices(again);
	rdma_free_devices(list);
	rdma_free_devices(NULL);
	MUST_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
	return true;
}

/* ---- a channel destroyed while a thread waits there, as rping does before it exits ---- */

static _Atomic int goes = -1; /* the descriptor of the channel to destroy at its next poll() */
static struct rdma_event_channel *going;

/* Replaces the C library's poll(), to act between the decision to sleep and the sleep. */
int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	const struct timespec t = { timeout_ms / 1000, timeout_ms % 1000 * 1000000L };
	/* glibc declares that poll() writes there only */
	const struct pollfd *volatile first = fds;
	int fd = n == 1 ? first->fd : -2;

	if (timeout_ms < 0 && atomic_compare_exchange_strong(&goes, &fd, -1))
		rdma_destroy_event_channel(going);
	return ppoll(fds, n, timeout_ms < 0 ? NULL : &t, NULL);
}

/* The thread sleeps, as in the kernel, until a signal without SA_RESTART. */
static bool gone_before_sleep(void)
{
	struct sigaction act = { .sa_handler = on_signal }, before;
	struct getter g = { .ch = rdma_create_event_channel() };

	MUST(g.ch);
	MUST_EQ(sigaction(SIGUSR1, &act, &before), 0);
	going = g.ch;
	atomic_store(&goes, g.ch->fd);
	MUST_EQ(pthread_create(&g.thread, NULL, getter_run, &g), 0);
	while (atomic_load(&goes) >= 0)
		usleep(1000);
	usleep(20000); /* can only miss the bug, never make one */
	MUST(!atomic_load(&g.done));
	for (int i = 0; i < WAIT_MS && !atomic_load(&g.done); i++) {
		pthread_kill(g.thread, SIGUSR1);
		usleep(1000);
	}
	MUST(atomic_load(&g.done));
	MUST_EQ(pthread_join(g.thread, NULL), 0);
	MUST_EQ(g.rc, -1);
	MUST_EQ(g.err, EINTR);
	return sigaction(SIGUSR1, &before, NULL) == 0;
}

const struct test_case man_cases[] = {
	CASE(descriptor),
	CASE(no_signals),
	CASE(level_v4),
	CASE(level_v6),
	CASE(edge_v4),
	CASE(edge_v6),
	CASE(blocks_v4),
	CASE(blocks_v6),
	CASE(interrupted),
	CASE(gone_before_sleep),
	CASE(several_threads),
	CASE(migrate_v4),
	CASE(migrate_v6),
	CASE(migrate_waits),
	CASE(migrate_to_synchronous_v4),
	CASE(migrate_to_synchronous_v6),
	CASE(migrate_listener_v4),
	CASE(migrate_listener_v6),
	CASE(migrate_request_v4),
	CASE(migrate_request_v6),
	CASE(names),
	CASE(devices),
	{ 0 },
};
