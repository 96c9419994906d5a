/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tag matching: the list of tagged buffers of a tag-matching SRQ, and the operations on it
 * (ibv_post_srq_ops(3)). Only the engine uses the list, under its owner's lock; an operation is
 * complete when tag_post() returns.
 */
#ifndef ENGINE_TAG_H
#define ENGINE_TAG_H

#include "mr.h"
#include "types.h"

#define TAG_MAX_TAGS 1024 /* per list */
#define TAG_MAX_OPS		 1024 /* signaled operations whose completions are not polled yet */
#define TAG_MAX_SGE  8
#define TAG_MAX_RENDEZVOUS_BYTES 256 /* of a rendezvous request: one packet at any path MTU */

/* With the values of enum ibv_ops_wr_opcode and enum ibv_ops_flags. */
enum tag_opcode { TAG_ADD = 0, TAG_DEL = 1, TAG_SYNC = 2 };
enum { TAG_OP_SIGNALED = 1 << 0, TAG_OP_SYNC = 1 << 1 };

struct tag_op {
	u64 wr_id;
	u32 opcode;		/* enum tag_opcode; others are refused */
	u32 flags;		/* TAG_OP_* */
	/*
	 * unexpected messages that the application has handled; valid with TAG_SYNC or TAG_OP_SYNC
	 */
	u32 unexpected_cnt;
	u32 handle;		/* TAG_DEL: the entry's; TAG_ADD: returned */
	/* TAG_ADD: a message with tag t matches if (t & mask) == tag */
	u64 recv_wr_id, tag, mask;
	const struct sge *sge;
	u32 num_sge;
};

struct engine;
struct srq;
struct tag_list;

/* max_tags 1 .. TAG_MAX_TAGS, max_ops 1 .. TAG_MAX_OPS. Returns 0 or -EINVAL, -ENOMEM. */
int tag_list_create(u32 max_tags, u32 max_ops, struct tag_list **out);
void tag_list_free(struct tag_list *list);

/*
 * Executes one operation. Returns 0, or with nothing changed: -EINVAL for a bad opcode, flag,
 * handle or number of SGEs; -ENOMEM when the list is full, or max_ops signaled operations are not
 * polled yet. A signaled one completes on the SRQ's CQ; TAG_DEL of an entry that is no longer
 * listed completes with CQE_TM_ERR.
 */
int tag_post(struct engine *e, struct srq *srq, struct tag_op *op, u64 now_ns);

#endif
