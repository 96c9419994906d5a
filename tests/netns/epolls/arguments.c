/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Arguments that no correct program gives: the kernel refuses each, and nothing changes. */
#define _GNU_SOURCE
#include <limits.h>
#include <linux/close_range.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <time.h>

#include "epolls.h"

/* Not a constant, to hide the NULL from the compiler. */
static void *volatile nowhere;

/* The ends are connected, and no byte is under way. */
static bool alive(void)
{
	char byte = 0;

	CHECK(send(end.client, "a", 1, 0) == 1);
	CHECK(recv(end.server, &byte, 1, 0) == 1 && byte == 'a');
	CHECK_ERRNO(recv(end.server, &byte, 1, MSG_DONTWAIT), EAGAIN);
	return true;
}

bool no_pointers(void)
{
	struct epoll_event *no_event = nowhere;
	int plain[2], fds[2];

	CHECK(ends_open() && !socketpair(AF_UNIX, SOCK_STREAM, 0, plain));
	fds[0] = end.client;
	fds[1] = plain[0];
	for (int i = 0; i < 2; i++) {
		CHECK_ERRNO(sendmsg(fds[i], nowhere, 0), EFAULT);
		CHECK_ERRNO(recvmsg(fds[i], nowhere, MSG_DONTWAIT), EFAULT);
		CHECK_ERRNO(sendmmsg(fds[i], nowhere, 2, 0), EFAULT);
		CHECK_ERRNO(recvmmsg(fds[i], nowhere, 2, MSG_DONTWAIT, NULL), EFAULT);
		CHECK(sendmmsg(fds[i], nowhere, 0, 0) == 0);
		CHECK(recvmmsg(fds[i], nowhere, 0, MSG_DONTWAIT, NULL) == 0);
		CHECK_ERRNO(writev(fds[i], nowhere, 1), EFAULT);
		CHECK_ERRNO(send(fds[i], nowhere, 1, MSG_DONTWAIT), EFAULT);
		CHECK_ERRNO(ioctl(fds[i], FIONBIO, nowhere), EFAULT);
		CHECK_ERRNO(ioctl(fds[i], FIOASYNC, nowhere), EFAULT);
		CHECK_ERRNO(ioctl(fds[i], FIONREAD, nowhere), EFAULT);
		CHECK_ERRNO(bind(fds[i], nowhere, sizeof(at)), EFAULT);
		CHECK_ERRNO(epoll_ctl(end.set, EPOLL_CTL_ADD, fds[i], no_event), EFAULT);
	}
	CHECK_ERRNO(poll(nowhere, 1, 0), EFAULT);
	CHECK_ERRNO(ppoll(nowhere, 1, NULL, NULL), EFAULT);
	CHECK_ERRNO(poll(nowhere, 1 << 28, 0), EINVAL);
	close(plain[0]);
	close(plain[1]);
	return alive();
}

bool wrong_times(void)
{
	struct timespec wrong[] = { { -1, 0 }, { 0, -1 }, { 0, 1000000000 } };
	struct pollfd p = { .events = POLLIN };
	struct mmsghdr msg = { .msg_len = 0 };
	struct timeval minus = { 0, -1 }, longest = { LONG_MAX / 2, 1999999 };
	fd_set set;

	CHECK(ends_open());
	p.fd = end.server;
	FD_ZERO(&set);
	FD_SET(end.server, &set);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CHECK_ERRNO(ppoll(&p, 1, &wrong[i], NULL), EINVAL);
		CHECK_ERRNO(pselect(end.server + 1, &set, NULL, NULL, &wrong[i], NULL), EINVAL);
		CHECK_ERRNO(recvmmsg(end.server, &msg, 1, 0, &wrong[i]), EINVAL);
	}
	CHECK_ERRNO(select(end.server + 1, &set, NULL, NULL, &minus), EINVAL);
	CHECK(FD_ISSET(end.server, &set));
	CHECK(send(end.client, "b", 1, 0) == 1);
	CHECK(select(end.server + 1, &set, NULL, NULL, &longest) == 1);
	CHECK(longest.tv_sec > INT_MAX / 2 && longest.tv_usec >= 0 && longest.tv_usec < 1000000);
	return drain(end.server, 1) && alive();
}

/* What the kernel refuses closes no descriptor, and leaves a message's header as it was. */
bool kept_when_refused(void)
{
	char room[CMSG_SPACE(sizeof(int))];
	struct msghdr msg = { .msg_control = &room, .msg_controllen = sizeof(room) };
	off_t before = -1;
	FILE *file = tmpfile();

	CHECK(ends_open() && file);
	CHECK_ERRNO(dup2(-1, end.client), EBADF);
	CHECK_ERRNO(dup2(INT_MAX, end.client), EBADF);
	CHECK_ERRNO(dup3(end.server, end.client, O_NONBLOCK), EINVAL);
	CHECK_ERRNO(dup3(end.client, end.client, 0), EINVAL);
	CHECK_ERRNO(dup2(end.client, -1), EBADF);
	CHECK(dup2(end.client, end.client) == end.client);
	CHECK_ERRNO(fcntl(end.client, F_DUPFD, -1), EINVAL);
	CHECK_ERRNO(close_range((unsigned int)end.client, (unsigned int)end.client, 64), EINVAL);
	CHECK_ERRNO(close_range((unsigned int)end.client, (unsigned int)end.client - 1, 0), EINVAL);
	CHECK_ERRNO(sendfile(end.client, fileno(file), &before, 1), EINVAL);
	CHECK_ERRNO(sendfile(end.client, -1, NULL, 1), EBADF);
	CHECK_ERRNO(accept4(end.listener, NULL, NULL, -1), EINVAL);
	CHECK_ERRNO(recvmsg(end.server, &msg, MSG_DONTWAIT), EAGAIN);
	CHECK(msg.msg_control == &room && msg.msg_controllen == sizeof(room));
	fclose(file);
	return alive();
}

bool wrong_control_data(void)
{
	static const size_t lengths[] = {
		0, 1, CMSG_LEN(0) - 1, CMSG_LEN(8), SIZE_MAX / 2, SIZE_MAX
	};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .bytes = "" };
	struct iovec iov = { "a", 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = CMSG_LEN(sizeof(int)) };
	int plain[2];

	CHECK(ends_open() && !socketpair(AF_UNIX, SOCK_STREAM, 0, plain));
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		control.header.cmsg_len = lengths[i];
		CHECK_ERRNO(sendmsg(plain[0], &msg, 0), EINVAL);
	}
	close(plain[0]);
	close(plain[1]);
	return alive();
}
