/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program whose main thread ends by pthread_exit(3) with its device open, while another thread
 * goes on: it sends messages by a QP to itself, and each arrives. The process ends with that
 * thread, though the library's threads run on.
 *
 *	main_exits -d DEVICE
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"
#include "lib/rc.h"

#define MESSAGES 200
#define PAUSE_US 2000 /* the thread outlives the main one */

static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static char buf[2];

static void *send_messages(void *arg)
{
	struct ibv_sge from = { (uintptr_t)&buf[0], 1, mr->lkey };
	struct ibv_sge to = { (uintptr_t)&buf[1], 1, mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &to, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED }, *bad_send;

	for (int i = 0; i < MESSAGES; i++) {
		buf[0] = (char)i;
		must(!ibv_post_recv(qp, &recv, &bad_recv) && !ibv_post_send(qp, &send, &bad_send),
		     "no post");
		rc_wait(cq, "message");
		rc_wait(cq, "message");
		must(buf[1] == (char)i, "message %d is wrong", i);
		usleep(PAUSE_US);
	}
	printf("%d messages\n", MESSAGES);
	return NULL;
}

static void says_goodbye(void)
{
	puts("exit handler");
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	const struct rc_options o = { .timeout = 14, .retry_cnt = 7 };
	struct ibv_context *ctx;
	struct rc_address own = { 0 };
	struct ibv_pd *pd;
	pthread_t thread;

	must(argc == 3 && !strcmp(argv[1], "-d"), "usage: main_exits -d DEVICE");
	ctx = open_device(argv[2]);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	init.send_cq = init.recv_cq = cq;
	must(pd && cq && (qp = ibv_create_qp(pd, &init)) != NULL, "no QP: %s", strerror(errno));
	mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	must(mr && !ibv_query_gid(ctx, 1, 0, &own.gid), "no region or GID");
	own.qpn = qp->qp_num;
	rc_connect(qp, &own, &own, &o);
	must(!atexit(says_goodbye) && !pthread_create(&thread, NULL, send_messages, NULL),
	     "no thread");
	pthread_exit(NULL);
}
