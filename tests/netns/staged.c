/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One end of a connection with a deliberate fault, which stays in its final state until TERM, to be
 * explained (explain.sh).
 *
 *	staged -d DEVICE [-g GID-INDEX] [-m PATH-MTU] [-p PKEY-INDEX] [-t PORT] FAULT [HOST]
 *
 * Without HOST it is the responder. Both first send each other a short message, except for FAULT
 * pkey. Then, from the requester:
 *
 *	bulk	long WRITEs for ever, at a rate that keeps a path busy and no processor
 *	pkey	the same
 *	key	a WRITE with a wrong R_Key
 *	invalid	a SEND that is longer than the receive
 *	rnr	a SEND without a receive, for ever
 *	cq	enough SENDs to overrun the responder's CQ, which it does not poll
 *	still	nothing
 *
 * Prints its QP number, `connected`, and how its requests ended if they failed.
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
#include "lib/rc.h"

#define DEPTH	   64
#define CQ_ENTRIES 8
#define SHORT	   64u
#define LONG	   65536u
#define BULK	   8	/* WRITEs under way at first */
#define PAUSE_US   5000 /* before each later WRITE */

static volatile sig_atomic_t stop;
static struct ibv_qp *qp;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_mr *mr;
static struct rc_address own, peer;
static char buffer[LONG];
static bool has_failed;

static void on_signal(int sig)
{
	stop = 1;
}

static void make(const char *device, const char *fault, const char *host, int gid_index)
{
	struct ibv_context *ctx = open_device(device);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { DEPTH, DEPTH, 1, 1, 0 } };
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	const bool narrow = !host && !strcmp(fault, "cq");

	must(pd && (mr = ibv_reg_mr(pd, buffer, sizeof(buffer),
				    RC_ACCESS | IBV_ACCESS_LOCAL_WRITE)),
	     "ibv_reg_mr: %s", strerror(errno));
	send_cq = ibv_create_cq(ctx, 2 * DEPTH, NULL, NULL, 0);
	recv_cq = ibv_create_cq(ctx, narrow ? CQ_ENTRIES : 2 * DEPTH, NULL, NULL, 0);
	must(send_cq && recv_cq, "ibv_create_cq: %s", strerror(errno));
	init.send_cq = send_cq;
	init.recv_cq = recv_cq;
	must((qp = ibv_create_qp(pd, &init)), "ibv_create_qp: %s", strerror(errno));
	own = (struct rc_address){ .qpn = qp->qp_num,
				   .psn = 0x111,
				   .rkey = mr->rkey,
				   .bytes = LONG,
				   .addr = (uintptr_t)buffer };
	must(!ibv_query_gid(ctx, 1, gid_index, &own.gid), "ibv_query_gid");
	printf("QPN %u\n", qp->qp_num);
	fflush(stdout);
}

static void receive(uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)buffer, bytes, mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	must(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

static void request(enum ibv_wr_opcode opcode, uint32_t bytes, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)buffer, bytes, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = peer.addr;
	wr.wr.rdma.rkey = rkey;
	must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

/* Both ends learn that the other is there, and have received from it. */
static void greet(int ctl)
{
	request(IBV_WR_SEND, SHORT, 0);
	must(rc_wait(send_cq, "the greeting").status == IBV_WC_SUCCESS, "the greeting failed");
	must(rc_wait(recv_cq, "the peer's").status == IBV_WC_SUCCESS, "the peer's greeting failed");
	ctl_barrier(ctl, 2);
}

static void begin(const char *fault)
{
	if (!strcmp(fault, "key"))
		request(IBV_WR_RDMA_WRITE, SHORT, peer.rkey ^ 0x100);
	if (!strcmp(fault, "invalid"))
		request(IBV_WR_SEND, 4 * SHORT, 0);
	if (!strcmp(fault, "rnr"))
		request(IBV_WR_SEND, SHORT, 0);
	for (int i = 0; !strcmp(fault, "cq") && i < 3 * CQ_ENTRIES; i++)
		request(IBV_WR_SEND, SHORT, 0);
	for (int i = 0; (!strcmp(fault, "bulk") || !strcmp(fault, "pkey")) && i < BULK; i++)
		request(IBV_WR_RDMA_WRITE, LONG, peer.rkey);
}

/* Until TERM: posts another WRITE some time after each WRITE has completed, until one fails. */
static void go_on(bool is_bulk)
{
	struct ibv_wc wc;

	while (!stop) {
		const int n = ibv_poll_cq(send_cq, 1, &wc);

		must(n >= 0, "ibv_poll_cq: %d", n);
		if (n && wc.status != IBV_WC_SUCCESS && !has_failed) {
			printf("failed: %s\n", ibv_wc_status_str(wc.status));
			fflush(stdout);
			has_failed = true;
		} else if (n && is_bulk && !has_failed) {
			usleep(PAUSE_US);
			request(IBV_WR_RDMA_WRITE, LONG, peer.rkey);
		} else if (!n) {
			usleep(200);
		}
	}
}

static enum ibv_mtu mtu_of(const char *bytes)
{
	for (int m = IBV_MTU_256; m <= IBV_MTU_4096; m++)
		if (atoi(bytes) == 128 << m)
			return (enum ibv_mtu)m;
	die("'%s' is no path MTU", bytes);
}

int main(int argc, char **argv)
{
	const struct sigaction sa = { .sa_handler = on_signal };
	struct rc_options o = { .timeout = 14, .retry_cnt = 7, .rnr_retry = 7 };
	const char *device = NULL, *port = "18640", *fault, *host;
	bool is_responder, greets;
	int ctl, c;

	while ((c = getopt(argc, argv, "d:g:m:p:t:")) != -1) {
		switch (c) {
		case 'd':
			device = optarg;
			break;
		case 'g':
			o.gid_index = (uint8_t)atoi(optarg);
			break;
		case 'm':
			o.path_mtu = mtu_of(optarg);
			break;
		case 'p':
			o.pkey_index = (uint16_t)atoi(optarg);
			break;
		case 't':
			port = optarg;
			break;
		default:
			die("staged: wrong option");
		}
	}
	must(argc > optind, "staged -d DEVICE [...] FAULT [HOST]");
	fault = argv[optind];
	host = argv[optind + 1];
	is_responder = !host;
	greets = strcmp(fault, "pkey") != 0;
	sigaction(SIGTERM, &sa, NULL);
	make(device, fault, host, o.gid_index);
	ctl = ctl_open(host, port);
	ctl_swap(ctl, &own, &peer, sizeof(own));
	rc_connect(qp, &own, &peer, &o);
	if (greets)
		receive(SHORT);
	for (int i = 0; is_responder && !strcmp(fault, "cq") && i < 3 * CQ_ENTRIES; i++)
		receive(SHORT);
	if (is_responder && !strcmp(fault, "invalid"))
		receive(SHORT);
	ctl_barrier(ctl, 1);
	if (greets)
		greet(ctl);
	if (!is_responder)
		begin(fault);
	printf("connected\n");
	fflush(stdout);
	go_on(!is_responder);
	return 0;
}
