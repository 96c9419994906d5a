/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Access rights: every combination of a region's and a QP's flags against every operation. What
 * must happen is computed from the definition: ibv_reg_mr(3) for what can be registered;
 * IBTA, 9.7.5.2 and 10.6: an operation needs its right of the R_Key ("remote access error") and of
 * the responder's QP ("invalid request", which is looked at first); local read is always given,
 * local write is what receives and answers need.
 */
#include "rights.h"

#define REGION_FLAGS (L_WRITE | R_WRITE | R_READ | R_ATOMIC | MW_BIND | R_FLUSH)
#define QP_FLAGS     (R_WRITE | R_READ | R_ATOMIC | R_FLUSH)

static int expected(enum wr_code op, int key, int qp)
{
	const int right = right_of(op);

	return !(qp & right) ? DISABLED : !(key & right) ? REFUSED : IBV_WC_SUCCESS;
}

/* RTS to RTS: the rights of a QP that is at work. */
static bool change_access(struct wr_ends *e, int access)
{
	struct ibv_qp_attr a = { .qp_access_flags = (unsigned int)access };

	MUST_EQ(ibv_modify_qp(e->qp[1], &a, IBV_QP_ACCESS_FLAGS), 0);
	e->access = access;
	return true;
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
			for (int o = 0; o < RIGHTS_N; o++)
				if (!try(e, remote_ops[o], mr->rkey, remote, REMOTE_AT,
					 expected(remote_ops[o], access, rights))) {
					printf("# a region of access %#x\n", (unsigned int)access);
					return false;
				}
		}
		MUST_EQ(ibv_dereg_mr(mr), 0);
	}
	return true;
}

ON_RC(region_and_queue_pair_against_each_operation, registered)

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
		for (int o = 0; o < RIGHTS_N; o++)
			MUST(try(e, remote_ops[o], mr->rkey, (uintptr_t)e->buf[1] + REMOTE_AT,
				 REMOTE_AT, expected(remote_ops[o], access, ~0)));
	}
	return !ibv_dereg_mr(mr);
}

ON_RC(what_reregistering_gives_and_takes, reregistered)

/* A region's own place: ZERO_BASED moves the addresses, and the rights go with them. */
static bool zero_based(struct wr_ends *e)
{
	const int some[] = { L_WRITE, L_WRITE | R_WRITE, R_READ, L_WRITE | R_ATOMIC | R_FLUSH };
	const uint64_t plain = (uintptr_t)e->buf[1] + REMOTE_AT;

	for (int i = 0; i < 4; i++) {
		struct ibv_mr *mr = ibv_reg_mr(e->pd, e->buf[1], BUF_BYTES,
					       some[i] | IBV_ACCESS_ZERO_BASED);

		MUST(mr);
		for (int o = 0; o < RIGHTS_N; o++) {
			MUST(try(e, remote_ops[o], mr->rkey, REMOTE_AT, REMOTE_AT,
				 expected(remote_ops[o], some[i], ~0)));
			MUST(try(e, remote_ops[o], mr->rkey, plain, REMOTE_AT, REFUSED));
		}
		MUST_EQ(ibv_dereg_mr(mr), 0);
	}
	return true;
}

ON_RC(zero_based_regions_have_rights_at_their_offsets, zero_based)

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
	for (int o = 0; o < RIGHTS_N; o++) {
		const enum wr_code op = remote_ops[o];
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

ON_RC(keys_that_are_not_good_here, others)

/* ---- at home ---- */

enum home { SEND_OF, WRITE_OF, READ_INTO, SWAP_INTO, ADD_INTO, HOMES };

/* "Local read access is always enabled": what is written at home needs IBV_ACCESS_LOCAL_WRITE. */
static bool use_at_home(struct wr_ends *e, enum home use, struct ibv_mr *mr, bool may_write)
{
	static const enum wr_code ops[HOMES] = { OP_SEND, OP_WRITE, OP_READ, OP_CMP_SWP,
						 OP_FETCH_ADD };
	const bool writes = use >= READ_INTO;
	struct wr_args a = wr_args_of(e, ops[use]);
	char *local = e->buf[0] + 1024;
	struct ibv_wc wc;

	memset(local, 'h', WORD_SIZE);
	memset(e->buf[1] + REMOTE_AT, 'r', WORD_SIZE);
	if (use == SEND_OF)
		MUST_EQ(wr_recv(e, 1, 100), 0);
	ibv_wr_start(e->ex);
	e->ex->wr_id = 2;
	e->ex->wr_flags = IBV_SEND_SIGNALED;
	wr_build(e, ops[use], &a);
	ibv_wr_set_sge(e->ex, mr->lkey, (uintptr_t)local, WORD_SIZE);
	MUST_EQ(ibv_wr_complete(e->ex), 0);
	MUST(wait_wc(e->cq[0], &wc));
	MUST_EQ(wc.wr_id, 2);
	MUST_EQ(wc.status, !writes || may_write ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
	MUST_EQ(memcmp(local, writes && may_write ? "rrrrrrrr" : "hhhhhhhh", WORD_SIZE), 0);
	if (use == SEND_OF) {
		MUST(wr_completed(e->cq[1], 1, IBV_WC_RECV, &wc));
		MUST_EQ(memcmp(e->buf[1], local, WORD_SIZE), 0);
	} else if (use == WRITE_OF) {
		MUST_EQ(memcmp(e->buf[1] + REMOTE_AT, local, WORD_SIZE), 0);
	}
	return !writes || may_write || wr_again(e);
}

static bool receive_into(struct wr_ends *e, struct ibv_mr *mr, bool may_write)
{
	struct ibv_sge sge = { (uintptr_t)e->buf[0], WORD_SIZE, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_wc wc;

	memset(e->buf[0], 'h', WORD_SIZE);
	MUST_EQ(ibv_post_recv(e->qp[1], &wr, &bad), 0);
	ibv_wr_start(e->ex);
	e->ex->wr_id = 2;
	e->ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(e->ex);
	ibv_wr_set_inline_data(e->ex, "received", WORD_SIZE);
	MUST_EQ(ibv_wr_complete(e->ex), 0);
	MUST(wait_wc(e->cq[0], &wc));
	MUST_EQ(wc.status, may_write ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR);
	MUST(wait_wc(e->cq[1], &wc));
	MUST_EQ(wc.wr_id, 1);
	MUST_EQ(wc.status, may_write ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
	MUST_EQ(memcmp(e->buf[0], may_write ? "received" : "hhhhhhhh", WORD_SIZE), 0);
	return may_write || wr_again(e);
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
			if (!use_at_home(e, use, mr, may_write)) {
				printf("# use %d of a region of access %#x\n", use,
				       (unsigned int)access);
				return false;
			}
		MUST(receive_into(e, mr, may_write));
		MUST_EQ(ibv_dereg_mr(mr), 0);
	}
	return true;
}

ON_RC(local_write_is_needed_where_it_is_written, at_home)

const struct test_case man_cases[] = {
	CASE(region_and_queue_pair_against_each_operation),
	CASE(what_reregistering_gives_and_takes),
	CASE(zero_based_regions_have_rights_at_their_offsets),
	CASE(keys_that_are_not_good_here),
	CASE(local_write_is_needed_where_it_is_written),
	{ 0 },
};
