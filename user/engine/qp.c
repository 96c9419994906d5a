/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Queue pairs as objects: creation and destruction, both sides of the send queue, and flushing. */
#include <stdlib.h>

#include "credit.h"
#include "internal.h"
#include "qp.h"
#include "recovery.h"
#include "requester.h"
#include "responder.h"
#include "stat.h"
#include "tag.h"
#include "types.h"

_Static_assert(2 * QP_MAX_WR - 1 <= UINT16_MAX,
	       "with what rendezvous take the mask of a send queue is of twice that size");

/*
 * Returns the bytes of a slot, whole cache lines: the application and the engine never work on
 * slots that share a line.
 */
static u32 sq_stride(u32 max_sge, u32 max_inline)
{
	u32 tail = max_sge * (u32)sizeof(struct sge);

	if (max_inline > tail)
		tail = max_inline;
	return ((u32)sizeof(struct send_wqe) + tail + CACHE_LINE - 1) & ~(CACHE_LINE - 1u);
}

size_t sq_bytes(u32 max_wr, u32 max_sge, u32 max_inline)
{
	return (size_t)roundup_pow2(max_wr) * sq_stride(max_sge, max_inline);
}

int sq_init(struct sq *sq, u32 max_wr, u32 max_sge, u32 max_inline, void *lent)
{
	sq->max_wr = (u16)max_wr;
	sq->max_sge = (u16)max_sge;
	sq->max_inline = (u16)max_inline;
	sq->mask = (u16)(roundup_pow2(max_wr) - 1);
	sq->stride = (u16)sq_stride(max_sge, max_inline);
	sq->lent = lent != NULL;
	sq->ring = aligned_or_lent(lent, sq_bytes(max_wr, max_sge, max_inline));
	return sq->ring ? 0 : -ENOMEM;
}

void sq_free(struct sq *sq)
{
	if (!sq->lent)
		free(sq->ring);
}

void sq_begin(struct sq *sq)
{
	u32 prod = atomic_load_explicit(&sq->prod, memory_order_relaxed);

	/*
	 * acquire: pairs with the release in sq_complete(): the engine is done with all slots. The
	 * engine sees the new first with the store of prod in sq_publish()
	 */
	if (atomic_load_explicit(&sq->cons, memory_order_acquire) == prod)
		atomic_store_explicit(&sq->first, prod, memory_order_relaxed);
}

struct send_wqe *sq_slot(struct sq *sq, u32 n)
{
	u32 prod = atomic_load_explicit(&sq->prod, memory_order_relaxed) + n;
	/* acquire: pairs with the release in sq_complete(): the engine is done with the slot */
	u32 cons = atomic_load_explicit(&sq->cons, memory_order_acquire);

	return prod - cons < sq->max_wr ? sq_at(sq, prod) : NULL;
}

void sq_publish(struct sq *sq, u32 n)
{
	u32 prod = atomic_load_explicit(&sq->prod, memory_order_relaxed);

	/* release: pairs with the acquire in sq_prod() */
	atomic_store_explicit(&sq->prod, prod + n, memory_order_release);
}

/* Returns the work requests of a transport service: ibv_post_send(3), the table of opcodes. */
static u32 opcodes_of(enum xroce_transport t)
{
	const u32 sends = 1u << WR_SEND | 1u << WR_SEND_WITH_IMM;
	const u32 writes = 1u << WR_WRITE | 1u << WR_WRITE_WITH_IMM;
	const u32 local = 1u << WR_LOCAL_INV | 1u << WR_BIND_MW;

	switch (t) {
	case XROCE_RC:
	case XROCE_XRC:
		return sends | writes | local | 1u << WR_READ | 1u << WR_CMP_SWAP |
		       1u << WR_FETCH_ADD | 1u << WR_SEND_WITH_INV | 1u << WR_FLUSH |
		       1u << WR_ATOMIC_WRITE;
	case XROCE_UC:
		return sends | writes | local;
	case XROCE_UD:
		return sends;
	case XROCE_RAW:
		return 1u << WR_SEND;
	default:
		return 0;
	}
}

void send_wqe_refuse(struct send_wqe *wqe, enum cqe_status status)
{
	wqe->opcode = WR_REFUSED;
	wqe->refused_as = status;
	wqe->flags &= WR_SIGNALED;
	wqe->num_sge = 0;
	wqe->length = 0;
}

static bool is_atomic(u8 opcode)
{
	return opcode == WR_CMP_SWAP || opcode == WR_FETCH_ADD;
}

int send_wqe_check(const struct qp *qp, struct send_wqe *wqe)
{
	const struct sq *sq;

	/* RC has all opcodes */
	if (wqe->opcode >= WR_OPCODES || qp->xrc_target ||
	    !(opcodes_of(XROCE_RC) & 1u << wqe->opcode))
		return -EINVAL;
	if (wqe->flags & ~(WR_FENCE | WR_SIGNALED | WR_SOLICITED | WR_INLINE))
		return -EINVAL;
	sq = qp_posting(qp);
	if (wqe->flags & WR_INLINE) {
		if (wr_is_answered(wqe->opcode) || wr_is_local(wqe->opcode))
			return -EINVAL;
		if (wqe->num_sge || wqe->length > sq->max_inline)
			return -ENOMEM;
	} else if (wqe->num_sge > sq->max_sge) {
		return -EINVAL;
	}
	if (!(opcodes_of(qp->transport) & 1u << wqe->opcode)) {
		send_wqe_refuse(wqe, CQE_LOC_QP_OP_ERR);
		return 0;
	}
	if (wqe->opcode == WR_ATOMIC_WRITE)
		return wqe->length == sizeof(u64) && wqe->remote_addr % sizeof(u64) == 0 ?
			       0 :
			       -EINVAL;
	if (wr_is_local(wqe->opcode))
		return wqe->num_sge == 0 && wqe->length == 0 ? 0 : -EINVAL;
	if (wqe->length > ROCE_MESSAGE_MAX ||
	    (is_atomic(wqe->opcode) && wqe->length != sizeof(u64)))
		send_wqe_refuse(wqe, CQE_LOC_LEN_ERR);
	return 0;
}

void qp_clear(struct qp *qp)
{
	qp->req =
		(struct requester){ .ack_deadline_ns = NSEC_NEVER, .rtt.deadline_ns = NSEC_NEVER };
	memset(&qp->resp, 0, sizeof(qp->resp));
	qp->is_failing = false;
	rd_atomic_init(qp);
}

/* QP 1, whose number is fixed, has its own slot in the table. */
static int qpn_take_cm(const struct engine_tables *t)
{
	return t->qp[XROCE_CM_QPN] ? -EEXIST : 0;
}

/* *number 0: draws any. */
static int qpn_take_other(struct engine *e, u32 *number)
{
	struct engine_tables *t = e->tables;
	void *const *table = (void *const *)t->qp;

	if (t->num_qps == ENGINE_MAX_QP)
		return -ENOMEM;
	if (!*number)
		*number = owner_draw_number(e, table, t->qp_generation, XROCE_MAX_QP, XROCE_CM_QPN);
	else if (!owner_take_number(table, t->qp_generation, XROCE_MAX_QP, XROCE_CM_QPN, *number))
		return -EEXIST;
	t->num_qps++;
	return 0;
}

static int qpn_take(struct engine *e, struct qp *qp, u32 number)
{
	struct engine_tables *t = e->tables;
	int err = number == XROCE_CM_QPN ? qpn_take_cm(t) : qpn_take_other(e, &number);

	if (err)
		return err;
	qp->qpn = number;
	t->qp[qp->qpn % XROCE_MAX_QP] = qp;
	return 0;
}

/* Returns whether init has exactly the CQs and queues that its kind needs. */
static bool init_has_its_queues(const struct qp_init *init)
{
	const bool xrc = init->transport == XROCE_XRC, raw = init->transport == XROCE_RAW;

	if (init->rss)
		return raw && !init->is_wq && !init->send_cq && !init->recv_cq && !init->srq &&
		       !init->max_send_wr && !init->max_recv_wr;
	if (init->is_wq)
		return raw && !init->send_cq && init->recv_cq && !init->srq &&
		       !init->max_send_wr;
	return (init->send_cq || (xrc && init->xrc_target)) && (init->recv_cq || xrc);
}

int qp_create(struct engine *e, const struct qp_init *init, struct qp **out)
{
	struct qp *qp;
	int err;

	bool target = init->xrc_target, xrc = init->transport == XROCE_XRC,
	     raw = init->transport == XROCE_RAW,
	     tags = init->srq && init->srq->tags;

	if ((init->transport != XROCE_RC && init->transport != XROCE_UC &&
	     init->transport != XROCE_UD && !raw && !xrc) ||
	    init->max_send_wr > QP_MAX_WR || init->max_recv_wr > QP_MAX_WR ||
	    init->max_send_sge > QP_MAX_SEND_SGE || init->max_recv_sge > RQ_MAX_SGE ||
	    init->max_inline > QP_MAX_INLINE || !init_has_its_queues(init) ||
	    (target && (!xrc || !init->xrcd)) ||
	    (tags && init->transport != XROCE_RC) || ((xrc || tags) && e->number) ||
	    (raw && (e->number || init->ud_mtu > RAW_MTU_MAX)) ||
	    (init->qpn == XROCE_CM_QPN && init->transport != XROCE_UD))
		return -EINVAL;
	qp = aligned_zero(sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp->transport = init->transport;
	qp->sq_sig_all = init->sq_sig_all;
	qp->sends_single = raw || init->transport == XROCE_UD;
	qp->xrc_target = target;
	qp->xrcd = init->xrcd;
	qp->pd = init->pd;
	qp->send_cq = init->send_cq;
	qp->recv_cq = tags ? init->srq->cq : init->recv_cq;
	qp->srq = init->srq;
	qp->is_wq = init->is_wq;
	qp->owner = init->owner;
	qp->path_mtu = init->ud_mtu ? init->ud_mtu : ROCE_PMTU_MAX;
	qp_clear(qp);
	err = tags ? shared_sends_init(qp, init) :
		     sq_init(&qp->sq, init->max_send_wr, init->max_send_sge, init->max_inline,
			     init->sq_lent);
	if (!err && (init->srq || xrc))
		err = rq_init(&qp->rq, 0, 0);
	else if (!err)
		err = rq_init_in(&qp->rq, init->max_recv_wr, init->max_recv_sge, init->rq_lent);
	if (!err)
		err = credit_peers_init(qp);
	if (!err)
		err = stat_init(qp, init);
	if (!err)
		err = qpn_take(e, qp, init->qpn);
	if (err) {
		stat_free(qp);
		credit_free(qp);
		rq_free(&qp->rq);
		shared_sends_free(qp);
		sq_free(&qp->sq);
		free(qp);
		return err;
	}
	if (is_reliable(qp) && qp->send_cq && qp->send_cq->with_channel && e->config.expect) {
		qp->expect = &e->config.expect[XROCE_QP_SLOT(qp->qpn)];
		qp->tells_xdp = true;
		expect_none(qp);
	}
	qp->rss = init->rss;
	e->tables->num_raw += raw;
	owner_take_qp(e, qp);
	stat_describe(qp);
	*out = qp;
	return 0;
}

void qp_abandon(struct qp *qp)
{
	atomic_store_explicit(&qp->state, QPS_ERR, memory_order_relaxed);
	qp->attr.state = QPS_ERR;
	stat_state(qp);
}

void qp_purge_completions(struct engine *e, struct qp *qp)
{
	tag_forget_qp(qp);
	if (unlikely(e->config.faults))
		faults_forget(e->tables, NULL, qp->qpn);
	for (u32 i = 0; qp->xrc_target && i < ENGINE_MAX_SRQ; i++)
		if (e->srq[i] && e->srq[i]->xrcd == qp->xrcd)
			cq_mark_purged(e->srq[i]->cq, qp->qpn);
	if (qp->send_cq)
		cq_purge(qp->send_cq, qp->qpn);
	if (qp->recv_cq)
		cq_purge(qp->recv_cq, qp->qpn);
}

void qp_destroy(struct engine *e, struct qp *qp)
{
	e = qp_engine(qp);
	group_detach_all(e, qp);
	e->tables->num_raw -= qp->transport == XROCE_RAW;
	engine_forget_qp(e, qp);
	e->qp[qp->qpn % XROCE_MAX_QP] = NULL;
	if (qp->qpn != XROCE_CM_QPN)
		e->tables->num_qps--;
	qp_purge_completions(e, qp);
	owner_release_qp(e, qp);
	rd_atomic_free(qp);
	credit_free(qp);
	rss_free(qp->rss);
	rq_free(&qp->rq);
	shared_sends_free(qp);
	sq_free(&qp->sq);
	stat_free(qp);
	free(qp);
}

static enum cqe_opcode cqe_opcode_of(u8 wr_opcode)
{
	static const u8 table[] = {
		[WR_WRITE] = CQE_WRITE,		[WR_WRITE_WITH_IMM] = CQE_WRITE,
		[WR_SEND] = CQE_SEND,		[WR_SEND_WITH_IMM] = CQE_SEND,
		[WR_READ] = CQE_READ,		[WR_CMP_SWAP] = CQE_COMP_SWAP,
		[WR_FETCH_ADD] = CQE_FETCH_ADD, [WR_LOCAL_INV] = CQE_LOCAL_INV,
		[WR_BIND_MW] = CQE_BIND_MW,	[WR_SEND_WITH_INV] = CQE_SEND,
		[WR_FLUSH] = CQE_FLUSH,		[WR_ATOMIC_WRITE] = CQE_ATOMIC_WRITE,
		[WR_REFUSED] = CQE_SEND, /* no meaning in a failed completion */
	};

	return table[wr_opcode];
}

/* Frees the oldest WQE's slot. */
static void sq_advance(struct qp *qp)
{
	/* release: pairs with the acquire in sq_slot() */
	atomic_store_explicit(&qp->sq.cons, sq_cons(&qp->sq) + 1, memory_order_release);
}

/* Counts a WQE that ends, signaled or not. The opcodes of the other requests have no counter. */
static rare void count_sent(struct qp *qp, const struct send_wqe *wqe, enum cqe_status status)
{
	switch (cqe_opcode_of(wqe->opcode)) {
	case CQE_SEND:
		comp_cntr_add(qp->counter[COUNTED_SEND], status, wqe->length);
		break;
	case CQE_WRITE:
		comp_cntr_add(qp->counter[COUNTED_WRITE], status, wqe->length);
		break;
	case CQE_READ:
		comp_cntr_add(qp->counter[COUNTED_READ], status, wqe->length);
		break;
	default:
		break;
	}
}

void sq_complete(struct engine *e, struct qp *qp, enum cqe_status status, enum vendor_err verr,
		 u64 now_ns)
{
	const struct send_wqe *wqe = sq_at(&qp->sq, sq_cons(&qp->sq));
	/* a failed WQE completes even if unsignaled: ibv_post_send(3) */
	struct cqe *cqe = NULL;
	bool completes;

	if (unlikely(wqe->flags & WR_RENDEZVOUS)) {
		rendezvous_sent(e, qp, wqe, status, verr, now_ns);
		sq_advance(qp);
		return;
	}
	if (unlikely(e->config.faults) && status == CQE_SUCCESS) {
		status = faults_send(e, qp, cqe_opcode_of(wqe->opcode));
		verr = !status			   ? VERR_NONE :
		       status == CQE_WR_FLUSH_ERR ? VERR_FLUSHED :
						     VERR_FAULT_RULE;
	}
	completes = wqe->flags & WR_SIGNALED || qp->sq_sig_all || status != CQE_SUCCESS;
	if (unlikely(qp->is_counted))
		count_sent(qp, wqe, status);
	if (completes) {
		cqe = engine_complete_begin(qp->send_cq);
		*cqe = (struct cqe){
			.wr_id = wqe->wr_id,
			.status = status,
			.opcode = cqe_opcode_of(wqe->opcode),
			.vendor_err = verr,
			.byte_len = wqe->length,
			.qpn = qp->qpn,
			.time_ns = now_ns,
		};
	}
	/*
	 * Before the push: a thread that sees the completion may post at once to a queue that was
	 * full.
	 */
	sq_advance(qp);
	if (unlikely(qp->tag_matching))
		shared_sends_completed(qp);
	if (completes)
		engine_complete_end(e, qp->send_cq, cqe, false);
}

static void flush_sends(struct engine *e, struct qp *qp)
{
	for (; sq_cons(&qp->sq) != sq_prod(&qp->sq); e->stats->req_flushed++)
		sq_complete(e, qp, CQE_WR_FLUSH_ERR, VERR_FLUSHED, 0);
	qp->req.tx = qp->req.assigned = sq_cons(&qp->sq);
	qp->req.tx_packet = 0;
	qp->req.rd_atomic_out = 0;
	qp->req.rnr_wait = false;
	qp->req.ack_deadline_ns = qp->req.rtt.deadline_ns = NSEC_NEVER;
	recovery_reset(&qp->req);
	reorder_purge(e, &qp->req.early);
}

static void flush_receives(struct engine *e, struct qp *qp)
{
	/* the WQE of an unfinished message first; an SRQ's WQEs stay for other QPs */
	while (qp->resp.seq.have_recv || (!qp->srq && rq_take(&qp->rq, &qp->resp.recv))) {
		struct cq *cq = qp->resp.recv_srq ? qp->resp.recv_srq->cq : qp->recv_cq;
		struct cqe cqe = {
			.wr_id = qp->resp.recv.wr_id,
			.status = CQE_WR_FLUSH_ERR,
			.opcode = tag_abandon(qp),
			.vendor_err = VERR_FLUSHED,
			.qpn = qp->qpn,
		};

		qp->resp.seq.have_recv = false;
		qp->resp.recv_srq = NULL;
		if (unlikely(qp->is_counted))
			comp_cntr_add(qp->counter[COUNTED_RECV], CQE_WR_FLUSH_ERR, 0);
		engine_complete(e, cq, &cqe, false);
		e->stats->resp_flushed++;
	}
}

void qp_flush(struct engine *e, struct qp *qp)
{
	/*
	 * between storing the state and reading the queues. Pairs with the store in rq_publish(): a
	 * posting thread sees the state, or this thread sees the post
	 */
	atomic_thread_fence(memory_order_seq_cst);
	flush_sends(e, qp);
	if (qp_state(qp) == QPS_ERR)
		flush_receives(e, qp);
}

/* Returns whether the error is a refused request of the peer's. */
static bool fatal_nak_due(const struct responder *resp)
{
	return resp->ack_due && (resp->ack_syndrome & AETH_CLASS_MASK) == AETH_NAK &&
	       (resp->ack_syndrome & AETH_VALUE_MASK) != NAK_PSN_SEQUENCE;
}

void engine_qp_error(struct engine *e, struct qp *qp, u32 events)
{
	if (qp_state(qp) == QPS_ERR || qp_state(qp) == QPS_RESET)
		return;
	e->stats->resp_invalid += !!(events & EVENT_QP_REQ_ERR);
	e->stats->resp_access += !!(events & EVENT_QP_ACCESS_ERR);
	if (events & EVENT_QP_REQ_ERR)
		stat_error(e, qp, CQE_REM_INV_REQ_ERR, XROCE_REASON_PEER_INVALID);
	else if (events & EVENT_QP_ACCESS_ERR)
		stat_error(e, qp, CQE_LOC_ACCESS_ERR, XROCE_REASON_PEER_ACCESS);
	/* pairs with the load in qp_state(), and by the fence in qp_flush() with rq_publish() */
	atomic_store_explicit(&qp->state, QPS_ERR, memory_order_seq_cst);
	qp->attr.state = QPS_ERR;
	stat_state(qp);
	if (!fatal_nak_due(&qp->resp))
		reply_forget(qp);
	timer_cancel(e, qp);
	reorder_purge(e, &qp->resp.early);
	qp_flush(e, qp);
	if (qp->srq)
		events |= EVENT_QP_LAST_WQE;
	engine_qp_event(e, qp, events | EVENT_QP_STATE);
	/* a NAK is still sent, after the answers to the requests before it */
	if (qp->resp.ack_due)
		engine_ready(e, qp, READY_REPLIES);
}

void qp_send_error(struct engine *e, struct qp *qp, enum cqe_status status, enum vendor_err verr,
		   u64 now_ns)
{
	stat_send_error(e, status);
	stat_error(e, qp, status, (enum xroce_reason)verr);
	sq_complete(e, qp, status, verr, now_ns);
	qp_stop_sending(e, qp);
}

void qp_stop_sending(struct engine *e, struct qp *qp)
{
	qp->is_failing = false;
	if (is_reliable(qp)) {
		engine_qp_error(e, qp, 0);
		return;
	}
	/* UC and UD only stop sending: SQE, and back to RTS by ibv_modify_qp(3) */
	/* pairs as in engine_qp_error() */
	atomic_store_explicit(&qp->state, QPS_SQE, memory_order_seq_cst);
	qp->attr.state = QPS_SQE;
	stat_state(qp);
	qp_flush(e, qp);
	engine_qp_event(e, qp, EVENT_QP_STATE);
}

/*
 * Memory for outstanding READs and atomics: the requester's ring of their last PSNs and the
 * responder's ring of requests that it may answer again. A QP has room for QP_OWN_RD_ATOMIC of
 * each. If ibv_modify_qp(3) asks for more, rings of a power of two of entries are allocated and
 * kept until RESET. Nothing here runs on the data path.
 */

/* Returns the entries of a ring for `want`, or 0 if a ring of `have` entries suffices. */
static u32 ring_entries(u32 have, u32 want)
{
	u32 n = have;

	while (n < want)
		n *= 2;
	return n == have ? 0 : n;
}

/* Copies from the oldest entry to index 0 on; outstanding and stored requests are kept. */
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
