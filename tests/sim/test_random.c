/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random workloads over bad links against an oracle: two or four QPs, all RC operations in both directions, loss, duplicates, reordering
 * and corruption. What must come out is known when a request is posted, since each has memory of its own and a QP executes in order.
 *
 * XROCE_SIM_SEED=n runs one seed; XROCE_SIM_SEEDS=n sets how many are run.
 */
#include "pair.h"

#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

#define SEEDS	     2000
#define MAX_OPS	     24	/* of one QP */
#define MAX_PAIRS    2
#define MAX_LENGTH   (8 * 1024)
#define SLOT	     (MAX_LENGTH + 8)

/* One QP's outgoing work, and what is to come of it. */
struct flow {
	struct side *a, *b;	/* from, to */
	struct buffer *source;	/* a: what SENDs and WRITEs carry */
	struct buffer *sink;	/* a: where READs and atomics end */
	struct buffer *quarry;	/* b: what READs fetch */
	struct buffer *target;	/* b: where WRITEs end */
	struct buffer *inbox;	/* b: where SENDs end */
	struct buffer *counter; /* b: one word for atomics */
	u8 *want_sink, *want_target, *want_inbox;
	u64 want_counter;
	u32 num_ops, posted, receives_wanted, receives_posted;
	struct cqe sent[MAX_OPS], received[MAX_OPS];
	u32 num_sent, num_received;
};

static u32 random_length(struct rng *r, u32 pmtu)
{
	switch (rng_below(r, 4)) {
	case 0:
		return rng_below(r, 9);
	case 1:
		return pmtu - 2 + rng_below(r, 5);
	case 2:
		return min_u32(MAX_LENGTH, pmtu * (1 + rng_below(r, 3)) + rng_below(r, 3) - 1);
	default:
		return rng_below(r, MAX_LENGTH + 1);
	}
}

static struct buffer *zeroed(struct node *n, u32 len)
{
	struct buffer *b = world_buffer(n, len, PAIR_ACCESS_ALL);

	memset(b->bytes, 0, len);
	return b;
}

static void flow_make(struct flow *f, struct side *a, struct side *b, struct rng *r)
{
	*f = (struct flow){ .a = a, .b = b, .num_ops = 1 + rng_below(r, MAX_OPS) };
	f->source = world_buffer(a->node, 2 * MAX_LENGTH, PAIR_ACCESS_ALL);
	f->quarry = world_buffer(b->node, 2 * MAX_LENGTH, PAIR_ACCESS_ALL);
	f->sink = zeroed(a->node, f->num_ops * SLOT);
	f->target = zeroed(b->node, f->num_ops * SLOT);
	f->inbox = zeroed(b->node, f->num_ops * SLOT);
	f->counter = zeroed(b->node, 8);
	f->want_sink = calloc(f->num_ops, SLOT);
	f->want_target = calloc(f->num_ops, SLOT);
	f->want_inbox = calloc(f->num_ops, SLOT);
	assert_true(f->want_sink && f->want_target && f->want_inbox);
}

/* Cut len bytes at base + offset into up to three pieces. */
static void random_sges(struct rng *r, struct send *send, const struct buffer *b, u32 offset, u32 len)
{
	u32 n = 1 + rng_below(r, 3);

	for (u32 i = 0; i < n; i++) {
		u32 piece = i + 1 == n ? len : rng_below(r, len + 1);

		send->sge[send->num_sge++] = buffer_sge(b, offset, piece);
		offset += piece;
		len -= piece;
	}
}

static void expect_receive(struct flow *f, u32 opcode, u32 len, const struct send *send, bool imm)
{
	f->received[f->num_received] = (struct cqe){ .wr_id = f->num_received, .opcode = opcode, .byte_len = len, .qpn = f->b->qp->qpn,
						     .src_qpn = f->a->qp->qpn, .flags = imm ? CQE_WITH_IMM : 0, .imm = send->imm };
	f->num_received++;
}

/* Post one random request; the oracle executes it at once. False if the queue is full. */
static bool post_random(struct flow *f, struct rng *r, u32 pmtu)
{
	static const enum wr_opcode opcodes[] = { WR_SEND, WR_SEND_WITH_IMM, WR_WRITE, WR_WRITE_WITH_IMM, WR_READ, WR_CMP_SWAP, WR_FETCH_ADD };
	static const u8 done_as[] = { [WR_SEND] = CQE_SEND, [WR_SEND_WITH_IMM] = CQE_SEND, [WR_WRITE] = CQE_WRITE,
				      [WR_WRITE_WITH_IMM] = CQE_WRITE, [WR_READ] = CQE_READ, [WR_CMP_SWAP] = CQE_COMP_SWAP,
				      [WR_FETCH_ADD] = CQE_FETCH_ADD };
	struct send send = { .wr_id = rng_next(r), .opcode = opcodes[rng_below(r, ARRAY_SIZE(opcodes))], .imm = (__be32)rng_next(r) };
	u32 len = random_length(r, pmtu), from = rng_below(r, MAX_LENGTH), at = f->posted * SLOT + rng_below(r, 8);
	bool is_last = f->posted + 1 == f->num_ops;

	if (!sq_slot(&f->a->qp->sq, 0))
		return false;
	send.flags = (rng_below(r, 3) || is_last ? WR_SIGNALED : 0) | (rng_below(r, 8) ? 0 : WR_FENCE);
	switch (send.opcode) {
	case WR_SEND:
	case WR_SEND_WITH_IMM:
		/* Receives take slots in the order of the messages. */
		memcpy(f->want_inbox + f->num_received * SLOT, f->source->bytes + from, len);
		expect_receive(f, CQE_RECV, len, &send, send.opcode == WR_SEND_WITH_IMM);
		break;
	case WR_WRITE:
	case WR_WRITE_WITH_IMM:
		memcpy(f->want_target + at, f->source->bytes + from, len);
		send.remote_addr = buffer_va(f->target) + at;
		send.rkey = f->target->mr->key;
		if (send.opcode == WR_WRITE_WITH_IMM)
			expect_receive(f, CQE_RECV_WITH_IMM, len, &send, true);
		break;
	case WR_READ:
		memcpy(f->want_sink + at, f->quarry->bytes + from, len);
		send.remote_addr = buffer_va(f->quarry) + from;
		send.rkey = f->quarry->mr->key;
		break;
	default:
		len = 8;
		memcpy(f->want_sink + at, &f->want_counter, 8);
		send.remote_addr = buffer_va(f->counter);
		send.rkey = f->counter->mr->key;
		send.swap = rng_next(r);
		send.compare_add = send.opcode == WR_FETCH_ADD || rng_below(r, 3) == 0 ? rng_next(r) : f->want_counter;
		if (send.opcode == WR_FETCH_ADD)
			f->want_counter += send.compare_add;
		else if (send.compare_add == f->want_counter)
			f->want_counter = send.swap;
		break;
	}
	if (send.opcode == WR_READ || send.opcode == WR_CMP_SWAP || send.opcode == WR_FETCH_ADD) {
		random_sges(r, &send, f->sink, at, len);
	} else if (len <= 64 && rng_below(r, 2)) {
		send.flags |= WR_INLINE;
		send.inline_data = f->source->bytes + from;
		send.inline_len = len;
	} else {
		random_sges(r, &send, f->source, from, len);
	}
	if (send.flags & WR_SIGNALED)
		f->sent[f->num_sent++] = (struct cqe){ .wr_id = send.wr_id, .opcode = done_as[send.opcode], .byte_len = len, .qpn = f->a->qp->qpn };
	post_send(f->a, &send);
	f->posted++;
	return true;
}

static void post_receive(struct flow *f)
{
	if (f->receives_posted < f->num_ops && rq_slot(&f->b->qp->rq, 0)) {
		post_recv_buffer(f->b, f->receives_posted, f->inbox, f->receives_posted * SLOT, SLOT);
		f->receives_posted++;
	}
}

static void judge(struct world *w, struct flow *f)
{
	check_eq(w, qp_state(f->a->qp), QPS_RTS);
	check_eq(w, f->a->send->n, f->num_sent);
	for (u32 i = 0; i < f->num_sent; i++)
		expect_cqe(w, f->a->send, i, &f->sent[i], __FILE__, __LINE__);
	check_eq(w, f->b->recv->n, f->num_received);
	for (u32 i = 0; i < f->num_received; i++)
		expect_cqe(w, f->b->recv, i, &f->received[i], __FILE__, __LINE__);
	check(w, memcmp(f->sink->bytes, f->want_sink, f->num_ops * SLOT) == 0);
	check(w, memcmp(f->target->bytes, f->want_target, f->num_ops * SLOT) == 0);
	check(w, memcmp(f->inbox->bytes, f->want_inbox, f->num_ops * SLOT) == 0);
	check(w, memcmp(f->counter->bytes, &f->want_counter, 8) == 0);
}

static struct faults random_faults(struct rng *r)
{
	const u32 percent = 65536 / 100;

	if (rng_below(r, 8) == 0)
		return (struct faults){ 0 };
	return (struct faults){ .drop_rate = rng_below(r, 4 * percent), .corrupt_rate = rng_below(r, percent),
				.duplicate_rate = rng_below(r, 5 * percent), .hold_rate = rng_below(r, 5 * percent),
				.hold_packets = 1 + rng_below(r, 8) };
}

static void run_seed(u64 seed)
{
	struct rng r = { seed * 7919 + 1 };
	/* Half of the engines do without some of what is above the plainest protocol, so that unequal peers meet. */
	struct world_options parts = { .disable = { rng_below(&r, 2) * rng_below(&r, 32), rng_below(&r, 2) * rng_below(&r, 32) } };
	struct world *w = world_create_with(2, seed, &parts);
	struct pair_options o = pair_defaults();
	u32 num_pairs = 1 + rng_below(&r, MAX_PAIRS), num_flows = 2 * num_pairs, left;
	struct pair p[MAX_PAIRS];
	struct flow f[2 * MAX_PAIRS];

	world_label(w, "XROCE_SIM_SEED=%llu test_random", (unsigned long long)seed);
	w->keep_frames = false;
	w->rx_batch = 1 + rng_below(&r, 3) * rng_below(&r, 16);
	w->split_bytes = rng_below(&r, 2) ? WORLD_SPLIT_BYTES : 128 + rng_below(&r, 1000);
	o.is_ipv6 = rng_below(&r, 2);
	o.timeout = (u8)(8 + rng_below(&r, 6));
	o.min_rnr_timer = (u8)(1 + rng_below(&r, 14));
	o.max_rd_atomic = (u8)(1 + rng_below(&r, 8));
	o.max_dest_rd_atomic = (u8)(o.max_rd_atomic + rng_below(&r, 3));
	o.max_send_wr = 1 + rng_below(&r, 16);
	o.max_recv_wr = 1 + rng_below(&r, 16);
	for (u32 i = 0; i < num_pairs; i++) {
		o.pmtu = 256u << rng_below(&r, 5);
		o.psn[0] = rng_below(&r, 2) ? 0xfffff0 + rng_below(&r, 16) : (u32)rng_next(&r) & ROCE_PSN_MASK;
		o.psn[1] = (u32)rng_next(&r) & ROCE_PSN_MASK;
		p[i] = pair_connect(w, &o);
		flow_make(&f[2 * i], &p[i].side[0], &p[i].side[1], &r);
		flow_make(&f[2 * i + 1], &p[i].side[1], &p[i].side[0], &r);
	}
	w->node[0].to[1] = random_faults(&r);
	w->node[1].to[0] = random_faults(&r);
	/* Post and receive in fits and starts until all is posted. */
	do {
		left = 0;
		for (u32 i = 0; i < num_flows; i++) {
			for (u32 n = rng_below(&r, 4); n-- && f[i].posted < f[i].num_ops;)
				if (!post_random(&f[i], &r, f[i].a->qp->path_mtu))
					break;
			for (u32 n = rng_below(&r, 4); n--;)
				post_receive(&f[i]);
			left += f[i].posted < f[i].num_ops || f[i].receives_posted < f[i].num_received;
			check(w, qp_state(f[i].a->qp) == QPS_RTS);
		}
		world_run_for(w, rng_below(&r, 20 * WORLD_LATENCY_NS));
	} while (left);
	world_run(w);
	for (u32 i = 0; i < num_flows; i++) {
		judge(w, &f[i]);
		free(f[i].want_sink);
		free(f[i].want_target);
		free(f[i].want_inbox);
	}
	for (u32 i = 0; i < num_pairs; i++)
		pair_destroy(&p[i]);
	world_destroy(w);
}

static void random_workloads__match_the_oracle(void **state)
{
	const char *one = getenv("XROCE_SIM_SEED"), *count = getenv("XROCE_SIM_SEEDS");
	u64 seeds = count ? strtoull(count, NULL, 0) : SEEDS;

	if (one) {
		run_seed(strtoull(one, NULL, 0));
		return;
	}
	for (u64 seed = 1; seed <= seeds; seed++)
		run_seed(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_workloads__match_the_oracle),
	};

	return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
