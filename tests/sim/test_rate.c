/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * ibv_modify_qp_rate_limit(3): packets are counted against the clock. "The rate_limit defines the
 * MAX send rate this QP will send as long as the link in not blocked and there are work requests in
 * send queue", "max_burst_sz, single burst max bytes size and the typical_pkt_sz".
 */
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

#define PMTU	1024
#define KBPS	80000u /* 10 bytes in a microsecond */
#define BYTES_S (KBPS * 125ull)
#define BURST	8192u
#define HEADERS (PACKET_FRAME_MAX - ROCE_PMTU_MAX)

static struct scene scene_make(enum xroce_transport transport, const char *name)
{
	struct world *w = world_create(2, 11);
	struct pair_options o = pair_defaults();

	o.transport = transport;
	o.pmtu = PMTU;
	o.timeout = 20; /* seconds: nothing is sent twice */
	o.max_send_wr = 256;
	o.max_recv_wr = 256;
	o.cq_capacity = 1024;
	world_label(w, "test_rate %s, transport %u", name, transport);
	w->max_steps = 4000000;
	return scene_in(w, &o, 256 * PMTU);
}

static int limit(struct side *s, u32 kbps, u32 burst, u32 typical)
{
	const struct qp_attr a = { .rate_limit = { kbps, burst, typical } };

	return qp_modify(s->node->engine, s->qp, &a, QP_ATTR_RATE_LIMIT, s->node->world->now_ns);
}

static bool has_data(const struct sent_frame *f, u32 from)
{
	return f->from == from && f->packet.payload_len;
}

/*
 * No stretch of the packets with data that the node has sent is faster than the rate, but for one
 * burst; and as there was always more to send, all together are nearly as fast as it. Returns how
 * many there were.
 */
static u32 check_pace(struct world *w, u32 from, u64 bytes_s, u64 burst)
{
	u64 total = 0, last_ns = 0, first_ns = 0, sum;
	u32 n = 0;

	for (u32 i = 0; i < w->num_sent; i++) {
		if (!has_data(&w->sent[i], from))
			continue;
		sum = 0;
		for (u32 k = i; k < w->num_sent; k++) {
			if (!has_data(&w->sent[k], from))
				continue;
			sum += w->sent[k].len;
			check(w, sum <= burst + bytes_s *
							 (w->sent[k].time_ns - w->sent[i].time_ns) /
							 NSEC_PER_SEC);
		}
		if (!n++)
			first_ns = w->sent[i].time_ns;
		last_ns = w->sent[i].time_ns;
		total += w->sent[i].len;
	}
	check(w, total * NSEC_PER_SEC >= (last_ns - first_ns) * bytes_s * 98 / 100);
	return n;
}

static struct send datagram(struct scene *s, u64 wr_id)
{
	return (struct send){ .wr_id = wr_id,
			      .opcode = WR_SEND,
			      .flags = WR_SIGNALED,
			      .num_sge = 1,
			      .sge = { buffer_sge(s->local, 0, PMTU) },
			      .path = &s->path,
			      .remote_qpn = s->b->qp->qpn,
			      .remote_qkey = PAIR_QKEY };
}

/* Sends 200 data packets from node 0. Returns the time that this takes. */
static void send_200(struct scene *s)
{
	if (s->o.transport != XROCE_UD) {
		scene_post(s, 1, WR_WRITE, 200 * PMTU);
		world_run(s->w);
		return;
	}
	for (u32 i = 0; i < 200; i++) {
		const struct send send = datagram(s, i);

		post_recv_buffer(s->b, i, s->remote, 0, 40 + PMTU);
		post_send(s->a, &send);
	}
	world_run(s->w);
	check_eq(s->w, s->b->recv->n, 200);
}

/* Each service: 200 packets last as long as the rate says, and are there. */
static void rate__packets_keep_to_the_clock(void **state)
{
	static const enum xroce_transport all[] = { XROCE_RC, XROCE_UC, XROCE_UD };

	for (u32 i = 0; i < ARRAY_SIZE(all); i++) {
		struct scene s = scene_make(all[i], "clock");
		u64 start_ns = s.w->now_ns;

		assert_int_equal(limit(s.a, KBPS, BURST, 0), 0);
		send_200(&s);
		check_eq(s.w, check_pace(s.w, 0, BYTES_S, BURST), 200);
		check_eq(s.w, s.a->node->stats.tx_retransmitted, 0);
		check(s.w, s.w->now_ns - start_ns >= (200 * PMTU - BURST) * NSEC_PER_SEC / BYTES_S);
		expect(s.w, s.a->send, s.a->send->n - 1, .wr_id = all[i] == XROCE_UD ? 199 : 1,
		       .opcode = all[i] == XROCE_UD ? CQE_SEND : CQE_WRITE,
		       .byte_len = all[i] == XROCE_UD ? PMTU : 200 * PMTU, .qpn = s.a->qp->qpn);
		scene_end(&s);
	}
}

/* What a QP answers is sent by it as well: READ responses keep to its limit, not to the reader's.
 */
static void rate__read_responses_keep_to_the_clock(void **state)
{
	struct scene s = scene_make(XROCE_RC, "responses");

	buffer_fill(s.remote->bytes, 200 * PMTU, 3);
	assert_int_equal(limit(s.b, KBPS, BURST, 0), 0);
	scene_post(&s, 1, WR_READ, 200 * PMTU);
	world_run(s.w);
	check_eq(s.w, check_pace(s.w, 1, BYTES_S, BURST), 200);
	check_eq(s.w, s.a->node->stats.tx_retransmitted, 0);
	expect(s.w, s.a->send, 0, .wr_id = 1, .opcode = CQE_READ, .byte_len = 200 * PMTU,
	       .qpn = s.a->qp->qpn);
	check(s.w, bytes_are(s.local->bytes, 200 * PMTU, 3));
	scene_end(&s);
}

/*
 * Responses that wait for their turn are sent when it comes, also if meanwhile an ACK has said that
 * the QP's own requests have arrived and nothing of them is left to be waited for.
 */
static void rate__responses_wait_through_an_ack(void **state)
{
	struct scene s = scene_make(XROCE_RC, "ack");
	struct send back;

	assert_int_equal(limit(s.b, KBPS, 2 * PMTU, 0), 0);
	/* it leaves before the READ arrives, and its ACK comes when the first responses have left
	 */
	back = request_between(s.remote, s.local, 2, WR_WRITE, 0);
	post_send(s.b, &back);
	scene_post(&s, 1, WR_READ, 32 * PMTU);
	world_run_for(s.w, 10 * NSEC_PER_USEC);
	check_eq(s.w, s.b->send->n, 1);
	world_run_for(s.w, 10 * NSEC_PER_MSEC);
	check_eq(s.w, s.a->send->n, 1);
	check_eq(s.w, s.a->node->stats.timeouts, 0);
	check_eq(s.w, s.a->node->stats.tx_retransmitted, 0);
	world_run(s.w);
	scene_end(&s);
}

/*
 * Responses use up the rate inside a message whose packets so far have no AckReq. The wait ends by
 * itself and the message goes on: nothing is sent twice.
 */
static void rate__a_wait_repeats_nothing(void **state)
{
	struct scene s = scene_make(XROCE_RC, "both ways");
	struct send back = request_between(s.remote, s.local, 2, WR_READ, 20 * PMTU);
	static u8 frame[PACKET_FRAME_MAX];
	u32 len;

	assert_int_equal(limit(s.a, KBPS, BURST, 0), 0);
	scene_post(&s, 1, WR_WRITE, 20 * PMTU);
	len = engine_output(qp_engine(s.a->qp), frame, sizeof(frame), s.w->now_ns);
	check(s.w, len > 0);
	check_eq(s.w, s.a->qp->req.since_ackreq, 1);
	check_eq(s.w, world_deliver(s.w, 1, frame, len), XROCE_DROP_none);
	post_send(s.b, &back);
	len = engine_output(qp_engine(s.b->qp), frame, sizeof(frame), s.w->now_ns);
	check_eq(s.w, world_deliver(s.w, 0, frame, len), XROCE_DROP_none);
	world_run(s.w);
	check_eq(s.w, s.a->send->n + s.b->send->n, 2);
	check_eq(s.w, s.a->node->stats.tx_retransmitted, 0);
	scene_end(&s);
}

/* The number of packets that leave at once after a pause: at most a burst, at least one. */
static void rate__bursts_are_bounded(void **state)
{
	static const struct {
		u32 burst, typical, packets;
	} rows[] = {
		{ BURST, 0, 7 },	  { BURST, PMTU / 2, 8 }, /* a typical packet is shorter
								     than these: one more begins */
		{ PMTU + HEADERS, 0, 1 }, { 4 * (PMTU + HEADERS), 0, 4 }, { 0, 0, 2 },
	};

	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		struct scene s = scene_make(XROCE_UC, "burst");
		u32 n = 0;

		/* so slow that nothing is added while they leave */
		assert_int_equal(limit(s.a, 8, rows[i].burst, rows[i].typical), 0);
		world_run_for(s.w, 60 * NSEC_PER_SEC);
		scene_post(&s, 1, WR_WRITE, 20 * PMTU);
		world_run_for(s.w, NSEC_PER_USEC);
		for (u32 k = 0; k < s.w->num_sent; k++)
			n += has_data(&s.w->sent[k], 0);
		check_eq(s.w, n, rows[i].packets);
		world_run(s.w);
		check_eq(s.w, s.a->send->n, 1);
		scene_end(&s);
	}
}

/* Another rate counts at once, also for a packet that waits by the old one; 0 is none. */
static void rate__is_changed_under_way(void **state)
{
	struct scene s = scene_make(XROCE_RC, "changed");
	u64 start_ns;

	assert_int_equal(limit(s.a, QP_RATE_MIN, 0, 0), 0);
	scene_post(&s, 1, WR_WRITE, 100 * PMTU);
	world_run_for(s.w, NSEC_PER_MSEC);
	check(s.w, s.w->num_sent < 4);
	assert_int_equal(limit(s.a, KBPS, BURST, 0), 0);
	world_run_for(s.w, 5 * NSEC_PER_MSEC);
	check_eq(s.w, s.a->send->n, 0);
	world_forget_sent(s.w);
	start_ns = s.w->now_ns;
	assert_int_equal(limit(s.a, 0, 0, 0), 0);
	check(s.w, !s.a->qp->rate_limited);
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 1);
	check(s.w, s.w->now_ns - start_ns < NSEC_PER_MSEC);
	scene_end(&s);
}

/*
 * Of two limits the lower one counts. Congestion notifications reduce the limit as they would the
 * line's rate, to a quarter at most; when that has passed, the limit is left.
 */
static void rate__limit_outlasts_congestion(void **state)
{
	struct world *w = world_create_with(2, 9, &(struct world_options){ .ecn = true });
	struct pair_options o = pair_defaults();
	struct scene s;

	o.pmtu = PMTU;
	o.timeout = 20;
	world_label(w, "test_rate congestion");
	s = scene_in(w, &o, 256 * PMTU);
	assert_int_equal(limit(s.a, KBPS, BURST, 0), 0);
	w->node[0].to[1].mark_rate = 65536;
	scene_post(&s, 1, WR_WRITE, 200 * PMTU);
	world_run_for(w, 2 * NSEC_PER_MSEC);
	check(w, s.a->qp->rate.reduced);
	check(w, s.a->qp->rate.current >= BYTES_S / 4 && s.a->qp->rate.current < BYTES_S);
	check(w, s.a->node->stats.rx_cnps > 0);
	w->node[0].to[1].mark_rate = 0;
	world_run(w);
	check_eq(w, s.a->send->n, 1);
	world_run_for(w, NSEC_PER_SEC);
	world_forget_sent(w);
	scene_post(&s, 2, WR_WRITE, 200 * PMTU);
	world_run(w);
	check(w, !s.a->qp->rate.reduced && s.a->qp->rate_limited);
	check_eq(w, check_pace(w, 0, BYTES_S, BURST), 200);
	scene_end(&s);
}

/* A refused value leaves the limit as it is; RESET clears the QP's limit. */
static void rate__refuses_what_it_cannot_keep(void **state)
{
	struct scene s = scene_make(XROCE_RC, "refused");
	static const struct {
		u32 kbps, burst, typical;
		int err;
	} rows[] = {
		{ QP_RATE_MIN, 0, 0, 0 },
		{ QP_RATE_MAX, 0, 0, 0 },
		{ QP_RATE_MAX, UINT32_MAX, UINT16_MAX, 0 },
		{ KBPS, PMTU + HEADERS, 0, 0 },
		{ KBPS, 100, 100, 0 },
		{ QP_RATE_MAX + 1, 0, 0, -EINVAL },
		{ UINT32_MAX, 0, 0, -EINVAL },
		{ 0, BURST, 0, -EINVAL },
		{ 0, 0, 100, -EINVAL },
		{ KBPS, PMTU + HEADERS - 1, 0, -EINVAL },
		{ KBPS, 99, 100, -EINVAL },
	};
	struct qp_attr a;

	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		const u32 kbps = rows[i].err ? KBPS : rows[i].kbps;

		assert_int_equal(limit(s.a, rows[i].kbps, rows[i].burst, rows[i].typical),
				 rows[i].err);
		qp_query(s.a->qp, &a);
		check_eq(s.w, a.rate_limit.kbps, kbps);
		check_eq(s.w, s.a->qp->rate.limit, kbps * 125ull);
	}
	assert_int_equal(side_state(s.a, QPS_SQD), 0);
	assert_int_equal(limit(s.a, KBPS, 0, 0), -EINVAL);
	assert_int_equal(side_state(s.a, QPS_RESET), 0);
	assert_int_equal(limit(s.a, KBPS, 0, 0), -EINVAL);
	qp_query(s.a->qp, &a);
	check_eq(s.w, a.rate_limit.kbps, 0);
	side_init(s.a, &s.o);
	side_rtr(s.a, &s.o, 1, s.b->qp->qpn, 0);
	side_rts(s.a, &s.o, 0);
	check(s.w, !s.a->qp->rate_limited);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rate__packets_keep_to_the_clock),
		cmocka_unit_test(rate__read_responses_keep_to_the_clock),
		cmocka_unit_test(rate__responses_wait_through_an_ack),
		cmocka_unit_test(rate__a_wait_repeats_nothing),
		cmocka_unit_test(rate__bursts_are_bounded),
		cmocka_unit_test(rate__is_changed_under_way),
		cmocka_unit_test(rate__limit_outlasts_congestion),
		cmocka_unit_test(rate__refuses_what_it_cannot_keep),
	};

	return cmocka_run_group_tests_name("rate", tests, NULL, NULL);
}
