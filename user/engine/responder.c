/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The responder: request packets of RC and UC to memory, receive WQEs and completions. Its answers
 * are sent by reply.c.
 *
 * Each check is a function that cites its rule and returns a verdict. Nothing is changed before all
 * checks of a packet have passed, except that a receive WQE is taken and held for the message.
 */
#include "congestion.h"
#include "internal.h"
#include "recovery.h"
#include "responder.h"
#include "stat.h"
#include "tag.h"

enum verdict {
	ACCEPT,
	DROP,	      /* with a drop reason; UC: also the rest of the message */
	NAK_SEQUENCE, /* PSN ahead */
	DUPLICATE,
	RNR,
	INVALID_REQUEST, /* fatal from here on */
	NOT_ENABLED,	 /* a request that the QP's access flags do not allow */
	REMOTE_ACCESS,
	RECV_TOO_SHORT, /* fatal, and the receive WQE completes in error */
	RECV_BAD_LKEY,
	FAULT, /* on request, as e->fault says */
};

void responder_start(struct qp *qp, u32 rq_psn)
{
	struct responder *resp = &qp->resp;

	resp->seq = (struct resp_sequence){ .expected_psn = rq_psn };
	resp->ack_due = resp->run = false;
	reply_forget(qp);
	resp->resource_head = 0;
	memset(resp->resource, 0, (resp->resource_mask + 1u) * sizeof(resp->resource[0]));
}

/* IBTA 9.7.4.1.2: compares the PSN with the expected one. */
static enum verdict check_psn(struct qp *qp, const struct packet *p)
{
	struct resp_sequence *seq = &qp->resp.seq;
	s32 diff = psn_diff(p->psn, seq->expected_psn);

	if (qp->transport == XROCE_UC) {
		/*
		 * lost packets are not requested again: the next FIRST or ONLY starts a new message
		 */
		if (p->flags & OP_START) {
			seq->in_message = seq->dropping = false;
			return ACCEPT;
		}
		return diff == 0 && !seq->dropping ? ACCEPT : DROP;
	}
	return diff == 0 ? ACCEPT : diff > 0 ? NAK_SEQUENCE : DUPLICATE;
}

/*
 * XRC: the SRQ that each request names must be in the QP's domain. Keys are checked against the
 * SRQ's PD.
 */
static enum verdict check_target(struct engine *e, struct qp *qp, const struct packet *p)
{
	struct responder *resp = &qp->resp;
	struct srq *srq;

	resp->pd = qp->pd;
	if (qp->transport != XROCE_XRC)
		return ACCEPT;
	srq = qp->xrc_target ? engine_find_srq(e, p->xrc_srqn) : NULL;
	if (!srq || srq->xrcd != qp->xrcd || (resp->seq.have_recv && resp->recv_srq != srq))
		return INVALID_REQUEST;
	resp->recv_srq = srq;
	resp->pd = srq->pd;
	return ACCEPT;
}

/* The opcode must continue the current message, or begin one. */
static enum verdict check_sequence(const struct qp *qp, const struct packet *p)
{
	const struct resp_sequence *seq = &qp->resp.seq;

	if (!(p->flags & OP_REQUEST))
		return INVALID_REQUEST;
	if (!seq->in_message)
		return p->flags & OP_START ? ACCEPT : INVALID_REQUEST;
	if (p->flags & OP_START || !(p->flags & (OP_SEND | OP_WRITE)))
		return INVALID_REQUEST;
	return p->flags & seq->message_kind ? ACCEPT : INVALID_REQUEST;
}

/*
 * FIRST and MIDDLE carry exactly the path MTU, LAST 1 to PMTU, ONLY 0 to PMTU; other requests none.
 */
static enum verdict check_length(const struct qp *qp, const struct packet *p)
{
	const struct resp_sequence *seq = &qp->resp.seq;
	u32 remaining = p->flags & OP_START ? p->dma_len : seq->remaining;
	u32 len = p->payload_len;

	if (!(p->flags & OP_PAYLOAD))
		return len == 0 ? ACCEPT : INVALID_REQUEST;
	if (p->flags & OP_ATOMIC_WRITE)
		return len == sizeof(u64) && p->dma_len == sizeof(u64) ? ACCEPT : INVALID_REQUEST;
	if (!(p->flags & OP_END) ? len != qp->path_mtu : len > qp->path_mtu)
		return INVALID_REQUEST;
	if (p->flags & OP_END && !(p->flags & OP_START) && len == 0)
		return INVALID_REQUEST;
	/* a WRITE's packets add up to what its RETH announced; a SEND is bounded by 2^31 */
	if (p->flags & OP_WRITE)
		return (p->flags & OP_END ? len == remaining : len < remaining) &&
				       remaining <= ROCE_MESSAGE_MAX ?
			       ACCEPT :
			       INVALID_REQUEST;
	return !(p->flags & OP_START) && (u64)seq->offset + len > ROCE_MESSAGE_MAX ?
		       INVALID_REQUEST :
		       ACCEPT;
}

/*
 * Whether ibv_modify_qp(3) enabled this access. Checked before the key, also for zero-length
 * requests: the QP does not support the function (IBTA 9.7.4.1, the responder's errors).
 */
static bool is_granted(const struct qp *qp, u32 access)
{
	return (qp->access & access) == access;
}

/* Checks the QP's access flags, then R_Key, PD, bounds and rights. Zero bytes need no key. */
static enum verdict check_access(const struct engine *e, const struct qp *qp, u32 rkey, u64 va,
				 u64 len, u32 access)
{
	if (!is_granted(qp, qp_granted(access)))
		return NOT_ENABLED;
	return len == 0 || mr_allows(e->mrs, qp->resp.pd, qp->qpn, rkey, va, len, access) ?
		       ACCEPT :
		       REMOTE_ACCESS;
}

/*
 * A WRITE's access. Without immediate data, execute_write() does the first packet's key lookup, as
 * nothing comes between check and execution. With immediate data a receive is taken in between: a
 * message whose region was removed since it began must not consume an SRQ's receive.
 */
static enum verdict check_write(const struct engine *e, const struct qp *qp, const struct packet *p)
{
	const struct resp_sequence *seq = &qp->resp.seq;

	if (!(p->flags & OP_START))
		return mr_allows(e->mrs, qp->resp.pd, qp->qpn, seq->rkey, seq->va, p->payload_len,
				 MR_REMOTE_WRITE) ?
			       ACCEPT :
			       REMOTE_ACCESS;
	if (p->flags & OP_IMM)
		return check_access(e, qp, p->rkey, p->va, p->dma_len, MR_REMOTE_WRITE);
	return is_granted(qp, MR_REMOTE_WRITE) ? ACCEPT : NOT_ENABLED;
}

/* Opens a word that is aligned on the wire and in this process. After ACCEPT, close it. */
static enum verdict open_word(const struct engine *e, const struct qp *qp, const struct packet *p,
			      u32 access, struct mr_bytes *word)
{
	/* checks of the packet alone come first, as on adapters */
	if (p->va % sizeof(u64))
		return INVALID_REQUEST;
	if (!is_granted(qp, access))
		return NOT_ENABLED;
	*word = mr_open(e->mrs, qp->resp.pd, qp->qpn, p->rkey, p->va, sizeof(u64), access);
	if (!word->at)
		return REMOTE_ACCESS;
	if ((uintptr_t)word->at % sizeof(u64) == 0)
		return ACCEPT;
	mr_close(*word);
	return INVALID_REQUEST;
}

static __attribute__((noinline)) enum verdict
check_word(const struct engine *e, const struct qp *qp, const struct packet *p, u32 access)
{
	struct mr_bytes word;
	enum verdict v = open_word(e, qp, p, access, &word);

	if (v == ACCEPT)
		mr_close(word);
	return v;
}

/*
 * FETH: at least one placement type, all of them enabled; selectivity 0 is the range, 1 the whole
 * region.
 */
static enum verdict check_flush(const struct engine *e, const struct qp *qp, const struct packet *p)
{
	u32 type = p->flush & 0xf, selectivity = p->flush >> 4 & 3;
	u32 access = (type & 1 ? MR_FLUSH_GLOBAL : 0) | (type & 2 ? MR_FLUSH_PERSISTENT : 0);

	if (!access || type & ~3u || selectivity > 1)
		return INVALID_REQUEST;
	if (!is_granted(qp, type << QP_FLUSH_SHIFT))
		return NOT_ENABLED;
	if (selectivity == 0 && p->dma_len)
		return check_access(e, qp, p->rkey, p->va, p->dma_len, access);
	return mr_allows_all(e->mrs, qp->resp.pd, qp->qpn, p->rkey, access) ? ACCEPT :
									      REMOTE_ACCESS;
}

static enum verdict check_remote(struct engine *e, struct qp *qp, const struct packet *p)
{
	if (p->flags & OP_WRITE && p->flags & (OP_START | OP_IMM))
		return check_write(e, qp, p);
	if (p->flags & OP_READ) {
		if (p->dma_len > ROCE_MESSAGE_MAX)
			return INVALID_REQUEST;
		return check_access(e, qp, p->rkey, p->va, p->dma_len, MR_REMOTE_READ);
	}
	if (p->flags & OP_ATOMIC)
		return check_word(e, qp, p, MR_REMOTE_ATOMIC);
	if (p->flags & OP_ATOMIC_WRITE)
		return check_word(e, qp, p, MR_REMOTE_WRITE);
	if (p->flags & OP_FLUSH)
		return check_flush(e, qp, p);
	/* a peer can only invalidate a type 2 window of this QP */
	return !(p->flags & OP_IETH) ||
			       mw_can_invalidate(e->mrs, qp->resp.pd, p->inv_rkey, qp->qpn) ?
		       ACCEPT :
		       REMOTE_ACCESS;
}

/*
 * At most max_dest_rd_atomic READs and atomics: the request that far back must not still be in its
 * first answer. A replay for a duplicate does not count: a peer that sends a new request has that
 * answer.
 */
static enum verdict check_resources(const struct qp *qp, const struct packet *p)
{
	const struct responder *resp = &qp->resp;
	const struct resp_resource *next;

	if (!(p->flags & OP_ANSWERED))
		return ACCEPT;
	next = resource_stored(resp, resp->max_resources);
	if (!resp->max_resources || (resource_pending(resp, next) && !next->replay))
		return INVALID_REQUEST;
	return ACCEPT;
}

/* A SEND begins, or a WRITE ends with immediate data: consumes a receive WQE. */
static enum verdict check_receive(struct engine *e, struct qp *qp, const struct packet *p)
{
	struct responder *resp = &qp->resp;
	bool write_imm = p->flags & OP_WRITE && p->flags & OP_IMM;
	u64 offset = p->flags & OP_START ? 0 : resp->seq.offset;

	if (!(p->flags & OP_SEND) && !write_imm)
		return ACCEPT;
	if (!(unlikely(qp->tag_matching) && p->flags & OP_SEND && p->flags & OP_START ?
		      tag_receive(e, qp, p) :
		      engine_take_receive(e, qp)))
		return RNR;
	if (p->flags & OP_SEND && offset + p->payload_len > resp->recv.length + resp->recv_skip)
		return RECV_TOO_SHORT;
	return ACCEPT;
}

bool responder_scatter(struct engine *e, struct qp *qp, const struct packet *p, u32 skip,
		       u64 offset)
{
	const struct recv_work *recv = &qp->resp.recv;
	struct guard_bytes payload = packet_payload(p);

	if (likely(skip <= payload.len)) {
		payload.at += skip;
		payload.len -= skip;
	} else {
		payload.more += skip - payload.len;
		payload.len = 0;
	}
	return sge_scatter(e->mrs, recv->pd, recv->sge, recv->num_sge, offset, &payload,
			   p->payload_len - skip);
}

/* Counts a receive that ends: of a message that matched a tag, its last completion. */
static rare void count_received(struct qp *qp, const struct cqe *cqe)
{
	if ((cqe->flags & (CQE_TM_MATCH | CQE_TM_DATA_VALID)) != CQE_TM_MATCH)
		comp_cntr_add(qp->counter[COUNTED_RECV], cqe->status, cqe->byte_len);
}

/* Fills in and pushes a receive completion. cqe has the fields that differ between receives. */
static per_packet void responder_push(struct engine *e, struct qp *qp, const struct packet *p,
				      const struct xroce_rx_cqe *hint, struct cqe *cqe, u64 now_ns)
{
	struct cq *cq = qp->resp.recv_srq ? qp->resp.recv_srq->cq : qp->recv_cq;

	cqe->wr_id = qp->resp.recv.wr_id;
	cqe->qpn = qp->qpn;
	cqe->time_ns = hint && hint->rx_time_ns ? hint->rx_time_ns : now_ns;
	cqe->flow_tag = hint ? hint->flow_tag : 0;
	cqe->tos = p->tos;
	cqe->has_vlan = p->has_vlan;
	cqe->vlan_tci = p->vlan_tci;
	if (unlikely(qp->is_counted))
		count_received(qp, cqe);
	engine_complete(e, cq, cqe, p->solicited);
	if (unlikely(cq_has_overrun(cq)) && qp->xrc_target) {
		qp->resp.overran = true;
		/* relaxed: e itself checks it in engine_next_event() */
		atomic_store_explicit(&e->overrun, true, memory_order_relaxed);
	}
	qp->resp.seq.have_recv = false;
	qp->resp.recv_srq = NULL;
}

void responder_complete(struct engine *e, struct qp *qp, const struct packet *p,
			const struct xroce_rx_cqe *hint, struct cqe *cqe, u64 now_ns)
{
	responder_push(e, qp, p, hint, cqe, now_ns);
}

/* The completion of a message of byte_len that consumes a receive WQE. */
static per_packet struct cqe responder_cqe(const struct qp *qp, const struct packet *p,
					   u32 byte_len)
{
	return (struct cqe){
		.opcode = p->flags & OP_WRITE ? CQE_RECV_WITH_IMM : CQE_RECV,
		.byte_len = byte_len,
		.src_qpn = qp->dest_qpn,
		.imm = p->flags & OP_IMM ? p->imm : p->flags & OP_IETH ? p->inv_rkey : 0,
		.flags = p->flags & OP_IMM ? CQE_WITH_IMM : p->flags & OP_IETH ? CQE_WITH_INV : 0,
		.sl = p->has_vlan ? p->vlan_tci >> 13 : p->tos >> 5,
	};
}

static rare void responder_complete_tagged(struct engine *e, struct qp *qp, const struct packet *p,
					   const struct xroce_rx_cqe *hint, u32 byte_len,
					   u64 now_ns)
{
	struct cqe cqe = responder_cqe(qp, p, byte_len);

	tag_complete(e, qp, p, hint, &cqe, now_ns);
}

/* Completes the receive of a message that has ended, or matched a tag. */
static void responder_complete_receive(struct engine *e, struct qp *qp, const struct packet *p,
				       const struct xroce_rx_cqe *hint, u32 byte_len, u64 now_ns)
{
	struct cqe cqe;

	if (unlikely(qp->resp.tag_kind)) {
		responder_complete_tagged(e, qp, p, hint, byte_len, now_ns);
		return;
	}
	cqe = responder_cqe(qp, p, byte_len);
	responder_push(e, qp, p, hint, &cqe, now_ns);
}

static enum verdict execute_send(struct engine *e, struct qp *qp, const struct packet *p,
				 const struct xroce_rx_cqe *hint, u64 now_ns)
{
	struct responder *resp = &qp->resp;
	struct resp_sequence *seq = &resp->seq;
	u32 offset = p->flags & OP_START ? 0 : seq->offset;
	u32 skip = p->flags & OP_START ? resp->recv_skip : 0;

	if (!(unlikely(resp->tag_kind == TAG_LEFT) ?
		      tag_scatter_headers(e, qp, p) :
		      responder_scatter(e, qp, p, skip, offset + skip - resp->recv_skip)))
		return RECV_BAD_LKEY;
	seq->offset = offset + p->payload_len;
	if (p->flags & OP_IETH)
		mw_invalidate(e->mrs, resp->pd, p->inv_rkey, qp->qpn);
	if (p->flags & OP_END || (unlikely(resp->tag_kind == TAG_MATCHED) && p->flags & OP_START))
		responder_complete_receive(e, qp, p, hint, seq->offset - resp->recv_skip, now_ns);
	return ACCEPT;
}

static enum verdict execute_write(struct engine *e, struct qp *qp, const struct packet *p,
				  const struct xroce_rx_cqe *hint, u64 now_ns)
{
	struct resp_sequence *seq = &qp->resp.seq;
	u64 va = p->flags & OP_START ? p->va : seq->va;
	u32 rkey = p->flags & OP_START ? p->rkey : seq->rkey;
	u32 remaining = p->flags & OP_START ? p->dma_len : seq->remaining;
	/* the first packet opens all bytes of the message, or is refused; 0 for an empty message */
	u32 len = p->flags & OP_START ? p->dma_len : p->payload_len;
	struct mr_bytes dst;
	bool there;

	if (len) {
		/* in each packet: the region may have been removed since the first */
		dst = mr_open(e->mrs, qp->resp.pd, qp->qpn, rkey, va, len, MR_REMOTE_WRITE);
		if (unlikely(!dst.at && !mr_is_nothing(dst)))
			return REMOTE_ACCESS;
		if (likely(dst.at)) {
			there = packet_place_payload(p, dst.at);
			mr_close(dst);
			if (unlikely(!there))
				return REMOTE_ACCESS;
		}
	}
	if (p->flags & OP_START)
		engine_count(e, qp, rx_writes);
	seq->offset = (p->flags & OP_START ? 0 : seq->offset) + p->payload_len;
	seq->va = va + p->payload_len;
	seq->rkey = rkey;
	seq->remaining = remaining - p->payload_len;
	if (p->flags & OP_END && p->flags & OP_IMM)
		responder_complete_receive(e, qp, p, hint, seq->offset, now_ns);
	return ACCEPT;
}

static struct resp_resource *responder_take_resource(struct qp *qp, const struct packet *p)
{
	struct responder *resp = &qp->resp;
	struct resp_resource *r = &resp->resource[resp->resource_head];

	resp->resource_head = (resp->resource_head + 1) & resp->resource_mask;
	if (resource_pending(resp, r))
		reply_withdraw(resp, r);
	*r = (struct resp_resource){
		.used = true,
		.pd = resp->pd,
		.first_psn = p->psn,
		.num_psn = 1,
		.msn = psn_add(resp->seq.msn, 1),
		.va = p->va,
		.rkey = p->rkey,
		.length = p->dma_len,
		.end = p->dma_len,
	};
	return r;
}

static void execute_read(struct engine *e, struct qp *qp, const struct packet *p)
{
	struct resp_resource *r = responder_take_resource(qp, p);

	engine_count(e, qp, rx_reads);
	r->num_psn = psn_count(p->dma_len, qp->path_mtu);
	reply_resource(e, qp, r, 0, r->num_psn);
}

/*
 * Atomic against every other access by this process: the application's threads and other engines
 * may use the same word.
 */
static __attribute__((noinline)) enum verdict
execute_atomic(struct engine *e, struct qp *qp, const struct packet *p)
{
	struct resp_resource *r;
	struct mr_bytes bytes;
	u64 *word, original;
	bool there;
	/* already checked, but another engine may have bound a window elsewhere since */
	enum verdict v = open_word(e, qp, p, MR_REMOTE_ATOMIC, &bytes);

	if (v != ACCEPT)
		return v;
	word = (u64 *)bytes.at;
	if ((p->opcode & 0x1f) == OP5_FETCH_ADD)
		there = guard_fetch_add(word, p->swap_add, &original);
	else
		there = guard_compare_swap(word, p->compare, p->swap_add, &original);
	mr_close(bytes);
	if (unlikely(!there))
		return REMOTE_ACCESS;
	r = responder_take_resource(qp, p);
	r->atomic = true;
	r->original = original;
	engine_count(e, qp, rx_atomics);
	reply_resource(e, qp, r, 0, 1);
	return ACCEPT;
}

/*
 * FLUSH and ATOMIC WRITE: process memory is globally visible once written, so only ordering is left
 * to do.
 */
static __attribute__((noinline)) enum verdict
execute_placement(struct engine *e, struct qp *qp, const struct packet *p)
{
	struct resp_resource *r;
	struct mr_bytes word;
	bool there;
	u64 value;

	if (p->flags & OP_ATOMIC_WRITE) {
		enum verdict v = open_word(e, qp, p, MR_REMOTE_WRITE, &word); /* as with atomics */

		if (v != ACCEPT)
			return v;
		packet_copy_payload(p, 0, &value, sizeof(value));
		there = guard_store((u64 *)word.at, value);
		mr_close(word);
		if (unlikely(!there))
			return REMOTE_ACCESS;
	}
	/* earlier writes are visible before the answer; pairs with the application's fences */
	atomic_thread_fence(memory_order_seq_cst);
	r = responder_take_resource(qp, p);
	r->placed = true;
	r->length = r->end = 0;
	reply_resource(e, qp, r, 0, 1);
	return ACCEPT;
}

/* Sends one NAK for the first missing packet. */
static void responder_request_again(struct engine *e, struct qp *qp)
{
	struct resp_sequence *seq = &qp->resp.seq;

	seq->nak_sent = true;
	engine_count(e, qp, tx_sequence_naks);
	reply_ack(e, qp, AETH_NAK | NAK_PSN_SEQUENCE, seq->expected_psn);
}

static void responder_acknowledge(struct engine *e, struct qp *qp, const struct packet *p)
{
	struct responder *resp = &qp->resp;
	bool wanted = p->ackreq;

	/* an unsent NAK requests the packet that has just arrived: send an ACK instead */
	if (resp->seq.nak_sent && resp->ack_due &&
	    (resp->ack_syndrome & AETH_CLASS_MASK) != AETH_ACK) {
		resp->ack_due = false;
		wanted = true;
		if (resp->early.head && resp->early.head->packet.psn == resp->seq.expected_psn) {
			responder_request_again(e, qp);
			return;
		}
	}
	resp->seq.nak_sent = false;
	if (wanted && !(p->flags & OP_ANSWERED))
		reply_ack(e, qp, AETH_ACK | AETH_CREDIT_NONE, p->psn);
}

/* Counts the peer's READ or WRITE that was executed. */
static rare void count_executed(struct qp *qp, const struct packet *p)
{
	if (p->flags & OP_READ)
		comp_cntr_add(qp->counter[COUNTED_REMOTE_READ], CQE_SUCCESS, p->dma_len);
	else if (p->flags & OP_WRITE && p->flags & OP_END)
		comp_cntr_add(qp->counter[COUNTED_REMOTE_WRITE], CQE_SUCCESS, qp->resp.seq.offset);
}

static enum verdict responder_execute(struct engine *e, struct qp *qp, const struct packet *p,
				      const struct xroce_rx_cqe *hint, u64 now_ns)
{
	struct resp_sequence *seq = &qp->resp.seq;
	enum verdict v = ACCEPT;
	u32 psns = 1;

	if (p->flags & OP_SEND)
		v = execute_send(e, qp, p, hint, now_ns);
	else if (p->flags & OP_WRITE)
		v = execute_write(e, qp, p, hint, now_ns);
	else if (p->flags & OP_READ)
		psns = psn_count(p->dma_len, qp->path_mtu), execute_read(e, qp, p);
	else if (p->flags & OP_ATOMIC)
		v = execute_atomic(e, qp, p);
	else
		v = execute_placement(e, qp, p);
	if (v != ACCEPT)
		return v;
	seq->in_message = !(p->flags & OP_END);
	seq->message_kind = (u8)(p->flags & (OP_SEND | OP_WRITE));
	seq->expected_psn = psn_add(p->psn, psns);
	seq->migreq |= p->migreq;
	if (p->flags & OP_END)
		seq->msn = psn_add(seq->msn, 1);
	if (unlikely(qp->is_counted))
		count_executed(qp, p);
	if (is_reliable(qp))
		responder_acknowledge(e, qp, p);
	return ACCEPT;
}

/* Completes the held receive WQE in error, before the QP moves to ERR. */
static rare void responder_fail_receive(struct engine *e, struct qp *qp, const struct packet *p,
					enum cqe_status status, enum vendor_err verr, u64 now_ns)
{
	struct cqe cqe = { .status = status, .vendor_err = verr };

	stat_error(e, qp, status, (enum xroce_reason)verr);
	cqe.opcode = tag_abandon(qp);
	if (!qp->resp.seq.have_recv)
		return;
	stat_receive_error(e, status);
	responder_complete(e, qp, p, NULL, &cqe, now_ns);
}

/* The same if the receive's memory is the cause. */
static void responder_fail_memory(struct engine *e, struct qp *qp, const struct packet *p,
				  u64 now_ns)
{
	const struct recv_work *recv = &qp->resp.recv;

	responder_fail_receive(e, qp, p, CQE_LOC_PROT_ERR,
			       list_error(e, recv->pd, recv->sge, recv->num_sge, MR_LOCAL_WRITE),
			       now_ns);
}

/* RC: ends the connection for a bad request. The NAK is sent although the QP is in error. */
static enum xroce_drop responder_fail(struct engine *e, struct qp *qp, const struct packet *p,
				      u8 code, u32 event)
{
	engine_count(e, qp, remote_errors);
	reply_ack(e, qp, AETH_NAK | code, p->psn);
	engine_qp_error(e, qp, event);
	return XROCE_DROP_none;
}

/* Returns the status that a peer's refused request gives the receive that it consumes. */
static enum cqe_status status_of_nak(u8 code)
{
	return code == NAK_REMOTE_ACCESS   ? CQE_LOC_ACCESS_ERR :
	       code == NAK_INVALID_REQUEST ? CQE_REM_INV_REQ_ERR :
					     CQE_LOC_QP_OP_ERR;
}

/* Refuses a request as e->fault says. */
static rare enum xroce_drop responder_make_fault(struct engine *e, struct qp *qp,
						 const struct packet *p, u64 now_ns)
{
	const struct fault_request *f = &e->fault;
	u8 code = NAK_REMOTE_OPERATION, timer;

	if (f->answer == FAULT_RNR) {
		timer = f->value == FAULT_OWN_TIMER ? qp->resp.min_rnr_timer : f->value;
		qp->resp.seq.nak_sent = true;
		engine_count(e, qp, tx_rnr_naks);
		reply_ack(e, qp, AETH_RNR_NAK | timer, p->psn);
		return XROCE_DROP_none;
	}
	if (f->answer == FAULT_NAK)
		code = f->value;
	responder_fail_receive(e, qp, p,
			       f->answer == FAULT_NAK ? status_of_nak(code) :
							(enum cqe_status)f->status,
			       VERR_FAULT_RULE, now_ns);
	return responder_fail(e, qp, p, code,
			      code == NAK_REMOTE_ACCESS	  ? EVENT_QP_ACCESS_ERR :
			      code == NAK_INVALID_REQUEST ? EVENT_QP_REQ_ERR :
							    0);
}

static rare enum xroce_drop responder_refuse(struct engine *e, struct qp *qp,
					     const struct packet *p, enum verdict v, u64 now_ns)
{
	struct resp_sequence *seq = &qp->resp.seq;

	switch (v) {
	case NAK_SEQUENCE:
		if (!seq->nak_sent)
			responder_request_again(e, qp);
		return XROCE_DROP_psn_ahead;
	case DUPLICATE:
		return duplicate_answer(e, qp, p);
	case RNR:
		seq->nak_sent = true;
		engine_count(e, qp, tx_rnr_naks);
		reply_ack(e, qp, AETH_RNR_NAK | qp->resp.min_rnr_timer, p->psn);
		return XROCE_DROP_none;
	case INVALID_REQUEST:
	case NOT_ENABLED:
		responder_fail_receive(e, qp, p, CQE_REM_INV_REQ_ERR, VERR_NAK_INVALID_REQUEST,
				       now_ns);
		return responder_fail(e, qp, p, NAK_INVALID_REQUEST, EVENT_QP_REQ_ERR);
	case REMOTE_ACCESS:
		/*
		 * ibv_poll_cq(3), LOC_ACCESS_ERR: the receive that the immediate data would have
		 * taken
		 */
		if (p->flags & OP_WRITE && p->flags & OP_IMM)
			engine_take_receive(e, qp);
		responder_fail_receive(e, qp, p, CQE_LOC_ACCESS_ERR, VERR_REMOTE_ACCESS_HERE,
				       now_ns);
		return responder_fail(e, qp, p, NAK_REMOTE_ACCESS, EVENT_QP_ACCESS_ERR);
	case RECV_TOO_SHORT:
		responder_fail_receive(e, qp, p, CQE_LOC_LEN_ERR, VERR_RECV_TOO_SHORT, now_ns);
		return responder_fail(e, qp, p, NAK_INVALID_REQUEST, 0);
	case RECV_BAD_LKEY:
		responder_fail_memory(e, qp, p, now_ns);
		return responder_fail(e, qp, p, NAK_REMOTE_OPERATION, 0);
	case FAULT:
		return responder_make_fault(e, qp, p, now_ns);
	default:
		return XROCE_DROP_sequence;
	}
}

/*
 * UC: drops the packet and the rest of its message without a NAK. A held receive WQE is kept for
 * the next message. If the WQE itself is unusable, it completes in error and the QP moves to ERR.
 */
static enum xroce_drop responder_abandon_message(struct engine *e, struct qp *qp,
						 const struct packet *p, enum verdict v, u64 now_ns)
{
	static const enum xroce_drop reasons[] = {
		[DROP] = XROCE_DROP_sequence,	      [RNR] = XROCE_DROP_no_receive,
		[INVALID_REQUEST] = XROCE_DROP_length, [NOT_ENABLED] = XROCE_DROP_access,
		[REMOTE_ACCESS] = XROCE_DROP_access,
		[RECV_TOO_SHORT] = XROCE_DROP_receive_short, [RECV_BAD_LKEY] = XROCE_DROP_access,
	};
	struct resp_sequence *seq = &qp->resp.seq;

	seq->in_message = false;
	seq->dropping = true;
	seq->expected_psn = psn_add(p->psn, 1);
	if (v == RECV_BAD_LKEY) {
		responder_fail_memory(e, qp, p, now_ns);
		engine_qp_error(e, qp, 0);
	}
	return reasons[v];
}

/* Asks for a fault, of a request that would be executed. */
static rare enum verdict responder_ask_faults(struct engine *e, struct qp *qp,
					      const struct packet *p, u64 now_ns)
{
	const struct engine_faults *faults = e->config.faults;

	if (!is_reliable(qp))
		return ACCEPT;
	faults->request(faults->arg, qp, p, p->flags & OP_END && qp->resp.seq.have_recv, &e->fault);
	if (e->fault.is_marked)
		rate_marked(e, qp, now_ns);
	if (e->fault.sends_cnp) {
		qp->cnp_due = true;
		engine_ready(e, qp, READY_REPLIES);
	}
	return e->fault.answer == FAULT_EXECUTE ? ACCEPT : FAULT;
}

static enum verdict responder_process(struct engine *e, struct qp *qp, const struct packet *p,
				      const struct xroce_rx_cqe *hint, u64 now_ns)
{
	enum verdict v = check_psn(qp, p);

	if (v == ACCEPT)
		v = check_target(e, qp, p);
	if (v == ACCEPT)
		v = check_sequence(qp, p);
	if (v == ACCEPT)
		v = check_length(qp, p);
	if (v == ACCEPT)
		v = check_remote(e, qp, p);
	if (v == ACCEPT)
		v = check_resources(qp, p);
	if (v == ACCEPT)
		v = check_receive(e, qp, p);
	if (v == ACCEPT && unlikely(e->config.faults))
		v = responder_ask_faults(e, qp, p, now_ns);
	if (v == ACCEPT)
		v = responder_execute(e, qp, p, hint, now_ns);
	return v;
}

/*
 * Returns whether a requester of this library resent this packet after later ones. It then clears
 * MigReq, which it otherwise sets (requester_rebuild()); a peer that never sets MigReq indicates
 * nothing. If the connection's first packet was lost, the next one shows whether the peer sets it.
 */
static bool responder_is_repair(const struct qp *qp, const struct packet *p)
{
	const struct held *early = qp->resp.early.head;

	if (p->migreq)
		return false;
	return qp->resp.seq.migreq || (p->psn == qp->attr.rq_psn && early && early->packet.migreq);
}

/*
 * Executes held packets after a packet arrived in turn. A repair proves the held packets: the
 * requester had sent them, and they arrived or were lost before the repair. A gap after them is
 * NAKed at once. Without proof none is executed, since the genuine packet may be on its way.
 */
static void responder_process_early(struct engine *e, struct qp *qp, bool proven, u64 now_ns)
{
	struct resp_sequence *seq = &qp->resp.seq;
	struct reorder *early = &qp->resp.early;
	enum verdict v = ACCEPT;
	struct held *h;

	if (!proven) {
		reorder_overtaken(e, early, seq->expected_psn);
		return;
	}
	while (v == ACCEPT && (h = reorder_take(e, early, seq->expected_psn))) {
		v = responder_process(e, qp, &h->packet, h->has_hint ? &h->hint : NULL, now_ns);
		if (v != ACCEPT)
			responder_refuse(e, qp, &h->packet, v, now_ns);
		reorder_free(e, h);
	}
	early->gap_psn = seq->expected_psn;
	if (v == ACCEPT && early->head && !seq->nak_sent)
		responder_request_again(e, qp);
}

/* The same when a repair duplicates the previous packet, which had only been late. */
static void responder_process_late_repair(struct engine *e, struct qp *qp, const struct packet *p,
					  u64 now_ns)
{
	u32 psns = p->flags & OP_READ ? psn_count(p->dma_len, qp->path_mtu) : 1;

	if (psn_add(p->psn, psns) == qp->resp.seq.expected_psn && responder_is_repair(qp, p))
		responder_process_early(e, qp, true, now_ns);
}

enum xroce_drop responder_input(struct engine *e, struct qp *qp, const struct packet *p,
				const struct xroce_rx_cqe *hint, u64 now_ns)
{
	enum verdict v;

	if (!qp->resp.established) {
		qp->resp.established = true;
		engine_qp_event(e, qp, EVENT_COMM_EST);
	}
	v = responder_process(e, qp, p, hint, now_ns);
	if (likely(v == ACCEPT)) {
		if (reorder_holds(e, &qp->resp.early))
			responder_process_early(e, qp, responder_is_repair(qp, p), now_ns);
		return XROCE_DROP_none;
	}
	if (qp->transport == XROCE_UC)
		return responder_abandon_message(e, qp, p, v, now_ns);
	if (v == DUPLICATE && reorder_holds(e, &qp->resp.early))
		responder_process_late_repair(e, qp, p, now_ns);
	if (v == NAK_SEQUENCE &&
	    reorder_hold(e, &qp->resp.early, qp->resp.seq.expected_psn, p, hint)) {
		qp->stat->rx_held++;
		responder_refuse(e, qp, p, v, now_ns);
		return XROCE_DROP_none;
	}
	return responder_refuse(e, qp, p, v, now_ns);
}
