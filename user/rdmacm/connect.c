/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connection calls of programs: the active side, and calls common to both sides. */
#include <stdatomic.h>
#include <stdlib.h>

#include "../os/clock.h"
#include "../os/kernel.h"

#include "addr.h"
#include "id.h"
#include "qp1.h"

#define RETRIES_MAX 7 /* three bits */

/* The last number; any thread replaces it. */
static _Atomic u64 conn_random_last;

int conn_random_start(void)
{
	u64 first;
	const int err = kernel_random(&first, sizeof(first));

	if (!err)
		/* relaxed: any number that a thread finds here serves */
		atomic_store_explicit(&conn_random_last, first, memory_order_relaxed);
	return err;
}

u64 conn_random(void)
{
	u64 number = atomic_load_explicit(&conn_random_last, memory_order_relaxed);

	kernel_random_renew(&number, 1);
	atomic_store_explicit(&conn_random_last, number, memory_order_relaxed);
	return number;
}

u32 conn_new_psn(void)
{
	return (u32)conn_random() & 0xffffff;
}

u64 conn_service_id(const struct rdmacm_id *id, const struct sockaddr_storage *address)
{
	return cm_service_id((enum cm_port_space)id->pub.ps, route_port(address));
}

/* ---- parameters ---- */

static int conn_check_param(const struct rdmacm_id *id, const struct rdma_conn_param *param)
{
	if (!id->device)
		return -EINVAL;
	if (id->pub.ps != RDMA_PS_TCP)
		return 0;
	if (!param)
		return id->pub.qp ? 0 : -EINVAL;
	if (param->responder_resources != RDMA_MAX_RESP_RES &&
	    param->responder_resources > id->device->max_responder_resources)
		return -EINVAL;
	if (param->initiator_depth != RDMA_MAX_INIT_DEPTH &&
	    param->initiator_depth > id->device->max_initiator_depth)
		return -EINVAL;
	return 0;
}

struct conn_data {
	u32 len;
	u8 bytes[2 * UINT8_MAX];
};

/* Joins the data of rdma_create_ep() and the program's data, after room for a header. */
static int conn_private_data(struct rdmacm_id *id, const struct rdma_conn_param *param, u32 header,
			     struct conn_data *out)
{
	const u32 own = param && param->private_data ? param->private_data_len : 0;

	out->len = header;
	if (header + own + id->connect_len > sizeof(out->bytes))
		return -EINVAL;
	if (id->connect_len)
		memcpy(out->bytes + out->len, id->connect, id->connect_len);
	out->len += (u32)id->connect_len;
	if (own)
		memcpy(out->bytes + out->len, param->private_data, own);
	out->len += own;
	return 0;
}

static void conn_forget_data(struct rdmacm_id *id)
{
	free(id->connect);
	id->connect = NULL;
	id->connect_len = 0;
}

/* Sets the parameters of the id's QP, or without a QP the program's. */
static void conn_set_own(struct rdmacm_id *id, const struct rdma_conn_param *param)
{
	id->param.qpn = id->pub.qp ? id->pub.qp->qp_num : param ? param->qp_num : 0;
	id->param.srq = id->pub.qp ? id->pub.qp->srq != NULL : param ? param->srq != 0 : 0;
	id->param.flow_control = param ? param->flow_control : 0;
}

/* ---- connecting ---- */

/*
 * Combines the packet life time to the peer and its delay, as the kernel's cm_ack_timeout() does.
 */
static u8 conn_ack_timeout(u8 delay, u8 life)
{
	u32 timeout = life + 1u;

	if (timeout >= delay)
		timeout += delay >= timeout - 1;
	else
		timeout = delay + (timeout >= delay - 1u);
	return (u8)min_u32(timeout, 31);
}

static enum cm_transport conn_transport(const struct rdmacm_id *id)
{
	switch (id->pub.qp_type) {
	case IBV_QPT_UC:
		return CM_TRANSPORT_UC;
	case IBV_QPT_XRC_SEND:
		return CM_TRANSPORT_EXTENDED;
	default:
		return CM_TRANSPORT_RC;
	}
}

static void conn_put_header(const struct rdmacm_id *id, u8 *data)
{
	struct cm_ip_header header = { .source_port = route_port(&id->src) };

	/* not the path's addresses: a program may connect to 127.0.0.1 */
	route_gid(&header.source, &id->src);
	route_gid(&header.destination, &id->dst);
	cm_ip_header_put(data, &header);
}

/* Caller holds the lock. */
static int conn_send_req(struct rdmacm_id *id, const struct conn_data *data)
{
	const struct id_connection *p = &id->param;
	struct cm_req req = {
		.service_id = conn_service_id(id, &id->dst),
		.vendor_id = id->local_ece.vendor_id,
		.ece_options = id->local_ece.options,
		.qpn = p->qpn,
		.starting_psn = p->receive_psn,
		.responder_resources = p->responder_resources,
		.initiator_depth = p->initiator_depth,
		.remote_response_timeout = CONN_RESPONSE_TIMEOUT,
		.local_response_timeout = CONN_RESPONSE_TIMEOUT,
		.max_retries = CONN_MAX_RETRIES,
		.transport = conn_transport(id),
		.extended_transport =
			id->pub.qp_type == IBV_QPT_XRC_SEND ? CM_EXTENDED_XRC : 0,
		.flow_control = p->flow_control != 0,
		.retry_count = p->retry_count,
		.rnr_retry_count = p->rnr_retry_count,
		.pkey = RDMACM_PKEY,
		.mtu = (u8)id->path_mtu,
		.srq = p->srq,
		.primary = { .ack_timeout = p->ack_timeout },
	};

	return cm_connect(id->device->cm, &id->path, &req, data->bytes, data->len, id,
			  clock_now_ns(), &id->conn);
}

static int conn_send_sidr(struct rdmacm_id *id, const struct conn_data *data)
{
	const struct cm_sidr_req req = { .service_id = conn_service_id(id, &id->dst),
					 .pkey = RDMACM_PKEY };
	const struct cm_times times = { .response_timeout = CONN_RESPONSE_TIMEOUT,
					.max_retries = CONN_MAX_RETRIES };

	return cm_sidr_request(id->device->cm, &id->path, &req, &times, data->bytes, data->len, id,
			       clock_now_ns(), &id->conn);
}

static void conn_set_asked(struct rdmacm_id *id, const struct rdma_conn_param *param)
{
	const struct rdmacm_device *dev = id->device;
	struct id_connection *p = &id->param;

	*p = (struct id_connection){
		.receive_psn = conn_new_psn(),
		.responder_resources =
			param && param->responder_resources != RDMA_MAX_RESP_RES ?
				param->responder_resources :
				dev->max_responder_resources,
		.initiator_depth = param && param->initiator_depth != RDMA_MAX_INIT_DEPTH ?
					   param->initiator_depth :
					   dev->max_initiator_depth,
		.retry_count = (u8)min_u32(param ? param->retry_count : 7, RETRIES_MAX),
		.rnr_retry_count = (u8)min_u32(param ? param->rnr_retry_count : 7, RETRIES_MAX),
		.ack_timeout = conn_ack_timeout(dev->ack_delay, id->path.life),
		.mtu = id->path_mtu,
	};
	conn_set_own(id, param);
}

/* Caller holds the lock. */
static int conn_begin(struct rdmacm_id *id, const struct rdma_conn_param *param,
		      const struct conn_data *data)
{
	int err;

	if (!id_move(id, ID_ROUTE_RESOLVED, ID_CONNECT))
		return -EINVAL;
	conn_set_asked(id, param);
	err = id->pub.qp_type == IBV_QPT_UD ? conn_send_sidr(id, data) : conn_send_req(id, data);
	if (err) {
		id->state = ID_ROUTE_RESOLVED;
		return err;
	}
	cm_ask_again(id->conn, CONN_ASKS);
	cm_device_turn(id->device);
	return 0;
}

EXPORT int rdma_connect(struct rdma_cm_id *cm_id, struct rdma_conn_param *param)
{
	CANCEL_HELD;
	struct rdmacm_id *id = to_id(cm_id);
	struct conn_data data = { 0 };
	int err = id_check(id);

	if (!err)
		err = conn_check_param(id, param);
	if (!err)
		err = conn_private_data(id, param, CM_IP_HEADER_BYTES, &data);
	if (!err)
		err = cm_device_start(id->device);
	if (err)
		return rdmacm_report(err);
	conn_put_header(id, data.bytes);
	rdmacm_enter();
	err = id->device->gone ? -EINVAL : conn_begin(id, param, &data);
	rdmacm_leave();
	if (err)
		return rdmacm_report(err);
	conn_forget_data(id);
	return rdmacm_report(id_complete(id));
}

int conn_complete(struct rdmacm_id *id)
{
	int err = qp_ready(id, RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH);

	rdmacm_enter();
	if (!err && (!id->conn || id->device->gone))
		err = -EINVAL;
	if (!err)
		err = cm_ready(id->device->cm, id->conn, NULL, 0, clock_now_ns());
	if (!err)
		cm_device_turn(id->device);
	rdmacm_leave();
	if (err)
		qp_fail(id);
	return err;
}

EXPORT int rdma_establish(struct rdma_cm_id *cm_id)
{
	CANCEL_HELD;
	struct rdmacm_id *id = to_id(cm_id);
	int err = id_check(id);

	if (!err && cm_id->qp)
		err = -EINVAL;
	return rdmacm_report(err ? err : conn_complete(id));
}

/* ---- calls for either side ---- */

EXPORT int rdma_disconnect(struct rdma_cm_id *cm_id)
{
	CANCEL_HELD;
	struct rdmacm_id *id = to_id(cm_id);
	int err = id_check(id);

	if (!err && !cm_id->verbs)
		err = -EINVAL;
	if (err)
		return rdmacm_report(err);
	qp_fail(id);
	rdmacm_enter();
	if (!id->conn || id->device->gone) {
		err = -EINVAL;
	} else if (!cm_disconnect(id->device->cm, id->conn, NULL, 0, clock_now_ns())) {
		/* an id that is not connected sends nothing, which is not an error */
		cm_device_turn(id->device);
	}
	rdmacm_leave();
	return rdmacm_report(err ? err : id_complete(id));
}

EXPORT int rdma_notify(struct rdma_cm_id *cm_id, enum ibv_event_type event)
{
	CANCEL_HELD;
	struct rdmacm_id *id = to_id(cm_id);
	int err = id_check(id);

	if (err)
		return rdmacm_report(err);
	rdmacm_enter();
	if (!id->conn || id->device->gone || event != IBV_EVENT_COMM_EST)
		err = -EINVAL;
	else if (cm_conn_state(id->conn) == CM_ESTABLISHED)
		err = -EISCONN;
	else
		err = cm_establish(id->device->cm, id->conn, clock_now_ns());
	if (!err)
		cm_device_turn(id->device);
	rdmacm_leave();
	return rdmacm_report(err);
}

/* A program's answer to a request: accept or reject. */

/* Reason in a REJ: the peer's enhanced connection establishment is not supported. */
#define REJ_VENDOR_OPTION 35

static u8 accept_depth(const u8 *asked, u8 all, u8 peer, u8 max)
{
	return !asked || *asked == all ? (u8)min_u32(peer, max) : *asked;
}

static void accept_set_param(struct rdmacm_id *id, const struct rdma_conn_param *param)
{
	struct id_connection *p = &id->param;

	p->initiator_depth = accept_depth(param ? &param->initiator_depth : NULL,
					  RDMA_MAX_INIT_DEPTH, p->initiator_depth,
					  id->device->max_initiator_depth);
	p->responder_resources = accept_depth(param ? &param->responder_resources : NULL,
					      RDMA_MAX_RESP_RES, p->responder_resources,
					      id->device->max_responder_resources);
	conn_set_own(id, param);
}

/* Caller holds the lock. */
static int accept_conn(struct rdmacm_id *id, const struct rdma_conn_param *param,
		       const struct conn_data *data)
{
	const struct cm_rep rep = {
		.vendor_id = id->remote_ece.vendor_id,
		.ece_options = id->local_ece.options,
		.qpn = id->param.qpn,
		.starting_psn = id->param.receive_psn,
		.responder_resources = id->param.responder_resources,
		.initiator_depth = id->param.initiator_depth,
		.target_ack_delay = id->device->ack_delay,
		.flow_control = id->param.flow_control != 0,
		.rnr_retry_count = (u8)min_u32(param ? param->rnr_retry_count : 7, 7),
		.srq = id->param.srq,
	};

	return cm_accept(id->device->cm, id->conn, &rep, data->bytes, data->len, clock_now_ns());
}

static int accept_ud(struct rdmacm_id *id, const struct conn_data *data)
{
	const struct cm_sidr_rep rep = { .status = CM_SIDR_VALID,
					 .qpn = id->param.qpn,
					 .qkey = RDMA_UDP_QKEY };

	return cm_sidr_reply(id->device->cm, id->conn, &rep, data->bytes, data->len,
			     clock_now_ns());
}

EXPORT int rdma_accept(struct rdma_cm_id *cm_id, struct rdma_conn_param *param)
{
	CANCEL_HELD;
	struct rdmacm_id *id = to_id(cm_id);
	const bool is_ud = cm_id->qp_type == IBV_QPT_UD;
	struct conn_data data = { 0 };
	int err = id_check(id);

	if (!err && !cm_id->qp && !param)
		err = -EINVAL;
	if (!err)
		err = conn_check_param(id, param);
	if (!err)
		err = conn_private_data(id, param, 0, &data);
	if (err)
		return rdmacm_report(err);
	accept_set_param(id, param);
	if (!is_ud)
		err = qp_ready(id, id->param.responder_resources, id->param.initiator_depth);
	if (err)
		return rdmacm_report(err);
	rdmacm_enter();
	/* the core checks that the request still awaits an answer */
	if (!id->conn || id->device->gone)
		err = -EINVAL;
	else
		err = is_ud ? accept_ud(id, &data) : accept_conn(id, param, &data);
	if (!err) {
		id->unaccepted = false;
		cm_device_turn(id->device);
	}
	rdmacm_leave();
	if (err) {
		qp_fail(id);
		rdma_reject(cm_id, NULL, 0);
		return rdmacm_report(err);
	}
	if (!is_ud)
		return rdmacm_report(id_complete(id));
	if (id->sync && cm_id->event) {
		rdma_ack_cm_event(cm_id->event);
		cm_id->event = NULL;
	}
	return 0;
}

static int reject(struct rdma_cm_id *cm_id, const void *data, u8 len, u16 reason)
{
	const struct cm_sidr_rep sidr = { .status = CM_SIDR_REJECTED };
	const struct cm_rej rej = { .reason = reason };
	struct rdmacm_id *id = to_id(cm_id);
	int err = id_check(id);

	if (err)
		return rdmacm_report(err);
	if (!data)
		len = 0;
	rdmacm_enter();
	if (!id->conn || id->device->gone)
		err = -EINVAL;
	else if (cm_id->qp_type == IBV_QPT_UD)
		err = cm_sidr_reply(id->device->cm, id->conn, &sidr, data, len, clock_now_ns());
	else
		err = cm_reject(id->device->cm, id->conn, &rej, data, len, clock_now_ns());
	if (!err) {
		struct rdmacm_device *dev = id->device;

		cm_device_turn(dev);
		/* the process may exit now, as with the kernel's CM */
		cm_device_hold(dev);
		qp1_flush_sends(dev->qp1);
		cm_device_put(dev);
	}
	rdmacm_leave();
	return rdmacm_report(err);
}

EXPORT int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	CANCEL_HELD;
	return reject(id, private_data, private_data_len, CM_REJ_CONSUMER_DEFINED);
}

EXPORT int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data,
			   uint8_t private_data_len)
{
	CANCEL_HELD;
	return reject(id, private_data, private_data_len, REJ_VENDOR_OPTION);
}
