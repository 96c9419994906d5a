/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests to regions that change (man_regions_change.c, man_regions_fork.c). */
#ifndef VERBS_REGIONS_H
#define VERBS_REGIONS_H

#include "man.h"

#define TRANSLATION IBV_REREG_MR_CHANGE_TRANSLATION
#define PD	    IBV_REREG_MR_CHANGE_PD
#define ACCESS	    IBV_REREG_MR_CHANGE_ACCESS
#define RIGHTS                                                                                     \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define MESSAGE (4u << 20) /* more packets than the window */

/* Returns the status of one signaled request at that end, -1 if it does not complete. */
static inline int run(struct pair *p, int end, struct ibv_send_wr wr)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr.send_flags |= IBV_SEND_SIGNALED;
	return !ibv_post_send(p->qp[end], &wr, &bad) && wait_wc(p->cq[end], &wc) ? (int)wc.status :
										   -1;
}

static inline struct ibv_send_wr one_sided(struct ibv_sge *sge, enum ibv_wr_opcode op,
					   uint64_t remote, uint32_t rkey)
{
	struct ibv_send_wr wr = { .sg_list = sge, .num_sge = 1, .opcode = op };

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD || op == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = rkey;
	}
	return wr;
}

#endif
