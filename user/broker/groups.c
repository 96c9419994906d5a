/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "groups.h"

#include <errno.h>
#include <stdlib.h>

struct groups_entry {
	struct groups_entry *next;
	struct gid address;
	struct xroce_members members;
};

/* Returns the link to a group in its bucket, or the end of the list. */
static struct groups_entry **groups_place(struct groups *all, const struct gid *address)
{
	struct groups_entry **p = &all->bucket[gid_hash_group(address) % GROUPS_BUCKETS];

	while (*p && !gid_equal(&(*p)->address, address))
		p = &(*p)->next;
	return p;
}

/* Returns a client's index among the clients with members, or m->num if it has none. */
static u32 groups_index(const struct xroce_members *m, u32 client)
{
	u32 i = 0;

	while (i < m->num && m->client[i] != client)
		i++;
	return i;
}

static struct groups_entry *groups_add(struct groups *all, struct groups_entry **place,
				       const struct gid *address)
{
	struct groups_entry *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->address = *address;
	all->num++;
	return *place = g;
}

int groups_enter(struct groups *all, const struct gid *address, u32 client)
{
	struct groups_entry **place = groups_place(all, address), *g = *place;

	if (!g && all->num == XROCE_MAX_MEMBERS)
		return -ENOSPC;
	if (!g)
		g = groups_add(all, place, address);
	if (!g)
		return -ENOMEM;
	if (groups_index(&g->members, client) < g->members.num)
		return -EEXIST;
	if (g->members.num == XROCE_GROUP_CLIENTS)
		return -ENOSPC;
	g->members.client[g->members.num++] = (u16)client;
	return 0;
}

int groups_leave(struct groups *all, const struct gid *address, u32 client)
{
	struct groups_entry **place = groups_place(all, address), *g = *place;
	const u32 i = g ? groups_index(&g->members, client) : 0;

	if (!g || i == g->members.num)
		return -ENOENT;
	g->members.client[i] = g->members.client[--g->members.num];
	if (g->members.num)
		return 0;
	*place = g->next;
	all->num--;
	free(g);
	return 0;
}

bool groups_next(const struct groups *all, u32 client, struct gid *address)
{
	for (u32 b = 0; b < GROUPS_BUCKETS; b++)
		for (const struct groups_entry *g = all->bucket[b]; g; g = g->next)
			if (groups_index(&g->members, client) < g->members.num) {
				*address = g->address;
				return true;
			}
	return false;
}

bool groups_members(const struct groups *all, const struct gid *address, u32 last,
		    struct xroce_members *out)
{
	const struct groups_entry *g = *groups_place((struct groups *)all, address);
	u32 i, end;

	if (!g)
		return false;
	*out = g->members;
	i = groups_index(out, last);
	end = out->num - 1;
	if (i < end) {
		out->client[i] = out->client[end];
		out->client[end] = (u16)last;
	}
	return true;
}

void groups_free(struct groups *all)
{
	for (u32 b = 0; b < GROUPS_BUCKETS; b++)
		while (all->bucket[b]) {
			struct groups_entry *g = all->bucket[b];

			all->bucket[b] = g->next;
			free(g);
		}
	all->num = 0;
}
