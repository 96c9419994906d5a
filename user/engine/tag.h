/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tag matching: the list of tagged buffers of a tag-matching SRQ, and the operations on it
 * (ibv_post_srq_ops(3)). The list is the engine's and is touched under its owner's lock only; an
 * operation is done when tag_post() returns.
 */
#ifndef ENGINE_TAG_H
#define ENGINE_TAG_H

#include "mr.h"
#include "types.h"

#define TAG_MAX_TAGS 1024 /* of a list */
#define TAG_MAX_OPS		 1024 /* signaled operations with completions not polled yet */
#define TAG_MAX_SGE  8
#define TAG_MAX_RENDEZVOUS_BYTES 256 /* of a rendezvous request: one packet at every path MTU */

/* With the values of enum ibv_ops_wr_opcode and enum ibv_ops_flags. */
enum tag_opcode { TAG_ADD = 0, TAG_DEL = 1, TAG_SYNC = 2 };
enum { TAG_OP_SIGNALED = 1 << 0, TAG_OP_SYNC = 1 << 1 };

struct tag_op {
	u64 wr_id;
	u32 opcode;		/* enum tag_opcode; others are refused */
	u32 flags;		/* TAG_OP_* */
	/*
	 * unexpected messages that the application has dealt with; counts with TAG_SYNC or
	 * TAG_OP_SYNC
	 */
	u32 unexpected_cnt;
	u32 handle;		/* TAG_DEL: of the entry; TAG_ADD: given back */
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
 * Do one operation. Returns 0, or with nothing changed: -EINVAL for an opcode, flag, handle or
 * number of SGEs that cannot be; -ENOMEM when the list is full, or max_ops signaled operations wait
 * to be polled. A signaled one completes on the SRQ's CQ; TAG_DEL of an entry that
 * is not there any more with CQE_TM_ERR.
 */
int tag_post(struct engine *e, struct srq *srq, struct tag_op *op, u64 now_ns);

#endif
