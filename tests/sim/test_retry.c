/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * What uses up retry_cnt, and what a requester sends after a time-out. A loss costs one retry when
 * it is noticed, and one for each of the user's time-outs; probes and repeated NAKs cost none, and
 * ask for one packet.
 */
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

#define PMTU	1024
#define PACKETS 24
#define LENGTH	(PACKETS * PMTU)

static struct scene scene_make(const struct world_options *wo, u8 timeout, u8 retry_cnt,
			       const char *name)
{
	struct world *w = world_create_with(2, 5, wo);
	struct pair_options o = pair_defaults();

	o.pmtu = PMTU;
	o.timeout = timeout;
	o.retry_cnt = retry_cnt;
	o.max_rd_atomic = o.max_dest_rd_atomic = 4;
	o.max_send_wr = o.max_recv_wr = 1024;
	o.cq_capacity = 4096;
	w->max_steps = 4000000;
	world_label(w, "test_retry %s, timeout %u, retry_cnt %u, disable %x", name, timeout,
		    retry_cnt, wo->disable[0]);
	return scene_in(w, &o, LENGTH);
}

/* The user's time-out: four times the attribute, which is 14 or less here. */
static u64 timeout_ns(const struct scene *s)
{
	return 4 * (4096ull << s->o.timeout);
}

/* Two round trips are measured, so that the adaptive time-out runs. */
static void warm_up(struct scene *s)
{
	for (u32 i = 0; i < 2; i++) {
		scene_post(s, 1000 + i, WR_WRITE, 8);
		world_run(s->w);
	}
	world_forget_sent(s->w);
	s->a->send->n = 0;
}

static bool is_read_response(const struct sent_frame *f, void *arg)
{
	return (f->packet.flags & (OP_READ | OP_RESPONSE)) == (OP_READ | OP_RESPONSE);
}

static struct faults *answers(struct scene *s)
{
	return &s->b->node->to[0];
}

/* READ requests for more than a packet. */
static u32 long_reads(const struct scene *s)
{
	const struct sent_frame *f;
	u32 n = 0;

	for (u32 i = 0; (f = world_sent(s->w, 0, OP5_READ_REQUEST, i)); i++)
		n += f->packet.dma_len > PMTU;
	return n;
}

static void ends_well(struct scene *s, u32 n)
{
	world_run(s->w);
	check_eq(s->w, qp_state(s->a->qp), QPS_RTS);
	check_eq(s->w, s->a->send->n, n);
	for (u32 i = 0; i < n; i++)
		check_eq(s->w, s->a->send->log[i].status, CQE_SUCCESS);
}

/* Loses READ responses for `ns` while WRITEs after the READ are acknowledged, one for each 2 ms.
 * Returns when the outage is over. */
static void outage(struct scene *s, u64 ns)
{
	u32 n = 0;

	answers(s)->drops = is_read_response;
	scene_post(s, n++, WR_READ, LENGTH);
	for (u64 end_ns = s->w->now_ns + ns;
	     s->w->now_ns < end_ns && qp_state(s->a->qp) == QPS_RTS;) {
		if (n < 1000)
			scene_post(s, n++, WR_WRITE, 8);
		world_run_for(s->w, 2 * NSEC_PER_MSEC);
	}
	answers(s)->drops = NULL;
}

/* The implied NAK uses one of seven retries, and each time-out one: six of them leave the
 * connection alive. */
static void retry_cnt__probes_and_implied_naks_use_none(void **state)
{
	static const struct {
		u32 disable, timeouts, half_timeouts_long;
	} parts[] = {
		/* a probe comes first when the outage is over */
		{ 0, 6, 13 },
		{ ENGINE_NO_SELECTIVE, 6, 13 },
		{ ENGINE_NO_REORDER, 6, 13 },
		/* one more, for the WRITEs whose ACKs came while the READ was open */
		{ ENGINE_NO_ADAPTIVE_RTO, 7, 11 },
	};

	for (u32 i = 0; i < ARRAY_SIZE(parts); i++) {
		struct scene s = scene_make(
		    &(struct world_options){ .disable = { parts[i].disable } }, 14, 7, "outage");

		warm_up(&s);
		outage(&s, parts[i].half_timeouts_long * timeout_ns(&s) / 2);
		world_run(s.w);
		check_eq(s.w, qp_state(s.a->qp), QPS_RTS);
		check_eq(s.w, s.a->node->stats.timeouts, parts[i].timeouts);
		check(s.w, s.a->node->stats.rto_probes > 5 ||
			       parts[i].disable == ENGINE_NO_ADAPTIVE_RTO);
		for (u32 k = 0; k < s.a->send->n; k++)
			check_eq(s.w, s.a->send->log[k].status, CQE_SUCCESS);
		check_eq(s.w, s.a->send->log[0].opcode, CQE_READ);
		/* the READ, once more for the implied NAK, then a packet at a time, and the rest in
		 * the end */
		check_eq(s.w, long_reads(&s), 2 + 1);
		scene_end(&s);
	}
}

/* An outage that does not end is given up after the user's patience: a retry for the implied NAK,
 * and one for each time-out. */
static void retry_cnt__is_used_by_time_outs(void **state)
{
	struct scene s = scene_make(&(struct world_options){ 0 }, 12, 3, "dead");
	u64 start;

	warm_up(&s);
	start = s.w->now_ns;
	outage(&s, 100 * timeout_ns(&s));
	check_eq(s.w, qp_state(s.a->qp), QPS_ERR);
	check_eq(s.w, s.a->send->log[0].status, CQE_RETRY_EXC_ERR);
	check_eq(s.w, s.a->send->log[0].vendor_err, VERR_TIMEOUT);
	check_eq(s.w, s.a->node->stats.timeouts, 3);
	check(s.w, s.w->now_ns - start >= 3 * timeout_ns(&s));
	check(s.w, s.w->now_ns - start < 5 * timeout_ns(&s));
	scene_end(&s);
}

/* The first sequence NAK that b has sent. */
static const struct sent_frame *sent_nak(const struct scene *s)
{
	const u8 syndrome = AETH_NAK | NAK_PSN_SEQUENCE;
	const struct sent_frame *f;

	for (u32 i = 0; (f = world_sent(s->w, 1, OP5_ACKNOWLEDGE, i)); i++)
		if (f->packet.syndrome == syndrome)
			return f;
	check(s->w, false);
	return NULL;
}

/* A sequence NAK that comes again and again is answered by one repair, and takes one retry. */
static void sequence_nak__of_the_same_psn_counts_once(void **state)
{
	const u32 disable[] = { 0, ENGINE_NO_SELECTIVE };

	for (u32 i = 0; i < ARRAY_SIZE(disable); i++) {
		struct scene s = scene_make(&(struct world_options){ .disable = { disable[i] } },
					    14, 1, "repeated NAK");
		const struct sent_frame *nak;
		u64 again;

		warm_up(&s);
		s.a->node->to[1].count = 0;
		s.a->node->to[1].drop = 1ull << 5;
		scene_post(&s, 0, WR_WRITE, LENGTH);
		world_run_for(s.w, 2 * WORLD_LATENCY_NS);
		nak = sent_nak(&s);
		check_eq(s.w, s.a->node->stats.rx_sequence_naks, 1);
		again = s.a->node->stats.tx_retransmitted;
		/* twenty copies, before the repair has had time to be answered */
		for (u32 k = 0; k < 20; k++)
			world_deliver(s.w, 0, nak->data, nak->len);
		ends_well(&s, 1);
		check_eq(s.w, s.a->node->stats.rx_sequence_naks, 21);
		check_eq(s.w, s.a->node->stats.timeouts, 0);
		if (!disable[i])
			check_eq(s.w, s.a->node->stats.tx_retransmitted, again);
		check(s.w, s.a->node->stats.tx_retransmitted <= PACKETS - 5);
		check(s.w, memcmp(s.local->bytes, s.remote->bytes, LENGTH) == 0);
		scene_end(&s);
	}
}

/* After a time-out a NAK is heeded again, and takes no retry: the time-out took it. */
static void sequence_nak__after_a_time_out_is_heeded(void **state)
{
	struct scene s =
	    scene_make(&(struct world_options){ .disable = { ENGINE_NO_ADAPTIVE_RTO } }, 12, 2,
		       "NAK behind a time-out");
	const struct sent_frame *nak;
	u64 again;

	s.a->node->to[1].drop = 1ull << 5;
	scene_post(&s, 0, WR_WRITE, LENGTH);
	world_run_for(s.w, 2 * WORLD_LATENCY_NS);
	nak = sent_nak(&s);
	world_drop_flights(s.w);
	s.a->node->to[1].dead = true;
	world_run_for(s.w, timeout_ns(&s) + timeout_ns(&s) / 2);
	check_eq(s.w, s.a->node->stats.timeouts, 1);
	s.a->node->to[1].dead = false;
	again = s.a->node->stats.tx_retransmitted;
	for (u32 k = 0; k < 20; k++)
		world_deliver(s.w, 0, nak->data, nak->len);
	world_run_for(s.w, WORLD_LATENCY_NS / 2);
	check_eq(s.w, s.a->node->stats.tx_retransmitted, again + 1);
	ends_well(&s, 1);
	check_eq(s.w, s.a->node->stats.timeouts, 1);
	check(s.w, memcmp(s.local->bytes, s.remote->bytes, LENGTH) == 0);
	scene_end(&s);
}

/* One probe of a READ requests one packet, on any path. When it is answered, the rest is requested
 * at once. */
static void probe__asks_for_one_packet_of_a_read(void **state)
{
	const u32 disable[] = { 0, ENGINE_NO_ADAPTIVE_RTO, ENGINE_NO_SELECTIVE,
				ENGINE_NO_SELECTIVE | ENGINE_NO_ADAPTIVE_RTO };

	for (u32 i = 0; i < ARRAY_SIZE(disable); i++) {
		struct scene s = scene_make(&(struct world_options){ .disable = { disable[i] } },
					    14, 7, "READ probe");
		u32 probes, requests;
		u64 responses = 0, over_ns;

		warm_up(&s);
		s.a->node->to[1].dead = true;
		scene_post(&s, 0, WR_READ, LENGTH);
		world_run_for(s.w, 4 * timeout_ns(&s));
		probes = world_count_sent(s.w, 0, OP5_READ_REQUEST) - 1;
		check(s.w, probes >= 3);
		for (u32 k = 1; k <= probes; k++) {
			const struct packet *p = &world_sent(s.w, 0, OP5_READ_REQUEST, k)->packet;

			check_eq(s.w, p->psn, s.o.psn[0] + 2);
			check_eq(s.w, p->dma_len, PMTU);
		}
		s.a->node->to[1].dead = false;
		ends_well(&s, 1);
		check(s.w, memcmp(s.local->bytes, s.remote->bytes, LENGTH) == 0);
		/* one packet, then all others, each once */
		requests = world_count_sent(s.w, 0, OP5_READ_REQUEST) - 1 - probes;
		check_eq(s.w, requests, 2);
		check_eq(s.w, world_sent(s.w, 0, OP5_READ_REQUEST, probes + 1)->packet.dma_len,
			 PMTU);
		check_eq(s.w, world_sent(s.w, 0, OP5_READ_REQUEST, probes + 2)->packet.dma_len,
			 LENGTH - PMTU);
		over_ns = world_sent(s.w, 0, OP5_READ_REQUEST, probes + 2)->time_ns -
			  world_sent(s.w, 0, OP5_READ_REQUEST, probes + 1)->time_ns;
		check_eq(s.w, over_ns, 2 * WORLD_LATENCY_NS);
		for (u32 k = 0; k < s.w->num_sent; k++)
			responses +=
			    s.w->sent[k].from == 1 && is_read_response(&s.w->sent[k], NULL);
		check_eq(s.w, responses, PACKETS);
		scene_end(&s);
	}
}

/* A READ's answer that was only late is not asked for again: its own responses say that they are
 * not the probe's. */
static void probe__of_a_late_read_asks_for_no_more(void **state)
{
	struct scene s = scene_make(&(struct world_options){ 0 }, 14, 7, "late READ");
	u64 responses = 0;

	warm_up(&s);
	s.w->latency_ns = 1 * NSEC_PER_MSEC; /* longer than the measured round trip lets expect */
	scene_post(&s, 0, WR_READ, LENGTH);
	ends_well(&s, 1);
	check(s.w, s.a->node->stats.rto_probes > 0);
	check(s.w, memcmp(s.local->bytes, s.remote->bytes, LENGTH) == 0);
	for (u32 k = 0; k < s.w->num_sent; k++)
		responses += s.w->sent[k].from == 1 && is_read_response(&s.w->sent[k], NULL);
	check_eq(s.w, responses, PACKETS + s.a->node->stats.rto_probes);
	scene_end(&s);
}

/* If a requester goes back, one packet is resent after each time-out, and the packets after it when
 * it has been answered. */
static void probe__going_back_sends_one_packet(void **state)
{
	struct scene s = scene_make(&(struct world_options){ .disable = { ENGINE_NO_SELECTIVE } },
				    12, 7, "go back");
	u32 before;

	warm_up(&s);
	s.a->node->to[1].dead = true;
	scene_post(&s, 0, WR_WRITE, LENGTH);
	world_run_for(s.w, 9 * timeout_ns(&s) / 2);
	check_eq(s.w, s.a->node->stats.timeouts, 4);
	before = (u32)(s.a->node->stats.timeouts + s.a->node->stats.rto_probes);
	check_eq(s.w, s.a->node->stats.tx_retransmitted, before);
	for (u32 k = PACKETS; k < s.w->num_sent; k++) {
		check_eq(s.w, s.w->sent[k].packet.psn, s.o.psn[0] + 2);
		check(s.w, s.w->sent[k].packet.ackreq);
	}
	s.a->node->to[1].dead = false;
	ends_well(&s, 1);
	check(s.w, memcmp(s.local->bytes, s.remote->bytes, LENGTH) == 0);
	check_eq(s.w, s.a->node->stats.tx_retransmitted, before + PACKETS);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(retry_cnt__probes_and_implied_naks_use_none),
		cmocka_unit_test(retry_cnt__is_used_by_time_outs),
		cmocka_unit_test(sequence_nak__of_the_same_psn_counts_once),
		cmocka_unit_test(sequence_nak__after_a_time_out_is_heeded),
		cmocka_unit_test(probe__asks_for_one_packet_of_a_read),
		cmocka_unit_test(probe__of_a_late_read_asks_for_no_more),
		cmocka_unit_test(probe__going_back_sends_one_packet),
	};

	return cmocka_run_group_tests_name("retry", tests, NULL, NULL);
}
