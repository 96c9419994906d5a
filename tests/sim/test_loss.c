/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_PACKETS=6 XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/* tier: long san_long */
/* tier: long san_engines XROCE_SIM_ENGINES=3 */
/*
 * Every 8-bit loss mask of a three-packet exchange, in both directions at once, and every mask of
 * duplicates, late and damaged packets: the right completions, exactly once each, and the right
 * bytes. XROCE_SIM_MASK=forward:backward (hexadecimal) runs one mask only.
 */
#include "pair.h"
#include "runs.h"

#include <setjmp.h>
#include <cmocka.h>

#define PMTU	256
#define LENGTH	(2 * PMTU + 5)	/* three packets */
#define ATOMICS 3
#define START	1000ull

enum exchange {
	EX_SEND,
	EX_SEND_IMM,
	EX_WRITE,
	EX_WRITE_IMM,
	EX_READ,
	EX_FETCH_ADD,
	EX_CMP_SWAP,
	EX_COUNT
};

static const struct {
	const char *name;
	enum wr_opcode wr;
	enum cqe_opcode sent;
	u32 recv_opcode;	/* 0: consumes no receive */
	u32 recv_flags;
} exchanges[EX_COUNT] = {
	[EX_SEND] = { "send", WR_SEND, CQE_SEND, CQE_RECV, 0 },
	[EX_SEND_IMM] = { "send_imm", WR_SEND_WITH_IMM, CQE_SEND, CQE_RECV, CQE_WITH_IMM },
	[EX_WRITE] = { "write", WR_WRITE, CQE_WRITE, 0, 0 },
	[EX_WRITE_IMM] = { "write_imm", WR_WRITE_WITH_IMM, CQE_WRITE, CQE_RECV_WITH_IMM,
			   CQE_WITH_IMM },
	[EX_READ] = { "read", WR_READ, CQE_READ, 0, 0 },
	[EX_FETCH_ADD] = { "fetch_add", WR_FETCH_ADD, CQE_FETCH_ADD, 0, 0 },
	[EX_CMP_SWAP] = { "cmp_swap", WR_CMP_SWAP, CQE_COMP_SWAP, 0, 0 },
};

struct scene {
	struct world *w;
	struct buffer *local, *remote;
};

static struct scene scene_make(void)
{
	struct scene s = { .w = world_create(2, 7) };

	s.local = world_buffer(&s.w->node[0], 1024, PAIR_ACCESS_ALL);
	s.remote = world_buffer(&s.w->node[1], 1024, PAIR_ACCESS_ALL);
	s.w->max_steps = 20000;
	s.w->keep_frames = false; /* half a million runs */
	return s;
}

static bool is_atomic(enum exchange ex)
{
	return ex == EX_FETCH_ADD || ex == EX_CMP_SWAP;
}

static u32 requests(enum exchange ex)
{
	return is_atomic(ex) ? ATOMICS : 1;
}

static void start(struct scene *s, struct pair *p, enum exchange ex)
{
	struct side *a = &p->side[0], *b = &p->side[1];
	u64 value = START;

	memset(s->local->bytes, 0, s->local->len);
	memset(s->remote->bytes, 0, s->remote->len);
	if (is_atomic(ex)) {
		struct send list[ATOMICS];

		memcpy(s->remote->bytes, &value, 8);
		/*
		 * Each adds another amount, so that the results tell the order and the number of
		 * executions.
		 */
		for (u32 i = 0; i < ATOMICS; i++)
			list[i] = (struct send){ .wr_id = i,
						 .opcode = exchanges[ex].wr,
						 .flags = WR_SIGNALED,
						 .num_sge = 1,
						 .sge = { buffer_sge(s->local, i * 8, 8) },
						 .remote_addr = buffer_va(s->remote),
						 .rkey = s->remote->mr->key,
						 .compare_add =
							 ex == EX_FETCH_ADD ? 10 + i : START + i,
						 .swap = START + i + 1 };
		post_sends(a, list, ATOMICS);
		return;
	}
	buffer_fill(ex == EX_READ ? s->remote->bytes : s->local->bytes, LENGTH, 3);
	if (exchanges[ex].recv_opcode)
		post_recv_buffer(b, 50, s->remote, 0, 1024);
	post_send(a, &(struct send){ .wr_id = 0,
				     .opcode = exchanges[ex].wr,
				     .flags = WR_SIGNALED,
				     .num_sge = 1,
				     .imm = htobe32(77),
				     .sge = { buffer_sge(s->local, 0, LENGTH) },
				     .remote_addr = buffer_va(s->remote),
				     .rkey = s->remote->mr->key });
}

/*
 * Where too much was lost for retry_cnt the request may fail, but then it does so in the one right
 * way.
 */
static bool judge_failed(struct scene *s, struct pair *p, enum exchange ex)
{
	struct side *a = &p->side[0];
	u32 i = 0;

	while (i < a->send->n && a->send->log[i].status == CQE_SUCCESS)
		i++;
	if (i == a->send->n)
		return false;
	expect(s->w, a->send, i, .wr_id = i, .status = CQE_RETRY_EXC_ERR, .qpn = a->qp->qpn);
	for (i++; i < requests(ex); i++)
		expect(s->w, a->send, i, .wr_id = i, .status = CQE_WR_FLUSH_ERR, .qpn = a->qp->qpn);
	check_eq(s->w, a->send->n, requests(ex));
	check_eq(s->w, qp_state(a->qp), QPS_ERR);
	check(s->w, p->side[1].recv->n <= 1);
	return true;
}

static void judge(struct scene *s, struct pair *p, enum exchange ex)
{
	struct side *a = &p->side[0], *b = &p->side[1];
	u64 value, add = START;

	check_eq(s->w, a->send->n, requests(ex));
	check_eq(s->w, qp_state(a->qp), QPS_RTS);
	check_eq(s->w, qp_state(b->qp), QPS_RTS);
	for (u32 i = 0; i < requests(ex); i++)
		expect(s->w, a->send, i, .wr_id = i, .opcode = exchanges[ex].sent,
		       .byte_len = is_atomic(ex) ? 8 : LENGTH, .qpn = a->qp->qpn);
	check_eq(s->w, b->recv->n, exchanges[ex].recv_opcode ? 1 : 0);
	if (exchanges[ex].recv_opcode)
		expect(s->w, b->recv, 0, .wr_id = 50, .opcode = exchanges[ex].recv_opcode,
		       .byte_len = LENGTH, .qpn = b->qp->qpn, .flags = exchanges[ex].recv_flags,
		       .imm = htobe32(77));
	if (is_atomic(ex)) {
		for (u32 i = 0; i < ATOMICS; i++) {
			memcpy(&value, s->local->bytes + i * 8, 8);
			check_eq(s->w, value, add);
			add += ex == EX_FETCH_ADD ? 10 + i : 1;
		}
		memcpy(&value, s->remote->bytes, 8);
		check_eq(s->w, value, add);
		return;
	}
	check(s->w, bytes_are(s->local->bytes, LENGTH, 3));
	check(s->w, bytes_are(s->remote->bytes, LENGTH, 3));
	check(s->w, s->local->bytes[LENGTH] == 0 && s->remote->bytes[LENGTH] == 0);
}

static struct pair_options options(void)
{
	struct pair_options o = pair_defaults();

	o.pmtu = PMTU;
	o.timeout = 10;
	o.cq_capacity = 16;
	o.max_send_wr = o.max_recv_wr = 8;
	return o;
}

static void run_one(struct scene *s, enum exchange ex, struct faults forward,
		    struct faults backward, bool must_succeed)
{
	struct pair_options o = options();
	struct pair p;

	/* Near the wrap in turn, so that each mask crosses it somewhere. */
	o.psn[0] = (0xfffffd + (u32)forward.drop) & ROCE_PSN_MASK;
	p = pair_connect(s->w, &o);
	s->w->node[0].to[1] = forward;
	s->w->node[1].to[0] = backward;
	/* Twice: the traces of a loss must not stop later work. */
	for (u32 round = 0; round < 2; round++) {
		p.side[0].send->n = p.side[1].recv->n = 0;
		start(s, &p, ex);
		world_run(s->w);
		if (!must_succeed && judge_failed(s, &p, ex))
			break;
		judge(s, &p, ex);
	}
	pair_destroy(&p);
}

static void all_masks(enum exchange ex)
{
	struct masks m = masks_of(8, 8);

	for (u32 forward = m.forward; forward < m.forward_end; forward++) {
		struct scene s = scene_make();

		for (u32 backward = m.backward; backward < m.backward_end; backward++) {
			world_label(s.w, "XROCE_SIM_MASK=%x:%x test_loss (%s)", forward, backward,
				    exchanges[ex].name);
			run_one(&s, ex, (struct faults){ .drop = forward },
				(struct faults){ .drop = backward },
				masks_within_retries(forward, backward));
		}
		world_destroy(s.w);
	}
}

static void send__every_loss_mask(void **state)
{
	all_masks(EX_SEND);
}

static void send_imm__every_loss_mask(void **state)
{
	all_masks(EX_SEND_IMM);
}

static void write__every_loss_mask(void **state)
{
	all_masks(EX_WRITE);
}

static void write_imm__every_loss_mask(void **state)
{
	all_masks(EX_WRITE_IMM);
}

static void read__every_loss_mask(void **state)
{
	all_masks(EX_READ);
}

static void fetch_add__every_loss_mask(void **state)
{
	all_masks(EX_FETCH_ADD);
}

static void cmp_swap__every_loss_mask(void **state)
{
	all_masks(EX_CMP_SWAP);
}

/* One kind of fault in every mask of one direction, for each exchange. */
static void one_kind(const char *kind, size_t member, bool is_loss)
{
	struct masks m = masks_of(8, 8);

	for (u32 ex = 0; ex < EX_COUNT; ex++) {
		struct scene s = scene_make();

		for (u32 forward = m.forward; forward < m.forward_end; forward++)
			for (u32 backward = m.backward; backward < m.backward_end; backward++) {
				struct faults f = { .hold_packets = 1 + (forward + backward) % 3 },
					      b = f;

				if (forward && backward)
					continue;
				memcpy((char *)&f + member, &(u64){ forward }, 8);
				memcpy((char *)&b + member, &(u64){ backward }, 8);
				world_label(s.w, "XROCE_SIM_MASK=%x:%x test_loss %s (%s)", forward,
					    backward, kind, exchanges[ex].name);
				run_one(&s, (enum exchange)ex, f, b,
					!is_loss || masks_within_retries(forward, backward));
			}
		world_destroy(s.w);
	}
}

static void duplicate__every_mask(void **state)
{
	one_kind("duplicate", offsetof(struct faults, duplicate), false);
}

static void hold__every_mask(void **state)
{
	one_kind("hold", offsetof(struct faults, hold), false);
}

static void corrupt__every_mask(void **state)
{
	one_kind("corrupt", offsetof(struct faults, corrupt), true);
}

static void corrupt__is_counted_by_icrc(void **state)
{
	struct scene s = scene_make();

	world_label(s.w, "test_loss corrupt__is_counted_by_icrc");
	run_one(&s, EX_WRITE, (struct faults){ .corrupt = 0x7 }, (struct faults){ 0 }, true);
	check(s.w, s.w->node[1].drops.icrc == 3);
	world_destroy(s.w);
}

/* Retries resend only lost packets: without loss nothing is sent twice. */
static void retransmission__only_after_a_loss(void **state)
{
	struct scene s = scene_make();

	world_label(s.w, "test_loss retransmission__only_after_a_loss");
	for (u32 ex = 0; ex < EX_COUNT; ex++)
		run_one(&s, (enum exchange)ex, (struct faults){ 0 }, (struct faults){ 0 }, true);
	check_eq(s.w, s.w->node[0].stats.tx_retransmitted, 0);
	check_eq(s.w, s.w->node[0].stats.timeouts, 0);
	check_eq(s.w, s.w->node[1].stats.duplicate_requests, 0);
	/* The first of three packets lost: one NAK, that packet again, no time-out. */
	run_one(&s, EX_SEND, (struct faults){ .drop = 1 }, (struct faults){ 0 }, true);
	check_eq(s.w, s.w->node[0].stats.tx_retransmitted, 1);
	check_eq(s.w, s.w->node[0].stats.timeouts, 0);
	check_eq(s.w, s.w->node[1].stats.tx_sequence_naks, 1);
	check_eq(s.w, s.w->node[0].stats.rx_sequence_naks, 1);
	/*
	 * The last one lost: only the timer notices. A probe with the first packet, then the last
	 * one again, and no retry.
	 */
	run_one(&s, EX_SEND, (struct faults){ .drop = 4 }, (struct faults){ 0 }, true);
	check_eq(s.w, s.w->node[0].stats.rto_probes, 1);
	check_eq(s.w, s.w->node[0].stats.timeouts, 0);
	check_eq(s.w, s.w->node[0].stats.tx_retransmitted, 1 + 2);
	world_destroy(s.w);
}

/* A READ whose second response is lost requests that one again, and no other. */
static void read__resumes_in_the_middle(void **state)
{
	struct scene s = scene_make();
	struct pair_options o = options();
	struct pair p = pair_connect(s.w, &o);
	const struct sent_frame *again;

	world_label(s.w, "test_loss read__resumes_in_the_middle");
	s.w->keep_frames = true;
	s.w->node[1].to[0].drop = 2;
	start(&s, &p, EX_READ);
	world_run(s.w);
	judge(&s, &p, EX_READ);
	again = world_sent(s.w, 0, OP5_READ_REQUEST, 1);
	check(s.w, again != NULL);
	check_eq(s.w, again->packet.psn, o.psn[0] + 1);
	check_eq(s.w, again->packet.va, buffer_va(s.remote) + PMTU);
	check_eq(s.w, again->packet.dma_len, PMTU);
	check(s.w, world_sent(s.w, 0, OP5_READ_REQUEST, 2) == NULL);
	pair_destroy(&p);
	world_destroy(s.w);
}

/*
 * Several READs in flight, and an answer of the second lost: the third's answer reveals it before
 * the timer does.
 */
static void implied_nak__resends_without_a_timeout(void **state)
{
	struct scene s = scene_make();
	struct pair_options o = options();
	struct pair p = pair_connect(s.w, &o);
	struct send list[3];

	world_label(s.w, "test_loss implied_nak__resends_without_a_timeout");
	s.w->node[1].to[0].drop = 2;
	for (u32 i = 0; i < 3; i++)
		list[i] = (struct send){ .wr_id = i,
					 .opcode = WR_READ,
					 .flags = WR_SIGNALED,
					 .num_sge = 1,
					 .sge = { buffer_sge(s.local, i * 100, 100) },
					 .remote_addr = buffer_va(s.remote) + i * 100,
					 .rkey = s.remote->mr->key };
	post_sends(&p.side[0], list, 3);
	world_run(s.w);
	check_eq(s.w, p.side[0].send->n, 3);
	for (u32 i = 0; i < 3; i++)
		expect(s.w, p.side[0].send, i, .wr_id = i, .opcode = CQE_READ, .byte_len = 100,
		       .qpn = p.side[0].qp->qpn);
	check(s.w, memcmp(s.local->bytes, s.remote->bytes, 300) == 0);
	check_eq(s.w, s.w->node[0].stats.timeouts, 0);
	check_eq(s.w, s.w->node[0].stats.implied_naks, 1);
	pair_destroy(&p);
	world_destroy(s.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send__every_loss_mask),
		cmocka_unit_test(send_imm__every_loss_mask),
		cmocka_unit_test(write__every_loss_mask),
		cmocka_unit_test(write_imm__every_loss_mask),
		cmocka_unit_test(read__every_loss_mask),
		cmocka_unit_test(fetch_add__every_loss_mask),
		cmocka_unit_test(cmp_swap__every_loss_mask),
		cmocka_unit_test(duplicate__every_mask),
		cmocka_unit_test(hold__every_mask),
		cmocka_unit_test(corrupt__every_mask),
		cmocka_unit_test(corrupt__is_counted_by_icrc),
		cmocka_unit_test(retransmission__only_after_a_loss),
		cmocka_unit_test(read__resumes_in_the_middle),
		cmocka_unit_test(implied_nak__resends_without_a_timeout),
	};

	return cmocka_run_group_tests_name("loss", tests, NULL, NULL);
}
