/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core XROCE_PORTSIM_SEEDS=2500 */
/* tier: long long */
/*
 * Many runs of ports, of each kind: run.c draws a run, inspect.c checks it. A failed run ends the
 * program with the line that replays it:
 *
 *	test_ports KIND SEED [trace]	that run alone, with its steps
 *
 * XROCE_PORTSIM_SEEDS: how many runs, of all kinds together.
 */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "run.h"

#define SEEDS 10000u

/* Sums up the results of all runs of a kind. */
static struct run_result run_many(const struct run_kind *kind, u64 seeds)
{
	struct run_result sum = { 0 };

	for (u64 seed = 1; seed <= seeds; seed++) {
		run_seed(kind, seed, false);
		for (u32 i = 0; i < sizeof(sum) / sizeof(u64); i++)
			((u64 *)&sum)[i] += ((const u64 *)&run_last)[i];
	}
	printf("%s: %llu runs, each with %llu points, %llu us; %llu messages, %llu packets lost\n",
	       kind->name, (unsigned long long)seeds, (unsigned long long)(sum.points / seeds),
	       (unsigned long long)(sum.ns / seeds / NSEC_PER_USEC),
	       (unsigned long long)sum.messages, (unsigned long long)sum.lost);
	printf("    wake-ups: %llu by records for CQs, %llu for threads; %llu packets announced to "
	       "nobody\n    events: %llu, %llu without a completion; frames: %llu handed over, "
	       "%llu looped; QPs moved: %llu; no room: %llu\n",
	       (unsigned long long)sum.cq_wakeups, (unsigned long long)sum.thread_wakeups,
	       (unsigned long long)sum.unannounced, (unsigned long long)sum.events,
	       (unsigned long long)sum.extras, (unsigned long long)sum.handed,
	       (unsigned long long)sum.looped, (unsigned long long)sum.moved,
	       (unsigned long long)sum.no_room);
	return sum;
}

static void runs__end_as_they_should(void **state)
{
	const struct run_kind *kind = *state;
	const char *count = getenv("XROCE_PORTSIM_SEEDS");
	const u64 seeds = (count ? strtoull(count, NULL, 0) : SEEDS) / num_run_kinds;
	struct run_result sum = run_many(kind, seeds ? seeds : 1);

	if (seeds < 100)
		return;
	/* they went where they were sent */
	assert_true(sum.looped && sum.events);
	assert_true(!kind->losses || (sum.lost && sum.no_room));
	assert_true(kind->ports == 1 || (sum.cq_wakeups && sum.thread_wakeups && sum.unannounced));
	assert_true(kind->shards == 1 || sum.handed);
	assert_true(!kind->move || kind->shards == 1 || sum.moved);
}

static void run__is_replayed_by_its_seed(void **state)
{
	u64 before = 0;

	for (u64 seed = 1; seed < 60; seed++) {
		const struct run_kind *kind = &run_kinds[seed % num_run_kinds];
		const u64 hash = run_seed(kind, seed, false);

		assert_int_equal(run_seed(kind, seed, false), hash);
		assert_int_not_equal(hash, before);
		before = hash;
	}
}

static int run_one(const char *name, u64 seed, bool trace)
{
	for (u32 i = 0; i < num_run_kinds; i++)
		if (strcmp(run_kinds[i].name, name) == 0) {
			run_seed(&run_kinds[i], seed, trace);
			printf("%s %llu ends as it should\n", name, (unsigned long long)seed);
			return 0;
		}
	fprintf(stderr, "no runs are called %s\n", name);
	return 2;
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[16];
	u32 n = 0;

	/* memory is used again from run to run: fresh pages would cost more than a run */
	mallopt(M_MMAP_THRESHOLD, 256 << 20);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	if (argc >= 3)
		return run_one(argv[1], strtoull(argv[2], NULL, 0),
			       argc > 3 && strcmp(argv[3], "trace") == 0);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(run__is_replayed_by_its_seed);
	for (u32 i = 0; i < num_run_kinds && n < ARRAY_SIZE(tests); i++)
		tests[n++] = (struct CMUnitTest){ .name = run_kinds[i].name,
						  .test_func = runs__end_as_they_should,
						  .initial_state = (void *)&run_kinds[i] };
	return _cmocka_run_group_tests("ports", tests, n, NULL, NULL);
}
