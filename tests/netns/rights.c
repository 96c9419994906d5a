/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rights between two hosts: every combination of a region's access flags (ibv_reg_mr(3)), plain, on
 * demand and with relaxed ordering, and of a QP's (ibv_modify_qp(3)) against every RDMA operation
 * of the other end. What is right is worked out from those pages at both ends.
 *
 *	rights DEVICE GID-INDEX [HOST]
 *
 * With HOST it asks, else it is asked. Prints "rights: N tried, N allowed".
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl.h"
#include "lib/device.h"
#include "lib/rc.h"

#define PORT	"18650"
#define WORD	8
#define WAS	0x1111111111111111ull
#define NEW	0x2222222222222222ull
#define REMOTES 8 /* subsets of remote rights */

static const int remote[3] = { IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ,
			       IBV_ACCESS_REMOTE_ATOMIC };
static const int kinds[] = { 0, IBV_ACCESS_ON_DEMAND, IBV_ACCESS_RELAXED_ORDERING };
static const struct {
	enum ibv_wr_opcode opcode;
	int needs;
} ops[] = {
	{ IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE },
	{ IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ },
	{ IBV_WR_ATOMIC_CMP_AND_SWP, IBV_ACCESS_REMOTE_ATOMIC },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC },
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *own_mr;
static struct rc_address own, peer;
static struct rc_options options;
static int ctl;
static bool asks;
static uint64_t word __attribute__((aligned(8)));
static uint64_t target[512] __attribute__((aligned(4096)));
static unsigned int tried, allowed;

static int subset(unsigned int bits)
{
	int flags = 0;

	for (unsigned int i = 0; i < 3; i++)
		flags |= bits >> i & 1 ? remote[i] : 0;
	return flags;
}

static void reconnect(void)
{
	rc_reset(qp);
	own.psn = (own.psn + 77) & 0xffffff;
	ctl_swap(ctl, &own, &peer, sizeof(own));
	rc_connect(qp, &own, &peer, &options);
	ctl_barrier(ctl, 1);
}

static void ask(unsigned int op, int status)
{
	struct ibv_sge sge = { (uintptr_t)&word, WORD, own_mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 5, .opcode = ops[op].opcode, .sg_list = &sge,
				  .num_sge = 1, .send_flags = IBV_SEND_SIGNALED }, *bad;
	const bool fetches = op > 0;
	struct ibv_wc wc;

	word = NEW;
	wr.wr.rdma.remote_addr = peer.addr;
	wr.wr.rdma.rkey = peer.rkey;
	if (ops[op].needs == IBV_ACCESS_REMOTE_ATOMIC) {
		wr.wr.atomic.remote_addr = peer.addr;
		wr.wr.atomic.rkey = peer.rkey;
		wr.wr.atomic.compare_add = WAS;
		wr.wr.atomic.swap = NEW;
	}
	must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
	wc = rc_wait(cq, "an operation");
	must((int)wc.status == status, "operation %u: status %d, not %d", op, wc.status, status);
	must(word == (status || !fetches ? NEW : WAS), "operation %u: fetched %llx", op,
	     (unsigned long long)word);
}

/* A QP that does not grant it at all: the request is invalid; a region: an access error. */
static int expected(unsigned int op, int mr_flags, int qp_flags)
{
	if (!(qp_flags & ops[op].needs))
		return IBV_WC_REM_INV_REQ_ERR;
	return mr_flags & ops[op].needs ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR;
}

/* One operation against one region and one QP's flags. */
static void try(unsigned int op, int mr_flags, int qp_flags)
{
	struct ibv_qp_attr a = { .qp_access_flags = (unsigned int)qp_flags };
	const int status = expected(op, mr_flags, qp_flags);

	if (!asks)
		must(!ibv_modify_qp(qp, &a, IBV_QP_ACCESS_FLAGS), "ibv_modify_qp");
	target[0] = WAS;
	ctl_barrier(ctl, 2);
	if (asks)
		ask(op, status);
	ctl_barrier(ctl, 3);
	must(asks || target[0] == (status || op == 1 ? WAS : NEW), "operation %u left %llx", op,
	     (unsigned long long)target[0]);
	tried++;
	allowed += !status;
	if (status)
		reconnect();
}

/* A region of those flags; remote writes and atomics are refused without local ones. */
static void region(int flags)
{
	const bool may = !(flags & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) ||
			 flags & IBV_ACCESS_LOCAL_WRITE;
	struct ibv_mr *mr = asks ? NULL : ibv_reg_mr(pd, target, sizeof(target), flags);

	must(asks || !mr == !may, "ibv_reg_mr %#x: %s", (unsigned int)flags, strerror(errno));
	if (!may)
		return;
	own.addr = (uintptr_t)target;
	own.rkey = mr ? mr->rkey : 0;
	ctl_swap(ctl, &own, &peer, sizeof(own));
	for (unsigned int q = 0; q < REMOTES; q++)
		for (unsigned int op = 0; op < sizeof(ops) / sizeof(ops[0]); op++)
			try(op, flags, subset(q));
	must(!mr || !ibv_dereg_mr(mr), "ibv_dereg_mr");
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };

	must(argc == 3 || argc == 4, "rights DEVICE GID-INDEX [HOST]");
	asks = argc == 4;
	options = (struct rc_options){ .gid_index = (uint8_t)atoi(argv[2]),
				       .timeout = 18, .retry_cnt = 7, .rnr_retry = 7 };
	ctx = open_device(argv[1]);
	must((pd = ibv_alloc_pd(ctx)) && (cq = ibv_create_cq(ctx, 16, NULL, NULL, 0)), "no PD, CQ");
	must((own_mr = ibv_reg_mr(pd, &word, WORD, IBV_ACCESS_LOCAL_WRITE)), "ibv_reg_mr");
	init.send_cq = init.recv_cq = cq;
	must((qp = ibv_create_qp(pd, &init)), "ibv_create_qp: %s", strerror(errno));
	must(!ibv_query_gid(ctx, 1, options.gid_index, &own.gid), "ibv_query_gid");
	own.qpn = qp->qp_num;
	ctl = ctl_open(asks ? argv[3] : NULL, PORT);
	reconnect();
	for (unsigned int k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (unsigned int r = 0; r < REMOTES; r++)
			for (int local = 0; local < 2; local++)
				region(kinds[k] | subset(r) | (local ? IBV_ACCESS_LOCAL_WRITE : 0));
	printf("rights: %u tried, %u allowed\n", tried, allowed);
	return 0;
}
