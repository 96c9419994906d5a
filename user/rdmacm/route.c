/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdma_resolve_route(): the path to a resolved address. RoCE needs no query: the path follows from
 * the addresses, the interface and the options (rdma_set_option()), as in the kernel's CM.
 */
#include <stdlib.h>

#include "addr.h"
#include "cm_device.h"

#define FLOW_LABEL_MASK 0xfffffu

/* Makes UDP source ports differ among connections between two addresses. */
static u32 path_flow_label(const struct rdmacm_id *id)
{
	u32 label = 0;

	if (id->src.ss_family == AF_INET6)
		label = be32toh(((const struct sockaddr_in6 *)&id->src)->sin6_flowinfo) &
			FLOW_LABEL_MASK;
	if (!label)
		label = (route_port(&id->src) * 31u + route_port(&id->dst)) & FLOW_LABEL_MASK;
	return label;
}

/* Returns PacketLifeTime: half the local ACK timeout (IBTA 12.7.34). */
static u8 path_life(const struct rdmacm_id *id)
{
	return id->ack_timeout_set && id->ack_timeout ? id->ack_timeout - 1 : RDMACM_PACKET_LIFE;
}

static int path_show(struct rdmacm_event *ev)
{
	ev->pub.status = route_show_path(ev->id);
	if (ev->pub.status)
		ev->pub.event = RDMA_CM_EVENT_ROUTE_ERROR;
	return 0;
}

/* Queues the event for the program. Caller holds the lock. */
static int path_tell(struct rdmacm_id *id)
{
	struct rdmacm_event *ev = event_new(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);

	if (!ev)
		return -ENOMEM;
	ev->deliver = path_show;
	event_post(ev);
	return 0;
}

static void path_use(struct rdmacm_id *id, const struct ibv_path_record *path)
{
	const u32 flow_hop = be32toh(path->flowlabel_hoplimit);
	const u8 mtu = path->mtu & 0x3f;

	id->path.flow_label = flow_hop >> 8 & FLOW_LABEL_MASK;
	id->path.hop_limit = (u8)flow_hop;
	id->path.traffic_class = path->tclass;
	id->path.sl = be16toh(path->qosclass_sl) & 0xf;
	id->path.life = path->packetlifetime & 0x3f;
	if (mtu >= IBV_MTU_256 && mtu < id->path_mtu)
		id->path_mtu = (enum ibv_mtu)mtu;
}

/* Sets the default path. Caller holds the lock. */
static void path_make(struct rdmacm_id *id)
{
	id->path.flow_label = path_flow_label(id);
	id->path.traffic_class = id->tos_set ? id->tos : 0;
	id->path.life = path_life(id);
}

/* given: the program's path, or NULL. Returns 0 or -errno. */
static int path_resolve(struct rdmacm_id *id, const struct ibv_path_record *given)
{
	enum ibv_mtu mtu;
	int err;

	if (id->state != ID_ADDR_RESOLVED)
		return -EINVAL;
	err = interfaces_mtu(id->device->ifindex, id->device->verbs, &mtu);
	if (err)
		return err;
	rdmacm_enter();
	if (id_move(id, ID_ADDR_RESOLVED, ID_ROUTE_RESOLVED)) {
		id->path_mtu = mtu;
		if (given)
			path_use(id, given);
		else
			path_make(id);
		err = path_tell(id);
		if (err)
			id->state = ID_ADDR_RESOLVED;
	} else {
		err = -EINVAL;
	}
	rdmacm_leave();
	return err;
}

EXPORT int rdma_resolve_route(struct rdma_cm_id *cm_id, int timeout_ms)
{
	CANCEL_HELD;
	struct rdmacm_id *id = to_id(cm_id);
	int err = id_check(id);

	(void)timeout_ms;
	if (!err)
		err = path_resolve(id, NULL);
	return rdmacm_report(err ? err : id_complete(id));
}

/* ---- a path from the program: RDMA_OPTION_IB_PATH ---- */

static bool path_is_for(const struct ibv_path_data *data)
{
	const u32 flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;

	return data->flags == flags;
}

/* True if the path connects the id's resolved addresses. */
static bool path_is_between(const struct ibv_path_record *path, const struct cm_path *want)
{
	return !memcmp(path->sgid.raw, want->local.raw, sizeof(want->local.raw)) &&
	       !memcmp(path->dgid.raw, want->remote.raw, sizeof(want->remote.raw));
}

/*
 * RDMA_OPTION_IB_PATH: value is an array of struct ibv_path_data. Its first entry that is primary,
 * bidirectional and for management datagrams becomes the id's path. Resolves the route. Returns 0,
 * -EINVAL or -errno.
 */
static int path_set(struct rdmacm_id *id, const void *value, size_t len)
{
	struct ibv_path_data data;
	size_t at = 0;

	if (len % sizeof(data))
		return -EINVAL;
	do {
		if (at == len)
			return -EINVAL;
		memcpy(&data, (const u8 *)value + at, sizeof(data));
		at += sizeof(data);
	} while (!path_is_for(&data));
	return id->device && path_is_between(&data.path, &id->path) ?
		       path_resolve(id, &data.path) :
		       -EINVAL;
}

/* Addresses and paths in the public structs. */

void route_show(struct rdmacm_id *id)
{
	struct rdma_addr *addr = &id->pub.route.addr;

	addr->src_storage = id->src;
	addr->dst_storage = id->dst;
	memcpy(addr->addr.ibaddr.sgid.raw, id->path.local.raw, sizeof(id->path.local.raw));
	memcpy(addr->addr.ibaddr.dgid.raw, id->path.remote.raw, sizeof(id->path.remote.raw));
	addr->addr.ibaddr.pkey = htobe16(RDMACM_PKEY);
}

int route_show_path(struct rdmacm_id *id)
{
	struct ibv_sa_path_rec *rec = calloc(1, sizeof(*rec));

	if (!rec)
		return -ENOMEM;
	memcpy(rec->sgid.raw, id->path.local.raw, sizeof(rec->sgid.raw));
	memcpy(rec->dgid.raw, id->path.remote.raw, sizeof(rec->dgid.raw));
	rec->flow_label = htobe32(id->path.flow_label);
	rec->hop_limit = id->path.hop_limit;
	rec->traffic_class = id->path.traffic_class;
	rec->reversible = 1;
	rec->numb_path = 1;
	rec->pkey = htobe16(RDMACM_PKEY);
	rec->sl = id->path.sl;
	rec->mtu_selector = rec->rate_selector = rec->packet_life_time_selector = 2; /* exactly */
	rec->mtu = (uint8_t)id->path_mtu;
	rec->rate = IBV_RATE_10_GBPS;
	rec->packet_life_time = id->path.life;
	free(id->pub.route.path_rec);
	id->pub.route.path_rec = rec;
	id->pub.route.num_paths = 1;
	return 0;
}

int route_ah_attr(const struct rdmacm_id *id, struct ibv_ah_attr *attr)
{
	const int index = cm_device_recent_gid_index(id->device, &id->path.local);

	if (index < 0)
		return index;
	*attr = (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = RDMACM_PORT,
		.sl = id->path.sl,
		.grh = { .flow_label = id->path.flow_label,
			 .sgid_index = (u8)index,
			 .hop_limit = id->path.hop_limit,
			 .traffic_class = id->path.traffic_class },
	};
	memcpy(attr->grh.dgid.raw, id->path.remote.raw, sizeof(attr->grh.dgid.raw));
	return 0;
}

void route_sockaddr(struct sockaddr_storage *out, const struct gid *gid, u16 port, u32 ifindex)
{
	memset(out, 0, sizeof(*out));
	if (gid_is_ipv4(gid)) {
		struct sockaddr_in *sin = (struct sockaddr_in *)out;

		sin->sin_family = AF_INET;
		sin->sin_port = htobe16(port);
		memcpy(&sin->sin_addr, gid->raw + 12, sizeof(sin->sin_addr));
	} else {
		struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)out;

		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = htobe16(port);
		memcpy(&sin6->sin6_addr, gid->raw, sizeof(sin6->sin6_addr));
		if (IN6_IS_ADDR_LINKLOCAL(&sin6->sin6_addr))
			sin6->sin6_scope_id = ifindex;
	}
}

void route_gid(struct gid *gid, const struct sockaddr_storage *address)
{
	memset(gid, 0, sizeof(*gid));
	if (address->ss_family == AF_INET) {
		gid->raw[10] = gid->raw[11] = 0xff;
		memcpy(gid->raw + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
	} else {
		memcpy(gid->raw, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
	}
}

u16 route_port(const struct sockaddr_storage *address)
{
	/* both families have it at the same offset */
	return be16toh(((const struct sockaddr_in *)address)->sin_port);
}

/* ---- options ---- */

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
