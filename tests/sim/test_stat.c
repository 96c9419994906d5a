/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * What a QP shows of itself agrees with what the link did to its packets, to the packet: the world
 * knows each frame that was sent, and its fate.
 */
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

/* What the link has seen of one direction. */
struct seen {
	u64 sent, bytes, arrived, arrived_bytes, corrupted;
};

static struct seen seen_from(const struct world *w, u32 from)
{
	struct seen s = { 0 };

	for (u32 i = 0; i < w->num_sent; i++) {
		const struct sent_frame *f = &w->sent[i];
		u64 copies;

		if (f->from != from)
			continue;
		s.sent++;
		s.bytes += f->len;
		copies = f->fate == FATE_DUPLICATED ? 2 : f->fate != FATE_DROPPED;
		s.arrived += copies;
		s.arrived_bytes += copies * f->len;
		s.corrupted += f->fate == FATE_CORRUPTED;
	}
	return s;
}

/* One QP a side: the device's counters are the QP's. */
static void check_side(struct scene *s, const struct side *side)
{
	struct world *w = s->w;
	const struct xroce_qp_stat *q = side->qp->stat;
	const struct xroce_engine_stats *e = &side->node->stats;
	const struct seen out = seen_from(w, side->node->index),
			  in = seen_from(w, !side->node->index);

	check_eq(w, q->tx_packets, out.sent);
	check_eq(w, q->tx_bytes, out.bytes);
	check_eq(w, q->rx_packets, in.arrived);
	check_eq(w, q->rx_bytes, in.arrived_bytes);
	check_eq(w, q->icrc_errors, in.corrupted);
	check_eq(w, q->qpn, side->qp->qpn);
	check_eq(w, q->sq_psn, side->qp->req.next_psn);
	check_eq(w, q->unacked_psn, side->qp->req.unacked_psn);
	check_eq(w, q->outstanding, 0);
	check_eq(w, q->rq_psn, side->qp->resp.seq.expected_psn);
	check_eq(w, q->msn, side->qp->resp.seq.msn);
	check_eq(w, q->state, XROCE_QPS_RTS);
	check_eq(w, q->tx_retransmitted, e->tx_retransmitted);
	check_eq(w, q->tx_retransmitted_bytes, e->tx_retransmitted_bytes);
	check_eq(w, q->timeouts, e->timeouts);
	check_eq(w, q->rto_probes, e->rto_probes);
	check_eq(w, q->tx_sequence_naks, e->tx_sequence_naks);
	check_eq(w, q->rx_sequence_naks, e->rx_sequence_naks);
	check_eq(w, q->implied_naks, e->implied_naks);
	check_eq(w, q->duplicate_requests, e->duplicate_requests);
	check_eq(w, q->rx_held, e->rx_held);
	check_eq(w, q->rx_writes, e->rx_writes);
	check_eq(w, q->rx_reads, e->rx_reads);
	check_eq(w, q->rx_atomics, e->rx_atomics);
	check_eq(w, q->error_ns, 0);
}

/* Request packets on the link beyond the first of each PSN. */
static u64 repeated_requests(const struct world *w)
{
	u64 n = 0;

	for (u32 i = 0; i < w->num_sent; i++) {
		const struct packet *p = &w->sent[i].packet;
		bool before = false;

		if (w->sent[i].from || !(p->flags & OP_REQUEST))
			continue;
		for (u32 j = 0; j < i && !before; j++)
			before = !w->sent[j].from && w->sent[j].packet.flags & OP_REQUEST &&
				 w->sent[j].packet.psn == p->psn;
		n += before;
	}
	return n;
}

static void stat_under(const struct faults *there, const struct faults *back)
{
	static const enum wr_opcode ops[] = { WR_WRITE, WR_SEND, WR_WRITE, WR_FETCH_ADD };
	struct world *w = world_create(2, 21);
	struct pair_options o = pair_defaults();
	struct scene s = scene_in(w, &o, 3 * o.pmtu);

	world_label(w, "test_stat, drop %llx duplicate %llx corrupt %llx, back %llx %llx %llx",
		    (unsigned long long)there->drop, (unsigned long long)there->duplicate,
		    (unsigned long long)there->corrupt, (unsigned long long)back->drop,
		    (unsigned long long)back->duplicate, (unsigned long long)back->corrupt);
	w->keep_frames = true;
	w->node[0].to[1] = *there;
	w->node[1].to[0] = *back;
	for (u32 i = 0; i < 2 * ARRAY_SIZE(ops); i++) {
		const enum wr_opcode op = ops[i / 2];

		if (op == WR_SEND)
			post_recv_buffer(s.b, i, s.remote, 0, 3 * o.pmtu);
		scene_post(&s, i, op, op == WR_FETCH_ADD ? 8 : 3 * o.pmtu);
		world_run(w);
	}
	check_side(&s, s.a);
	check_side(&s, s.b);
	check_eq(w, s.a->qp->stat->tx_retransmitted, repeated_requests(w));
	scene_end(&s);
}

static void stat__agrees_with_the_link(void **state)
{
	const struct faults none = { 0 };

	stat_under(&none, &none);
	for (u32 i = 0; i < 20; i++) {
		stat_under(&(struct faults){ .drop = 1ull << i }, &none);
		stat_under(&(struct faults){ .duplicate = 1ull << i }, &none);
		stat_under(&(struct faults){ .corrupt = 1ull << i }, &none);
		stat_under(&none, &(struct faults){ .drop = 1ull << i });
		stat_under(&none, &(struct faults){ .duplicate = 1ull << i });
		stat_under(&none, &(struct faults){ .corrupt = 1ull << i });
	}
	stat_under(&(struct faults){ .drop = 0x1122, .duplicate = 0x88400, .corrupt = 0x10010 },
		   &(struct faults){ .drop = 0x0a40, .duplicate = 0x11, .corrupt = 0x4004 });
}

/* Marked packets, the notifications of them, and the rate that is left. */
static void stat__marks_and_rate(void **state)
{
	const struct world_options with = { .ecn = true };
	struct world *w = world_create_with(2, 22, &with);
	struct pair_options o = pair_defaults();
	struct scene s = scene_in(w, &o, 32 * o.pmtu);
	const struct xroce_qp_stat *a, *b;

	w->node[0].to[1].mark_rate = 65536;
	scene_post(&s, 1, WR_WRITE, 32 * o.pmtu);
	world_run(w);
	a = s.a->qp->stat;
	b = s.b->qp->stat;
	check_eq(w, b->rx_ce, 32);
	check_eq(w, b->rx_ce, s.b->node->stats.rx_ce);
	check_eq(w, b->tx_cnps, s.b->node->stats.tx_cnps);
	check_eq(w, b->tx_cnps > 0, true);
	check_eq(w, a->rx_cnps, s.a->node->stats.rx_cnps);
	check_eq(w, a->rx_cnps + a->rx_dropped, b->tx_cnps);
	check_eq(w, a->rate, s.a->qp->rate.reduced ? s.a->qp->rate.current : 0);
	check_eq(w, a->rtt_ns, s.a->qp->req.rtt.smoothed_ns);
	check_eq(w, a->rtt_ns > 0, true);
	check_eq(w, a->window, 128);
	scene_end(&s);
}

/* The error that stopped it, and not what followed. */
static void stat__last_error(void **state)
{
	struct world *w = world_create(2, 23);
	struct pair_options o = pair_defaults();
	struct scene s = scene_in(w, &o, 4096);
	struct send send = scene_request(&s, 1, WR_WRITE, 8);

	send.rkey ^= 1;
	post_send(s.a, &send);
	scene_post(&s, 2, WR_WRITE, 8);
	world_run(w);
	check_eq(w, s.a->qp->stat->error, XROCE_STATUS_REM_ACCESS_ERR);
	check_eq(w, s.a->qp->stat->error_reason, XROCE_REASON_NAK_REMOTE_ACCESS);
	check_eq(w, s.a->qp->stat->state, XROCE_QPS_ERR);
	check_eq(w, s.b->qp->stat->error, XROCE_STATUS_LOC_ACCESS_ERR);
	check_eq(w, s.b->qp->stat->error_reason, XROCE_REASON_PEER_ACCESS);
	check_eq(w, s.b->qp->stat->remote_errors, 1);
	check_eq(w, s.a->node->stats.req_errors, 1);
	check_eq(w, s.a->node->stats.req_remote_access, 1);
	check_eq(w, s.a->node->stats.req_flushed, 1);
	check_eq(w, s.b->node->stats.req_errors + s.b->node->stats.req_flushed, 0);
	check_eq(w, s.b->node->stats.resp_access, 1);
	check_eq(w, s.b->node->stats.resp_invalid, 0);
	check_eq(w, s.b->qp->stat->error_ns > 0, true);
	check_eq(w, s.a->qp->stat->error_ns > s.b->qp->stat->error_ns, true);
	/* later events are not the cause */
	engine_fail(qp_engine(s.a->qp));
	check_eq(w, s.a->qp->stat->error_reason, XROCE_REASON_NAK_REMOTE_ACCESS);
	scene_end(&s);
}

static void stat__peer_that_is_gone(void **state)
{
	struct world *w = world_create(2, 24);
	struct pair_options o = pair_defaults();
	struct scene s = scene_in(w, &o, 4096);
	const struct xroce_qp_stat *a = s.a->qp->stat;

	w->node[0].to[1].dead = true;
	scene_post(&s, 1, WR_WRITE, 8);
	world_run(w);
	check_eq(w, a->error, XROCE_STATUS_RETRY_EXC_ERR);
	check_eq(w, a->error_reason, XROCE_REASON_TIMEOUT);
	check_eq(w, a->timeouts, s.a->node->stats.timeouts);
	check_eq(w, a->timeouts > 0, true);
	check_eq(w, s.a->node->stats.req_errors, 1);
	check_eq(w, s.a->node->stats.req_retry_exceeded, 1);
	check_eq(w, s.a->node->stats.req_rnr_exceeded, 0);
	check_eq(w, a->outstanding, 1);
	check_eq(w, a->resent_psn, a->unacked_psn);
	check_eq(w, a->resent_times, a->tx_retransmitted);
	check_eq(w, a->resent_times > 1, true);
	scene_end(&s);
}

/* The oldest packet, each time that it is sent again; of others nothing. */
static void stat__oldest_sent_again(void **state)
{
	struct world *w = world_create(2, 28);
	struct pair_options o = pair_defaults();
	struct scene s = scene_in(w, &o, 3 * o.pmtu);
	const struct xroce_qp_stat *a = s.a->qp->stat;
	const u32 psn = a->sq_psn;

	w->keep_frames = true;
	w->node[0].to[1].drop = 3 << 1;
	scene_post(&s, 1, WR_WRITE, 3 * o.pmtu);
	world_run(w);
	check_eq(w, a->resent_psn, psn + 1);
	check_eq(w, a->resent_times, 1);
	check_eq(w, a->resent_bytes, w->sent[1].len);
	check_eq(w, a->resent_bytes > o.pmtu, true);
	/* a short one, which is lost until it has been sent three times */
	w->node[0].to[1].dead = true;
	scene_post(&s, 2, WR_WRITE, 8);
	for (u32 i = 0; i < 100000 && (a->resent_times < 2 || a->resent_psn != psn + 3); i++)
		world_run_for(w, 10 * NSEC_PER_USEC);
	check_eq(w, a->resent_psn, psn + 3);
	check_eq(w, a->resent_bytes < 100, true);
	check_eq(w, a->resent_times, 2);
	w->node[0].to[1].dead = false;
	world_run(w);
	check_eq(w, a->state, XROCE_QPS_RTS);
	scene_end(&s);
}

static void stat__interface_that_is_gone(void **state)
{
	struct world *w = world_create(2, 27);
	struct pair_options o = pair_defaults();
	struct scene s = scene_in(w, &o, 4096);

	engine_fail(qp_engine(s.a->qp));
	check_eq(w, s.a->qp->stat->state, XROCE_QPS_ERR);
	check_eq(w, s.a->qp->stat->error, XROCE_STATUS_SUCCESS);
	check_eq(w, s.a->qp->stat->error_reason, XROCE_REASON_PORT_LOST);
	scene_end(&s);
}

/* A receive that is shorter than the message, and the receives flushed with it. */
static void stat__receive_too_short(void **state)
{
	struct world *w = world_create(2, 26);
	struct pair_options o = pair_defaults();
	struct scene s = scene_in(w, &o, 4096);

	post_recv_buffer(s.b, 1, s.remote, 0, 4);
	post_recv_buffer(s.b, 2, s.remote, 0, 4);
	scene_post(&s, 1, WR_SEND, 8);
	world_run(w);
	check_eq(w, s.b->node->stats.resp_errors, 1);
	check_eq(w, s.b->node->stats.resp_length, 1);
	check_eq(w, s.b->node->stats.resp_flushed, 1);
	check_eq(w, s.a->node->stats.req_remote_invalid, 1);
	check_eq(w, s.b->qp->stat->error, XROCE_STATUS_LOC_LEN_ERR);
	check_eq(w, s.b->qp->stat->error_reason, XROCE_REASON_RECV_TOO_SHORT);
	scene_end(&s);
}

/* What a CQ and a region show: each completion, the most that waited, the rights and range. */
static void stat__completions_and_regions(void **state)
{
	struct world *w = world_create(2, 25);
	struct pair_options o = pair_defaults();
	static struct xroce_mr_stat regions[XROCE_MR_STATS];
	struct xroce_cq_stat stat = { .pid = 1 };
	struct mr_table *table = engine_mr_table(w->node[0].engine);
	const struct xroce_mr_stat *r = &regions[0];
	struct buffer *b;
	struct scene s;
	struct mr *mr;

	mr_table_show(table, regions, 77);
	b = world_buffer(&w->node[0], 4096, MR_LOCAL_WRITE | MR_REMOTE_READ);
	check_eq(w, r->pid, 77);
	check_eq(w, r->key, mr_key(b->mr));
	check_eq(w, r->addr, (uintptr_t)b->bytes);
	check_eq(w, r->length, 4096);
	check_eq(w, r->access, MR_LOCAL_WRITE | MR_REMOTE_READ);
	check_eq(w, r->kind, XROCE_MR_REGION);
	/* of two more the first goes: its element is free, and the next one takes another */
	check_eq(w, mr_add(table, 3, b->bytes, 10, 0x1000, MR_REMOTE_READ, &mr), 0);
	check_eq(w, regions[1].iova, 0x1000);
	check_eq(w, regions[1].pd, 3);
	mr_remove(table, mr);
	check_eq(w, regions[1].pid, 0);
	check_eq(w, regions[1].key, 0);

	s = scene_in(w, &o, 4096);
	s.a->send->cq.stat = &stat;
	s.a->send->polled = false;
	for (u32 i = 0; i < 3; i++)
		scene_post(&s, i, WR_WRITE, 8);
	world_run(w);
	check_eq(w, stat.completions, 3);
	check_eq(w, stat.most_waiting, 3);
	check_eq(w, stat.events, 0);
	world_poll(s.a->send);
	atomic_store_explicit(&s.a->send->cq.armed, CQ_ARMED_ANY, memory_order_relaxed);
	scene_post(&s, 3, WR_WRITE, 8);
	world_run(w);
	check_eq(w, stat.completions, 4);
	check_eq(w, stat.waiting, 1);
	check_eq(w, stat.most_waiting, 3);
	check_eq(w, stat.events, 1);
	check_eq(w, stat.overruns, 0);
	world_poll(s.a->send);
	scene_end(&s);
}

/*
 * Packets that come in rows, of one length or of several: the engine counts their bytes by the
 * length of the header that they are compared with, which changes meanwhile.
 */
static void stat__rows_of_frames(void **state)
{
	static const u32 lens[] = { 100, 100, 100, 100, 500, 500, 500, 500, 100,
				    500, 8,   8,   100, 100, 100, 0,   0,   0 };
	static u8 bytes[ARRAY_SIZE(lens)][PACKET_FRAME_MAX];

	for (u32 row = 1; row <= ARRAY_SIZE(lens); row++) {
		struct world *w = world_create(2, 29);
		struct pair_options o = pair_defaults();
		struct engine_frame f[ARRAY_SIZE(lens)];
		struct scene s;
		u64 sum = 0;

		o.transport = XROCE_UC;
		s = scene_in(w, &o, o.pmtu);
		world_label(w, "test_stat rows of %u", row);
		for (u32 i = 0; i < ARRAY_SIZE(lens); i++) {
			u32 len;

			scene_post(&s, i, WR_WRITE, lens[i]);
			len = engine_output(w->node[0].engines[0], bytes[i], sizeof(bytes[i]),
					    w->now_ns);
			check(w, len > lens[i]);
			f[i] = (struct engine_frame){ .frame = { .data = bytes[i], .len = len } };
		}
		for (u32 i = 0; i < ARRAY_SIZE(lens); i += row) {
			const u32 n = min_u32(row, ARRAY_SIZE(lens) - i);

			check_eq(w,
				 engine_input_batch(w->node[1].engines[0], f + i, n, w->now_ns,
						    NULL),
				 0);
			for (u32 k = i; k < i + n; k++)
				sum += f[k].frame.len;
			check_eq(w, s.b->qp->stat->rx_packets, i + n);
			check_eq(w, s.b->qp->stat->rx_bytes, sum);
			check_eq(w, s.b->qp->stat->msn, i + n);
		}
		check_eq(w, s.a->qp->stat->tx_packets, ARRAY_SIZE(lens));
		check_eq(w, s.a->qp->stat->tx_bytes, sum);
		world_run(w);
		scene_end(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat__agrees_with_the_link),
		cmocka_unit_test(stat__marks_and_rate),
		cmocka_unit_test(stat__last_error),
		cmocka_unit_test(stat__peer_that_is_gone),
		cmocka_unit_test(stat__oldest_sent_again),
		cmocka_unit_test(stat__interface_that_is_gone),
		cmocka_unit_test(stat__receive_too_short),
		cmocka_unit_test(stat__completions_and_regions),
		cmocka_unit_test(stat__rows_of_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
