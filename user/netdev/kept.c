/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <pthread.h>
#include <stdlib.h>

#include "kept.h"
#include "news.h"

struct kept {
	struct netdev_session *session;
	pthread_mutex_t lock;
	struct news news;
	u64 changes; /* of which the kernel has told */
	u32 room, next;
	struct netdev at[]; /* ifindex 0: none */
};

int kept_new(u32 room, struct kept **out)
{
	struct kept *k = calloc(1, sizeof(*k) + room * sizeof(k->at[0]));
	int err;

	if (!k)
		return -ENOMEM;
	pthread_mutex_init(&k->lock, NULL);
	k->room = room;
	err = news_open(&k->news);
	if (!err)
		err = netdev_session_open(&k->session);
	if (err)
		kept_free(k);
	else
		*out = k;
	return err;
}

void kept_free(struct kept *k)
{
	if (!k)
		return;
	news_close(&k->news);
	netdev_session_close(k->session);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

struct netdev_session *kept_session(struct kept *k)
{
	return k->session;
}

/* ifindex 0: all of them. */
static void kept_drop(struct kept *k, u32 ifindex)
{
	for (u32 i = 0; i < k->room; i++)
		if (!ifindex || k->at[i].ifindex == ifindex)
			k->at[i].ifindex = 0;
}

static void kept_take_news(void *arg, enum news_kind kind, u32 ifindex, const struct nlmsghdr *nlh)
{
	struct kept *k = arg;

	(void)nlh;
	k->changes++;
	kept_drop(k, kind == NEWS_LOST ? 0 : ifindex);
}

static void kept_hear(struct kept *k)
{
	news_take(&k->news, kept_take_news, k);
}

static const struct netdev *kept_find(const struct kept *k, u32 ifindex)
{
	for (u32 i = 0; i < k->room; i++)
		if (k->at[i].ifindex == ifindex)
			return &k->at[i];
	return NULL;
}

/* What was read is true still if nothing has changed since then. */
static void kept_put(struct kept *k, const struct netdev *dev, u64 changes)
{
	kept_hear(k);
	if (k->changes != changes)
		return;
	kept_drop(k, dev->ifindex);
	k->next = (k->next + 1) % k->room;
	k->at[k->next] = *dev;
}

static int kept_get_locked(struct kept *k, u32 ifindex, struct netdev *out, u64 *changes)
{
	const struct netdev *found;
	int err;

	kept_hear(k);
	*changes = k->changes;
	found = kept_find(k, ifindex);
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
		kept_put(k, out, *changes);
	return err;
}

int kept_get(struct kept *k, u32 ifindex, struct netdev *out, u64 *changes)
{
	u64 unused;
	int err, cancel;

	if (!ifindex)
		return -ENODEV;
	/* reading is a cancellation point */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&k->lock);
	err = kept_get_locked(k, ifindex, out, changes ? changes : &unused);
	pthread_mutex_unlock(&k->lock);
	pthread_setcancelstate(cancel, NULL);
	return err;
}
