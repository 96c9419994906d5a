/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state that a QP publishes in its record of xroce_qp_stat. Per-packet values are stored where
 * they change; this file handles the values that change with the QP's state, or seldom.
 *
 * Others may be able to write to the record's map: nothing that matters is read from it.
 */
#include <stdlib.h>

#include "congestion.h"
#include "engine.h"
#include "stat.h"
#include "types.h"

#define X(name, number, text)                                                         \
	_Static_assert((int)XROCE_REASON_##name == (int)VERR_##name, "the same number");
VENDOR_ERRORS(X)
#undef X
_Static_assert((int)XROCE_QPS_RESET == (int)QPS_RESET && (int)XROCE_QPS_ERR == (int)QPS_ERR &&
		       (int)XROCE_QPS_SQE == (int)QPS_SQE,
	       "the same numbers");
_Static_assert((int)XROCE_STATUS_LOC_PROT_ERR == (int)CQE_LOC_PROT_ERR &&
		       (int)XROCE_STATUS_RNR_RETRY_EXC_ERR == (int)CQE_RNR_RETRY_EXC_ERR &&
		       (int)XROCE_STATUS_TM_RNDV_INCOMPLETE == (int)CQE_TM_RNDV_INCOMPLETE,
	       "the same numbers");

int stat_init(struct qp *qp, const struct qp_init *init)
{
	if (!init->stat)
		qp->stat_own = aligned_zero(sizeof(*qp->stat_own));
	qp->stat = init->stat ? init->stat : qp->stat_own;
	return qp->stat ? 0 : -ENOMEM;
}

void stat_free(struct qp *qp)
{
	free(qp->stat_own);
	qp->stat = qp->stat_own = NULL;
}

static u32 stat_cq_number(const struct cq *cq)
{
	return cq ? cq->index : XROCE_NO_CQ;
}

void stat_describe(struct qp *qp)
{
	struct xroce_qp_stat *stat = qp->stat;

	stat->qpn = qp->qpn;
	stat->transport = (enum xroce_transport)qp->transport;
	stat->peer_qpn = qp->dest_qpn;
	stat->path_mtu = qp->path_mtu;
	stat->pd = qp->pd;
	stat->pkey = qp->pkey;
	if (qp->transport != XROCE_UD) {
		memcpy(stat->local, &qp->path.local, sizeof(stat->local));
		memcpy(stat->peer, &qp->path.peer, sizeof(stat->peer));
	}
	stat->send_cq = stat_cq_number(qp->send_cq);
	stat->recv_cq = stat_cq_number(qp->recv_cq);
	stat->srq = qp->srq ? qp->srq->number : 0;
	stat_responder(qp);
	stat_psns(qp);
	stat_state(qp);
}

void stat_state(struct qp *qp)
{
	const enum xroce_qp_state state = (enum xroce_qp_state)qp_state(qp);
	struct engine *e = qp_engine(qp);
	const bool changed = qp->stat->state != state;

	qp->stat->state = state;
	if (unlikely(e && e->notes && changed))
		note_add(e, qp, XROCE_EVENT_state, (u32)qp->stat->state, 0);
}

void stat_error(struct engine *e, struct qp *qp, enum cqe_status status, enum xroce_reason why)
{
	/* later errors are consequences of the first */
	if (qp_state(qp) == QPS_ERR || qp_state(qp) == QPS_RESET)
		return;
	qp->stat->error_ns = e->now_ns;
	qp->stat->error = (enum xroce_status)status;
	qp->stat->error_reason = why;
	if (unlikely(e->notes))
		note_add(e, qp, XROCE_EVENT_error, (u32)status, (u32)why);
}

void stat_send_error(struct engine *e, enum cqe_status status)
{
	struct xroce_engine_stats *stats = e->stats;

	stats->req_errors++;
	stats->req_retry_exceeded += status == CQE_RETRY_EXC_ERR;
	stats->req_rnr_exceeded += status == CQE_RNR_RETRY_EXC_ERR;
	stats->req_remote_access += status == CQE_REM_ACCESS_ERR;
	stats->req_remote_invalid += status == CQE_REM_INV_REQ_ERR;
	stats->req_remote_operation += status == CQE_REM_OP_ERR;
}

void stat_receive_error(struct engine *e, enum cqe_status status)
{
	e->stats->resp_errors++;
	e->stats->resp_length += status == CQE_LOC_LEN_ERR;
}

void stat_limits(const struct engine *e, struct qp *qp)
{
	struct xroce_qp_stat *stat = qp->stat;

	stat->window = is_reliable(qp) ? congestion_window(e, &qp->req) : 0;
	stat->rtt_ns = qp->req.rtt.smoothed_ns;
	stat->rtt_variation_ns = qp->req.rtt.variation_ns;
	stat->rate_limit = qp->rate.limit;
	stat->rate = qp->rate.reduced ? qp->rate.current : 0;
}

void stat_cq(struct cq *cq)
{
	const u32 prod = cq_next_index(cq);
	const u32 waiting = prod - atomic_load_explicit(&cq->cons, memory_order_relaxed);
	struct xroce_cq_stat *stat = cq->stat;

	if (!STAT_SHOWN || !stat)
		return;
	/* prod counts the pushed completions, in 32 bits */
	stat->completions += (u32)(prod - (u32)stat->completions);
	stat->waiting = waiting;
	if (waiting > stat->most_waiting)
		stat->most_waiting = waiting;
}

void stat_row_end(struct engine *e)
{
	const u64 packets = e->stats->rx_packets - e->row.before;
	struct qp *qp = e->row.qp;

	if (!e->row.kept)
		return;
	qp->stat->rx_packets += packets;
	qp->stat->rx_bytes += packets * e->row.frame_len + e->row.bytes;
	if (e->row.kept == &qp->req.response)
		stat_psns(qp);
	else
		stat_responder(qp);
	e->row.kept = NULL;
}

rare void stat_row_begin(struct engine *e, struct qp *qp, const struct header_in *kept)
{
	stat_row_end(e);
	e->row.qp = qp;
	e->row.kept = kept;
	e->row.before = e->stats->rx_packets;
	e->row.frame_len = kept->frame_len;
	e->row.bytes = 0;
}

void stat_drop(struct engine *e, struct qp *qp, enum xroce_drop drop)
{
	engine_drop(e, drop);
	stat_drop_of(qp, drop);
}

void stat_drop_of(struct qp *qp, enum xroce_drop drop)
{
	qp->stat->rx_dropped++;
	qp->stat->icrc_errors += drop == XROCE_DROP_icrc;
	qp->stat->last_drop = drop;
}

void stat_resent(struct qp *qp, u32 len)
{
	struct xroce_qp_stat *stat = qp->stat;
	const u32 psn = qp->req.unacked_psn;

	stat->resent_times = stat->resent_times && stat->resent_psn == psn ?
				     stat->resent_times + 1 :
				     1;
	stat->resent_psn = psn;
	stat->resent_bytes = len;
}

/* ---- trace ---- */

void engine_set_notes(struct engine *e, struct engine_notes *notes)
{
	e->notes = notes;
}

rare void note_add(struct engine *e, const struct qp *qp, enum xroce_event event, u32 value,
		   u32 more)
{
	struct engine_notes *n = e->notes;

	if (n->num == ENGINE_NOTES) {
		n->lost++;
		return;
	}
	n->note[n->num++] = (struct engine_note){ .qpn = qp->qpn,
						  .peer_qpn = qp->dest_qpn,
						  .event = event,
						  .value = value,
						  .more = more };
}

rare void note_output(struct engine *e, const struct qp *qp)
{
	e->notes->output_qpn = qp->qpn;
	e->notes->output_peer_qpn = qp->dest_qpn;
}
