/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * ibv_rereg_mr(3): every combination of its flags, between messages whose data is checked, and
 * while messages are under way; what each of its errors leaves.
 */
#include <sys/mman.h>

#include "man.h"

#define TRANSLATION IBV_REREG_MR_CHANGE_TRANSLATION
#define PD	    IBV_REREG_MR_CHANGE_PD
#define ACCESS	    IBV_REREG_MR_CHANGE_ACCESS
#define HALF	    (BUF_BYTES / 2)
#define READ_ONLY   IBV_ACCESS_REMOTE_READ
#define ALL	    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static int post(struct pair *p, enum ibv_wr_opcode op, const void *remote, uint32_t length,
		uint64_t wr_id)
{
	struct ibv_sge sge = sge_of(p, 0, 0, length);
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = op,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)remote;
	wr.wr.rdma.rkey = p->mr[1]->rkey;
	return ibv_post_send(p->qp[0], &wr, &bad);
}

/* One request by the region's R_Key, which was the same before: its status. -1: none came. */
static int request(struct pair *p, enum ibv_wr_opcode op, const void *remote)
{
	struct ibv_wc wc;

	return !post(p, op, remote, 64, 1) && wait_wc(p->cq[0], &wc) ? (int)wc.status : -1;
}

/* Both ends of a failed request continue from RESET, with reported events taken. */
static bool again(struct pair *p)
{
	MUST(take_async(IBV_EVENT_QP_ACCESS_ERR, p->qp[1]));
	for (int i = 0; i < 2; i++)
		MUST(!qp_to_state(p->qp[i], IBV_QPS_RESET) && !qp_to_init(p->qp[i]));
	for (int i = 0; i < 2; i++)
		MUST_EQ(qp_to_rts(p->qp[i], p->qp[!i]->qp_num, 7), 0);
	return true;
}

/* It is refused if the region lacks the request's right, and its data is there if not. */
static bool must_be(struct pair *p, enum ibv_wr_opcode op, char *remote, bool allowed)
{
	const bool is_write = op == IBV_WR_RDMA_WRITE;

	memset(p->buf[0], is_write ? 0x11 : 0x22, 64);
	memset(remote, is_write ? 0x22 : 0x11, 64);
	MUST_EQ(request(p, op, remote), allowed ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
	for (int i = 0; i < 64; i++) {
		MUST_EQ(remote[i], is_write && !allowed ? 0x22 : 0x11);
		MUST_EQ(p->buf[0][i], !is_write && !allowed ? 0x22 : 0x11);
	}
	return allowed || again(p);
}

/*
 * Each combination: a flagged attribute has its new value, an unflagged one its old value, and the
 * region keeps its keys.
 */
static bool combinations_body(struct pair *p)
{
	struct ibv_pd *other = ibv_alloc_pd(ctx);
	char *low = p->buf[1], *high = p->buf[1] + HALF;

	MUST(other);
	for (int flags = 1; flags < 8; flags++) {
		const uint32_t lkey = p->mr[1]->lkey, rkey = p->mr[1]->rkey;
		char *in = flags & TRANSLATION ? high : low,
		     *out = flags & TRANSLATION ? low : high;
		const bool theirs = flags & PD;

		/* the lower half, of the QP's PD, with all rights */
		MUST_EQ(ibv_rereg_mr(p->mr[1], TRANSLATION | PD | ACCESS, p->pd, low, HALF, ALL),
			0);
		MUST(must_be(p, IBV_WR_RDMA_WRITE, low, true));
		MUST(must_be(p, IBV_WR_RDMA_WRITE, high, false));
		MUST_EQ(ibv_rereg_mr(p->mr[1], flags, theirs ? other : NULL,
				     flags & TRANSLATION ? high : NULL, HALF,
				     flags & ACCESS ? READ_ONLY : 0),
			0);
		MUST(p->mr[1]->lkey == lkey && p->mr[1]->rkey == rkey);
		MUST(p->mr[1]->addr == in && p->mr[1]->length == HALF);
		MUST(p->mr[1]->pd == (theirs ? other : p->pd));
		MUST(must_be(p, IBV_WR_RDMA_READ, in, !theirs));
		MUST(must_be(p, IBV_WR_RDMA_WRITE, in, !theirs && !(flags & ACCESS)));
		MUST(must_be(p, IBV_WR_RDMA_READ, out, false));
		/* a PD is busy as long as the region is its own */
		MUST_EQ(ibv_dealloc_pd(other), theirs ? EBUSY : 0);
		if (!theirs)
			MUST(other = ibv_alloc_pd(ctx));
	}
	MUST_EQ(ibv_rereg_mr(p->mr[1], TRANSLATION | PD, p->pd, low, BUF_BYTES, 0), 0);
	MUST_EQ(ibv_dealloc_pd(other), 0);
	return true;
}

/*
 * "IBV_REREG_MR_ERR_INPUT - Old MR is valid, an input error was detected": with any invalid
 * argument the region is as before, in use and in its fields.
 */
static bool errors_body(struct pair *p)
{
	struct ibv_context *other = ibv_open_device(ctx->device);
	struct ibv_pd *foreign = ibv_alloc_pd(other);
	char *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = p->mr[1], before = *mr;
	const struct {
		int flags;
		struct ibv_pd *pd;
		void *addr;
		size_t length;
		int access, err;
	} rows[] = {
		{ 0, NULL, NULL, 0, 0, EINVAL },
		{ 8, NULL, NULL, 0, 0, EINVAL },
		{ ACCESS | 8, NULL, NULL, 0, ALL, EINVAL },
		{ PD, NULL, NULL, 0, 0, EINVAL },
		{ PD, foreign, NULL, 0, 0, EINVAL },
		{ TRANSLATION, NULL, NULL, 64, 0, EINVAL },
		{ TRANSLATION, NULL, p->buf[1], 0, 0, EINVAL },
		{ TRANSLATION, NULL, p->buf[1], SIZE_MAX, 0, EINVAL },
		{ TRANSLATION, NULL, none, 64, 0, EFAULT },
		{ TRANSLATION, NULL, p->buf[0], 64, READ_ONLY,
		  EINVAL }, /* rights without the flag */
		{ ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE, EINVAL },
		{ ACCESS, NULL, NULL, 0, 1 << 15, EINVAL },
		/* one wrong thing, and nothing of the others */
		{ TRANSLATION | ACCESS, NULL, p->buf[0], 64, IBV_ACCESS_REMOTE_WRITE, EINVAL },
		{ PD | ACCESS, foreign, NULL, 0, ALL, EINVAL },
		{ TRANSLATION | PD, p->pd, none, 64, 0, EFAULT },
	};

	MUST(foreign && none != MAP_FAILED);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		errno = 0;
		if (ibv_rereg_mr(mr, rows[i].flags, rows[i].pd, rows[i].addr, rows[i].length,
				 rows[i].access) != IBV_REREG_MR_ERR_INPUT ||
		    errno != rows[i].err) {
			printf("# row %zu: errno %d, not %d\n", i, errno, rows[i].err);
			return false;
		}
		MUST(!memcmp(mr, &before, sizeof(before)));
		MUST(must_be(p, IBV_WR_RDMA_WRITE, p->buf[1] + 64, true));
	}
	munmap(none, 4096);
	MUST_EQ(ibv_dealloc_pd(foreign), 0);
	MUST_EQ(ibv_close_device(other), 0);
	return true;
}

/*
 * Under traffic: the region moves between two pieces of memory while WRITEs of one byte value each
 * are under way. Each ends in whichever piece it met; no byte of the others is touched.
 */
static bool moving_body(struct pair *p)
{
	char *pieces =
		mmap(NULL, 4 * HALF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_wc wc;
	int sent = 0, done = 0;

	MUST(pieces != MAP_FAILED);
	memset(pieces, 0x77, 4 * HALF);
	memset(p->buf[0], 0x44, HALF);
	/* by addresses of its start, which stay valid where it grows and shrinks at its end */
	while (done < 300) {
		while (sent < 300 && sent - done < QUEUE / 2) {
			MUST_EQ(post(p, IBV_WR_RDMA_WRITE, p->buf[1], 4096, (uint64_t)sent), 0);
			sent++;
		}
		MUST_EQ(ibv_rereg_mr(p->mr[1],
				     done % 3 == 0 ? TRANSLATION :
				     done % 3 == 1 ? ACCESS :
						     TRANSLATION | ACCESS,
				     NULL, p->buf[1], done % 2 ? HALF : BUF_BYTES,
				     done % 3 == 0 ? 0 : ALL | IBV_ACCESS_REMOTE_ATOMIC),
			0);
		MUST(wait_wc(p->cq[0], &wc));
		MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id == (uint64_t)done);
		done++;
	}
	for (int i = 0; i < 4096; i++)
		MUST_EQ(p->buf[1][i], 0x44);
	/* away from what the peer writes: the first that meets it fails, and nothing is written */
	MUST_EQ(post(p, IBV_WR_RDMA_WRITE, p->buf[1], 4096, 1), 0);
	MUST_EQ(ibv_rereg_mr(p->mr[1], TRANSLATION, NULL, pieces + HALF, HALF, 0), 0);
	MUST(wait_wc(p->cq[0], &wc));
	if (wc.status == IBV_WC_SUCCESS)
		MUST_EQ(request(p, IBV_WR_RDMA_WRITE, p->buf[1]), IBV_WC_REM_ACCESS_ERR);
	else
		MUST_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
	MUST(again(p));
	MUST_EQ(request(p, IBV_WR_RDMA_WRITE, pieces + HALF), IBV_WC_SUCCESS);
	for (int i = 0; i < 4 * HALF; i++)
		MUST_EQ(pieces[i], i >= HALF && i < HALF + 64 ? 0x44 : 0x77);
	MUST_EQ(ibv_rereg_mr(p->mr[1], TRANSLATION, NULL, p->buf[1], BUF_BYTES, 0), 0);
	munmap(pieces, 4 * HALF);
	return true;
}

/* "Even on a failure, the user still needs to call ibv_dereg_mr on this MR": it succeeds. */
static bool after_failure_body(struct pair *p)
{
	struct ibv_mr *mr = ibv_reg_mr(p->pd, p->buf[0], 64, 0);

	MUST(mr && ibv_rereg_mr(mr, PD, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_INPUT);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	return true;
}

ON_PAIR(each_combination_of_flags, combinations_body)
ON_PAIR(errors_leave_the_old_region, errors_body)
ON_PAIR(under_traffic, moving_body)
ON_PAIR(deregistered_after_a_failure, after_failure_body)

const struct test_case man_cases[] = {
	CASE(each_combination_of_flags),
	CASE(errors_leave_the_old_region),
	CASE(under_traffic),
	CASE(deregistered_after_a_failure),
	{ 0 },
};
