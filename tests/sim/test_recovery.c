/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/* tier: long san */
/* tier: long san_engines XROCE_SIM_ENGINES=3 */
/*
 * Loss recovery beyond go-back-N: only lost packets are sent again, whatever the peer; the adaptive
 * time-out; credits; the response to congestion. Each part is compared with an engine that has it
 * turned off.
 */
#include "pair.h"

#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

#define PMTU	1024
#define PACKETS 40
#define LENGTH	(PACKETS * PMTU)

struct scene {
	struct world *w;
	struct buffer *local, *remote;
	struct pair pair;
};

static struct scene scene_open(const struct world_options *wo, u64 seed, u8 timeout)
{
	struct scene s = { .w = world_create_with(2, seed, wo) };
	struct pair_options o = pair_defaults();

	o.pmtu = PMTU;
	o.timeout = timeout;
	o.retry_cnt = 7;
	o.rnr_retry = 7;
	o.min_rnr_timer = 1; /* 10 us */
	o.max_rd_atomic = o.max_dest_rd_atomic = 4;
	o.max_send_wr = o.max_recv_wr = 256;
	o.cq_capacity = 1024;
	s.w->keep_frames = false;
	s.w->max_steps = 4000000;
	s.local = world_buffer(&s.w->node[0], LENGTH, PAIR_ACCESS_ALL);
	s.remote = world_buffer(&s.w->node[1], LENGTH, PAIR_ACCESS_ALL);
	s.pair = pair_connect(s.w, &o);
	return s;
}

static void scene_close(struct scene *s)
{
	pair_destroy(&s->pair);
	world_destroy(s->w);
}

static struct send request(const struct scene *s, enum wr_opcode op, u32 len)
{
	return request_between(s->local, s->remote, 1, op, len);
}

/*
 * One message of LENGTH bytes from fresh buffers, with the right bytes and one completion at its
 * end.
 */
static void transfer(struct scene *s, enum wr_opcode op, u32 fill)
{
	struct buffer *from = op == WR_READ ? s->remote : s->local,
		      *to = op == WR_READ ? s->local : s->remote;
	struct send send = request(s, op, LENGTH);
	struct side *a = &s->pair.side[0];
	u32 before = a->send->n;

	buffer_fill(from->bytes, LENGTH, fill);
	memset(to->bytes, 0, LENGTH);
	if (op == WR_SEND)
		post_recv_buffer(&s->pair.side[1], 2, s->remote, 0, LENGTH);
	post_send(a, &send);
	world_run(s->w);
	check_eq(s->w, a->send->n, before + 1);
	check_eq(s->w, a->send->log[before].status, CQE_SUCCESS);
	check(s->w, bytes_are(to->bytes, LENGTH, fill));
}

static void selective__each_lost_packet_is_sent_again_alone(void **state)
{
	const enum wr_opcode ops[] = { WR_SEND, WR_WRITE };

	for (u32 op = 0; op < ARRAY_SIZE(ops); op++)
		for (u32 lost = 0; lost + 1 < PACKETS; lost++) {
			struct scene s = scene_open(&(struct world_options){ 0 }, 3, 14);

			world_label(s.w, "test_recovery selective op %u lost %u", ops[op], lost);
			s.w->node[0].to[1].drop = 1ull << lost;
			transfer(&s, ops[op], 7);
			check_eq(s.w, s.w->node[0].stats.tx_retransmitted, 1);
			check_eq(s.w, s.w->node[1].stats.tx_sequence_naks, 1);
			check_eq(s.w, s.w->node[0].stats.timeouts, 0);
			check_eq(s.w, s.w->node[1].drops.psn_ahead, 0);
			scene_close(&s);
		}
}

static void selective__holes_are_filled_one_by_one(void **state)
{
	struct scene s = scene_open(&(struct world_options){ 0 }, 3, 14);

	world_label(s.w, "test_recovery holes");
	s.w->node[0].to[1].drop = 0x1422; /* five of forty */
	transfer(&s, WR_WRITE, 9);
	check_eq(s.w, s.w->node[0].stats.tx_retransmitted, 4);
	check_eq(s.w, s.w->node[1].stats.tx_sequence_naks, 4);
	scene_close(&s);
}

/*
 * The Linux kernel's rxe keeps nothing: it is gone back for, at once when it has shown that twice.
 */
static void selective__a_peer_that_keeps_nothing(void **state)
{
	struct scene s =
		scene_open(&(struct world_options){ .disable = { 0, ENGINE_NO_REORDER } }, 3, 14);
	u64 before;

	world_label(s.w, "test_recovery plain peer");
	for (u32 i = 0; i < 4; i++) {
		before = s.w->node[0].stats.tx_retransmitted;
		s.w->node[0].to[1].count = 0;
		s.w->node[0].to[1].drop = 1ull << 5;
		transfer(&s, WR_WRITE, 20 + i);
		/*
		 * all that was in flight from the lost packet on, whether it was tried alone first
		 * or not
		 */
		check(s.w, s.w->node[0].stats.tx_retransmitted - before > 8);
		check(s.w, s.w->node[0].stats.tx_retransmitted - before <= PACKETS - 5);
		check_eq(s.w, s.w->node[0].stats.timeouts, 0);
	}
	scene_close(&s);
}

static void read__each_lost_response_is_asked_for_alone(void **state)
{
	for (u32 lost = 0; lost < PACKETS; lost++) {
		struct scene s = scene_open(&(struct world_options){ 0 }, 3, 14);
		u32 responses;

		world_label(s.w, "test_recovery read lost %u", lost);
		s.w->keep_frames = true;
		s.w->node[1].to[0].drop = 1ull << lost;
		transfer(&s, WR_READ, 11);
		responses = world_count_sent(s.w, 1, OP5_READ_RESPONSE_FIRST) +
			    world_count_sent(s.w, 1, OP5_READ_RESPONSE_MIDDLE) +
			    world_count_sent(s.w, 1, OP5_READ_RESPONSE_LAST) +
			    world_count_sent(s.w, 1, OP5_READ_RESPONSE_ONLY);
		/*
		 * only the timer notices the loss of the last one; it requests the packets after
		 * the last received
		 */
		check_eq(s.w, responses, PACKETS + 1);
		scene_close(&s);
	}
}

/* Every combination of early packets ends right, and the pool has them all back. */
static void reorder__late_and_repeated_packets(void **state)
{
	for (u64 seed = 1; seed <= 300; seed++) {
		struct scene s = scene_open(&(struct world_options){ 0 }, seed, 10);

		world_label(s.w, "test_recovery reorder seed %llu", (unsigned long long)seed);
		for (u32 i = 0; i < 2; i++) {
			s.w->node[i].to[!i].hold_rate = 6000;
			s.w->node[i].to[!i].hold_packets = 1 + (u32)seed % 7;
			s.w->node[i].to[!i].duplicate_rate = 3000;
			s.w->node[i].to[!i].drop_rate = 500;
		}
		transfer(&s, WR_SEND, 1);
		transfer(&s, WR_READ, 2);
		transfer(&s, WR_WRITE, 3);
		scene_close(&s);
	}
}

/*
 * What one engine configuration costs at one loss rate: messages messages of 40 packets, READs and
 * WRITEs in turn, both directions lossy.
 */
struct cost {
	u64 bytes;	/* sent again, both sides */
	u64 ns;		/* simulated, until the last idle timer has fired */
};

static struct cost sweep(u32 drop_rate, u32 disable, u32 messages)
{
	struct scene s =
		scene_open(&(struct world_options){ .disable = { disable, disable } }, 99, 14);
	u64 start = s.w->now_ns;
	struct cost cost;

	world_label(s.w, "test_recovery sweep rate %u disable %x", drop_rate, disable);
	s.w->node[0].to[1].drop_rate = s.w->node[1].to[0].drop_rate = drop_rate;
	for (u32 i = 0; i < messages; i++)
		transfer(&s, i % 2 ? WR_READ : WR_WRITE, i);
	cost.bytes = s.w->node[0].stats.tx_retransmitted_bytes +
		     s.w->node[1].stats.tx_retransmitted_bytes;
	cost.ns = s.w->now_ns - start;
	scene_close(&s);
	return cost;
}

static void sweep__each_part_cuts_what_is_sent_again(void **state)
{
	static const struct {
		const char *percent;
		u32 rate, messages;
	} losses[] = { { "0.01", 7, 2000 },
		       { "0.1", 66, 500 },
		       { "0.5", 328, 100 },
		       { "1", 655, 100 },
		       { "5", 3277, 100 } };
	static const struct {
		const char *name;
		u32 disable;
	} columns[] = {
		{ "all parts", 0 },
		{ "no reorder", ENGINE_NO_REORDER },
		{ "no selective", ENGINE_NO_SELECTIVE },
		{ "no rto", ENGINE_NO_ADAPTIVE_RTO },
		{ "no window", ENGINE_NO_CWND },
		{ "none", ENGINE_NO_REORDER | ENGINE_NO_SELECTIVE | ENGINE_NO_ADAPTIVE_RTO |
				  ENGINE_NO_CWND },
	};
	u64 sum[ARRAY_SIZE(columns)] = { 0 };

	print_message("loss %%: bytes sent again a message (simulated us a message)\n");
	for (u32 i = 0; i < ARRAY_SIZE(losses); i++) {
		struct cost cost[ARRAY_SIZE(columns)];
		u64 n = losses[i].messages;

		print_message("%5s:", losses[i].percent);
		for (u32 k = 0; k < ARRAY_SIZE(columns); k++) {
			cost[k] = sweep(losses[i].rate, columns[k].disable, (u32)n);
			sum[k] += cost[k].bytes / n;
			print_message("  %s %llu (%llu)", columns[k].name,
				      (unsigned long long)(cost[k].bytes / n),
				      (unsigned long long)(cost[k].ns / n / 1000));
		}
		print_message("\n");
		/* keeping early packets and sending single ones again: each halves it at least */
		assert_true(cost[0].bytes * 2 < cost[1].bytes);
		assert_true(cost[0].bytes * 2 < cost[2].bytes);
		assert_true(cost[0].bytes * 2 < cost[5].bytes);
	}
	/* the time-out's worth is time, the window's is useless transmissions of the others */
	assert_true(sum[0] <= sum[3] + sum[3] / 4);
	assert_true(sum[0] <= sum[4] + sum[4] / 4);
}

/* ---- adaptive time-out ---- */

static void rto__repairs_a_lost_tail_before_the_users_timeout(void **state)
{
	for (u32 disable = 0; disable < 2; disable++) {
		struct scene s = scene_open(
			&(struct world_options){
				.disable = { disable ? ENGINE_NO_ADAPTIVE_RTO : 0 } },
			5, 14);
		u64 user_ns = 4096ull << 14, start;

		world_label(s.w, "test_recovery rto disable %u", disable);
		transfer(&s, WR_WRITE, 1); /* measures the round trip */
		s.w->node[0].to[1].count = 0;
		s.w->node[0].to[1].drop = 1ull << (PACKETS - 1);
		start = s.w->now_ns;
		transfer(&s, WR_WRITE, 2);
		if (disable) {
			check_eq(s.w, s.w->node[0].stats.timeouts, 1);
			check(s.w, s.w->now_ns - start >= user_ns);
		} else {
			check_eq(s.w, s.w->node[0].stats.rto_probes, 1);
			check_eq(s.w, s.w->node[0].stats.timeouts, 0);
			/* the put-off timer runs out late, silently */
			check(s.w, s.w->now_ns - start < user_ns + user_ns / 4);
		}
		/*
		 * the oldest unanswered one and, when that proves to have arrived, the missing one
		 */
		check_eq(s.w, s.w->node[0].stats.tx_retransmitted, 2);
		scene_close(&s);
	}
}

/*
 * The answer to a probe reports that all later packets are lost: they are resent then, not after
 * the next time-out.
 */
static void rto__a_longer_tail_goes_out_with_the_probes_answer(void **state)
{
	struct scene s = scene_open(&(struct world_options){ 0 }, 5, 14);

	world_label(s.w, "test_recovery rto tail");
	transfer(&s, WR_WRITE, 1);
	s.w->node[0].to[1].count = 0;
	s.w->node[0].to[1].drop = 7ull << (PACKETS - 3);
	transfer(&s, WR_WRITE, 2);
	check_eq(s.w, s.w->node[0].stats.rto_probes, 1);
	check_eq(s.w, s.w->node[0].stats.timeouts, 0);
	/* the oldest unanswered one, and the lost ones */
	check_eq(s.w, s.w->node[0].stats.tx_retransmitted, 4);
	scene_close(&s);
}

/* Probes are free: a peer that dies is given the user's time, retry_cnt + 1 times. */
static void rto__does_not_shorten_the_users_patience(void **state)
{
	struct scene s = scene_open(&(struct world_options){ 0 }, 5, 12);
	struct send send = request(&s, WR_WRITE, 8);
	struct side *a = &s.pair.side[0];
	u64 start;

	world_label(s.w, "test_recovery patience");
	transfer(&s, WR_WRITE, 1);
	s.w->node[0].to[1].dead = true;
	start = s.w->now_ns;
	post_send(a, &send);
	world_run(s.w);
	check_eq(s.w, a->send->log[a->send->n - 1].status, CQE_RETRY_EXC_ERR);
	check_eq(s.w, s.w->node[0].stats.timeouts, 8);
	check(s.w, s.w->node[0].stats.rto_probes > 0);
	check(s.w, s.w->now_ns - start >= 8 * (4096ull << 12));
	scene_close(&s);
}

/* ---- credits ---- */

static u64 rnr_naks_of_a_slow_receiver(u32 disable)
{
	struct scene s =
		scene_open(&(struct world_options){ .disable = { disable, disable } }, 8, 14);
	struct side *a = &s.pair.side[0], *b = &s.pair.side[1];
	struct send list[64];
	u64 naks;

	world_label(s.w, "test_recovery credits disable %x", disable);
	for (u32 i = 0; i < 64; i++) {
		list[i] = request(&s, WR_SEND, 64);
		list[i].wr_id = i;
	}
	for (u32 i = 0; i < 4; i++)
		post_recv_buffer(b, i, s.remote, 64 * i, 64);
	/* one at a time teaches the credits, then all at once */
	post_send(a, &list[0]);
	world_run_for(s.w, 10000);
	post_sends(a, list + 1, 63);
	for (u32 i = 4; i < 64; i++) {
		world_run_for(s.w, 3000);
		post_recv_buffer(b, i, s.remote, 64 * i, 64);
	}
	world_run(s.w);
	check_eq(s.w, a->send->n, 64);
	check_eq(s.w, b->recv->n, 64);
	for (u32 i = 0; i < 64; i++) {
		check_eq(s.w, a->send->log[i].wr_id, i);
		check_eq(s.w, a->send->log[i].status, CQE_SUCCESS);
		check_eq(s.w, b->recv->log[i].wr_id, i);
	}
	naks = s.w->node[1].stats.tx_rnr_naks;
	check(s.w, disable || s.w->node[0].stats.credit_waits > 0);
	scene_close(&s);
	return naks;
}

static void credits__spare_rnr_naks(void **state)
{
	u64 with = rnr_naks_of_a_slow_receiver(0),
	    without = rnr_naks_of_a_slow_receiver(ENGINE_NO_CREDITS);

	print_message("RNR NAKs: %llu with credits, %llu without\n", (unsigned long long)with,
		      (unsigned long long)without);
	assert_true(with < without);
}

/*
 * The peer's MSN counts requests: a READ of many packets as several, a local request as none. After
 * `read` READs and `bind` binds 20 SENDs find three receives.
 */
static void credits_after(u32 reads, u32 binds, bool many_receives)
{
	struct scene s = scene_open(&(struct world_options){ 0 }, 9, 14);
	struct side *a = &s.pair.side[0], *b = &s.pair.side[1];
	struct mr_table *t = engine_mr_table(s.w->node[0].engine);
	struct send list[20];
	struct mr *mw;
	u64 waits;

	world_label(s.w, "test_recovery credits after %u READs, %u binds", reads, binds);
	assert_int_equal(mw_add(t, PAIR_PD, MR_WINDOW_1, &mw), 0);
	s.local->mr->access |= MR_MW_BIND;
	for (u32 i = 0; i < reads; i++) {
		const struct send read = request(&s, WR_READ, LENGTH);

		post_send(a, &read);
		world_run(s.w);
	}
	for (u32 i = 0; i < binds; i++) {
		struct send bind = { .wr_id = 2, .opcode = WR_BIND_MW };

		bind.bind.mw_key = bind.bind.new_key = mw->key;
		bind.bind.lkey = s.local->mr->key;
		bind.bind.access = MR_REMOTE_READ;
		bind.bind.addr = buffer_va(s.local);
		bind.bind.length = 64;
		post_send(a, &bind);
		world_run(s.w);
	}
	for (u32 i = 0; i < (many_receives ? 30 : 4); i++)
		post_recv_buffer(b, i, s.remote, 64 * i, 64);
	for (u32 i = 0; i < 20; i++)
		list[i] = request(&s, WR_SEND, 64);
	/* teaches the credits */
	post_send(a, &list[0]);
	world_run(s.w);
	waits = s.w->node[0].stats.credit_waits;
	post_sends(a, list + 1, many_receives ? 19 : 3);
	world_run(s.w);
	check_eq(s.w, s.w->node[0].stats.credit_waits, waits);
	check_eq(s.w, b->recv->n, many_receives ? 20 : 4);
	if (!many_receives) {
		post_sends(a, list + 4, 16);
		world_run_for(s.w, 100000);
		check(s.w, s.w->node[0].stats.credit_waits > waits);
		/* one SEND is sent without a credit, and no more */
		check(s.w, s.w->node[1].stats.tx_rnr_naks > 0);
		check_eq(s.w, b->recv->n, 4);
	}
	scene_close(&s);
}

static void credits__count_requests_as_the_peer(void **state)
{
	credits_after(0, 0, true);
	credits_after(0, 0, false);
	credits_after(0, 30, true);
	credits_after(5, 0, false);
	credits_after(5, 30, true);
	credits_after(5, 30, false);
}

/* arg: a u32, how many of the next packets are lost */
static bool drops_next(const struct sent_frame *f, void *arg)
{
	u32 *next = arg;

	return *next && (*next)--;
}

/*
 * A READ whose request was lost is requested again in two parts, which the peer counts as two
 * messages. After 20 of these, each alone or with a WRITE after it that is lost as well, 20 SENDs
 * find 4 receives: one SEND is sent without a credit, and no more.
 */
static void credits_after_lost_reads(bool write_follows)
{
	struct scene s = scene_open(&(struct world_options){ 0 }, 9, 14);
	struct side *a = &s.pair.side[0], *b = &s.pair.side[1];
	struct send list[20];
	u32 next = 0;

	world_label(s.w, "test_recovery credits after lost READs, WRITEs %u", write_follows);
	s.w->node[0].to[1].drops = drops_next;
	s.w->node[0].to[1].drops_arg = &next;
	for (u32 i = 0; i < 4; i++)
		post_recv_buffer(b, i, s.remote, 64 * i, 64);
	list[0] = request(&s, WR_READ, 3 * PMTU);
	list[1] = request(&s, WR_WRITE, 64);
	for (u32 i = 0; i < 20; i++) {
		next = 1 + write_follows;
		post_sends(a, list, next);
		world_run(s.w);
	}
	check_eq(s.w, a->send->n, write_follows ? 40 : 20);
	check(s.w, b->qp->resp.seq.msn > a->send->n); /* in two parts */
	for (u32 i = 0; i < 20; i++)
		list[i] = request(&s, WR_SEND, 64);
	post_sends(a, list, 20);
	world_run_for(s.w, 100000);
	check(s.w, s.w->node[0].stats.credit_waits > 0);
	check(s.w, s.w->node[1].stats.tx_rnr_naks > 0);
	check_eq(s.w, psn_diff(a->qp->req.sent_psn, a->qp->req.unacked_psn), 1);
	check_eq(s.w, b->recv->n, 4);
	scene_close(&s);
}

static void credits__count_lost_reads_as_the_peer(void **state)
{
	credits_after_lost_reads(false);
	credits_after_lost_reads(true);
}

/* ---- congestion ---- */

/* The time at which side 0 has n completions; timers that run on do not count. */
static u64 until_completed(struct scene *s, u32 n)
{
	for (u32 i = 0; i < 1000000 && s->pair.side[0].send->n < n; i++)
		world_run_for(s->w, 500);
	check_eq(s->w, s->pair.side[0].send->n, n);
	return s->w->now_ns;
}

static void dcqcn__marks_slow_the_sender_and_wear_off(void **state)
{
	const u64 line = 1000ull * 1000 * 1000; /* bytes/s */
	struct scene s =
		scene_open(&(struct world_options){ .ecn = true, .line_rate = line }, 4, 14);
	struct rate *r = &s.pair.side[0].qp->rate;
	u64 start, free_ns, slow_ns;

	world_label(s.w, "test_recovery dcqcn");
	start = s.w->now_ns;
	post_send(&s.pair.side[0], &(struct send){ .opcode = WR_WRITE,
						   .flags = WR_SIGNALED,
						   .num_sge = 1,
						   .sge = { buffer_sge(s.local, 0, LENGTH) },
						   .remote_addr = buffer_va(s.remote),
						   .rkey = s.remote->mr->key });
	free_ns = until_completed(&s, 1) - start;
	check_eq(s.w, s.w->node[1].stats.tx_cnps, 0);
	check(s.w, !s.pair.side[0].qp->rate_limited);

	s.w->node[0].to[1].mark_rate = 65536 / 2;
	for (u32 i = 0; i < 20; i++)
		transfer(&s, WR_WRITE, i);
	check(s.w, s.w->node[1].stats.rx_ce > 100);
	check(s.w, s.w->node[1].stats.tx_cnps > 3);
	/* not each mark is answered */
	check(s.w, s.w->node[1].stats.tx_cnps < s.w->node[1].stats.rx_ce);
	check_eq(s.w, s.w->node[0].stats.rx_cnps, s.w->node[1].stats.tx_cnps);
	check(s.w, s.pair.side[0].qp->rate_limited && r->current < line / 2);
	/* paced, although the rate climbs back while the message is under way */
	s.w->node[0].to[1].mark_rate = 0;
	start = s.w->now_ns;
	post_send(&s.pair.side[0], &(struct send){ .opcode = WR_WRITE,
						   .flags = WR_SIGNALED,
						   .num_sge = 1,
						   .sge = { buffer_sge(s.local, 0, LENGTH) },
						   .remote_addr = buffer_va(s.remote),
						   .rkey = s.remote->mr->key });
	slow_ns = until_completed(&s, s.pair.side[0].send->n + 1) - start;
	check(s.w, slow_ns > 2 * free_ns);
	world_run_for(s.w, 1000 * NSEC_PER_MSEC);
	transfer(&s, WR_WRITE, 51);
	check(s.w, !s.pair.side[0].qp->rate_limited);
	scene_close(&s);
}

static void dcqcn__nothing_without_ecn(void **state)
{
	struct scene s = scene_open(&(struct world_options){ 0 }, 4, 14);

	world_label(s.w, "test_recovery no ecn");
	s.w->node[0].to[1].mark_rate = 65535; /* marks only ECN-capable packets */
	transfer(&s, WR_WRITE, 1);
	check_eq(s.w, s.w->node[1].stats.rx_ce, 0);
	check_eq(s.w, s.w->node[1].stats.tx_cnps, 0);
	scene_close(&s);
}

/* An early packet that comes twice is kept once. */
static void reorder__keeps_one_of_each(void **state)
{
	struct scene s = scene_open(&(struct world_options){ 0 }, 6, 14);

	world_label(s.w, "test_recovery duplicates of early packets");
	s.w->node[0].to[1].drop = 1;
	s.w->node[0].to[1].duplicate = ~1ull;
	transfer(&s, WR_WRITE, 3);
	check_eq(s.w, s.w->node[1].stats.rx_held, PACKETS - 1);
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(selective__each_lost_packet_is_sent_again_alone),
		cmocka_unit_test(selective__holes_are_filled_one_by_one),
		cmocka_unit_test(selective__a_peer_that_keeps_nothing),
		cmocka_unit_test(read__each_lost_response_is_asked_for_alone),
		cmocka_unit_test(reorder__late_and_repeated_packets),
		cmocka_unit_test(reorder__keeps_one_of_each),
		cmocka_unit_test(sweep__each_part_cuts_what_is_sent_again),
		cmocka_unit_test(rto__repairs_a_lost_tail_before_the_users_timeout),
		cmocka_unit_test(rto__a_longer_tail_goes_out_with_the_probes_answer),
		cmocka_unit_test(rto__does_not_shorten_the_users_patience),
		cmocka_unit_test(credits__spare_rnr_naks),
		cmocka_unit_test(credits__count_requests_as_the_peer),
		cmocka_unit_test(credits__count_lost_reads_as_the_peer),
		cmocka_unit_test(dcqcn__marks_slow_the_sender_and_wear_off),
		cmocka_unit_test(dcqcn__nothing_without_ecn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
