/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What rsocket(7) promises, and what a hostile peer gets: a line a case, as tests/netns has them.
 *
 *	rsockets ADDRESS [CASE]
 *	rsockets ADDRESS silent PORT	a client without receives, until a signal
 *
 * Both ends are in this process, at the address, which is of an interface of ours. Each case
 * listens at a port that the library draws.
 *
 * The cases are in rsockets/.
 */
#include <stdlib.h>

#include "rsockets/rsockets.h"

struct ends pair = { -1, -1, -1 };

bool pair_listen(int backlog)
{
	socklen_t n = sizeof(at);
	int one = 1;

	at.v4.sin_port = 0;
	pair.listener = rsocket(at.any.sa_family, SOCK_STREAM, 0);
	CHECK(pair.listener >= 0);
	CHECK(!rsetsockopt(pair.listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
	CHECK(!rbind(pair.listener, &at.any, at_bytes));
	CHECK(!rlisten(pair.listener, backlog));
	CHECK(!rgetsockname(pair.listener, &at.any, &n) && n == at_bytes && at.v4.sin_port);
	return true;
}

bool pair_connect(void)
{
	pair.client = rsocket(at.any.sa_family, SOCK_STREAM, 0);
	CHECK(pair.client >= 0);
	CHECK(!rconnect(pair.client, &at.any, at_bytes));
	pair.server = raccept(pair.listener, NULL, NULL);
	CHECK(pair.server >= 0);
	return true;
}

bool pair_open(void)
{
	return pair_listen(5) && pair_connect();
}

void pair_close(void)
{
	int *fds[] = { &pair.client, &pair.server, &pair.listener };

	for (size_t i = 0; i < 3; i++) {
		if (*fds[i] >= 0)
			rclose(*fds[i]);
		*fds[i] = -1;
	}
}

short ready(int fd, short events, int ms)
{
	struct pollfd p = { .fd = fd, .events = events };

	return rpoll(&p, 1, ms) == 1 ? p.revents : 0;
}

static const struct named_case cases[] = {
	CASE(socket_kinds),
	CASE(connect_refused),
	CASE(connect_nonblocking),
	CASE(names),
	CASE(bind_in_use),
	CASE(peek_and_vectors),
	CASE(wait_for_all),
	CASE(full),
	CASE(half_closed),
	CASE(closed_by_peer),
	CASE(timeouts),
	CASE(closed_while_waiting),
	CASE(several_wait),
	CASE(poll_of_both_kinds),
	CASE(interrupted),
	CASE(options),
	CASE(options_of_the_connected),
	CASE(keepalive),
	CASE(mapped),
	CASE(mapped_without_a_table),
	CASE(many_connections),
	CASE(more_than_the_backlog),
	CASE(forked),
	CASE(datagrams),
	CASE(hostile_messages),
	CASE(hostile_after_data),
	CASE(hostile_private_data),
	CASE(hostile_without_receives),
	CASE(hostile_lingers),
	CASE(idle_peer),
};

int main(int argc, char **argv)
{
	if (argc < 2 || !cases_address(argv[1])) {
		fprintf(stderr, "usage: rsockets ADDRESS [CASE | silent PORT]\n");
		return 2;
	}
	if (argc == 4 && !strcmp(argv[2], "silent"))
		return hostile_wait(atoi(argv[3]));
	return cases_run(cases, sizeof(cases) / sizeof(cases[0]), argc > 2 ? argv[2] : "*",
			 at.any.sa_family == AF_INET ? "_v4" : "_v6", pair_close);
}
