/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A queue pair of one test, its memory, and waiting for its completions. */
#ifndef BENCH_RDMA_H
#define BENCH_RDMA_H

#include "bench.h"

#define BENCH_GRH 40u /* in front of a datagram that came */

struct bench_rdma {
	const struct bench_end *end;
	struct bench_test test;
	struct ibv_comp_channel *channel; /* NULL when it polls */
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct ibv_mr *mr;
	/* what is sent, or written and read by the peer; then depth receive slots */
	u8 *memory;
	u32 slot_bytes;
	u32 remote_qpn, rkey;
	u64 va;
	u32 polls; /* since the clock and the control connection were looked at */
	/* not asked for again until its event has come */
	bool armed;
};

/* Receive slot i is posted. 0 or -errno. */
int bench_rdma_receive(struct bench_rdma *r, u32 slot);
/* One request of the test's size; imm is in what the peer gets of SEND, WRITE and UD. */
int bench_rdma_post(struct bench_rdma *r, u32 imm);

/*
 * Completions, at most that many. Waits for one as the test has it, polling or asleep, until
 * deadline_ns. Returns their number; 0: the time is over, or the control connection has something;
 * -EIO: one of them has an error, after a line that names it.
 */
int bench_rdma_next(struct bench_rdma *r, struct ibv_wc *wc, int most, u64 deadline_ns);

#endif
