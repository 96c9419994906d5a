/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rdma_set_option() and rdma_get_src_port(), rdma_get_dst_port(). */
#include "addr.h"
#include "path.h"

/* The kernel's limit for a program's option. */
#define OPTION_BYTES_MAX (4u << 20)

static int option_reuseaddr(struct rdmacm_id *id, bool on)
{
	if (id->state != ID_IDLE && (!on || id->state == ID_LISTEN))
		return -EINVAL;
	id->reuseaddr = on;
	if (id->binding)
		id->binding->use.reuse = on;
	return 0;
}

static int option_afonly(struct rdmacm_id *id, bool on)
{
	if (id->state != ID_IDLE && id->state != ID_ADDR_BOUND)
		return -EINVAL;
	id->afonly = on;
	id->afonly_set = true;
	if (id->binding)
		id->binding->use.family_only = on;
	return 0;
}

static int option_ack_timeout(struct rdmacm_id *id, u8 timeout)
{
	if (id->pub.qp_type != IBV_QPT_RC && id->pub.qp_type != IBV_QPT_XRC_SEND)
		return -EINVAL;
	id->ack_timeout = timeout;
	id->ack_timeout_set = true;
	return 0;
}

/* Caller holds the lock. */
static int option_set(struct rdmacm_id *id, int name, const void *value, size_t len)
{
	const bool is_byte = name == RDMA_OPTION_ID_TOS || name == RDMA_OPTION_ID_ACK_TIMEOUT;
	int number = 0;
	u8 byte = 0;

	if (name < RDMA_OPTION_ID_TOS || name > RDMA_OPTION_ID_ACK_TIMEOUT)
		return -ENOSYS;
	if (len != (is_byte ? sizeof(byte) : sizeof(number)))
		return -EINVAL;
	memcpy(is_byte ? (void *)&byte : (void *)&number, value, len);
	switch (name) {
	case RDMA_OPTION_ID_TOS:
		id->tos = byte;
		id->tos_set = true;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
		return option_reuseaddr(id, number);
	case RDMA_OPTION_ID_AFONLY:
		return option_afonly(id, number);
	default:
		return option_ack_timeout(id, byte);
	}
}

EXPORT int rdma_set_option(struct rdma_cm_id *cm_id, int level, int name, void *value, size_t len)
{
	CANCEL_HELD;
	struct rdmacm_id *id = to_id(cm_id);
	int err = id_check(id);

	if (!err && len > OPTION_BYTES_MAX)
		err = -EINVAL;
	if (!err && !value && len)
		err = -EFAULT;
	if (err)
		return rdmacm_report(err);
	if (level == RDMA_OPTION_IB)
		return rdmacm_report(name == RDMA_OPTION_IB_PATH ? path_set(id, value, len) :
								   -ENOSYS);
	if (level != RDMA_OPTION_ID)
		return rdmacm_report(-ENOSYS);
	rdmacm_enter();
	err = option_set(id, name, value, len);
	rdmacm_leave();
	return rdmacm_report(err);
}

/* In network byte order, as in rdma-core. */
EXPORT __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return htobe16(route_port(&id->route.addr.src_storage));
}

EXPORT __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return htobe16(route_port(&id->route.addr.dst_storage));
}
