/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * Memory regions and scatter/gather lists: the bytes that a key opens, for which QPs, with which
 * rights, and not one byte more.
 */
#include "unit.h"

#include "../../user/engine/mr.h"
#include "reference.h"

enum {
	PD = 7,
	OTHER_PD = 8,
	ALL = MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC
};

static struct mr_table table;
static u64 seed;

static u64 random_key(void *arg)
{
	return next_random(arg);
}

static int make_table(void **state)
{
	seed = 0x4d52;
	return mr_table_init(&table, random_key, &seed);
}

static int drop_table(void **state)
{
	mr_table_destroy(&table);
	return 0;
}

static struct mr *add(void *addr, u64 length, u64 iova, u32 access)
{
	struct mr *mr = NULL;

	assert_int_equal(mr_add(&table, PD, addr, length, iova, access, &mr), 0);
	assert_non_null(mr);
	return mr;
}

static void mr_add__fields(void **state)
{
	u8 bytes[16];
	struct mr *mr = add(bytes, sizeof(bytes), 0x1000, ALL);

	assert_int_not_equal(mr->key, 0);
	assert_int_equal(mr->pd, PD);
	assert_int_equal(mr->access, ALL);
	assert_int_equal(mr->length, sizeof(bytes));
	assert_ptr_equal(mr_find(&table, mr->key), mr);
	assert_null(mr_find(&table, mr->key + 1));
	assert_null(mr_find(&table, 0));
}

static void mr_add__overflow(void **state)
{
	struct mr *mr = (struct mr *)&table;
	u8 byte;

	assert_int_equal(mr_add(&table, PD, &byte, 9, ~0ull - 7, ALL, &mr), -EINVAL);
	assert_int_equal(mr_add(&table, PD, &byte, ~0ull, 1, ALL, &mr), -EINVAL);
	assert_int_equal(mr_add(&table, PD, &byte, ~0ull, 0x1000, MR_LOCAL_WRITE, &mr), -EINVAL);
	assert_int_equal(mr_add(&table, PD, (void *)(uintptr_t)(~0ull - 7), 9, 0, ALL, &mr),
			 -EINVAL);
	assert_int_equal(mr_add(&table, PD, &byte, ~0ull, 0, ALL | MR_ZERO_BASED, &mr), -EINVAL);
	assert_int_equal(table.live, 0);
}

/*
 * ibv_reg_mr(3): "If IBV_ACCESS_REMOTE_WRITE or IBV_ACCESS_REMOTE_ATOMIC is set, then
 * IBV_ACCESS_LOCAL_WRITE must be set too".
 */
static void mr_add__every_combination_of_rights(void **state)
{
	u8 byte;

	for (u32 access = 0; access < 16; access++) {
		struct mr *mr;
		bool allowed = (access & MR_LOCAL_WRITE) ||
			       !(access & (MR_REMOTE_WRITE | MR_REMOTE_ATOMIC));

		assert_int_equal(mr_add(&table, PD, &byte, 1, 0, access, &mr),
				 allowed ? 0 : -EINVAL);
	}
}

/*
 * A generator that repeats itself and gives 0: what names a key's object, its upper 24 bits, is
 * unique and not 0 all the same.
 */
static u64 poor_key(void *arg)
{
	return (*(u64 *)arg)++ / 3 % 256 << 8 | 0x5a;
}

static void mr_add__keys_are_unique(void **state)
{
	struct mr_table poor;
	u64 counter = 0;
	bool used[256] = { [0] = true };
	u8 byte;

	assert_int_equal(mr_table_init(&poor, poor_key, &counter), 0);
	for (int i = 0; i < 255; i++) {
		struct mr *mr;

		assert_int_equal(mr_add(&poor, PD, &byte, 1, 0, 0, &mr), 0);
		assert_true(mr->key >> 8 < 256);
		assert_false(used[mr->key >> 8]);
		used[mr->key >> 8] = true;
	}
	mr_table_destroy(&poor);
}

/*
 * Thousands of regions come and go in random order: each live key finds its region, each dead one
 * nothing.
 */
static void mr_remove__many(void **state)
{
	enum { SLOTS = 512, ROUNDS = 60000 };
	static struct mr *live[SLOTS];
	static u32 dead[SLOTS];
	static u8 bytes[SLOTS];
	u32 count = 0;

	memset(live, 0, sizeof(live));
	memset(dead, 0, sizeof(dead));
	for (int round = 0; round < ROUNDS; round++) {
		u32 i = (u32)(next_random(&seed) % SLOTS);

		if (live[i]) {
			dead[i] = live[i]->key;
			mr_remove(&table, live[i]);
			live[i] = NULL;
			count--;
			assert_null(mr_find(&table, dead[i]));
			assert_null(mr_translate(&table, PD, dead[i], i, 1, 0));
		} else {
			live[i] = add(&bytes[i], 1, i, ALL);
			count++;
		}
		assert_int_equal(table.live, count);
		if (round % 500 == 0)
			for (u32 k = 0; k < SLOTS; k++)
				if (live[k])
					assert_ptr_equal(
						mr_translate(&table, PD, live[k]->key, k, 1, ALL),
						&bytes[k]);
	}
	/* what came and went leaves no trace in the table's size */
	assert_true(table.mask + 1 <= 8 * SLOTS);
}

/* Keys that all fall on one slot: the chain stays whole when its middle is taken out. */
static u64 same_slot(void *arg)
{
	return (u64)(++*(u32 *)arg) << 20 | 5;
}

static void mr_remove__from_the_middle_of_a_chain(void **state)
{
	struct mr_table chained;
	struct mr *mr[12];
	u32 n = 0;
	u8 bytes[12];

	assert_int_equal(mr_table_init(&chained, same_slot, &n), 0);
	for (int i = 0; i < 12; i++)
		assert_int_equal(mr_add(&chained, PD, &bytes[i], 1, 0, 0, &mr[i]), 0);
	for (int i = 1; i < 12; i += 2) {
		u32 key = mr[i]->key;

		mr_remove(&chained, mr[i]);
		assert_null(mr_find(&chained, key));
	}
	for (int i = 0; i < 12; i += 2)
		assert_ptr_equal(mr_find(&chained, mr[i]->key), mr[i]);
	for (int i = 1; i < 12; i += 2)
		assert_int_equal(mr_add(&chained, PD, &bytes[i], 1, 0, 0, &mr[i]), 0);
	for (int i = 0; i < 12; i++)
		assert_ptr_equal(mr_find(&chained, mr[i]->key), mr[i]);
	mr_table_destroy(&chained);
}

static u64 first_slot(void *arg)
{
	return (u64)(++*(u32 *)arg) << 20;
}

/* Key 0 is never valid, also where a deregistered region was. */
static void mr_remove__leaves_nothing_under_key_0(void **state)
{
	struct mr_table chained;
	struct mr *mr[2];
	u32 n = 0;
	u8 byte;

	assert_int_equal(mr_table_init(&chained, first_slot, &n), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(mr_add(&chained, 0, &byte, 1, 0, 0, &mr[i]), 0);
	mr_remove(&chained, mr[0]);
	assert_null(mr_find(&chained, 0));
	assert_null(mr_translate(&chained, 0, 0, 0, 0, 0));
	assert_ptr_equal(mr_find(&chained, mr[1]->key), mr[1]);
	mr_table_destroy(&chained);
}

static void mr_translate__bounds(void **state)
{
	static u8 bytes[100];
	const u64 iova = 0x7f0000001000;
	static const struct {
		u64 offset, len;
		bool inside;
	} rows[] = {
		{ 0, 0, true },
		{ 0, 1, true },
		{ 0, 100, true },
		{ 0, 101, false },
		{ 99, 1, true },
		{ 99, 2, false },
		{ 100, 0, true },
		{ 100, 1, false },
		{ 101, 0, false },
		{ 50, 50, true },
		{ 50, 51, false },
		{ (u64)-1, 1, false },
		{ (u64)-1, 2, false },
		{ (u64)-1, 0, false },
		/* va + len wraps round to the region, or round to before it */
		{ 0, ~0ull, false },
		{ 50, ~0ull, false },
		{ 99, ~0ull - 98, false },
		{ 100, ~0ull - 99, false },
		{ 50, ~0ull - 0x7f0000001000 + 1, false },
		{ 0, 1ull << 32, false },
		{ 0, (1ull << 32) + 1, false },
	};
	struct mr *mr = add(bytes, sizeof(bytes), iova, ALL);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		u8 *p = mr_translate(&table, PD, mr->key, iova + rows[i].offset, rows[i].len, 0);

		if (p != (rows[i].inside ? bytes + rows[i].offset : NULL))
			fail_msg("offset %#lx length %#lx", (unsigned long)rows[i].offset,
				 (unsigned long)rows[i].len);
	}
}

/* A region that ends where the address space ends, and one from address 0. */
static void mr_translate__ends_of_the_address_space(void **state)
{
	static u8 bytes[16];
	struct mr *high = add(bytes, 15, ~0ull - 15, ALL), *zero = add(bytes, 16, 0, ALL);

	assert_ptr_equal(mr_translate(&table, PD, high->key, ~0ull - 15, 15, 0), bytes);
	assert_ptr_equal(mr_translate(&table, PD, high->key, ~0ull - 1, 1, 0), bytes + 14);
	assert_null(mr_translate(&table, PD, high->key, ~0ull - 1, 2, 0));
	assert_null(mr_translate(&table, PD, high->key, ~0ull - 1, 100, 0));
	assert_null(mr_translate(&table, PD, high->key, 0, 1, 0));
	assert_ptr_equal(mr_translate(&table, PD, zero->key, 0, 16, 0), bytes);
	assert_null(mr_translate(&table, PD, zero->key, 0, 17, 0));
	assert_null(mr_translate(&table, PD, zero->key, ~0ull, 1, 0));
	assert_null(mr_translate(&table, PD, zero->key, ~0ull, 2, 0));
}

static void mr_translate__zero_based(void **state)
{
	static u8 bytes[16];
	struct mr *mr = add(bytes, sizeof(bytes), (u64)(uintptr_t)bytes, ALL | MR_ZERO_BASED);

	assert_ptr_equal(mr_translate(&table, PD, mr->key, 0, 16, 0), bytes);
	assert_ptr_equal(mr_translate(&table, PD, mr->key, 15, 1, 0), bytes + 15);
	assert_null(mr_translate(&table, PD, mr->key, (u64)(uintptr_t)bytes, 1, 0));
}

static void mr_translate__empty_region(void **state)
{
	static u8 byte;
	struct mr *mr = add(&byte, 0, 0x1000, ALL);

	assert_ptr_equal(mr_translate(&table, PD, mr->key, 0x1000, 0, 0), &byte);
	assert_null(mr_translate(&table, PD, mr->key, 0x1000, 1, 0));
	assert_null(mr_translate(&table, PD, mr->key, 0xfff, 0, 0));
}

static void mr_translate__pd_and_key(void **state)
{
	static u8 bytes[8];
	struct mr *mr = add(bytes, sizeof(bytes), 0, ALL);

	assert_non_null(mr_translate(&table, PD, mr->key, 0, 8, ALL));
	assert_null(mr_translate(&table, OTHER_PD, mr->key, 0, 8, ALL));
	assert_null(mr_translate(&table, OTHER_PD, mr->key, 0, 0, 0));
	for (int bit = 0; bit < 32; bit++)
		assert_null(mr_translate(&table, PD, mr->key ^ 1u << bit, 0, 8, 0));
	assert_null(mr_translate(&table, PD, 0, 0, 0, 0));
}

/*
 * Every right asked of a region with every combination of rights: granted only if it has all of
 * them.
 */
static void mr_translate__every_right(void **state)
{
	static u8 bytes[8];

	for (u32 has = 0; has < 16; has++) {
		struct mr *mr;

		if (mr_add(&table, PD, bytes, sizeof(bytes), 0, has, &mr))
			continue;
		for (u32 asked = 0; asked < 16; asked++)
			assert_int_equal(!!mr_translate(&table, PD, mr->key, 0, 8, asked),
					 (has & asked) == asked);
	}
}

/* ---- windows ---- */

/*
 * Its bytes are used under its lock where several engines may bind it, and no engine waits for
 * long: a refusal releases the lock.
 */
static void mr_open__holds_a_window_of_several(void **state)
{
	static u8 bytes[64];
	struct mr *region = add(bytes, 64, 0x1000, ALL | MR_MW_BIND), *mw;
	struct mr_bytes open;

	assert_int_equal(mw_add(&table, PD, MR_WINDOW_2, &mw), 0);
	for (u32 several = 0; several < 2; several++) {
		table.shared = several;
		/* not bound */
		assert_null(mr_open(&table, PD, 7, mw->key, 0x1010, 8, MR_REMOTE_WRITE).at);
		assert_int_equal(mw->lock.taken, 0);
		assert_int_equal(
			mw_bind(&table, mw, mw->key, region->key, 0x1010, 16, MR_REMOTE_WRITE, 7),
			0);
		/* and stays */
		assert_int_equal(mw_bind(&table, mw, mw->key, region->key, 0x1000, 64,
					 MR_REMOTE_READ | MR_REMOTE_WRITE, 7),
				 -EINVAL);
		assert_null(mr_open(&table, PD, 8, mw->key, 0x1010, 8, MR_REMOTE_WRITE).at);
		assert_null(mr_open(&table, PD, 7, mw->key, 0x1010, 17, MR_REMOTE_WRITE).at);
		assert_null(mr_open(&table, OTHER_PD, 7, mw->key, 0x1010, 8, MR_REMOTE_WRITE).at);
		assert_null(mr_open(&table, PD, 7, mw->key, 0x1010, 8, MR_REMOTE_READ).at);
		assert_null(mr_open(&table, PD, 7, mw->key ^ 1, 0x1010, 8, MR_REMOTE_WRITE).at);
		assert_null(mr_translate(&table, PD, mw->key, 0x1010, 8, MR_REMOTE_WRITE));
		assert_true(mr_allows(&table, PD, 7, mw->key, 0x1010, 16, MR_REMOTE_WRITE));
		assert_true(mr_allows_all(&table, PD, 7, mw->key, MR_REMOTE_WRITE));
		assert_false(mr_allows_all(&table, PD, 8, mw->key, MR_REMOTE_WRITE));
		assert_false(mr_allows_all(&table, PD, 7, mw->key, MR_REMOTE_READ));
		assert_int_equal(mw->lock.taken, 0);

		open = mr_open(&table, PD, 7, mw->key, 0x1012, 8, MR_REMOTE_WRITE);
		assert_ptr_equal(open.at, bytes + 0x12);
		assert_ptr_equal(open.held, several ? mw : NULL);
		assert_int_equal(mw->lock.taken, several);
		mr_close(open);
		assert_int_equal(mw->lock.taken, 0);

		/* a region cannot be bound */
		open = mr_open(&table, PD, 7, region->key, 0x1012, 8, MR_REMOTE_WRITE);
		assert_ptr_equal(open.at, bytes + 0x12);
		assert_null(open.held);
		assert_int_equal(mw_invalidate(&table, PD, mw->key, 8), -EINVAL);
		assert_int_equal(mw_invalidate(&table, PD, mw->key, 7), 0);
		assert_int_equal(region->windows, 0);
		assert_int_equal(mw->lock.taken, 0);
	}
	table.shared = false;
}

/* ---- lists ---- */

static void sge_length__exceeds_32_bits(void **state)
{
	const struct sge list[3] = { { .length = 0xffffffff },
				     { .length = 0xffffffff },
				     { .length = 2 } };

	assert_int_equal(sge_length(list, 0), 0);
	assert_int_equal(sge_length(list, 1), 0xffffffff);
	assert_int_equal(sge_length(list, 3), 0x200000000ull);
}

/*
 * A list of pieces out of order with empty ones between, and the bytes in the order in which the
 * list has them.
 */
enum { PIECES = 6, TOTAL = 5 + 0 + 1 + 17 + 0 + 9 };
static u8 memory[64];
static struct sge pieces[PIECES];
static u8 in_order[TOTAL];

static void make_pieces(u32 access)
{
	static const struct {
		u32 offset, length;
	} at[PIECES] = { { 40, 5 }, { 0, 0 }, { 63, 1 }, { 10, 17 }, { 64, 0 }, { 0, 9 } };
	struct mr *a = add(memory, 64, 0x5000, access),
		  *b = add(memory, 64, 0, access | MR_ZERO_BASED);
	u8 *out = in_order;

	fill_random(&seed, memory, sizeof(memory));
	for (int i = 0; i < PIECES; i++) {
		pieces[i] = (struct sge){ (i % 2 ? 0 : 0x5000) + at[i].offset, at[i].length,
					  (i % 2 ? b : a)->key };
		memcpy(out, memory + at[i].offset, at[i].length);
		out += at[i].length;
	}
	/* an element of no bytes is skipped whatever its key */
	pieces[1].lkey = 0xbad;
}

static void sge_gather__every_range(void **state)
{
	make_pieces(0);
	for (u32 offset = 0; offset <= TOTAL; offset++)
		for (u32 len = 0; len <= TOTAL - offset; len++) {
			u8 out[TOTAL + 1];

			memset(out, 0xa5, sizeof(out));
			assert_true(sge_gather(&table, PD, pieces, PIECES, offset, out, len));
			assert_memory_equal(out, in_order + offset, len);
			for (u32 i = len; i < sizeof(out); i++)
				assert_int_equal(out[i], 0xa5);
		}
}

static void sge_gather__beyond_the_list(void **state)
{
	u8 out[TOTAL + 8];

	make_pieces(0);
	assert_false(sge_gather(&table, PD, pieces, PIECES, 0, out, TOTAL + 1));
	assert_false(sge_gather(&table, PD, pieces, PIECES, TOTAL, out, 1));
	assert_false(sge_gather(&table, PD, pieces, PIECES, ~0ull, out, 1));
	assert_false(sge_gather(&table, PD, pieces, PIECES, 1ull << 32, out, 1));
	assert_false(sge_gather(&table, PD, pieces, 0, 0, out, 1));
	assert_true(sge_gather(&table, PD, pieces, 0, 0, out, 0));
}

static void sge_gather__checks_the_pieces_it_reads(void **state)
{
	u8 out[TOTAL];

	make_pieces(0);
	assert_false(sge_gather(&table, OTHER_PD, pieces, PIECES, 0, out, TOTAL));
	pieces[3].lkey ^= 1;
	assert_false(sge_gather(&table, PD, pieces, PIECES, 0, out, TOTAL));
	assert_false(sge_gather(&table, PD, pieces, PIECES, 0, out, 7));
	assert_true(sge_gather(&table, PD, pieces, PIECES, 0, out, 6));
	assert_true(sge_gather(&table, PD, pieces, PIECES, 5 + 1 + 17, out, 9));
	pieces[3].lkey ^= 1;
	pieces[3].addr = 64 - 16; /* its last byte is one after the region */
	assert_false(sge_gather(&table, PD, pieces, PIECES, 0, out, TOTAL));
}

/* The bytes lie in two places, cut somewhere. */
static bool scatter(u32 offset, const u8 *data, u32 len)
{
	const u32 cut = (u32)next_random(&seed) % (len + 1);
	u8 *first = exact_copy(data, cut), *rest = exact_copy(data + cut, len - cut);
	const struct guard_bytes bytes = { .at = first, .more = rest, .len = cut };
	const bool done = sge_scatter(&table, PD, pieces, PIECES, offset, &bytes, len);

	free(first);
	free(rest);
	return done;
}

static void sge_scatter__every_range(void **state)
{
	make_pieces(MR_LOCAL_WRITE);
	for (u32 offset = 0; offset <= TOTAL; offset++)
		for (u32 len = 0; len <= TOTAL - offset; len++) {
			u8 data[TOTAL], before[64], all[TOTAL];

			fill_random(&seed, data, sizeof(data));
			assert_true(sge_gather(&table, PD, pieces, PIECES, 0, all, TOTAL));
			memcpy(before, memory, sizeof(before));
			assert_true(scatter(offset, data, len));
			memcpy(all + offset, data, len);
			assert_true(sge_gather(&table, PD, pieces, PIECES, 0, in_order, TOTAL));
			assert_memory_equal(in_order, all, TOTAL);
			/* bytes that no element names: 9, 27..39, 45..62 */
			assert_int_equal(memory[9], before[9]);
			assert_memory_equal(memory + 27, before + 27, 13);
			assert_memory_equal(memory + 45, before + 45, 18);
		}
}

static void sge_scatter__beyond_the_list(void **state)
{
	const u8 data[TOTAL + 1] = { 0 };
	const struct guard_bytes bytes = { .at = data, .len = sizeof(data) };

	make_pieces(MR_LOCAL_WRITE);
	assert_false(sge_scatter(&table, PD, pieces, PIECES, 0, &bytes, TOTAL + 1));
	assert_false(sge_scatter(&table, PD, pieces, PIECES, TOTAL, &bytes, 1));
	assert_false(sge_scatter(&table, OTHER_PD, pieces, PIECES, 0, &bytes, 1));
}

static void sge_scatter__needs_local_write(void **state)
{
	u8 data[TOTAL] = { 0 }, before[64];
	const struct guard_bytes bytes = { .at = data, .len = sizeof(data) };

	make_pieces(MR_REMOTE_READ);
	memcpy(before, memory, sizeof(before));
	assert_false(sge_scatter(&table, PD, pieces, PIECES, 0, &bytes, TOTAL));
	assert_memory_equal(memory, before, sizeof(before));
}

int main(void)
{
#define WITH_TABLE(f) cmocka_unit_test_setup_teardown(f, make_table, drop_table)
	const struct CMUnitTest tests[] = {
		WITH_TABLE(mr_add__fields),
		WITH_TABLE(mr_add__overflow),
		WITH_TABLE(mr_add__every_combination_of_rights),
		cmocka_unit_test(mr_add__keys_are_unique),
		WITH_TABLE(mr_remove__many),
		cmocka_unit_test(mr_remove__from_the_middle_of_a_chain),
		cmocka_unit_test(mr_remove__leaves_nothing_under_key_0),
		WITH_TABLE(mr_translate__bounds),
		WITH_TABLE(mr_translate__ends_of_the_address_space),
		WITH_TABLE(mr_translate__zero_based),
		WITH_TABLE(mr_translate__empty_region),
		WITH_TABLE(mr_translate__pd_and_key),
		WITH_TABLE(mr_translate__every_right),
		WITH_TABLE(mr_open__holds_a_window_of_several),
		cmocka_unit_test(sge_length__exceeds_32_bits),
		WITH_TABLE(sge_gather__every_range),
		WITH_TABLE(sge_gather__beyond_the_list),
		WITH_TABLE(sge_gather__checks_the_pieces_it_reads),
		WITH_TABLE(sge_scatter__every_range),
		WITH_TABLE(sge_scatter__beyond_the_list),
		WITH_TABLE(sge_scatter__needs_local_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
