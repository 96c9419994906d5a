/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * ibv_wr_post(3), the table "WORK REQUESTS" and the rules of setters: every operation of every
 * service with every setter, the QP specific one before the data and after it. Permitted
 * combinations are executed, and data and completions are checked at both ends; the others make
 * ibv_wr_complete() fail, and nothing is posted.
 */
#include "wr.h"

#define ID	 0xabcdef0123456789ull
#define RECV_ID	 0x9876543210fedcbaull
#define MAX_DATA 3000u
#define PIECES	 3

enum setter {
	SGE,
	SGE_LIST,
	SGE_LIST_OF_NONE,
	INLINE,
	INLINE_LIST,
	INLINE_OF_NONE,
	INLINE_LIST_OF_NONE,
	NO_SETTER,
	SETTERS
};

static const char *const setter_names[SETTERS] = {
	"set_sge",	      "set_sge_list",		 "set_sge_list of none",
	"set_inline_data",    "set_inline_data_list",	 "set_inline_data of none",
	"set_inline_data_list of none", "no setter",
};

static bool is_inline(enum setter s)
{
	return s >= INLINE && s <= INLINE_LIST_OF_NONE;
}

/* "Valid only for SEND and RDMA_WRITE" of inline data; NONE takes no setter of data. */
static bool is_allowed(enum wr_code op, enum setter s)
{
	switch (wr_ops[op].data) {
	case DATA_NONE: return s == NO_SETTER;
	case DATA_OUT: return s != NO_SETTER;
	case DATA_IN: return !is_inline(s) && s != NO_SETTER;
	case DATA_WORD: return s == SGE || s == SGE_LIST;
	}
	return false;
}

/*
 * "one of the following setters should be called once": the result without one is left open, and an
 * atomic of no bytes is a separate error.
 */
static bool is_left_open(enum wr_code op, enum setter s)
{
	return wr_ops[op].data == DATA_WORD ? s == NO_SETTER || s == SGE_LIST_OF_NONE :
					      wr_ops[op].data != DATA_NONE && s == NO_SETTER;
}

/* The local bytes of one request: with gaps, so that a list differs from one piece. */
struct pieces {
	int n;
	uint32_t at[PIECES], length[PIECES], total;
};

static struct pieces pieces_of(const struct wr_ends *e, enum wr_code op, enum setter s)
{
	static const uint32_t word[2] = { 3, 5 }, little[PIECES] = { 20, 17, 11 };
	const uint32_t all = e->type == IBV_QPT_UD ? 900 : MAX_DATA;
	const uint32_t many[PIECES] = { 77, all - 78, 1 };
	const bool is_word = wr_ops[op].data == DATA_WORD;
	const uint32_t *parts = is_word ? word : is_inline(s) ? little : many;
	struct pieces p = { .n = s == SGE || s == INLINE		? 1 :
				 s == SGE_LIST || s == INLINE_LIST ? (is_word ? 2 : PIECES) :
								     0 };

	for (int i = 0; i < p.n; i++) {
		p.at[i] = 64 + (uint32_t)i * 4000;
		p.length[i] = p.n > 1 ? parts[i] : is_word ? 8 : is_inline(s) ? 48 : all;
		p.total += p.length[i];
	}
	return p;
}

/* The buffers' contents, never the same at both ends or at two places of one period. */
static void fill(struct wr_ends *e)
{
	static uint32_t round;

	round++;
	for (uint32_t i = 0; i < BUF_BYTES; i++) {
		e->buf[0][i] = (char)(i * 7 + (i >> 8) * 3 + round);
		e->buf[1][i] = (char)~(i * 5 + (i >> 8) * 11 + round);
	}
}

static void gather(const struct wr_ends *e, const struct pieces *p, char *to)
{
	for (int i = 0; i < p->n; i++) {
		memcpy(to, e->buf[0] + p->at[i], p->length[i]);
		to += p->length[i];
	}
}

/*
 * The setter. Its arguments are the caller's again when it returns: lists are overwritten, and
 * inline data too ("allows the caller to immediately re-use the buffer").
 */
static void set_data(struct wr_ends *e, enum setter s, const struct pieces *p)
{
	struct ibv_sge sge[PIECES];
	struct ibv_data_buf data[PIECES];

	for (int i = 0; i < p->n; i++) {
		sge[i] = (struct ibv_sge){ (uintptr_t)e->buf[0] + p->at[i], p->length[i],
					   e->mr[0]->lkey };
		data[i] = (struct ibv_data_buf){ e->buf[0] + p->at[i], p->length[i] };
	}
	switch (s) {
	case SGE: ibv_wr_set_sge(e->ex, sge[0].lkey, sge[0].addr, sge[0].length); break;
	case SGE_LIST:
	case SGE_LIST_OF_NONE: ibv_wr_set_sge_list(e->ex, (size_t)p->n, sge); break;
	case INLINE: ibv_wr_set_inline_data(e->ex, data[0].addr, data[0].length); break;
	case INLINE_OF_NONE: ibv_wr_set_inline_data(e->ex, e->buf[0], 0); break;
	case INLINE_LIST:
	case INLINE_LIST_OF_NONE: ibv_wr_set_inline_data_list(e->ex, (size_t)p->n, data); break;
	case NO_SETTER:
	case SETTERS: break;
	}
	memset(sge, 0xff, sizeof(sge));
	memset(data, 0, sizeof(data));
	for (int i = 0; is_inline(s) && i < p->n; i++)
		memset(e->buf[0] + p->at[i], '-', p->length[i]);
}

/* ---- preconditions of an operation, and its effects ---- */

static bool bind_by_post(struct wr_ends *e, int end, struct ibv_mw *mw, struct ibv_mr *mr,
			 uint32_t rkey)
{
	struct ibv_send_wr wr = { .wr_id = 5, .opcode = IBV_WR_BIND_MW,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_wc wc;

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = rkey;
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		mr, (uintptr_t)mr->addr + WINDOW_AT, WINDOW_SIZE, IBV_ACCESS_REMOTE_WRITE };
	MUST_EQ(ibv_post_send(e->qp[end], &wr, &bad), 0);
	return wr_completed(e->cq[end], 5, IBV_WC_BIND_MW, &wc);
}

/* Invalidated, and gone: its region can be deregistered. */
static bool unbound(struct wr_ends *e, bool by_us)
{
	struct ibv_send_wr wr = { .wr_id = 6, .opcode = IBV_WR_LOCAL_INV,
				  .invalidate_rkey = e->mw->rkey,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_wc wc;

	if (by_us) {
		MUST_EQ(ibv_dereg_mr(e->lent), EBUSY);
		MUST_EQ(ibv_post_send(e->qp[0], &wr, &bad), 0);
		MUST(wr_completed(e->cq[0], 6, IBV_WC_LOCAL_INV, &wc));
	}
	MUST_EQ(ibv_dereg_mr(e->lent), 0);
	MUST(e->lent = ibv_reg_mr(e->pd, e->buf[0], BUF_BYTES,
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND));
	return true;
}

/* End 1 writes by the window's key into its last bytes, and tells. */
static bool window_is_open(struct wr_ends *e, uint32_t rkey)
{
	const uint32_t at = WINDOW_AT + WINDOW_SIZE - 16;
	struct ibv_sge sge = { (uintptr_t)e->buf[1], 16, e->mr[1]->lkey };
	struct ibv_send_wr wr = { .wr_id = 7, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				  .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1,
				  .wr.rdma = { (uintptr_t)e->buf[0] + at, rkey } }, *bad;
	struct ibv_recv_wr rr = { .wr_id = 8 }, *bad_rr;
	struct ibv_wc wc;

	MUST_EQ(ibv_post_recv(e->qp[0], &rr, &bad_rr), 0);
	MUST_EQ(ibv_post_send(e->qp[1], &wr, &bad), 0);
	MUST(wr_completed(e->cq[0], 8, IBV_WC_RECV_RDMA_WITH_IMM, &wc));
	MUST(wr_completed(e->cq[1], 7, IBV_WC_RDMA_WRITE, &wc));
	MUST_EQ(memcmp(e->buf[0] + at, e->buf[1], 16), 0);
	return true;
}

/* The region and the window at end 1 that a SEND invalidates. */
struct far {
	struct ibv_mr *mr;
	struct ibv_mw *mw;
};

static bool far_open(struct wr_ends *e, struct far *f, struct wr_args *a)
{
	MUST(f->mr = ibv_reg_mr(e->pd, e->buf[1], BUF_BYTES,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND));
	MUST(f->mw = ibv_alloc_mw(e->pd, IBV_MW_TYPE_2));
	a->rkey = ibv_inc_rkey(f->mw->rkey);
	return bind_by_post(e, 1, f->mw, f->mr, a->rkey);
}

static bool far_invalidated(struct far *f)
{
	MUST_EQ(ibv_dereg_mr(f->mr), 0); /* EBUSY if the window were still bound */
	MUST_EQ(ibv_dealloc_mw(f->mw), 0);
	return true;
}

/* The completion of the receive at end 1. */
static bool received(struct wr_ends *e, enum wr_code op, const struct wr_args *a, uint32_t length)
{
	const struct wr_op *o = &wr_ops[op];
	const bool is_write = op == OP_WRITE_IMM;
	struct ibv_wc wc;

	MUST(wr_completed(e->cq[1], RECV_ID, is_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
			  &wc));
	MUST_EQ(wc.byte_len, length + wr_grh(e));
	MUST_EQ(wc.qp_num, e->qp[1]->qp_num);
	MUST_EQ(wc.wc_flags, (o->immediate ? IBV_WC_WITH_IMM : 0) |
				     (op == OP_SEND_INV ? IBV_WC_WITH_INV : 0) |
				     (e->type == IBV_QPT_UD ? IBV_WC_GRH : 0));
	if (o->immediate)
		MUST_EQ(wc.imm_data, a->imm);
	if (op == OP_SEND_INV)
		MUST_EQ(wc.invalidated_rkey, a->rkey);
	if (e->type == IBV_QPT_UD)
		MUST_EQ(wc.src_qp, e->qp[0]->qp_num);
	return true;
}

/* Data and completions of a request that was posted. */
static bool did(struct wr_ends *e, enum wr_code op, const struct wr_args *a,
		const struct pieces *p, const char *sent, const char *remote_was)
{
	const bool is_send = wr_ops[op].receives && op != OP_WRITE_IMM;
	char *remote = e->buf[1] + REMOTE_AT, now[MAX_DATA];
	struct ibv_wc wc;
	uint64_t word, was;

	if (wr_ops[op].receives)
		MUST(received(e, op, a, p->total));
	MUST(wr_completed(e->cq[0], ID, wr_ops[op].completion, &wc));
	MUST_EQ(wc.qp_num, e->qp[0]->qp_num);
	if (wr_ops[op].data == DATA_IN || wr_ops[op].data == DATA_WORD)
		MUST_EQ(wc.byte_len, p->total);
	MUST(cq_is_empty(e->cq[0]) && cq_is_empty(e->cq[1]));

	gather(e, p, now);
	memcpy(&word, remote, 8);
	memcpy(&was, remote_was + 8, 8);
	if (wr_ops[op].data == DATA_OUT) {
		char *to = is_send ? e->buf[1] + wr_grh(e) : remote;

		MUST_EQ(memcmp(to, sent, p->total), 0);
		if (is_send)
			MUST_EQ(memcmp(remote - 8, remote_was, 16), 0);
		else
			MUST_EQ(memcmp(remote + p->total, remote_was + 8 + p->total, 8), 0);
	} else if (wr_ops[op].data == DATA_IN || wr_ops[op].data == DATA_WORD) {
		MUST_EQ(memcmp(now, remote_was + 8, p->total), 0);
	}
	if (op == OP_FETCH_ADD)
		MUST(word == was + a->swap_or_add);
	else if (op == OP_CMP_SWP)
		MUST(word == a->swap_or_add);
	else if (op == OP_ATOMIC_WRITE)
		MUST_EQ(memcmp(remote, a->word, 8), 0);
	else if (wr_ops[op].data != DATA_OUT)
		MUST(word == was);
	MUST_EQ(memcmp(remote - 8, remote_was, 8), 0);
	return true;
}

static bool one(struct wr_ends *e, enum wr_code op, enum setter s, bool address_first)
{
	const bool on_xrc = e->type == IBV_QPT_XRC_SEND;
	const struct pieces p = pieces_of(e, op, s);
	struct wr_args a = wr_args_of(e, op);
	char sent[MAX_DATA], remote_was[MAX_DATA + 16];
	struct far f = { 0 };
	int err;

	fill(e);
	if (is_allowed(op, s)) {
		if (wr_ops[op].receives)
			MUST_EQ(wr_recv(e, RECV_ID, MAX_DATA + 100), 0);
		if (op == OP_LOCAL_INV) {
			a.rkey = ibv_inc_rkey(e->mw->rkey);
			MUST(bind_by_post(e, 0, e->mw, e->lent, a.rkey));
		} else if (op == OP_SEND_INV) {
			MUST(far_open(e, &f, &a));
		}
	}
	memcpy(&a.compare, e->buf[1] + REMOTE_AT, 8);
	a.swap_or_add = 0x0123456789abcdefull;
	gather(e, &p, sent);
	memcpy(remote_was, e->buf[1] + REMOTE_AT - 8, sizeof(remote_was));

	ibv_wr_start(e->ex);
	e->ex->wr_id = ID;
	e->ex->wr_flags = IBV_SEND_SIGNALED;
	wr_build(e, op, &a);
	e->ex->wr_id = ~ID; /* they are the builder's: later changes are for the next one */
	e->ex->wr_flags = 0;
	if (wr_ops[op].addressed && address_first)
		wr_address(e);
	set_data(e, s, &p);
	if (wr_ops[op].addressed && !address_first)
		wr_address(e);
	err = ibv_wr_complete(e->ex);
	if (!is_allowed(op, s)) {
		MUST_EQ(err, EINVAL);
		return wr_nothing_was_posted(e);
	}
	MUST_EQ(err, 0);
	MUST(did(e, op, &a, &p, sent, remote_was));
	if (op == OP_BIND)
		MUST((on_xrc || window_is_open(e, a.rkey)) && unbound(e, true));
	else if (op == OP_LOCAL_INV)
		MUST(unbound(e, false));
	else if (op == OP_SEND_INV)
		MUST(far_invalidated(&f));
	return true;
}

static bool matrix(struct wr_ends *e)
{
	const bool has_address = e->type == IBV_QPT_UD || e->type == IBV_QPT_XRC_SEND;

	for (enum wr_code op = 0; op < OPS; op++) {
		if (!(wr_ops[op].services & (1u << e->type)))
			continue;
		/* The target of XRC has no send queue to bind a window with: a separate case. */
		if (op == OP_SEND_INV && e->xrcd)
			continue;
		for (int i = 0; i < SETTERS * (has_address ? 2 : 1); i++) {
			enum setter s = (enum setter)(i % SETTERS);

			if (!is_left_open(op, s) && !one(e, op, s, i >= SETTERS)) {
				printf("# ibv_wr_%s, %s, address %s\n", wr_ops[op].name,
				       setter_names[s], i >= SETTERS ? "first" : "last");
				return false;
			}
		}
	}
	return true;
}

static bool rc_every_operation_with_every_setter(void)
{
	return on_service(IBV_QPT_RC, matrix);
}

static bool uc_every_operation_with_every_setter(void)
{
	return on_service(IBV_QPT_UC, matrix);
}

static bool ud_every_operation_with_every_setter(void)
{
	return on_service(IBV_QPT_UD, matrix);
}

static bool xrc_every_operation_with_every_setter(void)
{
	return on_service(IBV_QPT_XRC_SEND, matrix);
}

/*
 * XRC carries the key to invalidate as RC does. None can be right, as a target binds no window: the
 * peer refuses it.
 */
static bool xrc_invalidates(struct wr_ends *e)
{
	struct wr_args a = wr_args_of(e, OP_SEND_INV);
	struct ibv_async_event event;
	struct ibv_wc wc;

	a.rkey = e->mw->rkey;
	MUST_EQ(wr_recv(e, RECV_ID, 100), 0);
	ibv_wr_start(e->ex);
	e->ex->wr_id = ID;
	e->ex->wr_flags = IBV_SEND_SIGNALED;
	wr_build(e, OP_SEND_INV, &a);
	wr_address(e);
	ibv_wr_set_inline_data(e->ex, e->buf[0], 9);
	MUST_EQ(ibv_wr_complete(e->ex), 0);
	MUST(wait_wc(e->cq[0], &wc));
	MUST(wc.status == IBV_WC_REM_ACCESS_ERR || wc.status == IBV_WC_REM_OP_ERR ||
	     wc.status == IBV_WC_REM_INV_REQ_ERR);
	MUST_EQ(wc.wr_id, ID);
	MUST_EQ(qp_state_now(e->qp[1]), IBV_QPS_ERR);
	MUST(next_async(&event));
	MUST_EQ(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
	MUST(event.element.qp == e->qp[1]);
	ibv_ack_async_event(&event);
	return true;
}

static bool xrc_sends_with_invalidate(void)
{
	return on_service(IBV_QPT_XRC_SEND, xrc_invalidates);
}

const struct test_case man_cases[] = {
	CASE(rc_every_operation_with_every_setter),
	CASE(uc_every_operation_with_every_setter),
	CASE(ud_every_operation_with_every_setter),
	CASE(xrc_every_operation_with_every_setter),
	CASE(xrc_sends_with_invalidate),
	{ 0 },
};
