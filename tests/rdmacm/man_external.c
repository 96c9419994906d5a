/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san XROCE_CYCLES=1000 */
/*
 * QPs that are not the id's: rdma_init_qp_attr(3), RDMA_CM_EVENT_CONNECT_RESPONSE,
 * rdma_establish(3), rdma_notify(3), rdma_set_local_ece(3), rdma_get_remote_ece(3).
 */
#include "man.h"

/* A QP of the case's own, moved by what rdma_init_qp_attr() says. */
static bool move(struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = { .qp_state = state };
	int mask = 0;

	MUST_EQ(rdma_init_qp_attr(id, &a, &mask), 0);
	MUST(mask & IBV_QP_STATE);
	MUST_EQ(a.qp_state, state);
	MUST_EQ(ibv_modify_qp(qp, &a, mask), 0);
	return true;
}

struct two {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
};

static bool two_open(struct two *t, struct ibv_context *verbs)
{
	struct ibv_qp_init_attr a = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };

	MUST(t->pd = ibv_alloc_pd(verbs));
	MUST(t->cq = ibv_create_cq(verbs, 16, NULL, NULL, 0));
	a.send_cq = a.recv_cq = t->cq;
	for (int i = 0; i < 2; i++)
		MUST(t->qp[i] = ibv_create_qp(t->pd, &a));
	return true;
}

static bool two_close(struct two *t)
{
	for (int i = 0; i < 2; i++)
		MUST_EQ(ibv_destroy_qp(t->qp[i]), 0);
	MUST_EQ(ibv_destroy_cq(t->cq), 0);
	MUST_EQ(ibv_dealloc_pd(t->pd), 0);
	return true;
}

/* CONNECT_RESPONSE "is only generated on rdma_cm_id's that do not have a QP". */
static bool external_body(struct link *l, int family)
{
	struct rdma_conn_param param = some_param("request", 8);
	struct ibv_ece ece = { .vendor_id = 0x123456, .options = 0x89abcdef, .comp_mask = 0 };
	struct ibv_recv_wr rr = { .wr_id = 3 }, *bad_rr;
	struct ibv_send_wr wr = { .wr_id = 4, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_ece got = { .comp_mask = 0 };
	struct rdma_cm_event *e;
	struct ibv_wc wc;
	struct two t;

	l->no_qp = true;
	MUST(link_open(l, family, RDMA_PS_TCP) && two_open(&t, l->id[0]->verbs));
	wr.opcode = IBV_WR_SEND;
	MUST(move(l->id[0], t.qp[0], IBV_QPS_INIT));
	param.qp_num = t.qp[0]->qp_num;
	param.srq = 1;
	MUST_EQ(rdma_set_local_ece(l->id[0], &ece), 0);
	MUST(link_request(l, &param));
	MUST_EQ(l->request->param.conn.qp_num, t.qp[0]->qp_num);
	MUST_EQ(l->request->param.conn.srq, 1);
	MUST_EQ(rdma_get_remote_ece(l->id[1], &got), 0);
	MUST_EQ(got.vendor_id, ece.vendor_id);

	for (int s = IBV_QPS_INIT; s <= IBV_QPS_RTS; s++)
		MUST(move(l->id[1], t.qp[1], (enum ibv_qp_state)s));
	MUST_EQ(ibv_post_recv(t.qp[1], &rr, &bad_rr), 0);
	param = some_param("reply", 6);
	param.qp_num = t.qp[1]->qp_num;
	ece.options = 0x77;
	MUST_EQ(rdma_set_local_ece(l->id[1], &ece), 0);
	MUST(link_accept(l, &param));
	MUST(e = next_event(l->ch[0]));
	MUST_EQ(e->event, RDMA_CM_EVENT_CONNECT_RESPONSE);
	MUST_EQ(e->status, 0);
	MUST_EQ(e->param.conn.qp_num, t.qp[1]->qp_num);
	MUST_EQ(e->param.conn.private_data_len, 196);
	MUST(!strcmp(e->param.conn.private_data, "reply"));
	MUST_EQ(rdma_ack_cm_event(e), 0);
	MUST_EQ(rdma_get_remote_ece(l->id[0], &got), 0);
	MUST(no_event(l->ch[1])); /* not before the active end establishes */
	MUST(move(l->id[0], t.qp[0], IBV_QPS_RTR) && move(l->id[0], t.qp[0], IBV_QPS_RTS));
	MUST_EQ(rdma_establish(l->id[0]), 0);
	MUST(take(l->ch[1], l->id[1], RDMA_CM_EVENT_ESTABLISHED));
	MUST(no_event(l->ch[0]));
	MUST_EQ(ibv_post_send(t.qp[0], &wr, &bad), 0);
	for (int i = 0; i < 2; i++) {
		MUST(wait_wc(t.cq, &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
	}
	/* the QPs are the case's: a disconnect does not move them */
	MUST_EQ(rdma_disconnect(l->id[1]), 0);
	MUST(take(l->ch[0], l->id[0], RDMA_CM_EVENT_DISCONNECTED));
	MUST_EQ(rdma_disconnect(l->id[0]), 0);
	MUST(take(l->ch[1], l->id[1], RDMA_CM_EVENT_DISCONNECTED));
	MUST_EQ(qp_state_now(t.qp[0]), IBV_QPS_RTS);
	for (int i = 0; i < 2; i++)
		MUST(take(l->ch[i], l->id[i], RDMA_CM_EVENT_TIMEWAIT_EXIT));
	return two_close(&t);
}
ON_LINK(external, external_body)

/* "returns qp attributes": their values before and after a connection */
static bool init_attr_body(struct link *l, int family)
{
	struct ibv_qp_attr a;
	int mask;

	MUST(link_open(l, family, RDMA_PS_TCP));
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT };
	MUST_EQ(rdma_init_qp_attr(l->id[0], &a, &mask), 0);
	MUST_EQ(mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	MUST_EQ(a.port_num, 1);
	MUST_EQ(a.pkey_index, 0);
	MUST(link_request(l, NULL) && link_accept(l, NULL) && link_established(l));
	for (int i = 0; i < 2; i++) {
		a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR };
		MUST_EQ(rdma_init_qp_attr(l->id[i], &a, &mask), 0);
		MUST_EQ(mask, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				      IBV_QP_MIN_RNR_TIMER);
		MUST_EQ(a.dest_qp_num, l->id[!i]->qp->qp_num);
		MUST_EQ(a.path_mtu, IBV_MTU_4096);
		MUST_EQ(a.ah_attr.is_global, 1);
		MUST_EQ(a.ah_attr.port_num, 1);
		a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS };
		MUST_EQ(rdma_init_qp_attr(l->id[i], &a, &mask), 0);
		MUST_EQ(mask, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
	}
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_SQD };
	MUST_ERR(rdma_init_qp_attr(l->id[0], &a, &mask), EINVAL);
	return true;
}
ON_LINK(init_attr, init_attr_body)

/* Calls out of time. */
static bool late_body(struct link *l, int family)
{
	MUST(link_open(l, family, RDMA_PS_TCP));
	MUST_ERR(rdma_establish(l->id[0]), EINVAL); /* it has a QP */
	MUST(link_request(l, NULL) && link_accept(l, NULL) && link_established(l));
	MUST_ERR(rdma_establish(l->id[0]), EINVAL);
	/* "In this case, the error may safely be ignored." */
	MUST_ERR(rdma_notify(l->id[1], IBV_EVENT_COMM_EST), EISCONN);
	return true;
}
ON_LINK(out_of_time, late_body)

/*
 * rdma_accept() answers a request once, and never after its end. With QPs of the case's own no QP
 * state reports that first. (Before the connection is established a second one rejects it.)
 */
static bool accept_again_body(struct link *l, int family)
{
	struct rdma_conn_param param = some_param(NULL, 0);

	l->no_qp = true;
	param.qp_num = 0x1001;
	MUST(link_open(l, family, RDMA_PS_TCP) && link_request(l, &param));
	param.qp_num = 0x1002;
	MUST(link_accept(l, &param));
	MUST(take(l->ch[0], l->id[0], RDMA_CM_EVENT_CONNECT_RESPONSE));
	MUST_EQ(rdma_establish(l->id[0]), 0);
	MUST(take(l->ch[1], l->id[1], RDMA_CM_EVENT_ESTABLISHED));
	MUST_ERR(rdma_accept(l->id[1], &param), EINVAL);
	MUST_EQ(rdma_disconnect(l->id[0]), 0);
	MUST(take(l->ch[1], l->id[1], RDMA_CM_EVENT_DISCONNECTED));
	MUST_ERR(rdma_accept(l->id[1], &param), EINVAL);
	MUST_EQ(rdma_disconnect(l->id[1]), 0);
	MUST(take(l->ch[0], l->id[0], RDMA_CM_EVENT_DISCONNECTED));
	for (int i = 0; i < 2; i++) {
		MUST(take(l->ch[i], l->id[i], RDMA_CM_EVENT_TIMEWAIT_EXIT));
		MUST_ERR(rdma_accept(l->id[i], &param), EINVAL);
	}
	return no_event(l->ch[0]) && no_event(l->ch[1]);
}
ON_LINK(accept_again, accept_again_body)

/* rdma_notify() establishes the passive end before the active one has said that it is ready. */
static bool notify_body(struct link *l, int family)
{
	struct rdma_conn_param param = some_param(NULL, 0);
	struct two t;

	l->no_qp = true;
	MUST(link_open(l, family, RDMA_PS_TCP) && two_open(&t, l->id[0]->verbs));
	param.qp_num = t.qp[0]->qp_num;
	MUST(link_request(l, &param));
	param.qp_num = t.qp[1]->qp_num;
	MUST(link_accept(l, &param));
	MUST(take(l->ch[0], l->id[0], RDMA_CM_EVENT_CONNECT_RESPONSE));
	MUST_EQ(rdma_notify(l->id[1], IBV_EVENT_COMM_EST), 0);
	MUST(take(l->ch[1], l->id[1], RDMA_CM_EVENT_ESTABLISHED));
	MUST_EQ(rdma_establish(l->id[0]), 0);
	MUST(no_event(l->ch[1]));
	return two_close(&t);
}
ON_LINK(notify, notify_body)

const struct test_case man_cases[] = {
	CASE(external_v4),
	CASE(external_v6),
	CASE(init_attr_v4),
	CASE(init_attr_v6),
	CASE(out_of_time_v4),
	CASE(out_of_time_v6),
	CASE(accept_again_v4),
	CASE(accept_again_v6),
	CASE(notify_v4),
	CASE(notify_v6),
	{ 0 },
};
