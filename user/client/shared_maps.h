/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps whose memory the XDP program shares with the process. */
#ifndef CLIENT_SHARED_MAPS_H
#define CLIENT_SHARED_MAPS_H

#include <sys/mman.h>

/* X(member of struct xdp_maps, map, the broker's descriptor of the map, number of entries) */
#define SHARED_MAPS(X)                                                 \
	X(qp, xroce_qp, ASK_FD_QP, XROCE_MAX_QP)                       \
	X(cq, xroce_cq, ASK_FD_CQ, XROCE_MAX_CQ)                       \
	X(expect, xroce_expect, ASK_FD_EXPECT, XROCE_MAX_QP)           \
	X(engine, xroce_engine, ASK_FD_ENGINE, 1)                      \
	X(vector, xroce_vector, ASK_FD_VECTOR, XROCE_MAX_QUEUE)        \
	X(sock, xroce_sock, ASK_FD_SOCK, XROCE_MAX_QUEUE)              \
	X(stats, xroce_eng_stat, ASK_FD_STATS, XROCE_MAX_SHARD)        \
	X(drops, xroce_eng_drop, ASK_FD_DROPS, XROCE_MAX_SHARD)        \
	X(qp_stat, xroce_qp_stat, ASK_FD_QP_STAT, XROCE_QP_STATS)      \
	X(cq_stat, xroce_cq_stat, ASK_FD_CQ_STAT, XROCE_CQ_STATS)      \
	X(srq_stat, xroce_srq_stat, ASK_FD_SRQ_STAT, XROCE_SRQ_STATS)  \
	X(mr_stat, xroce_mr_stat, ASK_FD_MR_STAT, XROCE_MR_STATS)

/* Returns the map's memory, shared with XDP and programs that dump it; NULL with errno set. */
static inline void *shared_map(int map_fd, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

#endif
