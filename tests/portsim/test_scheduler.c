/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* Tests of the port simulator itself: it shows each effect that it is meant to show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <pthread.h>
#include <string.h>
#include <cmocka.h>

#include "machine.h"

static char failure[256];

static void keep_failure(const char *text)
{
	strncpy(failure, text, sizeof(failure) - 1);
}

/* Runs fn; returns what went wrong, or NULL. */
static const char *run(u64 seed, enum sched_policy policy, u32 store_rate, actor_fn *fn, void *arg)
{
	const struct sched_options o = { .seed = seed, .policy = policy, .mean_points = 4,
					 .store_rate = store_rate, .max_ns = NSEC_PER_SEC,
					 .max_points = 100000 };

	failure[0] = 0;
	sched_on_failure(keep_failure);
	machine_begin(&(struct machine_options){ 0 });
	sched_run(&o, fn, arg);
	return failure[0] ? failure : NULL;
}

/* ---- two threads that each say that they come, and look for the other ---- */

static struct duel {
	bool fences;
	u32 came[2], saw[2];
} duel;

static void duel_come(void *arg)
{
	const u32 me = (u32)(uintptr_t)arg;
	u64 own;

	sched_point("store");
	sched_store(&duel.came[me], sizeof(u32), 1);
	if (duel.fences)
		sched_drain();
	sched_point("load");
	duel.saw[me] = sched_stored(&duel.came[!me], sizeof(u32), &own) ?
			       (u32)own :
			       __atomic_load_n(&duel.came[!me], __ATOMIC_SEQ_CST);
	/* an actor that ends has no invisible stores left */
	for (u32 i = 0; i < 4; i++)
		sched_point("after");
}

static void duel_main(void *arg)
{
	struct actor *a = sched_spawn("a", duel_come, (void *)0);
	struct actor *b = sched_spawn("b", duel_come, (void *)1);

	sched_join(a);
	sched_join(b);
}

static u32 duels_missed(bool fences, enum sched_policy policy)
{
	u32 missed = 0;

	for (u64 seed = 0; seed < 1000; seed++) {
		duel = (struct duel){ .fences = fences };
		assert_null(run(seed, policy, 8000, duel_main, NULL));
		missed += !duel.saw[0] && !duel.saw[1];
	}
	return missed;
}

static void stores__a_missing_fence_shows(void **state)
{
	assert_int_equal(duels_missed(true, SCHED_RANDOM), 0);
	assert_int_equal(duels_missed(true, SCHED_PRIORITY), 0);
	assert_true(duels_missed(false, SCHED_RANDOM) > 0);
}

/* In order; an actor sees its own stores at once. */
static void store_twice(void *arg)
{
	u64 own = 0;

	sched_store(&duel.came[0], sizeof(u32), 1);
	sched_store(&duel.came[1], sizeof(u32), 1);
	assert_true(sched_stored(&duel.came[0], sizeof(u32), &own));
	assert_int_equal(own, 1);
	for (u32 i = 0; i < 50; i++)
		sched_point("later");
	assert_int_equal(duel.came[0], 1);
}

static void look_at_stores(void *arg)
{
	for (u32 i = 0; i < 50; i++) {
		sched_point("load");
		assert_true(duel.came[0] || !duel.came[1]);
	}
}

static void store_order_main(void *arg)
{
	struct actor *a = sched_spawn("a", store_twice, NULL);
	struct actor *b = sched_spawn("b", look_at_stores, NULL);

	sched_join(a);
	sched_join(b);
}

static void stores__are_seen_in_order(void **state)
{
	for (u64 seed = 0; seed < 500; seed++) {
		duel = (struct duel){ 0 };
		assert_null(run(seed, SCHED_RANDOM, 20000, store_order_main, NULL));
	}
}

/* ---- stalls ---- */

static void wait_for_ever(void *arg)
{
	sched_block("for nothing", NSEC_NEVER);
}

static void spin(void *arg)
{
	for (;;)
		sched_point("spins");
}

static void wait_long(void *arg)
{
	sched_sleep("sleeps", 2 * NSEC_PER_SEC);
}

static void stall__is_told(void **state)
{
	assert_non_null(run(1, SCHED_RANDOM, 65535, wait_for_ever, NULL));
	assert_non_null(strstr(failure, "no actor can run"));
	assert_non_null(run(1, SCHED_PRIORITY, 65535, spin, NULL));
	assert_non_null(strstr(failure, "points"));
	assert_non_null(run(1, SCHED_RANDOM, 65535, wait_long, NULL));
	assert_non_null(strstr(failure, "virtual time"));
}

/* ---- locks ---- */

static pthread_mutex_t lock[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };

static void lock_both(void *arg)
{
	const u32 first = (u32)(uintptr_t)arg;

	pthread_mutex_lock(&lock[first]);
	pthread_mutex_lock(&lock[!first]);
	pthread_mutex_unlock(&lock[!first]);
	pthread_mutex_unlock(&lock[first]);
}

static void deadlock_main(void *arg)
{
	struct actor *a = sched_spawn("a", lock_both, (void *)0);
	struct actor *b = sched_spawn("b", lock_both, (void *)1);

	sched_join(a);
	sched_join(b);
}

static void locks__taken_in_two_orders_stall(void **state)
{
	u32 stalls = 0;

	for (u64 seed = 0; seed < 200; seed++) {
		memset(lock, 0, sizeof(lock));
		stalls += run(seed, SCHED_RANDOM, 65535, deadlock_main, NULL) != NULL;
	}
	assert_true(stalls > 0 && stalls < 200);
}

static void unlock_main(void *arg)
{
	pthread_mutex_unlock(&lock[0]);
}

static void lock_twice_main(void *arg)
{
	pthread_mutex_lock(&lock[0]);
	pthread_mutex_lock(&lock[0]);
}

static void locks__misuse_is_told(void **state)
{
	memset(lock, 0, sizeof(lock));
	assert_non_null(run(1, SCHED_RANDOM, 65535, unlock_main, NULL));
	assert_non_null(run(1, SCHED_RANDOM, 65535, lock_twice_main, NULL));
}

/* ---- replaying ---- */

static u32 order_of_steps;

static void count_steps(void *arg)
{
	for (u32 i = 0; i < 20; i++) {
		sched_point("step");
		order_of_steps = order_of_steps * 31 + (u32)(uintptr_t)arg;
	}
}

static void replay_main(void *arg)
{
	struct actor *a[3];

	for (u32 i = 0; i < 3; i++)
		a[i] = sched_spawn("step", count_steps, (void *)(uintptr_t)(i + 1));
	for (u32 i = 0; i < 3; i++)
		sched_join(a[i]);
}

static void seed__is_a_replay(void **state)
{
	u32 same = 0;

	for (u64 seed = 0; seed < 100; seed++) {
		u32 order;
		u64 hash;

		order_of_steps = 0;
		assert_null(run(seed, SCHED_RANDOM, 65535, replay_main, NULL));
		order = order_of_steps;
		hash = sched_hash();
		order_of_steps = 0;
		assert_null(run(seed, SCHED_RANDOM, 65535, replay_main, NULL));
		assert_int_equal(order, order_of_steps);
		assert_int_equal(hash, sched_hash());
		order_of_steps = 0;
		assert_null(run(seed + 1, SCHED_RANDOM, 65535, replay_main, NULL));
		same += order == order_of_steps;
	}
	assert_true(same < 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stores__a_missing_fence_shows),
		cmocka_unit_test(stores__are_seen_in_order),
		cmocka_unit_test(stall__is_told),
		cmocka_unit_test(locks__taken_in_two_orders_stall),
		cmocka_unit_test(locks__misuse_is_told),
		cmocka_unit_test(seed__is_a_replay),
	};

	return cmocka_run_group_tests_name("scheduler", tests, NULL, NULL);
}
