/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections whose process has gone without ending them: its peers are told, as the kernel tells
 * them for a process that was killed. Each peer gets a DREQ, or a REJ if it was not answered yet,
 * a few times, as answers to these are nobody's.
 */
#ifndef BROKER_DEAD_PEERS_H
#define BROKER_DEAD_PEERS_H

#include "broker_object.h"

/* What the owner of this place has left, that had a QP 1 of this serial, and has none any more. */
void dead_peers_take(struct broker *b, u32 place, u64 serial);
/* When dead_peers_tell() is to be called; NSEC_NEVER. */
u64 dead_peers_next_ns(const struct broker *b);
/* Tells some, of those that are due. */
void dead_peers_tell(struct broker *b, u64 now_ns);
/* Nobody is told any more. */
void dead_peers_free(struct broker *b);

#endif
