/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Pins the maps of a broker and its clients in a BPF file system (pin.h), with --pin. */
#ifndef BROKER_PINNED_H
#define BROKER_PINNED_H

#include "broker_object.h"

/*
 * Pins the broker's maps with --pin; otherwise only removes pins that killed processes have left.
 * Returns 0, or -errno after a line on standard error; always 0 with while_used.
 */
int pinned_begin(struct broker *b);
/* Removes the pins of the broker and its clients. */
void pinned_end(struct broker *b);

/* Pins the maps of the client's instance. */
void pinned_client(struct client *c, const struct instance *i);
void pinned_client_end(struct client *c);

#endif
