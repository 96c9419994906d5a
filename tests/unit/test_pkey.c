/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* The P_Key table: valid additions, lookups, and answers of another process. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "../../user/engine/pkey.h"

static void pkey_table_add__until_it_is_full(void **state)
{
	struct pkey_table t = PKEY_TABLE_DEFAULT;

	for (u32 i = 1; i < XROCE_MAX_PKEY; i++) {
		assert_int_equal(pkey_table_add(&t, (u16)i), 0);
		assert_true(pkey_table_valid(&t));
	}
	assert_int_equal(t.num, XROCE_MAX_PKEY);
	assert_int_equal(pkey_table_add(&t, 0x1234), -ENOSPC);
	assert_int_equal(t.num, XROCE_MAX_PKEY);
}

static void pkey_table_add__refuses(void **state)
{
	struct pkey_table t = PKEY_TABLE_DEFAULT;

	assert_int_equal(pkey_table_add(&t, 0), -EINVAL);
	assert_int_equal(pkey_table_add(&t, 0x8000), -EINVAL);
	assert_int_equal(pkey_table_add(&t, 0xffff), -EEXIST);
	assert_int_equal(pkey_table_add(&t, 0x8001), 0);
	assert_int_equal(pkey_table_add(&t, 0x8001), -EEXIST);
	/* both members of a partition have their own entries */
	assert_int_equal(pkey_table_add(&t, 0x0001), 0);
	assert_int_equal(pkey_table_add(&t, 0x7fff), 0);
	assert_int_equal(t.num, 4);
}

static void pkey_table_find__by_membership(void **state)
{
	const struct pkey_table t = { 3, { 0xffff, 0x8001, 0x0002 } };

	assert_int_equal(pkey_table_find(&t, 0xffff), 0);
	assert_int_equal(pkey_table_find(&t, 0x8001), 1);
	assert_int_equal(pkey_table_find(&t, 0x0002), 2);
	assert_int_equal(pkey_table_find(&t, 0x0001), -1);
	assert_int_equal(pkey_table_find(&t, 0x8002), -1);
	assert_int_equal(pkey_table_find(&t, 0), -1); /* after the last */
}

static void pkey_table_valid__rows(void **state)
{
	static const struct {
		struct pkey_table t;
		bool valid;
	} rows[] = {
		{ { 1, { 0xffff } }, true },
		{ { 3, { 0xffff, 0x8001, 0x0001 } }, true },
		{ { 0, { 0 } }, false },
		{ { XROCE_MAX_PKEY + 1, { 0xffff } }, false },
		{ { 1, { 0x7fff } }, false },
		{ { 2, { 0x8001, 0xffff } }, false },
		{ { 2, { 0xffff, 0x8000 } }, false },
		{ { 3, { 0xffff, 0x8001, 0x8001 } }, false },
		{ { 1, { 0xffff, 0x8001 } }, false }, /* after the last is nothing */
	};

	for (u32 i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(pkey_table_valid(&rows[i].t), rows[i].valid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pkey_table_add__until_it_is_full),
		cmocka_unit_test(pkey_table_add__refuses),
		cmocka_unit_test(pkey_table_find__by_membership),
		cmocka_unit_test(pkey_table_valid__rows),
	};

	return cmocka_run_group_tests_name("pkey", tests, NULL, NULL);
}
