/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ibv_post_srq_ops(3): the list of a tag-matching SRQ. The engine does each operation at once,
 * under the port's lock: an operation that was posted is done, and the order of the calls is the
 * order of the list.
 */
#include <infiniband/tm_types.h>

#include "objects.h"

_Static_assert((int)IBV_WR_TAG_ADD == TAG_ADD && (int)IBV_WR_TAG_DEL == TAG_DEL &&
		       (int)IBV_WR_TAG_SYNC == TAG_SYNC &&
		       (int)IBV_OPS_SIGNALED == TAG_OP_SIGNALED &&
		       (int)IBV_OPS_TM_SYNC == TAG_OP_SYNC,
	       "tag.h takes its values from verbs.h");
_Static_assert(sizeof(struct ibv_tmh) == sizeof(struct tmh) &&
		       sizeof(struct ibv_rvh) == sizeof(struct rvh) &&
		       (int)IBV_TMH_EAGER == TMH_EAGER,
	       "wire.h has the headers of tm_types.h");

/* Returns 0 or a positive errno. Only an ADD's fields beyond the common ones are looked at. */
static int post_one(struct vsrq *vsrq, struct ibv_ops_wr *wr)
{
	const bool is_add = wr->opcode == IBV_WR_TAG_ADD;
	struct tag_op op = {
		.wr_id = wr->wr_id,
		.opcode = (u32)wr->opcode,
		.flags = (u32)wr->flags,
		.unexpected_cnt = wr->tm.unexpected_cnt,
		.handle = wr->tm.handle,
		.recv_wr_id = is_add ? wr->tm.add.recv_wr_id : 0,
		.tag = is_add ? wr->tm.add.tag : 0,
		.mask = is_add ? wr->tm.add.mask : 0,
		.sge = is_add ? (const struct sge *)wr->tm.add.sg_list : NULL,
		.num_sge = is_add ? (u32)wr->tm.add.num_sge : 0,
	};
	int err = -tag_post(port_engine(vsrq->port), &vsrq->srq, &op, clock_now_ns());

	if (!err && is_add)
		wr->tm.handle = op.handle;
	return err;
}

int post_srq_ops_op(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad_wr)
{
	struct vsrq *vsrq = to_vsrq(srq);
	int err = 0;

	if (!vsrq->srq.tags || context_gone(srq->context)) {
		*bad_wr = wr;
		return verb_report(vsrq->srq.tags ? EIO : EINVAL);
	}
	port_lock(vsrq->port);
	for (; wr; wr = wr->next) {
		err = post_one(vsrq, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	port_unlock(vsrq->port);
	return verb_report(err);
}
