/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps of a port (observe.h), by name. Private to this room. */
#ifndef OBSERVE_MAPS_H
#define OBSERVE_MAPS_H

#include "observe.h"

#define OBSERVED_IDS 1024 /* maps of a program; further ones are ignored */
/* Gets the IDs of a program's maps. Returns their number or -errno. */
int observed_map_ids(u32 prog_id, u32 ids[OBSERVED_IDS]);
/*
 * Returns the port's next map of that name after before (NULL: the first), or NULL. A port may have
 * several maps of a name.
 */
const struct observed_map *observed_map(const struct observed *p, const char *name,
					const struct observed_map *before);
/* Closes one map, which the caller removes from the port's list. */
void observed_close_map(struct observed_map *m);

/*
 * Sums the elements of an array map over all entries and CPUs into sum[counters]; each value begins
 * with these counters. Returns 0, -ENOENT or -errno.
 */
int observed_sum(const struct observed *p, const char *name, u64 *sum, size_t counters);
/*
 * Calls fn for each element of the port's maps of that name, at most max_entries times a map.
 * Values are cut or zero-padded to size bytes, as programs of other versions have other sizes. key
 * has key_size bytes; for arrays it is a u32. Returns the number of elements or -errno.
 */
typedef void observed_fn(void *arg, const struct observed *p, const void *key, const void *value);
int observed_each(const struct observed *p, const char *name, size_t size, observed_fn *fn,
		  void *arg);
/* Reads the element key of an array. Returns 0, -ENOENT or -errno. */
int observed_get(const struct observed *p, const char *name, u32 key, void *value, size_t size);

#endif
