/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * rsocket(7): calls that fail, as the sockets' do: a second rbind(), addresses of unconnected
 * sockets, vectors and timeouts out of range. Each case of streams and of the kernel's sockets is
 * run on both, so that the kernel's result is the expected one.
 */
#define _GNU_SOURCE
#include <limits.h>

#include "both_sockets.h"

/* Bound once, whatever the second address; a connect binds as well. */
static bool bind_twice_of(const struct calls *c, int family)
{
	union address at = own(family, 0), other_family = own(AF_INET + AF_INET6 - family, 0), now;
	socklen_t len = sizeof(now);
	uint16_t port;
	int s, two[2];

	MUST((s = c->make(family, SOCK_STREAM, 0)) >= 0);
	MUST_ERR(c->bind(s, NULL, length_of(family)), EFAULT);
	MUST_ERR(c->bind(s, &at.sa, sizeof(at.sa.sa_family)), EINVAL);
	MUST_EQ(c->bind(s, &at.sa, length_of(family)), 0);
	MUST_EQ(c->sockname(s, &now.sa, &len), 0);
	port = port_of(&now.sa);
	MUST(port);
	MUST_ERR(c->bind(s, &at.sa, length_of(family)), EINVAL);
	at = wild(family, 0);
	MUST_ERR(c->bind(s, &at.sa, length_of(family)), EINVAL);
	/* a fault of the address comes first */
	MUST_ERR(c->bind(s, NULL, length_of(family)), EFAULT);
	if (family == AF_INET)
		MUST_ERR(c->bind(s, &other_family.sa, length_of(AF_INET6)), EAFNOSUPPORT);
	len = sizeof(now);
	MUST_EQ(c->sockname(s, &now.sa, &len), 0);
	at = own(family, 0);
	MUST(same_host(&now.sa, &at) && port_of(&now.sa) == port);
	MUST_EQ(c->listen(s, 1), 0);
	MUST_ERR(c->bind(s, &at.sa, length_of(family)), EINVAL);
	MUST_EQ(c->close(s), 0);
	MUST(streams_open(c, family, two));
	for (int i = 0; i < 2; i++)
		MUST_ERR(c->bind(two[i], &at.sa, length_of(family)), EINVAL);
	return streams_close(c, two);
}
ON_BOTH(bind_twice)

/* getpeername(2): ENOTCONN, whatever else it is */
static bool not_connected_of(const struct calls *c, int family)
{
	union address to, name;
	socklen_t len = sizeof(name);
	int s, l;

	MUST((s = c->make(family, SOCK_STREAM, 0)) >= 0);
	MUST_ERR(c->peername(s, &name.sa, &len), ENOTCONN);
	MUST(server_of(c, family, SOCK_STREAM, &l, &to));
	MUST_ERR(c->peername(l, &name.sa, &len), ENOTCONN);
	MUST_EQ(c->close(l), 0);
	MUST_ERR(c->connect(s, &to.sa, length_of(family)), ECONNREFUSED);
	MUST_ERR(c->peername(s, &name.sa, &len), ENOTCONN);
	MUST_EQ(len, sizeof(name));
	MUST_EQ(c->close(s), 0);
	return true;
}
ON_BOTH(not_connected)

/* sendto(2): of a connected stream the address is ignored, or EISCONN; rsockets say that. */
static bool send_elsewhere(int family)
{
	union address to = own(family, 7471);
	struct msghdr msg = { .msg_name = &to, .msg_namelen = length_of(family) };
	char byte = 0;
	int s[2];

	MUST(streams_open(&rsockets, family, s));
	MUST_ERR(rsendto(s[0], &byte, 1, 0, &to.sa, length_of(family)), EISCONN);
	msg.msg_iov = &(struct iovec){ &byte, 1 };
	msg.msg_iovlen = 1;
	MUST_ERR(rsendmsg(s[0], &msg, 0), EISCONN);
	MUST_ERR(rrecv(s[1], &byte, 1, MSG_DONTWAIT), EAGAIN);
	return streams_close(&rsockets, s);
}
BOTH(send_elsewhere)

/* readv(2): EINVAL, recvmsg(2): EMSGSIZE; as many as IOV_MAX are taken */
static bool vectors_of(const struct calls *c, int family)
{
	static char bytes[IOV_MAX + 1], got[IOV_MAX + 1];
	static struct iovec out[IOV_MAX + 1], in[IOV_MAX + 1];
	struct msghdr msg = { .msg_iov = out, .msg_iovlen = IOV_MAX + 1 };
	struct pollfd p = { .events = POLLIN };
	int s[2];

	MUST(streams_open(c, family, s));
	for (int i = 0; i <= IOV_MAX; i++) {
		bytes[i] = (char)(i * 7 + 1);
		out[i] = (struct iovec){ bytes + i, 1 };
		in[i] = (struct iovec){ got + i, 1 };
	}
	MUST_ERR(c->writev(s[0], out, IOV_MAX + 1), EINVAL);
	MUST_ERR(c->writev(s[0], out, -1), EINVAL);
	MUST_ERR(c->sendmsg(s[0], &msg, 0), EMSGSIZE);
	MUST_EQ(c->writev(s[0], out, IOV_MAX), IOV_MAX);
	p.fd = s[1];
	MUST_EQ(c->poll(&p, 1, WAIT_MS), 1);
	MUST_ERR(c->readv(s[1], in, IOV_MAX + 1), EINVAL);
	MUST_ERR(c->readv(s[1], in, -1), EINVAL);
	msg.msg_iov = in;
	MUST_ERR(c->recvmsg(s[1], &msg, 0), EMSGSIZE);
	/* nothing was taken by any of them */
	memset(got, 0, sizeof(got));
	MUST_EQ(c->recv(s[1], got, IOV_MAX + 1, MSG_WAITALL | MSG_PEEK | MSG_DONTWAIT), IOV_MAX);
	MUST(!memcmp(got, bytes, IOV_MAX));
	memset(got, 0, sizeof(got));
	MUST_EQ(c->readv(s[1], in, IOV_MAX), IOV_MAX);
	MUST(!memcmp(got, bytes, IOV_MAX));
	msg.msg_iov = out;
	msg.msg_iovlen = IOV_MAX;
	MUST_EQ(c->sendmsg(s[0], &msg, 0), IOV_MAX);
	return streams_close(c, s);
}
ON_BOTH(vectors)

static bool timeout_is(const struct calls *c, int s, int name, long sec, long usec)
{
	struct timeval t = { -1, -1 };
	socklen_t len = sizeof(t);

	MUST_EQ(c->get(s, SOL_SOCKET, name, &t, &len), 0);
	MUST_EQ(len, sizeof(t));
	MUST_EQ(t.tv_sec, sec);
	MUST_EQ(t.tv_usec, usec);
	return true;
}

/* setsockopt(2): "EDOM"; of a time below zero nothing is waited for */
static bool timeouts_of(const struct calls *c, int family)
{
	static const int name[] = { SO_RCVTIMEO, SO_SNDTIMEO };
	static const struct timeval wrong[] = {
		{ 0, -1 }, { 0, 1000000 }, { 5, 2000000 }, { -5, -1 }, { -5, 1000000 }
	};
	struct timeval good = { 3, 500000 };
	char byte;
	int s[2];

	MUST(streams_open(c, family, s));
	for (int i = 0; i < 2; i++) {
		MUST(timeout_is(c, s[1], name[i], 0, 0));
		MUST_EQ(c->set(s[1], SOL_SOCKET, name[i], &good, sizeof(good)), 0);
		MUST(timeout_is(c, s[1], name[i], 3, 500000));
		for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++)
			MUST_ERR(c->set(s[1], SOL_SOCKET, name[i], &wrong[k], sizeof(wrong[k])),
				 EDOM);
		MUST_ERR(c->set(s[1], SOL_SOCKET, name[i], &good, sizeof(good) - 1), EINVAL);
		MUST(timeout_is(c, s[1], name[i], 3, 500000));
	}
	good = (struct timeval){ .tv_sec = -1 };
	MUST_EQ(c->set(s[1], SOL_SOCKET, SO_RCVTIMEO, &good, sizeof(good)), 0);
	MUST(timeout_is(c, s[1], SO_RCVTIMEO, 0, 0));
	MUST_ERR(c->recv(s[1], &byte, 1, 0), EAGAIN);
	/* the longest one is none */
	good = (struct timeval){ .tv_sec = LONG_MAX, .tv_usec = 999999 };
	MUST_EQ(c->set(s[1], SOL_SOCKET, SO_RCVTIMEO, &good, sizeof(good)), 0);
	MUST_EQ(c->sendto(s[0], "x", 1, 0, NULL, 0), 1);
	MUST_EQ(c->recv(s[1], &byte, 1, 0), 1);
	return streams_close(c, s);
}
ON_BOTH(timeouts)

const struct test_case man_cases[] = {
	CASE(bind_twice_v4),
	CASE(bind_twice_v6),
	CASE(not_connected_v4),
	CASE(not_connected_v6),
	CASE(send_elsewhere_v4),
	CASE(send_elsewhere_v6),
	CASE(vectors_v4),
	CASE(vectors_v6),
	CASE(timeouts_v4),
	CASE(timeouts_v6),
	{ 0 },
};
