/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the calls of rsocket(7) answer, their options, and mapped buffers. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/mman.h>

#include "rsockets.h"

/* ---- what calls answer ---- */

bool socket_kinds(void)
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

bool connect_refused(void)
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

bool connect_nonblocking(void)
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

bool names(void)
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

bool bind_in_use(void)
{
	CHECK(pair_listen(1));
	pair.client = rsocket(at.any.sa_family, SOCK_STREAM, 0);
	CHECK_ERRNO(rbind(pair.client, &at.any, at_bytes), EADDRINUSE);
	return true;
}

/* ---- options ---- */

bool options(void)
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

bool options_of_the_connected(void)
{
	int value = 64;

	CHECK(pair_open());
	CHECK_ERRNO(rsetsockopt(pair.client, SOL_RDMA, RDMA_SQSIZE, &value, sizeof(value)), EINVAL);
	CHECK(!rsetsockopt(pair.client, SOL_SOCKET, SO_RCVBUF, &value, sizeof(value)));
	return true;
}

/* Two of them go out while nothing is sent, and do no harm. */
bool keepalive(void)
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

bool mapped(void)
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
	/* only mapped memory is written */
	CHECK(riowrite(pair.client, source, 5000, 5000, 0) == 1000);
	CHECK(riowrite(pair.client, source, 10, 6000, 0) == 0);
	CHECK(riowrite(pair.client, source, 10, 999, 0) == 0);
	CHECK_ERRNO(riounmap(pair.server, target, 10), EINVAL);
	CHECK(!riounmap(pair.server, target, sizeof(target)));
	return true;
}

bool mapped_without_a_table(void)
{
	static char target[100];

	CHECK(pair_open());
	CHECK_ERRNO(riomap(pair.client, target, sizeof(target), PROT_WRITE, 0, 0), ENOMEM);
	CHECK(riomap(pair.client, target, sizeof(target), PROT_NONE, 0, 0) == 0);
	CHECK(!riounmap(pair.client, target, sizeof(target)));
	return true;
}
