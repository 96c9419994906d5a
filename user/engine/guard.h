/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Access to the application's memory. A region was mapped when it was registered; the program may
 * have unmapped, protected or truncated it since. An instruction that touches such memory raises
 * SIGSEGV or SIGBUS. Every access of the engine to a region goes through the functions below: each
 * returns false if the memory is not accessible, without other effect on the process.
 *
 * This needs a signal handler, which the transport does not install. The handler (user/run/fault.c,
 * the tests) asks guard_landing() where the thread continues, and stores that in the program
 * counter that it returns to.
 *
 * On x86-64 the accesses are a few assembler functions (guard_x86_64.S) without a stack frame: a
 * program counter inside them can be sent to their common exit. That costs nothing while memory is
 * accessible. Elsewhere, and under the address and thread sanitizers, which must see the copies,
 * each access first records where to return to (sigsetjmp(3), some 20 ns).
 */
#ifndef ENGINE_GUARD_H
#define ENGINE_GUARD_H

#include <stdatomic.h>

#include "types.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GUARD_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GUARD_SANITIZED 1
#endif
#if defined(__x86_64__) && !defined(GUARD_SANITIZED)
#define GUARD_BY_ADDRESS 1
#define GUARD_SYMBOL(name) __asm__("guard_x86_" name) __attribute__((visibility("hidden")))
#else
#define GUARD_SYMBOL(name)
#endif

/*
 * Copy len bytes from the application's memory, or to it. dst and src must not overlap. Return
 * false if a part of the application's range is not accessible; dst may have been written in part
 * then.
 *
 * Threads of the application may access the memory at the same time. An aligned word of 2, 4 or 8
 * bytes is loaded or stored once, as a whole. guard_write() stores each byte once, in address
 * order. Others see that order if GUARD_ORDERED, else the last word after all others.
 */
bool guard_read(void *dst, const void *src, size_t len) GUARD_SYMBOL("read");
bool guard_write(void *dst, const void *src, size_t len) GUARD_SYMBOL("write");
#if defined(__x86_64__) || defined(__s390x__)
#define GUARD_ORDERED 1
#else
#define GUARD_ORDERED 0
#endif

/* Bytes in two places: the first `len` of them at `at`, the others at `more`. */
struct guard_bytes {
	const u8 *at, *more;
	u32 len;
};

/* Writes len of the bytes, from number `offset` on, where these span the two places. */
bool guard_write_across(void *dst, const struct guard_bytes *src, u32 offset, u32 len);

/* Does the same wherever these bytes lie. A word across the two places is stored as a whole. */
static inline bool guard_write_from(void *dst, const struct guard_bytes *src, u32 offset, u32 len)
{
	if (likely((u64)offset + len <= src->len))
		return guard_write(dst, src->at + offset, len);
	if (offset >= src->len)
		return guard_write(dst, src->more + (offset - src->len), len);
	return guard_write_across(dst, src, offset, len);
}

/*
 * Atomic operations on an aligned word; *original is its old value. Return false if the word is not
 * accessible, with nothing changed.
 */
bool guard_fetch_add(u64 *word, u64 add, u64 *original) GUARD_SYMBOL("fetch_add");
bool guard_compare_swap(u64 *word, u64 compare, u64 swap, u64 *original)
	GUARD_SYMBOL("compare_swap");
bool guard_store(u64 *word, u64 value) GUARD_SYMBOL("store");

/*
 * For the handler of a SIGSEGV or SIGBUS that an instruction raised: pc is its address, addr the
 * memory it touched (si_addr). If it is an access of this file, returns where the thread must
 * continue, with all other registers unchanged; else 0. Async-signal-safe.
 */
uintptr_t guard_landing(uintptr_t pc, uintptr_t addr);

/*
 * The copies in C, for processors without an assembler file, and for inline data of the verbs. They
 * move naturally aligned units of the application's memory, in the order of their addresses. Each
 * access of that side is atomic, so that the compiler neither splits units nor makes a memcpy() of
 * them.
 */
#define GUARD_UNIT_READ(type, dst, src)                                                            \
	do {                                                                                       \
		const type unit_ = atomic_load_explicit((const _Atomic type *)(src),               \
							memory_order_relaxed);                     \
		memcpy(dst, &unit_, sizeof(unit_));                                                \
	} while (0)
#define GUARD_UNIT_WRITE(type, dst, src)                                                           \
	do {                                                                                       \
		type unit_;                                                                        \
		memcpy(&unit_, src, sizeof(unit_));                                                \
		atomic_store_explicit((_Atomic type *)(dst), unit_, memory_order_relaxed);         \
	} while (0)

/* Bytes of the unit that a range of the application's memory begins with; len is at least 1. */
static inline size_t guard_unit(const u8 *app, size_t len)
{
	size_t unit = sizeof(u64);

	while ((uintptr_t)app % unit || unit > len)
		unit /= 2;
	return unit;
}

/* Copies len bytes of the application's memory, at src. */
static inline void guard_read_units(u8 *dst, const u8 *src, size_t len)
{
	for (size_t unit; len; dst += unit, src += unit, len -= unit) {
		unit = guard_unit(src, len);
		if (likely(unit == sizeof(u64)))
			GUARD_UNIT_READ(u64, dst, src);
		else if (unit == sizeof(u32))
			GUARD_UNIT_READ(u32, dst, src);
		else if (unit == sizeof(u16))
			GUARD_UNIT_READ(u16, dst, src);
		else
			GUARD_UNIT_READ(u8, dst, src);
	}
}

/* Copies len bytes to the application's memory, at dst. */
static inline void guard_write_units(u8 *dst, const u8 *src, size_t len)
{
	for (size_t unit; len; dst += unit, src += unit, len -= unit) {
		unit = guard_unit(dst, len);
		/* the compiler may exchange relaxed stores to different places */
		atomic_signal_fence(memory_order_release);
		/* release: pairs with the acquire of a thread that polls the last unit */
		if (unit == len)
			atomic_thread_fence(memory_order_release);
		if (likely(unit == sizeof(u64)))
			GUARD_UNIT_WRITE(u64, dst, src);
		else if (unit == sizeof(u32))
			GUARD_UNIT_WRITE(u32, dst, src);
		else if (unit == sizeof(u16))
			GUARD_UNIT_WRITE(u16, dst, src);
		else
			GUARD_UNIT_WRITE(u8, dst, src);
	}
}

#endif
