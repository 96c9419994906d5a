/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * ibv_dereg_mr(3), and mprotect(2) and munmap(2) of registered memory, while WRITEs and READs of it
 * are under way, at either end: the requests end with the status of ibv_poll_cq(3) that names that
 * end, each of them completes, and the process lives.
 */
#include <sys/mman.h>

#include "man.h"

#define BYTES	  65536u
#define IN_FLIGHT 4u
#define BEFORE	  10u /* requests that succeed first */

enum harm { PROTECT, UNMAP, DEREGISTER, HARMS };

/* Two RC QPs of one PD; both ends' memory are separate mappings. */
struct ends {
	struct pair *p;
	struct ibv_mr *mr[2];
	char *mem[2];
	unsigned int sent, done;
};

static bool ends_open(struct ends *e, struct pair *p)
{
	*e = (struct ends){ .p = p };
	for (int i = 0; i < 2; i++) {
		e->mem[i] = mmap(FAR_BELOW(i), BYTES, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		MUST(e->mem[i] != MAP_FAILED);
		MUST(e->mr[i] = ibv_reg_mr(p->pd, e->mem[i], BYTES,
					   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
						   IBV_ACCESS_REMOTE_READ));
	}
	return true;
}

static bool ends_close(struct ends *e)
{
	for (int i = 0; i < 2; i++) {
		MUST(!e->mr[i] || !ibv_dereg_mr(e->mr[i]));
		MUST(!e->mem[i] || !munmap(e->mem[i], BYTES));
	}
	return true;
}

static bool do_harm(struct ends *e, int end, enum harm harm)
{
	if (harm == PROTECT) {
		MUST_EQ(mprotect(e->mem[end], BYTES, PROT_NONE), 0);
	} else if (harm == UNMAP) {
		MUST_EQ(munmap(e->mem[end], BYTES), 0);
		e->mem[end] = NULL;
	} else {
		MUST_EQ(ibv_dereg_mr(e->mr[end]), 0);
		e->mr[end] = NULL;
	}
	return true;
}

/* One more completion; then as many requests as may be under way, unless one has failed. */
static bool step(struct ends *e, struct ibv_send_wr *wr, enum ibv_wc_status *status)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	while (!*status && e->sent - e->done < IN_FLIGHT && !ibv_post_send(e->p->qp[0], wr, &bad))
		e->sent++;
	MUST(wait_wc(e->p->cq[0], &wc));
	e->done++;
	if (!*status)
		*status = wc.status;
	else
		MUST_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
	return true;
}

static bool under_way(struct ends *e, enum ibv_wr_opcode op, int end, enum harm harm)
{
	struct ibv_sge sge = { (uintptr_t)e->mem[0], BYTES, e->mr[0]->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = op,
				  .send_flags = IBV_SEND_SIGNALED };
	enum ibv_wc_status status = IBV_WC_SUCCESS;

	wr.wr.rdma.remote_addr = (uintptr_t)e->mem[1];
	wr.wr.rdma.rkey = e->mr[1]->rkey;
	while (e->done < BEFORE)
		MUST(step(e, &wr, &status));
	MUST_EQ(status, IBV_WC_SUCCESS);
	MUST(do_harm(e, end, harm));
	/* Requests under way may still succeed; requests posted now cannot. */
	while (!status && e->done < BEFORE + 4 * IN_FLIGHT)
		MUST(step(e, &wr, &status));
	while (e->done < e->sent)
		MUST(step(e, &wr, &status));
	MUST_EQ(status, end ? IBV_WC_REM_ACCESS_ERR : IBV_WC_LOC_PROT_ERR);
	return cq_is_empty(e->p->cq[0]);
}

static bool harm_body(int end)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };

	for (enum harm harm = PROTECT; harm < HARMS; harm++)
		for (int i = 0; i < 2; i++) {
			struct pair p;
			struct ends e = { 0 };
			bool good = pair_open(&p, OPTIONS(0)) && ends_open(&e, &p) &&
				    under_way(&e, ops[i], end, harm);

			if (!good)
				printf("# harm %d, opcode %d\n", harm, ops[i]);
			else if (end)
				good = take_async(IBV_EVENT_QP_ACCESS_ERR, p.qp[1]);
			good &= ends_close(&e);
			MUST(pair_close(&p) && good);
		}
	return true;
}

static bool of_the_requester(void)
{
	return harm_body(0);
}

static bool of_the_responder(void)
{
	return harm_body(1);
}

const struct test_case man_cases[] = {
	CASE(of_the_requester),
	CASE(of_the_responder),
	{ 0 },
};
