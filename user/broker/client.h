/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections: who they are, what they ask and what they have. A connection that asks for a port is
 * a client; others list or stop.
 */
#ifndef BROKER_CLIENT_H
#define BROKER_CLIENT_H

#include "broker_object.h"

#define CLIENT_NONE (~0u)

/* Takes one new connection, or refuses it. */
void client_welcome(struct broker *b);

/*
 * The client that waits for its port longest, of the user that was served least recently; NULL.
 */
struct client *client_waiting(struct broker *b);
/* Gives it its port, or says why not. */
void client_serve(struct client *c);

/* All that it has is taken back, in this order: numbers, packets, TAP, place. */
void client_end(struct client *c);

#endif
