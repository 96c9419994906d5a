/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>

#include "numbers.h"

#define QPN_LIMIT     0xffffffu /* 24 bits, and the last is for multicast */
#define QPN_SMI	      0u
#define QPN_GSI	      1u

int numbers_make(struct numbers *n, u32 capacity, u32 seed)
{
	*n = (struct numbers){ .capacity = capacity,
			       .buckets = roundup_pow2(capacity),
			       .seed = seed | 1 };
	n->bucket = malloc(n->buckets * sizeof(*n->bucket));
	n->number = malloc(capacity * sizeof(*n->number));
	if (!n->bucket || !n->number) {
		numbers_unmake(n);
		return -ENOMEM;
	}
	memset(n->bucket, 0xff, n->buckets * sizeof(*n->bucket));
	for (u32 i = 0; i < capacity; i++)
		n->number[i].next = i + 1 < capacity ? i + 1 : NUMBERS_NONE;
	n->free = capacity ? 0 : NUMBERS_NONE;
	return 0;
}

void numbers_unmake(struct numbers *n)
{
	free(n->bucket);
	free(n->number);
	*n = (struct numbers){ .free = NUMBERS_NONE };
}

int numbers_check(u32 qpn, bool privileged)
{
	if (qpn == QPN_SMI || qpn >= QPN_LIMIT)
		return -EINVAL;
	return qpn == QPN_GSI && !privileged ? -EPERM : 0;
}

static u32 *numbers_bucket(const struct numbers *n, u32 qpn)
{
	/* the product's high bits are the mixed ones */
	return &n->bucket[(u32)((u64)(qpn * n->seed) * n->buckets >> 32)];
}

/* Where its index stands: in the bucket, or in the number before it. NULL: nobody's. */
static u32 *numbers_find(const struct numbers *n, u32 qpn)
{
	for (u32 *at = numbers_bucket(n, qpn); *at != NUMBERS_NONE; at = &n->number[*at].next)
		if (n->number[*at].qpn == qpn)
			return at;
	return NULL;
}

int numbers_claim(struct numbers *n, u32 qpn, u32 client, u32 *list)
{
	u32 *at = numbers_find(n, qpn), i = n->free;

	if (at)
		return n->number[*at].client == client ? -EALREADY : -EEXIST;
	if (i == NUMBERS_NONE)
		return -ENOSPC;
	n->free = n->number[i].next;
	at = numbers_bucket(n, qpn);
	n->number[i] = (struct number){ .qpn = qpn,
					.client = client,
					.next = *at,
					.before = NUMBERS_NONE,
					.after = *list };
	*at = i;
	if (*list != NUMBERS_NONE)
		n->number[*list].before = i;
	*list = i;
	return 0;
}

/* The number whose index stands there, out of its bucket and the client's list. */
static void numbers_remove(struct numbers *n, u32 *at, u32 *list)
{
	const u32 i = *at;
	struct number *x = &n->number[i];

	*at = x->next;
	if (x->before != NUMBERS_NONE)
		n->number[x->before].after = x->after;
	else
		*list = x->after;
	if (x->after != NUMBERS_NONE)
		n->number[x->after].before = x->before;
	x->next = n->free;
	n->free = i;
}

int numbers_release(struct numbers *n, u32 qpn, u32 client, u32 *list)
{
	u32 *at = numbers_find(n, qpn);

	if (!at || n->number[*at].client != client)
		return -ENOENT;
	numbers_remove(n, at, list);
	return 0;
}

bool numbers_pop(struct numbers *n, u32 *list, u32 *qpn)
{
	if (*list == NUMBERS_NONE)
		return false;
	*qpn = n->number[*list].qpn;
	numbers_remove(n, numbers_find(n, *qpn), list);
	return true;
}
