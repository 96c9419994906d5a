/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A run: the broker's process, and what follows each step. */
#include "sim.h"

#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../../user/broker/broker.h"

#define BROKERS_MAX 32u /* in a run */

struct outcome outcome;
struct run run;
static int end_fd;
static u32 begun;   /* brokers */
static bool ending; /* the run, after the request to stop the broker */

void sim_fail(const char *file, int line, const char *what)
{
	printf("%s:%d: %s\n", file, line, what);
	printf("replay: test_brokers %llu %u %u %u %u %u %u %u %u\n", (unsigned long long)run.seed,
	       run.dies[0], run.dies[1], run.dies[2], run.dies[BROKER], run.forks, run.fault,
	       run.nth, run.mode);
	fflush(stdout);
	_exit(1);
}

/* ---- the broker's process ---- */

static void broker_main(void *arg)
{
	const struct broker_options options = { .mode = 0666,
						.group = (gid_t)-1,
						.max_clients = 2,
						.max_qps = 7,
						.max_rings = 8,
						.max_services = 3,
						.max_memory_mib = 32,
						.client_fd = -1,
						.while_used = run.mode & MODE_SOLE,
						.sockets = run.mode & MODE_SOLE,
						.pkeys = FAKED_PKEYS };
	const struct netdev dev = { .ifindex = 1, .name = "sim0", .mtu = 4500 };
	struct brokers *all;

	begun++;
	outcome.brokers++;
	must(!brokers_make(&all));
	/* where an instance cannot be had it does not begin */
	if (!brokers_add(all, &dev, &options))
		must(!brokers_run(all, end_fd));
	else
		must(run.fault == FAULT_INSTANCE || run.fault == FAULT_HOOK);
	brokers_unmake(all);
}

bool run_is_ending(void)
{
	return ending;
}

/* ---- a run ---- */

static void after_step(void)
{
	check();
	if (ending || actor_lives(BROKER))
		return;
	/* restart an actor that died or failed to start; the clients reconnect */
	if (!(run.mode & MODE_SOLE))
		must(begun == 1);
	else if (!faked_take_wanted())
		return;
	must(begun < BROKERS_MAX);
	actor_start(BROKER, broker_main, NULL);
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
	check_begin();
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
	must(!actor_lives(BROKER) && !faked_instances() && !faked_programs() && !faked_taps());
	fd_close(end_fd);
	must(fds_open() == before);
}
