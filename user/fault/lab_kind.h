/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kinds of packets that rules name: the wire's opcodes as words with dots (rc.send.first,
 * rc.read.response.last), acknowledgements by their syndrome (rc.ack, rc.rnr, rc.nak.sequence),
 * and the MADs of the connection manager (cm.req). A prefix names a group: rc.send, rc, cm.
 */
#ifndef LAB_KIND_H
#define LAB_KIND_H

#include "../engine/packet.h"

enum { LAB_KIND_NAME = 40, LAB_KINDS_MAX = 256 };

/* A set of kinds, a bit each. */
struct lab_kinds {
	u64 bits[LAB_KINDS_MAX / 64];
};

static inline bool lab_kinds_has(const struct lab_kinds *k, u32 kind)
{
	return k->bits[kind / 64] >> kind % 64 & 1;
}

/* Returns the kind of a packet from packet_parse(). */
u32 lab_kind_of(const struct packet *p);
/* Returns whether the packet is a MAD of the connection manager. */
bool lab_kind_is_mad(u32 kind);
/* Writes the kind's name. */
void lab_kind_name(u32 kind, char name[LAB_KIND_NAME]);
/* Adds the kinds of that name, or of the group with that name. Returns false if there is none. */
bool lab_kinds_add(struct lab_kinds *k, const char *name, size_t len);

#endif
