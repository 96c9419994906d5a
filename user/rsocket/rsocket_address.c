/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <netinet/in.h>

#include "rsocket_object.h"

socklen_t sockaddr_bytes(const struct sockaddr *address)
{
	switch (address->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

int sockaddr_check(const struct sockaddr *address, socklen_t bytes)
{
	if (!bytes)
		return -EINVAL;
	if (!address)
		return -EFAULT;
	if (bytes < sizeof(address->sa_family) || bytes < sockaddr_bytes(address))
		return -EINVAL;
	return sockaddr_bytes(address) ? 0 : -EAFNOSUPPORT;
}

int sockaddr_tell(const struct sockaddr *from, struct sockaddr *to, socklen_t *bytes)
{
	socklen_t has = sockaddr_bytes(from);

	if (!bytes || (!to && *bytes))
		return -EFAULT;
	if (*bytes)
		memcpy(to, from, min_u32(*bytes, has));
	*bytes = has;
	return 0;
}
