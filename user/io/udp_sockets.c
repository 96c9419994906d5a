/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE /* struct ip_mreqn */
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "../engine/engine.h"
#include "../os/clock.h"
#include "../os/kernel.h"
#include "../os/netdev.h"
#include "udp_sockets.h"

#define SHARED_BUFFER (4 << 20)
/*
 * With the super-packet that passes the limit, and the kernel's own memory (a factor of 2), less
 * than the 212 KB that the kernel keeps for a neighbour: beyond those it drops the oldest packet,
 * which would look as if it had left.
 */
#define TRIAL_BUFFER (32 << 10)

/* without a sent frame: longer than any link needs for a packet */
#define STUCK_MIN_NS (50 * NSEC_PER_MSEC)
#define STUCK_MAX_NS (2 * NSEC_PER_SEC)

#define TRIAL_WAIT_NS (2 * NSEC_PER_MSEC)
/* The kernel drops the packets when it gives a neighbour up, after seconds: that proves nothing. */
#define TRIAL_PROOF_NS (50 * NSEC_PER_MSEC)

#define PEER_SETS 512u
#define PEER_WAYS 2u

struct udp_peer {
	struct gid gid;
	struct udp_socket *trial; /* NULL: none */
	bool is_used, has_passed;
	bool has_waited;
};

/* ---- sockets ---- */

/* Has packets to multicast groups leave by the interface. Returns 0, or -1 with errno set. */
static int udp_set_group_device(u32 ifindex, int fd, bool is_ipv6)
{
	const struct ip_mreqn v4 = { .imr_ifindex = (int)ifindex };
	const int v6 = (int)ifindex;

	return is_ipv6 ? setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &v6, sizeof(v6)) :
			 setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &v4, sizeof(v4));
}

static void udp_share_port(int fd, int on)
{
	/* unlike SO_REUSEADDR with sockets of the same user alone */
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
}

/*
 * Binds to the port of another of this process's sockets, or to a free one if port is 0 or that
 * fails: the process may have another user since. Returns 0, or -1 with errno set.
 */
static int udp_bind(int fd, bool is_ipv6, u16 port)
{
	struct sockaddr_in6 at = { .sin6_family = is_ipv6 ? AF_INET6 : AF_INET,
				   .sin6_port = htons(port) };
	const socklen_t len = is_ipv6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

	udp_share_port(fd, port != 0);
	if (port && !bind(fd, (const struct sockaddr *)&at, len))
		return 0;
	at.sin6_port = 0;
	udp_share_port(fd, false);
	if (bind(fd, (const struct sockaddr *)&at, len))
		return -1;
	udp_share_port(fd, true);
	return 0;
}

/*
 * Sets up a socket with the source port *port, or any, which it sets *port to. Returns 0, or -1
 * with errno set.
 */
static int udp_set_up(u32 ifindex, int fd, bool is_ipv6, int bytes, u16 *port)
{
	const int one = 1;
	/* and no regard to ICMP messages, which any host can send */
	const int never = is_ipv6 ? IPV6_PMTUDISC_PROBE : IP_PMTUDISC_PROBE;
	struct sockaddr_in6 at = { 0 };
	socklen_t len = sizeof(at);

	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	if (udp_set_group_device(ifindex, fd, is_ipv6) ||
	    (is_ipv6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one))) ||
	    setsockopt(fd, is_ipv6 ? IPPROTO_IPV6 : IPPROTO_IP,
		       is_ipv6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &never, sizeof(never)) ||
	    udp_bind(fd, is_ipv6, *port) ||
	    getsockname(fd, (struct sockaddr *)&at, &len))
		return -1;
	/* the port is at the same place in both families */
	*port = ntohs(at.sin6_port);
	return 0;
}

/*
 * Returns 0, or -errno with out->fd -1. bytes: of its buffer. port: that of another socket, so that
 * packets of a flow keep their source port, or 0.
 */
static int udp_open(u32 ifindex, bool is_ipv6, int bytes, u16 port, struct udp_socket *out)
{
	const int fd = socket(is_ipv6 ? AF_INET6 : AF_INET,
			      SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err = fd < 0 ? -errno : 0;

	*out = (struct udp_socket){ .fd = -1, .is_ipv6 = is_ipv6, .port = port };
	if (!err && udp_set_up(ifindex, fd, is_ipv6, bytes, &out->port))
		err = -errno;
	if (!err)
		out->fd = fd;
	else if (fd >= 0)
		kernel_close(fd);
	return err;
}

static void udp_close(struct udp_socket *o)
{
	if (o->fd >= 0)
		kernel_close(o->fd);
	o->fd = -1;
}

/* Returns the bytes of sent packets that the kernel still has. */
static int udp_held(const struct udp_socket *o)
{
	int bytes = 0;

	return ioctl(o->fd, SIOCOUTQ, &bytes) ? 0 : bytes;
}

/* ---- trials ---- */

static void trial_end(struct udp_socket *o)
{
	o->peer->trial = NULL;
	o->peer = NULL;
	udp_close(o);
}

/* Returns a place for a trial: a free one, or else that of the oldest trial, which ends. */
static struct udp_socket *trial_place(struct udp_sockets *s)
{
	struct udp_socket *oldest = &s->trial[0];

	for (u32 i = 0; i < UDP_TRIALS; i++) {
		struct udp_socket *o = &s->trial[i];

		if (!o->peer)
			return o;
		if (o->since_ns && (!oldest->since_ns || o->since_ns < oldest->since_ns))
			oldest = o;
	}
	trial_end(oldest);
	return oldest;
}

/* Gives the peer a socket. Returns NULL if there is no descriptor for one. */
static struct udp_socket *trial_begin(struct udp_sockets *s, struct udp_peer *p)
{
	const struct udp_socket *shared = &s->shared[!gid_is_ipv4(&p->gid)];
	struct udp_socket *o;

	if (shared->fd < 0)
		return NULL;
	o = trial_place(s);
	if (udp_open(s->ifindex, shared->is_ipv6, TRIAL_BUFFER, shared->port, o))
		return NULL;
	/* this may be a thread that has entered another network namespace */
	if (netdev_netns_of(o->fd) != netdev_netns_of(shared->fd)) {
		udp_close(o);
		return NULL;
	}
	o->peer = p;
	p->trial = o;
	return o;
}

/* Returns whether a packet has left, which passes the trial and ends it. */
static bool trial_passes(struct udp_socket *o, u64 now_ns)
{
	struct udp_peer *p = o->peer;

	if (!o->since_ns || (o->held && udp_held(o) >= o->held))
		return false;
	if (o->held && now_ns - o->since_ns >= TRIAL_PROOF_NS) {
		o->since_ns = 0;
		return false;
	}
	trial_end(o);
	p->has_passed = true;
	return true;
}

/* ---- peers ---- */

static struct udp_peer *peer_set(const struct udp_sockets *s, const struct gid *gid)
{
	u64 half[2], h = s->seed;

	memcpy(half, gid->raw, sizeof(half));
	for (u32 i = 0; i < 2; i++) {
		h = (h ^ half[i]) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 32;
	}
	return &s->peers[(h * 0x9e3779b97f4a7c15ull >> 32) % PEER_SETS * PEER_WAYS];
}

/* Finds the peer, or makes an entry for it. */
static struct udp_peer *peer_get(struct udp_sockets *s, const struct gid *gid)
{
	struct udp_peer *set = peer_set(s, gid), *p;

	for (u32 i = 0; i < PEER_WAYS; i++)
		if (set[i].is_used && gid_equal(&set[i].gid, gid))
			return &set[i];
	p = !set[0].is_used ? &set[0] :
	    !set[1].is_used ? &set[1] :
			      &set[s->evicted++ % PEER_WAYS];
	if (p->trial)
		trial_end(p->trial);
	*p = (struct udp_peer){ .gid = *gid, .is_used = true };
	return p;
}

static void peers_try_again(struct udp_sockets *s)
{
	for (u32 i = 0; i < PEER_SETS * PEER_WAYS; i++)
		s->peers[i].has_passed = false;
	s->has_last = false;
}

struct udp_socket *udp_sockets_for(struct udp_sockets *s, const struct gid *to)
{
	struct udp_socket *shared = &s->shared[!gid_is_ipv4(to)];
	struct udp_peer *p;

	if (s->has_last && gid_equal(&s->last, to))
		return shared;
	/* packets to a group need no neighbour */
	p = group_is_address(to) ? NULL : peer_get(s, to);
	if (p && !p->has_passed) {
		struct udp_socket *o = p->trial ? p->trial : trial_begin(s, p);

		if (!o)
			return shared;
		if (!trial_passes(o, clock_now_ns()))
			return o;
	}
	s->has_last = true;
	s->last = *to;
	return shared;
}

void udp_sockets_sent(struct udp_sockets *s, struct udp_socket *o)
{
	if (!o->peer)
		return;
	if (!o->since_ns)
		o->since_ns = clock_now_ns();
	o->held = udp_held(o);
}

/* ---- full sockets ---- */

/* Replaces a shared socket whose buffer stays full. */
static void udp_renew(struct udp_sockets *s, struct udp_socket *o)
{
	struct udp_socket next;

	if (udp_open(s->ifindex, o->is_ipv6, SHARED_BUFFER, o->port, &next))
		return;
	/* as in trial_begin() */
	if (netdev_netns_of(next.fd) == netdev_netns_of(o->fd)) {
		kernel_replace(next.fd, o->fd);
		o->port = next.port;
		peers_try_again(s);
	}
	udp_close(&next);
}

/* The time until the next replacement is twice the last one, and the least after a sent frame. */
static void shared_is_full(struct udp_sockets *s, struct udp_socket *o, bool has_sent)
{
	const u64 now_ns = clock_now_ns();

	if (has_sent || !s->full_ns) {
		s->full_ns = now_ns;
		s->stuck_ns = has_sent || !s->stuck_ns ? STUCK_MIN_NS : s->stuck_ns;
		return;
	}
	if (now_ns - s->full_ns < s->stuck_ns)
		return;
	s->full_ns = now_ns;
	s->stuck_ns = min_u64(2 * s->stuck_ns, STUCK_MAX_NS);
	udp_renew(s, o);
}

enum udp_full udp_sockets_full(struct udp_sockets *s, struct udp_socket *o, bool has_sent)
{
	struct udp_peer *p = o->peer;
	const u64 now_ns = p ? clock_now_ns() : 0;

	if (!p) {
		shared_is_full(s, o, has_sent);
		return UDP_FULL_WAIT;
	}
	if (trial_passes(o, now_ns))
		return UDP_FULL_AGAIN;
	/* a network card reports the first packets late */
	if (!p->has_waited && now_ns - o->since_ns < TRIAL_WAIT_NS)
		return UDP_FULL_WAIT;
	p->has_waited = true;
	return UDP_FULL_LOSE;
}

/* ---- making ---- */

int udp_sockets_open(struct udp_sockets *s, u32 ifindex)
{
	int err;

	*s = (struct udp_sockets){ .ifindex = ifindex };
	for (u32 i = 0; i < UDP_TRIALS; i++)
		s->trial[i].fd = -1;
	s->shared[0].fd = s->shared[1].fd = -1;
	s->peers = calloc(PEER_SETS * PEER_WAYS, sizeof(*s->peers));
	err = s->peers ? kernel_random(&s->seed, sizeof(s->seed)) : -ENOMEM;
	for (u32 i = 0; !err && i < 2; i++)
		err = udp_open(ifindex, i, SHARED_BUFFER, 0, &s->shared[i]);
	/* a host without IPv6 has no IPv6 addresses to send from */
	if (err == -EAFNOSUPPORT || err == -EADDRNOTAVAIL)
		err = 0;
	if (err)
		udp_sockets_close(s);
	return err;
}

void udp_sockets_close(struct udp_sockets *s)
{
	for (u32 i = 0; i < UDP_TRIALS; i++)
		udp_close(&s->trial[i]);
	udp_close(&s->shared[0]);
	udp_close(&s->shared[1]);
	free(s->peers);
	s->peers = NULL;
}
