/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A UD queue pair that receives any datagram, of any length, until TERM.
 *
 *	udsink [-p | -x] DEVICE
 *
 * It sleeps, and the library's own thread fills the CQ up and runs out of receives; with -p it
 * polls and posts again. At its end it destroys its objects; with -x it just exits. Prints its QP
 * number first.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"

#define QKEY	 0x11111111
#define RECEIVES 256
#define LONGEST	 (40 + 4096)

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	stop = 1;
}

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static char buffer[LONGEST];

static void post(void)
{
	struct ibv_sge sge = { (uintptr_t)buffer, sizeof(buffer), mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	must(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

static void make(struct ibv_context *ctx)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 1, RECEIVES, 1, 1, 0 } };
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };

	must((pd = ibv_alloc_pd(ctx)), "ibv_alloc_pd");
	must((mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE)),
	     "ibv_reg_mr: %s", strerror(errno));
	must((cq = ibv_create_cq(ctx, RECEIVES, NULL, NULL, 0)), "ibv_create_cq: %s",
	     strerror(errno));
	init.send_cq = init.recv_cq = cq;
	must((qp = ibv_create_qp(pd, &init)), "ibv_create_qp: %s", strerror(errno));
	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	     "INIT refused");
	a.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE), "RTR refused");
	for (int i = 0; i < RECEIVES; i++)
		post();
}

static void poll_cq(void)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(cq, 16, wc);

	must(n >= 0, "ibv_poll_cq: %d", n);
	for (int i = 0; i < n; i++) {
		must(wc[i].status == IBV_WC_SUCCESS, "a receive ends with %s",
		     ibv_wc_status_str(wc[i].status));
		post();
	}
}

int main(int argc, char **argv)
{
	const struct sigaction sa = { .sa_handler = on_signal };
	struct ibv_context *ctx;
	bool polls = false, just_exit = false;
	sigset_t term, before;
	int c;

	while ((c = getopt(argc, argv, "px")) != -1) {
		polls |= c == 'p';
		just_exit |= c == 'x';
	}
	must(argc == optind + 1, "udsink [-p | -x] DEVICE");
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, &before);
	sigaction(SIGTERM, &sa, NULL);
	ctx = open_device(argv[optind]);
	make(ctx);
	printf("QPN %u\n", qp->qp_num);
	fflush(stdout);
	if (polls)
		sigprocmask(SIG_SETMASK, &before, NULL);
	while (!stop) {
		if (polls)
			poll_cq();
		else
			sigsuspend(&before);
	}
	if (just_exit)
		return 0;
	must(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_dereg_mr(mr) &&
		     !ibv_dealloc_pd(pd) && !ibv_close_device(ctx),
	     "the end");
	return 0;
}
