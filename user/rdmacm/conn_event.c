/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Turns the core's events of requests and connections into events of ids. Statuses and parameters
 * are as with rdma-core and the kernel's ucma. responder_resources and initiator_depth from the
 * peer are swapped.
 */
#include <stdlib.h>

#include "../os/clock.h"
#include "addr.h"
#include "id.h"
#include "qp1.h"

void conn_close(struct rdmacm_id *id)
{
	struct cm_conn *conn = id->conn;

	id->conn = NULL;
	if (!conn || id->device->gone)
		return;
	cm_close(id->device->cm, conn, clock_now_ns());
	cm_device_turn(id->device);
}

/* ---- requests ---- */

static bool request_is_for(const struct rdmacm_id *listener, const struct cm_event *ev)
{
	const struct cm_req *req = &ev->mad.req;

	if (ev->kind == CM_EVENT_SIDR_REQUEST)
		return listener->pub.qp_type == IBV_QPT_UD;
	switch (listener->pub.qp_type) {
	case IBV_QPT_RC:
		return req->transport == CM_TRANSPORT_RC;
	case IBV_QPT_UC:
		return req->transport == CM_TRANSPORT_UC;
	case IBV_QPT_XRC_RECV:
		return req->transport == CM_TRANSPORT_EXTENDED;
	default:
		return false;
	}
}

/* In the program's thread: the program owns the new id from now on. */
static int request_deliver(struct rdmacm_event *ev)
{
	struct rdmacm_id *id = to_id(ev->pub.id), *listener = ev->id;
	int err = listener->sync ? rdma_migrate_id(&id->pub, NULL) : 0;

	if (!err)
		err = route_show_path(id);
	if (err) {
		rdma_destroy_id(&id->pub);
		return err;
	}
	route_show(id);
	id_show_device(id);
	rdmacm_enter();
	if (id->conn && !id->device->gone)
		cm_take(id->device->cm, id->conn);
	rdmacm_leave();
	return 0;
}

/* No program has seen the request. */
static void request_discard(struct rdmacm_event *ev)
{
	struct rdmacm_id *id = to_id(ev->pub.id);

	id->state = ID_DESTROYING;
	id_end(id);
}

static void request_set_param(struct rdmacm_id *id, const struct cm_mad *mad)
{
	const struct cm_req *req = &mad->req;

	id->param = (struct id_connection){
		.remote_qpn = req->qpn,
		.send_psn = req->starting_psn,
		.receive_psn = conn_new_psn(),
		.responder_resources = req->initiator_depth,
		.initiator_depth = req->responder_resources,
		.retry_count = req->retry_count,
		.rnr_retry_count = req->rnr_retry_count,
		.ack_timeout = req->primary.ack_timeout,
		.flow_control = req->flow_control,
		.srq = req->srq,
		.mtu = (enum ibv_mtu)req->mtu,
	};
	id->path.flow_label = req->primary.flow_label;
	id->path.traffic_class = req->primary.traffic_class;
	id->path.hop_limit = req->primary.hop_limit;
	id->path.sl = req->primary.sl;
	id->path.life = req->primary.ack_timeout ? (u8)(req->primary.ack_timeout - 1) : 0;
	id->path_mtu = id->param.mtu;
	id->remote_ece = (struct ibv_ece){ .vendor_id = req->vendor_id, .options = mad->attr_mod };
}

static void request_set_event(struct rdmacm_event *out, const struct cm_event *ev)
{
	const struct cm_req *req = &ev->mad.req;
	u32 len = cm_data_room(ev->mad.kind);

	if (cm_service_is_ip(ev->kind == CM_EVENT_REQUEST ? req->service_id :
							    ev->mad.sidr_req.service_id))
		len -= CM_IP_HEADER_BYTES;
	if (ev->kind == CM_EVENT_SIDR_REQUEST) {
		event_set_ud_data(out, ev->mad.data, len);
		return;
	}
	event_set_conn_data(out, ev->mad.data, len);
	out->pub.param.conn.responder_resources = req->initiator_depth;
	out->pub.param.conn.initiator_depth = req->responder_resources;
	out->pub.param.conn.flow_control = req->flow_control;
	out->pub.param.conn.retry_count = req->retry_count;
	out->pub.param.conn.rnr_retry_count = req->rnr_retry_count;
	out->pub.param.conn.srq = req->srq;
	out->pub.param.conn.qp_num = req->qpn;
}

static struct rdmacm_id *request_new_id(struct rdmacm_id *listener, struct rdmacm_device *dev,
					const struct cm_event *ev)
{
	struct rdmacm_id *id;

	if (id_new(listener->pub.channel, listener->pub.context, listener->pub.ps,
		   listener->pub.qp_type, &id))
		return NULL;
	id_list(id);
	id->state = ID_CONNECT;
	id->unaccepted = true;
	id->conn = ev->conn;
	id->device = dev;
	cm_device_hold(dev);
	id->path = ev->path;
	qp1_mac(dev->qp1, &ev->path, id->peer_mac);
	id->tos = listener->tos;
	id->tos_set = listener->tos_set;
	route_sockaddr(&id->src, &ev->ip.destination, route_port(&listener->src), dev->ifindex);
	route_sockaddr(&id->dst, &ev->ip.source, ev->ip.source_port, dev->ifindex);
	if (ev->kind == CM_EVENT_REQUEST)
		request_set_param(id, &ev->mad);
	cm_conn_set_context(ev->conn, id);
	return id;
}

static void conn_on_request(struct rdmacm_device *dev, const struct cm_event *ev)
{
	struct rdmacm_id *listener = ev->context, *id = NULL;
	struct rdmacm_event *out = NULL;

	if (request_is_for(listener, ev))
		id = request_new_id(listener, dev, ev);
	if (id)
		out = event_new(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	if (!out) {
		if (id) {
			id->state = ID_DESTROYING;
			id->conn = NULL;
			id_end(id);
		}
		cm_close(dev->cm, ev->conn, clock_now_ns());
		return;
	}
	out->pub.id = &id->pub;
	out->pub.listen_id = &listener->pub;
	out->deliver = request_deliver;
	out->discard = request_discard;
	request_set_event(out, ev);
	if (ev->kind == CM_EVENT_REQUEST)
		cm_prepare_delay(dev->cm, ev->conn, CONN_SERVICE_TIMEOUT);
	event_post(out);
}

/* ---- the active side's answer ---- */

/*
 * In the program's thread: moves the id's QP and sends the RTU. For an id without a QP, the program
 * does that and calls rdma_establish().
 */
static int reply_deliver(struct rdmacm_event *ev)
{
	struct rdmacm_id *id = ev->id;
	int err;

	if (!id->pub.qp)
		return 0;
	err = conn_complete(id);
	if (!err) {
		ev->pub.event = RDMA_CM_EVENT_ESTABLISHED;
		return 0;
	}
	ev->pub.event = RDMA_CM_EVENT_CONNECT_ERROR;
	ev->pub.status = err;
	id->connect_failed = true;
	return 0;
}

static struct rdmacm_event *conn_on_reply(struct rdmacm_id *id, const struct cm_event *ev)
{
	const struct cm_rep *rep = &ev->mad.rep;
	struct rdmacm_event *out = event_new(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);

	id->param.remote_qpn = rep->qpn;
	id->param.send_psn = rep->starting_psn;
	id->param.responder_resources = rep->initiator_depth;
	id->param.initiator_depth = rep->responder_resources;
	id->param.rnr_retry_count = rep->rnr_retry_count;
	id->param.target_ack_delay = rep->target_ack_delay;
	id->remote_ece = (struct ibv_ece){ .vendor_id = rep->vendor_id,
					   .options = ev->mad.attr_mod };
	if (!out)
		return NULL;
	cm_prepare_delay(id->device->cm, ev->conn, CONN_SERVICE_TIMEOUT);
	event_set_conn_data(out, ev->mad.data, cm_data_room(CM_REP));
	out->pub.param.conn.responder_resources = rep->initiator_depth;
	out->pub.param.conn.initiator_depth = rep->responder_resources;
	out->pub.param.conn.flow_control = rep->flow_control;
	out->pub.param.conn.rnr_retry_count = rep->rnr_retry_count;
	out->pub.param.conn.srq = rep->srq;
	out->pub.param.conn.qp_num = rep->qpn;
	out->deliver = reply_deliver;
	return out;
}

/* ---- the rest of a connection ---- */

/* In the program's thread. Returns nonzero if the connection's end was already reported. */
static int end_deliver(struct rdmacm_event *ev)
{
	if (ev->id->connect_failed)
		return -EINVAL;
	if (ev->pub.event == RDMA_CM_EVENT_REJECTED)
		qp_fail(ev->id);
	return 0;
}

static struct rdmacm_event *conn_on_end(struct rdmacm_id *id, enum rdma_cm_event_type type,
					int status)
{
	struct rdmacm_event *out = event_new(id, type, status);

	if (out)
		out->deliver = end_deliver;
	return out;
}

static struct rdmacm_event *conn_on_reject(struct rdmacm_id *id, const struct cm_event *ev)
{
	struct rdmacm_event *out = conn_on_end(id, RDMA_CM_EVENT_REJECTED, ev->mad.rej.reason);

	if (out)
		event_set_conn_data(out, ev->mad.data, cm_data_room(CM_REJ));
	return out;
}

static struct rdmacm_event *conn_on_disconnect(struct rdmacm_id *id, const struct cm_event *ev)
{
	const bool unanswered = ev->kind == CM_EVENT_DISCONNECTED && !ev->mad.kind;

	id->state = ID_DISCONNECT;
	return conn_on_end(id, RDMA_CM_EVENT_DISCONNECTED, unanswered ? -ETIMEDOUT : 0);
}

static struct rdmacm_event *conn_on_sidr_reply(struct rdmacm_id *id, const struct cm_event *ev)
{
	const struct cm_sidr_rep *rep = &ev->mad.sidr_rep;
	struct rdmacm_event *out = event_new(id, RDMA_CM_EVENT_ESTABLISHED, 0);

	if (!out)
		return NULL;
	event_set_ud_data(out, ev->mad.data, cm_data_room(CM_SIDR_REP));
	if (rep->status) {
		out->pub.event = RDMA_CM_EVENT_UNREACHABLE;
		out->pub.status = rep->status;
		return out;
	}
	id->qkey = rep->qkey;
	out->pub.param.ud.qp_num = rep->qpn;
	out->pub.param.ud.qkey = rep->qkey;
	if (route_ah_attr(id, &out->pub.param.ud.ah_attr)) {
		out->pub.event = RDMA_CM_EVENT_ADDR_ERROR;
		out->pub.status = -EADDRNOTAVAIL;
	}
	return out;
}

/*
 * As the kernel's cma and ucma: an id that is neither connecting nor connected gets no events. The
 * id of a request gets none before it is accepted; accepting fails if the peer is gone.
 */
static struct rdmacm_event *conn_translate(struct rdmacm_id *id, const struct cm_event *ev)
{
	const enum id_state wanted =
		ev->kind == CM_EVENT_TIMEWAIT_EXIT ? ID_DISCONNECT : ID_CONNECT;

	if (id->state != wanted || id->unaccepted)
		return NULL;
	switch (ev->kind) {
	case CM_EVENT_REPLY:
		return conn_on_reply(id, ev);
	case CM_EVENT_ESTABLISHED:
		return event_new(id, RDMA_CM_EVENT_ESTABLISHED, 0);
	case CM_EVENT_REJECTED:
		return conn_on_reject(id, ev);
	case CM_EVENT_UNREACHABLE:
		return conn_on_end(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	case CM_EVENT_DISCONNECT:
	case CM_EVENT_DISCONNECTED:
		return conn_on_disconnect(id, ev);
	case CM_EVENT_TIMEWAIT_EXIT:
		return event_new(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	case CM_EVENT_SIDR_REPLY:
		return conn_on_sidr_reply(id, ev);
	default:
		return NULL;
	}
}

void conn_event(struct rdmacm_device *dev, const struct cm_event *ev)
{
	struct rdmacm_event *out;

	if (ev->kind == CM_EVENT_REQUEST || ev->kind == CM_EVENT_SIDR_REQUEST) {
		conn_on_request(dev, ev);
		return;
	}
	if (!ev->context)
		return;
	out = conn_translate(ev->context, ev);
	if (out)
		event_post(out);
}
