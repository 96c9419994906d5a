/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <bpf/libbpf.h>
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../os/netdev_nl.h"
#include "tap.h"

#define TUN_DEVICE   "/dev/net/tun"
#define TAP_MTU	     65521u /* the largest: super-packets pass the hairpin */
#define TAP_HANDLE   1
#define TAP_PRIORITY 1

int tap_make(u32 for_ifindex, enum tap_kind kind, u32 *tap)
{
	const short header = kind == TAP_SINGLE ? 0 : IFF_VNET_HDR;
	struct ifreq ifr = { .ifr_flags = (short)(IFF_TAP | IFF_NO_PI | header) };
	int fd = open(TUN_DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), NETDEV_TAP_PREFIX "%u%s", for_ifindex,
		 kind == TAP_HAIRPIN ? "" : ".%d");
	*tap = ioctl(fd, TUNSETIFF, &ifr) ? 0 : if_nametoindex(ifr.ifr_name);
	if (*tap)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int tap_guard(u32 tap, int ingress_prog_fd, int egress_prog_fd)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)tap,
		    .attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS);
	LIBBPF_OPTS(bpf_tc_opts, ingress, .prog_fd = ingress_prog_fd, .handle = TAP_HANDLE,
		    .priority = TAP_PRIORITY);
	LIBBPF_OPTS(bpf_tc_opts, egress, .prog_fd = egress_prog_fd, .handle = TAP_HANDLE,
		    .priority = TAP_PRIORITY);
	int err = bpf_tc_hook_create(&hook);

	hook.attach_point = BPF_TC_INGRESS;
	if (!err)
		err = bpf_tc_attach(&hook, &ingress);
	hook.attach_point = BPF_TC_EGRESS;
	return err ? err : bpf_tc_attach(&hook, &egress);
}

int tap_set_up(u32 tap)
{
	char buf[NL_REQUEST_BYTES] = { 0 };
	struct nlmsghdr *nlh = nl_link_request(buf, RTM_SETLINK, tap);
	struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	int err = nl_link_forbid_addresses(tap);

	ifi->ifi_flags = IFF_UP | IFF_NOARP;
	ifi->ifi_change = IFF_UP | IFF_NOARP | IFF_MULTICAST;
	mnl_attr_put_u32(nlh, IFLA_MTU, TAP_MTU);
	return err ? err : nl_request(NETLINK_ROUTE, nlh, NULL, NULL);
}

/* RTM_SETLINK: moves a device to the group. RTM_DELLINK, tap 0: deletes the group's devices. */
static int tap_group(u16 type, u32 tap, u32 group)
{
	char buf[NL_REQUEST_BYTES] = { 0 };
	struct nlmsghdr *nlh = nl_link_request(buf, type, tap);

	mnl_attr_put_u32(nlh, IFLA_GROUP, group);
	return nl_request(NETLINK_ROUTE, nlh, NULL, NULL);
}

int tap_delete(const u32 *tap, u32 n)
{
	u32 group, found = 0;
	int err = 0;

	/* a random group, which no other device is in */
	if (getrandom(&group, sizeof(group), 0) != sizeof(group))
		return -EIO;
	group |= 1u << 31;
	for (u32 i = 0; i < n; i++) {
		int ret = tap[i] ? tap_group(RTM_SETLINK, tap[i], group) : -ENODEV;

		found += !ret;
		if (ret && ret != -ENODEV)
			err = ret;
	}
	if (found) {
		const int ret = tap_group(RTM_DELLINK, 0, group);

		/* ENODEV: the last device was deleted with its last descriptor just now */
		if (ret && ret != -ENODEV)
			err = ret;
	}
	return err;
}

/* ---- existing devices ---- */

/* Returns the ifindex of the interface in the name of a TAP device, or 0 for another name. */
static u32 tap_name_parse(const char *name, bool *is_hairpin)
{
	const size_t prefix = strlen(NETDEV_TAP_PREFIX);
	unsigned long number;
	char *end;

	if (strncmp(name, NETDEV_TAP_PREFIX, prefix) || !isdigit((unsigned char)name[prefix]))
		return 0;
	number = strtoul(name + prefix, &end, 10);
	*is_hairpin = !*end;
	return (*end && *end != '.') || number > INT_MAX ? 0 : (u32)number;
}

bool tap_is_hairpin(const char *name)
{
	bool is_hairpin;

	return tap_name_parse(name, &is_hairpin) && is_hairpin;
}

struct tap_found {
	u32 tap, ifindex;
	bool is_hairpin;
};

struct tap_scan {
	struct tap_found *found;
	u32 n, room;
	bool out_of_memory;
};

static int tap_scan_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *tb[IFLA_LINKINFO + 1];
	struct tap_found found, *more;
	struct tap_scan *s = arg;
	char name[IF_NAMESIZE], kind[8];

	if (nlh->nlmsg_type != RTM_NEWLINK || mnl_nlmsg_get_payload_len(nlh) < sizeof(*ifi))
		return MNL_CB_OK;
	nl_parse(nlh, sizeof(*ifi), tb, IFLA_LINKINFO);
	if (!nl_get_string(tb[IFLA_IFNAME], name, sizeof(name)) ||
	    !netdev_link_kind(tb[IFLA_LINKINFO], kind, sizeof(kind)) || strcmp(kind, "tun"))
		return MNL_CB_OK;
	found.tap = (u32)ifi->ifi_index;
	found.ifindex = tap_name_parse(name, &found.is_hairpin);
	if (!found.ifindex)
		return MNL_CB_OK;
	if (s->n == s->room) {
		more = reallocarray(s->found, s->room + 64, sizeof(*s->found));
		s->out_of_memory |= !more;
		if (!more)
			return MNL_CB_OK;
		s->found = more;
		s->room += 64;
	}
	s->found[s->n++] = found;
	return MNL_CB_OK;
}

/* Lists all TAP devices of brokers in s->found, which the caller frees. Returns 0 or -errno. */
static int tap_scan(struct tap_scan *s)
{
	int err = -EINTR;

	*s = (struct tap_scan){ 0 };
	for (u32 i = 0; i < NL_DUMP_RETRIES && err == -EINTR; i++) {
		char buf[NL_REQUEST_BYTES] = { 0 };
		struct nlmsghdr *nlh = nl_link_request(buf, RTM_GETLINK, 0);

		nlh->nlmsg_flags = NLM_F_DUMP;
		s->n = 0;
		err = nl_request(NETLINK_ROUTE, nlh, tap_scan_cb, s);
	}
	return err ? err : s->out_of_memory ? -ENOMEM : 0;
}

int tap_each_hairpin(tap_fn *fn, void *arg)
{
	struct tap_scan s;
	int err = tap_scan(&s);

	for (u32 i = 0; !err && i < s.n; i++)
		if (s.found[i].is_hairpin)
			fn(arg, s.found[i].ifindex, s.found[i].tap);
	free(s.found);
	return err;
}

int tap_sweep(u32 for_ifindex)
{
	struct tap_scan s;
	u32 *tap, n = 0;
	int err = tap_scan(&s);

	tap = err ? NULL : calloc(s.n + 1, sizeof(*tap));
	for (u32 i = 0; tap && i < s.n; i++)
		if (s.found[i].ifindex == for_ifindex)
			tap[n++] = s.found[i].tap;
	if (!err)
		err = tap ? tap_delete(tap, n) : -ENOMEM;
	free(tap);
	free(s.found);
	return err;
}
