/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client's QP 1, and the services that it is bound to. xroce_mux finds the client of a MAD in the
 * maps that are written here (docs/xdp.md).
 */
#ifndef BROKER_CLIENT_CM_H
#define BROKER_CLIENT_CM_H

#include "broker_object.h"

/* Returns the place of the client's communication ids. It must have a number. */
u32 client_cm_place(const struct client *c);

/* Gives the client a QP 1. Returns 0, -EALREADY or -errno. */
int client_cm_claim(struct client *c);
/* Takes the QP 1 back. Returns 0 or -ENOENT. */
int client_cm_release(struct client *c);

/* Return the answers to ASK_BIND and ASK_UNBIND (os/ask.h). */
int client_cm_bind(struct client *c, const struct ask_service *s);
int client_cm_unbind(struct client *c, const struct ask_service *s);

/* Takes back all services and the QP 1. */
void client_cm_end(struct client *c);

#endif
