/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * Access rights: every combination of a region's and a QP's flags against every operation, on RC,
 * UC and XRC. The expected result is computed from the definition: ibv_reg_mr(3) for valid
 * registrations; IBTA, 9.7.5.2 and 10.6: an operation needs its right of the R_Key ("remote access
 * error") and of the responder's QP ("invalid request", which is checked first); 9.9.3: UC drops a
 * request without a right; local read is always given, receives and answers need local write.
 */
#include "rights.h"

#define REGION_FLAGS (L_WRITE | R_WRITE | R_READ | R_ATOMIC | MW_BIND | R_FLUSH)
#define QP_FLAGS     (R_WRITE | R_READ | R_ATOMIC | R_FLUSH)

static int expected(enum wr_code op, int key, int qp)
{
	const int right = right_of(op);

	return !(qp & right) ? DISABLED : !(key & right) ? REFUSED : IBV_WC_SUCCESS;
}

static bool registered(struct wr_ends *e)
{
	const uint64_t remote = (uintptr_t)e->buf[1] + REMOTE_AT;
	int access, rights;

	for (int i = 0; (access = subset(REGION_FLAGS, i)) >= 0; i++) {
		struct ibv_mr *mr;

		if (!may_be_registered(access)) {
			MUST_FAIL(ibv_reg_mr(e->pd, e->buf[1], BUF_BYTES, access), EINVAL);
			continue;
		}
		MUST(mr = ibv_reg_mr(e->pd, e->buf[1], BUF_BYTES, access));
		for (int q = 0; (rights = subset(QP_FLAGS, q)) >= 0; q++) {
			MUST(change_access(e, rights));
			for EACH_REMOTE_OP(e, op)
				if (!try(e, *op, mr->rkey, remote, REMOTE_AT,
					 expected(*op, access, rights))) {
					printf("# a region of access %#x\n", (unsigned int)access);
					return false;
				}
		}
		MUST_EQ(ibv_dereg_mr(mr), 0);
	}
	return true;
}

ON(RC, region_and_queue_pair_against_each_operation, registered)
ON(UC, uc_region_and_queue_pair_against_each_operation, registered)
ON(XRC_SEND, xrc_region_and_queue_pair_against_each_operation, registered)

/* IBV_REREG_MR_CHANGE_ACCESS: the new rights hold, the old ones do not. */
static bool reregistered(struct wr_ends *e)
{
	struct ibv_mr *mr = ibv_reg_mr(e->pd, e->buf[1], BUF_BYTES, 0);
	int access;

	MUST(mr);
	for (int i = 0; (access = subset(REGION_FLAGS, i * 29 % 64)) >= 0 && i < 64; i++) {
		if (!may_be_registered(access)) {
			MUST(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, access));
			continue;
		}
		MUST_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, access), 0);
		for EACH_REMOTE_OP(e, op)
			MUST(try(e, *op, mr->rkey, (uintptr_t)e->buf[1] + REMOTE_AT, REMOTE_AT,
				 expected(*op, access, ~0)));
	}
	return !ibv_dereg_mr(mr);
}

ON(RC, what_reregistering_gives_and_takes, reregistered)
ON(UC, uc_what_reregistering_gives_and_takes, reregistered)
ON(XRC_SEND, xrc_what_reregistering_gives_and_takes, reregistered)

/* A region's own place: ZERO_BASED moves the addresses, and the rights go with them. */
static bool zero_based(struct wr_ends *e)
{
	const int some[] = { L_WRITE, L_WRITE | R_WRITE, R_READ, L_WRITE | R_ATOMIC | R_FLUSH };
	const uint64_t plain = (uintptr_t)e->buf[1] + REMOTE_AT;

	for (int i = 0; i < 4; i++) {
		struct ibv_mr *mr = ibv_reg_mr(e->pd, e->buf[1], BUF_BYTES,
					       some[i] | IBV_ACCESS_ZERO_BASED);

		MUST(mr);
		for EACH_REMOTE_OP(e, op) {
			MUST(try(e, *op, mr->rkey, REMOTE_AT, REMOTE_AT,
				 expected(*op, some[i], ~0)));
			MUST(try(e, *op, mr->rkey, plain, REMOTE_AT, REFUSED));
		}
		MUST_EQ(ibv_dereg_mr(mr), 0);
	}
	return true;
}

ON(RC, zero_based_regions_have_rights_at_their_offsets, zero_based)
ON(UC, uc_zero_based_regions_have_rights_at_their_offsets, zero_based)
ON(XRC_SEND, xrc_zero_based_regions_have_rights_at_their_offsets, zero_based)

/* All rights, and yet not: a key of another PD, of nothing any more, bytes outside. */
static bool others(struct wr_ends *e)
{
	const int all = L_WRITE | R_WRITE | R_READ | R_ATOMIC | R_FLUSH;
	const uint64_t base = (uintptr_t)e->buf[1];
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *foreign, *part, *gone;

	MUST(pd);
	MUST(foreign = ibv_reg_mr(pd, e->buf[1], BUF_BYTES, all));
	MUST(part = ibv_reg_mr(e->pd, e->buf[1] + REMOTE_AT, 64, all));
	for EACH_REMOTE_OP(e, each) {
		const enum wr_code op = *each;
		uint32_t rkey;

		MUST(try(e, op, foreign->rkey, base + REMOTE_AT, REMOTE_AT, REFUSED));
		MUST(try(e, op, part->rkey, base + REMOTE_AT, REMOTE_AT, IBV_WC_SUCCESS));
		MUST(try(e, op, part->rkey, base + REMOTE_AT + 56, REMOTE_AT + 56,
			 IBV_WC_SUCCESS));
		MUST(try(e, op, part->rkey, base + REMOTE_AT - 8, REMOTE_AT - 8, REFUSED));
		MUST(try(e, op, part->rkey, base + REMOTE_AT + 64, REMOTE_AT + 64, REFUSED));
		MUST(try(e, op, part->rkey, (uint64_t)-8, REMOTE_AT, REFUSED));
		MUST(try(e, op, part->rkey ^ 1, base + REMOTE_AT, REMOTE_AT, REFUSED));
		MUST(gone = ibv_reg_mr(e->pd, e->buf[1], BUF_BYTES, all));
		rkey = gone->rkey;
		MUST(try(e, op, rkey, base + REMOTE_AT, REMOTE_AT, IBV_WC_SUCCESS));
		MUST_EQ(ibv_dereg_mr(gone), 0);
		MUST(try(e, op, rkey, base + REMOTE_AT, REMOTE_AT, REFUSED));
	}
	MUST_EQ(ibv_dereg_mr(part), 0);
	MUST_EQ(ibv_dereg_mr(foreign), 0);
	return !ibv_dealloc_pd(pd);
}

ON(RC, keys_that_are_not_good_here, others)
ON(UC, uc_keys_that_are_not_good_here, others)
ON(XRC_SEND, xrc_keys_that_are_not_good_here, others)

/* ---- at home ---- */

enum home { SEND_OF, WRITE_OF, READ_INTO, SWAP_INTO, ADD_INTO, HOMES };

/* Not on UC, which fetches nothing. Its WRITE has immediate data, to say when it is there. */
static enum wr_code home_op(const struct wr_ends *e, enum home use)
{
	static const enum wr_code ops[HOMES] = { OP_SEND, OP_WRITE, OP_READ, OP_CMP_SWP,
						 OP_FETCH_ADD };

	if (e->type != IBV_QPT_UC)
		return ops[use];
	return use == SEND_OF ? OP_SEND : use == WRITE_OF ? OP_WRITE_IMM : OPS;
}

/* "Local read access is always enabled": local writes need IBV_ACCESS_LOCAL_WRITE. */
static bool use_at_home(struct wr_ends *e, enum home use, struct ibv_mr *mr, bool may_write)
{
	const enum wr_code op = home_op(e, use);
	const bool writes = use >= READ_INTO;
	struct wr_args a = wr_args_of(e, op);
	char *local = e->buf[0] + 1024;
	struct ibv_wc wc;

	memset(local, 'h', WORD_SIZE);
	memset(e->buf[1] + REMOTE_AT, 'r', WORD_SIZE);
	if (wr_ops[op].receives)
		MUST_EQ(wr_recv(e, 1, 100), 0);
	ibv_wr_start(e->ex);
	e->ex->wr_id = 2;
	e->ex->wr_flags = IBV_SEND_SIGNALED;
	wr_build(e, op, &a);
	wr_address(e);
	ibv_wr_set_sge(e->ex, mr->lkey, (uintptr_t)local, WORD_SIZE);
	MUST_EQ(ibv_wr_complete(e->ex), 0);
	MUST(wait_wc(e->cq[0], &wc));
	MUST_EQ(wc.wr_id, 2);
	MUST_EQ(wc.status, !writes || may_write ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
	MUST_EQ(memcmp(local, writes && may_write ? "rrrrrrrr" : "hhhhhhhh", WORD_SIZE), 0);
	if (wr_ops[op].receives)
		MUST(wr_completed(e->cq[1], 1,
				  op == OP_SEND ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM, &wc));
	if (use <= WRITE_OF)
		MUST_EQ(memcmp(e->buf[1] + (use == SEND_OF ? 0 : REMOTE_AT), local, WORD_SIZE), 0);
	return !writes || may_write || wr_again(e);
}

static bool receive_into(struct wr_ends *e, struct ibv_mr *mr, bool may_write)
{
	struct ibv_sge sge = { (uintptr_t)e->buf[0], WORD_SIZE, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_wc wc;

	memset(e->buf[0], 'h', WORD_SIZE);
	MUST_EQ(e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) :
			 ibv_post_recv(e->qp[1], &wr, &bad),
		0);
	ibv_wr_start(e->ex);
	e->ex->wr_id = 2;
	e->ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(e->ex);
	wr_address(e);
	ibv_wr_set_inline_data(e->ex, "received", WORD_SIZE);
	MUST_EQ(ibv_wr_complete(e->ex), 0);
	MUST(wait_wc(e->cq[0], &wc));
	MUST_EQ(wc.status, may_write || e->type == IBV_QPT_UC ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR);
	MUST(wait_wc(e->cq[1], &wc));
	MUST_EQ(wc.wr_id, 1);
	MUST_EQ(wc.status, may_write ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
	MUST_EQ(memcmp(e->buf[0], may_write ? "received" : "hhhhhhhh", WORD_SIZE), 0);
	if (may_write)
		return true;
	MUST_EQ(qp_state_now(e->qp[1]), IBV_QPS_ERR);
	return wr_again(e);
}

static bool at_home(struct wr_ends *e)
{
	int access;

	for (int i = 0; (access = subset(REGION_FLAGS, i)) >= 0; i++) {
		const bool may_write = access & L_WRITE;
		struct ibv_mr *mr;

		if (!may_be_registered(access))
			continue;
		MUST(mr = ibv_reg_mr(e->pd, e->buf[0], BUF_BYTES, access));
		for (enum home use = 0; use < HOMES; use++)
			if (home_op(e, use) != OPS && !use_at_home(e, use, mr, may_write)) {
				printf("# use %d of a region of access %#x\n", use,
				       (unsigned int)access);
				return false;
			}
		MUST(receive_into(e, mr, may_write));
		MUST_EQ(ibv_dereg_mr(mr), 0);
	}
	return true;
}

ON(RC, local_write_is_needed_where_it_is_written, at_home)
ON(UC, uc_local_write_is_needed_where_it_is_written, at_home)
ON(XRC_SEND, xrc_local_write_is_needed_where_it_is_written, at_home)

/* ---- what UC has not ---- */

/*
 * ibv_create_qp_ex(3) refuses a QP that is to have them (wr_create); posted by ibv_post_send(3)
 * they fail in their turn, whatever the rights (docs/verbs.md), and the QP is in SQE as after other
 * faults of UC's requester. The other end is not asked.
 */
static bool fetched(struct wr_ends *e)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
						      IBV_WR_ATOMIC_FETCH_AND_ADD,
						      IBV_WR_ATOMIC_WRITE };
	const uint64_t remote = (uintptr_t)e->buf[1] + REMOTE_AT;
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS };
	struct ibv_wc wc;

	for (int i = 0; i < 4; i++) {
		struct ibv_sge sge = { (uintptr_t)e->buf[0], WORD_SIZE, e->mr[0]->lkey };
		struct ibv_send_wr wr = { .wr_id = 9, .sg_list = &sge, .num_sge = 1 }, *bad;

		wr.opcode = opcodes[i];
		if (i == 1 || i == 2) {
			wr.wr.atomic.remote_addr = remote;
			wr.wr.atomic.rkey = e->mr[1]->rkey;
			wr.wr.atomic.compare_add = 0x7272727272727272;
		} else {
			wr.wr.rdma.remote_addr = remote;
			wr.wr.rdma.rkey = e->mr[1]->rkey;
		}
		memset(e->buf[0], 'h', WORD_SIZE);
		memset(e->buf[1] + REMOTE_AT, 'r', WORD_SIZE);
		MUST_EQ(ibv_post_send(e->qp[0], &wr, &bad), 0);
		MUST(wait_wc(e->cq[0], &wc));
		MUST_EQ(wc.wr_id, 9);
		MUST_EQ(wc.status, IBV_WC_LOC_QP_OP_ERR);
		MUST_EQ(qp_state_now(e->qp[0]), IBV_QPS_SQE);
		MUST_EQ(qp_state_now(e->qp[1]), IBV_QPS_RTS);
		MUST_EQ(ibv_modify_qp(e->qp[0], &a, IBV_QP_STATE), 0);
		MUST(wr_nothing_was_posted(e) && no_async_event());
		MUST_EQ(memcmp(e->buf[1] + REMOTE_AT, "rrrrrrrr", WORD_SIZE), 0);
		MUST_EQ(memcmp(e->buf[0] + 5, "hhh", 3), 0); /* after the probe */
	}
	return true;
}

ON(UC, uc_fetches_nothing_whatever_the_rights, fetched)

const struct test_case man_cases[] = {
	CASE(region_and_queue_pair_against_each_operation),
	CASE(uc_region_and_queue_pair_against_each_operation),
	CASE(xrc_region_and_queue_pair_against_each_operation),
	CASE(what_reregistering_gives_and_takes),
	CASE(uc_what_reregistering_gives_and_takes),
	CASE(xrc_what_reregistering_gives_and_takes),
	CASE(zero_based_regions_have_rights_at_their_offsets),
	CASE(uc_zero_based_regions_have_rights_at_their_offsets),
	CASE(xrc_zero_based_regions_have_rights_at_their_offsets),
	CASE(keys_that_are_not_good_here),
	CASE(uc_keys_that_are_not_good_here),
	CASE(xrc_keys_that_are_not_good_here),
	CASE(local_write_is_needed_where_it_is_written),
	CASE(uc_local_write_is_needed_where_it_is_written),
	CASE(xrc_local_write_is_needed_where_it_is_written),
	CASE(uc_fetches_nothing_whatever_the_rights),
	{ 0 },
};
