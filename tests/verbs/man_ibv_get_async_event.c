/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long tsan */
/*
 * ibv_get_async_event(3), ibv_ack_async_event(3): each event of a QP, CQ or SRQ that this device
 * raises. Events of port and device: tests/netns/port_events.c.
 */
#include "man.h"

static bool nonblocking(void)
{
	struct ibv_async_event event;

	/* "returns 0 on success, and -1 on error" */
	MUST(set_nonblocking(ctx->async_fd, true));
	errno = 0;
	MUST_EQ(ibv_get_async_event(ctx, &event), -1);
	MUST_EQ(errno, EAGAIN);
	MUST(set_nonblocking(ctx->async_fd, false));
	MUST(!readable(ctx->async_fd, 0));
	return true;
}

static bool established_body(struct pair *p)
{
	struct ibv_qp *qp;
	struct ibv_qp_init_attr init = { .send_cq = p->cq[0],
					 .recv_cq = p->cq[0],
					 .qp_type = IBV_QPT_RC,
					 .cap = { 2, 2, 1, 1, 0 } };
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR,
				 .path_mtu = IBV_MTU_1024,
				 .rq_psn = 7,
				 .min_rnr_timer = 1,
				 .max_dest_rd_atomic = 1,
				 .ah_attr = own_address() };
	struct ibv_recv_wr rr = { .wr_id = 1 }, *bad_rr;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_wc wc;

	/* "Communication was established": a packet came while the receiver is in RTR */
	MUST(qp = ibv_create_qp(p->pd, &init));
	MUST_EQ(qp_to_state(p->qp[0], IBV_QPS_RESET), 0);
	MUST_EQ(qp_to_init(p->qp[0]), 0);
	MUST_EQ(qp_to_init(qp), 0);
	a.dest_qp_num = p->qp[0]->qp_num;
	MUST_EQ(ibv_modify_qp(qp, &a,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				      IBV_QP_MIN_RNR_TIMER),
		0);
	MUST_EQ(qp_to_rts(p->qp[0], qp->qp_num, 7), 0);
	MUST_EQ(ibv_post_recv(qp, &rr, &bad_rr), 0);
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.opcode, IBV_WC_RECV);
	MUST(take_async(IBV_EVENT_COMM_EST, qp));
	MUST(no_async_event());
	MUST_EQ(ibv_destroy_qp(qp), 0);
	return true;
}

ON_PAIR(communication_established, established_body)

static bool drained_body(struct pair *p)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };

	MUST(message(p, 0));
	MUST_EQ(ibv_modify_qp(p->qp[0], &a, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	MUST(take_async(IBV_EVENT_SQ_DRAINED, p->qp[0]));
	return no_async_event();
}

ON_PAIR(send_queue_drained, drained_body)

static bool is_draining(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	return !ibv_query_qp(qp, &a, IBV_QP_STATE, &init) && a.sq_draining;
}

/* ibv_query_qp(3) and the event agree, also while a request waits for the peer's receive. */
static bool draining_body(struct pair *p)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ibv_wc wc;

	MUST_EQ(post_send(p, 1, 0, 8, IBV_SEND_SIGNALED), 0);
	MUST_EQ(ibv_modify_qp(p->qp[0], &a, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	for (int i = 0; i < 100; i++) {
		MUST(is_draining(p->qp[0]));
		poll(NULL, 0, 1);
	}
	MUST_EQ(post_recv(p, 2, 0, 8), 0);
	MUST(wait_wc(p->cq[0], &wc) && wait_wc(p->cq[1], &wc));
	MUST(take_async(IBV_EVENT_SQ_DRAINED, p->qp[0]));
	MUST(!is_draining(p->qp[0]));
	return no_async_event();
}

ON_PAIR(send_queue_draining, draining_body)

static bool access_body(struct pair *p)
{
	struct ibv_sge sge = sge_of(p, 0, 0, 8);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .wr.rdma = { (uintptr_t)p->buf[1], p->mr[1]->rkey ^ 0x100 } },
			   *bad;
	struct ibv_wc wc;

	/* The responder gets the event; its QP is in error. */
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
	MUST(take_async(IBV_EVENT_QP_ACCESS_ERR, p->qp[1]));
	MUST_EQ(qp_state_now(p->qp[1]), IBV_QPS_ERR);
	return no_async_event();
}

ON_PAIR(access_violation, access_body)

static bool limit_body(struct pair *p)
{
	struct ibv_srq_attr a = { .srq_limit = 1 };

	MUST_EQ(ibv_modify_srq(p->srq, &a, IBV_SRQ_LIMIT), 0);
	MUST(take_async(IBV_EVENT_SRQ_LIMIT_REACHED, p->srq));
	MUST_EQ(qp_to_state(p->qp[1], IBV_QPS_ERR), 0);
	MUST(take_async(IBV_EVENT_QP_LAST_WQE_REACHED, p->qp[1]));
	return no_async_event();
}

ON_PAIR(shared_receive_queue, limit_body, .srq = true)

/*
 * IBV_EVENT_QP_REQ_ERR: "Invalid Request Local Work Queue Error": the peer sends a forbidden
 * request, here a READ of a QP that answers none.
 */
static bool request_body(struct pair *p)
{
	struct ibv_sge sge = sge_of(p, 0, 0, 10);
	struct ibv_send_wr wr = { .wr_id = 6,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_READ,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { (uintptr_t)p->buf[1], p->mr[1]->rkey } },
			   *bad;
	struct ibv_qp_attr none = { .qp_state = IBV_QPS_SQD, .max_dest_rd_atomic = 0 };
	struct ibv_wc wc;

	MUST_EQ(ibv_modify_qp(p->qp[1], &none, IBV_QP_STATE), 0);
	MUST_EQ(ibv_modify_qp(p->qp[1], &none, IBV_QP_STATE | IBV_QP_MAX_DEST_RD_ATOMIC), 0);
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_REM_INV_REQ_ERR);
	MUST(take_async(IBV_EVENT_QP_REQ_ERR, p->qp[1]));
	MUST_EQ(qp_state_now(p->qp[1]), IBV_QPS_ERR);
	return no_async_event();
}

ON_PAIR(invalid_request, request_body)

/*
 * IBV_EVENT_SRQ_ERR: "Error occurred on an SRQ". An SRQ with its own CQ fails when that CQ
 * overruns.
 */
static bool shared_receive_queue_fails(void)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 2, NULL, NULL, 0);
	struct ibv_srq_init_attr_ex a = { .attr = { .max_wr = 4, .max_sge = 1 },
					  .pd = ibv_alloc_pd(ctx),
					  .cq = cq,
					  .srq_type = IBV_SRQT_TM,
					  .comp_mask = IBV_SRQ_INIT_ATTR_PD |
						       IBV_SRQ_INIT_ATTR_TYPE |
						       IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
					  .tm_cap = { .max_num_tags = 4, .max_ops = 4 } };
	struct ibv_ops_wr wr = { .opcode = IBV_WR_TAG_SYNC, .flags = IBV_OPS_SIGNALED }, *bad;
	struct ibv_srq *srq;

	MUST(cq && a.pd && (srq = ibv_create_srq_ex(ctx, &a)));
	MUST_EQ(ibv_post_srq_ops(srq, &wr, &bad), 0);
	MUST_EQ(ibv_post_srq_ops(srq, &wr, &bad), 0);
	MUST(no_async_event());
	MUST_EQ(ibv_post_srq_ops(srq, &wr, &bad), 0);
	MUST(take_async(IBV_EVENT_CQ_ERR, cq));
	MUST(take_async(IBV_EVENT_SRQ_ERR, srq));
	MUST(no_async_event());
	MUST_EQ(ibv_destroy_srq(srq), 0);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	MUST_EQ(ibv_dealloc_pd(a.pd), 0);
	return true;
}

/*
 * "destroying an object (CQ, SRQ or QP) will wait for all affiliated events for the object to be
 * acknowledged"
 */
static bool waits_for(struct ibv_async_event *event, int (*destroy)(void *object))
{
	struct destruction d;

	MUST(destroy_begins(&d, destroy, event->element.qp));
	ibv_ack_async_event(event);
	return destroy_ends(&d);
}

static int destroy_qp(void *o)
{
	return ibv_destroy_qp(o);
}

static int destroy_srq(void *o)
{
	return ibv_destroy_srq(o);
}

static bool waits_body(struct pair *p)
{
	struct ibv_srq_attr a = { .srq_limit = 1 };
	struct ibv_async_event event;

	MUST_EQ(qp_to_state(p->qp[1], IBV_QPS_ERR), 0);
	MUST(next_async(&event));
	MUST(event.element.qp == p->qp[1]);
	MUST(waits_for(&event, destroy_qp));
	p->qp[1] = NULL;
	MUST_EQ(ibv_modify_srq(p->srq, &a, IBV_SRQ_LIMIT), 0);
	MUST(next_async(&event));
	MUST(event.element.srq == p->srq);
	MUST(waits_for(&event, destroy_srq));
	p->srq = NULL;
	return true;
}

ON_PAIR(destroy_qp_and_srq_wait, waits_body, .srq = true)

static bool cq_waits_body(struct pair *p)
{
	struct ibv_async_event event, cq_event = { .event_type = IBV_EVENT_CQ_ERR };

	for (int i = 0; i < 3; i++)
		MUST(!post_recv(p, 1, 0, 10) && !post_send(p, 1, 0, 1, 0));
	for (int n = 0; n < 2; n++) {
		MUST(next_async(&event));
		if (event.event_type == IBV_EVENT_CQ_ERR)
			cq_event = event;
		else
			ibv_ack_async_event(&event);
	}
	MUST(cq_event.element.cq == p->cq[1]);
	MUST_EQ(ibv_destroy_qp(p->qp[1]), 0);
	p->qp[1] = NULL;
	MUST(waits_for(&cq_event, destroy_cq));
	p->cq[1] = NULL;
	return true;
}

ON_PAIR(destroy_cq_waits, cq_waits_body, .ex = &(struct ibv_cq_init_attr_ex){ .cqe = 1 })

static bool forgotten_body(struct pair *p)
{
	/*
	 * "this avoids an application retrieving an affiliated event after the corresponding object
	 * has already been destroyed"
	 */
	MUST_EQ(qp_to_state(p->qp[1], IBV_QPS_ERR), 0);
	MUST(readable(ctx->async_fd, WAIT_MS));
	MUST_EQ(ibv_destroy_qp(p->qp[1]), 0);
	p->qp[1] = NULL;
	MUST(!readable(ctx->async_fd, 0));
	return no_async_event();
}

ON_PAIR(not_after_the_object_is_gone, forgotten_body, .srq = true)

#define THREADS 3
static atomic_int received;

static void *getter(void *arg)
{
	struct ibv_async_event event;

	if (ibv_get_async_event(ctx, &event))
		return ctx;
	atomic_fetch_add(&received, 1);
	ibv_ack_async_event(&event);
	return NULL;
}

static bool threads_body(struct pair *p)
{
	struct ibv_srq_attr a = { .srq_limit = 1 };
	pthread_t thread[THREADS];
	void *failed;

	/*
	 * "when an async event occurs, only one thread will receive it"; and it blocks until there
	 * is one
	 */
	atomic_store(&received, 0);
	for (int i = 0; i < THREADS; i++)
		MUST_EQ(pthread_create(&thread[i], NULL, getter, NULL), 0);
	for (int i = 1; i <= THREADS; i++) {
		MUST_EQ(atomic_load(&received), i - 1);
		MUST_EQ(ibv_modify_srq(p->srq, &a, IBV_SRQ_LIMIT), 0);
		counted_to(&received, i);
		usleep(2000); /* for another to make the mistake */
		MUST_EQ(atomic_load(&received), i);
	}
	for (int i = 0; i < THREADS; i++) {
		MUST_EQ(pthread_join(thread[i], &failed), 0);
		MUST(!failed);
	}
	return true;
}

ON_PAIR(one_thread_receives_it, threads_body, .srq = true)

/* The example of the page, as it is. */
static int example(int ms_timeout)
{
	struct ibv_async_event async_event;
	struct pollfd my_pollfd;
	int flags, rc;

	flags = fcntl(ctx->async_fd, F_GETFL);
	rc = fcntl(ctx->async_fd, F_SETFL, flags | O_NONBLOCK);
	if (rc < 0) {
		fprintf(stderr, "Failed to change file descriptor of async event queue\n");
		return 1;
	}
	my_pollfd.fd = ctx->async_fd;
	my_pollfd.events = POLLIN;
	my_pollfd.revents = 0;

	do {
		rc = poll(&my_pollfd, 1, ms_timeout);
	} while (rc == 0);
	if (rc < 0) {
		fprintf(stderr, "poll failed\n");
		return 1;
	}
	if (ibv_get_async_event(ctx, &async_event)) {
		fprintf(stderr, "Failed to get async_event\n");
		return 1;
	}
	ibv_ack_async_event(&async_event);
	return 0;
}

static bool example_body(struct pair *p)
{
	struct ibv_srq_attr a = { .srq_limit = 1 };

	MUST_EQ(ibv_modify_srq(p->srq, &a, IBV_SRQ_LIMIT), 0);
	MUST_EQ(example(10), 0);
	return set_nonblocking(ctx->async_fd, false);
}

ON_PAIR(the_example, example_body, .srq = true)

const struct test_case man_cases[] = {
	CASE(nonblocking),
	CASE(communication_established),
	CASE(send_queue_drained),
	CASE(send_queue_draining),
	CASE(access_violation),
	CASE(shared_receive_queue),
	CASE(invalid_request),
	CASE(shared_receive_queue_fails),
	CASE(destroy_qp_and_srq_wait),
	CASE(destroy_cq_waits),
	CASE(not_after_the_object_is_gone),
	CASE(one_thread_receives_it),
	CASE(the_example),
	{ 0 },
};
