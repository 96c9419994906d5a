/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/* A peer that does not answer: how often and when requests are resent, and how the work ends. */
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

#define LENGTH 8192

static struct scene scene_make(const struct pair_options *o, const char *name)
{
	struct world *w = world_create(2, 3);

	world_label(w, "test_timeout %s, timeout %u, retry_cnt %u", name, o->timeout, o->retry_cnt);
	return scene_in(w, o, LENGTH);
}

static void post_unsignaled(struct scene *s, u64 wr_id, enum wr_opcode opcode)
{
	struct send send = scene_request(s, wr_id, opcode, 8);

	send.flags = 0;
	post_send(s->a, &send);
}

static u64 attribute_ns(u32 code)
{
	return 4096ull << code;
}

/* Transmissions for each retry: the user's time-out in units of the attribute, at most 268 ms. */
static u32 transmissions(u32 code)
{
	return code <= 14 ? 4 : code == 15 ? 2 : 1;
}

/* One transmission in each attribute, 1 + retry_cnt time-outs; then RETRY_EXC_ERR. */
static void retry_cnt__transmissions(enum wr_opcode opcode, u8 timeout, u8 retry_cnt)
{
	const u32 total = (1u + retry_cnt) * transmissions(timeout);
	struct pair_options o = pair_defaults();
	struct scene s;
	u64 start;

	o.timeout = timeout;
	o.retry_cnt = retry_cnt;
	s = scene_make(&o, "transmissions");
	start = s.w->now_ns;
	s.a->node->to[1].dead = true;
	scene_post(&s, 1, opcode, 8);
	world_run(s.w);
	check_eq(s.w, s.w->num_sent, total);
	for (u32 i = 0; i < s.w->num_sent; i++) {
		check_eq(s.w, s.w->sent[i].packet.psn, o.psn[0]);
		check_eq(s.w, s.w->sent[i].packet.ackreq || opcode == WR_READ, 1);
		check_eq(s.w, s.w->sent[i].time_ns - start, i * attribute_ns(timeout));
	}
	check_eq(s.w, s.w->now_ns - start, total * attribute_ns(timeout));
	check_eq(s.w, s.a->node->stats.timeouts, 1u + retry_cnt);
	check_eq(s.w, s.a->node->stats.rto_probes, total - (1u + retry_cnt));
	check_eq(s.w, s.a->node->stats.tx_retransmitted, total - 1);
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

/* A peer that is silent for a second ends nothing, whether requests reach the peer or not. */
static void timeout__outlives_a_silence_of_a_second(void **state)
{
	static const enum wr_opcode opcodes[] = { WR_SEND, WR_WRITE, WR_READ, WR_FETCH_ADD };

	for (u32 i = 0; i < 4 * ARRAY_SIZE(opcodes); i++) {
		const bool is_dead = i & 1, is_measured = i & 2;
		struct pair_options o = pair_defaults(); /* 14, and 7 retries */
		struct scene s = scene_make(&o, is_dead ? "path is dead" : "peer is stopped");
		const u64 start = s.w->now_ns;

		if (is_measured) {
			scene_post(&s, 1, WR_WRITE, 8);
			world_run_for(s.w, 2 * WORLD_LATENCY_NS);
		}
		post_recv_buffer(s.b, 1, s.remote, 0, 64);
		s.a->node->to[1].dead = is_dead;
		if (!is_dead)
			world_stop(s.b->node, NSEC_PER_SEC);
		scene_post(&s, 2, opcodes[i / 4], 8);
		world_run_for(s.w, NSEC_PER_SEC);
		check_eq(s.w, qp_state(s.a->qp), QPS_RTS);
		check_eq(s.w, s.a->send->n, is_measured);
		s.a->node->to[1].dead = false;
		/* probes go on, so the next transmission is no more than the attribute away */
		world_run_for(s.w, attribute_ns(o.timeout) + 2 * WORLD_LATENCY_NS);
		check_eq(s.w, s.a->send->n, 1u + is_measured);
		scene_post(&s, 3, WR_WRITE, 8);
		world_run(s.w);
		check_eq(s.w, s.a->send->n, 2u + is_measured);
		for (u32 k = 0; k < s.a->send->n; k++)
			check_eq(s.w, s.a->send->log[k].status, CQE_SUCCESS);
		check(s.w, s.a->node->stats.timeouts <= NSEC_PER_SEC / (4 * attribute_ns(14)));
		check(s.w, s.w->now_ns - start < 2 * NSEC_PER_SEC);
		scene_end(&s);
	}
}

/*
 * The first packet is lost before any round trip has been measured: sent again after the attribute,
 * and where the user's time-out is longer than that, without a retry.
 */
static void timeout__first_loss_is_repaired_after_the_attribute(void **state)
{
	for (u32 code = 1; code <= 31; code++) {
		const bool is_probed = transmissions(code) > 1;
		struct pair_options o = pair_defaults();
		struct scene s;

		o.timeout = (u8)code;
		o.retry_cnt = is_probed ? 0 : 1;
		s = scene_make(&o, "first loss");
		s.a->node->to[1].drop = 1;
		scene_post(&s, 1, WR_WRITE, 8);
		world_run(s.w);
		expect(s.w, s.a->send, 0, .wr_id = 1, .opcode = CQE_WRITE, .byte_len = 8,
		       .qpn = s.a->qp->qpn);
		check_eq(s.w, world_count_sent(s.w, 0, OP5_WRITE_ONLY), 2);
		check_eq(s.w, world_sent(s.w, 0, OP5_WRITE_ONLY, 1)->time_ns -
				      world_sent(s.w, 0, OP5_WRITE_ONLY, 0)->time_ns,
			 attribute_ns(code));
		check_eq(s.w, s.a->node->stats.timeouts, !is_probed);
		check_eq(s.w, s.a->node->stats.rto_probes, is_probed);
		scene_end(&s);
	}
}

/* With a measured round trip, too, no pause between transmissions exceeds the attribute. */
static void no_pause_exceeds_the_attribute(u8 code, enum wr_opcode opcode, u32 disable)
{
	const struct world_options wo = { .disable = { disable } };
	struct pair_options o = pair_defaults();
	struct scene s;
	u64 start;

	o.timeout = code;
	s = scene_in(world_create_with(2, 3, &wo), &o, LENGTH);
	world_label(s.w, "test_timeout pauses, timeout %u, opcode %u, disable %x", code, opcode,
		    disable);
	scene_post(&s, 1, WR_WRITE, 8);
	world_run(s.w);
	world_forget_sent(s.w);
	s.a->node->to[1].dead = true;
	start = s.w->now_ns;
	scene_post(&s, 2, opcode, LENGTH);
	world_run(s.w);
	for (u32 i = 1; i < s.w->num_sent; i++)
		check(s.w, s.w->sent[i].time_ns - s.w->sent[i - 1].time_ns <= attribute_ns(code));
	check_eq(s.w, s.a->node->stats.timeouts, 8);
	check_eq(s.w, s.w->now_ns - start, 8ull * transmissions(code) * attribute_ns(code));
	scene_end(&s);
}

static void timeout__no_pause_exceeds_the_attribute(void **state)
{
	static const u32 disable[] = { 0, ENGINE_NO_SELECTIVE };

	for (u32 code = 8; code <= 15; code++)
		for (u32 i = 0; i < ARRAY_SIZE(disable); i++) {
			no_pause_exceeds_the_attribute((u8)code, WR_WRITE, disable[i]);
			no_pause_exceeds_the_attribute((u8)code, WR_READ, disable[i]);
		}
}

/* arg: a bool, whether the next packet is lost */
static bool drops_next(const struct sent_frame *f, void *arg)
{
	bool *next = arg, drops = *next;

	*next = false;
	return drops;
}

static void one_request(struct scene *s, u64 wr_id, enum wr_opcode opcode)
{
	const u32 before = s->a->send->n;

	if (opcode == WR_SEND)
		post_recv_buffer(s->b, wr_id, s->remote, 0, 64);
	scene_post(s, wr_id, opcode, 8);
	world_run(s->w);
	check_eq(s->w, s->a->send->n, before + 1);
	check_eq(s->w, s->a->send->log[before].status, CQE_SUCCESS);
}

/*
 * Nothing is lost, and the peer waits for a processor before one of 20 requests: the first late
 * answers teach the adaptive time-out to wait. Each probe is known not to have been needed.
 */
static void late_answers__few_probes(enum wr_opcode opcode)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make(&o, "late answers");
	const struct xroce_engine_stats *stats = &s.a->node->stats;
	bool next = false;

	s.a->node->to[1].drops = drops_next;
	s.a->node->to[1].drops_arg = &next;
	for (u32 i = 0; i < 500; i++) {
		if (i % 20 == 19)
			world_stop(s.b->node, (2 + i % 4) * NSEC_PER_MSEC);
		one_request(&s, i, opcode);
	}
	check(s.w, stats->rto_probes >= 1);
	check(s.w, stats->rto_probes <= 5);
	check_eq(s.w, stats->rto_spurious, stats->rto_probes);
	check_eq(s.w, s.a->qp->stat->rto_spurious, stats->rto_spurious);
	check_eq(s.w, stats->timeouts, 0);
	/* ten seconds after the last one the time-out is short again: a loss shows it */
	world_run_for(s.w, 11 * NSEC_PER_SEC);
	for (u32 i = 0; i < 30; i++)
		one_request(&s, 500 + i, opcode);
	world_forget_sent(s.w);
	next = true;
	one_request(&s, 530, opcode);
	check(s.w, s.w->sent[1].time_ns - s.w->sent[0].time_ns < 2 * NSEC_PER_MSEC);
	check_eq(s.w, stats->rto_probes, stats->rto_spurious + 1);
	scene_end(&s);
}

static void timeout__late_answers_are_not_losses(void **state)
{
	static const enum wr_opcode opcodes[] = { WR_SEND, WR_WRITE, WR_READ, WR_FETCH_ADD };

	for (u32 i = 0; i < ARRAY_SIZE(opcodes); i++)
		late_answers__few_probes(opcodes[i]);
}

/* A request or its answer is lost: the probe was needed. */
static void timeout__losses_are_not_late_answers(void **state)
{
	static const enum wr_opcode opcodes[] = { WR_SEND, WR_WRITE, WR_READ, WR_FETCH_ADD };

	for (u32 i = 0; i < 2 * ARRAY_SIZE(opcodes); i++) {
		struct pair_options o = pair_defaults();
		struct scene s = scene_make(&o, "losses");
		struct faults *path = i & 1 ? &s.b->node->to[0] : &s.a->node->to[1];
		bool next = false;

		path->drops = drops_next;
		path->drops_arg = &next;
		for (u32 k = 0; k < 100; k++) {
			next = k % 10 == 9;
			one_request(&s, k, opcodes[i / 2]);
		}
		check_eq(s.w, s.a->node->stats.rto_probes, 10);
		check_eq(s.w, s.a->node->stats.rto_spurious, 0);
		scene_end(&s);
	}
}

/* A request is lost and its peer is late: one of two probes was needed, none can be timed. */
static void timeout__late_answer_to_a_probe_is_not_timed(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make(&o, "late answer to a probe");
	u32 rtt_ns;

	for (u32 i = 0; i < 20; i++)
		one_request(&s, i, WR_WRITE);
	rtt_ns = s.a->qp->stat->rtt_ns;
	s.a->node->to[1].dead = true;
	scene_post(&s, 20, WR_WRITE, 8);
	world_settle(s.w);
	s.a->node->to[1].dead = false;
	world_stop(s.b->node, 4 * NSEC_PER_MSEC); /* the probes come after 1 and 3 ms */
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 21);
	check_eq(s.w, s.a->node->stats.rto_probes, 2);
	check_eq(s.w, s.a->node->stats.rto_spurious, 1);
	one_request(&s, 21, WR_WRITE);
	check(s.w, s.a->qp->stat->rtt_ns < 2 * rtt_ns);
	scene_end(&s);
}

/* The answer to an earlier request comes again, after a probe that was needed. */
static void timeout__old_answer_says_nothing_of_a_probe(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make(&o, "old answer");
	const struct sent_frame *answer;

	one_request(&s, 1, WR_WRITE);
	answer = &s.w->sent[1];
	check_eq(s.w, answer->from, 1);
	s.a->node->to[1].drop = 2;
	scene_post(&s, 2, WR_WRITE, 8);
	world_run_for(s.w, NSEC_PER_MSEC + WORLD_LATENCY_NS / 2);
	check_eq(s.w, s.a->node->stats.rto_probes, 1);
	check_eq(s.w, world_deliver(s.w, 0, answer->data, answer->len), XROCE_DROP_psn_duplicate);
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 2);
	check_eq(s.w, s.a->node->stats.rto_spurious, 0);
	scene_end(&s);
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
 * The failed one completes although unsignaled; later ones are flushed in order, unsignaled ones
 * too; receives as well.
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

/* Work acknowledged before the silence succeeds, and only the rest fails. */
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

	o.timeout = 17; /* long enough to have no probes */
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

/*
 * The ACK of a message is requested with the next one's. If that is not sent after all, it is
 * requested alone, also without a time-out: nothing is lost here.
 */
static struct scene without_timeout(const char *name)
{
	struct pair_options o = pair_defaults();

	o.timeout = 0;
	return scene_make(&o, name);
}

static void ackreq__before_a_request_that_fails(void **state)
{
	static const u8 timeouts[] = { 0, 14 };

	for (u32 i = 0; i < ARRAY_SIZE(timeouts); i++) {
		struct pair_options o = pair_defaults();
		struct scene s;
		struct send bad;
		u64 start;

		o.timeout = timeouts[i];
		s = scene_make(&o, "bad L_Key");
		start = s.w->now_ns;
		bad = scene_request(&s, 2, WR_WRITE, 64);
		bad.sge[0].lkey ^= 0x100;
		scene_post(&s, 1, WR_WRITE, 64);
		post_send(s.a, &bad);
		world_run_for(s.w, 10 * WORLD_LATENCY_NS);
		check_eq(s.w, s.a->send->n, 2);
		expect(s.w, s.a->send, 0, .wr_id = 1, .opcode = CQE_WRITE, .byte_len = 64,
		       .qpn = s.a->qp->qpn);
		check_eq(s.w, s.a->send->log[1].wr_id, 2);
		check_eq(s.w, s.a->send->log[1].status, CQE_LOC_PROT_ERR);
		check(s.w, s.w->now_ns - start <= 10 * WORLD_LATENCY_NS);
		scene_end(&s);
	}
}

/* Runs the scene: n requests complete, and only the last one fails, for its L_Key. */
static void only_the_last_fails(struct scene *s, u32 n)
{
	world_run(s->w);
	check_eq(s->w, s->a->send->n, n);
	for (u32 i = 0; i < n; i++) {
		check_eq(s->w, s->a->send->log[i].wr_id, i);
		check_eq(s->w, s->a->send->log[i].status,
			 i + 1 < n ? CQE_SUCCESS : CQE_LOC_PROT_ERR);
	}
}

/* A READ or an atomic before the message: the answer to either covers nothing after it. */
static void ackreq__after_a_request_with_a_response(void **state)
{
	static const enum wr_opcode opcodes[] = { WR_READ, WR_FETCH_ADD };

	for (u32 i = 0; i < 2 * ARRAY_SIZE(opcodes); i++) {
		struct scene s = without_timeout("bad L_Key after a response");
		const u32 first = i / ARRAY_SIZE(opcodes); /* one more WRITE before all */
		struct send bad = scene_request(&s, first + 2, WR_WRITE, 64);

		bad.sge[0].lkey ^= 0x100;
		if (first)
			scene_post(&s, 0, WR_WRITE, 64);
		scene_post(&s, first, opcodes[i % ARRAY_SIZE(opcodes)], 8);
		scene_post(&s, first + 1, WR_WRITE, 64);
		post_send(s.a, &bad);
		only_the_last_fails(&s, first + 3);
		scene_end(&s);
	}
}

/* The failing message has sent packets already. */
static void ackreq__before_a_packet_that_fails(void **state)
{
	struct scene s = without_timeout("bad second element");
	struct send bad = scene_request(&s, 1, WR_WRITE, s.o.pmtu);

	bad.sge[1] = bad.sge[0];
	bad.sge[1].lkey ^= 0x100;
	bad.num_sge = 2;
	scene_post(&s, 0, WR_WRITE, 64);
	post_send(s.a, &bad);
	only_the_last_fails(&s, 2);
	scene_end(&s);
}

/* The queue is drained after n requests, of one packet each, that left before SQD. */
static void sqd_after(struct scene *s, u32 n)
{
	struct qp_attr attr = { .state = QPS_SQD, .sqd_async_notify = true };
	static u8 frame[PACKET_FRAME_MAX];
	u32 len;

	for (u32 i = 0; i < n; i++) {
		len = engine_output(qp_engine(s->a->qp), frame, sizeof(frame), s->w->now_ns);
		check(s->w, len > 0);
		check_eq(s->w, world_deliver(s->w, 1, frame, len), XROCE_DROP_none);
	}
	check_eq(s->w,
		 qp_modify(s->a->node->engine, s->a->qp, &attr,
			   QP_ATTR_STATE | QP_ATTR_EN_SQD_ASYNC_NOTIFY, s->w->now_ns),
		 0);
	world_run(s->w);
	check_eq(s->w, s->a->send->n, n);
	check_eq(s->w, world_events(s->a->node, EVENT_SQ_DRAINED, s->a->qp), 1);
	assert_int_equal(side_state(s->a, QPS_RTS), 0);
	world_run(s->w);
	check_eq(s->w, s->a->send->n, n + 1);
}

static void ackreq__before_sqd(void **state)
{
	struct scene s = without_timeout("SQD");

	scene_post(&s, 1, WR_WRITE, 64);
	scene_post(&s, 2, WR_WRITE, 64);
	sqd_after(&s, 1);
	scene_end(&s);
}

static void ackreq__after_a_request_with_a_response_before_sqd(void **state)
{
	struct scene s = without_timeout("SQD after a response");

	scene_post(&s, 1, WR_READ, 64);
	scene_post(&s, 2, WR_WRITE, 64);
	scene_post(&s, 3, WR_WRITE, 64);
	sqd_after(&s, 2);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timeout__exactly_retry_cnt),
		cmocka_unit_test(timeout__every_code),
		cmocka_unit_test(timeout__outlives_a_silence_of_a_second),
		cmocka_unit_test(timeout__first_loss_is_repaired_after_the_attribute),
		cmocka_unit_test(timeout__no_pause_exceeds_the_attribute),
		cmocka_unit_test(timeout__late_answers_are_not_losses),
		cmocka_unit_test(timeout__losses_are_not_late_answers),
		cmocka_unit_test(timeout__late_answer_to_a_probe_is_not_timed),
		cmocka_unit_test(timeout__old_answer_says_nothing_of_a_probe),
		cmocka_unit_test(timeout__zero_is_none),
		cmocka_unit_test(ackreq__before_a_request_that_fails),
		cmocka_unit_test(ackreq__after_a_request_with_a_response),
		cmocka_unit_test(ackreq__before_a_packet_that_fails),
		cmocka_unit_test(ackreq__before_sqd),
		cmocka_unit_test(ackreq__after_a_request_with_a_response_before_sqd),
		cmocka_unit_test(timeout__idle_has_no_deadline),
		cmocka_unit_test(timeout__flushes_in_order),
		cmocka_unit_test(timeout__after_some_success),
		cmocka_unit_test(retry_cnt__starts_again_on_progress),
	};

	return cmocka_run_group_tests_name("timeout", tests, NULL, NULL);
}
