/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Refuses MADs without an owner while no client has a QP 1, so that a peer that connects gets a
 * refusal at once, and `xroce ping` an answer. xroce_mux puts the MADs into a ring. If it is full,
 * they are dropped, and their senders repeat them.
 */
#ifndef BROKER_MAD_REFUSER_H
#define BROKER_MAD_REFUSER_H

#include "../os/loop.h"

struct broker;
struct ring_buffer;

struct mad_refuser {
	struct ring_buffer *ring; /* NULL: not open */
	struct source source;
	u32 left;		  /* records still to read in this turn */
};

/* Returns 0 or -errno. */
int mad_refuser_open(struct broker *b);
void mad_refuser_close(struct broker *b);
/* Before a broker reads its UDP sockets: allows the refusals of a turn. */
void mad_refuser_begin_turn(struct broker *b);

#endif
