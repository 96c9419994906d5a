/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One end of a connection to a peer that may be another implementation: a queue pair, one region,
 * and requests one at a time. Both ends run the same program, and agree over ctl.h. It checks every
 * field of a completion that ibv_poll_cq(3) calls valid.
 */
#ifndef VM_END_H
#define VM_END_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* Areas of the region, each of END_AREA bytes. */
enum end_area { END_LOCAL, END_RECEIVE, END_TARGET, END_SOURCE, END_AREAS };
#define END_AREA   (64u << 10)
#define END_GRH	   40
#define END_POISON 0xa5
#define END_QKEY   0x12345678

struct end_address {
	union ibv_gid gid;
	uint32_t qpn;
	uint32_t psn;
	uint32_t rkey;	       /* of the whole region */
	uint32_t write_rkey;   /* of the same memory, for WRITE alone */
	uint32_t read_rkey;    /* and for READ alone */
	uint64_t addr;
};

struct end_options {
	const char *device;
	int gid_index;
	uint32_t path_mtu; /* bytes */
	uint32_t psn;	   /* this end's first */
	uint8_t timeout, retry_cnt, rnr_retry;
	bool is_rxe;	   /* do not judge the faults of Soft-RoCE that docs/interop.md lists */
};

struct end {
	const struct end_options *o;
	enum ibv_qp_type type;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_ah *ah; /* UD */
	struct ibv_mr *mr, *write_mr, *read_mr;
	uint8_t *memory;
	struct end_address own, peer;
};

/* A request; what its opcode does not use is 0. */
struct end_request {
	enum ibv_wr_opcode opcode;
	uint64_t id;
	uint32_t len;
	uint64_t local;	 /* offset in our region */
	uint64_t remote; /* offset in the peer's region */
	uint32_t rkey;	 /* 0: the peer's region's */
	uint32_t imm;	 /* network byte order; for SEND_WITH_INV the R_Key */
	uint64_t compare_add, swap;
	bool is_unsignaled;
};

void end_open(struct end *e, const struct end_options *o, enum ibv_qp_type type);
/* peer is filled: to RTS. */
void end_connect(struct end *e);
void end_close(struct end *e);

static inline uint8_t *end_at(struct end *e, enum end_area area)
{
	return e->memory + (uint64_t)area * END_AREA;
}

/* The wr_ids of receives have the top bit set, requests' have not. */
#define END_RECEIVE_ID (1ull << 63)
/* Post a receive of len bytes (and the GRH on UD) into END_RECEIVE. */
void end_receive(struct end *e, uint64_t id, uint32_t len);
void end_post(struct end *e, const struct end_request *r);

/* Wait for a completion; dies if none comes in WAIT_MS. */
void end_wait(struct end *e, struct ibv_wc *wc);
/* Take one if there is one. */
bool end_poll(struct end *e, struct ibv_wc *wc);
/* Check the completion of a request or a receive that is to have succeeded. */
void end_judge_request(const struct end *e, const struct end_request *r, const struct ibv_wc *wc);
void end_judge_receive(const struct end *e, const struct end_request *r, uint64_t id,
		       const struct ibv_wc *wc);
enum ibv_qp_state end_state(struct end *e);

/* Known content: byte i of what key names. */
uint8_t end_content(uint32_t key, uint32_t i);
void end_fill(uint8_t *at, uint32_t key, uint32_t len);
/* The offset of the first byte of len that is not as named, or len. */
uint32_t end_differs(const uint8_t *at, uint32_t key, uint32_t len);
uint32_t end_not_poison(const uint8_t *at, uint32_t len);

#endif
