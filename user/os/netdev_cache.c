/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "netdev_cache.h"
#include "netdev_nl.h"
#include "thread.h"

struct link_cache {
	struct netdev_session *session;
	pthread_mutex_t lock;
	struct link_events events;
	u64 changes; /* changes reported by the kernel */
	u32 room, next;
	struct netdev at[]; /* ifindex 0: none */
};

int link_cache_new(u32 room, struct link_cache **out)
{
	struct link_cache *k = calloc(1, sizeof(*k) + room * sizeof(k->at[0]));
	int err;

	if (!k)
		return -ENOMEM;
	pthread_mutex_init(&k->lock, NULL);
	k->room = room;
	err = link_events_open(&k->events);
	if (!err)
		err = netdev_session_open(&k->session);
	if (err)
		link_cache_free(k);
	else
		*out = k;
	return err;
}

void link_cache_free(struct link_cache *k)
{
	if (!k)
		return;
	link_events_close(&k->events);
	netdev_session_close(k->session);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

struct netdev_session *link_cache_session(struct link_cache *k)
{
	return k->session;
}

/* ifindex 0: drops all. */
static void link_cache_drop(struct link_cache *k, u32 ifindex)
{
	for (u32 i = 0; i < k->room; i++)
		if (!ifindex || k->at[i].ifindex == ifindex)
			k->at[i].ifindex = 0;
}

static void link_cache_event(void *arg, enum link_events_kind kind, u32 ifindex,
			     const struct nlmsghdr *nlh)
{
	struct link_cache *k = arg;

	(void)nlh;
	k->changes++;
	link_cache_drop(k, kind == LINK_EVENTS_LOST ? 0 : ifindex);
}

static void link_cache_hear(struct link_cache *k)
{
	link_events_take(&k->events, link_cache_event, k);
}

static const struct netdev *link_cache_find(const struct link_cache *k, u32 ifindex)
{
	for (u32 i = 0; i < k->room; i++)
		if (k->at[i].ifindex == ifindex)
			return &k->at[i];
	return NULL;
}

/* Stores an interface's state, unless a change was reported since it was read. */
static void link_cache_put(struct link_cache *k, const struct netdev *dev, u64 changes)
{
	link_cache_hear(k);
	if (k->changes != changes)
		return;
	link_cache_drop(k, dev->ifindex);
	k->next = (k->next + 1) % k->room;
	k->at[k->next] = *dev;
}

static int link_cache_get_locked(struct link_cache *k, u32 ifindex, struct netdev *out,
				 u64 *changes)
{
	const struct netdev *found;
	int err;

	link_cache_hear(k);
	*changes = k->changes;
	found = link_cache_find(k, ifindex);
	if (found) {
		*out = *found;
		return 0;
	}
	pthread_mutex_unlock(&k->lock);
	memset(out, 0, sizeof(*out));
	out->ifindex = ifindex;
	err = netdev_refresh_addresses(k->session, out);
	pthread_mutex_lock(&k->lock);
	if (!err)
		link_cache_put(k, out, *changes);
	return err;
}

int link_cache_get(struct link_cache *k, u32 ifindex, struct netdev *out, u64 *changes)
{
	u64 unused;
	int err, cancel;

	if (!ifindex)
		return -ENODEV;
	/* reading is a cancellation point */
	cancel = thread_disable_cancel();
	pthread_mutex_lock(&k->lock);
	err = link_cache_get_locked(k, ifindex, out, changes ? changes : &unused);
	pthread_mutex_unlock(&k->lock);
	thread_restore_cancel(cancel);
	return err;
}

/* ---- neighbours ---- */

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

/* ---- neighbours that did not answer ---- */

static bool neigh_silent_has(const struct neigh_silent_entry *entry, const struct neigh_key *key,
			     u64 now_ns)
{
	return now_ns < entry->until_ns && !memcmp(&entry->key, key, sizeof(*key));
}

int neigh_silent_wait_ms(const struct neigh_silent *s, const struct neigh_key *key, u64 now_ns,
			 int timeout_ms)
{
	int most_ms = timeout_ms;

	if (neigh_silent_has(&s->at[neigh_cache_place(key)], key, now_ns))
		most_ms = 0;
	else if (now_ns < s->until_ns)
		most_ms = NEIGH_SHORT_WAIT_MS;
	return timeout_ms < most_ms ? timeout_ms : most_ms;
}

void neigh_silent_add(struct neigh_silent *s, const struct neigh_key *key, u64 now_ns)
{
	struct neigh_silent_entry *entry = &s->at[neigh_cache_place(key)];

	s->until_ns = now_ns + NEIGH_REST_MS * NSEC_PER_MSEC;
	if (!neigh_silent_has(entry, key, now_ns))
		*entry = (struct neigh_silent_entry){ .key = *key, .until_ns = s->until_ns };
}

void neigh_silent_remove(struct neigh_silent *s, const struct neigh_key *key)
{
	struct neigh_silent_entry *entry = &s->at[neigh_cache_place(key)];

	if (!memcmp(&entry->key, key, sizeof(*key)))
		entry->until_ns = 0;
}
