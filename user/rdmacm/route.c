/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses and paths as programs see them. */
#include "route.h"

#include <stdlib.h>

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
	/* both families have it at the same place */
	return be16toh(((const struct sockaddr_in *)address)->sin_port);
}
