/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * A process that does not run for longer than its time-outs: the silence is its own. It uses no
 * retry for it and sends nothing for it, and yet finds out about a peer that is dead.
 */
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

#define LENGTH	   8192
#define TIMEOUT	   14
#define TIMEOUT_NS (4 * (4096ull << TIMEOUT)) /* of the user: four times so short an attribute */
#define PAUSE_NS   (2 * NSEC_PER_SEC)

static struct pair_options options(u8 retry_cnt)
{
	struct pair_options o = pair_defaults();

	o.timeout = TIMEOUT;
	o.retry_cnt = retry_cnt;
	return o;
}

static struct scene scene_make(u8 retry_cnt, u32 disable, const char *name)
{
	const struct world_options wo = { .disable = { disable } };
	struct pair_options o = options(retry_cnt);
	struct scene s = scene_in(world_create_with(2, 7, &wo), &o, LENGTH);

	world_label(s.w, "test_starved %s, retry_cnt %u, disable %x", name, retry_cnt, disable);
	scene_post(&s, 100, WR_WRITE, 8); /* measures the round trip */
	world_run(s.w);
	s.a->send->n = 0;
	world_forget_sent(s.w);
	return s;
}

/* Sends a request, stops its sender for pause_ns; the answer comes behind_ns after it resumes. */
static void stop_after_post(struct scene *s, enum wr_opcode opcode, u64 pause_ns, u64 behind_ns)
{
	s->w->latency_ns = (pause_ns + behind_ns) / 2;
	scene_post(s, 0, opcode, 8);
	world_settle(s->w);
	world_stop(s->a->node, pause_ns);
}

static void check_done(struct scene *s)
{
	check_eq(s->w, s->a->send->n, 1);
	check_eq(s->w, s->a->send->log[0].status, CQE_SUCCESS);
	check_eq(s->w, s->a->node->stats.timeouts, 0);
}

/* What came meanwhile comes first, and the time that passed is not taken for the path's. */
static void stopped__answers_in_the_ring_come_first(void **state)
{
	struct scene s = scene_make(0, 0, "in the ring");
	u32 smoothed_ns = s.a->qp->req.rtt.smoothed_ns;

	stop_after_post(&s, WR_WRITE, PAUSE_NS, 0);
	s.w->latency_ns = WORLD_LATENCY_NS;
	world_run(s.w);
	check_done(&s);
	check_eq(s.w, s.a->node->stats.late_deadlines, 0);
	check_eq(s.w, s.w->num_sent, 2);
	check_eq(s.w, s.a->qp->req.rtt.smoothed_ns, smoothed_ns);
	scene_end(&s);
}

/* An answer that could not be taken in at once is waited for: no retry, and not a packet. */
static void stopped__a_late_deadline_has_a_grace(void **state)
{
	const u32 disable[] = { 0, ENGINE_NO_ADAPTIVE_RTO };
	const enum wr_opcode opcodes[] = { WR_WRITE, WR_READ, WR_FETCH_ADD };

	for (u32 i = 0; i < ARRAY_SIZE(disable) * ARRAY_SIZE(opcodes); i++) {
		struct scene s = scene_make(0, disable[i % 2], "behind");
		u32 smoothed_ns;

		smoothed_ns = s.a->qp->req.rtt.smoothed_ns;
		stop_after_post(&s, opcodes[i / 2], PAUSE_NS, NSEC_PER_MSEC / 2);
		world_run(s.w);
		check_done(&s);
		check_eq(s.w, s.a->qp->req.rtt.smoothed_ns, smoothed_ns);
		check_eq(s.w, s.a->node->stats.late_deadlines, 1);
		check_eq(s.w, s.a->node->stats.rto_probes, 0);
		check_eq(s.w, s.w->num_sent, 2);
		scene_end(&s);
	}
}

/* Packets lost in that time (the ring overflowed) are requested by a probe within the grace. */
static void stopped__what_was_lost_is_probed_for(void **state)
{
	struct scene s = scene_make(0, 0, "lost");

	s.b->node->to[0].count = 0;
	s.b->node->to[0].drop = 1;
	stop_after_post(&s, WR_WRITE, PAUSE_NS, 0);
	s.w->latency_ns = WORLD_LATENCY_NS;
	world_run(s.w);
	check_done(&s);
	check_eq(s.w, s.a->node->stats.late_deadlines, 1);
	check_eq(s.w, s.a->node->stats.rto_probes, 1);
	scene_end(&s);
}

/* Shorter than the user's time-out and longer than the adaptive one: the probe is put off, once. */
static void stopped__a_probe_is_put_off_once(void **state)
{
	struct scene s = scene_make(7, 0, "probe");

	stop_after_post(&s, WR_WRITE, TIMEOUT_NS / 4, NSEC_PER_MSEC / 2);
	world_run(s.w);
	check_done(&s);
	check_eq(s.w, s.a->node->stats.rto_probes, 0);
	check_eq(s.w, s.a->node->stats.late_deadlines, 1);
	/* the answer is lost, and the process does not run for long any more: it asks all the same
	 */
	s.a->node->to[1].dead = true;
	scene_post(&s, 1, WR_WRITE, 8);
	for (u32 i = 0; i < 3; i++) {
		world_run_for(s.w, 0);
		world_stop(s.a->node, 8 * NSEC_PER_MSEC);
		world_run_for(s.w, 8 * NSEC_PER_MSEC);
	}
	check_eq(s.w, s.a->node->stats.rto_probes, 1);
	s.a->node->to[1].dead = false;
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 2);
	check_eq(s.w, s.a->send->log[1].status, CQE_SUCCESS);
	scene_end(&s);
}

/* A process that is always late finds out that its peer is dead, though it takes it longer. */
static void stopped__a_dead_peer_is_found_out(void **state)
{
	const u8 retry_cnt = 3;
	struct scene s = scene_make(retry_cnt, 0, "dead");
	u32 wakes = 0;

	s.a->node->to[1].dead = true;
	scene_post(&s, 0, WR_WRITE, 8);
	world_settle(s.w);
	while (!s.a->send->n && wakes < 100) {
		world_stop(s.a->node, NSEC_PER_SEC);
		world_run_for(s.w, NSEC_PER_SEC);
		wakes++;
	}
	check_eq(s.w, s.a->send->n, 1);
	check_eq(s.w, s.a->send->log[0].status, CQE_RETRY_EXC_ERR);
	/* three graces before each time-out that counts */
	check_eq(s.w, wakes, 4 * (retry_cnt + 1));
	check_eq(s.w, s.a->node->stats.timeouts, retry_cnt + 1);
	/* and sends no more than one packet whenever it wakes up */
	check(s.w, s.w->num_sent <= wakes);
	scene_end(&s);
}

/* Deadlines that are noticed in time count as usual, and so does a deadline that was postponed and
 * then noticed in time. */
static void stopped__a_grace_ends(void **state)
{
	struct scene s = scene_make(0, ENGINE_NO_ADAPTIVE_RTO, "grace");
	u64 start;

	s.a->node->to[1].dead = true;
	scene_post(&s, 0, WR_WRITE, 8);
	world_settle(s.w);
	world_stop(s.a->node, PAUSE_NS);
	start = s.w->now_ns;
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 1);
	check_eq(s.w, s.a->send->log[0].status, CQE_RETRY_EXC_ERR);
	check_eq(s.w, s.w->now_ns - start, PAUSE_NS + TIMEOUT_NS / 4);
	check_eq(s.w, s.a->node->stats.late_deadlines, 1);
	scene_end(&s);
}

/* Many connections, one pause: not a packet goes out for it. */
static void stopped__no_flood(void **state)
{
	struct world *w = world_create(2, 7);
	struct pair_options o = options(0);
	struct buffer *local = world_buffer(&w->node[0], LENGTH, PAIR_ACCESS_ALL);
	struct buffer *remote = world_buffer(&w->node[1], LENGTH, PAIR_ACCESS_ALL);
	const struct send send = request_between(local, remote, 1, WR_WRITE, 8);
	struct pair pairs[64];

	world_label(w, "test_starved no flood");
	for (u32 i = 0; i < ARRAY_SIZE(pairs); i++) {
		pairs[i] = pair_connect(w, &o);
		post_send(&pairs[i].side[0], &send);
	}
	world_run(w);
	world_forget_sent(w);
	w->latency_ns = (PAUSE_NS + NSEC_PER_MSEC / 2) / 2;
	for (u32 i = 0; i < ARRAY_SIZE(pairs); i++)
		post_send(&pairs[i].side[0], &send);
	world_settle(w);
	world_stop(&w->node[0], PAUSE_NS);
	world_run(w);
	check_eq(w, w->num_sent, 2 * ARRAY_SIZE(pairs));
	check_eq(w, w->node[0].stats.late_deadlines, ARRAY_SIZE(pairs));
	for (u32 i = 0; i < ARRAY_SIZE(pairs); i++) {
		check_eq(w, pairs[i].side[0].send->n, 2);
		check_eq(w, pairs[i].side[0].send->log[1].status, CQE_SUCCESS);
		pair_destroy(&pairs[i]);
	}
	world_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stopped__answers_in_the_ring_come_first),
		cmocka_unit_test(stopped__a_late_deadline_has_a_grace),
		cmocka_unit_test(stopped__what_was_lost_is_probed_for),
		cmocka_unit_test(stopped__a_probe_is_put_off_once),
		cmocka_unit_test(stopped__a_dead_peer_is_found_out),
		cmocka_unit_test(stopped__a_grace_ends),
		cmocka_unit_test(stopped__no_flood),
	};

	return cmocka_run_group_tests_name("starved", tests, NULL, NULL);
}
