/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/* tier: long san */
/* tier: long san_engines XROCE_SIM_ENGINES=3 */
/*
 * Blind injection: an attacker knows the QPN and the addresses of a connection, and no PSN. Forged
 * packets ahead of the sequence are kept for a while; they must never be executed, cost a message
 * its time-out or end the connection. Exceptions: a packet at the exact expected PSN, which an
 * endpoint without reordering takes as well, and guesses as exact: see is_exact().
 */
#include "../../user/engine/internal.h"
#include "../../user/engine/recovery.h"
#include "attack.h"
#include "scene.h"

#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

#define PMTU   1024
#define BYTES  (40 * PMTU)
#define AHEAD  256	/* the attacker's packets are at most so far from the sequence */
#define FORGED 0xbad
/* a packet within the window this often: all of the circle's takes a while longer */
#define STEP_NS 3000

static struct scene scene_attacked(u64 seed, u32 disable, const char *name)
{
	struct world *w = world_create_with(
		2, seed, &(struct world_options){ .disable = { disable, disable } });
	struct pair_options o = pair_defaults();
	struct scene s;

	o.max_send_wr = o.max_recv_wr = 64;
	o.cq_capacity = 4096;
	o.max_rd_atomic = o.max_dest_rd_atomic = 8;
	o.psn[0] = 0xffff80; /* the sequence passes 0 */
	s = scene_in(w, &o, BYTES);
	w->keep_frames = false;
	w->max_steps = 4000000;
	world_label(w, "test_injection %s seed %llu disable %x", name, (unsigned long long)seed,
		    disable);
	return s;
}

/* ---- what the attacker sends ---- */

/* A request that would be executed in its turn: a message of one packet, or a piece of one. */
static void inject_request(struct scene *s, u8 low, u32 psn, bool migreq)
{
	struct packet p = {
		.opcode = OPCODE(XROCE_RC, low), .psn = psn, .ackreq = true, .migreq = migreq
	};
	u8 bytes[PMTU];

	p.va = buffer_va(s->remote);
	p.rkey = s->remote->mr->key;
	p.dma_len = low == OP5_WRITE_FIRST ? BYTES : PMTU;
	buffer_fill(bytes, PMTU, FORGED);
	attack_deliver(s->w, s->b, 0, p, bytes, PMTU);
}

static void inject_response(struct scene *s, u8 low, u32 psn)
{
	struct packet p = { .opcode = OPCODE(XROCE_RC, low),
			    .psn = psn,
			    .migreq = true,
			    .original = FORGED,
			    .syndrome = AETH_ACK | AETH_CREDIT_NONE };
	u8 bytes[PMTU];

	buffer_fill(bytes, PMTU, FORGED);
	attack_deliver(s->w, s->a, 1, p, bytes, low == OP5_ATOMIC_ACKNOWLEDGE ? 0 : PMTU);
}

/*
 * PSNs that are as hard to guess as without reordering: the expected one, its neighbours (which
 * could repeat a repair, or follow a gap of one packet), and the PSNs after the last held one, next
 * to it or after a gap of one.
 */
static bool is_exact(const struct reorder *early, u32 expected, u32 psn)
{
	u32 last = early->tail ? early->tail->packet.psn : expected;

	return (u32)(psn_diff(psn, expected) + 1) <= 2 || (u32)(psn_diff(psn, last) - 1) <= 1;
}

static void inject(struct scene *s)
{
	static const u8 requests[] = { OP5_SEND_ONLY,	OP5_SEND_MIDDLE,  OP5_SEND_LAST,
				       OP5_WRITE_FIRST, OP5_WRITE_MIDDLE, OP5_WRITE_LAST,
				       OP5_WRITE_ONLY };
	static const u8 responses[] = { OP5_READ_RESPONSE_FIRST, OP5_READ_RESPONSE_MIDDLE,
					OP5_READ_RESPONSE_LAST, OP5_READ_RESPONSE_ONLY,
					OP5_ATOMIC_ACKNOWLEDGE };
	const struct responder *resp = &s->b->qp->resp;
	const struct requester *req = &s->a->qp->req;
	u32 far = rng_below(&s->w->where, 2 * AHEAD) - AHEAD;
	u32 psn = psn_add(resp->seq.expected_psn, far);

	if (!is_exact(&resp->early, resp->seq.expected_psn, psn))
		inject_request(s, requests[rng_below(&s->w->where, ARRAY_SIZE(requests))], psn,
			       rng_below(&s->w->where, 2));
	psn = psn_add(req->unacked_psn, far);
	if (!is_exact(&req->early, req->unacked_psn, psn))
		inject_response(s, responses[rng_below(&s->w->where, ARRAY_SIZE(responses))], psn);
}

/* ---- the application ---- */

/* One message of len bytes, while the attacker sends a packet or two every step_ns. */
static void transfer(struct scene *s, enum wr_opcode op, u32 len, u32 fill, u64 step_ns)
{
	bool is_read = op == WR_READ;
	struct buffer *from = is_read ? s->remote : s->local, *to = is_read ? s->local : s->remote;
	u32 sent = s->a->send->n, received = s->b->recv->n;

	buffer_fill(from->bytes, len, fill);
	memset(to->bytes, 0, len);
	if (op == WR_SEND)
		post_recv_buffer(s->b, fill, s->remote, 0, len);
	scene_post(s, fill, op, len);
	for (u32 i = 0; i < 400000 && s->a->send->n == sent; i++) {
		world_run_for(s->w, step_ns ? step_ns : 500);
		if (step_ns)
			inject(s);
	}
	expect(s->w, s->a->send, sent, .wr_id = fill, .byte_len = len, .qpn = s->a->qp->qpn,
	       .opcode = is_read ? CQE_READ : op == WR_SEND ? CQE_SEND : CQE_WRITE);
	check_eq(s->w, s->b->recv->n, received + (op == WR_SEND));
	if (op == WR_SEND)
		expect(s->w, s->b->recv, received, .wr_id = fill, .byte_len = len,
		       .opcode = CQE_RECV, .qpn = s->b->qp->qpn, .src_qpn = s->a->qp->qpn);
	check(s->w, bytes_are(to->bytes, len, fill));
	check_eq(s->w, qp_state(s->a->qp), QPS_RTS);
	check_eq(s->w, qp_state(s->b->qp), QPS_RTS);
}

static void fetch_add(struct scene *s, u32 fill)
{
	struct send send = scene_request(s, fill, WR_FETCH_ADD, sizeof(u64));
	u32 before = s->a->send->n;
	u64 value = fill, got;

	memcpy(s->remote->bytes, &value, sizeof(value));
	send.compare_add = 1;
	post_send(s->a, &send);
	for (u32 i = 0; i < 400000 && s->a->send->n == before; i++) {
		world_run_for(s->w, STEP_NS);
		inject(s);
	}
	check_eq(s->w, s->a->send->n, before + 1);
	check_eq(s->w, s->a->send->log[before].status, CQE_SUCCESS);
	memcpy(&got, s->local->bytes, sizeof(got));
	check_eq(s->w, got, value);
}

static void expect_no_timeout(struct scene *s)
{
	for (u32 i = 0; i < 2; i++) {
		check_eq(s->w, s->w->node[i].stats.timeouts, 0);
		check_eq(s->w, s->w->node[i].stats.rto_probes, 0);
	}
}

/* ---- requests ---- */

/* One packet ahead by any distance, planted while nothing is under way; then messages pass it. */
static void request__planted_in_quiet(void **state)
{
	static const u8 low[] = { OP5_SEND_ONLY, OP5_WRITE_ONLY };

	for (u32 ahead = 1; ahead <= AHEAD; ahead++)
		for (u32 kind = 0; kind < 4; kind++) {
			struct scene s = scene_attacked(ahead, 0, "planted in quiet");

			if (ahead % 2) /* as the connection's first, or later */
				transfer(&s, WR_SEND, 100, 1, 0);
			inject_request(&s, low[kind % 2],
				       psn_add(s.b->qp->resp.seq.expected_psn, ahead), kind / 2);
			world_run_for(s.w, 10000);
			for (u32 i = 0; i < ahead + 2; i++)
				transfer(&s, i % 2 ? WR_SEND : WR_WRITE, PMTU, 2 + i, 0);
			expect_no_timeout(&s);
			check_eq(s.w, s.w->node[0].stats.tx_retransmitted, 0);
			scene_end(&s);
		}
}

/* A run of them, which is as good as proven were it not for the proof. */
static void request__planted_run(void **state)
{
	for (u32 ahead = 1; ahead < 128; ahead += 3)
		for (u32 migreq = 0; migreq < 2; migreq++) {
			struct scene s = scene_attacked(ahead, 0, "planted run");

			transfer(&s, WR_SEND, 100, 1, 0);
			for (u32 i = 0; i < 16; i++)
				inject_request(&s, OP5_SEND_ONLY,
					       psn_add(s.b->qp->resp.seq.expected_psn, ahead + i),
					       migreq);
			for (u32 i = 0; i < 8; i++)
				transfer(&s, WR_SEND, BYTES, 2 + i, 0);
			expect_no_timeout(&s);
			scene_end(&s);
		}
}

/* As the first attack found: a packet at every 250th PSN of the circle, between the messages. */
static void request__at_every_250th_psn(void **state)
{
	struct scene s = scene_attacked(5, 0, "every 250th");

	for (u32 round = 0; round < 4; round++) {
		for (u32 psn = 7 * round; psn <= ROCE_PSN_MASK; psn += 250) {
			if (psn != s.b->qp->resp.seq.expected_psn)
				inject_request(&s, OP5_SEND_ONLY, psn, true);
			if (psn % 1000 < 250)
				world_settle(s.w);
		}
		for (u32 i = 0; i < 260; i++)
			transfer(&s, WR_SEND, 64, i, 0);
	}
	expect_no_timeout(&s);
	scene_end(&s);
}

/* ---- both ways, under traffic, over paths that lose and hold back ---- */

static void traffic(u64 seed, u32 drop_rate, u32 hold_rate)
{
	struct scene s = scene_attacked(seed, 0, "traffic");

	for (u32 i = 0; i < 2; i++) {
		s.w->node[i].to[!i].drop_rate = drop_rate;
		s.w->node[i].to[!i].hold_rate = hold_rate;
	}
	for (u32 i = 0; i < 12; i++) {
		transfer(&s, WR_SEND, BYTES, 3 * i, STEP_NS);
		transfer(&s, WR_READ, BYTES, 3 * i + 1, STEP_NS);
		transfer(&s, WR_WRITE, BYTES, 3 * i + 2, STEP_NS);
		fetch_add(&s, i);
		transfer(&s, WR_SEND, 64, 100 + i, STEP_NS);
	}
	check(s.w, s.w->node[0].stats.rx_held + s.w->node[1].stats.rx_held > 0);
	if (!drop_rate && !hold_rate)
		expect_no_timeout(&s);
	scene_end(&s);
}

static void both__under_traffic(void **state)
{
	for (u64 seed = 1; seed <= 60; seed++)
		traffic(seed, 0, 0);
}

static void both__under_traffic_with_loss(void **state)
{
	for (u64 seed = 1; seed <= 60; seed++)
		traffic(seed, seed % 2 ? 655 : 3277, 0);
}

static void both__under_traffic_with_late_packets(void **state)
{
	for (u64 seed = 1; seed <= 60; seed++)
		traffic(seed, seed % 2 ? 655 : 0, 1000);
}

/* ---- responses ---- */

/* Forges each PSN of a READ's responses but the first, before any has arrived. */
static void response__planted_before_the_genuine(void **state)
{
	for (u32 ahead = 1; ahead < 40; ahead++)
		for (u32 kind = 0; kind < 2; kind++) {
			struct scene s = scene_attacked(ahead, 0, "planted response");

			transfer(&s, WR_WRITE, 64, 1, 0);
			buffer_fill(s.remote->bytes, BYTES, 9);
			memset(s.local->bytes, 0, BYTES);
			scene_post(&s, 2, WR_READ, BYTES);
			world_settle(s.w);
			inject_response(&s,
					kind ? OP5_READ_RESPONSE_LAST : OP5_READ_RESPONSE_MIDDLE,
					psn_add(s.a->qp->req.unacked_psn, ahead));
			world_run(s.w);
			expect(s.w, s.a->send, 1, .wr_id = 2, .opcode = CQE_READ, .byte_len = BYTES,
			       .qpn = s.a->qp->qpn);
			check(s.w, bytes_are(s.local->bytes, BYTES, 9));
			expect_no_timeout(&s);
			scene_end(&s);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request__planted_in_quiet),
		cmocka_unit_test(request__planted_run),
		cmocka_unit_test(request__at_every_250th_psn),
		cmocka_unit_test(both__under_traffic),
		cmocka_unit_test(both__under_traffic_with_loss),
		cmocka_unit_test(both__under_traffic_with_late_packets),
		cmocka_unit_test(response__planted_before_the_genuine),
	};

	return cmocka_run_group_tests_name("injection", tests, NULL, NULL);
}
