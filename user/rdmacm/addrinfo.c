/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdma_getaddrinfo(): the C library's getaddrinfo() with RDMA's names for the results. Returns only
 * the first result, like rdma-core, and resolves no routes, like rdma-core without ibacm.
 */
#include <infiniband/ib.h>
#include <netdb.h>
#include <stdlib.h>

#include "address.h"
#include "rdmacm.h"

static int addrinfo_socktype(int qp_type)
{
	switch (qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return SOCK_STREAM;
	case IBV_QPT_UD:
		return SOCK_DGRAM;
	default:
		return 0;
	}
}

static int addrinfo_protocol(int port_space, int socktype)
{
	switch (port_space) {
	case RDMA_PS_TCP:
		return IPPROTO_TCP;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		return IPPROTO_UDP;
	case RDMA_PS_IB:
		return socktype == SOCK_STREAM ? IPPROTO_TCP :
		       socktype == SOCK_DGRAM  ? IPPROTO_UDP :
						 0;
	default:
		return 0;
	}
}

static void addrinfo_ask(struct addrinfo *ask, const struct rdma_addrinfo *hints)
{
	*ask = (struct addrinfo){ .ai_family = hints->ai_family == AF_IB ? 0 : hints->ai_family };
	if (hints->ai_flags & RAI_PASSIVE)
		ask->ai_flags |= AI_PASSIVE;
	if (hints->ai_flags & RAI_NUMERICHOST)
		ask->ai_flags |= AI_NUMERICHOST;
	ask->ai_socktype = addrinfo_socktype(hints->ai_qp_type);
	ask->ai_protocol = addrinfo_protocol(hints->ai_port_space, ask->ai_socktype);
}

static int addrinfo_copy(struct sockaddr **to, socklen_t *len, const struct sockaddr *from,
			 socklen_t from_len)
{
	*to = malloc(from_len);
	if (!*to)
		return -ENOMEM;
	memcpy(*to, from, from_len);
	*len = from_len;
	return 0;
}

/* Makes an InfiniBand address from an IP address, for programs that ask for one numerically. */
static int addrinfo_copy_ib(struct sockaddr **to, socklen_t *len, int port_space,
			    const struct sockaddr *from)
{
	struct sockaddr_ib *ib = calloc(1, sizeof(*ib));
	struct address a;

	if (!ib)
		return -ENOMEM;
	address_get(&a, from);
	ib->sib_family = AF_IB;
	ib->sib_pkey = htobe16(RDMACM_PKEY);
	if (from->sa_family == AF_INET6)
		ib->sib_flowinfo = ((const struct sockaddr_in6 *)from)->sin6_flowinfo;
	memcpy(ib->sib_addr.sib_raw, a.ip.raw, sizeof(ib->sib_addr.sib_raw));
	ib->sib_sid = htobe64(((u64)port_space << 16) + a.port);
	ib->sib_sid_mask = htobe64((port_space ? RDMA_IB_IP_PS_MASK : 0) |
				   (a.port ? RDMA_IB_IP_PORT_MASK : 0));
	ib->sib_scope_id = a.scope;
	*to = (struct sockaddr *)ib;
	*len = sizeof(*ib);
	return 0;
}

/* Stores the C library's result in res. Returns 0 or -ENOMEM. */
static int addrinfo_take(struct rdma_addrinfo *res, const struct rdma_addrinfo *hints,
			 const struct addrinfo *ai)
{
	const bool passive = ai->ai_flags & AI_PASSIVE;
	const bool ib = hints->ai_flags & RAI_FAMILY && hints->ai_flags & RAI_NUMERICHOST &&
			hints->ai_family == AF_IB;
	struct sockaddr **to = passive ? &res->ai_src_addr : &res->ai_dst_addr;
	socklen_t *len = passive ? &res->ai_src_len : &res->ai_dst_len;
	char **name = passive ? &res->ai_src_canonname : &res->ai_dst_canonname;

	res->ai_flags = passive ? RAI_PASSIVE : 0;
	res->ai_qp_type = hints->ai_qp_type	      ? hints->ai_qp_type :
			  ai->ai_socktype == SOCK_STREAM ? IBV_QPT_RC :
			  ai->ai_socktype == SOCK_DGRAM	 ? IBV_QPT_UD :
							   0;
	res->ai_port_space = hints->ai_port_space	   ? hints->ai_port_space :
			     ai->ai_protocol == IPPROTO_TCP ? RDMA_PS_TCP :
			     ai->ai_protocol == IPPROTO_UDP ? RDMA_PS_UDP :
							      0;
	if (ai->ai_canonname) {
		*name = strdup(ai->ai_canonname);
		if (!*name)
			return -ENOMEM;
	}
	res->ai_family = ib ? AF_IB : ai->ai_family;
	return ib ? addrinfo_copy_ib(to, len, res->ai_port_space, ai->ai_addr) :
		    addrinfo_copy(to, len, ai->ai_addr, ai->ai_addrlen);
}

/* Returns 0, -errno, or a positive number: the C library's EAI_* without its sign. */
static int addrinfo_resolve(const char *node, const char *service,
			    const struct rdma_addrinfo *hints, bool has_hints,
			    struct rdma_addrinfo *res)
{
	struct addrinfo ask, *ai;
	int err;

	addrinfo_ask(&ask, hints);
	err = getaddrinfo(node, service, has_hints ? &ask : NULL, &ai);
	if (err)
		return -err;
	err = addrinfo_take(res, hints, ai);
	freeaddrinfo(ai);
	return err;
}

/* Copies the hints, as there is neither node nor service. */
static int addrinfo_of_hints(struct rdma_addrinfo *res, const struct rdma_addrinfo *hints)
{
	res->ai_flags = hints->ai_flags;
	res->ai_family = hints->ai_family;
	res->ai_qp_type = hints->ai_qp_type;
	res->ai_port_space = hints->ai_port_space;
	return hints->ai_dst_len ? addrinfo_copy(&res->ai_dst_addr, &res->ai_dst_len,
						 hints->ai_dst_addr, hints->ai_dst_len) :
				   0;
}

EXPORT int rdma_getaddrinfo(const char *node, const char *service,
			    const struct rdma_addrinfo *hints, struct rdma_addrinfo **out)
{
	static const struct rdma_addrinfo none;
	const struct rdma_addrinfo *h = hints ? hints : &none;
	struct rdma_addrinfo *res;
	int err;

	if (!node && !service && !hints)
		return rdmacm_report(-EINVAL);
	res = calloc(1, sizeof(*res));
	if (!res)
		return rdmacm_report(-ENOMEM);
	if (node || service)
		err = addrinfo_resolve(node, service, h, hints, res);
	else
		err = addrinfo_of_hints(res, h);
	if (!err && !res->ai_src_len && h->ai_src_len)
		err = addrinfo_copy(&res->ai_src_addr, &res->ai_src_len, h->ai_src_addr,
				    h->ai_src_len);
	if (err) {
		rdma_freeaddrinfo(res);
		return err > 0 ? -err : rdmacm_report(err);
	}
	*out = res;
	return 0;
}

EXPORT void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	while (res) {
		struct rdma_addrinfo *next = res->ai_next;

		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
		res = next;
	}
}
