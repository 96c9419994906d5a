/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses of programs (struct sockaddr) and their form inside librdmacm. No I/O. */
#ifndef RDMACM_ADDRESS_H
#define RDMACM_ADDRESS_H

#include <netinet/in.h>

#include "../cm/mad.h"

struct address {
	struct gid ip;	/* IPv4 as ::ffff:a.b.c.d */
	u32 scope;	/* ifindex of a link-local IPv6 address; else 0 */
	u16 port;
};

/* Returns the size of a sockaddr of family AF_INET, AF_INET6 or AF_IB; 0 for other families. */
u32 address_bytes(const struct sockaddr *sa);

/*
 * Reads sa, of AF_INET or AF_INET6. Returns false for another family, or an IPv4-mapped IPv6
 * address, which no interface has.
 */
bool address_get(struct address *a, const struct sockaddr *sa);
/* Writes address, scope and port; keeps the family and IPv6 flow information. */
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

/* True for 0.0.0.0, :: and loopback addresses, which the kernel's CM maps to no interface. */
static inline bool address_is_any(const struct address *a)
{
	return cm_is_any(&a->ip) || cm_is_loopback(&a->ip);
}

/* Compares the addresses without ports. */
bool address_equal(const struct address *a, const struct address *b);

#endif
