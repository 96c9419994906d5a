/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Traffic for observers that leaves the processors free: an endless ping-pong like ibv_rc_pingpong,
 * in bursts with a pause after each. Both ends sleep in between.
 *
 *	steady_pingpong -d DEVICE [-g GID-INDEX] [-p PORT] [-b MESSAGES] [-w PAUSE-MS] [-s] [HOST]
 *
 * Without HOST it is the server. As there, an end has one QP, one CQ for both queues and one memory
 * region of 4096 bytes. A failed completion ends the program. -s: this end always polls.
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

#define MESSAGE	   4096u
#define RECEIVES   8u
#define CQ_ENTRIES 501
#define SPIN	   64 /* polls before it sleeps: an answer may come that soon */
#define SLEEP_US   500u

static struct ibv_qp *qp;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static _Alignas(4096) char buffer[MESSAGE];
static unsigned int received;
static bool spins;

static void make(const char *device, uint8_t gid_index, struct rc_address *own)
{
	struct ibv_context *ctx = open_device(device);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { RECEIVES, RECEIVES, 1, 1, 0 } };
	struct ibv_pd *pd = ibv_alloc_pd(ctx);

	must(pd && (mr = ibv_reg_mr(pd, buffer, MESSAGE, IBV_ACCESS_LOCAL_WRITE)), "ibv_reg_mr: %s",
	     strerror(errno));
	must((cq = ibv_create_cq(ctx, CQ_ENTRIES, NULL, NULL, 0)), "ibv_create_cq: %s",
	     strerror(errno));
	init.send_cq = init.recv_cq = cq;
	must((qp = ibv_create_qp(pd, &init)), "ibv_create_qp: %s", strerror(errno));
	*own = (struct rc_address){ .qpn = qp->qp_num, .psn = 0x111 };
	must(!ibv_query_gid(ctx, 1, gid_index, &own->gid), "ibv_query_gid(%u)", gid_index);
}

static void receive(void)
{
	struct ibv_sge sge = { (uintptr_t)buffer, MESSAGE, mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	must(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

static void say(void)
{
	struct ibv_sge sge = { (uintptr_t)buffer, MESSAGE, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

/* The next message of the peer's, however long that takes: it may be stopped. */
static void hear(void)
{
	const unsigned int before = received;
	struct ibv_wc wc;

	for (unsigned int polls = 0; received == before;) {
		const int n = ibv_poll_cq(cq, 1, &wc);

		must(n >= 0, "ibv_poll_cq: %d", n);
		if (n) {
			must(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
			received += wc.opcode == IBV_WC_RECV;
		} else if (++polls > SPIN && !spins) {
			usleep(SLEEP_US);
		}
	}
	receive();
}

int main(int argc, char **argv)
{
	struct rc_options o = { .timeout = 14, .retry_cnt = 7, .rnr_retry = 7 };
	const char *device = NULL, *port = "18515", *host;
	unsigned int burst = 16, pause_ms = 20;
	struct rc_address own, peer;
	int ctl, c;

	while ((c = getopt(argc, argv, "d:g:p:b:w:s")) != -1) {
		switch (c) {
		case 'd':
			device = optarg;
			break;
		case 'g':
			o.gid_index = (uint8_t)atoi(optarg);
			break;
		case 'p':
			port = optarg;
			break;
		case 'b':
			burst = (unsigned int)atoi(optarg);
			break;
		case 'w':
			pause_ms = (unsigned int)atoi(optarg);
			break;
		case 's':
			spins = true;
			break;
		default:
			die("steady_pingpong: wrong option");
		}
	}
	host = argv[optind];
	make(device, o.gid_index, &own);
	ctl = ctl_open(host, port);
	ctl_swap(ctl, &own, &peer, sizeof(own));
	rc_connect(qp, &own, &peer, &o);
	for (unsigned int i = 0; i < RECEIVES; i++)
		receive();
	ctl_barrier(ctl, 1);
	for (unsigned int n = 1;; n++) {
		if (host)
			say();
		hear();
		if (!host)
			say();
		else if (n % burst == 0)
			usleep(pause_ms * 1000);
	}
}
