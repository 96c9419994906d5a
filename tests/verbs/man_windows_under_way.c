/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san XROCE_CYCLES=1000 */
/* tier: long tsan */
/*
 * Windows that end while peers use them: ibv_dealloc_mw(3), ibv_bind_mw(3), LOCAL_INV and SEND with
 * invalidate of ibv_post_send(3), and what becomes of a window whose QP goes. End 1 owns the
 * memory, end 0 reaches for it.
 */
#include "man.h"

#define MESSAGE	  (4u << 20) /* more packets than are under way at a time */
#define SLOTS	  3u /* one more than is under way */
#define BYTES	  (SLOTS * MESSAGE)
#define IN_FLIGHT 2u
#define BEFORE	  3u /* requests that succeed first */
#define TIMES	  5
#define SECRET	  0xee

enum ending { INVALIDATED, DEALLOCATED, DEALLOCATED_1, UNBOUND_1, ENDINGS };

struct window {
	struct pair *p;
	struct ibv_mr *mr, *own; /* of end 1, of end 0 */
	struct ibv_mw *mw;
	unsigned char *mem, *buf;
	unsigned int sent, done;
	enum ibv_wc_status status; /* of the first that failed */
};

/* A request of end 1, which has been executed when this returns its status; -1 if it was not. */
static int local_request(struct window *w, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr->send_flags = IBV_SEND_SIGNALED;
	return !ibv_post_send(w->p->qp[1], wr, &bad) && wait_wc(w->p->cq[1], &wc) ? (int)wc.status :
										    -1;
}

static struct ibv_mw_bind_info window_bytes(struct window *w, uint64_t length)
{
	return (struct ibv_mw_bind_info){ w->mr, (uintptr_t)w->mem, length,
					  IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };
}

static int window_bind(struct window *w, uint64_t length)
{
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED,
				    .bind_info = window_bytes(w, length) };
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW };
	struct ibv_wc wc;

	if (w->mw->type == IBV_MW_TYPE_1)
		return !ibv_bind_mw(w->p->qp[1], w->mw, &bind) && wait_wc(w->p->cq[1], &wc) ?
			       (int)wc.status :
			       -1;
	wr.bind_mw.mw = w->mw;
	wr.bind_mw.rkey = ibv_inc_rkey(w->mw->rkey);
	wr.bind_mw.bind_info = window_bytes(w, length);
	return local_request(w, &wr);
}

static int window_invalidate(struct window *w)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = w->mw->rkey };

	return local_request(w, &wr);
}

/* A window on all of a region that is closed to peers itself. */
static bool window_open(struct window *w, struct pair *p, enum ibv_mw_type type)
{
	*w = (struct window){ .p = p };
	MUST((w->mem = calloc(1, BYTES)) && (w->buf = calloc(1, BYTES)));
	MUST(w->own = ibv_reg_mr(p->pd, w->buf, BYTES, IBV_ACCESS_LOCAL_WRITE));
	MUST(w->mr = ibv_reg_mr(p->pd, w->mem, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND));
	MUST(w->mw = ibv_alloc_mw(p->pd, type));
	MUST_EQ(window_bind(w, BYTES), IBV_WC_SUCCESS);
	MUST_EQ(ibv_dereg_mr(w->mr), EBUSY);
	return true;
}

static bool window_close(struct window *w)
{
	MUST(!w->mw || !ibv_dealloc_mw(w->mw));
	MUST(!w->mr || !ibv_dereg_mr(w->mr));
	MUST(!w->own || !ibv_dereg_mr(w->own));
	free(w->mem);
	free(w->buf);
	return true;
}

#define ON_WINDOW(name, type, body, ...)                                              \
	static bool name(void)                                                        \
	{                                                                             \
		struct pair p;                                                        \
		struct window w = { 0 };                                              \
		bool good = pair_open(&p, OPTIONS(__VA_ARGS__)) &&                    \
			    window_open(&w, &p, type) && body(&w);                    \
										      \
		good &= window_close(&w);                                             \
		return pair_close(&p) && good;                                        \
	}

/* ---- requests that are under way ---- */

static unsigned char number_of(unsigned int request)
{
	return (unsigned char)(1 + request % 100);
}

/* What the next READ or WRITE moves: its number. No request that is under way has this slot. */
static void fill_next(struct window *w, enum ibv_wr_opcode op)
{
	memset((op == IBV_WR_RDMA_WRITE ? w->buf : w->mem) + w->sent % SLOTS * MESSAGE,
	       number_of(w->sent), MESSAGE);
}

static bool post_next(struct window *w, enum ibv_wr_opcode op, uint32_t rkey)
{
	const uint32_t at = w->sent % SLOTS * MESSAGE;
	struct ibv_sge sge = { (uintptr_t)w->buf + at, MESSAGE, w->own->lkey };
	struct ibv_send_wr wr = { .wr_id = w->sent, .sg_list = &sge, .num_sge = 1, .opcode = op,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)w->mem + at;
	wr.wr.rdma.rkey = rkey;
	MUST_EQ(ibv_post_send(w->p->qp[0], &wr, &bad), 0);
	w->sent++;
	return true;
}

static bool keep_under_way(struct window *w, enum ibv_wr_opcode op, uint32_t rkey)
{
	while (w->sent - w->done < IN_FLIGHT) {
		fill_next(w, op);
		MUST(post_next(w, op, rkey));
	}
	return true;
}

/* One more completion, in order; what follows a failure is flushed. */
static bool take_next(struct window *w)
{
	struct ibv_wc wc;

	MUST(wait_wc(w->p->cq[0], &wc));
	MUST_EQ(wc.wr_id, w->done);
	w->done++;
	if (!w->status)
		w->status = wc.status;
	else
		MUST_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
	return true;
}

/* A byte that the device may be writing, which ThreadSanitizer is not to take for a mistake. */
__attribute__((noinline, no_sanitize("thread")))
static unsigned char peek(const volatile unsigned char *at)
{
	return *at;
}

/* The next message has begun: its first bytes are where they go. */
static bool has_begun(struct window *w, enum ibv_wr_opcode op)
{
	const unsigned char *const to = op == IBV_WR_RDMA_READ ? w->buf : w->mem;
	const unsigned char *const first = &to[w->done % SLOTS * MESSAGE];
	const long long end = clock_ns(CLOCK_MONOTONIC) + WAIT_MS * 1000000ll;

	while (peek(first) != number_of(w->done)) {
		MUST(cq_is_empty(w->p->cq[1]));
		MUST(clock_ns(CLOCK_MONOTONIC) < end);
	}
	return true;
}

static bool window_end(struct window *w, enum ending ending)
{
	if (ending == INVALIDATED) {
		MUST_EQ(window_invalidate(w), IBV_WC_SUCCESS);
	} else if (ending == UNBOUND_1) {
		MUST_EQ(window_bind(w, 0), IBV_WC_SUCCESS);
	} else {
		MUST_EQ(ibv_dealloc_mw(w->mw), 0);
		w->mw = NULL;
	}
	return true;
}

/*
 * After the window has ended, no WRITE changes a byte of its memory and no READ sees one, not even
 * half-done ones; and the first late request gives the reason.
 */
static bool ends_under_way(struct window *w, enum ibv_wr_opcode op, enum ending ending)
{
	const uint32_t rkey = w->mw->rkey;
	const unsigned char *last;
	unsigned char *then, was;

	while (w->done < BEFORE) {
		MUST(keep_under_way(w, op, rkey));
		MUST(take_next(w));
	}
	MUST_EQ(w->status, IBV_WC_SUCCESS);
	MUST(keep_under_way(w, op, rkey));
	MUST(has_begun(w, op));
	last = &w->mem[w->done % SLOTS * MESSAGE + MESSAGE - 1];
	MUST(window_end(w, ending));
	was = peek(last); /* at once: to copy all takes as long as a message */
	if (op == IBV_WR_RDMA_READ)
		memset(w->mem, SECRET, BYTES);
	MUST(then = malloc(BYTES));
	memcpy(then, w->mem, BYTES);
	/* one more, as earlier ones may all have arrived in time */
	if (op == IBV_WR_RDMA_WRITE)
		fill_next(w, op);
	MUST(post_next(w, op, rkey));
	while (w->done < w->sent)
		MUST(take_next(w));
	/*
	 * After a half-sent READ answer the responder reports the error once, and is in error then:
	 * if that NAK is lost, the requester's retries are not answered.
	 */
	if (op != IBV_WR_RDMA_READ || w->status != IBV_WC_RETRY_EXC_ERR)
		MUST_EQ(w->status, IBV_WC_REM_ACCESS_ERR);
	MUST(op == IBV_WR_RDMA_READ || peek(last) == was);
	MUST(!memcmp(then, w->mem, BYTES));
	MUST(!memchr(w->buf, SECRET, BYTES));
	free(then);
	return take_async(IBV_EVENT_QP_ACCESS_ERR, w->p->qp[1]);
}

static bool each_ending(enum ibv_wr_opcode op)
{
	for (enum ending e = INVALIDATED; e < ENDINGS; e++)
		for (int times = 0; times < TIMES; times++) {
			struct pair p;
			struct window w = { 0 };
			bool good = pair_open(&p, OPTIONS(0)) &&
				    window_open(&w, &p,
						e < DEALLOCATED_1 ? IBV_MW_TYPE_2 :
								    IBV_MW_TYPE_1) &&
				    ends_under_way(&w, op, e);

			if (!good)
				printf("# ending %d\n", e);
			good &= window_close(&w);
			MUST(pair_close(&p) && good);
		}
	return true;
}

static bool nothing_is_written_behind_its_end(void)
{
	return each_ending(IBV_WR_RDMA_WRITE);
}

static bool nothing_is_read_behind_its_end(void)
{
	return each_ending(IBV_WR_RDMA_READ);
}

/* ---- a SEND with invalidate that finds no receive ---- */

static int send_inv(struct window *w)
{
	struct ibv_sge sge = sge_of(w->p, 0, 0, 8);
	struct ibv_send_wr wr = { .wr_id = 5,
				  .opcode = IBV_WR_SEND_WITH_INV,
				  .invalidate_rkey = w->mw->rkey,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	return ibv_post_send(w->p->qp[0], &wr, &bad);
}

/* The window stays for as long as the receive is missing, and goes with it. */
static bool late_receive(struct window *w)
{
	struct ibv_wc wc;

	MUST_EQ(send_inv(w), 0);
	for (int i = 0; i < 20; i++) {
		usleep(1000); /* can only miss the bug, never make one */
		MUST(cq_is_empty(w->p->cq[0]) && cq_is_empty(w->p->cq[1]));
		MUST_EQ(ibv_dereg_mr(w->mr), EBUSY);
	}
	MUST_EQ(post_recv(w->p, 6, 0, 64), 0);
	MUST(wait_wc(w->p->cq[1], &wc));
	MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id == 6 && wc.byte_len == 8);
	MUST(wc.wc_flags & IBV_WC_WITH_INV);
	MUST_EQ(wc.invalidated_rkey, w->mw->rkey);
	MUST_EQ(ibv_dereg_mr(w->mr), 0);
	w->mr = NULL;
	MUST(wait_wc(w->p->cq[0], &wc));
	MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id == 5);
	return true;
}

ON_WINDOW(an_invalidation_waits_for_its_receive, IBV_MW_TYPE_2, late_receive)

/* The requester's retries end: the window is unchanged, for its owner to invalidate. */
static bool no_receive(struct window *w)
{
	struct ibv_wc wc;

	MUST_EQ(send_inv(w), 0);
	MUST(wait_wc(w->p->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_RNR_RETRY_EXC_ERR);
	MUST_EQ(qp_state_now(w->p->qp[1]), IBV_QPS_RTS);
	MUST_EQ(ibv_dereg_mr(w->mr), EBUSY);
	MUST_EQ(window_invalidate(w), IBV_WC_SUCCESS);
	MUST_EQ(ibv_dereg_mr(w->mr), 0);
	w->mr = NULL;
	return true;
}

ON_WINDOW(one_that_is_not_received_invalidates_nothing, IBV_MW_TYPE_2, no_receive, .rnr_retry = 1)

/* ---- a QP that goes before its windows ---- */

/*
 * Returns whether the window grants a READ by a QP that is connected to itself. If not, that QP
 * refuses as well, and may be in error before it gets the NAK: any failure will do.
 */
static bool opens_for_another(struct window *w, bool opens)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 8, NULL, NULL, 0);
	struct ibv_qp *qp = cq ? qp_to_itself(w->p->pd, cq, cq, NULL) : NULL;
	struct ibv_sge sge = sge_of(w->p, 0, 0, 8);
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_READ,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { (uintptr_t)w->mem, w->mw->rkey } },
			   *bad;
	struct ibv_wc wc;

	MUST(qp && !ibv_post_send(qp, &wr, &bad) && wait_wc(cq, &wc));
	MUST_EQ(wc.status == IBV_WC_SUCCESS, opens);
	MUST(opens || take_async(IBV_EVENT_QP_ACCESS_ERR, qp));
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	return true;
}

static bool owner_gone(struct window *w)
{
	MUST_EQ(ibv_destroy_qp(w->p->qp[1]), 0);
	w->p->qp[1] = NULL;
	MUST(opens_for_another(w, w->mw->type == IBV_MW_TYPE_1));
	MUST_EQ(ibv_dereg_mr(w->mr), EBUSY);
	MUST_EQ(ibv_dealloc_mw(w->mw), 0);
	w->mw = NULL;
	MUST_EQ(ibv_dereg_mr(w->mr), 0);
	w->mr = NULL;
	return true;
}

/* A window of type 1 belongs to its PD: the QP that bound it may go. */
ON_WINDOW(type1_outlives_its_queue_pair, IBV_MW_TYPE_1, owner_gone)
/* A QP with windows of type 2 may go (IBTA o10-2.2.5), and they open for no other. */
ON_WINDOW(type2_opens_for_nobody_without_its_queue_pair, IBV_MW_TYPE_2, owner_gone)

const struct test_case man_cases[] = {
	CASE(nothing_is_written_behind_its_end),
	CASE(nothing_is_read_behind_its_end),
	CASE(an_invalidation_waits_for_its_receive),
	CASE(one_that_is_not_received_invalidates_nothing),
	CASE(type1_outlives_its_queue_pair),
	CASE(type2_opens_for_nobody_without_its_queue_pair),
	{ 0 },
};
