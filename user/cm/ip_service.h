/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Services of IP port spaces: the service id that a port has, and the 36 bytes in front of a REQ's
 * or SIDR_REQ's private data that say who connects to which address. Pure.
 */
#ifndef CM_IP_SERVICE_H
#define CM_IP_SERVICE_H

#include "mad.h"

enum cm_port_space {
	CM_PS_IPOIB = 0x0002,
	CM_PS_TCP = 0x0106,
	CM_PS_UDP = 0x0111,
	CM_PS_IB = 0x013f,
};

#define CM_IP_HEADER_BYTES 36u

/* Addresses as GIDs: IPv4 as ::ffff:a.b.c.d. */
struct cm_ip_header {
	u16 source_port;
	struct gid source, destination; /* both of one family */
};

static inline u64 cm_service_id(enum cm_port_space space, u16 port)
{
	return (u64)space << 16 | port;
}

/* Does private data of a REQ for this service begin with an IP header? */
bool cm_service_is_ip(u64 service_id);

/*
 * Reads the header at data, which has CM_IP_HEADER_BYTES. False if its version, its IP version or
 * the unused bytes of an IPv4 address are not as they should be.
 */
bool cm_ip_header_get(struct cm_ip_header *h, const u8 *data);
void cm_ip_header_put(u8 *data, const struct cm_ip_header *h);

/* 127.0.0.0/8 or ::1 */
bool cm_is_loopback(const struct gid *address);
/* 0.0.0.0 or :: */
bool cm_is_any(const struct gid *address);

#endif
