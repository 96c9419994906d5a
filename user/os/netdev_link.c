/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Properties of an interface from its driver: receive queues, speed, driver name, XDP features and
 * mode, and what InfiniBand calls them.
 * Uses ethtool ioctls and generic netlink, which answer for the caller's network namespace; sysfs
 * shows the namespace that it was mounted in. It only reads.
 */
#include <linux/ethtool.h>
#include <linux/genetlink.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netdev_nl.h"
#include "options.h"
#include "thread.h"

/* The "netdev" generic netlink family; <linux/netdev.h> is newer than the headers we build with. */
#define NETDEV_CMD_DEV_GET    1
#define NETDEV_CMD_QUEUE_GET  10
#define NETDEV_CMD_NAPI_GET   11
#define NETDEV_A_DEV_IFINDEX  1
#define NETDEV_A_DEV_XDP      3
#define NETDEV_A_QUEUE_ID     1
#define NETDEV_A_QUEUE_IFINDEX 2
#define NETDEV_A_QUEUE_TYPE   3
#define NETDEV_A_QUEUE_NAPI_ID 4
#define NETDEV_A_NAPI_IFINDEX 1
#define NETDEV_A_NAPI_ID      2
#define NETDEV_A_NAPI_IRQ     3
#define NETDEV_QUEUE_RX	      0

int netdev_ethtool(const char *name, void *cmd)
{
	struct ifreq ifr = { .ifr_data = cmd };
	int fd, ret, cancel;

	memcpy(ifr.ifr_name, name, strnlen(name, IF_NAMESIZE - 1));
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	cancel = thread_disable_cancel();
	ret = ioctl(fd, SIOCETHTOOL, &ifr) < 0 ? -errno : 0;
	close(fd);
	thread_restore_cancel(cancel);
	return ret;
}

static void family_request(struct nlmsghdr *nlh, int family, u8 cmd, u16 ifindex_attr, u32 ifindex)
{
	struct genlmsghdr *genl;

	nlh->nlmsg_type = (u16)family;
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = cmd;
	genl->version = 1;
	mnl_attr_put_u32(nlh, ifindex_attr, ifindex);
}

/* Asks the netdev family about an interface. Returns 0 or -errno (-ENOENT before 6.3). */
static int netdev_family_get(u8 cmd, u16 flags, u16 ifindex_attr, u32 ifindex, mnl_cb_t cb,
			     void *arg)
{
	char buf[NL_REQUEST_BYTES] = { 0 };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	int family = nl_family(NETDEV_FAMILY);

	if (family < 0)
		return family;
	family_request(nlh, family, cmd, ifindex_attr, ifindex);
	nlh->nlmsg_flags |= flags;
	return nl_request(NETLINK_GENERIC, nlh, cb, arg);
}

static int queue_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *tb[NETDEV_A_QUEUE_TYPE + 1];
	u32 type;

	nl_parse(nlh, sizeof(struct genlmsghdr), tb, NETDEV_A_QUEUE_TYPE);
	if (nl_get(tb[NETDEV_A_QUEUE_TYPE], &type, sizeof(type)) && type == NETDEV_QUEUE_RX)
		++*(u32 *)arg;
	return MNL_CB_OK;
}

u32 netdev_rx_queues(const char *name, u32 ifindex, u32 num_rx_queues)
{
	struct ethtool_channels ch = { .cmd = ETHTOOL_GCHANNELS };
	u32 n = 0;

	/*
	 * num_rx_queues is the allocated number (a multi-queue tap: 256); an AF_XDP socket can bind
	 * only to queues in use. Drivers with a fixed number have no channels; then the kernel
	 * reports it (from 6.8 on, while the interface is up).
	 */
	if (num_rx_queues <= 1)
		return 1;
	if (!netdev_ethtool(name, &ch))
		n = ch.rx_count + ch.combined_count;
	else
		netdev_family_get(NETDEV_CMD_QUEUE_GET, NLM_F_DUMP, NETDEV_A_QUEUE_IFINDEX, ifindex,
				  queue_cb, &n);
	return n ? min_u32(n, num_rx_queues) : num_rx_queues;
}

struct queue_irq {
	u32 queue;
	u32 napi_id, irq;
	bool has_napi, has_irq;
};

static int queue_napi_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *tb[NETDEV_A_QUEUE_NAPI_ID + 1];
	struct queue_irq *q = arg;
	u32 type, id;

	nl_parse(nlh, sizeof(struct genlmsghdr), tb, NETDEV_A_QUEUE_NAPI_ID);
	if (nl_get(tb[NETDEV_A_QUEUE_TYPE], &type, sizeof(type)) && type == NETDEV_QUEUE_RX &&
	    nl_get(tb[NETDEV_A_QUEUE_ID], &id, sizeof(id)) && id == q->queue)
		q->has_napi = nl_get(tb[NETDEV_A_QUEUE_NAPI_ID], &q->napi_id, sizeof(q->napi_id));
	return MNL_CB_OK;
}

static int napi_irq_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *tb[NETDEV_A_NAPI_IRQ + 1];
	struct queue_irq *q = arg;
	u32 id;

	nl_parse(nlh, sizeof(struct genlmsghdr), tb, NETDEV_A_NAPI_IRQ);
	if (nl_get(tb[NETDEV_A_NAPI_ID], &id, sizeof(id)) && id == q->napi_id)
		q->has_irq = nl_get(tb[NETDEV_A_NAPI_IRQ], &q->irq, sizeof(q->irq));
	return MNL_CB_OK;
}

int netdev_queue_cpu(u32 ifindex, u32 queue)
{
	struct queue_irq q = { .queue = queue };
	char path[64], rest;
	int cpu = -ENOENT;
	FILE *f;

	netdev_family_get(NETDEV_CMD_QUEUE_GET, NLM_F_DUMP, NETDEV_A_QUEUE_IFINDEX, ifindex,
			  queue_napi_cb, &q);
	if (q.has_napi)
		netdev_family_get(NETDEV_CMD_NAPI_GET, NLM_F_DUMP, NETDEV_A_NAPI_IFINDEX, ifindex,
				  napi_irq_cb, &q);
	if (!q.has_irq)
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/irq/%u/effective_affinity_list", q.irq);
	f = fopen(path, "re");
	if (!f)
		return -ENOENT;
	/* a list of several CPUs is of no use */
	if (fscanf(f, "%d%c", &cpu, &rest) != 2 || rest != '\n' || cpu < 0)
		cpu = -ENOENT;
	fclose(f);
	return cpu;
}

u32 netdev_speed_mbps(const char *name)
{
	/* The link mode masks follow the struct: 3 of at most 127 words (nwords is an s8). */
	union {
		struct ethtool_link_settings base;
		u8 with_masks[sizeof(struct ethtool_link_settings) + 3 * 127 * sizeof(u32)];
	} ls = { .base.cmd = ETHTOOL_GLINKSETTINGS };
	s32 words;

	/* First call: the kernel returns the negated number of words needed. */
	if (netdev_ethtool(name, &ls) || ls.base.link_mode_masks_nwords >= 0)
		return 0;
	words = -ls.base.link_mode_masks_nwords;
	if (words > 127)
		return 0;
	ls.base.cmd = ETHTOOL_GLINKSETTINGS;
	ls.base.link_mode_masks_nwords = (__s8)words;
	if (netdev_ethtool(name, &ls) || ls.base.speed > INT32_MAX) /* SPEED_UNKNOWN is -1 */
		return 0;
	return ls.base.speed;
}

int netdev_driver(const char *name, char *driver, size_t n)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	int ret = netdev_ethtool(name, &info);

	if (ret)
		return ret;
	info.driver[sizeof(info.driver) - 1] = 0;
	snprintf(driver, n, "%s", info.driver);
	return 0;
}

void netdev_features_request(struct nlmsghdr *nlh, int family, u32 ifindex)
{
	family_request(nlh, family, NETDEV_CMD_DEV_GET, NETDEV_A_DEV_IFINDEX, ifindex);
}

int netdev_features_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *tb[NETDEV_A_DEV_XDP + 1];
	u64 features;

	nl_parse(nlh, sizeof(struct genlmsghdr), tb, NETDEV_A_DEV_XDP);
	if (nl_get(tb[NETDEV_A_DEV_XDP], &features, sizeof(features)))
		*(u64 *)arg = features;
	return MNL_CB_OK;
}

int netdev_xdp_features(u32 ifindex, u64 *features)
{
	*features = 0;
	return netdev_family_get(NETDEV_CMD_DEV_GET, 0, NETDEV_A_DEV_IFINDEX, ifindex,
				 netdev_features_cb, features);
}

/* ---- in InfiniBand terms ---- */

void netdev_guid(const struct netdev *dev, u8 guid[8])
{
	const u8 *mac = dev->mac;
	const u8 eui[8] = { mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5] };

	memcpy(guid, eui, sizeof(eui));
}

enum port_phys_state netdev_phys_state(const struct netdev *dev)
{
	return dev->is_up ? PHYS_LINK_UP : dev->is_enabled ? PHYS_POLLING : PHYS_DISABLED;
}

struct port_speed netdev_port_speed(const struct netdev *dev)
{
	static const struct port_speed table[] = {
		{ 1, 1, 2500 },	  { 1, 4, 10000 },   { 1, 32, 25000 },	{ 2, 4, 40000 },
		{ 1, 64, 50000 }, { 2, 32, 100000 }, { 2, 64, 200000 }, { 2, 128, 400000 },
	};
	u32 i = 0;

	while (i < ARRAY_SIZE(table) - 1 && dev->speed_mbps > table[i].mbps)
		i++;
	return table[i];
}

/* ---- XDP mode ---- */

static bool is_veth(const struct netdev *dev)
{
	char driver[32];

	return !netdev_driver(dev->name, driver, sizeof(driver)) && !strcmp(driver, "veth");
}

static bool wants_redirection(void)
{
	const enum tx_choice choice = options_tx();

	return choice == TX_TAP || choice == TX_LIVE;
}

enum xdp_mode xdp_mode(const struct netdev *dev)
{
	switch (options_xdp()) {
	case XDP_CHOICE_NATIVE:
		return XDP_MODE_NATIVE;
	case XDP_CHOICE_GENERIC:
		return XDP_MODE_GENERIC;
	case XDP_CHOICE_AUTO:
		break;
	}
	/*
	 * A packet's queue is the underlying card's: an AF_XDP socket on a bond gets none of the
	 * packets that the card's driver passed to XDP.
	 */
	if (dev->is_stacked)
		return XDP_MODE_GENERIC;
	return is_veth(dev) && dev->rx_queues <= 1 && !wants_redirection() &&
			       netdev_kernel_generic_frags() ?
		       XDP_MODE_GENERIC :
		       XDP_MODE_ANY;
}
