/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san */
/*
 * rsocket(7) with arguments at the edge: no buffer, no bytes, no vector, absurd lengths, flags,
 * option lengths, backlogs, offsets, in the states of a socket. A case ON_BOTH is run on sockets of
 * the kernel first, so that its expectations are the kernel's. Where rdma-core and the kernel
 * answer differently, a case is of rsockets alone or has no row.
 */
#define _GNU_SOURCE
#include <netinet/tcp.h>
#include <sys/mman.h>

#include "../verbs/arguments.h"
#include "both_sockets.h"

static bool readable_of(const struct calls *c, int s)
{
	struct pollfd p = { .fd = s, .events = POLLIN };

	return c->poll(&p, 1, WAIT_MS) == 1 && p.revents == POLLIN;
}

/* ---- streams: buffers, lengths, vectors, headers ---- */

static bool no_buffer_of(const struct calls *c, int family)
{
	struct iovec iov = { NULL, 3 }, none = { NULL, 0 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	char bytes[4] = "";
	bool good = true;
	int s[2];

	MUST(streams_open(c, family, s));
	good &= ROW(c->send(s[0], NULL, 3, 0), -1, EFAULT);
	good &= ROW(c->write(s[0], NULL, 3), -1, EFAULT);
	good &= ROW(c->writev(s[0], &iov, 1), -1, EFAULT);
	good &= ROW(c->sendmsg(s[0], &msg, 0), -1, EFAULT);
	good &= ROW(c->send(s[0], NULL, 0, 0), 0, 0);
	good &= ROW(c->writev(s[0], &none, 1), 0, 0);
	good &= ROW(c->recv(s[1], NULL, 3, MSG_DONTWAIT), -1, EAGAIN);
	MUST(c->send(s[0], "abc", 3, 0) == 3 && readable_of(c, s[1]));
	good &= ROW(c->recv(s[1], NULL, 3, 0), -1, EFAULT);
	good &= ROW(c->recvfrom(s[1], NULL, 3, 0, NULL, NULL), -1, EFAULT);
	good &= ROW(c->read(s[1], NULL, 3), -1, EFAULT);
	good &= ROW(c->readv(s[1], &iov, 1), -1, EFAULT);
	good &= ROW(c->recvmsg(s[1], &msg, 0), -1, EFAULT);
	/* nothing was taken, and nothing but these bytes was sent */
	good &= ROW(c->recv(s[1], bytes, 4, MSG_DONTWAIT), 3, 0) && !strcmp(bytes, "abc");
	return streams_close(c, s) && good;
}
ON_BOTH(no_buffer)

/* recv(2) of no bytes waits for data, read(2) of no bytes returns at once. */
static bool no_bytes_of(const struct calls *c, int family)
{
	struct iovec iov = { .iov_len = 0 };
	struct msghdr msg = { .msg_iov = NULL };
	char byte = 0;
	bool good = true;
	int s[2], fresh = c->make(family, SOCK_STREAM, 0);

	MUST(fresh >= 0 && streams_open(c, family, s));
	good &= ROW(c->read(fresh, &byte, 0), 0, 0);
	good &= ROW(c->readv(fresh, &iov, 1), 0, 0);
	good &= ROW(c->writev(fresh, &iov, 1), 0, 0);
	good &= ROW(c->recv(fresh, &byte, 0, 0), -1, ENOTCONN);
	good &= ROW(c->read(s[1], &byte, 0), 0, 0);
	good &= ROW(c->readv(s[1], &iov, 1), 0, 0);
	good &= ROW(c->readv(s[1], NULL, 0), 0, 0);
	good &= ROW(c->recv(s[1], &byte, 0, MSG_DONTWAIT), -1, EAGAIN);
	good &= ROW(c->recv(s[1], &byte, 0, MSG_DONTWAIT | MSG_PEEK), -1, EAGAIN);
	good &= ROW(c->recvmsg(s[1], &msg, MSG_DONTWAIT), -1, EAGAIN);
	MUST(c->send(s[0], "a", 1, 0) == 1);
	good &= ROW(c->recv(s[1], NULL, 0, 0), 0, 0);
	good &= ROW(c->recvmsg(s[1], &msg, 0), 0, 0);
	good &= ROW(c->read(s[1], NULL, 0), 0, 0);
	good &= ROW(c->recv(s[1], &byte, 1, MSG_DONTWAIT), 1, 0) && byte == 'a';
	MUST(!c->shutdown(s[0], SHUT_WR));
	good &= ROW(c->recv(s[1], &byte, 0, 0), 0, 0);
	return streams_close(c, s) && !c->close(fresh) && good;
}
ON_BOTH(no_bytes)

static bool long_lengths_of(const struct calls *c, int family)
{
	static char bytes[8];
	struct iovec iov[2] = { { bytes, 1 }, { bytes + 1, (size_t)-1 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	bool good = true;
	int s[2];

	MUST(streams_open(c, family, s));
	MUST(c->send(s[0], "abc", 3, 0) == 3 && readable_of(c, s[1]));
	good &= ROW(c->readv(s[1], iov, 2), -1, EINVAL);
	good &= ROW(c->recvmsg(s[1], &msg, 0), -1, EINVAL);
	good &= ROW(c->writev(s[0], iov, 2), -1, EINVAL);
	good &= ROW(c->recv(s[1], bytes, SIZE_MAX, MSG_PEEK), 3, 0);
	good &= ROW(c->recvfrom(s[1], bytes, SIZE_MAX, 0, NULL, NULL), 3, 0);
	good &= ROW(c->recv(s[1], bytes, 1, MSG_DONTWAIT), -1, EAGAIN);
	return streams_close(c, s) && good;
}
ON_BOTH(long_lengths)

static bool headers_of(const struct calls *c, int family)
{
	char byte = 'a', text[INET6_ADDRSTRLEN];
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_namelen = 99 };
	bool good = true;
	int s[2];

	MUST(streams_open(c, family, s));
	good &= ROW(c->sendmsg(-1, NULL, 0), -1, EBADF);
	good &= ROW(c->recvmsg(-1, NULL, 0), -1, EBADF);
	good &= ROW(c->writev(-1, NULL, -1), -1, EBADF);
	good &= ROW(c->readv(-1, NULL, -1), -1, EBADF);
	good &= ROW(c->sendmsg(s[0], NULL, 0), -1, EFAULT);
	good &= ROW(c->recvmsg(s[1], NULL, 0), -1, EFAULT);
	good &= ROW(c->writev(s[0], NULL, 1), -1, EFAULT);
	good &= ROW(c->readv(s[1], NULL, 1), -1, EFAULT);
	msg.msg_iov = NULL;
	good &= ROW(c->sendmsg(s[0], &msg, 0), -1, EFAULT);
	good &= ROW(c->recvmsg(s[1], &msg, 0), -1, EFAULT);
	msg.msg_iov = &iov;
	/* without a name its length does not matter */
	good &= ROW(c->sendmsg(s[0], &msg, 0), 1, 0);
	good &= ROW(c->sendto(s[0], &byte, 1, 0, NULL, 99), 1, 0);
	MUST(readable_of(c, s[1]));
	good &= ROW(c->recvmsg(s[1], &msg, 0), 1, 0) && msg.msg_namelen == 99;
	msg.msg_name = text;
	good &= ROW(c->recvmsg(s[1], &msg, 0), 1, 0) && msg.msg_namelen == 0;
	good &= ROW(c->recv(s[1], &byte, 1, MSG_DONTWAIT), -1, EAGAIN);
	return streams_close(c, s) && good;
}
ON_BOTH(headers)

/* tcp(7): "MSG_TRUNC causes the received bytes of data to be discarded" */
static bool flags_of(const struct calls *c, int family)
{
	char bytes[8] = "-------";
	bool good = true;
	int s[2];

	MUST(streams_open(c, family, s));
	good &= ROW(c->recv(s[1], bytes, 1, MSG_ERRQUEUE), -1, EAGAIN);
	good &= ROW(c->recv(s[1], bytes, 1, MSG_OOB), -1, EINVAL);
	MUST(c->send(s[0], "abcdef", 6, 0) == 6 && readable_of(c, s[1]));
	good &= ROW(c->recv(s[1], bytes, 1, MSG_ERRQUEUE), -1, EAGAIN);
	good &= ROW(c->recv(s[1], bytes, 1, MSG_OOB), -1, EINVAL);
	good &= ROW(c->recv(s[1], bytes, 7, MSG_TRUNC | MSG_PEEK), 6, 0);
	good &= ROW(c->recv(s[1], bytes, 2, MSG_TRUNC), 2, 0) && !strcmp(bytes, "-------");
	good &= ROW(c->recv(s[1], NULL, 2, MSG_TRUNC), 2, 0);
	good &= ROW(c->recv(s[1], bytes, 7, 0), 2, 0) && !memcmp(bytes, "ef-", 3);
	return streams_close(c, s) && good;
}
ON_BOTH(flags)

/* ---- addresses and states ---- */

static bool no_address_of(const struct calls *c, int family)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM };
	union address at = own(family, 0);
	struct sockaddr *nowhere = NULL;
	socklen_t len = sizeof(at);
	bool good = true;
	int s;

	for (int i = 0; i < 2; i++) {
		MUST((s = c->make(family, types[i], 0)) >= 0);
		good &= ROW(c->bind(s, nowhere, 0), -1, EINVAL);
		good &= ROW(c->bind(s, &at.sa, 0), -1, EINVAL);
		good &= ROW(c->bind(s, nowhere, length_of(family)), -1, EFAULT);
		good &= ROW(c->connect(s, nowhere, 0), -1, EINVAL);
		good &= ROW(c->connect(s, &at.sa, 0), -1, EINVAL);
		good &= ROW(c->connect(s, nowhere, length_of(family)), -1, EFAULT);
		good &= ROW(c->sockname(s, &at.sa, NULL), -1, EFAULT);
		good &= ROW(c->sockname(s, NULL, &len), -1, EFAULT);
		good &= ROW(c->peername(s, NULL, NULL), -1, ENOTCONN);
		len = 0;
		good &= ROW(c->sockname(s, NULL, &len), 0, 0) && len == length_of(family);
		good &= ROW(c->shutdown(s, -1), -1, EINVAL);
		good &= ROW(c->shutdown(s, 3), -1, EINVAL);
		MUST_EQ(c->close(s), 0);
	}
	return good;
}
ON_BOTH(no_address)

/* A negative backlog is the greatest. */
static bool backlog_of(const struct calls *c, int family)
{
	enum { MANY = 6 };
	union address at = own(family, 0);
	struct pollfd p = { .events = POLLOUT };
	socklen_t len = sizeof(at);
	int l, s[MANY];
	bool good = true;

	MUST((l = c->make(family, SOCK_STREAM, 0)) >= 0);
	MUST_EQ(c->bind(l, &at.sa, length_of(family)), 0);
	MUST_EQ(c->listen(l, -1), 0);
	MUST_EQ(c->sockname(l, &at.sa, &len), 0);
	for (int i = 0; i < MANY; i++) {
		MUST((s[i] = c->make(family, SOCK_STREAM | SOCK_NONBLOCK, 0)) >= 0);
		MUST(!c->connect(s[i], &at.sa, length_of(family)) || errno == EINPROGRESS);
	}
	for (int i = 0; i < MANY; i++) {
		p.fd = s[i];
		good &= ROW(c->poll(&p, 1, WAIT_MS / 4), 1, 0) && p.revents == POLLOUT;
	}
	for (int i = 0; i < MANY; i++)
		MUST_EQ(c->close(s[i]), 0);
	MUST_EQ(c->close(l), 0);
	return good;
}
ON_BOTH(backlog)

static bool takes_one(const struct calls *c, int family, int l, const union address *at)
{
	int s = c->make(family, SOCK_STREAM | SOCK_NONBLOCK, 0), accepted;

	MUST(s >= 0 && (!c->connect(s, &at->sa, length_of(family)) || errno == EINPROGRESS));
	MUST(readable_of(c, l));
	MUST((accepted = c->accept(l, NULL, NULL)) >= 0);
	MUST(!c->close(accepted) && !c->close(s));
	return true;
}

/* A listener that was shut down for reading may listen again. */
static bool shut_listener_of(const struct calls *c, int family)
{
	socklen_t len = sizeof(union address);
	union address at;
	bool good = true;
	int l;

	MUST(server_of(c, family, SOCK_STREAM, &l, &at));
	good &= ROW(c->shutdown(l, 7), -1, EINVAL);
	good &= ROW(c->shutdown(l, SHUT_WR), 0, 0);
	good &= takes_one(c, family, l, &at);
	good &= ROW(c->shutdown(l, SHUT_RD), 0, 0);
	good &= ROW(c->accept(l, NULL, NULL), -1, EINVAL);
	good &= ROW(c->listen(l, 1), 0, 0);
	MUST_EQ(c->sockname(l, &at.sa, &len), 0);
	good &= takes_one(c, family, l, &at);
	MUST_EQ(c->close(l), 0);
	return good;
}
ON_BOTH(shut_listener)

/* listen(2) of a socket without an address gives the socket a port at all addresses. */
static bool listen_unbound_of(const struct calls *c, int family)
{
	union address at, any = wild(family, 0), none = { .sa.sa_family = 0 };
	socklen_t len = sizeof(at);
	bool good = true;
	int l;

	MUST((l = c->make(family, SOCK_STREAM, 0)) >= 0);
	good &= ROW(c->listen(l, INT_MIN), 0, 0);
	good &= ROW(c->listen(l, 0), 0, 0);
	MUST_EQ(c->sockname(l, &at.sa, &len), 0);
	good &= same_host(&at.sa, &any) && port_of(&at.sa);
	good &= ROW(c->bind(l, &at.sa, len), -1, EINVAL);
	good &= ROW(c->connect(l, &at.sa, len), -1, EISCONN);
	good &= ROW(c->recv(l, &none, 1, 0), -1, ENOTCONN);
	good &= ROW(c->peername(l, &none.sa, &len), -1, ENOTCONN);
	at = own(family, port_of(&at.sa));
	good &= takes_one(c, family, l, &at);
	MUST_EQ(c->close(l), 0);
	return good;
}
ON_BOTH(listen_unbound)

/* A connect under way ends with ECONNRESET, and may be repeated. */
static bool shut_connecting_of(const struct calls *c, int family)
{
	union address to = other(family, SILENT, 7471), at;
	struct pollfd p = { .events = POLLOUT };
	int s, l, error = 0;
	socklen_t len = sizeof(error);
	bool good = true;

	MUST((s = c->make(family, SOCK_STREAM | SOCK_NONBLOCK, 0)) >= 0);
	MUST_ERR(c->connect(s, &to.sa, length_of(family)), EINPROGRESS);
	good &= ROW(c->connect(s, &to.sa, length_of(family)), -1, EALREADY);
	good &= ROW(c->shutdown(s, 7), -1, EINVAL);
	good &= ROW(c->shutdown(s, SHUT_RDWR), 0, 0);
	p.fd = s;
	good &= ROW(c->poll(&p, 1, WAIT_MS), 1, 0) && (p.revents & (POLLERR | POLLHUP));
	good &= ROW(c->get(s, SOL_SOCKET, SO_ERROR, &error, &len), 0, 0) && error == ECONNRESET;
	good &= ROW(c->shutdown(s, SHUT_RDWR), -1, ENOTCONN);
	MUST(server_of(c, family, SOCK_STREAM, &l, &at));
	MUST(!c->connect(s, &at.sa, length_of(family)) || errno == EINPROGRESS);
	/* the kernel's socket stays shut down, and has POLLHUP */
	good &= ROW(c->poll(&p, 1, WAIT_MS), 1, 0) && (p.revents & POLLOUT);
	good &= c == &kernels || p.revents == POLLOUT;
	MUST(!c->close(s) && !c->close(l));
	return good;
}
ON_BOTH(shut_connecting)

/* ---- options ---- */

static bool short_options_of(const struct calls *c, int family)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM };
	struct linger linger = { 1, 3 }, told = { 0, 0 };
	unsigned char tos = 0x20;
	bool good = true;
	socklen_t len;
	int s, n = 1;

	for (int i = 0; i < 2; i++) {
		MUST((s = c->make(family, types[i], 0)) >= 0);
		good &= ROW(c->set(s, SOL_SOCKET, SO_REUSEADDR, NULL, 0), -1, EINVAL);
		good &= ROW(c->set(s, SOL_SOCKET, SO_REUSEADDR, &n, 3), -1, EINVAL);
		good &= ROW(c->set(s, SOL_SOCKET, SO_REUSEADDR, NULL, 4), -1, EFAULT);
		good &= ROW(c->set(s, SOL_SOCKET, SO_LINGER, NULL, 8), -1, EFAULT);
		good &= ROW(c->set(s, SOL_SOCKET, SO_LINGER, &linger, 7), -1, EINVAL);
		good &= ROW(c->set(s, SOL_SOCKET, SO_LINGER, &linger, 8), 0, 0);
		/* as much as there is room for */
		len = sizeof(told.l_onoff);
		good &= ROW(c->get(s, SOL_SOCKET, SO_LINGER, &told, &len), 0, 0);
		good &= len == sizeof(told.l_onoff) && told.l_onoff == 1 && !told.l_linger;
		len = 8;
		good &= ROW(c->get(s, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 0 }, &len), 0, 0);
		good &= len == 8;
		len = 2;
		good &= ROW(c->get(s, SOL_SOCKET, SO_TYPE, &n, &len), 0, 0) && len == 2;
		good &= ROW(c->get(s, SOL_SOCKET, SO_TYPE, &n, NULL), -1, EFAULT);
		len = sizeof(n);
		good &= ROW(c->get(s, SOL_SOCKET, SO_TYPE, NULL, &len), -1, EFAULT);
		len = 0;
		good &= ROW(c->get(s, SOL_SOCKET, SO_TYPE, NULL, &len), 0, 0) && !len;
		if (family == AF_INET) {
			good &= ROW(c->set(s, IPPROTO_IP, IP_TOS, &tos, 1), 0, 0);
			len = sizeof(n);
			good &= ROW(c->get(s, IPPROTO_IP, IP_TOS, &n, &len), 0, 0) && n == tos;
		}
		n = 1;
		MUST_EQ(c->close(s), 0);
	}
	return good;
}
ON_BOTH(short_options)

/* A datagram socket reports the values that were set. */
static bool datagram_options_of(const struct calls *c, int family)
{
	static const int names[] = { SO_BROADCAST, SO_REUSEADDR, SO_KEEPALIVE, SO_PRIORITY };
	const int level = family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
	const int name = family == AF_INET6 ? IPV6_V6ONLY : IP_RECVTOS;
	int s, on, one = 1;
	bool good = true;
	socklen_t len;

	MUST((s = c->make(family, SOCK_DGRAM, 0)) >= 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		on = 0;
		len = sizeof(on);
		good &= ROW(c->set(s, SOL_SOCKET, names[i], &one, sizeof(one)), 0, 0);
		good &= ROW(c->get(s, SOL_SOCKET, names[i], &on, &len), 0, 0) && on == 1;
	}
	good &= ROW(c->set(s, level, name, &one, sizeof(one)), 0, 0);
	len = sizeof(on);
	on = 0;
	good &= ROW(c->get(s, level, name, &on, &len), 0, 0) && on == 1;
	/* a value of fewer bytes than a number */
	good &= ROW(c->set(s, SOL_SOCKET, SO_BINDTODEVICE, "lo", 2), 0, 0);
	good &= ROW(c->set(s, SOL_SOCKET, SO_BINDTODEVICE, NULL, 0), 0, 0);
	MUST_EQ(c->close(s), 0);
	return good;
}
ON_BOTH(datagram_options)

/* What rsockets do not have is ENOTSUP, whatever the value is. */
static bool unknown_options(void)
{
	int s = rsocket(AF_INET, SOCK_STREAM, 0), n = 1;
	socklen_t len = sizeof(n);
	bool good = true;

	MUST(s >= 0);
	good &= ROW(rsetsockopt(s, IPPROTO_TCP, TCP_ULP, "tls", 3), -1, ENOTSUP);
	good &= ROW(rsetsockopt(s, SOL_SOCKET, SO_BINDTODEVICE, "lo", 2), -1, ENOTSUP);
	good &= ROW(rsetsockopt(s, SOL_SOCKET, SO_DETACH_FILTER, NULL, 0), -1, ENOTSUP);
	good &= ROW(rsetsockopt(s, -1, -1, NULL, 0), -1, ENOTSUP);
	good &= ROW(rsetsockopt(s, SOL_RDMA, -1, NULL, UINT32_MAX), -1, ENOTSUP);
	good &= ROW(rgetsockopt(s, -1, -1, &n, &len), -1, ENOTSUP);
	good &= ROW(rsetsockopt(s, SOL_RDMA, RDMA_SQSIZE, NULL, 0), -1, EINVAL);
	good &= ROW(rsetsockopt(s, SOL_RDMA, RDMA_SQSIZE, &n, UINT32_MAX), 0, 0);
	good &= ROW(rsetsockopt(s, SOL_RDMA, RDMA_ROUTE, NULL, 4), -1, EFAULT);
	good &= ROW(rsetsockopt(s, SOL_RDMA, RDMA_ROUTE, &n, UINT32_MAX), -1, EINVAL);
	good &= ROW(rgetsockopt(s, SOL_RDMA, RDMA_ROUTE, &n, &len), -1, EINVAL);
	MUST_EQ(rclose(s), 0);
	return good;
}

/* A route that is none fails the connect, as rdma_set_option() does. */
static bool bad_route(int family)
{
	char route[7] = "";
	union address at;
	bool good = true;
	int s, l;

	MUST(server_of(&rsockets, family, SOCK_STREAM, &l, &at));
	MUST((s = rsocket(family, SOCK_STREAM, 0)) >= 0);
	MUST_EQ(rsetsockopt(s, SOL_RDMA, RDMA_ROUTE, route, sizeof(route)), 0);
	good &= ROW(rconnect(s, &at.sa, length_of(family)), -1, EINVAL);
	MUST(!rclose(s) && !rclose(l));
	return good;
}
BOTH(bad_route)

/* ---- rpoll(), rselect() ---- */

static bool waits_of(const struct calls *c, int family)
{
	struct timeval longest = { LONG_MAX / 1000, 5000000 }, before = { -1, 0 },
		       wrong = { 0, -1 };
	struct pollfd p = { .events = POLLIN | POLLOUT | POLLWRNORM };
	bool good = true;
	fd_set set;
	int s;

	MUST((s = c->make(family, SOCK_STREAM, 0)) >= 0);
	good &= ROW(c->poll(NULL, 1, 0), -1, EFAULT);
	good &= ROW(c->poll(&p, (nfds_t)-1, 0), -1, EINVAL);
	p.fd = s;
	good &= ROW(c->poll(&p, 1, INT_MIN), 1, 0) && p.revents == (POLLOUT | POLLWRNORM | POLLHUP);
	p.events = 0;
	good &= ROW(c->poll(&p, 1, -1), 1, 0) && p.revents == POLLHUP;
	FD_ZERO(&set);
	FD_SET(s, &set);
	good &= ROW(c->select(s + 1, NULL, &set, NULL, &longest), 1, 0) && FD_ISSET(s, &set);
	good &= ROW(c->select(s + 1, NULL, &set, NULL, &before), -1, EINVAL);
	good &= ROW(c->select(s + 1, NULL, &set, NULL, &wrong), -1, EINVAL);
	good &= ROW(c->select(-1, NULL, &set, NULL, NULL), -1, EINVAL);
	good &= FD_ISSET(s, &set) != 0;
	MUST_EQ(c->close(s), 0);
	good &= ROW(c->select(s + 1, NULL, &set, NULL, NULL), -1, EBADF);
	good &= ROW(c->poll(&p, 1, -1), 1, 0) && p.revents == POLLNVAL;
	return good;
}
ON_BOTH(waits)

/* ---- datagrams ---- */

/* s[1] is bound and s[0] connected to it. */
static bool datagrams_open(const struct calls *c, int family, int s[2])
{
	union address to;

	MUST(server_of(c, family, SOCK_DGRAM, &s[1], &to));
	MUST((s[0] = c->make(family, SOCK_DGRAM, 0)) >= 0);
	MUST_EQ(c->connect(s[0], &to.sa, length_of(family)), 0);
	return true;
}

/* Round 0 is before the peer has answered: the datagram goes by UDP. */
static bool datagram_rows(const struct calls *c, int s[2], int round)
{
	static struct iovec many[IOV_MAX + 1];
	static char bytes[IOV_MAX];
	struct iovec nowhere = { NULL, 3 }, none = { NULL, 0 };
	struct msghdr msg = { .msg_iov = NULL };
	bool good = true;

	for (int i = 0; i < IOV_MAX; i++)
		many[i] = (struct iovec){ bytes + i, i % 3 != round };
	good &= ROW(c->send(s[0], NULL, 3, 0), -1, EFAULT);
	good &= ROW(c->writev(s[0], &nowhere, 1), -1, EFAULT);
	good &= ROW(c->writev(s[0], NULL, 1), -1, EFAULT);
	good &= ROW(c->writev(s[0], many, IOV_MAX + 1), -1, EINVAL);
	good &= ROW(c->sendmsg(s[0], NULL, 0), -1, EFAULT);
	good &= ROW(c->send(s[0], NULL, 70000, 0), -1, EMSGSIZE);
	/* writev(2) of no bytes sends nothing, the others an empty datagram */
	good &= ROW(c->writev(s[0], &none, 1), 0, 0);
	good &= ROW(c->writev(s[0], many, IOV_MAX), 683 - (round == 0), 0);
	good &= ROW(c->send(s[0], NULL, 0, 0), 0, 0);
	good &= ROW(c->write(s[0], NULL, 0), 0, 0);
	good &= ROW(c->sendmsg(s[0], &msg, 0), 0, 0);
	MUST(readable_of(c, s[1]));
	good &= ROW(c->recv(s[1], bytes, 1, MSG_ERRQUEUE), -1, EAGAIN);
	good &= ROW(c->read(s[1], NULL, 0), 0, 0);
	good &= ROW(c->readv(s[1], NULL, 0), 0, 0);
	good &= ROW(c->readv(s[1], NULL, 1), -1, EFAULT);
	good &= ROW(c->recvmsg(s[1], NULL, 0), -1, EFAULT);
	good &= ROW(c->recv(s[1], NULL, 0, MSG_PEEK | MSG_TRUNC), 683 - (round == 0), 0);
	good &= ROW(c->recvmsg(s[1], &msg, 0), 0, 0) && msg.msg_flags == MSG_TRUNC;
	for (int i = 0; i < 3; i++)
		good &= ROW(c->recv(s[1], bytes, sizeof(bytes), 0), 0, 0);
	good &= ROW(c->recv(s[1], bytes, 1, MSG_DONTWAIT), -1, EAGAIN);
	good &= ROW(c->recv(s[1], bytes, 1, MSG_DONTWAIT | MSG_ERRQUEUE), -1, EAGAIN);
	MUST_EQ(c->send(s[0], "a", 1, 0), 1);
	MUST(readable_of(c, s[1]));
	good &= ROW(c->recv(s[1], NULL, 1, 0), -1, EFAULT);
	/* the kernel has dropped the datagram */
	if (c == &rsockets)
		good &= ROW(c->recv(s[1], bytes, 1, MSG_DONTWAIT), 1, 0);
	return good;
}

static bool datagram_calls_of(const struct calls *c, int family)
{
	bool good = true;
	int s[2];

	MUST(datagrams_open(c, family, s));
	for (int i = 0; i < 2; i++)
		good &= datagram_rows(c, s, i);
	return streams_close(c, s) && good;
}
ON_BOTH(datagram_calls)

/* A datagram is sent with its own call: none is a part of one. */
static bool datagram_parts(int family)
{
	bool good = true;
	char byte = 0;
	int s[2];

	MUST(datagrams_open(&rsockets, family, s));
	good &= ROW(rsend(s[0], "a", 1, MSG_MORE), -1, EOPNOTSUPP);
	good &= ROW(rsend(s[0], "a", 1, MSG_OOB), -1, EOPNOTSUPP);
	good &= ROW(rsend(s[0], "b", 1, 0), 1, 0);
	good &= ROW(rrecv(s[1], &byte, 1, 0), 1, 0) && byte == 'b';
	return streams_close(&rsockets, s) && good;
}
BOTH(datagram_parts)

/* ENOTCONN, and the directions are shut all the same: a waiting thread is woken. */
static bool shut_datagrams_of(const struct calls *c, int family)
{
	struct pollfd p = { .events = POLLIN | POLLRDHUP };
	union address at;
	bool good = true;
	char byte;
	int s;

	MUST(server_of(c, family, SOCK_DGRAM, &s, &at));
	p.fd = s;
	good &= ROW(c->shutdown(s, 4), -1, EINVAL);
	good &= ROW(c->recv(s, &byte, 1, MSG_DONTWAIT), -1, EAGAIN);
	good &= ROW(c->shutdown(s, SHUT_RD), -1, ENOTCONN);
	good &= ROW(c->recv(s, &byte, 1, 0), 0, 0);
	good &= ROW(c->poll(&p, 1, 0), 1, 0) && p.revents == (POLLIN | POLLRDHUP);
	good &= ROW(c->shutdown(s, SHUT_WR), -1, ENOTCONN);
	good &= ROW(c->poll(&p, 1, 0), 1, 0) && p.revents == (POLLIN | POLLRDHUP | POLLHUP);
	good &= ROW(c->sendto(s, "a", 1, MSG_NOSIGNAL, &at.sa, length_of(family)), -1, EPIPE);
	MUST_EQ(c->close(s), 0);
	return good;
}
ON_BOTH(shut_datagrams)

/* ---- mapped buffers ---- */

static bool offsets(int family)
{
	static char area[4096];
	int s[2], l, entries = 4;
	bool good = true;
	union address at;
	char byte;

	MUST(server_of(&rsockets, family, SOCK_STREAM, &l, &at));
	MUST_EQ(rsetsockopt(l, SOL_RDMA, RDMA_IOMAPSIZE, &entries, sizeof(entries)), 0);
	MUST((s[0] = rsocket(family, SOCK_STREAM | SOCK_NONBLOCK, 0)) >= 0);
	MUST_ERR(rconnect(s[0], &at.sa, length_of(family)), EINPROGRESS);
	MUST(readable_of(&rsockets, l));
	MUST((s[1] = raccept(l, NULL, NULL)) >= 0 && !rclose(l));
	MUST_EQ(rfcntl(s[0], F_SETFL, 0), 0);
	good &= ROW(riomap(s[0], NULL, 4096, PROT_WRITE, 0, 0), -1, 0);
	good &= ROW(riomap(s[0], area, 0, -1, 0, 0), -1, EINVAL);
	good &= ROW(riomap(s[0], area, SIZE_MAX, PROT_WRITE, 0, 0), -1, EINVAL);
	/* any offset but -1 is the caller's */
	good &= ROW(riomap(s[0], area, sizeof(area), PROT_WRITE, 0, -8192), -8192, 0);
	good &= ROW(rsend(s[0], "m", 1, 0), 1, 0) && rrecv(s[1], &byte, 1, 0) == 1;
	good &= ROW(riowrite(s[1], "there", 5, -8192 + 100, 0), 5, 0);
	good &= ROW(riowrite(s[1], NULL, 5, -8192, 0), -1, EFAULT);
	good &= ROW(riowrite(s[1], NULL, 0, -8192, 0), 0, 0);
	good &= ROW(riowrite(s[1], "there", 5, -1, 0), 0, 0);
	good &= ROW(riowrite(s[1], "there", 5, -8193, 0), 0, 0);
	good &= ROW(rsend(s[1], "d", 1, 0), 1, 0) && rrecv(s[0], &byte, 1, 0) == 1;
	good &= !strcmp(area + 100, "there");
	good &= ROW(riounmap(s[0], NULL, 0), -1, EINVAL);
	good &= ROW(riounmap(s[0], area, sizeof(area) - 1), -1, EINVAL);
	good &= ROW(riounmap(s[0], area, sizeof(area)), 0, 0);
	good &= ROW(riounmap(s[0], area, sizeof(area)), -1, EINVAL);
	return streams_close(&rsockets, s) && good;
}
BOTH(offsets)

const struct test_case man_cases[] = {
	CASE(no_buffer_v4),
	CASE(no_buffer_v6),
	CASE(no_bytes_v4),
	CASE(no_bytes_v6),
	CASE(long_lengths_v4),
	CASE(long_lengths_v6),
	CASE(headers_v4),
	CASE(headers_v6),
	CASE(flags_v4),
	CASE(flags_v6),
	CASE(no_address_v4),
	CASE(no_address_v6),
	CASE(backlog_v4),
	CASE(backlog_v6),
	CASE(shut_listener_v4),
	CASE(shut_listener_v6),
	CASE(listen_unbound_v4),
	CASE(listen_unbound_v6),
	CASE(shut_connecting_v4),
	CASE(shut_connecting_v6),
	CASE(short_options_v4),
	CASE(short_options_v6),
	CASE(datagram_options_v4),
	CASE(datagram_options_v6),
	CASE(unknown_options),
	CASE(bad_route_v4),
	CASE(bad_route_v6),
	CASE(waits_v4),
	CASE(waits_v6),
	CASE(datagram_calls_v4),
	CASE(datagram_calls_v6),
	CASE(datagram_parts_v4),
	CASE(datagram_parts_v6),
	CASE(shut_datagrams_v4),
	CASE(shut_datagrams_v6),
	CASE(offsets_v4),
	CASE(offsets_v6),
	{ 0 },
};
