/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One man page's cases on one device against itself: man_PAGE DEVICE. It links with libibverbs and
 * nothing of this project.
 */
#include <sched.h>
#include <sys/wait.h>
#include <time.h>

#include "man.h"

long long clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

bool take_cq_event(struct ibv_comp_channel *ch, struct ibv_cq *want)
{
	struct ibv_cq *cq;
	void *context;

	MUST(readable(ch->fd, WAIT_MS));
	MUST_EQ(ibv_get_cq_event(ch, &cq, &context), 0);
	MUST(cq == want && context == want->cq_context);
	ibv_ack_cq_events(cq, 1);
	return true;
}

bool next_async(struct ibv_async_event *event)
{
	MUST(readable(ctx->async_fd, WAIT_MS));
	MUST_EQ(ibv_get_async_event(ctx, event), 0);
	return true;
}

bool take_async(enum ibv_event_type type, const void *object)
{
	struct ibv_async_event event;

	MUST(next_async(&event));
	MUST_EQ(event.event_type, type);
	MUST(event.element.qp == object);
	ibv_ack_async_event(&event);
	return true;
}

int qp_state_now(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	return ibv_query_qp(qp, &a, IBV_QP_STATE, &init) ? -1 : (int)a.qp_state;
}

int qp_to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = { .qp_state = state };

	return ibv_modify_qp(qp, &a, IBV_QP_STATE);
}

bool pair_reconnect(struct pair *p)
{
	struct ibv_wc wc;

	for (int i = 0; i < 2; i++)
		MUST_EQ(qp_to_state(p->qp[i], IBV_QPS_RESET), 0);
	for (int i = 0; i < 2; i++) {
		while (ibv_poll_cq(p->cq[i], 1, &wc) > 0)
			;
		MUST_EQ(qp_to_init(p->qp[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		MUST_EQ(qp_to_rts(p->qp[i], p->qp[!i]->qp_num, 7), 0);
	return true;
}

struct ibv_qp *qp_to_itself(struct ibv_pd *pd, struct ibv_cq *send_cq, struct ibv_cq *recv_cq,
			    struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = { .send_cq = send_cq,
					 .recv_cq = recv_cq,
					 .srq = srq,
					 .qp_type = IBV_QPT_RC,
					 .cap = { QUEUE, srq ? 0 : QUEUE, 1, srq ? 0 : 1, 0 } };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	return qp && !qp_to_init(qp) && !qp_to_rts(qp, qp->qp_num, 7) ? qp : NULL;
}

bool ping(struct ibv_qp *qp, uint64_t wr_id, unsigned int flags)
{
	struct ibv_send_wr wr = { .wr_id = wr_id, .opcode = IBV_WR_SEND, .send_flags = flags },
			   *bad;
	struct ibv_recv_wr rr = { .wr_id = wr_id }, *bad_rr;

	MUST_EQ(qp->srq ? ibv_post_srq_recv(qp->srq, &rr, &bad_rr) :
			  ibv_post_recv(qp, &rr, &bad_rr),
		0);
	MUST_EQ(ibv_post_send(qp, &wr, &bad), 0);
	return true;
}

bool loops_open(struct loops *l)
{
	*l = (struct loops){ .pd = ibv_alloc_pd(ctx),
			     .sends = ibv_create_cq(ctx, QUEUE, NULL, NULL, 0) };
	return l->pd && l->sends;
}

bool loops_add(struct loops *l, void *context, struct ibv_comp_channel *ch, int vector)
{
	int i = l->n;

	MUST(i < MAX_LOOPS);
	MUST(l->cq[i] = ibv_create_cq(ctx, QUEUE, context, ch, vector));
	MUST(l->qp[i] = qp_to_itself(l->pd, l->sends, l->cq[i], NULL));
	l->n++;
	return true;
}

bool loops_event(struct loops *l, int i)
{
	struct ibv_wc wc;

	MUST_EQ(ibv_req_notify_cq(l->cq[i], 0), 0);
	MUST(ping(l->qp[i], 1, 0) && wait_wc(l->cq[i], &wc));
	return true;
}

bool loops_drop(struct loops *l, int i)
{
	MUST_EQ(ibv_destroy_qp(l->qp[i]), 0);
	MUST_EQ(ibv_destroy_cq(l->cq[i]), 0);
	l->cq[i] = NULL;
	return true;
}

bool loops_close(struct loops *l)
{
	for (int i = 0; i < l->n; i++)
		MUST(!l->cq[i] || loops_drop(l, i));
	MUST_EQ(ibv_destroy_cq(l->sends), 0);
	MUST_EQ(ibv_dealloc_pd(l->pd), 0);
	return true;
}

int counted_to(atomic_int *count, int n)
{
	long long end = clock_ns(CLOCK_MONOTONIC) + WAIT_MS * 1000000ll;

	while (atomic_load(count) < n && clock_ns(CLOCK_MONOTONIC) < end)
		sched_yield();
	return atomic_load(count);
}

bool send_invalidating(struct pair *p, uint32_t *rkey)
{
	struct ibv_mr *mr = ibv_reg_mr(p->pd, p->buf[1], BUF_BYTES,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(p->pd, IBV_MW_TYPE_2);
	struct ibv_sge sge = sge_of(p, 0, 0, 7);
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_wc wc;

	MUST(mr && mw);
	*rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = *rkey;
	wr.bind_mw.bind_info =
		(struct ibv_mw_bind_info){ .mr = mr,
					   .addr = (uintptr_t)p->buf[1],
					   .length = 100,
					   .mw_access_flags = IBV_ACCESS_REMOTE_WRITE };
	MUST_EQ(ibv_post_send(p->qp[1], &wr, &bad), 0);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.opcode, IBV_WC_BIND_MW);
	MUST_EQ(post_recv(p, 33, 0, 50), 0);
	wr = (struct ibv_send_wr){ .opcode = IBV_WR_SEND_WITH_INV,
				   .invalidate_rkey = *rkey,
				   .sg_list = &sge,
				   .num_sge = 1,
				   .send_flags = IBV_SEND_SIGNALED };
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(ibv_dealloc_mw(mw), 0);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	return true;
}

struct ibv_srq *xrc_srq(struct ibv_pd *pd, struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex a = { .attr = { .max_wr = QUEUE, .max_sge = 2 },
					  .srq_type = IBV_SRQT_XRC,
					  .pd = pd,
					  .xrcd = xrcd,
					  .cq = cq,
					  .comp_mask =
						  IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
						  IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ };

	return ibv_create_srq_ex(ctx, &a);
}

struct ibv_srq *tag_srq(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex a = { .attr = { .max_wr = QUEUE, .max_sge = 2 },
					  .srq_type = IBV_SRQT_TM,
					  .pd = pd,
					  .cq = cq,
					  .comp_mask = IBV_SRQ_INIT_ATTR_TYPE |
						       IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
						       IBV_SRQ_INIT_ATTR_TM,
					  .tm_cap = { .max_num_tags = 4, .max_ops = 4 } };

	return ibv_create_srq_ex(ctx, &a);
}

bool in_a_child(bool (*body)(void *arg), void *arg)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		bool good;

		alarm(CHILD_S);
		good = body(arg);
		fflush(stdout);
		_exit(!good);
	}
	MUST_EQ(waitpid(pid, &status, 0), pid);
	MUST_EQ(status, 0);
	return true;
}

int main(int argc, char **argv)
{
	bool good;

	ctx = argc == 2 ? open_device(argv[1]) : NULL;
	if (!ctx) {
		fprintf(stderr, "usage: %s DEVICE (%s)\n", argv[0],
			argc == 2 ? "there is no such device" : "one argument");
		return 2;
	}
	good = run_all(man_cases);
	/* The cases must not have left anything allocated. */
	good &= no_async_event();
	if (ibv_close_device(ctx))
		good = false;
	return !good;
}
