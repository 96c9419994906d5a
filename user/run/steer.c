/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Publishes to XDP where packets go: a value in xroce_qp for each QP, in xroce_group for each
 * multicast group, in xroce_flow for each flow. (port/follow.c publishes addresses.) Writes nothing
 * else. Values are replaced as a whole, so that XDP sees one consistent snapshot.
 */
#include <unistd.h>

#include "../os/kernel.h"
#include "shard.h"

/* This process has the interface alone: it is owner 0, whose sockets are the first in xroce_xsk. */
#define XSK_BASE 0

/* Sets the fields of an RSS QP: XDP wakes its work queues' CQ, or the engine if there is none. */
static void steer_rss(const struct qp *qp, struct xroce_qp *value)
{
	const struct cq *cq = rss_cq(qp->rss);

	value->receiving = qp_state(qp) != QPS_ERR;
	value->with_time = rss_with_time(qp->rss);
	value->with_flow_tag = rss_with_flow_tag(qp->rss);
	if (cq)
		value->recv_cq = cq->index;
}

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
		/* an XRC target's receives complete on the CQ of the SRQ that its peer names */
		.with_time = qp->xrc_target || (qp->recv_cq && qp->recv_cq->with_time),
		.with_flow_tag = qp->xrc_target || (qp->recv_cq && qp->recv_cq->with_flow_tag),
		.qkey = qp->qkey,
		.send_cq = qp->send_cq ? qp->send_cq->index : XROCE_NO_CQ,
		.recv_cq = qp->recv_cq ? qp->recv_cq->index : XROCE_NO_CQ,
		.xsk_base = XSK_BASE,
		.pid = (u32)getpid(),
	};
	if (qp->rss)
		steer_rss(qp, &value);
	if (qp->transport != XROCE_UD) {
		memcpy(value.local, qp->path.local.raw, sizeof(value.local));
		memcpy(value.peer, qp->path.peer.raw, sizeof(value.peer));
	}
	if (kernel_map_get(all->maps->qp_fd, &qp->qpn, &old) == 0) {
		value.rx_packets = old.rx_packets;
		value.rx_bytes = old.rx_bytes;
		value.rx_dropped = old.rx_dropped;
		value.wakeups = old.wakeups;
		if (!memcmp(&value, &old, sizeof(value)))
			return 0;
	}
	return kernel_map_put(all->maps->qp_fd, &qp->qpn, &value);
}

void shards_unsteer(struct shards *all, u32 qpn)
{
	if (!all->dead)
		kernel_map_remove(all->maps->qp_fd, &qpn);
}

int shards_steer_group(struct shards *all, const struct gid *address)
{
	const u32 members = group_members(all->shard[0].engine, address);
	struct xroce_group value = { .members = members, .pid = (u32)getpid() }, old;

	if (all->dead || all->maps->group_fd < 0)
		return 0;
	if (!members) {
		kernel_map_remove(all->maps->group_fd, address);
		return 0;
	}
	if (kernel_map_get(all->maps->group_fd, address, &old) == 0)
		value.rx_packets = old.rx_packets;
	return kernel_map_put(all->maps->group_fd, address, &value);
}

/* Returns the longest frame that the interface takes and buffers have room for. */
static u32 shards_longest_frame(const struct shards *all)
{
	return min_u32(all->mtu, RAW_MTU_MAX) + RAW_HEADER_BYTES;
}

/* Returns whether later flows of the same order have a counter. */
static bool shards_more_count(const struct raw_flow *f)
{
	const u32 order = f->order;

	for (f = f->next; f && f->order == order; f = f->next)
		if (f->rule.counter)
			return true;
	return false;
}

/* Writes the flows to the map, from key on. */
static int shards_write_flows(const struct shards *all, u32 key)
{
	const struct raw_flow *f = raw_flows(all->shard[0].engine);
	int err = 0;

	for (; !err && f; f = f->next, key++) {
		const struct xroce_flow value = {
			.value = f->rule.value,
			.mask = f->rule.mask,
			.tunnel_value = f->rule.tunnel_value,
			.tunnel_mask = f->rule.tunnel_mask,
			.qpn = f->qp->qpn,
			.order = f->order,
			.actions = (f->rule.drops ? XROCE_FLOW_DROP : 0) |
				   (f->rule.copies ? XROCE_FLOW_COPY : 0) |
				   (shards_more_count(f) ? XROCE_FLOW_MORE_COUNT : 0),
			.counter = f->rule.counter ? f->rule.counter->key : 0,
		};

		err = kernel_map_put(all->maps->flow_fd, &key, &value);
	}
	return err;
}

/* Publishes whether flows have copies: then our own packets are matched too (bpf/sniff.h). */
static int shards_steer_copies(const struct shards *all)
{
	const u32 zero = 0, copying = raw_has_copies(all->shard[0].engine);

	return kernel_map_put(all->maps->copying_fd, &zero, &copying);
}

/* Writes the inactive half completely before it becomes active: flow_find() in bpf/flow.h. */
int shards_steer_flows(struct shards *all)
{
	const u32 zero = 0;
	struct xroce_flows flows;
	u32 half;
	int err;

	if (all->dead || all->maps->flow_fd < 0)
		return 0;
	err = kernel_map_get(all->maps->flows_fd, &zero, &flows);
	if (err)
		return err;
	half = XROCE_FLOW_HALF(flows.generation + 1);
	err = shards_write_flows(all, half * XROCE_MAX_FLOW);
	if (err)
		return err;
	flows.num[half] = raw_num_flows(all->shard[0].engine);
	flows.longest = shards_longest_frame(all);
	err = kernel_map_put(all->maps->flows_fd, &zero, &flows);
	flows.generation++;
	if (!err)
		err = kernel_map_put(all->maps->flows_fd, &zero, &flows);
	return err ? err : shards_steer_copies(all);
}
