/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * Access rights of memory windows of both types on RC, UC and XRC, from ibv_bind_mw(3): every
 * combination of the region's flags with the window's, each operation against the bound flags, and
 * with every combination of the QP's flags. The region's own remote rights do not matter to its
 * windows; "must have been registered with IBV_ACCESS_MW_BIND", remote write and atomics "require
 * local write access to the MR".
 */
#include "rights.h"

#define REGION_FLAGS (L_WRITE | R_WRITE | R_READ | R_ATOMIC | MW_BIND)
#define WINDOW_FLAGS (R_WRITE | R_READ | R_ATOMIC)
#define QP_FLAGS     (R_WRITE | R_READ | R_ATOMIC | R_FLUSH)
#define FAR_AT	     1024u
#define FAR_SIZE     256u

/* The end that binds: an XRC target posts nothing, so that its peer, of the same PD, does. */
static int binder(const struct wr_ends *e)
{
	return e->type != IBV_QPT_XRC_SEND;
}

/* The completion's status. The window's key is mw->rkey then. */
static int bind_to(struct wr_ends *e, struct ibv_mw *mw, struct ibv_mr *mr, int access)
{
	struct ibv_mw_bind_info info = { mr, (uintptr_t)e->buf[1] + FAR_AT, FAR_SIZE,
					 (unsigned int)access };
	struct ibv_mw_bind one = { .wr_id = 3, .send_flags = IBV_SEND_SIGNALED,
				   .bind_info = info };
	struct ibv_send_wr two = { .wr_id = 3, .send_flags = IBV_SEND_SIGNALED,
				   .opcode = IBV_WR_BIND_MW }, *bad;
	struct ibv_wc wc;

	two.bind_mw.mw = mw;
	two.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	two.bind_mw.bind_info = info;
	if (mw->type == IBV_MW_TYPE_1 ? ibv_bind_mw(e->qp[binder(e)], mw, &one) :
					ibv_post_send(e->qp[binder(e)], &two, &bad))
		return -1;
	if (!wait_wc(e->cq[binder(e)], &wc) || wc.wr_id != 3)
		return -1;
	return (int)wc.status;
}

/* "fails if any memory window is still bound to this MR": unbound by its owner, with the window */
static bool unbind(struct ibv_mw *mw, struct ibv_mr *mr)
{
	MUST_EQ(ibv_dereg_mr(mr), EBUSY);
	MUST_EQ(ibv_dealloc_mw(mw), 0);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	return true;
}

static int expected(enum wr_code op, int window, int qp)
{
	const int right = right_of(op);

	return !(qp & right) ? DISABLED : !(window & right) ? REFUSED : IBV_WC_SUCCESS;
}

static bool each_operation(struct wr_ends *e, const struct ibv_mw *mw, int window)
{
	/* one of type 2 is for the QP that bound it alone, which is never an XRC target */
	const int opens = e->type == IBV_QPT_XRC_SEND && mw->type == IBV_MW_TYPE_2 ? 0 : window;

	for EACH_REMOTE_OP(e, op)
		if (!try(e, *op, mw->rkey, (uintptr_t)e->buf[1] + FAR_AT + 8, FAR_AT + 8,
			 expected(*op, opens, e->access))) {
			printf("# a window of type %d and access %#x\n", mw->type,
			       (unsigned int)window);
			return false;
		}
	return true;
}

static bool can_be_bound(int region, int window)
{
	return region & MW_BIND && (!(window & (R_WRITE | R_ATOMIC)) || region & L_WRITE);
}

static bool regions(struct wr_ends *e, enum ibv_mw_type type)
{
	int region, window;

	for (int i = 0; (region = subset(REGION_FLAGS, i)) >= 0; i++)
		for (int w = 0; may_be_registered(region) &&
				(window = subset(WINDOW_FLAGS, w)) >= 0; w++) {
			struct ibv_mr *mr = ibv_reg_mr(e->pd, e->buf[1], BUF_BYTES, region);
			struct ibv_mw *mw = ibv_alloc_mw(e->pd, type);
			const bool can = can_be_bound(region, window);

			MUST(mr && mw);
			MUST_EQ(bind_to(e, mw, mr, window),
				can ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR);
			if (can) {
				MUST(each_operation(e, mw, window));
				MUST(unbind(mw, mr));
			} else {
				MUST(wr_again(e));
				MUST_EQ(ibv_dereg_mr(mr), 0);
				MUST_EQ(ibv_dealloc_mw(mw), 0);
			}
		}
	return true;
}

static bool type1(struct wr_ends *e)
{
	return regions(e, IBV_MW_TYPE_1);
}

ON(RC, type1_region_and_window_against_each_operation, type1)
ON(UC, uc_type1_region_and_window_against_each_operation, type1)
ON(XRC_SEND, xrc_type1_region_and_window_against_each_operation, type1)

static bool type2(struct wr_ends *e)
{
	return regions(e, IBV_MW_TYPE_2);
}

ON(RC, type2_region_and_window_against_each_operation, type2)
ON(UC, uc_type2_region_and_window_against_each_operation, type2)
ON(XRC_SEND, xrc_type2_region_and_window_against_each_operation, type2)

/* The QP's flags: a key that would allow it does not help. */
static bool queue_pairs(struct wr_ends *e)
{
	int window, rights;

	for (int type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++)
		for (int w = 0; (window = subset(WINDOW_FLAGS, w)) >= 0; w++) {
			struct ibv_mr *mr = ibv_reg_mr(e->pd, e->buf[1], BUF_BYTES,
						       L_WRITE | MW_BIND);
			struct ibv_mw *mw = ibv_alloc_mw(e->pd, (enum ibv_mw_type)type);

			MUST(mr && mw);
			MUST_EQ(bind_to(e, mw, mr, window), IBV_WC_SUCCESS);
			for (int q = 0; (rights = subset(QP_FLAGS, q)) >= 0; q++) {
				e->access = rights;
				MUST(wr_again(e));
				MUST(each_operation(e, mw, window));
			}
			MUST(unbind(mw, mr));
		}
	return true;
}

ON(RC, window_and_queue_pair_against_each_operation, queue_pairs)
ON(UC, uc_window_and_queue_pair_against_each_operation, queue_pairs)
ON(XRC_SEND, xrc_window_and_queue_pair_against_each_operation, queue_pairs)

/*
 * IBTA, 10.6.7.2: a window of type 1 is its PD's, of whatever QP; one of type 2 that QP's alone
 * that bound it (type 2B, as device_cap_flags says). Another pair tries, of this PD or another.
 */
static bool of_another_pair(struct wr_ends *e, struct wr_ends *other, enum ibv_mw_type type)
{
	const bool same_pd = other->pd == e->pd;
	struct ibv_mr *mr = ibv_reg_mr(e->pd, e->buf[1], BUF_BYTES, L_WRITE | MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(e->pd, type);
	char *own = other->buf[1];

	MUST(mr && mw);
	MUST_EQ(bind_to(e, mw, mr, WINDOW_FLAGS), IBV_WC_SUCCESS);
	other->buf[1] = e->buf[1]; /* the tested flags */
	for EACH_REMOTE_OP(other, op) {
		const bool may = right_of(*op) & WINDOW_FLAGS && same_pd && type == IBV_MW_TYPE_1;

		MUST(try(other, *op, mw->rkey, (uintptr_t)e->buf[1] + FAR_AT, FAR_AT,
			 may ? IBV_WC_SUCCESS : REFUSED));
	}
	other->buf[1] = own;
	MUST_EQ(qp_state_now(e->qp[1]), IBV_QPS_RTS);
	MUST(each_operation(e, mw, WINDOW_FLAGS));
	return unbind(mw, mr);
}

static bool of_which_qp(struct wr_ends *e)
{
	struct ibv_device_attr attr;
	struct wr_ends other;

	MUST_EQ(ibv_query_device(ctx, &attr), 0);
	MUST(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	for (int same_pd = 0; same_pd < 2; same_pd++) {
		MUST(wr_open_in(&other, same_pd ? e->pd : NULL, e->type, wr_ops_of(e->type)));
		MUST(of_another_pair(e, &other, IBV_MW_TYPE_1));
		MUST(of_another_pair(e, &other, IBV_MW_TYPE_2));
		MUST(wr_close(&other));
	}
	return true;
}

ON(RC, windows_of_their_domain_or_their_queue_pair, of_which_qp)
ON(UC, uc_windows_of_their_domain_or_their_queue_pair, of_which_qp)
ON(XRC_SEND, xrc_windows_of_their_domain_or_their_queue_pair, of_which_qp)

const struct test_case man_cases[] = {
	CASE(type1_region_and_window_against_each_operation),
	CASE(uc_type1_region_and_window_against_each_operation),
	CASE(xrc_type1_region_and_window_against_each_operation),
	CASE(type2_region_and_window_against_each_operation),
	CASE(uc_type2_region_and_window_against_each_operation),
	CASE(xrc_type2_region_and_window_against_each_operation),
	CASE(window_and_queue_pair_against_each_operation),
	CASE(uc_window_and_queue_pair_against_each_operation),
	CASE(xrc_window_and_queue_pair_against_each_operation),
	CASE(windows_of_their_domain_or_their_queue_pair),
	CASE(uc_windows_of_their_domain_or_their_queue_pair),
	CASE(xrc_windows_of_their_domain_or_their_queue_pair),
	{ 0 },
};
