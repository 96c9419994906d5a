/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "rights.h"

#define ID	  5
#define RECV_ID	  6
#define BEHIND	  7	/* a SEND after the request, and its receive */
#define IMMEDIATE 0x1234

const enum wr_code *remote_ops_of(const struct wr_ends *e)
{
	static const enum wr_code reliable[] = {
		OP_WRITE,     OP_WRITE_IMM,    OP_READ,	 OP_CMP_SWP,
		OP_FETCH_ADD, OP_ATOMIC_WRITE, OP_FLUSH, OPS,
	};
	static const enum wr_code uc[] = { OP_WRITE, OP_WRITE_IMM, OPS };

	return e->type == IBV_QPT_UC ? uc : reliable;
}

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

static void add_send(struct wr_ends *e)
{
	e->ex->wr_id = BEHIND;
	e->ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(e->ex);
	wr_address(e);
	ibv_wr_set_sge(e->ex, e->mr[0]->lkey, (uintptr_t)e->buf[0], 0);
}

/* No right is needed to SEND; it takes this receive, the oldest that there is. */
static bool send_arrives(struct wr_ends *e, uint64_t recv_id)
{
	struct ibv_wc wc;

	MUST(wr_completed(e->cq[0], BEHIND, IBV_WC_SEND, &wc));
	MUST(wr_completed(e->cq[1], recv_id, IBV_WC_RECV, &wc));
	MUST_EQ(wc.byte_len, 0);
	return true;
}

/* The receive of a refused WRITE with immediate data is where it was: in the SRQ. */
static bool srq_has_it(struct wr_ends *e)
{
	const uint32_t named = e->srqn;

	MUST_EQ(ibv_get_srq_num(e->srq, &e->srqn), 0);
	ibv_wr_start(e->ex);
	add_send(e);
	MUST_EQ(ibv_wr_complete(e->ex), 0);
	e->srqn = named;
	return send_arrives(e, RECV_ID);
}

/*
 * A refusal: both ends are in error, and the peer's program gets an event. ibv_poll_cq(3): the
 * receive of a WRITE with a refused key is LOC_ACCESS_ERR; any other is flushed with its QP's.
 */
static bool ends_failed(struct wr_ends *e, enum wr_code op, int status)
{
	const bool stays = e->srq && status == DISABLED;
	struct ibv_wc wc;

	MUST(take_async(status == REFUSED ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR,
			e->qp[1]));
	MUST_EQ(qp_state_now(e->qp[1]), IBV_QPS_ERR);
	MUST_EQ(qp_state_now(e->qp[0]), IBV_QPS_ERR);
	if (op == OP_WRITE_IMM && !stays) {
		MUST(wait_wc(e->cq[1], &wc));
		MUST_EQ(wc.wr_id, RECV_ID);
		MUST_EQ(wc.status,
			status == REFUSED ? IBV_WC_LOC_ACCESS_ERR : IBV_WC_WR_FLUSH_ERR);
	}
	MUST(cq_is_empty(e->cq[0]) && cq_is_empty(e->cq[1]));
	MUST(wr_again(e));
	return op != OP_WRITE_IMM || !stays || srq_has_it(e);
}

/*
 * UC, which has no NAK (IBTA 9.9.3): a refused request is dropped, consumes no receive and is not
 * reported. The SEND after it shows when it has been processed.
 */
static bool ends_go_on(struct wr_ends *e, bool imm, bool refused)
{
	MUST(send_arrives(e, imm && refused ? RECV_ID : BEHIND));
	for (int i = 0; i < 2; i++)
		MUST_EQ(qp_state_now(e->qp[i]), IBV_QPS_RTS);
	return no_async_event();
}

static bool request_it(struct wr_ends *e, enum wr_code op, const struct wr_args *a, int status)
{
	const bool imm = op == OP_WRITE_IMM, is_uc = e->type == IBV_QPT_UC;

	if (imm)
		MUST_EQ(wr_recv(e, RECV_ID, 0), 0);
	if (is_uc && !(imm && status))
		MUST_EQ(wr_recv(e, BEHIND, 0), 0);
	ibv_wr_start(e->ex);
	e->ex->wr_id = ID;
	e->ex->wr_flags = IBV_SEND_SIGNALED;
	wr_build(e, op, a);
	wr_address(e);
	if (wr_ops[op].data != DATA_NONE)
		ibv_wr_set_sge(e->ex, e->mr[0]->lkey, (uintptr_t)e->buf[0], WORD_SIZE);
	if (is_uc)
		add_send(e);
	MUST_EQ(ibv_wr_complete(e->ex), 0);
	return true;
}

static bool immediate_came(struct wr_ends *e)
{
	struct ibv_wc wc;

	MUST(wr_completed(e->cq[1], RECV_ID, IBV_WC_RECV_RDMA_WITH_IMM, &wc));
	MUST_EQ(wc.byte_len, WORD_SIZE);
	MUST_EQ(wc.imm_data, htonl(IMMEDIATE));
	return true;
}

static bool try_quietly(struct wr_ends *e, enum wr_code op, uint32_t rkey, uint64_t remote,
			uint32_t at, int status)
{
	const bool imm = op == OP_WRITE_IMM, is_uc = e->type == IBV_QPT_UC;
	const uint64_t was = 0x1111111111111111, new = 0x2222222222222222;
	char *target = e->buf[1] + at, *local = e->buf[0];
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
	a.imm = htonl(IMMEDIATE);
	MUST(request_it(e, op, &a, status));
	MUST(wait_wc(e->cq[0], &wc));
	MUST_EQ(wc.status, is_uc ? IBV_WC_SUCCESS : status);
	MUST_EQ(wc.wr_id, ID);
	if (!status || is_uc)
		MUST_EQ(wc.opcode, wr_ops[op].completion);
	if (imm && !status)
		MUST(immediate_came(e));
	if (is_uc)
		MUST(ends_go_on(e, imm, status));
	memcpy(&now, target, WORD_SIZE);
	memcpy(&fetched, local, WORD_SIZE);
	want = op == OP_READ || op == OP_FLUSH || status ? was : new;
	MUST(now == want);
	want = (op == OP_READ || wr_ops[op].data == DATA_WORD) && !status ? was : new;
	MUST(fetched == want);
	if (status && !is_uc)
		return ends_failed(e, op, status);
	MUST(cq_is_empty(e->cq[0]) && cq_is_empty(e->cq[1]));
	return true;
}

bool try(struct wr_ends *e, enum wr_code op, uint32_t rkey, uint64_t remote, uint32_t at,
	 int status)
{
	bool good = try_quietly(e, op, rkey, remote, at, status);

	if (!good)
		printf("# ibv_wr_%s that ought to end with status %d, QP type %d of access %#x\n",
		       wr_ops[op].name, status, (int)e->type, (unsigned int)e->access);
	return good;
}

bool change_access(struct wr_ends *e, int access)
{
	struct ibv_qp_attr a = { .qp_access_flags = (unsigned int)access };

	MUST_EQ(ibv_modify_qp(e->qp[1], &a, IBV_QP_ACCESS_FLAGS), 0);
	e->access = access;
	return true;
}
