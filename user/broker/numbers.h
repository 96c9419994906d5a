/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * QP numbers and their owners. A number belongs to the client for which it was drawn, or which
 * claimed it, until the client releases it or ends. Pure, except for the memory that numbers_make()
 * allocates.
 */
#ifndef BROKER_NUMBERS_H
#define BROKER_NUMBERS_H

#include "../engine/types.h"

#define NUMBERS_NONE (~0u)

struct number {
	u32 qpn;
	u32 client;
	u32 next;	   /* in its bucket or the free list */
	u32 before, after; /* in the client's list */
};

struct numbers {
	u32 capacity;
	u32 buckets; /* a power of two */
	u32 seed;    /* odd and random: no client can choose numbers that share a bucket */
	u32 free;
	u32 *bucket;
	u16 *last; /* of each slot, as in number_of_slot(); 0: none */
	struct number *number;
};

/* Returns 0 or -ENOMEM. */
int numbers_make(struct numbers *n, u32 capacity, u32 seed);
void numbers_unmake(struct numbers *n);

/* Checks a number to claim. Returns 0, or -EINVAL (QP 1, or a number that no QP has). */
int numbers_check(u32 qpn);

/*
 * Assigns qpn to a client. *list is the client's list, NUMBERS_NONE at first; only these functions
 * change it. Returns 0, -EEXIST (another client's), -EALREADY (its own) or -ENOSPC.
 */
int numbers_claim(struct numbers *n, u32 qpn, u32 client, u32 *list);
/*
 * Assigns a free number that was not in use recently, *qpn, made of bits of random(), which must be
 * unpredictable. Returns 0 or -ENOSPC.
 */
int numbers_draw(struct numbers *n, u32 (*random)(void *arg), void *arg, u32 client, u32 *list,
		 u32 *qpn);
/* Returns 0 or -ENOENT (not this client's). */
int numbers_release(struct numbers *n, u32 qpn, u32 client, u32 *list);
/* Releases any number of the client, *qpn. Returns false if it has none. */
bool numbers_pop(struct numbers *n, u32 *list, u32 *qpn);

#endif
