/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What clients have of multicast groups: ASK_ATTACH, ASK_DETACH. */
#ifndef BROKER_CLIENT_GROUP_H
#define BROKER_CLIENT_GROUP_H

#include "broker_object.h"

/* The answers: 0 or -errno, as os/ask.h says. */
int client_group_attach(struct client *c, const struct ask_service *group);
int client_group_detach(struct client *c, const struct ask_service *group);
/* It ends, and has its number still: nothing of a group is for it any more. */
void client_group_end(struct client *c);

#endif
