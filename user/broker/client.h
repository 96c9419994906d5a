/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections to the broker: their rights, questions and resources. A connection that asks for a
 * port is a client; others list, observe or stop.
 */
#ifndef BROKER_CLIENT_H
#define BROKER_CLIENT_H

#include "broker_object.h"

#define CLIENT_NONE (~0u)

/* Adds a connection at the head of the list. Returns 0, or -errno: v->fd stays the caller's. */
int client_make(struct broker *b, const struct visitor *v);
/* Accepts one new connection, or refuses it. */
void client_welcome(struct broker *b);

/* ---- answers ---- */

/* Sends an answer. Returns 0 or -errno. */
int client_answer(struct client *c, struct ask_answer *answer, const int *fds);
/*
 * The same, but ends a client whose socket has no room for the answer. If the client has closed it,
 * the loop reports that next, which ends the client. Returns false if the answer was not sent.
 */
bool client_send(struct client *c, struct ask_answer *answer, const int *fds);
/* Sends an answer of 0 or -errno only. */
void client_reply(struct client *c, u32 what, int err);

/* ---- waiting ---- */

/* Queues a question for client_serve(). Until then the client's next questions stay unread. */
void client_wait(struct client *c, const struct ask *ask);
/*
 * Returns the oldest connection that waits for an answer that can be given now, of the user that
 * was served least recently, or NULL. quick: only answers that take no time.
 */
struct client *client_waiting(struct broker *b, bool quick);
/* Tells clients whose question has waited for seconds that it still does (-EINPROGRESS). */
void client_note_waiting(struct broker *b, u64 now_ns);
/* Returns when client_note_waiting() is due next, or NSEC_NEVER. */
u64 client_next_note_ns(const struct broker *b);
/* Sends that answer, or the error. */
void client_serve(struct client *c);

/* Takes back numbers, services, QP 1, groups, the program's slot and the TAPs; frees c. */
void client_end(struct client *c);

#endif
