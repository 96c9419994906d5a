/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs with a bug in an error path that a run without faults does not take. `xroce lab --cases
 * endpoint` has a case that finds each.
 *
 *	planted -d DEVICE flushed|reuse [right]
 *
 * flushed: writes messages by RDMA WRITE, and takes a flushed work request for done.
 * reuse: sends messages from one buffer, and fills it again before the completion.
 * right: the same without the bug.
 *
 * Both queue pairs are the program's own. It exits with 1 if a message is wrong.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"
#include "lib/rc.h"

#define MESSAGES 32u
#define BYTES	 512u
#define DEPTH	 2u /* outstanding WRITEs */

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_mr *mr;
static struct {
	unsigned char out[MESSAGES][BYTES], in[MESSAGES][BYTES];
} memory;
static struct rc_options options = { .timeout = 12, .retry_cnt = 7, .rnr_retry = 7 };
static struct {
	struct ibv_qp *qp;
	struct rc_address address;
} end[2];
static int is_right;

static void fill(unsigned char *to, unsigned int number)
{
	memset(to, 'a' + (int)number % 26, BYTES);
}

static void verify(void)
{
	unsigned char expected[BYTES];

	for (unsigned int i = 0; i < MESSAGES; i++) {
		fill(expected, i);
		must(!memcmp(memory.in[i], expected, BYTES), "message %u is wrong", i);
	}
	printf("all messages are right\n");
}

static void connect_ends(void)
{
	for (unsigned int i = 0; i < 2; i++)
		rc_connect(end[i].qp, &end[i].address, &end[!i].address, &options);
}

static void open_ends(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .send_cq = send_cq,
					 .recv_cq = recv_cq,
					 .cap = { MESSAGES, MESSAGES, 1, 1, 0 } };

	for (unsigned int i = 0; i < 2; i++) {
		end[i].qp = ibv_create_qp(pd, &init);
		must(end[i].qp, "ibv_create_qp: %s", strerror(errno));
		end[i].address = (struct rc_address){ .qpn = end[i].qp->qp_num, .psn = 7 };
		must(!ibv_query_gid(ctx, 1, options.gid_index, &end[i].address.gid),
		     "ibv_query_gid: %s", strerror(errno));
	}
	connect_ends();
}

static void post(enum ibv_wr_opcode opcode, unsigned int number, const void *from)
{
	struct ibv_sge sge = { (uintptr_t)from, BYTES, mr->lkey };
	struct ibv_send_wr wr = { .wr_id = number,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	int err;

	wr.wr.rdma.remote_addr = (uintptr_t)memory.in[number];
	wr.wr.rdma.rkey = mr->rkey;
	err = ibv_post_send(end[0].qp, &wr, &bad);
	must(!err, "ibv_post_send: %s", strerror(err));
}

/* The connection has failed: begins again with the first message that was not written. */
static void reconnect(void)
{
	struct ibv_wc wc;

	rc_reset(end[0].qp);
	rc_reset(end[1].qp);
	while (ibv_poll_cq(send_cq, 1, &wc) > 0)
		;
	connect_ends();
}

static void write_messages(void)
{
	unsigned int posted = 0, done = 0;

	for (unsigned int i = 0; i < MESSAGES; i++)
		fill(memory.out[i], i);
	while (done < MESSAGES) {
		struct ibv_wc wc;

		for (; posted < MESSAGES && posted - done < DEPTH; posted++)
			post(IBV_WR_RDMA_WRITE, posted, memory.out[posted]);
		wc = rc_wait(send_cq, "a WRITE");
		if (wc.status == IBV_WC_SUCCESS ||
		    (!is_right && wc.status == IBV_WC_WR_FLUSH_ERR)) {
			done++;
		} else if (is_right) {
			posted = done;
			reconnect();
		} else {
			/* the bug: it posts the failed message again, and believes in the others */
			post(IBV_WR_RDMA_WRITE, (unsigned int)wc.wr_id,
			     memory.out[wc.wr_id]);
		}
	}
}

static void send_messages(void)
{
	struct ibv_wc wc;

	for (unsigned int i = 0; i < MESSAGES; i++) {
		struct ibv_sge sge = { (uintptr_t)memory.in[i], BYTES, mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

		must(!ibv_post_recv(end[1].qp, &wr, &bad), "ibv_post_recv");
	}
	for (unsigned int i = 0, done = 0; done < MESSAGES;) {
		if (i < MESSAGES && (!is_right || done == i)) {
			fill(memory.out[0], i);
			post(IBV_WR_SEND, i++, memory.out[0]);
		}
		if (ibv_poll_cq(send_cq, 1, &wc) > 0) {
			must(wc.status == IBV_WC_SUCCESS, "a SEND: %s",
			     ibv_wc_status_str(wc.status));
			done++;
		}
	}
	for (unsigned int i = 0; i < MESSAGES; i++) {
		wc = rc_wait(recv_cq, "a receive");
		must(wc.status == IBV_WC_SUCCESS, "a receive: %s", ibv_wc_status_str(wc.status));
	}
}

int main(int argc, char **argv)
{
	const char *device = NULL;
	int option;

	while ((option = getopt(argc, argv, "d:")) == 'd')
		device = optarg;
	must(option < 0 && optind < argc, "usage: planted -d DEVICE flushed|reuse [right]");
	is_right = optind + 1 < argc && !strcmp(argv[optind + 1], "right");
	ctx = open_device(device);
	pd = ibv_alloc_pd(ctx);
	must(pd, "ibv_alloc_pd: %s", strerror(errno));
	send_cq = ibv_create_cq(ctx, 4 * MESSAGES, NULL, NULL, 0);
	recv_cq = ibv_create_cq(ctx, 4 * MESSAGES, NULL, NULL, 0);
	must(send_cq && recv_cq, "ibv_create_cq: %s", strerror(errno));
	mr = ibv_reg_mr(pd, &memory, sizeof(memory),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	must(mr, "ibv_reg_mr: %s", strerror(errno));
	open_ends();
	if (!strcmp(argv[optind], "flushed"))
		write_messages();
	else
		send_messages();
	verify();
	return 0;
}
