/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A requester that stops right after each request, for longer than all time-outs that it could
 * allow its peer: it sends itself SIGSTOP, and its parent continues it. Its queue pair has a
 * time-out of 14 (67 ms) and no retry, so a single time-out that counts ends it; its peer answers
 * at once.
 *
 *	paused -d DEVICE [-g GID-INDEX] [-m MILLISECONDS] [-n ROUNDS] [HOST]
 *
 * Without HOST it is the responder. Each round is a WRITE, a READ or a fetch-and-add, in turn.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"
#include "lib/rc.h"

static struct ibv_qp *qp;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct rc_address own, peer;
static _Alignas(8) uint64_t words[8];
static int gid_index;

static void make(const char *device)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 1, 1, 1, 0 } };
	struct ibv_context *ctx = open_device(device);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);

	must(pd && (mr = ibv_reg_mr(pd, words, sizeof(words), IBV_ACCESS_LOCAL_WRITE | RC_ACCESS)),
	     "ibv_reg_mr");
	must((cq = ibv_create_cq(ctx, 16, NULL, NULL, 0)), "ibv_create_cq: %s", strerror(errno));
	init.send_cq = init.recv_cq = cq;
	init.sq_sig_all = 1;
	must((qp = ibv_create_qp(pd, &init)), "ibv_create_qp: %s", strerror(errno));
	must(!ibv_query_gid(ctx, 1, gid_index, &own.gid), "ibv_query_gid(%d)", gid_index);
	own.addr = (uintptr_t)words;
	own.rkey = mr->rkey;
	own.qpn = qp->qp_num;
}

/* A request leaves, all threads of this process stop, and then its completion is there. */
static void ask(unsigned int round)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						      IBV_WR_ATOMIC_FETCH_AND_ADD };
	struct ibv_sge sge = { .addr = (uintptr_t)words, .length = 8, .lkey = mr->lkey };
	struct ibv_send_wr *bad,
	    wr = { .wr_id = round, .sg_list = &sge, .num_sge = 1, .opcode = opcodes[round % 3] };
	const uint64_t end = now_ms() + WAIT_MS;
	struct ibv_wc wc;
	int n;

	if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = peer.addr;
		wr.wr.atomic.rkey = peer.rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = peer.addr;
		wr.wr.rdma.rkey = peer.rkey;
	}
	must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
	raise(SIGSTOP);
	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		must(now_ms() < end, "round %u: no completion", round);
	must(n == 1 && wc.wr_id == round, "round %u: ibv_poll_cq", round);
	must(wc.status == IBV_WC_SUCCESS, "round %u: status %d, %s", round, wc.status,
	     ibv_wc_status_str(wc.status));
}

/* Continues the child whenever it has been stopped for that time. Returns its exit status. */
static int watch_over(pid_t child, unsigned int pause_ms)
{
	const struct timespec t = { .tv_sec = pause_ms / 1000,
				    .tv_nsec = pause_ms % 1000 * 1000000 };
	int status;

	for (;;) {
		must(waitpid(child, &status, WUNTRACED) == child, "waitpid: %s", strerror(errno));
		if (!WIFSTOPPED(status))
			return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
		nanosleep(&t, NULL);
		kill(child, SIGCONT);
	}
}

int main(int argc, char **argv)
{
	struct rc_options o = { .timeout = 14 };
	unsigned int rounds = 3, pause_ms = 2000;
	const char *device = NULL;
	pid_t child;
	int ctl, c;

	while ((c = getopt(argc, argv, "d:g:m:n:")) != -1) {
		switch (c) {
		case 'd':
			device = optarg;
			break;
		case 'g':
			gid_index = atoi(optarg);
			break;
		case 'm':
			pause_ms = (unsigned int)atoi(optarg);
			break;
		case 'n':
			rounds = (unsigned int)atoi(optarg);
			break;
		default:
			die("paused -d DEVICE [-g GID-INDEX] [-m MILLISECONDS] [-n ROUNDS] [HOST]");
		}
	}
	/* the requester's parent makes nothing of ours, so it has nothing to lose by the fork */
	if (argv[optind]) {
		child = fork();
		must(child >= 0, "fork: %s", strerror(errno));
		if (child)
			return watch_over(child, pause_ms);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	make(device);
	o.gid_index = (uint8_t)gid_index;
	ctl = ctl_open(argv[optind], "18633");
	ctl_swap(ctl, &own, &peer, sizeof(own));
	rc_connect(qp, &own, &peer, &o);
	ctl_barrier(ctl, 1);
	for (unsigned int i = 0; argv[optind] && i < rounds; i++)
		ask(i);
	ctl_barrier(ctl, 2);
	printf("paused: %u rounds\n", rounds);
	return 0;
}
