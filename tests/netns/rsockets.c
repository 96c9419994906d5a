/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What rsocket(7) promises, and what a hostile peer gets: a line a case, as tests/netns has them.
 *
 *	rsockets ADDRESS [CASE]
 *
 * Both ends are in this process, at the address, which is of an interface of ours. Each case
 * listens at a port that the library draws.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static union {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
} at;
static socklen_t at_bytes;
static int failures;
static const char *pattern = "*";

/* Says what did not hold, once a case is enough. */
#define CHECK(condition)                                                                     \
	do {                                                                                 \
		if (!(condition)) {                                                          \
			printf("# line %d: %s, errno %d (%s)\n", __LINE__, #condition, errno, \
			       strerror(errno));                                             \
			return false;                                                        \
		}                                                                            \
	} while (0)
#define CHECK_ERRNO(call, number) CHECK((call) == -1 && errno == (number))

static struct {
	int listener, server, client;
} pair;

static bool pair_listen(int backlog)
{
	socklen_t n = sizeof(at);
	int one = 1;

	at.v4.sin_port = 0;
	pair.listener = rsocket(at.any.sa_family, SOCK_STREAM, 0);
	CHECK(pair.listener >= 0);
	CHECK(!rsetsockopt(pair.listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
	CHECK(!rbind(pair.listener, &at.any, at_bytes));
	CHECK(!rlisten(pair.listener, backlog));
	CHECK(!rgetsockname(pair.listener, &at.any, &n) && n == at_bytes && at.v4.sin_port);
	return true;
}

static bool pair_connect(void)
{
	pair.client = rsocket(at.any.sa_family, SOCK_STREAM, 0);
	CHECK(pair.client >= 0);
	CHECK(!rconnect(pair.client, &at.any, at_bytes));
	pair.server = raccept(pair.listener, NULL, NULL);
	CHECK(pair.server >= 0);
	return true;
}

static bool pair_open(void)
{
	return pair_listen(5) && pair_connect();
}

static void pair_close(void)
{
	int *fds[] = { &pair.client, &pair.server, &pair.listener };

	for (size_t i = 0; i < 3; i++) {
		if (*fds[i] >= 0)
			rclose(*fds[i]);
		*fds[i] = -1;
	}
}

static short ready(int fd, short events, int ms)
{
	struct pollfd p = { .fd = fd, .events = events };

	return rpoll(&p, 1, ms) == 1 ? p.revents : 0;
}

/* ---- what calls answer ---- */

static bool socket_kinds(void)
{
	char byte = 0;

	CHECK_ERRNO(rsocket(AF_UNIX, SOCK_STREAM, 0), ENOTSUP);
	CHECK_ERRNO(rsocket(AF_INET, SOCK_RAW, 0), ENOTSUP);
	CHECK_ERRNO(rsocket(AF_INET, SOCK_STREAM, IPPROTO_UDP), ENOTSUP);
	CHECK_ERRNO(rclose(-1), EBADF);
	CHECK_ERRNO(rclose(0), EBADF);
	CHECK_ERRNO(rsend(0, &byte, 1, 0), EBADF);
	pair.client = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_TCP);
	CHECK(pair.client >= 0 && rfcntl(pair.client, F_GETFL) & O_NONBLOCK);
	CHECK(!rfcntl(pair.client, F_SETFL, 0) && !(rfcntl(pair.client, F_GETFL) & O_NONBLOCK));
	CHECK_ERRNO(rsend(pair.client, &byte, 1, 0), ENOTCONN);
	CHECK_ERRNO(rrecv(pair.client, &byte, 1, 0), ENOTCONN);
	CHECK_ERRNO(rshutdown(pair.client, SHUT_WR), ENOTCONN);
	CHECK_ERRNO(raccept(pair.client, NULL, NULL), EINVAL);
	return true;
}

static bool connect_refused(void)
{
	int err = 1;
	socklen_t n = sizeof(err);

	CHECK(pair_listen(1));
	CHECK(!rclose(pair.listener));
	pair.listener = -1;
	pair.client = rsocket(at.any.sa_family, SOCK_STREAM, 0);
	CHECK_ERRNO(rconnect(pair.client, &at.any, at_bytes), ECONNREFUSED);
	CHECK_ERRNO(rconnect(pair.client, &at.any, at_bytes), ECONNREFUSED);
	CHECK(!rfcntl(pair.client, F_SETFL, O_NONBLOCK));
	CHECK_ERRNO(rconnect(pair.client, &at.any, at_bytes), EINPROGRESS);
	CHECK(ready(pair.client, POLLOUT, 10000) & POLLOUT);
	CHECK(!rgetsockopt(pair.client, SOL_SOCKET, SO_ERROR, &err, &n) && err == ECONNREFUSED);
	CHECK(!rgetsockopt(pair.client, SOL_SOCKET, SO_ERROR, &err, &n) && err == 0);
	return true;
}

static bool connect_nonblocking(void)
{
	char byte = 'x';

	CHECK(pair_listen(1));
	CHECK(!rfcntl(pair.listener, F_SETFL, O_NONBLOCK));
	CHECK_ERRNO(raccept(pair.listener, NULL, NULL), EAGAIN);
	pair.client = rsocket(at.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	CHECK_ERRNO(rconnect(pair.client, &at.any, at_bytes), EINPROGRESS);
	CHECK(ready(pair.listener, POLLIN, 10000) == POLLIN);
	pair.server = raccept(pair.listener, NULL, NULL);
	CHECK(pair.server >= 0);
	CHECK(ready(pair.client, POLLOUT | POLLIN, 10000) == POLLOUT);
	CHECK(!rconnect(pair.client, &at.any, at_bytes));
	CHECK_ERRNO(rconnect(pair.client, &at.any, at_bytes), EISCONN);
	CHECK_ERRNO(rrecv(pair.client, &byte, 1, 0), EAGAIN);
	CHECK(rsend(pair.client, &byte, 1, 0) == 1);
	CHECK(rrecv(pair.server, &byte, 1, 0) == 1 && byte == 'x');
	return true;
}

static bool names(void)
{
	struct sockaddr_storage a, b;
	socklen_t n = sizeof(a), m = sizeof(b);

	CHECK(pair_open());
	CHECK(!rgetpeername(pair.client, (struct sockaddr *)&a, &n) && n == at_bytes);
	CHECK(((struct sockaddr_in *)&a)->sin_port == at.v4.sin_port);
	n = sizeof(a);
	CHECK(!rgetpeername(pair.server, (struct sockaddr *)&a, &n));
	CHECK(!rgetsockname(pair.client, (struct sockaddr *)&b, &m));
	CHECK(n == m && !memcmp(&a, &b, n));
	n = 4;
	CHECK(!rgetsockname(pair.client, (struct sockaddr *)&b, &n) && n == at_bytes);
	return true;
}

static bool bind_in_use(void)
{
	CHECK(pair_listen(1));
	pair.client = rsocket(at.any.sa_family, SOCK_STREAM, 0);
	CHECK_ERRNO(rbind(pair.client, &at.any, at_bytes), EADDRINUSE);
	return true;
}

/* ---- data ---- */

static bool peek_and_vectors(void)
{
	char a[4], b[8];
	struct iovec in[2] = { { a, sizeof(a) }, { b, sizeof(b) } };
	struct iovec out[3] = { { "ab", 2 }, { "", 0 }, { "cdefgh", 6 } };

	CHECK(pair_open());
	CHECK(rwritev(pair.client, out, 3) == 8);
	CHECK(ready(pair.server, POLLIN, 10000) == POLLIN);
	CHECK(rrecv(pair.server, b, 8, MSG_PEEK) == 8 && !memcmp(b, "abcdefgh", 8));
	CHECK(rreadv(pair.server, in, 2) == 8);
	CHECK(!memcmp(a, "abcd", 4) && !memcmp(b, "efgh", 4));
	CHECK_ERRNO(rrecv(pair.server, b, 1, MSG_DONTWAIT), EAGAIN);
	CHECK_ERRNO(rrecv(pair.server, b, 1, MSG_PEEK | MSG_DONTWAIT), EAGAIN);
	return true;
}

enum { BULK = 5000000 };

static void *bulk_send(void *of)
{
	uint8_t *bytes = malloc(BULK);

	for (int i = 0; i < BULK; i++)
		bytes[i] = (uint8_t)(i * 11 + (i >> 9));
	*(ssize_t *)of = rsend(pair.client, bytes, BULK, 0);
	free(bytes);
	return NULL;
}

static bool wait_for_all(void)
{
	uint8_t *bytes = malloc(BULK);
	ssize_t sent, got;
	pthread_t sender;
	int wrong = 0;

	CHECK(pair_open());
	pthread_create(&sender, NULL, bulk_send, &sent);
	got = rrecv(pair.server, bytes, BULK, MSG_WAITALL);
	pthread_join(sender, NULL);
	for (int i = 0; i < BULK; i++)
		wrong += bytes[i] != (uint8_t)(i * 11 + (i >> 9));
	free(bytes);
	CHECK(got == BULK && sent == BULK && !wrong);
	return true;
}

static bool full(void)
{
	static char bytes[1 << 20];
	ssize_t n, sent = 0, got = 0;

	CHECK(pair_open());
	CHECK(!rfcntl(pair.client, F_SETFL, O_NONBLOCK));
	while ((n = rsend(pair.client, bytes, sizeof(bytes), 0)) > 0)
		sent += n;
	CHECK(n == -1 && errno == EAGAIN && sent > 0);
	CHECK(!ready(pair.client, POLLOUT, 0));
	while (got < sent && (n = rrecv(pair.server, bytes, sizeof(bytes), 0)) > 0)
		got += n;
	CHECK(got == sent);
	CHECK(ready(pair.client, POLLOUT, 10000) == POLLOUT);
	return true;
}

static bool half_closed(void)
{
	char bytes[8];

	CHECK(pair_open());
	CHECK(rsend(pair.client, "last", 4, 0) == 4);
	CHECK(!rshutdown(pair.client, SHUT_WR));
	CHECK_ERRNO(rsend(pair.client, "x", 1, MSG_NOSIGNAL), EPIPE);
	CHECK(rrecv(pair.server, bytes, 8, 0) == 4);
	CHECK(ready(pair.server, POLLIN | POLLRDHUP, 10000) == (POLLIN | POLLRDHUP));
	CHECK(rrecv(pair.server, bytes, 8, 0) == 0);
	CHECK(rsend(pair.server, "answer", 6, 0) == 6);
	CHECK(rrecv(pair.client, bytes, 8, 0) == 6);
	CHECK(!rclose(pair.server));
	pair.server = -1;
	CHECK(rrecv(pair.client, bytes, 8, 0) == 0);
	return true;
}

static bool closed_by_peer(void)
{
	char bytes[8];

	CHECK(pair_open());
	CHECK(rsend(pair.client, "last", 4, 0) == 4);
	CHECK(!rclose(pair.client));
	pair.client = -1;
	CHECK(ready(pair.server, POLLIN, 10000) == POLLIN);
	CHECK(rrecv(pair.server, bytes, 2, 0) == 2);
	CHECK(rrecv(pair.server, bytes, 8, 0) == 2);
	CHECK(rrecv(pair.server, bytes, 8, 0) == 0);
	CHECK(ready(pair.server, POLLIN, 10000) == (POLLIN | POLLHUP));
	CHECK_ERRNO(rsend(pair.server, "x", 1, MSG_NOSIGNAL), ECONNRESET);
	return true;
}

static bool timeouts(void)
{
	struct timeval t = { .tv_usec = 50000 };
	socklen_t n = sizeof(t);
	char byte;

	CHECK(pair_open());
	CHECK(!rsetsockopt(pair.server, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)));
	t.tv_usec = 0;
	CHECK(!rgetsockopt(pair.server, SOL_SOCKET, SO_RCVTIMEO, &t, &n) && t.tv_usec == 50000);
	CHECK_ERRNO(rrecv(pair.server, &byte, 1, 0), EAGAIN);
	return true;
}

/* ---- waiting ---- */

static void *receive_one(void *of)
{
	char byte;

	*(ssize_t *)of = rrecv(pair.server, &byte, 1, 0);
	return NULL;
}

static void wait_a_moment(void)
{
	/* Not needed for the result: it makes the other thread likely to sleep. */
	rpoll(NULL, 0, 20);
}

static bool closed_while_waiting(void)
{
	ssize_t got = 5;
	pthread_t reader;

	CHECK(pair_open());
	pthread_create(&reader, NULL, receive_one, &got);
	wait_a_moment();
	CHECK(!rclose(pair.server));
	pair.server = -1;
	pthread_join(reader, NULL);
	CHECK(got <= 0);
	return true;
}

static void *poll_one(void *of)
{
	*(short *)of = ready(pair.server, POLLIN, 10000);
	return NULL;
}

static bool several_wait(void)
{
	short told[3] = { 0 };
	pthread_t threads[3];
	char byte;

	CHECK(pair_open());
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, poll_one, &told[i]);
	wait_a_moment();
	CHECK(rsend(pair.client, "x", 1, 0) == 1);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CHECK(told[0] == POLLIN && told[1] == POLLIN && told[2] == POLLIN);
	CHECK(rrecv(pair.server, &byte, 1, 0) == 1);
	return true;
}

static bool poll_of_both_kinds(void)
{
	struct timeval none = { 0 };
	struct pollfd p[3];
	fd_set reads, writes;
	int pipes[2];
	char byte;

	CHECK(pair_open() && !pipe(pipes));
	p[0] = (struct pollfd){ .fd = pair.server, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = pipes[0], .events = POLLIN };
	p[2] = (struct pollfd){ .fd = -1, .events = POLLIN };
	CHECK(rpoll(p, 3, 0) == 0);
	CHECK(write(pipes[1], "x", 1) == 1);
	CHECK(rpoll(p, 3, 10000) == 1 && p[1].revents == POLLIN && !p[0].revents);
	CHECK(rsend(pair.client, "x", 1, 0) == 1);
	CHECK(ready(pair.server, POLLIN, 10000));
	CHECK(rpoll(p, 3, -1) == 2 && p[0].revents == POLLIN);
	FD_ZERO(&reads);
	FD_ZERO(&writes);
	FD_SET(pair.server, &reads);
	FD_SET(pipes[0], &reads);
	FD_SET(pair.client, &reads);
	FD_SET(pair.client, &writes);
	CHECK(rselect(FD_SETSIZE, &reads, &writes, NULL, &none) == 3);
	CHECK(FD_ISSET(pair.server, &reads) && FD_ISSET(pipes[0], &reads) &&
	      FD_ISSET(pair.client, &writes) && !FD_ISSET(pair.client, &reads));
	CHECK(rrecv(pair.server, &byte, 1, 0) == 1);
	close(pipes[0]);
	close(pipes[1]);
	return true;
}

static void on_signal(int number)
{
}

static void *signal_later(void *of)
{
	wait_a_moment();
	pthread_kill(*(pthread_t *)of, SIGUSR1);
	return NULL;
}

static bool interrupted(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	pthread_t self = pthread_self(), other;
	char byte;

	CHECK(pair_open());
	sigaction(SIGUSR1, &action, NULL);
	pthread_create(&other, NULL, signal_later, &self);
	CHECK_ERRNO(rrecv(pair.server, &byte, 1, 0), EINTR);
	pthread_join(other, NULL);
	signal(SIGUSR1, SIG_DFL);
	return true;
}

/* ---- options ---- */

static bool options(void)
{
	static const struct {
		int level, name, set, want;
	} cases[] = {
		{ SOL_SOCKET, SO_RCVBUF, 40000, 80000 }, { SOL_SOCKET, SO_SNDBUF, 50000, 100000 },
		{ SOL_SOCKET, SO_OOBINLINE, 1, 1 },	 { SOL_SOCKET, SO_KEEPALIVE, 1, 1 },
		{ SOL_SOCKET, SO_REUSEADDR, 1, 1 },	 { IPPROTO_TCP, TCP_NODELAY, 1, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 77, 77 },	 { SOL_RDMA, RDMA_SQSIZE, 100, 100 },
		{ SOL_RDMA, RDMA_RQSIZE, 200, 200 },	 { SOL_RDMA, RDMA_INLINE, 32, 32 },
		{ SOL_RDMA, RDMA_IOMAPSIZE, 16, 16 },
	};
	struct linger linger = { 1, 3 };
	int value;
	socklen_t n;

	pair.client = rsocket(at.any.sa_family, SOCK_STREAM, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		n = sizeof(value);
		CHECK(!rsetsockopt(pair.client, cases[i].level, cases[i].name, &cases[i].set, n));
		CHECK(!rgetsockopt(pair.client, cases[i].level, cases[i].name, &value, &n) &&
		      n == sizeof(value));
		if (value != cases[i].want)
			printf("# option %d of level %d is %d\n", cases[i].name, cases[i].level,
			       value);
		CHECK(value == cases[i].want);
	}
	CHECK(!rsetsockopt(pair.client, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	n = sizeof(linger);
	linger.l_linger = 0;
	CHECK(!rgetsockopt(pair.client, SOL_SOCKET, SO_LINGER, &linger, &n));
	CHECK(linger.l_onoff && linger.l_linger == 3);
	CHECK_ERRNO(rsetsockopt(pair.client, SOL_SOCKET, SO_DEBUG, &value, sizeof(value)), ENOTSUP);
	CHECK_ERRNO(rgetsockopt(pair.client, IPPROTO_TCP, TCP_CORK, &value, &n), ENOTSUP);
	CHECK_ERRNO(rsetsockopt(pair.client, SOL_RDMA, RDMA_SQSIZE, NULL, 4), EFAULT);
	return true;
}

static bool options_of_the_connected(void)
{
	int value = 64;

	CHECK(pair_open());
	CHECK_ERRNO(rsetsockopt(pair.client, SOL_RDMA, RDMA_SQSIZE, &value, sizeof(value)), EINVAL);
	CHECK(!rsetsockopt(pair.client, SOL_SOCKET, SO_RCVBUF, &value, sizeof(value)));
	return true;
}

/* Two of them go out while nothing is sent, and do no harm. */
static bool keepalive(void)
{
	int one = 1;
	char byte;

	CHECK(pair_open());
	CHECK(!rsetsockopt(pair.client, IPPROTO_TCP, TCP_KEEPIDLE, &one, sizeof(one)));
	CHECK(!rsetsockopt(pair.client, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)));
	CHECK(!ready(pair.server, POLLIN, 2500));
	CHECK(rsend(pair.client, "x", 1, 0) == 1);
	CHECK(rrecv(pair.server, &byte, 1, 0) == 1);
	CHECK(rsend(pair.server, "y", 1, 0) == 1);
	CHECK(rrecv(pair.client, &byte, 1, 0) == 1 && byte == 'y');
	return true;
}

/* ---- mapped buffers ---- */

static bool mapped(void)
{
	static char target[5000], source[5000];
	int entries = 4;
	char byte;

	CHECK(pair_listen(5));
	CHECK(!rsetsockopt(pair.listener, SOL_RDMA, RDMA_IOMAPSIZE, &entries, sizeof(entries)));
	pair.client = rsocket(at.any.sa_family, SOCK_STREAM, 0);
	CHECK(!rsetsockopt(pair.client, SOL_RDMA, RDMA_IOMAPSIZE, &entries, sizeof(entries)));
	CHECK_ERRNO(riomap(pair.client, target, sizeof(target), PROT_WRITE, 0, 0), EINVAL);
	CHECK(!rconnect(pair.client, &at.any, at_bytes));
	pair.server = raccept(pair.listener, NULL, NULL);
	CHECK(riomap(pair.server, target, sizeof(target), PROT_WRITE, 0, 1000) == 1000);
	CHECK(rsend(pair.server, "m", 1, 0) == 1 && rrecv(pair.client, &byte, 1, 0) == 1);
	memset(source, 'y', sizeof(source));
	CHECK(riowrite(pair.client, source, 3000, 1500, 0) == 3000);
	CHECK(rsend(pair.client, "d", 1, 0) == 1 && rrecv(pair.server, &byte, 1, 0) == 1);
	CHECK(target[499] == 0 && target[500] == 'y' && target[3499] == 'y' && target[3500] == 0);
	/* only what is mapped is written */
	CHECK(riowrite(pair.client, source, 5000, 5000, 0) == 1000);
	CHECK(riowrite(pair.client, source, 10, 6000, 0) == 0);
	CHECK(riowrite(pair.client, source, 10, 999, 0) == 0);
	CHECK_ERRNO(riounmap(pair.server, target, 10), EINVAL);
	CHECK(!riounmap(pair.server, target, sizeof(target)));
	return true;
}

static bool mapped_without_a_table(void)
{
	static char target[100];

	CHECK(pair_open());
	CHECK_ERRNO(riomap(pair.client, target, sizeof(target), PROT_WRITE, 0, 0), ENOMEM);
	CHECK(riomap(pair.client, target, sizeof(target), PROT_NONE, 0, 0) == 0);
	CHECK(!riounmap(pair.client, target, sizeof(target)));
	return true;
}

/* ---- many ---- */

static bool many_connections(void)
{
	enum { MANY = 24 };
	int clients[MANY], servers[MANY];
	char byte;

	CHECK(pair_listen(MANY));
	for (int i = 0; i < MANY; i++) {
		clients[i] = rsocket(at.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
		CHECK(clients[i] >= 0);
		CHECK_ERRNO(rconnect(clients[i], &at.any, at_bytes), EINPROGRESS);
	}
	for (int i = 0; i < MANY; i++) {
		servers[i] = raccept(pair.listener, NULL, NULL);
		CHECK(servers[i] >= 0 && rsend(servers[i], "x", 1, 0) == 1);
	}
	for (int i = 0; i < MANY; i++) {
		CHECK(ready(clients[i], POLLIN, 20000) == POLLIN);
		CHECK(rrecv(clients[i], &byte, 1, 0) == 1);
	}
	for (int i = 0; i < MANY; i++) {
		CHECK(!rclose(clients[i]));
		CHECK(!rclose(servers[i]));
	}
	return true;
}

/* More than the backlog: they wait for raccept(), none is refused. */
static bool more_than_the_backlog(void)
{
	enum { MANY = 8 };
	int clients[MANY], servers[MANY];

	CHECK(pair_listen(1));
	for (int i = 0; i < MANY; i++) {
		clients[i] = rsocket(at.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
		CHECK_ERRNO(rconnect(clients[i], &at.any, at_bytes), EINPROGRESS);
	}
	for (int i = 0; i < MANY; i++)
		CHECK((servers[i] = raccept(pair.listener, NULL, NULL)) >= 0);
	for (int i = 0; i < MANY; i++) {
		short events = ready(clients[i], POLLOUT, 20000);

		if (events != POLLOUT)
			printf("# client %d: events %x\n", i, events);
		CHECK(events == POLLOUT);
	}
	for (int i = 0; i < MANY; i++) {
		rclose(clients[i]);
		rclose(servers[i]);
	}
	return true;
}

static bool forked(void)
{
	char byte;
	int status;
	pid_t child;

	CHECK(pair_open());
	child = fork();
	if (!child) {
		bool closed = rsend(pair.client, "c", 1, 0) == -1 && errno == EBADF &&
			      !rclose(pair.client);
		_exit(closed ? 0 : 1);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(rsend(pair.client, "p", 1, 0) == 1);
	CHECK(rrecv(pair.server, &byte, 1, 0) == 1 && byte == 'p');
	return true;
}

/* ---- datagrams ---- */

static bool datagrams(void)
{
	struct sockaddr_storage from;
	socklen_t n = sizeof(at);
	char bytes[2048] = { 0 };

	at.v4.sin_port = 0;
	pair.server = rsocket(at.any.sa_family, SOCK_DGRAM, 0);
	pair.client = rsocket(at.any.sa_family, SOCK_DGRAM, 0);
	CHECK(pair.server >= 0 && !rbind(pair.server, &at.any, at_bytes));
	CHECK(!rgetsockname(pair.server, &at.any, &n));
	CHECK_ERRNO(rsend(pair.client, "x", 1, 0), EDESTADDRREQ);
	for (int i = 0; i < 50; i++) {
		bytes[0] = (char)i;
		CHECK(rsendto(pair.client, bytes, (size_t)(1 + i), 0, &at.any, at_bytes) == 1 + i);
		n = sizeof(from);
		CHECK(rrecvfrom(pair.server, bytes, sizeof(bytes), 0, (struct sockaddr *)&from,
				&n) == 1 + i && bytes[0] == (char)i && n == at_bytes);
		CHECK(rsendto(pair.server, "ok", 2, 0, (struct sockaddr *)&from, n) == 2);
		CHECK(rrecv(pair.client, bytes, sizeof(bytes), 0) == 2);
	}
	CHECK(!rconnect(pair.client, &at.any, at_bytes));
	CHECK(rsend(pair.client, "abcdef", 6, 0) == 6);
	CHECK(ready(pair.server, POLLIN, 10000) == POLLIN);
	CHECK(rrecv(pair.server, bytes, 3, MSG_PEEK) == 3);
	CHECK(rrecv(pair.server, bytes, 3, MSG_TRUNC) == 6);
	CHECK_ERRNO(rrecv(pair.server, bytes, 3, MSG_DONTWAIT), EAGAIN);
	CHECK_ERRNO(rsend(pair.client, bytes, sizeof(bytes), 0), EMSGSIZE);
	CHECK(rsend(pair.client, bytes, 0, 0) == 0);
	CHECK(rrecv(pair.server, bytes, 3, 0) == 0);
	return true;
}

/* ---- a peer that is no rsocket: rdma_cm's calls alone ---- */

struct hostile {
	struct rdma_cm_id *id;
	uint64_t list, buffer;
	uint32_t list_key, buffer_key;
	struct ibv_mr *mr;
	bool connected;
	uint8_t memory[4096];
};

static uint64_t big_endian(const uint8_t *at_byte, int n)
{
	uint64_t value = 0;

	while (n--)
		value = value << 8 | *at_byte++;
	return value;
}

/* Connects with these private data. */
static bool hostile_connect(struct hostile *h, const uint8_t *data, uint8_t n)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {
			.max_send_wr = 64,
			.max_recv_wr = 64,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct rdma_conn_param param = {
		.private_data_len = n,
		.retry_count = 6,
		.rnr_retry_count = 6,
	};
	struct ibv_recv_wr wr = { 0 }, *bad;
	uint64_t list = htobe64((uintptr_t)h->memory);
	uint8_t own[40];
	const uint8_t *told;

	CHECK(!rdma_create_id(NULL, &h->id, NULL, RDMA_PS_TCP));
	CHECK(!rdma_resolve_addr(h->id, NULL, &at.any, 2000));
	CHECK(!rdma_resolve_route(h->id, 2000));
	CHECK(!rdma_create_qp(h->id, NULL, &attr));
	h->mr = ibv_reg_mr(h->id->pd, h->memory, sizeof(h->memory),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(h->mr);
	/* Its list is there, and may be written. */
	memcpy(own, data, n);
	memcpy(own + 8, &list, sizeof(list));
	memcpy(own + 16, &(uint32_t){ htobe32(h->mr->rkey) }, 4);
	param.private_data = own;
	for (int i = 0; i < 32; i++)
		CHECK(!ibv_post_recv(h->id->qp, &wr, &bad));
	if (rdma_connect(h->id, &param))
		return false;
	h->connected = true;
	told = h->id->event->param.conn.private_data;
	h->list = big_endian(told + 8, 8);
	h->list_key = (uint32_t)big_endian(told + 16, 4);
	h->buffer = big_endian(told + 24, 8);
	h->buffer_key = (uint32_t)big_endian(told + 32, 4);
	return true;
}

static void hostile_end(struct hostile *h)
{
	if (!h->id)
		return;
	if (h->connected)
		rdma_disconnect(h->id);
	if (h->id->qp)
		rdma_destroy_qp(h->id);
	if (h->mr)
		ibv_dereg_mr(h->mr);
	rdma_destroy_id(h->id);
}

/* What an honest one would tell of its memory. */
static void hostile_data(const struct hostile *h, uint8_t data[40])
{
	memset(data, 0, 40);
	data[0] = 1;
	data[3] = 16;
	data[23] = 2;
	data[38] = 4;
}

static bool hostile_say(struct hostile *h, uint32_t message, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)h->memory, bytes, h->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = bytes ? 1 : 0,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = htobe32(message),
		.wr.rdma = { h->buffer, h->buffer_key },
	}, *bad;

	CHECK(!ibv_post_send(h->id->qp, &wr, &bad));
	return true;
}

static bool hostile_message(uint32_t message, uint32_t bytes, ssize_t want)
{
	struct hostile h = { 0 };
	uint8_t data[40];
	char byte[4];
	bool ok;
	ssize_t got = 0;

	CHECK(pair_listen(5));
	hostile_data(&h, data);
	ok = hostile_connect(&h, data, sizeof(data));
	if (ok) {
		pair.server = raccept(pair.listener, NULL, NULL);
		ok = pair.server >= 0 && hostile_say(&h, message, bytes);
		errno = 0;
		got = rrecv(pair.server, byte, sizeof(byte), 0);
	}
	if (!ok || got != want || (want < 0 && errno != ECONNRESET))
		printf("# message %x: %zd, errno %d\n", message, got, errno);
	else
		printf("# message %x: as it should be\n", message);
	ok = ok && got == want && (want >= 0 || errno == ECONNRESET);
	hostile_end(&h);
	pair_close();
	return ok;
}

static bool hostile_messages(void)
{
	CHECK(hostile_message(2, 2, 2)); /* an honest one is read */
	CHECK(hostile_message(0x1fffffff, 1, -1));
	CHECK(hostile_message(65537, 0, -1));
	CHECK(hostile_message(0x20000001, 0, -1));
	CHECK(hostile_message(0x40000001, 0, -1));
	CHECK(hostile_message(0xa0000001, 0, -1));
	CHECK(hostile_message(0xc0000000, 0, -1));
	CHECK(hostile_message(0xc000ffff, 0, -1));
	CHECK(hostile_message(0xe0000000, 0, 0));
	CHECK(hostile_message(0xe0000002, 0, 0));
	return true;
}

static bool hostile_private_data(void)
{
	struct hostile h;
	uint8_t data[40];
	static const struct {
		uint8_t n, at, value;
	} cases[] = { { 40, 0, 2 }, { 40, 0, 0 }, { 40, 23, 0 } };

	CHECK(pair_listen(5));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memset(&h, 0, sizeof(h));
		hostile_data(&h, data);
		data[cases[i].at] = cases[i].value;
		CHECK(!hostile_connect(&h, data, cases[i].n));
		hostile_end(&h);
	}
	/* and the listener still answers others */
	CHECK(pair_connect());
	return true;
}

/* ---- */

#define CASE(name) { #name, name }
static const struct {
	const char *name;
	bool (*run)(void);
} cases[] = {
	CASE(socket_kinds),
	CASE(connect_refused),
	CASE(connect_nonblocking),
	CASE(names),
	CASE(bind_in_use),
	CASE(peek_and_vectors),
	CASE(wait_for_all),
	CASE(full),
	CASE(half_closed),
	CASE(closed_by_peer),
	CASE(timeouts),
	CASE(closed_while_waiting),
	CASE(several_wait),
	CASE(poll_of_both_kinds),
	CASE(interrupted),
	CASE(options),
	CASE(options_of_the_connected),
	CASE(keepalive),
	CASE(mapped),
	CASE(mapped_without_a_table),
	CASE(many_connections),
	CASE(more_than_the_backlog),
	CASE(forked),
	CASE(datagrams),
	CASE(hostile_messages),
	CASE(hostile_private_data),
};

int main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST }, *info;
	const char *family;

	if (argc < 2 || getaddrinfo(argv[1], NULL, &hints, &info)) {
		fprintf(stderr, "usage: rsockets ADDRESS [CASE]\n");
		return 2;
	}
	if (argc > 2)
		pattern = argv[2];
	setvbuf(stdout, NULL, _IOLBF, 0);
	memcpy(&at, info->ai_addr, info->ai_addrlen);
	at_bytes = info->ai_addrlen;
	freeaddrinfo(info);
	family = at.any.sa_family == AF_INET ? "v4" : "v6";
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool ok;

		if (fnmatch(pattern, cases[i].name, 0))
			continue;
		pair.listener = pair.server = pair.client = -1;
		alarm(60);
		ok = cases[i].run();
		pair_close();
		printf("%s %s_%s\n", ok ? "ok" : "not ok", cases[i].name, family);
		failures += !ok;
	}
	return failures != 0;
}
