/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See wire.h. */
#include "wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "ctl.h"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

int wire_open(const char *ifname, bool receive)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET,
				  .sll_protocol = receive ? htons(ETH_P_ALL) : 0 };
	struct packet_mreq all = { .mr_type = PACKET_MR_PROMISC };
	int fd, one = 1, room = 8 << 20;

	at.sll_ifindex = all.mr_ifindex = if_nametoindex(ifname);
	must(at.sll_ifindex, "no interface %s", ifname);
	/* Protocol 0 until bound: nothing of another interface comes in between. */
	fd = socket(AF_PACKET, SOCK_RAW, 0);
	must(fd >= 0, "packet socket: %s", strerror(errno));
	if (receive) {
		must(setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) == 0,
		     "PACKET_IGNORE_OUTGOING: %s", strerror(errno));
		must(setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all)) == 0,
		     "promiscuous mode: %s", strerror(errno));
		must(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) == 0,
		     "SO_RCVBUFFORCE: %s", strerror(errno));
	}
	must(bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0, "bind to %s: %s", ifname,
	     strerror(errno));
	return fd;
}

void wire_send(int fd, const uint8_t *frame, size_t len)
{
	while (send(fd, frame, len, 0) != (ssize_t)len) {
		struct pollfd pfd = { .fd = fd, .events = POLLOUT };

		must(errno == ENOBUFS || errno == EAGAIN || errno == EINTR, "sending %zu bytes: %s",
		     len, strerror(errno));
		poll(&pfd, 1, 1);
	}
}

size_t wire_receive(int fd, uint8_t *frame, size_t room)
{
	ssize_t n = recv(fd, frame, room, MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0) {
		must(errno == EAGAIN || errno == EINTR || errno == ENETDOWN, "packet socket: %s",
		     strerror(errno));
		return 0;
	}
	must((size_t)n <= room, "a frame of %zd bytes", n);
	return n;
}

size_t wire_roce_ip(const uint8_t *frame, size_t len, bool *ipv6)
{
	size_t at = 12, ip;
	unsigned int type;

	for (;; at += 4) {
		if (at + 2 > len || at > 20)
			return 0;
		type = frame[at] << 8 | frame[at + 1];
		if (type != ETH_P_8021Q && type != ETH_P_8021AD)
			break;
	}
	ip = at + 2;
	if (type == ETH_P_IP && ip + 28 <= len && frame[ip] == 0x45 && frame[ip + 9] == 17) {
		*ipv6 = false;
		at = ip + 20;
	} else if (type == ETH_P_IPV6 && ip + 48 <= len && frame[ip + 6] == 17) {
		*ipv6 = true;
		at = ip + 40;
	} else {
		return 0;
	}
	return (frame[at + 2] << 8 | frame[at + 3]) == 4791 ? ip : 0;
}
