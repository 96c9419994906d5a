/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE /* struct in6_pktinfo, struct mmsghdr */
#include <errno.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <xroce/wire.h>

#include "../engine/gso.h"
#include "../os/kernel.h"
#include "../os/netdev.h"
#include "tx_pool.h"
#include "tx_udp.h"
#include "udp_sockets.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103 /* newer than the C library's headers */
#endif

#define UDP_BATCH    64u /* frames at a time: still in the cache when the kernel copies them */
#define SENDS_MAX    32u /* datagrams in one call, super-packets included */
#define SPORT_AT     20u /* offset of the UDP source port in an IPv4 packet */
#define SPORT_AT_V6  40u
#define ID_AT	     4u
#define ALONE_FRAMES 8192u
/* most bytes of UDP payload in a super-packet: with its headers it is less than 64 KiB */
#define PAYLOAD_MAX  65000u

/* Effects of the changed fields on the ICRC, for packets of one length; each is computed once. */
struct udp_change {
	struct icrc_id id, port;
};
#define CHANGES ((PACKET_FRAME_MAX + 3) / 4 + 1)

/* The control messages of a datagram. The members are aligned as the kernel expects them. */
union udp_control {
	struct cmsghdr align;
	u8 bytes[CMSG_SPACE(sizeof(struct in6_pktinfo)) + 3 * CMSG_SPACE(sizeof(int))];
};

struct tx_udp {
	struct tx tx;
	struct tx_pool pool;
	struct udp_sockets sockets;
	u32 ifindex;
	bool has_codes;	/* super-packets may arrive uncut */
	/* after a refused super-packet: frames to send alone before the next one */
	u32 alone;
	struct xroce_engine_stats *stats;
	struct udp_change *change[2]; /* CHANGES of each, by length / 4 */
	/* datagrams gathered for one call, by one socket */
	struct udp_socket *socket;
	struct gid first; /* where the first one is sent to */
	u32 sends, pieces, frames;
	struct mmsghdr msg[SENDS_MAX];
	struct sockaddr_in6 to[SENDS_MAX];
	union udp_control control[SENDS_MAX];
	u32 count[SENDS_MAX]; /* frames in each */
	struct iovec piece[UDP_BATCH];
};

static struct tx_udp *udp_of(struct tx *tx)
{
	return container_of(tx, struct tx_udp, tx);
}

/* ---- a frame ---- */

/* Where the headers of a frame that the engine made are. */
struct udp_frame {
	u8 *ip;
	bool is_ipv6;
	u32 ip_bytes;	/* of the IP header, without options */
	u32 bytes;	/* from the IP header on */
};

/* Returns false for a frame that is neither IPv4 nor IPv6. A VLAN tag is the kernel's to write. */
static bool udp_look(const struct gso_frame *f, struct udp_frame *out)
{
	u32 at = ETH_HLEN, type = get16(f->bytes + ETH_HLEN - 2);

	if (type == ETH_P_8021Q) {
		type = get16(f->bytes + at + 2);
		at += 4;
	}
	out->ip = f->bytes + at;
	out->bytes = f->len - at;
	out->is_ipv6 = type == ETH_P_IPV6;
	out->ip_bytes = out->is_ipv6 ? sizeof(struct ip6_hdr) : sizeof(struct iphdr);
	return type == ETH_P_IP || type == ETH_P_IPV6;
}

/*
 * Changes the ICRC as if the frame had the identification, over IPv4, and the source port that the
 * kernel gives it. The fields themselves are written, too: the frame may be sent a second time.
 */
static void udp_change(struct tx_udp *t, const struct udp_frame *f, u16 id)
{
	struct udp_change *c = &t->change[f->is_ipv6][f->bytes / 4];
	u8 *icrc = f->ip + f->bytes - ROCE_ICRC_BYTES;
	u8 *port = f->ip + f->ip_bytes;
	u32 change;

	if (unlikely(!c->port.tail)) {
		icrc_id_init(&c->port, f->bytes - ROCE_ICRC_BYTES - f->ip_bytes - sizeof(__be16));
		if (!f->is_ipv6)
			icrc_id_init(&c->id, f->bytes - ROCE_ICRC_BYTES - ID_AT - sizeof(__be16));
	}
	change = icrc_id_change(&c->port, (u16)(get16(port) ^ t->socket->port));
	put16(port, t->socket->port);
	if (!f->is_ipv6) {
		change ^= icrc_id_change(&c->id, (u16)(get16(f->ip + ID_AT) ^ id));
		put16(f->ip + ID_AT, id);
	}
	icrc_flip(icrc, change);
}

/* ---- a datagram ---- */

static void udp_add_control(struct msghdr *m, int level, int type, const void *value, size_t bytes)
{
	struct cmsghdr *c = (struct cmsghdr *)((u8 *)m->msg_control + m->msg_controllen);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(bytes);
	memcpy(CMSG_DATA(c), value, bytes);
	m->msg_controllen += CMSG_SPACE(bytes);
}

static void udp_address_ipv4(struct msghdr *m, const struct udp_frame *f)
{
	const struct iphdr *ip = (const struct iphdr *)f->ip;
	const struct in_pktinfo from = { .ipi_spec_dst.s_addr = ip->saddr };
	/* a hop limit of 0 is not sent */
	const int tos = ip->tos, ttl = ip->ttl ? ip->ttl : 1;
	struct sockaddr_in *to = m->msg_name;

	*to = (struct sockaddr_in){ .sin_family = AF_INET,
				    .sin_port = htons(ROCE_UDP_PORT),
				    .sin_addr.s_addr = ip->daddr };
	m->msg_namelen = sizeof(*to);
	udp_add_control(m, IPPROTO_IP, IP_PKTINFO, &from, sizeof(from));
	udp_add_control(m, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
	udp_add_control(m, IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl));
}

static void udp_address_ipv6(const struct tx_udp *t, struct msghdr *m, const struct udp_frame *f)
{
	const struct ip6_hdr *ip = (const struct ip6_hdr *)f->ip;
	const int class = (int)(ntohl(ip->ip6_flow) >> 20 & 0xff);
	const int hops = ip->ip6_hlim ? ip->ip6_hlim : 1;
	struct sockaddr_in6 *to = m->msg_name;
	struct in6_pktinfo from = { .ipi6_addr = ip->ip6_src };
	const bool is_link_local = IN6_IS_ADDR_LINKLOCAL(&ip->ip6_src) ||
				   IN6_IS_ADDR_LINKLOCAL(&ip->ip6_dst) ||
				   IN6_IS_ADDR_MC_LINKLOCAL(&ip->ip6_dst) ||
				   IN6_IS_ADDR_MC_NODELOCAL(&ip->ip6_dst);

	*to = (struct sockaddr_in6){ .sin6_family = AF_INET6,
				     .sin6_port = htons(ROCE_UDP_PORT),
				     .sin6_addr = ip->ip6_dst,
				     .sin6_scope_id = is_link_local ? t->ifindex : 0 };
	m->msg_namelen = sizeof(*to);
	if (is_link_local)
		from.ipi6_ifindex = t->ifindex;
	udp_add_control(m, IPPROTO_IPV6, IPV6_PKTINFO, &from, sizeof(from));
	udp_add_control(m, IPPROTO_IPV6, IPV6_TCLASS, &class, sizeof(class));
	udp_add_control(m, IPPROTO_IPV6, IPV6_HOPLIMIT, &hops, sizeof(hops));
}

/*
 * Adds a datagram of count frames; look: of the first. code: for the length of a super-packet's
 * segments, or 0.
 */
static void udp_add(struct tx_udp *t, const struct gso_frame *frame, u32 count, u32 code,
		    const struct udp_frame *look)
{
	struct msghdr *m = &t->msg[t->sends].msg_hdr;
	const u32 header = look->ip_bytes + sizeof(struct udphdr);
	const u16 segment = (u16)(look->bytes - header);
	struct udp_frame f = *look;

	*m = (struct msghdr){ .msg_name = &t->to[t->sends],
			      .msg_iov = &t->piece[t->pieces],
			      .msg_iovlen = count,
			      .msg_control = t->control[t->sends].bytes };
	for (u32 i = 0; i < count; i++) {
		udp_look(&frame[i], &f);
		/* also 0: a packet that is sent again may have a code */
		gso_put_code(f.ip + header, i == 0 ? code : 0);
		udp_change(t, &f, (u16)i);
		t->piece[t->pieces++] = (struct iovec){ f.ip + header, f.bytes - header };
	}
	if (look->is_ipv6)
		udp_address_ipv6(t, m, look);
	else
		udp_address_ipv4(m, look);
	if (count > 1)
		udp_add_control(m, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
	t->count[t->sends++] = count;
	t->frames += count;
}

/*
 * Returns how many of the n frames, from the first, may leave as one datagram. *code: for the
 * length of its segments, or 0.
 */
static u32 udp_count(const struct tx_udp *t, const struct gso_frame *frame, u32 n, u32 *code)
{
	const u32 count = gso_count(frame, n), segment = frame->len - GSO_HEADER_BYTES;

	*code = 0;
	if (count == 1 || t->alone)
		return 1;
	if (t->has_codes) {
		*code = gso_segment_code(segment);
		if (!*code)
			return 1;
	}
	return min_u32(count, PAYLOAD_MAX / segment);
}

/* ---- sending ---- */

/* Returns the address that a frame is sent to. */
static struct gid udp_destination(const struct udp_frame *f)
{
	struct gid to = { .raw = { [10] = 0xff, [11] = 0xff } };

	if (f->is_ipv6)
		memcpy(to.raw, f->ip + offsetof(struct ip6_hdr, ip6_dst), sizeof(to.raw));
	else
		memcpy(to.raw + 12, f->ip + offsetof(struct iphdr, daddr), sizeof(__be32));
	return to;
}

/*
 * Chooses the socket of the first datagram. Returns whether a further one leaves by the same
 * socket. While one on trial is in use no other address is looked up, as that may close it.
 */
static bool udp_has_socket(struct tx_udp *t, const struct gid *to)
{
	if (!t->sends) {
		t->first = *to;
		t->socket = udp_sockets_for(&t->sockets, to);
		return true;
	}
	return gid_equal(to, &t->first) ||
	       (!t->socket->peer && udp_sockets_for(&t->sockets, to) == t->socket);
}

/* Gathers queued frames from index `from` on. Frames that no socket can send are lost. */
static void udp_gather(struct tx_udp *t, u32 from)
{
	struct udp_frame look;
	u32 n = min_u32(t->pool.queued - from, UDP_BATCH), count, code;

	t->sends = t->pieces = t->frames = 0;
	while (t->frames < n && t->sends < SENDS_MAX) {
		const struct gso_frame *f = &t->pool.queue[from + t->frames];
		struct gid to;

		if (!udp_look(f, &look))
			break;
		to = udp_destination(&look);
		if (!udp_has_socket(t, &to))
			break;
		count = udp_count(t, f, n - t->frames, &code);
		udp_add(t, f, count, code, &look);
	}
}

static bool udp_has_no_room(int err)
{
	return err == -EAGAIN || err == -ENOBUFS || err == -ENOMEM;
}

/*
 * Sends the gathered datagrams. Returns how many frames are done with. *full: there is no room for
 * more. Stops at a refused super-packet: EINVAL of a kernel without them, EIO where the interface
 * leaves out checksums (before 6.11), or where IPsec is used. Its frames are then sent alone. The
 * kernel reports an error for the first datagram only. Uses syscall(), as the libc
 * function is a cancellation point, under the shard's lock.
 */
static u32 udp_send(struct tx_udp *t, bool *full)
{
	u32 done = 0;

	for (u32 at = 0; at < t->sends && !*full;) {
		const long sent = syscall(SYS_sendmmsg, t->socket->fd, &t->msg[at], t->sends - at,
					  MSG_DONTWAIT | MSG_NOSIGNAL);
		const int err = sent < 0 ? -errno : 0;

		for (u32 i = 0; !err && i < (u32)sent; i++) {
			t->stats->tx_udp += t->count[at];
			t->alone -= min_u32(t->alone, t->count[at]);
			done += t->count[at++];
		}
		t->stats->tx_udp_sends += err ? 0 : (u32)sent;
		if (err == -EINTR)
			continue;
		if (err && udp_has_no_room(err)) {
			*full = true;
		} else if (err && t->count[at] > 1) {
			t->alone = ALONE_FRAMES;
			return done;
		} else if (err) {
			t->stats->tx_lost += t->count[at];
			done += t->count[at++];
		}
	}
	return done;
}

/*
 * Sends queued frames from index `from` on. Returns how many are done with. *full: the next ones
 * wait for room.
 */
static u32 udp_send_some(struct tx_udp *t, u32 from, bool *full)
{
	u32 done;

	udp_gather(t, from);
	if (!t->sends) {
		t->stats->tx_lost++;
		return 1;
	}
	done = udp_send(t, full);
	if (done)
		udp_sockets_sent(&t->sockets, t->socket);
	if (!*full)
		return done;
	switch (udp_sockets_full(&t->sockets, t->socket, from + done)) {
	case UDP_FULL_WAIT:
		break;
	case UDP_FULL_AGAIN:
		*full = false;
		break;
	case UDP_FULL_LOSE:
		*full = false;
		t->stats->tx_lost += t->frames - done;
		done = t->frames;
		break;
	}
	return done;
}

/* ---- struct tx_ops ---- */

static u32 udp_room(struct tx *tx, u64 now_ns)
{
	return min_u32(udp_of(tx)->pool.free_count, UDP_BATCH);
}

static u8 *udp_frame(struct tx *tx)
{
	return tx_pool_take(&udp_of(tx)->pool);
}

static void udp_give_back(struct tx *tx, u8 *buf)
{
	tx_pool_give_back(&udp_of(tx)->pool, buf);
}

static void udp_commit(struct tx *tx, u8 *buf, u32 len)
{
	tx_pool_commit(&udp_of(tx)->pool, buf, len);
}

static bool udp_flush(struct tx *tx)
{
	struct tx_udp *t = udp_of(tx);
	bool full = false;
	u32 done = 0;

	if (!t->pool.queued)
		return true;
	tx_pool_order(&t->pool);
	while (done < t->pool.queued && !full)
		done += udp_send_some(t, done, &full);
	if (!full)
		udp_sockets_empty(&t->sockets);
	tx_pool_dequeue(&t->pool, done);
	return !t->pool.queued;
}

static void udp_close(struct tx *tx)
{
	struct tx_udp *t = udp_of(tx);

	udp_sockets_close(&t->sockets);
	free(t->change[0]);
	free(t->change[1]);
	free(t->pool.frame);
	free(t);
}

static const struct tx_ops ops = {
	.room = udp_room,
	.frame = udp_frame,
	.give_back = udp_give_back,
	.commit = udp_commit,
	.flush = udp_flush,
	.close = udp_close,
};

/* ---- making ---- */

int tx_udp_open(const struct netdev *dev, struct xroce_engine_stats *stats, struct tx **out)
{
	struct xroce_tx_frame *frame = calloc(XROCE_TX_FRAMES, sizeof(*frame));
	struct tx_udp *t = calloc(1, sizeof(*t));
	int err = frame && t ? 0 : -ENOMEM;

	if (err) {
		free(frame);
		free(t);
		return err;
	}
	t->tx.ops = &ops;
	t->stats = stats;
	t->ifindex = dev->ifindex;
	t->has_codes = !dev->is_hardware;
	tx_pool_init(&t->pool, frame);
	err = udp_sockets_open(&t->sockets, dev->ifindex);
	for (u32 i = 0; !err && i < 2; i++) {
		t->change[i] = calloc(CHANGES, sizeof(*t->change[i]));
		err = t->change[i] ? 0 : -ENOMEM;
	}
	if (err)
		udp_close(&t->tx);
	else
		*out = &t->tx;
	return err;
}
