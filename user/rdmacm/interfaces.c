/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's interfaces (os/link_cache.c). The CM thread has its own netlink socket for changes,
 * so that it misses none while it sleeps.
 */
#include "interfaces.h"

#include "../os/link_cache.h"
#include "../os/link_events.h"
#include "cm_device.h"

#define INTERFACES_KEPT 16

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Under the lock of this file. kept remains valid until a forked child creates its own. */
static struct {
	struct link_cache *kept;
	u32 generation;
	struct {
		u32 ifindex; /* 0: none */
		enum ibv_mtu mtu;
		u64 changes;
	} mtu[INTERFACES_KEPT];
	u32 next;
} cache;

/* Under rdmacm_lock. */
static struct {
	struct link_events news;
	struct source input;
	u32 generation;
} followed = { .news = { .fd = -1 } };

/* ---- cache ---- */

/* Returns 0 or -errno. */
static int interfaces_kept(struct link_cache **out)
{
	int err = 0;

	cancel_hold();
	pthread_mutex_lock(&lock);
	if (cache.kept && cache.generation != rdmacm_generation) {
		link_cache_free(cache.kept);
		cache.kept = NULL;
		memset(cache.mtu, 0, sizeof(cache.mtu));
	}
	if (!cache.kept)
		err = link_cache_new(INTERFACES_KEPT, &cache.kept);
	if (err)
		cache.kept = NULL;
	cache.generation = rdmacm_generation;
	*out = cache.kept;
	pthread_mutex_unlock(&lock);
	cancel_release();
	return err;
}

int interfaces_session(struct netdev_session **out)
{
	struct link_cache *kept;
	int err = interfaces_kept(&kept);

	if (!err)
		*out = link_cache_session(kept);
	return err;
}

int interfaces_get(u32 ifindex, struct netdev *out)
{
	struct link_cache *kept;
	int err = interfaces_kept(&kept);

	return err ? err : link_cache_get(kept, ifindex, out, NULL);
}

/* Returns 0 if not known. */
static enum ibv_mtu interfaces_find_mtu(u32 ifindex, u64 changes)
{
	enum ibv_mtu mtu = 0;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < INTERFACES_KEPT; i++)
		if (cache.mtu[i].ifindex == ifindex && cache.mtu[i].changes == changes)
			mtu = cache.mtu[i].mtu;
	pthread_mutex_unlock(&lock);
	return mtu;
}

static void interfaces_keep_mtu(u32 ifindex, u64 changes, enum ibv_mtu mtu)
{
	pthread_mutex_lock(&lock);
	cache.next = (cache.next + 1) % INTERFACES_KEPT;
	cache.mtu[cache.next].ifindex = ifindex;
	cache.mtu[cache.next].changes = changes;
	cache.mtu[cache.next].mtu = mtu;
	pthread_mutex_unlock(&lock);
}

int interfaces_mtu(u32 ifindex, struct ibv_context *verbs, enum ibv_mtu *mtu)
{
	struct ibv_port_attr port;
	struct netdev nd;
	struct link_cache *kept;
	u64 changes;
	int err = interfaces_kept(&kept);

	if (!err)
		err = link_cache_get(kept, ifindex, &nd, &changes);
	if (err)
		return err;
	*mtu = interfaces_find_mtu(ifindex, changes);
	if (*mtu)
		return 0;
	err = -ibv_query_port(verbs, RDMACM_PORT, &port);
	if (err)
		return err;
	*mtu = port.active_mtu;
	interfaces_keep_mtu(ifindex, changes, *mtu);
	return 0;
}

int interfaces_gid_index(const struct netdev *dev, const struct gid *gid)
{
	for (u32 i = 0; i < dev->num_gids; i++)
		if (gid_equal(&dev->gid[i].gid, gid))
			return (int)i;
	return -EADDRNOTAVAIL;
}

void interfaces_before_fork(void)
{
	pthread_mutex_lock(&lock);
}

void interfaces_after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

/* ---- changes ---- */

static void interfaces_news(void *arg, enum link_events_kind kind, u32 ifindex,
			    const struct nlmsghdr *nlh)
{
	(void)kind, (void)ifindex, (void)nlh;
	*(bool *)arg = true;
}

static void interfaces_readable(struct source *s, u32 events)
{
	bool any = false;

	link_events_take(&followed.news, interfaces_news, &any);
	if (any)
		interfaces_changed();
}

int interfaces_follow(void)
{
	int err = loop_start();

	if (err)
		return err;
	rdmacm_enter();
	if (followed.news.fd >= 0 && followed.generation != rdmacm_generation)
		link_events_close(&followed.news);
	if (followed.news.fd < 0) {
		err = link_events_open(&followed.news);
		followed.input.ready = interfaces_readable;
		followed.input.fd = followed.news.fd;
		followed.generation = rdmacm_generation;
		if (!err)
			err = loop_add(&cm_loop, &followed.input);
		if (err)
			link_events_close(&followed.news);
	}
	rdmacm_leave();
	return err;
}
