/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Interfaces as the kernel has them, which is asked again only after it has told of a change. The
 * news of changes are read before what is kept is used, in the thread that uses it: nobody sees
 * what was true before its own call. Three things the kernel does not tell of at once, or never: a
 * carrier that comes or goes, the speed, the number of queues. Those are netdev_refresh()'s.
 */
#ifndef OS_LINK_CACHE_H
#define OS_LINK_CACHE_H

#include "netdev.h"

struct link_cache;

/*
 * For so many interfaces of the caller's network namespace. Returns 0 or -errno. A forked child
 * frees its parent's, and makes no other call on it.
 */
int link_cache_new(u32 room, struct link_cache **out);
void link_cache_free(struct link_cache *k); /* NULL: nothing */

/*
 * changes (may be NULL): grows with every change of any interface that the kernel tells of. Any
 * thread. Returns 0, -ENODEV or -errno. rx_queues and speed_mbps are 0.
 */
int link_cache_get(struct link_cache *k, u32 ifindex, struct netdev *out, u64 *changes);

/* By which it asks, for others. */
struct netdev_session *link_cache_session(struct link_cache *k);

#endif
