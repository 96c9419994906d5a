/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Communication ids in an unpredictable order that repeats none before all others were used: a peer
 * keeps an id until its time-wait ends, and refuses a connection that uses it before. The order is
 * a counter encrypted by a Feistel network with random keys, so it needs no memory per id.
 */
#ifndef CM_IDS_H
#define CM_IDS_H

#include "cm.h"

#define IDS_ROUNDS 8

struct ids {
	u32 first, count; /* the range */
	u32 drawn;	  /* ids drawn in the current pass through the range */
	u32 half_bits;	  /* of the smallest domain of two equal halves that contains the range */
	u64 key[IDS_ROUNDS];
};

/* count: at least 1. The keys come from random. */
void ids_make(struct ids *ids, u32 first, u32 count, u64 (*random)(void *arg), void *arg);
u32 ids_next(struct ids *ids);

#endif
