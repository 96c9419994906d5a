/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long tsan */
/*
 * ibv_alloc_td(3): "any objects created under this thread domain will disable internal locking
 * designed to protect against concurrent access to that object from multiple user threads". The
 * locked instructions of each call of the data path are counted, step by step, on objects with and
 * without one. And threads that have a thread domain each work side by side (also under
 * ThreadSanitizer, which would see what two of them touch).
 */
#define _GNU_SOURCE
#include <signal.h>
#include <ucontext.h>

#include "man.h"

#define THREADS 4
#define ROUNDS	3000

static struct ibv_td *new_td(void)
{
	return ibv_alloc_td(ctx, &(struct ibv_td_init_attr){ 0 });
}

static struct ibv_pd *parent_of(struct ibv_pd *pd, struct ibv_td *td)
{
	return ibv_alloc_parent_domain(ctx,
				       &(struct ibv_parent_domain_init_attr){ .pd = pd, .td = td });
}

/* All that one thread has: a QP connected to itself, its CQs, an SRQ or none. */
struct own {
	struct ibv_td *td;
	struct ibv_pd *pd, *parent;
	struct ibv_cq *sends, *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char buf[2];
};

static struct ibv_cq *own_cq(struct own *o)
{
	return (struct ibv_cq *)ibv_create_cq_ex(
		ctx, &(struct ibv_cq_init_attr_ex){ .cqe = QUEUE,
						    .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
						    .parent_domain = o->parent });
}

/* "An application assigns verbs resources to a thread domain when it creates a verbs object." */
static bool own_open(struct own *o, bool with_td, bool with_srq)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = QUEUE, .max_sge = 1 } };
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_RC,
					    .cap = { QUEUE, with_srq ? 0 : QUEUE, 1, 1, 0 },
					    .comp_mask = IBV_QP_INIT_ATTR_PD |
							 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					    .send_ops_flags = IBV_QP_EX_WITH_SEND };

	memset(o, 0, sizeof(*o));
	MUST(o->pd = ibv_alloc_pd(ctx));
	if (with_td)
		MUST(o->td = new_td());
	MUST(o->parent = parent_of(o->pd, o->td));
	MUST((o->sends = own_cq(o)) && (o->cq = own_cq(o)));
	if (with_srq)
		MUST(o->srq = ibv_create_srq(o->parent, &srq));
	init.pd = o->parent;
	init.send_cq = o->sends;
	init.recv_cq = o->cq;
	init.srq = o->srq;
	MUST(o->qp = ibv_create_qp_ex(ctx, &init));
	MUST_EQ(qp_to_init(o->qp), 0);
	MUST_EQ(qp_to_rts(o->qp, o->qp->qp_num, 7), 0);
	MUST(o->mr = ibv_reg_mr(o->parent, o->buf, sizeof(o->buf), IBV_ACCESS_LOCAL_WRITE));
	return true;
}

static bool own_close(struct own *o)
{
	MUST_EQ(ibv_destroy_qp(o->qp), 0);
	MUST(!o->srq || ibv_destroy_srq(o->srq) == 0);
	MUST_EQ(ibv_destroy_cq(o->cq) | ibv_destroy_cq(o->sends), 0);
	MUST_EQ(ibv_dereg_mr(o->mr), 0);
	MUST_EQ(ibv_dealloc_pd(o->parent), 0);
	MUST(!o->td || ibv_dealloc_td(o->td) == 0);
	MUST_EQ(ibv_dealloc_pd(o->pd), 0);
	return true;
}

/* ---- locked instructions ---- */

static int call_post_recv(struct own *o)
{
	struct ibv_recv_wr rr = { .wr_id = 3 }, *bad;

	return ibv_post_recv(o->qp, &rr, &bad);
}

static int call_post_srq_recv(struct own *o)
{
	struct ibv_recv_wr rr = { .wr_id = 3 }, *bad;

	return ibv_post_srq_recv(o->srq, &rr, &bad);
}

/* Of an undefined opcode: no engine is notified of it, only the queue is locked and unlocked. */
static int call_post_send(struct own *o)
{
	struct ibv_send_wr wr = { .opcode = (enum ibv_wr_opcode)99 }, *bad;

	return ibv_post_send(o->qp, &wr, &bad) != EINVAL;
}

static int call_wr(struct own *o)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(o->qp);

	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, 0, 0, 0);
	ibv_wr_abort(ex);
	return 0;
}

/* The CQ holds a completion: no engine is run. */
static int call_poll(struct own *o)
{
	struct ibv_wc wc;

	return ibv_poll_cq(o->cq, 1, &wc) != 1 || wc.status != IBV_WC_SUCCESS;
}

static int call_start_poll(struct own *o)
{
	struct ibv_cq_ex *ex = (struct ibv_cq_ex *)o->cq;

	if (ibv_start_poll(ex, &(struct ibv_poll_cq_attr){ 0 }))
		return 1;
	ibv_end_poll(ex);
	return ex->status != IBV_WC_SUCCESS;
}

static const struct call {
	const char *name;
	int (*run)(struct own *o);
	bool srq, polls;
	/* paths without the user's locks: an engine that flushes must see a posted receive */
	int left;
} calls[] = {
	{ "ibv_post_recv", call_post_recv, .left = 1 },
	{ "ibv_post_srq_recv", call_post_srq_recv, .srq = true, .left = 1 },
	{ "ibv_post_send", call_post_send, .left = 0 },
	{ "ibv_wr_start", call_wr, .left = 0 },
	{ "ibv_poll_cq", call_poll, .polls = true },
	{ "ibv_start_poll", call_start_poll, .polls = true },
};

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define TRAP_FLAG 0x100

static volatile sig_atomic_t stepping, counting, locked, steps;

static bool is_locked(const unsigned char *b)
{
	int i = 0;

	while (b[i] == 0x66 || b[i] == 0xf2 || b[i] == 0xf3 || b[i] == 0x2e || b[i] == 0x3e)
		i++;
	if (b[i] == 0xf0)
		return true;
	if ((b[i] & 0xf0) == 0x40)
		i++;
	/* xchg with memory locks by itself */
	return (b[i] == 0x86 || b[i] == 0x87) && b[i + 1] >> 6 != 3;
}

/* Before each instruction of the thread, while its trap flag is set. */
static void on_step(int signo, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	if (stepping)
		regs[REG_EFL] |= TRAP_FLAG;
	else
		regs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
	if (counting) {
		steps++;
		locked += is_locked((const unsigned char *)regs[REG_RIP]);
	}
}

/* -1: the call failed. */
static int count(const struct call *call, struct own *o)
{
	struct sigaction act = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO }, old;
	int failed;

	/* symbols that are resolved at the first call lock the loader's tables */
	if (call->run(o) || sigaction(SIGTRAP, &act, &old))
		return -1;
	locked = steps = 0;
	stepping = 1;
	raise(SIGTRAP);
	counting = 1;
	failed = call->run(o);
	counting = 0;
	stepping = 0;
	raise(SIGTRAP);
	sigaction(SIGTRAP, &old, NULL);
	return failed || steps < 20 ? -1 : locked;
}

static bool count_case(const struct call *call, bool with_td, int *n)
{
	struct own o;

	MUST(own_open(&o, with_td, call->srq));
	if (call->polls) {
		/* a received message is in its CQ when its send completes */
		for (uint64_t i = 0; i < 2; i++) {
			struct ibv_wc wc;

			MUST(ping(o.qp, i, IBV_SEND_SIGNALED));
			MUST(wait_wc(o.sends, &wc));
		}
	}
	*n = count(call, &o);
	MUST(*n >= 0);
	return own_close(&o);
}

static bool locks_are_gone(void)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		int with = 0, without = 0;

		MUST(count_case(&calls[i], false, &with));
		MUST(count_case(&calls[i], true, &without));
		if (with != calls[i].left + 1 || without != calls[i].left) {
			printf("# %s: %d locked instructions, with a thread domain %d\n",
			       calls[i].name, with, without);
			return false;
		}
	}
	return true;
}
#else
/* The calls are right at least. */
static bool locks_are_gone(void)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct own o;

		MUST(own_open(&o, true, calls[i].srq));
		MUST(calls[i].polls || calls[i].run(&o) == 0);
		MUST(own_close(&o));
	}
	return true;
}
#endif

/* ---- threads side by side ---- */

static bool own_messages(struct own *o, int seed)
{
	struct ibv_sge from = { (uintptr_t)o->buf, 1, o->mr->lkey };
	struct ibv_sge to = { (uintptr_t)o->buf + 1, 1, o->mr->lkey };

	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_send_wr wr = { .wr_id = (uint64_t)i, .sg_list = &from, .num_sge = 1,
					  .opcode = IBV_WR_SEND }, *bad;
		struct ibv_recv_wr rr = { .wr_id = (uint64_t)i << 8, .sg_list = &to, .num_sge = 1 },
				   *bad_rr;
		struct ibv_wc wc;

		o->buf[0] = (char)(i * 3 + seed);
		/* an arrived message may be sent again until its sender has the ACK */
		wr.send_flags = IBV_SEND_SIGNALED;
		MUST_EQ(o->srq ? ibv_post_srq_recv(o->srq, &rr, &bad_rr) :
				 ibv_post_recv(o->qp, &rr, &bad_rr),
			0);
		MUST_EQ(ibv_post_send(o->qp, &wr, &bad), 0);
		MUST(wait_wc(o->cq, &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST_EQ(wc.wr_id, rr.wr_id);
		MUST(wait_wc(o->sends, &wc));
		MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id == wr.wr_id);
		MUST_EQ(o->buf[1], o->buf[0]);
	}
	return true;
}

static void *thread_main(void *arg)
{
	const int n = (int)(intptr_t)arg;
	struct own o;
	bool good;

	good = own_open(&o, true, n % 2) && own_messages(&o, n) && own_close(&o);
	return (void *)(intptr_t)good;
}

static bool a_thread_each(void)
{
	pthread_t thread[THREADS];
	bool good = true;
	void *result;

	for (int i = 0; i < THREADS; i++)
		MUST_EQ(pthread_create(&thread[i], NULL, thread_main, (void *)(intptr_t)i), 0);
	for (int i = 0; i < THREADS; i++) {
		MUST_EQ(pthread_join(thread[i], &result), 0);
		good &= result != NULL;
	}
	return good;
}

/* ---- references between objects ---- */

/* "All resources created with the td should be destroyed prior to deallocating the td." */
static bool is_held_by_each_domain(void)
{
	struct ibv_td *td[2] = { new_td(), new_td() };
	struct ibv_pd *pd[2] = { ibv_alloc_pd(ctx), ibv_alloc_pd(ctx) }, *parent[2][2], *above;

	for (int i = 0; i < 4; i++)
		MUST(parent[i & 1][i >> 1] = parent_of(pd[i >> 1], td[i & 1]));
	MUST(above = parent_of(parent[0][0], td[1]));
	MUST_EQ(ibv_dealloc_pd(parent[0][0]), EBUSY);
	MUST_EQ(ibv_dealloc_pd(parent[0][1]), 0);
	MUST_EQ(ibv_dealloc_td(td[0]), EBUSY);
	MUST_EQ(ibv_dealloc_pd(pd[1]), EBUSY);
	MUST_EQ(ibv_dealloc_pd(above), 0);
	MUST_EQ(ibv_dealloc_pd(parent[0][0]), 0);
	MUST_EQ(ibv_dealloc_td(td[0]), 0);
	MUST_EQ(ibv_dealloc_pd(pd[0]), EBUSY);
	MUST_EQ(ibv_dealloc_pd(parent[1][0]), 0);
	MUST_EQ(ibv_dealloc_pd(pd[0]), 0);
	MUST_EQ(ibv_dealloc_td(td[1]), EBUSY);
	MUST_EQ(ibv_dealloc_pd(pd[1]), EBUSY);
	MUST_EQ(ibv_dealloc_pd(parent[1][1]), 0);
	MUST_EQ(ibv_dealloc_td(td[1]), 0);
	MUST_EQ(ibv_dealloc_pd(pd[1]), 0);
	return true;
}

/* "NULL if the request fails", and nothing is held then */
static bool null_if_the_request_fails(void)
{
	struct ibv_td *td = new_td();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);

	MUST(td && pd);
	MUST_FAIL(ibv_alloc_td(ctx, &(struct ibv_td_init_attr){ .comp_mask = 1 }), EINVAL);
	MUST_FAIL(parent_of(NULL, td), EINVAL);
	pd->handle++;
	MUST_FAIL(parent_of(pd, td), ENOENT);
	pd->handle--;
	MUST_EQ(ibv_dealloc_td(td), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

const struct test_case man_cases[] = {
	CASE(locks_are_gone),
	CASE(a_thread_each),
	CASE(is_held_by_each_domain),
	CASE(null_if_the_request_fails),
	{ 0 },
};
