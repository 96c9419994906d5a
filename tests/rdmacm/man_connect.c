/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san XROCE_CYCLES=1000 */
/* rdma_connect(3), rdma_accept(3), and the connection's events of rdma_get_cm_event(3). */
#include "man.h"

#define REQ_BYTES 56
#define REP_BYTES 196

static uint8_t bytes[256];

static void bytes_fill(uint8_t seed)
{
	for (int i = 0; i < 256; i++)
		bytes[i] = (uint8_t)(seed + 7 * i);
}

/* "Any additional space in the buffer will be zeroed out." */
static bool data_is(const struct rdma_conn_param *c, int size, int len)
{
	MUST_EQ(c->private_data_len, size);
	MUST(c->private_data);
	MUST(!memcmp(c->private_data, bytes, (size_t)len));
	for (int i = len; i < size; i++)
		MUST_EQ(((const uint8_t *)c->private_data)[i], 0);
	return true;
}

/* Each field of both directions, with the events' ids, contexts and addresses. */
static bool fields_body(struct link *l, int family)
{
	struct rdma_conn_param param = some_param(bytes, 20), *c;
	union address at = own(family, 0);
	struct rdma_cm_event *e;
	uint16_t port;

	bytes_fill(1);
	MUST(link_open(l, family, RDMA_PS_TCP));
	MUST(link_request(l, &param));
	c = &l->request->param.conn;
	MUST_EQ(l->request->status, 0);
	MUST(data_is(c, REQ_BYTES, 20));
	/* "matches the initiator depth specified by the remote node", and the other way round */
	MUST_EQ(c->responder_resources, 5);
	MUST_EQ(c->initiator_depth, 3);
	MUST_EQ(c->flow_control, 1);
	MUST_EQ(c->retry_count, 6);
	MUST_EQ(c->rnr_retry_count, 4);
	MUST_EQ(c->srq, 0);
	MUST_EQ(c->qp_num, l->id[0]->qp->qp_num);
	/* The new id: bound to a device, the listener's channel and context. */
	MUST(l->id[1]->verbs && l->id[1]->verbs == l->id[0]->verbs);
	MUST(l->id[1]->channel == l->ch[1]);
	MUST(l->id[1]->context == &listen_context);
	MUST(!l->id[1]->qp);
	MUST_EQ(l->id[1]->ps, RDMA_PS_TCP);
	MUST_EQ(l->id[1]->port_num, 1);
	MUST_EQ(l->id[1]->qp_type, IBV_QPT_RC);
	port = ntohs(rdma_get_src_port(l->listen));
	MUST_EQ(ntohs(rdma_get_src_port(l->id[1])), port);
	MUST_EQ(ntohs(rdma_get_dst_port(l->id[0])), port);
	MUST(rdma_get_src_port(l->id[0]) != 0);
	MUST_EQ(rdma_get_dst_port(l->id[1]), rdma_get_src_port(l->id[0]));
	for (int i = 0; i < 2; i++) {
		MUST(same_host(rdma_get_local_addr(l->id[i]), &at));
		MUST(same_host(rdma_get_peer_addr(l->id[i]), &at));
	}

	bytes_fill(9);
	param = (struct rdma_conn_param){ .private_data = bytes,
					  .private_data_len = 77,
					  .responder_resources = 4,
					  .initiator_depth = 2,
					  .flow_control = 1,
					  .rnr_retry_count = 5 };
	MUST(link_accept(l, &param));
	MUST(e = next_event(l->ch[0]));
	MUST_EQ(e->event, RDMA_CM_EVENT_ESTABLISHED);
	MUST(e->id == l->id[0] && !e->status);
	c = &e->param.conn;
	MUST(data_is(c, REP_BYTES, 77));
	MUST_EQ(c->responder_resources, 2);
	MUST_EQ(c->initiator_depth, 4);
	MUST_EQ(c->flow_control, 1);
	MUST_EQ(c->rnr_retry_count, 5);
	MUST_EQ(c->srq, 0);
	MUST_EQ(c->qp_num, l->id[1]->qp->qp_num);
	MUST_EQ(rdma_ack_cm_event(e), 0);
	MUST(e = next_event(l->ch[1]));
	MUST_EQ(e->event, RDMA_CM_EVENT_ESTABLISHED);
	MUST(e->id == l->id[1] && !e->status);
	MUST(!e->param.conn.private_data && !e->param.conn.private_data_len);
	MUST_EQ(rdma_ack_cm_event(e), 0);
	return true;
}
ON_LINK(fields, fields_body)

/* "The length of the private data provided by the user is limited to 56 bytes", 196 in accept */
static bool full_body(struct link *l, int family)
{
	struct rdma_conn_param param = some_param(bytes, REQ_BYTES);
	struct rdma_cm_event *e;

	bytes_fill(3);
	MUST(link_open(l, family, RDMA_PS_TCP) && link_request(l, &param));
	MUST(data_is(&l->request->param.conn, REQ_BYTES, REQ_BYTES));
	param.private_data_len = REP_BYTES;
	MUST(link_accept(l, &param));
	MUST(e = next_event(l->ch[0]));
	MUST(e->event == RDMA_CM_EVENT_ESTABLISHED &&
	     data_is(&e->param.conn, REP_BYTES, REP_BYTES));
	MUST_EQ(rdma_ack_cm_event(e), 0);
	return take(l->ch[1], l->id[1], RDMA_CM_EVENT_ESTABLISHED);
}
ON_LINK(private_data_of_full_length, full_body)

/* A byte more is refused and changes nothing: the connect can be repeated. */
static bool long_req_body(struct link *l, int family)
{
	struct rdma_conn_param param = some_param(bytes, REQ_BYTES + 1);

	MUST(link_open(l, family, RDMA_PS_TCP));
	MUST_ERR(rdma_connect(l->id[0], &param), EINVAL);
	param.private_data_len = 255;
	MUST_ERR(rdma_connect(l->id[0], &param), EINVAL);
	MUST(no_event(l->ch[0]) && no_event(l->ch[1]));
	MUST(link_request(l, NULL) && link_accept(l, NULL));
	return link_established(l);
}
ON_LINK(request_data_too_long, long_req_body)

/* The kernel rejects the request that it could not accept. */
static bool long_rep_body(struct link *l, int family)
{
	struct rdma_conn_param param = some_param(bytes, REP_BYTES + 1);

	MUST(link_open(l, family, RDMA_PS_TCP) && link_request(l, NULL));
	MUST_EQ(create_qp(l->id[1]), 0);
	MUST_ERR(rdma_accept(l->id[1], &param), EINVAL);
	return take_status(l->ch[0], l->id[0], RDMA_CM_EVENT_REJECTED, 28);
}
ON_LINK(reply_data_too_long, long_rep_body)

/* NULL: as much of everything as the device has. */
static bool default_body(struct link *l, int family)
{
	struct ibv_device_attr dev;
	struct rdma_conn_param *c;
	struct rdma_cm_event *e;

	MUST(link_open(l, family, RDMA_PS_TCP));
	MUST_EQ(ibv_query_device(l->id[0]->verbs, &dev), 0);
	MUST(link_request(l, NULL));
	c = &l->request->param.conn;
	MUST_EQ(c->responder_resources, (uint8_t)dev.max_qp_init_rd_atom);
	MUST_EQ(c->initiator_depth, (uint8_t)dev.max_qp_rd_atom);
	MUST_EQ(c->retry_count, 7);
	MUST_EQ(c->rnr_retry_count, 7);
	MUST_EQ(c->flow_control, 0);
	MUST(data_is(c, REQ_BYTES, 0));
	MUST(link_accept(l, NULL));
	MUST(e = next_event(l->ch[0]));
	MUST_EQ(e->event, RDMA_CM_EVENT_ESTABLISHED);
	c = &e->param.conn;
	MUST_EQ(c->responder_resources, (uint8_t)dev.max_qp_rd_atom);
	MUST_EQ(c->initiator_depth, (uint8_t)dev.max_qp_init_rd_atom);
	MUST_EQ(c->rnr_retry_count, 7);
	MUST(data_is(c, REP_BYTES, 0));
	MUST_EQ(rdma_ack_cm_event(e), 0);
	return take(l->ch[1], l->id[1], RDMA_CM_EVENT_ESTABLISHED);
}
ON_LINK(default_parameters, default_body)

/* More than the device's is refused, except 255, which stands for its maximum. */
static bool resources_body(struct link *l, int family)
{
	struct rdma_conn_param param = some_param(NULL, 0);
	struct ibv_device_attr dev;

	MUST(link_open(l, family, RDMA_PS_TCP));
	MUST_EQ(ibv_query_device(l->id[0]->verbs, &dev), 0);
	if (dev.max_qp_rd_atom < 254) {
		param.responder_resources = (uint8_t)(dev.max_qp_rd_atom + 1);
		MUST_ERR(rdma_connect(l->id[0], &param), EINVAL);
	}
	param = some_param(NULL, 0);
	if (dev.max_qp_init_rd_atom < 254) {
		param.initiator_depth = (uint8_t)(dev.max_qp_init_rd_atom + 1);
		MUST_ERR(rdma_connect(l->id[0], &param), EINVAL);
	}
	param.responder_resources = RDMA_MAX_RESP_RES;
	param.initiator_depth = RDMA_MAX_INIT_DEPTH;
	MUST(link_request(l, &param));
	MUST_EQ(l->request->param.conn.initiator_depth, (uint8_t)dev.max_qp_rd_atom);
	MUST_EQ(l->request->param.conn.responder_resources, (uint8_t)dev.max_qp_init_rd_atom);
	return true;
}
ON_LINK(resources_of_the_device, resources_body)

/* "Users must have resolved a route", and each call has its time. */
static bool states_body(struct link *l, int family)
{
	struct rdma_conn_param param = some_param(NULL, 0);
	struct rdma_cm_id *id;
	union address to = own(family, 7471);

	MUST(link_open(l, family, RDMA_PS_TCP));
	MUST_EQ(rdma_create_id(l->ch[0], &id, NULL, RDMA_PS_TCP), 0);
	MUST_ERR(rdma_connect(id, NULL), EINVAL); /* no QP and no parameters */
	MUST_ERR(rdma_reject(id, NULL, 0), EINVAL);
	MUST_EQ(rdma_resolve_addr(id, NULL, &to.sa, WAIT_MS), 0);
	MUST(take(l->ch[0], id, RDMA_CM_EVENT_ADDR_RESOLVED));
	MUST_EQ(create_qp(id), 0);
	MUST_ERR(rdma_connect(id, NULL), EINVAL); /* no route */
	MUST_ERR(rdma_disconnect(id), EINVAL);
	rdma_destroy_qp(id);
	MUST_EQ(rdma_destroy_id(id), 0);

	MUST(link_request(l, NULL));
	MUST_ERR(rdma_connect(l->id[0], NULL), EINVAL);
	MUST_ERR(rdma_accept(l->id[0], NULL), EINVAL);
	MUST_ERR(rdma_accept(l->listen, &param), EINVAL);
	MUST_ERR(rdma_connect(l->listen, NULL), EINVAL);
	MUST(link_accept(l, NULL));
	MUST(link_established(l));
	MUST_ERR(rdma_accept(l->id[1], NULL), EINVAL);
	MUST_ERR(rdma_connect(l->id[0], NULL), EINVAL);
	MUST_ERR(rdma_connect(l->id[1], NULL), EINVAL);
	return true;
}
ON_LINK(calls_out_of_time, states_body)

/* "If the rdma_conn_param structure from an event is referenced": it is passed back unchanged. */
static bool echo_body(struct link *l, int family)
{
	struct rdma_conn_param param = some_param(bytes, 33);
	struct rdma_cm_event *e;

	bytes_fill(5);
	MUST(link_open(l, family, RDMA_PS_TCP) && link_request(l, &param));
	MUST(link_accept(l, &l->request->param.conn));
	MUST(e = next_event(l->ch[0]));
	MUST_EQ(e->event, RDMA_CM_EVENT_ESTABLISHED);
	MUST(data_is(&e->param.conn, REP_BYTES, 33));
	MUST_EQ(e->param.conn.responder_resources, 3);
	MUST_EQ(e->param.conn.initiator_depth, 5);
	MUST_EQ(rdma_ack_cm_event(e), 0);
	return take(l->ch[1], l->id[1], RDMA_CM_EVENT_ESTABLISHED);
}
ON_LINK(the_event_s_own_parameters, echo_body)

/* Without a listener: REJ with the reason "invalid service id". */
static bool refused_body(struct link *l, int family)
{
	struct rdma_cm_event *e;

	MUST(link_open(l, family, RDMA_PS_TCP));
	MUST_EQ(rdma_destroy_id(l->listen), 0);
	l->listen = NULL;
	MUST_EQ(rdma_connect(l->id[0], NULL), 0);
	MUST(e = next_event(l->ch[0]));
	MUST_EQ(e->event, RDMA_CM_EVENT_REJECTED);
	MUST_EQ(e->status, 8);
	MUST_EQ(e->param.conn.private_data_len, 148);
	MUST_EQ(rdma_ack_cm_event(e), 0);
	MUST(no_event(l->ch[0]));
	return true;
}
ON_LINK(refused, refused_body)

/* The port spaces are apart: a listener of UDP is none of TCP. */
static bool spaces(int family)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *udp, *id;

	MUST(ch && (udp = listener(ch, RDMA_PS_UDP, own(family, 0), 1)));
	MUST(id = resolved(ch, RDMA_PS_TCP, own(family, ntohs(rdma_get_src_port(udp)))));
	MUST_EQ(create_qp(id), 0);
	MUST_EQ(rdma_connect(id, NULL), 0);
	MUST(take_status(ch, id, RDMA_CM_EVENT_REJECTED, 8));
	rdma_destroy_qp(id);
	MUST_EQ(rdma_destroy_id(id), 0);
	MUST_EQ(rdma_destroy_id(udp), 0);
	rdma_destroy_event_channel(ch);
	return true;
}
BOTH(spaces)

/* Messages arrive, in both directions, before either end has taken its event. */
static bool data_body(struct link *l, int family)
{
	static char buf[2][64];
	struct ibv_mr *mr[2];
	struct ibv_wc wc;

	MUST(link_open(l, family, RDMA_PS_TCP) && link_request(l, NULL));
	MUST_EQ(create_qp(l->id[1]), 0);
	l->own_qp = true;
	for (int i = 0; i < 2; i++) {
		MUST(mr[i] = rdma_reg_msgs(l->id[i], buf[i], 64));
		MUST_EQ(rdma_post_recv(l->id[i], &buf[i], buf[i], 64, mr[i]), 0);
	}
	MUST(link_accept(l, NULL) && link_established(l));
	for (int i = 0; i < 2; i++) {
		strcpy(buf[i], i ? "from the passive end" : "from the active end");
		MUST_EQ(rdma_post_send(l->id[i], buf, buf[i], 40, mr[i], IBV_SEND_SIGNALED), 0);
		MUST(wait_wc(l->id[i]->send_cq, &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST(wait_wc(l->id[!i]->recv_cq, &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST_EQ(wc.byte_len, 40);
		MUST(wc.wr_id == (uintptr_t)&buf[!i]);
		MUST(!strcmp(buf[!i], i ? "from the passive end" : "from the active end"));
	}
	for (int i = 0; i < 2; i++)
		MUST_EQ(rdma_dereg_mr(mr[i]), 0);
	return true;
}
ON_LINK(data_flows, data_body)

const struct test_case man_cases[] = {
	CASE(fields_v4),
	CASE(fields_v6),
	CASE(private_data_of_full_length_v4),
	CASE(private_data_of_full_length_v6),
	CASE(request_data_too_long_v4),
	CASE(request_data_too_long_v6),
	CASE(reply_data_too_long_v4),
	CASE(reply_data_too_long_v6),
	CASE(default_parameters_v4),
	CASE(default_parameters_v6),
	CASE(resources_of_the_device_v4),
	CASE(resources_of_the_device_v6),
	CASE(calls_out_of_time_v4),
	CASE(calls_out_of_time_v6),
	CASE(the_event_s_own_parameters_v4),
	CASE(the_event_s_own_parameters_v6),
	CASE(refused_v4),
	CASE(refused_v6),
	CASE(spaces_v4),
	CASE(spaces_v6),
	CASE(data_flows_v4),
	CASE(data_flows_v6),
	{ 0 },
};
