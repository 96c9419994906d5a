/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parts of the random walk over the verbs (man_random_walk.c): the model of all objects, whose
 * steps each change the device and the model, and the expected result of a step.
 */
#ifndef TESTS_VERBS_WALK_H
#define TESTS_VERBS_WALK_H

#include "man.h"

#define PDS   2
#define CQS   3
#define SRQS  2
#define QPS   6
#define MRS   8
#define MWS   6
#define AHS   4
#define DEPTH 4 /* receives a queue */
#define MEM   8192
#define MAX   1024 /* bytes of a message: one packet, so that overlaps are defined */
#define NONE  (-1)
#define RIGHTS                                                                                     \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC)

struct receive {
	uint64_t wr_id;
	uint32_t key, offset, length;
	int mr; /* its region when it was posted */
};

struct fifo {
	struct receive r[DEPTH];
	int n;
};

extern struct model {
	struct {
		struct ibv_pd *o;
		int refs;
	} pd[PDS];
	struct {
		struct ibv_cq *o;
		int refs;
	} cq[CQS];
	struct {
		struct ibv_srq *o;
		int refs, pd;
		struct fifo fifo;
	} srq[SRQS];
	struct {
		struct ibv_mr *o;
		int pd, windows;
		uint32_t offset, length, key;
		unsigned int access;
	} mr[MRS];
	struct {
		struct ibv_mw *o;
		int pd, mr, qp;
		enum ibv_mw_type type;
		uint32_t offset, length, key; /* its present or last key */
		unsigned int access;
	} mw[MWS];
	struct {
		struct ibv_ah *o;
		int pd;
	} ah[AHS];
	struct {
		struct ibv_qp *o;
		int pd, cq[2], srq, peer;
		enum ibv_qp_state state;
		unsigned int access;
		struct fifo fifo;
	} qp[QPS];
	uint8_t *mem, *want; /* the actual and the expected bytes */
	uint64_t wr_id;
	unsigned long done[8], failed;
} model;

/* No object, nothing expected; all later draws follow from the seed. */
void walk_begin(uint64_t seed);
uint32_t walk_draw(uint32_t n);

/* ---- expected results: a step leaves none over ---- */

void walk_expect(int cq, int qp, uint64_t wr_id, enum ibv_wc_status status,
		 enum ibv_wc_opcode opcode, uint32_t byte_len);
/* Into ERR: receives posted to the QP's own queue are flushed. */
void walk_expect_error(int q);
/* Waits for all expected completions, within bounded time. */
bool walk_settled(void);
/* No completion, no event of an object that there is not, and every byte is the model's. */
bool walk_nothing_else(void);

/* ---- objects that come and go (walk_objects.c) ---- */

/* Picks a slot of a pool, with or without an object; NONE. */
#define PICK(pool, count, there)                                                                   \
	({                                                                                         \
		int at_ = (int)walk_draw(count), i_;                                               \
		for (i_ = 0; i_ < (count); i_++, at_ = (at_ + 1) % (count))                        \
			if (!model.pool[at_].o == !(there))                                        \
				break;                                                             \
		i_ < (count) ? at_ : NONE;                                                         \
	})

bool walk_pd(void);
bool walk_cq(void);
bool walk_srq(void);
bool walk_ah(void);
bool walk_mr(void);
bool walk_mw(void);
bool walk_qp(void);
bool walk_connect(void);
bool walk_drop_mw(int i);
bool walk_destroy_qp(int i);
/* The window is bound no longer; the QP has no peer any more. */
void walk_unbound(int i);
void walk_alone(int i);

/* ---- requests (walk_requests.c) ---- */

/* A QP whose requests are answered. */
int walk_sender(void);
bool walk_rdma(void);
bool walk_receive(void);
bool walk_send(void);
bool walk_bind(void);

#endif
