/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A queue pair of one test, its memory, and waiting for its completions. */
#ifndef BENCH_RDMA_H
#define BENCH_RDMA_H

#include "bench.h"

#define BENCH_GRH 40u /* in front of a received datagram */

struct bench_rdma {
	const struct bench_end *end;
	struct bench_test test;
	struct ibv_comp_channel *channel; /* NULL: polling */
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct ibv_mr *mr;
	/* one message, sent or accessed by the peer; then depth receive slots */
	u8 *memory;
	u32 slot_bytes;
	u32 remote_qpn, rkey;
	u64 va;
	u32 polls; /* since the last check of the clock and the control connection */
	/* notification requested and its event not yet received */
	bool armed;
};

/* Posts receive slot number slot. Returns 0 or -errno. */
int bench_rdma_receive(struct bench_rdma *r, u32 slot);
/* Posts one request of the test's size. imm: sent with SEND, UD and the WRITE of a latency test. */
int bench_rdma_post(struct bench_rdma *r, u32 imm);

/*
 * Returns at most `most` completions. Waits for the first, by polling or asleep as the test says,
 * until deadline_ns. Returns their number; 0: timed out, stop requested, or the control connection
 * has data; -EIO: one has an error, whose status has been printed.
 */
int bench_rdma_next(struct bench_rdma *r, struct ibv_wc *wc, int most, u64 deadline_ns);

#endif
