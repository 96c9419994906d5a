/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san XROCE_CYCLES=1000 */
/* tier: long tsan */
/*
 * On-demand paging, of ibv_reg_mr(3) and ibv_query_device_ex(3): regions of memory that is mapped
 * later or goes meanwhile, and of the whole address space, through each service that the device
 * claims it for, and with each right.
 */
#include <sys/mman.h>

#include "man.h"

#define ALL_RIGHTS                                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define ON_DEMAND IBV_ACCESS_ON_DEMAND
#define BYTES	  16384u
#define GRH	  40u
#define ROUNDS	  50

/* Two ends and their memory, which is not mapped yet. */
struct ends {
	struct pair p;
	struct ibv_xrcd *xrcd;
	uint32_t srqn;
	struct ibv_ah *ah;
	struct ibv_mr *mr[2];
	char *mem[2];
};

static bool xrc_open(struct ends *e)
{
	struct ibv_xrcd_init_attr x = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
						     IBV_XRCD_INIT_ATTR_OFLAGS,
					.fd = -1,
					.oflags = O_CREAT };
	struct ibv_qp_init_attr_ex a = { .qp_type = IBV_QPT_XRC_SEND,
					 .comp_mask = IBV_QP_INIT_ATTR_PD,
					 .cap = { .max_send_wr = QUEUE, .max_send_sge = 1 } },
				   target = { .qp_type = IBV_QPT_XRC_RECV,
					      .comp_mask = IBV_QP_INIT_ATTR_XRCD };
	struct pair *p = &e->p;

	memset(p, 0, sizeof(*p));
	MUST(p->pd = a.pd = ibv_alloc_pd(ctx));
	MUST(e->xrcd = target.xrcd = ibv_open_xrcd(ctx, &x));
	for (int i = 0; i < 2; i++)
		MUST(p->cq[i] = ibv_create_cq(ctx, 4 * QUEUE, NULL, NULL, 0));
	MUST(p->srq = xrc_srq(p->pd, e->xrcd, p->cq[1]));
	MUST_EQ(ibv_get_srq_num(p->srq, &e->srqn), 0);
	a.send_cq = p->cq[0];
	MUST(p->qp[0] = ibv_create_qp_ex(ctx, &a));
	MUST(p->qp[1] = ibv_create_qp_ex(ctx, &target));
	MUST_EQ(qp_to_init(p->qp[0]), 0);
	MUST_EQ(qp_to_init(p->qp[1]), 0);
	MUST_EQ(qp_to_rtr(p->qp[1], p->qp[0]->qp_num), 0);
	MUST_EQ(qp_to_rts(p->qp[0], p->qp[1]->qp_num, 7), 0);
	return true;
}

static struct ibv_mr *reg_all(struct ibv_pd *pd, unsigned int access)
{
	return ibv_reg_mr(pd, NULL, SIZE_MAX, access | ON_DEMAND);
}

static bool ends_open(struct ends *e, enum ibv_qp_type type, bool srq, bool implicit)
{
	memset(e, 0, sizeof(*e));
	if (type == IBV_QPT_XRC_SEND)
		MUST(xrc_open(e));
	else
		MUST(pair_open(&e->p, OPTIONS(.type = type, .srq = srq)));
	if (type == IBV_QPT_UD) {
		struct ibv_ah_attr address = own_address();

		MUST(e->ah = ibv_create_ah(e->p.pd, &address));
	}
	for (int i = 0; i < 2; i++) {
		e->mem[i] = mmap(FAR_BELOW(i), BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				 0);
		MUST(e->mem[i] != MAP_FAILED);
		MUST(e->mr[i] = implicit ? reg_all(e->p.pd, ALL_RIGHTS) :
					   ibv_reg_mr(e->p.pd, e->mem[i], BYTES,
						      ALL_RIGHTS | ON_DEMAND));
	}
	return true;
}

static bool ends_close(struct ends *e)
{
	bool good = true;

	for (int i = 0; i < 2; i++) {
		good &= !e->mr[i] || !ibv_dereg_mr(e->mr[i]);
		good &= !e->mem[i] || !munmap(e->mem[i], BYTES);
	}
	good &= !e->ah || !ibv_destroy_ah(e->ah);
	good &= pair_close(&e->p);
	good &= !e->xrcd || !ibv_close_xrcd(e->xrcd);
	return good;
}

/* Maps it again, each byte as the seed has it. */
static bool map_filled(struct ends *e, int end, int seed)
{
	MUST(mmap(e->mem[end], BYTES, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == e->mem[end]);
	for (unsigned int i = 0; i < BYTES; i++)
		e->mem[end][i] = (char)(i * 7 + i / 256 + (unsigned int)seed);
	return true;
}

static bool is_filled(const char *bytes, unsigned int len, int seed)
{
	for (unsigned int i = 0; i < len; i++)
		MUST_EQ(bytes[i], (char)(i * 7 + i / 256 + (unsigned int)seed));
	return true;
}

static int post_request(struct ends *e, enum ibv_wr_opcode op, unsigned int len)
{
	struct ibv_sge sge = { (uintptr_t)e->mem[0], len, e->mr[0]->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = op,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;

	if (e->ah) {
		wr.wr.ud.ah = e->ah;
		wr.wr.ud.remote_qpn = e->p.qp[1]->qp_num;
		wr.wr.ud.remote_qkey = UD_QKEY;
	} else if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)e->mem[1];
		wr.wr.atomic.rkey = e->mr[1]->rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)e->mem[1];
		wr.wr.rdma.rkey = e->mr[1]->rkey;
	}
	if (e->xrcd)
		wr.qp_type.xrc.remote_srqn = e->srqn;
	return ibv_post_send(e->p.qp[0], &wr, &bad);
}

static int post_receive(struct ends *e, unsigned int len)
{
	struct ibv_sge sge = { (uintptr_t)e->mem[1], len, e->mr[1]->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	return e->p.srq ? ibv_post_srq_recv(e->p.srq, &wr, &bad) :
			  ibv_post_recv(e->p.qp[1], &wr, &bad);
}

/* The request's status, or -1. */
static int request(struct ends *e, enum ibv_wr_opcode op, unsigned int len)
{
	struct ibv_wc wc;

	return !post_request(e, op, len) && wait_wc(e->p.cq[0], &wc) ? (int)wc.status : -1;
}

/* Data of a SEND, WRITE or READ, or a word. */
static bool use(struct ends *e, enum ibv_wr_opcode op)
{
	const unsigned int grh = e->ah ? GRH : 0, len = e->ah ? 1000 : BYTES;
	uint64_t before, word;
	struct ibv_wc wc;

	MUST(map_filled(e, 0, 1) && map_filled(e, 1, 2));
	memcpy(&before, e->mem[1], sizeof(before));
	if (op == IBV_WR_SEND)
		MUST_EQ(post_receive(e, len + grh), 0);
	MUST_EQ(request(e, op, op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : len), IBV_WC_SUCCESS);
	if (op == IBV_WR_SEND) {
		MUST(wait_wc(e->p.cq[1], &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST_EQ(wc.byte_len, len + grh);
	}
	if (op == IBV_WR_RDMA_READ)
		return is_filled(e->mem[0], len, 2);
	if (op != IBV_WR_ATOMIC_FETCH_AND_ADD)
		return is_filled(e->mem[1] + grh, len, 1);
	MUST_EQ(memcmp(e->mem[0], &before, sizeof(before)), 0);
	memcpy(&word, e->mem[1], sizeof(word));
	MUST(word == before + 1);
	return true;
}

static bool use_all(enum ibv_qp_type type, uint32_t caps)
{
	static const struct { uint32_t cap; enum ibv_wr_opcode op; bool srq; } kinds[] = {
		{ IBV_ODP_SUPPORT_SEND, IBV_WR_SEND, false },
		{ IBV_ODP_SUPPORT_RECV, IBV_WR_SEND, false },
		{ IBV_ODP_SUPPORT_SRQ_RECV, IBV_WR_SEND, true },
		{ IBV_ODP_SUPPORT_WRITE, IBV_WR_RDMA_WRITE, false },
		{ IBV_ODP_SUPPORT_READ, IBV_WR_RDMA_READ, false },
		{ IBV_ODP_SUPPORT_ATOMIC, IBV_WR_ATOMIC_FETCH_AND_ADD, false },
	};

	for (unsigned int i = 0; i < 2 * sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct ends e;
		bool good;

		if (!(caps & kinds[i / 2].cap))
			continue;
		good = ends_open(&e, type, kinds[i / 2].srq, i % 2) && use(&e, kinds[i / 2].op);
		if (!good)
			printf("# type %d, capability %u, %s\n", type, kinds[i / 2].cap,
			       i % 2 ? "implicit" : "explicit");
		MUST(ends_close(&e) && good);
	}
	return true;
}

/* Each transport has its operations, and the ones reported for on demand work so. */
static bool what_is_claimed_works(void)
{
	const uint32_t datagram =
		IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
	/* 6, 7: IBV_ODP_SUPPORT_FLUSH and _ATOMIC_WRITE of rdma-core 65, which man_caps.c uses */
	const uint32_t rdma = IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
			      IBV_ODP_SUPPORT_ATOMIC | 1 << 6 | 1 << 7;
	struct ibv_device_attr_ex a;

	MUST_EQ(ibv_query_device_ex(ctx, NULL, &a), 0);
	MUST_EQ(a.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	MUST_EQ(a.odp_caps.per_transport_caps.rc_odp_caps, datagram | rdma);
	MUST_EQ(a.odp_caps.per_transport_caps.uc_odp_caps, datagram | IBV_ODP_SUPPORT_WRITE);
	MUST_EQ(a.odp_caps.per_transport_caps.ud_odp_caps, datagram);
	MUST_EQ(a.xrc_odp_caps, IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_SRQ_RECV | rdma);
	MUST(use_all(IBV_QPT_RC, a.odp_caps.per_transport_caps.rc_odp_caps));
	MUST(use_all(IBV_QPT_UC, a.odp_caps.per_transport_caps.uc_odp_caps));
	MUST(use_all(IBV_QPT_UD, a.odp_caps.per_transport_caps.ud_odp_caps));
	MUST(use_all(IBV_QPT_XRC_SEND, a.xrc_odp_caps));
	return true;
}

/* ---- memory that is not there ---- */

/* Not mapped yet, or no more: the memory's end reports it, as for pinned memory that is gone. */
static bool gone(int end, bool implicit, bool was_mapped)
{
	struct ends e;
	bool good = ends_open(&e, 0, false, implicit) && map_filled(&e, !end, 1);

	if (good && was_mapped)
		good = use(&e, IBV_WR_RDMA_WRITE) &&
		       !mprotect(e.mem[end], BYTES, PROT_NONE) &&
		       !munmap(e.mem[end] + BYTES / 2, BYTES / 2);
	if (good) {
		int status = request(&e, IBV_WR_RDMA_WRITE, BYTES);

		good = status == (end ? IBV_WC_REM_ACCESS_ERR : IBV_WC_LOC_PROT_ERR);
		if (!good)
			printf("# end %d: status %d\n", end, status);
		if (good && end)
			good = take_async(IBV_EVENT_QP_ACCESS_ERR, e.p.qp[1]);
	}
	return ends_close(&e) && good;
}

static bool used_while_unmapped(void)
{
	for (int i = 0; i < 8; i++)
		MUST(gone(i & 1, i & 2, i & 4));
	return true;
}

/*
 * Addresses that no process can have are none of the whole address space's: a bad key to the device
 * (vendor_err 2), where others are memory that is not there (17).
 */
static bool wild(uint64_t addr, bool is_local, uint32_t vendor_err)
{
	struct ends e;
	bool good = ends_open(&e, 0, false, true) && map_filled(&e, 0, 1) && map_filled(&e, 1, 2);
	char *was = e.mem[!is_local];
	struct ibv_wc wc;

	e.mem[!is_local] = (char *)(uintptr_t)addr;
	good = good && !post_request(&e, IBV_WR_RDMA_WRITE, 8) && wait_wc(e.p.cq[0], &wc) &&
	       wc.status == (is_local ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_ACCESS_ERR) &&
	       (!is_local || wc.vendor_err == vendor_err);
	e.mem[!is_local] = was;
	if (good && !is_local)
		good = take_async(IBV_EVENT_QP_ACCESS_ERR, e.p.qp[1]);
	return ends_close(&e) && good;
}

static bool wild_addresses(void)
{
	static const struct { uint64_t addr; uint32_t vendor_err; } at[] = {
		{ 4096, 17 },	  { 1ull << 55, 17 }, { 1ull << 56, 2 },
		{ 1ull << 63, 2 }, { UINT64_MAX - 7, 2 },
	};

	for (unsigned int i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		MUST(wild(at[i].addr, true, at[i].vendor_err));
		MUST(wild(at[i].addr, false, 0));
	}
	return true;
}

/* A discarded page reads as a new one, not with its old content. */
static bool given_back(void)
{
	struct ends e;
	bool good = ends_open(&e, 0, false, true) && use(&e, IBV_WR_RDMA_WRITE) &&
		    !madvise(e.mem[1], BYTES, MADV_DONTNEED) &&
		    request(&e, IBV_WR_RDMA_READ, BYTES) == IBV_WC_SUCCESS;

	for (unsigned int i = 0; good && i < BYTES; i++)
		good = !e.mem[0][i];
	return ends_close(&e) && good;
}

/* ---- registration ---- */

static bool registration(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const int on_demand = ON_DEMAND | IBV_ACCESS_LOCAL_WRITE;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	char *none = (char *)page; /* below vm.mmap_min_addr: never mapped */
	char *mem = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr, *all;

	MUST(pd && mem != MAP_FAILED);
	MUST_FAIL(ibv_reg_mr(pd, none, page, 0), EFAULT);
	MUST(mr = ibv_reg_mr(pd, none, page, on_demand));
	MUST(mr->addr == none && mr->length == page);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	/* "addr should be 0 and length should be SIZE_MAX" */
	MUST(all = reg_all(pd, ALL_RIGHTS));
	MUST(!all->addr && all->length == SIZE_MAX && all->lkey && all->rkey);
	MUST_FAIL(ibv_reg_mr(pd, none, SIZE_MAX, on_demand), EINVAL);
	MUST_FAIL(ibv_reg_mr_iova(pd, none, SIZE_MAX, 0, on_demand), EINVAL);
	MUST_FAIL(ibv_reg_mr_iova(pd, NULL, SIZE_MAX, page, on_demand), EINVAL);
	MUST_FAIL(ibv_reg_mr(pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE), EINVAL);
	/* IBV_ACCESS_HUGETLB "applicable with IBV_ACCESS_ON_DEMAND in explicit mode only" */
	MUST_FAIL(reg_all(pd, IBV_ACCESS_HUGETLB), EINVAL);
	MUST(mr = ibv_reg_mr(pd, mem, page, on_demand | IBV_ACCESS_HUGETLB));
	MUST_EQ(ibv_dereg_mr(mr), 0);
	MUST_FAIL(ibv_reg_mr(pd, mem, SIZE_MAX - 1, on_demand), EINVAL);
	MUST_FAIL(ibv_reg_mr(pd, mem, 1ull << 60, on_demand), EFAULT);
	MUST_FAIL(ibv_reg_mr(pd, mem, 0, on_demand), EINVAL);
	/* "IBV_ACCESS_LOCAL_WRITE must be set too" */
	MUST_FAIL(ibv_reg_mr(pd, mem, page, ON_DEMAND | IBV_ACCESS_REMOTE_WRITE), EINVAL);
	MUST_FAIL(reg_all(pd, IBV_ACCESS_REMOTE_ATOMIC), EINVAL);
	/* ibv_rereg_mr(3): memory of a pinned region must be there */
	MUST(mr = ibv_reg_mr(pd, mem, page, on_demand));
	MUST_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
		IBV_REREG_MR_ERR_INPUT);
	MUST_EQ(errno, EFAULT);
	MUST_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			     ON_DEMAND | ALL_RIGHTS),
		0);
	MUST_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, none, page, 0), 0);
	MUST_EQ(ibv_rereg_mr(all, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
		IBV_REREG_MR_ERR_INPUT);
	MUST_EQ(ibv_rereg_mr(all, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ON_DEMAND), 0);
	MUST_EQ(ibv_dereg_mr(all), 0);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	munmap(mem, page);
	return true;
}

/* ---- rights ---- */

/* Each right of the whole address space allows its operation, and nothing else. */
static bool rights(void)
{
	static const unsigned int granted[] = {
		0,
		IBV_ACCESS_LOCAL_WRITE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		IBV_ACCESS_REMOTE_READ,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	};
	static const struct { enum ibv_wr_opcode op; unsigned int right; } asked[] = {
		{ IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE },
		{ IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC },
	};

	for (unsigned int i = 0; i < sizeof(granted) / sizeof(granted[0]); i++)
		for (unsigned int k = 0; k < sizeof(asked) / sizeof(asked[0]); k++) {
			const bool ok = granted[i] & asked[k].right;
			struct ends e;
			int status = -1;

			if (ends_open(&e, 0, false, true) && map_filled(&e, 0, 1) &&
			    map_filled(&e, 1, 2) && !ibv_dereg_mr(e.mr[1]) &&
			    (e.mr[1] = reg_all(e.p.pd, granted[i])))
				status = request(&e, asked[k].op, 8);
			if (status > 0 && !take_async(IBV_EVENT_QP_ACCESS_ERR, e.p.qp[1]))
				status = -1;
			MUST(ends_close(&e));
			MUST_EQ(status, ok ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
		}
	return true;
}

/* Receives and READs need local write. */
static bool local_write(void)
{
	for (int i = 0; i < 2; i++) {
		struct ends e;
		struct ibv_wc wc;
		bool good = ends_open(&e, 0, false, true) && map_filled(&e, 0, 1) &&
			    map_filled(&e, 1, 2) && !ibv_dereg_mr(e.mr[i]) &&
			    (e.mr[i] = reg_all(e.p.pd, IBV_ACCESS_REMOTE_READ));

		if (good && i)
			good = !post_receive(&e, 100) &&
			       request(&e, IBV_WR_SEND, 100) == IBV_WC_REM_OP_ERR &&
			       wait_wc(e.p.cq[1], &wc) && wc.status == IBV_WC_LOC_PROT_ERR;
		else if (good)
			good = request(&e, IBV_WR_RDMA_READ, 100) == IBV_WC_LOC_PROT_ERR;
		MUST(ends_close(&e) && good);
	}
	return true;
}

/* A window onto the whole address space: ibv_bind_mw(3). */
static bool window_body(struct ends *e)
{
	struct ibv_mr *all = reg_all(e->p.pd, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(e->p.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED,
				    .bind_info = { .mr = all,
						   .addr = (uintptr_t)e->mem[1],
						   .length = 100,
						   .mw_access_flags = IBV_ACCESS_REMOTE_WRITE } };
	struct ibv_mr *mr = e->mr[1], named;
	struct ibv_wc wc;
	int inside, beyond;

	MUST(all && mw && map_filled(e, 0, 1) && map_filled(e, 1, 2));
	MUST_EQ(ibv_bind_mw(e->p.qp[1], mw, &bind), 0);
	MUST(wait_wc(e->p.cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	named = *mr;
	named.rkey = mw->rkey;
	e->mr[1] = &named;
	inside = request(e, IBV_WR_RDMA_WRITE, 100);
	beyond = request(e, IBV_WR_RDMA_WRITE, 101);
	e->mr[1] = mr;
	MUST_EQ(inside, IBV_WC_SUCCESS);
	MUST_EQ(beyond, IBV_WC_REM_ACCESS_ERR);
	MUST(take_async(IBV_EVENT_QP_ACCESS_ERR, e->p.qp[1]));
	MUST_EQ(ibv_dealloc_mw(mw), 0);
	MUST_EQ(ibv_dereg_mr(all), 0);
	return is_filled(e->mem[1], 100, 1);
}

static bool window(void)
{
	struct ends e;
	bool good = ends_open(&e, 0, false, true) && window_body(&e);

	return ends_close(&e) && good;
}

/* ---- threads ---- */

/* Mapped, used, unmapped and mapped again, time and again. */
static void *user(void *arg)
{
	struct ends *e = arg;
	bool good = true;

	for (int i = 0; good && i < ROUNDS; i++)
		good = use(e, i % 3 == 0 ? IBV_WR_RDMA_READ :
			      i % 3 == 1 ? IBV_WR_RDMA_WRITE :
					   IBV_WR_SEND) &&
		       !mprotect(e->mem[0], BYTES, PROT_NONE) &&
		       !madvise(e->mem[1], BYTES, MADV_DONTNEED);
	return good ? e : NULL;
}

static bool two_threads(void)
{
	struct ends e[2];
	pthread_t thread[2];
	void *done[2];
	bool good = true;

	for (int i = 0; i < 2; i++)
		good &= ends_open(&e[i], 0, false, true);
	MUST(good);
	for (int i = 0; i < 2; i++)
		MUST_EQ(pthread_create(&thread[i], NULL, user, &e[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], &done[i]);
	for (int i = 0; i < 2; i++)
		good &= ends_close(&e[i]);
	return good && done[0] && done[1];
}

const struct test_case man_cases[] = {
	CASE(what_is_claimed_works),
	CASE(used_while_unmapped),
	CASE(wild_addresses),
	CASE(given_back),
	CASE(registration),
	CASE(rights),
	CASE(local_write),
	CASE(window),
	CASE(two_threads),
	{ 0 },
};
