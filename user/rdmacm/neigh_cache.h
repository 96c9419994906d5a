/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Recently resolved neighbours: programs connect often to few peers. Entries last as long as the
 * verbs' cache of address vectors (verbs/ah.c), or until a neighbour changes. The caller reads the
 * kernel's messages before each lookup. All under rdmacm_lock.
 */
#ifndef RDMACM_NEIGH_CACHE_H
#define RDMACM_NEIGH_CACHE_H

#include "../os/netdev.h"

/* Look up and add the MAC of the next hop to `to`, by the route's interface and local address. */
bool neigh_cache_has(const struct netdev_route *route, const struct gid *to, u8 mac[6]);
void neigh_cache_add(const struct netdev_route *route, const struct gid *to, const u8 mac[6]);
void neigh_cache_forget(void); /* clears all entries */

#endif
