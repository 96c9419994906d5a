/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san */
/*
 * repoll_create(), repoll_ctl() and repoll_wait() of rsocket(7), which "take the same parameters as
 * that used for sockets": as epoll(7), with rsockets and other descriptors in one set.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <rdma/rsocket.h>
#include <sys/eventfd.h>

#include "man.h"
#include "newer.h"

static socklen_t length_of(int family)
{
	return family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* ---- two connected rsockets of this process, and a set ---- */

static int set, end[2];

struct client {
	pthread_t thread;
	int family, socket, result;
	uint16_t port;
};

static void *connects(void *arg)
{
	struct client *c = arg;
	union address to = own(c->family, c->port);

	c->socket = rsocket(c->family, SOCK_STREAM, 0);
	c->result = rconnect(c->socket, &to.sa, length_of(c->family));
	return NULL;
}

static bool begin(int family)
{
	union address at = own(family, 0);
	struct client c = { .family = family };
	socklen_t len = sizeof(at);
	int l = rsocket(family, SOCK_STREAM, 0);

	MUST(!newer_missing);
	MUST(l >= 0 && !rbind(l, &at.sa, length_of(family)) && !rlisten(l, 4));
	MUST_EQ(rgetsockname(l, &at.sa, &len), 0);
	c.port = port_of(&at.sa);
	MUST(!pthread_create(&c.thread, NULL, connects, &c));
	MUST((end[0] = raccept(l, NULL, NULL)) >= 0);
	MUST(!pthread_join(c.thread, NULL) && !c.result);
	end[1] = c.socket;
	MUST_EQ(rclose(l), 0);
	MUST((set = v_repoll_create(EPOLL_CLOEXEC)) >= 0);
	return true;
}

/* Without lingering: a stream that ends by itself changes what later cases count. */
static bool finish(void)
{
	const struct linger none = { .l_onoff = 1 };

	MUST_EQ(rclose(set), 0);
	for (int i = 0; i < 2; i++)
		MUST_EQ(rsetsockopt(end[i], SOL_SOCKET, SO_LINGER, &none, sizeof(none)), 0);
	MUST_EQ(rclose(end[0]), 0);
	MUST_EQ(rclose(end[1]), 0);
	return true;
}

static int add(int fd, uint32_t events, uint64_t data)
{
	struct epoll_event e = { .events = events, .data.u64 = data };

	return v_repoll_ctl(set, EPOLL_CTL_ADD, fd, &e);
}

/* The wait returns this event alone. */
static bool one(int timeout, uint32_t events, uint64_t data)
{
	struct epoll_event e[4] = { 0 };

	MUST_EQ(v_repoll_wait(set, e, 4, timeout), 1);
	MUST_EQ(e[0].events, events);
	MUST_EQ(e[0].data.u64, data);
	return true;
}

static bool nothing_now(void)
{
	struct epoll_event e;

	MUST_EQ(v_repoll_wait(set, &e, 1, 0), 0);
	return true;
}

/* ---- events ---- */

/* What was asked for, with its data, until it is taken. */
static bool readiness(int family)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLOUT, .data.u64 = UINT64_MAX };
	char c;

	MUST(begin(family));
	MUST_EQ(add(end[0], EPOLLIN, 0x123456789abcdef), 0);
	MUST(nothing_now());
	MUST_EQ(rsend(end[1], "x", 1, 0), 1);
	for (int i = 0; i < 3; i++)
		MUST(one(WAIT_MS, EPOLLIN, 0x123456789abcdef));
	MUST_EQ(v_repoll_ctl(set, EPOLL_CTL_MOD, end[0], &e), 0);
	MUST(one(WAIT_MS, EPOLLIN | EPOLLOUT, UINT64_MAX));
	MUST_EQ(rrecv(end[0], &c, 1, 0), 1);
	MUST(one(WAIT_MS, EPOLLOUT, UINT64_MAX));
	MUST_EQ(v_repoll_ctl(set, EPOLL_CTL_DEL, end[0], NULL), 0);
	MUST(nothing_now());
	return finish();
}
BOTH(readiness)

/* The peer's end is an event that nobody asks for. */
static bool hang_up(int family)
{
	struct epoll_event e;

	MUST(begin(family));
	MUST_EQ(add(end[0], EPOLLIN | EPOLLRDHUP, 1), 0);
	MUST_EQ(rshutdown(end[1], SHUT_RDWR), 0);
	do {
		MUST_EQ(v_repoll_wait(set, &e, 1, WAIT_MS), 1);
	} while (!(e.events & EPOLLHUP) && rshutdown(end[0], SHUT_RDWR) == 0);
	MUST(e.events & EPOLLIN && e.events & EPOLLRDHUP);
	return finish();
}
BOTH(hang_up)

/* Reported once, until EPOLL_CTL_MOD. */
static bool one_shot(void)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLONESHOT, .data.u64 = 5 };

	MUST(begin(AF_INET));
	MUST_EQ(add(end[0], EPOLLIN | EPOLLONESHOT, 4), 0);
	MUST_EQ(rsend(end[1], "x", 1, 0), 1);
	MUST(one(WAIT_MS, EPOLLIN, 4));
	MUST(nothing_now());
	MUST_EQ(v_repoll_ctl(set, EPOLL_CTL_MOD, end[0], &e), 0);
	MUST(one(WAIT_MS, EPOLLIN, 5));
	MUST(nothing_now());
	return finish();
}

/* Both kinds; with room for one event each gets its turn. */
static bool both_kinds(void)
{
	int event = eventfd(1, EFD_CLOEXEC), seen[2] = { 0 };
	struct epoll_event e;

	MUST(event >= 0 && begin(AF_INET));
	MUST_EQ(add(event, EPOLLIN, 0), 0);
	MUST(one(0, EPOLLIN, 0));
	MUST_EQ(add(end[0], EPOLLOUT, 1), 0);
	for (int i = 0; i < 10; i++) {
		MUST_EQ(v_repoll_wait(set, &e, 1, WAIT_MS), 1);
		MUST(e.data.u64 < 2);
		seen[e.data.u64]++;
	}
	MUST(seen[0] == 5 && seen[1] == 5);
	/* a closed descriptor leaves the set */
	MUST_EQ(close(event), 0);
	for (int i = 0; i < 3; i++)
		MUST(one(WAIT_MS, EPOLLOUT, 1));
	MUST_EQ(v_repoll_ctl(set, EPOLL_CTL_DEL, event, NULL), -1);
	MUST_EQ(errno, EBADF);
	return finish();
}

/* ---- waiting ---- */

static long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

/* A time-out is never early, with and without rsockets in the set. */
static bool time_outs(void)
{
	struct epoll_event e;

	MUST(begin(AF_INET));
	for (int i = 0; i < 2; i++) {
		const long long start = now_ms();

		MUST_EQ(v_repoll_wait(set, &e, 1, 50), 0);
		MUST(now_ms() - start >= 49);
		MUST_EQ(add(end[i], EPOLLIN, 0), 0);
	}
	return finish();
}

struct sleeper {
	pthread_t thread;
	int result, error;
	struct epoll_event event;
};

static void *sleeps(void *arg)
{
	struct sleeper *s = arg;

	s->result = v_repoll_wait(set, &s->event, 1, -1);
	s->error = errno;
	return NULL;
}

/* Two threads, each of which has found no event and has made the descriptor that it sleeps for. */
static bool sleepers_begin(struct sleeper s[2])
{
	const long long until = now_ms() + WAIT_MS;
	const int before = open_fds();

	for (int i = 0; i < 2; i++)
		MUST(!pthread_create(&s[i].thread, NULL, sleeps, &s[i]));
	while (open_fds() < before + 2)
		MUST(now_ms() < until);
	return true;
}

static bool sleepers_return(struct sleeper s[2], int result, int error)
{
	for (int i = 0; i < 2; i++) {
		MUST(!pthread_join(s[i].thread, NULL));
		MUST_EQ(s[i].result, result);
		MUST(result >= 0 || s[i].error == error);
	}
	return true;
}

/* A message, an entry that is added, and the end of the set wake all threads that wait. */
static bool wakes(void)
{
	struct sleeper s[2];

	MUST(begin(AF_INET));
	MUST_EQ(add(end[0], EPOLLIN, 1), 0);
	MUST(sleepers_begin(s));
	MUST_EQ(rsend(end[1], "x", 1, 0), 1);
	MUST(sleepers_return(s, 1, 0));
	MUST_EQ(v_repoll_ctl(set, EPOLL_CTL_DEL, end[0], NULL), 0);
	MUST(sleepers_begin(s));
	MUST_EQ(add(end[1], EPOLLOUT, 2), 0);
	MUST(sleepers_return(s, 1, 0));
	MUST_EQ(s[0].event.data.u64, 2);
	MUST_EQ(v_repoll_ctl(set, EPOLL_CTL_DEL, end[1], NULL), 0);
	MUST(sleepers_begin(s));
	MUST_EQ(rclose(set), 0);
	MUST(sleepers_return(s, -1, EBADF));
	MUST((set = v_repoll_create(0)) >= 0);
	return finish();
}

/* rclose() takes an rsocket out of its sets: its number may be another's at once. */
static bool closed_rsocket(void)
{
	const int before = open_fds();
	int s;

	MUST(begin(AF_INET));
	MUST((s = rsocket(AF_INET, SOCK_DGRAM, 0)) >= 0);
	MUST_EQ(add(s, EPOLLOUT, 1), 0);
	MUST(one(WAIT_MS, EPOLLOUT, 1));
	MUST_EQ(rclose(s), 0);
	MUST_EQ(dup2(STDOUT_FILENO, s), s); /* writable, and of the same number */
	MUST(nothing_now());
	MUST_EQ(add(s, EPOLLOUT, 2), 0);
	MUST(one(0, EPOLLOUT, 2));
	MUST_EQ(close(s), 0);
	MUST(finish());
	MUST(open_fds() <= before + 8); /* what the library keeps */
	return true;
}

/* A cancelled thread leaves the set usable. */
static bool cancelled(void)
{
	struct sleeper s[2];
	int before, after;
	void *result;

	MUST(begin(AF_INET));
	MUST_EQ(add(end[0], EPOLLIN, 1), 0);
	before = open_fds();
	MUST(sleepers_begin(s));
	for (int i = 0; i < 2; i++) {
		MUST(!pthread_cancel(s[i].thread));
		MUST(!pthread_join(s[i].thread, &result) && result == PTHREAD_CANCELED);
	}
	after = open_fds();
	MUST_EQ(after, before);
	MUST_EQ(rsend(end[1], "x", 1, 0), 1);
	MUST(one(WAIT_MS, EPOLLIN, 1));
	return finish();
}

/* Many entries, in and out. */
static bool many(void)
{
	int fd[300];

	MUST(begin(AF_INET));
	for (int i = 0; i < 300; i++) {
		MUST((fd[i] = eventfd(i == 250, EFD_CLOEXEC)) >= 0);
		MUST_EQ(add(fd[i], EPOLLIN, (uint64_t)i), 0);
	}
	MUST(one(WAIT_MS, EPOLLIN, 250));
	for (int i = 0; i < 250; i++)
		MUST_EQ(v_repoll_ctl(set, EPOLL_CTL_DEL, fd[i], NULL), 0);
	MUST(one(WAIT_MS, EPOLLIN, 250));
	for (int i = 0; i < 300; i++)
		MUST_EQ(close(fd[i]), 0);
	MUST(nothing_now());
	return finish();
}

/* ---- errors, as of epoll_ctl(2) and epoll_wait(2) ---- */

static bool errors(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	int other;

	MUST(begin(AF_INET));
	MUST((other = v_repoll_create(0)) >= 0);
	MUST_ERR(v_repoll_create(-1), EINVAL);
	MUST_ERR(v_repoll_create(O_APPEND), EINVAL);
	MUST_ERR(v_repoll_ctl(-1, EPOLL_CTL_ADD, end[0], &e), EBADF);
	MUST_ERR(v_repoll_ctl(end[0], EPOLL_CTL_ADD, end[1], &e), EBADF);
	MUST_ERR(v_repoll_ctl(set, EPOLL_CTL_ADD, -1, &e), EBADF);
	MUST_ERR(v_repoll_ctl(set, EPOLL_CTL_ADD, 1000, &e), EBADF);
	MUST_ERR(v_repoll_ctl(set, EPOLL_CTL_ADD, set, &e), EINVAL);
	MUST_ERR(v_repoll_ctl(set, EPOLL_CTL_ADD, other, &e), EINVAL);
	MUST_ERR(v_repoll_ctl(set, -1, end[0], &e), EINVAL);
	MUST_ERR(v_repoll_ctl(set, EPOLL_CTL_ADD, end[0], NULL), EFAULT);
	MUST_ERR(v_repoll_ctl(set, EPOLL_CTL_MOD, end[0], &e), ENOENT);
	MUST_ERR(v_repoll_ctl(set, EPOLL_CTL_DEL, end[0], &e), ENOENT);
	MUST_EQ(add(end[0], EPOLLIN, 0), 0);
	MUST_ERR(add(end[0], EPOLLIN, 0), EEXIST);
	MUST_ERR(v_repoll_wait(set, &e, 0, 0), EINVAL);
	MUST_ERR(v_repoll_wait(set, &e, -1, 0), EINVAL);
	MUST_ERR(v_repoll_wait(set, &e, INT32_MAX, 0), EINVAL);
	MUST_ERR(v_repoll_wait(set, NULL, 1, 0), EFAULT);
	MUST_ERR(v_repoll_wait(-1, &e, 1, 0), EBADF);
	MUST_ERR(v_repoll_wait(end[0], &e, 1, 0), EBADF);
	MUST_EQ(rclose(other), 0);
	MUST_ERR(v_repoll_wait(other, &e, 1, 0), EBADF);
	MUST_ERR(rclose(other), EBADF);
	return finish();
}

const struct test_case man_cases[] = {
	CASE(readiness_v4),
	CASE(readiness_v6),
	CASE(hang_up_v4),
	CASE(hang_up_v6),
	CASE(one_shot),
	CASE(both_kinds),
	CASE(time_outs),
	CASE(wakes),
	CASE(closed_rsocket),
	CASE(cancelled),
	CASE(many),
	CASE(errors),
	{ 0 },
};
