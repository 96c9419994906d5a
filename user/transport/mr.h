/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory regions: which bytes of the process a key opens, for whom. Keys are 32 random bits; L_Key and R_Key of a region are equal.
 * The table belongs to the engine and is touched under its owner's lock only. Looking up a key copies nothing and takes no memory.
 */
#ifndef TRANSPORT_MR_H
#define TRANSPORT_MR_H

#include "types.h"

/* Access rights, with the values of enum ibv_access_flags. */
enum {
	MR_LOCAL_WRITE = 1 << 0,
	MR_REMOTE_WRITE = 1 << 1,
	MR_REMOTE_READ = 1 << 2,
	MR_REMOTE_ATOMIC = 1 << 3,
	MR_ZERO_BASED = 1 << 5,
};

struct mr {
	u32 key;	/* never 0 */
	u32 pd;		/* number of its protection domain */
	u32 access;
	u64 iova;	/* what remote and local addresses start from: the virtual address, or 0 when zero-based, or the caller's */
	u64 length;
	u8 *addr;
};

struct mr_table {
	struct mr **slot; /* open addressing: the key's low bits, then the next slots; NULL = never used */
	u32 mask;
	u32 used, live;
	u64 (*random)(void *arg);
	void *random_arg;
};

/* random must be unguessable outside tests: it makes the keys. Returns 0 or -ENOMEM. */
int mr_table_init(struct mr_table *t, u64 (*random)(void *arg), void *arg);
void mr_table_destroy(struct mr_table *t);

/*
 * Add a region of length bytes at addr. Returns 0, or -EINVAL (iova + length or addr + length overflows; remote write or atomic
 * without local write, ibv_reg_mr(3)), -ENOMEM. The region is the table's until mr_remove().
 */
int mr_add(struct mr_table *t, u32 pd, void *addr, u64 length, u64 iova, u32 access, struct mr **out);
void mr_remove(struct mr_table *t, struct mr *mr);
struct mr *mr_find(const struct mr_table *t, u32 key);

/*
 * The bytes that [va, va + len) of key name, or NULL if the key does not exist, is of another PD, lacks any right of access, or the range is
 * not inside the region. Overflow-safe. len may be 0.
 */
u8 *mr_translate(const struct mr_table *t, u32 pd, u32 key, u64 va, u64 len, u32 access);

/* One scatter/gather element, as in struct ibv_sge. */
struct sge {
	u64 addr;
	u32 length;
	u32 lkey;
};

/* True if every element with length > 0 may be accessed with access. */
bool sge_check(const struct mr_table *t, u32 pd, const struct sge *sge, u32 num_sge, u32 access);

/* Sum of the lengths; may exceed 32 bits. */
u64 sge_length(const struct sge *sge, u32 num_sge);

/*
 * Copy len bytes between a buffer and [offset, offset + len) of the list. False if a key fails or the list is too short; then some bytes
 * may have been copied already.
 */
bool sge_gather(const struct mr_table *t, u32 pd, const struct sge *sge, u32 num_sge, u64 offset, void *dst, u32 len);
bool sge_scatter(const struct mr_table *t, u32 pd, const struct sge *sge, u32 num_sge, u64 offset, const void *src, u32 len);

#endif
