/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Faults on request: failed send WQEs and late completions. The responder and the credits ask the
 * table themselves. None of these functions runs in an engine without a table.
 */
#include "faults.h"

#include "internal.h"
#include "stat.h"

/*
 * Completions that are not in their CQ yet, in the order in which they were made. Those of a CQ
 * keep their order: none appears before an earlier one of the CQ.
 */
struct late {
	struct cq *cq;
	u64 due_ns; /* NSEC_NEVER: never */
	bool solicited;
	struct cqe cqe;
};

struct late_list {
	u32 num;
	struct late at[FAULTS_LATE_MAX];
};

int faults_init(struct engine *e)
{
	e->late_due_ns = NSEC_NEVER;
	if (!e->config.faults)
		return 0;
	e->late = aligned_new(sizeof(*e->late));
	if (!e->late)
		return -ENOMEM;
	e->late->num = 0;
	return 0;
}

void faults_free(struct engine *e)
{
	free(e->late);
}

/* ---- send WQEs ---- */

enum cqe_status faults_send(struct engine *e, struct qp *qp, u32 opcode)
{
	enum cqe_status status;

	if (qp->is_failing)
		return CQE_WR_FLUSH_ERR;
	status = (enum cqe_status)e->config.faults->sent(e->config.faults->arg, qp, opcode);
	if (status == CQE_SUCCESS)
		return status;
	stat_error(e, qp, status, XROCE_REASON_FAULT_RULE);
	qp->is_failing = true;
	/* relaxed: e itself checks it in engine_next_event() */
	atomic_store_explicit(&e->failing, true, memory_order_relaxed);
	return status;
}

/* ---- late completions ---- */

static void late_publish(struct engine *e)
{
	u64 due_ns = NSEC_NEVER;

	for (u32 i = 0; i < e->late->num; i++)
		due_ns = min_u64(due_ns, e->late->at[i].due_ns);
	if (due_ns == e->late_due_ns)
		return;
	e->late_due_ns = due_ns;
	timer_publish(e);
}

/* Returns whether the completion is kept to be pushed later. */
static bool late_keep(struct engine *e, struct cq *cq, const struct cqe *cqe, bool solicited)
{
	const u64 delay_ns = e->config.faults->delay_ns(e->config.faults->arg, cqe);
	u64 due_ns = delay_ns == NSEC_NEVER ? NSEC_NEVER : e->now_ns + delay_ns, before_ns = 0;
	struct late_list *l = e->late;

	for (u32 i = 0; i < l->num; i++)
		if (l->at[i].cq == cq)
			before_ns = max_u64(before_ns, l->at[i].due_ns);
	if ((!delay_ns && !before_ns) || l->num == FAULTS_LATE_MAX)
		return false;
	due_ns = max_u64(due_ns, before_ns);
	l->at[l->num++] = (struct late){ cq, due_ns, solicited, *cqe };
	late_publish(e);
	return true;
}

void faults_complete_end(struct engine *e, struct cq *cq, struct cqe *cqe, bool solicited)
{
	if (late_keep(e, cq, cqe, solicited))
		spin_unlock_if(cq->shared, &cq->lock);
	else
		engine_complete_push(e, cq, cqe, solicited);
}

void faults_expire(struct engine *e, u64 now_ns)
{
	struct late_list *l = e->late;
	u32 kept = 0;

	for (u32 i = 0; i < l->num; i++) {
		const struct late *late = &l->at[i];
		struct cqe *to;

		if (late->due_ns > now_ns) {
			l->at[kept++] = *late;
			continue;
		}
		to = engine_complete_begin(late->cq);
		*to = late->cqe;
		engine_complete_push(e, late->cq, to, late->solicited);
	}
	l->num = kept;
	late_publish(e);
}

/* Drops what is late of a CQ, or of a QP number. */
static void late_forget(struct engine *e, const struct cq *cq, u32 qpn)
{
	struct late_list *l = e->late;
	u32 kept = 0;

	for (u32 i = 0; i < l->num; i++)
		if (cq ? l->at[i].cq != cq : l->at[i].cqe.qpn != qpn)
			l->at[kept++] = l->at[i];
	l->num = kept;
	late_publish(e);
}

void faults_forget(struct engine_tables *t, const struct cq *cq, u32 qpn)
{
	for (u32 i = 0; i < ENGINE_MAX; i++)
		if (t->engine[i] && t->engine[i]->late)
			late_forget(t->engine[i], cq, qpn);
}
