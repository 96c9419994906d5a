/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An interface's memberships in multicast groups, by the kernel: the interface then takes frames to
 * the group's MAC, and IGMP or MLD informs the network. One socket for each, without a port; needs
 * no privilege.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
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

/*
 * Frames to MACs other than the interface's own, which it takes while a packet socket requests
 * them; the socket itself receives none. Needs CAP_NET_RAW, like any packet socket.
 *
 * Closing a packet socket waits milliseconds for an RCU grace period. So one socket serves many
 * requests, each of which can be dropped at once.
 */

/* Protocol 0: it receives nothing. Returns a descriptor or -errno. */
static int open_packet_socket(void)
{
	const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

int netdev_may_send_raw(void)
{
	const int fd = open_packet_socket();

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static int packet_membership(const struct netdev_macs *macs)
{
	switch (macs->which) {
	case NETDEV_ALL_MACS:
		return PACKET_MR_PROMISC;
	case NETDEV_ALL_MULTICAST:
		return PACKET_MR_ALLMULTI;
	default:
		return macs->mac[0] & 1 ? PACKET_MR_MULTICAST : PACKET_MR_UNICAST;
	}
}

/* option: PACKET_ADD_MEMBERSHIP or PACKET_DROP_MEMBERSHIP. */
static int packet_member(int fd, u32 ifindex, const struct netdev_macs *macs, int option)
{
	struct packet_mreq mreq = { .mr_ifindex = (int)ifindex,
				    .mr_type = (unsigned short)packet_membership(macs),
				    .mr_alen = ETH_ALEN };

	memcpy(mreq.mr_address, macs->mac, sizeof(macs->mac));
	return setsockopt(fd, SOL_PACKET, option, &mreq, sizeof(mreq)) ? -errno : 0;
}

int netdev_open_macs(void)
{
	return open_packet_socket();
}

int netdev_take_macs(int fd, u32 ifindex, const struct netdev_macs *macs)
{
	return packet_member(fd, ifindex, macs, PACKET_ADD_MEMBERSHIP);
}

void netdev_leave_macs(int fd, u32 ifindex, const struct netdev_macs *macs)
{
	packet_member(fd, ifindex, macs, PACKET_DROP_MEMBERSHIP);
}
