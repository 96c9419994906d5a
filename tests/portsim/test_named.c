/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * Orders of events that a seed meets seldom or never, told step by step: an actor is held where it
 * stands (sched_hold_at()) until the others are where they must be. Each has its row in
 * tests/mutations.txt, with which it fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../../user/os/kernel.h"
#include "../../user/port/port_object.h"
#include "../../user/run/port_channel_object.h"
#include "inspect.h"
#include "made.h"

#define SOON_NS (10 * NSEC_PER_MSEC)

/* A thread on each port, with a CQ each and a connection between them. */
static struct {
	struct app_thread thread[2];
	struct app_cq *cq[2];
	struct app_end *end[2];
} two;

static void run_case(const char *name, actor_fn *steps, u32 queues)
{
	const struct sched_options sched = {
		.seed = 1, .mean_points = 8, .store_rate = 65535, .max_ns = 10 * NSEC_PER_SEC,
		.max_points = 5000000, .idle = inspect_idle,
	};
	const struct made_options made = {
		.queues = queues, .shards = queues, .path_mtu = 4096, .rx_frames = 256,
		/* of several queues each packet has any */
		.nic = { .latency_ns = 1000, .budget = 1, .stray_rate = 65535 },
	};

	setenv("XROCE_SPIN_US", "0", 1);
	sched_label("test_named (%s)", name);
	machine_begin(&(struct machine_options){ .wake_max_ns = 1000 });
	made_begin(&made);
	inspect_begin(NULL, 0);
	sched_run(&sched, steps, NULL);
}

/* Thread 0 has a channel. On request, both post `requests` requests, one at a time. */
static void two_begin(u32 requests)
{
	struct app_connect c = { .window = 1, .path_mtu = 1024, .timeout = 14,
				 .port = { 0, 1 }, .requests = { requests, requests } };

	app_begin();
	app_ports_open(2);
	for (u32 i = 0; i < 2; i++) {
		two.thread[i] = (struct app_thread){ .name = "main", .actor = sched_self() };
		if (!i)
			two.thread[i].channel = app_channel_new();
		two.cq[i] = c.send[i] = c.recv[i] = app_cq_new(&two.thread[i], i, 0);
		c.thread[i] = &two.thread[i];
	}
	app_connect(&c, two.end);
	for (u32 i = 0; i < 2; i++)
		app_post_receives(two.end[i]);
}

/* Destroys thread 0's CQ and its channel, in the middle of the traffic. */
static void two_leave(void)
{
	struct app_channel *ch = two.thread[0].channel;

	for (u32 i = 0; i < 2; i++)
		app_end_free(two.end[i]);
	app_cq_free(two.cq[0]);
	app_channel_free(ch);
	two.thread[0].channel = NULL;
}

static void two_end(void)
{
	app_cq_free(two.cq[1]);
	app_ports_close();
	fd_end(0);
}

static void await_held(void)
{
	while (!sched_holds())
		sched_sleep("computes", NSEC_PER_USEC);
}

static bool becomes_readable(const struct app_channel *ch, u64 ns)
{
	struct pollfd p = { .fd = port_channel_fd(ch->pc), .events = POLLIN };

	return kernel_await(&p, 1, sched_now_ns() + ns) == 1;
}

/*
 * XDP has taken a CQ's word, and writes the record after the CQ and its channel were destroyed and
 * the ring belongs to another channel. That channel's descriptor is readable, so it has an event,
 * and stays armed.
 */
static void late_record(void *arg)
{
	struct app_thread *t = &two.thread[0];
	struct app_channel *ch;
	struct app_cq *cq;
	u32 slot;

	two_begin(1);
	app_arm(two.cq[0]);
	slot = channel_slot(t->channel->pc);
	sched_hold_at("record");
	app_post(two.end[0]);
	await_held();
	two_leave();
	t->channel = ch = app_channel_new();
	cq = app_cq_new(t, 0, 0);
	/* or this shows nothing */
	sim_check(channel_slot(ch->pc) == slot);
	app_arm(cq);
	sched_let_go();
	sim_check(becomes_readable(ch, SOON_NS));
	sim_check(app_get_event(ch, false) == cq);
	sim_check(cq_is_armed(&cq->cq));
	app_cq_free(cq);
	app_channel_free(ch);
	two_end();
}

/*
 * XDP has found a CQ armed, and takes the word after that CQ was destroyed and its index reused:
 * the record goes to the new CQ's channel, not to the ring's present owner.
 */
static void next_of_index(void *arg)
{
	struct app_thread *t = &two.thread[0];
	struct app_channel *ch[2];
	struct app_cq *cq[2];
	u32 index, slot;

	two_begin(1);
	app_arm(two.cq[0]);
	index = two.cq[0]->cq.index;
	slot = channel_slot(t->channel->pc);
	sched_hold_at("lookup of a ring");
	app_post(two.end[0]);
	await_held();
	two_leave();
	for (u32 i = 0; i < 2; i++) {
		if (i)
			app_port(0)->shards.cq_notify.next = index;
		t->channel = ch[i] = app_channel_new();
		cq[i] = app_cq_new(t, 0, 0);
	}
	sim_check(channel_slot(ch[0]->pc) == slot && cq[1]->cq.index == index);
	app_arm(cq[0]);
	app_arm(cq[1]);
	sched_let_go();
	sim_check(becomes_readable(ch[1], SOON_NS) && !becomes_readable(ch[0], 0));
	sim_check(app_get_event(ch[1], false) == cq[1]);
	for (u32 i = 0; i < 2; i++) {
		app_cq_free(cq[i]);
		app_channel_free(ch[i]);
	}
	two_end();
}

/*
 * A post waits for the next call while the worker sleeps without a deadline: a run of that
 * thread's sent something just before, so the post is one of a burst.
 */
static void post_waits(void *arg)
{
	struct shard *s;

	two_begin(1);
	s = &app_port(0)->shards.shard[0];
	for (u32 i = 0; i < 100; i++)
		app_poll(&two.thread[0]);
	while (!atomic_load(&s->worker.sleep_until_ns))
		sched_sleep("computes", NSEC_PER_MSEC);
	atomic_store(&s->defer.burst_until_ns, sched_now_ns() + NSEC_PER_MSEC);
	app_post(two.end[0]);
	sim_check(defer_posts(&s->defer) == 1);
	sched_sleep("computes", SOON_NS);
	sim_check(defer_posts(&s->defer) == 0 && s->io->stats->tx_packets);
	while (two.end[0]->completed != 1)
		app_poll(&two.thread[0]);
	two_leave();
	two_end();
}

/* Post in a burst; how many posts wait then. The request completes, and raises its event. */
static u32 post_armed(struct shard *s)
{
	const u32 completed = two.end[0]->completed;
	u32 posts;

	atomic_store(&s->defer.burst_until_ns, sched_now_ns() + NSEC_PER_MSEC);
	app_post(two.end[0]);
	posts = defer_posts(&s->defer);
	while (two.end[0]->completed == completed)
		app_poll(&two.thread[0]);
	sim_check(app_get_event(two.thread[0].channel, true) == two.cq[0]);
	return posts;
}

/*
 * An application that arms its CQ and keeps polling is not about to sleep: its posts are batched.
 * An application that has just armed it may sleep.
 */
static void armed_posts(void *arg)
{
	struct shard *s;

	two_begin(2);
	s = &app_port(0)->shards.shard[0];
	app_arm(two.cq[0]);
	for (u32 i = 0; i < 2 * CQ_IDLE_POLLS; i++)
		app_poll(&two.thread[0]);
	sim_check(post_armed(s) == 1);
	app_arm(two.cq[0]);
	sim_check(post_armed(s) == 0);
	two_leave();
	two_end();
}

#define CASE(name, steps, queues) \
	static void name(void **state) \
	{ \
		run_case(#name, steps, queues); \
	}
CASE(record__comes_when_its_channel_has_gone, late_record, 1)
CASE(record__is_of_the_next_cq_of_an_index, next_of_index, 1)
CASE(post__waits_while_the_service_thread_sleeps, post_waits, 1)
CASE(post__waits_beside_an_armed_cq_that_is_polled_on, armed_posts, 1)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(record__comes_when_its_channel_has_gone),
		cmocka_unit_test(record__is_of_the_next_cq_of_an_index),
		cmocka_unit_test(post__waits_while_the_service_thread_sleeps),
		cmocka_unit_test(post__waits_beside_an_armed_cq_that_is_polled_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
