/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san XROCE_CYCLES=1000 */
/*
 * rdma_create_qp(3), rdma_create_srq(3): the created objects, also with defaults, and the settings
 * of a connection's QPs.
 */
#include "man.h"

static struct ibv_qp_attr attr;
static struct ibv_qp_init_attr init;

static bool query(struct rdma_cm_id *id)
{
	MUST_EQ(ibv_query_qp(id->qp, &attr, IBV_QP_DEST_QPN * 2 - 1, &init), 0);
	return true;
}

/* "ready to handle posting of receives", with the default PD and CQs that the id shows */
static bool defaults_body(struct link *l, int family)
{
	struct rdma_cm_id *id, *other_id;
	struct ibv_cq *cq;

	l->no_qp = true;
	MUST(link_open(l, family, RDMA_PS_TCP));
	id = l->id[0];
	MUST(!id->qp && !id->send_cq && !id->recv_cq);
	MUST_EQ(create_qp(id), 0);
	MUST(id->qp && id->pd && id->qp->pd == id->pd);
	MUST(id->send_cq && id->recv_cq && id->send_cq != id->recv_cq);
	MUST(id->send_cq_channel && id->recv_cq_channel);
	MUST(id->send_cq_channel != id->recv_cq_channel);
	MUST(id->qp->send_cq == id->send_cq && id->qp->recv_cq == id->recv_cq);
	MUST(id->send_cq->channel == id->send_cq_channel);
	MUST(id->recv_cq->channel == id->recv_cq_channel);
	MUST(id->send_cq->cq_context == id && id->recv_cq->cq_context == id);
	MUST(id->send_cq->cqe >= QUEUE && id->recv_cq->cqe >= QUEUE);
	MUST_EQ(qp_state_now(id->qp), IBV_QPS_INIT);
	/* "may only be associated with a single QP" */
	MUST_ERR(create_qp(id), EINVAL);
	/* "One default protection domain is allocated per RDMA device" */
	MUST(other_id = resolved(l->ch[0], RDMA_PS_TCP, own(family, 7471)));
	MUST(other_id->pd == id->pd);
	MUST_EQ(create_qp(other_id), 0);
	MUST(other_id->pd == id->pd && other_id->send_cq != id->send_cq);
	rdma_destroy_qp(other_id);
	MUST_EQ(rdma_destroy_id(other_id), 0);
	cq = id->send_cq;
	MUST(cq);
	rdma_destroy_qp(id);
	MUST(!id->qp && !id->send_cq && !id->recv_cq && !id->send_cq_channel);
	/* and again */
	MUST_EQ(create_qp(id), 0);
	rdma_destroy_qp(id);
	return true;
}
ON_LINK(defaults, defaults_body)

/* The user's own PD, CQs and QP context; "actual capabilities are returned". */
static bool given_body(struct link *l, int family)
{
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;

	l->no_qp = true;
	MUST(link_open(l, family, RDMA_PS_TCP));
	id = l->id[0];
	MUST(pd = ibv_alloc_pd(id->verbs));
	MUST(cq = ibv_create_cq(id->verbs, 20, NULL, NULL, 0));
	init = (struct ibv_qp_init_attr){ .qp_context = &pd,
					  .send_cq = cq,
					  .recv_cq = cq,
					  .qp_type = IBV_QPT_RC,
					  .cap = { 5, 6, 1, 1, 10 } };
	MUST_EQ(rdma_create_qp(id, pd, &init), 0);
	MUST(init.cap.max_send_wr >= 5 && init.cap.max_recv_wr >= 6);
	MUST(init.cap.max_inline_data >= 10);
	MUST(id->qp->pd == pd && id->pd == pd);
	MUST(id->qp->send_cq == cq && id->qp->recv_cq == cq);
	MUST(id->qp->qp_context == &pd);
	/* only what the library made is shown */
	MUST(!id->send_cq && !id->recv_cq);
	MUST(!id->send_cq_channel && !id->recv_cq_channel);
	rdma_destroy_qp(id);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	/* no type is none */
	init = (struct ibv_qp_init_attr){ .qp_type = 0, .cap = { 1, 1, 1, 1, 0 } };
	MUST_EQ(rdma_create_qp(id, NULL, &init), -1);
	MUST(!id->qp && !id->send_cq && !id->recv_cq);
	/* more than there is */
	init = (struct ibv_qp_init_attr){ .qp_type = IBV_QPT_RC, .cap = { 1 << 30, 1, 1, 1, 0 } };
	MUST_EQ(rdma_create_qp(id, pd, &init), -1);
	MUST(!id->qp && !id->send_cq && !id->recv_cq);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}
ON_LINK(given, given_body)

/* "the protection domain must be for that same device": it is the id's context that has it. */
static bool foreign_pd_body(struct link *l, int family)
{
	struct ibv_context *context;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;

	l->no_qp = true;
	MUST(link_open(l, family, RDMA_PS_TCP));
	id = l->id[0];
	MUST((context = ibv_open_device(id->verbs->device)) && (pd = ibv_alloc_pd(context)));
	init = (struct ibv_qp_init_attr){ .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	MUST_ERR(rdma_create_qp(id, pd, &init), EINVAL);
	MUST(!id->qp && !id->send_cq && !id->recv_cq && id->pd != pd);
	MUST_EQ(create_qp(id), 0);
	MUST(id->qp->pd == id->pd && id->pd != pd);
	rdma_destroy_qp(id);
	MUST(!ibv_dealloc_pd(pd) && !ibv_close_device(context));
	return true;
}
ON_LINK(foreign_pd, foreign_pd_body)

/* After a failure the same attributes, with less asked for, make a QP. (rdma-core's do not.) */
static bool with_less_body(struct link *l, int family)
{
	struct rdma_cm_id *id;

	l->no_qp = true;
	MUST(link_open(l, family, RDMA_PS_TCP));
	id = l->id[0];
	init = (struct ibv_qp_init_attr){ .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1000, 1, 0 } };
	MUST_EQ(rdma_create_qp(id, NULL, &init), -1);
	MUST(!init.send_cq && !init.recv_cq && !id->send_cq && !id->recv_cq);
	init.cap.max_send_sge = 1;
	MUST_EQ(rdma_create_qp(id, NULL, &init), 0);
	MUST(init.send_cq == id->send_cq && init.recv_cq == id->recv_cq);
	MUST(id->send_cq && id->recv_cq && id->qp->send_cq == id->send_cq);
	rdma_destroy_qp(id);
	return true;
}
ON_LINK(with_less, with_less_body)

/* rdma_create_qp_ex(): the PD in the attributes */
static bool extended_body(struct link *l, int family)
{
	struct ibv_qp_init_attr_ex ex = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_pd *pd;

	l->no_qp = true;
	MUST(link_open(l, family, RDMA_PS_TCP));
	MUST_EQ(rdma_create_qp_ex(l->id[0], &ex), 0);
	MUST(ex.pd == l->id[0]->pd && (ex.comp_mask & IBV_QP_INIT_ATTR_PD));
	rdma_destroy_qp(l->id[0]);
	MUST(pd = ibv_alloc_pd(l->id[0]->verbs));
	ex = (struct ibv_qp_init_attr_ex){ .qp_type = IBV_QPT_RC,
					   .cap = { 4, 4, 1, 1, 0 },
					   .comp_mask = IBV_QP_INIT_ATTR_PD,
					   .pd = pd };
	MUST_EQ(rdma_create_qp_ex(l->id[0], &ex), 0);
	MUST(l->id[0]->qp->pd == pd && l->id[0]->send_cq);
	rdma_destroy_qp(l->id[0]);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}
ON_LINK(extended, extended_body)

/* "automatically transitioned by the librdmacm through their states" */
static bool states_body(struct link *l, int family)
{
	MUST(link_open(l, family, RDMA_PS_TCP));
	MUST_EQ(qp_state_now(l->id[0]->qp), IBV_QPS_INIT);
	MUST(link_request(l, NULL));
	MUST_EQ(qp_state_now(l->id[0]->qp), IBV_QPS_INIT);
	MUST_EQ(create_qp(l->id[1]), 0);
	l->own_qp = true;
	MUST_EQ(qp_state_now(l->id[1]->qp), IBV_QPS_INIT);
	MUST(link_accept(l, NULL));
	MUST_EQ(qp_state_now(l->id[1]->qp), IBV_QPS_RTS);
	MUST(link_established(l));
	MUST_EQ(qp_state_now(l->id[0]->qp), IBV_QPS_RTS);
	return true;
}
ON_LINK(states, states_body)

/* The QPs have the negotiated settings. */
static bool attributes_body(struct link *l, int family)
{
	struct rdma_conn_param param = some_param(NULL, 0);
	struct ibv_qp_attr a[2];

	MUST(link_open(l, family, RDMA_PS_TCP) && link_request(l, &param));
	param.responder_resources = 4;
	param.initiator_depth = 2;
	param.rnr_retry_count = 5;
	MUST(link_accept(l, &param) && link_established(l));
	for (int i = 0; i < 2; i++) {
		MUST(query(l->id[i]));
		a[i] = attr;
		MUST_EQ(attr.qp_state, IBV_QPS_RTS);
		MUST_EQ(attr.dest_qp_num, l->id[!i]->qp->qp_num);
		MUST_EQ(attr.path_mtu, IBV_MTU_4096);
		MUST_EQ(attr.port_num, 1);
		MUST_EQ(attr.pkey_index, 0);
		MUST_EQ(attr.min_rnr_timer, 0); /* "for a delay of 655 ms" */
		MUST_EQ(attr.retry_cnt, 6);
		MUST(attr.timeout > 0 && attr.timeout < 32);
		MUST(attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE);
		MUST(attr.qp_access_flags & IBV_ACCESS_REMOTE_READ);
		MUST(attr.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC);
		MUST_EQ(attr.ah_attr.is_global, 1);
		MUST(attr.ah_attr.grh.hop_limit > 0);
	}
	MUST_EQ(a[0].rnr_retry, 5);
	MUST_EQ(a[1].rnr_retry, 4);
	/* what the accept says, seen from either end */
	MUST_EQ(a[1].max_dest_rd_atomic, 4);
	MUST_EQ(a[1].max_rd_atomic, 2);
	MUST_EQ(a[0].max_dest_rd_atomic, 2);
	MUST_EQ(a[0].max_rd_atomic, 4);
	MUST_EQ(a[0].rq_psn, a[1].sq_psn);
	MUST_EQ(a[1].rq_psn, a[0].sq_psn);
	return true;
}
ON_LINK(attributes, attributes_body)

/* RDMA_OPTION_ID_ACK_TIMEOUT is the QP's, on the side that sets it. */
static bool ack_timeout_body(struct link *l, int family)
{
	uint8_t timeout = 19;

	MUST(link_open(l, family, RDMA_PS_TCP));
	MUST_EQ(rdma_set_option(l->id[0], RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1),
		0);
	MUST(link_request(l, NULL) && link_accept(l, NULL) && link_established(l));
	MUST(query(l->id[0]));
	MUST_EQ(attr.timeout, 19);
	return true;
}
ON_LINK(ack_timeout, ack_timeout_body)

/* RDMA_OPTION_ID_TOS before the route is resolved is the QP's traffic class. */
static bool tos(int family)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct link l = { .ch = { ch, rdma_create_event_channel() } };
	union address to;
	uint8_t value = 104;
	bool good;

	MUST(ch && l.ch[1] && (l.listen = listener(l.ch[1], RDMA_PS_TCP, own(family, 0), 1)));
	to = own(family, ntohs(rdma_get_src_port(l.listen)));
	MUST_EQ(rdma_create_id(ch, &l.id[0], NULL, RDMA_PS_TCP), 0);
	MUST_EQ(rdma_set_option(l.id[0], RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &value, 1), 0);
	MUST_EQ(rdma_resolve_addr(l.id[0], NULL, &to.sa, WAIT_MS), 0);
	MUST(take(ch, l.id[0], RDMA_CM_EVENT_ADDR_RESOLVED));
	MUST_EQ(rdma_resolve_route(l.id[0], WAIT_MS), 0);
	MUST(take(ch, l.id[0], RDMA_CM_EVENT_ROUTE_RESOLVED));
	MUST_EQ(create_qp(l.id[0]), 0);
	good = link_request(&l, NULL) && link_accept(&l, NULL) && link_established(&l);
	for (int i = 0; i < 2 && good; i++) {
		MUST(query(l.id[i]));
		MUST_EQ(attr.ah_attr.grh.traffic_class, 104);
	}
	return link_close(&l) && good;
}
BOTH(tos)

/* ---- SRQ ---- */

/* The receives of a connection whose id has an SRQ; its peer learns of it. */
static bool srq_body(struct link *l, int family)
{
	struct ibv_srq_init_attr a = { .attr = { .max_wr = QUEUE, .max_sge = 1 } };
	struct ibv_qp_init_attr qa = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	struct rdma_cm_event *e;
	static char buf[32];
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	MUST(link_open(l, family, RDMA_PS_TCP) && link_request(l, NULL));
	id = l->id[1];
	MUST_EQ(rdma_create_srq(id, NULL, &a), 0);
	MUST(id->srq && id->srq->pd == id->pd);
	MUST(a.attr.max_wr >= QUEUE);
	qa.srq = id->srq;
	MUST_EQ(rdma_create_qp(id, NULL, &qa), 0);
	MUST(id->qp->srq == id->srq);
	l->own_qp = true;
	MUST(mr = rdma_reg_msgs(id, buf, 32));
	MUST_EQ(rdma_post_recv(id, buf, buf, 16, mr), 0);
	MUST(link_accept(l, NULL));
	MUST((e = next_event(l->ch[0])) && e->event == RDMA_CM_EVENT_ESTABLISHED);
	MUST_EQ(e->param.conn.srq, 1);
	MUST_EQ(rdma_ack_cm_event(e), 0);
	MUST(take(l->ch[1], id, RDMA_CM_EVENT_ESTABLISHED));
	MUST_EQ(rdma_post_send(l->id[0], NULL, buf + 16, 16, mr, IBV_SEND_SIGNALED), 0);
	MUST(wait_wc(id->recv_cq, &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST(wc.wr_id == (uintptr_t)buf);
	MUST_EQ(rdma_dereg_mr(mr), 0);
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	MUST(!id->srq);
	return true;
}
ON_LINK(srq, srq_body)

const struct test_case man_cases[] = {
	CASE(defaults_v4),    CASE(defaults_v6),   CASE(given_v4),
	CASE(given_v6),	      CASE(foreign_pd_v4), CASE(foreign_pd_v6),
	CASE(with_less_v4),   CASE(with_less_v6),  CASE(extended_v4),
	CASE(extended_v6),    CASE(states_v4),	   CASE(states_v6),
	CASE(attributes_v4),  CASE(attributes_v6), CASE(ack_timeout_v4),
	CASE(ack_timeout_v6), CASE(tos_v4),	   CASE(tos_v6),
	CASE(srq_v4),	      CASE(srq_v6),	   { 0 },
};
