/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections whose process has gone without ending them: its peers are told, as the kernel tells
 * them for a process that was killed. Each peer gets a DREQ, or a REJ if it was not answered yet,
 * a few times, as answers to these are nobody's.
 */
#ifndef BROKER_ORPHANS_H
#define BROKER_ORPHANS_H

#include "broker_object.h"

/* What the owner of this place has left, that had a QP 1 of this serial, and has none any more. */
void orphans_take(struct broker *b, u32 place, u64 serial);
/* When orphans_tell() is to be called; NSEC_NEVER. */
u64 orphans_next_ns(const struct broker *b);
/* Tells some, of those that are due. */
void orphans_tell(struct broker *b, u64 now_ns);
/* Nobody is told any more. */
void orphans_free(struct broker *b);

#endif
