/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Answers with descriptors that their client has not read yet.
 *
 * The kernel counts descriptors in unread messages against RLIMIT_NOFILE of the sender's user,
 * usually root. So each user of the broker has at most one such answer in flight. The broker reads
 * no question of that connection until the answer is read, and closes it if that takes too long.
 */
#ifndef BROKER_UNREAD_H
#define BROKER_UNREAD_H

#include "broker_object.h"

/* Notes that an answer with descriptors was sent to c. */
void unread_start(struct client *c);
/* Returns whether c had an unread answer; listens to c again if it has been read. */
bool unread_look(struct client *c);
/* Forgets an unread answer of c, as c ends. */
void unread_dismiss(struct client *c);

/* Returns the earliest deadline of an unread answer, or NSEC_NEVER. */
u64 unread_next_ns(const struct broker *b);
/* Ends the clients whose answers are unread after their deadlines. */
void unread_end_silent(struct broker *b, u64 now_ns);

#endif
