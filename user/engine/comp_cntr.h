/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion counters (ibv_create_comp_cntr(3)): two numbers that the engines add to as operations
 * of queue pairs end, and that the application reads at any time. A counter may have queue pairs of
 * several engines. Only unlikely() branches of the completion paths lead here.
 */
#ifndef ENGINE_COMP_CNTR_H
#define ENGINE_COMP_CNTR_H

#include "cq.h"

/* Operations of a QP, with the bit numbers of enum ibv_qp_attach_comp_cntr_op. */
enum counted_op {
	COUNTED_SEND,
	COUNTED_RECV,
	COUNTED_READ,
	COUNTED_REMOTE_READ,
	COUNTED_WRITE,
	COUNTED_REMOTE_WRITE,
	COUNTED_OPS
};

struct comp_cntr {
	_Atomic u64 done;   /* operations or, with counts_bytes, their bytes */
	_Atomic u64 failed; /* operations that ended in error */
	bool counts_bytes;  /* constant */
};

/* An operation has ended with this status. Comes before its completion is published. */
static inline void comp_cntr_add(struct comp_cntr *c, enum cqe_status status, u32 bytes)
{
	/* release: pairs with the acquire in comp_cntr.c of the verbs: the data is there */
	if (!c)
		return;
	if (status != CQE_SUCCESS)
		atomic_fetch_add_explicit(&c->failed, 1, memory_order_release);
	else
		atomic_fetch_add_explicit(&c->done, c->counts_bytes ? bytes : 1,
					  memory_order_release);
}

#endif
