/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <bpf/bpf.h>
#include <endian.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>

#include "../os/netdev_nl.h"
#include "neighbours.h"
#include "tap.h"

bool neighbours_concerns(const struct nlmsghdr *nlh)
{
	const struct nlattr *tb[IFLA_IFNAME + 1];
	char name[IF_NAMESIZE];

	/* addresses, or notifications were lost */
	if (!nlh || (nlh->nlmsg_type != RTM_NEWLINK && nlh->nlmsg_type != RTM_DELLINK))
		return true;
	nl_parse(nlh, sizeof(struct ifinfomsg), tb, IFLA_IFNAME);
	return nl_get_string(tb[IFLA_IFNAME], name, sizeof(name)) && tap_is_hairpin(name);
}

static bool neighbours_has(const struct neighbours *n, const struct gid *gid)
{
	for (u32 i = 0; i < n->num; i++)
		if (gid_equal(&n->address[i].gid, gid))
			return true;
	return false;
}

static void neighbours_add(struct neighbours *n, const struct gid *gid,
			   const struct xroce_neighbour *way)
{
	if (n->num < XROCE_MAX_NEIGHBOUR && !neighbours_has(n, gid))
		n->address[n->num++] = (struct neighbours_address){ .gid = *gid, .way = *way };
}

/* Adds an interface's addresses: none if it does not exist any more or cannot be read. */
static void neighbours_add_hairpin(void *arg, u32 ifindex, u32 hairpin)
{
	const struct xroce_neighbour way = { .hairpin = hairpin };
	struct netdev dev = { .ifindex = ifindex };
	struct neighbours *n = arg;

	if (ifindex == n->ifindex || netdev_refresh(&dev))
		return;
	for (u32 i = 0; i < dev.num_gids; i++)
		neighbours_add(n, &dev.gid[i].gid, &way);
}

/* ---- interfaces without a broker ---- */

static const struct gid *neighbours_link_local(const struct netdev *dev)
{
	for (u32 i = 0; i < dev->num_gids; i++)
		if (dev->gid[i].gid.raw[0] == 0xfe && (dev->gid[i].gid.raw[1] & 0xc0) == 0x80)
			return &dev->gid[i].gid;
	return NULL;
}

/* Returns whether gid is an IPv4 address in a network of the interface. */
static bool neighbours_is_on_link(const struct netdev *dev, const struct gid *gid)
{
	u32 at, own;

	memcpy(&at, gid->raw + 12, sizeof(at));
	for (u32 i = 0; gid_is_ipv4(gid) && i < dev->num_gids; i++) {
		const struct netdev_gid *g = &dev->gid[i];

		memcpy(&own, g->gid.raw + 12, sizeof(own));
		if (gid_is_ipv4(&g->gid) && g->prefix_len &&
		    !(be32toh(at ^ own) >> (32 - min_u32(g->prefix_len, 32))))
			return true;
	}
	return false;
}

struct neighbours_scan {
	struct neighbours *neighbours;
	struct netdev own;
};

static void neighbours_add_beside(void *arg, const struct netdev *dev)
{
	const struct neighbours_scan *s = arg;
	const struct gid *hop = neighbours_link_local(dev);
	struct xroce_neighbour way = { 0 };

	if (!hop || dev->ifindex == s->own.ifindex)
		return;
	memcpy(way.next_hop, hop->raw, sizeof(way.next_hop));
	for (u32 i = 0; i < dev->num_gids; i++)
		if (neighbours_is_on_link(&s->own, &dev->gid[i].gid))
			neighbours_add(s->neighbours, &dev->gid[i].gid, &way);
}

/* Adds interfaces without a broker, after all interfaces with one. Returns 0 or -errno. */
static int neighbours_scan_beside(struct neighbours *n)
{
	struct neighbours_scan s = { .neighbours = n, .own.ifindex = n->ifindex };
	int err = netdev_refresh(&s.own);

	if (err == -ENODEV)
		return 0; /* its broker ends */
	return err || !neighbours_link_local(&s.own) ? err : netdev_each(neighbours_add_beside, &s);
}

int neighbours_follow(struct neighbours *n, int map_fd)
{
	struct neighbours *now = calloc(1, sizeof(*now));
	int err;

	if (!now)
		return -ENOMEM;
	now->ifindex = n->ifindex;
	err = tap_each_hairpin(neighbours_add_hairpin, now);
	if (!err)
		err = neighbours_scan_beside(now);
	/* the old ones first: the map may be full */
	for (u32 i = 0; !err && i < n->num; i++)
		if (!neighbours_has(now, &n->address[i].gid))
			bpf_map_delete_elem(map_fd, &n->address[i].gid);
	if (!err)
		*n = *now;
	for (u32 i = 0; !err && i < n->num; i++)
		err = bpf_map_update_elem(map_fd, &n->address[i].gid, &n->address[i].way, BPF_ANY);
	free(now);
	return err;
}
