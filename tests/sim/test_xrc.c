/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/* tier: long san */
/* tier: long san_engines XROCE_SIM_ENGINES=3 */
/*
 * XRC: one target QP, several SRQs of its domain, each with its own PD and CQ. Each request names
 * the SRQ, which alone decides where its completion goes, whose keys count and which errors occur.
 * XROCE_SIM_MASK=forward:backward (hexadecimal) runs one mask.
 */
#include "raw.h"
#include "runs.h"

#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

#define PMTU	256
#define NUM_SRQ 3
#define SRQ_PD	7 /* of the SRQs from the second on: not the target QP's */
#define DOMAIN	5
#define START	1000ull

struct scene {
	struct world *w;
	struct pair p;
	struct side *a, *b;		/* initiator, target */
	struct watched_cq *cq[NUM_SRQ];
	struct srq *srq[NUM_SRQ];
	struct buffer *local;
	struct buffer *remote[NUM_SRQ]; /* of each SRQ's PD */
};

static u32 pd_of(u32 srq)
{
	return srq ? SRQ_PD : PAIR_PD;
}

static struct pair_options options(void)
{
	struct pair_options o = pair_defaults();

	o.transport = XROCE_XRC;
	o.xrcd = DOMAIN;
	o.pmtu = PMTU;
	o.timeout = 10;
	o.min_rnr_timer = 1;
	return o;
}

static void add_srqs(struct world *w, struct watched_cq **cq, struct srq **srq)
{
	for (u32 i = 0; i < NUM_SRQ; i++) {
		cq[i] = world_cq(&w->node[1], 64);
		srq[i] = world_xrc_srq(&w->node[1], 16, DOMAIN, pd_of(i), cq[i]);
	}
}

static void scene_open(struct scene *s, const char *name)
{
	struct pair_options o = options();

	*s = (struct scene){ .w = world_create(2, 23) };
	world_label(s->w, "test_xrc %s", name);
	add_srqs(s->w, s->cq, s->srq);
	s->p = pair_connect(s->w, &o);
	s->a = &s->p.side[0];
	s->b = &s->p.side[1];
	s->local = world_buffer(&s->w->node[0], 4096, PAIR_ACCESS_ALL);
	for (u32 i = 0; i < NUM_SRQ; i++)
		s->remote[i] = world_buffer_pd(&s->w->node[1], 4096,
					       PAIR_ACCESS_ALL | MR_FLUSH_GLOBAL, pd_of(i));
}

static void scene_close(struct scene *s)
{
	pair_destroy(&s->p);
	for (u32 i = 0; i < NUM_SRQ; i++)
		if (s->srq[i])
			world_xrc_srq_destroy(&s->w->node[1], s->srq[i]);
	world_destroy(s->w);
}

static void post_srq(struct scene *s, u32 srq, u64 wr_id, u32 offset, u32 len)
{
	struct sge sge = buffer_sge(s->remote[srq], offset, len);

	post_srq_recv(s->srq[srq], wr_id, &sge, 1);
}

/* len bytes of local from 0 on to SRQ number srq, or to remote memory of its PD at offset 2048. */
static struct send request(struct scene *s, enum wr_opcode opcode, u32 srq, u64 wr_id, u32 len)
{
	return (struct send){ .wr_id = wr_id,
			      .opcode = opcode,
			      .flags = WR_SIGNALED,
			      .num_sge = 1,
			      .imm = htobe32(0x700 + srq),
			      .sge = { buffer_sge(s->local, 0, len) },
			      .remote_addr = buffer_va(s->remote[srq]) + 2048,
			      .rkey = s->remote[srq]->mr->key,
			      .xrc_srqn = s->srq[srq]->number };
}

static void kinds__each_completes_where_its_srq_says(void **state)
{
	struct scene s;
	u64 word = START, swap = 4;
	u32 n = 0;

	scene_open(&s, "kinds");
	for (u32 i = 0; i < NUM_SRQ; i++) {
		struct send list[] = {
			request(&s, WR_SEND, i, 0, 600),
			request(&s, WR_SEND_WITH_IMM, i, 1, 0),
			request(&s, WR_WRITE, i, 2, 700),
			request(&s, WR_WRITE_WITH_IMM, i, 3, 300),
			request(&s, WR_READ, i, 4, 520),
			request(&s, WR_FETCH_ADD, i, 5, 8),
			request(&s, WR_CMP_SWAP, i, 6, 8),
			request(&s, WR_FLUSH, i, 7, 0),
			request(&s, WR_ATOMIC_WRITE, i, 8, 0),
		};
		static const struct { enum cqe_opcode opcode; u32 len;
		} done[] = {
			{ CQE_SEND, 600 },    { CQE_SEND, 0 },	  { CQE_WRITE, 700 },
			{ CQE_WRITE, 300 },   { CQE_READ, 520 },  { CQE_FETCH_ADD, 8 },
			{ CQE_COMP_SWAP, 8 }, { CQE_FLUSH, 100 }, { CQE_ATOMIC_WRITE, 8 },
		};
		u8 *far = s.remote[i]->bytes + 2048;
		u32 qpn = s.b->qp->qpn, from = s.a->qp->qpn;

		buffer_fill(s.local->bytes, 2048, 40 + i);
		memcpy(far + 1024, &word, 8);
		list[4].sge[0] = buffer_sge(s.local, 3000, 520);
		for (u32 k = 5; k < 9; k++)
			list[k].remote_addr += 1024;
		list[5].sge[0] = buffer_sge(s.local, 2048, 8);
		list[5].compare_add = 3;
		list[6].sge[0] = buffer_sge(s.local, 2056, 8);
		list[6].compare_add = START + 3;
		list[6].swap = swap;
		list[7].num_sge = list[8].num_sge = 0;
		list[7].length = 100;
		list[7].compare_add = 1;
		list[8].length = 8;
		list[8].swap = 0x1122334455667788;
		for (u32 k = 0; k < 3; k++)
			post_srq(&s, i, 100 * i + k, 700 * k, 700);
		s.a->send->n = 0;
		world_forget_sent(s.w);
		post_sends(s.a, list, ARRAY_SIZE(list));
		world_run(s.w);

		check_eq(s.w, s.a->send->n, ARRAY_SIZE(list));
		for (u32 k = 0; k < ARRAY_SIZE(list); k++)
			expect(s.w, s.a->send, k, .wr_id = k, .opcode = done[k].opcode,
			       .byte_len = done[k].len, .qpn = from);
		check_eq(s.w, s.cq[i]->n, 3);
		expect(s.w, s.cq[i], 0, .wr_id = 100 * i, .opcode = CQE_RECV, .byte_len = 600,
		       .qpn = qpn, .src_qpn = from);
		expect(s.w, s.cq[i], 1, .wr_id = 100 * i + 1, .opcode = CQE_RECV, .byte_len = 0,
		       .qpn = qpn, .src_qpn = from, .flags = CQE_WITH_IMM,
		       .imm = htobe32(0x700 + i));
		expect(s.w, s.cq[i], 2, .wr_id = 100 * i + 2, .opcode = CQE_RECV_WITH_IMM,
		       .byte_len = 300, .qpn = qpn, .src_qpn = from, .flags = CQE_WITH_IMM,
		       .imm = htobe32(0x700 + i));
		check(s.w,
		      bytes_are(s.remote[i]->bytes, 600, 40 + i) && bytes_are(far, 700, 40 + i));
		check(s.w, memcmp(s.local->bytes + 3000, far, 520) == 0);
		check(s.w, memcmp(s.local->bytes + 2048, &word, 8) == 0);
		check(s.w, memcmp(s.local->bytes + 2056, &(u64){ START + 3 }, 8) == 0);
		check(s.w, memcmp(far + 1024, &list[8].swap, 8) == 0);
		/* the XRCETH is on every request and on no response */
		for (n = 0; n < s.w->num_sent; n++) {
			const struct packet *p = &s.w->sent[n].packet;

			check_eq(s.w, OPCODE_TRANSPORT(p->opcode), XROCE_XRC);
			check_eq(s.w, !!(p->flags & OP_XRC_ETH), s.w->sent[n].from == 0);
			check_eq(s.w, p->xrc_srqn, s.w->sent[n].from == 0 ? s.srq[i]->number : 0);
		}
	}
	check_eq(s.w, s.w->node[0].stats.tx_retransmitted, 0);
	scene_close(&s);
}

/*
 * Messages to several SRQs one after the other, and two targets on one SRQ: each WQE is used once.
 */
static void srqs__are_shared_by_targets(void **state)
{
	struct pair_options o = options();
	struct scene s;
	struct pair second;
	bool used[12] = { false };

	scene_open(&s, "shared");
	second = pair_connect(s.w, &o);
	for (u32 i = 0; i < 12; i++)
		post_srq(&s, i % 2, i, i * 300, 300);
	for (u32 i = 0; i < 12; i++) {
		struct send send = request(&s, WR_SEND_WITH_IMM, i / 2 % 2, i, 280 + i);

		send.imm = htobe32(i);
		post_send(i % 2 ? &second.side[0] : s.a, &send);
	}
	world_run(s.w);
	for (u32 c = 0; c < 2; c++) {
		check_eq(s.w, s.cq[c]->n, 6);
		for (u32 k = 0; k < 6; k++) {
			const struct cqe *e = &s.cq[c]->log[k];
			u32 message = be32toh(e->imm);

			check(s.w, e->wr_id < 12 && e->wr_id % 2 == c && !used[e->wr_id]);
			used[e->wr_id] = true;
			check(s.w, message < 12 && message / 2 % 2 == c);
			expect(s.w, s.cq[c], k, .wr_id = e->wr_id, .opcode = CQE_RECV,
			       .byte_len = 280 + message, .flags = CQE_WITH_IMM, .imm = e->imm,
			       .qpn = message % 2 ? second.side[1].qp->qpn : s.b->qp->qpn);
			check(s.w, memcmp(s.remote[c]->bytes + e->wr_id * 300, s.local->bytes,
					  280 + message) == 0);
		}
	}
	check_eq(s.w, s.cq[2]->n, 0);
	pair_destroy(&second);
	scene_close(&s);
}

static void empty__is_rnr_and_the_psn_stays(void **state)
{
	struct scene s;
	struct send list[2];

	scene_open(&s, "empty");
	list[0] = request(&s, WR_SEND, 1, 1, 300);
	list[1] = request(&s, WR_SEND, 2, 2, 300);
	post_srq(&s, 0, 90, 0, 1000); /* another one's WQEs do not help */
	post_srq(&s, 2, 92, 0, 1000);
	post_sends(s.a, list, 2);
	world_run_for(s.w, NSEC_PER_MSEC);
	check(s.w, s.w->node[1].stats.tx_rnr_naks >= 2);
	check_eq(s.w, s.b->qp->resp.seq.expected_psn, 0x1000);
	check_eq(s.w, s.cq[2]->n, 0); /* in order, although this one could */
	post_srq(&s, 1, 91, 0, 1000);
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 2);
	expect(s.w, s.cq[1], 0, .wr_id = 91, .opcode = CQE_RECV, .byte_len = 300,
	       .qpn = s.b->qp->qpn);
	expect(s.w, s.cq[2], 0, .wr_id = 92, .opcode = CQE_RECV, .byte_len = 300,
	       .qpn = s.b->qp->qpn);
	check_eq(s.w, s.cq[0]->n, 0);
	scene_close(&s);
}

static void limit__fires_once_for_the_srq_that_ran_low(void **state)
{
	struct scene s;
	struct node *n;

	scene_open(&s, "limit");
	n = &s.w->node[1];
	for (u32 i = 0; i < 4; i++) {
		post_srq(&s, 0, i, 0, 100);
		post_srq(&s, 1, i, 0, 100);
	}
	engine_srq_set_limit(n->engine, s.srq[1], 3);
	for (u32 i = 0; i < 4; i++) {
		struct send list[] = { request(&s, WR_SEND, 0, i, 50),
				       request(&s, WR_WRITE_WITH_IMM, 1, i, 50) };

		post_sends(s.a, list, 2);
		world_run(s.w);
		check_eq(s.w, world_events(n, EVENT_SRQ_LIMIT, NULL), i >= 1);
	}
	for (u32 i = 0; i < n->num_events; i++)
		check(s.w, n->events[i].type != EVENT_SRQ_LIMIT || n->events[i].srq == s.srq[1]);
	scene_close(&s);
}

/*
 * An SRQ whose CQ has overrun has failed, and so has each target that had a completion for it;
 * others go on elsewhere.
 */
static void overrun__fails_the_srq_and_the_targets_that_meet_it(void **state)
{
	struct pair_options o = options();
	struct send send;
	struct pair second;
	struct scene s;
	struct node *n;

	scene_open(&s, "overrun");
	n = &s.w->node[1];
	second = pair_connect(s.w, &o);
	s.cq[0]->polled = false;
	s.cq[0]->cq.capacity = 2;
	for (u32 i = 0; i < 6; i++) {
		post_srq(&s, 0, i, 0, 100);
		post_srq(&s, 1, i, 0, 100);
	}
	for (u32 i = 0; i < 3; i++) {
		check_eq(s.w, qp_state(s.b->qp), QPS_RTS);
		send = request(&s, WR_SEND, 0, i, 50);
		post_send(s.a, &send);
		world_run(s.w);
	}
	check_eq(s.w, qp_state(s.b->qp), QPS_ERR);
	check_eq(s.w, world_events(n, EVENT_QP_FATAL, s.b->qp), 1);
	check_eq(s.w, world_events(n, EVENT_CQ_ERR, NULL), 1);
	check_eq(s.w, world_events(n, EVENT_SRQ_ERR, NULL), 1);
	for (u32 i = 0; i < n->num_events; i++)
		check(s.w, n->events[i].type != EVENT_SRQ_ERR || n->events[i].srq == s.srq[0]);
	check_eq(s.w, qp_state(second.side[1].qp), QPS_RTS);
	send = request(&s, WR_SEND, 1, 9, 50);
	post_send(&second.side[0], &send);
	world_run(s.w);
	check_eq(s.w, s.cq[1]->n, 1);
	check_eq(s.w, qp_state(second.side[1].qp), QPS_RTS);
	send = request(&s, WR_SEND, 0, 9, 50);
	post_send(&second.side[0], &send);
	world_run(s.w);
	check_eq(s.w, qp_state(second.side[1].qp), QPS_ERR);
	check_eq(s.w, world_events(n, EVENT_QP_FATAL, NULL), 2);
	check_eq(s.w, world_events(n, EVENT_CQ_ERR, NULL), 1);
	check_eq(s.w, world_events(n, EVENT_SRQ_ERR, NULL), 1);
	/* RESET clears the QP's error, not the CQ's */
	check_eq(s.w, side_state(s.b, QPS_RESET), 0);
	world_settle(s.w);
	check_eq(s.w, qp_state(s.b->qp), QPS_RESET);
	pair_destroy(&second);
	scene_close(&s);
}

/* A target's completions go with it, in whichever of the domain's CQs they are; another's stay. */
static void reset__takes_the_completions_away(void **state)
{
	struct pair_options o = options();
	struct pair second;
	struct scene s;

	for (u32 destroyed = 0; destroyed < 2; destroyed++) {
		scene_open(&s, "reset");
		second = pair_connect(s.w, &o);
		s.cq[0]->polled = s.cq[1]->polled = false;
		for (u32 i = 0; i < 6; i++) {
			struct send send = request(&s, WR_SEND, i % 2, i, 50);

			post_srq(&s, i % 2, i, 0, 100);
			post_send(i == 1 || i == 2 ? &second.side[0] : s.a, &send);
			world_run(s.w);
		}
		if (destroyed)
			pair_destroy(&s.p);
		else
			check_eq(s.w, side_state(s.b, QPS_RESET), 0);
		world_poll(s.cq[0]);
		world_poll(s.cq[1]);
		for (u32 c = 0; c < 2; c++) {
			check_eq(s.w, s.cq[c]->n, 1);
			expect(s.w, s.cq[c], 0, .wr_id = 2 - c, .opcode = CQE_RECV, .byte_len = 50,
			       .qpn = second.side[1].qp->qpn);
		}
		pair_destroy(&second);
		if (destroyed)
			s.p = pair_connect(s.w, &o);
		scene_close(&s);
	}
}

/*
 * The keys of a request are looked up in the PD of the SRQ that it names: IBTA 10.6,
 * ibv_create_srq_ex(3).
 */
static void keys__are_of_the_srqs_pd(void **state)
{
	static const enum wr_opcode opcodes[] = { WR_WRITE, WR_READ, WR_FETCH_ADD, WR_ATOMIC_WRITE,
						  WR_FLUSH };

	for (u32 i = 0; i < ARRAY_SIZE(opcodes); i++)
		for (u32 right = 0; right < 2; right++) {
			struct scene s;
			struct send send;

			scene_open(&s, "keys");
			world_label(s.w, "test_xrc keys %u %u", opcodes[i], right);
			send = request(&s, opcodes[i], right ? 1 : 0, 1, 8);
			if (opcodes[i] == WR_FLUSH || opcodes[i] == WR_ATOMIC_WRITE) {
				send.num_sge = 0;
				send.length = 8;
				send.compare_add = 1;
			}
			send.xrc_srqn = s.srq[1]->number; /* its PD is not the QP's */
			post_send(s.a, &send);
			world_run(s.w);
			check_eq(s.w, s.a->send->n, 1);
			check_eq(s.w, s.a->send->log[0].status,
				 right ? CQE_SUCCESS : CQE_REM_ACCESS_ERR);
			check_eq(s.w, world_events(&s.w->node[1], EVENT_QP_ACCESS_ERR, s.b->qp),
				 !right);
			scene_close(&s);
		}
}

static void receive__keys_are_of_the_srqs_pd(void **state)
{
	for (u32 right = 0; right < 2; right++) {
		struct scene s;
		struct send send;
		struct sge sge;

		scene_open(&s, right ? "receive keys right" : "receive keys wrong");
		sge = buffer_sge(s.remote[right ? 1 : 0], 0, 100);
		post_srq_recv(s.srq[1], 5, &sge, 1);
		send = request(&s, WR_SEND, 1, 1, 50);
		post_send(s.a, &send);
		world_run(s.w);
		check_eq(s.w, s.a->send->log[0].status, right ? CQE_SUCCESS : CQE_REM_OP_ERR);
		expect(s.w, s.cq[1], 0, .wr_id = 5,
		       .status = right ? CQE_SUCCESS : CQE_LOC_PROT_ERR, .opcode = CQE_RECV,
		       .byte_len = 50, .qpn = s.b->qp->qpn,
		       .vendor_err = right ? VERR_NONE : VERR_LKEY);
		check_eq(s.w, s.cq[1]->n, 1);
		scene_close(&s);
	}
}

/* ---- by hand: what no requester of ours would send ---- */

struct raw_scene {
	struct raw r;
	struct watched_cq *cq[NUM_SRQ];
	struct srq *srq[NUM_SRQ];
	struct sge sge;
};

static void raw_open(struct raw_scene *s, const char *name)
{
	struct pair_options o = options();

	o.xrc_target = true;
	s->r = raw_create(&o, name);
	add_srqs(s->r.w, s->cq, s->srq);
	s->sge = buffer_sge(s->r.mem, 0, 1024);
	post_srq_recv(s->srq[0], 60, &s->sge, 1);
}

static void raw_close(struct raw_scene *s)
{
	qp_destroy(s->r.s.node->engine, s->r.s.qp);
	for (u32 i = 0; i < NUM_SRQ; i++)
		if (s->srq[i])
			world_xrc_srq_destroy(&s->r.w->node[1], s->srq[i]);
	world_destroy(s->r.w);
	free(s->r.frame);
}

static struct packet xrc_packet(struct raw_scene *s, u8 opcode, u32 psn, u32 srqn)
{
	struct packet p = raw_access(&s->r, opcode, psn, 2048, 8);

	p.xrc_srqn = srqn;
	return p;
}

/* A target asks for nothing: no answer is its. */
static void target__takes_no_responses(void **state)
{
	struct raw_scene s;

	raw_open(&s, "test_xrc responses");
	for (u32 i = 0; i < 3; i++) {
		struct packet p = { .opcode = XRC(ACKNOWLEDGE),
				    .psn = psn_add(RAW_SQ_PSN, i - 1),
				    .syndrome = SYNDROME_ACK };

		check_eq(s.r.w, raw_send(&s.r, p, NULL, 0), XROCE_DROP_unexpected_response);
	}
	raw_close(&s);
}

static void refused(struct raw_scene *s, u32 psn, u32 msn)
{
	expect_ack(&s->r, AETH_NAK | NAK_INVALID_REQUEST, psn, msn);
	expect_failed(&s->r, NAK_INVALID_REQUEST);
}

/*
 * Every kind of request, to an unused number, to an SRQ of another domain and to an SRQ without
 * XRC.
 */
static void srq__must_be_of_the_domain(void **state)
{
	static const struct { u8 opcode; u32 len;
	} kinds[] = {
		{ XRC(SEND_ONLY), 8 },	    { XRC(SEND_ONLY_IMM), 8 }, { XRC(WRITE_ONLY), 8 },
		{ XRC(WRITE_ONLY_IMM), 8 }, { XRC(READ_REQUEST), 0 },  { XRC(CMP_SWAP), 0 },
		{ XRC(FETCH_ADD), 0 },	    { XRC(ATOMIC_WRITE), 8 },  { XRC(FLUSH), 0 },
		{ XRC(SEND_ONLY_INV), 8 },
	};

	for (u32 k = 0; k < ARRAY_SIZE(kinds); k++)
		for (u32 wrong = 0; wrong < 3; wrong++) {
			struct raw_scene s;
			struct srq *other;
			struct packet p;

			raw_open(&s, "test_xrc domain");
			world_label(s.r.w, "test_xrc domain kind %u wrong %u", k, wrong);
			other = world_xrc_srq(&s.r.w->node[1], 4, DOMAIN + 1, PAIR_PD, s.cq[0]);
			post_srq_recv(other, 61, &s.sge, 1);
			if (wrong == 2)
				other->xrcd = 0;
			p = xrc_packet(&s, kinds[k].opcode, RAW_PSN,
				       wrong ? other->number : s.srq[0]->number ^ 0x800000);
			p.flush = 1;
			raw_send(&s.r, p, NULL, kinds[k].len);
			refused(&s, RAW_PSN, 0);
			check_eq(s.r.w, s.cq[0]->n, 0);
			check_eq(s.r.w, rq_posted(&other->rq), 1);
			check_eq(s.r.w, rq_posted(&s.srq[0]->rq), 1);
			check(s.r.w, bytes_are(s.r.mem->bytes, s.r.mem->len, 1));
			world_xrc_srq_destroy(&s.r.w->node[1], other);
			raw_close(&s);
		}
}

/* A message is for one SRQ from its first packet to its last. */
static void srq__may_not_change_within_a_message(void **state)
{
	struct raw_scene s;

	raw_open(&s, "test_xrc change");
	raw_send(&s.r, xrc_packet(&s, XRC(SEND_FIRST), RAW_PSN, s.srq[0]->number), NULL, PMTU);
	expect_ack(&s.r, SYNDROME_ACK, RAW_PSN, 0);
	raw_send(&s.r, xrc_packet(&s, XRC(SEND_LAST), RAW_PSN + 1, s.srq[1]->number), NULL, 8);
	refused(&s, RAW_PSN + 1, 0);
	/* the WQE that it held fails where it came from */
	check_eq(s.r.w, s.cq[0]->n, 1);
	expect(s.r.w, s.cq[0], 0, .wr_id = 60, .status = CQE_REM_INV_REQ_ERR, .qpn = s.r.s.qp->qpn);
	check_eq(s.r.w, s.cq[1]->n, 0);
	raw_close(&s);
}

static void srq__removed_within_a_message(void **state)
{
	struct raw_scene s;
	u32 number;

	raw_open(&s, "test_xrc removed");
	number = s.srq[0]->number;
	raw_send(&s.r, xrc_packet(&s, XRC(SEND_FIRST), RAW_PSN, number), NULL, PMTU);
	expect_ack(&s.r, SYNDROME_ACK, RAW_PSN, 0);
	world_xrc_srq_destroy(&s.r.w->node[1], s.srq[0]);
	s.srq[0] = NULL;
	raw_send(&s.r, xrc_packet(&s, XRC(SEND_LAST), RAW_PSN + 1, number), NULL, 8);
	refused(&s, RAW_PSN + 1, 0);
	check_eq(s.r.w, s.cq[0]->n, 0);
	raw_close(&s);
}

/*
 * Moved to error in the middle of a message: the WQE it held is flushed to the CQ of its SRQ, the
 * others stay.
 */
static void error__flushes_the_held_receive(void **state)
{
	struct raw_scene s;

	raw_open(&s, "test_xrc flush");
	post_srq_recv(s.srq[0], 62, &s.sge, 1);
	raw_send(&s.r, xrc_packet(&s, XRC(SEND_FIRST), RAW_PSN, s.srq[0]->number), NULL, PMTU);
	check_eq(s.r.w, side_state(&s.r.s, QPS_ERR), 0);
	world_settle(s.r.w);
	check_eq(s.r.w, s.cq[0]->n, 1);
	expect(s.r.w, s.cq[0], 0, .wr_id = 60, .status = CQE_WR_FLUSH_ERR, .qpn = s.r.s.qp->qpn);
	check_eq(s.r.w, rq_posted(&s.srq[0]->rq), 1);
	raw_close(&s);
}

/*
 * Each end has one half: an initiator executes nothing, a target sends nothing and has asked for
 * nothing.
 */
static void ends__have_one_half_each(void **state)
{
	struct pair_options o = options();
	struct raw_scene s;
	struct raw r;

	raw_open(&s, "test_xrc target");
	check_eq(s.r.w,
		 raw_send(&s.r,
			  (struct packet){ .opcode = XRC(ACKNOWLEDGE),
					   .psn = RAW_SQ_PSN,
					   .syndrome = SYNDROME_ACK },
			  NULL, 0),
		 XROCE_DROP_unexpected_response);
	check_eq(s.r.w, try_post_send(&s.r.s, &(struct send){ .opcode = WR_WRITE }), (u64)-EINVAL);
	check_eq(s.r.w, qp_state(s.r.s.qp), QPS_RTS);
	raw_close(&s);

	r = raw_create(&o, "test_xrc initiator");
	raw_send(&r, raw_access(&r, XRC(WRITE_ONLY), RAW_PSN, 0, 8), NULL, 8);
	expect_ack(&r, AETH_NAK | NAK_INVALID_REQUEST, RAW_PSN, 0);
	check(r.w, bytes_are(r.mem->bytes, r.mem->len, 1));
	raw_destroy(&r);
}

/* Both ends refuse a reserved opcode, whose headers nobody knows; a held receive fails. */
static void reserved__opcodes_are_invalid(void **state)
{
	static const u8 low[] = { 0x15, 0x18, 0x19, 0x1a, 0x1b, 0x1e, 0x1f };
	struct pair_options o = options();
	struct raw_scene s;
	struct raw r;

	for (u32 i = 0; i < 2 * ARRAY_SIZE(low); i++) {
		const u32 before = i % 2;

		raw_open(&s, "test_xrc reserved");
		world_label(s.r.w, "test_xrc reserved %02x, %u before", low[i / 2], before);
		if (before) {
			raw_send(&s.r,
				 xrc_packet(&s, XRC(SEND_FIRST), RAW_PSN, s.srq[0]->number), NULL,
				 PMTU);
			expect_ack(&s.r, SYNDROME_ACK, RAW_PSN, 0);
		}
		raw_send(&s.r, raw_request(OPCODE(XROCE_XRC, low[i / 2]), RAW_PSN + before), NULL,
			 i % 3 * 4);
		refused(&s, RAW_PSN + before, 0);
		check_eq(s.r.w, s.cq[0]->n, before);
		if (before)
			expect(s.r.w, s.cq[0], 0, .wr_id = 60, .status = CQE_REM_INV_REQ_ERR,
			       .qpn = s.r.s.qp->qpn);
		raw_close(&s);

		r = raw_create(&o, "test_xrc reserved, initiator");
		raw_send(&r, raw_request(OPCODE(XROCE_XRC, low[i / 2]), RAW_PSN), NULL, 4);
		expect_ack(&r, AETH_NAK | NAK_INVALID_REQUEST, RAW_PSN, 0);
		raw_destroy(&r);
	}
}

/* ---- loss ---- */

/* Two SRQs in turn, an atomic and a READ between: seven packets there, four to seven back. */
static void run_mask(struct scene *s, u32 forward, u32 backward)
{
	bool must = masks_within_retries(forward, backward);
	struct pair_options o = options();
	struct send list[4];
	u64 value, word = START;
	u32 i = 0;

	o.psn[0] = (0xfffffc + forward) & ROCE_PSN_MASK;
	s->p = pair_connect(s->w, &o);
	memset(s->remote[0]->bytes, 0, 2048);
	memset(s->remote[1]->bytes, 0, 2048);
	memset(s->local->bytes + 2048, 0, 2048);
	memcpy(s->remote[1]->bytes + 2048, &word, 8);
	s->cq[0]->n = s->cq[1]->n = 0;
	post_srq(s, 0, 70, 0, 600);
	post_srq(s, 1, 71, 0, 600);
	list[0] = request(s, WR_SEND, 0, 0, 2 * PMTU + 3);
	list[1] = request(s, WR_FETCH_ADD, 1, 1, 8);
	list[1].sge[0] = buffer_sge(s->local, 2048, 8);
	list[1].compare_add = 11;
	list[2] = request(s, WR_SEND_WITH_IMM, 1, 2, PMTU + 1);
	list[3] = request(s, WR_READ, 2, 3, 2 * PMTU);
	list[3].sge[0] = buffer_sge(s->local, 3000, 2 * PMTU);
	s->w->node[0].to[1] = (struct faults){ .drop = forward };
	s->w->node[1].to[0] = (struct faults){ .drop = backward };
	post_sends(s->a, list, 4);
	world_run(s->w);
	while (i < s->a->send->n && s->a->send->log[i].status == CQE_SUCCESS)
		i++;
	check_eq(s->w, s->a->send->n, 4);
	if (i < 4) { /* given up: in order, and with nothing done twice */
		check(s->w, !must && s->a->send->log[i].status == CQE_RETRY_EXC_ERR);
		check(s->w, s->cq[0]->n <= 1 && s->cq[1]->n <= 1);
		rq_reset(&s->srq[0]->rq);
		rq_reset(&s->srq[1]->rq);
		pair_destroy(&s->p);
		return;
	}
	check_eq(s->w, s->cq[0]->n, 1);
	check_eq(s->w, s->cq[1]->n, 1);
	expect(s->w, s->cq[0], 0, .wr_id = 70, .opcode = CQE_RECV, .byte_len = 2 * PMTU + 3,
	       .qpn = s->b->qp->qpn);
	expect(s->w, s->cq[1], 0, .wr_id = 71, .opcode = CQE_RECV, .byte_len = PMTU + 1,
	       .qpn = s->b->qp->qpn, .flags = CQE_WITH_IMM, .imm = htobe32(0x701));
	check(s->w, memcmp(s->remote[0]->bytes, s->local->bytes, 2 * PMTU + 3) == 0);
	check(s->w, memcmp(s->remote[1]->bytes, s->local->bytes, PMTU + 1) == 0);
	memcpy(&value, s->local->bytes + 2048, 8);
	check_eq(s->w, value, START);
	memcpy(&value, s->remote[1]->bytes + 2048, 8);
	check_eq(s->w, value, START + 11);
	check(s->w, memcmp(s->local->bytes + 3000, s->remote[2]->bytes + 2048, 2 * PMTU) == 0);
	pair_destroy(&s->p);
}

static void loss__every_mask(void **state)
{
	struct masks m = masks_of(8, 8);

	for (u32 forward = m.forward; forward < m.forward_end; forward++) {
		struct scene s;

		scene_open(&s, "loss");
		s.w->keep_frames = false;
		pair_destroy(&s.p);
		for (u32 backward = m.backward; backward < m.backward_end; backward++) {
			world_label(s.w, "XROCE_SIM_MASK=%x:%x test_xrc", forward, backward);
			run_mask(&s, forward, backward);
		}
		for (u32 i = 0; i < NUM_SRQ; i++)
			world_xrc_srq_destroy(&s.w->node[1], s.srq[i]);
		world_destroy(s.w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds__each_completes_where_its_srq_says),
		cmocka_unit_test(srqs__are_shared_by_targets),
		cmocka_unit_test(empty__is_rnr_and_the_psn_stays),
		cmocka_unit_test(limit__fires_once_for_the_srq_that_ran_low),
		cmocka_unit_test(overrun__fails_the_srq_and_the_targets_that_meet_it),
		cmocka_unit_test(reset__takes_the_completions_away),
		cmocka_unit_test(keys__are_of_the_srqs_pd),
		cmocka_unit_test(receive__keys_are_of_the_srqs_pd),
		cmocka_unit_test(target__takes_no_responses),
		cmocka_unit_test(srq__must_be_of_the_domain),
		cmocka_unit_test(srq__may_not_change_within_a_message),
		cmocka_unit_test(srq__removed_within_a_message),
		cmocka_unit_test(error__flushes_the_held_receive),
		cmocka_unit_test(ends__have_one_half_each),
		cmocka_unit_test(reserved__opcodes_are_invalid),
		cmocka_unit_test(loss__every_mask),
	};

	return cmocka_run_group_tests_name("xrc", tests, NULL, NULL);
}
