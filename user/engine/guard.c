/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Attribution of faults to guarded accesses, and the accesses in C for processors without an
 * assembler file. See guard.h.
 */
#include "guard.h"

#ifdef GUARD_BY_ADDRESS

/* guard_x86_64.S: the accesses are between the first two; a failed access returns at the third. */
#define HIDDEN __attribute__((visibility("hidden")))
extern const char guard_begin[] HIDDEN, guard_end[] HIDDEN, guard_fail[] HIDDEN;
/* 32-byte registers: a property of the processor, written once, before main(). */
extern u8 guard_has_avx HIDDEN;

__attribute__((constructor)) static void guard_choose(void)
{
	__builtin_cpu_init();
	guard_has_avx = __builtin_cpu_supports("avx2") != 0;
}

uintptr_t guard_landing(uintptr_t pc, uintptr_t addr)
{
	return pc >= (uintptr_t)guard_begin && pc < (uintptr_t)guard_end ? (uintptr_t)guard_fail :
									   0;
}

#else

#include <setjmp.h>

/* tests/portsim makes each atomic access a step of its simulator, but not payload copies */
#ifdef GUARD_PLAIN
#define guard_read_units  memcpy
#define guard_write_units memcpy
#endif

/* This thread's current access. */
struct attempt {
	sigjmp_buf back;
	uintptr_t dst, src;
	size_t len;
};
static _Thread_local struct attempt *_Atomic current;

/*
 * Landing point of a thread whose access failed. The handler's return has restored the signal mask.
 */
#ifdef __x86_64__
__attribute__((force_align_arg_pointer)) /* the stack is as the access left it */
#endif
static void guard_back(void)
{
	siglongjmp(atomic_load_explicit(&current, memory_order_relaxed)->back, 1);
}

/* Granularity of si_addr: s390x reports the page's address. */
#ifdef __s390x__
#define FAULT_BYTES 4096u
#else
#define FAULT_BYTES 1u
#endif

/* x86-64: a non-canonical address is not a page fault, and the kernel reports si_addr as 0. */
#ifdef __x86_64__
#define FAULT_UNTOLD(addr) (!(addr))
#else
#define FAULT_UNTOLD(addr) false
#endif

static bool guard_covers(uintptr_t begin, size_t len, uintptr_t addr)
{
	const uintptr_t first = addr & ~(uintptr_t)(FAULT_BYTES - 1);

	return first - begin < len || (len && begin - first < FAULT_BYTES);
}

uintptr_t guard_landing(uintptr_t pc, uintptr_t addr)
{
	const struct attempt *a = atomic_load_explicit(&current, memory_order_relaxed);

	return a && (FAULT_UNTOLD(addr) || guard_covers(a->dst, a->len, addr) ||
		     guard_covers(a->src, a->len, addr)) ?
		       (uintptr_t)guard_back :
		       0;
}

/*
 * The body of an access. After sigsetjmp() returns again, only the attempt is used. The signal
 * fences pair with the handler, which calls guard_landing() on this thread. Atomic accesses to the
 * application's words are seq_cst, as on the CPU: their partners are the application's.
 */
#define GUARD(dst_, src_, len_, access)                                                            \
	struct attempt a = { .dst = (uintptr_t)(dst_), .src = (uintptr_t)(src_), .len = (len_) };  \
	bool done = sigsetjmp(a.back, 0) == 0;                                                     \
                                                                                                   \
	if (done) {                                                                                \
		atomic_store_explicit(&current, &a, memory_order_relaxed);                         \
		atomic_signal_fence(memory_order_seq_cst);                                         \
		access;                                                                            \
		atomic_signal_fence(memory_order_seq_cst);                                         \
	}                                                                                          \
	atomic_store_explicit(&current, NULL, memory_order_relaxed);                               \
	return done

bool guard_read(void *dst, const void *src, size_t len)
{
	GUARD(dst, src, len, guard_read_units((u8 *)a.dst, (const u8 *)a.src, a.len));
}

bool guard_write(void *dst, const void *src, size_t len)
{
	GUARD(dst, src, len, guard_write_units((u8 *)a.dst, (const u8 *)a.src, a.len));
}

bool guard_fetch_add(u64 *word, u64 add, u64 *original)
{
	GUARD(word, word, sizeof(*word),
	      *original =
		      atomic_fetch_add_explicit((_Atomic u64 *)word, add, memory_order_seq_cst));
}

bool guard_compare_swap(u64 *word, u64 compare, u64 swap, u64 *original)
{
	GUARD(word, word, sizeof(*word),
	      atomic_compare_exchange_strong_explicit((_Atomic u64 *)word, &compare, swap,
						      memory_order_seq_cst, memory_order_seq_cst);
	      *original = compare);
}

bool guard_store(u64 *word, u64 value)
{
	GUARD(word, word, sizeof(*word),
	      atomic_store_explicit((_Atomic u64 *)word, value, memory_order_seq_cst));
}

#endif

bool guard_write_across(void *dst, const struct guard_bytes *src, u32 offset, u32 len)
{
	u8 *to = dst, word[sizeof(u64)];
	const u32 first = src->len - offset, rest = len - first;
	/* bytes of a word that spans the boundary: before it, and after */
	const u32 cut = (u32)((uintptr_t)(to + first) % sizeof(word));
	const u32 before = min_u32(cut, first);
	const u32 after = cut ? min_u32(sizeof(word) - cut, rest) : 0;

	memcpy(word, src->at + src->len - before, before);
	memcpy(word + before, src->more, after);
	return guard_write(to, src->at + offset, first - before) &&
	       guard_write(to + first - before, word, before + after) &&
	       guard_write(to + first + after, src->more + after, rest - after);
}
