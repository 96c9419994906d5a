/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rights of a connection, proved by a socket of the peer: ASK_PROVE, ASK_PROOF (proof.h). */
#ifndef BROKER_CLIENT_RIGHTS_H
#define BROKER_CLIENT_RIGHTS_H

#include "broker_object.h"

/* Answers with a nonce for the proof. */
void client_rights_challenge(struct client *c);
/* Reads the rights that the socket at the port proves. Returns the answer: 0 or -errno. */
int client_rights_prove(struct client *c, u32 port);

#endif
