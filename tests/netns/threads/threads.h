/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared parts of the threads program (tests/netns/threads.c): the options, the objects of this
 * end, and the calls of each part.
 */
#ifndef NETNS_THREADS_H
#define NETNS_THREADS_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "../lib/ctl.h"

#define THREADS_MAX 16
#define QPS_MAX	    64
#define BATCH	    16 /* work requests posted, and completions polled, at a time */
#define GRH	    40
#define QKEY	    0x11111111
#define SEND_ID	    (1ull << 63)

enum op { OP_SEND, OP_WRITE, OP_READ, OP_ADD, OP_UC, OP_UD, OPS };

extern const struct operation {
	const char *name, *text;
	enum ibv_qp_type type;
	enum ibv_wr_opcode opcode;
	bool receives; /* completions at the other end */
	bool may_lose;
} ops[OPS];

/* The same at both ends. */
struct config {
	uint32_t op, threads, qps, bytes, depth;
	uint64_t messages;
	uint32_t both, check;
};

struct address {
	struct config config;
	union ibv_gid gid;
	enum ibv_mtu mtu;
	uint64_t base;
	uint32_t rkey;
	uint32_t qpn[QPS_MAX];
};

struct queue {
	struct ibv_qp *qp;
	uint64_t posted;	     /* by its thread alone */
	_Atomic uint64_t completed;  /* by who polls */
	_Atomic uint64_t received;
	_Atomic uint64_t last_added; /* what fetch-and-add returned last, and one */
	_Atomic uint8_t *seen;	     /* a bit a message */
	_Atomic uint8_t *busy;	     /* a slot each: posted, and not yet looked at */
};

struct worker {
	pthread_t thread;
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;
	unsigned int index, cpu;
	uint64_t moved_at, end_ns;
};

/* ---- options ---- */

extern struct config config;
extern bool one_cq, one_srq, sleeps, one_channel;
extern unsigned int num_qps, receives; /* receives: posted a QP */
extern int gid_index;
extern bool is_client, sends, is_target; /* this end */

/* ---- the objects of this end (make.c) ---- */

extern struct ibv_pd *pd;
extern struct ibv_srq *srq;
extern struct ibv_mr *mr;
extern struct ibv_ah *ah;
extern struct queue queue[QPS_MAX];
extern struct worker worker[THREADS_MAX];
extern struct address own, peer;
/*
 * send slots, receive slots, targets of the peer's WRITEs and READs, the counter; an area a QP each
 */
extern uint8_t *memory, *send_area, *recv_area, *write_area, *read_area;
extern uint64_t *counter;
extern _Atomic uint8_t *added; /* a bit for each value that fetch-and-add returned */

void make(const char *device);
void connect_all(void);
void unmake(void);
/* Posts receives of `count` slots from `slot` on, all of one QP. */
void post_receive(unsigned int slot, unsigned int count);

/* ---- what a message holds (content.c) ---- */

uint64_t stamp(bool from_client, unsigned int q, uint64_t k);
void fill(uint8_t *p, uint64_t first);
void check_bytes(const uint8_t *p, uint64_t first, const char *where);
/* Marks bit k; it must not have been. */
void mark(_Atomic uint8_t *bits, uint64_t k, const char *what, unsigned int q);
/* Checks the peer's WRITEs and atomic additions, of the target, in the end. */
void check_memory(void);

/* ---- messages under way (messages.c) ---- */

extern _Atomic uint64_t progress; /* completions that were polled */

void post_sends(unsigned int q);
/* Returns how many completions there were. */
int poll_cq(struct ibv_cq *cq);
bool has_sent(unsigned int q);
bool has_received(unsigned int q);
/*
 * True if this end receives nothing, or may lose some: only the other end knows the end of the run.
 */
bool other_end_knows(void);
/*
 * A sleeper's last event may be another's, or never come: it looks now and then whether all is
 * over.
 */
bool looks_up(void);

#endif
