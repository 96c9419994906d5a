/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queries the kernel's routing table: interface, source address and neighbour for packets to an
 * address. netdev_resolve.c looks up the neighbours.
 */
#include <linux/rtnetlink.h>
#include <stdlib.h>

#include "netdev_nl.h"

#define HOP_LIMIT_DEFAULT 64 /* the kernel's default, used if it is unknown */

struct hop hop_of_gid(const struct gid *gid)
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

bool hop_is_multicast(const struct hop *h)
{
	return h->family == AF_INET ? (h->addr[0] & 0xf0) == 0xe0 : h->addr[0] == 0xff;
}

bool hop_is_nowhere(const struct hop *h)
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

int hop_next(struct netdev_session *s, u32 ifindex, const struct hop *src, const struct hop *dst,
	     struct hop *next)
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
	FILE *f;

	if (family == AF_INET)
		snprintf(path, sizeof(path), "/proc/sys/net/ipv4/ip_default_ttl");
	else if (if_indextoname(ifindex, name))
		snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/hop_limit", name);
	else
		return HOP_LIMIT_DEFAULT;
	f = fopen(path, "re");
	if (!f)
		return HOP_LIMIT_DEFAULT;
	if (fscanf(f, "%u", &limit) != 1 || limit > UINT8_MAX)
		limit = 0;
	fclose(f);
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
