/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * Windows that are bound, used and invalidated in one list: keys sent right after their bind, SEND
 * with invalidate among other requests, windows of re-registered regions, atomics at the end of
 * windows and regions. ibv_bind_mw(3), ibv_post_send(3), docs/verbs.md.
 */
#include "man.h"

#define BIG   60000u /* bytes of a window: many packets */
#define TIMES 40
#define RIGHTS                                                                                     \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)
#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* End 1 owns the memory and the window, end 0 accesses it. */
struct window {
	struct pair p;
	struct ibv_mr *mr; /* of end 1's buffer, for windows */
	struct ibv_mw *mw;
};

static bool window_open(struct window *w, enum ibv_mw_type type)
{
	*w = (struct window){ 0 };
	MUST(pair_open(&w->p, OPTIONS(0)));
	MUST(w->mr = ibv_reg_mr(w->p.pd, w->p.buf[1], BUF_BYTES, RIGHTS));
	MUST(w->mw = ibv_alloc_mw(w->p.pd, type));
	return true;
}

static bool window_close(struct window *w)
{
	bool good = (!w->mw || !ibv_dealloc_mw(w->mw)) & (!w->mr || !ibv_dereg_mr(w->mr));

	if (!good)
		printf("# the window or its region refused to go\n");
	return pair_close(&w->p) && good;
}

#define ON_WINDOW(name, type, body)                                                                \
	static bool name(void)                                                                     \
	{                                                                                          \
		struct window w;                                                                   \
		bool good = window_open(&w, type) && body(&w);                                     \
                                                                                                   \
		return window_close(&w) && good;                                                   \
	}

static struct ibv_mw_bind_info info_of(const struct window *w, uint32_t offset, uint64_t length)
{
	return (struct ibv_mw_bind_info){ w->mr, (uintptr_t)w->p.buf[1] + offset, length, REMOTE };
}

static struct ibv_send_wr bind_wr(const struct window *w, uint32_t offset, uint64_t length)
{
	return (struct ibv_send_wr){ .opcode = IBV_WR_BIND_MW,
				     .bind_mw = { w->mw, ibv_inc_rkey(w->mw->rkey),
						  info_of(w, offset, length) } };
}

/* Returns the status of one signaled request at that end, -1 if it does not complete. */
static int run(struct window *w, int end, struct ibv_send_wr wr)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr.send_flags |= IBV_SEND_SIGNALED;
	return !ibv_post_send(w->p.qp[end], &wr, &bad) && wait_wc(w->p.cq[end], &wc) ?
		       (int)wc.status :
		       -1;
}

/* Binds the window, of either type. Returns the status of the bind. */
static int window_bind(struct window *w, uint32_t offset, uint64_t length)
{
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED,
				    .bind_info = info_of(w, offset, length) };
	struct ibv_wc wc;

	if (w->mw->type == IBV_MW_TYPE_2)
		return run(w, 1, bind_wr(w, offset, length));
	return !ibv_bind_mw(w->p.qp[1], w->mw, &bind) && wait_wc(w->p.cq[1], &wc) ? (int)wc.status :
										    -1;
}

static int window_invalidate(struct window *w)
{
	return run(
		w, 1,
		(struct ibv_send_wr){ .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = w->mw->rkey });
}

static struct ibv_send_wr by_key(struct window *w, struct ibv_sge *sge, enum ibv_wr_opcode op,
				 uint32_t offset)
{
	return (struct ibv_send_wr){ .sg_list = sge,
				     .num_sge = 1,
				     .opcode = op,
				     .wr.rdma = { (uintptr_t)w->p.buf[1] + offset, w->mw->rkey } };
}

static struct ibv_send_wr send_inv(struct ibv_sge *sge, uint32_t rkey)
{
	return (struct ibv_send_wr){ .sg_list = sge,
				     .num_sge = 1,
				     .opcode = IBV_WR_SEND_WITH_INV,
				     .invalidate_rkey = rkey };
}

static int recv_at(struct pair *p, int end, uint32_t offset, uint32_t length)
{
	struct ibv_sge sge = sge_of(p, end, offset, length);
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(p->qp[end], &wr, &bad);
}

/* ---- keys sent right after their bind ---- */

/* Posts an unsignaled bind and, immediately after it, a SEND of the new key. */
static bool bind_and_tell(struct window *w, uint32_t offset)
{
	const uint32_t key = ibv_inc_rkey(w->mw->rkey);
	struct ibv_sge sge = { (uintptr_t)&key, sizeof(key), 0 };
	struct ibv_send_wr tell = { .sg_list = &sge,
				    .num_sge = 1,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED },
			   bind = bind_wr(w, offset, BIG / 2), *bad;
	struct ibv_mw_bind bind1 = { .bind_info = info_of(w, offset, BIG / 2) };

	if (w->mw->type == IBV_MW_TYPE_2) {
		bind.next = &tell;
		MUST_EQ(ibv_post_send(w->p.qp[1], &bind, &bad), 0);
		MUST_EQ(w->mw->rkey, key);
	} else {
		MUST_EQ(ibv_bind_mw(w->p.qp[1], w->mw, &bind1), 0);
		sge.addr = (uintptr_t)&w->mw->rkey;
		MUST_EQ(ibv_post_send(w->p.qp[1], &tell, &bad), 0);
	}
	return true;
}

/* "The user may safely send the R_key using a send request on the same QP" */
static bool told_body(struct window *w)
{
	const bool is_type2 = w->mw->type == IBV_MW_TYPE_2;
	struct pair *p = &w->p;
	struct ibv_wc wc;
	uint32_t key;

	for (int i = 0; i < 3 * TIMES; i++) {
		const uint32_t offset = (uint32_t)(i % 7) * 1000;
		struct ibv_sge data = sge_of(p, 0, 64, BIG / 2), none = sge_of(p, 0, 0, 0);
		struct ibv_send_wr write, inv, *bad;

		MUST_EQ(recv_at(p, 0, 0, 4), 0);
		MUST_EQ(post_recv(p, 9, BUF_BYTES - 8, 8), 0);
		MUST(bind_and_tell(w, offset));
		MUST(wait_wc(p->cq[0], &wc) && wc.opcode == IBV_WC_RECV);
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		memcpy(&key, p->buf[0], 4);
		MUST_EQ(key, w->mw->rkey);
		memset(p->buf[0] + 64, i + 1, BIG / 2);
		write = by_key(w, &data, IBV_WR_RDMA_WRITE, offset);
		inv = send_inv(&none, key);
		if (!is_type2)
			inv.opcode = IBV_WR_SEND;
		inv.send_flags = IBV_SEND_SIGNALED;
		write.next = &inv;
		MUST_EQ(ibv_post_send(p->qp[0], &write, &bad), 0);
		MUST(wait_wc(p->cq[0], &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST_EQ(wc.opcode, IBV_WC_SEND);
		/* completions of the key's SEND and of the receive, in either order */
		for (int n = 0; n < 2; n++) {
			MUST(wait_wc(p->cq[1], &wc));
			MUST_EQ(wc.status, IBV_WC_SUCCESS);
			if (wc.opcode != IBV_WC_RECV)
				continue;
			MUST_EQ(!!(wc.wc_flags & IBV_WC_WITH_INV), is_type2);
			MUST(!is_type2 || wc.invalidated_rkey == key);
			MUST_EQ(wc.byte_len, 0);
		}
		MUST(!memcmp(p->buf[1] + offset, p->buf[0] + 64, BIG / 2));
	}
	return true;
}

ON_WINDOW(a_key_of_type1_is_sent_behind_its_bind, IBV_MW_TYPE_1, told_body)
ON_WINDOW(a_key_of_type2_is_sent_behind_its_bind, IBV_MW_TYPE_2, told_body)

/* ---- SEND with invalidate among other requests ---- */

/* In one list, requests before the invalidation succeed, and requests after it fail. */
static bool listed(struct window *w, uint32_t length)
{
	struct pair *p = &w->p;
	struct ibv_sge a = sge_of(p, 0, 0, BIG / 2), b = sge_of(p, 0, BIG / 2, BIG / 2),
		       message = sge_of(p, 0, 0, length);
	struct ibv_send_wr first, inv, second, *bad;
	static const int expected[] = { IBV_WC_SUCCESS, IBV_WC_SUCCESS, IBV_WC_REM_ACCESS_ERR };
	struct ibv_wc wc;

	memset(p->buf[0], 'a', BIG / 2);
	memset(p->buf[0] + BIG / 2, 'b', BIG / 2);
	memset(p->buf[1], 0, BUF_BYTES);
	MUST_EQ(window_bind(w, 0, BIG), IBV_WC_SUCCESS);
	MUST_EQ(post_recv(p, 9, BIG / 2, length ? length : 8), 0);
	first = by_key(w, &a, IBV_WR_RDMA_WRITE, 0);
	inv = send_inv(&message, w->mw->rkey);
	second = by_key(w, &b, IBV_WR_RDMA_WRITE, 0);
	first.next = &inv;
	inv.next = &second;
	first.send_flags = inv.send_flags = second.send_flags = IBV_SEND_SIGNALED;
	MUST_EQ(ibv_post_send(p->qp[0], &first, &bad), 0);
	for (int i = 0; i < 3; i++) {
		MUST(wait_wc(p->cq[0], &wc));
		MUST_EQ(wc.status, expected[i]);
	}
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.byte_len, length);
	MUST_EQ(wc.invalidated_rkey, w->mw->rkey);
	MUST(!memcmp(p->buf[1], p->buf[0], BIG / 2));
	MUST(!memcmp(p->buf[1] + BIG / 2, p->buf[0], length));
	MUST(take_async(IBV_EVENT_QP_ACCESS_ERR, p->qp[1]));
	/* unbound: the region is free and can be bound again */
	MUST_EQ(ibv_dereg_mr(w->mr), 0);
	MUST(w->mr = ibv_reg_mr(p->pd, p->buf[1], BUF_BYTES, RIGHTS));
	return pair_reconnect(p);
}

static bool lists_body(struct window *w)
{
	static const uint32_t lengths[] = { 0, 1, 1024, 1025, BIG / 2 };

	for (int i = 0; i < TIMES / 2; i++)
		MUST(listed(w, lengths[i % 5]));
	return true;
}

ON_WINDOW(an_invalidation_keeps_its_place_in_a_list, IBV_MW_TYPE_2, lists_body)

/* A fenced SEND with invalidate arrives only after the READs before it have all their data. */
static bool fenced_body(struct window *w)
{
	struct pair *p = &w->p;
	struct ibv_sge a = sge_of(p, 0, 0, BIG), none = sge_of(p, 0, 0, 0);
	struct ibv_wc wc;

	for (int i = 0; i < TIMES; i++) {
		struct ibv_send_wr read, inv, *bad;

		memset(p->buf[1], i + 1, BIG);
		MUST_EQ(window_bind(w, 0, BIG), IBV_WC_SUCCESS);
		MUST_EQ(post_recv(p, 9, BUF_BYTES - 8, 8), 0);
		read = by_key(w, &a, IBV_WR_RDMA_READ, 0);
		inv = send_inv(&none, w->mw->rkey);
		read.next = &inv;
		inv.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
		MUST_EQ(ibv_post_send(p->qp[0], &read, &bad), 0);
		MUST(wait_wc(p->cq[1], &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		/* the owner reuses the memory from now on */
		memset(p->buf[1], 0, BIG);
		MUST(wait_wc(p->cq[0], &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST_EQ(wc.opcode, IBV_WC_SEND);
		for (uint32_t k = 0; k < BIG; k++)
			MUST_EQ(p->buf[0][k], i + 1);
	}
	return true;
}

ON_WINDOW(a_fenced_invalidation_waits_for_reads, IBV_MW_TYPE_2, fenced_body)

/* A message that is too long for its receive fails, and invalidates nothing. */
static bool short_body(struct window *w)
{
	struct pair *p = &w->p;
	struct ibv_sge a = sge_of(p, 0, 0, 3000);
	struct ibv_wc wc;

	MUST_EQ(window_bind(w, 0, BIG), IBV_WC_SUCCESS);
	MUST_EQ(post_recv(p, 9, 0, 2000), 0);
	MUST_EQ(run(w, 0, send_inv(&a, w->mw->rkey)), IBV_WC_REM_INV_REQ_ERR);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_LOC_LEN_ERR);
	MUST_EQ(ibv_dereg_mr(w->mr), EBUSY);
	return true;
}

ON_WINDOW(a_message_too_long_invalidates_nothing, IBV_MW_TYPE_2, short_body)

/* LOCAL_INV and the next bind in one list, while the peer writes with the current key. */
static bool rebound_body(struct window *w)
{
	struct pair *p = &w->p;
	struct ibv_wc wc;

	MUST_EQ(window_bind(w, 0, 1024), IBV_WC_SUCCESS);
	for (int i = 1; i < 2 * TIMES; i++) {
		const uint32_t at = (uint32_t)(i % 8) * 4096;
		struct ibv_sge sge = sge_of(p, 0, 0, 1024);
		struct ibv_send_wr inv = { .opcode = IBV_WR_LOCAL_INV,
					   .invalidate_rkey = w->mw->rkey },
				   bind = bind_wr(w, at, 1024), *bad;

		inv.next = &bind;
		bind.send_flags = IBV_SEND_SIGNALED | (i % 2 ? IBV_SEND_FENCE : 0);
		MUST_EQ(ibv_post_send(p->qp[1], &inv, &bad), 0);
		MUST(wait_wc(p->cq[1], &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST_EQ(wc.opcode, IBV_WC_BIND_MW);
		memset(p->buf[0], i, 1024);
		MUST_EQ(run(w, 0, by_key(w, &sge, IBV_WR_RDMA_WRITE, at)), IBV_WC_SUCCESS);
		MUST(!memcmp(p->buf[1] + at, p->buf[0], 1024));
	}
	return true;
}

ON_WINDOW(invalidated_and_bound_in_one_list, IBV_MW_TYPE_2, rebound_body)

/* ---- windows of re-registered regions ---- */

/* A bind checks the region as it is at that time: bytes, rights, PD. */
static bool anew_body(struct window *w)
{
	struct pair *p = &w->p;
	struct ibv_pd *other = ibv_alloc_pd(ctx);
	struct ibv_sge sge = sge_of(p, 0, 0, 100);
	const int translation = IBV_REREG_MR_CHANGE_TRANSLATION, pd = IBV_REREG_MR_CHANGE_PD,
		  access = IBV_REREG_MR_CHANGE_ACCESS;
	struct ibv_mw_bind bind = { .bind_info = info_of(w, 8192, 100) };

	MUST(other);
	memset(p->buf[0], 'n', 100);
	MUST_EQ(window_bind(w, 0, 100), IBV_WC_SUCCESS);
	MUST_EQ(ibv_rereg_mr(w->mr, translation, NULL, p->buf[1] + 8192, 4096, 0),
		IBV_REREG_MR_ERR_INPUT);
	MUST_EQ(errno, EBUSY);
	MUST_EQ(run(w, 0, by_key(w, &sge, IBV_WR_RDMA_WRITE, 0)), IBV_WC_SUCCESS);
	if (w->mw->type == IBV_MW_TYPE_2)
		MUST_EQ(window_invalidate(w), IBV_WC_SUCCESS);
	else
		MUST_EQ(window_bind(w, 0, 0), IBV_WC_SUCCESS);
	MUST_EQ(ibv_rereg_mr(w->mr, translation, NULL, p->buf[1] + 8192, 4096, 0), 0);
	/* its new bytes */
	MUST_EQ(window_bind(w, 8192 + 3996, 100), IBV_WC_SUCCESS);
	MUST_EQ(run(w, 0, by_key(w, &sge, IBV_WR_RDMA_WRITE, 8192 + 3996)), IBV_WC_SUCCESS);
	MUST(!memcmp(p->buf[1] + 8192 + 3996, p->buf[0], 100));
	MUST_EQ(p->buf[1][8192 + 4096], 0);
	/* its old bytes; a failed bind leaves nothing that would keep the region in use */
	if (w->mw->type == IBV_MW_TYPE_2)
		MUST_EQ(window_invalidate(w), IBV_WC_SUCCESS);
	else
		MUST_EQ(window_bind(w, 0, 0), IBV_WC_SUCCESS);
	MUST_EQ(window_bind(w, 0, 100), IBV_WC_MW_BIND_ERR);
	MUST(pair_reconnect(p));
	MUST_EQ(window_bind(w, 8192 + 4000, 100), IBV_WC_MW_BIND_ERR);
	MUST(pair_reconnect(p));
	/* without the right to bind; of another PD; without local write */
	MUST_EQ(ibv_rereg_mr(w->mr, access, NULL, NULL, 0, RIGHTS & ~IBV_ACCESS_MW_BIND), 0);
	MUST_EQ(window_bind(w, 8192, 100), IBV_WC_MW_BIND_ERR);
	MUST(pair_reconnect(p));
	MUST_EQ(ibv_rereg_mr(w->mr, access, NULL, NULL, 0, IBV_ACCESS_MW_BIND), 0);
	MUST_EQ(window_bind(w, 8192, 100), IBV_WC_MW_BIND_ERR);
	MUST(pair_reconnect(p));
	MUST_EQ(ibv_rereg_mr(w->mr, access | pd, other, NULL, 0, RIGHTS), 0);
	if (w->mw->type == IBV_MW_TYPE_2) {
		MUST_EQ(window_bind(w, 8192, 100), IBV_WC_MW_BIND_ERR);
		MUST(pair_reconnect(p));
	} else { /* the header's ibv_bind_mw() */
		MUST_EQ(ibv_bind_mw(p->qp[1], w->mw, &bind), EPERM);
	}
	MUST_EQ(ibv_rereg_mr(w->mr, pd, p->pd, NULL, 0, 0), 0);
	MUST_EQ(window_bind(w, 8192, 100), IBV_WC_SUCCESS);
	MUST_EQ(run(w, 0, by_key(w, &sge, IBV_WR_RDMA_WRITE, 8192)), IBV_WC_SUCCESS);
	MUST_EQ(ibv_dealloc_pd(other), 0);
	return true;
}

ON_WINDOW(type1_over_a_region_registered_anew, IBV_MW_TYPE_1, anew_body)
ON_WINDOW(type2_over_a_region_registered_anew, IBV_MW_TYPE_2, anew_body)

/* ---- a queue pair that is reset ---- */

/*
 * Binds in the queue at a reset or an error create no window; the region can be deregistered. A
 * window bound earlier can be unbound, and another one bound.
 */
static bool reset_body(struct window *w)
{
	struct pair *p = &w->p;
	struct ibv_sge sge = sge_of(p, 0, 0, 100);
	struct ibv_mw *late = ibv_alloc_mw(p->pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr, *bad;
	struct ibv_wc wc;

	MUST(late);
	MUST_EQ(window_bind(w, 0, 100), IBV_WC_SUCCESS);
	MUST_EQ(qp_to_state(p->qp[1], IBV_QPS_ERR), 0);
	wr = bind_wr(w, 0, 100);
	wr.bind_mw.mw = late;
	wr.bind_mw.rkey = ibv_inc_rkey(late->rkey);
	MUST_EQ(ibv_post_send(p->qp[1], &wr, &bad), 0);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
	MUST(pair_reconnect(p));
	MUST_EQ(ibv_dealloc_mw(w->mw), 0);
	MUST(w->mw = ibv_alloc_mw(p->pd, IBV_MW_TYPE_2));
	MUST_EQ(ibv_dereg_mr(w->mr), 0);
	MUST(w->mr = ibv_reg_mr(p->pd, p->buf[1], BUF_BYTES, RIGHTS));
	MUST_EQ(ibv_dealloc_mw(late), 0);
	MUST_EQ(window_bind(w, 0, 100), IBV_WC_SUCCESS);
	MUST_EQ(run(w, 0, by_key(w, &sge, IBV_WR_RDMA_WRITE, 0)), IBV_WC_SUCCESS);
	/* also if the queue pair has changed state by then */
	MUST_EQ(qp_to_state(p->qp[1], IBV_QPS_RESET), 0);
	MUST_EQ(ibv_dealloc_mw(w->mw), 0);
	w->mw = NULL;
	MUST_EQ(ibv_dereg_mr(w->mr), 0);
	w->mr = NULL;
	return true;
}

ON_WINDOW(a_reset_leaves_windows_that_can_be_ended, IBV_MW_TYPE_2, reset_body)

/* ---- words at the end ---- */

struct word_end {
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	uint32_t rkey;
};

static bool word_end_make(struct window *w, struct word_end *t, int view, uint32_t length)
{
	struct ibv_send_wr wr = bind_wr(w, 64, length);

	*t = (struct word_end){ 0 };
	if (!view) {
		MUST(t->mr = ibv_reg_mr(w->p.pd, w->p.buf[1] + 64, length, RIGHTS));
		t->rkey = t->mr->rkey;
		return true;
	}
	MUST(t->mw = ibv_alloc_mw(w->p.pd, view == 1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2));
	if (view == 1) {
		struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED,
					    .bind_info = info_of(w, 64, length) };
		struct ibv_wc wc;

		MUST_EQ(ibv_bind_mw(w->p.qp[1], t->mw, &bind), 0);
		MUST(wait_wc(w->p.cq[1], &wc) && wc.status == IBV_WC_SUCCESS);
	} else {
		wr.bind_mw.mw = t->mw;
		wr.bind_mw.rkey = ibv_inc_rkey(t->mw->rkey);
		MUST_EQ(run(w, 1, wr), IBV_WC_SUCCESS);
	}
	t->rkey = t->mw->rkey;
	return true;
}

static bool word_at(struct window *w, uint32_t rkey, enum ibv_wr_opcode op, uint32_t offset,
		    int status)
{
	static const unsigned char filler[256] = { [0 ... 255] = 0x11 };
	struct pair *p = &w->p;
	struct ibv_sge sge = sge_of(p, 0, 0, 8);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = op };
	const uint64_t before = 0x1111111111111111, after = 0x0123456789abcdef;
	uint64_t word;

	memcpy(p->buf[1], filler, 256);
	memcpy(p->buf[0], &after, 8);
	if (op == IBV_WR_ATOMIC_WRITE) {
		wr.wr.rdma.remote_addr = (uintptr_t)p->buf[1] + 64 + offset;
		wr.wr.rdma.rkey = rkey;
	} else {
		wr.wr.atomic.remote_addr = (uintptr_t)p->buf[1] + 64 + offset;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.swap = after;
		wr.wr.atomic.compare_add =
			op == IBV_WR_ATOMIC_CMP_AND_SWP ? before : after - before;
	}
	MUST_EQ(run(w, 0, wr), status);
	memcpy(&word, p->buf[1] + 64 + offset, 8);
	MUST_EQ(word, status ? before : after);
	MUST(!memcmp(p->buf[1], filler, 64 + offset));
	MUST(!memcmp(p->buf[1] + 72 + offset, filler, 256 - 72 - offset));
	memcpy(&word, p->buf[0], 8);
	MUST_EQ(word, op == IBV_WR_ATOMIC_WRITE || status ? after : before);
	if (!status)
		return true;
	MUST(take_async(status == IBV_WC_REM_ACCESS_ERR ? IBV_EVENT_QP_ACCESS_ERR :
							  IBV_EVENT_QP_REQ_ERR,
			p->qp[1]));
	return pair_reconnect(p);
}

/* 8 bytes: inside, across the end, after the end. */
static bool ends_body(struct window *w)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_ATOMIC_FETCH_AND_ADD,
						  IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_WRITE };
	static const uint32_t lengths[] = { 1, 7, 8, 9, 15, 16, 24 };

	for (int i = 0; i < 3 * 7 * 3 * 4; i++) {
		const int view = i % 3, op = i / 3 % 3;
		const uint32_t length = lengths[i / 9 % 7], at = 8 * (uint32_t)(i / 63);
		struct word_end t;
		bool good = word_end_make(w, &t, view, length) &&
			    word_at(w, t.rkey, ops[op], at,
				    at + 8 <= length ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);

		if (!good)
			printf("# view %d, length %u, opcode %d, at %u\n", view, length, ops[op],
			       at);
		MUST(!t.mw || !ibv_dealloc_mw(t.mw));
		MUST(!t.mr || !ibv_dereg_mr(t.mr));
		MUST(good);
	}
	return true;
}

ON_WINDOW(words_at_the_end, IBV_MW_TYPE_2, ends_body)

/* docs/verbs.md: an unaligned address is REM_INV_REQ_ERR, "whatever its keys". */
static bool unaligned_body(struct window *w)
{
	const uint32_t keys[] = { w->p.mr[1]->rkey, w->p.mr[1]->rkey ^ 0x5500, 0, w->mw->rkey };

	for (int i = 0; i < 4; i++)
		for (uint32_t at = 1; at < 8; at += 3)
			for (int op = 0; op < 2; op++)
				MUST(word_at(w, keys[i],
					     op ? IBV_WR_ATOMIC_CMP_AND_SWP :
						  IBV_WR_ATOMIC_FETCH_AND_ADD,
					     at, IBV_WC_REM_INV_REQ_ERR));
	return true;
}

ON_WINDOW(unaligned_words_of_any_key, IBV_MW_TYPE_2, unaligned_body)

const struct test_case man_cases[] = {
	CASE(a_key_of_type1_is_sent_behind_its_bind),
	CASE(a_key_of_type2_is_sent_behind_its_bind),
	CASE(an_invalidation_keeps_its_place_in_a_list),
	CASE(a_fenced_invalidation_waits_for_reads),
	CASE(a_message_too_long_invalidates_nothing),
	CASE(invalidated_and_bound_in_one_list),
	CASE(type1_over_a_region_registered_anew),
	CASE(type2_over_a_region_registered_anew),
	CASE(a_reset_leaves_windows_that_can_be_ended),
	CASE(words_at_the_end),
	CASE(unaligned_words_of_any_key),
	{ 0 },
};
