/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The redirected calls of a program: each calls the rsocket's or the C library's function. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <linux/close_range.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <time.h>
#include <unistd.h>

#include "../rsocket/xroce_rsocket.h"
#include "preload.h"

/* The file that a descriptor of the program stands for. */
struct target {
	bool is_rsocket;
	int fd;
};

static struct target target_of(int fd)
{
	struct entry *entry = entry_of(fd);

	if (!entry)
		return (struct target){ .fd = fd };
	if (entry->inherited)
		entry_say_inherited(fd);
	return (struct target){ .is_rsocket = entry->kind == ENTRY_RSOCKET, .fd = entry->fd };
}

/* The same for a call that sends or receives. */
static struct target target_used(int fd)
{
	struct entry *entry = entry_of(fd);

	if (entry)
		fork_settle(entry);
	return target_of(fd);
}

/* ---- creating sockets ---- */

/* The libraries underneath rsockets need kernel sockets themselves. */
static bool caller_is_ours(const void *caller)
{
	const void *ours[] = { (const void *)rsocket, (const void *)ibv_get_device_list };
	Dl_info of_caller, of_ours;
	size_t i;

	if (!dladdr(caller, &of_caller))
		return false;
	for (i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (dladdr(ours[i], &of_ours) && of_ours.dli_fbase == of_caller.dli_fbase)
			return true;
	return false;
}

EXPORT int socket(int domain, int type, int protocol)
{
	int kind = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK), fd, number;
	bool stream = kind == SOCK_STREAM && (!protocol || protocol == IPPROTO_TCP);
	bool dgram = kind == SOCK_DGRAM && (!protocol || protocol == IPPROTO_UDP);

	if ((domain != AF_INET && domain != AF_INET6) || (!stream && !dgram) ||
	    caller_is_ours(__builtin_return_address(0)) || !config_wants(domain, kind, protocol))
		return real.socket(domain, type, protocol);
	if (config_forks() && stream) {
		fd = real.socket(domain, type, protocol);
		return fd < 0 ? -1 : entry_open(fd, ENTRY_FORK);
	}
	fd = rsocket(domain, type, protocol);
	/* No device: the program gets a kernel socket instead. */
	if (fd < 0)
		return real.socket(domain, type, protocol);
	config_apply(fd);
	number = entry_open(fd, ENTRY_RSOCKET);
	if (number >= 0 && (type & SOCK_CLOEXEC))
		real.fcntl(number, F_SETFD, FD_CLOEXEC);
	return number;
}

/* Binds a kernel socket to the address of an rsocket. Returns 0, or -1 and errno. */
static int bind_again(int rsocket, int kernel)
{
	struct sockaddr_storage own;
	socklen_t n = sizeof(own);

	return rgetsockname(rsocket, (struct sockaddr *)&own, &n) ?
		       -1 : real.bind(kernel, (struct sockaddr *)&own, n);
}

/*
 * Replaces the rsocket by a kernel socket with the same options and, for a stream, the same address
 * if the program bound it. Returns 0, or -1 and errno.
 */
static int become_kernel(struct entry *entry)
{
	int domain = AF_INET, type = SOCK_STREAM, fd, flags, left = entry->fd, saved;
	socklen_t bytes = sizeof(int);

	rgetsockopt(left, SOL_SOCKET, SO_TYPE, &type, &bytes);
	rgetsockopt(left, SOL_SOCKET, SO_DOMAIN, &domain, &bytes);
	fd = real.socket(domain, type, 0);
	if (fd < 0)
		return -1;
	flags = rfcntl(left, F_GETFL);
	if (flags > 0 && (flags & O_NONBLOCK))
		real.fcntl(fd, F_SETFL, O_NONBLOCK);
	options_copy(left, rgetsockopt, fd, real.setsockopt);
	if (entry->bound && type == SOCK_STREAM && bind_again(left, fd)) {
		saved = errno;
		real.close(fd);
		errno = saved;
		return -1;
	}
	entry->left = left;
	entry_become(entry, fd, ENTRY_KERNEL);
	return 0;
}

/* True for an rsocket, or a socket that is to become one, whose port is reserved for TCP. */
static bool wants_tcp(struct entry *entry, const struct sockaddr *address, socklen_t n)
{
	int type = SOCK_STREAM;
	socklen_t bytes = sizeof(type);

	if (!entry || entry->inherited || !config_is_tcp(address, n))
		return false;
	if (entry->kind == ENTRY_RSOCKET)
		rgetsockopt(entry->fd, SOL_SOCKET, SO_TYPE, &type, &bytes);
	return (entry->kind == ENTRY_RSOCKET || entry->kind == ENTRY_FORK) && type == SOCK_STREAM;
}

/* Returns 0, or -1 and errno. */
static int make_tcp(struct entry *entry)
{
	if (entry->kind == ENTRY_RSOCKET)
		return become_kernel(entry);
	entry->kind = ENTRY_KERNEL;
	return 0;
}

EXPORT int bind(int fd, const struct sockaddr *address, socklen_t n)
{
	struct entry *entry = entry_of(fd);
	struct target t;

	if (wants_tcp(entry, address, n) && make_tcp(entry))
		return -1;
	t = target_of(fd);
	if (!t.is_rsocket)
		return real.bind(t.fd, address, n);
	if (rbind(t.fd, address, n))
		return -1;
	entry->bound = true;
	return 0;
}

EXPORT int listen(int fd, int backlog)
{
	struct entry *entry = entry_of(fd);
	struct target t = target_of(fd);
	int ret;

	if (t.is_rsocket)
		return rlisten(t.fd, backlog);
	ret = real.listen(t.fd, backlog);
	if (!ret && entry && entry->kind == ENTRY_FORK)
		entry->kind = ENTRY_FORK_LISTEN;
	return ret;
}

static int accept_number(int fd, enum entry_kind kind, int flags)
{
	int number = entry_open(fd, kind);

	if (number >= 0 && (flags & SOCK_CLOEXEC))
		real.fcntl(number, F_SETFD, FD_CLOEXEC);
	return number;
}

EXPORT int accept4(int fd, struct sockaddr *address, socklen_t *n, int flags)
{
	struct entry *entry = entry_of(fd);
	struct target t = target_of(fd);
	int accepted;

	if (!t.is_rsocket) {
		accepted = real.accept4(t.fd, address, n, flags);
		if (accepted < 0 || !entry || entry->kind != ENTRY_FORK_LISTEN)
			return accepted;
		return accept_number(accepted, ENTRY_FORK_PASSIVE, flags);
	}
	if (flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) {
		errno = EINVAL;
		return -1;
	}
	accepted = raccept(t.fd, address, n);
	if (accepted < 0)
		return -1;
	rfcntl(accepted, F_SETFL, flags & SOCK_NONBLOCK ? O_NONBLOCK : 0);
	return accept_number(accepted, ENTRY_RSOCKET, flags);
}

EXPORT int accept(int fd, struct sockaddr *address, socklen_t *n)
{
	return accept4(fd, address, n, 0);
}

EXPORT int connect(int fd, const struct sockaddr *address, socklen_t n)
{
	struct entry *entry = entry_of(fd);
	struct target t;
	int ret;

	if (wants_tcp(entry, address, n) && make_tcp(entry))
		return -1;
	t = target_of(fd);
	if (t.is_rsocket) {
		ret = rconnect(t.fd, address, n);
		if (!ret || errno == EINPROGRESS || errno == EALREADY || errno == EISCONN ||
		    errno == EINTR || errno == EINVAL || errno == EFAULT)
			return ret;
		/* The peer has no rsocket: connect by TCP. */
		return become_kernel(entry) ? -1 : real.connect(entry->fd, address, n);
	}
	if (entry && entry->kind == ENTRY_FORK)
		entry->kind = ENTRY_FORK_ACTIVE;
	return real.connect(t.fd, address, n);
}

/* ---- receiving ---- */

EXPORT ssize_t recvfrom(int fd, void *restrict buf, size_t len, int flags,
			struct sockaddr *restrict from, socklen_t *restrict n)
{
	struct target t = target_used(fd);

	return t.is_rsocket ? rrecvfrom(t.fd, buf, len, flags, from, n) :
			      real.recvfrom(t.fd, buf, len, flags, from, n);
}

EXPORT ssize_t recv(int fd, void *buf, size_t len, int flags)
{
	return recvfrom(fd, buf, len, flags, NULL, NULL);
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct target t = target_used(fd);
	void *control;
	size_t room;
	ssize_t got;

	if (!t.is_rsocket)
		return real.recvmsg(t.fd, msg, flags);
	if (!msg)
		return rrecvmsg(t.fd, NULL, flags);
	/* rsockets carry no control data, so none of its buffer is used. */
	control = msg->msg_control;
	room = msg->msg_controllen;
	msg->msg_control = NULL;
	msg->msg_controllen = 0;
	got = rrecvmsg(t.fd, msg, flags);
	msg->msg_control = control;
	if (got < 0)
		msg->msg_controllen = room;
	return got;
}

/*
 * Checks a list of messages as the kernel does. Returns the number for one call, or -1 and errno.
 */
static int mmsg_count(const struct mmsghdr *msgs, unsigned int n, const struct timespec *timeout)
{
	if (!is_time(timeout) || (n && !msgs)) {
		errno = is_time(timeout) ? EFAULT : EINVAL;
		return -1;
	}
	return n < IOV_MAX ? (int)n : IOV_MAX;
}

/* As recvmmsg(2), checks the timeout only after each message. */
EXPORT int recvmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags,
		    struct timespec *timeout)
{
	struct target t = target_used(fd);
	struct timespec start, now;
	ssize_t got = 0;
	int i, count;

	if (!t.is_rsocket)
		return real.recvmmsg(t.fd, msgs, n, flags, timeout);
	count = mmsg_count(msgs, n, timeout);
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (i = 0; i < count; i++) {
		got = recvmsg(fd, &msgs[i].msg_hdr, flags & ~MSG_WAITFORONE);
		if (got < 0)
			break;
		msgs[i].msg_len = (unsigned int)got;
		if (flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (timeout && (now.tv_sec - start.tv_sec > timeout->tv_sec ||
				(now.tv_sec - start.tv_sec == timeout->tv_sec &&
				 now.tv_nsec - start.tv_nsec >= timeout->tv_nsec))) {
			i++;
			break;
		}
	}
	return count < 0 || (!i && got < 0) ? -1 : i;
}

EXPORT ssize_t read(int fd, void *buf, size_t n)
{
	struct target t = target_used(fd);

	return t.is_rsocket ? rread(t.fd, buf, n) : real.read(t.fd, buf, n);
}

EXPORT ssize_t readv(int fd, const struct iovec *iov, int n)
{
	struct target t = target_used(fd);

	return t.is_rsocket ? rreadv(t.fd, iov, n) : real.readv(t.fd, iov, n);
}

/* Entry points of programs compiled with _FORTIFY_SOURCE. */
ssize_t __read_chk(int fd, void *buf, size_t n, size_t room);
ssize_t __recv_chk(int fd, void *buf, size_t n, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t room, int flags, struct sockaddr *from,
		       socklen_t *from_n);

static void check_room(size_t n, size_t room)
{
	if (n > room)
		abort();
}

EXPORT ssize_t __read_chk(int fd, void *buf, size_t n, size_t room)
{
	check_room(n, room);
	return read(fd, buf, n);
}

EXPORT ssize_t __recv_chk(int fd, void *buf, size_t n, size_t room, int flags)
{
	check_room(n, room);
	return recv(fd, buf, n, flags);
}

EXPORT ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t room, int flags,
			      struct sockaddr *from, socklen_t *from_n)
{
	check_room(n, room);
	return recvfrom(fd, buf, n, flags, from, from_n);
}

/* ---- sending ---- */

EXPORT ssize_t sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
		      socklen_t n)
{
	struct target t = target_used(fd);

	return t.is_rsocket ? rsendto(t.fd, buf, len, flags, to, n) :
			      real.sendto(t.fd, buf, len, flags, to, n);
}

EXPORT ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	return sendto(fd, buf, len, flags, NULL, 0);
}

/* Reports passing an rsocket: another process gets the stand-in, which is unusable there. */
static void say_passed(const struct msghdr *msg)
{
	struct msghdr *of = (struct msghdr *)msg;
	struct cmsghdr *cmsg;
	size_t i, n, room;
	int fd;

	for (cmsg = CMSG_FIRSTHDR(of); cmsg; cmsg = CMSG_NXTHDR(of, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		/* The kernel rejects a length out of range. */
		room = msg->msg_controllen -
		       (size_t)((const char *)cmsg - (const char *)msg->msg_control);
		if (cmsg->cmsg_len < CMSG_LEN(0) || cmsg->cmsg_len > room)
			return;
		n = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(fd);
		for (i = 0; i < n; i++) {
			memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(fd), sizeof(fd));
			if (target_of(fd).is_rsocket)
				say_once(SAY_PASSED,
					 "cannot pass descriptor %d to another process: it is an "
					 "rsocket, which belongs to the process that created "
					 "it", fd);
		}
	}
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct target t = target_used(fd);

	if (t.is_rsocket) {
		if (msg && msg->msg_control && msg->msg_controllen)
			say_once(SAY_CONTROL, "cannot send control data on descriptor %d: "
					      "rsockets do not support it", fd);
		return rsendmsg(t.fd, msg, flags);
	}
	if (msg && msg->msg_control && msg->msg_controllen)
		say_passed(msg);
	return real.sendmsg(t.fd, msg, flags);
}

EXPORT int sendmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags)
{
	struct target t = target_used(fd);
	ssize_t sent = 0;
	int i, count;

	if (!t.is_rsocket)
		return real.sendmmsg(t.fd, msgs, n, flags);
	count = mmsg_count(msgs, n, NULL);
	for (i = 0; i < count; i++) {
		sent = sendmsg(fd, &msgs[i].msg_hdr, flags);
		if (sent < 0)
			break;
		msgs[i].msg_len = (unsigned int)sent;
	}
	return count < 0 || (!i && sent < 0) ? -1 : i;
}

EXPORT ssize_t write(int fd, const void *buf, size_t n)
{
	struct target t = target_used(fd);

	return t.is_rsocket ? rwrite(t.fd, buf, n) : real.write(t.fd, buf, n);
}

EXPORT ssize_t writev(int fd, const struct iovec *iov, int n)
{
	struct target t = target_used(fd);

	return t.is_rsocket ? rwritev(t.fd, iov, n) : real.writev(t.fd, iov, n);
}

/* Copies the file in pieces; the offset advances by the bytes sent. */
EXPORT ssize_t sendfile(int out, int in, off_t *offset, size_t count)
{
	struct target t = target_used(out);
	ssize_t total = 0, n, sent = 0;
	char piece[16384];
	off_t at;

	if (!t.is_rsocket)
		return real.sendfile(t.fd, in, offset, count);
	at = offset ? *offset : lseek(in, 0, SEEK_CUR);
	if (at < 0) {
		if (offset)
			errno = EINVAL;
		return -1;
	}
	while (count) {
		n = pread(in, piece, count < sizeof(piece) ? count : sizeof(piece), at);
		if (n <= 0) {
			sent = n;
			break;
		}
		sent = rwrite(t.fd, piece, (size_t)n);
		if (sent < 0)
			break;
		total += sent;
		at += sent;
		count -= (size_t)sent;
		if (sent < n)
			break;
	}
	if (offset)
		*offset = at;
	else
		lseek(in, at, SEEK_SET);
	return total || sent >= 0 ? total : -1;
}

EXPORT ssize_t sendfile64(int out, int in, off64_t *offset, size_t count)
{
	_Static_assert(sizeof(off_t) == sizeof(off64_t), "one of them for both");
	return sendfile(out, in, (off_t *)offset, count);
}

/* Programs that use splice() have a fallback for files without it. */
EXPORT ssize_t splice(int in, off64_t *in_at, int out, off64_t *out_at, size_t n,
		      unsigned int flags)
{
	struct target from = target_of(in), to = target_of(out);

	if (!from.is_rsocket && !to.is_rsocket)
		return real.splice(from.fd, in_at, to.fd, out_at, n, flags);
	say_once(SAY_SPLICE, "cannot splice() descriptor %d: rsockets do not support it",
		 from.is_rsocket ? in : out);
	errno = EINVAL;
	return -1;
}

/* Fails for an rsocket: stdio reads and writes inside the C library. */
EXPORT FILE *fdopen(int fd, const char *mode)
{
	if (target_of(fd).is_rsocket) {
		say_once(SAY_STDIO, "cannot open a stream on descriptor %d: rsockets do not "
				    "support stdio(3)", fd);
		errno = EINVAL;
		return NULL;
	}
	return real.fdopen(fd, mode);
}

/* ---- names and options ---- */

EXPORT int shutdown(int fd, int how)
{
	struct target t = target_of(fd);

	return t.is_rsocket ? rshutdown(t.fd, how) : real.shutdown(t.fd, how);
}

EXPORT int getpeername(int fd, struct sockaddr *restrict address, socklen_t *restrict n)
{
	struct target t = target_of(fd);

	return t.is_rsocket ? rgetpeername(t.fd, address, n) : real.getpeername(t.fd, address, n);
}

EXPORT int getsockname(int fd, struct sockaddr *restrict address, socklen_t *restrict n)
{
	struct target t = target_of(fd);

	return t.is_rsocket ? rgetsockname(t.fd, address, n) : real.getsockname(t.fd, address, n);
}

/* Options that only tune TCP and can be ignored. */
static bool is_hint(int level, int name)
{
	if (level == IPPROTO_TCP)
		return name == TCP_CORK || name == TCP_QUICKACK || name == TCP_DEFER_ACCEPT ||
		       name == TCP_FASTOPEN || name == TCP_FASTOPEN_CONNECT ||
		       name == TCP_NOTSENT_LOWAT || name == TCP_SYNCNT;
	return level == SOL_SOCKET && (name == SO_PRIORITY || name == SO_BUSY_POLL ||
				       name == SO_INCOMING_CPU);
}

EXPORT int setsockopt(int fd, int level, int name, const void *value, socklen_t n)
{
	struct target t = target_of(fd);
	int ret;

	if (!t.is_rsocket)
		return real.setsockopt(t.fd, level, name, value, n);
	ret = rsetsockopt(t.fd, level, name, value, n);
	if (!ret || errno != ENOTSUP)
		return ret;
	if (is_hint(level, name))
		return 0;
	say_once(SAY_OPTION, "cannot set option %d of level %d of descriptor %d: rsockets do not "
			     "support it", name, level, fd);
	return -1;
}

EXPORT int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict n)
{
	struct target t = target_of(fd);

	return t.is_rsocket ? rgetsockopt(t.fd, level, name, value, n) :
			      real.getsockopt(t.fd, level, name, value, n);
}

/* ---- descriptors ---- */

EXPORT int close(int fd)
{
	int ret;

	if (!entry_owned(fd))
		return real.close(fd);
	/* The number must not be reused before its entry is gone. */
	ret = entry_close(fd);
	real.close(fd);
	return ret;
}

EXPORT int dup(int fd)
{
	struct entry *entry = entry_owned(fd);
	int copy = real.dup(fd);

	if (copy >= 0 && entry)
		entry_share(copy, entry);
	return copy;
}

EXPORT int dup3(int fd, int to, int flags)
{
	struct entry *entry = entry_owned(fd);
	int copy;

	/* A call that the kernel rejects leaves the other descriptor open. */
	if (fd == to || (flags & ~O_CLOEXEC) || real.fcntl(fd, F_GETFD) < 0)
		return real.dup3(fd, to, flags);
	if (entry_owned(to))
		entry_close(to);
	copy = real.dup3(fd, to, flags);
	if (copy >= 0 && entry)
		entry_share(copy, entry);
	return copy;
}

EXPORT int dup2(int fd, int to)
{
	return fd == to ? real.dup2(fd, to) : dup3(fd, to, 0);
}

EXPORT int close_range(unsigned int first, unsigned int last, int flags)
{
	if (!(flags & ~CLOSE_RANGE_UNSHARE) && first <= last)
		entry_close_range(first, last);
	return real.close_range(first, last, flags);
}

EXPORT void closefrom(int first)
{
	close_range(first < 0 ? 0 : (unsigned int)first, ~0u, 0);
}

/* An rsocket's signals come from its stand-in. */
static int set_async(int fd, int rsocket, bool on)
{
	if (on && xroce_rsocket_watch(rsocket))
		return -1;
	return real.fcntl(fd, F_SETFL, on ? O_ASYNC : 0);
}

/* Sets the status flags of an rsocket. */
static int set_flags(int fd, int rsocket, int flags)
{
	int old = rfcntl(rsocket, F_GETFL);

	if (old < 0 || ((old ^ flags) & O_ASYNC && set_async(fd, rsocket, flags & O_ASYNC)))
		return -1;
	return rfcntl(rsocket, F_SETFL, flags);
}

static int fcntl_any(int fd, int cmd, void *argument)
{
	struct entry *entry = entry_owned(fd);
	struct target t = target_of(fd);
	int copy, ret;

	switch (cmd) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		copy = real.fcntl(fd, cmd, argument);
		if (copy >= 0 && entry)
			entry_share(copy, entry);
		return copy;
	case F_GETFD:
	case F_SETFD:
	/* For an rsocket: on the stand-in. */
	case F_SETOWN:
	case F_GETOWN:
	case F_SETOWN_EX:
	case F_GETOWN_EX:
	case F_SETSIG:
	case F_GETSIG:
		return real.fcntl(fd, cmd, argument);
	case F_SETFL:
		if (t.is_rsocket)
			return set_flags(fd, t.fd, (int)(intptr_t)argument);
		break;
	}
	if (!t.is_rsocket)
		return real.fcntl(t.fd, cmd, argument);
	ret = rfcntl(t.fd, cmd, argument);
	if (ret < 0 && errno == ENOTSUP)
		say_once(SAY_FCNTL, "cannot do fcntl() %d of descriptor %d: rsockets do not "
				    "support it", cmd,
			 fd);
	return ret;
}

EXPORT int fcntl(int fd, int cmd, ...)
{
	va_list args;
	void *argument;

	va_start(args, cmd);
	argument = va_arg(args, void *);
	va_end(args);
	return fcntl_any(fd, cmd, argument);
}

EXPORT int fcntl64(int fd, int cmd, ...)
{
	va_list args;
	void *argument;

	va_start(args, cmd);
	argument = va_arg(args, void *);
	va_end(args);
	return fcntl_any(fd, cmd, argument);
}

/* Handles the ioctl() requests of an rsocket; others go to the stand-in. */
static int ioctl_rsocket(int fd, int rsocket, unsigned long request, void *argument)
{
	int flags, bytes;

	if (!argument && (request == FIONBIO || request == FIOASYNC || request == FIONREAD)) {
		errno = EFAULT;
		return -1;
	}
	switch (request) {
	case FIONBIO:
	case FIOASYNC:
		flags = rfcntl(rsocket, F_GETFL);
		if (flags < 0)
			return -1;
		bytes = request == FIONBIO ? O_NONBLOCK : O_ASYNC;
		return set_flags(fd, rsocket, *(int *)argument ? flags | bytes : flags & ~bytes);
	case FIONREAD:
		bytes = xroce_rsocket_unread(rsocket);
		if (bytes >= 0)
			*(int *)argument = bytes;
		return bytes < 0 ? -1 : 0;
	case SIOCOUTQ:
	case SIOCATMARK:
		say_once(SAY_IOCTL, "cannot do ioctl() 0x%lx of descriptor %d: rsockets do not "
				    "support it",
			 request, fd);
		errno = EOPNOTSUPP;
		return -1;
	default:
		return real.ioctl(fd, request, argument);
	}
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	struct target t = target_of(fd);
	va_list args;
	void *argument;

	va_start(args, request);
	argument = va_arg(args, void *);
	va_end(args);
	return t.is_rsocket ? ioctl_rsocket(fd, t.fd, request, argument) :
			      real.ioctl(t.fd, request, argument);
}
