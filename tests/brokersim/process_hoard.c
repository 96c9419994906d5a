/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connections of a hostile client, which leaves an answer with descriptors unread. */
#include "process.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../user/client/ask.h"

#define ROUNDS 3u
#define TRIES  200u /* of a port after the answer was read, 1 ms apart */

/* Returns a connection that has proved its rights, or -errno. */
static int connect_and_prove(const struct process *p, struct asker *a)
{
	const int fd = faked_connect(process_pid(p->index), process_uid(p->index));
	struct ask_client client;
	int err;

	if (fd < 0)
		return fd;
	ask_init(a);
	ask_begin(a, fd);
	a->has_proved = false;
	err = ask_list(a, 0, &client);
	if (!err || err == -ENOENT)
		return 0;
	ask_close(a);
	return err;
}

/* Asks for a port on a connection of its own, which it closes. Returns 0 or -errno. */
static int try_port(const struct process *p)
{
	int fds[ASK_SOCKETS_FDS], err;
	struct ask_port port;
	struct asker a;

	err = connect_and_prove(p, &a);
	if (err)
		return err;
	err = ask_hello(&a, false, &port, fds);
	for (u32 i = 0; !err && i < ASK_FDS; i++)
		close(fds[i]);
	ask_close(&a);
	return err;
}

/* Waits for an answer that it does not read. Returns whether the answer has descriptors. */
static bool leave_unread(struct asker *a)
{
	const struct ask ask = { .version = ASK_VERSION, .what = ASK_HELLO };
	struct ask_answer answer = { .err = -EPIPE };

	if (send(a->fd, &ask, sizeof(ask), MSG_NOSIGNAL) != sizeof(ask))
		return false;
	poll(&(struct pollfd){ .fd = a->fd, .events = POLLIN }, 1, -1);
	return recv(a->fd, &answer, sizeof(answer), MSG_PEEK | MSG_DONTWAIT) == sizeof(answer) &&
	       !answer.err && answer.num_fds == ASK_FDS;
}

/* Reads the answer without room for its descriptors, which the kernel closes. */
static void read_at_last(struct asker *a)
{
	struct ask_answer answer;
	struct iovec iov = { &answer, sizeof(answer) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	must(recvmsg(a->fd, &msg, 0) == sizeof(answer));
}

static void hoard(const struct process *p, bool reads)
{
	struct asker a;
	bool is_left;
	int err = connect_and_prove(p, &a);

	if (err)
		return;
	is_left = leave_unread(&a);
	shutdown(a.fd, SHUT_RDWR);
	err = try_port(p);
	if (is_left) {
		must(err == -EDQUOT || err == -ENOENT || ask_is_over(err));
		outcome.hoarded += err == -EDQUOT;
	}
	if (is_left && reads)
		read_at_last(&a);
	else
		ask_close(&a);
	is_left &= err == -EDQUOT;
	for (u32 i = 0; err == -EDQUOT && i < TRIES; i++) {
		actor_sleep(NSEC_PER_MSEC);
		err = try_port(p);
	}
	must(!is_left || !err || err == -ENOENT || ask_is_over(err));
	outcome.regained += is_left && !err;
	if (a.fd >= 0)
		ask_close(&a);
}

void process_hoard(const struct process *p)
{
	for (u32 i = 0; i < ROUNDS; i++)
		hoard(p, i % 2);
}
