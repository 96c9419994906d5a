/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random workloads over bad links against an oracle: up to three connections of RC, XRC and UC at
 * once, all their operations, own and shared receive queues, windows, errors of every kind, drained
 * queues; loss, duplicates, reordering, corruption. What must come out is known when a request is
 * posted, since each has memory of its own and a QP executes in order.
 *
 * XROCE_SIM_SEED=n runs one seed; XROCE_SIM_SEEDS=n sets how many are run.
 */
#include "pair.h"
#include "runs.h"

#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

#ifdef __SANITIZE_ADDRESS__
#define SEEDS 1000
#else
#define SEEDS 10000
#endif
#define MAX_OPS	   24 /* of one flow */
#define MAX_PAIRS  3
#define MAX_FLOWS  (2 * MAX_PAIRS)
#define MAX_INBOX  (MAX_FLOWS + 4)
#define MAX_SLOTS  (MAX_OPS * MAX_FLOWS)
#define MAX_LENGTH (8 * 1024)
#define SLOT	   (MAX_LENGTH + 8)
#define ACCESS	   (PAIR_ACCESS_ALL | MR_MW_BIND | MR_FLUSH_GLOBAL | MR_FLUSH_PERSISTENT)
#define NO_SLOT	   (~0u)

/* How a flow goes wrong: the last request that is executed, or not even that. */
enum poison {
	SOUND,
	BAD_LKEY,
	BAD_READ_LKEY,
	BAD_RKEY,
	BAD_READ_RKEY,
	BAD_BIND,
	BAD_INV,
	BAD_REMOTE_INV,
	BAD_SRQ,
	SHORT_RECEIVE,
	BAD_RECEIVE,
	POISONS
};

static const struct { enum cqe_status status, receive; bool remote;
} poisons[POISONS] = {
	[BAD_LKEY] = { CQE_LOC_PROT_ERR, 0, false },
	[BAD_READ_LKEY] = { CQE_LOC_PROT_ERR, 0, false },
	[BAD_RKEY] = { CQE_REM_ACCESS_ERR, 0, true },
	[BAD_READ_RKEY] = { CQE_REM_ACCESS_ERR, 0, true },
	[BAD_BIND] = { CQE_MW_BIND_ERR, 0, false },
	[BAD_INV] = { CQE_LOC_QP_OP_ERR, 0, false },
	[BAD_REMOTE_INV] = { CQE_REM_ACCESS_ERR, 0, true },
	[BAD_SRQ] = { CQE_REM_INV_REQ_ERR, 0, true },
	[SHORT_RECEIVE] = { CQE_REM_INV_REQ_ERR, CQE_LOC_LEN_ERR, true },
	[BAD_RECEIVE] = { CQE_REM_OP_ERR, CQE_LOC_PROT_ERR, true },
};

/* What was seen in all runs: a workload that never does something proves nothing about it. */
static u32 seen_op[WR_OPCODES], seen_poison[POISONS], seen_transport[8];
static u64 seen_moves;

/* Where receives are posted: a QP's own queue or a shared one. WQE n takes slot n of the memory. */
struct inbox {
	struct side *owner;	/* own queue: whose */
	struct srq *srq;	/* or the shared one */
	struct watched_cq *cq;	/* XRC: where it completes */
	struct buffer *memory;
	u32 slots, posted, wanted;
	/* NO_SLOT, or the one that is posted with bad_length or a wrong key */
	u32 bad_slot;
	u32 bad_length;
	bool used[MAX_SLOTS];
};

struct op {
	u64 wr_id;
	u8 opcode, flags;
	u32 len, cqe_opcode;
	u32 sink, from_seen;	/* READ and atomics: offset in the sink */
};

struct message {
	struct inbox *inbox;
	struct cqe cqe;
	u32 from;		/* of its bytes in the source */
	u32 bytes;		/* that are placed; WRITE: none */
	bool uncertain;		/* an error that may find no receive */
};

/* One QP's outgoing work, and what is to come of it. */
struct flow {
	struct side *a, *b;	/* from, to */
	struct inbox *inbox[2];
	u32 num_inboxes;
	struct buffer *source;	/* a: what SENDs and WRITEs carry */
	struct buffer *sink;	/* a: where READs and atomics end */
	struct buffer *quarry;	/* b: what READs fetch */
	struct buffer *target;	/* b: where WRITEs end */
	struct buffer *counter; /* b: one word for atomics */
	struct mr *mw;		/* a: bound and invalidated by requests */
	struct mr *far_mw;	/* b: onto the target, until it is invalidated from a */
	bool mw_bound, far_bound;
	u32 mw_key;		/* as it is when all that was posted is done */
	u8 *want_sink, *want_target;
	u64 want_counter;
	u32 num_ops, posted;
	struct op op[MAX_OPS];
	struct message message[MAX_OPS];
	u32 num_messages;
	enum poison poison;
	u32 poison_at;		/* op that is to fail; num_ops if none was posted yet */
	bool poisoned, exact;
};

struct workload {
	struct world *w;
	struct rng r;
	struct pair pair[MAX_PAIRS];
	struct flow flow[MAX_FLOWS];
	struct inbox inbox[MAX_INBOX];
	u32 num_pairs, num_flows, num_inboxes;
	bool calm;
};

static struct buffer *zeroed(struct node *n, u32 len)
{
	struct buffer *b = world_buffer(n, len, ACCESS);

	memset(b->bytes, 0, len);
	return b;
}

static struct inbox *inbox_make(struct workload *l, struct node *n, struct side *owner,
				struct srq *srq, struct watched_cq *cq)
{
	struct inbox *i = &l->inbox[l->num_inboxes++];

	*i = (struct inbox){ .owner = owner, .srq = srq, .cq = cq, .bad_slot = NO_SLOT };
	i->slots = srq ? MAX_SLOTS : MAX_OPS;
	i->memory = zeroed(n, i->slots * SLOT);
	return i;
}

static void flow_make(struct workload *l, struct side *a, struct side *b, struct inbox *first,
		      struct inbox *second, bool sound)
{
	struct flow *f = &l->flow[l->num_flows++];
	struct rng *r = &l->r;
	bool is_uc = a->qp->transport == XROCE_UC;
	struct mr_table *far = engine_mr_table(b->node->engine);

	*f = (struct flow){ .a = a,
			    .b = b,
			    .inbox = { first, second },
			    .num_inboxes = second ? 2 : 1,
			    .num_ops = 1 + rng_below(r, MAX_OPS) };
	f->source = world_buffer(a->node, 2 * MAX_LENGTH, ACCESS);
	f->quarry = world_buffer(b->node, 2 * MAX_LENGTH, ACCESS);
	f->sink = zeroed(a->node, f->num_ops * SLOT);
	f->target = zeroed(b->node, f->num_ops * SLOT);
	f->counter = zeroed(b->node, 8);
	f->want_sink = calloc(f->num_ops, SLOT);
	f->want_target = calloc(f->num_ops, SLOT);
	assert_true(f->want_sink && f->want_target);
	assert_int_equal(mw_add(engine_mr_table(a->node->engine), PAIR_PD, MR_WINDOW_2, &f->mw), 0);
	assert_int_equal(mw_add(far, PAIR_PD, MR_WINDOW_2, &f->far_mw), 0);
	assert_int_equal(mw_bind(far, f->far_mw, f->far_mw->key, f->target->mr->key,
				 buffer_va(f->target), f->num_ops * SLOT, MR_REMOTE_WRITE,
				 b->qp->qpn),
			 0);
	f->far_bound = true;
	f->mw_key = f->mw->key;
	f->poison_at = f->num_ops;
	f->exact = true;
	if (sound || is_uc)
		return;
	f->poison = (enum poison)(1 + rng_below(r, POISONS - 1));
	if (f->poison == BAD_SRQ && a->qp->transport != XROCE_XRC)
		f->poison = BAD_RKEY;
	if ((f->poison == SHORT_RECEIVE || f->poison == BAD_RECEIVE) && !first->owner)
		f->poison = BAD_LKEY; /* who gets which WQE of a shared queue is not known */
	if (f->poison == SHORT_RECEIVE || f->poison == BAD_RECEIVE) {
		first->bad_slot = rng_below(r, f->num_ops);
		first->bad_length = f->poison == BAD_RECEIVE ? SLOT : rng_below(r, 1000);
	} else {
		f->poison_at = rng_below(r, f->num_ops);
	}
}

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

/* Cut len bytes at base + offset into up to three pieces. */
static void random_sges(struct rng *r, struct send *send, const struct buffer *b, u32 offset,
			u32 len)
{
	u32 n = 1 + rng_below(r, 3);

	for (u32 i = 0; i < n; i++) {
		u32 piece = i + 1 == n ? len : rng_below(r, len + 1);

		send->sge[send->num_sge++] = buffer_sge(b, offset, piece);
		offset += piece;
		len -= piece;
	}
}

static void expect_message(struct flow *f, struct inbox *inbox, const struct send *send, u32 opcode,
			   u32 len, u32 from)
{
	struct message *m = &f->message[f->num_messages++];
	bool imm = send->opcode == WR_SEND_WITH_IMM || send->opcode == WR_WRITE_WITH_IMM,
	     inv = send->opcode == WR_SEND_WITH_INV;

	*m = (struct message){ .inbox = inbox,
			       .from = from,
			       .bytes = opcode == CQE_RECV ? len : 0 };
	m->cqe = (struct cqe){ .opcode = opcode,
			       .byte_len = len,
			       .qpn = f->b->qp->qpn,
			       .src_qpn = f->a->qp->qpn,
			       .flags = imm ? CQE_WITH_IMM :
					inv ? CQE_WITH_INV :
					      0,
			       .imm = imm ? send->imm :
				      inv ? send->inv_rkey :
					    0 };
	inbox->wanted++;
}

static enum wr_opcode random_opcode(const struct flow *f, struct rng *r)
{
	static const enum wr_opcode all[] = { WR_SEND,	    WR_SEND,	     WR_SEND_WITH_IMM,
					      WR_WRITE,	    WR_WRITE,	     WR_WRITE_WITH_IMM,
					      WR_READ,	    WR_READ,	     WR_CMP_SWAP,
					      WR_FETCH_ADD, WR_ATOMIC_WRITE, WR_FLUSH,
					      WR_LOCAL_INV, WR_BIND_MW,	     WR_SEND_WITH_INV };
	static const enum wr_opcode uc[] = { WR_SEND_WITH_IMM, WR_WRITE_WITH_IMM, WR_WRITE,
					     WR_BIND_MW, WR_LOCAL_INV };
	enum wr_opcode op = f->a->qp->transport == XROCE_UC ? uc[rng_below(r, ARRAY_SIZE(uc))] :
							      all[rng_below(r, ARRAY_SIZE(all))];

	/* what can be done to a window depends on what was done before */
	if (op == WR_LOCAL_INV && !f->mw_bound)
		return WR_BIND_MW;
	if (op == WR_BIND_MW && f->mw_bound)
		return WR_LOCAL_INV;
	return op == WR_SEND_WITH_INV && !f->far_bound ? WR_SEND : op;
}

static enum wr_opcode poisoned_opcode(enum poison poison, struct rng *r)
{
	switch (poison) {
	case BAD_LKEY:
		return rng_below(r, 2) ? WR_SEND : WR_WRITE;
	case BAD_RKEY:
		return rng_below(r, 2) ? WR_WRITE_WITH_IMM :
		       rng_below(r, 2) ? WR_WRITE :
					 WR_FETCH_ADD;
	case BAD_READ_LKEY:
	case BAD_READ_RKEY:
		return WR_READ;
	case BAD_BIND:
		return WR_BIND_MW;
	case BAD_INV:
		return WR_LOCAL_INV;
	case BAD_REMOTE_INV:
		return WR_SEND_WITH_INV;
	default:
		return rng_below(r, 2) ? WR_SEND : WR_READ;
	}
}

/* The request's one mistake. It has at least one byte, so that all keys count. */
static void spoil(struct flow *f, struct send *send)
{
	switch (f->poison) {
	case BAD_LKEY:
	case BAD_READ_LKEY:
		for (u32 i = 0; i < send->num_sge; i++)
			send->sge[i].lkey ^= 1;
		break;
	case BAD_RKEY:
	case BAD_READ_RKEY:
		send->rkey ^= 0x100;
		break;
	case BAD_BIND:
		send->bind.lkey ^= 1;
		break;
	case BAD_INV:
	case BAD_REMOTE_INV:
		send->inv_rkey = f->source->mr->key; /* a region's, or nobody's */
		break;
	case BAD_SRQ:
		send->xrc_srqn ^= 0x800000;
		break;
	default:
		break;
	}
}

static bool is_send(enum wr_opcode op)
{
	return op == WR_SEND || op == WR_SEND_WITH_IMM || op == WR_SEND_WITH_INV;
}

/*
 * The request's remote half, executed by the oracle: what it leaves where, if it is executed at all
 * (run).
 */
static void plan(struct flow *f, struct rng *r, struct send *send, struct op *op,
		 struct inbox *inbox, u32 from, u32 at, bool run)
{
	u64 *word = &f->want_counter;

	switch (send->opcode) {
	case WR_SEND_WITH_INV:
		send->inv_rkey = f->far_mw->key;
		if (run)
			f->far_bound = false;
		/* fall through */
	case WR_SEND:
	case WR_SEND_WITH_IMM:
		if (run)
			expect_message(f, inbox, send, CQE_RECV, op->len, from);
		break;
	case WR_WRITE:
	case WR_WRITE_WITH_IMM:
		send->remote_addr = buffer_va(f->target) + at;
		send->rkey = f->far_bound && rng_below(r, 2) ? f->far_mw->key : f->target->mr->key;
		if (!run)
			break;
		memcpy(f->want_target + at, f->source->bytes + from, op->len);
		if (send->opcode == WR_WRITE_WITH_IMM)
			expect_message(f, inbox, send, CQE_RECV_WITH_IMM, op->len, 0);
		break;
	case WR_READ:
		if (f->posted && rng_below(r, 3) == 0) { /* what was written before must be seen */
			u32 slot = rng_below(r, f->posted) * SLOT;

			op->len = min_u32(op->len, MAX_LENGTH);
			send->remote_addr = buffer_va(f->target) + slot;
			send->rkey = f->target->mr->key;
			memcpy(f->want_sink + at, f->want_target + slot, op->len);
			break;
		}
		send->remote_addr = buffer_va(f->quarry) + from;
		send->rkey = f->quarry->mr->key;
		memcpy(f->want_sink + at, f->quarry->bytes + from, op->len);
		break;
	case WR_CMP_SWAP:
	case WR_FETCH_ADD:
	case WR_ATOMIC_WRITE:
		op->len = 8;
		send->remote_addr = buffer_va(f->counter);
		send->rkey = f->counter->mr->key;
		send->swap = rng_next(r);
		send->compare_add =
			send->opcode == WR_FETCH_ADD || rng_below(r, 3) == 0 ? rng_next(r) : *word;
		if (send->opcode != WR_ATOMIC_WRITE)
			memcpy(f->want_sink + at, word, 8);
		if (!run)
			break;
		if (send->opcode == WR_FETCH_ADD)
			*word += send->compare_add;
		else if (send->opcode == WR_ATOMIC_WRITE || send->compare_add == *word)
			*word = send->swap;
		break;
	case WR_FLUSH:
		op->len = rng_below(r, SLOT);
		send->compare_add = 1 + rng_below(r, 3);
		send->remote_addr = buffer_va(f->target);
		send->rkey = f->target->mr->key;
		break;
	case WR_BIND_MW:
		send->bind.mw_key = f->mw_key;
		send->bind.new_key = (f->mw_key & ~0xffu) | ((f->mw_key + 1) & 0xff);
		send->bind.lkey = f->sink->mr->key;
		send->bind.addr = buffer_va(f->sink);
		send->bind.length = 1 + rng_below(r, SLOT);
		send->bind.access = MR_REMOTE_READ;
		if (run)
			f->mw_key = send->bind.new_key, f->mw_bound = true;
		op->len = 0;
		break;
	default:
		send->inv_rkey = f->mw_key;
		if (run)
			f->mw_bound = false;
		op->len = 0;
		break;
	}
}

/* Post one random request; the oracle executes it at once. False if the queue is full. */
static bool post_random(struct flow *f, struct rng *r)
{
	static const u8 done_as[] = { [WR_SEND] = CQE_SEND,
				      [WR_SEND_WITH_IMM] = CQE_SEND,
				      [WR_SEND_WITH_INV] = CQE_SEND,
				      [WR_WRITE] = CQE_WRITE,
				      [WR_WRITE_WITH_IMM] = CQE_WRITE,
				      [WR_READ] = CQE_READ,
				      [WR_CMP_SWAP] = CQE_COMP_SWAP,
				      [WR_FETCH_ADD] = CQE_FETCH_ADD,
				      [WR_BIND_MW] = CQE_BIND_MW,
				      [WR_LOCAL_INV] = CQE_LOCAL_INV,
				      [WR_FLUSH] = CQE_FLUSH,
				      [WR_ATOMIC_WRITE] = CQE_ATOMIC_WRITE };
	struct inbox *inbox = f->inbox[rng_below(r, f->num_inboxes)];
	u32 from = rng_below(r, MAX_LENGTH), at = f->posted * SLOT + rng_below(r, 8);
	bool is_last = f->posted + 1 == f->num_ops, here = f->posted == f->poison_at,
	     run = !f->poisoned && !here;
	bool bad_receive = inbox->owner && f->num_messages == inbox->bad_slot && !f->poisoned;
	struct op *op = &f->op[f->posted];
	/*
	 * a READ fails with its answer: what is behind it may have been executed by then, and is to
	 * leave no trace
	 */
	bool traceless = f->poisoned && f->poison == BAD_READ_LKEY;
	struct send send = { .opcode = here	   ? poisoned_opcode(f->poison, r)
				       : traceless ? WR_READ
						   : random_opcode(f, r),
			     .imm = htobe32(f->posted) };

	if (!sq_slot(&f->a->qp->sq, 0))
		return false;
	if (bad_receive && (is_send(send.opcode) || send.opcode == WR_WRITE_WITH_IMM))
		send.opcode = WR_SEND;
	else
		bad_receive = false;
	send.wr_id = rng_next(r) << 8 | f->posted;
	send.flags = (rng_below(r, 3) || is_last ? WR_SIGNALED : 0) |
		     (rng_below(r, 8) ? 0 : WR_FENCE) | (rng_below(r, 8) ? 0 : WR_SOLICITED);
	*op = (struct op){ .wr_id = send.wr_id,
			   .opcode = send.opcode,
			   .flags = send.flags,
			   .cqe_opcode = done_as[send.opcode],
			   .sink = at,
			   .len = random_length(r, f->a->qp->path_mtu) };
	if (here)
		op->len += !op->len;
	if (bad_receive)
		op->len = 1 + (f->poison == SHORT_RECEIVE ? inbox->bad_length : 0) +
			  rng_below(r, 1000);
	send.xrc_srqn = inbox->srq ? inbox->srq->number : 0;
	plan(f, r, &send, op, inbox, from, at, run);
	if (op->opcode == WR_READ || op->opcode == WR_CMP_SWAP || op->opcode == WR_FETCH_ADD) {
		random_sges(r, &send, f->sink, at, op->len);
	} else if (op->opcode == WR_FLUSH || op->opcode == WR_ATOMIC_WRITE) {
		send.length = op->len;
	} else if (op->opcode != WR_BIND_MW && op->opcode != WR_LOCAL_INV) {
		if (op->len <= 64 && rng_below(r, 2) && !here) {
			send.flags |= WR_INLINE;
			send.inline_data = f->source->bytes + from;
			send.inline_len = op->len;
		} else {
			random_sges(r, &send, f->source, from, op->len);
		}
	}
	if (here)
		spoil(f, &send);
	if (bad_receive) {
		f->message[f->num_messages - 1].cqe.status = poisons[f->poison].receive;
		f->poison_at = f->posted;
	}
	if (here && f->poison == BAD_REMOTE_INV && op->len > f->a->qp->path_mtu) {
		/*
		 * found out with the last packet: the message had begun, and its receive fails with
		 * it
		 */
		expect_message(f, inbox, &send, CQE_RECV, op->len, from);
		f->message[f->num_messages - 1].cqe.status = CQE_LOC_ACCESS_ERR;
	}
	if (here && f->poison == BAD_RKEY && op->opcode == WR_WRITE_WITH_IMM &&
	    op->len <= f->a->qp->path_mtu) {
		/*
		 * refused with its only packet: it takes the receive for its data, if there is one
		 * by then
		 */
		expect_message(f, inbox, &send, CQE_RECV, 0, from);
		f->message[f->num_messages - 1].cqe.status = CQE_LOC_ACCESS_ERR;
		f->message[f->num_messages - 1].uncertain = true;
	}
	if (here || bad_receive) {
		f->poisoned = true;
		seen_poison[f->poison]++;
	}
	if (!f->poisoned)
		seen_op[send.opcode]++;
	post_send(f->a, &send);
	f->posted++;
	return true;
}

static void post_receive(struct inbox *i)
{
	u32 n = i->posted;
	struct sge sge;

	if (n == i->slots || !rq_slot(i->srq ? &i->srq->rq : &i->owner->qp->rq, 0))
		return;
	sge = buffer_sge(i->memory, n * SLOT, SLOT);
	if (n == i->bad_slot) {
		sge.length = i->bad_length;
		sge.lkey ^= i->bad_length == SLOT;
	}
	i->posted++;
	if (i->srq)
		post_srq_recv(i->srq, n, &sge, 1);
	else
		post_recv(i->owner, n, &sge, 1);
}

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
	 * The peer that refuses says so once and is dead: where packets get lost, what came before
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
 * Receives of one flow in one inbox: in order, each in a slot of its own, with its bytes and no
 * others.
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
	/* local requests do not wait for what the peer says of those before */
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
				shared[n] = inbox_make(l, &w->node[n], NULL,
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
					xrc[n] = inbox_make(l, &w->node[1], NULL,
							    world_xrc_srq(&w->node[1],
									  1 + rng_below(r, 16),
									  o->xrcd, PAIR_PD, c),
							    c);
			}
			flow_make(l, &p->side[0], &p->side[1], xrc[0], xrc[1], sound);
			continue;
		}
		own = use_srq ? shared[1] : inbox_make(l, &w->node[1], &p->side[1], NULL, NULL);
		flow_make(l, &p->side[0], &p->side[1], own, NULL, sound);
		if (!sound) /* the other way would end with the same error */
			continue;
		own = use_srq ? shared[0] : inbox_make(l, &w->node[0], &p->side[0], NULL, NULL);
		flow_make(l, &p->side[1], &p->side[0], own, NULL, sound);
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
				if (!post_random(f, r))
					break;
			random_drain(f, r);
			left += f->posted < f->num_ops || qp_state(f->a->qp) == QPS_SQD;
		}
		for (u32 i = 0; i < l->num_inboxes; i++) {
			for (u32 n = rng_below(r, 4); n--;)
				post_receive(&l->inbox[i]);
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
	 * Half of the engines do without some of what is above the plainest protocol, so that
	 * unequal peers meet.
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
