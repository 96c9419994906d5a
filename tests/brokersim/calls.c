/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * System calls of the code under test. Each is a step before the call; a blocking call lets other
 * actors run. Also records the owner of each descriptor, as a process that dies must leave none
 * open.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "faked.h"

#define FDS_MAX	   1024
#define FDS_POLLED 128 /* in one call: at most the limit of descriptors */

static int owner[FDS_MAX]; /* actor + 1; 0: no owner */
static bool writes;	   /* the broker */

int __real_close(int fd);
int __real_fcntl(int fd, int command, ...);
int __real_open(const char *path, int flags, ...);
int __real_epoll_create1(int flags);
int __real_epoll_wait(int fd, struct epoll_event *events, int n, int timeout_ms);
int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
ssize_t __real_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __real_send(int fd, const void *data, size_t len, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
int __real_shutdown(int fd, int how);
int __real_socket(int family, int type, int protocol);
ssize_t __real_write(int fd, const void *data, size_t len);

int __wrap_close(int fd);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_epoll_create1(int flags);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t len, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
int __wrap_shutdown(int fd, int how);
int __wrap_socket(int family, int type, int protocol);
ssize_t __wrap_write(int fd, const void *data, size_t len);

int fd_own_by(int fd, u32 actor)
{
	must(fd < FDS_MAX);
	if (fd >= 0)
		owner[fd] = (int)actor + 1;
	return fd;
}

int fd_own(int fd)
{
	return actor_self() < 0 ? fd : fd_own_by(fd, (u32)actor_self());
}

void fd_close(int fd)
{
	must(fd >= 0 && fd < FDS_MAX);
	owner[fd] = 0;
	must(!__real_close(fd));
}

/* From the highest down, as the kernel does it. */
void fds_close(u32 actor)
{
	writes &= actor != BROKER;
	for (int fd = FDS_MAX - 1; fd >= 0; fd--)
		if (owner[fd] == (int)actor + 1)
			fd_close(fd);
}

u32 fds_open(void)
{
	struct pollfd all[FDS_POLLED];
	u32 n = 0;

	for (int fd = 0; fd < FDS_MAX; fd++) {
		all[fd % FDS_POLLED] = (struct pollfd){ .fd = fd };
		if ((fd + 1) % FDS_POLLED)
			continue;
		must(__real_poll(all, FDS_POLLED, 0) >= 0);
		for (u32 i = 0; i < FDS_POLLED; i++)
			n += !(all[i].revents & POLLNVAL);
	}
	return n;
}

int fd_nothing(void)
{
	return fd_own(__real_open("/dev/null", O_RDWR | O_CLOEXEC));
}

bool fd_is_ready(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return __real_poll(&p, 1, 0) == 1;
}

static void step(void)
{
	if (actor_self() >= 0)
		actor_step();
}

static bool fails_in_broker(enum fault fault)
{
	return run.mode & MODE_SOLE && actor_self() == BROKER && faked_fails(fault);
}

int __wrap_close(int fd)
{
	step();
	/* an actor closes only its own descriptors */
	must(fd < 0 || actor_self() < 0 || owner[fd] == actor_self() + 1);
	if (fd >= 0)
		owner[fd] = 0;
	return __real_close(fd);
}

int __wrap_socket(int family, int type, int protocol)
{
	step();
	return fd_own(__real_socket(family, type, protocol));
}

int __wrap_fcntl(int fd, int command, ...)
{
	va_list args;
	long arg;
	int ret;

	va_start(args, command);
	arg = va_arg(args, long);
	va_end(args);
	step();
	if (command == F_DUPFD_CLOEXEC && fails_in_broker(FAULT_COPY)) {
		errno = EMFILE;
		return -1;
	}
	ret = __real_fcntl(fd, command, arg);
	return command == F_DUPFD_CLOEXEC ? fd_own(ret) : ret;
}

int __wrap_open(const char *path, int flags, ...)
{
	step();
	return fd_own(__real_open(path, flags));
}

int __wrap_epoll_create1(int flags)
{
	step();
	return fd_own(__real_epoll_create1(flags));
}

static u64 deadline(int timeout_ms)
{
	return timeout_ms < 0 ? NSEC_NEVER : clock_now_ns() + (u64)timeout_ms * NSEC_PER_MSEC;
}

int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int timeout_ms)
{
	const u64 until_ns = deadline(timeout_ms);
	int ret;

	step();
	while (!(ret = __real_epoll_wait(fd, events, n, 0)) && clock_now_ns() < until_ns)
		actor_wait(until_ns);
	return ret;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	const u64 until_ns = deadline(timeout_ms);
	int ret;

	if (actor_self() < 0)
		return __real_poll(fds, n, timeout_ms);
	step();
	while (!(ret = __real_poll(fds, n, 0)) && clock_now_ns() < until_ns) {
		actor_wait(until_ns);
		actor_waits_on();
	}
	return ret;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	const struct cmsghdr *c;
	ssize_t ret;

	step();
	ret = __real_recvmsg(fd, msg, flags);
	c = ret < 0 ? NULL : CMSG_FIRSTHDR(msg);
	for (size_t i = 0; c && CMSG_LEN((i + 1) * sizeof(int)) <= c->cmsg_len; i++)
		fd_own(((const int *)CMSG_DATA(c))[i]);
	return ret;
}

ssize_t __wrap_send(int fd, const void *data, size_t len, int flags)
{
	step();
	return __real_send(fd, data, len, flags);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	step();
	if (msg->msg_controllen >= CMSG_SPACE(ASK_FDS * sizeof(int)) &&
	    fails_in_broker(FAULT_SEND)) {
		errno = ETOOMANYREFS;
		return -1;
	}
	return __real_sendmsg(fd, msg, flags);
}

int __wrap_shutdown(int fd, int how)
{
	step();
	return __real_shutdown(fd, how);
}

bool fd_is_written(void)
{
	return writes;
}

/* Other writes are the simulator's. */
ssize_t __wrap_write(int fd, const void *data, size_t len)
{
	if (actor_self() == BROKER) {
		writes = true;
		step();
		writes = false;
	}
	return __real_write(fd, data, len);
}
