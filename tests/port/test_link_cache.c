/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * user/os/netdev_cache.c: the cached state of an interface is right at once after any change; how
 * long neighbours that did not answer are waited for. In the test's own network namespace; needs
 * root and `ip`.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../user/os/netdev_cache.h"

static void sh(const char *cmd)
{
	if (system(cmd) != 0)
		fail_msg("failed: %s", cmd);
}

static int setup(void **state)
{
	(void)state;
	if (unshare(CLONE_NEWNET)) {
		fprintf(stderr, "test_link_cache: cannot make network namespaces: run as root\n");
		return -1;
	}
	sh("ip link set lo up; ip link add va type veth peer name vb");
	sh("sysctl -qw net.ipv6.conf.va.addr_gen_mode=1 net.ipv6.conf.vb.addr_gen_mode=1");
	sh("ip link set va up; ip link set vb up; ip addr add 10.9.0.1/24 dev va");
	return 0;
}

static struct netdev get(struct link_cache *k, u32 ifindex, u64 *changes)
{
	struct netdev dev;

	assert_int_equal(link_cache_get(k, ifindex, &dev, changes), 0);
	assert_int_equal(dev.ifindex, ifindex);
	return dev;
}

static void kept_get__follows_each_change(void **state)
{
	const u32 va = if_nametoindex("va"), vb = if_nametoindex("vb");
	struct link_cache *k;
	struct netdev dev;
	u64 first, changes;

	(void)state;
	assert_int_equal(link_cache_new(2, &k), 0);
	assert_int_equal(get(k, va, &first).num_gids, 1);
	assert_int_equal(get(k, vb, NULL).num_gids, 0);
	for (int i = 0; i < 100; i++) {
		sh("ip addr add 10.9.0.2/24 dev va");
		assert_int_equal(get(k, va, NULL).num_gids, 2);
		sh("ip addr del 10.9.0.2/24 dev va");
		assert_int_equal(get(k, va, NULL).num_gids, 1);
		assert_int_equal(get(k, vb, &changes).num_gids, 0);
		assert_true(changes > first);
	}
	sh("ip addr add fd00::1/64 dev vb nodad; ip link set vb mtu 3000 address 2:0:0:0:0:b");
	dev = get(k, vb, NULL);
	assert_int_equal(dev.num_gids, 1);
	assert_int_equal(dev.mtu, 3000);
	assert_int_equal(dev.mac[5], 0xb);
	sh("ip link set vb down; ip link set vb name vx");
	dev = get(k, vb, NULL);
	assert_string_equal(dev.name, "vx");
	assert_false(dev.is_enabled);
	sh("ip link set vx name vb; ip link set vb up");
	link_cache_free(k);
}

/* More interfaces than there is room for. */
static void kept_get__one_place(void **state)
{
	const u32 va = if_nametoindex("va"), vb = if_nametoindex("vb");
	struct link_cache *k;

	(void)state;
	assert_int_equal(link_cache_new(1, &k), 0);
	for (int i = 0; i < 3; i++) {
		assert_string_equal(get(k, va, NULL).name, "va");
		assert_string_equal(get(k, vb, NULL).name, "vb");
	}
	link_cache_free(k);
}

static void kept_get__gone(void **state)
{
	struct netdev dev;
	struct link_cache *k;
	u32 vy;

	(void)state;
	sh("ip link add vy type veth peer name vz");
	vy = if_nametoindex("vy");
	assert_int_equal(link_cache_new(1, &k), 0);
	get(k, vy, NULL);
	sh("ip link del vy");
	assert_int_equal(link_cache_get(k, vy, &dev, NULL), -ENODEV);
	assert_int_equal(link_cache_get(k, 0, &dev, NULL), -ENODEV);
	link_cache_free(k);
}

/* By a thread that moved to another network namespace: the first namespace's interface is used. */
static void *elsewhere(void *arg)
{
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	sh("ip link set lo up; ip link add va type veth peer name vb");
	sh("ip addr add 10.8.0.1/24 dev va");
	assert_string_equal(get(arg, if_nametoindex("va"), NULL).name, "va");
	assert_int_equal(get(arg, if_nametoindex("va"), NULL).gid[0].gid.raw[13], 9);
	return NULL;
}

static void kept_get__of_its_own_namespace(void **state)
{
	pthread_t thread;
	struct link_cache *k;

	(void)state;
	assert_int_equal(link_cache_new(1, &k), 0);
	assert_int_equal(pthread_create(&thread, NULL, elsewhere, k), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	link_cache_free(k);
}

/* ---- neighbours that did not answer ---- */

#define MS ((u64)1000 * 1000)

static struct neigh_key key_of(u8 last)
{
	return (struct neigh_key){ .peer = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 10,
						      [15] = last } } };
}

static void neigh_silent__one_is_not_waited_for(void **state)
{
	struct neigh_silent s = { 0 };
	const struct neigh_key silent = key_of(77), other = key_of(2);
	struct neigh_key of_other_gid = silent;

	(void)state;
	of_other_gid.local_index = 1;
	assert_int_equal(neigh_silent_wait_ms(&s, &silent, 5 * MS, 3000), 3000);
	neigh_silent_add(&s, &silent, 5 * MS);
	assert_int_equal(neigh_silent_wait_ms(&s, &silent, 6 * MS, 3000), 0);
	assert_int_equal(neigh_silent_wait_ms(&s, &silent, 6 * MS, -1), -1);
	/* another one that answers does so in the short wait */
	assert_int_equal(neigh_silent_wait_ms(&s, &other, 6 * MS, 3000), NEIGH_SHORT_WAIT_MS);
	assert_int_equal(neigh_silent_wait_ms(&s, &other, 6 * MS, 20), 20);
	assert_int_equal(neigh_silent_wait_ms(&s, &of_other_gid, 6 * MS, 3000),
			 NEIGH_SHORT_WAIT_MS);
	assert_int_equal(neigh_silent_wait_ms(&s, &silent, (5 + NEIGH_REST_MS) * MS, 3000), 3000);
}

/* Attempts without a wait prolong the rest of all, not the neighbour's own. */
static void neigh_silent__is_tried_again(void **state)
{
	struct neigh_silent s = { 0 };
	const struct neigh_key silent = key_of(77), other = key_of(2);
	const u64 late = NEIGH_REST_MS - 1;

	(void)state;
	neigh_silent_add(&s, &silent, 0);
	assert_int_equal(neigh_silent_wait_ms(&s, &silent, late * MS, 3000), 0);
	neigh_silent_add(&s, &silent, late * MS);
	assert_int_equal(neigh_silent_wait_ms(&s, &silent, (late + 1) * MS, 3000),
			 NEIGH_SHORT_WAIT_MS);
	assert_int_equal(neigh_silent_wait_ms(&s, &other, (late + NEIGH_REST_MS - 1) * MS, 3000),
			 NEIGH_SHORT_WAIT_MS);
	assert_int_equal(neigh_silent_wait_ms(&s, &other, (late + NEIGH_REST_MS) * MS, 3000), 3000);
}

static void neigh_silent__forgets_who_answers(void **state)
{
	struct neigh_silent s = { 0 };
	const struct neigh_key silent = key_of(77), other = key_of(77 + 64);

	(void)state;
	neigh_silent_add(&s, &silent, 0);
	neigh_silent_remove(&s, &other); /* has the same place */
	assert_int_equal(neigh_silent_wait_ms(&s, &silent, MS, 3000), 0);
	neigh_silent_remove(&s, &silent);
	assert_int_equal(neigh_silent_wait_ms(&s, &silent, MS, 3000), NEIGH_SHORT_WAIT_MS);
	/* a place has one neighbour, the last */
	neigh_silent_add(&s, &silent, 2 * MS);
	neigh_silent_add(&s, &other, 2 * MS);
	assert_int_equal(neigh_silent_wait_ms(&s, &silent, 3 * MS, 3000), NEIGH_SHORT_WAIT_MS);
	assert_int_equal(neigh_silent_wait_ms(&s, &other, 3 * MS, 3000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kept_get__follows_each_change),
		cmocka_unit_test(kept_get__one_place),
		cmocka_unit_test(kept_get__gone),
		cmocka_unit_test(kept_get__of_its_own_namespace),
		cmocka_unit_test(neigh_silent__one_is_not_waited_for),
		cmocka_unit_test(neigh_silent__is_tried_again),
		cmocka_unit_test(neigh_silent__forgets_who_answers),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
