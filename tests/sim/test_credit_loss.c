/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/* tier: long san */
/* tier: long san_engines XROCE_SIM_ENGINES=3 */
/*
 * UC and UD over a path that loses data, probes and answers, and towards receivers that post few
 * receives or none: how long a message waits before it leaves, and how often the sender probes.
 */
#include "../../user/engine/internal.h"
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

#define LEN	 64u
#define GRH	 40u
#define POSTS	 1024u
#define WARM	 100u /* enough that the sender has asked */
#define STEP_NS	 (10 * NSEC_PER_USEC)
#define SENDERS	 8u
#define PACKETS_OF_ALL 65536u /* a rate of struct faults */

static struct scene scene_of(enum xroce_transport transport, u64 seed,
			     struct srq *(*make_srq)(struct node *))
{
	struct world *w = world_create(2, seed);
	struct pair_options o = pair_defaults();

	world_label(w, "test_credit_loss, transport %u, seed %llu", transport,
		    (unsigned long long)seed);
	o.transport = transport;
	o.max_send_wr = o.max_recv_wr = o.cq_capacity = POSTS;
	if (make_srq)
		o.srq[1] = make_srq(&w->node[1]);
	return scene_in(w, &o, 8192);
}

static void post_to(struct scene *s, struct side *from, const struct side *to, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		const bool is_back = from->node->index == 1;
		struct send send = request_between(is_back ? s->remote : s->local,
						   is_back ? s->local : s->remote, i, WR_SEND, LEN);
		struct path path = world_path(s->w, is_back, !is_back, false);

		if (s->o.transport == XROCE_UD) {
			send.path = &path;
			send.remote_qpn = to->qp->qpn;
			send.remote_qkey = PAIR_QKEY;
			send.remote_addr = send.rkey = 0;
		}
		post_send(from, &send);
	}
}

static void post(struct scene *s, u32 n)
{
	post_to(s, s->a, s->b, n);
}

static void post_receives(struct scene *s, struct side *at, u32 n)
{
	for (u32 i = 0; i < n; i++)
		post_recv_buffer(at, i, at->node->index ? s->remote : s->local, 0, GRH + LEN);
}

/* The sender has probed and got an answer: from here on answers limit its sending. */
static void warm_up(struct scene *s, u32 receives)
{
	post_receives(s, s->b, WARM + receives);
	post(s, WARM);
	world_run(s->w);
	check_eq(s->w, s->b->recv->n, WARM);
	check(s->w, s->a->qp->credit->known);
}

/* Runs until node 0 has sent `n` packets. Returns the time taken, 0 if longer than limit_ns. */
static u64 time_to_send(struct scene *s, u32 n, u64 limit_ns)
{
	const u64 start_ns = s->w->now_ns;

	while (s->a->send->n < n) {
		if (s->w->now_ns - start_ns >= limit_ns)
			return 0;
		world_run_for(s->w, STEP_NS);
	}
	return s->w->now_ns - start_ns;
}

/*
 * One message at a time, each to a receiver that has no more than a few receives posted and posts
 * the next one as one is used up, while every other packet is lost: each probe has one chance of
 * four. What a message waits is a few tries.
 */
static void probes__are_lost_at_random(void **state)
{
	static const enum xroce_transport transports[] = { XROCE_UC, XROCE_UD };

	for (u32 t = 0; t < ARRAY_SIZE(transports); t++) {
		u64 all_ns = 0, longest_ns = 0;
		u32 waits = 0;

		for (u64 seed = 1; seed <= 20; seed++) {
			struct scene s = scene_of(transports[t], seed, NULL);
			u32 taken;

			warm_up(&s, 2);
			s.a->node->to[1].drop_rate = PACKETS_OF_ALL / 2;
			s.b->node->to[0].drop_rate = PACKETS_OF_ALL / 2;
			taken = s.b->recv->n;
			for (u32 i = 0; i < 50; i++) {
				const u64 waits_before = s.a->node->stats.flow_waits;
				u64 took_ns;

				post(&s, 1);
				took_ns = time_to_send(&s, WARM + i + 1, CREDIT_PATIENCE_NS);
				check(s.w, took_ns || s.a->send->n == WARM + i + 1);
				world_run_for(s.w, STEP_NS);
				post_receives(&s, s.b, s.b->recv->n - taken);
				taken = s.b->recv->n;
				waits += s.a->node->stats.flow_waits != waits_before;
				all_ns += took_ns;
				longest_ns = max_u64(longest_ns, took_ns);
			}
			scene_end(&s);
		}
		assert_true(waits > 100);
		assert_true(all_ns / waits < 20 * NSEC_PER_MSEC);
		assert_true(longest_ns < NSEC_PER_SEC);
	}
}

/* A peer that has not answered yet is soon probed again, as the wait for it is short. */
static void probes__to_a_stranger(void **state)
{
	for (u64 lost_ns = 20 * NSEC_PER_MSEC;
	     lost_ns + CREDIT_RETRY_STRANGER_NS < CREDIT_STRANGER_NS;
	     lost_ns += 7 * NSEC_PER_MSEC) {
		struct scene s = scene_of(XROCE_UD, 1, NULL);

		post_receives(&s, s.b, 2 * CREDIT_START);
		post(&s, CREDIT_START);
		s.b->node->to[0].dead = true;
		post(&s, CREDIT_START);
		world_run_for(s.w, lost_ns);
		check_eq(s.w, s.a->send->n, CREDIT_START);
		s.b->node->to[0].dead = false;
		check(s.w, time_to_send(&s, 2 * CREDIT_START,
					CREDIT_RETRY_STRANGER_NS + NSEC_PER_MSEC));
		check_eq(s.w, s.b->node->drops.no_receive, 0);
		scene_end(&s);
	}
}

/*
 * A message without a posted receive over there waits, and finally leaves. Probes are frequent at
 * first, then less so.
 */
static void receives__none_for_long(void **state)
{
	struct scene s = scene_of(XROCE_UD, 1, NULL);
	u64 probes, took_ns;

	warm_up(&s, 0);
	probes = s.a->node->stats.flow_probes;
	post(&s, 1);
	took_ns = time_to_send(&s, WARM + 1, 2 * CREDIT_PATIENCE_NS);
	check(s.w, took_ns >= CREDIT_PATIENCE_NS && took_ns < CREDIT_PATIENCE_NS + 2 * STEP_NS);
	check(s.w, s.a->node->stats.flow_probes - probes < 150);
	check_eq(s.w, s.b->recv->n, WARM);
	scene_end(&s);
}

/* And when one is posted, it is soon known: in a sixteenth of the time that was waited. */
static void receives__come_late(void **state)
{
	for (u64 late_ns = 100 * NSEC_PER_USEC; late_ns < CREDIT_PATIENCE_NS; late_ns *= 3) {
		struct scene s = scene_of(XROCE_UD, 1, NULL);
		u64 took_ns;

		warm_up(&s, 0);
		post(&s, 1);
		world_run_for(s.w, late_ns);
		check_eq(s.w, s.a->send->n, WARM);
		post_receives(&s, s.b, 1);
		took_ns = time_to_send(&s, WARM + 1, CREDIT_PATIENCE_NS);
		check(s.w, took_ns && took_ns <= CREDIT_LOOK_MAX_NS + late_ns / 16 + 2 * STEP_NS);
		world_run(s.w);
		check_eq(s.w, s.b->recv->n, WARM + 1);
		scene_end(&s);
	}
}

/* What a link loses: probes, answers, all else, or several of these. */
enum { LOSES_DATA = 1, LOSES_PROBES = 2, LOSES_ANSWERS = 4, LOSES_ALL = 7 };

static bool is_of_kind(const struct sent_frame *f, void *arg)
{
	const u32 loses = *(const u32 *)arg;

	if (!(f->packet.flags & OP_CREDIT))
		return loses & LOSES_DATA;
	return loses & (f->packet.opcode == OPCODE_CREDIT_PROBE ? LOSES_PROBES : LOSES_ANSWERS);
}

/* Runs both programs for `ns`: each posts a receive again, and node 1 echoes each message. */
static void talk(struct scene *s, u64 ns)
{
	const u32 came = s->a->recv->n, asked = s->b->recv->n;

	world_run_for(s->w, ns);
	post_receives(s, s->a, s->a->recv->n - came);
	post_receives(s, s->b, s->b->recv->n - asked);
	post_to(s, s->b, s->a, s->b->recv->n - asked);
}

/* Sends a request. Returns whether an echo came within limit_ns. */
static bool request(struct scene *s, u64 limit_ns)
{
	const u64 start_ns = s->w->now_ns;
	const u32 had = s->a->recv->n;

	post(s, 1);
	while (s->a->recv->n == had && s->w->now_ns - start_ns < limit_ns)
		talk(s, s->w->now_ns - start_ns < NSEC_PER_MSEC ? STEP_NS : NSEC_PER_MSEC);
	return s->a->recv->n > had;
}

/*
 * Requests and echoes, some of which are lost for a while in one direction or both, with receivers
 * that post few receives or many: when the loss ends, the next echo comes after one more probe at
 * the latest, and later ones at once.
 */
static void echoes(enum xroce_transport transport, u32 receives, u32 loses, u32 links)
{
	struct scene s = scene_of(transport, 1, NULL);

	world_label(s.w, "test_credit_loss, echoes of %u, %u receives, loses %x on %x", transport,
		    receives, loses, links);
	post_receives(&s, s.a, receives);
	post_receives(&s, s.b, receives);
	for (u32 i = 0; i < WARM; i++)
		check(s.w, request(&s, NSEC_PER_MSEC));
	s.a->node->to[1].drops = links & 1 ? is_of_kind : NULL;
	s.b->node->to[0].drops = links & 2 ? is_of_kind : NULL;
	s.a->node->to[1].drops_arg = s.b->node->to[0].drops_arg = &loses;
	for (u32 i = 0; i < 10; i++)
		request(&s, CREDIT_PATIENCE_NS / 12);
	loses = 0;
	check(s.w, request(&s, CREDIT_RETRY_MAX_NS + 2 * NSEC_PER_MSEC));
	/* delayed messages are echoed too */
	for (u32 i = 0; i < 100; i++)
		talk(&s, NSEC_PER_MSEC / 10);
	for (u32 i = 0; i < 5; i++)
		check(s.w, request(&s, NSEC_PER_MSEC));
	scene_end(&s);
}

static void echoes__after_losses(void **state)
{
	static const u32 receives[] = { 1, 4, 16, 200 };

	for (u32 loses = 1; loses <= LOSES_ALL; loses++)
		for (u32 links = 1; links <= 3; links++)
			for (u32 r = 0; r < ARRAY_SIZE(receives); r++) {
				echoes(XROCE_UD, receives[r], loses, links);
				echoes(XROCE_UC, receives[r], loses, links);
			}
}

static struct srq *srq_of_many(struct node *n)
{
	return world_srq(n, SENDERS * POSTS);
}

static void post_shared(struct scene *s, u32 n)
{
	const struct sge sge = buffer_sge(s->remote, 0, GRH + LEN);

	for (u32 i = 0; i < n; i++)
		post_srq_recv(s->o.srq[1], i, &sge, 1);
}

static struct {
	struct scene s;
	struct side *from[SENDERS], *to[SENDERS];
	struct pair more[SENDERS - 1];
	u32 taken;
} t;

/* As many receives are posted again as were used; returns how many messages have left. */
static u32 shared_sent(void)
{
	u32 sent = 0, taken = 0;

	for (u32 i = 0; i < SENDERS; i++) {
		sent += t.from[i]->send->n;
		taken += t.to[i]->recv->n;
	}
	post_shared(&t.s, taken - t.taken);
	t.taken = taken;
	return sent;
}

/* All of them send at once, with `receives` receives in the SRQ. */
static void share(u32 receives)
{
	const u32 n = SENDERS * WARM;
	u64 start_ns;

	t.s = scene_of(XROCE_UD, 1, srq_of_many);
	t.from[0] = t.s.a;
	t.to[0] = t.s.b;
	for (u32 i = 1; i < SENDERS; i++) {
		t.more[i - 1] = pair_connect(t.s.w, &t.s.o);
		t.from[i] = &t.more[i - 1].side[0];
		t.to[i] = &t.more[i - 1].side[1];
	}
	post_shared(&t.s, n + receives);
	t.taken = n;
	for (u32 round = 0; round < 2; round++) {
		world_run(t.s.w);
		for (u32 i = 0; i < SENDERS; i++)
			post_to(&t.s, t.from[i], t.to[i], WARM);
	}
	start_ns = t.s.w->now_ns;
	while (shared_sent() < 2 * n) {
		check(t.s.w, t.s.w->now_ns - start_ns < CREDIT_PATIENCE_NS / 4);
		world_run_for(t.s.w, STEP_NS);
	}
	world_run(t.s.w);
	shared_sent();
	/* messages with promises from the first round as well */
	check(t.s.w, t.taken - n > n / 2);
	for (u32 i = 1; i < SENDERS; i++)
		pair_destroy(&t.more[i - 1]);
	side_destroy(t.s.a);
	side_destroy(t.s.b);
	world_srq_destroy(t.s.o.srq[1]);
	world_destroy(t.s.w);
}

/* More senders than receives in an SRQ: all posted receives are used, and no more. */
static void srq__fewer_than_senders(void **state)
{
	for (u32 receives = 1; receives <= 2 * SENDERS; receives++)
		share(receives);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probes__are_lost_at_random),
		cmocka_unit_test(probes__to_a_stranger),
		cmocka_unit_test(receives__none_for_long),
		cmocka_unit_test(receives__come_late),
		cmocka_unit_test(echoes__after_losses),
		cmocka_unit_test(srq__fewer_than_senders),
	};

	return cmocka_run_group_tests_name("credit_loss", tests, NULL, NULL);
}
