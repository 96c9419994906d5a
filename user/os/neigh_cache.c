/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <string.h>

#include "clock.h"
#include "neigh_cache.h"

#define NEIGH_CACHE_NS (NSEC_PER_SEC / 10)

/* Returns the only slot of a destination. */
static u32 neigh_cache_place(const struct neigh_key *key)
{
	return (key->peer.raw[15] ^ key->peer.raw[14] * 7u) % NEIGH_CACHE_PLACES;
}

const struct path *neigh_cache_find(const struct neigh_cache *c, const struct neigh_key *key)
{
	const struct neigh_cached *entry = &c->at[neigh_cache_place(key)];

	return entry->changes == c->changes && clock_now_ns() < entry->until_ns &&
			       !memcmp(&entry->key, key, sizeof(*key)) ?
		       &entry->path :
		       NULL;
}

void neigh_cache_add(struct neigh_cache *c, const struct neigh_key *key, u32 changes,
		     const struct path *path)
{
	c->at[neigh_cache_place(key)] =
		(struct neigh_cached){ .key = *key,
				       .path = *path,
				       .changes = changes,
				       .until_ns = clock_now_ns() + NEIGH_CACHE_NS };
}
