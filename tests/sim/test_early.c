/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * The rules by which early packets are kept, dropped and proven, one by one:
 * docs/injection.md.
 */
#include "../../user/engine/internal.h"
#include "../../user/engine/recovery.h"
#include "attack.h"
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

#define PMTU   1024
#define BYTES  (40 * PMTU)
#define FORGED 0xbad
#define GOOD   7

static struct scene scene_named(const char *name)
{
	struct world *w = world_create(2, 9);
	struct pair_options o = pair_defaults();

	o.max_send_wr = o.max_recv_wr = 64;
	world_label(w, "test_early %s", name);
	return scene_in(w, &o, BYTES);
}

static void deliver_send(struct scene *s, u32 psn, bool migreq, u32 fill)
{
	struct packet p = { .opcode = OPCODE(XROCE_RC, OP5_SEND_ONLY),
			    .psn = psn,
			    .migreq = migreq };
	u8 bytes[64];

	buffer_fill(bytes, sizeof(bytes), fill);
	attack_deliver(s->w, s->b, 0, p, bytes, sizeof(bytes));
	world_settle(s->w);
}

static void post_receives(struct scene *s, u32 n)
{
	for (u32 i = 0; i < n; i++)
		post_recv_buffer(s->b, i, s->remote, i * 64, 64);
}

/* n receives have completed, each with the bytes of GOOD. */
static void expect_received(struct scene *s, u32 n)
{
	check_eq(s->w, s->b->recv->n, n);
	for (u32 i = 0; i < n; i++)
		check(s->w, bytes_are(s->remote->bytes + i * 64, 64, GOOD));
}

/* A forged packet right after a gap, and the genuine one with its PSN: neither is trusted. */
static void hold__two_of_one_psn(void **state)
{
	struct scene s = scene_named("two of one psn");
	u32 psn = s.b->qp->resp.seq.expected_psn;

	post_receives(&s, 8);
	deliver_send(&s, psn, true, GOOD);
	deliver_send(&s, psn + 2, true, FORGED);
	deliver_send(&s, psn + 2, true, GOOD);
	check_eq(s.w, s.b->qp->resp.early.count, 0);
	/* a repetition to the byte is none */
	deliver_send(&s, psn + 3, true, GOOD);
	deliver_send(&s, psn + 3, true, GOOD);
	check_eq(s.w, s.b->qp->resp.early.count, 1);
	scene_end(&s);
}

/* A packet that comes after one with a later PSN. */
static void hold__in_order_of_arrival(void **state)
{
	struct scene s = scene_named("order");
	u32 psn = s.b->qp->resp.seq.expected_psn;

	post_receives(&s, 8);
	deliver_send(&s, psn + 1, true, GOOD);
	deliver_send(&s, psn + 5, true, FORGED);
	deliver_send(&s, psn + 2, true, GOOD);
	check_eq(s.w, s.b->qp->resp.early.count, 1);
	deliver_send(&s, psn + 3, true, GOOD);
	check_eq(s.w, s.b->qp->resp.early.count, 2);
	check_eq(s.w, s.b->qp->resp.early.tail->packet.psn, psn + 3);
	scene_end(&s);
}

/*
 * What came ahead of packets that then came in their turn is dropped, and not executed meanwhile.
 */
static void in_turn__drops_what_it_overtakes(void **state)
{
	struct scene s = scene_named("in turn");
	u32 psn = s.b->qp->resp.seq.expected_psn;

	post_receives(&s, 8);
	deliver_send(&s, psn + 3, true, FORGED);
	check_eq(s.w, s.b->qp->resp.early.count, 1);
	deliver_send(&s, psn, true, GOOD);
	check_eq(s.w, s.b->qp->resp.early.count, 0);
	/* a gap of one: it may have been late, so the packet after the gap stays, unproven */
	deliver_send(&s, psn + 2, true, GOOD);
	deliver_send(&s, psn + 1, true, GOOD);
	check_eq(s.w, s.b->qp->resp.early.count, 1);
	expect_received(&s, 2);
	scene_end(&s);
}

/* A mark on a packet that is not the one before it proves nothing; on that one it does. */
static void repair__of_the_packet_before(void **state)
{
	struct scene s = scene_named("late repair");
	u32 psn = s.b->qp->resp.seq.expected_psn;

	post_receives(&s, 8);
	deliver_send(&s, psn, true, GOOD);
	deliver_send(&s, psn + 2, true, GOOD);
	deliver_send(&s, psn + 1, true, GOOD);
	expect_received(&s, 2);
	deliver_send(&s, psn, false, GOOD);
	expect_received(&s, 2);
	deliver_send(&s, psn + 1, false, GOOD);
	expect_received(&s, 3);
	scene_end(&s);
}

/* A peer that never sets MigReq marks nothing by leaving it out. */
static void repair__means_nothing_without_migreq(void **state)
{
	struct scene s = scene_named("plain peer");
	u32 psn = s.b->qp->resp.seq.expected_psn;

	post_receives(&s, 8);
	deliver_send(&s, psn, false, GOOD);
	deliver_send(&s, psn + 2, true, FORGED);
	deliver_send(&s, psn + 1, false, GOOD);
	expect_received(&s, 2);
	deliver_send(&s, psn + 2, false, GOOD);
	expect_received(&s, 3);
	scene_end(&s);
}

/* The requester's last packet was lost: no packet follows its repair, which proves nothing. */
static void repair__with_nothing_behind(void **state)
{
	struct scene s = scene_named("nothing behind");
	u32 psn = s.b->qp->resp.seq.expected_psn;

	post_receives(&s, 8);
	buffer_fill(s.local->bytes, 64, GOOD);
	scene_post(&s, 1, WR_SEND, 64);
	world_run(s.w);
	s.w->node[0].to[1].drop = 2;
	scene_post(&s, 2, WR_SEND, 64);
	world_settle(s.w);
	deliver_send(&s, psn + 2, true, FORGED);
	world_run(s.w);
	expect_received(&s, 2);
	scene_post(&s, 3, WR_SEND, 64);
	world_run(s.w);
	expect_received(&s, 3);
	check_eq(s.w, s.w->node[0].stats.timeouts + s.w->node[0].stats.rto_probes, 0);
	scene_end(&s);
}

/*
 * A READ request is lost, and forged responses determine the resent request: its answer proves
 * nothing.
 */
static void response__of_a_request_that_was_lost(void **state)
{
	struct scene s = scene_named("lost request");
	u8 bytes[PMTU];

	s.w->node[0].to[1].drop = 3; /* both requests */
	buffer_fill(s.remote->bytes, BYTES, GOOD);
	buffer_fill(bytes, PMTU, FORGED);
	scene_post(&s, 1, WR_READ, BYTES);
	world_settle(s.w);
	for (u32 i = 4; i < 12; i++) {
		struct packet p = { .opcode = OPCODE(XROCE_RC, OP5_READ_RESPONSE_MIDDLE),
				    .migreq = true,
				    .psn = s.a->qp->req.unacked_psn + i };

		attack_deliver(s.w, s.a, 1, p, bytes, PMTU);
	}
	check_eq(s.w, s.a->qp->req.early.count, 8);
	world_run(s.w);
	expect(s.w, s.a->send, 0, .wr_id = 1, .opcode = CQE_READ, .byte_len = BYTES,
	       .qpn = s.a->qp->qpn);
	check(s.w, bytes_are(s.local->bytes, BYTES, GOOD));
	scene_end(&s);
}

/*
 * A part of a READ is requested again before the first answer has reached it: nothing is left out.
 */
static void read__repeated_while_it_is_answered(void **state)
{
	struct scene s = scene_named("repeated read");
	struct packet p = { .opcode = OPCODE(XROCE_RC, OP5_READ_REQUEST),
			    .migreq = true,
			    .va = buffer_va(s.remote),
			    .rkey = s.remote->mr->key,
			    .dma_len = 8 * PMTU };
	u32 psn = p.psn = s.b->qp->resp.seq.expected_psn;

	attack_deliver(s.w, s.b, 0, p, NULL, 0);
	p.psn += 4;
	p.va += 4 * PMTU;
	p.dma_len = PMTU;
	attack_deliver(s.w, s.b, 0, p, NULL, 0);
	world_settle(s.w);
	check_eq(s.w, s.w->num_sent, 8);
	for (u32 i = 0; i < 8; i++)
		check_eq(s.w, s.w->sent[i].packet.psn, psn + i);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hold__two_of_one_psn),
		cmocka_unit_test(hold__in_order_of_arrival),
		cmocka_unit_test(in_turn__drops_what_it_overtakes),
		cmocka_unit_test(repair__of_the_packet_before),
		cmocka_unit_test(repair__means_nothing_without_migreq),
		cmocka_unit_test(repair__with_nothing_behind),
		cmocka_unit_test(response__of_a_request_that_was_lost),
		cmocka_unit_test(read__repeated_while_it_is_answered),
	};

	return cmocka_run_group_tests_name("early", tests, NULL, NULL);
}
