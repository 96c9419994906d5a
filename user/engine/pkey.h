/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The P_Key table of a port: the partitions that its QPs may join, by the index that
 * ibv_modify_qp(3) takes. The default P_Key is always the first entry.
 */
#ifndef ENGINE_PKEY_H
#define ENGINE_PKEY_H

#include <xroce/abi.h>

#include "types.h"

/* Fixed-width and without holes: a broker sends it to its clients (os/ask.h). */
struct pkey_table {
	u32 num;
	u16 key[XROCE_MAX_PKEY]; /* 0 from num on */
};
_Static_assert(sizeof(struct pkey_table) == sizeof(u32) + XROCE_MAX_PKEY * sizeof(u16), "no holes");

#define PKEY_TABLE_DEFAULT \
	(struct pkey_table){ .num = 1, .key = { ROCE_DEFAULT_PKEY } }

/* Returns the index, or -1. Membership is part of a P_Key: 0x0001 is not 0x8001. */
static inline int pkey_table_find(const struct pkey_table *t, u16 pkey)
{
	for (u32 i = 0; i < t->num; i++)
		if (t->key[i] == pkey)
			return (int)i;
	return -1;
}

/*
 * Adds an entry. Returns 0, -EINVAL: 0x0000 and 0x8000 are not valid; -EEXIST: it is in the table;
 * -ENOSPC.
 */
static inline int pkey_table_add(struct pkey_table *t, u16 pkey)
{
	if (!(pkey & ROCE_PKEY_BASE))
		return -EINVAL;
	if (pkey_table_find(t, pkey) >= 0)
		return -EEXIST;
	if (t->num == XROCE_MAX_PKEY)
		return -ENOSPC;
	t->key[t->num++] = pkey;
	return 0;
}

/* Validates a table from another process. */
static inline bool pkey_table_valid(const struct pkey_table *t)
{
	struct pkey_table sum = PKEY_TABLE_DEFAULT;

	if (!t->num || t->num > XROCE_MAX_PKEY || t->key[0] != ROCE_DEFAULT_PKEY)
		return false;
	for (u32 i = 1; i < t->num; i++)
		if (pkey_table_add(&sum, t->key[i]))
			return false;
	for (u32 i = t->num; i < XROCE_MAX_PKEY; i++)
		if (t->key[i])
			return false;
	return true;
}

#endif
