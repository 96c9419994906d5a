/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Addresses of programs (struct sockaddr) and what the rest of this room computes with. Pure.
 */
#ifndef RDMACM_ADDRESS_H
#define RDMACM_ADDRESS_H

#include <netinet/in.h>

#include "../cm/mad.h"

struct address {
	struct gid ip;	/* IPv4 as ::ffff:a.b.c.d */
	u32 scope;	/* the interface of a link-local IPv6 address; else 0 */
	u16 port;
};

/* Bytes of a sockaddr of that family: AF_INET, AF_INET6, AF_IB; 0: none of these. */
u32 address_bytes(const struct sockaddr *sa);

/*
 * Reads sa, of AF_INET or AF_INET6. False: another family, or an IPv4 address that is mapped into
 * IPv6, which no interface has.
 */
bool address_get(struct address *a, const struct sockaddr *sa);
/* Writes address, scope and port; the family, and of IPv6 the flow information, stay. */
void address_put(const struct address *a, struct sockaddr *sa);

static inline bool address_is_ipv4(const struct address *a)
{
	return gid_is_ipv4(&a->ip);
}

static inline bool address_is_link_local(const struct address *a)
{
	return a->ip.raw[0] == 0xfe && (a->ip.raw[1] & 0xc0) == 0x80;
}

static inline bool address_is_multicast(const struct address *a)
{
	return address_is_ipv4(a) ? (a->ip.raw[12] & 0xf0) == 0xe0 : a->ip.raw[0] == 0xff;
}

/* Of no interface: 0.0.0.0, ::, and loopback addresses, as the kernel's CM has it. */
static inline bool address_is_any(const struct address *a)
{
	return cm_is_any(&a->ip) || cm_is_loopback(&a->ip);
}

/* The same address; ports are not compared. */
bool address_equal(const struct address *a, const struct address *b);

#endif
