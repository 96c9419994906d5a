/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Short integer names and the few helpers that every file of the transport uses. Depends only on
 * the C library's headers.
 */
#ifndef ENGINE_TYPES_H
#define ENGINE_TYPES_H

#include <endian.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <xroce/wire.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#define NSEC_NEVER UINT64_MAX
#define NSEC_PER_USEC 1000ull
#define NSEC_PER_MSEC 1000000ull
#define NSEC_PER_SEC  1000000000ull

/* Most engines per device. */
#define ENGINE_MAX 8

#define CACHE_LINE 64
#define cache_aligned __attribute__((aligned(CACHE_LINE)))

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/*
 * Kept out of the per-packet path. A function that has an array or passes the address of a local
 * gets a stack protector: six instructions per call, which an inlined rare case would add to the
 * common one.
 */
#define rare __attribute__((noinline, cold))
/* On the path of every packet, called from one or two places. */
#define per_packet inline __attribute__((always_inline))

/*
 * Atomic access in all of user/: C11's atomic_*_explicit with a named order, on _Atomic objects. An
 * access that orders something names its partner in a comment, and vice versa. shared_word() is for
 * a plain word that another thread, XDP or the kernel also accesses: xroce/abi.h, which BPF shares
 * and where nothing can be _Atomic, and the kernel's rings.
 */
#define shared_word(p) ((_Atomic __typeof__(*(p)) *)(p))
_Static_assert(sizeof(_Atomic u32) == sizeof(u32) && sizeof(_Atomic u64) == sizeof(u64) &&
		       ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2,
	       "shared_word() is the word itself");

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static inline u32 min_u32(u32 a, u32 b)
{
	return a < b ? a : b;
}

static inline u64 min_u64(u64 a, u64 b)
{
	return a < b ? a : b;
}
static inline u64 max_u64(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* Smallest power of two >= n; n in 1..2^31. */
static inline u32 roundup_pow2(u32 n)
{
	return n <= 1 ? 1 : 1u << (32 - __builtin_clz(n - 1));
}

/* A 128-bit GID in network order; an IPv4 address is ::ffff:a.b.c.d. */
struct gid {
	u8 raw[16];
};

static inline bool gid_is_ipv4(const struct gid *g)
{
	static const u8 mapped[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(g->raw, mapped, sizeof(mapped)) == 0;
}

static inline bool gid_equal(const struct gid *a, const struct gid *b)
{
	return memcmp(a->raw, b->raw, sizeof(a->raw)) == 0;
}

/* For tables of multicast groups, which often differ in their last bytes. */
static inline u32 gid_hash_group(const struct gid *g)
{
	return g->raw[15] ^ g->raw[14] * 7u ^ g->raw[13] * 31u;
}

/*
 * Packet sequence numbers are on a circle of 2^24; compare by signed 24-bit difference (IBTA
 * 9.7.2).
 */

/*
 * Half the circle: the most PSNs a requester may have outstanding, or old and new could not be
 * distinguished.
 */
#define PSN_WINDOW_MAX (1u << 23)

static inline u32 psn_add(u32 psn, u32 n)
{
	return (psn + n) & ROCE_PSN_MASK;
}

/* Returns a - b as a signed distance in -2^23 .. 2^23-1: negative when a is before b. */
static inline s32 psn_diff(u32 a, u32 b)
{
	return (s32)((a - b) << 8) >> 8;
}

/*
 * Memory in whole cache lines, so that objects of different threads share none. Control path only.
 * Freed with free(); memory that the caller provided for a ring is never freed here.
 */

/* Allocates bytes without touching them, so that unused pages take no memory. May return NULL. */
static inline void *aligned_new(size_t bytes)
{
	return aligned_alloc(CACHE_LINE, (bytes + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1));
}

/* Returns a ring's memory: the caller's, or new. */
static inline void *aligned_or_lent(void *lent, size_t bytes)
{
	return lent ? lent : aligned_new(bytes);
}

/* The same as aligned_new(), zeroed. */
static inline void *aligned_zero(size_t bytes)
{
	void *p = aligned_new(bytes);

	return p ? memset(p, 0, bytes) : NULL;
}

#endif
