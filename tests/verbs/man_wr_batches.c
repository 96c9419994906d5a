/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * ibv_wr_post(3), all but the table: "No work is executed to the queue until ibv_wr_complete()
 * returns success. ibv_wr_abort() will discard all work prepared", "If a failure is detected during
 * operation [...] the entire posting will be aborted", flags, limits, a mix with ibv_post_send(),
 * and the critical section.
 */
#include <sched.h>

#include "wr.h"

#define EACH(i, array) (unsigned int i = 0; i < sizeof(array) / sizeof((array)[0]); i++)

static const enum ibv_qp_type services[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND };

static bool on(enum ibv_qp_type type, bool (*body)(struct wr_ends *e))
{
	struct wr_ends e;
	bool good = wr_open(&e, type, wr_ops_of(type) & ~QP_EX_WITH_FLUSH) && body(&e);

	good &= wr_close(&e);
	if (!good)
		printf("# QP type %d\n", type);
	return good;
}

#define ON_ALL(name, body)                          \
	static bool name(void)                      \
	{                                           \
		for EACH(t, services)               \
			MUST(on(services[t], body)); \
		return true;                        \
	}

#define ON_RC(name, body)                     \
	static bool name(void)                \
	{                                     \
		return on(IBV_QPT_RC, body); \
	}

/* n SENDs, the i-th of i + 1 bytes with wr_id 100 + i. */
static void add_sends(struct wr_ends *e, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		wr_add_send(e, 100 + i, i + 1);
}

static bool post_receives(struct wr_ends *e, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		MUST_EQ(wr_recv(e, 200 + i, 1000), 0);
	return true;
}

/* They have arrived in order, and nothing more. */
static bool sends_arrived(struct wr_ends *e, uint32_t n)
{
	struct ibv_wc wc;

	for (uint32_t i = 0; i < n; i++) {
		MUST(wr_completed(e->cq[1], 200 + i, IBV_WC_RECV, &wc));
		MUST_EQ(wc.byte_len, i + 1 + wr_grh(e));
		MUST(wr_completed(e->cq[0], 100 + i, IBV_WC_SEND, &wc));
	}
	MUST(cq_is_empty(e->cq[0]) && cq_is_empty(e->cq[1]));
	return true;
}

/* From none to as many as the QP has, completed and aborted. */
static bool all_sizes(struct wr_ends *e)
{
	/* the SRQ's receives */
	const uint32_t max = e->max_send_wr < QUEUE ? e->max_send_wr : QUEUE;

	for (uint32_t n = 0; n <= max; n++) {
		ibv_wr_start(e->ex);
		add_sends(e, n);
		ibv_wr_abort(e->ex);
		MUST(wr_nothing_was_posted(e));
		MUST(post_receives(e, n));
		ibv_wr_start(e->ex);
		add_sends(e, n);
		MUST(cq_is_empty(e->cq[0]) && cq_is_empty(e->cq[1])); /* nothing until complete */
		MUST_EQ(ibv_wr_complete(e->ex), 0);
		MUST(sends_arrived(e, n));
	}
	return true;
}

ON_ALL(batches_of_each_size_complete_or_abort, all_sizes)

/* max_send_wr requests are taken, unsignaled ones too, and one more is ENOMEM for all of them. */
static bool full(struct wr_ends *e)
{
	struct wr_args a = wr_args_of(e, OP_WRITE);
	struct ibv_wc wc;

	for (int round = 0; round < 3; round++) {
		for (uint32_t more = 0; more < 2; more++) {
			e->ex->wr_flags = 0;
			ibv_wr_start(e->ex);
			for (uint32_t i = 0; i < e->max_send_wr + more; i++) {
				e->ex->wr_id = i;
				if (i + 1 == e->max_send_wr)
					e->ex->wr_flags = IBV_SEND_SIGNALED;
				wr_build(e, OP_WRITE, &a);
				wr_address(e);
				ibv_wr_set_sge(e->ex, e->mr[0]->lkey, (uintptr_t)e->buf[0], 8);
			}
			MUST_EQ(ibv_wr_complete(e->ex), more ? ENOMEM : 0);
			if (more)
				MUST(wr_nothing_was_posted(e));
			else
				MUST(wr_completed(e->cq[0], e->max_send_wr - 1, IBV_WC_RDMA_WRITE,
						  &wc));
		}
	}
	return true;
}

static bool a_full_queue_is_enomem(void)
{
	MUST(on(IBV_QPT_RC, full));
	MUST(on(IBV_QPT_UC, full));
	return on(IBV_QPT_XRC_SEND, full);
}

/* ---- errors ---- */

enum mistake {
	INLINE_TOO_LONG,
	INLINE_LIST_TOO_LONG,
	TOO_MANY_SGES,
	UNKNOWN_FLAG,
	SETTER_WITHOUT_BUILDER,
	ADDRESS_WITHOUT_BUILDER,
	NO_ADDRESS,
	UNALIGNED_ATOMIC_WRITE,
	WINDOW_OF_TYPE_1,
	NO_WINDOW,
	MISTAKES
};

static bool has_mistake(const struct wr_ends *e, enum mistake m)
{
	switch (m) {
	case ADDRESS_WITHOUT_BUILDER:
	case NO_ADDRESS: return e->type == IBV_QPT_UD || e->type == IBV_QPT_XRC_SEND;
	case UNALIGNED_ATOMIC_WRITE: return e->type == IBV_QPT_RC || e->type == IBV_QPT_XRC_SEND;
	case WINDOW_OF_TYPE_1:
	case NO_WINDOW: return e->type != IBV_QPT_UD;
	default: return true;
	}
}

static void make(struct wr_ends *e, enum mistake m, struct ibv_mw *type1)
{
	struct wr_args a = wr_args_of(e, OP_BIND);
	struct ibv_sge sge[64];
	struct ibv_data_buf data[2] = { { e->buf[0], e->max_inline_data }, { e->buf[0], 1 } };

	for (int i = 0; i < 64; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)e->buf[0], 1, e->mr[0]->lkey };
	if (m == SETTER_WITHOUT_BUILDER) {
		ibv_wr_set_sge(e->ex, e->mr[0]->lkey, (uintptr_t)e->buf[0], 1);
		return;
	}
	if (m == ADDRESS_WITHOUT_BUILDER) {
		wr_address(e);
		return;
	}
	if (m == UNALIGNED_ATOMIC_WRITE) {
		a = wr_args_of(e, OP_ATOMIC_WRITE);
		a.remote += 4;
		wr_build(e, OP_ATOMIC_WRITE, &a);
		wr_address(e);
		return;
	}
	if (m == WINDOW_OF_TYPE_1 || m == NO_WINDOW) {
		a.mw = m == NO_WINDOW ? NULL : type1;
		wr_build(e, OP_BIND, &a);
		return;
	}
	if (m == UNKNOWN_FLAG)
		e->ex->wr_flags |= 1u << 20;
	ibv_wr_send(e->ex);
	e->ex->wr_flags = IBV_SEND_SIGNALED;
	if (m != NO_ADDRESS)
		wr_address(e);
	if (m == INLINE_TOO_LONG)
		ibv_wr_set_inline_data(e->ex, e->buf[0], e->max_inline_data + 1);
	else if (m == INLINE_LIST_TOO_LONG)
		ibv_wr_set_inline_data_list(e->ex, 2, data);
	else if (m == TOO_MANY_SGES)
		ibv_wr_set_sge_list(e->ex, e->max_send_sge + 1, sge);
	else
		ibv_wr_set_sge(e->ex, e->mr[0]->lkey, (uintptr_t)e->buf[0], 1);
}

/* At the start of a list, in its middle, at its end: all of it is refused, and only it. */
static bool mistakes(struct wr_ends *e)
{
	struct ibv_mw *type1 = ibv_alloc_mw(e->pd, IBV_MW_TYPE_1);
	int err;

	MUST(type1 && e->max_send_sge < 64);
	for (enum mistake m = 0; m < MISTAKES; m++)
		for (uint32_t before = 0; has_mistake(e, m) && before < 3; before++) {
			e->ex->wr_flags = IBV_SEND_SIGNALED;
			ibv_wr_start(e->ex);
			if (m == SETTER_WITHOUT_BUILDER || m == ADDRESS_WITHOUT_BUILDER) {
				make(e, m, type1);
				add_sends(e, before);
			} else {
				add_sends(e, before);
				make(e, m, type1);
			}
			add_sends(e, 2 - before);
			err = ibv_wr_complete(e->ex);
			if (err != EINVAL &&
			    !(err == ENOMEM &&
			      (m == INLINE_TOO_LONG || m == INLINE_LIST_TOO_LONG))) {
				printf("# mistake %d after %u: %d\n", m, before, err);
				return false;
			}
			MUST(wr_nothing_was_posted(e));
			/* An abort forgets it as well. */
			ibv_wr_start(e->ex);
			make(e, m, type1);
			ibv_wr_abort(e->ex);
			MUST(wr_nothing_was_posted(e));
		}
	return !ibv_dealloc_mw(type1);
}

ON_ALL(one_mistake_refuses_the_whole_list, mistakes)

/* A window has its new key when the list that binds it is posted, and not before. */
static bool window_keys(struct wr_ends *e)
{
	const uint32_t before = e->mw->rkey, next = ibv_inc_rkey(before);
	struct wr_args a = wr_args_of(e, OP_BIND);
	struct ibv_wc wc;

	for (int how = 0; how < 3; how++) {
		ibv_wr_start(e->ex);
		e->ex->wr_id = 1;
		e->ex->wr_flags = IBV_SEND_SIGNALED;
		wr_build(e, OP_BIND, &a);
		MUST_EQ(e->mw->rkey, before);
		if (how == 0) {
			ibv_wr_abort(e->ex);
		} else if (how == 1) {
			make(e, INLINE_TOO_LONG, NULL);
			MUST(ibv_wr_complete(e->ex));
		} else {
			MUST_EQ(ibv_wr_complete(e->ex), 0);
			MUST(wr_completed(e->cq[0], 1, IBV_WC_BIND_MW, &wc));
		}
		MUST_EQ(e->mw->rkey, how == 2 ? next : before);
	}
	return true;
}

static bool a_list_that_fails_leaves_the_windows_key(void)
{
	MUST(on(IBV_QPT_RC, window_keys));
	return on(IBV_QPT_UC, window_keys);
}

/* An exact fit is no error. */
static bool just_fits(struct wr_ends *e)
{
	struct ibv_sge sge[64];
	struct ibv_wc wc;

	for (uint32_t i = 0; i < e->max_send_sge; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)e->buf[0] + i * 10, 2, e->mr[0]->lkey };
	for (uint32_t i = 0; i < 1000; i++)
		e->buf[0][i] = (char)(i + 1);
	MUST(post_receives(e, 2));
	ibv_wr_start(e->ex);
	e->ex->wr_flags = IBV_SEND_SIGNALED;
	e->ex->wr_id = 1;
	ibv_wr_send(e->ex);
	wr_address(e);
	ibv_wr_set_inline_data(e->ex, e->buf[0], e->max_inline_data);
	e->ex->wr_id = 2;
	ibv_wr_send(e->ex);
	wr_address(e);
	ibv_wr_set_sge_list(e->ex, e->max_send_sge, sge);
	MUST_EQ(ibv_wr_complete(e->ex), 0);
	MUST(wr_completed(e->cq[1], 200, IBV_WC_RECV, &wc));
	MUST_EQ(wc.byte_len, e->max_inline_data + wr_grh(e));
	MUST(wr_completed(e->cq[1], 201, IBV_WC_RECV, &wc));
	MUST_EQ(wc.byte_len, 2 * e->max_send_sge + wr_grh(e));
	for (uint32_t i = 0; i < 2 * e->max_send_sge; i++)
		MUST_EQ(e->buf[1][wr_grh(e) + i], e->buf[0][i / 2 * 10 + i % 2]);
	return wr_completed(e->cq[0], 1, IBV_WC_SEND, &wc) &&
	       wr_completed(e->cq[0], 2, IBV_WC_SEND, &wc);
}

ON_ALL(what_just_fits_is_sent, just_fits)

/* Before RTS nothing can be sent; in ERR all of it is flushed. */
static bool states(struct wr_ends *e)
{
	struct ibv_wc wc;

	MUST_EQ(qp_to_state(e->qp[0], IBV_QPS_RESET), 0);
	ibv_wr_start(e->ex);
	add_sends(e, 2);
	MUST_EQ(ibv_wr_complete(e->ex), EINVAL);
	MUST(wr_again(e));
	MUST(wr_nothing_was_posted(e));
	MUST_EQ(qp_to_state(e->qp[0], IBV_QPS_ERR), 0);
	ibv_wr_start(e->ex);
	add_sends(e, 3);
	MUST_EQ(ibv_wr_complete(e->ex), 0);
	for (uint64_t i = 0; i < 3; i++) {
		MUST(wait_wc(e->cq[0], &wc));
		MUST_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
		MUST_EQ(wc.wr_id, 100 + i);
	}
	return true;
}

ON_ALL(states_are_those_of_ibv_post_send, states)

/* ---- flags ---- */

/* Without IBV_SEND_SIGNALED: done, and no completion. */
static bool unsignaled(struct wr_ends *e)
{
	for (enum wr_code op = 0; op < OPS; op++) {
		struct wr_args a = wr_args_of(e, op);

		if (!(wr_ops[op].services & 1u << e->type) || op == OP_SEND_INV || op == OP_FLUSH)
			continue;
		if (op == OP_LOCAL_INV)
			a.rkey = ibv_inc_rkey(e->mw->rkey);
		for (unsigned int flags = 0; flags < 8; flags++) {
			struct ibv_wc wc;

			if (flags & IBV_SEND_SIGNALED)
				continue;
			if (op == OP_LOCAL_INV || op == OP_BIND) {
				/* a window is bound and invalidated: both in one list */
				a.rkey = ibv_inc_rkey(e->mw->rkey);
			}
			if (wr_ops[op].receives)
				MUST_EQ(wr_recv(e, 300, 1000), 0);
			ibv_wr_start(e->ex);
			e->ex->wr_id = 400;
			e->ex->wr_flags = flags;
			if (op == OP_LOCAL_INV)
				wr_build(e, OP_BIND, &a);
			wr_build(e, op, &a);
			if (wr_ops[op].addressed)
				wr_address(e);
			if (wr_ops[op].data != DATA_NONE)
				ibv_wr_set_sge(e->ex, e->mr[0]->lkey,
					       (uintptr_t)e->buf[0] + 2000, 8);
			if (op == OP_BIND)
				wr_build(e, OP_LOCAL_INV, &a);
			MUST_EQ(ibv_wr_complete(e->ex), 0);
			if (wr_ops[op].receives) {
				MUST(wait_wc(e->cq[1], &wc));
				MUST_EQ(wc.status, IBV_WC_SUCCESS);
				MUST_EQ(wc.wr_id, 300);
				MUST_EQ(wc.byte_len, 8 + wr_grh(e));
			}
			MUST(wr_nothing_was_posted(e)); /* its SEND's completion is the first */
		}
	}
	return true;
}

ON_ALL(unsignaled_work_has_no_completion, unsignaled)

/* "Set the solicited bit": a CQ that is armed for solicited ones has an event for it alone. */
static bool solicited(struct wr_ends *e)
{
	static const enum wr_code ops[] = { OP_SEND, OP_SEND_IMM, OP_WRITE_IMM };
	struct ibv_wc wc;

	for EACH(i, ops) {
		const struct wr_op *o = &wr_ops[ops[i]];
		struct wr_args a = wr_args_of(e, ops[i]);

		if (!(o->services & 1u << e->type))
			continue;
		MUST_EQ(ibv_req_notify_cq(e->cq[1], 1), 0);
		for (int is = 0; is < 2; is++) {
			MUST_EQ(wr_recv(e, 1, 1000), 0);
			ibv_wr_start(e->ex);
			e->ex->wr_id = 2;
			e->ex->wr_flags = IBV_SEND_SIGNALED | (is ? IBV_SEND_SOLICITED : 0);
			wr_build(e, ops[i], &a);
			wr_address(e);
			ibv_wr_set_inline_data(e->ex, e->buf[0], 10);
			MUST_EQ(ibv_wr_complete(e->ex), 0);
			MUST(wait_wc(e->cq[1], &wc) && wait_wc(e->cq[0], &wc));
			if (is)
				MUST(take_cq_event(e->channel, e->cq[1]));
			else
				MUST(no_cq_event(e->channel));
		}
	}
	return true;
}

ON_ALL(the_solicited_bit_is_told, solicited)

/* "Do not start this work request until prior work has completed": what a READ fetches is sent. */
static bool fenced(struct wr_ends *e)
{
	const uint32_t length = 20000;
	struct wr_args a = wr_args_of(e, OP_READ);
	struct ibv_wc wc;

	for (int round = 0; round < 20; round++) {
		memset(e->buf[0], 'o', BUF_BYTES);
		memset(e->buf[1], 'a' + round, BUF_BYTES);
		MUST_EQ(wr_recv(e, 1, BUF_BYTES / 2), 0);
		a.remote = (uintptr_t)e->buf[1] + BUF_BYTES / 2;
		ibv_wr_start(e->ex);
		e->ex->wr_flags = 0;
		wr_build(e, OP_READ, &a);
		wr_address(e);
		ibv_wr_set_sge(e->ex, e->mr[0]->lkey, (uintptr_t)e->buf[0], length);
		e->ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
		e->ex->wr_id = 2;
		ibv_wr_send(e->ex);
		wr_address(e);
		ibv_wr_set_sge(e->ex, e->mr[0]->lkey, (uintptr_t)e->buf[0], length);
		MUST_EQ(ibv_wr_complete(e->ex), 0);
		MUST(wr_completed(e->cq[1], 1, IBV_WC_RECV, &wc));
		for (uint32_t i = 0; i < length; i++)
			MUST_EQ(e->buf[1][i], 'a' + round);
		MUST(wr_completed(e->cq[0], 2, IBV_WC_SEND, &wc));
	}
	return true;
}

static bool a_fence_waits_for_reads(void)
{
	MUST(on(IBV_QPT_RC, fenced));
	return on(IBV_QPT_XRC_SEND, fenced);
}

/* IBV_SEND_INLINE is a setter's affair here: as a flag it changes nothing about the data. */
static bool inline_flag(struct wr_ends *e)
{
	struct ibv_wc wc;

	memset(e->buf[0], 'i', 100);
	MUST_EQ(wr_recv(e, 1, 1000), 0);
	ibv_wr_start(e->ex);
	e->ex->wr_id = 2;
	e->ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
	ibv_wr_send(e->ex);
	wr_address(e);
	ibv_wr_set_inline_data(e->ex, e->buf[0], 20);
	memset(e->buf[0], 'x', 100);
	MUST_EQ(ibv_wr_complete(e->ex), 0);
	MUST(wr_completed(e->cq[1], 1, IBV_WC_RECV, &wc));
	MUST_EQ(wc.byte_len, 20 + wr_grh(e));
	MUST_EQ(memcmp(e->buf[1] + wr_grh(e), "iiiiiiiiiiiiiiiiiiii", 20), 0);
	return wr_completed(e->cq[0], 2, IBV_WC_SEND, &wc);
}

ON_ALL(the_inline_flag_goes_with_inline_data, inline_flag)

/* ---- mixed with ibv_post_send(), and other threads ---- */

static int plain_send(struct wr_ends *e, uint64_t wr_id, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)e->buf[0], length, e->mr[0]->lkey };
	struct ibv_send_wr wr = { .wr_id = wr_id, .opcode = IBV_WR_SEND, .sg_list = &sge,
				  .num_sge = 1, .send_flags = IBV_SEND_SIGNALED }, *bad;

	if (e->type == IBV_QPT_UD) {
		wr.wr.ud.ah = e->ah;
		wr.wr.ud.remote_qpn = e->qp[1]->qp_num;
		wr.wr.ud.remote_qkey = UD_QKEY;
	} else if (e->type == IBV_QPT_XRC_SEND) {
		wr.qp_type.xrc.remote_srqn = e->srqn;
	}
	return ibv_post_send(e->qp[0], &wr, &bad);
}

/* "WRs batches of ibv_post_send() and this API WRs batches can interleave" */
static bool interleaved(struct wr_ends *e)
{
	for (int round = 0; round < 10; round++) {
		MUST(post_receives(e, 6));
		MUST_EQ(plain_send(e, 100, 1), 0);
		ibv_wr_start(e->ex);
		wr_add_send(e, 101, 2);
		wr_add_send(e, 102, 3);
		MUST_EQ(ibv_wr_complete(e->ex), 0);
		MUST_EQ(plain_send(e, 103, 4), 0);
		ibv_wr_start(e->ex);
		wr_add_send(e, 777, 9);
		ibv_wr_abort(e->ex);
		MUST_EQ(plain_send(e, 104, 5), 0);
		ibv_wr_start(e->ex);
		wr_add_send(e, 105, 6);
		MUST_EQ(ibv_wr_complete(e->ex), 0);
		MUST(sends_arrived(e, 6));
	}
	return true;
}

ON_ALL(batches_of_both_kinds_keep_their_order, interleaved)

/* It is one QP's: while it is open the peer's requests are answered, and others may post. */
static bool open_section(struct wr_ends *e)
{
	struct ibv_sge sge = { (uintptr_t)e->buf[1], 8, e->mr[1]->lkey };
	struct ibv_send_wr wr = { .wr_id = 1, .opcode = IBV_WR_RDMA_READ, .sg_list = &sge,
				  .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { (uintptr_t)e->buf[0], e->mr[0]->rkey } }, *bad;
	struct ibv_wc wc;

	memcpy(e->buf[0], "answered", 8);
	MUST(post_receives(e, 1));
	ibv_wr_start(e->ex);
	wr_add_send(e, 100, 1);
	MUST_EQ(ibv_post_send(e->qp[1], &wr, &bad), 0);
	MUST(wr_completed(e->cq[1], 1, IBV_WC_RDMA_READ, &wc));
	MUST_EQ(memcmp(e->buf[1], "answered", 8), 0);
	MUST(cq_is_empty(e->cq[0]));
	MUST_EQ(ibv_wr_complete(e->ex), 0);
	return sends_arrived(e, 1);
}

ON_RC(an_open_section_holds_up_nobody_else, open_section)

struct other {
	struct wr_ends *e;
	atomic_bool inside;
	atomic_int *taken; /* completions that were polled */
	int err;
};

static void *enters(void *arg)
{
	struct other *o = arg;

	ibv_wr_start(o->e->ex);
	atomic_store(&o->inside, true);
	wr_add_send(o->e, 102, 3);
	o->err = ibv_wr_complete(o->e->ex);
	return NULL;
}

/* "a per-QP critical section where no other threads can enter" */
static bool section(struct wr_ends *e)
{
	struct other o = { .e = e };
	pthread_t thread;

	MUST(post_receives(e, 3));
	ibv_wr_start(e->ex);
	wr_add_send(e, 100, 1);
	MUST_EQ(pthread_create(&thread, NULL, enters, &o), 0);
	usleep(20000); /* can only miss the bug, never make one */
	MUST(!atomic_load(&o.inside));
	wr_add_send(e, 101, 2);
	MUST_EQ(ibv_wr_complete(e->ex), 0);
	MUST_EQ(pthread_join(thread, NULL), 0);
	MUST_EQ(o.err, 0);
	return sends_arrived(e, 3);
}

ON_ALL(no_other_thread_enters_the_section, section)

#define LISTS	 2000
#define UNPOLLED 20 /* lists of a thread ahead of the completions that were polled */

static void *posts_lists(void *arg)
{
	struct other *o = arg;
	struct wr_ends *e = o->e;
	struct wr_args a = wr_args_of(e, OP_FETCH_ADD);
	int turns = 0;

	a.swap_or_add = 1;
	for (int i = 0; i < LISTS && !o->err;) {
		while (2 * i > atomic_load(o->taken) + UNPOLLED)
			sched_yield();
		ibv_wr_start(e->ex);
		for (int n = 0; n < 3; n++) {
			e->ex->wr_id = (uint64_t)n;
			e->ex->wr_flags = n == 2 ? IBV_SEND_SIGNALED : 0;
			wr_build(e, OP_FETCH_ADD, &a);
			ibv_wr_set_sge(e->ex, e->mr[0]->lkey, (uintptr_t)e->buf[0], 8);
		}
		if (++turns % 3 == 0) { /* an aborted one leaves no trace */
			ibv_wr_abort(e->ex);
			continue;
		}
		o->err = ibv_wr_complete(e->ex);
		if (!o->err) {
			i++;
		} else if (o->err == ENOMEM) { /* full for now */
			o->err = 0;
			sched_yield();
		}
	}
	return NULL;
}

/* Lists of two threads, each whole or not at all: a count of operations done at the peer. */
static bool two_threads(struct wr_ends *e)
{
	atomic_int taken = 0;
	struct other o[2] = { { .e = e, .taken = &taken }, { .e = e, .taken = &taken } };
	pthread_t thread[2];
	uint64_t count = 0;
	struct ibv_wc wc;

	memset(e->buf[1] + REMOTE_AT, 0, 8);
	for (int i = 0; i < 2; i++)
		MUST_EQ(pthread_create(&thread[i], NULL, posts_lists, &o[i]), 0);
	for (int i = 0; i < 2 * LISTS; i++, atomic_fetch_add(&taken, 1))
		MUST(wr_completed(e->cq[0], 2, IBV_WC_FETCH_ADD, &wc));
	for (int i = 0; i < 2; i++)
		MUST_EQ(pthread_join(thread[i], NULL), 0);
	memcpy(&count, e->buf[1] + REMOTE_AT, 8);
	MUST_EQ(count, 3 * 2 * LISTS);
	return wr_nothing_was_posted(e);
}

ON_RC(lists_of_two_threads_stay_whole, two_threads)

const struct test_case man_cases[] = {
	CASE(batches_of_each_size_complete_or_abort),
	CASE(a_full_queue_is_enomem),
	CASE(one_mistake_refuses_the_whole_list),
	CASE(a_list_that_fails_leaves_the_windows_key),
	CASE(what_just_fits_is_sent),
	CASE(states_are_those_of_ibv_post_send),
	CASE(unsignaled_work_has_no_completion),
	CASE(the_solicited_bit_is_told),
	CASE(a_fence_waits_for_reads),
	CASE(the_inline_flag_goes_with_inline_data),
	CASE(batches_of_both_kinds_keep_their_order),
	CASE(an_open_section_holds_up_nobody_else),
	CASE(no_other_thread_enters_the_section),
	CASE(lists_of_two_threads_stay_whole),
	{ 0 },
};
