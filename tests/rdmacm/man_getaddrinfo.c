/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* rdma_getaddrinfo(3), rdma_freeaddrinfo(). */
#include <netdb.h>

#include "man.h"

static char host[INET6_ADDRSTRLEN];

/* The active side: the destination, and the source that the routing table gives it. */
static bool active(int family)
{
	union address at = own(family, 0);
	struct rdma_addrinfo *res;

	MUST_EQ(rdma_getaddrinfo(own_text(family, host), "7471", NULL, &res), 0);
	MUST_EQ(res->ai_family, family);
	MUST_EQ(res->ai_qp_type, IBV_QPT_RC);
	MUST_EQ(res->ai_port_space, RDMA_PS_TCP);
	MUST_EQ(res->ai_flags, 0);
	MUST_EQ(res->ai_dst_len, family == AF_INET6 ? sizeof(at.in6) : sizeof(at.in));
	MUST(res->ai_dst_addr && same_host(res->ai_dst_addr, &at));
	MUST_EQ(port_of(res->ai_dst_addr), 7471);
	MUST(!res->ai_next);
	MUST_EQ(res->ai_connect_len, 0);
	rdma_freeaddrinfo(res);
	return true;
}
BOTH(active)

/* "ai_dst_len will be 0 if the RAI_PASSIVE flag was specified" */
static bool passive(int family)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE | RAI_NUMERICHOST,
				       .ai_port_space = RDMA_PS_TCP },
			     *res;
	union address at = own(family, 0);

	MUST_EQ(rdma_getaddrinfo(own_text(family, host), "7471", &hints, &res), 0);
	MUST_EQ(res->ai_family, family);
	MUST(res->ai_flags & RAI_PASSIVE);
	MUST_EQ(res->ai_dst_len, 0);
	MUST(!res->ai_dst_addr);
	MUST_EQ(res->ai_src_len, family == AF_INET6 ? sizeof(at.in6) : sizeof(at.in));
	MUST(same_host(res->ai_src_addr, &at));
	MUST_EQ(port_of(res->ai_src_addr), 7471);
	rdma_freeaddrinfo(res);
	return true;
}
BOTH(passive)

/* A service alone, passive: the wildcard of the family. */
static bool wildcard(int family)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE | RAI_FAMILY,
				       .ai_family = family,
				       .ai_port_space = RDMA_PS_TCP },
			     *res;
	union address any = wild(family, 0);

	MUST_EQ(rdma_getaddrinfo(NULL, "7471", &hints, &res), 0);
	MUST_EQ(res->ai_family, family);
	MUST(same_host(res->ai_src_addr, &any));
	MUST_EQ(port_of(res->ai_src_addr), 7471);
	rdma_freeaddrinfo(res);
	return true;
}
BOTH(wildcard)

/* Port space and QP type stand for each other. */
static bool types(int family)
{
	static const struct {
		int ps, type, want_ps, want_type;
	} row[] = {
		{ RDMA_PS_TCP, 0, RDMA_PS_TCP, IBV_QPT_RC },
		{ RDMA_PS_UDP, 0, RDMA_PS_UDP, IBV_QPT_UD },
		{ 0, IBV_QPT_RC, RDMA_PS_TCP, IBV_QPT_RC },
		{ 0, IBV_QPT_UD, RDMA_PS_UDP, IBV_QPT_UD },
		{ RDMA_PS_TCP, IBV_QPT_RC, RDMA_PS_TCP, IBV_QPT_RC },
		{ RDMA_PS_UDP, IBV_QPT_UD, RDMA_PS_UDP, IBV_QPT_UD },
		{ RDMA_PS_IB, IBV_QPT_RC, RDMA_PS_IB, IBV_QPT_RC },
		{ RDMA_PS_IB, IBV_QPT_UD, RDMA_PS_IB, IBV_QPT_UD },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST,
					       .ai_port_space = row[i].ps,
					       .ai_qp_type = row[i].type },
				     *res;

		MUST_EQ(rdma_getaddrinfo(own_text(family, host), "7471", &hints, &res), 0);
		MUST_EQ(res->ai_port_space, row[i].want_ps);
		MUST_EQ(res->ai_qp_type, row[i].want_type);
		rdma_freeaddrinfo(res);
	}
	return true;
}
BOTH(types)

/* Without a node, the hints' addresses. */
static bool by_hints(int family)
{
	union address src = own(family, 0), dst = own(family, 7471);
	socklen_t len = family == AF_INET6 ? sizeof(src.in6) : sizeof(src.in);
	struct rdma_addrinfo hints = { .ai_family = family,
				       .ai_src_addr = &src.sa,
				       .ai_src_len = len,
				       .ai_dst_addr = &dst.sa,
				       .ai_dst_len = len,
				       .ai_port_space = RDMA_PS_TCP },
			     *res;

	MUST_EQ(rdma_getaddrinfo(NULL, NULL, &hints, &res), 0);
	MUST_EQ(res->ai_src_len, len);
	MUST_EQ(res->ai_dst_len, len);
	MUST(same_host(res->ai_src_addr, &src) && same_host(res->ai_dst_addr, &dst));
	MUST(res->ai_src_addr != &src.sa && res->ai_dst_addr != &dst.sa);
	MUST_EQ(port_of(res->ai_dst_addr), 7471);
	rdma_freeaddrinfo(res);
	return true;
}
BOTH(by_hints)

/* A node, and a source by the hints. */
static bool source_by_hints(int family)
{
	union address src = own(family, 0);
	socklen_t len = family == AF_INET6 ? sizeof(src.in6) : sizeof(src.in);
	struct rdma_addrinfo hints = { .ai_src_addr = &src.sa,
				       .ai_src_len = len,
				       .ai_port_space = RDMA_PS_TCP },
			     *res;

	MUST_EQ(rdma_getaddrinfo(own_text(family, host), "7471", &hints, &res), 0);
	MUST_EQ(res->ai_src_len, len);
	MUST(same_host(res->ai_src_addr, &src));
	MUST_EQ(port_of(res->ai_dst_addr), 7471);
	rdma_freeaddrinfo(res);
	return true;
}
BOTH(source_by_hints)

/* "Either node, service, or hints must be provided." */
static bool errors(void)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST }, *res;

	MUST_ERR(rdma_getaddrinfo(NULL, NULL, NULL, &res), EINVAL);
	MUST_EQ(rdma_getaddrinfo("no.such.host.invalid", "7471", &hints, &res), EAI_NONAME);
	MUST_EQ(rdma_getaddrinfo("10.0.0.1", "no-such-service", NULL, &res), EAI_SERVICE);
	/* a name of the other family */
	hints = (struct rdma_addrinfo){ .ai_flags = RAI_NUMERICHOST | RAI_FAMILY,
					.ai_family = AF_INET6 };
	MUST(rdma_getaddrinfo("10.0.0.1", "7471", &hints, &res) != 0);
	rdma_freeaddrinfo(NULL);
	return true;
}

/* A port in figures, none, and its limits. */
static bool services(void)
{
	struct rdma_addrinfo *res;

	MUST_EQ(rdma_getaddrinfo("10.0.0.1", NULL, NULL, &res), 0);
	MUST_EQ(port_of(res->ai_dst_addr), 0);
	rdma_freeaddrinfo(res);
	MUST_EQ(rdma_getaddrinfo("10.0.0.1", "65535", NULL, &res), 0);
	MUST_EQ(port_of(res->ai_dst_addr), 65535);
	rdma_freeaddrinfo(res);
	return true;
}

const struct test_case man_cases[] = {
	CASE(active_v4),   CASE(active_v6),	     CASE(passive_v4),
	CASE(passive_v6),  CASE(wildcard_v4),	     CASE(wildcard_v6),
	CASE(types_v4),	   CASE(types_v6),	     CASE(by_hints_v4),
	CASE(by_hints_v6), CASE(source_by_hints_v4), CASE(source_by_hints_v6),
	CASE(errors),	   CASE(services),	     { 0 },
};
