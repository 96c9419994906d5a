/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One run: a machine with two interfaces, a port on each, threads and connections, all drawn from a
 * seed within what a kind of run allows. It ends when all threads have done their work and the
 * invariants hold; else it prints how to repeat the run, and exits.
 */
#ifndef PORTSIM_RUN_H
#define PORTSIM_RUN_H

#include "app.h"

struct run_kind {
	const char *name;
	u32 ports; /* 1: every connection is to the port's own address */
	u32 queues, shards;
	u32 modes; /* of threads: a bit each, 1 << APP_* */
	u32 losses; /* in 65536, at most */
	u32 reorder, stray, move;
	bool shared;	/* interfaces: ports have a ring buffer, no sockets */
	bool no_rings;	/* channels have none: XDP wakes workers for them */
	bool tight;	/* small rings, sends that find no memory */
	bool churn;	/* a thread makes and destroys channels, CQs and QPs meanwhile */
};
extern const struct run_kind run_kinds[];
extern const u32 num_run_kinds;

/* Returns the hash of its steps. */
u64 run_seed(const struct run_kind *kind, u64 seed, bool trace);
/* Results of a run, for callers that make many. */
struct run_result {
	u64 points, ns;
	u64 messages, lost;
	/* events that the runs of a kind must reach */
	u64 handed, moved, looped, cq_wakeups, thread_wakeups, unannounced, no_room, events, extras;
};
extern struct run_result run_last;

#endif
