/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Neighbours that were there lately: programs connect often to few. That holds for as long as the
 * verbs keep what an address vector comes to (verbs/ah.c), and until there are news of neighbours,
 * which the caller reads before it asks. All under rdmacm_lock.
 */
#ifndef RDMACM_NEIGH_CACHE_H
#define RDMACM_NEIGH_CACHE_H

#include "../os/netdev.h"

/* Of the next hop to that address by that interface, from that address of ours: its MAC. */
bool neigh_cache_has(const struct netdev_route *route, const struct gid *to, u8 mac[6]);
void neigh_cache_add(const struct netdev_route *route, const struct gid *to, const u8 mac[6]);
void neigh_cache_forget(void); /* all */

#endif
