/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Conversions of programs' addresses. */
#include "address.h"

#include <infiniband/ib.h>

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
