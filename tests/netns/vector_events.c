/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion events without a thread of the application: of a moderated CQ, which the library
 * raises when the period has passed. The CQ is on the given completion vector; the test sees from
 * outside which thread raised them. Prints a line when all have arrived, and stays until it is
 * killed. Its QP has no receives: messages to it are refused.
 *
 *	vector_events DEVICE VECTOR EVENTS
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"

#define PERIOD_US 2000

static void to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1 };

	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	     "INIT refused");
	a.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE), "RTR refused");
	a.qp_state = IBV_QPS_RTS;
	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS refused");
}

int main(int argc, char **argv)
{
	struct ibv_modify_cq_attr moderate = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					       .moderate = { .cq_count = 1000,
							     .cq_period = PERIOD_US } };
	struct ibv_ah_attr ah_attr = { .is_global = 1, .port_num = 1, .grh.hop_limit = 64 };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 2, 1, 1, 1, 0 } };
	struct ibv_comp_channel *channel;
	struct ibv_context *ctx;
	struct ibv_ah *ah;
	struct ibv_cq *cq;
	struct ibv_pd *pd;
	struct ibv_qp *qp;
	int vector, events;

	must(argc == 4, "vector_events DEVICE VECTOR EVENTS");
	vector = atoi(argv[2]);
	events = atoi(argv[3]);
	ctx = open_device(argv[1]);
	must((pd = ibv_alloc_pd(ctx)) && (channel = ibv_create_comp_channel(ctx)),
	     "ibv_alloc_pd, ibv_create_comp_channel");
	must(!ibv_create_cq(ctx, 4, NULL, channel, ctx->num_comp_vectors) && errno == EINVAL,
	     "a CQ on a vector that there is not");
	must((cq = ibv_create_cq(ctx, 4, NULL, channel, vector)), "ibv_create_cq: %s",
	     strerror(errno));
	must(!ibv_modify_cq(cq, &moderate), "ibv_modify_cq");
	init.send_cq = init.recv_cq = cq;
	must((qp = ibv_create_qp(pd, &init)), "ibv_create_qp: %s", strerror(errno));
	to_rts(qp);
	must(!ibv_query_gid(ctx, 1, 0, &ah_attr.grh.dgid), "ibv_query_gid");
	must((ah = ibv_create_ah(pd, &ah_attr)), "ibv_create_ah");
	for (int i = 0; i < events; i++) {
		struct pollfd p = { .fd = channel->fd, .events = POLLIN };
		struct ibv_send_wr wr = { .opcode = IBV_WR_SEND,
					  .send_flags = IBV_SEND_SIGNALED,
					  .wr.ud = { ah, qp->qp_num, 1 } },
				   *bad;
		struct ibv_cq *of;
		struct ibv_wc wc;
		void *context;

		/* It completes here and now; its event comes later. */
		must(!ibv_req_notify_cq(cq, 0) && !ibv_post_send(qp, &wr, &bad), "event %d", i);
		must(poll(&p, 1, WAIT_MS) == 1, "event %d does not come", i);
		must(!ibv_get_cq_event(channel, &of, &context) && of == cq, "ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
		must(ibv_poll_cq(cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS,
		     "event %d without a completion", i);
	}
	printf("vector_events: %d, QP 0x%x\n", events, qp->qp_num);
	fflush(stdout);
	for (;;)
		pause();
}
