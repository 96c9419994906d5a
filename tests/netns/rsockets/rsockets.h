/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared parts of the rsockets program (tests/netns/rsockets.c): the two rsockets of a case and
 * their listener, and the cases. A case prints the failed condition in a line.
 */
#ifndef NETNS_RSOCKETS_H
#define NETNS_RSOCKETS_H

#include <poll.h>
#include <rdma/rsocket.h>

#include "../lib/cases.h"

/* Closed after each case; -1: none. */
extern struct ends {
	int listener, server, client;
} pair;

bool pair_listen(int backlog);
bool pair_connect(void);
/* Both. */
bool pair_open(void);
void pair_close(void);
/* The result of rpoll(), 0 after the time-out. */
short ready(int fd, short events, int ms);

/* ---- what calls answer, options, mapped buffers (calls.c) ---- */

bool socket_kinds(void);
bool connect_refused(void);
bool connect_nonblocking(void);
bool names(void);
bool bind_in_use(void);
bool options(void);
bool options_of_the_connected(void);
bool keepalive(void);
bool mapped(void);
bool mapped_without_a_table(void);

/* ---- data, waiting, many, datagrams (data.c, waiting.c) ---- */

bool peek_and_vectors(void);
bool wait_for_all(void);
bool full(void);
bool half_closed(void);
bool closed_by_peer(void);
bool timeouts(void);
bool datagrams(void);
bool closed_while_waiting(void);
bool several_wait(void);
bool poll_of_both_kinds(void);
bool interrupted(void);
bool many_connections(void);
bool more_than_the_backlog(void);
bool forked(void);

/* ---- peers that are no rsockets (hostile.c) ---- */

bool hostile_messages(void);
bool hostile_after_data(void);
bool hostile_private_data(void);
bool hostile_without_receives(void);
bool hostile_lingers(void);
bool idle_peer(void);
/* Connects to the port without receives, and waits for a signal. */
int hostile_wait(int port);

#endif
