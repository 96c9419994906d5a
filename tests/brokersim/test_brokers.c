/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core XROCE_BROKERSIM_ORDERS=1 XROCE_BROKERSIM_DRAWN=80 */
/* tier: long long */
/*
 * A broker and three clients. Each dies at every step that it makes, in several orders of the
 * others' steps. After each step: a number has one owner, the same as in the broker's program; a
 * user's counts equal the resources of its clients and stay within its limits; a client owns all
 * that it believes to own. At the end no number, place, descriptor, memory or device is left.
 *
 * The runs with sole clients (user/broker/sole.h) have brokers that end when they are not used.
 * After each step: there is at most one sole client; its program is on the hook, or the mux is and
 * the client knows of the others; others have a port only with the mux on the hook.
 *
 * A run that fails prints the command that repeats it: test_brokers SEED DEATH... MODE
 *
 * XROCE_BROKERSIM_ORDERS: orders of the steps in which each actor dies at each step, and each call
 * fails. XROCE_BROKERSIM_DRAWN: runs in which several actors die at steps that are drawn.
 */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "sim.h"

#define ORDERS	  6u /* unless the environment has other numbers */
#define DRAWN	  2000u

static u32 orders, drawn;

/* ---- the tests ---- */

static void undisturbed(void **state)
{
	const u32 runs = drawn < 40 ? 4 : drawn / 10;
	u32 told = 0;

	for (u64 seed = 0; seed < runs; seed++) {
		sim_run(&(struct run){ .seed = seed });
		assert_int_equal(outcome.lost, 0);
		told += outcome.told;
		for (u32 i = 0; i < ACTORS; i++)
			assert_true(outcome.steps[i] > 40);
	}
	/* each of a hundred, four times, unless another client has the place by then */
	assert_true(told > runs * 100);
}

/* Fails each kernel call once, at each place where it is made; the broker's messages are
 * dropped. */
static void fails_everywhere(u32 faults, u32 mode, u32 least)
{
	const int own = dup(STDERR_FILENO), nothing = fd_nothing();

	dup2(nothing, STDERR_FILENO);
	for (u32 fault = FAULT_NONE + 1; fault < faults; fault++)
		for (u64 seed = 0; seed < orders; seed++) {
			struct run r = { .seed = seed, .fault = (enum fault)fault,
					 .mode = mode };

			do {
				r.nth++;
				sim_run(&r);
			} while (outcome.faults);
			must(r.nth > least);
		}
	dup2(own, STDERR_FILENO);
	fd_close(own);
	fd_close(nothing);
}

static void fails_at_each_call(void **state)
{
	fails_everywhere(FAULTS_SHARED, 0, 2);
}

/* One dies, at each of its steps. */
static void dies_everywhere(u32 actor)
{
	u32 lost = 0;

	for (u64 seed = 0; seed < orders; seed++) {
		u32 at = 0;

		do {
			struct run r = { .seed = seed };

			r.dies[actor] = ++at;
			sim_run(&r);
			lost += outcome.lost;
		} while (outcome.died[actor]);
		assert_true(at > 40);
	}
	assert_true(actor == BROKER ? lost > 40 * orders : !lost);
}

static void client_dies_at_each_step(void **state)
{
	for (u32 i = 0; i < CLIENTS; i++)
		dies_everywhere(i);
}

static void broker_dies_at_each_step(void **state)
{
	dies_everywhere(BROKER);
}

/* Several die, each somewhere. */
static void several_die(void **state)
{
	u32 died = 0, refused = 0, in_vain = 0, in_use = 0;

	for (u64 seed = IN_TURNS; seed < IN_TURNS + drawn; seed++) {
		struct run r = { .seed = seed };

		for (u32 i = 0; i < ACTORS; i++)
			r.dies[i] = (u32)((seed * 2654435761u >> (i * 5)) % 331);
		sim_run(&r);
		for (u32 i = 0; i < ACTORS; i++)
			died += outcome.died[i];
		refused += outcome.refused;
		in_vain += outcome.in_vain;
		in_use += outcome.in_use;
	}
	/* or the runs have not been where they are meant to be */
	assert_true(died > drawn && refused > drawn / 4 && in_vain && in_use > drawn);
}

/*
 * A client forks, at each of its steps: to all others it is as if it had not. With fewer orders at
 * each fourth step: a fork costs as much as a run.
 */
static void client_forks_at_each_step(void **state)
{
	const u32 stride = orders < IN_TURNS ? 4 : 1;

	for (u64 seed = 0; seed < min_u32(IN_TURNS, orders); seed++) {
		struct run r = { .seed = seed };

		do {
			r.forks += stride;
			sim_run(&r);
		} while (outcome.forked);
		assert_true(r.forks > 40);
	}
}

/* A client leaves answers with descriptors unread; it, another client and the broker may die. */
static void client_hoards(void **state)
{
	const u32 runs = drawn < 40 ? 10 : drawn / 4;
	u32 hoarded = 0, regained = 0;

	for (u64 seed = 0; seed < runs; seed++) {
		struct run r = { .seed = seed, .mode = MODE_HOARDS };

		if (seed % 5)
			r.dies[(seed % 5) - 1] = 1 + (u32)((seed * 2654435761u >> 7) % 331);
		sim_run(&r);
		hoarded += outcome.hoarded;
		regained += outcome.regained;
	}
	assert_true(hoarded > runs && regained > runs);
}

/* ---- with sole clients ---- */

#define SOLE_MODES 8u

/* All modes in turn. */
static u32 sole_mode(u64 n)
{
	return MODE_SOLE | (u32)(n % SOLE_MODES) << 1;
}

static void sole_undisturbed(void **state)
{
	const u32 runs = drawn < 160 ? 4 * SOLE_MODES : drawn / 5;
	struct outcome all = { 0 };

	for (u32 n = 0; n < runs; n++) {
		sim_run(&(struct run){ .seed = n / SOLE_MODES, .mode = sole_mode(n) });
		assert_int_equal(outcome.lost, 0);
		all.brokers += outcome.brokers;
		all.soles += outcome.soles;
		all.met += outcome.met;
		all.parted += outcome.parted;
		all.unheard += outcome.unheard;
		all.raws += outcome.raws;
		all.busy += outcome.busy;
	}
	/* or the runs have not been where they are meant to be */
	assert_true(all.brokers > runs && all.soles > runs / 2 && all.met > runs / 2);
	assert_true(all.parted > runs / 4 && all.unheard > runs / 10);
	assert_true(all.raws > runs / 5 && all.busy > runs / 5);
}

static void sole_fails_at_each_call(void **state)
{
	fails_everywhere(FAULTS, MODE_SOLE | MODE_LEAVES, 1);
}

/* Dies at each step in one of the modes; with fewer orders at each third step. */
static void sole_dies_everywhere(u32 actor)
{
	const u32 stride = orders < IN_TURNS ? 3 * SOLE_MODES : SOLE_MODES;

	for (u32 n = 0; n < (orders + 1) / 2 * SOLE_MODES; n++) {
		struct run r = { .seed = n / SOLE_MODES, .mode = sole_mode(n) };

		r.dies[actor] = 1 + n % SOLE_MODES;
		do {
			sim_run(&r);
			assert_true(actor == BROKER || !outcome.lost);
			r.dies[actor] += stride;
		} while (outcome.died[actor]);
		assert_true(r.dies[actor] > 40);
	}
}

static void sole_dies_at_each_step(void **state)
{
	for (u32 i = 0; i < ACTORS; i++)
		sole_dies_everywhere(i);
}

/* Several die, in all modes. */
static void sole_several_die(void **state)
{
	struct outcome all = { 0 };

	for (u64 seed = IN_TURNS; seed < IN_TURNS + drawn; seed++) {
		struct run r = { .seed = seed, .mode = sole_mode(seed) };

		for (u32 i = 0; i < ACTORS; i++)
			r.dies[i] = (u32)((seed * 2654435761u >> (i * 5)) % 701);
		sim_run(&r);
		for (u32 i = 0; i < ACTORS; i++)
			all.steps[0] += outcome.died[i];
		all.met += outcome.met;
		all.unheard += outcome.unheard;
		all.busy += outcome.busy;
	}
	assert_true(all.steps[0] > drawn / 2 && all.met > drawn / 4 && all.unheard && all.busy);
}

/* The same run makes the same steps. */
static void replays(const struct run *r)
{
	struct outcome first;

	sim_run(r);
	first = outcome;
	sim_run(r);
	assert_memory_equal(&first, &outcome, sizeof(first));
}

static void a_run_replays(void **state)
{
	replays(&(struct run){ .seed = 77, .dies = { 0, 33, 0, 60 } });
	replays(&(struct run){ .seed = 77, .dies = { 0, 33, 0, 60 }, .mode = sole_mode(7) });
}

/* Returns the number that the environment has under `name`, at least 1, or `unset`. */
static u32 number_of(const char *name, u32 unset)
{
	const char *text = getenv(name);
	const u32 number = text ? (u32)strtoul(text, NULL, 0) : unset;

	return number ? number : 1;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(undisturbed),
		cmocka_unit_test(fails_at_each_call),
		cmocka_unit_test(client_dies_at_each_step),
		cmocka_unit_test(broker_dies_at_each_step),
		cmocka_unit_test(several_die),
		cmocka_unit_test(client_forks_at_each_step),
		cmocka_unit_test(client_hoards),
		cmocka_unit_test(sole_undisturbed),
		cmocka_unit_test(sole_fails_at_each_call),
		cmocka_unit_test(sole_dies_at_each_step),
		cmocka_unit_test(sole_several_die),
		cmocka_unit_test(a_run_replays),
	};

	/* the next run takes the memory of the last one: fresh pages cost a quarter of a run */
	mallopt(M_MMAP_THRESHOLD, 256 << 20);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	if (argc > 8) {
		u32 v[10] = { 0 };

		for (u32 i = 1; i < 10 && (int)i < argc; i++)
			v[i] = (u32)strtoul(argv[i], NULL, 0);
		sim_run(&(struct run){ .seed = v[1], .dies = { v[2], v[3], v[4], v[5] },
				       .forks = v[6], .fault = (enum fault)v[7], .nth = v[8],
				       .mode = v[9] });
		return 0;
	}
	orders = number_of("XROCE_BROKERSIM_ORDERS", ORDERS);
	drawn = number_of("XROCE_BROKERSIM_DRAWN", DRAWN);
	return cmocka_run_group_tests_name("brokers", tests, NULL, NULL);
}
