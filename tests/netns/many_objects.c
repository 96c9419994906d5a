/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process with N objects of each kind: regions, and UD queue pairs, each with a CQ and an SRQ of
 * its own. Prints "ready" when all are made, and stays until it is ended.
 *
 *	many_objects DEVICE N
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/device.h"

static char page[4096];

static void *made(void *object, const char *what)
{
	if (!object) {
		fprintf(stderr, "many_objects: %s: %s\n", what, strerror(errno));
		exit(1);
	}
	return object;
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD,
					 .cap = { .max_send_wr = 1, .max_send_sge = 1 } };
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_context *device;
	struct ibv_pd *pd;
	struct ibv_qp *qp;

	if (argc != 3)
		return 2;
	device = open_device(argv[1]);
	pd = made(ibv_alloc_pd(device), "ibv_alloc_pd");
	for (int i = 0; i < atoi(argv[2]); i++) {
		made(ibv_reg_mr(pd, page, sizeof(page), IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr");
		init.send_cq = init.recv_cq =
			made(ibv_create_cq(device, 1, NULL, NULL, 0), "ibv_create_cq");
		init.srq = made(ibv_create_srq(pd, &srq), "ibv_create_srq");
		qp = made(ibv_create_qp(pd, &init), "ibv_create_qp");
		errno = ibv_modify_qp(qp, &attr,
				      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
		made(errno ? NULL : qp, "ibv_modify_qp");
	}
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
