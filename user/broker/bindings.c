/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>

#include "bindings.h"

#define PORT_SPACE_IPOIB 2 /* the other port spaces of IP are 0x01xx: cm_service_is_ip() */

static const u8 all_ipv4[16] = { [10] = 0xff, 0xff }, all_ipv6[16];

int bindings_make(struct bindings *b, u32 capacity, u64 seed)
{
	*b = (struct bindings){ .capacity = capacity,
				.buckets = roundup_pow2(capacity),
				.seed = seed | 1 };
	b->bucket = malloc(b->buckets * sizeof(*b->bucket));
	b->binding = malloc(capacity * sizeof(*b->binding));
	if (!b->bucket || !b->binding) {
		bindings_unmake(b);
		return -ENOMEM;
	}
	memset(b->bucket, 0xff, b->buckets * sizeof(*b->bucket));
	for (u32 i = 0; i < capacity; i++)
		b->binding[i].next = i + 1 < capacity ? i + 1 : BINDINGS_NONE;
	b->free = capacity ? 0 : BINDINGS_NONE;
	return 0;
}

void bindings_unmake(struct bindings *b)
{
	free(b->bucket);
	free(b->binding);
	*b = (struct bindings){ .free = BINDINGS_NONE };
}

/* ---- one service ---- */

bool binding_is_privileged(const struct ask_service *s, u32 first_port)
{
	const bool is_ip = s->id >> 24 == 1 || s->id >> 16 == PORT_SPACE_IPOIB;

	return is_ip && (s->id & 0xffff) < first_port;
}

static bool binding_is_any(const struct ask_service *s)
{
	return !memcmp(s->address, all_ipv6, sizeof(all_ipv6));
}

static bool binding_is_ipv4(const struct ask_service *s)
{
	return !memcmp(s->address, all_ipv4, 12);
}

/* Returns whether families fit the address. ::ffff:0.0.0.0 (all_ipv4) is no address. */
static bool binding_is_sound(const struct ask_service *s)
{
	if (binding_is_any(s))
		return s->families && !(s->families & ~(u32)(ASK_IPV4 | ASK_IPV6));
	return memcmp(s->address, all_ipv4, sizeof(all_ipv4)) &&
	       s->families == (binding_is_ipv4(s) ? ASK_IPV4 : ASK_IPV6);
}

static bool binding_is_same(const struct ask_service *a, const struct ask_service *b)
{
	return a->id == b->id && a->families == b->families &&
	       !memcmp(a->address, b->address, sizeof(a->address));
}

static bool binding_overlaps(const struct ask_service *a, const struct ask_service *b)
{
	return a->id == b->id && a->families & b->families &&
	       (binding_is_any(a) || binding_is_any(b) ||
		!memcmp(a->address, b->address, sizeof(a->address)));
}

static void binding_key(const struct ask_service *s, u32 family, struct xroce_service_key *key)
{
	const u8 *all = family == ASK_IPV4 ? all_ipv4 : all_ipv6;

	key->id = s->id;
	memcpy(key->address, binding_is_any(s) ? all : s->address, sizeof(key->address));
}

/* ---- all bindings ---- */

static u32 *bindings_bucket(const struct bindings *b, u64 id)
{
	/* the product's high bits are the mixed ones */
	return &b->bucket[(u32)((id * b->seed >> 32) * b->buckets >> 32)];
}

/* Returns the families of s for which the client has no key from another binding. */
static u32 bindings_new(const struct bindings *b, const struct ask_service *s, u32 client)
{
	u32 families = s->families;

	for (u32 i = *bindings_bucket(b, s->id); i != BINDINGS_NONE; i = b->binding[i].next) {
		const struct ask_service *has = &b->binding[i].service;

		if (b->binding[i].client == client && has->id == s->id &&
		    !memcmp(has->address, s->address, sizeof(s->address)))
			families &= ~has->families;
	}
	return families;
}

static void bindings_keys(const struct ask_service *s, u32 families, struct binding_keys *keys)
{
	keys->num = 0;
	for (u32 family = ASK_IPV4; family <= ASK_IPV6; family <<= 1)
		if (families & family)
			binding_key(s, family, &keys->key[keys->num++]);
}

static int bindings_check(const struct bindings *b, const struct ask_service *s, u32 client)
{
	bool has = false;

	for (u32 i = *bindings_bucket(b, s->id); i != BINDINGS_NONE; i = b->binding[i].next) {
		const struct binding *other = &b->binding[i];

		if (other->client != client && binding_overlaps(&other->service, s))
			return -EADDRINUSE;
		has |= other->client == client && binding_is_same(&other->service, s);
	}
	return has ? -EEXIST : 0;
}

int bindings_add(struct bindings *b, const struct ask_service *s, u32 client, u32 *list,
		 struct binding_keys *keys)
{
	u32 *at = bindings_bucket(b, s->id), i = b->free;
	int err = binding_is_sound(s) ? bindings_check(b, s, client) : -EINVAL;

	if (err)
		return err;
	if (i == BINDINGS_NONE)
		return -ENOSPC;
	bindings_keys(s, bindings_new(b, s, client), keys);
	b->free = b->binding[i].next;
	b->binding[i] = (struct binding){ .service = *s,
					  .client = client,
					  .next = *at,
					  .before = BINDINGS_NONE,
					  .after = *list };
	*at = i;
	if (*list != BINDINGS_NONE)
		b->binding[*list].before = i;
	*list = i;
	return 0;
}

/* Takes the binding with index *at out of its bucket and the client's list. */
static void bindings_take(struct bindings *b, u32 *at, u32 *list, struct binding_keys *keys)
{
	const u32 i = *at;
	struct binding *x = &b->binding[i];

	*at = x->next;
	if (x->before != BINDINGS_NONE)
		b->binding[x->before].after = x->after;
	else
		*list = x->after;
	if (x->after != BINDINGS_NONE)
		b->binding[x->after].before = x->before;
	x->next = b->free;
	b->free = i;
	bindings_keys(&x->service, bindings_new(b, &x->service, x->client), keys);
}

/* Returns where its index is stored (bucket or previous binding), or NULL: not this client's. */
static u32 *bindings_find(const struct bindings *b, const struct ask_service *s, u32 client)
{
	for (u32 *at = bindings_bucket(b, s->id); *at != BINDINGS_NONE;
	     at = &b->binding[*at].next)
		if (b->binding[*at].client == client &&
		    binding_is_same(&b->binding[*at].service, s))
			return at;
	return NULL;
}

int bindings_remove(struct bindings *b, const struct ask_service *s, u32 client, u32 *list,
		    struct binding_keys *keys)
{
	u32 *at = bindings_find(b, s, client);

	if (!at)
		return -ENOENT;
	bindings_take(b, at, list, keys);
	return 0;
}

bool bindings_pop(struct bindings *b, u32 *list, struct binding_keys *keys)
{
	const struct binding *x;

	if (*list == BINDINGS_NONE)
		return false;
	x = &b->binding[*list];
	bindings_take(b, bindings_find(b, &x->service, x->client), list, keys);
	return true;
}
