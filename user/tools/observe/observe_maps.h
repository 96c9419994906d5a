/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading one map of a port (observe.h), by name. Private to this room. */
#ifndef OBSERVE_MAPS_H
#define OBSERVE_MAPS_H

#include "observe.h"

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
