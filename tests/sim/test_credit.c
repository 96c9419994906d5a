/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * Credits of UC and UD: a sender never has more on the wire than the receiver allowed, all of a
 * burst arrives, and nothing that is lost, forged or missing stops a queue for longer than credit.h
 * says.
 */
#include "../../user/engine/internal.h"
#include "raw.h"
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

#define PMTU	256
#define PACKETS 4 /* of a message */
#define LEN	(PACKETS * PMTU)
#define POSTS	250
#define UNASKED (CREDIT_START / 4 * 3) /* packets, before the first probe */
#define RQ_POSTS 1024

/* engines: 0: as many as the environment says */
static struct scene scene_on(const char *name, enum xroce_transport transport, u32 disable_peer,
			     u32 engines)
{
	struct world *w = world_create_with(
		2, 29,
		&(struct world_options){ .disable = { 0, disable_peer }, .num_engines = engines });
	struct pair_options o = pair_defaults();

	world_label(w, "test_credit %s", name);
	o.transport = transport;
	o.pmtu = PMTU;
	o.max_send_wr = o.max_recv_wr = RQ_POSTS;
	o.cq_capacity = RQ_POSTS;
	return scene_in(w, &o, 8192);
}

static struct scene scene_with(const char *name, enum xroce_transport transport, u32 disable_peer)
{
	return scene_on(name, transport, disable_peer, 0);
}

static struct send one(struct scene *s, u64 wr_id, enum wr_opcode opcode)
{
	struct send send = scene_request(s, wr_id, opcode, LEN);

	if (s->o.transport == XROCE_UD) {
		send.path = &s->path;
		send.remote_qpn = s->b->qp->qpn;
		send.remote_qkey = PAIR_QKEY;
		send.remote_addr = send.rkey = 0;
	}
	return send;
}

static void post(struct scene *s, u32 n, enum wr_opcode opcode)
{
	for (u32 i = 0; i < n; i++) {
		struct send send = one(s, i, opcode);

		post_send(s->a, &send);
	}
}

static void post_receives(struct scene *s, u32 n)
{
	for (u32 i = 0; i < n; i++)
		post_recv_buffer(s->b, i, s->remote, 0, 40 + LEN);
}

static bool is_credit(const struct sent_frame *f)
{
	return f->packet.flags & OP_CREDIT;
}

/*
 * Every data packet of node 0 was allowed by the answers that had arrived when it left, and at
 * least one answer has. Where they lie in sent[] is the order of their leaving.
 */
static void judge(struct scene *s)
{
	struct { u32 cookie, sent; } probe[1024];
	u32 probes = 0, sent = 0, limit = CREDIT_START, answers = 0, counted = 0;

	for (u32 i = 0; i < s->w->num_sent; i++) {
		const struct sent_frame *f = &s->w->sent[i];

		/* the packets that have arrived by now */
		for (; counted < i && s->w->sent[counted].time_ns + s->w->latency_ns <= f->time_ns;
		     counted++) {
			const struct sent_frame *a = &s->w->sent[counted];

			if (a->from != 1 || !is_credit(a) || a->fate != FATE_DELIVERED)
				continue;
			check_eq(s->w, a->packet.opcode, OPCODE_CREDIT_ANSWER);
			for (u32 k = 0; k < probes; k++)
				if (probe[k].cookie == a->packet.credit_cookie)
					limit = probe[k].sent + (a->packet.credit_allowance >> 16);
			answers++;
		}
		if (f->from != 0)
			continue;
		if (is_credit(f)) {
			check_eq(s->w, f->packet.opcode, OPCODE_CREDIT_PROBE);
			check(s->w, probes < ARRAY_SIZE(probe));
			if (!probes || probe[probes - 1].cookie != f->packet.credit_cookie) {
				probe[probes].cookie = f->packet.credit_cookie;
				probe[probes++].sent = sent;
			}
			continue;
		}
		check(s->w, sent < limit);
		sent++;
	}
	check(s->w, answers > 0);
}

static void expect_all(struct scene *s, u32 sent, u32 received)
{
	check_eq(s->w, s->a->send->n, sent);
	check_eq(s->w, s->b->recv->n, received);
	for (u32 i = 0; i < sent; i++)
		check(s->w,
		      s->a->send->log[i].wr_id == i && s->a->send->log[i].status == CQE_SUCCESS);
	check_eq(s->w, s->b->node->drops.no_receive, 0);
}

/* What says nothing of how much a receiver can take asks nothing either. */
static void few_packets__ask_nothing(void **state)
{
	struct scene s = scene_with("few packets", XROCE_UC, 0);

	post_receives(&s, UNASKED / PACKETS);
	post(&s, UNASKED / PACKETS, WR_SEND);
	world_run(s.w);
	expect_all(&s, UNASKED / PACKETS, UNASKED / PACKETS);
	check_eq(s.w, s.a->node->stats.flow_probes, 0);
	check_eq(s.w, s.b->node->stats.tx_packets, 0);
	scene_end(&s);
}

static void burst(const char *name, enum xroce_transport transport, enum wr_opcode opcode)
{
	struct scene s = scene_with(name, transport, 0);
	u32 received = opcode == WR_WRITE ? 0 : POSTS;

	post_receives(&s, received);
	post(&s, POSTS, opcode);
	world_run(s.w);
	expect_all(&s, POSTS, received);
	judge(&s);
	check(s.w, s.a->node->stats.flow_waits > 0);
	check_eq(s.w, s.a->node->stats.flow_probes, s.b->node->stats.flow_answers);
	scene_end(&s);
}

static void burst__is_held_to_the_answers(void **state)
{
	burst("uc send", XROCE_UC, WR_SEND);
	burst("uc write", XROCE_UC, WR_WRITE);
	burst("uc write imm", XROCE_UC, WR_WRITE_WITH_IMM);
	burst("ud send", XROCE_UD, WR_SEND);
}

/*
 * A receiver that posts a few receives at a time, each batch when the one before is used up: none
 * of the messages comes too early.
 */
static void receives__are_waited_for(void **state)
{
	const u32 batch = 40;
	struct scene s = scene_with("receives", XROCE_UD, 0);
	u64 start_ns;

	post_receives(&s, CREDIT_START); /* all of these come unsolicited */
	post(&s, POSTS, WR_SEND);
	start_ns = s.w->now_ns;
	for (u32 posted = CREDIT_START; s.b->recv->n < POSTS;) {
		check(s.w, s.w->now_ns < start_ns + 100 * NSEC_PER_MSEC);
		world_run_for(s.w, 3 * NSEC_PER_MSEC); /* without an answer, at first */
		check(s.w, s.b->recv->n == min_u32(posted, POSTS));
		post_receives(&s, batch);
		posted += batch;
	}
	expect_all(&s, POSTS, POSTS);
	/* asked again and again, but not all the time */
	check(s.w, s.a->node->stats.flow_probes < 40);
	scene_end(&s);
}

/* A peer that does not know of any of this loses nothing by it, and is waited for less and less. */
static void stranger__is_waited_for_once(void **state)
{
	struct scene s = scene_with("stranger", XROCE_UC, ENGINE_NO_PROBED_CREDITS);
	u64 start_ns = s.w->now_ns, longest_ns = 0, last_ns = start_ns;

	post_receives(&s, 2 * POSTS);
	post(&s, POSTS, WR_SEND);
	world_run(s.w);
	for (u32 i = 0; i < s.w->num_sent; i++) {
		if (!is_credit(&s.w->sent[i])) {
			longest_ns = s.w->sent[i].time_ns - last_ns > longest_ns
					     ? s.w->sent[i].time_ns - last_ns
					     : longest_ns;
			last_ns = s.w->sent[i].time_ns;
		}
	}
	check_eq(s.w, s.b->recv->n, POSTS);
	check_eq(s.w, s.a->node->stats.flow_waits, 1);
	check(s.w,
	      longest_ns >= CREDIT_STRANGER_NS &&
		      longest_ns < CREDIT_STRANGER_NS + CREDIT_RETRY_MAX_NS);
	check_eq(s.w, s.b->node->drops.opcode, s.a->node->stats.flow_probes);
	/*
	 * the next burst, within CREDIT_FREE_NS, does not wait at all; one after that asks once
	 * more and goes on
	 */
	for (u32 burst = 0; burst < 2; burst++) {
		u64 probes = s.a->node->stats.flow_probes;

		start_ns = s.w->now_ns;
		post(&s, POSTS / 2, WR_SEND);
		world_run(s.w);
		check(s.w, s.w->now_ns - start_ns < NSEC_PER_MSEC);
		check_eq(s.w, s.a->node->stats.flow_probes, probes + burst);
		check_eq(s.w, s.a->node->stats.flow_waits, 1);
		world_run_for(s.w, CREDIT_FREE_NS);
	}
	check_eq(s.w, s.b->recv->n, POSTS + 2 * (POSTS / 2));
	check_eq(s.w, s.b->node->stats.tx_packets, 0);
	scene_end(&s);
}

/* Datagrams to two of them in turn: each is waited for once, the second one for half as long. */
static void strangers__are_waited_for_less(void **state)
{
	struct world *w = world_create_with(
		3, 29,
		&(struct world_options){
			.disable = { 0, ENGINE_NO_PROBED_CREDITS, ENGINE_NO_PROBED_CREDITS } });
	struct pair_options o = pair_defaults();
	struct scene s;
	u64 start_ns = w->now_ns;

	world_label(w, "test_credit strangers");
	o.transport = XROCE_UD;
	o.max_send_wr = o.cq_capacity = RQ_POSTS;
	s = scene_in(w, &o, 8192);
	for (u32 i = 0; i < 12; i++) {
		s.path = world_path(w, 0, 1 + i % 2, false);
		post(&s, POSTS, WR_SEND);
		world_run(w);
	}
	check_eq(w, s.a->send->n, 12 * POSTS);
	check_eq(w, s.a->node->stats.flow_waits, 2);
	check(w, w->now_ns - start_ns >= CREDIT_STRANGER_NS / 2 * 3 &&
			 w->now_ns - start_ns < 2 * CREDIT_STRANGER_NS);
	scene_end(&s);
}

/* If an answer takes longer than the probe's wait, an answer to any resent probe counts. */
static void slow_path__any_probe_is_right(void **state)
{
	struct scene s = scene_with("slow path", XROCE_UC, 0);
	u64 start_ns = s.w->now_ns;

	s.w->latency_ns = 3 * NSEC_PER_MSEC;
	post(&s, POSTS, WR_WRITE);
	world_run(s.w);
	expect_all(&s, POSTS, 0);
	judge(&s);
	/* round trips: one for the first 96 packets, then for 512 and more each */
	check(s.w, s.a->send->n == POSTS && s.w->now_ns - start_ns < 5 * 2 * s.w->latency_ns);
	scene_end(&s);
}

/*
 * A receiver that answered before and is now silent is waited for CREDIT_PATIENCE_NS; then it is
 * probed once a second, and believed.
 */
static void dead_peer__stops_nothing(void **state)
{
	struct scene s = scene_with("dead peer", XROCE_UC, 0);
	u64 start_ns;

	post_receives(&s, 4 * POSTS);
	post(&s, POSTS, WR_SEND);
	world_run(s.w);
	expect_all(&s, POSTS, POSTS);
	s.a->node->to[1].dead = true;
	start_ns = s.w->now_ns;
	post(&s, POSTS, WR_SEND);
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 2 * POSTS);
	check(s.w, s.w->now_ns - start_ns >= CREDIT_PATIENCE_NS &&
			   s.w->now_ns - start_ns < CREDIT_PATIENCE_NS + CREDIT_RETRY_MAX_NS);
	check_eq(s.w, s.b->recv->n, POSTS);
	/* back again */
	s.a->node->to[1].dead = false;
	world_run_for(s.w, CREDIT_FREE_NS);
	world_forget_sent(s.w);
	post(&s, POSTS, WR_SEND);
	world_run(s.w);
	check_eq(s.w, s.b->recv->n, 2 * POSTS);
	check(s.w, s.b->node->stats.flow_answers > 1 &&
			   s.w->sent[0].packet.opcode == OPCODE_CREDIT_PROBE);
	scene_end(&s);
}

static bool is_nth_credit(const struct sent_frame *f, void *arg)
{
	u32 *mask = arg;
	bool drop;

	if (!is_credit(f))
		return false;
	drop = *mask & 1;
	*mask >>= 1;
	return drop;
}

/*
 * Probes and answers that are lost, each mask of the first few: every message arrives, and no loss
 * costs more than the next tries.
 */
static void lost_probes__go_again(void **state)
{
	for (u32 mask = 0; mask < 256; mask++) {
		struct scene s = scene_with("lost probes", XROCE_UC, 0);
		u32 there = mask & 15, back = mask >> 4;
		u64 start_ns = s.w->now_ns;

		world_label(s.w, "test_credit lost_probes__go_again %x", mask);
		s.a->node->to[1].drops = s.b->node->to[0].drops = is_nth_credit;
		s.a->node->to[1].drops_arg = &there;
		s.b->node->to[0].drops_arg = &back;
		post_receives(&s, POSTS);
		post(&s, POSTS, WR_SEND);
		world_run(s.w);
		expect_all(&s, POSTS, POSTS);
		judge(&s);
		/*
		 * as long as it would take if all of them were of one probe, or each of another one
		 */
		check(s.w, s.w->now_ns - start_ns < 300 * NSEC_PER_MSEC);
		scene_end(&s);
	}
}

/* Senders to one ring share it, and each engine has its own ring. */
static void senders__share_the_ring(void **state)
{
	struct scene s = scene_on("senders", XROCE_UC, 0, 1);
	struct pair more[3];
	u32 windows = 0;

	for (u32 i = 0; i < ARRAY_SIZE(more); i++)
		more[i] = pair_connect(s.w, &s.o);
	for (u32 round = 0; round < 2; round++) {
		world_forget_sent(s.w);
		windows = 0;
		post(&s, POSTS, WR_WRITE);
		for (u32 i = 0; i < ARRAY_SIZE(more); i++)
			for (u32 k = 0; k < POSTS; k++) {
				struct send send = one(&s, k, WR_WRITE);

				post_send(&more[i].side[0], &send);
			}
		world_run(s.w);
	}
	for (u32 i = 0; i < s.w->num_sent; i++)
		if (s.w->sent[i].from == 1) {
			check_eq(s.w, s.w->sent[i].packet.credit_allowance >> 16,
				 CREDIT_SHARE(1024u) / 4);
			windows++;
		}
	check(s.w, windows > 8);
	for (u32 i = 0; i < ARRAY_SIZE(more); i++)
		pair_destroy(&more[i]);
	scene_end(&s);
}

static u32 charged(const struct scene *s)
{
	return credit_charged(&s->a->node->engine->tables->credits);
}

/* QPs that start at the same time share the unsolicited window, and return it. */
static void beginners__share_the_ring(void **state)
{
	static const u32 mtus[] = { 256, 4096 };

	for (u32 m = 0; m < ARRAY_SIZE(mtus); m++) {
		const u32 each = mtus[m] > 2048 ? 2 : 1;
		struct scene s = scene_on("beginners", XROCE_UC, 0, 1);
		struct pair more[8];
		u32 frames = 0;

		s.o.pmtu = mtus[m];
		for (u32 i = 0; i < ARRAY_SIZE(more); i++)
			more[i] = pair_connect(s.w, &s.o);
		s.b->node->to[0].dead = true;
		for (u32 i = 0; i < ARRAY_SIZE(more); i++)
			for (u32 k = 0; k < POSTS; k++) {
				struct send send = one(&s, k, WR_WRITE);

				post_send(&more[i].side[0], &send);
			}
		world_settle(s.w);
		for (u32 i = 0; i < s.w->num_sent; i++)
			frames += s.w->sent[i].from == 0 && !is_credit(&s.w->sent[i]) ? each : 0;
		check(s.w, frames >= CREDIT_START_FRAMES);
		check(s.w, frames <= CREDIT_START_FRAMES +
					     ARRAY_SIZE(more) * CREDIT_START_MIN * each);
		check_eq(s.w, charged(&s), frames);
		/* reset, answered or given up: nothing counts any more */
		pair_destroy(&more[0]);
		check(s.w, charged(&s) < frames);
		s.b->node->to[0].dead = false;
		world_run(s.w);
		check_eq(s.w, charged(&s), 0);
		for (u32 i = 1; i < ARRAY_SIZE(more); i++)
			pair_destroy(&more[i]);
		scene_end(&s);
	}
}

/* Posts n messages of PACKETS packets to QPs of peers that do not answer. */
static void post_to(struct scene *s, struct side *from, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		struct send send = one(s, i, WR_WRITE);

		post_send(from, &send);
	}
	world_settle(s->w);
}

/* QPs that sent little, and so never asked, are no beginners any more after a while. */
static void beginners__are_forgotten(void **state)
{
	struct scene s = scene_with("forgotten", XROCE_UC, ENGINE_NO_PROBED_CREDITS);
	struct pair more[2];

	for (u32 i = 0; i < ARRAY_SIZE(more); i++)
		more[i] = pair_connect(s.w, &s.o);
	post_to(&s, s.a, 1);
	post_to(&s, &more[0].side[0], 1);
	check_eq(s.w, charged(&s), CREDIT_START_FRAMES);
	world_run_for(s.w, 400 * NSEC_PER_MSEC);
	post_to(&s, &more[1].side[0], 5);
	check_eq(s.w, charged(&s), CREDIT_START);
	world_run_for(s.w, NSEC_PER_MSEC);
	check_eq(s.w, more[1].side[0].send->n, 5);
	check_eq(s.w, s.a->node->stats.flow_waits, 0);
	world_run_for(s.w, CREDIT_PERIOD_NS);
	post_to(&s, s.a, 1); /* begins again */
	check_eq(s.w, charged(&s), 2 * CREDIT_START);
	/* the end of a QP gives back what is charged to it, and nothing that was forgotten */
	pair_destroy(&more[0]);
	check_eq(s.w, charged(&s), 2 * CREDIT_START);
	pair_destroy(&more[1]);
	check_eq(s.w, charged(&s), CREDIT_START);
	scene_end(&s);
}

/* QPs that have begun one after the other begin together again when all of them send at once. */
static void beginners__begin_again_after_a_pause(void **state)
{
	struct scene s = scene_on("pause", XROCE_UC, 0, 1);
	struct pair more[8];
	u32 frames = 0;

	for (u32 i = 0; i < ARRAY_SIZE(more); i++) {
		more[i] = pair_connect(s.w, &s.o);
		post_to(&s, &more[i].side[0], 1);
		world_run_for(s.w, CREDIT_PERIOD_NS);
	}
	world_run_for(s.w, CREDIT_PERIOD_NS);
	world_forget_sent(s.w);
	s.b->node->to[0].dead = true;
	for (u32 i = 0; i < ARRAY_SIZE(more); i++)
		post_to(&s, &more[i].side[0], POSTS);
	for (u32 i = 0; i < s.w->num_sent; i++)
		frames += s.w->sent[i].from == 0 && !is_credit(&s.w->sent[i]);
	check(s.w, frames <= CREDIT_START_FRAMES + ARRAY_SIZE(more) * CREDIT_START_MIN);
	s.b->node->to[0].dead = false;
	world_run(s.w);
	check_eq(s.w, charged(&s), 0);
	for (u32 i = 0; i < ARRAY_SIZE(more); i++)
		pair_destroy(&more[i]);
	scene_end(&s);
}

/*
 * An answer to no probe of this QP changes nothing; an answer to its own probe allows exactly the
 * granted window.
 */
static void answer__needs_the_cookie(void **state)
{
	struct pair_options o = pair_defaults();
	struct packet p = raw_request(OPCODE_CREDIT_ANSWER, 0);
	struct raw r;

	o.transport = XROCE_UC;
	r = raw_create(&o, "answer");
	p.credit_allowance = ~0u;
	check_eq(r.w, raw_send(&r, p, NULL, 0), XROCE_DROP_unexpected_response);
	check_eq(r.w, r.s.qp->credit->limit, 0);
	/* as if it had asked */
	r.s.qp->credit->probing = true;
	r.s.qp->credit->cookie = 7;
	p.credit_cookie = 6;
	check_eq(r.w, raw_send(&r, p, NULL, 0), XROCE_DROP_unexpected_response);
	check_eq(r.w, r.s.qp->credit->limit, 0);
	p.credit_cookie = 7;
	check_eq(r.w, raw_send(&r, p, NULL, 0), 0);
	check_eq(r.w, r.s.qp->credit->limit, CREDIT_WINDOW_MAX);
	raw_expect_silence(&r, __FILE__, __LINE__);
	raw_destroy(&r);
}

/*
 * A probe is answered with its cookie, a ring's window for a single sender, and the posted
 * receives; a flood of probes only as room permits.
 */
static void probe__is_answered(void **state)
{
	struct pair_options o = pair_defaults();
	struct packet p = raw_request(OPCODE_CREDIT_PROBE, 0);
	const struct packet *answer;
	struct raw r;
	u32 n = 0;

	o.transport = XROCE_UC;
	o.pmtu = 4096;
	r = raw_create(&o, "probe");
	post_recv_buffer(&r.s, 1, r.mem, 0, 64);
	post_recv_buffer(&r.s, 2, r.mem, 0, 64);
	p.credit_cookie = 0xfeedbee5;
	/* of another QP than the connected one */
	p.src_qpn = RAW_PEER_QPN + 1;
	check_eq(r.w, raw_send(&r, p, NULL, 0), XROCE_DROP_peer);
	raw_expect_silence(&r, __FILE__, __LINE__);
	p.src_qpn = RAW_PEER_QPN;
	check_eq(r.w, raw_send(&r, p, NULL, 0), 0);
	answer = raw_answer(&r);
	check(r.w, answer && answer->opcode == OPCODE_CREDIT_ANSWER &&
			   answer->dest_qpn == RAW_PEER_QPN && answer->src_qpn == r.s.qp->qpn);
	check_eq(r.w, answer->credit_cookie, 0xfeedbee5);
	check_eq(r.w, answer->credit_allowance, (CREDIT_SHARE(1024u) / 2) << 16 | 2);
	for (u32 i = 0; i < 3 * CREDIT_ANSWERS; i++)
		check_eq(r.w, raw_deliver(&r, p, NULL, 0), 0);
	world_settle(r.w);
	while (raw_answer(&r))
		n++;
	check_eq(r.w, n, CREDIT_ANSWERS);
	raw_destroy(&r);
}

/* Asks; returns how many packets are allowed. */
static u32 probe_of(struct raw *r, u32 src_qpn)
{
	struct packet p = raw_request(OPCODE_CREDIT_PROBE, 0);
	const struct packet *answer;

	p.qkey = r->s.qp->qkey;
	p.src_qpn = src_qpn & ROCE_QPN_MASK;
	check_eq(r->w, raw_send(r, p, NULL, 0), 0);
	answer = raw_answer(r);
	check(r->w, answer != NULL);
	return answer->credit_allowance >> 16;
}

/* Room promised to one sender is promised to no other, whatever their QPNs are. */
static void probe__of_two(void **state)
{
	struct pair_options o = pair_defaults();

	o.transport = XROCE_UD; /* with packets of two frames */
	for (u32 i = 1; i <= 400; i++) {
		struct raw r = raw_create(&o, "probes of two");

		check_eq(r.w, probe_of(&r, 0x100), CREDIT_SHARE(1024u) / 2);
		check_eq(r.w, probe_of(&r, 0x100 + i * i * 7919), CREDIT_WINDOW_MIN);
		raw_destroy(&r);
	}
}

/* Senders beyond the table's size get the least. */
static void probe__of_many(void **state)
{
	struct pair_options o = pair_defaults();
	struct raw r;

	o.transport = XROCE_UD;
	r = raw_create(&o, "probes of many");
	check(r.w, probe_of(&r, 0x100) > CREDIT_WINDOW_MIN);
	for (u32 i = 1; i < 2 * CREDIT_SENDERS; i++)
		check_eq(r.w, probe_of(&r, 0x100 + i), CREDIT_WINDOW_MIN);
	raw_destroy(&r);
}

/* Neither is for the services that have acknowledgements. */
static void probe__not_for_reliable(void **state)
{
	struct pair_options o = pair_defaults();
	struct raw r = raw_create(&o, "reliable");

	check_eq(r.w, raw_send(&r, raw_request(OPCODE_CREDIT_PROBE, 0), NULL, 0),
		 XROCE_DROP_qp_transport);
	raw_expect_silence(&r, __FILE__, __LINE__);
	raw_destroy(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_packets__ask_nothing),
		cmocka_unit_test(burst__is_held_to_the_answers),
		cmocka_unit_test(receives__are_waited_for),
		cmocka_unit_test(stranger__is_waited_for_once),
		cmocka_unit_test(strangers__are_waited_for_less),
		cmocka_unit_test(slow_path__any_probe_is_right),
		cmocka_unit_test(dead_peer__stops_nothing),
		cmocka_unit_test(lost_probes__go_again),
		cmocka_unit_test(senders__share_the_ring),
		cmocka_unit_test(beginners__share_the_ring),
		cmocka_unit_test(beginners__are_forgotten),
		cmocka_unit_test(beginners__begin_again_after_a_pause),
		cmocka_unit_test(answer__needs_the_cookie),
		cmocka_unit_test(probe__is_answered),
		cmocka_unit_test(probe__of_two),
		cmocka_unit_test(probe__of_many),
		cmocka_unit_test(probe__not_for_reliable),
	};

	return cmocka_run_group_tests_name("credit", tests, NULL, NULL);
}
