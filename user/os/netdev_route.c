/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queries the kernel's routing table and its neighbours: interface, source address and next hop of
 * packets to an address, and the MAC of the next hop.
 */
#include <arpa/inet.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "netdev_nl.h"
#include "thread.h"

#define HOP_LIMIT_DEFAULT 64 /* the kernel's default, used if it is unknown */

/* An address in rtnetlink's form. */
struct hop {
	u8 family;
	u8 len;
	u8 addr[16];
};

static struct hop hop_of_gid(const struct gid *gid)
{
	struct hop h = { .family = AF_INET6, .len = 16 };

	if (gid_is_ipv4(gid)) {
		h.family = AF_INET;
		h.len = 4;
		memcpy(h.addr, gid->raw + 12, 4);
	} else {
		memcpy(h.addr, gid->raw, 16);
	}
	return h;
}

static bool hop_is_multicast(const struct hop *h)
{
	return h->family == AF_INET ? (h->addr[0] & 0xf0) == 0xe0 : h->addr[0] == 0xff;
}

/* Returns whether it is in 0.0.0.0/8, 255.255.255.255 or ::, to which nothing can be sent. */
static bool hop_is_nowhere(const struct hop *h)
{
	static const u8 zero[16], ones[4] = { 0xff, 0xff, 0xff, 0xff };

	if (h->family == AF_INET)
		return h->addr[0] == 0 || !memcmp(h->addr, ones, 4);
	return !memcmp(h->addr, zero, 16);
}

static bool hop_is_link_local(const struct hop *h)
{
	return h->family == AF_INET6 && h->addr[0] == 0xfe && (h->addr[1] & 0xc0) == 0x80;
}

struct route_answer {
	u32 ifindex;
	u8 type;
	bool answered;
	bool malformed;
	bool has_gateway;
	struct hop gateway;
	bool has_source;
	struct hop source; /* chosen by the kernel */
	u32 hop_limit;	   /* 0: the route has none */
};

static u32 route_hop_limit(const struct nlattr *metrics)
{
	const struct nlattr *attr;
	u32 limit = 0;

	if (metrics)
		mnl_attr_for_each_nested(attr, metrics)
			if (mnl_attr_get_type(attr) == RTAX_HOPLIMIT)
				nl_get(attr, &limit, sizeof(limit));
	return limit;
}

static int route_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *tb[RTA_VIA + 1];
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
	struct route_answer *r = arg;
	struct hop *gw = &r->gateway;

	if (nlh->nlmsg_type != RTM_NEWROUTE || mnl_nlmsg_get_payload_len(nlh) < sizeof(*rtm))
		return MNL_CB_OK;
	nl_parse(nlh, sizeof(*rtm), tb, RTA_VIA);
	r->answered = true;
	r->type = rtm->rtm_type;
	nl_get(tb[RTA_OIF], &r->ifindex, sizeof(r->ifindex));
	r->hop_limit = route_hop_limit(tb[RTA_METRICS]);
	r->source.family = rtm->rtm_family;
	r->source.len = rtm->rtm_family == AF_INET ? 4 : 16;
	r->has_source = nl_get(tb[RTA_PREFSRC], r->source.addr, r->source.len);
	gw->family = rtm->rtm_family;
	gw->len = gw->family == AF_INET ? 4 : 16;
	if (tb[RTA_GATEWAY]) {
		r->has_gateway = true;
		r->malformed = !nl_get(tb[RTA_GATEWAY], gw->addr, gw->len);
	} else if (tb[RTA_VIA]) {
		/* A gateway of the other family: IPv4 by an IPv6 router (RFC 5549). */
		const struct rtvia *via = mnl_attr_get_payload(tb[RTA_VIA]);
		size_t n = mnl_attr_get_payload_len(tb[RTA_VIA]);

		r->has_gateway = true;
		r->malformed = n < sizeof(*via) ||
			       !(via->rtvia_family == AF_INET || via->rtvia_family == AF_INET6) ||
			       n - sizeof(*via) != (via->rtvia_family == AF_INET ? 4 : 16);
		if (!r->malformed) {
			gw->family = (u8)via->rtvia_family;
			gw->len = (u8)(n - sizeof(*via));
			memcpy(gw->addr, via->rtvia_addr, gw->len);
		}
	}
	return MNL_CB_OK;
}

/* ifindex may be 0, src NULL: any. */
static int route_ask(struct netdev_session *s, u32 ifindex, const struct hop *src,
		     const struct hop *dst, u32 flags, struct route_answer *r)
{
	char buf[NL_REQUEST_BYTES] = { 0 };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct rtmsg *rtm;
	int ret;

	nlh->nlmsg_type = RTM_GETROUTE;
	rtm = mnl_nlmsg_put_extra_header(nlh, sizeof(*rtm));
	rtm->rtm_family = dst->family;
	rtm->rtm_dst_len = (u8)(dst->len * 8);
	rtm->rtm_src_len = src ? (u8)(src->len * 8) : 0;
	rtm->rtm_flags = flags;
	mnl_attr_put(nlh, RTA_DST, dst->len, dst->addr);
	if (src)
		mnl_attr_put(nlh, RTA_SRC, src->len, src->addr);
	if (ifindex)
		mnl_attr_put_u32(nlh, RTA_OIF, ifindex);
	memset(r, 0, sizeof(*r));
	ret = nl_route_request(s, nlh, route_cb, r);
	return ret ? ret : r->answered && !r->malformed ? 0 : -EBADMSG;
}

/*
 * Finds the interface's neighbour to which packets for dst go. Returns 0, -ENETUNREACH, -EINVAL
 * (dst is a broadcast address) or -errno.
 */
static int hop_next(struct netdev_session *s, u32 ifindex, const struct hop *src,
		    const struct hop *dst, struct hop *next)
{
	struct route_answer r;
	int ret = 0;

	*next = *dst;
	if (hop_is_link_local(dst))
		return 0;
	/*
	 * With an interface given, IPv4 assumes that addresses without a route are on that link. A
	 * look-up of the table's entry (RTM_F_FIB_MATCH) does not.
	 */
	if (dst->family == AF_INET)
		ret = route_ask(s, ifindex, src, dst, RTM_F_FIB_MATCH, &r);
	if (!ret)
		ret = route_ask(s, ifindex, src, dst, 0, &r);
	/*
	 * An address of another of our interfaces. IPv4 has a route to it over the given interface;
	 * so has IPv6, but it uses the interface only without a source.
	 */
	if (!ret && r.type == RTN_LOCAL && dst->family == AF_INET6)
		ret = route_ask(s, ifindex, NULL, dst, 0, &r);
	switch (ret) {
	case 0:
		break;
	case -ENOMEM:
	case -ENOBUFS:
	case -EMFILE:
	case -ENFILE:
	case -EBADMSG:
		return ret;
	/* no route; or unreachable, prohibit (-EACCES), blackhole (-EINVAL) or throw (-EAGAIN) */
	default:
		return -ENETUNREACH;
	}
	if (r.type == RTN_BROADCAST)
		return -EINVAL;
	if (r.type != RTN_UNICAST || r.ifindex != ifindex)
		return -ENETUNREACH;
	if (r.has_gateway)
		*next = r.gateway;
	return 0;
}

static struct gid gid_of_hop(const struct hop *h)
{
	struct gid gid = { { [10] = 0xff, [11] = 0xff } };

	if (h->family == AF_INET)
		memcpy(gid.raw + 12, h->addr, 4);
	else
		memcpy(gid.raw, h->addr, 16);
	return gid;
}

/* Reads the hop limit for routes without one, in the calling thread's network namespace. */
static u8 hop_limit_read(u8 family, u32 ifindex)
{
	char path[64 + IF_NAMESIZE], name[IF_NAMESIZE];
	u32 limit = 0;
	int cancel;
	FILE *f;

	if (family == AF_INET)
		snprintf(path, sizeof(path), "/proc/sys/net/ipv4/ip_default_ttl");
	else if (if_indextoname(ifindex, name))
		snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/hop_limit", name);
	else
		return HOP_LIMIT_DEFAULT;
	cancel = thread_disable_cancel();
	f = fopen(path, "re");
	if (f && (fscanf(f, "%u", &limit) != 1 || limit > UINT8_MAX))
		limit = 0;
	if (f)
		fclose(f);
	thread_restore_cancel(cancel);
	return limit ? (u8)limit : HOP_LIMIT_DEFAULT;
}

static u8 hop_limit_default(struct netdev_session *s, u8 family, u32 ifindex)
{
	u8 limit = s ? netdev_session_hop_limit(s, family, ifindex) : 0;

	if (limit)
		return limit;
	limit = hop_limit_read(family, ifindex);
	if (s)
		netdev_session_keep_hop_limit(s, family, ifindex, limit);
	return limit;
}

struct address_scan {
	const struct gid *gid;
	u32 ifindex;
};

static void route_look_at_device(void *arg, const struct netdev *dev)
{
	struct address_scan *s = arg;

	if (!s->ifindex && netdev_has_gid(dev, s->gid))
		s->ifindex = dev->ifindex;
}

/* ifindex and src as for route_ask(). */
static int route_find(struct netdev_session *s, const struct hop *dst, const struct hop *src,
		      u32 ifindex, struct route_answer *r)
{
	int ret, match = 0;

	if (hop_is_link_local(dst) && !ifindex)
		return -EINVAL;
	/* as in hop_next(); a multicast group needs no route over a given interface */
	if (dst->family == AF_INET && ifindex && !hop_is_multicast(dst))
		match = route_ask(s, ifindex, src, dst, RTM_F_FIB_MATCH, r);
	ret = route_ask(s, ifindex, src, dst, 0, r);
	if (ret == -EAGAIN || (!ret && match))
		return -ENETUNREACH;
	return ret;
}

int netdev_route(struct netdev_session *s, const struct gid *peer, const struct gid *local,
		 u32 ifindex, struct netdev_route *out)
{
	const struct hop dst = hop_of_gid(peer), src = local ? hop_of_gid(local) : dst;
	struct address_scan holder = { .gid = peer };
	struct route_answer r;
	int ret;

	memset(out, 0, sizeof(*out));
	if (src.family != dst.family || hop_is_nowhere(&dst))
		return -EINVAL;
	ret = route_find(s, &dst, local ? &src : NULL, ifindex, &r);
	if (ret)
		return ret;
	if (r.type == RTN_BROADCAST)
		return -EINVAL;
	out->is_local = r.type == RTN_LOCAL;
	out->ifindex = ifindex ? ifindex : r.ifindex;
	if (out->is_local && !ifindex) {
		/* the route is over lo: find the interface that has the address */
		ret = netdev_each(route_look_at_device, &holder);
		if (ret || !holder.ifindex)
			return ret ? ret : -ENODEV;
		out->ifindex = holder.ifindex;
	}
	if (!local && !r.has_source)
		return -EADDRNOTAVAIL;
	out->local = local ? *local : gid_of_hop(&r.source);
	out->hop_limit = r.hop_limit && r.hop_limit <= UINT8_MAX ?
				 (u8)r.hop_limit :
				 hop_limit_default(s, dst.family, out->ifindex);
	return 0;
}

/*
 * Resolves a peer's GID to its MAC: by the kernel's route over this interface,
 * then the kernel's neighbour entry of the next hop. If there is none, the kernel has to
 * resolve it (NTF_USE), by ARP or neighbour discovery. We send no packet for that, except one
 * datagram if the process lacks the privilege to ask.
 */

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

static int resolve(struct netdev_session *s, const struct netdev *dev, const struct gid *local,
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

int netdev_resolve(struct netdev_session *s, const struct netdev *dev, const struct gid *local,
		   const struct gid *peer, int timeout_ms, const u8 *heard, struct path *out)
{
	const int cancel = thread_disable_cancel();
	const int ret = resolve(s, dev, local, peer, timeout_ms, heard, out);

	thread_restore_cancel(cancel);
	return ret;
}
