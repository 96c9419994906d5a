/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A cache of interface state, read again only after the kernel reported a change. Each call reads
 * pending change messages first, in the calling thread, so its result is never older than the call.
 * The kernel does not report three things at once, or at all: a carrier change, the speed, the
 * number of queues. netdev_refresh() reads these.
 */
#ifndef OS_LINK_CACHE_H
#define OS_LINK_CACHE_H

#include "netdev.h"

struct link_cache;

/*
 * Makes a cache for `room` interfaces of the caller's network namespace. Returns 0 or -errno. A
 * forked child may only free its parent's.
 */
int link_cache_new(u32 room, struct link_cache **out);
void link_cache_free(struct link_cache *k); /* NULL: nothing */

/*
 * Reads an interface. *changes (may be NULL) is the number of reported changes of all interfaces.
 * rx_queues and speed_mbps are 0. Any thread. Returns 0, -ENODEV or -errno.
 */
int link_cache_get(struct link_cache *k, u32 ifindex, struct netdev *out, u64 *changes);

/* Returns the session that the cache asks by, for other requests. */
struct netdev_session *link_cache_session(struct link_cache *k);

#endif
