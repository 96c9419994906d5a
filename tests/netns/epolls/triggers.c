/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* When a socket has events: level and edge triggered, once, at its beginning and its end. */
#define _GNU_SOURCE
#include <stdint.h>
#include <time.h>

#include "epolls.h"

bool level_in(void)
{
	CHECK(ends_open());
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.server, EPOLLIN));
	CHECK(quiet(end.set));
	CHECK(send(end.client, "abcd", 4, 0) == 4);
	CHECK(happens(end.set, end.server) == EPOLLIN);
	CHECK(happens(end.set, end.server) == EPOLLIN);
	CHECK(drain(end.server, 3));
	CHECK(happens(end.set, end.server) == EPOLLIN);
	CHECK(drain(end.server, 1));
	CHECK(quiet(end.set));
	/* data that is there already at EPOLL_CTL_ADD */
	CHECK(send(end.client, "ef", 2, 0) == 2);
	CHECK(happens(end.set, end.server) == EPOLLIN);
	CHECK(!ctl(end.set, EPOLL_CTL_DEL, end.server, 0));
	CHECK(quiet(end.set));
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.server, EPOLLIN | EPOLLOUT));
	CHECK(happens(end.set, end.server) == (EPOLLIN | EPOLLOUT));
	CHECK(!ctl(end.set, EPOLL_CTL_MOD, end.server, EPOLLOUT));
	CHECK(happens(end.set, end.server) == EPOLLOUT);
	CHECK(!ctl(end.set, EPOLL_CTL_MOD, end.server, 0));
	CHECK(quiet(end.set));
	return true;
}

bool level_out(void)
{
	struct epoll_event event;
	size_t n;

	CHECK(ends_open() && nonblocking(end.client));
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.client, EPOLLOUT));
	CHECK(happens(end.set, end.client) == EPOLLOUT);
	for (int i = 0; i < 5; i++) {
		n = fill(end.client);
		CHECK(n);
		/* TCP takes more once the peer's kernel has acknowledged some. */
		for (int more = 0; epoll_wait(end.set, &event, 1, NOT_MS) == 1; more++) {
			CHECK(more < 50);
			n += fill(end.client);
		}
		CHECK(drain(end.server, n));
		CHECK(happens(end.set, end.client) == EPOLLOUT);
	}
	return true;
}

bool edge_in(void)
{
	CHECK(ends_open());
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.server, EPOLLIN | EPOLLET));
	for (int i = 0; i < 20; i++) {
		CHECK(send(end.client, "abcd", 4, 0) == 4);
		CHECK(happens(end.set, end.server) == EPOLLIN);
	}
	CHECK(quiet(end.set));
	CHECK(drain(end.server, 60));
	CHECK(quiet(end.set));
	CHECK(send(end.client, "e", 1, 0) == 1);
	CHECK(happens(end.set, end.server) == EPOLLIN);
	CHECK(drain(end.server, 21));
	CHECK(quiet(end.set));
	/* EPOLL_CTL_MOD checks again */
	CHECK(send(end.client, "f", 1, 0) == 1);
	CHECK(happens(end.set, end.server) == EPOLLIN);
	CHECK(!ctl(end.set, EPOLL_CTL_MOD, end.server, EPOLLIN | EPOLLET));
	CHECK(happens(end.set, end.server) == EPOLLIN);
	CHECK(quiet(end.set));
	return true;
}

bool edge_out(void)
{
	size_t n;

	CHECK(ends_open() && nonblocking(end.client));
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.client, EPOLLOUT | EPOLLET));
	CHECK(happens(end.set, end.client) == EPOLLOUT);
	CHECK(quiet(end.set));
	for (int i = 0; i < 20; i++) {
		n = fill(end.client);
		CHECK(n);
		CHECK(drain(end.server, n));
		CHECK(happens(end.set, end.client) & EPOLLOUT);
	}
	return true;
}

/* Programs treat a short write like EAGAIN: there must be an edge. */
bool edge_after_a_short_write(void)
{
	static const char bytes[8 << 20];
	ssize_t n;

	CHECK(ends_open() && nonblocking(end.client));
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.client, EPOLLOUT | EPOLLET));
	for (int i = 0; i < 10; i++) {
		CHECK(happens(end.set, end.client) & EPOLLOUT);
		n = send(end.client, bytes, sizeof(bytes), 0);
		CHECK(n > 0 && (size_t)n < sizeof(bytes));
		CHECK(drain(end.server, (size_t)n));
	}
	return true;
}

bool edge_listener(void)
{
	int fd, more[3];

	CHECK(ends_listen() && nonblocking(end.listener));
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.listener, EPOLLIN | EPOLLET));
	CHECK(quiet(end.set));
	for (int i = 0; i < 3; i++) {
		more[i] = socket(at.any.sa_family, SOCK_STREAM, 0);
		CHECK(!connect(more[i], &at.any, at_bytes));
		CHECK(happens(end.set, end.listener) == EPOLLIN);
	}
	CHECK(quiet(end.set));
	for (int i = 0; i < 3; i++) {
		fd = accept4(end.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		CHECK(fd >= 0);
		CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK && fcntl(fd, F_GETFD) & FD_CLOEXEC);
		CHECK_ERRNO(recv(fd, &(char){ 0 }, 1, 0), EAGAIN);
		close(fd);
		close(more[i]);
	}
	CHECK_ERRNO(accept(end.listener, NULL, NULL), EAGAIN);
	CHECK(!ctl(end.set, EPOLL_CTL_MOD, end.listener, EPOLLIN));
	CHECK(quiet(end.set));
	end.client = socket(at.any.sa_family, SOCK_STREAM, 0);
	CHECK(!connect(end.client, &at.any, at_bytes));
	CHECK(happens(end.set, end.listener) == EPOLLIN);
	CHECK(happens(end.set, end.listener) == EPOLLIN);
	end.server = accept(end.listener, NULL, NULL);
	CHECK(end.server >= 0);
	CHECK(quiet(end.set));
	return true;
}

bool oneshot(void)
{
	CHECK(ends_open());
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.server, EPOLLIN | EPOLLONESHOT));
	CHECK(send(end.client, "ab", 2, 0) == 2);
	CHECK(happens(end.set, end.server) == EPOLLIN);
	CHECK(send(end.client, "ab", 2, 0) == 2);
	CHECK(quiet(end.set));
	CHECK(!ctl(end.set, EPOLL_CTL_MOD, end.server, EPOLLIN | EPOLLONESHOT));
	CHECK(happens(end.set, end.server) == EPOLLIN);
	CHECK(drain(end.server, 4));
	CHECK(!ctl(end.set, EPOLL_CTL_MOD, end.server, EPOLLIN | EPOLLONESHOT));
	CHECK(quiet(end.set));
	CHECK(send(end.client, "c", 1, 0) == 1);
	CHECK(happens(end.set, end.server) == EPOLLIN);
	return true;
}

bool half_closed(void)
{
	unsigned int all = EPOLLIN | EPOLLRDHUP;

	CHECK(ends_open());
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.server, all | EPOLLET));
	CHECK(send(end.client, "ab", 2, 0) == 2);
	CHECK(happens(end.set, end.server) == EPOLLIN);
	CHECK(!shutdown(end.client, SHUT_WR));
	CHECK(happens(end.set, end.server) == all);
	CHECK(quiet(end.set));
	CHECK(drain(end.server, 2));
	CHECK(recv(end.server, &(char){ 0 }, 1, 0) == 0);
	CHECK(!ctl(end.set, EPOLL_CTL_MOD, end.server, all | EPOLLOUT));
	CHECK(happens(end.set, end.server) == (all | EPOLLOUT));
	/* the other direction works */
	CHECK(send(end.server, "cd", 2, 0) == 2);
	CHECK(drain(end.client, 2));
	CHECK(!shutdown(end.server, SHUT_WR));
	CHECK(!ctl(end.set, EPOLL_CTL_MOD, end.server, 0));
	CHECK(happens(end.set, end.server) == EPOLLHUP);
	return true;
}

/* The kernel says EPOLLHUP when this end is closed, too; rsockets end at once. */
bool closed_by_peer(void)
{
	CHECK(ends_open());
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.server, EPOLLIN | EPOLLRDHUP));
	close(end.client);
	end.client = -1;
	CHECK((happens(end.set, end.server) & ~EPOLLHUP) == (EPOLLIN | EPOLLRDHUP));
	CHECK(recv(end.server, &(char){ 0 }, 1, 0) == 0);
	return true;
}

bool connecting(void)
{
	socklen_t n = sizeof(int);
	int error = -1;

	CHECK(ends_listen());
	end.client = socket(at.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	CHECK(end.client >= 0);
	CHECK(!connect(end.client, &at.any, at_bytes) || errno == EINPROGRESS);
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.client, EPOLLOUT | EPOLLIN | EPOLLET));
	CHECK(happens(end.set, end.client) == EPOLLOUT);
	CHECK(!getsockopt(end.client, SOL_SOCKET, SO_ERROR, &error, &n) && !error);
	end.server = accept(end.listener, NULL, NULL);
	CHECK(end.server >= 0);
	CHECK(send(end.server, "a", 1, 0) == 1);
	CHECK(happens(end.set, end.client) == (EPOLLIN | EPOLLOUT));
	return true;
}

bool refused(void)
{
	socklen_t n = sizeof(int);
	int error = -1;

	CHECK(ends_listen());
	close(end.listener);
	end.listener = -1;
	end.client = socket(at.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	CHECK(connect(end.client, &at.any, at_bytes) == -1);
	if (errno == ECONNREFUSED)
		return true;
	CHECK(errno == EINPROGRESS);
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.client, EPOLLOUT));
	CHECK((happens(end.set, end.client) | EPOLLOUT) == (EPOLLOUT | EPOLLERR | EPOLLHUP));
	CHECK(!getsockopt(end.client, SOL_SOCKET, SO_ERROR, &error, &n) && error == ECONNREFUSED);
	CHECK(happens(end.set, end.client) == (EPOLLOUT | EPOLLHUP));
	return true;
}

bool datagrams(void)
{
	socklen_t n = sizeof(at);
	char byte;

	end.set = epoll_create1(0);
	end.server = socket(at.any.sa_family, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	end.client = socket(at.any.sa_family, SOCK_DGRAM, 0);
	at.v4.sin_port = 0;
	CHECK(!bind(end.server, &at.any, at_bytes) && !getsockname(end.server, &at.any, &n));
	CHECK(!connect(end.client, &at.any, at_bytes));
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.server, EPOLLIN));
	CHECK(quiet(end.set));
	for (int i = 0; i < 20; i++) {
		CHECK(send(end.client, "a", 1, 0) == 1);
		CHECK(happens(end.set, end.server) == EPOLLIN);
		CHECK(recv(end.server, &byte, 1, 0) == 1);
		CHECK_ERRNO(recv(end.server, &byte, 1, 0), EAGAIN);
	}
	CHECK(quiet(end.set));
	CHECK(!ctl(end.set, EPOLL_CTL_MOD, end.server, EPOLLIN | EPOLLET));
	for (int i = 0; i < 5; i++) {
		CHECK(send(end.client, "a", 1, 0) == 1);
		CHECK(happens(end.set, end.server) == EPOLLIN);
	}
	CHECK(quiet(end.set));
	return true;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* A server of one thread closes a connection whose peer reads nothing yet, and serves another. */
bool close_does_not_wait(void)
{
	enum { MESSAGES = 500, AT_ONCE_MS = 1000 };
	uint64_t begun_ms;
	int client, server;
	size_t n = 0;

	CHECK(ends_open() && nonblocking(end.server));
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.server, EPOLLOUT));
	CHECK(happens(end.set, end.server) == EPOLLOUT);
	while (n < MESSAGES && send(end.server, "x", 1, 0) == 1)
		n++;
	CHECK(n == MESSAGES || errno == EAGAIN);
	begun_ms = now_ms();
	CHECK(!shutdown(end.server, SHUT_WR) && !close(end.server));
	end.server = -1;
	CHECK(now_ms() - begun_ms < AT_ONCE_MS);
	CHECK(ends_connect(&client, &server));
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, server, EPOLLIN));
	CHECK(send(client, "abc", 3, 0) == 3);
	CHECK(happens(end.set, server) == EPOLLIN && drain(server, 3));
	close(client);
	close(server);
	CHECK(drain(end.client, n));
	CHECK(recv(end.client, &(char){ 0 }, 1, 0) == 0);
	return true;
}
