/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san XROCE_CYCLES=1000 */
/* rsocket(7): the calls "match the behavior of corresponding socket calls, except where noted". */
#include <fcntl.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>
#include <sys/wait.h>
#include <time.h>

#include "man.h"

static socklen_t length_of(int family)
{
	return family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* A listening socket, and its port. */
static int server(int family, int type, uint16_t *port)
{
	union address at = own(family, 0);
	socklen_t len = sizeof(at);
	int s = rsocket(family, type, 0);

	if (s < 0 || rbind(s, &at.sa, length_of(family)) ||
	    (type == SOCK_STREAM && rlisten(s, 4)) || rgetsockname(s, &at.sa, &len)) {
		printf("# no server: errno %d\n", errno);
		return -1;
	}
	*port = port_of(&at.sa);
	return s;
}

/* One end in a thread, as both would block. */
struct end {
	pthread_t thread;
	int family, socket;
	uint16_t port;
	bool (*run)(struct end *e);
	bool good;
};

static void *end_thread(void *arg)
{
	struct end *e = arg;

	e->good = e->run(e);
	return NULL;
}

static bool end_begins(struct end *e)
{
	return !pthread_create(&e->thread, NULL, end_thread, e);
}

static bool end_ends(struct end *e)
{
	return !pthread_join(e->thread, NULL) && e->good;
}

static bool connects(struct end *e)
{
	union address to = own(e->family, e->port);

	MUST((e->socket = rsocket(e->family, SOCK_STREAM, 0)) >= 0);
	MUST_EQ(rconnect(e->socket, &to.sa, length_of(e->family)), 0);
	return true;
}

/* Two connected sockets: e->socket and *s. */
static bool stream_pair(struct end *e, int family, int *s)
{
	union address peer, mine;
	socklen_t len = sizeof(peer);
	int l;

	*e = (struct end){ .family = family, .run = connects };
	MUST((l = server(family, SOCK_STREAM, &e->port)) >= 0);
	MUST(end_begins(e));
	MUST((*s = raccept(l, &peer.sa, &len)) >= 0);
	MUST(end_ends(e));
	MUST_EQ(len, length_of(family));
	mine = own(family, 0);
	MUST(same_host(&peer.sa, &mine));
	len = sizeof(mine);
	MUST_EQ(rgetsockname(e->socket, &mine.sa, &len), 0);
	MUST_EQ(port_of(&mine.sa), port_of(&peer.sa));
	len = sizeof(mine);
	MUST_EQ(rgetpeername(e->socket, &mine.sa, &len), 0);
	MUST_EQ(port_of(&mine.sa), e->port);
	len = sizeof(mine);
	MUST_EQ(rgetpeername(*s, &mine.sa, &len), 0);
	MUST_EQ(port_of(&mine.sa), port_of(&peer.sa));
	MUST_EQ(rclose(l), 0);
	return true;
}

static bool stream_close(struct end *e, int s)
{
	MUST_EQ(rclose(e->socket), 0);
	MUST_EQ(rclose(s), 0);
	return true;
}

/* A small exchange by each of the calls. */
static bool calls(int family)
{
	struct iovec iov[2];
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	char buf[64];
	struct end e;
	int s;

	MUST(stream_pair(&e, family, &s));
	MUST_EQ(rsend(e.socket, "one", 3, 0), 3);
	MUST_EQ(rrecv(s, buf, sizeof(buf), MSG_PEEK), 3);
	MUST_EQ(rrecv(s, buf, 2, 0), 2);
	MUST(!memcmp(buf, "on", 2));
	MUST_EQ(rread(s, buf, sizeof(buf)), 1);
	MUST_EQ(rwrite(s, "two", 3), 3);
	MUST_EQ(rrecvfrom(e.socket, buf, sizeof(buf), 0, NULL, NULL), 3);
	MUST(!memcmp(buf, "two", 3));
	iov[0] = (struct iovec){ "thr", 3 };
	iov[1] = (struct iovec){ "ee", 2 };
	MUST_EQ(rwritev(e.socket, iov, 2), 5);
	/* rsockets receive into the first buffer alone */
	iov[0] = (struct iovec){ buf, 20 };
	iov[1] = (struct iovec){ buf + 20, 10 };
	MUST_EQ(rreadv(s, iov, 2), 5);
	MUST(!memcmp(buf, "three", 5));
	iov[0] = (struct iovec){ "fo", 2 };
	iov[1] = (struct iovec){ "ur", 2 };
	MUST_EQ(rsendmsg(s, &msg, 0), 4);
	iov[0] = (struct iovec){ buf, 20 };
	iov[1] = (struct iovec){ buf + 20, 10 };
	MUST_EQ(rrecvmsg(e.socket, &msg, 0), 4);
	MUST(!memcmp(buf, "four", 4));
	MUST_EQ(rsendto(e.socket, "five", 4, 0, NULL, 0), 4);
	MUST_EQ(rread(s, buf, sizeof(buf)), 4);
	return stream_close(&e, s);
}
BOTH(calls)

/* ---- a long stream, both ways at a time ---- */

#define STREAM (1 << 20)

static uint8_t pattern(size_t i, int way)
{
	return (uint8_t)(i * 31 + i / 977 + (size_t)way * 5);
}

static bool sends(struct end *e)
{
	static const size_t sizes[] = { 1, 7, 64, 1000, 4096, 65536, 100000 };
	uint8_t *buf = malloc(100000);
	size_t done = 0;

	MUST(buf);
	for (int n = 0; done < STREAM; n++) {
		size_t want = sizes[n % 7];
		ssize_t got;

		want = want < STREAM - done ? want : STREAM - done;
		for (size_t i = 0; i < want; i++)
			buf[i] = pattern(done + i, e->port);
		got = rsend(e->socket, buf, want, 0);
		MUST(got > 0 && (size_t)got <= want);
		done += (size_t)got;
	}
	free(buf);
	return true;
}

static bool receives(int s, int way)
{
	uint8_t *buf = malloc(50000);
	size_t done = 0;

	MUST(buf);
	while (done < STREAM) {
		ssize_t got = rrecv(s, buf, 50000, 0);

		MUST(got > 0);
		for (ssize_t i = 0; i < got; i++)
			MUST(buf[i] == pattern(done + (size_t)i, way));
		done += (size_t)got;
	}
	MUST_EQ(done, STREAM);
	free(buf);
	return true;
}

static bool receives_all(struct end *e)
{
	return receives(e->socket, 1);
}

static bool long_stream(int family)
{
	struct end e, end[3];
	int s;

	MUST(stream_pair(&e, family, &s));
	end[0] = (struct end){ .socket = e.socket, .port = 0, .run = sends };
	end[1] = (struct end){ .socket = s, .port = 1, .run = sends };
	end[2] = (struct end){ .socket = e.socket, .run = receives_all };
	for (int i = 0; i < 3; i++)
		MUST(end_begins(&end[i]));
	MUST(receives(s, 0));
	for (int i = 0; i < 3; i++)
		MUST(end_ends(&end[i]));
	return stream_close(&e, s);
}
BOTH(long_stream)

/* ---- not blocking, and rpoll() ---- */

static bool nonblocking(int family)
{
	struct pollfd p;
	char buf[16];
	struct end e;
	int s;

	MUST(stream_pair(&e, family, &s));
	MUST_ERR(rrecv(s, buf, 16, MSG_DONTWAIT), EAGAIN);
	MUST_EQ(rfcntl(s, F_GETFL) & O_NONBLOCK, 0);
	MUST_EQ(rfcntl(s, F_SETFL, O_NONBLOCK), 0);
	MUST(rfcntl(s, F_GETFL) & O_NONBLOCK);
	MUST_ERR(rrecv(s, buf, 16, 0), EAGAIN);
	p = (struct pollfd){ .fd = s, .events = POLLIN };
	MUST_EQ(rpoll(&p, 1, 0), 0);
	p = (struct pollfd){ .fd = s, .events = POLLIN | POLLOUT };
	MUST_EQ(rpoll(&p, 1, WAIT_MS), 1);
	MUST_EQ(p.revents, POLLOUT);
	MUST_EQ(rsend(e.socket, "data", 4, 0), 4);
	p = (struct pollfd){ .fd = s, .events = POLLIN };
	MUST_EQ(rpoll(&p, 1, WAIT_MS), 1);
	MUST_EQ(p.revents, POLLIN);
	MUST_EQ(rrecv(s, buf, 16, 0), 4);
	MUST_EQ(rpoll(&p, 1, 0), 0);
	{
		struct timeval t = { WAIT_MS / 1000, 0 };
		fd_set set;

		MUST_EQ(rsend(e.socket, "more", 4, 0), 4);
		FD_ZERO(&set);
		FD_SET(s, &set);
		MUST_EQ(rselect(s + 1, &set, NULL, NULL, &t), 1);
		MUST(FD_ISSET(s, &set));
		MUST_EQ(rrecv(s, buf, 16, 0), 4);
	}
	return stream_close(&e, s);
}
BOTH(nonblocking)

/* "rpoll and rselect support polling both rsockets and normal fd's" */
static bool mixed_poll(void)
{
	struct pollfd p[2];
	struct end e;
	int s, fd[2];

	MUST(!pipe(fd) && stream_pair(&e, AF_INET, &s));
	p[0] = (struct pollfd){ .fd = s, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = fd[0], .events = POLLIN };
	MUST_EQ(rpoll(p, 2, 0), 0);
	MUST_EQ(write(fd[1], "x", 1), 1);
	MUST_EQ(rpoll(p, 2, WAIT_MS), 1);
	MUST(!p[0].revents && p[1].revents == POLLIN);
	MUST_EQ(rsend(e.socket, "x", 1, 0), 1);
	p[1].fd = -1;
	MUST_EQ(rpoll(p, 2, WAIT_MS), 1);
	MUST(p[0].revents == POLLIN);
	close(fd[0]);
	close(fd[1]);
	return stream_close(&e, s);
}

/* A non-blocking connect: writable when it is done, with the result in SO_ERROR. */
static bool connect_nonblocking(int family)
{
	union address to;
	int l, c, s, error = -1;
	socklen_t len = sizeof(error);
	struct pollfd p;
	uint16_t port;

	MUST((l = server(family, SOCK_STREAM, &port)) >= 0);
	MUST_EQ(rfcntl(l, F_SETFL, O_NONBLOCK), 0);
	MUST_ERR(raccept(l, NULL, NULL), EAGAIN);
	MUST((c = rsocket(family, SOCK_STREAM, 0)) >= 0);
	MUST_EQ(rfcntl(c, F_SETFL, O_NONBLOCK), 0);
	to = own(family, port);
	MUST_ERR(rconnect(c, &to.sa, length_of(family)), EINPROGRESS);
	s = -1;
	for (time_t end = time(NULL) + 2 * WAIT_MS / 1000; s < 0 && time(NULL) < end;) {
		struct pollfd both[2] = { { .fd = l, .events = POLLIN },
					  { .fd = c, .events = POLLOUT } };

		MUST(rpoll(both, 2, WAIT_MS) > 0);
		if (both[0].revents)
			s = raccept(l, NULL, NULL);
	}
	MUST(s >= 0);
	p = (struct pollfd){ .fd = c, .events = POLLOUT };
	MUST_EQ(rpoll(&p, 1, WAIT_MS), 1);
	MUST_EQ(rgetsockopt(c, SOL_SOCKET, SO_ERROR, &error, &len), 0);
	MUST_EQ(error, 0);
	MUST_EQ(rfcntl(s, F_SETFL, 0), 0);
	MUST_EQ(rsend(c, "hello", 5, 0), 5);
	{
		char buf[8];

		MUST_EQ(rrecv(s, buf, 8, 0), 5);
	}
	MUST(!rclose(c) && !rclose(s) && !rclose(l));
	return true;
}
BOTH(connect_nonblocking)

static bool refused(int family)
{
	union address to;
	uint16_t port;
	int l, c;

	MUST((l = server(family, SOCK_STREAM, &port)) >= 0);
	MUST_EQ(rclose(l), 0);
	to = own(family, port);
	MUST((c = rsocket(family, SOCK_STREAM, 0)) >= 0);
	MUST_ERR(rconnect(c, &to.sa, length_of(family)), ECONNREFUSED);
	MUST_EQ(rclose(c), 0);
	return true;
}
BOTH(refused)

/* ---- the end of a stream ---- */

static bool shutdown_way(int family)
{
	char buf[16];
	struct end e;
	int s;

	MUST(stream_pair(&e, family, &s));
	MUST_EQ(rsend(e.socket, "last", 4, 0), 4);
	MUST_EQ(rshutdown(e.socket, SHUT_WR), 0);
	MUST_EQ(rrecv(s, buf, 16, MSG_WAITALL), 4);
	MUST_EQ(rrecv(s, buf, 16, 0), 0);
	/* the other way is open */
	MUST_EQ(rsend(s, "answer", 6, 0), 6);
	MUST_EQ(rrecv(e.socket, buf, 16, 0), 6);
	MUST_EQ(rshutdown(s, SHUT_RDWR), 0);
	MUST_EQ(rrecv(e.socket, buf, 16, 0), 0);
	return stream_close(&e, s);
}
BOTH(shutdown_way)

static bool close_ends_it(int family)
{
	struct pollfd p;
	char buf[16];
	struct end e;
	int s;

	MUST(stream_pair(&e, family, &s));
	MUST_EQ(rsend(e.socket, "end", 3, 0), 3);
	MUST_EQ(rclose(e.socket), 0);
	p = (struct pollfd){ .fd = s, .events = POLLIN };
	MUST_EQ(rpoll(&p, 1, WAIT_MS), 1);
	MUST_EQ(rrecv(s, buf, 16, 0), 3);
	MUST_EQ(rrecv(s, buf, 16, 0), 0);
	MUST_EQ(rclose(s), 0);
	return true;
}
BOTH(close_ends_it)

/* ---- options ---- */

static bool option(int s, int level, int name, int value, int want)
{
	int got = -1;
	socklen_t len = sizeof(got);

	MUST_EQ(rsetsockopt(s, level, name, &value, sizeof(value)), 0);
	MUST_EQ(rgetsockopt(s, level, name, &got, &len), 0);
	MUST_EQ(len, sizeof(got));
	MUST_EQ(got, want);
	return true;
}

static bool options(void)
{
	int s = rsocket(AF_INET6, SOCK_STREAM, 0);

	MUST(s >= 0);
	MUST(option(s, SOL_SOCKET, SO_REUSEADDR, 1, 1));
	MUST(option(s, SOL_SOCKET, SO_KEEPALIVE, 1, 1));
	MUST(option(s, SOL_SOCKET, SO_OOBINLINE, 1, 1));
	/* the double, as the kernel's sockets have it */
	MUST(option(s, SOL_SOCKET, SO_RCVBUF, 100000, 200000));
	MUST(option(s, SOL_SOCKET, SO_SNDBUF, 100000, 200000));
	MUST(option(s, IPPROTO_TCP, TCP_NODELAY, 1, 1));
	MUST(option(s, IPPROTO_IPV6, IPV6_V6ONLY, 1, 1));
	MUST(option(s, SOL_RDMA, RDMA_SQSIZE, 50, 50));
	MUST(option(s, SOL_RDMA, RDMA_RQSIZE, 50, 50));
	MUST(option(s, SOL_RDMA, RDMA_INLINE, 32, 32));
	MUST(option(s, SOL_RDMA, RDMA_IOMAPSIZE, 8, 8));
	MUST_ERR(rsetsockopt(s, SOL_SOCKET, SO_BROADCAST, &s, sizeof(s)), ENOTSUP);
	MUST_EQ(rclose(s), 0);
	return true;
}

static bool errors(void)
{
	union address at = own(AF_INET, 0);
	char buf[4];
	int s;

	MUST_ERR(rsocket(AF_UNIX, SOCK_STREAM, 0), ENOTSUP);
	MUST_ERR(rsocket(AF_INET, SOCK_RAW, 0), ENOTSUP);
	MUST(rclose(9999) != 0); /* rsockets return the number itself */
	MUST((s = rsocket(AF_INET, SOCK_STREAM, 0)) >= 0);
	MUST_ERR(rrecv(s, buf, 1, MSG_DONTWAIT), ENOTCONN);
	MUST_EQ(rbind(s, &at.sa, sizeof(at.in)), 0);
	MUST_EQ(rclose(s), 0);
	return true;
}

/* ---- riomap(), riowrite() ---- */

static bool iomap(int family)
{
	static char area[8192];
	char buf[4];
	off_t off;
	struct end e;
	int s, l, size = 4;

	e = (struct end){ .family = family, .run = connects };
	MUST((l = rsocket(family, SOCK_STREAM, 0)) >= 0);
	{
		union address at = own(family, 0);
		socklen_t len = sizeof(at);

		MUST_EQ(rsetsockopt(l, SOL_RDMA, RDMA_IOMAPSIZE, &size, sizeof(size)), 0);
		MUST_EQ(rbind(l, &at.sa, length_of(family)), 0);
		MUST_EQ(rlisten(l, 1), 0);
		MUST_EQ(rgetsockname(l, &at.sa, &len), 0);
		e.port = port_of(&at.sa);
	}
	MUST(end_begins(&e));
	MUST((s = raccept(l, NULL, NULL)) >= 0);
	MUST(end_ends(&e));
	MUST_EQ(rclose(l), 0);
	/* the active end's buffer, if the passive one said how many there may be */
	off = riomap(s, area, sizeof(area), PROT_WRITE, 0, -1);
	if (off == -1) { /* the side that maps: the peer must have room for it */
		off = riomap(e.socket, area, sizeof(area), PROT_WRITE, 0, 4096);
		MUST_EQ(off, 4096);
		MUST_EQ(rsend(e.socket, "m", 1, 0), 1);
		MUST_EQ(rrecv(s, buf, 1, 0), 1);
		MUST_EQ(riowrite(s, "placed", 7, off + 100, 0), 7);
		MUST_EQ(rsend(s, "d", 1, 0), 1);
		MUST_EQ(rrecv(e.socket, buf, 1, 0), 1);
		MUST(!strcmp(area + 100, "placed"));
		MUST_EQ(riounmap(e.socket, area, sizeof(area)), 0);
	} else {
		MUST_EQ(rsend(s, "m", 1, 0), 1);
		MUST_EQ(rrecv(e.socket, buf, 1, 0), 1);
		MUST_EQ(riowrite(e.socket, "placed", 7, off + 100, 0), 7);
		MUST_EQ(rsend(e.socket, "d", 1, 0), 1);
		MUST_EQ(rrecv(s, buf, 1, 0), 1);
		MUST(!strcmp(area + 100, "placed"));
		MUST_EQ(riounmap(s, area, sizeof(area)), 0);
	}
	return stream_close(&e, s);
}
BOTH(iomap)

/* ---- datagrams ---- */

static bool datagrams(int family)
{
	union address from, to;
	socklen_t len;
	char buf[2000], text[1000];
	int a, b;
	uint16_t port[2];

	MUST((a = server(family, SOCK_DGRAM, &port[0])) >= 0);
	MUST((b = server(family, SOCK_DGRAM, &port[1])) >= 0);
	memset(text, 'd', sizeof(text));
	to = own(family, port[1]);
	for (size_t n = 1; n <= 1000; n *= 10) {
		struct pollfd p = { .fd = b, .events = POLLIN };

		MUST(rsendto(a, text, n, 0, &to.sa, length_of(family)) == (ssize_t)n);
		MUST_EQ(rpoll(&p, 1, WAIT_MS), 1);
		len = sizeof(from);
		MUST_EQ(rrecvfrom(b, buf, sizeof(buf), 0, &from.sa, &len), n);
		MUST_EQ(port_of(&from.sa), port[0]);
		MUST_EQ(len, length_of(family));
		MUST(!memcmp(buf, text, n));
	}
	/* back, on a connected socket */
	from = own(family, port[0]);
	MUST_EQ(rconnect(b, &from.sa, length_of(family)), 0);
	MUST_EQ(rsend(b, "back", 4, 0), 4);
	MUST_EQ(rrecv(a, buf, sizeof(buf), 0), 4);
	MUST_ERR(rrecv(a, buf, sizeof(buf), MSG_DONTWAIT), EAGAIN);
	MUST(!rclose(a) && !rclose(b));
	return true;
}
BOTH(datagrams)

const struct test_case man_cases[] = {
	CASE(calls_v4),
	CASE(calls_v6),
	CASE(long_stream_v4),
	CASE(long_stream_v6),
	CASE(nonblocking_v4),
	CASE(nonblocking_v6),
	CASE(mixed_poll),
	CASE(connect_nonblocking_v4),
	CASE(connect_nonblocking_v6),
	CASE(refused_v4),
	CASE(refused_v6),
	CASE(shutdown_way_v4),
	CASE(shutdown_way_v6),
	CASE(close_ends_it_v4),
	CASE(close_ends_it_v6),
	CASE(options),
	CASE(errors),
	CASE(iomap_v4),
	CASE(iomap_v6),
	CASE(datagrams_v4),
	CASE(datagrams_v6),
	{ 0 },
};
