/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "../os/kernel.h"
#include "map.h"

#define PIECE 256u /* entries that are allocated together */

/* Before an entry's key and value. Indices are + 1; 0: none. */
struct entry {
	u32 next;	     /* of its bucket, or of the free entries */
	u32 older, newer;
	u32 is_used;
};

static u32 host_map_key_at(const struct host_map *m)
{
	return (m->value_size + 7) & ~7u;
}

static size_t host_map_stride(const struct host_map *m)
{
	return (sizeof(struct entry) + host_map_key_at(m) + m->key_size + 15) & ~(size_t)15;
}

static struct entry *host_map_at(const struct host_map *m, u32 index)
{
	const u32 i = index - 1;

	return (struct entry *)(m->piece[i / PIECE] + i % PIECE * host_map_stride(m));
}

/* The value first: it is aligned to 8. */
static u8 *host_map_value(struct entry *e)
{
	return (u8 *)(e + 1);
}

static u8 *host_map_key(const struct host_map *m, struct entry *e)
{
	return host_map_value(e) + host_map_key_at(m);
}

/* SipHash would be stronger; the seed is secret, and a peer does not see which keys collide. */
static u32 *host_map_bucket(const struct host_map *m, const void *key)
{
	const u8 *at = key;
	u64 h = m->seed, word;

	for (u32 left = m->key_size; left;) {
		const u32 n = left < sizeof(word) ? left : sizeof(word);

		word = 0;
		memcpy(&word, at, n);
		h = (h ^ word) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 29;
		at += n;
		left -= n;
	}
	/* once more: bits of the last word reach the upper half alone */
	return &m->bucket[h * 0x9e3779b97f4a7c15ull >> 32 & (m->buckets - 1)];
}

int host_map_make(struct host_map *m, u32 key_size, u32 value_size, u32 max, bool is_lru)
{
	const u32 pieces = (max + PIECE - 1) / PIECE;
	int err;

	*m = (struct host_map){ .key_size = key_size,
				.value_size = value_size,
				.max = max,
				.is_lru = is_lru,
				.buckets = 64 };
	while (m->buckets < max)
		m->buckets *= 2;
	err = kernel_random(&m->seed, sizeof(m->seed));
	if (err)
		return err;
	m->bucket = calloc(m->buckets, sizeof(*m->bucket));
	m->piece = calloc(pieces, sizeof(*m->piece));
	if (m->bucket && m->piece)
		return 0;
	host_map_free(m);
	return -ENOMEM;
}

void host_map_free(struct host_map *m)
{
	for (u32 i = 0; m->piece && i < m->room / PIECE; i++)
		free(m->piece[i]);
	free(m->piece);
	free(m->bucket);
	*m = (struct host_map){ 0 };
}

void *host_map_find(const struct host_map *m, const void *key)
{
	for (u32 at = *host_map_bucket(m, key); at;) {
		struct entry *e = host_map_at(m, at);

		if (!memcmp(host_map_key(m, e), key, m->key_size))
			return host_map_value(e);
		at = e->next;
	}
	return NULL;
}

/* Makes PIECE more free entries. Returns 0 or -ENOMEM. */
static int host_map_grow(struct host_map *m)
{
	u8 *piece = calloc(PIECE, host_map_stride(m));

	if (!piece)
		return -ENOMEM;
	m->piece[m->room / PIECE] = piece;
	for (u32 i = 0; i < PIECE; i++) {
		host_map_at(m, m->room + i + 1)->next = m->free;
		m->free = m->room + i + 1;
	}
	m->room += PIECE;
	return 0;
}

static void host_map_link(struct host_map *m, u32 at, struct entry *e)
{
	e->older = m->newest;
	e->newer = 0;
	if (m->newest)
		host_map_at(m, m->newest)->newer = at;
	else
		m->oldest = at;
	m->newest = at;
}

static void host_map_unlink(struct host_map *m, struct entry *e)
{
	if (e->older)
		host_map_at(m, e->older)->newer = e->newer;
	else
		m->oldest = e->newer;
	if (e->newer)
		host_map_at(m, e->newer)->older = e->older;
	else
		m->newest = e->older;
}

int host_map_put(struct host_map *m, const void *key, const void *value)
{
	void *there = host_map_find(m, key);
	struct entry *e;
	u32 *bucket, at;

	if (there) {
		memcpy(there, value, m->value_size);
		return 0;
	}
	if (m->num == m->max && !m->is_lru)
		return -E2BIG;
	if (m->num == m->max)
		host_map_remove(m, host_map_key(m, host_map_at(m, m->oldest)));
	if (!m->free && host_map_grow(m))
		return -ENOMEM;
	at = m->free;
	e = host_map_at(m, at);
	m->free = e->next;
	bucket = host_map_bucket(m, key);
	e->next = *bucket;
	e->is_used = 1;
	memcpy(host_map_key(m, e), key, m->key_size);
	memcpy(host_map_value(e), value, m->value_size);
	*bucket = at;
	host_map_link(m, at, e);
	m->num++;
	return 0;
}

int host_map_remove(struct host_map *m, const void *key)
{
	u32 *from = host_map_bucket(m, key);

	while (*from) {
		const u32 at = *from;
		struct entry *e = host_map_at(m, at);

		if (memcmp(host_map_key(m, e), key, m->key_size)) {
			from = &e->next;
			continue;
		}
		*from = e->next;
		host_map_unlink(m, e);
		e->is_used = 0;
		e->next = m->free;
		m->free = at;
		m->num--;
		return 0;
	}
	return -ENOENT;
}

void host_map_each(struct host_map *m, host_map_fn *fn, void *arg)
{
	for (u32 at = m->oldest, next; at; at = next) {
		struct entry *e = host_map_at(m, at);

		next = e->newer;
		fn(arg, host_map_key(m, e), host_map_value(e));
	}
}
