/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What XDP must know to send packets our way: a value in xroce_qp for each QP. (Of addresses see
 * port/follow.c.) Writes those and nothing else; values are replaced as a whole, so that XDP sees
 * one consistent snapshot.
 */
#include <unistd.h>

#include "../base/kernel.h"
#include "shard.h"

/*
 * This process has all of the interface: it is owner 0, whose sockets are the first of xroce_xsk.
 */
#define XSK_BASE 0

int shards_steer(struct shards *all, const struct qp *qp)
{
	const enum qp_state state = qp_state(qp);
	struct xroce_qp value, old;

	if (all->dead)
		return 0;
	value = (struct xroce_qp){
		.transport = qp->transport,
		.receiving = state == QPS_RTR || state == QPS_RTS || state == QPS_SQD ||
			     state == QPS_SQE,
		.pkey = qp->pkey,
		/* an XRC target's receives complete wherever its peer says */
		.with_time = qp->xrc_target || (qp->recv_cq && qp->recv_cq->with_time),
		.with_flow_tag = qp->xrc_target || (qp->recv_cq && qp->recv_cq->with_flow_tag),
		.qkey = qp->qkey,
		.send_cq = qp->send_cq ? qp->send_cq->index : XROCE_NO_CQ,
		.recv_cq = qp->recv_cq ? qp->recv_cq->index : XROCE_NO_CQ,
		.xsk_base = XSK_BASE,
		.pid = (u32)getpid(),
	};
	if (qp->transport != XROCE_UD) {
		memcpy(value.local, qp->path.local.raw, sizeof(value.local));
		memcpy(value.peer, qp->path.peer.raw, sizeof(value.peer));
	}
	if (kernel_map_get(all->maps->qp_fd, &qp->qpn, &old) == 0) {
		value.rx_packets = old.rx_packets;
		value.rx_bytes = old.rx_bytes;
		value.rx_dropped = old.rx_dropped;
		value.wakeups = old.wakeups;
	}
	return kernel_map_put(all->maps->qp_fd, &qp->qpn, &value);
}

void shards_unsteer(struct shards *all, u32 qpn)
{
	if (!all->dead)
		kernel_map_remove(all->maps->qp_fd, &qpn);
}
