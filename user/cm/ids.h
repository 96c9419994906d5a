/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Communication ids in an order that cannot be guessed and in which none comes again before all
 * others have come: a peer keeps an id as long as its time-wait lasts, and refuses a connection
 * that has it meanwhile. The order is a counter enciphered by a Feistel network with keys of its
 * own; so it needs no memory, however many ids there are.
 */
#ifndef CM_IDS_H
#define CM_IDS_H

#include "cm.h"

#define IDS_ROUNDS 8

struct ids {
	u32 first, count; /* the range */
	u32 drawn;	  /* of the present turn through the range */
	u32 half_bits;	  /* of the smallest domain of two equal halves that holds the range */
	u64 key[IDS_ROUNDS];
};

/* count: at least 1. The keys are random's. */
void ids_make(struct ids *ids, u32 first, u32 count, u64 (*random)(void *arg), void *arg);
u32 ids_next(struct ids *ids);

#endif
