/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The connections of a capture and the valid packets of the judged host ("ours") in them: PSNs and
 * opcodes in sequence, lengths, repetitions equal to their originals, responses that match their
 * requests. Uses packets only, and nothing of any implementation.
 */
#ifndef VM_TRACK_H
#define VM_TRACK_H

#include "../../../user/engine/packet.h"

struct track;

/* has_sockets: the judged host sends by UDP sockets, each of which has one source port. */
struct track *track_open(u32 path_mtu, bool has_sockets);
void track_close(struct track *t);

/*
 * First pass, for every packet: learn which QPNs there are. RC and UC packets name their
 * destination alone; the two numbers of a connection are found by our UDP source port, which
 * follows from them.
 */
void track_meet(struct track *t, const struct packet *p, bool is_ours);

/* Second pass. track_ours() returns the packet's error, or NULL. */
void track_theirs(struct track *t, const struct packet *p);
const char *track_ours(struct track *t, const struct packet *p);
/* At the end: connections whose last request is incomplete, or on RC has no AckReq. */
unsigned int track_unfinished(const struct track *t);

#endif
