/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Neighbours that answered lately: programs make many handles and connections with few
 * destinations. An entry holds for a tenth of a second, and until the owner forgets all entries
 * because an interface or a neighbour has changed. The owner's lock guards a cache; all zeros is
 * an empty one.
 */
#ifndef OS_NEIGH_CACHE_H
#define OS_NEIGH_CACHE_H

#include "../engine/packet.h"

/* Destination, without padding. The caller names its own address by GID or by GID index. */
struct neigh_key {
	u32 ifindex;	/* 0: a cache for one interface */
	u32 local_index;
	struct gid local;
	struct gid peer;
};

#define NEIGH_CACHE_PLACES 64
struct neigh_cache {
	u32 changes; /* calls of neigh_cache_forget() */
	struct neigh_cached {
		struct neigh_key key;
		struct path path;
		u32 changes; /* of the cache before the kernel was asked */
		u64 until_ns;
	} at[NEIGH_CACHE_PLACES];
};

/* The path to the destination, which is valid until the lock is released, or NULL. */
const struct path *neigh_cache_find(const struct neigh_cache *c, const struct neigh_key *key);
/* Keeps the kernel's answer, which was asked for when c->changes was `changes`. */
void neigh_cache_add(struct neigh_cache *c, const struct neigh_key *key, u32 changes,
		     const struct path *path);

static inline void neigh_cache_forget(struct neigh_cache *c)
{
	c->changes++;
}

#endif
