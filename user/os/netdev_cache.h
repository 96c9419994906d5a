/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A cache of interface state, read again only after the kernel reported a change. Each call reads
 * pending change messages first, in the calling thread, so its result is never older than the call.
 * The kernel does not report three things at once, or at all: a carrier change, the speed, the
 * number of queues. netdev_refresh() reads these.
 */
#ifndef OS_NETDEV_CACHE_H
#define OS_NETDEV_CACHE_H

#include "../engine/packet.h"
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

/*
 * A cache of resolved neighbours: programs create many address handles and connections with few
 * destinations. An entry is valid for a tenth of a second, or until the owner empties the cache
 * because an interface or a neighbour changed. The owner's lock guards the cache. An all-zero cache
 * is empty.
 */

/* A destination, without padding. The local address is a GID or a GID index. */
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
		u32 changes; /* the cache's changes before the query */
		u64 until_ns;
	} at[NEIGH_CACHE_PLACES];
};

/* Returns the cached path, valid until the lock is released, or NULL. */
const struct path *neigh_cache_find(const struct neigh_cache *c, const struct neigh_key *key);
/* Stores a path that was queried when c->changes was `changes`. */
void neigh_cache_add(struct neigh_cache *c, const struct neigh_key *key, u32 changes,
		     const struct path *path);

static inline void neigh_cache_forget(struct neigh_cache *c)
{
	c->changes++;
}

/*
 * Neighbours that did not answer. A peer can name many addresses that nobody has, and each would
 * hold the caller for the whole time-out. After a failure, such a neighbour is therefore not waited
 * for during NEIGH_REST_MS, and any other one only for NEIGH_SHORT_WAIT_MS. The kernel is asked all
 * the same, so a neighbour that answers later is found by the next attempt. The owner's lock guards
 * the table. An all-zero table is empty; a newer failure replaces an older one of the same place.
 */
#define NEIGH_REST_MS	    3000
#define NEIGH_SHORT_WAIT_MS 100
struct neigh_silent {
	u64 until_ns; /* until then the wait for any neighbour is short */
	struct neigh_silent_entry {
		struct neigh_key key;
		u64 until_ns; /* until then this neighbour is not waited for */
	} at[NEIGH_CACHE_PLACES];
};

/*
 * Returns how long to wait for a neighbour: timeout_ms or less, never less than 0 unless timeout_ms
 * is NETDEV_LOOK. now_ns: the time of the monotonic clock.
 */
int neigh_silent_wait_ms(const struct neigh_silent *s, const struct neigh_key *key, u64 now_ns,
			 int timeout_ms);
/*
 * Records that a neighbour has not answered. The neighbour's own rest is not prolonged by attempts
 * that did not wait.
 */
void neigh_silent_add(struct neigh_silent *s, const struct neigh_key *key, u64 now_ns);
/* Forgets a neighbour that has answered. */
void neigh_silent_remove(struct neigh_silent *s, const struct neigh_key *key);

#endif
