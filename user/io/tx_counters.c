/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <linux/genetlink.h>
#include <linux/if_ether.h>
#include <linux/rtnetlink.h>

#include "../os/netdev_nl.h"
#include "tx_counters.h"

static int tx_counters_link_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *tb[IFLA_STATS64 + 1];
	struct rtnl_link_stats64 stats = { 0 };
	struct tx_reading *reading = arg;
	u32 mtu = 0, len;

	nl_parse(nlh, sizeof(struct ifinfomsg), tb, IFLA_STATS64);
	if (nl_get(tb[IFLA_MTU], &mtu, sizeof(mtu)))
		reading->frame_max = min_u32(mtu, UINT32_MAX - ETH_HLEN) + ETH_HLEN;
	/* the struct grows at its end from kernel to kernel */
	if (tb[IFLA_STATS64]) {
		len = mnl_attr_get_payload_len(tb[IFLA_STATS64]);
		memcpy(&stats, mnl_attr_get_payload(tb[IFLA_STATS64]), min_u32(len, sizeof(stats)));
	}
	reading->dropped = stats.tx_dropped + stats.tx_errors;
	return MNL_CB_OK;
}

static int ask_link(struct tx_counters *w, struct tx_reading *reading)
{
	char buf[NL_REQUEST_BYTES] = { 0 };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *ifm;

	nlh->nlmsg_type = RTM_GETLINK;
	ifm = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifm));
	ifm->ifi_index = (int)w->ifindex;
	return nl_exchange(w->route, nlh, tx_counters_link_cb, reading);
}

static int ask_features(struct tx_counters *w, u64 *features)
{
	char buf[NL_REQUEST_BYTES] = { 0 };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);

	netdev_features_request(nlh, w->family, w->ifindex);
	return nl_exchange(w->generic, nlh, netdev_features_cb, features);
}

/* The watch thread's. */
static void tx_counters_read(void *arg)
{
	struct tx_counters *w = arg;
	u64 features = 0;

	w->reading = (struct tx_reading){ 0 };
	w->reading.is_known = !ask_features(w, &features) && !ask_link(w, &w->reading);
	w->reading.takes_redirected = w->reading.is_known && features & NETDEV_XDP_NDO_XMIT;
	/* release: pairs with the acquire in tx_counters_answer() */
	atomic_store_explicit(&w->answered, true, memory_order_release);
}

static int tx_counters_open_socket(int protocol, struct mnl_socket **nl)
{
	int err = 0;

	*nl = mnl_socket_open2(protocol, SOCK_CLOEXEC);
	if (!*nl || mnl_socket_bind(*nl, 0, MNL_SOCKET_AUTOPID) < 0)
		err = -errno;
	return err;
}

int tx_counters_open(struct tx_counters *w, u32 ifindex)
{
	int err;

	*w = (struct tx_counters){ .ifindex = ifindex, .family = nl_family(NETDEV_FAMILY) };
	if (w->family < 0)
		return w->family;
	err = tx_counters_open_socket(NETLINK_ROUTE, &w->route);
	if (!err)
		err = tx_counters_open_socket(NETLINK_GENERIC, &w->generic);
	if (!err)
		err = link_watch_job_start(&w->job, tx_counters_read, w);
	if (err)
		tx_counters_close(w);
	return err;
}

void tx_counters_close(struct tx_counters *w)
{
	link_watch_job_stop(&w->job);
	if (w->route)
		mnl_socket_close(w->route);
	if (w->generic)
		mnl_socket_close(w->generic);
	w->route = w->generic = NULL;
}

void tx_counters_ask(struct tx_counters *w)
{
	link_watch_job_ask(&w->job);
}

bool tx_counters_answer(struct tx_counters *w, struct tx_reading *reading)
{
	/* acquire: pairs with the release in tx_counters_read() */
	if (!atomic_load_explicit(&w->answered, memory_order_acquire))
		return false;
	*reading = w->reading;
	atomic_store_explicit(&w->answered, false, memory_order_relaxed);
	return true;
}
