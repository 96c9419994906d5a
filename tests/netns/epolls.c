/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * epoll(7) and signals of sockets, as a program has them that knows nothing of rsockets: a line a
 * case. The same expectations hold on TCP of the kernel and under librspreload.so.
 *
 *	epolls ADDRESS [CASE [LABEL]]
 *
 * Both ends are in this process, at the address, which is of an interface of ours. The cases are in
 * epolls/.
 */
#define _GNU_SOURCE
#include "epolls/epolls.h"

struct ends end = { -1, -1, -1, -1 };

bool ends_listen(void)
{
	socklen_t n = sizeof(at);
	int one = 1, bytes = BUFFER_BYTES;

	at.v4.sin_port = 0;
	end.listener = socket(at.any.sa_family, SOCK_STREAM, 0);
	CHECK(end.listener >= 0);
	CHECK(!setsockopt(end.listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
	CHECK(!setsockopt(end.listener, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)));
	CHECK(!bind(end.listener, &at.any, at_bytes));
	CHECK(!listen(end.listener, 128));
	CHECK(!getsockname(end.listener, &at.any, &n) && at.v4.sin_port);
	end.set = epoll_create1(EPOLL_CLOEXEC);
	CHECK(end.set >= 0);
	return true;
}

bool ends_connect(int *client, int *server)
{
	int bytes = BUFFER_BYTES;

	*client = socket(at.any.sa_family, SOCK_STREAM, 0);
	CHECK(*client >= 0);
	CHECK(!setsockopt(*client, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)));
	CHECK(!connect(*client, &at.any, at_bytes));
	*server = accept4(end.listener, NULL, NULL, SOCK_CLOEXEC);
	CHECK(*server >= 0);
	return true;
}

bool ends_open(void)
{
	return ends_listen() && ends_connect(&end.client, &end.server);
}

static void ends_close(void)
{
	int *fds[] = { &end.client, &end.server, &end.listener, &end.set };

	for (size_t i = 0; i < 4; i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

int ctl(int set, int op, int fd, unsigned int events)
{
	return epoll_ctl(set, op, fd, &(struct epoll_event){ .events = events, .data.fd = fd });
}

unsigned int happens(int set, int fd)
{
	struct epoll_event events[4];
	int n = epoll_wait(set, events, 4, SOON_MS);

	if (n == 1 && events[0].data.fd == fd)
		return events[0].events;
	if (n < 1)
		events[0] = (struct epoll_event){ .data.fd = -1 };
	printf("# %d have events; the first is %d (%x), not %d\n", n, events[0].data.fd,
	       events[0].events, fd);
	return 0;
}

bool quiet(int set)
{
	struct epoll_event event;
	int n = epoll_wait(set, &event, 1, NOT_MS);

	if (n)
		printf("# %d has events %x\n", event.data.fd, event.events);
	return n == 0;
}

bool nonblocking(int fd)
{
	return !fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

size_t fill(int fd)
{
	static const char bytes[65536];
	size_t total = 0;
	ssize_t n;

	while ((n = send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL)) > 0)
		total += (size_t)n;
	return errno == EAGAIN ? total : 0;
}

bool drain(int fd, size_t n)
{
	static char bytes[65536];

	while (n) {
		ssize_t got = recv(fd, bytes, n < sizeof(bytes) ? n : sizeof(bytes), 0);

		CHECK(got > 0);
		n -= (size_t)got;
	}
	return true;
}

static const struct named_case cases[] = {
	CASE(level_in),
	CASE(level_out),
	CASE(edge_in),
	CASE(edge_out),
	CASE(edge_after_a_short_write),
	CASE(edge_listener),
	CASE(oneshot),
	CASE(half_closed),
	CASE(closed_by_peer),
	CASE(close_does_not_wait),
	CASE(connecting),
	CASE(refused),
	CASE(datagrams),
	CASE(ctl_errors),
	CASE(other_descriptors),
	CASE(closed_is_taken_out),
	CASE(copies),
	CASE(nested),
	CASE(several_sets),
	CASE(added_while_waiting),
	CASE(threads_of_one_set),
	CASE(ping_pong),
	CASE(many),
	CASE(timeouts),
	CASE(signal_masks),
	CASE(signal_masks_of_poll),
	CASE(sigio),
	CASE(forked),
	CASE(started),
	CASE(other_calls),
	CASE(last_copy_closes),
	CASE(waits_of_copies),
	CASE(copy_keeps_its_original_in_a_set),
	CASE(copies_share_flags),
	CASE(copies_over_others),
	CASE(copies_of_a_listener),
	CASE(signals_end_calls),
	CASE(signals_restart_calls),
	CASE(signals_end_calls_with_timeouts),
	CASE(cancelled_calls),
	CASE(original_is_closed_meanwhile),
	CASE(no_descriptors),
	CASE(no_pointers),
	CASE(wrong_times),
	CASE(kept_when_refused),
	CASE(wrong_control_data),
};

int main(int argc, char **argv)
{
	if (argc < 2 || !cases_address(argv[1])) {
		fprintf(stderr, "usage: epolls ADDRESS [CASE [LABEL]]\n");
		return 2;
	}
	return cases_run(cases, sizeof(cases) / sizeof(cases[0]), argc > 2 ? argv[2] : "*",
			 argc > 3 ? argv[3] : "", ends_close);
}
