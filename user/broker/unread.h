/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Answers with descriptors that their client has not read yet.
 *
 * Descriptors that lie unread in a socket are counted by the kernel against all of the broker's
 * user, root as a rule. So one answer's are under way for each user of the broker, its client is
 * not listened to until it has read that, and ends if it takes too long.
 */
#ifndef BROKER_UNREAD_H
#define BROKER_UNREAD_H

#include "broker_object.h"

/* An answer with descriptors has been sent to c. */
void unread_start(struct client *c);
/* Is one of c's unread? Listens to c again once it has been read. */
bool unread_look(struct client *c);
/* c goes, whatever it has read. */
void unread_dismiss(struct client *c);

/* When the next unread answer has been so for too long; NSEC_NEVER. */
u64 unread_next_ns(const struct broker *b);
/* Ends the clients whose answers have. */
void unread_end_silent(struct broker *b, u64 now_ns);

#endif
