/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The interfaces of this network namespace that can be devices, and their GID tables, from
 * rtnetlink dumps. It only reads.
 */
#define _GNU_SOURCE /* secure_getenv() */
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if_arp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "complain.h"
#include "netdev_nl.h"

/*
 * The longest headers between the link MTU and the payload: IPv6, UDP, BTH, XRCETH, RETH, ImmDt
 * (XRC WRITE_ONLY_IMM), ICRC.
 */
#define PATH_MTU_OVERHEAD                                                                          \
	(40 + 8 + sizeof(struct bth) + sizeof(struct xrc_eth) + sizeof(struct reth) +              \
	 sizeof(struct imm_dt) + ROCE_ICRC_BYTES)
/* The largest path MTU whose frames fit one AF_XDP buffer. */
#define PATH_MTU_ONE_BUFFER 2048

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71 /* from 5.14 on; newer than some headers */
#endif
#define NETNS_BY_COOKIE (1ull << 63)

/* The order of the GID table. */
enum address_class {
	ADDR_IPV4,
	ADDR_IPV6_GLOBAL,
	ADDR_IPV6_DEPRECATED,
	ADDR_IPV6_LINK_LOCAL,
	ADDR_CLASSES
};

struct address {
	u32 ifindex;
	enum address_class class;
	struct netdev_gid entry;
};

struct scan {
	const char *only_name; /* or NULL */
	struct netdev *dev;
	u32 num_devs, room_devs;
	struct address *addr;
	u32 num_addrs, room_addrs;
	bool out_of_memory;
};

/* Makes room for one more element of size bytes; returns false and sets out_of_memory if none. */
static bool scan_grow(struct scan *s, void **array, u32 n, u32 *room, size_t size)
{
	void *p;

	if (n < *room)
		return true;
	p = reallocarray(*array, *room ? *room * 2 : 16, size);
	if (!p) {
		s->out_of_memory = true;
		return false;
	}
	*array = p;
	*room = *room ? *room * 2 : 16;
	return true;
}

static void link_state(const struct ifinfomsg *ifi, const struct nlattr *has_carrier,
		       bool *is_enabled, bool *is_up)
{
	u8 carrier;

	/* The driver's carrier: IFF_RUNNING and the operational state follow by up to a second. */
	if (!nl_get(has_carrier, &carrier, sizeof(carrier)))
		carrier = !!(ifi->ifi_flags & IFF_RUNNING);
	*is_enabled = ifi->ifi_flags & IFF_UP;
	*is_up = *is_enabled && carrier;
}

bool netdev_link_message(const struct nlmsghdr *nlh, bool *is_enabled, bool *is_up)
{
	const struct nlattr *tb[IFLA_CARRIER + 1];
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);

	if (nlh->nlmsg_type != RTM_NEWLINK || mnl_nlmsg_get_payload_len(nlh) < sizeof(*ifi))
		return false;
	nl_parse(nlh, sizeof(*ifi), tb, IFLA_CARRIER);
	link_state(ifi, tb[IFLA_CARRIER], is_enabled, is_up);
	return true;
}

bool netdev_link_kind(const struct nlattr *linkinfo, char *kind, size_t n)
{
	const struct nlattr *attr;

	if (linkinfo)
		mnl_attr_for_each_nested(attr, linkinfo)
			if (mnl_attr_get_type(attr) == IFLA_INFO_KIND)
				return nl_get_string(attr, kind, n);
	return false;
}

/* Returns whether the interface is of a kind other than veth and TAP. */
static bool is_stacked(const struct nlattr *linkinfo)
{
	char kind[32];

	return netdev_link_kind(linkinfo, kind, sizeof(kind)) && strcmp(kind, "veth") &&
	       strcmp(kind, "tun");
}

static bool is_veth(const struct nlattr *linkinfo)
{
	char kind[32];

	return netdev_link_kind(linkinfo, kind, sizeof(kind)) && !strcmp(kind, "veth");
}

/* Returns whether it is a TAP device for a broker's client. */
static bool is_brokers(const char *name, const struct nlattr *linkinfo)
{
	char kind[32];

	return !strncmp(name, NETDEV_TAP_PREFIX, strlen(NETDEV_TAP_PREFIX)) &&
	       netdev_link_kind(linkinfo, kind, sizeof(kind)) && !strcmp(kind, "tun");
}

static u32 link_xdp_program(const struct nlattr *xdp)
{
	const struct nlattr *attr;
	u32 id = 0;

	if (xdp)
		mnl_attr_for_each_nested(attr, xdp)
			if (mnl_attr_get_type(attr) == IFLA_XDP_PROG_ID)
				nl_get(attr, &id, sizeof(id));
	return id;
}

/*
 * Reads a link message into *dev, without speed, queues and GIDs; stores num_rx_queues separately.
 * Returns false if it cannot be a device.
 */
static bool link_parse(const struct nlmsghdr *nlh, struct netdev *dev, u32 *num_rx_queues)
{
	const struct nlattr *tb[IFLA_PARENT_DEV_NAME + 1];
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);

	if (nlh->nlmsg_type != RTM_NEWLINK || mnl_nlmsg_get_payload_len(nlh) < sizeof(*ifi) ||
	    ifi->ifi_index <= 0)
		return false;
	if (ifi->ifi_type != ARPHRD_ETHER && ifi->ifi_type != ARPHRD_LOOPBACK)
		return false;
	nl_parse(nlh, sizeof(*ifi), tb, IFLA_PARENT_DEV_NAME);

	memset(dev, 0, sizeof(*dev));
	dev->ifindex = (u32)ifi->ifi_index;
	dev->is_loopback = ifi->ifi_type == ARPHRD_LOOPBACK;
	dev->is_hardware = tb[IFLA_PARENT_DEV_NAME] != NULL;
	dev->is_stacked = is_stacked(tb[IFLA_LINKINFO]);
	dev->is_veth = is_veth(tb[IFLA_LINKINFO]);
	/* the kernel reports the other end's namespace unless it is this one */
	dev->is_pair = dev->is_veth && tb[IFLA_LINK_NETNSID];
	dev->xdp_program = link_xdp_program(tb[IFLA_XDP]);
	link_state(ifi, tb[IFLA_CARRIER], &dev->is_enabled, &dev->is_up);
	if (!nl_get_string(tb[IFLA_IFNAME], dev->name, sizeof(dev->name)) ||
	    !nl_get(tb[IFLA_ADDRESS], dev->mac, sizeof(dev->mac)) ||
	    !nl_get(tb[IFLA_MTU], &dev->mtu, sizeof(dev->mtu)) ||
	    is_brokers(dev->name, tb[IFLA_LINKINFO]))
		return false;
	if (!nl_get(tb[IFLA_NUM_RX_QUEUES], num_rx_queues, sizeof(*num_rx_queues)))
		*num_rx_queues = 1;
	return true;
}

static int netdev_link_cb(const struct nlmsghdr *nlh, void *arg)
{
	struct scan *s = arg;
	struct netdev dev;
	u32 queues;

	if (!link_parse(nlh, &dev, &queues) || (s->only_name && strcmp(s->only_name, dev.name)))
		return MNL_CB_OK;
	if (!scan_grow(s, (void **)&s->dev, s->num_devs, &s->room_devs, sizeof(*s->dev)))
		return MNL_CB_OK;
	/* scan_finish() replaces it: no other system call within a dump. */
	dev.rx_queues = queues;
	s->dev[s->num_devs++] = dev;
	return MNL_CB_OK;
}

/*
 * Reads an address message as a GID. Returns false if it has none, or an address that must not be
 * used (RFC 4862: tentative or duplicate).
 */
static bool address_parse(const struct nlmsghdr *nlh, struct address *a)
{
	const struct nlattr *tb[IFA_FLAGS + 1];
	const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(nlh);
	u8 *raw = a->entry.gid.raw;
	u32 flags;

	if (nlh->nlmsg_type != RTM_NEWADDR || mnl_nlmsg_get_payload_len(nlh) < sizeof(*ifa))
		return false;
	nl_parse(nlh, sizeof(*ifa), tb, IFA_FLAGS);

	memset(a, 0, sizeof(*a));
	a->ifindex = ifa->ifa_index;
	a->entry.prefix_len = ifa->ifa_prefixlen;
	if (!nl_get(tb[IFA_FLAGS], &flags, sizeof(flags)))
		flags = ifa->ifa_flags;
	if ((flags & IFA_F_DADFAILED) || ((flags & IFA_F_TENTATIVE) && !(flags & IFA_F_OPTIMISTIC)))
		return false;

	/* On a point-to-point address IFA_ADDRESS is the peer's; IFA_LOCAL, if present, ours. */
	if (ifa->ifa_family == AF_INET) {
		raw[10] = raw[11] = 0xff;
		a->class = ADDR_IPV4;
		return (nl_get(tb[IFA_LOCAL], raw + 12, 4) ||
			nl_get(tb[IFA_ADDRESS], raw + 12, 4)) &&
		       raw[12] != 0;
	}
	if (ifa->ifa_family != AF_INET6 ||
	    (!nl_get(tb[IFA_LOCAL], raw, 16) && !nl_get(tb[IFA_ADDRESS], raw, 16)))
		return false;
	if (raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80)
		a->class = ADDR_IPV6_LINK_LOCAL;
	else
		a->class = flags & IFA_F_DEPRECATED ? ADDR_IPV6_DEPRECATED : ADDR_IPV6_GLOBAL;
	return true;
}

static int address_cb(const struct nlmsghdr *nlh, void *arg)
{
	struct scan *s = arg;
	struct address a;

	if (!address_parse(nlh, &a))
		return MNL_CB_OK;
	if (!scan_grow(s, (void **)&s->addr, s->num_addrs, &s->room_addrs, sizeof(*s->addr)))
		return MNL_CB_OK;
	s->addr[s->num_addrs++] = a;
	return MNL_CB_OK;
}

/* Passes all messages of one type, with a header of header_bytes, to cb; *count is cb's counter. */
static int scan_dump(struct netdev_session *session, struct scan *s, u16 type,
		     size_t header_bytes, mnl_cb_t cb, u32 *count)
{
	int ret = -EINTR;

	for (int i = 0; i < NL_DUMP_RETRIES && ret == -EINTR; i++) {
		char buf[NL_REQUEST_BYTES] = { 0 };
		struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);

		nlh->nlmsg_type = type;
		nlh->nlmsg_flags = NLM_F_DUMP;
		/* zeroes: AF_UNSPEC, all families */
		mnl_nlmsg_put_extra_header(nlh, header_bytes);
		*count = 0;
		ret = nl_route_request(session, nlh, cb, s);
	}
	return ret < 0 ? ret : s->out_of_memory ? -ENOMEM : 0;
}

static int scan_addresses(struct netdev_session *session, struct scan *s)
{
	return scan_dump(session, s, RTM_GETADDR, sizeof(struct ifaddrmsg), address_cb,
			 &s->num_addrs);
}

static int scan_all(struct scan *s)
{
	int ret = scan_dump(NULL, s, RTM_GETLINK, sizeof(struct ifinfomsg), netdev_link_cb,
			    &s->num_devs);

	return ret ? ret : scan_addresses(NULL, s);
}

/*
 * Fills the GID table of dev from the scanned addresses: class by class, each address once (it may
 * have several prefixes).
 */
static void fill_gids(const struct scan *s, struct netdev *dev)
{
	for (int class = 0; class < ADDR_CLASSES; class++) {
		for (u32 i = 0; i < s->num_addrs; i++) {
			const struct address *a = &s->addr[i];

			if (a->ifindex != dev->ifindex || (int)a->class != class ||
			    dev->num_gids == XROCE_MAX_GID || netdev_has_gid(dev, &a->entry.gid))
				continue;
			dev->gid[dev->num_gids++] = a->entry;
		}
	}
}

static void scan_finish(const struct scan *s, struct netdev *dev)
{
	fill_gids(s, dev);
	dev->rx_queues = netdev_rx_queues(dev->name, dev->ifindex, dev->rx_queues);
	dev->speed_mbps = netdev_speed_mbps(dev->name);
}

static void scan_free(struct scan *s)
{
	free(s->dev);
	free(s->addr);
}

/* Returns the rank in the list: usable ones, others, lo. */
static int netdev_rank(const struct netdev *dev)
{
	if (dev->is_loopback)
		return 2;
	return dev->is_up && dev->num_gids ? 0 : 1;
}

/* Lists all devices, or one by name, sorted; *out is malloc()ed. Returns the count or -errno. */
static int list_devices(const char *only_name, struct netdev **out)
{
	struct scan s = { .only_name = only_name };
	struct netdev *sorted = NULL;
	int ret, n = 0;

	*out = NULL;
	ret = scan_all(&s);
	if (ret)
		goto out;
	sorted = calloc(s.num_devs ? s.num_devs : 1, sizeof(*sorted));
	if (!sorted) {
		ret = -ENOMEM;
		goto out;
	}
	for (u32 i = 0; i < s.num_devs; i++)
		scan_finish(&s, &s.dev[i]);
	for (int rank = 0; rank <= 2; rank++)
		for (u32 i = 0; i < s.num_devs; i++)
			if (netdev_rank(&s.dev[i]) == rank)
				sorted[n++] = s.dev[i];
	*out = sorted;
	ret = n;
out:
	scan_free(&s);
	return ret;
}

int netdev_each(netdev_fn *fn, void *arg)
{
	struct scan s = { 0 };
	int ret = scan_all(&s);

	for (u32 i = 0; !ret && i < s.num_devs; i++) {
		if (s.dev[i].is_loopback || !s.dev[i].is_up)
			continue;
		fill_gids(&s, &s.dev[i]);
		fn(arg, &s.dev[i]);
	}
	scan_free(&s);
	return ret;
}

struct holder_scan {
	const struct gid *gid;
	u32 but_ifindex;
	u8 *mac;
	bool found;
};

static void netdev_look_at_holder(void *arg, const struct netdev *dev)
{
	struct holder_scan *h = arg;

	if (h->found || dev->ifindex == h->but_ifindex || !netdev_has_gid(dev, h->gid))
		return;
	memcpy(h->mac, dev->mac, 6);
	h->found = true;
}

int netdev_holder_of(const struct gid *gid, u32 but_ifindex, u8 mac[6])
{
	struct holder_scan h = { .gid = gid, .but_ifindex = but_ifindex, .mac = mac };
	int ret = netdev_each(netdev_look_at_holder, &h);

	return ret ? ret : h.found ? 0 : -ENOENT;
}

int netdev_list(struct netdev **out)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	const char *only = secure_getenv(NETDEV_ENV);
	int n;

	if (only && !*only)
		only = NULL;
	n = list_devices(only, out);
	/* lo is last. Programs that take the first device, or all, never want it. */
	if (n > 0 && !only && (*out)[n - 1].is_loopback)
		n--;
	/* Once a process: some programs request the list repeatedly. */
	if (n == 0 && only && !atomic_flag_test_and_set_explicit(&said, memory_order_relaxed))
		complain(NETDEV_ENV "=%s: no such Ethernet interface in this network "
				    "namespace; 'xroce list' lists the interfaces",
			 only);
	return n;
}

int netdev_find(const char *name, struct netdev *out)
{
	struct netdev *list;
	int n = list_devices(name, &list);

	if (n < 0)
		return n;
	if (n > 0)
		*out = list[0];
	free(list);
	if (n > 0)
		return 0;
	return if_nametoindex(name) ? -EOPNOTSUPP : -ENODEV;
}

/* Scans one interface with its addresses: s->dev[0]. The caller calls scan_free(). */
static int scan_one(struct netdev_session *session, struct scan *s, u32 ifindex)
{
	char buf[NL_REQUEST_BYTES] = { 0 };
	int ret = nl_route_request(session, nl_link_request(buf, RTM_GETLINK, ifindex),
				   netdev_link_cb, s);

	if (!ret && s->num_devs != 1)
		ret = s->out_of_memory ? -ENOMEM : -ENODEV;
	return ret ? ret : scan_addresses(session, s);
}

int netdev_refresh(struct netdev *dev)
{
	struct scan s = { 0 };
	int ret = scan_one(NULL, &s, dev->ifindex);

	if (!ret) {
		scan_finish(&s, &s.dev[0]);
		*dev = s.dev[0];
	}
	scan_free(&s);
	return ret;
}

int netdev_refresh_addresses(struct netdev_session *session, struct netdev *dev)
{
	struct scan s = { 0 };
	int ret = scan_one(session, &s, dev->ifindex);

	if (!ret) {
		fill_gids(&s, &s.dev[0]);
		s.dev[0].rx_queues = dev->rx_queues;
		s.dev[0].speed_mbps = dev->speed_mbps;
		*dev = s.dev[0];
	}
	scan_free(&s);
	return ret;
}

u64 netdev_netns_of(int socket)
{
	u64 cookie = 0;
	socklen_t len = sizeof(cookie);

	return getsockopt(socket, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len) ? 0 : cookie;
}

/* Identifies a network namespace for processes without /proc; inodes have 32 bits. */
static u64 netns_cookie(void)
{
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	u64 cookie;

	if (fd < 0)
		return 0;
	cookie = netdev_netns_of(fd);
	close(fd);
	return cookie ? NETNS_BY_COOKIE | cookie : 0;
}

/*
 * The first network namespace of this process that had a number by /proc: without /proc, as after
 * chroot(2), it keeps that number.
 */
static _Atomic u64 netns_known_inode, netns_known_cookie;

static void netns_note(u64 inode)
{
	u64 none = 0;

	/* relaxed: another thread's is as good, and the release below publishes it */
	if (atomic_load_explicit(&netns_known_inode, memory_order_relaxed) ||
	    !atomic_compare_exchange_strong_explicit(&netns_known_inode, &none, inode,
						     memory_order_relaxed, memory_order_relaxed))
		return;
	/* release: pairs with the acquire in netns_by_cookie() */
	atomic_store_explicit(&netns_known_cookie, netns_cookie(), memory_order_release);
}

static u64 netns_by_cookie(void)
{
	const u64 cookie = netns_cookie();

	return cookie && cookie == atomic_load_explicit(&netns_known_cookie, memory_order_acquire) ?
		       atomic_load_explicit(&netns_known_inode, memory_order_relaxed) :
		       cookie;
}

u64 netdev_netns(void)
{
	struct stat st;

	if (stat("/proc/thread-self/ns/net", &st))
		return netns_by_cookie();
	netns_note((u64)st.st_ino);
	return (u64)st.st_ino;
}

u32 netdev_path_mtu(u32 link_mtu, bool multibuffer)
{
	u32 pmtu = multibuffer ? ROCE_PMTU_MAX : PATH_MTU_ONE_BUFFER;

	while (pmtu >= 256 && link_mtu < pmtu + PATH_MTU_OVERHEAD)
		pmtu /= 2;
	return pmtu >= 256 ? pmtu : 0;
}

u32 netdev_link_mtu_for(u32 path_mtu)
{
	return path_mtu + (u32)PATH_MTU_OVERHEAD;
}

static bool kernel_is_at_least(unsigned int wanted_major, unsigned int wanted_minor)
{
	unsigned int major, minor;
	struct utsname u;

	if (uname(&u) < 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2)
		return false;
	return major > wanted_major || (major == wanted_major && minor >= wanted_minor);
}

bool netdev_kernel_multibuffer(void)
{
	return kernel_is_at_least(6, 6);
}

bool netdev_kernel_syscall_context(void)
{
	return kernel_is_at_least(6, 1);
}

bool netdev_kernel_generic_frags(void)
{
	return kernel_is_at_least(6, 9);
}
