/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Publishes to XDP where packets go: a value in xroce_qp for each QP, in xroce_group for each
 * multicast group, in xroce_flow for each flow. (The broker publishes addresses.) Writes nothing
 * else.
 */
#include <unistd.h>

#include "../os/kernel.h"
#include "shard.h"

/* A program has one owner, number 0, whose sockets are the first in xroce_xsk. */
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

/* An entry of xroce_qp, and the words in which it is written. */
union steered {
	struct xroce_qp qp;
	u64 word[sizeof(struct xroce_qp) / sizeof(u64)];
};
#define STEERED_QPN   0 /* the word with `qpn` */
#define STEERED_STATE 1 /* the word with `receiving` */
#define STEERED_FIRST 2 /* the other words that XDP reads, up to STEERED_OWN */
#define STEERED_OWN   (offsetof(struct xroce_qp, pid) / sizeof(u64))

static union steered *steer_slot(const struct shards *all, u32 qpn)
{
	return (union steered *)&all->maps->qp[XROCE_QP_SLOT(qpn)];
}

static void steer_copy(union steered *to, const union steered *value, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++)
		atomic_store_explicit(shared_word(&to->word[i]), value->word[i],
				      memory_order_relaxed);
}

static bool steer_moves(const struct xroce_qp *from, const struct xroce_qp *to)
{
	return from->receiving && (memcmp(from->local, to->local, sizeof(to->local)) ||
				   memcmp(from->peer, to->peer, sizeof(to->peer)));
}

static void steer_publish(union steered *at, const union steered *value)
{
	const bool is_new = at->qp.qpn != value->qp.qpn;

	if (is_new) {
		/* the counters may have a last count of the QP that had the slot before */
		steer_copy(at, value, STEERED_OWN, ARRAY_SIZE(at->word));
	} else if (steer_moves(&at->qp, &value->qp)) {
		atomic_store_explicit(shared_word(&at->qp.receiving), 0, memory_order_relaxed);
		/* release: XDP that reads a new address reads 0 before (bpf/steer.h) */
		atomic_thread_fence(memory_order_release);
	}
	steer_copy(at, value, STEERED_FIRST, STEERED_OWN);
	/* release: pairs with the reads of XDP after qp_find() (bpf/qp.h) */
	atomic_store_explicit(shared_word(&at->word[STEERED_STATE]), value->word[STEERED_STATE],
			      memory_order_release);
	if (is_new) /* release: likewise */
		atomic_store_explicit(shared_word(&at->word[STEERED_QPN]),
				      value->word[STEERED_QPN], memory_order_release);
}

void shards_steer(struct shards *all, const struct qp *qp)
{
	const enum qp_state state = qp_state(qp);
	union steered value;

	if (all->dead)
		return;
	value.qp = (struct xroce_qp){
		.qpn = qp->qpn,
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
		steer_rss(qp, &value.qp);
	if (qp->transport != XROCE_UD) {
		memcpy(value.qp.local, qp->path.local.raw, sizeof(value.qp.local));
		memcpy(value.qp.peer, qp->path.peer.raw, sizeof(value.qp.peer));
	}
	steer_publish(steer_slot(all, qp->qpn), &value);
}

void shards_unsteer(struct shards *all, u32 qpn)
{
	if (!all->dead)
		atomic_store_explicit(shared_word(&steer_slot(all, qpn)->qp.qpn), 0,
				      memory_order_relaxed);
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
