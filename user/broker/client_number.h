/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* QP numbers of clients: ASK_DRAW, ASK_CLAIM, ASK_RELEASE. */
#ifndef BROKER_CLIENT_NUMBER_H
#define BROKER_CLIENT_NUMBER_H

#include "broker_object.h"

/* Returns a random number. arg: the broker. */
u32 client_number_random(void *arg);

/* Draws a number, and answers. */
void client_number_draw(struct client *c);
/*
 * Claims a number, only with CAP_NET_ADMIN: the answers reveal which numbers are taken. Every
 * client may claim QP 1. Returns the answer: 0 or -errno, as in os/ask.h.
 */
int client_number_claim(struct client *c, u32 qpn);
/* Returns the answer, as above. */
int client_number_release(struct client *c, u32 qpn);
/* Takes all numbers of an ending client back. */
void client_number_end(struct client *c);

#endif
