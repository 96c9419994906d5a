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
/* Gives c a number, the program for its packets, and the TAPs to send by. Returns 0 or -errno. */
int client_enter(struct client *c, int prog_fd, u32 prog_id, const u32 tap[INSTANCE_TAPS]);
/* Describes c, which has a number, as a sender of frames. */
struct mux_client client_sender(const struct client *c);
/* Refuses frames from its TAP devices, and deletes them. */
void client_drop_taps(struct client *c);
/* Accepts one new connection, or refuses it. */
void client_welcome(struct broker *b);

/* Kernel memory of a ring of ASK_RING: one page of data, two of positions. */
#define CLIENT_RING_KIB 12u

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
