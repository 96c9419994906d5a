/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core XROCE_BROKERSIM_ORDERS=1 XROCE_BROKERSIM_DRAWN=80 */
/* tier: long long */
/*
 * A broker and three clients. Each dies at every step that it makes, in several orders of the
 * others' steps. After each step: a number has one owner, the same as in the broker's program; a
 * user's counts equal the resources of its clients and stay within its limits; a client owns all
 * that it believes to own. At the end no number, place, descriptor, memory or device is left.
 *
 * A run that fails prints the command that repeats it: test_brokers SEED DEATH...
 *
 * XROCE_BROKERSIM_ORDERS: orders of the steps in which each actor dies at each step, and each call
 * fails. XROCE_BROKERSIM_DRAWN: runs in which several actors die at steps that are drawn.
 */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../user/broker/broker.h"
#include "sim.h"

#define IN_TURNS  3u  /* seeds that are no draw */
#define ORDERS	  6u /* unless the environment has other numbers */
#define DRAWN	  2000u

struct outcome outcome;
static struct run run;
static int end_fd;
static u32 begun;   /* brokers */
static bool ending; /* of the run, after the request to stop the broker */
static u32 orders, drawn;

void sim_fail(const char *file, int line, const char *what)
{
	printf("%s:%d: %s\n", file, line, what);
	printf("replay: test_brokers %llu %u %u %u %u %u %u %u\n",
		(unsigned long long)run.seed, run.dies[0], run.dies[1], run.dies[2],
		run.dies[BROKER], run.forks, run.fault, run.nth);
	fflush(stdout);
	_exit(1);
}

/* ---- the broker's process ---- */

static void broker_main(void *arg)
{
	const struct broker_options options = { .mode = 0666, .group = (gid_t)-1,
						.max_clients = 2, .max_qps = 7, .max_rings = 8,
						.max_services = 3, .max_memory_mib = 32,
						.pkeys = FAKED_PKEYS };
	const struct netdev dev = { .ifindex = 1, .name = "sim0", .mtu = 4500 };
	struct brokers *all;

	begun++;
	must(!brokers_make(&all));
	/* where an instance cannot be had it does not begin */
	if (!brokers_add(all, &dev, &options))
		must(!brokers_run(all, end_fd));
	else
		must(run.fault == FAULT_INSTANCE);
	brokers_unmake(all);
}

/* ---- invariants after each step ---- */

static void check_numbers(const struct broker *b)
{
	u32 listed = 0, pid;

	for (const struct client *c = b->clients; c; c = c->next) {
		u32 n = 0;

		for (u32 i = c->qpns; i != NUMBERS_NONE; i = b->numbers.number[i].after, n++) {
			const struct number *x = &b->numbers.number[i];

			must(x->client == c->number);
			must(faked_owner(x->qpn, &pid) == c->number && pid == c->pid);
		}
		must(n == c->qps);
		listed += n;
	}
	must(listed == faked_owned() && listed == b->quota.used[QUOTA_QPS]);
}

/* Checks the clients with a QP 1, the client for unowned QPs, and the owners of services. */
static void check_cm(const struct broker *b)
{
	u32 places = 0, keys = 0;

	for (const struct client *c = b->clients; c; c = c->next) {
		const u32 place = XROCE_CM_PLACE_OF(c->number);
		u32 n = 0;

		must(!c->has_cm || c->number != CLIENT_NONE);
		must(c->number == CLIENT_NONE ||
		     faked_place(place) == (c->has_cm ? c->number : ~0u));
		places += c->has_cm;
		for (u32 i = c->bound; i != BINDINGS_NONE; i = b->bindings.binding[i].after, n++)
			must(b->bindings.binding[i].client == c->number);
		must(n == c->services && (!n || c->number != CLIENT_NONE));
		if (n) {
			must(faked_services(place) >= 1 && faked_services(place) <= 2 * n);
			keys += faked_services(place);
		}
		must(!b->refuser || b->refuser->rights.low_ports || !c->has_cm ||
		     !c->rights.low_ports);
	}
	must(keys == faked_services(0));
	must(!b->refuser || (b->refuser->has_cm &&
			     faked_place(XROCE_CM_PLACE_NOBODY) == b->refuser->number));
	must(faked_places() == places + !!b->refuser);
	must(b->refuser || !places || run.fault == FAULT_PLACE);
}

/* The programs know which groups have members, except where an update was made to fail. */
static void check_groups(const struct broker *b)
{
	u32 all = 0;

	for (const struct client *c = b->clients; c; c = c->next) {
		must(!c->groups || c->number != CLIENT_NONE);
		must(c->number == CLIENT_NONE || run.fault == FAULT_GROUP ||
		     faked_members(c->number) == c->groups);
		all += c->groups;
	}
	must(b->quota.used[QUOTA_GROUPS] == all);
	must(run.fault == FAULT_GROUP || faked_members(~0u) == all);
}

static void check_user(const struct broker *b, const struct quota_user *u)
{
	u32 used[QUOTA_KINDS] = { 0 }, unread = 0;

	for (const struct client *c = b->clients; c; c = c->next) {
		if (c->user != u)
			continue;
		must(c->uid == u->uid && c->rights.admin == u->admin);
		used[QUOTA_CONNECTIONS]++;
		used[QUOTA_CLIENTS] += c->number != CLIENT_NONE ||
				       (c->waiting && c->asked.what == ASK_HELLO);
		used[QUOTA_MEMORY] += c->memory_kib;
		unread += c->unread_ns != NSEC_NEVER;
		used[QUOTA_QPS] += c->qps;
		used[QUOTA_RINGS] += c->rings;
		used[QUOTA_SERVICES] += c->services;
		used[QUOTA_GROUPS] += c->groups;
	}
	for (u32 k = 0; k < QUOTA_KINDS; k++)
		must(used[k] == u->used[k] && (u->admin || used[k] <= b->quota.limits.user[k]));
	must(unread == u->unread && unread <= 1);
}

static void check_quota(const struct broker *b)
{
	u32 used[QUOTA_KINDS] = { 0 };

	for (u32 i = 0; i < QUOTA_CONNECTIONS_MAX; i++) {
		const struct quota_user *u = &b->quota.user[i];

		if (!u->used[QUOTA_CONNECTIONS])
			continue;
		check_user(b, u);
		for (u32 k = 0; k < QUOTA_KINDS; k++)
			used[k] += u->used[k];
	}
	must(!memcmp(used, b->quota.used, sizeof(used)));
}

static void check(void)
{
	struct broker *b = faked_broker();
	u32 places = 0;

	for (u32 i = 0; i < CLIENTS; i++)
		if (outcome.died[i] && !actor_lives(i))
			process_forget(i);
	if (!b || !b->numbers.number)
		return;
	check_numbers(b);
	check_cm(b);
	check_groups(b);
	check_quota(b);
	for (const struct client *c = b->clients; c; c = c->next) {
		must(c->number == CLIENT_NONE || b->of[c->number] == c);
		places += c->number != CLIENT_NONE;
	}
	must(places == faked_programs());
	processes_check(b);
}

/* Checks, with all actors idle, that the broker holds only its resources without clients. */
static void check_quiet(void)
{
	const struct broker *b = faked_broker();

	for (u32 i = 0; i < CLIENTS; i++)
		must(!actor_lives(i));
	must(b && actor_lives(BROKER) && !b->clients && !b->stock.num_doomed);
	must(!b->orphans);
	for (u32 k = 0; k < QUOTA_KINDS; k++)
		must(!b->quota.used[k]);
	must(!faked_places() && !faked_services(0));
	must(!faked_programs() && faked_instances() == CLIENT_POOL_SPARES &&
	     faked_taps() == CLIENT_POOL_SPARES * INSTANCE_TAPS);
}

/* ---- a run ---- */

static void after_step(void)
{
	check();
	/* restart an actor that died or failed to start; the clients reconnect */
	if (!ending && !actor_lives(BROKER)) {
		must(begun == 1);
		actor_start(BROKER, broker_main, NULL);
	}
}

void sim_run(const struct run *r)
{
	const u32 before = fds_open();
	const u64 one = 1;

	run = *r;
	memset(&outcome, 0, sizeof(outcome));
	begun = 0;
	ending = false;
	actors_begin(r);
	faked_begin(r->fault, r->nth);
	processes_begin();
	end_fd = eventfd(0, EFD_CLOEXEC);
	actor_start(BROKER, broker_main, NULL);
	for (u32 i = 0; i < CLIENTS; i++)
		actor_start(i, process_main, (void *)(uintptr_t)(i + 1));
	actors_go(after_step);
	check_quiet();
	ending = true;
	must(write(end_fd, &one, sizeof(one)) == sizeof(one));
	actors_go(after_step);
	must(!actor_lives(BROKER) && !faked_instances() && !faked_programs() &&
	     !faked_taps());
	fd_close(end_fd);
	must(fds_open() == before);
}

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
static void fails_at_each_call(void **state)
{
	const int own = dup(STDERR_FILENO), nothing = fd_nothing();

	dup2(nothing, STDERR_FILENO);
	for (u32 fault = FAULT_NONE + 1; fault < FAULTS; fault++)
		for (u64 seed = 0; seed < orders; seed++) {
			struct run r = { .seed = seed, .fault = (enum fault)fault };

			do {
				r.nth++;
				sim_run(&r);
			} while (outcome.faults);
			must(r.nth > 2);
		}
	dup2(own, STDERR_FILENO);
	fd_close(own);
	fd_close(nothing);
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

/* The same run makes the same steps. */
static void a_run_replays(void **state)
{
	const struct run r = { .seed = 77, .dies = { 0, 33, 0, 60 } };
	struct outcome first;

	sim_run(&r);
	first = outcome;
	sim_run(&r);
	assert_memory_equal(&first, &outcome, sizeof(first));
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
		cmocka_unit_test(a_run_replays),
	};

	/* the next run takes the memory of the last one: fresh pages cost a quarter of a run */
	mallopt(M_MMAP_THRESHOLD, 256 << 20);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	if (argc > 8) {
		u32 v[9];

		for (u32 i = 1; i < 9; i++)
			v[i] = (u32)strtoul(argv[i], NULL, 0);
		sim_run(&(struct run){ .seed = v[1], .dies = { v[2], v[3], v[4], v[5] },
				       .forks = v[6], .fault = (enum fault)v[7], .nth = v[8] });
		return 0;
	}
	orders = number_of("XROCE_BROKERSIM_ORDERS", ORDERS);
	drawn = number_of("XROCE_BROKERSIM_DRAWN", DRAWN);
	return cmocka_run_group_tests_name("brokers", tests, NULL, NULL);
}
