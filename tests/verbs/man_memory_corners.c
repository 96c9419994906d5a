/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * Memory in corners of several pages: words whose address in a region is aligned and whose memory
 * is not, and the other way round; the null region in the lists and as the target of XRC.
 */
#include <fcntl.h>

#include "wr.h"

#define LEN	3001u
#define AT	4096u
#define FILLER	0x5e
#define IOVA_AT 0x700000000000ull
#define ALL                                                                                        \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

/* ---- atomics of words that are not aligned ---- */

enum view { ZERO_BASED, ZERO_BASED_WINDOW, OTHER_IOVA, REREGISTERED, VIEWS };

struct target {
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	uint64_t addr; /* of its first byte, whose memory is at 4 modulo 8 */
	uint32_t rkey;
};

static bool bind_view(struct pair *p, struct target *t, void *start)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_wc wc;

	MUST(t->mr = ibv_reg_mr(p->pd, p->buf[1], BUF_BYTES, ALL));
	MUST(t->mw = ibv_alloc_mw(p->pd, IBV_MW_TYPE_2));
	wr.bind_mw.mw = t->mw;
	wr.bind_mw.rkey = ibv_inc_rkey(t->mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = t->mr,
		.addr = (uintptr_t)start,
		.length = 256,
		.mw_access_flags =
			IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED,
	};
	MUST_EQ(ibv_post_send(p->qp[1], &wr, &bad), 0);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	t->rkey = t->mw->rkey;
	return true;
}

static bool target_make(struct pair *p, struct target *t, enum view view)
{
	char *start = p->buf[1] + AT + 4 - (uintptr_t)p->buf[1] % 8;

	*t = (struct target){ 0 };
	switch (view) {
	case ZERO_BASED:
		MUST(t->mr = ibv_reg_mr(p->pd, start, 256, ALL | IBV_ACCESS_ZERO_BASED));
		break;
	case ZERO_BASED_WINDOW:
		return bind_view(p, t, start);
	case OTHER_IOVA:
		MUST(t->mr = ibv_reg_mr_iova(p->pd, start, 256, IOVA_AT, ALL));
		t->addr = IOVA_AT;
		break;
	default:
		MUST(t->mr = ibv_reg_mr(p->pd, p->buf[1], 256, ALL | IBV_ACCESS_ZERO_BASED));
		MUST_EQ(ibv_rereg_mr(t->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, start, 256, 0),
			0);
	}
	t->rkey = t->mr->rkey;
	return true;
}

static bool target_end(struct target *t)
{
	MUST(!t->mw || !ibv_dealloc_mw(t->mw));
	MUST(!t->mr || !ibv_dereg_mr(t->mr));
	return true;
}

static bool refused_atomic(struct pair *p, struct target *t, enum ibv_wr_opcode op, uint64_t offset)
{
	struct ibv_sge sge = sge_of(p, 0, 0, 8);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = op,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc;

	wr.wr.atomic.remote_addr = t->addr + offset;
	wr.wr.atomic.rkey = t->rkey;
	wr.wr.atomic.compare_add = 1;
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_REM_INV_REQ_ERR);
	MUST(take_async(IBV_EVENT_QP_REQ_ERR, p->qp[1]));
	for (uint32_t i = 0; i < BUF_BYTES; i++)
		MUST_EQ(p->buf[1][i], 0);
	return true;
}

/* docs/verbs.md: an unaligned address gives REM_INV_REQ_ERR, and so does unaligned memory. */
static bool unaligned_atomics(void)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_ATOMIC_FETCH_AND_ADD,
						  IBV_WR_ATOMIC_CMP_AND_SWP };
	bool all = true;

	for (int view = 0; view < VIEWS; view++)
		for (int op = 0; op < 2; op++)
			for (uint64_t offset = 0; offset <= 4; offset += 4) {
				struct pair p;
				struct target t = { 0 };
				bool good = pair_open(&p, OPTIONS(0));

				good = good && target_make(&p, &t, (enum view)view) &&
				       refused_atomic(&p, &t, ops[op], offset);
				if (!good)
					printf("# view %d, opcode %d, offset %d\n", view,
					       (int)ops[op], (int)offset);
				all &= good;
				all &= target_end(&t);
				all &= pair_close(&p);
			}
	return all;
}

/* ---- the null region and XRC ---- */

static bool xrc_request(struct wr_ends *e, enum wr_code op, uint32_t rkey, uint64_t at, int status)
{
	struct wr_args a = wr_args_of(e, op);
	struct ibv_wc wc;

	a.rkey = rkey;
	a.remote = at;
	memset(e->buf[0], FILLER, LEN + 1);
	ibv_wr_start(e->ex);
	e->ex->wr_id = 3;
	e->ex->wr_flags = IBV_SEND_SIGNALED;
	wr_build(e, op, &a);
	wr_address(e);
	ibv_wr_set_sge(e->ex, e->mr[0]->lkey, (uintptr_t)e->buf[0],
		       op == OP_CMP_SWP || op == OP_FETCH_ADD ? 8 : LEN);
	MUST_EQ(ibv_wr_complete(e->ex), 0);
	MUST(wait_wc(e->cq[0], &wc));
	MUST_EQ(wc.status, status);
	return true;
}

static bool with_xrc(bool (*body)(struct wr_ends *e, struct ibv_mr *null, struct ibv_mr *other))
{
	struct wr_ends e;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *null = NULL, *other = ibv_alloc_null_mr(pd);
	bool good = wr_open(&e, IBV_QPT_XRC_SEND, wr_ops_of(IBV_QPT_XRC_SEND));

	MUST(pd && other);
	if (good)
		good = (null = ibv_alloc_null_mr(e.pd)) && body(&e, null, other);
	MUST(!null || !ibv_dereg_mr(null));
	MUST(wr_close(&e) && good);
	MUST_EQ(ibv_dereg_mr(other), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

static bool target_body(struct wr_ends *e, struct ibv_mr *null, struct ibv_mr *other)
{
	struct ibv_wc wc;

	MUST(xrc_request(e, OP_WRITE, null->lkey, 12345, IBV_WC_SUCCESS));
	MUST(xrc_request(e, OP_READ, null->lkey, UINT64_MAX - LEN, IBV_WC_SUCCESS));
	for (uint32_t i = 0; i < LEN; i++)
		MUST_EQ(e->buf[0][i], 0);
	MUST_EQ(e->buf[0][LEN], FILLER);
	MUST_EQ(wr_recv(e, 7, 0), 0);
	MUST(xrc_request(e, OP_WRITE_IMM, null->lkey, 0, IBV_WC_SUCCESS));
	MUST(wait_wc(e->cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.byte_len, LEN);
	MUST(xrc_request(e, OP_FETCH_ADD, null->lkey, 4096, IBV_WC_REM_ACCESS_ERR));
	return take_async(IBV_EVENT_QP_ACCESS_ERR, e->qp[1]);
}

static bool null_target_of_xrc(void)
{
	return with_xrc(target_body);
}

static bool other_pd_body(struct wr_ends *e, struct ibv_mr *null, struct ibv_mr *other)
{
	MUST(xrc_request(e, OP_READ, other->lkey, 4096, IBV_WC_REM_ACCESS_ERR));
	return take_async(IBV_EVENT_QP_ACCESS_ERR, e->qp[1]);
}

static bool null_target_of_another_pd(void)
{
	return with_xrc(other_pd_body);
}

/* A receive of the XRC SRQ with holes; the sender's list has some as well. */
static bool lists_body(struct wr_ends *e, struct ibv_mr *null, struct ibv_mr *other)
{
	struct ibv_sge in[2] = { { 0, 1507, null->lkey },
				 { (uintptr_t)e->buf[1] + 9, 601, e->mr[1]->lkey } };
	struct ibv_sge out[3] = { { (uintptr_t)e->buf[0] + 3, 1600, e->mr[0]->lkey },
				  { UINT64_MAX, 301, null->lkey },
				  { (uintptr_t)e->buf[0] + 5000, 207, e->mr[0]->lkey } };
	struct ibv_recv_wr wr = { .wr_id = 7, .sg_list = in, .num_sge = 2 }, *bad;
	struct ibv_wc wc;

	(void)other;
	for (uint32_t i = 0; i < 8192; i++)
		e->buf[0][i] = (char)(i * 7 + i / 256 + 1);
	memset(e->buf[1], FILLER, 8192);
	MUST_EQ(ibv_post_srq_recv(e->srq, &wr, &bad), 0);
	ibv_wr_start(e->ex);
	e->ex->wr_id = 3;
	e->ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(e->ex);
	wr_address(e);
	ibv_wr_set_sge_list(e->ex, 3, out);
	MUST_EQ(ibv_wr_complete(e->ex), 0);
	MUST(wait_wc(e->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST(wait_wc(e->cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.byte_len, 2108);
	for (uint32_t i = 1507; i < 2108; i++) {
		const char is = e->buf[1][9 + i - 1507];

		MUST_EQ(is, i < 1600 ? e->buf[0][3 + i] :
			    i < 1901 ? 0 :
				       e->buf[0][5000 + i - 1901]);
	}
	for (uint32_t i = 0; i < 9; i++)
		MUST_EQ(e->buf[1][i], FILLER);
	MUST_EQ(e->buf[1][9 + 601], FILLER);
	return true;
}

static bool null_lists_of_xrc(void)
{
	return with_xrc(lists_body);
}

const struct test_case man_cases[] = {
	CASE(unaligned_atomics),
	CASE(null_target_of_xrc),
	CASE(null_target_of_another_pd),
	CASE(null_lists_of_xrc),
	{ 0 },
};
