/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Creating, querying and destroying: the refused calls, their errno, and the reported values. */
#include <sys/mman.h>
#include <unistd.h>

#include "contract.h"

static bool query_device__claims_are_consistent(void)
{
	struct ibv_device_attr a;
	struct ibv_device_attr_ex ex;

	MUST_EQ(ibv_query_device(ctx, &a), 0);
	MUST_EQ(ibv_query_device_ex(ctx, NULL, &ex), 0);
	MUST_EQ(memcmp(&a, &ex.orig_attr, sizeof(a)), 0);
	MUST_EQ(a.phys_port_cnt, 1);
	MUST_EQ(a.node_guid, ibv_get_device_guid(ctx->device));
	MUST(a.max_mw > 0);
	/* both ways as deep as rxe and adapters, which programs take for both ends */
	MUST_EQ(a.max_qp_rd_atom, 128);
	MUST_EQ(a.max_qp_init_rd_atom, 128);
	MUST_EQ(a.max_res_rd_atom, 128 * a.max_qp);
	MUST_EQ(a.device_cap_flags & (IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2A |
				      IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_XRC),
		IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_XRC);
	MUST(ex.max_dm_size > 0);
	return true;
}

static bool query_port__port_and_gids(void)
{
	struct ibv_port_attr a;
	struct ibv_gid_entry e, table[128];
	union ibv_gid gid;
	ssize_t n;
	__be16 pkey;

	MUST_EQ(ibv_query_port(ctx, 0, &a), EINVAL);
	MUST_EQ(ibv_query_port(ctx, 2, &a), EINVAL);
	MUST_EQ(ibv_query_port(ctx, 1, &a), 0);
	MUST_EQ(a.state, IBV_PORT_ACTIVE);
	MUST_EQ(a.link_layer, IBV_LINK_LAYER_ETHERNET);
	n = ibv_query_gid_table(ctx, table, 128, 0);
	MUST(n > 0 && n <= a.gid_tbl_len);
	MUST_EQ(table[0].gid_type, IBV_GID_TYPE_ROCE_V2);
	MUST_EQ(ibv_query_gid_table(ctx, table, (size_t)n - 1, 0), -EINVAL);
	MUST_EQ(ibv_query_gid_ex(ctx, 1, (uint32_t)n, &e, 0), ENODATA);
	MUST_EQ(ibv_query_gid_ex(ctx, 1, (uint32_t)a.gid_tbl_len, &e, 0), EINVAL);
	MUST_EQ(ibv_query_gid_ex(ctx, 2, 0, &e, 0), EINVAL);
	MUST_EQ(ibv_query_gid_ex(ctx, 1, 0, &e, 0), 0);
	MUST_EQ(ibv_query_gid(ctx, 1, 0, &gid), 0);
	MUST_EQ(memcmp(&gid, &e.gid, sizeof(gid)), 0);
	MUST_EQ(ibv_query_gid(ctx, 1, a.gid_tbl_len, &gid), -1);
	MUST_EQ(ibv_query_gid(ctx, 1, -1, &gid), -1);
	MUST_EQ(ibv_query_pkey(ctx, 1, 0, &pkey), 0);
	MUST_EQ(pkey, 0xffff);
	MUST_EQ(ibv_query_pkey(ctx, 1, 1, &pkey), -1);
	return true;
}

static bool reg_mr__refuses(void)
{
	long page = sysconf(_SC_PAGESIZE);
	char *readable = mmap(NULL, (size_t)page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *none = (char *)4096; /* below vm.mmap_min_addr: never mapped */
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *mr;

	MUST(pd && readable != MAP_FAILED);
	MUST_FAIL(ibv_reg_mr(pd, readable, (size_t)page, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	MUST_FAIL(ibv_reg_mr(pd, readable, (size_t)page, IBV_ACCESS_REMOTE_ATOMIC), EINVAL);
	MUST_FAIL(ibv_reg_mr(pd, readable, (size_t)page, 1 << 15), EINVAL);
	MUST_FAIL(ibv_reg_mr(pd, readable, 0, 0), EINVAL);
	MUST_FAIL(ibv_reg_mr(pd, readable, SIZE_MAX, 0), EINVAL);
	MUST_FAIL(ibv_reg_mr_iova(pd, readable, (size_t)page, UINT64_MAX - 1, 0), EINVAL);
	MUST_FAIL(ibv_reg_mr(pd, none, (size_t)page, 0), EFAULT);
	MUST_FAIL(ibv_reg_mr(pd, readable, (size_t)page, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	MUST(mr = ibv_reg_mr(pd, readable, (size_t)page,
			     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_RELAXED_ORDERING));
	MUST_EQ(ibv_dealloc_pd(pd), EBUSY);
	MUST_EQ(ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	MUST_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE),
		IBV_REREG_MR_ERR_INPUT);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	munmap(readable, (size_t)page);
	return true;
}

static bool create_cq__refuses(void)
{
	struct ibv_cq_init_attr_ex ex = { .cqe = 1, .wc_flags = 1ull << 12 };
	struct ibv_device_attr a;
	struct ibv_cq *cq;

	ibv_query_device(ctx, &a);
	MUST_FAIL(ibv_create_cq(ctx, 0, NULL, NULL, 0), EINVAL);
	MUST_FAIL(ibv_create_cq(ctx, -1, NULL, NULL, 0), EINVAL);
	MUST_FAIL(ibv_create_cq(ctx, a.max_cqe + 1, NULL, NULL, 0), EINVAL);
	MUST_FAIL(ibv_create_cq(ctx, 1, NULL, NULL, -1), EINVAL);
	MUST_FAIL(ibv_create_cq(ctx, 1, NULL, NULL, ctx->num_comp_vectors), EINVAL);
	MUST_FAIL(ibv_create_cq_ex(ctx, &ex), EOPNOTSUPP);
	ex = (struct ibv_cq_init_attr_ex){ .cqe = 1, .comp_mask = 1u << 31 };
	MUST_FAIL(ibv_create_cq_ex(ctx, &ex), EINVAL);
	MUST(cq = ibv_create_cq(ctx, 100, NULL, NULL, 0));
	MUST(cq->cqe >= 100);
	MUST_EQ(ibv_resize_cq(cq, 0), EINVAL);
	MUST_EQ(ibv_resize_cq(cq, a.max_cqe + 1), EINVAL);
	MUST_EQ(ibv_resize_cq(cq, 1000), 0);
	MUST(cq->cqe >= 1000);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	return true;
}

static bool create_qp__refuses(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 10, NULL, NULL, 0);
	struct ibv_qp_init_attr good = { .send_cq = cq,
					 .recv_cq = cq,
					 .qp_type = IBV_QPT_RC,
					 .cap = { 5, 6, 2, 3, 40 } },
				a;
	struct ibv_device_attr dev;
	struct ibv_qp_attr q;
	struct ibv_qp *qp;

	MUST(pd && cq);
	ibv_query_device(ctx, &dev);
#define WITH(field, value) (a = good, a.field = (value), ibv_create_qp(pd, &a))
	MUST_FAIL(WITH(cap.max_send_wr, (uint32_t)dev.max_qp_wr + 1), EINVAL);
	MUST_FAIL(WITH(cap.max_recv_wr, (uint32_t)dev.max_qp_wr + 1), EINVAL);
	MUST_FAIL(WITH(cap.max_send_sge, (uint32_t)dev.max_sge + 1), EINVAL);
	MUST_FAIL(WITH(cap.max_recv_sge, (uint32_t)dev.max_sge + 1), EINVAL);
	MUST_FAIL(WITH(cap.max_inline_data, 1u << 30), EINVAL);
	MUST_FAIL(WITH(send_cq, NULL), EINVAL);
	MUST_FAIL(WITH(qp_type, IBV_QPT_DRIVER), EOPNOTSUPP);
	MUST_FAIL(WITH(qp_type, 77), EINVAL);
#undef WITH
	/* what programs post inline though they asked for none */
	a = good;
	a.cap.max_inline_data = 0;
	MUST(qp = ibv_create_qp(pd, &a));
	MUST(a.cap.max_inline_data >= 16);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	a = good;
	MUST(qp = ibv_create_qp(pd, &a));
	MUST(a.cap.max_send_wr >= 5 && a.cap.max_recv_wr >= 6 && a.cap.max_send_sge >= 2 &&
	     a.cap.max_recv_sge >= 3 && a.cap.max_inline_data >= 40);
	MUST(!ibv_qp_to_qp_ex(qp));
	MUST_EQ(qp->state, IBV_QPS_RESET);
	MUST_EQ(ibv_query_qp(qp, &q, IBV_QP_STATE | IBV_QP_CAP, &good), 0);
	MUST_EQ(q.qp_state, IBV_QPS_RESET);
	MUST_EQ(memcmp(&q.cap, &a.cap, sizeof(q.cap)), 0);
	MUST_EQ(ibv_destroy_cq(cq), EBUSY);
	MUST_EQ(ibv_dealloc_pd(pd), EBUSY);
	MUST_EQ(ibv_attach_mcast(qp, &(union ibv_gid){ 0 }, 0), EINVAL);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

static bool modify_qp__refuses_and_changes_nothing(void)
{
	const int rtr =
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 10, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UC, .cap = { 1, 1, 1, 1, 0 }
	};
	struct ibv_qp_attr good = { .qp_state = IBV_QPS_RTR,
				    .path_mtu = IBV_MTU_1024,
				    .dest_qp_num = 5,
				    .ah_attr = own_address() },
			   a, q;
	struct ibv_qp *qp;

	MUST(pd && cq && (qp = ibv_create_qp(pd, &init)));
	a = good;
	MUST_EQ(ibv_modify_qp(qp, &a, rtr), EINVAL); /* not from RESET */
	MUST_EQ(qp_to_init(qp), 0);
	MUST_EQ(qp->state, IBV_QPS_INIT);
#define WITH(field, value) (a = good, a.field = (value), ibv_modify_qp(qp, &a, rtr))
	MUST_EQ(WITH(path_mtu, 0), EINVAL);
	MUST_EQ(WITH(path_mtu, 6), EINVAL);
	MUST_EQ(WITH(dest_qp_num, 1 << 24), EINVAL);
	MUST_EQ(WITH(ah_attr.is_global, 0), EINVAL);
	MUST_EQ(WITH(ah_attr.port_num, 2), EINVAL);
	MUST_EQ(WITH(ah_attr.grh.sgid_index, 63), EINVAL);
	MUST_EQ(WITH(qp_state, 99), EINVAL);
#undef WITH
	a = good;
	MUST_EQ(ibv_modify_qp(qp, &a, rtr & ~IBV_QP_RQ_PSN), EINVAL);
	MUST_EQ(ibv_modify_qp(qp, &a, rtr | IBV_QP_TIMEOUT), EINVAL);
	MUST_EQ(ibv_modify_qp(qp, &a, 1 << 30), EINVAL);
	MUST_EQ(ibv_query_qp(qp, &q, IBV_QP_STATE, &init), 0);
	MUST_EQ(q.qp_state, IBV_QPS_INIT);
	MUST_EQ(ibv_modify_qp(qp, &a, rtr), 0);
	MUST_EQ(qp->state, IBV_QPS_RTR);
	MUST_EQ(ibv_query_qp(qp, &q, IBV_QP_STATE | IBV_QP_AV, &init), 0);
	MUST_EQ(q.path_mtu, IBV_MTU_1024);
	MUST_EQ(q.dest_qp_num, 5);
	MUST_EQ(memcmp(&q.ah_attr.grh.dgid, &good.ah_attr.grh.dgid, 16), 0);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

static bool create_srq__refuses(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_srq_init_attr a = { .attr = { .max_wr = 0, .max_sge = 1 } };
	struct ibv_srq_init_attr_ex ex = { .attr = { .max_wr = 1, .max_sge = 1 },
					   .comp_mask =
						   IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
					   .srq_type = IBV_SRQT_TM,
					   .pd = pd };
	struct ibv_srq_attr q = { .max_wr = 100, .srq_limit = 5 };
	struct ibv_srq *srq;

	MUST(pd);
	MUST_FAIL(ibv_create_srq(pd, &a), EINVAL);
	MUST_FAIL(ibv_create_srq_ex(ctx, &ex), EINVAL); /* no CQ, no tags */
	ex.srq_type = 9;
	MUST_FAIL(ibv_create_srq_ex(ctx, &ex), EINVAL);
	a.attr.max_wr = 4;
	MUST(srq = ibv_create_srq(pd, &a));
	MUST(a.attr.max_wr >= 4);
	MUST_EQ(ibv_modify_srq(srq, &q, IBV_SRQ_LIMIT), EINVAL); /* more than it holds */
	MUST_EQ(ibv_modify_srq(srq, &q, 1 << 7), EINVAL);
	MUST_EQ(ibv_query_srq(srq, &q), 0);
	MUST_EQ(q.max_wr, a.attr.max_wr);
	MUST_EQ(q.srq_limit, 0);
	MUST_EQ(ibv_destroy_srq(srq), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

static bool create_ah__refuses(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_ah_attr good = own_address(), a;
	struct ibv_ah *ah;

	MUST(pd);
#define WITH(field, value) (a = good, a.field = (value), ibv_create_ah(pd, &a))
	MUST_FAIL(WITH(is_global, 0), EINVAL);
	MUST_FAIL(WITH(port_num, 0), EINVAL);
	MUST_FAIL(WITH(grh.sgid_index, 200), EINVAL);
	MUST_FAIL(WITH(sl, 16), EINVAL);
	/* TEST-NET-3 (RFC 5737): no route leads there */
	a = good;
	memcpy(a.grh.dgid.raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xcb\x00\x71\x01", 16);
	MUST_FAIL(ibv_create_ah(pd, &a), ENETUNREACH);
#undef WITH
	MUST(ah = ibv_create_ah(pd, &good));
	MUST_EQ(ibv_dealloc_pd(pd), EBUSY);
	MUST_EQ(ibv_destroy_ah(ah), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

static bool domains__hold_what_they_are_made_of(void)
{
	struct ibv_td_init_attr t = { 0 };
	struct ibv_td *td = ibv_alloc_td(ctx, &t);
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *parent;
	struct ibv_parent_domain_init_attr a = { .pd = pd, .td = td };

	MUST(td && pd);
	MUST(parent = ibv_alloc_parent_domain(ctx, &a));
	MUST_EQ(ibv_dealloc_pd(pd), EBUSY);
	MUST_EQ(ibv_dealloc_td(td), EBUSY);
	MUST_EQ(ibv_dealloc_pd(parent), 0);
	MUST_EQ(ibv_dealloc_td(td), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

static bool import__shares_handles_and_keys(void)
{
	static char memory[64];
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *pd2;
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE), *mr2;
	struct ibv_mr *gone = ibv_reg_mr(pd, memory, 8, 0), *last = ibv_reg_mr(pd, memory, 16, 0);
	struct ibv_context *other = ibv_import_device(dup(ctx->cmd_fd));
	uint32_t handle;

	MUST(pd && mr && gone && last && other);
	MUST_FAIL(ibv_import_pd(other, pd->handle + 1000), ENOENT);
	MUST(pd2 = ibv_import_pd(other, pd->handle));
	MUST_FAIL(ibv_import_mr(pd2, mr->handle + 1000), ENOENT);
	MUST(mr2 = ibv_import_mr(pd2, mr->handle));
	MUST_EQ(mr2->lkey, mr->lkey);
	MUST_EQ(mr2->length, sizeof(memory));
	ibv_unimport_mr(mr2);
	/* the deregistered part is not accessible, the memory before and after it is */
	handle = gone->handle;
	MUST_EQ(ibv_dereg_mr(gone), 0);
	MUST_FAIL(ibv_import_mr(pd2, handle), ENOENT);
	MUST(mr2 = ibv_import_mr(pd2, last->handle));
	MUST_EQ(mr2->length, 16);
	ibv_unimport_mr(mr2);
	MUST_EQ(ibv_dereg_mr(last), 0);
	MUST(mr2 = ibv_import_mr(pd2, mr->handle));
	MUST_EQ(mr2->length, sizeof(memory));
	ibv_unimport_mr(mr2);
	ibv_unimport_pd(pd2);
	MUST_EQ(ibv_close_device(other), 0);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

static bool device_list__keeps_pointers(void)
{
	int n, m;
	struct ibv_device **a = ibv_get_device_list(&n), **b = ibv_get_device_list(&m);
	bool found = false;

	MUST(a && b);
	MUST_EQ(n, m);
	MUST(!a[n] && !b[n]);
	for (int i = 0; i < n; i++) {
		MUST(a[i] == b[i]);
		found |= a[i] == ctx->device;
	}
	MUST(found);
	MUST(ibv_get_device_index(ctx->device) > 0);
	MUST(ibv_get_device_guid(ctx->device));
	ibv_free_device_list(a);
	ibv_free_device_list(b);
	return true;
}

const struct test_case object_cases[] = {
	CASE(device_list__keeps_pointers),
	CASE(query_device__claims_are_consistent),
	CASE(query_port__port_and_gids),
	CASE(reg_mr__refuses),
	CASE(create_cq__refuses),
	CASE(create_qp__refuses),
	CASE(modify_qp__refuses_and_changes_nothing),
	CASE(create_srq__refuses),
	CASE(create_ah__refuses),
	CASE(domains__hold_what_they_are_made_of),
	CASE(import__shares_handles_and_keys),
	{ 0 },
};
