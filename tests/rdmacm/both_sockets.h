/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls of sockets of the kernel and of rsockets, for pages that run each case on both:
 * rsocket(7) promises the behavior of the socket calls. The includer defines _GNU_SOURCE.
 */
#ifndef TESTS_RDMACM_BOTH_SOCKETS_H
#define TESTS_RDMACM_BOTH_SOCKETS_H

#include <fcntl.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "man.h"

/* The calls of one kind of sockets. */
struct calls {
	int (*make)(int, int, int);
	int (*bind)(int, const struct sockaddr *, socklen_t);
	int (*listen)(int, int);
	int (*accept)(int, struct sockaddr *, socklen_t *);
	int (*connect)(int, const struct sockaddr *, socklen_t);
	int (*shutdown)(int, int);
	int (*sockname)(int, struct sockaddr *, socklen_t *);
	int (*peername)(int, struct sockaddr *, socklen_t *);
	int (*get)(int, int, int, void *, socklen_t *);
	int (*set)(int, int, int, const void *, socklen_t);
	int (*fcntl)(int, int, ...);
	int (*poll)(struct pollfd *, nfds_t, int);
	int (*select)(int, fd_set *, fd_set *, fd_set *, struct timeval *);
	ssize_t (*recv)(int, void *, size_t, int);
	ssize_t (*recvfrom)(int, void *, size_t, int, struct sockaddr *, socklen_t *);
	ssize_t (*send)(int, const void *, size_t, int);
	ssize_t (*sendto)(int, const void *, size_t, int, const struct sockaddr *, socklen_t);
	ssize_t (*read)(int, void *, size_t);
	ssize_t (*readv)(int, const struct iovec *, int);
	ssize_t (*write)(int, const void *, size_t);
	ssize_t (*writev)(int, const struct iovec *, int);
	ssize_t (*recvmsg)(int, struct msghdr *, int);
	ssize_t (*sendmsg)(int, const struct msghdr *, int);
	int (*close)(int);
};

/* poll(2), past ASan's wrapper, which reads entries that a wrong count promises. */
static inline int kernel_poll(struct pollfd *p, nfds_t n, int ms)
{
	const struct timespec wait = { ms / 1000, ms % 1000 * 1000000L };

	return (int)syscall(SYS_ppoll, p, n, ms < 0 ? NULL : &wait, NULL, 0);
}

static const struct calls kernels = {
	socket,	    bind,	listen, accept,	     connect, shutdown, getsockname, getpeername,
	getsockopt, setsockopt, fcntl,	kernel_poll, select,  recv,	recvfrom,    send,
	sendto,	    read,	readv,	write,	     writev,  recvmsg,	sendmsg,     close,
};

static const struct calls rsockets = {
	rsocket,     rbind,	  rlisten, raccept, rconnect, rshutdown, rgetsockname, rgetpeername,
	rgetsockopt, rsetsockopt, rfcntl,  rpoll,   rselect,  rrecv,	 rrecvfrom,    rsend,
	rsendto,     rread,	  rreadv,  rwrite,  rwritev,  rrecvmsg,	 rsendmsg,     rclose,
};

static inline socklen_t length_of(int family)
{
	return family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* Makes a bound socket of the type, which listens if it is a stream, and takes its address. */
static inline bool server_of(const struct calls *c, int family, int type, int *s, union address *at)
{
	socklen_t len = sizeof(*at);

	*at = own(family, 0);
	MUST((*s = c->make(family, type, 0)) >= 0);
	MUST_EQ(c->bind(*s, &at->sa, length_of(family)), 0);
	if (type == SOCK_STREAM)
		MUST_EQ(c->listen(*s, 4), 0);
	MUST_EQ(c->sockname(*s, &at->sa, &len), 0);
	return true;
}

/* Makes two connected streams in one thread. */
static inline bool streams_open(const struct calls *c, int family, int s[2])
{
	struct pollfd p[2];
	union address to;
	int l;

	MUST(server_of(c, family, SOCK_STREAM, &l, &to));
	MUST((s[0] = c->make(family, SOCK_STREAM | SOCK_NONBLOCK, 0)) >= 0);
	MUST(!c->connect(s[0], &to.sa, length_of(family)) || errno == EINPROGRESS);
	p[0] = (struct pollfd){ .fd = l, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = s[0], .events = POLLOUT };
	MUST(c->poll(p, 1, WAIT_MS) == 1);
	MUST((s[1] = c->accept(l, NULL, NULL)) >= 0);
	MUST(c->poll(p + 1, 1, WAIT_MS) == 1 && p[1].revents == POLLOUT);
	MUST_EQ(c->close(l), 0);
	return true;
}

static inline bool streams_close(const struct calls *c, int s[2])
{
	MUST(!c->close(s[0]) && !c->close(s[1]));
	return true;
}

/* A case of both kinds, of each family. */
#define ON_BOTH(name)                                                                              \
	static bool name(int family)                                                               \
	{                                                                                          \
		MUST(name##_of(&kernels, family));                                                 \
		return name##_of(&rsockets, family);                                               \
	}                                                                                          \
	BOTH(name)

#endif
