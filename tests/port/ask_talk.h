/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A conversation of user/client/ask.c with the test as the broker: the other end of a socket pair
 * holds an answer before the question.
 */
#ifndef PORT_ASK_TALK_H
#define PORT_ASK_TALK_H

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../user/client/ask.h"

#define MANY_FDS 40 /* more than the asker takes */

struct talk {
	struct asker asker;
	int broker;
};

/* What the broker sends: the first len bytes of more than an answer, and descriptors. */
struct reply {
	struct ask_answer answer;
	u8 more[16];
	size_t len;
	u32 fds;
};

static inline int setup(void **state)
{
	struct talk *t = calloc(1, sizeof(*t));
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ask_init(&t->asker);
	ask_begin(&t->asker, pair[0]);
	t->asker.has_proved = true;
	t->broker = pair[1];
	*state = t;
	return 0;
}

static inline int teardown(void **state)
{
	struct talk *t = *state;

	ask_close(&t->asker);
	if (t->broker >= 0)
		close(t->broker);
	free(t);
	return 0;
}

static inline struct reply yes(u32 what, u32 fds)
{
	struct reply r = { .answer = { .version = ASK_VERSION, .what = what, .num_fds = fds },
			   .len = sizeof(struct ask_answer),
			   .fds = fds };

	if (what == ASK_HELLO)
		r.answer.port.pkeys = PKEY_TABLE_DEFAULT;
	return r;
}

static inline void say(struct talk *t, const struct reply *r)
{
	union {
		char room[CMSG_SPACE(MANY_FDS * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)r, .iov_len = r->len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fds[MANY_FDS];

	assert_true(r->fds <= MANY_FDS);
	for (u32 i = 0; i < r->fds; i++)
		assert_true((fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0);
	if (r->fds) {
		struct cmsghdr *c;

		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(r->fds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		*c = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
				       .cmsg_len = CMSG_LEN(r->fds * sizeof(int)) };
		memcpy(CMSG_DATA(c), fds, r->fds * sizeof(int));
	}
	assert_int_equal(sendmsg(t->broker, &msg, 0), (ssize_t)r->len);
	for (u32 i = 0; i < r->fds; i++)
		close(fds[i]);
}

/* Checks what the process asked. */
static inline void heard(struct talk *t, u32 what, u32 number)
{
	struct ask ask;

	assert_int_equal(recv(t->broker, &ask, sizeof(ask), 0), sizeof(ask));
	assert_int_equal(ask.version, ASK_VERSION);
	assert_int_equal(ask.what, what);
	assert_int_equal(ask.number, number);
	assert_int_equal(ask.pad, 0);
	assert_memory_equal(&ask.service, &(struct ask_service){ 0 }, sizeof(ask.service));
}

/* Checks that both ends see the end, and a thread that watches for it as well. */
static inline void is_over(struct talk *t)
{
	struct pollfd fds[] = { { .fd = t->asker.fd, .events = POLLRDHUP },
				{ .fd = t->broker, .events = POLLRDHUP } };

	assert_int_equal(poll(fds, t->broker < 0 ? 1 : 2, 0), t->broker < 0 ? 1 : 2);
	assert_true(fds[0].revents & POLLHUP);
	assert_int_equal(ask_claim(&t->asker, 7), -EPIPE);
}

/* Checks the descriptors of a port, and closes them. */
static inline void takes(const struct talk *t, const int *fds, u32 n)
{
	/* a killed process's descriptors are closed from the highest down */
	assert_int_equal(fcntl(t->asker.fd, F_GETFD), FD_CLOEXEC);
	for (u32 i = 0; i < n; i++) {
		assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
		assert_true(fds[i] < t->asker.fd);
		close(fds[i]);
	}
}

#endif
