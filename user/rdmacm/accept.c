/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a program answers to a request: yes or no. */
#include "../os/clock.h"
#include "conn.h"
#include "qp1.h"

/* Of a REJ: the peer's enhanced connection establishment is not supported. */
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

/* Under the lock. */
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
	/* whether it still waits for an answer is the core's to say */
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
		/* the process may end now, as it may with the kernel's CM */
		cm_device_hold(dev);
		qp1_flush_sends(dev->qp1);
		cm_device_put(dev);
	}
	rdmacm_leave();
	return rdmacm_report(err);
}

EXPORT int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return reject(id, private_data, private_data_len, CM_REJ_CONSUMER_DEFINED);
}

EXPORT int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data,
			   uint8_t private_data_len)
{
	return reject(id, private_data, private_data_len, REJ_VENDOR_OPTION);
}
