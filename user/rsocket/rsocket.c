/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The functions of rsocket(7) for programs, except options (rsocket_option.c) and waiting
 * (rsocket_wait.c): each finds the object of a descriptor and calls the function of its kind.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>

#include "../os/thread.h"
#include "rsocket_dgram.h"
#include "rsocket_object.h"
#include "rsocket_stream.h"

/* Ends a call and returns its value. */
static ssize_t rsocket_return(struct rsocket *rs, ssize_t value)
{
	rsocket_put(rs);
	cancel_release();
	if (value >= 0)
		return value;
	errno = (int)-value;
	return -1;
}

/* ---- functions of both kinds ---- */

bool rsocket_progress(struct rsocket *rs)
{
	return rs->type == SOCK_DGRAM ? dgram_progress(dgram_of(rs)) :
					stream_progress(stream_of(rs));
}

int rsocket_arm(struct rsocket *rs)
{
	return rs->type == SOCK_DGRAM ? dgram_arm(dgram_of(rs)) : stream_arm(stream_of(rs));
}

void rsocket_disarm(struct rsocket *rs)
{
	if (rs->type == SOCK_DGRAM)
		dgram_disarm(dgram_of(rs));
	else
		stream_disarm(stream_of(rs));
}

short rsocket_events(struct rsocket *rs, short wanted)
{
	return rs->type == SOCK_DGRAM ? dgram_events(dgram_of(rs), wanted) :
					stream_events(stream_of(rs), wanted);
}

void rsocket_end(struct rsocket *rs)
{
	int saved = errno;

	if (rs->type == SOCK_DGRAM)
		dgram_destroy(dgram_of(rs));
	else
		stream_destroy(stream_of(rs));
	errno = saved;
}

/* ---- creation and destruction ---- */

static int rsocket_make_dgram(int domain, int type)
{
	struct dgram *d = dgram_alloc(domain);
	int fd, err;

	if (!d)
		return -ENOMEM;
	fd = socket(domain, type, 0);
	if (fd < 0) {
		err = -errno;
		dgram_destroy(d);
		return err;
	}
	d->rs.file_flags = type & SOCK_NONBLOCK ? O_NONBLOCK : 0;
	d->rs.fd_flags = type & SOCK_CLOEXEC ? FD_CLOEXEC : 0;
	err = rsocket_enter(&d->rs, fd);
	if (!err)
		return fd;
	close(fd);
	dgram_destroy(d);
	return err;
}

static int rsocket_make_stream(int domain, int type)
{
	struct stream *s = stream_alloc(domain);
	int err;

	if (!s)
		return -ENOMEM;
	s->rs.file_flags = type & SOCK_NONBLOCK ? O_NONBLOCK : 0;
	s->rs.fd_flags = type & SOCK_CLOEXEC ? FD_CLOEXEC : 0;
	err = connect_id(s);
	if (!err)
		err = rsocket_number(&s->rs);
	if (err) {
		stream_destroy(s);
		return err;
	}
	/* The flag also applies to the descriptor that reserves the number. */
	if (!s->rs.fd_flags)
		fcntl(s->rs.fd, F_SETFD, 0);
	return s->rs.fd;
}

RSOCKET_EXPORT int rsocket(int domain, int type, int protocol)
{
	int kind = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK), fd = -ENOTSUP;

	cancel_hold();
	if (domain == AF_INET || domain == AF_INET6) {
		if (kind == SOCK_STREAM && (!protocol || protocol == IPPROTO_TCP))
			fd = rsocket_make_stream(domain, type);
		else if (kind == SOCK_DGRAM && (!protocol || protocol == IPPROTO_UDP))
			fd = rsocket_make_dgram(domain, type);
	}
	cancel_release();
	if (fd >= 0)
		return fd;
	errno = -fd;
	return -1;
}

/* Not a cancellation point: the descriptor is no longer the program's. */
RSOCKET_EXPORT int rclose(int socket)
{
	struct rsocket *rs = rsocket_remove(socket);
	int cancel;

	if (!rs)
		return repoll_close(socket);
	repoll_forget(socket);
	if (rs == &rsocket_inherited)
		return close(socket);
	cancel = thread_disable_cancel();
	if (rs->type == SOCK_DGRAM)
		dgram_close(dgram_of(rs));
	else
		stream_close(stream_of(rs));
	pthread_mutex_lock(&rs->lock);
	standin_end(rs);
	pthread_mutex_unlock(&rs->lock);
	close(socket);
	rsocket_put(rs);
	thread_restore_cancel(cancel);
	return 0;
}

/* As the kernel, also shuts down without a connection. Caller holds the lock. */
static int dgram_shutdown(struct dgram *d, int how)
{
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return -EINVAL;
	d->shut_read |= how != SHUT_WR;
	d->shut_write |= how != SHUT_RD;
	waiters_wake(&d->rs);
	return d->connected ? 0 : -ENOTCONN;
}

RSOCKET_EXPORT int rshutdown(int socket, int how)
{
	struct rsocket *rs = rsocket_find(socket);
	int err;

	if (!rs)
		return -1;
	err = rsocket_lock(rs);
	if (!err) {
		rsocket_progress(rs);
		err = rs->type == SOCK_STREAM ? stream_shutdown(stream_of(rs), how) :
						dgram_shutdown(dgram_of(rs), how);
	}
	rsocket_unlock(rs);
	return (int)rsocket_return(rs, err);
}

/* ---- addresses ---- */

/* An id that is bound already fails with EINVAL. */
static int stream_bind(struct stream *s, const struct sockaddr *address, socklen_t bytes)
{
	int err = sockaddr_check(address, bytes);

	if (err)
		return err;
	if (address->sa_family != s->rs.domain)
		return -EAFNOSUPPORT;
	if (rdma_bind_addr(s->id, (struct sockaddr *)address))
		return -errno;
	memcpy(&s->bound, address, sockaddr_bytes(address));
	return 0;
}

static int dgram_bind(struct dgram *d, const struct sockaddr *address, socklen_t bytes)
{
	return bind(d->rs.fd, address, bytes) ? -errno : dgram_start(d);
}

RSOCKET_EXPORT int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rsocket *rs = rsocket_find(socket);
	int err;

	if (!rs)
		return -1;
	err = rsocket_lock(rs);
	if (!err)
		err = rs->type == SOCK_STREAM ? stream_bind(stream_of(rs), addr, addrlen) :
						dgram_bind(dgram_of(rs), addr, addrlen);
	rsocket_unlock(rs);
	return (int)rsocket_return(rs, err);
}

RSOCKET_EXPORT int rlisten(int socket, int backlog)
{
	struct rsocket *rs = rsocket_find(socket);

	if (!rs)
		return -1;
	return (int)rsocket_return(rs, rs->type == SOCK_STREAM ?
					       listen_start(stream_of(rs), backlog) : -EOPNOTSUPP);
}

/* Writes an address as getsockname() of the domain does: IPv4 as a mapped IPv6 address. */
static int stream_name(struct stream *s, const struct sockaddr *of, struct sockaddr *to,
		       socklen_t *bytes)
{
	struct sockaddr_storage none = { .ss_family = (sa_family_t)s->rs.domain };
	struct sockaddr_in6 mapped = { .sin6_family = AF_INET6 };
	const struct sockaddr_in *v4 = (const void *)of;

	if (!sockaddr_bytes(of))
		of = (struct sockaddr *)&none;
	if (s->rs.domain == AF_INET6 && of->sa_family == AF_INET) {
		mapped.sin6_port = v4->sin_port;
		mapped.sin6_addr.s6_addr[10] = 0xff;
		mapped.sin6_addr.s6_addr[11] = 0xff;
		memcpy(&mapped.sin6_addr.s6_addr[12], &v4->sin_addr, 4);
		of = (struct sockaddr *)&mapped;
	}
	return sockaddr_tell(of, to, bytes);
}

RSOCKET_EXPORT int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rsocket *rs = rsocket_find(socket);
	struct stream *s;
	int err;

	if (!rs)
		return -1;
	if (rs->type != SOCK_STREAM)
		return (int)rsocket_return(rs, -EOPNOTSUPP);
	err = listen_accept(stream_of(rs), &s);
	if (err)
		return (int)rsocket_return(rs, err);
	fcntl(s->rs.fd, F_SETFD, 0);
	if (addr && addrlen)
		stream_name(s, rdma_get_peer_addr(s->id), addr, addrlen);
	return (int)rsocket_return(rs, s->rs.fd);
}

RSOCKET_EXPORT int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rsocket *rs = rsocket_find(socket);

	if (!rs)
		return -1;
	return (int)rsocket_return(rs, rs->type == SOCK_STREAM ?
					       connect_start(stream_of(rs), addr, addrlen) :
					       dgram_connect(dgram_of(rs), addr, addrlen));
}

RSOCKET_EXPORT int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rsocket *rs = rsocket_find(socket);
	struct stream *s;
	int err;

	if (!rs)
		return -1;
	if (rs->type == SOCK_DGRAM)
		return (int)rsocket_return(rs, getpeername(socket, addr, addrlen) ? -errno : 0);
	s = stream_of(rs);
	pthread_mutex_lock(&rs->lock);
	stream_progress(s);
	err = s->state != STREAM_CONNECTED && s->state != STREAM_ENDED ? -ENOTCONN :
	      stream_name(s, rdma_get_peer_addr(s->id), addr, addrlen);
	rsocket_unlock(rs);
	return (int)rsocket_return(rs, err);
}

RSOCKET_EXPORT int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rsocket *rs = rsocket_find(socket);
	int err;

	if (!rs)
		return -1;
	if (rs->type == SOCK_DGRAM)
		return (int)rsocket_return(rs, getsockname(socket, addr, addrlen) ? -errno : 0);
	pthread_mutex_lock(&rs->lock);
	err = stream_name(stream_of(rs), rdma_get_local_addr(stream_of(rs)->id), addr, addrlen);
	rsocket_unlock(rs);
	return (int)rsocket_return(rs, err);
}

/* As the kernel does, shortens longer buffers of recv(2) to this length. */
#define MOST_BYTES 0x7ffff000ul

/*
 * Checks a message before its call does anything. Returns 0 or -errno. file: the call is like
 * read(2) or write(2).
 */
static int msghdr_check(const struct msghdr *msg, bool file)
{
	if (!msg)
		return -EFAULT;
	if (msg->msg_control && msg->msg_controllen)
		return -ENOTSUP;
	if (msg->msg_iovlen > IOV_MAX)
		return file ? -EINVAL : -EMSGSIZE;
	return msg->msg_iovlen && !msg->msg_iov ? -EFAULT : 0;
}

/* Returns whether a message that passed msghdr_check() has no bytes. */
static bool msghdr_is_empty(const struct msghdr *msg)
{
	size_t i;

	for (i = 0; i < msg->msg_iovlen; i++)
		if (msg->msg_iov[i].iov_len)
			return false;
	return true;
}

/* ---- receiving ---- */

static ssize_t rsocket_receive(int socket, struct msghdr *msg, int flags, bool file)
{
	struct rsocket *rs = rsocket_find(socket);
	ssize_t got;

	if (!rs)
		return -1;
	got = msghdr_check(msg, file);
	if (got || (file && msghdr_is_empty(msg)))
		return rsocket_return(rs, got);
	if (rs->type == SOCK_DGRAM)
		return rsocket_return(rs, dgram_receive(dgram_of(rs), msg, flags));
	got = stream_receive(stream_of(rs), msg->msg_iov, (int)msg->msg_iovlen, flags);
	/* TCP returns no name either. */
	if (got >= 0) {
		if (msg->msg_name)
			msg->msg_namelen = 0;
		msg->msg_flags = 0;
		msg->msg_controllen = 0;
	}
	return rsocket_return(rs, got);
}

RSOCKET_EXPORT ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
	return rrecvfrom(socket, buf, len, flags, NULL, NULL);
}

RSOCKET_EXPORT ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags,
				 struct sockaddr *src_addr, socklen_t *addrlen)
{
	struct iovec iov = { .iov_base = buf, .iov_len = min_u64(len, MOST_BYTES) };
	struct msghdr msg = {
		.msg_name = addrlen ? src_addr : NULL,
		.msg_namelen = addrlen && src_addr ? *addrlen : 0,
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};
	ssize_t got = rsocket_receive(socket, &msg, flags, false);
	socklen_t room = addrlen ? *addrlen : 0;

	if (got < 0 || !src_addr || !addrlen)
		return got;
	*addrlen = msg.msg_namelen;
	/* For a stream it is the peer's, as programs of rsockets expect. */
	if (!msg.msg_namelen && got > 0) {
		*addrlen = room;
		rgetpeername(socket, src_addr, addrlen);
	}
	return got;
}

RSOCKET_EXPORT ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	return rsocket_receive(socket, msg, flags, false);
}

RSOCKET_EXPORT ssize_t rread(int socket, void *buf, size_t count)
{
	struct iovec iov = { .iov_base = buf, .iov_len = count };

	return rreadv(socket, &iov, 1);
}

RSOCKET_EXPORT ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)iovcnt };

	return rsocket_receive(socket, &msg, 0, true);
}

/* ---- sending ---- */

static ssize_t rsocket_send(int socket, const struct msghdr *msg, int flags, bool file)
{
	struct rsocket *rs = rsocket_find(socket);
	int err;

	if (!rs)
		return -1;
	err = msghdr_check(msg, file);
	if (err || (file && msghdr_is_empty(msg)))
		return rsocket_return(rs, err);
	if (rs->type == SOCK_DGRAM)
		return rsocket_return(rs, dgram_send(dgram_of(rs), msg->msg_iov,
						     (int)msg->msg_iovlen, flags, msg->msg_name,
						     msg->msg_namelen));
	if (msg->msg_name)
		return rsocket_return(rs, -EISCONN);
	return rsocket_return(rs, stream_send(stream_of(rs), msg->msg_iov, (int)msg->msg_iovlen,
					      flags));
}

RSOCKET_EXPORT ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
			       const struct sockaddr *dest_addr, socklen_t addrlen)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return rsocket_send(socket,
			    &(struct msghdr){ .msg_name = (void *)dest_addr,
					      .msg_namelen = addrlen,
					      .msg_iov = &iov,
					      .msg_iovlen = 1 },
			    flags, false);
}

RSOCKET_EXPORT ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
	return rsendto(socket, buf, len, flags, NULL, 0);
}

RSOCKET_EXPORT ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	return rsocket_send(socket, msg, flags, false);
}

RSOCKET_EXPORT ssize_t rwrite(int socket, const void *buf, size_t count)
{
	return rsend(socket, buf, count, 0);
}

RSOCKET_EXPORT ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)iovcnt };

	return rsocket_send(socket, &msg, 0, true);
}

/* ---- mapped buffers ---- */

RSOCKET_EXPORT off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	struct rsocket *rs = rsocket_find(socket);
	int err = -EINVAL;

	if (!rs)
		return -1;
	if (rs->type == SOCK_STREAM) {
		pthread_mutex_lock(&rs->lock);
		err = iomap_add(stream_of(rs), buf, len, prot, &offset);
		rsocket_unlock(rs);
	}
	return rsocket_return(rs, err) ? -1 : offset;
}

RSOCKET_EXPORT int riounmap(int socket, void *buf, size_t len)
{
	struct rsocket *rs = rsocket_find(socket);
	int err = -EINVAL;

	if (!rs)
		return -1;
	if (rs->type == SOCK_STREAM) {
		pthread_mutex_lock(&rs->lock);
		err = iomap_remove(stream_of(rs), buf, len);
		rsocket_unlock(rs);
	}
	return (int)rsocket_return(rs, err);
}

RSOCKET_EXPORT size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	struct rsocket *rs = rsocket_find(socket);
	ssize_t written = -EINVAL;

	if (!rs)
		return (size_t)-1;
	if (rs->type == SOCK_STREAM)
		written = iomap_write(stream_of(rs), buf, count, (u64)offset, flags);
	return (size_t)rsocket_return(rs, written);
}

/* ---- socket addresses ---- */

socklen_t sockaddr_bytes(const struct sockaddr *address)
{
	switch (address->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

int sockaddr_check(const struct sockaddr *address, socklen_t bytes)
{
	if (!bytes)
		return -EINVAL;
	if (!address)
		return -EFAULT;
	if (bytes < sizeof(address->sa_family) || bytes < sockaddr_bytes(address))
		return -EINVAL;
	return sockaddr_bytes(address) ? 0 : -EAFNOSUPPORT;
}

int sockaddr_tell(const struct sockaddr *from, struct sockaddr *to, socklen_t *bytes)
{
	socklen_t has = sockaddr_bytes(from);

	if (!bytes || (!to && *bytes))
		return -EFAULT;
	if (*bytes)
		memcpy(to, from, min_u32(*bytes, has));
	*bytes = has;
	return 0;
}

const void *sockaddr_host(const struct sockaddr *address, size_t *bytes)
{
	switch (address->sa_family) {
	case AF_INET:
		*bytes = sizeof(struct in_addr);
		return &((const struct sockaddr_in *)address)->sin_addr;
	case AF_INET6:
		*bytes = sizeof(struct in6_addr);
		return &((const struct sockaddr_in6 *)address)->sin6_addr;
	default:
		*bytes = 0;
		return NULL;
	}
}

bool sockaddr_is_same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	size_t n, m;
	const void *host = sockaddr_host(a, &n), *other = sockaddr_host(b, &m);

	return n && n == m && !memcmp(host, other, n);
}
