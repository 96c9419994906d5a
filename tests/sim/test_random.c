/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core XROCE_SIM_SEEDS=1500 */
/* tier: core san XROCE_SIM_SEEDS=300 */
/* tier: long long */
/* tier: long san_long */
/*
 * Random workloads over bad links against an oracle: up to three connections of RC, XRC and UC at
 * once, all their operations, own and shared receive queues, windows, errors of every kind, drained
 * queues; loss, duplicates, reordering, corruption. The result is known when a request is posted,
 * since each has its own memory and a QP executes in order.
 *
 * XROCE_SIM_SEED=n runs one seed; XROCE_SIM_SEEDS=n sets how many are run.
 */
#include "workload.h"

#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

#ifdef __SANITIZE_ADDRESS__
#define SEEDS 1000
#else
#define SEEDS 10000
#endif

/* Counts of all runs: a workload that never does something proves nothing about it. */
static u32 seen_transport[8];
static u64 seen_moves;

/* ---- judgement ---- */

/* The send queue's completions; how many requests were done, the failing one excluded. */
static u32 judge_sends(struct world *w, struct flow *f)
{
	const struct watched_cq *c = f->a->send;
	u32 n = 0, i = 0;

	for (; i < f->posted; i++) {
		const struct op *op = &f->op[i];

		if (n < c->n && c->log[n].status != CQE_SUCCESS && c->log[n].wr_id == op->wr_id)
			break;
		if (op->flags & WR_SIGNALED) {
			expect(w, c, n, .wr_id = op->wr_id, .opcode = op->cqe_opcode,
			       .byte_len = op->len, .qpn = f->a->qp->qpn);
			n++;
		}
	}
	if (!f->poisoned) {
		check_eq(w, i, f->posted);
		check_eq(w, c->n, n);
		return i;
	}
	/*
	 * The peer that refuses reports it once and is dead: if packets are lost, earlier requests
	 * may go without an answer as well.
	 */
	check(w, i <= f->poison_at);
	if (f->exact || !poisons[f->poison].remote) {
		check_eq(w, i, f->poison_at);
		check_eq(w, c->log[n].status, poisons[f->poison].status);
	} else {
		check(w,
		      c->log[n].status == CQE_RETRY_EXC_ERR ||
			      (i == f->poison_at && c->log[n].status == poisons[f->poison].status));
	}
	for (u32 k = i + 1; k < f->posted; k++)
		expect(w, c, ++n, .wr_id = f->op[k].wr_id, .status = CQE_WR_FLUSH_ERR,
		       .vendor_err = VERR_FLUSHED, .qpn = f->a->qp->qpn);
	check_eq(w, c->n, n + 1);
	return i;
}

/*
 * Checks the receives of one flow in one inbox: in order, each in its own slot, with exactly its
 * bytes.
 */
static void judge_receives(struct world *w, struct flow *f, struct inbox *inbox)
{
	const struct watched_cq *c = inbox->cq ? inbox->cq : f->b->recv;
	u32 n = 0, next = 0;

	for (u32 i = 0; i < f->num_messages; i++) {
		struct message *m = &f->message[i];
		const u8 *slot;

		if (m->inbox != inbox)
			continue;
		while (n < c->n && c->log[n].qpn != f->b->qp->qpn)
			n++;
		if (m->uncertain && (n == c->n || c->log[n].status != m->cqe.status))
			continue;
		check(w, n < c->n);
		m->cqe.wr_id = inbox->owner ? next++ : c->log[n].wr_id;
		expect_cqe(w, c, n, &m->cqe, __FILE__, __LINE__);
		check(w, m->cqe.wr_id < inbox->posted && !inbox->used[m->cqe.wr_id]);
		inbox->used[m->cqe.wr_id] = true;
		slot = inbox->memory->bytes + m->cqe.wr_id * SLOT;
		if (m->cqe.status == CQE_SUCCESS) {
			check(w, memcmp(slot, f->source->bytes + m->from, m->bytes) == 0);
			for (u32 k = m->bytes; k < SLOT; k++)
				check(w, slot[k] == 0);
		}
		n++;
	}
	for (; n < c->n; n++) {
		if (c->log[n].qpn != f->b->qp->qpn)
			continue;
		/* what the error flushed of an own queue */
		check(w, inbox->owner);
		expect(w, c, n, .wr_id = next++, .status = CQE_WR_FLUSH_ERR, .qpn = f->b->qp->qpn);
	}
	if (inbox->owner && qp_state(f->b->qp) == QPS_ERR)
		check_eq(w, next, inbox->posted);
}

/*
 * UC: nothing is certain to arrive, but what arrives is one whole message; on a good link all that
 * found a receive, once and in order.
 */
static void judge_uc(struct workload *l, struct flow *f)
{
	const struct watched_cq *c = f->b->recv;
	u32 last = 0;

	for (u32 n = 0; n < c->n; n++) {
		const struct cqe *e = &c->log[n];
		const struct message *m = NULL;

		check_eq(l->w, e->status, CQE_SUCCESS);
		check_eq(l->w, e->wr_id, n);
		for (u32 i = 0; i < f->num_messages; i++)
			if (f->message[i].cqe.imm == e->imm)
				m = &f->message[i];
		check(l->w, m != NULL);
		check(l->w, e->opcode == m->cqe.opcode && e->byte_len == m->cqe.byte_len &&
				    e->flags == m->cqe.flags && e->qpn == m->cqe.qpn);
		check(l->w, memcmp(f->inbox[0]->memory->bytes + n * SLOT,
				   f->source->bytes + m->from, m->bytes) == 0);
		check(l->w, !l->calm || n == 0 || be32toh(e->imm) > last);
		last = be32toh(e->imm);
	}
}

static void judge(struct workload *l, struct flow *f)
{
	struct world *w = l->w;
	u32 done = judge_sends(w, f);
	bool is_uc = f->a->qp->transport == XROCE_UC;

	for (u32 i = 0; i < done; i++) {
		const struct op *op = &f->op[i];

		if (op->opcode == WR_READ || op->opcode == WR_CMP_SWAP ||
		    op->opcode == WR_FETCH_ADD)
			check(w, memcmp(f->sink->bytes + op->sink, f->want_sink + op->sink,
					op->len) == 0);
	}
	check_eq(w, qp_state(f->a->qp), f->poisoned ? QPS_ERR : QPS_RTS);
	/* local requests do not wait for the peer's answers to earlier ones */
	if (!f->poisoned || !poisons[f->poison].remote) {
		check_eq(w, f->mw->key, f->mw_key);
		check_eq(w, f->mw->region != NULL, f->mw_bound);
	}
	if (is_uc) {
		judge_uc(l, f);
		return;
	}
	check_eq(w, qp_state(f->b->qp) == QPS_ERR, f->poisoned && poisons[f->poison].remote);
	for (u32 i = 0; i < f->num_inboxes; i++)
		judge_receives(w, f, f->inbox[i]);
	check_eq(w, f->far_mw->region != NULL, f->far_bound);
	check(w, memcmp(f->target->bytes, f->want_target, f->num_ops * SLOT) == 0);
	check(w, memcmp(f->counter->bytes, &f->want_counter, 8) == 0);
}

/* ---- one workload ---- */

static struct faults random_faults(struct rng *r, bool calm)
{
	const u32 percent = 65536 / 100;

	if (calm || rng_below(r, 8) == 0)
		return (struct faults){ 0 };
	return (struct faults){ .drop_rate = rng_below(r, 4 * percent),
				.corrupt_rate = rng_below(r, percent),
				.duplicate_rate = rng_below(r, 5 * percent),
				.hold_rate = rng_below(r, 5 * percent),
				.hold_packets = 1 + rng_below(r, 8) };
}

static void connect_pairs(struct workload *l, struct pair_options *o)
{
	static const enum xroce_transport services[] = { XROCE_RC,  XROCE_RC,  XROCE_RC,
							 XROCE_XRC, XROCE_XRC, XROCE_UC };
	struct inbox *shared[2] = { NULL }, *xrc[2] = { NULL };
	struct rng *r = &l->r;
	struct world *w = l->w;

	for (u32 i = 0; i < l->num_pairs; i++) {
		struct pair *p = &l->pair[i];
		bool sound = rng_below(r, 3), use_srq;
		struct inbox *own;

		o->transport = services[rng_below(r, ARRAY_SIZE(services))];
		o->pmtu = 256u << rng_below(r, 5);
		o->psn[0] = rng_below(r, 2) ? 0xfffff0 + rng_below(r, 16) :
					      (u32)rng_next(r) & ROCE_PSN_MASK;
		o->psn[1] = (u32)rng_next(r) & ROCE_PSN_MASK;
		use_srq = o->transport == XROCE_RC && rng_below(r, 2);
		for (u32 n = 0; n < 2; n++) {
			if (use_srq && !shared[n])
				shared[n] = workload_inbox(l, &w->node[n], NULL,
						       world_srq(&w->node[n], 1 + rng_below(r, 16)),
						       NULL);
			o->srq[n] = use_srq ? shared[n]->srq : NULL;
		}
		*p = pair_connect(w, o);
		seen_transport[o->transport]++;
		if (o->transport == XROCE_XRC) {
			for (u32 n = 0; n < 2; n++) {
				struct watched_cq *c = xrc[n] ? NULL : world_cq(&w->node[1], 512);

				if (c)
					xrc[n] = workload_inbox(l, &w->node[1], NULL,
							    world_xrc_srq(&w->node[1],
									  1 + rng_below(r, 16),
									  o->xrcd, PAIR_PD, c),
							    c);
			}
			workload_flow(l, &p->side[0], &p->side[1], xrc[0], xrc[1], sound);
			continue;
		}
		own = use_srq ? shared[1] : workload_inbox(l, &w->node[1], &p->side[1], NULL, NULL);
		workload_flow(l, &p->side[0], &p->side[1], own, NULL, sound);
		if (!sound) /* the other way would end with the same error */
			continue;
		own = use_srq ? shared[0] : workload_inbox(l, &w->node[0], &p->side[0], NULL, NULL);
		workload_flow(l, &p->side[1], &p->side[0], own, NULL, sound);
	}
}

/* Now and then a send queue is drained and goes on. */
static void random_drain(struct flow *f, struct rng *r)
{
	if (qp_state(f->a->qp) == QPS_SQD)
		assert_int_equal(side_state(f->a, QPS_RTS), 0);
	else if (qp_state(f->a->qp) == QPS_RTS && rng_below(r, 16) == 0)
		assert_int_equal(side_state(f->a, QPS_SQD), 0);
}

/* Post and receive in fits and starts until all is posted. */
static void run_workload(struct workload *l)
{
	struct rng *r = &l->r;
	u32 left, rounds = 0;

	do {
		check(l->w, rounds++ < 1000000); /* work that does not go on */
		left = 0;
		for (u32 i = 0; i < l->num_flows; i++) {
			struct flow *f = &l->flow[i];

			for (u32 n = rng_below(r, 4); n-- && f->posted < f->num_ops;)
				if (!workload_post(f, r))
					break;
			random_drain(f, r);
			left += f->posted < f->num_ops || qp_state(f->a->qp) == QPS_SQD;
		}
		for (u32 i = 0; i < l->num_inboxes; i++) {
			for (u32 n = rng_below(r, 4); n--;)
				workload_receive(&l->inbox[i]);
			/* what UC lost takes no receive */
			left += l->inbox[i].posted < l->inbox[i].wanted &&
				!(l->inbox[i].owner &&
				  l->inbox[i].owner->qp->transport == XROCE_UC);
		}
		world_run_for(l->w, rng_below(r, 20 * WORLD_LATENCY_NS));
	} while (left);
	world_run(l->w);
}

static void run_seed(u64 seed)
{
	struct workload *l = calloc(1, sizeof(*l));
	struct world_options parts = { 0 };
	struct pair_options o = pair_defaults();
	struct rng *r = &l->r;
	struct world *w;

	assert_non_null(l);
	r->state = seed * 7919 + 1;
	/*
	 * Half of the engines lack some optional features, so that unequal peers meet.
	 */
	for (u32 i = 0; i < 2; i++)
		parts.disable[i] = rng_below(r, 2) * rng_below(r, 32);
	/*
	 * and a third have one engine a node, the others two or three: there QPs stay where they
	 * are, or move about
	 */
	parts.num_engines = 1 + (u32)(seed % 3);
	w = l->w = world_create_with(2, seed, &parts);
	w->move_rate = parts.num_engines > 1 && seed % 2 ? 65536 / 4 : 0;
	world_label(w, "XROCE_SIM_SEED=%llu test_random", (unsigned long long)seed);
	w->keep_frames = false;
	w->rx_batch = 1 + rng_below(r, 3) * rng_below(r, 16);
	w->split_bytes = rng_below(r, 2) ? WORLD_SPLIT_BYTES : 128 + rng_below(r, 1000);
	o.is_ipv6 = rng_below(r, 2);
	o.timeout = (u8)(8 + rng_below(r, 6));
	o.min_rnr_timer = (u8)(1 + rng_below(r, 14));
	o.max_rd_atomic = (u8)(1 + rng_below(r, 8));
	o.max_dest_rd_atomic = (u8)(o.max_rd_atomic + rng_below(r, 3));
	o.max_send_wr = 1 + rng_below(r, 16);
	o.max_recv_wr = 1 + rng_below(r, 16);
	l->num_pairs = 1 + rng_below(r, MAX_PAIRS);
	l->calm = rng_below(r, 5) == 0;
	connect_pairs(l, &o);
	w->node[0].to[1] = random_faults(r, l->calm);
	w->node[1].to[0] = random_faults(r, l->calm);
	for (u32 i = 0; i < l->num_flows; i++)
		l->flow[i].exact = l->calm;
	run_workload(l);
	for (u32 i = 0; i < l->num_flows; i++) {
		struct flow *f = &l->flow[i];

		judge(l, f);
		free(f->want_sink);
		free(f->want_target);
		mr_remove(engine_mr_table(f->a->node->engine), f->mw);
		mr_remove(engine_mr_table(f->b->node->engine), f->far_mw);
	}
	for (u32 i = 0; i < l->num_pairs; i++)
		pair_destroy(&l->pair[i]);
	for (u32 i = 0; i < l->num_inboxes; i++) {
		struct inbox *b = &l->inbox[i];

		if (b->cq)
			world_xrc_srq_destroy(&w->node[1], b->srq);
		else if (b->srq)
			world_srq_destroy(b->srq);
	}
	seen_moves += w->moves;
	world_destroy(w);
	free(l);
}

static void random_workloads__match_the_oracle(void **state)
{
	if (!run_seeds(SEEDS, run_seed))
		return;
	for (u32 i = 0; i < WR_OPCODES; i++)
		assert_true(seen_op[i] || (i > WR_SEND_WITH_INV && i < WR_FLUSH) ||
			    i == WR_REFUSED);
	for (u32 i = SOUND + 1; i < POISONS; i++)
		assert_true(seen_poison[i]);
	assert_true(seen_moves);
	assert_true(seen_transport[XROCE_RC] && seen_transport[XROCE_UC] &&
		    seen_transport[XROCE_XRC]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_workloads__match_the_oracle),
	};

	return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
