/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * QP numbers and whose they are. A number is one client's, for which it was drawn or which claimed
 * it first, until that releases it or ends. Pure but for the memory that numbers_make() gets.
 */
#ifndef BROKER_NUMBERS_H
#define BROKER_NUMBERS_H

#include "../engine/types.h"

#define NUMBERS_NONE (~0u)

struct number {
	u32 qpn;
	u32 client;
	u32 next;	   /* in its bucket, or among the free ones */
	u32 before, after; /* of the client's */
};

struct numbers {
	u32 capacity;
	u32 buckets; /* a power of two */
	u32 seed;    /* odd: so that a client cannot choose numbers that share a bucket */
	u32 free;
	u32 *bucket;
	u16 *last; /* of each slot, see number.h; 0: none */
	struct number *number;
};

/* Returns 0 or -ENOMEM. */
int numbers_make(struct numbers *n, u32 capacity, u32 seed);
void numbers_unmake(struct numbers *n);

/* May the privileged ask for it? 0 or -EINVAL (no QP has it, or QP 1). */
int numbers_check(u32 qpn);

/*
 * *list is the client's: NUMBERS_NONE at first, changed by these alone. Returns 0, -EEXIST
 * (another's), -EALREADY (its own) or -ENOSPC.
 */
int numbers_claim(struct numbers *n, u32 qpn, u32 client, u32 *list);
/*
 * The same for a number that nobody has, nor had of late, *qpn: its bits are random's, which nobody
 * must be able to guess. Returns 0 or -ENOSPC.
 */
int numbers_draw(struct numbers *n, u32 (*random)(void *arg), void *arg, u32 client, u32 *list,
		 u32 *qpn);
/* Returns 0 or -ENOENT (not this client's). */
int numbers_release(struct numbers *n, u32 qpn, u32 client, u32 *list);
/* Takes any of the client's out. False: it has none. */
bool numbers_pop(struct numbers *n, u32 *list, u32 *qpn);

#endif
