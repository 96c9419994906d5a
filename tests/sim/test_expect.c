/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * The expectations of responses that XDP gets (requester.c): the first PSN whose acknowledgement
 * completes a request in the send CQ. world_deliver() checks with every packet of every test that
 * none is missed; this test, that no thread is woken for nothing.
 */
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

#define NOTHING UINT32_MAX

static struct scene scene_make(struct pair_options *o, const char *name)
{
	struct world *w = world_create(2, 31);

	world_label(w, "test_expect %s", name);
	return scene_in(w, o, 8192);
}

/* The PSN that XDP finds, counted from a's first one. */
static u32 expected(const struct scene *s)
{
	const u32 word = s->a->node->expect[XROCE_QP_SLOT(s->a->qp->qpn)].psn;

	return word & XROCE_EXPECTED ? (u32)psn_diff(word & ROCE_PSN_MASK, s->o.psn[0]) : NOTHING;
}

static void post(struct scene *s, enum wr_opcode opcode, u32 len, bool signaled)
{
	struct send send = scene_request(s, 1, opcode, len);

	send.flags = signaled ? WR_SIGNALED : 0;
	if (opcode == WR_SEND)
		post_recv_buffer(s->b, 1, s->remote, 0, 4096);
	post_send(s->a, &send);
}

static void unsignaled__nothing(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make(&o, "unsignaled");

	check_eq(s.w, expected(&s), NOTHING);
	for (int i = 0; i < 3; i++)
		post(&s, WR_SEND, 64, false);
	world_settle(s.w);
	check_eq(s.w, expected(&s), NOTHING);
	world_run(s.w);
	check_eq(s.w, expected(&s), NOTHING);
	scene_end(&s);
}

/*
 * Each signaled one in its turn: by the last packet of its message, not before, and no longer than
 * it is out.
 */
static void signaled__the_oldest(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s;

	o.pmtu = 1024;
	s = scene_make(&o, "signaled");
	post(&s, WR_SEND, 64, false);	 /* PSN 0 */
	post(&s, WR_WRITE, 3000, true);	 /* 1 to 3 */
	post(&s, WR_SEND, 64, false);	 /* 4 */
	post(&s, WR_READ, 2048, true);	 /* 5 and 6 */
	post(&s, WR_WRITE, 64, false);	 /* 7 */
	world_settle(s.w);
	check_eq(s.w, expected(&s), 3);
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 2);
	check_eq(s.w, expected(&s), NOTHING);
	post(&s, WR_SEND, 64, true); /* 8 */
	world_settle(s.w);
	check_eq(s.w, expected(&s), 8);
	world_run(s.w);
	check_eq(s.w, expected(&s), NOTHING);
	scene_end(&s);
}

/* An ACK of the first of two: the second is expected from then on. */
static void signaled__one_after_another(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make(&o, "one after another");

	post(&s, WR_SEND, 64, true); /* 0 */
	world_settle(s.w);
	world_run_for(s.w, s.w->latency_ns); /* the first is at b, its ACK on the way */
	post(&s, WR_SEND, 64, false); /* 1 */
	post(&s, WR_SEND, 64, true);  /* 2 */
	world_settle(s.w);
	check_eq(s.w, expected(&s), 0);
	world_run_for(s.w, s.w->latency_ns);
	check_eq(s.w, s.a->send->n, 1);
	check_eq(s.w, expected(&s), 2);
	world_run(s.w);
	check_eq(s.w, expected(&s), NOTHING);
	scene_end(&s);
}

static void sq_sig_all__each(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s;

	o.sq_sig_all = true;
	s = scene_make(&o, "all signaled");
	for (u32 i = 0; i < 3; i++) {
		post(&s, WR_WRITE, 64, false);
		world_settle(s.w);
		check_eq(s.w, expected(&s), i);
		world_run(s.w);
		check_eq(s.w, expected(&s), NOTHING);
	}
	scene_end(&s);
}

/* The requests before it are unsignaled: their acknowledgement brings its error. */
static void failure__is_foreseen(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make(&o, "failure");
	struct send bad;

	post(&s, WR_WRITE, 64, false);	 /* 0 */
	bad = scene_request(&s, 2, WR_WRITE, 64);
	bad.flags = 0;
	bad.sge[0].lkey ^= 0x100;
	post_send(s.a, &bad);
	world_settle(s.w);
	check_eq(s.w, expected(&s), 0);
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 1);
	check_eq(s.w, qp_state(s.a->qp), QPS_ERR);
	scene_end(&s);
}

/* Without a channel no thread can be woken: nothing is written. */
static void without_a_channel__nothing(void **state)
{
	struct pair_options o = pair_defaults();
	struct world *w = world_create(2, 33);
	struct watched_cq *cq[2];
	struct scene s;

	world_label(w, "test_expect without a channel");
	for (u32 i = 0; i < 2; i++) {
		cq[i] = o.cq[i] = world_cq(&w->node[i], 64);
		cq[i]->cq.with_channel = false;
	}
	s = scene_in(w, &o, 8192);
	post(&s, WR_WRITE, 64, true);
	world_settle(w);
	check_eq(w, expected(&s), NOTHING);
	world_run(w);
	check_eq(w, cq[0]->n, 1);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unsignaled__nothing),
		cmocka_unit_test(signaled__the_oldest),
		cmocka_unit_test(signaled__one_after_another),
		cmocka_unit_test(sq_sig_all__each),
		cmocka_unit_test(failure__is_foreseen),
		cmocka_unit_test(without_a_channel__nothing),
	};

	return cmocka_run_group_tests_name("expect", tests, NULL, NULL);
}
