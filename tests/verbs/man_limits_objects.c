/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* needs: processors */
/*
 * The maxima of ibv_query_device(3) that say how many objects there may be, beyond what contract
 * (limit__of_each_kind) and ibv_attach_mcast have, where each kind is made alone and once: kinds
 * that count as one, all maxima at the same time, from two contexts, and traffic by the last object
 * that fitted.
 */
#include "man.h"

static struct {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_xrcd *xrcd;
	struct ibv_dm *dm;
	struct ibv_context *other; /* the same device, opened again */
	struct ibv_pd *other_pd;
	struct ibv_cq *other_cq;
	struct ibv_ah_attr address;
	uint8_t *buf;
} o;

static struct ibv_device_attr device(void)
{
	struct ibv_device_attr a = { 0 };

	ibv_query_device(ctx, &a);
	return a;
}

static bool world_open(void)
{
	struct ibv_xrcd_init_attr none = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							IBV_XRCD_INIT_ATTR_OFLAGS,
					   .fd = -1,
					   .oflags = O_CREAT };

	o.address = own_address();
	MUST(o.buf = calloc(1, BUF_BYTES));
	MUST(o.pd = ibv_alloc_pd(ctx));
	MUST(o.cq = ibv_create_cq(ctx, 64, NULL, NULL, 0));
	MUST(o.xrcd = ibv_open_xrcd(ctx, &none));
	MUST(o.dm = ibv_alloc_dm(ctx, &(struct ibv_alloc_dm_attr){ .length = 4096 }));
	MUST(o.other = open_device(ibv_get_device_name(ctx->device)));
	MUST(o.other_pd = ibv_alloc_pd(o.other));
	MUST(o.other_cq = ibv_create_cq(o.other, 64, NULL, NULL, 0));
	return true;
}

static bool world_close(void)
{
	MUST_EQ(ibv_destroy_cq(o.other_cq), 0);
	MUST_EQ(ibv_dealloc_pd(o.other_pd), 0);
	MUST_EQ(ibv_close_device(o.other), 0);
	MUST_EQ(ibv_free_dm(o.dm), 0);
	MUST_EQ(ibv_close_xrcd(o.xrcd), 0);
	MUST_EQ(ibv_destroy_cq(o.cq), 0);
	MUST_EQ(ibv_dealloc_pd(o.pd), 0);
	free(o.buf);
	memset(&o, 0, sizeof(o));
	return true;
}

/* ---- the n-th object of a kind, of whatever sort it is then ---- */

static void *make_mr(int n)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

	/* most are null regions, which cost least */
	switch (n % 60) {
	case 1:
		return ibv_reg_dm_mr(o.pd, o.dm, 0, 4096, access | IBV_ACCESS_ZERO_BASED);
	case 2:
		return ibv_reg_mr(o.pd, NULL, SIZE_MAX, access | IBV_ACCESS_ON_DEMAND);
	case 3:
		return ibv_reg_mr(o.other_pd, o.buf, 8, access);
	case 4:
		return ibv_reg_mr_iova(o.pd, o.buf, 8, 0x1000, access);
	case 5:
		return ibv_reg_mr(o.pd, o.buf, BUF_BYTES, access);
	default:
		return ibv_alloc_null_mr(o.pd);
	}
}

static void *make_mw(int n)
{
	return ibv_alloc_mw(n % 4 == 3 ? o.other_pd : o.pd, n % 2 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
}

static void *make_pd(int n)
{
	struct ibv_parent_domain_init_attr a = { .pd = o.pd };

	return n % 3 == 1 ? ibv_alloc_parent_domain(ctx, &a) : ibv_alloc_pd(n % 3 ? o.other : ctx);
}

static void *make_cq(int n)
{
	struct ibv_cq_init_attr_ex a = { .cqe = 1, .wc_flags = IBV_WC_STANDARD_FLAGS };

	if (n % 2)
		return ibv_create_cq(n % 4 == 3 ? o.other : ctx, 1, NULL, NULL, 0);
	return ibv_create_cq_ex(n % 4 ? o.other : ctx, &a);
}

static void *make_srq(int n)
{
	struct ibv_srq_init_attr basic = { .attr = { .max_wr = 1, .max_sge = 1 } };

	return n % 3 == 1 ? xrc_srq(o.pd, o.xrcd, o.cq) :
	       n % 3 == 2 ? tag_srq(o.pd, o.cq) :
			    ibv_create_srq(n % 2 ? o.other_pd : o.pd, &basic);
}

static void *make_qp(int n)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD,
						  IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV };
	struct ibv_qp_init_attr_ex a = { .send_cq = o.cq,
					 .recv_cq = o.cq,
					 .qp_type = types[n % 5],
					 .cap = { 1, 1, 1, 1, 0 },
					 .comp_mask = IBV_QP_INIT_ATTR_PD,
					 .pd = o.pd };

	if (a.qp_type == IBV_QPT_XRC_SEND) {
		a.recv_cq = NULL;
		a.cap.max_recv_wr = a.cap.max_recv_sge = 0;
	} else if (a.qp_type == IBV_QPT_XRC_RECV) {
		a = (struct ibv_qp_init_attr_ex){ .qp_type = IBV_QPT_XRC_RECV,
						  .comp_mask = IBV_QP_INIT_ATTR_XRCD,
						  .xrcd = o.xrcd };
	} else if (n % 2) {
		a.send_cq = a.recv_cq = o.other_cq;
		a.pd = o.other_pd;
		return ibv_create_qp_ex(o.other, &a);
	}
	return ibv_create_qp_ex(ctx, &a);
}

static void *make_ah(int n)
{
	return ibv_create_ah(n % 2 ? o.other_pd : o.pd, &o.address);
}

static int drop_mr(void *x)
{
	return ibv_dereg_mr(x);
}
static int drop_mw(void *x)
{
	return ibv_dealloc_mw(x);
}
static int drop_pd(void *x)
{
	return ibv_dealloc_pd(x);
}
static int drop_srq(void *x)
{
	return ibv_destroy_srq(x);
}
static int drop_qp(void *x)
{
	return ibv_destroy_qp(x);
}
static int drop_ah(void *x)
{
	return ibv_destroy_ah(x);
}

struct kind {
	const char *name;
	void *(*make)(int n);
	int (*drop)(void *object);
	int max, there;
	void **made;
	int n;
};

/* As many as there may be, and not one more, of whichever sort it were. */
static bool kind_fill(struct kind *k)
{
	MUST(k->made = calloc((size_t)k->max + 1, sizeof(*k->made)));
	errno = 0;
	for (k->n = 0; k->n <= k->max && (k->made[k->n] = k->make(k->n)); k->n++)
		;
	if (k->n != k->max - k->there || errno != ENOMEM)
		printf("# %d of %s, not %d - %d\n", k->n, k->name, k->max, k->there);
	MUST_EQ(k->n, k->max - k->there);
	for (int i = 0; i < 120; i++)
		MUST_FAIL(k->make(i), ENOMEM);
	return true;
}

static bool kind_empty(struct kind *k)
{
	for (int i = 0; i < k->n; i++)
		MUST_EQ(k->drop(k->made[i]), 0);
	free(k->made);
	return true;
}

/* A QP and a CQ and a region of the last that there may be: they carry a message. */
static bool last_ones_work(struct ibv_qp *qp, struct ibv_cq *cq, struct ibv_mr *mr)
{
	struct ibv_sge from = { (uintptr_t)o.buf, 4, mr->lkey },
		       to = { (uintptr_t)o.buf + 100, 10, mr->lkey };
	struct ibv_recv_wr rr = { .wr_id = 3, .sg_list = &to, .num_sge = 1 }, *bad_rr;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &from, .num_sge = 1 }, *bad;
	struct ibv_wc wc;

	memcpy(o.buf, "last", 4);
	memset(o.buf + 100, 0, 10);
	MUST_EQ(qp_to_init(qp), 0);
	MUST_EQ(qp_to_rts(qp, qp->qp_num, 7), 0);
	MUST_EQ(ibv_post_recv(qp, &rr, &bad_rr), 0);
	MUST_EQ(ibv_post_send(qp, &wr, &bad), 0);
	MUST(wait_wc(cq, &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.wr_id, 3);
	MUST_EQ(wc.byte_len, 4);
	MUST_EQ(memcmp(o.buf + 100, "last", 5), 0);
	return true;
}

/* No maximum is at another's expense. QPs are last, so each has the objects that it needs. */
static bool all_kinds_at_once(void)
{
	const struct ibv_device_attr d = device();
	struct kind kinds[] = {
		{ "max_pd", make_pd, drop_pd, d.max_pd, 2, NULL, 0 },
		{ "max_ah", make_ah, drop_ah, d.max_ah, 0, NULL, 0 },
		{ "max_mw", make_mw, drop_mw, d.max_mw, 0, NULL, 0 },
		{ "max_srq", make_srq, drop_srq, d.max_srq, 0, NULL, 0 },
		{ "max_cq", make_cq, destroy_cq, d.max_cq, 2, NULL, 0 },
		{ "max_mr", make_mr, drop_mr, d.max_mr, 0, NULL, 0 },
		{ "max_qp", make_qp, drop_qp, d.max_qp, 0, NULL, 0 },
	};
	enum { CQS = 4, MRS = 5, QPS = 6, KINDS = 7 };
	struct ibv_qp *qp;
	struct ibv_mr *mr;

	MUST(world_open());
	for (int i = 0; i < KINDS; i++)
		MUST(kind_fill(&kinds[i]));
	/* the last ones are made again, of the type that a message needs */
	for (int i = MRS; i < KINDS; i++)
		MUST_EQ(kinds[i].drop(kinds[i].made[--kinds[i].n]), 0);
	MUST(mr = ibv_reg_mr(o.pd, o.buf, BUF_BYTES, IBV_ACCESS_LOCAL_WRITE));
	MUST(qp = ibv_create_qp(o.pd, &(struct ibv_qp_init_attr){ .send_cq = o.cq,
								  .recv_cq = o.cq,
								  .qp_type = IBV_QPT_RC,
								  .cap = { 1, 1, 1, 1, 0 } }));
	MUST(last_ones_work(qp, o.cq, mr));
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	for (int i = KINDS; i-- > 0;)
		MUST(kind_empty(&kinds[i]));
	return world_close();
}

const struct test_case man_cases[] = {
	CASE(all_kinds_at_once),
	{ 0 },
};
