/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The copies of guard.h in C, for processors without an assembler file. They move naturally aligned
 * units of the application's memory, in the order of their addresses. Each access of that side is
 * atomic, so that the compiler neither splits units nor makes a memcpy() of them.
 */
#ifndef ENGINE_GUARD_UNITS_H
#define ENGINE_GUARD_UNITS_H

#include <stdatomic.h>

#include "types.h"

#define UNIT_READ(type, dst, src)                                                                  \
	do {                                                                                       \
		const type unit_ = atomic_load_explicit((const _Atomic type *)(src),               \
							memory_order_relaxed);                     \
		memcpy(dst, &unit_, sizeof(unit_));                                                \
	} while (0)
#define UNIT_WRITE(type, dst, src)                                                                 \
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
			UNIT_READ(u64, dst, src);
		else if (unit == sizeof(u32))
			UNIT_READ(u32, dst, src);
		else if (unit == sizeof(u16))
			UNIT_READ(u16, dst, src);
		else
			UNIT_READ(u8, dst, src);
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
			UNIT_WRITE(u64, dst, src);
		else if (unit == sizeof(u32))
			UNIT_WRITE(u32, dst, src);
		else if (unit == sizeof(u16))
			UNIT_WRITE(u16, dst, src);
		else
			UNIT_WRITE(u8, dst, src);
	}
}

#endif
