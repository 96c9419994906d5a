/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Notifies the peers of a process that exited without ending its connections, as the kernel's CM
 * does for a killed process. Each peer gets a DREQ, or a REJ if its request had no answer. As
 * answers reach no client, each MAD is sent several times.
 */
#ifndef BROKER_DEAD_PEERS_H
#define BROKER_DEAD_PEERS_H

#include "broker_object.h"

/*
 * Takes the remaining connections and requests of an ended QP 1, by its place and serial.
 * is_unconfirmed: they are known by their peers' MADs alone, as the client's did not pass the
 * broker. Any host can forge these, so the MADs to their addresses are fewer, and paced.
 */
void dead_peers_take(struct broker *b, u32 place, u64 serial, bool is_unconfirmed);
/* Returns when to call dead_peers_tell(), or NSEC_NEVER. */
u64 dead_peers_next_ns(const struct broker *b);
/* Sends MADs to some of the peers that are due. */
void dead_peers_tell(struct broker *b, u64 now_ns);
/* Frees all; no more peers are notified. */
void dead_peers_free(struct broker *b);

#endif
