/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Questions about other clients: ASK_LIST, ASK_MAPS, ASK_TRACE, ASK_UNTRACE; and ASK_STOP. */
#ifndef BROKER_CLIENT_OBSERVER_H
#define BROKER_CLIENT_OBSERVER_H

#include "broker_object.h"

/* Each answers c. client_observer_maps() sends read-only descriptors. */
void client_observer_list(struct client *c, u32 number);
void client_observer_maps(struct client *c, u32 number);
void client_observer_trace(struct client *c, const struct ask *ask);
void client_observer_untrace(struct client *c, u32 prog_id);
void client_observer_stop(struct client *c);

#endif
