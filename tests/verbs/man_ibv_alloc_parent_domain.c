/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* ibv_alloc_parent_domain(3), as far as CQs, QPs and SRQs may be made on one */
#include "man.h"

static struct ibv_pd *parent_of(struct ibv_pd *pd, struct ibv_td *td)
{
	return ibv_alloc_parent_domain(ctx,
				       &(struct ibv_parent_domain_init_attr){ .pd = pd, .td = td });
}

/*
 * "completely interchangeable with the struct ibv_pd used to create it": objects created on one
 * work with objects of the other
 */
static bool interchangeable_with_its_pd(void)
{
	struct ibv_td *td = ibv_alloc_td(ctx, &(struct ibv_td_init_attr){ 0 });
	struct ibv_cq *cq = ibv_create_cq(ctx, 10, NULL, NULL, 0);
	struct ibv_pd *pd[2] = { ibv_alloc_pd(ctx) };
	char buffer[2] = { 'a', 'b' };

	MUST(td && cq && pd[0] && (pd[1] = parent_of(pd[0], td)));
	MUST(pd[1]->context == ctx);
	for (int i = 0; i < 8; i++) {
		struct ibv_srq_init_attr a = { .attr = { .max_wr = 2, .max_sge = 1 } };
		struct ibv_mr *mr =
			ibv_reg_mr(pd[i & 1], buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
		struct ibv_srq *srq = ibv_create_srq(pd[i >> 1 & 1], &a);
		struct ibv_qp_init_attr init = { .send_cq = cq,
						 .recv_cq = cq,
						 .srq = srq,
						 .qp_type = IBV_QPT_RC,
						 .cap = { 2, 0, 1, 0, 0 } };
		struct ibv_qp *qp = ibv_create_qp(pd[i >> 2], &init);
		struct ibv_sge from = { (uintptr_t)buffer, 1, 0 },
			       to = { (uintptr_t)buffer + 1, 1, 0 };
		struct ibv_send_wr wr = { .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND },
				   *bad;
		struct ibv_recv_wr rr = { .wr_id = 5, .sg_list = &to, .num_sge = 1 }, *bad_rr;
		struct ibv_wc wc;

		MUST(mr && srq && qp);
		MUST(srq->pd == pd[i >> 1 & 1] && qp->pd == pd[i >> 2]);
		from.lkey = to.lkey = mr->lkey;
		buffer[0] = (char)('a' + i);
		MUST_EQ(qp_to_init(qp), 0);
		MUST_EQ(qp_to_rts(qp, qp->qp_num, 7), 0);
		MUST_EQ(ibv_post_srq_recv(srq, &rr, &bad_rr), 0);
		MUST_EQ(ibv_post_send(qp, &wr, &bad), 0);
		MUST(wait_wc(cq, &wc));
		MUST_EQ(wc.wr_id, 5);
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST_EQ(buffer[1], 'a' + i);
		MUST_EQ(ibv_destroy_qp(qp), 0);
		MUST_EQ(ibv_destroy_srq(srq), 0);
		MUST_EQ(ibv_dereg_mr(mr), 0);
	}
	MUST_EQ(ibv_dealloc_pd(pd[1]), 0);
	MUST_EQ(ibv_dealloc_pd(pd[0]), 0);
	MUST_EQ(ibv_dealloc_td(td), 0);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	return true;
}

/* "and can be used as an input argument to any function accepting a struct ibv_pd" */
static bool imported_by_its_handle(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *parent, *above, *import;
	struct ibv_context *same = ibv_import_device(dup(ctx->cmd_fd));
	struct ibv_cq *cq = ibv_create_cq(ctx, 10, NULL, NULL, 0);
	char buffer[2] = { 'a', 'b' };
	struct ibv_sge to = { (uintptr_t)buffer, 2, 0 };
	struct ibv_send_wr wr = { .sg_list = &to, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_recv_wr rr = { .wr_id = 5, .sg_list = &to, .num_sge = 1 }, *bad_rr;
	struct ibv_wc wc;
	struct ibv_mr *mr;
	struct ibv_qp *qp;

	MUST(pd && same && cq);
	MUST((parent = parent_of(pd, NULL)) && (above = parent_of(parent, NULL)));
	MUST(import = ibv_import_pd(same, above->handle));
	MUST(qp = qp_to_itself(above, cq, cq, NULL));
	MUST(mr = ibv_reg_mr(import, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE));
	to.lkey = mr->lkey;
	MUST_EQ(ibv_post_recv(qp, &rr, &bad_rr) | ibv_post_send(qp, &wr, &bad), 0);
	for (int i = 0; i < 2; i++)
		MUST(wait_wc(cq, &wc) && wc.status == IBV_WC_SUCCESS);
	MUST_EQ(ibv_destroy_qp(qp) | ibv_destroy_cq(cq), 0);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	ibv_unimport_pd(import);
	MUST_EQ(ibv_close_device(same), 0);
	MUST_EQ(ibv_dealloc_pd(above) | ibv_dealloc_pd(parent), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

/*
 * "All resources created with the parent domain should be destroyed prior to deallocating the
 * parent domain", and the parent domain before its PD
 */
static bool is_held_and_holds(void)
{
	struct ibv_srq_init_attr a = { .attr = { .max_wr = 2, .max_sge = 1 } };
	struct ibv_td *td = ibv_alloc_td(ctx, &(struct ibv_td_init_attr){ 0 });
	struct ibv_cq_init_attr_ex ex = { .cqe = 2, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD };
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *parent;
	struct ibv_cq_ex *cq;
	struct ibv_srq *srq;

	MUST(td && pd && (parent = parent_of(pd, td)));
	MUST_EQ(ibv_dealloc_pd(pd), EBUSY);
	MUST_EQ(ibv_dealloc_td(td), EBUSY);
	MUST(srq = ibv_create_srq(parent, &a));
	MUST_EQ(ibv_dealloc_pd(parent), EBUSY);
	MUST_EQ(ibv_destroy_srq(srq), 0);
	ex.parent_domain = parent;
	MUST(cq = ibv_create_cq_ex(ctx, &ex));
	MUST_EQ(ibv_dealloc_pd(parent), EBUSY);
	MUST_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	MUST_EQ(ibv_dealloc_pd(parent), 0);
	/* "or NULL" */
	MUST(parent = parent_of(pd, NULL));
	MUST_EQ(ibv_dealloc_td(td), 0);
	MUST_EQ(ibv_dealloc_pd(pd), EBUSY);
	MUST_EQ(ibv_dealloc_pd(parent), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

static bool null_if_the_request_fails(void)
{
	struct ibv_context *other = ibv_open_device(ctx->device);
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *parent;
	struct ibv_td *td, *others_td;
	struct ibv_pd *others;
	const struct ibv_parent_domain_init_attr good = { .pd = pd };
	struct ibv_parent_domain_init_attr a;
	struct ibv_cq_init_attr_ex ex = { .cqe = 2, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD };

	MUST(other && pd && (others = ibv_alloc_pd(other)) &&
	     (td = ibv_alloc_td(ctx, &(struct ibv_td_init_attr){ 0 })) &&
	     (others_td = ibv_alloc_td(other, &(struct ibv_td_init_attr){ 0 })));
#define WITH(field, value) (a = good, a.field = (value), ibv_alloc_parent_domain(ctx, &a))
	MUST_FAIL(WITH(pd, NULL), EINVAL); /* "can't be NULL" */
	MUST_FAIL(WITH(comp_mask, 1 << 9), EINVAL);
	MUST_FAIL(WITH(pd, others), EINVAL);
	MUST_FAIL(WITH(td, others_td), EINVAL);
	MUST(parent = WITH(comp_mask, IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT));
	MUST_EQ(ibv_dealloc_pd(parent), 0);
#undef WITH
	/* another context's is none for a CQ of this one */
	MUST(parent = ibv_alloc_parent_domain(other, &(struct ibv_parent_domain_init_attr){
							     .pd = others, .td = others_td }));
	ex.parent_domain = parent;
	MUST_FAIL(ibv_create_cq_ex(ctx, &ex), EINVAL);
	MUST_EQ(ibv_dealloc_pd(parent), 0);
	MUST_EQ(ibv_dealloc_pd(others), 0);
	MUST_EQ(ibv_dealloc_td(others_td), 0);
	MUST_EQ(ibv_close_device(other), 0);
	MUST_EQ(ibv_dealloc_td(td), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

const struct test_case man_cases[] = {
	CASE(interchangeable_with_its_pd),
	CASE(imported_by_its_handle),
	CASE(is_held_and_holds),
	CASE(null_if_the_request_fails),
	{ 0 },
};
