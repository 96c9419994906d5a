/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Enhanced connection establishment: a vendor's options that both ends agree on. */
#include "conn.h"

/* 0, or what the verb says; a device without it is no error. */
static int ece_result(int err)
{
	return err == EOPNOTSUPP ? 0 : -err;
}

int ece_begin(struct rdmacm_id *id, struct ibv_qp *qp)
{
	struct ibv_ece ece = { 0 };
	int err = ece_result(ibv_query_ece(qp, &ece));

	if (err)
		return err;
	id->local_ece.vendor_id = ece.vendor_id;
	id->local_ece.options = ece.options;
	if (!id->remote_ece.vendor_id)
		return 0;
	/* made for a request: what the peer asked for, or nothing if it is another vendor's */
	ece = (struct ibv_ece){ .vendor_id = id->local_ece.vendor_id };
	if (id->remote_ece.vendor_id == id->local_ece.vendor_id)
		ece.options = id->remote_ece.options;
	return ece_result(ibv_set_ece(qp, &ece));
}

EXPORT int rdma_set_local_ece(struct rdma_cm_id *cm_id, struct ibv_ece *ece)
{
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
	const struct rdmacm_id *id;

	if (!cm_id || cm_id->qp || !ece)
		return rdmacm_report(-EINVAL);
	id = to_id(cm_id);
	ece->vendor_id = id->remote_ece.vendor_id;
	ece->options = id->remote_ece.options;
	ece->comp_mask = 0;
	return 0;
}
