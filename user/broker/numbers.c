/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>
#include <xroce/abi.h>

#include "../engine/owner.h"
#include "numbers.h"

#define QPN_MASK  0xffffffu
#define QPN_LIMIT QPN_MASK /* 0xffffff is for multicast */
#define QPN_SMI	  0u
#define QPN_GSI	  1u /* each client has its own */

#define NUMBERS_SLOTS XROCE_MAX_QP /* as in a client's table */

int numbers_make(struct numbers *n, u32 capacity, u32 seed)
{
	*n = (struct numbers){ .capacity = capacity,
			       .buckets = roundup_pow2(capacity),
			       .seed = seed | 1 };
	n->bucket = malloc(n->buckets * sizeof(*n->bucket));
	n->number = malloc(capacity * sizeof(*n->number));
	n->last = calloc(NUMBERS_SLOTS, sizeof(*n->last));
	if (!n->bucket || !n->number || !n->last) {
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
	free(n->last);
	*n = (struct numbers){ .free = NUMBERS_NONE };
}

int numbers_check(u32 qpn)
{
	return qpn == QPN_SMI || qpn == QPN_GSI || qpn >= QPN_LIMIT ? -EINVAL : 0;
}

static u32 *numbers_bucket(const struct numbers *n, u32 qpn)
{
	/* the product's high bits are the mixed ones */
	return &n->bucket[(u32)((u64)(qpn * n->seed) * n->buckets >> 32)];
}

/* Returns where its index is stored (bucket or previous number), or NULL: no client's. */
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

/* At most one in 256 numbers is taken (XROCE_MAX_OWNED), so a second draw is rare. */
int numbers_draw(struct numbers *n, u32 (*random)(void *arg), void *arg, u32 client, u32 *list,
		 u32 *qpn)
{
	u32 drawn, slot;
	int err;

	do {
		drawn = random(arg) & QPN_MASK;
		slot = drawn % NUMBERS_SLOTS;
		*qpn = number_of_slot(n->last[slot], NUMBERS_SLOTS, slot, drawn);
		err = numbers_check(*qpn) ? -EEXIST : numbers_claim(n, *qpn, client, list);
	} while (err == -EEXIST || err == -EALREADY);
	if (!err)
		n->last[slot] = (u16)(*qpn / NUMBERS_SLOTS + 1);
	return err;
}

/* Takes the number with index *at out of its bucket and the client's list. */
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
