/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Answers with descriptors that their client has not read yet.
 *
 * The kernel counts descriptors in unread messages against RLIMIT_NOFILE of the sender's user,
 * usually root. So each user of the broker has at most one such answer in flight, and all users
 * together have at most UNREAD_MAX. The broker reads no question of that connection until the
 * answer is read, and ends the client if that takes too long.
 *
 * A message stays in flight after the end of its connection, also if the client shut it down, until
 * the client reads it or closes its end. Until then the broker parks its own end, which shows that,
 * and the connection still counts for its user. No bound can make a client read: a user with a
 * parked connection gets no further descriptors, and with UNREAD_PARKED_MAX of them no user does.
 * So at most UNREAD_MAX + UNREAD_PARKED_MAX - 1 answers are in flight at a time. For
 * clients with CAP_NET_ADMIN only the first bound holds: one unread answer of a live connection.
 *
 * Answers without descriptors are the kernel's memory until they are read: for these a connection
 * is parked as well, and only counts for its user.
 */
#ifndef BROKER_UNREAD_H
#define BROKER_UNREAD_H

#include "broker_object.h"

#define UNREAD_MAX	  16u
#define UNREAD_PARKED_MAX 16u

/* Returns 0, or the error for a question whose answer has descriptors: -EDQUOT or -ENOSPC. */
int unread_check(const struct client *c);
/* Returns whether an answer with descriptors can be sent to c now; else others are read first. */
bool unread_has_room(const struct client *c);

/* Notes that an answer with descriptors was sent to c. */
void unread_start(struct client *c);
/* Returns whether c had an unread answer; listens to c again if it has been read. */
bool unread_look(struct client *c);
/* Forgets an unread answer of c, as c ends. */
void unread_dismiss(struct client *c);
/*
 * Parks the connection of c, which ends, if an answer is unread: c has no descriptor then (-1), and
 * the connection counts for its user until all are read. Returns false if nothing is unread; c
 * keeps its descriptor.
 */
bool unread_park(struct client *c);
/* Hangs up the connection that was parked last, so that the client sees that after the answers. */
void unread_hang_up(struct broker *b);

/* Returns the earliest deadline of an unread answer, or NSEC_NEVER. */
u64 unread_next_ns(const struct broker *b);
/* Ends the clients whose answers are unread after their deadlines. */
void unread_end_silent(struct broker *b, u64 now_ns);
/* Closes the parked connections, as the broker ends. */
void unread_end(struct broker *b);

#endif
