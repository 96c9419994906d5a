/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory regions: the bytes of the process that a key gives access to, and the rights. Keys are 32
 * random bits; L_Key and R_Key of a region are equal. A key lookup copies and allocates nothing.
 *
 * The table is the device's. It changes only with all engines held, so any engine may look up a
 * region at any time without lock or atomic. Windows are bound and unbound by one engine while
 * others look: with several engines, under the window's lock. An engine that uses the window's
 * bytes holds the lock until they are copied, so once a thread has seen a window unbound, no engine
 * uses it.
 */
#ifndef ENGINE_MR_H
#define ENGINE_MR_H

#include <xroce/stat.h>

#include "guard.h"
#include "owner.h"
#include "types.h"

/*
 * Access rights, with the values of enum ibv_access_flags (the last two as in newer headers).
 * MR_ON_DEMAND is not a right: the pages need not have existed at registration.
 */
enum {
	MR_LOCAL_WRITE = 1 << 0,
	MR_REMOTE_WRITE = 1 << 1,
	MR_REMOTE_READ = 1 << 2,
	MR_REMOTE_ATOMIC = 1 << 3,
	MR_MW_BIND = 1 << 4,
	MR_ZERO_BASED = 1 << 5,
	MR_ON_DEMAND = 1 << 6,
	MR_FLUSH_GLOBAL = 1 << 8,
	MR_FLUSH_PERSISTENT = 1 << 9,
};
#define MR_REMOTE_ANY                                                                              \
	(MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC | MR_FLUSH_GLOBAL |                   \
	 MR_FLUSH_PERSISTENT)

/* The part of a window's R_Key that the application chooses at each bind. */
#define MW_KEY_OWN 0xffu

/*
 * A region of memory; the region without memory of ibv_alloc_null_mr(3); a window onto a part of a
 * region (ibv_alloc_mw(3)).
 */
enum mr_kind { MR_REGION, MR_NULL, MR_WINDOW_1, MR_WINDOW_2 };

struct mr {
	_Atomic u32 key; /* never 0; the upper 24 bits are constant, a window's lower 8 change */
	u32 pd;		/* number of its protection domain */
	u32 access;
	/*
	 * where remote and local addresses start: the virtual address, 0 when zero-based, or as the
	 * caller chose
	 */
	u64 iova;
	u64 length;
	u8 *addr;
	enum mr_kind kind;
	u32 qpn;	/* bound type 2 window: the only QP that may use it */
	_Atomic u32 windows; /* region: bound windows; must be 0 at removal */
	struct mr *region; /* window: the region it is bound to, or NULL: unbound */
	struct spin lock; /* window: guards all fields but kind and pd, in a shared table */
	struct xroce_mr_stat *stat; /* the table's public record of it; NULL: none */
};

static inline bool mr_is_window(const struct mr *mr)
{
	return mr->kind >= MR_WINDOW_1;
}

/* Any engine may be binding a window: its key is certain only under its lock. */
static inline u32 mr_key(const struct mr *mr)
{
	return atomic_load_explicit(&((struct mr *)mr)->key, memory_order_relaxed);
}

/* All engines held: their locks order binds and unbinds. */
static inline bool mr_has_windows(const struct mr *mr)
{
	return atomic_load_explicit(&((struct mr *)mr)->windows, memory_order_relaxed) != 0;
}

struct mr_table {
	/*
	 * Open addressing by the key's upper 24 bits, which identify one object; the lower 8 change
	 * when a window is bound again. NULL = never used.
	 */
	struct mr **slot;
	u32 mask;
	u32 used, live;
	bool shared;	/* by several engines: changes with all of them held */
	u64 (*random)(void *arg);
	void *random_arg;
	/* mr_table_show(): the caller's memory, the pid in its records, and the records in use */
	struct xroce_mr_stat *stat;
	u32 pid, next_stat;
	u64 taken[XROCE_MR_STATS / 64];
};

/* random must be unguessable outside tests: it makes the keys. Returns 0 or -ENOMEM. */
int mr_table_init(struct mr_table *t, u64 (*random)(void *arg), void *arg);
void mr_table_destroy(struct mr_table *t);
/*
 * Publishes the table from now on in XROCE_MR_STATS records of the caller, which must outlive all
 * published objects. Objects that find no free record are not shown.
 */
void mr_table_show(struct mr_table *t, struct xroce_mr_stat *stat, u32 pid);

/*
 * Adds a region of length bytes at addr. Returns 0, -ENOMEM, or -EINVAL: iova + length or addr +
 * length overflows, or remote write or atomic without local write (ibv_reg_mr(3)). The table owns
 * the region until mr_remove().
 */
int mr_add(struct mr_table *t, u32 pd, void *addr, u64 length, u64 iova, u32 access,
	   struct mr **out);
/*
 * Adds a null region: every address reads as zeros, and writes are discarded. Scatter/gather lists
 * and peers' READs and WRITEs may use it; windows cannot be bound to it. Returns 0 or -ENOMEM.
 */
int mr_add_null(struct mr_table *t, u32 pd, struct mr **out);
/*
 * Removes a region or a window; a window is unbound first. The caller refuses regions with windows.
 */
void mr_remove(struct mr_table *t, struct mr *mr);

/*
 * Gives mr, a region without windows, the contents of fresh under mr's key, and frees fresh. All
 * engines held.
 */
void mr_replace(struct mr_table *t, struct mr *mr, struct mr *fresh);

/* Adds an unbound window. Returns 0 or -ENOMEM. */
int mw_add(struct mr_table *t, u32 pd, enum mr_kind kind, struct mr **out);

/*
 * Binds mw to [addr, addr + length) of the region with key lkey (ibv_bind_mw(3), ibv_post_send(3)
 * for type 2). The window's new key is its old one with the low 8 bits of new_key; the other bits
 * of new_key are ignored, as on adapters. A type 1 window may be bound already and is unbound by
 * length 0; a type 2 window must be unbound. Returns 0 or -EINVAL: L_Key, PD, bounds, or rights
 * that the region lacks.
 */
int mw_bind(struct mr_table *t, struct mr *mw, u32 new_key, u32 lkey, u64 addr, u64 length,
	    u32 access, u32 qpn);

/*
 * Unbinds the type 2 window with this key. Returns 0, or -EINVAL if there is none, it is not bound,
 * or it belongs to another PD or QP.
 */
int mw_invalidate(struct mr_table *t, u32 pd, u32 rkey, u32 qpn);
/*
 * Returns the window whose key has these upper 24 bits, bound or not, or NULL: the lower 8 bits may
 * be from an earlier bind.
 */
struct mr *mw_find(const struct mr_table *t, u32 key);
bool mw_can_invalidate(const struct mr_table *t, u32 pd, u32 rkey, u32 qpn);
struct mr *mr_find(const struct mr_table *t, u32 key);
/* Returns the region or window whose key has these upper 24 bits, or NULL. */
struct mr *mr_find_object(const struct mr_table *t, u32 key);

/*
 * Returns the bytes at [va, va + len) of a key's region. NULL if the key is unknown or a window's,
 * belongs to another PD or lacks a right, or the range is outside the region. Overflow-safe. len
 * may be 0.
 */
u8 *mr_translate(const struct mr_table *t, u32 pd, u32 key, u64 va, u64 len, u32 access);

/*
 * The same for a peer's request to a QP: windows are allowed, one of type 2 only for its own QP.
 * Unless `at` is NULL, mr_close() must follow as soon as the bytes were read or copied. With `at`
 * NULL, mr_is_nothing() returns whether a null region was opened: READs of it return zeros, and
 * WRITEs are dropped.
 */
struct mr_bytes {
	u8 *at;
	struct mr *held; /* the locked window; or, with at NULL, the null region; or NULL */
};
struct mr_bytes mr_open(const struct mr_table *t, u32 pd, u32 qpn, u32 key, u64 va, u64 len,
			u32 access);
static inline bool mr_is_nothing(struct mr_bytes bytes)
{
	return !bytes.at && bytes.held;
}
static inline void mr_close(struct mr_bytes bytes)
{
	if (unlikely(bytes.held))
		spin_unlock(&bytes.held->lock);
}
/* Return whether mr_open() would succeed; whether the key has these rights. */
bool mr_allows(const struct mr_table *t, u32 pd, u32 qpn, u32 key, u64 va, u64 len, u32 access);
bool mr_allows_all(const struct mr_table *t, u32 pd, u32 qpn, u32 key, u32 access);

/* One scatter/gather element, as in struct ibv_sge. */
struct sge {
	u64 addr;
	u32 length;
	u32 lkey;
};

/*
 * Returns true if the keys of all elements with length > 0 allow access: the cause of a failed copy
 * is then the memory, not a key.
 */
bool sge_check(const struct mr_table *t, u32 pd, const struct sge *sge, u32 num_sge, u32 access);

/* Sum of the lengths; may exceed 32 bits. */
u64 sge_length(const struct sge *sge, u32 num_sge);

/*
 * Copies len bytes between a buffer and [offset, offset + len) of the list, each element's part as
 * guard_read() and guard_write() do. Returns false if a key fails, the list is too short, or the
 * memory cannot be accessed; then some bytes may have been copied already.
 */
bool sge_gather(const struct mr_table *t, u32 pd, const struct sge *sge, u32 num_sge, u64 offset,
		void *dst, u32 len);
bool sge_scatter(const struct mr_table *t, u32 pd, const struct sge *sge, u32 num_sge, u64 offset,
		 const struct guard_bytes *src, u32 len);

#endif
