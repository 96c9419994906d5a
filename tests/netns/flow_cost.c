/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keeps N flows that match none of the traffic, until a signal ends it (scripts/bench-flows.sh):
 *
 *	flow_cost DEVICE FLOWS
 *
 * It prints "ready".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"

static void add_flow(struct ibv_qp *qp, unsigned int port)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_tcp_udp udp;
	} rule = {
		.attr = { .size = sizeof(rule), .num_of_specs = 1, .port = 1 },
		.udp = { .type = IBV_FLOW_SPEC_UDP,
			 .size = sizeof(rule.udp),
			 .val.dst_port = htons((uint16_t)port),
			 .mask.dst_port = 0xffff },
	};

	must(ibv_create_flow(qp, &rule.attr), "ibv_create_flow: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RAW_PACKET, .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_qp *qp;

	must(argc == 3, "flow_cost DEVICE FLOWS");
	ctx = open_device(argv[1]);
	pd = ibv_alloc_pd(ctx);
	init.send_cq = init.recv_cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	must(pd && init.send_cq, "no PD, no CQ");
	qp = ibv_create_qp(pd, &init);
	must(qp, "ibv_create_qp: %s", strerror(errno));
	for (unsigned int i = 0; i < (unsigned int)atoi(argv[2]); i++)
		add_flow(qp, 10000 + i);
	printf("ready\n");
	fflush(stdout);
	pause();
	return 0;
}
