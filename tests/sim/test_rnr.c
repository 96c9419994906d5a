/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * Receiver not ready: a receive posted late, the count of retries, and how long each timer code
 * makes the requester wait.
 */
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

/* The protocol sheet's table in units of 10 us, code 0 .. 31. */
static const u32 timer_10us[32] = { 65536, 1,	 2,    3,     4,     6,	    8,	   12,
				    16,	   24,	 32,   48,    64,    96,    128,   192,
				    256,   384,	 512,  768,   1024,  1536,  2048,  3072,
				    4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152 };

static u64 timer_ns(u32 code)
{
	return timer_10us[code] * 10ull * NSEC_PER_USEC;
}

/*
 * The table recomputed from its law: code 1 is 10 us, then steps of 2^n and 3 * 2^(n-1), code 0 the
 * largest power of two. Keeps a slip in the table above from agreeing with the same slip in the
 * engine.
 */
static void timer_table__follows_its_law(void **state)
{
	assert_int_equal(timer_10us[0], 1 << 16);
	for (u32 code = 1; code < 32; code++) {
		u32 want = code == 1 ? 1 : code % 2 == 0 ? 1u << (code / 2) : 3u << (code / 2 - 1);

		assert_int_equal(timer_10us[code], want);
	}
}

static struct scene scene_make_with(const struct world_options *wo, const struct pair_options *o,
				    const char *name)
{
	struct world *w = world_create_with(2, 3, wo);

	world_label(w, "test_rnr %s", name);
	return scene_in(w, o, 8192);
}

static struct scene scene_make(const struct pair_options *o, const char *name)
{
	return scene_make_with(&(struct world_options){ 0 }, o, name);
}

static void post_message(struct scene *s, u64 wr_id, u32 len, bool write_imm)
{
	struct send send = scene_request(s, wr_id, write_imm ? WR_WRITE_WITH_IMM : WR_SEND, len);

	send.imm = htobe32(5);
	post_send(s->a, &send);
}

/* The nth packet of node 0 that starts a message. */
static const struct sent_frame *attempt(struct scene *s, u32 n)
{
	for (u32 i = 0; i < s->w->num_sent; i++)
		if (s->w->sent[i].from == 0 && s->w->sent[i].packet.flags & OP_START && n-- == 0)
			return &s->w->sent[i];
	return NULL;
}

static void timer_code__retry_not_before(void **state)
{
	for (u32 code = 0; code < 32; code++) {
		struct pair_options o = pair_defaults();
		struct scene s;
		u64 waited;

		o.min_rnr_timer = (u8)code;
		o.timeout = 0; /* no other timer can send it again */
		s = scene_make(&o, "timer codes");
		post_message(&s, 1, 64, false);
		world_settle(s.w);
		world_run_for(s.w, 10 * WORLD_LATENCY_NS);
		check_eq(s.w, s.a->node->stats.rx_rnr_naks, 1);
		check_eq(s.w, world_sent(s.w, 1, OP5_ACKNOWLEDGE, 0)->packet.syndrome,
			 AETH_RNR_NAK | code);
		check_eq(s.w, s.b->recv->n, 0);
		post_recv_buffer(s.b, 9, s.remote, 0, 64);
		world_run(s.w);
		check_eq(s.w, s.a->send->n, 1);
		expect(s.w, s.a->send, 0, .wr_id = 1, .opcode = CQE_SEND, .byte_len = 64,
		       .qpn = s.a->qp->qpn);
		expect(s.w, s.b->recv, 0, .wr_id = 9, .opcode = CQE_RECV, .byte_len = 64,
		       .qpn = s.b->qp->qpn);
		check(s.w, attempt(&s, 1) && !attempt(&s, 2));
		waited = attempt(&s, 1)->time_ns - (attempt(&s, 0)->time_ns + 2 * WORLD_LATENCY_NS);
		check(s.w, waited >= timer_ns(code));
		check(s.w, waited <= timer_ns(code) * 2); /* and not for ever */
		scene_end(&s);
	}
}

static void late_receive(u32 len, bool write_imm, const char *name)
{
	struct pair_options o = pair_defaults();
	struct scene s;
	u32 opcode = write_imm ? CQE_RECV_WITH_IMM : CQE_RECV;

	o.pmtu = 256;
	s = scene_make(&o, name);
	memset(s.remote->bytes, 0, 8192);
	post_message(&s, 1, len, write_imm);
	post_message(&s, 2, 17, write_imm);
	world_run_for(s.w, 20 * NSEC_PER_MSEC);
	check_eq(s.w, s.a->send->n, 0);
	check_eq(s.w, s.b->recv->n, 0);
	check(s.w, s.b->node->stats.tx_rnr_naks > 2);
	post_recv_buffer(s.b, 8, s.remote, 0, 8192);
	post_recv_buffer(s.b, 9, s.remote, 4096, 4096);
	world_run(s.w);
	expect(s.w, s.a->send, 0, .wr_id = 1, .opcode = write_imm ? CQE_WRITE : CQE_SEND,
	       .byte_len = len, .qpn = s.a->qp->qpn);
	expect(s.w, s.a->send, 1, .wr_id = 2, .opcode = write_imm ? CQE_WRITE : CQE_SEND,
	       .byte_len = 17, .qpn = s.a->qp->qpn);
	expect(s.w, s.b->recv, 0, .wr_id = 8, .opcode = opcode, .byte_len = len,
	       .qpn = s.b->qp->qpn, .flags = write_imm ? CQE_WITH_IMM : 0, .imm = htobe32(5));
	expect(s.w, s.b->recv, 1, .wr_id = 9, .opcode = opcode, .byte_len = 17, .qpn = s.b->qp->qpn,
	       .flags = write_imm ? CQE_WITH_IMM : 0, .imm = htobe32(5));
	check_eq(s.w, s.a->send->n, 2);
	check_eq(s.w, s.b->recv->n, 2);
	check(s.w, bytes_are(s.remote->bytes, write_imm ? 17 : len, 0));
	check_eq(s.w, s.a->node->stats.timeouts, 0);
	scene_end(&s);
}

static void send__late_receive(void **state)
{
	late_receive(64, false, "send");
	late_receive(1500, false, "send of six packets");
}

static void write_imm__late_receive(void **state)
{
	late_receive(64, true, "write_imm");
	late_receive(1500, true, "write_imm of six packets");
}

static void rnr_retry__exhausted(void **state)
{
	for (u32 retries = 0; retries < 7; retries++) {
		struct pair_options o = pair_defaults();
		struct scene s;

		o.rnr_retry = (u8)retries;
		s = scene_make(&o, "exhausted");
		post_message(&s, 1, 64, false);
		post_message(&s, 2, 64, false);
		world_run(s.w);
		check_eq(s.w, s.a->send->n, 2);
		expect(s.w, s.a->send, 0, .wr_id = 1, .status = CQE_RNR_RETRY_EXC_ERR,
		       .vendor_err = VERR_RNR, .qpn = s.a->qp->qpn);
		expect(s.w, s.a->send, 1, .wr_id = 2, .status = CQE_WR_FLUSH_ERR,
		       .vendor_err = VERR_FLUSHED, .qpn = s.a->qp->qpn);
		check_eq(s.w, qp_state(s.a->qp), QPS_ERR);
		/* The responder is not at fault, and stays. */
		check_eq(s.w, qp_state(s.b->qp), QPS_RTS);
		check_eq(s.w, s.a->node->stats.rx_rnr_naks, retries + 1);
		scene_end(&s);
	}
}

static void rnr_retry__seven_is_for_ever(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s;

	o.rnr_retry = 7;
	o.retry_cnt = 1;
	o.min_rnr_timer = 1;
	s = scene_make(&o, "for ever");
	post_message(&s, 1, 64, false);
	world_run_for(s.w, 2 * NSEC_PER_MSEC);
	check(s.w, s.a->node->stats.rx_rnr_naks > 50);
	check_eq(s.w, s.a->send->n, 0);
	check_eq(s.w, qp_state(s.a->qp), QPS_RTS);
	post_recv_buffer(s.b, 1, s.remote, 0, 64);
	world_run(s.w);
	expect(s.w, s.a->send, 0, .wr_id = 1, .opcode = CQE_SEND, .byte_len = 64,
	       .qpn = s.a->qp->qpn);
	scene_end(&s);
}

/* The count starts again with each message that got through. */
static void rnr_retry__starts_again_on_progress(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s;

	o.rnr_retry = 2;
	s = scene_make(&o, "progress");
	for (u32 i = 0; i < 4; i++)
		post_message(&s, i, 64, false);
	for (u32 i = 0; i < 4; i++) {
		while (s.a->node->stats.rx_rnr_naks < 2 * (i + 1)) {
			check_eq(s.w, qp_state(s.a->qp), QPS_RTS);
			world_run_for(s.w, WORLD_LATENCY_NS);
		}
		post_recv_buffer(s.b, i, s.remote, 0, 64);
	}
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 4);
	for (u32 i = 0; i < 4; i++)
		expect(s.w, s.a->send, i, .wr_id = i, .opcode = CQE_SEND, .byte_len = 64,
		       .qpn = s.a->qp->qpn);
	scene_end(&s);
}

/*
 * An RNR NAK shows that the peer lives: it resets the count of time-outs. The first and the third
 * transmission are lost, and one may be.
 */
static void rnr_nak__time_outs_count_anew(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s;

	o.retry_cnt = 1;
	o.timeout = 8; /* 1 ms */
	s = scene_make_with(&(struct world_options){ .disable = { ENGINE_NO_ADAPTIVE_RTO } }, &o,
			    "time-outs");
	s.a->node->to[1].drop = 5;
	post_message(&s, 1, 64, false);
	while (!s.a->node->stats.rx_rnr_naks) {
		check_eq(s.w, qp_state(s.a->qp), QPS_RTS);
		world_run_for(s.w, WORLD_LATENCY_NS);
	}
	check_eq(s.w, s.a->node->stats.timeouts, 1);
	post_recv_buffer(s.b, 3, s.remote, 0, 64);
	world_run(s.w);
	check_eq(s.w, s.a->node->stats.timeouts, 2);
	expect(s.w, s.a->send, 0, .wr_id = 1, .opcode = CQE_SEND, .byte_len = 64,
	       .qpn = s.a->qp->qpn);
	expect(s.w, s.b->recv, 0, .wr_id = 3, .opcode = CQE_RECV, .byte_len = 64,
	       .qpn = s.b->qp->qpn);
	scene_end(&s);
}

/*
 * The time-out does not run while the peer's word is kept to, and starts when the request is out
 * again.
 */
static void rnr_wait__is_longer_than_the_time_out(void **state)
{
	for (u32 adaptive = 0; adaptive < 2; adaptive++) {
		struct pair_options o = pair_defaults();
		struct scene s;

		o.min_rnr_timer = 20; /* 10.24 ms */
		o.timeout = 8;	      /* 1 ms */
		o.retry_cnt = 0;
		s = scene_make_with(
			&(struct world_options){
				.disable = { adaptive ? 0 : ENGINE_NO_ADAPTIVE_RTO } },
			&o, "longer");
		post_message(&s, 1, 64, false);
		world_run_for(s.w, 5 * NSEC_PER_MSEC);
		post_recv_buffer(s.b, 3, s.remote, 0, 64);
		world_run(s.w);
		expect(s.w, s.a->send, 0, .wr_id = 1, .opcode = CQE_SEND, .byte_len = 64,
		       .qpn = s.a->qp->qpn);
		check_eq(s.w, s.a->node->stats.timeouts, 0);
		check_eq(s.w, s.a->node->stats.rto_probes, 0);
		check(s.w, attempt(&s, 1) && !attempt(&s, 2));
		scene_end(&s);
	}
}

/* An RNR NAK from the responder, made by hand. */
static void deliver_rnr_nak(struct scene *s, u32 psn)
{
	struct path path = world_path(s->w, 1, 0, false);
	struct packet p = { .opcode = OPCODE(XROCE_RC, OP5_ACKNOWLEDGE),
			    .dest_qpn = s->a->qp->qpn,
			    .pkey = ROCE_DEFAULT_PKEY,
			    .migreq = true,
			    .psn = psn,
			    .syndrome = AETH_RNR_NAK | 1 };
	u8 frame[PACKET_FRAME_MAX];

	world_deliver(s->w, 0, frame, packet_seal(frame, packet_put_headers(frame, &path, &p), 0));
}

/*
 * An RNR NAK that comes late, for a request that a time-out withdrew and that is not resent yet,
 * acknowledges earlier requests, but starts no wait. With rnr_retry 0 it would be fatal.
 */
static void rnr_nak__for_what_was_taken_back(void **state)
{
	struct pair_options o = pair_defaults();
	u32 first, next, sent;
	struct scene s;

	o.rnr_retry = 0;
	o.timeout = 8;
	o.max_send_wr = o.cq_capacity = 256;
	s = scene_make_with(&(struct world_options){ .disable = { ENGINE_NO_ADAPTIVE_RTO |
								  ENGINE_NO_SELECTIVE } },
			    &o, "taken back");
	s.a->node->to[1].dead = true;
	first = s.a->qp->req.next_psn;
	for (u32 i = 0; i < 200; i++)
		post_message(&s, i, 64, false);
	while (!s.a->node->stats.timeouts)
		world_run_for(s.w, WORLD_LATENCY_NS);
	next = s.a->qp->req.next_psn;
	sent = s.a->qp->req.sent_psn;
	check(s.w, psn_diff(sent, next) > 1); /* the window has shrunk */
	deliver_rnr_nak(&s, psn_add(sent, (u32)-1));
	world_settle(s.w);
	check_eq(s.w, s.a->node->stats.rx_rnr_naks, 1);
	check_eq(s.w, qp_state(s.a->qp), QPS_RTS);
	check_eq(s.w, s.a->send->n, psn_diff(sent, first) - 1);
	check_eq(s.w, s.a->send->log[s.a->send->n - 1].status, CQE_SUCCESS);
	/* it is out again, at once */
	check(s.w, psn_diff(s.a->qp->req.next_psn, sent) >= 0);
	scene_end(&s);
}

/* During the wait the requester is silent, also with work after the waiting message. */
static void rnr_wait__is_silent(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s;
	u32 sent;

	o.min_rnr_timer = 20; /* 10.24 ms */
	s = scene_make(&o, "silent");
	post_message(&s, 1, 64, false);
	world_run_for(s.w, 10 * WORLD_LATENCY_NS);
	sent = s.w->num_sent;
	post_message(&s, 2, 64, false);
	world_run_for(s.w, 9 * NSEC_PER_MSEC);
	check_eq(s.w, s.w->num_sent, sent);
	post_recv_buffer(s.b, 1, s.remote, 0, 64);
	post_recv_buffer(s.b, 2, s.remote, 0, 64);
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 2);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timer_table__follows_its_law),
		cmocka_unit_test(timer_code__retry_not_before),
		cmocka_unit_test(send__late_receive),
		cmocka_unit_test(write_imm__late_receive),
		cmocka_unit_test(rnr_retry__exhausted),
		cmocka_unit_test(rnr_retry__seven_is_for_ever),
		cmocka_unit_test(rnr_retry__starts_again_on_progress),
		cmocka_unit_test(rnr_nak__time_outs_count_anew),
		cmocka_unit_test(rnr_wait__is_longer_than_the_time_out),
		cmocka_unit_test(rnr_nak__for_what_was_taken_back),
		cmocka_unit_test(rnr_wait__is_silent),
	};

	return cmocka_run_group_tests_name("rnr", tests, NULL, NULL);
}
