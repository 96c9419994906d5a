/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <linux/genetlink.h>
#include <linux/if_ether.h>
#include <linux/rtnetlink.h>

#include "../os/netdev_nl.h"

#include "tx_pacer.h"

#define LOOK_NS	      (100 * NSEC_PER_MSEC)
/* while the interface takes no redirected frames, or drops some */
#define LOOK_SOON_NS  (5 * NSEC_PER_MSEC)
#define STALE_NS      (2 * LOOK_NS)
#define PORTION_NS    (50 * NSEC_PER_USEC)
/* below that AF_XDP is better, as it waits for room */
#define PORTION_MIN   16u
#define PORTION_MAX   XROCE_TX_FRAMES		/* more than can leave in PORTION_NS: no limit */

int tx_pacer_open(struct tx_pacer *p, u32 ifindex, struct xroce_engine_stats *stats)
{
	*p = (struct tx_pacer){ .stats = stats, .size = PORTION_MAX };
	stats->tx_pacer = p->size;
	return tx_counters_open(&p->watch, ifindex);
}

void tx_pacer_close(struct tx_pacer *p)
{
	tx_counters_close(&p->watch);
}

/* Drops while we send nothing are of no concern. */
static void pacer_adjust(struct tx_pacer *p, u64 dropped)
{
	if (dropped <= p->dropped) {
		p->size = min_u32(p->size + p->size / 4 + 1, PORTION_MAX);
	} else if (p->at_risk && p->size > PORTION_MIN) {
		p->size = p->size / 2 > PORTION_MIN ? p->size / 2 : PORTION_MIN;
		p->stats->tx_slowed++;
	}
	p->dropped = dropped;
	p->at_risk = false;
	p->stats->tx_pacer = p->size;
}

static void pacer_take_reading(struct tx_pacer *p, const struct tx_reading *reading, u64 now_ns)
{
	if (reading->is_known) {
		p->frame_max = reading->frame_max;
		p->looks++;
		pacer_adjust(p, reading->dropped);
	}
	p->takes_redirected = reading->takes_redirected;
	p->look_ns =
		now_ns + (p->takes_redirected && p->size == PORTION_MAX ? LOOK_NS : LOOK_SOON_NS);
	p->taken_ns = now_ns;
}

void tx_pacer_look(struct tx_pacer *p, u64 now_ns)
{
	struct tx_reading reading;

	if (now_ns < p->look_ns)
		return;
	if (p->is_asked && tx_counters_answer(&p->watch, &reading)) {
		p->is_asked = false;
		/* An answer is at most as old as its question. */
		if (now_ns - p->asked_ns < STALE_NS) {
			pacer_take_reading(p, &reading, now_ns);
			return;
		}
	}
	if (now_ns - p->taken_ns >= STALE_NS)
		p->takes_redirected = false;
	if (!p->is_asked) {
		p->is_asked = true;
		p->asked_ns = now_ns;
		tx_counters_ask(&p->watch);
	}
}

bool tx_pacer_is_smallest(const struct tx_pacer *p)
{
	return p->size == PORTION_MIN;
}

u32 tx_pacer_room(struct tx_pacer *p, u64 now_ns)
{
	if (p->size == PORTION_MAX)
		return UINT32_MAX;
	if (now_ns >= p->next_ns) {
		p->left = p->size;
		p->next_ns = now_ns + PORTION_NS;
	}
	return p->left;
}

void tx_pacer_sent(struct tx_pacer *p, u32 frames)
{
	p->left -= min_u32(p->left, frames);
	p->at_risk = true;
}

/* ---- tx counters ---- */

static int tx_counters_link_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *tb[IFLA_STATS64 + 1];
	struct rtnl_link_stats64 stats = { 0 };
	struct tx_reading *reading = arg;
	u32 mtu = 0, len;

	nl_parse(nlh, sizeof(struct ifinfomsg), tb, IFLA_STATS64);
	if (nl_get(tb[IFLA_MTU], &mtu, sizeof(mtu)))
		reading->frame_max = min_u32(mtu, UINT32_MAX - ETH_HLEN) + ETH_HLEN;
	/* The struct grows at its end with newer kernels. */
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

	return nl_exchange(w->route, nl_link_request(buf, RTM_GETLINK, w->ifindex),
			   tx_counters_link_cb, reading);
}

static int ask_features(struct tx_counters *w, u64 *features)
{
	char buf[NL_REQUEST_BYTES] = { 0 };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);

	netdev_features_request(nlh, w->family, w->ifindex);
	return nl_exchange(w->generic, nlh, netdev_features_cb, features);
}

/* Runs in the watch thread. */
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
