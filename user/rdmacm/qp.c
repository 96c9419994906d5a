/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * QPs, SRQs and CQs that the library creates for an id, and the states that it moves a QP through.
 */
#include <rdma/rdma_verbs.h>

#include "addr.h"
#include "id.h"

/* ---- states ---- */

/*
 * Moves the QP to a state. A limit of 255 selects the connection's value. The attributes of
 * rdma_init_qp_attr() are used unchecked: if a peer asks for more than this device has, the verb
 * fails. Returns 0 or -errno.
 */
static int qp_move(struct rdmacm_id *id, struct ibv_qp *qp, enum ibv_qp_state state, u8 limit)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	if (rdma_init_qp_attr(&id->pub, &attr, &mask))
		return -errno;
	if (state == IBV_QPS_RTR && limit != RDMA_MAX_RESP_RES)
		attr.max_dest_rd_atomic = limit;
	if (state == IBV_QPS_RTS && limit != RDMA_MAX_INIT_DEPTH)
		attr.max_rd_atomic = limit;
	return -ibv_modify_qp(qp, &attr, mask);
}

int qp_ready(struct rdmacm_id *id, u8 responder_resources, u8 initiator_depth)
{
	struct ibv_qp *qp = id->pub.qp;
	int err;

	if (!qp)
		return 0;
	err = qp_move(id, qp, IBV_QPS_INIT, 0);
	if (!err)
		err = qp_move(id, qp, IBV_QPS_RTR, responder_resources);
	if (!err)
		err = qp_move(id, qp, IBV_QPS_RTS, initiator_depth);
	return err;
}

/*
 * Held while an event moves an id's QP to ERR, and while rdma_destroy_qp() takes the QP from its
 * id: another thread may be in rdma_get_cm_event(). Before the locks of ibv_modify_qp().
 */
static pthread_mutex_t qp_lock = PTHREAD_MUTEX_INITIALIZER;

void qp_after_fork(void)
{
	pthread_mutex_init(&qp_lock, NULL);
}

void qp_fail(struct rdmacm_id *id)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	pthread_mutex_lock(&qp_lock);
	if (id->pub.qp)
		ibv_modify_qp(id->pub.qp, &attr, IBV_QP_STATE);
	pthread_mutex_unlock(&qp_lock);
}

static struct ibv_qp *qp_take(struct rdma_cm_id *id)
{
	struct ibv_qp *qp;

	pthread_mutex_lock(&qp_lock);
	qp = id->qp;
	id->qp = NULL;
	pthread_mutex_unlock(&qp_lock);
	return qp;
}

/* Sets up a new QP: UD to RTS, other types to INIT. */
static int qp_begin(struct rdmacm_id *id, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	int err = qp_move(id, qp, IBV_QPS_INIT, 0);

	if (err || id->pub.qp_type != IBV_QPT_UD)
		return err;
	err = -ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	return err ? err : -ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

/* ---- CQs ---- */

static void qp_destroy_cqs(struct rdma_cm_id *id)
{
	if (id->qp_type == IBV_QPT_XRC_RECV && id->srq)
		return;
	if (id->recv_cq)
		ibv_destroy_cq(id->recv_cq);
	if (id->send_cq && id->send_cq != id->recv_cq)
		ibv_destroy_cq(id->send_cq);
	if (id->recv_cq_channel)
		ibv_destroy_comp_channel(id->recv_cq_channel);
	if (id->send_cq_channel && id->send_cq_channel != id->recv_cq_channel)
		ibv_destroy_comp_channel(id->send_cq_channel);
	id->recv_cq = id->send_cq = NULL;
	id->recv_cq_channel = id->send_cq_channel = NULL;
}

static int qp_make_cq(struct rdma_cm_id *id, u32 entries, struct ibv_comp_channel **channel,
		      struct ibv_cq **cq)
{
	*channel = ibv_create_comp_channel(id->verbs);
	if (!*channel)
		return -errno;
	*cq = ibv_create_cq(id->verbs, (int)entries, id, *channel, 0);
	return *cq ? 0 : -errno;
}

/* Creates CQs with an entry per work request of each side; none for 0. */
static int qp_make_cqs(struct rdma_cm_id *id, u32 sends, u32 receives)
{
	int err = 0;

	if (receives)
		err = qp_make_cq(id, receives, &id->recv_cq_channel, &id->recv_cq);
	if (!err && sends)
		err = qp_make_cq(id, sends, &id->send_cq_channel, &id->send_cq);
	if (err)
		qp_destroy_cqs(id);
	return err;
}

/* ---- SRQs ---- */

static int srq_set_xrc(struct rdmacm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	int err = 0;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd)
		err = cm_device_xrcd(id->device, &attr->xrcd);
	if (!err && (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !attr->cq)) {
		err = qp_make_cqs(&id->pub, 0, attr->attr.max_wr);
		attr->cq = id->pub.recv_cq;
	}
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	return err;
}

static int srq_make(struct rdmacm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	int err = id_check(id);

	if (!err && (!id->device || !(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE)))
		err = -EINVAL;
	if (err)
		return err;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->pd = id->pub.pd;
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
	}
	if (attr->srq_type == IBV_SRQT_XRC)
		err = srq_set_xrc(id, attr);
	if (err)
		return err;
	id->pub.srq = ibv_create_srq_ex(id->pub.verbs, attr);
	if (!id->pub.srq) {
		err = -errno;
		qp_destroy_cqs(&id->pub);
		return err;
	}
	if (!id->pub.pd)
		id->pub.pd = attr->pd;
	return 0;
}

EXPORT int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	CANCEL_HELD;
	return rdmacm_report(srq_make(to_id(id), attr));
}

EXPORT int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	CANCEL_HELD;
	struct ibv_srq_init_attr_ex ex = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC,
		.pd = pd,
	};
	int err = srq_make(to_id(id), &ex);

	attr->attr = ex.attr;
	return rdmacm_report(err);
}

/* Does nothing without an SRQ, like rdma_destroy_qp() without a QP. */
EXPORT void rdma_destroy_srq(struct rdma_cm_id *id)
{
	CANCEL_HELD;
	if (!id->srq)
		return;
	ibv_destroy_srq(id->srq);
	id->srq = NULL;
	qp_destroy_cqs(id);
}

/* ---- QPs ---- */

/*
 * Returns 0, or -EINVAL: the id has a QP, the PD is another device's, or the CQs are not the id's.
 */
static int qp_check(const struct rdmacm_id *id, const struct ibv_qp_init_attr_ex *attr)
{
	const struct rdma_cm_id *pub = &id->pub;

	if (pub->qp || !id->device || !pub->verbs)
		return -EINVAL;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_PD && attr->pd && attr->pd->context != pub->verbs)
		return -EINVAL;
	if ((pub->recv_cq && attr->recv_cq && pub->recv_cq != attr->recv_cq) ||
	    (pub->send_cq && attr->send_cq && pub->send_cq != attr->send_cq))
		return -EINVAL;
	return 0;
}

/* Fills in objects that the program left out. */
static int qp_fill_in(struct rdmacm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *pub = &id->pub;
	int err = 0;

	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = pub->pd;
	}
	if (pub->qp_type == IBV_QPT_XRC_RECV &&
	    (!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !attr->xrcd)) {
		err = cm_device_xrcd(id->device, &attr->xrcd);
		attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
	}
	if (!err)
		err = qp_make_cqs(pub, attr->send_cq || pub->send_cq ? 0 : attr->cap.max_send_wr,
				  attr->recv_cq || pub->recv_cq ? 0 : attr->cap.max_recv_wr);
	if (!attr->send_cq)
		attr->send_cq = pub->send_cq;
	if (!attr->recv_cq)
		attr->recv_cq = pub->recv_cq;
	if (pub->srq && !attr->srq)
		attr->srq = pub->srq;
	return err;
}

/* Undoes qp_fill_in(). The attributes keep no destroyed CQs: the program may retry with less. */
static void qp_take_back(struct rdma_cm_id *pub, struct ibv_qp_init_attr_ex *attr)
{
	if (attr->send_cq == pub->send_cq)
		attr->send_cq = NULL;
	if (attr->recv_cq == pub->recv_cq)
		attr->recv_cq = NULL;
	qp_destroy_cqs(pub);
}

/* Returns 0 or the verb's error; a device without ECE is not an error. */
static int ece_result(int err)
{
	return err == EOPNOTSUPP ? 0 : -err;
}

/* Sets up ECE for a new QP. Returns 0 or -errno. */
static int ece_begin(struct rdmacm_id *id, struct ibv_qp *qp)
{
	struct ibv_ece ece = { 0 };
	int err = ece_result(ibv_query_ece(qp, &ece));

	if (err)
		return err;
	id->local_ece.vendor_id = ece.vendor_id;
	id->local_ece.options = ece.options;
	if (!id->remote_ece.vendor_id)
		return 0;
	/* created for a request: the peer's options, or none if it is another vendor's */
	ece = (struct ibv_ece){ .vendor_id = id->local_ece.vendor_id };
	if (id->remote_ece.vendor_id == id->local_ece.vendor_id)
		ece.options = id->remote_ece.options;
	return ece_result(ibv_set_ece(qp, &ece));
}

static int qp_make(struct rdmacm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp;
	int err = id_check(id);

	if (!err)
		err = qp_check(id, attr);
	if (!err)
		err = qp_fill_in(id, attr);
	if (err)
		return err;
	qp = ibv_create_qp_ex(id->pub.verbs, attr);
	err = qp ? ece_begin(id, qp) : -errno;
	if (!err)
		err = qp_begin(id, qp);
	if (err) {
		if (qp)
			ibv_destroy_qp(qp);
		qp_take_back(&id->pub, attr);
		return err;
	}
	if (qp->pd) /* an XRC target has none: the id's PD is its SRQ's */
		id->pub.pd = qp->pd;
	id->pub.qp = qp;
	return 0;
}

EXPORT int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	CANCEL_HELD;
	return rdmacm_report(qp_make(to_id(id), attr));
}

EXPORT int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	CANCEL_HELD;
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd ? pd : id->pd,
	};
	int err = qp_make(to_id(id), &ex);

	attr->send_cq = ex.send_cq;
	attr->recv_cq = ex.recv_cq;
	attr->srq = ex.srq;
	attr->cap = ex.cap;
	return rdmacm_report(err);
}

/* Does nothing without a QP: qperf 0.4.11 calls it on its listening id. */
EXPORT void rdma_destroy_qp(struct rdma_cm_id *id)
{
	CANCEL_HELD;
	struct ibv_qp *qp = qp_take(id);

	if (!qp)
		return;
	ibv_destroy_qp(qp);
	qp_destroy_cqs(id);
}

/* Enhanced connection establishment: vendor options that both ends agree on. */

EXPORT int rdma_set_local_ece(struct rdma_cm_id *cm_id, struct ibv_ece *ece)
{
	CANCEL_HELD;
	struct rdmacm_id *id;

	if (!cm_id || cm_id->qp || !ece || !ece->vendor_id || ece->comp_mask)
		return rdmacm_report(-EINVAL);
	id = to_id(cm_id);
	id->local_ece.vendor_id = ece->vendor_id;
	id->local_ece.options = ece->options;
	return 0;
}

EXPORT int rdma_get_remote_ece(struct rdma_cm_id *cm_id, struct ibv_ece *ece)
{
	CANCEL_HELD;
	const struct rdmacm_id *id;

	if (!cm_id || cm_id->qp || !ece)
		return rdmacm_report(-EINVAL);
	id = to_id(cm_id);
	ece->vendor_id = id->remote_ece.vendor_id;
	ece->options = id->remote_ece.options;
	ece->comp_mask = 0;
	return 0;
}

/* The attributes of a connection's QP, as in the kernel's ib_cm and cma, from the REQ and REP. */

/* An XRC QP either sends requests or answers them; an RC QP does both. */
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

/* True in the core's states in which both sides have agreed on the QP's attributes. */
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
	CANCEL_HELD;
	struct rdmacm_id *id = to_id(cm_id);
	int err = id_check(id);

	if (err)
		return rdmacm_report(err);
	rdmacm_enter();
	err = id->device ? attr_get(id, attr, mask) : -EINVAL;
	rdmacm_leave();
	return rdmacm_report(err);
}
