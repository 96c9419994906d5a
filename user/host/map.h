/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A hash map like BPF's, in private memory. One thread uses it. A value keeps its address until its
 * entry is removed.
 */
#ifndef HOST_MAP_H
#define HOST_MAP_H

#include "../engine/types.h"

struct host_map {
	u32 key_size, value_size, max;
	bool is_lru; /* if it is full, the entry that was added first makes room */
	u64 seed;    /* peers choose keys */
	u32 num, buckets;
	u32 *bucket;  /* index of the first entry + 1; 0: none */
	u32 free;     /* the first free entry + 1 */
	u32 oldest, newest; /* entries + 1, in the order in which they were added */
	u32 room;     /* allocated entries, in pieces that never move */
	u8 **piece;
};

/* Returns 0 or -ENOMEM. Entries take memory as they are added. */
int host_map_make(struct host_map *m, u32 key_size, u32 value_size, u32 max, bool is_lru);
void host_map_free(struct host_map *m);

/* Returns the value, or NULL. */
void *host_map_find(const struct host_map *m, const void *key);
/* Adds or replaces an entry. Returns 0, -E2BIG if the map is full, or -ENOMEM. */
int host_map_put(struct host_map *m, const void *key, const void *value);
/* Returns 0 or -ENOENT. */
int host_map_remove(struct host_map *m, const void *key);
/* Calls fn for each entry, which it may remove. */
typedef void host_map_fn(void *arg, const void *key, const void *value);
void host_map_each(struct host_map *m, host_map_fn *fn, void *arg);

#endif
