/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <bpf/bpf.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>

#include "../netdev/netdev_nl.h"
#include "near.h"
#include "tap.h"

bool near_concerns(const struct nlmsghdr *nlh)
{
	const struct nlattr *tb[IFLA_IFNAME + 1];
	char name[IF_NAMESIZE];

	/* an address, or the message was lost */
	if (!nlh || (nlh->nlmsg_type != RTM_NEWLINK && nlh->nlmsg_type != RTM_DELLINK))
		return true;
	nl_parse(nlh, sizeof(struct ifinfomsg), tb, IFLA_IFNAME);
	return nl_get_string(tb[IFLA_IFNAME], name, sizeof(name)) && tap_is_hairpin(name);
}

/* An interface that has gone, or cannot be read, has no address. */
static void near_add(void *arg, u32 ifindex, u32 hairpin)
{
	struct netdev dev = { .ifindex = ifindex };
	struct near *n = arg;

	if (ifindex == n->ifindex || netdev_refresh(&dev))
		return;
	for (u32 i = 0; i < dev.num_gids && n->num < XROCE_MAX_NEAR; i++)
		n->address[n->num++] =
			(struct near_address){ .gid = dev.gid[i].gid, .hairpin = hairpin };
}

static bool near_has(const struct near *n, const struct gid *gid)
{
	for (u32 i = 0; i < n->num; i++)
		if (gid_equal(&n->address[i].gid, gid))
			return true;
	return false;
}

int near_follow(struct near *n, int map_fd)
{
	struct near *now = calloc(1, sizeof(*now));
	int err;

	if (!now)
		return -ENOMEM;
	now->ifindex = n->ifindex;
	err = tap_each_hairpin(near_add, now);
	/* The old ones first: the map may be full. */
	for (u32 i = 0; !err && i < n->num; i++)
		if (!near_has(now, &n->address[i].gid))
			bpf_map_delete_elem(map_fd, &n->address[i].gid);
	if (!err)
		*n = *now;
	for (u32 i = 0; !err && i < n->num; i++)
		err = bpf_map_update_elem(map_fd, &n->address[i].gid, &n->address[i].hairpin,
					  BPF_ANY);
	free(now);
	return err;
}
