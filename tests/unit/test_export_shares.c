/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * Bounded numbers of series: the displayed processes, and the rest. Also the addresses where the
 * exporter may listen.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "../sim/rng.h"
#include "unit.h"

#include "../../user/os/netdev.h"
#include "../../user/tools/export/listen.h"
#include "../../user/tools/export/shares.h"

static void put(struct shares *s, u32 ifindex, u32 pid, u64 a, u64 b)
{
	const struct share_key key = { .ifindex = ifindex, .pid = pid };
	const u64 values[2] = { a, b };

	assert_int_equal(shares_put(s, &key, s->now.num, values, a), 0);
}

static const struct share *find(const struct shares *s, u32 pid)
{
	for (u32 i = 0; i < s->now.num; i++)
		if (s->now.items[i].key.pid == pid)
			return &s->now.items[i];
	return NULL;
}

static void settle(struct shares *s)
{
	assert_int_equal(shares_settle(s, 1), 0);
}

static void shares__few_are_all_shown(void **state)
{
	struct shares s;

	shares_begin(&s, 2, 3);
	shares_round(&s);
	put(&s, 1, 30, 5, 50);
	put(&s, 1, 10, 0, 0);
	put(&s, 2, 20, 7, 70);
	settle(&s);
	assert_int_equal(s.now.num, 3);
	/* in the order of their keys, each with its own values and place */
	assert_int_equal(s.now.items[0].key.pid, 10);
	assert_int_equal(s.now.items[1].key.pid, 30);
	assert_int_equal(s.now.items[1].values[1], 50);
	assert_int_equal(s.now.items[1].nth, 0);
	for (u32 i = 0; i < 3; i++)
		assert_true(s.now.items[i].is_shown);
	assert_null(shares_rest(&s, 1));
	shares_end(&s);
}

static void shares__the_busiest_are_shown(void **state)
{
	struct shares s;

	shares_begin(&s, 2, 2);
	shares_round(&s);
	for (u32 pid = 1; pid <= 5; pid++)
		put(&s, 1, pid, pid * 10, pid);
	settle(&s);
	for (u32 pid = 1; pid <= 5; pid++)
		assert_int_equal(find(&s, pid)->is_shown, pid >= 4);
	assert_int_equal(shares_rest(&s, 1)->values[0], 10 + 20 + 30);
	assert_int_equal(shares_rest(&s, 1)->values[1], 1 + 2 + 3);
	assert_int_equal(shares_rest(&s, 1)->others, 3);
	assert_null(shares_rest(&s, 2));
	shares_end(&s);
}

/* A little busier takes no place, far busier does; the rest loses nothing by it. */
static void shares__a_place_is_kept(void **state)
{
	struct shares s;

	shares_begin(&s, 2, 1);
	shares_round(&s);
	put(&s, 1, 1, 100, 0);
	put(&s, 1, 2, 90, 0);
	settle(&s);
	assert_true(find(&s, 1)->is_shown);
	assert_int_equal(shares_rest(&s, 1)->values[0], 90);
	shares_round(&s);
	put(&s, 1, 1, 110, 0);
	put(&s, 1, 2, 190, 0);
	settle(&s);
	assert_true(find(&s, 1)->is_shown);
	assert_int_equal(shares_rest(&s, 1)->values[0], 190);
	shares_round(&s);
	put(&s, 1, 1, 110, 0);
	put(&s, 1, 2, 1190, 0);
	settle(&s);
	assert_true(find(&s, 2)->is_shown);
	assert_false(find(&s, 1)->is_shown);
	/* its present counts are its own; the other had counted nothing more */
	assert_int_equal(shares_rest(&s, 1)->values[0], 190);
	/* and a process that was busy once is not after some time */
	for (u32 i = 0; i < 20; i++) {
		shares_round(&s);
		put(&s, 1, 1, 110 + 20 * i, 0);
		put(&s, 1, 2, 1190, 0);
		assert_int_equal(shares_settle(&s, SHARES_FADE_S), 0);
	}
	assert_true(find(&s, 1)->is_shown);
	shares_end(&s);
}

static void shares__of_one_key_are_one(void **state)
{
	struct shares s;

	shares_begin(&s, 2, 8);
	shares_round(&s);
	put(&s, 1, 7, 1, ~0ull - 1);
	put(&s, 1, 8, 9, 9);
	put(&s, 1, 7, 2, 5);
	settle(&s);
	assert_int_equal(s.now.num, 2);
	assert_int_equal(find(&s, 7)->values[0], 3);
	assert_true(find(&s, 7)->values[1] == ~0ull);
	assert_int_equal(find(&s, 7)->nth, 0);
	assert_int_equal(find(&s, 8)->values[1], 9);
	shares_end(&s);
}

/* An exited process removes nothing from the rest, and one of another device is not in it. */
static void shares__an_end(void **state)
{
	struct shares s;

	shares_begin(&s, 2, 0);
	shares_round(&s);
	put(&s, 1, 1, 5, 5);
	put(&s, 2, 2, 6, 6);
	settle(&s);
	shares_round(&s);
	settle(&s);
	assert_int_equal(shares_rest(&s, 1)->values[0], 5);
	assert_int_equal(shares_rest(&s, 1)->others, 0);
	assert_int_equal(shares_rest(&s, 2)->values[0], 6);
	/* a new one of the same number begins at 0 */
	shares_round(&s);
	put(&s, 1, 1, 2, 2);
	settle(&s);
	assert_int_equal(shares_rest(&s, 1)->values[0], 7);
	shares_forget(&s, 1);
	assert_null(shares_rest(&s, 1));
	assert_int_equal(shares_rest(&s, 2)->values[0], 6);
	shares_end(&s);
}

/*
 * Things come, count and go as a seed says: never more are shown than may be, and a rest is exactly
 * what things have counted in the rounds in which they were not shown.
 */
static void shares__rests_are_what_was_not_shown(void **state)
{
	enum { THINGS = 40, ROUNDS = 400, MOST = 7 };
	struct rng rng = { .state = 4711 };
	u64 value[THINGS] = { 0 }, before[THINGS] = { 0 }, rest[3] = { 0 };
	bool lives[THINGS] = { false };
	u32 moves = 0, was_shown = 0;
	struct shares s;

	shares_begin(&s, 2, MOST);
	for (u32 round = 0; round < ROUNDS; round++) {
		u32 shown = 0, alive = 0, pids = 0;

		shares_round(&s);
		for (u32 i = 0; i < THINGS; i++) {
			if (rng_below(&rng, 16) == 0) {
				lives[i] = !lives[i];
				value[i] = before[i] = 0;
			}
			if (!lives[i])
				continue;
			value[i] += rng_below(&rng, 1u << rng_below(&rng, 20));
			put(&s, 1 + i % 2, i, value[i], 2 * value[i]);
			alive++;
		}
		settle(&s);
		assert_int_equal(s.now.num, alive);
		for (u32 i = 0; i < s.now.num; i++) {
			const struct share *one = &s.now.items[i];
			const u32 pid = one->key.pid;

			assert_true(one->values[0] == value[pid]);
			shown += one->is_shown;
			pids = one->is_shown ? pids * 31 + pid : pids;
			if (!one->is_shown)
				rest[one->key.ifindex] += value[pid] - before[pid];
			before[pid] = value[pid];
		}
		assert_int_equal(shown, alive < MOST ? alive : MOST);
		moves += pids != was_shown;
		was_shown = pids;
		for (u32 d = 1; d <= 2; d++) {
			const struct share_rest *r = shares_rest(&s, d);

			assert_true(r ? r->values[0] == rest[d] : rest[d] == 0);
			assert_true(!r || r->values[1] == 2 * rest[d]);
		}
	}
	/* others were shown now and then */
	assert_in_range(moves, ROUNDS / 20, ROUNDS);
	shares_end(&s);
}

static void counters_grow__falls_add_nothing(void **state)
{
	u64 total[4] = { 10, 10, ~0ull - 1, 0 };
	const u64 before[4] = { 5, 9, 0, 3 }, now[4] = { 7, 2, 100, 3 };

	counters_grow(total, before, now, 4);
	assert_int_equal(total[0], 12);
	assert_int_equal(total[1], 10);
	assert_true(total[2] == ~0ull);
	assert_int_equal(total[3], 0);
}

/* ---- where it listens ---- */

int netdev_find(const char *name, struct netdev *dev)
{
	return -ENODEV;
}

static void listen_parse__addresses(void **state)
{
	static const struct {
		const char *text;
		int family;
		u32 port;
	} good[] = {
		{ "127.0.0.1", AF_INET, 9791 },	  { "0.0.0.0:1", AF_INET, 1 },
		{ "192.0.2.1:65535", AF_INET, 65535 }, { "[::1]", AF_INET6, 9791 },
		{ "[::]:80", AF_INET6, 80 },	  { "[fe80::1%lo]:9", AF_INET6, 9 },
		{ "127.0.0.1:0", AF_INET, 0 },	  { "/run/x.sock", AF_UNIX, 0 },
		{ "./x", AF_UNIX, 0 },		  { "127.0.0.1:0x50", AF_INET, 80 },
	};
	static const char *const bad[] = {
		"", ":", ":80", "80", "localhost", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
		"127.0.0.1:+1", "127.0.0.1: 1", "127.0.0.1:1x", "127.0.0.1:0x10000", "127.0.0.256",
		"::1", "[::1", "::1]", "[::1]x", "[::1]:", "[::1]80", "[]", "[127.0.0.1]",
		"[fe80::1%nosuch]", "[::1%]", "1.2.3.4:5:6",
	};
	struct listen_at at;
	char path[200];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		if (listen_parse(good[i].text, &at))
			fail_msg("refused: %s", good[i].text);
		assert_int_equal(at.addr.ss_family, good[i].family);
		if (good[i].family == AF_INET)
			assert_int_equal(ntohs(((struct sockaddr_in *)&at.addr)->sin_port),
					 good[i].port);
		else if (good[i].family == AF_INET6)
			assert_int_equal(ntohs(((struct sockaddr_in6 *)&at.addr)->sin6_port),
					 good[i].port);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (!listen_parse(bad[i], &at))
			fail_msg("taken: %s", bad[i]);
	memset(path, '/', sizeof(path));
	path[107] = 0;
	assert_int_equal(listen_parse(path, &at), 0);
	path[107] = '/';
	path[108] = 0;
	assert_int_equal(listen_parse(path, &at), -EINVAL);
	memset(path, '1', 199);
	path[199] = 0;
	assert_int_equal(listen_parse(path, &at), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares__few_are_all_shown),
		cmocka_unit_test(shares__the_busiest_are_shown),
		cmocka_unit_test(shares__a_place_is_kept),
		cmocka_unit_test(shares__of_one_key_are_one),
		cmocka_unit_test(shares__an_end),
		cmocka_unit_test(shares__rests_are_what_was_not_shown),
		cmocka_unit_test(counters_grow__falls_add_nothing),
		cmocka_unit_test(listen_parse__addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
