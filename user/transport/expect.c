/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From which PSN on does a response complete something in the send CQ? XDP wakes the CQ's reader
 * for such a response and for no other: the engine says it in xroce_expect, for QPs whose send CQ
 * has a completion channel.
 *
 *   engine                                       XDP
 *   store the PSN of the first WQE that a response comes, the send CQ is armed: load the PSN;
 *   completes visibly, then send it not before it: take the arm word, wake
 *
 * A PSN that is behind, since the engine has not seen an ACK yet, wakes for nothing at most. Errors
 * that come of a NAK's repetition are not foreseen: the thread that runs the engine reports those.
 */
#include "internal.h"

static bool is_visible(const struct qp *qp, const struct send_wqe *wqe)
{
	return (wqe->flags & WR_SIGNALED || qp->sq_sig_all) && !(wqe->flags & WR_RENDEZVOUS);
}

/* The WQE with this index completes, and something is seen of it, when psn is acknowledged. */
static void expect_publish(struct qp *qp, u32 index, u32 psn)
{
	qp->expect_set = true;
	qp->expect_index = index;
	/*
	 * release: pairs with the load in wake_visible_ends() (bpf/wake.h). What answers the
	 * request was sent after it, so XDP sees this or a later one
	 */
	atomic_store_explicit(shared_word(&qp->expect->psn), psn | XROCE_EXPECTED,
			      memory_order_release);
}

static bool expect_publish_if_visible(struct qp *qp, u32 index)
{
	const struct send_wqe *wqe = sq_at(&qp->sq, index);

	if (!is_visible(qp, wqe))
		return false;
	/* local ones take no PSN: they complete with those before them */
	expect_publish(qp, index, psn_add(wqe->first_psn, wqe->num_psn - 1));
	return true;
}

void expect_none(struct qp *qp)
{
	qp->expect_set = false;
	if (qp->expect)
		/* release: as in expect_publish() */
		atomic_store_explicit(shared_word(&qp->expect->psn), 0, memory_order_release);
}

void expect_assigned(struct qp *qp)
{
	if (!qp->expect_set)
		expect_publish_if_visible(qp, qp->req.assigned - 1);
}

/*
 * Each WQE is looked at once: while one is published no other is looked for, and where none is, the
 * next that is assigned will be.
 */
void expect_completed(struct qp *qp)
{
	if (!qp->expect_set || (s32)(qp->expect_index - sq_cons(&qp->sq)) >= 0)
		return;
	for (u32 index = sq_cons(&qp->sq); index != qp->req.assigned; index++)
		if (expect_publish_if_visible(qp, index))
			return;
	expect_none(qp);
}

void expect_failure(struct qp *qp)
{
	if (!qp->expect_set)
		expect_publish(qp, qp->req.tx - 1, psn_add(qp->req.next_psn, ROCE_PSN_MASK));
}
