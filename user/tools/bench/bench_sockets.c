/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The same tests by UDP and TCP. Each datagram, and the start of a TCP connection, has the client's
 * random token. Other traffic to the port is not counted.
 */
#define _GNU_SOURCE /* accept4() */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../os/clock.h"
#include "bench.h"

#define BUFFER (1 << 20) /* bytes requested for a UDP socket; the kernel may grant fewer */

struct bench_socket {
	const struct bench_end *end;
	const struct bench_test *test;
	int fd;
	u8 *data;	  /* test->size bytes */
	u64 deadline_ns;
	u32 polls;
	bool to_the_end;  /* ignore the control connection, so that data in flight counts */
};

/* Header of a datagram. */
struct bench_stamp {
	__be64 token, seq;
};
_Static_assert(sizeof(struct bench_stamp) == BENCH_LEAST_SIZE, "fits the smallest message");

static bool is_tcp(const struct bench_test *test)
{
	return test->way == BENCH_TCP;
}

/* ---- waiting, by polling or asleep ---- */

/* Returns 1: try again; 0: timed out, or the control connection has data; or -EINTR. */
static int bench_socket_wait(struct bench_socket *s, short events, u64 until_ns)
{
	struct pollfd p[] = { { .fd = s->fd, .events = events },
			      { .fd = s->end->control, .events = POLLIN } };
	u64 now_ns;
	int timeout_ms = 0;

	if (!s->test->events && ++s->polls % 64)
		return 1;
	now_ns = clock_now_ns();
	if (now_ns >= until_ns)
		return 0;
	if (s->test->events)
		timeout_ms = (int)((until_ns - now_ns) / NSEC_PER_MSEC) + 1;
	poll(p, ARRAY_SIZE(p), timeout_ms);
	if (stop_requested())
		return -EINTR;
	/* data that has already arrived comes first */
	return s->to_the_end || (p[0].revents & events) || !p[1].revents;
}

/* Returns bytes; 0: end of a TCP connection, or the wait is over; or -errno. */
static ssize_t bench_socket_get(struct bench_socket *s, void *data, size_t len, u64 until_ns)
{
	ssize_t n;
	int more;

	while ((n = recv(s->fd, data, len, MSG_DONTWAIT)) < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNREFUSED)
			return -errno;
		more = bench_socket_wait(s, POLLIN, until_ns);
		if (more <= 0)
			return more;
	}
	return n;
}

/* Sends all bytes. Returns 1; 0: the wait is over; or -errno. */
static int bench_socket_put(struct bench_socket *s, const void *data, size_t len, u64 until_ns)
{
	const u8 *at = data;
	ssize_t n;
	int more;

	while (len) {
		n = send(s->fd, at, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n >= 0) {
			at += n;
			len -= (size_t)n;
			continue;
		}
		if (errno == ENOBUFS || errno == ECONNREFUSED) /* counts as a loss */
			return 1;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		more = bench_socket_wait(s, POLLOUT, until_ns);
		if (more <= 0)
			return more;
	}
	return 1;
}

/* Receives a whole TCP message. Returns 1; 0: the wait is over; or -errno. */
static int bench_socket_get_all(struct bench_socket *s, u8 *data, size_t len, u64 until_ns)
{
	while (len) {
		const ssize_t n = bench_socket_get(s, data, len, until_ns);

		if (n <= 0)
			return (int)n;
		data += n;
		len -= (size_t)n;
	}
	return 1;
}

static void bench_socket_stamp(struct bench_socket *s, u64 seq)
{
	const struct bench_stamp stamp = { htobe64(s->end->token), htobe64(seq) };

	memcpy(s->data, &stamp, sizeof(stamp));
}

/* Receives a datagram with our token. Returns 1 with its *seq; 0: the wait is over; or -errno. */
static int bench_socket_get_datagram(struct bench_socket *s, u64 *seq, u64 until_ns)
{
	struct bench_stamp stamp;
	ssize_t n;

	while ((n = bench_socket_get(s, s->data, s->test->size, until_ns)) > 0) {
		memcpy(&stamp, s->data, sizeof(stamp));
		*seq = be64toh(stamp.seq);
		if (n == s->test->size && be64toh(stamp.token) == s->end->token)
			return 1;
	}
	return (int)n;
}

/* ---- latency ---- */

/* Makes a round trip. Returns 1; 0: lost; or -errno. */
static int bench_socket_trip(struct bench_socket *s, u64 seq)
{
	const bool tcp = is_tcp(s->test);
	const u64 until_ns = tcp ? s->deadline_ns : clock_now_ns() + BENCH_LOST_NS;
	u64 got = 0;
	int n;

	bench_socket_stamp(s, seq);
	n = bench_socket_put(s, s->data, s->test->size, until_ns);
	if (n > 0 && tcp)
		n = bench_socket_get_all(s, s->data, s->test->size, until_ns);
	else if (n > 0)
		while ((n = bench_socket_get_datagram(s, &got, until_ns)) > 0 && got != seq)
			;
	if (n)
		return n;
	return tcp || clock_now_ns() < until_ns ? -EPIPE : 0;
}

static int bench_socket_latency(struct bench_socket *s, struct bench_outcome *out)
{
	const u64 begun_ns = clock_now_ns();
	u64 before_ns = begun_ns, now_ns, seq = 0;
	int n;

	do {
		n = bench_socket_trip(s, seq++);
		now_ns = clock_now_ns();
		if (n > 0) {
			histogram_add(&out->rtt, now_ns - before_ns);
			out->messages++;
			out->bytes += s->test->size;
		} else if (!n) {
			out->lost++;
		}
		before_ns = now_ns;
	} while (n >= 0 && now_ns - begun_ns < s->test->duration_ns && !stop_requested());
	out->elapsed_ns = now_ns - begun_ns;
	return n < 0 ? n : 0;
}

static int bench_socket_echo(struct bench_socket *s, struct bench_outcome *out)
{
	u64 seq;
	int n;

	while ((n = is_tcp(s->test) ?
			    bench_socket_get_all(s, s->data, s->test->size, s->deadline_ns) :
			    bench_socket_get_datagram(s, &seq, s->deadline_ns)) > 0) {
		out->messages++;
		out->bytes += s->test->size;
		n = bench_socket_put(s, s->data, s->test->size, s->deadline_ns);
		if (n <= 0)
			break;
	}
	return n;
}

/* ---- bandwidth ---- */

static int bench_socket_stream(struct bench_socket *s, struct bench_outcome *out)
{
	const u64 begun_ns = clock_now_ns();
	int n = 1;

	while (n > 0 && clock_now_ns() - begun_ns < s->test->duration_ns && !stop_requested()) {
		bench_socket_stamp(s, out->messages);
		n = bench_socket_put(s, s->data, s->test->size, s->deadline_ns);
		out->messages += n > 0;
	}
	if (is_tcp(s->test))
		shutdown(s->fd, SHUT_WR);
	out->elapsed_ns = clock_now_ns() - begun_ns;
	out->bytes = out->messages * s->test->size;
	return n < 0 ? n : n ? 0 : -EPIPE;
}

/* Returns the bytes of a datagram, or available TCP bytes; 0: the wait is over; or -errno. */
static ssize_t bench_socket_get_some(struct bench_socket *s)
{
	u64 seq;
	int n;

	if (is_tcp(s->test))
		return bench_socket_get(s, s->data, s->test->size, s->deadline_ns);
	n = bench_socket_get_datagram(s, &seq, s->deadline_ns);
	return n > 0 ? (ssize_t)s->test->size : n;
}

/* Counts messages; bytes and time exclude the first. For TCP, each read counts as a message. */
static int bench_socket_sink(struct bench_socket *s, struct bench_outcome *out)
{
	u64 first_ns = 0, last_ns = 0;
	ssize_t n;

	s->to_the_end = is_tcp(s->test);
	while ((n = bench_socket_get_some(s)) > 0) {
		last_ns = clock_now_ns();
		if (first_ns)
			out->bytes += (u64)n;
		else
			first_ns = last_ns;
		out->messages++;
	}
	out->elapsed_ns = last_ns - first_ns;
	return (int)n;
}

/* ---- setup ---- */

static int bench_socket_open(struct bench_socket *s, const struct bench_end *end,
			     const struct bench_test *test, int fd)
{
	const int one = 1, buffer = BUFFER;

	*s = (struct bench_socket){ .end = end, .test = test, .fd = fd };
	s->deadline_ns = clock_now_ns() + test->duration_ns + BENCH_PATIENCE_NS;
	if (is_tcp(test)) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	} else {
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
	}
	s->data = calloc(1, test->size);
	return s->data ? 0 : -ENOMEM;
}

static struct sockaddr_in6 bench_address(const struct gid *gid, u32 ifindex, u16 port)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	memcpy(&a.sin6_addr, gid->raw, sizeof(gid->raw));
	if (IN6_IS_ADDR_LINKLOCAL(&a.sin6_addr))
		a.sin6_scope_id = ifindex;
	return a;
}

static int bench_socket_fail(int fd, int err)
{
	close(fd);
	return err;
}

int bench_socket_listen(const struct bench_end *end, const struct bench_test *test,
			struct bench_message *own)
{
	struct sockaddr_in6 a = bench_address(&end->dev->gid, if_nametoindex(end->dev->name), 0);
	socklen_t len = sizeof(a);
	const int zero = 0;
	int fd = socket(AF_INET6, (is_tcp(test) ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC |
					  SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero)) ||
	    bind(fd, (const struct sockaddr *)&a, sizeof(a)) || (is_tcp(test) && listen(fd, 4)) ||
	    getsockname(fd, (struct sockaddr *)&a, &len))
		return bench_socket_fail(fd, -errno);
	own->port = ntohs(a.sin6_port);
	return fd;
}

/* Accepts connections until one begins with the token. Returns its descriptor or -errno. */
static int bench_socket_accept(const struct bench_end *end, const struct bench_test *test, int fd)
{
	struct bench_socket s = { .end = end, .test = test, .fd = fd };
	u64 token;
	int n;

	s.deadline_ns = clock_now_ns() + BENCH_PATIENCE_NS;
	while ((n = bench_socket_wait(&s, POLLIN, s.deadline_ns)) > 0) {
		s.fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (s.fd >= 0) {
			n = bench_socket_get_all(&s, (u8 *)&token, sizeof(token),
						 clock_now_ns() + NSEC_PER_SEC);
			if (n > 0 && be64toh(token) == end->token)
				return s.fd;
			close(s.fd);
		} else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
			return -errno;
		}
		s.fd = fd;
	}
	return n ? n : -EPIPE;
}

/*
 * UDP: connects to the sender of the first datagram with the token. Returns 1; 0: the wait is over,
 * as the datagram was lost; or -errno.
 */
static int bench_socket_meet(struct bench_socket *s)
{
	struct bench_stamp stamp;
	struct sockaddr_in6 from;
	socklen_t len;
	ssize_t got;
	int n = 1;

	while (n > 0) {
		len = sizeof(from);
		got = recvfrom(s->fd, &stamp, sizeof(stamp), MSG_PEEK, (struct sockaddr *)&from,
			       &len);
		if (got == sizeof(stamp) && be64toh(stamp.token) == s->end->token)
			return connect(s->fd, (const struct sockaddr *)&from, len) ? -errno : 1;
		if (got >= 0) /* drop a foreign datagram */
			recv(s->fd, &stamp, sizeof(stamp), 0);
		else
			n = bench_socket_wait(s, POLLIN, s->deadline_ns);
	}
	return n;
}

int bench_socket_server(const struct bench_end *end, const struct bench_test *test, int fd,
			struct bench_outcome *out)
{
	struct bench_socket s;
	int err, more = 1, peer = fd;

	if (is_tcp(test)) {
		peer = bench_socket_accept(end, test, fd);
		close(fd);
	}
	if (peer < 0)
		return peer;
	err = bench_socket_open(&s, end, test, peer);
	if (!err && !is_tcp(test)) {
		more = bench_socket_meet(&s);
		err = more < 0 ? more : 0;
	}
	if (!err && more)
		err = test->measure == BENCH_LATENCY ? bench_socket_echo(&s, out) :
						       bench_socket_sink(&s, out);
	free(s.data);
	close(peer);
	return err;
}

int bench_socket_client(const struct bench_end *end, const struct bench_test *test, u16 port,
			struct bench_outcome *out)
{
	const struct sockaddr_in6 a =
		bench_address(&end->peer, if_nametoindex(end->dev->name), port);
	const __be64 token = htobe64(end->token);
	struct bench_socket s;
	int fd = socket(AF_INET6, (is_tcp(test) ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&a, sizeof(a)))
		return bench_socket_fail(fd, -errno);
	err = bench_socket_open(&s, end, test, fd);
	if (!err && is_tcp(test) &&
	    bench_socket_put(&s, &token, sizeof(token), s.deadline_ns) <= 0)
		err = -EPIPE;
	if (!err)
		err = test->measure == BENCH_LATENCY ? bench_socket_latency(&s, out) :
						       bench_socket_stream(&s, out);
	free(s.data);
	close(fd);
	return err;
}
