/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tag matching: the list, matching a SEND to a tag-matching SRQ, its completions, and rendezvous.
 * Semantics: ibv_post_srq_ops(3) and rdma-core's Documentation/tag_matching.md.
 *
 * The application matches the messages that the engine did not (unexpected messages), so both must
 * agree on the order of messages and buffers. The engine counts the unexpected messages, and the
 * application reports how many it has handled; they are in step when the numbers are equal. A
 * buffer added out of step could belong to a message on its way to the application: it is not
 * matched until both are in step again.
 */
#include <stdlib.h>

#include "internal.h"
#include "responder.h"
#include "tag.h"
#include "types.h"

#define NO_TAG UINT16_MAX
_Static_assert(TAG_MAX_TAGS <= NO_TAG, "entries are named by 16 bits");
_Static_assert(!(TAG_MAX_TAGS & (TAG_MAX_TAGS - 1)), "a handle is a generation and a slot");

/*
 * Largest difference of the two counts before the engine requests the application's: only 16 bits
 * are compared.
 */
#define SYNC_LAG_MAX 0x2000

struct tag {
	u64 tag, mask;
	u64 wr_id;
	u32 handle;	    /* for this use of the slot */
	u16 next, prev;	    /* in list order; next also links free ones */
	bool listed;
	bool in_step;	    /* may be matched */
	u32 num_sge;
	struct sge sge[TAG_MAX_SGE];
};

struct tag_list {
	u32 max_tags, max_ops;
	u16 head, tail, free;
	/* unexpected messages, as many as completions report, modulo 2^16 */
	u16 unexpected;
	u16 handled;	    /* as last reported by the application */
	/* signaled operations not known to be polled: a ring of their indices in the CQ */
	u32 op_first, op_count;
	u32 *op_cqe;
	struct tag slot[];
};

int tag_list_create(u32 max_tags, u32 max_ops, struct tag_list **out)
{
	struct tag_list *list;

	if (!max_tags || max_tags > TAG_MAX_TAGS || !max_ops || max_ops > TAG_MAX_OPS)
		return -EINVAL;
	list = calloc(1, sizeof(*list) + max_tags * sizeof(list->slot[0]));
	if (!list)
		return -ENOMEM;
	list->op_cqe = calloc(max_ops, sizeof(*list->op_cqe));
	if (!list->op_cqe) {
		free(list);
		return -ENOMEM;
	}
	list->max_tags = max_tags;
	list->max_ops = max_ops;
	list->head = list->tail = NO_TAG;
	for (u32 i = 0; i < max_tags; i++) {
		list->slot[i].handle = i;
		list->slot[i].next = i + 1 < max_tags ? (u16)(i + 1) : NO_TAG;
	}
	*out = list;
	return 0;
}

void tag_list_free(struct tag_list *list)
{
	if (list)
		free(list->op_cqe);
	free(list);
}

static bool tag_in_step(const struct tag_list *list)
{
	return list->unexpected == list->handled;
}

/*
 * Marks all entries as in step if the changed counts agree: they were added with knowledge of all
 * unexpected messages.
 */
static void tag_look_at_counts(struct tag_list *list)
{
	if (!tag_in_step(list))
		return;
	for (u32 i = list->tail; i != NO_TAG && !list->slot[i].in_step; i = list->slot[i].prev)
		list->slot[i].in_step = true;
}

static void tag_append(struct tag_list *list, const struct tag_op *op)
{
	u16 i = list->free;
	struct tag *t = &list->slot[i];

	list->free = t->next;
	t->tag = op->tag;
	t->mask = op->mask;
	t->wr_id = op->recv_wr_id;
	t->num_sge = op->num_sge;
	if (op->num_sge)
		memcpy(t->sge, op->sge, op->num_sge * sizeof(t->sge[0]));
	t->listed = true;
	t->in_step = tag_in_step(list);
	t->next = NO_TAG;
	t->prev = list->tail;
	if (list->tail == NO_TAG)
		list->head = i;
	else
		list->slot[list->tail].next = i;
	list->tail = i;
}

static void tag_take_out(struct tag_list *list, struct tag *t)
{
	u16 i = (u16)(t - list->slot);

	if (t->prev == NO_TAG)
		list->head = t->next;
	else
		list->slot[t->prev].next = t->next;
	if (t->next == NO_TAG)
		list->tail = t->prev;
	else
		list->slot[t->next].prev = t->prev;
	t->listed = false;
	t->handle += TAG_MAX_TAGS; /* the old handle is invalid from here on */
	t->next = list->free;
	list->free = i;
}

/* ---- operations ---- */

static int tag_check_op(const struct tag_list *list, const struct tag_op *op)
{
	if (op->flags & ~(u32)(TAG_OP_SIGNALED | TAG_OP_SYNC))
		return -EINVAL;
	switch (op->opcode) {
	case TAG_ADD:
		return op->num_sge > TAG_MAX_SGE ? -EINVAL : list->free == NO_TAG ? -ENOMEM : 0;
	case TAG_DEL:
		return op->handle % TAG_MAX_TAGS >= list->max_tags ? -EINVAL : 0;
	case TAG_SYNC:
		return 0;
	default:
		return -EINVAL;
	}
}

/* max_ops: a signaled operation is outstanding until its completion is polled. */
static bool tag_op_has_room(struct tag_list *list, const struct cq *cq)
{
	while (list->op_count && cq_is_past(cq, list->op_cqe[list->op_first])) {
		list->op_first = (list->op_first + 1) % list->max_ops;
		list->op_count--;
	}
	return list->op_count < list->max_ops;
}

static void tag_complete_op(struct engine *e, struct srq *srq, const struct tag_op *op, bool done,
			    u64 now_ns)
{
	static const enum cqe_opcode opcodes[] = {
		[TAG_ADD] = CQE_TM_ADD, [TAG_DEL] = CQE_TM_DEL, [TAG_SYNC] = CQE_TM_SYNC
	};
	struct tag_list *list = srq->tags;
	const struct cqe cqe = {
		.wr_id = op->wr_id,
		.status = done ? CQE_SUCCESS : CQE_TM_ERR,
		.opcode = (u16)opcodes[op->opcode],
		.vendor_err = done ? VERR_NONE : VERR_TAG_CONSUMED,
		.flags = tag_in_step(list) ? 0 : CQE_TM_SYNC_REQ,
		.time_ns = now_ns,
	};

	list->op_cqe[(list->op_first + list->op_count++) % list->max_ops] = cq_next_index(srq->cq);
	engine_complete(e, srq->cq, &cqe, false);
	/* now, while all engines are held: otherwise e may not fill this CQ */
	engine_take_arms(e);
	moderation_settle(e->tables, srq->cq);
	engine_check_srq(e, srq);
}

int tag_post(struct engine *e, struct srq *srq, struct tag_op *op, u64 now_ns)
{
	struct tag_list *list = srq->tags;
	bool done = true;
	int err = tag_check_op(list, op);

	if (err)
		return err;
	if (op->flags & TAG_OP_SIGNALED && !tag_op_has_room(list, srq->cq))
		return -ENOMEM;
	if (op->opcode == TAG_DEL) {
		struct tag *t = &list->slot[op->handle % TAG_MAX_TAGS];

		done = t->listed && t->handle == op->handle;
		if (done)
			tag_take_out(list, t);
	}
	if (op->opcode == TAG_SYNC || op->flags & TAG_OP_SYNC) {
		list->handled = (u16)op->unexpected_cnt;
		tag_look_at_counts(list);
	}
	if (op->opcode == TAG_ADD) {
		op->handle = list->slot[list->free].handle;
		tag_append(list, op);
	}
	if (op->flags & TAG_OP_SIGNALED)
		tag_complete_op(e, srq, op, done, now_ns);
	return 0;
}

/* ---- messages ---- */

/*
 * Reads the first packet's header. Eager messages return TAG_MATCHED and rendezvous TAG_FETCHED,
 * before their tag is looked up. TAG_NONE is for messages without a tag, a rendezvous FIN, and
 * malformed ones, which the application gets whole.
 */
static enum tag_kind tag_read_header(const struct packet *p, struct tag_header *h)
{
	if (p->payload_len < sizeof(h->tmh))
		return TAG_NONE;
	packet_copy_payload(p, 0, &h->tmh, sizeof(h->tmh));
	if (h->tmh.opcode == TMH_EAGER)
		return TAG_MATCHED;
	if (h->tmh.opcode != TMH_RNDV || !(p->flags & OP_END) || p->payload_len < sizeof(*h) ||
	    p->payload_len > TAG_MAX_RENDEZVOUS_BYTES)
		return TAG_NONE;
	packet_copy_payload(p, 0, h, sizeof(*h));
	return TAG_FETCHED;
}

/* Returns the oldest matching entry. The list ends at the first entry that is not in step. */
static struct tag *tag_find(struct tag_list *list, u64 tag)
{
	for (u32 i = list->head; i != NO_TAG && list->slot[i].in_step; i = list->slot[i].next)
		if ((tag & list->slot[i].mask) == list->slot[i].tag)
			return &list->slot[i];
	return NULL;
}

/* Gives the entry's buffer to the message, as if it were a receive WQE. */
static void tag_take_entry(struct responder *resp, const struct srq *srq, struct tag *t)
{
	resp->recv.wr_id = t->wr_id;
	resp->recv.pd = srq->pd;
	resp->recv.num_sge = t->num_sge;
	memcpy(resp->recv.sge, t->sge, t->num_sge * sizeof(t->sge[0]));
	resp->recv.length = sge_length(t->sge, t->num_sge);
	resp->seq.have_recv = true;
	tag_take_out(srq->tags, t);
}

bool tag_receive(struct engine *e, struct qp *qp, const struct packet *p)
{
	struct responder *resp = &qp->resp;
	struct tag_list *list = qp->srq->tags;
	struct tag_header h;
	enum tag_kind kind = tag_read_header(p, &h);
	struct tag *t = kind == TAG_NONE ? NULL : tag_find(list, be64toh(h.tmh.tag));

	if (!t) {
		if (!engine_take_receive(e, qp))
			return false;
		resp->recv_skip = 0;
		resp->tag_kind = kind == TAG_NONE ? TAG_NONE : TAG_UNEXPECTED;
		if (kind != TAG_NONE)
			list->unexpected++;
		return true;
	}
	if (kind == TAG_FETCHED) {
		if (!rendezvous_fits(qp, &h, sge_length(t->sge, t->num_sge)))
			kind = TAG_LEFT;
		else if (!rendezvous_has_room(qp))
			return false;
	}
	tag_take_entry(resp, qp->srq, t);
	resp->tag_kind = kind;
	resp->recv_skip = kind == TAG_MATCHED ? sizeof(h.tmh) : (u16)p->payload_len;
	return true;
}

bool tag_scatter_headers(struct engine *e, struct qp *qp, const struct packet *p)
{
	const struct recv_work *recv = &qp->resp.recv;
	struct tag_header h;
	const struct guard_bytes bytes = { .at = (const u8 *)&h, .len = sizeof(h) };

	packet_copy_payload(p, 0, &h, sizeof(h));
	return sge_scatter(e->mrs, recv->pd, recv->sge, recv->num_sge, 0, &bytes,
			   (u32)min_u64(sizeof(h), recv->length));
}

/* Returns whether a completion must request the application's count. */
static bool tag_lags(const struct tag_list *list)
{
	return (u16)(list->unexpected - list->handled) > SYNC_LAG_MAX;
}

void tag_complete(struct engine *e, struct qp *qp, const struct packet *p,
		  const struct xroce_rx_cqe *hint, struct cqe *cqe, u64 now_ns)
{
	struct responder *resp = &qp->resp;
	const enum tag_kind kind = resp->tag_kind;
	struct tag_header h;

	cqe->opcode = kind == TAG_NONE ? CQE_TM_NO_TAG : CQE_TM_RECV;
	if (kind == TAG_UNEXPECTED)
		cqe->flags |= tag_lags(qp->srq->tags) ? CQE_TM_SYNC_REQ : 0;
	if (kind >= TAG_MATCHED && p->flags & OP_START) {
		cqe->flags |= CQE_TM_MATCH;
		packet_copy_payload(p, 0, &h, kind == TAG_MATCHED ? sizeof(h.tmh) : sizeof(h));
		cqe->tm_tag = be64toh(h.tmh.tag);
		cqe->tm_priv = be32toh(h.tmh.app_ctx);
	}
	if (kind == TAG_MATCHED && p->flags & OP_END)
		cqe->flags |= CQE_TM_DATA_VALID;
	else if (kind == TAG_MATCHED)
		cqe->byte_len = 0; /* the completion at its end has the length */
	if (kind == TAG_FETCHED)
		cqe->byte_len = be32toh(h.rvh.len);
	if (kind == TAG_LEFT) {
		cqe->status = CQE_TM_RNDV_INCOMPLETE;
		cqe->vendor_err = VERR_RENDEZVOUS;
		cqe->flags |= CQE_TM_DATA_VALID;
		cqe->byte_len = (u32)min_u64(sizeof(h), resp->recv.length);
	}
	responder_complete(e, qp, p, hint, cqe, now_ns);
	if (!(p->flags & OP_END)) { /* matched, and more packets follow */
		resp->seq.have_recv = true;
		return;
	}
	if (kind == TAG_FETCHED)
		rendezvous_start(e, qp, &h, p->solicited);
	resp->tag_kind = 0;
	resp->recv_skip = 0;
}

u16 tag_abandon(struct qp *qp)
{
	struct responder *resp = &qp->resp;
	const enum tag_kind kind = resp->tag_kind;

	if (kind == TAG_UNEXPECTED) { /* the application will not see it as unexpected */
		qp->srq->tags->unexpected--;
		tag_look_at_counts(qp->srq->tags);
	}
	resp->tag_kind = 0;
	resp->recv_skip = 0;
	return kind >= TAG_MATCHED ? CQE_TM_RECV : CQE_RECV;
}

void tag_forget_qp(struct qp *qp)
{
	struct tag_list *list;

	if (!qp->shared)
		return;
	tag_abandon(qp);
	list = qp->srq->tags;
	list->unexpected -=
		(u16)cq_count(qp->recv_cq, qp->qpn, CQE_TM_RECV, CQE_TM_MATCH | CQE_TM_DATA_VALID);
	tag_look_at_counts(list);
}

/*
 * Rendezvous of tag matching. The matched message gives the address of its data. The engine READs
 * it into the tag's buffer on the same QP, and then sends a FIN, which tells the initiator that its
 * buffer is free. Both are WQEs like the application's, so the requester handles losses, windows
 * and max_rd_atomic. Therefore QPs on a tag-matching SRQ have a send queue with two producers:
 *
 *   application            engine
 *   posted -------------> shared_sends_move() --> sq; a slot of posted is free when its WQE has
 *                                                 completed
 *                          rendezvous_start() ---> sq: the READ
 *                          rendezvous_sent() ----> sq: the FIN, in a slot reserved with its READ's
 */

/* The engine's WQEs in one send queue: two per rendezvous, until its FIN is acknowledged. */
#define FETCHING_MAX 128

int shared_sends_init(struct qp *qp, const struct qp_init *init)
{
	struct shared_sends *s = aligned_zero(sizeof(*s));
	u32 max_sge = init->max_send_sge > TAG_MAX_SGE ? init->max_send_sge : TAG_MAX_SGE;
	u32 max_inline = init->max_inline > sizeof(struct tag_header) ?
				 init->max_inline :
				 (u32)sizeof(struct tag_header);

	if (!s)
		return -ENOMEM;
	qp->shared = s;
	qp->tag_matching = true;
	if (sq_init(&s->posted, init->max_send_wr, init->max_send_sge, init->max_inline,
		    init->sq_lent))
		return -ENOMEM;
	return sq_init(&qp->sq, init->max_send_wr + FETCHING_MAX, max_sge, max_inline, NULL);
}

void shared_sends_free(struct qp *qp)
{
	if (qp->shared)
		sq_free(&qp->shared->posted);
	free(qp->shared);
}

void shared_sends_move(struct qp *qp)
{
	struct shared_sends *s = qp->shared;
	const u32 prod = sq_prod(&s->posted);

	for (; s->moved != prod; s->moved++) {
		/* never NULL: the queue has room for all of posted and all of the engine's WQEs */
		struct send_wqe *wqe = sq_slot(&qp->sq, 0);

		memcpy(wqe, sq_at(&s->posted, s->moved), s->posted.stride);
		sq_publish(&qp->sq, 1);
	}
}

void shared_sends_completed(struct qp *qp)
{
	struct sq *posted = &qp->shared->posted;

	/* release: pairs with the acquire in sq_slot() */
	atomic_store_explicit(&posted->cons, sq_cons(posted) + 1, memory_order_release);
}

void shared_sends_reset(struct qp *qp)
{
	struct shared_sends *s = qp->shared;

	s->moved = sq_prod(&s->posted);
	s->fetching = 0;
	/* release: pairs with the acquire in sq_slot() */
	atomic_store_explicit(&s->posted.cons, s->moved, memory_order_release);
}

bool rendezvous_fits(const struct qp *qp, const struct tag_header *h, u64 room)
{
	const u32 len = be32toh(h->rvh.len);

	/* before RTS, max_rd_atomic is not known */
	return len <= room && len <= ROCE_MESSAGE_MAX &&
	       (qp->req.max_rd_atomic || qp_state(qp) == QPS_RTR);
}

bool rendezvous_has_room(const struct qp *qp)
{
	return qp->shared->fetching + 2 <= FETCHING_MAX && qp_state(qp) != QPS_RTR;
}

void rendezvous_start(struct engine *e, struct qp *qp, const struct tag_header *h, bool solicited)
{
	const struct recv_work *recv = &qp->resp.recv;
	struct send_wqe *wqe = sq_slot(&qp->sq, 0);

	*wqe = (struct send_wqe){
		.wr_id = recv->wr_id,
		.opcode = WR_READ,
		.flags = WR_RENDEZVOUS | (solicited ? WR_SOLICITED : 0),
		.num_sge = (u8)recv->num_sge,
		.length = be32toh(h->rvh.len),
		.remote_addr = be64toh(h->rvh.va),
		.rkey = be32toh(h->rvh.rkey),
		/* for the FIN; unused by a READ */
		.imm = h->tmh.app_ctx,
		.swap = h->tmh.tag,
	};
	memcpy(wqe->sge, recv->sge, recv->num_sge * sizeof(wqe->sge[0]));
	qp->shared->fetching += 2;
	sq_publish(&qp->sq, 1);
	engine_ready(e, qp, READY_REQUESTS);
}

/* "A copy of the original TMH and RVH of the rendezvous request, apart the opcode" */
static void rendezvous_send_fin(struct engine *e, struct qp *qp, const struct send_wqe *read)
{
	const struct tag_header h = {
		.tmh = { .opcode = TMH_FIN, .app_ctx = read->imm, .tag = read->swap },
		.rvh = { .va = htobe64(read->remote_addr),
			 .rkey = htobe32(read->rkey),
			 .len = htobe32(read->length) },
	};
	struct send_wqe *wqe = sq_slot(&qp->sq, 0);

	*wqe = (struct send_wqe){ .wr_id = read->wr_id,
				  .opcode = WR_SEND,
				  .flags = WR_RENDEZVOUS | WR_INLINE,
				  .length = sizeof(h) };
	memcpy(wqe->data, &h, sizeof(h));
	sq_publish(&qp->sq, 1);
	engine_ready(e, qp, READY_REQUESTS);
}

void rendezvous_sent(struct engine *e, struct qp *qp, const struct send_wqe *wqe,
		     enum cqe_status status, enum vendor_err verr, u64 now_ns)
{
	const struct cqe cqe = {
		.wr_id = wqe->wr_id,
		.status = (u16)status,
		.opcode = CQE_TM_RECV,
		.vendor_err = verr,
		.byte_len = wqe->length,
		.qpn = qp->qpn,
		.src_qpn = qp->dest_qpn,
		.flags = CQE_TM_DATA_VALID,
		.time_ns = now_ns,
	};

	qp->shared->fetching--;
	if (wqe->opcode == WR_READ) {
		if (unlikely(qp->is_counted))
			comp_cntr_add(qp->counter[COUNTED_RECV], status, wqe->length);
		engine_complete(e, qp->recv_cq, &cqe, wqe->flags & WR_SOLICITED);
		if (status == CQE_SUCCESS)
			rendezvous_send_fin(e, qp, wqe);
		else
			qp->shared->fetching--;
	} else if (status != CQE_SUCCESS && status != CQE_WR_FLUSH_ERR) {
		/* no work request of the application reports it */
		engine_qp_event(e, qp, EVENT_QP_FATAL);
	}
}
