/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections: who they are, what they ask and what they have. A connection that asks for a port is
 * a client; others list or stop.
 */
#ifndef BROKER_CLIENT_H
#define BROKER_CLIENT_H

#include "broker_object.h"

#define CLIENT_NONE (~0u)

/* One more connection, at the head of the list. Returns 0, or -errno: v->fd stays the caller's. */
int client_make(struct broker *b, const struct visitor *v);
/*
 * Its packets go to that program, and it sends by those TAPs: it has a number. Returns 0 or -errno.
 */
int client_enter(struct client *c, int prog_fd, u32 prog_id, const u32 tap[INSTANCE_TAPS]);
/* Takes one new connection, or refuses it. */
void client_welcome(struct broker *b);

/* Kernel memory of a ring of ASK_RING: its page of data, and two of positions. */
#define CLIENT_RING_KIB 12u

/*
 * The client that waits longest for an answer that can be given now, of the user that was served
 * least recently; NULL. quick: of those whose answer takes no time.
 */
struct client *client_waiting(struct broker *b, bool quick);
/* Gives it that, or says why not. */
void client_serve(struct client *c);

/* All that it has is taken back, in this order: numbers, packets, TAP, place. */
void client_end(struct client *c);
/* Only its connection: what it has stays as it is, as the broker ends. */
void client_dismiss(struct client *c);

#endif
