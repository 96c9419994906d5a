/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory regions: which bytes of the process a key opens, and to which access. Keys are 32 random
 * bits; L_Key and R_Key of a region are equal. Looking up a key copies nothing and takes no memory.
 *
 * The table is the device's. What it holds changes with all its engines held, so any of them may
 * look up a region at any time, and no lock or atomic is in that. Windows are bound and unbound by
 * one engine while others look: where there are several, under the window's lock. An engine that
 * uses the window's bytes holds it until they are copied, so once a thread has seen a window
 * unbound, no engine uses it any more.
 */
#ifndef ENGINE_MR_H
#define ENGINE_MR_H

#include <xroce/stat.h>

#include "guard.h"
#include "spin.h"
#include "types.h"

/*
 * Access rights, with the values of enum ibv_access_flags (the last two as newer headers have
 * them). MR_ON_DEMAND is none: it says that the pages need not have been there at registration.
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

/* The part of a window's R_Key that the application chooses at each binding. */
#define MW_KEY_OWN 0xffu

/*
 * A region of memory; the region without memory of ibv_alloc_null_mr(3); a window onto a part of a
 * region (ibv_alloc_mw(3)).
 */
enum mr_kind { MR_REGION, MR_NULL, MR_WINDOW_1, MR_WINDOW_2 };

struct mr {
	_Atomic u32 key; /* never 0; its upper 24 bits stay, those below are a window's to change */
	u32 pd;		/* number of its protection domain */
	u32 access;
	/*
	 * what remote and local addresses start from: the virtual address, or 0 when zero-based, or
	 * the caller's
	 */
	u64 iova;
	u64 length;
	u8 *addr;
	enum mr_kind kind;
	u32 qpn;	/* bound type 2 window: the only QP that it opens for */
	_Atomic u32 windows; /* region: windows bound to it; it cannot go before they do */
	struct mr *region; /* window: what it is bound to, or NULL: then it opens nothing */
	struct spin lock; /* window: of all in it but kind and pd, in a shared table */
	struct xroce_mr_stat *stat; /* what the table shows of it; NULL: nothing */
};

static inline bool mr_is_window(const struct mr *mr)
{
	return mr->kind >= MR_WINDOW_1;
}

/* Any engine may be binding a window anew: what its key is worth is known under its lock. */
static inline u32 mr_key(const struct mr *mr)
{
	return atomic_load_explicit(&((struct mr *)mr)->key, memory_order_relaxed);
}

/* All engines held: their locks order what was bound and unbound. */
static inline bool mr_has_windows(const struct mr *mr)
{
	return atomic_load_explicit(&((struct mr *)mr)->windows, memory_order_relaxed) != 0;
}

struct mr_table {
	/*
	 * Open addressing by the key's upper 24 bits, which name one object; the lower 8 change
	 * when a window is bound anew. NULL = never used.
	 */
	struct mr **slot;
	u32 mask;
	u32 used, live;
	bool shared;	/* by several engines: changes with all of them held */
	u64 (*random)(void *arg);
	void *random_arg;
	/* mr_table_show(): memory of the caller's, whose pid it says, and what is taken of it */
	struct xroce_mr_stat *stat;
	u32 pid, next_stat;
	u64 taken[XROCE_MR_STATS / 64];
};

/* random must be unguessable outside tests: it makes the keys. Returns 0 or -ENOMEM. */
int mr_table_init(struct mr_table *t, u64 (*random)(void *arg), void *arg);
void mr_table_destroy(struct mr_table *t);
/*
 * Show what is in it from here on in XROCE_MR_STATS elements of the caller's, which daemonize all
 * that is shown. What finds no element is not seen.
 */
void mr_table_show(struct mr_table *t, struct xroce_mr_stat *stat, u32 pid);

/*
 * Add a region of length bytes at addr. Returns 0, or -EINVAL (iova + length or addr + length
 * overflows; remote write or atomic without local write, ibv_reg_mr(3)), -ENOMEM. The region is the
 * table's until mr_remove().
 */
int mr_add(struct mr_table *t, u32 pd, void *addr, u64 length, u64 iova, u32 access,
	   struct mr **out);
/*
 * Add a null region: each address reads as zeros, and what is written goes nowhere. It opens to
 * scatter/gather lists, and to READs and WRITEs of peers; no window can be bound to it. Returns 0
 * or -ENOMEM.
 */
int mr_add_null(struct mr_table *t, u32 pd, struct mr **out);
/*
 * A region, or a window: that is unbound first. The caller has refused a region that has windows.
 */
void mr_remove(struct mr_table *t, struct mr *mr);

/*
 * mr, a region without windows, becomes what fresh is, under its own key, and fresh goes. With all
 * engines held.
 */
void mr_replace(struct mr_table *t, struct mr *mr, struct mr *fresh);

/* A window that is bound to nothing. Returns 0 or -ENOMEM. */
int mw_add(struct mr_table *t, u32 pd, enum mr_kind kind, struct mr **out);

/*
 * Bind mw to [addr, addr + length) of the region with key lkey (ibv_bind_mw(3), ibv_post_send(3)
 * for type 2). The window then answers to its old key with the low 8 bits of new_key: whatever
 * else new_key holds is ignored, as adapters do. A type 1 window may be bound already and is
 * unbound by length 0; a type 2 window must be free. Returns 0 or -EINVAL: L_Key, PD, bounds, or
 * rights that the region does not have.
 */
int mw_bind(struct mr_table *t, struct mr *mw, u32 new_key, u32 lkey, u64 addr, u64 length,
	    u32 access, u32 qpn);

/*
 * Unbind the type 2 window of this key. -EINVAL if there is none, it is not bound, or is another
 * PD's or QP's.
 */
int mw_invalidate(struct mr_table *t, u32 pd, u32 rkey, u32 qpn);
/*
 * The window whose key has these upper 24 bits, bound or not, or NULL: the lower 8 may be those of
 * an earlier binding.
 */
struct mr *mw_find(const struct mr_table *t, u32 key);
bool mw_can_invalidate(const struct mr_table *t, u32 pd, u32 rkey, u32 qpn);
struct mr *mr_find(const struct mr_table *t, u32 key);
/* Whatever has a key with these upper 24 bits, or NULL. */
struct mr *mr_find_object(const struct mr_table *t, u32 key);

/*
 * The bytes that [va, va + len) of a region's key name, or NULL if the key does not exist or is a
 * window's, is of another PD, lacks any right of access, or the range is not inside the region.
 * Overflow-safe. len may be 0.
 */
u8 *mr_translate(const struct mr_table *t, u32 pd, u32 key, u64 va, u64 len, u32 access);

/*
 * The same for what a QP's peer asks for: a window opens as well, one of type 2 for its own QP
 * only. Unless at is NULL, mr_close() follows at once when the bytes have been looked at or copied.
 * Where it is NULL, mr_is_nothing() says whether a null region opened: READs of it are zeros, and
 * WRITEs are dropped.
 */
struct mr_bytes {
	u8 *at;
	struct mr *held; /* the window that is locked; or, at NULL, the null region; or NULL */
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
/* Would it open; has the key these rights, to whatever it names. */
bool mr_allows(const struct mr_table *t, u32 pd, u32 qpn, u32 key, u64 va, u64 len, u32 access);
bool mr_allows_all(const struct mr_table *t, u32 pd, u32 qpn, u32 key, u32 access);

/* One scatter/gather element, as in struct ibv_sge. */
struct sge {
	u64 addr;
	u32 length;
	u32 lkey;
};

/*
 * True if the keys of all elements with length > 0 allow access: then a copy that failed did so for
 * the memory behind them.
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
