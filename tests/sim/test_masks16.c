/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core san */
/* tier: long */
/*
 * Every loss mask of 16 packets, in each direction, for exchanges of 16 packets: the right
 * completions, once each, the right bytes and counters that add up. First the other direction is
 * lossless, then it has a mask drawn from the first one. XROCE_SIM_MASK=forward:backward
 * (hexadecimal) runs one pair of masks. With sanitizers, which are slow, every 61st mask is run.
 */
#include "pair.h"
#include "runs.h"

#include <setjmp.h>
#include <cmocka.h>

#define PMTU	256
#define PACKETS 16
#define LENGTH	((PACKETS - 1) * PMTU + 9)
#define START	1000ull
#define MASKS	65536u

#ifdef __SANITIZE_ADDRESS__
#define MASK_STEP 61 /* coprime to 2^16: all bits take turns */
#else
#define MASK_STEP 1
#endif

enum exchange { EX_SEND, EX_WRITE, EX_READ, EX_FETCH_ADD, EX_CMP_SWAP };

static const struct {
	const char *name;
	enum wr_opcode wr;
	enum cqe_opcode done;
	u32 requests;	/* work requests, each one message */
	u32 packets;	/* that they take when nothing is lost */
} exchanges[] = {
	[EX_SEND] = { "send", WR_SEND_WITH_IMM, CQE_SEND, 1, PACKETS },
	[EX_WRITE] = { "write", WR_WRITE, CQE_WRITE, 1, PACKETS },
	[EX_READ] = { "read", WR_READ, CQE_READ, 1, 1 },
	[EX_FETCH_ADD] = { "fetch_add", WR_FETCH_ADD, CQE_FETCH_ADD, PACKETS, PACKETS },
	[EX_CMP_SWAP] = { "cmp_swap", WR_CMP_SWAP, CQE_COMP_SWAP, PACKETS, PACKETS },
};

struct scene {
	struct world *w;
	struct buffer *local, *remote;
	u8 pattern[LENGTH];
};

static bool is_atomic(enum exchange ex)
{
	return ex == EX_FETCH_ADD || ex == EX_CMP_SWAP;
}

static void start(struct scene *s, struct pair *p, enum exchange ex)
{
	struct buffer *from = ex == EX_READ ? s->remote : s->local,
		      *to = ex == EX_READ ? s->local : s->remote;
	struct send list[PACKETS];
	u64 value = START;

	memcpy(from->bytes, s->pattern, LENGTH);
	memset(to->bytes, 0, to->len);
	if (is_atomic(ex))
		memcpy(s->remote->bytes, &value, 8);
	for (u32 i = 0; i < exchanges[ex].requests; i++)
		/*
		 * each adds another amount or swaps in the next number: the results tell order and
		 * number of executions
		 */
		list[i] = (struct send){ .wr_id = i,
					 .opcode = exchanges[ex].wr,
					 .flags = WR_SIGNALED,
					 .num_sge = 1,
					 .imm = htobe32(5),
					 .sge = { buffer_sge(s->local, i * 8,
							     is_atomic(ex) ? 8 : LENGTH) },
					 .remote_addr = buffer_va(s->remote),
					 .rkey = s->remote->mr->key,
					 .compare_add = ex == EX_FETCH_ADD ? 10 + i : START + i,
					 .swap = START + i + 1 };
	post_recv_buffer(&p->side[1], 50, s->remote, 0, LENGTH + 8);
	post_sends(&p->side[0], list, exchanges[ex].requests);
}

static void judge_atomics(struct scene *s, enum exchange ex)
{
	u64 value, want = START;

	for (u32 i = 0; i < PACKETS; i++) {
		memcpy(&value, s->local->bytes + i * 8, 8);
		check_eq(s->w, value, want);
		want += ex == EX_FETCH_ADD ? 10 + i : 1;
	}
	memcpy(&value, s->remote->bytes, 8);
	check_eq(s->w, value, want);
}

/* False if it failed, and might. */
static bool judge(struct scene *s, struct pair *p, enum exchange ex, bool must)
{
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 i = 0;

	check_eq(s->w, a->send->n, exchanges[ex].requests);
	for (; i < a->send->n && a->send->log[i].status == CQE_SUCCESS; i++)
		expect(s->w, a->send, i, .wr_id = i, .opcode = exchanges[ex].done,
		       .byte_len = is_atomic(ex) ? 8 : LENGTH, .qpn = a->qp->qpn);
	if (i < a->send->n) { /* more was lost than retry_cnt allows */
		check(s->w, !must);
		expect(s->w, a->send, i, .wr_id = i, .status = CQE_RETRY_EXC_ERR,
		       .qpn = a->qp->qpn);
		for (i++; i < a->send->n; i++)
			expect(s->w, a->send, i, .wr_id = i, .status = CQE_WR_FLUSH_ERR,
			       .qpn = a->qp->qpn);
		check_eq(s->w, qp_state(a->qp), QPS_ERR);
		check(s->w, b->recv->n <= (ex == EX_SEND));
		return false;
	}
	check_eq(s->w, qp_state(a->qp), QPS_RTS);
	check_eq(s->w, b->recv->n, ex == EX_SEND);
	if (ex == EX_SEND)
		expect(s->w, b->recv, 0, .wr_id = 50, .opcode = CQE_RECV, .byte_len = LENGTH,
		       .qpn = b->qp->qpn, .src_qpn = a->qp->qpn, .flags = CQE_WITH_IMM,
		       .imm = htobe32(5));
	/*
	 * A lost READ is requested again one packet at a time, and each request counts.
	 */
	if (ex == EX_READ)
		check(s->w, b->qp->resp.seq.msn >= 1 && b->qp->resp.seq.msn <= PACKETS);
	else
		check_eq(s->w, b->qp->resp.seq.msn, exchanges[ex].requests);
	if (is_atomic(ex)) {
		judge_atomics(s, ex);
		return true;
	}
	check(s->w, memcmp(s->local->bytes, s->pattern, LENGTH) == 0 &&
			    memcmp(s->remote->bytes, s->pattern, LENGTH) == 0);
	check(s->w, (ex == EX_READ ? s->local : s->remote)->bytes[LENGTH] == 0);
	return true;
}

static u32 lost(const struct faults *l)
{
	return (u32)__builtin_popcountll(l->drop &
					 (l->count < 64 ? (1ull << l->count) - 1 : ~0ull));
}

/* Packets do not vanish but by the mask, and each that was made twice is counted as such. */
static void judge_counters(struct scene *s, enum exchange ex, bool ok)
{
	const struct node *a = &s->w->node[0], *b = &s->w->node[1];
	u32 lost_there = lost(&a->to[1]), lost_back = lost(&b->to[0]);

	check_eq(s->w, b->stats.rx_packets, a->stats.tx_packets - lost_there);
	check_eq(s->w, a->stats.rx_packets, b->stats.tx_packets - lost_back);
	check_eq(s->w, a->stats.tx_packets, exchanges[ex].packets + a->stats.tx_retransmitted);
	check(s->w, !ok || a->stats.tx_retransmitted >= min_u32(lost_there, exchanges[ex].packets));
	check(s->w, a->stats.rx_sequence_naks <= b->stats.tx_sequence_naks &&
			    b->stats.tx_sequence_naks <= lost_there + lost_back);
	check(s->w, b->stats.duplicate_requests <= a->stats.tx_retransmitted);
	check_eq(s->w, a->stats.rx_rnr_naks + b->stats.tx_rnr_naks + b->stats.remote_errors, 0);
	if (!lost_there && !lost_back)
		check_eq(s->w,
			 a->stats.tx_retransmitted + a->stats.timeouts + a->stats.rto_probes +
				 b->stats.rx_held,
			 0);
}

static void run_one(struct scene *s, enum exchange ex, u32 forward, u32 backward)
{
	/*
	 * Beyond its retries it may fail. But where all packets of a direction are under way at
	 * once, as the data packets are, a mask of 16 covers the first flight alone, and one round
	 * of repairs must do.
	 */
	bool data_only = ex == EX_READ ? !forward :
			 is_atomic(ex) ? !forward || !backward :
					 !backward;
	struct pair_options o = pair_defaults();
	struct pair p;

	world_label(s->w, "XROCE_SIM_MASK=%x:%x test_masks16 (%s)", forward, backward,
		    exchanges[ex].name);
	o.pmtu = PMTU;
	o.timeout = 10;
	o.max_rd_atomic = o.max_dest_rd_atomic = PACKETS;
	o.max_send_wr = PACKETS;
	o.max_recv_wr = 4;
	o.cq_capacity = PACKETS;
	o.max_inline = 0;
	/* the wrap is somewhere within, or near */
	o.psn[0] = (0xfffff0 + forward + backward) & ROCE_PSN_MASK;
	p = pair_connect(s->w, &o);
	s->w->node[0].to[1] = (struct faults){ .drop = forward };
	s->w->node[1].to[0] = (struct faults){ .drop = backward };
	s->w->node[0].stats = s->w->node[1].stats = (struct xroce_engine_stats){ 0 };
	s->w->node[0].num_events = s->w->node[1].num_events = 0;
	start(s, &p, ex);
	world_run(s->w);
	judge_counters(s, ex,
		       judge(s, &p, ex, masks_within_retries(forward, backward) || data_only));
	pair_destroy(&p);
}

static u32 second_mask(u32 first, u32 salt)
{
	struct rng r = { (u64)first << 8 | salt };
	u64 n = rng_next(&r);

	return (u32)(n & n >> 16 & 0xffff); /* one in four */
}

static void all_masks(enum exchange ex)
{
	struct scene s = { .w = world_create(2, 41) };
	struct masks m = masks_of(PACKETS, PACKETS);

	s.w->keep_frames = false;
	s.w->max_steps = 20000;
	s.local = world_buffer(&s.w->node[0], LENGTH + 8, PAIR_ACCESS_ALL);
	s.remote = world_buffer(&s.w->node[1], LENGTH + 8, PAIR_ACCESS_ALL);
	buffer_fill(s.pattern, LENGTH, 3);
	if (m.one) {
		run_one(&s, ex, m.forward, m.backward);
		world_destroy(s.w);
		return;
	}
	for (u32 n = 0; n < MASKS; n += MASK_STEP) {
		run_one(&s, ex, n, 0);
		run_one(&s, ex, 0, n);
		run_one(&s, ex, n, second_mask(n, ex));
		run_one(&s, ex, second_mask(n, ex + 128u), n);
	}
	world_destroy(s.w);
}

static void send__every_mask_of_16(void **state)
{
	all_masks(EX_SEND);
}

static void write__every_mask_of_16(void **state)
{
	all_masks(EX_WRITE);
}

static void read__every_mask_of_16(void **state)
{
	all_masks(EX_READ);
}

static void fetch_add__every_mask_of_16(void **state)
{
	all_masks(EX_FETCH_ADD);
}

static void cmp_swap__every_mask_of_16(void **state)
{
	all_masks(EX_CMP_SWAP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send__every_mask_of_16),
		cmocka_unit_test(write__every_mask_of_16),
		cmocka_unit_test(read__every_mask_of_16),
		cmocka_unit_test(fetch_add__every_mask_of_16),
		cmocka_unit_test(cmp_swap__every_mask_of_16),
	};

	return cmocka_run_group_tests_name("masks16", tests, NULL, NULL);
}
