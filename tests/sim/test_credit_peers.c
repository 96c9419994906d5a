/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * One UD queue pair that sends to several peers in turn. Its state for each peer stays, so all
 * packets under way fit into the ring that they share, and a dead peer stops the others once.
 */
#include "../../user/engine/internal.h"
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

#define RING	   1024u
#define FILLED_MAX (RING / 4 * 3) /* probes that go again and answers have to fit, too */
#define PMTU	   256u
#define RECEIVERS  8u
#define BURST	   64u
#define ROUNDS	   12u
#define POSTS	   (BURST * ROUNDS)

static struct {
	struct scene s;
	struct side *to[RECEIVERS];
	struct pair more[RECEIVERS - 1];
} t;

static void begin(const char *name, u64 latency_ns)
{
	struct world *w = world_create(3, 29);
	struct pair_options o = pair_defaults();

	world_label(w, "test_credit_peers %s, %llu ns", name, (unsigned long long)latency_ns);
	w->latency_ns = latency_ns;
	o.transport = XROCE_UD;
	o.pmtu = PMTU;
	o.max_send_wr = o.cq_capacity = RECEIVERS * POSTS;
	o.max_recv_wr = POSTS;
	t.s = scene_in(w, &o, 8192);
	t.to[0] = t.s.b;
	for (u32 i = 0; i < ARRAY_SIZE(t.more); i++) {
		t.more[i] = pair_connect(w, &o);
		t.to[i + 1] = &t.more[i].side[1];
	}
	for (u32 i = 0; i < RECEIVERS; i++)
		for (u32 k = 0; k < POSTS; k++)
			post_recv_buffer(t.to[i], k, t.s.remote, 0, 40 + PMTU);
}

static void end(void)
{
	for (u32 i = 0; i < ARRAY_SIZE(t.more); i++)
		pair_destroy(&t.more[i]);
	scene_end(&t.s);
}

static void post(u32 receiver, const struct path *path, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		struct send send = scene_request(&t.s, i, WR_SEND, PMTU);

		send.path = path;
		send.remote_qpn = t.to[receiver]->qp->qpn;
		send.remote_qkey = PAIR_QKEY;
		send.remote_addr = send.rkey = 0;
		post_send(t.s.a, &send);
	}
}

static void bursts__in_turn(void **state)
{
	static const u64 latencies_ns[] = { 10 * NSEC_PER_USEC, NSEC_PER_MSEC, 4 * NSEC_PER_MSEC };

	for (u32 l = 0; l < ARRAY_SIZE(latencies_ns); l++) {
		begin("in turn", latencies_ns[l]);
		for (u32 round = 0; round < ROUNDS; round++)
			for (u32 i = 0; i < RECEIVERS; i++)
				post(i, &t.s.path, BURST);
		world_run(t.s.w);
		check(t.s.w, world_most_under_way(t.s.w) <= FILLED_MAX);
		check_eq(t.s.w, t.s.a->send->n, RECEIVERS * POSTS);
		for (u32 i = 0; i < RECEIVERS; i++)
			check_eq(t.s.w, t.to[i]->recv->n, POSTS);
		check(t.s.w, t.s.a->node->stats.flow_waits > 0);
		check_eq(t.s.w, credit_charged(&t.s.a->node->engine->tables->credits), 0);
		end();
	}
}

/* Packets of a QP that has been reset are forgotten, and no longer counted. */
static void bursts__then_reset(void **state)
{
	begin("reset", NSEC_PER_MSEC);
	t.s.b->node->to[0].dead = true;
	for (u32 i = 0; i < RECEIVERS; i++)
		post(i, &t.s.path, CREDIT_START_MIN / 2);
	world_settle(t.s.w);
	check(t.s.w, credit_charged(&t.s.a->node->engine->tables->credits) > CREDIT_START_FRAMES);
	check(t.s.w, !side_state(t.s.a, QPS_RESET));
	check_eq(t.s.w, credit_charged(&t.s.a->node->engine->tables->credits), 0);
	end();
}

/* One of several that has answered, and does so no more: the others wait for it once, not 2 s. */
static void dead_one__stops_the_others_once(void **state)
{
	struct world *w;
	u64 start_ns;

	begin("a dead one", 10 * NSEC_PER_USEC);
	w = t.s.w;
	for (u32 i = 0; i < 2; i++)
		post(i, &t.s.path, 2 * CREDIT_START);
	world_run(w);
	t.s.a->node->to[1].dead = true;
	for (u32 round = 0; round < 3; round++) {
		start_ns = w->now_ns;
		post(0, &t.s.path, POSTS);
		world_run(w);
		check(w, round ? w->now_ns - start_ns < CREDIT_RETRY_MAX_NS :
				 w->now_ns - start_ns >= CREDIT_SEVERAL_NS &&
					 w->now_ns - start_ns <
						 CREDIT_SEVERAL_NS + CREDIT_RETRY_MAX_NS);
	}
	end();
}

/* Half as many receivers as the table has entries, of one subnet and QP number: nearly all stay. */
static void subnet__fills_all_sets(void **state)
{
	const u32 receivers = CREDIT_SETS * CREDIT_WAYS / 2;
	struct path path;

	begin("subnet", 10 * NSEC_PER_USEC);
	for (u32 i = 0; i < receivers; i++) {
		path = t.s.path;
		path.peer.raw[15] = (u8)(100 + i);
		post(0, &path, 1);
	}
	world_run(t.s.w);
	check(t.s.w, t.s.a->qp->credit_peers->known >= receivers * 3 / 4);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bursts__in_turn),
		cmocka_unit_test(bursts__then_reset),
		cmocka_unit_test(dead_one__stops_the_others_once),
		cmocka_unit_test(subnet__fills_all_sets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
