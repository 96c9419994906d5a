/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * The rights that count on XRC: ibv_create_srq_ex(3), ibv_open_xrcd(3) and the IBTA's annex A14.
 * Each request names an SRQ of the target QP's domain; keys are looked up in that SRQ's PD, and the
 * QP rights (ibv_modify_qp(3)) are the target's, whatever its peer grants. Regions, windows and
 * flags are in rights and rights_mw.
 */
#include "rights.h"

#define ALL (L_WRITE | R_WRITE | R_READ | R_ATOMIC | R_FLUSH)

/* An SRQ of a domain, with its own PD and all of end 1's memory registered there. */
struct other_srq {
	struct ibv_pd *pd;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	uint32_t srqn;
};

static bool other_open(struct other_srq *o, struct wr_ends *e, struct ibv_xrcd *xrcd)
{
	MUST(o->pd = ibv_alloc_pd(ctx));
	MUST(o->srq = xrc_srq(o->pd, xrcd, e->cq[1]));
	MUST(o->mr = ibv_reg_mr(o->pd, e->buf[1], BUF_BYTES, ALL));
	MUST_EQ(ibv_get_srq_num(o->srq, &o->srqn), 0);
	return true;
}

static bool other_close(struct other_srq *o)
{
	MUST_EQ(ibv_dereg_mr(o->mr), 0);
	MUST(!o->srq || !ibv_destroy_srq(o->srq));
	MUST_EQ(ibv_dealloc_pd(o->pd), 0);
	return true;
}

/* A request to this SRQ by this key: the receive of immediate data is the SRQ's, too. */
static bool try_srq(struct wr_ends *e, struct ibv_srq *srq, uint32_t srqn, enum wr_code op,
		    uint32_t rkey, int status)
{
	struct ibv_srq *own = e->srq;
	const uint32_t own_number = e->srqn;
	bool good;

	e->srq = srq;
	e->srqn = srqn;
	good = try(e, op, rkey, (uintptr_t)e->buf[1] + REMOTE_AT, REMOTE_AT, status);
	e->srq = own;
	e->srqn = own_number;
	return good;
}

/* Two SRQs of the domain, each with its PD; the key of either by the name of either. */
static bool named_pd(struct wr_ends *e)
{
	struct other_srq o = { 0 };

	MUST(other_open(&o, e, e->xrcd));
	for EACH_REMOTE_OP(e, op) {
		MUST(try_srq(e, e->srq, e->srqn, *op, e->mr[1]->rkey, IBV_WC_SUCCESS));
		MUST(try_srq(e, e->srq, e->srqn, *op, o.mr->rkey, REFUSED));
		MUST(try_srq(e, o.srq, o.srqn, *op, o.mr->rkey, IBV_WC_SUCCESS));
		MUST(try_srq(e, o.srq, o.srqn, *op, e->mr[1]->rkey, REFUSED));
	}
	return other_close(&o);
}

ON(XRC_SEND, keys_are_of_the_named_srqs_domain, named_pd)

/* A window of type 1 is its PD's: it opens by the name of an SRQ of that PD, and by no other. */
static bool named_window(struct wr_ends *e)
{
	struct ibv_mr *mr = ibv_reg_mr(e->pd, e->buf[1], BUF_BYTES, L_WRITE | MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(e->pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = { .wr_id = 3,
				    .send_flags = IBV_SEND_SIGNALED,
				    .bind_info = { mr, (uintptr_t)e->buf[1], BUF_BYTES,
						   R_WRITE | R_READ | R_ATOMIC } };
	struct other_srq o = { 0 };
	struct ibv_wc wc;

	MUST(mr && mw && other_open(&o, e, e->xrcd));
	MUST_EQ(ibv_bind_mw(e->qp[0], mw, &bind), 0);
	MUST(wr_completed(e->cq[0], 3, IBV_WC_BIND_MW, &wc));
	for EACH_REMOTE_OP(e, op) {
		if (*op == OP_FLUSH)
			continue; /* no right that a window gives */
		MUST(try_srq(e, e->srq, e->srqn, *op, mw->rkey, IBV_WC_SUCCESS));
		MUST(try_srq(e, o.srq, o.srqn, *op, mw->rkey, REFUSED));
	}
	MUST_EQ(ibv_dealloc_mw(mw), 0);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	return other_close(&o);
}

ON(XRC_SEND, windows_are_of_the_named_srqs_domain, named_window)

/*
 * An SRQ of another domain, or none any more: an invalid request, although each key has all rights.
 * The receive that immediate data would have taken, of an SRQ that is there, stays.
 */
static bool no_such_srq(struct wr_ends *e)
{
	struct ibv_xrcd_init_attr x = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
						     IBV_XRCD_INIT_ATTR_OFLAGS,
					.fd = -1,
					.oflags = O_CREAT };
	struct ibv_xrcd *xrcd = ibv_open_xrcd(ctx, &x);
	struct other_srq far = { 0 }, gone = { 0 };

	MUST(xrcd && other_open(&far, e, xrcd) && other_open(&gone, e, e->xrcd));
	MUST_EQ(ibv_destroy_srq(gone.srq), 0);
	gone.srq = NULL;
	for EACH_REMOTE_OP(e, op) {
		MUST(try_srq(e, e->srq, far.srqn, *op, far.mr->rkey, DISABLED));
		MUST(try_srq(e, e->srq, far.srqn, *op, e->mr[1]->rkey, DISABLED));
		MUST(try_srq(e, e->srq, gone.srqn, *op, e->mr[1]->rkey, DISABLED));
		MUST(try_srq(e, e->srq, e->srqn, *op, e->mr[1]->rkey, IBV_WC_SUCCESS));
	}
	MUST(other_close(&far) && other_close(&gone));
	return !ibv_close_xrcd(xrcd);
}

ON(XRC_SEND, an_srq_of_another_domain_is_no_target, no_such_srq)

static bool grant(struct wr_ends *e, int initiator, int target)
{
	struct ibv_qp_attr a = { .qp_access_flags = (unsigned int)initiator };

	MUST(change_access(e, target));
	MUST_EQ(ibv_modify_qp(e->qp[0], &a, IBV_QP_ACCESS_FLAGS), 0);
	return true;
}

/* Each right alone, of one end and of the other. */
static bool whose_grant(struct wr_ends *e)
{
	static const int rights[] = { R_WRITE, R_READ, R_ATOMIC, R_FLUSH };

	for (int i = 0; i < 4; i++)
		for EACH_REMOTE_OP(e, op) {
			const bool needed = right_of(*op) == rights[i];

			MUST(grant(e, ALL & ~rights[i], rights[i]));
			MUST(try_srq(e, e->srq, e->srqn, *op, e->mr[1]->rkey,
				     needed ? IBV_WC_SUCCESS : DISABLED));
			MUST(grant(e, rights[i], ALL & ~rights[i]));
			MUST(try_srq(e, e->srq, e->srqn, *op, e->mr[1]->rkey,
				     needed ? DISABLED : IBV_WC_SUCCESS));
		}
	return true;
}

ON(XRC_SEND, the_target_grants_and_not_the_initiator, whose_grant)

const struct test_case man_cases[] = {
	CASE(keys_are_of_the_named_srqs_domain),
	CASE(windows_are_of_the_named_srqs_domain),
	CASE(an_srq_of_another_domain_is_no_target),
	CASE(the_target_grants_and_not_the_initiator),
	{ 0 },
};
