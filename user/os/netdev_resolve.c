/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Resolves a peer's GID to its MAC: by the kernel's route over this interface (netdev_route.c),
 * then the kernel's neighbour entry of the next hop. If there is none, the kernel has to
 * resolve it (NTF_USE), by ARP or neighbour discovery. We send no packet for that, except one
 * datagram if the process lacks the privilege to ask.
 */
#include <arpa/inet.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "netdev_nl.h"

/* States in which the entry's MAC may be used (the kernel's NUD_VALID). */
#define NUD_USABLE (NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY)

#define DISCARD_PORT 9 /* RFC 863 */

/* Computes the MAC: RFC 1112 section 6.4 and RFC 2464 section 7. */
static void multicast_mac(const struct hop *h, u8 mac[6])
{
	if (h->family == AF_INET) {
		mac[0] = 0x01;
		mac[1] = 0x00;
		mac[2] = 0x5e;
		mac[3] = h->addr[1] & 0x7f;
		mac[4] = h->addr[2];
		mac[5] = h->addr[3];
	} else {
		mac[0] = mac[1] = 0x33;
		memcpy(mac + 2, h->addr + 12, 4);
	}
}

/* ---- neighbour ---- */

struct neighbour {
	u16 state; /* NUD_*, 0 = no entry */
	bool has_mac;
	u8 mac[6];
};

static int neighbour_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *tb[NDA_LLADDR + 1];
	const struct ndmsg *ndm = mnl_nlmsg_get_payload(nlh);
	struct neighbour *n = arg;

	if (nlh->nlmsg_type != RTM_NEWNEIGH || mnl_nlmsg_get_payload_len(nlh) < sizeof(*ndm))
		return MNL_CB_OK;
	nl_parse(nlh, sizeof(*ndm), tb, NDA_LLADDR);
	n->state = ndm->ndm_state;
	n->has_mac = nl_get(tb[NDA_LLADDR], n->mac, sizeof(n->mac));
	return MNL_CB_OK;
}

static struct nlmsghdr *neighbour_request(char *buf, u16 type, u32 ifindex, const struct hop *hop,
					  u8 ndm_flags)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ndmsg *ndm;

	nlh->nlmsg_type = type;
	ndm = mnl_nlmsg_put_extra_header(nlh, sizeof(*ndm));
	ndm->ndm_family = hop->family;
	ndm->ndm_ifindex = (int)ifindex;
	ndm->ndm_flags = ndm_flags;
	mnl_attr_put(nlh, NDA_DST, hop->len, hop->addr);
	return nlh;
}

/* Returns 0 (n->state is 0 if there is no entry) or -errno. */
static int neighbour_get(struct netdev_session *s, u32 ifindex, const struct hop *hop,
			 struct neighbour *n)
{
	char buf[NL_REQUEST_BYTES] = { 0 };
	int ret;

	memset(n, 0, sizeof(*n));
	ret = nl_route_request(s, neighbour_request(buf, RTM_GETNEIGH, ifindex, hop, 0),
			       neighbour_cb, n);
	return ret == -ENOENT ? 0 : ret;
}

/*
 * Makes the kernel send a packet to the neighbour: an empty datagram to its discard service, over
 * this interface and through no router. For processes without the privilege for NTF_USE.
 */
static int neighbour_send_to(u32 ifindex, const struct hop *hop)
{
	const int one = 1;
	const u32 index_be = htonl(ifindex);
	const bool ipv4 = hop->family == AF_INET;
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} to = { 0 };
	int fd = socket(hop->family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), ret = 0;

	if (fd < 0)
		return -errno;
	if (ipv4) {
		to.in = (struct sockaddr_in){ .sin_family = AF_INET,
					      .sin_port = htons(DISCARD_PORT) };
		memcpy(&to.in.sin_addr, hop->addr, hop->len);
		ret = setsockopt(fd, IPPROTO_IP, IP_UNICAST_IF, &index_be, sizeof(index_be)) ||
		      setsockopt(fd, IPPROTO_IP, IP_TTL, &one, sizeof(one));
	} else {
		to.in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
						.sin6_port = htons(DISCARD_PORT),
						.sin6_scope_id = ifindex };
		memcpy(&to.in6.sin6_addr, hop->addr, hop->len);
		ret = setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_IF, &index_be, sizeof(index_be)) ||
		      setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &one, sizeof(one));
	}
	if (ret || sendto(fd, NULL, 0, 0, &to.any, ipv4 ? sizeof(to.in) : sizeof(to.in6)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/* Makes the kernel use the neighbour as for a packet: create, resolve or confirm the entry. */
static int neighbour_use(struct netdev_session *s, u32 ifindex, const struct hop *hop)
{
	char buf[NL_REQUEST_BYTES] = { 0 };
	struct nlmsghdr *nlh = neighbour_request(buf, RTM_NEWNEIGH, ifindex, hop, NTF_USE);
	int ret;

	nlh->nlmsg_flags = NLM_F_CREATE;
	ret = nl_route_request(s, nlh, NULL, NULL);
	return ret == -EPERM ? neighbour_send_to(ifindex, hop) : ret;
}

/*
 * Sleeps until some neighbour changes or the deadline passes; returns false in the latter case. The
 * caller checks the neighbour itself.
 */
static bool wait_for_change(struct mnl_socket *events, u64 deadline_ns)
{
	struct pollfd pfd = { .fd = mnl_socket_get_fd(events), .events = POLLIN };
	char buf[4096];
	const u64 now_ns = clock_now_ns();

	if (now_ns >= deadline_ns)
		return false;
	/* rounded up: never sleeps less than the remaining time */
	if (poll(&pfd, 1, (int)((deadline_ns - now_ns) / NSEC_PER_MSEC + 1)) == 0)
		return false;
	/* An overrun (ENOBUFS) counts as a change; so does a signal, at little cost. */
	while (recv(pfd.fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
	return true;
}

/* Asks for the neighbour and waits until it is usable. Returns 0, -EHOSTUNREACH or -errno. */
static int neighbour_await(struct netdev_session *s, struct mnl_socket *events, u32 ifindex,
			   const struct hop *hop, u64 deadline_ns, struct neighbour *n)
{
	int ret = neighbour_use(s, ifindex, hop);

	while (!ret) {
		ret = neighbour_get(s, ifindex, hop, n);
		if (ret || (n->state & NUD_USABLE))
			return ret;
		/* Asking makes a failed entry incomplete again: this failure is the answer. */
		if ((n->state & NUD_FAILED) || !wait_for_change(events, deadline_ns))
			return -EHOSTUNREACH;
	}
	return ret;
}

/*
 * Finds a hop that is another interface of this network namespace: the other end of a veth, a
 * second macvlan. Over IPv4 the kernel cannot resolve it, as it takes an ARP request from one of
 * its own addresses for forged (accept_local in Documentation/networking/ip-sysctl.rst). Neighbour
 * discovery has no such rule.
 */
static bool hop_is_neighbouring_interface(u32 ifindex, const struct hop *hop, u8 mac[6])
{
	struct gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };

	if (hop->family != AF_INET)
		return false;
	memcpy(gid.raw + 12, hop->addr, 4);
	return netdev_holder_of(&gid, ifindex, mac) == 0;
}

/* Asks and waits up to timeout_ms. Returns 0, -EHOSTUNREACH or -errno. */
static int neighbour_wait(struct netdev_session *s, u32 ifindex, const struct hop *hop,
			  int timeout_ms, struct neighbour *n)
{
	const u64 deadline_ns = clock_now_ns() + (u64)timeout_ms * NSEC_PER_MSEC;
	struct mnl_socket *events;
	int ret = 0;

	/* Listen before asking, so that the answer cannot be missed. */
	events = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	if (!events)
		return -errno;
	if (mnl_socket_bind(events, RTMGRP_NEIGH, MNL_SOCKET_AUTOPID) < 0)
		ret = -errno;
	else
		ret = neighbour_await(s, events, ifindex, hop, deadline_ns, n);
	mnl_socket_close(events);
	return ret;
}

/* Asks without waiting. Returns 0 if the answer is there already, -EHOSTUNREACH or -errno. */
static int neighbour_ask(struct netdev_session *s, u32 ifindex, const struct hop *hop,
			 struct neighbour *n)
{
	int ret = neighbour_use(s, ifindex, hop);

	if (!ret)
		ret = neighbour_get(s, ifindex, hop, n);
	return ret || (n->state & NUD_USABLE) ? ret : -EHOSTUNREACH;
}

static int neighbour_resolve(struct netdev_session *s, u32 ifindex, const struct hop *hop,
			     int timeout_ms, u8 mac[6])
{
	struct neighbour n;
	int ret;

	ret = neighbour_get(s, ifindex, hop, &n);
	if (ret)
		return ret;
	if (!(n.state & NUD_USABLE)) {
		if (hop_is_neighbouring_interface(ifindex, hop, mac))
			return 0;
		ret = timeout_ms > 0	 ? neighbour_wait(s, ifindex, hop, timeout_ms, &n) :
		      timeout_ms < 0 ? -EHOSTUNREACH :
				       neighbour_ask(s, ifindex, hop, &n);
		if (ret)
			return ret;
	} else if (n.state & NUD_STALE) {
		/*
		 * Our packets bypass the kernel's neighbour code: let it confirm the entry. The MAC
		 * is usable until it changes.
		 */
		neighbour_use(s, ifindex, hop);
	}
	if (!n.has_mac)
		return -EHOSTUNREACH;
	memcpy(mac, n.mac, 6);
	return 0;
}

int netdev_neighbour_news(void)
{
	const struct sockaddr_nl groups = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_NEIGH };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&groups, sizeof(groups))) {
		close(fd);
		return -errno;
	}
	return fd < 0 ? -errno : fd;
}

/* Returns whether a message makes a neighbour's MAC usable. */
static bool news_are_usable(const void *messages, size_t len)
{
	const struct nlmsghdr *nlh = messages;
	int left = (int)len;

	for (; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
		const struct ndmsg *ndm = mnl_nlmsg_get_payload(nlh);

		if (nlh->nlmsg_type == RTM_NEWNEIGH &&
		    mnl_nlmsg_get_payload_len(nlh) >= sizeof(*ndm) && ndm->ndm_state & NUD_USABLE)
			return true;
	}
	return false;
}

enum netdev_news netdev_neighbour_news_take(int fd)
{
	_Alignas(struct nlmsghdr) char buf[4096];
	enum netdev_news news = NETDEV_NO_NEWS;
	ssize_t n;

	/* after an overrun (ENOBUFS) any neighbour may have answered */
	while ((n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) >= 0 || errno == ENOBUFS) {
		if (n < 0 || news_are_usable(buf, (size_t)n))
			news = NETDEV_ANSWERED;
		else if (news == NETDEV_NO_NEWS)
			news = NETDEV_CHANGED;
	}
	return news;
}

/* ---- both ---- */

int netdev_resolve(struct netdev_session *s, const struct netdev *dev, const struct gid *local,
		   const struct gid *peer, int timeout_ms, const u8 *heard, struct path *out)
{
	struct hop src = hop_of_gid(local), dst = hop_of_gid(peer), next;
	u8 dmac[6];
	int ret;

	if (!netdev_has_gid(dev, local) || src.family != dst.family || hop_is_nowhere(&dst))
		return -EINVAL;
	if (netdev_has_gid(dev, peer)) {
		memcpy(dmac, dev->mac, 6);
	} else if (hop_is_multicast(&dst)) {
		multicast_mac(&dst, dmac);
	} else {
		ret = dev->is_loopback ? -ENETUNREACH :
					 hop_next(s, dev->ifindex, &src, &dst, &next);
		if (!ret)
			ret = neighbour_resolve(s, dev->ifindex, &next, heard ? 0 : timeout_ms,
						dmac);
		if (ret == -EHOSTUNREACH && heard)
			memcpy(dmac, heard, 6);
		else if (ret)
			return ret;
	}

	memcpy(out->dmac, dmac, 6);
	memcpy(out->smac, dev->mac, 6);
	out->local = *local;
	out->peer = *peer;
	out->is_ipv6 = dst.family == AF_INET6;
	out->has_vlan = false;
	out->vlan_tci = 0;
	return 0;
}
