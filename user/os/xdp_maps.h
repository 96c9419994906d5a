/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The BPF maps that a port shares with its XDP program: descriptors for maps that are changed by
 * system calls, mappings for the others. The maker of a port fills it in (client/). In a forked
 * child the mappings are private memory and the descriptors closed.
 */
#ifndef OS_XDP_MAPS_H
#define OS_XDP_MAPS_H

#include <stdbool.h>
#include <string.h>
#include <xroce/abi.h>
#include <xroce/stat.h>
#include <xroce/trace.h>

#include "../engine/types.h"

struct xdp_maps {
	int group_fd;			  /* -1: a shared port: the broker steers groups */
	/* -1: no flows with a shared port */
	int flow_fd, flows_fd, flow_count_fd;
	/* -1 likewise; copying_fd: a map of one word, the program's xroce_copying */
	int copies_fd, copying_fd;
	int trace_fd;			  /* xroce_trace_tx, or a socket; -1: a forked child */
	bool reports_by_socket;		  /* ASK_REPORTS_BY_SOCKET */
	struct xroce_qp *qp;		  /* XROCE_MAX_QP */
	struct xroce_cq *cq;		  /* XROCE_MAX_CQ arm words */
	struct xroce_expect *expect;	  /* XROCE_MAX_QP */
	struct xroce_engine *engine;
	struct xroce_vector *vector;	  /* XROCE_MAX_QUEUE */
	struct xroce_sock *sock;	  /* XROCE_MAX_QUEUE */
	struct xroce_engine_stats *stats; /* XROCE_MAX_SHARD */
	struct xroce_drops *drops;	  /* XROCE_MAX_SHARD */
	struct xroce_qp_stat *qp_stat;	  /* XROCE_QP_STATS */
	struct xroce_cq_stat *cq_stat;	  /* XROCE_CQ_STATS */
	struct xroce_srq_stat *srq_stat;  /* XROCE_SRQ_STATS */
	struct xroce_mr_stat *mr_stat;	  /* XROCE_MR_STATS */
};

/*
 * Clears XROCE_TRACED, as no tracer wants records, unless one has begun since `traced` was read.
 * The process can write the word too, and only hides or shows its own packets by that.
 */
static inline void traced_clear(struct xroce_engine *engine, u32 traced)
{
	atomic_compare_exchange_strong_explicit(shared_word(&engine->traced), &traced,
						traced & ~XROCE_TRACED, memory_order_relaxed,
						memory_order_relaxed);
}

/*
 * The maps of a process that are meant for reading: `xroce qp` and similar commands read them, and
 * a broker passes them to the process's own user. Excluded: maps that processes share (xroce_turn,
 * xroce_others), and maps by which frames arrive.
 */

static inline bool readonly_map_is(const char *name)
{
	static const char *const shown[] = {
		XROCE_MAP_QP,	XROCE_MAP_CQ,	 XROCE_MAP_VECTOR,     XROCE_MAP_ENGINE,
		XROCE_MAP_GID,	XROCE_MAP_GROUP, XROCE_MAP_FLOW_COUNT, XROCE_MAP_DROP,
		XROCE_MAP_RX,	XROCE_MAP_SOCK,	 XROCE_MAP_ENGINE_STAT, XROCE_MAP_ENGINE_DROP,
		"xroce_qp_stat", "xroce_cq_stat", "xroce_srq_stat",     "xroce_mr_stat",
	};

	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		if (!strcmp(name, shown[i]))
			return true;
	return false;
}

/* A broker's maps with its settings and counters, and none that packets are steered by. */
static inline bool readonly_map_is_brokers(const char *name)
{
	static const char *const shown[] = {
		XROCE_MAP_OWNER,   XROCE_MAP_RX,   XROCE_MAP_DROP,    XROCE_MAP_REFUSED,
		XROCE_MAP_TAP,	   XROCE_MAP_PKEY, XROCE_MAP_SERVICE, XROCE_MAP_MEMBERS,
		XROCE_MAP_ENGINE, XROCE_MAP_GID,
	};

	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		if (!strcmp(name, shown[i]))
			return true;
	return false;
}

#endif
