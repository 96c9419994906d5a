/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps of a broker and its clients in a BPF file system (attach/pin.h), if that is wanted. */
#ifndef BROKER_PINNED_H
#define BROKER_PINNED_H

#include "broker_object.h"

/*
 * The broker's own. Returns 0, or -errno after a line on standard error: of one that is started by
 * need always 0.
 */
int pinned_begin(struct broker *b);
/* With those of clients that there are. */
void pinned_end(struct broker *b);

/* A client's, which has the maps of the instance. */
void pinned_client(struct client *c, const struct instance *i);
void pinned_client_end(struct client *c);

#endif
