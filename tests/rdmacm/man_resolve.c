/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* rdma_resolve_addr(3), rdma_resolve_route(3), and other calls that report addresses. */
#include <ifaddrs.h>
#include <net/if.h>

#include "man.h"

static struct rdma_event_channel *ch;

static bool begin(struct rdma_cm_id **id)
{
	MUST(ch = rdma_create_event_channel());
	MUST_EQ(rdma_create_id(ch, id, NULL, RDMA_PS_TCP), 0);
	return true;
}

static bool end(struct rdma_cm_id *id)
{
	MUST(no_event(ch));
	MUST_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
	return true;
}

/* "bound to a source address based on the local routing tables" */
static bool resolves(int family)
{
	union address to = other(family, SILENT, 7471), at = own(family, 0);
	struct rdma_cm_id *id;

	MUST(begin(&id));
	MUST_EQ(rdma_resolve_addr(id, NULL, &to.sa, WAIT_MS), 0);
	MUST(take(ch, id, RDMA_CM_EVENT_ADDR_RESOLVED));
	MUST(id->verbs && id->pd);
	MUST_EQ(id->port_num, 1);
	MUST(same_host(rdma_get_local_addr(id), &at));
	MUST(same_host(rdma_get_peer_addr(id), &to));
	MUST_EQ(ntohs(rdma_get_dst_port(id)), 7471);
	MUST(rdma_get_src_port(id) != 0);
	MUST_EQ(port_of(rdma_get_local_addr(id)), ntohs(rdma_get_src_port(id)));
	MUST_EQ(id->route.num_paths, 0);
	MUST_EQ(rdma_resolve_route(id, WAIT_MS), 0);
	MUST(take(ch, id, RDMA_CM_EVENT_ROUTE_RESOLVED));
	return end(id);
}
BOTH(resolves)

/* A path record, whose GIDs are the addresses' ones. */
static bool route(int family)
{
	union address to = other(family, SILENT, 7471), at = own(family, 0);
	struct ibv_sa_path_rec *p;
	struct rdma_cm_id *id;
	union ibv_gid gid;

	MUST(begin(&id));
	MUST_EQ(rdma_resolve_addr(id, NULL, &to.sa, WAIT_MS), 0);
	MUST(take(ch, id, RDMA_CM_EVENT_ADDR_RESOLVED));
	MUST_EQ(rdma_resolve_route(id, WAIT_MS), 0);
	MUST(take(ch, id, RDMA_CM_EVENT_ROUTE_RESOLVED));
	MUST_EQ(id->route.num_paths, 1);
	MUST(p = id->route.path_rec);
	if (family == AF_INET6) {
		MUST(!memcmp(&p->sgid, &at.in6.sin6_addr, 16));
		MUST(!memcmp(&p->dgid, &to.in6.sin6_addr, 16));
	} else {
		gid = (union ibv_gid){ .raw = { [10] = 0xff, 0xff } };
		memcpy(&gid.raw[12], &at.in.sin_addr, 4);
		MUST(!memcmp(&p->sgid, &gid, 16));
		memcpy(&gid.raw[12], &to.in.sin_addr, 4);
		MUST(!memcmp(&p->dgid, &gid, 16));
	}
	MUST(!memcmp(&id->route.addr.addr.ibaddr.sgid, &p->sgid, 16));
	MUST(!memcmp(&id->route.addr.addr.ibaddr.dgid, &p->dgid, 16));
	MUST_EQ(ntohs(p->pkey), 0xffff);
	MUST_EQ(p->reversible, 1);
	MUST_EQ(p->mtu, IBV_MTU_4096); /* of an interface of 4500 bytes */
	return end(id);
}
BOTH(route)

/* "the same as if rdma_bind_addr were called" */
static bool with_source(int family)
{
	union address to = other(family, SILENT, 7471), at = own(family, 0);
	struct rdma_cm_id *id;

	MUST(begin(&id));
	MUST_EQ(rdma_resolve_addr(id, &at.sa, &to.sa, WAIT_MS), 0);
	MUST(take(ch, id, RDMA_CM_EVENT_ADDR_RESOLVED));
	MUST(rdma_get_src_port(id) != 0);
	MUST(same_host(rdma_get_local_addr(id), &at));
	return end(id);
}
BOTH(with_source)

/* Bound before, with a port: both stay. */
static bool bound_before(int family)
{
	union address to = own(family, 7471), at = own(family, 0);
	struct rdma_cm_id *id;
	uint16_t port;

	MUST(begin(&id));
	MUST_EQ(rdma_bind_addr(id, &at.sa), 0);
	port = ntohs(rdma_get_src_port(id));
	MUST_EQ(rdma_resolve_addr(id, NULL, &to.sa, WAIT_MS), 0);
	MUST(take(ch, id, RDMA_CM_EVENT_ADDR_RESOLVED));
	MUST_EQ(ntohs(rdma_get_src_port(id)), port);
	MUST(same_host(rdma_get_local_addr(id), &at));
	return end(id);
}
BOTH(bound_before)

/* Bound to a wildcard and a port: the address is the routing table's, the port stays. */
static bool bound_to_wildcard(int family)
{
	union address to = own(family, 7471), at = wild(family, 0), want = own(family, 0);
	struct rdma_cm_id *id;
	uint16_t port;

	MUST(begin(&id));
	MUST_EQ(rdma_bind_addr(id, &at.sa), 0);
	port = ntohs(rdma_get_src_port(id));
	MUST_EQ(rdma_resolve_addr(id, NULL, &to.sa, WAIT_MS), 0);
	MUST(take(ch, id, RDMA_CM_EVENT_ADDR_RESOLVED));
	MUST_EQ(ntohs(rdma_get_src_port(id)), port);
	MUST(id->verbs);
	MUST(same_host(rdma_get_local_addr(id), &want));
	return end(id);
}
BOTH(bound_to_wildcard)

/* An IPv6 link-local address needs its interface. */
static bool link_local(void)
{
	struct ifaddrs *list, *a;
	union address at = own(AF_INET, 0), to = { 0 };
	const char *name = NULL;
	struct rdma_cm_id *id;

	MUST_EQ(getifaddrs(&list), 0);
	for (a = list; a; a = a->ifa_next)
		if (a->ifa_addr && same_host(a->ifa_addr, &at))
			name = a->ifa_name;
	for (a = list; a; a = a->ifa_next)
		if (a->ifa_addr && a->ifa_addr->sa_family == AF_INET6 &&
		    !strcmp(a->ifa_name, name) &&
		    IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)a->ifa_addr)->sin6_addr))
			memcpy(&to.in6, a->ifa_addr, sizeof(to.in6));
	MUST(to.sa.sa_family);
	MUST_EQ(to.in6.sin6_scope_id, if_nametoindex(name));
	freeifaddrs(list);
	MUST(begin(&id));
	to.in6.sin6_port = htons(7471);
	MUST_EQ(rdma_resolve_addr(id, NULL, &to.sa, WAIT_MS), 0);
	MUST(take(ch, id, RDMA_CM_EVENT_ADDR_RESOLVED));
	MUST(same_host(rdma_get_local_addr(id), &to));
	return end(id);
}

/* ---- failures ---- */

/* Without an answer for the address: an event, after the requested time. */
static bool no_neighbour(int family)
{
	union address to = other(family, ABSENT, 7471);
	struct rdma_cm_id *id;
	int status;

	MUST(begin(&id));
	MUST_EQ(rdma_resolve_addr(id, NULL, &to.sa, 300), 0);
	MUST(take_error(ch, id, RDMA_CM_EVENT_ADDR_ERROR, &status));
	MUST_EQ(status, -ETIMEDOUT);
	/* It is as if it had not been asked: another address can be. */
	to = own(family, 7471);
	MUST_EQ(rdma_resolve_addr(id, NULL, &to.sa, WAIT_MS), 0);
	MUST(take(ch, id, RDMA_CM_EVENT_ADDR_RESOLVED));
	return end(id);
}
BOTH(no_neighbour)

static bool no_route(int family)
{
	union address to = wild(family, 7471);
	struct rdma_cm_id *id;

	MUST(begin(&id));
	if (family == AF_INET6)
		MUST_EQ(inet_pton(AF_INET6, "2001:db8::1", &to.in6.sin6_addr), 1);
	else
		MUST_EQ(inet_pton(AF_INET, "203.0.113.1", &to.in.sin_addr), 1);
	MUST_ERR(rdma_resolve_addr(id, NULL, &to.sa, 1000), ENETUNREACH);
	return end(id);
}
BOTH(no_route)

static bool bad_arguments(int family)
{
	union address to = own(family, 7471), from = other(family, ABSENT, 0), none = { 0 };
	struct rdma_cm_id *id;

	MUST(begin(&id));
	MUST_ERR(rdma_resolve_addr(id, NULL, NULL, 1000), EINVAL);
	MUST_ERR(rdma_resolve_addr(id, NULL, &none.sa, 1000), EINVAL);
	none.sa.sa_family = AF_UNIX;
	MUST_ERR(rdma_resolve_addr(id, NULL, &none.sa, 1000), EINVAL);
	MUST_ERR(rdma_resolve_addr(id, &from.sa, &to.sa, 1000), EADDRNOTAVAIL);
	MUST_EQ(rdma_resolve_addr(id, NULL, &to.sa, WAIT_MS), 0);
	MUST(take(ch, id, RDMA_CM_EVENT_ADDR_RESOLVED));
	MUST_ERR(rdma_resolve_addr(id, NULL, &to.sa, 1000), EINVAL); /* once */
	MUST_ERR(rdma_bind_addr(id, &to.sa), EINVAL);
	MUST_EQ(rdma_resolve_route(id, WAIT_MS), 0);
	MUST(take(ch, id, RDMA_CM_EVENT_ROUTE_RESOLVED));
	MUST_ERR(rdma_resolve_route(id, 1000), EINVAL);
	MUST_ERR(rdma_listen(id, 1), EINVAL);
	return end(id);
}
BOTH(bad_arguments)

/* Addresses of different families do not go together. */
static bool mixed_families(void)
{
	union address to = own(AF_INET, 7471), from = own(AF_INET6, 0);
	struct rdma_cm_id *id;

	MUST(begin(&id));
	MUST_EQ(rdma_bind_addr(id, &from.sa), 0);
	MUST_ERR(rdma_resolve_addr(id, NULL, &to.sa, 1000), EINVAL);
	return end(id);
}

/* ---- loopback ---- */

/*
 * A connection to this address of the listener at a wildcard, which is rejected. The kernel's
 * Soft-RoCE has no route to itself by these addresses: ENODEV is right too, in any step.
 */
static bool connects_to(union address to, struct rdma_cm_id *listen)
{
	struct rdma_cm_event *e = NULL;
	struct rdma_cm_id *id, *passive;

	MUST_EQ(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	if (rdma_resolve_addr(id, NULL, &to.sa, WAIT_MS))
		goto no_device;
	MUST(e = next_event(ch));
	if (e->event == RDMA_CM_EVENT_ADDR_ERROR) {
		errno = -e->status;
		goto no_device;
	}
	MUST_EQ(e->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	MUST_EQ(rdma_ack_cm_event(e), 0);
	e = NULL;
	MUST(id->verbs);
	if (rdma_resolve_route(id, WAIT_MS))
		goto no_device;
	MUST(take(ch, id, RDMA_CM_EVENT_ROUTE_RESOLVED));
	MUST_EQ(create_qp(id), 0);
	MUST_EQ(rdma_connect(id, NULL), 0);
	MUST(e = next_event(ch));
	MUST_EQ(e->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	MUST(e->listen_id == listen);
	passive = e->id;
	MUST_EQ(rdma_reject(passive, NULL, 0), 0);
	MUST_EQ(rdma_ack_cm_event(e), 0);
	MUST_EQ(rdma_destroy_id(passive), 0);
	MUST(take_status(ch, id, RDMA_CM_EVENT_REJECTED, 28));
	rdma_destroy_qp(id);
	MUST_EQ(rdma_destroy_id(id), 0);
	return true;
no_device:
	MUST_EQ(errno, ENODEV);
	MUST(!e || !rdma_ack_cm_event(e));
	MUST_EQ(rdma_destroy_id(id), 0);
	return true;
}

static bool loopback(int family)
{
	struct rdma_cm_id *listen;
	union address to;

	MUST(ch = rdma_create_event_channel());
	MUST(listen = listener(ch, RDMA_PS_TCP, wild(family, 0), 1));
	/* no address at all stands for this host */
	to = wild(family, ntohs(rdma_get_src_port(listen)));
	MUST(connects_to(to, listen));
	if (family == AF_INET6)
		to.in6.sin6_addr = in6addr_loopback;
	else
		to.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	MUST(connects_to(to, listen));
	return end(listen);
}
BOTH(loopback)

/* A listener at a wildcard gets connections to the address; its family is its bind's. */
static bool wildcard_listener(int family, int listens)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *id, *listen, *passive;
	union address at = own(family, 0);

	MUST(ch = rdma_create_event_channel());
	MUST(listen = listener(ch, RDMA_PS_TCP, wild(listens, 0), 1));
	MUST(id = resolved(ch, RDMA_PS_TCP, own(family, ntohs(rdma_get_src_port(listen)))));
	MUST_EQ(create_qp(id), 0);
	MUST_EQ(rdma_connect(id, NULL), 0);
	MUST((e = next_event(ch)) && e->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	passive = e->id;
	MUST(e->listen_id == listen);
	MUST(passive->verbs);
	MUST(same_host(rdma_get_local_addr(passive), &at));
	MUST_EQ(rdma_get_src_port(passive), rdma_get_src_port(listen));
	MUST_EQ(rdma_ack_cm_event(e), 0);
	MUST_EQ(rdma_destroy_id(passive), 0);
	MUST(take_status(ch, id, RDMA_CM_EVENT_REJECTED, 28));
	rdma_destroy_qp(id);
	MUST_EQ(rdma_destroy_id(listen), 0);
	return end(id);
}

static bool wildcard_4_of_4(void)
{
	return wildcard_listener(AF_INET, AF_INET);
}

static bool wildcard_6_of_6(void)
{
	return wildcard_listener(AF_INET6, AF_INET6);
}

static bool wildcard_6_hears_4(void)
{
	return wildcard_listener(AF_INET, AF_INET6);
}

/* With RDMA_OPTION_ID_AFONLY it does not. */
static bool wildcard_afonly(void)
{
	union address at = wild(AF_INET6, 0);
	struct rdma_cm_id *id, *listen;
	struct rdma_cm_event *e;
	int on = 1;

	MUST(begin(&listen));
	MUST_EQ(rdma_set_option(listen, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, 4), 0);
	MUST_EQ(rdma_bind_addr(listen, &at.sa), 0);
	MUST_EQ(rdma_listen(listen, 1), 0);
	MUST(id = resolved(ch, RDMA_PS_TCP, own(AF_INET, ntohs(rdma_get_src_port(listen)))));
	MUST_EQ(create_qp(id), 0);
	MUST_EQ(rdma_connect(id, NULL), 0);
	MUST((e = next_event(ch)) && e->id == id);
	MUST_EQ(e->event, RDMA_CM_EVENT_REJECTED);
	MUST(e->status == 8 || e->status == 28); /* 28 is the kernel's, without a request sent */
	MUST_EQ(rdma_ack_cm_event(e), 0);
	rdma_destroy_qp(id);
	MUST_EQ(rdma_destroy_id(id), 0);
	return end(listen);
}

const struct test_case man_cases[] = {
	CASE(resolves_v4),
	CASE(resolves_v6),
	CASE(route_v4),
	CASE(route_v6),
	CASE(with_source_v4),
	CASE(with_source_v6),
	CASE(bound_before_v4),
	CASE(bound_before_v6),
	CASE(bound_to_wildcard_v4),
	CASE(bound_to_wildcard_v6),
	CASE(link_local),
	CASE(no_neighbour_v4),
	CASE(no_neighbour_v6),
	CASE(no_route_v4),
	CASE(no_route_v6),
	CASE(bad_arguments_v4),
	CASE(bad_arguments_v6),
	CASE(mixed_families),
	CASE(loopback_v4),
	CASE(loopback_v6),
	CASE(wildcard_4_of_4),
	CASE(wildcard_6_of_6),
	CASE(wildcard_6_hears_4),
	CASE(wildcard_afonly),
	{ 0 },
};
