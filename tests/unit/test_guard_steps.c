/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* tier: long all XROCE_STEPS_ALL=1 */
/*
 * The guarded copies as other threads see them. The processor stops after each instruction of a
 * copy (by its trap flag; SIGTRAP). Then a write must have stored aligned units, each once and in
 * rising order. The memory of a read is overwritten after each instruction: each aligned word in
 * the frame must be of one moment.
 */
#define _GNU_SOURCE
#include "unit.h"

#if defined(__x86_64__)

#include <signal.h>
#include <ucontext.h>

#include "../../user/engine/guard.h"

#define LONGEST	  4096u
#define MARGIN	  64u
#define FILLER	  0xee
#define WORD	  8u
#define TRAP_FLAG 0x100

static u8 app_memory[LONGEST + 2 * MARGIN] __attribute__((aligned(64)));
static u8 frame[LONGEST + 2 * MARGIN] __attribute__((aligned(64)));
static u8 filler[sizeof(app_memory)];

/* ---- stepping ---- */

/* The copy that is stepped through: bytes [app, app + len) of app_memory. */
static struct {
	void (*look)(void);
	volatile bool on;
	u32 app, len;
	u32 stored;	   /* of a WRITE: bytes so far */
	u8 version;	   /* of a READ: what all bytes are */
	const char *fault; /* the first one */
} copy;

static void handle_step(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	if (!copy.on)
		uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	else
		copy.look();
}

static int install(void **state)
{
	struct sigaction action = { .sa_sigaction = handle_step, .sa_flags = SA_SIGINFO };

	memset(filler, FILLER, sizeof(filler));
	return sigaction(SIGTRAP, &action, NULL);
}

/* After each instruction from here on, copy.look() is called, until steps_end(). */
static inline void steps_begin(void)
{
	copy.on = true;
	__asm__ volatile("leaq -128(%%rsp), %%rsp\n\t" /* the red zone */
			 "pushfq\n\t"
			 "orq %0, (%%rsp)\n\t"
			 "popfq\n\t"
			 "leaq 128(%%rsp), %%rsp" ::"i"(TRAP_FLAG)
			 : "memory", "cc");
}

static inline void steps_end(void)
{
	copy.on = false;
	__asm__ volatile("nop" ::: "memory");
}

/* ---- the copies ---- */

typedef bool copies(void *dst, const void *src, size_t len);

static bool units_read(void *dst, const void *src, size_t len)
{
	guard_read_units(dst, src, len);
	return true;
}

static bool units_write(void *dst, const void *src, size_t len)
{
	guard_write_units(dst, src, len);
	return true;
}

static const struct way {
	const char *name;
	copies *read, *write;
	bool avx;
} ways[] = {
	{ "units in C", units_read, units_write, false },
	{ "as built", guard_read, guard_write, false },
	{ "with AVX", guard_read, guard_write, true },
};

#ifdef GUARD_BY_ADDRESS
extern u8 guard_has_avx __attribute__((visibility("hidden")));

static bool choose_way(const struct way *way)
{
	guard_has_avx = way->avx;
	return !way->avx || __builtin_cpu_supports("avx2");
}
#else
static bool choose_way(const struct way *way)
{
	return !way->avx;
}
#endif

/* Is there an aligned unit of the copy's, of this many bytes, around this place but not at it? */
static bool is_cut(u32 at, u32 unit)
{
	const u32 begin = at & ~(unit - 1);

	return at != begin && begin >= copy.app && begin + unit <= copy.app + copy.len;
}

/*
 * All bytes are filler but for the bytes that the last instruction stored, which follow all bytes
 * stored before. They become filler again, so that a second store of a byte is seen.
 */
static void look_at_write(void)
{
	const u32 begin = copy.app + copy.stored;
	u32 end = begin, n;

	while (end < copy.app + copy.len && app_memory[end] != FILLER)
		end++;
	n = end - begin;
	if (n && memcmp(app_memory + begin, frame + MARGIN + copy.stored, n) != 0)
		copy.fault = "other bytes";
	memset(app_memory + begin, FILLER, n);
	if (memcmp(app_memory, filler, sizeof(filler)) != 0)
		copy.fault = "a byte out of its order, or stored twice";
	if (is_cut(end, 8) || is_cut(end, 4) || is_cut(end, 2))
		copy.fault = "a part of a word";
	if (n && ((n & (n - 1)) || begin % n))
		copy.fault = "a store that is not aligned: of two parts, in any order";
	if (n > 16 && end == copy.app + copy.len)
		copy.fault = "the last byte by a store that no processor calls atomic";
	copy.stored += n;
	if (copy.fault)
		copy.on = false;
}

static void look_at_read(void)
{
	copy.version = copy.version % 255 + 1; /* never 0 */
	memset(app_memory + copy.app, copy.version, copy.len);
}

static void copy_begin(void (*look)(void), u32 app, u32 len)
{
	memset(&copy, 0, sizeof(copy));
	copy.look = look;
	copy.app = app;
	copy.len = len;
}

static void check(const struct way *way, const char *what)
{
	if (copy.fault)
		fail_msg("%s %s: %u bytes to %u modulo 64: %s at byte %u", way->name, what,
			 copy.len, copy.app % 64, copy.fault, copy.stored);
}

static void fill_frame(void)
{
	for (u32 i = 0; i < sizeof(frame); i++)
		frame[i] = (u8)(i * 7 % FILLER); /* never filler */
}

static void write_once(const struct way *way, u32 app, u32 len)
{
	bool done;

	memset(app_memory, FILLER, sizeof(app_memory));
	copy_begin(look_at_write, app, len);
	steps_begin();
	done = way->write(app_memory + app, frame + MARGIN, len);
	steps_end();
	check(way, "write");
	assert_true(done);
	assert_int_equal(copy.stored, len);
}

/* A unit of which the bytes in the frame are not alike. */
static const char *torn_unit(const u8 *bytes, u32 unit)
{
	for (u32 at = (copy.app + unit - 1) & ~(unit - 1); at + unit <= copy.app + copy.len;
	     at += unit)
		for (u32 i = 1; i < unit; i++)
			if (bytes[at - copy.app + i] != bytes[at - copy.app])
				return "a word of two moments";
	return NULL;
}

static void read_once(const struct way *way, u32 app, u32 len)
{
	u8 *to = frame + 54 + len % 2;
	bool done;

	memset(frame, 0, sizeof(frame));
	copy_begin(look_at_read, app, len);
	steps_begin();
	done = way->read(to, app_memory + app, len);
	steps_end();
	for (u32 unit = WORD; unit > 1 && !copy.fault; unit /= 2)
		copy.fault = torn_unit(to, unit);
	check(way, "read");
	assert_true(done);
	assert_true(!len || to[len - 1] != 0);
}

/*
 * A step takes some 25 us of a guest. The core tier tries lengths and places that differ in their
 * head or in their tail, test_guard.c all of them at the end of a page.
 */
static bool is_tried(const struct way *way, u32 at, u32 len)
{
	if (getenv("XROCE_STEPS_ALL"))
		return true;
	if (way->read == units_read)
		return at < WORD && len < 18 && len % 5 != 4;
	if (at == 0)
		return way->avx ? len > 64 && len % 16 == 1 : len <= 64 || len % 32 == 3;
	if (at < 16)
		return !way->avx && (len < 8 || len == 13 || len == 33);
	return at == 16 && way->avx && len % 32 == 16 && len > 64;
}

static void every_copy(void (*once)(const struct way *way, u32 app, u32 len))
{
	fill_frame();
	for (u32 w = 0; w < ARRAY_SIZE(ways); w++) {
		if (!choose_way(&ways[w]))
			continue;
		for (u32 at = 0; at < 32; at++)
			for (u32 len = 0; len < 200; len++)
				if (is_tried(&ways[w], at, len))
					once(&ways[w], MARGIN / 2 + at, len);
		once(&ways[w], 13, ways[w].avx ? LONGEST : 303);
	}
}

static void guard_write__rises_by_whole_units(void **state)
{
	every_copy(write_once);
}

static void guard_read__whole_units(void **state)
{
	every_copy(read_once);
}

/* The packet's second buffer begins at each byte of the copy. */
static void guard_write_from__two_places(void **state)
{
	u8 *more = exact_copy(frame, sizeof(frame));

	fill_frame();
	for (u32 len = 1; len < 40; len++)
		for (u32 cut = 0; cut <= len; cut++)
			for (u32 at = 0; at < 8; at++) {
				if (len != 5 + 2 * at && !getenv("XROCE_STEPS_ALL"))
					continue;
				struct guard_bytes src = { .at = frame, .len = MARGIN + cut };
				bool done;

				memcpy(more, frame + src.len, sizeof(frame) - src.len);
				src.more = more;
				memset(app_memory, FILLER, sizeof(app_memory));
				copy_begin(look_at_write, MARGIN + at, len);
				steps_begin();
				done = guard_write_from(app_memory + copy.app, &src, MARGIN, len);
				steps_end();
				check(&ways[1], "across");
				assert_true(done);
				assert_int_equal(copy.stored, len);
			}
	free(more);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(guard_write__rises_by_whole_units),
		cmocka_unit_test(guard_read__whole_units),
		cmocka_unit_test(guard_write_from__two_places),
	};

	return cmocka_run_group_tests(tests, install, NULL);
}

#else

/* Other processors are stepped by a debugger alone. */
int main(void)
{
	return 0;
}

#endif
