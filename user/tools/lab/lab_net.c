/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../os/netdev_nl.h"
#include "lab_net.h"

enum { IPV4_PREFIX = 24, IPV6_PREFIX = 64 };

/* ---- rtnetlink ---- */

static int link_up(u32 index)
{
	return nl_link_set_flags(index, IFF_UP, IFF_UP);
}

/* Makes `port` here, and eth0 with the host's MAC address in the host's namespace. */
static int make_link(const struct lab_host *host, const char *port, u32 mtu)
{
	char buf[NL_REQUEST_BYTES] = { 0 };
	struct nlmsghdr *nlh = nl_link_request(buf, RTM_NEWLINK, 0);
	struct nlattr *info, *data, *peer;
	struct ifinfomsg *ifi;

	nlh->nlmsg_flags = NLM_F_CREATE | NLM_F_EXCL;
	mnl_attr_put_strz(nlh, IFLA_IFNAME, port);
	mnl_attr_put_u32(nlh, IFLA_MTU, mtu);
	info = mnl_attr_nest_start(nlh, IFLA_LINKINFO);
	mnl_attr_put_strz(nlh, IFLA_INFO_KIND, "veth");
	data = mnl_attr_nest_start(nlh, IFLA_INFO_DATA);
	peer = mnl_attr_nest_start(nlh, VETH_INFO_PEER);
	ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	ifi->ifi_index = 0;
	mnl_attr_put_strz(nlh, IFLA_IFNAME, LAB_IFACE);
	mnl_attr_put_u32(nlh, IFLA_MTU, mtu);
	mnl_attr_put(nlh, IFLA_ADDRESS, sizeof(host->mac), host->mac);
	mnl_attr_put_u32(nlh, IFLA_NET_NS_FD, (u32)host->ns_fd);
	mnl_attr_nest_end(nlh, peer);
	mnl_attr_nest_end(nlh, data);
	mnl_attr_nest_end(nlh, info);
	return nl_request(NETLINK_ROUTE, nlh, NULL, NULL);
}

static int change_address(u16 type, int family, const char *text, u8 prefix, u32 index)
{
	const u16 bytes = family == AF_INET6 ? sizeof(struct in6_addr) : sizeof(struct in_addr);
	char buf[NL_REQUEST_BYTES] = { 0 };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifaddrmsg *ifa;
	struct in6_addr addr;

	inet_pton(family, text, &addr);
	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = type == RTM_NEWADDR ? NLM_F_CREATE | NLM_F_EXCL : 0;
	ifa = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifa));
	ifa->ifa_family = (u8)family;
	ifa->ifa_prefixlen = prefix;
	ifa->ifa_flags = family == AF_INET6 ? IFA_F_NODAD : 0;
	ifa->ifa_index = index;
	mnl_attr_put(nlh, IFA_LOCAL, bytes, &addr);
	mnl_attr_put(nlh, IFA_ADDRESS, bytes, &addr);
	return nl_request(NETLINK_ROUTE, nlh, NULL, NULL);
}

/* In the host's namespace. Returns 0 or -errno; a kernel may have no IPv6. */
static int change_addresses(u16 type, const struct lab_host *host)
{
	const u32 index = if_nametoindex(LAB_IFACE);
	int err = change_address(type, AF_INET, host->ipv4, IPV4_PREFIX, index);

	if (err)
		return err;
	err = change_address(type, AF_INET6, host->ipv6, IPV6_PREFIX, index);
	return err == -EAFNOSUPPORT || err == -EOPNOTSUPP || err == -EACCES ? 0 : err;
}

/* ---- a host, in its namespace ---- */

static u32 ethtool(u32 command, u32 data)
{
	struct ethtool_value value = { .cmd = command, .data = data };

	return netdev_ethtool(LAB_IFACE, &value) ? 0 : value.data;
}

/*
 * The cable forwards whole packets with whole checksums and their VLAN tags: offloads off. A kernel
 * may lack some.
 */
static void offloads_off(void)
{
	static const u32 commands[] = { ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO, ETHTOOL_STXCSUM };

	for (u32 i = 0; i < ARRAY_SIZE(commands); i++)
		ethtool(commands[i], 0);
	ethtool(ETHTOOL_SFLAGS,
		ethtool(ETHTOOL_GFLAGS, 0) & ~(u32)(ETH_FLAG_TXVLAN | ETH_FLAG_RXVLAN));
}

/* Addresses are usable at once. In a container /proc/sys may be read-only: then after a second. */
static void no_duplicate_detection(void)
{
	static const char path[] = "/proc/sys/net/ipv6/conf/" LAB_IFACE "/accept_dad";
	const int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!write(fd, "0", 1);
	close(fd);
}

static int set_up_host(const struct lab_host *host, const char **step)
{
	const u32 index = if_nametoindex(LAB_IFACE);
	int err;

	*step = "set up a host's interface";
	offloads_off();
	no_duplicate_detection();
	err = link_up(if_nametoindex("lo"));
	if (!err)
		err = link_up(index);
	return err ? err : change_addresses(RTM_NEWADDR, host);
}

int lab_net_enter(const struct lab_host *host)
{
	return setns(host->ns_fd, CLONE_NEWNET) ? -errno : 0;
}

/* Makes a namespace, and returns to that of cable_fd. */
static int make_namespace(struct lab_host *host, int cable_fd)
{
	int err;

	if (unshare(CLONE_NEWNET))
		return -errno;
	host->ns_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	err = host->ns_fd < 0 ? -errno : 0;
	if (setns(cable_fd, CLONE_NEWNET))
		return -errno;
	return err;
}

void lab_net_name(struct lab_host *host, u32 number)
{
	snprintf(host->ipv4, sizeof(host->ipv4), "10.77.0.%hhu", (u8)number);
	snprintf(host->ipv6, sizeof(host->ipv6), "fd77::%hhx", (u8)number);
	memcpy(host->mac, (const u8[]){ 2, 0, 0, 0x77, 0, (u8)number }, sizeof(host->mac));
}

static int make_host(struct lab_host *host, u32 number, u32 mtu, int cable_fd, const char **step)
{
	char port[16];
	int err;

	snprintf(port, sizeof(port), "p%u", number);
	lab_net_name(host, number);
	*step = "make a network namespace";
	err = make_namespace(host, cable_fd);
	if (err)
		return err;
	*step = "make a veth pair";
	err = make_link(host, port, mtu);
	if (err)
		return err;
	host->port_index = if_nametoindex(port);
	/* the cable's end makes no addresses, and so sends nothing by itself */
	err = nl_link_forbid_addresses(host->port_index);
	if (!err)
		err = link_up(host->port_index);
	if (err)
		return err;
	err = lab_net_enter(host);
	if (err)
		return err;
	err = set_up_host(host, step);
	return setns(cable_fd, CLONE_NEWNET) ? -errno : err;
}

int lab_net_make(struct lab_host *hosts, u32 num, u32 mtu, const char **step)
{
	const int cable_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	int err = cable_fd < 0 ? -errno : 0;

	*step = "open the network namespace";
	for (u32 i = 0; !err && i < num; i++)
		err = make_host(&hosts[i], i + 1, mtu, cable_fd, step);
	if (cable_fd >= 0)
		close(cable_fd);
	return err;
}

int lab_net_set_link(const struct lab_host *host, bool up)
{
	return nl_link_set_flags(host->port_index, up ? IFF_UP : 0, IFF_UP);
}

int lab_net_set_addresses(const struct lab_host *host, bool present)
{
	const int cable_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	int err = cable_fd < 0 ? -errno : lab_net_enter(host);

	if (!err) {
		err = change_addresses(present ? RTM_NEWADDR : RTM_DELADDR, host);
		if (setns(cable_fd, CLONE_NEWNET))
			err = -errno;
	}
	if (cable_fd >= 0)
		close(cable_fd);
	return err;
}
