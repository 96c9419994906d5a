/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames to MACs that are not the interface's own: it takes them for as long as a packet socket has
 * asked for that, which receives none itself. Needs CAP_NET_RAW, as any packet socket does.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netdev.h"

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

int netdev_take_macs(u32 ifindex, const struct netdev_macs *macs)
{
	struct packet_mreq mreq = { .mr_ifindex = (int)ifindex,
				    .mr_type = (unsigned short)packet_membership(macs),
				    .mr_alen = ETH_ALEN };
	const int fd = open_packet_socket();
	int err;

	if (fd < 0)
		return fd;
	memcpy(mreq.mr_address, macs->mac, sizeof(macs->mac));
	if (!setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &mreq, sizeof(mreq)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}
