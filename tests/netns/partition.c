/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * P_Keys as a program meets them (partitions.sh):
 *
 *	partition table DEVICE		the table, before there is a port and with it, and refused
 *					changes
 *	partition receive DEVICE INDEX QKEY N
 *					a UD QP with that P_Key; its number, and at its end, by
 *					TERM when N have been sent, what came and the port's
 *					violation counters
 *	partition send DEVICE GID-INDEX ADDRESS QPN INDEX QKEY N
 *					N datagrams, one after the other
 */
#include <arpa/inet.h>
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

#define RECEIVES 256
#define BYTES	 64

static volatile sig_atomic_t stop;
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static char buffer[40 + BYTES];

static void on_signal(int sig)
{
	stop = 1;
}

static void make(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD,
					 .sq_sig_all = 1,
					 .cap = { 16, RECEIVES, 1, 1, 0 } };

	must((pd = ibv_alloc_pd(ctx)), "ibv_alloc_pd");
	must((mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE)),
	     "ibv_reg_mr: %s", strerror(errno));
	must((cq = ibv_create_cq(ctx, RECEIVES, NULL, NULL, 0)), "ibv_create_cq: %s",
	     strerror(errno));
	init.send_cq = init.recv_cq = cq;
	must((qp = ibv_create_qp(pd, &init)), "ibv_create_qp: %s", strerror(errno));
}

static int to_init(uint16_t index, uint32_t qkey)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .pkey_index = index,
				 .qkey = qkey };

	return ibv_modify_qp(qp, &a,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
}

static void to_rts(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR };

	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE), "RTR refused");
	a.qp_state = IBV_QPS_RTS;
	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS refused");
}

/* The table that the queries tell. Returns its length. */
static int say_table(const char *when)
{
	struct ibv_device_attr dev;
	struct ibv_port_attr port;
	__be16 pkey;

	must(!ibv_query_device(ctx, &dev) && !ibv_query_port(ctx, 1, &port), "queries");
	must(dev.max_pkeys == port.pkey_tbl_len, "max_pkeys %u, pkey_tbl_len %u", dev.max_pkeys,
	     port.pkey_tbl_len);
	printf("%s:", when);
	for (int i = 0; i < port.pkey_tbl_len; i++) {
		must(!ibv_query_pkey(ctx, 1, i, &pkey), "ibv_query_pkey %d: %s", i,
		     strerror(errno));
		must(ibv_get_pkey_index(ctx, 1, pkey) == i, "index of 0x%04x", ntohs(pkey));
		printf(" 0x%04x", ntohs(pkey));
	}
	putchar('\n');
	pkey = 0x1234;
	errno = 0;
	must(ibv_query_pkey(ctx, 1, port.pkey_tbl_len, &pkey) == -1 && errno == EINVAL &&
		     pkey == 0x1234, "behind the table");
	must(ibv_query_pkey(ctx, 1, -1, &pkey) == -1 && ibv_query_pkey(ctx, 2, 0, &pkey) == -1,
	     "no index, no port");
	errno = 0;
	must(ibv_get_pkey_index(ctx, 1, htons(0x9999)) == -1 && errno == EINVAL, "no P_Key");
	return port.pkey_tbl_len;
}

static void table(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;
	int n = say_table("before");

	make();
	must(say_table("with a port") == n, "another length");
	must(to_init((uint16_t)n, 1) == EINVAL && to_init(0xffff, 1) == EINVAL,
	     "an index behind the table is taken");
	must(!to_init((uint16_t)(n - 1), 1), "INIT refused");
	must(!ibv_query_qp(qp, &a, IBV_QP_PKEY_INDEX, &init) && a.pkey_index == n - 1,
	     "ibv_query_qp: index %u", a.pkey_index);
}

static void post(void)
{
	struct ibv_sge sge = { (uintptr_t)buffer, sizeof(buffer), mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	must(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

/* The messages that have arrived by now. */
static unsigned int take_all(void)
{
	unsigned int came = 0;
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) > 0) {
		must(wc.status == IBV_WC_SUCCESS && wc.byte_len == 40 + BYTES, "%s",
		     ibv_wc_status_str(wc.status));
		came++;
		post();
	}
	must(n == 0, "ibv_poll_cq");
	return came;
}

static void receive(uint16_t index, uint32_t qkey, unsigned int n)
{
	const struct sigaction sa = { .sa_handler = on_signal };
	struct ibv_port_attr port;
	unsigned int came = 0;
	uint64_t end = 0;

	sigaction(SIGTERM, &sa, NULL);
	make();
	must(!to_init(index, qkey), "INIT refused");
	to_rts();
	for (int i = 0; i < RECEIVES; i++)
		post();
	printf("qpn %u\n", qp->qp_num);
	fflush(stdout);
	/* the last may still be on their way when the sender has ended */
	do {
		usleep(200);
		came += take_all();
		if (stop && !end)
			end = now_ms() + WAIT_MS / 4;
		must(!ibv_query_port(ctx, 1, &port), "ibv_query_port");
	} while (!stop || (came + port.bad_pkey_cntr + port.qkey_viol_cntr < n && now_ms() < end));
	printf("received %u bad_pkey %u qkey_viol %u\n", came, port.bad_pkey_cntr,
	       port.qkey_viol_cntr);
}

static struct ibv_ah *handle(int gid_index, const char *address)
{
	struct ibv_ah_attr a = { .is_global = 1,
				 .port_num = 1,
				 .grh = { .sgid_index = (uint8_t)gid_index, .hop_limit = 64 } };
	uint8_t *raw = a.grh.dgid.raw;
	struct ibv_ah *ah;

	raw[10] = raw[11] = 0xff;
	must(inet_pton(AF_INET, address, raw + 12) == 1, "%s is no address", address);
	ah = ibv_create_ah(pd, &a);
	must(ah, "ibv_create_ah: %s", strerror(errno));
	return ah;
}

/* Each alone, so that no two of them are one frame. */
static void send_all(char **arg)
{
	const unsigned int n = (unsigned int)atoi(arg[5]);
	struct ibv_sge sge = { .length = BYTES };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	make();
	sge.addr = (uintptr_t)buffer;
	sge.lkey = mr->lkey;
	must(!to_init((uint16_t)atoi(arg[3]), 1), "INIT refused");
	to_rts();
	wr.wr.ud.ah = handle(atoi(arg[0]), arg[1]);
	wr.wr.ud.remote_qpn = (uint32_t)strtoul(arg[2], NULL, 0);
	wr.wr.ud.remote_qkey = (uint32_t)strtoul(arg[4], NULL, 0);
	for (unsigned int i = 0; i < n; i++) {
		must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
		must(rc_wait(cq, "a datagram").status == IBV_WC_SUCCESS, "a datagram failed");
		usleep(500);
	}
	printf("sent %u\n", n);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	ctx = open_device(argc > 2 ? argv[2] : NULL);
	if (!strcmp(what, "table") && argc == 3)
		table();
	else if (!strcmp(what, "receive") && argc == 6)
		receive((uint16_t)atoi(argv[3]), (uint32_t)strtoul(argv[4], NULL, 0),
			(unsigned int)atoi(argv[5]));
	else if (!strcmp(what, "send") && argc == 9)
		send_all(argv + 3);
	else
		die("partition table|receive|send DEVICE ...");
	return 0;
}
