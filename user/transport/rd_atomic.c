/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory for outstanding READs and atomics: the requester's ring of their last PSNs and the
 * responder's ring of what it may have to answer again. A QP has room for QP_OWN_RD_ATOMIC of each.
 * A QP that asks ibv_modify_qp(3) for more has rings allocated, a power of two of entries, and
 * keeps them until RESET. Nothing here runs on the data path.
 */
#include <stdlib.h>

#include "aligned.h"
#include "internal.h"

/* Entries for so many, or 0 if a ring of have entries will do. */
static u32 ring_entries(u32 have, u32 want)
{
	u32 n = have;

	while (n < want)
		n *= 2;
	return n == have ? 0 : n;
}

/* Oldest first from index 0 on; what was outstanding, or stored, stays so. */
static void requester_grow(struct requester *req, u32 *ring, u32 entries)
{
	for (u32 i = 0; i < req->rd_atomic_out; i++)
		ring[i] = req->rd_atomic_last[(req->rd_atomic_head + i) & req->rd_atomic_mask];
	if (req->rd_atomic_last != req->few)
		free(req->rd_atomic_last);
	req->rd_atomic_last = ring;
	req->rd_atomic_head = 0;
	req->rd_atomic_mask = (u8)(entries - 1);
}

static void responder_grow(struct responder *resp, struct resp_resource *ring, u32 entries)
{
	const u32 have = resp->resource_mask + 1u;
	u64 pending[2] = { 0 };

	for (u32 i = 0; i < have; i++) {
		const struct resp_resource *r =
			&resp->resource[(resp->resource_head + i) & resp->resource_mask];

		ring[i] = *r;
		pending[i / 64] |= (u64)resource_pending(resp, r) << i % 64;
	}
	if (resp->resource != resp->few)
		free(resp->resource);
	resp->resource = ring;
	memcpy(resp->pending, pending, sizeof(pending));
	resp->resource_head = (u8)have;
	resp->resource_mask = (u8)(entries - 1);
}

int rd_atomic_reserve(struct qp *qp, u32 initiated, u32 answered)
{
	struct requester *req = &qp->req;
	struct responder *resp = &qp->resp;
	const u32 sent = ring_entries(req->rd_atomic_mask + 1u, initiated);
	const u32 stored = ring_entries(resp->resource_mask + 1u, answered);
	u32 *last = sent ? aligned_zero(sent * sizeof(*last)) : NULL;
	struct resp_resource *resource = stored ? aligned_zero(stored * sizeof(*resource)) : NULL;

	if ((sent && !last) || (stored && !resource)) {
		free(last);
		free(resource);
		return -ENOMEM;
	}
	if (sent)
		requester_grow(req, last, sent);
	if (stored)
		responder_grow(resp, resource, stored);
	return 0;
}

void rd_atomic_init(struct qp *qp)
{
	qp->req.rd_atomic_last = qp->req.few;
	qp->resp.resource = qp->resp.few;
	qp->req.rd_atomic_mask = qp->resp.resource_mask = QP_OWN_RD_ATOMIC - 1;
}

void rd_atomic_free(struct qp *qp)
{
	if (qp->req.rd_atomic_last != qp->req.few)
		free(qp->req.rd_atomic_last);
	if (qp->resp.resource != qp->resp.few)
		free(qp->resp.resource);
}
