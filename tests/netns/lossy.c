/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages both ways at once between a UD or UC queue pair of this process and one of another, over
 * a path that may lose any of them: the received ones are right, and nothing else is required.
 *
 *	lossy [-g INDEX] [-t ud|uc] [-n MESSAGES] [-q FIFO] [-d DEVICE] [HOST]
 *
 * With -q, when both have sent all, it keeps its objects until a process opens the FIFO for
 * writing.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"

#define PORT	 "18600"
#define QKEY	 0x11221122
#define GRH	 40
#define PMTU	 1024
#define SENDS	 16
#define RECEIVES 256
#define LONGEST	 (GRH + 3 * PMTU)

struct hello {
	union ibv_gid gid;
	uint32_t qpn;
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static struct ibv_ah *ah;
static bool is_uc;
static struct hello mine, theirs;
static uint8_t memory[SENDS + RECEIVES][LONGEST];
static uint32_t sent, completed, received;

static uint32_t message_length(uint32_t n)
{
	return is_uc ? 4 + n * 97 % (3 * PMTU - 4) : 4 + n * 97 % (PMTU - 4);
}

static void message_fill(uint8_t *at, uint32_t n)
{
	memcpy(at, &n, 4);
	memset(at + 4, (int)(n * 31 + 7), message_length(n) - 4);
}

static void post_receive(uint32_t i)
{
	struct ibv_sge sge = { (uintptr_t)memory[SENDS + i], LONGEST, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = SENDS + i, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	must(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

static void post_send(uint32_t n)
{
	const uint32_t i = n % SENDS;
	struct ibv_sge sge = { (uintptr_t)memory[i], message_length(n), mr->lkey };
	struct ibv_send_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	message_fill(memory[i], n);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = theirs.qpn;
	wr.wr.ud.remote_qkey = QKEY;
	must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

static void check_received(const struct ibv_wc *wc)
{
	static uint8_t expected[LONGEST];
	const uint32_t grh = is_uc ? 0 : GRH;
	const uint8_t *at = memory[wc->wr_id] + grh;
	uint32_t n;

	memcpy(&n, at, 4);
	must(wc->byte_len == grh + message_length(n), "message %u has %u bytes", n, wc->byte_len);
	message_fill(expected, n);
	must(!memcmp(at, expected, wc->byte_len - grh), "message %u: wrong data", n);
	received++;
	post_receive((uint32_t)wc->wr_id - SENDS);
}

static void poll(void)
{
	struct ibv_wc wc[16];
	const int num = ibv_poll_cq(cq, 16, wc);

	must(num >= 0, "ibv_poll_cq: %d", num);
	for (int i = 0; i < num; i++) {
		must(wc[i].status == IBV_WC_SUCCESS, "it ends with %s",
		     ibv_wc_status_str(wc[i].status));
		if (wc[i].wr_id < SENDS)
			completed++;
		else
			check_received(&wc[i]);
	}
}

static void make(const char *device)
{
	struct ibv_qp_init_attr init = { .qp_type = is_uc ? IBV_QPT_UC : IBV_QPT_UD,
					 .cap = { SENDS, RECEIVES, 1, 1, 0 } };
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };

	ctx = open_device(device);
	must((pd = ibv_alloc_pd(ctx)), "ibv_alloc_pd");
	mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	must(mr, "ibv_reg_mr: %s", strerror(errno));
	must((cq = ibv_create_cq(ctx, SENDS + RECEIVES, NULL, NULL, 0)), "ibv_create_cq");
	init.send_cq = init.recv_cq = cq;
	must((qp = ibv_create_qp(pd, &init)), "ibv_create_qp: %s", strerror(errno));
	must(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    (is_uc ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY)),
	     "INIT refused");
	for (uint32_t i = 0; i < RECEIVES; i++)
		post_receive(i);
}

static void connect_qp(int gid_index)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
				 .dest_qp_num = theirs.qpn, .rq_psn = mine.qpn & 0xffffff };

	a.ah_attr = (struct ibv_ah_attr){ .is_global = 1, .port_num = 1 };
	a.ah_attr.grh = (struct ibv_global_route){ .dgid = theirs.gid, .hop_limit = 64,
						   .sgid_index = (uint8_t)gid_index };
	must(!ibv_modify_qp(qp, &a,
			    is_uc ? IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN :
				    IBV_QP_STATE),
	     "RTR refused");
	if (!is_uc) {
		/* ECN-capable; of connected QPs XROCE_ECN=1 makes them so */
		a.ah_attr.grh.traffic_class = 2;
		must((ah = ibv_create_ah(pd, &a.ah_attr)), "ibv_create_ah: %s", strerror(errno));
	}
	a.qp_state = IBV_QPS_RTS;
	a.sq_psn = theirs.qpn & 0xffffff;
	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS refused");
}

static uint32_t number(const char *text, uint32_t most)
{
	char *rest;
	const unsigned long n = strtoul(text, &rest, 10);

	must(*text && !*rest && n <= most, "not a number up to %u: %s", most, text);
	return (uint32_t)n;
}

int main(int argc, char **argv)
{
	uint32_t messages = 2000, gid_index = 0;
	const char *fifo = NULL, *device = NULL;
	int c, ctl;

	while ((c = getopt(argc, argv, "d:g:t:n:q:")) != -1) {
		switch (c) {
		case 'd': device = optarg; break;
		case 'g': gid_index = number(optarg, 255); break;
		case 't': is_uc = !strcmp(optarg, "uc"); break;
		case 'n': messages = number(optarg, 1000000); break;
		case 'q': fifo = optarg; break;
		default: return 1;
		}
	}
	must(argc - optind <= 1, "lossy [OPTION...] [HOST]");
	make(device);
	must(!ibv_query_gid(ctx, 1, (int)gid_index, &mine.gid), "no GID %u", gid_index);
	mine.qpn = qp->qp_num;
	ctl = ctl_open(argv[optind], PORT);
	ctl_swap(ctl, &mine, &theirs, sizeof(mine));
	connect_qp((int)gid_index);
	ctl_barrier(ctl, 1);
	while (completed < messages) {
		while (sent < messages && sent - completed < SENDS)
			post_send(sent++);
		poll();
	}
	ctl_barrier(ctl, 2);
	poll();
	printf("lossy: sent %u, %u came and were right\n", sent, received);
	if (fifo)
		ctl_rest(fifo);
	must(received, "nothing came");
	must((!ah || !ibv_destroy_ah(ah)) && !ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) &&
		     !ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) && !ibv_close_device(ctx),
	     "the end");
	return 0;
}
