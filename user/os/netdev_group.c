/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Membership of an interface in a multicast group, as the kernel has it: the interface takes frames
 * to the group's MAC from then on, and the network is told by IGMP or MLD. A socket each, bound to
 * no port; any process may have one.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netdev.h"

static int join_ipv4(int fd, u32 ifindex, const struct gid *group)
{
	struct ip_mreqn mreq = { .imr_ifindex = (int)ifindex };

	memcpy(&mreq.imr_multiaddr, group->raw + 12, sizeof(mreq.imr_multiaddr));
	return setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &mreq, sizeof(mreq));
}

static int join_ipv6(int fd, u32 ifindex, const struct gid *group)
{
	struct ipv6_mreq mreq = { .ipv6mr_interface = ifindex };

	memcpy(&mreq.ipv6mr_multiaddr, group->raw, sizeof(mreq.ipv6mr_multiaddr));
	return setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &mreq, sizeof(mreq));
}

int netdev_join(u32 ifindex, const struct gid *group)
{
	const bool ipv4 = gid_is_ipv4(group);
	const int fd = socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	if (!(ipv4 ? join_ipv4 : join_ipv6)(fd, ifindex, group))
		return fd;
	err = -errno;
	close(fd);
	return err;
}
