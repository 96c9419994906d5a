/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/* A NAK whose PSN is the next one to be sent: an ACK of everything before it, and nothing else. */
#include "attack.h"
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

static const u8 syndromes[] = {
	AETH_NAK | NAK_PSN_SEQUENCE,
	AETH_NAK | NAK_INVALID_REQUEST,
	AETH_NAK | NAK_REMOTE_ACCESS,
	AETH_NAK | NAK_REMOTE_OPERATION,
	AETH_RNR_NAK | 1,
};

static enum xroce_drop deliver(struct scene *s, u32 psn, u8 syndrome)
{
	struct packet p = { .opcode = OPCODE(XROCE_RC, OP5_ACKNOWLEDGE), .migreq = true, .psn = psn,
			    .syndrome = syndrome };

	return attack_deliver(s->w, s->a, 1, p, NULL, 0);
}

static void run(u8 syndrome, u32 disable)
{
	struct world *w =
		world_create_with(2, 3, &(struct world_options){ .disable = { disable } });
	struct pair_options o = pair_defaults();
	struct scene s = scene_in(w, &o, 8192);
	struct requester *req = &s.a->qp->req;

	world_label(w, "test_nak_unsent %02x %x", syndrome, disable);
	w->node[1].to[0].dead = true; /* no answer except handmade ones */
	scene_post(&s, 1, WR_WRITE, 3 * 1024);
	scene_post(&s, 2, WR_WRITE, 64);
	world_run_for(w, 4 * WORLD_LATENCY_NS);
	check_eq(w, s.a->send->n, 0);
	check_eq(w, deliver(&s, psn_add(req->sent_psn, 1), syndrome),
		 XROCE_DROP_unexpected_response);
	check_eq(w, s.a->send->n, 0);
	check_eq(w, deliver(&s, req->sent_psn, syndrome), 0);
	world_run_for(w, 4 * WORLD_LATENCY_NS);
	expect(w, s.a->send, 0, .wr_id = 1, .opcode = CQE_WRITE, .byte_len = 3 * 1024,
	       .qpn = s.a->qp->qpn);
	expect(w, s.a->send, 1, .wr_id = 2, .opcode = CQE_WRITE, .byte_len = 64,
	       .qpn = s.a->qp->qpn);
	check_eq(w, w->node[0].stats.tx_retransmitted, 0);
	check_eq(w, req->retries_left, o.retry_cnt);
	check_eq(w, req->rnr_retries_left, o.rnr_retry);
	/* with nothing outstanding it says nothing */
	check_eq(w, deliver(&s, req->sent_psn, syndrome), XROCE_DROP_unexpected_response);
	w->node[1].to[0].dead = false;
	scene_post(&s, 3, WR_WRITE, 64);
	world_run(w);
	expect(w, s.a->send, 2, .wr_id = 3, .opcode = CQE_WRITE, .byte_len = 64,
	       .qpn = s.a->qp->qpn);
	check_eq(w, w->node[0].stats.timeouts, 0);
	scene_end(&s);
}

static void nak_of_unsent__acknowledges_all_before(void **state)
{
	for (u32 i = 0; i < ARRAY_SIZE(syndromes); i++)
		for (u32 plain = 0; plain < 2; plain++)
			run(syndromes[i], plain ? ENGINE_NO_SELECTIVE | ENGINE_NO_ADAPTIVE_RTO : 0);
}

/* An earlier READ is not acknowledged but missing: it is requested again. */
static void nak_of_unsent__does_not_pass_a_read(void **state)
{
	struct world *w = world_create(2, 3);
	struct pair_options o = pair_defaults();
	struct scene s = scene_in(w, &o, 8192);

	world_label(w, "test_nak_unsent read");
	w->node[1].to[0].drop = 1; /* its response */
	scene_post(&s, 1, WR_READ, 64);
	world_run_for(w, 4 * WORLD_LATENCY_NS);
	check_eq(w, deliver(&s, s.a->qp->req.sent_psn, AETH_NAK | NAK_PSN_SEQUENCE), 0);
	check_eq(w, s.a->send->n, 0);
	world_run(w);
	expect(w, s.a->send, 0, .wr_id = 1, .opcode = CQE_READ, .byte_len = 64,
	       .qpn = s.a->qp->qpn);
	check_eq(w, w->node[0].stats.timeouts + w->node[0].stats.rto_probes, 0);
	scene_end(&s);
}

/* The answer to a selective repair may be such a NAK: the queue goes on. */
static void nak_of_unsent__ends_a_repair(void **state)
{
	struct world *w = world_create(2, 3);
	struct pair_options o = pair_defaults();
	struct scene s = scene_in(w, &o, 8192);

	world_label(w, "test_nak_unsent repair");
	w->node[0].to[1].drop = 1;
	w->node[1].to[0].drop = 2; /* the ACK of the repaired packet; the NAK before it arrives */
	scene_post(&s, 1, WR_WRITE, 3 * 1024);
	world_run_for(w, 8 * WORLD_LATENCY_NS);
	check(w, s.a->qp->req.recovery.waiting);
	check_eq(w, deliver(&s, s.a->qp->req.sent_psn, AETH_NAK | NAK_PSN_SEQUENCE), 0);
	check(w, !s.a->qp->req.recovery.waiting);
	scene_post(&s, 2, WR_WRITE, 64);
	world_run(w);
	expect(w, s.a->send, 1, .wr_id = 2, .opcode = CQE_WRITE, .byte_len = 64,
	       .qpn = s.a->qp->qpn);
	check_eq(w, w->node[0].stats.timeouts + w->node[0].stats.rto_probes, 0);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nak_of_unsent__acknowledges_all_before),
		cmocka_unit_test(nak_of_unsent__does_not_pass_a_read),
		cmocka_unit_test(nak_of_unsent__ends_a_repair),
	};

	return cmocka_run_group_tests_name("nak_unsent", tests, NULL, NULL);
}
