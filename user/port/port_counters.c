/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A port's counters for its own process. XROCE_COUNTERS: a line at the end of the port or of the
 * process. The maps have more counters, while the port exists (docs/maps.md). The data path counts
 * nothing extra for the line.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "../os/options.h"
#include "port_object.h"

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
