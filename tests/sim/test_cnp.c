/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * Forged congestion notifications. A CNP carries no proof, so the damage of forged ones is bounded.
 * They have no effect where packets are not ECN-capable or none is in flight; elsewhere they cut
 * the rate to its floor, while they come and for some milliseconds.
 */
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

#define PMTU	   1024
#define LENGTH	   (40 * PMTU)
#define LINE_RATE  (1000ull * 1000 * 1000) /* bytes/s */
#define CNP_GAP_NS (NSEC_PER_SEC / 9000)
#define RUN_NS	   (20 * NSEC_PER_MSEC)

static struct scene scene_make(enum xroce_transport transport, bool ecn, const char *name)
{
	struct world *w =
	    world_create_with(2, 9, &(struct world_options){ .ecn = ecn, .line_rate = LINE_RATE });
	struct pair_options o = pair_defaults();

	o.transport = transport;
	o.pmtu = PMTU;
	o.timeout = 14;
	o.max_send_wr = 256;
	o.cq_capacity = 1024;
	world_label(w, "test_cnp %s, ecn %u, transport %u", name, ecn, transport);
	w->keep_frames = false;
	w->latency_ns =
	    50 * NSEC_PER_USEC; /* a window in a round trip is a little more than the line */
	w->max_steps = 4000000;
	return scene_in(w, &o, LENGTH);
}

/* What an attacker who knows the QPN sends: from the peer's address, with a right ICRC. */
static enum xroce_drop forge_cnp(struct scene *s)
{
	struct packet p = { .opcode = OPCODE_CNP,
			    .dest_qpn = s->a->qp->qpn,
			    .pkey = 0xffff,
			    .migreq = true,
			    .becn = true };
	const struct path path = world_path(s->w, 1, 0, false);
	u8 frame[PACKET_FRAME_MAX];

	return world_deliver(s->w, 0, frame,
			     packet_seal(frame, packet_put_headers(frame, &path, &p), 0));
}

/* Sends WRITEs for `ns`, with or without forged CNPs. Returns the bytes of completed WRITEs. */
static u64 bulk(struct scene *s, u64 ns, bool forge)
{
	const u64 end_ns = s->w->now_ns + ns;
	u32 posted = s->a->send->n, before = posted;

	while (s->w->now_ns < end_ns) {
		for (; posted - s->a->send->n < 64; posted++)
			scene_post(s, posted, WR_WRITE, LENGTH);
		world_run_for(s->w, CNP_GAP_NS);
		if (forge)
			forge_cnp(s);
	}
	return (u64)(s->a->send->n - before) * LENGTH;
}

/* Nothing that is sent could have been marked: no CNP is true, and none costs anything. */
static void cnp__without_ecn_costs_nothing(void **state)
{
	u64 bytes[2];

	for (u32 forge = 0; forge < 2; forge++) {
		struct scene s = scene_make(XROCE_RC, false, "no ECN");

		bytes[forge] = bulk(&s, RUN_NS, forge);
		check_eq(s.w, s.a->node->stats.rx_cnps, 0);
		check(s.w, !s.a->qp->rate_limited);
		check(s.w,
		      forge ? s.a->node->drops.cnp >= RUN_NS / CNP_GAP_NS : !s.a->node->drops.cnp);
		world_run(s.w);
		scene_end(&s);
	}
	assert_int_equal(bytes[0], bytes[1]);
}

/* With ECN they are believed: the rate falls to its floor, which is a share of the line, and no
 * lower. */
static void cnp__flood_leaves_the_floor(void **state)
{
	static const struct {
		enum xroce_transport transport;
		u32 share;
	} floors[] = { { XROCE_RC, 4 }, { XROCE_UC, 16 } };

	for (u32 i = 0; i < ARRAY_SIZE(floors); i++) {
		struct scene s = scene_make(floors[i].transport, true, "flood");
		const u64 floor = LINE_RATE / floors[i].share,
			  line_bytes = LINE_RATE * RUN_NS / NSEC_PER_SEC;
		u64 bytes;

		bulk(&s, RUN_NS, true);
		bytes = bulk(&s, RUN_NS, true);
		print_message(
		    "9000 CNPs a second leave %llu of %llu MB/s\n",
		    (unsigned long long)(bytes * 1000 / (RUN_NS / NSEC_PER_MSEC) / 1000000),
		    (unsigned long long)(LINE_RATE / 1000000));
		check(s.w, s.a->qp->rate_limited);
		check(s.w, s.a->qp->rate.current >= floor);
		/* frames have headers, too */
		check(s.w, bytes >= line_bytes / floors[i].share * 9 / 10);
		check(s.w, bytes <= line_bytes / floors[i].share * 2);
		/* and it recovers in milliseconds */
		bulk(&s, 12 * NSEC_PER_MSEC, false);
		check(s.w, !s.a->qp->rate_limited);
		world_run(s.w);
		scene_end(&s);
	}
}

/* A QP with nothing in flight is not slowed in advance. */
static void cnp__needs_packets_in_flight(void **state)
{
	struct scene s = scene_make(XROCE_RC, true, "idle");

	for (u32 i = 0; i < 100; i++) {
		check_eq(s.w, forge_cnp(&s), XROCE_DROP_cnp);
		world_run_for(s.w, CNP_GAP_NS);
	}
	scene_post(&s, 0, WR_WRITE, LENGTH);
	world_run_for(s.w, 3 * NSEC_PER_MSEC);
	check_eq(s.w, s.a->send->n, 1);
	check_eq(s.w, forge_cnp(&s), XROCE_DROP_cnp);
	check_eq(s.w, s.a->node->drops.cnp, 101);
	check_eq(s.w, s.a->node->stats.rx_cnps, 0);
	check(s.w, !s.a->qp->rate_limited);
	scene_end(&s);
}

/* Of a burst one counts, and another one 50 us or a round trip later, whichever is longer. */
static void cnp__cuts_once_in_a_round_trip(void **state)
{
	const u64 round_trips_us[] = { 2, 400 };

	for (u32 i = 0; i < ARRAY_SIZE(round_trips_us); i++) {
		struct scene s = scene_make(XROCE_RC, true, "burst");
		u64 period_ns = max_u64(50, round_trips_us[i]) * NSEC_PER_USEC;

		s.w->latency_ns = round_trips_us[i] * NSEC_PER_USEC / 2;
		scene_post(&s, 0, WR_WRITE, 8); /* measures the round trip */
		world_run(s.w);
		s.w->latency_ns = 1 * NSEC_PER_MSEC;
		scene_post(&s, 1, WR_WRITE, LENGTH);
		world_settle(s.w);
		for (u32 k = 0; k < 100; k++)
			check_eq(s.w, forge_cnp(&s), 0);
		check_eq(s.w, s.a->node->stats.rx_cnps, 100);
		check_eq(s.w, s.a->qp->rate.current, LINE_RATE / 2);
		world_run_for(s.w, period_ns * 9 / 10);
		forge_cnp(&s);
		check_eq(s.w, s.a->qp->rate.current, LINE_RATE / 2);
		world_run_for(s.w, period_ns / 5);
		forge_cnp(&s);
		check_eq(s.w, s.a->qp->rate.current, LINE_RATE / 4);
		world_run(s.w);
		scene_end(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cnp__without_ecn_costs_nothing),
		cmocka_unit_test(cnp__flood_leaves_the_floor),
		cmocka_unit_test(cnp__needs_packets_in_flight),
		cmocka_unit_test(cnp__cuts_once_in_a_round_trip),
	};

	return cmocka_run_group_tests_name("cnp", tests, NULL, NULL);
}
