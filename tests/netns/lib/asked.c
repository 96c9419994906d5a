/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See asked.h. */
#define _GNU_SOURCE
#include "asked.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../../user/os/ask.h"
#include "ctl.h"

static s32 asked_answer(int sock, u32 what, u32 number, int *fds, u32 room, u32 *count,
			struct ask_answer *answer)
{
	const struct ask ask = { .version = ASK_VERSION, .what = what, .number = number };
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(32 * sizeof(int))];
	} control;
	struct iovec iov = { answer, sizeof(*answer) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	const struct cmsghdr *c;
	u32 n = 0;

	if (count)
		*count = 0;
	if (send(sock, &ask, sizeof(ask), MSG_NOSIGNAL) != sizeof(ask) ||
	    recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) != sizeof(*answer))
		return -EPIPE;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_type == SCM_RIGHTS) {
		n = (u32)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		must(n <= room, "%u descriptors came", n);
		memcpy(fds, CMSG_DATA(c), n * sizeof(int));
	}
	if (count)
		*count = n;
	return answer->err;
}

s32 asked_prove(int sock)
{
	struct ask_answer answer;
	const struct ask_challenge *c = &answer.challenge;
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);
	const int on = 1;
	int fd, size;
	s32 err = asked_answer(sock, ASK_PROVE, 1, NULL, 0, NULL, &answer);

	if (err)
		return err;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	must(fd >= 0, "socket: %s", strerror(errno));
	size = PROOF_FORCED(c->nonce);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size))) {
		size = PROOF_RCVBUF(c->nonce);
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	}
	setsockopt(fd, SOL_SOCKET, SO_MARK, &c->nonce, sizeof(c->nonce));
	setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof(on));
	at.sin_addr.s_addr = htonl(PROOF_ADDRESS(c->nonce));
	at.sin_port = htons((u16)(1 + c->nonce % 1000));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at))) {
		at.sin_port = 0;
		must(!bind(fd, (struct sockaddr *)&at, sizeof(at)), "bind: %s", strerror(errno));
	}
	must(!getsockname(fd, (struct sockaddr *)&at, &len), "getsockname");
	err = asked_answer(sock, ASK_PROOF, ntohs(at.sin_port), NULL, 0, NULL, &answer);
	close(fd);
	return err;
}

int asked_reach(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	err = connect(fd, (struct sockaddr *)&at, sizeof(at)) ? -errno : asked_prove(fd);
	if (!err)
		return fd;
	close(fd);
	return err;
}

s32 asked(int sock, u32 what, u32 number, int *fds, u32 room, u32 *count)
{
	struct ask_answer answer;

	return asked_answer(sock, what, number, fds, room, count, &answer);
}

s32 asked_draw(int sock, u32 *qpn)
{
	struct ask_answer answer;
	const s32 err = asked_answer(sock, ASK_DRAW, 0, NULL, 0, NULL, &answer);

	*qpn = answer.number;
	return err;
}

u32 asked_port(int sock, u32 hello, int fds[32])
{
	u32 n;
	const s32 err = asked(sock, ASK_HELLO, hello, fds, 32, &n);

	must(!err, "no port: %s", strerror(-err));
	return n;
}
