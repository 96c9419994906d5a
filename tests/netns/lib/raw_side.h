/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames sent by a packet socket in another network namespace, received by raw packet QPs and work
 * queues of this process, or by its kernel: how many copies of each frame each receiver had.
 */
#ifndef NETNS_RAW_SIDE_H
#define NETNS_RAW_SIDE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "raw_frame.h"

#define RAW_QUEUES 16
/* as a receiver's number: this host's kernel */
#define RAW_KERNEL RAW_QUEUES
#define RAW_FRAMES 64
#define RAW_RECVS  512

struct raw_queue {
	struct ibv_qp *qp; /* one of the two */
	struct ibv_wq *wq;
	struct ibv_cq_ex *cq; /* of several queues perhaps */
	struct ibv_mr *mr;
	uint8_t *slots;
	uint32_t num;
	uint64_t taken;
};

/* One frame of a round, and the copies of it by receiver. */
struct raw_frame {
	struct frame frame;
	uint32_t copies[RAW_QUEUES + 1];
	uint32_t tags[RAW_QUEUES]; /* the last copy's flow tag */
};

extern struct ibv_context *raw_ctx;
extern struct ibv_pd *raw_pd;
extern struct raw_queue raw_queues[RAW_QUEUES]; /* entries without a cq are unused */
extern struct raw_frame raw_frames[RAW_FRAMES];
/*
 * Set: flows deliver copies, on a separate path. A round also ends with a frame of
 * FRAME_TYPE_LAST_COPY, whose only copy goes to `last`.
 */
extern bool raw_ends_with_copy;

/* The device, and sockets at both ends of its interface's cable. */
void raw_open(const char *device, const char *netns, const char *peer);
struct ibv_cq_ex *raw_cq(void);
void raw_add_qp(struct raw_queue *q);
/* In RDY. */
void raw_add_wq(struct raw_queue *q, struct ibv_cq_ex *cq);
/* Without its CQ. */
void raw_remove(struct raw_queue *q);
/* A flow that matches one EtherType only. */
struct ibv_flow *raw_flow_type(struct ibv_qp *qp, uint16_t ether_type);
struct ibv_flow *raw_flow_default(struct ibv_qp *qp, enum ibv_flow_attr_type type);

/*
 * Makes and sends `count` frames, and receives until a final frame reaches the queue `last`.
 */
void raw_round(uint32_t count, bool any_fields, const struct raw_queue *last);
/* The same with frames that make(frame, i, number) makes, the i-th of the round. */
typedef void raw_make_fn(struct frame *frame, uint32_t i, uint32_t number);
void raw_round_of(uint32_t count, raw_make_fn *make, const struct raw_queue *last);

#endif
