/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "held.h"

#include <stdlib.h>

#include "../os/kernel.h"

/* Between two looks: the first, and the longest, which is for maps that a process keeps. */
#define HELD_FIRST_NS (50 * NSEC_PER_MSEC)
#define HELD_LAST_NS  (2 * NSEC_PER_SEC)
#define HELD_STEP     32u

/* ---- the maps of a client ---- */

int held_reserve(struct held_ids *ids, u32 n)
{
	u32 *more;

	if (ids->room - ids->num >= n)
		return 0;
	more = reallocarray(ids->id, ids->room + n + HELD_STEP, sizeof(*ids->id));
	if (!more)
		return -ENOMEM;
	ids->id = more;
	ids->room += n + HELD_STEP;
	return 0;
}

void held_note(struct broker *b, const struct quota_user *user, struct held_ids *ids, int fd)
{
	u32 id;

	if (user->admin)
		return;
	id = b->options.udp ? file_ids_add(&b->file_ids, fd) : map_ids_of(fd);
	if (id)
		ids->id[ids->num++] = id;
}

void held_forget(struct held_ids *ids)
{
	free(ids->id);
	*ids = (struct held_ids){ 0 };
}

/* ---- memory of ended connections ---- */

static void held_give(struct broker *b, struct quota_user *user, u32 kib, u32 pieces)
{
	quota_give(&b->quota, user, QUOTA_MEMORY, kib);
	quota_give(&b->quota, user, QUOTA_TRACES, pieces);
}

void held_begin(struct broker *b, struct quota_user *user, struct held_ids *ids, u32 kib,
		u32 pieces)
{
	const u64 now_ns = clock_now_ns();
	struct held *h = !ids->num ? NULL : malloc(sizeof(*h));

	if (!h) {
		held_give(b, user, kib, pieces);
		held_forget(ids);
		return;
	}
	*h = (struct held){ .next = b->held, .user = user, .maps = *ids,
			    .kib = kib, .pieces = pieces };
	*ids = (struct held_ids){ 0 };
	b->held = h;
	user->held++;
	b->held_wait_ns = HELD_FIRST_NS;
	b->held_ns = min_u64(b->held_ns, now_ns + HELD_FIRST_NS);
}

/* Removes *at, and gives its memory back. */
static void held_release(struct broker *b, struct held **at)
{
	struct held *h = *at;

	*at = h->next;
	h->user->held--;
	held_give(b, h->user, h->kib, h->pieces);
	held_forget(&h->maps);
	free(h);
}

bool held_may_return(const struct broker *b, const struct quota_user *user, u32 kib)
{
	return user->held && quota_left(&b->quota, user, QUOTA_MEMORY) < kib;
}

void held_hurry(struct broker *b)
{
	b->held_wait_ns = HELD_FIRST_NS;
	b->held_ns = min_u64(b->held_ns, clock_now_ns());
}

struct quota_user *held_find_user(struct broker *b, u32 uid, bool admin)
{
	struct quota_user *user = quota_find(&b->quota, uid, admin);

	for (struct held **at = &b->held; !user && *at;) {
		if ((*at)->user->used[QUOTA_CONNECTIONS]) {
			at = &(*at)->next;
			continue;
		}
		held_release(b, at);
		user = quota_find(&b->quota, uid, admin);
	}
	return user;
}

/* ---- looking ---- */

u64 held_next_ns(const struct broker *b)
{
	return b->held ? b->held_ns : NSEC_NEVER;
}

static int held_read(struct broker *b)
{
	if (!b->options.udp)
		return map_ids_read(&b->map_ids);
	file_ids_read(&b->file_ids);
	return 0;
}

static bool held_exists(const struct broker *b, const struct held *h)
{
	for (u32 i = 0; i < h->maps.num; i++)
		if (b->options.udp ? file_ids_has(&b->file_ids, h->maps.id[i]) :
				     map_ids_has(&b->map_ids, h->maps.id[i]))
			return true;
	return false;
}

bool held_work(struct broker *b, u64 now_ns)
{
	int err;

	if (now_ns < held_next_ns(b))
		return false;
	err = held_read(b);
	/* short of descriptors or memory: later */
	for (struct held **at = &b->held; *at && !kernel_is_short(err);) {
		if (!err && held_exists(b, *at))
			at = &(*at)->next;
		else
			held_release(b, at);
	}
	b->held_ns = b->held ? now_ns + b->held_wait_ns : NSEC_NEVER;
	b->held_wait_ns = min_u64(2 * b->held_wait_ns, HELD_LAST_NS);
	return true;
}

void held_end(struct broker *b)
{
	while (b->held)
		held_release(b, &b->held);
	map_ids_free(&b->map_ids);
	file_ids_free(&b->file_ids);
}
