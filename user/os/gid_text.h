/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef OS_GID_TEXT_H
#define OS_GID_TEXT_H

#include <arpa/inet.h>
#include <string.h>

#include "../engine/types.h"

#define GID_TEXT 46 /* INET6_ADDRSTRLEN */

/* Formats the address in the 16 bytes of a GID, IPv4 in dotted form. Returns text. */
static inline const char *gid_text(const u8 raw[16], char text[GID_TEXT])
{
	struct gid gid;

	memcpy(gid.raw, raw, sizeof(gid.raw));
	return gid_is_ipv4(&gid) ? inet_ntop(AF_INET, raw + 12, text, GID_TEXT) :
				   inet_ntop(AF_INET6, raw, text, GID_TEXT);
}

#endif
