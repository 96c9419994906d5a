/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What connections and peers are found by: one hash table of numbers, each in a space of its own.
 * Its seed is secret, so that nobody can choose names that share a bucket.
 */
#ifndef CM_NAMES_H
#define CM_NAMES_H

#include "../engine/types.h"

enum cm_name_space {
	NAME_NONE, /* not in the table */
	NAME_ID,
	NAME_REMOTE, /* a peer's communication id */
	NAME_SIDR,   /* a peer's SIDR request */
	NAME_QPN,    /* a peer's QP */
	NAME_PEER,
};

struct cm_name {
	struct gid gid; /* of the peer; 0 of NAME_ID */
	u32 interface;
	u32 number;
	enum cm_name_space space;
	struct cm_name *next;
};

struct cm_names_table {
	struct cm_name **bucket;
	u32 buckets; /* a power of two */
	u64 seed;
};

/* Returns 0 or -ENOMEM. */
int names_make(struct cm_names_table *t, u32 names, u64 seed);
void names_unmake(struct cm_names_table *t);

void names_add(struct cm_names_table *t, struct cm_name *n);
/* Nothing if it is not in the table. */
void names_remove(struct cm_names_table *t, struct cm_name *n);
/* The one that says the same as key, or NULL. */
struct cm_name *names_find(const struct cm_names_table *t, const struct cm_name *key);

#endif
