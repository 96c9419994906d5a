/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One end of a connection: a queue pair with its buffers, which carries out a plan round by round
 * and judges every completion and every byte. Two sides may live in one process (loopback) or in
 * two. plan.c decides the transfers.
 */
#ifndef NETNS_SIDE_H
#define NETNS_SIDE_H

#include <infiniband/verbs.h>

#include "plan.h"

struct side_address {
	union ibv_gid gid;
	uint32_t qpn;
	uint32_t psn;
	uint32_t write_rkey, read_rkey;
	uint64_t write_addr, read_addr; /* PLAN_MESSAGES slots each */
};

/* How the regions are registered. On demand: before their memory is mapped. */
enum side_paging { SIDE_PINNED, SIDE_ON_DEMAND, SIDE_WHOLE_SPACE };

struct side_options {
	const char *device;	/* NULL: the first */
	int gid_index;
	uint32_t path_mtu;	/* bytes */
	uint8_t timeout;	/* of RC, as in ibv_modify_qp(3) */
	uint8_t retry_cnt;
	bool events;		/* sleep on the completion channel instead of polling */
	bool one_cq;		/* sends and receives share a CQ */
	enum side_paging paging;
};

struct side {
	const struct plan *plan;
	unsigned int number;	/* 0 or 1 */
	bool events;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *send_cq, *recv_cq; /* may be one */
	struct ibv_qp *qp;
	struct ibv_ah *ah;	/* UD */
	int gid_index;
	enum ibv_mtu mtu;
	uint8_t timeout, retry_cnt;
	enum side_paging paging;
	/* slots: own requests, receives, targets of the peer's WRITEs and READs */
	uint8_t *tx, *rx, *written, *read;
	struct ibv_mr *tx_mr, *rx_mr, *written_mr, *read_mr;
	struct side_address own, peer;

	/* the round */
	uint32_t round;
	struct message mine[PLAN_MESSAGES], theirs[PLAN_MESSAGES];
	unsigned int num_mine, num_theirs, num_receives;
	unsigned int next_send; /* own request whose completion comes next */
	unsigned int next_recv; /* the peer's request whose receive completes next */

	/* totals */
	uint64_t messages, bytes, events_taken;
};

void side_open(struct side *s, const struct plan *plan, unsigned int number,
	       const struct side_options *o);
/* own is filled; connect to peer, which the caller has set. */
void side_connect(struct side *s);
void side_close(struct side *s);

/*
 * A round in its steps; between them the caller sees to it that both sides have done the step
 * before.
 */
/* buffers filled, between poison; receives posted unless the round is late */
void side_prepare(struct side *s, uint32_t round);
void side_post(struct side *s);			   /* own requests posted (and late receives) */
/* Runs until every completion of the round has arrived and is right. */
void side_complete(struct side *s);
void side_verify(struct side *s);		   /* every byte; all is poison again */

/*
 * Post one receive; wait for it by sleeping on the channel. The out-parameters are the elapsed time
 * and the CPU time of the whole process. The peer's side_wake() sends the message.
 */
void side_sleep_prepare(struct side *s);
void side_sleep(struct side *s, uint64_t *wall_us, uint64_t *cpu_us);
void side_wake(struct side *s);

#endif
