/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Queue pairs of the simulator; see pair.h. */
#include "pair.h"

#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

struct pair_options pair_defaults(void)
{
	return (struct pair_options){
		.transport = XROCE_RC,
		.pmtu = 1024,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 12,
		.psn = { 0x1000, 0x2000 },
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.max_send_wr = 64,
		.max_recv_wr = 64,
		.max_send_sge = 4,
		.max_recv_sge = 4,
		.max_inline = 256,
		.cq_capacity = 512,
		.access = PAIR_ACCESS_ALL | MR_FLUSH_GLOBAL | MR_FLUSH_PERSISTENT,
		.pd = PAIR_PD,
		.xrcd = 1,
	};
}

struct side side_create(struct node *n, const struct pair_options *o, struct srq *srq)
{
	bool is_xrc = o->transport == XROCE_XRC;
	struct watched_cq *given = n->index < 2 ? o->cq[n->index] : NULL;
	struct side s = { .node = n,
			  .send = is_xrc && o->xrc_target ? NULL :
				  given			  ? given :
							    world_cq(n, o->cq_capacity),
			  .borrows_cqs = given };
	struct qp_init init = {
		.transport = o->transport,
		.max_send_wr = o->max_send_wr,
		.max_recv_wr = o->max_recv_wr,
		.max_send_sge = o->max_send_sge,
		.max_recv_sge = o->max_recv_sge,
		.max_inline = o->max_inline,
		.sq_sig_all = o->sq_sig_all,
		.srq = srq,
		.pd = o->pd,
		.xrc_target = o->xrc_target,
		.xrcd = is_xrc && o->xrc_target ? o->xrcd : 0,
	};

	s.recv = is_xrc ? NULL : o->one_cq || given ? s.send : world_cq(n, o->cq_capacity);
	init.send_cq = s.send ? &s.send->cq : NULL;
	init.recv_cq = s.recv ? &s.recv->cq : NULL;
	assert_int_equal(qp_create(world_owner(n, is_xrc || (srq && srq->tags)), &init, &s.qp), 0);
	world_know_qp(n, s.qp);
	assert_int_equal(qp_state(s.qp), QPS_RESET);
	return s;
}

void side_destroy(struct side *s)
{
	qp_destroy(s->node->engine, s->qp);
	if (s->borrows_cqs)
		return;
	if (s->recv && s->recv != s->send)
		world_cq_destroy(s->node, s->recv);
	if (s->send)
		world_cq_destroy(s->node, s->send);
}

u32 side_attr(const struct pair_options *o, enum qp_state to, struct qp_attr *attr)
{
	bool is_xrc = o->transport == XROCE_XRC, is_ud = o->transport == XROCE_UD;
	bool answers = o->transport == XROCE_RC || (is_xrc && o->xrc_target);
	bool asks = o->transport == XROCE_RC || (is_xrc && !o->xrc_target);

	*attr = (struct qp_attr){
		.state = to,
		.access = o->access,
		.port = 1,
		.qkey = PAIR_QKEY,
		.path_mtu = o->pmtu,
		.timeout = o->timeout,
		.retry_cnt = o->retry_cnt,
		.rnr_retry = o->rnr_retry,
		.max_rd_atomic = o->max_rd_atomic,
		.max_dest_rd_atomic = o->max_dest_rd_atomic,
		.min_rnr_timer = o->min_rnr_timer,
	};
	switch (to) {
	case QPS_INIT:
		return QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT |
		       (is_ud ? QP_ATTR_QKEY : QP_ATTR_ACCESS_FLAGS);
	case QPS_RTR:
		return QP_ATTR_STATE |
		       (is_ud ? 0 :
				QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN) |
		       (answers ? QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER : 0);
	case QPS_RTS:
		return QP_ATTR_STATE | QP_ATTR_SQ_PSN | (asks || is_xrc ? QP_ATTR_TIMEOUT : 0) |
		       (asks ? QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY | QP_ATTR_MAX_QP_RD_ATOMIC :
			       0);
	default:
		return QP_ATTR_STATE;
	}
}

static void step_to(struct side *s, const struct qp_attr *attr, u32 mask)
{
	assert_int_equal(qp_modify(s->node->engine, s->qp, attr, mask, s->node->world->now_ns), 0);
	assert_int_equal(qp_state(s->qp), attr->state);
}

void side_init(struct side *s, const struct pair_options *o)
{
	struct qp_attr attr;
	u32 mask = side_attr(o, QPS_INIT, &attr);

	attr.pkey_index = o->pkey_index[s->node->index & 1];
	step_to(s, &attr, mask);
}

void side_rtr(struct side *s, const struct pair_options *o, u32 peer_node, u32 peer_qpn, u32 rq_psn)
{
	struct qp_attr attr;
	u32 mask = side_attr(o, QPS_RTR, &attr);

	attr.path = world_path(s->node->world, s->node->index, peer_node, o->is_ipv6);
	attr.dest_qpn = peer_qpn;
	attr.rq_psn = rq_psn;
	step_to(s, &attr, mask);
}

void side_rts(struct side *s, const struct pair_options *o, u32 sq_psn)
{
	struct qp_attr attr;
	u32 mask = side_attr(o, QPS_RTS, &attr);

	attr.sq_psn = sq_psn;
	step_to(s, &attr, mask);
}

int side_state(struct side *s, enum qp_state to)
{
	struct qp_attr attr = { .state = to };

	return qp_modify(s->node->engine, s->qp, &attr, QP_ATTR_STATE, s->node->world->now_ns);
}

struct pair pair_connect(struct world *w, const struct pair_options *o)
{
	struct pair p = { .w = w };
	struct pair_options end[2] = { *o, *o };

	end[1].xrc_target = o->transport == XROCE_XRC;
	for (u32 i = 0; i < 2; i++) {
		p.side[i] = side_create(&w->node[i], &end[i], o->srq[i]);
		side_init(&p.side[i], &end[i]);
	}
	for (u32 i = 0; i < 2; i++)
		side_rtr(&p.side[i], &end[i], !i, p.side[!i].qp->qpn, o->psn[!i]);
	for (u32 i = 0; i < 2; i++)
		side_rts(&p.side[i], &end[i], o->psn[i]);
	return p;
}

void pair_destroy(struct pair *p)
{
	side_destroy(&p->side[0]);
	side_destroy(&p->side[1]);
}

/* ---- work ---- */

struct send request_between(const struct buffer *local, const struct buffer *remote, u64 wr_id,
			    enum wr_opcode opcode, u32 len)
{
	return (struct send){ .wr_id = wr_id,
			      .opcode = opcode,
			      .flags = WR_SIGNALED,
			      .num_sge = 1,
			      .sge = { buffer_sge(local, 0, len) },
			      .remote_addr = buffer_va(remote),
			      .rkey = remote->mr->key };
}

static u32 send_length(const struct send *send)
{
	u32 length = send->length;

	if (send->flags & WR_INLINE)
		return send->inline_len;
	for (u32 i = 0; i < send->num_sge; i++)
		length += send->sge[i].length;
	return length;
}

/* Fill slot number n. False if there is none. */
static bool fill_slot(struct side *s, u32 n, const struct send *send, struct send_wqe **out)
{
	struct send_wqe *wqe = sq_slot(qp_posting(s->qp), n);

	*out = wqe;
	if (!wqe)
		return false;
	/*
	 * The header only: the rest stays as the last user left it, and so does the engine's state
	 * in it.
	 */
	memset(wqe, send->wr_id % 2 ? 0x5a : 0, sizeof(*wqe));
	wqe->wr_id = send->wr_id;
	wqe->opcode = (u8)send->opcode;
	wqe->flags = send->flags;
	wqe->num_sge = send->flags & WR_INLINE ? 0 : (u16)send->num_sge;
	wqe->length = send_length(send);
	wqe->imm = send->imm;
	wqe->inv_rkey = send->inv_rkey;
	if (s->qp->transport == XROCE_UD) {
		if (send->path)
			wqe->ud.path = *send->path;
		wqe->ud.remote_qpn = send->remote_qpn;
		wqe->ud.remote_qkey = send->remote_qkey;
	} else if (send->opcode == WR_BIND_MW) {
		wqe->bind.mw_key = send->bind.mw_key;
		wqe->bind.new_key = send->bind.new_key;
		wqe->bind.lkey = send->bind.lkey;
		wqe->bind.access = send->bind.access;
		wqe->bind.addr = send->bind.addr;
		wqe->bind.length = send->bind.length;
	} else {
		wqe->remote_addr = send->remote_addr;
		wqe->rkey = send->rkey;
		wqe->compare_add = send->compare_add;
		wqe->swap = send->swap;
		wqe->xrc_srqn = send->xrc_srqn;
	}
	if (send->flags & WR_INLINE) {
		if (send->inline_len <= qp_posting(s->qp)->max_inline)
			memcpy(wqe->data, send->inline_data, send->inline_len);
	} else if (send->num_sge <= qp_posting(s->qp)->max_sge) {
		memcpy(wqe->sge, send->sge, send->num_sge * sizeof(struct sge));
	}
	return true;
}

void post_sends(struct side *s, const struct send *list, u32 n)
{
	struct send_wqe *wqe;

	sq_begin(qp_posting(s->qp));
	for (u32 i = 0; i < n; i++) {
		check(s->node->world, fill_slot(s, i, &list[i], &wqe));
		check_eq(s->node->world, send_wqe_check(s->qp, wqe), 0);
	}
	sq_publish(qp_posting(s->qp), n);
	world_ring(s->node, s->qp);
}

void post_send(struct side *s, const struct send *send)
{
	post_sends(s, send, 1);
}

int try_post_send(struct side *s, const struct send *send)
{
	struct send_wqe *wqe;
	int err;

	sq_begin(qp_posting(s->qp));
	if (!fill_slot(s, 0, send, &wqe))
		return -1;
	err = send_wqe_check(s->qp, wqe);
	if (err)
		return err;
	sq_publish(qp_posting(s->qp), 1);
	world_ring(s->node, s->qp);
	return 0;
}

static void fill_recv(struct world *w, struct rq *rq, u64 wr_id, const struct sge *sge, u32 num_sge)
{
	struct recv_wqe *wqe = rq_slot(rq, 0);

	if (w)
		check(w, wqe != NULL);
	assert_non_null(wqe);
	wqe->wr_id = wr_id;
	wqe->num_sge = num_sge;
	if (num_sge)
		memcpy(wqe->sge, sge, num_sge * sizeof(*sge));
	rq_publish(rq, 1);
}

void post_recv(struct side *s, u64 wr_id, const struct sge *sge, u32 num_sge)
{
	fill_recv(s->node->world, &s->qp->rq, wr_id, sge, num_sge);
	if (qp_state(s->qp) == QPS_ERR)
		world_ring(s->node, s->qp);
}

void post_recv_buffer(struct side *s, u64 wr_id, const struct buffer *b, u32 offset, u32 len)
{
	struct sge sge = buffer_sge(b, offset, len);

	post_recv(s, wr_id, &sge, 1);
}

void post_srq_recv(struct srq *srq, u64 wr_id, const struct sge *sge, u32 num_sge)
{
	fill_recv(NULL, &srq->rq, wr_id, sge, num_sge);
}

struct srq *world_srq(struct node *n, u32 max_wr)
{
	struct srq *srq = aligned_alloc(CACHE_LINE, (sizeof(*srq) + CACHE_LINE - 1) &
							    ~(size_t)(CACHE_LINE - 1));

	assert_non_null(srq);
	memset(srq, 0, sizeof(*srq));
	assert_int_equal(rq_init(&srq->rq, max_wr, 4), 0);
	srq->pd = PAIR_PD;
	srq->number = n->index + 1;
	return srq;
}

void world_srq_destroy(struct srq *srq)
{
	rq_free(&srq->rq);
	free(srq);
}

struct srq *world_xrc_srq(struct node *n, u32 max_wr, u32 xrcd, u32 pd, struct watched_cq *c)
{
	struct srq *srq = world_srq(n, max_wr);

	srq->pd = pd;
	srq->xrcd = xrcd;
	srq->cq = &c->cq;
	assert_int_equal(engine_srq_add(n->engine, srq), 0);
	return srq;
}

struct srq *world_tag_srq(struct node *n, u32 max_wr, u32 max_tags, u32 max_ops,
			  struct watched_cq *c)
{
	struct srq *srq = world_srq(n, max_wr);

	srq->cq = &c->cq;
	assert_int_equal(tag_list_create(max_tags, max_ops, &srq->tags), 0);
	return srq;
}

void world_tag_srq_destroy(struct srq *srq)
{
	tag_list_free(srq->tags);
	world_srq_destroy(srq);
}

void world_xrc_srq_destroy(struct node *n, struct srq *srq)
{
	engine_srq_remove(n->engine, srq);
	world_srq_destroy(srq);
}

/* ---- judgement ---- */

void expect_cqe(struct world *w, const struct watched_cq *c, u32 n, const struct cqe *e,
		const char *file, int line)
{
	const struct cqe *got;

	if (n >= c->n) {
		print_error("completion %u of %u (wr_id %llu)\n", n, c->n,
			    (unsigned long long)e->wr_id);
		world_check(w, false, "a completion is missing", file, line);
		return;
	}
	got = &c->log[n];
	world_check_u64(w, got->wr_id, e->wr_id, "wr_id", file, line);
	world_check_u64(w, got->status, e->status, "status", file, line);
	world_check_u64(w, got->qpn, e->qpn, "qpn", file, line);
	if (e->vendor_err || e->status == CQE_SUCCESS)
		world_check_u64(w, got->vendor_err, e->vendor_err, "vendor_err", file, line);
	if (e->status != CQE_SUCCESS)
		return; /* ibv_poll_cq(3): nothing else is valid */
	world_check_u64(w, got->opcode, e->opcode, "opcode", file, line);
	world_check_u64(w, got->byte_len, e->byte_len, "byte_len", file, line);
	if (!(e->opcode & CQE_RECV))
		return; /* the rest is the receiver's */
	world_check_u64(w, got->flags, e->flags, "flags", file, line);
	if (e->flags & (CQE_WITH_IMM | CQE_WITH_INV))
		world_check_u64(w, got->imm, e->imm, "imm", file, line);
	if (e->src_qpn)
		world_check_u64(w, got->src_qpn, e->src_qpn, "src_qpn", file, line);
}

bool bytes_are(const u8 *bytes, u32 len, u32 seed)
{
	u8 *want = malloc(len + 1);
	bool same;

	assert_non_null(want);
	buffer_fill(want, len, seed);
	same = memcmp(bytes, want, len) == 0;
	free(want);
	return same;
}
