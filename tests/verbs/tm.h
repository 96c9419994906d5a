/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs of tag matching share: a plain RC QP that sends to one on a tag-matching SRQ,
 * which completes in an extended CQ.
 */
#ifndef TESTS_VERBS_TM_H
#define TESTS_VERBS_TM_H

#include <arpa/inet.h>
#include <endian.h>
#include <infiniband/tm_types.h>

#include "man.h"

#define MAX_TAGS	4
#define MAX_OPS	3
#define RECEIVE 1024 /* bytes of a receive, from RECEIVES on */
#define RECEIVES 32768

struct tags {
	struct ibv_pd *pd;
	/* the sender's, and the one of the receiver's QP */
	struct ibv_cq *send_cq, *qp_cq;
	struct ibv_cq_ex *cq;		/* of the SRQ */
	struct ibv_srq *srq;
	struct ibv_qp *from, *to;
	struct ibv_mr *mr;
	char *buf;			/* the sender's half, then the receiver's */
};

/* The values of the CQ's read functions. */
struct seen {
	uint64_t wr_id;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	unsigned int flags;
	uint32_t byte_len, vendor_err;
	struct ibv_wc_tm_info info;
};

#define BOTH (IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID)

bool tm_open(struct tags *t);
bool tm_close(struct tags *t);
char *tm_receiver(struct tags *t);
/* The next completion of the SRQ's CQ, within bounded time. */
bool tm_next(struct tags *t, struct seen *s);
bool tm_nothing_more(struct tags *t);
int tm_post(struct tags *t, struct ibv_ops_wr *wr);
/* An ADD of len bytes at the receiver's offset. */
struct ibv_ops_wr tm_an_add(struct tags *t, uint64_t recv_wr_id, uint64_t tag,
			    struct ibv_sge *sge, uint32_t offset, uint32_t len);
bool tm_add(struct tags *t, uint64_t recv_wr_id, uint64_t tag, uint32_t offset, uint32_t len);
bool tm_sync_to(struct tags *t, uint32_t count);
/* A receive for unmatched messages: number n. */
bool tm_post_receive(struct tags *t, uint64_t n);
/* A message: TMH and what follows it at the sender's offset 0. Waits until it is sent. */
bool tm_send_message(struct tags *t, uint8_t opcode, uint64_t tag, uint32_t app_ctx, uint32_t len);
bool tm_send_eager(struct tags *t, uint64_t tag, uint32_t len);

#define WITH_TM(body)                      \
	do {                               \
		struct tags t_;              \
		bool good_ = tm_open(&t_); \
		if (good_)                 \
			good_ = body(&t_); \
		return tm_close(&t_) && good_; \
	} while (0)

#define EXPECT(t, id, code, wc_flags_)                  \
	do {                                            \
		MUST(tm_next(t, &s));                   \
		MUST_EQ(s.status, IBV_WC_SUCCESS);      \
		MUST_EQ(s.wr_id, id);                   \
		MUST_EQ(s.opcode, code);                \
		MUST_EQ(s.flags, wc_flags_);            \
	} while (0)

#endif
