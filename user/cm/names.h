/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lookup of connections and peers: one hash table of numbers, each in a name space. Its seed is
 * secret, so that an attacker cannot choose names that share a bucket.
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
	struct gid gid; /* of the peer; 0 for NAME_ID */
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
/* Does nothing if n is not in the table. */
void names_remove(struct cm_names_table *t, struct cm_name *n);
/* Returns the name equal to key, or NULL. */
struct cm_name *names_find(const struct cm_names_table *t, const struct cm_name *key);

#endif
