/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "rights.h"

#define ID	5
#define RECV_ID 6

const enum wr_code remote_ops[RIGHTS_N] = { OP_WRITE,	  OP_WRITE_IMM,	   OP_READ, OP_CMP_SWP,
					    OP_FETCH_ADD, OP_ATOMIC_WRITE, OP_FLUSH };

int right_of(enum wr_code op)
{
	switch (op) {
	case OP_WRITE:
	case OP_WRITE_IMM:
	case OP_ATOMIC_WRITE: return R_WRITE;
	case OP_READ: return R_READ;
	case OP_CMP_SWP:
	case OP_FETCH_ADD: return R_ATOMIC;
	case OP_FLUSH: return R_FLUSH;
	default: return 0;
	}
}

int subset(int bits, int i)
{
	int chosen = 0;

	for (int bit = 1; bit && bit <= bits; bit <<= 1)
		if (bits & bit) {
			if (i & 1)
				chosen |= bit;
			i >>= 1;
		}
	return i ? -1 : chosen;
}

bool may_be_registered(int access)
{
	return !(access & (R_WRITE | R_ATOMIC)) || access & L_WRITE;
}

/* A refusal: both ends are in error, and the peer's program is told by an event. */
static bool ends_failed(struct wr_ends *e, enum wr_code op, int status)
{
	struct ibv_wc wc;

	MUST(take_async(status == REFUSED ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR,
			e->qp[1]));
	MUST_EQ(qp_state_now(e->qp[1]), IBV_QPS_ERR);
	MUST_EQ(qp_state_now(e->qp[0]), IBV_QPS_ERR);
	if (op == OP_WRITE_IMM) {
		MUST(wait_wc(e->cq[1], &wc));
		MUST_EQ(wc.wr_id, RECV_ID);
		MUST(wc.status != IBV_WC_SUCCESS);
	}
	MUST(cq_is_empty(e->cq[0]) && cq_is_empty(e->cq[1]));
	return wr_again(e);
}

static bool try_quietly(struct wr_ends *e, enum wr_code op, uint32_t rkey, uint64_t remote,
			uint32_t at, int status)
{
	char *target = e->buf[1] + at, *local = e->buf[0];
	const uint64_t was = 0x1111111111111111, new = 0x2222222222222222;
	struct wr_args a = wr_args_of(e, op);
	uint64_t now, fetched, want;
	struct ibv_wc wc;

	memcpy(target, &was, WORD_SIZE);
	memcpy(local, &new, WORD_SIZE);
	a.rkey = rkey;
	a.remote = remote;
	a.compare = was;
	a.swap_or_add = op == OP_FETCH_ADD ? was : new;
	a.word = &new;
	if (op == OP_WRITE_IMM)
		MUST_EQ(wr_recv(e, RECV_ID, 0), 0);
	ibv_wr_start(e->ex);
	e->ex->wr_id = ID;
	e->ex->wr_flags = IBV_SEND_SIGNALED;
	wr_build(e, op, &a);
	if (wr_ops[op].data != DATA_NONE)
		ibv_wr_set_sge(e->ex, e->mr[0]->lkey, (uintptr_t)local, WORD_SIZE);
	MUST_EQ(ibv_wr_complete(e->ex), 0);
	MUST(wait_wc(e->cq[0], &wc));
	MUST_EQ(wc.status, status);
	MUST_EQ(wc.wr_id, ID);
	memcpy(&now, target, WORD_SIZE);
	memcpy(&fetched, local, WORD_SIZE);
	want = op == OP_READ || op == OP_FLUSH || status ? was : new;
	MUST(now == want);
	want = (op == OP_READ || wr_ops[op].data == DATA_WORD) && !status ? was : new;
	MUST(fetched == want);
	if (status)
		return ends_failed(e, op, status);
	MUST_EQ(wc.opcode, wr_ops[op].completion);
	if (op == OP_WRITE_IMM) {
		MUST(wr_completed(e->cq[1], RECV_ID, IBV_WC_RECV_RDMA_WITH_IMM, &wc));
		MUST_EQ(wc.byte_len, WORD_SIZE);
	}
	MUST(cq_is_empty(e->cq[0]) && cq_is_empty(e->cq[1]));
	return true;
}

bool try(struct wr_ends *e, enum wr_code op, uint32_t rkey, uint64_t remote, uint32_t at,
	 int status)
{
	bool good = try_quietly(e, op, rkey, remote, at, status);

	if (!good)
		printf("# ibv_wr_%s that ought to end with status %d, QP access %#x\n",
		       wr_ops[op].name, status, (unsigned int)e->access);
	return good;
}

bool on_rc(bool (*body)(struct wr_ends *e))
{
	struct wr_ends e;
	bool good = wr_open(&e, IBV_QPT_RC, wr_ops_of(IBV_QPT_RC)) && body(&e);

	return wr_close(&e) && good;
}
