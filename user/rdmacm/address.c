/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Conversions of programs' addresses; ports of one process's ids; rdma_getaddrinfo(). */
#include <infiniband/ib.h>
#include <netdb.h>
#include <stdlib.h>

#include "address.h"
#include "newer.h"
#include "rdmacm.h"

u32 address_bytes(const struct sockaddr *sa)
{
	switch (sa->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_IB:
		return sizeof(struct sockaddr_ib);
	default:
		return 0;
	}
}

bool address_get(struct address *a, const struct sockaddr *sa)
{
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	memset(a, 0, sizeof(*a));
	if (sa->sa_family == AF_INET) {
		memcpy(&in, sa, sizeof(in));
		a->ip.raw[10] = a->ip.raw[11] = 0xff;
		memcpy(a->ip.raw + 12, &in.sin_addr, 4);
		a->port = be16toh(in.sin_port);
		return true;
	}
	if (sa->sa_family != AF_INET6)
		return false;
	memcpy(&in6, sa, sizeof(in6));
	memcpy(a->ip.raw, &in6.sin6_addr, 16);
	a->port = be16toh(in6.sin6_port);
	if (address_is_link_local(a) || address_is_multicast(a))
		a->scope = in6.sin6_scope_id;
	return !address_is_ipv4(a);
}

void address_put(const struct address *a, struct sockaddr *sa)
{
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	if (sa->sa_family == AF_INET) {
		memcpy(&in, sa, sizeof(in));
		memcpy(&in.sin_addr, a->ip.raw + 12, 4);
		in.sin_port = htobe16(a->port);
		memcpy(sa, &in, sizeof(in));
	} else {
		memcpy(&in6, sa, sizeof(in6));
		memcpy(&in6.sin6_addr, a->ip.raw, 16);
		in6.sin6_port = htobe16(a->port);
		in6.sin6_scope_id = a->scope;
		memcpy(sa, &in6, sizeof(in6));
	}
}

bool address_equal(const struct address *a, const struct address *b)
{
	return gid_equal(&a->ip, &b->ip) && (!address_is_link_local(a) || a->scope == b->scope);
}

/* ---- ports ---- */

#define PORT_PRIVILEGED 1024u /* lower ports */

static struct port_use **ports_bucket(struct ports *ports, u16 port)
{
	return &ports->bucket[port % PORTS_BUCKETS];
}

/* Returns the next other use of that port after prev; the first one if prev is NULL. */
static struct port_use *ports_next(struct ports *ports, const struct port_use *use, u16 port,
				   struct port_use *prev)
{
	struct port_use *other = prev ? prev->next : *ports_bucket(ports, port);

	while (other && (other == use || other->space != use->space || other->local.port != port))
		other = other->next;
	return other;
}

static void ports_insert(struct ports *ports, struct port_use *use)
{
	struct port_use **bucket = ports_bucket(ports, use->local.port);

	use->next = *bucket;
	*bucket = use;
	use->bound = true;
}

/* Checks a port that the program named, for binding or listening. */
static int ports_check(struct ports *ports, const struct port_use *use, bool reuse)
{
	struct port_use *other = NULL;

	while ((other = ports_next(ports, use, use->local.port, other))) {
		if (reuse && other->reuse)
			continue;
		if (use->family_only && other->family_only &&
		    address_is_ipv4(&use->local) != address_is_ipv4(&other->local))
			continue;
		if (address_is_any(&use->local) || address_is_any(&other->local))
			return -EADDRNOTAVAIL;
		if (address_equal(&use->local, &other->local))
			return -EADDRINUSE;
	}
	return 0;
}

/* True if both are specific and differ. */
static bool ports_addresses_differ(const struct address *a, const struct address *b)
{
	return !address_is_any(a) && !address_is_any(b) && !address_equal(a, b);
}

/* True if the port may be drawn for use. Connections that differ in one end may share it. */
static bool ports_is_free(struct ports *ports, const struct port_use *use, u16 port)
{
	struct port_use *other = NULL;

	while ((other = ports_next(ports, use, port, other))) {
		const u16 here = use->remote.port, there = other->remote.port;

		if (!(here && there && here != there) &&
		    !ports_addresses_differ(&use->local, &other->local) &&
		    !ports_addresses_differ(&use->remote, &other->remote))
			return false;
	}
	return true;
}

static int ports_draw(struct ports *ports, struct port_use *use, const struct ports_rules *rules)
{
	const u32 count = rules->high < rules->low ? 0 : (u32)rules->high - rules->low + 1;

	for (u32 i = 0; i < count; i++) {
		const u16 port = (u16)(rules->low + (rules->random % count + i) % count);

		/* Not the last drawn port again at once: its last user's peers know it. */
		if (port && port != ports->last_drawn && ports_is_free(ports, use, port)) {
			ports->last_drawn = port;
			use->local.port = port;
			return 0;
		}
	}
	return -EADDRNOTAVAIL;
}

static bool ports_has_space(enum cm_port_space space)
{
	return space == CM_PS_TCP || space == CM_PS_UDP || space == CM_PS_IPOIB ||
	       space == CM_PS_IB;
}

int ports_bind(struct ports *ports, struct port_use *use, const struct ports_rules *rules)
{
	int ret;

	if (!ports_has_space(use->space))
		return -EPROTONOSUPPORT;
	if (!use->local.port)
		ret = ports_draw(ports, use, rules);
	else if (use->local.port < PORT_PRIVILEGED && !rules->privileged)
		ret = -EACCES;
	else
		ret = ports_check(ports, use, use->reuse);
	if (!ret)
		ports_insert(ports, use);
	return ret;
}

int ports_listen(struct ports *ports, struct port_use *use)
{
	int ret = use->reuse ? ports_check(ports, use, false) : 0;

	if (!ret)
		use->reuse = false;
	return ret;
}

void ports_release(struct ports *ports, struct port_use *use)
{
	struct port_use **link = ports_bucket(ports, use->local.port);

	if (!use->bound)
		return;
	while (*link != use)
		link = &(*link)->next;
	*link = use->next;
	use->bound = false;
}

/* ---- rdma_getaddrinfo ---- */

/*
 * rdma_getaddrinfo(): the C library's getaddrinfo() with RDMA's names for the results. Returns only
 * the first result, like rdma-core, and resolves no routes, like rdma-core without ibacm.
 */

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

/*
 * Returns the -errno of a question to the subnet administration. "Non-Infiniband ports will be
 * skipped", and this library has no others.
 */
static int addrinfo_refuse_sa(const char *node, const char *service,
			      const struct rdma_addrinfo *hints)
{
	if (node || hints->ai_flags & RAI_DNS)
		return -EOPNOTSUPP;
	return service ? -ENOENT : -EINVAL;
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
	if (h->ai_flags & RAI_SA)
		return rdmacm_report(addrinfo_refuse_sa(node, service, h));
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
