/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* Which clients have members of which groups (user/broker/groups.c), against a plain table. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../user/broker/groups.h"

#define ADDRESSES 8
#define CLIENTS	  40
#define FIRST	  17

static struct groups all;

static struct gid address(u32 n)
{
	/* some in one bucket */
	struct gid g = { .raw = { 0xff, 0x15, [12] = (u8)(n / 2), [15] = (u8)(n % 2) } };

	return g;
}

static int teardown(void **state)
{
	groups_free(&all);
	return 0;
}

static void members__in_order_the_first_last(void **state)
{
	const struct gid a = address(0), b = address(2);
	struct xroce_members m;

	assert_false(groups_members(&all, &a, FIRST, &m));
	assert_int_equal(groups_enter(&all, &a, FIRST), 0);
	assert_int_equal(groups_enter(&all, &a, FIRST), -EEXIST);
	assert_int_equal(groups_enter(&all, &a, 3), 0);
	assert_int_equal(groups_enter(&all, &a, 9), 0);
	assert_true(groups_members(&all, &a, FIRST, &m));
	assert_int_equal(m.num, 3);
	assert_int_equal(m.client[2], FIRST);
	assert_int_equal(m.client[0] + m.client[1], 12);
	/* not of another group, nor without members */
	assert_int_equal(groups_enter(&all, &b, 4), 0);
	assert_true(groups_members(&all, &b, FIRST, &m));
	assert_int_equal(m.num, 1);
	assert_int_equal(m.client[0], 4);
	assert_int_equal(groups_leave(&all, &a, FIRST), 0);
	assert_int_equal(groups_leave(&all, &a, FIRST), -ENOENT);
	assert_true(groups_members(&all, &a, FIRST, &m));
	assert_int_equal(m.num, 2);
	assert_int_equal(groups_leave(&all, &a, 3), 0);
	assert_int_equal(groups_leave(&all, &a, 9), 0);
	assert_false(groups_members(&all, &a, FIRST, &m));
	assert_int_equal(all.num, 1);
	assert_int_equal(groups_leave(&all, &b, 4), 0);
}

static void limits__of_clients_and_groups(void **state)
{
	struct gid a = address(0);

	for (u32 c = 0; c < XROCE_GROUP_CLIENTS; c++)
		assert_int_equal(groups_enter(&all, &a, c), 0);
	assert_int_equal(groups_enter(&all, &a, XROCE_GROUP_CLIENTS), -ENOSPC);
	for (u32 i = 1; i < XROCE_MAX_MEMBERS; i++) {
		a.raw[8] = (u8)(i >> 8);
		a.raw[15] = (u8)i;
		assert_int_equal(groups_enter(&all, &a, 5), 0);
	}
	a.raw[7] = 1;
	assert_int_equal(groups_enter(&all, &a, 5), -ENOSPC);
	while (groups_next(&all, 5, &a))
		assert_int_equal(groups_leave(&all, &a, 5), 0);
	a = address(0);
	for (u32 c = 0; c < XROCE_GROUP_CLIENTS; c++)
		assert_int_equal(groups_leave(&all, &a, c), c == 5 ? -ENOENT : 0);
	assert_int_equal(all.num, 0);
}

/* 40,000 asks, and clients that end. */
static void asks__against_a_table(void **state)
{
	static bool has[CLIENTS][ADDRESSES];
	unsigned int seed = 7;

	for (u32 i = 0; i < 40000; i++) {
		const u32 c = (u32)rand_r(&seed) % CLIENTS, n = (u32)rand_r(&seed) % ADDRESSES;
		struct gid a = address(n);
		struct xroce_members m;
		u32 num = 0, found = 0;
		int want;

		for (u32 k = 0; k < CLIENTS; k++)
			num += has[k][n];
		if (rand_r(&seed) % 64 == 0) {
			while (groups_next(&all, c, &a))
				assert_int_equal(groups_leave(&all, &a, c), 0);
			memset(has[c], 0, sizeof(has[c]));
			continue;
		}
		if (rand_r(&seed) % 3) {
			want = has[c][n]		   ? -EEXIST :
			       num == XROCE_GROUP_CLIENTS ? -ENOSPC :
							     0;
			assert_int_equal(groups_enter(&all, &a, c), want);
			has[c][n] |= !want;
			num += !want;
		} else {
			assert_int_equal(groups_leave(&all, &a, c), has[c][n] ? 0 : -ENOENT);
			num -= has[c][n];
			has[c][n] = false;
		}
		assert_int_equal(groups_members(&all, &a, FIRST, &m), num != 0);
		for (u32 k = 0; num && k < m.num; k++)
			found += has[m.client[k]][n];
		assert_int_equal(found, num);
		assert_true(!num || m.num == num);
		assert_true(!num || !has[FIRST][n] || m.client[num - 1] == FIRST);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(members__in_order_the_first_last, teardown),
		cmocka_unit_test_teardown(limits__of_clients_and_groups, teardown),
		cmocka_unit_test_teardown(asks__against_a_table, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
