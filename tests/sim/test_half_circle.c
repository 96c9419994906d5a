/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * A WRITE of 2^31 bytes at a path MTU of 256 takes half of the PSN circle: its first PSN is as far
 * before the next request's as after it. Both ends start in the middle of such a WRITE, from a null
 * region to a null region, a few packets before its end.
 */
#include "../../user/engine/internal.h"
#include "../../user/engine/requester.h"
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

#define PMTU	256u
#define PACKETS (ROCE_MESSAGE_MAX / PMTU)
#define BYTES	4096u

struct half {
	struct scene s;
	struct mr *null[2];
};

/* Posts the WRITE and lets both ends be `left` packets before its end. */
static struct half half_way(u32 first_psn, u32 left, u32 rx_batch)
{
	const u32 psn = psn_add(first_psn, PACKETS - left);
	struct world *w = world_create(2, 41);
	struct pair_options o = pair_defaults();
	struct half h;
	struct send write;
	struct requester *req;
	struct send_wqe *wqe;

	world_label(w, "test_half_circle first psn %06x, %u left, rx_batch %u", first_psn, left,
		    rx_batch);
	/* of several requests at once, the last one's answer acknowledges the others */
	w->rx_batch = rx_batch;
	o.pmtu = PMTU;
	o.psn[0] = first_psn;
	h.s = scene_in(w, &o, BYTES);
	for (u32 i = 0; i < 2; i++)
		assert_int_equal(
			mr_add_null(engine_mr_table(w->node[i].engine), PAIR_PD, &h.null[i]), 0);
	write = scene_request(&h.s, 1, WR_WRITE, 0);
	write.sge[0] = (struct sge){ .length = ROCE_MESSAGE_MAX, .lkey = h.null[0]->key };
	write.remote_addr = 0;
	write.rkey = h.null[1]->key;
	post_send(h.s.a, &write);

	req = &h.s.a->qp->req;
	wqe = sq_at(&h.s.a->qp->sq, req->tx);
	wqe->first_psn = first_psn;
	wqe->num_psn = PACKETS;
	wqe->executed = false;
	req->assigned++;
	if (h.s.a->qp->tells_xdp)
		expect_assigned(h.s.a->qp);
	req->tx_packet = PACKETS - left;
	req->next_psn = req->unacked_psn = req->sent_psn = psn;
	h.s.b->qp->resp.seq = (struct resp_sequence){
		.expected_psn = psn,
		.in_message = true,
		.migreq = true,
		.message_kind = OP_WRITE,
		.offset = ROCE_MESSAGE_MAX - left * PMTU,
		.rkey = h.null[1]->key,
		.remaining = left * PMTU,
		.va = ROCE_MESSAGE_MAX - left * PMTU,
	};
	return h;
}

static void half_end(struct half *h)
{
	for (u32 i = 0; i < 2; i++)
		mr_remove(engine_mr_table(h->s.w->node[i].engine), h->null[i]);
	scene_end(&h->s);
}

static const u32 starts[] = { 0, 1, 0x1000, 0x7fffff, 0x800000, 0x800001, 0xffffff };

struct losing {
	u32 psn;  /* of the packet that is lost */
	bool lost;
};

static bool lose_once(const struct sent_frame *f, void *arg)
{
	struct losing *l = arg;

	if (l->lost || f->packet.psn != l->psn)
		return false;
	return l->lost = true;
}

/* What follows the WRITE, each of a kind that has its own answer. */
static void post_after(struct half *h)
{
	struct send after[3] = { scene_request(&h->s, 2, WR_READ, BYTES),
				 scene_request(&h->s, 3, WR_FETCH_ADD, 8),
				 scene_request(&h->s, 4, WR_READ, PMTU + 1) };

	after[1].compare_add = 1;
	post_sends(h->s.a, after, 3);
}

static void check_all_done(struct half *h)
{
	check_eq(h->s.w, h->s.a->send->n, 4);
	for (u32 i = 0; i < 4; i++)
		check_eq(h->s.w, h->s.a->send->log[i].status, CQE_SUCCESS);
	check_eq(h->s.w, qp_state(h->s.a->qp), QPS_RTS);
	check_eq(h->s.w, qp_state(h->s.b->qp), QPS_RTS);
	check_eq(h->s.w, h->s.a->node->stats.timeouts, 0);
}

/* Nothing is lost, nothing is sent again. */
static void answers__follow_half_a_circle(void **state)
{
	for (u32 i = 0; i < 2 * ARRAY_SIZE(starts); i++)
		for (u32 left = 1; left <= 200; left += left < 3 ? 1 : 49) {
			struct half h = half_way(starts[i / 2], left, i % 2 ? 1 : 64);

			post_after(&h);
			world_run(h.s.w);
			check_all_done(&h);
			check_eq(h.s.w, h.s.a->node->stats.tx_retransmitted, 0);
			check_eq(h.s.w, h.s.a->node->stats.rto_probes, 0);
			half_end(&h);
		}
}

/* Any packet of the WRITE's end or after it, or its answer, is lost: that is sent again. */
static void loss__after_half_a_circle(void **state)
{
	enum { LEFT = 3, PSNS = LEFT + BYTES / PMTU + 1 + 2 };

	for (u32 i = 0; i < 2 * ARRAY_SIZE(starts); i++)
		for (u32 lost = 0; lost < 2 * PSNS; lost++) {
			const u32 first = starts[i / 2], batch = i % 2 ? 1 : 64;
			struct half h = half_way(first, LEFT, batch);
			struct losing l = { .psn = psn_add(first, PACKETS - LEFT + lost / 2) };
			struct faults *link = &h.s.w->node[lost % 2].to[!(lost % 2)];

			world_label(h.s.w, "test_half_circle first psn %06x, rx_batch %u, lost %u",
				    first, batch, lost);
			link->drops = lose_once;
			link->drops_arg = &l;
			post_after(&h);
			world_run(h.s.w);
			check_all_done(&h);
			/* at most the first READ again, whose request or whole answer was lost */
			check(h.s.w, h.s.a->node->stats.tx_retransmitted <= 4);
			half_end(&h);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers__follow_half_a_circle),
		cmocka_unit_test(loss__after_half_a_circle),
	};

	return cmocka_run_group_tests_name("half_circle", tests, NULL, NULL);
}
