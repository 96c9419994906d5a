/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* crashes: test_guard */
/* tier: core */
/* tier: core san */
/*
 * The guarded accesses: they do what memcpy() and the atomic operations do, to the byte; and where
 * a page is missing at either end, at any place of the copy, they say so and nothing else happens.
 */
#include "unit.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../user/engine/guard.h"
#include "landing.h"
#include "spoil.h"

#define LONGEST	 4096u
#define MARGIN	 64u
#define FILLER	 0xee
#define PAGES	 3u

#ifdef GUARD_BY_ADDRESS
/* guard_x86_64.S: which of its ways the copies go. */
extern u8 guard_has_avx __attribute__((visibility("hidden")));

/* Each way that this processor can go: without AVX; with it. */
static bool choose_way(u32 way)
{
	guard_has_avx = way > 0;
	return way == 0 || __builtin_cpu_supports("avx2");
}
#define WAYS 2
#else
static bool choose_way(u32 way)
{
	return true;
}
#define WAYS 1
#endif

typedef bool copies(void *dst, const void *src, size_t len);
static copies *const both[] = { guard_read, guard_write };

static u8 from[LONGEST + 2 * MARGIN], to[LONGEST + 2 * MARGIN];

/* Copies between two places of the 64-byte grid exactly `len` bytes. */
static void copy_once(u32 len, u32 src_at, u32 dst_at)
{
	for (u32 i = 0; i < ARRAY_SIZE(both); i++) {
		memset(to, FILLER, sizeof(to));
		assert_true(both[i](to + dst_at, from + src_at, len));
		assert_memory_equal(to + dst_at, from + src_at, len);
		for (u32 k = 0; k < sizeof(to); k++)
			if (k < dst_at || k >= dst_at + len)
				assert_int_equal(to[k], FILLER);
	}
}

static void guard_copies__every_length(void **state)
{
	for (u32 i = 0; i < sizeof(from); i++)
		from[i] = (u8)(i * 7 + i / 251);
	for (u32 way = 0; way < WAYS; way++) {
		if (!choose_way(way))
			continue;
		for (u32 len = 0; len <= LONGEST; len += len < 600 ? 1 : 41)
			for (u32 k = 0; k < 8; k++)
				copy_once(len, k * 5 % MARGIN + 1, MARGIN - k * 11 % MARGIN);
		copy_once(LONGEST, 3, 5);
		copy_once(LONGEST - 1, 0, MARGIN);
	}
}

/* Pages of which the second cannot be read, or not written; the third neither. */
static void bad_pages(struct spoiled *m, enum spoil how)
{
	spoil_map(m, PAGES, how);
	spoil_from(m, 1);
}

/*
 * The missing page begins after byte `there` of len: with there == len the copy just fits. The
 * copy's destination (or source) lies there; the other end is whole. A write rises: it has stored
 * all bytes before the page.
 */
static void copy_across(const struct spoiled *m, u32 len, u32 there, bool write)
{
	u8 *edge = m->bytes + SPOIL_PAGE - there;
	const bool can = there == len || (!write && m->how == SPOIL_READ_ONLY);

	if (write) {
		memset(edge, FILLER, there);
		assert_int_equal(guard_write(edge, from, len), can);
		assert_memory_equal(edge, from, there);
	} else {
		assert_int_equal(guard_read(to, edge, len), can);
	}
}

static void guard_copies__missing_page_at_every_byte(void **state)
{
	static const u32 lens[] = { 1,	2,  3,	 5,   8,   15,	16,  17,   32,	 40,
				    64, 65, 100, 128, 129, 256, 300, 1024, 3100, 4096 };

	landing_install();
	for (u32 how = 0; how < SPOILS; how++) {
		struct spoiled m;

		bad_pages(&m, (enum spoil)how);
		for (u32 way = 0; way < WAYS; way++)
			for (u32 i = 0; choose_way(way) && i < ARRAY_SIZE(lens); i++)
				for (u32 there = 0; there <= lens[i];
				     there +=
				     lens[i] < 130 || there < 70 || lens[i] - there < 70 ? 1 : 37) {
					copy_across(&m, lens[i], there, true);
					copy_across(&m, lens[i], there, false);
				}
		spoil_free(&m);
	}
	assert_true(landing_count() > 1000);
}

static void words__as_atomics(void **state)
{
	u64 word = 5, original = 0;

	assert_true(guard_fetch_add(&word, ~0ull, &original));
	assert_true(word == 4 && original == 5);
	assert_true(guard_compare_swap(&word, 4, 77, &original));
	assert_true(word == 77 && original == 4);
	assert_true(guard_compare_swap(&word, 4, 78, &original));
	assert_true(word == 77 && original == 77);
	assert_true(guard_store(&word, 1ull << 63));
	assert_true(word == 1ull << 63);
}

/*
 * A compare that would not swap fails alike where nothing may be written: the processor writes in
 * any case.
 */
static void words__missing(void **state)
{
	landing_install();
	for (u32 how = 0; how < SPOILS; how++) {
		u64 original = 9, *word;
		struct spoiled m;

		bad_pages(&m, (enum spoil)how);
		word = (u64 *)(m.bytes + SPOIL_PAGE);
		assert_false(guard_fetch_add(word, 1, &original));
		assert_false(guard_compare_swap(word, 0, 1, &original));
		assert_false(guard_compare_swap(word, 0xa5a5a5a5a5a5a5a5, 1, &original));
		assert_false(guard_store(word, 1));
		assert_true(original == 9);
		assert_true(guard_store(word - 1, 3) && word[-1] == 3);
		spoil_free(&m);
	}
}

/* Other accesses are not guarded: the program ends by its own fault. */
static void guard_landing__of_other_code(void **state)
{
	struct spoiled m;
	int status;
	pid_t pid;

	landing_install();
	assert_int_equal(guard_landing((uintptr_t)memcpy, (uintptr_t)from), 0);
	assert_int_equal(guard_landing(0, 0), 0);
	bad_pages(&m, SPOIL_PROTECT);
	pid = fork();
	if (pid == 0) {
		assert_false(guard_read(to, m.bytes + SPOIL_PAGE, 8));
		to[0] = *(volatile u8 *)(m.bytes + SPOIL_PAGE);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) &&
		    (WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGBUS));
	spoil_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(guard_copies__every_length),
		cmocka_unit_test(guard_copies__missing_page_at_every_byte),
		cmocka_unit_test(words__as_atomics),
		cmocka_unit_test(words__missing),
		cmocka_unit_test(guard_landing__of_other_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
