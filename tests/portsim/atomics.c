/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The atomic operations of the code under test. It is compiled with -fsanitize=thread, by which the
 * compiler makes a call of each atomic operation, fence and access to volatile memory, however the
 * source spells it; but it is not linked with that sanitizer's runtime: these are the calls. Each
 * is a point of the scheduler. Plain accesses to memory are calls as well, which do nothing.
 *
 * (The sanitizer itself would find races in the runs that it happens to see. This chooses the
 * runs.)
 */
#include "scheduler.h"

/* Before the access: it is the access that others come before or after. */
#define SEQ_CST __ATOMIC_SEQ_CST

void __tsan_init(void);
void __tsan_init(void)
{
}

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order)
{
	sched_point("fence");
	/* weaker fences order nothing that these buffers do not */
	if (order == SEQ_CST)
		sched_drain();
}

void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_signal_fence(int order)
{
}

/* A read-modify-write: a full fence, as on the processors that buffer stores so. */
#define RMW(bits, name, op) \
	u##bits __tsan_atomic##bits##_##name(volatile u##bits *a, u##bits v, int order); \
	u##bits __tsan_atomic##bits##_##name(volatile u##bits *a, u##bits v, int order) \
	{ \
		sched_access(#name, a); \
		sched_drain(); \
		return op(a, v, SEQ_CST); \
	}

#define ALL(bits)                                                                                  \
	u##bits __tsan_atomic##bits##_load(const volatile u##bits *a, int order);                  \
	u##bits __tsan_atomic##bits##_load(const volatile u##bits *a, int order)                   \
	{                                                                                          \
		u64 stored;                                                                        \
                                                                                                   \
		sched_access("load", a);                                                           \
		if (sched_stored(a, bits / 8, &stored))                                            \
			return (u##bits)stored;                                                    \
		return __atomic_load_n(a, SEQ_CST);                                                \
	}                                                                                          \
	void __tsan_atomic##bits##_store(volatile u##bits *a, u##bits v, int order);               \
	void __tsan_atomic##bits##_store(volatile u##bits *a, u##bits v, int order)                \
	{                                                                                          \
		sched_access("store", a);                                                          \
		sched_store(a, bits / 8, v);                                                       \
		if (order == SEQ_CST)                                                              \
			sched_drain();                                                             \
	}                                                                                          \
	RMW(bits, exchange, __atomic_exchange_n)                                                   \
	RMW(bits, fetch_add, __atomic_fetch_add)                                                   \
	RMW(bits, fetch_sub, __atomic_fetch_sub)                                                   \
	RMW(bits, fetch_and, __atomic_fetch_and)                                                   \
	RMW(bits, fetch_or, __atomic_fetch_or)                                                     \
	RMW(bits, fetch_xor, __atomic_fetch_xor)                                                   \
	int __tsan_atomic##bits##_compare_exchange_strong(volatile u##bits *a, u##bits *c,         \
							  u##bits v, int order, int fail);         \
	int __tsan_atomic##bits##_compare_exchange_strong(volatile u##bits *a, u##bits *c,         \
							  u##bits v, int order, int fail)          \
	{                                                                                          \
		sched_access("compare_exchange", a);                                               \
		sched_drain();                                                                     \
		return __atomic_compare_exchange_n(a, c, v, false, SEQ_CST, SEQ_CST);              \
	}                                                                                          \
	int __tsan_atomic##bits##_compare_exchange_weak(volatile u##bits *a, u##bits *c,           \
							u##bits v, int order, int fail);           \
	/* It may fail though the value is right. */                                               \
	int __tsan_atomic##bits##_compare_exchange_weak(volatile u##bits *a, u##bits *c,           \
							u##bits v, int order, int fail)            \
	{                                                                                          \
		sched_access("compare_exchange_weak", a);                                          \
		sched_drain();                                                                     \
		if (sched_self() && rng_chance(sched_rng(), 2000)) {                               \
			*c = *a;                                                                   \
			return 0;                                                                  \
		}                                                                                  \
		return __atomic_compare_exchange_n(a, c, v, false, SEQ_CST, SEQ_CST);              \
	}                                                                                          \
	u##bits __tsan_atomic##bits##_compare_exchange_val(volatile u##bits *a, u##bits c,         \
							   u##bits v, int order, int fail);        \
	/* clang's, of both. */                                                                    \
	u##bits __tsan_atomic##bits##_compare_exchange_val(volatile u##bits *a, u##bits c,         \
							   u##bits v, int order, int fail)         \
	{                                                                                          \
		__tsan_atomic##bits##_compare_exchange_strong(a, &c, v, order, fail);              \
		return c;                                                                          \
	}

ALL(8)
ALL(16)
ALL(32)
ALL(64)

/* ---- volatile memory: what XDP reads and writes; and plain memory ---- */

#define VOLATILE(bytes) \
	void __tsan_volatile_read##bytes(void *a); \
	void __tsan_volatile_read##bytes(void *a) \
	{ \
		sched_access("volatile read", a); \
	} \
	void __tsan_volatile_write##bytes(void *a); \
	void __tsan_volatile_write##bytes(void *a) \
	{ \
		sched_access("volatile write", a); \
	}

#define PLAIN(name) \
	void __tsan_##name(void *a); \
	void __tsan_##name(void *a) \
	{ \
	}

VOLATILE(1)
VOLATILE(2)
VOLATILE(4)
VOLATILE(8)
PLAIN(read1)
PLAIN(read2)
PLAIN(read4)
PLAIN(read8)
PLAIN(read16)
PLAIN(write1)
PLAIN(write2)
PLAIN(write4)
PLAIN(write8)
PLAIN(write16)
PLAIN(unaligned_read2)
PLAIN(unaligned_read4)
PLAIN(unaligned_read8)
PLAIN(unaligned_read16)
PLAIN(unaligned_write2)
PLAIN(unaligned_write4)
PLAIN(unaligned_write8)
PLAIN(unaligned_write16)

void __tsan_read_range(void *a, unsigned long bytes);
void __tsan_read_range(void *a, unsigned long bytes)
{
}

void __tsan_write_range(void *a, unsigned long bytes);
void __tsan_write_range(void *a, unsigned long bytes)
{
}
