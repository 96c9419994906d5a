/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses of programs (struct sockaddr) and their form inside librdmacm; ports. No I/O. */
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

/*
 * The ports of one process's ids, by the rules of the kernel's CM: sharing of ports, listening, and
 * drawn ports for ids without one. No I/O: the owner of a table serialises all calls on it, and
 * arbitrates with other processes itself.
 */

/* Part of an id. The owner sets all fields but the table's before ports_bind(). */
struct port_use {
	enum cm_port_space space;
	struct address local;
	struct address remote; /* port 0, any address: not known */
	bool reuse;	       /* RDMA_OPTION_ID_REUSEADDR; ports_listen() clears it */
	bool family_only;      /* IPv6 only, not IPv4 too; always set for IPv4 */

	struct port_use *next; /* next use in the table's bucket, while bound */
	bool bound;
};

#define PORTS_BUCKETS 1024u

/* All 0: no port is in use. */
struct ports {
	struct port_use *bucket[PORTS_BUCKETS]; /* by port */
	u16 last_drawn;
};

struct ports_rules {
	u16 low, high;	 /* range to draw from: net.ipv4.ip_local_port_range */
	bool privileged; /* may use ports below 1024: CAP_NET_BIND_SERVICE */
	u32 random;
};

/*
 * Binds use->local.port, or draws a port if that is 0. Returns 0; -EPROTONOSUPPORT (no such port
 * space), -EACCES (a privileged port), -EADDRINUSE (the same address is bound to it),
 * -EADDRNOTAVAIL (a wildcard address is involved; or all ports are in use). On error, binds
 * nothing.
 */
int ports_bind(struct ports *ports, struct port_use *use, const struct ports_rules *rules);

/* Lets a bound use listen. No later bind can share a listener's port. Errors as above. */
int ports_listen(struct ports *ports, struct port_use *use);

/* Does nothing if use is not bound. */
void ports_release(struct ports *ports, struct port_use *use);

#endif
