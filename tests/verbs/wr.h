/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the tests of ibv_wr_post(3) share: the page's table of work requests, two ends of each
 * service, and a call of each builder.
 *
 * ibv_wr_flush() came with rdma-core 45, and the header that tests are compiled with may be older.
 * What a program needs of the newer one is declared here: values and an offset, all of the ABI.
 */
#ifndef TESTS_VERBS_WR_H
#define TESTS_VERBS_WR_H

#include <arpa/inet.h>
#include <stddef.h>

#include "man.h"

#define QP_EX_WITH_FLUSH	((uint64_t)1 << 11)
#define WC_FLUSH		8
#define WC_ATOMIC_WRITE		9
#define ACCESS_FLUSH_GLOBAL	(1 << 8)
#define ACCESS_FLUSH_PERSISTENT (1 << 9)
#define FLUSH_TYPE_GLOBAL	1
#define FLUSH_TYPE_PERSISTENT	2
#define FLUSH_LEVEL_RANGE	0
#define FLUSH_LEVEL_MR		1

typedef void wr_flush_fn(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
			 uint8_t type, uint8_t level);

/* ibv_qp_ex.wr_flush: the member after rdma-core 44's last one. */
#define WR_FLUSH_AT (offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(void (*)(void)))

#define SEND_WRS    8
#define RECV_WRS    16
#define SEND_SGES   3
#define INLINE_SIZE 64
#define REMOTE_AT   4096u  /* where end 0 reaches in the memory of end 1 */
#define WINDOW_AT   8192u  /* the window's bytes in the memory of end 0 */
#define WINDOW_SIZE 512u

#define SERVICE(type) (1u << IBV_QPT_##type)

enum wr_data {
	DATA_NONE,	/* no DATA setter belongs to it */
	DATA_OUT,	/* any */
	DATA_IN,	/* elements only */
	DATA_WORD,	/* elements only, of 8 bytes together */
};

enum wr_code {
	OP_CMP_SWP,
	OP_FETCH_ADD,
	OP_BIND,
	OP_LOCAL_INV,
	OP_READ,
	OP_WRITE,
	OP_WRITE_IMM,
	OP_SEND,
	OP_SEND_IMM,
	OP_SEND_INV,
	OP_TSO,
	OP_FLUSH,
	OP_ATOMIC_WRITE,
	OPS
};

/* A row of the page's table "WORK REQUESTS". */
struct wr_op {
	const char *name;
	uint64_t flag;		/* of send_ops_flags */
	size_t member;		/* offset of its builder in struct ibv_qp_ex */
	unsigned int services;
	enum wr_data data;
	int completion;		/* its opcode at the requester */
	bool addressed;		/* a QP specific setter belongs to it */
	bool receives;		/* takes a receive of end 1 */
	bool immediate;
};

extern const struct wr_op wr_ops[OPS];

/* All operations that the service has; TSO is no operation of ours on UD. */
uint64_t wr_ops_of(enum ibv_qp_type type);

/* Two ends; end 0 has the ibv_wr_*() calls. XRC: end 1 is a target with one SRQ. */
struct wr_ends {
	enum ibv_qp_type type;
	int access;			  /* of both QPs and of mr[]: all, to flush if ops say so */
	struct ibv_pd *pd;
	bool pd_is_lent;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	uint32_t srqn;
	struct ibv_comp_channel *channel; /* of cq[1] */
	struct ibv_cq *cq[2];
	struct ibv_qp *qp[2];
	struct ibv_qp_ex *ex;
	struct ibv_ah *ah;
	char *buf[2];
	struct ibv_mr *mr[2];
	struct ibv_mr *lent;		  /* buf[0] again, for windows */
	struct ibv_mw *mw;		  /* of type 2 */
	uint32_t max_send_wr;		  /* as created */
	uint32_t max_inline_data, max_send_sge;
};

bool wr_open(struct wr_ends *e, enum ibv_qp_type type, uint64_t ops);
/* In this PD, unless it is NULL. */
bool wr_open_in(struct wr_ends *e, struct ibv_pd *pd, enum ibv_qp_type type, uint64_t ops);
bool wr_close(struct wr_ends *e);
/* Runs the body on new ends of this service, with all its operations. */
bool on_service(enum ibv_qp_type type, bool (*body)(struct wr_ends *e));

/* A case of this name: the body over RC, and over XRC. */
#define ON_RELIABLE(name, body)                                            \
	static bool name(void)                                             \
	{                                                                  \
		MUST(on_service(IBV_QPT_RC, body));                        \
		return on_service(IBV_QPT_XRC_SEND, body);                 \
	}

/* Both ends through RESET, after an error. */
bool wr_again(struct wr_ends *e);

/* What a builder is given; a builder takes what concerns it. */
struct wr_args {
	uint32_t rkey;		/* also the key to invalidate, or to bind with */
	uint64_t remote;
	uint64_t compare, swap_or_add;
	__be32 imm;
	struct ibv_mw *mw;
	const struct ibv_mw_bind_info *bind;
	const void *word;
	size_t length;
	uint8_t type, level;
};

/* The builder of this operation with arguments that are good: of remote memory, a key, a window. */
struct wr_args wr_args_of(struct wr_ends *e, enum wr_code op);
void wr_build(struct wr_ends *e, enum wr_code op, const struct wr_args *a);
/* The QP specific setter of the service, if it has one. */
void wr_address(struct wr_ends *e);
void *wr_member(const struct ibv_qp_ex *ex, size_t offset);

/* A receive of end 1 over the first bytes of its memory. */
int wr_recv(struct wr_ends *e, uint64_t wr_id, uint32_t length);
/* Where the data of a receive begins: after the GRH of a datagram. */
static inline uint32_t wr_grh(const struct wr_ends *e)
{
	return e->type == IBV_QPT_UD ? 40 : 0;
}

/* A SEND by wr_send of these bytes at offset 0 of end 0; not completed. */
void wr_add_send(struct wr_ends *e, uint64_t wr_id, uint32_t length);
/*
 * Nothing is under way: a SEND is the next thing that completes at either end, and its data the
 * next that arrives.
 */
bool wr_nothing_was_posted(struct wr_ends *e);

bool wr_completed(struct ibv_cq *cq, uint64_t wr_id, int opcode, struct ibv_wc *wc);

#endif
