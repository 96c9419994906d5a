/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MADs that are nobody's while no client has a QP 1: the broker refuses them, so that a peer that
 * connects is told at once, and one that pings has its answer. xroce_mux puts them into a ring;
 * those that find no room there are dropped, and repeated by their senders.
 */
#ifndef BROKER_NOBODY_H
#define BROKER_NOBODY_H

#include "../os/loop.h"

struct broker;
struct ring_buffer;

struct nobody {
	struct ring_buffer *ring; /* NULL: not open */
	struct source source;
	u32 left;		  /* records that are read in this turn */
};

/* Returns 0 or -errno. */
int nobody_open(struct broker *b);
void nobody_close(struct broker *b);

#endif
