/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory windows of both types: binding, the access that they grant and to which QPs, local and
 * remote invalidation; and ATOMIC WRITE.
 */
#include "contract.h"

#define OPTIONS(...) ((struct pair_options){ __VA_ARGS__ })
#define BASE	     4096 /* where the windows begin in the region */
#define BYTES	     100

/* A pair whose end 1 has a region that windows can be bound to, over the same memory. */
struct windows {
	struct pair p;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_mw_bind_info info;
};

static bool windows_open(struct windows *w, enum ibv_mw_type type, struct pair_options o)
{
	memset(w, 0, sizeof(*w));
	MUST(pair_open(&w->p, o));
	MUST(w->mr = ibv_reg_mr(w->p.pd, w->p.buf[1], BUF_BYTES,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND));
	MUST(w->mw = ibv_alloc_mw(w->p.pd, type));
	w->info = (struct ibv_mw_bind_info){ .mr = w->mr,
					     .addr = (uintptr_t)w->p.buf[1] + BASE,
					     .length = BYTES,
					     .mw_access_flags = IBV_ACCESS_REMOTE_WRITE };
	return true;
}

static bool windows_close(struct windows *w)
{
	bool good = (!w->mw || !ibv_dealloc_mw(w->mw)) && (!w->mr || !ibv_dereg_mr(w->mr));

	if (!good)
		printf("# the window or its region refused to go\n");
	return pair_close(&w->p) && good;
}

#define IN_WINDOWS(type, options, body)                         \
	do {                                                    \
		struct windows w_;                              \
		bool good_ = windows_open(&w_, type, options);  \
		if (good_)                                      \
			good_ = body(&w_);                      \
		return windows_close(&w_) && good_;             \
	} while (0)

/* What becomes of a WRITE of length bytes from end 0 to remote; -1 if nothing does. */
static int write_to(struct windows *w, uint32_t rkey, uint64_t remote, uint32_t length)
{
	struct ibv_sge sge = sge_of(&w->p, 0, 0, length);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { remote, rkey } },
			   *bad;
	struct ibv_wc wc;

	return !ibv_post_send(w->p.qp[0], &wr, &bad) && wait_wc(w->p.cq[0], &wc) ? (int)wc.status :
										   -1;
}

/* End 1 runs a request that sends nothing; its completion must be of this opcode. */
static bool run_local(struct windows *w, struct ibv_send_wr wr, enum ibv_wc_opcode opcode)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr.wr_id = 0x77;
	wr.send_flags = IBV_SEND_SIGNALED;
	MUST_EQ(ibv_post_send(w->p.qp[1], &wr, &bad), 0);
	MUST(wait_wc(w->p.cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.opcode, opcode);
	MUST_EQ(wc.wr_id, 0x77);
	MUST_EQ(wc.qp_num, w->p.qp[1]->qp_num);
	return true;
}

static bool bind_type2(struct windows *w, uint32_t rkey)
{
	return run_local(w,
			 (struct ibv_send_wr){ .opcode = IBV_WR_BIND_MW,
					       .bind_mw = { w->mw, rkey, w->info } },
			 IBV_WC_BIND_MW);
}

static bool alloc_mw__refuses(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mw *mw[2];

	MUST(pd);
	MUST_FAIL(ibv_alloc_mw(pd, (enum ibv_mw_type)0), EINVAL);
	MUST_FAIL(ibv_alloc_mw(pd, (enum ibv_mw_type)3), EINVAL);
	MUST(mw[0] = ibv_alloc_mw(pd, IBV_MW_TYPE_1));
	MUST(mw[1] = ibv_alloc_mw(pd, IBV_MW_TYPE_2));
	MUST(mw[0]->pd == pd && mw[0]->context == ctx);
	MUST_EQ(mw[0]->type, IBV_MW_TYPE_1);
	MUST(mw[0]->rkey >> 8 != mw[1]->rkey >> 8);
	MUST_EQ(ibv_dealloc_pd(pd), EBUSY);
	MUST_EQ(ibv_dealloc_mw(mw[0]), 0);
	MUST_EQ(ibv_dealloc_mw(mw[1]), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

static bool type1_body(struct windows *w)
{
	struct ibv_mw_bind bind = { .wr_id = 9,
				    .send_flags = IBV_SEND_SIGNALED,
				    .bind_info = w->info },
			   bad_bind;
	const uint64_t base = w->info.addr;
	const uint32_t unbound = w->mw->rkey;
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW,
				  .bind_mw = { w->mw, unbound + 1, w->info } },
			   *bad;
	struct ibv_wc wc;

	/* Type 1 is bound by ibv_bind_mw() alone. */
	MUST_EQ(ibv_post_send(w->p.qp[1], &wr, &bad), EINVAL);
	MUST(bad == &wr);
	bad_bind = bind;
	bad_bind.bind_info.mw_access_flags = IBV_ACCESS_MW_BIND;
	MUST_EQ(ibv_bind_mw(w->p.qp[1], w->mw, &bad_bind), EINVAL);
	MUST_EQ(w->mw->rkey, unbound);

	MUST_EQ(ibv_bind_mw(w->p.qp[1], w->mw, &bind), 0);
	MUST(w->mw->rkey != unbound && w->mw->rkey >> 8 == unbound >> 8);
	MUST(wait_wc(w->p.cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.opcode, IBV_WC_BIND_MW);
	MUST_EQ(wc.wr_id, 9);

	/* The region stays under its window, as it is. */
	MUST_EQ(ibv_dereg_mr(w->mr), EBUSY);
	MUST_EQ(ibv_rereg_mr(w->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			     IBV_ACCESS_LOCAL_WRITE),
		IBV_REREG_MR_ERR_INPUT);
	MUST_EQ(errno, EBUSY);

	memset(w->p.buf[0], 'm', BYTES);
	MUST_EQ(write_to(w, w->mw->rkey, base, BYTES), IBV_WC_SUCCESS);
	MUST_EQ(memcmp(w->p.buf[1] + BASE, w->p.buf[0], BYTES), 0);
	MUST_EQ(w->p.buf[1][BASE + BYTES], 0);

	/* Bound again and unbound, each with its own key. */
	bind.bind_info = (struct ibv_mw_bind_info){ 0 };
	MUST_EQ(ibv_bind_mw(w->p.qp[1], w->mw, &bind), 0);
	MUST(wait_wc(w->p.cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(ibv_dereg_mr(w->mr), 0);
	w->mr = NULL;
	MUST_EQ(write_to(w, w->mw->rkey, base, BYTES), IBV_WC_REM_ACCESS_ERR);
	return true;
}

static bool bind_mw__opens_a_part_of_its_region(void)
{
	IN_WINDOWS(IBV_MW_TYPE_1, OPTIONS(0), type1_body);
}

static bool bounds_body(struct windows *w)
{
	const uint64_t base = w->info.addr;
	struct ibv_mw_bind bind = { .bind_info = w->info };

	MUST_EQ(ibv_bind_mw(w->p.qp[1], w->mw, &bind), 0);
	/* One byte more, though the region has it. */
	MUST_EQ(write_to(w, w->mw->rkey, base, BYTES + 1), IBV_WC_REM_ACCESS_ERR);
	MUST_EQ(w->p.buf[1][BASE], 0);
	return true;
}

static bool bind_mw__bounds_are_the_windows(void)
{
	IN_WINDOWS(IBV_MW_TYPE_1, OPTIONS(0), bounds_body);
}

static bool zero_based_body(struct windows *w)
{
	struct ibv_mw_bind bind = { .bind_info = w->info };

	bind.bind_info.mw_access_flags |= IBV_ACCESS_ZERO_BASED;
	MUST_EQ(ibv_bind_mw(w->p.qp[1], w->mw, &bind), 0);
	memset(w->p.buf[0], 'z', BYTES);
	MUST_EQ(write_to(w, w->mw->rkey, 10, 5), IBV_WC_SUCCESS);
	MUST_EQ(memcmp(w->p.buf[1] + BASE + 9, "\0zzzzz\0", 7), 0);
	return true;
}

static bool bind_mw__zero_based(void)
{
	IN_WINDOWS(IBV_MW_TYPE_1, OPTIONS(0), zero_based_body);
}

static bool right_body(struct windows *w)
{
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED, .bind_info = w->info };
	struct ibv_wc wc;

	/* The pair's own region does not say IBV_ACCESS_MW_BIND. */
	bind.bind_info.mr = w->p.mr[1];
	MUST_EQ(ibv_bind_mw(w->p.qp[1], w->mw, &bind), 0);
	MUST(wait_wc(w->p.cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_MW_BIND_ERR);
	MUST_EQ(wc.opcode, IBV_WC_BIND_MW);
	return true;
}

static bool bind_mw__needs_the_regions_leave(void)
{
	IN_WINDOWS(IBV_MW_TYPE_1, OPTIONS(0), right_body);
}

static bool type2_body(struct windows *w)
{
	const uint64_t base = w->info.addr;
	const uint32_t unbound = w->mw->rkey, rkey = ibv_inc_rkey(unbound);
	const uint32_t third = ibv_inc_rkey(rkey);
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW, .bind_mw = { w->mw, rkey, w->info } },
			   *bad;
	struct ibv_sge sge = sge_of(&w->p, 0, 0, 7);
	struct ibv_wc wc;

	MUST_EQ(ibv_bind_mw(w->p.qp[1], w->mw, &(struct ibv_mw_bind){ .bind_info = w->info }),
		EINVAL);
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_ON_DEMAND;
	MUST_EQ(ibv_post_send(w->p.qp[1], &wr, &bad), EINVAL);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){ .addr = base, .length = BYTES };
	MUST_EQ(ibv_post_send(w->p.qp[1], &wr, &bad), EINVAL);
	wr.bind_mw.mw = NULL;
	MUST_EQ(ibv_post_send(w->p.qp[1], &wr, &bad), EINVAL);

	memset(w->p.buf[0], '2', BYTES);
	MUST(bind_type2(w, rkey));
	MUST_EQ(write_to(w, rkey, base, BYTES), IBV_WC_SUCCESS);
	MUST_EQ(w->p.buf[1][BASE + BYTES - 1], '2');
	MUST_EQ(ibv_dereg_mr(w->mr), EBUSY);

	/*
	 * Invalidated here; then bound again, with 8 bits of the new R_Key alone: the window has
	 * the others.
	 */
	MUST_EQ(w->mw->rkey, rkey);
	MUST(run_local(w,
		       (struct ibv_send_wr){ .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = rkey },
		       IBV_WC_LOCAL_INV));
	MUST(bind_type2(w, 1024));
	MUST_EQ(w->mw->rkey, unbound & ~0xffu);
	MUST_EQ(write_to(w, w->mw->rkey, base, BYTES), IBV_WC_SUCCESS);
	MUST(run_local(
		w,
		(struct ibv_send_wr){ .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = w->mw->rkey },
		IBV_WC_LOCAL_INV));
	/* An object that has forgotten its key is still bound by its own. */
	w->mw->rkey = 0;
	MUST(bind_type2(w, third));
	MUST_EQ(write_to(w, third, base, BYTES), IBV_WC_SUCCESS);

	/* Invalidated from afar. */
	MUST_EQ(post_recv(&w->p, 33, 0, 50), 0);
	wr = (struct ibv_send_wr){ .wr_id = 34,
				   .opcode = IBV_WR_SEND_WITH_INV,
				   .invalidate_rkey = third,
				   .sg_list = &sge,
				   .num_sge = 1,
				   .send_flags = IBV_SEND_SIGNALED };
	MUST_EQ(ibv_post_send(w->p.qp[0], &wr, &bad), 0);
	MUST(wait_wc(w->p.cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.opcode, IBV_WC_RECV);
	MUST_EQ(wc.wr_id, 33);
	MUST_EQ(wc.byte_len, 7);
	MUST_EQ(wc.wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV), IBV_WC_WITH_INV);
	MUST_EQ(wc.invalidated_rkey, third);
	MUST(wait_wc(w->p.cq[0], &wc));
	MUST_EQ(wc.opcode, IBV_WC_SEND);
	MUST_EQ(wc.wr_id, 34);
	MUST_EQ(write_to(w, third, base, BYTES), IBV_WC_REM_ACCESS_ERR);
	MUST_EQ(ibv_dereg_mr(w->mr), 0);
	w->mr = NULL;
	return true;
}

static bool post_send__type2_windows(void)
{
	IN_WINDOWS(IBV_MW_TYPE_2, OPTIONS(0), type2_body);
}

static bool invalid_body(struct windows *w)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = w->mr->rkey },
			   *bad;
	struct ibv_wc wc;

	/* A region's key is none that can be invalidated. */
	MUST_EQ(ibv_post_send(w->p.qp[1], &wr, &bad), 0);
	MUST(wait_wc(w->p.cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_LOC_QP_OP_ERR);
	MUST(wc.vendor_err != 0);
	return true;
}

static bool post_send__local_inv_of_what_is_no_window(void)
{
	IN_WINDOWS(IBV_MW_TYPE_2, OPTIONS(0), invalid_body);
}

/* The QP with the ibv_wr_*() calls is end 0: it binds to its own memory, and end 1 writes there. */
static bool wr_api_body(struct windows *w)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(w->p.qp[0]);
	struct ibv_mr *mr = ibv_reg_mr(w->p.pd, w->p.buf[0], BUF_BYTES,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw_bind_info info = { .mr = mr,
					 .addr = (uintptr_t)w->p.buf[0],
					 .length = BYTES,
					 .mw_access_flags = IBV_ACCESS_REMOTE_WRITE };
	struct ibv_mw *type1 = ibv_alloc_mw(w->p.pd, IBV_MW_TYPE_1);
	const uint32_t rkey = ibv_inc_rkey(w->mw->rkey);
	struct ibv_sge sge = sge_of(&w->p, 1, 0, 3);
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	const enum ibv_wc_opcode expected[] = { IBV_WC_BIND_MW, IBV_WC_LOCAL_INV };
	struct ibv_wc wc;

	MUST(ex && mr && type1);
	MUST(ex->wr_bind_mw && ex->wr_local_inv && !ex->wr_send && !ex->wr_set_xrc_srqn);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_start(ex);
	ibv_wr_bind_mw(ex, type1, ibv_inc_rkey(type1->rkey), &info);
	MUST_EQ(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	ex->wr_id = 0;
	ibv_wr_bind_mw(ex, w->mw, rkey, &info);
	MUST_EQ(ibv_wr_complete(ex), 0);
	MUST(wait_wc(w->p.cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.opcode, IBV_WC_BIND_MW);
	memset(w->p.buf[1], 'e', 3);
	wr.wr.rdma.remote_addr = info.addr + BYTES - 3;
	wr.wr.rdma.rkey = rkey;
	MUST_EQ(ibv_post_send(w->p.qp[1], &wr, &bad), 0);
	MUST(wait_wc(w->p.cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(memcmp(w->p.buf[0] + BYTES - 4, "\0eee\0", 5), 0);
	/* Several in one list run in its order. */
	ibv_wr_start(ex);
	ex->wr_id = 1;
	ibv_wr_local_inv(ex, rkey);
	ex->wr_id = 2;
	ibv_wr_bind_mw(ex, w->mw, rkey, &info);
	ex->wr_id = 3;
	ibv_wr_local_inv(ex, rkey);
	MUST_EQ(ibv_wr_complete(ex), 0);
	for (int i = 1; i <= 3; i++) {
		MUST(wait_wc(w->p.cq[0], &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST_EQ(wc.wr_id, i);
		MUST_EQ(wc.opcode, expected[i % 2]);
	}
	MUST_EQ(ibv_dealloc_mw(type1), 0);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	return true;
}

static bool wr_post__type2_windows(void)
{
	IN_WINDOWS(IBV_MW_TYPE_2, OPTIONS(.ops = IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV),
		   wr_api_body);
}

static bool word_arrived(struct pair *p, const char *bytes)
{
	struct ibv_wc wc;

	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.opcode, IBV_WC_ATOMIC_WRITE);
	MUST_EQ(wc.wr_id, 88);
	MUST_EQ(memcmp(p->buf[1] + 64, bytes, 8), 0);
	MUST_EQ(p->buf[1][63] | p->buf[1][72], 0);
	return true;
}

static bool atomic_write_body(struct pair *p)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p->qp[0]);
	struct ibv_sge sge[2] = { sge_of(p, 0, 0, 3), sge_of(p, 0, 3, 5) };
	struct ibv_send_wr wr = { .wr_id = 88,
				  .sg_list = sge,
				  .num_sge = 2,
				  .opcode = IBV_WR_ATOMIC_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc;

	MUST(ex && ex->wr_atomic_write);
	wr.wr.rdma.remote_addr = (uintptr_t)p->buf[1] + 64;
	wr.wr.rdma.rkey = p->mr[1]->rkey;
	memcpy(p->buf[0], "elements", 8);
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(word_arrived(p, "elements"));
	memcpy(p->buf[0], "inlined!", 8);
	wr.send_flags |= IBV_SEND_INLINE;
	sge[0].lkey = sge[1].lkey = 0;
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(word_arrived(p, "inlined!"));
	ex->wr_id = 88;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_start(ex);
	ibv_wr_atomic_write(ex, p->mr[1]->rkey, wr.wr.rdma.remote_addr, "in a WQE");
	MUST_EQ(ibv_wr_complete(ex), 0);
	MUST(word_arrived(p, "in a WQE"));

	/* Another length, an address that is not a multiple of 8. */
	wr.send_flags = IBV_SEND_SIGNALED;
	sge[0].lkey = sge[1].lkey = p->mr[0]->lkey;
	for (uint32_t length = 1; length <= 9; length += 8) {
		sge[1].length = length;
		MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), EINVAL);
		wr.send_flags |= IBV_SEND_INLINE;
		MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), EINVAL);
		wr.send_flags &= ~(unsigned int)IBV_SEND_INLINE;
	}
	sge[1].length = 5;
	wr.wr.rdma.remote_addr += 4;
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), EINVAL);
	ibv_wr_start(ex);
	ibv_wr_atomic_write(ex, p->mr[1]->rkey, wr.wr.rdma.remote_addr, "too late");
	MUST_EQ(ibv_wr_complete(ex), EINVAL);
	MUST_EQ(memcmp(p->buf[1] + 64, "in a WQE", 8), 0);
	/* A key that fails is the completion's to say. */
	wr.wr.rdma.remote_addr -= 4;
	sge[1].lkey ^= 1;
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_LOC_PROT_ERR);
	MUST_EQ(wc.wr_id, 88);
	MUST_EQ(memcmp(p->buf[1] + 64, "in a WQE", 8), 0);
	return true;
}

static bool post_send__atomic_write(void)
{
	struct pair p;
	bool good =
		pair_open(&p, OPTIONS(.ops = IBV_QP_EX_WITH_ATOMIC_WRITE)) && atomic_write_body(&p);

	return pair_close(&p) && good;
}

const struct test_case mw_cases[] = {
#define CASE(f) { #f, f }
	CASE(alloc_mw__refuses),
	CASE(bind_mw__opens_a_part_of_its_region),
	CASE(bind_mw__bounds_are_the_windows),
	CASE(bind_mw__zero_based),
	CASE(bind_mw__needs_the_regions_leave),
	CASE(post_send__type2_windows),
	CASE(post_send__local_inv_of_what_is_no_window),
	CASE(wr_post__type2_windows),
	CASE(post_send__atomic_write),
	{ 0 },
};
