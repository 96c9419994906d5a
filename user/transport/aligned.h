/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory in whole lines of cache, so that objects of different threads share none. Control path
 * only. free() takes it back; of rings, what was lent is never freed here.
 */
#ifndef TRANSPORT_ALIGNED_H
#define TRANSPORT_ALIGNED_H

#include <stdlib.h>
#include <string.h>

#include "types.h"

/* bytes at least, not touched, so that what is never used takes no memory; NULL: there is none. */
static inline void *aligned_new(size_t bytes)
{
	return aligned_alloc(CACHE_LINE, (bytes + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1));
}

/* The memory of a ring: what its user lends, or new. */
static inline void *aligned_or_lent(void *lent, size_t bytes)
{
	return lent ? lent : aligned_new(bytes);
}

/* The same as aligned_new(), all of it 0. */
static inline void *aligned_zero(size_t bytes)
{
	void *p = aligned_new(bytes);

	return p ? memset(p, 0, bytes) : NULL;
}

#endif
