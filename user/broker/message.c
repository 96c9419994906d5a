/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "message.h"

/* Returns whether padding is 0, and so is the union if the question does not use it. */
static bool message_is_plain(const struct ask *ask)
{
	static const struct ask_service none;

	if (ask->pad)
		return false;
	if (ask->what == ASK_TRACE)
		return !ask->trace.pad;
	if (ask->service.pad)
		return false;
	return (ask->what >= ASK_BIND && ask->what <= ASK_DETACH) ||
	       !memcmp(&ask->service, &none, sizeof(none));
}

int message_check(const struct ask *ask, size_t len, int msg_flags)
{
	if (len < sizeof(ask->version) || msg_flags & MSG_CTRUNC)
		return -EBADMSG;
	if (ask->version != ASK_VERSION)
		return -EPROTONOSUPPORT;
	return len == sizeof(*ask) && !(msg_flags & MSG_TRUNC) && ask->what >= ASK_HELLO &&
			       ask->what <= ASK_WHAT_MAX && message_is_plain(ask) ?
		       0 :
		       -EBADMSG;
}

int message_read(int fd, struct ask *ask)
{
	struct iovec iov = { .iov_base = ask, .iov_len = sizeof(*ask) };
	/* without room for control data the kernel drops descriptors itself, and sets MSG_CTRUNC */
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	const ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT);
	int err;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -ECONNRESET;
	/* an empty message looks like a hang-up, and is not a question either */
	if (!n)
		return -ECONNRESET;
	err = message_check(ask, (size_t)n, msg.msg_flags);
	return err ? err : 1;
}

int message_answer(int fd, const struct ask_answer *answer, const int *fds)
{
	struct iovec iov = { .iov_base = (void *)answer, .iov_len = sizeof(*answer) };
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int) * ASK_SOCKETS_FDS)];
	} control = { 0 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	const size_t bytes = answer->num_fds * sizeof(*fds);
	ssize_t n;

	if (answer->num_fds) {
		control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(bytes),
						   .cmsg_level = SOL_SOCKET,
						   .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.header), fds, bytes);
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(bytes);
	}
	n = sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	return n == (ssize_t)sizeof(*answer) ? 0 : n < 0 ? -errno : -EIO;
}

/*
 * Unread messages count as the sender's memory. When one is read, the kernel reports that before it
 * subtracts the last byte.
 */
bool message_is_unread(int fd)
{
	int bytes = 0;

	return ioctl(fd, SIOCOUTQ, &bytes) || bytes > 1;
}
