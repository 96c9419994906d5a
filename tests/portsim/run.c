/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Draws the parameters of runs; see run.h. */
#include "run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect.h"

#define THREADS_MAX 4
#define ALL_MODES   ((1u << APP_MODES) - 1)
#define SLEEPERS    (1u << APP_EVENT | 1u << APP_OWN_LOOP)

const struct run_kind run_kinds[] = {
	{ .name = "one_shard", .ports = 2, .queues = 1, .shards = 1, .modes = ALL_MODES },
	{ .name = "one_shard_sleepers", .ports = 2, .queues = 1, .shards = 1, .modes = SLEEPERS },
	{ .name = "one_shard_losses", .ports = 2, .queues = 1, .shards = 1, .modes = ALL_MODES,
	  .losses = 3000, .reorder = 2000, .tight = true },
	{ .name = "shared", .ports = 2, .queues = 1, .shards = 1, .modes = ALL_MODES,
	  .shared = true, .stray = 3000, .move = 1000, .churn = true },
	{ .name = "shared_sleepers", .ports = 2, .queues = 1, .shards = 1, .modes = SLEEPERS,
	  .shared = true, .stray = 3000 },
	{ .name = "shared_losses", .ports = 2, .queues = 1, .shards = 1, .modes = ALL_MODES,
	  .shared = true, .losses = 3000, .reorder = 2000, .stray = 3000, .tight = true },
	{ .name = "no_rings", .ports = 2, .queues = 1, .shards = 1, .modes = ALL_MODES,
	  .no_rings = true, .losses = 1000, .reorder = 1000, .stray = 3000, .churn = true },
	{ .name = "two_shards_no_rings", .ports = 2, .queues = 2, .shards = 2, .modes = SLEEPERS,
	  .no_rings = true, .stray = 3000, .move = 1000 },
	{ .name = "to_itself", .ports = 1, .queues = 2, .shards = 2, .modes = ALL_MODES,
	  .stray = 3000, .move = 300 },
	{ .name = "two_shards", .ports = 2, .queues = 2, .shards = 2, .modes = ALL_MODES,
	  .stray = 3000, .move = 1000, .churn = true },
	{ .name = "two_shards_sleepers", .ports = 2, .queues = 3, .shards = 2, .modes = SLEEPERS,
	  .stray = 6000, .move = 1000 },
	{ .name = "two_shards_losses", .ports = 2, .queues = 3, .shards = 2, .modes = ALL_MODES,
	  .losses = 2000, .reorder = 1000, .stray = 3000, .move = 1000, .tight = true },
};
const u32 num_run_kinds = ARRAY_SIZE(run_kinds);

struct run_result run_last;

static struct {
	const struct run_kind *kind;
	struct app_thread thread[THREADS_MAX], *threads[THREADS_MAX];
	struct app_channel *channel[THREADS_MAX];
	u32 num_threads;
	struct app_end *end[THREADS_MAX * APP_ENDS];
	u32 num_ends;
} run;

static u32 draw(u32 n)
{
	return rng_below(sched_rng(), n);
}

/* One of the set bits. */
static u32 draw_bit(u32 bits)
{
	u32 n = draw((u32)__builtin_popcount(bits));

	while (n--)
		bits &= bits - 1;
	return (u32)__builtin_ctz(bits);
}

static void make_threads(void)
{
	static const char *const names[THREADS_MAX] = { "thread 0", "thread 1", "thread 2",
							"thread 3" };

	run.num_threads = 1 + draw(THREADS_MAX);
	for (u32 i = 0; i < run.num_threads; i++) {
		struct app_thread *t = run.threads[i] = &run.thread[i];

		*t = (struct app_thread){ .name = names[i],
					  .mode = (enum app_mode)draw_bit(run.kind->modes),
					  .compute_max_ns = 1000ull << draw(14) };
		run.channel[i] = t->mode != APP_POLL || draw(4) == 0 ? app_channel_new() : NULL;
		t->channel = run.channel[i];
	}
}

/* Returns a CQ of the thread on that port: an existing one or a new one. */
static struct app_cq *cq_of(struct app_thread *t, u32 port)
{
	/* a channel belongs to one port */
	for (u32 i = 0; i < t->num_cqs; i++)
		if (t->cq[i]->port_number == port && (t->num_cqs == APP_CQS || draw(2)))
			return t->cq[i];
	return app_cq_new(t, port, draw(run.kind->queues));
}

static void make_connection(void)
{
	struct app_connect c = { .window = draw(2) ? 1 + draw(2) : 1 + draw(24),
				 .path_mtu = draw(8) ? 1024 : 4096,
				 .timeout = (u8)(12 + draw(3)) };
	const u32 first = draw(run.num_threads), most = draw(16) ? 40 : 300;
	u32 second = draw(run.num_threads);

	/* threads are of the port that their number says, as their channels are: few to itself */
	if (run.num_threads > 1 && first % 2 == second % 2 && draw(4))
		second = (first + 1) % run.num_threads;
	c.thread[0] = run.threads[first];
	c.thread[1] = run.threads[second];
	for (u32 i = 0; i < 2; i++) {
		c.port[i] = (u32)(c.thread[i] - run.thread) % run.kind->ports;
		if (c.thread[i]->num_ends + 2 > APP_ENDS)
			return;
		c.send[i] = cq_of(c.thread[i], c.port[i]);
		c.recv[i] = cq_of(c.thread[i], c.port[i]);
		c.requests[i] = draw(most);
	}
	app_connect(&c, &run.end[run.num_ends]);
	run_last.messages += c.requests[0] + c.requests[1];
	run.num_ends += 2;
}

/* Channels, CQs and QPs come and go while others are at work. */
static void churn_main(void *arg)
{
	struct app_thread t = { .name = "churn", .mode = APP_MIXED, .compute_max_ns = 10000,
				.actor = sched_self() };
	struct app_end *ends[2];

	machine_takes_signals();
	for (u32 i = 0; i < 3; i++) {
		struct app_connect c = { .thread = { &t, &t }, .window = 4, .path_mtu = 1024,
					 .timeout = 12, .requests = { draw(6), draw(6) } };

		t.channel = app_channel_new();
		c.send[0] = c.recv[0] = app_cq_new(&t, 0, draw(run.kind->queues));
		c.send[1] = c.recv[1] = app_cq_new(&t, 0, draw(run.kind->queues));
		app_connect(&c, ends);
		run_last.messages += c.requests[0] + c.requests[1];
		t.done = false;
		app_thread_main(&t);
		app_end_free(ends[0]);
		app_end_free(ends[1]);
		while (t.num_cqs)
			app_cq_free(t.cq[0]);
		app_channel_free(t.channel);
	}
}

/* What the threads have left to the services is done, and nothing is on its way. */
static void settle(void)
{
	u32 under_way;

	do {
		under_way = 0;
		for (u32 i = 0; i < run.kind->ports; i++)
			under_way += nic_on_the_way(nic_get(i));
		sched_sleep("settle", 20 * NSEC_PER_MSEC);
	} while (under_way);
	/* lent frames return with a round */
	for (u32 k = 0; k < 3; k++)
		for (u32 i = 0; i < run.kind->ports; i++) {
			port_lock(app_port(i));
			shards_run_locked(port_shards(app_port(i)));
			port_unlock(app_port(i));
			sched_sleep("settle", NSEC_PER_MSEC);
		}
}

/* Adds up the results of a port. */
static void count_port(u32 number)
{
	const struct nic *n = nic_get(number);
	const struct port_maps *m = nic_maps(nic_get(number));

	run_last.lost += nic_lost(n);
	run_last.cq_wakeups += m->rx.cq_wakeups;
	run_last.thread_wakeups += m->rx.engine_wakeups;
	for (u32 i = 0; i < run.kind->queues; i++)
		run_last.unannounced += m->shared.vector[i].unannounced;
	for (u32 i = 0; i < run.kind->shards; i++) {
		run_last.handed += m->shared.stats[i].rx_handed;
		run_last.moved += m->shared.stats[i].qps_moved;
		run_last.looped += m->shared.stats[i].loopback_packets;
		run_last.no_room += m->shared.stats[i].tx_no_room;
	}
}

static void run_main(void *arg)
{
	struct actor *churn = NULL;

	app_begin();
	app_ports_open(run.kind->ports);
	make_threads();
	for (u32 i = 1 + draw(4); i; i--)
		make_connection();
	inspect_begin(run.threads, run.num_threads);
	for (u32 i = 0; i < run.num_threads; i++)
		run.thread[i].actor = sched_spawn(run.thread[i].name, app_thread_main,
						  &run.thread[i]);
	if (run.kind->churn && draw(2))
		churn = sched_spawn("churn", churn_main, NULL);
	for (u32 i = 0; i < run.num_threads; i++)
		sched_join(run.thread[i].actor);
	if (churn)
		sched_join(churn);
	settle();
	for (u32 i = 0; i < run.kind->ports; i++) {
		inspect_end(app_port(i), i);
		count_port(i);
	}
	inspect_begin(NULL, 0);
	while (run.num_ends)
		app_end_free(run.end[--run.num_ends]);
	for (u32 i = 0; i < run.num_threads; i++) {
		while (run.thread[i].num_cqs) {
			run_last.events += run.thread[i].cq[0]->events;
			app_cq_free(run.thread[i].cq[0]);
		}
		if (!run.channel[i])
			continue;
		run_last.extras += run.channel[i]->extras;
		app_channel_free(run.channel[i]);
	}
	app_ports_close();
	fd_end(0);
	run_last.points = sched_points();
	run_last.ns = sched_now_ns();
}

/* A rate up to most, in half of the runs. */
static u32 draw_rate(struct rng *rng, u32 most)
{
	return most && rng_below(rng, 2) ? rng_below(rng, most) : 0;
}

u64 run_seed(const struct run_kind *kind, u64 seed, bool trace)
{
	struct rng rng = { seed ^ 0x706f7274 };
	const struct sched_options sched = {
		.seed = seed,
		.policy = (enum sched_policy)rng_below(&rng, SCHED_POLICIES),
		.mean_points = 1u << rng_below(&rng, 8),
		.meet_rate = rng_below(&rng, 4) ? 1u << (8 + rng_below(&rng, 8)) : 0,
		.freeze_rate = rng_below(&rng, 2) ? 1u << rng_below(&rng, 14) : 0,
		.freeze_max_ns = 1000ull << rng_below(&rng, 12),
		.store_rate = rng_below(&rng, 2) ? 65535 : 4000 + rng_below(&rng, 50000),
		.max_ns = 60 * NSEC_PER_SEC,
		.max_points = 5000000,
		.trace = trace,
		.idle = inspect_idle,
	};
	const struct made_options made = {
		.queues = kind->queues,
		.shards = kind->shards,
		.path_mtu = 4096,
		.rx_frames = kind->tight ? 128 : 256,
		.shared = kind->shared,
		.no_rings = kind->no_rings,
		.ring_bytes = kind->tight ? 32 << 10 : 256 << 10,
		.nic = { .latency_ns = 300 + rng_below(&rng, 5000),
			 .jitter_ns = rng_below(&rng, 5000),
			 .loss_rate = draw_rate(&rng, kind->losses),
			 .reorder_rate = draw_rate(&rng, kind->reorder),
			 .stray_rate = draw_rate(&rng, kind->stray),
			 .move_rate = draw_rate(&rng, kind->move),
			 .budget = 1 + rng_below(&rng, 16),
			 .hold_rate = draw_rate(&rng, 20000),
			 .hold_max_ns = 1000ull << rng_below(&rng, 9),
			 .block_rate = kind->tight ? draw_rate(&rng, 6000) : 0 },
	};
	const struct machine_options posix = { .eintr_rate = draw_rate(&rng, 500),
					     .wake_max_ns = 1 + rng_below(&rng, 20000) };
	char spin[16];

	run_last = (struct run_result){ 0 };
	run.kind = kind;
	run.num_ends = 0;
	snprintf(spin, sizeof(spin), "%u", rng_below(&rng, 2) ? rng_below(&rng, 20) : 0);
	setenv("XROCE_SPIN_US", spin, 1);
	sched_label("test_ports %s %llu trace", kind->name, (unsigned long long)seed);
	machine_begin(&posix);
	made_begin(&made);
	sched_run(&sched, run_main, NULL);
	return sched_hash();
}
