/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/* A peer that does not answer: how often it is asked, when, and what becomes of the work. */
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

static struct scene scene_make(const struct pair_options *o, const char *name)
{
	struct world *w = world_create(2, 3);

	world_label(w, "test_timeout %s, timeout %u, retry_cnt %u", name, o->timeout, o->retry_cnt);
	return scene_in(w, o, 8192);
}

static void post_unsignaled(struct scene *s, u64 wr_id, enum wr_opcode opcode)
{
	struct send send = scene_request(s, wr_id, opcode, 8);

	send.flags = 0;
	post_send(s->a, &send);
}

static u64 timeout_ns(u32 code)
{
	return 4096ull << code;
}

/* 1 + retry_cnt transmissions, no two closer than the timeout; then RETRY_EXC_ERR. */
static void retry_cnt__transmissions(enum wr_opcode opcode, u8 timeout, u8 retry_cnt)
{
	struct pair_options o = pair_defaults();
	struct scene s;

	o.timeout = timeout;
	o.retry_cnt = retry_cnt;
	s = scene_make(&o, "transmissions");
	s.a->node->to[1].dead = true;
	scene_post(&s, 1, opcode, 8);
	world_run(s.w);
	check_eq(s.w, s.w->num_sent, 1u + retry_cnt);
	for (u32 i = 0; i < s.w->num_sent; i++) {
		check_eq(s.w, s.w->sent[i].packet.psn, o.psn[0]);
		check_eq(s.w, s.w->sent[i].packet.ackreq || opcode == WR_READ, 1);
	}
	for (u32 i = 1; i < s.w->num_sent; i++) {
		u64 gap = s.w->sent[i].time_ns - s.w->sent[i - 1].time_ns;

		check(s.w, gap >= timeout_ns(timeout) && gap <= 4 * timeout_ns(timeout));
	}
	check(s.w, s.w->now_ns - s.w->sent[retry_cnt].time_ns >= timeout_ns(timeout));
	check_eq(s.w, s.a->node->stats.timeouts, 1u + retry_cnt);
	check_eq(s.w, s.a->node->stats.tx_retransmitted, retry_cnt);
	check_eq(s.w, s.a->send->n, 1);
	expect(s.w, s.a->send, 0, .wr_id = 1, .status = CQE_RETRY_EXC_ERR,
	       .vendor_err = VERR_TIMEOUT, .qpn = s.a->qp->qpn);
	check_eq(s.w, qp_state(s.a->qp), QPS_ERR);
	check_eq(s.w, world_events(s.a->node, EVENT_QP_STATE, s.a->qp), 1);
	check_eq(s.w, qp_state(s.b->qp), QPS_RTS);
	scene_end(&s);
}

static void timeout__exactly_retry_cnt(void **state)
{
	for (u32 retry_cnt = 0; retry_cnt <= 7; retry_cnt++) {
		retry_cnt__transmissions(WR_SEND, 10, (u8)retry_cnt);
		retry_cnt__transmissions(WR_READ, 10, (u8)retry_cnt);
		retry_cnt__transmissions(WR_FETCH_ADD, 10, (u8)retry_cnt);
	}
}

static void timeout__every_code(void **state)
{
	for (u32 code = 1; code <= 31; code++)
		retry_cnt__transmissions(WR_WRITE, (u8)code, 1);
}

static void timeout__zero_is_none(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s;

	o.timeout = 0;
	s = scene_make(&o, "none");
	s.a->node->to[1].dead = true;
	scene_post(&s, 1, WR_SEND, 8);
	world_run(s.w);
	check_eq(s.w, world_deadline_ns(s.a->node), NSEC_NEVER);
	world_run_for(s.w, 100000 * NSEC_PER_SEC);
	check_eq(s.w, s.w->num_sent, 1);
	check_eq(s.w, s.a->send->n, 0);
	check_eq(s.w, qp_state(s.a->qp), QPS_RTS);
	scene_end(&s);
}

/* No timer runs where nothing is outstanding: an idle engine sleeps for ever. */
static void timeout__idle_has_no_deadline(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make(&o, "idle");

	check_eq(s.w, world_deadline_ns(s.a->node), NSEC_NEVER);
	scene_post(&s, 1, WR_WRITE, 8);
	world_settle(s.w);
	check(s.w, world_deadline_ns(s.a->node) != NSEC_NEVER);
	world_run(s.w);
	check_eq(s.w, world_deadline_ns(s.a->node), NSEC_NEVER);
	check_eq(s.w, world_deadline_ns(s.b->node), NSEC_NEVER);
	scene_end(&s);
}

/*
 * The failed one completes although unsignaled; those behind it are flushed in order, unsignaled
 * ones too; receives as well.
 */
static void timeout__flushes_in_order(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s;
	const enum wr_opcode opcodes[] = { WR_WRITE, WR_READ, WR_SEND, WR_FETCH_ADD, WR_WRITE };

	o.retry_cnt = 2;
	s = scene_make(&o, "flush");
	s.a->node->to[1].dead = true;
	for (u32 i = 0; i < 4; i++)
		post_recv_buffer(s.a, 100 + i, s.local, 0, 64);
	for (u32 i = 0; i < 30; i++) {
		if (i == 0 || i % 3)
			post_unsignaled(&s, i, opcodes[i % 5]);
		else
			scene_post(&s, i, opcodes[i % 5], 8);
	}
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 30);
	expect(s.w, s.a->send, 0, .wr_id = 0, .status = CQE_RETRY_EXC_ERR, .qpn = s.a->qp->qpn);
	for (u32 i = 1; i < 30; i++)
		expect(s.w, s.a->send, i, .wr_id = i, .status = CQE_WR_FLUSH_ERR,
		       .vendor_err = VERR_FLUSHED, .qpn = s.a->qp->qpn);
	check_eq(s.w, s.a->recv->n, 4);
	for (u32 i = 0; i < 4; i++)
		expect(s.w, s.a->recv, i, .wr_id = 100 + i, .status = CQE_WR_FLUSH_ERR,
		       .qpn = s.a->qp->qpn);
	scene_end(&s);
}

/* Acknowledged work before the silence is done, and only what was not acknowledged fails. */
static void timeout__after_some_success(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s;

	o.retry_cnt = 1;
	s = scene_make(&o, "some success");
	scene_post(&s, 0, WR_WRITE, 8);
	world_run(s.w);
	post_unsignaled(&s, 1, WR_WRITE);
	world_run(s.w);
	scene_post(&s, 2, WR_WRITE, 8);
	world_run(s.w);
	s.a->node->to[1].dead = true;
	post_unsignaled(&s, 3, WR_WRITE);
	post_unsignaled(&s, 4, WR_WRITE);
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 4);
	expect(s.w, s.a->send, 0, .wr_id = 0, .opcode = CQE_WRITE, .byte_len = 8,
	       .qpn = s.a->qp->qpn);
	expect(s.w, s.a->send, 1, .wr_id = 2, .opcode = CQE_WRITE, .byte_len = 8,
	       .qpn = s.a->qp->qpn);
	expect(s.w, s.a->send, 2, .wr_id = 3, .status = CQE_RETRY_EXC_ERR, .qpn = s.a->qp->qpn);
	expect(s.w, s.a->send, 3, .wr_id = 4, .status = CQE_WR_FLUSH_ERR, .qpn = s.a->qp->qpn);
	scene_end(&s);
}

/* Each acknowledged message gives the next one its full count of retries. */
static void retry_cnt__starts_again_on_progress(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s;

	o.retry_cnt = 2;
	s = scene_make(&o, "progress");
	/* Two of three transmissions of every message are lost. */
	s.a->node->to[1].drop = 0xb6db6db6db6db6db;
	for (u32 i = 0; i < 12; i++) {
		scene_post(&s, i, WR_WRITE, 8);
		world_run(s.w);
		check_eq(s.w, s.a->send->n, i + 1);
		expect(s.w, s.a->send, i, .wr_id = i, .opcode = CQE_WRITE, .byte_len = 8,
		       .qpn = s.a->qp->qpn);
	}
	check_eq(s.w, s.a->node->stats.timeouts, 24);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timeout__exactly_retry_cnt),
		cmocka_unit_test(timeout__every_code),
		cmocka_unit_test(timeout__zero_is_none),
		cmocka_unit_test(timeout__idle_has_no_deadline),
		cmocka_unit_test(timeout__flushes_in_order),
		cmocka_unit_test(timeout__after_some_success),
		cmocka_unit_test(retry_cnt__starts_again_on_progress),
	};

	return cmocka_run_group_tests_name("timeout", tests, NULL, NULL);
}
