/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See rc.h. */
#include "rc.h"

#include <sched.h>
#include <string.h>

#include "ctl.h"

int rc_try_connect(struct ibv_qp *qp, const struct rc_address *own, const struct rc_address *peer,
		   const struct rc_options *o)
{
	const bool is_rc = qp->qp_type == IBV_QPT_RC;
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .pkey_index = o->pkey_index,
				 .qp_access_flags = RC_ACCESS };
	int err = ibv_modify_qp(
		qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	if (err)
		return err;
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = o->path_mtu ? o->path_mtu : IBV_MTU_1024,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = 8,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = peer->gid,
				      .sgid_index = o->gid_index,
				      .hop_limit = 64 } },
	};
	err = ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN |
				    (is_rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
	if (err)
		return err;
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				  .sq_psn = own->psn,
				  .max_rd_atomic = 8,
				  .timeout = o->timeout,
				  .retry_cnt = o->retry_cnt,
				  .rnr_retry = o->rnr_retry };
	return ibv_modify_qp(qp, &a,
			     IBV_QP_STATE | IBV_QP_SQ_PSN |
				     (is_rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
						      IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
					    : 0));
}

void rc_connect(struct ibv_qp *qp, const struct rc_address *own, const struct rc_address *peer,
		const struct rc_options *o)
{
	int err = rc_try_connect(qp, own, peer, o);

	must(!err, "connect a QP (type %d): %s", qp->qp_type, strerror(err));
}

void rc_reset(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };

	int err = ibv_modify_qp(qp, &a, IBV_QP_STATE);

	must(!err, "reset a QP: %s", strerror(err));
}

struct ibv_wc rc_wait(struct ibv_cq *cq, const char *what)
{
	uint64_t end = now_ms() + WAIT_MS;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc))) {
		must(now_ms() < end, "%s: no completion in %d ms", what, WAIT_MS);
		sched_yield();
	}
	must(n == 1, "%s: ibv_poll_cq: %d", what, n);
	return wc;
}
