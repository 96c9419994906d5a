/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Multicast groups of clients: ASK_ATTACH, ASK_DETACH. */
#ifndef BROKER_CLIENT_GROUP_H
#define BROKER_CLIENT_GROUP_H

#include "broker_object.h"

/* Return the answers: 0 or -errno, as in os/ask.h. */
int client_group_attach(struct client *c, const struct ask_service *group);
int client_group_detach(struct client *c, const struct ask_service *group);
/* Removes an ending client, which still has its number, from all groups. */
void client_group_end(struct client *c);

#endif
