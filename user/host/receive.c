/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE /* recvmmsg() */
#include <errno.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <xroce/wire.h>

#include "../engine/engine.h"
#include "../engine/gso.h"
#include "../os/clock.h"
#include "../os/close_fd.h"
#include "../os/kernel.h"
#include "receive.h"

#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29 /* not in the C library's headers */
#endif
#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif
#ifndef UDP_GRO
#define UDP_GRO 104 /* newer than the C library's headers */
#endif

#define DATAGRAMS     16u /* in one call */
#define ROUNDS	      4u  /* of calls for one socket, before the next one's turn */
#define READY_MAX     16   /* sockets in one turn */
#define PAYLOAD_MAX   65536u
#define RECEIVE_BYTES (8 << 20)
#define IPV4_VERSION  0x45
#define IPV4_DF	      0x4000

/* ---- frames ---- */

/*
 * Writes an IPv4 header before the UDP header. id: 0, or the segment length of a super-packet
 * without a code for it.
 */
static u8 *host_put_ipv4(u8 *udp, const struct host_datagram *d, u32 bytes, u32 id)
{
	struct iphdr *ip = (struct iphdr *)udp - 1;

	*ip = (struct iphdr){ .tot_len = htons((u16)(sizeof(*ip) + bytes)),
			      .tos = d->tos,
			      .id = htons((u16)id),
			      .frag_off = htons(IPV4_DF),
			      .ttl = d->ttl,
			      .protocol = IPPROTO_UDP };
	*(u8 *)ip = IPV4_VERSION;
	memcpy(&ip->saddr, d->src.raw + 12, sizeof(ip->saddr));
	memcpy(&ip->daddr, d->dst.raw + 12, sizeof(ip->daddr));
	/* programs read it in the GRH of a datagram */
	put16((u8 *)&ip->check, ~fold16(sum16((const u8 *)ip, sizeof(*ip))));
	return (u8 *)ip;
}

static u8 *host_put_ipv6(u8 *udp, const struct host_datagram *d, u32 bytes)
{
	struct ip6_hdr *ip = (struct ip6_hdr *)udp - 1;

	ip->ip6_flow = htonl(6u << 28 | (u32)d->tos << 20);
	ip->ip6_plen = htons((u16)bytes);
	ip->ip6_nxt = IPPROTO_UDP;
	ip->ip6_hlim = d->ttl;
	memcpy(&ip->ip6_src, d->src.raw, sizeof(ip->ip6_src));
	memcpy(&ip->ip6_dst, d->dst.raw, sizeof(ip->ip6_dst));
	return (u8 *)ip;
}

/*
 * Passes a packet, or equal ones in a row, as a frame. The headers overwrite the bytes before the
 * payload, earlier packets of the datagram, which are no longer used. code: the sender's for the
 * length of a super-packet, whose packets then have the identifications 0, 1, 2 and so on; or 0.
 */
static void host_pass(struct host *h, const struct host_datagram *d, u8 *payload, u32 len,
		      bool is_super, u32 code)
{
	const u32 bytes = (u32)sizeof(struct udphdr) + len;
	const bool is_ipv4 = gid_is_ipv4(&d->dst);
	struct udphdr *udp = (struct udphdr *)payload - 1;
	struct ethhdr *eth;
	u8 *ip;

	udp->source = htons(d->sport);
	udp->dest = htons(ROCE_UDP_PORT);
	udp->len = htons((u16)bytes);
	udp->check = 0;
	if (is_super && code)
		gso_put_code(payload, code);
	ip = is_ipv4 ? host_put_ipv4((u8 *)udp, d, bytes, is_super && !code ? d->segment : 0) :
		       host_put_ipv6((u8 *)udp, d, bytes);
	/* by this sum the programs know a super-packet: parse_segment() */
	if (is_super)
		put16((u8 *)&udp->check,
		      fold16(sum16(ip + offsetof(struct iphdr, saddr), 2 * sizeof(__be32)) +
			     IPPROTO_UDP + bytes));
	eth = (struct ethhdr *)ip - 1;
	memset(eth, 0, sizeof(*eth));
	eth->h_proto = htons(is_ipv4 ? ETH_P_IP : ETH_P_IPV6);
	host_input(h, (u8 *)eth, (u32)(payload + len - (u8 *)eth));
}

/*
 * Returns whether the programs accept the headers of a packet of that size, whatever follows: the
 * kernel joins a forged one with others.
 */
static bool host_may_lead(const u8 *bth, u32 size)
{
	const u32 flags = opcode_flags(bth[0]), headers = 16 + roce_ext_bytes(flags);

	return flags && !(bth[1] & BTH_TVER_MASK) && size >= headers &&
	       size - headers <= ROCE_PMTU_MAX && (size == headers || flags & OP_PAYLOAD) &&
	       (bth[1] & BTH_PAD_MASK) >> BTH_PAD_SHIFT <= size - headers;
}

/* Returns the bytes of the packets from at on that can pass as one super-packet, or of one. */
static u32 host_run(const struct host_datagram *d, u32 at)
{
	const u32 size = d->segment, shortest = sizeof(struct bth) + sizeof(__be32);
	u32 end = at + size;

	if (d->len - at <= size)
		return d->len - at;
	/* MADs may be for several clients */
	if (!gid_is_ipv4(&d->dst) || size < XROCE_SEGMENT_MIN || size < shortest || size % 4 ||
	    get16(d->payload + at + 6) == XROCE_CM_QPN || !host_may_lead(d->payload + at, size))
		return size;
	while (end < d->len && (end - at) / size < XROCE_SEGMENTS_MAX &&
	       d->len - end >= shortest && gso_is_alike(d->payload + at, d->payload + end))
		end += min_u32(size, d->len - end);
	return end - at;
}

/* Returns the code for the segment length in the first packet (xroce/wire.h), or 0. */
static u32 host_code(const struct host_datagram *d)
{
	const u32 code = d->len > GSO_CODE_AT ? gso_get_code(d->payload) : 0;

	return code && roce_segment_of_code[code] == d->segment ? code : 0;
}

void host_receive_datagram(struct host *h, const struct host_datagram *d)
{
	const u32 code = host_code(d);
	u32 run;

	for (u32 at = 0; at < d->len; at += run) {
		run = d->segment ? host_run(d, at) : d->len;
		host_pass(h, d, d->payload + at, run, d->segment && run > d->segment, code);
	}
}

/* ---- sockets ---- */

struct host_buffers {
	struct mmsghdr msg[DATAGRAMS];
	struct iovec iov[DATAGRAMS];
	struct sockaddr_in6 from[DATAGRAMS];
	union {
		struct cmsghdr align;
		u8 bytes[128];
	} control[DATAGRAMS];
	/* 2 more, so that IP and UDP headers are aligned to 4 after the Ethernet header */
	u8 bytes[DATAGRAMS][HOST_HEADROOM + PAYLOAD_MAX] __attribute__((aligned(64)));
};

static int host_set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) ? -errno : 0;
}

/* Sets the options of a socket. Optional ones are not checked. */
static int host_tune(int fd, bool is_ipv4)
{
	int err;

	if (host_set(fd, SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BYTES))
		host_set(fd, SOL_SOCKET, SO_RCVBUF, RECEIVE_BYTES);
	host_set(fd, IPPROTO_UDP, UDP_GRO, 1);
	if (is_ipv4) {
		err = host_set(fd, IPPROTO_IP, IP_RECVTOS, 1);
		return err ? err : host_set(fd, IPPROTO_IP, IP_RECVTTL, 1);
	}
	/* senders of RoCEv2 leave the checksum out, as the ICRC protects more */
	err = host_set(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
	if (!err)
		err = host_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (!err)
		err = host_set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
	return err ? err : host_set(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
}

static int host_bind(int fd, const struct gid *gid, bool is_ipv4, u32 ifindex)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(ROCE_UDP_PORT) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(ROCE_UDP_PORT) };

	memcpy(&v4.sin_addr, gid->raw + 12, sizeof(v4.sin_addr));
	memcpy(&v6.sin6_addr, gid->raw, sizeof(v6.sin6_addr));
	if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr) || IN6_IS_ADDR_MC_LINKLOCAL(&v6.sin6_addr) ||
	    IN6_IS_ADDR_MC_NODELOCAL(&v6.sin6_addr))
		v6.sin6_scope_id = ifindex;
	return (is_ipv4 ? bind(fd, (const struct sockaddr *)&v4, sizeof(v4)) :
			  bind(fd, (const struct sockaddr *)&v6, sizeof(v6))) ?
		       -errno :
		       0;
}

/* Opens the socket of an address. Returns its descriptor or -errno. */
static int host_open(const struct host_receive *r, const struct gid *gid)
{
	const bool is_ipv4 = gid_is_ipv4(gid);
	const int fd = socket(is_ipv4 ? AF_INET : AF_INET6,
			      SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };
	int err;

	if (fd < 0)
		return -errno;
	err = host_tune(fd, is_ipv4);
	/* of another interface's broker, in the same group */
	if (!err && group_is_address(gid))
		err = host_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	/* a group of any scope is joined at this interface alone; permitted from 5.7 on */
	if (!err && group_is_address(gid) && !is_ipv4)
		host_set(fd, SOL_SOCKET, SO_BINDTOIFINDEX, (int)r->ifindex);
	if (!err)
		err = host_bind(fd, gid, is_ipv4, r->ifindex);
	if (!err)
		err = epoll_ctl(r->set_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
	if (!err)
		return fd;
	close(fd);
	return err;
}

int host_receive_check(void)
{
	/* EBADF: the call is permitted */
	recvmmsg(-1, NULL, 0, MSG_DONTWAIT, NULL);
	return errno == EBADF ? 0 : -errno;
}

int host_receive_open(struct host_receive *r, struct host *host, u32 ifindex)
{
	*r = (struct host_receive){ .host = host, .ifindex = ifindex, .set_fd = -1 };
	r->buffers = aligned_zero(sizeof(*r->buffers));
	r->set_fd = r->buffers ? kernel_set_make() : -ENOMEM;
	return r->set_fd < 0 ? r->set_fd : 0;
}

void host_receive_close(struct host_receive *r)
{
	for (u32 i = 0; i < r->num; i++)
		close(r->address[i].fd);
	r->num = 0;
	close_fd(&r->set_fd);
	free(r->buffers);
	r->buffers = NULL;
}

static bool host_has_gid(const struct netdev *dev, const struct gid *gid)
{
	for (u32 i = 0; i < dev->num_gids; i++)
		if (!memcmp(&dev->gid[i].gid, gid, sizeof(*gid)))
			return true;
	return false;
}

static bool host_has_socket(const struct host_receive *r, const struct gid *gid)
{
	for (u32 i = 0; i < r->num; i++)
		if (!memcmp(&r->address[i].gid, gid, sizeof(*gid)))
			return true;
	return false;
}

int host_receive_follow(struct host_receive *r, const struct netdev *dev, struct gid *failed)
{
	int err = 0;

	for (u32 i = r->num; i-- > 0;) {
		if (r->address[i].is_group || host_has_gid(dev, &r->address[i].gid))
			continue;
		close(r->address[i].fd);
		r->address[i] = r->address[--r->num];
	}
	for (u32 i = 0; i < dev->num_gids; i++) {
		const struct gid *gid = &dev->gid[i].gid;
		int fd;

		if (host_has_socket(r, gid))
			continue;
		fd = host_open(r, gid);
		if (fd >= 0) {
			r->address[r->num++] = (struct host_address){ *gid, false, fd };
		} else if (!err) {
			err = fd;
			*failed = *gid;
		}
	}
	return err;
}

/* Joins a group at the interface alone. Returns 0 or -errno. */
static int host_join(const struct host_receive *r, int fd, const struct gid *group, bool is_ipv4)
{
	struct ip_mreqn v4 = { .imr_ifindex = (int)r->ifindex };
	struct ipv6_mreq v6 = { .ipv6mr_interface = r->ifindex };
	int err;

	memcpy(&v4.imr_multiaddr, group->raw + 12, sizeof(v4.imr_multiaddr));
	memcpy(&v6.ipv6mr_multiaddr, group->raw, sizeof(v6.ipv6mr_multiaddr));
	err = is_ipv4 ? setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &v4, sizeof(v4)) :
			setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &v6, sizeof(v6));
	if (err)
		return -errno;
	return is_ipv4 ? host_set(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0) :
			 host_set(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
}

int host_receive_join(struct host_receive *r, const struct gid *group)
{
	const bool is_ipv4 = gid_is_ipv4(group);
	int fd, err;

	if (host_has_socket(r, group))
		return 0;
	if (r->groups == XROCE_MAX_GROUP)
		return -ENOSPC;
	fd = host_open(r, group);
	if (fd < 0)
		return fd;
	err = host_join(r, fd, group, is_ipv4);
	if (err) {
		close(fd);
		return err;
	}
	r->address[r->num++] = (struct host_address){ *group, true, fd };
	r->groups++;
	return 0;
}

void host_receive_leave(struct host_receive *r, const struct gid *group)
{
	for (u32 i = 0; i < r->num; i++)
		if (r->address[i].is_group &&
		    !memcmp(&r->address[i].gid, group, sizeof(*group))) {
			close(r->address[i].fd);
			r->address[i] = r->address[--r->num];
			r->groups--;
			return;
		}
}

/* The kernel also counts its memory for each packet, and reports twice the requested size. */
u32 host_receive_room(const struct host_receive *r)
{
	const u32 of_frame = 2 * (ROCE_PMTU_MAX + 256);
	u32 least = UINT32_MAX;

	for (u32 i = 0; i < r->num; i++) {
		int bytes = 0;
		socklen_t len = sizeof(bytes);

		getsockopt(r->address[i].fd, SOL_SOCKET, SO_RCVBUF, &bytes, &len);
		least = min_u32(least, (u32)bytes / of_frame);
	}
	return r->num && least ? least : 1;
}

/* ---- datagrams ---- */

static void host_prepare(struct host_buffers *b)
{
	for (u32 i = 0; i < DATAGRAMS; i++) {
		b->iov[i] = (struct iovec){ b->bytes[i] + HOST_HEADROOM, PAYLOAD_MAX };
		b->msg[i].msg_hdr = (struct msghdr){ .msg_name = &b->from[i],
						     .msg_namelen = sizeof(b->from[i]),
						     .msg_iov = &b->iov[i],
						     .msg_iovlen = 1,
						     .msg_control = b->control[i].bytes,
						     .msg_controllen =
							     sizeof(b->control[i].bytes) };
	}
}

/* Reads the control messages. */
static void host_read_control(struct msghdr *m, struct host_datagram *d)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		const bool is_byte = c->cmsg_len == CMSG_LEN(1);
		int value = 0;

		if (is_byte)
			value = *CMSG_DATA(c);
		else
			memcpy(&value, CMSG_DATA(c), sizeof(value));
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO)
			d->segment = (u32)value;
		else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) ||
			 (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS))
			d->tos = (u8)value;
		else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) ||
			 (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT))
			d->ttl = (u8)value;
	}
}

static void host_read_sender(const struct sockaddr_in6 *from, struct host_datagram *d)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;

	d->sport = ntohs(from->sin6_port);
	if (from->sin6_family == AF_INET6) {
		memcpy(d->src.raw, &from->sin6_addr, sizeof(d->src.raw));
		return;
	}
	d->src = (struct gid){ .raw = { [10] = 0xff, [11] = 0xff } };
	memcpy(d->src.raw + 12, &v4->sin_addr, sizeof(v4->sin_addr));
}

/* Takes what one call gets from a socket. Returns whether there may be more. */
static bool host_take(struct host_receive *r, const struct host_address *a)
{
	struct host_buffers *b = r->buffers;
	int n;

	host_prepare(b);
	n = recvmmsg(a->fd, b->msg, DATAGRAMS, MSG_DONTWAIT, NULL);
	/* the socket may stay readable: the broker does not spin */
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		kernel_await(NULL, 0, clock_now_ns() + NSEC_PER_MSEC);
	for (int i = 0; i < n; i++) {
		struct host_datagram d = { .payload = b->bytes[i] + HOST_HEADROOM,
					   .len = b->msg[i].msg_len,
					   .dst = a->gid };

		if (b->msg[i].msg_hdr.msg_flags & MSG_TRUNC)
			continue;
		host_read_sender(&b->from[i], &d);
		host_read_control(&b->msg[i].msg_hdr, &d);
		if (d.segment >= d.len)
			d.segment = 0;
		host_receive_datagram(r->host, &d);
	}
	return n == (int)DATAGRAMS;
}

static const struct host_address *host_address_of(const struct host_receive *r, int fd)
{
	for (u32 i = 0; i < r->num; i++)
		if (r->address[i].fd == fd)
			return &r->address[i];
	return NULL;
}

bool host_receive_take(struct host_receive *r)
{
	struct epoll_event ready[READY_MAX];
	const int n = epoll_wait(r->set_fd, ready, READY_MAX, 0);

	for (int i = 0; i < n; i++) {
		const struct host_address *a = host_address_of(r, ready[i].data.fd);
		bool more = a != NULL;

		for (u32 round = 0; round < ROUNDS && more; round++) {
			more = host_take(r, a);
			host_wake(r->host);
		}
	}
	return n > 0;
}

void host_receive_take_all(struct host_receive *r, u32 least)
{
	/* with more ready sockets than fit into one turn, each has its turn by epoll_wait(2) */
	const u32 turns = (least + ROUNDS * DATAGRAMS - 1) / (ROUNDS * DATAGRAMS) *
			  ((r->num + READY_MAX - 1) / READY_MAX);

	for (u32 i = 0; i < turns && host_receive_take(r); i++)
		;
}
