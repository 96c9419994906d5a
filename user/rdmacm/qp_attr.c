/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The attributes by which a QP follows its connection: those that the kernel's ib_cm and cma say,
 * from what REQ and REP agreed on.
 */
#include "conn.h"
#include "route.h"

/* Of XRC one side asks and the other answers; a RC QP does both. */
static bool attr_answers(const struct rdmacm_id *id)
{
	return id->pub.qp_type == IBV_QPT_RC || id->pub.qp_type == IBV_QPT_XRC_RECV;
}

static bool attr_asks(const struct rdmacm_id *id)
{
	return id->pub.qp_type == IBV_QPT_RC || id->pub.qp_type == IBV_QPT_XRC_SEND;
}

static int attr_init(const struct rdmacm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	*attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT, .port_num = RDMACM_PORT };
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	if (id->pub.qp_type == IBV_QPT_UD) {
		attr->qkey = id->qkey ? id->qkey : RDMA_UDP_QKEY;
		*mask |= IBV_QP_QKEY;
		return 0;
	}
	*mask |= IBV_QP_ACCESS_FLAGS;
	if (!id->conn)
		return 0;
	attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (id->param.responder_resources)
		attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	return 0;
}

static int attr_rtr(const struct rdmacm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	static const u8 no_mac[6];
	int err;

	*attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = id->param.mtu,
		.dest_qp_num = id->param.remote_qpn,
		.rq_psn = id->param.receive_psn,
	};
	*mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (attr_answers(id)) {
		attr->max_dest_rd_atomic = id->param.responder_resources;
		*mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	}
	err = route_ah_attr(id, &attr->ah_attr);
	/* the program's thread moves the QP next, and does not wait for a silent peer */
	if (!err && memcmp(id->peer_mac, no_mac, sizeof(no_mac)))
		xroce_cm_heard(&attr->ah_attr.grh.dgid, id->peer_mac);
	return err;
}

static int attr_rts(const struct rdmacm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	*attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .sq_psn = id->param.send_psn };
	*mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (attr_asks(id)) {
		attr->retry_cnt = id->param.retry_count;
		attr->rnr_retry = id->param.rnr_retry_count;
		attr->max_rd_atomic = id->param.initiator_depth;
		*mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	}
	if (attr_asks(id) || attr_answers(id)) {
		attr->timeout = id->ack_timeout_set ? id->ack_timeout : id->param.ack_timeout;
		*mask |= IBV_QP_TIMEOUT;
	}
	return 0;
}

/* The core's states in which both sides have said what a QP needs. */
static bool attr_is_agreed(const struct rdmacm_id *id)
{
	switch (id->conn && !id->device->gone ? cm_conn_state(id->conn) : CM_IDLE) {
	case CM_REQ_RCVD:
	case CM_REP_RCVD:
	case CM_REP_SENT:
	case CM_ESTABLISHED:
		return true;
	default:
		return false;
	}
}

static int attr_get(const struct rdmacm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	if (attr->qp_state == IBV_QPS_INIT)
		return attr_init(id, attr, mask);
	if (id->pub.qp_type == IBV_QPT_UD || !attr_is_agreed(id))
		return -EINVAL;
	switch (attr->qp_state) {
	case IBV_QPS_RTR:
		return attr_rtr(id, attr, mask);
	case IBV_QPS_RTS:
		return attr_rts(id, attr, mask);
	default:
		return -EINVAL;
	}
}

EXPORT int rdma_init_qp_attr(struct rdma_cm_id *cm_id, struct ibv_qp_attr *attr, int *mask)
{
	struct rdmacm_id *id = to_id(cm_id);
	int err = id_check(id);

	if (err)
		return rdmacm_report(err);
	rdmacm_enter();
	err = id->device ? attr_get(id, attr, mask) : -EINVAL;
	rdmacm_leave();
	return rdmacm_report(err);
}
