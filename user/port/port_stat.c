/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A port's counters for its own process, and the elements of the maps that show a process's objects
 * (xroce/stat.h). port->stats has the elements in use; this is never read from the maps, to which
 * others may be able to write.
 *
 * XROCE_COUNTERS: a line at the end of the port or of the process. The maps have more counters,
 * while the port exists (docs/maps.md). The data path counts nothing extra for the line.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "../os/clock.h"
#include "../os/options.h"
#include "port_object.h"

_Static_assert(XROCE_QP_STATS % 64 == 0 && XROCE_CQ_STATS % 64 == 0 &&
		       XROCE_SRQ_STATS % 64 == 0 && XROCE_MR_STATS % 64 == 0,
	       "whole words of the sets");

/* Takes the first free element. Returns its index, or num if there is none. */
static u32 stat_take_bit(u64 *taken, u32 num)
{
	for (u32 i = 0; i < num / 64; i++)
		if (~taken[i]) {
			const u32 bit = (u32)__builtin_ctzll(~taken[i]);

			taken[i] |= 1ull << bit;
			return i * 64 + bit;
		}
	return num;
}

static void stat_give_bit(u64 *taken, u64 i)
{
	taken[i / 64] &= ~(1ull << i % 64);
}

struct xroce_qp_stat *port_take_qp_stat(struct port *port)
{
	const u32 i = stat_take_bit(port->stats.qp, XROCE_QP_STATS);
	struct xroce_qp_stat *stat;

	if (i == XROCE_QP_STATS)
		return NULL;
	stat = &port->made.maps.qp_stat[i];
	*stat = (struct xroce_qp_stat){ .pid = (u32)getpid(), .made_ns = clock_now_ns() };
	return stat;
}

void port_give_qp_stat(struct port *port, struct xroce_qp_stat *stat)
{
	if (!stat)
		return;
	*stat = (struct xroce_qp_stat){ 0 };
	stat_give_bit(port->stats.qp, (u64)(stat - port->made.maps.qp_stat));
}

void port_show_cq(struct port *port, struct cq *cq, u32 vector, bool has_channel)
{
	const u32 i = stat_take_bit(port->stats.cq, XROCE_CQ_STATS);

	if (i == XROCE_CQ_STATS)
		return;
	cq->stat = &port->made.maps.cq_stat[i];
	*cq->stat = (struct xroce_cq_stat){ .pid = (u32)getpid(),
					    .cq = cq->index,
					    .entries = cq->capacity,
					    .vector = vector,
					    .has_channel = has_channel };
}

void port_hide_cq(struct port *port, struct cq *cq)
{
	struct xroce_cq_stat *stat = cq->stat;

	if (!stat)
		return;
	cq->stat = NULL;
	*stat = (struct xroce_cq_stat){ 0 };
	stat_give_bit(port->stats.cq, (u64)(stat - port->made.maps.cq_stat));
}

void port_show_srq(struct port *port, struct srq *srq)
{
	const u32 i = srq->stat ? XROCE_SRQ_STATS :
				  stat_take_bit(port->stats.srq, XROCE_SRQ_STATS);

	if (i == XROCE_SRQ_STATS)
		return;
	srq->stat = &port->made.maps.srq_stat[i];
	*srq->stat = (struct xroce_srq_stat){ .pid = (u32)getpid(),
					      .srq = srq->number,
					      .entries = srq->rq.max_wr,
					      .waiting = rq_posted(&srq->rq),
					      .pd = srq->pd,
					      .xrcd = srq->xrcd };
}

void port_hide_srq(struct port *port, struct srq *srq)
{
	struct xroce_srq_stat *stat = srq->stat;

	if (!stat)
		return;
	srq->stat = NULL;
	*stat = (struct xroce_srq_stat){ 0 };
	stat_give_bit(port->stats.srq, (u64)(stat - port->made.maps.srq_stat));
}

/* ---- counters ---- */

/* While engines run, each counter is valid, but not all are of the same moment. */
void port_say_counters(const struct port *port)
{
	const u32 *qps = port->qps_made;
	struct xroce_engine_stats sum = { 0 };

	if (!options_is_set(OPTION_COUNTERS))
		return;
	for (u32 i = 0; i < port->shards.num; i++) {
		const struct xroce_engine_stats *s = port->shards.shard[i].io->stats;

		sum.rx_packets += s->rx_packets;
		sum.tx_packets += s->tx_packets;
		sum.loopback_packets += s->loopback_packets;
		sum.rx_writes += s->rx_writes;
		sum.rx_reads += s->rx_reads;
		sum.rx_atomics += s->rx_atomics;
	}
	fprintf(stderr,
		"xroce: xroce_%s of pid %d: QPs RC %u UC %u UD %u XRC %u; packets in %" PRIu64
		" out %" PRIu64 " loopback %" PRIu64 "; executed for peers WRITE %" PRIu64
		" READ %" PRIu64 " atomic %" PRIu64 "\n",
		port->shards.name, (int)getpid(), qps[XROCE_RC], qps[XROCE_UC], qps[XROCE_UD],
		qps[XROCE_XRC], (uint64_t)sum.rx_packets, (uint64_t)sum.tx_packets,
		(uint64_t)sum.loopback_packets, (uint64_t)sum.rx_writes, (uint64_t)sum.rx_reads,
		(uint64_t)sum.rx_atomics);
}

void port_count_drop(struct port *port, enum xroce_drop reason)
{
	port_lock(port);
	((__u64 *)port->shards.shard[0].io->drops)[XROCE_DROP_INDEX(reason)]++;
	port_unlock(port);
}

/* ---- packets dropped for a wrong key ---- */

void port_violations(const struct port *port, struct port_violations *v)
{
	struct xroce_engine *device = port->made.maps.engine;

	*v = (struct port_violations){
		.pkey = atomic_load_explicit(shared_word(&device->bad_pkeys), memory_order_relaxed),
		.qkey = atomic_load_explicit(shared_word(&device->bad_qkeys), memory_order_relaxed),
	};
	for (u32 i = 0; i < port->shards.num; i++) {
		const struct xroce_drops *d = port->shards.shard[i].io->drops;

		v->pkey += d->pkey;
		v->qkey += d->qkey;
	}
}
