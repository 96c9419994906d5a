/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How verbs fail: EBUSY for objects in use, ENOENT for stale ones, a refusal beyond the maxima; and
 * errno equals the verb's return value, as with rdma-core.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "contract.h"

/* The verb must return this errno value, and errno must have it. */
#define MUST_RETURN(call, want)                                                                    \
	do {                                                                                       \
		errno = 0;                                                                         \
		MUST_EQ(call, want);                                                               \
		MUST_EQ(errno, want);                                                              \
	} while (0)

static bool busy_body(struct pair *p)
{
	struct ibv_srq_attr attr = { .max_wr = 1u << 30 };
	struct ibv_ah_attr address = own_address();
	struct ibv_td *td = ibv_alloc_td(ctx, &(struct ibv_td_init_attr){ 0 });
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *parent;
	struct ibv_mw *mw;
	struct ibv_ah *ah;

	MUST(td && pd);
	MUST(parent = ibv_alloc_parent_domain(
		     ctx, &(struct ibv_parent_domain_init_attr){ .pd = pd, .td = td }));
	MUST_RETURN(ibv_dealloc_td(td), EBUSY);
	MUST_RETURN(ibv_dealloc_pd(pd), EBUSY);
	MUST_EQ(ibv_dealloc_pd(parent), 0);
	MUST_EQ(ibv_dealloc_td(td), 0);
	MUST(ah = ibv_create_ah(pd, &address));
	MUST_RETURN(ibv_dealloc_pd(pd), EBUSY);
	MUST_EQ(ibv_destroy_ah(ah), 0);
	MUST(mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1));
	MUST_RETURN(ibv_dealloc_pd(pd), EBUSY);
	MUST_EQ(ibv_dealloc_mw(mw), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);

	MUST_RETURN(ibv_dealloc_pd(p->pd), EBUSY);
	MUST_RETURN(ibv_destroy_cq(p->cq[0]), EBUSY);
	MUST_RETURN(ibv_destroy_srq(p->srq), EBUSY);
	MUST_RETURN(ibv_modify_srq(p->srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	MUST_RETURN(ibv_modify_srq(p->srq, &attr, 1 << 20), EINVAL);
	MUST_RETURN(ibv_resize_cq(p->cq[0], -1), EINVAL);
	return true;
}

ON_PAIR(errno__of_what_is_in_use, busy_body, .srq = true)

static bool arguments_body(struct pair *p)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	struct ibv_port_attr port;
	struct ibv_gid_entry entry;
	struct ibv_send_wr wr = { .opcode = 77 }, *bad;
	struct ibv_sge sge[2] = { sge_of(p, 0, 0, 8), sge_of(p, 0, 0, 8) };
	struct ibv_recv_wr rr = { .num_sge = -1, .sg_list = sge }, *bad_rr;

	MUST_RETURN(ibv_modify_qp(p->qp[0], &attr, IBV_QP_STATE), EINVAL);
	MUST_RETURN(ibv_modify_qp(p->qp[0], &attr, 1 << 30), EINVAL);
	MUST_RETURN(ibv_modify_qp(p->qp[0], &attr, IBV_QP_CAP), EOPNOTSUPP);
	MUST_RETURN(ibv_query_port(ctx, 9, &port), EINVAL);
	MUST_RETURN(ibv_query_gid_ex(ctx, 1, 1 << 20, &entry, 0), EINVAL);
	MUST_RETURN(ibv_post_send(p->qp[0], &wr, &bad), EINVAL);
	MUST_RETURN(ibv_post_recv(p->qp[0], &rr, &bad_rr), EINVAL);
	rr.num_sge = 1 << 20;
	MUST_RETURN(ibv_post_recv(p->qp[0], &rr, &bad_rr), EINVAL);
	MUST_RETURN(ibv_attach_mcast(p->qp[0], &(union ibv_gid){ .raw = { 0xff } }, 0), EINVAL);
	MUST_RETURN(ibv_detach_mcast(p->qp[0], &(union ibv_gid){ .raw = { 0xff } }, 0), EINVAL);
	return true;
}

ON_PAIR(errno__of_bad_arguments, arguments_body)

/* An application can restore the fields that it overwrote in the public struct. */
#define MUST_NOT_KNOW(object, member, call)                                             \
	do {                                                                            \
		(object)->member += 77;                                                 \
		errno = 0;                                                              \
		MUST(call);                                                             \
		MUST_EQ(errno, ENOENT);                                                 \
		(object)->member -= 77;                                                 \
	} while (0)

static bool handle_body(struct pair *p)
{
	struct ibv_qp_init_attr init = { .send_cq = p->cq[0],
					 .recv_cq = p->cq[1],
					 .qp_type = IBV_QPT_RC,
					 .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_mw *mw = ibv_alloc_mw(p->pd, IBV_MW_TYPE_2);
	struct ibv_ah_attr address = own_address();
	struct ibv_ah *ah = ibv_create_ah(p->pd, &address);

	MUST(mw && ah);
	MUST_NOT_KNOW(p->pd, handle, ibv_dealloc_pd(p->pd) == ENOENT);
	MUST_NOT_KNOW(p->pd, handle, !ibv_reg_mr(p->pd, p->buf[0], 8, 0));
	MUST_NOT_KNOW(p->pd, handle, !ibv_alloc_mw(p->pd, IBV_MW_TYPE_1));
	MUST_NOT_KNOW(p->pd, handle, !ibv_create_ah(p->pd, &address));
	MUST_NOT_KNOW(p->pd, handle, !ibv_create_qp(p->pd, &init));
	MUST_NOT_KNOW(p->pd, handle, !ibv_create_srq(p->pd, &srq_init));
	MUST_NOT_KNOW(p->mr[0], handle, ibv_dereg_mr(p->mr[0]) == ENOENT);
	MUST_NOT_KNOW(mw, handle, ibv_dealloc_mw(mw) == ENOENT);
	MUST_NOT_KNOW(ah, handle, ibv_destroy_ah(ah) == ENOENT);
	MUST_NOT_KNOW(p->cq[0], handle, ibv_destroy_cq(p->cq[0]) == ENOENT);
	MUST_NOT_KNOW(p->cq[0], handle, ibv_resize_cq(p->cq[0], 9) == ENOENT);
	MUST_NOT_KNOW(p->srq, handle, ibv_destroy_srq(p->srq) == ENOENT);
	MUST_NOT_KNOW(p->srq, handle, ibv_query_srq(p->srq, &srq_init.attr) == ENOENT);
	MUST_NOT_KNOW(p->qp[0], handle, ibv_query_qp(p->qp[0], &attr, 0, &init) == ENOENT);
	MUST_NOT_KNOW(p->qp[0], handle, ibv_modify_qp(p->qp[0], &attr, IBV_QP_STATE) == ENOENT);
	MUST_NOT_KNOW(p->qp[0], handle, ibv_destroy_qp(p->qp[0]) == ENOENT);
	MUST_EQ(p->qp[0]->state, IBV_QPS_RTS);

	init.send_cq->handle++;
	MUST_FAIL(ibv_create_qp(p->pd, &init), EINVAL);
	init.send_cq->handle--;
	init.srq = p->srq;
	p->srq->handle++;
	MUST_FAIL(ibv_create_qp(p->pd, &init), EINVAL);
	p->srq->handle--;
	MUST_EQ(ibv_destroy_ah(ah), 0);
	MUST_EQ(ibv_dealloc_mw(mw), 0);
	return true;
}

ON_PAIR(handle__of_another_object, handle_body, .srq = true)

static bool context__of_another_object(void)
{
	struct ibv_context *other = open_device(ibv_get_device_name(ctx->device));
	struct ibv_pd *pd = ibv_alloc_pd(ctx);

	MUST(other && pd);
	pd->context = other;
	MUST_RETURN(ibv_dealloc_pd(pd), ENOENT);
	pd->context = ctx;
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	MUST_EQ(ibv_close_device(other), 0);
	return true;
}

/* ---- as many as ibv_query_device(3) says, and not one more ---- */

static struct {
	struct ibv_pd *pd;
	struct ibv_cq *cq; /* of the QPs */
	struct ibv_ah_attr address;
	char byte;
} limit;

static void *limit_pd(void) { return ibv_alloc_pd(ctx); }
static void *limit_mr(void) { return ibv_reg_mr(limit.pd, &limit.byte, 1, 0); }
static void *limit_mw(void) { return ibv_alloc_mw(limit.pd, IBV_MW_TYPE_2); }
static void *limit_ah(void) { return ibv_create_ah(limit.pd, &limit.address); }
static void *limit_cq(void) { return ibv_create_cq(ctx, 1, NULL, NULL, 0); }
static void *limit_srq(void)
{
	return ibv_create_srq(limit.pd,
			      &(struct ibv_srq_init_attr){ .attr = { .max_wr = 1, .max_sge = 1 } });
}
static void *limit_qp(void)
{
	return ibv_create_qp(limit.pd,
			     &(struct ibv_qp_init_attr){ .send_cq = limit.cq,
							 .recv_cq = limit.cq,
							 .qp_type = IBV_QPT_UD,
							 .cap = { 1, 1, 1, 1, 0 } });
}
static int limit_pd_drop(void *o) { return ibv_dealloc_pd(o); }
static int limit_mr_drop(void *o) { return ibv_dereg_mr(o); }
static int limit_mw_drop(void *o) { return ibv_dealloc_mw(o); }
static int limit_ah_drop(void *o) { return ibv_destroy_ah(o); }
static int limit_srq_drop(void *o) { return ibv_destroy_srq(o); }
static int limit_qp_drop(void *o) { return ibv_destroy_qp(o); }

/* Together with the existing ones, max. */
static bool limit_holds(void *(*make)(void), int (*drop)(void *), int max, int there)
{
	void **made = calloc((size_t)max + 1, sizeof(*made));
	int n = 0;

	MUST(made && max > 0);
	errno = 0;
	while (n <= max && (made[n] = make()))
		n++;
	MUST_EQ(errno, ENOMEM);
	MUST_EQ(n, max - there);
	/* one less makes room for one */
	MUST_EQ(drop(made[--n]), 0);
	MUST(made[n++] = make());
	MUST(!make());
	while (n--)
		MUST_EQ(drop(made[n]), 0);
	free(made);
	return true;
}

static bool limit__of_each_kind(void)
{
	struct ibv_device_attr dev;

	limit.address = own_address();
	MUST(limit.pd = ibv_alloc_pd(ctx));
	MUST_EQ(ibv_query_device(ctx, &dev), 0);
	MUST(dev.max_cq >= dev.max_qp && dev.max_srq >= dev.max_qp);
	MUST(limit_holds(limit_pd, limit_pd_drop, dev.max_pd, 1));
	MUST(limit_holds(limit_mr, limit_mr_drop, dev.max_mr, 0));
	MUST(limit_holds(limit_mw, limit_mw_drop, dev.max_mw, 0));
	MUST(limit_holds(limit_ah, limit_ah_drop, dev.max_ah, 0));
	MUST(limit_holds(limit_cq, destroy_cq, dev.max_cq, 0));
	MUST(limit_holds(limit_srq, limit_srq_drop, dev.max_srq, 0));
	MUST(limit.cq = ibv_create_cq(ctx, 1, NULL, NULL, 0));
	MUST(limit_holds(limit_qp, limit_qp_drop, dev.max_qp, 0));
	MUST_EQ(ibv_destroy_cq(limit.cq), 0);
	MUST_EQ(ibv_dealloc_pd(limit.pd), 0);
	return true;
}

/* A handle says nothing of what its neighbours in the cache were given. */
static bool create_ah__of_the_same_destination(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_ah_attr good = own_address(), bad;
	struct ibv_ah *ah[2];

	MUST(pd);
	MUST(ah[0] = ibv_create_ah(pd, &good));
	bad = good;
	bad.grh.sgid_index = 63;
	MUST_FAIL(ibv_create_ah(pd, &bad), EINVAL);
	bad = good;
	bad.port_num = 2;
	MUST_FAIL(ibv_create_ah(pd, &bad), EINVAL);
	bad = good;
	bad.is_global = 0;
	MUST_FAIL(ibv_create_ah(pd, &bad), EINVAL);
	bad = good;
	bad.sl = 16;
	MUST_FAIL(ibv_create_ah(pd, &bad), EINVAL);
	MUST(ah[1] = ibv_create_ah(pd, &good));
	MUST(ah[0] != ah[1]);
	MUST_EQ(ibv_destroy_ah(ah[0]), 0);
	MUST_EQ(ibv_destroy_ah(ah[1]), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

/*
 * Local read access is always enabled (ibv_reg_mr(3)): unreadable memory is no region, nor is a
 * hole after it.
 */
static bool reg_mr__of_memory_without_access(void)
{
	static const int access[] = { 0, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_LOCAL_WRITE };
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *mr;
	unsigned char *mem = mmap(FAR_BELOW(0), 4 * page, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(pd && mem != MAP_FAILED);
	for (size_t bad = 0; bad < 4; bad++) {
		MUST_EQ(mprotect(mem + bad * page, page, PROT_NONE), 0);
		for (size_t i = 0; i < sizeof(access) / sizeof(access[0]); i++)
			MUST_FAIL(ibv_reg_mr(pd, mem, 4 * page, access[i]), EFAULT);
		MUST_EQ(mprotect(mem + bad * page, page, PROT_READ | PROT_WRITE), 0);
	}
	MUST(mr = ibv_reg_mr(pd, mem, 4 * page, IBV_ACCESS_LOCAL_WRITE));
	MUST_EQ(ibv_dereg_mr(mr), 0);
	MUST_EQ(mprotect(mem, page, PROT_NONE), 0);
	MUST_EQ(munmap(mem + 2 * page, page), 0);
	MUST_FAIL(ibv_reg_mr(pd, mem, 4 * page, 0), EFAULT);
	MUST_FAIL(ibv_reg_mr(pd, mem + page, 3 * page, 0), EFAULT);
	munmap(mem, 4 * page);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

const struct test_case errno_cases[] = {
	CASE(errno__of_what_is_in_use),
	CASE(errno__of_bad_arguments),
	CASE(handle__of_another_object),
	CASE(context__of_another_object),
	CASE(limit__of_each_kind),
	CASE(create_ah__of_the_same_destination),
	CASE(reg_mr__of_memory_without_access),
	{ NULL, NULL },
};
