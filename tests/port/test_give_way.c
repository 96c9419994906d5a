/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * A thread that runs a shard without a pause, as a worker with READ responses of gigabytes to send,
 * gives the lock to a thread that makes or destroys an object, instead of taking it again before
 * that thread has woken up.
 */
#include "../unit/unit.h"

#include <pthread.h>
#include <stdlib.h>

#include "../../user/os/clock.h"
#include "../../user/run/shard.h"
#include "../../user/run/shards.h"

#define TURN_NS (500 * NSEC_PER_USEC)
#define TRIES	31u

static struct shards all;
static struct shard shard;
static _Atomic u32 turns;
static _Atomic bool stop;

static u64 zero(void *arg)
{
	return 0;
}

static void *run(void *arg)
{
	while (!stop) {
		const u64 end_ns = clock_now_ns() + TURN_NS;

		shard_lock(&shard);
		turns++;
		while (clock_now_ns() < end_ns)
			;
		shard_unlock(&shard);
	}
	return NULL;
}

static int by_number(const void *a, const void *b)
{
	return *(const u32 *)a < *(const u32 *)b ? -1 : *(const u32 *)a > *(const u32 *)b;
}

/* The median, as another program may have the processors at any time. */
static void shards_lock__waits_for_a_turn_or_two(void **state)
{
	static struct xroce_engine_stats stats;
	static struct xroce_drops drops;
	const struct engine_config config = { .random = zero, .stats = &stats, .drops = &drops };
	u32 waited[TRIES];
	pthread_t thread;

	assert_int_equal(engine_create(&config, &shard.engine), 0);
	shard.all = &all;
	shard_init_lock(&shard);
	all.shard = &shard;
	all.num = 1;
	assert_int_equal(pthread_create(&thread, NULL, run, NULL), 0);
	while (!turns)
		;
	for (u32 i = 0; i < TRIES; i++) {
		const u32 before = turns;

		shards_lock(&all);
		waited[i] = turns - before;
		shards_unlock(&all);
		/* it runs again */
		for (const u32 now = turns; turns < now + 2;)
			;
	}
	stop = true;
	pthread_join(thread, NULL);
	engine_destroy(shard.engine);
	qsort(waited, TRIES, sizeof(waited[0]), by_number);
	print_message("turns waited: least %u, median %u, most %u\n", waited[0], waited[TRIES / 2],
		      waited[TRIES - 1]);
	assert_true(waited[TRIES / 2] <= 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shards_lock__waits_for_a_turn_or_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
