/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a client has of the connection manager: a QP 1, and the services that it is bound to. Which
 * MADs are whose, xroce_mux finds by what is written here (docs/xdp.md).
 */
#ifndef BROKER_CLIENT_CM_H
#define BROKER_CLIENT_CM_H

#include "broker_object.h"

/* Of its communication ids; the client has a number. */
u32 client_cm_place(const struct client *c);

/* It has a QP 1 from now on: 0, -EALREADY or -errno. */
int client_cm_claim(struct client *c);
/* It has none any more: 0 or -ENOENT. */
int client_cm_release(struct client *c);

/* ASK_BIND and ASK_UNBIND (os/ask.h). */
int client_cm_bind(struct client *c, const struct ask_service *s);
int client_cm_unbind(struct client *c, const struct ask_service *s);

/* All of it is taken back. */
void client_cm_end(struct client *c);

#endif
