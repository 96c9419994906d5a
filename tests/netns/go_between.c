/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sits between a broker and its clients, takes the broker's place in the file system, and answers
 * the questions for numbers of QPs in its place:
 *
 *	go_between SOCKET useless N	N numbers follow the first one, all with its slot
 *	go_between SOCKET full		no more numbers
 *	go_between SOCKET garbage	an answer that is none
 *
 * Says `ready`; ends with its parent's signal.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <xroce/abi.h>

#include "../../user/os/ask.h"
#include "lib/ctl.h"

#define MAX_PAIRS 8
#define MAX_FDS	  32

static const char *what;
static int useless;
static u32 first; /* that the broker has drawn */

static int seqpacket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	must(fd >= 0, "socket: %s", strerror(errno));
	return fd;
}

static struct sockaddr_un address(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	return sun;
}

/* Pass on one message with its descriptors. False at the end. */
static bool relay(int from, int to)
{
	union {
		char room[CMSG_SPACE(MAX_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	char data[512];
	struct iovec iov = { data, sizeof(data) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(from, &msg, MSG_CMSG_CLOEXEC);
	struct ask_answer answer;
	struct cmsghdr *c;

	if (n <= 0)
		return false;
	memcpy(&answer, data, sizeof(answer));
	if (n == sizeof(answer) && answer.what == ASK_DRAW && !answer.err && !first)
		first = answer.number;
	c = CMSG_FIRSTHDR(&msg);
	if (!c)
		msg.msg_control = NULL;
	iov.iov_len = (size_t)n;
	n = sendmsg(to, &msg, MSG_NOSIGNAL);
	for (size_t i = 0; c && CMSG_LEN(i * sizeof(int)) < c->cmsg_len; i++) {
		int fd;

		memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
		close(fd);
	}
	return n > 0;
}

/* In the place of the first one, and another: no two of them are alike. */
static bool is_useless(u32 number)
{
	return first && number != first && number % XROCE_MAX_QP == first % XROCE_MAX_QP;
}

/* True if the question is not the broker's. */
static bool is_ours(const struct ask *ask, struct ask_answer *a)
{
	if (ask->what == ASK_RELEASE && is_useless(ask->number))
		return true;
	if (ask->what != ASK_DRAW)
		return false;
	if (!strcmp(what, "garbage"))
		a->what = 77;
	else if (!strcmp(what, "full"))
		a->err = -EDQUOT;
	else if (first && useless)
		a->number = first ^ (u32)useless-- * XROCE_MAX_QP;
	else
		return false;
	return true;
}

/* True if the question was answered here. */
static bool answered(int client)
{
	struct ask_answer a = { .version = ASK_VERSION };
	struct ask ask;

	if (recv(client, &ask, sizeof(ask), MSG_PEEK) != sizeof(ask))
		return false;
	a.what = ask.what;
	if (!is_ours(&ask, &a))
		return false;
	must(recv(client, &ask, sizeof(ask), 0) == sizeof(ask), "recv");
	printf("%s %u\n", ask.what == ASK_DRAW ? "drew" : "released",
	       ask.what == ASK_DRAW ? a.number : ask.number);
	fflush(stdout);
	must(send(client, &a, sizeof(a), MSG_NOSIGNAL) == sizeof(a), "send");
	return true;
}

/* fds[0] listens; then pairs of a client and its connection to the broker. */
static void serve(struct pollfd *fds, const struct sockaddr_un *real)
{
	int n = 1;

	for (;;) {
		must(poll(fds, (nfds_t)n, -1) > 0, "poll");
		for (int i = 1; i < n; i += 2) {
			const int client = fds[i].fd, broker = fds[i + 1].fd;
			const bool asks = fds[i].revents, says = fds[i + 1].revents;

			if ((!asks || answered(client) || relay(client, broker)) &&
			    (!says || relay(broker, client)))
				continue;
			close(client);
			close(broker);
			n -= 2;
			memmove(&fds[i], &fds[i + 2], (size_t)(n - i) * sizeof(*fds));
			i -= 2;
		}
		if (fds[0].revents && n < 1 + 2 * MAX_PAIRS) {
			int client = accept4(fds[0].fd, NULL, NULL, SOCK_CLOEXEC);
			int broker = seqpacket();

			must(client >= 0, "accept: %s", strerror(errno));
			must(!connect(broker, (const struct sockaddr *)real, sizeof(*real)),
			     "connect: %s", strerror(errno));
			fds[n++] = (struct pollfd){ .fd = client, .events = POLLIN };
			fds[n++] = (struct pollfd){ .fd = broker, .events = POLLIN };
		}
	}
}

int main(int argc, char **argv)
{
	struct pollfd fds[1 + 2 * MAX_PAIRS];
	struct sockaddr_un own, real;
	char path[108];

	must(argc >= 3, "usage: go_between SOCKET useless N|full|garbage");
	what = argv[2];
	useless = argc > 3 ? atoi(argv[3]) : 0;
	snprintf(path, sizeof(path), "%s.real", argv[1]);
	own = address(argv[1]);
	real = address(path);
	must(!rename(argv[1], path), "rename: %s", strerror(errno));
	fds[0] = (struct pollfd){ .fd = seqpacket(), .events = POLLIN };
	must(!bind(fds[0].fd, (struct sockaddr *)&own, sizeof(own)) && !chmod(argv[1], 0666) &&
		     !listen(fds[0].fd, MAX_PAIRS),
	     "listen: %s", strerror(errno));
	puts("ready");
	fflush(stdout);
	serve(fds, &real);
}
