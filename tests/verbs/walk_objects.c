/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Objects of the random walk come and go, QPs change their states; see walk.h. */
#include "walk.h"

bool walk_pd(void)
{
	int i = PICK(pd, PDS, walk_draw(2));

	if (i == NONE)
		return true;
	if (!model.pd[i].o) {
		MUST(model.pd[i].o = ibv_alloc_pd(ctx));
		return true;
	}
	MUST_EQ(ibv_dealloc_pd(model.pd[i].o), model.pd[i].refs ? EBUSY : 0);
	if (!model.pd[i].refs)
		model.pd[i].o = NULL;
	return true;
}

bool walk_cq(void)
{
	int i = PICK(cq, CQS, walk_draw(2));

	if (i == NONE)
		return true;
	if (!model.cq[i].o) {
		MUST(model.cq[i].o = ibv_create_cq(ctx, 4 * DEPTH * QPS, NULL, NULL, 0));
		return true;
	}
	if (walk_draw(3)) {
		MUST_EQ(ibv_resize_cq(model.cq[i].o, (int)(64 + walk_draw(200))), 0);
		return true;
	}
	MUST_EQ(ibv_destroy_cq(model.cq[i].o), model.cq[i].refs ? EBUSY : 0);
	if (!model.cq[i].refs)
		model.cq[i].o = NULL;
	return true;
}

bool walk_srq(void)
{
	struct ibv_srq_init_attr a = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };
	int i = PICK(srq, SRQS, walk_draw(2)), pd = PICK(pd, PDS, true);

	if (i == NONE || pd == NONE)
		return true;
	if (!model.srq[i].o) {
		MUST(model.srq[i].o = ibv_create_srq(model.pd[pd].o, &a));
		model.srq[i].pd = pd;
		model.srq[i].fifo.n = 0;
		model.pd[pd].refs++;
		return true;
	}
	MUST_EQ(ibv_destroy_srq(model.srq[i].o), model.srq[i].refs ? EBUSY : 0);
	if (!model.srq[i].refs) {
		model.srq[i].o = NULL;
		model.pd[model.srq[i].pd].refs--;
	}
	return true;
}

bool walk_ah(void)
{
	struct ibv_ah_attr self = own_address();
	int i = PICK(ah, AHS, walk_draw(2)), pd = PICK(pd, PDS, true);

	if (i == NONE || pd == NONE)
		return true;
	if (model.ah[i].o) {
		MUST_EQ(ibv_destroy_ah(model.ah[i].o), 0);
		model.ah[i].o = NULL;
		model.pd[model.ah[i].pd].refs--;
		return true;
	}
	MUST(model.ah[i].o = ibv_create_ah(model.pd[pd].o, &self));
	model.ah[i].pd = pd;
	model.pd[pd].refs++;
	return true;
}

bool walk_mr(void)
{
	int i = PICK(mr, MRS, walk_draw(3)), pd = PICK(pd, PDS, true);
	unsigned int access = walk_draw(3) ? (unsigned int)RIGHTS : walk_draw(16);
	uint32_t offset = walk_draw(walk_draw(2) ? MEM / 4 : MEM),
		 length = 1 + walk_draw(MEM - offset);

	if (i == NONE || pd == NONE)
		return true;
	if (model.mr[i].o) {
		MUST_EQ(ibv_dereg_mr(model.mr[i].o), model.mr[i].windows ? EBUSY : 0);
		if (!model.mr[i].windows) {
			model.mr[i].o = NULL;
			model.pd[model.mr[i].pd].refs--;
		}
		return true;
	}
	access |= (walk_draw(2) ? (unsigned int)IBV_ACCESS_MW_BIND : 0) |
		  (walk_draw(4) ? 0 : (unsigned int)IBV_ACCESS_ON_DEMAND);
	/* ibv_reg_mr(3): remote write and remote atomic need local write */
	if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE)) {
		MUST_FAIL(ibv_reg_mr(model.pd[pd].o, model.mem + offset, length, (int)access),
			  EINVAL);
		return true;
	}
	MUST(model.mr[i].o = ibv_reg_mr(model.pd[pd].o, model.mem + offset, length, (int)access));
	MUST_EQ(model.mr[i].o->lkey, model.mr[i].o->rkey);
	model.mr[i].pd = pd;
	model.mr[i].windows = 0;
	model.mr[i].offset = offset;
	model.mr[i].length = length;
	model.mr[i].key = model.mr[i].o->rkey;
	model.mr[i].access = access;
	model.pd[pd].refs++;
	return true;
}

void walk_unbound(int i)
{
	if (model.mw[i].mr != NONE)
		model.mr[model.mw[i].mr].windows--;
	model.mw[i].mr = model.mw[i].qp = NONE;
}

bool walk_drop_mw(int i)
{
	MUST_EQ(ibv_dealloc_mw(model.mw[i].o), 0);
	walk_unbound(i);
	model.mw[i].o = NULL;
	model.pd[model.mw[i].pd].refs--;
	return true;
}

bool walk_mw(void)
{
	int i = PICK(mw, MWS, walk_draw(3)), pd = PICK(pd, PDS, true);

	if (i == NONE || pd == NONE)
		return true;
	if (model.mw[i].o)
		return walk_drop_mw(i);
	model.mw[i].type = walk_draw(2) ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;
	MUST(model.mw[i].o = ibv_alloc_mw(model.pd[pd].o, model.mw[i].type));
	model.mw[i].pd = pd;
	model.mw[i].mr = model.mw[i].qp = NONE;
	model.mw[i].key = model.mw[i].o->rkey;
	model.pd[pd].refs++;
	return true;
}

/* ---- queue pairs ---- */

static bool create_qp(int i)
{
	int pd = PICK(pd, PDS, true), send = PICK(cq, CQS, true), recv = PICK(cq, CQS, true);
	int srq = walk_draw(3) ? NONE : PICK(srq, SRQS, true);
	struct ibv_qp_init_attr a = { .qp_type = IBV_QPT_RC,
				      .cap = { DEPTH, DEPTH, 1, 1, 0 },
				      .sq_sig_all = 1 };

	if (pd == NONE || send == NONE)
		return true;
	a.send_cq = model.cq[send].o;
	a.recv_cq = model.cq[recv].o;
	a.srq = srq == NONE ? NULL : model.srq[srq].o;
	MUST(model.qp[i].o = ibv_create_qp(model.pd[pd].o, &a));
	model.qp[i].pd = pd;
	model.qp[i].cq[0] = send;
	model.qp[i].cq[1] = recv;
	model.qp[i].srq = srq;
	model.qp[i].state = IBV_QPS_RESET;
	model.qp[i].peer = NONE;
	model.qp[i].fifo.n = 0;
	model.pd[pd].refs++;
	model.cq[send].refs++;
	model.cq[recv].refs++;
	if (srq != NONE)
		model.srq[srq].refs++;
	return true;
}

void walk_alone(int i)
{
	for (int q = 0; q < QPS; q++)
		if (model.qp[q].peer == i)
			model.qp[q].peer = NONE;
	model.qp[i].peer = NONE;
}

/* Type 2 windows that are bound to it go first. */
static bool drop_windows(int qp)
{
	for (int i = 0; i < MWS; i++)
		MUST(!model.mw[i].o || model.mw[i].qp != qp || walk_drop_mw(i));
	return true;
}

bool walk_destroy_qp(int i)
{
	MUST(drop_windows(i));
	MUST_EQ(ibv_destroy_qp(model.qp[i].o), 0);
	model.qp[i].o = NULL;
	walk_alone(i);
	model.pd[model.qp[i].pd].refs--;
	model.cq[model.qp[i].cq[0]].refs--;
	model.cq[model.qp[i].cq[1]].refs--;
	if (model.qp[i].srq != NONE)
		model.srq[model.qp[i].srq].refs--;
	return true;
}

static int to_init(int i)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	model.qp[i].access = walk_draw(3) ? (unsigned int)RIGHTS & ~1u : walk_draw(8) << 1;
	a.qp_access_flags = model.qp[i].access;
	return ibv_modify_qp(model.qp[i].o, &a,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

/*
 * Two of them, from wherever they are. Not one to itself: a request that it refuses has it in error
 * before the answer comes.
 */
bool walk_connect(void)
{
	int a = PICK(qp, QPS, true), b = PICK(qp, QPS, true);
	const int end[2] = { a, b };

	if (a == NONE || a == b)
		return true;
	for (int i = 0; i < 2; i++) {
		MUST(drop_windows(end[i]));
		MUST_EQ(qp_to_state(model.qp[end[i]].o, IBV_QPS_RESET), 0);
		model.qp[end[i]].state = IBV_QPS_RESET;
		model.qp[end[i]].fifo.n = 0;
		walk_alone(end[i]);
	}
	for (int i = 0; i < 2; i++)
		MUST_EQ(to_init(end[i]), 0);
	for (int i = 0; i < 2; i++) {
		/* without a receive there is an answer at once: no retry */
		MUST_EQ(qp_to_rts(model.qp[end[i]].o, model.qp[end[!i]].o->qp_num, 0), 0);
		model.qp[end[i]].state = IBV_QPS_RTS;
		model.qp[end[i]].peer = end[!i];
	}
	return true;
}

bool walk_qp(void)
{
	static const enum ibv_qp_state illegal[] = { IBV_QPS_RTS, IBV_QPS_RTR };
	int i = PICK(qp, QPS, walk_draw(4));

	if (i == NONE)
		return true;
	if (!model.qp[i].o)
		return create_qp(i);
	switch (walk_draw(4)) {
	case 0:
		return walk_destroy_qp(i);
	case 1:
		/* these need attributes, and an earlier state */
		if (model.qp[i].state != IBV_QPS_RTS)
			MUST_EQ(qp_to_state(model.qp[i].o, illegal[walk_draw(2)]), EINVAL);
		break;
	case 2:
		walk_expect_error(i);
		MUST_EQ(qp_to_state(model.qp[i].o, IBV_QPS_ERR), 0);
		walk_alone(i);
		MUST(walk_settled());
		break;
	case 3:
		return walk_connect();
	}
	MUST_EQ(qp_state_now(model.qp[i].o), model.qp[i].state);
	return true;
}
