/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/* tier: long san */
/* tier: long san_engines XROCE_SIM_ENGINES=3 */
/*
 * Several senders of UC to one ring: together they never have more on their way than the ring
 * holds, by a good margin, whenever they begin and however long the receiver did not run.
 */
#include "../../user/engine/internal.h"
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

#define RING	  1024u
#define FILLED_MAX (RING / 4 * 3) /* probes that go again and answers have to fit, too */
#define PMTU	  256u
#define PACKETS	  4u /* of a message */
#define LEN	  (PACKETS * PMTU)
#define SENDERS	  8u
#define POSTS	  1000u
#define PAUSE_NS  (3 * CREDIT_PERIOD_NS) /* more than a receiver remembers */
#define ROUNDS	  4u

static struct scene scene_uc(u64 latency_ns, u32 engines)
{
	struct world *w =
		world_create_with(2, 29, &(struct world_options){ .num_engines = engines });
	struct pair_options o = pair_defaults();

	world_label(w, "test_credit_share, %llu ns, %u engines", (unsigned long long)latency_ns,
		    engines);
	w->latency_ns = latency_ns;
	o.transport = XROCE_UC;
	o.pmtu = PMTU;
	o.max_send_wr = o.cq_capacity = 2 * POSTS;
	return scene_in(w, &o, 8192);
}

static void post(struct scene *s, struct side *a, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		struct send send = scene_request(s, i, WR_WRITE, LEN);

		post_send(a, &send);
	}
}

/*
 * They stop, the receiver forgets them, and all go on at once: each is as the first to ask. With
 * several engines their packets may still come by one and the same queue.
 */
static void senders_pause(u32 engines)
{
	static const u64 latencies_ns[] = { 10 * NSEC_PER_USEC, NSEC_PER_MSEC, 4 * NSEC_PER_MSEC };

	for (u32 l = 0; l < ARRAY_SIZE(latencies_ns); l++) {
		struct scene s = scene_uc(latencies_ns[l], engines);
		struct pair more[SENDERS - 1];

		for (u32 i = 0; i < ARRAY_SIZE(more); i++)
			more[i] = pair_connect(s.w, &s.o);
		for (u32 round = 0; round < ROUNDS; round++) {
			world_forget_sent(s.w);
			post(&s, s.a, POSTS);
			for (u32 i = 0; i < ARRAY_SIZE(more); i++)
				post(&s, &more[i].side[0], POSTS);
			world_run(s.w);
			check(s.w, world_most_under_way(s.w) <= FILLED_MAX);
			world_run_for(s.w, PAUSE_NS);
		}
		check_eq(s.w, s.a->send->n, ROUNDS * POSTS);
		for (u32 i = 0; i < ARRAY_SIZE(more); i++)
			pair_destroy(&more[i]);
		scene_end(&s);
	}
}

static void senders__after_a_pause(void **state)
{
	senders_pause(1);
}

static void senders__of_several_engines(void **state)
{
	senders_pause(2);
	senders_pause(4);
}

/* Frames of node 0 that node 1 has not taken. */
static u32 untaken(const struct scene *s)
{
	u32 frames = 0;

	for (u32 i = 0; i < s->w->num_sent; i++)
		frames += s->w->sent[i].from == 0;
	return frames - (u32)s->b->node->stats.rx_packets;
}

/*
 * One sender has started and has the whole window, `others` more start, and then the receiver
 * stops: at any such moment the ring has room for all packets.
 */
static void receiver_stops(struct scene s, u32 others, u64 alone_ns, u64 together_ns,
			   u64 stopped_ns)
{
	struct pair more[SENDERS - 1];

	for (u32 i = 0; i < others; i++)
		more[i] = pair_connect(s.w, &s.o);
	post(&s, s.a, POSTS);
	world_run_for(s.w, alone_ns);
	for (u32 i = 0; i < others; i++)
		post(&s, &more[i].side[0], POSTS);
	world_run_for(s.w, together_ns);
	s.w->latency_ns = stopped_ns;
	world_run_for(s.w, stopped_ns - NSEC_PER_MSEC);
	check(s.w, untaken(&s) <= RING - RING / 8);
	for (u32 i = 0; i < others; i++)
		pair_destroy(&more[i]);
	scene_end(&s);
}

static void receiver__stops(void **state)
{
	const u64 step_ns = 10 * NSEC_PER_USEC;

	for (u64 alone = 0; alone <= 16; alone += 4)
		for (u64 together = 0; together <= 24; together++)
			receiver_stops(scene_uc(2 * step_ns, 1), SENDERS - 1, alone * step_ns,
				       together * step_ns, CREDIT_STRANGER_NS);
}

/* A receiver that has answered is not declared dead before CREDIT_PATIENCE_NS. */
static void receiver__stops_for_long(void **state)
{
	receiver_stops(scene_uc(20 * NSEC_PER_USEC, 1), SENDERS - 1, NSEC_PER_MSEC / 10,
		       NSEC_PER_MSEC / 2, CREDIT_PATIENCE_NS);
}

/*
 * One has the window of a sender that is alone and pauses with it. The receiver has promised its
 * room to others since: so it begins again.
 */
static void sender__with_an_old_window(void **state)
{
	struct scene s = scene_uc(NSEC_PER_MSEC / 100, 1);
	const struct credit_peer *c = s.a->qp->credit;
	u32 posted = 0, sent;

	while (c->limit - c->sent < CREDIT_SHARE(RING) - PACKETS) {
		check(s.w, posted < POSTS);
		post(&s, s.a, 1);
		posted++;
		world_run(s.w);
	}
	world_run_for(s.w, CREDIT_STALE_NS);
	s.w->latency_ns = 4 * NSEC_PER_MSEC;
	sent = c->sent;
	post(&s, s.a, POSTS);
	world_run_for(s.w, s.w->latency_ns);
	check(s.w, c->sent - sent > 0 && c->sent - sent <= CREDIT_START);
	world_run(s.w);
	check_eq(s.w, s.a->send->n, posted + POSTS);
	scene_end(&s);
}

/* Room promised to one sender is not the others'; it becomes theirs when that sender is gone. */
static void sender_stays(u32 engines)
{
	struct scene s = scene_uc(10 * NSEC_PER_USEC, engines);
	struct pair other = pair_connect(s.w, &s.o);
	u32 window = 0;

	post(&s, s.a, POSTS);
	post(&s, &other.side[0], POSTS);
	world_run(s.w);
	for (u32 round = 0; round < 2; round++) {
		world_run_for(s.w, PAUSE_NS);
		world_forget_sent(s.w);
		post(&s, s.a, POSTS);
		world_run(s.w);
	}
	for (u32 i = 0; i < s.w->num_sent; i++)
		if (s.w->sent[i].from == 1)
			window = s.w->sent[i].packet.credit_allowance >> 16;
	check_eq(s.w, window, CREDIT_SHARE(RING));
	pair_destroy(&other);
	scene_end(&s);
}

static void sender__alone_again(void **state)
{
	sender_stays(1);
}

static void sender__alone_on_several_engines(void **state)
{
	sender_stays(2);
}

/* A sender's packets count as taken once an answer reports them. */
static void sender__untaken(void **state)
{
	struct scene s = scene_uc(10 * NSEC_PER_USEC, 1);
	u64 untaken;

	check_eq(s.w, engine_untaken(s.a->qp), 0);
	post(&s, s.a, 1);
	world_run(s.w);
	untaken = engine_untaken(s.a->qp);
	check(s.w, untaken != 0);
	world_run_for(s.w, PAUSE_NS);
	check_eq(s.w, engine_untaken(s.a->qp), untaken);
	post(&s, s.a, 1);
	world_run(s.w);
	check(s.w, engine_untaken(s.a->qp) && engine_untaken(s.a->qp) != untaken);
	/* a probe follows all of it, and has no answer yet */
	s.a->qp->credit->mark = s.a->qp->credit->sent;
	s.a->qp->credit->probing = true;
	check(s.w, engine_untaken(s.a->qp) != 0);
	s.a->qp->credit->probing = false;
	check_eq(s.w, engine_untaken(s.a->qp), 0);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(senders__after_a_pause),
		cmocka_unit_test(senders__of_several_engines),
		cmocka_unit_test(receiver__stops),
		cmocka_unit_test(receiver__stops_for_long),
		cmocka_unit_test(sender__with_an_old_window),
		cmocka_unit_test(sender__alone_again),
		cmocka_unit_test(sender__alone_on_several_engines),
		cmocka_unit_test(sender__untaken),
	};

	return cmocka_run_group_tests_name("credit_share", tests, NULL, NULL);
}
