/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of memory regions by key, and the walk over scatter/gather lists. Here and in
 * responder/requester, memory is copied only through these functions, so that no byte moves before
 * its key has been checked for that range.
 */
#include <stdlib.h>

#include "guard.h"
#include "mr.h"

#define MR_TABLE_MIN 64

/* A slot whose region was removed: probing continues after it. */
static struct mr tombstone;

/* Returns the part of a key that identifies the object; keys are random, so no mixing is needed. */
static u32 mr_hash(u32 key)
{
	return key >> 8;
}

static int mr_table_grow(struct mr_table *t)
{
	u32 old_size = t->mask ? t->mask + 1 : 0;
	u32 size = old_size && t->live < old_size / 4 ? old_size :
		   old_size			      ? old_size * 2 :
							MR_TABLE_MIN;
	struct mr **slot = calloc(size, sizeof(*slot));

	if (!slot)
		return -ENOMEM;
	for (u32 i = 0; i < old_size; i++) {
		struct mr *mr = t->slot[i];
		u32 at;

		if (!mr || mr == &tombstone)
			continue;
		for (at = mr_hash(mr_key(mr)) & (size - 1); slot[at]; at = (at + 1) & (size - 1))
			;
		slot[at] = mr;
	}
	free(t->slot);
	t->slot = slot;
	t->mask = size - 1;
	t->used = t->live;
	return 0;
}

int mr_table_init(struct mr_table *t, u64 (*random)(void *arg), void *arg)
{
	*t = (struct mr_table){ .random = random, .random_arg = arg };
	return mr_table_grow(t);
}

void mr_table_destroy(struct mr_table *t)
{
	for (u32 i = 0; t->slot && i <= t->mask; i++)
		if (t->slot[i] != &tombstone)
			free(t->slot[i]);
	free(t->slot);
	*t = (struct mr_table){ 0 };
}

static struct mr *find_object(const struct mr_table *t, u32 key)
{
	for (u32 at = mr_hash(key) & t->mask; t->slot[at]; at = (at + 1) & t->mask)
		if (t->slot[at] != &tombstone && mr_hash(mr_key(t->slot[at])) == mr_hash(key))
			return t->slot[at];
	return NULL;
}

struct mr *mr_find_object(const struct mr_table *t, u32 key)
{
	return find_object(t, key);
}

struct mr *mr_find(const struct mr_table *t, u32 key)
{
	struct mr *mr = find_object(t, key);

	return mr && mr_key(mr) == key ? mr : NULL;
}

struct mr *mw_find(const struct mr_table *t, u32 key)
{
	struct mr *mw = find_object(t, key);

	return mw && mr_is_window(mw) ? mw : NULL;
}

void mr_table_show(struct mr_table *t, struct xroce_mr_stat *stat, u32 pid)
{
	t->stat = stat;
	t->pid = pid;
}

/* Returns a free record, or NULL if there is none. */
static struct xroce_mr_stat *mr_take_stat(struct mr_table *t)
{
	for (u32 i = 0; t->stat && i < XROCE_MR_STATS; i++) {
		const u32 at = t->next_stat++ % XROCE_MR_STATS;

		if (t->taken[at / 64] & 1ull << at % 64)
			continue;
		t->taken[at / 64] |= 1ull << at % 64;
		t->stat[at].pid = t->pid;
		return &t->stat[at];
	}
	return NULL;
}

static void mr_give_stat(struct mr_table *t, struct mr *mr)
{
	const u64 at = mr->stat ? (u64)(mr->stat - t->stat) : XROCE_MR_STATS;

	if (at >= XROCE_MR_STATS)
		return;
	*mr->stat = (struct xroce_mr_stat){ 0 };
	t->taken[at / 64] &= ~(1ull << at % 64);
}

_Static_assert((int)XROCE_MR_NULL == (int)MR_NULL && (int)XROCE_MR_WINDOW_2 == (int)MR_WINDOW_2,
	       "the same numbers");

/* Publishes a new or changed object. */
static void mr_show(const struct mr *mr)
{
	struct xroce_mr_stat *stat = mr->stat;

	if (!stat)
		return;
	stat->key = mr_key(mr);
	stat->addr = (uintptr_t)mr->addr;
	stat->length = mr->length;
	stat->iova = mr->iova;
	stat->access = mr->access;
	stat->pd = mr->pd;
	stat->kind = (enum xroce_mr_kind)mr->kind;
	stat->qpn = mr->qpn;
}

/* Draws a key for the object and adds it to the table. */
static int mr_insert(struct mr_table *t, const struct mr *init, struct mr **out)
{
	struct mr *mr;
	u32 key, at;

	/* at most half full, so that probing ends and stays short */
	if (t->used >= (t->mask + 1) / 2 && mr_table_grow(t))
		return -ENOMEM;
	mr = malloc(sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	do {
		key = (u32)t->random(t->random_arg);
	} while (mr_hash(key) == 0 || find_object(t, key));
	*mr = *init;
	atomic_store_explicit(&mr->key, key, memory_order_relaxed);
	for (at = mr_hash(key) & t->mask; t->slot[at] && t->slot[at] != &tombstone;
	     at = (at + 1) & t->mask)
		;
	t->used += !t->slot[at];
	t->live++;
	t->slot[at] = mr;
	mr->stat = mr_take_stat(t);
	mr_show(mr);
	*out = mr;
	return 0;
}

int mr_add(struct mr_table *t, u32 pd, void *addr, u64 length, u64 iova, u32 access,
	   struct mr **out)
{
	struct mr init = {
		.pd = pd,
		.access = access,
		.iova = access & MR_ZERO_BASED ? 0 : iova,
		.length = length,
		.addr = addr,
	};

	if (init.iova + length < init.iova || (u64)(uintptr_t)addr + length < (u64)(uintptr_t)addr)
		return -EINVAL;
	/* ibv_reg_mr(3): remote write and remote atomic need local write */
	if (access & (MR_REMOTE_WRITE | MR_REMOTE_ATOMIC) && !(access & MR_LOCAL_WRITE))
		return -EINVAL;
	return mr_insert(t, &init, out);
}

int mr_add_null(struct mr_table *t, u32 pd, struct mr **out)
{
	return mr_insert(t, &(struct mr){ .pd = pd, .kind = MR_NULL }, out);
}

static void mw_unbind(struct mr *mw)
{
	if (mw->region)
		atomic_fetch_sub_explicit(&mw->region->windows, 1, memory_order_relaxed);
	mw->region = NULL;
	mw->access = 0;
	mw->length = 0;
	mw->qpn = 0;
	mr_show(mw);
}

void mr_remove(struct mr_table *t, struct mr *mr)
{
	u32 at = mr_hash(mr_key(mr)) & t->mask;

	while (t->slot[at] != mr)
		at = (at + 1) & t->mask;
	t->slot[at] = &tombstone;
	t->live--;
	if (mr_is_window(mr))
		mw_unbind(mr);
	mr_give_stat(t, mr);
	free(mr);
}

void mr_replace(struct mr_table *t, struct mr *mr, struct mr *fresh)
{
	struct xroce_mr_stat *stat = mr->stat;
	const u32 key = mr_key(mr);

	*mr = *fresh;
	mr->stat = stat;
	atomic_store_explicit(&mr->key, key, memory_order_relaxed);
	mr_show(mr);
	mr_remove(t, fresh);
}

/* Unbinds the window, and binds it to length bytes of region; with length 0 it stays unbound. */
static void mw_set(struct mr *mw, struct mr *region, u32 new_key, u64 addr, u64 length, u32 access,
		   u32 qpn)
{
	mw_unbind(mw);
	atomic_store_explicit(&mw->key, (mr_key(mw) & ~MW_KEY_OWN) | (new_key & MW_KEY_OWN),
			      memory_order_relaxed);
	if (!length)
		return;
	atomic_fetch_add_explicit(&region->windows, 1, memory_order_relaxed);
	mw->region = region;
	mw->addr = (u8 *)((uintptr_t)region->addr + (uintptr_t)(addr - region->iova));
	mw->iova = access & MR_ZERO_BASED ? 0 : addr;
	mw->length = length;
	mw->access = access;
	mw->qpn = mw->kind == MR_WINDOW_2 ? qpn : 0;
	mr_show(mw);
}

int mw_add(struct mr_table *t, u32 pd, enum mr_kind kind, struct mr **out)
{
	return mr_insert(t, &(struct mr){ .pd = pd, .kind = kind }, out);
}

int mw_bind(struct mr_table *t, struct mr *mw, u32 new_key, u32 lkey, u64 addr, u64 length,
	    u32 access, u32 qpn)
{
	struct mr *region = length ? mr_find(t, lkey) : NULL;
	bool refused;

	if (!mr_is_window(mw) || access & ~(MR_REMOTE_ANY | MR_ZERO_BASED))
		return -EINVAL;
	if (mw->kind == MR_WINDOW_2 && !length)
		return -EINVAL;
	if (length) {
		/* mr_translate(): the key is a region's, not a window's, and of this PD */
		if (!mr_translate(t, mw->pd, lkey, addr, length, MR_MW_BIND))
			return -EINVAL;
		if (access & (MR_REMOTE_WRITE | MR_REMOTE_ATOMIC) &&
		    !(region->access & MR_LOCAL_WRITE))
			return -EINVAL;
	}
	spin_lock_if(t->shared, &mw->lock);
	refused = mw->kind == MR_WINDOW_2 && mw->region;
	if (!refused)
		mw_set(mw, region, new_key, addr, length, access, qpn);
	spin_unlock_if(t->shared, &mw->lock);
	return refused ? -EINVAL : 0;
}

/* Returns whether the key is a bound type 2 window of this PD and QP; optionally unbinds it. */
static bool check_bound(const struct mr_table *t, u32 pd, u32 rkey, u32 qpn, bool unbind)
{
	struct mr *mw = mw_find(t, rkey);
	bool ok;

	if (!mw || mw->kind != MR_WINDOW_2 || mw->pd != pd)
		return false;
	spin_lock_if(t->shared, &mw->lock);
	ok = mr_key(mw) == rkey && mw->region && mw->qpn == qpn;
	if (ok && unbind)
		mw_unbind(mw);
	spin_unlock_if(t->shared, &mw->lock);
	return ok;
}

bool mw_can_invalidate(const struct mr_table *t, u32 pd, u32 rkey, u32 qpn)
{
	return check_bound(t, pd, rkey, qpn, false);
}

int mw_invalidate(struct mr_table *t, u32 pd, u32 rkey, u32 qpn)
{
	return check_bound(t, pd, rkey, qpn, true) ? 0 : -EINVAL;
}

static bool has_rights(const struct mr *mr, u32 pd, u32 key, u32 access)
{
	return mr_key(mr) == key && mr->pd == pd && (mr->access & access) == access;
}

/* Returns the bytes at [va, va + len), or NULL, as mr_translate() does. */
static u8 *bytes_at(const struct mr *mr, u32 pd, u32 key, u64 va, u64 len, u32 access)
{
	if (!has_rights(mr, pd, key, access))
		return NULL;
	if (va < mr->iova || va - mr->iova > mr->length || len > mr->length - (va - mr->iova))
		return NULL;
	return (u8 *)((uintptr_t)mr->addr + (uintptr_t)(va - mr->iova));
}

u8 *mr_translate(const struct mr_table *t, u32 pd, u32 key, u64 va, u64 len, u32 access)
{
	const struct mr *mr = find_object(t, key);

	return mr && mr->kind == MR_REGION ? bytes_at(mr, pd, key, va, len, access) : NULL;
}

/* Only windows are ever bound. */
static bool window_is_for(const struct mr *mw, u32 qpn)
{
	return mw->region && (!mw->qpn || mw->qpn == qpn);
}

static struct mr_bytes open_window(const struct mr_table *t, struct mr *mw, u32 pd, u32 qpn,
				   u32 key, u64 va, u64 len, u32 access)
{
	u8 *bytes;

	spin_lock_if(t->shared, &mw->lock);
	bytes = window_is_for(mw, qpn) ? bytes_at(mw, pd, key, va, len, access) : NULL;
	if (bytes && t->shared)
		return (struct mr_bytes){ .at = bytes, .held = mw };
	spin_unlock_if(t->shared, &mw->lock);
	return (struct mr_bytes){ .at = bytes };
}

/* A peer's atomics are refused: they could only return zero. */
static struct mr_bytes open_null(struct mr *mr, u32 pd, u32 key, u32 access)
{
	const bool opens = mr_key(mr) == key && mr->pd == pd &&
			   !(access & ~(u32)(MR_REMOTE_READ | MR_REMOTE_WRITE));

	return (struct mr_bytes){ .held = opens ? mr : NULL };
}

struct mr_bytes mr_open(const struct mr_table *t, u32 pd, u32 qpn, u32 key, u64 va, u64 len,
			u32 access)
{
	struct mr *mr = find_object(t, key);

	if (!mr)
		return (struct mr_bytes){ .at = NULL };
	if (unlikely(mr->kind != MR_REGION))
		return mr->kind == MR_NULL ? open_null(mr, pd, key, access) :
					     open_window(t, mr, pd, qpn, key, va, len, access);
	return (struct mr_bytes){ .at = bytes_at(mr, pd, key, va, len, access) };
}

bool mr_allows(const struct mr_table *t, u32 pd, u32 qpn, u32 key, u64 va, u64 len, u32 access)
{
	struct mr_bytes bytes = mr_open(t, pd, qpn, key, va, len, access);

	if (!bytes.at)
		return mr_is_nothing(bytes);
	mr_close(bytes);
	return true;
}

bool mr_allows_all(const struct mr_table *t, u32 pd, u32 qpn, u32 key, u32 access)
{
	struct mr *mr = find_object(t, key);
	bool is_shared, ok;

	if (!mr)
		return false;
	is_shared = t->shared && mr->kind != MR_REGION;
	spin_lock_if(is_shared, &mr->lock);
	ok = has_rights(mr, pd, key, access) && (mr->kind == MR_REGION || window_is_for(mr, qpn));
	spin_unlock_if(is_shared, &mr->lock);
	return ok;
}

u64 sge_length(const struct sge *sge, u32 num_sge)
{
	u64 sum = 0;

	for (u32 i = 0; i < num_sge; i++)
		sum += sge[i].length;
	return sum;
}

static bool sge_is_null(const struct mr_table *t, u32 pd, const struct sge *sge)
{
	const struct mr *mr = mr_find(t, sge->lkey);

	return mr && mr->kind == MR_NULL && mr->pd == pd;
}

/* Copies a piece without memory: a null region reads as zeros into buf, unless that is NULL. */
static __attribute__((noinline, cold)) bool sge_copy_null(const struct mr_table *t, u32 pd,
							  const struct sge *sge, u8 *buf, u32 len)
{
	if (!sge_is_null(t, pd, sge))
		return false;
	if (buf)
		memset(buf, 0, len);
	return true;
}

bool sge_check(const struct mr_table *t, u32 pd, const struct sge *sge, u32 num_sge, u32 access)
{
	for (u32 i = 0; i < num_sge; i++)
		if (sge[i].length &&
		    !mr_translate(t, pd, sge[i].lkey, sge[i].addr, sge[i].length, access) &&
		    !sge_is_null(t, pd, sge + i))
			return false;
	return true;
}

/* Returns the next contiguous piece of a copy, at most len bytes, or NULL if its key fails. */
static u8 *sge_piece(const struct mr_table *t, u32 pd, const struct sge *sge, u64 offset, u32 *len,
		     u32 access)
{
	*len = (u32)min_u64(*len, sge->length - offset);
	return mr_translate(t, pd, sge->lkey, sge->addr + offset, *len, access);
}

/*
 * Walks a list in either direction: skips to offset, then copies piece by piece. The other side of
 * the copy is `to`, or `from` if `to` is NULL.
 */
static inline bool sge_walk(const struct mr_table *t, u32 pd, const struct sge *sge, u32 num_sge,
			    u64 offset, u8 *to, const struct guard_bytes *from, u32 len, u32 access)
{
	u32 i = 0, done = 0;

	while (i < num_sge && offset >= sge[i].length)
		offset -= sge[i++].length;
	for (; done < len; i++, offset = 0) {
		u32 piece = len - done;
		u8 *p;

		if (i == num_sge)
			return false;
		if (!sge[i].length)
			continue;
		p = sge_piece(t, pd, &sge[i], offset, &piece, access);
		if (unlikely(!p)) {
			if (!sge_copy_null(t, pd, &sge[i], to ? to + done : NULL, piece))
				return false;
		} else if (unlikely(!(to ? guard_read(to + done, p, piece) :
					   guard_write_from(p, from, done, piece)))) {
			return false;
		}
		done += piece;
	}
	return true;
}

bool sge_gather(const struct mr_table *t, u32 pd, const struct sge *sge, u32 num_sge, u64 offset,
		void *dst, u32 len)
{
	return sge_walk(t, pd, sge, num_sge, offset, dst, NULL, len, 0);
}

bool sge_scatter(const struct mr_table *t, u32 pd, const struct sge *sge, u32 num_sge, u64 offset,
		 const struct guard_bytes *src, u32 len)
{
	return sge_walk(t, pd, sge, num_sge, offset, NULL, src, len, MR_LOCAL_WRITE);
}
