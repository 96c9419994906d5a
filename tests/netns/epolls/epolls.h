/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the parts of the epolls program share (tests/netns/epolls.c): the two sockets of a case,
 * their listener and a set, and the cases.
 */
#ifndef NETNS_EPOLLS_H
#define NETNS_EPOLLS_H

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../lib/cases.h"

/* BUFFER_BYTES of both ends keep TCP from growing its buffers while a case fills them. */
enum { SOON_MS = 10000, NOT_MS = 60, BUFFER_BYTES = 65536 };

/* Closed after each case; -1: none. */
extern struct ends {
	int listener, server, client, set;
} end;

bool ends_listen(void);
/* A client that waits in connect(), and its server. */
bool ends_connect(int *client, int *server);
/* A listener, both ends, and a set with neither. */
bool ends_open(void);

int ctl(int set, int op, int fd, unsigned int events);
/* The events of fd, which alone has some, at most SOON_MS later. 0: none, or another's. */
unsigned int happens(int set, int fd);
/* Nothing has events for NOT_MS. */
bool quiet(int set);
bool nonblocking(int fd);
/* Sends until it would block. Returns the bytes; 0: an error. */
size_t fill(int fd);
/* Reads n bytes. */
bool drain(int fd, size_t n);

/* ---- triggers.c ---- */
bool level_in(void);
bool level_out(void);
bool edge_in(void);
bool edge_out(void);
bool edge_after_a_short_write(void);
bool edge_listener(void);
bool oneshot(void);
bool half_closed(void);
bool closed_by_peer(void);
bool close_does_not_wait(void);
bool connecting(void);
bool refused(void);
bool datagrams(void);

/* ---- sets.c ---- */
bool ctl_errors(void);
bool other_descriptors(void);
bool closed_is_taken_out(void);
bool copies(void);
bool nested(void);
bool several_sets(void);
bool added_while_waiting(void);
bool threads_of_one_set(void);
bool ping_pong(void);
bool many(void);
bool timeouts(void);
bool signal_masks(void);
bool signal_masks_of_poll(void);
bool sigio(void);
bool forked(void);
bool started(void);
bool other_calls(void);

/* ---- duplicates.c ---- */
bool last_copy_closes(void);
bool waits_of_copies(void);
bool copy_keeps_its_original_in_a_set(void);
bool copies_share_flags(void);
bool copies_over_others(void);
bool copies_of_a_listener(void);
bool signals_end_calls(void);
bool signals_restart_calls(void);
bool signals_end_calls_with_timeouts(void);
bool cancelled_calls(void);
bool original_is_closed_meanwhile(void);
bool no_descriptors(void);

/* ---- arguments.c ---- */
bool no_pointers(void);
bool wrong_times(void);
bool kept_when_refused(void);
bool wrong_control_data(void);

#endif
