/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Multicast groups: ibv_attach_mcast(3). The LID is of no meaning on RoCE (annex A17), and is not
 * looked at.
 */
#include "objects.h"

static int mcast_check(const struct vqp *vqp)
{
	if (!object_is_known(vqp))
		return ENOENT;
	return context_gone(vqp->ibv.context) ? EIO : 0;
}

static struct gid mcast_address(const union ibv_gid *gid)
{
	struct gid address;

	memcpy(address.raw, gid->raw, sizeof(address.raw));
	return address;
}

/* As rdma-core has them: what the library or its limits lack is lack of memory. */
static int mcast_errno(int err)
{
	switch (err) {
	case -ENOSPC:
	case -EDQUOT:
	case -ENOBUFS:
	case -EMFILE:
	case -ENFILE:
	case -E2BIG:
		return ENOMEM;
	default:
		return -err;
	}
}

EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct vqp *vqp = to_vqp(qp);
	const struct gid address = mcast_address(gid);
	int err = mcast_check(vqp);

	if (!err && (qp->qp_type != IBV_QPT_UD || !group_is_address(&address)))
		err = EINVAL;
	if (!err)
		err = mcast_errno(port_attach(vqp->port, vqp->qp, &address));
	return verb_report(err);
}

EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct vqp *vqp = to_vqp(qp);
	const struct gid address = mcast_address(gid);
	int err = object_is_known(vqp) ? -port_detach(vqp->port, vqp->qp, &address) : ENOENT;

	return verb_report(err);
}
