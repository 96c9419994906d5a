/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets that have reached an interface before a QP leaves RTS count, as an adapter takes each
 * when it comes: an ACK that is there completes its request successfully, a message that is there
 * is acknowledged. One end reports by TCP that it is there. The other, which has not polled in that
 * time, moves its QP to ERR or RESET or destroys it.
 *
 *	parting -d DEVICE [-g GID-INDEX] [-p PORT] [HOST]
 *
 * Without HOST it receives. Prints the number of requests completed with success.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"
#include "lib/rc.h"

#define ROUNDS 25

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static char buffer[4096];
static struct rc_address own, peer;
/* a request that is not answered fails in half a second */
static struct rc_options options = { .timeout = 14, .retry_cnt = 5, .rnr_retry = 7 };

enum how { SENDER_TO_ERR, RECEIVER_TO_ERR, RECEIVER_TO_RESET, RECEIVER_DESTROYS, HOW_END };
static const char *const names[HOW_END] = { "sender to ERR", "receiver to ERR", "receiver to RESET",
					    "receiver destroys" };

static void make_qp(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 }
	};

	must((qp = ibv_create_qp(pd, &init)), "ibv_create_qp: %s", strerror(errno));
}

static void move_to(enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	const int err = ibv_modify_qp(qp, &attr, IBV_QP_STATE);

	must(!err, "ibv_modify_qp: %s", strerror(err));
}

static struct ibv_sge sge(void)
{
	return (struct ibv_sge){ (uintptr_t)buffer, sizeof(buffer), mr->lkey };
}

static void receive(void)
{
	struct ibv_sge to = sge();
	struct ibv_recv_wr wr = { .sg_list = &to, .num_sge = 1 }, *bad;

	must(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

static void say(void)
{
	struct ibv_sge from = sge();
	struct ibv_send_wr wr = { .sg_list = &from,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

static void connect_again(int ctl)
{
	own.qpn = qp->qp_num;
	ctl_swap(ctl, &own, &peer, sizeof(own));
	rc_connect(qp, &own, &peer, &options);
}

/* Returns whether the request completed with success. */
static bool send_one(int ctl, enum how how)
{
	struct ibv_wc wc;

	connect_again(ctl);
	ctl_barrier(ctl, 1);
	say();
	/* after the message, or before the peer's answer */
	ctl_barrier(ctl, 2);
	if (how == SENDER_TO_ERR)
		move_to(IBV_QPS_ERR);
	wc = rc_wait(cq, "the request does not complete");
	ctl_barrier(ctl, 3);
	rc_reset(qp);
	return wc.status == IBV_WC_SUCCESS;
}

static void receive_one(int ctl, enum how how)
{
	connect_again(ctl);
	receive();
	ctl_barrier(ctl, 1);
	if (how == SENDER_TO_ERR) {
		must(rc_wait(cq, "nothing comes").status == IBV_WC_SUCCESS, "no success");
		/* the ACK leaves, at the latest */
		move_to(IBV_QPS_ERR);
	}
	ctl_barrier(ctl, 2);
	if (how == RECEIVER_TO_ERR)
		move_to(IBV_QPS_ERR);
	if (how == RECEIVER_TO_RESET)
		rc_reset(qp);
	if (how == RECEIVER_DESTROYS)
		must(!ibv_destroy_qp(qp), "ibv_destroy_qp");
	ctl_barrier(ctl, 3);
	if (how == RECEIVER_DESTROYS)
		make_qp();
	rc_reset(qp);
}

int main(int argc, char **argv)
{
	const char *device = NULL, *port = "18670", *host;
	struct ibv_context *ctx;
	int ctl, c;

	while ((c = getopt(argc, argv, "d:g:p:")) != -1) {
		switch (c) {
		case 'd':
			device = optarg;
			break;
		case 'g':
			options.gid_index = (uint8_t)atoi(optarg);
			break;
		case 'p':
			port = optarg;
			break;
		default:
			die("parting: wrong option");
		}
	}
	host = argv[optind];
	ctx = open_device(device);
	must((pd = ibv_alloc_pd(ctx)) && (cq = ibv_create_cq(ctx, 8, NULL, NULL, 0)) &&
		     (mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE)),
	     "objects: %s", strerror(errno));
	must(!ibv_query_gid(ctx, 1, options.gid_index, &own.gid), "ibv_query_gid");
	own.psn = 0x222;
	make_qp();
	ctl = ctl_open(host, port);
	for (enum how how = 0; how < HOW_END; how++) {
		unsigned int right = 0;

		for (int i = 0; i < ROUNDS; i++) {
			if (host)
				right += send_one(ctl, how);
			else
				receive_one(ctl, how);
		}
		if (host)
			printf("%s: %u of %d\n", names[how], right, ROUNDS);
	}
	return 0;
}
