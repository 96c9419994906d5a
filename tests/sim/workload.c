/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "workload.h"

#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

const struct poison_effect poisons[POISONS] = {
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

u32 seen_op[WR_OPCODES], seen_poison[POISONS];

static struct buffer *zeroed(struct node *n, u32 len)
{
	struct buffer *b = world_buffer(n, len, ACCESS);

	memset(b->bytes, 0, len);
	return b;
}

struct inbox *workload_inbox(struct workload *l, struct node *n, struct side *owner,
			     struct srq *srq, struct watched_cq *cq)
{
	struct inbox *i = &l->inbox[l->num_inboxes++];

	*i = (struct inbox){ .owner = owner, .srq = srq, .cq = cq, .bad_slot = NO_SLOT };
	i->slots = srq ? MAX_SLOTS : MAX_OPS;
	i->memory = zeroed(n, i->slots * SLOT);
	return i;
}

void workload_flow(struct workload *l, struct side *a, struct side *b, struct inbox *first,
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

	/* the possible operations on a window depend on earlier ones */
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
		send->inv_rkey = f->source->mr->key; /* a region's, or no key */
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
 * The request's remote half, executed by the oracle: its result and place, if it is executed at all
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
		if (f->posted && rng_below(r, 3) == 0) { /* earlier writes must be seen */
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
bool workload_post(struct flow *f, struct rng *r)
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
	 * a READ fails with its answer: later requests may have been executed by then, and must
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

void workload_receive(struct inbox *i)
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
