/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>

#include "names.h"

int names_make(struct cm_names_table *t, u32 names, u64 seed)
{
	t->buckets = roundup_pow2(names);
	t->seed = seed;
	t->bucket = calloc(t->buckets, sizeof(*t->bucket));
	return t->bucket ? 0 : -ENOMEM;
}

void names_unmake(struct cm_names_table *t)
{
	free(t->bucket);
	t->bucket = NULL;
}

static u64 mix(u64 h, u64 v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

static struct cm_name **names_bucket(const struct cm_names_table *t, const struct cm_name *n)
{
	u64 half[2];
	u64 h = t->seed;

	memcpy(half, n->gid.raw, sizeof(half));
	h = mix(h, half[0]);
	h = mix(h, half[1]);
	h = mix(h, (u64)n->interface << 32 | n->number);
	h = mix(h, t->seed ^ n->space);
	return &t->bucket[(h >> 16) & (t->buckets - 1)];
}

static bool name_equal(const struct cm_name *a, const struct cm_name *b)
{
	return a->number == b->number && a->space == b->space && a->interface == b->interface &&
	       gid_equal(&a->gid, &b->gid);
}

void names_add(struct cm_names_table *t, struct cm_name *n)
{
	struct cm_name **at = names_bucket(t, n);

	n->next = *at;
	*at = n;
}

void names_remove(struct cm_names_table *t, struct cm_name *n)
{
	struct cm_name **at;

	if (n->space == NAME_NONE)
		return;
	for (at = names_bucket(t, n); *at != n; at = &(*at)->next)
		;
	*at = n->next;
	n->space = NAME_NONE;
}

struct cm_name *names_find(const struct cm_names_table *t, const struct cm_name *key)
{
	struct cm_name *n = *names_bucket(t, key);

	while (n && !name_equal(n, key))
		n = n->next;
	return n;
}
