/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What XDP must know to send packets our way: a value in xroce_qp for each QP, a key in xroce_gid for each address, the first of them in xroce_engine.
 * Writes those and nothing else; values are replaced as a whole, so that XDP sees one consistent snapshot.
 */
#include <bpf/bpf.h>
#include <unistd.h>

#include "../port/port_state.h"

/* This process has all of the interface: it is owner 0, whose sockets are the first of xroce_xsk. */
#define XSK_BASE 0

int port_steer(struct port *port, const struct qp *qp)
{
	const enum qp_state state = qp_state(qp);
	struct xroce_qp value, old;

	if (port->dead)
		return 0;
	value = (struct xroce_qp){
		.transport = qp->transport,
		.receiving = state == QPS_RTR || state == QPS_RTS || state == QPS_SQD || state == QPS_SQE,
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
	if (bpf_map_lookup_elem(port->made.qp_map_fd, &qp->qpn, &old) == 0) {
		value.rx_packets = old.rx_packets;
		value.rx_bytes = old.rx_bytes;
		value.rx_dropped = old.rx_dropped;
		value.wakeups = old.wakeups;
	}
	return bpf_map_update_elem(port->made.qp_map_fd, &qp->qpn, &value, BPF_ANY);
}

void port_unsteer(struct port *port, u32 qpn)
{
	if (!port->dead)
		bpf_map_delete_elem(port->made.qp_map_fd, &qpn);
}

static bool has_gid(const struct netdev *dev, const struct gid *gid)
{
	for (u32 i = 0; i < dev->num_gids; i++)
		if (gid_equal(&dev->gid[i].gid, gid))
			return true;
	return false;
}

int steer_publish_gids(struct port *port, const struct netdev *dev)
{
	static const struct gid no_gid;
	int err = 0;

	/* The old ones first: the map may be full. */
	for (u32 i = 0; i < port->dev.num_gids; i++)
		if (!has_gid(dev, &port->dev.gid[i].gid))
			bpf_map_delete_elem(port->made.gid_map_fd, &port->dev.gid[i].gid);
	for (u32 i = 0; i < dev->num_gids; i++) {
		int ret = bpf_map_update_elem(port->made.gid_map_fd, &dev->gid[i].gid, &i, BPF_ANY);

		if (ret && !err)
			err = ret;
	}
	/* XDP may see half of the old one and half of the new: then it searches */
	memcpy(port->made.engine->gid, dev->num_gids ? dev->gid[0].gid.raw : no_gid.raw, sizeof(port->made.engine->gid));
	port->dev = *dev;
	return err;
}
